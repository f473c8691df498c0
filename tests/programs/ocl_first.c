/* SPDX-License-Identifier: BSD-3-Clause */
/* ocl_first GO: waits for the file GO in mid run; the first command behind that is a launch. Then
 * epochs in which nothing changes, and what the launch has made of its buffer. */
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <unistd.h>
#include "ocl_ok.h"

enum { N = 1 << 14, EPOCHS = 6 };

static const char source[] = "kernel void grow(global int *a) {\n"
			     "  size_t i = get_global_id(0); a[i] = a[i] * 3 + (int)i; }\n";

static cl_command_queue queue;

static void epochs(cl_mem m)
{
	int one;

	for (int i = 0; i < EPOCHS; i++)
		OK(clEnqueueReadBuffer(queue, m, CL_TRUE, 0, sizeof(one), &one, 0, NULL, NULL));
}

static cl_mem filled(cl_context c, int with)
{
	cl_int e;
	cl_mem m = clCreateBuffer(c, CL_MEM_READ_WRITE, N * sizeof(int), NULL, &e);

	OK(e);
	OK(clEnqueueFillBuffer(queue, m, &with, sizeof(with), 0, N * sizeof(int), 0, NULL, NULL));
	return m;
}

int main(int argc, char **argv)
{
	cl_device_id device = first_device();
	static int data[N];
	size_t all = N;
	unsigned h = 0;
	cl_mem changed, looked_at;
	cl_context c;
	cl_kernel k;
	cl_int e;

	setvbuf(stdout, NULL, _IOLBF, 0);
	MUST(argc > 1);
	c = clCreateContext(NULL, 1, &device, NULL, NULL, &e);
	OK(e);
	queue = clCreateCommandQueueWithProperties(c, device, NULL, &e);
	OK(e);
	k = clCreateKernel(build_source(c, source, NULL), "grow", &e);
	OK(e);
	changed = filled(c, 5);
	looked_at = filled(c, 7);
	OK(clSetKernelArg(k, 0, sizeof(changed), &changed));
	epochs(looked_at);
	printf("ready\n");
	while (access(argv[1], F_OK) != 0)
		usleep(2000);
	OK(clEnqueueNDRangeKernel(queue, k, 1, NULL, &all, NULL, 0, NULL, NULL));
	epochs(looked_at);
	OK(clEnqueueReadBuffer(queue, changed, CL_TRUE, 0, sizeof(data), data, 0, NULL, NULL));
	for (int i = 0; i < N; i++)
		h = h * 31 + (unsigned)data[i];
	printf("%08x\n", h);
	return 0;
}
