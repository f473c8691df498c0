/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of its own where Hale would like to have the node's segment, from before MPI_Init on, with
 * numbers in it that are summed up over the ranks. Arguments: steps, milliseconds of each. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { BYTES = 1 << 20, NUMBERS = BYTES / sizeof(long) };

int main(int argc, char **argv)
{
	void *const place = (void *)0x610000000000ul;
	long *n = mmap(place, BYTES, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	long sum = 0, all = 0;
	int rank, steps = atoi(argv[1]);

	if (n != place) {
		perror("mmap");
		return 2;
	}
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	for (int i = 0; i < steps; i++) {
		n[i % NUMBERS] += i * (rank + 1);
		sum += n[i % NUMBERS];
		MPI_Allreduce(&sum, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
		if (rank == 0)
			printf("step %d %ld\n", i, all);
		usleep(1000 * (useconds_t)atoi(argv[2]));
	}
	MPI_Finalize();
	return 0;
}
