/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions of MPI-4 and 5 that this version does not have, for the standard's ABI, and what a tool
 * finds that looks for events: unsupported return|fatal */
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

static const char *answer(int code)
{
	return code == MPI_SUCCESS		  ? "success"
	       : code == MPI_T_ERR_INVALID_INDEX  ? "no such index"
	       : code == MPI_T_ERR_INVALID_NAME	  ? "no such name"
	       : code == MPI_T_ERR_INVALID_HANDLE ? "no such handle"
						  : "another error";
}

/* A tool enumerates sources and events: there are none, which is no error. */
static void tool(void)
{
	MPI_T_event_registration event = NULL;
	MPI_T_event_instance instance = NULL;
	MPI_Datatype types[1];
	MPI_Count ticks;
	int provided, sources = -7, events = -7, index = -7, n = 1;

	MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
	printf("sources: %s, ", answer(MPI_T_source_get_num(&sources)));
	printf("events: %s, ", answer(MPI_T_event_get_num(&events)));
	printf("%d and %d\n", sources, events);
	printf("of a category: %s, ", answer(MPI_T_category_get_num_events(0, &index)));
	printf("its events: %s\n", answer(MPI_T_category_get_events(0, 1, &index)));
	printf("a source: %s, ", answer(MPI_T_source_get_timestamp(0, &ticks)));
	printf("a name: %s, ", answer(MPI_T_event_get_index("none", &index)));
	printf("an event: %s, ", answer(MPI_T_event_get_info(0, NULL, NULL, NULL, types, NULL, &n,
							     NULL, NULL, NULL, NULL, NULL)));
	printf("to hold: %s\n", answer(MPI_T_event_handle_alloc(0, NULL, MPI_INFO_NULL, &event)));
	printf("a handle: %s, ", answer(MPI_T_event_handle_free(event, NULL, NULL)));
	printf("an instance: %s\n", answer(MPI_T_event_read(instance, 0, &n)));
	if (index != -7)
		printf("an output argument was changed\n");
	MPI_T_finalize();
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (argc > 1 && strcmp(argv[1], "return") == 0)
		MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	if (rank == 0)
		tool();
	refused(MPI_Register_datarep_c("of the program's own", NULL, NULL, NULL, NULL));
	MPI_Finalize();
	return 0;
}
