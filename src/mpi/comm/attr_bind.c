/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_*_keyval and MPI_*_attr for communicators, datatypes and windows, the MPI-1 names, and the
 * entry points of Debian's Fortran and C++ libraries. */
#include "mpi/comm/comm.h"

/* ---- the functions that programs name as callbacks ---- */

#define NULL_DELETE(name, handle)                                                                  \
	int name(handle object, int keyval, void *value, void *extra)                              \
	{                                                                                          \
		return MPI_SUCCESS;                                                                \
	}
#define NULL_COPY(name, handle)                                                                    \
	int name(handle object, int keyval, void *extra, void *value, void *copy, int *flag)       \
	{                                                                                          \
		*flag = 0;                                                                         \
		return MPI_SUCCESS;                                                                \
	}
#define DUP(name, handle)                                                                          \
	int name(handle object, int keyval, void *extra, void *value, void *copy, int *flag)       \
	{                                                                                          \
		*(void **)copy = value;                                                            \
		*flag = 1;                                                                         \
		return MPI_SUCCESS;                                                                \
	}

NULL_DELETE(OMPI_C_MPI_COMM_NULL_DELETE_FN, MPI_Comm)
NULL_DELETE(OMPI_C_MPI_TYPE_NULL_DELETE_FN, MPI_Datatype)
NULL_DELETE(OMPI_C_MPI_WIN_NULL_DELETE_FN, MPI_Win)
NULL_DELETE(OMPI_C_MPI_NULL_DELETE_FN, MPI_Comm)
NULL_COPY(OMPI_C_MPI_COMM_NULL_COPY_FN, MPI_Comm)
NULL_COPY(OMPI_C_MPI_TYPE_NULL_COPY_FN, MPI_Datatype)
NULL_COPY(OMPI_C_MPI_WIN_NULL_COPY_FN, MPI_Win)
NULL_COPY(OMPI_C_MPI_NULL_COPY_FN, MPI_Comm)
DUP(OMPI_C_MPI_COMM_DUP_FN, MPI_Comm)
DUP(OMPI_C_MPI_TYPE_DUP_FN, MPI_Datatype)
DUP(OMPI_C_MPI_WIN_DUP_FN, MPI_Win)
DUP(OMPI_C_MPI_DUP_FN, MPI_Comm)

/* ---- key values ---- */

static int create(enum attr_kind kind, void *copy, void *del, int *keyval, void *extra)
{
	if (!copy || !del || !keyval)
		return MPI_ERR_ARG;
	return attr_keyval_create(kind, copy, del, keyval, extra, 0);
}

static int release(enum attr_kind kind, int *keyval)
{
	return keyval ? attr_keyval_free(kind, keyval) : MPI_ERR_ARG;
}

int PMPI_Comm_create_keyval(MPI_Comm_copy_attr_function *copy, MPI_Comm_delete_attr_function *del,
			    int *keyval, void *extra)
{
	API_ENTER("MPI_Comm_create_keyval");
	return API_LEAVE(NULL, create(ATTR_COMM, (void *)copy, (void *)del, keyval, extra));
}
API_ALIAS(Comm_create_keyval);

int PMPI_Keyval_create(MPI_Copy_function *copy, MPI_Delete_function *del, int *keyval, void *extra)
{
	API_ENTER("MPI_Keyval_create");
	return API_LEAVE(NULL, create(ATTR_COMM, (void *)copy, (void *)del, keyval, extra));
}
API_ALIAS(Keyval_create);

int PMPI_Type_create_keyval(MPI_Type_copy_attr_function *copy, MPI_Type_delete_attr_function *del,
			    int *keyval, void *extra)
{
	API_ENTER("MPI_Type_create_keyval");
	return API_LEAVE(NULL, create(ATTR_TYPE, (void *)copy, (void *)del, keyval, extra));
}
API_ALIAS(Type_create_keyval);

int PMPI_Win_create_keyval(MPI_Win_copy_attr_function *copy, MPI_Win_delete_attr_function *del,
			   int *keyval, void *extra)
{
	API_ENTER("MPI_Win_create_keyval");
	return API_LEAVE(NULL, create(ATTR_WIN, (void *)copy, (void *)del, keyval, extra));
}
API_ALIAS(Win_create_keyval);

int PMPI_Comm_free_keyval(int *keyval)
{
	API_ENTER("MPI_Comm_free_keyval");
	return API_LEAVE(NULL, release(ATTR_COMM, keyval));
}
API_ALIAS(Comm_free_keyval);

int PMPI_Keyval_free(int *keyval)
{
	API_ENTER("MPI_Keyval_free");
	return API_LEAVE(NULL, release(ATTR_COMM, keyval));
}
API_ALIAS(Keyval_free);

int PMPI_Type_free_keyval(int *keyval)
{
	API_ENTER("MPI_Type_free_keyval");
	return API_LEAVE(NULL, release(ATTR_TYPE, keyval));
}
API_ALIAS(Type_free_keyval);

int PMPI_Win_free_keyval(int *keyval)
{
	API_ENTER("MPI_Win_free_keyval");
	return API_LEAVE(NULL, release(ATTR_WIN, keyval));
}
API_ALIAS(Win_free_keyval);

/* ---- communicators ---- */

static int comm_set(MPI_Comm comm, int keyval, void *value)
{
	struct comm *c = comm_of(comm);
	if (!comm_ok(c))
		return MPI_ERR_COMM;
	return attr_set(ATTR_COMM, c, &c->attrs, keyval, ATTR_C,
			(union attr_value){.pointer = value});
}

static int comm_get(MPI_Comm comm, int keyval, void *value, int *flag)
{
	struct comm *c = comm_of(comm);
	if (!comm_ok(c))
		return MPI_ERR_COMM;
	if (!value || !flag)
		return MPI_ERR_ARG;
	if (keyval == MPI_KEYVAL_INVALID)
		return MPI_ERR_KEYVAL;
	union attr_value v = {.pointer = NULL};
	int rc = attr_get(ATTR_COMM, c->attrs, keyval, ATTR_C, &v, flag);
	if (!rc && *flag)
		*(void **)value = v.pointer;
	return rc;
}

static int comm_delete(MPI_Comm comm, int keyval)
{
	struct comm *c = comm_of(comm);
	return comm_ok(c) ? attr_delete(ATTR_COMM, c, &c->attrs, keyval) : MPI_ERR_COMM;
}

int PMPI_Comm_set_attr(MPI_Comm comm, int keyval, void *value)
{
	API_ENTER("MPI_Comm_set_attr");
	return API_LEAVE(comm_of(comm), comm_set(comm, keyval, value));
}
API_ALIAS(Comm_set_attr);

int PMPI_Attr_put(MPI_Comm comm, int keyval, void *value)
{
	API_ENTER("MPI_Attr_put");
	return API_LEAVE(comm_of(comm), comm_set(comm, keyval, value));
}
API_ALIAS(Attr_put);

int PMPI_Comm_get_attr(MPI_Comm comm, int keyval, void *value, int *flag)
{
	API_ENTER("MPI_Comm_get_attr");
	return API_LEAVE(comm_of(comm), comm_get(comm, keyval, value, flag));
}
API_ALIAS(Comm_get_attr);

int PMPI_Attr_get(MPI_Comm comm, int keyval, void *value, int *flag)
{
	API_ENTER("MPI_Attr_get");
	return API_LEAVE(comm_of(comm), comm_get(comm, keyval, value, flag));
}
API_ALIAS(Attr_get);

int PMPI_Comm_delete_attr(MPI_Comm comm, int keyval)
{
	API_ENTER("MPI_Comm_delete_attr");
	return API_LEAVE(comm_of(comm), comm_delete(comm, keyval));
}
API_ALIAS(Comm_delete_attr);

int PMPI_Attr_delete(MPI_Comm comm, int keyval)
{
	API_ENTER("MPI_Attr_delete");
	return API_LEAVE(comm_of(comm), comm_delete(comm, keyval));
}
API_ALIAS(Attr_delete);

/* ---- datatypes ---- */

int PMPI_Type_set_attr(MPI_Datatype type, int keyval, void *value)
{
	API_ENTER("MPI_Type_set_attr");
	struct datatype *t = datatype_of(type);
	if (!datatype_ok(t))
		return API_FAIL(NULL, MPI_ERR_TYPE);
	union attr_value v = {.pointer = value};
	return API_LEAVE(NULL, attr_set(ATTR_TYPE, t, &t->attrs, keyval, ATTR_C, v));
}
API_ALIAS(Type_set_attr);

int PMPI_Type_get_attr(MPI_Datatype type, int keyval, void *value, int *flag)
{
	API_ENTER("MPI_Type_get_attr");
	struct datatype *t = datatype_of(type);
	if (!datatype_ok(t))
		return API_FAIL(NULL, MPI_ERR_TYPE);
	if (!value || !flag)
		return API_FAIL(NULL, MPI_ERR_ARG);
	union attr_value v = {.pointer = NULL};
	int rc = attr_get(ATTR_TYPE, t->attrs, keyval, ATTR_C, &v, flag);
	if (!rc && *flag)
		*(void **)value = v.pointer;
	return API_LEAVE(NULL, rc);
}
API_ALIAS(Type_get_attr);

int PMPI_Type_delete_attr(MPI_Datatype type, int keyval)
{
	API_ENTER("MPI_Type_delete_attr");
	struct datatype *t = datatype_of(type);
	if (!datatype_ok(t))
		return API_FAIL(NULL, MPI_ERR_TYPE);
	return API_LEAVE(NULL, attr_delete(ATTR_TYPE, t, &t->attrs, keyval));
}
API_ALIAS(Type_delete_attr);

/* ---- Debian's libmpi_cxx.so.40 and libmpi_mpifh.so.40: kind and flags are numbered as here ----
 */

int ompi_attr_create_keyval(int kind, void *copy, void *del, int *keyval, void *extra, int flags,
			    void *bindings);
int ompi_attr_create_keyval_fint(int kind, void *copy, void *del, int *keyval, MPI_Fint extra,
				 int flags, void *bindings);
int ompi_attr_create_keyval_aint(int kind, void *copy, void *del, int *keyval, MPI_Aint extra,
				 int flags, void *bindings);
int ompi_attr_set_fint(int kind, void *object, struct attributes **attrs, int keyval,
		       MPI_Fint value, bool is_predefined);
int ompi_attr_set_aint(int kind, void *object, struct attributes **attrs, int keyval,
		       MPI_Aint value, bool is_predefined);
int ompi_attr_get_fint(struct attributes *attrs, int keyval, MPI_Fint *value, int *flag);
int ompi_attr_get_aint(struct attributes *attrs, int keyval, MPI_Aint *value, int *flag);

/* `bindings` is an object of the C++ library that goes with the key value; it is the caller's. */
int ompi_attr_create_keyval(int kind, void *copy, void *del, int *keyval, void *extra, int flags,
			    void *bindings)
{
	guard_enter();
	int rc = attr_keyval_create((enum attr_kind)kind, copy, del, keyval, extra,
				    flags & ATTR_FORTRAN);
	guard_leave();
	return rc;
}

int ompi_attr_create_keyval_fint(int kind, void *copy, void *del, int *keyval, MPI_Fint extra,
				 int flags, void *bindings)
{
	union attr_value e = {.aint = 0};
	e.fint = extra;
	guard_enter();
	int rc = attr_keyval_create((enum attr_kind)kind, copy, del, keyval, e.pointer,
				    ATTR_FORTRAN | ATTR_FORTRAN_OLD);
	guard_leave();
	return rc;
}

int ompi_attr_create_keyval_aint(int kind, void *copy, void *del, int *keyval, MPI_Aint extra,
				 int flags, void *bindings)
{
	union attr_value e = {.aint = extra};
	guard_enter();
	int rc =
	    attr_keyval_create((enum attr_kind)kind, copy, del, keyval, e.pointer, ATTR_FORTRAN);
	guard_leave();
	return rc;
}

int ompi_attr_set_fint(int kind, void *object, struct attributes **attrs, int keyval,
		       MPI_Fint value, bool is_predefined)
{
	union attr_value v = {.aint = 0};
	v.fint = value;
	guard_enter();
	int rc = attr_set((enum attr_kind)kind, object, attrs, keyval, ATTR_FORTRAN_INT, v);
	guard_leave();
	return rc;
}

int ompi_attr_set_aint(int kind, void *object, struct attributes **attrs, int keyval,
		       MPI_Aint value, bool is_predefined)
{
	union attr_value v = {.aint = value};
	guard_enter();
	int rc = attr_set((enum attr_kind)kind, object, attrs, keyval, ATTR_FORTRAN_AINT, v);
	guard_leave();
	return rc;
}

/* The kind is not told, and matters for the predefined keys only, which differ by their numbers. */
int ompi_attr_get_fint(struct attributes *attrs, int keyval, MPI_Fint *value, int *flag)
{
	union attr_value v;
	guard_enter();
	int rc = attr_get(ATTR_COMM, attrs, keyval, ATTR_FORTRAN_INT, &v, flag);
	if (!rc && *flag)
		*value = v.fint;
	guard_leave();
	return rc;
}

int ompi_attr_get_aint(struct attributes *attrs, int keyval, MPI_Aint *value, int *flag)
{
	union attr_value v;
	guard_enter();
	int rc = attr_get(ATTR_COMM, attrs, keyval, ATTR_FORTRAN_AINT, &v, flag);
	if (!rc && *flag)
		*value = v.aint;
	guard_leave();
	return rc;
}
