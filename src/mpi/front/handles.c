/* SPDX-License-Identifier: BSD-3-Clause */
/* The integers of objects: one table a kind. They are the handles of MPICH, and the Fortran handles
 * of every ABI; this file stands where libmpi.so.40 has mpi/abi/handles.c. */
#include <string.h>
#include "mpi/front/front.h"

struct front_table front_table[FRONT_KINDS];
bool object_fortran_used;

/* ---- predefined objects (tables that gen_front.py makes) ---- */

static void handles_predefine(void *object, int number)
{
	struct object *o = object;

	/* two names of one object have one number */
	o->f_index = number;
	if (o->kind == OBJECT_GROUP)
		((struct group *)o)->fortran_index = number;
	else if (o->kind == OBJECT_REQUEST)
		((struct request *)o)->fortran_index = number;
}

static bool handles_grow(struct front_table *t, uint32_t first)
{
	uint32_t size = t->size ? 2 * t->size : 64;
	uintptr_t *slot = heap_realloc(t->slot, size * sizeof(*slot));

	if (!slot)
		return false;
	uint32_t from = t->size ? t->size : first;
	for (uint32_t i = t->size; i < from; i++)
		slot[i] = (uintptr_t)front_first_object(i);
	for (uint32_t i = from; i < size; i++)
		slot[i] = 2 * (uintptr_t)(i + 1) + 1;
	t->free = from;
	t->slot = slot;
	t->size = size;
	return true;
}

/* When the library is loaded: programs may name predefined handles before MPI_Init. */
__attribute__((constructor)) static void handles_begin(void)
{
#define FRONT_ENTRY(value, name) handles_predefine((void *)name, (int)(value));
	FRONT_PREDEFINED_COMM(FRONT_ENTRY)
	FRONT_PREDEFINED_GROUP(FRONT_ENTRY)
	FRONT_PREDEFINED_TYPE(FRONT_ENTRY)
	FRONT_PREDEFINED_OP(FRONT_ENTRY)
	FRONT_PREDEFINED_REQUEST(FRONT_ENTRY)
	FRONT_PREDEFINED_MESSAGE(FRONT_ENTRY)
	FRONT_PREDEFINED_ERRHANDLER(FRONT_ENTRY)
	FRONT_PREDEFINED_INFO(FRONT_ENTRY)
	FRONT_PREDEFINED_WIN(FRONT_ENTRY)
	FRONT_PREDEFINED_FILE(FRONT_ENTRY)
	FRONT_PREDEFINED_SESSION(FRONT_ENTRY)
#undef FRONT_ENTRY
	if (FRONT_FIRST(FRONT_TYPE))
		handles_grow(&front_table[FRONT_TYPE], FRONT_FIRST(FRONT_TYPE));
}

int abi_init(void)
{
	return MPI_SUCCESS;
}

/* ---- objects made at run time ---- */

static enum front_kind handles_kind(uint32_t object_kind)
{
	static const unsigned char kinds[] = {
	    [OBJECT_COMM - OBJECT_COMM] = FRONT_COMM,
	    [OBJECT_GROUP - OBJECT_COMM] = FRONT_GROUP,
	    [OBJECT_DATATYPE - OBJECT_COMM] = FRONT_TYPE,
	    [OBJECT_OP - OBJECT_COMM] = FRONT_OP,
	    [OBJECT_REQUEST - OBJECT_COMM] = FRONT_REQUEST,
	    [OBJECT_MESSAGE - OBJECT_COMM] = FRONT_MESSAGE,
	    [OBJECT_ERRHANDLER - OBJECT_COMM] = FRONT_ERRHANDLER,
	    [OBJECT_INFO - OBJECT_COMM] = FRONT_INFO,
	    [OBJECT_WIN - OBJECT_COMM] = FRONT_WIN,
	    [OBJECT_FILE - OBJECT_COMM] = FRONT_FILE,
	    [OBJECT_SESSION - OBJECT_COMM] = FRONT_SESSION,
	};
	return kinds[object_kind - OBJECT_COMM];
}

int object_to_fortran(struct object *o)
{
	if (o->f_index != -1)
		return o->f_index;
	enum front_kind kind = handles_kind(o->kind);
	struct front_table *t = &front_table[kind];
	if ((t->size == 0 || t->free >= t->size) && !handles_grow(t, FRONT_FIRST(kind)))
		return -1;
	uint32_t index = t->free;
	t->free = (uint32_t)(t->slot[index] >> 1);
	t->slot[index] = (uintptr_t)o;
	handles_predefine(o, FRONT_INTEGER(kind, index));
	return o->f_index;
}

int front_number(void *object)
{
	guard_enter();
	int number = object_to_fortran(object);
	guard_leave();
	return number;
}

void object_forget_fortran(struct object *o)
{
	if (o->f_index == -1 || (o->flags & OBJECT_PREDEFINED))
		return;
	struct front_table *t = &front_table[handles_kind(o->kind)];
	uint32_t index = FRONT_INDEX(o->f_index);

	if (index < t->size && t->slot[index] == (uintptr_t)o) {
		t->slot[index] = 2 * (uintptr_t)t->free + 1;
		t->free = index;
	}
	handles_predefine(o, -1);
}

struct object *object_from_fortran(int integer, enum object_kind kind)
{
	return front_integer_in(handles_kind(kind), integer);
}

/* ---- MPI_X_toint and MPI_X_fromint ---- */

#define INTEGERS(name, lower)                                                                      \
	FRONT(int, name##_toint, (front_##lower handle))                                           \
	{                                                                                          \
		void *o = front_##lower##_in(handle);                                              \
		return o ? front_number(o) : -1;                                                   \
	}                                                                                          \
	FRONT(front_##lower, name##_fromint, (int integer))                                        \
	{                                                                                          \
		return front_##lower##_out(                                                        \
		    front_integer_in(handles_kind(INTEGERS_KIND_##lower), integer));               \
	}
#define INTEGERS_KIND_comm	 OBJECT_COMM
#define INTEGERS_KIND_group	 OBJECT_GROUP
#define INTEGERS_KIND_type	 OBJECT_DATATYPE
#define INTEGERS_KIND_op	 OBJECT_OP
#define INTEGERS_KIND_request	 OBJECT_REQUEST
#define INTEGERS_KIND_message	 OBJECT_MESSAGE
#define INTEGERS_KIND_errhandler OBJECT_ERRHANDLER
#define INTEGERS_KIND_info	 OBJECT_INFO
#define INTEGERS_KIND_win	 OBJECT_WIN
#define INTEGERS_KIND_file	 OBJECT_FILE
#define INTEGERS_KIND_session	 OBJECT_SESSION
INTEGERS(Comm, comm)
INTEGERS(Group, group)
INTEGERS(Type, type)
INTEGERS(Op, op)
INTEGERS(Request, request)
INTEGERS(Message, message)
INTEGERS(Errhandler, errhandler)
INTEGERS(Info, info)
INTEGERS(Win, win)
INTEGERS(File, file)
INTEGERS(Session, session)
