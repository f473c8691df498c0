/* SPDX-License-Identifier: BSD-3-Clause */
/* object/: the MPI objects as plain C structs with one header each, and what can be done with one
 * alone: reference counts, the datatype engine (flatten, pack, unpack), the kernels of reduction
 * operations. No communication. May call: base/. Called by: match/, deliver/, coll/, mpi/.
 *
 * A handle of the Open MPI ABI is a pointer to such a struct. Predefined objects are data symbols
 * (ompi_mpi_comm_world, …) that executables may have copied into themselves (R_X86_64_COPY), so
 * - they must be reached through their symbol (GOT), never through a saved private alias;
 * - they contain no pointer into themselves in their static initialiser;
 * - they are as large as Open MPI's (the struct plus padding).
 */
#ifndef HALE_OBJECT_OBJECT_H
#define HALE_OBJECT_OBJECT_H

#include <mpi.h>
#include <stddef.h>
#include "base/base.h"

enum object_kind {
	OBJECT_FREED = 0, /* a stale handle shows this until its memory is reused */
	OBJECT_COMM = 0x48410001,
	OBJECT_GROUP,
	OBJECT_DATATYPE,
	OBJECT_OP,
	OBJECT_REQUEST,
	OBJECT_MESSAGE,
	OBJECT_ERRHANDLER,
	OBJECT_INFO,
	OBJECT_WIN,
	OBJECT_FILE,
	OBJECT_SESSION,
};

enum object_flag {
	OBJECT_PREDEFINED = 1, /* never freed; freeing it is an argument error */
	OBJECT_NULL = 2,       /* the null handle of its kind */
	OBJECT_UNBORN = 4,     /* a nonblocking call makes it, and has not completed */
	OBJECT_FAILED = 8,     /* that call failed: the handle can only be freed */
};

struct object {
	uint32_t kind;	 /* enum object_kind */
	uint32_t flags;	 /* enum object_flag */
	int32_t refs;	 /* user handle and internal uses; the last release destroys */
	int32_t f_index; /* Fortran handle; -1: none given yet (c2f gives one) */
};

#define OBJECT_STATIC(k, f)                                                                        \
	{                                                                                          \
		.kind = (k), .flags = OBJECT_PREDEFINED | (f), .refs = 1, .f_index = -1            \
	}

enum { OBJECT_UNUSABLE = OBJECT_NULL | OBJECT_UNBORN | OBJECT_FAILED };

/* A live, non-null object of that kind? NULL and freed handles are not. */
static inline bool object_is(const void *handle, enum object_kind kind)
{
	const struct object *o = handle;
	return o && o->kind == (uint32_t)kind && !(o->flags & OBJECT_UNUSABLE);
}

/* Debian's libmpi_mpifh.so.40 reaches a few fields of Open MPI's objects without a function call.
 * Ours have them at the same places, so that it works above this library as it is. */
#define FORTRAN_OFFSET(type, field, offset)                                                        \
	_Static_assert(offsetof(type, field) == (offset),                                          \
		       #type ": libmpi_mpifh.so.40 reads " #field)

static inline void object_init(struct object *o, enum object_kind kind)
{
	o->kind = kind;
	o->flags = 0;
	o->refs = 1;
	o->f_index = -1;
}

static inline void object_retain(struct object *o)
{
	o->refs++;
}

/* True when this was the last reference; predefined objects are never at their last. */
static inline bool object_drop(struct object *o)
{
	if (o->flags & OBJECT_PREDEFINED)
		return false;
	return --o->refs == 0;
}

#endif
