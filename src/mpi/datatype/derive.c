/* SPDX-License-Identifier: BSD-3-Clause */
/* Types derived from one type as a whole (duplicate, resized, array slices), and the end of types.
 */
#include <string.h>
#include "mpi/comm/comm.h"
#include "mpi/task/intask.h"
#include "mpi/datatype/datatype.h"

/* MPI-4's, which mpi.h does not declare */
int PMPI_Type_create_subarray_c(int ndims, const MPI_Count sizes[], const MPI_Count subsizes[],
				const MPI_Count starts[], int order, MPI_Datatype oldtype,
				MPI_Datatype *newtype);
int PMPI_Type_create_darray_c(int nprocs, int rank, int ndims, const MPI_Count sizes[],
			      const int distribs[], const int dargs[], const int psizes[],
			      int order, MPI_Datatype oldtype, MPI_Datatype *newtype);

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

/* Sizes of 64 bits are those of the `_c` functions. Where all fit into an int the type has the
 * recipe of the function without `_c`. */
static bool sizes_fit(const MPI_Count *a, int n)
{
	for (int i = 0; i < n; i++)
		if (a[i] != (int)a[i])
			return false;
	return true;
}

/* Bytes from the first element of an array to the end of the last one. */
static int check_span(int ndims, const MPI_Count *sizes, const struct datatype *old)
{
	MPI_Count span = old->extent;
	for (int i = 0; i < ndims; i++)
		if (__builtin_mul_overflow(span, sizes[i], &span))
			return MPI_ERR_COUNT;
	return MPI_SUCCESS;
}

/* With counts of 64 bits in its recipe: narrays arrays of ndims sizes, and nints integers that the
 * caller fills in. */
static int describe_large(struct datatype *t, int combiner, struct datatype *old, int nints,
			  int ndims, const MPI_Count *const *arrays, int narrays, int **ints)
{
	MPI_Aint *large;
	int rc = type_describe(t, combiner, nints, narrays * ndims, old, ints, &large);
	if (rc != MPI_SUCCESS)
		return rc;
	t->recipe->large = true;
	for (int k = 0; k < narrays; k++)
		for (int i = 0; i < ndims; i++)
			large[k * ndims + i] = arrays[k][i];
	return MPI_SUCCESS;
}

static int check_subarray(int ndims, const MPI_Count *sizes, const MPI_Count *subsizes,
			  const MPI_Count *starts, int order)
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

static int subarray(int ndims, const MPI_Count *sizes, const MPI_Count *subsizes,
		    const MPI_Count *starts, int order, MPI_Datatype oldtype, MPI_Datatype *newtype)
{
	struct datatype *old = datatype_of(oldtype);
	int *ints, rc = check_subarray(ndims, sizes, subsizes, starts, order);
	if (rc == MPI_SUCCESS)
		rc = type_check(old, newtype);
	if (rc == MPI_SUCCESS)
		rc = check_span(ndims, sizes, old);
	if (rc != MPI_SUCCESS)
		return rc;
	struct datatype *t =
	    ndims ? datatype_make_subarray(old, ndims, sizes, subsizes, starts, order)
		  : datatype_make_vector(old, 0, 0, 0);
	if (!sizes_fit(sizes, ndims)) {
		rc = describe_large(t, MPI_COMBINER_SUBARRAY, old, 2, ndims,
				    (const MPI_Count *const[]){sizes, subsizes, starts}, 3, &ints);
		if (rc != MPI_SUCCESS)
			return rc;
		ints[0] = ndims;
		ints[1] = order;
		*newtype = datatype_handle(t);
		return MPI_SUCCESS;
	}
	rc = type_describe(t, MPI_COMBINER_SUBARRAY, 3 * ndims + 2, 0, old, &ints, NULL);
	if (rc != MPI_SUCCESS)
		return rc;
	ints[0] = ndims;
	for (int i = 0; i < ndims; i++) {
		ints[1 + i] = (int)sizes[i];
		ints[1 + ndims + i] = (int)subsizes[i];
		ints[1 + 2 * ndims + i] = (int)starts[i];
	}
	ints[1 + 3 * ndims] = order;
	*newtype = datatype_handle(t);
	return MPI_SUCCESS;
}

/* The arrays with elements of 64 bits, one behind the other; NULL where one is NULL or there is no
 * memory. */
static MPI_Count *widened(int ndims, const int *const *arrays, int narrays)
{
	size_t n = ndims > 0 ? (size_t)ndims : 0;
	for (int k = 0; k < narrays; k++)
		if (!arrays[k])
			return NULL;
	MPI_Count *wide = heap_alloc((n * (size_t)narrays + 1) * sizeof(*wide));
	for (int k = 0; wide && k < narrays; k++)
		for (size_t i = 0; i < n; i++)
			wide[(size_t)k * n + i] = arrays[k][i];
	return wide;
}

int PMPI_Type_create_subarray(int ndims, const int sizes[], const int subsizes[],
			      const int starts[], int order, MPI_Datatype oldtype,
			      MPI_Datatype *newtype)
{
	API_ENTER("MPI_Type_create_subarray");
	MPI_Count *wide = widened(ndims, (const int *const[]){sizes, subsizes, starts}, 3);
	const ptrdiff_t n = ndims > 0 ? ndims : 0;
	int rc = subarray(ndims, wide, wide ? wide + n : NULL, wide ? wide + 2 * n : NULL, order,
			  oldtype, newtype);
	heap_free(wide);
	return API_LEAVE(NULL, rc);
}
API_ALIAS(Type_create_subarray);

int PMPI_Type_create_subarray_c(int ndims, const MPI_Count sizes[], const MPI_Count subsizes[],
				const MPI_Count starts[], int order, MPI_Datatype oldtype,
				MPI_Datatype *newtype)
{
	API_ENTER("MPI_Type_create_subarray_c");
	return API_LEAVE(NULL, subarray(ndims, sizes, subsizes, starts, order, oldtype, newtype));
}
API_ALIAS(Type_create_subarray_c);

/* One dimension's distribution; block and cyclic take a block size, or the default. */
static int check_distribution(MPI_Count size, int distrib, int darg, int psize)
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

static int check_darray(int nprocs, int rank, int ndims, const MPI_Count *sizes,
			const int *distribs, const int *dargs, const int *psizes, int order)
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

static int darray(int nprocs, int rank, int ndims, const MPI_Count *sizes, const int *distribs,
		  const int *dargs, const int *psizes, int order, MPI_Datatype oldtype,
		  MPI_Datatype *newtype)
{
	struct datatype *old = datatype_of(oldtype);
	int *ints, rc;
	rc = check_darray(nprocs, rank, ndims, sizes, distribs, dargs, psizes, order);
	if (rc == MPI_SUCCESS)
		rc = type_check(old, newtype);
	if (rc == MPI_SUCCESS)
		rc = check_span(ndims, sizes, old);
	if (rc != MPI_SUCCESS)
		return rc;
	struct datatype *t = ndims ? datatype_make_darray(old, nprocs, rank, ndims, sizes, distribs,
							  dargs, psizes, order)
				   : datatype_make_vector(old, 0, 0, 0);
	const bool fit = sizes_fit(sizes, ndims);
	rc = fit ? type_describe(t, MPI_COMBINER_DARRAY, 4 * ndims + 4, 0, old, &ints, NULL)
		 : describe_large(t, MPI_COMBINER_DARRAY, old, 3 * ndims + 4, ndims, &sizes, 1,
				  &ints);
	if (rc != MPI_SUCCESS)
		return rc;
	*ints++ = nprocs;
	*ints++ = rank;
	*ints++ = ndims;
	for (int i = 0; fit && i < ndims; i++)
		*ints++ = (int)sizes[i];
	const int *const arrays[] = {distribs, dargs, psizes};
	for (int k = 0; k < 3; k++)
		for (int i = 0; i < ndims; i++)
			*ints++ = arrays[k][i];
	*ints = order;
	*newtype = datatype_handle(t);
	return MPI_SUCCESS;
}

int PMPI_Type_create_darray(int nprocs, int rank, int ndims, const int sizes[],
			    const int distribs[], const int dargs[], const int psizes[], int order,
			    MPI_Datatype oldtype, MPI_Datatype *newtype)
{
	API_ENTER("MPI_Type_create_darray");
	MPI_Count *wide = widened(ndims, &sizes, 1);
	int rc =
	    darray(nprocs, rank, ndims, wide, distribs, dargs, psizes, order, oldtype, newtype);
	heap_free(wide);
	return API_LEAVE(NULL, rc);
}
API_ALIAS(Type_create_darray);

int PMPI_Type_create_darray_c(int nprocs, int rank, int ndims, const MPI_Count sizes[],
			      const int distribs[], const int dargs[], const int psizes[],
			      int order, MPI_Datatype oldtype, MPI_Datatype *newtype)
{
	API_ENTER("MPI_Type_create_darray_c");
	return API_LEAVE(NULL, darray(nprocs, rank, ndims, sizes, distribs, dargs, psizes, order,
				      oldtype, newtype));
}
API_ALIAS(Type_create_darray_c);

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
