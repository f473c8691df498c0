// SPDX-License-Identifier: BSD-3-Clause
/* Options of sockets: read when one is captured, set again when it is made. Their order is part of
 * the format of images. */
#include <linux/filter.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "image/fd/fd.h"

enum { FREEBIND_IPV6 = 78 /* IPV6_FREEBIND */ };

enum how {
	NUMBER = 0, /* what setsockopt takes as an int */
	TIME,	    /* in microseconds */
	LINGER,	    /* seconds, or more than an int has: off */
};

struct socket_option {
	int level, name;
	enum how how;
	bool early; /* before it gets its address */
};

#define LINGER_OFF (1ll << 40)

static const struct socket_option options[SOCKET_OPTIONS] = {
    {SOL_SOCKET, SO_KEEPALIVE, NUMBER, false},	{SOL_SOCKET, SO_OOBINLINE, NUMBER, false},
    {SOL_SOCKET, SO_PASSCRED, NUMBER, false},	{SOL_SOCKET, SO_RCVTIMEO, TIME, false},
    {SOL_SOCKET, SO_SNDTIMEO, TIME, false},	{IPPROTO_TCP, TCP_NODELAY, NUMBER, false},
    {IPPROTO_TCP, TCP_KEEPIDLE, NUMBER, false}, {IPPROTO_TCP, TCP_KEEPINTVL, NUMBER, false},
    {IPPROTO_TCP, TCP_KEEPCNT, NUMBER, false},	{IPPROTO_TCP, TCP_USER_TIMEOUT, NUMBER, false}};

static const struct socket_option more[] = {{IPPROTO_IPV6, IPV6_V6ONLY, NUMBER, true},
					    {SOL_SOCKET, SO_REUSEADDR, NUMBER, true},
					    {SOL_SOCKET, SO_REUSEPORT, NUMBER, true},
					    {IPPROTO_IP, IP_FREEBIND, NUMBER, true},
					    {IPPROTO_IPV6, FREEBIND_IPV6, NUMBER, true},
					    {SOL_SOCKET, SO_LINGER, LINGER, false},
					    {SOL_SOCKET, SO_BROADCAST, NUMBER, true},
					    {SOL_SOCKET, SO_DONTROUTE, NUMBER, false},
					    {SOL_SOCKET, SO_PRIORITY, NUMBER, false},
					    {SOL_SOCKET, SO_RCVLOWAT, NUMBER, false},
					    {IPPROTO_IP, IP_TOS, NUMBER, false},
					    {IPPROTO_IP, IP_TTL, NUMBER, false},
					    {IPPROTO_IP, IP_PKTINFO, NUMBER, false},
					    {IPPROTO_IP, IP_RECVERR, NUMBER, false},
					    {IPPROTO_IP, IP_MULTICAST_TTL, NUMBER, false},
					    {IPPROTO_IP, IP_MULTICAST_LOOP, NUMBER, false},
					    {IPPROTO_IPV6, IPV6_UNICAST_HOPS, NUMBER, false},
					    {IPPROTO_IPV6, IPV6_RECVPKTINFO, NUMBER, false},
					    {IPPROTO_IPV6, IPV6_TCLASS, NUMBER, false},
					    {IPPROTO_IPV6, IPV6_RECVERR, NUMBER, false},
					    {SOL_SOCKET, SO_TIMESTAMP, NUMBER, false},
					    {SOL_SOCKET, SO_NO_CHECK, NUMBER, false}};
_Static_assert(ARRAY_LEN(more) <= SOCKET_MORE, "the record has room for all");

static int64_t read_one(int fd, const struct socket_option *o, uint32_t family)
{
	union {
		int number;
		struct timeval time;
		struct linger linger;
	} v = {0};
	uint32_t len = o->how == TIME ? sizeof(v.time) : o->how == LINGER ? sizeof(v.linger) : 4;
	if (family == AF_UNIX && o->level != SOL_SOCKET)
		return -1;
	if (sys(SYS_getsockopt, fd, o->level, o->name, &v, &len))
		return -1;
	if (o->how == TIME)
		return v.time.tv_sec * 1000000 + v.time.tv_usec;
	return o->how == LINGER ? v.linger.l_onoff ? v.linger.l_linger : LINGER_OFF : v.number;
}

static void write_one(int fd, const struct socket_option *o, uint32_t family, int64_t value)
{
	struct timeval time = {value / 1000000, value % 1000000};
	struct linger linger = {value < LINGER_OFF, value < LINGER_OFF ? (int)value : 0};
	int number = (int)value;
	if (value < 0 || read_one(fd, o, family) == value)
		return;
	const void *at = o->how == TIME	    ? (void *)&time
			 : o->how == LINGER ? (void *)&linger
					    : &number;
	uint32_t len = o->how == TIME	  ? sizeof(time)
		       : o->how == LINGER ? sizeof(linger)
					  : sizeof(number);
	sys(SYS_setsockopt, fd, o->level, o->name, at, len);
}

void fd_socket_read_options(int fd, struct socket_record *s)
{
	memset(s->more, 0xff, sizeof(s->more));
	for (size_t i = 0; i < ARRAY_LEN(options); i++)
		s->option[i] = options[i].level == IPPROTO_TCP && s->type != SOCK_STREAM
				   ? -1
				   : read_one(fd, &options[i], s->family);
	for (size_t i = 0; i < ARRAY_LEN(more); i++)
		s->more[i] = read_one(fd, &more[i], s->family);
}

void fd_socket_write_early(int fd, const struct socket_record *s)
{
	for (size_t i = 0; i < ARRAY_LEN(more); i++)
		if (more[i].early)
			write_one(fd, &more[i], s->family, s->more[i]);
}

void fd_socket_write_options(int fd, const struct socket_record *s)
{
	for (size_t i = 0; i < ARRAY_LEN(options); i++)
		write_one(fd, &options[i], s->family, s->option[i]);
	for (size_t i = 0; i < ARRAY_LEN(more); i++)
		if (!more[i].early)
			write_one(fd, &more[i], s->family, s->more[i]);
}

bool fd_socket_record(const char *text, size_t text_len, const struct fd_record *r,
		      struct socket_record *s)
{
	const size_t len = r->text_len < sizeof(*s) ? r->text_len : sizeof(*s);
	if (len != sizeof(*s) || r->text_offset > text_len ||
	    text_len - r->text_offset < r->text_len)
		return false;
	memcpy(s, text + r->text_offset, len);
	if (r->text_len > len && r->text_len - len != s->filter * sizeof(struct sock_filter))
		return false;
	return s->name_len <= sizeof(s->name) && s->peer_name_len <= sizeof(s->peer_name);
}
