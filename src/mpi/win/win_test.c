/* SPDX-License-Identifier: BSD-3-Clause */
/* One-sided communication: four ranks, of two nodes, so that some are near and some far, with
 * operations drawn at random. Each integer of each window must be what a model has it. */
#include <stdlib.h>
#include "mpi/test/ranks.h"

enum { RANKS = 4, PLACES = 4000, ROUNDS = 40 };

/* The same on all ranks. */
static uint32_t draw(uint32_t below)
{
	static uint64_t state = 4711;

	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(state >> 33) % below;
}

static int model[RANKS][PLACES];

struct shared {
	MPI_Win win;
	int *mine;
	MPI_Aint begin[RANKS]; /* what displacements begin at */
};

enum flavor { CREATED, ALLOCATED, DYNAMIC, FLAVORS };

static void shared_open(struct shared *s, enum flavor flavor)
{
	MPI_Aint at = 0;
	int unit = flavor == DYNAMIC ? 1 : 4;

	s->mine = NULL;
	if (flavor != ALLOCATED)
		s->mine = calloc(PLACES, sizeof(int));
	if (flavor == CREATED)
		MPI_Win_create(s->mine, PLACES * 4, unit, MPI_INFO_NULL, MPI_COMM_WORLD, &s->win);
	if (flavor == ALLOCATED)
		MPI_Win_allocate(PLACES * 4, unit, MPI_INFO_NULL, MPI_COMM_WORLD, &s->mine,
				 &s->win);
	if (flavor == DYNAMIC) {
		MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &s->win);
		REQUIRE_CLASS(MPI_Win_attach(s->win, s->mine, PLACES * 4), MPI_SUCCESS);
		MPI_Get_address(s->mine, &at);
	}
	MPI_Win_set_errhandler(s->win, MPI_ERRORS_RETURN);
	MPI_Allgather(&at, 1, MPI_AINT, s->begin, 1, MPI_AINT, MPI_COMM_WORLD);
	memset(s->mine, 0, PLACES * 4);
	memset(model, 0, sizeof(model));
	MPI_Barrier(MPI_COMM_WORLD);
}

static void shared_close(struct shared *s, enum flavor flavor)
{
	if (flavor == DYNAMIC)
		REQUIRE_CLASS(MPI_Win_detach(s->win, s->mine), MPI_SUCCESS);
	REQUIRE_CLASS(MPI_Win_free(&s->win), MPI_SUCCESS);
	if (flavor != ALLOCATED)
		free(s->mine);
}

/* How an epoch begins and ends for all ranks; each may touch each. */
static void epoch_begin(const struct shared *s, uint32_t kind)
{
	MPI_Group all;

	MPI_Comm_group(MPI_COMM_WORLD, &all);
	if (kind == 0)
		MPI_Win_fence(0, s->win);
	if (kind == 1)
		MPI_Win_lock_all(0, s->win);
	if (kind == 2) {
		MPI_Win_post(all, 0, s->win);
		MPI_Win_start(all, 0, s->win);
	}
	if (kind == 3)
		for (int t = 0; t < RANKS; t++)
			MPI_Win_lock(MPI_LOCK_SHARED, t, 0, s->win);
	MPI_Group_free(&all);
}

static void epoch_end(const struct shared *s, uint32_t kind)
{
	if (kind == 0)
		MPI_Win_fence(0, s->win);
	if (kind == 1)
		MPI_Win_unlock_all(s->win);
	if (kind == 2) {
		MPI_Win_complete(s->win);
		MPI_Win_wait(s->win);
	}
	if (kind == 3)
		for (int t = 0; t < RANKS; t++)
			MPI_Win_unlock(t, s->win);
	MPI_Barrier(MPI_COMM_WORLD);
}

static void as_the_model(const struct shared *s)
{
	MPI_Win_lock(MPI_LOCK_SHARED, me, 0, s->win);
	for (int i = 0; i < PLACES; i++)
		REQUIRE(s->mine[i] == model[me][i]);
	MPI_Win_unlock(me, s->win);
	MPI_Barrier(MPI_COMM_WORLD);
}

/* n integers, `step` apart. */
static MPI_Datatype apart(int n, int step)
{
	MPI_Datatype type;

	MPI_Type_vector(n, 1, step, MPI_INT, &type);
	MPI_Type_commit(&type);
	return type;
}

/* One operation of each rank on each: it touches n integers from `at` on. */
struct touch {
	int n, at, step; /* in the target's window */
	bool gaps;	 /* in the origin's memory */
};

static struct touch draw_touch(int step)
{
	struct touch t = {.step = step, .n = 1 + (int)draw(draw(4) ? 30 : PLACES / 8)};

	t.at = (int)draw((uint32_t)(PLACES - t.n * step));
	t.gaps = draw(2);
	return t;
}

static MPI_Aint disp_of(const struct shared *s, int target, int at)
{
	return s->begin[target] ? s->begin[target] + 4 * at : at;
}

/* Ranks write places of their own: each one of four. */
static void round_of_puts(const struct shared *s, uint32_t kind, int round)
{
	static int data[RANKS][PLACES];

	epoch_begin(s, kind);
	for (int r = 0; r < RANKS; r++)
		for (int target = 0; target < RANKS; target++) {
			struct touch t = draw_touch(RANKS);
			MPI_Datatype to = apart(t.n, RANKS), from = apart(t.n, t.gaps ? 2 : 1);
			int at = t.at / RANKS * RANKS + r;

			for (int i = 0; i < t.n; i++) {
				int value = round << 20 | r << 16 | i;

				model[target][at + i * RANKS] = value;
				if (r == me)
					data[target][t.gaps ? 2 * i : i] = value;
			}
			if (r == me)
				REQUIRE_CLASS(MPI_Put(data[target], 1, from, target,
						      disp_of(s, target, at), 1, to, s->win),
					      MPI_SUCCESS);
			MPI_Type_free(&to);
			MPI_Type_free(&from);
		}
	epoch_end(s, kind);
}

static void round_of_sums(const struct shared *s, uint32_t kind)
{
	static int data[RANKS][PLACES];

	epoch_begin(s, kind);
	for (int r = 0; r < RANKS; r++)
		for (int target = 0; target < RANKS; target++) {
			struct touch t = draw_touch(1 + (int)draw(3));
			MPI_Datatype to = apart(t.n, t.step);

			for (int i = 0; i < t.n; i++) {
				model[target][t.at + i * t.step] += r + i;
				if (r == me)
					data[target][i] = r + i;
			}
			if (r == me)
				REQUIRE_CLASS(MPI_Accumulate(data[target], t.n, MPI_INT, target,
							     disp_of(s, target, t.at), 1, to,
							     MPI_SUM, s->win),
					      MPI_SUCCESS);
			MPI_Type_free(&to);
		}
	epoch_end(s, kind);
}

static void round_of_gets(const struct shared *s, uint32_t kind)
{
	static int data[RANKS][PLACES];
	struct touch mine[RANKS];

	epoch_begin(s, kind);
	memset(data, 0xff, sizeof(data));
	for (int r = 0; r < RANKS; r++)
		for (int target = 0; target < RANKS; target++) {
			struct touch t = draw_touch(1 + (int)draw(3));
			MPI_Datatype from = apart(t.n, t.step), to = apart(t.n, t.gaps ? 2 : 1);

			if (r == me) {
				mine[target] = t;
				REQUIRE_CLASS(MPI_Get(data[target], 1, to, target,
						      disp_of(s, target, t.at), 1, from, s->win),
					      MPI_SUCCESS);
			}
			MPI_Type_free(&to);
			MPI_Type_free(&from);
		}
	epoch_end(s, kind);
	for (int target = 0; target < RANKS; target++)
		for (int i = 0; i < mine[target].n; i++) {
			const int *got = &data[target][mine[target].gaps ? 2 * i : i];

			REQUIRE(*got == model[target][mine[target].at + i * mine[target].step]);
			REQUIRE(!mine[target].gaps || got[1] == -1);
		}
}

static void each_operation_does_what_the_model_does(void **state)
{
	for (enum flavor flavor = 0; flavor < FLAVORS; flavor++) {
		struct shared s;

		shared_open(&s, flavor);
		for (int round = 0; round < ROUNDS; round++) {
			uint32_t kind = draw(4), what = draw(3);

			if (what == 0)
				round_of_puts(&s, kind, round);
			if (what == 1)
				round_of_sums(&s, kind);
			if (what == 2)
				round_of_gets(&s, kind);
			as_the_model(&s);
		}
		shared_close(&s, flavor);
	}
}

/* Each number is drawn once, whoever asks, and nobody's is lost. */
static void fetch_and_op_gives_each_number_once(void **state)
{
	enum { EACH = 50 };
	int got[EACH], all[RANKS * EACH], seen[RANKS * EACH] = {0}, one = 1;
	struct shared s;

	shared_open(&s, ALLOCATED);
	MPI_Win_lock_all(0, s.win);
	for (int i = 0; i < EACH; i++) {
		MPI_Fetch_and_op(&one, &got[i], MPI_INT, 1, 7, MPI_SUM, s.win);
		MPI_Win_flush(1, s.win);
	}
	MPI_Win_unlock_all(s.win);
	MPI_Allgather(got, EACH, MPI_INT, all, EACH, MPI_INT, MPI_COMM_WORLD);
	for (int i = 0; i < RANKS * EACH; i++) {
		REQUIRE(all[i] >= 0 && all[i] < RANKS * EACH);
		seen[all[i]]++;
	}
	for (int i = 0; i < RANKS * EACH; i++)
		REQUIRE(seen[i] == 1);
	for (int i = 1; i < EACH; i++)
		REQUIRE(got[i] > got[i - 1]);
	shared_close(&s, ALLOCATED);
}

static void compare_and_swap_takes_a_place_once(void **state)
{
	int mine = me + 1, none = 0, got = -1, first, taken = 0, now = -1;
	struct shared s;

	shared_open(&s, CREATED);
	for (int target = 0; target < RANKS; target++) {
		MPI_Win_lock(MPI_LOCK_SHARED, target, 0, s.win);
		MPI_Compare_and_swap(&mine, &none, &got, MPI_INT, target, 3, s.win);
		MPI_Win_unlock(target, s.win);
		first = got == 0;
		MPI_Allreduce(&first, &taken, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
		REQUIRE(taken == 1);
		MPI_Win_lock(MPI_LOCK_SHARED, target, 0, s.win);
		MPI_Fetch_and_op(NULL, &now, MPI_INT, target, 3, MPI_NO_OP, s.win);
		MPI_Win_unlock(target, s.win);
		REQUIRE(first ? now == mine : now == got);
		MPI_Barrier(MPI_COMM_WORLD);
	}
	shared_close(&s, CREATED);
}

static void get_accumulate_gives_what_was_there(void **state)
{
	int data[3] = {1, 2, 3}, was[3];
	struct shared s;

	shared_open(&s, CREATED);
	for (int target = 0; target < RANKS; target++) {
		/* one after the other, so that each sees those before it */
		for (int turn = 0; turn < RANKS; turn++) {
			if (turn == me) {
				MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, s.win);
				MPI_Get_accumulate(data, 3, MPI_INT, was, 3, MPI_INT, target, 5, 3,
						   MPI_INT, MPI_SUM, s.win);
				MPI_Win_unlock(target, s.win);
				REQUIRE(was[0] == turn && was[1] == 2 * turn && was[2] == 3 * turn);
			}
			MPI_Barrier(MPI_COMM_WORLD);
		}
		MPI_Win_lock(MPI_LOCK_SHARED, target, 0, s.win);
		MPI_Get_accumulate(data, 0, MPI_INT, was, 3, MPI_INT, target, 5, 3, MPI_INT,
				   MPI_NO_OP, s.win);
		MPI_Win_unlock(target, s.win);
		REQUIRE(was[2] == 3 * RANKS);
		MPI_Barrier(MPI_COMM_WORLD);
	}
	shared_close(&s, CREATED);
}

/* Who has the lock for itself reads, and writes one more: nobody comes between. */
static void an_exclusive_lock_keeps_the_others_out(void **state)
{
	enum { EACH = 20 };
	struct shared s;

	shared_open(&s, ALLOCATED);
	for (int i = 0; i < EACH; i++)
		for (int target = 0; target < 3; target += 2) {
			int value;

			MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, s.win);
			MPI_Get(&value, 1, MPI_INT, target, 11, 1, MPI_INT, s.win);
			MPI_Win_flush(target, s.win);
			value++;
			MPI_Put(&value, 1, MPI_INT, target, 11, 1, MPI_INT, s.win);
			MPI_Win_unlock(target, s.win);
		}
	MPI_Barrier(MPI_COMM_WORLD);
	model[0][11] = model[2][11] = RANKS * EACH;
	as_the_model(&s);
	shared_close(&s, ALLOCATED);
}

/* A flush, and an unlock, ends when the target has it, not when the origin's memory is free again.
 */
static void what_is_flushed_or_unlocked_is_at_the_target(void **state)
{
	enum { LENGTH = 1 << 20 };
	int right = (me + 1) % RANKS, left = (me + RANKS - 1) % RANKS, *mine, *data;
	MPI_Win win;

	data = malloc(LENGTH * sizeof(int));
	MPI_Win_allocate(LENGTH * 4, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &win);
	for (int round = 0; round < 6; round++) {
		for (int i = 0; i < LENGTH; i++)
			data[i] = round << 24 | me << 20 | i;
		MPI_Win_lock(MPI_LOCK_SHARED, right, round % 2 ? MPI_MODE_NOCHECK : 0, win);
		MPI_Put(data, LENGTH, MPI_INT, right, 0, LENGTH, MPI_INT, win);
		if (round < 2)
			MPI_Win_flush(right, win);
		else
			MPI_Win_unlock(right, win);
		MPI_Barrier(MPI_COMM_WORLD);
		MPI_Win_sync(win);
		for (int i = LENGTH; i-- > 0;)
			REQUIRE(mine[i] == (round << 24 | left << 20 | i));
		if (round < 2)
			MPI_Win_unlock(right, win);
		MPI_Barrier(MPI_COMM_WORLD);
	}
	MPI_Win_free(&win);
	free(data);
}

static void requests_end_when_the_data_is_there(void **state)
{
	int data = 100 + me, got = -1, right = (me + 1) % RANKS, left = (me + RANKS - 1) % RANKS;
	MPI_Request r;
	struct shared s;

	shared_open(&s, CREATED);
	MPI_Win_lock_all(0, s.win);
	MPI_Rput(&data, 1, MPI_INT, right, 0, 1, MPI_INT, s.win, &r);
	MPI_Wait(&r, MPI_STATUS_IGNORE);
	MPI_Win_flush_all(s.win);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Rget(&got, 1, MPI_INT, right, 0, 1, MPI_INT, s.win, &r);
	MPI_Wait(&r, MPI_STATUS_IGNORE);
	REQUIRE(got == data);
	MPI_Raccumulate(&data, 1, MPI_INT, right, 1, 1, MPI_INT, MPI_MAX, s.win, &r);
	MPI_Wait(&r, MPI_STATUS_IGNORE);
	MPI_Win_unlock_all(s.win);
	MPI_Barrier(MPI_COMM_WORLD);
	model[me][0] = model[me][1] = 100 + left;
	as_the_model(&s);
	shared_close(&s, CREATED);
}

static void what_is_outside_is_refused(void **state)
{
	int data = 1;
	struct shared s;

	shared_open(&s, CREATED);
	REQUIRE_CLASS(MPI_Put(&data, 1, MPI_INT, 0, 0, 1, MPI_INT, s.win), MPI_ERR_RMA_SYNC);
	MPI_Win_lock_all(0, s.win);
	REQUIRE_CLASS(MPI_Put(&data, 1, MPI_INT, 0, PLACES, 1, MPI_INT, s.win), MPI_ERR_RMA_RANGE);
	REQUIRE_CLASS(MPI_Put(&data, 1, MPI_INT, 2, PLACES, 1, MPI_INT, s.win), MPI_ERR_RMA_RANGE);
	REQUIRE_CLASS(MPI_Put(&data, 1, MPI_INT, 0, PLACES - 1, 1, MPI_INT, s.win), MPI_SUCCESS);
	REQUIRE_CLASS(MPI_Get(&data, 1, MPI_INT, 1, -1, 1, MPI_INT, s.win), MPI_ERR_DISP);
	REQUIRE_CLASS(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, s.win), MPI_ERR_RMA_SYNC);
	MPI_Win_unlock_all(s.win);
	REQUIRE_CLASS(MPI_Win_unlock(0, s.win), MPI_ERR_RMA_SYNC);
	REQUIRE_CLASS(MPI_Win_complete(s.win), MPI_ERR_RMA_SYNC);
	REQUIRE_CLASS(MPI_Win_wait(s.win), MPI_ERR_RMA_SYNC);
	shared_close(&s, CREATED);
}

static void test_says_when_all_have_completed(void **state)
{
	int flag = 1, data = me;
	MPI_Group all;
	struct shared s;

	shared_open(&s, CREATED);
	MPI_Comm_group(MPI_COMM_WORLD, &all);
	MPI_Win_post(all, 0, s.win);
	MPI_Win_test(s.win, &flag);
	REQUIRE(!flag); /* not even this rank has */
	MPI_Win_start(all, 0, s.win);
	for (int target = 0; target < RANKS; target++)
		MPI_Put(&data, 1, MPI_INT, target, me, 1, MPI_INT, s.win);
	MPI_Win_complete(s.win);
	for (flag = 0; !flag;)
		MPI_Win_test(s.win, &flag);
	for (int r = 0; r < RANKS; r++)
		model[me][r] = r;
	MPI_Group_free(&all);
	MPI_Barrier(MPI_COMM_WORLD);
	as_the_model(&s);
	shared_close(&s, CREATED);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(each_operation_does_what_the_model_does),
	    cmocka_unit_test(fetch_and_op_gives_each_number_once),
	    cmocka_unit_test(compare_and_swap_takes_a_place_once),
	    cmocka_unit_test(get_accumulate_gives_what_was_there),
	    cmocka_unit_test(an_exclusive_lock_keeps_the_others_out),
	    cmocka_unit_test(what_is_flushed_or_unlocked_is_at_the_target),
	    cmocka_unit_test(requests_end_when_the_data_is_there),
	    cmocka_unit_test(test_says_when_all_have_completed),
	    cmocka_unit_test(what_is_outside_is_refused),
	};
	ranks_start_on(RANKS, 2, &argc, &argv);
	return ranks_run(tests, sizeof(tests) / sizeof(tests[0]));
}
