/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_*_c2f and MPI_*_f2c. As in Open MPI an invalid handle converts to an invalid handle (-1 or
 * NULL) and raises no error; all of them may be called at any time. */
#include <string.h>
#include "mpi/abi/abi.h"
#include "mpi/env/env.h"

static MPI_Fint to_fortran(void *handle, enum object_kind kind)
{
	struct object *o = handle;
	MPI_Fint index = -1;

	guard_enter();
	if (o && o->kind == (uint32_t)kind)
		index = object_to_fortran(o);
	guard_leave();
	return index;
}

static void *from_fortran(MPI_Fint index, enum object_kind kind)
{
	void *handle;

	guard_enter();
	handle = object_from_fortran(index, kind);
	guard_leave();
	return handle;
}

#define HANDLE(name, type, kind)                                                                   \
	MPI_Fint PMPI_##name##_c2f(type handle)                                                    \
	{                                                                                          \
		return to_fortran(handle, kind);                                                   \
	}                                                                                          \
	API_ALIAS(name##_c2f);                                                                     \
	type PMPI_##name##_f2c(MPI_Fint handle)                                                    \
	{                                                                                          \
		return from_fortran(handle, kind);                                                 \
	}                                                                                          \
	API_ALIAS(name##_f2c)

HANDLE(Comm, MPI_Comm, OBJECT_COMM);
HANDLE(Group, MPI_Group, OBJECT_GROUP);
HANDLE(Type, MPI_Datatype, OBJECT_DATATYPE);
HANDLE(Op, MPI_Op, OBJECT_OP);
HANDLE(Request, MPI_Request, OBJECT_REQUEST);
HANDLE(Message, MPI_Message, OBJECT_MESSAGE);
HANDLE(Errhandler, MPI_Errhandler, OBJECT_ERRHANDLER);
HANDLE(Info, MPI_Info, OBJECT_INFO);
HANDLE(Win, MPI_Win, OBJECT_WIN);
HANDLE(File, MPI_File, OBJECT_FILE);

/* A Fortran status is an array of as many INTEGERs as the C one has, hidden fields too. */
int PMPI_Status_c2f(const MPI_Status *c_status, MPI_Fint *f_status)
{
	if (!c_status || !f_status)
		return env_error(MPI_ERR_IN_STATUS, "MPI_Status_c2f");
	memcpy(f_status, c_status, sizeof(*c_status));
	return MPI_SUCCESS;
}
API_ALIAS(Status_c2f);

int PMPI_Status_f2c(const MPI_Fint *f_status, MPI_Status *c_status)
{
	if (!f_status || !c_status || f_status == MPI_F_STATUS_IGNORE ||
	    f_status == MPI_F_STATUSES_IGNORE)
		return env_error(MPI_ERR_IN_STATUS, "MPI_Status_f2c");
	memcpy(c_status, f_status, sizeof(*c_status));
	return MPI_SUCCESS;
}
API_ALIAS(Status_f2c);
