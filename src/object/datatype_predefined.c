/* SPDX-License-Identifier: BSD-3-Clause */
/* The predefined datatypes: symbols, names and Fortran integers of Open MPI 4.1, sizes of gcc and
 * gfortran on x86-64. Executables may hold the live copies, so nothing here points into itself. */
#include "object/datatype.h"

struct ompi_predefined_datatype_t {
	struct datatype type;
	char reserved[512 - sizeof(struct datatype)];
};

/* Data that starts at 0; `bytes` of it, `reach` from its first to behind its last byte. */
#define TYPE_AT(symbol, label, index, what, units, bytes, reach, step, alignment, place, pieces,   \
		...)                                                                               \
	struct ompi_predefined_datatype_t ompi_mpi_##symbol = {                                    \
	    .type = {.obj = {.kind = OBJECT_DATATYPE,                                              \
			     .flags = OBJECT_PREDEFINED,                                           \
			     .refs = 1,                                                            \
			     .f_index = (index)},                                                  \
		     .size = (bytes),                                                              \
		     .extent = (step),                                                             \
		     .true_extent = (reach),                                                       \
		     .nblocks = (pieces),                                                          \
		     .data = {.size = (bytes), .node = (place)},                                   \
		     .elements = {.count = (bytes) > 0 ? (units) : 0,                              \
				  .size = (bytes),                                                 \
				  .basic = (what)},                                                \
		     .align = (alignment),                                                         \
		     .combiner = MPI_COMBINER_NAMED,                                               \
		     .name = label,                                                                \
		     .handles = 1,                                                                 \
		     __VA_ARGS__}}

#define SCALAR(symbol, label, index, what, bytes, alignment)                                       \
	TYPE_AT(symbol, label, index, what, 1, bytes, bytes, bytes, alignment, NULL, 1,            \
		.committed = true, .contiguous = true)
/* two elements, as a C struct, which may have padding at its end */
#define PAIR(symbol, label, index, what, bytes, step, alignment)                                   \
	TYPE_AT(symbol, label, index, what, 2, bytes, bytes, step, alignment, NULL, 1,             \
		.committed = true, .contiguous = (bytes) == (step))
/* known by name only: no such type here. Using it is MPI_ERR_TYPE, as it is not committed. */
#define ABSENT(symbol, label, index)                                                               \
	TYPE_AT(symbol, label, index, BASIC_NONE, 0, 0, 0, 0, 1, NULL, 0, .contiguous = true)
#define MARK(symbol, label, index, mark)                                                           \
	TYPE_AT(symbol, label, index, BASIC_NONE, 0, 0, 0, 0, 1, NULL, 0, .contiguous = true,      \
		.mark = true)

/* C */
SCALAR(char, "MPI_CHAR", 34, BASIC_CHAR, 1, 1);
SCALAR(signed_char, "MPI_SIGNED_CHAR", 36, BASIC_INT8, 1, 1);
SCALAR(unsigned_char, "MPI_UNSIGNED_CHAR", 35, BASIC_UINT8, 1, 1);
SCALAR(short, "MPI_SHORT", 37, BASIC_INT16, 2, 2);
SCALAR(unsigned_short, "MPI_UNSIGNED_SHORT", 38, BASIC_UINT16, 2, 2);
SCALAR(int, "MPI_INT", 39, BASIC_INT32, 4, 4);
SCALAR(unsigned, "MPI_UNSIGNED", 40, BASIC_UINT32, 4, 4);
SCALAR(long, "MPI_LONG", 41, BASIC_LONG, 8, 8);
SCALAR(unsigned_long, "MPI_UNSIGNED_LONG", 42, BASIC_ULONG, 8, 8);
SCALAR(long_long_int, "MPI_LONG_LONG_INT", 43, BASIC_INT64, 8, 8);
SCALAR(unsigned_long_long, "MPI_UNSIGNED_LONG_LONG", 44, BASIC_UINT64, 8, 8);
SCALAR(float, "MPI_FLOAT", 45, BASIC_FLOAT, 4, 4);
SCALAR(double, "MPI_DOUBLE", 46, BASIC_DOUBLE, 8, 8);
SCALAR(long_double, "MPI_LONG_DOUBLE", 47, BASIC_LDOUBLE, 16, 16);
SCALAR(wchar, "MPI_WCHAR", 33, BASIC_WCHAR, 4, 4);
SCALAR(byte, "MPI_BYTE", 1, BASIC_BYTE, 1, 1);
SCALAR(packed, "MPI_PACKED", 2, BASIC_PACKED, 1, 1);
SCALAR(int8_t, "MPI_INT8_T", 58, BASIC_INT8, 1, 1);
SCALAR(uint8_t, "MPI_UINT8_T", 59, BASIC_UINT8, 1, 1);
SCALAR(int16_t, "MPI_INT16_T", 60, BASIC_INT16, 2, 2);
SCALAR(uint16_t, "MPI_UINT16_T", 61, BASIC_UINT16, 2, 2);
SCALAR(int32_t, "MPI_INT32_T", 62, BASIC_INT32, 4, 4);
SCALAR(uint32_t, "MPI_UINT32_T", 63, BASIC_UINT32, 4, 4);
SCALAR(int64_t, "MPI_INT64_T", 64, BASIC_INT64, 8, 8);
SCALAR(uint64_t, "MPI_UINT64_T", 65, BASIC_UINT64, 8, 8);
SCALAR(aint, "MPI_AINT", 66, BASIC_INT64, 8, 8);
SCALAR(offset, "MPI_OFFSET", 67, BASIC_INT64, 8, 8);
SCALAR(count, "MPI_COUNT", 72, BASIC_INT64, 8, 8);
SCALAR(c_bool, "MPI_C_BOOL", 68, BASIC_BOOL, 1, 1);
SCALAR(c_complex, "MPI_C_COMPLEX", 73, BASIC_CFLOAT, 8, 4);
SCALAR(c_float_complex, "MPI_C_COMPLEX", 69, BASIC_CFLOAT, 8, 4);
SCALAR(c_double_complex, "MPI_C_DOUBLE_COMPLEX", 70, BASIC_CDOUBLE, 16, 8);
SCALAR(c_long_double_complex, "MPI_C_LONG_DOUBLE_COMPLEX", 71, BASIC_CLDOUBLE, 32, 16);

/* C++ */
SCALAR(cxx_bool, "MPI_CXX_BOOL", 54, BASIC_BOOL, 1, 1);
SCALAR(cxx_cplex, "MPI_CXX_FLOAT_COMPLEX", 55, BASIC_CFLOAT, 8, 4);
SCALAR(cxx_dblcplex, "MPI_CXX_DOUBLE_COMPLEX", 56, BASIC_CDOUBLE, 16, 8);
SCALAR(cxx_ldblcplex, "MPI_CXX_LONG_DOUBLE_COMPLEX", 57, BASIC_CLDOUBLE, 32, 16);
SCALAR(ldblcplex, "MPI_LONG_DOUBLE_COMPLEX", 74, BASIC_CLDOUBLE, 32, 16);

/* pairs */
PAIR(float_int, "MPI_FLOAT_INT", 48, BASIC_FLOAT_INT, 8, 8, 4);
PAIR(double_int, "MPI_DOUBLE_INT", 49, BASIC_DOUBLE_INT, 12, 16, 8);
PAIR(longdbl_int, "MPI_LONG_DOUBLE_INT", 50, BASIC_LDOUBLE_INT, 20, 32, 16);
PAIR(long_int, "MPI_LONG_INT", 51, BASIC_LONG_INT, 12, 16, 8);
PAIR(2int, "MPI_2INT", 52, BASIC_2INT, 8, 8, 4);
static struct layout_part short_int_parts[] = {
    {.offset = 0, .start = 0}, {.offset = 4, .start = 2}, {.start = 6}};
static struct layout short_int_layout = {
    .refs = LAYOUT_REFS_STATIC,
    .kind = LAYOUT_LIST,
    .depth = 1,
    .size = 6,
    .runs = 2,
    .high = 8,
    .count = 2,
    .parts = short_int_parts,
};
TYPE_AT(short_int, "MPI_SHORT_INT", 53, BASIC_SHORT_INT, 2, 6, 8, 8, 4, &short_int_layout, 2,
	.committed = true);

/* Fortran */
SCALAR(character, "MPI_CHARACTER", 5, BASIC_CHARACTER, 1, 1);
SCALAR(logical, "MPI_LOGICAL", 6, BASIC_LOGICAL, 4, 4);
SCALAR(logical1, "MPI_LOGICAL1", 29, BASIC_LOGICAL1, 1, 1);
SCALAR(logical2, "MPI_LOGICAL2", 30, BASIC_LOGICAL2, 2, 2);
SCALAR(logical4, "MPI_LOGICAL4", 31, BASIC_LOGICAL, 4, 4);
SCALAR(logical8, "MPI_LOGICAL8", 32, BASIC_LOGICAL8, 8, 8);
SCALAR(integer, "MPI_INTEGER", 7, BASIC_INT32, 4, 4);
SCALAR(integer1, "MPI_INTEGER1", 8, BASIC_INT8, 1, 1);
SCALAR(integer2, "MPI_INTEGER2", 9, BASIC_INT16, 2, 2);
SCALAR(integer4, "MPI_INTEGER4", 10, BASIC_INT32, 4, 4);
SCALAR(integer8, "MPI_INTEGER8", 11, BASIC_INT64, 8, 8);
ABSENT(integer16, "MPI_INTEGER16", 12);
SCALAR(real, "MPI_REAL", 13, BASIC_FLOAT, 4, 4);
ABSENT(real2, "MPI_REAL2", 28);
SCALAR(real4, "MPI_REAL4", 14, BASIC_FLOAT, 4, 4);
SCALAR(real8, "MPI_REAL8", 15, BASIC_DOUBLE, 8, 8);
SCALAR(real16, "MPI_REAL16", 16, BASIC_QUAD, 16, 16);
SCALAR(dblprec, "MPI_DOUBLE_PRECISION", 17, BASIC_DOUBLE, 8, 8);
SCALAR(cplex, "MPI_COMPLEX", 18, BASIC_CFLOAT, 8, 4);
SCALAR(complex8, "MPI_COMPLEX8", 19, BASIC_CFLOAT, 8, 4);
SCALAR(complex16, "MPI_COMPLEX16", 20, BASIC_CDOUBLE, 16, 8);
SCALAR(complex32, "MPI_COMPLEX32", 21, BASIC_CQUAD, 32, 16);
SCALAR(dblcplex, "MPI_DOUBLE_COMPLEX", 22, BASIC_CDOUBLE, 16, 8);
PAIR(2real, "MPI_2REAL", 23, BASIC_2REAL, 8, 8, 4);
PAIR(2dblprec, "MPI_2DOUBLE_PRECISION", 24, BASIC_2DOUBLE, 16, 16, 8);
PAIR(2integer, "MPI_2INTEGER", 25, BASIC_2INTEGER, 8, 8, 4);
SCALAR(2cplex, "MPI_2COMPLEX", 26, BASIC_2CFLOAT, 16, 4);
SCALAR(2dblcplex, "MPI_2DOUBLE_COMPLEX", 27, BASIC_2CDOUBLE, 32, 8);

/* not data */
MARK(lb, "MPI_LB", 4, lb_marked);
MARK(ub, "MPI_UB", 3, ub_marked);
ABSENT(unavailable, "MPI_UNAVAILABLE", 75);
struct ompi_predefined_datatype_t ompi_mpi_datatype_null = {
    .type = {.obj = {.kind = OBJECT_DATATYPE,
		     .flags = OBJECT_PREDEFINED | OBJECT_NULL,
		     .refs = 1,
		     .f_index = 0},
	     .contiguous = true,
	     .align = 1,
	     .name = "MPI_DATATYPE_NULL"}};
