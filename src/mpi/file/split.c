/* SPDX-License-Identifier: BSD-3-Clause */
/* Split collectives: begin does the work, end tells what came of it. One may be under way at a time
 * on a file (MPI-3.1 13.4.5). */
#include "mpi/file/file.h"

enum split { SPLIT_AT = 1, SPLIT_OWN, SPLIT_ORDERED, SPLIT_WRITE = 4 };

static int begin(struct file *f, unsigned kind, enum io_where where, MPI_Offset at, const void *buf,
		 int count, MPI_Datatype type)
{
	MPI_Status st = {0};
	if (f->split)
		return MPI_ERR_OTHER;
	unsigned what = FILE_ALL | (kind & SPLIT_WRITE ? FILE_WRITE : 0);
	int rc = file_move(f, what, where, at, buf, count, type, &st);
	if (rc)
		return rc;
	f->split = true;
	f->split_kind = (uint8_t)kind;
	f->split_buf = buf;
	f->split_done = st._ucount;
	return MPI_SUCCESS;
}

static int end(struct file *f, unsigned kind, const void *buf, MPI_Status *status)
{
	if (!f->split || f->split_kind != kind)
		return MPI_ERR_OTHER;
	if (f->split_buf != buf)
		return MPI_ERR_BUFFER;
	f->split = false;
	if (status != MPI_STATUS_IGNORE) {
		status->_ucount = f->split_done;
		status->_cancelled = 0;
	}
	return MPI_SUCCESS;
}

int PMPI_File_read_at_all_begin(MPI_File fh, MPI_Offset offset, void *buf, int count,
				MPI_Datatype datatype)
{
	FILE_ENTER("MPI_File_read_at_all_begin", f, fh);
	return FILE_LEAVE(f, begin(f, SPLIT_AT, IO_AT, offset, buf, count, datatype));
}
API_ALIAS(File_read_at_all_begin);

int PMPI_File_read_at_all_end(MPI_File fh, void *buf, MPI_Status *status)
{
	FILE_ENTER("MPI_File_read_at_all_end", f, fh);
	return FILE_LEAVE(f, end(f, SPLIT_AT, buf, status));
}
API_ALIAS(File_read_at_all_end);

int PMPI_File_write_at_all_begin(MPI_File fh, MPI_Offset offset, const void *buf, int count,
				 MPI_Datatype datatype)
{
	FILE_ENTER("MPI_File_write_at_all_begin", f, fh);
	return FILE_LEAVE(f, begin(f, SPLIT_AT | SPLIT_WRITE, IO_AT, offset, buf, count, datatype));
}
API_ALIAS(File_write_at_all_begin);

int PMPI_File_write_at_all_end(MPI_File fh, const void *buf, MPI_Status *status)
{
	FILE_ENTER("MPI_File_write_at_all_end", f, fh);
	return FILE_LEAVE(f, end(f, SPLIT_AT | SPLIT_WRITE, buf, status));
}
API_ALIAS(File_write_at_all_end);

int PMPI_File_read_all_begin(MPI_File fh, void *buf, int count, MPI_Datatype datatype)
{
	FILE_ENTER("MPI_File_read_all_begin", f, fh);
	return FILE_LEAVE(f, begin(f, SPLIT_OWN, IO_OWN, 0, buf, count, datatype));
}
API_ALIAS(File_read_all_begin);

int PMPI_File_read_all_end(MPI_File fh, void *buf, MPI_Status *status)
{
	FILE_ENTER("MPI_File_read_all_end", f, fh);
	return FILE_LEAVE(f, end(f, SPLIT_OWN, buf, status));
}
API_ALIAS(File_read_all_end);

int PMPI_File_write_all_begin(MPI_File fh, const void *buf, int count, MPI_Datatype datatype)
{
	FILE_ENTER("MPI_File_write_all_begin", f, fh);
	return FILE_LEAVE(f, begin(f, SPLIT_OWN | SPLIT_WRITE, IO_OWN, 0, buf, count, datatype));
}
API_ALIAS(File_write_all_begin);

int PMPI_File_write_all_end(MPI_File fh, const void *buf, MPI_Status *status)
{
	FILE_ENTER("MPI_File_write_all_end", f, fh);
	return FILE_LEAVE(f, end(f, SPLIT_OWN | SPLIT_WRITE, buf, status));
}
API_ALIAS(File_write_all_end);

int PMPI_File_read_ordered_begin(MPI_File fh, void *buf, int count, MPI_Datatype datatype)
{
	FILE_ENTER("MPI_File_read_ordered_begin", f, fh);
	return FILE_LEAVE(f, begin(f, SPLIT_ORDERED, IO_SHARED, 0, buf, count, datatype));
}
API_ALIAS(File_read_ordered_begin);

int PMPI_File_read_ordered_end(MPI_File fh, void *buf, MPI_Status *status)
{
	FILE_ENTER("MPI_File_read_ordered_end", f, fh);
	return FILE_LEAVE(f, end(f, SPLIT_ORDERED, buf, status));
}
API_ALIAS(File_read_ordered_end);

int PMPI_File_write_ordered_begin(MPI_File fh, const void *buf, int count, MPI_Datatype datatype)
{
	FILE_ENTER("MPI_File_write_ordered_begin", f, fh);
	return FILE_LEAVE(
	    f, begin(f, SPLIT_ORDERED | SPLIT_WRITE, IO_SHARED, 0, buf, count, datatype));
}
API_ALIAS(File_write_ordered_begin);

int PMPI_File_write_ordered_end(MPI_File fh, const void *buf, MPI_Status *status)
{
	FILE_ENTER("MPI_File_write_ordered_end", f, fh);
	return FILE_LEAVE(f, end(f, SPLIT_ORDERED | SPLIT_WRITE, buf, status));
}
API_ALIAS(File_write_ordered_end);
