/* SPDX-License-Identifier: BSD-3-Clause */
/* Attributes: what each language reads of what another wrote, order and moment of the callbacks,
 * and callbacks that do things themselves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "base/fmt.h"
#include "mpi/comm/comm.h"

static struct link self = {.rank = 1, .nranks = 7};
__thread volatile int guard_inside;
volatile int guard_attention;
bool guard_multiple;

const struct link *link_self(void)
{
	return &self;
}

void guard_lock_slow(void)
{
}

void guard_unlock_slow(void)
{
}

void guard_attend(void)
{
}

int object_to_fortran(struct object *o)
{
	return 4711;
}

static struct comm object, other;
static char said[256];
static bool refuse;

static void say(const char *what, long value)
{
	size_t n = strlen(said);
	fmt_print(said + n, sizeof(said) - n, "%s%ld ", what, value);
}

static int copy_c(MPI_Comm c, int key, void *extra, void *in, void *out, int *flag)
{
	assert_int_equal(guard_inside, 0);
	say("c", (long)in);
	*(void **)out = (char *)in + 1;
	*flag = (long)in != 13;
	return (long)in == 14 ? MPI_ERR_OTHER : MPI_SUCCESS;
}

static int delete_c(MPI_Comm c, int key, void *value, void *extra)
{
	assert_int_equal(guard_inside, 0);
	say("d", (long)value);
	return refuse ? MPI_ERR_OTHER : MPI_SUCCESS;
}

static int key_new(void *copy, void *del)
{
	int key;
	assert_int_equal(attr_keyval_create(ATTR_COMM, copy, del, &key, NULL, 0), MPI_SUCCESS);
	return key;
}

static union attr_value pointer(long n)
{
	return (union attr_value){.pointer = (void *)n};
}

static int set(int key, long value)
{
	return attr_set(ATTR_COMM, &object, &object.attrs, key, ATTR_C, pointer(value));
}

static long get(struct attributes *attrs, int key)
{
	union attr_value v;
	int flag;
	assert_int_equal(attr_get(ATTR_COMM, attrs, key, ATTR_C, &v, &flag), MPI_SUCCESS);
	return flag ? (long)v.pointer : -1;
}

static int delete_nothing(MPI_Comm c, int key, void *value, void *extra)
{
	return MPI_SUCCESS;
}

static int setup(void **state)
{
	said[0] = 0;
	guard_inside = 1;
	object.attrs = other.attrs = NULL;
	return 0;
}

static int no_leak(void **state)
{
	size_t in_use, mapped;
	heap_stats(&in_use, &mapped);
	/* the table of keys stays, 256 by now */
	return in_use <= 256 * sizeof(void *) ? 0 : -1;
}

static void attributes_go_in_the_reverse_order_of_setting(void **state)
{
	int a = key_new((void *)copy_c, (void *)delete_c),
	    b = key_new((void *)copy_c, (void *)delete_c);
	set(a, 1);
	set(b, 2);
	set(a, 3); /* deletes 1, and is now the newest */
	assert_int_equal(attr_delete_all(ATTR_COMM, &object, &object.attrs), MPI_SUCCESS);
	assert_string_equal(said, "d1 d3 d2 ");
	attr_keyval_free(ATTR_COMM, &a);
	attr_keyval_free(ATTR_COMM, &b);
}

static void copies_come_in_the_order_of_setting_if_the_callback_wants_them(void **state)
{
	int k[3];
	for (int i = 0; i < 3; i++) {
		k[i] = key_new((void *)copy_c, (void *)delete_c);
		set(k[i], 12 + (i + 1) % 3); /* 13, 14, 12 */
	}
	assert_int_equal(attr_delete(ATTR_COMM, &object, &object.attrs, k[1]), MPI_SUCCESS);
	said[0] = 0;
	assert_int_equal(attr_copy_all(ATTR_COMM, &object, &object.attrs, &other, &other.attrs),
			 MPI_SUCCESS);
	assert_string_equal(said, "c13 c12 ");
	assert_int_equal(get(other.attrs, k[0]), -1);
	assert_int_equal(get(other.attrs, k[2]), 13);
	attr_delete_all(ATTR_COMM, &object, &object.attrs);
	attr_delete_all(ATTR_COMM, &other, &other.attrs);
	for (int i = 0; i < 3; i++)
		attr_keyval_free(ATTR_COMM, &k[i]);
}

static void a_copy_that_fails_stops_the_copying(void **state)
{
	int a = key_new((void *)copy_c, (void *)delete_c),
	    b = key_new((void *)copy_c, (void *)delete_c);
	set(a, 14);
	set(b, 15);
	assert_int_equal(attr_copy_all(ATTR_COMM, &object, &object.attrs, &other, &other.attrs),
			 MPI_ERR_OTHER);
	assert_string_equal(said, "c14 ");
	assert_null(other.attrs);
	attr_delete_all(ATTR_COMM, &object, &object.attrs);
	attr_keyval_free(ATTR_COMM, &a);
	attr_keyval_free(ATTR_COMM, &b);
}

static void an_attribute_stays_when_its_delete_callback_fails(void **state)
{
	int a = key_new((void *)copy_c, (void *)delete_c);
	set(a, 99);
	refuse = true;
	assert_int_equal(set(a, 5), MPI_ERR_OTHER);
	assert_int_equal(attr_delete(ATTR_COMM, &object, &object.attrs, a), MPI_ERR_OTHER);
	assert_int_equal(attr_delete_all(ATTR_COMM, &object, &object.attrs), MPI_ERR_OTHER);
	assert_int_equal(get(object.attrs, a), 99);
	refuse = false;
	assert_int_equal(attr_delete_all(ATTR_COMM, &object, &object.attrs), MPI_SUCCESS);
	attr_keyval_free(ATTR_COMM, &a);
}

static void a_freed_key_lives_as_long_as_an_attribute_has_it(void **state)
{
	int a = key_new((void *)copy_c, (void *)delete_c), kept = a;
	set(a, 7);
	assert_int_equal(attr_keyval_free(ATTR_COMM, &a), MPI_SUCCESS);
	assert_int_equal(a, MPI_KEYVAL_INVALID);
	int again = kept;
	assert_int_equal(attr_keyval_free(ATTR_COMM, &again), MPI_SUCCESS);
	assert_int_equal(again, MPI_KEYVAL_INVALID);
	assert_int_equal(get(object.attrs, kept), 7);
	attr_copy_all(ATTR_COMM, &object, &object.attrs, &other, &other.attrs);
	attr_delete_all(ATTR_COMM, &object, &object.attrs);
	assert_int_equal(get(other.attrs, kept), 8);
	attr_delete_all(ATTR_COMM, &other, &other.attrs);
	assert_string_equal(said, "c7 d7 d8 ");
	assert_int_equal(set(kept, 1), MPI_ERR_OTHER);
	assert_int_equal(attr_keyval_free(ATTR_COMM, &kept), MPI_ERR_OTHER);
}

/* Frees its own key, sets another attribute and deletes a third, from inside. */
static int inner, third;

static int busy_delete(MPI_Comm c, int key, void *value, void *extra)
{
	guard_enter();
	say("busy", (long)value);
	if ((long)value == 1) {
		set(inner, 21);
		attr_delete(ATTR_COMM, &object, &object.attrs, third);
		int own = key;
		attr_keyval_free(ATTR_COMM, &own);
	}
	guard_leave();
	return MPI_SUCCESS;
}

static void callbacks_may_change_the_list(void **state)
{
	int a = key_new((void *)copy_c, (void *)busy_delete);
	inner = key_new((void *)copy_c, (void *)delete_c);
	third = key_new((void *)copy_c, (void *)delete_c);
	set(third, 3);
	set(a, 1);
	assert_int_equal(attr_delete_all(ATTR_COMM, &object, &object.attrs), MPI_SUCCESS);
	assert_string_equal(said, "busy1 d3 d21 ");
	assert_null(object.attrs);
	attr_keyval_free(ATTR_COMM, &inner);
	attr_keyval_free(ATTR_COMM, &third);
}

static void keys_belong_to_one_kind_of_object(void **state)
{
	int key;
	union attr_value v;
	int flag = 5;
	attr_keyval_create(ATTR_TYPE, (void *)delete_nothing, (void *)delete_nothing, &key, NULL,
			   0);
	assert_int_equal(set(key, 1), MPI_ERR_OTHER);
	assert_int_equal(attr_get(ATTR_COMM, NULL, key, ATTR_C, &v, &flag), MPI_SUCCESS);
	assert_int_equal(flag, 0);
	int copy = key;
	assert_int_equal(attr_keyval_free(ATTR_COMM, &copy), MPI_ERR_OTHER);
	assert_int_equal(attr_keyval_free(ATTR_TYPE, &key), MPI_SUCCESS);
}

/* MPI-3.1 17.2.7: an integer that Fortran stored is an address for C, and the address of an integer
 * that C stored is a number for Fortran. */
static void languages_read_each_other(void **state)
{
	int a = key_new((void *)copy_c, (void *)delete_nothing), flag;
	union attr_value v = {.aint = 0}, r;
	v.fint = -5;
	attr_set(ATTR_COMM, &object, &object.attrs, a, ATTR_FORTRAN_INT, v);
	attr_get(ATTR_COMM, object.attrs, a, ATTR_FORTRAN_INT, &r, &flag);
	assert_int_equal(r.fint, -5);
	attr_get(ATTR_COMM, object.attrs, a, ATTR_FORTRAN_AINT, &r, &flag);
	assert_true(r.aint == -5);
	attr_get(ATTR_COMM, object.attrs, a, ATTR_C, &r, &flag);
	assert_int_equal(*(MPI_Fint *)r.pointer, -5);

	v.aint = 0x123456789abcl;
	attr_set(ATTR_COMM, &object, &object.attrs, a, ATTR_FORTRAN_AINT, v);
	attr_get(ATTR_COMM, object.attrs, a, ATTR_FORTRAN_AINT, &r, &flag);
	assert_true(r.aint == 0x123456789abcl);
	attr_get(ATTR_COMM, object.attrs, a, ATTR_FORTRAN_INT, &r, &flag);
	assert_int_equal(r.fint, 0x56789abc);
	attr_get(ATTR_COMM, object.attrs, a, ATTR_C, &r, &flag);
	assert_true(*(MPI_Aint *)r.pointer == 0x123456789abcl);

	attr_set(ATTR_COMM, &object, &object.attrs, a, ATTR_C, pointer(77));
	attr_get(ATTR_COMM, object.attrs, a, ATTR_FORTRAN_AINT, &r, &flag);
	assert_true(r.aint == 77);
	attr_get(ATTR_COMM, object.attrs, a, ATTR_FORTRAN_INT, &r, &flag);
	assert_int_equal(r.fint, 77);
	attr_delete_all(ATTR_COMM, &object, &object.attrs);
	attr_keyval_free(ATTR_COMM, &a);
}

static void copy_fortran(MPI_Fint *c, MPI_Fint *key, MPI_Aint *extra, MPI_Aint *in, MPI_Aint *out,
			 MPI_Fint *flag, MPI_Fint *ierr)
{
	assert_int_equal(*c, 4711);
	say("fc", *in);
	say("x", *extra);
	*out = *in * 2;
	*flag = 1;
	*ierr = MPI_SUCCESS;
}

static void delete_fortran(MPI_Fint *c, MPI_Fint *key, MPI_Aint *value, MPI_Aint *extra,
			   MPI_Fint *ierr)
{
	say("fd", *value);
	*ierr = MPI_SUCCESS;
}

static void copy_fortran_old(MPI_Fint *c, MPI_Fint *key, MPI_Fint *extra, MPI_Fint *in,
			     MPI_Fint *out, MPI_Fint *flag, MPI_Fint *ierr)
{
	say("oc", *in);
	*out = *in + 100;
	*flag = 1;
	*ierr = MPI_SUCCESS;
}

static void delete_fortran_old(MPI_Fint *c, MPI_Fint *key, MPI_Fint *value, MPI_Fint *extra,
			       MPI_Fint *ierr)
{
	say("od", *value);
	*ierr = MPI_SUCCESS;
}

static void fortran_callbacks_get_fortran_arguments(void **state)
{
	int a, b;
	union attr_value v = {.aint = 1l << 40};
	attr_keyval_create(ATTR_COMM, (void *)copy_fortran, (void *)delete_fortran, &a, (void *)3l,
			   ATTR_FORTRAN);
	attr_keyval_create(ATTR_COMM, (void *)copy_fortran_old, (void *)delete_fortran_old, &b,
			   NULL, ATTR_FORTRAN | ATTR_FORTRAN_OLD);
	attr_set(ATTR_COMM, &object, &object.attrs, a, ATTR_FORTRAN_AINT, v);
	v.aint = 0;
	v.fint = -8;
	attr_set(ATTR_COMM, &object, &object.attrs, b, ATTR_FORTRAN_INT, v);
	attr_copy_all(ATTR_COMM, &object, &object.attrs, &other, &other.attrs);
	attr_delete_all(ATTR_COMM, &object, &object.attrs);
	attr_delete_all(ATTR_COMM, &other, &other.attrs);
	assert_string_equal(said, "fc1099511627776 x3 oc-8 od-8 fd1099511627776 od92 "
				  "fd2199023255552 ");
	attr_keyval_free(ATTR_COMM, &a);
	attr_keyval_free(ATTR_COMM, &b);
}

static void predefined_attributes_are_addresses_of_integers(void **state)
{
	union attr_value v;
	int flag;
	attr_last_used_code(95);
	attr_get(ATTR_COMM, NULL, MPI_LASTUSEDCODE, ATTR_C, &v, &flag);
	assert_true(flag && *(int *)v.pointer == 95);
	attr_get(ATTR_COMM, NULL, MPI_TAG_UB, ATTR_FORTRAN_INT, &v, &flag);
	assert_true(flag && v.fint == 0x7fffffff);
	attr_get(ATTR_COMM, NULL, MPI_UNIVERSE_SIZE, ATTR_C, &v, &flag);
	assert_true(flag && *(int *)v.pointer == 7);
	attr_get(ATTR_COMM, NULL, MPI_WIN_SIZE, ATTR_C, &v, &flag);
	assert_int_equal(flag, 0);
	assert_int_equal(set(MPI_TAG_UB, 1), MPI_ERR_OTHER);
	int key = MPI_TAG_UB;
	assert_int_equal(attr_keyval_free(ATTR_COMM, &key), MPI_ERR_OTHER);
}

static void many_keys_get_numbers_of_their_own(void **state)
{
	int key[200];
	for (int i = 0; i < 200; i++)
		key[i] = key_new((void *)copy_c, (void *)delete_nothing);
	for (int i = 0; i < 200; i++)
		set(key[i], i);
	for (int i = 0; i < 200; i++)
		assert_int_equal(get(object.attrs, key[i]), i);
	attr_delete_all(ATTR_COMM, &object, &object.attrs);
	for (int i = 0; i < 200; i++)
		assert_int_equal(attr_keyval_free(ATTR_COMM, &key[i]), MPI_SUCCESS);
}

#define TEST(f) cmocka_unit_test_setup(f, setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(attributes_go_in_the_reverse_order_of_setting),
	    TEST(copies_come_in_the_order_of_setting_if_the_callback_wants_them),
	    TEST(a_copy_that_fails_stops_the_copying),
	    TEST(an_attribute_stays_when_its_delete_callback_fails),
	    TEST(a_freed_key_lives_as_long_as_an_attribute_has_it),
	    TEST(callbacks_may_change_the_list),
	    TEST(keys_belong_to_one_kind_of_object),
	    TEST(languages_read_each_other),
	    TEST(fortran_callbacks_get_fortran_arguments),
	    TEST(predefined_attributes_are_addresses_of_integers),
	    TEST(many_keys_get_numbers_of_their_own),
	};
	return cmocka_run_group_tests(tests, NULL, no_leak);
}
