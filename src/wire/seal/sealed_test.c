/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "wire/seal/sealed.h"

enum { BYTES = 3 << 20 };

static unsigned char secret[SEGMENT_SECRET] = "the job's", other[SEGMENT_SECRET] = "another's";
static const struct sealed_purpose purpose = {.name = "test", .number = {1, 2, 3}};
static unsigned char plain[BYTES], came[BYTES];

static void pair(int ends[2])
{
	const struct timeval patience = {.tv_sec = 20};

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	for (int i = 0; i < 2; i++) {
		setsockopt(ends[i], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
		setsockopt(ends[i], SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	}
	for (size_t i = 0; i < BYTES; i++)
		plain[i] = (unsigned char)(i * 7 >> 3);
}

/* The other end, in a process: sends all, or takes all and says whether it is right. */
static pid_t peer(int fd, const unsigned char *its_secret, const struct sealed_purpose *its,
		  bool sends)
{
	pid_t pid = fork();
	struct sealed *s;
	struct error err;
	hale_status_t status;

	assert_true(pid >= 0);
	if (pid > 0)
		return pid;
	status = sealed_open(&s, fd, true, its_secret, its, &err);
	if (status == HALE_OK && sends)
		status = sealed_say(s, plain, BYTES, &err);
	if (status == HALE_OK && !sends)
		status = sealed_hear(s, came, BYTES, &err);
	if (status == HALE_OK && !sends && memcmp(plain, came, BYTES) != 0)
		status = HALE_ERR_IMAGE_CORRUPT;
	_exit(status == HALE_OK ? 0 : 1);
}

static int end_of(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

static void what_one_says_the_other_hears(void **state)
{
	int ends[2];
	struct sealed *s;
	struct error err;
	pid_t pid;

	for (int way = 0; way < 2; way++) {
		pair(ends);
		pid = peer(ends[1], secret, &purpose, way == 0);
		close(ends[1]);
		assert_int_equal(sealed_open(&s, ends[0], false, secret, &purpose, &err), HALE_OK);
		memset(came, 0, BYTES);
		if (way == 0) { /* in odd pieces */
			for (size_t at = 0, n = 1; at < BYTES; at += n, n = n * 3 % 70001 + 1) {
				n = n < BYTES - at ? n : BYTES - at;
				assert_int_equal(sealed_hear(s, came + at, n, &err), HALE_OK);
			}
			assert_memory_equal(came, plain, BYTES);
			assert_int_equal(sealed_hear(s, came, 1, &err), HALE_ERR_LINK);
		} else {
			assert_int_equal(sealed_say(s, plain, BYTES, &err), HALE_OK);
		}
		assert_int_equal(end_of(pid), 0);
		sealed_free(s);
		close(ends[0]);
	}
}

static void who_does_not_know_the_secret_or_means_something_else_is_refused(void **state)
{
	const struct sealed_purpose elsewhere = {.name = "test", .number = {1, 2, 4}};
	int ends[2];
	struct sealed *s;
	struct error err;
	pid_t pid;

	for (int k = 0; k < 2; k++) {
		pair(ends);
		pid = peer(ends[1], k ? secret : other, k ? &elsewhere : &purpose, true);
		close(ends[1]);
		/* the caller sees by our MAC that we are none of his, and goes */
		assert_int_not_equal(sealed_open(&s, ends[0], false, secret, &purpose, &err),
				     HALE_OK);
		assert_null(s);
		assert_int_equal(end_of(pid), 1);
		close(ends[0]);
	}
}

/* Passes on what the two say, and changes byte `at` of what the peer says. */
static pid_t meddler(int a, int b, size_t at, int near_end, int far_end)
{
	pid_t pid = fork();
	unsigned char buf[4096];
	size_t seen = 0;
	ssize_t n;

	assert_true(pid >= 0);
	if (pid > 0)
		return pid;
	close(near_end); /* or nobody would see them closed */
	close(far_end);
	if (fork() == 0) {
		while ((n = recv(b, buf, sizeof(buf), 0)) > 0)
			send(a, buf, (size_t)n, MSG_NOSIGNAL);
		shutdown(a, SHUT_WR);
		_exit(0);
	}
	while ((n = recv(a, buf, sizeof(buf), 0)) > 0) {
		if (at >= seen && at < seen + (size_t)n)
			buf[at - seen] ^= 4;
		seen += (size_t)n;
		if (send(b, buf, (size_t)n, MSG_NOSIGNAL) < 0)
			break;
	}
	shutdown(a, SHUT_RDWR);
	shutdown(b, SHUT_RDWR);
	while (waitpid(-1, NULL, 0) > 0)
		;
	_exit(0);
}

static void a_bit_that_is_changed_anywhere_is_noticed(void **state)
{
	/* in the hello, the proof, the first record's length, text and tag, and far behind */
	static const size_t places[] = {0, 20, 48, 60, 81, 90, 20000, 32870, 2 << 20};
	int near[2], far[2];
	struct sealed *s;
	struct error err;
	hale_status_t status;
	pid_t pid, between;

	for (size_t k = 0; k < sizeof(places) / sizeof(places[0]); k++) {
		pair(near);
		pair(far);
		between = meddler(far[0], near[1], places[k], near[0], far[1]);
		pid = peer(far[1], secret, &purpose, true);
		close(far[0]);
		close(far[1]);
		close(near[1]);
		status = sealed_open(&s, near[0], false, secret, &purpose, &err);
		if (status == HALE_OK)
			status = sealed_hear(s, came, BYTES, &err);
		assert_int_not_equal(status, HALE_OK);
		if (s)
			assert_int_equal(status, HALE_ERR_PROTOCOL);
		assert_true((s != NULL) == (places[k] >= 80));
		sealed_free(s);
		shutdown(near[0], SHUT_RDWR); /* the peer has it too */
		close(near[0]);
		end_of(pid);
		assert_int_equal(end_of(between), 0);
	}
}

/* plain ── pump ══ pump ── plain, each in a process. */
static pid_t pump(int inside, int wire, bool caller, const int close_these[4])
{
	pid_t pid = fork();
	struct error err;

	assert_true(pid >= 0);
	if (pid > 0)
		return pid;
	for (int i = 0; i < 4; i++)
		if (close_these[i] != inside && close_these[i] != wire)
			close(close_these[i]);
	_exit((int)sealed_pump(inside, wire, caller, secret, &purpose, &err));
}

static void pumps_pass_on_both_ways_and_end_when_both_have(void **state)
{
	int left[2], wire[2], right[2];
	pid_t one, two, writer;

	pair(left);
	pair(wire);
	pair(right);
	one = pump(left[1], wire[0], true, (int[]){left[0], wire[1], right[0], right[1]});
	two = pump(right[1], wire[1], false, (int[]){right[0], wire[0], left[0], left[1]});
	close(left[1]);
	close(right[1]);
	close(wire[0]);
	close(wire[1]);
	writer = fork();
	if (writer == 0) {
		close(right[0]);
		for (size_t at = 0; at < BYTES;)
			at += (size_t)send(left[0], plain + at, BYTES - at, MSG_NOSIGNAL);
		shutdown(left[0], SHUT_WR);
		_exit(recv(left[0], came, 5, MSG_WAITALL) == 5 && memcmp(came, "whole", 5) == 0
			  ? 0
			  : 1);
	}
	close(left[0]);
	memset(came, 0, BYTES);
	assert_int_equal(recv(right[0], came, BYTES, MSG_WAITALL), BYTES);
	assert_memory_equal(came, plain, BYTES);
	assert_int_equal(recv(right[0], came, 1, 0), 0);
	assert_int_equal(send(right[0], "whole", 5, MSG_NOSIGNAL), 5);
	close(right[0]);
	assert_int_equal(end_of(writer), 0);
	assert_int_equal(end_of(one), SEALED_OVER);
	assert_int_equal(end_of(two), SEALED_OVER);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(what_one_says_the_other_hears),
	    cmocka_unit_test(who_does_not_know_the_secret_or_means_something_else_is_refused),
	    cmocka_unit_test(a_bit_that_is_changed_anywhere_is_noticed),
	    cmocka_unit_test(pumps_pass_on_both_ways_and_end_when_both_have),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
