// SPDX-License-Identifier: BSD-3-Clause
/* Pairs of AF_UNIX streams between processes that are captured together, as event loops use them to
 * wake themselves (Python's asyncio, libuv), and the bytes that are in them. All else that sockets
 * can be: fd_socket.c. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "image/fd/fd.h"

static bool match(const struct fd_table *t, const struct fd_probe *p)
{
	struct fd_unix u, peer;
	return S_ISSOCK(p->st.st_mode) && fd_unix_ask(p->st.st_ino, &u) && !u.name_len && u.peer &&
	       u.type == SOCK_STREAM && !u.shut && fd_unix_ask(u.peer, &peer) && !peer.name_len &&
	       fd_tree_has_socket(t, u.peer);
}

/* Its options, as the record of another socket has them. */
static bool add_options(struct fd_table *t, int fd, struct fd_record *r)
{
	struct socket_record *s = arena_alloc(t->arena, sizeof(*s));
	if (!s)
		return false;
	*s = (struct socket_record){.family = AF_UNIX, .type = (uint32_t)r->b};
	fd_socket_read_options(fd, s);
	return fd_add_text(t, r, s, sizeof(*s));
}

void fd_socketpair_finish(int fd, const char *text, size_t text_len, const struct fd_record *r)
{
	struct socket_record s;
	if (fd_socket_record(text, text_len, r, &s)) /* since format 8 */
		fd_socket_write_options(fd, &s);
}

static hale_status_t save(struct fd_table *t, const struct fd_probe *p, struct fd_record *r,
			  size_t len, struct error *err)
{
	char *data = fd_add_content(t, 0, len, len);
	if (!data)
		return error_set(err, HALE_ERR_MEMORY, "no memory for the content of a socket");
	r->has_content = 1;
	r->size = len;
	struct iovec iov = {data, len};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
	int peek_from = fd_socket_peek_from(p->fd, -1);
	long n = sys(SYS_recvmsg, p->fd, &m, MSG_PEEK | MSG_DONTWAIT);
	if (peek_from >= 0)
		fd_socket_peek_from(p->fd, peek_from);
	if (n == (long)len)
		return m.msg_flags & MSG_CTRUNC
			   ? fd_refuse(p, "a socket pair with descriptors on their way", err)
			   : HALE_OK;
	return fd_refuse(p, "a socket pair whose content can't be looked at", err);
}

/* a: the peer's inode; b: the type of both. */
static hale_status_t capture(struct fd_table *t, const struct fd_probe *p, struct fd_record *r,
			     struct error *err)
{
	struct fd_unix u = {0};
	struct pollfd look = {.fd = p->fd, .events = POLLPRI};
	const struct timespec now = {0, 0};
	int len = 0;
	fd_unix_ask(r->inode, &u);
	r->a = u.peer;
	r->b = u.type;
	if (t->other)
		return HALE_OK;
	if (!add_options(t, p->fd, r))
		return error_set(err, HALE_ERR_MEMORY, "no memory for the options of a socket");
	if (fd_way_passes(t, r->inode))
		return fd_way_save(t, p, r, err);
	if (sys(SYS_ppoll, &look, 1, &now, NULL, 0) > 0 && look.revents & POLLPRI)
		return fd_refuse_for_now(
		    p, "a socket pair with urgent data (MSG_OOB) that nobody has read", err);
	if (sys(SYS_ioctl, p->fd, FIONREAD, &len) || len <= 0)
		return HALE_OK;
	return save(t, p, r, (size_t)len, err);
}

/* What has descriptors comes later, when these are open. */
static bool put_content(const struct fd_restore *f, size_t index, int peer)
{
	if (f->record[index].truncates) {
		f->sender[index] = peer;
		return true;
	}
	for (size_t i = 0; i < f->content_count; i++) {
		const struct content *c = &f->content[i];
		if (c->record.fd_index == (int32_t)index &&
		    sys(SYS_sendto, peer, c->data, c->len, MSG_DONTWAIT, NULL, 0) != (long)c->len)
			return false;
	}
	return true;
}

/* Its descriptor, and that of its peer. */
static int open_pair(struct fd_restore *f, size_t index, struct error *err)
{
	const struct fd_record *me = &f->record[index];
	int end[2] = {-1, -1};
	size_t other = f->count;
	for (size_t i = 0; i < f->count; i++)
		if (f->record[i].kind == FD_SOCKETPAIR && f->record[i].inode == me->a &&
		    f->record[i].same_as < 0)
			other = i;
	if (other == f->count || sys(SYS_socketpair, AF_UNIX, me->b | SOCK_CLOEXEC, 0, end)) {
		error_set(err, HALE_ERR_SYSTEM, "can't make the socket pair of descriptor %d again",
			  me->fd);
		return -1;
	}
	end[0] = fd_lift(f, end[0]);
	end[1] = fd_lift(f, end[1]);
	if (!put_content(f, index, end[1]) || !put_content(f, other, end[0])) {
		error_set(err, HALE_ERR_SYSTEM, "can't fill the socket pair of descriptor %d again",
			  me->fd);
		return -1;
	}
	fd_socketpair_finish(end[0], f->text, f->text_len, me);
	fd_socketpair_finish(end[1], f->text, f->text_len, &f->record[other]);
	sys(SYS_fcntl, end[0], F_SETFL, me->open_flags & O_NONBLOCK);
	sys(SYS_fcntl, end[1], F_SETFL, f->record[other].open_flags & O_NONBLOCK);
	f->temp[other] = end[1];
	return end[0];
}

const struct fd_ops fd_socketpair = {.kind = FD_SOCKETPAIR,
				     .name = "socket pair",
				     .match = match,
				     .capture = capture,
				     .open = open_pair};
