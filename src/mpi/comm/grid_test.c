/* SPDX-License-Identifier: BSD-3-Clause */
/* Grids and the choice of their dimensions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "mpi/comm/comm.h"

/* Every result of Open MPI 4.1.4 for 1..200 nodes in 1..4 dimensions, and for 1..60 nodes in four
 * of which the second is given, mixed into one number (FNV-1a over the entries, in that order). */
static const uint64_t open_mpi_says = 0x60e2e52c90333314ull;

static void mix(uint64_t *hash, const int *dims, int n)
{
	for (int i = 0; i < n; i++)
		*hash = (*hash ^ (uint64_t)dims[i]) * 1099511628211ull;
}

static void dims_are_those_of_open_mpi(void **state)
{
	uint64_t hash = 1469598103934665603ull;
	for (int n = 1; n <= 200; n++) {
		for (int d = 1; d <= 4; d++) {
			int dims[4] = {0};
			assert_int_equal(dims_create(n, d, dims), MPI_SUCCESS);
			mix(&hash, dims, d);
		}
	}
	for (int n = 1; n <= 60; n++) {
		for (int given = 1; given <= n; given++) {
			int dims[4] = {0, given, 0, 0};
			if (n % given)
				continue;
			assert_int_equal(dims_create(n, 4, dims), MPI_SUCCESS);
			mix(&hash, dims, 4);
		}
	}
	assert_true(hash == open_mpi_says);
}

/* Against all factorizations: none is closer together, and of equally close ones none has a larger
 * smallest factor, second smallest, … */
static int closest[4], trial[4];

static int distance(const int *dims, int n)
{
	return dims[0] - dims[n - 1];
}

static bool closer(const int *a, const int *b, int n)
{
	if (distance(a, n) != distance(b, n))
		return distance(a, n) < distance(b, n);
	for (int i = n - 1; i >= 0; i--)
		if (a[i] != b[i])
			return a[i] > b[i];
	return false;
}

static void try_all(int left, int at, int n)
{
	if (at == n - 1) {
		trial[at] = left;
		if ((at == 0 || left <= trial[at - 1]) && (!closest[0] || closer(trial, closest, n)))
			memcpy(closest, trial, sizeof(closest));
		return;
	}
	for (int d = 1; d <= left; d++) {
		trial[at] = d;
		if (left % d == 0 && (at == 0 || d <= trial[at - 1]))
			try_all(left / d, at + 1, n);
	}
}

static void balanced_dims_are_as_close_as_possible(void **state)
{
	for (int n = 1; n <= 400; n++) {
		for (int d = 1; d <= 4; d++) {
			int dims[4] = {0};
			memset(closest, 0, sizeof(closest));
			try_all(n, 0, d);
			assert_int_equal(dims_create_balanced(n, d, dims), MPI_SUCCESS);
			assert_memory_equal(dims, closest, (size_t)d * sizeof(int));
		}
	}
	int many[12] = {0}, large[2] = {0}, given[3] = {0, 5, 0};
	assert_int_equal(dims_create_balanced(1 << 30, 10, many), MPI_SUCCESS);
	assert_int_equal(many[0], 8);
	assert_int_equal(dims_create_balanced(0x7fffffff, 2, large), MPI_SUCCESS);
	assert_int_equal(large[0], 0x7fffffff);
	assert_int_equal(dims_create_balanced(360, 3, given), MPI_SUCCESS);
	assert_true(given[0] == 9 && given[1] == 5 && given[2] == 8);
}

static void dims_multiply_to_the_nodes_and_descend(void **state)
{
	for (int n = 1; n <= 5000; n++) {
		int dims[3] = {0};
		assert_int_equal(dims_create(n, 3, dims), MPI_SUCCESS);
		assert_int_equal(dims[0] * dims[1] * dims[2], n);
		assert_true(dims[0] >= dims[1] && dims[1] >= dims[2]);
	}
}

static void dims_that_cannot_be_are_refused(void **state)
{
	int negative[2] = {-1, 0}, odd[2] = {4, 0}, full[2] = {2, 2}, much[2] = {4, 2};
	assert_int_equal(dims_create(6, 2, negative), MPI_ERR_DIMS);
	assert_int_equal(dims_create(6, 2, odd), MPI_ERR_DIMS);
	assert_int_equal(dims_create(6, 2, full), MPI_ERR_DIMS);
	assert_int_equal(dims_create(6, 2, much), MPI_ERR_DIMS);
	assert_int_equal(dims_create(4, 2, full), MPI_SUCCESS);
	int large[2] = {0, 0};
	assert_int_equal(dims_create(2147483647, 2, large), MPI_SUCCESS); /* a prime */
	assert_int_equal(large[0], 2147483647);
}

struct grid {
	struct topology t;
	int ints[9];
};

static struct topology *grid(struct grid *g, int x, int y, int z, int px, int py, int pz)
{
	int ints[9] = {x, y, z, px, py, pz, 0, 0, 0};
	for (int i = 0; i < 9; i++)
		g->ints[i] = ints[i];
	g->t.kind = MPI_CART;
	g->t.cart.ndims = 3;
	g->t.cart.dims = g->ints;
	g->t.cart.periods = g->ints + 3;
	g->t.cart.coords = g->ints + 6;
	return &g->t;
}

static void ranks_and_coordinates_are_inverse_and_row_major(void **state)
{
	struct grid g;
	struct topology *t = grid(&g, 3, 4, 5, 0, 1, 0);
	int next = 0;
	for (int x = 0; x < 3; x++) {
		for (int y = 0; y < 4; y++) {
			for (int z = 0; z < 5; z++, next++) {
				int at[3] = {x, y, z}, back[3], rank;
				assert_int_equal(grid_rank(t, at, &rank), MPI_SUCCESS);
				assert_int_equal(rank, next);
				grid_coords(t, rank, 3, back);
				assert_memory_equal(at, back, sizeof(at));
			}
		}
	}
}

static void only_periodic_dimensions_wrap(void **state)
{
	struct grid g;
	struct topology *t = grid(&g, 3, 4, 5, 0, 1, 0);
	for (int y = -9; y < 13; y++) {
		int at[3] = {1, y, 2}, inside[3] = {1, ((y % 4) + 4) % 4, 2}, a, b;
		assert_int_equal(grid_rank(t, at, &a), MPI_SUCCESS);
		assert_int_equal(grid_rank(t, inside, &b), MPI_SUCCESS);
		assert_int_equal(a, b);
	}
	int low[3] = {-1, 0, 0}, high[3] = {0, 0, 5}, rank;
	assert_int_equal(grid_rank(t, low, &rank), MPI_ERR_ARG);
	assert_int_equal(grid_rank(t, high, &rank), MPI_ERR_ARG);
}

static void neighbours_are_where_the_coordinates_say(void **state)
{
	struct grid g;
	struct topology *t = grid(&g, 3, 4, 5, 0, 1, 0);
	for (int rank = 0; rank < 60; rank++) {
		grid_coords(t, rank, 3, t->cart.coords);
		for (int d = 0; d < 3; d++) {
			for (int disp = -7; disp <= 7; disp++) {
				int at[3], want;
				grid_coords(t, rank, 3, at);
				at[d] += disp;
				if (grid_rank(t, at, &want))
					want = MPI_PROC_NULL;
				assert_int_equal(grid_neighbour(t, rank, d, disp), want);
			}
		}
	}
}

static void a_grid_must_fit(void **state)
{
	int fits[2] = {2, 3}, big[3] = {65536, 65536, 65536}, none[2] = {2, 0};
	assert_int_equal(grid_size(2, fits, 6), 6);
	assert_int_equal(grid_size(2, fits, 5), -1);
	assert_int_equal(grid_size(3, big, 1000), -1);
	assert_int_equal(grid_size(2, none, 6), -1);
	assert_int_equal(grid_size(0, NULL, 6), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(dims_are_those_of_open_mpi),
	    cmocka_unit_test(balanced_dims_are_as_close_as_possible),
	    cmocka_unit_test(dims_multiply_to_the_nodes_and_descend),
	    cmocka_unit_test(dims_that_cannot_be_are_refused),
	    cmocka_unit_test(ranks_and_coordinates_are_inverse_and_row_major),
	    cmocka_unit_test(only_periodic_dimensions_wrap),
	    cmocka_unit_test(neighbours_are_where_the_coordinates_say),
	    cmocka_unit_test(a_grid_must_fit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
