/* SPDX-License-Identifier: BSD-3-Clause */
/* clang-format off */
/* Seed 000, figures 4.24 and 4.25: TF-IDF over MPI. The seed runs region 0 with Redundancy; programs that
 * use MPI can't have that yet, so that it runs with CR here. */
#include <mpi.h>

struct names {
	char name[100][64];
};
struct counts {
	int of[100][256];
};

void Load(struct names *names);
void TF(const struct names *names, struct counts *tfs);
void DF(const struct counts *tfs, int dfs[256]);
void TFIDF(const struct counts *tfs, const int dfs[256], double *out);

void rank_pages(double *out)
{
	static struct names filenames;
	static struct counts tfs;
	static int dfs[256];

	Load(&filenames);
#pragma protect CR Check(hash(filenames)) Recover(Load(&filenames)) Continue
	TF(&filenames, &tfs);
#pragma protect CR Check(hash(tfs)) Comm Continue
	DF(&tfs, dfs); /* contains MPI calls */
#pragma protect Check(hash(tfs), hash(dfs))
	TFIDF(&tfs, dfs, out);
}
