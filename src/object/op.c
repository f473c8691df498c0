/* SPDX-License-Identifier: BSD-3-Clause */
#include "object/op.h"

#include <limits.h>
#include <string.h>

int (*op_type_to_fortran)(struct datatype *t);
void (*op_on_destroy)(struct op *op);

struct op *op_create(MPI_User_function *user, bool commutative)
{
	/* as large as the predefined ones: the Fortran and C++ libraries write into it */
	enum { OP_BYTES = 2048 };
	_Static_assert(sizeof(struct op) <= OP_BYTES, "must fit into Open MPI's");
	struct op *op = heap_calloc(1, OP_BYTES);
	if (!op)
		return NULL;
	object_init(&op->obj, OBJECT_OP);
	op->user = user;
	op->commutative = commutative;
	op->name = "";
	return op;
}

void op_release(struct op *op)
{
	if (!object_drop(&op->obj))
		return;
	if (op_on_destroy)
		op_on_destroy(op);
	op->obj.kind = OBJECT_FREED;
	heap_free(op);
}

/* Predefined operations are for predefined types, and for those that Fortran's selected_real_kind
 * and friends give. */
static bool is_basic(const struct datatype *t)
{
	return t->combiner == MPI_COMBINER_NAMED || t->combiner == MPI_COMBINER_F90_REAL ||
	       t->combiner == MPI_COMBINER_F90_COMPLEX || t->combiner == MPI_COMBINER_F90_INTEGER;
}

int op_check(const struct op *op, const struct datatype *t)
{
	if (!object_is(op, OBJECT_OP))
		return MPI_ERR_OP;
	if (op->user)
		return object_is(t, OBJECT_DATATYPE) ? MPI_SUCCESS : MPI_ERR_TYPE;
	if (!object_is(t, OBJECT_DATATYPE) || !is_basic(t) || !op->kernels ||
	    !op->kernels[t->elements.basic])
		return MPI_ERR_OP;
	return MPI_SUCCESS;
}

/* User functions count with int, so very long buffers take several calls. */
static void apply_user(const struct op *op, const void *in, void *inout, size_t count,
		       struct datatype *t)
{
	typedef void(fortran_function)(const void *in, void *inout, MPI_Fint *len, MPI_Fint *type);
	const char *a = in;
	char *b = inout;
	while (count > 0) {
		const int len = count > INT_MAX ? INT_MAX : (int)count;
		int n = len;
		MPI_Datatype handle = (MPI_Datatype)t;
		void *const left = (void *)(uintptr_t)a;
		if (op->cxx_intercept) {
			op->cxx_intercept(left, b, &n, &handle, op->user);
		} else if (op->fortran || (op->fortran_flags & OP_FORTRAN)) {
			MPI_Fint index = op_type_to_fortran ? op_type_to_fortran(t) : -1;
			((fortran_function *)(void (*)(void))op->user)(a, b, &n, &index);
		} else {
			op->user(left, b, &n, &handle);
		}
		a += (ptrdiff_t)len * t->extent;
		b += (ptrdiff_t)len * t->extent;
		count -= (size_t)len;
	}
}

/* Derived types of one kind of element (accumulate may use them): run by run. */
static void apply_runs(op_kernel_t *kernel, const void *in, void *inout, size_t count,
		       const struct datatype *t)
{
	enum { RUNS = 64 };
	const size_t width = basic_shapes[t->elements.basic].size;
	const ptrdiff_t distance = (const char *)in - (const char *)inout;
	struct iovec iov[RUNS];
	size_t done = 0, bytes;
	for (size_t n; (n = datatype_iov(t, inout, count, done, iov, RUNS, &bytes)) > 0;
	     done += bytes) {
		for (size_t i = 0; i < n; i++)
			kernel((const char *)iov[i].iov_base + distance, iov[i].iov_base,
			       iov[i].iov_base, iov[i].iov_len / width);
	}
}

/* Does a kernel take elements of this type one after the other? Basic ones with gaps too. */
static bool in_a_row(const struct datatype *t)
{
	return LIKELY(is_basic(t)) || t->contiguous;
}

/* Elements of the one kind that such a type consists of. */
static size_t basics_of(const struct datatype *t, size_t count)
{
	return LIKELY(is_basic(t)) ? count : count * t->size / basic_shapes[t->elements.basic].size;
}

void op_apply(const struct op *op, const void *in, void *inout, size_t count, struct datatype *t)
{
	if (count == 0 || op->no_op)
		return;
	if (op->replace) {
		datatype_copy(t, inout, count, t, in, count);
		return;
	}
	if (op->user) {
		apply_user(op, in, inout, count, t);
		return;
	}
	op_kernel_t *const kernel = op->kernels[t->elements.basic];
	if (LIKELY(in_a_row(t)))
		kernel(in, inout, inout, basics_of(t, count));
	else
		apply_runs(kernel, in, inout, count, t);
}

bool op_in_left(const struct op *op, const struct datatype *t)
{
	return op->kernels && in_a_row(t);
}

void op_combine(const struct op *op, const void *left, const void *right, void *out, size_t count,
		struct datatype *t)
{
	if (LIKELY(op_in_left(op, t))) {
		op->kernels[t->elements.basic](left, right, out, basics_of(t, count));
		return;
	}
	if (right != out && count)
		memcpy((char *)out + t->true_lb, (const char *)right + t->true_lb,
		       (size_t)t->true_extent + (count - 1) * (size_t)t->extent);
	op_apply(op, left, out, count, t);
}
