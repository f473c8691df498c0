// SPDX-License-Identifier: BSD-3-Clause
/* Frames over a connection, in: into scratch memory that all connections share, but for the rest of
 * what has begun to come: that is read straight to where it goes. While big payloads come, only a
 * little more is read behind them: what lands in scratch memory is copied once more. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include "channel/net/tcp.h"
#include "wire/seal/tcp_seal.h"

enum { HEADER_ALIGN = 16 };

struct tcp_receive {
	struct tcp_receive *next;
	uint32_t peer;
	uint64_t token;
	unsigned char *to;
	size_t bytes, got;
	void *cookie;
};

static size_t min_size(size_t a, size_t b)
{
	return a < b ? a : b;
}

void tcp_in_end(struct tcp_conn *c)
{
	bool ahead = c->in == TCP_IN_AHEAD || (c->in == TCP_IN_MEMORY && c->ahead);
	heap_free(c->body);
	heap_free(c->rest);
	c->body = c->rest = NULL;
	c->in = TCP_IN_HEAD;
	c->have = c->left = 0;
	c->receive = NULL;
	c->to = NULL;
	c->ahead = false;
	if (ahead)
		tcp.calls.ahead_came(c->peer, false);
}

/* Not what was sent. Told at the first time, and whenever there are twice as many. */
static void damaged(struct tcp_conn *c, const char *why)
{
	uint32_t count = ++tcp.damaged;
	if ((count & (count - 1)) == 0)
		log_warn("rank %u has closed its connection to rank %u: %s. A new one is made, and "
			 "what was lost is sent again (%u such connection%s so far)",
			 tcp.self.rank, c->peer, why, count, count == 1 ? "" : "s");
	tcp_conn_fail(c, why);
}

/* ---- receives ---- */

static struct tcp_receive *receive_find(uint32_t peer, uint64_t token)
{
	struct tcp_receive *r = tcp.receives;
	while (r && (r->token != token || r->peer != peer))
		r = r->next;
	return r;
}

bool tcp_receive_begin(uint32_t peer, uint64_t token, void *to, size_t bytes, void *cookie)
{
	struct tcp_receive *r = heap_alloc(sizeof(*r));
	if (!r)
		return false;
	*r = (struct tcp_receive){.next = tcp.receives,
				  .peer = peer,
				  .token = token,
				  .to = to,
				  .bytes = bytes,
				  .cookie = cookie};
	tcp.receives = r;
	return true;
}

static void receive_over(struct tcp_receive *r, bool ok)
{
	struct tcp_receive **at = &tcp.receives;
	struct tcp_conn *c = tcp.conn[r->peer];
	void *cookie = r->cookie;
	while (*at && *at != r)
		at = &(*at)->next;
	if (*at)
		*at = r->next;
	if (c && c->receive == r) {
		c->receive = NULL;
		c->to = NULL;
	}
	heap_free(r);
	tcp.moved++;
	tcp.calls.received(cookie, ok);
}

void tcp_receive_end(void *cookie)
{
	struct tcp_receive *r = tcp.receives;
	while (r && r->cookie != cookie)
		r = r->next;
	if (r)
		receive_over(r, false);
}

void tcp_receives_end(void)
{
	while (tcp.receives)
		receive_over(tcp.receives, false);
}

static bool frame_is_sound(const struct tcp_frame *f)
{
	if (f->flags & ~TCP_BURST)
		return false;
	if (f->kind == TCP_BULK)
		return f->bytes > 0 && f->bytes <= TCP_BULK_FRAME && !f->header_bytes && !f->ahead;
	return f->kind == TCP_DATAGRAM && f->header_bytes > 0 &&
	       f->header_bytes <= WIRE_HEADER_MAX && f->bytes <= TCP_DATAGRAM_MAX &&
	       f->ahead <= TCP_AHEAD_MAX;
}

static void frame_came(struct tcp_conn *c)
{
	const struct tcp_frame *f = &c->frame;
	if (UNLIKELY(!frame_is_sound(f))) {
		damaged(c, "what came over it makes no sense");
		return;
	}
	c->have = 0;
	if (f->kind == TCP_DATAGRAM) {
		c->in = TCP_IN_BODY;
		return;
	}
	struct tcp_receive *r = receive_find(c->peer, f->token);
	if (r && f->bytes > r->bytes - r->got) {
		damaged(c, "more has come over it than was asked for");
		return;
	}
	c->in = TCP_IN_MEMORY;
	c->ahead = false;
	c->receive = r;
	c->to = r ? r->to + r->got : NULL;
	c->left = f->bytes;
	c->behind = TCP_SCRATCH_MIN;
}

static void ahead_begin(struct tcp_conn *c)
{
	c->to = tcp.calls.ahead_where(c->peer);
	c->in = c->to == WIRE_WAIT ? TCP_IN_AHEAD : TCP_IN_MEMORY;
	c->ahead = true;
	c->receive = NULL;
	c->left = c->frame.ahead;
	c->behind = TCP_SCRATCH_MIN;
}

static void datagram_came(struct tcp_conn *c, const unsigned char *body)
{
	const struct tcp_frame *f = &c->frame;
	struct wire_ahead ahead = {f->token, f->ahead};
	_Alignas(HEADER_ALIGN) unsigned char header[WIRE_HEADER_MAX];
	memcpy(header, body, f->header_bytes);
	c->in = TCP_IN_HEAD;
	c->behind = min_size(2 * c->behind, TCP_SCRATCH);
	c->prompt = f->flags & TCP_BURST;
	tcp.moved++;
	tcp.calls.came(c->peer, header, f->header_bytes, body + f->header_bytes, f->bytes,
		       f->ahead ? &ahead : NULL);
	if (f->ahead && !c->failed)
		ahead_begin(c);
}

static void memory_came(struct tcp_conn *c)
{
	c->in = TCP_IN_HEAD;
	if (c->ahead) {
		c->ahead = false;
		tcp.moved++;
		tcp.calls.ahead_came(c->peer, true);
		return;
	}
	struct tcp_receive *r = c->receive;
	if (!r)
		return;
	r->got += c->frame.bytes;
	if (r->got == r->bytes)
		receive_over(r, true);
	c->receive = NULL;
}

static void memory_advance(struct tcp_conn *c, size_t n)
{
	if (c->to)
		c->to += n;
	c->left -= n;
	if (!c->left)
		memory_came(c);
}

static size_t body_bytes(const struct tcp_conn *c)
{
	return (size_t)c->frame.header_bytes + c->frame.bytes;
}

static void body_advance(struct tcp_conn *c, size_t n)
{
	c->have += n;
	if (c->have < body_bytes(c))
		return;
	unsigned char *body = c->body;
	c->body = NULL;
	c->have = 0;
	datagram_came(c, body);
	heap_free(body);
}

static size_t body_parse(struct tcp_conn *c, const unsigned char *p, size_t n)
{
	size_t whole = body_bytes(c);
	if (LIKELY(!c->body && n >= whole)) {
		datagram_came(c, p);
		return whole;
	}
	if (!c->body && !(c->body = heap_alloc(whole))) {
		tcp_conn_fail(c, "out of memory");
		return n;
	}
	n = min_size(n, whole - c->have);
	memcpy(c->body + c->have, p, n);
	body_advance(c, n);
	return n;
}

/* One step. Returns how much of it is used up. */
static size_t parse_step(struct tcp_conn *c, const unsigned char *p, size_t n)
{
	switch (c->in) {
	case TCP_IN_HEAD:
		n = min_size(n, sizeof(c->frame) - c->have);
		memcpy((char *)&c->frame + c->have, p, n);
		c->have += n;
		if (c->have == sizeof(c->frame))
			frame_came(c);
		return n;
	case TCP_IN_BODY:
		return body_parse(c, p, n);
	default: /* TCP_IN_MEMORY */
		n = min_size(n, c->left);
		if (c->to)
			memcpy(c->to, p, n);
		memory_advance(c, n);
		return n;
	}
}

/* Bytes that have been read; those that must wait are kept. */
static void parse(struct tcp_conn *c, const unsigned char *p, size_t n)
{
	while (n && c->in != TCP_IN_AHEAD && !c->failed) {
		size_t used = parse_step(c, p, n);
		p += used;
		n -= used;
	}
	if (!n || c->failed)
		return;
	c->rest = heap_alloc(n);
	if (!c->rest) {
		tcp_conn_fail(c, "out of memory");
		return;
	}
	memcpy(c->rest, p, n);
	c->rest_bytes = n;
}

/* False: it still waits. */
static bool ahead_again(struct tcp_conn *c)
{
	unsigned char *rest = c->rest;
	ahead_begin(c);
	if (c->in == TCP_IN_AHEAD)
		return false;
	c->rest = NULL;
	if (rest)
		parse(c, rest, c->rest_bytes);
	heap_free(rest);
	return c->in != TCP_IN_AHEAD && !c->failed;
}

static void read_ended(struct tcp_conn *c, ssize_t n)
{
	if (n < 0 && (errno == EAGAIN || errno == EINTR) && !c->error)
		return;
	if (n == 0 && !c->error)
		tcp_conn_fail(c, "the peer has closed it");
	else
		tcp_conn_fail_errno(c, c->error ? c->error : errno);
}

/* Those records that are there as a whole, straight to where their bytes go when all go there. */
static void records_open(struct tcp_conn *c)
{
	while (c->in != TCP_IN_AHEAD && !c->failed) {
		long bytes = seal_next(c->seal);
		if (bytes == 0)
			return;
		bool straight =
		    bytes > 0 && c->in == TCP_IN_MEMORY && c->to && c->left >= (size_t)bytes;
		unsigned char *to = straight ? c->to : tcp.scratch;
		if (bytes < 0 || !seal_open(c->seal, to))
			damaged(c, "what came over it is not what the other side sent; somebody "
				   "or something on the way changes it");
		else if (straight)
			memory_advance(c, (size_t)bytes);
		else
			parse(c, to, (size_t)bytes);
	}
}

static void sealed_read(struct tcp_conn *c)
{
	unsigned char *at;
	if (seal_next(c->seal) == 0) {
		size_t room = seal_room(c->seal, &at);
		ssize_t n = recv(c->socket.fd, at, room, MSG_DONTWAIT);
		c->more = false;
		if (n <= 0) {
			read_ended(c, n);
			return;
		}
		tcp.moved++;
		seal_came(c->seal, (size_t)n);
		c->more = (size_t)n == room || c->ending;
	}
	records_open(c);
	c->more |= c->in == TCP_IN_AHEAD;
}

/* At once, but not from now on: an even number. */
static void acknowledge(struct tcp_conn *c)
{
	int now = 2;
	c->prompt = false;
	if (!c->failed)
		setsockopt(c->socket.fd, IPPROTO_TCP, TCP_QUICKACK, &now, sizeof(now));
}

void tcp_conn_read(struct tcp_conn *c)
{
	struct iovec iov[2];
	struct msghdr m = {.msg_iov = iov};
	size_t direct = 0, wanted;
	if (c->in == TCP_IN_AHEAD && !ahead_again(c))
		return;
	if (c->failed) {
		c->more = false;
		return;
	}
	if (UNLIKELY(c->seal != NULL)) {
		sealed_read(c);
		if (c->prompt)
			acknowledge(c);
		return;
	}
	wanted = c->behind;
	c->more = false;
	if (c->in == TCP_IN_MEMORY && c->to)
		iov[m.msg_iovlen++] = (struct iovec){c->to, direct = c->left};
	else if (c->body)
		iov[m.msg_iovlen++] =
		    (struct iovec){c->body + c->have, direct = body_bytes(c) - c->have};
	iov[m.msg_iovlen++] = (struct iovec){tcp.scratch, c->behind};
	ssize_t n = m.msg_iovlen == 1 ? recv(c->socket.fd, tcp.scratch, c->behind, MSG_DONTWAIT)
				      : recvmsg(c->socket.fd, &m, MSG_DONTWAIT);
	if (n <= 0) {
		read_ended(c, n);
		return;
	}
	tcp.moved++;
	size_t straight = min_size((size_t)n, direct);
	if (straight && c->in == TCP_IN_MEMORY)
		memory_advance(c, straight);
	else if (straight)
		body_advance(c, straight);
	/* what comes from now on, epoll says */
	c->more = (size_t)n == direct + wanted || c->ending;
	parse(c, tcp.scratch, (size_t)n - straight);
	c->more |= c->in == TCP_IN_AHEAD;
	if (c->prompt)
		acknowledge(c);
}
