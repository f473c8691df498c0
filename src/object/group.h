/* SPDX-License-Identifier: BSD-3-Clause */
/* Groups: an ordered set of ranks of the job ("world ranks", in whatever communicator). */
#ifndef HALE_OBJECT_GROUP_H
#define HALE_OBJECT_GROUP_H

#include "object/object.h"

struct mpi_session;

struct group {
	struct object obj;
	int size;
	int rank;	   /* this process's place, or MPI_UNDEFINED */
	int fortran_index; /* copy of obj.f_index, filled by object_to_fortran */
	int *world;	   /* world[i]: world rank of member i; owned; NULL when size is 0 */
	struct mpi_session *session; /* retained; NULL: of the world */
};
FORTRAN_OFFSET(struct group, size, 0x10);
FORTRAN_OFFSET(struct group, fortran_index, 0x18);

static inline void group_retain(struct group *g)
{
	object_retain(&g->obj);
}
void group_release(struct group *g);

#endif
