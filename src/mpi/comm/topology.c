/* SPDX-License-Identifier: BSD-3-Clause */
/* What the three kinds of topologies have in common, and MPI_Topo_test. */
#include "mpi/comm/comm.h"

struct topology *topology_new(int kind, size_t ints)
{
	struct topology *t = heap_calloc(1, sizeof(*t) + ints * sizeof(int));
	if (!t)
		return NULL;
	t->refs = 1;
	t->kind = kind;
	return t;
}

void topology_release(struct topology *t)
{
	if (t && --t->refs == 0)
		heap_free(t);
}

struct topology *topology_of(const struct comm *c, int kind)
{
	return c->topo && c->topo->kind == kind ? c->topo : NULL;
}

int topology_make(struct comm *c, int nodes, struct topology *t, struct comm **out)
{
	int range[1][3] = {{0, nodes - 1, 1}};
	struct group *g = NULL;
	int rc = MPI_SUCCESS;
	*out = NULL;
	if (nodes == c->size) {
		g = c->group;
		group_retain(g);
	} else if (nodes > 0) {
		rc = group_range_incl(c->group, 1, range, &g);
	}
	if (!rc)
		rc = comm_make(c, g, out);
	if (g)
		group_release(g);
	if (!rc && *out)
		comm_set_topology(*out, t);
	else
		topology_release(t);
	return rc;
}

int PMPI_Topo_test(MPI_Comm comm, int *status)
{
	API_ENTER("MPI_Topo_test");
	struct comm *c = comm_of(comm);
	if (!comm_ok(c))
		return API_FAIL(NULL, MPI_ERR_COMM);
	if (!status)
		return API_FAIL(c, MPI_ERR_ARG);
	*status = c->topo ? c->topo->kind : MPI_UNDEFINED;
	return API_LEAVE(c, MPI_SUCCESS);
}
API_ALIAS(Topo_test);
