/* SPDX-License-Identifier: BSD-3-Clause */
/* Offloaded statements (hale/offload_part.h). The first statement of a file on a device starts a
 * device process, which stays. The process keeps nothing between statements that a later one needs.
 * So when it is lost, the statement runs here, with the variables as they were. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "base/base.h"
#include "hale/offload_part.h"
#include "offload/host/process.h"

_Static_assert(sizeof(struct hale_offload_args) + HALE_OFFLOAD_SMALL <= HALE_CALL_BYTES,
	       "arguments of a call");

enum { SMALL_MAX = 256 }; /* bytes of a part that goes without a buffer */
static const uint64_t memory_usual = 256 << 20;
static const double retry_after = 10; /* seconds after a device has failed */

struct part_buffer {
	hale_buffer_t at;
	uint64_t size;
};

/* One file's process on one device. */
struct part_device {
	struct part_device *next;
	int device;
	pthread_mutex_t lock; /* one statement at a time: the process has the file's globals once */
	hale_process_t *process;
	hale_pipeline_t *pipeline;
	uint64_t memory;
	struct part_buffer buffer[HALE_OFFLOAD_PARTS];
	double failed; /* when; 0: never */
	atomic_bool told;
};

static pthread_mutex_t devices_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;
static bool in_child;	 /* the device processes are the parent's, and so are their connections */
static atomic_bool told; /* why no device runs a statement */

static void child_begin(void)
{
	in_child = true;
	told = false;
}

static void fork_watch(void)
{
	pthread_atfork(NULL, NULL, child_begin);
}

static struct part_device *device_of(struct hale_offload_unit *u, int device)
{
	struct part_device *d;

	pthread_mutex_lock(&devices_lock);
	for (d = u->state; d && d->device != device;)
		d = d->next;
	if (!d && (d = calloc(1, sizeof(*d)))) {
		d->device = device;
		pthread_mutex_init(&d->lock, NULL);
		d->next = u->state;
		u->state = d;
	}
	pthread_mutex_unlock(&devices_lock);
	if (!d)
		process_fail(ENOMEM, "no memory for a device");
	return d;
}

static void device_end(struct part_device *d)
{
	free(d->pipeline); /* its process ends with it */
	hale_process_destroy(d->process);
	d->process = NULL;
	d->pipeline = NULL;
	memset(d->buffer, 0, sizeof(d->buffer));
}

static int device_begin(const struct hale_offload_unit *u, struct part_device *d)
{
	char path[40];
	int fd = memfd_create("hale-offload-object", MFD_CLOEXEC), error;

	if (fd >= 0 && write(fd, u->object, u->object_size) == (ssize_t)u->object_size) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		d->process = hale_process_create(d->device, path, d->memory);
	} else {
		process_fail(errno, "the shared object of the statements can't be kept: %s",
			     strerror(errno));
	}
	error = errno;
	if (fd >= 0)
		close(fd);
	if (d->process && (d->pipeline = hale_pipeline_create(d->process)))
		return 0;
	error = d->process ? errno : error;
	device_end(d);
	errno = error;
	return -1;
}

/* Starts a process with `memory` bytes for buffers, or with `least` where the device has no more.
 */
static int device_start(const struct hale_offload_unit *u, struct part_device *d, uint64_t memory,
			uint64_t least)
{
	d->memory = memory;
	if (device_begin(u, d) == 0)
		return 0;
	if (errno != ENOSPC || memory <= least)
		return -1;
	d->memory = least;
	return device_begin(u, d);
}

/* Makes the buffer of part i hold size bytes. */
static int buffer_fit(struct part_device *d, int i, uint64_t size)
{
	struct part_buffer *b = &d->buffer[i];

	if (b->at && b->size >= size)
		return 0;
	if (b->at && hale_buffer_destroy(d->process, b->at) != 0)
		return -1;
	*b = (struct part_buffer){hale_buffer_create(d->process, size), size};
	return b->at ? 0 : -1;
}

struct part_sent {
	struct hale_offload_args args;
	char small[HALE_OFFLOAD_SMALL]; /* right behind args */
	hale_buffer_t buffer[HALE_OFFLOAD_PARTS];
	unsigned buffers;
};

static bool is_small(const struct part_sent *s, size_t size)
{
	return size <= SMALL_MAX && s->args.small + size <= sizeof(s->small);
}

/* A small part goes there even if it only comes out: so bytes that the statement leaves alone stay.
 */
static int part_send(struct part_device *d, struct part_sent *s, const struct hale_offload_part *p,
		     int i)
{
	struct hale_offload_place *at = &s->args.place[i];

	*at = (struct hale_offload_place){p->size, p->low, s->args.small, HALE_OFFLOAD_NO_BUFFER};
	if (is_small(s, p->size)) {
		memcpy(s->small + at->at, p->address, p->size);
		s->args.small += (unsigned)ALIGN_UP(p->size, 16);
		return 0;
	}
	if (buffer_fit(d, i, p->size) != 0)
		return -1;
	at->buffer = s->buffers;
	s->buffer[s->buffers++] = d->buffer[i].at;
	return p->how & HALE_IN
		   ? hale_buffer_write(d->process, d->buffer[i].at, 0, p->address, p->size)
		   : 0;
}

/* Takes all parts or none: a large part is read into memory beside its variable first. Parts that
 * only come out are read in place: if that fails, the statement writes them as a whole here. */
static int parts_take(struct part_device *d, const struct part_sent *s, const char *result,
		      int parts, const struct hale_offload_part *part)
{
	char *beside[HALE_OFFLOAD_PARTS] = {NULL};
	int rc = 0, error = 0;

	for (int i = 0; i < parts && rc == 0; i++) {
		const struct hale_offload_place *at = &s->args.place[i];
		char *to = part[i].address;

		if (!(part[i].how & HALE_OUT) || at->buffer == HALE_OFFLOAD_NO_BUFFER)
			continue;
		if (part[i].how & HALE_IN)
			to = beside[i] = malloc(at->size);
		rc = to ? hale_buffer_read(d->process, s->buffer[at->buffer], 0, to, at->size)
			: process_fail(ENOMEM, "no memory for what comes out");
		error = errno;
	}
	for (int i = 0; i < parts; i++) {
		const struct hale_offload_place *at = &s->args.place[i];

		if (rc == 0 && beside[i])
			memcpy(part[i].address, beside[i], at->size);
		else if (rc == 0 && part[i].how & HALE_OUT && at->buffer == HALE_OFFLOAD_NO_BUFFER)
			memcpy(part[i].address, result + at->at, at->size);
		free(beside[i]);
	}
	errno = error;
	return rc;
}

static int run_there(struct part_device *d, const char *function, int parts,
		     const struct hale_offload_part *part)
{
	struct part_sent s = {.args = {.parts = (unsigned)parts}};
	char result[HALE_OFFLOAD_SMALL];
	int f = hale_function_find(d->process, function);

	if (f < 0)
		return -1;
	for (int i = 0; i < parts; i++)
		if (part_send(d, &s, &part[i], i) != 0)
			return -1;
	if (hale_run(d->pipeline, f, s.buffer, s.buffers, &s.args, sizeof(s.args) + s.args.small,
		     result, s.args.small) != 0)
		return -1;
	return parts_take(d, &s, result, parts, part);
}

static uint64_t bytes_of(int parts, const struct hale_offload_part *part)
{
	uint64_t all = 1 << 20;

	for (int i = 0; i < parts; i++)
		all += ALIGN_UP(part[i].size, HALE_PAGE) + HALE_PAGE;
	return all;
}

static int run_on(const struct hale_offload_unit *u, struct part_device *d, const char *function,
		  int parts, const struct hale_offload_part *part)
{
	uint64_t bytes = bytes_of(parts, part);

	/* buffers of other statements may be there, too */
	uint64_t usual = 2 * bytes > memory_usual ? 2 * bytes : memory_usual;

	if (d->process && d->memory < bytes)
		device_end(d);
	if (!d->process && device_start(u, d, usual, bytes) != 0)
		return -1;
	if (run_there(d, function, parts, part) == 0)
		return 0;
	if (errno != ENOSPC)
		return -1;
	usual = 2 * d->memory > usual ? 2 * d->memory : usual;
	device_end(d); /* the new one has no buffers of other statements */
	return device_start(u, d, usual, bytes) == 0 ? run_there(d, function, parts, part) : -1;
}

/* Two names of the same memory would be two variables on the device. */
static bool overlap(const struct hale_offload_part *a, const struct hale_offload_part *b)
{
	uintptr_t x = (uintptr_t)a->address, y = (uintptr_t)b->address;

	return (a->how | b->how) & HALE_OUT && a->size > 0 && b->size > 0 &&
	       (x >= y ? x - y < b->size : y - x < a->size);
}

/* 0: a device can run it. */
static int parts_verify(int parts, const struct hale_offload_part *part)
{
	if (in_child)
		return process_fail(ENOTSUP, "the program forked after its first such statement");
	if (parts > HALE_OFFLOAD_PARTS)
		return process_fail(EINVAL, "more than %d variables", HALE_OFFLOAD_PARTS);
	for (int i = 0; i < parts; i++) {
		if (part[i].size > PTRDIFF_MAX / (2 * HALE_OFFLOAD_PARTS))
			return process_fail(EINVAL, "the extent of '%s' is negative or too large",
					    part[i].name);
		for (int k = 0; k < i; k++)
			if (overlap(&part[i], &part[k]))
				return process_fail(EINVAL, "'%s' and '%s' overlap in memory",
						    part[k].name, part[i].name);
	}
	return 0;
}

static void why_tell(const struct hale_offload_unit *u, unsigned line, int device,
		     atomic_bool *before)
{
	if (!atomic_exchange(before, true))
		log_warn("%s:%u: not on device hale:%d, but here: %s", u->file, line, device,
			 hale_offload_why());
}

int hale_offload_run(struct hale_offload_unit *unit, int device, const char *function,
		     unsigned line, int parts, const struct hale_offload_part *part)
{
	struct part_device *d;
	int rc = -1;

	pthread_once(&fork_once, fork_watch);
	d = parts_verify(parts, part) == 0 ? device_of(unit, device) : NULL;
	if (!d) {
		why_tell(unit, line, device, &told);
		return -1;
	}
	pthread_mutex_lock(&d->lock);
	if (d->failed == 0 || clock_seconds() - d->failed > retry_after) {
		rc = run_on(unit, d, function, parts, part);
		if (rc != 0)
			why_tell(unit, line, device, &d->told);
		d->failed = rc == 0 ? 0 : clock_seconds();
		if (rc != 0)
			device_end(d);
	}
	pthread_mutex_unlock(&d->lock);
	return rc;
}
