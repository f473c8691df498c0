/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_*_errhandler: create, set, get, call, free, for communicators, windows and files. */
#include "mpi/comm/comm.h"

static int create(enum errhandler_target target, void *function, MPI_Errhandler *errhandler)
{
	if (!function || !errhandler)
		return MPI_ERR_ARG;
	struct errhandler *e = errhandler_new(target, ERRHANDLER_C, function);
	if (!e)
		return MPI_ERR_NO_MEM;
	*errhandler = errhandler_handle(e);
	return MPI_SUCCESS;
}

int PMPI_Comm_create_errhandler(MPI_Comm_errhandler_function *function, MPI_Errhandler *errhandler)
{
	API_ENTER_ANYTIME("MPI_Comm_create_errhandler");
	return API_LEAVE(NULL, create(ERRHANDLER_COMM, (void *)function, errhandler));
}
API_ALIAS(Comm_create_errhandler);

int PMPI_Errhandler_create(MPI_Handler_function *function, MPI_Errhandler *errhandler)
{
	API_ENTER_ANYTIME("MPI_Errhandler_create");
	return API_LEAVE(NULL, create(ERRHANDLER_COMM, (void *)function, errhandler));
}
API_ALIAS(Errhandler_create);

int PMPI_Win_create_errhandler(MPI_Win_errhandler_function *function, MPI_Errhandler *errhandler)
{
	API_ENTER_ANYTIME("MPI_Win_create_errhandler");
	return API_LEAVE(NULL, create(ERRHANDLER_WIN, (void *)function, errhandler));
}
API_ALIAS(Win_create_errhandler);

int PMPI_File_create_errhandler(MPI_File_errhandler_function *function, MPI_Errhandler *errhandler)
{
	API_ENTER_ANYTIME("MPI_File_create_errhandler");
	return API_LEAVE(NULL, create(ERRHANDLER_FILE, (void *)function, errhandler));
}
API_ALIAS(File_create_errhandler);

bool errhandler_fits(const struct errhandler *e, enum errhandler_target target)
{
	return errhandler_ok(e) && (!e->target || e->target == (int)target);
}

static int comm_set(MPI_Comm comm, MPI_Errhandler errhandler)
{
	struct comm *c = comm_of(comm);
	struct errhandler *e = errhandler_of(errhandler);
	if (!comm_ok(c))
		return MPI_ERR_COMM;
	if (!errhandler_fits(e, ERRHANDLER_COMM))
		return MPI_ERR_ARG;
	object_retain(&e->obj);
	errhandler_release(c->errhandler);
	c->errhandler = e;
	return MPI_SUCCESS;
}

int PMPI_Comm_set_errhandler(MPI_Comm comm, MPI_Errhandler errhandler)
{
	API_ENTER("MPI_Comm_set_errhandler");
	return API_LEAVE(comm_of(comm), comm_set(comm, errhandler));
}
API_ALIAS(Comm_set_errhandler);

int PMPI_Errhandler_set(MPI_Comm comm, MPI_Errhandler errhandler)
{
	API_ENTER("MPI_Errhandler_set");
	return API_LEAVE(comm_of(comm), comm_set(comm, errhandler));
}
API_ALIAS(Errhandler_set);

static int comm_get(MPI_Comm comm, MPI_Errhandler *errhandler)
{
	struct comm *c = comm_of(comm);
	if (!comm_ok(c))
		return MPI_ERR_COMM;
	if (!errhandler)
		return MPI_ERR_ARG;
	object_retain(&c->errhandler->obj);
	*errhandler = errhandler_handle(c->errhandler);
	return MPI_SUCCESS;
}

int PMPI_Comm_get_errhandler(MPI_Comm comm, MPI_Errhandler *errhandler)
{
	API_ENTER("MPI_Comm_get_errhandler");
	return API_LEAVE(errhandler ? comm_of(comm) : NULL, comm_get(comm, errhandler));
}
API_ALIAS(Comm_get_errhandler);

int PMPI_Errhandler_get(MPI_Comm comm, MPI_Errhandler *errhandler)
{
	API_ENTER("MPI_Errhandler_get");
	return API_LEAVE(errhandler ? comm_of(comm) : NULL, comm_get(comm, errhandler));
}
API_ALIAS(Errhandler_get);

int PMPI_Comm_call_errhandler(MPI_Comm comm, int errorcode)
{
	API_ENTER("MPI_Comm_call_errhandler");
	struct comm *c = comm_of(comm);
	if (!comm_ok(c))
		return API_FAIL(NULL, MPI_ERR_COMM);
	profile_leave();
	guard_leave();
	errhandler_run(c->errhandler, ERRHANDLER_COMM, c, errorcode, api_name);
	return MPI_SUCCESS;
}
API_ALIAS(Comm_call_errhandler);

int PMPI_Errhandler_free(MPI_Errhandler *errhandler)
{
	API_ENTER_ANYTIME("MPI_Errhandler_free");
	if (!errhandler || !errhandler_ok(errhandler_of(*errhandler)))
		return API_FAIL(NULL, MPI_ERR_ARG);
	errhandler_release(errhandler_of(*errhandler));
	*errhandler = MPI_ERRHANDLER_NULL;
	return API_LEAVE(NULL, MPI_SUCCESS);
}
API_ALIAS(Errhandler_free);
