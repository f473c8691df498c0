/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared cells between real processes, stopped, restored and let go in every awkward order: each
 * process is a child of the test; guard_attend stands in for ckpt/, a page of orders for the agent.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ckpt/guard.h"
#include "coll/cells/cells.h"
#include "coll/coll.h"
#include "coll/hier/join.h"
#include "coll/schedule.h"

enum {
	RANKS = 3,
	CONTEXT = 2,
	LARGE = 15000,
	MOST = 40000,
	TRIES = 20000,
	AGREEMENTS = 8,
	VALUES = 5
};

/* What the test and its ranks tell each other. */
static struct cells_control {
	_Atomic int wanted;		    /* checkpoint to take */
	_Atomic int stopped, saved, zeroed; /* ranks in it; the segment is new */
	_Atomic int back[RANKS];	    /* this rank may come back from it */
	_Atomic int gate[RANKS];	    /* how far this rank's program may go */
	_Atomic int at[RANKS];		    /* where it is */
	_Atomic int hold[RANKS];	    /* its next safe point lasts */
	_Atomic int held[RANKS];
	_Atomic int entered[RANKS]; /* barriers */
	_Atomic int came[AGREEMENTS];
	_Atomic uint64_t highest[AGREEMENTS][VALUES];
} * control;

static struct segment *segment;
static struct link self;
static int me, taken, agreements;

/* ---- what cells stand on ---- */

__thread volatile int guard_inside = 1;
volatile int guard_attention = 1;
bool guard_multiple;

void guard_lock_slow(void)
{
}
void guard_unlock_slow(void)
{
}

static void nap(void)
{
	usleep(500);
}

void guard_attend(void)
{
	if (control->hold[me]) {
		control->held[me] = 1;
		while (control->hold[me])
			nap();
		control->held[me] = 0;
	}
	if (control->wanted == taken)
		return;
	taken = control->wanted;
	control->stopped++;
	while (control->stopped < RANKS * taken)
		nap();
	cells_save();
	control->saved++;
	while (control->zeroed < taken || control->back[me] < taken)
		nap();
	cells_resume(true);
}

const struct link *link_self(void)
{
	return &self;
}
void link_sleep(uint32_t seen, uint64_t max_ns)
{
	(void)seen;
	(void)max_ns;
	nap();
}
__thread struct match_call match_call;
void (*match_call_tell)(const char *name);
uint64_t match_skipped_ns;
int match_progress(void)
{
	return 0;
}
void match_sleep(bool (*done)(void *), void *arg)
{
	if (!done(arg))
		nap();
}

/* Only what attaching asks: maxima, here through the page. */
int schedule_run_args(const struct coll_args *a)
{
	int i = agreements++ % AGREEMENTS;
	uint64_t *v = a->rbuf;
	for (size_t k = 0; k < a->rcount; k++) {
		uint64_t seen = control->highest[i][k];
		while (seen < v[k] &&
		       !atomic_compare_exchange_weak(&control->highest[i][k], &seen, v[k]))
			;
	}
	control->came[i]++;
	while (control->came[i] < RANKS)
		nap();
	for (size_t k = 0; k < a->rcount; k++)
		v[k] = control->highest[i][k];
	return MPI_SUCCESS;
}

/* Nobody lives elsewhere here: what cells and joining do then is tests/nodes_test.py's. */
unsigned cells_mirrored;
void cells_mirror_begin(struct coll_home *h)
{
	(void)h;
	abort();
}
void cells_mirror_end(struct coll_home *h)
{
	(void)h;
}
void cells_mirror_tell(struct coll_home *h)
{
	(void)h;
}
void cells_mirror_tell_all(void)
{
}
const _Atomic uint64_t *cells_mirror_word(const _Atomic uint64_t *word)
{
	return word;
}
bool cells_mirror_arrive(struct coll_home *h, uint64_t k)
{
	(void)h;
	(void)k;
	return false;
}
int cells_mirror_read(const struct coll_home *h, int member, uint64_t address, void *dst,
		      size_t bytes)
{
	(void)h;
	(void)member;
	(void)address;
	(void)dst;
	(void)bytes;
	return MPI_ERR_OTHER;
}
int schedule_start_tagged(const struct coll_args *a, int tag, struct request **req)
{
	(void)a;
	(void)tag;
	(void)req;
	return MPI_ERR_OTHER;
}
int schedule_start_args(const struct coll_args *a, struct request **req)
{
	return schedule_start_tagged(a, 0, req);
}
bool schedule_under_way(void)
{
	return false;
}

bool schedule_abandon(struct request *req)
{
	(void)req;
	return false;
}
void match_wait_until(bool (*done)(void *), void *arg)
{
	while (!done(arg))
		nap();
}
void match_request_free(struct request *r)
{
	(void)r;
}
void comm_release(struct comm *c)
{
	(void)c;
}
void link_abort(int code)
{
	_exit(code);
}

/* ---- ranks ---- */

static struct comm comm;
static struct coll_home *home;

/* Between two operations: the program is outside the library. */
static void pass(int place)
{
	control->at[me] = place;
	do
		guard_attend();
	while (control->gate[me] < place && (nap(), true));
	guard_attend();
}

static void check(bool right)
{
	if (!right)
		_exit(3);
}

static struct coll_args vector(const int *in, int *out, size_t count)
{
	return (struct coll_args){.kind = COLL_ALLREDUCE,
				  .comm = &comm,
				  .op = (struct op *)MPI_SUM,
				  .sbuf = in,
				  .rbuf = out,
				  .rcount = count,
				  .rtype = (struct datatype *)MPI_INT};
}

static void sum(int round, size_t count)
{
	static int in[LARGE], out[LARGE];
	for (size_t i = 0; i < count; i++)
		in[i] = round * 100 + me + (int)i;
	struct coll_args a = vector(in, out, count);
	check(cells_allreduce(home, &a) == MPI_SUCCESS);
	for (size_t i = 0; i < count; i++)
		check(out[i] == RANKS * (round * 100 + (int)i) + RANKS * (RANKS - 1) / 2);
}

static void barrier(void)
{
	int mine = ++control->entered[me];
	check(cells_barrier(home) == MPI_SUCCESS);
	for (int i = 0; i < RANKS; i++)
		check(control->entered[i] >= mine);
}

static void bcast(int root, int round, size_t count)
{
	static int buf[MOST];
	for (size_t i = 0; i < count; i++)
		buf[i] = me == root ? round + (int)i : -1;
	struct coll_args a = {.kind = COLL_BCAST,
			      .root = root,
			      .comm = &comm,
			      .rbuf = buf,
			      .rcount = count,
			      .rtype = (struct datatype *)MPI_INT};
	check(cells_bcast(home, &a) == MPI_SUCCESS);
	for (size_t i = 0; i < count; i++)
		check(buf[i] == round + (int)i);
}

static void attach(void)
{
	static int world[RANKS] = {0, 1, 2};
	static struct group group = {.size = RANKS, .world = world};
	comm = (struct comm){.context = CONTEXT, .rank = me, .size = RANKS, .group = &group};
	check(join_create(&comm) == MPI_SUCCESS);
	home = cells_home(&comm);
	check(home != NULL);
}

/* ---- the test's side ---- */

static pid_t child[RANKS];

static void until(_Atomic int *word, int value)
{
	for (int i = 0; *word < value; i++) {
		assert_true(i < TRIES);
		nap();
	}
}

static void go(int rank, int place)
{
	control->gate[rank] = place;
}

static void start(void (*program)(void))
{
	size_t bytes = segment_bytes(RANKS);
	control =
	    mmap(NULL, sizeof(*control), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	segment = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(control != MAP_FAILED && segment != MAP_FAILED);
	segment_layout(segment, RANKS, 2, 1);
	for (int i = 0; i < RANKS; i++) {
		child[i] = fork();
		if (child[i])
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		me = i;
		self.segment = segment;
		self.mailbox = segment_mailbox(segment, (uint32_t)i);
		self.mailbox->pid = getpid();
		cells_read_allow();
		attach();
		program();
		_exit(0);
	}
}

/* All stop, save, and find a new segment; nobody is back yet. */
static void checkpoint_asked(void)
{
	int id = control->wanted;
	until(&control->saved, RANKS * id);
	memset((char *)segment + segment->coll_offset, 0, segment->coll_bytes);
	control->zeroed = id;
}

static void checkpoint(void)
{
	control->wanted++;
	checkpoint_asked();
}

static void back(int rank)
{
	control->back[rank] = control->wanted;
}

/* Lets all go on to the end, which must be a good one. */
static void finish(void)
{
	int status[RANKS];
	for (int i = 0; i < RANKS; i++)
		go(i, INT_MAX);
	for (int i = 0; i < RANKS; i++) {
		pid_t ended = 0;
		for (int k = 0; !ended && k < TRIES; k++, nap())
			ended = waitpid(child[i], &status[i], WNOHANG);
		if (!ended) {
			kill(child[i], SIGKILL);
			waitpid(child[i], &status[i], 0);
		}
	}
	for (int i = 0; i < RANKS; i++)
		assert_int_equal(status[i], 0);
	munmap(control, sizeof(*control));
	munmap(segment, segment_bytes(RANKS));
}

/* ---- an operation for which some wait, and one hasn't come ---- */

static void sums(void)
{
	for (int i = 1; i <= 6; i++) {
		pass(i);
		if (i > 2)
			barrier();
		sum(i, i % 2 ? 2 : 100);
	}
}

static void sums_interrupted(int first, int second, int third, bool late_one_runs_ahead)
{
	start(sums);
	go(0, 2);
	go(1, 2);
	go(2, 1);
	for (int i = 0; i < RANKS; i++)
		until(&control->at[i], 2); /* 2 stands before the second, 0 and 1 wait in it */
	checkpoint();
	back(first);
	if (late_one_runs_ahead)
		go(2, 6);
	usleep(5000);
	back(second);
	usleep(5000);
	back(third);
	finish();
}

static void members_that_wait_arrive_again_in_any_order(void **state)
{
	(void)state;
	sums_interrupted(0, 1, 2, false);
	sums_interrupted(1, 0, 2, false);
	sums_interrupted(2, 0, 1, false);
	sums_interrupted(0, 2, 1, false);
}

static void the_missing_member_may_come_before_those_that_wait_are_back(void **state)
{
	(void)state;
	sums_interrupted(2, 0, 1, true);
	sums_interrupted(2, 1, 0, true);
	sums_interrupted(1, 2, 0, true);
}

/* ---- completed, but not yet seen by all ---- */

static void result_not_yet_read(int held, int first, int second, int third)
{
	start(sums);
	go(0, 2);
	go(1, 2);
	go(2, 1);
	for (int i = 0; i < RANKS; i++)
		until(&control->at[i], 2);
	control->hold[held] = 1;
	until(&control->held[held], 1); /* waits in the second, for a long safe point */
	go(2, 2);
	for (int i = 0; i < RANKS; i++) /* the others complete it and stand before the third */
		if (i != held)
			until(&control->at[i], 3);
	control->wanted++; /* before the long safe point ends */
	control->hold[held] = 0;
	checkpoint_asked();
	back(first);
	go(first, 6);
	usleep(5000);
	back(second);
	go(second, 6);
	usleep(5000);
	back(third);
	finish();
}

static void a_result_is_kept_for_who_has_not_seen_it(void **state)
{
	(void)state;
	result_not_yet_read(1, 1, 0, 2);
	result_not_yet_read(1, 0, 1, 2);
	result_not_yet_read(0, 2, 1, 0);
	result_not_yet_read(0, 0, 2, 1);
}

/* ---- roots that have run ahead ---- */

static void bcasts(void)
{
	pass(1);
	for (int i = 0; i < 20; i++)
		bcast(0, i, i % 3 ? 3 : 700);
	pass(2);
	for (int i = 0; i < 100; i++)
		bcast(i % RANKS, i, 5);
	sum(1, 10);
}

static void deposits_of_a_root_that_ran_ahead_are_kept(void **state)
{
	(void)state;
	for (int last = 0; last < RANKS; last++) {
		start(bcasts);
		go(0, 1);
		until(&control->at[0], 2); /* twenty deposits that nobody has read */
		checkpoint();
		for (int i = 1; i <= RANKS; i++) {
			back((last + i) % RANKS);
			go((last + i) % RANKS, 2);
			usleep(5000);
		}
		finish();
	}
}

/* ---- a root that waits until its readers are done with payloads, for their room ---- */

enum {
	ROOT,
	QUICK,
	LATE,
	COUNT = 4000,
	FIT = COLL_CELL_RING / (COUNT * sizeof(int)),
	MANY = 3 * FIT
};

/* The root stops nowhere but where it waits. */
static void many_bcasts(void)
{
	for (int i = 1; i <= MANY; i++) {
		if (me == ROOT)
			control->at[me] = i;
		else
			pass(i);
		bcast(ROOT, i, COUNT);
	}
}

static void a_root_restored_while_it_waits_for_room_overwrites_nothing_in_use(void **state)
{
	(void)state;
	start(many_bcasts);
	go(QUICK, 1); /* done with what the root waits for, and with nothing else */
	until(&control->at[QUICK], 2);
	until(&control->at[LATE], 1);
	until(&control->at[ROOT], FIT + 1); /* has seen that, and waits for LATE */
	checkpoint();
	back(ROOT);
	back(LATE);
	go(LATE, MANY);
	until(&control->at[LATE], FIT);
	usleep(5000); /* in the new segment QUICK has said nothing yet */
	back(QUICK);
	finish();
}

/* ---- a member that has left its home ---- */

static void leaves(void)
{
	sum(1, 100);
	pass(1);
	cells_home_vacate(home);
	pass(2);
}

static void who_has_left_before_a_restart_is_waited_for_by_nobody_after_it(void **state)
{
	(void)state;
	for (int gone = 0; gone < RANKS; gone++) {
		start(leaves);
		for (int i = 0; i < RANKS; i++)
			until(&control->at[i], 1);
		go(gone, 1);
		until(&control->at[gone], 2);
		for (int times = 0; times < 2; times++) {
			checkpoint();
			for (int i = 0; i < RANKS; i++)
				back(i);
		}
		finish();
	}
}

/* ---- large: addresses, parts, members that stay inside ---- */

static void larges(void)
{
	for (int i = 1; i <= 5; i++) {
		pass(i);
		bcast(i % RANKS, i, LARGE);
		sum(i, LARGE);
	}
}

static void members_inside_a_large_operation_publish_again(void **state)
{
	(void)state;
	for (int last = 0; last < RANKS; last++) {
		start(larges);
		for (int i = 0; i < RANKS; i++)
			go(i, i == last ? 1 : 2);
		for (int i = 0; i < RANKS; i++)
			until(&control->at[i], 2);
		checkpoint();
		for (int i = 1; i <= RANKS; i++) {
			back((last + i) % RANKS);
			usleep(5000);
		}
		checkpoint();
		for (int i = 0; i < RANKS; i++)
			back(i);
		finish();
	}
}

/* ---- broadcasts in pieces whose last one is short, from either end ---- */

static void ends_of_pieces(void)
{
	for (size_t bytes = COLL_PIECE; bytes <= 2 * COLL_PIECE; bytes += COLL_PIECE)
		for (size_t more = 0; more <= COLL_HEADER_SMALL + 8; more += sizeof(int))
			for (int i = 0; i < 4 * RANKS; i++)
				bcast(i % RANKS, i, (bytes + more) / sizeof(int));
	sum(1, 10);
}

static void last_pieces_may_be_short(void **state)
{
	(void)state;
	for (way_t way = 0; way < WAYS; way++) {
		way_forced = (int)way;
		start(ends_of_pieces);
		finish();
	}
	way_forced = -1;
}

/* ---- many, at random moments ---- */

static void mixture(void)
{
	srand(7);
	for (int i = 1; i < 3000; i++) {
		if (i % 100 == 0)
			control->at[me] = i;
		guard_attend();
		size_t count = rand() % 40 ? (size_t)(rand() % 30) : LARGE;
		int kind = rand() % 5;
		if (kind == 0)
			barrier();
		else if (kind < 3)
			sum(i, count);
		else
			bcast(rand() % RANKS, i, count);
	}
	pass(5000);
}

static void fifty_restores_at_random_moments(int way)
{
	way_forced = way;
	start(mixture);
	srand(11);
	for (int i = 0; i < 50; i++) {
		checkpoint();
		int first = rand() % RANKS;
		for (int k = 0; k < RANKS; k++) {
			back((first + k) % RANKS);
			usleep((useconds_t)(rand() % 3000));
		}
	}
	finish();
	way_forced = -1;
}

static void restores_at_random_moments(void **state)
{
	(void)state;
	fifty_restores_at_random_moments(-1);
}

static void restores_among_single_copies(void **state)
{
	(void)state;
	fifty_restores_at_random_moments(WAY_SINGLE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(members_that_wait_arrive_again_in_any_order),
	    cmocka_unit_test(the_missing_member_may_come_before_those_that_wait_are_back),
	    cmocka_unit_test(a_result_is_kept_for_who_has_not_seen_it),
	    cmocka_unit_test(deposits_of_a_root_that_ran_ahead_are_kept),
	    cmocka_unit_test(a_root_restored_while_it_waits_for_room_overwrites_nothing_in_use),
	    cmocka_unit_test(who_has_left_before_a_restart_is_waited_for_by_nobody_after_it),
	    cmocka_unit_test(members_inside_a_large_operation_publish_again),
	    cmocka_unit_test(last_pieces_may_be_short),
	    cmocka_unit_test(restores_at_random_moments),
	    cmocka_unit_test(restores_among_single_copies),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
