/* SPDX-License-Identifier: BSD-3-Clause */
/* Waiting for queues and events, and what the program wants to be called at. */
#include <stdlib.h>
#include <unistd.h>
#include "base/base.h"
#include "ocl/remote/server_transfers.h"

/* ---- waiting ---- */

struct server_wait_job {
	struct server_wait_job *next;
	struct out out;
	cl_command_queue queue;
	cl_uint count;
	cl_event list[];
};

static pthread_mutex_t jobs_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t jobs_more = PTHREAD_COND_INITIALIZER;
static struct server_wait_job *jobs;
static int idle; /* threads without a job, of those that no job waits for */

/* Reads through pinned memory are ended piece by piece: while some are put into the program's
 * memory the next ones arrive. */
struct coming {
	cl_command_queue queue;
	cl_event last;
};

static void take_in(void *arg)
{
	const struct coming *c = arg;

	while (underway_end_first(true, c->queue, c->last))
		;
}

static cl_int wait_here(cl_command_queue queue, cl_uint count, const cl_event *list)
{
	struct coming c = {.queue = count == 0	 ? queue
				    : count == 1 ? underway_queue(list[0])
						 : NULL,
			   .last = count == 0 ? NULL : list[0]};
	cl_int status;
	int32_t late;

	if (c.queue && underway_end_first(true, c.queue, c.last))
		crew_run(take_in, &c);
	status = count > 0 ? clWaitForEvents(count, list) : clFinish(queue);
	late = atomic_exchange(&wire->deferred, 0);
	deliver();
	return status == CL_SUCCESS ? late : status;
}

static void *worker(void *arg)
{
	struct server_wait_job *j = arg;

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

static bool hand_over(struct server_wait_job *j)
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

bool may_wait_here(void)
{
	return !atomic_load(&wire->several) && unset_events == 0;
}

cl_int wait_and_reply(cl_command_queue queue, cl_uint count, const cl_event *list, struct out *out)
{
	struct server_wait_job *j;

	if (may_wait_here())
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

/* ---- callbacks ---- */

/* Asked for, and not called yet. */
struct server_wait_wanted {
	struct server_wait_wanted *next, **at;
	cl_event event;
	cl_int type;
	void *cookie; /* the program's */
};

static pthread_mutex_t wanted_lock = PTHREAD_MUTEX_INITIALIZER;
static struct server_wait_wanted *wanted;

static void unlink_wanted(struct server_wait_wanted *w)
{
	pthread_mutex_lock(&wanted_lock);
	*w->at = w->next;
	if (w->next)
		w->next->at = w->at;
	pthread_mutex_unlock(&wanted_lock);
	clReleaseEvent(w->event);
	free(w);
}

/* Those that will be called. failed: also those of commands that have failed; PoCL 3.1 tells nobody
 * of these. */
static bool are_coming(bool failed)
{
	bool some = false;

	pthread_mutex_lock(&wanted_lock);
	for (struct server_wait_wanted *w = wanted; w && !some; w = w->next) {
		cl_int status = CL_QUEUED;

		clGetEventInfo(w->event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status,
			       NULL);
		some = status < 0 ? failed : status <= w->type;
	}
	pthread_mutex_unlock(&wanted_lock);
	return some;
}

void finish_all(void)
{
	static const double failed_patience = 0.1, patience = 5; /* seconds */
	double start = clock_seconds(), waited = 0;

	for (uint32_t i = 0; i < obj_count(); i++) {
		cl_command_queue q = real_of(i, STUB_QUEUE);
		if (q)
			clFinish(q);
	}
	deliver();
	while (waited < patience && are_coming(waited < failed_patience)) {
		usleep(200); /* of what has been waited for */
		waited = clock_seconds() - start;
	}
}

static void CL_CALLBACK called(cl_event e, cl_int status, void *data)
{
	struct server_wait_wanted *w = data;
	uint64_t cookie = (uint64_t)(uintptr_t)w->cookie;

	if (status <= CL_RUNNING)
		deliver();
	if (net_is_used())
		net_call_back(cookie, status);
	else
		ring_call_back(cookie, status);
	unlink_wanted(w);
}

cl_int serve_callback(struct in *in)
{
	struct server_wait_wanted *w = calloc(1, sizeof(*w));
	cl_int status;

	if (!w)
		return CL_OUT_OF_HOST_MEMORY;
	w->event = real_of(next(in), STUB_EVENT);
	w->type = (cl_int)(int64_t)next(in);
	w->cookie = (void *)(uintptr_t)next(in);
	status = clRetainEvent(w->event);
	if (status != CL_SUCCESS) {
		free(w);
		return status;
	}
	pthread_mutex_lock(&wanted_lock);
	w->next = wanted;
	w->at = &wanted;
	if (w->next)
		w->next->at = &w->next;
	wanted = w;
	pthread_mutex_unlock(&wanted_lock);
	status = clSetEventCallback(w->event, w->type, called, w);
	if (status != CL_SUCCESS)
		unlink_wanted(w);
	return status;
}
