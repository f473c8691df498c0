/* SPDX-License-Identifier: BSD-3-Clause */
/* The log of a domain: commands in the order in which the queues got them, and host data. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>
#include "base/base.h"
#include "base/cancel.h"
#include "base/memory.h"
#include "ocl/entry/entry.h"
#include "ocl/epoch/epoch.h"
#include "ocl/log/log.h"
#include "ocl/ocl.h"

/* So much host data is kept in memory in any case. */
static const uint64_t memory_min = 256ull << 20;

/* Entries to be used again: a log has as many each time, and what malloc gives back to the system
 * costs page faults. One lies ready, so that who needs it takes no lock. */
static struct ocl_entry *spare; /* guarded by the lock */
static struct ocl_entry *_Atomic ready;

void ocl_entry_ready(void)
{
	struct ocl_entry *e = spare;

	if (!e || atomic_load_explicit(&ready, memory_order_relaxed))
		return;
	spare = e->next;
	atomic_store_explicit(&ready, e, memory_order_release);
}

struct ocl_entry *ocl_entry_new(ocl_op_t op)
{
	struct ocl_entry *e = atomic_exchange(&ready, NULL);

	if (!e) {
		ocl_lock();
		e = spare;
		spare = e ? e->next : NULL;
		ocl_unlock();
	}
	if (!e && !(e = malloc(sizeof(*e))))
		return NULL;
	memset(e, 0, sizeof(*e));
	e->op = op;
	return e;
}

struct ocl_entry *ocl_entry_between(ocl_op_t op, cl_mem src, cl_mem dst)
{
	struct ocl_entry *e = ocl_entry_new(op);

	if (e) {
		e->src_handle = src;
		e->dst_handle = dst;
	}
	return e;
}

void ocl_entry_discard(struct ocl_entry *e)
{
	if (!e)
		return;
	ocl_lock();
	ocl_entry_free(NULL, e);
	ocl_unlock();
}

struct ocl_entry *ocl_entry_carry(struct ocl_entry *e, const void *data, size_t size)
{
	if (!e || !data)
		return e;
	e->data.memory = malloc(size ? size : 1);
	if (!e->data.memory) {
		ocl_entry_discard(e);
		return NULL;
	}
	memcpy(e->data.memory, data, size);
	return e;
}

static void blob_free(struct domain *d, struct blob *b)
{
	if (b->memory) {
		ocl_pool_give(b->memory, b->size);
		d->host_bytes -= b->size;
	} else if (b->size > 0) {
		ocl_store_give(d, b->at, (off_t)b->size);
		d->spilled -= b->size;
	}
	*b = (struct blob){0};
}

void ocl_entry_free(struct domain *d, struct ocl_entry *e)
{
	if (d)
		blob_free(d, &e->data);
	else
		free(e->data.memory); /* never logged */
	if (e->own)
		NEXT->clReleaseEvent(e->own);
	for (uint32_t i = 0; i < e->used_count; i++)
		ocl_drop(e->used[i]);
	if (e->used != e->few)
		free(e->used);
	ocl_args_unref(e->args);
	if (e->kernel)
		ocl_drop(OBJ(e->kernel));
	if (e->dst)
		ocl_drop(OBJ(e->dst));
	if (e->src)
		ocl_drop(OBJ(e->src));
	if (e->recorded)
		ocl_drop(OBJ(e->recorded));
	if (e->queue)
		ocl_drop(OBJ(e->queue));
	e->next = spare;
	spare = e;
}

static struct ocl_entry *newest(struct domain *d)
{
	return d->first ? (struct ocl_entry *)((char *)d->last - offsetof(struct ocl_entry, next))
			: NULL;
}

static bool ends_mapping(const struct ocl_entry *e)
{
	return e->op == OP_UNMAP || e->op == OP_SVM_UNMAP;
}

/* All of what e puts where it says is in the log, or will be. */
static bool writes_whole(const struct ocl_entry *e)
{
	return e->dst && !e->gates && !e->behind_read &&
	       (e->op == OP_WRITE || (ends_mapping(e) && e->data.size > 0));
}

/* The end of a mapping through which the program wrote nothing: a replay leaves it out. */
static bool is_passed_over(const struct ocl_entry *e)
{
	return !e->gates && ends_mapping(e) && e->data.size == 0;
}

/* What stands last in the log of that which a replay repeats, if it is a write. */
static struct ocl_entry *last_written(struct domain *d)
{
	struct ocl_entry *e = newest(d);

	if (!e)
		return NULL;
	if (writes_whole(e))
		return e;
	return is_passed_over(e) ? e->written : NULL;
}

/* Whether e overwrites all that before has written, in its queue's order: nothing that is to be
 * repeated can have seen that. */
static bool overwrites(const struct ocl_entry *before, const struct ocl_entry *e)
{
	if (!before || !writes_whole(e) || before->dst != e->dst || before->queue != e->queue ||
	    e->queue->out_of_order)
		return false;
	for (int i = 0; i < 3; i++)
		if (before->a[i] < e->a[i] ||
		    before->a[i] + before->region[i] > e->a[i] + e->region[i])
			return false;
	return true;
}

static void supersede(struct domain *d, struct ocl_entry *e)
{
	d->uncaptured -= e->uncaptured;
	e->uncaptured = false;
	e->superseded = true;
	blob_free(d, &e->data);
}

void ocl_log_append(struct domain *d, struct ocl_entry *e)
{
	struct ocl_entry *before = last_written(d);

	e->over = overwrites(before, e) ? before : NULL;
	e->written = before;
	if (e->over && ends_mapping(e)) /* the log has its data already */
		supersede(d, e->over);
	*d->last = e;
	d->last = &e->next;
	e->number = ++d->numbers;
	e->order = ++d->orders;
	d->entries++;
	d->log_bytes += sizeof(*e) + e->used_count * sizeof(void *);
	d->gates_used |= e->gates;
	d->has_writes |= ocl_entry_consolidates(e);
	d->natives |= e->op == OP_NATIVE;
	ocl.report.commands++;
}

/* The link at `at` goes, and with it who pointed to the one behind. */
static struct ocl_entry *unlink_entry(struct domain *d, struct ocl_entry **at)
{
	struct ocl_entry *e = *at;

	*at = e->next;
	if (d->last == &e->next)
		d->last = at;
	if (d->epoch_first == &e->next)
		d->epoch_first = at;
	if (d->settled == &e->next)
		d->settled = at;
	return e;
}

void ocl_log_gate_opened(struct domain *d, uint64_t gate)
{
	struct ocl_entry *free_now = NULL, **end = &free_now, **at = &d->first;

	while (*at) {
		struct ocl_entry *e = *at;

		if (!(e->gates & gate) || e->gates & d->gates_unset || e->failed) {
			at = &e->next;
			continue;
		}
		*end = unlink_entry(d, at);
		end = &e->next;
		*end = NULL;
	}
	d->reordered |= free_now != NULL;
	for (struct ocl_entry *e = free_now, *next; e; e = next) {
		next = e->next;
		e->next = NULL;
		e->order = ++d->orders;
		*d->last = e;
		d->last = &e->next;
	}
}

/* The event shadow whose runtime event the log gave back. */
void ocl_log_event_released(cl_event own)
{
	struct event *ev = own ? ocl_find_any(own, OCL_EVENT) : NULL;

	if (!ev || !ev->ours_too)
		return;
	ev->ours_too = false;
	ocl_drop(OBJ(ev));
}

void ocl_log_clear(struct domain *d)
{
	struct ocl_entry *e = d->first, *next;

	d->first = NULL;
	d->last = d->epoch_first = d->settled = &d->first;
	d->entries = d->log_bytes = d->unchecked = d->uncaptured = 0;
	d->has_writes = d->reordered = d->natives = false;
	ranges_clear(&d->reading);
	d->gates_used = 0;
	for (; e; e = next) {
		next = e->next;
		ocl_log_event_released(e->own);
		ocl_entry_free(d, e);
	}
}

void ocl_log_give_up(struct domain *d)
{
	d->unprotected = true;
	ocl_content_unlogged(d);
	ocl_log_clear(d);
}

struct ocl_entry *ocl_log_unsettled(struct domain *d)
{
	struct ocl_entry *e;

	/* it points to the list's head or to a link in it, from ocl_log_clear on */
	/* cppcheck-suppress uninitvar */
	while ((e = *d->settled) && !e->uncaptured && !ocl_entry_reads(e))
		d->settled = &e->next;
	return e;
}

/* What is no longer linked goes. */
static void forget(struct domain *d, struct ocl_entry *e)
{
	d->entries--;
	d->log_bytes -= sizeof(*e) + e->used_count * sizeof(void *);
	d->unchecked -= ocl_entry_reads(e);
	d->uncaptured -= e->uncaptured;
	ocl_log_event_released(e->own);
	ocl_entry_free(d, e);
}

void ocl_log_settle(struct domain *d)
{
	struct ocl_entry **at;

	if (d->unchecked == 0)
		return;
	ocl_log_unsettled(d);
	for (at = d->settled; *at;) {
		if (ocl_entry_reads(*at) && (*at)->arrived)
			forget(d, unlink_entry(d, at));
		else
			at = &(*at)->next;
	}
}

static bool is_droppable(const struct domain *d, const struct ocl_entry *e, const struct queue *q)
{
	return !e->lasting && e->queue == q && e->number <= q->finished &&
	       !(e->gates & d->gates_unset) && (!ocl_entry_reads(e) || e->arrived);
}

static void drop_epoch(struct domain *d)
{
	struct ocl_entry *e = *d->epoch_first, *next;

	for (struct ocl_entry *x = e; x; x = x->next)
		if (d->settled == &x->next)
			d->settled = d->epoch_first;
	*d->epoch_first = NULL;
	d->last = d->epoch_first;
	d->dropped = true;
	for (; e; e = next) {
		next = e->next;
		forget(d, e);
	}
}

void ocl_log_end_epoch(struct domain *d, const struct queue *q)
{
	const struct ocl_entry *e = *d->epoch_first;

	while (e && q && (ocl.set.opt & OCL_OPT_SB) && is_droppable(d, e, q))
		e = e->next;
	if (!e && *d->epoch_first)
		drop_epoch(d);
	d->epoch_first = d->last;
}

/* ---- host data ---- */

size_t ocl_rect_span(const size_t origin[3], const size_t region[3], size_t row, size_t slice)
{
	if (row == 0)
		row = region[0];
	if (slice == 0)
		slice = row * region[1];
	return (origin[2] + region[2] - 1) * slice + (origin[1] + region[1] - 1) * row + origin[0] +
	       region[0];
}

/* May the log take size more bytes of memory? A file is several times slower; but a quarter of what
 * there is stays free, also of what the other processes here take meanwhile. */
static bool has_memory(const struct domain *d, size_t size)
{
	static const uint64_t step = 64ull << 20;
	static uint64_t granted; /* guarded by the lock */
	struct memory_room room;

	if (d->host_bytes + size <= memory_min)
		return true;
	if (granted < size) {
		UNCANCELLED;
		if (!memory_look("", &room) || room.available < room.total / 4 + step + size)
			return false;
		granted = step + size;
	}
	granted -= size;
	return true;
}

static void lose_data(struct domain *d, struct ocl_entry *e, const char *why)
{
	blob_free(d, &e->data);
	if (!d->unprotected)
		log_warn("opencl: %s; an error before the next checkpoint can't be mended", why);
	d->unprotected = true;
	if (e->dst)
		e->dst->root->modified |= OCL_BY_DEVICE;
}

/* Memory that an object was made of the runtime need not have looked at: what the program gave may
 * not be there. */
static bool copy_if_there(char *to, const char *from, size_t size)
{
	for (size_t at = 0; at < size;) {
		struct iovec local = {to + at, size - at}, far = {(void *)(from + at), size - at};
		ssize_t n = process_vm_readv(getpid(), &local, 1, &far, 1, 0);

		if (n < 0 && errno != EFAULT) { /* not allowed here */
			memcpy(to + at, from + at, size - at);
			return true;
		}
		if (n <= 0)
			return false;
		at += (size_t)n;
	}
	return true;
}

bool ocl_log_capture(struct domain *d, struct ocl_entry *e)
{
	double start = clock_seconds();

	if (e->uncaptured) {
		e->uncaptured = false;
		d->uncaptured--;
	}
	e->data.size = e->host_span;
	if (has_memory(d, e->host_span))
		e->data.memory = ocl_pool_take(e->host_span);
	if (e->data.memory) {
		d->host_bytes += e->host_span;
		if (e->op != OP_INIT) {
			memcpy(e->data.memory, e->host, e->host_span);
		} else if (!copy_if_there(e->data.memory, e->host, e->host_span)) {
			lose_data(d, e, "memory that an object was made of can't be read");
			if (e->dst->flags &
			    CL_MEM_USE_HOST_PTR) /* nor can checkpoints look at it */
				e->dst->chunk_count = 0;
		}
	} else {
		d->spilled += e->host_span;
		e->data.at = ocl_store_open(d) ? ocl_store_take(d, (off_t)e->host_span) : -1;
		if (e->data.at < 0 || !ocl_store_write(d, e->data.at, e->host, e->host_span))
			lose_data(d, e, "no room for the data that the program wrote");
	}
	ocl.report.logged += e->host_span;
	ocl.report.log += clock_seconds() - start;
	return e->data.size == e->host_span;
}

static bool has_run(const struct ocl_entry *e)
{
	return e->number <= e->queue->finished;
}

void ocl_log_has_run(struct domain *d, uint64_t command)
{
	struct ocl_entry *e = newest(d);

	if (e && e->over && e->number == command && !e->behind_read)
		supersede(d, e->over);
}

/* What is still to be brought by a read isn't there yet. */
void ocl_log_capture_all(struct domain *d)
{
	struct ranges coming = {0};

	for (struct ocl_entry *e = d->uncaptured ? ocl_log_unsettled(d) : NULL; e && d->uncaptured;
	     e = e->next) {
		if (ocl_entry_reads(e) && !e->arrived)
			ranges_add(&coming, e->host, e->host_span);
		if (e->over && !e->behind_read && has_run(e))
			supersede(d, e->over);
		if (e->uncaptured && e->next && e->next->over == e && !e->next->behind_read &&
		    has_run(e->next))
			supersede(d, e);
		if (e->uncaptured &&
		    (!e->behind_read || !ranges_meet(&coming, e->host, e->host_span)))
			ocl_log_capture(d, e);
	}
	ranges_fini(&coming);
}

bool ocl_log_is_behind_read(struct domain *d, const struct ocl_entry *e)
{
	const char *host = e->host;

	for (const struct ocl_entry *r = ocl_log_unsettled(d); r && r->order < e->order;
	     r = r->next) {
		const char *at = r->host;
		if (ocl_entry_reads(r) && at < host + e->host_span && host < at + r->host_span)
			return true;
	}
	return false;
}

/* The last moment at which what e writes is there: when it has been brought, which may be now. */
void ocl_log_capture_behind_read(struct domain *d, struct ocl_entry *e)
{
	if (ocl_epoch_quiesce(d) || !(e->gates & d->gates_unset)) {
		ocl_log_capture(d, e);
		return;
	}
	if (!d->unprotected) /* it waits for the program itself */
		log_warn("opencl: a command that waits for a user event takes memory that is to be "
			 "filled and used again before the program sets it; an error before the "
			 "next checkpoint can't be mended");
	d->unprotected = true;
	if (e->dst)
		e->dst->root->modified |= OCL_BY_DEVICE;
}

void ocl_log_capture_range(struct domain *d, const void *host, size_t size)
{
	const char *from = host;

	for (struct ocl_entry *e = d->uncaptured ? ocl_log_unsettled(d) : NULL; e && d->uncaptured;
	     e = e->next) {
		const char *at = e->host;
		if (!e->uncaptured || at >= from + size || from >= at + e->host_span)
			continue;
		if (e->behind_read)
			ocl_log_capture_behind_read(d, e);
		else
			ocl_log_capture(d, e);
	}
}

struct rows { /* of one read, in host memory */
	size_t first, size, row, slice, per_slice, slices;
};

static struct rows rows_of(const struct ocl_entry *e)
{
	bool rect = e->op == OP_READ_RECT, image = e->op == OP_READ_IMAGE || e->op == OP_MAP_IMAGE;
	const size_t *pitch = rect ? e->pitch + 2 : e->pitch;
	struct rows r = {.size = e->host_span, .per_slice = 1, .slices = 1};

	if (!rect && !image)
		return r;
	r.size = image ? e->region[0] * e->src->element : e->region[0];
	r.per_slice = e->region[1];
	r.slices = e->region[2];
	r.row = pitch[0] ? pitch[0] : r.size;
	r.slice = pitch[1] ? pitch[1] : r.row * r.per_slice;
	if (rect)
		r.first = e->b[2] * r.slice + e->b[1] * r.row + e->b[0];
	return r;
}

void ocl_log_take_read(const struct ocl_entry *read, const char *from, char *data, const char *at,
		       size_t size)
{
	const struct rows r = rows_of(read);

	for (size_t i = 0; i < r.slices * r.per_slice; i++) {
		size_t in = r.first + i / r.per_slice * r.slice + i % r.per_slice * r.row;
		const char *row = (const char *)read->host + in;
		const char *begin = row > at ? row : at;
		const char *end = row + r.size < at + size ? row + r.size : at + size;

		if (begin < end)
			memcpy(data + (begin - at), from + in + (begin - row),
			       (size_t)(end - begin));
	}
}

void *ocl_log_in_memory(struct domain *d, struct ocl_entry *e)
{
	void *memory;

	if (e->data.memory || e->data.size == 0)
		return e->data.memory;
	memory = ocl_pool_take(e->data.size);
	if (!memory || !ocl_store_read(d, e->data.at, memory, e->data.size)) {
		if (memory)
			ocl_pool_give(memory, e->data.size);
		return NULL;
	}
	ocl_store_give(d, e->data.at, (off_t)e->data.size);
	d->spilled -= e->data.size;
	d->host_bytes += e->data.size;
	return e->data.memory = memory;
}

const void *ocl_log_data(struct domain *d, const struct ocl_entry *e, void **owned)
{
	*owned = NULL;
	if (e->data.memory)
		return e->data.memory;
	if (e->data.size == 0)
		return e->host;
	*owned = malloc(e->data.size);
	if (*owned && !ocl_store_read(d, e->data.at, *owned, e->data.size)) {
		free(*owned);
		*owned = NULL;
	}
	return *owned;
}
