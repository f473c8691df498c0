/* SPDX-License-Identifier: BSD-3-Clause */
#include "offload/host/snap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/base.h"
#include "base/own.h"

enum { PIECE = 4 << 20 };

static const char magic[8] = "HALESTOR";

/* Before the bytes of the buffers, in their order. */
struct snap_head {
	char magic[8];
	uint64_t count, sum; /* of what follows here */
	struct offload_range range[OFFLOAD_RANGES];
	uint64_t sums[OFFLOAD_RANGES]; /* of pieces, added up */
};

int snap_path(char path[PATH_MAX], const snapify_t *s, const char *name)
{
	if (snprintf(path, PATH_MAX, "%s/%s", s->m_snapshot_path, name) < PATH_MAX)
		return 0;
	return process_fail(ENAMETOOLONG, "the path of the snapshot is too long");
}

static int cannot(const char *what, const snapify_t *s)
{
	return process_fail(errno, "the snapshot in '%.200s' can't be %s: %s", s->m_snapshot_path,
			    what, strerror(errno));
}

static int damaged(const snapify_t *s, const char *what)
{
	return process_fail(EBADMSG, "the snapshot in '%.200s' is damaged: %s", s->m_snapshot_path,
			    what);
}

static uint64_t head_sum(const struct snap_head *h)
{
	return wire_sum(h->range, sizeof(h->range), 0) + wire_sum(h->sums, sizeof(h->sums), 1);
}

/* ---- the local store ---- */

static int save_range(struct hale_process *p, int file, struct snap_head *h, unsigned i,
		      uint64_t *at, char *piece, struct process_answer *a)
{
	const struct offload_range *r = &h->range[i];

	for (uint64_t done = 0; done < r->size;) {
		size_t n = r->size - done < PIECE ? (size_t)(r->size - done) : PIECE;
		struct wire_head ask = {.op = OFF_READ, .number = r->address + done, .size = n};

		a->into = piece;
		if (process_ask(p, &ask, NULL, 0, NULL, a) != 0)
			return -1;
		if (pwrite(file, piece, n, (off_t)*at) != (ssize_t)n) {
			errno = errno ? errno : ENOSPC;
			return -2;
		}
		h->sums[i] += wire_sum(piece, n, done);
		done += n;
		*at += n;
	}
	return 0;
}

static int save_all(struct hale_process *p, int file, struct snap_head *h, char *piece,
		    struct process_answer *a)
{
	struct wire_head ask = {.op = OFF_STORE};
	uint64_t at = sizeof(*h);
	int rc;

	if (process_ask(p, &ask, NULL, 0, NULL, a) != 0)
		return -1;
	memcpy(h->magic, magic, sizeof(magic));
	h->count = a->head.bytes / sizeof(h->range[0]);
	memcpy(h->range, a->payload, h->count * sizeof(h->range[0]));
	for (unsigned i = 0; i < h->count; i++) {
		rc = save_range(p, file, h, i, &at, piece, a);
		if (rc != 0)
			return rc;
	}
	h->sum = head_sum(h);
	errno = 0;
	return pwrite(file, h, sizeof(*h), 0) == sizeof(*h) && fsync(file) == 0 ? 0 : -2;
}

int snap_store_save(struct hale_process *p, const snapify_t *s)
{
	struct process_answer *a = calloc(1, sizeof(*a));
	struct snap_head *h = calloc(1, sizeof(*h));
	char path[PATH_MAX], *piece = malloc(PIECE);
	int file = -1, rc = -2, error;

	errno = ENOMEM;
	if (a && h && piece && snap_path(path, s, "store") == 0) {
		a->file = -1;
		file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
		if (file >= 0)
			rc = save_all(p, file, h, piece, a);
	}
	error = errno;
	if (file >= 0)
		close(file);
	free(piece);
	free(h);
	free(a);
	errno = error ? error : ENOSPC;
	return rc == -2 ? cannot("written", s) : rc;
}

static int load_range(struct hale_process *p, const snapify_t *s, int file,
		      const struct snap_head *h, unsigned i, uint64_t *at, char *piece,
		      struct process_answer *a)
{
	const struct offload_range *r = &h->range[i];
	uint64_t sum = 0;

	for (uint64_t done = 0; done < r->size;) {
		size_t n = r->size - done < PIECE ? (size_t)(r->size - done) : PIECE;
		struct wire_head ask = {.op = OFF_WRITE, .number = r->address + done, .size = n};

		if (pread(file, piece, n, (off_t)*at) != (ssize_t)n)
			return damaged(s, "its store is too short");
		sum += wire_sum(piece, n, done);
		if (process_ask(p, &ask, NULL, 0, piece, a) != 0)
			return -1;
		done += n;
		*at += n;
	}
	return sum == h->sums[i] ? 0 : damaged(s, "a buffer in its store");
}

static int load_all(struct hale_process *p, const snapify_t *s, int file, struct snap_head *h,
		    char *piece, struct process_answer *a)
{
	uint64_t at = sizeof(*h);

	if (pread(file, h, sizeof(*h), 0) != sizeof(*h) ||
	    memcmp(h->magic, magic, sizeof(magic)) != 0 || h->count > OFFLOAD_RANGES ||
	    h->sum != head_sum(h))
		return damaged(s, "the head of its store");
	for (unsigned i = 0; i < h->count; i++)
		if (load_range(p, s, file, h, i, &at, piece, a) != 0)
			return -1;
	return 0;
}

int snap_store_load(struct hale_process *p, const snapify_t *s)
{
	struct process_answer *a = calloc(1, sizeof(*a));
	struct snap_head *h = calloc(1, sizeof(*h));
	char path[PATH_MAX], *piece = malloc(PIECE);
	int file = -1, rc = -2, error;

	errno = ENOMEM;
	if (a && h && piece && snap_path(path, s, "store") == 0) {
		a->file = -1;
		file = open(path, O_RDONLY | O_CLOEXEC);
		if (file >= 0)
			rc = load_all(p, s, file, h, piece, a);
	}
	error = errno;
	if (file >= 0)
		close(file);
	free(piece);
	free(h);
	free(a);
	errno = error;
	return rc == -2 ? cannot("read", s) : rc;
}

/* ---- the manifest ---- */

static int write_object(const struct hale_process *p, const char *path)
{
	int out = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	bool good;

	errno = 0;
	good = out >= 0 && write(out, p->object, p->object_size) == (ssize_t)p->object_size &&
	       fsync(out) == 0;
	if (!good && !errno)
		errno = ENOSPC;
	if (out >= 0)
		close(out);
	return good ? 0 : -1;
}

int snap_manifest_write(struct hale_process *p, const snapify_t *s)
{
	char path[PATH_MAX], temporary[PATH_MAX], object[PATH_MAX], store[PATH_MAX], text[400];
	struct stat st;
	bool good;
	int fd, n;

	if (snap_path(path, s, "manifest") || snap_path(temporary, s, "manifest.part") ||
	    snap_path(object, s, "object.so") || snap_path(store, s, "store"))
		return -1;
	if (write_object(p, object) != 0 || stat(store, &st) != 0)
		return cannot("written", s);
	n = snprintf(
	    text, sizeof(text),
	    "hale-offload-snapshot 1\nmemory %lu\nimage %lu %016lx\nstore %lu\nobject %lu\n",
	    (unsigned long)p->memory, (unsigned long)p->captured.head.size,
	    (unsigned long)p->image_sum, (unsigned long)st.st_size, (unsigned long)p->object_size);
	fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	good = fd >= 0 && write(fd, text, (size_t)n) == n && fsync(fd) == 0;
	if (fd >= 0)
		close(fd);
	return good && rename(temporary, path) == 0 ? 0 : cannot("written", s);
}

int snap_manifest_read(const snapify_t *s, struct snap_manifest *m)
{
	char path[PATH_MAX], text[400] = "";
	struct error err = {HALE_OK, ""};
	ssize_t n;
	int fd;

	if (snap_path(path, s, "manifest") != 0)
		return -1;
	fd = own_open(path, O_RDONLY, &err);
	if (fd < 0)
		return process_fail(ENOENT, "there is no snapshot in '%.150s': %.200s",
				    s->m_snapshot_path, err.text);
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0 ||
	    sscanf(text,
		   "hale-offload-snapshot 1\nmemory %lu\nimage %lu %lx\nstore %lu\nobject %lu\n",
		   &m->memory, &m->image_size, &m->image_sum, &m->store_size, &m->object_size) != 5)
		return damaged(s, "its manifest");
	return 0;
}

void snap_remove(const char *folder)
{
	static const char *const names[] = {"manifest", "image", "store", "object.so"};
	char path[PATH_MAX];

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
		unlink(path);
	}
	rmdir(folder);
}
