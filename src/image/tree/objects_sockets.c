// SPDX-License-Identifier: BSD-3-Clause
/* Sockets of a tree: the rebuilt root makes all of them, with what is on its way in them. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "image/tree/objects.h"

static void finish_end(const struct objects *o, int fd, uint64_t inode)
{
	for (size_t i = 0; i < o->images; i++)
		for (size_t n = 0; n < o->image[i].t.fd_count; n++) {
			const struct image_tables *t = &o->image[i].t;
			const struct fd_record *r = &t->fds[n];
			if (r->kind != FD_SOCKETPAIR || r->same_as >= 0 || r->inode != inode)
				continue;
			fd_socketpair_finish(fd, t->fd_text, t->fd_text_len, r);
			return;
		}
}

bool objects_make_pair(struct objects *o, const struct fd_record *r, struct error *err)
{
	struct tree_object *x = objects_add(o, TREE_SOCKET, 0, r->inode, err);
	struct tree_object *y = x ? objects_add(o, TREE_SOCKET, 0, r->a, err) : NULL;
	int end[2] = {-1, -1};
	if (!y)
		return false;
	if (sys(SYS_socketpair, AF_UNIX, r->b, 0, end)) {
		error_set(err, HALE_ERR_SYSTEM,
			  "can't make a pair of sockets between child processes");
		return false;
	}
	x->fd = objects_lift(end[0]);
	y->fd = objects_lift(end[1]);
	const struct content *to_x = objects_content(o, FD_SOCKETPAIR, r->inode, NULL);
	const struct content *to_y = objects_content(o, FD_SOCKETPAIR, r->a, NULL);
	bool ok = x->fd >= 0 && y->fd >= 0;
	if (ok && to_x)
		ok = sys(SYS_sendto, y->fd, to_x->data, to_x->len, MSG_DONTWAIT, NULL, 0) ==
		     (long)to_x->len;
	if (ok && to_y)
		ok = sys(SYS_sendto, x->fd, to_y->data, to_y->len, MSG_DONTWAIT, NULL, 0) ==
		     (long)to_y->len;
	if (!ok) {
		error_set(err, HALE_ERR_SYSTEM,
			  "can't fill a pair of sockets between child processes again");
		return false;
	}
	finish_end(o, x->fd, r->inode);
	finish_end(o, y->fd, r->a);
	return true;
}

/* The end of a connection that is that socket; NULL: no image has it. */
static const struct fd_record *record_of(const struct objects *o, uint64_t inode,
					 struct socket_record *s)
{
	for (size_t i = 0; i < o->images; i++)
		for (size_t n = 0; n < o->image[i].t.fd_count; n++) {
			const struct fd_record *r = &o->image[i].t.fds[n];
			if (r->kind == FD_SOCKET && r->same_as < 0 && r->inode == inode &&
			    fd_socket_record(o->image[i].t.fd_text, o->image[i].t.fd_text_len, r,
					     s))
				return r;
		}
	return NULL;
}

/* In pieces, all of which stand in one image. */
static bool fill_socket(const struct objects *o, uint64_t inode, int from, int to,
			const struct socket_record *s)
{
	bool any = false;
	for (size_t i = 0; i < o->images && !any; i++) {
		const struct fd_restore *f = &o->image[i].fds;
		for (size_t c = 0; c < f->content_count; c++) {
			int32_t at = f->content[c].record.fd_index;
			if (at < 0 || (size_t)at >= f->count || f->record[at].kind != FD_SOCKET ||
			    f->record[at].inode != inode || f->record[at].truncates)
				continue;
			any = true;
			if (!fd_socket_fill(from, to, s, f->content[c].data, f->content[c].len))
				return false;
		}
	}
	return true;
}

/* All of the tree's are made here, before any process runs on: those that listen come last. */
bool objects_make_connection(struct objects *o, const struct fd_record *r, struct error *err)
{
	struct socket_record x, y;
	int end[2];
	const struct fd_record *me = record_of(o, r->inode, &x), *other = NULL;
	if (!me || (x.end == SOCKET_CONNECTED && !(other = record_of(o, r->a, &y)))) {
		error_set(err, HALE_ERR_STATE,
			  "a socket of child processes is not in their images");
		return false;
	}
	struct tree_object *a = objects_add(o, TREE_SOCKET, 0, r->inode, err),
			   *b = a && other ? objects_add(o, TREE_SOCKET, 0, r->a, err) : NULL;
	if (!a || (other && !b) || !fd_socket_make(&x, other ? &y : NULL, end, err))
		return false;
	a->fd = end[0] = objects_lift(end[0]);
	end[1] = objects_lift(end[1]);
	int from = x.end == SOCKET_ALONE ? end[0] : end[1];
	bool ok = end[0] >= 0 && fill_socket(o, r->inode, from, end[0], &x) &&
		  (!other || fill_socket(o, r->a, end[0], end[1], &y));
	if (!ok) {
		error_set(err, HALE_ERR_SYSTEM,
			  "can't fill a connection between child processes again");
		return false;
	}
	if (other)
		b->fd = end[1];
	if (me->truncates || (other && other->truncates)) { /* objects_way_deliver goes on */
		a->other = other ? -1 : end[1];
		return true;
	}
	fd_socket_finish(end[0], &x, me->open_flags);
	if (other)
		fd_socket_finish(end[1], &y, other->open_flags);
	else if (end[1] >= 0)
		sys(SYS_close, end[1]);
	return true;
}

static bool is_last(const struct objects *o, const struct tree_object *x, uint32_t end,
		    uint64_t turn, struct socket_record *s)
{
	const struct fd_record *r = x->kind == TREE_SOCKET ? record_of(o, x->inode, s) : NULL;
	return r && s->end == end && (end != SOCKET_WAITS || r->b == turn);
}

/* Those that listen come before those that wait to be accepted, each in its turn. */
bool objects_listen(struct objects *o, struct error *err)
{
	static const uint32_t order[] = {SOCKET_LISTENS, SOCKET_ALONE, SOCKET_WAITS};
	struct socket_record s;
	for (size_t k = 0; k < ARRAY_LEN(order); k++) {
		uint64_t turns = order[k] == SOCKET_WAITS ? o->tree->objects : 0;
		for (uint64_t turn = 0; turn <= turns; turn++)
			for (uint32_t i = 0; i < o->tree->objects; i++) {
				const struct tree_object *x = &o->tree->object[i];
				if (is_last(o, x, order[k], turn, &s) &&
				    !fd_socket_last(x->fd, &s, err))
					return false;
			}
	}
	return true;
}

void objects_set_flags(struct objects *o, const struct fd_record *r)
{
	const struct tree_object *x = objects_find(o, TREE_SOCKET, 0, r->inode);
	if (x)
		sys(SYS_fcntl, x->fd, F_SETFL, r->open_flags & O_NONBLOCK);
}
