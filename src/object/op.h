/* SPDX-License-Identifier: BSD-3-Clause */
/* Reduction operations. */
#ifndef HALE_OBJECT_OP_H
#define HALE_OBJECT_OP_H

#include "object/datatype.h"

/* out[i] = left[i] op right[i]; out may be left or right. */
typedef void(op_kernel_t)(const void *left, const void *right, void *out, size_t count);

struct op {
	struct object obj;
	bool commutative;
	bool no_op, replace;	     /* MPI_NO_OP, MPI_REPLACE */
	MPI_User_function *user;     /* user's function, NULL for predefined */
	bool fortran;		     /* user is a Fortran function: pointers to integers */
	op_kernel_t *const *kernels; /* predefined: by basic_t; NULL entry: not defined for it */
	/* C++ bindings: an interceptor that is called with the user's function (libmpi_cxx) */
	void (*cxx_intercept)(void *, void *, int *, MPI_Datatype *, MPI_User_function *);
	const char *name;
	char reserved[20];
	uint32_t fortran_flags; /* OP_FORTRAN: set by libmpi_mpifh.so.40, the same as fortran */
};
enum { OP_FORTRAN = 2 };
FORTRAN_OFFSET(struct op, fortran_flags, 0x54);

static inline void op_retain(struct op *o)
{
	object_retain(&o->obj);
}
void op_release(struct op *o);

/* A user's operation; NULL: no memory. */
struct op *op_create(MPI_User_function *user, bool commutative);

/* Gives the predefined operations the best kernels for this processor; at MPI_Init. */
void op_select_kernels(void);

/* Set by mpi/: the Fortran handle of a type, for user functions written in Fortran; and what is to
 * be forgotten when an operation is destroyed. */
extern int (*op_type_to_fortran)(struct datatype *t);
extern void (*op_on_destroy)(struct op *op);

/* May op be used with that type? MPI_SUCCESS, MPI_ERR_OP, MPI_ERR_TYPE. */
int op_check(const struct op *op, const struct datatype *t);

/* inout[i] = in[i] op inout[i] for count elements of t. (MPI's argument order: `in` is the
 * left operand.) */
void op_apply(const struct op *op, const void *in, void *inout, size_t count, struct datatype *t);
/* out[i] = left[i] op right[i]. out is right itself, or no part of either; left itself only where
 * op_in_left says so. Gaps between the data of out may change. */
void op_combine(const struct op *op, const void *left, const void *right, void *out, size_t count,
		struct datatype *t);
bool op_in_left(const struct op *op, const struct datatype *t);

#endif
