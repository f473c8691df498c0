/* SPDX-License-Identifier: BSD-3-Clause */
/* Active targets: fence, and post-start-complete-wait. */
#include <string.h>
#include "rma/internal.h"

int rma_fence(struct win *w, int assertion)
{
	if (w->exposed || w->locks ||
	    (w->access != RMA_ACCESS_NONE && w->access != RMA_ACCESS_FENCE))
		return MPI_ERR_RMA_SYNC;
	int rc = assertion & MPI_MODE_NOPRECEDE ? MPI_SUCCESS : rma_flush(w, -1, false);
	atomic_thread_fence(memory_order_seq_cst);
	int met = coll_barrier(w->comm);
	w->access = assertion & MPI_MODE_NOSUCCEED ? RMA_ACCESS_NONE : RMA_ACCESS_FENCE;
	w->fence_used = false;
	return rc ? rc : met;
}

/* ---- the origin's side ---- */

static bool posts_came(void *arg)
{
	const struct win *w = arg;
	for (int i = 0; i < w->nstarted; i++)
		if (!w->peer[w->started[i]].posts)
			return false;
	return true;
}

int rma_start(struct win *w, const int *ranks, int n, int assertion)
{
	if ((w->access == RMA_ACCESS_FENCE && w->fence_used) || w->access > RMA_ACCESS_FENCE)
		return MPI_ERR_RMA_SYNC;
	heap_free(w->started);
	w->started = heap_alloc((size_t)(n ? n : 1) * sizeof(int));
	w->nstarted = w->started ? n : 0;
	if (!w->started)
		return MPI_ERR_NO_MEM;
	memcpy(w->started, ranks, (size_t)n * sizeof(int));
	match_wait_until(posts_came, w);
	for (int i = 0; i < n; i++) {
		w->peer[ranks[i]].posts--;
		w->peer[ranks[i]].started = true;
	}
	w->access = RMA_ACCESS_START;
	return MPI_SUCCESS;
}

static bool sent_all(void *arg)
{
	const struct win *w = arg;
	for (int i = 0; i < w->nstarted; i++)
		if (w->peer[w->started[i]].pending)
			return false;
	return true;
}

int rma_complete(struct win *w)
{
	struct rma_am am = {.kind = RMA_AM_COMPLETE};
	int rc = MPI_SUCCESS;
	if (w->access != RMA_ACCESS_START)
		return MPI_ERR_RMA_SYNC;
	atomic_thread_fence(memory_order_seq_cst);
	/* what a get reads the target may change as soon as it hears of the end */
	match_wait_until(sent_all, w);
	for (int i = 0; i < w->nstarted; i++) {
		struct rma_peer *p = &w->peer[w->started[i]];
		int told;
		/* behind everything else, and the target does all in order */
		if (p->unflushed) {
			told = rma_confirm_ask(w, w->started[i], RMA_AM_FLUSH);
			if (!told)
				told = rma_confirm_wait(w, w->started[i]);
			rc = rc ? rc : told;
		}
		told = rma_tell(w, w->started[i], &am);
		p->started = false;
		rc = rc ? rc : told;
	}
	match_wait_until(sent_all, w);
	w->access = RMA_ACCESS_NONE;
	return rc;
}

/* ---- the target's side ---- */

int rma_post(struct win *w, const int *ranks, int n, int assertion)
{
	struct rma_am am = {.kind = RMA_AM_POST};
	int rc = MPI_SUCCESS;
	if (w->exposed)
		return MPI_ERR_RMA_SYNC;
	atomic_thread_fence(memory_order_seq_cst);
	w->exposed = true;
	w->awaited = (uint32_t)n;
	for (int i = 0; i < n && !rc; i++)
		rc = rma_tell(w, ranks[i], &am);
	return rc;
}

static bool completes_came(void *arg)
{
	const struct win *w = arg;
	return w->completes >= w->awaited;
}

static void exposure_end(struct win *w)
{
	w->completes -= w->awaited;
	w->awaited = 0;
	w->exposed = false;
	atomic_thread_fence(memory_order_seq_cst);
}

int rma_wait(struct win *w)
{
	if (!w->exposed)
		return MPI_ERR_RMA_SYNC;
	match_wait_until(completes_came, w);
	exposure_end(w);
	return MPI_SUCCESS;
}

int rma_test(struct win *w, int *flag)
{
	if (!w->exposed)
		return MPI_ERR_RMA_SYNC;
	if (!completes_came(w))
		match_progress();
	*flag = completes_came(w);
	if (*flag)
		exposure_end(w);
	return MPI_SUCCESS;
}
