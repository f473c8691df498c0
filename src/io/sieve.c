/* SPDX-License-Identifier: BSD-3-Clause */
/* Data sieving: small pieces of one process are moved together with what lies between them, by one
 * call. A write reads the gaps first and writes them back (writers.c: nobody else writes there
 * meanwhile). */
#include <string.h>
#include "io/internal.h"

enum {
	FEW = 8,	     /* fewer pieces are written by a call each */
	GAP_MOST = 4 << 10,  /* a gap below that has no block of its own: nothing is allocated */
	STEP_MOST = 4 << 10, /* longer steps cost more to copy than a call each */
	DENSE =
	    128 << 10, /* a window of reads that touches few new pages, and stays in the cache */
	PIECES = 4096, /* at once */
	PLAIN_PIECES = 256, /* without a window */
};

/* One call for each piece. */
static int each_write(struct file *f, const struct io_piece *piece, size_t n, const char *p,
		      size_t *done)
{
	uint64_t begin = UINT64_MAX, end = 0;
	size_t moved;
	int rc = MPI_SUCCESS;
	for (size_t i = 0; i < n; i++) {
		uint64_t to = piece[i].offset + piece[i].length;
		begin = piece[i].offset < begin ? piece[i].offset : begin;
		end = to > end ? to : end;
	}
	io_writing(f, begin, end);
	for (size_t i = 0; i < n && !rc; i++) {
		rc = io_write_at(f, piece[i].offset, p + *done, piece[i].length, &moved);
		*done += moved;
	}
	io_written();
	return rc;
}

/* ---- writes ---- */

/* How many pieces from the first on go into the window, and whether they should. */
static size_t write_group(const struct io_sieve *s, const struct io_piece *piece, size_t n,
			  uint64_t *span, bool *good)
{
	uint64_t begin = piece[0].offset, end = begin + piece[0].length;
	size_t i = 1;
	for (; i < n; i++) {
		uint64_t to = piece[i].offset + piece[i].length;
		if (piece[i].offset < end || piece[i].offset - end >= GAP_MOST ||
		    to - begin > s->bytes)
			break;
		end = to;
	}
	*span = end - begin;
	*good = s->window && i >= FEW && (s->wanted || *span / i <= STEP_MOST);
	return i;
}

static int window_write(struct file *f, const struct io_sieve *s, const struct io_piece *piece,
			size_t n, uint64_t span, const char *p, size_t *done)
{
	uint64_t begin = piece[0].offset;
	size_t moved;
	int rc = io_read_at(f, begin, s->window, span, &moved);
	if (rc)
		return rc;
	memset(s->window + moved, 0, span - moved);
	for (size_t i = 0, at = *done; i < n; at += piece[i++].length)
		memcpy(s->window + (piece[i].offset - begin), p + at, piece[i].length);
	rc = io_write_at(f, begin, s->window, span, &moved);
	for (size_t i = 0; i < n; i++) {
		uint64_t from = piece[i].offset - begin, have = moved > from ? moved - from : 0;
		*done += have < piece[i].length ? have : piece[i].length;
	}
	return rc;
}

static int pieces_write(struct file *f, const struct io_sieve *s, size_t n, const char *p,
			size_t *done)
{
	const struct io_piece *piece = s->piece;
	int rc = MPI_SUCCESS;
	for (size_t i = 0, to; i < n && !rc; i = to) {
		uint64_t begin = piece[i].offset, span, other;
		bool good;
		to = i + write_group(s, piece + i, n - i, &span, &good);
		if (good) {
			io_writing_with_gaps(f, begin, begin + span);
			rc = window_write(f, s, piece + i, to - i, span, p, done);
			io_written();
			continue;
		}
		while (to < n) {
			size_t more = write_group(s, piece + to, n - to, &other, &good);
			if (good)
				break;
			to += more;
		}
		rc = each_write(f, piece + i, to - i, p, done);
	}
	return rc;
}

/* ---- reads ---- */

/* How many pieces from the first on are better read at once, with what lies between them. */
static size_t read_group(const struct io_sieve *s, const struct io_piece *piece, size_t n,
			 uint64_t *span)
{
	size_t useful = piece[0].length, i = 1;
	*span = piece[0].length;
	for (; i < n && s->window; i++) {
		uint64_t to = piece[i].offset + piece[i].length - piece[0].offset;
		useful += piece[i].length;
		bool sparse = useful * 4 < to && to / (i + 1) > STEP_MOST;
		if (piece[i].offset < piece[0].offset || to > s->bytes || (sparse && !s->wanted) ||
		    piece[i].length > s->bytes / 8)
			break;
		*span = to > *span ? to : *span;
	}
	return i;
}

/* *done grows by what there was; *end: the file ended. */
static int pieces_read(struct file *f, const struct io_sieve *s, size_t n, char *p, size_t *done,
		       bool *end)
{
	const struct io_piece *piece = s->piece;
	int rc = MPI_SUCCESS;
	for (size_t i = 0, group; i < n && !rc && !*end; i += group) {
		uint64_t span;
		size_t moved;
		group = read_group(s, piece + i, n - i, &span);
		bool one = group == 1;
		rc = io_read_at(f, piece[i].offset, one ? p + *done : s->window,
				one ? piece[i].length : span, &moved);
		for (size_t k = i; k < i + group && !rc && !*end; k++) {
			size_t from = piece[k].offset - piece[i].offset;
			size_t have = moved > from ? moved - from : 0;
			size_t len = have < piece[k].length ? have : piece[k].length;
			if (!one)
				memcpy(p + *done, s->window + from, len);
			*done += len;
			*end = len < piece[k].length;
		}
	}
	return rc;
}

/* A window at a time, out of which the datatype engine takes what the view shows. */
static int dense_read(struct file *f, const struct io_sieve *s, size_t at, char *p, size_t bytes,
		      size_t *done, bool *end)
{
	const struct io_view *v = &f->view;
	int rc = MPI_SUCCESS;
	while (*done < bytes && !rc && !*end) {
		size_t from = at + *done, moved;
		uint64_t begin = (uint64_t)io_view_place(v, from);
		size_t to = io_view_find(v, begin + s->bytes, from, at + bytes);
		uint64_t span = (uint64_t)io_view_place(v, to - 1) + 1 - begin;
		rc = io_read_at(f, begin, s->window, span, &moved);
		*end = !rc && moved < span;
		if (moved < span)
			to = io_view_find(v, begin + moved, from, to);
		/* as if the file were in memory, with this window in its place */
		const char *file = s->window - (ptrdiff_t)begin + v->disp;
		datatype_pack(v->tile, file, to / v->tile->size + 1, from, p + *done, to - from);
		*done += to - from;
	}
	return rc;
}

/* ---- both ---- */

void io_sieve_make(struct io_sieve *s, const struct file *f, size_t at, size_t bytes, bool write)
{
	const struct datatype *t = f->view.tile;
	uint8_t choice = write ? f->hints.sieve_writes : f->hints.sieve_reads;
	*s = (struct io_sieve){.bytes = write ? f->hints.sieve_write : f->hints.sieve_read,
			       .wanted = choice == IO_ENABLE};
	if (t->contiguous || choice == IO_DISABLE || (write && !io_knows_writers(f)))
		return;
	size_t pieces = 1 + bytes / t->size * t->nblocks;
	if (write && pieces < FEW)
		return;
	if (f->view.ordered) {
		uint64_t span = (uint64_t)io_view_place(&f->view, at + bytes - 1) + 1 -
				(uint64_t)io_view_place(&f->view, at);
		bool sparse = bytes < span / 4 && span / pieces > STEP_MOST;
		s->dense = !write && (!sparse || s->wanted) && bytes / pieces <= DENSE / 8;
		uint64_t most = s->dense && s->bytes > DENSE ? DENSE : s->bytes;
		s->bytes = span < most ? span : most;
	}
	s->max = s->dense ? 0 : pieces < PIECES ? pieces + 1 : PIECES;
	s->piece = heap_alloc(s->max * sizeof(*s->piece) + s->bytes);
	if (s->piece) /* else: one call for each */
		s->window = (char *)(s->piece + s->max);
	s->heap = s->piece;
}

void io_sieve_end(struct io_sieve *s)
{
	heap_free(s->heap);
}

int io_sieve_move(struct file *f, struct io_sieve *s, size_t at, char *p, size_t bytes, bool write,
		  size_t *done, bool *end)
{
	struct io_piece few[PLAIN_PIECES];
	int rc = MPI_SUCCESS;
	*done = 0;
	if (s->dense && s->window)
		return dense_read(f, s, at, p, bytes, done, end);
	if (!s->heap) {
		s->piece = few;
		s->max = ARRAY_LEN(few);
	}
	while (*done < bytes && !rc && !*end) {
		size_t from = *done, n = 0, covered = 1;
		while (from < bytes && n < s->max && covered) {
			n += io_pieces(&f->view, at + from, bytes - from, s->piece + n, s->max - n,
				       &covered);
			from += covered;
		}
		rc = write ? pieces_write(f, s, n, p, done) : pieces_read(f, s, n, p, done, end);
	}
	return rc;
}
