// SPDX-License-Identifier: BSD-3-Clause
/* Who waits for a message or for room: gives up its core, and is woken. */
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
// clang-format off
#include <cmocka.h>
// clang-format on
#include "match/fixture.h"

enum { BIG = 3 << 20 };
static unsigned char *buf;

static void wait_and_free(struct request *r)
{
	match_wait(r);
	match_request_free(r);
}

/* More ranks than are polled one by one, and than cores; everybody to everybody. */
static void many_body(int rank)
{
	enum { ROUNDS = 20 };
	int n = world.size;
	for (int i = 0; i < ROUNDS; i++) {
		struct request *r[64], *s[64];
		int in[64], out[64];
		for (int p = 0; p < n; p++)
			match_irecv(&in[p], 1, INTS, p, i, &world, 0, &r[p]);
		for (int p = 0; p < n; p++) {
			out[p] = rank * 1000 + p + i;
			match_isend(&out[p], 1, INTS, p, i, &world, 0, &s[p]);
		}
		for (int p = 0; p < n; p++) {
			wait_and_free(r[p]);
			wait_and_free(s[p]);
			REQUIRE(in[p] == p * 1000 + rank + i);
		}
	}
}

static void many_ranks_talk_on_few_cores(void **state)
{
	assert_int_equal(fixture_run(5, 2, many_body), 0);
	assert_int_equal(fixture_run(20, 2, many_body), 0);
}

static void idle_body(int rank)
{
	int v = rank;
	for (int i = 0; i < 20; i++) {
		struct timespec t = {0, 2000000};
		if (rank == 0) {
			nanosleep(&t, NULL);
			match_send(&v, 1, INTS, 1, 0, &world, 0);
		} else {
			match_recv(&v, 1, INTS, 0, 0, &world, 0, MPI_STATUS_IGNORE);
		}
	}
}

static void sleepers_are_woken(void **state)
{
	assert_int_equal(fixture_run(2, 2, idle_body), 0);
	assert_int_equal(fixture_run(2, 1, idle_body), 0);
}

static void of_several_who_ring_one_does(void **state)
{
	struct mailbox m = {0};

	for (uint32_t slept = 1; slept <= 2; slept++) {
		assert_int_equal(mailbox_will_sleep(&m), slept - 1);
		for (int i = 0; i < 3; i++)
			mailbox_ring(&m);
		assert_int_equal(m.bell, slept);
		assert_int_equal(m.asleep, 0);
	}
}

static void rings_itself(int rank)
{
	struct mailbox *m = link_self()->mailbox;
	struct request *r;
	int in = 0, out = 7;

	match_irecv(&in, 1, INTS, 0, 0, &world, 0, &r);
	mailbox_will_sleep(m); /* as another thread, which waits for r */
	uint32_t seen = m->bell;
	match_send(&out, 1, INTS, 0, 0, &world, 0);
	REQUIRE(r->complete && m->asleep == 0 && m->bell != seen);
	wait_and_free(r);
	REQUIRE(in == out);

	mailbox_will_sleep(m);
	seen = m->bell;
	match_wake(); /* what it waits for has been completed without a message */
	REQUIRE(m->asleep == 0 && m->bell != seen);
}

static void a_threads_message_to_its_own_process_wakes_the_others(void **state)
{
	assert_int_equal(fixture_run(1, 1, rings_itself), 0);
}

/* As beside others that compute: whoever yields is away for milliseconds. */
static bool hogged;
static int yields;

int sched_yield(void)
{
	struct timespec t = {0, hogged ? 3000000 : 0};
	yields++;
	nanosleep(&t, NULL);
	return 0;
}

static void run_beside_others(void (*body)(int))
{
	pid_t hog[6];
	int failed;
	for (size_t i = 0; i < ARRAY_LEN(hog); i++) {
		hog[i] = fork();
		if (hog[i] == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			for (volatile int k = 0;; k++)
				;
		}
	}
	failed = fixture_run(2, 1, body);
	for (size_t i = 0; i < ARRAY_LEN(hog); i++) {
		kill(hog[i], SIGKILL);
		waitpid(hog[i], NULL, 0);
	}
	assert_int_equal(failed, 0);
}

static void hogged_body(int rank)
{
	enum { N = 200 };
	int v = rank;
	hogged = true;
	yields = 0;
	for (int i = 0; i < N; i++) {
		struct timespec t = {0, 200000};
		if (i % 2 == rank) {
			nanosleep(&t, NULL); /* the other one waits */
			match_send(&v, 1, INTS, 1 - rank, 0, &world, 0);
		} else {
			match_recv(&v, 1, INTS, 1 - rank, 0, &world, 0, MPI_STATUS_IGNORE);
		}
	}
	REQUIRE(yields < N / 4);
}

static void who_waits_beside_others_that_compute_sleeps(void **state)
{
	run_beside_others(hogged_body);
}

/* By way of the ring, which is full again and again. */
static void room_body(int rank)
{
	enum { N = 8 };
	buf = malloc(BIG);
	hogged = true;
	for (int i = 0; i < N; i++) {
		fixture_fill(buf, BIG, i, i);
		if (i % 2 == rank)
			match_send(buf, BIG, BYTES, 1 - rank, 0, &world, 0);
		else
			match_recv(buf, BIG, BYTES, 1 - rank, 0, &world, 0, MPI_STATUS_IGNORE);
		REQUIRE(fixture_holds(buf, BIG, i, i));
	}
	REQUIRE(fixture_overslept < N);
}

static void who_waits_for_room_is_woken(void **state)
{
	if (fixture_is_faulty())
		skip();
	setenv("HALE_SHM_CMA", "0", 1);
	run_beside_others(room_body);
	unsetenv("HALE_SHM_CMA");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(many_ranks_talk_on_few_cores),
	    cmocka_unit_test(sleepers_are_woken),
	    cmocka_unit_test(of_several_who_ring_one_does),
	    cmocka_unit_test(a_threads_message_to_its_own_process_wakes_the_others),
	    cmocka_unit_test(who_waits_beside_others_that_compute_sleeps),
	    cmocka_unit_test(who_waits_for_room_is_woken),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
