/* SPDX-License-Identifier: BSD-3-Clause */
/* Transfers that the runtime has been given and that have not ended: until their data are where
 * they belong nobody is told that they are complete. */
#include <errno.h>
#include <stdlib.h>
#include "base/base.h"
#include "ocl/remote/server_transfers.h"

bool far_move(const struct far *f, char *here, bool to_program)
{
	bool whole = f->rows == 1 || f->row_pitch == f->bytes;
	size_t n = whole ? f->bytes * f->rows : f->bytes, rows = whole ? 1 : f->rows;

	if (!to_program && net_is_used()) {
		for (size_t z = 0; z < f->planes; z++, here += n * rows)
			if (!net_fetch(here, f->address + z * f->plane_pitch, n, rows,
				       f->row_pitch))
				return false;
		return true;
	}
	for (size_t z = 0; z < f->planes; z++)
		for (size_t y = 0; y < rows; y++, here += n) {
			uint64_t at = f->address + z * f->plane_pitch + y * f->row_pitch;
			if (!(to_program ? store(at, here, n) : fetch(here, at, n)))
				return false;
		}
	return true;
}

struct transfer {
	struct transfer *next;
	cl_command_queue queue; /* to be compared only */
	cl_event done;
	char *data;
	bool in;      /* to be put into the program's memory */
	bool claimed; /* a thread waits for it and will end it */
	struct far far;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ended = PTHREAD_COND_INITIALIZER; /* a claimed one */
static struct transfer *transfers;			/* in the order of arrival */
static struct transfer **transfers_end = &transfers;

void underway_free(char *data)
{
	if (!stage_give(data))
		free(data);
}

void far_bring(const struct far *f, char *data)
{
	if (!far_move(f, data, true) && errno != ESRCH) /* it has ended */
		log_warn("opencl: the program's memory at %#lx can't be written to",
			 (unsigned long)f->address);
}

static void put_data(struct transfer *t, cl_int status)
{
	if (t->in && status == CL_COMPLETE)
		far_bring(&t->far, t->data);
}

static void unlink_transfer(struct transfer *t)
{
	struct transfer **at = &transfers;

	while (*at != t)
		at = &(*at)->next;
	*at = t->next;
	if (transfers_end == &t->next)
		transfers_end = at;
	clReleaseEvent(t->done);
	underway_free(t->data);
	free(t);
}

static cl_int status_of(const struct transfer *t)
{
	cl_int status = CL_QUEUED;

	clGetEventInfo(t->done, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status, NULL);
	return status;
}

static bool meet(const struct far *x, const struct far *y)
{
	uint64_t x_end = x->address + (x->planes - 1) * x->plane_pitch +
			 (x->rows - 1) * x->row_pitch + x->bytes,
		 y_end = y->address + (y->planes - 1) * y->plane_pitch +
			 (y->rows - 1) * y->row_pitch + y->bytes;

	return x->address < y_end && y->address < x_end;
}

static bool overlap(const struct transfer *a, const struct transfer *b)
{
	return a->in && b->in && meet(&a->far, &b->far);
}

/* One that is complete and has to be put there before t, which is, too: it may have become so after
 * it was looked at last. */
static struct transfer *put_before(const struct transfer *t)
{
	for (struct transfer *u = transfers; u != t; u = u->next)
		if (overlap(u, t) && status_of(u) <= CL_COMPLETE)
			return u;
	return NULL;
}

void deliver(void)
{
	struct transfer *t;

	pthread_mutex_lock(&lock);
	for (t = transfers; t;) {
		struct transfer *after = t->next, *before;
		cl_int status = status_of(t);

		if (status > CL_COMPLETE) {
			t = after;
		} else if ((before = put_before(t))) {
			t = before;
		} else if (t->claimed) {
			pthread_cond_wait(&ended, &lock);
			t = transfers;
		} else {
			put_data(t, status);
			unlink_transfer(t);
			t = after;
		}
	}
	pthread_mutex_unlock(&lock);
}

static cl_context context_of(const struct transfer *t)
{
	cl_context c = NULL;

	clGetEventInfo(t->done, CL_EVENT_CONTEXT, sizeof(cl_context), &c, NULL);
	return c;
}

cl_uint underway_reads(cl_context c, const struct far *f, cl_event *list, cl_uint room)
{
	cl_uint n = 0;

	pthread_mutex_lock(&lock);
	for (struct transfer *t = transfers; t && n < room; t = t->next) {
		if (!t->in || !meet(&t->far, f) || context_of(t) != c)
			continue;
		clRetainEvent(t->done);
		list[n++] = t->done;
	}
	pthread_mutex_unlock(&lock);
	return n;
}

/* What came later is put there later. */
static bool is_next(const struct transfer *t)
{
	for (const struct transfer *u = transfers; u != t; u = u->next)
		if (overlap(u, t))
			return false;
	return true;
}

static struct transfer *claim(bool in, cl_command_queue queue, cl_event last)
{
	for (struct transfer *t = transfers; t; t = t->next) {
		if (!t->claimed && (t->in || !in) && (!queue || t->queue == queue) &&
		    stage_has(t->data) && is_next(t)) {
			t->claimed = true;
			return t;
		}
		if (last && t->done == last)
			break;
	}
	return NULL;
}

bool underway_end_first(bool in, cl_command_queue queue, cl_event last)
{
	struct transfer *t;

	pthread_mutex_lock(&lock);
	t = claim(in, queue, last);
	pthread_mutex_unlock(&lock);
	if (!t)
		return false;
	clWaitForEvents(1, &t->done);
	put_data(t, status_of(t));
	pthread_mutex_lock(&lock);
	unlink_transfer(t);
	pthread_cond_broadcast(&ended);
	pthread_mutex_unlock(&lock);
	return true;
}

cl_command_queue underway_queue(cl_event done)
{
	cl_command_queue q = NULL;

	pthread_mutex_lock(&lock);
	for (struct transfer *t = transfers; t && !q; t = t->next)
		q = t->done == done ? t->queue : NULL;
	pthread_mutex_unlock(&lock);
	return q;
}

void underway_add(cl_command_queue q, cl_event done, char *data, bool in, const struct far *far)
{
	struct transfer *t = calloc(1, sizeof(*t));

	if (!t) { /* nobody is told when it has arrived, so it must have */
		clWaitForEvents(1, &done);
		if (in)
			far_move(far, data, true);
		underway_free(data);
		return;
	}
	*t = (struct transfer){.queue = q, .done = done, .data = data, .in = in, .far = *far};
	clRetainEvent(done);
	pthread_mutex_lock(&lock);
	*transfers_end = t;
	transfers_end = &t->next;
	pthread_mutex_unlock(&lock);
}

cl_int keep_transfer(cl_event done, char *data, bool in, uint64_t address, size_t size)
{
	const struct far far = {.address = address, .bytes = size, .rows = 1, .planes = 1};

	underway_add(NULL, done, data, in, &far);
	return CL_SUCCESS;
}
