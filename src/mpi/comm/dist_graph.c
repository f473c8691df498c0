/* SPDX-License-Identifier: BSD-3-Clause */
/* Distributed graph topologies: each process knows its own neighbours only. */
#include <string.h>
#include "mpi/comm/comm.h"

static bool has_weights(const int *weights)
{
	return weights != MPI_UNWEIGHTED && weights != MPI_WEIGHTS_EMPTY;
}

static struct topology *dist_new(int indegree, int outdegree, bool weighted)
{
	struct topology *t =
	    topology_new(MPI_DIST_GRAPH, 2 * ((size_t)indegree + (size_t)outdegree));
	if (!t)
		return NULL;
	t->dist.indegree = indegree;
	t->dist.outdegree = outdegree;
	t->dist.weighted = weighted;
	t->dist.sources = t->storage;
	t->dist.sweights = t->dist.sources + indegree;
	t->dist.destinations = t->dist.sweights + indegree;
	t->dist.dweights = t->dist.destinations + outdegree;
	return t;
}

static void copy_ints(int *to, const int *from, int count)
{
	if (count > 0)
		memcpy(to, from, (size_t)count * sizeof(int));
}

static bool ranks_ok(const int *ranks, int count, int size)
{
	if (count < 0 || (count > 0 && !ranks))
		return false;
	for (int i = 0; i < count; i++)
		if ((ranks[i] < 0 || ranks[i] >= size) && ranks[i] != MPI_PROC_NULL)
			return false;
	return true;
}

int PMPI_Dist_graph_create_adjacent(MPI_Comm comm_old, int indegree, const int sources[],
				    const int sourceweights[], int outdegree,
				    const int destinations[], const int destweights[],
				    MPI_Info info, int reorder, MPI_Comm *comm_dist_graph)
{
	API_ENTER("MPI_Dist_graph_create_adjacent");
	struct comm *c = comm_of(comm_old), *out;
	if (!comm_ok(c) || comm_is_inter(c))
		return API_FAIL(NULL, MPI_ERR_COMM);
	if (!ranks_ok(sources, indegree, c->size) || !ranks_ok(destinations, outdegree, c->size) ||
	    (indegree > 0 && !sourceweights) || (outdegree > 0 && !destweights) ||
	    (sourceweights == MPI_UNWEIGHTED) != (destweights == MPI_UNWEIGHTED) ||
	    !comm_dist_graph)
		return API_FAIL(c, MPI_ERR_ARG);
	*comm_dist_graph = MPI_COMM_NULL;
	struct topology *t = dist_new(indegree, outdegree, sourceweights != MPI_UNWEIGHTED);
	if (!t)
		return API_FAIL(c, MPI_ERR_NO_MEM);
	copy_ints(t->dist.sources, sources, indegree);
	copy_ints(t->dist.destinations, destinations, outdegree);
	if (has_weights(sourceweights))
		copy_ints(t->dist.sweights, sourceweights, indegree);
	if (has_weights(destweights))
		copy_ints(t->dist.dweights, destweights, outdegree);
	int rc = topology_make(c, c->size, t, &out);
	if (!rc)
		*comm_dist_graph = comm_handle(out);
	return API_LEAVE(c, rc);
}
API_ALIAS(Dist_graph_create_adjacent);

/* ---- MPI_Dist_graph_create: anybody may name any edge ---- */

/* Half an edge, as its owner gets it: two for each edge travel. */
struct half {
	int in; /* 1: other -> owner; 0: owner -> other */
	int other, weight;
};
enum { HALF_INTS = 3 };

struct mail { /* an exchange of halves, everybody with everybody */
	int *scounts, *sdispls, *rcounts, *rdispls; /* in ints */
	struct half *out, *in;
	int received;
};

static void mail_free(struct mail *m)
{
	heap_free(m->scounts);
	heap_free(m->out);
	heap_free(m->in);
}

struct edges { /* what the caller named */
	int n;
	const int *sources, *degrees, *destinations, *weights;
	bool weighted;
};

/* Calls for each edge: counting first (m->out NULL), then filling at the places of displs. */
static void address(const struct edges *e, struct mail *m, int *at)
{
	for (int i = 0, k = 0; i < e->n; i++) {
		for (int j = 0; j < e->degrees[i]; j++, k++) {
			int from = e->sources[i], to = e->destinations[k];
			int weight = e->weighted && has_weights(e->weights) ? e->weights[k] : 0;
			if (m->out) {
				m->out[at[from] / HALF_INTS] = (struct half){0, to, weight};
				m->out[at[to] / HALF_INTS + (from == to)] =
				    (struct half){1, from, weight};
			}
			at[from] += HALF_INTS;
			at[to] += HALF_INTS;
		}
	}
}

static int prefix(const int *counts, int *displs, int n)
{
	int total = 0;
	for (int i = 0; i < n; i++) {
		displs[i] = total;
		total += counts[i];
	}
	return total;
}

static int mail_exchange(struct comm *c, const struct edges *e, struct mail *m)
{
	int n = c->size;
	memset(m, 0, sizeof(*m));
	m->scounts = heap_calloc(5 * (size_t)n, sizeof(int));
	if (!m->scounts)
		return MPI_ERR_NO_MEM;
	m->sdispls = m->scounts + n;
	m->rcounts = m->sdispls + n;
	m->rdispls = m->rcounts + n;
	int *at = m->rdispls + n;
	address(e, m, m->scounts);
	int sending = prefix(m->scounts, m->sdispls, n);
	int rc = coll_alltoall(m->scounts, 1, datatype_of(MPI_INT), m->rcounts, 1,
			       datatype_of(MPI_INT), c);
	if (rc)
		return rc;
	int receiving = prefix(m->rcounts, m->rdispls, n);
	m->received = receiving / HALF_INTS;
	m->out = heap_alloc((size_t)(sending + HALF_INTS) * sizeof(int));
	m->in = heap_alloc((size_t)(receiving + HALF_INTS) * sizeof(int));
	if (!m->out || !m->in)
		return MPI_ERR_NO_MEM;
	memcpy(at, m->sdispls, (size_t)n * sizeof(int));
	address(e, m, at);
	return coll_alltoallv(m->out, m->scounts, m->sdispls, datatype_of(MPI_INT), m->in,
			      m->rcounts, m->rdispls, datatype_of(MPI_INT), c);
}

/* The neighbours out of what was received, in the order of who named them. */
static struct topology *collect(const struct mail *m, bool weighted)
{
	int indegree = 0;
	for (int i = 0; i < m->received; i++)
		indegree += m->in[i].in;
	struct topology *t = dist_new(indegree, m->received - indegree, weighted);
	if (!t)
		return NULL;
	for (int i = 0, in = 0, out = 0; i < m->received; i++) {
		const struct half *h = &m->in[i];
		if (h->in) {
			t->dist.sources[in] = h->other;
			t->dist.sweights[in++] = h->weight;
		} else {
			t->dist.destinations[out] = h->other;
			t->dist.dweights[out++] = h->weight;
		}
	}
	return t;
}

static int check_edges(const struct edges *e, int size)
{
	int total = 0;
	if (!ranks_ok(e->sources, e->n, size) || (e->n > 0 && !e->degrees))
		return MPI_ERR_ARG;
	for (int i = 0; i < e->n; i++) {
		if (e->degrees[i] < 0 || e->sources[i] == MPI_PROC_NULL)
			return MPI_ERR_ARG;
		total += e->degrees[i];
	}
	if (!ranks_ok(e->destinations, total, size) || (total > 0 && !e->weights))
		return MPI_ERR_ARG;
	for (int i = 0; i < total; i++)
		if (e->destinations[i] == MPI_PROC_NULL)
			return MPI_ERR_ARG;
	return MPI_SUCCESS;
}

static int dist_create(struct comm *c, const struct edges *e, struct comm **out)
{
	struct mail m;
	int rc = mail_exchange(c, e, &m);
	struct topology *t = rc ? NULL : collect(&m, e->weighted);
	mail_free(&m);
	if (!rc && !t)
		rc = MPI_ERR_NO_MEM;
	return rc ? rc : topology_make(c, c->size, t, out);
}

int PMPI_Dist_graph_create(MPI_Comm comm_old, int n, const int nodes[], const int degrees[],
			   const int targets[], const int weights[], MPI_Info info, int reorder,
			   MPI_Comm *newcomm)
{
	API_ENTER("MPI_Dist_graph_create");
	struct comm *c = comm_of(comm_old), *out;
	if (!comm_ok(c) || comm_is_inter(c))
		return API_FAIL(NULL, MPI_ERR_COMM);
	struct edges e = {n, nodes, degrees, targets, weights, weights != MPI_UNWEIGHTED};
	int rc = check_edges(&e, c->size);
	if (rc || !newcomm)
		return API_FAIL(c, MPI_ERR_ARG);
	*newcomm = MPI_COMM_NULL;
	rc = dist_create(c, &e, &out);
	if (!rc)
		*newcomm = comm_handle(out);
	return API_LEAVE(c, rc);
}
API_ALIAS(Dist_graph_create);

static int dist_open(MPI_Comm comm, struct comm **c, struct topology **t)
{
	*c = comm_of(comm);
	if (!comm_ok(*c)) {
		*c = NULL;
		return MPI_ERR_COMM;
	}
	if (comm_is_inter(*c))
		return MPI_ERR_COMM;
	*t = topology_of(*c, MPI_DIST_GRAPH);
	return *t ? MPI_SUCCESS : MPI_ERR_TOPOLOGY;
}

int PMPI_Dist_graph_neighbors_count(MPI_Comm comm, int *inneighbors, int *outneighbors,
				    int *weighted)
{
	API_ENTER("MPI_Dist_graph_neighbors_count");
	struct comm *c;
	struct topology *t;
	int rc = dist_open(comm, &c, &t);
	if (rc)
		return API_FAIL(c, rc);
	if (!inneighbors || !outneighbors || !weighted)
		return API_FAIL(c, MPI_ERR_ARG);
	*inneighbors = t->dist.indegree;
	*outneighbors = t->dist.outdegree;
	*weighted = t->dist.weighted;
	return API_LEAVE(c, MPI_SUCCESS);
}
API_ALIAS(Dist_graph_neighbors_count);

static int smaller(int a, int b)
{
	return a < b ? a : b;
}

int PMPI_Dist_graph_neighbors(MPI_Comm comm, int maxindegree, int sources[], int sourceweights[],
			      int maxoutdegree, int destinations[], int destweights[])
{
	API_ENTER("MPI_Dist_graph_neighbors");
	struct comm *c;
	struct topology *t;
	int rc = dist_open(comm, &c, &t);
	if (rc)
		return API_FAIL(c, rc);
	if (maxindegree < 0 || maxoutdegree < 0 ||
	    (maxindegree > 0 && (!sources || !sourceweights)) ||
	    (maxoutdegree > 0 && (!destinations || !destweights)))
		return API_FAIL(c, MPI_ERR_ARG);
	int in = smaller(maxindegree, t->dist.indegree);
	int out = smaller(maxoutdegree, t->dist.outdegree);
	copy_ints(sources, t->dist.sources, in);
	copy_ints(destinations, t->dist.destinations, out);
	if (t->dist.weighted && has_weights(sourceweights))
		copy_ints(sourceweights, t->dist.sweights, in);
	if (t->dist.weighted && has_weights(destweights))
		copy_ints(destweights, t->dist.dweights, out);
	return API_LEAVE(c, MPI_SUCCESS);
}
API_ALIAS(Dist_graph_neighbors);
