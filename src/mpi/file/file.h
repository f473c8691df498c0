/* SPDX-License-Identifier: BSD-3-Clause */
/* mpi/file/: the calls on files: argument checks, files as objects. The work is io/'s. This header
 * is for the files of the folder. */
#ifndef HALE_MPI_FILE_FILE_H
#define HALE_MPI_FILE_FILE_H

#include "io/io.h"
#include "mpi/comm/comm.h"

static inline struct file *file_of(MPI_File h)
{
	return (struct file *)h;
}
static inline MPI_File file_handle(struct file *f)
{
	return (MPI_File)f;
}
static inline bool file_ok(const struct file *f)
{
	return LIKELY(object_is(f, OBJECT_FILE));
}

/* As API_LEAVE, with the file's handler; f NULL: there is no good file, so that of MPI_FILE_NULL.
 */
int file_leave(struct file *f, int rc, const char *function);
#define FILE_LEAVE(f, rc) file_leave((f), (rc), api_name)

/* Enters, and leaves if the file isn't one. */
#define FILE_ENTER(name, f, fh)                                                                    \
	API_ENTER(name);                                                                           \
	struct file *f = file_of(fh);                                                              \
	if (!file_ok(f))                                                                           \
	return FILE_LEAVE(NULL, MPI_ERR_FILE)

/* ---- transfer.c ---- */
enum { FILE_WRITE = 1, FILE_ALL = 2 };
/* One transfer. what: FILE_WRITE | FILE_ALL; at: in element types, for IO_AT only. */
int file_move(struct file *f, unsigned what, enum io_where where, MPI_Offset at, const void *buf,
	      int count, MPI_Datatype type, MPI_Status *status);
/* The same as a request that is complete. */
int file_imove(struct file *f, unsigned what, enum io_where where, MPI_Offset at, const void *buf,
	       int count, MPI_Datatype type, MPI_Request *request);

#endif
