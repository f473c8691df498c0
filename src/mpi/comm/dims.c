/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Dims_create. As Open MPI does it, the prime factors of what is to be distributed, largest first,
 * go one by one to the dimension that is smallest so far; balanced: dims_balanced.c. */
#include "mpi/comm/comm.h"

enum { PRIME_FACTORS = 32 }; /* an int has fewer */

/* In ascending order; returns how many. */
static int factorize(int n, int *factors)
{
	int count = 0;
	for (int p = 2; p <= n / p; p++) {
		while (n % p == 0) {
			factors[count++] = p;
			n /= p;
		}
	}
	if (n > 1)
		factors[count++] = n;
	return count;
}

static void sort_descending(int *values, int n)
{
	for (int i = 1; i < n; i++) {
		int v = values[i], j = i;
		for (; j > 0 && values[j - 1] < v; j--)
			values[j] = values[j - 1];
		values[j] = v;
	}
}

/* Spreads n over bins, which come out in descending order. */
static void spread(int n, int *bins, int nbins)
{
	int factors[PRIME_FACTORS], count = factorize(n, factors);
	for (int i = 0; i < nbins; i++)
		bins[i] = 1;
	while (count--) {
		int smallest = 0;
		for (int i = 1; i < nbins; i++)
			if (bins[i] < bins[smallest])
				smallest = i;
		bins[smallest] *= factors[count];
	}
	sort_descending(bins, nbins);
}

static int dims_fill(int nnodes, int ndims, int *dims, bool balanced)
{
	int open = 0, left = nnodes;
	for (int i = 0; i < ndims; i++) {
		if (dims[i] < 0 || (dims[i] > 0 && nnodes % dims[i] != 0))
			return MPI_ERR_DIMS;
		if (dims[i] > 0 && left % dims[i] != 0)
			return MPI_ERR_DIMS;
		if (dims[i] > 0)
			left /= dims[i];
		else
			open++;
	}
	if (open == 0)
		return left == 1 ? MPI_SUCCESS : MPI_ERR_DIMS;
	int *bins = heap_alloc((size_t)open * sizeof(int));
	if (!bins)
		return MPI_ERR_NO_MEM;
	if (!balanced) {
		spread(left, bins, open);
	} else if (!dims_balance(left, bins, open)) {
		heap_free(bins);
		return MPI_ERR_NO_MEM;
	}
	for (int i = 0, next = 0; i < ndims; i++)
		if (dims[i] == 0)
			dims[i] = bins[next++];
	heap_free(bins);
	return MPI_SUCCESS;
}

int dims_create(int nnodes, int ndims, int *dims)
{
	return dims_fill(nnodes, ndims, dims, false);
}

int dims_create_balanced(int nnodes, int ndims, int *dims)
{
	return dims_fill(nnodes, ndims, dims, true);
}
