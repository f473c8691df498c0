/* SPDX-License-Identifier: BSD-3-Clause */
/* ocl_called: a callback at the begin of a command, while the first large transfer of a context
 * finds pinned memory, and the runtime's only thread is busy. */
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <pthread.h>
#include "ocl_ok.h"

enum { BYTES = 4 << 20, ROUNDS = 50000000 };

static const char source[] =
    "kernel void turn(global uint *a, uint n) {\n"
    "  uint x = 1;\n"
    "  for (uint i = 0; i < n; i++) { x ^= x << 13; x ^= x >> 17; x ^= x << 5; }\n"
    "  a[0] = x; }\n";
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t was_called = PTHREAD_COND_INITIALIZER;
static int calls;

static void CL_CALLBACK begins(cl_event event, cl_int status, void *of)
{
	(void)event;
	(void)of;
	MUST(status <= CL_RUNNING && status >= CL_COMPLETE);
	MUST(pthread_mutex_lock(&lock) == 0);
	calls++;
	MUST(pthread_cond_signal(&was_called) == 0 && pthread_mutex_unlock(&lock) == 0);
}

static cl_mem buffer(cl_context context, size_t bytes)
{
	cl_int e;
	cl_mem m = clCreateBuffer(context, CL_MEM_READ_WRITE, bytes, NULL, &e);

	OK(e);
	return m;
}

/* What waits for no other command in it runs as soon as there is a thread. */
static cl_command_queue queue_of(cl_context context, cl_device_id device)
{
	cl_int e;
	cl_command_queue q = clCreateCommandQueueWithProperties(context, device, NULL, &e);

	OK(e);
	return q;
}

int main(void)
{
	static cl_uint seen[BYTES / sizeof(cl_uint)], small = 7, zero, rounds = ROUNDS;
	cl_device_id device = first_device();
	cl_command_queue q, second;
	cl_mem big, turned, other;
	cl_context context;
	cl_program program;
	cl_event begun;
	size_t one = 1;
	cl_kernel k;
	cl_int e;

	context = clCreateContext(NULL, 1, &device, NULL, NULL, &e);
	OK(e);
	q = queue_of(context, device);
	second = queue_of(context, device);
	program = build_source(context, source, NULL);
	k = clCreateKernel(program, "turn", &e);
	OK(e);
	big = buffer(context, BYTES);
	turned = buffer(context, sizeof(small));
	other = buffer(context, sizeof(small));
	OK(clSetKernelArg(k, 0, sizeof(turned), &turned));
	OK(clSetKernelArg(k, 1, sizeof(rounds), &rounds));
	OK(clEnqueueFillBuffer(q, big, &small, sizeof(small), 0, BYTES, 0, NULL, NULL));
	OK(clFinish(q));
	/* its end is noticed when somebody is told of another command */
	OK(clEnqueueWriteBuffer(q, turned, CL_FALSE, 0, sizeof(small), &small, 0, NULL, NULL));
	OK(clEnqueueNDRangeKernel(q, k, 1, NULL, &one, NULL, 0, NULL, NULL));
	OK(clFlush(q));
	OK(clEnqueueFillBuffer(second, other, &zero, sizeof(zero), 0, sizeof(zero), 0, NULL,
			       &begun));
	OK(clSetEventCallback(begun, CL_RUNNING, begins, NULL));
	OK(clFlush(second));
	OK(clEnqueueReadBuffer(q, big, CL_TRUE, 0, BYTES, seen, 0, NULL, NULL));
	OK(clFinish(second));
	MUST(pthread_mutex_lock(&lock) == 0);
	while (calls == 0)
		MUST(pthread_cond_wait(&was_called, &lock) == 0);
	MUST(pthread_mutex_unlock(&lock) == 0);
	OK(clEnqueueReadBuffer(q, turned, CL_TRUE, 0, sizeof(small), &small, 0, NULL, NULL));
	printf("%u %u %u\n", seen[0], seen[BYTES / sizeof(cl_uint) - 1], small);
	return 0;
}
