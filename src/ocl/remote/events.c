/* SPDX-License-Identifier: BSD-3-Clause */
/* Events: of commands, of the program; waiting, callbacks. */
#include <stdlib.h>
#include "base/base.h"
#include "ocl/remote/remote.h"

static void *refuse(cl_int code, cl_int *status)
{
	if (status)
		*status = code;
	return NULL;
}

/* ---- of commands ---- */

void put_waits(struct call *c, cl_uint count, const cl_event *list, const struct stub *event)
{
	put_handles(c, count, list, STUB_EVENT);
	put(c, event ? event->id : 0);
}

bool all_are_events(cl_uint count, const cl_event *list)
{
	if (!list || count == 0)
		return !list && count == 0;
	for (cl_uint i = 0; i < count; i++)
		if (!stub_of(list[i], STUB_EVENT))
			return false;
	return true;
}

cl_int remote_enqueue(struct call *c, wire_op_t op, struct stub *queue, cl_command_type type,
		      bool quick, cl_uint count, const cl_event *list, cl_event *event)
{
	struct stub *s = NULL;
	cl_int status;

	/* some runtimes take one that is no event for one that is; and not yet with the new event,
	 * which may be where one of these was that has been released */
	if (!all_are_events(count, list))
		return CL_INVALID_EVENT_WAIT_LIST;
	for (cl_uint i = 0; i < count; i++)
		if (((struct stub *)list[i])->context != queue->context)
			return CL_INVALID_CONTEXT;
	c->era = era_of(queue);
	put_handles(c, count, list, STUB_EVENT);
	if (event) {
		s = stub_create(STUB_EVENT, queue->context);
		if (!s)
			return CL_OUT_OF_HOST_MEMORY;
		s->type = type;
		s->parent = queue;
		stub_hold(s, queue);
	}
	put(c, s ? s->id : 0);
	status = quick ? remote_post(c, op) : remote_call(c, op, NULL);
	if (status == CL_SUCCESS && event)
		*event = (cl_event)s;
	else if (s)
		stub_discard(s);
	return status;
}

static cl_int CL_API_CALL wait_for_events(cl_uint count, const cl_event *list)
{
	struct call c = {0};
	struct stub *in;

	if (count == 0 || !list)
		return CL_INVALID_VALUE;
	for (cl_uint i = 0; i < count; i++)
		if (!stub_of(list[i], STUB_EVENT))
			return CL_INVALID_EVENT;
	in = ((struct stub *)list[0])->context;
	for (cl_uint i = 0; i < count; i++)
		if (((struct stub *)list[i])->context != in)
			return CL_INVALID_CONTEXT;
	for (cl_uint at = 0; at < count; at += WIRE_WORDS / 2) { /* as many as a request bears */
		cl_uint n = count - at < WIRE_WORDS / 2 ? count - at : WIRE_WORDS / 2;
		cl_int status;
		c.words = 0;
		c.era = era_of(in);
		put_waits(&c, n, list + at, NULL);
		status = remote_call(&c, OP_WAIT, NULL);
		if (status != CL_SUCCESS)
			return status;
	}
	return CL_SUCCESS;
}

static cl_int CL_API_CALL retain_event(cl_event e)
{
	return stub_retain(e, STUB_EVENT, CL_INVALID_EVENT);
}

static cl_int CL_API_CALL release_event(cl_event e)
{
	return stub_release(e, STUB_EVENT, CL_INVALID_EVENT);
}

static cl_int CL_API_CALL event_info(cl_event e, cl_event_info name, size_t room, void *to,
				     size_t *size_ret)
{
	struct stub *s = stub_of(e, STUB_EVENT);
	cl_command_type type;

	if (!s)
		return CL_INVALID_EVENT;
	type = (cl_command_type)s->type;
	switch (name) {
	case CL_EVENT_COMMAND_QUEUE:
		return give(&s->parent, sizeof(void *), room, to, size_ret);
	case CL_EVENT_CONTEXT:
		return give(&s->context, sizeof(void *), room, to, size_ret);
	case CL_EVENT_COMMAND_TYPE:
		return give(&type, sizeof(type), room, to, size_ret);
	case CL_EVENT_REFERENCE_COUNT:
		return give(&s->refs, sizeof(s->refs), room, to, size_ret);
	default:
		return remote_info(ABOUT_EVENT, s, 0, name, room, to, size_ret);
	}
}

static cl_int CL_API_CALL profile(cl_event e, cl_profiling_info name, size_t room, void *to,
				  size_t *size_ret)
{
	struct stub *s = stub_of(e, STUB_EVENT);

	return s ? remote_info(ABOUT_PROFILE, s, 0, name, room, to, size_ret) : CL_INVALID_EVENT;
}

/* ---- of the program ---- */

static cl_event CL_API_CALL create_user_event(cl_context context, cl_int *status)
{
	struct stub *in = stub_of(context, STUB_CONTEXT), *s;
	struct call c = {0};

	if (!in)
		return refuse(CL_INVALID_CONTEXT, status);
	s = stub_create(STUB_EVENT, in);
	if (!s)
		return refuse(CL_OUT_OF_HOST_MEMORY, status);
	s->type = CL_COMMAND_USER;
	put(&c, s->id);
	put(&c, in->id);
	return remote_make(s, &c, OP_USER_EVENT, status);
}

static cl_int CL_API_CALL set_user_event(cl_event e, cl_int value)
{
	struct stub *s = stub_of(e, STUB_EVENT);
	struct call c = {0};

	if (!s)
		return CL_INVALID_EVENT;
	if (value > CL_COMPLETE)
		return CL_INVALID_VALUE;
	if (s->type != CL_COMMAND_USER)
		return CL_INVALID_EVENT;
	c.era = era_of(s);
	put(&c, s->id);
	put(&c, (uint64_t)(int64_t)value);
	return remote_call(&c, OP_USER_EVENT_SET, NULL);
}

/* ---- callbacks ---- */

struct event_callback {
	struct callback b;
	void(CL_CALLBACK *fn)(cl_event, cl_int, void *);
	void *data;
	struct stub *event; /* retained */
};

static void call_back(struct callback *self, int32_t status)
{
	struct event_callback *b = (struct event_callback *)self;

	b->fn((cl_event)b->event, status, b->data);
	stub_release(b->event, STUB_EVENT, 0);
	free(b);
}

static cl_int CL_API_CALL set_callback(cl_event e, cl_int type,
				       void(CL_CALLBACK *fn)(cl_event, cl_int, void *), void *data)
{
	struct stub *s = stub_of(e, STUB_EVENT);
	struct event_callback *b;
	struct call c = {0};
	cl_int status;

	if (!s)
		return CL_INVALID_EVENT;
	c.era = era_of(s);
	if (!fn || (type != CL_COMPLETE && type != CL_RUNNING && type != CL_SUBMITTED))
		return CL_INVALID_VALUE;
	b = malloc(sizeof(*b));
	if (!b)
		return CL_OUT_OF_HOST_MEMORY;
	*b = (struct event_callback){.b.call = call_back, .fn = fn, .data = data, .event = s};
	stub_retain(e, STUB_EVENT, 0);
	put(&c, s->id);
	put(&c, (uint64_t)(int64_t)type);
	put(&c, (uint64_t)(uintptr_t)b);
	status = callback_add(&b->b) ? remote_call(&c, OP_CALLBACK, NULL) : CL_OUT_OF_HOST_MEMORY;
	/* the server may have ended in between, and the callback have told of that already */
	if (status != CL_SUCCESS && callback_remove(&b->b)) {
		stub_release(e, STUB_EVENT, 0);
		free(b);
		return status;
	}
	return CL_SUCCESS;
}

void events_fill(cl_icd_dispatch *d)
{
	d->clWaitForEvents = wait_for_events;
	d->clRetainEvent = retain_event;
	d->clReleaseEvent = release_event;
	d->clGetEventInfo = event_info;
	d->clGetEventProfilingInfo = profile;
	d->clCreateUserEvent = create_user_event;
	d->clSetUserEventStatus = set_user_event;
	d->clSetEventCallback = set_callback;
}
