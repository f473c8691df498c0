/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "base/memory.h"

static char root[64];

/* A file below root, with the folders above it. */
static void put(const char *name, const char *text)
{
	char path[512];
	FILE *f;

	snprintf(path, sizeof(path), "%s%s", root, name);
	for (char *c = path + strlen(root) + 1; (c = strchr(c, '/')); c++) {
		*c = '\0';
		mkdir(path, 0700);
		*c = '/';
	}
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static int begin(void **state)
{
	strcpy(root, "/tmp/hale-memory-XXXXXX");
	if (!mkdtemp(root))
		return 1;
	put("/proc/meminfo", "MemTotal:       1000 kB\nMemFree:  9 kB\nMemAvailable:    600 kB\n");
	put("/proc/self/cgroup", "0::/a/b\n");
	return 0;
}

static int end(void **state)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -r %s", root);
	return system(command);
}

static struct memory_room look(void)
{
	struct memory_room room;

	assert_true(memory_look(root, &room));
	return room;
}

static void the_machines_memory_without_limits(void **state)
{
	assert_int_equal(look().total, 1000 * 1024);
	assert_int_equal(look().available, 600 * 1024);
	put("/sys/fs/cgroup/a/b/memory.max", "max\n");
	put("/sys/fs/cgroup/a/b/memory.current", "4096\n");
	assert_int_equal(look().available, 600 * 1024);
}

static void the_tightest_of_the_groups_counts(void **state)
{
	put("/sys/fs/cgroup/a/b/memory.max", "500000\n");
	put("/sys/fs/cgroup/a/b/memory.current", "100000\n");
	assert_int_equal(look().total, 500000);
	assert_int_equal(look().available, 400000);
	put("/sys/fs/cgroup/a/b/memory.stat", "anon 1\ninactive_file 50000\n");
	assert_int_equal(look().available, 450000);
	put("/sys/fs/cgroup/a/memory.max", "300000\n");
	put("/sys/fs/cgroup/a/memory.current", "200000\n");
	assert_int_equal(look().total, 300000);
	assert_int_equal(look().available, 100000);
	put("/sys/fs/cgroup/a/memory.current", "300001\n");
	assert_int_equal(look().available, 0);
}

static void the_first_version_of_control_groups(void **state)
{
	put("/proc/self/cgroup", "12:cpu,cpuacct:/x\n4:memory:/a\n0::/\n");
	put("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "300000\n");
	put("/sys/fs/cgroup/memory/a/memory.usage_in_bytes", "100000\n");
	put("/sys/fs/cgroup/memory/a/memory.stat", "total_inactive_file 30000\n");
	assert_int_equal(look().available, 230000);
}

static void what_is_no_proc(void **state)
{
	struct memory_room room;

	assert_false(memory_look("/nowhere", &room));
	put("/proc/self/cgroup", "garbage\n:\n0:\n");
	assert_int_equal(look().available, 600 * 1024);
	assert_true(memory_look("", &room));
	assert_true(room.available <= room.total && room.total > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(the_machines_memory_without_limits, begin, end),
	    cmocka_unit_test_setup_teardown(the_tightest_of_the_groups_counts, begin, end),
	    cmocka_unit_test_setup_teardown(the_first_version_of_control_groups, begin, end),
	    cmocka_unit_test_setup_teardown(what_is_no_proc, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
