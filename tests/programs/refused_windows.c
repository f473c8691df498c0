// SPDX-License-Identifier: BSD-3-Clause
/* refused_windows [far]: as many windows as can be refused leave room for one more. far: what one
 * rank does wrong with the other's memory is told to that rank, and not to the other. */
#include <mpi.h>
#include <stdio.h>

static int wrong;

static void check(const char *what, int got, int wanted)
{
	int class = -1;

	MPI_Error_class(got, &class);
	if (class != wanted) {
		wrong++;
		printf("%s gave class %d instead of %d\n", what, class, wanted);
	}
}

static void refused(int far)
{
	MPI_Aint much = far ? 8 : (MPI_Aint)1 << 62;
	int *base;
	MPI_Win w;

	for (int i = 0; i < 1100; i++)
		check("a shared window that can't be",
		      MPI_Win_allocate_shared(much, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &w),
		      far ? MPI_ERR_RMA_SHARED : MPI_ERR_NO_MEM);
	check("a window", MPI_Win_allocate(8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &w),
	      MPI_SUCCESS);
	MPI_Win_free(&w);
}

static void whose(int rank)
{
	static long mine[4];
	long word = 7;
	MPI_Aint at, theirs;
	MPI_Win w;

	MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &w);
	MPI_Win_set_errhandler(w, MPI_ERRORS_RETURN);
	MPI_Win_attach(w, mine, sizeof(mine));
	MPI_Get_address(mine, &at);
	MPI_Sendrecv(&at, 1, MPI_AINT, !rank, 0, &theirs, 1, MPI_AINT, !rank, 0, MPI_COMM_WORLD,
		     MPI_STATUS_IGNORE);
	MPI_Win_lock_all(0, w);
	if (rank == 0)
		MPI_Put(&word, 1, MPI_LONG, 1, theirs + (1 << 20), 1, MPI_LONG, w);
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 1) {
		MPI_Put(&word, 1, MPI_LONG, 0, theirs, 1, MPI_LONG, w);
		check("flush of a right put", MPI_Win_flush(0, w), MPI_SUCCESS);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0) {
		check("flush of a wrong put", MPI_Win_flush(1, w), MPI_ERR_RMA_RANGE);
		check("the next one", MPI_Win_flush(1, w), MPI_SUCCESS);
	}
	check("unlock", MPI_Win_unlock_all(w), MPI_SUCCESS);
	MPI_Win_free(&w);
}

int main(int argc, char **argv)
{
	int rank, all;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	refused(argc > 1);
	if (argc > 1)
		whose(rank);
	MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
	if (rank == 0)
		printf("%d wrong\n", all);
	MPI_Finalize();
	return 0;
}
