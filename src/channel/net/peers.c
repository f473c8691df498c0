// SPDX-License-Identifier: BSD-3-Clause
/* Connections. A peer is connected when something waits to be sent to it, by its entry in the
 * node's address directory; a new version of the entry means that it has a new address, and the
 * old connection leads nowhere. Who is connected by a peer uses that connection, too.
 *
 * A connection that breaks proves nothing about the process at its other end. It is made again; if
 * not even the peer's host answers, the head is told, and decides (docs/nodes.md, "Cut off from
 * each other"). Over UCX made again means that the whole wire is opened anew, under another
 * address: so any two wires are connected at most once, and nobody has to tell an old connection's
 * last words from a new one's first. */
#include <string.h>
#include "channel/net/internal.h"

void peer_want(uint32_t rank)
{
	net.peer[rank].wanted = true;
	net.attention = true;
}

void peer_drop(uint32_t rank)
{
	struct net_peer *p = &net.peer[rank];
	p->up = p->broken = p->called = false;
	copy_disconnected(rank);
	net.wire->disconnect(rank);
}

/* From now on, and until peer_reached says otherwise, it is tried without end. */
static void report(uint32_t rank)
{
	struct net_peer *p = &net.peer[rank];
	struct mailbox *m = link_self()->mailbox;
	bool first = p->told_at == 0;
	p->told_at = clock_ns();
	atomic_store(&m->net_peer, (int32_t)rank);
	atomic_fetch_add(&m->net_lost, first);
	if (!link_net_tell(rank, true) && first)
		log_warn("rank %u: the network to rank %u is cut; trying again until it is back",
			 net.rank, rank);
}

void peer_reached(uint32_t rank)
{
	struct net_peer *p = &net.peer[rank];
	p->down_at = 0;
	if (p->told_at)
		link_net_tell(rank, false);
	p->told_at = 0;
}

/* By time: how fast attempts fail says nothing. And again and again, since a head that has taken
 * over doesn't know it. A checkpoint, which closes all connections, changes nothing about it. */
void peer_unreached(uint32_t rank)
{
	struct net_peer *p = &net.peer[rank];
	const uint64_t second = 1000000000;
	uint64_t now = clock_ns(), before = p->down_seen;
	p->down_seen = now;
	if (!p->down_at || now - before >= NET_DOWN_STALE_S * second)
		p->down_at = now;
	else if (p->told_at ? now - p->told_at >= NET_REMIND_S * second
			    : now - p->down_at >= NET_DOWN_NS)
		report(rank);
}

static uint64_t retry_after(const struct net_peer *p)
{
	uint64_t ns = NET_RETRY_NS;
	for (uint32_t i = 1; i < p->breaks && ns < NET_RETRY_MAX_NS; i++)
		ns *= 2;
	return clock_ns() + ns;
}

void peer_broke(uint32_t rank, const char *why)
{
	struct net_peer *p = &net.peer[rank];
	if (net.closing || p->broken)
		return;
	p->up = p->called = false;
	p->broken = true;
	net.attention = true;
	if (p->left)
		return;
	p->wanted = true;
	net.rebuild |= !net.wire->reconnects;
	p->retry_at = retry_after(p);
	p->breaks++;
	log_info("rank %u: the connection to rank %u has ended: %s", net.rank, rank, why);
}

/* Perhaps in place of a connection that this side had taken for sound. */
void peer_up(uint32_t rank)
{
	struct net_peer *p = &net.peer[rank];
	if (p->up || p->broken)
		copy_disconnected(rank);
	net.arrived++; /* what waited for it may go on */
	peer_reached(rank);
	p->up = true;
	p->wanted = p->broken = p->left = p->called = false;
	if (p->breaks || p->tell) {
		/* also finds out whether the peer is there */
		stream_say(rank, NET_ASK, 0, NULL, 0);
		p->tell = false;
	}
	stream_again(rank);
	copy_connected(rank);
}

static void connect_try(uint32_t rank, const void *address, uint32_t length)
{
	char why[WIRE_WHY];
	uint32_t head = sizeof(net.wire->name);
	if (net.wire->state(rank) != WIRE_NONE)
		return;
	if (length < head || memcmp(address, net.wire->name, head) != 0) {
		log_warn("rank %u uses the network by '%s' and rank %u by '%.*s'; say "
			 "HALE_NET_WIRE=tcp or ucx for all of them",
			 net.rank, net.wire->name, rank, (int)sizeof(net.wire->name) - 1,
			 (const char *)address);
		link_abort(70);
	}
	net.peer[rank].called = true;
	if (!net.wire->connect(rank, (const char *)address + head, length - head, why))
		peer_broke(rank, why);
}

/* Does the connection with rank still lead to it, though its entry in the directory is a new one?
 * It does when the peer connected to us before the entry was here. An empty entry says that the
 * peer has closed its end; the connection tells that by itself. */
static bool leads_on(uint32_t rank, const unsigned char *address, uint32_t length)
{
	uint32_t head = sizeof(net.wire->name);
	if (!net.wire->leads_to)
		return false;
	return length < head || net.wire->leads_to(rank, address + head, length - head);
}

/* True when nothing more is to be done for it now or later. */
static bool attend(uint32_t rank)
{
	struct net_peer *p = &net.peer[rank];
	unsigned char address[SEGMENT_ADDRESS_MAX];
	uint32_t length = 0;
	uint32_t version = segment_address_get(link_self()->segment, rank, address, &length);
	if (version == 0) /* none yet, or being written: then the directory changes once more */
		return true;
	if (version != p->version) {
		p->version = version;
		p->retry_at = 0;
		p->breaks = 0;
		p->wanted |= p->freed != p->tail;
		if (p->up && leads_on(rank, address, length))
			return true;
		if (p->up || p->broken || p->called)
			peer_drop(rank);
		p->left = length == 0;
	}
	p->wanted |= p->told_at != 0;
	if (!p->wanted || p->up || p->called || !length || p->left || net.stopping)
		return true;
	if (p->broken && !net.wire->reconnects)
		return false;
	if (p->retry_at > clock_ns())
		return false;
	if (p->broken)
		peer_drop(rank);
	connect_try(rank, address, length);
	return p->up || p->called;
}

/* Is a broken connection due to be made again? */
static bool rebuild_is_due(void)
{
	uint64_t now = clock_ns();
	bool broken = false;
	for (uint32_t i = 0; i < net.nranks; i++) {
		const struct net_peer *p = &net.peer[i];
		if (p->away && p->broken && !p->left) {
			broken = true;
			if (p->retry_at <= now)
				return true;
		}
	}
	net.rebuild = broken;
	return false;
}

void peers_attend(void)
{
	struct segment *s = link_self()->segment;
	net.directory = atomic_load_explicit(&s->addresses_changed, memory_order_acquire);
	net.attention = false;
	for (uint32_t i = 0; i < net.nranks; i++)
		if (net.peer[i].away && !attend(i))
			net.attention = true;
	if (UNLIKELY(net.rebuild) && !net.stopping && rebuild_is_due())
		net_rebuild();
	net.attention |= net.rebuild;
}
