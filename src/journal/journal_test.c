// SPDX-License-Identifier: BSD-3-Clause
/* A job in one process: it changes files as programs do, through the journal, and then everything
 * is undone and compared with what there was. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "journal/format.h"
#include "journal/journal.h"
#include "journal/undo.h"

static char root[64], job[96], folder[128];

/* ---- a program ---- */

static void put(const char *name, int flags, const char *text)
{
	if (journal_on)
		journal_opening(AT_FDCWD, name, O_WRONLY | flags);
	int fd = open(name, O_WRONLY | flags, 0640);
	assert_true(fd >= 0);
	if (journal_on)
		journal_opened(fd);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static void append(const char *name, const char *text)
{
	put(name, O_CREAT | O_APPEND, text);
}

static void anew(const char *name, const char *text)
{
	put(name, O_CREAT | O_TRUNC, text);
}

static void take_away(const char *name)
{
	journal_removing(AT_FDCWD, name);
	assert_int_equal(remove(name), 0);
}

static void move(const char *from, const char *to)
{
	journal_renaming(AT_FDCWD, from, AT_FDCWD, to, false);
	assert_int_equal(rename(from, to), 0);
}

static void folder_make(const char *name)
{
	journal_making(AT_FDCWD, name);
	assert_int_equal(mkdir(name, 0750), 0);
}

/* ---- comparing ---- */

static void add(char *all, size_t cap, const char *fmt, ...)
{
	size_t len = strlen(all);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(all + len, cap - len, fmt, ap);
	va_end(ap);
}

static void describe(const char *path, char *all, size_t cap)
{
	char text[256] = "", *name;
	struct stat st;

	assert_int_equal(lstat(path, &st), 0);
	add(all, cap, "%s %o ", path, st.st_mode);
	if (S_ISFIFO(st.st_mode)) {
		add(all, cap, "\n");
	} else if (S_ISLNK(st.st_mode)) {
		assert_true(readlink(path, text, sizeof(text) - 1) > 0);
		add(all, cap, "-> %s\n", text);
	} else if (S_ISDIR(st.st_mode)) {
		struct dirent **list;
		int n = scandir(path, &list, NULL, alphasort);

		add(all, cap, "\n");
		for (int i = 0; i < n; i++) {
			if (list[i]->d_name[0] != '.') {
				assert_true(asprintf(&name, "%s/%s", path, list[i]->d_name) > 0);
				describe(name, all, cap);
				free(name);
			}
			free(list[i]);
		}
		free(list);
	} else {
		FILE *f = fopen(path, "r");
		size_t n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;

		assert_non_null(f);
		text[n] = 0;
		fclose(f);
		add(all, cap, "%ld %ld.%09ld [%s]\n", (long)st.st_size, (long)st.st_mtim.tv_sec,
		    st.st_mtim.tv_nsec, text);
	}
}

static char *tree(void)
{
	char *all = calloc(1, 1 << 16);

	assert_non_null(all);
	describe(".", all, 1 << 16);
	return all;
}

static void is_as(char *before)
{
	char *after = tree();

	assert_string_equal(after, before);
	free(after);
	free(before);
}

/* A rollback: afterwards this is the process that was restored. */
static void undo_to(uint32_t id)
{
	struct error err = {HALE_OK, ""};

	assert_int_equal(journal_undo(job, id, &err), HALE_OK);
	assert_true(journal_is_empty(job, id));
	journal_restored(folder, id);
}

/* The job has begun, in a folder with a few files. */
static int begin(void **state)
{
	struct error err;

	snprintf(root, sizeof(root), "/tmp/hale-journal.XXXXXX");
	assert_non_null(mkdtemp(root));
	snprintf(job, sizeof(job), "%s/job", root);
	snprintf(folder, sizeof(folder), "%s/journal", job);
	assert_int_equal(mkdir(job, 0700), 0);
	assert_int_equal(journal_make(job, &err), HALE_OK);
	assert_int_equal(chdir(root), 0);
	assert_int_equal(mkdir("work", 0700), 0);
	assert_int_equal(chdir("work"), 0);
	journal_on = false;
	append("log", "old\n");
	append("state", "before");
	assert_int_equal(mkdir("empty", 0711), 0);
	assert_int_equal(symlink("log", "link"), 0);
	journal_start(folder, 0, true);
	assert_true(journal_on);
	return 0;
}

static int end(void **state)
{
	char command[160];

	journal_on = false;
	assert_int_equal(chdir("/"), 0);
	snprintf(command, sizeof(command), "rm -rf %s", root);
	return system(command);
}

/* ---- tests ---- */

static void what_was_appended_goes(void **state)
{
	char *before = tree();

	for (int i = 0; i < 10; i++)
		append("log", "new\n");
	append("another", "line");
	append("another", "line");
	undo_to(0);
	is_as(before);
}

static void what_was_overwritten_comes_back(void **state)
{
	char *before = tree();

	anew("state", "x");
	anew("state", "something longer than before");
	put("log", 0, "OLD");
	journal_truncating("state", 2);
	assert_int_equal(truncate("state", 2), 0);
	undo_to(0);
	is_as(before);
}

static void names_come_back(void **state)
{
	char *before = tree();

	take_away("log");
	append("log", "another one");
	anew("state.new", "after");
	move("state.new", "state");
	anew("state.new", "later");
	move("state.new", "state");
	take_away("link");
	take_away("empty");
	folder_make("made");
	append("made/file", "in it");
	move("made", "moved");
	append("moved/second", "in it, too");
	journal_making(AT_FDCWD, "hard");
	assert_int_equal(link("log", "hard"), 0);
	journal_making(AT_FDCWD, "soft");
	assert_int_equal(symlink("nowhere", "soft"), 0);
	put("soft", O_CREAT, "through a link that led nowhere");
	undo_to(0);
	is_as(before);
}

static void a_file_that_goes_round_comes_back(void **state)
{
	char *before = tree();

	move("log", "a");
	move("state", "log");
	move("a", "state");
	append("log", "x");
	anew("state", "y");
	take_away("log");
	undo_to(0);
	is_as(before);
}

/* Files and the journal have times of some milliseconds: a file that is as old as the journal and
 * was renamed is not taken for one that was made under its new name. */
static void a_file_as_old_as_the_journal_may_be_renamed(void **state)
{
	for (int i = 0; i < 50; i++) {
		struct stat st;

		journal_on = false;
		assert_int_equal(unlink("state"), 0);
		append("state", "before");
		journal_on = true;
		move("log", "a");
		move("state", "log");
		append("log", "x");
		undo_to(0);
		assert_int_equal(stat("state", &st), 0);
		assert_int_equal(st.st_size, 6);
	}
}

/* One that nobody has open, of which no image knows. */
static void named_pipes(void **state)
{
	char *before;

	assert_int_equal(mkfifo("pipe", 0640), 0);
	assert_int_equal(mkfifo("other", 0600), 0);
	before = tree();
	journal_making(AT_FDCWD, "new");
	assert_int_equal(mkfifo("new", 0600), 0);
	take_away("pipe");
	take_away("new");
	move("state", "other");
	undo_to(0);
	is_as(before);
}

static void an_append_and_then_a_cut_of_the_open_file(void **state)
{
	char *before = tree();
	int fd;

	journal_opening(AT_FDCWD, "log", O_WRONLY | O_APPEND);
	fd = open("log", O_WRONLY | O_APPEND);
	assert_int_equal(write(fd, "more", 4), 4);
	journal_truncating_fd(fd, 0);
	assert_int_equal(ftruncate(fd, 0), 0);
	close(fd);
	undo_to(0);
	is_as(before);
}

/* The program has it open since before the checkpoint, and has read some of it. */
static void a_cut_of_a_file_that_is_half_read(void **state)
{
	char *before, rest[8] = "";
	int fd = open("state", O_RDWR);

	assert_int_equal(read(fd, rest, 2), 2);
	journal_cut(1);
	before = tree();
	journal_truncating_fd(fd, 3);
	assert_int_equal(ftruncate(fd, 3), 0);
	assert_int_equal(lseek(fd, 0, SEEK_CUR), 2);
	assert_int_equal(read(fd, rest, sizeof(rest)), 1);
	close(fd);
	undo_to(1);
	is_as(before);
}

/* A checkpoint that was given up leaves two epochs; one that is complete leaves the one before to
 * be dropped. */
static void epochs(void **state)
{
	char *first = tree(), *second, path[160];
	struct error err;

	append("log", "epoch 0\n");
	journal_cut(1);
	second = tree();
	append("log", "epoch 1\n");
	journal_cut(2);
	append("log", "epoch 2\n");
	take_away("state");
	assert_true(journal_is_empty(job, 3));
	assert_false(journal_is_empty(job, 2));
	undo_to(1);
	is_as(second);
	append("log", "again\n");
	undo_to(0);
	is_as(first);
	journal_drop(job, 2); /* nothing has changed since the beginning */
	assert_int_equal(journal_undo(job, 0, &err), HALE_OK);
	append("log", "epoch 2 once more\n");
	journal_cut(3);
	append("log", "epoch 3\n");
	assert_true(journal_drop(job, 3) || access(folder, F_OK) == 0);
	assert_false(journal_is_empty(job, 1));
	assert_int_equal(journal_undo(job, 1, &err), HALE_ERR_STORE);
	assert_non_null(strstr(err.text, "goes back to checkpoint 3 only"));
	journal_remove(job);
	snprintf(path, sizeof(path), "%s", folder);
	assert_int_equal(access(path, F_OK), -1);
}

/* Whoever undoes it may be killed at any moment, and the next one begins anew. */
static void undoing_twice_is_undoing_once(void **state)
{
	char *before, command[700];

	journal_on = false;
	append("kept", "for long");
	journal_on = true;
	usleep(20000);
	journal_cut(1);
	before = tree();

	take_away("log");
	append("log", "x");
	anew("state", "y");
	move("state", "gone");
	anew("state", "z");
	take_away("state");
	folder_make("d");
	append("d/f", "f");
	move("kept", "kept~");
	append("kept", "written anew beside its backup");
	move("empty", "full");
	folder_make("empty");
	snprintf(command, sizeof(command),
		 "mkdir %s/copy && cp -a %s/1/rank-0.log %s/copy/ && ln %s/1/save-* %s/copy/",
		 folder, folder, folder, folder, folder);
	assert_int_equal(system(command), 0);
	undo_to(1);
	snprintf(command, sizeof(command), "mv %s/copy %s/1", folder, folder);
	assert_int_equal(system(command), 0);
	undo_to(1);
	is_as(before);
}

/* A child by fork knows nothing of what its parent has written down, and may write it once more. */
static void children_and_ranks_share_files(void **state)
{
	char *before = tree();
	int status;

	for (int i = 0; i < 3; i++) {
		append("log", "parent\n");
		pid_t pid = fork();
		if (pid == 0) {
			append("log", "child\n");
			anew("state", "of the child");
			append("child", "made");
			_exit(0);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
		take_away("child");
	}
	undo_to(0);
	is_as(before);
}

/* What one process knows of names is of the folder, not of the path: another one may rename it. */
static void names_are_of_folders_and_not_of_paths(void **state)
{
	char *before, byte = 0;
	int go[2], done[2], status;

	folder_make("d");
	folder_make("f");
	journal_cut(1);
	before = tree();
	assert_int_equal(pipe(go) | pipe(done), 0);
	pid_t pid = fork();
	if (pid == 0) {
		append("d/x", "in the first d");
		if (write(done[1], &byte, 1) != 1 || read(go[0], &byte, 1) != 1)
			_exit(1);
		append("d/x", "in what was f");
		_exit(0);
	}
	assert_int_equal(read(done[0], &byte, 1), 1);
	move("d", "e");
	move("f", "d");
	assert_int_equal(write(go[1], &byte, 1), 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	for (int i = 0; i < 2; i++) {
		close(go[i]);
		close(done[i]);
	}
	undo_to(1);
	is_as(before);
}

static void a_link_that_was_renamed_and_removed_comes_back(void **state)
{
	char *before;

	assert_int_equal(symlink("somewhere", "old"), 0);
	assert_int_equal(mkfifo("pipe", 0600), 0);
	before = tree();
	move("old", "new");
	take_away("new");
	move("pipe", "other");
	take_away("other");
	undo_to(0);
	is_as(before);
}

static void names_that_end_as_those_of_removed_files(void **state)
{
	char *before;

	append("state (deleted)", "one");
	journal_cut(1);
	before = tree();
	anew("state (deleted)", "two");
	undo_to(1);
	is_as(before);
}

#include "journal/journal_process_cases.h"

/* Its content was saved as a copy, before its name went; what comes back may get its number. */
static void a_changed_file_that_goes_comes_back_as_another_one(void **state)
{
	char *before = tree();

	append("state", ", and more");
	anew("state", "of now");
	take_away("state");
	undo_to(0);
	is_as(before);
}

static void two_names_of_a_file_are_two_again(void **state)
{
	struct stat one, two;

	journal_on = false;
	assert_int_equal(link("state", "second"), 0);
	journal_on = true;
	char *before = tree();
	anew("state", "of now");
	take_away("state");
	take_away("second");
	undo_to(0);
	is_as(before);
	assert_int_equal(stat("state", &one), 0);
	assert_int_equal(stat("second", &two), 0);
	assert_int_equal(one.st_ino, two.st_ino);
}

static void a_torn_record_hides_no_other_one(void **state)
{
	char *before = tree(), path[160];

	append("log", "x");
	snprintf(path, sizeof(path), "%s/0/rank-0.log", folder);
	int fd = open(path, O_WRONLY | O_APPEND);
	assert_int_equal(write(fd, "JNL2 and a half", 15), 15);
	close(fd);
	append("made", "y");
	anew("state", "z");
	undo_to(0);
	is_as(before);
}

/* The journal's disk is full, say: the change goes on, and a rollback says so. */
static void what_could_not_be_written_down_is_told(void **state)
{
	char path[160];
	struct error err;

	snprintf(path, sizeof(path), "%s/0", folder);
	int fd = open(path, O_WRONLY | O_CREAT, 0600); /* in the way of the folder */
	close(fd);
	log_set_level(LOG_QUIET);
	append("log", "x");
	log_set_level(LOG_WARN);
	unlink(path);
	assert_false(journal_is_empty(job, 0));
	assert_int_equal(journal_undo(job, 0, &err), HALE_ERR_STORE);
	assert_non_null(strstr(err.text, "changed files without protection"));
}

static void what_is_too_large_is_told(void **state)
{
	struct error err;

	setenv("HALE_FILE_SAVE_MAX", "4", 1);
	log_set_level(LOG_QUIET);
	anew("state", "x");
	log_set_level(LOG_WARN);
	unsetenv("HALE_FILE_SAVE_MAX");
	assert_int_equal(journal_undo(job, 0, &err), HALE_ERR_STORE);
}

static void write_at(int fd, uint64_t size, uint64_t at, const char *text)
{
	journal_writing(fd, size, at, strlen(text));
	assert_int_equal(pwrite(fd, text, strlen(text), (off_t)at), strlen(text));
}

/* Only what is overwritten is saved, once or more often; what is behind the end goes. */
static void ranges_that_were_overwritten_come_back(void **state)
{
	put("data", O_CREAT | O_TRUNC, "the quick brown fox jumps");
	journal_cut(1);
	char *before = tree();
	journal_opening(AT_FDCWD, "data", O_RDWR | O_APPEND);
	int fd = open("data", O_RDWR);
	write_at(fd, 25, 4, "slow ");
	write_at(fd, 25, 6, "ick and white");
	write_at(fd, 25, 20, "jumped over and over");
	write_at(fd, 25, 0, "a");
	journal_writing(fd, 25, 10, 15); /* cut, and grown again */
	assert_int_equal(ftruncate(fd, 10), 0);
	write_at(fd, 25, 15, "xyz");
	close(fd);
	undo_to(1);
	char *after = tree();
	assert_string_equal(before, after);
	free(before);
	free(after);
}

static off_t bytes_in(const char *name)
{
	struct stat st;

	assert_int_equal(stat(name, &st), 0);
	return st.st_blocks * 512;
}

static void byte_is(int fd, off_t at, char want)
{
	char got = 'x';

	assert_int_equal(pread(fd, &got, 1, at), 1);
	assert_int_equal(got, want);
}

/* A file of 4 GiB that has two bytes: written into, cut, or both. The journal stays as small. */
static void holes_are_saved_as_holes(void **state)
{
	enum { WRITE = 1, CUT = 2 };
	const off_t size = 4l << 30, half = size / 2;

	for (int what = WRITE; what <= (WRITE | CUT); what++) {
		char ranges[160], name[32];
		struct stat st;
		snprintf(name, sizeof(name), "large%d", what);
		put(name, O_CREAT | O_TRUNC, "a");
		int fd = open(name, O_RDWR);
		assert_int_equal(pwrite(fd, "b", 1, half), 1);
		assert_int_equal(ftruncate(fd, size), 0);
		off_t had = bytes_in(name);
		journal_cut((uint32_t)what);
		if (what & WRITE) { /* 8 MiB around what is there, in one call */
			journal_writing(fd, (uint64_t)size, (uint64_t)half - (4 << 20), 8 << 20);
			for (off_t at = half - (4 << 20); at < half + (4 << 20); at += 4096)
				assert_int_equal(pwrite(fd, "c", 1, at), 1);
		}
		if (what & CUT) {
			journal_writing(fd, (uint64_t)size, 0, (uint64_t)size);
			assert_int_equal(ftruncate(fd, 0), 0);
			assert_int_equal(pwrite(fd, "d", 1, half + 4096), 1);
		}
		snprintf(ranges, sizeof(ranges), "%s/%d/ranges-0", folder, what);
		assert_int_equal(stat(ranges, &st), 0);
		assert_true(st.st_size < 64 << 10);
		undo_to((uint32_t)what);
		assert_int_equal(stat(name, &st), 0);
		assert_int_equal(st.st_size, size);
		byte_is(fd, 0, 'a');
		byte_is(fd, half, 'b');
		byte_is(fd, half - (4 << 20), 0);
		byte_is(fd, half + 4096, 0);
		assert_true(bytes_in(name) <= had + 65536);
		close(fd);
	}
}

/* Descriptors that can only write. */
static void ranges_of_a_file_that_is_only_written(void **state)
{
	put("data", O_CREAT | O_TRUNC, "0123456789");
	journal_cut(1);
	char *before = tree();
	int fd = open("data", O_WRONLY);
	write_at(fd, 10, 2, "abc");
	write_at(fd, 10, 8, "defgh");
	close(fd);
	undo_to(1);
	char *after = tree();
	assert_string_equal(before, after);
	free(before);
	free(after);
}

/* In a folder that others may write to, a journal is nobody's. */
static void a_journal_of_somebody_else_is_not_followed(void **state)
{
	struct stat st;

	append("made", "x");
	assert_int_equal(chmod(folder, 0777), 0);
	undo_to(0);
	assert_int_equal(stat("made", &st), 0);
	assert_int_equal(chmod(folder, 0700), 0);
	undo_to(0);
	assert_int_equal(stat("made", &st), -1);
}

/* A folder on the way to a file has become a symbolic link, perhaps another user's. */
static void links_on_the_way_are_not_followed(void **state)
{
	struct error err;
	struct stat st;

	folder_make("d");
	append("d/f", "x");
	assert_int_equal(rename("d", "e"), 0); /* not through the journal */
	assert_int_equal(symlink("e", "d"), 0);
	journal_undo(job, 0, &err);
	assert_int_equal(stat("e/f", &st), 0);
}

#define T(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    T(what_was_appended_goes),
	    T(what_was_overwritten_comes_back),
	    T(names_come_back),
	    T(a_file_that_goes_round_comes_back),
	    T(a_file_as_old_as_the_journal_may_be_renamed),
	    T(named_pipes),
	    T(an_append_and_then_a_cut_of_the_open_file),
	    T(a_cut_of_a_file_that_is_half_read),
	    T(epochs),
	    T(undoing_twice_is_undoing_once),
	    T(children_and_ranks_share_files),
	    T(names_are_of_folders_and_not_of_paths),
	    T(a_link_that_was_renamed_and_removed_comes_back),
	    T(a_child_by_clone_goes_by_the_epoch_of_its_rank),
	    T(a_child_that_is_older_than_the_journal_writes_it),
	    T(names_that_end_as_those_of_removed_files),
	    T(a_rank_is_past_a_checkpoint_before_another),
	    T(handlers_change_files_too),
	    T(a_child_by_fork_knows_nothing_of_a_later_epoch),
	    T(a_small_limit_on_files_is_the_programs_alone),
	    T(records_need_no_descriptor_of_the_program),
	    T(a_changed_file_that_goes_comes_back_as_another_one),
	    T(two_names_of_a_file_are_two_again),
	    T(a_torn_record_hides_no_other_one),
	    T(ranges_that_were_overwritten_come_back),
	    T(holes_are_saved_as_holes),
	    T(ranges_of_a_file_that_is_only_written),
	    T(what_could_not_be_written_down_is_told),
	    T(what_is_too_large_is_told),
	    T(a_journal_of_somebody_else_is_not_followed),
	    T(links_on_the_way_are_not_followed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
