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
	cl_context context;	/* NULL: released, and so is this when the last piece comes back */
	cl_command_queue queue; /* for the mapping alone: the program's may wait for the program */
	cl_mem buffer;
	char *at; /* NULL: the runtime has no such memory */
	uint32_t busy;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
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

static struct stage *stage_new(cl_context context, cl_command_queue q)
{
	struct stage *s = calloc(1, sizeof(*s));
	size_t size = (size_t)PIECES * STAGE_PIECE;
	cl_device_id device;
	cl_int status = CL_SUCCESS;

	if (!s)
		return NULL;
	s->context = context;
	s->next = stages;
	stages = s;
	if (clGetCommandQueueInfo(q, CL_QUEUE_DEVICE, sizeof(device), &device, NULL) == CL_SUCCESS)
		s->queue = clCreateCommandQueue(context, device, 0, NULL);
	if (s->queue)
		s->buffer = clCreateBuffer(context, CL_MEM_ALLOC_HOST_PTR, size, NULL, NULL);
	if (s->buffer)
		s->at = clEnqueueMapBuffer(s->queue, s->buffer, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE,
					   0, size, 0, NULL, NULL, &status);
	if (status != CL_SUCCESS)
		s->at = NULL;
	return s;
}

char *stage_take(cl_command_queue q)
{
	cl_context context;
	struct stage *s;
	char *piece = NULL;

	if (clGetCommandQueueInfo(q, CL_QUEUE_CONTEXT, sizeof(cl_context), &context, NULL) !=
	    CL_SUCCESS)
		return NULL;
	pthread_mutex_lock(&lock);
	for (s = stages; s && s->context != context; s = s->next)
		;
	if (!s)
		s = stage_new(context, q);
	for (unsigned i = 0; s && s->at && !piece && i < PIECES; i++) {
		if (s->busy & 1u << i)
			continue;
		s->busy |= 1u << i;
		piece = s->at + (size_t)i * STAGE_PIECE;
	}
	pthread_mutex_unlock(&lock);
	return piece;
}

static struct stage **stage_with(const char *data)
{
	struct stage **at = &stages;

	while (*at &&
	       (!(*at)->at || data < (*at)->at || data >= (*at)->at + (size_t)PIECES * STAGE_PIECE))
		at = &(*at)->next;
	return at;
}

bool stage_has(const char *data)
{
	bool yes;

	pthread_mutex_lock(&lock);
	yes = *stage_with(data) != NULL;
	pthread_mutex_unlock(&lock);
	return yes;
}

bool stage_give(char *data)
{
	struct stage **at, *s;

	pthread_mutex_lock(&lock);
	at = stage_with(data);
	s = *at;
	if (s) {
		s->busy &= ~(1u << (size_t)(data - s->at) / STAGE_PIECE);
		if (!s->context && s->busy == 0) {
			*at = s->next;
			stage_free(s);
		}
	}
	pthread_mutex_unlock(&lock);
	return s != NULL;
}

void stage_drop(cl_context context)
{
	pthread_mutex_lock(&lock);
	for (struct stage **at = &stages, *s; (s = *at); at = &s->next) {
		if (s->context != context)
			continue;
		s->context = NULL;
		if (s->busy == 0) {
			*at = s->next;
			stage_free(s);
		}
		break;
	}
	pthread_mutex_unlock(&lock);
}
