/* SPDX-License-Identifier: BSD-3-Clause */
/* ocl_let_go [kill]: releases queue, memory and context, in each order, while a read is under
 * way, and then waits for its event; the runtime (it is in the group of this process) ends before
 * any of that. Prints what the read has brought. */
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <stdbool.h>
#include "ocl_kill.h"

enum { N = 1 << 14, OBJECTS = 3 };

static bool kills;

static void runtime_ends(void)
{
	if (kills)
		kill_runtime();
}

static void release(int which, cl_command_queue q, cl_mem m, cl_context c)
{
	if (which == 0)
		OK(clReleaseCommandQueue(q));
	else if (which == 1)
		OK(clReleaseMemObject(m));
	else
		OK(clReleaseContext(c));
}

/* Beginning with object `first`; the runtime ends before release end_at, or after all of them. */
static void read_and_release(cl_device_id device, int first, int end_at)
{
	static int given[N], data[N];
	int one = 1 + first;
	unsigned sum = 0;
	cl_command_queue q;
	cl_event done;
	cl_context c;
	cl_mem m;
	cl_int e;

	for (int i = 0; i < N; i++) {
		given[i] = i * (end_at + 3);
		data[i] = 0x1b1b1b1b;
	}
	MAKE(c, clCreateContext(NULL, 1, &device, NULL, NULL, &e));
	MAKE(q, clCreateCommandQueueWithProperties(c, device, NULL, &e));
	MAKE(m, clCreateBuffer(c, CL_MEM_READ_WRITE, sizeof(given), NULL, &e));
	OK(clEnqueueWriteBuffer(q, m, CL_FALSE, 0, sizeof(given), given, 0, NULL, NULL));
	OK(clEnqueueFillBuffer(q, m, &one, sizeof(one), 0, 64, 0, NULL, NULL));
	OK(clEnqueueReadBuffer(q, m, CL_FALSE, 0, sizeof(data), data, 0, NULL, &done));
	OK(clFlush(q));
	for (int i = 0; i < OBJECTS; i++) {
		if (i == end_at)
			runtime_ends();
		release((first + i) % OBJECTS, q, m, c);
	}
	if (end_at == OBJECTS)
		runtime_ends();
	OK(clWaitForEvents(1, &done));
	for (int i = 0; i < N; i++)
		sum = sum * 31 + (unsigned)data[i];
	printf("%d %d %08x\n", first, end_at, sum);
	OK(clReleaseEvent(done));
}

int main(int argc, char **argv)
{
	cl_platform_id platform;
	cl_device_id device;

	kills = argc > 1;
	OK(clGetPlatformIDs(1, &platform, NULL));
	OK(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL));
	for (int first = 0; first < OBJECTS; first++)
		for (int end_at = 0; end_at <= OBJECTS; end_at++)
			read_and_release(device, first, end_at);
	return 0;
}
