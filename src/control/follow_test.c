/* SPDX-License-Identifier: BSD-3-Clause */
/* Programs whose output is followed: real ones, /bin/sh. */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "control/follow.h"

static struct follow c;

static void start(const char *script)
{
	char *const argv[] = {(char *)"/bin/sh", (char *)"-c", (char *)script, NULL};

	follow_init(&c);
	assert_true(follow_start(&c, argv));
}

static void wait_for_more(void)
{
	struct pollfd p = {.fd = c.fd, .events = POLLIN};

	assert_int_equal(poll(&p, 1, 60000), 1);
}

/* Until it has ended. */
static void read_all(void)
{
	while (!c.ended) {
		wait_for_more();
		while (follow_read(&c))
			;
	}
}

static void all_that_it_says_is_there_at_its_end(void **state)
{
	start("echo one; echo two >&2; read line; echo \"got $?\"; exit 3");
	read_all();
	assert_string_equal(c.text, "one\ntwo\ngot 1\n"); /* there is nothing to read for it */
	assert_int_equal(WEXITSTATUS(c.status), 3);
	assert_true(c.fd == -1 && c.pid == 0);
	assert_false(follow_read(&c));
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
	follow_end(&c);
}

static void nothing_new_is_no_end(void **state)
{
	start("echo one; sleep 1000");
	wait_for_more();
	assert_true(follow_read(&c));
	assert_false(follow_read(&c));
	assert_false(c.ended);
	assert_string_equal(c.text, "one\n");
	follow_end(&c); /* it does not outlive that */
	assert_true(c.fd == -1 && c.pid == 0);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

static void the_newest_lines_are_kept(void **state)
{
	char number[16];

	start("i=0; while [ $i -lt 30000 ]; do echo $i; i=$((i + 1)); done");
	read_all();
	assert_true(strlen(c.text) == c.len && c.len < sizeof(c.text));
	for (int i = 1; i <= 3; i++) {
		snprintf(number, sizeof(number), "%d\n", 30000 - i);
		assert_int_equal(strncmp(follow_last(&c, (size_t)i), number, strlen(number)), 0);
	}
	/* without a hole before them */
	const char *at = follow_last(&c, 1000);
	for (int i = 29000; i < 30000; i++) {
		char *end;

		assert_int_equal(strtol(at, &end, 10), i);
		at = end + 1;
	}
	follow_end(&c);
}

static void the_last_lines_are_whole(void **state)
{
	follow_init(&c);
	assert_string_equal(follow_last(&c, 3), "");
	c.len = (size_t)snprintf(c.text, sizeof(c.text), "a\nb\nc\n");
	assert_string_equal(follow_last(&c, 1), "c\n");
	assert_string_equal(follow_last(&c, 2), "b\nc\n");
	assert_string_equal(follow_last(&c, 9), "a\nb\nc\n");
	c.len = (size_t)snprintf(c.text, sizeof(c.text), "a\nb\nc");
	assert_string_equal(follow_last(&c, 2), "b\nc");
}

static void what_cannot_be_started_says_so(void **state)
{
	char *const argv[] = {(char *)"/no/such/program", NULL};

	follow_init(&c);
	assert_true(follow_start(&c, argv));
	read_all();
	assert_string_equal(c.text, "/no/such/program: No such file or directory\n");
	assert_int_equal(WEXITSTATUS(c.status), 127);
	follow_end(&c);
}

/* A server waits for its signals, and ignores some; a program of its own does not. */
static void signals_are_as_programs_expect_them(void **state)
{
	sigset_t term;

	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	sigprocmask(SIG_BLOCK, &term, NULL);
	signal(SIGPIPE, SIG_IGN);
	start("kill -TERM $$; echo still here");
	read_all();
	assert_true(WIFSIGNALED(c.status) && WTERMSIG(c.status) == SIGTERM);
	start("kill -PIPE $$; echo still here");
	read_all();
	assert_true(WIFSIGNALED(c.status) && WTERMSIG(c.status) == SIGPIPE);
	sigprocmask(SIG_UNBLOCK, &term, NULL);
	signal(SIGPIPE, SIG_DFL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(all_that_it_says_is_there_at_its_end),
	    cmocka_unit_test(nothing_new_is_no_end),
	    cmocka_unit_test(the_newest_lines_are_kept),
	    cmocka_unit_test(the_last_lines_are_whole),
	    cmocka_unit_test(what_cannot_be_started_says_so),
	    cmocka_unit_test(signals_are_as_programs_expect_them),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
