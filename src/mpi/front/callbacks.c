/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions of the program that the library calls: operations, error handlers, generalized
 * requests, data representations. They get the program's handles and statuses. */
#include "mpi/abi/fortran.h"
#include "mpi/comm/comm.h"
#include "mpi/front/front.h"

/* ---- operations ---- */

static void op_call(void *in, void *inout, int *length, MPI_Datatype *type, MPI_User_function *user)
{
	front_type handle = front_type_out(*type);
	void (*function)(void *, void *, int *, front_type *) = (void *)user;

	function(in, inout, length, &handle);
}

static void op_call_large(void *in, void *inout, int *length, MPI_Datatype *type,
			  MPI_User_function *user)
{
	front_type handle = front_type_out(*type);
	MPI_Count count = *length;
	void (*function)(void *, void *, MPI_Count *, front_type *) = (void *)user;

	function(in, inout, &count, &handle);
}

static int op_create_calling(MPI_User_function *caller, void *user, int commute, front_op *op)
{
	void *made = NULL;
	int rc = core_Op_create(user ? (void *)caller : NULL, commute, op ? &made : NULL);

	if (!rc) {
		ompi_op_set_cxx_callback(made, (MPI_User_function *)user);
		*op = front_op_out(made);
	}
	return front_error_out(rc);
}

FRONT(int, Op_create, (void *user, int commute, front_op *op))
{
	return op_create_calling((MPI_User_function *)(void (*)(void))op_call, user, commute, op);
}
FRONT(int, Op_create_c, (void *user, int commute, front_op *op))
{
	return op_create_calling((MPI_User_function *)(void (*)(void))op_call_large, user, commute,
				 op);
}

/* ---- error handlers: the core calls a C++ program's through a function that knows the user's ---- */

#define ERRHANDLER(name, lower)                                                                    \
	static void lower##_failed(void *object, int *code, const char *where, void *user)         \
	{                                                                                          \
		front_##lower handle = front_##lower##_out(*(void **)object);                      \
		int error = front_error_out(*code);                                                \
		void (*function)(front_##lower *, int *, ...) = user;                              \
		function(&handle, &error, where);                                                  \
	}                                                                                          \
	FRONT(int, name##_create_errhandler, (void *user, front_errhandler *errhandler))           \
	{                                                                                          \
		void *made = NULL;                                                                 \
		int rc = core_##name##_create_errhandler(user, errhandler ? &made : NULL);         \
		if (!rc) {                                                                         \
			struct errhandler *e = made;                                               \
			e->language = ERRHANDLER_CXX;                                              \
			e->cxx_fn = lower##_failed;                                                \
			*errhandler = front_errhandler_out(made);                                  \
		}                                                                                  \
		return front_error_out(rc);                                                        \
	}
ERRHANDLER(Comm, comm)
ERRHANDLER(Win, win)
ERRHANDLER(File, file)
ERRHANDLER(Session, session)

FRONT(int, Errhandler_create, (void *user, front_errhandler *errhandler))
{
	return front_Comm_create_errhandler(user, errhandler);
}

/* ---- generalized requests ---- */

struct front_grequest {
	void *query, *free, *cancel;
	void *extra; /* from Fortran: the address of the program's integer, which its functions change */
	bool fortran;
};

static int grequest_asked(void *extra, MPI_Status *status)
{
	const struct front_grequest *g = extra;
	front_status mine = {0};
	int rc = MPI_SUCCESS;

	front_status_end(&mine, status);
	FRONT_ERROR(&mine) = MPI_SUCCESS;
	if (g->fortran) {
		void (*function)(void *, void *, int *) = g->query;
		function(g->extra, &mine, &rc);
	} else {
		int (*function)(void *, front_status *) = g->query;
		rc = function(g->extra, &mine);
	}
	front_status_in(status, &mine);
	return front_error_in(rc);
}

static int grequest_freed(void *extra)
{
	struct front_grequest *g = extra;
	int rc = MPI_SUCCESS;

	if (g->fortran) {
		void (*function)(void *, int *) = g->free;
		function(g->extra, &rc);
	} else {
		int (*function)(void *) = g->free;
		rc = function(g->extra);
	}
	guard_enter();
	heap_free(g);
	guard_leave();
	return front_error_in(rc);
}

static int grequest_cancelled(void *extra, int complete)
{
	const struct front_grequest *g = extra;
	int rc = MPI_SUCCESS;

	if (g->fortran) {
		void (*function)(void *, int *, int *) = g->cancel;
		function(g->extra, &complete, &rc);
	} else {
		int (*function)(void *, int) = g->cancel;
		rc = function(g->extra, complete);
	}
	return front_error_in(rc);
}

FRONT(int, Grequest_start, (void *query, void *release, void *cancel, void *extra, front_request *request))
{
	void *made = NULL;
	struct front_grequest *g;

	guard_enter();
	g = heap_calloc(1, sizeof(*g));
	guard_leave();
	if (!g)
		return front_error_out(api_error(NULL, MPI_ERR_NO_MEM, "MPI_Grequest_start"));
	*g = (struct front_grequest){query, release, cancel, extra, false};
	int rc = core_Grequest_start(query ? (void *)grequest_asked : NULL,
				     release ? (void *)grequest_freed : NULL,
				     cancel ? (void *)grequest_cancelled : NULL, g,
				     request ? &made : NULL);
	if (!rc)
		*request = front_request_out(made);
	return front_error_out(rc);
}

void front_grequest_fortran(void *request)
{
	struct request *r = request;
	struct front_grequest *g = r->extra;

	g->fortran = true;
}
