/* SPDX-License-Identifier: BSD-3-Clause */
/* The ABI of MPICH 3.1 to 4.x, Intel MPI, MVAPICH, Cray MPI: handles are integers.
 *
 *	bits 30-31  0 the null handle of a kind, 1 predefined, 2 made at run time
 *	bits 26-29  the kind
 *	bits 0-25   made at run time: its place in front_table; predefined: the low 8 bits tell it
 *
 * Predefined types carry their size in bits 8-15, where the header's macros read it. The types of
 * pairs (MPI_FLOAT_INT, …) look as if made at run time, and have the places 0 to 4. A file is a
 * pointer. */
#ifndef HALE_MPI_FRONT_MPICH_H
#define HALE_MPI_FRONT_MPICH_H

typedef int front_comm, front_group, front_type, front_op, front_request, front_message,
    front_errhandler, front_info, front_win, front_session;
typedef void *front_file;
typedef struct front_status {
	int count_low, count_high_and_cancelled;
	int source, tag, error;
} front_status;
#define FRONT_SOURCE(s) ((s)->source)
#define FRONT_TAG(s)	((s)->tag)
#define FRONT_ERROR(s)	((s)->error)

#include "mpi/front/mpich_front.inc"

#define FRONT_NAME	   "MPICH"
#define FRONT_KEYVAL_FIRST 0xa4000000u
enum { MPICH_INDEX = 0x3ffffff, MPICH_PAIRS = 5 };

/* The kind in a handle, by enum front_kind. */
enum {
	MPICH_COMM = 1,
	MPICH_GROUP = 2,
	MPICH_TYPE = 3,
	MPICH_FILE = 4,
	MPICH_ERRHANDLER = 5,
	MPICH_OP = 6,
	MPICH_INFO = 7,
	MPICH_WIN = 8,
	MPICH_REQUEST = 11,
	MPICH_MESSAGE = 11,
	MPICH_SESSION = 14,
};

/* Predefined objects by the low 8 bits of their handles; the null object of each kind. */
extern void *const mpich_predefined[FRONT_KINDS][256];
extern void *const mpich_null[FRONT_KINDS];

static inline void *mpich_in(enum front_kind kind, unsigned bits, int handle)
{
	unsigned tag = (unsigned)handle >> 26;

	if (LIKELY(tag == (0x10 | bits)))
		return mpich_predefined[kind][handle & 0xff];
	if (LIKELY(tag == (0x20 | bits)))
		return front_table_at(kind, handle & MPICH_INDEX);
	return tag == bits ? mpich_null[kind] : NULL;
}

static inline int mpich_out(unsigned bits, void *object)
{
	if (UNLIKELY(!object))
		return (int)(bits << 26);
	int number = ((struct object *)object)->f_index;
	return LIKELY(number != -1) ? number : front_number(object);
}

#define MPICH_HANDLE(name, KIND)                                                                   \
	static inline void *front_##name##_in(int handle)                                          \
	{                                                                                          \
		return mpich_in(FRONT_##KIND, MPICH_##KIND, handle);                               \
	}                                                                                          \
	static inline int front_##name##_out(void *object)                                         \
	{                                                                                          \
		return mpich_out(MPICH_##KIND, object);                                            \
	}
MPICH_HANDLE(comm, COMM)
MPICH_HANDLE(group, GROUP)
MPICH_HANDLE(type, TYPE)
MPICH_HANDLE(op, OP)
MPICH_HANDLE(request, REQUEST)
MPICH_HANDLE(message, MESSAGE)
MPICH_HANDLE(errhandler, ERRHANDLER)
MPICH_HANDLE(info, INFO)
MPICH_HANDLE(win, WIN)
MPICH_HANDLE(session, SESSION)

static inline void *front_file_in(void *handle)
{
	return handle ? handle : MPI_FILE_NULL;
}
static inline void *front_file_out(void *object)
{
	return object == MPI_FILE_NULL ? NULL : object;
}

#define FRONT_STATUS_IGNORE ((front_status *)1)
static inline bool front_ignored(const front_status *s)
{
	return s == FRONT_STATUS_IGNORE;
}
static inline void front_status_hidden_in(MPI_Status *s, const front_status *from)
{
	uint64_t high = (unsigned)from->count_high_and_cancelled >> 1;

	s->_ucount = high << 32 | (unsigned)from->count_low;
	s->_cancelled = from->count_high_and_cancelled & 1;
}
static inline void front_status_hidden_out(front_status *to, const MPI_Status *s)
{
	to->count_low = (int)s->_ucount;
	to->count_high_and_cancelled = (int)((s->_ucount >> 32) << 1 | (s->_cancelled ? 1 : 0));
}

/* The integers of Fortran are the handles. */
extern const unsigned char mpich_bits[FRONT_KINDS];
#define FRONT_FIRST(kind)	    ((kind) == FRONT_TYPE ? MPICH_PAIRS : 0)
#define FRONT_INTEGER(kind, index)  ((int)(0x80000000u | (unsigned)mpich_bits[kind] << 26 | (index)))
#define FRONT_INDEX(integer)	    ((unsigned)(integer)&MPICH_INDEX)
static inline void *front_integer_in(enum front_kind kind, int integer)
{
	if (kind == FRONT_FILE && !integer)
		return MPI_FILE_NULL;
	return mpich_in(kind, mpich_bits[kind], integer);
}

/* Two pointers that the library has and the program reads (MPI_UNWEIGHTED is a variable). */
extern int *front_unweighted __asm__("MPI_UNWEIGHTED");
extern int *front_weights_empty __asm__("MPI_WEIGHTS_EMPTY");
static inline int *front_weights_in(const int *weights)
{
	return weights == front_unweighted	? MPI_UNWEIGHTED
	       : weights == front_weights_empty ? MPI_WEIGHTS_EMPTY
						: (int *)(uintptr_t)weights;
}

#endif
