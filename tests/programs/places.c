/* Where ranks are, as MPI tells it, in messages: replicas of a rank on several nodes have to be told
 * the same. Argument: rounds. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int size_of(MPI_Comm c)
{
	int n = 0, one = 1;

	if (c == MPI_COMM_NULL)
		return 0;
	MPI_Allreduce(&one, &n, 1, MPI_INT, MPI_SUM, c);
	return n;
}

static MPI_Comm parts(int type, const char *resource)
{
	MPI_Comm c;
	MPI_Info info;

	MPI_Info_create(&info);
	if (resource)
		MPI_Info_set(info, "mpi_hw_resource_type", resource);
	MPI_Comm_split_type(MPI_COMM_WORLD, type, 0, info, &c);
	MPI_Info_free(&info);
	return c;
}

/* All ranks' texts, in one line. */
static void show(const char *what, int rank, int n, char *mine)
{
	char *all = calloc((size_t)n, MPI_MAX_PROCESSOR_NAME);

	MPI_Allgather(mine, MPI_MAX_PROCESSOR_NAME, MPI_CHAR, all, MPI_MAX_PROCESSOR_NAME, MPI_CHAR,
		      MPI_COMM_WORLD);
	for (int i = 0; rank == 0 && what && i < n; i++)
		printf("%s%s", i ? " " : what, all + (size_t)i * MPI_MAX_PROCESSOR_NAME);
	if (rank == 0 && what)
		printf("\n");
	free(all);
}

int main(int argc, char **argv)
{
	char name[MPI_MAX_PROCESSOR_NAME] = "", host[MPI_MAX_PROCESSOR_NAME] = "";
	int rank, n, length, there, rounds = argc > 1 ? atoi(argv[1]) : 10;
	double sum = 0;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &n);
	MPI_Get_processor_name(name, &length);
	show("names: ", rank, n, name);
	MPI_Info_get(MPI_INFO_ENV, "host", MPI_MAX_PROCESSOR_NAME - 1, host, &there);
	show(NULL, rank, n, host);

	MPI_Comm node = parts(MPI_COMM_TYPE_SHARED, NULL);
	int sizes[] = {size_of(node), size_of(parts(MPI_COMM_TYPE_HW_GUIDED, "mpi_shared_memory")),
		       size_of(parts(MPI_COMM_TYPE_HW_UNGUIDED, NULL))};
	if (rank == 0)
		printf("members: %d %d %d\n", sizes[0], sizes[1], sizes[2]);
	fflush(stdout);
	for (int i = 0; i < rounds; i++) {
		double x = rank + i, here, all;

		MPI_Allreduce(&x, &here, 1, MPI_DOUBLE, MPI_SUM, node);
		MPI_Allreduce(&here, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
		sum += all;
		usleep(1000);
	}
	/* whoever leads now may live elsewhere */
	MPI_Get_processor_name(name, &length);
	show(NULL, rank, n, name);
	node = parts(MPI_COMM_TYPE_SHARED, NULL);
	size_of(node);
	if (rank == 0)
		printf("sum %g\n", sum);
	MPI_Finalize();
	return 0;
}
