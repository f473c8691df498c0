/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "rio/files.h"

static char top[64];
static int root;

static int begin(void **state)
{
	strcpy(top, "/tmp/hale-rio-XXXXXX");
	if (!mkdtemp(top) || chdir(top) != 0 || mkdir("root", 0700) || mkdir("root/in", 0700))
		return -1;
	if (symlink("../secret", "root/out") || symlink("in", "root/inside") ||
	    symlink("/", "root/slash") || symlink("/proc/self/cwd", "root/magic"))
		return -1;
	fclose(fopen("secret", "w"));
	root = open("root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return root < 0;
}

static int end(void **state)
{
	char command[100];

	close(root);
	snprintf(command, sizeof(command), "rm -rf %s", top);
	return chdir("/") || system(command);
}

static int write_file(const char *path, const char *text, bool keep)
{
	struct rio_file f;
	int error = rio_file_write(&f, root, path, 0640, true);

	if (error)
		return error;
	assert_int_equal(write(f.fd, text, strlen(text)), (ssize_t)strlen(text));
	if (keep)
		error = rio_file_keep(&f, true);
	rio_file_close(&f);
	return error;
}

static void expect_text(const char *path, const char *text)
{
	char found[64] = "";
	int fd = open(path, O_RDONLY);

	assert_true(fd >= 0);
	assert_int_equal(read(fd, found, sizeof(found) - 1), (ssize_t)strlen(text));
	assert_string_equal(found, text);
	close(fd);
}

static int read_error(const char *path)
{
	struct rio_file f;
	int error = rio_file_read(&f, root, path);

	if (!error)
		rio_file_close(&f);
	return error;
}

static void paths_that_leave_the_folder_are_refused(void **state)
{
	static const char *const bad[] = {"../secret", "in/../../secret",    "/etc/hostname",
					  "out",       "slash/etc/hostname", "magic/secret"};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		int error = read_error(bad[i]);

		if (error != EACCES && error != ELOOP)
			fail_msg("%s can be read: %d", bad[i], error);
	}
	assert_int_equal(write_file("../new", "x", true), EACCES);
	assert_int_equal(write_file("slash/tmp/new", "x", true), EACCES);
	assert_int_equal(write_file("out", "x", true), EEXIST);
	assert_int_equal(access("new", F_OK), -1);
	expect_text("secret", "");
}

static void links_inside_are_followed(void **state)
{
	assert_int_equal(write_file("inside/a", "text", true), 0);
	expect_text("root/in/a", "text");
	assert_int_equal(read_error("inside/a"), 0);
}

static void a_file_appears_whole_or_not_at_all(void **state)
{
	struct stat st;

	assert_int_equal(write_file("in/b", "old", true), 0);
	assert_int_equal(write_file("in/b", "half", false), 0);
	expect_text("root/in/b", "old");
	assert_int_equal(write_file("in/b", "new", true), 0);
	expect_text("root/in/b", "new");
	assert_int_equal(stat("root/in/b", &st), 0);
	assert_int_equal(st.st_mode & 07777, 0640);
	assert_int_equal(system("test -z \"$(find root -name '*.part')\""), 0);
}

static void what_is_no_file_is_refused(void **state)
{
	assert_int_equal(mkfifo("root/pipe", 0600), 0);
	assert_int_equal(read_error("pipe"), EINVAL);
	assert_int_equal(read_error("in"), EISDIR);
	assert_int_equal(read_error("nothing"), ENOENT);
	assert_int_equal(write_file("pipe", "x", true), EEXIST);
	assert_int_equal(write_file("in", "x", true), EISDIR);
	assert_int_equal(write_file("in/", "x", true), EISDIR);
	assert_int_equal(write_file("in/..", "x", true), EISDIR);
	assert_int_equal(write_file("nothing/x", "x", true), ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(paths_that_leave_the_folder_are_refused),
	    cmocka_unit_test(links_inside_are_followed),
	    cmocka_unit_test(a_file_appears_whole_or_not_at_all),
	    cmocka_unit_test(what_is_no_file_is_refused),
	};
	return cmocka_run_group_tests(tests, begin, end);
}
