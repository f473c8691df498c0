// SPDX-License-Identifier: BSD-3-Clause
/* Datagrams that nobody has read yet. Each is saved with the address of its sender, and sent again
 * from that address, by a socket that has it for this moment:
 *
 *   struct datagram | address | bytes     struct datagram | address | bytes     …
 *
 * So the sender must have been on this machine. Afterwards the receiver's queue is compared with
 * what was saved: UDP drops datagrams without a word where there is no room. */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

#include "base/fmt.h"
#include "image/fd/fd.h"

enum { MESSAGE_MAX = 1 << 20, ROOM = 4 << 20, TRIES = 300, TRY_NS = 10000000 };

struct datagram {
	uint32_t len, name_len;
};

union address {
	struct sockaddr any;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
	struct sockaddr_un un;
	unsigned char bytes[SOCKET_NAME];
};

/* The next one behind what was looked at before; below 0: there is none (-EAGAIN), or why not. */
static long look_at_next(int fd, char *to, union address *from, uint32_t *from_len, bool *cut)
{
	struct iovec iov = {to, MESSAGE_MAX};
	struct msghdr m = {
	    .msg_iov = &iov, .msg_iovlen = 1, .msg_name = from, .msg_namelen = sizeof(*from)};
	long n = sys(SYS_recvmsg, fd, &m, MSG_PEEK | MSG_DONTWAIT | MSG_TRUNC);
	*from_len = n < 0 || m.msg_namelen <= sizeof(sa_family_t) ? 0 : m.msg_namelen;
	*cut = n >= 0 && m.msg_flags & MSG_CTRUNC;
	return n;
}

static void look_from(int fd, int at)
{
	sys(SYS_setsockopt, fd, SOL_SOCKET, SO_PEEK_OFF, &at, sizeof(at));
}

/* Can a socket of this machine have that address? */
static bool is_local(const union address *a, uint32_t len)
{
	union address from = *a;
	if (from.any.sa_family == AF_UNIX)
		return !len || from.un.sun_path[0];
	from.in.sin_port = 0; /* sin6_port stands at the same place */
	long fd = sys(SYS_socket, from.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	long rc = fd < 0 ? fd : sys(SYS_bind, fd, &from, len);
	if (fd >= 0)
		sys(SYS_close, fd);
	return !rc;
}

static const char *why_not(const struct socket_record *s, const union address *from,
			   uint32_t from_len, bool cut)
{
	if (cut)
		return "a socket with descriptors on their way, or who sent them";
	if (from_len && !s->name_len)
		return "a socket without an address, with datagrams of one that has one";
	if (from_len && from->any.sa_family == AF_UNIX && !from->un.sun_path[0])
		return "a socket with unread datagrams of one with an abstract address";
	if ((from_len || s->family != AF_UNIX) && !is_local(from, from_len))
		return "a socket with unread datagrams of another machine";
	return NULL;
}

static bool add(struct arena_bytes *all, const union address *from, uint32_t from_len,
		const char *data, long n)
{
	const struct datagram d = {(uint32_t)n, from_len};
	char *to = bytes_extend(all, sizeof(d) + from_len + (size_t)n);
	if (!to)
		return false;
	memcpy(to, &d, sizeof(d));
	memcpy(to + sizeof(d), from, from_len);
	memcpy(to + sizeof(d) + from_len, data, (size_t)n);
	return true;
}

hale_status_t fd_datagrams_save(struct fd_table *t, const struct fd_probe *p,
				const struct socket_record *s, struct fd_record *r,
				struct error *err)
{
	union address from;
	uint32_t from_len;
	struct arena_bytes all;
	char *message = arena_pages(t->arena, MESSAGE_MAX);
	const char *why = NULL;
	bool cut = false, ok = message != NULL;
	long n = -EAGAIN;
	bytes_init(&all, t->arena);
	look_from(p->fd, 0);
	while (ok && !why && all.len < FRAME_DATA_MAX / 2 &&
	       (n = look_at_next(p->fd, message, &from, &from_len, &cut)) > 0 && n <= MESSAGE_MAX) {
		why = why_not(s, &from, from_len, cut);
		ok = add(&all, &from, from_len, message, n);
	}
	look_from(p->fd, -1);
	char *data = ok && all.len ? fd_add_content(t, 0, all.len, all.len) : NULL;
	if (!ok || (all.len && !data))
		return error_set(err, HALE_ERR_MEMORY, "no memory for the content of a socket");
	/* one without bytes can't be looked behind; 0 is also what one that was shut down gives */
	if (!why && n == 0 && (from_len || !(s->shut & SOCKET_NO_READ)))
		why = "a socket with a datagram without bytes, which nobody has read";
	if (!why && n != -EAGAIN && n != 0)
		why = "a socket whose datagrams can't be looked at";
	if (why)
		return fd_refuse(p, why, err);
	if (data)
		memcpy(data, all.data, all.len);
	r->has_content = data != NULL;
	return HALE_OK;
}

/* ---- restore ---- */

static bool next(const char **at, size_t *left, struct datagram *d, union address *from,
		 const char **data)
{
	memset(from, 0, sizeof(*from));
	if (*left < sizeof(*d))
		return false;
	memcpy(d, *at, sizeof(*d));
	if (d->name_len > sizeof(*from) || d->len > MESSAGE_MAX ||
	    *left - sizeof(*d) < (size_t)d->name_len + d->len)
		return false;
	memcpy(from, *at + sizeof(*d), d->name_len);
	*data = *at + sizeof(*d) + d->name_len;
	*at += sizeof(*d) + d->name_len + d->len;
	*left -= sizeof(*d) + d->name_len + d->len;
	return true;
}

/* Where the receiver can be reached: if it has all addresses, at the sender's. */
static void address_of(const struct socket_record *x, const union address *from, union address *to)
{
	static const unsigned char any[sizeof(struct in6_addr)];
	memcpy(to, x->name, sizeof(*to));
	if (x->family == AF_INET && !to->in.sin_addr.s_addr)
		to->in.sin_addr = from->in.sin_addr;
	if (x->family == AF_INET6 && !memcmp(&to->in6.sin6_addr, any, sizeof(any))) {
		to->in6.sin6_addr = from->in6.sin6_addr;
		to->in6.sin6_scope_id = from->in6.sin6_scope_id;
	}
}

static bool send_from(int fd, const struct socket_record *x, const union address *from,
		      const struct datagram *d, const char *data)
{
	union address to;
	char away[160] = "";
	int one = 1, room = ROOM;
	long from_fd = sys(SYS_socket, x->family, x->type | SOCK_CLOEXEC, x->protocol), n = from_fd;
	if (from_fd < 0)
		return false;
	address_of(x, from, &to);
	sys(SYS_setsockopt, from_fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
	bool named = x->family == AF_UNIX && d->name_len;
	if (named) { /* who has that name keeps its own */
		fmt_print(away, sizeof(away), "%.107s.hale-%d", from->un.sun_path,
			  (int)sys(SYS_getpid));
		if (sys(SYS_rename, from->un.sun_path, away))
			*away = 0;
	} else if (x->family != AF_UNIX) {
		sys(SYS_setsockopt, from_fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	}
	n = d->name_len ? sys(SYS_bind, from_fd, from, d->name_len) : 0;
	if (!n)
		n = sys(SYS_sendto, from_fd, data, d->len, MSG_DONTWAIT | MSG_NOSIGNAL, &to,
			x->name_len);
	sys(SYS_close, from_fd);
	if (named)
		sys(SYS_unlink, from->un.sun_path);
	if (*away)
		sys(SYS_rename, away, from->un.sun_path);
	return n == (long)d->len;
}

/* Is all there, as it was? */
static bool has_all(int fd, const char *at, size_t left)
{
	struct datagram d;
	union address from, seen;
	uint32_t seen_len;
	const char *data;
	bool cut, same = true;
	long room = sys(SYS_mmap, 0, MESSAGE_MAX, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (sys_failed(room))
		return false;
	look_from(fd, 0);
	while (same && left) {
		same = next(&at, &left, &d, &from, &data) &&
		       look_at_next(fd, (char *)room, &seen, &seen_len, &cut) == (long)d.len &&
		       seen_len == d.name_len && !memcmp(&seen, &from, seen_len) &&
		       !memcmp((char *)room, data, d.len);
	}
	look_from(fd, -1);
	sys(SYS_munmap, room, MESSAGE_MAX);
	return same;
}

/* One of a pair whose other half is gone: that one has sent them. */
static bool make_pair(int fd, const struct socket_record *x, const char *at, size_t len)
{
	struct datagram d;
	union address from;
	const char *bytes;
	int end[2];
	long rc = sys(SYS_socketpair, x->family, x->type | SOCK_CLOEXEC, x->protocol, end);
	if (rc)
		return false;
	while (!rc && len)
		if (!next(&at, &len, &d, &from, &bytes) ||
		    sys(SYS_sendto, end[1], bytes, d.len, MSG_DONTWAIT | MSG_NOSIGNAL, NULL, 0) !=
			(long)d.len)
			rc = -EIO;
	if (!rc)
		rc = sys(SYS_dup3, end[0], fd, O_CLOEXEC) < 0 ? -EMFILE : 0;
	sys(SYS_close, end[1]);
	sys(SYS_close, end[0]);
	return !rc;
}

bool fd_datagrams_fill(int fd, const struct socket_record *x, const void *data, size_t len)
{
	const struct timespec tick = {0, TRY_NS};
	struct datagram d;
	union address from;
	const char *at = data, *bytes;
	size_t left = len;
	int had = 0, room = ROOM;
	uint32_t size = sizeof(had);
	if (x->family == AF_UNIX && !x->name_len)
		return make_pair(fd, x, data, len);
	sys(SYS_getsockopt, fd, SOL_SOCKET, SO_RCVBUF, &had, &size);
	sys(SYS_setsockopt, fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
	bool ok = true;
	while (ok && left)
		ok = next(&at, &left, &d, &from, &bytes) && send_from(fd, x, &from, &d, bytes);
	for (int i = 0; ok && !has_all(fd, data, len); i++) {
		ok = i < TRIES;
		sys(SYS_nanosleep, &tick, NULL);
	}
	had /= 2; /* the kernel has doubled it */
	sys(SYS_setsockopt, fd, SOL_SOCKET, SO_RCVBUF, &had, sizeof(had));
	return ok;
}
