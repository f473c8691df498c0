/* SPDX-License-Identifier: BSD-3-Clause */
/* Distributed graphs of two ranks: who the neighbours are, and with which weights. */
#include "mpi/test/ranks.h"

enum { UNTOUCHED = -77 };

struct neighbours {
	int in, out, weighted;
	int sources[4], sweights[4], destinations[4], dweights[4];
};

static struct neighbours asked(MPI_Comm graph)
{
	struct neighbours n;

	for (int i = 0; i < 4; i++)
		n.sources[i] = n.sweights[i] = n.destinations[i] = n.dweights[i] = UNTOUCHED;
	REQUIRE_CLASS(MPI_Dist_graph_neighbors_count(graph, &n.in, &n.out, &n.weighted),
		      MPI_SUCCESS);
	REQUIRE_CLASS(MPI_Dist_graph_neighbors(graph, 4, n.sources, n.sweights, 4, n.destinations,
					       n.dweights),
		      MPI_SUCCESS);
	return n;
}

/* Each rank has the other one twice before it, and itself behind it. */
static MPI_Comm make(const int *sweights, const int *dweights)
{
	int other = 1 - me;
	MPI_Comm graph = MPI_COMM_NULL;

	REQUIRE_CLASS(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2, (int[]){other, other},
						     sweights, 1, &me, dweights, MPI_INFO_NULL, 0,
						     &graph),
		      MPI_SUCCESS);
	return graph;
}

static void neighbours_without_weights_have_none(void **state)
{
	MPI_Comm graph = make(MPI_UNWEIGHTED, MPI_UNWEIGHTED);
	struct neighbours n = asked(graph);

	REQUIRE(n.in == 2 && n.out == 1 && !n.weighted);
	REQUIRE(n.sources[0] == 1 - me && n.sources[1] == 1 - me && n.destinations[0] == me);
	REQUIRE(n.sweights[0] == UNTOUCHED && n.dweights[0] == UNTOUCHED);
	REQUIRE(n.sources[2] == UNTOUCHED && n.destinations[1] == UNTOUCHED);
	/* nor does a caller have to have room for them */
	REQUIRE_CLASS(MPI_Dist_graph_neighbors(graph, 2, n.sources, MPI_UNWEIGHTED, 1,
					       n.destinations, MPI_UNWEIGHTED),
		      MPI_SUCCESS);
	MPI_Comm_free(&graph);
}

static void neighbours_with_weights_keep_them(void **state)
{
	MPI_Comm graph = make((int[]){10 + me, 20 + me}, (int[]){30 + me});
	struct neighbours n = asked(graph);

	REQUIRE(n.in == 2 && n.out == 1 && n.weighted);
	REQUIRE(n.sweights[0] == 10 + me && n.sweights[1] == 20 + me && n.dweights[0] == 30 + me);
	/* who does not want to know them */
	REQUIRE_CLASS(MPI_Dist_graph_neighbors(graph, 2, n.sources, MPI_UNWEIGHTED, 1,
					       n.destinations, MPI_UNWEIGHTED),
		      MPI_SUCCESS);
	/* the first one only */
	n.sources[1] = n.sweights[1] = UNTOUCHED;
	REQUIRE_CLASS(MPI_Dist_graph_neighbors(graph, 1, n.sources, n.sweights, 0, NULL, NULL),
		      MPI_SUCCESS);
	REQUIRE(n.sweights[0] == 10 + me && n.sweights[1] == UNTOUCHED);
	REQUIRE(n.sources[1] == UNTOUCHED);
	MPI_Comm_free(&graph);
}

static void nobody_needs_no_weights(void **state)
{
	struct neighbours n;
	MPI_Comm graph;

	REQUIRE_CLASS(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 0, NULL, MPI_WEIGHTS_EMPTY, 0,
						     NULL, MPI_WEIGHTS_EMPTY, MPI_INFO_NULL, 0,
						     &graph),
		      MPI_SUCCESS);
	n = asked(graph);
	REQUIRE(n.in == 0 && n.out == 0 && n.weighted);
	MPI_Comm_free(&graph);
}

/* Rank 1 alone names all edges: 0 → 1 with weight 7, 1 → 0 with 8, 1 → 1 with 9. */
static void anybody_may_name_any_edge(void **state)
{
	static const int nodes[] = {0, 1}, degrees[] = {1, 2}, targets[] = {1, 0, 1},
			 weights[] = {7, 8, 9};

	for (int weighted = 0; weighted < 2; weighted++) {
		struct neighbours n;
		MPI_Comm graph;

		REQUIRE_CLASS(MPI_Dist_graph_create(MPI_COMM_WORLD, me ? 2 : 0, nodes, degrees,
						    targets, weighted ? weights : MPI_UNWEIGHTED,
						    MPI_INFO_NULL, 0, &graph),
			      MPI_SUCCESS);
		n = asked(graph);
		REQUIRE(n.weighted == weighted && n.in == 1 + me && n.out == 1 + me);
		if (me == 0) {
			REQUIRE(n.sources[0] == 1 && n.destinations[0] == 1);
			REQUIRE(n.sweights[0] == (weighted ? 8 : UNTOUCHED));
			REQUIRE(n.dweights[0] == (weighted ? 7 : UNTOUCHED));
		} else {
			REQUIRE(n.sources[0] == 0 && n.sources[1] == 1);
			REQUIRE(n.destinations[0] == 0 && n.destinations[1] == 1);
			REQUIRE(n.sweights[1] == (weighted ? 9 : UNTOUCHED));
			REQUIRE(n.dweights[0] == (weighted ? 8 : UNTOUCHED));
		}
		MPI_Comm_free(&graph);
	}
}

static void senseless_graphs_are_refused(void **state)
{
	int zero = 0, far = 2, none = MPI_PROC_NULL, one = 1, less = -1;
	MPI_Comm graph, *to = &graph;

#define ADJACENT(in, sources, sweights, out, dests, dweights, result)                              \
	MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, in, sources, sweights, out, dests,          \
				       dweights, MPI_INFO_NULL, 0, result)
	REQUIRE_CLASS(ADJACENT(-1, &zero, MPI_UNWEIGHTED, 0, NULL, MPI_UNWEIGHTED, to),
		      MPI_ERR_ARG);
	REQUIRE_CLASS(ADJACENT(1, &far, MPI_UNWEIGHTED, 0, NULL, MPI_UNWEIGHTED, to), MPI_ERR_ARG);
	REQUIRE_CLASS(ADJACENT(1, NULL, MPI_UNWEIGHTED, 0, NULL, MPI_UNWEIGHTED, to), MPI_ERR_ARG);
	REQUIRE_CLASS(ADJACENT(0, NULL, MPI_UNWEIGHTED, 1, &far, MPI_UNWEIGHTED, to), MPI_ERR_ARG);
	REQUIRE_CLASS(ADJACENT(1, &zero, NULL, 0, NULL, &one, to), MPI_ERR_ARG);
	REQUIRE_CLASS(ADJACENT(0, NULL, &one, 1, &zero, NULL, to), MPI_ERR_ARG);
	REQUIRE_CLASS(ADJACENT(1, &zero, MPI_UNWEIGHTED, 1, &zero, &one, to), MPI_ERR_ARG);
	REQUIRE_CLASS(ADJACENT(1, &zero, MPI_UNWEIGHTED, 1, &zero, MPI_UNWEIGHTED, NULL),
		      MPI_ERR_ARG);
#define ANY(n, nodes, degrees, targets, result)                                                    \
	MPI_Dist_graph_create(MPI_COMM_WORLD, n, nodes, degrees, targets, MPI_UNWEIGHTED,          \
			      MPI_INFO_NULL, 0, result)
	REQUIRE_CLASS(ANY(-1, &zero, &one, &zero, to), MPI_ERR_ARG);
	REQUIRE_CLASS(ANY(1, &far, &one, &zero, to), MPI_ERR_ARG);
	REQUIRE_CLASS(ANY(1, &none, &one, &zero, to), MPI_ERR_ARG);
	REQUIRE_CLASS(ANY(1, &zero, NULL, &zero, to), MPI_ERR_ARG);
	REQUIRE_CLASS(ANY(1, &zero, &less, &zero, to), MPI_ERR_ARG);
	REQUIRE_CLASS(ANY(1, &zero, &one, &far, to), MPI_ERR_ARG);
	REQUIRE_CLASS(ANY(1, &zero, &one, &none, to), MPI_ERR_ARG);
	REQUIRE_CLASS(ANY(1, &zero, &one, &zero, NULL), MPI_ERR_ARG);
	REQUIRE_CLASS(MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &zero, &one, &zero, NULL,
					    MPI_INFO_NULL, 0, to),
		      MPI_ERR_ARG);
	REQUIRE_CLASS(MPI_Dist_graph_neighbors_count(MPI_COMM_WORLD, &zero, &one, &far),
		      MPI_ERR_TOPOLOGY);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(neighbours_without_weights_have_none),
	    cmocka_unit_test(neighbours_with_weights_keep_them),
	    cmocka_unit_test(nobody_needs_no_weights),
	    cmocka_unit_test(anybody_may_name_any_edge),
	    cmocka_unit_test(senseless_graphs_are_refused),
	};
	ranks_start(2, &argc, &argv);
	return ranks_run(tests, sizeof(tests) / sizeof(tests[0]));
}
