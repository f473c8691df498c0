/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions of MPI-4 and 5 that this version does not have, for the standard's ABI: unsupported
 * return|fatal */
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
	MPI_Session session = MPI_SESSION_NULL;
	MPI_Comm other = MPI_COMM_NULL;
	char buffer[100] = "buffer";
	int size = 100;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (argc > 1 && strcmp(argv[1], "return") == 0)
		MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	refused(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
	refused(MPI_Comm_attach_buffer(MPI_COMM_WORLD, buffer, size));
	refused(MPI_Comm_flush_buffer(MPI_COMM_WORLD));
	refused(MPI_Comm_create_from_group(MPI_GROUP_EMPTY, "tag", MPI_INFO_NULL, MPI_ERRORS_RETURN,
					   &other));
	if (other != MPI_COMM_NULL || session != MPI_SESSION_NULL || strcmp(buffer, "buffer") != 0)
		printf("an output argument was changed\n");
	MPI_Finalize();
	return 0;
}
