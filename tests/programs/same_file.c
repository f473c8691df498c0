// SPDX-License-Identifier: BSD-3-Clause
/* same_file STEPS [child]: each rank, or a child of each, writes records into its own places of one
 * file, and lines to the end of another one, by system calls of its own. Rank 0, which has more
 * memory and so a longer checkpoint, counts at the end what is missing or twice. */
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RANKS_MAX = 8, MORE = 100 << 20, FIRST = 1000000 };

static long records_missing(int file, long steps, int ranks)
{
	long missing = 0;

	for (long i = 0; i < steps * ranks; i++) {
		long record = 0;
		missing += pread(file, &record, sizeof(record), i * (long)sizeof(record)) !=
			       (ssize_t)sizeof(record) ||
			   record != FIRST + i / ranks;
	}
	return missing;
}

static void lines_count(const char *path, long steps, int ranks, long *missing, long *twice)
{
	char *seen = calloc((size_t)steps, RANKS_MAX);
	FILE *f = fopen(path, "r");
	int rank;
	long step;

	while (fscanf(f, "%d %ld\n", &rank, &step) == 2)
		if (rank >= 0 && rank < ranks && step >= 0 && step < steps)
			*twice += seen[step * RANKS_MAX + rank]++ > 0;
	for (long s = 0; s < steps; s++)
		for (int r = 0; r < ranks; r++)
			*missing += !seen[s * RANKS_MAX + r];
	fclose(f);
	free(seen);
}

static void write_all(long steps, int rank, int ranks, int meets)
{
	int file = open("records", O_CREAT | O_RDWR, 0644);
	int lines = open("lines", O_CREAT | O_WRONLY | O_APPEND, 0644);

	for (long s = 0; s < steps; s++) {
		long record = FIRST + s;
		char line[40];
		int n = snprintf(line, sizeof(line), "%d %ld\n", rank, s);

		if (pwrite(file, &record, sizeof(record),
			   (s * ranks + rank) * (long)sizeof(record)) != sizeof(record) ||
		    write(lines, line, (size_t)n) != n)
			abort();
		usleep(1000);
		if (meets && s % 500 == 0)
			MPI_Barrier(MPI_COMM_WORLD);
	}
}

/* Nobody else has these files open. */
static pid_t child_begin(long steps, int rank, int ranks)
{
	pid_t child = fork();

	if (child == 0) {
		write_all(steps, rank, ranks, 0);
		_exit(0);
	}
	return child;
}

static void child_wait(pid_t child)
{
	int status = -1;

	if (waitpid(child, &status, 0) != child || status != 0)
		abort();
}

int main(int argc, char **argv)
{
	long steps = atol(argv[1]), missing = 0, twice = 0;
	int rank, ranks;
	pid_t child = 0;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (argc > 2)
		child = child_begin(steps, rank, ranks);
	if (rank == 0)
		memset(malloc(MORE), 1, MORE);
	if (child)
		child_wait(child);
	else
		write_all(steps, rank, ranks, 1);
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0) {
		int file = open("records", O_RDONLY);
		lines_count("lines", steps, ranks, &missing, &twice);
		printf("%ld records missing, %ld lines missing, %ld twice\n",
		       records_missing(file, steps, ranks), missing, twice);
	}
	MPI_Finalize();
	return 0;
}
