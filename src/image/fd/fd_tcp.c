// SPDX-License-Identifier: BSD-3-Clause
/* TCP sockets, looked up in /proc/PID/net/tcp and tcp6: the state of one, and its other end.
 * fd_socket.c captures those of which both ends belong to processes that are captured together. A
 * line for each socket:
 *
 *   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
 *   1: 0100007F:8807 0100007F:ED8E 01 00000000:00000000 00:00000000 00000000  0  0 12345 …
 */
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "base/fmt.h"
#include "image/fd/fd.h"

enum { READ = 4096, CLOSE_WAIT = 8, TICKS = 50, TICK_NS = 1000000 };
enum { NOT_SENT = 0x894B /* SIOCOUTQNSD */ };

static uint64_t number(const char **p, uint64_t base)
{
	uint64_t v = 0;
	for (;; (*p)++) {
		char c = **p;
		uint64_t digit = c >= '0' && c <= '9'	? (uint64_t)(c - '0')
				 : c >= 'A' && c <= 'F' ? (uint64_t)(c - 'A' + 10)
							: base;
		if (digit >= base)
			return v;
		v = v * base + digit;
	}
}

/* The start of field n. */
static const char *field(const char *line, int n)
{
	for (int i = 0;; i++) {
		while (*line == ' ')
			line++;
		if (i == n || !*line)
			return line;
		while (*line && *line != ' ')
			line++;
	}
}

static bool take_address(const char *p, bool is_ipv6, uint32_t to[4], uint16_t *port)
{
	char word[9] = {0};
	to[0] = to[1] = 0;
	to[2] = __builtin_bswap32(0xffff);
	for (int i = is_ipv6 ? 0 : 3; i < 4; i++) {
		const char *w = word;
		for (int k = 0; k < 8; k++)
			if (!(word[k] = *p++))
				return false;
		to[i] = (uint32_t)number(&w, 16);
	}
	if (*p++ != ':')
		return false;
	*port = (uint16_t)number(&p, 16);
	return true;
}

static bool take_line(const char *line, bool is_ipv6, struct fd_tcp *s)
{
	*s = (struct fd_tcp){.is_ipv6 = is_ipv6};
	if (!take_address(field(line, 1), is_ipv6, s->local, &s->local_port) ||
	    !take_address(field(line, 2), is_ipv6, s->remote, &s->remote_port))
		return false;
	const char *p;
	p = field(line, 3);
	s->state = (uint32_t)number(&p, 16);
	p = field(line, 4);
	s->sent = (uint32_t)number(&p, 16);
	if (*p++ != ':')
		return false;
	s->received = (uint32_t)number(&p, 16);
	p = field(line, 6);
	s->sent_again = (uint32_t)number(&p, 16);
	p = field(line, 9);
	s->inode = number(&p, 10);
	return true;
}

static bool find_in(const char *proc, bool is_ipv6,
		    bool (*wanted)(const struct fd_tcp *s, const void *arg), const void *arg,
		    struct fd_tcp *found)
{
	char path[64], room[READ + 1];
	size_t have = 0;
	bool hit = false;
	fmt_print(path, sizeof(path), "%s/net/%s", proc, is_ipv6 ? "tcp6" : "tcp");
	long n, fd = sys(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	while (!hit && (n = sys(SYS_read, fd, room + have, READ - have)) > 0) {
		char *line = room, *end;
		have += (size_t)n;
		room[have] = 0;
		for (; !hit && (end = memchr(line, '\n', have - (size_t)(line - room)));
		     line = end + 1) {
			*end = 0;
			hit = take_line(line, is_ipv6, found) && wanted(found, arg);
		}
		have -= (size_t)(line - room);
		memmove(room, line, have);
	}
	sys(SYS_close, fd);
	return hit;
}

bool fd_tcp_find(const char *proc, bool (*wanted)(const struct fd_tcp *s, const void *arg),
		 const void *arg, struct fd_tcp *found)
{
	return find_in(proc, false, wanted, arg, found) || find_in(proc, true, wanted, arg, found);
}

static bool has_inode(const struct fd_tcp *s, const void *inode)
{
	return s->inode == *(const uint64_t *)inode;
}

bool fd_tcp_ask(const char *proc, uint64_t inode, struct fd_tcp *s)
{
	return inode && fd_tcp_find(proc, has_inode, &inode, s);
}

static bool is_other_end(const struct fd_tcp *s, const void *of)
{
	const struct fd_tcp *o = of;
	return !memcmp(s->local, o->remote, sizeof(s->local)) &&
	       !memcmp(s->remote, o->local, sizeof(s->remote)) && s->local_port == o->remote_port &&
	       s->remote_port == o->local_port;
}

bool fd_tcp_peer(const char *proc, const struct fd_tcp *of, struct fd_tcp *peer)
{
	return fd_tcp_find(proc, is_other_end, of, peer);
}

struct tcp_alike {
	const struct fd_tcp *of;
	uint32_t *count;
};

/* Looks at all: none is what is wanted. */
static bool count_alike(const struct fd_tcp *s, const void *arg)
{
	const struct tcp_alike *a = arg;
	*a->count += s->state == a->of->state && s->local_port == a->of->local_port &&
		     s->is_ipv6 == a->of->is_ipv6 &&
		     !memcmp(s->local, a->of->local, sizeof(s->local));
	return false;
}

uint32_t fd_tcp_count_alike(const char *proc, const struct fd_tcp *s)
{
	struct fd_tcp none;
	uint32_t count = 0;
	const struct tcp_alike a = {s, &count};
	fd_tcp_find(proc, count_alike, &a, &none);
	return count;
}

/* What was sent and is not acknowledged has arrived, or the kernel has yet to hand it over: it
 * holds small pieces back for a moment (autocorking), and a busy processor delivers later. */
static bool tcp_has_arrived(const char *proc, const struct fd_tcp *s, int fd)
{
	struct fd_tcp peer;
	struct tcp_info info = {0};
	uint32_t len = sizeof(info);
	uint64_t sent;
	if (!fd_tcp_peer(proc, s, &peer) || !peer.sent)
		return true;
	return !sys(SYS_getsockopt, fd, IPPROTO_TCP, TCP_INFO, &info, &len) &&
	       len >= offsetof(struct tcp_info, tcpi_segs_out) && fd_tcp_sent(&peer, &sent) &&
	       info.tcpi_bytes_received >= sent;
}

bool fd_tcp_await(const char *proc, uint64_t inode, int fd)
{
	const struct timespec tick = {0, TICK_NS};
	struct fd_tcp s;
	int left = 0;
	for (int i = 0; i < TICKS; i++) {
		bool sent = sys(SYS_ioctl, fd, NOT_SENT, &left) || left <= 0;
		if (!fd_tcp_ask(proc, inode, &s))
			return sent;
		if (sent && !s.sent_again &&
		    (s.state == CLOSE_WAIT || tcp_has_arrived(proc, &s, fd)))
			return true;
		sys(SYS_nanosleep, &tick, NULL);
	}
	return false;
}
