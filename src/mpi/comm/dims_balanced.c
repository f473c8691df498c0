/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Dims_create as the standard asks for it, "as close to each other as possible": of all
 * factorizations one with the smallest distance between its largest and its smallest factor; of
 * several such the one whose smallest factor is largest, then the next, and so on.
 *
 * A search over the divisors, factors in ascending order, large ones first: the first factorization
 * of a distance is the one wanted. A branch is left when its largest factor, which is at least the
 * root of what is left, is too far from its smallest. */
#include <stdlib.h>
#include <string.h>
#include "mpi/comm/comm.h"

struct balance {
	const int *divisors;
	int ndivisors;
	int *trial, *best; /* [n], ascending */
	int n;
	int distance; /* of the best */
};

static int divisors_of(int n, int *out)
{
	int count = 0;
	for (int d = 1; d <= n / d; d++) {
		if (n % d)
			continue;
		if (out)
			out[count] = d;
		count++;
		if (d != n / d) {
			if (out)
				out[count] = n / d;
			count++;
		}
	}
	return count;
}

static int ascending(const void *a, const void *b)
{
	const int x = *(const int *)a, y = *(const int *)b;
	return (x > y) - (x < y);
}

/* Is x to the power k at most n? */
static bool power_fits(int x, int k, int n)
{
	long long p = 1;
	while (k-- > 0) {
		p *= x;
		if (p > n)
			return false;
	}
	return true;
}

/* Must one of k factors of n be above `most`? */
static bool too_large(int n, int k, long long most)
{
	long long p = 1;
	while (k-- > 0) {
		p *= most;
		if (p >= n)
			return false;
	}
	return true;
}

/* Factors at to n - 1 of `left`, none smaller than the one before. */
static void balance_search(struct balance *b, int at, int left)
{
	const int more = b->n - at, least = at ? b->trial[at - 1] : 1;
	if (more == 1) {
		b->trial[at] = left;
		if (left >= least && left - b->trial[0] < b->distance) {
			b->distance = left - b->trial[0];
			memcpy(b->best, b->trial, (size_t)b->n * sizeof(int));
		}
		return;
	}
	for (int i = b->ndivisors - 1; i >= 0; i--) {
		const int x = b->divisors[i];
		if (x < least)
			break;
		if (left % x || !power_fits(x, more, left))
			continue;
		const int first = at ? b->trial[0] : x;
		/* smaller factors here make what is left larger: none of them is nearer */
		if (too_large(left / x, more - 1, (long long)first + b->distance - 1))
			break;
		b->trial[at] = x;
		balance_search(b, at + 1, left / x);
	}
}

bool dims_balance(int n, int *bins, int nbins)
{
	const int count = divisors_of(n, NULL);
	int *memory = heap_alloc(((size_t)count + 2 * (size_t)nbins) * sizeof(int));
	if (!memory)
		return false;
	struct balance b = {memory, count, memory + count, memory + count + nbins, nbins,
			    0x7fffffff};
	divisors_of(n, memory);
	qsort(memory, (size_t)count, sizeof(int), ascending);
	balance_search(&b, 0, n);
	for (int i = 0; i < nbins; i++)
		bins[i] = b.best[nbins - 1 - i];
	heap_free(memory);
	return true;
}
