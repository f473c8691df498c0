/* SPDX-License-Identifier: BSD-3-Clause */
/* Events: waiting for one, or learning that it is complete, may close an epoch. */
#include <stdlib.h>
#include "base/base.h"
#include "ocl/calls.h"
#include "ocl/entry/entry.h"
#include "ocl/epoch/epoch.h"
#include "ocl/log/log.h"

cl_int CL_API_CALL layer_clRetainEvent(cl_event e)
{
	return ocl_retained(e, OCL_EVENT, NEXT->clRetainEvent(ocl_checked(e, OCL_EVENT)));
}

cl_int CL_API_CALL layer_clReleaseEvent(cl_event e)
{
	return ocl_release(e, OCL_EVENT);
}

/* ---- user events ---- */

cl_event CL_API_CALL layer_clCreateUserEvent(cl_context c, cl_int *status)
{
	MADE_LOCKED;
	struct domain *d;
	struct event *ev;
	cl_int code;
	cl_event e;

	MAKE_OF(c, OCL_CONTEXT, status,
		e = NEXT->clCreateUserEvent(ocl_real(c, OCL_CONTEXT), &code));

	if (!e || ocl.passive)
		return e;
	ocl_lock();
	d = ocl_find(c, OCL_CONTEXT);
	ev = d ? ocl_object_create(sizeof(*ev), OCL_EVENT, e, d) : NULL;
	if (ev) {
		ev->gate = -1;
		ev->generation = d->generation;
	}
	ocl_unlock();
	return e;
}

static void note_set(struct event *ev, cl_int value)
{
	if (!ev || ev->queue || ev->seen)
		return;
	if (value < 0)
		ocl_requeue_failed(OBJ(ev)->domain, ev, value);
	ev->seen = true;
	ocl_gate_open(OBJ(ev)->domain, ev);
}

/* With the lock, so that what runs now isn't taken for what still waits. */
cl_int CL_API_CALL layer_clSetUserEventStatus(cl_event e, cl_int value)
{
	uint32_t moves;
	cl_int status;

	if (ocl.passive)
		return NEXT->clSetUserEventStatus(e, value);
	ocl_lock();
	do { /* with the device the event is lost: it is made anew where the context goes */
		moves = ocl.moves;
		status = NEXT->clSetUserEventStatus(ocl_real(e, OCL_EVENT), value);
	} while (ocl_again(e, OCL_EVENT, status, moves));
	if (status == CL_SUCCESS || status == CL_DEVICE_NOT_AVAILABLE)
		note_set(ocl_find(e, OCL_EVENT), value);
	ocl_unlock();
	return status;
}

/* ---- waiting ---- */

/* The last command of an in-order queue closes an epoch (VOCL-FT 2.1); any other one only has its
 * data checked. */
static bool is_last(const struct event *ev)
{
	const struct domain *d = OBJ(ev)->domain;

	return ev->queue && !ev->queue->out_of_order && d->last != &d->first &&
	       ev->number >= ev->queue->last_number;
}

bool ocl_event_is_old(const struct event *ev)
{
	return ev->queue && ev->generation < OBJ(ev)->domain->generation;
}

bool ocl_event_was_complete(const struct event *ev)
{
	return ocl_event_is_old(ev) || (ev->seen && ev->generation < OBJ(ev)->domain->generation);
}

static cl_int sync_with(cl_event e)
{
	struct event *ev = ocl_find(e, OCL_EVENT);
	cl_int status;

	if (!ev || !ev->queue || ev->seen)
		return CL_SUCCESS;
	ocl_hold(OBJ(ev));
	if (!ev->queue->out_of_order && ev->number > ev->queue->finished)
		ev->queue->finished = ev->number;
	ocl_epoch_came(OBJ(ev)->domain, ev->number);
	status = ocl_epoch_sync(OBJ(ev)->domain, ev->queue, is_last(ev));
	ev->seen = status == CL_SUCCESS;
	ocl_drop(OBJ(ev));
	return status;
}

/* A command that is running tells that what it waited for is complete. */
cl_int ocl_event_runs(struct event *ev)
{
	struct domain *d = OBJ(ev)->domain;

	if (!ev->queue || (d->unchecked == 0 && d->uncaptured == 0))
		return CL_SUCCESS;
	return ocl_epoch_sync(d, ev->queue, false);
}

/* Without those from before a move, which are complete, and with NULL for those that the program
 * has released. */
static cl_int wait_for_rest(cl_uint count, const cl_event *list)
{
	cl_event few[64], *rest = count > ARRAY_LEN(few) ? malloc(count * sizeof(cl_event)) : few;
	struct ocl_kept *kept = calloc(count, sizeof(*kept));
	cl_uint n = 0;
	cl_int status;

	if (!rest || !kept) {
		free(kept);
		return CL_OUT_OF_HOST_MEMORY;
	}
	ocl_lock();
	for (cl_uint i = 0; i < count; i++) {
		struct event *ev = ocl_find(list[i], OCL_EVENT);
		if (ev && !ocl_event_is_old(ev))
			rest[n++] = ocl_real_kept(list[i], OCL_EVENT, &kept[i]);
		else if (!ev)
			rest[n++] = ocl_checked(list[i], OCL_EVENT);
	}
	ocl_unlock();
	status = n == 0 ? CL_SUCCESS : NEXT->clWaitForEvents(n, rest);
	for (cl_uint i = 0; i < count; i++)
		ocl_let(&kept[i]);
	free(kept);
	if (rest != few)
		free(rest);
	return status;
}

/* Whether the wait failed because of a lost device, and is to be repeated elsewhere. */
static cl_int after_failure(cl_uint count, const cl_event *list, cl_int status, uint32_t moves)
{
	struct event *ev;

	ocl_lock();
	for (cl_uint i = 0; list && i < count && list[i] && status != CL_SUCCESS; i++) {
		ev = ocl_find(list[i], OCL_EVENT);
		if (ev)
			status = ocl_epoch_failed(OBJ(ev)->domain, ev->queue, status, moves);
	}
	ocl_unlock();
	return status;
}

static cl_int wait_in_runtime(cl_uint count, const cl_event *list)
{
	for (;;) {
		uint32_t moves = ocl.moves;
		cl_int status = (moves || ocl.dead) && list && count > 0
				    ? wait_for_rest(count, list)
				    : NEXT->clWaitForEvents(count, list);

		if (status == CL_SUCCESS)
			return status;
		status = after_failure(count, list, status, moves);
		if (status != CL_SUCCESS)
			return status;
	}
}

cl_int CL_API_CALL layer_clWaitForEvents(cl_uint count, const cl_event *list)
{
	cl_int status;

	if (ocl.passive)
		return NEXT->clWaitForEvents(count, list);
	status = wait_in_runtime(count, list);
	if (status != CL_SUCCESS)
		return status;
	ocl_lock();
	for (cl_uint i = 0; status == CL_SUCCESS && i < count; i++)
		status = sync_with(list[i]);
	ocl_unlock();
	ocl_svm_free_settle();
	return status;
}

/* After moves the program still sees its own objects (info.c). */
static void show_own_handles(const struct event *ev, cl_event_info name, void *value, size_t size)
{
	if (!ocl.moves || !ev || size < sizeof(void *))
		return;
	if (name == CL_EVENT_CONTEXT)
		*(void **)value = OBJ(OBJ(ev)->domain)->handle;
	else if (name == CL_EVENT_COMMAND_QUEUE && ev->queue)
		*(void **)value = OBJ(ev->queue)->handle;
}

/* What was under way on a device that is lost has been repeated elsewhere. */
static cl_int correct_status(struct event *ev, cl_int *value, cl_int status, uint32_t moves)
{
	if (!ocl_event_is_old(ev) && (status != CL_SUCCESS || *value < 0))
		ocl_epoch_failed(OBJ(ev)->domain, ev->queue,
				 CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, moves);
	if (!ocl_event_is_old(ev))
		return status;
	*value = CL_COMPLETE;
	return CL_SUCCESS;
}

/* The runtime of today knows nothing of old ones. */
static cl_int ask_event(cl_event e, cl_event_info name, size_t size, void *value, size_t *size_ret)
{
	bool status_of = name == CL_EVENT_COMMAND_EXECUTION_STATUS;
	struct ocl_kept kept = {0};
	cl_event real = status_of ? ocl_real_kept(e, OCL_EVENT, &kept) : ocl_checked(e, OCL_EVENT);
	cl_int status = NEXT->clGetEventInfo(real, name, size, value, size_ret);
	struct event *ev;

	ocl_let(&kept);
	if (LIKELY(status == CL_SUCCESS) || !ocl.moves || !status_of ||
	    (value && size < sizeof(cl_int)))
		return status;
	ocl_lock();
	ev = ocl_find(e, OCL_EVENT);
	if (ev && ocl_event_was_complete(ev)) {
		status = CL_SUCCESS;
		if (value)
			*(cl_int *)value = CL_COMPLETE;
		if (size_ret)
			*size_ret = sizeof(cl_int);
	}
	ocl_unlock();
	return status;
}

/* The same of one whose device is lost: where it lives now. */
static cl_int ask_again(cl_event e, cl_event_info name, size_t size, void *value, size_t *size_ret)
{
	uint32_t moves;
	cl_int status;

	do {
		moves = ocl.moves;
		status = ask_event(e, name, size, value, size_ret);
	} while (name == CL_EVENT_COMMAND_EXECUTION_STATUS && value && size >= sizeof(cl_int) &&
		 ocl_again(e, OCL_EVENT, status, moves));
	return status;
}

cl_int CL_API_CALL layer_clGetEventInfo(cl_event e, cl_event_info name, size_t size, void *value,
					size_t *size_ret)
{
	uint32_t moves = ocl.moves;
	cl_int status = ask_again(e, name, size, value, size_ret);
	struct event *ev;

	if ((status != CL_SUCCESS && status != CL_DEVICE_NOT_AVAILABLE) || !value || ocl.passive)
		return status;
	ocl_lock();
	ev = ocl_find(e, OCL_EVENT);
	if (ev && ev->queue && name == CL_EVENT_COMMAND_EXECUTION_STATUS && size >= sizeof(cl_int))
		status = correct_status(ev, value, status, moves);
	if (ev && name == CL_EVENT_REFERENCE_COUNT && ev->ours_too)
		*(cl_uint *)value -= 1;
	if (ev && status == CL_SUCCESS && name == CL_EVENT_COMMAND_EXECUTION_STATUS &&
	    size >= sizeof(cl_int) && *(cl_int *)value >= 0 && *(cl_int *)value <= CL_RUNNING)
		status = *(cl_int *)value == CL_COMPLETE ? sync_with(e) : ocl_event_runs(ev);
	show_own_handles(ev, name, value, size);
	ocl_unlock();
	return status;
}

cl_int CL_API_CALL layer_clSetEventCallback(cl_event e, cl_int type,
					    void(CL_CALLBACK *fn)(cl_event, cl_int, void *),
					    void *data)
{
	if (ocl.passive || !fn || type < CL_COMPLETE || type > CL_SUBMITTED ||
	    ocl_checked(e, OCL_EVENT) != e)
		return NEXT->clSetEventCallback(ocl_checked(e, OCL_EVENT), type, fn, data);
	return ocl_callback_set(e, type, fn, data);
}

enum { TIMES = CL_PROFILING_COMMAND_COMPLETE - CL_PROFILING_COMMAND_QUEUED + 1 };

static bool is_time(cl_profiling_info name)
{
	return name >= CL_PROFILING_COMMAND_QUEUED && name <= CL_PROFILING_COMMAND_COMPLETE;
}

static void note_time(struct event *ev, cl_profiling_info name, cl_ulong value)
{
	if (!ev->told)
		ev->told = calloc(TIMES, sizeof(*ev->told));
	if (ev->told)
		ev->told[name - CL_PROFILING_COMMAND_QUEUED] = value;
}

/* Between what the program knows of what comes before and behind: the lost device's clock may have
 * been another one. */
static cl_ulong fit_time(const struct event *ev, cl_profiling_info name, cl_ulong value)
{
	const cl_ulong *told = ev->told;
	int k = (int)(name - CL_PROFILING_COMMAND_QUEUED);

	if (!told || told[k])
		return told ? told[k] : value;
	for (int i = 0; i < k; i++)
		if (told[i] >= value)
			value = told[i] + 1;
	for (int i = TIMES - 1; i > k; i--)
		if (told[i] && told[i] <= value)
			value = told[i] - 1;
	return value;
}

/* Of a command from before a loss: those of the repeating of all that there was to repeat. */
static cl_int times_of_old(struct event *ev, cl_profiling_info name, size_t size, void *value,
			   size_t *size_ret)
{
	const struct domain *d = OBJ(ev)->domain;
	bool end = name == CL_PROFILING_COMMAND_END || name == CL_PROFILING_COMMAND_COMPLETE;

	cl_ulong time = (cl_ulong)((end ? d->repeated_to : d->repeated_from) * 1e9);

	if (!is_time(name) || (value && size < sizeof(cl_ulong)))
		return CL_INVALID_VALUE;
	if (!(ev->queue->properties & CL_QUEUE_PROFILING_ENABLE))
		return CL_PROFILING_INFO_NOT_AVAILABLE;
	time = fit_time(ev, name, time);
	if (value) {
		*(cl_ulong *)value = time;
		note_time(ev, name, time);
	}
	if (size_ret)
		*size_ret = sizeof(cl_ulong);
	return CL_SUCCESS;
}

cl_int CL_API_CALL layer_clGetEventProfilingInfo(cl_event e, cl_profiling_info name, size_t size,
						 void *value, size_t *size_ret)
{
	struct ocl_kept kept;
	uint32_t moves;
	cl_int status;
	struct event *ev;

	do {
		moves = ocl.moves;
		status = NEXT->clGetEventProfilingInfo(ocl_real_kept(e, OCL_EVENT, &kept), name,
						       size, value, size_ret);
		ocl_let(&kept);
	} while (ocl_again(e, OCL_EVENT, status, moves));
	/* who has the times of a command knows that it has run */
	if (ocl.passive)
		return status;
	ocl_lock();
	ev = ocl_find(e, OCL_EVENT);
	if (ev && status == CL_SUCCESS && value && is_time(name))
		note_time(ev, name, *(cl_ulong *)value);
	if (ev && status != CL_SUCCESS)
		status =
		    ocl_event_is_old(ev) ? times_of_old(ev, name, size, value, size_ret) : status;
	else if (ev && name != CL_PROFILING_COMMAND_QUEUED && name != CL_PROFILING_COMMAND_SUBMIT)
		status = name == CL_PROFILING_COMMAND_START ? ocl_event_runs(ev) : sync_with(e);
	ocl_unlock();
	return status;
}
