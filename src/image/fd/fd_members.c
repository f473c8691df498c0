// SPDX-License-Identifier: BSD-3-Clause
/* How each kind of descriptor is made, spoiled and looked at again. */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <mqueue.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <termios.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "image/fd/fd_members.h"

struct fd_outcome *fd_outcome;

void fd_must_at(bool good, const char *what, const char *file, int line)
{
	if (good)
		return;
	snprintf(fd_outcome->what, sizeof(fd_outcome->what), "%s:%d: %.400s", file, line, what);
	_exit(1);
}

void fd_put(int fd, int number)
{
	MUST(fd >= 0 && dup2(fd, number) == number);
	if (fd != number)
		close(fd);
}

bool fd_reads(int fd, const char *text)
{
	char bytes[64];
	ssize_t n = read(fd, bytes, sizeof(bytes));

	return n == (ssize_t)strlen(text) && !memcmp(bytes, text, (size_t)n);
}

/* ---- the kinds ---- */

static void file_make(void)
{
	char path[] = "/tmp/hale-fd-test-XXXXXX";

	fd_put(mkstemp(path), HERE);
	MUST(write(HERE, "abcdef", 6) == 6 && lseek(HERE, 3, SEEK_SET) == 3);
	snprintf(fd_outcome->what, sizeof(fd_outcome->what), "%s", path);
}

static void file_spoil(void)
{
	MUST(lseek(HERE, 0, SEEK_SET) == 0);
}

static void file_check(void)
{
	MUST(fd_reads(HERE, "def"));
	unlink(fd_outcome->what);
}

static void unlinked_make(void)
{
	file_make();
	unlink(fd_outcome->what);
}

/* The name that it was opened by is gone, and it has another one, in which it comes back. */
static void second_name_make(void)
{
	char other[sizeof(fd_outcome->what)];

	file_make();
	snprintf(other, sizeof(other), "%.200s.other", fd_outcome->what);
	MUST(link(fd_outcome->what, other) == 0 && unlink(fd_outcome->what) == 0);
	snprintf(fd_outcome->what, sizeof(fd_outcome->what), "%s", other);
}

static void second_name_check(void)
{
	struct stat here, there;

	MUST(fstat(HERE, &here) == 0 && stat(fd_outcome->what, &there) == 0);
	MUST(here.st_ino == there.st_ino && here.st_nlink == 1);
	file_check();
}

/* The folder that it was in is gone, too. */
static void removed_folder_make(void)
{
	char path[] = "/tmp/hale-fd-test-XXXXXX", inner[64];

	MUST(mkdtemp(path));
	snprintf(inner, sizeof(inner), "%s/inner", path);
	MUST(mkdir(inner, 0750) == 0);
	fd_put(open(inner, O_RDONLY | O_DIRECTORY), HERE);
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
	unlink(fd_outcome->what);
}

static void unlinked_spoil(void)
{
	MUST(pwrite(HERE, "xxxxxx", 6, 0) == 6);
}

static void unlinked_check(void)
{
	MUST(fd_reads(HERE, "def"));
}

static void stream_make(void)
{
	fd_put(dup(STDOUT_FILENO), HERE);
}

static void stream_check(void)
{
	MUST(write(HERE, "said", 4) == 4);
}

static void device_make(void)
{
	fd_put(open("/dev/zero", O_RDONLY), HERE);
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
	fd_put(end[0], HERE);
	fd_put(end[1], OTHER);
	MUST(write(OTHER, "waits", 5) == 5);
}

static void pipe_spoil(void)
{
	MUST(fd_reads(HERE, "waits"));
}

static void pipe_check(void)
{
	MUST(fd_reads(HERE, "waits"));
	MUST(write(OTHER, "more", 4) == 4 && fd_reads(TWIN, "more"));
}

static void event_make(void)
{
	fd_put(eventfd(7, EFD_NONBLOCK), HERE);
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

	fd_put(timerfd_create(CLOCK_MONOTONIC, 0), HERE);
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
	fd_put(signalfd(-1, &set, SFD_NONBLOCK), HERE);
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

	fd_put(epoll_create1(0), HERE);
	fd_put(eventfd(0, 0), OTHER);
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
	fd_put(end[0], HERE);
	fd_put(end[1], OTHER);
	MUST(write(OTHER, "waits", 5) == 5);
}

socklen_t fd_broker_address(struct sockaddr_un *sa, pid_t parent)
{
	*sa = (struct sockaddr_un){.sun_family = AF_UNIX};
	return (
	    socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
		       (size_t)snprintf(sa->sun_path + 1, 60, "hale-fd-test-%d/ftb", (int)parent));
}

static void broker_make(void)
{
	struct sockaddr_un sa;
	socklen_t len = fd_broker_address(&sa, getppid());

	fd_put(socket(AF_UNIX, SOCK_SEQPACKET, 0), HERE);
	MUST(connect(HERE, (struct sockaddr *)&sa, len) == 0);
	MUST(fd_reads(HERE, "accepted"));
}

static void broker_check(void)
{
	MUST(send(HERE, "x", 1, MSG_NOSIGNAL) < 0 && errno == EPIPE);
}

static void beside_check(void)
{
	MUST(send(HERE, "handed", 6, MSG_NOSIGNAL) == 6);
}

/* Listens, and so has no other end. */
static socklen_t own_address(struct sockaddr_un *sa)
{
	socklen_t len = fd_broker_address(sa, getpid());

	sa->sun_path[1] = 'o';
	return len;
}

static void socket_make(void)
{
	struct sockaddr_un sa;
	socklen_t len = own_address(&sa);

	fd_put(socket(AF_UNIX, SOCK_SEQPACKET, 0), HERE);
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
	MUST(server >= 0 && send(server, "heard", 5, 0) == 5 && fd_reads(client, "heard"));
}

static void pid_make(void)
{
	fd_put((int)syscall(SYS_pidfd_open, getpid(), 0), HERE);
}

static void ended_make(void)
{
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	fd_put((int)syscall(SYS_pidfd_open, pid, 0), HERE);
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

	fd_put(socket(AF_INET, SOCK_DGRAM, 0), HERE);
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
	snprintf(fd_outcome->what, sizeof(fd_outcome->what), "/tmp/hale-fd-test-link-%d",
		 (int)getpid());
	unlink(fd_outcome->what);
	MUST(symlink("where", fd_outcome->what) == 0);
	fd_put(open(fd_outcome->what, O_PATH | O_NOFOLLOW), HERE);
}

static void link_check(void)
{
	char where[16];

	MUST(readlinkat(HERE, "", where, sizeof(where)) == 5 && !memcmp(where, "where", 5));
	MUST(unlink(fd_outcome->what) == 0);
}

static void removed_link_make(void)
{
	link_make();
	MUST(unlink(fd_outcome->what) == 0);
}

static void removed_link_check(void)
{
	char where[16];

	MUST(readlinkat(HERE, "", where, sizeof(where)) == 5 && !memcmp(where, "where", 5));
	MUST(access(fd_outcome->what, F_OK) == -1);
}

static void namespace_make(void)
{
	fd_put(open("/proc/self/ns/net", O_RDONLY), HERE);
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
	fd_put(open(path, O_RDONLY | O_NONBLOCK), HERE);
	fd_put(open(path, O_WRONLY), OTHER);
	MUST(write(OTHER, "waits", 5) == 5);
	snprintf(fd_outcome->what, sizeof(fd_outcome->what), "%s", path);
}

static void fifo_spoil(void)
{
	pipe_spoil();
	MUST(unlink(fd_outcome->what) == 0);
}

static void fifo_check(void)
{
	struct stat st;

	MUST(stat(fd_outcome->what, &st) == 0 && st.st_mode == (S_IFIFO | 0640));
	MUST(unlink(fd_outcome->what) == 0);
	pipe_check();
	MUST(read(HERE, &st, 1) == -1 && errno == EAGAIN);
}

static void queue_make(void)
{
	struct mq_attr a = {.mq_maxmsg = 3, .mq_msgsize = 16};

	snprintf(fd_outcome->what, sizeof(fd_outcome->what), "/hale-fd-test-%d", (int)getpid());
	mq_unlink(fd_outcome->what);
	fd_put(mq_open(fd_outcome->what, O_RDWR | O_CREAT | O_NONBLOCK, 0600, &a), HERE);
	MUST(mq_send(HERE, "waits", 5, 3) == 0 && mq_send(HERE, "first", 5, 7) == 0);
}

static void queue_spoil(void)
{
	char text[16];

	MUST(mq_receive(HERE, text, sizeof(text), NULL) == 5);
	MUST(mq_unlink(fd_outcome->what) == 0);
}

static void queue_check(void)
{
	char text[16];
	unsigned priority = 0;

	MUST(mq_receive(HERE, text, sizeof(text), &priority) == 5 && priority == 7);
	MUST(mq_receive(TWIN, text, sizeof(text), &priority) == 5 && priority == 3 &&
	     !memcmp(text, "waits", 5));
	MUST(mq_receive(HERE, text, sizeof(text), NULL) == -1 && errno == EAGAIN);
	MUST(mq_unlink(fd_outcome->what) == 0);
}

static void inotify_make(void)
{
	char path[] = "/tmp/hale-fd-test-XXXXXX";

	MUST(mkdtemp(path));
	fd_put(inotify_init1(IN_NONBLOCK), HERE);
	MUST(inotify_add_watch(HERE, path, IN_CREATE) == 1);
	MUST(inotify_rm_watch(HERE, 1) == 0 && inotify_add_watch(HERE, path, IN_CREATE) == 2);
	MUST(read(HERE, fd_outcome->what, sizeof(fd_outcome->what)) > 0);
	image_watch_note(path, IN_CREATE);
	snprintf(fd_outcome->what, sizeof(fd_outcome->what), "%s", path);
}

static void inotify_spoil(void)
{
	MUST(inotify_rm_watch(HERE, 2) == 0);
}

static void inotify_check(void)
{
	char room[512] __attribute__((aligned(8))), path[64];
	const struct inotify_event *e = (const struct inotify_event *)room;

	MUST(read(HERE, room, sizeof(room)) == -1 && errno == EAGAIN);
	snprintf(path, sizeof(path), "%.40s/new", fd_outcome->what);
	close(open(path, O_WRONLY | O_CREAT, 0600));
	MUST(read(TWIN, room, sizeof(room)) > 0 && e->wd == 2 && e->mask == IN_CREATE);
	MUST(unlink(path) == 0 && rmdir(fd_outcome->what) == 0);
}

static void terminal_make(void)
{
	struct winsize size = {.ws_row = 12, .ws_col = 34};
	struct termios t;

	fd_put(open("/dev/ptmx", O_RDWR | O_NOCTTY), HERE);
	MUST(grantpt(HERE) == 0 && unlockpt(HERE) == 0);
	fd_put(open(ptsname(HERE), O_RDWR | O_NOCTTY), OTHER);
	MUST(tcgetattr(OTHER, &t) == 0);
	t.c_lflag &= ~(tcflag_t)ECHO;
	MUST(tcsetattr(OTHER, TCSANOW, &t) == 0 && ioctl(HERE, TIOCSWINSZ, &size) == 0);
	snprintf(fd_outcome->what, sizeof(fd_outcome->what), "%s", ptsname(HERE));
}

/* Its number is free then, as it is for another process. */
static void terminal_spoil(void)
{
	close(HERE);
	close(TWIN);
	close(OTHER);
}

static void terminal_check(void)
{
	struct winsize size;
	struct termios t;

	MUST(!strcmp(ptsname(TWIN), fd_outcome->what) && ioctl(OTHER, TIOCGWINSZ, &size) == 0);
	MUST(size.ws_row == 12 && size.ws_col == 34);
	MUST(tcgetattr(OTHER, &t) == 0 && !(t.c_lflag & ECHO) && t.c_lflag & ICANON);
	MUST(write(HERE, "typed\n", 6) == 6 && fd_reads(OTHER, "typed\n"));
	MUST(write(OTHER, "said", 4) == 4 && fd_reads(TWIN, "said"));
}

/* Both ends of a pipe, and they are nowhere else. */
static void way_make(void)
{
	int end[2], pipe_end[2];
	char control[CMSG_SPACE(2 * sizeof(int))] = {0};
	struct iovec iov = {"x", 1};
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = control,
			   .msg_controllen = sizeof(control)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, end) == 0 && pipe(pipe_end) == 0);
	fd_put(end[0], HERE);
	fd_put(end[1], OTHER);
	MUST(write(pipe_end[1], "inside", 6) == 6 && write(OTHER, "plain", 5) == 5);
	*c = (struct cmsghdr){CMSG_LEN(2 * sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
	memcpy(CMSG_DATA(c), pipe_end, sizeof(pipe_end));
	MUST(sendmsg(OTHER, &m, 0) == 1);
	close(pipe_end[0]);
	close(pipe_end[1]);
}

static void way_spoil(void)
{
	char bytes[8];

	MUST(read(HERE, bytes, 5) == 5 && read(HERE, bytes, 8) == 1);
}

static void way_check(void)
{
	int pipe_end[2];
	char control[CMSG_SPACE(2 * sizeof(int))], byte;
	struct iovec iov = {&byte, 1};
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = control,
			   .msg_controllen = sizeof(control)};
	char bytes[8];

	MUST(read(TWIN, bytes, 5) == 5 && !memcmp(bytes, "plain", 5));
	MUST(recvmsg(HERE, &m, 0) == 1 && byte == 'x' && CMSG_FIRSTHDR(&m) &&
	     CMSG_FIRSTHDR(&m)->cmsg_len == CMSG_LEN(2 * sizeof(int)));
	memcpy(pipe_end, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(pipe_end));
	MUST(fd_reads(pipe_end[0], "inside") && write(pipe_end[1], "more", 4) == 4);
	MUST(fd_reads(pipe_end[0], "more"));
}

const struct fd_member fd_members[] = {
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
    {FD_FILE, second_name_make, file_spoil, second_name_check},
    {FD_UNLINKED, removed_folder_make, NULL, removed_folder_check},
    {FD_UNLINKED, removed_link_make, NULL, removed_link_check},
    {FD_UNLINKED, holes_make, unlinked_spoil, holes_check},
    {FD_FILE, named_holes_make, named_holes_spoil, named_holes_check},
    {FD_DEVICE, namespace_make, NULL, namespace_check},
    {FD_PID, ended_make, NULL, ended_check},
    {FD_SOCKET, filter_make, NULL, filter_check},
    {FD_QUEUE, queue_make, queue_spoil, queue_check},
    {FD_INOTIFY, inotify_make, inotify_spoil, inotify_check},
    {FD_TERMINAL, terminal_make, terminal_spoil, terminal_check},
    {FD_SOCKETPAIR, way_make, way_spoil, way_check},
    {FD_BESIDE, broker_make, NULL, beside_check},
};

const size_t fd_members_count = ARRAY_LEN(fd_members);
