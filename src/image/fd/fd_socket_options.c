// SPDX-License-Identifier: BSD-3-Clause
/* Options of sockets: read when one is captured, set again when it is made. Their order is part of
 * the format of images. */
#include <errno.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "image/fd/fd.h"

enum { FREEBIND_IPV6 = 78 /* IPV6_FREEBIND */ };

/* What libc's headers lack. */
enum {
	TIMESTAMP_NEW = 63,
	TIMESTAMPNS_NEW = 64,
	TIMESTAMPING_NEW = 65,
	PREFER_BUSY_POLL = 69,
	BUSY_POLL_BUDGET = 70,
	RESERVE_MEM = 73,
	TXREHASH = 74,
	RCVMARK = 75,
	PASSPIDFD = 76,
	RCVPRIORITY = 82,
	PASSRIGHTS = 83,
	MULTICAST_ALL_IP = 49,
	UNICAST_IF_IP = 50,
	LOCAL_PORT_RANGE = 51,
	FLOWINFO_SEND = 33,
	TX_DELAY = 37,
	RTO_MAX_MS = 44,
	RTO_MIN_US = 45,
	DELACK_MAX_US = 46,
	LEVEL_UDP = 17,
	LEVEL_UDPLITE = 136,
	ENCAP = 100,
	NO_CHECK6_TX = 101,
	NO_CHECK6_RX = 102,
	SEGMENT = 103,
	GRO = 104,
	SEND_CSCOV = 10,
	RECV_CSCOV = 11
};

enum how {
	NUMBER = 0, /* what setsockopt takes as an int */
	UNSIGNED,
	TIME,	/* in microseconds */
	LINGER, /* seconds, or more than an int has: off */
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

static const struct socket_option extra[] = {{SOL_SOCKET, SO_MARK, UNSIGNED, false},
					     {SOL_SOCKET, SO_TIMESTAMPNS, NUMBER, false},
					     {SOL_SOCKET, SO_TIMESTAMPING, NUMBER, false},
					     {SOL_SOCKET, TIMESTAMP_NEW, NUMBER, false},
					     {SOL_SOCKET, TIMESTAMPNS_NEW, NUMBER, false},
					     {SOL_SOCKET, TIMESTAMPING_NEW, NUMBER, false},
					     {SOL_SOCKET, SO_PEEK_OFF, NUMBER, false},
					     {SOL_SOCKET, SO_RXQ_OVFL, NUMBER, false},
					     {SOL_SOCKET, SO_WIFI_STATUS, NUMBER, false},
					     {SOL_SOCKET, SO_NOFCS, NUMBER, false},
					     {SOL_SOCKET, SO_SELECT_ERR_QUEUE, NUMBER, false},
					     {SOL_SOCKET, SO_BUSY_POLL, NUMBER, false},
					     {SOL_SOCKET, PREFER_BUSY_POLL, NUMBER, false},
					     {SOL_SOCKET, BUSY_POLL_BUDGET, NUMBER, false},
					     {SOL_SOCKET, SO_MAX_PACING_RATE, UNSIGNED, false},
					     {SOL_SOCKET, SO_ZEROCOPY, NUMBER, false},
					     {SOL_SOCKET, SO_PASSSEC, NUMBER, false},
					     {SOL_SOCKET, PASSPIDFD, NUMBER, false},
					     {SOL_SOCKET, PASSRIGHTS, NUMBER, false},
					     {SOL_SOCKET, RESERVE_MEM, NUMBER, false},
					     {SOL_SOCKET, TXREHASH, NUMBER, false},
					     {SOL_SOCKET, RCVMARK, NUMBER, false},
					     {SOL_SOCKET, RCVPRIORITY, NUMBER, false},
					     {IPPROTO_IP, IP_TRANSPARENT, NUMBER, true},
					     {IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, NUMBER, true},
					     {IPPROTO_IP, LOCAL_PORT_RANGE, UNSIGNED, false},
					     {IPPROTO_IP, IP_RECVTTL, NUMBER, false},
					     {IPPROTO_IP, IP_RECVTOS, NUMBER, false},
					     {IPPROTO_IP, IP_RECVOPTS, NUMBER, false},
					     {IPPROTO_IP, IP_RETOPTS, NUMBER, false},
					     {IPPROTO_IP, IP_RECVORIGDSTADDR, NUMBER, false},
					     {IPPROTO_IP, IP_RECVFRAGSIZE, NUMBER, false},
					     {IPPROTO_IP, IP_RECVERR_RFC4884, NUMBER, false},
					     {IPPROTO_IP, IP_CHECKSUM, NUMBER, false},
					     {IPPROTO_IP, IP_PASSSEC, NUMBER, false},
					     {IPPROTO_IP, IP_MTU_DISCOVER, NUMBER, false},
					     {IPPROTO_IP, IP_MINTTL, NUMBER, false},
					     {IPPROTO_IP, MULTICAST_ALL_IP, NUMBER, false},
					     {IPPROTO_IP, UNICAST_IF_IP, UNSIGNED, false},
					     {IPPROTO_IPV6, IPV6_TRANSPARENT, NUMBER, true},
					     {IPPROTO_IPV6, IPV6_MTU_DISCOVER, NUMBER, false},
					     {IPPROTO_IPV6, IPV6_RECVHOPLIMIT, NUMBER, false},
					     {IPPROTO_IPV6, IPV6_RECVTCLASS, NUMBER, false},
					     {IPPROTO_IPV6, IPV6_RECVPATHMTU, NUMBER, false},
					     {IPPROTO_IPV6, IPV6_RECVRTHDR, NUMBER, false},
					     {IPPROTO_IPV6, IPV6_RECVHOPOPTS, NUMBER, false},
					     {IPPROTO_IPV6, IPV6_RECVDSTOPTS, NUMBER, false},
					     {IPPROTO_IPV6, IPV6_RECVORIGDSTADDR, NUMBER, false},
					     {IPPROTO_IPV6, IPV6_RECVFRAGSIZE, NUMBER, false},
					     {IPPROTO_IPV6, IPV6_RECVERR_RFC4884, NUMBER, false},
					     {IPPROTO_IPV6, IPV6_DONTFRAG, NUMBER, false},
					     {IPPROTO_IPV6, IPV6_MULTICAST_HOPS, NUMBER, false},
					     {IPPROTO_IPV6, IPV6_MULTICAST_LOOP, NUMBER, false},
					     {IPPROTO_IPV6, IPV6_MULTICAST_ALL, NUMBER, false},
					     {IPPROTO_IPV6, FLOWINFO_SEND, NUMBER, false},
					     {IPPROTO_IPV6, IPV6_AUTOFLOWLABEL, NUMBER, false},
					     {IPPROTO_IPV6, IPV6_MINHOPCOUNT, NUMBER, false},
					     {IPPROTO_IPV6, IPV6_UNICAST_IF, UNSIGNED, false},
					     {IPPROTO_TCP, TCP_CORK, NUMBER, false},
					     {IPPROTO_TCP, TCP_SYNCNT, NUMBER, false},
					     {IPPROTO_TCP, TCP_LINGER2, NUMBER, false},
					     {IPPROTO_TCP, TCP_DEFER_ACCEPT, NUMBER, false},
					     {IPPROTO_TCP, TCP_NOTSENT_LOWAT, UNSIGNED, false},
					     {IPPROTO_TCP, TCP_THIN_LINEAR_TIMEOUTS, NUMBER, false},
					     {IPPROTO_TCP, TCP_SAVE_SYN, NUMBER, false},
					     {IPPROTO_TCP, TCP_INQ, NUMBER, false},
					     {IPPROTO_TCP, TCP_FASTOPEN, NUMBER, false},
					     {IPPROTO_TCP, TX_DELAY, NUMBER, false},
					     {IPPROTO_TCP, RTO_MAX_MS, NUMBER, false},
					     {IPPROTO_TCP, RTO_MIN_US, NUMBER, false},
					     {IPPROTO_TCP, DELACK_MAX_US, NUMBER, false},
					     {LEVEL_UDP, ENCAP, NUMBER, false},
					     {LEVEL_UDP, NO_CHECK6_TX, NUMBER, false},
					     {LEVEL_UDP, NO_CHECK6_RX, NUMBER, false},
					     {LEVEL_UDP, SEGMENT, NUMBER, false},
					     {LEVEL_UDP, GRO, NUMBER, false},
					     {LEVEL_UDPLITE, SEND_CSCOV, NUMBER, false},
					     {LEVEL_UDPLITE, RECV_CSCOV, NUMBER, false}};
/* Two places behind them: how TCP controls congestion, by name. */
enum { CONGESTION = SOCKET_EXTRA - 2, CONGESTION_NAME = 16 };
_Static_assert(ARRAY_LEN(extra) <= CONGESTION, "the record has room for all");

static int64_t read_one(int fd, const struct socket_option *o, uint32_t family)
{
	union {
		int number;
		uint32_t unsigned_number;
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
	if (o->how == UNSIGNED)
		return v.unsigned_number;
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
	long rc = sys(SYS_setsockopt, fd, o->level, o->name, at, len);
	if (rc && rc != -EINVAL) /* that some have which can't be set in every state */
		log_warn("after the restart option %d of level %d of a socket is not %ld again "
			 "(error %ld)",
			 o->name, o->level, (long)value, -rc);
}

static void read_congestion(int fd, struct socket_record *s)
{
	char name[CONGESTION_NAME] = "";
	uint32_t len = sizeof(name);
	if (s->family != AF_UNIX && s->type == SOCK_STREAM &&
	    !sys(SYS_getsockopt, fd, IPPROTO_TCP, TCP_CONGESTION, name, &len))
		memcpy(&s->extra[CONGESTION], name, sizeof(name));
}

static void write_congestion(int fd, const struct socket_record *s)
{
	char wanted[CONGESTION_NAME + 1] = "", now[CONGESTION_NAME + 1] = "";
	uint32_t len = CONGESTION_NAME;
	memcpy(wanted, &s->extra[CONGESTION], CONGESTION_NAME);
	if (s->extra[CONGESTION] < 0 ||
	    sys(SYS_getsockopt, fd, IPPROTO_TCP, TCP_CONGESTION, now, &len) || !strcmp(now, wanted))
		return;
	long rc = sys(SYS_setsockopt, fd, IPPROTO_TCP, TCP_CONGESTION, wanted, strlen(wanted));
	if (rc)
		log_warn("after the restart a connection controls congestion by %s, not by %s "
			 "(error %ld)",
			 now, wanted, -rc);
}

void fd_socket_read_options(int fd, struct socket_record *s)
{
	memset(s->more, 0xff, sizeof(s->more));
	memset(s->extra, 0xff, sizeof(s->extra));
	for (size_t i = 0; i < ARRAY_LEN(options); i++)
		s->option[i] = options[i].level == IPPROTO_TCP && s->type != SOCK_STREAM
				   ? -1
				   : read_one(fd, &options[i], s->family);
	for (size_t i = 0; i < ARRAY_LEN(more); i++)
		s->more[i] = read_one(fd, &more[i], s->family);
	for (size_t i = 0; i < ARRAY_LEN(extra); i++)
		s->extra[i] = read_one(fd, &extra[i], s->family);
	read_congestion(fd, s);
}

void fd_socket_write_early(int fd, const struct socket_record *s)
{
	for (size_t i = 0; i < ARRAY_LEN(more); i++)
		if (more[i].early)
			write_one(fd, &more[i], s->family, s->more[i]);
	for (size_t i = 0; i < ARRAY_LEN(extra); i++)
		if (extra[i].early)
			write_one(fd, &extra[i], s->family, s->extra[i]);
}

void fd_socket_write_options(int fd, const struct socket_record *s)
{
	for (size_t i = 0; i < ARRAY_LEN(options); i++)
		write_one(fd, &options[i], s->family, s->option[i]);
	for (size_t i = 0; i < ARRAY_LEN(more); i++)
		if (!more[i].early)
			write_one(fd, &more[i], s->family, s->more[i]);
	for (size_t i = 0; i < ARRAY_LEN(extra); i++)
		if (!extra[i].early)
			write_one(fd, &extra[i], s->family, s->extra[i]);
	write_congestion(fd, s);
}

/* The kernel's place in what is looked at by MSG_PEEK, which captures do, too. */
int fd_socket_peek_from(int fd, int from)
{
	int before = -1;
	uint32_t len = sizeof(before);
	if (sys(SYS_getsockopt, fd, SOL_SOCKET, SO_PEEK_OFF, &before, &len))
		return -1;
	if (before != from)
		sys(SYS_setsockopt, fd, SOL_SOCKET, SO_PEEK_OFF, &from, sizeof(from));
	return before;
}

bool fd_socket_record(const char *text, size_t text_len, const struct fd_record *r,
		      struct socket_record *s)
{
	const size_t before_8 = offsetof(struct socket_record, extra);
	if (r->text_len < before_8 || r->text_offset > text_len ||
	    text_len - r->text_offset < r->text_len)
		return false;
	memcpy(s, text + r->text_offset, before_8);
	memset(s->extra, 0xff, sizeof(s->extra));
	const size_t filter = s->filter * sizeof(struct sock_filter);
	if (r->text_len == sizeof(*s) + filter)
		memcpy(s, text + r->text_offset, sizeof(*s));
	else if (r->text_len != before_8 + filter)
		return false;
	return s->name_len <= sizeof(s->name) && s->peer_name_len <= sizeof(s->peer_name);
}
