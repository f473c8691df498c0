/* SPDX-License-Identifier: BSD-3-Clause */
/* Four OpenMP threads a rank; a result that depends on every message, every collective and every
 * thread's work; and two places where it can be held, for a checkpoint to fall right there:
 *   collective   every rank but 0 is inside MPI_Allreduce, rank 0 has not come yet
 *   rendezvous   every rank has a 4 MiB send under way that nobody has received, and its threads
 *                are in the middle of a parallel region
 * A place is held while the file hold.PLACE exists; at.PLACE.RANK says that a rank is there. */
#include <fcntl.h>
#include <inttypes.h>
#include <mpi.h>
#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { STEPS = 40, HOLD_AT = 20, THREADS = 4, BIG = 4 << 20, WORK = 20000 };

static int rank, size;

static void say_at(const char *place)
{
	char name[64];
	snprintf(name, sizeof(name), "at.%s.%d", place, rank);
	int fd = open(name, O_CREAT | O_WRONLY, 0600);
	if (fd >= 0)
		close(fd);
}

static int held(const char *place)
{
	char name[64];
	snprintf(name, sizeof(name), "hold.%s", place);
	return access(name, F_OK) == 0;
}

static uint64_t mix(uint64_t x)
{
	x ^= x >> 33;
	x *= 0xff51afd7ed558ccdull;
	x ^= x >> 29;
	return x;
}

/* Each thread folds its part; threads have private state across steps by threadprivate data. */
static uint64_t thread_state;
#pragma omp threadprivate(thread_state)

static uint64_t compute(uint64_t seed, const char *place)
{
	uint64_t part[THREADS];
#pragma omp parallel num_threads(THREADS)
	{
		int t = omp_get_thread_num();
		uint64_t v = mix(seed + (uint64_t)t) + thread_state;
		for (int i = 0; i < WORK; i++)
			v = mix(v + (uint64_t)i);
		if (place) {
			if (t == 0)
				say_at(place);
			while (held(place))
				usleep(t == 0 ? 1000 : 200);
#pragma omp barrier
		}
		thread_state = v;
		part[t] = v;
	}
	uint64_t sum = 0;
	for (int t = 0; t < THREADS; t++)
		sum = mix(sum + part[t]);
	return sum;
}

static uint64_t fold(const uint64_t *data, size_t n)
{
	uint64_t v = 0;
	for (size_t i = 0; i < n; i++)
		v = mix(v + data[i]);
	return v;
}

/* Everybody to the right, a message far above every eager limit. */
static uint64_t exchange(uint64_t seed, const char *place)
{
	size_t n = BIG / sizeof(uint64_t);
	uint64_t *out = malloc(BIG), *in = malloc(BIG);
	for (size_t i = 0; i < n; i++)
		out[i] = mix(seed + i);
	MPI_Request req[2];
	MPI_Isend(out, (int)n, MPI_UINT64_T, (rank + 1) % size, 7, MPI_COMM_WORLD, &req[0]);
	uint64_t mine = compute(seed, place);
	MPI_Irecv(in, (int)n, MPI_UINT64_T, (rank + size - 1) % size, 7, MPI_COMM_WORLD, &req[1]);
	MPI_Waitall(2, req, MPI_STATUSES_IGNORE);
	uint64_t v = mix(mine + fold(in, n));
	free(out);
	free(in);
	return v;
}

static uint64_t reduce_all(uint64_t v, int hold)
{
	uint64_t in[64], out[64];
	for (int i = 0; i < 64; i++)
		in[i] = mix(v + (uint64_t)i);
	if (hold) {
		say_at("collective");
		while (rank == 0 && held("collective"))
			usleep(1000);
	}
	MPI_Allreduce(in, out, 64, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
	MPI_Bcast(in, 64, MPI_UINT64_T, size - 1, MPI_COMM_WORLD);
	return fold(out, 64) ^ fold(in, 64);
}

int main(int argc, char **argv)
{
	int provided;
	MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	uint64_t v = mix((uint64_t)rank + 1);
	for (int step = 0; step < STEPS; step++) {
		v = compute(v, NULL);
		v = exchange(v, step == HOLD_AT ? "rendezvous" : NULL);
		v = reduce_all(v, step == HOLD_AT) + (uint64_t)rank;
		if (rank == 0 && step % 10 == 0)
			printf("step %d %016" PRIx64 "\n", step, v);
	}
	uint64_t all[256];
	MPI_Gather(&v, 1, MPI_UINT64_T, all, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
	for (int r = 0; rank == 0 && r < size; r++)
		printf("rank %d %016" PRIx64 "\n", r, all[r]);
	MPI_Finalize();
	return 0;
}
