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

/* Of what a type was made of: how many integers, addresses, counts of 64 bits, types. */
struct contents_size {
	int ints, addrs, large, types;
};

static struct contents_size contents_size(const struct datatype *t)
{
	const struct datatype_recipe *r = t->recipe;
	if (!r)
		return (struct contents_size){0};
	return (struct contents_size){.ints = r->nints,
				      .addrs = r->large ? 0 : r->naddrs,
				      .large = r->large ? r->naddrs : 0,
				      .types = r->ntypes};
}

int PMPI_Type_get_envelope(MPI_Datatype type, int *nints, int *naddrs, int *ntypes, int *combiner)
{
	API_ENTER("MPI_Type_get_envelope");
	const struct datatype *t = datatype_of(type);
	if (!datatype_ok(t))
		return API_FAIL(NULL, MPI_ERR_TYPE);
	if (!nints || !naddrs || !ntypes || !combiner)
		return API_FAIL(NULL, MPI_ERR_ARG);
	const struct contents_size n = contents_size(t);
	/* no integer can hold them: there is MPI_Type_get_envelope_c for it */
	if (n.large > 0)
		return API_FAIL(NULL, MPI_ERR_UNSUPPORTED_OPERATION);
	*nints = n.ints;
	*naddrs = n.addrs;
	*ntypes = n.types;
	*combiner = t->combiner;
	return API_LEAVE(NULL, MPI_SUCCESS);
}
API_ALIAS(Type_get_envelope);

int PMPI_Type_get_envelope_c(MPI_Datatype type, MPI_Count *nints, MPI_Count *naddrs,
			     MPI_Count *nlarge, MPI_Count *ntypes, int *combiner);
int PMPI_Type_get_envelope_c(MPI_Datatype type, MPI_Count *nints, MPI_Count *naddrs,
			     MPI_Count *nlarge, MPI_Count *ntypes, int *combiner)
{
	API_ENTER("MPI_Type_get_envelope_c");
	const struct datatype *t = datatype_of(type);
	if (!datatype_ok(t))
		return API_FAIL(NULL, MPI_ERR_TYPE);
	if (!nints || !naddrs || !nlarge || !ntypes || !combiner)
		return API_FAIL(NULL, MPI_ERR_ARG);
	const struct contents_size n = contents_size(t);
	*nints = n.ints;
	*naddrs = n.addrs;
	*nlarge = n.large;
	*ntypes = n.types;
	*combiner = t->combiner;
	return API_LEAVE(NULL, MPI_SUCCESS);
}
API_ALIAS(Type_get_envelope_c);

/* Where a program wants them, and how many fit. */
struct contents_room {
	MPI_Count max_ints, max_addrs, max_large, max_types;
	int *ints;
	MPI_Aint *addrs;
	MPI_Count *large;
	MPI_Datatype *types;
};

static bool contents_fit(const struct contents_room *r, const struct contents_size *n)
{
	return r->max_ints >= n->ints && r->max_addrs >= n->addrs && r->max_large >= n->large &&
	       r->max_types >= n->types;
}

/* Open MPI calls arrays that are too short, and types that have no contents, internal errors. */
static int contents(MPI_Datatype type, const struct contents_room *to)
{
	const struct datatype *t = datatype_of(type);
	if (!datatype_ok(t))
		return MPI_ERR_TYPE;
	if ((to->max_ints > 0 && !to->ints) || (to->max_addrs > 0 && !to->addrs) ||
	    (to->max_large > 0 && !to->large) || (to->max_types > 0 && !to->types))
		return MPI_ERR_ARG;
	const struct datatype_recipe *r = t->recipe;
	const struct contents_size n = contents_size(t);
	if (!r || !contents_fit(to, &n))
		return MPI_ERR_INTERN;
	if (n.ints > 0)
		memcpy(to->ints, r->ints, (size_t)n.ints * sizeof(*to->ints));
	if (n.addrs > 0)
		memcpy(to->addrs, r->addrs, (size_t)n.addrs * sizeof(*to->addrs));
	if (n.large > 0)
		memcpy(to->large, r->addrs, (size_t)n.large * sizeof(*to->large));
	for (int i = 0; i < n.types; i++) {
		/* a handle more to the same type, which the user frees */
		struct datatype *part = r->types[i];
		if (!(part->obj.flags & OBJECT_PREDEFINED)) {
			datatype_retain(part);
			part->handles++;
		}
		to->types[i] = datatype_handle(part);
	}
	return MPI_SUCCESS;
}

int PMPI_Type_get_contents(MPI_Datatype type, int max_ints, int max_addrs, int max_types,
			   int ints[], MPI_Aint addrs[], MPI_Datatype types[])
{
	API_ENTER("MPI_Type_get_contents");
	const struct contents_room room = {.max_ints = max_ints,
					   .max_addrs = max_addrs,
					   .max_types = max_types,
					   .ints = ints,
					   .addrs = addrs,
					   .types = types};
	return API_LEAVE(NULL, contents(type, &room));
}
API_ALIAS(Type_get_contents);

int PMPI_Type_get_contents_c(MPI_Datatype type, MPI_Count max_ints, MPI_Count max_addrs,
			     MPI_Count max_large, MPI_Count max_types, int ints[], MPI_Aint addrs[],
			     MPI_Count large[], MPI_Datatype types[]);
int PMPI_Type_get_contents_c(MPI_Datatype type, MPI_Count max_ints, MPI_Count max_addrs,
			     MPI_Count max_large, MPI_Count max_types, int ints[], MPI_Aint addrs[],
			     MPI_Count large[], MPI_Datatype types[])
{
	API_ENTER("MPI_Type_get_contents_c");
	const struct contents_room room = {max_ints, max_addrs, max_large, max_types,
					   ints,     addrs,	large,	   types};
	return API_LEAVE(NULL, contents(type, &room));
}
API_ALIAS(Type_get_contents_c);
