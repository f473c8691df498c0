/* SPDX-License-Identifier: BSD-3-Clause */
/* clang-format off */
/* Term frequency, inverse document frequency over a folder of texts (seed 000, figure 4.24): ./tfidf FOLDER FILES under
 * MPI. Rank r takes the files r, r + ranks, …; prints the mean score and the dearest term of each 100th file,
 * and on stderr the wall and processor time of all ranks.
 * A damaged id is used before its check, so that the places it names are masked.
 * FOLDER/00000.txt … hold words of lower-case letters. Built by a plain compiler it is unprotected. */
#include <fcntl.h>
#include <math.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef OPS
#include <hale/protect.h>
#endif

enum { TERMS = 1 << 17, NAME = 64 };

struct term {
	uint32_t id, count;
};
struct document { /* its terms are term[from] … term[to - 1] */
	uint32_t from, to;
	uint64_t words, ids; /* the number of its words, the sum of their ids */
};

static void load_names(char *names, int files, int rank, int ranks, const char *folder)
{
	memset(names, 0, (size_t)files * NAME);
	for (int i = 0, f = rank; f < files; f += ranks, i++)
		snprintf(names + (size_t)i * NAME, NAME, "%s/%05d.txt", folder, f);
}

/* Terms are told apart by a hash of 17 bits; those of a document come in the order of their ids. */
static size_t count_file(const char *path, struct term *out, size_t room, struct document *d, uint32_t *count,
			 uint32_t *seen)
{
	int fd = open(path, O_RDONLY);
	struct stat st;
	size_t n = 0, terms = 0;
	uint64_t words = 0, ids = 0;
	if (fd < 0 || fstat(fd, &st) != 0)
		return SIZE_MAX;
	const char *text = st.st_size ? mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0) : NULL;
	close(fd);
	if (text == MAP_FAILED)
		return SIZE_MAX;
	for (off_t i = 0; i < st.st_size; i++) {
		uint32_t h = 2166136261u;
		off_t from = i;
		for (; i < st.st_size && text[i] >= 'a' && text[i] <= 'z'; i++)
			h = (h ^ (uint32_t)text[i]) * 16777619u;
		if (i == from)
			continue;
		h = (h ^ h >> 17) & (TERMS - 1);
		if (!count[h]++)
			seen[n++] = h;
		words++;
		ids += h;
	}
	for (size_t k = 0; k < n && terms < room; k++) {
		out[terms++] = (struct term){seen[k], count[seen[k]]};
		count[seen[k]] = 0;
	}
	d->words = words;
	d->ids = ids;
	if (text)
		munmap((void *)(uintptr_t)text, (size_t)st.st_size);
	return n <= room ? terms : SIZE_MAX;
}

static void tf(const char *names, int mine, struct document *docs, struct term *terms, size_t room, size_t *all,
	       int *failed)
{
	size_t used = 0;
	uint32_t *count = calloc(TERMS, sizeof *count), *seen = calloc(TERMS, sizeof *seen);
	*failed = 0;
	for (int i = 0; i < mine; i++) {
		docs[i].words = docs[i].ids = 0;
		size_t n = count_file(names + (size_t)i * NAME, terms + used, room - used, &docs[i], count, seen);
		if (n == SIZE_MAX) {
			*failed = 1;
			n = 0;
		}
		docs[i].from = (uint32_t)used;
		used += n;
		docs[i].to = (uint32_t)used;
	}
	docs[mine] = (struct document){(uint32_t)used, (uint32_t)used, 0, 0};
	*all = used;
	free(count);
	free(seen);
}

/* Judges of what tf and df write: one flipped bit of a place, an id or a count changes a sum. */
__attribute__((unused)) static int placed(const struct document *docs, int mine, size_t all)
{
	int fine = docs[0].from == 0 && docs[mine].to == all && !docs[mine].words && !docs[mine].ids;
	for (int i = 0; i < mine; i++)
		fine &= docs[i].from <= docs[i].to && docs[i].to == docs[i + 1].from;
	return fine;
}

__attribute__((unused)) static int counted(const struct term *terms, const struct document *docs, int mine, size_t all)
{
	if (!placed(docs, mine, all))
		return 1; /* that is said of docs */
	for (int i = 0; i < mine; i++) {
		uint64_t words = 0, ids = 0;
		for (uint32_t k = docs[i].from; k < docs[i].to; k++) {
			words += terms[k].count;
			ids += (uint64_t)terms[k].id * terms[k].count;
		}
		if (words != docs[i].words || ids != docs[i].ids)
			return 0;
	}
	return 1;
}

/* The last element is the sum of the others. */
__attribute__((unused)) static int totalled(const uint32_t *dfs)
{
	uint32_t sum = 0;
	for (int i = 0; i < TERMS; i++)
		sum += dfs[i];
	return sum == dfs[TERMS];
}

static void df(const struct document *docs, const struct term *terms, int mine, uint32_t *dfs)
{
	uint32_t *own = calloc(TERMS + 1, sizeof *own);
	for (int i = 0; i < mine; i++)
		for (uint32_t k = docs[i].from; k < docs[i].to; k++)
			own[terms[k].id & (TERMS - 1)]++;
	own[TERMS] = docs[mine].to;
	MPI_Allreduce(own, dfs, TERMS + 1, MPI_UINT32_T, MPI_SUM, MPI_COMM_WORLD);
	free(own);
}

static void tfidf(const struct document *docs, const struct term *terms, int mine, const uint32_t *dfs, int files,
		  double *score, uint32_t *best)
{
	for (int i = 0; i < mine; i++) {
		double most = -1;
		score[i] = 0;
		best[i] = 0;
		for (uint32_t k = docs[i].from; k < docs[i].to; k++) {
			double s = (double)terms[k].count / docs[i].words * log((double)files / dfs[terms[k].id & (TERMS - 1)]);
			score[i] += s;
			if (s > most || (s == most && terms[k].id < best[i])) {
				most = s;
				best[i] = terms[k].id;
			}
		}
	}
}

/* Of all ranks, since `began`. */
static void times_print(double began, int rank)
{
	struct rusage r;
	getrusage(RUSAGE_SELF, &r);
	double cpu = (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) +
		     1e-6 * (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec);
	double all = 0, wall = MPI_Wtime() - began;
	MPI_Reduce(&cpu, &all, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
	if (rank == 0)
		fprintf(stderr, "seconds %.6f %.6f\n", wall, all);
}

#ifdef OPS /* Table 4.4: what the operations take, by halecc -DOPS */
static void op_times(const char *name, void *base, size_t bytes, hale_check_kind_t kind)
{
	static struct hale_region r = HALE_REGION("ops", __FILE__, __LINE__);
	struct hale_var v = HALE_VAR("ops");
	double t[4];
	int fine;
	t[0] = MPI_Wtime();
	hale_note(&v, kind, base, bytes);
	t[1] = MPI_Wtime();
	fine = hale_check(&r, &v);
	t[2] = t[3] = MPI_Wtime();
	if (kind == HALE_SUM && bytes) {
		((char *)base)[bytes / 2] ^= 4;
		t[2] = MPI_Wtime();
		fine &= hale_correct(&r, &v);
		fprintf(stderr, "op correct(%s) %.9f\n", name, MPI_Wtime() - t[2]);
	}
	fprintf(stderr, "op checksum(%s) %.9f\nop check(%s) %.9f\n", name, t[1] - t[0], name, t[3] - t[1]);
	if (!fine)
		fprintf(stderr, "tfidf: %s is not what it was\n", name);
	hale_forget(&v);
}
#endif

int main(int argc, char **argv)
{
	int rank, ranks, files = argc > 2 ? atoi(argv[2]) : 0, failed = 0;
	const char *folder = argc > 1 ? argv[1] : ".";
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	double began = MPI_Wtime();
	int mine = (files - rank + ranks - 1) / ranks;
	size_t room = (size_t)(mine + 1) * 24000;
	char *names = malloc((size_t)(files + 1) * NAME);
	struct document *docs = calloc((size_t)mine + 1, sizeof *docs);
	struct term *terms = calloc(room, sizeof *terms);
	uint32_t *dfs = calloc(TERMS + 1, sizeof *dfs), *best = calloc((size_t)mine + 1, sizeof *best);
	double *score = calloc((size_t)mine + 1, sizeof *score), mean = 0, all = 0;

	size_t used = 0;
	load_names(names, files, rank, ranks, folder);
#pragma protect Check(hash(names[0:files*NAME]), placed(docs, mine, used), counted(terms, docs, mine, used)) \
	Confirm(load_names(names, files, rank, ranks, folder)) \
	Recover(load_names(names, files, rank, ranks, folder)) Continue
	tf(names, mine, docs, terms, room, &used, &failed);
#pragma protect Check(totalled(dfs)) Comm Continue
	df(docs, terms, mine, dfs);
#pragma protect Check(sum(docs[0:mine+1]), sum(terms[0:used]), hash(dfs[0:TERMS+1])) \
	Recover(correct(docs), correct(terms)) Comm
	tfidf(docs, terms, mine, dfs, files, score, best);

	for (int i = 0; i < mine; i++) {
		mean += score[i] / files;
		if ((rank + i * ranks) % 100 == 0)
			printf("%d %u %.12g\n", rank + i * ranks, best[i], score[i]);
	}
	fflush(stdout);
	MPI_Allreduce(&mean, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	if (failed)
		fprintf(stderr, "tfidf: rank %d can't read its files in %s, or they have too many terms\n", rank, folder);
	else if (rank == 0)
		printf("mean %.12g\n", all);
	times_print(began, rank);
#ifdef OPS
	if (rank == 0) {
		op_times("fn", names, (size_t)files * NAME, HALE_HASH);
		op_times("tfs", terms, used * sizeof *terms, HALE_SUM);
		op_times("dfs", dfs, (TERMS + 1) * sizeof *dfs, HALE_HASH);
		double from = MPI_Wtime();
		load_names(names, files, rank, ranks, folder);
		fprintf(stderr, "op load(fn) %.9f\n", MPI_Wtime() - from);
	}
#endif
	MPI_Finalize();
	return failed;
}
