/* SPDX-License-Identifier: BSD-3-Clause */
/* Cartesian topologies. Ranks stay where they are whatever `reorder` says: all of a job's processes
 * may move at any restart, so no order is better than another. */
#include <string.h>
#include "mpi/comm/comm.h"
#include "mpi/task/intask.h"

static struct topology *cart_new(int ndims, const int *dims, const int *periods, int rank)
{
	struct topology *t = topology_new(MPI_CART, 3 * (size_t)ndims);
	if (!t)
		return NULL;
	t->cart.ndims = ndims;
	t->cart.dims = t->storage;
	t->cart.periods = t->storage + ndims;
	t->cart.coords = t->storage + 2 * ndims;
	for (int i = 0; i < ndims; i++) {
		t->cart.dims[i] = dims[i];
		t->cart.periods[i] = periods[i] != 0;
	}
	grid_coords(t, rank, t->cart.ndims, t->cart.coords);
	return t;
}

int PMPI_Cart_create(MPI_Comm old_comm, int ndims, const int dims[], const int periods[],
		     int reorder, MPI_Comm *comm_cart)
{
	API_ENTER("MPI_Cart_create");
	struct comm *c = comm_of(old_comm), *out;
	if (!comm_ok(c) || comm_is_inter(c))
		return API_FAIL(NULL, MPI_ERR_COMM);
	if (ndims < 0 || (ndims > 0 && (!dims || !periods)) || !comm_cart)
		return API_FAIL(c, MPI_ERR_ARG);
	int nodes = grid_size(ndims, dims, c->size);
	if (nodes < 0)
		return API_FAIL(c, MPI_ERR_ARG);
	if (UNLIKELY(tasklog_now != NULL) && intask_comm_again(c, comm_cart))
		return API_LEAVE(c, MPI_SUCCESS);
	*comm_cart = MPI_COMM_NULL;
	struct topology *t = cart_new(ndims, dims, periods, c->rank < nodes ? c->rank : 0);
	if (!t)
		return API_FAIL(c, MPI_ERR_NO_MEM);
	int rc = topology_make(c, nodes, t, &out);
	if (!rc && out)
		*comm_cart = comm_handle(out);
	if (UNLIKELY(tasklog_now != NULL) && !rc)
		intask_comm_made(c, *comm_cart);
	return API_LEAVE(c, rc);
}
API_ALIAS(Cart_create);

int PMPI_Cart_map(MPI_Comm comm, int ndims, const int dims[], const int periods[], int *newrank)
{
	API_ENTER("MPI_Cart_map");
	struct comm *c = comm_of(comm);
	if (!comm_ok(c) || comm_is_inter(c))
		return API_FAIL(NULL, MPI_ERR_COMM);
	if (ndims < 0 || (ndims > 0 && (!dims || !periods)) || !newrank)
		return API_FAIL(c, MPI_ERR_ARG);
	int nodes = grid_size(ndims, dims, c->size);
	if (nodes < 0)
		return API_FAIL(c, MPI_ERR_DIMS);
	*newrank = c->rank < nodes ? c->rank : MPI_UNDEFINED;
	return API_LEAVE(c, MPI_SUCCESS);
}
API_ALIAS(Cart_map);

/* Checks what all the questions below need. */
static int cart_open(MPI_Comm comm, struct comm **c, struct topology **t)
{
	*c = comm_of(comm);
	if (!comm_ok(*c)) {
		*c = NULL;
		return MPI_ERR_COMM;
	}
	if (comm_is_inter(*c))
		return MPI_ERR_COMM;
	*t = topology_of(*c, MPI_CART);
	return *t ? MPI_SUCCESS : MPI_ERR_TOPOLOGY;
}

int PMPI_Cartdim_get(MPI_Comm comm, int *ndims)
{
	API_ENTER("MPI_Cartdim_get");
	struct comm *c;
	struct topology *t;
	int rc = cart_open(comm, &c, &t);
	if (rc)
		return API_FAIL(c, rc);
	if (!ndims)
		return API_FAIL(c, MPI_ERR_ARG);
	*ndims = t->cart.ndims;
	return API_LEAVE(c, MPI_SUCCESS);
}
API_ALIAS(Cartdim_get);

static int smaller(int a, int b)
{
	return a < b ? a : b;
}

int PMPI_Cart_get(MPI_Comm comm, int maxdims, int dims[], int periods[], int coords[])
{
	API_ENTER("MPI_Cart_get");
	struct comm *c;
	struct topology *t;
	int rc = cart_open(comm, &c, &t);
	if (rc)
		return API_FAIL(c, rc);
	if (maxdims < 0 || (maxdims > 0 && (!dims || !periods || !coords)))
		return API_FAIL(c, MPI_ERR_ARG);
	size_t n = (size_t)smaller(maxdims, t->cart.ndims) * sizeof(int);
	if (n) {
		memcpy(dims, t->cart.dims, n);
		memcpy(periods, t->cart.periods, n);
		memcpy(coords, t->cart.coords, n);
	}
	return API_LEAVE(c, MPI_SUCCESS);
}
API_ALIAS(Cart_get);

int PMPI_Cart_rank(MPI_Comm comm, const int coords[], int *rank)
{
	API_ENTER("MPI_Cart_rank");
	struct comm *c;
	struct topology *t;
	int rc = cart_open(comm, &c, &t);
	if (rc)
		return API_FAIL(c, rc);
	if ((!coords && t->cart.ndims > 0) || !rank)
		return API_FAIL(c, MPI_ERR_ARG);
	return API_LEAVE(c, grid_rank(t, coords, rank));
}
API_ALIAS(Cart_rank);

int PMPI_Cart_coords(MPI_Comm comm, int rank, int maxdims, int coords[])
{
	API_ENTER("MPI_Cart_coords");
	struct comm *c;
	struct topology *t;
	int rc = cart_open(comm, &c, &t);
	if (rc)
		return API_FAIL(c, rc);
	if (maxdims < 0 || (maxdims > 0 && t->cart.ndims > 0 && !coords))
		return API_FAIL(c, MPI_ERR_ARG);
	if (rank < 0 || rank >= c->size)
		return API_FAIL(c, MPI_ERR_RANK);
	grid_coords(t, rank, maxdims, coords); /* as many as there is room for */
	return API_LEAVE(c, MPI_SUCCESS);
}
API_ALIAS(Cart_coords);

int PMPI_Cart_shift(MPI_Comm comm, int direction, int disp, int *rank_source, int *rank_dest)
{
	API_ENTER("MPI_Cart_shift");
	struct comm *c;
	struct topology *t;
	int rc = cart_open(comm, &c, &t);
	if (rc)
		return API_FAIL(c, rc);
	if (direction < 0 || direction >= t->cart.ndims)
		return API_FAIL(c, MPI_ERR_DIMS);
	if (!rank_source || !rank_dest)
		return API_FAIL(c, MPI_ERR_ARG);
	*rank_source = grid_neighbour(t, c->rank, direction, -disp);
	*rank_dest = grid_neighbour(t, c->rank, direction, disp);
	return API_LEAVE(c, MPI_SUCCESS);
}
API_ALIAS(Cart_shift);

/* The group of those who share our coordinates in the dimensions that go, in order of rank. */
static int slice_group(const struct comm *c, const struct topology *t, const int *remain,
		       struct group **out)
{
	int n = 0, *coords = heap_alloc((size_t)(t->cart.ndims + 1) * sizeof(int));
	int *world = heap_alloc((size_t)c->size * sizeof(int));
	if (!coords || !world) {
		heap_free(coords);
		heap_free(world);
		return MPI_ERR_NO_MEM;
	}
	for (int r = 0; r < c->size; r++) {
		bool ours = true;
		grid_coords(t, r, t->cart.ndims, coords);
		for (int i = 0; i < t->cart.ndims; i++)
			if (!remain[i] && coords[i] != t->cart.coords[i])
				ours = false;
		if (ours)
			world[n++] = c->world[r];
	}
	heap_free(coords);
	*out = group_create(world, n);
	return *out ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

static int cart_sub(struct comm *c, const struct topology *t, const int *remain, struct comm **out)
{
	struct group *g = NULL;
	struct topology *sub = topology_new(MPI_CART, 3 * (size_t)t->cart.ndims);
	if (!sub)
		return MPI_ERR_NO_MEM;
	sub->cart.dims = sub->storage;
	sub->cart.periods = sub->storage + t->cart.ndims;
	sub->cart.coords = sub->storage + 2 * t->cart.ndims;
	for (int i = 0; i < t->cart.ndims; i++) {
		if (!remain[i])
			continue;
		sub->cart.dims[sub->cart.ndims] = t->cart.dims[i];
		sub->cart.periods[sub->cart.ndims] = t->cart.periods[i];
		sub->cart.coords[sub->cart.ndims++] = t->cart.coords[i];
	}
	int rc = slice_group(c, t, remain, &g);
	if (!rc)
		rc = comm_make(c, g, out);
	if (g)
		group_release(g);
	if (rc)
		topology_release(sub);
	else
		comm_set_topology(*out, sub);
	return rc;
}

int PMPI_Cart_sub(MPI_Comm comm, const int remain_dims[], MPI_Comm *new_comm)
{
	API_ENTER("MPI_Cart_sub");
	struct comm *c, *out;
	struct topology *t;
	int rc = cart_open(comm, &c, &t);
	if (rc)
		return API_FAIL(c, rc);
	if ((!remain_dims && t->cart.ndims > 0) || !new_comm)
		return API_FAIL(c, MPI_ERR_ARG);
	if (UNLIKELY(tasklog_now != NULL) && intask_comm_again(c, new_comm))
		return API_LEAVE(c, MPI_SUCCESS);
	*new_comm = MPI_COMM_NULL;
	rc = cart_sub(c, t, remain_dims, &out);
	if (!rc)
		*new_comm = comm_handle(out);
	if (UNLIKELY(tasklog_now != NULL) && !rc)
		intask_comm_made(c, *new_comm);
	return API_LEAVE(c, rc);
}
API_ALIAS(Cart_sub);

int PMPI_Dims_create(int nnodes, int ndims, int dims[])
{
	API_ENTER("MPI_Dims_create");
	if (ndims > 0 && !dims)
		return API_FAIL(NULL, MPI_ERR_ARG);
	if (ndims < 0 || nnodes < 1)
		return API_FAIL(NULL, MPI_ERR_DIMS);
	return API_LEAVE(NULL, dims_create(nnodes, ndims, dims));
}
API_ALIAS(Dims_create);
