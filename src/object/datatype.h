/* SPDX-License-Identifier: BSD-3-Clause */
/* Datatypes: a flattened list of (offset, length) blocks, plus the constructor tree that
 * MPI_Type_get_envelope/contents give back. A contiguous type never reaches the pack engine. */
#ifndef HALE_OBJECT_DATATYPE_H
#define HALE_OBJECT_DATATYPE_H

#include <sys/uio.h>
#include "object/object.h"

/* What one basic element is, for reductions and for conversion-free checks. */
typedef enum basic {
	BASIC_NONE = 0, /* derived from several different basics, or not an element (LB, UB) */
	BASIC_BYTE,	/* MPI_BYTE, MPI_PACKED: bit operations only */
	BASIC_INT8, BASIC_INT16, BASIC_INT32, BASIC_INT64,
	BASIC_UINT8, BASIC_UINT16, BASIC_UINT32, BASIC_UINT64,
	BASIC_FLOAT, BASIC_DOUBLE, BASIC_LDOUBLE,
	BASIC_CFLOAT, BASIC_CDOUBLE, BASIC_CLDOUBLE,
	BASIC_BOOL,	/* one byte: C _Bool, C++ bool */
	BASIC_LOGICAL,	/* Fortran LOGICAL, 4 bytes; 1, 2, 8 below */
	BASIC_LOGICAL1, BASIC_LOGICAL2, BASIC_LOGICAL8,
	BASIC_CHAR, BASIC_WCHAR, BASIC_CHARACTER, /* text: no reductions */
	/* pairs for MINLOC and MAXLOC */
	BASIC_FLOAT_INT, BASIC_DOUBLE_INT, BASIC_LONG_INT, BASIC_SHORT_INT, BASIC_2INT, BASIC_LDOUBLE_INT,
	BASIC_2REAL, BASIC_2DOUBLE, BASIC_2INTEGER,
	BASIC_COUNT
} basic_t;

struct datatype_block {
	ptrdiff_t offset; /* bytes from the buffer address */
	size_t length;	  /* bytes */
};

/* How a derived type was made; owns its copies and one reference to each type. */
struct datatype_recipe {
	int combiner;
	int nints, naddrs, ntypes;
	int *ints;
	MPI_Aint *addrs;
	struct datatype **types;
};

struct attributes; /* mpi/comm/attr.c */

struct datatype {
	struct object obj;
	size_t size;		    /* bytes of data in one element */
	ptrdiff_t lb, extent;	    /* ub = lb + extent */
	ptrdiff_t true_lb, true_extent;
	size_t nblocks;
	struct datatype_block *blocks; /* in type map order, adjacent ones merged; owned; NULL: one
					* block {true_lb, size} */
	struct datatype_recipe *recipe; /* NULL for predefined types */
	size_t basics;		    /* number of basic elements in one element */
	uint16_t basic;		    /* basic_t when all basic elements are the same kind, else NONE */
	bool committed;
	bool contiguous;	    /* one block at offset 0 with length == size == extent */
	int combiner;		    /* MPI_COMBINER_NAMED for predefined */
	char name[MPI_MAX_OBJECT_NAME];
	struct datatype_signature *signature; /* engine's: basic counts in order, for get_elements */
	char reserved[40];
	struct attributes *attrs;
};
FORTRAN_OFFSET(struct datatype, attrs, 0xd0);

static inline void datatype_retain(struct datatype *t)
{
	object_retain(&t->obj);
}
void datatype_release(struct datatype *t);

/* Where count elements at buf lie, when they are one run of bytes (contiguous, or count 1 of one
 * block); NULL otherwise. *bytes is always count * size. */
static inline void *datatype_run(const struct datatype *t, const void *buf, size_t count,
				 size_t *bytes)
{
	*bytes = count * t->size;
	if (LIKELY(t->contiguous))
		return (void *)(uintptr_t)buf;
	if (t->nblocks == 1 && (count == 1 || (ptrdiff_t)t->size == t->extent))
		return (char *)(uintptr_t)buf + t->true_lb;
	return NULL;
}

/* Copies bytes [skip, skip + max) of the packed form of count elements at buf to out; returns the
 * number copied (less than max only at the end). Any skip, any order of calls. */
size_t datatype_pack(const struct datatype *t, const void *buf, size_t count, size_t skip,
		     void *out, size_t max);
/* The inverse: bytes in[0..len) are bytes [skip, skip + len) of the packed form. Bytes beyond
 * count elements are ignored. Returns the number used. */
size_t datatype_unpack(const struct datatype *t, void *buf, size_t count, size_t skip,
		       const void *in, size_t len);
/* The memory of count elements from packed byte skip on, as at most max pieces; returns their
 * number, *bytes their total. For process_vm_readv. */
size_t datatype_iov(const struct datatype *t, const void *buf, size_t count, size_t skip,
		    struct iovec *iov, size_t max, size_t *bytes);
/* dst and src of different types, same packed bytes: local copy (collectives, self). Copies
 * min of both sizes; returns the bytes copied. */
size_t datatype_copy(const struct datatype *dt, void *dst, size_t dcount, const struct datatype *st,
		     const void *src, size_t scount);

#endif
