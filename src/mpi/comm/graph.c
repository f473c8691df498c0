/* SPDX-License-Identifier: BSD-3-Clause */
/* Graph topologies of MPI-1: everybody has the whole graph. index[i] is the number of neighbours of
 * nodes 0..i, edges lists them one node after another. */
#include <string.h>
#include "mpi/comm/comm.h"

static int check_graph(int nnodes, const int *index, const int *edges, int size)
{
	int from = 0;
	if (nnodes < 0 || (nnodes > 0 && (!index || !edges)))
		return MPI_ERR_ARG;
	if (nnodes > size)
		return MPI_ERR_ARG;
	for (int i = 0; i < nnodes; i++) {
		if (index[i] < from)
			return MPI_ERR_ARG;
		from = index[i];
	}
	for (int i = 0; i < from; i++)
		if (edges[i] < 0 || edges[i] >= nnodes)
			return MPI_ERR_ARG;
	return MPI_SUCCESS;
}

static struct topology *graph_new(int nnodes, const int *index, const int *edges)
{
	int nedges = nnodes ? index[nnodes - 1] : 0;
	struct topology *t = topology_new(MPI_GRAPH, (size_t)nnodes + (size_t)nedges);
	if (!t)
		return NULL;
	t->graph.nnodes = nnodes;
	t->graph.nedges = nedges;
	t->graph.index = t->storage;
	t->graph.edges = t->storage + nnodes;
	if (nnodes)
		memcpy(t->graph.index, index, (size_t)nnodes * sizeof(int));
	if (nedges)
		memcpy(t->graph.edges, edges, (size_t)nedges * sizeof(int));
	return t;
}

int PMPI_Graph_create(MPI_Comm comm_old, int nnodes, const int index[], const int edges[],
		      int reorder, MPI_Comm *comm_graph)
{
	API_ENTER("MPI_Graph_create");
	struct comm *c = comm_of(comm_old), *out;
	if (!comm_ok(c) || comm_is_inter(c))
		return API_FAIL(NULL, MPI_ERR_COMM);
	if (!comm_graph)
		return API_FAIL(c, MPI_ERR_ARG);
	int rc = check_graph(nnodes, index, edges, c->size);
	if (rc)
		return API_FAIL(c, rc);
	*comm_graph = MPI_COMM_NULL;
	if (nnodes == 0)
		return API_LEAVE(c, MPI_SUCCESS);
	struct topology *t = graph_new(nnodes, index, edges);
	if (!t)
		return API_FAIL(c, MPI_ERR_NO_MEM);
	rc = topology_make(c, nnodes, t, &out);
	if (!rc && out)
		*comm_graph = comm_handle(out);
	return API_LEAVE(c, rc);
}
API_ALIAS(Graph_create);

int PMPI_Graph_map(MPI_Comm comm, int nnodes, const int index[], const int edges[], int *newrank)
{
	API_ENTER("MPI_Graph_map");
	struct comm *c = comm_of(comm);
	if (!comm_ok(c) || comm_is_inter(c))
		return API_FAIL(NULL, MPI_ERR_COMM);
	if (nnodes < 1 || !index || !edges || !newrank)
		return API_FAIL(c, MPI_ERR_ARG);
	*newrank = c->rank < nnodes ? c->rank : MPI_UNDEFINED;
	return API_LEAVE(c, MPI_SUCCESS);
}
API_ALIAS(Graph_map);

static int graph_open(MPI_Comm comm, struct comm **c, struct topology **t)
{
	*c = comm_of(comm);
	if (!comm_ok(*c)) {
		*c = NULL;
		return MPI_ERR_COMM;
	}
	if (comm_is_inter(*c))
		return MPI_ERR_COMM;
	*t = topology_of(*c, MPI_GRAPH);
	return *t ? MPI_SUCCESS : MPI_ERR_TOPOLOGY;
}

int PMPI_Graphdims_get(MPI_Comm comm, int *nnodes, int *nedges)
{
	API_ENTER("MPI_Graphdims_get");
	struct comm *c;
	struct topology *t;
	int rc = graph_open(comm, &c, &t);
	if (rc)
		return API_FAIL(c, rc);
	if (!nnodes || !nedges)
		return API_FAIL(c, MPI_ERR_ARG);
	*nnodes = t->graph.nnodes;
	*nedges = t->graph.nedges;
	return API_LEAVE(c, MPI_SUCCESS);
}
API_ALIAS(Graphdims_get);

static void copy_ints(int *to, const int *from, int count, int max)
{
	int n = count < max ? count : max;
	if (n > 0)
		memcpy(to, from, (size_t)n * sizeof(int));
}

int PMPI_Graph_get(MPI_Comm comm, int maxindex, int maxedges, int index[], int edges[])
{
	API_ENTER("MPI_Graph_get");
	struct comm *c;
	struct topology *t;
	int rc = graph_open(comm, &c, &t);
	if (rc)
		return API_FAIL(c, rc);
	if (maxindex < 0 || maxedges < 0 || (maxindex > 0 && !index) || (maxedges > 0 && !edges))
		return API_FAIL(c, MPI_ERR_ARG);
	copy_ints(index, t->graph.index, t->graph.nnodes, maxindex);
	copy_ints(edges, t->graph.edges, t->graph.nedges, maxedges);
	return API_LEAVE(c, MPI_SUCCESS);
}
API_ALIAS(Graph_get);

/* Where a node's neighbours begin and how many there are. */
static const int *neighbours(const struct topology *t, int rank, int *count)
{
	int from = rank ? t->graph.index[rank - 1] : 0;
	*count = t->graph.index[rank] - from;
	return t->graph.edges + from;
}

int PMPI_Graph_neighbors_count(MPI_Comm comm, int rank, int *nneighbors)
{
	API_ENTER("MPI_Graph_neighbors_count");
	struct comm *c;
	struct topology *t;
	int rc = graph_open(comm, &c, &t);
	if (rc)
		return API_FAIL(c, rc);
	if (rank < 0 || rank >= c->size)
		return API_FAIL(c, MPI_ERR_RANK);
	if (!nneighbors)
		return API_FAIL(c, MPI_ERR_ARG);
	neighbours(t, rank, nneighbors);
	return API_LEAVE(c, MPI_SUCCESS);
}
API_ALIAS(Graph_neighbors_count);

int PMPI_Graph_neighbors(MPI_Comm comm, int rank, int maxneighbors, int neighbors[])
{
	API_ENTER("MPI_Graph_neighbors");
	struct comm *c;
	struct topology *t;
	int count, rc = graph_open(comm, &c, &t);
	if (rc)
		return API_FAIL(c, rc);
	if (rank < 0 || rank >= c->size)
		return API_FAIL(c, MPI_ERR_RANK);
	if (maxneighbors < 0 || (maxneighbors > 0 && !neighbors))
		return API_FAIL(c, MPI_ERR_ARG);
	const int *from = neighbours(t, rank, &count);
	copy_ints(neighbors, from, count, maxneighbors);
	return API_LEAVE(c, MPI_SUCCESS);
}
API_ALIAS(Graph_neighbors);
