// SPDX-License-Identifier: BSD-3-Clause
/* Descriptors on their way (fd/fd_way.c) between processes of a tree: the rebuilt root, which makes
 * all sockets, sends them. */
#include <string.h>

#include "image/tree/objects.h"

enum { PER_MESSAGE = 253 };

static int way_open_number(struct objects *o, size_t i, int32_t number, struct error *err)
{
	const struct objects_image *m = &o->image[i];
	for (size_t n = 0; n < m->t.fd_count; n++)
		if (m->t.fds[n].fd == number)
			return objects_way_open(o, i, n, err);
	return -1;
}

static bool way_send(struct objects *o, size_t i, int from, const struct fd_parcel *p,
		     const char *numbers, struct error *err)
{
	int fd[PER_MESSAGE] = {0};
	bool ok = true;
	uint32_t have = 0;
	for (; have < p->fds && ok; have++) {
		int32_t number;
		memcpy(&number, numbers + have * sizeof(number), sizeof(number));
		fd[have] = way_open_number(o, i, number, err);
		ok = fd[have] >= 0;
	}
	ok = ok && !fd_way_send(from, p, fd);
	for (uint32_t k = 0; k < have; k++)
		if (fd[k] >= 0)
			sys(SYS_close, fd[k]);
	return ok;
}

static bool way_send_all(struct objects *o, size_t i, size_t n, int from, struct error *err)
{
	const struct fd_restore *f = &o->image[i].fds;
	struct fd_parcel p;
	const char *numbers;
	for (size_t c = 0; c < f->content_count; c++) {
		const char *at = f->content[c].data;
		size_t left = f->content[c].len;
		if (f->content[c].record.fd_index != (int32_t)n)
			continue;
		while (left)
			if (!fd_way_next(&at, &left, &p, &numbers) ||
			    !way_send(o, i, from, &p, numbers, err))
				return false;
	}
	return true;
}

/* A socket is one object, whoever has it: it is filled once. */
static bool way_fill(struct objects *o, size_t i, size_t n, struct error *err)
{
	const struct fd_record *r = &o->image[i].t.fds[n];
	struct tree_object *me = objects_find(o, TREE_SOCKET, 0, r->inode);
	struct tree_object *peer = r->a ? objects_find(o, TREE_SOCKET, 0, r->a) : NULL;
	int from = peer ? peer->fd : me ? me->other : -1;
	if (me && me->reserved)
		return true;
	if (!me || from < 0 || !way_send_all(o, i, n, from, err)) {
		if (err->code == HALE_OK)
			error_set(err, HALE_ERR_SYSTEM,
				  "descriptors on their way between child processes can't be sent "
				  "again");
		return false;
	}
	me->reserved = 1;
	return true;
}

/* What had to wait for that. */
static void way_finish(struct objects *o, size_t i, size_t n)
{
	const struct objects_image *m = &o->image[i];
	const struct fd_record *r = &m->t.fds[n];
	struct tree_object *me = objects_find(o, TREE_SOCKET, 0, r->inode);
	struct tree_object *peer = r->a ? objects_find(o, TREE_SOCKET, 0, r->a) : NULL;
	struct socket_record s;
	if (r->kind != FD_SOCKET || !me || !(me->reserved || (peer && peer->reserved)) ||
	    !fd_socket_record(m->t.fd_text, m->t.fd_text_len, r, &s))
		return;
	fd_socket_finish(me->fd, &s, r->open_flags);
	if (me->other >= 0)
		sys(SYS_close, me->other);
	me->other = -1;
}

bool objects_way_deliver(struct objects *o, struct error *err)
{
	for (size_t i = 0; i < o->images; i++)
		for (size_t n = 0; n < o->image[i].t.fd_count; n++) {
			const struct fd_record *r = &o->image[i].t.fds[n];
			bool is_socket = r->kind == FD_SOCKET || r->kind == FD_SOCKETPAIR;
			if (is_socket && r->same_as < 0 && r->truncates && !way_fill(o, i, n, err))
				return false;
		}
	for (size_t i = 0; i < o->images; i++)
		for (size_t n = 0; n < o->image[i].t.fd_count; n++)
			if (o->image[i].t.fds[n].same_as < 0)
				way_finish(o, i, n);
	return true;
}
