/* SPDX-License-Identifier: BSD-3-Clause */
/* Communicators, groups, intercommunicators and topologies: every line it prints is the same under
 * any MPI that follows the standard as Open MPI reads it. Run it with 4 to 8 ranks. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int me, all;

#define SAY(...)                                                                                   \
	do {                                                                                       \
		printf("%d: ", me);                                                                \
		printf(__VA_ARGS__);                                                               \
		printf("\n");                                                                      \
	} while (0)

/* Who is in c, by their ranks in MPI_COMM_WORLD, as one number, and that messages arrive. */
static void describe(const char *what, MPI_Comm c)
{
	int rank, size, sum = 0, result, inter;
	if (c == MPI_COMM_NULL) {
		SAY("%s: none", what);
		return;
	}
	MPI_Comm_rank(c, &rank);
	MPI_Comm_size(c, &size);
	MPI_Comm_test_inter(c, &inter);
	MPI_Comm_compare(MPI_COMM_WORLD, c, &result);
	if (inter) {
		int remote, got = -1;
		MPI_Comm_remote_size(c, &remote);
		if (rank < remote)
			MPI_Sendrecv(&me, 1, MPI_INT, rank, 5, &got, 1, MPI_INT, rank, 5, c,
				     MPI_STATUS_IGNORE);
		SAY("%s: %d of %d, remote %d, partner %d, compare %d", what, rank, size, remote,
		    got, result);
		return;
	}
	int code = (me + 1) * (rank + 1);
	MPI_Allreduce(&code, &sum, 1, MPI_INT, MPI_SUM, c);
	int left = (rank + size - 1) % size, right = (rank + 1) % size, got;
	MPI_Sendrecv(&me, 1, MPI_INT, right, 9, &got, 1, MPI_INT, left, 9, c, MPI_STATUS_IGNORE);
	SAY("%s: %d of %d, sum %d, left is %d, compare %d", what, rank, size, sum, got, result);
}

static void done(MPI_Comm *c)
{
	if (*c != MPI_COMM_NULL)
		MPI_Comm_free(c);
}

static void splits(void)
{
	MPI_Comm a, b, c, d;
	MPI_Comm_split(MPI_COMM_WORLD, me % 2, -me, &a);
	describe("odd and even, backwards", a);
	MPI_Comm_split(a, me < 2 ? MPI_UNDEFINED : 7, 0, &b);
	describe("without the first two", b);
	MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, me, MPI_INFO_NULL, &c);
	describe("node", c);
	MPI_Comm_dup(a, &d);
	describe("dup", d);
	done(&a);
	describe("dup, its origin gone", d);
	done(&b);
	done(&c);
	done(&d);
}

static void groups(void)
{
	MPI_Group world, odd, low, g;
	MPI_Comm c;
	int ranges[1][3] = {{1, all - 1, 2}}, size, rank;
	MPI_Comm_group(MPI_COMM_WORLD, &world);
	MPI_Group_range_incl(world, 1, ranges, &odd);
	ranges[0][0] = all / 2;
	ranges[0][1] = 0;
	ranges[0][2] = -1;
	MPI_Group_range_incl(world, 1, ranges, &low);
	MPI_Group_union(odd, low, &g);
	MPI_Group_size(g, &size);
	MPI_Group_rank(g, &rank);
	SAY("union: %d of %d", rank, size);
	MPI_Comm_create(MPI_COMM_WORLD, g, &c);
	describe("create", c);
	done(&c);
	if (rank != MPI_UNDEFINED) {
		MPI_Comm_create_group(MPI_COMM_WORLD, g, 77, &c);
		describe("create_group", c);
		done(&c);
	}
	MPI_Group_free(&g);
	MPI_Group_intersection(odd, low, &g);
	MPI_Group_size(g, &size);
	SAY("intersection: %d", size);
	MPI_Group_free(&g);
	MPI_Group_difference(world, odd, &g);
	int from[3] = {0, 1, MPI_PROC_NULL}, to[3];
	MPI_Group_translate_ranks(world, 3, from, g, to);
	SAY("translated: %d %d %d", to[0], to[1], to[2]);
	MPI_Comm_create(MPI_COMM_WORLD, me % 2 ? odd : g, &c);
	describe("disjoint create", c);
	done(&c);
	MPI_Group_free(&g);
	MPI_Group_free(&odd);
	MPI_Group_free(&low);
	MPI_Group_free(&world);
}

static void idup(void)
{
	MPI_Comm a;
	MPI_Request r;
	MPI_Comm_idup(MPI_COMM_WORLD, &a, &r);
	MPI_Wait(&r, MPI_STATUS_IGNORE);
	describe("idup", a);
	done(&a);
}

static void intercomm(void)
{
	MPI_Comm half, inter, both, dup, part;
	int upper = me >= all / 2;
	MPI_Comm_split(MPI_COMM_WORLD, upper, 0, &half);
	MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, upper ? 0 : all / 2, 3, &inter);
	describe("intercomm", inter);
	MPI_Intercomm_merge(inter, !upper, &both);
	describe("merged, upper first", both);
	done(&both);
	MPI_Comm_dup(inter, &dup);
	describe("intercomm dup", dup);
	int result;
	MPI_Comm_compare(inter, dup, &result);
	SAY("intercomms compare %d", result);
	MPI_Group g;
	int size;
	MPI_Comm_remote_group(dup, &g);
	MPI_Group_size(g, &size);
	MPI_Group_free(&g);
	SAY("remote group %d", size);
	MPI_Comm_split(dup, me % 2, me, &part);
	describe("intercomm split", part);
	done(&part);
	done(&dup);
	done(&inter);
	done(&half);
}

static void cartesian(void)
{
	MPI_Comm grid, row, column;
	int dims[2] = {0, 2}, periods[2] = {1, 0}, coords[2], source, dest, rank, kind, n;
	MPI_Dims_create(all / 2 * 2, 2, dims);
	MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &grid);
	describe("grid", grid);
	if (grid == MPI_COMM_NULL)
		return;
	MPI_Topo_test(grid, &kind);
	MPI_Cartdim_get(grid, &n);
	MPI_Cart_get(grid, 2, dims, periods, coords);
	SAY("kind %d, %d dims: %dx%d, at %d,%d, periods %d %d", kind, n, dims[0], dims[1],
	    coords[0], coords[1], periods[0], periods[1]);
	for (int d = 0; d < 2; d++) {
		for (int disp = -1; disp < 3; disp++) {
			MPI_Cart_shift(grid, d, disp, &source, &dest);
			SAY("shift %d by %d: %d -> %d", d, disp, source, dest);
		}
	}
	coords[0] = -1;
	coords[1] = 1;
	MPI_Cart_rank(grid, coords, &rank);
	MPI_Cart_coords(grid, rank, 2, coords);
	SAY("rank at -1,1: %d, which is %d,%d", rank, coords[0], coords[1]);
	int keep[2] = {1, 0};
	MPI_Cart_sub(grid, keep, &column);
	describe("column", column);
	keep[0] = 0;
	MPI_Cart_sub(grid, keep, &row);
	describe("point", row);
	MPI_Cartdim_get(row, &n);
	SAY("the point has %d dims", n);
	MPI_Cart_map(grid, 2, dims, periods, &rank);
	SAY("mapped to %d", rank);
	done(&row);
	done(&column);
	done(&grid);
}

static void graphs(void)
{
	MPI_Comm g;
	int index[4] = {2, 3, 4, 6}, edges[6] = {1, 3, 0, 3, 0, 2}, n, m, list[8], weights[8], w;
	MPI_Graph_create(MPI_COMM_WORLD, 4, index, edges, 0, &g);
	describe("graph", g);
	if (g != MPI_COMM_NULL) {
		MPI_Graphdims_get(g, &n, &m);
		MPI_Graph_neighbors_count(g, me, &w);
		MPI_Graph_neighbors(g, me, 8, list);
		SAY("graph of %d nodes, %d edges; I have %d, the first is %d", n, m, w, list[0]);
		done(&g);
	}
	int left = (me + all - 1) % all, right = (me + 1) % all;
	int sources[2] = {left, right}, sw[2] = {left + 10, right + 10}, dw[2] = {me + 10, 0};
	MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, sources, sw, 1, &right, dw, MPI_INFO_NULL,
				       0, &g);
	describe("dist graph, adjacent", g);
	MPI_Dist_graph_neighbors_count(g, &n, &m, &w);
	MPI_Dist_graph_neighbors(g, 8, list, weights, 8, list + 4, weights + 4);
	SAY("%d in, %d out, weighted %d: %d (%d), %d (%d)", n, m, w, list[0], weights[0], list[4],
	    weights[4]);
	done(&g);
	/* everybody names the edge of its left neighbour to itself */
	int degree = 1, weight = 100 + me;
	MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &left, &degree, &me, &weight, MPI_INFO_NULL, 0,
			      &g);
	MPI_Dist_graph_neighbors_count(g, &n, &m, &w);
	MPI_Dist_graph_neighbors(g, 8, list, weights, 8, list + 4, weights + 4);
	SAY("%d in, %d out, weighted %d: %d (%d), %d (%d)", n, m, w, list[0], weights[0], list[4],
	    weights[4]);
	done(&g);
	MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &left, &degree, &me, MPI_UNWEIGHTED, MPI_INFO_NULL,
			      0, &g);
	MPI_Dist_graph_neighbors_count(g, &n, &m, &w);
	SAY("%d in, %d out, weighted %d", n, m, w);
	MPI_Topo_test(g, &n);
	SAY("kind %d", n);
	done(&g);
}

/* Many communicators, one after another and at once. */
static void many(void)
{
	MPI_Comm c[40];
	for (int round = 0; round < 100; round++) {
		MPI_Comm_dup(MPI_COMM_WORLD, &c[0]);
		MPI_Comm_split(c[0], me % 3, me, &c[1]);
		done(&c[0]);
		done(&c[1]);
	}
	for (int i = 0; i < 40; i++)
		MPI_Comm_split(MPI_COMM_WORLD, (me >> (i % 3)) & 1, me, &c[i]);
	describe("the last of many", c[39]);
	for (int i = 0; i < 40; i++)
		done(&c[i]);
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &me);
	MPI_Comm_size(MPI_COMM_WORLD, &all);
	splits();
	groups();
	idup();
	intercomm();
	cartesian();
	graphs();
	many();
	MPI_Finalize();
	return 0;
}
