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
	MPI_Info hardware = MPI_INFO_NULL;
	MPI_Datatype pair = MPI_DATATYPE_NULL;
	MPI_Request request = MPI_REQUEST_NULL;
	int counts[2] = {0, 0}, flag = -7;
	MPI_Datatype types[2] = {MPI_INT, MPI_INT};

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (argc > 1 && strcmp(argv[1], "return") == 0)
		MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	refused(MPI_Get_hw_resource_info(&hardware));
	refused(MPI_Request_get_status_all(1, &request, &flag, MPI_STATUSES_IGNORE));
	refused(MPI_Type_get_value_index(MPI_INT, MPI_DOUBLE, &pair));
	refused(MPI_Alltoallw_init(NULL, counts, counts, types, NULL, counts, counts, types,
				   MPI_COMM_WORLD, MPI_INFO_NULL, &request));
	if (hardware != MPI_INFO_NULL || flag != -7 || pair != MPI_DATATYPE_NULL ||
	    request != MPI_REQUEST_NULL)
		printf("an output argument was changed\n");
	MPI_Finalize();
	return 0;
}
