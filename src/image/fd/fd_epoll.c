// SPDX-License-Identifier: BSD-3-Clause
/* epoll: the list of what it watches, told by fdinfo:
 *   tfd:        5 events:       1d data:                5  pos:0 ino:61af sdev:7
 *
 * The number is the one that a file had when it was added. It may have been closed since, or be
 * another file's, while the watched one has another number: the kernel tells which. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/fmt.h"
#include "image/fd/fd.h"

enum { INFO_MAX = 256 << 10, KCMP_EPOLL_TFD = 7 };

static bool match(const struct fd_table *t, const struct fd_probe *p)
{
	return fd_is_anon(p, "[eventpoll]");
}

static uint64_t take(const char **at, const char *key, int base)
{
	const char *p = strstr(*at, key);
	uint64_t v = 0;
	if (!p)
		return 0;
	for (p += strlen(key); *p == ' '; p++)
		;
	for (;; p++) {
		int digit = *p >= '0' && *p <= '9'   ? *p - '0'
			    : *p >= 'a' && *p <= 'f' ? *p - 'a' + 10
						     : 99;
		if (digit >= base)
			break;
		v = v * (uint64_t)base + (uint64_t)digit;
	}
	*at = p;
	return v;
}

/* 0: descriptor fd is what epoll watches by the number tfd, the nth file of that number. */
static long epoll_compare(int epoll, int32_t tfd, uint32_t nth, int fd)
{
	struct {
		uint32_t efd, tfd, nth;
	} slot = {(uint32_t)epoll, (uint32_t)tfd, nth};
	long pid = sys(SYS_getpid);
	return sys(SYS_kcmp, pid, pid, KCMP_EPOLL_TFD, fd, &slot);
}

/* A descriptor that is the watched file; -1: none. Where the kernel doesn't compare it is taken to
 * be the one of that number. */
static int32_t source_of(const struct fd_table *t, int epoll, int32_t tfd, uint32_t nth)
{
	struct fd_dir dir;
	int32_t found = -1;
	long rc = epoll_compare(epoll, tfd, nth, tfd);
	if (!rc || rc == -ENOSYS || rc == -EPERM)
		return tfd;
	if (!fd_dir_open(&dir, t->proc))
		return -1;
	for (int fd; found < 0 && (fd = fd_dir_next(&dir)) >= 0;)
		if (!epoll_compare(epoll, tfd, nth, fd))
			found = fd;
	fd_dir_close(&dir);
	return found;
}

/* How many before this one have its number. */
static uint32_t count_before(const struct fd_table *t, size_t begin, uint64_t count, int32_t tfd)
{
	uint32_t n = 0;
	for (uint64_t i = 0; i < count; i++) {
		struct epoll_record e;
		memcpy(&e, t->text.data + begin + i * sizeof(e), sizeof(e));
		n += e.fd == tfd;
	}
	return n;
}

static hale_status_t capture(struct fd_table *t, const struct fd_probe *p, struct fd_record *r,
			     struct error *err)
{
	char path[64], *info = arena_alloc(t->arena, INFO_MAX);
	fmt_print(path, sizeof(path), "%s/fdinfo/%d", t->proc, p->fd);
	if (!info || sys_read_small(path, info, INFO_MAX) < 0)
		return error_set(err, HALE_ERR_SYSTEM, "can't read %s", path);
	size_t begin = t->text.len;
	for (const char *at = info; (at = strstr(at, "tfd:")) != NULL;) {
		struct epoll_record e = {0};
		void *to = bytes_extend(&t->text, sizeof(e));
		if (!to)
			return error_set(err, HALE_ERR_MEMORY, "no memory for descriptors");
		e.fd = (int32_t)take(&at, "tfd:", 10);
		e.events = (uint32_t)take(&at, "events:", 16);
		e.data = take(&at, "data:", 16);
		e.source = e.fd;
		if (!t->other)
			e.source = source_of(t, p->fd, e.fd, count_before(t, begin, r->a, e.fd));
		if (e.source < 0 || (!t->other && fd_way_has(t, e.source)))
			return fd_refuse(p, "an epoll of a file that only others have open", err);
		memcpy(to, &e, sizeof(e)); /* texts before it may have any length */
		r->a++;
	}
	r->text_offset = (uint32_t)begin;
	r->text_len = (uint32_t)(t->text.len - begin);
	return HALE_OK;
}

static int open_epoll(struct fd_restore *f, size_t index, struct error *err)
{
	long fd = sys(SYS_epoll_create1, EPOLL_CLOEXEC);
	if (fd < 0)
		error_set(err, HALE_ERR_SYSTEM, "can't make an epoll descriptor again (error %ld)",
			  -fd);
	return (int)fd;
}

/* Under the number that it was added by, whatever has that number now. */
static long watch_by_number(int epoll, const struct epoll_record *e, struct epoll_event *event)
{
	if (e->source == e->fd)
		return sys(SYS_epoll_ctl, epoll, EPOLL_CTL_ADD, e->fd, event);
	long flags = sys(SYS_fcntl, e->fd, F_GETFD), rc;
	long there = flags >= 0 ? sys(SYS_fcntl, e->fd, F_DUPFD_CLOEXEC, 0) : -1;
	if (flags >= 0 && there < 0)
		return there;
	rc = sys(SYS_dup3, e->source, e->fd, O_CLOEXEC);
	if (rc >= 0)
		rc = sys(SYS_epoll_ctl, epoll, EPOLL_CTL_ADD, e->fd, event);
	if (there < 0) {
		sys(SYS_close, e->fd);
		return rc;
	}
	sys(SYS_dup3, there, e->fd, flags & FD_CLOEXEC ? O_CLOEXEC : 0);
	sys(SYS_close, there);
	return rc;
}

/* One of EPOLLONESHOT that has told: the kernel keeps of its events what says how it tells. */
static bool is_disarmed(const struct epoll_record *e)
{
	return e->events & EPOLLONESHOT &&
	       !(e->events & ~(uint32_t)(EPOLLONESHOT | EPOLLET | EPOLLWAKEUP | EPOLLEXCLUSIVE));
}

/* Whatever is added tells of errors and of hanging up, until it has told of something: so of what
 * is ready now. An empty pipe has a byte for a moment; what else is not ready for anything (what
 * listens, timers) knows no hanging up. */
static long watch_disarmed(int epoll, const struct epoll_record *e, struct epoll_event *event)
{
	struct pollfd look = {.fd = e->source, .events = POLLIN | POLLOUT | POLLPRI | POLLRDHUP};
	const struct timespec now = {0, 0};
	struct epoll_event told;
	struct stat st = {0};
	char path[64], byte = 0;
	long writer = -1, reader = -1, wrote = 0;
	fmt_print(path, sizeof(path), "/proc/thread-self/fd/%d", e->source);
	if (!sys(SYS_ppoll, &look, 1, &now, NULL, 0) && !sys(SYS_fstat, e->source, &st) &&
	    S_ISFIFO(st.st_mode)) {
		writer = sys(SYS_openat, AT_FDCWD, path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
		reader = sys(SYS_openat, AT_FDCWD, path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
		look.revents = POLLIN;
		if (writer >= 0 && reader >= 0)
			wrote = sys(SYS_write, writer, &byte, 1);
	}
	event->events |= (uint32_t)look.revents;
	long rc = watch_by_number(epoll, e, event);
	if (rc >= 0)
		sys(SYS_epoll_pwait, epoll, &told, 1, 0, NULL, 0);
	if (wrote == 1) /* a full one takes none */
		sys(SYS_read, reader, &byte, 1);
	if (writer >= 0)
		sys(SYS_close, writer);
	if (reader >= 0)
		sys(SYS_close, reader);
	return rc;
}

/* Those that have told first: what is added later must not be told of. */
static bool connect_epoll(struct fd_restore *f, size_t index, struct error *err)
{
	const struct fd_record *r = &f->record[index];
	const int fd = fd_now(f, index);
	for (uint64_t k = 0; k < 2 * r->a; k++) {
		struct epoll_record e;
		uint64_t i = k % r->a;
		memcpy(&e, fd_text(f, r) + i * sizeof(e), sizeof(e));
		struct epoll_event event = {.events = e.events, .data.u64 = e.data};
		if (is_disarmed(&e) != (k < r->a))
			continue;
		long rc = is_disarmed(&e) ? watch_disarmed(fd, &e, &event)
					  : watch_by_number(fd, &e, &event);
		if (rc < 0) {
			error_set(err, HALE_ERR_SYSTEM,
				  "can't watch descriptor %d again by epoll %d (error %ld)", e.fd,
				  r->fd, -rc);
			return false;
		}
	}
	return true;
}

const struct fd_ops fd_epoll = {.kind = FD_EPOLL,
				.name = "epoll",
				.match = match,
				.capture = capture,
				.open = open_epoll,
				.connect = connect_epoll};
