/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads and writes: blocking ones. */
#include "mpi/file/file.h"

/* What a transfer needs to be right about. */
static int move_check(const struct file *f, unsigned what, enum io_where where, MPI_Offset at,
		      const void *buf, int count, const struct datatype *t)
{
	int rc = check_buffer(buf, count, t);
	if (rc)
		return rc;
	if (f->amode & MPI_MODE_SEQUENTIAL && where != IO_SHARED)
		return MPI_ERR_UNSUPPORTED_OPERATION;
	if (what & FILE_WRITE && f->amode & MPI_MODE_RDONLY)
		return MPI_ERR_READ_ONLY;
	if (!(what & FILE_WRITE) && f->amode & MPI_MODE_WRONLY)
		return MPI_ERR_ACCESS;
	if (where == IO_AT && at < 0)
		return MPI_ERR_ARG;
	/* whole element types only */
	return io_bytes(f, t, (size_t)count) % f->view.etype_bytes ? MPI_ERR_IO : MPI_SUCCESS;
}

static int move(struct file *f, unsigned what, enum io_where where, MPI_Offset at, const void *buf,
		int count, MPI_Datatype type, size_t *done)
{
	struct datatype *t = datatype_of(type);
	struct io_call c = {.write = what & FILE_WRITE,
			    .collective = what & FILE_ALL,
			    .where = (uint8_t)where,
			    .error = move_check(f, what, where, at, buf, count, t)};
	*done = 0;
	if (c.error && !c.collective)
		return c.error;
	if (!c.error) {
		c.at = where == IO_AT ? (size_t)at * f->view.etype_bytes : 0;
		c.buf = (void *)(uintptr_t)buf;
		c.count = (size_t)count;
		c.type = t;
	}
	return io_run(f, &c, done);
}

static void status_fill(MPI_Status *st, size_t bytes)
{
	st->_ucount = bytes;
	st->_cancelled = 0;
}

int file_move(struct file *f, unsigned what, enum io_where where, MPI_Offset at, const void *buf,
	      int count, MPI_Datatype type, MPI_Status *status)
{
	size_t done;
	int rc = move(f, what, where, at, buf, count, type, &done);
	if (status != MPI_STATUS_IGNORE)
		status_fill(status, done);
	return rc;
}

int file_imove(struct file *f, unsigned what, enum io_where where, MPI_Offset at, const void *buf,
	       int count, MPI_Datatype type, MPI_Request *request)
{
	size_t done;
	if (!request)
		return MPI_ERR_REQUEST;
	int rc = move(f, what, where, at, buf, count, type, &done);
	if (rc)
		return rc;
	struct request *r = match_request_new(REQUEST_COLL, NULL);
	if (!r)
		return MPI_ERR_NO_MEM;
	status_fill(&r->status, done);
	request_complete(r, MPI_SUCCESS);
	*request = request_handle(r);
	return MPI_SUCCESS;
}

/* ---- explicit offsets, the individual pointer, the shared one ---- */

int PMPI_File_read_at(MPI_File fh, MPI_Offset offset, void *buf, int count, MPI_Datatype datatype,
		      MPI_Status *status)
{
	FILE_ENTER("MPI_File_read_at", f, fh);
	return FILE_LEAVE(f, file_move(f, 0, IO_AT, offset, buf, count, datatype, status));
}
API_ALIAS(File_read_at);

int PMPI_File_write_at(MPI_File fh, MPI_Offset offset, const void *buf, int count,
		       MPI_Datatype datatype, MPI_Status *status)
{
	FILE_ENTER("MPI_File_write_at", f, fh);
	return FILE_LEAVE(f, file_move(f, FILE_WRITE, IO_AT, offset, buf, count, datatype, status));
}
API_ALIAS(File_write_at);

int PMPI_File_read_at_all(MPI_File fh, MPI_Offset offset, void *buf, int count,
			  MPI_Datatype datatype, MPI_Status *status)
{
	FILE_ENTER("MPI_File_read_at_all", f, fh);
	return FILE_LEAVE(f, file_move(f, FILE_ALL, IO_AT, offset, buf, count, datatype, status));
}
API_ALIAS(File_read_at_all);

int PMPI_File_write_at_all(MPI_File fh, MPI_Offset offset, const void *buf, int count,
			   MPI_Datatype datatype, MPI_Status *status)
{
	FILE_ENTER("MPI_File_write_at_all", f, fh);
	return FILE_LEAVE(
	    f, file_move(f, FILE_WRITE | FILE_ALL, IO_AT, offset, buf, count, datatype, status));
}
API_ALIAS(File_write_at_all);

int PMPI_File_read(MPI_File fh, void *buf, int count, MPI_Datatype datatype, MPI_Status *status)
{
	FILE_ENTER("MPI_File_read", f, fh);
	return FILE_LEAVE(f, file_move(f, 0, IO_OWN, 0, buf, count, datatype, status));
}
API_ALIAS(File_read);

int PMPI_File_write(MPI_File fh, const void *buf, int count, MPI_Datatype datatype,
		    MPI_Status *status)
{
	FILE_ENTER("MPI_File_write", f, fh);
	return FILE_LEAVE(f, file_move(f, FILE_WRITE, IO_OWN, 0, buf, count, datatype, status));
}
API_ALIAS(File_write);

int PMPI_File_read_all(MPI_File fh, void *buf, int count, MPI_Datatype datatype, MPI_Status *status)
{
	FILE_ENTER("MPI_File_read_all", f, fh);
	return FILE_LEAVE(f, file_move(f, FILE_ALL, IO_OWN, 0, buf, count, datatype, status));
}
API_ALIAS(File_read_all);

int PMPI_File_write_all(MPI_File fh, const void *buf, int count, MPI_Datatype datatype,
			MPI_Status *status)
{
	FILE_ENTER("MPI_File_write_all", f, fh);
	return FILE_LEAVE(
	    f, file_move(f, FILE_WRITE | FILE_ALL, IO_OWN, 0, buf, count, datatype, status));
}
API_ALIAS(File_write_all);

int PMPI_File_read_shared(MPI_File fh, void *buf, int count, MPI_Datatype datatype,
			  MPI_Status *status)
{
	FILE_ENTER("MPI_File_read_shared", f, fh);
	return FILE_LEAVE(f, file_move(f, 0, IO_SHARED, 0, buf, count, datatype, status));
}
API_ALIAS(File_read_shared);

int PMPI_File_write_shared(MPI_File fh, const void *buf, int count, MPI_Datatype datatype,
			   MPI_Status *status)
{
	FILE_ENTER("MPI_File_write_shared", f, fh);
	return FILE_LEAVE(f, file_move(f, FILE_WRITE, IO_SHARED, 0, buf, count, datatype, status));
}
API_ALIAS(File_write_shared);

int PMPI_File_read_ordered(MPI_File fh, void *buf, int count, MPI_Datatype datatype,
			   MPI_Status *status)
{
	FILE_ENTER("MPI_File_read_ordered", f, fh);
	return FILE_LEAVE(f, file_move(f, FILE_ALL, IO_SHARED, 0, buf, count, datatype, status));
}
API_ALIAS(File_read_ordered);

int PMPI_File_write_ordered(MPI_File fh, const void *buf, int count, MPI_Datatype datatype,
			    MPI_Status *status)
{
	FILE_ENTER("MPI_File_write_ordered", f, fh);
	return FILE_LEAVE(
	    f, file_move(f, FILE_WRITE | FILE_ALL, IO_SHARED, 0, buf, count, datatype, status));
}
API_ALIAS(File_write_ordered);
