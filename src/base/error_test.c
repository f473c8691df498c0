/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <setjmp.h>
#include <cmocka.h>
#include "base/base.h"
#include "base/fmt.h"

/* Formats by both and compares text and length. */
#define SAME(...)                                                                                  \
	do {                                                                                       \
		char ours[256], libc[256];                                                         \
		size_t n = fmt_print(ours, sizeof(ours), __VA_ARGS__);                             \
		int m = snprintf(libc, sizeof(libc), __VA_ARGS__);                                 \
		assert_string_equal(ours, libc);                                                   \
		assert_int_equal(n, m);                                                            \
	} while (0)

static void formats_integers_like_printf(void **state)
{
	SAME("%d %i %u", -5, INT_MIN, UINT_MAX);
	SAME("%ld %lu %lld", LONG_MIN, ULONG_MAX, LLONG_MAX);
	SAME("%zu %jd %td", (size_t)7, (intmax_t)-7, (ptrdiff_t)9);
	SAME("%hd %hhd %hu %hhu", 70000, 300, 70000, 300);
	SAME("%x %X %#x %#X %o %#o", 255u, 255u, 255u, 255u, 8u, 8u);
	SAME("[%5d] [%-5d] [%05d] [%+d] [% d] [%.4d] [%8.4d] [%.0d]", 42, 42, -42, 42, 42, 42, 42,
	     0);
	SAME("[%*d] [%-*d] [%.*d]", 6, 1, 6, 2, 3, 4);
	SAME("%016lx %#18lx", 0xdeadbeeful, 0xdeadbeeful);
}

static void formats_text_like_printf(void **state)
{
	SAME("%s|%10s|%-10s|%.2s|%c%%", "abc", "abc", "abc", "abc", 'x');
	SAME("%.*s", 3, "abcdef");
	SAME("%p", (void *)0x1234);
	SAME("%.1f %8.3f %g %e", 2.55, -1.0, 0.1, 12345.678);
}

static void percent_m_is_the_text_of_errno(void **state)
{
	char buf[64];
	errno = ENOENT;
	fmt_print(buf, sizeof(buf), "open: %m");
	assert_string_equal(buf, "open: No such file or directory");
	assert_int_equal(errno, ENOENT);
}

static void truncation_keeps_the_nul_and_tells_the_length(void **state)
{
	char buf[4] = "zzz";
	assert_int_equal(fmt_print(buf, sizeof(buf), "%d", 123456), 6);
	assert_string_equal(buf, "123");
	assert_int_equal(fmt_print(NULL, 0, "%d", 123456), 6);
}

static void error_set_fills_the_object_and_returns_the_code(void **state)
{
	struct error err;
	assert_int_equal(error_set(&err, HALE_ERR_STORE, "no room on %s", "/x"), HALE_ERR_STORE);
	assert_int_equal(err.code, HALE_ERR_STORE);
	assert_string_equal(err.text, "no room on /x");
	assert_int_equal(error_set(NULL, HALE_ERR_NODE, "nobody asks"), HALE_ERR_NODE);
}

static void error_sys_appends_the_text_of_errno(void **state)
{
	struct error err;
	errno = EACCES;
	assert_int_equal(error_sys(&err, HALE_ERR_SYSTEM, "can't open '%s'", "a"), HALE_ERR_SYSTEM);
	assert_string_equal(err.text, "can't open 'a': Permission denied");
	assert_int_equal(errno, EACCES);
}

static void error_text_that_is_too_long_is_cut(void **state)
{
	struct error err;
	char big[1000];
	memset(big, 'a', sizeof(big) - 1);
	big[sizeof(big) - 1] = 0;
	errno = EIO;
	error_sys(&err, HALE_ERR_SYSTEM, "%s", big);
	assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
}

static void every_code_has_a_name(void **state)
{
	static const hale_status_t codes[] = {
	    HALE_OK,
	    HALE_ERR_ARGUMENT,
	    HALE_ERR_UNSUPPORTED,
	    HALE_ERR_STATE,
	    HALE_ERR_MEMORY,
	    HALE_ERR_SYSTEM,
	    HALE_ERR_TIMEOUT,
	    HALE_ERR_AGAIN,
	    HALE_ERR_PROCESS,
	    HALE_ERR_REPLICA,
	    HALE_ERR_NODE,
	    HALE_ERR_LINK,
	    HALE_ERR_PROTOCOL,
	    HALE_ERR_STORE,
	    HALE_ERR_STORE_FULL,
	    HALE_ERR_IMAGE_TORN,
	    HALE_ERR_IMAGE_CORRUPT,
	    HALE_ERR_IMAGE_MISSING,
	    HALE_ERR_IMAGE_MISMATCH,
	    HALE_ERR_DEVICE,
	};
	for (size_t i = 0; i < ARRAY_LEN(codes); i++)
		assert_string_not_equal(hale_status_name(codes[i]), "unknown error");
	assert_string_equal(hale_status_name((hale_status_t)9999), "unknown error");
}

/* What a child that runs `body` writes to stderr. */
static void stderr_of(void (*body)(void), char *buf, size_t cap)
{
	int p[2];
	assert_int_equal(pipe(p), 0);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		dup2(p[1], 2);
		body();
		_exit(0);
	}
	close(p[1]);
	size_t n = 0;
	ssize_t got;
	while ((got = read(p[0], buf + n, cap - 1 - n)) > 0)
		n += (size_t)got;
	buf[n] = 0;
	close(p[0]);
	waitpid(pid, NULL, 0);
}

static void log_at_each_level(void)
{
	setenv("HALE_LOG", "info", 1);
	log_init_from_env();
	log_set_prefix("rank 3: ");
	log_warn("one %d", 1);
	log_info("two %s", "2");
	log_debug("not shown");
	log_set_level(LOG_QUIET);
	log_warn("not shown");
}

static void log_shows_lines_up_to_its_level_with_the_prefix(void **state)
{
	char text[256];
	stderr_of(log_at_each_level, text, sizeof(text));
	assert_string_equal(text, "hale: rank 3: one 1\nhale: rank 3: two 2\n");
}

static void log_a_long_line(void)
{
	char big[3000];
	memset(big, 'b', sizeof(big) - 1);
	big[sizeof(big) - 1] = 0;
	log_warn("%s", big);
}

static void log_line_that_is_too_long_still_ends_with_a_newline(void **state)
{
	char text[4096];
	stderr_of(log_a_long_line, text, sizeof(text));
	assert_int_equal(strlen(text), 1023);
	assert_int_equal(text[1022], '\n');
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(formats_integers_like_printf),
	    cmocka_unit_test(formats_text_like_printf),
	    cmocka_unit_test(percent_m_is_the_text_of_errno),
	    cmocka_unit_test(truncation_keeps_the_nul_and_tells_the_length),
	    cmocka_unit_test(error_set_fills_the_object_and_returns_the_code),
	    cmocka_unit_test(error_sys_appends_the_text_of_errno),
	    cmocka_unit_test(error_text_that_is_too_long_is_cut),
	    cmocka_unit_test(every_code_has_a_name),
	    cmocka_unit_test(log_shows_lines_up_to_its_level_with_the_prefix),
	    cmocka_unit_test(log_line_that_is_too_long_still_ends_with_a_newline),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
