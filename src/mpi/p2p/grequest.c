/* SPDX-License-Identifier: BSD-3-Clause */
/* Generalized requests (MPI-3.1 12.2). The user's handle and the operation hold one reference each.
 * MPI_Grequest_complete drops the operation's; a wait or MPI_Request_free drops the handle's. The
 * last one that is dropped calls the free function. */
#include "mpi/p2p/p2p.h"

struct grequest {
	struct request request;
	char reserved[0xc0 - sizeof(struct request)];
	bool functions_in_c; /* Debian's Fortran library clears this byte: see object.h */
	union {
		MPI_Grequest_query_function *c;
		void (*fortran)(MPI_Aint *extra, MPI_Fint *status, MPI_Fint *error);
	} query;
	union {
		MPI_Grequest_free_function *c;
		void (*fortran)(MPI_Aint *extra, MPI_Fint *error);
	} free;
	union {
		MPI_Grequest_cancel_function *c;
		void (*fortran)(MPI_Aint *extra, MPI_Fint *complete, MPI_Fint *error);
	} cancel;
};
FORTRAN_OFFSET(struct grequest, functions_in_c, 0xc0);

static struct grequest *grequest_of(struct request *r)
{
	return CONTAINER(r, struct grequest, request);
}

int grequest_query(struct request *r)
{
	struct grequest *g = grequest_of(r);
	MPI_Status st = r->status;
	MPI_Fint fst[sizeof(MPI_Status) / sizeof(MPI_Fint)], error = MPI_SUCCESS;
	int rc;

	guard_leave();
	if (g->functions_in_c) {
		rc = g->query.c(r->extra, &st);
	} else {
		PMPI_Status_c2f(&st, fst);
		g->query.fortran((MPI_Aint *)r->extra, fst, &error);
		PMPI_Status_f2c(fst, &st);
		rc = error;
	}
	guard_enter();
	st.MPI_ERROR = rc;
	r->status = st;
	return rc;
}

static int grequest_release(struct grequest *g)
{
	MPI_Fint error = MPI_SUCCESS;
	int rc;

	if (!object_drop(&g->request.obj))
		return MPI_SUCCESS;
	guard_leave();
	if (g->functions_in_c) {
		rc = g->free.c(g->request.extra);
	} else {
		g->free.fortran((MPI_Aint *)g->request.extra, &error);
		rc = error;
	}
	guard_enter();
	object_forget_fortran(&g->request.obj);
	g->request.obj.kind = OBJECT_FREED;
	heap_free(g);
	return rc;
}

int grequest_free(struct request *r)
{
	return grequest_release(grequest_of(r));
}

int grequest_cancel(struct request *r)
{
	struct grequest *g = grequest_of(r);
	MPI_Fint error = MPI_SUCCESS, complete = r->complete;
	int rc;

	guard_leave();
	if (g->functions_in_c) {
		rc = g->cancel.c(r->extra, r->complete);
	} else {
		g->cancel.fortran((MPI_Aint *)r->extra, &complete, &error);
		rc = error;
	}
	guard_enter();
	return rc;
}

int PMPI_Grequest_start(MPI_Grequest_query_function *query_fn, MPI_Grequest_free_function *free_fn,
			MPI_Grequest_cancel_function *cancel_fn, void *extra_state,
			MPI_Request *request)
{
	API_ENTER("MPI_Grequest_start");
	if (!request)
		return API_FAIL(NULL, MPI_ERR_REQUEST);
	struct grequest *g = heap_calloc(1, sizeof(*g));
	if (!g)
		return API_FAIL(NULL, MPI_ERR_NO_MEM);
	object_init(&g->request.obj, OBJECT_REQUEST);
	object_retain(&g->request.obj); /* the operation's reference */
	g->request.kind = REQUEST_GENERALIZED;
	g->request.active = true;
	g->request.status = ompi_status_empty;
	g->request.extra = extra_state;
	g->request.query = grequest_query;
	g->functions_in_c = true;
	g->query.c = query_fn;
	g->free.c = free_fn;
	g->cancel.c = cancel_fn;
	*request = request_handle(&g->request);
	return API_LEAVE(NULL, MPI_SUCCESS);
}
API_ALIAS(Grequest_start);

int PMPI_Grequest_complete(MPI_Request request)
{
	API_ENTER("MPI_Grequest_complete");
	struct request *r = request_of(request);
	if (!request_ok(r) || r->kind != REQUEST_GENERALIZED)
		return API_FAIL(NULL, MPI_ERR_REQUEST);
	request_complete(r, MPI_SUCCESS);
	match_wake();
	return API_LEAVE(NULL, grequest_release(grequest_of(r)));
}
API_ALIAS(Grequest_complete);
