/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernels against scalar arithmetic, and which operation goes with which type. */
#include <complex.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "object/op.h"

enum { COUNT = 37 };

static struct datatype *handle(MPI_Datatype h)
{
	return (struct datatype *)h;
}

static const struct op *op_handle(MPI_Op h)
{
	return (const struct op *)h;
}

static uint64_t seed = 77;

static unsigned pick(unsigned n)
{
	seed = seed * 6364136223846793005ul + 1442695040888963407ul;
	return (unsigned)((seed >> 33) % n);
}

/* Compares op on `type` with `expected`, an expression of a (left) and b; on unaligned buffers:
 * into the right operand, elsewhere, into the left one. */
#define CHECK(op, type, c_type, expected)                                                          \
	do {                                                                                       \
		char left[COUNT * sizeof(c_type) + 1], right[COUNT * sizeof(c_type) + 1];          \
		c_type want[COUNT];                                                                \
		for (size_t i = 0; i < COUNT; i++) {                                               \
			const c_type a = (c_type)pick(9), b = (c_type)pick(9);                     \
			want[i] = (c_type)(expected);                                              \
			memcpy(left + 1 + i * sizeof(a), &a, sizeof(a));                           \
			memcpy(right + 1 + i * sizeof(b), &b, sizeof(b));                          \
		}                                                                                  \
		char other[sizeof(left)];                                                          \
		assert_int_equal(op_check(op_handle(op), handle(type)), MPI_SUCCESS);              \
		op_combine(op_handle(op), left + 1, right + 1, other + 1, COUNT, handle(type));    \
		assert_true(op_in_left(op_handle(op), handle(type)));                              \
		op_apply(op_handle(op), left + 1, right + 1, COUNT, handle(type));                 \
		for (size_t i = 0; i < COUNT; i++) {                                               \
			c_type got, there;                                                         \
			memcpy(&got, right + 1 + i * sizeof(got), sizeof(got));                    \
			memcpy(&there, other + 1 + i * sizeof(got), sizeof(got));                  \
			assert_true(got == want[i] && there == want[i]);                           \
			/* for the next one */                                                     \
			const c_type b = (c_type)1;                                                \
			memcpy(right + 1 + i * sizeof(b), &b, sizeof(b));                          \
			memcpy(other + 1 + i * sizeof(b), left + 1 + i * sizeof(b), sizeof(b));    \
		}                                                                                  \
		op_combine(op_handle(op), other + 1, right + 1, other + 1, COUNT, handle(type));   \
		for (size_t i = 0; i < COUNT; i++) {                                               \
			c_type a, there;                                                           \
			const c_type b = (c_type)1;                                                \
			memcpy(&a, left + 1 + i * sizeof(a), sizeof(a));                           \
			memcpy(&there, other + 1 + i * sizeof(a), sizeof(a));                      \
			assert_true(there == (c_type)(expected));                                  \
		}                                                                                  \
	} while (0)

#define CHECK_ORDER(type, c_type)                                                                  \
	do {                                                                                       \
		CHECK(MPI_MAX, type, c_type, a > b ? a : b);                                       \
		CHECK(MPI_MIN, type, c_type, a < b ? a : b);                                       \
	} while (0)
#define CHECK_NUMBER(type, c_type)                                                                 \
	do {                                                                                       \
		CHECK(MPI_SUM, type, c_type, a + b);                                               \
		CHECK(MPI_PROD, type, c_type, a *b);                                               \
	} while (0)
#define CHECK_TRUTH(type, c_type)                                                                  \
	do {                                                                                       \
		CHECK(MPI_LAND, type, c_type, (a != 0) & (b != 0));                                \
		CHECK(MPI_LOR, type, c_type, (a != 0) | (b != 0));                                 \
		CHECK(MPI_LXOR, type, c_type, (a != 0) ^ (b != 0));                                \
	} while (0)
#define CHECK_INTEGER(type, c_type)                                                                \
	do {                                                                                       \
		CHECK_ORDER(type, c_type);                                                         \
		CHECK_NUMBER(type, c_type);                                                        \
		CHECK_TRUTH(type, c_type);                                                         \
		CHECK(MPI_BAND, type, c_type, a &b);                                               \
		CHECK(MPI_BOR, type, c_type, a | b);                                               \
		CHECK(MPI_BXOR, type, c_type, a ^ b);                                              \
	} while (0)

static void integers_reduce_like_c(void **state)
{
	CHECK_INTEGER(MPI_INT8_T, int8_t);
	CHECK_INTEGER(MPI_INT16_T, int16_t);
	CHECK_INTEGER(MPI_INT32_T, int32_t);
	CHECK_INTEGER(MPI_INT64_T, int64_t);
	CHECK_INTEGER(MPI_UINT8_T, uint8_t);
	CHECK_INTEGER(MPI_UINT16_T, uint16_t);
	CHECK_INTEGER(MPI_UINT32_T, uint32_t);
	CHECK_INTEGER(MPI_UINT64_T, uint64_t);
	CHECK_INTEGER(MPI_CHAR, signed char);
	CHECK_INTEGER(MPI_BYTE, unsigned char);
	CHECK_INTEGER(MPI_LONG, long);
	CHECK_INTEGER(MPI_AINT, MPI_Aint);
	CHECK_INTEGER(MPI_INTEGER, int);
	CHECK_INTEGER(MPI_INTEGER2, short);
	CHECK_TRUTH(MPI_C_BOOL, bool);
	CHECK_TRUTH(MPI_CXX_BOOL, bool);
	CHECK_TRUTH(MPI_LOGICAL, int);
	CHECK_TRUTH(MPI_LOGICAL8, long);
}

static void signs_and_wide_values_are_kept(void **state)
{
	int a[4] = {-5, 3, INT32_MIN, -1}, b[4] = {2, -7, INT32_MAX, -2};
	op_apply(op_handle(MPI_MAX), a, b, 4, handle(MPI_INT));
	const int most[4] = {2, 3, INT32_MAX, -1};
	assert_memory_equal(b, most, sizeof(b));
	unsigned c[2] = {0xffffffff, 1}, d[2] = {1, 0x80000000};
	op_apply(op_handle(MPI_MAX), c, d, 2, handle(MPI_UNSIGNED));
	assert_int_equal(d[0], 0xffffffff);
	assert_int_equal(d[1], 0x80000000);
	uint16_t e = 65535, f = 65535;
	op_apply(op_handle(MPI_PROD), &e, &f, 1, handle(MPI_UNSIGNED_SHORT));
	assert_int_equal(f, 1);
	int64_t g = -3, h = 4;
	op_apply(op_handle(MPI_PROD), &g, &h, 1, handle(MPI_LONG_LONG));
	assert_true(h == -12);
}

static void reals_and_complex_numbers_reduce_like_c(void **state)
{
	CHECK_ORDER(MPI_FLOAT, float);
	CHECK_ORDER(MPI_DOUBLE, double);
	CHECK_ORDER(MPI_LONG_DOUBLE, long double);
	CHECK_ORDER(MPI_REAL16, __float128);
	CHECK_NUMBER(MPI_FLOAT, float);
	CHECK_NUMBER(MPI_REAL8, double);
	CHECK_NUMBER(MPI_LONG_DOUBLE, long double);
	CHECK_NUMBER(MPI_REAL16, __float128);
	CHECK_NUMBER(MPI_C_FLOAT_COMPLEX, float _Complex);
	CHECK_NUMBER(MPI_DOUBLE_COMPLEX, double _Complex);
	CHECK_NUMBER(MPI_C_LONG_DOUBLE_COMPLEX, long double _Complex);
	double _Complex a = 1 + 2 * I, b = 3 - 1 * I;
	op_apply(op_handle(MPI_PROD), &a, &b, 1, handle(MPI_C_DOUBLE_COMPLEX));
	assert_true(b == 5 + 5 * I);
}

#define CHECK_PAIR(type, value_type)                                                               \
	do {                                                                                       \
		struct pair {                                                                      \
			value_type value;                                                          \
			int place;                                                                 \
		} a[COUNT], most[COUNT], least[COUNT], b[COUNT];                                   \
		memset(b, 0, sizeof(b));                                                           \
		for (int i = 0; i < COUNT; i++) {                                                  \
			a[i].value = (value_type)pick(4);                                          \
			b[i].value = (value_type)pick(4);                                          \
			a[i].place = (int)pick(5);                                                 \
			b[i].place = (int)pick(5);                                                 \
		}                                                                                  \
		memcpy(most, a, sizeof(a));                                                        \
		memcpy(least, b, sizeof(b));                                                       \
		op_combine(op_handle(MPI_MAXLOC), most, b, most, COUNT, handle(type));             \
		op_apply(op_handle(MPI_MINLOC), a, least, COUNT, handle(type));                    \
		for (int i = 0; i < COUNT; i++) {                                                  \
			const int lower = a[i].place < b[i].place ? a[i].place : b[i].place;       \
			const bool above = a[i].value > b[i].value;                                \
			const bool equal = a[i].value == b[i].value;                               \
			assert_true(most[i].value == (above ? a[i].value : b[i].value));           \
			assert_true(least[i].value == (above ? b[i].value : a[i].value));          \
			assert_int_equal(most[i].place, equal	? lower                            \
							: above ? a[i].place                       \
								: b[i].place);                     \
			assert_int_equal(least[i].place, equal	 ? lower                           \
							 : above ? b[i].place                      \
								 : a[i].place);                    \
		}                                                                                  \
	} while (0)

static void pairs_find_value_and_lowest_place(void **state)
{
	CHECK_PAIR(MPI_FLOAT_INT, float);
	CHECK_PAIR(MPI_DOUBLE_INT, double);
	CHECK_PAIR(MPI_LONG_DOUBLE_INT, long double);
	CHECK_PAIR(MPI_LONG_INT, long);
	CHECK_PAIR(MPI_SHORT_INT, short);
	CHECK_PAIR(MPI_2INT, int);
	CHECK_PAIR(MPI_2INTEGER, int);
	double a[2] = {4, 9}, b[2] = {4, 2};
	op_apply(op_handle(MPI_MAXLOC), a, b, 1, handle(MPI_2DOUBLE_PRECISION));
	assert_true(b[0] == 4 && b[1] == 2);
}

static void operations_are_refused_for_types_they_are_not_defined_for(void **state)
{
	static const struct {
		MPI_Datatype type;
		const char
		    *allowed; /* max min sum prod land band lor bor lxor bxor maxloc minloc */
	} expected[] = {
	    {MPI_INT, "111111111100"},	    {MPI_DOUBLE, "111100000000"},
	    {MPI_C_BOOL, "000010101000"},   {MPI_LOGICAL, "000010101000"},
	    {MPI_COMPLEX, "001100000000"},  {MPI_C_DOUBLE_COMPLEX, "001100000000"},
	    {MPI_2INT, "000000000011"},	    {MPI_DOUBLE_INT, "000000000011"},
	    {MPI_PACKED, "000000000000"},   {MPI_WCHAR, "000000000000"},
	    {MPI_BYTE, "111111111100"},	    {MPI_REAL16, "111100000000"},
	    {MPI_2COMPLEX, "000000000000"},
	};
	const MPI_Op ops[] = {MPI_MAX, MPI_MIN, MPI_SUM,  MPI_PROD, MPI_LAND,	MPI_BAND,
			      MPI_LOR, MPI_BOR, MPI_LXOR, MPI_BXOR, MPI_MAXLOC, MPI_MINLOC};
	for (size_t i = 0; i < ARRAY_LEN(expected); i++) {
		for (size_t k = 0; k < ARRAY_LEN(ops); k++)
			assert_int_equal(op_check(op_handle(ops[k]), handle(expected[i].type)),
					 expected[i].allowed[k] == '1' ? MPI_SUCCESS : MPI_ERR_OP);
		assert_int_equal(op_check(op_handle(MPI_REPLACE), handle(expected[i].type)),
				 MPI_ERR_OP);
	}
	assert_int_equal(op_check(op_handle(MPI_OP_NULL), handle(MPI_INT)), MPI_ERR_OP);
	assert_int_equal(op_check(NULL, handle(MPI_INT)), MPI_ERR_OP);
	struct datatype *t = datatype_make_vector(handle(MPI_INT), 1, 2, 0);
	t->combiner = MPI_COMBINER_CONTIGUOUS;
	assert_int_equal(op_check(op_handle(MPI_SUM), t), MPI_ERR_OP);
	datatype_release(t);
}

static void replace_copies_and_no_op_does_nothing(void **state)
{
	struct datatype *t = datatype_make_vector(handle(MPI_INT), 2, 1, 8);
	int a[3] = {1, 2, 3}, b[3] = {7, 8, 9};
	op_apply(op_handle(MPI_NO_OP), a, b, 1, t);
	assert_int_equal(b[0], 7);
	op_apply(op_handle(MPI_REPLACE), a, b, 1, t);
	assert_int_equal(b[0], 1);
	assert_int_equal(b[1], 8);
	assert_int_equal(b[2], 3);
	datatype_release(t);
}

static void derived_types_of_one_kind_reduce_run_by_run(void **state)
{
	struct datatype *t = datatype_make_vector(handle(MPI_INT), 3, 2, 16);
	t->combiner = MPI_COMBINER_HVECTOR;
	int a[24], b[24];
	for (int i = 0; i < 24; i++) {
		a[i] = i;
		b[i] = 100;
	}
	op_apply(op_handle(MPI_SUM), a, b, 2, t);
	for (int i = 0; i < 24; i++) {
		const int within = i % 10;
		const bool data = i < 20 && within % 4 < 2;
		assert_int_equal(b[i], data ? 100 + i : 100);
	}
	datatype_release(t);
}

static MPI_Datatype seen_type;
static int seen_calls;

static void user_concat(void *in, void *inout, int *len, MPI_Datatype *type)
{
	const int *a = in;
	int *b = inout;
	for (int i = 0; i < *len; i++)
		b[i] = a[i] * 10 + b[i];
	seen_type = *type;
	seen_calls++;
}

static void user_functions_get_the_left_operand_first(void **state)
{
	struct op *op = op_create(user_concat, false);
	int a[3] = {1, 2, 3}, b[3] = {4, 5, 6};
	const int want[3] = {14, 25, 36};
	seen_calls = 0;
	op_apply(op, a, b, 3, handle(MPI_INT));
	assert_memory_equal(b, want, sizeof(b));
	assert_ptr_equal(seen_type, MPI_INT);
	op_apply(op, a, b, 0, handle(MPI_INT));
	assert_int_equal(seen_calls, 1);
	op_release(op);
}

static volatile size_t seen_count; /* gcc 12 at -O2 with UBSan drops the reset of it */
static volatile int seen_longest;

static void user_counts(void *in, void *inout, int *len, MPI_Datatype *type)
{
	seen_count += (size_t)*len;
	seen_longest = *len > seen_longest ? *len : seen_longest;
	*len = 0; /* a careless function must not confuse the caller */
}

static void user_functions_get_long_buffers_in_several_calls(void **state)
{
	struct op *op = op_create(user_counts, true);
	seen_count = 0;
	op_apply(op, NULL, NULL, (5ul << 30) + 3, handle(MPI_BYTE));
	assert_true(seen_count == (5ul << 30) + 3);
	assert_true(seen_longest > 0);
	op_release(op);
}

static MPI_Fint seen_index;

static void fortran_function(void *in, void *inout, int *len, MPI_Datatype *type)
{
	seen_index = *(MPI_Fint *)type;
	*(int *)inout += 10 * *(int *)in;
}

static int index_of(struct datatype *t)
{
	return t->obj.f_index;
}

static void fortran_functions_get_an_integer_for_the_type(void **state)
{
	int a = 1, b = 2;
	struct op *op = op_create(fortran_function, true);
	op->fortran_flags |= OP_FORTRAN;
	op_type_to_fortran = index_of;
	op_apply(op, &a, &b, 1, handle(MPI_INTEGER));
	assert_int_equal(seen_index, 7); /* MPI_INTEGER in mpif.h */
	assert_int_equal(b, 12);
	op_release(op);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(integers_reduce_like_c),
	    cmocka_unit_test(signs_and_wide_values_are_kept),
	    cmocka_unit_test(reals_and_complex_numbers_reduce_like_c),
	    cmocka_unit_test(pairs_find_value_and_lowest_place),
	    cmocka_unit_test(operations_are_refused_for_types_they_are_not_defined_for),
	    cmocka_unit_test(replace_copies_and_no_op_does_nothing),
	    cmocka_unit_test(derived_types_of_one_kind_reduce_run_by_run),
	    cmocka_unit_test(user_functions_get_the_left_operand_first),
	    cmocka_unit_test(user_functions_get_long_buffers_in_several_calls),
	    cmocka_unit_test(fortran_functions_get_an_integer_for_the_type),
	};
	const int plain = cmocka_run_group_tests(tests, NULL, NULL);
	op_select_kernels();
	return plain + cmocka_run_group_tests(tests, NULL, NULL);
}
