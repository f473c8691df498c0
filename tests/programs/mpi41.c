// SPDX-License-Identifier: BSD-3-Clause
/* Calls of MPI-4.1: the status of several requests that stay as they are; types of values with an
 * index; resources. Prints "bad: 0", or the lines that are wrong. */
#include <mpi.h>
#include <stdio.h>

static int bad;
#define CHECK(x)                                                                                   \
	do {                                                                                       \
		if (!(x)) {                                                                        \
			printf("line %d: %s\n", __LINE__, #x);                                    \
			bad++;                                                                     \
		}                                                                                  \
	} while (0)

static void requests(void)
{
	MPI_Request r[3];
	MPI_Status s[3], one;
	int in[2], out = 5, flag, index, n, indices[3];
	MPI_Irecv(&in[0], 1, MPI_INT, 0, 10, MPI_COMM_SELF, &r[0]);
	r[1] = MPI_REQUEST_NULL;
	MPI_Irecv(&in[1], 1, MPI_INT, 0, 11, MPI_COMM_SELF, &r[2]);
	MPI_Request_get_status_any(3, r, &index, &flag, &one);
	CHECK(!flag && index == MPI_UNDEFINED);
	MPI_Send(&out, 1, MPI_INT, 0, 11, MPI_COMM_SELF);
	do
		MPI_Request_get_status_any(3, r, &index, &flag, &one);
	while (!flag);
	CHECK(index == 2 && one.MPI_TAG == 11 && r[2] != MPI_REQUEST_NULL);
	MPI_Request_get_status_all(3, r, &flag, s);
	CHECK(!flag);
	MPI_Request_get_status_some(3, r, &n, indices, s);
	CHECK(n == 1 && indices[0] == 2 && s[0].MPI_TAG == 11);
	MPI_Send(&out, 1, MPI_INT, 0, 10, MPI_COMM_SELF);
	do
		MPI_Request_get_status_all(3, r, &flag, s);
	while (!flag);
	CHECK(s[0].MPI_TAG == 10 && s[1].MPI_TAG == MPI_ANY_TAG && s[2].MPI_TAG == 11);
	MPI_Request_get_status_some(3, r, &n, indices, MPI_STATUSES_IGNORE);
	CHECK(n == 2 && indices[0] == 0 && indices[1] == 2);
	MPI_Waitall(3, r, MPI_STATUSES_IGNORE);
	MPI_Request_get_status_some(3, r, &n, indices, s);
	CHECK(n == MPI_UNDEFINED);
	MPI_Request_get_status_any(3, r, &index, &flag, &one);
	CHECK(flag && index == MPI_UNDEFINED && one.MPI_SOURCE == MPI_ANY_SOURCE);
}

int main(int argc, char **argv)
{
	MPI_Datatype pair;
	MPI_Info info;
	char value[20];
	int flag, length = sizeof(value);
	MPI_Init(&argc, &argv);
	requests();
	MPI_Type_get_value_index(MPI_DOUBLE, MPI_INT, &pair);
	CHECK(pair == MPI_DOUBLE_INT);
	MPI_Type_get_value_index(MPI_INT, MPI_INT, &pair);
	CHECK(pair == MPI_2INT);
	MPI_Type_get_value_index(MPI_CHAR, MPI_INT, &pair);
	CHECK(pair == MPI_DATATYPE_NULL);
	MPI_Get_hw_resource_info(&info);
	MPI_Info_get_string(info, "mpi_shared_memory", &length, value, &flag);
	CHECK(flag && value[0] == 't');
	MPI_Info_free(&info);
	printf("bad: %d\n", bad);
	MPI_Finalize();
	return 0;
}
