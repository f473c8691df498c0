// SPDX-License-Identifier: BSD-3-Clause
/* What every kind of descriptor must do, on every kind: a new one is a line of `fd_members`.
 *
 * A process opens a descriptor of the kind at HERE and a duplicate at TWIN, captures both, spoils
 * what it can, and restores them into itself. Both are there again then, are one open file, have
 * their own flags, and do what they did. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#include "image/fd/fd_members.h"

/* ---- the suite ---- */

/* What is another rank's is the parent's. */
static void capture(struct fd_table *t, bool beside, struct arena *a, struct error *err)
{
	static int32_t parent;
	struct stat st;

	MUST(arena_init(a, NULL, 64 << 20));
	MUST(fstat(STDOUT_FILENO, &st) == 0);
	*t = (struct fd_table){.arena = a, .proc = "/proc/thread-self", .save_max = 1 << 20};
	t->stream[1] = (struct file_identity){st.st_dev, st.st_ino};
	parent = getppid();
	t->beside = &parent;
	t->beside_count = beside;
	if (fd_table_scan(t, err) != HALE_OK)
		fd_must_at(false, err->text, __FILE__, __LINE__);
}

static const struct fd_record *record_of(const struct fd_table *t, int fd)
{
	for (size_t i = 0; i < t->records.count; i++) {
		const struct fd_record *r = list_at(&t->records, i);

		if (r->fd == fd)
			return r;
	}
	return NULL;
}

static void restore(const struct fd_table *t, struct arena *a, struct error *err)
{
	struct fd_restore f = {.arena = a,
			       .record = t->records.items,
			       .count = t->records.count,
			       .text = t->text.data,
			       .text_len = t->text.len,
			       .content = t->contents.items,
			       .content_count = t->contents.count,
			       .lock = t->locks.items,
			       .lock_count = t->locks.count,
			       .owner = t->owners.items,
			       .owner_count = t->owners.count,
			       .old_pid = getpid()};

	if (!fd_restore_open(&f, err) || !fd_restore_settle(&f, err) ||
	    !fd_restore_place(&f, NULL, 0, err))
		fd_must_at(false, err->text, __FILE__, __LINE__);
}

static void child(const struct fd_member *m)
{
	struct arena a;
	struct fd_table t;
	struct error err;
	const struct fd_record *here, *twin;

	m->make();
	MUST(fcntl(HERE, F_DUPFD_CLOEXEC, TWIN) == TWIN);
	capture(&t, m->kind == FD_BESIDE, &a, &err);
	here = record_of(&t, HERE);
	twin = record_of(&t, TWIN);
	MUST(here && twin && here->kind == m->kind && twin->kind == m->kind);
	MUST(here->same_as >= 0 || twin->same_as >= 0);
	MUST(!(here->fd_flags & FD_CLOEXEC) && (twin->fd_flags & FD_CLOEXEC));
	if (m->spoil)
		m->spoil();
	restore(&t, &a, &err);
	MUST(!(fcntl(HERE, F_GETFD) & FD_CLOEXEC) && (fcntl(TWIN, F_GETFD) & FD_CLOEXEC));
	m->check();
	_exit(0);
}

/* Standard input is /dev/null, output a pipe to the parent, all else is closed. */
static void run_child(const struct fd_member *m, int output)
{
	MUST(dup2(output, STDOUT_FILENO) == STDOUT_FILENO);
	close_range(2, ~0u, 0);
	fd_put(open("/dev/null", O_RDWR), STDERR_FILENO);
	fd_put(open("/dev/null", O_RDWR), STDIN_FILENO);
	child(m);
}

/* A client, or -1: the child has ended. */
static int accept_client(int listener, int output)
{
	struct pollfd p[2] = {{.fd = listener, .events = POLLIN}, {.fd = output}};
	int client = -1;

	if (poll(p, 2, -1) > 0 && p[0].revents)
		client = accept(listener, NULL, NULL);
	if (client >= 0)
		assert_int_equal(send(client, "accepted", 8, MSG_NOSIGNAL), 8);
	return client;
}

/* As the rank does that has it in its image: another socket for the client's, and the output.
 * Returns the other end. */
static int hand_out(int client, int output)
{
	struct error err;
	struct fd_unix u;
	struct stat of[2];
	int pair[2], temp[3];

	assert_int_equal(fstat(client, &of[0]), 0);
	assert_int_equal(fstat(output, &of[1]), 0);
	assert_true(fd_unix_ask(of[0].st_ino, &u));
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	const struct fd_record record[3] = {
	    {.kind = FD_SOCKET, .fd = HERE, .same_as = -1, .inode = u.peer},
	    {.kind = FD_PIPE, .fd = OTHER, .same_as = -1, .inode = of[1].st_ino},
	    {.kind = FD_BESIDE, .same_as = -1, .a = (uint64_t)getpid(), .b = 1}};
	struct fd_restore f = {.record = record, .count = 3, .temp = temp, .old_pid = getpid()};

	temp[0] = pair[0];
	temp[1] = output;
	temp[2] = -1;
	assert_true(fd_hand_all(&f, &err));
	close(pair[0]);
	return pair[1];
}

static void comes_back_as_it_was(const struct fd_member *m, int listener)
{
	int end[2], status, client = -1, output, handed = -1;
	pid_t pid;

	fd_outcome->what[0] = '\0';
	assert_int_equal(pipe(end), 0);

	pid = fork();
	if (pid == 0)
		run_child(m, end[1]);
	output = m->kind == FD_BESIDE ? dup(end[1]) : -1;
	close(end[1]);
	if (m->kind == FD_BROKER || m->kind == FD_BESIDE)
		client = accept_client(listener, end[0]);
	if (client >= 0 && output >= 0)
		handed = hand_out(client, output);
	close(output);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (status != 0)
		print_error("kind %d: %s\n", (int)m->kind, fd_outcome->what);
	assert_int_equal(status, 0);
	if (m->kind == FD_STREAM)
		assert_true(fd_reads(end[0], "said"));
	if (m->kind == FD_BESIDE)
		assert_true(fd_reads(handed, "handed"));
	close(handed);
	close(end[0]);
	if (client >= 0)
		close(client);
}

/* Every third of them is another number of the first file, every third one of the one before. */
static void look_at_many(void)
{
	enum { MANY = 300 };
	struct arena a;
	struct fd_table t;
	struct error err;
	int expected[MANY];

	close_range(STDIN_FILENO, ~0u, 0); /* who runs the test may have them as pipes */
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		fd_put(open("/dev/null", O_RDWR), fd);
	for (int i = 0; i < MANY; i++) {
		int of = i % 3 == 0 ? HERE + i : i % 3 == 1 ? HERE + i - 1 : HERE;
		int fd = of == HERE + i ? open("/proc/self/exe", O_RDONLY) : fcntl(of, F_DUPFD, 3);

		fd_put(fd, HERE + i);
		expected[i] = of == HERE + i ? -1 : of;
	}
	capture(&t, false, &a, &err);
	for (int i = 0; i < MANY; i++) {
		const struct fd_record *r = record_of(&t, HERE + i);
		const struct fd_record *of =
		    r && r->same_as >= 0 ? list_at(&t.records, (size_t)r->same_as) : NULL;

		MUST(r && (of ? of->fd : -1) == expected[i]);
	}
	_exit(0);
}

static void each_of_many_finds_its_open_file(void **state)
{
	int status;
	pid_t pid;

	(void)state;
	fd_outcome->what[0] = '\0';
	pid = fork();
	if (pid == 0)
		look_at_many();
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (status != 0)
		print_error("%s\n", fd_outcome->what);
	assert_int_equal(status, 0);
}

/* ---- what is on its way ---- */

enum { LINE = 4000, BUSY = 16 };

static int terminal_open(void)
{
	int master = open("/dev/ptmx", O_RDWR | O_NOCTTY);

	MUST(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
	MUST(open(ptsname(master), O_RDWR | O_NOCTTY) >= 0);
	return master;
}

static void terminal_type(int master)
{
	char line[LINE];

	memset(line, 'x', sizeof(line) - 1);
	line[LINE - 1] = '\n';
	MUST(write(master, line, sizeof(line)) == LINE);
}

/* The worker of the kernel that passes bytes on has these before it. */
static void be_busy(int go, int done)
{
	int master[BUSY];
	char c;

	for (int i = 0; i < BUSY; i++)
		master[i] = terminal_open();
	MUST(write(done, "r", 1) == 1 && read(go, &c, 1) == 1);
	for (int i = 0; i < BUSY; i++)
		terminal_type(master[i]);
	MUST(write(done, "w", 1) == 1);
	for (;;)
		pause();
}

static void look_at_busy_terminal(void)
{
	struct arena a;
	struct fd_table t = {.arena = &a, .proc = "/proc/thread-self", .save_max = 1 << 20};
	struct error err = {HALE_OK, ""};
	int go[2], done[2], master;
	char c;

	close_range(STDIN_FILENO, ~0u, 0);
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		fd_put(open("/dev/null", O_RDWR), fd);
	MUST(pipe(go) == 0 && pipe(done) == 0);
	if (fork() == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		be_busy(go[0], done[1]);
	}
	MUST(arena_init(&a, NULL, 64 << 20) && read(done[0], &c, 1) == 1);
	master = terminal_open();
	MUST(write(go[1], "g", 1) == 1 && read(done[0], &c, 1) == 1);
	terminal_type(master);
	close_range(STDERR_FILENO + 1, (unsigned)master - 1, 0);
	MUST(fd_table_scan(&t, &err) != HALE_OK && strstr(err.text, "nobody has read"));
	_exit(0);
}

static void bytes_on_their_way_to_a_terminal_are_waited_for(void **state)
{
	enum { ROUNDS = 5 }; /* the worker may be there first in one of them */

	(void)state;
	for (int i = 0; i < ROUNDS; i++) {
		int status;
		pid_t pid;

		fd_outcome->what[0] = '\0';
		pid = fork();
		if (pid == 0)
			look_at_busy_terminal();
		assert_int_equal(waitpid(pid, &status, 0), pid);
		if (status != 0)
			print_error("%s\n", fd_outcome->what);
		assert_int_equal(status, 0);
	}
}

static void every_kind_comes_back_as_it_was(void **state)
{
	struct sockaddr_un sa;
	socklen_t len = fd_broker_address(&sa, getpid());
	int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	(void)state;
	assert_int_equal(bind(listener, (struct sockaddr *)&sa, len), 0);
	assert_int_equal(listen(listener, 4), 0);
	for (size_t i = 0; i < fd_members_count; i++)
		comes_back_as_it_was(&fd_members[i], listener);
	close(listener);
}

static void every_kind_is_a_member_and_has_its_operations(void **state)
{
	size_t count = 0;

	(void)state;
	for (const struct fd_ops *ops; (ops = fd_kind_at(count)); count++) {
		size_t i = 0;

		while (i < fd_members_count && fd_members[i].kind != ops->kind)
			i++;
		if (i == fd_members_count)
			fail_msg("no line of members tries the kind '%s'", ops->name);
		assert_true(ops->match && ops->capture && ops->open && ops->name);
		for (size_t k = 0; k < count; k++)
			assert_int_not_equal(fd_kind_at(k)->kind, ops->kind);
	}
	for (size_t i = 0; i < fd_members_count; i++) {
		size_t k = 0;

		while (k < count && fd_kind_at(k)->kind != fd_members[i].kind)
			k++;
		assert_true(k < count);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(every_kind_is_a_member_and_has_its_operations),
	    cmocka_unit_test(every_kind_comes_back_as_it_was),
	    cmocka_unit_test(each_of_many_finds_its_open_file),
	    cmocka_unit_test(bytes_on_their_way_to_a_terminal_are_waited_for),
	};

	fd_outcome = mmap(NULL, sizeof(*fd_outcome), PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return fd_outcome == MAP_FAILED ? 1 : cmocka_run_group_tests_name("fd", tests, NULL, NULL);
}
