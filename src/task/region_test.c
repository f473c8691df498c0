// SPDX-License-Identifier: BSD-3-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on
#include "task/region.h"

/* Tasks are numbers here; every reference is counted. */
enum { TASKS = 400, BYTES = 96 };

struct work {
	int refs;
	bool over;
};
static struct work tasks[TASKS];
static bool told[TASKS];

void work_hold(struct work *w)
{
	w->refs++;
}

void work_drop(struct work *w)
{
	assert_true(w->refs > 0);
	w->refs--;
}

bool work_is_over(const struct work *w)
{
	return w->over;
}

static void note(void *arg, struct work *w)
{
	told[w - tasks] = true;
}

/* The same by bytes: who wrote each last, who has read it since. */
static int writer[BYTES];
static bool reads[BYTES][TASKS];

static void use_by_bytes(int from, int to, bool writes, int w, bool *before)
{
	for (int b = from; b < to; b++) {
		if (writer[b] >= 0 && writer[b] != w)
			before[writer[b]] = true;
		if (!writes) {
			reads[b][w] = writer[b] != w;
			continue;
		}
		for (int r = 0; r < TASKS; r++)
			if (reads[b][r] && r != w)
				before[r] = true;
		memset(reads[b], 0, sizeof(reads[b]));
		writer[b] = w;
	}
}

static void play(unsigned seed, bool ends)
{
	struct region_map m = {0};
	bool before[TASKS];

	srand(seed);
	memset(tasks, 0, sizeof(tasks));
	memset(reads, 0, sizeof(reads));
	for (int b = 0; b < BYTES; b++)
		writer[b] = -1;
	for (int w = 0; w < TASKS; w++) {
		memset(told, 0, sizeof(told));
		memset(before, 0, sizeof(before));
		for (int n = rand() % 3; n >= 0; n--) {
			int from = rand() % BYTES, to = from + 1 + rand() % (BYTES - from);
			bool writes = rand() % 3 == 0;

			use_by_bytes(from, to, writes, w, before);
			assert_true(region_use(&m, 1000 + (uintptr_t)from, 1000 + (uintptr_t)to,
					       writes, &tasks[w], note, NULL));
		}
		/* nobody needs to wait for one that has ended */
		for (int i = 0; i < TASKS; i++)
			assert_int_equal(told[i] && !tasks[i].over, before[i] && !tasks[i].over);
		if (ends)
			tasks[rand() % (w + 1)].over = true;
	}
	region_clear(&m);
	for (int w = 0; w < TASKS; w++)
		assert_int_equal(tasks[w].refs, 0);
}

static void order_is_that_of_single_bytes(void **state)
{
	for (unsigned seed = 1; seed <= 20; seed++)
		play(seed, false);
}

static void tasks_that_have_ended_are_forgotten(void **state)
{
	for (unsigned seed = 21; seed <= 40; seed++)
		play(seed, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(order_is_that_of_single_bytes),
	    cmocka_unit_test(tasks_that_have_ended_are_forgotten),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
