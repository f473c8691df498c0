// SPDX-License-Identifier: BSD-3-Clause
/* A chain of differences and their base as one full image: newest first, each page of the newest
 * map is taken from the first image that says something about it. */
#include <errno.h>
#include <string.h>

#include "image/read.h"
#include "image/stream.h"

enum { BUFFER = 64 << 20 };

struct merge {
	struct arena arena;
	struct image_file file[IMAGE_CHAIN_MAX];
	size_t files;
	struct image_tables t;
	struct image_stream out;
	unsigned char **known; /* per map: a bit for each page that is decided */
	struct list locks;
	struct list runs; /* struct run, with their source in buffer */
	uint64_t run_pages;
	char *buffer, *packed;
	size_t used;
	uint64_t saved, zero;
};

static hale_status_t no_memory(struct error *err)
{
	return error_set(err, HALE_ERR_MEMORY, "no memory to consolidate images");
}

static hale_status_t open_all(struct merge *m, const char *const *paths, size_t count,
			      struct error *err)
{
	if (!count || count > IMAGE_CHAIN_MAX)
		return error_set(err, HALE_ERR_ARGUMENT, "a chain has 1 to %d images",
				 IMAGE_CHAIN_MAX);
	for (size_t i = 0; i < count; i++) {
		hale_status_t rc = image_file_open(&m->file[i], &m->arena, paths[i], err);
		if (rc != HALE_OK)
			return rc;
		m->files++;
	}
	hale_status_t rc = image_chain_check(m->file, count, err);
	if (rc == HALE_OK)
		rc = image_file_tables(&m->file[0], &m->t, err);
	m->buffer = arena_pages(&m->arena, BUFFER + FRAME_DATA_MAX);
	m->packed = image_packed_room(&m->arena);
	m->known = arena_alloc(&m->arena, m->t.map_count * sizeof(*m->known));
	list_init(&m->locks, &m->arena, sizeof(struct lock_record));
	list_init(&m->runs, &m->arena, sizeof(struct run));
	if (!m->buffer || !m->packed || !m->known)
		return rc != HALE_OK ? rc : no_memory(err);
	return rc;
}

/* ---- pages ---- */

static size_t map_at(const struct merge *m, uint64_t addr)
{
	size_t low = 0, high = m->t.map_count;
	while (low < high) {
		size_t mid = (low + high) / 2;
		if (addr >= m->t.maps[mid].end)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* Says that a page is decided now; false if it was before, or isn't in the newest map. */
static bool decide(struct merge *m, uint64_t addr, size_t *map, struct error *err)
{
	size_t i = *map = map_at(m, addr);
	if (i == m->t.map_count || addr < m->t.maps[i].start)
		return false;
	const struct map_record *r = &m->t.maps[i];
	uint64_t page = (addr - r->start) / HALE_PAGE;
	if (!m->known[i]) {
		m->known[i] = arena_alloc(&m->arena, (r->end - r->start) / HALE_PAGE / 8 + 1);
		if (!m->known[i]) {
			no_memory(err);
			return false;
		}
	}
	unsigned char bit = (unsigned char)(1u << (page % 8));
	if (m->known[i][page / 8] & bit)
		return false;
	m->known[i][page / 8] |= bit;
	return true;
}

static bool flush(struct merge *m)
{
	struct pages_params p = {.runs = m->runs.items,
				 .count = m->runs.count,
				 .pages = m->run_pages,
				 .compress = (image_compress_t)m->file[0].header.compress,
				 .workers = workers_wanted()};
	struct pages_result result = {0};
	bool ok = !m->runs.count || pages_write(&m->out, &p, &result);
	m->saved += result.saved;
	m->zero += result.zero;
	m->runs.count = 0;
	m->run_pages = 0;
	m->used = 0;
	return ok;
}

static bool keep_page(struct merge *m, uint64_t addr, const char *source, bool keep_zero)
{
	struct run *last = m->runs.count ? list_at(&m->runs, m->runs.count - 1) : NULL;
	m->run_pages++;
	if (last && last->addr + last->pages * HALE_PAGE == addr && last->keep_zero == keep_zero &&
	    last->source + last->pages * HALE_PAGE == (uint64_t)source) {
		last->pages++;
		return true;
	}
	struct run *r = list_add(&m->runs);
	if (r)
		*r = (struct run){addr, (uint64_t)source, 1, keep_zero, false};
	return r != NULL;
}

static hale_status_t take_pages(struct merge *m, struct image_file *f, const struct frame_at *n,
				struct error *err)
{
	const uint64_t *run = n->table;
	char *from = m->buffer + m->used;
	hale_status_t rc = image_file_data(f, n, from, m->packed, err);
	for (uint32_t i = 0; i < n->frame.count && rc == HALE_OK; i++) {
		for (uint64_t k = 0; k < run_pages(run[i]); k++, from += HALE_PAGE) {
			uint64_t addr = run_addr(run[i]) + k * HALE_PAGE;
			size_t map;
			err->code = HALE_OK;
			if (decide(m, addr, &map, err) &&
			    !keep_page(m, addr, from, m->t.maps[map].kind == MAP_KIND_FILE))
				return no_memory(err);
			if (err->code != HALE_OK)
				return err->code;
		}
	}
	m->used += n->frame.raw_len;
	if (rc == HALE_OK && m->used > BUFFER && !flush(m))
		rc = no_memory(err);
	return rc;
}

static hale_status_t take_drops(struct merge *m, const struct frame_at *n, struct error *err)
{
	const uint64_t *run = n->table;
	err->code = HALE_OK;
	for (uint32_t i = 0; i < n->frame.count; i++)
		for (uint64_t k = 0; k < run_pages(run[i]) && err->code == HALE_OK; k++) {
			size_t map;
			decide(m, run_addr(run[i]) + k * HALE_PAGE, &map, err);
		}
	return err->code;
}

static hale_status_t take_locks(struct merge *m, const struct frame_at *n, struct error *err)
{
	const struct lock_record *r = n->table;
	for (size_t i = 0; i < n->frame.table_len / sizeof(*r); i++) {
		struct lock_record *l = list_add(&m->locks);
		if (!l)
			return no_memory(err);
		*l = r[i];
	}
	return HALE_OK;
}

static hale_status_t take_image(struct merge *m, struct image_file *f, struct error *err)
{
	for (size_t i = 0; i < f->frames.count; i++) {
		struct frame_at *n = list_at(&f->frames, i);
		unsigned kind = n->frame.kind;
		if (kind != FRAME_PAGES && kind != FRAME_DROPS && kind != FRAME_LOCKS)
			continue;
		hale_status_t rc = image_file_table(f, n, err);
		if (rc == HALE_OK && kind != FRAME_LOCKS)
			rc = image_file_check_runs(f, n, err);
		if (rc == HALE_OK)
			rc = kind == FRAME_PAGES   ? take_pages(m, f, n, err)
			     : kind == FRAME_DROPS ? take_drops(m, n, err)
						   : take_locks(m, n, err);
		if (rc != HALE_OK)
			return rc;
	}
	return HALE_OK;
}

/* ---- everything else is the newest image's ---- */

static hale_status_t copy_tables(struct merge *m, struct error *err)
{
	struct image_file *f = &m->file[0];
	for (size_t i = 0; i < f->frames.count; i++) {
		struct frame_at *n = list_at(&f->frames, i);
		switch (n->frame.kind) {
		case FRAME_PROCESS:
		case FRAME_SIGNALS:
		case FRAME_THREADS:
		case FRAME_DESCRIPTORS:
		case FRAME_CONTENT:
		case FRAME_SCHEDULING:
		case FRAME_FILE_LOCKS:
		case FRAME_OWNERS:
		case FRAME_GUARDS:
		case FRAME_ADVICE:
		case FRAME_IPC:
		case FRAME_TREE:
		case FRAME_TREE_PART:
			break;
		default:
			continue;
		}
		hale_status_t rc = image_file_table(f, n, err);
		if (rc == HALE_OK)
			rc = image_file_data(f, n, m->buffer, m->packed, err);
		if (rc != HALE_OK)
			return rc;
		image_stream_put(&m->out, n->frame.kind, n->frame.count, n->table,
				 n->frame.table_len, m->buffer, n->frame.data_len);
	}
	return HALE_OK;
}

/* How many pages each mapping has is known only now. */
static hale_status_t put_maps(struct merge *m, struct error *err)
{
	struct frame_at *n = image_file_find(&m->file[0], FRAME_MAPS, err);
	if (!n)
		return err->code;
	struct map_record *r = (struct map_record *)(uintptr_t)n->table;
	for (size_t i = 0; i < m->t.map_count; i++) {
		uint64_t bytes = (r[i].end - r[i].start) / HALE_PAGE / 8 + 1, pages = 0;
		for (uint64_t k = 0; m->known[i] && k < bytes; k++)
			pages += (uint64_t)__builtin_popcount(m->known[i][k]);
		r[i].pages = pages;
	}
	image_stream_put(&m->out, FRAME_MAPS, n->frame.count, n->table, n->frame.table_len, NULL,
			 0);
	return HALE_OK;
}

static hale_status_t merge_all(struct merge *m, int fd, struct error *err)
{
	struct image_header header = m->file[0].header;
	if (!image_stream_init(&m->out, &m->arena, fd, header.note_len))
		return no_memory(err);
	hale_status_t rc = copy_tables(m, err);
	for (size_t i = 0; i < m->files && rc == HALE_OK; i++)
		rc = take_image(m, &m->file[i], err);
	if (rc == HALE_OK && !flush(m))
		rc = no_memory(err);
	if (rc == HALE_OK)
		rc = put_maps(m, err);
	if (rc != HALE_OK)
		return rc;
	image_stream_put(&m->out, FRAME_LOCKS, (uint32_t)m->locks.count, m->locks.items,
			 m->locks.count * sizeof(struct lock_record), NULL, 0);
	header.identity.base = 0;
	header.pages = m->saved;
	header.pages_zero = m->zero;
	image_stream_finish(&m->out, &header, m->file[0].note);
	int error = atomic_load(&m->out.error);
	if (!error)
		error = (int)sys(SYS_fdatasync, fd);
	if (error == -ENOSPC || error == -EDQUOT)
		return error_set(err, HALE_ERR_STORE_FULL, "no space left to consolidate images");
	return error ? error_set(err, HALE_ERR_STORE,
				 "can't write the consolidated image (error %d)", -error)
		     : HALE_OK;
}

hale_status_t image_consolidate(const char *const *paths, size_t count, const char *out,
				struct error *err)
{
	struct arena arena;
	struct error local;
	if (!err)
		err = &local;
	hale_status_t rc = image_reader_arena(&arena, err);
	if (rc != HALE_OK)
		return rc;
	struct merge *m = arena_alloc(&arena, sizeof(*m));
	if (!m) {
		arena_fini(&arena);
		return no_memory(err);
	}
	m->arena = arena;
	rc = open_all(m, paths, count, err);
	if (rc == HALE_OK) {
		long fd =
		    sys(SYS_openat, AT_FDCWD, out, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (fd < 0) {
			rc = error_set(err, HALE_ERR_STORE, "can't create the image %s (error %ld)",
				       out, -fd);
		} else {
			rc = merge_all(m, (int)fd, err);
			sys(SYS_close, fd);
			if (rc != HALE_OK)
				sys(SYS_unlink, out);
		}
	}
	for (size_t i = 0; i < m->files; i++)
		image_file_close(&m->file[i]);
	arena = m->arena;
	arena_fini(&arena);
	return rc;
}
