/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cmocka.h>

#include "ocl/remote/net.h"

enum { BYTES = 1 << 20 };

static struct {
	int other; /* the end that is not s.fd */
	struct net_stream s;
} made;

static int begin(void **state)
{
	int end[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, end) != 0 || !net_stream_open(&made.s, end[0]))
		return -1;
	made.other = end[1];
	return 0;
}

static int end(void **state)
{
	free(made.s.buffer);
	close(made.s.fd);
	if (made.other >= 0)
		close(made.other);
	return 0;
}

static char byte_at(size_t i)
{
	return (char)(i * 31 + i / 256);
}

/* A head and data that are more than the socket takes at once. */
static void *send_much(void *arg)
{
	char *data = malloc(BYTES);

	for (size_t i = 0; i < BYTES; i++)
		data[i] = byte_at(i);
	assert_true(net_send(made.other, data, 100, data + 100, BYTES - 100));
	free(data);
	return arg;
}

static void pieces_of_all_sizes_are_those_that_were_sent(void **state)
{
	static const size_t size[] = {1, 7, 4096, 100000, 131072, 300000};
	char *got = malloc(BYTES);
	size_t at = 0;
	pthread_t t;

	assert_int_equal(pthread_create(&t, NULL, send_much, NULL), 0);
	for (size_t i = 0; at < BYTES; i++) {
		size_t n = size[i % (sizeof(size) / sizeof(size[0]))];

		n = n < BYTES - at ? n : BYTES - at;
		assert_true(net_stream_take(&made.s, got + at, n, i % 2 ? 1000 : 0));
		at += n;
	}
	pthread_join(t, NULL);
	for (size_t i = 0; i < BYTES; i++)
		assert_int_equal(got[i], byte_at(i));
	free(got);
}

static void a_time_limit_ends_a_wait(void **state)
{
	static const uint32_t looks[] = {0, 1000};
	struct timeval limit = {0, 50000};
	char got[8];

	assert_int_equal(setsockopt(made.s.fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(write(made.other, "abc", 3), 3); /* some, and not all */
		errno = 0;
		assert_false(net_stream_take(&made.s, got, sizeof(got), looks[i]));
		assert_int_equal(errno, ETIMEDOUT);
	}
}

static void an_end_in_the_middle_is_an_error(void **state)
{
	char got[8];

	assert_int_equal(write(made.other, "abc", 3), 3);
	close(made.other);
	made.other = -1;
	assert_false(net_stream_take(&made.s, got, sizeof(got), 0));
	assert_int_equal(errno, ECONNRESET);
	assert_false(net_send(made.s.fd, "abc", 3, NULL, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(pieces_of_all_sizes_are_those_that_were_sent, begin,
					    end),
	    cmocka_unit_test_setup_teardown(a_time_limit_ends_a_wait, begin, end),
	    cmocka_unit_test_setup_teardown(an_end_in_the_middle_is_an_error, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
