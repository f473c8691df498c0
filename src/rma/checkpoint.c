/* SPDX-License-Identifier: BSD-3-Clause */
/* Windows around an image. Operations are whole at every safe point, so what is under way are
 * messages, which match/ keeps, and locks.
 *
 * The gate of a process is shut from when it stops for a checkpoint until it goes on: who goes on
 * earlier must not change the memory of one that is still being captured. Before its image is taken
 * everybody near has stopped (the channels' markers are in), so nobody is inside. */
#include "ckpt/rank.h"
#include "rma/internal.h"

static void windows_suspend(void)
{
	atomic_store(&rma_room_of(rma.rank)->gate, 0);
	rma_timer_stop();
}

static void windows_save(void)
{
	for (struct win *w = rma.windows; w; w = w->next)
		w->saved_lock = atomic_load(&w->words->lock) & ~(uint32_t)RMA_WAITERS;
}

/* In a new segment, which is all zeroes. */
static void window_restore(struct win *w)
{
	w->words = &rma_room_of(rma.rank)->slot[w->part.slot];
	atomic_store(&w->words->update, 0);
	atomic_store(&w->words->lock, w->saved_lock | RMA_READY);
	for (int i = 0; i < w->comm->size && w->flavor != MPI_WIN_FLAVOR_SHARED; i++) {
		struct rma_peer *p = &w->peer[i];
		if (p->seen_map)
			rma_memory_unsee(p->seen_map, p->seen_bytes);
		p->seen_map = NULL;
		p->seen = NULL;
	}
}

/* The program itself stores into such a window, so nobody goes on before its owner has. */
static void shared_restore(struct win *w, bool restored)
{
	if (w->flavor != MPI_WIN_FLAVOR_SHARED || w->comm->rank == 0)
		return;
	if (!rma_is_here(w, 0)) {
		log_warn(
		    "rank %u shares memory with rank %u (MPI_Win_allocate_shared), which is on "
		    "another node now; start them on one node (--ppn), or on as many as before",
		    rma.rank, rma_world(w, 0));
		link_abort(70);
	}
	for (int round = 0; !rma_is_open(w, 0); round++)
		link_wait_step(round);
	if (restored &&
	    !rma_memory_see(rma_world(w, 0), w->peer[0].part.offset, w->mapped_bytes, w->mapped)) {
		log_warn("rank %u can't share its window with rank %u again after the restart",
			 rma.rank, rma_world(w, 0));
		link_abort(70);
	}
}

static void windows_resume(bool restored)
{
	if (restored) {
		for (struct win *w = rma.windows; w; w = w->next)
			window_restore(w);
		rma_memory_resume();
	}
	struct segment *s = link_self()->segment;
	atomic_store(&rma_room_of(rma.rank)->gate, 1);
	for (uint32_t i = 0; i < s->nranks; i++)
		if (i != rma.rank && segment_here(s, i))
			mailbox_ring(segment_mailbox(s, i));
	for (struct win *w = rma.windows; w; w = w->next)
		shared_restore(w, restored);
	rma_timer_look();
}

void rma_checkpoint_init(void)
{
	static struct ckpt_participant participant = {
	    .name = "windows",
	    .suspend_start = windows_suspend,
	    .save = windows_save,
	    .resume = windows_resume,
	};
	ckpt_participate(&participant);
}
