// SPDX-License-Identifier: BSD-3-Clause
/* Records in order, each once, over connections that may end at any time. A record is numbered
 * and kept until its receiver has said that it has it, so a connection may be lost, or closed for
 * an image, whenever it likes: over the next one what is kept is sent again, and what the receiver
 * has already it drops.
 *
 * Only processes in the same epoch take records and acknowledgements from each other: an image
 * must not contain a record that its sender's image hasn't sent, and no sender's image may have
 * dropped a record that its receiver's image lacks. What comes from a later epoch waits; what comes
 * from an earlier one is dropped, its sender will send it again. */
#include <string.h>
#include "channel/net/internal.h"
#include "channel/shm/shm.h"

bool stream_full(const struct net_peer *p)
{
	return p->tail - p->freed >= NET_WINDOW || p->bytes >= NET_WINDOW_BYTES;
}

/* Memory of more than the heap's largest class is mapped and unmapped each time, which costs more
 * than sending does: some slots of the largest size are kept. */
enum { SPARE_BYTES = 16 << 10, SPARES_MAX = 64 };
static struct net_slot *spare[SPARES_MAX];
static unsigned nspares;

struct net_slot *stream_slot(uint32_t rank, size_t length)
{
	struct net_slot *slot;
	bool big = length > SPARE_BYTES;
	if (big && nspares)
		slot = spare[--nspares];
	else
		slot = heap_alloc(sizeof(*slot) + (big ? NET_EAGER_MAX : length));
	if (!slot)
		return NULL;
	*slot = (struct net_slot){.peer = rank, .big = big};
	return slot;
}

static void slot_free_if_idle(struct net_slot *slot)
{
	if (slot->kept || slot->flying)
		return;
	if (slot->big && nspares < SPARES_MAX && !net.closing)
		spare[nspares++] = slot;
	else
		heap_free(slot);
}

void stream_spares_free(void)
{
	while (nspares)
		heap_free(spare[--nspares]);
}

/* ---- out ---- */

static void slot_send(struct net_slot *slot)
{
	struct net_peer *p = &net.peer[slot->peer];
	if (slot->flying) {
		slot->again = true;
		return;
	}
	slot->again = false;
	slot->header.from = net.rank;
	slot->header.generation = net.generation;
	slot->header.epoch = net.epoch;
	slot->header.have = p->told = p->cursor;
	slot->header.full = copy_full();
	p->untold = 0;
	p->tell = false;
	slot->flying = true;
	/* again it goes alone: who has it already may not expect anything behind it, and by then
	 * the memory may be the program's */
	struct iovec ahead = slot->ahead;
	slot->ahead.iov_len = 0;
	enum wire_sent sent =
	    net.wire->send(slot->peer, &slot->header, sizeof(slot->header), slot->payload,
			   slot->header.envelope.length, ahead.iov_len ? &ahead : NULL, slot);
	if (sent == WIRE_PENDING)
		return;
	slot->flying = false;
	if (sent == WIRE_FAILED)
		peer_broke(slot->peer, "sending fails");
	slot_free_if_idle(slot);
}

void stream_sent(void *cookie)
{
	if (copy_given(cookie))
		return;
	struct net_slot *slot = cookie;
	slot->flying = false;
	if (slot->again && slot->kept && net.peer[slot->peer].up && !net.closing)
		slot_send(slot);
	else
		slot_free_if_idle(slot);
}

void stream_put(uint32_t rank, struct net_slot *slot, const struct envelope *e)
{
	struct net_peer *p = &net.peer[rank];
	slot->header.envelope = *e;
	slot->header.kind = NET_RECORD;
	slot->header.number = p->tail;
	slot->kept = HALE_READY;
	p->window[p->tail++ % NET_WINDOW] = slot;
	p->bytes += e->length;
	if (!HALE_READY) {
		p->freed = p->tail;
		p->bytes = 0;
	}
	if (LIKELY(p->up))
		slot_send(slot);
	else
		peer_want(rank);
}

void stream_say(uint32_t rank, enum net_kind kind, uint64_t id, const void *payload, size_t length)
{
	if (!net.peer[rank].up)
		return;
	struct net_slot *slot = stream_slot(rank, length);
	if (!slot)
		return;
	slot->header.kind = kind;
	slot->header.envelope.id = id;
	slot->header.envelope.length = (uint32_t)length;
	if (length)
		memcpy(slot->payload, payload, length);
	slot_send(slot);
}

void stream_again(uint32_t rank)
{
	struct net_peer *p = &net.peer[rank];
	for (uint32_t i = p->freed; i != p->tail && p->up; i++)
		slot_send(p->window[i % NET_WINDOW]);
}

static void window_free(struct net_peer *p, uint32_t have)
{
	while (p->freed != p->tail && (int32_t)(have - p->freed) > 0) {
		struct net_slot *slot = p->window[p->freed++ % NET_WINDOW];
		p->bytes -= slot->header.envelope.length;
		slot->kept = false;
		slot_free_if_idle(slot);
	}
}

/* ---- in ---- */

static void record_take(uint32_t from, const struct envelope *e, const void *payload)
{
	struct net_peer *p = &net.peer[from];
	p->cursor++;
	p->untold += e->length;
	net.arrived++;
	net.arrive(from, e, payload);
	if (!HALE_READY)
		return;
	if (p->cursor - p->told >= NET_WINDOW / 4 || p->untold >= NET_WINDOW_BYTES / 4)
		p->tell = true;
}

static void early_keep(struct net_peer *p, const struct net_header *h, const void *payload)
{
	struct net_early **at = &p->early;
	while (*at && (int32_t)((*at)->header.number - h->number) < 0)
		at = &(*at)->next;
	if (*at && (*at)->header.number == h->number && (*at)->header.epoch >= h->epoch)
		return;
	struct net_early *kept = heap_alloc(sizeof(*kept) + h->envelope.length);
	if (!kept) /* as if it had been lost; its sender keeps it */
		return;
	kept->header = *h;
	memcpy(kept->payload, payload, h->envelope.length);
	kept->next = *at;
	*at = kept;
}

void stream_early_take(uint32_t from)
{
	struct net_peer *p = &net.peer[from];
	struct net_early **at = &p->early;
	while (*at) {
		struct net_early *first = *at;
		if (first->header.epoch > net.epoch ||
		    (int32_t)(first->header.number - p->cursor) > 0) {
			at = &first->next;
			continue;
		}
		*at = first->next;
		if (first->header.epoch == net.epoch && first->header.number == p->cursor)
			record_take(from, &first->header.envelope, first->payload);
		heap_free(first);
	}
}

void stream_early_drop(struct net_peer *p)
{
	while (p->early) {
		struct net_early *first = p->early;
		p->early = first->next;
		heap_free(first);
	}
}

static void record_came(const struct net_header *h, const void *payload,
			const struct wire_ahead *ahead)
{
	struct net_peer *p = &net.peer[h->from];
	int32_t distance = (int32_t)(h->number - p->cursor);
	if (h->epoch == net.epoch && distance == 0) {
		if (ahead)
			copy_expect(h->from, ahead);
		record_take(h->from, &h->envelope, payload);
		if (UNLIKELY(p->early != NULL))
			stream_early_take(h->from);
	} else if (distance < 0) {
		p->tell = true;
	} else if (h->epoch >= net.epoch && distance < NET_WINDOW) {
		early_keep(p, h, payload);
	}
}

static bool header_is_sound(uint32_t peer, const struct net_header *h, size_t header_bytes,
			    size_t bytes)
{
	return header_bytes == sizeof(*h) && h->from < net.nranks && h->from != net.rank &&
	       (peer == h->from || peer == WIRE_SOMEBODY) && h->generation == net.generation &&
	       h->envelope.length == bytes;
}

void stream_came(uint32_t peer, const void *header, size_t header_bytes, const void *payload,
		 size_t bytes, const struct wire_ahead *ahead)
{
	const struct net_header *h = header;
	if (net.closing || !header_is_sound(peer, h, header_bytes, bytes))
		return;
	struct net_peer *p = &net.peer[h->from];
	p->breaks = 0;
	p->full = h->full;
	if (h->epoch == net.epoch)
		window_free(p, h->have);
	switch (h->kind) {
	case NET_RECORD:
		record_came(h, payload, ahead);
		break;
	case NET_ASK:
		p->tell = true;
		break;
	case NET_BYE:
		p->left = true;
		break;
	case NET_STOP:
		p->stopped = (uint32_t)h->envelope.id;
		p->tell = true;
		break;
	case NET_GET:
		copy_asked(h->from, h->envelope.id, payload, bytes);
		break;
	default: /* NET_HAVE */
		break;
	}
	if (UNLIKELY(p->tell) && h->epoch == net.epoch) {
		if (p->up) {
			stream_say(h->from, NET_HAVE, 0, NULL, 0);
			p->tell = false;
		} else {
			peer_want(h->from);
		}
	}
}

/* ---- records kept for a rank that lives here now ---- */

/* They leave through the other channel in pieces of its size: {envelope, payload} as one run of
 * bytes; of the carrying envelope context is the record's number, tag the offset and id the whole
 * length. That channel loses nothing, so what has left needs no acknowledgement. */
static size_t late_piece(const struct net_slot *slot, size_t at, size_t max, unsigned char *to)
{
	const size_t head = sizeof(struct envelope);
	size_t total = head + slot->header.envelope.length, n = 0;
	if (at < head) {
		n = head - at < max ? head - at : max;
		memcpy(to, (const char *)&slot->header.envelope + at, n);
	}
	size_t left = total - at - n;
	if (left > max - n)
		left = max - n;
	memcpy(to + n, slot->payload + (at + n - head), left);
	return n + left;
}

static bool late_send(const struct channel_ops *c, struct net_slot *slot)
{
	size_t total = sizeof(struct envelope) + slot->header.envelope.length;
	while (slot->header.have < total) { /* have: bytes that have left */
		size_t max = *c->eager_max, n = total - slot->header.have;
		n = n < max ? n : max;
		struct envelope e = {.kind = CHANNEL_LATE,
				     .length = (uint32_t)n,
				     .context = slot->header.number,
				     .tag = (int32_t)slot->header.have,
				     .id = total};
		unsigned char *to = c->reserve(slot->peer, &e);
		if (!to)
			return false;
		late_piece(slot, slot->header.have, n, to);
		c->commit(slot->peer, &e);
		slot->header.have += (uint32_t)n;
	}
	return true;
}

bool stream_late_flush(uint32_t rank)
{
	struct net_peer *p = &net.peer[rank];
	const struct channel_ops *c = &channel_shm;
	while (p->freed != p->tail) {
		if (!late_send(c, p->window[p->freed % NET_WINDOW]))
			return false;
		window_free(p, p->freed + 1);
	}
	return true;
}

void channel_late_arrive(uint32_t from, const struct envelope *piece, const void *payload)
{
	struct net_peer *p = &net.peer[from];
	if (piece->tag == 0) {
		heap_free(p->late);
		p->late = heap_alloc(piece->id);
	}
	if (!p->late) {
		log_warn("rank %u has no memory for a message of %lu bytes", net.rank,
			 (unsigned long)piece->id);
		link_abort(70);
	}
	memcpy(p->late + piece->tag, payload, piece->length);
	if ((size_t)piece->tag + piece->length < piece->id)
		return;
	struct envelope e;
	memcpy(&e, p->late, sizeof(e));
	if (piece->context == p->cursor)
		record_take(from, &e, p->late + sizeof(e));
	heap_free(p->late);
	p->late = NULL;
}

void stream_forget(struct net_peer *p)
{
	stream_early_drop(p);
	while (p->freed != p->tail) {
		struct net_slot *slot = p->window[p->freed++ % NET_WINDOW];
		slot->kept = false;
		slot_free_if_idle(slot);
	}
	heap_free(p->reserved);
	heap_free(p->late);
	heap_free(p->window);
}
