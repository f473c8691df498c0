/* SPDX-License-Identifier: BSD-3-Clause */
/* Epochs: fence, post-start-complete-wait, locks, flushes. */
#include "mpi/win/win.h"

enum {
	WIN_ASSERT_FENCE =
	    MPI_MODE_NOSTORE | MPI_MODE_NOPUT | MPI_MODE_NOPRECEDE | MPI_MODE_NOSUCCEED,
	WIN_ASSERT_POST = MPI_MODE_NOCHECK | MPI_MODE_NOSTORE | MPI_MODE_NOPUT,
};

int PMPI_Win_fence(int assertion, MPI_Win win)
{
	WIN_ENTER("MPI_Win_fence", w, win);
	if (assertion & ~WIN_ASSERT_FENCE)
		return WIN_LEAVE(w, MPI_ERR_ASSERT);
	int rc;
	if (!win_again(w, &rc))
		rc = win_over(w, rma_fence(w, assertion));
	return WIN_LEAVE(w, rc);
}
API_ALIAS(Win_fence);

/* The group's members as ranks of the window; *ranks is the caller's. */
static int group_ranks(const struct win *w, MPI_Group group, int **ranks, int *n)
{
	const struct group *g = group_of(group);
	*ranks = NULL;
	if (!group_ok(g))
		return MPI_ERR_GROUP;
	*n = g->size;
	*ranks = heap_alloc((size_t)(g->size ? g->size : 1) * sizeof(int));
	if (!*ranks)
		return MPI_ERR_NO_MEM;
	for (int i = 0; i < g->size; i++) {
		(*ranks)[i] = group_find(w->comm->group, g->world[i]);
		if ((*ranks)[i] == MPI_UNDEFINED)
			return MPI_ERR_GROUP;
	}
	return MPI_SUCCESS;
}

int PMPI_Win_start(MPI_Group group, int assertion, MPI_Win win)
{
	WIN_ENTER("MPI_Win_start", w, win);
	int *ranks, n, rc = group_ranks(w, group, &ranks, &n);
	if (!rc && assertion & ~MPI_MODE_NOCHECK)
		rc = MPI_ERR_ASSERT;
	if (!rc && !win_again(w, &rc))
		rc = win_done(w, rma_start(w, ranks, n, assertion));
	heap_free(ranks);
	return WIN_LEAVE(w, rc);
}
API_ALIAS(Win_start);

int PMPI_Win_complete(MPI_Win win)
{
	WIN_ENTER("MPI_Win_complete", w, win);
	int rc;
	if (!win_again(w, &rc))
		rc = win_over(w, rma_complete(w));
	return WIN_LEAVE(w, rc);
}
API_ALIAS(Win_complete);

int PMPI_Win_post(MPI_Group group, int assertion, MPI_Win win)
{
	WIN_ENTER("MPI_Win_post", w, win);
	int *ranks, n, rc = group_ranks(w, group, &ranks, &n);
	if (!rc && assertion & ~WIN_ASSERT_POST)
		rc = MPI_ERR_ASSERT;
	if (!rc && !win_again(w, &rc))
		rc = win_done(w, rma_post(w, ranks, n, assertion));
	heap_free(ranks);
	return WIN_LEAVE(w, rc);
}
API_ALIAS(Win_post);

int PMPI_Win_wait(MPI_Win win)
{
	WIN_ENTER("MPI_Win_wait", w, win);
	int rc;
	if (!win_again(w, &rc))
		rc = win_done(w, rma_wait(w));
	return WIN_LEAVE(w, rc);
}
API_ALIAS(Win_wait);

int PMPI_Win_test(MPI_Win win, int *flag)
{
	WIN_ENTER("MPI_Win_test", w, win);
	int rc;
	if (!flag)
		return WIN_LEAVE(w, MPI_ERR_ARG);
	if (win_again(w, &rc)) {
		*flag = 1;
		return WIN_LEAVE(w, rc);
	}
	rc = rma_test(w, flag);
	return WIN_LEAVE(w, rc || *flag ? win_done(w, rc) : rc);
}
API_ALIAS(Win_test);

int PMPI_Win_lock(int lock_type, int rank, int assertion, MPI_Win win)
{
	WIN_ENTER("MPI_Win_lock", w, win);
	int rc = win_check_rank(w, rank);
	if (!rc && lock_type != MPI_LOCK_EXCLUSIVE && lock_type != MPI_LOCK_SHARED)
		rc = MPI_ERR_LOCKTYPE;
	if (!rc && assertion & ~MPI_MODE_NOCHECK)
		rc = MPI_ERR_ASSERT;
	if (!rc && !win_again(w, &rc))
		rc = win_done(w, rma_lock(w, lock_type, rank, assertion));
	return WIN_LEAVE(w, rc);
}
API_ALIAS(Win_lock);

int PMPI_Win_unlock(int rank, MPI_Win win)
{
	WIN_ENTER("MPI_Win_unlock", w, win);
	int rc = win_check_rank(w, rank);
	if (!rc && !win_again(w, &rc))
		rc = win_over(w, rma_unlock(w, rank));
	return WIN_LEAVE(w, rc);
}
API_ALIAS(Win_unlock);

int PMPI_Win_lock_all(int assertion, MPI_Win win)
{
	WIN_ENTER("MPI_Win_lock_all", w, win);
	if (assertion & ~MPI_MODE_NOCHECK)
		return WIN_LEAVE(w, MPI_ERR_ASSERT);
	int rc;
	if (!win_again(w, &rc))
		rc = win_done(w, rma_lock_all(w, assertion));
	return WIN_LEAVE(w, rc);
}
API_ALIAS(Win_lock_all);

int PMPI_Win_unlock_all(MPI_Win win)
{
	WIN_ENTER("MPI_Win_unlock_all", w, win);
	int rc;
	if (!win_again(w, &rc))
		rc = win_over(w, rma_unlock_all(w));
	return WIN_LEAVE(w, rc);
}
API_ALIAS(Win_unlock_all);

/* In a passive epoch, of that target (-1: all)? */
static int flush(struct win *w, int rank, bool local)
{
	int rc = rank == -1 ? MPI_SUCCESS : win_check_rank(w, rank);
	if (rc || win_again(w, &rc))
		return rc;
	if (w->access != RMA_ACCESS_LOCK && w->access != RMA_ACCESS_ALL)
		return win_done(w, MPI_ERR_RMA_SYNC);
	return win_over(w, rma_flush(w, rank, local));
}

int PMPI_Win_flush(int rank, MPI_Win win)
{
	WIN_ENTER("MPI_Win_flush", w, win);
	return WIN_LEAVE(w, rank == -1 ? MPI_ERR_RANK : flush(w, rank, false));
}
API_ALIAS(Win_flush);

int PMPI_Win_flush_local(int rank, MPI_Win win)
{
	WIN_ENTER("MPI_Win_flush_local", w, win);
	return WIN_LEAVE(w, rank == -1 ? MPI_ERR_RANK : flush(w, rank, true));
}
API_ALIAS(Win_flush_local);

int PMPI_Win_flush_all(MPI_Win win)
{
	WIN_ENTER("MPI_Win_flush_all", w, win);
	return WIN_LEAVE(w, flush(w, -1, false));
}
API_ALIAS(Win_flush_all);

int PMPI_Win_flush_local_all(MPI_Win win)
{
	WIN_ENTER("MPI_Win_flush_local_all", w, win);
	return WIN_LEAVE(w, flush(w, -1, true));
}
API_ALIAS(Win_flush_local_all);

int PMPI_Win_sync(MPI_Win win)
{
	WIN_ENTER("MPI_Win_sync", w, win);
	return WIN_LEAVE(w, rma_sync(w));
}
API_ALIAS(Win_sync);
