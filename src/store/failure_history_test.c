/* SPDX-License-Identifier: BSD-3-Clause */
#include "store/failure_history.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

static char folder[] = "/tmp/hale-history-XXXXXX";
static char file[64];

static int set_up(void **state)
{
	if (!mkdtemp(folder))
		return -1;
	snprintf(file, sizeof(file), "%s/hale/failures", folder);
	return setenv("XDG_STATE_HOME", folder, 1);
}

static int tear_down(void **state)
{
	char path[64];

	unlink(file);
	snprintf(path, sizeof(path), "%s/hale", folder);
	rmdir(path);
	return rmdir(folder);
}

static void jobs_add_up(void **state)
{
	struct failure_history h;

	assert_false(failure_history_read(&h));
	assert_true(failure_history_add(1000, 4, 0));
	assert_true(failure_history_add(500, 2, 3));
	assert_true(failure_history_read(&h));
	assert_int_equal(h.jobs, 2);
	assert_int_equal(h.failures, 3);
	assert_true(h.node_seconds == 5000);
}

static void what_is_no_line_is_passed_over(void **state)
{
	static const char *const bad[] = {"garbage", "1 2 3",	  "1 nan 1 0",	 "1 -5 1 0",
					  "1 1 0 0", "1 1 1 1 1", "1 1e300 1 0", ""};
	struct failure_history h;
	FILE *f = fopen(file, "a");

	assert_non_null(f);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		fprintf(f, "%s\n", bad[i]);
	fclose(f);
	assert_true(failure_history_read(&h));
	assert_int_equal(h.jobs, 2);
}

static void the_file_stays_small_and_its_newest_lines_count(void **state)
{
	struct failure_history h;
	struct stat st;
	off_t most = 0;

	for (int i = 0; i < 12000; i++) {
		assert_true(failure_history_add(1, 1, 0));
		assert_int_equal(stat(file, &st), 0);
		most = st.st_size > most ? st.st_size : most;
	}
	assert_true(most > FAILURE_HISTORY_BYTES && most < 2 * FAILURE_HISTORY_BYTES + 128);
	assert_true(failure_history_read(&h));
	assert_true(h.failures == 0 && h.node_seconds == h.jobs);
}

/* Where no folder for state is named it is below the home folder, and is made. */
static void without_a_named_folder_the_home_folder_has_it(void **state)
{
	static const char *const made[] = {"", "/.local", "/.local/state", "/.local/state/hale"};
	struct failure_history h;
	char home[64], path[128];

	snprintf(home, sizeof(home), "%s/home", folder);
	unsetenv("XDG_STATE_HOME");
	setenv("HOME", home, 1);
	assert_true(failure_history_add(10, 1, 1));
	assert_true(failure_history_read(&h));
	assert_int_equal(h.jobs, 1);
	snprintf(path, sizeof(path), "%s/.local/state/hale/failures", home);
	assert_int_equal(unlink(path), 0);
	for (size_t i = 4; i-- > 0;) {
		snprintf(path, sizeof(path), "%s%s", home, made[i]);
		assert_int_equal(rmdir(path), 0);
	}
	/* a relative one would be another one in each folder */
	setenv("HOME", "home", 1);
	setenv("XDG_STATE_HOME", "state", 1);
	assert_false(failure_history_add(10, 1, 1));
	assert_false(failure_history_read(&h));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(jobs_add_up),
	    cmocka_unit_test(what_is_no_line_is_passed_over),
	    cmocka_unit_test(the_file_stays_small_and_its_newest_lines_count),
	    cmocka_unit_test(without_a_named_folder_the_home_folder_has_it),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
