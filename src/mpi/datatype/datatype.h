/* SPDX-License-Identifier: BSD-3-Clause */
/* mpi/datatype: the bindings of datatypes, packing, operations and element counts. They check
 * arguments and leave the work to object/. May call: object/, mpi/comm's attributes. This header is
 * for the files of the folder. */
#ifndef HALE_MPI_DATATYPE_DATATYPE_H
#define HALE_MPI_DATATYPE_DATATYPE_H

#include "mpi/api.h"

/* A usable type, and somewhere to put the new one? MPI_SUCCESS or MPI_ERR_TYPE. */
static inline int type_check(const struct datatype *old, const MPI_Datatype *newtype)
{
	return LIKELY(datatype_ok(old) && newtype) ? MPI_SUCCESS : MPI_ERR_TYPE;
}

/* Completes the new type t (NULL: no memory) with its recipe: nints and naddrs numbers that the
 * caller fills in, and the one old type. On failure t is gone. */
int type_describe(struct datatype *t, int combiner, int nints, int naddrs, struct datatype *old,
		  int **ints, MPI_Aint **addrs);

/* MPI_Type_create_hvector and so on, for them and for their names of MPI-1. */
int type_hvector(int count, int blocklength, MPI_Aint stride, MPI_Datatype oldtype,
		 MPI_Datatype *newtype);
int type_hindexed(int count, const int *blocklengths, const MPI_Aint *offsets, MPI_Datatype oldtype,
		  MPI_Datatype *newtype);
int type_struct(int count, const int *blocklengths, const MPI_Aint *offsets,
		const MPI_Datatype *oldtypes, MPI_Datatype *newtype);

/* A number for an int argument: MPI_UNDEFINED when it does not fit. */
static inline int type_int(size_t n)
{
	return n > 0x7fffffff ? MPI_UNDEFINED : (int)n;
}

#endif
