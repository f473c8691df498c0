/* SPDX-License-Identifier: BSD-3-Clause */
/* Names and versions, which are as long and as new as the program's header says. */
#include <stdarg.h>
#include <string.h>
#include "mpi/front/front.h"

FRONT(int, Get_version, (int *version, int *subversion))
{
	if (!version || !subversion)
		return front_error_out(MPI_ERR_ARG);
	*version = FRONT_VERSION;
	*subversion = FRONT_SUBVERSION;
	return MPI_SUCCESS;
}

FRONT(int, Get_processor_name, (char *name, int *length))
{
	char whole[MPI_MAX_PROCESSOR_NAME];
	int n = 0, rc = core_Get_processor_name(name ? whole : NULL, length ? &n : NULL);

	if (!rc) {
		if (n > FRONT_MAX_PROCESSOR_NAME - 1)
			n = FRONT_MAX_PROCESSOR_NAME - 1;
		memcpy(name, whole, (size_t)n);
		name[n] = '\0';
		*length = n;
	}
	return front_error_out(rc);
}

FRONT(int, Pcontrol, (const int level, ...))
{
	return front_error_out(core_Pcontrol(level));
}

FRONT(MPI_Aint, Aint_add, (MPI_Aint base, MPI_Aint displacement))
{
	return base + displacement;
}
FRONT(MPI_Aint, Aint_diff, (MPI_Aint a, MPI_Aint b))
{
	return a - b;
}

/* Null handles have names, too (MPI-4.1 7.8, 6.8, 12.2); Open MPI's interface refuses them. */
static bool null_named(void *object, void *null, const char *text, char *name, int *length)
{
	if (object != null || !name || !length)
		return false;
	strcpy(name, text);
	*length = (int)strlen(text);
	return true;
}

FRONT(int, Comm_get_name, (front_comm comm, char *name, int *length))
{
	void *c = front_comm_in(comm);

	if (null_named(c, MPI_COMM_NULL, "MPI_COMM_NULL", name, length))
		return MPI_SUCCESS;
	return front_error_out(core_Comm_get_name(c, name, length));
}
FRONT(int, Type_get_name, (front_type type, char *name, int *length))
{
	void *t = front_type_in(type);

	if (null_named(t, MPI_DATATYPE_NULL, "MPI_DATATYPE_NULL", name, length))
		return MPI_SUCCESS;
	return front_error_out(core_Type_get_name(t, name, length));
}
FRONT(int, Win_get_name, (front_win win, char *name, int *length))
{
	void *w = front_win_in(win);

	if (null_named(w, MPI_WIN_NULL, "MPI_WIN_NULL", name, length))
		return MPI_SUCCESS;
	return front_error_out(core_Win_get_name(w, name, length));
}
