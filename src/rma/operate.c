/* SPDX-License-Identifier: BSD-3-Clause */
/* The front of all operations: is there an epoch, does the target lie in the window, which way. */
#include "rma/internal.h"

static int epoch_check(struct win *w, int target)
{
	switch (w->access) {
	case RMA_ACCESS_FENCE:
		w->fence_used = true;
		return MPI_SUCCESS;
	case RMA_ACCESS_START:
		return w->peer[target].started ? MPI_SUCCESS : MPI_ERR_RMA_SYNC;
	case RMA_ACCESS_LOCK:
		return w->peer[target].lock ? MPI_SUCCESS : MPI_ERR_RMA_SYNC;
	case RMA_ACCESS_ALL:
		return MPI_SUCCESS;
	default:
		return MPI_ERR_RMA_SYNC;
	}
}

/* The range of the target's memory; its address in *address. */
static int range_check(const struct rma_call *c, uint64_t *address)
{
	const struct rma_part *part = &c->win->peer[c->target].part;
	const struct datatype *t = c->type;
	if (c->win->flavor == MPI_WIN_FLAVOR_DYNAMIC) {
		*address = (uint64_t)c->disp;
		return MPI_SUCCESS;
	}
	*address = part->base + (uint64_t)c->disp * part->unit;
	if (!c->count || !t->size)
		return MPI_SUCCESS;
	ptrdiff_t at, last, low, high;
	if (__builtin_mul_overflow(c->disp, (ptrdiff_t)part->unit, &at) ||
	    __builtin_mul_overflow((ptrdiff_t)(c->count - 1), t->extent, &last))
		return MPI_ERR_RMA_RANGE;
	low = at + t->true_lb + (last < 0 ? last : 0);
	high = at + t->true_lb + t->true_extent + (last > 0 ? last : 0);
	return low < 0 || high < low || (uint64_t)high > part->bytes ? MPI_ERR_RMA_RANGE
								     : MPI_SUCCESS;
}

/* Both sides must be as long. */
static int length_check(const struct rma_call *c)
{
	size_t bytes = c->count * c->type->size;
	bool given = c->kind != RMA_UPDATE || !c->op->no_op;
	if (given && c->origin.count * c->origin.type->size != bytes)
		return MPI_ERR_TRUNCATE;
	if (c->result.type && c->result.count * c->result.type->size != bytes)
		return MPI_ERR_TRUNCATE;
	return MPI_SUCCESS;
}

static int operate(struct rma_call *c, uint64_t address, struct request **request)
{
	bool refused = false;
	int error, rc;
	for (;;) {
		switch (rma_reach(c->win, c->target, &error)) {
		case RMA_WAY_DIRECT:
			return rma_direct(c, address);
		case RMA_WAY_COPY:
			refused = false;
			rc = rma_copy(c, address, &refused);
			if (!refused)
				return rc;
			continue;
		case RMA_WAY_FAR:
			return error ? error : rma_far(c, address, request);
		}
	}
}

int rma_run(struct rma_call *c, struct request **request)
{
	uint64_t address;
	int rc = MPI_SUCCESS;
	if (request)
		*request = match_request_new(REQUEST_NONE, NULL);
	if (c->target == MPI_PROC_NULL)
		return MPI_SUCCESS;
	rc = epoch_check(c->win, c->target);
	if (!rc)
		rc = length_check(c);
	if (!rc)
		rc = range_check(c, &address);
	if (!rc && c->count && c->type->size)
		rc = operate(c, address, request);
	return rc;
}
