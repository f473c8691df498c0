/* SPDX-License-Identifier: BSD-3-Clause */
/* Collective transfers in two phases: the range that all members touch is divided between a few of
 * them (aggregators, one of each node), who exchange it with the others by messages and touch the
 * file in large runs.
 *
 *   file      │ domain of the first aggregator     │ domain of the second               │
 *             │ window │ window │ window │ …       │ window │ …                         │
 *             round 0    round 1                   round 0
 *
 * In a round each member sends each aggregator the places in its window that it writes, with the
 * data, or reads. Between two rounds an image may be taken: all of it is in private memory, and in
 * the file is what the journal knows. */
#include <string.h>
#include "ckpt/rank.h"
#include "io/internal.h"

enum {
	SMALL_PIECE = 128 << 10, /* larger ones are as well moved by everybody alone */
	SPARSE = 16,		 /* and so is less than a part of the range in so many */
	GAP = 32 << 10,		 /* read with what is around it, instead of one read more */
	FILL = 4 << 10,		 /* a gap below that is written along: it has no block of its own */
	UNDER = 256 << 10,
	ALIGN = 64 << 10,
	TAG_THERE = 1,
	TAG_BACK = 2,
};

/* What a member tells the others first. */
struct member {
	uint64_t low, high, bytes, pieces, file_bytes;
	int32_t error, ordered, sole; /* sole: gaps may be written along */
};

struct two_phase {
	struct file *f;
	const struct io_memory *m;
	bool write;
	size_t at, end; /* ours, in the stream */
	uint64_t low, high, domain;
	size_t *next;	 /* per aggregator: how far we are with its domain, in the stream */
	size_t *until;	 /* and where its window of this round ends */
	char **message;	 /* per aggregator: what it gets from us; then what comes back */
	uint64_t *sizes; /* per member and direction: bytes of message, of payload */
	struct request **requests;
	char *window; /* aggregators */
	uint64_t *touched;
	char *under; /* what the file has where nobody writes; NULL: gaps are left alone */
	bool sole;
	int rank; /* place among the aggregators; -1: none */
	int error;
};

/* ---- which way ---- */

static struct member describe(struct file *f, size_t at, size_t bytes, bool write, int error)
{
	const struct datatype *t = f->view.tile;
	struct member me = {.bytes = bytes, .error = error, .low = UINT64_MAX, .ordered = 1};
	me.file_bytes = f->fd < 0 ? 0 : io_file_bytes(f);
	me.sole = write && f->hints.sieve_writes != IO_DISABLE &&
		  (io_knows_writers(f) || io_file_sole(f));
	if (error || !bytes)
		return me;
	me.ordered = f->view.ordered;
	me.low = (uint64_t)io_view_place(&f->view, at);
	me.high = (uint64_t)io_view_place(&f->view, at + bytes - 1) + 1;
	me.pieces = t->contiguous ? 1 : 1 + bytes / t->size * t->nblocks;
	return me;
}

/* All members share the kernel's copy of the file. So each reads for itself what it wants of it:
 * that is copied once, and an aggregator would pass it on by three copies more. */
static bool one_cache(const struct file *f)
{
	struct segment *s = link_self()->segment;
	bool here = f->local;
	for (int i = 0; i < f->comm->size && here && s->nhere < s->nranks; i++)
		here = segment_here(s, (uint32_t)f->comm->world[i]);
	return here;
}

/* Pieces of several members lie between each other, small and close. */
static bool worth_it(const struct file *f, const struct member *all, bool write)
{
	uint8_t choice = write ? f->hints.collect_writes : f->hints.collect_reads;
	uint64_t low = UINT64_MAX, high = 0, bytes = 0, pieces = 0;
	bool mixed = false;
	for (int i = 0; i < f->comm->size; i++) {
		if (!all[i].ordered)
			return false;
		if (!all[i].bytes)
			continue;
		mixed |= all[i].low < high;
		low = all[i].low < low ? all[i].low : low;
		high = all[i].high > high ? all[i].high : high;
		bytes += all[i].bytes;
		pieces += all[i].pieces;
	}
	if (!bytes || choice == IO_DISABLE || f->comm->size == 1)
		return false;
	bool sparse = bytes < (high - low) / SPARSE;
	if (!write && choice != IO_ENABLE && one_cache(f))
		return false;
	return !sparse && (choice == IO_ENABLE || (mixed && bytes / pieces < SMALL_PIECE));
}

/* ---- windows ---- */

static uint64_t window_begin(const struct two_phase *t, int a, uint64_t round)
{
	uint64_t begin = t->low + (uint64_t)a * t->domain, end = begin + t->domain;
	uint64_t at = begin + round * t->f->hints.buffer;
	end = end < t->high ? end : t->high;
	return at < end ? at : end > begin ? end : begin;
}

static bool is_touched(const struct two_phase *t, size_t byte)
{
	return t->touched[byte / 64] >> byte % 64 & 1;
}

static void touch(struct two_phase *t, size_t begin, size_t end)
{
	for (; begin < end && begin % 64; begin++)
		t->touched[begin / 64] |= 1ull << begin % 64;
	for (; begin + 64 <= end; begin += 64)
		t->touched[begin / 64] = ~0ull;
	for (; begin < end; begin++)
		t->touched[begin / 64] |= 1ull << begin % 64;
}

/* The next byte from `from` on that is touched, or is not. */
static size_t scan(const struct two_phase *t, size_t from, size_t bytes, bool wanted)
{
	while (from < bytes) {
		uint64_t word = t->touched[from / 64];
		if (from % 64 == 0 && word == (wanted ? 0 : ~0ull))
			from += 64;
		else if (is_touched(t, from) == wanted)
			return from;
		else
			from++;
	}
	return bytes;
}

/* Where nobody writes in [at, end) of the window it gets what the file has. */
static int window_fill(struct two_phase *t, uint64_t begin, size_t at, size_t end)
{
	int rc = MPI_SUCCESS;
	for (size_t to; at < end && !rc; at = to) {
		size_t moved;
		to = end - at < UNDER ? end : at + UNDER;
		rc = io_read_at(t->f, begin + at, t->under, to - at, &moved);
		memset(t->under + moved, 0, to - at - moved);
		for (size_t gap = scan(t, at, to, false), stop; gap < to && !rc;
		     gap = scan(t, stop, to, false)) {
			stop = scan(t, gap, to, true);
			memcpy(t->window + gap, t->under + (gap - at), stop - gap);
		}
	}
	return rc;
}

/* What is touched, between the window and the file. */
static int window_move(struct two_phase *t, uint64_t begin, size_t bytes)
{
	size_t moved, most = !t->write ? GAP : t->under ? FILL : 0;
	int rc = MPI_SUCCESS;
	io_lock(t->f, begin, begin + bytes, t->write);
	if (t->write && t->under)
		io_writing_with_gaps(t->f, begin, begin + bytes);
	else if (t->write)
		io_writing(t->f, begin, begin + bytes);
	for (size_t at = scan(t, 0, bytes, true); at < bytes && !rc;) {
		size_t end = scan(t, at, bytes, false), next = scan(t, end, bytes, true);
		bool gaps = false;
		while (next < bytes && next - end < most) {
			end = scan(t, next, bytes, false);
			next = scan(t, end, bytes, true);
			gaps = true;
		}
		if (gaps && t->write && (rc = window_fill(t, begin, at, end)))
			break;
		rc = t->write ? io_write_at(t->f, begin + at, t->window + at, end - at, &moved)
			      : io_read_at(t->f, begin + at, t->window + at, end - at, &moved);
		at = next;
	}
	if (t->write)
		io_written();
	io_unlock(t->f, begin, begin + bytes);
	return rc;
}

/* ---- messages: | pieces, their number first | data | ---- */

static size_t pieces_count(const struct two_phase *t, size_t at, size_t end)
{
	struct io_piece piece[256];
	size_t n = 0, covered;
	for (; at < end; at += covered)
		n += io_pieces(&t->f->view, at, end - at, piece, ARRAY_LEN(piece), &covered);
	return n;
}

static size_t pieces_bytes(size_t n)
{
	return sizeof(struct io_piece) * (n + 1);
}

/* The first of the list says how many follow. */
static size_t message_pieces(const char *message)
{
	return ((const struct io_piece *)message)->length;
}

static char *message_make(struct two_phase *t, size_t at, size_t end, uint64_t sizes[2])
{
	size_t n = pieces_count(t, at, end), covered, i = 1;
	sizes[1] = end - at;
	sizes[0] = pieces_bytes(n) + (t->write ? end - at : 0);
	/* what comes back takes its place */
	struct io_piece *p = heap_alloc(sizes[0] > sizes[1] ? sizes[0] : sizes[1]);
	if (!p)
		return NULL;
	p[0] = (struct io_piece){0, n};
	for (size_t s = at; s < end; s += covered)
		i += io_pieces(&t->f->view, s, end - s, p + i, n + 1 - i, &covered);
	if (t->write)
		datatype_pack(t->m->type, t->m->buf, t->m->count, at - t->at,
			      (char *)p + pieces_bytes(n), end - at);
	return (char *)p;
}

/* Data of the list's pieces, between the window and what follows the list. */
static void window_copy(struct two_phase *t, uint64_t begin, const char *message, char *data,
			bool in)
{
	const struct io_piece *p = (const struct io_piece *)message;
	for (size_t i = 1; i <= p[0].length; i++) {
		char *at = t->window + (p[i].offset - begin);
		memcpy(in ? at : data, in ? data : at, p[i].length);
		data += p[i].length;
	}
}

static void window_touch(struct two_phase *t, uint64_t begin, const char *message)
{
	const struct io_piece *p = (const struct io_piece *)message;
	for (size_t i = 1; i <= p[0].length; i++)
		touch(t, p[i].offset - begin, p[i].offset - begin + p[i].length);
}

/* ---- a round ---- */

static void wait_all(struct two_phase *t, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		match_wait(t->requests[i]);
		if (t->requests[i]->status.MPI_ERROR && !t->error)
			t->error = t->requests[i]->status.MPI_ERROR;
		match_request_free(t->requests[i]);
	}
}

static void start(struct two_phase *t, size_t *n, int rc)
{
	if (!rc)
		(*n)++;
	else if (!t->error)
		t->error = rc;
}

/* Everybody's lists and data are with the aggregator: the file. Ranks in order, so that where they
 * overlap it is as if each had written after those before it. */
static void aggregate(struct two_phase *t, uint64_t round, char **from)
{
	uint64_t begin = window_begin(t, t->rank, round);
	size_t bytes = window_begin(t, t->rank, round + 1) - begin;
	int size = t->f->comm->size;
	memset(t->touched, 0, (bytes + 63) / 64 * 8);
	for (int i = 0; i < size; i++) {
		if (!from[i])
			continue;
		window_touch(t, begin, from[i]);
		if (t->write)
			window_copy(t, begin, from[i],
				    from[i] + pieces_bytes(message_pieces(from[i])), true);
	}
	int rc = window_move(t, begin, bytes);
	if (rc && !t->error)
		t->error = rc;
}

/* What every aggregator gets of us this round, and of everybody if we are one. */
static void send_there(struct two_phase *t, uint64_t round, char **from, size_t *n)
{
	struct file *f = t->f;
	int size = f->comm->size;
	uint64_t *mine = t->sizes, *theirs = t->sizes + 2 * size;
	memset(mine, 0, (size_t)size * 2 * sizeof(*mine));
	for (int a = 0; a < f->naggregators; a++) {
		t->until[a] =
		    io_view_find(&f->view, window_begin(t, a, round + 1), t->next[a], t->end);
		t->message[a] = NULL;
		if (t->until[a] > t->next[a])
			t->message[a] =
			    message_make(t, t->next[a], t->until[a], mine + 2 * f->aggregators[a]);
		if (t->until[a] > t->next[a] && !t->message[a]) {
			memset(mine + 2 * f->aggregators[a], 0, 2 * sizeof(*mine));
			t->error = MPI_ERR_NO_MEM;
		}
	}
	int rc = coll_alltoall(mine, 2, io_u64(), theirs, 2, io_u64(), f->comm);
	if (rc)
		t->error = rc;
	for (int i = 0; i < size && t->rank >= 0; i++) {
		from[i] = theirs[2 * i] ? heap_alloc(theirs[2 * i]) : NULL;
		if (theirs[2 * i])
			start(t, n,
			      from[i] ? match_irecv(from[i], theirs[2 * i], io_byte(), i, TAG_THERE,
						    f->comm, 0, &t->requests[*n])
				      : MPI_ERR_NO_MEM);
	}
	for (int a = 0; a < f->naggregators; a++)
		if (t->message[a])
			start(t, n,
			      match_isend(t->message[a], mine[2 * f->aggregators[a]], io_byte(),
					  f->aggregators[a], TAG_THERE, f->comm, 0,
					  &t->requests[*n]));
}

static void send_back(struct two_phase *t, uint64_t round, char **from, size_t *n)
{
	struct file *f = t->f;
	uint64_t *theirs = t->sizes + 2 * f->comm->size;
	for (int a = 0; a < f->naggregators; a++)
		if (t->message[a])
			start(t, n,
			      match_irecv(t->message[a], t->until[a] - t->next[a], io_byte(),
					  f->aggregators[a], TAG_BACK, f->comm, 0,
					  &t->requests[*n]));
	for (int i = 0; i < f->comm->size && t->rank >= 0; i++) {
		if (!from[i])
			continue;
		char *data = heap_alloc(theirs[2 * i + 1] ? theirs[2 * i + 1] : 1);
		if (data)
			window_copy(t, window_begin(t, t->rank, round), from[i], data, false);
		heap_free(from[i]);
		from[i] = data;
		start(t, n,
		      data ? match_isend(data, theirs[2 * i + 1], io_byte(), i, TAG_BACK, f->comm,
					 0, &t->requests[*n])
			   : MPI_ERR_NO_MEM);
	}
}

static void round_run(struct two_phase *t, uint64_t round, char **from)
{
	struct file *f = t->f;
	size_t n = 0;
	send_there(t, round, from, &n);
	wait_all(t, n);
	if (t->rank >= 0)
		aggregate(t, round, from);
	n = 0;
	if (!t->write) {
		send_back(t, round, from, &n);
		wait_all(t, n);
	}
	for (int a = 0; a < f->naggregators; a++) {
		if (!t->write && t->message[a])
			datatype_unpack(t->m->type, t->m->buf, t->m->count, t->next[a] - t->at,
					t->message[a], t->until[a] - t->next[a]);
		heap_free(t->message[a]);
		t->next[a] = t->until[a];
	}
	for (int i = 0; i < f->comm->size && t->rank >= 0; i++)
		heap_free(from[i]);
}

/* ---- all of it ---- */

static bool prepare(struct two_phase *t, char ***from)
{
	struct file *f = t->f;
	size_t size = (size_t)f->comm->size, na = (size_t)f->naggregators;
	t->next = heap_alloc(na * sizeof(*t->next));
	t->until = heap_alloc(na * sizeof(*t->until));
	t->message = heap_calloc(na, sizeof(*t->message));
	t->sizes = heap_calloc(size * 4, sizeof(*t->sizes));
	t->requests = heap_calloc(size + na, sizeof(*t->requests));
	*from = heap_calloc(size, sizeof(**from));
	t->rank = -1;
	for (int a = 0; a < f->naggregators; a++)
		if (f->aggregators[a] == f->comm->rank)
			t->rank = a;
	size_t room = f->hints.buffer < t->domain ? f->hints.buffer : t->domain;
	if (t->rank >= 0) {
		t->window = heap_alloc(room);
		t->touched = heap_alloc((room + 63) / 64 * 8);
	}
	if (t->rank >= 0 && t->write && t->sole)
		t->under = heap_alloc(UNDER); /* without it, piece by piece */
	return t->next && t->until && t->message && t->sizes && t->requests && *from &&
	       (t->rank < 0 || (t->window && t->touched));
}

static void give_back(struct two_phase *t, char **from)
{
	heap_free(t->next);
	heap_free(t->until);
	heap_free(t->message);
	heap_free(t->sizes);
	heap_free(t->requests);
	heap_free(t->window);
	heap_free(t->touched);
	heap_free(t->under);
	heap_free(from);
}

static int two_phases(struct two_phase *t)
{
	struct file *f = t->f;
	char **from = NULL;
	t->domain = (t->high - t->low + (uint64_t)f->naggregators - 1) / (uint64_t)f->naggregators;
	t->domain = ALIGN_UP(t->domain, (uint64_t)ALIGN);
	uint64_t rounds = (t->domain + f->hints.buffer - 1) / f->hints.buffer;
	int rc = io_agree(f, prepare(t, &from) ? MPI_SUCCESS : MPI_ERR_NO_MEM);
	for (int a = 0; a < f->naggregators && !rc; a++)
		t->next[a] = io_view_find(&f->view, window_begin(t, a, 0), t->at, t->end);
	for (uint64_t r = 0; r < rounds && !rc; r++)
		round_run(t, r, from);
	give_back(t, from);
	return rc ? rc : io_agree(f, t->error);
}

/* Bytes of the stream from at on that lie before the file's end: what a read gives. */
static size_t readable(const struct file *f, size_t at, size_t bytes, uint64_t file_bytes)
{
	return io_view_find(&f->view, file_bytes, at, at + bytes) - at;
}

int io_move_together(struct file *f, const struct io_memory *m, size_t at, bool write, int error,
		     size_t *done)
{
	int size = f->comm->size;
	struct member me = describe(f, at, m->bytes, write, error), first = me;
	struct member *all = size > 1 ? heap_alloc((size_t)size * sizeof(*all)) : &first;
	int rc = all ? MPI_SUCCESS : MPI_ERR_NO_MEM;
	*done = 0;
	if (rc)
		return rc;
	if (size > 1)
		rc =
		    coll_allgather(&me, sizeof(me), io_byte(), all, sizeof(me), io_byte(), f->comm);
	struct two_phase t = {
	    .f = f, .m = m, .write = write, .at = at, .end = at + m->bytes, .low = UINT64_MAX};
	uint64_t file_bytes = 0;
	t.sole = true;
	for (int i = 0; i < size && !rc; i++) {
		rc = all[i].error;
		t.sole = t.sole && all[i].sole;
		t.low = all[i].low < t.low ? all[i].low : t.low;
		t.high = all[i].high > t.high ? all[i].high : t.high;
		file_bytes = all[i].file_bytes > file_bytes ? all[i].file_bytes : file_bytes;
	}
	bool together = !rc && worth_it(f, all, write);
	if (size > 1)
		heap_free(all);
	if (rc)
		return error ? error : rc;
	if (!together) {
		rc = io_move_alone(f, m, at, write, done);
		return size > 1 && f->atomic ? io_agree(f, rc) : rc;
	}
	size_t ours = write ? m->bytes : readable(f, at, m->bytes, file_bytes);
	t.end = at + ours;
	rc = two_phases(&t);
	*done = rc ? 0 : ours;
	return rc;
}
