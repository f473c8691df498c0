// SPDX-License-Identifier: BSD-3-Clause
/* neighbors ROUNDS SEED: collectives of neighbours in random topologies, and persistent collectives,
 * compared with what every rank computes by itself. */
#include <mpi.h>
#include <mpi-ext.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 64, LEN = 9 };

static int rank, nranks, failures;
static long round_;

static uint64_t drawn;
static int draw(int below)
{
	drawn += 0x9e3779b97f4a7c15u;
	uint64_t x = drawn;
	x ^= x >> 30;
	x *= 0xbf58476d1ce4e5b9u;
	x ^= x >> 27;
	x *= 0x94d049bb133111ebu;
	return (int)((x ^ x >> 31) % (uint64_t)below);
}

static void wrong(const char *what, int at)
{
	if (failures++ < 5)
		fprintf(stderr, "rank %d, round %ld: %s (%d)\n", rank, round_, what, at);
}

/* ---- random topologies: what is sent along edge e of rank r has the value r * 1000 + label ---- */

struct edges {
	int nin, nout, in[MOST], out[MOST];
	int in_label[MOST]; /* which of the source's blocks comes in */
};

static MPI_Comm topology(struct edges *e)
{
	MPI_Comm c = MPI_COMM_NULL;
	int kind = draw(2);
	memset(e, 0, sizeof(*e));
	if (kind == 0) {
		int ndims = 1 + draw(2), dims[2] = {0}, periods[2] = {draw(2), draw(2)};
		MPI_Dims_create(nranks, ndims, dims);
		MPI_Cart_create(MPI_COMM_WORLD, ndims, dims, periods, 0, &c);
		for (int d = 0; d < ndims; d++) {
			int down, up;
			MPI_Cart_shift(c, d, 1, &down, &up);
			e->in[2 * d] = e->out[2 * d] = down;
			e->in[2 * d + 1] = e->out[2 * d + 1] = up;
			/* what comes from below was sent up */
			e->in_label[2 * d] = 2 * d + 1;
			e->in_label[2 * d + 1] = 2 * d;
		}
		e->nin = e->nout = 2 * ndims;
		return c;
	}
	/* a graph that all draw, edges of a pair in order */
	int edges = draw(3 * nranks);
	int counts[16] = {0};
	for (int i = 0; i < edges; i++) {
		int from = draw(nranks), to = draw(nranks);
		if (counts[from] >= MOST / 2)
			continue;
		if (from == rank)
			e->out[e->nout++] = to;
		if (to == rank && e->nin < MOST) {
			e->in[e->nin] = from;
			e->in_label[e->nin++] = counts[from];
		}
		counts[from]++;
	}
	int weights[MOST] = {0};
	MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, e->nin, e->in, weights, e->nout, e->out, weights,
				       MPI_INFO_NULL, 0, &c);
	return c;
}

static long value(int who, int label, int i)
{
	return ((round_ * 100 + who) * 100 + label) * 100 + i;
}

static void neighbours(void)
{
	struct edges e;
	MPI_Comm c = topology(&e);
	static long in[MOST * LEN], out[MOST * LEN];
	int counts[MOST], places[MOST], kind = draw(9), len = 1 + draw(LEN);
	MPI_Aint bytes[MOST];
	MPI_Datatype types[MOST];
	MPI_Request r = MPI_REQUEST_NULL;
	int gathers = kind == 0 || kind == 1 || kind == 5 || kind == 7;
	for (int k = 0; k < MOST; k++) {
		counts[k] = len;
		places[k] = k * LEN;
		bytes[k] = (MPI_Aint)(k * LEN * sizeof(long));
		types[k] = MPI_LONG;
		for (int i = 0; i < LEN; i++) {
			int at = kind == 2 || kind == 6 ? k * len + i : k * LEN + i;
			if (at < MOST * LEN && i < len)
				out[at] = value(rank, gathers ? 0 : k, i);
		}
	}
	memset(in, -1, sizeof(in));
	int again = 1;
	switch (kind) {
	case 0:
		MPI_Neighbor_allgather(out, len, MPI_LONG, in, len, MPI_LONG, c);
		break;
	case 1:
		MPI_Neighbor_allgatherv(out, len, MPI_LONG, in, counts, places, MPI_LONG, c);
		break;
	case 2:
		MPI_Neighbor_alltoall(out, len, MPI_LONG, in, len, MPI_LONG, c);
		break;
	case 3:
		MPI_Neighbor_alltoallv(out, counts, places, MPI_LONG, in, counts, places, MPI_LONG, c);
		break;
	case 4:
		MPI_Neighbor_alltoallw(out, counts, bytes, types, in, counts, bytes, types, c);
		break;
	case 5:
		MPI_Ineighbor_allgather(out, len, MPI_LONG, in, len, MPI_LONG, c, &r);
		MPI_Wait(&r, MPI_STATUS_IGNORE);
		break;
	case 6:
		MPI_Ineighbor_alltoall(out, len, MPI_LONG, in, len, MPI_LONG, c, &r);
		MPI_Wait(&r, MPI_STATUS_IGNORE);
		break;
	case 7:
		MPIX_Neighbor_allgather_init(out, len, MPI_LONG, in, len, MPI_LONG, c, MPI_INFO_NULL, &r);
		again = 3;
		break;
	default:
		MPIX_Neighbor_alltoallv_init(out, counts, places, MPI_LONG, in, counts, places, MPI_LONG, c,
					     MPI_INFO_NULL, &r);
		again = 3;
	}
	for (int t = 0; t < again; t++) {
		if (again > 1) {
			memset(in, -1, sizeof(in));
			MPI_Start(&r);
			MPI_Wait(&r, MPI_STATUS_IGNORE);
		}
		int dense = kind == 0 || kind == 2 || kind == 5 || kind == 6 || kind == 7;
		for (int k = 0; k < e.nin; k++)
			for (int i = 0; i < len; i++) {
				long got = in[k * (dense ? len : LEN) + i];
				long want = value(e.in[k], gathers ? 0 : e.in_label[k], i);
				if (e.in[k] == MPI_PROC_NULL ? got != -1 : got != want)
					wrong("another value came from a neighbour", kind);
			}
	}
	if (again > 1)
		MPI_Request_free(&r);
	MPI_Comm_free(&c);
}

static void persistent(void)
{
	static long in[16 * 4], out[16 * 4];
	long sum = 0;
	MPI_Request r[4];
	int root = draw(nranks);
	MPIX_Allreduce_init(out, in, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &r[0]);
	MPIX_Bcast_init(in + 1, 1, MPI_LONG, root, MPI_COMM_WORLD, MPI_INFO_NULL, &r[1]);
	MPIX_Alltoall_init(out + 16, 1, MPI_LONG, in + 16, 1, MPI_LONG, MPI_COMM_WORLD, MPI_INFO_NULL, &r[2]);
	MPIX_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &r[3]);
	for (int turn = 0; turn < 4; turn++) {
		out[0] = value(rank, turn, 0);
		in[1] = rank == root ? value(rank, turn, 1) : -1;
		for (int i = 0; i < nranks; i++)
			out[16 + i] = value(rank, turn, i);
		for (int i = 0; i < 4; i++) /* each rank in another order */
			MPI_Start(&r[(i + turn * rank) % 4]);
		MPI_Waitall(4, r, MPI_STATUSES_IGNORE);
		sum = 0;
		for (int i = 0; i < nranks; i++) {
			sum += value(i, turn, 0);
			if (in[16 + i] != value(i, turn, rank))
				wrong("persistent alltoall", turn);
		}
		if (in[0] != sum || in[1] != value(root, turn, 1))
			wrong("persistent allreduce, bcast", turn);
	}
	for (int i = 0; i < 4; i++)
		MPI_Request_free(&r[i]);
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &nranks);
	long rounds = argc > 1 ? atol(argv[1]) : 100;
	drawn = argc > 2 ? strtoul(argv[2], NULL, 10) : 1;
	for (round_ = 0; round_ < rounds; round_++) {
		if (draw(5))
			neighbours();
		else
			persistent();
	}
	int all = 0;
	MPI_Reduce(&failures, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
	if (rank == 0)
		printf("%ld rounds, %d wrong\n", rounds, all);
	MPI_Finalize();
	return 0;
}
