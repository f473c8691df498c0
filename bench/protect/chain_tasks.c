/* SPDX-License-Identifier: BSD-3-Clause */
/* E = A B D by OpenMP tasks, with checksums per block (seed 000, 4.4.2 and figures 4.6 to 4.8, 4.12, 4.13):
 * ./chain_tasks N FOLDER reads A, B, D from FOLDER and writes E there; N is a multiple of 256. Built without PROTECT it
 * calls nothing of Hale. With REDUNDANT each task computes its block twice, and each block is loaded twice.
 *
 * A task makes one block and notes it. When all users of a block have run, it is checked. A damaged one is corrected
 * from its checksums, or made again; the tasks that used it are put into the queue once more (figure 4.13). */
#include <cblas.h>
#include <fcntl.h>
#include <omp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef PROTECT
#include <hale/protect.h>
#endif

enum { K = 256 };

static int n, nb; /* rows, blocks in a row */

struct grid {
	const char *name;
	int fd;			     /* of its file; -1: it is a product */
	const struct grid *left, *right; /* what it is the product of */
	double *x;		     /* block by block */
#ifdef PROTECT
	struct hale_var *v;
#endif
};

static double *block(const struct grid *g, int i, int j)
{
	return g->x + ((size_t)i * (size_t)nb + (size_t)j) * K * K;
}

static void fail(const char *name)
{
	fprintf(stderr, "chain_tasks: can't read or write all of %s\n", name);
	exit(1);
}

/* The rows of a block lie apart in the file. */
static void block_move(const struct grid *g, int i, int j, bool out)
{
	const size_t bytes = K * sizeof(double);
	double *x = block(g, i, j);

	for (int r = 0; r < K; r++, x += K) {
		off_t at = (off_t)sizeof(double) * (((off_t)i * K + r) * n + (off_t)j * K);
		ssize_t did = out ? pwrite(g->fd, x, bytes, at) : pread(g->fd, x, bytes, at);
		if (did != (ssize_t)bytes)
			fail(g->name);
	}
}

static void block_multiply(const struct grid *g, int i, int j)
{
	for (int k = 0; k < nb; k++)
		cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, K, K, K, 1, block(g->left, i, k), K,
			    block(g->right, k, j), K, k > 0, block(g, i, j), K);
}

static void block_fill(const struct grid *g, int i, int j)
{
	if (g->left)
		block_multiply(g, i, j);
	else
		block_move(g, i, j, false);
}

#ifndef PROTECT

static void block_make(const struct grid *g, int i, int j)
{
	block_fill(g, i, j);
}

static bool block_right(const struct grid *g, int i, int j)
{
	(void)g, (void)i, (void)j;
	return true;
}

static void grid_protect(struct grid *g)
{
	(void)g;
}

static void grid_forget(struct grid *g)
{
	(void)g;
}

#else

static struct hale_region region = HALE_REGION("tasks", __FILE__, __LINE__);
static const size_t block_bytes = K * K * sizeof(double);

static struct hale_var *var(const struct grid *g, int i, int j)
{
	return &g->v[(size_t)i * (size_t)nb + (size_t)j];
}

/* Resilience_pre, the task, and the note of what it has made. */
static void block_make(const struct grid *g, int i, int j)
{
	struct hale_var *v = var(g, i, j);
	void *base = block(g, i, j);

	hale_expect(v, base, block_bytes);
#ifdef REDUNDANT
	if (g->left) {
		hale_wake_up_shadow(&region, 2);
		do {
			block_fill(g, i, j);
			hale_seal(v, base, block_bytes);
		} while (!hale_agree(&region, 1, &base, &block_bytes));
		hale_sleep_shadow(&region);
		hale_note(v, HALE_SUM, base, block_bytes);
		return;
	}
#endif
	block_fill(g, i, j);
	hale_note(v, HALE_SUM, base, block_bytes);
#ifdef REDUNDANT
	while (!hale_confirmed(v))
		block_fill(g, i, j);
#endif
}

static bool block_right(const struct grid *g, int i, int j);
static omp_nest_lock_t remaking; /* who makes a block again looks at blocks that others may look at */

/* Makes a block again, from inputs that are right before and behind. */
static void block_remake(const struct grid *g, int i, int j)
{
	bool right;

	omp_set_nest_lock(&remaking);
	do {
		right = true;
		for (int k = 0; k < nb && g->left; k++)
			(void)block_right(g->left, i, k), (void)block_right(g->right, k, j);
		block_make(g, i, j);
		for (int k = 0; k < nb && g->left; k++) {
			right &= block_right(g->left, i, k);
			right &= block_right(g->right, k, j);
		}
	} while (!right);
	omp_unset_nest_lock(&remaking);
}

/* Resilience_post: false if the block had been damaged. It is right now, and who has used it runs again. */
static bool block_right(const struct grid *g, int i, int j)
{
	struct hale_var *v = var(g, i, j);

	if (hale_check(&region, v))
		return true;
	if (!hale_correct(&region, v)) {
		hale_recompute(&region, v, g->left ? "its task" : "its load");
		block_remake(g, i, j);
	}
	return false;
}

static void grid_protect(struct grid *g)
{
	g->v = calloc((size_t)nb * (size_t)nb, sizeof *g->v);
	if (!g->v)
		fail(g->name);
	for (int b = 0; b < nb * nb; b++)
		g->v[b].name = g->name;
}

static void grid_forget(struct grid *g)
{
	for (int b = 0; b < nb * nb; b++)
		hale_forget(&g->v[b]);
	free(g->v);
}

#endif

static void grid_make(const struct grid *g, bool *again)
{
	for (int b = 0; b < nb * nb; b++)
		if (again[b]) {
#pragma omp task firstprivate(b)
			block_make(g, b / nb, b % nb);
		}
#pragma omp taskwait
	memset(again, 0, (size_t)(nb * nb));
}

/* The last use of the blocks of a product's factor is behind it: a row (left) or a column of results hangs on each. */
static void factor_check(const struct grid *f, bool left, bool *again)
{
	for (int b = 0; b < nb * nb; b++) {
#pragma omp task firstprivate(b)
		if (!block_right(f, b / nb, b % nb))
			for (int k = 0; k < nb; k++) {
				int hit = left ? b / nb * nb + k : k * nb + b % nb;
#pragma omp atomic write
				again[hit] = true;
			}
	}
}

static bool any(const bool *again)
{
	return memchr(again, true, (size_t)(nb * nb)) != NULL;
}

static void multiply(const struct grid *g, bool *again)
{
	memset(again, true, (size_t)(nb * nb));
	while (any(again)) {
		grid_make(g, again);
		factor_check(g->left, true, again);
		factor_check(g->right, false, again);
#pragma omp taskwait
	}
}

static void load(const struct grid *g, bool *again)
{
	memset(again, true, (size_t)(nb * nb));
	grid_make(g, again);
}

static void store(const struct grid *g)
{
	for (int b = 0; b < nb * nb; b++) {
#pragma omp task firstprivate(b)
		do
			block_move(g, b / nb, b % nb, true);
		while (!block_right(g, b / nb, b % nb));
	}
#pragma omp taskwait
}

static void grid_open(struct grid *g, const char *folder, int flags)
{
	char path[512];

	snprintf(path, sizeof path, "%s/%s", folder, g->name);
	g->fd = open(path, flags | O_CLOEXEC, 0600);
	if (g->fd < 0)
		fail(path);
}

int main(int argc, char **argv)
{
	struct grid A = {.name = "A"}, B = {.name = "B"}, C = {.name = "C", .fd = -1, .left = &A, .right = &B};
	struct grid D = {.name = "D"}, E = {.name = "E", .left = &C, .right = &D};
	struct grid *all[] = {&A, &B, &C, &D, &E};
	bool *again;

	n = argc > 1 ? atoi(argv[1]) : 0;
	nb = n / K;
	if (argc < 3 || n <= 0 || n % K) {
		fprintf(stderr, "chain_tasks N FOLDER: N is a multiple of %d\n", K);
		return 64;
	}
	again = calloc((size_t)(nb * nb), sizeof *again);
	for (int g = 0; g < 5; g++) {
		all[g]->x = malloc((size_t)n * (size_t)n * sizeof(double));
		if (!all[g]->x || !again)
			fail("memory");
		grid_protect(all[g]);
		if (all[g] != &C)
			grid_open(all[g], argv[2], all[g] == &E ? O_WRONLY | O_CREAT | O_TRUNC : O_RDONLY);
	}
#ifdef PROTECT
	hale_enter(&region, NULL);
	omp_init_nest_lock(&remaking);
#endif
#pragma omp parallel
#pragma omp single
	{
		load(&A, again);
		load(&B, again);
		multiply(&C, again);
		load(&D, again);
		multiply(&E, again);
		store(&E);
	}
	for (int g = 0; g < 5; g++) {
		grid_forget(all[g]);
		free(all[g]->x);
	}
	free(again);
	return 0;
}
