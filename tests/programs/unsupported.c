/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions that this version does not have: unsupported return|fatal */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

static int rank;

static void refused(int code)
{
	char text[MPI_MAX_ERROR_STRING];
	int n;

	MPI_Error_string(code, text, &n);
	if (rank == 0)
		printf("refused: %.29s\n", text);
}

int main(int argc, char **argv)
{
	int word = 0;
	MPI_Win win = MPI_WIN_NULL;
	MPI_File file = MPI_FILE_NULL;
	MPI_Comm other = MPI_COMM_NULL;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (argc > 1 && strcmp(argv[1], "return") == 0)
		MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	refused(MPI_Win_create(&word, sizeof(word), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
	refused(
	    MPI_File_open(MPI_COMM_WORLD, "no-such-file", MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
	refused(MPI_Comm_accept("port", MPI_INFO_NULL, 0, MPI_COMM_WORLD, &other));
	refused(MPI_Win_fence(0, win));
	if (win != MPI_WIN_NULL || file != MPI_FILE_NULL || other != MPI_COMM_NULL)
		printf("an output argument was changed\n");
	MPI_Finalize();
	return 0;
}
