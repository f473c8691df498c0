/* SPDX-License-Identifier: BSD-3-Clause */
/* Callbacks for complete commands. A program may use the data in one, so it is checked first; and
 * since that may take a recovery, which a thread of the runtime must not do, callbacks are called
 * by a thread of ours, in the order in which they came. */
#include <signal.h>
#include <stdlib.h>
#include "base/base.h"
#include "ocl/ocl.h"

struct call {
	struct call *next;
	void(CL_CALLBACK *fn)(cl_event, cl_int, void *);
	void *data;
	cl_event event;
	struct event *shadow; /* held: the program may have released its event; NULL: none */
	cl_int status;
	uint32_t moves; /* when it was asked for */
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER;
static struct call *first, **last = &first;
static int thread_of; /* the process that has the thread */

static cl_int check_before(const struct call *c)
{
	cl_int status = c->status;
	struct event *ev = c->shadow;

	if (!ev)
		return status;
	ocl_lock();
	if (ev->queue && !ev->seen) {
		if (status < 0 && !ocl_event_is_old(ev))
			ocl_epoch_failed(OBJ(ev)->domain, ev->queue,
					 CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, c->moves);
		if (ocl_event_is_old(ev))
			status = CL_COMPLETE;
		if (status == CL_COMPLETE)
			ocl_epoch_sync(OBJ(ev)->domain, ev->queue, false);
	}
	ocl_drop(OBJ(ev));
	ocl_unlock();
	return status;
}

static void *call_them(void *arg)
{
	for (;;) {
		struct call *c;

		ocl_svm_free_due();
		pthread_mutex_lock(&mutex);
		while (!first && !ocl_svm_free_is_due())
			pthread_cond_wait(&more, &mutex);
		c = first;
		if (!c) {
			pthread_mutex_unlock(&mutex);
			continue;
		}
		first = c->next;
		if (!first)
			last = &first;
		pthread_mutex_unlock(&mutex);
		c->fn(c->event, check_before(c), c->data);
		NEXT->clReleaseEvent(c->event);
		free(c);
	}
	return arg;
}

static void start_thread(void)
{
	sigset_t all, old;
	pthread_t t;

	if (thread_of == ocl.pid)
		return;
	thread_of = ocl.pid;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	if (pthread_create(&t, NULL, call_them, NULL) == 0)
		pthread_detach(t);
	else
		log_warn("opencl: no thread for callbacks");
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

void ocl_callback_wake(void)
{
	pthread_mutex_lock(&mutex);
	start_thread();
	pthread_cond_signal(&more);
	pthread_mutex_unlock(&mutex);
}

static void CL_CALLBACK arrived(cl_event e, cl_int status, void *data)
{
	struct call *c = data;

	c->status = status;
	pthread_mutex_lock(&mutex);
	*last = c;
	last = &c->next;
	pthread_cond_signal(&more);
	pthread_mutex_unlock(&mutex);
}

/* The device is lost, and the command has been repeated on another one. */
static bool is_repeated(const struct call *c, cl_int status)
{
	struct event *ev = c->shadow;
	bool good;

	if (!ev || !ev->queue || status != CL_DEVICE_NOT_AVAILABLE)
		return false;
	ocl_lock();
	good = ocl_epoch_failed(OBJ(ev)->domain, ev->queue, status, c->moves) == CL_SUCCESS &&
	       ocl_event_is_old(ev);
	ocl_unlock();
	return good;
}

cl_int ocl_callback_set(cl_event event, cl_int type,
			void(CL_CALLBACK *fn)(cl_event, cl_int, void *), void *data)
{
	struct call *c = calloc(1, sizeof(*c));
	cl_event real = event;
	cl_int status;

	if (!c)
		return CL_OUT_OF_HOST_MEMORY;
	*c = (struct call){.fn = fn, .data = data, .event = event, .moves = ocl.moves};
	pthread_mutex_lock(&mutex);
	start_thread();
	pthread_mutex_unlock(&mutex);
	ocl_lock();
	c->shadow = ocl_find(event, OCL_EVENT);
	if (c->shadow) {
		ocl_hold(OBJ(c->shadow));
		real = OBJ(c->shadow)->real;
	}
	ocl_unlock();
	/* the callback may come when the program has released the event */
	status = NEXT->clRetainEvent(event);
	if (status == CL_SUCCESS) {
		status = NEXT->clSetEventCallback(real, type, arrived, c);
		if (status != CL_SUCCESS && is_repeated(c, status)) {
			arrived(event, CL_COMPLETE, c);
			return CL_SUCCESS;
		}
		if (status != CL_SUCCESS)
			NEXT->clReleaseEvent(event);
	}
	if (status != CL_SUCCESS) {
		ocl_lock();
		if (c->shadow)
			ocl_drop(OBJ(c->shadow));
		ocl_unlock();
		free(c);
	}
	return status;
}
