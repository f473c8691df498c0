/* SPDX-License-Identifier: BSD-3-Clause */
/* Homes, deposits, arrivals and waiting: what the operations over shared cells are made of. */
#include "coll/cells/cells.h"

#include <sched.h>
#include "base/yield.h"
#include "ckpt/guard.h"
#include "coll/coll.h"
#include "coll/schedule.h"

struct coll_home coll_homes[COLL_SHARED_CONTEXTS];
unsigned coll_epoch;

/* How long a wait looks at the word in each manner before it goes on to the next: pausing (only
 * where every rank has a core), yielding, sleeping. From measurements on two cores: who has slept
 * comes back late, so waiting for a vector of a MiB should not come to it. */
enum { SPIN_NS = 20000, YIELD_NS = 500000, ROUNDS_A_LOOK = 8, ROUNDS_A_SCHEDULE = 2 };

/* Headers that cells_publish_ring is ahead with. */
enum { AHEAD = 4 };

static struct coll_cell *cell_at(unsigned context, uint32_t world)
{
	struct segment *s = link_self()->segment;
	return (struct coll_cell *)((char *)s + s->coll_offset) + (size_t)context * s->nranks +
	       world;
}

/* ---- waiting ---- */

struct awaited {
	const _Atomic uint64_t *word;
	uint64_t value;
};

static bool awaited_reached(void *arg)
{
	const struct awaited *a = arg;
	return cells_reached(a->word, a->value);
}

/* Outside the library meanwhile, so that other threads of the process get on. */
static void wait_asleep(const _Atomic uint64_t *word, uint64_t value)
{
	struct awaited a = {word, value};
	match_sleep(awaited_reached, &a);
}

static bool spin(const _Atomic uint64_t *word, uint64_t value)
{
	for (int i = 0; i < 64; i++) {
		if (cells_reached(word, value))
			return true;
		cpu_relax();
	}
	return false;
}

bool cells_wait_epoch(const _Atomic uint64_t *word, uint64_t value, unsigned epoch)
{
	bool crowded = cells_crowded() || yield_is_dear();
	uint64_t begun = 0, waited = 0;
	struct yields yields = {0};
	if (UNLIKELY(cells_mirrored))
		cells_mirror_tell_all();
	for (unsigned round = 1;; round++) {
		if (!crowded && waited < SPIN_NS) {
			if (spin(word, value))
				return true;
		} else if (waited >= YIELD_NS || !yield_core(&yields)) {
			wait_asleep(word, value);
			yields = (struct yields){0};
			if (UNLIKELY(coll_epoch != epoch))
				return cells_reached(cells_mirror_word(word), value);
		}
		if (cells_reached(word, value))
			return true;
		match_call_long();
		/* a schedule of this process may be what the others wait for */
		unsigned look = schedule_under_way() ? ROUNDS_A_SCHEDULE : ROUNDS_A_LOOK;
		if (round % look == 0 && waited < YIELD_NS) {
			uint64_t now = clock_ns();
			begun = begun ? begun : now;
			waited = now - begun;
			if (match_progress())
				yields = (struct yields){0};
		}
		guard_safe_point();
		if (UNLIKELY(coll_epoch != epoch))
			return cells_reached(cells_mirror_word(word), value);
	}
}

/* A word whose owner writes it again after a restore: only the time is longer. */
void cells_wait_slow(const _Atomic uint64_t *word, uint64_t value)
{
	while (!cells_wait_epoch(word, value, coll_epoch))
		word = cells_mirror_word(word);
}

void cells_ring(const struct coll_home *h)
{
	for (int i = 0; i < h->n; i++) {
		if (i != h->rank)
			mailbox_wake(h->mail[i]);
	}
}

void cells_wait_all(struct coll_home *h, uint64_t value)
{
	for (int i = 0; i < h->n; i++)
		if (i != h->rank)
			cells_wait(&h->cells[i]->progress, value);
}

void cells_wait_deposits(struct coll_home *h, uint64_t k, int hi)
{
	unsigned epoch;
	do {
		epoch = coll_epoch;
		for (int i = 0; i < hi; i++)
			if (i != h->rank)
				cells_wait(&cells_header(h, i, k)->seq, k);
	} while (epoch != coll_epoch);
}

struct way_order cells_order(const struct coll_home *h, struct way_plan *plans, unsigned kinds,
			     size_t bytes)
{
	unsigned size = way_size(bytes);
	struct way_plan *p = &plans[size];
	if (UNLIKELY(way_due(p))) {
		uint64_t cost[WAYS] = {0};
		for (way_t way = 0; way < WAYS; way++)
			for (int i = 0; i < h->n; i++)
				cost[way] += way_cost(&h->cells[i]->costs, kinds, size, way);
		way_weigh(p, cost[WAY_PIECES], cost[WAY_SINGLE]);
	}
	return way_next(p);
}

/* Until all are done with k; learns how far they are. */
static void wait_done(struct coll_home *h, uint64_t k)
{
	cells_wait_all(h, cells_done(k));
	uint64_t least = h->progress;
	for (int i = 0; i < h->n; i++) {
		uint64_t at = i == h->rank ? h->progress
					   : atomic_load_explicit(&h->cells[i]->progress,
								  memory_order_acquire);
		least = at < least ? at : least;
	}
	if (least / COLL_STAGES > h->known_done + 1)
		h->known_done = least / COLL_STAGES - 1;
}

/* ---- deposits ---- */

/* For the rest of its bundle too (cells_finish_small): nothing in it waits for this process. */
void cells_header_wait(struct coll_home *h, uint64_t k)
{
	_Static_assert((int)COLL_BUNDLE < (int)COLL_CELL_HEADERS,
		       "all of a bundle is deposited already");
	wait_done(h, ALIGN_UP(k - COLL_CELL_HEADERS, (uint64_t)COLL_BUNDLE));
}

static void payloads_reclaim(struct coll_home *h)
{
	while (h->payloads && h->payload[h->first].seq <= h->known_done) {
		h->tail = h->payload[h->first].end;
		h->first = (h->first + 1) % COLL_CELL_HEADERS;
		h->payloads--;
	}
	if (!h->payloads)
		h->tail = h->head;
}

char *cells_room_slow(struct coll_home *h, uint64_t k, size_t bytes)
{
	uint64_t need = ALIGN_UP(bytes, CACHE_LINE), at;
	for (;;) {
		payloads_reclaim(h);
		uint64_t in = h->head % COLL_CELL_RING;
		at = in && in + need > h->lap ? h->head + COLL_CELL_RING - in : h->head;
		if (at + need - h->tail <= COLL_CELL_RING && h->payloads < COLL_CELL_HEADERS)
			break;
		wait_done(h, h->payload[h->first].seq);
	}
	unsigned last = (h->first + h->payloads++) % COLL_CELL_HEADERS;
	h->head = at + need;
	h->payload[last].seq = k;
	h->payload[last].end = h->head;
	atomic_store_explicit(&cells_header(h, h->rank, k)->offset, at % COLL_CELL_RING,
			      memory_order_relaxed);
	return h->cell->ring + at % COLL_CELL_RING;
}

void cells_publish_ring(struct coll_home *h, uint64_t k)
{
	/* An exchange stands still until the line is here. A root that runs ahead takes back those
	 * that its readers have left behind before it needs them. */
	__builtin_prefetch(cells_header(h, h->rank, k + AHEAD), 1);
	atomic_exchange_explicit(&cells_header(h, h->rank, k)->seq, k, memory_order_seq_cst);
	cells_ring(h);
}

void cells_stage_ring(struct coll_home *h, uint64_t value)
{
	h->progress = value;
	atomic_exchange_explicit(&h->cell->progress, value, memory_order_seq_cst);
	cells_ring(h);
}

/* ---- arrivals ---- */

/* This process comes to k. Have as many come on this core as last time? Then nobody here can do
 * anything but wait for another core. */
static bool core_complete(struct coll_cell *lead, uint64_t k)
{
	struct coll_core *c = &lead->core[(unsigned)sched_getcpu() % COLL_CORES];
	uint32_t come = atomic_load_explicit(&c->come, memory_order_relaxed);
	if (atomic_load_explicit(&c->seq, memory_order_relaxed) != k) {
		atomic_store_explicit(&c->seq, k, memory_order_relaxed);
		atomic_store_explicit(&c->came, come, memory_order_relaxed);
		come = 0;
	}
	atomic_store_explicit(&c->come, come + 1, memory_order_relaxed);
	return come + 1 >= atomic_load_explicit(&c->came, memory_order_relaxed);
}

/* Arrivals are not restored but made again, each by the process that is still waiting: so none is
 * lost or counted twice, in whatever order the processes come back. Whether the operation had
 * completed before the checkpoint was seen by everybody while all stood still. */
bool cells_arrive(struct coll_home *h, uint64_t k)
{
	while (LIKELY(!h->mirror)) {
		struct coll_cell *lead = h->cells[0];
		bool alone = cells_crowded() && core_complete(lead, k);
		uint32_t before =
		    atomic_fetch_add_explicit(&lead->arrivals, 1, memory_order_acq_rel);
		if (before + 1 == (uint32_t)h->n) {
			atomic_store_explicit(&lead->arrivals, 0, memory_order_relaxed);
			return true;
		}
		if (alone && spin(&lead->completed, k << 16))
			return false;
		do {
			if (cells_wait_epoch(&lead->completed, k << 16, coll_epoch))
				return false;
		} while (!h->mirror && h->frozen_completed >> 16 >= k);
	}
	return cells_mirror_arrive(h, k);
}

void cells_complete(struct coll_home *h, uint64_t k)
{
	atomic_exchange_explicit(&h->cells[0]->completed, k << 16 | (uint64_t)h->rank,
				 memory_order_seq_cst);
	cells_ring(h);
}

/* ---- homes ---- */

void cells_home_free(struct coll_home *h)
{
	if (h->mirror)
		cells_mirror_end(h);
	heap_free(h->world);
	heap_free(h->cells);
	heap_free(h->mail);
	heap_free(h->saved);
	heap_free(h->frozen_progress);
	h->world = NULL;
	h->cells = NULL;
	h->mail = NULL;
	h->saved = NULL;
	h->frozen_progress = NULL;
	h->n = 0;
}

void cells_home_vacate(struct coll_home *h)
{
	if (!h->n)
		return;
	if (h->mirror)
		cells_mirror_tell(h);
	cells_wait_all(h, cells_done(h->seq));
	cells_home_free(h);
}

bool cells_home_occupy(struct coll_home *h, const struct comm *c)
{
	unsigned context = c->context / COMM_CONTEXTS;
	size_t n = 0;
	for (int i = 0; i < c->size; i++)
		n += segment_here(link_self()->segment, (uint32_t)c->group->world[i]);
	h->world = heap_alloc(n * sizeof(*h->world));
	h->cells = heap_alloc(n * sizeof(*h->cells));
	h->mail = heap_alloc(n * sizeof(*h->mail));
	h->saved = heap_alloc(sizeof(*h->saved));
	h->frozen_progress = heap_alloc(n * sizeof(*h->frozen_progress));
	if (!h->world || !h->cells || !h->mail || !h->saved || !h->frozen_progress) {
		cells_home_free(h);
		return false;
	}
	h->n = 0;
	for (int i = 0; i < c->size; i++) {
		uint32_t world = (uint32_t)c->group->world[i];
		if (!segment_here(link_self()->segment, world))
			continue;
		if (i == c->rank)
			h->rank = h->n;
		h->world[h->n] = (int)world;
		h->cells[h->n] = cell_at(context, world);
		h->mail[h->n] = segment_mailbox(link_self()->segment, world);
		h->n++;
	}
	h->cell = h->cells[h->rank];
	h->first = h->payloads = 0;
	h->head = h->tail = 0;
	h->lap = COLL_CELL_RING;
	memset(h->bcast_plan, 0, sizeof(h->bcast_plan));
	memset(h->reduce_plan, 0, sizeof(h->reduce_plan));
	memset(h->reduce_order, 0, sizeof(h->reduce_order));
	memset(&h->cell->costs, 0, sizeof(h->cell->costs));
	h->frozen_completed = 0;
	return true;
}
