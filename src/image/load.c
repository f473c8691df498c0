// SPDX-License-Identifier: BSD-3-Clause
/* Pages from image files into the staging area, oldest image first, so that newer pages win. Full:
 * read, with checksums, by all cores. Lazy: long runs are mapped from the file. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "image/hash.h"
#include "image/sink.h"

enum {
	PART = 256 << 10,
	PART_VECS = 256,
	LAZY_MIN_PAGES = 16, /* shorter runs are read: a mapping costs more */
};

struct loader {
	struct sink *sink;
	struct image_file *file;
	_Atomic size_t next; /* frame */
	_Atomic uint32_t next_worker;
	_Atomic int failed;
	struct error error;
	struct load_reader {
		char *raw, *packed, *nowhere;
		struct iovec iov[PART_VECS];
	} * reader;
};

uint64_t sink_stage_of(const struct sink *s, uint64_t addr, uint64_t *end, size_t *index)
{
	size_t low = 0, high = s->t.map_count;
	while (low < high) {
		size_t mid = (low + high) / 2;
		if (addr >= s->t.maps[mid].end)
			low = mid + 1;
		else
			high = mid;
	}
	if (low == s->t.map_count)
		return *end = 1ull << 47, 0;
	*index = low;
	if (addr < s->t.maps[low].start)
		return *end = s->t.maps[low].start, 0;
	*end = s->t.maps[low].end;
	return s->stage[low] ? s->stage[low] + (addr - s->t.maps[low].start) : 0;
}

static void fail(struct loader *l, const struct error *err)
{
	int none = 0;
	if (atomic_compare_exchange_strong(&l->failed, &none, 1))
		l->error = *err;
}

/* ---- reading ---- */

uint64_t sink_next_stretch(const struct sink *s, struct sink_cursor *c, uint64_t room, char **to,
			   size_t *map)
{
	uint64_t end;
	if (c->at == c->runs)
		return 0;
	uint64_t run = c->run[c->at], addr = run_addr(run) + c->page * HALE_PAGE;
	uint64_t len = (run_pages(run) - c->page) * HALE_PAGE;
	*to = (char *)sink_stage_of(s, addr, &end, map);
	if (len > end - addr)
		len = end - addr;
	if (len > room)
		len = room;
	c->page += len / HALE_PAGE;
	if (c->page == run_pages(run)) {
		c->at++;
		c->page = 0;
	}
	return len;
}

static struct sink_cursor cursor_of(const struct frame_at *n)
{
	return (struct sink_cursor){.run = n->table, .runs = n->frame.count};
}

static hale_status_t read_plain(struct loader *l, struct load_reader *r, const struct frame_at *n,
				struct error *err)
{
	struct sink_cursor c = cursor_of(n);
	uint64_t at = n->at + frame_data_at(&n->frame);
	XXH3_state_t sum;
	XXH3_64bits_reset(&sum);
	for (bool more = true; more;) {
		uint64_t part = 0, len = 0;
		int vecs = 0;
		char *to;
		size_t map;
		while (vecs < PART_VECS && part < PART &&
		       (len = sink_next_stretch(l->sink, &c, PART - part, &to, &map)) != 0) {
			r->iov[vecs++] = (struct iovec){to ? to : r->nowhere, len};
			part += len;
			/* a second one would be read over it before its checksum is taken */
			if (!to)
				break;
		}
		more = len != 0;
		for (int i = 0; i < vecs;) {
			long k = sys(SYS_preadv, l->file->fd, r->iov + i, vecs - i, at, 0);
			uint64_t whole = 0;
			for (int v = i; v < vecs; v++)
				whole += r->iov[v].iov_len;
			if (k != (long)whole)
				return error_set(err, HALE_ERR_STORE,
						 "can't read image %s (error %ld)", l->file->path,
						 k < 0 ? -k : 0);
			for (; i < vecs; i++)
				XXH3_64bits_update(&sum, r->iov[i].iov_base, r->iov[i].iov_len);
		}
		at += part;
	}
	if (XXH3_64bits_digest(&sum) != n->frame.data_sum)
		return image_file_corrupt(l->file, "pages", err);
	return HALE_OK;
}

static hale_status_t read_packed(struct loader *l, struct load_reader *r, const struct frame_at *n,
				 struct error *err)
{
	struct sink_cursor c = cursor_of(n);
	const char *from = r->raw;
	char *to;
	size_t map;
	hale_status_t rc = image_file_data(l->file, n, r->raw, r->packed, err);
	for (uint64_t len;
	     rc == HALE_OK && (len = sink_next_stretch(l->sink, &c, ~0ull, &to, &map)); from += len)
		if (to)
			memcpy(to, from, len);
	return rc;
}

/* ---- mapping ---- */

static hale_status_t map_lazily(struct loader *l, const struct frame_at *n, struct error *err)
{
	struct sink_cursor c = cursor_of(n);
	uint64_t at = n->at + frame_data_at(&n->frame), len;
	char *to;
	size_t map;
	for (; (len = sink_next_stretch(l->sink, &c, ~0ull, &to, &map)) != 0; at += len) {
		long rc = 0;
		if (!to)
			continue;
		const struct map_record *m = &l->sink->t.maps[map];
		bool maps = m->kind == MAP_KIND_ANON && !(m->flags & MAP_FLAG_GROWSDOWN) &&
			    len >= LAZY_MIN_PAGES * HALE_PAGE;
		if (maps)
			rc = sys(SYS_mmap, to, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED,
				 l->file->fd, at);
		if (!maps || sys_failed(rc))
			rc = sys_read_at(l->file->fd, to, len, at);
		if (sys_failed(rc))
			return error_set(err, HALE_ERR_STORE, "can't read image %s (error %ld)",
					 l->file->path, -rc);
	}
	return HALE_OK;
}

/* ---- one image ---- */

static void load_frames(void *arg)
{
	struct loader *l = arg;
	struct load_reader *r = &l->reader[atomic_fetch_add(&l->next_worker, 1)];
	struct error err = {HALE_OK, ""};
	size_t i;
	while (!atomic_load(&l->failed) &&
	       (i = atomic_fetch_add(&l->next, 1)) < l->file->frames.count) {
		const struct frame_at *n = list_at(&l->file->frames, i);
		hale_status_t rc = HALE_OK;
		if (n->frame.kind != FRAME_PAGES)
			continue;
		if (n->frame.compress != IMAGE_PLAIN)
			rc = read_packed(l, r, n, &err);
		else if (l->sink->how == IMAGE_LAZY)
			rc = map_lazily(l, n, &err);
		else
			rc = read_plain(l, r, n, &err);
		if (rc != HALE_OK)
			fail(l, &err);
	}
}

void sink_drop_pages(const struct sink *s, const uint64_t *run, uint32_t runs)
{
	struct sink_cursor c = {.run = run, .runs = runs};
	char *to;
	size_t map;
	for (uint64_t len; (len = sink_next_stretch(s, &c, ~0ull, &to, &map)) != 0;) {
		if (!to)
			continue;
		const struct map_record *m = &s->t.maps[map];
		if (m->kind == MAP_KIND_ANON && s->how == IMAGE_LAZY &&
		    !(m->flags & MAP_FLAG_GROWSDOWN))
			sys(SYS_mmap, to, len, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | (m->prot ? 0 : MAP_NORESERVE),
			    -1, 0);
		else if (m->kind == MAP_KIND_SHARED_ANON)
			memset(to, 0, len);
		else if (m->kind != MAP_KIND_SHARED_FILE)
			sys(SYS_madvise, to, len, MADV_DONTNEED);
	}
}

static hale_status_t load_tables(struct image_file *f, bool oldest, struct error *err)
{
	for (size_t i = 0; i < f->frames.count; i++) {
		struct frame_at *n = list_at(&f->frames, i);
		if (n->frame.kind != FRAME_PAGES && (n->frame.kind != FRAME_DROPS || oldest))
			continue;
		hale_status_t rc = image_file_table(f, n, err);
		if (rc == HALE_OK)
			rc = image_file_check_runs(f, n, err);
		if (rc != HALE_OK)
			return rc;
	}
	return HALE_OK;
}

static hale_status_t load_image(struct sink *s, struct image_file *f, bool oldest,
				struct error *err)
{
	unsigned workers = s->how == IMAGE_LAZY ? 1 : workers_wanted();
	struct loader l = {.sink = s, .file = f};
	hale_status_t rc = load_tables(f, oldest, err);
	if (rc != HALE_OK)
		return rc;
	if (!oldest)
		for (size_t i = 0; i < f->frames.count; i++) {
			const struct frame_at *n = list_at(&f->frames, i);
			if (n->frame.kind == FRAME_DROPS)
				sink_drop_pages(s, n->table, n->frame.count);
		}
	l.reader = arena_alloc(&s->arena, workers * sizeof(*l.reader));
	for (unsigned i = 0; l.reader && i < workers; i++) {
		struct load_reader *r = &l.reader[i];
		r->raw = arena_pages(&s->arena, FRAME_DATA_MAX);
		r->packed = image_packed_room(&s->arena);
		r->nowhere = arena_pages(&s->arena, PART);
		if (!r->raw || !r->packed || !r->nowhere)
			l.reader = NULL;
	}
	if (!l.reader)
		return error_set(err, HALE_ERR_MEMORY, "no memory to rebuild the process");
	workers_run(&s->arena, workers, load_frames, &l);
	if (atomic_load(&l.failed)) {
		*err = l.error;
		return err->code;
	}
	return HALE_OK;
}

hale_status_t sink_load(struct sink *s, struct error *err)
{
	hale_status_t rc = HALE_OK;
	for (size_t i = s->files; i-- > 0 && rc == HALE_OK;)
		rc = load_image(s, &s->file[i], i + 1 == s->files, err);
	return rc;
}
