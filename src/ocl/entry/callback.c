/* SPDX-License-Identifier: BSD-3-Clause */
/* Callbacks for complete commands. A program may use the data in one, so it is checked first; and
 * since that may take a recovery, which a thread of the runtime must not do, callbacks are called
 * by a thread of ours, in the order in which they came. */
#include <signal.h>
#include <stdlib.h>
#include "base/base.h"
#include "ocl/entry/entry.h"
#include "ocl/epoch/epoch.h"
#include "ocl/ocl.h"

struct callback_call {
	struct callback_call *next;
	void(CL_CALLBACK *fn)(cl_event, cl_int, void *);
	void *data;
	cl_event event, real;
	cl_int type;
	struct event *shadow; /* held: the program may have released its event; NULL: none */
	cl_int status;
	uint32_t moves;				 /* when it was asked for */
	struct callback_call *waits, **waits_at; /* the list of those that haven't come */
	bool replaced;				 /* another one is called in its place */
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER;
static struct callback_call *first, **last = &first;
static struct callback_call *waiting;
static int thread_of; /* the process that has the thread */

static cl_int ask_for(struct callback_call *c);

/* The command waits for the program still, or the program has not set it yet, but elsewhere. */
static bool is_requeued(struct callback_call *c, struct event *ev, cl_int status)
{
	if (status >= CL_COMPLETE || ev->error || ocl_event_is_old(ev) || c->real == OBJ(ev)->real)
		return false;
	c->real = OBJ(ev)->real;
	c->moves = ocl.moves;
	return ask_for(c) == CL_SUCCESS;
}

/* False: c will come again, or another one in its place. */
static bool check_before(struct callback_call *c)
{
	struct event *ev = c->shadow;

	if (!ev)
		return true;
	ocl_lock();
	if (c->status < 0 && (!ev->error || ev->guessed) && !ev->seen && !ocl_event_is_old(ev))
		ocl_epoch_failed(OBJ(ev)->domain, ev->queue,
				 CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, c->moves);
	if (c->replaced) {
		ocl_drop(OBJ(ev));
		ocl_unlock();
		NEXT->clReleaseEvent(c->event);
		free(c);
		return false;
	}
	if (c->status < 0 && ev->seen && !ev->error) /* the program knows better */
		c->status = c->type;
	if (is_requeued(c, ev, c->status)) {
		ocl_unlock();
		return false;
	}
	if (ev->queue && !ev->seen) {
		if (ocl_event_is_old(ev))
			c->status = c->type;
		if (c->status == CL_RUNNING)
			ocl_event_runs(ev);
		if (c->status == CL_COMPLETE) {
			ocl_epoch_came(OBJ(ev)->domain, ev->number);
			ocl_epoch_sync(OBJ(ev)->domain, ev->queue, false);
		}
	}
	if (c->status == CL_DEVICE_NOT_AVAILABLE && ev->error)
		c->status = ev->error;
	ocl_drop(OBJ(ev));
	ocl_unlock();
	return true;
}

static void *call_them(void *arg)
{
	for (;;) {
		struct callback_call *c;

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
		if (!check_before(c))
			continue;
		c->fn(c->event, c->status, c->data);
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

static void unlink_waiting(struct callback_call *c)
{
	if (!c->waits_at)
		return;
	*c->waits_at = c->waits;
	if (c->waits)
		c->waits->waits_at = c->waits_at;
	c->waits_at = NULL;
}

static void CL_CALLBACK arrived(cl_event e, cl_int status, void *data)
{
	struct callback_call *c = data;

	c->status = status;
	c->next = NULL; /* it may come for the second time */
	pthread_mutex_lock(&mutex);
	unlink_waiting(c);
	*last = c;
	last = &c->next;
	pthread_cond_signal(&more);
	pthread_mutex_unlock(&mutex);
}

/* Asks the runtime to call c. */
static cl_int ask_for(struct callback_call *c)
{
	cl_int status;

	pthread_mutex_lock(&mutex);
	c->waits = waiting;
	c->waits_at = &waiting;
	if (waiting)
		waiting->waits_at = &c->waits;
	waiting = c;
	pthread_mutex_unlock(&mutex);
	status = NEXT->clSetEventCallback(c->real, c->type, arrived, c);
	if (status != CL_SUCCESS) {
		pthread_mutex_lock(&mutex);
		unlink_waiting(c);
		pthread_mutex_unlock(&mutex);
	}
	return status;
}

static struct callback_call *next_of(const struct event *ev)
{
	struct callback_call *c, *copy = NULL;

	pthread_mutex_lock(&mutex);
	for (c = waiting; c && (c->shadow != ev || c->replaced || c->real == OBJ(ev)->real);)
		c = c->waits;
	if (c && (copy = malloc(sizeof(*copy)))) {
		*copy = *c;
		c->replaced = true;
	}
	pthread_mutex_unlock(&mutex);
	return copy;
}

void ocl_callbacks_move(struct event *ev)
{
	struct callback_call *c;

	while ((c = next_of(ev))) {
		ocl_hold(OBJ(ev));
		NEXT->clRetainEvent(c->event);
		c->real = OBJ(ev)->real;
		c->moves = ocl.moves;
		if (ask_for(c) != CL_SUCCESS)
			arrived(c->event, CL_OUT_OF_RESOURCES, c);
	}
}

/* What a failure to ask means where the device is lost: the command has been repeated on another
 * one, or waits there, so that it can be asked for again. */
typedef enum loss { NOT_LOST, REPEATED, WAITS_ELSEWHERE } loss_t;

static loss_t after_loss(struct callback_call *c, cl_int status)
{
	struct event *ev = c->shadow;
	loss_t loss = NOT_LOST;

	if (!ev || status != CL_DEVICE_NOT_AVAILABLE)
		return NOT_LOST;
	if (ocl_epoch_failed(OBJ(ev)->domain, ev->queue, status, c->moves) == CL_SUCCESS) {
		if (ocl_event_is_old(ev))
			loss = REPEATED;
		else if (c->real != OBJ(ev)->real)
			loss = WAITS_ELSEWHERE;
		c->real = OBJ(ev)->real;
		c->moves = ocl.moves;
	}
	return loss;
}

cl_int ocl_callback_set(cl_event event, cl_int type,
			void(CL_CALLBACK *fn)(cl_event, cl_int, void *), void *data)
{
	MADE_LOCKED; /* what the event stands for by now is asked for it */
	struct callback_call *c = calloc(1, sizeof(*c));
	loss_t loss;
	cl_int status;

	if (!c)
		return CL_OUT_OF_HOST_MEMORY;
	*c = (struct callback_call){.fn = fn,
				    .data = data,
				    .event = event,
				    .real = event,
				    .type = type,
				    .moves = ocl.moves};
	pthread_mutex_lock(&mutex);
	start_thread();
	pthread_mutex_unlock(&mutex);
	c->shadow = ocl_find(event, OCL_EVENT);
	if (c->shadow) {
		ocl_hold(OBJ(c->shadow));
		c->real = OBJ(c->shadow)->real;
	}
	/* the callback may come when the program has released the event */
	status = NEXT->clRetainEvent(event);
	if (status == CL_SUCCESS) {
		do {
			loss = REPEATED;
			if (c->shadow && ocl_event_was_complete(c->shadow))
				break; /* the runtime of today has never heard of it */
			status = ask_for(c);
			loss = status == CL_SUCCESS ? NOT_LOST : after_loss(c, status);
		} while (loss == WAITS_ELSEWHERE);
		if (loss == REPEATED) {
			arrived(event, type, c);
			return CL_SUCCESS;
		}
		if (status != CL_SUCCESS)
			NEXT->clReleaseEvent(event);
	}
	if (status != CL_SUCCESS) {
		if (c->shadow)
			ocl_drop(OBJ(c->shadow));
		free(c);
	}
	return status;
}
