/* SPDX-License-Identifier: BSD-3-Clause */
/* The calls that the code under test makes. Its object files are changed so that open64 there is
 * simulate_open64 here, and so on (simulate.syms); what is not in that list is libc's own. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <linux/sockios.h>
#include <time.h>
#include <unistd.h>
#include "kernel.h"
#include "libc.h"

#define CALL(type, name, ...)                                                                      \
	type simulate_##name(__VA_ARGS__);                                                         \
	type simulate_##name(__VA_ARGS__)

static struct proc *me(void)
{
	return kernel->running;
}

/* At most calls somebody else may come first, and the process may be ended there. */
static void point(void)
{
	if (++me()->calls == me()->last_call) {
		kernel_say("fault: it is killed at this call");
		proc_exit(SIGKILL);
	}
	if (kernel_chance(kernel->yield))
		proc_yield();
}

static int fail(int error)
{
	errno = error;
	return -1;
}

static bool waits(const struct object *o, int flags)
{
	return errno == EAGAIN && !(o->flags & O_NONBLOCK) && !(flags & MSG_DONTWAIT);
}

/* ---- memory ---- */

CALL(void *, malloc, size_t size)
{
	return proc_malloc(size);
}

CALL(void *, calloc, size_t n, size_t size)
{
	void *at = proc_malloc(n * size);

	return at ? memset(at, 0, n * size) : NULL;
}

CALL(void *, realloc, void *at, size_t size)
{
	return proc_realloc(at, size);
}

CALL(void, free, void *at)
{
	if (at && !proc_free(at))
		free(at);
}

CALL(char *, strdup, const char *text)
{
	size_t len = strlen(text) + 1;
	char *copy = proc_malloc(len);

	return copy ? memcpy(copy, text, len) : NULL;
}

CALL(char *, strndup, const char *text, size_t max)
{
	size_t len = strnlen(text, max);
	char *copy = proc_malloc(len + 1);

	if (!copy)
		return NULL;
	memcpy(copy, text, len);
	copy[len] = '\0';
	return copy;
}

CALL(int, vasprintf, char **out, const char *format, va_list args)
{
	va_list again;
	int n;

	va_copy(again, args);
	n = vsnprintf(NULL, 0, format, again);
	va_end(again);
	*out = n >= 0 ? proc_malloc((size_t)n + 1) : NULL;
	return *out ? vsnprintf(*out, (size_t)n + 1, format, args) : -1;
}

CALL(int, asprintf, char **out, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = simulate_vasprintf(out, format, args);
	va_end(args);
	return n;
}

CALL(void *, mmap64, void *at, size_t len, int prot, int flags, int fd, off_t offset)
{
	struct object *o = fd >= 0 ? proc_fd(fd) : NULL;
	void *got;

	(void)offset;
	(void)at;
	point();
	if (fd >= 0 && (!o || o->kind != OBJ_MEMFD))
		return errno = ENODEV, MAP_FAILED;
	if (o)
		return o->u.memory->bytes;
	got = mmap(NULL, len, prot, flags | MAP_NORESERVE, -1, 0);
	if (got != MAP_FAILED) {
		if (kernel->mapping_count == 8192)
			abort();
		kernel->mappings[kernel->mapping_count] = got;
		kernel->mapping_len[kernel->mapping_count++] = len;
	}
	return got;
}

CALL(int, munmap, void *at, size_t len)
{
	(void)at;
	(void)len;
	return 0; /* it may be shared with another process: at the end of the world */
}

CALL(int, memfd_create, const char *name, unsigned flags)
{
	struct object *o = object_new(OBJ_MEMFD);

	(void)name;
	o->flags = O_RDWR;
	o->u.memory = calloc(1, sizeof(*o->u.memory));
	return proc_fd_put(me(), o, 0, flags & MFD_CLOEXEC);
}

CALL(int, madvise, void *at, size_t len, int advice)
{
	(void)at, (void)len, (void)advice;
	return 0;
}

/* ---- time ---- */

CALL(int, clock_gettime, clockid_t clock, struct timespec *t)
{
	uint64_t now = kernel->now;

	kernel->now += 20;
	if (clock == CLOCK_REALTIME)
		now += 1700000000ull * NS_PER_S + (uint64_t)me()->host->skew;
	t->tv_sec = (time_t)(now / NS_PER_S);
	t->tv_nsec = (long)(now % NS_PER_S);
	return 0;
}

CALL(int, usleep, useconds_t us)
{
	proc_sleep((uint64_t)us * 1000);
	return 0;
}

CALL(unsigned, alarm, unsigned seconds)
{
	(void)seconds;
	return 0;
}

CALL(int, sched_yield, void)
{
	proc_yield();
	return 0;
}

CALL(int, timerfd_create, int clock, int flags)
{
	struct object *o = object_new(OBJ_TIMERFD);

	(void)clock;
	o->flags = flags & TFD_NONBLOCK ? O_NONBLOCK : 0;
	return proc_fd_put(me(), o, 0, flags & TFD_CLOEXEC);
}

CALL(int, timerfd_settime, int fd, int flags, const struct itimerspec *new, struct itimerspec *old)
{
	struct object *o = proc_fd(fd);
	uint64_t at;

	(void)old;
	if (!o || o->kind != OBJ_TIMERFD)
		return fail(EBADF);
	at = (uint64_t) new->it_value.tv_sec *NS_PER_S + (uint64_t) new->it_value.tv_nsec;
	o->u.timer.at = at == 0 ? 0 : flags & TFD_TIMER_ABSTIME ? at : kernel->now + at;
	o->u.timer.every =
	    (uint64_t) new->it_interval.tv_sec *NS_PER_S + (uint64_t) new->it_interval.tv_nsec;
	object_changed(o);
	return 0;
}

/* ---- chance ---- */

CALL(ssize_t, getrandom, void *bytes, size_t len, unsigned flags)
{
	(void)flags;
	for (size_t i = 0; i < len; i++)
		((unsigned char *)bytes)[i] = (unsigned char)kernel_random(256);
	return (ssize_t)len;
}

/* ---- descriptors ---- */

CALL(int, close, int fd)
{
	if (!proc_fd(fd))
		return -1;
	point();
	proc_fd_close(me(), fd);
	return 0;
}

CALL(int, close_range, unsigned first, unsigned last, int flags)
{
	for (unsigned i = first; i < FDS_MAX && i <= last; i++) {
		if (me()->fd[i].o && (flags & CLOSE_RANGE_CLOEXEC))
			me()->fd[i].cloexec = true;
		else if (me()->fd[i].o)
			proc_fd_close(me(), (int)i);
	}
	return 0;
}

static int duplicate(int fd, int from, bool cloexec)
{
	struct object *o = proc_fd(fd);

	if (!o)
		return -1;
	o->refs++;
	return proc_fd_put(me(), o, from, cloexec);
}

CALL(int, dup, int fd)
{
	return duplicate(fd, 0, false);
}

CALL(int, dup3, int from, int to, int flags)
{
	struct object *o = proc_fd(from);

	if (!o || to < 0 || to >= FDS_MAX)
		return fail(EBADF);
	o->refs++;
	if (me()->fd[to].o)
		proc_fd_close(me(), to);
	me()->fd[to] = (struct fd){o, flags & O_CLOEXEC};
	return to;
}

CALL(int, dup2, int from, int to)
{
	return from == to ? (proc_fd(from) ? to : -1) : simulate_dup3(from, to, 0);
}

CALL(int, fcntl64, int fd, int what, ...)
{
	struct object *o = proc_fd(fd);
	va_list args;
	int value;

	if (!o)
		return -1;
	va_start(args, what);
	value = va_arg(args, int);
	va_end(args);
	switch (what) {
	case F_DUPFD:
		return duplicate(fd, value, false);
	case F_DUPFD_CLOEXEC:
		return duplicate(fd, value, true);
	case F_GETFD:
		return me()->fd[fd].cloexec ? FD_CLOEXEC : 0;
	case F_SETFD:
		me()->fd[fd].cloexec = value & FD_CLOEXEC;
		return 0;
	case F_GETFL:
		return o->flags;
	case F_SETFL:
		o->flags = (o->flags & O_ACCMODE) | (value & (O_NONBLOCK | O_APPEND));
		return 0;
	case F_SETPIPE_SZ:
		return 65536;
	default:
		return 0;
	}
}

CALL(int, pipe2, int ends[2], int flags)
{
	struct object *in, *out;

	object_pipe(&in, &out);
	in->flags |= flags & O_NONBLOCK;
	out->flags |= flags & O_NONBLOCK;
	ends[0] = proc_fd_put(me(), in, 0, flags & O_CLOEXEC);
	ends[1] = proc_fd_put(me(), out, 0, flags & O_CLOEXEC);
	return ends[0] < 0 || ends[1] < 0 ? -1 : 0;
}

CALL(ssize_t, read, int fd, void *bytes, size_t len)
{
	struct object *o = proc_fd(fd);
	ssize_t n;

	if (!o)
		return -1;
	point();
	while ((n = object_read(o, bytes, len)) < 0 && waits(o, 0))
		proc_block(&o, 1, NULL, NULL, NS_NEVER);
	return n;
}

CALL(ssize_t, write, int fd, const void *bytes, size_t len)
{
	struct object *o = proc_fd(fd);
	size_t done = 0;
	ssize_t n;

	if (!o)
		return -1;
	point();
	do {
		n = object_write(o, (const char *)bytes + done, len - done);
		if (n > 0)
			done += (size_t)n;
		else if (n < 0 && waits(o, 0))
			proc_block(&o, 1, NULL, NULL, NS_NEVER);
		else
			break;
	} while (done < len && !(o->flags & O_NONBLOCK) && o->kind != OBJ_FILE);
	if (n < 0 && done == 0 && errno == EPIPE)
		proc_kill(me(), SIGPIPE);
	if (n < 0 && done == 0 && !me()->handled)
		errno = errno ? errno : EIO;
	return done > 0 || n >= 0 ? (ssize_t)done : -1;
}

CALL(ssize_t, pread64, int fd, void *bytes, size_t len, off_t at)
{
	struct object *o = proc_fd(fd);

	if (!o || o->kind != OBJ_FILE)
		return fail(o ? ESPIPE : EBADF);
	return disk_read(o, bytes, len, at);
}

CALL(ssize_t, pwrite64, int fd, const void *bytes, size_t len, off_t at)
{
	struct object *o = proc_fd(fd);

	if (!o || o->kind != OBJ_FILE)
		return fail(o ? ESPIPE : EBADF);
	point();
	return disk_write(o, bytes, len, at);
}

CALL(off_t, lseek64, int fd, off_t at, int whence)
{
	struct object *o = proc_fd(fd);

	if (!o || o->kind != OBJ_FILE)
		return fail(o ? ESPIPE : EBADF);
	o->u.file.at = (uint64_t)at + (whence == SEEK_CUR   ? o->u.file.at
				       : whence == SEEK_END ? o->u.file.node->len
							    : 0);
	return (off_t)o->u.file.at;
}

CALL(int, ioctl, int fd, unsigned long what, ...)
{
	struct object *o = proc_fd(fd);
	va_list args;
	int *value;

	if (!o)
		return -1;
	va_start(args, what);
	value = va_arg(args, int *);
	va_end(args);
	if (what == FIONREAD && o->kind != OBJ_FILE) {
		*value = (int)object_unread(o);
		return 0;
	}
	if (what == SIOCOUTQ && o->kind == OBJ_SOCKET) {
		*value = o->u.socket.peer ? (int)o->u.socket.peer->u.socket.bytes : 0;
		return 0;
	}
	return fail(ENOTTY);
}

CALL(int, isatty, int fd)
{
	(void)fd;
	return 0;
}

/* ---- waiting ---- */

static short events_of(struct object *o, short wanted)
{
	uint32_t e = object_events(o, me());

	return (short)(e & ((uint32_t)wanted | EPOLLHUP | EPOLLERR));
}

static uint64_t timers_of(struct object *const *o, size_t count, uint64_t deadline)
{
	for (size_t i = 0; i < count; i++)
		if (o[i]->kind == OBJ_TIMERFD && o[i]->u.timer.at && o[i]->u.timer.at < deadline)
			deadline = o[i]->u.timer.at;
	return deadline;
}

CALL(int, poll, struct pollfd *p, nfds_t n, int ms)
{
	uint64_t until = ms < 0 ? NS_NEVER : kernel->now + (uint64_t)ms * NS_PER_MS;
	struct object *o[64];

	point();
	for (;;) {
		size_t count = 0;
		int found = 0;

		for (nfds_t i = 0; i < n; i++) {
			struct object *k = p[i].fd >= 0 ? proc_fd(p[i].fd) : NULL;

			p[i].revents = 0;
			if (p[i].fd >= 0 && !k)
				p[i].revents = POLLNVAL;
			else if (k)
				p[i].revents = events_of(o[count++] = k, p[i].events);
			found += p[i].revents != 0;
		}
		if (found || kernel->now >= until)
			return found;
		proc_block(o, count, NULL, NULL, timers_of(o, count, until));
	}
}

CALL(int, epoll_create1, int flags)
{
	return proc_fd_put(me(), object_new(OBJ_EPOLL), 0, flags & EPOLL_CLOEXEC);
}

CALL(int, epoll_ctl, int ep, int op, int fd, struct epoll_event *e)
{
	struct object *o = proc_fd(ep), *k = proc_fd(fd);

	return o && k ? object_epoll_ctl(o, op, fd, k, e) : fail(EBADF);
}

CALL(int, epoll_wait, int ep, struct epoll_event *e, int max, int ms)
{
	uint64_t until = ms < 0 ? NS_NEVER : kernel->now + (uint64_t)ms * NS_PER_MS;
	struct object *o = proc_fd(ep);

	(void)max;
	if (!o || o->kind != OBJ_EPOLL)
		return fail(EBADF);
	point();
	for (;;) {
		uint64_t deadline = until;

		if (object_epoll_take(o, me(), e))
			return 1;
		if (kernel->now >= until)
			return 0;
		for (size_t i = 0; i < o->u.epoll.count; i++)
			deadline = timers_of(&o->u.epoll.entries[i].o, 1, deadline);
		proc_block(&o, 1, NULL, NULL, deadline);
	}
}

/* ---- processes ---- */

CALL(pid_t, fork, void)
{
	point();
	return proc_fork();
}

CALL(void, _exit, int status)
{
	proc_exit((status & 0xff) << 8);
}

CALL(void, abort, void)
{
	kernel_fail("process %d (%s) has called abort", (int)me()->pid, me()->name);
	proc_exit(SIGABRT);
}

CALL(void, __assert_fail, const char *what, const char *file, unsigned line, const char *function)
{
	kernel_fail("%s:%u: %s: '%s' does not hold", file, line, function, what);
	proc_exit(SIGABRT);
}

CALL(int, execve, const char *path, char *const *argv, char *const *env)
{
	kernel->on_exec(me(), path, argv, env);
	return fail(ENOENT);
}

CALL(int, execvp, const char *file, char *const *argv)
{
	kernel->on_exec(me(), file, argv, NULL);
	return fail(ENOENT);
}

CALL(pid_t, getpid, void)
{
	return me()->pid;
}

CALL(pid_t, getppid, void)
{
	return me()->parent;
}

CALL(pid_t, getpgrp, void)
{
	return me()->group;
}

CALL(int, setpgid, pid_t pid, pid_t group)
{
	struct proc *p = pid ? proc_find(pid) : me();

	if (!p || !proc_alive(p))
		return fail(ESRCH);
	p->group = group ? group : p->pid;
	return 0;
}

CALL(pid_t, setsid, void)
{
	return me()->group = me()->pid;
}

CALL(pid_t, tcgetpgrp, int fd)
{
	(void)fd;
	return fail(ENOTTY);
}

CALL(pid_t, waitpid, pid_t pid, int *status, int flags)
{
	point();
	return proc_wait(pid, status, flags);
}

CALL(int, kill, pid_t pid, int sig)
{
	struct machine *h = me()->host;
	bool found = false;

	point();
	if (pid > 0) {
		struct proc *p = proc_find(pid);

		return p && p->host == h ? proc_kill(p, sig) : fail(ESRCH);
	}
	for (uint32_t i = 0; i < kernel->proc_limit; i++) {
		struct proc *p = &kernel->procs[i];

		if (p->state == PROC_FREE || p->host != h || p == me() ||
		    p->group != (pid ? -pid : me()->group))
			continue;
		found = true;
		proc_kill(p, sig);
	}
	return found ? 0 : fail(ESRCH);
}

CALL(int, raise, int sig)
{
	return proc_kill(me(), sig);
}

CALL(int, prctl, int what, ...)
{
	va_list args;
	unsigned long value;

	va_start(args, what);
	value = va_arg(args, unsigned long);
	va_end(args);
	if (what == PR_SET_PDEATHSIG)
		me()->death_signal = (int)value;
	if (what == PR_SET_CHILD_SUBREAPER)
		me()->subreaper = value;
	if (what == PR_SET_NAME)
		snprintf(me()->name, sizeof(me()->name), "%s", (const char *)value);
	return 0;
}

CALL(long, syscall, long number, ...)
{
	va_list args;
	long a, b, c;

	va_start(args, number);
	a = va_arg(args, long);
	b = va_arg(args, long);
	c = va_arg(args, long);
	va_end(args);
	if (number == SYS_pidfd_open) {
		struct proc *p = proc_find((pid_t)a);
		struct object *o;

		if (!p)
			return fail(ESRCH);
		o = object_new(OBJ_PIDFD);
		o->u.target = p;
		return proc_fd_put(me(), o, 0, true);
	}
	if (number == SYS_tgkill) {
		struct proc *p = proc_find((pid_t)b);

		return p ? proc_kill(p, (int)c) : fail(ESRCH);
	}
	if (number == SYS_nanosleep) {
		proc_sleep(NS_PER_MS);
		return 0;
	}
	return number == SYS_futex || number == SYS_ioprio_set ? 0 : fail(ENOSYS);
}

CALL(int, personality, unsigned long persona)
{
	(void)persona;
	return 0;
}

CALL(int, nice, int by)
{
	return by;
}

CALL(int, setpriority, int which, id_t who, int value)
{
	(void)which, (void)who, (void)value;
	return 0;
}

CALL(int, getrlimit64, int which, struct rlimit *limit)
{
	(void)which;
	*limit = (struct rlimit){1 << 20, 1 << 20};
	return 0;
}

CALL(int, setrlimit64, int which, const struct rlimit *limit)
{
	(void)which, (void)limit;
	return 0;
}

CALL(int, sched_setaffinity, pid_t pid, size_t len, const cpu_set_t *set)
{
	(void)pid, (void)len, (void)set;
	return 0;
}

CALL(int, gethostname, char *name, size_t len)
{
	snprintf(name, len, "%s", me()->host->name);
	return 0;
}

CALL(char *, getenv, const char *name)
{
	size_t len = strlen(name);

	for (char **e = me()->env; e && *e; e++)
		if (!strncmp(*e, name, len) && (*e)[len] == '=')
			return *e + len + 1;
	return NULL;
}

CALL(int, setenv, const char *name, const char *value, int over)
{
	(void)name, (void)value, (void)over;
	return 0;
}

/* ---- signals ---- */

static uint64_t bits_of(const sigset_t *set)
{
	uint64_t bits = 0;

	for (int i = 1; i <= 64; i++)
		if (sigismember(set, i) == 1)
			bits |= 1ull << (i - 1);
	return bits;
}

CALL(int, sigprocmask, int how, const sigset_t *set, sigset_t *old)
{
	uint64_t had = me()->blocked;

	if (old) {
		sigemptyset(old);
		for (int i = 1; i <= 64; i++)
			if (had & (1ull << (i - 1)))
				sigaddset(old, i);
	}
	if (set) {
		uint64_t bits = bits_of(set);

		me()->blocked = how == SIG_BLOCK     ? had | bits
				: how == SIG_UNBLOCK ? had & ~bits
						     : bits;
	}
	/* what was pending and is not blocked any more */
	for (int i = 1; i <= 64; i++) {
		uint64_t bit = 1ull << (i - 1);

		if (me()->pending & bit & ~me()->blocked & ~me()->handled) {
			me()->pending &= ~bit;
			proc_kill(me(), i);
		}
	}
	return 0;
}

static void (*dispose(int sig, void (*handler)(int)))(int)
{
	uint64_t bit = 1ull << (sig - 1);
	void (*old)(int) = me()->ignored & bit	 ? SIG_IGN
			   : me()->handled & bit ? me()->handler[sig]
						 : SIG_DFL;

	me()->ignored &= ~bit;
	me()->handled &= ~bit;
	if (handler == SIG_IGN)
		me()->ignored |= bit;
	else if (handler != SIG_DFL)
		me()->handled |= bit;
	me()->handler[sig] = handler;
	return old;
}

CALL(handler_t, signal, int sig, handler_t handler)
{
	return dispose(sig, handler);
}

CALL(int, sigaction, int sig, const struct sigaction *new, struct sigaction *old)
{
	uint64_t bit = 1ull << (sig - 1);

	if (old)
		*old = (struct sigaction){.sa_handler = me()->ignored & bit   ? SIG_IGN
							: me()->handled & bit ? me()->handler[sig]
									      : SIG_DFL};
	if (new)
		dispose(sig, new->sa_handler);
	return 0;
}

CALL(int, signalfd, int fd, const sigset_t *set, int flags)
{
	struct object *o;

	if (fd >= 0)
		return fail(EINVAL);
	o = object_new(OBJ_SIGNALFD);
	o->u.signals = bits_of(set);
	o->flags = flags & SFD_NONBLOCK ? O_NONBLOCK : 0;
	return proc_fd_put(me(), o, 0, flags & SFD_CLOEXEC);
}

/* ---- sockets ---- */

CALL(int, socket, int domain, int type, int protocol)
{
	struct object *o;

	(void)protocol;
	if (domain != AF_UNIX)
		return fail(EAFNOSUPPORT);
	o = object_socket(type & 15);
	o->flags |= type & SOCK_NONBLOCK ? O_NONBLOCK : 0;
	return proc_fd_put(me(), o, 0, type & SOCK_CLOEXEC);
}

CALL(int, socketpair, int domain, int type, int protocol, int ends[2])
{
	struct object *a, *b;

	(void)domain, (void)protocol;
	object_socket_pair(type & 15, &a, &b);
	a->flags |= type & SOCK_NONBLOCK ? O_NONBLOCK : 0;
	b->flags |= type & SOCK_NONBLOCK ? O_NONBLOCK : 0;
	ends[0] = proc_fd_put(me(), a, 0, type & SOCK_CLOEXEC);
	ends[1] = proc_fd_put(me(), b, 0, type & SOCK_CLOEXEC);
	return ends[0] < 0 || ends[1] < 0 ? -1 : 0;
}

static struct object *socket_of(int fd)
{
	struct object *o = proc_fd(fd);

	if (o && o->kind != OBJ_SOCKET) {
		errno = ENOTSOCK;
		return NULL;
	}
	return o;
}

CALL(int, bind, int fd, const struct sockaddr *address, socklen_t len)
{
	const struct sockaddr_un *u = (const void *)address;
	struct object *o = socket_of(fd);
	struct machine *h = me()->host;

	if (!o)
		return -1;
	if (object_listener(h, u->sun_path, len - 2))
		return fail(EADDRINUSE);
	memcpy(o->u.socket.name, u->sun_path, len - 2);
	o->u.socket.name_len = len - 2;
	o->u.socket.host = h;
	o->u.socket.peer_pid = me()->pid;
	if (h->listener_count == h->listener_cap) {
		h->listener_cap = h->listener_cap ? 2 * h->listener_cap : 8;
		h->listeners = realloc(h->listeners, h->listener_cap * sizeof(*h->listeners));
	}
	h->listeners[h->listener_count++] = o;
	return 0;
}

CALL(int, listen, int fd, int backlog)
{
	struct object *o = socket_of(fd);

	(void)backlog;
	if (!o)
		return -1;
	o->u.socket.listening = true;
	return 0;
}

CALL(int, connect, int fd, const struct sockaddr *address, socklen_t len)
{
	const struct sockaddr_un *u = (const void *)address;
	struct object *o = socket_of(fd);

	point();
	return o ? object_connect(o, me()->host, u->sun_path, len - 2) : -1;
}

CALL(int, accept4, int fd, struct sockaddr *address, socklen_t *len, int flags)
{
	struct object *l = socket_of(fd), *o;

	(void)address, (void)len;
	if (!l)
		return -1;
	point();
	while (!(o = object_accept(l)) && waits(l, 0))
		proc_block(&l, 1, NULL, NULL, NS_NEVER);
	if (!o)
		return -1;
	o->flags |= flags & SOCK_NONBLOCK ? O_NONBLOCK : 0;
	return proc_fd_put(me(), o, 0, flags & SOCK_CLOEXEC);
}

CALL(int, accept, int fd, struct sockaddr *address, socklen_t *len)
{
	return simulate_accept4(fd, address, len, 0);
}

CALL(int, getsockopt, int fd, int level, int what, void *value, socklen_t *len)
{
	const struct object *o = socket_of(fd);

	(void)level;
	if (!o)
		return -1;
	memset(value, 0, *len);
	if (what == SO_PEERCRED) {
		struct ucred *c = value;

		c->pid = o->u.socket.peer_pid;
		c->uid = geteuid();
		c->gid = getegid();
	}
	return 0;
}

CALL(int, setsockopt, int fd, int level, int what, const void *value, socklen_t len)
{
	(void)level, (void)what, (void)value, (void)len;
	return socket_of(fd) ? 0 : -1;
}

CALL(int, getsockname, int fd, struct sockaddr *address, socklen_t *len)
{
	(void)address, (void)len;
	return socket_of(fd) ? fail(EOPNOTSUPP) : -1;
}

CALL(int, shutdown, int fd, int how)
{
	struct object *o = socket_of(fd);

	if (!o)
		return -1;
	point();
	o->u.socket.shut_in |= how != SHUT_WR;
	o->u.socket.shut_out |= how != SHUT_RD;
	object_changed(o);
	if (o->u.socket.peer)
		object_changed(o->u.socket.peer);
	return 0;
}

static ssize_t send_all(int fd, const void *bytes, size_t len, int flags, struct object **passed,
			int count)
{
	struct object *o = socket_of(fd);
	ssize_t n;

	if (!o)
		return -1;
	point();
	while ((n = object_send(o, bytes, len, passed, count)) < 0 && waits(o, flags)) {
		struct object *w[2] = {o, o->u.socket.peer};

		proc_block(w, 2, NULL, NULL, NS_NEVER);
	}
	if (n < 0 && errno == EPIPE && !(flags & MSG_NOSIGNAL))
		proc_kill(me(), SIGPIPE);
	return n;
}

CALL(ssize_t, send, int fd, const void *bytes, size_t len, int flags)
{
	return send_all(fd, bytes, len, flags, NULL, 0);
}

CALL(ssize_t, sendto, int fd, const void *bytes, size_t len, int flags, const struct sockaddr *to,
     socklen_t to_len)
{
	(void)to, (void)to_len;
	return send_all(fd, bytes, len, flags, NULL, 0);
}

CALL(ssize_t, sendmsg, int fd, const struct msghdr *m, int flags)
{
	struct object *passed[16];
	int count = 0;
	unsigned char *bytes;
	size_t len = 0;
	ssize_t n;

	for (struct cmsghdr *h = CMSG_FIRSTHDR(m); h; h = CMSG_NXTHDR((struct msghdr *)m, h)) {
		int fds = (int)((h->cmsg_len - CMSG_LEN(0)) / sizeof(int)), k;

		for (int i = 0; h->cmsg_type == SCM_RIGHTS && i < fds; i++) {
			memcpy(&k, CMSG_DATA(h) + (size_t)i * sizeof(k), sizeof(k));
			passed[count] = proc_fd(k);
			if (!passed[count++])
				return -1;
		}
	}
	for (size_t i = 0; i < m->msg_iovlen; i++)
		len += m->msg_iov[i].iov_len;
	bytes = proc_malloc(len ? len : 1);
	len = 0;
	for (size_t i = 0; i < m->msg_iovlen; i++) {
		memcpy(bytes + len, m->msg_iov[i].iov_base, m->msg_iov[i].iov_len);
		len += m->msg_iov[i].iov_len;
	}
	n = send_all(fd, bytes, len, flags, passed, count);
	proc_free(bytes);
	return n;
}

static ssize_t receive(int fd, void *bytes, size_t len, int flags, struct object **passed,
		       int *count, bool *truncated)
{
	struct object *o = socket_of(fd);
	size_t done = 0;
	ssize_t n;

	if (!o)
		return -1;
	point();
	do {
		n = object_receive(o, (char *)bytes + done, len - done, flags & MSG_PEEK, passed,
				   count, truncated);
		if (n > 0)
			done += (size_t)n;
		else if (n < 0 && waits(o, flags))
			proc_block(&o, 1, NULL, NULL, NS_NEVER);
		else
			break;
	} while (done == 0 || ((flags & MSG_WAITALL) && done < len));
	return done > 0 ? (ssize_t)done : n;
}

CALL(ssize_t, recv, int fd, void *bytes, size_t len, int flags)
{
	return receive(fd, bytes, len, flags, NULL, NULL, NULL);
}

CALL(ssize_t, recvmsg, int fd, struct msghdr *m, int flags)
{
	struct object *passed[16];
	struct cmsghdr *h = m->msg_control;
	int count = 0, room = 0;
	bool truncated = false;
	ssize_t n = receive(fd, m->msg_iov[0].iov_base, m->msg_iov[0].iov_len, flags, passed,
			    &count, &truncated);

	if (m->msg_control && m->msg_controllen >= CMSG_LEN(sizeof(int)))
		room = (int)((m->msg_controllen - CMSG_LEN(0)) / sizeof(int));
	m->msg_flags = truncated ? MSG_TRUNC : 0;
	m->msg_controllen = 0;
	m->msg_namelen = 0;
	for (int i = 0; i < count; i++) {
		int k = i < room ? proc_fd_put(me(), passed[i], 0, flags & MSG_CMSG_CLOEXEC) : -1;

		if (i >= room) {
			object_drop(passed[i]);
			m->msg_flags |= MSG_CTRUNC;
			continue;
		}
		h->cmsg_level = SOL_SOCKET;
		h->cmsg_type = SCM_RIGHTS;
		memcpy(CMSG_DATA(h) + (size_t)i * sizeof(k), &k, sizeof(k));
		h->cmsg_len = CMSG_LEN((size_t)(i + 1) * sizeof(k));
		m->msg_controllen = CMSG_SPACE((size_t)(i + 1) * sizeof(k));
	}
	return n;
}

/* One call of the kernel: whoever is killed has moved the bytes, or has not. */
static ssize_t move(int out, int in, size_t len)
{
	char bytes[4096];
	uint64_t last_call = me()->last_call;
	double yield = kernel->yield;
	ssize_t n;

	point();
	me()->last_call = 0;
	kernel->yield = 0;
	n = simulate_read(in, bytes, len < sizeof(bytes) ? len : sizeof(bytes));
	if (n > 0)
		n = simulate_write(out, bytes, (size_t)n);
	kernel->yield = yield;
	me()->last_call = last_call > me()->calls ? last_call : last_call ? me()->calls + 1 : 0;
	return n;
}

CALL(ssize_t, splice, int in, off_t *in_at, int out, off_t *out_at, size_t len, unsigned flags)
{
	(void)in_at, (void)out_at, (void)flags;
	return move(out, in, len);
}

CALL(ssize_t, sendfile64, int out, int in, off_t *at, size_t len)
{
	(void)at;
	return move(out, in, len);
}

/* ---- files ---- */

static int open_at(const char *path, int flags)
{
	struct object *o;

	point();
	o = disk_open(path, flags);
	return o ? proc_fd_put(me(), o, 0, flags & O_CLOEXEC) : -1;
}

CALL(int, open64, const char *path, int flags, ...)
{
	return open_at(path, flags);
}

/* Folders are opened to work in them with the …at calls: their path goes with the object. */
static const char *path_at(int fd, const char *path, char out[PATH_MAX])
{
	if (path[0] == '/' || fd == AT_FDCWD)
		return path;
	if (!proc_fd(fd) || proc_fd(fd)->kind != OBJ_FOLDER)
		return NULL;
	snprintf(out, PATH_MAX, "%s/%s", proc_fd(fd)->u.file.path, path);
	return out;
}

CALL(int, openat64, int at, const char *path, int flags, ...)
{
	char whole[PATH_MAX];
	const char *p = path_at(at, path, whole);

	return p ? open_at(p, flags) : fail(EBADF);
}

CALL(int, unlink, const char *path)
{
	point();
	return disk_unlink(path, false);
}

CALL(int, rmdir, const char *path)
{
	point();
	return disk_unlink(path, true);
}

CALL(int, unlinkat, int at, const char *path, int flags)
{
	char whole[PATH_MAX];
	const char *p = path_at(at, path, whole);

	point();
	return p ? disk_unlink(p, flags & AT_REMOVEDIR) : fail(EBADF);
}

CALL(int, mkdir, const char *path, mode_t mode)
{
	(void)mode;
	point();
	return disk_make_folder(path);
}

CALL(int, rename, const char *from, const char *to)
{
	point();
	return disk_rename(from, to);
}

CALL(int, renameat, int from_at, const char *from, int to_at, const char *to)
{
	char whole[PATH_MAX], other[PATH_MAX];
	const char *p = path_at(from_at, from, whole), *q = path_at(to_at, to, other);

	point();
	return p && q ? disk_rename(p, q) : fail(EBADF);
}

CALL(int, link, const char *from, const char *to)
{
	point();
	return disk_link(from, to);
}

CALL(int, access, const char *path, int mode)
{
	(void)mode;
	return disk_find(path) ? 0 : -1;
}

CALL(int, chdir, const char *path)
{
	char whole[PATH_MAX];
	const struct inode *n = disk_find(path);

	if (!n || !n->folder)
		return fail(ENOENT);
	disk_absolute(path, whole);
	snprintf(me()->cwd, sizeof(me()->cwd), "%.500s", whole);
	return 0;
}

CALL(char *, getcwd, char *out, size_t len)
{
	snprintf(out, len, "%s", me()->cwd);
	return out;
}

CALL(char *, realpath, const char *path, char *out)
{
	if (!disk_find(path))
		return NULL;
	if (!out)
		out = proc_malloc(PATH_MAX);
	disk_absolute(path, out);
	return out;
}

CALL(ssize_t, readlink, const char *path, char *out, size_t len)
{
	const char *to = strstr(path, "/exe") ? "/apps/hale" : "net:[1]";

	if (strncmp(path, "/proc/", 6) != 0)
		return fail(EINVAL);
	len = strlen(to) < len ? strlen(to) : len;
	memcpy(out, to, len);
	return (ssize_t)len;
}

CALL(int, stat64, const char *path, struct stat *st)
{
	const struct inode *n = disk_find(path);

	if (!n)
		return -1;
	disk_stat(n, st);
	return 0;
}

CALL(int, lstat64, const char *path, struct stat *st)
{
	return simulate_stat64(path, st);
}

CALL(int, fstatat64, int at, const char *path, struct stat *st, int flags)
{
	char whole[PATH_MAX];
	const char *p = path_at(at, path, whole);

	(void)flags;
	return p ? simulate_stat64(p, st) : fail(EBADF);
}

CALL(int, fstat64, int fd, struct stat *st)
{
	const struct object *o = proc_fd(fd);

	if (!o)
		return -1;
	if (o->kind == OBJ_FILE || o->kind == OBJ_FOLDER) {
		disk_stat(o->u.file.node, st);
		return 0;
	}
	*st = (struct stat){.st_ino = o->number,
			    .st_dev = 9,
			    .st_uid = geteuid(),
			    .st_mode = o->kind == OBJ_SOCKET ? S_IFSOCK | 0600
				       : o->kind == OBJ_NULL ? S_IFCHR | 0666
							     : S_IFIFO | 0600};
	if (o->kind == OBJ_MEMFD) {
		st->st_mode = S_IFREG | 0600;
		st->st_size = (off_t)o->u.memory->len;
	}
	return 0;
}

CALL(int, ftruncate64, int fd, off_t len)
{
	struct object *o = proc_fd(fd);

	if (!o)
		return -1;
	if (o->kind == OBJ_MEMFD) {
		struct memory_file *m = o->u.memory;

		if (!m->bytes) {
			m->cap = (size_t)len;
			m->bytes = mmap(NULL, m->cap, PROT_READ | PROT_WRITE,
					MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
			if (kernel->mapping_count == 8192 || m->bytes == MAP_FAILED)
				abort();
			kernel->mappings[kernel->mapping_count] = m->bytes;
			kernel->mapping_len[kernel->mapping_count++] = m->cap;
		}
		m->len = (size_t)len;
		return 0;
	}
	if (o->kind != OBJ_FILE)
		return fail(EINVAL);
	if ((size_t)len < o->u.file.node->len)
		o->u.file.node->len = (size_t)len;
	return 0;
}

CALL(int, fallocate64, int fd, int mode, off_t at, off_t len)
{
	(void)mode, (void)at, (void)len;
	return proc_fd(fd) ? 0 : -1;
}

CALL(int, fsync, int fd)
{
	point();
	return proc_fd(fd) ? 0 : -1;
}

CALL(int, fdatasync, int fd)
{
	return simulate_fsync(fd);
}

CALL(int, sync_file_range, int fd, off_t at, off_t len, unsigned flags)
{
	(void)at, (void)len, (void)flags;
	return proc_fd(fd) ? 0 : -1;
}

CALL(int, statvfs64, const char *path, struct statvfs *st)
{
	if (!disk_find(path))
		return -1;
	*st = (struct statvfs){.f_bsize = 4096,
			       .f_frsize = 4096,
			       .f_bavail = 1 << 28,
			       .f_bfree = 1 << 28,
			       .f_blocks = 1 << 29};
	return 0;
}

CALL(ssize_t, getxattr, const char *path, const char *name, void *value, size_t len)
{
	(void)path, (void)name, (void)value, (void)len;
	return fail(ENOTSUP);
}

CALL(char *, mkdtemp, char *template)
{
	snprintf(strrchr(template, 'X') - 5, 7, "%06u", (unsigned)kernel_random(1000000));
	return disk_make_folder(template) == 0 ? template : NULL;
}

/* ---- folders ---- */

struct simulate_dir {
	char (*names)[256];
	size_t count, at;
	int fd;
	struct dirent entry;
	char path[PATH_MAX];
};

CALL(struct simulate_dir *, opendir, const char *path)
{
	struct simulate_dir *d = calloc(1, sizeof(*d));

	point();
	d->fd = -1;
	d->count = disk_list(path, &d->names);
	snprintf(d->path, sizeof(d->path), "%s", path);
	if (d->count != (size_t)-1)
		return d;
	free(d);
	errno = ENOENT;
	return NULL;
}

CALL(struct dirent *, readdir64, struct simulate_dir *d)
{
	if (d->at == d->count)
		return NULL;
	snprintf(d->entry.d_name, sizeof(d->entry.d_name), "%s", d->names[d->at++]);
	d->entry.d_type = DT_UNKNOWN;
	return &d->entry;
}

/* What is in the folder now. */
CALL(void, rewinddir, struct simulate_dir *d)
{
	free(d->names);
	d->count = disk_list(d->path, &d->names);
	if (d->count == (size_t)-1)
		d->count = 0;
	d->at = 0;
}

CALL(int, closedir, struct simulate_dir *d)
{
	if (d->fd >= 0)
		simulate_close(d->fd);
	free(d->names);
	free(d);
	return 0;
}

CALL(int, dirfd, struct simulate_dir *d)
{
	return d->fd;
}

CALL(struct simulate_dir *, fdopendir, int fd)
{
	struct simulate_dir *d;
	char path[PATH_MAX];

	if (!path_at(fd, ".", path))
		return errno = EBADF, NULL;
	d = simulate_opendir(path);
	if (d)
		d->fd = fd;
	return d;
}

/* ---- streams ---- */

static ssize_t stream_read(void *cookie, char *bytes, size_t len)
{
	return simulate_read((int)(intptr_t)cookie, bytes, len);
}

static ssize_t stream_write(void *cookie, const char *bytes, size_t len)
{
	ssize_t n = simulate_write((int)(intptr_t)cookie, bytes, len);

	return n < 0 ? 0 : n;
}

static int stream_close(void *cookie)
{
	return simulate_close((int)(intptr_t)cookie);
}

static int stream_seek(void *cookie, off64_t *at, int whence)
{
	off_t to = simulate_lseek64((int)(intptr_t)cookie, *at, whence);

	*at = to;
	return to < 0 ? -1 : 0;
}

CALL(FILE *, fdopen, int fd, const char *mode)
{
	const cookie_io_functions_t calls = {stream_read, stream_write, stream_seek, stream_close};

	return proc_fd(fd) ? fopencookie((void *)(intptr_t)fd, mode, calls) : NULL;
}

/* Its text lies in the process's own heap: a child after fork has a copy. */
struct text_stream {
	char **text;
	size_t *len, cap;
};

static ssize_t text_write(void *cookie, const char *bytes, size_t len)
{
	struct text_stream *t = cookie;

	if (*t->len + len + 1 > t->cap) {
		t->cap = 2 * (*t->len + len + 1);
		*t->text = proc_realloc(*t->text, t->cap);
	}
	memcpy(*t->text + *t->len, bytes, len);
	*t->len += len;
	(*t->text)[*t->len] = '\0';
	return (ssize_t)len;
}

static int text_close(void *cookie)
{
	return proc_free(cookie) ? 0 : -1;
}

CALL(FILE *, open_memstream, char **text, size_t *len)
{
	const cookie_io_functions_t calls = {NULL, text_write, NULL, text_close};
	struct text_stream *t = proc_malloc(sizeof(*t));

	*text = proc_malloc(1);
	**text = '\0';
	*len = 0;
	*t = (struct text_stream){text, len, 1};
	return fopencookie(t, "w", calls);
}

CALL(FILE *, fopen64, const char *path, const char *mode)
{
	int flags = mode[0] == 'r' ? O_RDONLY : O_WRONLY | O_CREAT;
	char plain[8];
	size_t n = 0;
	int fd;

	if (strchr(mode, '+'))
		flags = (flags & ~O_ACCMODE) | O_RDWR;
	flags |= mode[0] == 'w' ? O_TRUNC : mode[0] == 'a' ? O_APPEND : 0;
	flags |= strchr(mode, 'x') ? O_EXCL : 0;
	for (const char *c = mode; *c && n < 4; c++)
		if (!strchr("ex", *c))
			plain[n++] = *c;
	plain[n] = '\0';
	fd = open_at(path, flags | O_CLOEXEC);
	return fd >= 0 ? simulate_fdopen(fd, plain) : NULL;
}

CALL(int, dprintf, int fd, const char *format, ...)
{
	char text[8192];
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	return n > 0 ? (int)simulate_write(fd, text, (size_t)n) : n;
}

CALL(FILE *, popen, const char *command, const char *mode)
{
	(void)command, (void)mode;
	errno = ENOENT;
	return NULL;
}

/* ---- what there is none of here ---- */

CALL(int, hwloc_topology_init, void *topology)
{
	(void)topology;
	return -1;
}

CALL(void *, dlopen, const char *file, int flags)
{
	(void)file, (void)flags;
	return NULL;
}
