// SPDX-License-Identifier: BSD-3-Clause
/* Reading images in ordinary processes: what is in them, and whether all of it is right. */
#include <string.h>

#include "image/read.h"

#define ARENA_RESERVE (1ul << 36)

hale_status_t image_reader_arena(struct arena *a, struct error *err)
{
	if (arena_init_most(a, ARENA_RESERVE))
		return HALE_OK;
	return error_set(err, HALE_ERR_MEMORY, "no memory to read an image");
}

static void fill_info(const struct image_file *f, struct image_info *info)
{
	const struct image_header *h = &f->header;
	memset(info, 0, sizeof(*info));
	info->identity = h->identity;
	memcpy(info->program, h->program, sizeof(info->program));
	info->version = h->version;
	info->threads = h->threads;
	info->maps = h->maps;
	info->descriptors = h->descriptors;
	info->bytes = h->file_len;
	info->pages = h->pages;
	info->checksum = f->checksum;
	info->note_len = h->note_len;
	info->compress = (image_compress_t)h->compress;
	memcpy(info->note, f->note, h->note_len);
}

hale_status_t image_read_info(const char *path, struct image_info *info, struct error *err)
{
	struct arena arena;
	struct image_file f;
	struct error local;
	if (!err)
		err = &local;
	hale_status_t rc = image_reader_arena(&arena, err);
	if (rc != HALE_OK)
		return rc;
	rc = image_file_open(&f, &arena, path, err);
	if (rc == HALE_OK) {
		const struct frame_at *n = image_file_find(&f, FRAME_PROCESS, err);
		fill_info(&f, info);
		if (!n)
			rc = err->code;
		else if (n->frame.table_len < sizeof(struct process_record))
			rc = image_file_corrupt(&f, "process", err);
		else
			info->pid = ((const struct process_record *)n->table)->pid;
		image_file_close(&f);
	}
	arena_fini(&arena);
	return rc;
}

/* ---- every byte that a restart takes; those between frames it does not look at either ---- */

struct verification {
	struct image_file *f;
	_Atomic size_t next;
	_Atomic uint32_t next_worker;
	_Atomic int failed;
	struct error error;
	char *raw[WORKERS_MAX], *packed[WORKERS_MAX];
};

static hale_status_t verify_frame(struct verification *v, const struct frame_at *n, uint32_t worker,
				  struct error *err)
{
	if (!n->frame.data_len)
		return HALE_OK;
	return image_file_data(v->f, n, v->raw[worker], v->packed[worker], err);
}

static void verify_frames(void *arg)
{
	struct verification *v = arg;
	uint32_t me = atomic_fetch_add(&v->next_worker, 1);
	size_t i;
	while (!atomic_load(&v->failed) &&
	       (i = atomic_fetch_add(&v->next, 1)) < v->f->frames.count) {
		struct error err = {HALE_OK, ""};
		int none = 0;
		if (verify_frame(v, list_at(&v->f->frames, i), me, &err) != HALE_OK &&
		    atomic_compare_exchange_strong(&v->failed, &none, 1))
			v->error = err;
	}
}

static hale_status_t verify_tables(struct image_file *f, struct error *err)
{
	struct image_tables t;
	for (size_t i = 0; i < f->frames.count; i++) {
		struct frame_at *n = list_at(&f->frames, i);
		hale_status_t rc = image_file_table(f, n, err);
		if (rc == HALE_OK && (n->frame.kind == FRAME_PAGES || n->frame.kind == FRAME_DROPS))
			rc = image_file_check_runs(f, n, err);
		if (rc != HALE_OK)
			return rc;
	}
	return image_file_tables(f, &t, err);
}

static hale_status_t verify_file(struct image_file *f, struct error *err)
{
	struct verification v = {.f = f};
	unsigned workers = workers_wanted();
	hale_status_t rc = verify_tables(f, err);
	if (rc != HALE_OK)
		return rc;
	for (unsigned i = 0; i < workers; i++) {
		v.raw[i] = arena_pages(f->arena, FRAME_DATA_MAX);
		v.packed[i] = image_packed_room(f->arena);
		if (!v.raw[i] || !v.packed[i])
			return error_set(err, HALE_ERR_MEMORY, "no memory to read %s", f->path);
	}
	workers_run(f->arena, workers, verify_frames, &v);
	if (atomic_load(&v.failed)) {
		if (err)
			*err = v.error;
		return v.error.code;
	}
	return HALE_OK;
}

hale_status_t image_verify(const char *path, uint64_t *checksum, struct error *err)
{
	struct arena arena;
	struct image_file f;
	struct error local;
	if (!err)
		err = &local;
	hale_status_t rc = image_reader_arena(&arena, err);
	if (rc != HALE_OK)
		return rc;
	rc = image_file_open(&f, &arena, path, err);
	if (rc == HALE_OK) {
		rc = verify_file(&f, err);
		if (checksum)
			*checksum = f.checksum;
		image_file_close(&f);
	}
	arena_fini(&arena);
	return rc;
}
