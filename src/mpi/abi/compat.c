/* SPDX-License-Identifier: BSD-3-Clause */
/* The few names of Open MPI's inside that its C++ and Fortran libraries import and that are
 * neither MPI functions nor handles. Classes and argument vectors (opal_…) they take from
 * libopen-pal.so.40, which they bring along themselves. */
#include "mpi/abi/abi.h"
#include "mpi/abi/fortran.h"

/* Yes: their own argument checks are on. */
_Bool ompi_mpi_param_check = 1;

/* Open MPI's internal error codes, by which a failed string conversion finds its MPI class. There
 * are none here: then it uses MPI_ERR_UNKNOWN. */
int ompi_errcode_intern_lastused;
char ompi_errcodes_intern[120] __attribute__((aligned(8)));
char ompi_err_unknown[280] __attribute__((aligned(8)));

/* A list of Open MPI's, empty: its ends point to its own root. Only appended to, by the Fortran and
 * C++ bindings of MPI_Register_datarep. */
struct opal_list {
	char object[16];
	struct opal_list_item {
		char object[16];
		struct opal_list_item *next, *prev;
		char reserved[8];
	} root;
	size_t length;
};
_Static_assert(sizeof(struct opal_list) == 64, "as Open MPI's list");
extern struct opal_list ompi_registered_datareps;
struct opal_list ompi_registered_datareps = {
    .root = {.next = &ompi_registered_datareps.root, .prev = &ompi_registered_datareps.root}};

struct datatype *ompi_datatype_match_size(int size, uint16_t kind, uint16_t language)
{
	enum { KIND_MASK = 0x3000, KIND_INT = 0x1000, KIND_FLOAT = 0x2000, KIND_COMPLEX = 0x3000 };
	MPI_Datatype t = MPI_DATATYPE_NULL;
	int typeclass = MPI_TYPECLASS_INTEGER;
	static const unsigned char sizes[4][6] = {
	    {0}, {1, 2, 4, 8, 0}, {4, 8, 16, 0}, {8, 16, 32, 0}};
	const unsigned char *known = sizes[(kind & KIND_MASK) >> 12];

	if ((kind & KIND_MASK) == KIND_FLOAT)
		typeclass = MPI_TYPECLASS_REAL;
	else if ((kind & KIND_MASK) == KIND_COMPLEX)
		typeclass = MPI_TYPECLASS_COMPLEX;
	/* The caller raises the error for a size that there is not, so ask only for others. */
	while (*known && *known != size)
		known++;
	if (*known && PMPI_Type_match_size(typeclass, size, &t) != MPI_SUCCESS)
		t = MPI_DATATYPE_NULL;
	return datatype_of(t);
}

void ompi_op_set_cxx_callback(struct op *op, MPI_User_function *user)
{
	guard_enter();
	op->cxx_intercept = (void (*)(void *, void *, int *, MPI_Datatype *, MPI_User_function *))(
				void (*)(void))op->user;
	op->user = user;
	guard_leave();
}
