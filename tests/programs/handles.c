/* SPDX-License-Identifier: BSD-3-Clause */
/* Fortran integers of handles: the predefined ones are part of the binary interface (mpif.h names
 * them), others must lead there and back. The same output under every MPI of that interface. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

static int bad;

static void check(const char *what, int good)
{
	if (!good) {
		bad++;
		printf("%s: no\n", what);
	}
}

static void predefined(void)
{
	printf("comm %d %d %d\n", MPI_Comm_c2f(MPI_COMM_WORLD), MPI_Comm_c2f(MPI_COMM_SELF),
	       MPI_Comm_c2f(MPI_COMM_NULL));
	printf("group %d %d\n", MPI_Group_c2f(MPI_GROUP_NULL), MPI_Group_c2f(MPI_GROUP_EMPTY));
	printf("type %d %d %d %d %d %d %d %d\n", MPI_Type_c2f(MPI_DATATYPE_NULL),
	       MPI_Type_c2f(MPI_BYTE), MPI_Type_c2f(MPI_INTEGER),
	       MPI_Type_c2f(MPI_DOUBLE_PRECISION), MPI_Type_c2f(MPI_2INTEGER),
	       MPI_Type_c2f(MPI_INT), MPI_Type_c2f(MPI_DOUBLE), MPI_Type_c2f(MPI_AINT));
	printf("op %d %d %d %d\n", MPI_Op_c2f(MPI_OP_NULL), MPI_Op_c2f(MPI_MAX),
	       MPI_Op_c2f(MPI_SUM), MPI_Op_c2f(MPI_NO_OP));
	printf("others %d %d %d %d %d %d %d %d %d\n", MPI_Request_c2f(MPI_REQUEST_NULL),
	       MPI_Message_c2f(MPI_MESSAGE_NULL), MPI_Message_c2f(MPI_MESSAGE_NO_PROC),
	       MPI_Errhandler_c2f(MPI_ERRHANDLER_NULL), MPI_Errhandler_c2f(MPI_ERRORS_ARE_FATAL),
	       MPI_Errhandler_c2f(MPI_ERRORS_RETURN), MPI_Info_c2f(MPI_INFO_NULL),
	       MPI_Win_c2f(MPI_WIN_NULL), MPI_File_c2f(MPI_FILE_NULL));
	check("world", MPI_Comm_f2c(0) == MPI_COMM_WORLD);
	check("double", MPI_Type_f2c(MPI_Type_c2f(MPI_DOUBLE)) == MPI_DOUBLE);
	check("sum", MPI_Op_f2c(MPI_Op_c2f(MPI_SUM)) == MPI_SUM);
	check("request null", MPI_Request_f2c(0) == MPI_REQUEST_NULL);
	check("message no proc",
	      MPI_Message_f2c(MPI_Message_c2f(MPI_MESSAGE_NO_PROC)) == MPI_MESSAGE_NO_PROC);
	printf("invalid %d %d %d %d\n", MPI_Comm_f2c(-1) == NULL, MPI_Comm_f2c(123456) == NULL,
	       MPI_Type_f2c(-7) == NULL, MPI_Request_f2c(1 << 30) == NULL);
}

static void dynamic(void)
{
	enum { MANY = 1000 };
	static MPI_Datatype types[MANY];
	static MPI_Fint index[MANY];
	MPI_Comm dup;
	MPI_Group world, one;
	MPI_Request request;
	MPI_Op op;
	int zero = 0, buf;

	for (int i = 0; i < MANY; i++) {
		MPI_Type_contiguous(i + 1, MPI_BYTE, &types[i]);
		index[i] = MPI_Type_c2f(types[i]);
		check("the same at the second time", MPI_Type_c2f(types[i]) == index[i]);
	}
	for (int i = 0; i < MANY; i++) {
		check("there and back", MPI_Type_f2c(index[i]) == types[i]);
		for (int j = 0; j < i; j += 97)
			check("different", index[i] != index[j]);
	}
	for (int i = 0; i < MANY; i += 2)
		MPI_Type_free(&types[i]);
	for (int i = 0; i < MANY; i += 2) {
		MPI_Type_contiguous(i + 5, MPI_BYTE, &types[i]);
		check("integers are used again", MPI_Type_c2f(types[i]) <= index[MANY - 1]);
	}
	for (int i = 0; i < MANY; i++) {
		check("still there and back", MPI_Type_f2c(MPI_Type_c2f(types[i])) == types[i]);
		MPI_Type_free(&types[i]);
	}
	MPI_Comm_dup(MPI_COMM_WORLD, &dup);
	MPI_Comm_group(MPI_COMM_WORLD, &world);
	MPI_Group_incl(world, 1, &zero, &one);
	MPI_Op_create((MPI_User_function *)(void (*)(void))dynamic, 1, &op);
	MPI_Recv_init(&buf, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, &request);
	check("comm", MPI_Comm_f2c(MPI_Comm_c2f(dup)) == dup);
	check("group", MPI_Group_f2c(MPI_Group_c2f(one)) == one);
	check("op", MPI_Op_f2c(MPI_Op_c2f(op)) == op);
	check("request", MPI_Request_f2c(MPI_Request_c2f(request)) == request);
	check("not null",
	      MPI_Request_c2f(request) > 0 && MPI_Op_c2f(op) > 0 && MPI_Comm_c2f(dup) > 2);
	MPI_Request_free(&request);
	MPI_Op_free(&op);
	MPI_Group_free(&one);
	MPI_Group_free(&world);
	MPI_Comm_free(&dup);
}

/* A Fortran program that waits for each of its requests must not use up integers. */
static void requests(void)
{
	MPI_Fint first = 0, last = 0;

	for (int i = 0; i < 1000; i++) {
		MPI_Request r;
		int buf = 0;
		MPI_Irecv(&buf, 1, MPI_INT, 0, 5, MPI_COMM_SELF, &r);
		last = MPI_Request_c2f(r);
		first = i ? first : last;
		MPI_Send(&i, 1, MPI_INT, 0, 5, MPI_COMM_SELF);
		MPI_Wait(&r, MPI_STATUS_IGNORE);
		check("received", buf == i);
	}
	check("integers of requests are used again", last <= first + 1);
}

static void statuses(void)
{
	MPI_Status a, b;
	MPI_Fint f[sizeof(MPI_Status) / sizeof(MPI_Fint)];

	memset(&a, 0, sizeof(a));
	a.MPI_SOURCE = 3;
	a.MPI_TAG = 4;
	a.MPI_ERROR = 5;
	MPI_Status_set_elements(&a, MPI_INT, 6);
	MPI_Status_c2f(&a, f);
	MPI_Status_f2c(f, &b);
	printf("status %d %d %d same %d\n", f[0], f[1], f[2], memcmp(&a, &b, sizeof(a)) == 0);
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	predefined();
	dynamic();
	requests();
	statuses();
	printf("bad: %d\n", bad);
	MPI_Finalize();
	return bad != 0;
}
