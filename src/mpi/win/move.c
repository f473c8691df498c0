/* SPDX-License-Identifier: BSD-3-Clause */
/* Put, get, and the updates; each also as a request. */
#include "mpi/win/win.h"

static int span_check(struct rma_span *s, const void *buf, int count, MPI_Datatype type)
{
	struct datatype *t = datatype_of(type);
	int rc = check_buffer(buf, count, t);
	*s = (struct rma_span){(void *)(uintptr_t)buf, (size_t)count, t};
	return rc;
}

static int target_check(struct rma_call *c, int rank, MPI_Aint disp, int count, MPI_Datatype type)
{
	struct datatype *t = datatype_of(type);
	int rc = win_check_rank(c->win, rank);
	if (rc)
		return rc;
	if (count < 0)
		return MPI_ERR_COUNT;
	if (!datatype_ok(t) || !t->committed)
		return MPI_ERR_TYPE;
	if (disp < 0 && rank != MPI_PROC_NULL && c->win->flavor != MPI_WIN_FLAVOR_DYNAMIC)
		return MPI_ERR_DISP;
	c->target = rank;
	c->disp = disp;
	c->count = (size_t)count;
	c->type = t;
	return MPI_SUCCESS;
}

/* Predefined operations only, and one kind of element (MPI-3.1 11.3.4). */
static int op_fits(struct rma_call *c, MPI_Op op, bool fetches)
{
	struct op *o = op_of(op);
	if (!op_ok(o) || o->user || (o->no_op && !fetches))
		return MPI_ERR_OP;
	c->op = o;
	if (o->replace || o->no_op || !c->type->size)
		return MPI_SUCCESS;
	if (c->type->elements.basic == BASIC_NONE)
		return MPI_ERR_TYPE;
	return o->kernels[c->type->elements.basic] ? MPI_SUCCESS : MPI_ERR_OP;
}

static int win_operate(struct rma_call *c, struct request **request)
{
	if (UNLIKELY(tasklog_now != NULL))
		return intask_rma(c, request);
	int rc = rma_run(c, request);
	if (UNLIKELY(intask_landing_watch) && !rc)
		intask_rma_begun(c);
	return rc;
}

static int run(struct rma_call *c, bool wanted, MPI_Request *request)
{
	struct request *r = NULL;
	if (wanted && !request)
		return MPI_ERR_REQUEST;
	int rc = win_operate(c, wanted ? &r : NULL);
	if (wanted && !rc)
		*request = request_handle(r);
	return rc;
}

static int put(enum rma_kind kind, struct win *w, const void *buf, int count, MPI_Datatype type,
	       int rank, MPI_Aint disp, int tcount, MPI_Datatype ttype, bool wanted,
	       MPI_Request *request)
{
	struct rma_call c = {.kind = kind, .win = w};
	int rc = span_check(&c.origin, buf, count, type);
	if (!rc)
		rc = target_check(&c, rank, disp, tcount, ttype);
	return rc ? rc : run(&c, wanted, request);
}

int PMPI_Put(const void *origin_addr, int origin_count, MPI_Datatype origin_datatype,
	     int target_rank, MPI_Aint target_disp, int target_count, MPI_Datatype target_datatype,
	     MPI_Win win)
{
	WIN_ENTER("MPI_Put", w, win);
	return WIN_LEAVE(w, put(RMA_PUT, w, origin_addr, origin_count, origin_datatype, target_rank,
				target_disp, target_count, target_datatype, false, NULL));
}
API_ALIAS(Put);

int PMPI_Rput(const void *origin_addr, int origin_count, MPI_Datatype origin_datatype,
	      int target_rank, MPI_Aint target_disp, int target_count, MPI_Datatype target_datatype,
	      MPI_Win win, MPI_Request *request)
{
	WIN_ENTER("MPI_Rput", w, win);
	return WIN_LEAVE(w, put(RMA_PUT, w, origin_addr, origin_count, origin_datatype, target_rank,
				target_disp, target_count, target_datatype, true, request));
}
API_ALIAS(Rput);

int PMPI_Get(void *origin_addr, int origin_count, MPI_Datatype origin_datatype, int target_rank,
	     MPI_Aint target_disp, int target_count, MPI_Datatype target_datatype, MPI_Win win)
{
	WIN_ENTER("MPI_Get", w, win);
	return WIN_LEAVE(w, put(RMA_GET, w, origin_addr, origin_count, origin_datatype, target_rank,
				target_disp, target_count, target_datatype, false, NULL));
}
API_ALIAS(Get);

int PMPI_Rget(void *origin_addr, int origin_count, MPI_Datatype origin_datatype, int target_rank,
	      MPI_Aint target_disp, int target_count, MPI_Datatype target_datatype, MPI_Win win,
	      MPI_Request *request)
{
	WIN_ENTER("MPI_Rget", w, win);
	return WIN_LEAVE(w, put(RMA_GET, w, origin_addr, origin_count, origin_datatype, target_rank,
				target_disp, target_count, target_datatype, true, request));
}
API_ALIAS(Rget);

static int accumulate(struct win *w, const void *buf, int count, MPI_Datatype type, int rank,
		      MPI_Aint disp, int tcount, MPI_Datatype ttype, MPI_Op op, bool wanted,
		      MPI_Request *request)
{
	struct rma_call c = {.kind = RMA_UPDATE, .win = w};
	int rc = span_check(&c.origin, buf, count, type);
	if (!rc)
		rc = target_check(&c, rank, disp, tcount, ttype);
	if (!rc)
		rc = op_fits(&c, op, false);
	return rc ? rc : run(&c, wanted, request);
}

int PMPI_Accumulate(const void *origin_addr, int origin_count, MPI_Datatype origin_datatype,
		    int target_rank, MPI_Aint target_disp, int target_count,
		    MPI_Datatype target_datatype, MPI_Op op, MPI_Win win)
{
	WIN_ENTER("MPI_Accumulate", w, win);
	return WIN_LEAVE(w,
			 accumulate(w, origin_addr, origin_count, origin_datatype, target_rank,
				    target_disp, target_count, target_datatype, op, false, NULL));
}
API_ALIAS(Accumulate);

int PMPI_Raccumulate(const void *origin_addr, int origin_count, MPI_Datatype origin_datatype,
		     int target_rank, MPI_Aint target_disp, int target_count,
		     MPI_Datatype target_datatype, MPI_Op op, MPI_Win win, MPI_Request *request)
{
	WIN_ENTER("MPI_Raccumulate", w, win);
	return WIN_LEAVE(w,
			 accumulate(w, origin_addr, origin_count, origin_datatype, target_rank,
				    target_disp, target_count, target_datatype, op, true, request));
}
API_ALIAS(Raccumulate);

struct move_fetch {
	const void *origin;
	int count;
	MPI_Datatype type;
	void *result;
	int rcount;
	MPI_Datatype rtype;
	int rank;
	MPI_Aint disp;
	int tcount;
	MPI_Datatype ttype;
	MPI_Op op;
};

static int get_accumulate(struct win *w, const struct move_fetch *f, bool wanted,
			  MPI_Request *request)
{
	struct rma_call c = {.kind = RMA_UPDATE, .win = w};
	const struct op *o = op_of(f->op);
	int rc = target_check(&c, f->rank, f->disp, f->tcount, f->ttype);
	if (!rc)
		rc = op_fits(&c, f->op, true);
	/* what MPI_NO_OP doesn't need isn't looked at */
	if (!rc && !o->no_op)
		rc = span_check(&c.origin, f->origin, f->count, f->type);
	if (!rc)
		rc = span_check(&c.result, f->result, f->rcount, f->rtype);
	return rc ? rc : run(&c, wanted, request);
}

int PMPI_Get_accumulate(const void *origin_addr, int origin_count, MPI_Datatype origin_datatype,
			void *result_addr, int result_count, MPI_Datatype result_datatype,
			int target_rank, MPI_Aint target_disp, int target_count,
			MPI_Datatype target_datatype, MPI_Op op, MPI_Win win)
{
	WIN_ENTER("MPI_Get_accumulate", w, win);
	struct move_fetch f = {origin_addr,
			       origin_count,
			       origin_datatype,
			       result_addr,
			       result_count,
			       result_datatype,
			       target_rank,
			       target_disp,
			       target_count,
			       target_datatype,
			       op};
	return WIN_LEAVE(w, get_accumulate(w, &f, false, NULL));
}
API_ALIAS(Get_accumulate);

int PMPI_Rget_accumulate(const void *origin_addr, int origin_count, MPI_Datatype origin_datatype,
			 void *result_addr, int result_count, MPI_Datatype result_datatype,
			 int target_rank, MPI_Aint target_disp, int target_count,
			 MPI_Datatype target_datatype, MPI_Op op, MPI_Win win, MPI_Request *request)
{
	WIN_ENTER("MPI_Rget_accumulate", w, win);
	struct move_fetch f = {origin_addr,
			       origin_count,
			       origin_datatype,
			       result_addr,
			       result_count,
			       result_datatype,
			       target_rank,
			       target_disp,
			       target_count,
			       target_datatype,
			       op};
	return WIN_LEAVE(w, get_accumulate(w, &f, true, request));
}
API_ALIAS(Rget_accumulate);

int PMPI_Fetch_and_op(const void *origin_addr, void *result_addr, MPI_Datatype datatype,
		      int target_rank, MPI_Aint target_disp, MPI_Op op, MPI_Win win)
{
	WIN_ENTER("MPI_Fetch_and_op", w, win);
	const struct datatype *t = datatype_of(datatype);
	if (!datatype_ok(t) || !(t->obj.flags & OBJECT_PREDEFINED))
		return WIN_LEAVE(w, MPI_ERR_TYPE);
	struct move_fetch f = {origin_addr, 1,		 datatype, result_addr, 1, datatype,
			       target_rank, target_disp, 1,	   datatype,	op};
	return WIN_LEAVE(w, get_accumulate(w, &f, false, NULL));
}
API_ALIAS(Fetch_and_op);

static int swap_fits(const struct datatype *t)
{
	if (!datatype_ok(t) || !(t->obj.flags & OBJECT_PREDEFINED) || !t->committed)
		return MPI_ERR_TYPE;
	if (t->elements.basic >= BASIC_BYTE && t->elements.basic <= BASIC_ULONG)
		return MPI_SUCCESS;
	if (t->elements.basic >= BASIC_BOOL && t->elements.basic <= BASIC_CHARACTER)
		return MPI_SUCCESS;
	return MPI_ERR_TYPE;
}

int PMPI_Compare_and_swap(const void *origin_addr, const void *compare_addr, void *result_addr,
			  MPI_Datatype datatype, int target_rank, MPI_Aint target_disp, MPI_Win win)
{
	WIN_ENTER("MPI_Compare_and_swap", w, win);
	struct rma_call c = {.kind = RMA_SWAP, .win = w, .compare = compare_addr};
	int rc = swap_fits(datatype_of(datatype));
	if (!rc && !compare_addr)
		rc = MPI_ERR_BUFFER;
	if (!rc)
		rc = span_check(&c.origin, origin_addr, 1, datatype);
	if (!rc)
		rc = span_check(&c.result, result_addr, 1, datatype);
	if (!rc)
		rc = target_check(&c, target_rank, target_disp, 1, datatype);
	return WIN_LEAVE(w, rc ? rc : win_operate(&c, NULL));
}
API_ALIAS(Compare_and_swap);
