// SPDX-License-Identifier: BSD-3-Clause
/* Rings in the node's segment. One for each ordered pair of ranks, with one writer and one reader:
 *
 *    tail (private to the sender)                      cursor (private to the receiver)
 *      │                                                 │
 *   slot[] | free | free | 17: seq 18 | 16: seq 17 | 15: seq 16 | read | …   a cache line each
 *   data[] | free … | payload of 17 ………… | payload of 16 ………… | read | …
 *
 * Invariants:
 * - Slot i % SHM_SLOTS holds record i exactly when its sequence is i + 1; the sender writes that
 *   word last. A sender that dies before has sent nothing.
 * - Payloads lie in data[] in the order of their records, each in one run that begins on a cache
 *   line; a run that would cross the end begins at 0 instead, so both sides can compute what was
 *   skipped. They are freed in order with their records.
 * - The receiver tells what is free again in one word, `freed`, after every quarter of the ring.
 *   Payloads are at most a quarter of data[], so what is free but not yet told is never what a
 *   waiting sender needs.
 * - stamp[from][to] = checkpoint's id and `from`'s tail: everything below is all there is, until
 *   `from` resumes. It is the Suspend marker of seed 001, 2.3.1, kept beside the ring, so that a
 *   full ring can't hold it up and a silent pair doesn't touch its pages.
 */
#include "channel/shm/shm.h"

#include <linux/membarrier.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/base.h"
#include "channel/carry/carry.h"
#include "channel/copy.h"
#include "node/doze.h"
#include "node/shm_layout.h"
#include "ckpt/rank.h"

enum { POLL_MAX = 64 }; /* records from one sender in one round */
#define GONE UINT32_MAX /* in place of a checkpoint's id: its owner has closed the channel */

struct outgoing {
	struct shm_ring *ring;
	struct mailbox *mailbox;  /* the receiver's */
	_Atomic uint64_t *news;	  /* the receiver's word with our bit; NULL: it polls every ring */
	uint32_t tail, data_tail; /* records and bytes of data[] put in */
	uint32_t freed, data_freed; /* as last read */
} __attribute__((aligned(CACHE_LINE)));

struct incoming {
	struct shm_ring *ring;
	uint32_t cursor, data_cursor; /* records and bytes of data[] taken out */
	uint32_t told, data_told;     /* what the sender has been told is free */
};

static struct {
	uint32_t rank, nranks;
	bool light; /* the receiver's membarrier stands in for our fence */
	struct outgoing *out;
	struct incoming *in;
	channel_arrive_t *arrive;
	uint32_t *here; /* ranks of this node but for ourselves */
	uint32_t nhere;
	_Atomic uint64_t *news; /* ours; NULL: few ranks, all rings are polled */
	_Atomic uint64_t *stamps;
	struct channel_share *shares;
	uint32_t round; /* of the checkpoint we are suspended for */
} shm;

static const size_t eager_max = SHM_DATA_BYTES / 4;

/* ---- where things are ---- */

static void shm_map(void)
{
	uint32_t n = shm.nranks;
	char *base = (char *)link_self()->segment + link_self()->segment->channel_offset;
	struct shm_ring *rings = (struct shm_ring *)base;
	_Atomic uint64_t *news = (_Atomic uint64_t *)(base + shm_news_begin(n));
	size_t words = shm_news_words(n);
	bool masks = n > SHM_POLL_ALL_MAX;

	shm.stamps = (_Atomic uint64_t *)(base + shm_stamps_begin(n));
	shm.shares = (struct channel_share *)(base + shm_shares_begin(n));
	shm.news = masks ? news + shm.rank * words : NULL;
	shm.nhere = 0;
	for (uint32_t peer = 0; peer < n; peer++) {
		struct outgoing *out = &shm.out[peer];
		if (peer != shm.rank && segment_here(link_self()->segment, peer))
			shm.here[shm.nhere++] = peer;
		out->ring = rings + (size_t)shm.rank * n + peer;
		out->mailbox = segment_mailbox(link_self()->segment, peer);
		out->news = masks ? news + peer * words + shm.rank / 64 : NULL;
		shm.in[peer].ring = rings + (size_t)peer * n + shm.rank;
	}
}

static _Atomic uint64_t *stamp(uint32_t from, uint32_t to)
{
	return shm.stamps + (size_t)from * shm.nranks + to;
}

/* A sender must not look at `asleep` before its record can be seen. A fence does that, but waits
 * for the cache line of every record. Where the kernel can put the fence into us from outside, the
 * receiver asks it to before it sleeps (shm_before_sleep), which is rare. */
static void shm_barrier_open(void)
{
	shm.light = syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0 &&
		    syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0) == 0;
}

/* Nothing comes behind this, in whatever checkpoint: peers may still take part in one. */
static void stamp_for_good(void)
{
	for (uint32_t i = 0; i < shm.nhere; i++) {
		uint32_t peer = shm.here[i];
		atomic_store(stamp(shm.rank, peer), (uint64_t)GONE << 32 | shm.out[peer].tail);
		mailbox_ring(shm.out[peer].mailbox);
	}
}

static void shm_close(void)
{
	if (shm.out && shm.in && shm.here)
		stamp_for_good();
	heap_free(shm.out);
	heap_free(shm.in);
	heap_free(shm.here);
	memset(&shm, 0, sizeof(shm));
}

static hale_status_t shm_open(channel_arrive_t *arrive, struct error *err)
{
	const struct link *l = link_self();
	shm.rank = l->process;
	shm.nranks = l->nprocesses;
	shm.arrive = arrive;
	shm.out = heap_calloc(l->nprocesses, sizeof(*shm.out));
	shm.in = heap_calloc(l->nprocesses, sizeof(*shm.in));
	shm.here = heap_calloc(l->nprocesses, sizeof(*shm.here));
	if (!shm.out || !shm.in || !shm.here) {
		shm_close();
		return error_set(err, HALE_ERR_MEMORY, "no memory for the rings of %u ranks",
				 l->nprocesses);
	}
	shm_map();
	shm_barrier_open();
	shm_cma_configure();
	shm_cma_open();
	return HALE_OK;
}

static bool shm_reaches(uint32_t rank)
{
	return rank < shm.nranks && rank != shm.rank && segment_here(link_self()->segment, rank);
}

/* ---- sending ---- */

static void freed_read(struct outgoing *out)
{
	uint64_t word = atomic_load_explicit(&out->ring->freed, memory_order_acquire);
	out->freed = (uint32_t)word;
	out->data_freed = (uint32_t)(word >> 32);
}

static inline bool slot_free(struct outgoing *out)
{
	if (LIKELY(out->tail - out->freed < SHM_SLOTS))
		return true;
	freed_read(out);
	return out->tail - out->freed < SHM_SLOTS;
}

/* Where `length` bytes would begin, counted from the beginning of time. */
static inline uint32_t run_begin(uint32_t from, uint32_t length)
{
	uint32_t place = from % SHM_DATA_BYTES;
	return place + length > SHM_DATA_BYTES ? from + SHM_DATA_BYTES - place : from;
}

static bool run_reserve(struct outgoing *out, uint32_t length, uint32_t *begin)
{
	*begin = run_begin(out->data_tail, length);
	uint32_t end = *begin + ALIGN_UP(length, CACHE_LINE);
	if (LIKELY(end - out->data_freed <= SHM_DATA_BYTES))
		return true;
	freed_read(out);
	return end - out->data_freed <= SHM_DATA_BYTES;
}

/* Before a look at whether a peer sleeps: what it may wait for has been written. */
static inline void published(void)
{
	if (shm.light)
		atomic_signal_fence(memory_order_seq_cst);
	else
		atomic_thread_fence(memory_order_seq_cst);
}

static inline void sleeper_wake(struct mailbox *m)
{
	published();
	mailbox_wake(m);
}

static bool is_half_full(struct outgoing *out)
{
	freed_read(out);
	return out->tail - out->freed >= SHM_SLOTS / 2 ||
	       out->data_tail - out->data_freed >= SHM_DATA_BYTES / 2;
}

static __attribute__((noinline)) void receiver_wake(struct outgoing *out)
{
	if (!mailbox_dozes(out->mailbox) || is_half_full(out))
		mailbox_wake(out->mailbox);
}

static void shm_hurry(uint32_t rank)
{
	mailbox_wake(shm.out[rank].mailbox);
}

static inline void bell_ring(struct outgoing *out)
{
	if (out->news)
		atomic_fetch_or(out->news, 1ull << (shm.rank % 64));
	published();
	if (UNLIKELY(atomic_load_explicit(&out->mailbox->asleep, memory_order_relaxed)))
		receiver_wake(out);
}

static inline void slot_publish(struct outgoing *out, struct shm_slot *slot)
{
	out->tail++;
	atomic_store_explicit(&slot->sequence, out->tail, memory_order_release);
	bell_ring(out);
}

static bool shm_send(uint32_t rank, const struct envelope *e, const void *payload)
{
	struct outgoing *out = &shm.out[rank];
	struct shm_slot *slot = &out->ring->slot[out->tail % SHM_SLOTS];
	if (UNLIKELY(!slot_free(out)))
		return false;
	if (LIKELY(e->length <= SHM_INLINE_BYTES)) {
		copy_small(slot->inlined, payload, e->length);
	} else {
		uint32_t begin;
		if (UNLIKELY(!run_reserve(out, e->length, &begin)))
			return false;
		slot->place = begin % SHM_DATA_BYTES;
		memcpy(out->ring->data + slot->place, payload, e->length);
		out->data_tail = begin + ALIGN_UP(e->length, CACHE_LINE);
	}
	slot->envelope = *e;
	slot_publish(out, slot);
	return true;
}

static void *shm_reserve(uint32_t rank, const struct envelope *e)
{
	struct outgoing *out = &shm.out[rank];
	uint32_t begin;
	if (!slot_free(out))
		return NULL;
	if (e->length <= SHM_INLINE_BYTES)
		return out->ring->slot[out->tail % SHM_SLOTS].inlined;
	if (!run_reserve(out, e->length, &begin))
		return NULL;
	return out->ring->data + begin % SHM_DATA_BYTES;
}

static void shm_commit(uint32_t rank, const struct envelope *e)
{
	struct outgoing *out = &shm.out[rank];
	struct shm_slot *slot = &out->ring->slot[out->tail % SHM_SLOTS];
	if (e->length > SHM_INLINE_BYTES) {
		uint32_t begin = run_begin(out->data_tail, e->length);
		slot->place = begin % SHM_DATA_BYTES;
		out->data_tail = begin + ALIGN_UP(e->length, CACHE_LINE);
	}
	slot->envelope = *e;
	slot_publish(out, slot);
}

/* ---- receiving ---- */

/* A sender may sleep until there is room again. */
static inline void freed_tell(uint32_t from, struct incoming *in)
{
	if (LIKELY(in->cursor - in->told < SHM_SLOTS / 4 &&
		   in->data_cursor - in->data_told < SHM_DATA_BYTES / 4))
		return;
	in->told = in->cursor;
	in->data_told = in->data_cursor;
	atomic_store_explicit(&in->ring->freed, (uint64_t)in->data_told << 32 | in->told,
			      memory_order_release);
	sleeper_wake(shm.out[from].mailbox);
}

static inline int ring_poll(uint32_t from)
{
	struct incoming *in = &shm.in[from];
	int arrived = 0;
	for (;;) {
		struct shm_slot *slot = &in->ring->slot[in->cursor % SHM_SLOTS];
		uint32_t seen = atomic_load_explicit(&slot->sequence, memory_order_acquire);
		if (LIKELY(seen != in->cursor + 1) || arrived == POLL_MAX)
			return arrived;
		uint32_t length = slot->envelope.length;
		const void *payload = slot->inlined;
		if (length > SHM_INLINE_BYTES)
			payload = in->ring->data + slot->place;
		shm.arrive(from, &slot->envelope, payload);
		if (length > SHM_INLINE_BYTES)
			in->data_cursor =
			    run_begin(in->data_cursor, length) + ALIGN_UP(length, CACHE_LINE);
		in->cursor++;
		arrived++;
		freed_tell(from, in);
	}
}

/* Many ranks: only the rings whose senders said so. A bit is taken before its ring is looked at,
 * so what comes later sets it again. */
static int news_poll(void)
{
	int arrived = 0;
	for (uint32_t w = 0; w < (shm.nranks + 63) / 64; w++) {
		if (!atomic_load_explicit(&shm.news[w], memory_order_relaxed))
			continue;
		uint64_t bits = atomic_exchange(&shm.news[w], 0);
		for (; bits; bits &= bits - 1) {
			uint32_t from = w * 64 + (uint32_t)__builtin_ctzl(bits);
			int k = ring_poll(from);
			if (k == POLL_MAX) /* perhaps not empty */
				atomic_fetch_or(&shm.news[w], bits & -bits);
			arrived += k;
		}
	}
	return arrived;
}

static int shm_poll(void)
{
	int arrived = 0;
	if (UNLIKELY(shm.news != NULL))
		return news_poll();
	for (uint32_t i = 0; i < shm.nhere; i++)
		arrived += ring_poll(shm.here[i]);
	return arrived;
}

static void shm_before_sleep(void)
{
	if (shm.light)
		syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0);
}

static struct channel_share *shm_share(uint32_t owner, uint32_t i)
{
	return shm.shares + (size_t)owner * CHANNEL_SHARES + i;
}

/* ---- checkpoint ---- */

static void shm_suspend(uint32_t round)
{
	shm.round = round;
	for (uint32_t i = 0; i < shm.nhere; i++) {
		uint32_t peer = shm.here[i];
		atomic_store(stamp(shm.rank, peer), (uint64_t)round << 32 | shm.out[peer].tail);
		mailbox_ring(shm.out[peer].mailbox);
	}
}

static bool shm_drained(void)
{
	for (uint32_t i = 0; i < shm.nhere; i++) {
		uint32_t peer = shm.here[i];
		uint64_t word = atomic_load_explicit(stamp(peer, shm.rank), memory_order_acquire);
		uint32_t round = (uint32_t)(word >> 32);
		if (atomic_load_explicit(&shm.out[peer].mailbox->lost, memory_order_relaxed))
			continue; /* a dead replica: what it has left has been taken with the view
				   */
		if ((round != shm.round && round != GONE) || (uint32_t)word != shm.in[peer].cursor)
			return false;
	}
	return true;
}

static void shm_resume(bool restored)
{
	if (restored) {
		shm.rank = link_self()->process;
		memset(shm.out, 0, shm.nranks * sizeof(*shm.out));
		memset(shm.in, 0, shm.nranks * sizeof(*shm.in));
		shm_map();
		shm_barrier_open();
		shm_cma_open();
		return;
	}
	for (uint32_t peer = 0; peer < shm.nranks; peer++)
		atomic_store(stamp(shm.rank, peer), 0);
}

/* The rings stay as they are, and so do stamps: a peer that is suspended has its answer from the
 * next program. */
static bool shm_carry(struct carry *c)
{
	for (uint32_t peer = 0; peer < shm.nranks; peer++) {
		struct outgoing *out = &shm.out[peer];
		struct incoming *in = &shm.in[peer];
		carry_bytes(c, &out->tail, sizeof(out->tail));
		carry_bytes(c, &out->data_tail, sizeof(out->data_tail));
		carry_bytes(c, &in->cursor, sizeof(in->cursor));
		carry_bytes(c, &in->data_cursor, sizeof(in->data_cursor));
		carry_bytes(c, &in->told, sizeof(in->told));
		carry_bytes(c, &in->data_told, sizeof(in->data_told));
		if (c->loading)
			freed_read(out);
	}
	return true;
}

/* ---- a process that comes while others run ---- */

static void ring_clear(struct shm_ring *ring)
{
	for (uint32_t i = 0; i < SHM_SLOTS; i++)
		atomic_store_explicit(&ring->slot[i].sequence, 0, memory_order_relaxed);
	atomic_store(&ring->freed, 0);
}

static bool is_listed(uint32_t peer)
{
	for (uint32_t i = 0; i < shm.nhere; i++)
		if (shm.here[i] == peer)
			return true;
	return false;
}

/* Nobody but this process touches the rings between the two before it has answered. */
static void shm_renew(uint32_t peer)
{
	if (!shm_reaches(peer))
		return;
	struct outgoing *out = &shm.out[peer];
	struct incoming *in = &shm.in[peer];
	out->tail = out->data_tail = out->freed = out->data_freed = 0;
	in->cursor = in->data_cursor = in->told = in->data_told = 0;
	ring_clear(out->ring);
	ring_clear(in->ring);
	atomic_store(stamp(shm.rank, peer), 0);
	atomic_store(stamp(peer, shm.rank), 0);
	if (!is_listed(peer))
		shm.here[shm.nhere++] = peer;
}

const struct channel_ops channel_shm = {
    .name = "shm",
    .open = shm_open,
    .reaches = shm_reaches,
    .send = shm_send,
    .reserve = shm_reserve,
    .commit = shm_commit,
    .poll = shm_poll,
    .hurry = shm_hurry,
    .before_sleep = shm_before_sleep,
    .get = shm_cma_get,
    .put = shm_cma_put,
    .share = shm_share,
    .suspend = shm_suspend,
    .drained = shm_drained,
    .resume = shm_resume,
    .carry = shm_carry,
    .renew = shm_renew,
    .close = shm_close,
    .eager_max = &eager_max,
};
