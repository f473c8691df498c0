// SPDX-License-Identifier: BSD-3-Clause
/* Threads of one process that sleep on its bell and on descriptors. A thread that nobody wakes keeps
 * the test from its end. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <unistd.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#include "ckpt/rank_private.h"

enum { THREADS = 4, TIMES = 200 };
#define FOR_EVER 3600000000000u

static struct mailbox mailbox;
static struct link self = {.mailbox = &mailbox};
static _Atomic int asleep; /* threads that have looked at the bell, at least */

const struct link *link_self(void)
{
	return &self;
}

static void *sleeper(void *seen)
{
	atomic_fetch_add(&asleep, 1);
	bell_sleep(*(uint32_t *)seen, FOR_EVER);
	return NULL;
}

/* n: how far the last of them may have come before somebody wakes them. */
static void all_wake(void (*wake)(int), int fd, int n)
{
	pthread_t thread[THREADS];
	uint32_t seen = mailbox_will_sleep(&mailbox);

	atomic_store(&asleep, 0);
	for (size_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, sleeper, &seen), 0);
	while (atomic_load(&asleep) < THREADS)
		sched_yield();
	while (n-- > 0)
		sched_yield();
	wake(fd);
	for (size_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(thread[i], NULL), 0);
}

static void ring(int fd)
{
	mailbox_ring(&mailbox);
}

static void say(int fd)
{
	assert_int_equal(write(fd, "", 1), 1);
}

static void a_bell_wakes_all_threads(void **state)
{
	struct error err;

	assert_int_equal(link_bell_open(NULL, 0, &err), HALE_OK);
	for (int n = 0; n < TIMES; n++)
		all_wake(ring, -1, n);
	link_bell_close();
	assert_int_equal(mailbox.bell_name, 0);
	assert_false(bell_sleep(mailbox.bell, FOR_EVER));
}

/* One is woken by it; each wakes the next one before it goes. */
static void a_descriptor_wakes_one_after_the_other(void **state)
{
	struct error err;
	char byte;
	int fd[2];

	assert_int_equal(pipe(fd), 0);
	assert_int_equal(link_bell_open(fd, 1, &err), HALE_OK);
	for (int n = 0; n < TIMES; n++) {
		all_wake(say, fd[1], n);
		assert_int_equal(read(fd[0], &byte, 1), 1);
	}
	link_bell_close();
	close(fd[0]);
	close(fd[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_bell_wakes_all_threads),
	    cmocka_unit_test(a_descriptor_wakes_one_after_the_other),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
