// SPDX-License-Identifier: BSD-3-Clause
/* mpiio_errors FOLDER [FULL]: what the standard calls erroneous gives its class, through the file's
 * handler. FULL: a folder on a file system of 1 MiB. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

static int rank, nranks, handled, wrong;
static char name[4096];

static void handler(MPI_File *fh, int *code, ...)
{
	(void)fh;
	(void)code;
	handled++;
}

static void expect(int rc, int class, const char *what)
{
	int got;
	MPI_Error_class(rc, &got);
	if (got == class)
		return;
	wrong++;
	fprintf(stderr, "rank %d: %s: class %d instead of %d\n", rank, what, got, class);
}

static const char *path(const char *folder, const char *file)
{
	snprintf(name, sizeof(name), "%s/%s", folder, file);
	return name;
}

static void opening(const char *folder)
{
	MPI_File f = MPI_FILE_NULL;
	MPI_Comm w = MPI_COMM_WORLD;
	MPI_Info no = MPI_INFO_NULL;
	const char *p = path(folder, "errors.dat");
	expect(MPI_File_open(w, p, MPI_MODE_RDONLY, no, &f), MPI_ERR_NO_SUCH_FILE, "not there");
	expect(MPI_File_open(w, p, MPI_MODE_CREATE, no, &f), MPI_ERR_AMODE, "no access mode");
	expect(MPI_File_open(w, p, MPI_MODE_RDONLY | MPI_MODE_RDWR, no, &f), MPI_ERR_AMODE, "two");
	expect(MPI_File_open(w, p, MPI_MODE_RDONLY | MPI_MODE_CREATE, no, &f), MPI_ERR_AMODE,
	       "create to read");
	expect(MPI_File_open(w, p, MPI_MODE_RDWR | MPI_MODE_SEQUENTIAL, no, &f), MPI_ERR_AMODE,
	       "sequential both ways");
	if (nranks > 1)
		expect(MPI_File_open(w, p, rank ? MPI_MODE_RDWR : MPI_MODE_RDWR | MPI_MODE_CREATE, no, &f),
		       MPI_ERR_NOT_SAME, "modes differ");
	if (f != MPI_FILE_NULL)
		expect(MPI_ERR_OTHER, MPI_SUCCESS, "a handle without a file");
	expect(MPI_File_open(w, p, MPI_MODE_RDWR | MPI_MODE_CREATE, no, &f), MPI_SUCCESS, "create");
	expect(MPI_File_close(&f), MPI_SUCCESS, "close");
	expect(MPI_File_open(w, p, MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_EXCL, no, &f),
	       MPI_ERR_FILE_EXISTS, "exclusive");
	expect(MPI_File_close(&f), MPI_ERR_FILE, "close nothing");
	expect(MPI_File_delete(path(folder, "none"), no), MPI_ERR_NO_SUCH_FILE, "delete nothing");
	expect(MPI_File_open(w, folder, MPI_MODE_RDWR, no, &f), MPI_ERR_BAD_FILE, "a folder");
}

static void using(const char *folder)
{
	MPI_File f;
	MPI_Comm w = MPI_COMM_WORLD;
	MPI_Errhandler e;
	MPI_Offset at;
	MPI_Datatype fresh;
	int x[4] = {0}, before = handled;
	const char *p = path(folder, "errors.dat");
	MPI_File_open(w, p, MPI_MODE_RDONLY, MPI_INFO_NULL, &f);
	MPI_File_create_errhandler(handler, &e);
	MPI_File_set_errhandler(f, e);
	MPI_Errhandler_free(&e);
	MPI_Type_contiguous(3, MPI_INT, &fresh);
	expect(MPI_File_write(f, x, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_READ_ONLY, "read only");
	expect(MPI_File_write_all(f, x, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_READ_ONLY, "all");
	expect(MPI_File_set_size(f, 10), MPI_ERR_READ_ONLY, "size");
	expect(MPI_File_read(f, x, -1, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_COUNT, "count");
	expect(MPI_File_read(f, x, 1, fresh, MPI_STATUS_IGNORE), MPI_ERR_TYPE, "not committed");
	expect(MPI_File_read_at(f, -1, x, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_ARG, "offset");
	expect(MPI_File_set_view(f, 0, MPI_INT, MPI_INT, "strange", MPI_INFO_NULL),
	       MPI_ERR_UNSUPPORTED_DATAREP, "representation");
	expect(MPI_File_set_view(f, -5, MPI_INT, MPI_INT, "native", MPI_INFO_NULL), MPI_ERR_ARG, "disp");
	expect(MPI_File_seek(f, -5, MPI_SEEK_SET), MPI_ERR_ARG, "seek");
	expect(MPI_File_seek(f, 5, 77), MPI_ERR_ARG, "whence");
	expect(MPI_File_read_all_end(f, x, MPI_STATUS_IGNORE), MPI_ERR_OTHER, "end without begin");
	expect(MPI_File_get_size(f, &at), MPI_SUCCESS, "size");
	if (handled - before != 11)
		expect(MPI_ERR_OTHER, MPI_SUCCESS, "not every error came to the handler");
	MPI_Type_free(&fresh);
	MPI_File_close(&f);
	MPI_File_open(w, p, MPI_MODE_WRONLY | MPI_MODE_SEQUENTIAL, MPI_INFO_NULL, &f);
	expect(MPI_File_read_shared(f, x, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_ACCESS, "write only");
	expect(MPI_File_write_at(f, 0, x, 1, MPI_INT, MPI_STATUS_IGNORE),
	       MPI_ERR_UNSUPPORTED_OPERATION, "sequential");
	expect(MPI_File_close(&f), MPI_SUCCESS, "close");
}

/* One member's argument is wrong: the others hear of it instead of waiting for ever. */
static void apart(const char *folder)
{
	MPI_File f;
	int x = 0;
	MPI_File_open(MPI_COMM_WORLD, path(folder, "errors.dat"), MPI_MODE_RDWR, MPI_INFO_NULL, &f);
	int rc = MPI_File_write_all(f, &x, rank == 0 ? -1 : 1, MPI_INT, MPI_STATUS_IGNORE);
	expect(rc, MPI_ERR_COUNT, "one wrong count");
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_File_close(&f);
}

/* The same of calls that move nothing: all get an error, and nothing has changed. */
static void one_apart(const char *folder, int who)
{
	const char *p = path(folder, "errors.dat");
	MPI_Info no = MPI_INFO_NULL;
	MPI_Offset size, at;
	MPI_File f;
	int bad = rank == who;
	MPI_File_open(MPI_COMM_WORLD, p, MPI_MODE_RDWR, no, &f);
	MPI_File_set_size(f, 80);
	MPI_File_seek_shared(f, 3, MPI_SEEK_SET);
	int rc[] = {
	    MPI_File_set_view(f, bad ? -5 : 0, MPI_INT, MPI_INT, "native", no),
	    MPI_File_set_view(f, 0, MPI_INT, bad ? MPI_DATATYPE_NULL : MPI_INT, "native", no),
	    MPI_File_set_size(f, bad ? -1 : 40),
	    MPI_File_preallocate(f, bad ? -1 : 400),
	    MPI_File_seek_shared(f, 5, bad ? 77 : MPI_SEEK_SET),
	    MPI_File_seek_shared(f, bad ? -5 : 5, MPI_SEEK_SET),
	};
	for (unsigned i = 0; i < sizeof(rc) / sizeof(*rc); i++)
		if (!rc[i])
			expect(MPI_SUCCESS, MPI_ERR_ARG, "one wrong argument");
	MPI_File_get_size(f, &size);
	MPI_File_get_position_shared(f, &at);
	if (size != 80 || at != 3)
		expect(MPI_ERR_OTHER, MPI_SUCCESS, "something has changed");
	MPI_File_close(&f);
	if (!MPI_File_open(MPI_COMM_WORLD, p, bad ? 0 : MPI_MODE_RDWR, no, &f))
		expect(MPI_SUCCESS, MPI_ERR_AMODE, "one wrong mode");
}

/* A view that shows nothing: nothing is moved, alone or together, while others have all of it. */
static void empty_view(const char *folder)
{
	MPI_File f;
	MPI_Datatype none;
	MPI_Status st;
	int x[4] = {1, 2, 3, 4}, n, sees = rank == 0;
	MPI_File_open(MPI_COMM_WORLD, path(folder, "errors.dat"), MPI_MODE_RDWR, MPI_INFO_NULL, &f);
	MPI_Type_contiguous(0, MPI_INT, &none);
	MPI_Type_commit(&none);
	MPI_File_set_view(f, 0, MPI_INT, sees ? MPI_INT : none, "native", MPI_INFO_NULL);
	for (int i = 0; i < 6; i++) {
		int rc = i == 0	  ? MPI_File_write_at_all(f, 0, x, 4, MPI_INT, &st)
			 : i == 1 ? MPI_File_read_at_all(f, 0, x, 4, MPI_INT, &st)
			 : i == 2 ? MPI_File_write_at(f, 0, x, 4, MPI_INT, &st)
			 : i == 3 ? MPI_File_read_at(f, 0, x, 4, MPI_INT, &st)
			 : i == 4 ? MPI_File_write_ordered(f, x, 4, MPI_INT, &st)
				  : MPI_File_read(f, x, 4, MPI_INT, &st);
		expect(rc, MPI_SUCCESS, "an empty view");
		MPI_Get_count(&st, MPI_INT, &n);
		if (n != (sees ? 4 : 0))
			expect(MPI_ERR_OTHER, MPI_SUCCESS, "what an empty view moved");
	}
	MPI_Type_free(&none);
	MPI_File_close(&f);
}

/* The disk is full: the class says so, and the job goes on with what there is. */
static void full(const char *folder)
{
	static char block[500000], back[500000];
	MPI_File f;
	int some = 0, all = 0;
	memset(block, 'x', sizeof(block));
	MPI_File_open(MPI_COMM_WORLD, path(folder, "full.dat"), MPI_MODE_RDWR | MPI_MODE_CREATE,
		      MPI_INFO_NULL, &f);
	for (int i = 0; i < 8; i++) {
		MPI_Offset at = (MPI_Offset)(i * nranks + rank) * (MPI_Offset)sizeof(block);
		int rc = MPI_File_write_at(f, at, block, sizeof(block), MPI_BYTE, MPI_STATUS_IGNORE);
		if (rc)
			expect(rc, MPI_ERR_NO_SPACE, "full");
		some |= rc != 0;
	}
	MPI_Allreduce(&some, &all, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
	if (!all)
		expect(MPI_ERR_OTHER, MPI_SUCCESS, "there was room for all");
	expect(MPI_File_set_size(f, 0), MPI_SUCCESS, "room again");
	MPI_Datatype one, mine;
	MPI_Type_contiguous(1000, MPI_BYTE, &one);
	MPI_Type_create_resized(one, 0, 1000 * nranks, &mine);
	MPI_Type_commit(&mine);
	MPI_File_set_view(f, rank * 1000, MPI_BYTE, mine, "native", MPI_INFO_NULL);
	expect(MPI_File_write_at_all(f, 900000, block, sizeof(block), MPI_BYTE, MPI_STATUS_IGNORE),
	       MPI_ERR_NO_SPACE, "full for all");
	expect(MPI_File_set_size(f, 0), MPI_SUCCESS, "room again");
	expect(MPI_File_write_at_all(f, 0, block, 10000, MPI_BYTE, MPI_STATUS_IGNORE), MPI_SUCCESS,
	       "a little");
	expect(MPI_File_read_at_all(f, 0, back, 10000, MPI_BYTE, MPI_STATUS_IGNORE), MPI_SUCCESS,
	       "back");
	if (memcmp(block, back, 10000) != 0)
		expect(MPI_ERR_OTHER, MPI_SUCCESS, "what came back");
	MPI_Type_free(&one);
	MPI_Type_free(&mine);
	MPI_File_close(&f);
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &nranks);
	opening(argv[1]);
	using(argv[1]);
	apart(argv[1]);
	empty_view(argv[1]);
	one_apart(argv[1], 0);
	one_apart(argv[1], nranks - 1);
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0)
		MPI_File_delete(path(argv[1], "errors.dat"), MPI_INFO_NULL);
	if (argc > 2)
		full(argv[2]);
	int all;
	MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
	if (rank == 0)
		printf("%d wrong\n", all);
	MPI_Finalize();
	return 0;
}
