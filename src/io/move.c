/* SPDX-License-Identifier: BSD-3-Clause */
/* Transfers by one process: pieces of the file against the user's buffer. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include "ckpt/rank.h"
#include "io/internal.h"

enum { BOUNCE = 4 << 20, CALL_MAX = 1 << 30 };

/* ---- ranges of the file ---- */

/* What no class of the standard describes is said in words, too. */
static int failed(const struct file *f, const char *what, int error)
{
	int class = io_class(-error);
	if (class == MPI_ERR_IO)
		log_warn("rank %u: %s %s failed: %s", link_self()->rank, what, f->path,
			 strerrordesc_np(error));
	return class;
}

int io_write_at(struct file *f, uint64_t offset, const void *p, size_t bytes, size_t *done)
{
	*done = 0;
	if (f->fd < 0)
		return MPI_ERR_NO_SUCH_FILE;
	io_journal(f, offset, bytes);
	while (*done < bytes) {
		size_t n = bytes - *done < CALL_MAX ? bytes - *done : CALL_MAX;
		ssize_t w = pwrite(f->fd, (const char *)p + *done, n, (off_t)(offset + *done));
		if (w < 0 && errno == EINTR)
			continue;
		if (w <= 0)
			return failed(f, "writing", w ? errno : EIO);
		*done += (size_t)w;
	}
	return MPI_SUCCESS;
}

int io_read_at(struct file *f, uint64_t offset, void *p, size_t bytes, size_t *done)
{
	*done = 0;
	if (f->fd < 0)
		return MPI_ERR_NO_SUCH_FILE;
	while (*done < bytes) {
		size_t n = bytes - *done < CALL_MAX ? bytes - *done : CALL_MAX;
		ssize_t r = pread(f->fd, (char *)p + *done, n, (off_t)(offset + *done));
		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return failed(f, "reading", errno);
		if (r == 0)
			break;
		*done += (size_t)r;
	}
	return MPI_SUCCESS;
}

static void lock(struct file *f, uint64_t begin, uint64_t end, short type)
{
	struct flock l = {.l_type = type,
			  .l_whence = SEEK_SET,
			  .l_start = (off_t)begin,
			  .l_len = (off_t)(end - begin)};
	if (!f->atomic || f->fd < 0 || begin >= end)
		return;
	while (fcntl(f->fd, type == F_UNLCK ? F_OFD_SETLK : F_OFD_SETLKW, &l) && errno == EINTR)
		;
}

void io_lock(struct file *f, uint64_t begin, uint64_t end, bool write)
{
	lock(f, begin, end, write ? F_WRLCK : F_RDLCK);
}

void io_unlock(struct file *f, uint64_t begin, uint64_t end)
{
	lock(f, begin, end, F_UNLCK);
}

/* ---- the user's buffer ---- */

static int chunks_move(struct file *f, const struct io_memory *m, size_t at, bool write,
		       struct io_sieve *sieve, size_t *done)
{
	size_t all;
	char *run = datatype_run(m->type, m->buf, m->count, &all), *bounce = NULL;
	size_t chunk = run ? m->bytes : m->bytes < BOUNCE ? m->bytes : BOUNCE, moved;
	int rc = MPI_SUCCESS;
	bool end = false;
	if (!run && !(bounce = heap_alloc(chunk)))
		return MPI_ERR_NO_MEM;
	while (*done < m->bytes && !rc && !end) {
		size_t n = m->bytes - *done < chunk ? m->bytes - *done : chunk;
		if (bounce && write)
			datatype_pack(m->type, m->buf, m->count, *done, bounce, n);
		rc = io_sieve_move(f, sieve, at + *done, run ? run + *done : bounce, n, write,
				   &moved, &end);
		if (bounce && !write)
			datatype_unpack(m->type, m->buf, m->count, *done, bounce, moved);
		*done += moved;
	}
	heap_free(bounce);
	return rc;
}

int io_move_alone(struct file *f, const struct io_memory *m, size_t at, bool write, size_t *done)
{
	*done = 0;
	if (!m->bytes)
		return MPI_SUCCESS;
	struct io_sieve sieve;
	io_sieve_make(&sieve, f, at, m->bytes, write);
	uint64_t begin = 0, end = 0;
	if (f->atomic) {
		begin = (uint64_t)io_view_place(&f->view, at);
		end = (uint64_t)io_view_place(&f->view, at + m->bytes - 1) + 1;
	}
	io_lock(f, begin, end, write);
	int rc = chunks_move(f, m, at, write, &sieve, done);
	io_unlock(f, begin, end);
	io_sieve_end(&sieve);
	return rc;
}

/* ---- a call ---- */

static int memory_of(const struct file *f, const struct io_call *c, struct io_memory *m)
{
	*m = (struct io_memory){
	    .buf = c->buf, .count = c->count, .type = c->type, .bytes = c->count * c->type->size};
	if (f->view.representation != IO_EXTERNAL32 || !m->bytes)
		return MPI_SUCCESS;
	m->bytes = io_bytes(f, c->type, c->count);
	m->converted = heap_alloc(m->bytes);
	if (!m->converted)
		return MPI_ERR_NO_MEM;
	if (c->write && !datatype_pack_external(c->type, c->buf, c->count, m->converted))
		return MPI_ERR_NO_MEM;
	m->buf = m->converted;
	m->count = m->bytes;
	m->type = io_byte();
	return MPI_SUCCESS;
}

/* Whole elements only come out of the file's representation. */
static int memory_back(const struct io_call *c, const struct io_memory *m, size_t *done)
{
	size_t wire = m->bytes / c->count, whole = *done / wire;
	if (!c->write && whole && !datatype_unpack_external(c->type, c->buf, whole, m->converted))
		return MPI_ERR_NO_MEM;
	*done = whole * c->type->size;
	return MPI_SUCCESS;
}

/* Where it begins; pointers move on before the transfer, as others must see it. */
static int begin_at(struct file *f, const struct io_call *c, size_t bytes, size_t *at)
{
	uint64_t before = 0, all = bytes, mine = 0;
	int rc = MPI_SUCCESS;
	if (c->where != IO_SHARED) {
		*at = c->where == IO_AT ? c->at : f->position;
		return MPI_SUCCESS;
	}
	if (!c->collective) {
		rc = io_shared_add(f, bytes, &before);
		*at = (size_t)before;
		return rc;
	}
	/* in the order of ranks, behind each other */
	rc = coll_exscan(&all, &mine, 1, io_u64(), (struct op *)MPI_SUM, f->comm);
	uint64_t last[2] = {f->comm->rank ? mine : 0, 0};
	mine = last[0];
	int total = coll_allreduce(MPI_IN_PLACE, &all, 1, io_u64(), (struct op *)MPI_SUM, f->comm);
	if (!rc && !total && f->comm->rank == 0)
		rc = io_shared_add(f, all, &before);
	int told = coll_bcast(&before, 1, io_u64(), 0, f->comm);
	*at = (size_t)(before + mine);
	return rc ? rc : total ? total : told;
}

int io_run(struct file *f, const struct io_call *c, size_t *done)
{
	struct io_memory m = {.type = io_byte()};
	size_t at = 0;
	int rc = c->error, begun;
	*done = 0;
	if (!rc)
		rc = memory_of(f, c, &m);
	if (rc && !c->collective) {
		heap_free(m.converted);
		return rc;
	}
	if (rc || !f->view.tile->size) /* a view that shows nothing has no room for anything */
		m.bytes = m.count = 0;
	begun = begin_at(f, c, m.bytes, &at);
	rc = rc ? rc : begun;
	if (c->collective)
		rc = io_move_together(f, &m, at, c->write, rc, done);
	else if (!rc)
		rc = io_move_alone(f, &m, at, c->write, done);
	if (c->where == IO_OWN)
		f->position = at + *done;
	if (m.converted && m.bytes && !rc)
		rc = memory_back(c, &m, done);
	heap_free(m.converted);
	return rc;
}
