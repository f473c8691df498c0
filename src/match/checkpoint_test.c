// SPDX-License-Identifier: BSD-3-Clause
/* Checkpoints in the midst of messages: all ranks suspend, and go on in the same segment or, as
 * after a restart, in a new and zeroed one. Nothing may be lost, doubled, reordered or torn. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on
#include "base/yield.h"
#include "match/fixture.h"

static bool restored;  /* what checkpoints of a test are followed by */
static size_t maximum; /* size of its messages */

static size_t size_of(int k)
{
	return (size_t)k * 2654435761u % (maximum + 1);
}

/* Both send to each other; one of them asks for checkpoints on the way, which find the other one
 * anywhere. */
static void stream_body(int rank)
{
	enum { N = 400, EVERY = 100, WINDOW = 40 };
	struct request *s[WINDOW] = {0}, *r[WINDOW] = {0};
	unsigned char *out[WINDOW], *in[WINDOW];
	int received = 0;
	uint32_t asked = 0;
	fixture_meet();
	for (int i = 0; i < WINDOW; i++) {
		out[i] = malloc(maximum + 1);
		in[i] = malloc(maximum + 1);
	}
	for (int k = 0; k < N; k++) {
		int i = k % WINDOW;
		if (k >= WINDOW) {
			match_wait(s[i]);
			match_request_free(s[i]);
			match_wait(r[i]);
			REQUIRE(r[i]->status._ucount == size_of(received));
			REQUIRE(fixture_holds(in[i], size_of(received), 1 - rank, received));
			received++;
			match_request_free(r[i]);
		}
		fixture_fill(out[i], size_of(k), rank, k);
		match_isend(out[i], size_of(k), BYTES, 1 - rank, 3, &world, 0, &s[i]);
		if (rank == 0 && k % EVERY == 70) {
			fixture_checkpoint_ask(restored && k / EVERY % 2);
			fixture_checkpoint_await(++asked);
		}
		match_irecv(in[i], maximum, BYTES, 1 - rank, 3, &world, 0, &r[i]);
	}
	for (int k = N - WINDOW; k < N; k++) {
		match_wait(s[k % WINDOW]);
		match_wait(r[k % WINDOW]);
		REQUIRE(fixture_holds(in[k % WINDOW], size_of(k), 1 - rank, k));
	}
	fixture_checkpoint_await(N / EVERY);
}

static void stream(bool again, size_t largest)
{
	restored = again;
	maximum = largest;
	assert_int_equal(fixture_run(2, 2, stream_body), 0);
	assert_int_equal(fixture_run(2, 1, stream_body), 0);
	setenv("HALE_SHM_CMA", "0", 1);
	assert_int_equal(fixture_run(2, 2, stream_body), 0);
	unsetenv("HALE_SHM_CMA");
}

static void eager_streams_go_on_after_a_checkpoint(void **state)
{
	stream(false, 2000);
}

static void eager_streams_go_on_after_a_restart(void **state)
{
	stream(true, 2000);
}

static void big_messages_go_on_after_a_checkpoint(void **state)
{
	stream(false, 300001);
}

static void big_messages_go_on_after_a_restart(void **state)
{
	stream(true, 300001);
}

/* One big message each way, stopped after so many rounds of progress. */
enum { BIG = 3 << 20 };
static int rounds[2];
static bool pieces;

static void middle_body(int rank)
{
	struct request *s, *r;
	size_t ints = BIG / sizeof(int), span = pieces ? 2 * ints : ints;
	struct datatype *t = datatype_make_vector(INTS, ints / 2048, 2048, 2 * 2048 * sizeof(int));
	struct datatype *type = pieces ? t : INTS;
	int *out = calloc(span, sizeof(int)), *in = calloc(span, sizeof(int));
	for (size_t i = 0; i < span; i++)
		out[i] = (int)i ^ rank;
	match_irecv(in, pieces ? 1 : ints, type, 1 - rank, 1, &world, 0, &r);
	match_isend(out, pieces ? 1 : ints, type, 1 - rank, 1, &world, 0, &s);
	for (int i = 0; i < rounds[rank]; i++)
		match_progress();
	fixture_checkpoint(restored);
	match_wait(r);
	match_wait(s);
	for (size_t i = 0; i < span; i++)
		REQUIRE(in[i] == (pieces && i / 2048 % 2 ? 0 : ((int)i ^ (1 - rank))));
	datatype_release(t);
}

static void a_big_message_can_stop_at_any_step(void **state)
{
	for (int k = 0; k < 20; k++) {
		restored = k % 2;
		pieces = k % 4 / 2;
		rounds[0] = k * 5 % 23;
		rounds[1] = k * 7 % 19;
		if (k % 5 == 4)
			setenv("HALE_SHM_CMA", "0", 1);
		assert_int_equal(fixture_run(2, 2, middle_body), 0);
		unsetenv("HALE_SHM_CMA");
	}
}

/* Checkpoints from safe points inside blocking calls, at different depths in each rank. */
static void inside_body(int rank)
{
	int n = world.size, v, w;
	for (int k = 0; k < 6; k++) {
		fixture_checkpoint_in(1 + (rank * 5 + k * 3) % 7, restored && k % 2);
		for (int i = 0; i < 30; i++) {
			struct request *s;
			v = rank * 100 + i;
			match_isend(&v, 1, INTS, (rank + 1) % n, k, &world, MATCH_SYNCHRONOUS, &s);
			match_recv(&w, 1, INTS, MPI_ANY_SOURCE, MPI_ANY_TAG, &world, 0,
				   MPI_STATUS_IGNORE);
			REQUIRE(w == (rank + n - 1) % n * 100 + i);
			match_wait(s);
			match_request_free(s);
		}
		/* who has not waited often enough does it here */
		while (guard_attention)
			guard_safe_point();
	}
}

static void checkpoints_come_while_ranks_wait(void **state)
{
	for (int k = 0; k < 2; k++) {
		restored = k;
		assert_int_equal(fixture_run(2, 2, inside_body), 0);
		assert_int_equal(fixture_run(4, 2, inside_body), 0);
		assert_int_equal(fixture_run(18, 2, inside_body), 0);
	}
}

/* One rank begins a checkpoint that is given up, and goes on sending; then comes a real one. */
static void cancelled_body(int rank)
{
	int v = 0;
	if (rank == 1) /* it never sees that one but hears of it */
		fixture_round_skip();
	for (int k = 0; k < 10; k++) {
		match_send(&k, 1, INTS, 1 - rank, 1, &world, 0);
		if (rank == 0 && k == 4)
			fixture_checkpoint_cancelled();
	}
	if (rank == 1)
		for (int k = 0; k < 5; k++) {
			match_recv(&v, 1, INTS, 0, 1, &world, 0, MPI_STATUS_IGNORE);
			REQUIRE(v == k);
		}
	fixture_say(rank, 1);
	while (!fixture_said(1)) /* what a suspended rank keeps for it comes only afterwards */
		match_progress();
	fixture_checkpoint(true);
	for (int k = rank ? 5 : 0; k < 10; k++) {
		match_recv(&v, 1, INTS, 1 - rank, 1, &world, 0, MPI_STATUS_IGNORE);
		REQUIRE(v == k);
	}
}

static void a_given_up_checkpoint_leaves_no_trace(void **state)
{
	assert_int_equal(fixture_run(2, 2, cancelled_body), 0);
}

/* A checkpoint is given up before this rank has heard of it. Then everything is sent again that its
 * peer hasn't acknowledged, also what still waits in a row before a full socket. */
static void again_body(int rank)
{
	enum { N = 240, EACH = 8000, GIVEN_UP = 4 };
	enum { HEARD = 1, DEAF, BEHIND, READ, SENT }; /* what ranks say */
	struct request *s[N];
	unsigned char *out = malloc((size_t)N * EACH), *in = malloc(EACH);
	int v = 0;
	if (rank == 0) {
		match_send(&v, 1, INTS, 1, 1, &world, 0);
		while (fixture_said(1) < HEARD) /* the channel may still connect, or hold the message */
			match_progress();
		fixture_say(rank, DEAF);
		while (fixture_said(1) < BEHIND) /* reads nothing meanwhile */
			yield_or_nap();
		for (int k = 0; k < GIVEN_UP; k++)
			fixture_round_skip();
		for (int i = 0; i < N; i++) {
			match_recv(in, EACH, BYTES, 1, 1, &world, 0, MPI_STATUS_IGNORE);
			REQUIRE(fixture_holds(in, EACH, 1, i));
		}
		fixture_say(rank, READ);
		/* a rank that waits for a send would suspend itself in there; this one doesn't */
		while (fixture_said(1) != SENT)
			match_progress();
		fixture_checkpoint(true);
		return;
	}
	match_recv(&v, 1, INTS, 0, 1, &world, 0, MPI_STATUS_IGNORE);
	fixture_say(rank, HEARD);
	while (fixture_said(0) != DEAF)
		yield_or_nap();
	for (int i = 0; i < N; i++) {
		fixture_fill(out + (size_t)i * EACH, EACH, rank, i);
		match_isend(out + (size_t)i * EACH, EACH, BYTES, 0, 1, &world, 0, &s[i]);
	}
	for (int k = 0; k < GIVEN_UP; k++) {
		match_progress();
		fixture_round_skip();
		match_progress();
	}
	fixture_say(rank, BEHIND);
	for (int i = 0; i < N; i++) {
		match_wait(s[i]);
		match_request_free(s[i]);
	}
	while (fixture_said(0) < READ) /* the channel may still hold some of them */
		match_progress();
	fixture_say(rank, SENT);
	fixture_checkpoint(true);
}

/* A receiver asks its peer to help with a copy in shared memory, but that can't leave before the
 * checkpoint; afterwards they are on two nodes, and share nothing. */
static void help_body(int rank)
{
	enum { N = 400, EACH = 8000 };
	struct request *big, *s[N];
	unsigned char *one = malloc(BIG), *small = malloc((size_t)N * EACH);
	if (rank == 0) {
		fixture_fill(one, EACH, 0, 1);
		match_isend(one, BIG, BYTES, 1, 1, &world, 0, &big);
		while (match.peer[1].queue.first)
			match_progress();
		fixture_say(rank, 1);
		while (!fixture_said(1)) /* reads nothing meanwhile */
			yield_or_nap();
		fixture_checkpoint(true);
		for (int i = 0; i < N; i++) {
			match_recv(small, EACH, BYTES, 1, 2, &world, 0, MPI_STATUS_IGNORE);
			REQUIRE(fixture_holds(small, EACH, 1, i));
		}
		match_wait(big);
		return;
	}
	while (!fixture_said(0))
		yield_or_nap();
	for (int i = 0; i < N; i++) {
		fixture_fill(small + (size_t)i * EACH, EACH, 1, i);
		match_isend(small + (size_t)i * EACH, EACH, BYTES, 0, 2, &world, 0, &s[i]);
	}
	for (int i = 0; i < 1000; i++) /* until the ring is full: channel/faulty refuses at random */
		match_progress();
	match_irecv(one, BIG, BYTES, 0, 1, &world, 0, &big);
	while (!match.share_used)
		match_progress();
	REQUIRE(match.peer[0].first);
	fixture_say(rank, 1);
	fixture_checkpoint(true);
	match_wait(big);
	REQUIRE(fixture_holds(one, EACH, 0, 1));
	for (int i = 0; i < N; i++)
		match_wait(s[i]);
}

static void help_is_no_longer_wanted_on_another_node(void **state)
{
	fixture_nodes(1, 2);
	assert_int_equal(fixture_run(2, 2, help_body), 0);
	fixture_nodes(1, 1);
}

/* Sends that are made while suspended wait, and leave afterwards in order. */
static void queued_body(int rank)
{
	int v;
	struct request *s[20];
	int out[20];
	for (int i = 0; i < 20; i++) {
		out[i] = i;
		if (i == 10)
			fixture_checkpoint_cancelled();
		match_isend(&out[i], 1, INTS, 1 - rank, 0, &world, 0, &s[i]);
	}
	fixture_checkpoint(true);
	for (int i = 0; i < 20; i++) {
		match_recv(&v, 1, INTS, 1 - rank, 0, &world, 0, MPI_STATUS_IGNORE);
		REQUIRE(v == i);
		match_wait(s[i]);
		match_request_free(s[i]);
	}
}

static void messages_nobody_asked_for_survive_a_restart(void **state)
{
	assert_int_equal(fixture_run(2, 2, queued_body), 0);
}

/* Bursts, which the channel between nodes gathers, and checkpoints right behind them, before
 * anybody has looked at what comes. */
static void bursts_body(int rank)
{
	enum { ROUNDS = 60, MOST = 60, SHARE = 100 };
	struct request *s[MOST];
	unsigned char *out[MOST], *in = malloc(maximum + 1);
	MPI_Status status;
	for (int i = 0; i < MOST; i++)
		out[i] = malloc(maximum + 1);
	for (int k = 0; k < ROUNDS; k++) {
		int n = 1 + k * 7 % MOST;
		for (int i = 0; i < n; i++) {
			int number = k * SHARE + i;
			fixture_fill(out[i], size_of(number), rank, number);
			match_isend(out[i], size_of(number), BYTES, 1 - rank, 1, &world, 0, &s[i]);
		}
		if (k % 10 == 7)
			fixture_checkpoint(restored && k % 20 == 7);
		for (int i = 0; i < n; i++) {
			int number = k * SHARE + i;
			match_recv(in, maximum, BYTES, 1 - rank, 1, &world, 0, &status);
			REQUIRE(status._ucount == size_of(number));
			REQUIRE(fixture_holds(in, size_of(number), 1 - rank, number));
			match_wait(s[i]);
			match_request_free(s[i]);
		}
	}
}

/* The same over nodes: together, apart, and after a restart the other way round. */
static void over_nodes(uint32_t first, uint32_t then)
{
	fixture_nodes(first, then);
	for (int again = 0; again < 2; again++) {
		restored = again;
		maximum = 2000;
		assert_int_equal(fixture_run(2, 2, stream_body), 0);
		maximum = 300001;
		assert_int_equal(fixture_run(2, 2, stream_body), 0);
		assert_int_equal(fixture_run(4, 2, inside_body), 0);
		maximum = 9000;
		assert_int_equal(fixture_run(2, 2, bursts_body), 0);
	}
	for (int k = 0; k < 8; k++) {
		restored = k % 2;
		pieces = k % 4 / 2;
		rounds[0] = k * 5 % 23;
		rounds[1] = k * 7 % 19;
		assert_int_equal(fixture_run(2, 2, middle_body), 0);
	}
	assert_int_equal(fixture_run(2, 2, cancelled_body), 0);
	assert_int_equal(fixture_run(2, 2, queued_body), 0);
	assert_int_equal(fixture_run(2, 2, again_body), 0);
	fixture_nodes(1, 1);
}

static void messages_between_nodes_go_on(void **state)
{
	over_nodes(2, 2);
}

static void messages_between_nodes_go_on_on_one_node(void **state)
{
	over_nodes(2, 1);
}

static void messages_on_one_node_go_on_between_nodes(void **state)
{
	over_nodes(1, 2);
}

/* match_checkpoint_test [PATTERN]: those tests only, to try one many times. */
int main(int argc, char **argv)
{
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(eager_streams_go_on_after_a_checkpoint),
	    cmocka_unit_test(eager_streams_go_on_after_a_restart),
	    cmocka_unit_test(big_messages_go_on_after_a_checkpoint),
	    cmocka_unit_test(big_messages_go_on_after_a_restart),
	    cmocka_unit_test(a_big_message_can_stop_at_any_step),
	    cmocka_unit_test(checkpoints_come_while_ranks_wait),
	    cmocka_unit_test(a_given_up_checkpoint_leaves_no_trace),
	    cmocka_unit_test(messages_nobody_asked_for_survive_a_restart),
	    cmocka_unit_test(help_is_no_longer_wanted_on_another_node),
	    cmocka_unit_test(messages_between_nodes_go_on),
	    cmocka_unit_test(messages_between_nodes_go_on_on_one_node),
	    cmocka_unit_test(messages_on_one_node_go_on_between_nodes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
