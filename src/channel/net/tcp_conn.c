// SPDX-License-Identifier: BSD-3-Clause
/* Frames over a connection.
 *
 *   datagram  | frame | header | payload | ahead … |
 *   bulk      | frame | next bytes for the receive with that token |
 *
 * Out: what the socket doesn't take at once waits; datagrams pass bulk between two of its frames.
 * In: into scratch memory that all connections share, but for the rest of what has begun to come:
 * that is read straight to where it goes. While big payloads come, only a little more is read
 * behind them: what lands in scratch memory is copied once more. */
#include "channel/net/tcp.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { IOV_MAX_HERE = 64, HEADER_ALIGN = 16 };

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

/* ---- its end ---- */

static void fail(struct tcp_conn *c, const char *why)
{
	if (c->failed)
		return;
	c->failed = true;
	tcp_socket_close(&c->socket);
	tcp.moved++;
	tcp.calls.broke(c->peer, why);
}

static void fail_errno(struct tcp_conn *c, int code)
{
	char why[WIRE_WHY];
	struct error err;
	errno = code;
	error_sys(&err, HALE_ERR_LINK, "TCP");
	strncpy(why, err.text, sizeof(why) - 1);
	why[sizeof(why) - 1] = '\0';
	fail(c, why);
}

static void outs_end(struct tcp_out *o)
{
	while (o) {
		struct tcp_out *next = o->next;
		void *cookie = o->cookie;
		heap_free(o);
		tcp.calls.sent(cookie);
		o = next;
	}
}

/* Everything that was going out, as one list. */
static struct tcp_out *outs_take(struct tcp_conn *c)
{
	struct tcp_out *all = NULL, **at = &all;
	struct tcp_out *part[] = {c->now, c->datagrams.first, c->bulk.first};
	for (unsigned i = 0; i < ARRAY_LEN(part); i++) {
		*at = part[i];
		if (i == 0 && *at)
			(*at)->next = NULL;
		while (*at)
			at = &(*at)->next;
	}
	c->now = NULL;
	c->datagrams = c->bulk = (struct tcp_out_list){NULL, NULL};
	return all;
}

static void live_remove(struct tcp_conn *c)
{
	for (uint32_t i = 0; i < tcp.nlive; i++)
		if (tcp.live[i] == c) {
			tcp.live[i] = tcp.live[--tcp.nlive];
			return;
		}
}

static void in_end(struct tcp_conn *c)
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

void tcp_conn_drop(struct tcp_conn *c)
{
	tcp_socket_close(&c->socket);
	live_remove(c);
	in_end(c);
	outs_end(outs_take(c));
	c->failed = false;
	c->error = 0;
}

static struct tcp_conn *conn_of(uint32_t peer)
{
	struct tcp_conn *c = tcp.conn[peer];
	if (!c && (c = heap_alloc(sizeof(*c))))
		*c = (struct tcp_conn){.socket = {.kind = TCP_CONN, .fd = -1}, .peer = peer};
	return tcp.conn[peer] = c;
}

void tcp_conn_install(uint32_t peer, int fd, const unsigned char *incarnation)
{
	struct tcp_conn *c = conn_of(peer);
	if (!c) {
		close(fd);
		tcp.calls.broke(peer, "out of memory");
		return;
	}
	struct tcp_out *before = outs_take(c);
	tcp_socket_close(&c->socket);
	live_remove(c);
	in_end(c);
	*c = (struct tcp_conn){
	    .socket = {.kind = TCP_CONN, .fd = fd}, .peer = peer, .behind = TCP_SCRATCH};
	memcpy(c->incarnation, incarnation, sizeof(c->incarnation));
	tcp.live[tcp.nlive++] = c;
	tcp.attempts[peer] = 0;
	c->more = true;
	tcp_conn_watch(c);
	tcp.moved++;
	tcp.calls.up(peer);
	outs_end(before);
}

/* ---- out ---- */

static void list_put_first(struct tcp_out_list *l, struct tcp_out *o)
{
	o->next = l->first;
	l->first = o;
	if (!l->last)
		l->last = o;
}

static void list_put(struct tcp_out_list *l, struct tcp_out *o)
{
	o->next = NULL;
	if (l->last)
		l->last->next = o;
	else
		l->first = o;
	l->last = o;
}

static struct tcp_out *list_take(struct tcp_out_list *l)
{
	struct tcp_out *o = l->first;
	if (o && !(l->first = o->next))
		l->last = NULL;
	return o;
}

/* The next bytes of bulk become a frame. */
static void frame_begin(struct tcp_out *o)
{
	size_t n = min_size(o->left, TCP_BULK_FRAME);
	o->frame.bytes = (uint32_t)n;
	o->frame_left = n;
	o->head_left = sizeof(o->frame);
	o->left -= n;
}

/* What is left of its frame. Returns how many pieces. */
static unsigned gather(struct tcp_out *o, struct iovec *iov, unsigned max)
{
	unsigned n = 0;
	size_t left = o->frame_left;
	if (o->head_left)
		iov[n++] = (struct iovec){(char *)(&o->frame + 1) - o->head_left, o->head_left};
	for (unsigned i = o->first; i < o->n && left && n < max; i++) {
		iov[n] = (struct iovec){o->iov[i].iov_base, min_size(o->iov[i].iov_len, left)};
		left -= iov[n++].iov_len;
	}
	return n;
}

/* n bytes of it have left, at most what is left of its frame. Returns how many those were. */
static size_t consume(struct tcp_out *o, size_t n)
{
	size_t head = min_size(o->head_left, n);
	size_t rest = min_size(o->frame_left, n - head), used = head + rest;
	o->head_left = (uint8_t)(o->head_left - head);
	o->frame_left -= rest;
	while (rest) {
		struct iovec *v = &o->iov[o->first];
		size_t k = min_size(v->iov_len, rest);
		v->iov_base = (char *)v->iov_base + k;
		v->iov_len -= k;
		rest -= k;
		if (!v->iov_len)
			o->first++;
	}
	return used;
}

static struct tcp_out *now(struct tcp_conn *c)
{
	if (c->now)
		return c->now;
	c->now = list_take(&c->datagrams);
	if (!c->now && (c->now = list_take(&c->bulk)))
		frame_begin(c->now);
	return c->now;
}

/* The frame begun, and behind it the datagrams that wait. */
static unsigned gather_all(struct tcp_conn *c, struct iovec *iov)
{
	unsigned n = gather(now(c), iov, IOV_MAX_HERE);
	size_t gathered = 0;
	for (unsigned i = 0; i < n; i++)
		gathered += iov[i].iov_len;
	/* all of it, or what stands behind it would overtake */
	if (gathered < c->now->head_left + c->now->frame_left)
		return n;
	for (struct tcp_out *o = c->datagrams.first; o && n + 4 <= IOV_MAX_HERE; o = o->next)
		n += gather(o, iov + n, IOV_MAX_HERE - n);
	return n;
}

static void consume_all(struct tcp_conn *c, size_t n)
{
	while (n) {
		struct tcp_out *o = now(c);
		n -= consume(o, n);
		if (o->head_left || o->frame_left)
			return;
		c->now = NULL;
		if (o->left) {
			list_put_first(&c->bulk, o);
			continue;
		}
		void *cookie = o->cookie;
		heap_free(o);
		tcp.moved++;
		tcp.calls.sent(cookie);
	}
}

/* Returns how many bytes have left. */
static size_t write_out(struct tcp_conn *c, struct iovec *iov, unsigned n)
{
	const int flags = MSG_NOSIGNAL | MSG_DONTWAIT;
	struct msghdr m = {.msg_iov = iov, .msg_iovlen = n};
	if (UNLIKELY(c->failed || c->error))
		return 0;
	ssize_t sent = n == 1 ? send(c->socket.fd, iov->iov_base, iov->iov_len, flags)
			      : sendmsg(c->socket.fd, &m, flags);
	if (LIKELY(sent >= 0))
		return (size_t)sent;
	c->full = errno == EAGAIN;
	if (errno != EAGAIN && errno != EINTR && errno != ENOBUFS && errno != ENOMEM)
		c->error = errno;
	return 0;
}

void tcp_conn_write(struct tcp_conn *c)
{
	struct iovec iov[IOV_MAX_HERE];
	while (!c->full && tcp_conn_has_out(c)) {
		unsigned n = gather_all(c, iov);
		size_t sent = write_out(c, iov, n);
		if (!sent)
			return;
		consume_all(c, sent);
	}
}

static struct tcp_out *out_make(void *cookie, unsigned room)
{
	struct tcp_out *o = heap_alloc(sizeof(*o) + room * sizeof(o->iov[0]));
	if (o)
		*o = (struct tcp_out){.cookie = cookie};
	return o;
}

/* What of it hasn't left at once. */
static enum wire_sent datagram_queue(struct tcp_conn *c, const struct iovec *iov, unsigned n,
				     size_t total, size_t sent, void *cookie)
{
	struct tcp_out *o = out_make(cookie, n);
	if (!o && sent) /* what has left can't be taken back */
		fail(c, "out of memory");
	if (!o)
		return WIRE_FAILED;
	o->frame_left = total;
	o->n = n;
	memcpy(o->iov, iov, n * sizeof(*iov));
	if (!sent) {
		list_put(&c->datagrams, o);
	} else {
		consume(o, sent);
		c->now = o;
	}
	return WIRE_PENDING;
}

enum wire_sent tcp_conn_datagram(struct tcp_conn *c, const void *header, size_t header_bytes,
				 const void *payload, size_t bytes, const struct iovec *ahead,
				 void *cookie)
{
	/* in the room before header, so that all of it is one run of bytes, as a rule */
	struct tcp_frame *f = (struct tcp_frame *)((uintptr_t)header - sizeof(*f));
	*f = (struct tcp_frame){.kind = TCP_DATAGRAM,
				.header_bytes = (uint8_t)header_bytes,
				.bytes = (uint32_t)bytes,
				.token = ahead ? (uintptr_t)ahead->iov_base : 0,
				.ahead = ahead ? ahead->iov_len : 0};
	struct iovec iov[3] = {{f, sizeof(*f) + header_bytes}};
	unsigned n = 1;
	size_t total = sizeof(*f) + header_bytes + bytes + f->ahead, sent = 0;
	if (payload == (const char *)header + header_bytes)
		iov[0].iov_len += bytes;
	else
		iov[n++] = (struct iovec){(void *)(uintptr_t)payload, bytes};
	if (ahead)
		iov[n++] = *ahead;
	if (LIKELY(!tcp_conn_has_out(c) && !tcp.corked && !c->full))
		sent = write_out(c, iov, n);
	if (LIKELY(sent == total))
		return WIRE_SENT;
	return datagram_queue(c, iov, n, total, sent, cookie);
}

enum wire_sent tcp_conn_give(struct tcp_conn *c, uint64_t token, const struct iovec *iov, size_t n,
			     void *cookie)
{
	struct tcp_out *o = out_make(cookie, (unsigned)n);
	if (!o)
		return WIRE_FAILED;
	o->frame = (struct tcp_frame){.kind = TCP_BULK, .token = token};
	for (size_t i = 0; i < n; i++) {
		o->iov[o->n++] = iov[i];
		o->left += iov[i].iov_len;
	}
	list_put(&c->bulk, o);
	return WIRE_PENDING;
}

/* ---- in ---- */

static struct tcp_receive **receive_find(uint32_t peer, uint64_t token)
{
	struct tcp_receive **at = &tcp.receives;
	while (*at && ((*at)->token != token || (*at)->peer != peer))
		at = &(*at)->next;
	return at;
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

static void receive_over(struct tcp_receive **at, bool ok)
{
	struct tcp_receive *r = *at;
	struct tcp_conn *c = tcp.conn[r->peer];
	void *cookie = r->cookie;
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
	for (struct tcp_receive **at = &tcp.receives; *at; at = &(*at)->next)
		if ((*at)->cookie == cookie) {
			receive_over(at, false);
			return;
		}
}

void tcp_receives_end(void)
{
	while (tcp.receives)
		receive_over(&tcp.receives, false);
}

static bool frame_is_sound(const struct tcp_frame *f)
{
	if (f->zero)
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
		fail(c, "what came over it makes no sense");
		return;
	}
	c->have = 0;
	if (f->kind == TCP_DATAGRAM) {
		c->in = TCP_IN_BODY;
		return;
	}
	struct tcp_receive *r = *receive_find(c->peer, f->token);
	if (r && f->bytes > r->bytes - r->got) {
		fail(c, "more has come over it than was asked for");
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
		receive_over(receive_find(c->peer, r->token), true);
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
		fail(c, "out of memory");
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
		fail(c, "out of memory");
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
		fail(c, "the peer has closed it");
	else
		fail_errno(c, c->error ? c->error : errno);
}

void tcp_conn_read(struct tcp_conn *c)
{
	struct iovec iov[2];
	struct msghdr m = {.msg_iov = iov};
	size_t direct = 0, wanted;
	if (c->in == TCP_IN_AHEAD && !ahead_again(c))
		return;
	wanted = c->behind;
	c->more = false;
	if (c->failed)
		return;
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
}
