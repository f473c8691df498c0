// SPDX-License-Identifier: BSD-3-Clause
/* Sockets as the kernel's socket monitor tells of them: AF_UNIX, UDP and TCP. */
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <linux/unix_diag.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>

#include "image/fd/fd.h"

struct ask {
	struct nlmsghdr head;
	struct unix_diag_req req;
};

static bool take_reply(const char *reply, size_t len, uint32_t inode, struct fd_unix *u)
{
	const struct nlmsghdr *h = (const struct nlmsghdr *)reply;
	const struct unix_diag_msg *m = (const struct unix_diag_msg *)(h + 1);
	if (len < sizeof(*h) + sizeof(*m) || h->nlmsg_type != SOCK_DIAG_BY_FAMILY ||
	    h->nlmsg_len > len || m->udiag_ino != inode)
		return false;
	const char *end = reply + h->nlmsg_len;
	for (const char *at = (const char *)(m + 1); at + sizeof(struct nlattr) <= end;) {
		const struct nlattr *a = (const struct nlattr *)at;
		if (a->nla_len < sizeof(*a) || a->nla_len > end - at)
			return false;
		size_t n = a->nla_len - sizeof(*a);
		if (a->nla_type == UNIX_DIAG_NAME && n <= sizeof(u->name)) {
			memcpy(u->name, a + 1, n);
			u->name_len = n;
		}
		if (a->nla_type == UNIX_DIAG_PEER && n >= sizeof(u->peer))
			memcpy(&u->peer, a + 1, sizeof(u->peer));
		if (a->nla_type == UNIX_DIAG_SHUTDOWN && n >= 1)
			u->shut = *(const unsigned char *)(a + 1);
		if (a->nla_type == UNIX_DIAG_RQLEN && n >= sizeof(struct unix_diag_rqlen)) {
			struct unix_diag_rqlen queue;
			memcpy(&queue, a + 1, sizeof(queue));
			u->waiting = queue.udiag_rqueue;
			u->backlog = queue.udiag_wqueue;
		}
		at += ALIGN_UP((size_t)a->nla_len, 4);
	}
	u->type = m->udiag_type;
	u->state = m->udiag_state;
	return true;
}

/* One question about one socket; the answer's length, 0 or less: there is none. */
static long monitor_ask(const void *ask, size_t bytes, char *reply, size_t room)
{
	long fd = sys(SYS_socket, AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	if (fd < 0)
		return fd;
	long n = sys(SYS_sendto, fd, ask, bytes, 0, NULL, 0);
	if (n == (long)bytes)
		n = sys(SYS_recvfrom, fd, reply, room, MSG_DONTWAIT, NULL, NULL);
	sys(SYS_close, fd);
	return n;
}

bool fd_unix_ask(uint64_t inode, struct fd_unix *u)
{
	struct ask ask = {
	    .head = {.nlmsg_len = sizeof(ask),
		     .nlmsg_type = SOCK_DIAG_BY_FAMILY,
		     .nlmsg_flags = NLM_F_REQUEST},
	    .req = {.sdiag_family = AF_UNIX,
		    .udiag_states = ~0u,
		    .udiag_ino = (uint32_t)inode,
		    .udiag_show = UDIAG_SHOW_PEER | UDIAG_SHOW_NAME | UDIAG_SHOW_RQLEN,
		    .udiag_cookie = {~0u, ~0u}}};
	char reply[1024] __attribute__((aligned(8))) = {0};
	*u = (struct fd_unix){0};
	long n = monitor_ask(&ask, sizeof(ask), reply, sizeof(reply));
	return n > 0 && take_reply(reply, (size_t)n, (uint32_t)inode, u);
}

struct ask_inet {
	struct nlmsghdr head;
	struct inet_diag_req_v2 req;
};

enum seen { NOT_SEEN, SEEN, LAST };

static bool take_shut(const struct nlmsghdr *h, uint64_t inode, uint32_t *shut)
{
	const struct inet_diag_msg *m = (const struct inet_diag_msg *)(h + 1);
	const char *at = (const char *)(m + 1), *end = (const char *)h + h->nlmsg_len;
	if (h->nlmsg_len < sizeof(*h) + sizeof(*m) || m->idiag_inode != (uint32_t)inode)
		return false;
	while (at + sizeof(struct nlattr) < end) {
		const struct nlattr *a = (const struct nlattr *)at;
		if (a->nla_len < sizeof(*a) || a->nla_len > end - at)
			return false;
		if (a->nla_type == INET_DIAG_SHUTDOWN && a->nla_len > sizeof(*a)) {
			*shut = *(const unsigned char *)(a + 1);
			return true;
		}
		at += ALIGN_UP((size_t)a->nla_len, 4);
	}
	return false;
}

/* Of one reply, which has several sockets. */
static enum seen find_shut(const char *reply, size_t len, uint64_t inode, uint32_t *shut)
{
	while (len >= sizeof(struct nlmsghdr)) {
		const struct nlmsghdr *h = (const struct nlmsghdr *)reply;
		if (h->nlmsg_type != SOCK_DIAG_BY_FAMILY || h->nlmsg_len < sizeof(*h) ||
		    h->nlmsg_len > len)
			return LAST;
		if (take_shut(h, inode, shut))
			return SEEN;
		size_t step = ALIGN_UP((size_t)h->nlmsg_len, 4);
		if (step >= len)
			break;
		reply += step;
		len -= step;
	}
	return NOT_SEEN;
}

bool fd_udp_shut(uint64_t inode, uint32_t family, uint32_t protocol, uint32_t *shut)
{
	enum { ROOM = 32 << 10 };
	static char reply[ROOM] __attribute__((aligned(8)));
	struct ask_inet ask = {
	    .head = {.nlmsg_len = sizeof(ask),
		     .nlmsg_type = SOCK_DIAG_BY_FAMILY,
		     .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
	    .req = {.sdiag_family = (unsigned char)family,
		    .sdiag_protocol = (unsigned char)(protocol ? protocol : IPPROTO_UDP),
		    .idiag_states = ~0u}};
	long fd = sys(SYS_socket, AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	enum seen seen = NOT_SEEN;
	if (fd < 0)
		return false;
	long n = sys(SYS_sendto, fd, &ask, sizeof(ask), 0, NULL, 0);
	while (n > 0 && seen == NOT_SEEN)
		if ((n = sys(SYS_recvfrom, fd, reply, sizeof(reply), MSG_DONTWAIT, NULL, NULL)) > 0)
			seen = find_shut(reply, (size_t)n, inode, shut);
	sys(SYS_close, fd);
	return seen == SEEN;
}

/* ---- TCP ---- */

static bool take_tcp(const char *reply, size_t len, struct tcp_info *info)
{
	const struct nlmsghdr *h = (const struct nlmsghdr *)reply;
	if (len < sizeof(*h) || h->nlmsg_type != SOCK_DIAG_BY_FAMILY || h->nlmsg_len > len)
		return false;
	const char *end = reply + h->nlmsg_len;
	const char *at = (const char *)(h + 1) + sizeof(struct inet_diag_msg);
	while (at + sizeof(struct nlattr) <= end) {
		const struct nlattr *a = (const struct nlattr *)at;
		if (a->nla_len < sizeof(*a) || a->nla_len > end - at)
			return false;
		size_t n = a->nla_len - sizeof(*a);
		if (a->nla_type == INET_DIAG_INFO) {
			memcpy(info, a + 1, n < sizeof(*info) ? n : sizeof(*info));
			return n >= offsetof(struct tcp_info, tcpi_dsack_dups);
		}
		at += ALIGN_UP((size_t)a->nla_len, 4);
	}
	return false;
}

bool fd_tcp_sent(const struct fd_tcp *s, uint64_t *bytes)
{
	struct ask_inet ask = {
	    .head = {.nlmsg_len = sizeof(ask),
		     .nlmsg_type = SOCK_DIAG_BY_FAMILY,
		     .nlmsg_flags = NLM_F_REQUEST},
	    .req = {.sdiag_family = s->is_ipv6 ? AF_INET6 : AF_INET,
		    .sdiag_protocol = IPPROTO_TCP,
		    .idiag_ext = 1 << (INET_DIAG_INFO - 1),
		    .idiag_states = ~0u,
		    .id = {.idiag_sport = __builtin_bswap16(s->local_port),
			   .idiag_dport = __builtin_bswap16(s->remote_port),
			   .idiag_cookie = {~0u, ~0u}}}};
	char reply[2048] __attribute__((aligned(8))) = {0};
	struct tcp_info info = {0};
	for (int i = 0; i < (s->is_ipv6 ? 4 : 1); i++) {
		ask.req.id.idiag_src[i] = s->local[s->is_ipv6 ? i : 3];
		ask.req.id.idiag_dst[i] = s->remote[s->is_ipv6 ? i : 3];
	}
	long n = monitor_ask(&ask, sizeof(ask), reply, sizeof(reply));
	if (n <= 0 || !take_tcp(reply, (size_t)n, &info))
		return false;
	*bytes = info.tcpi_bytes_sent - info.tcpi_bytes_retrans + info.tcpi_notsent_bytes;
	return true;
}
