/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages between programs and daemons, the key that both have, and the process that serves. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "rio/serve.h"
#include "rio/wire.h"

static char folder[] = "/tmp/hale-rio-wire-XXXXXX", why[300];

static int set_up(void **state)
{
	unsetenv("HALE_RIO_TIMEOUT");
	return mkdtemp(folder) ? 0 : -1;
}

static int tear_down(void **state)
{
	char command[100];

	snprintf(command, sizeof(command), "rm -r %s", folder);
	return system(command);
}

static void pair(int ends[2])
{
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
}

static void unpair(int ends[2])
{
	close(ends[0]);
	close(ends[1]);
}

/* ---- messages ---- */

static void messages_come_as_they_were_sent(void **state)
{
	static char sent[RIO_PAYLOAD_MAX], got[RIO_PAYLOAD_MAX + 1];
	static const size_t sizes[] = {0, 1, 100, RIO_PAYLOAD_MAX};
	int ends[2];

	for (size_t i = 0; i < sizeof(sent); i++)
		sent[i] = (char)i;
	pair(ends);
	for (size_t i = 0; i < 4; i++) {
		struct wire_head h = {.op = RIO_STATE,
				      .error = 7,
				      .number = 1ull << 40,
				      .size = 9,
				      .sum = 11},
				 back;

		assert_int_equal(wire_say(ends[0], &h, sent, sizes[i]), 0);
		assert_int_equal(wire_hear(ends[1], &back, got, RIO_PAYLOAD_MAX), 0);
		assert_memory_equal(&h, &back, sizeof(h));
		assert_int_equal(back.bytes, sizes[i]);
		assert_memory_equal(got, sent, sizes[i]);
		assert_int_equal(got[sizes[i]], 0);
	}
	struct wire_head h = {.op = RIO_STATE};
	assert_int_equal(wire_say(ends[0], &h, sent, RIO_PAYLOAD_MAX + 1), -1);
	assert_int_equal(errno, EMSGSIZE);
	unpair(ends);
}

static void every_damaged_byte_is_noticed(void **state)
{
	struct wire_head h = {.op = RIO_STATE, .number = 5}, back;
	char got[32];
	int ends[2];

	for (size_t i = 0; i < sizeof(h) + 8; i++) {
		char bytes[sizeof(h) + 8];

		pair(ends);
		assert_int_equal(wire_say(ends[0], &h, "payload", 8), 0);
		assert_int_equal(wire_hear_bytes(ends[1], bytes, sizeof(bytes)), 0);
		bytes[i] ^= 0x10;
		assert_int_equal(wire_say_bytes(ends[0], bytes, sizeof(bytes)), 0);
		shutdown(ends[0], SHUT_WR); /* a length that has become more waits for no end */
		assert_int_equal(wire_hear(ends[1], &back, got, sizeof(got) - 1), -1);
		assert_true(errno == EPROTO || errno == ECONNRESET);
		unpair(ends);
	}
	pair(ends);
	assert_int_equal(wire_say(ends[0], &h, "payload", 8), 0);
	assert_int_equal(wire_hear(ends[1], &back, got, 7), -1); /* longer than there is room */
	assert_int_equal(errno, EPROTO);
	unpair(ends);
}

static void an_end_and_silence_are_told_apart(void **state)
{
	const struct timeval soon = {.tv_usec = 1000};
	char got[8];
	int ends[2];

	pair(ends);
	setsockopt(ends[1], SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof(soon));
	assert_int_equal(wire_say_bytes(ends[0], "abc", 3), 0);
	assert_int_equal(wire_hear_bytes(ends[1], got, 4), -1);
	assert_int_equal(errno, ETIMEDOUT);
	wire_say_bytes(ends[0], "abc", 3);
	close(ends[0]);
	assert_int_equal(wire_hear_bytes(ends[1], got, 3), 0);
	assert_int_equal(wire_hear_bytes(ends[1], got, 1), -1);
	assert_int_equal(errno, ECONNRESET);
	assert_int_equal(wire_say_bytes(ends[1], "abc", 3), -1); /* and no SIGPIPE */
	close(ends[1]);
}

static void hanging_up_waits_for_the_other_side(void **state)
{
	char got[8];
	int ends[2];
	pid_t child;

	pair(ends);
	child = fork();
	if (child == 0) {
		close(ends[0]);
		wire_say_bytes(ends[1], "dropped", 7);
		/* nothing more comes from there, but this may still be sent */
		_exit(wire_hear_bytes(ends[1], got, 1) != -1 || errno != ECONNRESET ||
		      wire_say_bytes(ends[1], "dropped", 7) != 0);
	}
	close(ends[1]);
	wire_hang_up(ends[0]);
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_true(fcntl(ends[0], F_GETFD) >= 0);
	close(ends[0]);
}

static void hashes_add_up_in_any_order(void **state)
{
	assert_true(wire_sum("abc", 3, 0) != wire_sum("abc", 3, 1));
	assert_true(wire_sum("abc", 3, 0) != wire_sum("abd", 3, 0));
	assert_true(wire_sum("abc", 3, 7) == wire_sum("abcd", 3, 7));
}

static void silence_lasts_as_long_as_is_said(void **state)
{
	static const struct {
		const char *text;
		int ms;
	} said[] = {{"100ms", 100}, {"2s", 2000}, {"1d", 86400000}, {"99ms", 10000},
		    {"2d", 10000},  {"x", 10000}, {"", 10000}};
	int tcp = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), value;
	socklen_t len = sizeof(value);

	assert_int_equal(wire_timeout_ms(), 10000);
	for (size_t i = 0; i < sizeof(said) / sizeof(*said); i++) {
		setenv("HALE_RIO_TIMEOUT", said[i].text, 1);
		assert_int_equal(wire_timeout_ms(), said[i].ms);
	}
	/* asked after every fourth of it, and lost with the last of the answers that stay away */
	setenv("HALE_RIO_TIMEOUT", "20s", 1);
	wire_prepare(tcp);
	getsockopt(tcp, IPPROTO_TCP, TCP_KEEPIDLE, &value, &len);
	assert_int_equal(value, 5);
	getsockopt(tcp, IPPROTO_TCP, TCP_KEEPCNT, &value, &len);
	assert_int_equal(value, 3);
	setenv("HALE_RIO_TIMEOUT", "1s", 1);
	wire_prepare(tcp);
	getsockopt(tcp, IPPROTO_TCP, TCP_KEEPINTVL, &value, &len);
	assert_int_equal(value, 1);
	getsockopt(tcp, IPPROTO_TCP, TCP_KEEPCNT, &value, &len);
	assert_int_equal(value, 1);
	getsockopt(tcp, IPPROTO_TCP, TCP_NODELAY, &value, &len);
	assert_true(value);
	unsetenv("HALE_RIO_TIMEOUT");
	close(tcp);
}

/* ---- the key ---- */

static void key_at(const char *name)
{
	char path[100];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	setenv("HALE_DEVICE_KEY", path, 1);
}

static void put_key(const char *name, const char *text, mode_t mode)
{
	FILE *f;

	key_at(name);
	f = fopen(getenv("HALE_DEVICE_KEY"), "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
	assert_int_equal(chmod(getenv("HALE_DEVICE_KEY"), mode), 0);
}

#define DIGITS "00112233445566778899aabbccddeeff00112233445566778899aabbccddeef"

static void a_key_is_made_once(void **state)
{
	unsigned char first[RIO_KEY], again[RIO_KEY], other[RIO_KEY];
	struct stat st;

	key_at("a/b/key");
	assert_int_equal(wire_key(first, why, sizeof(why)), 0);
	assert_int_equal(wire_key(again, why, sizeof(why)), 0);
	assert_memory_equal(first, again, RIO_KEY);
	assert_int_equal(stat(getenv("HALE_DEVICE_KEY"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(st.st_nlink, 1); /* nothing else is left beside it */
	assert_int_equal(st.st_size, 65);
	key_at("other");
	assert_int_equal(wire_key(other, why, sizeof(why)), 0);
	assert_memory_not_equal(first, other, RIO_KEY);
}

static void a_key_is_read_as_it_is_written(void **state)
{
	unsigned char key[RIO_KEY];

	put_key("read", DIGITS "0\n", 0600);
	assert_int_equal(wire_key(key, why, sizeof(why)), 0);
	for (int i = 0; i < RIO_KEY - 1; i++)
		assert_int_equal(key[i], i % 16 * 0x11);
	assert_int_equal(key[RIO_KEY - 1], 0xf0);
}

static void other_keys_are_refused(void **state)
{
	static const char *const bad[] = {"",	      DIGITS,	  DIGITS "g", DIGITS "/",
					  DIGITS ":", DIGITS "`", DIGITS "A"};
	unsigned char key[RIO_KEY];

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		put_key("bad", bad[i], 0600);
		assert_int_equal(wire_key(key, why, sizeof(why)), -1);
		assert_int_equal(errno, EINVAL);
		assert_non_null(strstr(why, "64 hexadecimal digits"));
	}
	put_key("open", DIGITS "0\n", 0640);
	assert_int_equal(wire_key(key, why, sizeof(why)), -1);
	assert_int_equal(errno, EPERM);
	assert_non_null(strstr(why, "can be read by others"));
	setenv("HALE_DEVICE_KEY", "/proc/no/key", 1);
	assert_int_equal(wire_key(key, why, sizeof(why)), -1);
	assert_non_null(strstr(why, "can't be made"));
}

static void without_a_name_the_key_is_with_the_state(void **state)
{
	unsigned char key[RIO_KEY];
	char path[100];

	setenv("HALE_DEVICE_KEY", "", 1);
	setenv("XDG_STATE_HOME", folder, 1);
	assert_int_equal(wire_key(key, why, sizeof(why)), 0);
	snprintf(path, sizeof(path), "%s/hale/device.key", folder);
	assert_int_equal(access(path, F_OK), 0);
	setenv("XDG_STATE_HOME", "relative", 1);
	setenv("HOME", folder, 1);
	assert_int_equal(wire_key(key, why, sizeof(why)), 0);
	snprintf(path, sizeof(path), "%s/.local/state/hale/device.key", folder);
	assert_int_equal(access(path, F_OK), 0);
	unsetenv("HOME");
	assert_int_equal(wire_key(key, why, sizeof(why)), -1);
	assert_int_equal(errno, ENOENT);
}

static int proved(const char *mine, const char *its)
{
	int ends[2], status, rc, error;
	pid_t child;

	pair(ends);
	child = fork();
	if (child == 0) {
		close(ends[0]);
		key_at(its);
		_exit(wire_prove(ends[1], false, why, sizeof(why)) != 0);
	}
	close(ends[1]);
	key_at(mine);
	rc = wire_prove(ends[0], true, why, sizeof(why));
	error = errno;
	close(ends[0]);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status == 0, rc == 0);
	return rc ? error : 0;
}

static void who_has_the_same_key_is_let_in(void **state)
{
	assert_int_equal(proved("one", "one"), 0);
	assert_int_equal(proved("one", "two"), EPERM);
	assert_non_null(strstr(why, "another key"));
}

/* ---- the process that serves ---- */

static int spawned(const char *script, const int *fd, int count)
{
	char *const argv[] = {(char *)"sh", (char *)"-c", (char *)script, NULL};
	char *const env[] = {(char *)"WORD=said", NULL};
	pid_t pid = serve_spawn("/bin/sh", argv, env, fd, count);
	int status;

	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void it_has_the_descriptors_it_is_given(void **state)
{
	int a[2], b[2], swapped[2];
	char got[16];
	sigset_t term;

	assert_int_equal(pipe2(a, O_CLOEXEC) | pipe2(b, O_CLOEXEC), 0);
	/* whatever their numbers are here: each may have the one that another one gets */
	for (int i = 0; i < 2; i++) {
		a[i] = fcntl(a[i], F_DUPFD_CLOEXEC, 20);
		b[i] = fcntl(b[i], F_DUPFD_CLOEXEC, 20);
	}
	assert_int_equal(dup2(a[1], 4), 4);
	assert_int_equal(dup2(b[1], 3), 3);
	swapped[0] = 4;
	swapped[1] = 3;
	assert_int_equal(
	    spawned("echo $WORD >&3; echo two >&4; [ ! -e /proc/self/fd/5 ]", swapped, 2), 0);
	assert_int_equal(read(a[0], got, sizeof(got)), 5);
	assert_memory_equal(got, "said\n", 5);
	assert_int_equal(read(b[0], got, sizeof(got)), 4);
	assert_memory_equal(got, "two\n", 4);
	/* blocked here, not there */
	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	sigprocmask(SIG_BLOCK, &term, NULL);
	assert_int_equal(WTERMSIG(spawned("kill -TERM $$; exit 3", NULL, 0)), SIGTERM);
	sigprocmask(SIG_UNBLOCK, &term, NULL);
}

static void what_cannot_be_started_leaves_nothing(void **state)
{
	char *const none[] = {(char *)"none", NULL};
	int fd[5] = {0, 0, 0, 0, 0}, before = dup(0), after;

	close(before);
	assert_int_equal(serve_spawn("/no/such/program", none, none + 1, fd, 4), -1);
	assert_int_equal(errno, ENOENT);
	assert_int_equal(serve_spawn("/bin/true", none, none + 1, fd, 5), -1);
	assert_int_equal(errno, EINVAL);
	fd[2] = 999;
	assert_int_equal(serve_spawn("/bin/true", none, none + 1, fd, 3), -1);
	assert_int_equal(errno, EBADF);
	after = dup(0);
	close(after);
	assert_int_equal(before, after);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(messages_come_as_they_were_sent),
	    cmocka_unit_test(every_damaged_byte_is_noticed),
	    cmocka_unit_test(an_end_and_silence_are_told_apart),
	    cmocka_unit_test(hanging_up_waits_for_the_other_side),
	    cmocka_unit_test(hashes_add_up_in_any_order),
	    cmocka_unit_test(silence_lasts_as_long_as_is_said),
	    cmocka_unit_test(a_key_is_made_once),
	    cmocka_unit_test(a_key_is_read_as_it_is_written),
	    cmocka_unit_test(other_keys_are_refused),
	    cmocka_unit_test(without_a_name_the_key_is_with_the_state),
	    cmocka_unit_test(who_has_the_same_key_is_let_in),
	    cmocka_unit_test(it_has_the_descriptors_it_is_given),
	    cmocka_unit_test(what_cannot_be_started_leaves_nothing),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
