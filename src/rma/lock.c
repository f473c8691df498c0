/* SPDX-License-Identifier: BSD-3-Clause */
/* Passive targets: locks, and flush. A lock of a part on this node is one word in the segment; of
 * one elsewhere a message, for which the target takes that same word. An owner's word is in its
 * image, so locks are held across checkpoints, whoever lives where afterwards. */
#include "rma/internal.h"

enum { LOCK_COUNT = 0x00ffffff };

/* ---- the word ---- */

bool rma_lock_try(struct rma_words *words, int type)
{
	uint32_t was = atomic_load_explicit(&words->lock, memory_order_relaxed), next;
	do {
		if (!(was & RMA_READY))
			return false;
		if (was & RMA_EXCLUSIVE || (type == MPI_LOCK_EXCLUSIVE && was & LOCK_COUNT)) {
			if (!(was & RMA_WAITERS))
				atomic_fetch_or(&words->lock, RMA_WAITERS);
			/* it may have been given back just before */
			uint32_t now = atomic_load(&words->lock);
			if (now == (was | RMA_WAITERS))
				return false;
			was = now;
			continue;
		}
		next = type == MPI_LOCK_EXCLUSIVE ? was | RMA_EXCLUSIVE : was + 1;
		if (atomic_compare_exchange_weak_explicit(
			&words->lock, &was, next, memory_order_acquire, memory_order_relaxed))
			return true;
	} while (true);
}

void rma_lock_give(struct win *w, struct rma_words *words, int type)
{
	uint32_t was = atomic_load(&words->lock), next;
	do {
		next = (type == MPI_LOCK_EXCLUSIVE ? was & ~(uint32_t)RMA_EXCLUSIVE : was - 1) &
		       ~(uint32_t)RMA_WAITERS;
	} while (!atomic_compare_exchange_weak_explicit(
	    &words->lock, &was, next, memory_order_release, memory_order_relaxed));
	if (!(was & RMA_WAITERS))
		return;
	for (int i = 0; i < w->comm->size; i++)
		if (i != w->comm->rank && rma_is_here(w, i))
			mailbox_ring(segment_mailbox(link_self()->segment, rma_world(w, i)));
}

/* ---- taking ---- */

struct lock_wish {
	struct win *w;
	int target, type;
	bool asked, taken;
	int error;
};

/* One try, unless it has been taken already: a waiting loop may ask again. The target may live
 * elsewhere at the next. */
static bool lock_taken(void *arg)
{
	struct lock_wish *l = arg;
	struct win *w = l->w;
	struct rma_peer *p = &w->peer[l->target];
	if (l->asked || l->error)
		return p->granted || l->error;
	if (l->taken)
		return true;
	if (l->target == w->comm->rank)
		return l->taken = rma_lock_try(w->words, l->type);
	if (rma_is_here(w, l->target) && !p->unflushed)
		return l->taken = rma_is_open(w, l->target) &&
				  rma_lock_try(rma_words_of(w, l->target), l->type);
	struct rma_am am = {.kind = RMA_AM_LOCK, .type = (uint8_t)l->type};
	p->granted = false;
	l->asked = true;
	l->error = rma_tell(w, l->target, &am);
	return false;
}

static int lock_take(struct win *w, int target, int type, int assertion)
{
	struct lock_wish wish = {.w = w, .target = target, .type = type};
	struct rma_peer *p = &w->peer[target];
	if (!(assertion & MPI_MODE_NOCHECK) && !lock_taken(&wish))
		match_wait_until(lock_taken, &wish);
	if (wish.error)
		return wish.error;
	p->lock = (uint8_t)type;
	p->lock_checked = !(assertion & MPI_MODE_NOCHECK);
	return MPI_SUCCESS;
}

int rma_lock(struct win *w, int type, int target, int assertion)
{
	if (target == MPI_PROC_NULL)
		target = -1;
	else if (w->peer[target].lock)
		return MPI_ERR_RMA_SYNC;
	if ((w->access == RMA_ACCESS_FENCE && w->fence_used) || w->access == RMA_ACCESS_START ||
	    w->access == RMA_ACCESS_ALL)
		return MPI_ERR_RMA_SYNC;
	int rc = target < 0 ? MPI_SUCCESS : lock_take(w, target, type, assertion);
	if (rc)
		return rc;
	w->access = RMA_ACCESS_LOCK;
	w->locks++;
	return MPI_SUCCESS;
}

int rma_lock_all(struct win *w, int assertion)
{
	if ((w->access == RMA_ACCESS_FENCE && w->fence_used) || w->access > RMA_ACCESS_FENCE)
		return MPI_ERR_RMA_SYNC;
	for (int i = 0; i < w->comm->size; i++) {
		/* in the same order at all, so that nobody waits in a circle */
		int rc = lock_take(w, i, MPI_LOCK_SHARED, assertion);
		if (rc)
			return rc;
	}
	w->access = RMA_ACCESS_ALL;
	return MPI_SUCCESS;
}

/* ---- giving back ---- */

static bool nothing_pending(void *arg)
{
	return !((const struct rma_peer *)arg)->pending;
}

struct gate_wish {
	struct win *w;
	int target;
};

static bool lock_reachable(void *arg)
{
	const struct gate_wish *g = arg;
	return !rma_is_here(g->w, g->target) || rma_is_open(g->w, g->target);
}

static int lock_release(struct win *w, int target)
{
	struct rma_peer *p = &w->peer[target];
	struct gate_wish gate = {w, target};
	int type = p->lock;
	p->lock = 0;
	if (!p->lock_checked)
		return rma_flush(w, target, false);
	if (target == w->comm->rank) {
		rma_lock_give(w, w->words, type);
		return MPI_SUCCESS;
	}
	while (!p->pending && !p->unflushed && rma_is_here(w, target)) {
		if (rma_is_open(w, target)) {
			rma_lock_give(w, rma_words_of(w, target), type);
			return MPI_SUCCESS;
		}
		match_wait_until(lock_reachable, &gate);
	}
	/* what a get reads others may change as soon as the lock is given back */
	match_wait_until(nothing_pending, p);
	struct rma_am am = {.kind = RMA_AM_UNLOCK, .type = (uint8_t)type};
	p->asked++;
	int rc = rma_tell(w, target, &am);
	return rc ? rc : rma_confirm_wait(w, target);
}

int rma_unlock(struct win *w, int target)
{
	if (w->access != RMA_ACCESS_LOCK || (target != MPI_PROC_NULL && !w->peer[target].lock))
		return MPI_ERR_RMA_SYNC;
	int rc = target == MPI_PROC_NULL ? MPI_SUCCESS : lock_release(w, target);
	if (--w->locks == 0)
		w->access = RMA_ACCESS_NONE;
	return rc;
}

int rma_unlock_all(struct win *w)
{
	int rc = MPI_SUCCESS;
	if (w->access != RMA_ACCESS_ALL)
		return MPI_ERR_RMA_SYNC;
	for (int i = 0; i < w->comm->size; i++) {
		int gave = lock_release(w, i);
		rc = rc ? rc : gave;
	}
	w->access = RMA_ACCESS_NONE;
	return rc;
}

/* ---- flush ---- */

struct local_wish {
	const struct win *w;
	int target;
};

static bool local_done(void *arg)
{
	const struct local_wish *l = arg;
	for (int i = 0; i < l->w->comm->size; i++)
		if ((l->target < 0 || i == l->target) && l->w->peer[i].pending)
			return false;
	return true;
}

bool rma_is_pending(const struct win *w, int target)
{
	struct local_wish wish = {w, target};
	return target != MPI_PROC_NULL && !local_done(&wish);
}

int rma_flush(struct win *w, int target, bool local)
{
	struct local_wish wish = {w, target};
	int first = target < 0 ? 0 : target, end = target < 0 ? w->comm->size : target + 1, rc = 0;
	if (target == MPI_PROC_NULL)
		return MPI_SUCCESS;
	if (!local_done(&wish))
		match_wait_until(local_done, &wish);
	if (local)
		return MPI_SUCCESS;
	for (int i = first; i < end && !rc; i++)
		if (w->peer[i].unflushed)
			rc = rma_confirm_ask(w, i, RMA_AM_FLUSH);
	for (int i = first; i < end; i++) {
		int fault = w->peer[i].unflushed ? rma_confirm_wait(w, i) : w->peer[i].fault;
		if (!w->peer[i].unflushed && i != w->comm->rank)
			w->peer[i].fault = MPI_SUCCESS;
		rc = rc ? rc : fault;
	}
	return rc;
}

int rma_sync(struct win *w)
{
	atomic_thread_fence(memory_order_seq_cst);
	match_progress();
	return MPI_SUCCESS;
}
