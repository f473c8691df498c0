/* SPDX-License-Identifier: BSD-3-Clause */
/* The arithmetic of Cartesian grids, row-major: the last dimension runs fastest. */
#include "mpi/comm/comm.h"

void grid_coords(const struct topology *t, int rank, int count, int *coords)
{
	for (int i = t->cart.ndims - 1; i >= 0; i--) {
		if (i < count)
			coords[i] = rank % t->cart.dims[i];
		rank /= t->cart.dims[i];
	}
}

int grid_rank(const struct topology *t, const int *coords, int *rank)
{
	int r = 0;
	for (int i = 0; i < t->cart.ndims; i++) {
		int c = coords[i], n = t->cart.dims[i];
		if (c < 0 || c >= n) {
			if (!t->cart.periods[i])
				return MPI_ERR_ARG;
			c = (c % n + n) % n;
		}
		r = r * n + c;
	}
	*rank = r;
	return MPI_SUCCESS;
}

int grid_size(int ndims, const int *dims, int limit)
{
	long n = 1;
	for (int i = 0; i < ndims; i++) {
		if (dims[i] <= 0)
			return -1;
		n *= dims[i];
		if (n > limit)
			return -1;
	}
	return (int)n;
}

int grid_neighbour(const struct topology *t, int rank, int direction, int disp)
{
	int n = t->cart.dims[direction], stride = 1;
	for (int i = direction + 1; i < t->cart.ndims; i++)
		stride *= t->cart.dims[i];
	long at = t->cart.coords[direction], to = at + disp;
	if (to < 0 || to >= n) {
		if (!t->cart.periods[direction])
			return MPI_PROC_NULL;
		to = (to % n + n) % n;
	}
	return rank + (int)(to - at) * stride;
}
