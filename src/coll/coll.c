/* SPDX-License-Identifier: BSD-3-Clause */
/* The front: each call goes over shared cells where all members live on one node, over cells and
 * schedules where they live on several (hier.h), else by a schedule of messages. */
#include "coll/coll.h"

#include <stdlib.h>
#include "channel/carry/carry.h"
#include "coll/hier/hier.h"
#include "deliver/redundant.h"
#include "coll/hier/join.h"
#include "coll/plans.h"
#include "coll/schedule.h"
#include "coll/cells/scratch.h"

/* ---- schedules of calls ---- */

static void plan(struct schedule *s, const struct coll_args *a)
{
	if (a->comm->remote) {
		plan_inter(s, a);
		return;
	}
	switch (a->kind) {
	case COLL_BARRIER:
		plan_barrier(s, a);
		break;
	case COLL_BCAST:
		plan_bcast(s, a);
		break;
	case COLL_GATHER:
		plan_gather(s, a);
		break;
	case COLL_SCATTER:
		plan_scatter(s, a);
		break;
	case COLL_ALLGATHER:
		plan_allgather(s, a);
		break;
	case COLL_ALLTOALL:
		plan_alltoall(s, a);
		break;
	case COLL_REDUCE:
		plan_reduce(s, a);
		break;
	case COLL_ALLREDUCE:
		plan_allreduce(s, a);
		break;
	case COLL_REDUCE_SCATTER:
		plan_reduce_scatter(s, a);
		break;
	case COLL_SCAN:
	case COLL_EXSCAN:
		plan_scan(s, a);
		break;
	}
}

struct schedule *plan_of(struct schedule *s, const struct coll_args *a)
{
	if (s)
		plan(s, a);
	return s;
}

int schedule_run_args(const struct coll_args *a)
{
	return schedule_run(plan_of(schedule_create(a->comm), a));
}

int schedule_start_args(const struct coll_args *a, struct request **req)
{
	return schedule_start(plan_of(schedule_create(a->comm), a), req);
}

int schedule_start_tagged(const struct coll_args *a, int tag, struct request **req)
{
	return schedule_start(plan_of(schedule_create_tagged(a->comm, tag), a), req);
}

/* ---- blocking calls over cells ---- */

/* Do all members know from their own arguments that every payload goes through the cells? If not,
 * shared cells need members that can read each other's memory. */
static bool fits_cells(const struct coll_args *a)
{
	size_t n = (size_t)a->comm->size;
	switch (a->kind) {
	case COLL_BARRIER:
	case COLL_BCAST: /* in pieces */
		return true;
	case COLL_ALLGATHER:
		for (size_t i = 0; i < n; i++)
			if (coll_block_bytes(coll_recv_block(a, (int)i)) > coll_inline_max)
				return false;
		return true;
	case COLL_REDUCE:
	case COLL_ALLREDUCE:
		return cells_reduce_in_pieces(a) ||
		       coll_span(a->rtype, a->rcount) <= coll_inline_max;
	case COLL_SCAN:
	case COLL_EXSCAN:
		return coll_span(a->rtype, a->rcount) <= coll_inline_max;
	case COLL_REDUCE_SCATTER: {
		size_t total = 0;
		for (size_t i = 0; i < n; i++)
			total += coll_share(a, (int)i);
		return coll_span(a->rtype, total) <= coll_inline_max;
	}
	default: /* only the owner of a block knows its size */
		return false;
	}
}

static int run_cells(struct coll_home *h, const struct coll_args *a)
{
	switch (a->kind) {
	case COLL_BARRIER:
		return cells_barrier(h);
	case COLL_BCAST:
		return cells_bcast(h, a);
	case COLL_GATHER:
		return cells_gather(h, a);
	case COLL_SCATTER:
		return cells_scatter(h, a);
	case COLL_ALLGATHER:
		return cells_allgather(h, a);
	case COLL_ALLTOALL:
		return cells_alltoall(h, a);
	case COLL_REDUCE:
		return cells_reduce(h, a);
	case COLL_ALLREDUCE:
		return cells_allreduce(h, a);
	case COLL_REDUCE_SCATTER:
		return cells_reduce_scatter(h, a);
	default:
		return cells_scan(h, a);
	}
}

/* ---- a communicator of one ---- */

static int run_alone(const struct coll_args *a)
{
	switch (a->kind) {
	case COLL_GATHER:
	case COLL_ALLGATHER:
		if (coll_in_place(a))
			return MPI_SUCCESS;
		return coll_block_copy(coll_recv_block(a, 0), coll_send_one(a));
	case COLL_SCATTER:
		if (a->rbuf == MPI_IN_PLACE)
			return MPI_SUCCESS;
		return coll_block_copy(coll_recv_one(a), coll_send_block(a, 0));
	case COLL_ALLTOALL:
		if (coll_in_place(a))
			return MPI_SUCCESS;
		return coll_block_copy(coll_recv_block(a, 0), coll_send_block(a, 0));
	case COLL_REDUCE:
	case COLL_ALLREDUCE:
	case COLL_REDUCE_SCATTER:
	case COLL_SCAN: {
		struct coll_block to = coll_recv_one(a);
		if (a->rcounts)
			to.count = coll_share(a, 0);
		if (coll_in_place(a))
			return MPI_SUCCESS;
		return coll_block_copy(
		    to, (struct coll_block){(char *)(uintptr_t)a->sbuf, to.count, a->rtype});
	}
	default: /* barrier, bcast; an exclusive scan has nothing before rank 0 */
		return MPI_SUCCESS;
	}
}

static bool alone(const struct comm *c)
{
	return c->size == 1 && !c->remote;
}

/* Elements that lie between each other in memory: parts of the vector are no ranges then. */
static bool interleaves(const struct coll_args *a)
{
	const struct datatype *t = a->rtype;
	return a->op && !t->contiguous && t->extent < (ptrdiff_t)t->true_extent;
}

int coll_run(const struct coll_args *a)
{
	struct comm *c = a->comm;
	if (UNLIKELY(c->remote))
		return schedule_run_args(a);
	if (UNLIKELY(c->size == 1))
		return run_alone(a);
	c->coll->calls++;
	struct coll_home *h = cells_home(c);
	if (UNLIKELY(!h) || interleaves(a))
		return schedule_run_args(a);
	int rc;
	if (c->coll->hier) {
		if (!hier_suits(h, a))
			return schedule_run_args(a);
		rc = hier_run(h, a);
	} else {
		if (UNLIKELY(!h->reads && !fits_cells(a)))
			return schedule_run_args(a);
		rc = run_cells(h, a);
	}
	if (UNLIKELY(h->mirror))
		cells_mirror_tell(h);
	return rc;
}

bool plan_alone(const struct coll_args *a, int *rc)
{
	bool is = alone(a->comm);
	if (is)
		*rc = run_alone(a);
	return is;
}

int coll_start(const struct coll_args *a, struct request **req)
{
	if (!alone(a->comm))
		return schedule_start_args(a, req);
	int rc = run_alone(a);
	if (rc)
		return rc;
	struct request *r = match_request_new(REQUEST_COLL, a->comm);
	if (!r)
		return MPI_ERR_NO_MEM;
	r->active = true;
	request_complete(r, MPI_SUCCESS);
	*req = r;
	return MPI_SUCCESS;
}

/* ---- life ---- */

static void on_suspend(void)
{
	schedule_suspend(true);
}

static bool on_poll(void)
{
	return true;
}

static void on_resume(bool restored)
{
	cells_resume(restored);
	schedule_suspend(false);
	if (restored)
		join_restored();
}

static struct ckpt_participant participant = {
    .name = "collectives",
    .suspend_start = on_suspend,
    .suspend_poll = on_poll,
    .save = cells_save,
    .resume = on_resume,
};

/* For measurements and tests. */
static void inline_max_set(const char *text)
{
	long bytes;
	if (text && units_parse_int(text, 0, COLL_CELL_RING / 2, &bytes))
		coll_inline_max = (size_t)bytes;
}

int coll_init(void)
{
	const char *how = getenv("HALE_COLL");
	/* with replicas what a collective moves goes through the ledger, as all messages do */
	coll_messages_only = redundant_on || (how && strcmp(how, "messages") == 0);
	coll_flat = how && strcmp(how, "flat") == 0;
	if (how && strcmp(how, "pieces") == 0)
		way_forced = WAY_PIECES;
	else if (how && strcmp(how, "copies") == 0)
		way_forced = WAY_SINGLE;
	inline_max_set(getenv("HALE_COLL_INLINE"));
	cells_read_allow();
	ckpt_participate(&participant);
	match_progress_hook(schedule_progress);
	match_progress_hook(cells_mirror_progress);
	match_progress_hook(join_progress);
	join_init();
	if (carry_arrived())
		coll_carry(carry_arrived());
	return MPI_SUCCESS;
}

/* Nobody leaves while others may still send it farewells. */
void coll_finish(struct comm *world, bool stays)
{
	coll_barrier(world);
	if (stays)
		return;
	join_finish(world);
	coll_barrier(world);
	/* A restart in the middle of that barrier has begun to agree anew; all have come, and
	 * nobody asks any more. Left alone it would go on with communicators that are gone. */
	join_finish(NULL);
}

/* Homes stay until the process ends: a checkpoint that was asked for before may still come, and has
 * to find the deposits of the last barrier, which others may not have read yet. */
void coll_fini(void)
{
	for (unsigned i = 0; i < COLL_SHARED_CONTEXTS; i++)
		if (coll_homes[i].mirror)
			cells_home_free(&coll_homes[i]);
	cells_mirror_fini();
	scratch_fini();
}

bool coll_settled(void)
{
	return join_settled();
}

/* Who reads this process's deposits may still be at it. */
void coll_quit(void)
{
	for (unsigned i = 0; i < COLL_SHARED_CONTEXTS; i++)
		cells_home_vacate(&coll_homes[i]);
	cells_mirror_fini();
	join_quit();
}

/* Cells go on counting: their words only grow. */
void coll_carry(struct carry *c)
{
	join_carry(c);
	for (unsigned i = 0; i < COLL_SHARED_CONTEXTS; i++)
		carry_bytes(c, &coll_homes[i].seq, sizeof(coll_homes[i].seq));
}

int coll_comm_create(struct comm *c)
{
	return join_create(c);
}

void coll_comm_freed(struct comm *c)
{
	join_farewell(c);
}

void coll_comm_destroy(struct comm *c)
{
	join_destroy(c);
}
