/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "coll/args.h"

static void the_tree_splits_at_the_largest_power_of_two_below(void **state)
{
	(void)state;
	for (int n = 2; n < 5000; n++) {
		int at = coll_split(n);
		assert_int_equal(at & (at - 1), 0);
		assert_true(at < n && at * 2 >= n);
	}
}

/* How often each rank's value is combined on its way up. */
static void depths(int lo, int hi, int depth, int *out)
{
	if (hi - lo == 1) {
		out[lo] = depth;
		return;
	}
	int mid = lo + coll_split(hi - lo);
	depths(lo, mid, depth + 1, out);
	depths(mid, hi, depth + 1, out);
}

/* The same in rounds: groups of 1, 2, 4, … ranks are combined with their neighbours, if any. */
static void doubling(int n, int *out)
{
	memset(out, 0, (size_t)n * sizeof(*out));
	for (int mask = 1; mask < n; mask *= 2)
		for (int i = 0; i + mask < n; i += 2 * mask)
			for (int k = i; k < n && k < i + 2 * mask; k++)
				out[k]++;
}

static void the_tree_is_the_one_that_doubling_makes(void **state)
{
	(void)state;
	for (int n = 2; n <= 64; n++) {
		int a[64], b[64];
		depths(0, n, 0, a);
		doubling(n, b);
		for (int i = 0; i < n; i++)
			assert_int_equal(a[i], b[i]);
	}
}

static void parts_cover_a_vector_once_and_evenly(void **state)
{
	(void)state;
	for (int n = 1; n < 40; n++) {
		for (size_t count = 0; count < 200; count++) {
			assert_int_equal(coll_part(count, n, 0), 0);
			assert_int_equal(coll_part(count, n, n), count);
			for (int i = 0; i < n; i++) {
				size_t size = coll_part(count, n, i + 1) - coll_part(count, n, i);
				assert_true(size == count / (size_t)n ||
					    size == count / (size_t)n + 1);
			}
		}
	}
}

static void blocks_lie_where_mpi_says(void **state)
{
	(void)state;
	struct datatype t = {.size = 8, .extent = 24, .true_lb = 4, .true_extent = 16};
	struct datatype u = {.size = 1, .extent = 1, .true_extent = 1};
	struct datatype *types[] = {&t, &u, &t};
	int counts[] = {1, 2, 3}, displs[] = {5, 0, -2};
	char buf[1000], *at = buf + 500;
	struct coll_args a = {.rbuf = at, .rcount = 3, .rtype = &t};
	assert_ptr_equal(coll_recv_block(&a, 2).buf, at + 2 * 3 * 24);
	a.rcounts = counts;
	a.rdispls = displs;
	assert_ptr_equal(coll_recv_block(&a, 2).buf, at - 2 * 24);
	assert_int_equal(coll_block_bytes(coll_recv_block(&a, 2)), 24);
	a.rtypes = types;
	assert_ptr_equal(coll_recv_block(&a, 0).buf, at + 5);
	assert_int_equal(coll_block_bytes(coll_recv_block(&a, 1)), 2);
	assert_int_equal(coll_span(&t, 3), 16 + 2 * 24);
	assert_int_equal(coll_span(&t, 0), 0);
	assert_int_equal(coll_low(&t, 3), 4);
	t.extent = -24;
	assert_int_equal(coll_span(&t, 3), 16 + 2 * 24);
	assert_int_equal(coll_low(&t, 3), 4 - 2 * 24);
	assert_int_equal(coll_low(&t, 0), 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(the_tree_splits_at_the_largest_power_of_two_below),
	    cmocka_unit_test(the_tree_is_the_one_that_doubling_makes),
	    cmocka_unit_test(parts_cover_a_vector_once_and_evenly),
	    cmocka_unit_test(blocks_lie_where_mpi_says),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
