// SPDX-License-Identifier: BSD-3-Clause
/* Writing pages: each worker takes the next few MiB of runs, looks which pages are zero, claims
 * a place in the file for the rest, and then goes over them once more in parts that stay in the
 * processor's cache: checksum, search for held locks, write.
 */
#include <errno.h>
#include <limits.h>
#include <lz4.h>
#include <string.h>
#define ZSTD_STATIC_LINKING_ONLY
#include <zstd.h>

#include "base/clock.h"
#include "image/hash.h"
#include "image/live/live_offer.h"
#include "image/live/live_pack.h"
#include "image/mutexes.h"
#include "image/stream.h"

enum {
	BATCH_PAGES = FRAME_DATA_MAX / HALE_PAGE - 1, /* with its table: a multiple of PART */
	BATCH_PAGES_COMPRESSED = 256,
	LIVE_BATCH_PAGES = 256,
	BATCH_RUNS = (HALE_PAGE - sizeof(struct frame)) / sizeof(uint64_t),
	PART = FRAME_ALIGN,
	WRITE_VECS = 256,
	ZSTD_LEVEL = 1,
	LZ4_SPEED = 1,
};

/* Part of a run, in one batch. */
struct pages_piece {
	uint64_t addr, source, pages;
	bool keep_zero, unsafe;
};

struct job {
	struct image_stream *stream;
	const struct pages_params *p;
	struct pages_result *result;
	_Atomic uint32_t next_worker;
	size_t run;    /* the run that is next, */
	uint64_t page; /* from this page on */
	unsigned batch_pages;
	struct writer *writer;
	size_t writers;
};

/* What one worker works with. */
struct writer {
	struct pages_piece take[BATCH_RUNS];
	size_t takes;
	struct pages_piece piece[BATCH_RUNS];
	uint64_t table[BATCH_RUNS];
	char table_page[HALE_PAGE]; /* zero */
	size_t pieces;
	uint64_t pages; /* in the pieces */
	struct iovec iov[2 + LIVE_BATCH_PAGES];
	char *bounce; /* a batch of pages that can't be read in place */
	char *raw, *packed, *state;
	size_t packed_cap, state_len;
	ZSTD_CCtx *zstd;
	struct live_packing packing;
};

/* The stream's lock guards cursor and result too: their lists grow in the same arena. */
static void lock(struct job *j)
{
	image_stream_lock(j->stream);
}

static void unlock(struct job *j)
{
	image_stream_unlock(j->stream);
}

static void take_batch(struct job *j, struct writer *w)
{
	uint64_t room = j->batch_pages;
	w->takes = 0;
	lock(j);
	while (room && j->run < j->p->count && w->takes < BATCH_RUNS) {
		const struct run *r = &j->p->runs[j->run];
		uint64_t n = r->pages - j->page;
		if (n > room)
			n = room;
		w->take[w->takes++] = (struct pages_piece){r->addr + j->page * HALE_PAGE,
							   r->source + j->page * HALE_PAGE, n,
							   r->keep_zero, r->unsafe};
		room -= n;
		j->page += n;
		if (j->page == r->pages) {
			j->run++;
			j->page = 0;
		}
	}
	unlock(j);
}

static bool is_zero(const void *page)
{
	const uint64_t *w = page;
	if (w[0] | w[64] | w[256] | w[511])
		return false;
	for (size_t i = 0; i < HALE_PAGE / sizeof(*w); i += 8)
		if (w[i] | w[i + 1] | w[i + 2] | w[i + 3] | w[i + 4] | w[i + 5] | w[i + 6] |
		    w[i + 7])
			return false;
	return true;
}

/* Copies what can be read; behind the end of a file there are zeroes. */
static void read_unsafe(uint64_t from, char *to, uint64_t pages)
{
	for (uint64_t i = 0; i < pages; i++) {
		struct iovec local = {to + i * HALE_PAGE, HALE_PAGE};
		struct iovec remote = {(void *)(from + i * HALE_PAGE), HALE_PAGE};
		long n = sys(SYS_process_vm_readv, sys(SYS_getpid), &local, 1, &remote, 1, 0);
		if (n != (long)HALE_PAGE)
			memset(local.iov_base, 0, HALE_PAGE);
	}
}

static void note_zero(struct job *j, uint64_t addr, uint64_t pages)
{
	lock(j);
	j->result->zero += pages;
	if (j->p->want_drops) {
		uint64_t *drop = list_add(&j->result->drops);
		if (drop)
			*drop = run_make(addr, pages);
		else
			image_stream_fail(j->stream, -ENOMEM);
	}
	unlock(j);
}

/* ---- locks that threads hold ---- */

static bool is_tid(const struct job *j, uint32_t v)
{
	for (size_t i = 0; i < j->p->tid_count; i++)
		if ((uint32_t)j->p->tids[i] == v)
			return true;
	return false;
}

static void note_lock(struct job *j, uint64_t addr, uint32_t tid, uint32_t flags)
{
	lock(j);
	struct lock_record *r = list_add(&j->result->locks);
	if (r)
		*r = (struct lock_record){addr, (int32_t)tid, flags};
	unlock(j);
}

/* The owner field would be word i of the page. */
static bool is_held_mutex(const uint32_t *word, size_t i, uint32_t *flags)
{
	struct mutex m = {0};
	if (i >= MUTEX_OWNER_AT && i - MUTEX_OWNER_AT + MUTEX_WORDS <= HALE_PAGE / 4) {
		memcpy(&m, word + i - MUTEX_OWNER_AT, sizeof(m));
		return mutex_is_held(&m, flags);
	}
	/* it lies on two pages */
	struct iovec local = {&m, sizeof(m)};
	struct iovec remote = {(void *)((uint64_t)word + (i - MUTEX_OWNER_AT) * 4), sizeof(m)};
	long n = sys(SYS_process_vm_readv, sys(SYS_getpid), &local, 1, &remote, 1, 0);
	return n == (long)sizeof(m) && m.owner == word[i] && mutex_is_held(&m, flags);
}

/* Recursive, error-checking and priority-inheriting mutexes compare their owner with the caller's
 * thread id, which is another one after a restart. Most pages have no word that could be one: the
 * loop is simple so that the compiler makes vector code of it. */
static void find_locks(struct job *j, uint64_t addr, const void *page)
{
	const uint32_t *word = page;
	uint32_t low = (uint32_t)j->p->tids[0];
	uint32_t span = (uint32_t)j->p->tids[j->p->tid_count - 1] - low;
	uint32_t flags;
	unsigned hits = 0;
	for (size_t i = 0; i < HALE_PAGE / 4; i++)
		hits += word[i] - low <= span;
	if (!hits)
		return;
	for (size_t i = 0; i < HALE_PAGE / 4; i += 2)
		if (word[i] - low <= span && is_tid(j, word[i]) && is_held_mutex(word, i, &flags))
			note_lock(j, addr + (i - MUTEX_OWNER_AT) * 4, word[i], flags);
}

static void look_for_locks(struct job *j, uint64_t addr, const char *pages, uint64_t count)
{
	for (uint64_t i = 0; i < count && j->p->tid_count; i++)
		find_locks(j, addr + i * HALE_PAGE, pages + i * HALE_PAGE);
}

/* ---- one frame ---- */

static void write_plain(struct job *j, struct writer *w)
{
	struct frame f = {.kind = FRAME_PAGES,
			  .count = (uint32_t)w->pieces,
			  .table_len = w->pieces * sizeof(uint64_t),
			  .data_len = w->pages * HALE_PAGE,
			  .raw_len = w->pages * HALE_PAGE};
	uint64_t at = image_stream_claim(j->stream, &f), to = at;
	struct iovec *iov = w->iov;
	XXH3_state_t sum;
	XXH3_64bits_reset(&sum);
	/* the place of the table goes along with the first part, then that begins on a multiple */
	iov[0] = (struct iovec){w->table_page, frame_data_at(&f)};
	int vecs = 1;
	size_t part = frame_data_at(&f);
	for (size_t i = 0; i < w->pieces && !image_stream_failed(j->stream); i++) {
		const struct pages_piece *p = &w->piece[i];
		for (uint64_t k = 0; k < p->pages;) {
			uint64_t n = p->pages - k;
			uint64_t fits = (PART - (to + part) % PART) / HALE_PAGE;
			if (n > fits)
				n = fits;
			char *from = (char *)p->source + k * HALE_PAGE;
			XXH3_64bits_update(&sum, from, n * HALE_PAGE);
			look_for_locks(j, p->addr + k * HALE_PAGE, from, n);
			iov[vecs++] = (struct iovec){from, n * HALE_PAGE};
			part += n * HALE_PAGE;
			k += n;
			bool last = i + 1 == w->pieces && k == p->pages;
			if ((to + part) % PART && vecs < WRITE_VECS && !last)
				continue;
			int rc = sys_writev_at(j->stream->fd, iov, vecs, to);
			if (rc)
				image_stream_fail(j->stream, rc);
			to += part;
			part = 0;
			vecs = 0;
		}
	}
	f.data_sum = XXH3_64bits_digest(&sum);
	image_stream_seal(j->stream, &f, at, w->table);
}

static size_t pack(struct job *j, struct writer *w, size_t raw)
{
	if (j->p->compress == IMAGE_LZ4) {
		int n = LZ4_compress_fast_extState(w->state, w->raw, w->packed, (int)raw,
						   (int)w->packed_cap, LZ4_SPEED);
		return n > 0 ? (size_t)n : 0;
	}
	size_t n = ZSTD_compressCCtx(w->zstd, w->packed, w->packed_cap, w->raw, raw, ZSTD_LEVEL);
	return ZSTD_isError(n) ? 0 : n;
}

static size_t gather(struct job *j, struct writer *w)
{
	char *to = w->raw;
	for (size_t i = 0; i < w->pieces; i++) {
		const struct pages_piece *p = &w->piece[i];
		memcpy(to, (const void *)p->source, p->pages * HALE_PAGE);
		look_for_locks(j, p->addr, (const char *)p->source, p->pages);
		to += p->pages * HALE_PAGE;
	}
	return (size_t)(to - w->raw);
}

/* The batch's frame, compressed if that is shorter; *data: what it has. */
static struct frame frame_packed(struct job *j, struct writer *w, const char **data)
{
	size_t raw = gather(j, w), len = pack(j, w, raw);
	bool smaller = len && len < raw;
	struct frame f = {.kind = FRAME_PAGES,
			  .compress = (uint16_t)(smaller ? j->p->compress : IMAGE_PLAIN),
			  .count = (uint32_t)w->pieces,
			  .table_len = w->pieces * sizeof(uint64_t),
			  .data_len = smaller ? len : raw,
			  .raw_len = raw};
	*data = smaller ? w->packed : w->raw;
	f.data_sum = hash64(*data, f.data_len);
	return f;
}

static void send_packed(struct job *j, struct writer *w)
{
	uint64_t began = clock_ns();
	const char *data;
	struct frame f = frame_packed(j, w, &data);
	w->iov[2] = (struct iovec){(void *)(uintptr_t)data, f.data_len};
	uint64_t packed = clock_ns();
	image_stream_send(j->stream, &f, w->table, w->iov, 1);
	live_pack_took(&w->packing, f.raw_len, f.data_len, f.data_len,
		       (double)(clock_ns() - packed) * 1e-9, (double)(packed - began) * 1e-9);
}

/* Checksum first, since it goes ahead of the data; they are still in the cache then. */
static void send_live(struct job *j, struct writer *w)
{
	if (j->p->compress != IMAGE_PLAIN && live_pack_next(&w->packing)) {
		send_packed(j, w);
		return;
	}
	uint64_t began;
	struct frame f = {.kind = FRAME_PAGES,
			  .count = (uint32_t)w->pieces,
			  .table_len = w->pieces * sizeof(uint64_t),
			  .data_len = w->pages * HALE_PAGE,
			  .raw_len = w->pages * HALE_PAGE};
	XXH3_state_t sum;
	XXH3_64bits_reset(&sum);
	for (size_t i = 0; i < w->pieces; i++) {
		const struct pages_piece *p = &w->piece[i];
		XXH3_64bits_update(&sum, (const void *)p->source, p->pages * HALE_PAGE);
		look_for_locks(j, p->addr, (const char *)p->source, p->pages);
		w->iov[2 + i] = (struct iovec){(void *)p->source, p->pages * HALE_PAGE};
	}
	f.data_sum = XXH3_64bits_digest(&sum);
	began = clock_ns();
	image_stream_send(j->stream, &f, w->table, w->iov, (int)w->pieces);
	live_pack_took(&w->packing, f.raw_len, 0, f.data_len, (double)(clock_ns() - began) * 1e-9,
		       0);
}

static void write_packed(struct job *j, struct writer *w)
{
	const char *data;
	struct frame f = frame_packed(j, w, &data);
	uint64_t at = image_stream_claim(j->stream, &f);
	int rc = sys_write_at(j->stream->fd, data, f.data_len, at + frame_data_at(&f));
	if (rc)
		image_stream_fail(j->stream, rc);
	image_stream_seal(j->stream, &f, at, w->table);
}

static void flush(struct job *j, struct writer *w)
{
	if (!w->pieces)
		return;
	if (j->stream->live)
		send_live(j, w);
	else if (j->p->compress == IMAGE_PLAIN)
		write_plain(j, w);
	else
		write_packed(j, w);
	lock(j);
	j->result->saved += w->pages;
	unlock(j);
	w->pieces = 0;
	w->pages = 0;
}

/* Adds pages to the frame in the making. */
static void keep(struct job *j, struct writer *w, const struct pages_piece *p, uint64_t first,
		 uint64_t pages)
{
	if (!pages)
		return;
	if (w->pieces == BATCH_RUNS)
		flush(j, w);
	struct pages_piece *added = &w->piece[w->pieces];
	*added = *p;
	added->addr += first * HALE_PAGE;
	added->source += first * HALE_PAGE;
	added->pages = pages;
	w->table[w->pieces++] = run_make(added->addr, pages);
	w->pages += pages;
}

/* The sink has it already, so it is not sent. Its locks are looked for all the same. */
static bool is_same(struct job *j, uint64_t addr, const char *page)
{
	if (!j->p->offer || !offer_has(j->p->offer, addr, page))
		return false;
	look_for_locks(j, addr, page, 1);
	lock(j);
	j->result->same++;
	unlock(j);
	return true;
}

/* Splits a taken piece into pages to keep, and those that are zero or the sink's. */
static void sift(struct job *j, struct writer *w, struct pages_piece p, char **bounce)
{
	uint64_t first = 0, k = 0;
	if (p.unsafe || j->p->moving) {
		if (p.unsafe)
			read_unsafe(p.source, *bounce, p.pages);
		else
			memcpy(*bounce, (const void *)p.source, p.pages * HALE_PAGE);
		p.source = (uint64_t)*bounce;
		*bounce += p.pages * HALE_PAGE;
	}
	if (p.keep_zero && !j->p->offer) {
		keep(j, w, &p, 0, p.pages);
		return;
	}
	while (k < p.pages) {
		uint64_t zero = k;
		if (is_same(j, p.addr + k * HALE_PAGE, (char *)p.source + k * HALE_PAGE)) {
			keep(j, w, &p, first, k - first);
			first = ++k;
			continue;
		}
		while (!p.keep_zero && zero < p.pages &&
		       is_zero((char *)p.source + zero * HALE_PAGE))
			zero++;
		if (zero > k) {
			keep(j, w, &p, first, k - first);
			note_zero(j, p.addr + k * HALE_PAGE, zero - k);
			first = k = zero;
		} else {
			k++;
		}
	}
	keep(j, w, &p, first, k - first);
}

static void write_batches(void *arg)
{
	struct job *j = arg;
	uint32_t me = atomic_fetch_add(&j->next_worker, 1);
	struct writer *w = &j->writer[me];
	while (!image_stream_orphaned(j->stream)) {
		char *bounce = w->bounce;
		take_batch(j, w);
		if (!w->takes)
			break;
		for (size_t i = 0; i < w->takes; i++)
			sift(j, w, w->take[i], &bounce);
		flush(j, w);
	}
}

static bool writer_init(struct job *j, struct writer *w, bool bounces)
{
	size_t raw = j->batch_pages * HALE_PAGE;
	if (bounces && !(w->bounce = arena_pages(j->stream->arena, raw)))
		return false;
	if (j->p->compress == IMAGE_PLAIN)
		return true;
	bool lz4 = j->p->compress == IMAGE_LZ4;
	w->packed_cap = lz4 ? (size_t)LZ4_compressBound((int)raw) : ZSTD_compressBound(raw);
	w->state_len = lz4 ? (size_t)LZ4_sizeofState() : ZSTD_estimateCCtxSize(ZSTD_LEVEL);
	w->raw = arena_pages(j->stream->arena, raw);
	w->packed = arena_pages(j->stream->arena, w->packed_cap);
	w->state = arena_pages(j->stream->arena, w->state_len);
	if (!w->raw || !w->packed || !w->state)
		return false;
	if (!lz4)
		w->zstd = ZSTD_initStaticCCtx(w->state, w->state_len);
	return lz4 || w->zstd;
}

bool pages_write(struct image_stream *s, const struct pages_params *p, struct pages_result *result)
{
	struct job j = {.stream = s,
			.p = p,
			.result = result,
			.batch_pages = s->live			    ? LIVE_BATCH_PAGES
				       : p->compress == IMAGE_PLAIN ? BATCH_PAGES
								    : BATCH_PAGES_COMPRESSED,
			.writers = p->workers};
	bool bounces = p->moving;
	for (size_t i = 0; i < p->count; i++)
		bounces |= p->runs[i].unsafe;
	/* a few batches are done sooner than a helper is started */
	if (j.writers * j.batch_pages > p->pages)
		j.writers = 1 + p->pages / j.batch_pages;
	if (j.writers > p->workers)
		j.writers = p->workers;
	*result = (struct pages_result){0};
	list_init(&result->drops, s->arena, sizeof(uint64_t));
	list_init(&result->locks, s->arena, sizeof(struct lock_record));
	j.writer = arena_alloc(s->arena, j.writers * sizeof(*j.writer));
	if (!j.writer)
		return false;
	for (size_t i = 0; i < j.writers; i++)
		if (!writer_init(&j, &j.writer[i], bounces))
			return false;
	workers_run(s->arena, (unsigned)j.writers, write_batches, &j);
	return true;
}
