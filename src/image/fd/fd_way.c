// SPDX-License-Identifier: BSD-3-Clause
/* Descriptors on their way: sent by SCM_RIGHTS through an AF_UNIX socket, and not received yet.
 *
 * A look at what waits in a socket (MSG_PEEK) opens them here once more. They become records like
 * all others, with numbers from FD_ON_WAY on, and the content of the socket becomes parcels that
 * name them:
 *
 *   struct parcel_head | int32_t number[fds] | bytes     struct parcel_head …
 *
 * Who reads bytes of a stream without asking for descriptors loses those that come with them. So
 * what was sent with descriptors has to stay apart from what was sent before, though a look gives
 * both as one piece.
 *
 * A restart sends all parcels when everything is open, and closes what they name. */
#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/fmt.h"
#include "image/fd/fd.h"

enum { PER_MESSAGE = 253, IN_ALL = 4096, MESSAGE_MAX = 1 << 20, CONTROL = 4096 };

struct parcel_head {
	uint32_t len, fds;
};

/* Of the socket that is looked at now. */
struct way_look {
	struct fd_table *t;
	int fd;
	uint64_t inode;
	char *buffer;
	const char *why; /* it can't be saved */
};

/* ---- capture ---- */

static long way_peek(const struct way_look *l, int offset, size_t len, struct msghdr *m)
{
	struct iovec iov = {l->buffer, len};
	m->msg_iov = &iov;
	m->msg_iovlen = 1;
	sys(SYS_setsockopt, l->fd, SOL_SOCKET, SO_PEEK_OFF, &offset, sizeof(offset));
	long n = sys(SYS_recvmsg, l->fd, m, MSG_PEEK | MSG_DONTWAIT | MSG_TRUNC | MSG_CMSG_CLOEXEC);
	m->msg_iov = NULL;
	return n;
}

/* How many of the len bytes from offset on come before those that have descriptors, which are the
 * last ones of them. The kernel copies message by message, and gives what it has copied when one
 * fails: so the last byte has no room. */
static size_t way_bytes_before(const struct way_look *l, int offset, size_t len)
{
	struct iovec iov[2] = {{l->buffer, len - 1}, {NULL, 1}};
	struct msghdr m = {.msg_iov = iov, .msg_iovlen = 2};
	sys(SYS_setsockopt, l->fd, SOL_SOCKET, SO_PEEK_OFF, &offset, sizeof(offset));
	long n = sys(SYS_recvmsg, l->fd, &m, MSG_PEEK | MSG_DONTWAIT);
	return n > 0 && (size_t)n < len ? (size_t)n : 0;
}

static bool way_add(struct way_look *l, size_t len, uint32_t fds)
{
	struct fd_parcel *p = list_add(&l->t->parcels);
	char *data = arena_alloc(l->t->arena, len + 1);
	if (!p || !data)
		return false;
	memcpy(data, l->buffer, len);
	*p = (struct fd_parcel){l->inode, data, len, (uint32_t)l->t->way.count - fds, fds};
	return true;
}

/* The descriptors that came with a piece are open now. */
static bool way_take_control(struct way_look *l, struct msghdr *m, uint32_t *fds)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) {
			l->why = "a socket with unread bytes that say who has sent them "
				 "(SO_PASSCRED)";
			continue;
		}
		uint32_t n = (uint32_t)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		for (uint32_t i = 0; i < n; i++) {
			int *at = list_add(&l->t->way);
			if (!at)
				return false;
			memcpy(at, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
			++*fds;
		}
	}
	if (m->msg_flags & MSG_CTRUNC)
		l->why = "a socket with more descriptors on their way than this process may open";
	if (l->t->way.count > IN_ALL)
		l->why = "a socket with more descriptors on their way than Hale keeps";
	return true;
}

/* A piece with its descriptors. Its bytes, 0 at the end, or -errno. */
static long way_take(struct way_look *l, int offset, size_t len)
{
	char control[CONTROL] __attribute__((aligned(8)));
	struct msghdr m = {.msg_control = control, .msg_controllen = sizeof(control)};
	uint32_t fds = 0;
	long n = way_peek(l, offset, len, &m);
	if (n <= 0)
		return n == -EAGAIN ? 0 : n;
	if ((size_t)n > len)
		l->why = "a socket with a message that is too large to look at";
	return !l->why && way_take_control(l, &m, &fds) && !l->why && way_add(l, (size_t)n, fds) ? n
	       : l->why ? -EINVAL
			: -ENOMEM;
}

static long way_take_stream(struct way_look *l, int len)
{
	long n = 0;
	for (int offset = 0; offset < len; offset += (int)n) {
		struct msghdr m = {0};
		n = way_peek(l, offset, (size_t)(len - offset), &m);
		if (n <= 0)
			return n;
		size_t before =
		    m.msg_flags & MSG_CTRUNC ? way_bytes_before(l, offset, (size_t)n) : (size_t)n;
		if (before) { /* the newest look may have been at less */
			n = way_peek(l, offset, before, &m);
			if (n <= 0 || !way_add(l, (size_t)n, 0))
				return n <= 0 ? n : -ENOMEM;
			continue;
		}
		if ((n = way_take(l, offset, (size_t)n)) <= 0)
			return n;
	}
	return 0;
}

static long way_take_messages(struct way_look *l)
{
	long n;
	for (int offset = 0; (n = way_take(l, offset, MESSAGE_MAX)) > 0; offset += (int)n)
		if (offset > FRAME_DATA_MAX / 2)
			return -EFBIG;
	return n;
}

static bool way_is_known(const struct fd_table *t, uint64_t inode)
{
	for (size_t i = 0; i < t->parcels.count; i++)
		if (((struct fd_parcel *)list_at(&t->parcels, i))->inode == inode)
			return true;
	return false;
}

static bool way_is_loaded(const char *proc, int fd)
{
	char path[64], info[1024];
	fmt_print(path, sizeof(path), "%s/fdinfo/%d", proc, fd);
	const char *at =
	    sys_read_small(path, info, sizeof(info)) > 0 ? strstr(info, "scm_fds:") : NULL;
	for (at = at ? at + 8 : ""; *at == ' ' || *at == '\t'; at++)
		;
	return *at >= '1' && *at <= '9';
}

/* What is on its way in descriptor fd, if that is a socket with something. */
static hale_status_t way_look_into(struct fd_table *t, int fd, struct error *err)
{
	struct stat st = {0};
	struct way_look l = {.t = t, .fd = fd};
	int type = 0, len = 0, off = -1;
	uint32_t size = sizeof(type);
	if (sys(SYS_fstat, fd, &st) || !S_ISSOCK(st.st_mode) || !way_is_loaded(t->proc, fd) ||
	    way_is_known(t, st.st_ino) || fd_common_is_taken(t, st.st_ino))
		return HALE_OK;
	l.inode = st.st_ino;
	sys(SYS_getsockopt, fd, SOL_SOCKET, SO_TYPE, &type, &size);
	sys(SYS_ioctl, fd, FIONREAD, &len);
	bool streams = type == SOCK_STREAM;
	if (len > FRAME_DATA_MAX / 2)
		return error_set(err, HALE_ERR_UNSUPPORTED,
				 "descriptor %d is a socket with descriptors on their way and "
				 "more than 2 MiB that nobody has read",
				 fd);
	l.buffer = arena_pages(t->arena, streams ? (size_t)len + 1 : MESSAGE_MAX);
	long rc = !l.buffer ? -ENOMEM : streams ? way_take_stream(&l, len) : way_take_messages(&l);
	sys(SYS_setsockopt, fd, SOL_SOCKET, SO_PEEK_OFF, &off, sizeof(off));
	if (rc == 0)
		return HALE_OK;
	return error_set(err, rc == -ENOMEM ? HALE_ERR_MEMORY : HALE_ERR_UNSUPPORTED,
			 "descriptor %d is %s, which can't be saved (error %ld)", fd,
			 l.why ? l.why : "a socket with descriptors on their way", -rc);
}

hale_status_t fd_way_find(struct fd_table *t, struct error *err)
{
	struct fd_dir dir;
	struct list numbers;
	hale_status_t rc = HALE_OK;
	list_init(&numbers, t->arena, sizeof(int));
	if (!fd_dir_open(&dir, t->proc))
		return error_set(err, HALE_ERR_SYSTEM, "can't list %s/fd", t->proc);
	for (int fd; (fd = fd_dir_next(&dir)) >= 0;) {
		int *n = list_add(&numbers);
		if (n)
			*n = fd;
	}
	fd_dir_close(&dir);
	for (size_t i = 0; i < numbers.count && rc == HALE_OK; i++)
		if (!fd_table_is_own(t, *(int *)list_at(&numbers, i)))
			rc = way_look_into(t, *(int *)list_at(&numbers, i), err);
	/* in what was found there may be more */
	for (size_t i = 0; i < t->way.count && rc == HALE_OK; i++)
		rc = way_look_into(t, *(int *)list_at(&t->way, i), err);
	return rc;
}

void fd_way_close(struct fd_table *t)
{
	for (size_t i = 0; i < t->way.count; i++)
		sys(SYS_close, *(int *)list_at(&t->way, i));
	t->way.count = 0;
}

bool fd_way_has(const struct fd_table *t, int fd)
{
	for (size_t i = 0; i < t->way.count; i++)
		if (*(int *)list_at(&t->way, i) == fd)
			return true;
	return false;
}

bool fd_way_passes(const struct fd_table *t, uint64_t inode)
{
	return way_is_known(t, inode);
}

hale_status_t fd_way_save(struct fd_table *t, const struct fd_probe *p, struct fd_record *r,
			  struct error *err)
{
	struct arena_bytes all;
	bool ok = true;
	bytes_init(&all, t->arena);
	for (size_t i = 0; i < t->parcels.count && ok; i++) {
		const struct fd_parcel *x = list_at(&t->parcels, i);
		const struct parcel_head h = {(uint32_t)x->len, x->fds};
		if (x->inode != p->st.st_ino)
			continue;
		char *to = bytes_extend(&all, sizeof(h) + x->fds * sizeof(int32_t) + x->len);
		ok = to != NULL;
		if (!ok)
			break;
		memcpy(to, &h, sizeof(h));
		to += sizeof(h);
		for (uint32_t k = 0; k < x->fds; k++, to += sizeof(int32_t)) {
			int32_t number = FD_ON_WAY + (int32_t)(x->first + k);
			memcpy(to, &number, sizeof(number));
		}
		memcpy(to, x->data, x->len);
	}
	if (ok && all.len > FRAME_DATA_MAX)
		return fd_refuse(p, "a socket with too much on its way", err);
	char *data = ok ? fd_add_content(t, 0, all.len, all.len) : NULL;
	if (!data)
		return error_set(err, HALE_ERR_MEMORY, "no memory for the content of a socket");
	memcpy(data, all.data, all.len);
	r->has_content = 1;
	r->truncates = 1; /* parcels */
	return HALE_OK;
}

static bool is_loaded(const struct fd_seen *s, int fd)
{
	return way_is_loaded(s->proc, fd);
}

static bool has_loaded(const char *proc)
{
	struct fd_dir dir;
	struct fd_seen s = {.proc = proc};
	bool found = false;
	if (!fd_dir_open(&dir, proc))
		return false;
	for (int fd; !found && (fd = fd_dir_next(&dir)) >= 0;)
		found = is_loaded(&s, fd);
	fd_dir_close(&dir);
	return found;
}

static bool one_has_loaded(const int32_t *pid, size_t count)
{
	char proc[32];
	bool found = false;
	for (size_t i = 0; i < count && !found; i++) {
		fmt_print(proc, sizeof(proc), "/proc/%d", (int)pid[i]);
		found = has_loaded(proc);
	}
	return found;
}

bool fd_way_is_likely(const struct fd_table *t)
{
	return has_loaded(t->proc) || one_has_loaded(t->tree, t->tree_count);
}

bool fd_way_to_rank(const struct fd_table *t)
{
	return one_has_loaded(t->beside, t->beside_count);
}

/* ---- restore ---- */

bool fd_way_next(const char **at, size_t *left, struct fd_parcel *p, const char **numbers)
{
	struct parcel_head h;
	if (*left < sizeof(h))
		return false;
	memcpy(&h, *at, sizeof(h));
	if (h.fds > PER_MESSAGE || *left - sizeof(h) < h.fds * sizeof(int32_t) ||
	    *left - sizeof(h) - h.fds * sizeof(int32_t) < h.len)
		return false;
	*numbers = *at + sizeof(h);
	*p = (struct fd_parcel){
	    .data = *numbers + h.fds * sizeof(int32_t), .len = h.len, .fds = h.fds};
	*left -= (size_t)((const char *)p->data + h.len - *at);
	*at = (const char *)p->data + h.len;
	return true;
}

long fd_way_send(int from, const struct fd_parcel *p, const int *fd)
{
	char control[CMSG_SPACE(PER_MESSAGE * sizeof(int))] __attribute__((aligned(8))) = {0};
	struct iovec iov = {(void *)(uintptr_t)p->data, p->len};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
	if (p->fds) {
		m.msg_control = control;
		m.msg_controllen = CMSG_SPACE(p->fds * sizeof(int));
		struct cmsghdr *c = CMSG_FIRSTHDR(&m);
		*c = (struct cmsghdr){.cmsg_len = CMSG_LEN(p->fds * sizeof(int)),
				      .cmsg_level = SOL_SOCKET,
				      .cmsg_type = SCM_RIGHTS};
		memcpy(CMSG_DATA(c), fd, p->fds * sizeof(int));
	}
	long n = sys(SYS_sendmsg, from, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
	return n == (long)p->len ? 0 : n < 0 ? n : -EMSGSIZE;
}

static int way_find_number(const struct fd_restore *f, int32_t number)
{
	for (size_t i = 0; i < f->count; i++)
		if (f->record[i].fd == number)
			return f->temp[i];
	return -1;
}

static bool way_send_all(struct fd_restore *f, size_t index)
{
	struct fd_parcel p;
	const char *numbers;
	for (size_t i = 0; i < f->content_count; i++) {
		const struct content *c = &f->content[i];
		const char *at = c->data;
		size_t left = c->len;
		if (c->record.fd_index != (int32_t)index)
			continue;
		while (left) {
			int fd[PER_MESSAGE];
			if (!fd_way_next(&at, &left, &p, &numbers))
				return false;
			for (uint32_t k = 0; k < p.fds; k++) {
				int32_t number;
				memcpy(&number, numbers + k * sizeof(number), sizeof(number));
				fd[k] = way_find_number(f, number);
			}
			if (fd_way_send(f->sender[index], &p, fd))
				return false;
		}
	}
	return true;
}

bool fd_way_deliver(struct fd_restore *f, struct error *err)
{
	struct socket_record s;
	for (size_t i = 0; i < f->count; i++)
		if (f->sender[i] >= 0 && f->record[i].truncates && !way_send_all(f, i)) {
			error_set(
			    err, HALE_ERR_SYSTEM,
			    "the descriptors on their way to descriptor %d can't be sent again",
			    f->record[i].fd);
			return false;
		}
	for (size_t i = 0; i < f->count; i++) {
		const struct fd_record *r = &f->record[i];
		if (f->sender[i] < 0 || r->kind != FD_SOCKET ||
		    !fd_socket_record(f->text, f->text_len, r, &s))
			continue;
		fd_socket_finish(f->temp[i], &s, r->open_flags);
		if (s.end == SOCKET_LEFT)
			sys(SYS_close, f->sender[i]);
	}
	return true;
}
