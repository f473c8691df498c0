/* SPDX-License-Identifier: BSD-3-Clause */
/* What only the files of io/ share. */
#ifndef HALE_IO_INTERNAL_H
#define HALE_IO_INTERNAL_H

#include "io/io.h"

extern struct file *io_files;

static inline struct datatype *io_byte(void)
{
	return (struct datatype *)MPI_BYTE;
}
static inline struct datatype *io_u64(void)
{
	return (struct datatype *)MPI_UINT64_T;
}

/* ---- file.c ---- */
/* The class for -errno, as a system call returned it. */
int io_class(long rc);
/* Everybody gets the largest of all classes. Collective. */
int io_agree(struct file *f, int rc);
/* The same, where the value has to be that of the first member: `differs` is the class if not. A
 * process whose own arguments are wrong says why: error. */
int io_agree_same(struct file *f, uint64_t value, int differs, int error);
/* The descriptor of a file that has none, after a restart: made anew where the path leads. */
void io_file_reopen(struct file *f);
bool io_file_is_there(const struct file *f);
uint64_t io_file_bytes(const struct file *f);
/* As far as this process knows, nobody but the members of f's communicator writes to the file while
 * all of them are in a collective call, and all nodes see its bytes at once. */
bool io_file_sole(const struct file *f);
/* Before bytes of the file change; length 0: only its size does. */
void io_journal(struct file *f, uint64_t offset, uint64_t length);

/* ---- view.c ---- */
struct io_piece {
	uint64_t offset, length;
};
/* Where bytes [at, at + bytes) of the stream lie: at most max pieces, in their order; *covered of
 * the bytes are in them. */
size_t io_pieces(const struct io_view *v, size_t at, size_t bytes, struct io_piece *out, size_t max,
		 size_t *covered);
/* The first byte of the stream in [low, high) that lies at offset or behind it; high: none does. */
size_t io_view_find(const struct io_view *v, uint64_t offset, size_t low, size_t high);
int io_view_init(struct io_view *v);
void io_view_fini(struct io_view *v);

/* ---- move.c: this process alone ---- */
/* The user's buffer as the file will have it. */
struct io_memory {
	char *buf;
	size_t count, bytes;
	const struct datatype *type;
	char *converted; /* external32: heap memory that buf is */
};
/* Whole bytes at an offset of the file; *done of them. Reads end at the end of the file. */
int io_write_at(struct file *f, uint64_t offset, const void *p, size_t bytes, size_t *done);
int io_read_at(struct file *f, uint64_t offset, void *p, size_t bytes, size_t *done);
int io_move_alone(struct file *f, const struct io_memory *m, size_t at, bool write, size_t *done);
/* Atomic mode: nobody else's atomic transfer touches the range meanwhile. No safe point inside. */
void io_lock(struct file *f, uint64_t begin, uint64_t end, bool write);
void io_unlock(struct file *f, uint64_t begin, uint64_t end);

/* ---- sieve.c: pieces of the file against memory in one run ---- */
struct io_sieve {
	struct io_piece *piece;
	size_t max, bytes; /* pieces; of the window */
	char *window;	   /* NULL: one call for each piece */
	void *heap;	   /* what holds both */
	bool wanted;	   /* a hint says so: also where it may be dearer */
	bool dense;	   /* a read for which windows are right from beginning to end */
};
/* For `bytes` of the stream from `at` on, at least one. */
void io_sieve_make(struct io_sieve *s, const struct file *f, size_t at, size_t bytes, bool write);
void io_sieve_end(struct io_sieve *s);
/* Bytes [at, at + bytes) of the stream, some of those, against p. *end: the file ended. */
int io_sieve_move(struct file *f, struct io_sieve *s, size_t at, char *p, size_t bytes, bool write,
		  size_t *done, bool *end);

/* ---- writers.c: what this node's processes write now ---- */
/* All processes of the job see the file's bytes, each other and the journal's clock at once, so
 * gaps may be written along. */
bool io_knows_writers(const struct file *f);
/* Around every write of bytes in [begin, end): may wait for others. No safe point inside. Atomic
 * mode's lock is taken before. */
void io_writing(const struct file *f, uint64_t begin, uint64_t end);
/* The same for who writes all of it, and has read some of it for that in between. */
void io_writing_with_gaps(const struct file *f, uint64_t begin, uint64_t end);
void io_written(void);

/* ---- collect.c: all members together ---- */
int io_move_together(struct file *f, const struct io_memory *m, size_t at, bool write, int error,
		     size_t *done);

/* ---- shared.c ---- */
int io_shared_open(struct file *f, struct comm *own);
int io_shared_close(struct file *f);
/* The shared pointer's value before n was added to it. */
int io_shared_add(struct file *f, uint64_t n, uint64_t *before);
int io_shared_set(struct file *f, uint64_t value); /* collective */

void io_checkpoint_init(void);

#endif
