/* SPDX-License-Identifier: BSD-3-Clause */
/* ocl_arrives WHAT: reads that are under way.
 *   twice   two into the same memory, the second behind the first, run while the data of a large
 * read that stands between them are brought: what the second one read must stay apart   one that
 * waits for the program, into memory out of which another context writes */
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <pthread.h>
#include <string.h>
#include "ocl_ok.h"

enum { SMALL = 64, LARGE = 96 << 20 };

static void *wait_for(void *event)
{
	OK(clWaitForEvents(1, (cl_event *)event));
	return NULL;
}

static cl_mem filled(cl_context c, cl_command_queue q, unsigned char with, size_t bytes)
{
	cl_int e;
	cl_mem m = clCreateBuffer(c, CL_MEM_READ_WRITE, bytes, NULL, &e);

	OK(e);
	OK(clEnqueueFillBuffer(q, m, &with, 1, 0, bytes, 0, NULL, NULL));
	OK(clFinish(q));
	return m;
}

static int twice(void)
{
	static unsigned char place[SMALL];
	unsigned char *large = calloc(LARGE, 1);
	cl_device_id device = first_device();
	cl_queue_properties free_order[] = {CL_QUEUE_PROPERTIES,
					    CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, 0};
	cl_int e;
	cl_context c = clCreateContext(NULL, 1, &device, NULL, NULL, &e);
	cl_command_queue q = clCreateCommandQueueWithProperties(c, device, NULL, &e),
			 other = clCreateCommandQueueWithProperties(c, device, free_order, &e);
	cl_mem old = filled(c, q, 1, SMALL), now = filled(c, q, 2, SMALL);
	cl_mem much = filled(c, other, 3, LARGE);
	cl_event start = clCreateUserEvent(c, &e), first, between, second;
	pthread_t t;

	MUST(large);
	OK(e);
	OK(clEnqueueReadBuffer(q, old, CL_FALSE, 0, SMALL, place, 1, &start, &first));
	OK(clEnqueueReadBuffer(other, much, CL_FALSE, 0, LARGE, large, 0, NULL, &between));
	OK(clEnqueueReadBuffer(q, now, CL_FALSE, 0, SMALL, place, 1, &first, &second));
	OK(clFlush(q));
	OK(clFlush(other));
	MUST(pthread_create(&t, NULL, wait_for, &between) == 0);
	while (*(volatile unsigned char *)large != 3)
		;
	OK(clSetUserEventStatus(start, CL_COMPLETE));
	MUST(pthread_join(t, NULL) == 0);
	OK(clWaitForEvents(1, &second));
	OK(clFinish(q));
	printf("%d %d\n", place[0], place[SMALL - 1]);
	for (size_t i = 0; i < LARGE; i++)
		MUST(large[i] == 3);
	OK(clReleaseEvent(first));
	OK(clReleaseEvent(between));
	OK(clReleaseEvent(second));
	OK(clReleaseEvent(start));
	OK(clReleaseMemObject(old));
	OK(clReleaseMemObject(now));
	OK(clReleaseMemObject(much));
	OK(clReleaseCommandQueue(q));
	OK(clReleaseCommandQueue(other));
	OK(clReleaseContext(c));
	return 0;
}

static int apart(void)
{
	unsigned char place[SMALL] = {5}, back[SMALL];
	cl_device_id device = first_device();
	cl_context c[2];
	cl_command_queue q[2];
	cl_mem m[2];
	cl_event start, read;
	cl_int e;

	for (int i = 0; i < 2; i++) {
		c[i] = clCreateContext(NULL, 1, &device, NULL, NULL, &e);
		OK(e);
		q[i] = clCreateCommandQueueWithProperties(c[i], device, NULL, &e);
		OK(e);
		m[i] = filled(c[i], q[i], (unsigned char)(i + 1), SMALL);
	}
	start = clCreateUserEvent(c[0], &e);
	OK(e);
	OK(clEnqueueReadBuffer(q[0], m[0], CL_FALSE, 0, SMALL, place, 1, &start, &read));
	OK(clFlush(q[0]));
	OK(clEnqueueWriteBuffer(q[1], m[1], CL_TRUE, 0, SMALL, place, 0, NULL, NULL));
	OK(clEnqueueReadBuffer(q[1], m[1], CL_TRUE, 0, SMALL, back, 0, NULL, NULL));
	OK(clSetUserEventStatus(start, CL_COMPLETE));
	OK(clWaitForEvents(1, &read));
	printf("%d %d\n", back[0], place[0]);
	OK(clReleaseEvent(start));
	OK(clReleaseEvent(read));
	for (int i = 0; i < 2; i++) {
		OK(clReleaseMemObject(m[i]));
		OK(clReleaseCommandQueue(q[i]));
		OK(clReleaseContext(c[i]));
	}
	return 0;
}

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "apart") == 0)
		return apart();
	return argc > 1 && strcmp(argv[1], "twice") == 0 ? twice() : 2;
}
