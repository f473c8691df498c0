/* SPDX-License-Identifier: BSD-3-Clause */
/* Command buffers (cl_khr_command_buffer), which this side keeps by itself: a buffer that is
 * enqueued is sent command by command. So nothing of it is in the server, and a restart from an
 * image, or another server, has it as it was. */
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "ocl/remote/remote.h"

struct remote_recorded {
	struct remote_recorded *next;
	cl_command_type type;
	wire_op_t op;
	uint32_t taken; /* the queue in which the runtime has taken it once */
	bool awaited;	/* a later command waits for it */
	uint32_t points, words;
	uint32_t *point; /* numbers of earlier commands, from 1 */
	uint64_t word[]; /* the request up to its waits */
};

#define POINTS                                                                                     \
	cl_uint points, const cl_sync_point_khr *point, cl_sync_point_khr *made,                   \
	    cl_mutable_command_khr *changeable

static struct stub *recorded_of(cl_command_buffer_khr b)
{
	return stub_of(b, STUB_RECORDED);
}

void recorded_free(struct stub *s)
{
	for (struct remote_recorded *r = s->recorded.first, *next; r; r = next) {
		next = r->next;
		free(r->point);
		free(r);
	}
	if (s->recorded.running)
		stub_release(s->recorded.running, STUB_EVENT, 0);
}

/* ---- a buffer's life ---- */

static cl_int look_at(const cl_command_buffer_properties_khr *list, bool *simultaneous)
{
	*simultaneous = false;
	for (const cl_command_buffer_properties_khr *p = list; p && *p; p += 2) {
		if (p[0] != CL_COMMAND_BUFFER_FLAGS_KHR || p != list ||
		    (p[1] &
		     ~(cl_command_buffer_properties_khr)CL_COMMAND_BUFFER_SIMULTANEOUS_USE_KHR))
			return CL_INVALID_VALUE;
		*simultaneous = p[1] & CL_COMMAND_BUFFER_SIMULTANEOUS_USE_KHR;
	}
	return CL_SUCCESS;
}

static cl_command_buffer_khr CL_API_CALL create(cl_uint count, const cl_command_queue *queues,
						const cl_command_buffer_properties_khr *properties,
						cl_int *status)
{
	struct stub *q = count == 1 && queues ? stub_of(queues[0], STUB_QUEUE) : NULL, *s = NULL;
	bool simultaneous;
	cl_int code = look_at(properties, &simultaneous);

	if (count != 1 || !queues)
		code = CL_INVALID_VALUE;
	else if (!q)
		code = CL_INVALID_COMMAND_QUEUE;
	if (code == CL_SUCCESS && !(s = stub_create(STUB_RECORDED, q->context)))
		code = CL_OUT_OF_HOST_MEMORY;
	if (status)
		*status = code;
	if (!s)
		return NULL;
	s->parent = q;
	stub_hold(s, q);
	s->list = stub_list_copy(properties);
	s->recorded.last = &s->recorded.first;
	s->recorded.state = CL_COMMAND_BUFFER_STATE_RECORDING_KHR;
	s->recorded.simultaneous = simultaneous;
	return (cl_command_buffer_khr)s;
}

static cl_int CL_API_CALL finalize(cl_command_buffer_khr b)
{
	struct stub *s = recorded_of(b);

	if (!s)
		return CL_INVALID_COMMAND_BUFFER_KHR;
	if (s->recorded.state == CL_COMMAND_BUFFER_STATE_RECORDING_KHR)
		s->recorded.state = CL_COMMAND_BUFFER_STATE_EXECUTABLE_KHR;
	return CL_SUCCESS;
}

static cl_int CL_API_CALL retain(cl_command_buffer_khr b)
{
	return stub_retain(b, STUB_RECORDED, CL_INVALID_COMMAND_BUFFER_KHR);
}

static cl_int CL_API_CALL release(cl_command_buffer_khr b)
{
	return stub_release(b, STUB_RECORDED, CL_INVALID_COMMAND_BUFFER_KHR);
}

/* Pending until its newest run is complete. */
static cl_command_buffer_state_khr state_of(struct stub *s)
{
	struct stub_recorded *r = &s->recorded;
	cl_int status = CL_COMPLETE;

	if (!r->running)
		return r->state;
	remote_info(ABOUT_EVENT, (struct stub *)r->running, 0, CL_EVENT_COMMAND_EXECUTION_STATUS,
		    sizeof(status), &status, NULL);
	if (status > CL_COMPLETE)
		return CL_COMMAND_BUFFER_STATE_PENDING_KHR;
	stub_release(r->running, STUB_EVENT, 0);
	r->running = NULL;
	return r->state;
}

static cl_int CL_API_CALL info(cl_command_buffer_khr b, cl_command_buffer_info_khr name,
			       size_t room, void *to, size_t *size_ret)
{
	struct stub *s = recorded_of(b);
	const cl_uint one = 1;
	cl_command_buffer_state_khr state;
	size_t n = 0;

	if (!s)
		return CL_INVALID_COMMAND_BUFFER_KHR;
	switch (name) {
	case CL_COMMAND_BUFFER_NUM_QUEUES_KHR:
		return give(&one, sizeof(one), room, to, size_ret);
	case CL_COMMAND_BUFFER_QUEUES_KHR:
		return give(&s->parent, sizeof(void *), room, to, size_ret);
	case CL_COMMAND_BUFFER_REFERENCE_COUNT_KHR:
		return give(&s->refs, sizeof(s->refs), room, to, size_ret);
	case CL_COMMAND_BUFFER_STATE_KHR:
		state = state_of(s);
		return give(&state, sizeof(state), room, to, size_ret);
	case CL_COMMAND_BUFFER_PROPERTIES_ARRAY_KHR:
		for (const uint64_t *p = s->list; p && p[n]; n += 2)
			;
		return give(s->list, s->list ? (n + 1) * 8 : 0, room, to, size_ret);
	default:
		return CL_INVALID_VALUE;
	}
}

/* ---- recording ---- */

/* The queue of b, for which a request is described. NULL: *status. */
static cl_command_queue begin(cl_command_buffer_khr b, cl_command_queue queue,
			      const void *changeable, cl_int *status)
{
	struct stub *s = recorded_of(b);

	if (!s)
		*status = CL_INVALID_COMMAND_BUFFER_KHR;
	else if (queue)
		*status = CL_INVALID_COMMAND_QUEUE;
	else if (changeable)
		*status = CL_INVALID_VALUE;
	else if (s->recorded.state != CL_COMMAND_BUFFER_STATE_RECORDING_KHR)
		*status = CL_INVALID_OPERATION;
	else
		return (cl_command_queue)s->parent;
	return NULL;
}

static bool note_points(struct stub *s, struct remote_recorded *new, cl_uint points,
			const cl_sync_point_khr *point)
{
	for (cl_uint i = 0; i < points; i++) {
		uint32_t at = 1;

		new->point[i] = point[i];
		for (struct remote_recorded *r = s->recorded.first; r; r = r->next)
			if (at++ == point[i])
				r->awaited = true;
	}
	return true;
}

/* c, which describes a command for b, is one more in it. */
static cl_int keep(cl_command_buffer_khr b, const struct call *c, wire_op_t op,
		   cl_command_type type, cl_uint points, const cl_sync_point_khr *point,
		   cl_sync_point_khr *made)
{
	struct stub *s = recorded_of(b);
	struct remote_recorded *r;

	if ((points == 0) != !point)
		return CL_INVALID_SYNC_POINT_WAIT_LIST_KHR;
	for (cl_uint i = 0; i < points; i++)
		if (point[i] == 0 || point[i] > s->recorded.points)
			return CL_INVALID_SYNC_POINT_WAIT_LIST_KHR;
	r = calloc(1, sizeof(*r) + c->words * sizeof(uint64_t));
	if (r && points)
		r->point = calloc(points, sizeof(uint32_t));
	if (!r || (points && !r->point)) {
		free(r);
		return CL_OUT_OF_HOST_MEMORY;
	}
	r->op = op;
	r->type = type;
	r->points = points;
	r->words = c->words;
	memcpy(r->word, c->word, c->words * sizeof(uint64_t));
	note_points(s, r, points, point);
	*s->recorded.last = r;
	s->recorded.last = &r->next;
	s->recorded.points++;
	if (made)
		*made = s->recorded.points;
	return CL_SUCCESS;
}

static cl_int keep_with(cl_command_buffer_khr b, cl_mem x, cl_mem y, const struct call *c,
			wire_op_t op, cl_command_type type, cl_uint points,
			const cl_sync_point_khr *point, cl_sync_point_khr *made)
{
	struct stub *s = recorded_of(b);
	cl_int status = CL_SUCCESS;

	if (((struct stub *)x)->context != s->context || ((struct stub *)y)->context != s->context)
		return CL_INVALID_CONTEXT;
	status = keep(b, c, op, type, points, point, made);
	if (status == CL_SUCCESS) {
		stub_hold(s, (struct stub *)x);
		stub_hold(s, (struct stub *)y);
	}
	return status;
}

static cl_int CL_API_CALL barrier(cl_command_buffer_khr b, cl_command_queue queue, POINTS)
{
	struct call c = {0};
	cl_int status = CL_SUCCESS;
	struct stub *q = (struct stub *)begin(b, queue, changeable, &status);

	if (!q)
		return status;
	put(&c, q->id);
	put(&c, ORDER_BARRIER);
	return keep(b, &c, OP_MARKER, CL_COMMAND_BARRIER, points, point, made);
}

static bool is_inside(const void *mem, size_t offset, size_t size)
{
	const struct stub *m = mem;

	return offset <= m->mem.size && size <= m->mem.size - offset;
}

static cl_int wrong_copy(cl_mem src, cl_mem dst, size_t from, size_t to, size_t size)
{
	if (size == 0 || !is_inside(src, from, size) || !is_inside(dst, to, size))
		return CL_INVALID_VALUE;
	return src == dst && from < to + size && to < from + size ? CL_MEM_COPY_OVERLAP
								  : CL_SUCCESS;
}

static cl_int wrong_fill(cl_mem mem, size_t bytes, size_t offset, size_t size)
{
	return bytes == 0 || (bytes & (bytes - 1)) || offset % bytes || size % bytes ||
		       !is_inside(mem, offset, size)
		   ? CL_INVALID_VALUE
		   : CL_SUCCESS;
}

/* clang-format off */
/* NOLINTBEGIN(bugprone-macro-parentheses): lists of parameters can't have them */
#define WITH(...) __VA_ARGS__

/* A function that records a command between src and dst: the request is described as for an
 * enqueue, then what only the runtime would say of it is looked at. */
#define RECORDS(name, parameters, describe, wrong, src, dst, op, type)                             \
	static cl_int CL_API_CALL name(cl_command_buffer_khr b, cl_command_queue queue,            \
				       parameters, POINTS)                                         \
	{                                                                                          \
		struct call c = {0};                                                               \
		struct stub *q;                                                                    \
		cl_int status = CL_SUCCESS;                                                        \
		cl_command_queue of = begin(b, queue, changeable, &status);                        \
												   \
		if (of)                                                                            \
			status = describe;                                                         \
		if (status == CL_SUCCESS)                                                          \
			status = wrong;                                                            \
		if (status != CL_SUCCESS)                                                          \
			return status;                                                             \
		return keep_with(b, src, dst, &c, op, type, points, point, made);                  \
	}

RECORDS(copy,
	WITH(cl_mem src, cl_mem dst, size_t from, size_t to, size_t size),
	put_copy(&c, of, src, dst, from, to, size, &q),
	wrong_copy(src, dst, from, to, size),
	src, dst, OP_COPY, CL_COMMAND_COPY_BUFFER)

RECORDS(copy_rect,
	WITH(cl_mem src, cl_mem dst, const size_t *from, const size_t *to, const size_t *region,
	     size_t src_row, size_t src_slice, size_t dst_row, size_t dst_slice),
	put_copy_rect(&c, of, src, dst, from, to, region,
		      (size_t[4]){src_row, src_slice, dst_row, dst_slice}, &q),
	CL_SUCCESS,
	src, dst, OP_COPY_RECT, CL_COMMAND_COPY_BUFFER_RECT)

RECORDS(buffer_to_image,
	WITH(cl_mem src, cl_mem dst, size_t from, const size_t *to, const size_t *region),
	put_image_and_buffer(&c, of, src, dst, to, region, from, &q),
	CL_SUCCESS,
	src, dst, OP_BUFFER_TO_IMAGE, CL_COMMAND_COPY_BUFFER_TO_IMAGE)

RECORDS(copy_image,
	WITH(cl_mem src, cl_mem dst, const size_t *from, const size_t *to, const size_t *region),
	put_copy_image(&c, of, src, dst, from, to, region, &q),
	CL_SUCCESS,
	src, dst, OP_COPY_IMAGE, CL_COMMAND_COPY_IMAGE)

RECORDS(image_to_buffer,
	WITH(cl_mem src, cl_mem dst, const size_t *from, const size_t *region, size_t to),
	put_image_and_buffer(&c, of, src, dst, from, region, to, &q),
	CL_SUCCESS,
	src, dst, OP_IMAGE_TO_BUFFER, CL_COMMAND_COPY_IMAGE_TO_BUFFER)

RECORDS(fill,
	WITH(cl_mem mem, const void *pattern, size_t bytes, size_t offset, size_t size),
	put_fill(&c, of, mem, pattern, bytes, offset, size, &q),
	wrong_fill(mem, bytes, offset, size),
	mem, mem, OP_FILL, CL_COMMAND_FILL_BUFFER)

RECORDS(fill_image,
	WITH(cl_mem mem, const void *colour, const size_t *origin, const size_t *region),
	put_fill_image(&c, of, mem, colour, origin, region, &q),
	CL_SUCCESS,
	mem, mem, OP_FILL_IMAGE, CL_COMMAND_FILL_IMAGE)
/* NOLINTEND(bugprone-macro-parentheses) */
/* clang-format on */

static cl_int wrong_launch(const struct stub *s, const struct stub *k, cl_uint dims,
			   const size_t *global)
{
	if (!k)
		return CL_INVALID_KERNEL;
	if (k->context != s->context)
		return CL_INVALID_CONTEXT;
	if (dims < 1 || dims > 3)
		return CL_INVALID_WORK_DIMENSION;
	if (!global)
		return CL_INVALID_GLOBAL_WORK_SIZE;
	for (uint32_t i = 0; k->kernel.arg_size && i < k->kernel.args; i++)
		if (!k->kernel.arg_size[i])
			return CL_INVALID_KERNEL_ARGS;
	return CL_SUCCESS;
}

/* With a kernel of its own, which keeps the arguments of now. */
static cl_int CL_API_CALL launch(cl_command_buffer_khr b, cl_command_queue queue,
				 const cl_ndrange_kernel_command_properties_khr *properties,
				 cl_kernel kernel, cl_uint dims, const size_t *offset,
				 const size_t *global, const size_t *local, POINTS)
{
	struct stub *s = recorded_of(b), *k = stub_of(kernel, STUB_KERNEL), *clone, *q;
	struct call c = {0};
	cl_int status = CL_SUCCESS;

	q = (struct stub *)begin(b, queue, changeable, &status);
	if (!q)
		return status;
	if (properties && *properties)
		return CL_INVALID_VALUE;
	status = wrong_launch(s, k, dims, global);
	if (status != CL_SUCCESS)
		return status;
	clone = (struct stub *)remote_clone_kernel(kernel, &status);
	if (!clone)
		return status;
	put_launch(&c, q, clone, dims, offset, global, local);
	status = keep(b, &c, OP_LAUNCH, CL_COMMAND_NDRANGE_KERNEL, points, point, made);
	if (status == CL_SUCCESS)
		stub_hold(s, clone);
	stub_release(clone, STUB_KERNEL, 0);
	return status;
}

/* ---- running ---- */

struct recorded_run {
	struct stub *q;
	bool in_order;
	cl_event start;	 /* all of an out-of-order run wait for it; NULL: for nothing */
	cl_event *event; /* by number of the command, from 1 */
	cl_event *wait;	 /* room */
};

static cl_int run_one(struct recorded_run *run, struct remote_recorded *r, uint32_t number)
{
	struct call c;
	cl_uint n = 0;
	cl_int status = CL_SUCCESS;

	memset(&c, 0, offsetof(struct call, word));
	c.words = r->words;
	memcpy(c.word, r->word, r->words * sizeof(uint64_t));
	c.word[0] = run->q->id;
	for (uint32_t i = 0; !run->in_order && i < r->points; i++)
		run->wait[n++] = run->event[r->point[i]];
	if (!run->in_order && run->start)
		run->wait[n++] = run->start;
	status = remote_enqueue(&c, r->op, run->q, r->type, r->taken == run->q->id, n,
				n ? run->wait : NULL, run->in_order ? NULL : &run->event[number]);
	if (status == CL_SUCCESS)
		r->taken = run->q->id;
	return status;
}

/* An event for when all have run: those of out-of-order runs that nobody waits for, a few hundred
 * at a time, as many as a request bears. */
static cl_int run_end(struct recorded_run *run, const struct stub_recorded *b, cl_event *done)
{
	enum { MOST = 256 };
	uint32_t at = 1, n = 0;
	cl_event part = NULL;
	cl_int status = CL_SUCCESS;

	for (const struct remote_recorded *r = b->first; r && !run->in_order; r = r->next, at++) {
		if (!r->awaited)
			run->wait[n++] = run->event[at];
		if (n < MOST)
			continue;
		status = remote_order(run->q, ORDER_MARKER, CL_COMMAND_MARKER, n, run->wait, &part);
		if (status != CL_SUCCESS)
			return status;
		if (run->event[0])
			stub_release(run->event[0], STUB_EVENT, 0);
		run->event[0] = run->wait[0] = part;
		n = 1;
	}
	if (n == 0 && run->start)
		run->wait[n++] = run->start;
	return remote_order(run->q, ORDER_MARKER, CL_COMMAND_COMMAND_BUFFER_KHR, n,
			    n ? run->wait : NULL, done);
}

static cl_int run_all(struct recorded_run *run, const struct stub_recorded *b, cl_uint count,
		      const cl_event *list, cl_event *done)
{
	uint32_t number = 0;
	cl_int status = CL_SUCCESS;

	if (count > 0)
		status =
		    remote_order(run->q, ORDER_MARKER, CL_COMMAND_MARKER, count, list, &run->start);
	for (struct remote_recorded *r = b->first; r && status == CL_SUCCESS; r = r->next)
		status = run_one(run, r, ++number);
	if (status == CL_SUCCESS)
		status = run_end(run, b, done);
	if (run->start)
		stub_release(run->start, STUB_EVENT, 0);
	for (uint32_t i = 0; i <= b->points; i++)
		if (run->event[i])
			stub_release(run->event[i], STUB_EVENT, 0);
	return status;
}

static cl_int wrong_queue(const struct stub *s, cl_uint count, const cl_command_queue *queues)
{
	const struct stub *q = queues && count ? stub_of(queues[0], STUB_QUEUE) : NULL;

	if ((count == 0) != !queues || count > 1)
		return CL_INVALID_VALUE;
	if (!queues)
		return CL_SUCCESS;
	if (!q)
		return CL_INVALID_COMMAND_QUEUE;
	if (q->context != s->context)
		return CL_INVALID_CONTEXT;
	return q->parent == s->parent->parent && q->type == s->parent->type
		   ? CL_SUCCESS
		   : CL_INCOMPATIBLE_COMMAND_QUEUE_KHR;
}

static cl_int CL_API_CALL enqueue(cl_uint queue_count, cl_command_queue *queues,
				  cl_command_buffer_khr b, cl_uint count, const cl_event *list,
				  cl_event *event)
{
	struct stub *s = recorded_of(b);
	struct recorded_run run = {0};
	cl_event done = NULL;
	cl_int status = CL_SUCCESS;

	if (!s)
		return CL_INVALID_COMMAND_BUFFER_KHR;
	status = wrong_queue(s, queue_count, queues);
	if (status != CL_SUCCESS)
		return status;
	if (!all_are_events(count, list))
		return CL_INVALID_EVENT_WAIT_LIST;
	if (s->recorded.state == CL_COMMAND_BUFFER_STATE_RECORDING_KHR ||
	    (!s->recorded.simultaneous && state_of(s) == CL_COMMAND_BUFFER_STATE_PENDING_KHR))
		return CL_INVALID_OPERATION;
	run.q = queues ? (struct stub *)queues[0] : s->parent;
	run.in_order = !(run.q->type & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
	run.event = calloc(s->recorded.points + 1ul, sizeof(cl_event));
	run.wait = calloc(s->recorded.points + 2ul, sizeof(cl_event));
	status = run.event && run.wait ? run_all(&run, &s->recorded, count, list, &done)
				       : CL_OUT_OF_HOST_MEMORY;
	free(run.event);
	free(run.wait);
	if (status != CL_SUCCESS)
		return status;
	if (s->recorded.running)
		stub_release(s->recorded.running, STUB_EVENT, 0);
	s->recorded.running = done;
	if (event) {
		stub_retain(done, STUB_EVENT, 0);
		*event = done;
	}
	return CL_SUCCESS;
}

/* ---- the functions ---- */

void *recorded_function(const char *name)
{
	static const struct {
		const char *name;
		void (*f)(void);
	} all[] = {
#define F(name, f) {"cl" name "KHR", (void (*)(void))(f)}
	    F("CreateCommandBuffer", create),
	    F("FinalizeCommandBuffer", finalize),
	    F("RetainCommandBuffer", retain),
	    F("ReleaseCommandBuffer", release),
	    F("EnqueueCommandBuffer", enqueue),
	    F("GetCommandBufferInfo", info),
	    F("CommandBarrierWithWaitList", barrier),
	    F("CommandCopyBuffer", copy),
	    F("CommandCopyBufferRect", copy_rect),
	    F("CommandCopyBufferToImage", buffer_to_image),
	    F("CommandCopyImage", copy_image),
	    F("CommandCopyImageToBuffer", image_to_buffer),
	    F("CommandFillBuffer", fill),
	    F("CommandFillImage", fill_image),
	    F("CommandNDRangeKernel", launch),
#undef F
	};

	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		if (strcmp(name, all[i].name) == 0)
			return (void *)(uintptr_t)all[i].f;
	return NULL;
}
