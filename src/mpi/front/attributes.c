/* SPDX-License-Identifier: BSD-3-Clause */
/* Attributes: callbacks get the program's handles and key values; what the library tells by
 * attributes is in the program's constants. */
#include "mpi/front/attributes.h"

typedef int(copy_t)(void *object, int keyval, void *extra, void *value, void *copy, int *flag);
typedef int(delete_t)(void *object, int keyval, void *value, void *extra);

/* NOLINTBEGIN(bugprone-macro-parentheses): names and types can't have them */
#define ATTRIBUTE_CALLBACKS(kind)                                                                  \
	static int kind##_copy(void *object, int keyval, void *extra, void *value, void *copy,     \
			       int *flag)                                                          \
	{                                                                                          \
		const struct front_keyval *k = extra;                                              \
		int (*user)(front_##kind, int, void *, void *, void *, int *) = k->copy;           \
		return front_error_in(user(front_##kind##_out(object), front_keyval_out(keyval),   \
					   k->extra, value, copy, flag));                          \
	}                                                                                          \
	static int kind##_delete(void *object, int keyval, void *value, void *extra)               \
	{                                                                                          \
		const struct front_keyval *k = extra;                                              \
		int (*user)(front_##kind, int, void *, void *) = k->del;                           \
		return front_error_in(user(front_##kind##_out(object), front_keyval_out(keyval),   \
					   value, k->extra));                                      \
	}
ATTRIBUTE_CALLBACKS(comm)
ATTRIBUTE_CALLBACKS(type)
ATTRIBUTE_CALLBACKS(win)
/* NOLINTEND(bugprone-macro-parentheses) */

static int copy_nothing(void *object, int keyval, void *extra, void *value, void *copy, int *flag)
{
	*flag = 0;
	return MPI_SUCCESS;
}
static int copy_value(void *object, int keyval, void *extra, void *value, void *copy, int *flag)
{
	*(void **)copy = value;
	*flag = 1;
	return MPI_SUCCESS;
}
static int delete_nothing(void *object, int keyval, void *value, void *extra)
{
	return MPI_SUCCESS;
}

/* A user's function as NULL is MPI_NULL_COPY_FN or MPI_NULL_DELETE_FN in both ABIs; the standard's
 * MPI_DUP_FN is 1, MPICH's an ordinary function. */
static int keyval_create(int (*create)(void *, void *, int *, void *), copy_t *copy, delete_t *del,
			 void *user_copy, void *user_delete, int *keyval, void *extra)
{
	struct front_keyval *k;
	int made = MPI_KEYVAL_INVALID;

	guard_enter();
	k = heap_alloc(sizeof(*k));
	guard_leave();
	if (!k)
		return front_error_out(api_error(NULL, MPI_ERR_NO_MEM, "MPI_*_create_keyval"));
	*k = (struct front_keyval){.copy = user_copy, .del = user_delete, .extra = extra};
	if (!user_copy)
		copy = copy_nothing;
	else if (user_copy == (void *)1)
		copy = copy_value;
	if (!user_delete)
		del = delete_nothing;
	int rc = create((void *)copy, (void *)del, keyval ? &made : NULL, k);
	if (!rc)
		*keyval = front_keyval_out(made);
	return front_error_out(rc);
}

FRONT(int, Comm_create_keyval, (void *copy, void *del, int *keyval, void *extra))
{
	return keyval_create(core_Comm_create_keyval, comm_copy, comm_delete, copy, del, keyval,
			     extra);
}
FRONT(int, Keyval_create, (void *copy, void *del, int *keyval, void *extra))
{
	return keyval_create(core_Keyval_create, comm_copy, comm_delete, copy, del, keyval, extra);
}
FRONT(int, Type_create_keyval, (void *copy, void *del, int *keyval, void *extra))
{
	return keyval_create(core_Type_create_keyval, type_copy, type_delete, copy, del, keyval,
			     extra);
}
FRONT(int, Win_create_keyval, (void *copy, void *del, int *keyval, void *extra))
{
	return keyval_create(core_Win_create_keyval, win_copy, win_delete, copy, del, keyval,
			     extra);
}

/* ---- reading ---- */

int front_attribute_value(int keyval, int v)
{
	switch (keyval) {
	case MPI_IO:
	case MPI_HOST:
		return front_rank_out(v);
	case MPI_LASTUSEDCODE:
		return v == MPI_ERR_LASTCODE ? FRONT_ERR_LASTCODE : front_error_out(v);
	case MPI_WIN_CREATE_FLAVOR:
		return front_flavor_out(v);
	case MPI_WIN_MODEL:
		return front_model_out(v);
	default:
		return v;
	}
}

/* A program gets the address of an integer: of the core's, or where its value is a constant, of the
 * program's constant for it. Windows differ in theirs, so each value has an address. */
static void *attribute_shown(int keyval, void *value)
{
	static int shown[MPI_WIN_MODEL + 1][8];
	int mine = 0, *at;

	switch (keyval) {
	case MPI_IO:
	case MPI_HOST:
	case MPI_LASTUSEDCODE:
	case MPI_WIN_CREATE_FLAVOR:
	case MPI_WIN_MODEL:
		mine = front_attribute_value(keyval, *(int *)value);
		at = &shown[keyval][keyval >= MPI_WIN_CREATE_FLAVOR ? *(int *)value & 7 : 0];
		*at = mine;
		return at;
	default:
		return value;
	}
}

static int attribute_get(int (*get)(void *, int, void *, int *), void *object, int keyval,
			 void *value, int *flag)
{
	int k = front_keyval_in(keyval);
	int rc = get(object, k, value, flag);

	if (!rc && *flag && k >= 0 && k <= MPI_WIN_MODEL)
		*(void **)value = attribute_shown(k, *(void **)value);
	return front_error_out(rc);
}

FRONT(int, Comm_get_attr, (front_comm comm, int keyval, void *value, int *flag))
{
	return attribute_get(core_Comm_get_attr, front_comm_in(comm), keyval, value, flag);
}
FRONT(int, Attr_get, (front_comm comm, int keyval, void *value, int *flag))
{
	return attribute_get(core_Attr_get, front_comm_in(comm), keyval, value, flag);
}
FRONT(int, Win_get_attr, (front_win win, int keyval, void *value, int *flag))
{
	return attribute_get(core_Win_get_attr, front_win_in(win), keyval, value, flag);
}

#define KEYVAL_FREE(name)                                                                          \
	FRONT(int, name, (int *keyval))                                                            \
	{                                                                                          \
		int k = keyval ? front_keyval_in(*keyval) : MPI_KEYVAL_INVALID;                    \
		int rc = core_##name(keyval ? &k : NULL);                                          \
		if (!rc)                                                                           \
			*keyval = front_keyval_out(MPI_KEYVAL_INVALID);                            \
		return front_error_out(rc);                                                        \
	}
KEYVAL_FREE(Comm_free_keyval)
KEYVAL_FREE(Keyval_free)
KEYVAL_FREE(Type_free_keyval)
KEYVAL_FREE(Win_free_keyval)
