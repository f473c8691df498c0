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
	MPI_Comm other = MPI_COMM_NULL;
	MPI_Request request = MPI_REQUEST_NULL;
	char port[MPI_MAX_PORT_NAME] = "port";

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (argc > 1 && strcmp(argv[1], "return") == 0)
		MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	refused(MPI_Comm_spawn("program", MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD,
			       &other, MPI_ERRCODES_IGNORE));
	refused(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &other));
	refused(MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &other));
	refused(MPI_Comm_join(0, &other));
	if (other != MPI_COMM_NULL || request != MPI_REQUEST_NULL || strcmp(port, "port") != 0)
		printf("an output argument was changed\n");
	MPI_Finalize();
	return 0;
}
