/* SPDX-License-Identifier: BSD-3-Clause */
/* What the OpenCL benchmarks share: the first device, and errors that end the program. */
#ifndef BENCH_OCL_H
#define BENCH_OCL_H

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <hale/opencl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define OK(call)                                                                                   \
	do {                                                                                       \
		cl_int ok_ = (call);                                                               \
		if (ok_ != CL_SUCCESS) {                                                           \
			fprintf(stderr, "OpenCL says %d in line %d\n", ok_, __LINE__);             \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

static cl_context context;
static cl_command_queue queue;
static cl_program program;

static inline double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static inline void ocl_begin(const char *source)
{
	cl_platform_id platform;
	cl_device_id device;
	cl_int e;

	OK(clGetPlatformIDs(1, &platform, NULL));
	OK(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL));
	context = clCreateContext(NULL, 1, &device, NULL, NULL, &e);
	OK(e);
	queue = clCreateCommandQueue(context, device, 0, &e);
	OK(e);
	program = clCreateProgramWithSource(context, 1, &source, NULL, &e);
	OK(e);
	OK(clBuildProgram(program, 0, NULL, "", NULL, NULL));
}

static inline cl_kernel ocl_kernel(const char *name)
{
	cl_int e;
	cl_kernel k = clCreateKernel(program, name, &e);

	OK(e);
	return k;
}

static inline cl_mem ocl_buffer(cl_mem_flags flags, size_t size, void *host)
{
	cl_int e;
	cl_mem m = clCreateBuffer(context, flags, size, host, &e);

	OK(e);
	return m;
}

static inline void ocl_arg(cl_kernel k, cl_uint i, size_t size, const void *value)
{
	OK(clSetKernelArg(k, i, size, value));
}

/* The last line of each program: seconds of the loop and a checksum of the result. */
static inline void ocl_result(double seconds, const void *data, size_t size)
{
	const unsigned char *p = data;
	uint64_t h = 0xcbf29ce484222325ull;

	for (size_t i = 0; i < size; i++)
		h = (h ^ p[i]) * 0x100000001b3ull;
	printf("seconds %.6f result %016llx\n", seconds, (unsigned long long)h);
}

#endif
