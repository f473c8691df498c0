/* SPDX-License-Identifier: BSD-3-Clause */
/* mpi/front/: the ABIs beside Open MPI's. A front library is the whole MPI library with other entry
 * points: libmpich.so.12 (MPICH) and libmpi_abi.so.1 (the MPI standard's own ABI). Its objects, its
 * communication, its algorithms are the same object files; only what the program sees differs.
 *
 *	program → PMPI_Send, weak MPI_Send (here: handles and constants converted)
 *	        → core_PMPI_Send (mpi/, as in libmpi.so.40)
 *
 * gen_front.py makes the entry points from functions.tsv and constants.tsv; what has callbacks,
 * arrays of requests or values that depend on others is written by hand. mpich.h and standard.h say
 * how handles and statuses look: one of them is included by the compiler's command line.
 *
 * A front_ function is a function of the program's ABI, a core_ function one of the core; types
 * named front_… are the program's. May call: mpi/ and all below. */
#ifndef HALE_MPI_FRONT_FRONT_H
#define HALE_MPI_FRONT_FRONT_H

#include <limits.h>
#include "mpi/abi/abi.h"
#include "mpi/mpi4.h"

/* The kinds of handles, each with a table of its own. */
enum front_kind {
	FRONT_COMM,
	FRONT_GROUP,
	FRONT_TYPE,
	FRONT_OP,
	FRONT_REQUEST,
	FRONT_MESSAGE,
	FRONT_ERRHANDLER,
	FRONT_INFO,
	FRONT_WIN,
	FRONT_FILE,
	FRONT_SESSION,
	FRONT_KINDS
};

/* The objects that have been given an integer. A free slot holds the next free one, twice its
 * number plus 1: no object has an odd address. */
struct front_table {
	uintptr_t *slot;
	uint32_t size, free;
};
extern struct front_table front_table[FRONT_KINDS];

static inline void *front_table_at(enum front_kind kind, uint32_t index)
{
	const struct front_table *t = &front_table[kind];
	uintptr_t at = index < t->size ? t->slot[index] : 1;

	return at & 1 ? NULL : (void *)at;
}

/* The predefined objects that stand in the first places of the table of types. */
void *front_first_object(uint32_t index);

/* Gives an object its integer (and so MPICH's handle). Takes the guard. -1: no memory. */
int front_number(void *object);

#include FRONT_ABI /* mpich.h or standard.h, and the generated header */

#define FRONT_ALIAS(name)                                                                          \
	extern __typeof(front_##name) front_weak_##name __asm__("MPI_" #name)                      \
	    __attribute__((weak, alias("PMPI_" #name)))
/* The definition of a function of the table. */
#define FRONT(result, name, parameters)                                                            \
	FRONT_ALIAS(name);                                                                         \
	result front_##name parameters
/* The definition of one that the table has not. */
#define FRONT_MORE(result, name, parameters)                                                       \
	result front_##name parameters __asm__("PMPI_" #name);                                     \
	FRONT_ALIAS(name);                                                                         \
	result front_##name parameters

/* ---- constants ---- */
enum {
	FRONT_NONE = -77777,	     /* no value of any enumeration of the core */
	FRONT_UNTOUCHED = INT_MIN,   /* in a status: the core has not written it */
};

#define FRONT_ENUMERATION(family)                                                                  \
	static inline int front_##family##_in(int v)                                               \
	{                                                                                          \
		return front_##family##_in_known(v, v == FRONT_UNDEFINED ? v : FRONT_NONE);        \
	}                                                                                          \
	static inline int front_##family##_out(int v)                                              \
	{                                                                                          \
		return front_##family##_out_known(v, v);                                           \
	}
FRONT_ENUMERATION(combiner)
FRONT_ENUMERATION(typeclass)
FRONT_ENUMERATION(compare)
FRONT_ENUMERATION(topology)
FRONT_ENUMERATION(split)
FRONT_ENUMERATION(lock)
FRONT_ENUMERATION(flavor)
FRONT_ENUMERATION(model)
FRONT_ENUMERATION(order)
FRONT_ENUMERATION(distribute)
FRONT_ENUMERATION(whence)
FRONT_ENUMERATION(thread)
FRONT_ENUMERATION(verbosity)
FRONT_ENUMERATION(binding)
FRONT_ENUMERATION(scope)
FRONT_ENUMERATION(pvar)

/* The program's own error codes follow the last predefined one, in the core and in front. */
static inline int front_error_in(int v)
{
	return front_error_in_known(v, v > FRONT_ERR_LASTCODE
					   ? v - FRONT_ERR_LASTCODE + MPI_ERR_LASTCODE
					   : FRONT_NONE);
}
int front_error_out_slow(int v) __attribute__((cold));
static inline int front_error_out(int v)
{
	return LIKELY(v == MPI_SUCCESS) ? v : front_error_out_slow(v);
}

static inline int front_keyval_in(int v)
{
	return front_keyval_in_known(
	    v, (unsigned)v >= FRONT_KEYVAL_FIRST ? (int)((unsigned)v - FRONT_KEYVAL_FIRST)
						 : MPI_KEYVAL_INVALID);
}
static inline int front_keyval_out(int v)
{
	return front_keyval_out_known(v, (int)(FRONT_KEYVAL_FIRST + (unsigned)v));
}

static inline int front_rank_in(int v)
{
	if (LIKELY(v >= 0))
		return v;
	return v == FRONT_PROC_NULL    ? MPI_PROC_NULL
	       : v == FRONT_ANY_SOURCE ? MPI_ANY_SOURCE
	       : v == FRONT_ROOT       ? MPI_ROOT
	       : v == FRONT_UNDEFINED  ? MPI_UNDEFINED
				       : FRONT_NONE;
}
static inline int front_rank_out(int v)
{
	if (LIKELY(v >= 0))
		return v;
	return v == MPI_PROC_NULL    ? FRONT_PROC_NULL
	       : v == MPI_ANY_SOURCE ? FRONT_ANY_SOURCE
	       : v == MPI_ROOT	     ? FRONT_ROOT
				     : v;
}
static inline int front_tag_in(int v)
{
	if (LIKELY(v >= 0) || FRONT_ANY_TAG == MPI_ANY_TAG)
		return v;
	return v == FRONT_ANY_TAG ? MPI_ANY_TAG : FRONT_NONE;
}
static inline int front_tag_out(int v)
{
	return v == MPI_ANY_TAG ? FRONT_ANY_TAG : v;
}

static inline bool front_in_place(const void *buffer)
{
	return buffer == (const void *)(intptr_t)FRONT_IN_PLACE;
}
static inline void *front_buffer_in(const void *buffer)
{
	return front_in_place(buffer) ? MPI_IN_PLACE : (void *)(uintptr_t)buffer;
}
static inline MPI_Offset front_displacement_in(MPI_Offset v)
{
	return v == FRONT_DISPLACEMENT_CURRENT ? MPI_DISPLACEMENT_CURRENT : v;
}

/* MPI_BUFFER_AUTOMATIC instead of a buffer for MPI_Bsend. */
#define FRONT_AUTOMATIC ((void *)(intptr_t)(FRONT_BUFFER_AUTOMATIC))
static inline void *front_attached_in(void *buffer)
{
	return buffer == FRONT_AUTOMATIC ? MPI_BUFFER_AUTOMATIC : buffer;
}
static inline void front_attached_out(void *address)
{
	if (*(void **)address == MPI_BUFFER_AUTOMATIC)
		*(void **)address = FRONT_AUTOMATIC;
}

/* The type of a message: MPICH takes a null one for nothing. */
static inline void *front_type_of(front_type type, MPI_Count count)
{
	void *t = front_type_in(type);

	return UNLIKELY(t == MPI_DATATYPE_NULL && count == 0) ? MPI_BYTE : t;
}

/* ---- statuses ---- */
static inline void front_status_begin(MPI_Status *s)
{
	s->MPI_SOURCE = s->MPI_ERROR = FRONT_UNTOUCHED;
	s->MPI_TAG = 0;
	s->_cancelled = 0;
	s->_ucount = SIZE_MAX;
}
static inline void front_status_in(MPI_Status *s, const front_status *from)
{
	s->MPI_SOURCE = front_rank_in(FRONT_SOURCE(from));
	s->MPI_TAG = front_tag_in(FRONT_TAG(from));
	s->MPI_ERROR = front_error_in(FRONT_ERROR(from));
	front_status_hidden_in(s, from);
}
/* What the core has not written stays: a flag that is false, an error of a call for one. */
static inline void front_status_end(front_status *to, const MPI_Status *s)
{
	MPI_Status counted = *s;

	if (s->MPI_SOURCE == FRONT_UNTOUCHED && s->_ucount == SIZE_MAX)
		return;
	if (s->MPI_SOURCE != FRONT_UNTOUCHED) { /* transfers of files have a count only */
		FRONT_SOURCE(to) = front_rank_out(s->MPI_SOURCE);
		FRONT_TAG(to) = front_tag_out(s->MPI_TAG);
	}
	if (s->MPI_ERROR != FRONT_UNTOUCHED)
		FRONT_ERROR(to) = front_error_out(s->MPI_ERROR);
	if (s->_ucount == SIZE_MAX)
		counted._ucount = 0;
	front_status_hidden_out(to, &counted);
}

/* The callbacks of this generalized request are Fortran's (callbacks.c). */
void front_grequest_fortran(void *request);

/* ---- arrays ---- */
enum { FRONT_ARRAY_SMALL = 32 };
struct front_array {
	void **at; /* NULL: the program passed none, or there is no memory */
	void *small[FRONT_ARRAY_SMALL];
};
void front_array_types(struct front_array *a, const front_type *types, int count);
void front_array_drop(struct front_array *a);
/* Room for count objects, not filled. */
bool front_array_reserve(struct front_array *a, int count);

/* How many blocks a collective call on comm has: its peers, or what its topology says. */
int front_members(front_comm comm);
int front_indegree(front_comm comm);
int front_outdegree(front_comm comm);

/* ---- counts of 64 bits where the core has calls with 32 ---- */
static inline bool front_fits(MPI_Count v)
{
	return v == (int)v;
}
/* A count and its type as the core takes them (large.c): a count that doesn't fit is one element of
 * a contiguous type, which `made` holds. False: no memory, or more bytes than addresses. */
struct front_large {
	int count;
	front_type type;
	void *made; /* NULL: the count fits */
};
bool front_large_make(struct front_large *l, MPI_Count count) __attribute__((cold));
void front_large_drop(struct front_large *l) __attribute__((cold));
static inline bool front_large_begin(struct front_large *l, MPI_Count count, front_type type)
{
	*l = (struct front_large){(int)count, type, NULL};
	return LIKELY(front_fits(count)) || front_large_make(l, count);
}
static inline void front_large_end(struct front_large *l)
{
	if (UNLIKELY(l->made != NULL))
		front_large_drop(l);
}
/* MPI_ERR_COUNT, through the handler of MPI_COMM_WORLD. */
int front_too_large(const char *function) __attribute__((cold));
struct front_narrow {
	int *at;
};
/* from: count MPI_Counts or MPI_Aints, which are as wide. False: one doesn't fit, or no memory. */
bool front_narrow(struct front_narrow *n, const void *from, int count);
void front_narrow_drop(struct front_narrow *n);

#endif
