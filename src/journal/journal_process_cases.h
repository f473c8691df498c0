/* SPDX-License-Identifier: BSD-3-Clause */
/* The cases of journal_test.c in which more than one process, or a handler of signals, changes files
 * while checkpoints come. A part of that file, after its program and its comparing. */
#ifndef HALE_JOURNAL_PROCESS_CASES_H
#define HALE_JOURNAL_PROCESS_CASES_H

/* In a child: until its parent is past checkpoint 1. */
static void wait_for_word(int from)
{
	char byte;

	if (read(from, &byte, 1) != 1)
		_exit(1);
}

/* What the child that waits at go changes after checkpoint 1 goes with a rollback to it. */
static void changes_are_undone(pid_t child, const int go[2])
{
	char *before;
	int status;

	journal_cut(1);
	before = tree();
	assert_int_equal(write(go[1], "", 1), 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	close(go[0]);
	close(go[1]);
	undo_to(1);
	is_as(before);
}

/* A process that libc was not asked for: nobody tells the journal. */
static void a_child_by_clone_goes_by_the_epoch_of_its_rank(void **state)
{
	int go[2];

	append("made", "in epoch 0");
	assert_int_equal(pipe(go), 0);
	pid_t pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	if (pid == 0) {
		wait_for_word(go[0]);
		take_away("made");
		append("more", "of epoch 1");
		_exit(0);
	}
	changes_are_undone(pid, go);
}

/* It was there when the job's first checkpoint made the journal. */
static void a_child_that_is_older_than_the_journal_writes_it(void **state)
{
	char name[160];
	int go[2];

	snprintf(name, sizeof(name), "%s.later", folder);
	assert_int_equal(rename(folder, name), 0);
	journal_on = false;
	journal_start(folder, 0, true);
	assert_false(journal_on);
	assert_int_equal(pipe(go), 0);
	pid_t pid = fork();
	if (pid == 0) {
		wait_for_word(go[0]);
		journal_child_leave();
		append("log", "of the child");
		_exit(0);
	}
	assert_int_equal(rename(name, folder), 0);
	changes_are_undone(pid, go);
}

/* Ranks are past a checkpoint one after the other: what the later one makes in between is part of
 * it. */
static void a_rank_is_past_a_checkpoint_before_another(void **state)
{
	char *before;
	int status;

	journal_cut(1);
	append("of rank 0", "at once");
	usleep(30000);
	pid_t pid = fork();
	if (pid == 0) {
		journal_start(folder, 1, true);
		append("of rank 1", "before it is there");
		journal_cut(1);
		append("of rank 1", ", and after");
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	undo_to(1);
	before = tree();
	assert_non_null(strstr(before, "[before it is there]"));
	assert_null(strstr(before, "of rank 0"));
	free(before);
}

static volatile sig_atomic_t handled;

static void on_alarm(int sig)
{
	char name[32];

	snprintf(name, sizeof(name), "handler-%d", handled++ % 3);
	append(name, "h");
	if (handled % 2)
		take_away(name);
}

/* Changes that could not be written down. */
static bool journal_has_failures(void)
{
	struct journal_now now;
	char path[160];

	snprintf(path, sizeof(path), "%s/rank-0.now", folder);
	int fd = open(path, O_RDONLY);
	assert_int_equal(read(fd, &now, sizeof(now)), sizeof(now));
	close(fd);
	return now.failures > 0;
}

static void handlers_change_files_too(void **state)
{
	const struct itimerval often = {{0, 200}, {0, 200}}, never = {0};
	char *before = tree();

	signal(SIGALRM, on_alarm);
	setitimer(ITIMER_REAL, &often, NULL);
	for (int i = 0; i < 300; i++) {
		append("log", "m");
		anew("made", "m");
		take_away("made");
	}
	setitimer(ITIMER_REAL, &never, NULL);
	signal(SIGALRM, SIG_DFL);
	assert_true(handled > 10);
	assert_false(journal_has_failures());
	undo_to(0);
	is_as(before);
}

/* What its parent has made is known to a child by fork from the copy of its memory, and that is of
 * the epoch before. */
static void a_child_by_fork_knows_nothing_of_a_later_epoch(void **state)
{
	int go[2];

	append("made", "in epoch 0");
	assert_int_equal(pipe(go), 0);
	pid_t pid = fork();
	if (pid == 0) {
		wait_for_word(go[0]);
		take_away("made");
		_exit(0);
	}
	changes_are_undone(pid, go);
}

static void change_within(rlim_t most)
{
	char name[16];

	for (int k = 0; k < 20; k++) {
		snprintf(name, sizeof(name), "limited-%d", k);
		append(name, most ? "m" : "");
	}
	move("limited-3", "moved");
	take_away("state");
}

/* Records, and what is saved, would not fit into files as the program may write them. Behind a hard
 * limit only files that are short can be saved. */
static void a_small_limit_on_files_is_the_programs_alone(void **state)
{
	static const struct rlimit limits[] = {
	    {600, RLIM_INFINITY}, {100, RLIM_INFINITY}, {0, RLIM_INFINITY}, {600, 600}};
	char text[5001];
	int status;

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = 0;
	anew("large", text);
	journal_cut(1);
	for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
		char *before = tree();
		pid_t pid = fork();
		if (pid == 0) {
			setrlimit(RLIMIT_FSIZE, &limits[i]);
			change_within(limits[i].rlim_cur);
			if (limits[i].rlim_max == RLIM_INFINITY)
				anew("large", limits[i].rlim_cur ? "small" : "");
			_exit(0);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
		assert_false(journal_has_failures());
		undo_to(1);
		is_as(before);
		journal_cut(1);
	}
}

static void records_need_no_descriptor_of_the_program(void **state)
{
	char *before, text[301];
	int status;

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = 0;
	anew("large", text);
	journal_cut(1);
	before = tree();
	pid_t pid = fork();
	if (pid == 0) {
		while (dup(1) >= 0)
			;
		folder_make("made");
		move("log", "made/log");
		take_away("state");
		journal_truncating("large", 7);
		_exit(errno != EMFILE || truncate("large", 7) != 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_false(journal_has_failures());
	undo_to(1);
	is_as(before);
}

#endif
