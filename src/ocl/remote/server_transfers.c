/* SPDX-License-Identifier: BSD-3-Clause */
/* Data between the program's memory and memory objects, and waiting. What is written is fetched
 * when the request is taken, which is before the program may change it; what is read is put into
 * the program's memory when the command is complete, which is before the program can know that it
 * is. */
#include <errno.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/base.h"
#include "ocl/remote/server.h"

enum { BOX_WRITE = 1, BOX_BLOCKING = 2, BOX_LINEAR = 4 };

/* ---- the program's side of a transfer ---- */

struct far {
	uint64_t address;
	size_t bytes, rows, planes, row_pitch, plane_pitch;
};

static bool move_rows(const struct far *f, char *here, bool to_program)
{
	bool whole = f->rows == 1 || f->row_pitch == f->bytes;
	size_t n = whole ? f->bytes * f->rows : f->bytes, rows = whole ? 1 : f->rows;

	for (size_t z = 0; z < f->planes; z++)
		for (size_t y = 0; y < rows; y++, here += n) {
			uint64_t at = f->address + z * f->plane_pitch + y * f->row_pitch;
			if (!(to_program ? store(at, here, n) : fetch(here, at, n)))
				return false;
		}
	return true;
}

/* ---- those under way ---- */

struct transfer {
	struct transfer *next;
	cl_command_queue queue;
	cl_event done;
	char *data;
	bool in; /* to be put into the program's memory */
	struct far far;
};

static pthread_mutex_t transfers_lock = PTHREAD_MUTEX_INITIALIZER;
static struct transfer *transfers;

static void data_done(char *data)
{
	if (!stage_give(data))
		free(data);
}

static void end_transfer(struct transfer *t, cl_int status)
{
	if (t->in && status == CL_COMPLETE && !move_rows(&t->far, t->data, true) &&
	    errno != ESRCH) /* it has ended */
		log_warn("opencl: the program's memory at %#lx can't be written to",
			 (unsigned long)t->far.address);
	clReleaseEvent(t->done);
	data_done(t->data);
	free(t);
}

void deliver(void)
{
	pthread_mutex_lock(&transfers_lock);
	for (struct transfer **at = &transfers, *t; (t = *at);) {
		cl_int status = CL_QUEUED;
		clGetEventInfo(t->done, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status,
			       NULL);
		if (status > CL_COMPLETE) {
			at = &t->next;
			continue;
		}
		*at = t->next;
		end_transfer(t, status);
	}
	pthread_mutex_unlock(&transfers_lock);
}

/* The first that goes through pinned memory and matches: into the program's memory (in), of queue
 * (NULL: any), no later than the command of event last (NULL: whenever). Gets a reference. */
static cl_event first_staged(bool in, cl_command_queue queue, cl_event last)
{
	cl_event found = NULL;

	pthread_mutex_lock(&transfers_lock);
	for (struct transfer *t = transfers; t && !found; t = t->next) {
		if ((t->in || !in) && (!queue || t->queue == queue) && stage_has(t->data))
			found = t->done;
		if (t->done == last)
			break;
	}
	if (found)
		clRetainEvent(found);
	pthread_mutex_unlock(&transfers_lock);
	return found;
}

static bool wait_for_staged(bool in, cl_command_queue queue, cl_event last)
{
	cl_event done = first_staged(in, queue, last);

	if (!done)
		return false;
	clWaitForEvents(1, &done);
	clReleaseEvent(done);
	deliver();
	return true;
}

/* The queue of a transfer under way. */
static cl_command_queue queue_with(cl_event done)
{
	cl_command_queue q = NULL;

	pthread_mutex_lock(&transfers_lock);
	for (struct transfer *t = transfers; t && !q; t = t->next)
		q = t->done == done ? t->queue : NULL;
	pthread_mutex_unlock(&transfers_lock);
	return q;
}

/* In the order of arrival: what came later is put there later. */
static void add_transfer(struct transfer *t)
{
	struct transfer **at = &transfers;

	pthread_mutex_lock(&transfers_lock);
	while (*at)
		at = &(*at)->next;
	*at = t;
	pthread_mutex_unlock(&transfers_lock);
}

/* ---- transfers ---- */

struct box {
	cl_command_queue q;
	cl_mem m;
	unsigned flags;
	size_t origin[3], region[3], pitch[2], element;
	struct far far;
	struct waits w;
};

static void take_box(struct in *in, struct box *b, bool image)
{
	b->q = real_of(next(in), STUB_QUEUE);
	b->m = real_of(next(in), STUB_MEM);
	b->flags = (unsigned)next(in);
	for (int i = 0; i < 3; i++)
		b->origin[i] = next(in);
	for (int i = 0; i < 3; i++)
		b->region[i] = next(in);
	b->pitch[0] = next(in);
	b->pitch[1] = next(in);
	b->far.address = next(in);
	b->far.row_pitch = next(in);
	b->far.plane_pitch = next(in);
	b->element = next(in);
	b->far.bytes = b->region[0] * (image ? b->element : 1);
	b->far.rows = b->region[1];
	b->far.planes = b->region[2];
	waits_take(in, &b->w);
}

static cl_int issue(const struct box *b, bool image, void *data, cl_event *done)
{
	static const size_t zero[3];
	bool write = b->flags & BOX_WRITE;
	cl_uint n = b->w.count;
	const cl_event *w = b->w.list;
	size_t row = b->region[0], plane = row * b->region[1];

	if (image)
		return write ? clEnqueueWriteImage(b->q, b->m, CL_FALSE, b->origin, b->region, 0, 0,
						   data, n, w, done)
			     : clEnqueueReadImage(b->q, b->m, CL_FALSE, b->origin, b->region, 0, 0,
						  data, n, w, done);
	if (b->flags & BOX_LINEAR)
		return write ? clEnqueueWriteBuffer(b->q, b->m, CL_FALSE, b->origin[0],
						    b->region[0], data, n, w, done)
			     : clEnqueueReadBuffer(b->q, b->m, CL_FALSE, b->origin[0], b->region[0],
						   data, n, w, done);
	return write ? clEnqueueWriteBufferRect(b->q, b->m, CL_FALSE, b->origin, zero, b->region,
						b->pitch[0], b->pitch[1], row, plane, data, n, w,
						done)
		     : clEnqueueReadBufferRect(b->q, b->m, CL_FALSE, b->origin, zero, b->region,
					       b->pitch[0], b->pitch[1], row, plane, data, n, w,
					       done);
}

static cl_int keep(cl_command_queue q, cl_event done, char *data, bool in, const struct far *far)
{
	struct transfer *t = calloc(1, sizeof(*t));

	if (!t) { /* nobody is told when it has arrived, so it must have */
		clWaitForEvents(1, &done);
		if (in)
			move_rows(far, data, true);
		data_done(data);
		return CL_SUCCESS;
	}
	*t = (struct transfer){.queue = q, .done = done, .data = data, .in = in, .far = *far};
	clRetainEvent(done);
	add_transfer(t);
	return CL_SUCCESS;
}

cl_int keep_transfer(cl_event done, char *data, bool in, uint64_t address, size_t size)
{
	const struct far far = {.address = address, .bytes = size, .rows = 1, .planes = 1};

	return keep(NULL, done, data, in, &far);
}

/* Takes over data. */
static cl_int start(struct box *b, bool image, char *data, cl_event *done)
{
	cl_int status = issue(b, image, data, done);

	if (status == CL_SUCCESS)
		return keep(b->q, *done, data, !(b->flags & BOX_WRITE), &b->far);
	data_done(data);
	return status;
}

/* Whether a transfer may be several commands: its event, the last one's, then stands for all, and
 * nobody asks it when the command began. */
static bool may_part(const struct box *b)
{
	cl_command_queue_properties p = 0;

	return b->flags & BOX_LINEAR && b->far.address && b->region[0] > STAGE_PIECE / 8 &&
	       clGetCommandQueueInfo(b->q, CL_QUEUE_PROPERTIES, sizeof(p), &p, NULL) ==
		   CL_SUCCESS &&
	       !(p & (CL_QUEUE_PROFILING_ENABLE | CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE));
}

/* Pinned, if need be when the first piece under way has arrived; that may wait for an event which
 * the program sets, and is then not waited for. */
static char *room_for(cl_command_queue q, size_t size)
{
	char *data = stage_take(q);

	while (!data && unset_events == 0 && wait_for_staged(false, NULL, NULL))
		data = stage_take(q);
	return data ? data : malloc(size);
}

static cl_int start_in_pieces(const struct box *b, cl_event *done)
{
	struct box part = *b;
	cl_int status = CL_SUCCESS;

	for (size_t at = 0; at < b->region[0] && status == CL_SUCCESS; at += part.region[0]) {
		size_t left = b->region[0] - at, n = left < STAGE_PIECE ? left : STAGE_PIECE;
		char *data = room_for(b->q, n);

		if (*done)
			clReleaseEvent(*done);
		*done = NULL;
		if (!data)
			return CL_OUT_OF_HOST_MEMORY;
		part.origin[0] = b->origin[0] + at;
		part.region[0] = n;
		part.far.address = b->far.address + at;
		part.far.bytes = n;
		if (b->flags & BOX_WRITE && !move_rows(&part.far, data, false)) {
			data_done(data);
			return CL_INVALID_VALUE;
		}
		status = start(&part, false, data, done);
		part.w.count = 0;
		part.w.list = NULL;
		clFlush(b->q);
	}
	return status;
}

/* As one command. */
static cl_int start_whole(struct box *b, bool image, cl_event *done)
{
	size_t bytes = b->far.bytes * b->far.rows * b->far.planes;
	char *data = NULL;

	if (b->far.address && !(data = malloc(bytes ? bytes : 1)))
		return CL_OUT_OF_HOST_MEMORY;
	if (data && b->flags & BOX_WRITE && !move_rows(&b->far, data, false)) {
		free(data);
		return CL_INVALID_VALUE;
	}
	return start(b, image, data, done);
}

cl_int serve_box(struct in *in, struct out *out, bool image)
{
	struct box b = {0};
	cl_event done = NULL;
	cl_int status;

	take_box(in, &b, image);
	status = may_part(&b) ? start_in_pieces(&b, &done) : start_whole(&b, image, &done);
	b.w.made = done;
	if (status == CL_SUCCESS && !b.w.event && !(b.flags & BOX_BLOCKING))
		clReleaseEvent(done);
	if (status != CL_SUCCESS || !(b.flags & BOX_BLOCKING))
		return waits_done(&b.w, status);
	status = wait_and_reply(NULL, 1, &done, out);
	if (!b.w.event)
		clReleaseEvent(done);
	waits_done(&b.w, CL_SUCCESS);
	return status;
}

/* ---- waiting ---- */

static _Atomic int callbacks_due; /* asked for, and not called yet */

struct job {
	struct job *next;
	struct out out;
	cl_command_queue queue;
	cl_uint count;
	cl_event list[];
};

static pthread_mutex_t jobs_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t jobs_more = PTHREAD_COND_INITIALIZER;
static struct job *jobs;
static int idle; /* threads without a job, of those that no job waits for */

static cl_int wait_here(cl_command_queue queue, cl_uint count, const cl_event *list)
{
	cl_command_queue q = count == 0 ? queue : count == 1 ? queue_with(list[0]) : NULL;
	cl_int status;
	int32_t late;

	/* piece by piece: while one is put into the program's memory the next ones arrive */
	while (q && wait_for_staged(true, q, count == 0 ? NULL : list[0]))
		;
	status = count > 0 ? clWaitForEvents(count, list) : clFinish(queue);
	late = atomic_exchange(&wire->deferred, 0);
	deliver();
	return status == CL_SUCCESS ? late : status;
}

static void *worker(void *arg)
{
	struct job *j = arg;

	for (;;) {
		reply(&j->out, wait_here(j->queue, j->count, j->list));
		for (cl_uint i = 0; i < j->count; i++)
			clReleaseEvent(j->list[i]);
		if (j->queue)
			clReleaseCommandQueue(j->queue);
		free(j);
		pthread_mutex_lock(&jobs_lock);
		idle++;
		while (!jobs)
			pthread_cond_wait(&jobs_more, &jobs_lock);
		j = jobs;
		jobs = j->next;
		pthread_mutex_unlock(&jobs_lock);
	}
	return NULL;
}

static bool hand_over(struct job *j)
{
	pthread_t t;
	bool given = false;

	pthread_mutex_lock(&jobs_lock);
	if (idle > 0) {
		idle--;
		j->next = jobs;
		jobs = j;
		given = true;
		pthread_cond_signal(&jobs_more);
	}
	pthread_mutex_unlock(&jobs_lock);
	if (given)
		return true;
	if (pthread_create(&t, NULL, worker, j) != 0)
		return false;
	pthread_detach(t);
	return true;
}

cl_int wait_and_reply(cl_command_queue queue, cl_uint count, const cl_event *list, struct out *out)
{
	struct job *j;

	/* with one thread in the program there is nothing else to do meanwhile */
	if (atomic_load(&wire->threads) <= 1 && unset_events == 0)
		return wait_here(queue, count, list);
	j = calloc(1, sizeof(*j) + count * sizeof(cl_event));
	if (!j)
		return wait_here(queue, count, list);
	j->out = *out;
	j->queue = queue;
	j->count = count;
	if (queue)
		clRetainCommandQueue(queue);
	for (cl_uint i = 0; i < count; i++) {
		j->list[i] = list[i];
		clRetainEvent(list[i]);
	}
	return hand_over(j) ? REPLY_LATER : CL_OUT_OF_HOST_MEMORY;
}

cl_int serve_wait(struct in *in, struct out *out)
{
	struct waits w;
	cl_int status = CL_SUCCESS;

	if (in->r->op == OP_FINISH) {
		cl_command_queue q = real_of(next(in), STUB_QUEUE);
		return q ? wait_and_reply(q, 0, NULL, out) : CL_INVALID_COMMAND_QUEUE;
	}
	waits_take(in, &w);
	if (!w.list)
		status = CL_INVALID_VALUE;
	for (cl_uint i = 0; w.list && i < w.count; i++)
		if (!w.list[i])
			status = CL_INVALID_EVENT;
	if (status == CL_SUCCESS)
		status = wait_and_reply(NULL, w.count, w.list, out);
	w.event = 0;
	waits_done(&w, status);
	return status;
}

void finish_all(void)
{
	for (uint32_t i = 0; i < obj_count(); i++) {
		cl_command_queue q = real_of(i, STUB_QUEUE);
		if (q)
			clFinish(q);
	}
	deliver();
	while (atomic_load(&callbacks_due) > 0) /* of what has been waited for */
		usleep(200);
}

/* ---- callbacks ---- */

static pthread_mutex_t callback_lock = PTHREAD_MUTEX_INITIALIZER;

static void CL_CALLBACK called(cl_event e, cl_int status, void *cookie)
{
	uint64_t head;

	if (status <= CL_COMPLETE)
		deliver();
	pthread_mutex_lock(&callback_lock);
	head = atomic_load(&wire->callback_head);
	while (head - atomic_load(&wire->callback_tail) >= WIRE_CALLBACKS)
		usleep(1000);
	wire->callback[head % WIRE_CALLBACKS] =
	    (struct wire_callback){(uint64_t)(uintptr_t)cookie, status};
	atomic_store(&wire->callback_head, head + 1);
	pthread_mutex_unlock(&callback_lock);
	atomic_fetch_add(&wire->callback_bell, 1);
	syscall(SYS_futex, &wire->callback_bell, FUTEX_WAKE, 1, NULL, NULL, 0);
	atomic_fetch_sub(&callbacks_due, 1);
}

cl_int serve_callback(struct in *in)
{
	cl_event e = real_of(next(in), STUB_EVENT);
	cl_int type = (cl_int)(int64_t)next(in), status;

	atomic_fetch_add(&callbacks_due, 1);
	status = clSetEventCallback(e, type, called, (void *)(uintptr_t)next(in));
	if (status != CL_SUCCESS)
		atomic_fetch_sub(&callbacks_due, 1);
	return status;
}
