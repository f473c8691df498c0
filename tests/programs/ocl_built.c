/* SPDX-License-Identifier: BSD-3-Clause */
/* ocl_built TIMES: takes the binary of a program, makes a program of it and builds that, so many
 * times, and runs a kernel of the last one. */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include "ocl_ok.h"

static const char source[] = "__kernel void twice(__global int *a) { a[get_global_id(0)] *= 2; }";

static cl_program built_of(cl_context c, cl_device_id device, const unsigned char *binary,
			   size_t size)
{
	cl_int e;
	cl_program p = clCreateProgramWithBinary(c, 1, &device, &size, &binary, NULL, &e);

	OK(e);
	OK(clBuildProgram(p, 0, NULL, "", NULL, NULL));
	return p;
}

static int twice(cl_context c, cl_command_queue q, cl_program p)
{
	int data[256], sum = 0;
	size_t all = 256;
	cl_kernel k;
	cl_mem m;
	cl_int e;

	for (int i = 0; i < 256; i++)
		data[i] = i;
	m = clCreateBuffer(c, CL_MEM_COPY_HOST_PTR, sizeof(data), data, &e);
	OK(e);
	k = clCreateKernel(p, "twice", &e);
	OK(e);
	OK(clSetKernelArg(k, 0, sizeof(m), &m));
	OK(clEnqueueNDRangeKernel(q, k, 1, NULL, &all, NULL, 0, NULL, NULL));
	OK(clEnqueueReadBuffer(q, m, CL_TRUE, 0, sizeof(data), data, 0, NULL, NULL));
	for (int i = 0; i < 256; i++)
		sum += data[i];
	return sum;
}

int main(int argc, char **argv)
{
	cl_device_id device = first_device();
	unsigned char *binary;
	cl_command_queue q;
	cl_context c;
	cl_program p;
	size_t size = 0;
	cl_int e;

	c = clCreateContext(NULL, 1, &device, NULL, NULL, &e);
	OK(e);
	q = clCreateCommandQueue(c, device, 0, &e);
	OK(e);
	p = build_source(c, source, "");
	OK(clGetProgramInfo(p, CL_PROGRAM_BINARY_SIZES, sizeof(size), &size, NULL));
	MUST(size > 0 && (binary = malloc(size)));
	OK(clGetProgramInfo(p, CL_PROGRAM_BINARIES, sizeof(binary), &binary, NULL));
	for (int i = argc > 1 ? atoi(argv[1]) : 10; i > 0; i--) {
		OK(clReleaseProgram(p));
		p = built_of(c, device, binary, size);
	}
	printf("sum %d\n", twice(c, q, p));
	free(binary);
	return 0;
}
