/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared virtual memory that a command frees. The runtime never frees it itself: the log may still
 * need the memory, and checkpoints read what has a shadow. It calls `due` when the command runs, in
 * a thread of its own that must not wait for the lock, since who has the lock may wait for the
 * command; whoever waits next, or the thread that calls callbacks, frees it then, as clSVMFree. */
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "ocl/calls.h"
#include "ocl/entry/entry.h"
#include "ocl/epoch/epoch.h"
#include "ocl/log/log.h"

typedef void(CL_CALLBACK *free_fn)(cl_command_queue, cl_uint, void *[], void *);

struct svm_free_pending {
	_Atomic uint32_t refs; /* one for each that may be due */
	struct due *_Atomic newest;
	cl_command_queue queue; /* the program's handle */
	free_fn fn;		/* the program's; NULL: none */
	void *data;
	cl_uint count;
	void *at[];
};

/* One for each time that it is given to a runtime: one that a context has left behind, with its
 * server, says nothing. */
struct due {
	struct due *next;
	struct svm_free_pending *of;
	cl_command_queue real; /* retained: keeps the context */
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t done = PTHREAD_COND_INITIALIZER;
/* In the order in which the commands ran. */
static struct due *first, **last = &first;
static _Atomic unsigned left; /* due, and not yet freed */
/* This thread is at it: what it calls must not wait for it. One byte where every thread has it from
 * the beginning: LeakSanitizer crashes in what a loaded library's threads get later. */
static __thread __attribute__((tls_model("initial-exec"))) bool freeing;

static void CL_CALLBACK due(cl_command_queue real, cl_uint count, void *at[], void *data)
{
	struct due *u = data;

	NEXT->clRetainCommandQueue(real);
	u->real = real;
	pthread_mutex_lock(&mutex);
	*last = u;
	last = &u->next;
	atomic_fetch_add(&left, 1);
	pthread_mutex_unlock(&mutex);
	ocl_callback_wake();
}

bool ocl_svm_free_is_due(void)
{
	bool is;

	pthread_mutex_lock(&mutex);
	is = first != NULL;
	pthread_mutex_unlock(&mutex);
	return is;
}

static struct due *take(void)
{
	struct due *u;

	pthread_mutex_lock(&mutex);
	u = first;
	if (u)
		first = u->next;
	if (!first)
		last = &first;
	pthread_mutex_unlock(&mutex);
	return u;
}

static void drop(struct svm_free_pending *p)
{
	if (atomic_fetch_sub(&p->refs, 1) == 1)
		free(p);
}

/* Its server has ended before the program let it run: it will be enqueued anew. */
static bool still_waits(const struct svm_free_pending *p)
{
	bool waits = false;

	ocl_lock();
	for (const struct domain *d = ocl.domains; d; d = d->next_domain)
		for (const struct ocl_entry *e = ocl_domain_gated(d) ? d->first : NULL; e;
		     e = e->next)
			waits |= e->op == OP_SVM_FREE && e->host == p && e->gates & d->gates_unset;
	ocl_unlock();
	return waits;
}

/* The program's function tells it that what came before is complete. */
static void tell_that_it_runs(const struct svm_free_pending *p)
{
	struct queue *q;

	ocl_lock();
	q = ocl_find(p->queue, OCL_QUEUE);
	if (q)
		ocl_epoch_sync(OBJ(q)->domain, q, false);
	ocl_unlock();
}

static void free_all(struct due *u)
{
	struct svm_free_pending *p = u->of;
	bool counts = !still_waits(p) && atomic_load(&p->newest) == u;
	cl_context context = NULL;

	NEXT->clGetCommandQueueInfo(u->real, CL_QUEUE_CONTEXT, sizeof(cl_context), &context, NULL);
	if (counts && p->fn)
		tell_that_it_runs(p);
	if (counts && p->fn)
		p->fn(p->queue, p->count, p->at, p->data);
	for (cl_uint i = 0; counts && !p->fn && i < p->count; i++)
		layer_clSVMFree(context, p->at[i]);
	NEXT->clReleaseCommandQueue(u->real);
	drop(p);
	free(u);
}

void ocl_svm_free_due(void)
{
	struct due *u;

	if (LIKELY(!atomic_load_explicit(&left, memory_order_acquire)) || freeing)
		return;
	freeing = true;
	while ((u = take())) {
		free_all(u);
		pthread_mutex_lock(&mutex);
		atomic_fetch_sub(&left, 1);
		pthread_cond_broadcast(&done);
		pthread_mutex_unlock(&mutex);
	}
	freeing = false;
}

/* A program without us has its memory freed, and its function called, before the command counts as
 * complete. */
void ocl_svm_free_settle(void)
{
	if (LIKELY(!atomic_load_explicit(&left, memory_order_acquire)) || freeing)
		return;
	ocl_svm_free_due();
	pthread_mutex_lock(&mutex);
	while (atomic_load(&left) > 0 && !first)
		pthread_cond_wait(&done, &mutex);
	pthread_mutex_unlock(&mutex);
}

cl_int ocl_svm_free_issue(const struct ocl_entry *e, cl_command_queue q, cl_uint n,
			  const cl_event *w, cl_event *event)
{
	struct svm_free_pending *p = e->host;
	struct due *u = malloc(sizeof(*u)), *before = atomic_load(&p->newest);
	cl_int status;

	if (!u)
		return CL_OUT_OF_HOST_MEMORY;
	*u = (struct due){.of = p};
	atomic_fetch_add(&p->refs, 1);
	atomic_store(&p->newest, u);
	status = NEXT->clEnqueueSVMFree(q, p->count, p->at, due, u, n, w, event);
	if (status == CL_SUCCESS)
		return status;
	atomic_store(&p->newest, before);
	drop(p);
	free(u);
	return status;
}

cl_int CL_API_CALL layer_clEnqueueSVMFree(cl_command_queue q, cl_uint count, void *pointers[],
					  free_fn fn, void *data, cl_uint waits,
					  const cl_event *wait, cl_event *event)
{
	struct svm_free_pending *p = NULL;
	struct ocl_entry *e;
	cl_int status;

	if (!pointers || count == 0 || ocl.passive ||
	    !ocl_are_svm(count, (const void *const *)pointers))
		return NEXT->clEnqueueSVMFree(ocl_real(q, OCL_QUEUE), count, pointers, fn, data,
					      waits, wait, event);
	e = ocl_entry_new(OP_SVM_FREE);
	if (e)
		p = malloc(sizeof(*p) + count * sizeof(void *));
	if (!p) {
		ocl_entry_discard(e);
		return CL_OUT_OF_HOST_MEMORY;
	}
	*p = (struct svm_free_pending){
	    .refs = 1, .queue = q, .fn = fn, .data = data, .count = count};
	memcpy(p->at, pointers, count * sizeof(void *));
	e->host = p;
	status = ocl_submit(e, q, false, waits, wait, event, NULL);
	drop(p);
	return status;
}
