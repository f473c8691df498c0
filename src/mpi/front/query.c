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
