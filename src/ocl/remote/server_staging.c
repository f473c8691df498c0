/* SPDX-License-Identifier: BSD-3-Clause */
/* Pinned memory through which large transfers go piece by piece: while one piece travels to or from
 * the device, the next one is copied from or to the program's memory. From other memory the driver
 * copies through pinned memory of its own, once more; and memory fresh from the kernel costs a page
 * fault for every 4 KiB. One stage per context. */
#include <stdlib.h>
#include "base/base.h"
#include "ocl/remote/server.h"

enum { PIECES = 16 };

struct stage {
	struct stage *next;
	cl_context context;	/* NULL: released, and so is this once all pieces have come back */
	bool making;		/* by a thread that does not have the lock */
	cl_command_queue queue; /* for the mapping alone: the program's may wait for the program */
	cl_mem buffer;
	char *at; /* NULL: the runtime has no such memory */
	uint32_t busy;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t made = PTHREAD_COND_INITIALIZER;
static struct stage *stages;

static void stage_free(struct stage *s)
{
	if (s->at) {
		clEnqueueUnmapMemObject(s->queue, s->buffer, s->at, 0, NULL, NULL);
		clFinish(s->queue);
	}
	if (s->buffer)
		clReleaseMemObject(s->buffer);
	if (s->queue)
		clReleaseCommandQueue(s->queue);
	free(s);
}

/* Without the lock: it waits for the runtime, whose threads need the lock when they call us. */
static char *stage_map(struct stage *s, cl_context context, cl_command_queue q)
{
	size_t size = (size_t)PIECES * STAGE_PIECE;
	cl_device_id device;
	cl_int status;
	char *at;

	if (clGetCommandQueueInfo(q, CL_QUEUE_DEVICE, sizeof(device), &device, NULL) == CL_SUCCESS)
		s->queue = clCreateCommandQueue(context, device, 0, NULL);
	if (s->queue)
		s->buffer = clCreateBuffer(context, CL_MEM_ALLOC_HOST_PTR, size, NULL, NULL);
	if (!s->buffer)
		return NULL;
	at = clEnqueueMapBuffer(s->queue, s->buffer, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0, size,
				0, NULL, NULL, &status);
	return status == CL_SUCCESS ? at : NULL;
}

/* With the lock, as it returns. */
static struct stage *stage_new(cl_context context, cl_command_queue q)
{
	struct stage *s = calloc(1, sizeof(*s));
	char *at;

	if (!s)
		return NULL;
	s->context = context;
	s->making = true;
	s->next = stages;
	stages = s;
	pthread_mutex_unlock(&lock);
	at = stage_map(s, context, q);
	pthread_mutex_lock(&lock);
	s->at = at;
	s->making = false;
	pthread_cond_broadcast(&made);
	return s;
}

static struct stage *stage_of(cl_context context)
{
	struct stage *s = stages;

	while (s && s->context != context)
		s = s->next;
	return s;
}

/* Those of contexts that have gone, once all pieces have come back. */
static struct stage *take_left(void)
{
	struct stage *left = NULL;

	for (struct stage **at = &stages, *s; (s = *at);) {
		if (s->context || s->busy) {
			at = &s->next;
			continue;
		}
		*at = s->next;
		s->next = left;
		left = s;
	}
	return left;
}

static void stages_free(struct stage *s)
{
	for (struct stage *next; s; s = next) {
		next = s->next;
		stage_free(s);
	}
}

char *stage_take(cl_command_queue q)
{
	cl_context context;
	struct stage *s, *left;
	char *piece = NULL;

	if (clGetCommandQueueInfo(q, CL_QUEUE_CONTEXT, sizeof(cl_context), &context, NULL) !=
	    CL_SUCCESS)
		return NULL;
	pthread_mutex_lock(&lock);
	while ((s = stage_of(context)) && s->making)
		pthread_cond_wait(&made, &lock);
	if (!s)
		s = stage_new(context, q);
	for (unsigned i = 0; s && s->at && !piece && i < PIECES; i++) {
		if (s->busy & 1u << i)
			continue;
		s->busy |= 1u << i;
		piece = s->at + (size_t)i * STAGE_PIECE;
	}
	left = take_left();
	pthread_mutex_unlock(&lock);
	stages_free(left);
	return piece;
}

static struct stage *stage_with(const char *data)
{
	struct stage *s = stages;

	while (s && (!s->at || data < s->at || data >= s->at + (size_t)PIECES * STAGE_PIECE))
		s = s->next;
	return s;
}

bool stage_has(const char *data)
{
	bool yes;

	pthread_mutex_lock(&lock);
	yes = stage_with(data) != NULL;
	pthread_mutex_unlock(&lock);
	return yes;
}

/* Also by threads of the runtime, which must not wait for it. */
bool stage_give(char *data)
{
	struct stage *s;

	pthread_mutex_lock(&lock);
	s = stage_with(data);
	if (s)
		s->busy &= ~(1u << (size_t)(data - s->at) / STAGE_PIECE);
	pthread_mutex_unlock(&lock);
	return s != NULL;
}

void stage_drop(cl_context context)
{
	struct stage *s, *left;

	pthread_mutex_lock(&lock);
	s = stage_of(context);
	if (s)
		s->context = NULL;
	left = take_left();
	pthread_mutex_unlock(&lock);
	stages_free(left);
}
