/* SPDX-License-Identifier: BSD-3-Clause */
/* Opening, closing, deleting; hints; error handlers of files. */
#include <string.h>
#include "base/fmt.h"
#include "deliver/redundant.h"
#include "mpi/file/file.h"

int file_leave(struct file *f, int rc, const char *function)
{
	profile_leave();
	guard_leave();
	if (LIKELY(rc == MPI_SUCCESS))
		return rc;
	return f ? errhandler_run(f->errhandler, ERRHANDLER_FILE, f, rc, function)
		 : errhandler_file_error(rc, function);
}

/* ---- hints ---- */

static uint8_t choice_of(const char *value)
{
	if (!strcmp(value, "enable") || !strcmp(value, "true"))
		return IO_ENABLE;
	return !strcmp(value, "disable") || !strcmp(value, "false") ? IO_DISABLE : IO_AUTOMATIC;
}

static const char *choice_name(uint8_t choice)
{
	static const char *const names[] = {"automatic", "enable", "disable"};
	return names[choice];
}

/* The hints that are sizes, and those that are choices. */
static const struct hint_name {
	const char *name;
	size_t at; /* in struct io_hints */
	bool choice;
} hint_names[] = {
    {"cb_buffer_size", offsetof(struct io_hints, buffer), false},
    {"ind_rd_buffer_size", offsetof(struct io_hints, sieve_read), false},
    {"ind_wr_buffer_size", offsetof(struct io_hints, sieve_write), false},
    {"romio_cb_read", offsetof(struct io_hints, collect_reads), true},
    {"romio_cb_write", offsetof(struct io_hints, collect_writes), true},
    {"romio_ds_read", offsetof(struct io_hints, sieve_reads), true},
    {"romio_ds_write", offsetof(struct io_hints, sieve_writes), true},
};

static void hint_take(struct io_hints *h, const struct hint_name *n, const char *value)
{
	char *at = (char *)h + n->at;
	uint64_t bytes;
	if (n->choice)
		*(uint8_t *)at = choice_of(value);
	else if (units_parse_bytes(value, &bytes) && bytes >= 4096 && bytes <= 1u << 30)
		*(size_t *)(void *)at = (size_t)bytes;
}

static void hints_take(struct io_hints *h, const struct info *i)
{
	uint64_t n;
	const char *value;
	for (size_t k = 0; k < ARRAY_LEN(hint_names); k++)
		if (i && (value = info_get(i, hint_names[k].name)))
			hint_take(h, &hint_names[k], value);
	value = i ? info_get(i, "cb_nodes") : NULL;
	if (value && units_parse_bytes(value, &n) && n > 0 && n <= 1u << 20)
		h->aggregators = (int)n;
	value = i ? info_get(i, "collective_buffering") : NULL;
	if (value)
		h->collect_reads = h->collect_writes = choice_of(value);
}

static int hints_give(const struct io_hints *h, struct info *i)
{
	char text[32];
	fmt_print(text, sizeof(text), "%d", h->aggregators);
	int rc = info_set(i, "cb_nodes", text);
	for (size_t k = 0; k < ARRAY_LEN(hint_names) && !rc; k++) {
		const char *at = (const char *)h + hint_names[k].at;
		fmt_print(text, sizeof(text), "%lu",
			  hint_names[k].choice ? 0ul
					       : (unsigned long)*(const size_t *)(const void *)at);
		rc = info_set(i, hint_names[k].name,
			      hint_names[k].choice ? choice_name(*(const uint8_t *)at) : text);
	}
	return rc;
}

/* The same hints everywhere: what the first member says of how all work together. A member whose
 * arguments are wrong tells the others: error. */
static int hints_agree(struct io_hints *h, struct comm *c, int error)
{
	int all = error, rc;
	rc = coll_allreduce(&error, &all, 1, datatype_of(MPI_INT), (struct op *)MPI_MAX, c);
	if (!rc && !all)
		rc = coll_bcast(h, sizeof(*h), datatype_of(MPI_BYTE), 0, c);
	return rc ? rc : error ? error : all;
}

static int info_check(MPI_Info info)
{
	return info == MPI_INFO_NULL || info_ok(info_of(info)) ? MPI_SUCCESS : MPI_ERR_INFO;
}

int PMPI_File_set_info(MPI_File fh, MPI_Info info)
{
	FILE_ENTER("MPI_File_set_info", f, fh);
	int rc = info_check(info);
	struct io_hints hints = f->hints;
	hints_take(&hints, rc || info == MPI_INFO_NULL ? NULL : info_of(info));
	/* who does the collective work was settled when the file was opened */
	hints.aggregators = f->hints.aggregators;
	rc = hints_agree(&hints, f->comm, rc);
	if (!rc)
		f->hints = hints;
	return FILE_LEAVE(f, rc);
}
API_ALIAS(File_set_info);

int PMPI_File_get_info(MPI_File fh, MPI_Info *info_used)
{
	FILE_ENTER("MPI_File_get_info", f, fh);
	if (!info_used)
		return FILE_LEAVE(f, MPI_ERR_ARG);
	struct info *i = info_new();
	int rc = i ? hints_give(&f->hints, i) : MPI_ERR_NO_MEM;
	if (rc)
		info_release(i);
	else
		*info_used = info_handle(i);
	return FILE_LEAVE(f, rc);
}
API_ALIAS(File_get_info);

/* ---- open, close ---- */

static int amode_check(int amode)
{
	int access = amode & (MPI_MODE_RDONLY | MPI_MODE_WRONLY | MPI_MODE_RDWR);
	int all = MPI_MODE_RDONLY | MPI_MODE_WRONLY | MPI_MODE_RDWR | MPI_MODE_CREATE |
		  MPI_MODE_EXCL | MPI_MODE_DELETE_ON_CLOSE | MPI_MODE_UNIQUE_OPEN |
		  MPI_MODE_SEQUENTIAL | MPI_MODE_APPEND;
	if (amode & ~all || !access || access & (access - 1))
		return MPI_ERR_AMODE;
	if (access == MPI_MODE_RDONLY && amode & (MPI_MODE_CREATE | MPI_MODE_EXCL))
		return MPI_ERR_AMODE;
	return access == MPI_MODE_RDWR && amode & MPI_MODE_SEQUENTIAL ? MPI_ERR_AMODE : MPI_SUCCESS;
}

static int file_open(struct comm *c, const char *filename, int amode, const struct info *info,
		     int error, struct file **out)
{
	struct comm *own, *pointer = NULL;
	struct io_hints hints;
	int rc = comm_make(c, c->group, &own);
	if (rc)
		return rc;
	if (c->size > 1)
		rc = comm_make(c, c->group, &pointer);
	io_hints_default(&hints);
	hints_take(&hints, info);
	if (!rc)
		rc = hints_agree(&hints, own, error);
	if (!rc)
		rc = io_open(own, pointer, filename, amode, &hints, out);
	if (rc) {
		if (pointer)
			comm_end(pointer);
		comm_end(own);
		return rc;
	}
	struct errhandler *e = errhandler_file_default();
	object_retain(&e->obj);
	(*out)->errhandler = e;
	(*out)->pointer_comm = pointer;
	return MPI_SUCCESS;
}

int PMPI_File_open(MPI_Comm comm, const char *filename, int amode, MPI_Info info, MPI_File *fh)
{
	API_ENTER("MPI_File_open");
	struct comm *c = comm_of(comm);
	struct file *f = NULL;
	if (!comm_ok(c))
		return FILE_LEAVE(NULL, MPI_ERR_COMM);
	if (comm_is_inter(c))
		return FILE_LEAVE(NULL, MPI_ERR_COMM);
	int rc = !fh || !filename ? MPI_ERR_ARG : info_check(info);
	if (fh)
		*fh = MPI_FILE_NULL;
	if (!rc && UNLIKELY(redundant_on)) {
		log_warn("rank %u opens %s: MPI-IO doesn't go with --replicas; run the job without",
			 link_self()->rank, filename);
		rc = MPI_ERR_UNSUPPORTED_OPERATION;
	}
	if (!rc)
		rc = amode_check(amode);
	rc = file_open(c, filename, amode, rc || info == MPI_INFO_NULL ? NULL : info_of(info), rc,
		       &f);
	if (!rc)
		*fh = file_handle(f);
	return FILE_LEAVE(NULL, rc);
}
API_ALIAS(File_open);

int PMPI_File_close(MPI_File *fh)
{
	API_ENTER("MPI_File_close");
	struct file *f = fh ? file_of(*fh) : NULL;
	if (!file_ok(f))
		return FILE_LEAVE(NULL, MPI_ERR_FILE);
	int rc = io_close(f);
	if (f->pointer_comm)
		comm_end(f->pointer_comm);
	comm_end(f->comm);
	struct errhandler *e = f->errhandler;
	object_forget_fortran(&f->obj);
	f->obj.kind = OBJECT_FREED;
	heap_free(f);
	*fh = MPI_FILE_NULL;
	profile_leave();
	guard_leave();
	if (rc)
		errhandler_run(e, ERRHANDLER_FILE, MPI_FILE_NULL, rc, api_name);
	guard_enter();
	errhandler_release(e);
	guard_leave();
	return rc;
}
API_ALIAS(File_close);

int PMPI_File_delete(const char *filename, MPI_Info info)
{
	API_ENTER("MPI_File_delete");
	if (!filename)
		return FILE_LEAVE(NULL, MPI_ERR_ARG);
	int rc = info_check(info);
	return FILE_LEAVE(NULL, rc ? rc : io_delete(filename));
}
API_ALIAS(File_delete);

/* ---- error handlers; MPI_FILE_NULL stands for the default of files to come ---- */

int PMPI_File_set_errhandler(MPI_File file, MPI_Errhandler errhandler)
{
	API_ENTER("MPI_File_set_errhandler");
	struct file *f = file == MPI_FILE_NULL ? NULL : file_of(file);
	struct errhandler *e = errhandler_of(errhandler);
	if (file != MPI_FILE_NULL && !file_ok(f))
		return FILE_LEAVE(NULL, MPI_ERR_FILE);
	if (!errhandler_fits(e, ERRHANDLER_FILE))
		return FILE_LEAVE(f, MPI_ERR_ARG);
	if (f) {
		object_retain(&e->obj);
		errhandler_release(f->errhandler);
		f->errhandler = e;
	} else {
		errhandler_file_default_set(e);
	}
	return FILE_LEAVE(f, MPI_SUCCESS);
}
API_ALIAS(File_set_errhandler);

int PMPI_File_get_errhandler(MPI_File file, MPI_Errhandler *errhandler)
{
	API_ENTER("MPI_File_get_errhandler");
	struct file *f = file == MPI_FILE_NULL ? NULL : file_of(file);
	if (file != MPI_FILE_NULL && !file_ok(f))
		return FILE_LEAVE(NULL, MPI_ERR_FILE);
	if (!errhandler)
		return FILE_LEAVE(f, MPI_ERR_ARG);
	struct errhandler *e = f ? f->errhandler : errhandler_file_default();
	object_retain(&e->obj);
	*errhandler = errhandler_handle(e);
	return FILE_LEAVE(f, MPI_SUCCESS);
}
API_ALIAS(File_get_errhandler);

int PMPI_File_call_errhandler(MPI_File file, int errorcode)
{
	API_ENTER("MPI_File_call_errhandler");
	struct file *f = file == MPI_FILE_NULL ? NULL : file_of(file);
	if (file != MPI_FILE_NULL && !file_ok(f))
		return FILE_LEAVE(NULL, MPI_ERR_FILE);
	file_leave(f, errorcode, api_name);
	return MPI_SUCCESS;
}
API_ALIAS(File_call_errhandler);
