/* SPDX-License-Identifier: BSD-3-Clause */
/* io/: files of MPI (MPI-3.1 chapter 13): handles, views, individual and shared pointers, transfers
 * by one process or by all together, what happens to them around an image. May call: rma/, coll/,
 * journal/ and below. Called by: mpi/file, which checks handles. docs/mpi-io.md has the pictures.
 *
 * A view is a stream of bytes: those that its file type shows, in order. Everything here counts in
 * that stream; only bindings know of element types.
 *
 *   stream    0   1   2   3   4   5 …                 (view.c)
 *   file      ├disp┤ ░░ ── ░░ ── ░░ ──                ░░ is what the file type shows
 *
 * All functions return an MPI error class; the caller is inside the library.
 */
#ifndef HALE_IO_IO_H
#define HALE_IO_IO_H

#include "coll/coll.h"
#include "object/datatype.h"
#include "rma/rma.h"

struct errhandler;

enum io_representation { IO_NATIVE, IO_INTERNAL, IO_EXTERNAL32 };

struct io_view {
	MPI_Offset disp;
	struct datatype *etype, *filetype; /* references */
	size_t etype_bytes;		   /* in the file's representation */
	struct datatype *tile;	/* what repeats in the file: filetype, or (external32) its
				 * like with the sizes of that representation. A reference */
	uint8_t representation; /* enum io_representation */
	bool ordered;		/* the stream never goes back in the file: it can be searched */
};

/* How collective transfers go (hints). */
enum io_choice { IO_AUTOMATIC, IO_ENABLE, IO_DISABLE };

struct io_hints {
	size_t buffer;			       /* cb_buffer_size */
	int aggregators;		       /* cb_nodes */
	uint8_t collect_reads, collect_writes; /* enum io_choice: romio_cb_read, romio_cb_write */
	size_t sieve_read, sieve_write;	       /* ind_rd_buffer_size, ind_wr_buffer_size */
	uint8_t sieve_reads, sieve_writes;     /* romio_ds_read, romio_ds_write */
};

struct file {
	struct object obj;
	struct file *next;	   /* all files of this process */
	struct comm *comm;	   /* the file's own */
	struct comm *pointer_comm; /* the shared pointer's; NULL where there is one member */
	struct errhandler *errhandler;
	char *path;    /* whole */
	int amode, fd; /* fd: left out of images */
	bool own;      /* fd is among those */
	bool noted;    /* the journal knows of it since the checkpoint */
	uint64_t device, inode;
	bool readable, local; /* by fd; this machine's kernel has all its bytes */
	bool atomic;
	bool split;	    /* between begin and end of a split collective */
	uint8_t split_kind; /* which one; the bindings' */
	size_t split_done;  /* its result */
	const void *split_buf;
	uint64_t floor; /* bytes that the file had at the checkpoint, or when it was opened since */
	size_t position; /* individual pointer, in the view's stream */
	uint64_t shared; /* rank 0: the shared pointer, in the view's stream */
	struct win *win; /* where the others reach it */
	struct io_view view;
	struct io_hints hints;
	int *aggregators,
	    naggregators; /* ranks that touch the file for all in collective transfers */
};

/* ---- files (file.c) ---- */
/* Collective over comm, which becomes the file's if that succeeds, as pointer_comm does, which has
 * the same members and is for the shared pointer's messages (NULL where there is one member). */
int io_open(struct comm *comm, struct comm *pointer_comm, const char *path, int amode,
	    const struct io_hints *hints, struct file **out);
void io_hints_default(struct io_hints *h);
/* Collective. The object itself stays, for the caller to free; comm is the caller's again. */
int io_close(struct file *f);
int io_delete(const char *path);
int io_get_size(struct file *f, uint64_t *bytes);
/* Collective, as are io_set_view and io_seek. error: what is wrong with this process's arguments,
 * of which nothing else is looked at then; the others hear it, and nothing changes. */
int io_set_size(struct file *f, uint64_t bytes, int error);
int io_preallocate(struct file *f, uint64_t bytes, int error);
int io_sync(struct file *f);			   /* collective */
int io_set_atomicity(struct file *f, bool atomic); /* collective */

/* ---- views (view.c) ---- */
/* Collective. Takes its own references; pointers go back to the beginning. disp may be
 * MPI_DISPLACEMENT_CURRENT. */
int io_set_view(struct file *f, MPI_Offset disp, struct datatype *etype, struct datatype *filetype,
		const char *representation, int error);
const char *io_representation_name(const struct io_view *v);
/* Where the byte of the stream lies in the file. */
MPI_Offset io_view_place(const struct io_view *v, size_t at);
/* Bytes of the stream that lie before that byte of the file. */
size_t io_view_before(const struct io_view *v, uint64_t offset);
/* Of count elements in the file's representation. */
size_t io_bytes(const struct file *f, const struct datatype *t, size_t count);

/* ---- transfers (move.c, collect.c, shared.c) ---- */
enum io_where { IO_AT, IO_OWN, IO_SHARED };
struct io_call {
	bool write, collective;
	uint8_t where; /* enum io_where */
	int error;     /* collective: this process can't take part; the others hear it */
	size_t at;     /* IO_AT: in the stream */
	void *buf;
	size_t count;
	struct datatype *type;
};
/* done: bytes of the user's buffer. */
int io_run(struct file *f, const struct io_call *c, size_t *done);
/* Individual (IO_OWN) or shared pointer, in the stream. seek of IO_SHARED is collective. */
int io_seek(struct file *f, uint8_t where, MPI_Offset at, int error);
int io_position(struct file *f, uint8_t where, size_t *at);

#endif
