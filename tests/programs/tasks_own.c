// SPDX-License-Identifier: BSD-3-Clause
/* Programs with tasks of <hale/task.h>, which any compiler builds: tasks_own MODE. What it prints
 * must not depend on threads or on errors. */
#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "hale/task.h"

/* ---- a random program: many tasks with ranges that overlap in all ways ---- */

enum { CELLS = 600, TASKS = 3000, RANGES = 3 };

struct step {
	uint32_t from[RANGES], to[RANGES], salt, number;
	enum hale_task_use use[RANGES];
};

static uint32_t cells[CELLS], expected[CELLS];

/* A checker finds data of every fourth task to be wrong, once each, when the task has written. */
static int raising;
static atomic_flag raised[TASKS];

static uint32_t next(uint64_t *x)
{
	*x = *x * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(*x >> 33);
}

static void step_run(uint32_t *on, struct step *s)
{
	uint32_t h = s->salt;

	for (int r = 0; r < RANGES; r++)
		for (uint32_t i = s->from[r]; s->use[r] & HALE_TASK_IN && i < s->to[r]; i++)
			h = (h ^ on[i]) * 2654435761u + 1;
	for (int r = 0; r < RANGES; r++)
		for (uint32_t i = s->from[r]; s->use[r] & HALE_TASK_OUT && i < s->to[r]; i++)
			on[i] = s->use[r] == HALE_TASK_OUT ? h + i : on[i] * 3 + h + i;
	s->salt = 0; /* its own copy: restored, or the next execution would differ */
}

static void step_task(void *arg)
{
	uint32_t number = ((struct step *)arg)->number;

	step_run(cells, arg);
	if (raising && number % 4 == 0 && !atomic_flag_test_and_set(&raised[number]))
		HALE_Raise_DUE();
}

static struct step step_draw(uint64_t *x)
{
	struct step s = {.salt = next(x)};

	for (int r = 0; r < RANGES; r++) {
		s.from[r] = next(x) % CELLS;
		s.to[r] = s.from[r] + 1 + next(x) % (next(x) % 4 ? 12 : 120);
		if (s.to[r] > CELLS)
			s.to[r] = CELLS;
		s.use[r] = (enum hale_task_use)(1 + next(x) % 3);
	}
	return s;
}

static int random_program(uint64_t seed)
{
	uint64_t x = seed * 2 + 1;

	for (int t = 0; t < TASKS; t++) {
		struct step s = step_draw(&x), again;

		s.number = (uint32_t)t;
		again = s;
		struct hale_task_range r[RANGES];

		for (int i = 0; i < RANGES; i++)
			r[i] = (struct hale_task_range){
			    cells + s.from[i], (s.to[i] - s.from[i]) * sizeof(*cells), s.use[i]};
		if (hale_task_submit(step_task, &s, sizeof(s), r, RANGES) != 0)
			return 1;
		step_run(expected, &again);
		if (t % 700 == 699)
			hale_task_wait();
	}
	hale_task_wait();
	if (memcmp(cells, expected, sizeof(cells)) != 0) {
		printf("the order of tasks was broken\n");
		return 1;
	}
	printf("random %u\n", cells[0] ^ cells[CELLS - 1]);
	return 0;
}

/* ---- tasks in tasks: a sort ---- */

struct part {
	uint32_t *at, *space;
	size_t n;
};

static int compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static void leaf(void *arg)
{
	struct part *p = arg;

	qsort(p->at, p->n, sizeof(*p->at), compare);
}

static void merge(void *arg)
{
	struct part *p = arg;
	size_t half = p->n / 2, i = 0, k = half;

	for (size_t o = 0; o < p->n; o++)
		p->space[o] =
		    k == p->n || (i < half && p->at[i] <= p->at[k]) ? p->at[i++] : p->at[k++];
	memcpy(p->at, p->space, p->n * sizeof(*p->at));
}

static void sort(void *arg)
{
	struct part *p = arg, low = {p->at, p->space, p->n / 2},
		    high = {p->at + p->n / 2, p->space + p->n / 2, p->n - p->n / 2};
	struct hale_task_range l[2] = {{low.at, low.n * 4, HALE_TASK_INOUT},
				       {low.space, low.n * 4, HALE_TASK_OUT}},
			       h[2] = {{high.at, high.n * 4, HALE_TASK_INOUT},
				       {high.space, high.n * 4, HALE_TASK_OUT}},
			       all[2] = {{p->at, p->n * 4, HALE_TASK_INOUT},
					 {p->space, p->n * 4, HALE_TASK_OUT}};
	void (*below)(void *) = p->n > 4000 ? sort : leaf;

	hale_task_submit(below, &low, sizeof(low), l, 2);
	hale_task_submit(below, &high, sizeof(high), h, 2);
	hale_task_submit(merge, p, sizeof(*p), all, 2);
	hale_task_wait();
}

static int nested(void)
{
	enum { N = 50000 };
	static uint32_t a[N], space[N];
	uint64_t x = 9, h = 0;
	struct part p = {a, space, N};
	struct hale_task_range all[2] = {{a, sizeof(a), HALE_TASK_INOUT},
					 {space, sizeof(space), HALE_TASK_OUT}};

	for (int i = 0; i < N; i++)
		a[i] = next(&x);
	hale_task_submit(sort, &p, sizeof(p), all, 2);
	hale_task_wait();
	for (int i = 1; i < N; i++) {
		h = h * 31 + a[i];
		if (a[i - 1] > a[i])
			return 1;
	}
	printf("nested %llu\n", (unsigned long long)h);
	return 0;
}

/* ---- what is refused ---- */

static int refused(void)
{
	int x = 0;
	struct hale_task_range bad = {&x, sizeof(x), 0}, wraps = {&x, SIZE_MAX, HALE_TASK_IN};

	return hale_task_submit(NULL, NULL, 0, NULL, 0) == EINVAL &&
		       hale_task_submit(leaf, NULL, 4, NULL, 0) == EINVAL &&
		       hale_task_submit(leaf, NULL, 0, NULL, 1) == EINVAL &&
		       hale_task_submit(leaf, NULL, 0, &bad, 1) == EINVAL &&
		       hale_task_submit(leaf, NULL, 0, &wraps, 1) == EINVAL &&
		       hale_task_threads() >= 1
		   ? (printf("refused\n"), 0)
		   : 1;
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "random";

	raising = strcmp(mode, "raising") == 0;
	if (raising || strcmp(mode, "random") == 0)
		return random_program(argc > 2 ? strtoull(argv[2], NULL, 10) : 1);
	if (strcmp(mode, "nested") == 0)
		return nested();
	return refused();
}
