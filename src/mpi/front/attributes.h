/* SPDX-License-Identifier: BSD-3-Clause */
/* Key values of a front library. */
#ifndef HALE_MPI_FRONT_ATTRIBUTES_H
#define HALE_MPI_FRONT_ATTRIBUTES_H

#include "mpi/comm/comm.h"
#include "mpi/front/front.h"

/* The extra_state that the core gets for a key value of a front library. It is never freed, since
 * attributes may outlive their key value. */
struct front_keyval {
	void *copy, *del, *extra;
	void *copy_proxy, *delete_proxy; /* MPICH's Fortran and C++ libraries: they call the user's */
};

/* The program's value of a predefined attribute that is a constant; others as they are. */
int front_attribute_value(int keyval, int v);

#endif
