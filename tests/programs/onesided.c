// SPDX-License-Identifier: BSD-3-Clause
/* onesided [PHASES [SEED [KINDS [MOST]]]]: random one-sided operations, compared with a serial
 * model.
 *
 * In each phase every rank starts operations of random kinds in an epoch of a random kind (fence,
 * post-start-complete-wait, locks, lock_all), over a window of one flavour after the other. All
 * ranks draw all ranks' operations from the same seed, so each knows what its window must hold
 * afterwards: places that one origin owns take puts, places of all take sums and exclusive ors, a
 * counter takes fetch_and_op, whose results must all be different, and a second one
 * compare_and_swap. KINDS: letters of the flavours to use, of c (create), a (allocate), s
 * (allocate_shared), d (create_dynamic). MOST: the longest run of elements. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RANKS = 16, OPS = 12 };

static int rank, nranks, most, failures;
static long phase;

static uint64_t mix(uint64_t x)
{
	x ^= x >> 30;
	x *= 0xbf58476d1ce4e5b9u;
	x ^= x >> 27;
	x *= 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

static uint64_t drawn;
static uint64_t draw(uint64_t below)
{
	drawn += 0x9e3779b97f4a7c15u;
	return mix(drawn) % below;
}

static long place_of(int origin)
{
	return (long)origin * 2 * most;
}
static long sums(void)
{
	return (long)nranks * 2 * most;
}
static long xors(void)
{
	return sums() + 2 * most;
}
static long tickets(void)
{
	return xors() + 2 * most;
}
static long swaps(void)
{
	return tickets() + 1;
}
static long part_longs(void)
{
	return swaps() + 1;
}

struct window {
	MPI_Win win;
	long *mine;  /* our part */
	long *model; /* what it must hold */
	long *owned; /* to free */
	MPI_Aint at[RANKS];
	char kind;
};

enum kind { PUT, RPUT, SUM, XOR, GET, TICKET, SWAP, GET_SUM, KINDS };

struct op {
	enum kind kind;
	int target, count, strided;
	long first, value;
};

static void bad(const char *what, long got, long wanted)
{
	if (failures++ < 5)
		printf("rank %d, phase %ld: %s: %ld instead of %ld\n", rank, phase, what, got,
		       wanted);
}

static MPI_Datatype strided(int count)
{
	MPI_Datatype t;
	MPI_Type_vector(count, 1, 2, MPI_LONG, &t);
	MPI_Type_commit(&t);
	return t;
}

/* Two puts of one origin into one place in one epoch would be erroneous: *put has the targets that
 * have had theirs. */
static struct op draw_op(unsigned *put)
{
	struct op o = {.kind = (enum kind)draw(KINDS), .target = (int)draw((uint64_t)nranks)};
	o.count = 1 + (int)draw(draw(4) ? 8 : (uint64_t)most);
	if (o.count > most)
		o.count = most;
	o.strided = draw(3) == 0;
	o.first = (long)draw((uint64_t)(most - o.count + 1));
	o.value = (long)draw(1000000) + 1;
	if ((o.kind == PUT || o.kind == RPUT) && *put & 1u << o.target)
		o.kind = XOR;
	if (o.kind == PUT || o.kind == RPUT)
		*put |= 1u << o.target;
	return o;
}

static long step_of(const struct op *o)
{
	return o->strided ? 2 : 1;
}

/* What an operation of that origin does to the part of its target. */
static void model_op(long *part, int origin, const struct op *o)
{
	for (int i = 0; i < o->count; i++) {
		long k = o->first + i * step_of(o);
		if (o->kind == PUT || o->kind == RPUT)
			part[place_of(origin) + k] = o->value + i;
		else if (o->kind == SUM || o->kind == GET_SUM)
			part[sums() + k] += o->value + i;
		else if (o->kind == XOR)
			part[xors() + k] ^= o->value + i;
	}
	if (o->kind == TICKET)
		part[tickets()]++;
	if (o->kind == SWAP)
		part[swaps()]++;
}

static MPI_Aint disp(const struct window *w, int target, long place)
{
	return w->kind == 'd' ? w->at[target] + place * (MPI_Aint)sizeof(long) : place;
}

/* Adds one by comparing and swapping until nobody came between. */
static void swap_up(const struct window *w, int target)
{
	long seen = 0, next, old = -1, nothing = 0;
	MPI_Fetch_and_op(&nothing, &seen, MPI_LONG, target, disp(w, target, swaps()), MPI_NO_OP,
			 w->win);
	MPI_Win_flush(target, w->win);
	for (;;) {
		next = seen + 1;
		MPI_Compare_and_swap(&next, &seen, &old, MPI_LONG, target, disp(w, target, swaps()),
				     w->win);
		MPI_Win_flush(target, w->win);
		if (old == seen)
			return;
		seen = old;
	}
}

struct started {
	long *buf, *got;
	MPI_Request request;
	long ticket;
};

static void start_op(const struct window *w, const struct op *o, struct started *s, int passive)
{
	MPI_Datatype t = o->strided ? strided(o->count) : MPI_LONG;
	int tcount = o->strided ? 1 : o->count;
	static const long one = 1;
	s->buf = malloc((size_t)o->count * sizeof(long));
	s->got = calloc((size_t)o->count, sizeof(long));
	s->request = MPI_REQUEST_NULL;
	for (int i = 0; i < o->count; i++)
		s->buf[i] = o->value + i;
	MPI_Aint own = disp(w, o->target, place_of(rank) + o->first);
	MPI_Aint sum = disp(w, o->target, sums() + o->first);
	MPI_Aint eor = disp(w, o->target, xors() + o->first);
	if (o->kind == PUT || (o->kind == RPUT && !passive))
		MPI_Put(s->buf, o->count, MPI_LONG, o->target, own, tcount, t, w->win);
	else if (o->kind == RPUT)
		MPI_Rput(s->buf, o->count, MPI_LONG, o->target, own, tcount, t, w->win,
			 &s->request);
	else if (o->kind == SUM)
		MPI_Accumulate(s->buf, o->count, MPI_LONG, o->target, sum, tcount, t, MPI_SUM,
			       w->win);
	else if (o->kind == XOR)
		MPI_Accumulate(s->buf, o->count, MPI_LONG, o->target, eor, tcount, t, MPI_BXOR,
			       w->win);
	else if (o->kind == GET_SUM)
		MPI_Get_accumulate(s->buf, o->count, MPI_LONG, s->got, o->count, MPI_LONG,
				   o->target, sum, tcount, t, MPI_SUM, w->win);
	else if (o->kind == TICKET)
		MPI_Fetch_and_op(&one, &s->ticket, MPI_LONG, o->target,
				 disp(w, o->target, tickets()), MPI_SUM, w->win);
	else if (o->kind == SWAP && passive)
		swap_up(w, o->target);
	else if (o->kind == SWAP)
		MPI_Accumulate(&one, 1, MPI_LONG, o->target, disp(w, o->target, swaps()), 1,
			       MPI_LONG, MPI_SUM, w->win);
	if (o->strided)
		MPI_Type_free(&t);
}

static void end_op(struct started *s)
{
	if (s->request != MPI_REQUEST_NULL)
		MPI_Wait(&s->request, MPI_STATUS_IGNORE);
}

/* ---- epochs ---- */

static void run_fence(struct window *w, struct op *mine, struct started *s)
{
	MPI_Win_fence(MPI_MODE_NOPRECEDE, w->win);
	for (int i = 0; i < OPS; i++)
		start_op(w, &mine[i], &s[i], 0);
	MPI_Win_fence(MPI_MODE_NOSUCCEED, w->win);
}

static void run_pscw(struct window *w, struct op *mine, struct started *s)
{
	MPI_Group all;
	MPI_Win_get_group(w->win, &all);
	MPI_Win_post(all, 0, w->win);
	MPI_Win_start(all, 0, w->win);
	for (int i = 0; i < OPS; i++)
		start_op(w, &mine[i], &s[i], 0);
	MPI_Win_complete(w->win);
	int done = 0;
	for (int tries = 0; tries < 3 && !done; tries++)
		MPI_Win_test(w->win, &done);
	if (!done)
		MPI_Win_wait(w->win);
	MPI_Group_free(&all);
}

static void run_locks(struct window *w, struct op *mine, struct started *s)
{
	for (int i = 0; i < OPS; i++) {
		int type = mine[i].value % 3 ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE;
		MPI_Win_lock(type, mine[i].target, 0, w->win);
		start_op(w, &mine[i], &s[i], 1);
		end_op(&s[i]);
		MPI_Win_unlock(mine[i].target, w->win);
	}
}

static void run_lock_all(struct window *w, struct op *mine, struct started *s)
{
	MPI_Win_lock_all(0, w->win);
	for (int i = 0; i < OPS; i++) {
		start_op(w, &mine[i], &s[i], 1);
		if (i % 4 == 3)
			MPI_Win_flush(mine[i].target, w->win);
	}
	for (int i = 0; i < OPS; i++)
		end_op(&s[i]);
	MPI_Win_flush_local_all(w->win);
	MPI_Win_unlock_all(w->win);
}

/* ---- comparing ---- */

/* Every ticket of a counter was given out once: together they are 0, 1, 2, …, so their sum is
 * known. */
static void check_tickets(const struct window *w, const struct op *mine, const struct started *s,
			  const long *before)
{
	long given[RANKS] = {0}, all[RANKS];
	for (int i = 0; i < OPS; i++)
		if (mine[i].kind == TICKET)
			given[mine[i].target] += s[i].ticket;
	MPI_Allreduce(given, all, nranks, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
	long end = w->model[tickets()], first = before[0];
	long wanted = (end * (end - 1) - first * (first - 1)) / 2;
	if (all[rank] != wanted)
		bad("tickets", all[rank], wanted);
}

static void check_part(struct window *w)
{
	for (long i = 0; i < part_longs(); i++)
		if (w->mine[i] != w->model[i]) {
			bad("content", w->mine[i], w->model[i]);
			w->model[i] = w->mine[i];
		}
}

/* Reads from everybody what this rank put there, or nobody has changed. */
static void check_get(struct window *w, const long *puts)
{
	int target = (rank + 1) % nranks;
	long *got = malloc((size_t)(2 * most) * sizeof(long));
	MPI_Win_lock(MPI_LOCK_SHARED, target, 0, w->win);
	MPI_Get(got, 2 * most, MPI_LONG, target, disp(w, target, place_of(rank)), 2 * most,
		MPI_LONG, w->win);
	MPI_Win_unlock(target, w->win);
	for (int i = 0; i < 2 * most; i++)
		if (got[i] != puts[i]) {
			bad("what was put", got[i], puts[i]);
			break;
		}
	free(got);
}

/* puts: what this rank has put into its right neighbour. */
static void run_phase(struct window *w, uint64_t seed, long *puts)
{
	struct op ops[OPS], mine[OPS];
	struct started s[OPS];
	long before = w->model[tickets()];
	int epoch;
	memset(s, 0, sizeof(s));
	drawn = mix(seed + (uint64_t)phase * 977);
	epoch = (int)draw(4);
	for (int origin = 0; origin < nranks; origin++) {
		unsigned put = 0;
		for (int i = 0; i < OPS; i++) {
			ops[i] = draw_op(&put);
			if (ops[i].target == rank)
				model_op(w->model, origin, &ops[i]);
			if (origin == rank)
				mine[i] = ops[i];
			if (origin == rank && ops[i].target == (rank + 1) % nranks &&
			    (ops[i].kind == PUT || ops[i].kind == RPUT))
				for (int k = 0; k < ops[i].count; k++)
					puts[ops[i].first + k * step_of(&ops[i])] =
					    ops[i].value + k;
		}
	}
	void (*const run[])(struct window *, struct op *,
			    struct started *) = {run_fence, run_pscw, run_locks, run_lock_all};
	run[epoch](w, mine, s);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, w->win);
	check_part(w);
	MPI_Win_unlock(rank, w->win);
	check_tickets(w, mine, s, &before);
	check_get(w, puts);
	MPI_Barrier(MPI_COMM_WORLD);
	for (int i = 0; i < OPS; i++) {
		free(s[i].buf);
		free(s[i].got);
	}
}

static void window_make(struct window *w, char kind)
{
	MPI_Aint bytes = part_longs() * (MPI_Aint)sizeof(long), mine;
	memset(w, 0, sizeof(*w));
	w->kind = kind;
	w->model = calloc((size_t)part_longs(), sizeof(long));
	if (kind == 'a') {
		MPI_Win_allocate(bytes, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &w->mine,
				 &w->win);
	} else if (kind == 's') {
		MPI_Win_allocate_shared(bytes, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD,
					&w->mine, &w->win);
	} else {
		w->owned = w->mine = malloc((size_t)bytes);
		if (kind == 'c') {
			MPI_Win_create(w->mine, bytes, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD,
				       &w->win);
		} else {
			MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &w->win);
			MPI_Win_attach(w->win, w->mine, bytes);
			MPI_Get_address(w->mine, &mine);
			MPI_Allgather(&mine, 1, MPI_AINT, w->at, 1, MPI_AINT, MPI_COMM_WORLD);
		}
	}
	memset(w->mine, 0, (size_t)bytes);
	MPI_Barrier(MPI_COMM_WORLD);
}

/* Has rank 0 seen the file? */
static int stopped(void)
{
	const char *file = getenv("STOP");
	int there = 0;
	if (!file)
		return 0;
	if (rank == 0)
		there = access(file, F_OK) == 0;
	MPI_Bcast(&there, 1, MPI_INT, 0, MPI_COMM_WORLD);
	return there;
}

static void window_end(struct window *w)
{
	if (w->kind == 'd') {
		MPI_Barrier(MPI_COMM_WORLD);
		MPI_Win_detach(w->win, w->mine);
	}
	MPI_Win_free(&w->win);
	free(w->owned);
	free(w->model);
}

int main(int argc, char **argv)
{
	long phases = argc > 1 ? atol(argv[1]) : 100;
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
	const char *kinds = argc > 3 ? argv[3] : "casd";
	long in_all = 0;
	most = argc > 4 ? atoi(argv[4]) : 600;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &nranks);
	for (int k = 0; phase < phases && !stopped(); k++) {
		struct window w;
		long *puts = calloc((size_t)(2 * most), sizeof(long));
		window_make(&w, kinds[(size_t)k % strlen(kinds)]);
		for (int i = 0; i < 10 && phase < phases; i++, phase++)
			run_phase(&w, seed, puts);
		window_end(&w);
		free(puts);
	}
	long wrong = failures;
	MPI_Reduce(&wrong, &in_all, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
	if (rank == 0)
		printf("%ld phases, %ld wrong\n", phase, in_all);
	MPI_Finalize();
	return in_all != 0;
}
