// SPDX-License-Identifier: BSD-3-Clause
#include "image/read.h"

#include <errno.h>
#include <lz4.h>
#include <string.h>
#define ZSTD_STATIC_LINKING_ONLY
#include <zstd.h>

#include "image/hash.h"

enum { READ_PART = 256 << 10 };

hale_status_t image_file_corrupt(const struct image_file *f, const char *what, struct error *err)
{
	if (f->live)
		return error_set(err, HALE_ERR_IMAGE_CORRUPT,
				 "what came from %s is damaged (%s): try again", f->path, what);
	return error_set(err, HALE_ERR_IMAGE_CORRUPT,
			 "image %s is damaged (%s): use an earlier checkpoint", f->path, what);
}

static hale_status_t torn(const struct image_file *f, struct error *err)
{
	return error_set(err, HALE_ERR_IMAGE_TORN,
			 "image %s is incomplete, its writer was interrupted: use an earlier "
			 "checkpoint",
			 f->path);
}

static hale_status_t read_failed(const struct image_file *f, int rc, struct error *err)
{
	return rc == -EIO
		   ? torn(f, err)
		   : error_set(err, HALE_ERR_STORE, "can't read image %s (error %d)", f->path, -rc);
}

/* ---- frames ---- */

static hale_status_t frame_check(const struct image_file *f, const struct frame *frame, uint64_t at,
				 struct error *err)
{
	if (frame->magic != FRAME_MAGIC || frame->sum != hash64(frame, offsetof(struct frame, sum)))
		return image_file_corrupt(f, "head of a frame", err);
	if (frame->kind == 0 || frame->kind >= FRAME_KINDS || frame->compress > IMAGE_ZSTD ||
	    frame->table_len > FRAME_TABLE_MAX || frame->data_len > f->len ||
	    (frame->kind != FRAME_PAGES && frame->kind != FRAME_CONTENT &&
	     frame->kind != FRAME_TREE_PART && frame->kind != FRAME_IPC && frame->data_len) ||
	    frame->raw_len > FRAME_DATA_MAX || frame->pad > FRAME_ALIGN / HALE_PAGE ||
	    frame->data_len > frame->raw_len)
		return image_file_corrupt(f, "size of a frame", err);
	if (frame->compress == IMAGE_PLAIN ? frame->raw_len != frame->data_len
					   : frame->kind != FRAME_PAGES)
		return image_file_corrupt(f, "lengths of a frame", err);
	if (frame_len(frame) > f->len - at)
		return torn(f, err);
	return HALE_OK;
}

/* Lengths are in the header, so that a file cut at the end of a frame is found too. */
static hale_status_t walk_frames(struct image_file *f, struct error *err)
{
	XXH3_state_t sum;
	XXH3_64bits_reset(&sum);
	list_init(&f->frames, f->arena, sizeof(struct frame_at));
	for (uint64_t at = 0; at < f->len;) {
		struct frame_at *n = list_add(&f->frames);
		if (!n)
			return error_set(err, HALE_ERR_MEMORY, "no memory to read %s", f->path);
		n->at = at;
		int rc = sys_read_at(f->fd, &n->frame, sizeof(n->frame), at);
		if (rc)
			return read_failed(f, rc, err);
		hale_status_t status = frame_check(f, &n->frame, at, err);
		if (status != HALE_OK)
			return status;
		XXH3_64bits_update(&sum, &n->frame, sizeof(n->frame));
		at += frame_len(&n->frame);
	}
	f->checksum = XXH3_64bits_digest(&sum);
	return f->frames.count == f->header.frames ? HALE_OK
						   : image_file_corrupt(f, "number of frames", err);
}

hale_status_t image_file_table(struct image_file *f, struct frame_at *n, struct error *err)
{
	if (n->table)
		return HALE_OK;
	char *table = arena_alloc(f->arena, n->frame.table_len + 1);
	if (!table)
		return error_set(err, HALE_ERR_MEMORY, "no memory to read %s", f->path);
	int rc = sys_read_at(f->fd, table, n->frame.table_len, n->at + sizeof(n->frame));
	if (rc)
		return read_failed(f, rc, err);
	if (hash64(table, n->frame.table_len) != n->frame.table_sum)
		return image_file_corrupt(f, frame_kind_name(n->frame.kind), err);
	n->table = table;
	return HALE_OK;
}

static hale_status_t read_header(struct image_file *f, struct error *err)
{
	struct frame frame;
	if (f->len < sizeof(frame) + sizeof(f->header))
		return torn(f, err);
	int rc = sys_read_at(f->fd, &frame, sizeof(frame), 0);
	if (!rc)
		rc = sys_read_at(f->fd, &f->header, sizeof(f->header), sizeof(frame));
	if (rc)
		return read_failed(f, rc, err);
	if (frame.magic == 0 && f->header.magic == 0)
		return torn(f, err); /* the header is written last */
	if (frame.magic != FRAME_MAGIC || f->header.magic != IMAGE_MAGIC)
		return error_set(err, HALE_ERR_IMAGE_CORRUPT,
				 "%s is not an image, or its beginning is damaged: use an earlier "
				 "checkpoint",
				 f->path);
	if (frame.sum != hash64(&frame, offsetof(struct frame, sum)) ||
	    frame.kind != FRAME_HEADER || frame.table_len > FRAME_TABLE_MAX ||
	    frame.table_len > f->len)
		return image_file_corrupt(f, "head of a frame", err);
	struct frame_at first = {.frame = frame};
	hale_status_t status = image_file_table(f, &first, err);
	if (status != HALE_OK)
		return status;
	if (f->header.version < IMAGE_VERSION_OLDEST || f->header.version > IMAGE_VERSION)
		return error_set(
		    err, HALE_ERR_IMAGE_MISMATCH,
		    "image %s has format %u, this Hale reads formats %u to %u: use the "
		    "Hale that wrote it",
		    f->path, f->header.version, IMAGE_VERSION_OLDEST, IMAGE_VERSION);
	if (f->header.note_len > IMAGE_NOTE_MAX ||
	    frame.table_len != sizeof(f->header) + f->header.note_len)
		return image_file_corrupt(f, "note", err);
	f->header.identity.job[IMAGE_NAME_MAX - 1] = 0;
	f->header.program[sizeof(f->header.program) - 1] = 0;
	f->note = (const char *)first.table + sizeof(f->header);
	if (f->len < f->header.file_len)
		return torn(f, err);
	if (f->len > f->header.file_len)
		return image_file_corrupt(f, "bytes behind its end", err);
	return HALE_OK;
}

hale_status_t image_file_open(struct image_file *f, struct arena *a, const char *path,
			      struct error *err)
{
	struct stat st = {0};
	*f = (struct image_file){.path = path, .arena = a};
	f->fd = (int)sys(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	if (f->fd == -ENOENT || f->fd == -ENOTDIR)
		return error_set(err, HALE_ERR_IMAGE_MISSING,
				 "there is no image %s: use an earlier checkpoint", path);
	if (f->fd < 0 || sys(SYS_fstat, f->fd, &st))
		return error_set(err, HALE_ERR_STORE, "can't open image %s (error %d)", path,
				 -f->fd);
	if (!S_ISREG(st.st_mode)) {
		image_file_close(f);
		return error_set(err, HALE_ERR_IMAGE_CORRUPT, "%s is not a regular file", path);
	}
	f->len = (uint64_t)st.st_size;
	hale_status_t rc = read_header(f, err);
	if (rc == HALE_OK)
		rc = walk_frames(f, err);
	if (rc != HALE_OK)
		image_file_close(f);
	return rc;
}

void image_file_close(struct image_file *f)
{
	if (f->fd >= 0)
		sys(SYS_close, f->fd);
	f->fd = -1;
}

struct frame_at *image_file_find(struct image_file *f, enum frame_kind kind, struct error *err)
{
	for (size_t i = 0; i < f->frames.count; i++) {
		struct frame_at *n = list_at(&f->frames, i);
		if (n->frame.kind == kind)
			return image_file_table(f, n, err) == HALE_OK ? n : NULL;
	}
	image_file_corrupt(f, frame_kind_name(kind), err);
	return NULL;
}

/* ---- data ---- */

void *image_packed_room(struct arena *a)
{
	return arena_pages(a, FRAME_DATA_MAX + ZSTD_estimateDCtxSize());
}

static int unpack(const struct frame *frame, void *packed, void *raw)
{
	if (frame->compress == IMAGE_LZ4)
		return LZ4_decompress_safe(packed, raw, (int)frame->data_len,
					   (int)frame->raw_len) == (int)frame->raw_len
			   ? 0
			   : -1;
	ZSTD_DCtx *state =
	    ZSTD_initStaticDCtx((char *)packed + FRAME_DATA_MAX, ZSTD_estimateDCtxSize());
	if (!state)
		return -1;
	size_t n = ZSTD_decompressDCtx(state, raw, frame->raw_len, packed, frame->data_len);
	return n == frame->raw_len ? 0 : -1;
}

hale_status_t image_file_data(const struct image_file *f, const struct frame_at *n, void *raw,
			      void *packed, struct error *err)
{
	const struct frame *frame = &n->frame;
	char *to = frame->compress == IMAGE_PLAIN ? raw : packed;
	uint64_t at = n->at + frame_data_at(frame);
	XXH3_state_t sum;
	XXH3_64bits_reset(&sum);
	/* in parts that are still in the cache when they are summed up */
	for (uint64_t done = 0; done < frame->data_len;) {
		uint64_t len =
		    frame->data_len - done < READ_PART ? frame->data_len - done : READ_PART;
		int rc = sys_read_at(f->fd, to + done, len, at + done);
		if (rc)
			return read_failed(f, rc, err);
		XXH3_64bits_update(&sum, to + done, len);
		done += len;
	}
	if (XXH3_64bits_digest(&sum) != frame->data_sum ||
	    (frame->compress != IMAGE_PLAIN && unpack(frame, packed, raw)))
		return image_file_corrupt(f, frame_kind_name(frame->kind), err);
	return HALE_OK;
}

/* ---- tables ---- */

static bool run_fits(uint64_t run)
{
	return run_addr(run) + run_pages(run) * HALE_PAGE <= 1ull << 47;
}

hale_status_t image_file_check_runs(const struct image_file *f, const struct frame_at *n,
				    struct error *err)
{
	const uint64_t *run = n->table;
	uint64_t pages = 0;
	if (n->frame.table_len != (uint64_t)n->frame.count * sizeof(*run))
		return image_file_corrupt(f, "number of runs", err);
	for (uint32_t i = 0; i < n->frame.count; i++) {
		if (!run_fits(run[i]))
			return image_file_corrupt(f, "address of a run", err);
		pages += run_pages(run[i]);
	}
	if (n->frame.kind == FRAME_PAGES && pages * HALE_PAGE != n->frame.raw_len)
		return image_file_corrupt(f, "length of runs", err);
	return HALE_OK;
}

/* Records, then text: both must lie in the table. Returns the text; NULL when they don't. */
static const char *split_table(const struct frame_at *n, size_t record, size_t *text_len)
{
	uint64_t records = (uint64_t)n->frame.count * record;
	if (records > n->frame.table_len)
		return NULL;
	*text_len = n->frame.table_len - records;
	return (const char *)n->table + records;
}

static bool text_ends(const char *text, size_t text_len, uint32_t offset, uint32_t len)
{
	return offset <= text_len && len <= text_len - offset && len && !text[offset + len - 1];
}

hale_status_t image_file_maps(struct image_file *f, struct image_tables *t, struct error *err)
{
	struct frame_at *n = image_file_find(f, FRAME_MAPS, err);
	if (!n)
		return err->code;
	t->maps = n->table;
	t->map_count = n->frame.count;
	t->map_text = split_table(n, sizeof(*t->maps), &t->map_text_len);
	if (!t->map_text)
		return image_file_corrupt(f, "maps", err);
	uint64_t before = 0;
	for (size_t i = 0; i < t->map_count; i++) {
		const struct map_record *m = &t->maps[i];
		bool named = m->kind == MAP_KIND_FILE || m->kind == MAP_KIND_SHARED_FILE;
		if (m->start < before || m->end <= m->start || m->end > 1ull << 47 ||
		    (m->start | m->end | m->offset) & (HALE_PAGE - 1) || m->kind < MAP_KIND_ANON ||
		    m->kind > MAP_KIND_SYSV || m->prot > 7 ||
		    m->stamp.build_id_len > BUILD_ID_MAX ||
		    (named &&
		     !text_ends(t->map_text, t->map_text_len, m->path_offset, m->path_len)))
			return image_file_corrupt(f, "maps", err);
		before = m->end;
	}
	return HALE_OK;
}

static hale_status_t parse_fds(struct image_file *f, struct image_tables *t, struct error *err)
{
	struct frame_at *n = image_file_find(f, FRAME_DESCRIPTORS, err);
	if (!n)
		return err->code;
	t->fds = n->table;
	t->fd_count = n->frame.count;
	t->fd_text = split_table(n, sizeof(*t->fds), &t->fd_text_len);
	if (!t->fd_text)
		return image_file_corrupt(f, "descriptors", err);
	for (size_t i = 0; i < t->fd_count; i++) {
		const struct fd_record *r = &t->fds[i];
		bool named = r->kind == FD_FILE || r->kind == FD_UNLINKED || r->kind == FD_DEVICE ||
			     r->kind == FD_STREAM;
		bool ok = r->fd >= 0 && r->fd < 1 << 24 && r->same_as < (int64_t)i &&
			  r->same_as >= -1 && r->kind >= FD_FILE && r->kind < FD_KINDS;
		if (ok && named && r->same_as < 0)
			ok = text_ends(t->fd_text, t->fd_text_len, r->text_offset, r->text_len);
		if (ok && r->kind == FD_EPOLL && r->same_as < 0)
			ok = r->text_offset <= t->fd_text_len &&
			     r->text_len <= t->fd_text_len - r->text_offset &&
			     r->a == r->text_len / sizeof(struct epoll_record);
		if (!ok)
			return image_file_corrupt(f, "descriptors", err);
	}
	return HALE_OK;
}

static hale_status_t parse_process(struct image_file *f, struct image_tables *t, struct error *err)
{
	struct frame_at *n = image_file_find(f, FRAME_PROCESS, err);
	if (!n)
		return err->code;
	const struct process_record *p = n->table;
	if (n->frame.table_len < sizeof(*p) ||
	    n->frame.table_len != sizeof(*p) + (uint64_t)p->cwd_len + p->auxv_len || !p->cwd_len)
		return image_file_corrupt(f, "process", err);
	t->process = p;
	t->cwd = (const char *)(p + 1);
	t->auxv = t->cwd + p->cwd_len;
	return t->cwd[p->cwd_len - 1] ? image_file_corrupt(f, "process", err) : HALE_OK;
}

/* A frame that not every image has: its records, each of `size` bytes. */
static hale_status_t parse_optional(struct image_file *f, enum frame_kind kind, size_t size,
				    const void **records, size_t *count, struct error *err)
{
	for (size_t i = 0; i < f->frames.count; i++) {
		struct frame_at *n = list_at(&f->frames, i);
		if (n->frame.kind != kind)
			continue;
		hale_status_t rc = image_file_table(f, n, err);
		if (rc != HALE_OK)
			return rc;
		if (n->frame.table_len != n->frame.count * size)
			return image_file_corrupt(f, frame_kind_name(kind), err);
		*records = n->table;
		*count = n->frame.count;
		return HALE_OK;
	}
	return HALE_OK;
}

hale_status_t image_file_tables(struct image_file *f, struct image_tables *t, struct error *err)
{
	memset(t, 0, sizeof(*t));
	hale_status_t rc = parse_process(f, t, err);
	if (rc == HALE_OK)
		rc = image_file_maps(f, t, err);
	if (rc == HALE_OK)
		rc = parse_fds(f, t, err);
	if (rc != HALE_OK)
		return rc;
	struct frame_at *n = image_file_find(f, FRAME_THREADS, err);
	if (!n)
		return err->code;
	t->threads = n->table;
	t->thread_count = n->frame.count;
	if (n->frame.table_len != t->thread_count * sizeof(*t->threads) || !t->thread_count)
		return image_file_corrupt(f, "threads", err);
	n = image_file_find(f, FRAME_SIGNALS, err);
	if (!n)
		return err->code;
	t->signals = n->table;
	t->timers = (const struct timer_record *)(t->signals + 1);
	t->timer_count = n->frame.count;
	if (n->frame.table_len != sizeof(*t->signals) + t->timer_count * sizeof(*t->timers))
		return image_file_corrupt(f, "signals", err);
	rc = parse_optional(f, FRAME_SCHEDULING, sizeof(*t->scheduling),
			    (const void **)&t->scheduling, &t->scheduling_count, err);
	if (rc == HALE_OK)
		rc = parse_optional(f, FRAME_FILE_LOCKS, sizeof(*t->file_locks),
				    (const void **)&t->file_locks, &t->file_lock_count, err);
	if (rc == HALE_OK)
		rc = parse_optional(f, FRAME_OWNERS, sizeof(*t->owners), (const void **)&t->owners,
				    &t->owner_count, err);
	if (rc == HALE_OK)
		rc = parse_optional(f, FRAME_GUARDS, sizeof(*t->guards), (const void **)&t->guards,
				    &t->guard_count, err);
	for (size_t i = 0; rc == HALE_OK && i < t->guard_count; i++)
		if (t->guards[i].start >= t->guards[i].end || t->guards[i].end > 1ull << 47 ||
		    (t->guards[i].start | t->guards[i].end) & (HALE_PAGE - 1))
			return image_file_corrupt(f, "guard regions", err);
	if (rc == HALE_OK)
		rc = parse_optional(f, FRAME_ADVICE, sizeof(*t->advice), (const void **)&t->advice,
				    &t->advice_count, err);
	return rc;
}

hale_status_t image_chain_check(const struct image_file *f, size_t count, struct error *err)
{
	for (size_t i = 0; i < count; i++) {
		const struct image_identity *id = &f[i].header.identity,
					    *newest = &f[0].header.identity;
		if (strcmp(id->job, newest->job) || id->rank != newest->rank ||
		    strcmp(f[i].header.program, f[0].header.program))
			return error_set(err, HALE_ERR_IMAGE_MISMATCH,
					 "images %s and %s are of different processes", f[0].path,
					 f[i].path);
		if (i + 1 < count && id->base != f[i + 1].header.identity.id)
			return error_set(err, HALE_ERR_IMAGE_MISMATCH,
					 "image %s is a difference to checkpoint %u, but %s is of "
					 "checkpoint %u",
					 f[i].path, id->base, f[i + 1].path,
					 f[i + 1].header.identity.id);
		if (i + 1 == count && id->base)
			return error_set(
			    err, HALE_ERR_IMAGE_MISSING,
			    "image %s is a difference to checkpoint %u, whose image is "
			    "needed too",
			    f[i].path, id->base);
	}
	return HALE_OK;
}
