/* SPDX-License-Identifier: BSD-3-Clause */
/* Data between the program's memory and memory objects. What is written is fetched when the request
 * is taken, which is before the program may change it; what is read is put into the program's
 * memory when the command is complete, which is before the program can know that it is. */
#include <stdlib.h>
#include "base/base.h"
#include "ocl/remote/server_transfers.h"

/* ---- transfers ---- */

struct box {
	cl_command_queue q;
	cl_mem m;
	unsigned flags;
	size_t origin[3], region[3], pitch[2];
	bool blocks; /* in the runtime: returns when it has run */
	struct far far;
	struct waits w;
};

static void take_box(struct in *in, struct box *b)
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
	next(in); /* the size of an element, as the program's side sees it */
	b->far.bytes = b->region[0];
	b->far.rows = b->region[1];
	b->far.planes = b->region[2];
	waits_take(in, &b->w);
}

static bool wraps(const struct box *b, bool image)
{
	size_t end;

	if (b->flags & BOX_LINEAR)
		return __builtin_add_overflow(b->origin[0], b->region[0], &end);
	return image ? box_wraps(b->origin, b->region)
		     : rect_wraps(b->origin, b->region, b->pitch[0], b->pitch[1]);
}

/* How much is moved; false: more than the object has, or the object is none of that kind. */
static bool size_of(struct box *b, const struct obj *o, bool image)
{
	size_t bytes;

	if (!o || o->kind != STUB_MEM || o->image != image ||
	    (b->flags & BOX_LINEAR && (image || b->region[1] != 1 || b->region[2] != 1)) ||
	    wraps(b, image))
		return false;
	if (__builtin_mul_overflow(b->far.bytes, image ? o->element : 1, &b->far.bytes) ||
	    __builtin_mul_overflow(b->far.bytes, b->far.rows, &bytes) ||
	    __builtin_mul_overflow(bytes, b->far.planes, &bytes))
		return false;
	return bytes <= o->size;
}

static cl_int issue(const struct box *b, bool image, void *data, cl_event *done)
{
	static const size_t zero[3];
	bool write = b->flags & BOX_WRITE;
	cl_uint n = b->w.count;
	const cl_event *w = b->w.list;
	size_t row = b->region[0], plane = row * b->region[1];

	if (image)
		return write ? clEnqueueWriteImage(b->q, b->m, b->blocks, b->origin, b->region, 0,
						   0, data, n, w, done)
			     : clEnqueueReadImage(b->q, b->m, b->blocks, b->origin, b->region, 0, 0,
						  data, n, w, done);
	if (b->flags & BOX_LINEAR)
		return write ? clEnqueueWriteBuffer(b->q, b->m, b->blocks, b->origin[0],
						    b->region[0], data, n, w, done)
			     : clEnqueueReadBuffer(b->q, b->m, b->blocks, b->origin[0],
						   b->region[0], data, n, w, done);
	return write ? clEnqueueWriteBufferRect(b->q, b->m, b->blocks, b->origin, zero, b->region,
						b->pitch[0], b->pitch[1], row, plane, data, n, w,
						done)
		     : clEnqueueReadBufferRect(b->q, b->m, b->blocks, b->origin, zero, b->region,
					       b->pitch[0], b->pitch[1], row, plane, data, n, w,
					       done);
}

/* Takes over data. */
static cl_int start(struct box *b, bool image, char *data, cl_event *done)
{
	cl_int status = issue(b, image, data, done);

	if (status == CL_SUCCESS)
		underway_add(b->q, *done, data, !(b->flags & BOX_WRITE), &b->far);
	else
		underway_free(data);
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

	while (!data && unset_events == 0 && underway_end_first(false, NULL, NULL))
		data = stage_take(q);
	return data ? data : malloc(size);
}

/* A transfer that several threads give to the runtime, piece by piece. */
struct server_transfers_pieces {
	const struct box *b;
	pthread_mutex_t lock; /* for what follows */
	size_t next;
	cl_event done; /* of the last one in the queue */
	bool begun;    /* the wait list is the first one's */
	cl_int status;
};

static size_t take_piece(struct server_transfers_pieces *p, size_t *bytes)
{
	size_t at, left;

	pthread_mutex_lock(&p->lock);
	at = p->next;
	left = p->status == CL_SUCCESS ? p->b->region[0] - at : 0;
	*bytes = left < STAGE_PIECE ? left : STAGE_PIECE;
	p->next = at + *bytes;
	pthread_mutex_unlock(&p->lock);
	return at;
}

static void start_piece(struct server_transfers_pieces *p, struct box *part, char *data,
			cl_int status)
{
	cl_event done = NULL;

	pthread_mutex_lock(&p->lock);
	if (p->begun) {
		part->w.count = 0;
		part->w.list = NULL;
	}
	if (status == CL_SUCCESS)
		status = start(part, false, data, &done);
	else if (data)
		underway_free(data);
	if (status == CL_SUCCESS) {
		p->begun = true;
		if (p->done)
			clReleaseEvent(p->done);
		p->done = done;
		clFlush(part->q);
	} else if (p->status == CL_SUCCESS) {
		p->status = status;
	}
	pthread_mutex_unlock(&p->lock);
}

static void start_some(void *arg)
{
	struct server_transfers_pieces *p = arg;
	size_t n, at;

	for (at = take_piece(p, &n); n > 0; at = take_piece(p, &n)) {
		struct box part = *p->b;
		char *data = room_for(part.q, n);
		cl_int status = data ? CL_SUCCESS : CL_OUT_OF_HOST_MEMORY;

		part.origin[0] += at;
		part.region[0] = n;
		part.far.address += at;
		part.far.bytes = n;
		if (data && part.flags & BOX_WRITE && !far_move(&part.far, data, false))
			status = CL_INVALID_VALUE;
		start_piece(p, &part, data, status);
	}
}

static cl_int start_in_pieces(const struct box *b, cl_event *done)
{
	struct server_transfers_pieces p = {.b = b, .lock = PTHREAD_MUTEX_INITIALIZER};

	if (b->region[0] > STAGE_PIECE)
		crew_run(start_some, &p);
	else
		start_some(&p);
	if (p.status != CL_SUCCESS && p.done) {
		clReleaseEvent(p.done);
		p.done = NULL;
	}
	*done = p.done;
	return p.status;
}

/* As one command. */
static cl_int start_whole(struct box *b, bool image, cl_event *done)
{
	size_t bytes = b->far.bytes * b->far.rows * b->far.planes;
	char *data = NULL;

	if (b->far.address && !(data = malloc(bytes ? bytes : 1)))
		return CL_OUT_OF_HOST_MEMORY;
	if (data && b->flags & BOX_WRITE && !far_move(&b->far, data, false)) {
		free(data);
		return CL_INVALID_VALUE;
	}
	return start(b, image, data, done);
}

/* A write whose data reads bring that the server can't wait for. */
static cl_int start_late(struct box *b, cl_context c, bool image, cl_uint n, cl_event *read,
			 cl_event *done)
{
	size_t bytes = b->far.bytes * b->far.rows * b->far.planes;
	char *data = malloc(bytes ? bytes : 1);
	struct late *l = late_begin(c, &b->far, data, n, read);
	cl_int status;

	if (!l)
		return CL_OUT_OF_HOST_MEMORY;
	if (!b->w.list)
		b->w.list = b->w.few;
	b->w.list[b->w.count++] = late_gate(l); /* there is room: waits_take */
	status = issue(b, image, data, done);
	if (status == CL_SUCCESS)
		underway_add(b->q, *done, data, false, &b->far);
	late_end(l, status != CL_SUCCESS);
	return status;
}

/* A small read that the program waits for: the runtime's own blocking read, which on NVIDIA's GPUs
 * takes a quarter of the time of another one with a wait for its event. */
static bool may_read_now(const struct box *b)
{
	return (b->flags & (BOX_BLOCKING | BOX_WRITE)) == BOX_BLOCKING && b->far.address &&
	       b->far.bytes * b->far.rows * b->far.planes <= STAGE_PIECE / 8 && may_wait_here();
}

static cl_int read_now(struct box *b, bool image)
{
	char *data = malloc(STAGE_PIECE / 8);
	cl_int status;

	if (!data)
		return waits_done(&b->w, CL_OUT_OF_HOST_MEMORY);
	b->blocks = true;
	status = issue(b, image, data, waits_event(&b->w));
	if (status == CL_SUCCESS) {
		deliver(); /* what was read before comes there before */
		far_bring(&b->far, data);
	}
	free(data);
	status = waits_done(&b->w, status);
	return status == CL_SUCCESS ? atomic_exchange(&wire->deferred, 0) : status;
}

cl_int serve_box(struct in *in, struct out *out, bool image)
{
	struct box b = {0};
	cl_event done = NULL, read[LATE_MAX];
	const struct obj *o;
	cl_context c;
	cl_uint n = 0;
	cl_int status;

	take_box(in, &b);
	o = obj_at(in->r->word[1]);
	if (!b.q || !b.m)
		return waits_done(&b.w, b.q ? CL_INVALID_MEM_OBJECT : CL_INVALID_COMMAND_QUEUE);
	if (!size_of(&b, o, image) || (b.w.count > 0 && !b.w.list))
		return waits_done(&b.w, b.w.count > 0 && !b.w.list ? CL_INVALID_EVENT_WAIT_LIST
								   : CL_INVALID_VALUE);
	if (may_read_now(&b))
		return read_now(&b, image);
	c = real_of(o->context, STUB_CONTEXT);
	if (b.flags & BOX_WRITE && b.far.address)
		n = late_reads(c, &b.far, read);
	if (n > 0)
		status = start_late(&b, c, image, n, read, &done);
	else
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
