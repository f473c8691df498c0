/* SPDX-License-Identifier: BSD-3-Clause */
/* Types by what they can hold: Fortran's selected_real_kind and selected_int_kind, and match_size.
 */
#include "mpi/datatype/datatype.h"

/* One for each precision and range asked for (MPI-3.1 17.1.9: the same request gives the same
 * handle); they are never freed. */
struct f90_type {
	struct f90_type *next;
	int combiner, p, r;
	struct datatype *type;
};
static struct f90_type *f90_types;

struct f90_kind {
	int digits, range; /* the most that it holds */
	MPI_Datatype type;
};

static int f90_find(int combiner, int p, int r, MPI_Datatype base, MPI_Datatype *newtype)
{
	for (struct f90_type *f = f90_types; f; f = f->next) {
		if (f->combiner == combiner && f->p == p && f->r == r) {
			*newtype = datatype_handle(f->type);
			return MPI_SUCCESS;
		}
	}
	struct f90_type *f = heap_calloc(1, sizeof(*f));
	struct datatype *t = datatype_make_dup(datatype_of(base));
	const int nints = combiner == MPI_COMBINER_F90_INTEGER ? 1 : 2;
	int *ints;
	if (!f || !t || !datatype_describe(t, combiner, nints, 0, 0, &ints, NULL, NULL)) {
		if (t)
			datatype_release(t);
		heap_free(f);
		return MPI_ERR_NO_MEM;
	}
	ints[0] = nints == 2 ? p : r;
	if (nints == 2)
		ints[1] = r;
	t->committed = true;
	t->obj.flags |= OBJECT_PREDEFINED;
	*f = (struct f90_type){.next = f90_types, .combiner = combiner, .p = p, .r = r, .type = t};
	f90_types = f;
	*newtype = datatype_handle(t);
	return MPI_SUCCESS;
}

/* The first of n kinds, from small to large, that holds p digits and the exponent range r. */
static int f90_select(int combiner, int p, int r, const struct f90_kind *kinds, size_t n,
		      MPI_Datatype *newtype)
{
	if (!newtype || (p == MPI_UNDEFINED && r == MPI_UNDEFINED))
		return MPI_ERR_ARG;
	for (size_t i = 0; i < n; i++) {
		if ((p == MPI_UNDEFINED || p <= kinds[i].digits) &&
		    (r == MPI_UNDEFINED || r <= kinds[i].range))
			return f90_find(combiner, p, r, kinds[i].type, newtype);
	}
	return MPI_ERR_ARG;
}

int PMPI_Type_create_f90_real(int p, int r, MPI_Datatype *newtype)
{
	API_ENTER("MPI_Type_create_f90_real");
	const struct f90_kind kinds[] = {{6, 37, MPI_REAL4},
					 {15, 307, MPI_REAL8},
					 {18, 4931, MPI_LONG_DOUBLE},
					 {33, 4931, MPI_REAL16}};
	return API_LEAVE(NULL,
			 f90_select(MPI_COMBINER_F90_REAL, p, r, kinds, ARRAY_LEN(kinds), newtype));
}
API_ALIAS(Type_create_f90_real);

int PMPI_Type_create_f90_complex(int p, int r, MPI_Datatype *newtype)
{
	API_ENTER("MPI_Type_create_f90_complex");
	const struct f90_kind kinds[] = {{6, 37, MPI_COMPLEX8},
					 {15, 307, MPI_COMPLEX16},
					 {18, 4931, MPI_C_LONG_DOUBLE_COMPLEX},
					 {33, 4931, MPI_COMPLEX32}};
	return API_LEAVE(
	    NULL, f90_select(MPI_COMBINER_F90_COMPLEX, p, r, kinds, ARRAY_LEN(kinds), newtype));
}
API_ALIAS(Type_create_f90_complex);

int PMPI_Type_create_f90_integer(int r, MPI_Datatype *newtype)
{
	API_ENTER("MPI_Type_create_f90_integer");
	const struct f90_kind kinds[] = {{0, 2, MPI_INTEGER1},
					 {0, 4, MPI_INTEGER2},
					 {0, 9, MPI_INTEGER4},
					 {0, 18, MPI_INTEGER8}};
	return API_LEAVE(NULL, f90_select(MPI_COMBINER_F90_INTEGER, MPI_UNDEFINED, r, kinds,
					  ARRAY_LEN(kinds), newtype));
}
API_ALIAS(Type_create_f90_integer);

int PMPI_Type_match_size(int typeclass, int size, MPI_Datatype *type)
{
	API_ENTER("MPI_Type_match_size");
	const struct {
		int typeclass, size;
		MPI_Datatype type;
	} known[] = {
	    {MPI_TYPECLASS_INTEGER, 1, MPI_INTEGER1},	{MPI_TYPECLASS_INTEGER, 2, MPI_INTEGER2},
	    {MPI_TYPECLASS_INTEGER, 4, MPI_INTEGER},	{MPI_TYPECLASS_INTEGER, 8, MPI_INTEGER8},
	    {MPI_TYPECLASS_REAL, 4, MPI_REAL},		{MPI_TYPECLASS_REAL, 8, MPI_REAL8},
	    {MPI_TYPECLASS_REAL, 16, MPI_REAL16},	{MPI_TYPECLASS_COMPLEX, 8, MPI_COMPLEX},
	    {MPI_TYPECLASS_COMPLEX, 16, MPI_COMPLEX16}, {MPI_TYPECLASS_COMPLEX, 32, MPI_COMPLEX32},
	};
	if (!type)
		return API_FAIL(NULL, MPI_ERR_ARG);
	for (size_t i = 0; i < ARRAY_LEN(known); i++) {
		if (known[i].typeclass == typeclass && known[i].size == size) {
			*type = known[i].type;
			return API_LEAVE(NULL, MPI_SUCCESS);
		}
	}
	return API_FAIL(NULL, MPI_ERR_ARG);
}
API_ALIAS(Type_match_size);
