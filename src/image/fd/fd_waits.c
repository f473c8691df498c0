// SPDX-License-Identifier: BSD-3-Clause
/* Connections that nobody has accepted yet. Their own end is a descriptor like others
 * (SOCKET_WAITS); the end that will be accepted is in the queue of the socket that listens, where
 * nobody can look into it. So what was sent already can't be saved, and both sockets are refused
 * then.
 *
 * A restart connects again, in the order in which the kernel lists them, when all listen. Of TCP it
 * gives no order: the older socket comes first. */
#include <errno.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <string.h>
#include <sys/socket.h>

#include "image/fd/fd.h"

enum { ESTABLISHED = 1, LISTEN = 10, ROOM = 32 << 10 };

/* ---- AF_UNIX: whose connections wait at a socket ---- */

struct waits_ask {
	struct nlmsghdr head;
	struct unix_diag_req req;
};

/* Called with the inodes of those who wait at socket `at`. True: enough is seen. */
typedef bool (*waits_see_t)(uint32_t at, const uint32_t *icon, size_t count, void *arg);

static bool waits_see_one(const struct nlmsghdr *h, waits_see_t see, void *arg)
{
	const struct unix_diag_msg *m = (const struct unix_diag_msg *)(h + 1);
	const char *at = (const char *)(m + 1), *end = (const char *)h + h->nlmsg_len;
	if (h->nlmsg_len < sizeof(*h) + sizeof(*m))
		return false;
	while (at + sizeof(struct nlattr) <= end) {
		const struct nlattr *a = (const struct nlattr *)at;
		if (a->nla_len < sizeof(*a) || a->nla_len > end - at)
			return false;
		if (a->nla_type == UNIX_DIAG_ICONS)
			return see(m->udiag_ino, (const uint32_t *)(a + 1),
				   (a->nla_len - sizeof(*a)) / sizeof(uint32_t), arg);
		at += ALIGN_UP((size_t)a->nla_len, 4);
	}
	return false;
}

/* True: goes on behind this reply. */
static bool waits_see_reply(const char *reply, size_t len, waits_see_t see, void *arg, bool *seen)
{
	while (len >= sizeof(struct nlmsghdr)) {
		const struct nlmsghdr *h = (const struct nlmsghdr *)reply;
		if (h->nlmsg_type != SOCK_DIAG_BY_FAMILY || h->nlmsg_len < sizeof(*h) ||
		    h->nlmsg_len > len)
			return false;
		if ((*seen = waits_see_one(h, see, arg)))
			return false;
		size_t step = ALIGN_UP((size_t)h->nlmsg_len, 4);
		if (step >= len)
			break;
		reply += step;
		len -= step;
	}
	return true;
}

static bool waits_look(waits_see_t see, void *arg)
{
	static char reply[ROOM] __attribute__((aligned(8)));
	struct waits_ask ask = {.head = {.nlmsg_len = sizeof(ask),
					 .nlmsg_type = SOCK_DIAG_BY_FAMILY,
					 .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
				.req = {.sdiag_family = AF_UNIX,
					.udiag_states = 1u << LISTEN,
					.udiag_show = UDIAG_SHOW_ICONS}};
	long fd = sys(SYS_socket, AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	bool seen = false, more = fd >= 0;
	if (more)
		more = sys(SYS_sendto, fd, &ask, sizeof(ask), 0, NULL, 0) == (long)sizeof(ask);
	while (more) {
		long n = sys(SYS_recvfrom, fd, reply, sizeof(reply), MSG_DONTWAIT, NULL, NULL);
		more = n > 0 && waits_see_reply(reply, (size_t)n, see, arg, &seen);
	}
	if (fd >= 0)
		sys(SYS_close, fd);
	return seen;
}

struct waits_find {
	uint32_t client, at, turn;
};

static bool waits_is_at(uint32_t at, const uint32_t *icon, size_t count, void *arg)
{
	struct waits_find *f = arg;
	for (size_t i = 0; i < count; i++)
		if (icon[i] == f->client) {
			f->at = at;
			f->turn = (uint32_t)i + 1;
			return true;
		}
	return false;
}

uint64_t fd_waits_at(const struct fd_table *t, uint64_t inode, uint32_t *turn)
{
	struct waits_find f = {.client = (uint32_t)inode};
	if (!waits_look(waits_is_at, &f) || !fd_tree_has_socket(t, f.at))
		return 0;
	*turn = f.turn;
	return f.at;
}

struct waits_count {
	const struct fd_table *t;
	uint32_t at;
	uint32_t good;
};

static bool waits_count_unix(uint32_t at, const uint32_t *icon, size_t count, void *arg)
{
	struct waits_count *c = arg;
	struct fd_unix u;
	if (at != c->at)
		return false;
	for (size_t i = 0; i < count; i++)
		c->good += icon[i] && fd_tree_has_socket(c->t, icon[i]) &&
			   fd_unix_ask(icon[i], &u) && !u.backlog && !u.shut;
	return true;
}

/* ---- TCP ---- */

static bool waits_is_address(const struct fd_tcp *listens, const struct fd_tcp *of)
{
	static const uint32_t any[4], any4[4] = {0, 0, 0xffff0000u, 0};
	return listens->local_port == of->local_port &&
	       (!memcmp(listens->local, of->local, sizeof(any)) ||
		!memcmp(listens->local, any, sizeof(any)) ||
		!memcmp(listens->local, any4, sizeof(any4)));
}

struct waits_port {
	const struct fd_table *t;
	const struct fd_tcp *of;
};

static bool waits_listens(const struct fd_tcp *s, const void *arg)
{
	const struct waits_port *p = arg;
	return s->state == LISTEN && s->inode && waits_is_address(s, p->of) &&
	       fd_tree_has_socket(p->t, s->inode);
}

uint64_t fd_waits_at_port(const struct fd_table *t, const struct fd_tcp *of)
{
	const struct waits_port p = {t, of};
	struct fd_tcp found;
	return fd_tcp_find(t->proc, waits_listens, &p, &found) ? found.inode : 0;
}

struct waits_tcp {
	const struct fd_table *t;
	const struct fd_tcp *listens;
	uint32_t *good;
};

/* Looks at all: none is what is wanted. */
static bool waits_count_tcp(const struct fd_tcp *s, const void *arg)
{
	const struct waits_tcp *c = arg;
	struct fd_tcp client;
	if (s->state == ESTABLISHED && !s->inode && !s->received &&
	    waits_is_address(c->listens, s) && fd_tcp_peer(c->t->proc, s, &client) &&
	    client.inode && client.state == ESTABLISHED && fd_tree_has_socket(c->t, client.inode))
		++*c->good;
	return false;
}

bool fd_waits_all(const struct fd_table *t, uint64_t inode, bool is_tcp, uint32_t waiting)
{
	struct waits_count c = {.t = t, .at = (uint32_t)inode};
	struct fd_tcp listens, none;
	const struct waits_tcp tcp = {t, &listens, &c.good};
	if (!is_tcp)
		waits_look(waits_count_unix, &c);
	else if (fd_tcp_ask(t->proc, inode, &listens))
		fd_tcp_find(t->proc, waits_count_tcp, &tcp, &none);
	return c.good == waiting;
}

/* ---- restore ---- */

bool fd_waits_connect_one(int fd, const struct socket_record *x, struct error *err)
{
	char name[SOCKET_NAME];
	uint32_t len = sizeof(name);
	if (!sys(SYS_getpeername, fd, name, &len)) /* another process has it, too */
		return true;
	long flags = sys(SYS_fcntl, fd, F_GETFL);
	sys(SYS_fcntl, fd, F_SETFL, flags & ~(long)O_NONBLOCK);
	long rc = sys(SYS_connect, fd, x->peer_name, x->peer_name_len);
	sys(SYS_fcntl, fd, F_SETFL, flags);
	if (!rc)
		return true;
	error_set(err, HALE_ERR_SYSTEM,
		  "a connection that nobody had accepted can't be made again (error %ld)", -rc);
	return false;
}

/* Those of f that have not come yet, in turn. */
static size_t waits_next(const struct fd_restore *f, uint64_t turn, uint64_t inode,
			 struct socket_record *x)
{
	size_t next = f->count;
	for (size_t i = 0; i < f->count; i++) {
		const struct fd_record *r = &f->record[i], *n = &f->record[next];
		if (r->kind != FD_SOCKET || r->same_as >= 0 || r->b < turn ||
		    (r->b == turn && r->inode <= inode) ||
		    !fd_socket_record(f->text, f->text_len, r, x) || x->end != SOCKET_WAITS)
			continue;
		if (next == f->count || r->b < n->b || (r->b == n->b && r->inode < n->inode))
			next = i;
	}
	return next;
}

bool fd_waits_connect(const struct fd_restore *f, struct error *err)
{
	struct socket_record x;
	for (size_t i = 0; i < f->count; i++)
		if (f->record[i].kind == FD_SOCKET && f->record[i].same_as < 0 &&
		    fd_socket_record(f->text, f->text_len, &f->record[i], &x) &&
		    x.end == SOCKET_LISTENS && !fd_socket_last(fd_now(f, i), &x, err))
			return false;
	uint64_t turn = 0, inode = 0;
	for (size_t i; (i = waits_next(f, turn, inode, &x)) < f->count;) {
		turn = f->record[i].b;
		inode = f->record[i].inode;
		if (!fd_socket_record(f->text, f->text_len, &f->record[i], &x) ||
		    !fd_waits_connect_one(fd_now(f, i), &x, err))
			return false;
	}
	return true;
}
