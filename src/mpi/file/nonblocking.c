/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads and writes that return a request. The kernel copies at once, so the request is complete
 * when it is made. Collective ones are each member's own transfer: they must not wait for the
 * others, who may wait for this one. */
#include "mpi/file/file.h"

int PMPI_File_iread_at(MPI_File fh, MPI_Offset offset, void *buf, int count, MPI_Datatype datatype,
		       MPI_Request *request)
{
	FILE_ENTER("MPI_File_iread_at", f, fh);
	return FILE_LEAVE(f, file_imove(f, 0, IO_AT, offset, buf, count, datatype, request));
}
API_ALIAS(File_iread_at);

int PMPI_File_iwrite_at(MPI_File fh, MPI_Offset offset, const void *buf, int count,
			MPI_Datatype datatype, MPI_Request *request)
{
	FILE_ENTER("MPI_File_iwrite_at", f, fh);
	return FILE_LEAVE(f,
			  file_imove(f, FILE_WRITE, IO_AT, offset, buf, count, datatype, request));
}
API_ALIAS(File_iwrite_at);

int PMPI_File_iread_at_all(MPI_File fh, MPI_Offset offset, void *buf, int count,
			   MPI_Datatype datatype, MPI_Request *request)
{
	FILE_ENTER("MPI_File_iread_at_all", f, fh);
	return FILE_LEAVE(f, file_imove(f, 0, IO_AT, offset, buf, count, datatype, request));
}
API_ALIAS(File_iread_at_all);

int PMPI_File_iwrite_at_all(MPI_File fh, MPI_Offset offset, const void *buf, int count,
			    MPI_Datatype datatype, MPI_Request *request)
{
	FILE_ENTER("MPI_File_iwrite_at_all", f, fh);
	return FILE_LEAVE(f,
			  file_imove(f, FILE_WRITE, IO_AT, offset, buf, count, datatype, request));
}
API_ALIAS(File_iwrite_at_all);

int PMPI_File_iread(MPI_File fh, void *buf, int count, MPI_Datatype datatype, MPI_Request *request)
{
	FILE_ENTER("MPI_File_iread", f, fh);
	return FILE_LEAVE(f, file_imove(f, 0, IO_OWN, 0, buf, count, datatype, request));
}
API_ALIAS(File_iread);

int PMPI_File_iwrite(MPI_File fh, const void *buf, int count, MPI_Datatype datatype,
		     MPI_Request *request)
{
	FILE_ENTER("MPI_File_iwrite", f, fh);
	return FILE_LEAVE(f, file_imove(f, FILE_WRITE, IO_OWN, 0, buf, count, datatype, request));
}
API_ALIAS(File_iwrite);

int PMPI_File_iread_all(MPI_File fh, void *buf, int count, MPI_Datatype datatype,
			MPI_Request *request)
{
	FILE_ENTER("MPI_File_iread_all", f, fh);
	return FILE_LEAVE(f, file_imove(f, 0, IO_OWN, 0, buf, count, datatype, request));
}
API_ALIAS(File_iread_all);

int PMPI_File_iwrite_all(MPI_File fh, const void *buf, int count, MPI_Datatype datatype,
			 MPI_Request *request)
{
	FILE_ENTER("MPI_File_iwrite_all", f, fh);
	return FILE_LEAVE(f, file_imove(f, FILE_WRITE, IO_OWN, 0, buf, count, datatype, request));
}
API_ALIAS(File_iwrite_all);

int PMPI_File_iread_shared(MPI_File fh, void *buf, int count, MPI_Datatype datatype,
			   MPI_Request *request)
{
	FILE_ENTER("MPI_File_iread_shared", f, fh);
	return FILE_LEAVE(f, file_imove(f, 0, IO_SHARED, 0, buf, count, datatype, request));
}
API_ALIAS(File_iread_shared);

int PMPI_File_iwrite_shared(MPI_File fh, const void *buf, int count, MPI_Datatype datatype,
			    MPI_Request *request)
{
	FILE_ENTER("MPI_File_iwrite_shared", f, fh);
	return FILE_LEAVE(f,
			  file_imove(f, FILE_WRITE, IO_SHARED, 0, buf, count, datatype, request));
}
API_ALIAS(File_iwrite_shared);
