// SPDX-License-Identifier: BSD-3-Clause
/* What every kind of descriptor must do, on every kind: a new one is a line of `members`.
 *
 * A process opens a descriptor of the kind at HERE and a duplicate at TWIN, captures both, spoils
 * what it can, and restores them into itself. Both are there again then, are one open file, have
 * their own flags, and do what they did. */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#include "image/fd/fd.h"

enum { HERE = 50, TWIN = 51, OTHER = 52 };

/* What happened, for the parent. */
static struct outcome {
	char what[512];
} * outcome;

static void must_at(bool good, const char *what, int line)
{
	if (good)
		return;
	snprintf(outcome->what, sizeof(outcome->what), "line %d: %.400s", line, what);
	_exit(1);
}
#define MUST(x) must_at(x, #x, __LINE__)

static void put(int fd, int number)
{
	MUST(fd >= 0 && dup2(fd, number) == number);
	if (fd != number)
		close(fd);
}

static bool reads(int fd, const char *text)
{
	char bytes[64];
	ssize_t n = read(fd, bytes, sizeof(bytes));

	return n == (ssize_t)strlen(text) && !memcmp(bytes, text, (size_t)n);
}

/* ---- the kinds ---- */

static void file_make(void)
{
	char path[] = "/tmp/hale-fd-test-XXXXXX";

	put(mkstemp(path), HERE);
	MUST(write(HERE, "abcdef", 6) == 6 && lseek(HERE, 3, SEEK_SET) == 3);
	snprintf(outcome->what, sizeof(outcome->what), "%s", path);
}

static void file_spoil(void)
{
	MUST(lseek(HERE, 0, SEEK_SET) == 0);
}

static void file_check(void)
{
	MUST(reads(HERE, "def"));
	unlink(outcome->what);
}

static void unlinked_make(void)
{
	file_make();
	unlink(outcome->what);
}

/* The folder that it was in is gone, too. */
static void removed_folder_make(void)
{
	char path[] = "/tmp/hale-fd-test-XXXXXX", inner[64];

	MUST(mkdtemp(path));
	snprintf(inner, sizeof(inner), "%s/inner", path);
	MUST(mkdir(inner, 0750) == 0);
	put(open(inner, O_RDONLY | O_DIRECTORY), HERE);
	MUST(rmdir(inner) == 0 && rmdir(path) == 0);
}

static void removed_folder_check(void)
{
	struct stat st;

	MUST(fstat(HERE, &st) == 0 && st.st_mode == (S_IFDIR | 0750) && st.st_nlink == 0);
	MUST(openat(HERE, "new", O_WRONLY | O_CREAT, 0600) == -1 && errno == ENOENT);
}

/* A gigabyte, of which nearly all is a hole. */
static void holes_make(void)
{
	unlinked_make();
	MUST(pwrite(HERE, "far", 3, 1 << 30) == 3);
}

static void holes_check(void)
{
	struct stat st;
	char bytes[3];

	MUST(fstat(HERE, &st) == 0 && st.st_size == (1 << 30) + 3 && st.st_blocks < 1000);
	MUST(pread(HERE, bytes, 3, 1 << 30) == 3 && !memcmp(bytes, "far", 3));
	MUST(pread(HERE, bytes, 3, 1 << 20) == 3 && !memcmp(bytes, "\0\0", 3));
	MUST(read(HERE, bytes, 3) == 3 && !memcmp(bytes, "def", 3));
}

static void named_holes_make(void)
{
	file_make();
	MUST(pwrite(HERE, "far", 3, 1 << 30) == 3);
}

static void named_holes_spoil(void)
{
	MUST(pwrite(HERE, "xxxxxx", 6, 0) == 6 && pwrite(HERE, "xx", 2, 1 << 20) == 2);
	MUST(ftruncate(HERE, 1 << 21) == 0);
}

static void named_holes_check(void)
{
	holes_check();
	unlink(outcome->what);
}

static void unlinked_spoil(void)
{
	MUST(pwrite(HERE, "xxxxxx", 6, 0) == 6);
}

static void unlinked_check(void)
{
	MUST(reads(HERE, "def"));
}

static void stream_make(void)
{
	put(dup(STDOUT_FILENO), HERE);
}

static void stream_check(void)
{
	MUST(write(HERE, "said", 4) == 4);
}

static void device_make(void)
{
	put(open("/dev/zero", O_RDONLY), HERE);
}

static void device_check(void)
{
	char byte = 1;

	MUST(read(HERE, &byte, 1) == 1 && byte == 0);
}

static void pipe_make(void)
{
	int end[2];

	MUST(pipe(end) == 0);
	put(end[0], HERE);
	put(end[1], OTHER);
	MUST(write(OTHER, "waits", 5) == 5);
}

static void pipe_spoil(void)
{
	MUST(reads(HERE, "waits"));
}

static void pipe_check(void)
{
	MUST(reads(HERE, "waits"));
	MUST(write(OTHER, "more", 4) == 4 && reads(TWIN, "more"));
}

static void event_make(void)
{
	put(eventfd(7, EFD_NONBLOCK), HERE);
}

static void event_spoil(void)
{
	eventfd_t v;

	MUST(eventfd_read(HERE, &v) == 0);
}

static void event_check(void)
{
	eventfd_t v;

	MUST(eventfd_read(TWIN, &v) == 0 && v == 7);
	MUST(eventfd_read(HERE, &v) != 0); /* it is one open file, and does not block */
}

static void timer_make(void)
{
	struct itimerspec t = {.it_interval.tv_sec = 1234, .it_value.tv_sec = 5678};

	put(timerfd_create(CLOCK_MONOTONIC, 0), HERE);
	MUST(timerfd_settime(HERE, 0, &t, NULL) == 0);
}

static void timer_spoil(void)
{
	MUST(timerfd_settime(HERE, 0, &(struct itimerspec){0}, NULL) == 0);
}

static void timer_check(void)
{
	struct itimerspec t;

	MUST(timerfd_gettime(TWIN, &t) == 0 && t.it_interval.tv_sec == 1234);
	MUST(t.it_value.tv_sec > 4000 && t.it_value.tv_sec <= 5678);
}

static void signal_make(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	MUST(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
	put(signalfd(-1, &set, SFD_NONBLOCK), HERE);
}

static void signal_spoil(void)
{
	sigset_t none;

	sigemptyset(&none);
	MUST(signalfd(HERE, &none, 0) == HERE);
}

static void signal_check(void)
{
	struct signalfd_siginfo info;

	MUST(kill(getpid(), SIGUSR1) == 0);
	MUST(read(HERE, &info, sizeof(info)) == (ssize_t)sizeof(info) && info.ssi_signo == SIGUSR1);
}

static void epoll_make(void)
{
	struct epoll_event e = {.events = EPOLLIN, .data.u64 = 99};

	put(epoll_create1(0), HERE);
	put(eventfd(0, 0), OTHER);
	MUST(epoll_ctl(HERE, EPOLL_CTL_ADD, OTHER, &e) == 0);
}

static void epoll_spoil(void)
{
	MUST(epoll_ctl(HERE, EPOLL_CTL_DEL, OTHER, NULL) == 0);
}

static void epoll_check(void)
{
	struct epoll_event e = {0};

	MUST(epoll_wait(TWIN, &e, 1, 0) == 0 && eventfd_write(OTHER, 1) == 0);
	MUST(epoll_wait(TWIN, &e, 1, 0) == 1 && e.data.u64 == 99);
}

static void pair_make(void)
{
	int end[2];

	MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, end) == 0);
	put(end[0], HERE);
	put(end[1], OTHER);
	MUST(write(OTHER, "waits", 5) == 5);
}

/* What ends in /ftb is a broker's. The parent listens there. */
static socklen_t broker_address(struct sockaddr_un *sa, pid_t parent)
{
	*sa = (struct sockaddr_un){.sun_family = AF_UNIX};
	return (
	    socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
		       (size_t)snprintf(sa->sun_path + 1, 60, "hale-fd-test-%d/ftb", (int)parent));
}

static void broker_make(void)
{
	struct sockaddr_un sa;
	socklen_t len = broker_address(&sa, getppid());

	put(socket(AF_UNIX, SOCK_SEQPACKET, 0), HERE);
	MUST(connect(HERE, (struct sockaddr *)&sa, len) == 0);
	MUST(reads(HERE, "accepted"));
}

static void broker_check(void)
{
	MUST(send(HERE, "x", 1, MSG_NOSIGNAL) < 0 && errno == EPIPE);
}

/* Listens, and so has no other end. */
static socklen_t own_address(struct sockaddr_un *sa)
{
	socklen_t len = broker_address(sa, getpid());

	sa->sun_path[1] = 'o';
	return len;
}

static void socket_make(void)
{
	struct sockaddr_un sa;
	socklen_t len = own_address(&sa);

	put(socket(AF_UNIX, SOCK_SEQPACKET, 0), HERE);
	MUST(bind(HERE, (struct sockaddr *)&sa, len) == 0 && listen(HERE, 4) == 0);
}

/* Its address is free then, as it is for another process. */
static void socket_spoil(void)
{
	close(HERE);
	close(TWIN);
}

static void socket_check(void)
{
	struct sockaddr_un sa;
	socklen_t len = own_address(&sa);
	int client = socket(AF_UNIX, SOCK_SEQPACKET, 0), server;

	MUST(connect(client, (struct sockaddr *)&sa, len) == 0);
	server = accept(TWIN, NULL, NULL);
	MUST(server >= 0 && send(server, "heard", 5, 0) == 5 && reads(client, "heard"));
}

static void pid_make(void)
{
	put((int)syscall(SYS_pidfd_open, getpid(), 0), HERE);
}

static void ended_make(void)
{
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	put((int)syscall(SYS_pidfd_open, pid, 0), HERE);
	MUST(waitpid(pid, NULL, 0) == pid);
}

static void ended_check(void)
{
	struct pollfd ended = {.fd = HERE, .events = POLLIN};

	MUST(syscall(SYS_pidfd_send_signal, HERE, 0, NULL, 0) == -1 && errno == ESRCH);
	MUST(poll(&ended, 1, 0) == 1);
	MUST(waitpid(-1, NULL, 0) == -1 && errno == ECHILD);
}

/* Lets nothing through, and nobody may take it away. */
static void filter_make(void)
{
	struct sock_filter none = {BPF_RET | BPF_K, 0, 0, 0};
	struct sock_fprog program = {1, &none};
	int one = 1;

	put(socket(AF_INET, SOCK_DGRAM, 0), HERE);
	MUST(!setsockopt(HERE, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)));
	MUST(!setsockopt(HERE, SOL_SOCKET, SO_LOCK_FILTER, &one, sizeof(one)));
}

static void filter_check(void)
{
	struct sock_filter none = {BPF_RET | BPF_K, 0, 0, 9}, has = {0};
	struct sock_fprog program = {1, &none};
	socklen_t count = 1;

	MUST(!getsockopt(HERE, SOL_SOCKET, SO_GET_FILTER, &has, &count) && count == 1);
	MUST(has.code == (BPF_RET | BPF_K) && has.k == 0);
	MUST(setsockopt(HERE, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) == -1 &&
	     errno == EPERM);
}

static void link_make(void)
{
	snprintf(outcome->what, sizeof(outcome->what), "/tmp/hale-fd-test-link-%d", (int)getpid());
	unlink(outcome->what);
	MUST(symlink("where", outcome->what) == 0);
	put(open(outcome->what, O_PATH | O_NOFOLLOW), HERE);
}

static void link_check(void)
{
	char where[16];

	MUST(readlinkat(HERE, "", where, sizeof(where)) == 5 && !memcmp(where, "where", 5));
	MUST(unlink(outcome->what) == 0);
}

static void removed_link_make(void)
{
	link_make();
	MUST(unlink(outcome->what) == 0);
}

static void removed_link_check(void)
{
	char where[16];

	MUST(readlinkat(HERE, "", where, sizeof(where)) == 5 && !memcmp(where, "where", 5));
	MUST(access(outcome->what, F_OK) == -1);
}

static void namespace_make(void)
{
	put(open("/proc/self/ns/net", O_RDONLY), HERE);
}

static void namespace_check(void)
{
	struct stat here, own;

	MUST(!fstat(HERE, &here) && !stat("/proc/self/ns/net", &own) && here.st_ino == own.st_ino);
}

static void pid_check(void)
{
	MUST(syscall(SYS_pidfd_send_signal, HERE, 0, NULL, 0) == 0);
}

/* Its name is gone when it is made again. */
static void fifo_make(void)
{
	char path[64];

	snprintf(path, sizeof(path), "/tmp/hale-fd-test-fifo-%d", (int)getpid());
	unlink(path);
	MUST(mkfifo(path, 0640) == 0);
	put(open(path, O_RDONLY | O_NONBLOCK), HERE);
	put(open(path, O_WRONLY), OTHER);
	MUST(write(OTHER, "waits", 5) == 5);
	snprintf(outcome->what, sizeof(outcome->what), "%s", path);
}

static void fifo_spoil(void)
{
	pipe_spoil();
	MUST(unlink(outcome->what) == 0);
}

static void fifo_check(void)
{
	struct stat st;

	MUST(stat(outcome->what, &st) == 0 && st.st_mode == (S_IFIFO | 0640));
	MUST(unlink(outcome->what) == 0);
	pipe_check();
	MUST(read(HERE, &st, 1) == -1 && errno == EAGAIN);
}

static const struct member {
	enum fd_kind kind;
	void (*make)(void);
	void (*spoil)(void); /* NULL: there is nothing to spoil */
	void (*check)(void);
} members[] = {
    {FD_FILE, file_make, file_spoil, file_check},
    {FD_UNLINKED, unlinked_make, unlinked_spoil, unlinked_check},
    {FD_STREAM, stream_make, NULL, stream_check},
    {FD_DEVICE, device_make, NULL, device_check},
    {FD_PIPE, pipe_make, pipe_spoil, pipe_check},
    {FD_EVENT, event_make, event_spoil, event_check},
    {FD_TIMER, timer_make, timer_spoil, timer_check},
    {FD_SIGNAL, signal_make, signal_spoil, signal_check},
    {FD_EPOLL, epoll_make, epoll_spoil, epoll_check},
    {FD_SOCKETPAIR, pair_make, pipe_spoil, pipe_check},
    {FD_BROKER, broker_make, NULL, broker_check},
    {FD_SOCKET, socket_make, socket_spoil, socket_check},
    {FD_PID, pid_make, NULL, pid_check},
    {FD_FIFO, fifo_make, fifo_spoil, fifo_check},
    {FD_FILE, link_make, NULL, link_check},
    {FD_UNLINKED, removed_folder_make, NULL, removed_folder_check},
    {FD_UNLINKED, removed_link_make, NULL, removed_link_check},
    {FD_UNLINKED, holes_make, unlinked_spoil, holes_check},
    {FD_FILE, named_holes_make, named_holes_spoil, named_holes_check},
    {FD_DEVICE, namespace_make, NULL, namespace_check},
    {FD_PID, ended_make, NULL, ended_check},
    {FD_SOCKET, filter_make, NULL, filter_check},
};

/* ---- the suite ---- */

static void capture(struct fd_table *t, struct arena *a, struct error *err)
{
	struct stat st;

	MUST(arena_init(a, NULL, 64 << 20));
	MUST(fstat(STDOUT_FILENO, &st) == 0);
	*t = (struct fd_table){.arena = a, .proc = "/proc/thread-self", .save_max = 1 << 20};
	t->stream[1] = (struct file_identity){st.st_dev, st.st_ino};
	if (fd_table_scan(t, err) != HALE_OK)
		must_at(false, err->text, __LINE__);
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
		must_at(false, err->text, __LINE__);
}

static void child(const struct member *m)
{
	struct arena a;
	struct fd_table t;
	struct error err;
	const struct fd_record *here, *twin;

	m->make();
	MUST(fcntl(HERE, F_DUPFD_CLOEXEC, TWIN) == TWIN);
	capture(&t, &a, &err);
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
static void run_child(const struct member *m, int output)
{
	MUST(dup2(output, STDOUT_FILENO) == STDOUT_FILENO);
	close_range(2, ~0u, 0);
	put(open("/dev/null", O_RDWR), STDERR_FILENO);
	put(open("/dev/null", O_RDWR), STDIN_FILENO);
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

static void comes_back_as_it_was(const struct member *m, int listener)
{
	int end[2], status, client = -1;
	pid_t pid;

	outcome->what[0] = '\0';
	assert_int_equal(pipe(end), 0);

	pid = fork();
	if (pid == 0)
		run_child(m, end[1]);
	close(end[1]);
	if (m->kind == FD_BROKER)
		client = accept_client(listener, end[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (status != 0)
		print_error("kind %d: %s\n", (int)m->kind, outcome->what);
	assert_int_equal(status, 0);
	if (m->kind == FD_STREAM)
		assert_true(reads(end[0], "said"));
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
		put(open("/dev/null", O_RDWR), fd);
	for (int i = 0; i < MANY; i++) {
		int of = i % 3 == 0 ? HERE + i : i % 3 == 1 ? HERE + i - 1 : HERE;
		int fd = of == HERE + i ? open("/proc/self/exe", O_RDONLY) : fcntl(of, F_DUPFD, 3);

		put(fd, HERE + i);
		expected[i] = of == HERE + i ? -1 : of;
	}
	capture(&t, &a, &err);
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
	outcome->what[0] = '\0';
	pid = fork();
	if (pid == 0)
		look_at_many();
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (status != 0)
		print_error("%s\n", outcome->what);
	assert_int_equal(status, 0);
}

static void every_kind_comes_back_as_it_was(void **state)
{
	struct sockaddr_un sa;
	socklen_t len = broker_address(&sa, getpid());
	int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	(void)state;
	assert_int_equal(bind(listener, (struct sockaddr *)&sa, len), 0);
	assert_int_equal(listen(listener, 4), 0);
	for (size_t i = 0; i < ARRAY_LEN(members); i++)
		comes_back_as_it_was(&members[i], listener);
	close(listener);
}

static void every_kind_is_a_member_and_has_its_operations(void **state)
{
	size_t count = 0;

	(void)state;
	for (const struct fd_ops *ops; (ops = fd_kind_at(count)); count++) {
		size_t i = 0;

		while (i < ARRAY_LEN(members) && members[i].kind != ops->kind)
			i++;
		if (i == ARRAY_LEN(members))
			fail_msg("no line of members tries the kind '%s'", ops->name);
		assert_true(ops->match && ops->capture && ops->open && ops->name);
		for (size_t k = 0; k < count; k++)
			assert_int_not_equal(fd_kind_at(k)->kind, ops->kind);
	}
	assert_true(count <= ARRAY_LEN(members));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(every_kind_is_a_member_and_has_its_operations),
	    cmocka_unit_test(every_kind_comes_back_as_it_was),
	    cmocka_unit_test(each_of_many_finds_its_open_file),
	};

	outcome =
	    mmap(NULL, sizeof(*outcome), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return outcome == MAP_FAILED ? 1 : cmocka_run_group_tests_name("fd", tests, NULL, NULL);
}
