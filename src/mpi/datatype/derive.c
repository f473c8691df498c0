/* SPDX-License-Identifier: BSD-3-Clause */
/* Types derived from one type as a whole (duplicate, resized, array slices), and the end of types.
 */
#include <string.h>
#include "mpi/comm/comm.h"
#include "mpi/task/intask.h"
#include "mpi/datatype/datatype.h"

static int duplicate(MPI_Datatype oldtype, MPI_Datatype *newtype)
{
	struct datatype *old = datatype_of(oldtype);
	int rc = type_check(old, newtype);
	if (rc != MPI_SUCCESS)
		return rc;
	struct datatype *t = datatype_make_dup(old);
	rc = type_describe(t, MPI_COMBINER_DUP, 0, 0, old, NULL, NULL);
	if (rc != MPI_SUCCESS)
		return rc;
	rc = attr_copy_all(ATTR_TYPE, old, &old->attrs, t, &t->attrs);
	if (rc != MPI_SUCCESS) {
		datatype_release(t);
		*newtype = MPI_DATATYPE_NULL;
		return rc;
	}
	*newtype = datatype_handle(t);
	return MPI_SUCCESS;
}

int PMPI_Type_dup(MPI_Datatype oldtype, MPI_Datatype *newtype)
{
	API_ENTER("MPI_Type_dup");
	return API_LEAVE(NULL, duplicate(oldtype, newtype));
}
API_ALIAS(Type_dup);

static int resized(MPI_Datatype oldtype, MPI_Aint lb, MPI_Aint extent, MPI_Datatype *newtype)
{
	struct datatype *old = datatype_of(oldtype);
	int rc = type_check(old, newtype);
	MPI_Aint *addrs;
	if (rc != MPI_SUCCESS)
		return rc;
	struct datatype *t = datatype_make_resized(old, lb, extent);
	rc = type_describe(t, MPI_COMBINER_RESIZED, 0, 2, old, NULL, &addrs);
	if (rc != MPI_SUCCESS)
		return rc;
	addrs[0] = lb;
	addrs[1] = extent;
	*newtype = datatype_handle(t);
	return MPI_SUCCESS;
}

int PMPI_Type_create_resized(MPI_Datatype oldtype, MPI_Aint lb, MPI_Aint extent,
			     MPI_Datatype *newtype)
{
	API_ENTER("MPI_Type_create_resized");
	return API_LEAVE(NULL, resized(oldtype, lb, extent, newtype));
}
API_ALIAS(Type_create_resized);

static int check_subarray(int ndims, const int *sizes, const int *subsizes, const int *starts,
			  int order)
{
	if (ndims < 0)
		return MPI_ERR_COUNT;
	if (ndims > 0 && (!sizes || !subsizes || !starts))
		return MPI_ERR_ARG;
	if (order != MPI_ORDER_C && order != MPI_ORDER_FORTRAN)
		return MPI_ERR_ARG;
	for (int i = 0; i < ndims; i++) {
		if (subsizes[i] < 1 || sizes[i] < 1 || subsizes[i] > sizes[i] || starts[i] < 0 ||
		    starts[i] > sizes[i] - subsizes[i])
			return MPI_ERR_ARG;
	}
	return MPI_SUCCESS;
}

static int subarray(int ndims, const int *sizes, const int *subsizes, const int *starts, int order,
		    MPI_Datatype oldtype, MPI_Datatype *newtype)
{
	struct datatype *old = datatype_of(oldtype);
	int *ints, rc = check_subarray(ndims, sizes, subsizes, starts, order);
	if (rc == MPI_SUCCESS)
		rc = type_check(old, newtype);
	if (rc != MPI_SUCCESS)
		return rc;
	struct datatype *t =
	    ndims ? datatype_make_subarray(old, ndims, sizes, subsizes, starts, order)
		  : datatype_make_vector(old, 0, 0, 0);
	rc = type_describe(t, MPI_COMBINER_SUBARRAY, 3 * ndims + 2, 0, old, &ints, NULL);
	if (rc != MPI_SUCCESS)
		return rc;
	ints[0] = ndims;
	for (int i = 0; i < ndims; i++) {
		ints[1 + i] = sizes[i];
		ints[1 + ndims + i] = subsizes[i];
		ints[1 + 2 * ndims + i] = starts[i];
	}
	ints[1 + 3 * ndims] = order;
	*newtype = datatype_handle(t);
	return MPI_SUCCESS;
}

int PMPI_Type_create_subarray(int ndims, const int sizes[], const int subsizes[],
			      const int starts[], int order, MPI_Datatype oldtype,
			      MPI_Datatype *newtype)
{
	API_ENTER("MPI_Type_create_subarray");
	return API_LEAVE(NULL, subarray(ndims, sizes, subsizes, starts, order, oldtype, newtype));
}
API_ALIAS(Type_create_subarray);

/* One dimension's distribution; block and cyclic take a block size, or the default. */
static int check_distribution(int size, int distrib, int darg, int psize)
{
	if (size < 1 || psize < 1)
		return MPI_ERR_ARG;
	if (distrib == MPI_DISTRIBUTE_NONE)
		return MPI_SUCCESS;
	if (distrib != MPI_DISTRIBUTE_BLOCK && distrib != MPI_DISTRIBUTE_CYCLIC)
		return MPI_ERR_ARG;
	if (darg == MPI_DISTRIBUTE_DFLT_DARG)
		return MPI_SUCCESS;
	if (darg < 1)
		return MPI_ERR_ARG;
	if (distrib == MPI_DISTRIBUTE_BLOCK && (long)darg * psize < size)
		return MPI_ERR_ARG;
	return MPI_SUCCESS;
}

static int check_darray(int nprocs, int rank, int ndims, const int *sizes, const int *distribs,
			const int *dargs, const int *psizes, int order)
{
	if (ndims < 0)
		return MPI_ERR_COUNT;
	if (nprocs < 1 || rank < 0 || rank >= nprocs)
		return MPI_ERR_ARG;
	if (ndims > 0 && (!sizes || !distribs || !dargs || !psizes))
		return MPI_ERR_ARG;
	if (order != MPI_ORDER_C && order != MPI_ORDER_FORTRAN)
		return MPI_ERR_ARG;
	long grid = 1;
	for (int i = 0; i < ndims; i++) {
		const int rc = check_distribution(sizes[i], distribs[i], dargs[i], psizes[i]);
		if (rc != MPI_SUCCESS)
			return rc;
		grid *= psizes[i];
		if (grid > nprocs)
			return MPI_ERR_ARG;
	}
	return ndims > 0 && grid != nprocs ? MPI_ERR_ARG : MPI_SUCCESS;
}

static int darray(int nprocs, int rank, int ndims, const int *sizes, const int *distribs,
		  const int *dargs, const int *psizes, int order, MPI_Datatype oldtype,
		  MPI_Datatype *newtype)
{
	struct datatype *old = datatype_of(oldtype);
	int *ints, rc;
	rc = check_darray(nprocs, rank, ndims, sizes, distribs, dargs, psizes, order);
	if (rc == MPI_SUCCESS)
		rc = type_check(old, newtype);
	if (rc != MPI_SUCCESS)
		return rc;
	struct datatype *t = ndims ? datatype_make_darray(old, nprocs, rank, ndims, sizes, distribs,
							  dargs, psizes, order)
				   : datatype_make_vector(old, 0, 0, 0);
	rc = type_describe(t, MPI_COMBINER_DARRAY, 4 * ndims + 4, 0, old, &ints, NULL);
	if (rc != MPI_SUCCESS)
		return rc;
	ints[0] = nprocs;
	ints[1] = rank;
	ints[2] = ndims;
	for (int i = 0; i < ndims; i++) {
		ints[3 + i] = sizes[i];
		ints[3 + ndims + i] = distribs[i];
		ints[3 + 2 * ndims + i] = dargs[i];
		ints[3 + 3 * ndims + i] = psizes[i];
	}
	ints[3 + 4 * ndims] = order;
	*newtype = datatype_handle(t);
	return MPI_SUCCESS;
}

int PMPI_Type_create_darray(int nprocs, int rank, int ndims, const int sizes[],
			    const int distribs[], const int dargs[], const int psizes[], int order,
			    MPI_Datatype oldtype, MPI_Datatype *newtype)
{
	API_ENTER("MPI_Type_create_darray");
	return API_LEAVE(NULL, darray(nprocs, rank, ndims, sizes, distribs, dargs, psizes, order,
				      oldtype, newtype));
}
API_ALIAS(Type_create_darray);

int PMPI_Type_commit(MPI_Datatype *type)
{
	API_ENTER("MPI_Type_commit");
	if (!type || !datatype_ok(datatype_of(*type)))
		return API_FAIL(NULL, MPI_ERR_TYPE);
	struct datatype *t = datatype_of(*type);
	if (!(t->obj.flags & OBJECT_PREDEFINED))
		t->committed = true;
	return API_LEAVE(NULL, MPI_SUCCESS);
}
API_ALIAS(Type_commit);

/* A callback that refuses keeps the type alive. */
static int type_end(struct datatype *t)
{
	if (t->handles == 1) {
		const int rc = attr_delete_all(ATTR_TYPE, t, &t->attrs);
		if (rc != MPI_SUCCESS)
			return rc;
	}
	t->handles--;
	datatype_release(t);
	return MPI_SUCCESS;
}

static void type_end_late(void *t)
{
	type_end(t);
}

int PMPI_Type_free(MPI_Datatype *type)
{
	API_ENTER("MPI_Type_free");
	struct datatype *t = type ? datatype_of(*type) : NULL;
	if (!datatype_ok(t) || (t->obj.flags & OBJECT_PREDEFINED))
		return API_FAIL(NULL, MPI_ERR_TYPE);
	int rc = MPI_SUCCESS;
	if (UNLIKELY(tasklog_now != NULL))
		intask_free(t, type_end_late);
	else
		rc = type_end(t);
	if (rc != MPI_SUCCESS)
		return API_FAIL(NULL, rc);
	*type = MPI_DATATYPE_NULL;
	return API_LEAVE(NULL, MPI_SUCCESS);
}
API_ALIAS(Type_free);
