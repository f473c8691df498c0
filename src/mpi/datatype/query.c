/* SPDX-License-Identifier: BSD-3-Clause */
/* What a type is: sizes, bounds, names, how it was made. */
#include <string.h>
#include "mpi/datatype/datatype.h"

int PMPI_Type_size(MPI_Datatype type, int *size)
{
	API_ENTER("MPI_Type_size");
	const struct datatype *t = datatype_of(type);
	if (!datatype_ok(t))
		return API_FAIL(NULL, MPI_ERR_TYPE);
	if (!size)
		return API_FAIL(NULL, MPI_ERR_ARG);
	*size = type_int(t->size);
	return API_LEAVE(NULL, MPI_SUCCESS);
}
API_ALIAS(Type_size);

int PMPI_Type_size_x(MPI_Datatype type, MPI_Count *size)
{
	API_ENTER("MPI_Type_size_x");
	const struct datatype *t = datatype_of(type);
	if (!datatype_ok(t))
		return API_FAIL(NULL, MPI_ERR_TYPE);
	if (!size)
		return API_FAIL(NULL, MPI_ERR_ARG);
	*size = (MPI_Count)t->size;
	return API_LEAVE(NULL, MPI_SUCCESS);
}
API_ALIAS(Type_size_x);

/* MPI_Aint and MPI_Count are of the same size here. */
static int bounds(MPI_Datatype type, long long *lb, long long *extent, bool is_true)
{
	const struct datatype *t = datatype_of(type);
	if (!datatype_ok(t))
		return MPI_ERR_TYPE;
	if (!lb || !extent)
		return MPI_ERR_ARG;
	*lb = is_true ? t->true_lb : t->lb;
	*extent = is_true ? t->true_extent : t->extent;
	return MPI_SUCCESS;
}
_Static_assert(sizeof(MPI_Aint) == sizeof(long long) && sizeof(MPI_Count) == sizeof(long long),
	       "64-bit addresses");

int PMPI_Type_get_extent(MPI_Datatype type, MPI_Aint *lb, MPI_Aint *extent)
{
	API_ENTER("MPI_Type_get_extent");
	return API_LEAVE(NULL, bounds(type, (long long *)lb, (long long *)extent, false));
}
API_ALIAS(Type_get_extent);

int PMPI_Type_get_extent_x(MPI_Datatype type, MPI_Count *lb, MPI_Count *extent)
{
	API_ENTER("MPI_Type_get_extent_x");
	return API_LEAVE(NULL, bounds(type, (long long *)lb, (long long *)extent, false));
}
API_ALIAS(Type_get_extent_x);

int PMPI_Type_get_true_extent(MPI_Datatype type, MPI_Aint *lb, MPI_Aint *extent)
{
	API_ENTER("MPI_Type_get_true_extent");
	return API_LEAVE(NULL, bounds(type, (long long *)lb, (long long *)extent, true));
}
API_ALIAS(Type_get_true_extent);

int PMPI_Type_get_true_extent_x(MPI_Datatype type, MPI_Count *lb, MPI_Count *extent)
{
	API_ENTER("MPI_Type_get_true_extent_x");
	return API_LEAVE(NULL, bounds(type, (long long *)lb, (long long *)extent, true));
}
API_ALIAS(Type_get_true_extent_x);

int PMPI_Type_set_name(MPI_Datatype type, const char *name)
{
	API_ENTER("MPI_Type_set_name");
	struct datatype *t = datatype_of(type);
	if (!datatype_ok(t))
		return API_FAIL(NULL, MPI_ERR_TYPE);
	if (!name)
		return API_FAIL(NULL, MPI_ERR_ARG);
	const size_t n = strnlen(name, sizeof(t->name) - 1);
	memcpy(t->name, name, n);
	memset(t->name + n, 0, sizeof(t->name) - n);
	return API_LEAVE(NULL, MPI_SUCCESS);
}
API_ALIAS(Type_set_name);

int PMPI_Type_get_name(MPI_Datatype type, char *name, int *length)
{
	API_ENTER("MPI_Type_get_name");
	const struct datatype *t = datatype_of(type);
	/* unlike elsewhere the null handle has something to tell here (MPI-3.1 6.8) */
	if (!t || t->obj.kind != OBJECT_DATATYPE)
		return API_FAIL(NULL, MPI_ERR_TYPE);
	if (!name || !length)
		return API_FAIL(NULL, MPI_ERR_ARG);
	*length = (int)strlen(t->name);
	memcpy(name, t->name, (size_t)*length + 1);
	return API_LEAVE(NULL, MPI_SUCCESS);
}
API_ALIAS(Type_get_name);

int PMPI_Type_get_envelope(MPI_Datatype type, int *nints, int *naddrs, int *ntypes, int *combiner)
{
	API_ENTER("MPI_Type_get_envelope");
	const struct datatype *t = datatype_of(type);
	if (!datatype_ok(t))
		return API_FAIL(NULL, MPI_ERR_TYPE);
	if (!nints || !naddrs || !ntypes || !combiner)
		return API_FAIL(NULL, MPI_ERR_ARG);
	const struct datatype_recipe *r = t->recipe;
	/* made with counts that no integer of the recipe can hold (mpi/front/large.c) */
	if (!r && t->combiner != MPI_COMBINER_NAMED)
		return API_FAIL(NULL, MPI_ERR_UNSUPPORTED_OPERATION);
	*nints = r ? r->nints : 0;
	*naddrs = r ? r->naddrs : 0;
	*ntypes = r ? r->ntypes : 0;
	*combiner = t->combiner;
	return API_LEAVE(NULL, MPI_SUCCESS);
}
API_ALIAS(Type_get_envelope);

/* Open MPI calls arrays that are too short, and types that have no contents, internal errors. */
static int contents(MPI_Datatype type, int max_ints, int max_addrs, int max_types, int *ints,
		    MPI_Aint *addrs, MPI_Datatype *types)
{
	const struct datatype *t = datatype_of(type);
	if (!datatype_ok(t))
		return MPI_ERR_TYPE;
	if ((max_ints > 0 && !ints) || (max_addrs > 0 && !addrs) || (max_types > 0 && !types))
		return MPI_ERR_ARG;
	const struct datatype_recipe *r = t->recipe;
	if (!r || max_ints < r->nints || max_addrs < r->naddrs || max_types < r->ntypes)
		return MPI_ERR_INTERN;
	if (r->nints)
		memcpy(ints, r->ints, (size_t)r->nints * sizeof(*ints));
	if (r->naddrs)
		memcpy(addrs, r->addrs, (size_t)r->naddrs * sizeof(*addrs));
	for (int i = 0; i < r->ntypes; i++) {
		/* a handle more to the same type, which the user frees */
		struct datatype *part = r->types[i];
		if (!(part->obj.flags & OBJECT_PREDEFINED)) {
			datatype_retain(part);
			part->handles++;
		}
		types[i] = datatype_handle(part);
	}
	return MPI_SUCCESS;
}

int PMPI_Type_get_contents(MPI_Datatype type, int max_ints, int max_addrs, int max_types,
			   int ints[], MPI_Aint addrs[], MPI_Datatype types[])
{
	API_ENTER("MPI_Type_get_contents");
	return API_LEAVE(NULL, contents(type, max_ints, max_addrs, max_types, ints, addrs, types));
}
API_ALIAS(Type_get_contents);
