/* SPDX-License-Identifier: BSD-3-Clause */
/* Where checkpoints lie: one file without a name per domain, so that nothing stays behind, in
 * which every object has room for two versions of each of its chunks. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/base.h"
#include "base/cancel.h"
#include "ocl/epoch/epoch.h"
#include "ocl/ocl.h"

struct extent {
	struct extent *next;
	off_t at, bytes;
};

static int unnamed_file(const char *dir)
{
	char path[PATH_MAX];
	int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL))
		return fd;
	if (snprintf(path, sizeof(path), "%s/hale-opencl.XXXXXX", dir) >= PATH_MAX)
		return -1;
	fd = mkostemp(path, O_CLOEXEC);
	if (fd >= 0)
		unlink(path);
	return fd;
}

static void drop_extents(struct ocl_store *s)
{
	while (s->free) {
		struct extent *x = s->free;
		s->free = x->next;
		free(x);
	}
}

static void tell_of_folder(void)
{
	static bool told;

	if (!told)
		log_warn("opencl: no checkpoints: '%s': %s. The program goes on without; give "
			 "another folder by HALE_OPENCL='dir=PATH'",
			 ocl.set.dir, strerror(errno));
	told = true;
}

void ocl_store_look(void)
{
	int fd = unnamed_file(ocl.set.dir);

	if (fd >= 0)
		close(fd);
	else
		tell_of_folder();
}

bool ocl_store_open(struct domain *d)
{
	struct ocl_store *s = &d->store;

	ocl_store_renew(d);
	if (s->fd >= 0)
		return true;
	if (s->tried)
		return false;
	UNCANCELLED;
	s->tried = true;
	s->life = atomic_load(&ocl.lives);
	s->fd = unnamed_file(ocl.set.dir);
	if (s->fd < 0)
		tell_of_folder();
	else
		ocl_guest_descriptor(s->fd, true);
	return s->fd >= 0;
}

void ocl_store_renew(struct domain *d)
{
	if (LIKELY(!ocl_store_is_gone(&d->store)))
		return;
	drop_extents(&d->store);
	if (d->store.fd >= 0)
		ocl_guest_descriptor(d->store.fd, false);
	d->store = (struct ocl_store){.fd = -1};
	for (struct ocl_object *o = d->objects.next; o != &d->objects; o = o->next) {
		struct mem *m = (struct mem *)o;
		if (o->kind != OCL_MEM && o->kind != OCL_SVM)
			continue;
		m->modified |= OCL_BY_DEVICE;
		m->saved = false;
		m->at = -1;
		for (size_t i = 0; i < m->chunk_count; i++)
			m->chunks[i] = (struct chunk){.slot = -1, .next = -1};
	}
	for (struct ocl_entry *e = d->first; e; e = e->next)
		if (!e->data.memory)
			e->data = (struct blob){0};
	d->unprotected = true;
	d->save_failed = false; /* that was another file */
	ocl_detect_settle(d);
}

void ocl_store_close(struct domain *d)
{
	UNCANCELLED;
	struct ocl_store *s = &d->store;

	drop_extents(s);
	if (s->fd >= 0) {
		ocl_guest_descriptor(s->fd, false);
		if (!ocl_store_is_gone(s))
			close(s->fd);
	}
	s->fd = -1;
}

off_t ocl_store_take(struct domain *d, off_t bytes)
{
	struct ocl_store *s = &d->store;
	off_t at;

	bytes = (off_t)ALIGN_UP((size_t)bytes, HALE_PAGE);
	for (struct extent **x = &s->free; *x; x = &(*x)->next) {
		struct extent *old = *x;
		if (old->bytes < bytes)
			continue;
		at = old->at;
		old->at += bytes;
		old->bytes -= bytes;
		if (old->bytes == 0) {
			*x = old->next;
			free(old);
		}
		return at;
	}
	at = s->end;
	s->end += bytes;
	return at;
}

/* In the order of their places, neighbours joined, so that there are never more of them than of
 * what lies between. */
static void place_extent(struct ocl_store *s, off_t at, off_t bytes)
{
	struct extent **link = &s->free, *before = NULL, *x;

	for (; *link && (*link)->at < at; link = &(*link)->next)
		before = *link;
	x = *link;
	if (before && before->at + before->bytes == at) {
		before->bytes += bytes;
		if (x && before->at + before->bytes == x->at) {
			before->bytes += x->bytes;
			before->next = x->next;
			free(x);
		}
	} else if (x && at + bytes == x->at) {
		x->at = at;
		x->bytes += bytes;
	} else if ((x = malloc(sizeof(*x)))) {
		*x = (struct extent){.next = *link, .at = at, .bytes = bytes};
		*link = x;
	}
}

void ocl_store_give(struct domain *d, off_t at, off_t bytes)
{
	struct ocl_store *s = &d->store;

	bytes = (off_t)ALIGN_UP((size_t)bytes, HALE_PAGE);
	if (s->fd < 0 || at < 0 || ocl_store_is_gone(s))
		return;
	if (fallocate(s->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, bytes) != 0)
		log_debug("opencl: %ld bytes of old checkpoints stay on disk", (long)bytes);
	place_extent(s, at, bytes);
}

bool ocl_store_write(struct domain *d, off_t at, const void *data, size_t size)
{
	UNCANCELLED;
	const char *p = data;

	if (ocl_store_is_gone(&d->store))
		return false;
	while (size > 0) {
		ssize_t n = pwrite(d->store.fd, p, size, at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			log_at(d->store.told ? LOG_DEBUG : LOG_WARN,
			       "opencl: a checkpoint could not be written to '%s': %s. The program "
			       "goes on with the one before",
			       ocl.set.dir, n < 0 ? strerror(errno) : "nothing was written");
			d->store.told = true;
			return false;
		}
		p += n;
		at += n;
		size -= (size_t)n;
	}
	return true;
}

/* What was never written reads as zeros. */
bool ocl_store_read(struct domain *d, off_t at, void *data, size_t size)
{
	UNCANCELLED;
	char *p = data;

	if (ocl_store_is_gone(&d->store))
		return false;
	while (size > 0) {
		ssize_t n = pread(d->store.fd, p, size, at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			log_warn("opencl: a checkpoint can't be read back: %s", strerror(errno));
			return false;
		}
		if (n == 0) {
			memset(p, 0, size);
			return true;
		}
		p += n;
		at += n;
		size -= (size_t)n;
	}
	return true;
}

/* ---- how fast the disk is ---- */

enum { PROBE_BYTES = 32 << 20 };
static _Atomic double speed;

static void *measure(void *arg)
{
	int fd = unnamed_file(ocl.set.dir);
	char *block = malloc(1 << 20);
	double start = clock_seconds(), took;
	size_t done = 0;

	if (fd >= 0 && block) {
		memset(block, 0x5a, 1 << 20);
		while (done < PROBE_BYTES && write(fd, block, 1 << 20) == 1 << 20)
			done += 1 << 20;
		fdatasync(fd);
	}
	took = clock_seconds() - start;
	if (fd >= 0)
		close(fd);
	free(block);
	if (done == PROBE_BYTES && took > 0)
		speed = (double)done / took;
	log_debug("opencl: '%s' takes %.0f MB/s", ocl.set.dir, speed / 1e6);
	return arg;
}

double ocl_store_speed(struct domain *d)
{
	static bool asked;
	sigset_t all, old;
	pthread_t t;

	if (asked || !ocl_store_open(d))
		return speed;
	asked = true;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	if (pthread_create(&t, NULL, measure, NULL) == 0)
		pthread_detach(t);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return speed;
}
