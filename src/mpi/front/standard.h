/* SPDX-License-Identifier: BSD-3-Clause */
/* The ABI of the MPI standard (MPI 5.0, chapter 20): handles are pointers. Predefined ones are the
 * numbers below 4096 that the standard gives, all others the core's own objects. */
#ifndef HALE_MPI_FRONT_STANDARD_H
#define HALE_MPI_FRONT_STANDARD_H

typedef void *front_comm, *front_group, *front_type, *front_op, *front_request, *front_message,
    *front_errhandler, *front_info, *front_win, *front_file, *front_session;
typedef struct front_status {
	int source, tag, error;
	int hidden[5]; /* cancelled, count (low, high) */
} front_status;
#define FRONT_SOURCE(s) ((s)->source)
#define FRONT_TAG(s)	((s)->tag)
#define FRONT_ERROR(s)	((s)->error)

#include "mpi/front/standard_front.inc"

#define FRONT_NAME	   "the MPI standard"
#define FRONT_KEYVAL_FIRST 4096u
enum { STANDARD_PREDEFINED = 4096, STANDARD_LAST = 1024 };

extern void *const standard_predefined[STANDARD_LAST]; /* by number */

static inline void *standard_in(void *handle)
{
	uintptr_t number = (uintptr_t)handle;

	if (LIKELY(number >= STANDARD_PREDEFINED))
		return handle;
	return number < STANDARD_LAST ? standard_predefined[number] : NULL;
}

static inline void *standard_out(void *object, uintptr_t null)
{
	if (UNLIKELY(!object))
		return (void *)null;
	unsigned number = (unsigned)((struct object *)object)->f_index;
	return number < STANDARD_PREDEFINED ? (void *)(uintptr_t)number : object;
}

#define STANDARD_HANDLE(name, null)                                                                \
	static inline void *front_##name##_in(void *handle)                                        \
	{                                                                                          \
		return standard_in(handle);                                                        \
	}                                                                                          \
	static inline void *front_##name##_out(void *object)                                       \
	{                                                                                          \
		return standard_out(object, null);                                                 \
	}
STANDARD_HANDLE(comm, 256)
STANDARD_HANDLE(group, 264)
STANDARD_HANDLE(type, 512)
STANDARD_HANDLE(op, 32)
STANDARD_HANDLE(request, 384)
STANDARD_HANDLE(message, 296)
STANDARD_HANDLE(errhandler, 320)
STANDARD_HANDLE(info, 304)
STANDARD_HANDLE(win, 272)
STANDARD_HANDLE(file, 280)
STANDARD_HANDLE(session, 288)

#define FRONT_FIRST(kind)	   0
#define FRONT_INTEGER(kind, index) ((int)(STANDARD_PREDEFINED + (index)))
#define FRONT_INDEX(integer)	   ((unsigned)(integer)-STANDARD_PREDEFINED)
static inline void *front_integer_in(enum front_kind kind, int integer)
{
	if ((unsigned)integer < STANDARD_PREDEFINED)
		return standard_in((void *)(uintptr_t)(unsigned)integer);
	return front_table_at(kind, FRONT_INDEX(integer));
}

#define FRONT_STATUS_IGNORE ((front_status *)0)
static inline bool front_ignored(const front_status *s)
{
	return !s;
}
static inline void front_status_hidden_in(MPI_Status *s, const front_status *from)
{
	s->_cancelled = from->hidden[0];
	s->_ucount = (uint64_t)(unsigned)from->hidden[2] << 32 | (unsigned)from->hidden[1];
}
static inline void front_status_hidden_out(front_status *to, const MPI_Status *s)
{
	to->hidden[0] = s->_cancelled;
	to->hidden[1] = (int)s->_ucount;
	to->hidden[2] = (int)(s->_ucount >> 32);
}

static inline int *front_weights_in(const int *weights)
{
	return weights == (const int *)10   ? MPI_UNWEIGHTED
	       : weights == (const int *)11 ? MPI_WEIGHTS_EMPTY
					    : (int *)(uintptr_t)weights;
}

#endif
