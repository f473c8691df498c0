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
	int sources = -7, events = -7, of_category = -7;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (argc > 1 && strcmp(argv[1], "return") == 0)
		MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	refused(MPI_Register_datarep_c("of the program's own", NULL, NULL, NULL, NULL));
	refused(MPI_T_source_get_num(&sources));
	refused(MPI_T_event_get_num(&events));
	refused(MPI_T_category_get_num_events(0, &of_category));
	if (sources != -7 || events != -7 || of_category != -7)
		printf("an output argument was changed\n");
	MPI_Finalize();
	return 0;
}
