/* SPDX-License-Identifier: BSD-3-Clause */
/* Fortran handles: one table per kind of object, from integers to objects. Predefined objects have
 * the integers of Open MPI's mpif.h; others get the lowest free one above when they are first asked
 * for, and give it back when they are destroyed. */
#include <string.h>
#include "mpi/abi/abi.h"

enum { KINDS = OBJECT_FILE - OBJECT_COMM + 1, NONE = -1 };

struct handles_table {
	struct object **slot;
	int size;
	int low; /* no slot below it is free */
};

static struct handles_table table[KINDS];
static bool ready;
bool object_fortran_used;

/* Named by their symbols, because executables may hold the live copies. */
#define PREDEFINED(kind, index, symbol) extern struct object handle_##symbol __asm__(#symbol);
#include "mpi/abi/predefined.inc"
#undef PREDEFINED

static struct handles_table *table_of(uint32_t kind)
{
	return &table[kind - OBJECT_COMM];
}

static bool table_reach(struct handles_table *t, int index)
{
	int size = t->size ? t->size : 16;
	struct object **slot;

	if (index < t->size)
		return true;
	while (size <= index)
		size *= 2;
	slot = heap_realloc(t->slot, (size_t)size * sizeof(void *));
	if (!slot)
		return false;
	memset(slot + t->size, 0, (size_t)(size - t->size) * sizeof(void *));
	t->slot = slot;
	t->size = size;
	return true;
}

/* Debian's Fortran library looks at these two fields instead of asking. */
static void object_set_index(struct object *o, int index)
{
	o->f_index = index;
	if (o->kind == OBJECT_GROUP)
		((struct group *)o)->fortran_index = index;
	else if (o->kind == OBJECT_REQUEST)
		((struct request *)o)->fortran_index = index;
}

int abi_init(void)
{
	static const struct {
		uint32_t kind;
		int index;
		struct object *object;
	} predefined[] = {
#define PREDEFINED(kind, index, symbol) {kind, index, &handle_##symbol},
#include "mpi/abi/predefined.inc"
#undef PREDEFINED
	};

	if (ready)
		return MPI_SUCCESS;
	for (size_t i = 0; i < ARRAY_LEN(predefined); i++) {
		struct handles_table *t = table_of(predefined[i].kind);
		if (!table_reach(t, predefined[i].index))
			return MPI_ERR_NO_MEM;
		t->slot[predefined[i].index] = predefined[i].object;
		object_set_index(predefined[i].object, predefined[i].index);
	}
	ready = true;
	return MPI_SUCCESS;
}

int object_to_fortran(struct object *o)
{
	struct handles_table *t = table_of(o->kind);

	if (abi_init() != MPI_SUCCESS)
		return NONE;
	if (o->f_index != NONE)
		return o->f_index;
	int index = t->low;
	while (index < t->size && t->slot[index])
		index++;
	if (!table_reach(t, index))
		return NONE;
	t->slot[index] = o;
	t->low = index + 1;
	object_set_index(o, index);
	return index;
}

struct object *object_from_fortran(int index, enum object_kind kind)
{
	const struct handles_table *t = table_of(kind);

	object_fortran_used = true;
	if (abi_init() != MPI_SUCCESS || index < 0 || index >= t->size)
		return NULL;
	return t->slot[index];
}

void object_forget_fortran(struct object *o)
{
	if (LIKELY(o->f_index == NONE))
		return;
	struct handles_table *t = table_of(o->kind);
	if (o->f_index < t->size && t->slot[o->f_index] == o) {
		t->slot[o->f_index] = NULL;
		if (o->f_index < t->low)
			t->low = o->f_index;
	}
	object_set_index(o, NONE);
}
