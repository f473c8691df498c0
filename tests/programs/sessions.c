// SPDX-License-Identifier: BSD-3-Clause
/* Sessions, for the standard's ABI: sessions MODE [ROUNDS]
 *	work	two sessions beside each other, twice; communicators of sets, half groups, two groups;
 *		buffers of each kind; ROUNDS rounds of a ring; MPI_Init never
 *	world	the same around MPI_Init … MPI_Finalize
 *	wrong	what is erroneous gets the class that the standard gives it
 * Rank 0 prints how many values were wrong. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int bad, rank, size;
#define EXPECT(condition)                                                                          \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			bad++;                                                                     \
			fprintf(stderr, "line %d: %s\n", __LINE__, #condition);                    \
		}                                                                                  \
	} while (0)

static MPI_Session opened(const char *level)
{
	MPI_Session s = MPI_SESSION_NULL;
	MPI_Info info, used;
	char value[64];
	int flag;
	MPI_Info_create(&info);
	MPI_Info_set(info, "thread_level", level);
	EXPECT(MPI_Session_init(info, MPI_ERRORS_RETURN, &s) == MPI_SUCCESS && s != MPI_SESSION_NULL);
	MPI_Info_free(&info);
	MPI_Session_get_info(s, &used);
	MPI_Info_get(used, "thread_level", 63, value, &flag);
	EXPECT(flag && !strcmp(value, level));
	MPI_Info_free(&used);
	return s;
}

static MPI_Comm made(MPI_Session s, const char *set, const char *tag)
{
	MPI_Group g;
	MPI_Comm c = MPI_COMM_NULL;
	EXPECT(MPI_Group_from_session_pset(s, set, &g) == MPI_SUCCESS);
	EXPECT(MPI_Comm_create_from_group(g, tag, MPI_INFO_NULL, MPI_ERRORS_RETURN, &c) == MPI_SUCCESS);
	MPI_Group_free(&g);
	return c;
}

static void sets(MPI_Session s)
{
	int n, length = 0, self = 0;
	char name[MPI_MAX_PSET_NAME_LEN], value[16];
	MPI_Info info;
	EXPECT(MPI_Session_get_num_psets(s, MPI_INFO_NULL, &n) == MPI_SUCCESS && n >= 2);
	for (int k = 0; k < n; k++) {
		length = 0;
		MPI_Session_get_nth_pset(s, MPI_INFO_NULL, k, &length, NULL);
		EXPECT(length > 1 && length <= (int)sizeof(name));
		MPI_Session_get_nth_pset(s, MPI_INFO_NULL, k, &length, name);
		EXPECT((int)strlen(name) == length - 1);
		int flag, one = !strcmp(name, "mpi://SELF");
		MPI_Session_get_pset_info(s, name, &info);
		MPI_Info_get(info, "mpi_size", 15, value, &flag);
		EXPECT(flag && (one ? atoi(value) == 1 : atoi(value) == size));
		MPI_Info_free(&info);
		self += one;
	}
	EXPECT(self == 1);
}

static void ring(MPI_Comm c, int rounds)
{
	int r, n, in;
	MPI_Comm_rank(c, &r);
	MPI_Comm_size(c, &n);
	for (int k = 0; k < rounds; k++) {
		int out = r * 1000 + k, sum;
		MPI_Sendrecv(&out, 1, MPI_INT, (r + 1) % n, 1, &in, 1, MPI_INT, (r + n - 1) % n, 1, c,
			     MPI_STATUS_IGNORE);
		EXPECT(in == (r + n - 1) % n * 1000 + k);
		MPI_Allreduce(&r, &sum, 1, MPI_INT, MPI_SUM, c);
		EXPECT(sum == n * (n - 1) / 2);
	}
}

/* The first member is not in it. */
static void half(MPI_Session s)
{
	MPI_Group all, some;
	MPI_Comm c;
	int r, zero = 0;
	MPI_Group_from_session_pset(s, "mpi://WORLD", &all);
	MPI_Group_rank(all, &r);
	if (r)
		MPI_Group_excl(all, 1, &zero, &some);
	else
		some = MPI_GROUP_EMPTY;
	EXPECT(MPI_Comm_create_from_group(some, "half", MPI_INFO_NULL, MPI_ERRORS_RETURN, &c) ==
	       MPI_SUCCESS);
	EXPECT((c == MPI_COMM_NULL) == (r == 0));
	if (r) {
		ring(c, 3);
		MPI_Comm_free(&c);
		MPI_Group_free(&some);
	}
	MPI_Group_free(&all);
}

static void two_groups(MPI_Session s)
{
	MPI_Group all, mine, theirs;
	MPI_Comm c;
	int r, n, zero = 0, sum = -1;
	MPI_Group_from_session_pset(s, "mpi://WORLD", &all);
	MPI_Group_rank(all, &r);
	MPI_Group_size(all, &n);
	if (n > 1) {
		MPI_Group_incl(all, 1, &zero, r ? &theirs : &mine);
		MPI_Group_excl(all, 1, &zero, r ? &mine : &theirs);
		EXPECT(MPI_Intercomm_create_from_groups(mine, r ? n - 2 : 0, theirs, r ? 0 : n - 2, "two",
							MPI_INFO_NULL, MPI_ERRORS_RETURN,
							&c) == MPI_SUCCESS);
		MPI_Allreduce(&r, &sum, 1, MPI_INT, MPI_SUM, c);
		EXPECT(sum == (r ? 0 : n * (n - 1) / 2));
		MPI_Comm_disconnect(&c);
		MPI_Group_free(&mine);
		MPI_Group_free(&theirs);
	}
	MPI_Group_free(&all);
}

/* A receiver that comes late: what does not leave at once waits in the buffer. */
static void from_buffer(MPI_Comm c, int length, int flush(MPI_Comm, MPI_Session, int), MPI_Session s)
{
	int r, n;
	MPI_Comm_rank(c, &r);
	MPI_Comm_size(c, &n);
	char *text = malloc((size_t)length);
	memset(text, 'a' + r, (size_t)length);
	for (int k = 0; k < 3; k++)
		EXPECT(MPI_Bsend(text, length, MPI_CHAR, (r + 1) % n, k, c) == MPI_SUCCESS);
	if (n > 1)
		EXPECT(flush(c, s, 0) == 0); /* nobody has received */
	MPI_Barrier(c);
	for (int k = 0; k < 3; k++) {
		MPI_Recv(text, length, MPI_CHAR, (r + n - 1) % n, k, c, MPI_STATUS_IGNORE);
		EXPECT(text[0] == 'a' + (r + n - 1) % n && text[length - 1] == text[0]);
	}
	EXPECT(flush(c, s, 1) == 1);
	free(text);
}

static MPI_Request pending = MPI_REQUEST_NULL;
static int asked(int rc, int wait)
{
	int flag = 0;
	EXPECT(rc == MPI_SUCCESS);
	if (wait)
		MPI_Wait(&pending, MPI_STATUS_IGNORE), flag = 1;
	else
		MPI_Test(&pending, &flag, MPI_STATUS_IGNORE);
	return flag;
}
static int comm_flush(MPI_Comm c, MPI_Session s, int end)
{
	if (end)
		EXPECT(MPI_Comm_flush_buffer(c) == MPI_SUCCESS);
	return asked(end ? MPI_SUCCESS : MPI_Comm_iflush_buffer(c, &pending), end);
}
static int session_flush(MPI_Comm c, MPI_Session s, int end)
{
	if (end)
		EXPECT(MPI_Session_flush_buffer(s) == MPI_SUCCESS);
	return asked(end ? MPI_SUCCESS : MPI_Session_iflush_buffer(s, &pending), end);
}
static int process_flush(MPI_Comm c, MPI_Session s, int end)
{
	if (end)
		EXPECT(MPI_Buffer_flush() == MPI_SUCCESS);
	return asked(end ? MPI_SUCCESS : MPI_Buffer_iflush(&pending), end);
}

static void buffers(MPI_Session s)
{
	enum { LENGTH = 500000, ROOM = 3 * (LENGTH + MPI_BSEND_OVERHEAD) };
	MPI_Comm c = made(s, "mpi://WORLD", "buffers"), copy;
	char *room = malloc(ROOM);
	void *at;
	int got;
	EXPECT(MPI_Comm_attach_buffer(c, room, ROOM) == MPI_SUCCESS);
	EXPECT(MPI_Comm_attach_buffer(c, room, ROOM) != MPI_SUCCESS);
	from_buffer(c, LENGTH, comm_flush, s);
	EXPECT(MPI_Comm_detach_buffer(c, &at, &got) == MPI_SUCCESS && at == room && got == ROOM);
	EXPECT(MPI_Session_attach_buffer(s, room, ROOM) == MPI_SUCCESS);
	MPI_Comm_dup(c, &copy);
	from_buffer(copy, LENGTH, session_flush, s);
	MPI_Comm_free(&copy);
	EXPECT(MPI_Session_detach_buffer(s, &at, &got) == MPI_SUCCESS && at == room && got == ROOM);
	EXPECT(MPI_Buffer_attach(MPI_BUFFER_AUTOMATIC, 0) == MPI_SUCCESS);
	from_buffer(c, LENGTH, process_flush, s);
	EXPECT(MPI_Buffer_detach(&at, &got) == MPI_SUCCESS && at == MPI_BUFFER_AUTOMATIC && got == 0);
	EXPECT(MPI_Bsend(room, 4, MPI_CHAR, 0, 0, c) != MPI_SUCCESS); /* none is left */
	MPI_Comm_free(&c);
	free(room);
}

/* What a transfer of a file says of its count. */
static void counted(MPI_Comm self)
{
	char name[32], data[10] = "123456789";
	MPI_File f;
	MPI_Status s;
	int n = -1;
	snprintf(name, sizeof(name), "counted.%d", rank);
	EXPECT(MPI_File_open(self, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE,
			     MPI_INFO_NULL, &f) == MPI_SUCCESS);
	memset(&s, 0x55, sizeof(s));
	MPI_File_write_at(f, 0, data, 10, MPI_CHAR, &s);
	EXPECT(MPI_Get_count(&s, MPI_CHAR, &n) == MPI_SUCCESS && n == 10);
	memset(&s, 0x55, sizeof(s));
	MPI_File_read_at(f, 7, data, 10, MPI_CHAR, &s);
	EXPECT(MPI_Get_count(&s, MPI_CHAR, &n) == MPI_SUCCESS && n == 3);
	memset(&s, 0x55, sizeof(s));
	MPI_File_read_at(f, 10, data, 10, MPI_CHAR, &s);
	EXPECT(MPI_Get_count(&s, MPI_CHAR, &n) == MPI_SUCCESS && n == 0);
	MPI_File_close(&f);
}

static void work(int rounds)
{
	for (int again = 0; again < 2; again++) {
		MPI_Session a = opened("MPI_THREAD_SINGLE"), b = opened("MPI_THREAD_MULTIPLE");
		MPI_Comm x = made(a, "mpi://WORLD", "x"), y = made(b, "mpi://WORLD", "y"),
			 self = made(b, "mpi://SELF", "y");
		MPI_Comm_rank(x, &rank);
		MPI_Comm_size(x, &size);
		sets(a);
		ring(x, rounds);
		ring(y, 3);
		ring(self, 2);
		counted(self);
		half(a);
		two_groups(b);
		MPI_Comm_free(&x);
		MPI_Session_finalize(&a);
		EXPECT(a == MPI_SESSION_NULL);
		buffers(b);
		ring(y, 2);
		int all;
		MPI_Allreduce(&bad, &all, 1, MPI_INT, MPI_SUM, y);
		bad = rank ? bad : all;
		MPI_Comm_free(&y);
		MPI_Comm_free(&self);
		MPI_Session_finalize(&b);
	}
}

static int handled;
static void handler(MPI_Session *s, int *code, ...)
{
	handled++;
}

/* Error classes and codes come and go, also before anything is open. */
static void codes(void)
{
	int class, code, again, length;
	char text[MPI_MAX_ERROR_STRING];
	EXPECT(MPI_Add_error_class(&class) == MPI_SUCCESS && MPI_Add_error_code(class, &code) == 0);
	EXPECT(MPI_Add_error_string(code, "mine") == MPI_SUCCESS);
	EXPECT(MPI_Error_string(code, text, &length) == MPI_SUCCESS && !strcmp(text, "mine"));
	EXPECT(MPI_Remove_error_class(class) == MPI_ERR_OTHER); /* it has a code */
	EXPECT(MPI_Remove_error_code(code) == MPI_ERR_OTHER);	/* it has a text */
	EXPECT(MPI_Remove_error_string(code) == MPI_SUCCESS);
	EXPECT(MPI_Remove_error_string(code) == MPI_ERR_OTHER);
	EXPECT(MPI_Remove_error_code(code) == MPI_SUCCESS && MPI_Remove_error_class(class) == 0);
	EXPECT(MPI_Remove_error_class(class) == MPI_ERR_OTHER);
	EXPECT(MPI_Remove_error_class(MPI_ERR_ARG) == MPI_ERR_OTHER);
	EXPECT(MPI_Add_error_class(&again) == MPI_SUCCESS && again == class);
}

static void wrong(void)
{
	MPI_Session s = MPI_SESSION_NULL, t;
	MPI_Errhandler mine;
	MPI_Group g, again;
	MPI_Comm c;
	MPI_Info info;
	char name[8];
	int n, flag, size_of = -1;
	/* before anything is open */
	EXPECT(MPI_Info_create(&info) == MPI_SUCCESS);
	EXPECT(MPI_Info_set(info, "thread_level", "MPI_THREAD_SINGLE") == MPI_SUCCESS);
	EXPECT(MPI_Info_get(NULL, "x", 3, name, &flag) == MPI_ERR_INFO);
	EXPECT(MPI_Info_create_env(0, NULL, &info) == MPI_SUCCESS);
	EXPECT(MPI_Session_create_errhandler(handler, &mine) == MPI_SUCCESS);
	EXPECT(MPI_Session_init((MPI_Info)mine, MPI_ERRORS_RETURN, &s) == MPI_ERR_INFO);
	EXPECT(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, NULL) == MPI_ERR_ARG);
	EXPECT(MPI_Initialized(&flag) == MPI_SUCCESS && !flag);
	codes();

	EXPECT(MPI_Session_init(MPI_INFO_NULL, mine, &s) == MPI_SUCCESS);
	EXPECT(MPI_Initialized(&flag) == MPI_SUCCESS && !flag);
	EXPECT(MPI_Session_get_num_psets(s, MPI_INFO_NULL, NULL) == MPI_ERR_ARG && handled == 1);
	EXPECT(MPI_Session_get_nth_pset(s, MPI_INFO_NULL, 99, &n, name) == MPI_ERR_ARG);
	n = sizeof(name);
	EXPECT(MPI_Session_get_nth_pset(s, MPI_INFO_NULL, 0, &n, name) == MPI_SUCCESS && n == 12);
	EXPECT(!strcmp(name, "mpi://W"));
	EXPECT(MPI_Session_get_nth_pset(s, MPI_INFO_NULL, -1, &n, name) == MPI_ERR_ARG);
	EXPECT(MPI_Session_get_pset_info(s, "app://none", &info) == MPI_ERR_ARG);
	EXPECT(MPI_Session_get_pset_info(s, NULL, &info) == MPI_ERR_ARG);
	EXPECT(MPI_Group_from_session_pset(s, "", &g) == MPI_ERR_ARG && g == MPI_GROUP_NULL);
	EXPECT(handled == 6);
	EXPECT(MPI_Session_attach_buffer(s, NULL, 5) == MPI_ERR_ARG);
	EXPECT(MPI_Session_flush_buffer(s) == MPI_ERR_BUFFER);
	EXPECT(MPI_Session_detach_buffer(s, name, &n) == MPI_ERR_BUFFER);
	EXPECT(MPI_Session_call_errhandler(s, MPI_ERR_OTHER) == MPI_SUCCESS && handled == 10);
	EXPECT(MPI_Session_set_errhandler(s, MPI_ERRHANDLER_NULL) == MPI_ERR_ARG);
	EXPECT(MPI_Session_set_errhandler(s, MPI_ERRORS_RETURN) == MPI_SUCCESS);

	char text[MPI_MAX_OBJECT_NAME];
	EXPECT(MPI_Comm_get_name(MPI_COMM_NULL, text, &n) == 0 && !strcmp(text, "MPI_COMM_NULL"));
	EXPECT(MPI_Type_get_name(MPI_DATATYPE_NULL, text, &n) == 0 && n == 17);
	EXPECT(MPI_Group_from_session_pset(s, "mpi://WORLD", &g) == MPI_SUCCESS);
	EXPECT(MPI_Comm_create_from_group(MPI_GROUP_NULL, "t", MPI_INFO_NULL, MPI_ERRORS_RETURN, &c) ==
	       MPI_ERR_GROUP);
	EXPECT(MPI_Comm_create_from_group(g, NULL, MPI_INFO_NULL, MPI_ERRORS_RETURN, &c) == MPI_ERR_ARG);
	EXPECT(MPI_Comm_create_from_group(g, "t", MPI_INFO_NULL, MPI_ERRORS_RETURN, NULL) ==
	       MPI_ERR_ARG);
	EXPECT(MPI_Intercomm_create_from_groups(g, 0, g, 0, "t", MPI_INFO_NULL, MPI_ERRORS_RETURN, &c) ==
	       MPI_ERR_GROUP);
	EXPECT(MPI_Intercomm_create_from_groups(g, -1, g, 0, "t", MPI_INFO_NULL, MPI_ERRORS_RETURN,
						&c) == MPI_ERR_ARG);
	EXPECT(MPI_Comm_create_from_group(g, "t", MPI_INFO_NULL, MPI_ERRORS_RETURN, &c) == MPI_SUCCESS);
	EXPECT(MPI_Comm_size(c, &size_of) == MPI_SUCCESS && size_of >= 1);
	MPI_Comm_rank(c, &rank);
	/* a group outlives its session */
	t = s;
	MPI_Comm_free(&c);
	EXPECT(MPI_Session_finalize(&s) == MPI_SUCCESS && s == MPI_SESSION_NULL);
	(void)t;
	EXPECT(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &s) == MPI_SUCCESS);
	EXPECT(MPI_Group_excl(g, 0, NULL, &again) == MPI_SUCCESS);
	MPI_Group_free(&again);
	MPI_Group_free(&g);
	MPI_Errhandler_free(&mine);
	MPI_Session_finalize(&s);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "work";
	int rounds = argc > 2 ? atoi(argv[2]) : 5;
	if (!strcmp(mode, "world")) {
		MPI_Session around = opened("MPI_THREAD_SINGLE");
		MPI_Init(&argc, &argv);
		MPI_Barrier(MPI_COMM_WORLD);
		work(rounds);
		MPI_Finalize();
		MPI_Comm c = made(around, "mpi://WORLD", "after");
		ring(c, rounds);
		MPI_Comm_free(&c);
		MPI_Session_finalize(&around);
	} else if (!strcmp(mode, "wrong")) {
		wrong();
	} else if (!strcmp(mode, "null")) {
		MPI_Session s = opened("MPI_THREAD_SINGLE"), none = MPI_SESSION_NULL;
		MPI_Session_finalize(&none); /* MPI_COMM_WORLD's handler ends the job */
		MPI_Session_finalize(&s);
	} else if (!strcmp(mode, "comm")) {
		MPI_Session s = opened("MPI_THREAD_SINGLE");
		MPI_Barrier(MPI_COMM_WORLD); /* which there is not */
		MPI_Session_finalize(&s);
	} else if (!strcmp(mode, "late")) {
		MPI_Session s = MPI_SESSION_NULL;
		MPI_Init(&argc, &argv);
		MPI_Comm_rank(MPI_COMM_WORLD, &rank);
		MPI_Finalize();
		EXPECT(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &s) == MPI_ERR_OTHER);
	} else {
		work(rounds);
	}
	if (rank == 0)
		printf("%d wrong\n", bad);
	return 0;
}
