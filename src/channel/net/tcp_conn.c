// SPDX-License-Identifier: BSD-3-Clause
/* Frames over a connection, out; its beginning and its end.
 *
 *   datagram  | frame | header | payload | ahead … |
 *   bulk      | frame | next bytes for the receive with that token |
 *
 * What the socket doesn't take at once waits; datagrams pass bulk between two of its frames. With
 * encryption the bytes of all frames leave as sealed records (tcp_seal.h). */
#include "channel/net/tcp.h"
#include "wire/seal/tcp_seal.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	IOV_MAX_HERE = 64,
	BURST_BYTES =
	    512, /* a datagram that counts for one; with larger ones it costs more than it saves */
	BURST_SAID = 4,
	BURST = 8,
	/* of bursts that are gathered in our memory, see gathers_here */
	GATHER_EACH = 8 << 10, /* a datagram's bytes */
	GATHER_ALL = 32 << 10, /* leave together */
	GATHER_FROM = 4,       /* those before leave at once */
	SOON_NS = 20000,
	TRUSTED = 4,
	TRUST_MAX = 8,
	DOUBT_MAX = 1024,
};

static size_t min_size(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* ---- its end ---- */

void tcp_conn_fail(struct tcp_conn *c, const char *why)
{
	if (c->failed)
		return;
	c->failed = true;
	tcp_socket_close(&c->socket);
	tcp.moved++;
	tcp.calls.broke(c->peer, why);
}

void tcp_conn_fail_errno(struct tcp_conn *c, int code)
{
	char why[WIRE_WHY];
	struct error err;
	if (code == ETIMEDOUT && !c->failed)
		tcp_road_silent(c->peer);
	errno = code;
	error_sys(&err, HALE_ERR_LINK, "TCP");
	strncpy(why, err.text, sizeof(why) - 1);
	why[sizeof(why) - 1] = '\0';
	tcp_conn_fail(c, why);
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

void tcp_conn_drop(struct tcp_conn *c)
{
	tcp_socket_close(&c->socket);
	live_remove(c);
	tcp_in_end(c);
	outs_end(outs_take(c));
	seal_destroy(c->seal);
	c->seal = NULL;
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

void tcp_conn_install(uint32_t peer, int fd, const unsigned char *incarnation,
		      const struct seal_keys *keys)
{
	struct tcp_conn *c = conn_of(peer);
	struct seal *seal = c && keys ? seal_create(keys) : NULL;
	if (!c || (keys && !seal)) {
		close(fd);
		tcp.calls.broke(peer, "out of memory");
		return;
	}
	struct tcp_out *before = outs_take(c);
	tcp_socket_close(&c->socket);
	live_remove(c);
	tcp_in_end(c);
	seal_destroy(c->seal);
	*c = (struct tcp_conn){.socket = {.kind = TCP_CONN, .fd = fd},
			       .peer = peer,
			       .seal = seal,
			       .behind = TCP_SCRATCH};
	memcpy(c->incarnation, incarnation, sizeof(c->incarnation));
	tcp.live[tcp.nlive++] = c;
	tcp_road_open(peer);
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

/* The channel hears of what is through when all of it is counted: it may send again at once, and
 * must not find here what has left already. */
static void consume_all(struct tcp_conn *c, size_t n)
{
	struct tcp_out_list through = {NULL, NULL};
	while (n) {
		struct tcp_out *o = now(c);
		n -= consume(o, n);
		if (o->head_left || o->frame_left)
			break;
		c->now = NULL;
		if (o->left) {
			list_put_first(&c->bulk, o);
			continue;
		}
		tcp.moved++;
		list_put(&through, o);
	}
	outs_end(through.first);
}

/* Returns how many bytes the socket has taken. */
static size_t socket_write(struct tcp_conn *c, struct iovec *iov, unsigned n)
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

/* True: nothing that is sealed is left. */
static bool sealed_send(struct tcp_conn *c)
{
	const unsigned char *at;
	for (size_t left; (left = seal_sendable(c->seal, &at));) {
		struct iovec iov = {(void *)(uintptr_t)at, left};
		size_t sent = socket_write(c, &iov, 1);
		if (!sent)
			return false;
		seal_sent(c->seal, sent);
	}
	return true;
}

/* Returns how many bytes have left: with encryption, that are in records that have, or that will
 * have before anything else. */
static size_t write_out(struct tcp_conn *c, struct iovec *iov, unsigned n)
{
	size_t total = 0, taken = 0;
	if (LIKELY(!c->seal))
		return socket_write(c, iov, n);
	for (unsigned i = 0; i < n; i++)
		total += iov[i].iov_len;
	while (sealed_send(c) && taken < total && !c->failed && !c->error) {
		size_t put = seal_put(c->seal, iov, n, taken);
		if (!put)
			tcp_conn_fail(c, "its keys have been used for long enough");
		taken += put;
	}
	return taken;
}

void tcp_conn_write(struct tcp_conn *c)
{
	if (c->seal && !sealed_send(c))
		return;
	struct iovec iov[IOV_MAX_HERE];
	while (!c->full && tcp_conn_waits(c)) {
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
		tcp_conn_fail(c, "out of memory");
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

/* A burst: many datagrams without a look at what comes. Each of its own costs a segment and all
 * that this costs on both sides. So from some point on small ones are kept back until those before
 * them have been acknowledged, by the kernel (Nagle). That needs nobody here: the peer, which is
 * told by the frames themselves, acknowledges as soon as it has read, and who doesn't read misses
 * nothing. The next round of progress here sends off what is left. */
static void burst_by_kernel(struct tcp_conn *c, struct tcp_frame *f)
{
	int off = 0;
	if (c->burst >= BURST_SAID)
		f->flags = TCP_BURST;
	if (c->burst >= BURST && !c->gathers)
		c->gathers = !setsockopt(c->socket.fd, IPPROTO_TCP, TCP_NODELAY, &off, sizeof(off));
}

/* The kernel's way saves little for datagrams that nearly fill a segment, and ours is better for
 * all: they leave together from our memory. But then somebody has to come back here. So it is done
 * only in a process that has always come back soon after its last bursts; whose program has
 * computed instead, so that the last few datagrams had to wait for it, isn't trusted for a while:
 * twice as long each time. */
static bool gathers_here(struct tcp_conn *c, size_t total)
{
	if (total > GATHER_EACH)
		return false;
	if (++c->burst < GATHER_FROM)
		return false;
	c->burst_at = clock_ns();
	return tcp.trust >= TRUSTED;
}

static void trust_judge(const struct tcp_conn *c)
{
	if (clock_ns() - c->burst_at > SOON_NS) {
		tcp.doubt = tcp.doubt < DOUBT_MAX ? 2 * tcp.doubt + 1 : DOUBT_MAX;
		tcp.trust = TRUSTED - tcp.doubt;
	} else if (tcp.trust < TRUST_MAX && ++tcp.trust == TRUST_MAX) {
		tcp.doubt /= 2;
	}
}

void tcp_conn_burst_end(struct tcp_conn *c)
{
	int on = 1;
	if (c->burst >= GATHER_FROM)
		trust_judge(c);
	c->burst = 0;
	c->gathered = 0;
	if (c->gathers && c->socket.fd >= 0)
		setsockopt(c->socket.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	c->gathers = false;
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
	if (tcp.corked || c->full)
		return datagram_queue(c, iov, n, total, 0, cookie);
	if (gathers_here(c, total) && (c->gathered += total) < GATHER_ALL)
		return datagram_queue(c, iov, n, total, 0, cookie);
	c->gathered = 0;
	if (UNLIKELY(tcp_conn_has_out(c))) {
		enum wire_sent queued = datagram_queue(c, iov, n, total, 0, cookie);
		tcp_conn_write(c);
		return queued;
	}
	if (total <= BURST_BYTES)
		burst_by_kernel(c, f);
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
