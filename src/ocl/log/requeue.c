/* SPDX-License-Identifier: BSD-3-Clause */
/* What waits for the program (user events that it has not set) when a context moves: it can't be
 * repeated, since it has not run, so it is enqueued once more where the context lives now. Of what
 * a command waited for the log knows the user events alone, directly or not. So each command waits
 * for those, and for the commands before it that wait for no other: these can run whenever it can.
 */
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "ocl/entry/entry.h"
#include "ocl/epoch/epoch.h"
#include "ocl/log/log.h"
#include "ocl/ocl.h"

static bool waits(const struct domain *d, const struct ocl_entry *e)
{
	return e->gates & d->gates_unset && !e->failed;
}

/* ---- user events ---- */

static bool is_of(const struct ocl_object *o, const struct domain *d)
{
	return o && o->kind == OCL_EVENT && o->domain == d;
}

/* Those events of d for which want says so; a list with NULL at its end, to be freed. */
static struct event **events_of(const struct domain *d, bool (*want)(const struct event *))
{
	const struct table *t = &ocl.objects;
	struct event **list = calloc(t->used + 1, sizeof(*list));
	size_t n = 0;

	for (size_t i = 0; list && i < t->cap; i++) {
		struct event *ev = (struct event *)t->slot[i].o;

		if (is_of(t->slot[i].o, d) && t->slot[i].key == OBJ(ev)->handle && want(ev))
			list[n++] = ev;
	}
	return list;
}

/* Commands may still wait for one that the program has released. */
static bool is_unset(const struct event *ev)
{
	return !ev->queue && !ev->seen;
}

static bool has_failed(const struct event *ev)
{
	return ev->error < 0;
}

static void give(struct domain *d, struct event *ev, cl_event real)
{
	ocl_object_moves(OBJ(ev), real);
	ev->generation = d->generation;
	if (!ev->error)
		ocl_callbacks_move(ev);
}

static cl_int status_of(cl_event e)
{
	cl_int status = CL_COMPLETE;

	NEXT->clGetEventInfo(e, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status, NULL);
	return status;
}

/* The code that this runtime has for a command that waits for a user event which is set to error:
 * not all have the same. Not negative: not known, it may just have ended. */
static cl_int outcome_of(struct domain *d, cl_int error)
{
	cl_context c = OBJ(d)->real;
	const struct queue *place = ocl_any_queue(d);
	cl_device_id device = place ? place->device : d->devices[0];
	/* where nothing else runs, see mark_gate() */
	cl_command_queue q = NEXT->clCreateCommandQueue(c, device, 0, NULL);
	cl_event user = NEXT->clCreateUserEvent(c, NULL), waits = NULL;
	cl_int status = CL_COMPLETE;

	if (q && user && NEXT->clEnqueueMarkerWithWaitList(q, 1, &user, &waits) == CL_SUCCESS) {
		NEXT->clFlush(q);
		NEXT->clSetUserEventStatus(user, error);
		NEXT->clWaitForEvents(1, &waits);
		status = status_of(waits);
		NEXT->clReleaseEvent(waits);
	}
	if (user)
		NEXT->clReleaseEvent(user);
	if (q)
		NEXT->clReleaseCommandQueue(q);
	return status;
}

static void find_out(struct domain *d, struct event *ev)
{
	cl_int status = ev->guessed ? outcome_of(d, ev->error) : CL_COMPLETE;

	if (status >= 0)
		return;
	ev->error = status;
	ev->guessed = false;
}

void ocl_requeue_user_events(struct domain *d)
{
	struct event **unset = events_of(d, is_unset), **failed = events_of(d, has_failed);
	cl_event real;

	for (size_t i = 0; unset && unset[i]; i++)
		if ((real = NEXT->clCreateUserEvent(OBJ(d)->real, NULL)))
			give(d, unset[i], real);
	/* whoever waits for one that has failed is told so there, too */
	for (size_t i = 0; failed && failed[i]; i++) {
		find_out(d, failed[i]);
		if (!(real = NEXT->clCreateUserEvent(OBJ(d)->real, NULL)))
			continue;
		NEXT->clSetUserEventStatus(real, failed[i]->error);
		give(d, failed[i], real);
	}
	free(unset);
	free(failed);
}

/* The runtime of before will never be told, and what waits in its queues is not to run. */
void ocl_requeue_give_up(struct domain *d)
{
	struct event **unset = events_of(d, is_unset);

	for (size_t i = 0; unset && unset[i]; i++)
		NEXT->clSetUserEventStatus(OBJ(unset[i])->real, -1);
	free(unset);
}

/* The runtime may end just then. */
static void take_failure(struct event *ev, cl_int error)
{
	cl_int status = status_of(OBJ(ev)->real);

	ev->guessed = status >= 0;
	ev->error = ev->guessed ? error : status;
}

void ocl_requeue_failed(struct domain *d, struct event *user, cl_int error)
{
	uint64_t gate = user->gate >= 0 ? 1ull << user->gate : 0;
	const struct table *t = &ocl.objects;

	user->error = error;
	for (struct ocl_entry *e = d->first; e; e = e->next)
		e->failed |= (e->gates & gate) != 0;
	for (size_t i = 0; gate && i < t->cap; i++) {
		struct event *ev = (struct event *)t->slot[i].o;

		if (is_of(t->slot[i].o, d) && ev->queue && ocl_event_gates(ev) & gate)
			take_failure(ev, error);
	}
}

/* ---- commands ---- */

struct requeue_list {
	cl_event *at;
	cl_uint count;
};

/* What e waits for: into w, which has room for all. */
static void collect(struct domain *d, const struct ocl_entry *e, struct event **unset,
		    struct requeue_list *w)
{
	w->count = 0;
	for (size_t i = 0; unset && unset[i]; i++)
		if (unset[i]->gate >= 0 && e->gates & 1ull << unset[i]->gate)
			w->at[w->count++] = OBJ(unset[i])->real;
	for (const struct ocl_entry *b = d->first; b != e; b = b->next)
		if (waits(d, b) && b->own && !(b->gates & d->gates_unset & ~e->gates))
			w->at[w->count++] = b->own;
}

static cl_int issue(struct domain *d, struct ocl_entry *e, const struct requeue_list *w,
		    cl_event *own)
{
	struct ocl_entry t = *e;
	void *host = e->host;
	cl_command_queue q = OBJ(e->queue)->real;

	if (e->kernel && ocl_kernel_bind(e->kernel, e->args, false) != CL_SUCCESS)
		return CL_INVALID_KERNEL_ARGS;
	/* mappings are memory that the program has already */
	if ((e->op == OP_MAP || e->op == OP_MAP_IMAGE || e->op == OP_UNMAP) &&
	    !ocl_replay_transfer(d, e, &t))
		t.op = OP_MARKER;
	if (e->data.size > 0 && t.op >= OP_WRITE && t.op <= OP_WRITE_IMAGE)
		host = ocl_log_in_memory(d, e);
	if (e->from_host && e->data.size > 0)
		host = ocl_log_in_memory(d, e);
	if (ocl_aside_reads(&t))
		return ocl_aside_read(&t, q, host, w->count, w->at, own);
	return host || !e->host ? ocl_issue(&t, q, host, w->count, w->at, own, NULL)
				: CL_OUT_OF_HOST_MEMORY;
}

/* The program's event for e, and the log's, become what they are now. Callbacks may wait for one
 * that the program has released. */
static void take_event(struct domain *d, struct ocl_entry *e, cl_event own)
{
	struct event *ev = e->own ? ocl_find_any(e->own, OCL_EVENT) : NULL;

	if (ev)
		ocl_hold(OBJ(ev));
	ocl_log_event_released(e->own);
	if (e->own)
		NEXT->clReleaseEvent(e->own);
	e->own = own;
	if (!ev)
		return;
	NEXT->clRetainEvent(own);
	give(d, ev, own);
	ocl_drop(OBJ(ev));
}

bool ocl_requeue(struct domain *d)
{
	struct event **unset = events_of(d, is_unset);
	struct requeue_list w = {.at = calloc(d->entries + ocl.objects.used + 1, sizeof(cl_event))};
	bool good = unset && w.at;

	for (struct ocl_entry *e = d->first; e && good; e = e->next) {
		cl_event own = NULL;

		if (!waits(d, e))
			continue;
		collect(d, e, unset, &w);
		good = issue(d, e, &w, &own) == CL_SUCCESS;
		if (!good)
			break;
		take_event(d, e, own);
		e->queue->gates |= e->gates;
		if (e->op == OP_BARRIER)
			e->queue->barred |= e->gates;
		NEXT->clFlush(OBJ(e->queue)->real);
	}
	ocl_replay_unbind(d);
	free(w.at);
	free(unset);
	return good;
}
