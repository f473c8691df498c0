/* SPDX-License-Identifier: BSD-3-Clause */
/* What statuses, flags, indices and error classes come out of each way to complete requests. Prints
 * all of it: the output must be the same under every MPI. Any number of ranks; rank 0 prints.
 * `status_rules strict` prints instead what the standard says and Open MPI 4.1 does not do: it
 * loses the truncation of messages to itself that find a posted receive, sends small buffered ones
 * without a buffer, and takes MPI_COMM_NULL's error handler for a null message. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size, handler_calls, handler_class;

static void handler(MPI_Comm *comm, int *code, ...)
{
	handler_calls++;
	MPI_Error_class(*code, &handler_class);
}

static const char *name_of_rank(int r)
{
	static char text[16];
	if (r == MPI_ANY_SOURCE)
		return "any";
	if (r == MPI_PROC_NULL)
		return "null";
	snprintf(text, sizeof(text), "%d", r);
	return text;
}

/* MPI_ERROR of single completions must be left as it was: 77. */
static void show(const char *what, int rc, const MPI_Status *st)
{
	int count, cancelled, cls;
	MPI_Error_class(rc, &cls);
	if (rank)
		return;
	printf("%-34s class %2d", what, cls);
	if (st) {
		MPI_Get_count(st, MPI_INT, &count);
		MPI_Test_cancelled(st, &cancelled);
		printf("  source %s tag %d error %d count %d cancelled %d",
		       name_of_rank(st->MPI_SOURCE), st->MPI_TAG, st->MPI_ERROR, count, cancelled);
	}
	printf("\n");
}

static void marked(MPI_Status *st, int n)
{
	memset(st, 0x55, sizeof(*st) * (size_t)n);
	for (int i = 0; i < n; i++)
		st[i].MPI_ERROR = 77;
}

static void null_requests(void)
{
	MPI_Request r[3] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
	MPI_Status st[3];
	int flag = -5, index = -5, count = -5, indices[3] = {-5, -5, -5};

	marked(st, 1);
	show("wait null", MPI_Wait(r, st), st);
	marked(st, 1);
	show("test null", MPI_Test(r, &flag, st), st);
	marked(st, 1);
	show("get_status null", MPI_Request_get_status(r[0], &flag, st), st);
	marked(st, 3);
	show("waitall null", MPI_Waitall(3, r, st), &st[2]);
	marked(st, 3);
	show("testall null", MPI_Testall(3, r, &flag, st), &st[1]);
	marked(st, 1);
	show("waitany null", MPI_Waitany(3, r, &index, st), st);
	if (!rank)
		printf("  flag %d index undefined %d\n", flag, index == MPI_UNDEFINED);
	marked(st, 1);
	flag = index = -5;
	show("testany null", MPI_Testany(3, r, &index, &flag, st), st);
	if (!rank)
		printf("  flag %d index undefined %d\n", flag, index == MPI_UNDEFINED);
	show("waitsome null", MPI_Waitsome(3, r, &count, indices, st), NULL);
	if (!rank)
		printf("  count undefined %d\n", count == MPI_UNDEFINED);
	count = -5;
	show("testsome null", MPI_Testsome(3, r, &count, indices, st), NULL);
	if (!rank)
		printf("  count undefined %d\n", count == MPI_UNDEFINED);
	show("waitall of none", MPI_Waitall(0, NULL, MPI_STATUSES_IGNORE), NULL);
	marked(st, 1);
	show("waitany of none", MPI_Waitany(0, NULL, &index, st), st);
	count = -5;
	show("waitsome of none", MPI_Waitsome(0, NULL, &count, indices, st), NULL);
	if (!rank)
		printf("  count undefined %d index undefined %d\n", count == MPI_UNDEFINED,
		       index == MPI_UNDEFINED);
}

static void proc_null(void)
{
	int buf = 3, flag = -5;
	MPI_Status st;
	MPI_Request r;
	MPI_Message m;

	marked(&st, 1);
	show("recv proc null", MPI_Recv(&buf, 1, MPI_INT, MPI_PROC_NULL, 4, MPI_COMM_WORLD, &st),
	     &st);
	show("send proc null", MPI_Send(&buf, 1, MPI_INT, MPI_PROC_NULL, 4, MPI_COMM_WORLD), NULL);
	marked(&st, 1);
	MPI_Irecv(&buf, 1, MPI_INT, MPI_PROC_NULL, 4, MPI_COMM_WORLD, &r);
	show("irecv proc null", MPI_Wait(&r, &st), &st);
	marked(&st, 1);
	show("probe proc null", MPI_Probe(MPI_PROC_NULL, 4, MPI_COMM_WORLD, &st), &st);
	marked(&st, 1);
	show("iprobe proc null", MPI_Iprobe(MPI_PROC_NULL, 4, MPI_COMM_WORLD, &flag, &st), &st);
	marked(&st, 1);
	show("mprobe proc null", MPI_Mprobe(MPI_PROC_NULL, 4, MPI_COMM_WORLD, &m, &st), &st);
	if (!rank)
		printf("  flag %d no proc %d\n", flag, m == MPI_MESSAGE_NO_PROC);
	marked(&st, 1);
	show("mrecv no proc", MPI_Mrecv(&buf, 1, MPI_INT, &m, &st), &st);
	if (!rank)
		printf("  message null %d buffer untouched %d\n", m == MPI_MESSAGE_NULL, buf == 3);
	MPI_Improbe(MPI_PROC_NULL, 4, MPI_COMM_WORLD, &flag, &m, MPI_STATUS_IGNORE);
	marked(&st, 1);
	MPI_Imrecv(&buf, 1, MPI_INT, &m, &r);
	show("imrecv no proc", MPI_Wait(&r, &st), &st);
	marked(&st, 1);
	show("sendrecv proc null",
	     MPI_Sendrecv(&buf, 1, MPI_INT, MPI_PROC_NULL, 1, &buf, 1, MPI_INT, MPI_PROC_NULL, 1,
			  MPI_COMM_WORLD, &st),
	     &st);
	MPI_Recv_init(&buf, 1, MPI_INT, MPI_PROC_NULL, 4, MPI_COMM_WORLD, &r);
	MPI_Start(&r);
	marked(&st, 1);
	show("persistent recv proc null", MPI_Wait(&r, &st), &st);
	if (!rank)
		printf("  request kept %d\n", r != MPI_REQUEST_NULL);
	MPI_Request_free(&r);
}

/* With itself, so that it works on one rank. */
static void persistent(void)
{
	int in[2] = {0, 0}, out = 42, flag = -5, index = -5, count = -5, indices[2];
	MPI_Request r[2];
	MPI_Status st[2];

	MPI_Recv_init(in, 2, MPI_INT, rank, 9, MPI_COMM_WORLD, &r[0]);
	MPI_Send_init(&out, 1, MPI_INT, rank, 9, MPI_COMM_WORLD, &r[1]);
	marked(st, 1);
	show("wait inactive", MPI_Wait(&r[0], st), st);
	marked(st, 1);
	show("test inactive", MPI_Test(&r[0], &flag, st), st);
	marked(st, 2);
	show("waitall inactive", MPI_Waitall(2, r, st), &st[1]);
	marked(st, 1);
	show("waitany inactive", MPI_Waitany(2, r, &index, st), st);
	show("waitsome inactive", MPI_Waitsome(2, r, &count, indices, st), NULL);
	if (!rank)
		printf("  flag %d index undefined %d count undefined %d\n", flag,
		       index == MPI_UNDEFINED, count == MPI_UNDEFINED);
	for (int round = 0; round < 3; round++) {
		out = 42 + round;
		show("startall", MPI_Startall(2, r), NULL);
		marked(st, 2);
		show("waitall started", MPI_Waitall(2, r, st), &st[0]);
		if (!rank)
			printf("  got %d kept %d %d\n", in[0], r[0] != MPI_REQUEST_NULL,
			       r[1] != MPI_REQUEST_NULL);
	}
	show("start of null", MPI_Start(&(MPI_Request){MPI_REQUEST_NULL}), NULL);
	MPI_Request_free(&r[0]);
	MPI_Request_free(&r[1]);
	if (!rank)
		printf("  freed: null %d\n", r[0] == MPI_REQUEST_NULL);
}

static void truncation(void)
{
	int in[2] = {-1, -1}, out[4] = {1, 2, 3, 4};
	MPI_Status st[1];

	MPI_Send(out, 4, MPI_INT, rank, 1, MPI_COMM_WORLD);
	marked(st, 1);
	handler_calls = 0;
	show("recv truncated", MPI_Recv(in, 2, MPI_INT, rank, 1, MPI_COMM_WORLD, st), NULL);
	if (!rank)
		printf("  handler calls %d class %d source %d tag %d\n", handler_calls,
		       handler_class, st[0].MPI_SOURCE, st[0].MPI_TAG);
}

static void truncation_of_posted(void)
{
	int in[2] = {-1, -1}, out[4] = {1, 2, 3, 4}, index = -5, count, indices[3], flag = 0;
	MPI_Request r[3];
	MPI_Status st[3];
	MPI_Message m = MPI_MESSAGE_NULL;

	show("bsend without buffer", MPI_Bsend(out, 4, MPI_INT, rank, 0, MPI_COMM_WORLD), NULL);
	show("mrecv null", MPI_Mrecv(in, 1, MPI_INT, &m, MPI_STATUS_IGNORE), NULL);
	MPI_Irecv(in, 2, MPI_INT, rank, 2, MPI_COMM_WORLD, &r[0]);
	MPI_Irecv(&in[1], 1, MPI_INT, rank, 3, MPI_COMM_WORLD, &r[1]);
	r[2] = MPI_REQUEST_NULL;
	MPI_Send(out, 4, MPI_INT, rank, 2, MPI_COMM_WORLD);
	MPI_Send(out, 1, MPI_INT, rank, 3, MPI_COMM_WORLD);
	marked(st, 3);
	handler_calls = 0;
	show("waitall with an error", MPI_Waitall(3, r, st), NULL);
	if (!rank)
		printf("  handler calls %d class %d errors %d %d %d null %d %d\n", handler_calls,
		       handler_class, st[0].MPI_ERROR, st[1].MPI_ERROR, st[2].MPI_ERROR,
		       r[0] == MPI_REQUEST_NULL, r[1] == MPI_REQUEST_NULL);

	MPI_Irecv(in, 2, MPI_INT, rank, 2, MPI_COMM_WORLD, &r[0]);
	MPI_Send(out, 4, MPI_INT, rank, 2, MPI_COMM_WORLD);
	show("waitall with an error, ignored", MPI_Waitall(1, r, MPI_STATUSES_IGNORE), NULL);

	MPI_Irecv(in, 2, MPI_INT, rank, 2, MPI_COMM_WORLD, &r[0]);
	MPI_Send(out, 4, MPI_INT, rank, 2, MPI_COMM_WORLD);
	marked(st, 1);
	show("waitany with an error", MPI_Waitany(1, r, &index, st), NULL);
	if (!rank)
		printf("  index %d null %d\n", index, r[0] == MPI_REQUEST_NULL);

	MPI_Irecv(in, 2, MPI_INT, rank, 2, MPI_COMM_WORLD, &r[0]);
	MPI_Send(out, 4, MPI_INT, rank, 2, MPI_COMM_WORLD);
	marked(st, 1);
	show("waitsome with an error", MPI_Waitsome(1, r, &count, indices, st), NULL);
	if (!rank)
		printf("  count %d index %d error %d null %d\n", count, indices[0], st[0].MPI_ERROR,
		       r[0] == MPI_REQUEST_NULL);

	MPI_Irecv(in, 2, MPI_INT, rank, 2, MPI_COMM_WORLD, &r[0]);
	MPI_Send(out, 4, MPI_INT, rank, 2, MPI_COMM_WORLD);
	int rc = MPI_SUCCESS;
	while (!flag && rc == MPI_SUCCESS)
		rc = MPI_Test(&r[0], &flag, MPI_STATUS_IGNORE);
	show("test with an error", rc, NULL);
	if (!rank)
		printf("  null %d\n", r[0] == MPI_REQUEST_NULL);
}

static void arguments(void)
{
	int buf[4] = {0}, flag;
	MPI_Datatype open;
	MPI_Request r;

	MPI_Type_contiguous(2, MPI_INT, &open);
	show("send count", MPI_Send(buf, -1, MPI_INT, rank, 0, MPI_COMM_WORLD), NULL);
	show("send tag", MPI_Send(buf, 1, MPI_INT, rank, -1, MPI_COMM_WORLD), NULL);
	show("send any tag", MPI_Send(buf, 1, MPI_INT, rank, MPI_ANY_TAG, MPI_COMM_WORLD), NULL);
	show("send rank", MPI_Send(buf, 1, MPI_INT, size, 0, MPI_COMM_WORLD), NULL);
	show("send any source", MPI_Send(buf, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD), NULL);
	show("send comm null", MPI_Send(buf, 1, MPI_INT, rank, 0, MPI_COMM_NULL), NULL);
	show("send type null", MPI_Send(buf, 1, MPI_DATATYPE_NULL, rank, 0, MPI_COMM_WORLD), NULL);
	show("send uncommitted", MPI_Send(buf, 1, open, rank, 0, MPI_COMM_WORLD), NULL);
	show("send buffer", MPI_Send(NULL, 1, MPI_INT, rank, 0, MPI_COMM_WORLD), NULL);
	show("recv count", MPI_Recv(buf, -1, MPI_INT, rank, 0, MPI_COMM_WORLD, &(MPI_Status){0}),
	     NULL);
	show("recv tag", MPI_Recv(buf, 1, MPI_INT, rank, -7, MPI_COMM_WORLD, &(MPI_Status){0}),
	     NULL);
	show("recv rank", MPI_Recv(buf, 1, MPI_INT, size + 3, 0, MPI_COMM_WORLD, &(MPI_Status){0}),
	     NULL);
	show("recv uncommitted", MPI_Recv(buf, 1, open, rank, 0, MPI_COMM_WORLD, &(MPI_Status){0}),
	     NULL);
	show("irecv rank", MPI_Irecv(buf, 1, MPI_INT, size, 0, MPI_COMM_WORLD, &r), NULL);
	show("probe tag", MPI_Probe(rank, -9, MPI_COMM_WORLD, MPI_STATUS_IGNORE), NULL);
	show("iprobe rank", MPI_Iprobe(size, 0, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE), NULL);
	r = MPI_REQUEST_NULL;
	show("free null", MPI_Request_free(&r), NULL);
	show("cancel null", MPI_Cancel(&r), NULL);
	show("waitall count", MPI_Waitall(-1, &r, MPI_STATUSES_IGNORE), NULL);
	show("buffer attach null", MPI_Buffer_attach(NULL, 10), NULL);
	show("sendrecv tag",
	     MPI_Sendrecv(buf, 1, MPI_INT, rank, -3, buf + 1, 1, MPI_INT, rank, 0, MPI_COMM_WORLD,
			  MPI_STATUS_IGNORE),
	     NULL);
	show("grequest complete of null", MPI_Grequest_complete(MPI_REQUEST_NULL), NULL);
	MPI_Type_free(&open);
}

static void cancelled(void)
{
	int buf;
	MPI_Request r;
	MPI_Status st;

	MPI_Irecv(&buf, 1, MPI_INT, rank, 1234, MPI_COMM_WORLD, &r);
	show("cancel", MPI_Cancel(&r), NULL);
	marked(&st, 1);
	int rc = MPI_Wait(&r, &st), yes = -1;
	MPI_Test_cancelled(&st, &yes);
	show("wait cancelled", rc, NULL);
	if (!rank)
		printf("  cancelled %d null %d\n", yes, r == MPI_REQUEST_NULL);
	MPI_Recv_init(&buf, 1, MPI_INT, rank, 1234, MPI_COMM_WORLD, &r);
	MPI_Start(&r);
	MPI_Cancel(&r);
	MPI_Wait(&r, &st);
	MPI_Test_cancelled(&st, &yes);
	if (!rank)
		printf("  persistent cancelled %d kept %d\n", yes, r != MPI_REQUEST_NULL);
	MPI_Start(&r);
	MPI_Send(&rank, 1, MPI_INT, rank, 1234, MPI_COMM_WORLD);
	marked(&st, 1);
	show("started again", MPI_Wait(&r, &st), &st);
	MPI_Request_free(&r);
	MPI_Status_set_cancelled(&st, 1);
	MPI_Test_cancelled(&st, &yes);
	if (!rank)
		printf("  set cancelled %d\n", yes);
}

static int freed, queried, cancels;

static int query_fn(void *extra, MPI_Status *st)
{
	queried++;
	st->MPI_SOURCE = 5;
	st->MPI_TAG = 6;
	MPI_Status_set_elements(st, MPI_INT, *(int *)extra);
	MPI_Status_set_cancelled(st, 0);
	return MPI_SUCCESS;
}

static int free_fn(void *extra)
{
	freed++;
	return MPI_SUCCESS;
}

static int cancel_fn(void *extra, int complete)
{
	cancels += complete ? 100 : 1;
	return MPI_SUCCESS;
}

static void generalized(void)
{
	int n = 3, flag = -5;
	MPI_Request r, copy;
	MPI_Status st;

	show("grequest start", MPI_Grequest_start(query_fn, free_fn, cancel_fn, &n, &r), NULL);
	MPI_Test(&r, &flag, &st);
	MPI_Cancel(&r);
	copy = r;
	MPI_Grequest_complete(copy);
	marked(&st, 1);
	show("grequest wait", MPI_Wait(&r, &st), &st);
	if (!rank)
		printf("  flag before %d freed %d queried %d cancels %d null %d\n", flag, freed,
		       queried, cancels, r == MPI_REQUEST_NULL);
	MPI_Grequest_start(query_fn, free_fn, cancel_fn, &n, &r);
	copy = r;
	MPI_Request_free(&r);
	if (!rank)
		printf("  freed early %d\n", freed);
	MPI_Grequest_complete(copy);
	if (!rank)
		printf("  freed after complete %d\n", freed);
}

int main(int argc, char **argv)
{
	MPI_Errhandler errhandler;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Comm_create_errhandler(handler, &errhandler);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, errhandler);
	if (argc > 1 && strcmp(argv[1], "strict") == 0) {
		truncation_of_posted();
	} else {
		null_requests();
		proc_null();
		persistent();
		truncation();
		arguments();
		cancelled();
		generalized();
	}
	MPI_Errhandler_free(&errhandler);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
	MPI_Finalize();
	return 0;
}
