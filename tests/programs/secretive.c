/* SPDX-License-Identifier: BSD-3-Clause */
/* Steps as those of steps.c, of a program whose memory is full of a text that nobody else is to
 * read.
 *
 * secretive MIB [MS]     until the file "stop" exists
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	int rank, stop = 0;
	size_t bytes = (argc > 1 ? (size_t)atol(argv[1]) : 4) << 20;
	long ms = argc > 2 ? atol(argv[2]) : 20;
	char *memory = malloc(bytes), name[8] = "attack ", when[10] = "at dawn! ";

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	for (size_t i = 0; i + 16 <= bytes; i += 16) {
		memcpy(memory + i, name, 7);
		memcpy(memory + i + 7, when, 9);
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (long step = 0; !stop; step++) {
		unsigned long sum = 0;

		/* one page in 64 is other memory, with the same in it */
		for (size_t i = (size_t)(step % 64) << 12; i < bytes; i += 64 << 12)
			sum += (unsigned long)(memory[i] ^= 32) & 95;
		printf("rank %d step %ld %016lx\n", rank, step, sum);
		usleep((useconds_t)ms * 1000);
		stop = rank == 0 && access("stop", F_OK) == 0;
		MPI_Bcast(&stop, 1, MPI_INT, 0, MPI_COMM_WORLD);
	}
	if (rank == 0)
		printf("done %016lx\n", 0ul);
	free(memory);
	MPI_Finalize();
	return 0;
}
