/* SPDX-License-Identifier: BSD-3-Clause */
/* A program in an intermediate language with specialization constants, over ocl_il.c: set, set
 * again, set to something else when it is built already, which counts from the next build on.
 * Prints what its kernel computes, and the codes of wrong calls. */
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <string.h>
#include "ocl_ok.h"

static const char text[] = "kernel void f(global int *a) { a[0] = a[0] * C0 + C1; }";

static cl_context context;
static cl_command_queue queue;
static cl_program program;
static cl_mem buffer;

static void set(cl_uint id, int value)
{
	OK(clSetProgramSpecializationConstant(program, id, sizeof(value), &value));
}

static cl_kernel built(void)
{
	cl_kernel k;
	cl_int e;

	OK(clBuildProgram(program, 0, NULL, "", NULL, NULL));
	k = clCreateKernel(program, "f", &e);
	OK(e);
	OK(clSetKernelArg(k, 0, sizeof(buffer), &buffer));
	return k;
}

static void steps(cl_kernel k)
{
	size_t one = 1;
	int now;

	for (int i = 0; i < 4; i++) {
		OK(clEnqueueNDRangeKernel(queue, k, 1, NULL, &one, NULL, 0, NULL, NULL));
		OK(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, sizeof(now), &now, 0, NULL,
				       NULL));
		printf("%d\n", now);
	}
}

int main(void)
{
	cl_device_id device = first_device();
	int first = 1;
	cl_kernel k;
	cl_int e;

	context = clCreateContext(NULL, 1, &device, NULL, NULL, &e);
	OK(e);
	queue = clCreateCommandQueueWithProperties(context, device, NULL, &e);
	OK(e);
	buffer = clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, sizeof(first), &first, &e);
	OK(e);
	program = clCreateProgramWithIL(context, text, sizeof(text) - 1, &e);
	OK(e);
	set(0, 2);
	set(1, 100);
	set(1, 3);
	k = built();
	steps(k);
	set(1, 7);
	steps(k);
	printf("%d %d\n", clSetProgramSpecializationConstant(program, 9, sizeof(first), &first),
	       clSetProgramSpecializationConstant(program, 0, 1, &first));
	OK(clReleaseKernel(k));
	k = built();
	steps(k);
	OK(clReleaseKernel(k));
	OK(clReleaseProgram(program));
	return 0;
}
