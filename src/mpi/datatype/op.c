/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations, and what the object layer needs to know from above. */
#include "mpi/datatype/datatype.h"
#include "mpi/task/intask.h"

static int type_to_fortran(struct datatype *t)
{
	return object_to_fortran(&t->obj);
}

static void forget_type(struct datatype *t)
{
	object_forget_fortran(&t->obj);
}

static void forget_op(struct op *op)
{
	object_forget_fortran(&op->obj);
}

int datatype_module_init(void)
{
	op_select_kernels();
	op_type_to_fortran = type_to_fortran;
	datatype_on_destroy = forget_type;
	op_on_destroy = forget_op;
	return MPI_SUCCESS;
}

int PMPI_Op_create(MPI_User_function *function, int commute, MPI_Op *op)
{
	API_ENTER("MPI_Op_create");
	if (!op)
		return API_FAIL(NULL, MPI_ERR_OP);
	if (!function)
		return API_FAIL(NULL, MPI_ERR_ARG);
	struct op *o = op_create(function, commute != 0);
	if (!o)
		return API_FAIL(NULL, MPI_ERR_NO_MEM);
	*op = op_handle(o);
	return API_LEAVE(NULL, MPI_SUCCESS);
}
API_ALIAS(Op_create);

static void op_end_late(void *o)
{
	op_release(o);
}

int PMPI_Op_free(MPI_Op *op)
{
	API_ENTER("MPI_Op_free");
	struct op *o = op ? op_of(*op) : NULL;
	if (!op_ok(o) || (o->obj.flags & OBJECT_PREDEFINED))
		return API_FAIL(NULL, MPI_ERR_OP);
	*op = MPI_OP_NULL;
	if (UNLIKELY(tasklog_now != NULL))
		intask_free(o, op_end_late);
	else
		op_release(o);
	return API_LEAVE(NULL, MPI_SUCCESS);
}
API_ALIAS(Op_free);

int PMPI_Op_commutative(MPI_Op op, int *commute)
{
	API_ENTER("MPI_Op_commutative");
	const struct op *o = op_of(op);
	if (!op_ok(o))
		return API_FAIL(NULL, MPI_ERR_OP);
	if (!commute)
		return API_FAIL(NULL, MPI_ERR_ARG);
	*commute = o->commutative;
	return API_LEAVE(NULL, MPI_SUCCESS);
}
API_ALIAS(Op_commutative);

static int reduce_local(const void *inbuf, void *inoutbuf, MPI_Count count, MPI_Datatype type,
			MPI_Op op)
{
	struct datatype *t = datatype_of(type);
	const struct op *o = op_of(op);
	int rc = op_check(o, t);
	if (rc == MPI_SUCCESS)
		rc = check_buffer(inbuf, count, t);
	if (rc == MPI_SUCCESS)
		rc = check_buffer(inoutbuf, count, t);
	if (rc == MPI_SUCCESS)
		op_apply(o, inbuf, inoutbuf, (size_t)count, t);
	return rc;
}

int PMPI_Reduce_local(const void *inbuf, void *inoutbuf, int count, MPI_Datatype type, MPI_Op op)
{
	API_ENTER("MPI_Reduce_local");
	return API_LEAVE(NULL, reduce_local(inbuf, inoutbuf, count, type, op));
}
API_ALIAS(Reduce_local);

int PMPI_Reduce_local_c(const void *inbuf, void *inoutbuf, MPI_Count count, MPI_Datatype type,
			MPI_Op op);
int PMPI_Reduce_local_c(const void *inbuf, void *inoutbuf, MPI_Count count, MPI_Datatype type,
			MPI_Op op)
{
	API_ENTER("MPI_Reduce_local_c");
	return API_LEAVE(NULL, reduce_local(inbuf, inoutbuf, count, type, op));
}
API_ALIAS(Reduce_local_c);
