// SPDX-License-Identifier: BSD-3-Clause
/* The channel between nodes: opening, closing, and what a checkpoint does to it. The pictures are
 * in docs/network-channel.md.
 *
 * For an image the whole network library is closed, at once and without asking anybody: what is
 * on its way is kept by its sender (stream.c), in its image too. Afterwards it is opened again,
 * perhaps in another process on another node, and the new address goes into the directory. */
#include "channel/net/net.h"

#include <stdlib.h>
#include <string.h>
#include "base/units.h"
#include "base/yield.h"
#include "channel/carry/carry.h"
#include "channel/net/internal.h"
#include "channel/shm/shm.h"

struct net net;

static const size_t eager_max = NET_EAGER_MAX;

/* ---- calls of the wire ---- */

/* At the first one, and whenever there are twice as many. */
static void stranger(uint32_t count, const char *what)
{
	atomic_store(&link_self()->mailbox->net_strangers, count);
	if ((count & (count - 1)) == 0)
		log_warn(
		    "rank %u has turned away %u connection%s that didn't come from this job (of "
		    "the last one: %s)",
		    net.rank, count, count == 1 ? "" : "s", what);
}

/* Ranks of a node find out one after the other: the first one says it. */
static void smaller(uint32_t peer, uint32_t bytes)
{
	_Atomic uint32_t *known = &link_self()->segment->net_packets;
	uint32_t before = atomic_load(known);
	while ((before == 0 || before > bytes) &&
	       !atomic_compare_exchange_weak(known, &before, bytes))
		;
	if (before == 0 || before > bytes)
		log_warn("rank %u: what was sent to rank %u doesn't get there, though its host "
			 "answers; from now on in packets of %u bytes (does something between the "
			 "hosts take less than their MTU?)",
			 net.rank, peer, bytes);
}

static const struct wire_calls calls = {
    .came = stream_came,
    .ahead_where = copy_ahead_where,
    .ahead_came = copy_ahead_came,
    .sent = stream_sent,
    .received = copy_received,
    .up = peer_up,
    .broke = peer_broke,
    .reached = peer_reached,
    .unreached = peer_unreached,
    .stranger = stranger,
    .smaller = smaller,
};

/* ---- open and close ---- */

#define TIMEOUT_LEAST 0.1 /* seconds */
#define TIMEOUT_MOST  3600.

/* HALE_NET=all: also ranks of this node are reached over the network. For tests, and for measuring.
 */
static bool everybody_is(void)
{
	const char *how = getenv("HALE_NET");
	return how && strcmp(how, "all") == 0;
}

static bool anybody_away(void)
{
	for (uint32_t i = 0; i < net.nranks; i++)
		if (net.peer[i].away)
			return true;
	return false;
}

static void places_look(void)
{
	net.late = false;
	for (uint32_t i = 0; i < net.nranks; i++) {
		struct net_peer *p = &net.peer[i];
		p->away = i != net.rank && (net.all || !segment_here(link_self()->segment, i));
		p->version = 0;
		net.late |= !p->away && p->freed != p->tail;
	}
}

/* HALE_NET_TIMEOUT=TIME: silence after which a connection counts as broken. */
static bool timeout_take(uint64_t *ns, struct error *err)
{
	const char *wanted = getenv("HALE_NET_TIMEOUT");
	double seconds = NET_TIMEOUT_S;
	if (wanted && (!units_parse_seconds(wanted, &seconds) || seconds < TIMEOUT_LEAST ||
		       seconds > TIMEOUT_MOST)) {
		error_set(err, HALE_ERR_ARGUMENT,
			  "HALE_NET_TIMEOUT=%s: say a time from 100ms to 1h, as in 30s", wanted);
		return false;
	}
	*ns = (uint64_t)(seconds * 1e9);
	return true;
}

/* What is published: the wire's name, and what it says itself. */
static hale_status_t address_publish(struct error *err)
{
	unsigned char all[SEGMENT_ADDRESS_MAX];
	size_t bytes;
	const void *address = net.wire->address(&bytes);
	if (bytes > sizeof(all) - sizeof(net.wire->name))
		return error_set(err, HALE_ERR_LINK,
				 "the network address of rank %u has %zu bytes and at most %zu "
				 "fit; choose fewer devices with UCX_NET_DEVICES",
				 net.rank, bytes, sizeof(all) - sizeof(net.wire->name));
	memcpy(all, net.wire->name, sizeof(net.wire->name));
	memcpy(all + sizeof(net.wire->name), address, bytes);
	link_address_publish(all, (uint32_t)(sizeof(net.wire->name) + bytes));
	return HALE_OK;
}

static hale_status_t wire_start(struct error *err)
{
	char why[WIRE_WHY];
	int fd[WIRE_FDS];
	uint64_t timeout_ns;
	if ((!net.wire && !(net.wire = net_load(err))) || !timeout_take(&timeout_ns, err))
		return err->code;
	/* before there is a socket that a checkpoint could stumble over, and for good: whoever
	 * rings bells of sleepers on descriptors has one for a moment */
	atomic_store(&link_self()->mailbox->net_open, 1);
	struct wire_self self = {.rank = net.rank,
				 .npeers = net.nranks,
				 .generation = net.generation,
				 .secret = segment_secret(link_self()->segment),
				 .encrypt = link_self()->segment->net_encrypt,
				 .one_host = link_self()->segment->one_host,
				 .timeout_ns = timeout_ns};
	if (!net.wire->open(&self, &calls, why))
		return error_set(err, HALE_ERR_LINK, "rank %u can't open the network: %s", net.rank,
				 why);
	unsigned n = net.wire->descriptors(fd);
	hale_status_t rc = link_bell_open(fd, n, err);
	if (rc == HALE_OK && (rc = address_publish(err)) != HALE_OK)
		link_bell_close();
	if (rc != HALE_OK) {
		net.wire->close(0);
		return rc;
	}
	net.open = net.attention = true;
	for (uint32_t i = 0; net.all && i < net.nranks; i++)
		mailbox_ring(segment_mailbox(link_self()->segment, i));
	return HALE_OK;
}

static void wire_stop(void)
{
	if (!net.open)
		return;
	link_bell_close();
	for (uint32_t i = 0; i < net.nranks; i++)
		stream_say(i, NET_BYE, 0, NULL, 0);
	net.closing = true;
	net.wire->close(NET_CLOSE_NS);
	net.closing = false;
	net.open = net.stopping = net.rebuild = false;
	copy_forget_all();
	stream_spares_free();
	for (uint32_t i = 0; i < net.nranks; i++) {
		struct net_peer *p = &net.peer[i];
		stream_early_drop(p);
		p->up = p->broken = p->left = p->tell = p->called = p->full = false;
		p->wanted = p->freed != p->tail;
	}
	/* only now: peers drop their ends when they see it, and UCX is not up to hearing from one
	 * that has dropped its end while it still connects itself */
	link_address_publish("", 0);
}

void net_rebuild(void)
{
	struct error err;
	wire_stop();
	if (wire_start(&err) != HALE_OK) {
		log_warn("after a connection was lost %s", err.text);
		link_abort(70);
	}
}

static hale_status_t net_open(channel_arrive_t *arrive, struct error *err)
{
	const struct link *l = link_self();
	memset(&net, 0, sizeof(net));
	net.rank = l->process;
	net.nranks = l->nprocesses;
	net.generation = l->generation;
	net.arrive = arrive;
	net.all = everybody_is();
	net.peer = heap_calloc(l->nprocesses, sizeof(*net.peer));
	if (!net.peer)
		return error_set(err, HALE_ERR_MEMORY, "no memory for %u peers", l->nprocesses);
	places_look();
	hale_status_t rc = anybody_away() ? wire_start(err) : HALE_OK;
	if (rc != HALE_OK)
		heap_free(net.peer);
	return rc;
}

static bool net_reaches(uint32_t rank)
{
	const struct net_peer *p = &net.peer[rank];
	return rank < net.nranks && (p->away || (net.late && p->freed != p->tail));
}

/* ---- records ---- */

static bool window_make(struct net_peer *p)
{
	if (!p->window)
		p->window = heap_calloc(NET_WINDOW, sizeof(*p->window));
	return p->window != NULL;
}

static void *net_reserve(uint32_t rank, const struct envelope *e)
{
	struct net_peer *p = &net.peer[rank];
	if (UNLIKELY(!p->up)) {
		if (p->away && net.open)
			peer_want(rank);
		return NULL;
	}
	if (UNLIKELY(stream_full(p) || !window_make(p)))
		return NULL;
	heap_free(p->reserved);
	p->reserved = stream_slot(rank, e->length);
	return p->reserved ? p->reserved->payload : NULL;
}

static void net_commit(uint32_t rank, const struct envelope *e)
{
	struct net_slot *slot = net.peer[rank].reserved;
	net.peer[rank].reserved = NULL;
	stream_put(rank, slot, e);
}

/* Not to who has no memory for it, or is reached by nothing now. */
static size_t ahead_length(const struct net_peer *p, size_t bytes)
{
	if (!p->up || p->full || !net.wire->ahead_max || bytes < NET_AHEAD_MIN)
		return 0;
	return bytes < net.wire->ahead_max ? bytes : net.wire->ahead_max;
}

static bool net_busy(uint32_t rank)
{
	const struct net_peer *p = &net.peer[rank];
	return p->tail - p->freed >= NET_BUSY;
}

static bool net_announce(uint32_t rank, const struct envelope *e, const void *payload,
			 const void *memory, size_t bytes)
{
	void *to = net_reserve(rank, e);
	if (UNLIKELY(!to))
		return false;
	struct net_peer *p = &net.peer[rank];
	memcpy(to, payload, e->length);
	p->reserved->ahead = (struct iovec){(void *)(uintptr_t)memory, ahead_length(p, bytes)};
	net_commit(rank, e);
	return true;
}

static bool net_send(uint32_t rank, const struct envelope *e, const void *payload)
{
	void *to = net_reserve(rank, e);
	if (UNLIKELY(!to))
		return false;
	if (e->length)
		memcpy(to, payload, e->length);
	net_commit(rank, e);
	return true;
}

/* ---- progress ---- */

/* A checkpoint that was given up is behind everybody as soon as everybody knows it. */
static __attribute__((noinline)) void epoch_begin(uint32_t epoch)
{
	net.epoch = epoch;
	for (uint32_t i = 0; i < net.nranks; i++) {
		stream_early_take(i);
		if (net.peer[i].up)
			stream_again(i);
	}
}

static __attribute__((noinline)) void late_flush(void)
{
	net.late = false;
	for (uint32_t i = 0; i < net.nranks; i++)
		if (!net.peer[i].away && !stream_late_flush(i))
			net.late = true;
}

static void net_flush(void)
{
	if (LIKELY(net.open && net.wire->flush))
		net.wire->flush();
}

static int net_poll(void)
{
	const struct link *l = link_self();
	/* behind the marker of the other channel nothing may follow */
	if (UNLIKELY(net.late && !net.suspended))
		late_flush();
	if (UNLIKELY(!net.open))
		return 0;
	net_flush(); /* of a round that had none */
	net.wire->progress();
	uint32_t cancelled =
	    atomic_load_explicit(&l->mailbox->ckpt_cancelled, memory_order_relaxed);
	if (UNLIKELY(cancelled > net.epoch))
		epoch_begin(cancelled);
	if (UNLIKELY(net.attention ||
		     net.directory != atomic_load_explicit(&l->segment->addresses_changed,
							   memory_order_relaxed)))
		peers_attend();
	/* with what came since the last round: UCX moves things on the way to sleep, too */
	int arrived = net.arrived;
	net.arrived = 0;
	return arrived;
}

static void net_before_sleep(void)
{
	if (net.open && !net.wire->arm()) /* the sleep on the bell as it was ends at once */
		atomic_fetch_add(&link_self()->mailbox->bell, 1);
}

/* Every rank is on its way out of the library by now. A peer that has gone without having our last
 * words acknowledged had everything it wanted. */
static bool all_have_all(void)
{
	for (uint32_t i = 0; i < net.nranks; i++) {
		const struct net_peer *p = &net.peer[i];
		if (p->away && p->freed != p->tail && !p->left && p->breaks < 2)
			return false;
	}
	return true;
}

static void last_words(void)
{
	for (uint32_t i = 0; i < net.nranks; i++) {
		struct net_peer *p = &net.peer[i];
		if (!p->away || p->freed == p->tail)
			continue;
		if (p->up)
			stream_say(i, NET_ASK, 0, NULL, 0);
		p->tell = !p->up;
	}
	while (!all_have_all())
		if (!net_poll())
			yield_or_nap();
}

static void net_close(void)
{
	if (net.open) {
		last_words();
		wire_stop();
	}
	for (uint32_t i = 0; net.peer && i < net.nranks; i++)
		stream_forget(&net.peer[i]);
	heap_free(net.peer);
	memset(&net, 0, sizeof(net));
}

/* ---- checkpoint ---- */

/* What is on its way may arrive: peers are about to do the same. Who is late, or can't be reached,
 * isn't waited for, since what hasn't arrived is kept. */
static void net_suspend(uint32_t round)
{
	net.round = round;
	net.suspended = true;
	if (!net.open)
		return;
	net.stopping = true;
	net.stop_at = clock_ns() + NET_DRAIN_NS;
	for (uint32_t i = 0; i < net.nranks; i++)
		stream_say(i, NET_STOP, round, NULL, 0);
}

/* A replica that comes back is a copy of another one, and what is kept for that one on its way
 * would never come to the copy: so there all of it has to arrive. The dead are not waited for.
 *
 * A checkpoint needs less. A restored receiver is the process that it was, and a restored sender
 * has the message in its image. Of a sender that is not restored, the rank's other replica keeps
 * it. */
static bool copies_may_come_of_it(void)
{
	const struct link *l = link_self();
	return l->degree > 1 && (atomic_load(&l->mailbox->ckpt_flags) & CKPT_STOP);
}

static bool kept_on_its_way(uint32_t i)
{
	const struct net_peer *p = &net.peer[i];
	return copies_may_come_of_it() && p->away && !p->left && p->freed != p->tail;
}

static bool nothing_on_its_way(void)
{
	for (uint32_t i = 0; i < net.nranks; i++) {
		const struct net_peer *p = &net.peer[i];
		if (atomic_load_explicit(&segment_mailbox(link_self()->segment, i)->lost,
					 memory_order_relaxed))
			continue;
		if (kept_on_its_way(i))
			return false;
		if (p->up && !p->left && (p->freed != p->tail || p->stopped != net.round))
			return false;
	}
	return true;
}

static bool net_drained(void)
{
	if (!net.open)
		return true;
	if (!nothing_on_its_way() && (copies_may_come_of_it() || clock_ns() < net.stop_at))
		return false;
	wire_stop();
	return true;
}

static void late_begin(struct net_peer *p)
{
	for (uint32_t i = p->freed; i != p->tail; i++)
		p->window[i % NET_WINDOW]->header.have = 0;
}

static void net_resume(bool restored)
{
	struct error err;
	wire_stop(); /* given up before it was drained */
	net.suspended = false;
	if (net.round > net.epoch)
		net.epoch = net.round;
	if (restored) {
		net.rank = link_self()->process;
		net.generation = link_self()->generation;
		places_look();
		/* the image may have been taken while somebody couldn't be reached */
		for (uint32_t i = 0; i < net.nranks; i++)
			peer_reached(i);
		for (uint32_t i = 0; i < net.nranks; i++)
			if (!net.peer[i].away)
				late_begin(&net.peer[i]);
	}
	if (anybody_away() && wire_start(&err) != HALE_OK) {
		log_warn("after the checkpoint %s", err.text);
		link_abort(70);
	}
}

static void net_forget(uint32_t rank)
{
	stream_forget(&net.peer[rank]);
	memset(&net.peer[rank], 0, sizeof(net.peer[rank]));
}

/* Records that a peer has not acknowledged go along: it may want them from the next program. */
static void kept_carry(struct carry *c, uint32_t rank)
{
	struct net_peer *p = &net.peer[rank];
	uint32_t kept = p->tail - p->freed;
	carry_bytes(c, &kept, sizeof(kept));
	for (uint32_t i = 0; !c->loading && i < kept; i++) {
		struct net_slot *slot = p->window[(p->freed + i) % NET_WINDOW];
		carry_bytes(c, &slot->header.envelope, sizeof(slot->header.envelope));
		carry_bytes(c, slot->payload, slot->header.envelope.length);
	}
	if (c->loading)
		p->tail = p->freed;
	for (uint32_t i = 0; c->loading && i < kept && !c->failed; i++) {
		struct envelope e;
		carry_bytes(c, &e, sizeof(e));
		struct net_slot *slot = window_make(p) ? stream_slot(rank, e.length) : NULL;
		if (!slot) {
			c->failed = true;
			return;
		}
		carry_bytes(c, slot->payload, e.length);
		stream_put(rank, slot, &e);
	}
}

static bool comes_in_pieces(void)
{
	for (uint32_t i = 0; i < net.nranks; i++)
		if (net.peer[i].late)
			return true;
	return false;
}

static bool net_carry(struct carry *c)
{
	if (!c->loading && (net.late || net.suspended || comes_in_pieces()))
		return false;
	if (!c->loading)
		wire_stop();
	carry_bytes(c, &net.epoch, sizeof(net.epoch));
	for (uint32_t i = 0; i < net.nranks; i++) {
		struct net_peer *p = &net.peer[i];
		carry_bytes(c, &p->freed, sizeof(p->freed));
		carry_bytes(c, &p->tail, sizeof(p->tail));
		carry_bytes(c, &p->cursor, sizeof(p->cursor));
		kept_carry(c, i);
	}
	return true;
}

static void net_renew(uint32_t rank)
{
	struct net_peer *p = &net.peer[rank];
	if (net.open)
		peer_drop(rank);
	net_forget(rank);
	p->away = rank != net.rank && (net.all || !segment_here(link_self()->segment, rank));
}

/* Of what is on its way nothing has to arrive before: it is kept, here or in the image, and comes
 * over the next connections. */
static void net_pause(void)
{
	if (net.open)
		net_poll(); /* what was given up meanwhile is behind the image, too */
	wire_stop();
}

static bool net_settled(void)
{
	return !net.late;
}

static bool net_used(void)
{
	return net.open || net.late;
}

const struct channel_ops channel_net = {
    .name = "net",
    .open = net_open,
    .reaches = net_reaches,
    .send = net_send,
    .announce = net_announce,
    .busy = net_busy,
    .unwanted = copy_unwanted,
    .reserve = net_reserve,
    .commit = net_commit,
    .poll = net_poll,
    .flush = net_flush,
    .before_sleep = net_before_sleep,
    .get = copy_get,
    .suspend = net_suspend,
    .drained = net_drained,
    .resume = net_resume,
    .forget = net_forget,
    .carry = net_carry,
    .renew = net_renew,
    .pause = net_pause,
    .settled = net_settled,
    .used = net_used,
    .close = net_close,
    .eager_max = &eager_max,
};
