// SPDX-License-Identifier: BSD-3-Clause
/* Big payloads straight into the receiver's memory. The receiver asks for pieces of the sender's
 * memory (NET_GET), having said to its wire where they go; the sender's wire gives them, whatever
 * the sender is doing in the library. The sender's memory stays as it is until the receiver says
 * that it has all (match/rendezvous.c, FIN), so asking again is always right: whatever a lost
 * connection, or one that was closed for an image, has swallowed is asked for again. */
#include <string.h>
#include "channel/net/internal.h"

/* Into memory that the caller may take back it goes by way of ours. */
enum { LANDING_MAX = 64 << 10, PIECES_MAX = 64, SPARES_MAX = 8, SPARE_MIN = 16 << 10 };

/* Rounds of progress that what comes unasked waits for its receive. Often the program is just about
 * to post it: the message that it waits for comes right behind the answer to its last one. */
enum { PATIENCE = 16 };

/* Bytes of a sender's memory that are on their way. Those below `ahead` come unasked, behind the
 * record that told of them; before anybody has asked, local is NULL and length is ahead. */
struct get {
	struct get *next;
	uint32_t from;
	uint64_t token;
	const void *remote;
	void *local;
	size_t length, ahead;
	size_t taken;			 /* of what has landed */
	unsigned waits;			 /* how often the wire has been told to wait */
	bool asked_coming, ahead_coming; /* which parts are still to come */
	bool started;			 /* the wire writes what comes unasked, or has written it */
	bool failed;
	bool unwanted; /* goes as soon as nobody writes it any more */
	unsigned char *landing;
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
static size_t landed; /* bytes of landings of what came unasked */
/* Some of their largest size are kept: the heap maps and unmaps what is so big. */
static void *spare[SPARES_MAX];
static unsigned nspares;

static size_t length_of(const struct iovec *iov, size_t n)
{
	size_t length = 0;
	for (size_t i = 0; i < n; i++)
		length += iov[i].iov_len;
	return length;
}

static size_t min_size(size_t a, size_t b)
{
	return a < b ? a : b;
}

bool copy_full(void)
{
	return landed >= NET_LANDED_MAX;
}

/* ---- gets ---- */

static bool is_here(const struct get *g)
{
	return !g->asked_coming && !g->ahead_coming && !g->failed;
}

static bool landing_make(struct get *g)
{
	bool big = g->ahead >= SPARE_MIN;
	if (big && nspares)
		g->landing = spare[--nspares];
	else
		g->landing = heap_alloc(big ? net.wire->ahead_max : g->ahead);
	if (g->landing)
		landed += g->ahead;
	return g->landing != NULL;
}

static void get_free(struct get *g)
{
	if (g->landing && g->ahead)
		landed -= g->ahead;
	if (g->landing && g->ahead >= SPARE_MIN && nspares < SPARES_MAX && !net.closing)
		spare[nspares++] = g->landing;
	else
		heap_free(g->landing);
	heap_free(g);
}

static void get_drop(struct get *g)
{
	struct get **at = &gets;
	while (*at != g)
		at = &(*at)->next;
	*at = g->next;
	get_free(g);
}

static struct get *get_make(uint32_t rank, const void *remote, size_t length)
{
	struct get *g = heap_alloc(sizeof(*g));
	if (!g)
		return NULL;
	*g = (struct get){.next = gets, .from = rank, .remote = remote, .length = length};
	gets = g;
	return g;
}

static struct get *get_find(uint32_t rank, const void *remote, const void *local, size_t length)
{
	struct get *g = gets;
	while (g && (g->unwanted || g->from != rank || g->remote != remote ||
		     (g->local && (g->length != length || (!g->landing && g->local != local)))))
		g = g->next;
	return g;
}

static struct get *unasked_find(uint32_t rank, const void *remote)
{
	struct get *g = gets;
	while (g && (g->unwanted || g->from != rank || g->remote != remote || g->local))
		g = g->next;
	return g;
}

/* Asks for [offset, length) of it. */
static bool ask(struct get *g, void *to, const struct iovec *remote, size_t nremote)
{
	g->token = ++last_token;
	if (!net.wire->receive(g->from, g->token, to, length_of(remote, nremote), g))
		return false;
	g->asked_coming = true;
	stream_say(g->from, NET_GET, g->token, remote, nremote * sizeof(*remote));
	return true;
}

static bool get_begin(uint32_t rank, const struct iovec *local, const struct iovec *remote,
		      size_t nremote, size_t length, bool stable)
{
	struct get *g = get_make(rank, remote[0].iov_base, length);
	if (!g)
		return false;
	g->local = local->iov_base;
	if (!stable && !(g->landing = heap_alloc(length))) {
		get_drop(g);
		return false;
	}
	if (ask(g, g->landing ? g->landing : local->iov_base, remote, nremote))
		return true;
	get_drop(g);
	return false;
}

/* ---- unasked ---- */

void copy_expect(uint32_t rank, const struct wire_ahead *ahead)
{
	const void *remote = (const void *)(uintptr_t)ahead->address;
	copy_unwanted(rank, remote);
	struct get *g = get_make(rank, remote, ahead->bytes);
	if (!g)
		return;
	g->ahead = ahead->bytes;
	g->ahead_coming = true;
	net.peer[rank].ahead = g;
}

void *copy_ahead_where(uint32_t rank)
{
	struct net_peer *p = &net.peer[rank];
	struct get *g = p->ahead;
	if (!g)
		return NULL;
	if (!g->local && !g->unwanted && !net.stopping && g->waits++ < PATIENCE)
		return WIRE_WAIT;
	g->started = g->local || (!g->unwanted && !copy_full() && landing_make(g));
	if (g->started)
		return g->local ? g->local : g->landing;
	p->ahead = NULL;
	get_drop(g);
	return NULL;
}

void copy_ahead_came(uint32_t rank, bool ok)
{
	struct net_peer *p = &net.peer[rank];
	struct get *g = p->ahead;
	p->ahead = NULL;
	if (!g)
		return;
	g->ahead_coming = false;
	g->failed |= !ok;
	net.arrived++;
	if (g->unwanted || (!g->local && g->failed))
		get_drop(g);
}

void copy_unwanted(uint32_t rank, const void *remote)
{
	struct get *g = unasked_find(rank, remote);
	if (!g)
		return;
	if (g->ahead_coming)
		g->unwanted = true;
	else
		get_drop(g);
}

/* Somebody wants what comes unasked. 0: not all of it is there. */
static ssize_t unasked_take(struct get *g, const struct iovec *local, const struct iovec *remote,
			    size_t length, bool stable)
{
	if (!g->ahead_coming) {
		size_t n = min_size(g->ahead - g->taken, length);
		memcpy(local->iov_base, g->landing + g->taken, n);
		g->taken += n;
		g->remote = (const char *)g->remote + n;
		if (g->taken == g->ahead)
			get_drop(g);
		return (ssize_t)n;
	}
	if (g->started || !stable || length < g->ahead)
		return 0;
	g->local = local->iov_base;
	g->length = length;
	if (length == g->ahead)
		return 0;
	struct iovec rest = {(char *)remote->iov_base + g->ahead, length - g->ahead};
	if (!ask(g, (char *)g->local + g->ahead, &rest, 1)) {
		g->local = NULL; /* it lands, the rest will be asked for later */
		g->length = g->ahead;
	}
	return 0;
}

ssize_t copy_get(uint32_t rank, const struct iovec *local, size_t nlocal,
		 const struct iovec *remote, size_t nremote, bool stable)
{
	size_t length = length_of(remote, nremote);
	if (nlocal != 1 || nremote > PIECES_MAX || local->iov_len < length ||
	    (!stable && length > LANDING_MAX))
		return -1;
	struct get *g = get_find(rank, remote[0].iov_base, local->iov_base, length);
	if (g && !g->local && nremote == 1)
		return unasked_take(g, local, remote, length, stable);
	if (g && is_here(g)) {
		if (g->landing)
			memcpy(local->iov_base, g->landing, length);
		get_drop(g);
		return (ssize_t)length;
	}
	if (g && g->failed && !g->asked_coming && !g->ahead_coming) {
		get_drop(g);
		g = NULL;
	}
	if (!net.open || !net.peer[rank].up) {
		if (net.open)
			peer_want(rank);
		return 0;
	}
	if (g)
		return 0;
	return get_begin(rank, local, remote, nremote, length, stable) ? 0 : -1;
}

void copy_received(void *cookie, bool ok)
{
	struct get *g = cookie;
	g->asked_coming = false;
	g->failed |= !ok;
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

/* What was to come unasked and hasn't begun to. */
static void expected_end(uint32_t rank)
{
	struct get *g = net.peer[rank].ahead;
	if (!g || g->started)
		return;
	copy_ahead_came(rank, false);
}

void copy_disconnected(uint32_t rank)
{
	expected_end(rank);
	for (struct get *g = gets, *next; g; g = next) {
		next = g->next;
		if (g->from == rank && g->asked_coming)
			net.wire->receive_end(g);
	}
	/* what it asked for over that connection it will ask for again */
	for (struct give *g = gives, *next; g; g = next) {
		next = g->next;
		if (g->to == rank && !g->begun)
			give_drop(g);
	}
}

void copy_forget_all(void)
{
	for (uint32_t i = 0; i < net.nranks; i++)
		net.peer[i].ahead = NULL;
	while (gets) {
		struct get *g = gets;
		gets = g->next;
		get_free(g);
		net.arrived++; /* so that it is asked for again */
	}
	while (nspares)
		heap_free(spare[--nspares]);
	while (gives) {
		struct give *g = gives;
		gives = g->next;
		heap_free(g);
	}
}
