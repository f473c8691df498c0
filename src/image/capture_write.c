// SPDX-License-Identifier: BSD-3-Clause
/* Writing what was captured: all frames, then the header, then the report. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "image/capture.h"
#include "image/hashes.h"
#include "image/live/live_offer.h"
#include "image/tree/tree.h"

static hale_status_t no_memory(struct error *err)
{
	return error_set(err, HALE_ERR_MEMORY, "no memory to write a checkpoint");
}

static hale_status_t refuse_forked(struct capture *c, uint64_t at, const char *what,
				   struct error *err)
{
	c->cant_fork = true;
	if (c->said)
		*c->said = 1;
	return error_set(err, HALE_ERR_UNSUPPORTED, "the memory at %lx is %s: %s",
			 (unsigned long)at, what,
			 c->params.live ? "it can't be sent while the process runs"
					: "the next checkpoint is written while the process stands "
					  "still");
}

/* Memory that a fork leaves out (MADV_DONTFORK), or empties (MADV_WIPEONFORK), would be missing in
 * the image without notice. */
static hale_status_t check_inherited(struct capture *c, struct error *err)
{
	uint64_t wiped = 0;
	struct list here;
	list_init(&c->advice, &c->arena, sizeof(struct advice_record));
	if (c->params.mode == IMAGE_SYNC) {
		maps_find_advice(&c->maps, &c->advice, &wiped);
		return HALE_OK;
	}
	hale_status_t rc = maps_scan("/proc/thread-self/maps", &c->arena, &here, err);
	size_t k = 0;
	for (size_t i = 0; i < c->maps.count && rc == HALE_OK; i++) {
		const struct map *m = list_at(&c->maps, i);
		const struct map_written *w = list_at(&c->written, i);
		uint64_t at = m->start;
		if (map_is_kernel(m) || map_is_excluded(m->start, m->end) || w->apart)
			continue;
		for (; k < here.count && at < m->end; k++) {
			const struct map *h = list_at(&here, k);
			if (h->end <= at)
				continue;
			if (h->start > at)
				break;
			at = h->end;
			if (at >= m->end)
				break;
		}
		if (at < m->end)
			rc = refuse_forked(c, m->start,
					   "kept from forked processes (MADV_DONTFORK)", err);
	}
	if (rc == HALE_OK && maps_find_advice(&here, &c->advice, &wiped) && wiped)
		rc = refuse_forked(c, wiped, "empty in forked processes (MADV_WIPEONFORK)", err);
	return rc;
}

/* ---- tables ---- */

/* Records and text as one table. */
static void put_table(struct capture *c, struct image_stream *s, enum frame_kind kind,
		      const struct list *records, const void *text, size_t text_len)
{
	size_t len = records->count * records->size;
	char *table = arena_alloc(&c->arena, len + text_len + 1);
	if (!table) {
		image_stream_fail(s, -ENOMEM);
		return;
	}
	if (len)
		memcpy(table, records->items, len);
	if (text_len)
		memcpy(table + len, text, text_len);
	image_stream_put(s, kind, (uint32_t)records->count, table, len + text_len, NULL, 0);
}

static void put_process(struct capture *c, struct image_stream *s)
{
	const struct process_record *r = &c->process.record;
	size_t len = sizeof(*r) + r->cwd_len + r->auxv_len;
	char *table = arena_alloc(&c->arena, len);
	if (!table) {
		image_stream_fail(s, -ENOMEM);
		return;
	}
	memcpy(table, r, sizeof(*r));
	memcpy(table + sizeof(*r), c->process.cwd, r->cwd_len);
	memcpy(table + sizeof(*r) + r->cwd_len, c->process.auxv, r->auxv_len);
	image_stream_put(s, FRAME_PROCESS, 1, table, len, NULL, 0);
}

static void put_signals(struct capture *c, struct image_stream *s)
{
	size_t timers = c->timers.count * c->timers.size, len = sizeof(c->signals) + timers;
	char *table = arena_alloc(&c->arena, len);
	if (!table) {
		image_stream_fail(s, -ENOMEM);
		return;
	}
	memcpy(table, &c->signals, sizeof(c->signals));
	if (timers)
		memcpy(table + sizeof(c->signals), c->timers.items, timers);
	image_stream_put(s, FRAME_SIGNALS, (uint32_t)c->timers.count, table, len, NULL, 0);
}

static void put_contents(struct capture *c, struct image_stream *s)
{
	for (size_t i = 0; i < c->fds.contents.count; i++) {
		const struct content *content = list_at(&c->fds.contents, i);
		struct content_record record = content->record;
		const char *data = content->data;
		size_t left = content->len;
		do {
			size_t n = left < FRAME_DATA_MAX ? left : FRAME_DATA_MAX;
			image_stream_put(s, FRAME_CONTENT, 1, &record, sizeof(record), data, n);
			record.offset += n;
			data += n;
			left -= n;
		} while (left);
	}
}

/* Size, time and build id of every mapped file; neighbours are mostly parts of one. */
static void stamp_maps(struct capture *c)
{
	const char *before = NULL;
	struct file_stamp stamp = {0};
	for (size_t i = 0; i < c->map_records.count; i++) {
		struct map_record *r = list_at(&c->map_records, i);
		if (r->kind != MAP_KIND_FILE)
			continue;
		const char *path = c->map_text.data + r->path_offset;
		if (!before || strcmp(before, path)) {
			long fd = sys(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
			memset(&stamp, 0, sizeof(stamp));
			if (fd >= 0) {
				file_stamp_read((int)fd, &stamp);
				sys(SYS_close, fd);
			}
			before = path;
		}
		r->stamp = stamp;
	}
}

/* ---- pages ---- */

/* Pages of mappings that nobody may read; in the child their protection can be changed. */
static void make_readable(const struct map *m, bool readable)
{
	if (!(m->prot & PROT_READ))
		sys(SYS_mprotect, m->start, m->end - m->start, readable ? PROT_READ : (int)m->prot);
}

static struct map_record *record_of(struct capture *c, uint64_t addr, size_t *hint)
{
	for (size_t i = *hint; i < c->map_records.count; i++) {
		struct map_record *r = list_at(&c->map_records, i);
		if (addr < r->end) {
			*hint = i;
			return addr >= r->start ? r : NULL;
		}
	}
	return NULL;
}

/* The kernel may take its pages away at any time. */
static bool is_droppable(const struct capture *c, const struct map *m)
{
	for (size_t i = 0; i < c->advice.count; i++) {
		const struct advice_record *r = list_at(&c->advice, i);
		if (r->flags & MAP_FLAG_DROPPABLE && m->start >= r->start && m->end <= r->end)
			return true;
	}
	return false;
}

/* What of one mapping is to be saved; false when memory is out. */
static bool select_map(struct capture *c, size_t i)
{
	struct selection *s = &c->selection;
	const struct map *m = list_at(&c->maps, i);
	struct map_written *w = list_at(&c->written, i);
	uint64_t before = s->pages;
	if (w->apart || is_droppable(c, m))
		return true;
	/* of a file: the base may have been without the pages that only that had */
	bool whole = w->whole || (!m->shared && m->deleted && m->inode);
	bool ok = selection_add(s, m, c->incremental && !whole ? &w->ranges : NULL);
	w->saved = s->pages - before;
	if (w->saved)
		make_readable(m, true);
	return ok;
}

static bool select_pages(struct capture *c)
{
	struct selection *s = &c->selection;
	bool ok = selection_open(s) && selection_find_guards(s);
	if (ok && (c->hashes_old || c->hashes_new))
		ok = hashes_compare(c);
	size_t hint = 0;
	for (size_t i = 0; i < c->maps.count && ok; i++) {
		const struct map *m = list_at(&c->maps, i);
		if (map_is_kernel(m) || map_is_excluded(m->start, m->end))
			continue;
		ok = select_map(c, i);
		struct map_record *r = record_of(c, m->start, &hint);
		if (r)
			r->pages += ((struct map_written *)list_at(&c->written, i))->saved;
	}
	for (size_t i = 0; i < c->copies.count && ok; i++) {
		const struct page_copy *p = list_at(&c->copies, i);
		ok = selection_add_copy(s, p->addr, p->copy, p->pages);
	}
	selection_close(s);
	return ok;
}

/* What the sink of a live image has already, and the process has not. */
static struct offer *take_offer(struct capture *c, struct image_stream *s)
{
	const struct selection *sel = &c->selection;
	struct offer *offer = NULL;
	int rc = c->params.live && !image_stream_failed(s)
		     ? live_round_offered(c->params.live, &c->arena, &offer)
		     : 0;
	if (!rc && offer &&
	    !offer_left(offer, sel->runs.items, sel->runs.count, &c->selection.drops))
		rc = -ENOMEM;
	if (rc)
		image_stream_fail(s, rc);
	return rc ? NULL : offer;
}

static void put_pages(struct capture *c, struct image_stream *s, struct image_header *header,
		      uint64_t *same)
{
	const struct selection *sel = &c->selection;
	int32_t *tids = arena_alloc(&c->arena, c->threads.count * sizeof(*tids));
	struct pages_result result;
	if (!tids) {
		image_stream_fail(s, -ENOMEM);
		return;
	}
	for (size_t i = 0; i < c->threads.count; i++) {
		int32_t tid = ((struct thread_record *)list_at(&c->threads, i))->tid;
		size_t k = i;
		for (; k > 0 && tids[k - 1] > tid; k--)
			tids[k] = tids[k - 1];
		tids[k] = tid;
	}
	struct offer *offer = take_offer(c, s);
	struct pages_params p = {.runs = sel->runs.items,
				 .count = sel->runs.count,
				 .pages = sel->pages,
				 .compress = c->params.compress,
				 .tids = tids,
				 .tid_count = c->threads.count,
				 .workers = c->params.live ? 1 : workers_wanted(),
				 .want_drops = c->incremental || offer,
				 .offer = offer,
				 .moving = c->params.mode == IMAGE_SYNC};
	if (!pages_write(s, &p, &result)) {
		image_stream_fail(s, -ENOMEM);
		return;
	}
	header->pages = result.saved;
	header->pages_zero = result.zero;
	*same = result.same;
	put_table(c, s, FRAME_LOCKS, &result.locks, NULL, 0);
	if (sel->drops.count)
		put_table(c, s, FRAME_DROPS, &sel->drops, NULL, 0);
	if (result.drops.count)
		put_table(c, s, FRAME_DROPS, &result.drops, NULL, 0);
	for (size_t i = 0; c->params.mode == IMAGE_SYNC && i < c->maps.count; i++) {
		const struct map *m = list_at(&c->maps, i);
		if (!map_is_kernel(m) && !map_is_excluded(m->start, m->end))
			make_readable(m, false);
	}
}

/* ---- all of it ---- */

static void fill_header(struct capture *c, struct image_header *h)
{
	struct timespec now = {0};
	sys(SYS_clock_gettime, CLOCK_REALTIME, &now);
	h->compress = c->params.compress;
	h->identity = c->params.identity;
	if (!c->incremental)
		h->identity.base = 0;
	h->taken_ns = now.tv_sec * 1000000000 + now.tv_nsec;
	h->threads = (uint32_t)c->threads.count;
	h->maps = (uint32_t)c->map_records.count;
	h->descriptors = (uint32_t)c->fds.records.count;
	h->note_len = (uint32_t)engine.note_len;
	h->xfeatures = process_xfeatures() | engine.processor;
	process_program(h->program, sizeof(h->program));
	long fd = sys(SYS_openat, AT_FDCWD, "/proc/thread-self/exe", O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		file_stamp_read((int)fd, &h->program_stamp);
		sys(SYS_close, fd);
	}
}

static hale_status_t write_error(const struct capture *c, int error, struct error *err)
{
	if (c->params.live && error != -ENOMEM && error != -ESRCH)
		return live_round_error(c->params.live, error, err);
	if (error == -ENOSPC || error == -EDQUOT)
		return error_set(err, HALE_ERR_STORE_FULL,
				 "no space left for the image %s: free some, or use another "
				 "checkpoint directory",
				 c->path);
	if (error == -EFBIG)
		return error_set(err, HALE_ERR_STORE,
				 "the program may not write files as large as the image %s: raise "
				 "its hard limit (`ulimit -H -f`)",
				 c->path);
	if (error == -ENOMEM)
		return no_memory(err);
	if (error == -ECHILD)
		return tree_put_error(err);
	if (error == -ESRCH)
		return error_set(err, HALE_ERR_PROCESS,
				 "the process ended while its image %s was written", c->path);
	return error_set(err, HALE_ERR_STORE, "can't write the image %s (error %d)", c->path,
			 -error);
}

static void put_all_but_memory(struct capture *c, struct image_stream *s)
{
	put_process(c, s);
	put_signals(c, s);
	put_table(c, s, FRAME_THREADS, &c->threads, NULL, 0);
	put_table(c, s, FRAME_DESCRIPTORS, &c->fds.records, c->fds.text.data, c->fds.text.len);
	if (c->scheduling.count)
		put_table(c, s, FRAME_SCHEDULING, &c->scheduling, NULL, 0);
	if (c->fds.locks.count)
		put_table(c, s, FRAME_FILE_LOCKS, &c->fds.locks, NULL, 0);
	if (c->fds.owners.count)
		put_table(c, s, FRAME_OWNERS, &c->fds.owners, NULL, 0);
	if (c->selection.guards.count)
		put_table(c, s, FRAME_GUARDS, &c->selection.guards, NULL, 0);
	if (c->advice.count)
		put_table(c, s, FRAME_ADVICE, &c->advice, NULL, 0);
	put_contents(c, s);
	for (size_t i = 0; i < c->ipc.count; i++) {
		const struct ipc_part *p = list_at(&c->ipc, i);
		image_stream_put(s, FRAME_IPC, 1, &p->record, sizeof(p->record), p->data, p->len);
	}
}

/* What the sink wants to know before it takes anything. */
static void begin_live(struct capture *c, struct image_stream *s)
{
	struct live_begin begin = {.magic = LIVE_MAGIC,
				   .version = LIVE_VERSION,
				   .then = c->params.live->then,
				   .resident = c->selection.pages * HALE_PAGE,
				   .vdso_sum = c->process.record.vdso_sum};
	memcpy(begin.region, c->process.record.region, sizeof(begin.region));
	fill_header(c, &begin.header);
	begin.header.magic = IMAGE_MAGIC;
	begin.header.version = IMAGE_VERSION;
	int rc = live_round_begin(c->params.live, &begin, c->incremental);
	if (rc)
		image_stream_fail(s, rc);
}

static bool begin_stream(struct capture *c, struct image_stream *s)
{
	bool ok = c->params.live ? image_stream_init_live(s, &c->arena, c->params.live)
				 : image_stream_init(s, &c->arena, c->fd, engine.note_len);
	if (ok && c->params.mode == IMAGE_FORKED && !tree_is_member(c->parent))
		s->parent = c->parent;
	s->root = c->root;
	return ok;
}

static hale_status_t write_frames(struct capture *c, struct image_result *result, struct error *err)
{
	struct image_stream s;
	struct image_header header = {0};
	hale_status_t rc = check_inherited(c, err);
	if (rc != HALE_OK)
		return rc;
	if (!begin_stream(c, &s))
		return no_memory(err);
	stamp_maps(c);
	bool selected = select_pages(c);
	if (c->params.live)
		begin_live(c, &s);
	if (!c->ahead)
		put_all_but_memory(c, &s);
	put_table(c, &s, FRAME_MAPS, &c->map_records, c->map_text.data, c->map_text.len);
	if (selected)
		put_pages(c, &s, &header, &result->pages_same);
	else
		image_stream_fail(&s, -ENOMEM);
	if (!c->params.live) /* after its own pages: theirs are being written meanwhile */
		tree_put(c, &s);
	fill_header(c, &header);
	image_stream_finish(&s, &header, engine.note);
	int error = atomic_load(&s.error);
	if (!error && c->params.sync)
		error = (int)sys(SYS_fdatasync, c->fd);
	result->bytes = header.file_len;
	result->pages_saved = header.pages;
	result->pages_zero = header.pages_zero;
	result->checksum = s.checksum;
	result->base = header.identity.base;
	return error ? write_error(c, error, err) : HALE_OK;
}

void capture_write(struct capture *c)
{
	struct image_result result = {.error = {HALE_OK, ""}};
	if (write_frames(c, &result, &result.error) == HALE_OK) {
		track_base_written(c);
	} else if (!c->params.live) {
		/* its space is wanted back now, not when the last descriptor is closed */
		sys(SYS_ftruncate, c->fd, 0);
		sys(SYS_unlink, c->path);
	}
	result.seconds = (double)(clock_ns() - c->began_ns) * 1e-9;
	if (c->params.written)
		c->params.written(c->params.arg, &result);
}
