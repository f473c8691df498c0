/* SPDX-License-Identifier: BSD-3-Clause */
/* What MPICH's Fortran and C++ libraries (libmpichfort.so.12, libmpichcxx.so.12) take from
 * libmpich.so.12 beyond MPI: attributes of another language, and callbacks in another one. Both
 * libraries work above ours as they are. */
#include "mpi/front/attributes.h"
#include "mpi/win/win.h"

/* ---- attributes: MPICH's three types of values ---- */

enum mpich_value { MPICH_POINTER = 0, MPICH_AINT = 1, MPICH_INT = 3 };

static enum attr_language language_of(enum mpich_value type)
{
	return type == MPICH_POINTER ? ATTR_C
	       : type == MPICH_AINT  ? ATTR_FORTRAN_AINT
				     : ATTR_FORTRAN_INT;
}

/* Fortran's names of predefined key values are C's plus 1. */
static int keyval_in(int keyval)
{
	unsigned bits = (unsigned)keyval >> 24;

	return front_keyval_in((bits == 0x64 || bits == 0x66) && !(keyval & 1) ? keyval - 1 : keyval);
}

static enum mpich_value value_of(enum attr_language language)
{
	return language == ATTR_C		? MPICH_POINTER
	       : language == ATTR_FORTRAN_AINT ? MPICH_AINT
						: MPICH_INT;
}

static int attribute_set(enum attr_kind kind, void *object, struct attributes **attrs, int keyval,
			 void *value, enum mpich_value type)
{
	union attr_value v = {.pointer = value};

	if (type == MPICH_INT)
		v = (union attr_value){.fint = (MPI_Fint)(intptr_t)value};
	return attr_set(kind, object, attrs, keyval_in(keyval), language_of(type), v);
}

static int attribute_get(enum attr_kind kind, struct attributes *attrs, int keyval, void *value,
			 int *flag, enum mpich_value type)
{
	union attr_value v = {.aint = 0};
	int rc = attr_get(kind, attrs, keyval_in(keyval), language_of(type), &v, flag);

	if (rc || !*flag)
		return rc;
	MPI_Aint number = type == MPICH_INT ? v.fint : v.aint;
	bool small = type != MPICH_POINTER && number == (int)number;
	*(MPI_Aint *)value =
	    small ? front_attribute_value(keyval_in(keyval), (int)number) : number;
	return rc;
}

#define MPICH_ATTRIBUTES(name, lower, KIND, ok, bad)                                               \
	int mpich_##lower##_set(front_##lower handle, int keyval, void *value,                     \
				enum mpich_value type) __asm__("MPII_" #name "_set_attr");         \
	int mpich_##lower##_set(front_##lower handle, int keyval, void *value,                     \
				enum mpich_value type)                                             \
	{                                                                                          \
		API_ENTER("MPI_" #name "_set_attr");                                               \
		struct lower##_attributed *o = (void *)front_##lower##_in(handle);                 \
		int rc = ok(o) ? attribute_set(ATTR_##KIND, o, &o->attrs, keyval, value, type)     \
			       : (bad);                                                            \
		return front_error_out(API_LEAVE(NULL, rc));                                       \
	}                                                                                          \
	int mpich_##lower##_get(front_##lower handle, int keyval, void *value, int *flag,          \
				enum mpich_value type) __asm__("MPII_" #name "_get_attr");         \
	int mpich_##lower##_get(front_##lower handle, int keyval, void *value, int *flag,          \
				enum mpich_value type)                                             \
	{                                                                                          \
		API_ENTER("MPI_" #name "_get_attr");                                               \
		struct lower##_attributed *o = (void *)front_##lower##_in(handle);                 \
		int rc = ok(o) ? attribute_get(ATTR_##KIND, o->attrs, keyval, value, flag, type)   \
			       : (bad);                                                            \
		return front_error_out(API_LEAVE(NULL, rc));                                       \
	}
#define comm_attributed comm
#define type_attributed datatype
#define win_attributed	win
MPICH_ATTRIBUTES(Comm, comm, COMM, comm_ok, MPI_ERR_COMM)
MPICH_ATTRIBUTES(Type, type, TYPE, datatype_ok, MPI_ERR_TYPE)
MPICH_ATTRIBUTES(Win, win, WIN, win_ok, MPI_ERR_WIN)

/* ---- callbacks of attributes in another language ---- */

static void proxy_copy(MPI_Fint *handle, MPI_Fint *keyval, MPI_Aint *extra, MPI_Aint *in,
		       MPI_Aint *out, MPI_Fint *flag, MPI_Fint *ierr)
{
	const struct front_keyval *k = *(struct front_keyval **)extra;
	int (*proxy)(void *, int, int, void *, enum mpich_value, void *, void **, int *) =
	    k->copy_proxy;
	void *made = NULL;

	*flag = 0;
	*ierr = MPI_SUCCESS;
	if (!k->copy)
		return;
	*ierr = front_error_in(proxy(k->copy, *handle, front_keyval_out(*keyval), k->extra,
				     value_of(attr_original), *(void **)in, &made, flag));
	*out = (MPI_Aint)made;
}

static void proxy_delete(MPI_Fint *handle, MPI_Fint *keyval, MPI_Aint *value, MPI_Aint *extra,
			 MPI_Fint *ierr)
{
	const struct front_keyval *k = *(struct front_keyval **)extra;
	int (*proxy)(void *, int, int, enum mpich_value, void *, void *) = k->delete_proxy;

	*ierr = MPI_SUCCESS;
	if (k->del)
		*ierr = front_error_in(proxy(k->del, *handle, front_keyval_out(*keyval),
					     value_of(attr_original), *(void **)value, k->extra));
}

void mpich_keyval_set_proxy(int keyval, void *copy, void *del) __asm__("MPII_Keyval_set_proxy");
void mpich_keyval_set_proxy(int keyval, void *copy, void *del)
{
	guard_enter();
	struct front_keyval *k =
	    attr_keyval_in_fortran(front_keyval_in(keyval), (void *)proxy_copy, (void *)proxy_delete);
	guard_leave();
	if (k) {
		k->copy_proxy = copy;
		k->delete_proxy = del;
	}
}

/* ---- operations and error handlers of C++ ---- */

static void (*cxx_op)(void *, void *, int, front_type, MPI_User_function *);
static void (*cxx_error)(int kind, void *handle, int *error, void *user);

static void op_in_cxx(void *in, void *inout, int *length, MPI_Datatype *type,
		      MPI_User_function *user)
{
	cxx_op(in, inout, *length, front_type_out(*type), user);
}

void mpich_op_set_cxx(front_op op, void *call) __asm__("MPII_Op_set_cxx");
void mpich_op_set_cxx(front_op op, void *call)
{
	struct op *o = front_op_in(op);

	cxx_op = call;
	if (o)
		o->cxx_intercept = op_in_cxx;
}

/* The kinds that MPICH's C++ library knows. */
static void comm_in_cxx(void *object, int *code, const char *where, void *user)
{
	front_comm handle = front_comm_out(*(void **)object);
	int error = front_error_out(*code);

	cxx_error(0, &handle, &error, user);
}
static void file_in_cxx(void *object, int *code, const char *where, void *user)
{
	front_file handle = front_file_out(*(void **)object);
	int error = front_error_out(*code);

	cxx_error(1, &handle, &error, user);
}
static void win_in_cxx(void *object, int *code, const char *where, void *user)
{
	front_win handle = front_win_out(*(void **)object);
	int error = front_error_out(*code);

	cxx_error(2, &handle, &error, user);
}

void mpich_errhandler_set_cxx(front_errhandler handle, void *call)
    __asm__("MPII_Errhandler_set_cxx");
void mpich_errhandler_set_cxx(front_errhandler handle, void *call)
{
	struct errhandler *e = front_errhandler_in(handle);

	cxx_error = call;
	if (e)
		e->cxx_fn = e->target == ERRHANDLER_WIN	   ? win_in_cxx
			    : e->target == ERRHANDLER_FILE ? file_in_cxx
							   : comm_in_cxx;
}

/* ---- generalized requests of Fortran ---- */

void mpich_grequest_fortran(front_request request) __asm__("MPII_Grequest_set_lang_f77");
void mpich_grequest_fortran(front_request request)
{
	struct request *r = front_request_in(request);

	if (r && r->kind == REQUEST_GENERALIZED)
		front_grequest_fortran(r);
}
