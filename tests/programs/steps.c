/* SPDX-License-Identifier: BSD-3-Clause */
/* A program as many are: steps of computing and exchanging, a line a step, an appended log and a
 * rewritten state file for each rank. All of it is the same however often the job rolls back.
 *
 * steps N [MS [MIB]]     N steps (0: until the file "stop" exists, -1: the same, in a job with
 *                        replicas), MS milliseconds of pause in each, MIB of memory that is all
 *                        written at the start and partly later
 */
#include <fcntl.h>
#include <inttypes.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, size;

static uint64_t mix(uint64_t x)
{
	x ^= x >> 33;
	x *= 0xff51afd7ed558ccdull;
	x ^= x >> 29;
	return x;
}

static void write_files(FILE *log, long step, uint64_t v)
{
	char name[64];
	fprintf(log, "step %ld %016" PRIx64 "\n", step, v);
	fflush(log);
	snprintf(name, sizeof(name), "state.%d", rank);
	FILE *state = fopen(name, "w");
	if (!state)
		return;
	/* longer and shorter by turns, so that a stale tail would show */
	for (long i = 0; i <= step % 5; i++)
		fprintf(state, "%ld %016" PRIx64 "\n", step, v);
	fclose(state);
}

static uint64_t exchange(uint64_t v, uint64_t *memory, size_t words, long step)
{
	uint64_t in[1024], out[1024];
	for (size_t i = 0; i < 1024; i++)
		out[i] = mix(v + i);
	MPI_Sendrecv(out, 1024, MPI_UINT64_T, (rank + 1) % size, 1, in, 1024, MPI_UINT64_T,
		     (rank + size - 1) % size, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	for (size_t i = 0; i < 1024; i++)
		v = mix(v + in[i]);
	/* one page in a hundred changes */
	for (size_t i = (size_t)(step % 100) * 512; i < words; i += 51200)
		v = mix(v + (memory[i] = mix(memory[i] + v)));
	return v;
}

/* All replicas of the rank are told what the leader of them has seen: it is an open that truncates.
 */
static int opens_stop(void)
{
	int fd = open("stop", O_WRONLY | O_TRUNC);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* Every rank has the same answer, or one would leave a step earlier. */
static int wants_to_stop(int replicas)
{
	int stop = rank == 0 && (replicas ? opens_stop() : access("stop", F_OK) == 0);
	MPI_Bcast(&stop, 1, MPI_INT, 0, MPI_COMM_WORLD);
	return stop;
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	long steps = argc > 1 ? atol(argv[1]) : 100, ms = argc > 2 ? atol(argv[2]) : 0;
	size_t words = (argc > 3 ? (size_t)atol(argv[3]) : 1) << 17;
	uint64_t *memory = malloc(words * sizeof(*memory));
	for (size_t i = 0; i < words; i++)
		memory[i] = mix(i + (uint64_t)rank);
	char name[64];
	snprintf(name, sizeof(name), "log.%d", rank);
	FILE *log = fopen(name, "a");
	setvbuf(stdout, NULL, _IOLBF, 0);
	uint64_t v = (uint64_t)rank, sum = 0;
	for (long step = 0; steps <= 0 || step < steps; step++) {
		v = exchange(v, memory, words, step);
		MPI_Allreduce(&v, &sum, 1, MPI_UINT64_T, MPI_BXOR, MPI_COMM_WORLD);
		write_files(log, step, v);
		printf("rank %d step %ld %016" PRIx64 "\n", rank, step, sum);
		if (ms)
			usleep((useconds_t)ms * 1000);
		if (steps <= 0 && wants_to_stop(steps < 0))
			break;
	}
	if (rank == 0)
		printf("done %016" PRIx64 "\n", sum);
	fclose(log);
	free(memory);
	MPI_Finalize();
	return 0;
}
