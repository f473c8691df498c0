/* SPDX-License-Identifier: BSD-3-Clause */
/* Checkpoints of shared cells (seed 001, 2.3.2-2.3.3; docs/collectives.md; the model of it is
 * docs/models/rtc_ctc.pml).
 *
 * `save` runs when every process of the node has stopped, so all words stand still. Each process
 * copies of its own cell what another member may still need: deposits that not all are done with,
 * and the leader the word that announces results. In the same segment nothing more is to do. After
 * a restore each process writes its part into the new, zeroed cell before it goes on. A member
 * that comes to that cell earlier finds zeroes and waits. Arrivals are made again by whoever still
 * waits (cells_arrive).
 */
#include "coll/cells/cells.h"

#include "coll/coll.h"

/* Returns the number below which all operations are done by all. */
static uint64_t progress_save(struct coll_home *h)
{
	uint64_t least = UINT64_MAX;
	for (int i = 0; i < h->n; i++) {
		uint64_t at = atomic_load_explicit(&h->cells[i]->progress, memory_order_acquire);
		h->frozen_progress[i] = i == h->rank ? h->progress : at;
		least = at < least ? at : least;
	}
	return least / COLL_STAGES;
}

/* Its owner may be back already, and further. */
static void progress_restore(struct coll_home *h)
{
	for (int i = 0; i < h->n; i++) {
		_Atomic uint64_t *word = &h->cells[i]->progress;
		uint64_t now = atomic_load_explicit(word, memory_order_acquire);
		while (now < h->frozen_progress[i] &&
		       !atomic_compare_exchange_weak_explicit(word, &now, h->frozen_progress[i],
							      memory_order_acq_rel,
							      memory_order_acquire))
			;
	}
}

static void header_copy(struct coll_cell *to, const struct coll_cell *from, int i)
{
	const struct coll_header *f = &from->header[i];
	struct coll_header *t = &to->header[i];
	t->bytes = f->bytes;
	t->address = f->address;
	t->offset = f->offset;
	memcpy(t->small, f->small, sizeof(t->small));
	if (!f->address && f->bytes > COLL_HEADER_SMALL)
		memcpy(to->ring + f->offset, from->ring + f->offset, f->bytes);
	atomic_store_explicit(&t->seq, f->seq, memory_order_release);
}

static void home_save(struct coll_home *h)
{
	const struct coll_cell *lead = h->cells[0];
	uint64_t done = progress_save(h);
	h->frozen_completed = lead->completed;
	h->saved->completed = lead->completed;
	memcpy(h->saved->result, lead->result, sizeof(lead->result));
	for (int i = 0; i < COLL_CELL_HEADERS; i++) {
		h->saved->header[i].seq = 0;
		if (h->cell->header[i].seq >= done)
			header_copy(h->saved, h->cell, i);
	}
}

static bool home_here(const struct coll_home *h)
{
	for (int i = 0; i < h->n; i++)
		if (!segment_here(link_self()->segment, (uint32_t)h->world[i]))
			return false;
	return true;
}

/* Into the cell in the new segment, or in private memory, if its members live apart now. */
static void home_restore(struct coll_home *h)
{
	if (!home_here(h))
		cells_mirror_begin(h);
	for (int i = 0; i < COLL_CELL_HEADERS; i++)
		if (h->saved->header[i].seq)
			header_copy(h->cell, h->saved, i);
	if (h->rank == 0) {
		memcpy(h->cell->result, h->saved->result, sizeof(h->cell->result));
		atomic_store_explicit(&h->cell->completed, h->saved->completed,
				      memory_order_release);
	}
	progress_restore(h);
	h->cell->probe = (uintptr_t)&coll_probe_word;
	atomic_thread_fence(memory_order_seq_cst);
	cells_ring(h);
}

void cells_save(void)
{
	for (unsigned i = 0; i < COLL_SHARED_CONTEXTS; i++)
		if (coll_homes[i].n && !coll_homes[i].mirror)
			home_save(&coll_homes[i]);
}

void cells_resume(bool restored)
{
	if (!restored)
		return;
	coll_epoch++;
	for (unsigned i = 0; i < COLL_SHARED_CONTEXTS; i++)
		if (coll_homes[i].n && !coll_homes[i].mirror)
			home_restore(&coll_homes[i]);
}
