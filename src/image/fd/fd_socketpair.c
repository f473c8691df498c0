// SPDX-License-Identifier: BSD-3-Clause
/* Pairs of AF_UNIX streams between processes that are captured together, as event loops use them to
 * wake themselves (Python's asyncio, libuv), and the bytes that are in them. All else that sockets
 * can be: fd_socket.c. */
#include <errno.h>
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

/* a: the peer's inode; b: the type of both. */
static hale_status_t capture(struct fd_table *t, const struct fd_probe *p, struct fd_record *r,
			     struct error *err)
{
	struct fd_unix u = {0};
	int len = 0;
	fd_unix_ask(r->inode, &u);
	r->a = u.peer;
	r->b = u.type;
	if (!t->other && fd_way_passes(t, r->inode))
		return fd_way_save(t, p, r, err);
	if (t->other || sys(SYS_ioctl, p->fd, FIONREAD, &len) || len <= 0)
		return HALE_OK;
	char *data = fd_add_content(t, 0, (uint64_t)len, (size_t)len);
	if (!data)
		return error_set(err, HALE_ERR_MEMORY, "no memory for the content of a socket");
	r->has_content = 1;
	r->size = (uint64_t)len;
	struct iovec iov = {data, (size_t)len};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
	if (sys(SYS_recvmsg, p->fd, &m, MSG_PEEK | MSG_DONTWAIT) == len)
		return m.msg_flags & MSG_CTRUNC
			   ? fd_refuse(p, "a socket pair with descriptors on their way", err)
			   : HALE_OK;
	return fd_refuse(p, "a socket pair whose content can't be looked at", err);
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
