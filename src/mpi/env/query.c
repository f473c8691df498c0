/* SPDX-License-Identifier: BSD-3-Clause */
/* Versions, names, memory for the user, profiling control. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "match/decide.h"
#include "mpi/api.h"
#include "mpi/env/env.h"

/* mpi.h's numbers are of the interface that programs were compiled for. */
int PMPI_Get_version(int *version, int *subversion)
{
	if (!version || !subversion)
		return env_error(MPI_ERR_ARG, "MPI_Get_version");
	*version = MPI_VERSION;
	*subversion = MPI_SUBVERSION;
	return MPI_SUCCESS;
}
API_ALIAS(Get_version);

int PMPI_Get_library_version(char *version, int *resultlen)
{
	if (!version || !resultlen)
		return env_error(MPI_ERR_ARG, "MPI_Get_library_version");
	*resultlen =
	    snprintf(version, MPI_MAX_LIBRARY_VERSION_STRING,
		     "Hale %s, MPI %d.%d, binary interface of Open MPI %d.%d", HALE_VERSION,
		     MPI_VERSION, MPI_SUBVERSION, OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION);
	return MPI_SUCCESS;
}
API_ALIAS(Get_library_version);

int PMPI_Get_processor_name(char *name, int *resultlen)
{
	API_ENTER("MPI_Get_processor_name");
	if (!name || !resultlen)
		return API_FAIL(NULL, MPI_ERR_ARG);
	char node[DECIDE_VALUE] = "";
	_Static_assert(sizeof(node) <= MPI_MAX_PROCESSOR_NAME, "any name has room");
	const struct segment *s = link_self()->segment;
	if (s && s->node[0])
		snprintf(node, sizeof(node), "%s", s->node);
	else if (gethostname(node, sizeof(node) - 1))
		return API_FAIL(NULL, MPI_ERR_OTHER);
	if (UNLIKELY(redundant_on)) /* its replicas live on several nodes */
		decide_value(DECIDE_NAME, node, sizeof(node));
	strcpy(name, node);
	*resultlen = (int)strlen(name);
	return API_LEAVE(NULL, MPI_SUCCESS);
}
API_ALIAS(Get_processor_name);

int PMPI_Pcontrol(const int level, ...)
{
	API_ENTER("MPI_Pcontrol");
	return API_LEAVE(NULL, MPI_SUCCESS);
}
API_ALIAS(Pcontrol);

/* The program's memory, so it comes from the program's allocator. */
int PMPI_Alloc_mem(MPI_Aint size, MPI_Info info, void *baseptr)
{
	API_ENTER("MPI_Alloc_mem");
	if (size < 0 || !baseptr)
		return API_FAIL(NULL, MPI_ERR_ARG);
	if (!info || ((struct object *)info)->kind != OBJECT_INFO)
		return API_FAIL(NULL, MPI_ERR_INFO);
	void *p = NULL;
	if (size > 0 && posix_memalign(&p, CACHE_LINE, (size_t)size))
		return API_FAIL(NULL, MPI_ERR_NO_MEM);
	memcpy(baseptr, &p, sizeof(p));
	return API_LEAVE(NULL, MPI_SUCCESS);
}
API_ALIAS(Alloc_mem);

int PMPI_Free_mem(void *base)
{
	API_ENTER("MPI_Free_mem");
	free(base);
	return API_LEAVE(NULL, MPI_SUCCESS);
}
API_ALIAS(Free_mem);

/* Extensions of Open MPI that programs ask for at start. Messages go through host memory only. */
int MPIX_Query_cuda_support(void);
int MPIX_Query_cuda_support(void)
{
	return 0;
}
