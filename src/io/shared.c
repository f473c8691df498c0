/* SPDX-License-Identifier: BSD-3-Clause */
/* The shared pointer: a number in the first member's memory, which the others reach as a window. So
 * nobody has to make a call for somebody else to move it, and images and restarts need nothing. */
#include "io/internal.h"

int io_shared_open(struct file *f, struct comm *own)
{
	return rma_win_create(own, MPI_WIN_FLAVOR_CREATE, &f->shared,
			      own->rank == 0 ? sizeof(f->shared) : 0, 1, &f->win);
}

int io_shared_close(struct file *f)
{
	if (!f->win)
		return MPI_SUCCESS;
	int rc = rma_win_close(f->win);
	f->win->obj.kind = OBJECT_FREED;
	heap_free(f->win);
	f->win = NULL;
	return rc;
}

static int change(struct file *f, MPI_Op op, uint64_t n, uint64_t *before)
{
	*before = f->shared;
	if (!f->win) {
		f->shared = op == MPI_REPLACE ? n : f->shared + n;
		return MPI_SUCCESS;
	}
	struct rma_call c = {.kind = RMA_UPDATE,
			     .win = f->win,
			     .origin = {&n, 1, io_u64()},
			     .result = {before, 1, io_u64()},
			     .type = io_u64(),
			     .count = 1,
			     .op = (struct op *)op};
	int rc = rma_lock(f->win, MPI_LOCK_SHARED, 0, 0), moved;
	if (rc)
		return rc;
	moved = rma_run(&c, NULL);
	rc = rma_unlock(f->win, 0);
	return moved ? moved : rc;
}

int io_shared_add(struct file *f, uint64_t n, uint64_t *before)
{
	return change(f, MPI_SUM, n, before);
}

/* Nobody moves it before all have come, nor after the first has left. */
int io_shared_set(struct file *f, uint64_t value)
{
	uint64_t before;
	int rc = f->win ? coll_barrier(f->comm) : MPI_SUCCESS;
	if (!rc && f->comm->rank == 0)
		rc = change(f, MPI_REPLACE, value, &before);
	return f->win ? io_agree(f, rc) : rc;
}

int io_seek(struct file *f, uint8_t where, MPI_Offset at, int error)
{
	if (where == IO_OWN) {
		f->position = error ? f->position : (size_t)at;
		return error;
	}
	int rc = io_agree_same(f, (uint64_t)at, MPI_ERR_NOT_SAME, error);
	return rc ? rc : io_shared_set(f, (uint64_t)at);
}

int io_position(struct file *f, uint8_t where, size_t *at)
{
	uint64_t shared = 0;
	int rc = where == IO_OWN ? MPI_SUCCESS : io_shared_add(f, 0, &shared);
	*at = where == IO_OWN ? f->position : (size_t)shared;
	return rc;
}
