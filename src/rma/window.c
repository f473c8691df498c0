/* SPDX-License-Identifier: BSD-3-Clause */
/* Windows: how they come to be, and their end. */
#include <stdlib.h>
#include <string.h>
#include "rma/internal.h"

struct rma rma = {.memory = -1};

/* Larger parts stay private: a checkpoint saves shared memory while the program stands still. */
enum { SHARED_MAX = 64 << 20 };

int rma_ready(void)
{
	if (rma.ready)
		return MPI_SUCCESS;
	rma.rank = link_self()->rank;
	/* as the channel of shared memory (channel/shm/cma.c): for tests, and for comparing */
	const char *wanted = getenv("HALE_SHM_CMA");
	rma.copies = !wanted || strcmp(wanted, "0") != 0;
	rma_checkpoint_init();
	match_progress_hook(rma_serve);
	atomic_store(&rma_room_of(rma.rank)->memory, 0); /* of the program before this one */
	atomic_store(&rma_room_of(rma.rank)->gate, 1);
	rma.ready = true;
	return MPI_SUCCESS;
}

/* ---- slots ---- */

static int rma_slot_take(uint32_t *slot)
{
	for (unsigned i = 0; i < ARRAY_LEN(rma.slots); i++) {
		if (!~rma.slots[i])
			continue;
		unsigned bit = (unsigned)__builtin_ctzl(~rma.slots[i]);
		rma.slots[i] |= 1ul << bit;
		*slot = i * 64 + bit;
		return MPI_SUCCESS;
	}
	return MPI_ERR_NO_MEM;
}

static void rma_slot_give(uint32_t slot)
{
	rma.slots[slot / 64] &= ~(1ul << slot % 64);
}

static int win_slot_take(struct win *w)
{
	int rc = rma_slot_take(&w->part.slot);
	w->slotted = !rc;
	return rc;
}

/* ---- making ---- */

static struct win *win_new(struct comm *comm, int flavor)
{
	struct win *w = heap_calloc(1, sizeof(*w));
	if (!w)
		return NULL;
	object_init(&w->obj, OBJECT_WIN);
	w->peer = heap_calloc((size_t)comm->size, sizeof(*w->peer));
	if (!w->peer) {
		heap_free(w);
		return NULL;
	}
	w->comm = comm;
	w->flavor = flavor;
	return w;
}

/* From now on a restart brings back its words, and its memory. */
static void win_list(struct win *w)
{
	w->words = &rma_room_of(rma.rank)->slot[w->part.slot];
	atomic_store(&w->words->update, 0);
	atomic_store(&w->words->lock, RMA_READY);
	w->next = rma.windows;
	rma.windows = w;
}

/* Everybody tells its part, or that it has failed. */
static int win_publish(struct win *w, int rc)
{
	struct window_said {
		struct rma_part part;
		int64_t error;
	} mine = {.part = w->part, .error = rc};
	size_t n = (size_t)w->comm->size;
	struct window_said *all = heap_alloc(n * sizeof(*all));
	struct datatype *byte = (struct datatype *)MPI_BYTE;
	if (!all)
		return MPI_ERR_NO_MEM;
	if (!rc && !w->words)
		win_list(w);
	int moved = coll_allgather(&mine, sizeof(mine), byte, all, sizeof(mine), byte, w->comm);
	for (size_t i = 0; i < n; i++) {
		w->peer[i].part = all[i].part;
		if (!rc && all[i].error)
			rc = (int)all[i].error;
	}
	heap_free(all);
	rma_timer_look();
	return rc ? rc : moved;
}

static void win_unlist(struct win *w)
{
	for (struct win **at = &rma.windows; *at; at = &(*at)->next)
		if (*at == w) {
			*at = w->next;
			return;
		}
}

static void win_drop(struct win *w)
{
	win_unlist(w);
	for (int i = 0; i < w->comm->size; i++)
		if (w->peer[i].seen_map)
			rma_memory_unsee(w->peer[i].seen_map, w->peer[i].seen_bytes);
	if (w->words)
		atomic_store(&w->words->lock, 0);
	if (w->slotted)
		rma_slot_give(w->part.slot);
	heap_free(w->started);
	heap_free(w->peer);
	w->peer = NULL;
	w->started = NULL;
	rma_timer_look();
}

static void win_memory_drop(struct win *w)
{
	if (!w->mapped)
		return;
	if (!w->part.shared)
		heap_free(w->mapped);
	else if (w->part.owner == (uint32_t)w->comm->rank)
		rma_memory_drop(w->mapped, w->mapped_bytes, w->part.offset);
	else
		rma_memory_unsee(w->mapped, w->mapped_bytes);
	w->mapped = NULL;
}

static void win_discard(struct win *w)
{
	win_memory_drop(w);
	win_drop(w);
	w->obj.kind = OBJECT_FREED;
	heap_free(w);
}

int rma_win_create(struct comm *comm, int flavor, void *base, size_t bytes, int unit,
		   struct win **out)
{
	struct win *w = rma_ready() ? NULL : win_new(comm, flavor);
	if (!w)
		return MPI_ERR_NO_MEM;
	w->base = base;
	w->part = (struct rma_part){.base = (uintptr_t)base,
				    .bytes = bytes,
				    .unit = (uint32_t)unit,
				    .owner = (uint32_t)comm->rank};
	int rc = win_publish(w, win_slot_take(w));
	if (rc) {
		win_discard(w);
		return rc;
	}
	*out = w;
	return MPI_SUCCESS;
}

/* Does anybody else of the members live here? */
static bool win_has_company(const struct win *w)
{
	for (int i = 0; i < w->comm->size; i++)
		if (i != w->comm->rank && rma_is_here(w, i))
			return true;
	return false;
}

/* A part of its own for each member. */
static int win_allocate_own(struct win *w, size_t bytes)
{
	size_t whole = ALIGN_UP(bytes ? bytes : 1, HALE_PAGE);
	int rc = win_slot_take(w);
	if (rc)
		return rc;
	w->part.shared = bytes <= SHARED_MAX && win_has_company(w);
	if (w->part.shared) {
		rc = rma_memory_make(bytes, &w->mapped, &w->part.offset);
	} else {
		w->mapped = heap_calloc(1, whole > 32768 ? whole : 65536);
		rc = w->mapped ? MPI_SUCCESS : MPI_ERR_NO_MEM;
	}
	w->mapped_bytes = bytes;
	w->base = w->mapped;
	w->part.base = (uintptr_t)w->base;
	return rc;
}

/* Everybody's part in the memory of the first member, who makes it; the others map all of it. */
static int win_allocate_shared(struct win *w, size_t bytes, bool contiguous)
{
	struct comm *c = w->comm;
	struct datatype *byte = (struct datatype *)MPI_BYTE;
	uint64_t mine = contiguous ? bytes : ALIGN_UP(bytes, HALE_PAGE), before = 0;
	uint64_t *all = heap_alloc((size_t)c->size * sizeof(*all)), total = 0;
	struct {
		uint64_t offset;
		int64_t error;
	} made = {0, MPI_SUCCESS};
	int rc = all ? win_slot_take(w) : MPI_ERR_NO_MEM, moved;
	if (!all)
		return rc;
	moved = coll_allgather(&mine, sizeof(mine), byte, all, sizeof(mine), byte, c);
	for (int i = 0; i < c->size; i++) {
		before += i < c->rank ? all[i] : 0;
		if (__builtin_add_overflow(total, all[i], &total))
			made.error = MPI_ERR_NO_MEM;
	}
	heap_free(all);
	w->mapped_bytes = total;
	w->part.shared = 1;
	w->part.owner = 0;
	if (c->rank == 0 && !rc && !made.error)
		made.error = rma_memory_make(total, &w->mapped, &w->part.offset);
	if (w->mapped) /* a checkpoint may come while the others are told */
		win_list(w);
	made.offset = w->part.offset;
	if (c->rank == 0 && rc)
		made.error = rc;
	if (!moved)
		moved = coll_bcast(&made, sizeof(made), byte, 0, c);
	if (!rc)
		rc = moved ? moved : (int)made.error;
	if (!rc && c->rank && !rma_is_here(w, 0))
		rc = MPI_ERR_RMA_SHARED;
	if (!rc && c->rank) {
		w->mapped = rma_memory_see(rma_world(w, 0), made.offset, total, NULL);
		rc = w->mapped ? MPI_SUCCESS : MPI_ERR_RMA_SHARED;
	}
	w->peer[0].part.offset = made.offset; /* a restart looks there before all have told it */
	w->base = w->mapped ? (char *)w->mapped + before : NULL;
	w->part.offset = made.offset + before;
	w->part.base = (uintptr_t)w->base;
	return rc;
}

int rma_win_allocate(struct comm *comm, int flavor, size_t bytes, int unit, bool contiguous,
		     struct win **out)
{
	struct win *w = rma_ready() ? NULL : win_new(comm, flavor);
	if (!w)
		return MPI_ERR_NO_MEM;
	w->part = (struct rma_part){.unit = (uint32_t)unit, .owner = (uint32_t)comm->rank};
	int rc = flavor == MPI_WIN_FLAVOR_SHARED ? win_allocate_shared(w, bytes, contiguous)
						 : win_allocate_own(w, bytes);
	w->part.bytes = bytes;
	rc = win_publish(w, rc);
	if (!rc && flavor == MPI_WIN_FLAVOR_SHARED)
		for (int i = 0; i < comm->size; i++)
			w->peer[i].seen =
			    (char *)w->base + (int64_t)(w->peer[i].part.offset - w->part.offset);
	if (rc) {
		win_discard(w);
		return rc;
	}
	*out = w;
	return MPI_SUCCESS;
}

/* ---- the end ---- */

static bool win_is_quiet(void *arg)
{
	const struct win *w = arg;
	return !w->pending && !w->arriving;
}

int rma_win_close(struct win *w)
{
	int rc = rma_flush(w, -1, false);
	int met = coll_barrier(w->comm);
	match_wait_until(win_is_quiet, w);
	if (!met)
		met = coll_barrier(w->comm);
	while (w->regions)
		rma_detach(w, NULL);
	win_memory_drop(w);
	win_drop(w);
	return rc ? rc : met;
}

/* Only allocate_shared promises an address for as long as the window lives: in other windows a
 * process sees its own part alone. */
int rma_shared_query(struct win *w, int rank, size_t *bytes, int *unit, void **base)
{
	bool shared = w->flavor == MPI_WIN_FLAVOR_SHARED;
	if (w->flavor == MPI_WIN_FLAVOR_DYNAMIC)
		return MPI_ERR_RMA_FLAVOR;
	for (int i = 0; rank == MPI_PROC_NULL && i < w->comm->size; i++)
		if (w->peer[i].part.bytes && (shared || i == w->comm->rank))
			rank = i;
	bool seen = rank != MPI_PROC_NULL && (shared || rank == w->comm->rank);
	const struct rma_peer *p = seen ? &w->peer[rank] : NULL;
	*bytes = p ? p->part.bytes : 0;
	*unit = p ? (int)p->part.unit : 1;
	*base = !*bytes ? NULL : shared ? p->seen : w->base;
	return MPI_SUCCESS;
}

/* ---- what dynamic windows reach ---- */

struct rma_region {
	struct rma_region *next;
	uint64_t base, bytes;
};

bool rma_inside(const struct win *w, uint64_t address, size_t low, size_t high)
{
	if (w->flavor != MPI_WIN_FLAVOR_DYNAMIC)
		return address + low >= w->part.base &&
		       address + high <= w->part.base + w->part.bytes;
	for (const struct rma_region *r = w->regions; r; r = r->next)
		if (address + low >= r->base && address + high <= r->base + r->bytes)
			return true;
	return false;
}

int rma_attach(struct win *w, void *base, size_t bytes)
{
	uint64_t at = (uintptr_t)base;
	if (w->flavor != MPI_WIN_FLAVOR_DYNAMIC)
		return MPI_ERR_RMA_FLAVOR;
	for (const struct rma_region *r = w->regions; r; r = r->next)
		if (bytes && at < r->base + r->bytes && r->base < at + bytes)
			return MPI_ERR_RMA_ATTACH;
	struct rma_region *r = heap_alloc(sizeof(*r));
	if (!r)
		return MPI_ERR_NO_MEM;
	*r = (struct rma_region){w->regions, at, bytes};
	w->regions = r;
	return MPI_SUCCESS;
}

/* base NULL: any. */
int rma_detach(struct win *w, const void *base)
{
	for (struct rma_region **at = &w->regions; *at; at = &(*at)->next)
		if (!base || (*at)->base == (uintptr_t)base) {
			struct rma_region *r = *at;
			*at = r->next;
			heap_free(r);
			return MPI_SUCCESS;
		}
	return w->flavor == MPI_WIN_FLAVOR_DYNAMIC ? MPI_ERR_BASE : MPI_ERR_RMA_FLAVOR;
}
