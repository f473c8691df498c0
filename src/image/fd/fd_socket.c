// SPDX-License-Identifier: BSD-3-Clause
/* Sockets between processes that are captured together: TCP and AF_UNIX with names, listening ones,
 * those whose other end was closed or shut down, and messages on their way; and sockets without
 * another end: UDP, and what was not connected yet. Pairs of streams without any of that are in
 * fd_socketpair.c.
 */
#include <errno.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/fmt.h"
#include "image/fd/fd.h"

/* As /proc and the socket monitor number them. */
enum { ESTABLISHED = 1, FIN_WAIT1 = 4, FIN_WAIT2 = 5, CLOSED = 7, CLOSE_WAIT = 8, LISTEN = 10 };
enum { IS_CORKED = 1 /* UDP_CORK */, UDPLITE = 136 };

struct socket_look {
	struct socket_record is;
	uint64_t peer;
	uint32_t waiting; /* connections that nobody has accepted yet */
	uint32_t turn;	  /* of SOCKET_WAITS: its place among them */
	bool has_bytes;	  /* … and it has sent something */
	bool is_tcp;
};

/* ---- capture ---- */

static bool look_at_unix(const struct fd_table *t, const struct fd_probe *p, struct socket_look *l)
{
	struct fd_unix u, peer = {0};
	if (!fd_unix_ask(p->st.st_ino, &u))
		return false;
	l->is.family = AF_UNIX;
	l->is.type = u.type;
	l->is.shut = u.shut;
	l->peer = u.peer;
	if (u.state == LISTEN) {
		l->is.end = SOCKET_LISTENS;
		l->is.backlog = u.backlog;
		l->waiting = u.waiting;
		return true;
	}
	if (!u.peer && u.state == ESTABLISHED && !u.shut &&
	    (l->peer = fd_waits_at(t, p->st.st_ino, &l->turn))) {
		l->is.end = SOCKET_WAITS;
		l->has_bytes = u.backlog != 0;
		return true;
	}
	bool has_peer = u.peer && fd_unix_ask(u.peer, &peer);
	if (u.type == SOCK_DGRAM) { /* a pair, each of which sends to the other; or it has a name */
		bool pair = has_peer && peer.peer == p->st.st_ino && !u.name_len && !peer.name_len;
		l->is.end = pair ? SOCKET_CONNECTED : SOCKET_ALONE;
		if (!pair)
			l->peer = 0;
		return pair ? fd_tree_has_socket(t, u.peer) : !u.peer || peer.name_len;
	}
	if (u.state == CLOSED && !u.peer) {
		l->is.end = SOCKET_ALONE;
		return !u.shut;
	}
	l->is.end = has_peer ? SOCKET_CONNECTED : SOCKET_LEFT;
	if (u.state != ESTABLISHED || (u.name_len && peer.name_len))
		return false;
	if (!has_peer || fd_tree_has_socket(t, u.peer))
		return true;
	l->is.end = SOCKET_BESIDE; /* which is met by its name */
	return u.type == SOCK_STREAM && (u.name_len || peer.name_len) && !u.shut && !peer.shut &&
	       fd_beside_has_socket(t, u.peer);
}

/* The other end knows that; whether it has said so yet does not matter. */
static bool has_shut(const struct fd_tcp *s)
{
	return s->state == FIN_WAIT1 || s->state == FIN_WAIT2;
}

static bool look_at_tcp(const struct fd_table *t, const struct fd_probe *p, struct socket_look *l)
{
	struct fd_tcp s, peer = {0};
	if (!fd_tcp_ask(t->proc, p->st.st_ino, &s))
		return false;
	l->is_tcp = true;
	l->is.family = s.is_ipv6 ? AF_INET6 : AF_INET;
	l->is.type = SOCK_STREAM;
	l->is.shut = has_shut(&s) ? SOCKET_NO_WRITE : 0;
	if (s.state == LISTEN) {
		l->is.end = SOCKET_LISTENS;
		l->is.shut = fd_tcp_count_alike(t->proc, &s) > 1 ? SOCKET_SHARES : 0;
		l->waiting = s.received;
		return true;
	}
	bool is_there = fd_tcp_peer(t->proc, &s, &peer), has_peer = is_there && peer.inode;
	if (is_there && !has_peer && s.state == ESTABLISHED && peer.state == ESTABLISHED &&
	    (l->peer = fd_waits_at_port(t, &peer))) {
		l->is.end = SOCKET_WAITS;
		l->has_bytes = peer.received != 0 || s.received != 0;
		return true;
	}
	l->peer = has_peer ? peer.inode : 0;
	l->is.end = has_peer ? SOCKET_CONNECTED : SOCKET_LEFT;
	if (!has_peer)
		return s.state == CLOSE_WAIT && !memcmp(s.local, s.remote, sizeof(s.local));
	if (!fd_tree_has_socket(t, peer.inode)) {
		l->is.end = SOCKET_BESIDE;
		return s.state == ESTABLISHED && peer.state == ESTABLISHED &&
		       fd_beside_has_socket(t, peer.inode);
	}
	return ((s.state == ESTABLISHED && peer.state == ESTABLISHED) ||
		(has_shut(&s) && peer.state == CLOSE_WAIT) ||
		(s.state == CLOSE_WAIT && has_shut(&peer)));
}

/* Datagrams, and TCP that has not been connected yet, which no list of connections has: told by the
 * name of its protocol. */
static bool look_at_alone(const struct fd_table *t, const struct fd_probe *p, struct socket_look *l)
{
	static const struct {
		const char *name;
		uint32_t family, type, protocol;
	} known[] = {{"TCP", AF_INET, SOCK_STREAM, 0},
		     {"TCPv6", AF_INET6, SOCK_STREAM, 0},
		     {"UDP", AF_INET, SOCK_DGRAM, 0},
		     {"UDPv6", AF_INET6, SOCK_DGRAM, 0},
		     {"UDP-Lite", AF_INET, SOCK_DGRAM, UDPLITE},
		     {"UDPLITEv6", AF_INET6, SOCK_DGRAM, UDPLITE}};
	char path[64], name[64] = "";
	fmt_print(path, sizeof(path), "%s/fd/%d", t->proc, p->fd);
	long n = sys(SYS_getxattr, path, "system.sockprotoname", name, sizeof(name) - 1);
	for (size_t i = 0; n > 0 && i < ARRAY_LEN(known); i++) {
		if (strcmp(name, known[i].name) != 0)
			continue;
		l->is.family = known[i].family;
		l->is.type = known[i].type;
		l->is.protocol = known[i].protocol;
		l->is.end = SOCKET_ALONE;
		return true;
	}
	return false;
}

static bool look_at(const struct fd_table *t, const struct fd_probe *p, struct socket_look *l)
{
	struct fd_tcp s;
	*l = (struct socket_look){0};
	if (!S_ISSOCK(p->st.st_mode))
		return false;
	if (look_at_unix(t, p, l) || look_at_tcp(t, p, l))
		return true;
	*l = (struct socket_look){0};
	return !fd_tcp_ask(t->proc, p->st.st_ino, &s) && look_at_alone(t, p, l);
}

static bool match(const struct fd_table *t, const struct fd_probe *p)
{
	struct socket_look l;
	return look_at(t, p, &l);
}

static void read_names(int fd, struct socket_record *s)
{
	struct sockaddr_un un;
	uint32_t len = sizeof(s->name);
	uint16_t port;
	if (!sys(SYS_getsockname, fd, s->name, &len) && len > sizeof(sa_family_t))
		s->name_len = len;
	memcpy(&port, s->name + offsetof(struct sockaddr_in, sin_port), sizeof(port));
	if (s->family != AF_UNIX && !port) /* it has none yet */
		s->name_len = 0;
	len = sizeof(s->peer_name);
	if (s->end != SOCKET_LISTENS && !sys(SYS_getpeername, fd, s->peer_name, &len) &&
	    len > sizeof(sa_family_t))
		s->peer_name_len = len;
	memcpy(&un, s->name, sizeof(un));
	struct stat st = {0};
	s->on_disk = s->family == AF_UNIX && s->name_len && un.sun_path[0] &&
		     !sys(SYS_newfstatat, AT_FDCWD, un.sun_path, &st, 0) && S_ISSOCK(st.st_mode);
}

static hale_status_t no_memory(struct error *err)
{
	return error_set(err, HALE_ERR_MEMORY, "no memory for the content of a socket");
}

/* Copies what waits in a socket, and leaves it there. Where SO_PEEK_OFF is set, each call goes on
 * behind the last one's piece. Returns the bytes, or -errno. *cut: descriptors or names of senders
 * come with that piece. */
static long peek(int fd, void *to, size_t len, int flags, bool *cut)
{
	struct iovec iov = {to, len};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
	long n = sys(SYS_recvmsg, fd, &m, MSG_PEEK | MSG_DONTWAIT | flags);
	*cut = n >= 0 && m.msg_flags & MSG_CTRUNC;
	return n;
}

/* What was sent urgently is beside the stream, and its place is in it: the kernel shows the stream
 * up to there only, unless it is to stand inside. */
static bool is_urgent(int fd)
{
	struct pollfd look = {.fd = fd, .events = POLLPRI};
	const struct timespec now = {0, 0};
	int len = 0, all = 0, inside = 0, one = 1;
	uint32_t size = sizeof(inside);
	if (sys(SYS_ppoll, &look, 1, &now, NULL, 0) > 0 && look.revents & POLLPRI)
		return true;
	if (sys(SYS_getsockopt, fd, SOL_SOCKET, SO_OOBINLINE, &inside, &size) || inside ||
	    sys(SYS_ioctl, fd, FIONREAD, &len) ||
	    sys(SYS_setsockopt, fd, SOL_SOCKET, SO_OOBINLINE, &one, sizeof(one)))
		return false;
	sys(SYS_ioctl, fd, FIONREAD, &all);
	sys(SYS_setsockopt, fd, SOL_SOCKET, SO_OOBINLINE, &inside, sizeof(inside));
	return all > len;
}

static hale_status_t save_stream(struct fd_table *t, const struct fd_probe *p, struct fd_record *r,
				 struct error *err)
{
	int len = 0;
	bool cut;
	char *taken;
	if (is_urgent(p->fd))
		return fd_refuse_for_now(
		    p, "a connection with urgent data (MSG_OOB) that nobody has read", err);
	size_t full = fd_full_copy(t, p->st.st_ino, &taken);
	if (full) {
		r->has_content = 1;
		return taken && fd_add_stream(t, taken, full) ? HALE_OK : no_memory(err);
	}
	if (sys(SYS_ioctl, p->fd, FIONREAD, &len) || len <= 0)
		return HALE_OK;
	if (len > FD_STREAM_MAX)
		return fd_refuse(p, "a connection with more than 16 MiB that nobody has read", err);
	char *data = arena_pages(t->arena, (size_t)len);
	if (!data)
		return no_memory(err);
	r->has_content = 1;
	if (peek(p->fd, data, (size_t)len, 0, &cut) != len)
		return fd_refuse(p, "a connection whose content can't be looked at", err);
	if (!fd_add_stream(t, data, (size_t)len))
		return no_memory(err);
	return cut ? fd_refuse(p, "a socket with descriptors on their way", err) : HALE_OK;
}

/* Each with its length before it. */
static hale_status_t save_messages(struct fd_table *t, const struct fd_probe *p,
				   struct fd_record *r, bool ends, struct error *err)
{
	enum { MESSAGE_MAX = 1 << 20 };
	int waiting = 0;
	int from = 0, none = -1;
	size_t bytes = 0;
	struct arena_bytes all;
	char *message = arena_pages(t->arena, MESSAGE_MAX);
	bool cut = false;
	long n = 0;
	bytes_init(&all, t->arena);
	if (!message)
		return no_memory(err);
	sys(SYS_setsockopt, p->fd, SOL_SOCKET, SO_PEEK_OFF, &from, sizeof(from));
	while (!cut && all.len < FRAME_DATA_MAX / 2 &&
	       (n = peek(p->fd, message, MESSAGE_MAX, MSG_TRUNC, &cut)) > 0 && n <= MESSAGE_MAX) {
		uint32_t len = (uint32_t)n;
		char *to = bytes_extend(&all, sizeof(len) + len);
		if (!to)
			break;
		memcpy(to, &len, sizeof(len));
		memcpy(to + sizeof(len), message, len);
		bytes += len;
	}
	sys(SYS_setsockopt, p->fd, SOL_SOCKET, SO_PEEK_OFF, &none, sizeof(none));
	if (cut)
		return fd_refuse(p, "a socket with descriptors on their way", err);
	/* 0: the other end was closed, or a message without bytes, which can't be told from it; but
	 * of packets the kernel tells how many bytes there are */
	if (n == 0 && ends && !sys(SYS_ioctl, p->fd, FIONREAD, &waiting) &&
	    (size_t)waiting == bytes)
		n = -EAGAIN;
	if (n != -EAGAIN && !(n == 0 && r->a == 0))
		return fd_refuse(p, "a socket whose messages can't be looked at", err);
	if (!all.len)
		return HALE_OK;
	char *data = fd_add_content(t, 0, all.len, all.len);
	if (!data)
		return no_memory(err);
	memcpy(data, all.data, all.len);
	r->has_content = 1;
	return HALE_OK;
}

static int option_of(int fd, int level, int name)
{
	int value = 0;
	uint32_t len = sizeof(value);
	return sys(SYS_getsockopt, fd, level, name, &value, &len) ? 0 : value;
}

/* What only the process itself sees of it, its address among that. */
static const char *why_not(int fd, uint64_t inode, struct socket_look *l)
{
	char device[64];
	uint32_t none = 0, len = sizeof(device);
	struct pollfd poll = {.fd = fd, .events = POLLIN | POLLRDHUP};
	const struct timespec now = {0, 0};
	read_names(fd, &l->is);
	if (sys(SYS_getsockopt, fd, SOL_SOCKET, SO_GET_FILTER, NULL, &none) == -EACCES)
		return "a socket with an eBPF filter of what it receives";
	if (!sys(SYS_getsockopt, fd, SOL_SOCKET, SO_BINDTODEVICE, device, &len) && len)
		return "a socket of one network device";
	len = sizeof(device);
	if (l->is_tcp && !sys(SYS_getsockopt, fd, IPPROTO_TCP, TCP_ULP, device, &len) && len)
		return "a connection whose bytes another protocol of the kernel wraps (TCP_ULP)";
	if (l->is.end != SOCKET_ALONE)
		return NULL;
	sys(SYS_ppoll, &poll, 1, &now, NULL, 0);
	if (l->is.type != SOCK_DGRAM) { /* ENOTCONN: it never was */
		char c;
		long n = sys(SYS_recvfrom, fd, &c, 1, MSG_PEEK | MSG_DONTWAIT, NULL, NULL);
		return l->is.family == AF_UNIX || n == -ENOTCONN ? NULL
								 : "a connection that has ended";
	}
	if (l->is.family == AF_UNIX && poll.revents & POLLIN && l->is.name_len && !l->is.on_disk &&
	    l->is.name[sizeof(sa_family_t)])
		return "a socket with datagrams that nobody has read, and whose name is gone";
	if (l->is.family != AF_UNIX &&
	    fd_udp_shut(inode, l->is.family, l->is.protocol, &l->is.shut))
		;
	else if (l->is.family != AF_UNIX && poll.revents & POLLHUP)
		l->is.shut = SOCKET_NO_READ | SOCKET_NO_WRITE;
	else if (l->is.family != AF_UNIX && poll.revents & POLLRDHUP)
		l->is.shut = SOCKET_NO_READ;
	if (l->is.family != AF_UNIX &&
	    option_of(fd, l->is.protocol ? UDPLITE : IPPROTO_UDP, IS_CORKED))
		return "a socket with a datagram that is only half written";
	return NULL;
}

/* With the filter of what it receives, if it has one. */
static hale_status_t add_record(struct fd_table *t, int fd, struct socket_record *s,
				struct fd_record *r, struct error *err)
{
	char *text = arena_alloc(t->arena, sizeof(*s) + BPF_MAXINSNS * sizeof(struct sock_filter));
	uint32_t count = 0, room = BPF_MAXINSNS;
	if (!text)
		return no_memory(err);
	sys(SYS_getsockopt, fd, SOL_SOCKET, SO_GET_FILTER, NULL, &count);
	if (count &&
	    (sys(SYS_getsockopt, fd, SOL_SOCKET, SO_GET_FILTER, text + sizeof(*s), &room) ||
	     room != count))
		return error_set(err, HALE_ERR_SYSTEM,
				 "can't read the filter of the socket of descriptor %d", fd);
	s->filter = (uint16_t)count;
	s->filter_locked = option_of(fd, SOL_SOCKET, SO_LOCK_FILTER) != 0;
	memcpy(text, s, sizeof(*s));
	return fd_add_text(t, r, text, sizeof(*s) + count * sizeof(struct sock_filter))
		   ? HALE_OK
		   : no_memory(err);
}

/* a: the other end's inode, or 0. */
static hale_status_t capture(struct fd_table *t, const struct fd_probe *p, struct fd_record *r,
			     struct error *err)
{
	struct socket_look l;
	int one = 1;
	if (!look_at(t, p, &l))
		return fd_refuse(p, "a socket that has just changed", err);
	r->a = l.peer;
	r->b = l.turn;
	if (l.waiting && !fd_waits_all(t, p->st.st_ino, l.is_tcp, l.waiting))
		return fd_refuse_for_now(
		    p,
		    "a socket with connections that it has not accepted yet, which come from "
		    "outside, or have bytes",
		    err);
	if (l.has_bytes)
		return fd_refuse_for_now(p, "a connection with bytes that nobody has accepted yet",
					 err);
	if (t->other)
		return HALE_OK;
	if (l.is.end == SOCKET_BESIDE && (t->on_way >= 0 || fd_way_passes(t, p->st.st_ino)))
		return fd_refuse_for_now(p, "a connection to another rank, with descriptors", err);
	if (t->on_way >= 0 &&
	    (l.is.end == SOCKET_LISTENS || l.is.end == SOCKET_ALONE || l.is.end == SOCKET_WAITS))
		return fd_refuse(p, "a socket without another end, on its way through another",
				 err);
	const char *why = why_not(p->fd, p->st.st_ino, &l);
	if (why)
		return fd_refuse(p, why, err);
	if (l.is_tcp && l.is.end != SOCKET_LISTENS && l.is.end != SOCKET_WAITS &&
	    !fd_tcp_await(t->proc, p->st.st_ino, p->fd))
		return fd_refuse_for_now(
		    p, "a connection with more on its way than its receiver takes", err);
	if (l.is_tcp) { /* or its address could not be had again within a minute of its end */
		l.is.backlog = SOMAXCONN;
		sys(SYS_setsockopt, p->fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	}
	fd_socket_read_options(p->fd, &l.is);
	int peek_from = fd_socket_peek_from(p->fd, -1);
	hale_status_t rc = HALE_OK;
	if (fd_way_passes(t, p->st.st_ino) && l.is.end != SOCKET_ALONE)
		rc = fd_way_save(t, p, r, err);
	else if (l.is.end == SOCKET_CONNECTED || l.is.end == SOCKET_LEFT ||
		 l.is.end == SOCKET_BESIDE)
		rc = l.is.type == SOCK_STREAM
			 ? save_stream(t, p, r, err)
			 : save_messages(t, p, r,
					 l.is.type == SOCK_SEQPACKET && l.is.shut & SOCKET_NO_READ,
					 err);
	else if (l.is.end == SOCKET_ALONE && l.is.type == SOCK_DGRAM)
		rc = fd_datagrams_save(t, p, &l.is, r, err);
	if (peek_from >= 0)
		fd_socket_peek_from(p->fd, peek_from);
	return rc == HALE_OK ? add_record(t, p->fd, &l.is, r, err) : rc;
}

/* ---- restore ---- */

static size_t other_end_of(const struct fd_restore *f, const struct fd_record *me)
{
	for (size_t i = 0; i < f->count; i++)
		if (f->record[i].kind == FD_SOCKET && f->record[i].inode == me->a && me->a &&
		    f->record[i].same_as < 0)
			return i;
	return f->count;
}

static bool fill_from(const struct fd_restore *f, size_t index, int from, int to,
		      const struct socket_record *x)
{
	for (size_t i = 0; !f->record[index].truncates && i < f->content_count; i++)
		if (f->content[i].record.fd_index == (int32_t)index &&
		    !fd_socket_fill(from, to, x, f->content[i].data, f->content[i].len))
			return false;
	return true;
}

/* In one piece. */
static bool beside_content(const struct fd_restore *f, size_t index, struct fd_beside *e)
{
	char *all = NULL;
	size_t len = 0;
	for (size_t k = 0; k < f->content_count; k++)
		len += f->content[k].record.fd_index == (int32_t)index ? f->content[k].len : 0;
	if (len && !(all = arena_pages(f->arena, len)))
		return false;
	for (size_t k = 0; k < f->content_count; k++) {
		const struct content *c = &f->content[k];
		if (c->record.fd_index != (int32_t)index)
			continue;
		memcpy(all + e->len, c->data, c->len);
		e->len += c->len;
	}
	e->data = all;
	return true;
}

/* All of this process's connections to other ranks. Returns the one of record index. */
static int open_beside(struct fd_restore *f, size_t index, struct error *err)
{
	struct fd_beside *end = arena_alloc(f->arena, f->count * sizeof(*end));
	size_t count = 0;
	if (!end) {
		error_set(err, HALE_ERR_MEMORY, "no memory for connections to other ranks");
		return -1;
	}
	for (size_t i = 0; i < f->count; i++) {
		const struct fd_record *r = &f->record[i];
		struct fd_beside e = {.inode = r->inode, .peer = r->a, .index = i, .fd = -1};
		if (r->kind != FD_SOCKET || r->same_as >= 0 ||
		    !fd_socket_record(f->text, f->text_len, r, &e.is) || e.is.end != SOCKET_BESIDE)
			continue;
		if (!beside_content(f, i, &e)) {
			error_set(err, HALE_ERR_MEMORY, "no memory for connections to other ranks");
			return -1;
		}
		end[count++] = e;
	}
	if (!fd_beside_make(end, count, err))
		return -1;
	int wanted = -1;
	for (size_t i = 0; i < count; i++) {
		int fd = fd_lift(f, end[i].fd);
		fd_socket_finish(fd, &end[i].is, f->record[end[i].index].open_flags);
		if (end[i].index == index)
			wanted = fd;
		else
			f->temp[end[i].index] = fd;
	}
	return wanted;
}

static int open_socket(struct fd_restore *f, size_t index, struct error *err)
{
	const struct fd_record *me = &f->record[index];
	struct socket_record x, y;
	size_t other = other_end_of(f, me);
	int end[2];
	if (fd_socket_record(f->text, f->text_len, me, &x) && x.end == SOCKET_BESIDE)
		return open_beside(f, index, err);
	if (!fd_socket_record(f->text, f->text_len, me, &x) ||
	    (x.end == SOCKET_CONNECTED &&
	     (other == f->count || other == index ||
	      !fd_socket_record(f->text, f->text_len, &f->record[other], &y)))) {
		error_set(err, HALE_ERR_STATE,
			  "the socket of descriptor %d is damaged in the image", me->fd);
		return -1;
	}
	if (!fd_socket_make(&x, x.end == SOCKET_CONNECTED ? &y : NULL, end, err))
		return -1;
	end[0] = fd_lift(f, end[0]);
	end[1] = fd_lift(f, end[1]);
	bool ok = fill_from(f, index, x.end == SOCKET_ALONE ? end[0] : end[1], end[0], &x) &&
		  (x.end != SOCKET_CONNECTED || fill_from(f, other, end[0], end[1], &y));
	if (!ok) {
		error_set(err, HALE_ERR_SYSTEM, "can't fill the connection of descriptor %d again",
			  me->fd);
		return -1;
	}
	/* descriptors are sent to it when they are open, and only then it may be shut down */
	bool later = me->truncates || (x.end == SOCKET_CONNECTED && f->record[other].truncates);
	if (!later)
		fd_socket_finish(end[0], &x, me->open_flags);
	else
		f->sender[index] = end[1];
	if (x.end == SOCKET_CONNECTED) {
		if (!later)
			fd_socket_finish(end[1], &y, f->record[other].open_flags);
		else
			f->sender[other] = end[0];
		f->temp[other] = end[1];
	} else if (x.end == SOCKET_LEFT && !later) {
		sys(SYS_close, end[1]);
	}
	return end[0];
}

/* When all that it would not have let through is there. Another process may have done it. */
static bool filter_socket(struct fd_restore *f, size_t index, struct error *err)
{
	const struct fd_record *r = &f->record[index];
	struct socket_record x;
	uint32_t has = 0;
	int one = 1, fd = f->temp[index];
	if (!fd_socket_record(f->text, f->text_len, r, &x) || !x.filter ||
	    (!sys(SYS_getsockopt, fd, SOL_SOCKET, SO_GET_FILTER, NULL, &has) && has))
		return true;
	const char *filter = fd_text(f, r) + r->text_len - x.filter * sizeof(struct sock_filter);
	struct sock_fprog program = {x.filter, (struct sock_filter *)(uintptr_t)filter};
	long rc = sys(SYS_setsockopt, fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program));
	if (!rc && x.filter_locked)
		rc = sys(SYS_setsockopt, fd, SOL_SOCKET, SO_LOCK_FILTER, &one, sizeof(one));
	if (rc)
		error_set(err, HALE_ERR_SYSTEM,
			  "the socket of descriptor %d can't have its filter again (error %ld)",
			  r->fd, -rc);
	return !rc;
}

static bool connect_socket(struct fd_restore *f, size_t index, struct error *err)
{
	struct socket_record x;
	if (!fd_socket_record(f->text, f->text_len, &f->record[index], &x) ||
	    x.end == SOCKET_LEFT || x.end == SOCKET_BESIDE)
		return true;
	if (x.end == SOCKET_WAITS)
		return fd_waits_connect(f, err);
	return fd_socket_last(fd_now(f, index), &x, err);
}

const struct fd_ops fd_socket = {.kind = FD_SOCKET,
				 .name = "socket",
				 .match = match,
				 .capture = capture,
				 .open = open_socket,
				 .settle = filter_socket,
				 .connect = connect_socket};
