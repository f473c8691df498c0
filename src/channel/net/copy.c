// SPDX-License-Identifier: BSD-3-Clause
/* Big payloads straight into the receiver's memory. The receiver asks for pieces of the sender's
 * memory (NET_GET), having said to its wire where they go; the sender's wire gives them, whatever
 * the sender is doing in the library. The sender's memory stays as it is until the receiver says
 * that it has all (match/rendezvous.c, FIN), so asking again is always right: whatever a lost
 * connection, or one that was closed for an image, has swallowed is asked for again. */
#include <string.h>
#include "channel/net/internal.h"

/* Into memory that the caller may not keep for us it goes by way of ours. */
enum { LANDING_MAX = 64 << 10, PIECES_MAX = 64 };

struct get {
	struct get *next;
	uint32_t from;
	uint64_t token;
	const void *remote, *local;
	size_t length;
	bool here, failed;
	unsigned char landing[];
};

struct give {
	struct give *next;
	uint32_t to;
	uint64_t token;
	bool begun;
	size_t n;
	struct iovec piece[];
};

static struct get *gets;
static struct give *gives;
static uint64_t last_token;

static size_t length_of(const struct iovec *iov, size_t n)
{
	size_t length = 0;
	for (size_t i = 0; i < n; i++)
		length += iov[i].iov_len;
	return length;
}

static struct get **get_find(uint32_t rank, const void *remote, const void *local, size_t length)
{
	struct get **at = &gets;
	while (*at && ((*at)->from != rank || (*at)->remote != remote || (*at)->length != length ||
		       (length > LANDING_MAX && (*at)->local != local)))
		at = &(*at)->next;
	return at;
}

static bool get_begin(uint32_t rank, const struct iovec *local, const struct iovec *remote,
		      size_t nremote, size_t length)
{
	bool direct = length > LANDING_MAX;
	struct get *g = heap_alloc(sizeof(*g) + (direct ? 0 : length));
	if (!g)
		return false;
	*g = (struct get){.from = rank,
			  .token = ++last_token,
			  .remote = remote[0].iov_base,
			  .local = local->iov_base,
			  .length = length};
	void *to = direct ? local->iov_base : g->landing;
	if (!net.wire->receive(g->token, to, length, g)) {
		heap_free(g);
		return false;
	}
	g->next = gets;
	gets = g;
	stream_say(rank, NET_GET, g->token, remote, nremote * sizeof(*remote));
	return true;
}

ssize_t copy_get(uint32_t rank, const struct iovec *local, size_t nlocal,
		 const struct iovec *remote, size_t nremote)
{
	size_t length = length_of(remote, nremote);
	if (nlocal != 1 || nremote > PIECES_MAX || local->iov_len < length)
		return -1;
	if (!net.open || !net.peer[rank].up) {
		if (net.open)
			peer_want(rank);
		return 0;
	}
	struct get **at = get_find(rank, remote[0].iov_base, local->iov_base, length);
	struct get *g = *at;
	if (!g)
		return get_begin(rank, local, remote, nremote, length) ? 0 : -1;
	if (!g->here && !g->failed)
		return 0;
	*at = g->next;
	bool here = g->here;
	if (here && length <= LANDING_MAX)
		memcpy(local->iov_base, g->landing, length);
	heap_free(g);
	return here ? (ssize_t)length : 0;
}

void copy_received(void *cookie, bool ok)
{
	struct get *g = cookie;
	g->here = ok;
	g->failed = !ok;
	net.arrived++;
}

/* ---- the other side ---- */

static void give_drop(struct give *g)
{
	struct give **at = &gives;
	while (*at != g)
		at = &(*at)->next;
	*at = g->next;
	heap_free(g);
}

static void give_begin(struct give *g)
{
	g->begun = true;
	enum wire_sent sent = net.wire->give(g->to, g->token, g->piece, g->n, g);
	if (sent == WIRE_PENDING)
		return;
	if (sent == WIRE_FAILED)
		peer_broke(g->to, "sending fails");
	give_drop(g);
}

void copy_asked(uint32_t from, uint64_t token, const void *pieces, size_t bytes)
{
	size_t n = bytes / sizeof(struct iovec);
	struct give *g;
	if (!n || n > PIECES_MAX || bytes % sizeof(struct iovec) ||
	    !(g = heap_alloc(sizeof(*g) + bytes)))
		return; /* without memory for it: as if it had been lost */
	*g = (struct give){.next = gives, .to = from, .token = token, .n = n};
	memcpy(g->piece, pieces, bytes);
	gives = g;
	if (net.peer[from].up)
		give_begin(g);
	else
		peer_want(from);
}

bool copy_given(void *cookie)
{
	for (struct give *g = gives; g; g = g->next)
		if (g == cookie) {
			give_drop(g);
			return true;
		}
	return false;
}

void copy_connected(uint32_t rank)
{
	for (struct give *g = gives, *next; g; g = next) {
		next = g->next;
		if (g->to == rank && !g->begun)
			give_begin(g);
	}
}

void copy_disconnected(uint32_t rank)
{
	for (struct get *g = gets; g; g = g->next)
		if (g->from == rank && !g->here && !g->failed)
			net.wire->receive_end(g);
	/* what it asked for over that connection it will ask for again */
	for (struct give *g = gives, *next; g; g = next) {
		next = g->next;
		if (g->to == rank && !g->begun)
			give_drop(g);
	}
}

void copy_forget_all(void)
{
	while (gets) {
		struct get *g = gets;
		gets = g->next;
		heap_free(g);
	}
	while (gives) {
		struct give *g = gives;
		gives = g->next;
		heap_free(g);
	}
}
