/* SPDX-License-Identifier: BSD-3-Clause */
/* ocl_arrives: two reads into the same memory, the second behind the first, run while the data of a
 * large read that stands between them are brought. What the second one read must stay. */
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

int main(void)
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
