// SPDX-License-Identifier: BSD-3-Clause
/* Two halves of a world that meet at a port, under a published name; and what is refused. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(int good, const char *what)
{
	if (good)
		return;
	printf("WRONG: %s\n", what);
	MPI_Abort(MPI_COMM_WORLD, 3);
}

static void swap(MPI_Comm inter, int mine, int wanted)
{
	int rank, got;
	MPI_Comm_rank(inter, &rank);
	MPI_Sendrecv(&mine, 1, MPI_INT, rank, 1, &got, 1, MPI_INT, rank, 1, inter, MPI_STATUS_IGNORE);
	check(got == wanted, "what the other side has sent");
}

static int class_of(int code)
{
	int class;
	MPI_Error_class(code, &class);
	return class;
}

static void refusals(void)
{
	char port[MPI_MAX_PORT_NAME];
	MPI_Comm none;
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	check(class_of(MPI_Comm_connect("nonsense", MPI_INFO_NULL, 0, MPI_COMM_SELF, &none)) ==
		  MPI_ERR_PORT && none == MPI_COMM_NULL, "a port that is none");
	check(class_of(MPI_Lookup_name("nobody", MPI_INFO_NULL, port)) == MPI_ERR_NAME, "no such name");
	check(class_of(MPI_Unpublish_name("nobody", MPI_INFO_NULL, "x")) == MPI_ERR_SERVICE, "not published");
	check(class_of(MPI_Comm_spawn("/no/such/program", MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0,
				      MPI_COMM_SELF, &none, MPI_ERRCODES_IGNORE)) == MPI_ERR_SPAWN,
	      "no such program");
	check(class_of(MPI_Comm_spawn("/bin/true", MPI_ARGV_NULL, 1000, MPI_INFO_NULL, 0,
				      MPI_COMM_SELF, &none, MPI_ERRCODES_IGNORE)) == MPI_ERR_SPAWN,
	      "more than are in reserve");
}

/* Whoever connects to a port that is closed, or waits in one when it closes, is told. */
static void closed(int rank)
{
	char ports[2][MPI_MAX_PORT_NAME] = {"", ""};
	MPI_Comm none;
	if (rank == 0) {
		MPI_Open_port(MPI_INFO_NULL, ports[0]);
		MPI_Close_port(ports[0]);
		MPI_Open_port(MPI_INFO_NULL, ports[1]);
	}
	MPI_Bcast(ports, (int)sizeof(ports), MPI_CHAR, 0, MPI_COMM_WORLD);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	for (int i = 0; i < 2; i++) {
		if (rank == 0 && i == 1)
			MPI_Close_port(ports[1]);
		if (rank == 1)
			check(class_of(MPI_Comm_connect(ports[i], MPI_INFO_NULL, 0, MPI_COMM_SELF, &none)) ==
				  MPI_ERR_PORT && none == MPI_COMM_NULL, "a closed port");
		MPI_Barrier(MPI_COMM_WORLD);
	}
}

int main(int argc, char **argv)
{
	MPI_Comm half, inter;
	char port[MPI_MAX_PORT_NAME] = "", found[MPI_MAX_PORT_NAME] = "";
	int rank, rounds = argc > 1 ? atoi(argv[1]) : 20;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
	if (rank == 0) {
		MPI_Open_port(MPI_INFO_NULL, port);
		MPI_Publish_name("a service", MPI_INFO_NULL, port);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	for (int i = 0; i < rounds; i++) {
		if (rank % 2 == 0) {
			MPI_Comm_accept(port, MPI_INFO_NULL, 0, half, &inter);
		} else {
			MPI_Lookup_name("a service", MPI_INFO_NULL, found);
			MPI_Comm_connect(found, MPI_INFO_NULL, 0, half, &inter);
		}
		swap(inter, rank * 100 + i, (rank ^ 1) * 100 + i);
		MPI_Comm_disconnect(&inter);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0) {
		MPI_Unpublish_name("a service", MPI_INFO_NULL, port);
		MPI_Close_port(port);
	}
	closed(rank);
	if (rank == 0) {
		refusals();
		printf("met %d times\n", rounds);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Finalize();
	return 0;
}
