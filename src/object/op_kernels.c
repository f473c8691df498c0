/* SPDX-License-Identifier: BSD-3-Clause */
/* The arithmetic of the predefined reductions: one plain loop for each operation and kind of
 * element, which the compiler turns into vector instructions. Buffers need not be aligned. Signed
 * sums and products wrap like unsigned ones, so that they share their kernels. */
#include "object/op_kernels.h"

#include <complex.h>

#define ANY __attribute__((aligned(1), may_alias))
typedef int8_t ANY i8;
typedef int16_t ANY i16;
typedef int32_t ANY i32;
typedef int64_t ANY i64;
typedef uint8_t ANY u8;
typedef uint16_t ANY u16;
typedef uint32_t ANY u32;
typedef uint64_t ANY u64;
typedef float ANY f32;
typedef double ANY f64;
typedef long double ANY f80;
typedef __float128 ANY f128;
typedef float _Complex ANY c32;
typedef double _Complex ANY c64;
typedef long double _Complex ANY c80;
typedef _Complex float __attribute__((mode(TC))) quad_complex;
typedef quad_complex ANY c128;

#define KERNEL(name, type, expression)                                                             \
	static void name(const void *in, void *inout, size_t count)                                \
	{                                                                                          \
		const type *restrict p = in;                                                       \
		type *restrict q = inout;                                                          \
		for (size_t i = 0; i < count; i++) {                                               \
			const __typeof__(p[0] + 0) a = p[i], b = q[i];                             \
			q[i] = (type)(expression);                                                 \
		}                                                                                  \
	}

#define ORDERED(type)                                                                              \
	KERNEL(max_##type, type, b > a ? b : a)                                                    \
	KERNEL(min_##type, type, b < a ? b : a)
#define LOGICAL(type)                                                                              \
	KERNEL(land_##type, type, (a && b))                                                        \
	KERNEL(lor_##type, type, (a || b))                                                         \
	KERNEL(lxor_##type, type, (!a != !b))
/* 1u *: not the int that narrow unsigned numbers would be multiplied as */
#define INTEGER(type)                                                                              \
	KERNEL(sum_##type, type, a + b)                                                            \
	KERNEL(prod_##type, type, 1u * a * b)                                                      \
	KERNEL(band_##type, type, a &b)                                                            \
	KERNEL(bor_##type, type, a | b)                                                            \
	KERNEL(bxor_##type, type, a ^ b)                                                           \
	LOGICAL(type)
#define NUMBER(type)                                                                               \
	KERNEL(sum_##type, type, a + b)                                                            \
	KERNEL(prod_##type, type, a *b)

ORDERED(i8)
ORDERED(i16)
ORDERED(i32)
ORDERED(i64)
ORDERED(u8)
ORDERED(u16)
ORDERED(u32)
ORDERED(u64)
ORDERED(f32)
ORDERED(f64)
ORDERED(f80)
ORDERED(f128)
INTEGER(u8)
INTEGER(u16)
INTEGER(u32)
INTEGER(u64)
NUMBER(f32)
NUMBER(f64)
NUMBER(f80)
NUMBER(f128)
NUMBER(c32)
NUMBER(c64)
NUMBER(c80)
NUMBER(c128)

/* Value and place, as C and Fortran programs declare them. Of equal values the lower place wins. */
struct pair_float_int {
	float value;
	int place;
} ANY;
struct pair_double_int {
	double value;
	int place;
} ANY;
struct pair_ldouble_int {
	long double value;
	int place;
} ANY;
struct pair_long_int {
	long value;
	int place;
} ANY;
struct pair_short_int {
	short value;
	int place;
} ANY;
struct pair_int_int {
	int value, place;
} ANY;
struct pair_float_float {
	float value, place;
} ANY;
struct pair_double_double {
	double value, place;
} ANY;

#define LOCATE(name, pair, better)                                                                 \
	static void name(const void *in, void *inout, size_t count)                                \
	{                                                                                          \
		const struct pair *p = in;                                                         \
		struct pair *q = inout;                                                            \
		for (size_t i = 0; i < count; i++) {                                               \
			if (p[i].value better q[i].value) {                                        \
				q[i].value = p[i].value;                                           \
				q[i].place = p[i].place;                                           \
			} else if (p[i].value == q[i].value && p[i].place < q[i].place) {          \
				q[i].place = p[i].place;                                           \
			}                                                                          \
		}                                                                                  \
	}
#define LOCATES(pair)                                                                              \
	LOCATE(maxloc_##pair, pair_##pair, >)                                                      \
	LOCATE(minloc_##pair, pair_##pair, <)

LOCATES(float_int)
LOCATES(double_int)
LOCATES(ldouble_int)
LOCATES(long_int)
LOCATES(short_int)
LOCATES(int_int)
LOCATES(float_float)
LOCATES(double_double)

/* clang-format off */

/* Which basics count as integers is Open MPI's choice: bytes, text and odd-sized logicals too. */
#define TABLE_UNSIGNED(op)                                                              \
	[BASIC_INT8] = op##_u8, [BASIC_INT16] = op##_u16, [BASIC_INT32] = op##_u32,     \
	[BASIC_INT64] = op##_u64, [BASIC_LONG] = op##_u64, [BASIC_ULONG] = op##_u64, [BASIC_UINT8] = op##_u8, [BASIC_UINT16] = op##_u16,   \
	[BASIC_UINT32] = op##_u32, [BASIC_UINT64] = op##_u64, [BASIC_BYTE] = op##_u8,   \
	[BASIC_CHAR] = op##_u8, [BASIC_CHARACTER] = op##_u8, [BASIC_LOGICAL1] = op##_u8, \
	[BASIC_LOGICAL2] = op##_u16, [BASIC_LOGICAL8] = op##_u64
#define TABLE_SIGNED(op)                                                                \
	[BASIC_INT8] = op##_i8, [BASIC_INT16] = op##_i16, [BASIC_INT32] = op##_i32,     \
	[BASIC_INT64] = op##_i64, [BASIC_LONG] = op##_i64, [BASIC_ULONG] = op##_u64, [BASIC_UINT8] = op##_u8, [BASIC_UINT16] = op##_u16,   \
	[BASIC_UINT32] = op##_u32, [BASIC_UINT64] = op##_u64, [BASIC_BYTE] = op##_u8,   \
	[BASIC_CHAR] = op##_i8, [BASIC_CHARACTER] = op##_i8, [BASIC_LOGICAL1] = op##_i8, \
	[BASIC_LOGICAL2] = op##_i16, [BASIC_LOGICAL8] = op##_i64
#define TABLE_REAL(op)                                                                  \
	[BASIC_FLOAT] = op##_f32, [BASIC_DOUBLE] = op##_f64, [BASIC_LDOUBLE] = op##_f80, \
	[BASIC_QUAD] = op##_f128
#define TABLE_COMPLEX(op)                                                               \
	[BASIC_CFLOAT] = op##_c32, [BASIC_CDOUBLE] = op##_c64,                          \
	[BASIC_CLDOUBLE] = op##_c80, [BASIC_CQUAD] = op##_c128
#define TABLE_TRUTH(op) [BASIC_BOOL] = op##_u8, [BASIC_LOGICAL] = op##_u32
#define TABLE_PAIRS(op)                                                                 \
	[BASIC_FLOAT_INT] = op##_float_int, [BASIC_DOUBLE_INT] = op##_double_int,       \
	[BASIC_LDOUBLE_INT] = op##_ldouble_int, [BASIC_LONG_INT] = op##_long_int,       \
	[BASIC_SHORT_INT] = op##_short_int, [BASIC_2INT] = op##_int_int,                \
	[BASIC_2INTEGER] = op##_int_int, [BASIC_2REAL] = op##_float_float,              \
	[BASIC_2DOUBLE] = op##_double_double

op_kernel_t *const op_kernels_max[BASIC_COUNT] = { TABLE_SIGNED(max), TABLE_REAL(max) };
op_kernel_t *const op_kernels_min[BASIC_COUNT] = { TABLE_SIGNED(min), TABLE_REAL(min) };
op_kernel_t *const op_kernels_sum[BASIC_COUNT] = { TABLE_UNSIGNED(sum), TABLE_REAL(sum), TABLE_COMPLEX(sum) };
op_kernel_t *const op_kernels_prod[BASIC_COUNT] = { TABLE_UNSIGNED(prod), TABLE_REAL(prod), TABLE_COMPLEX(prod) };
op_kernel_t *const op_kernels_land[BASIC_COUNT] = { TABLE_UNSIGNED(land), TABLE_TRUTH(land) };
op_kernel_t *const op_kernels_lor[BASIC_COUNT] = { TABLE_UNSIGNED(lor), TABLE_TRUTH(lor) };
op_kernel_t *const op_kernels_lxor[BASIC_COUNT] = { TABLE_UNSIGNED(lxor), TABLE_TRUTH(lxor) };
op_kernel_t *const op_kernels_band[BASIC_COUNT] = { TABLE_UNSIGNED(band) };
op_kernel_t *const op_kernels_bor[BASIC_COUNT] = { TABLE_UNSIGNED(bor) };
op_kernel_t *const op_kernels_bxor[BASIC_COUNT] = { TABLE_UNSIGNED(bxor) };
op_kernel_t *const op_kernels_maxloc[BASIC_COUNT] = { TABLE_PAIRS(maxloc) };
op_kernel_t *const op_kernels_minloc[BASIC_COUNT] = { TABLE_PAIRS(minloc) };
