// SPDX-License-Identifier: BSD-3-Clause
/* Latency, bandwidth, message rate and collectives, measured the way the OSU benchmarks define
 * them. One source, compiled once for each MPI; bench/run.py runs them in turn.
 *
 *   mpibench SECONDS TEST[:BYTES]…     prints "test<TAB>bytes<TAB>value<TAB>unit" on rank 0
 *
 * A test "dealt:NODES" measures nothing: those behind it run on a communicator whose ranks are
 * dealt out in turn to that many nodes, given that the world's are in rows.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WINDOW = 64, BIG = 1 << 20, TAG = 7, ACK = 8 };

static int rank, size;
static MPI_Comm all;
static double budget; /* seconds for one measurement */
static char *out, *in;
static MPI_Request reqs[WINDOW];
static MPI_Status stats[WINDOW]; /* MPICH's MPI_STATUSES_IGNORE is no array for gcc, which warns */

/* One unit of work of each test, repeated `n` times. */
typedef void(test_body_t)(int bytes, int n);

static void pingpong(int bytes, int n)
{
	for (int i = 0; i < n; i++) {
		if (rank == 0) {
			MPI_Send(out, bytes, MPI_CHAR, 1, TAG, all);
			MPI_Recv(in, bytes, MPI_CHAR, 1, TAG, all, MPI_STATUS_IGNORE);
		} else if (rank == 1) {
			MPI_Recv(in, bytes, MPI_CHAR, 0, TAG, all, MPI_STATUS_IGNORE);
			MPI_Send(out, bytes, MPI_CHAR, 0, TAG, all);
		}
	}
}

static void window(int bytes, int n)
{
	for (int i = 0; i < n; i++) {
		if (rank == 0) {
			for (int k = 0; k < WINDOW; k++)
				MPI_Isend(out, bytes, MPI_CHAR, 1, TAG, all, &reqs[k]);
			MPI_Waitall(WINDOW, reqs, stats);
			MPI_Recv(in, 4, MPI_CHAR, 1, ACK, all, MPI_STATUS_IGNORE);
		} else if (rank == 1) {
			for (int k = 0; k < WINDOW; k++)
				MPI_Irecv(in, bytes, MPI_CHAR, 0, TAG, all, &reqs[k]);
			MPI_Waitall(WINDOW, reqs, stats);
			MPI_Send(out, 4, MPI_CHAR, 0, ACK, all);
		}
	}
}

static void barrier(int bytes, int n)
{
	(void)bytes;
	for (int i = 0; i < n; i++)
		MPI_Barrier(all);
}

static void bcast(int bytes, int n)
{
	for (int i = 0; i < n; i++)
		MPI_Bcast(out, bytes, MPI_CHAR, 0, all);
}

static void allreduce(int bytes, int n)
{
	for (int i = 0; i < n; i++)
		MPI_Allreduce(out, in, bytes / 8, MPI_DOUBLE, MPI_SUM, all);
}

static void alltoall(int bytes, int n)
{
	for (int i = 0; i < n; i++)
		MPI_Alltoall(out, bytes, MPI_CHAR, in, bytes, MPI_CHAR, all);
}

static void reduce(int bytes, int n)
{
	for (int i = 0; i < n; i++)
		MPI_Reduce(out, in, bytes / 8, MPI_DOUBLE, MPI_SUM, 0, all);
}

static void allgather(int bytes, int n)
{
	for (int i = 0; i < n; i++)
		MPI_Allgather(out, bytes, MPI_CHAR, in, bytes, MPI_CHAR, all);
}

static void gather(int bytes, int n)
{
	for (int i = 0; i < n; i++)
		MPI_Gather(out, bytes, MPI_CHAR, in, bytes, MPI_CHAR, 0, all);
}

static void scatter(int bytes, int n)
{
	for (int i = 0; i < n; i++)
		MPI_Scatter(out, bytes, MPI_CHAR, in, bytes, MPI_CHAR, 0, all);
}

/* Operations of blocks that differ: here they are all equal, which their members don't know. */
enum { RANKS_MOST = 1024 };
static int counts[RANKS_MOST], displs[RANKS_MOST];

static void blocks(int bytes)
{
	for (int i = 0; i < size; i++) {
		counts[i] = bytes;
		displs[i] = i * bytes;
	}
}

static void alltoallv(int bytes, int n)
{
	blocks(bytes);
	for (int i = 0; i < n; i++)
		MPI_Alltoallv(out, counts, displs, MPI_CHAR, in, counts, displs, MPI_CHAR, all);
}

static void allgatherv(int bytes, int n)
{
	blocks(bytes);
	for (int i = 0; i < n; i++)
		MPI_Allgatherv(out, bytes, MPI_CHAR, in, counts, displs, MPI_CHAR, all);
}

static void gatherv(int bytes, int n)
{
	blocks(bytes);
	for (int i = 0; i < n; i++)
		MPI_Gatherv(out, bytes, MPI_CHAR, in, counts, displs, MPI_CHAR, 0, all);
}

static void scatterv(int bytes, int n)
{
	blocks(bytes);
	for (int i = 0; i < n; i++)
		MPI_Scatterv(out, counts, displs, MPI_CHAR, in, bytes, MPI_CHAR, 0, all);
}

static void reduce_scatter(int bytes, int n)
{
	for (int i = 0; i < n; i++)
		MPI_Reduce_scatter_block(out, in, bytes / 8, MPI_DOUBLE, MPI_SUM, all);
}

static void scan(int bytes, int n)
{
	for (int i = 0; i < n; i++)
		MPI_Scan(out, in, bytes / 8, MPI_DOUBLE, MPI_SUM, all);
}

/* Seconds that n units take, the slowest rank's. */
static double timed(test_body_t *body, int bytes, int n)
{
	double mine, slowest;
	MPI_Barrier(all);
	mine = MPI_Wtime();
	body(bytes, n);
	mine = MPI_Wtime() - mine;
	MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, all);
	return slowest;
}

/* Seconds for one unit, from as many as fit the budget. */
static double per_unit(test_body_t *body, int bytes)
{
	int n = 1;
	double t = timed(body, bytes, n);
	while (t < budget / 8 && n < 1 << 24) {
		n *= 2;
		t = timed(body, bytes, n);
	}
	n = (int)(n * budget / (t > 1e-9 ? t : 1e-9)) + 1;
	MPI_Bcast(&n, 1, MPI_INT, 0, all);
	return timed(body, bytes, n) / n;
}

static void report(const char *name, int bytes, double value, const char *unit)
{
	if (rank == 0)
		printf("%s\t%d\t%.4f\t%s\n", name, bytes, value, unit);
	fflush(stdout); /* some MPIs don't always come back from MPI_Finalize */
}

/* Those whose buffers hold a block for each member end at 64 KiB. */
static const struct {
	const char *name;
	test_body_t *body;
	int blocks;
} sized[] = {{"bcast", bcast, 0},
	     {"allreduce", allreduce, 0},
	     {"alltoall", alltoall, 1},
	     {"reduce", reduce, 0},
	     {"allgather", allgather, 1},
	     {"gather", gather, 1},
	     {"scatter", scatter, 1},
	     {"gatherv", gatherv, 1},
	     {"scatterv", scatterv, 1},
	     {"allgatherv", allgatherv, 1},
	     {"alltoallv", alltoallv, 1},
	     {"reduce_scatter", reduce_scatter, 1},
	     {"scan", scan, 0}};

/* bytes: 0: several sizes */
static void measure_sizes(const char *name, int bytes)
{
	const int sizes[] = {8, 1024, 65536, BIG};
	for (size_t k = 0; k < sizeof(sized) / sizeof(sized[0]); k++) {
		if (strcmp(name, sized[k].name))
			continue;
		for (int i = 0; !bytes && i < 4 - sized[k].blocks; i++)
			report(name, sizes[i], per_unit(sized[k].body, sizes[i]) * 1e6, "us");
		if (bytes > 0 && bytes <= BIG)
			report(name, bytes, per_unit(sized[k].body, bytes) * 1e6, "us");
	}
}

static void deal(int nodes)
{
	int each = size / (nodes > 0 && nodes <= size ? nodes : 1);
	MPI_Comm_split(MPI_COMM_WORLD, 0, rank % each, &all);
	MPI_Comm_rank(all, &rank);
}

static void measure(char *name)
{
	char *colon = strchr(name, ':');
	if (colon)
		*colon = '\0';
	if (!strcmp(name, "dealt"))
		deal(colon ? atoi(colon + 1) : 1);
	else if (!strcmp(name, "latency"))
		report(name, 8, per_unit(pingpong, 8) * 1e6 / 2, "us");
	else if (!strcmp(name, "pingpong"))
		report(name, BIG, 2.0 * BIG / per_unit(pingpong, BIG) / 1e9, "GB/s");
	else if (!strcmp(name, "bandwidth"))
		report(name, BIG, (double)WINDOW * BIG / per_unit(window, BIG) / 1e9, "GB/s");
	else if (!strcmp(name, "rate"))
		report(name, 8, WINDOW / per_unit(window, 8) / 1e6, "M/s");
	else if (!strcmp(name, "barrier"))
		report(name, 0, per_unit(barrier, 0) * 1e6, "us");
	else
		measure_sizes(name, colon ? atoi(colon + 1) : 0);
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	all = MPI_COMM_WORLD;
	MPI_Comm_rank(all, &rank);
	MPI_Comm_size(all, &size);
	if (size > RANKS_MOST)
		MPI_Abort(all, 1);
	budget = argc > 1 ? atof(argv[1]) : 0.2;
	out = malloc((size_t)BIG * (size_t)size);
	in = malloc((size_t)BIG * (size_t)size);
	/* zeroes that nobody has written are all one page, read from the first cache */
	memset(out, 1, (size_t)BIG * (size_t)size);
	memset(in, 2, (size_t)BIG * (size_t)size);
	for (int i = 2; i < argc; i++)
		measure(argv[i]);
	MPI_Finalize();
	free(out);
	free(in);
	return 0;
}
