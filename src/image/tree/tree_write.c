// SPDX-License-Identifier: BSD-3-Clause
/* The images of the descendants become frames of the root's. */
#include <errno.h>

#include <time.h>

#include "base/fmt.h"
#include "image/capture.h"
#include "image/tree/tree.h"

enum { LOOK_NS = 100000000 };

static int put_part(struct image_stream *s, int32_t pid, const char *path, char *buffer)
{
	struct stat st = {0};
	int rc = 0, fd = (int)sys(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return fd;
	if (sys(SYS_fstat, fd, &st))
		rc = -EIO;
	struct tree_part part = {.pid = pid, .total = (uint64_t)st.st_size};
	while (!rc && part.offset < part.total) {
		uint64_t left = part.total - part.offset;
		uint64_t n = left < FRAME_DATA_MAX ? left : FRAME_DATA_MAX;
		rc = sys_read_at(fd, buffer, n, part.offset);
		if (!rc)
			image_stream_put(s, FRAME_TREE_PART, 1, &part, sizeof(part), buffer, n);
		part.offset += n;
	}
	sys(SYS_close, fd);
	return rc;
}

/* False: it can't be had. */
static bool await_written(struct image_stream *s, struct tree_round *t, struct tree_member *m)
{
	const struct timespec tick = {0, LOOK_NS};
	for (;;) {
		uint32_t seen = atomic_load(&t->done);
		bool runs = tree_runs(m->writer);
		uint32_t written = atomic_load(&m->written);
		if (written != TREE_WRITING || !runs)
			return written == TREE_WRITTEN;
		if (image_stream_orphaned(s))
			return false;
		sys_futex_wait((uint32_t *)&t->done, seen, &tick);
	}
}

hale_status_t tree_put_error(struct error *err)
{
	const struct tree_round *t = tree_now();
	const struct tree_member *m = t->member;
	for (uint32_t i = 0; i < atomic_load(&t->count); i++, m++)
		if (atomic_load(&m->state) == TREE_CAPTURED && !m->is.ended &&
		    atomic_load(&m->written) != TREE_WRITTEN)
			return error_set(err, HALE_ERR_AGAIN,
					 "its child process %d (%s) can't be captured: %s",
					 m->is.pid, m->is.name,
					 m->text[0] ? m->text
						    : "what wrote its image has ended before it "
						      "was whole");
	return error_set(err, HALE_ERR_STORE, "the image of a child process can't be read");
}

void tree_put(struct capture *c, struct image_stream *s)
{
	struct tree_round *t = (struct tree_round *)(uintptr_t)tree_now();
	char path[IMAGE_PATH_MAX];
	if (!t || t->root != c->parent)
		return;
	struct tree_record *record = arena_alloc(&c->arena, (TREE_MAX + 1) * sizeof(*record));
	char *buffer = arena_pages(&c->arena, FRAME_DATA_MAX);
	uint32_t count = 1; /* the root, for its group */
	if (!record || !buffer || !tree_look(t->root, &record[0].is)) {
		image_stream_fail(s, -ENOMEM);
		return;
	}
	for (uint32_t i = 0; i < atomic_load(&t->count); i++) {
		struct tree_member *m = &t->member[i];
		if (atomic_load(&m->state) != TREE_CAPTURED)
			continue;
		record[count++] = (struct tree_record){m->is, m->status, m->code};
		if (m->is.ended)
			continue;
		fmt_print(path, sizeof(path), "%s.%d", t->path, m->is.pid);
		int rc = await_written(s, t, m) ? put_part(s, m->is.pid, path, buffer) : -ECHILD;
		sys(SYS_unlink, path);
		if (rc)
			image_stream_fail(s, rc);
	}
	if (count > 1)
		image_stream_put(s, FRAME_TREE, count, record, count * sizeof(*record), NULL, 0);
}
