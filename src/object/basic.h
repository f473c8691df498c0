/* SPDX-License-Identifier: BSD-3-Clause */
/* What one basic element of a datatype is: for reductions, for element counts, for external32. */
#ifndef HALE_OBJECT_BASIC_H
#define HALE_OBJECT_BASIC_H

#include <stddef.h>
#include <stdint.h>

typedef enum basic {
	BASIC_NONE = 0, /* made from several different basics, or not an element (LB, UB) */
	BASIC_BYTE,	/* MPI_BYTE */
	BASIC_INT8,
	BASIC_INT16,
	BASIC_INT32,
	BASIC_INT64,
	BASIC_UINT8,
	BASIC_UINT16,
	BASIC_UINT32,
	BASIC_UINT64,
	BASIC_LONG, /* as INT64, but 4 bytes in external32 */
	BASIC_ULONG,
	BASIC_FLOAT,
	BASIC_DOUBLE,
	BASIC_LDOUBLE,
	BASIC_CFLOAT,
	BASIC_CDOUBLE,
	BASIC_CLDOUBLE,
	BASIC_BOOL,    /* one byte: C _Bool, C++ bool */
	BASIC_LOGICAL, /* Fortran LOGICAL, 4 bytes; 1, 2, 8 below */
	BASIC_LOGICAL1,
	BASIC_LOGICAL2,
	BASIC_LOGICAL8,
	BASIC_CHAR, /* text: Open MPI lets it be reduced like a small integer */
	BASIC_WCHAR,
	BASIC_CHARACTER,
	/* pairs for MINLOC and MAXLOC, laid out as C structs */
	BASIC_FLOAT_INT,
	BASIC_DOUBLE_INT,
	BASIC_LONG_INT,
	BASIC_SHORT_INT,
	BASIC_2INT,
	BASIC_LDOUBLE_INT,
	BASIC_2REAL,
	BASIC_2DOUBLE,
	BASIC_2INTEGER,
	BASIC_PACKED,	/* bytes that MPI_Pack made: no reductions */
	BASIC_QUAD,	/* Fortran REAL(16): IEEE binary128, not C's long double */
	BASIC_CQUAD,	/* COMPLEX(16) */
	BASIC_2CFLOAT,	/* MPI_2COMPLEX: no reductions */
	BASIC_2CDOUBLE, /* MPI_2DOUBLE_COMPLEX: no reductions */
	BASIC_COUNT
} basic_t;

/* How a basic is built: `parts` scalars of `width` bytes each (`wire` bytes in external32), then
 * (pairs) one more of `tail` bytes; `size` bytes of data in all, packed. MPI counts it as
 * `elements` basic elements: a complex number is one, a pair two. */
struct basic_shape {
	uint8_t size, width, wire, parts, tail, elements;
};
extern const struct basic_shape basic_shapes[BASIC_COUNT];

#endif
