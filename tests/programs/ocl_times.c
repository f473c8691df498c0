/* SPDX-License-Identifier: BSD-3-Clause */
/* ocl_times wait|poll|between [kill]: when commands began and ended, which programs ask for and end
 * if they are not told. wait: after a wait; poll: until they are told, which is how it waits;
 * between: the end after the beginning. kill: twice the process that has its OpenCL runtime ends
 * before. */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include "ocl_kill.h"

static const char source[] = "__kernel void twice(__global int *a) { a[get_global_id(0)] *= 2; }";

static cl_ulong time_of(cl_event event, cl_profiling_info what)
{
	cl_ulong value = 0;
	size_t size = 0;

	OK(clGetEventProfilingInfo(event, what, sizeof(value), &value, &size));
	CHECK(size == sizeof(value) && value > 0);
	CHECK(clGetEventProfilingInfo(event, what, 4, &value, NULL) == CL_INVALID_VALUE);
	return value;
}

int main(int argc, char **argv)
{
	int polls = argc > 1 && strcmp(argv[1], "poll") == 0;
	int between = argc > 1 && strcmp(argv[1], "between") == 0;
	const char *text = source;
	cl_platform_id platform;
	cl_device_id device;
	cl_command_queue q, plain;
	cl_context c;
	cl_program p;
	cl_kernel k;
	cl_mem m;
	int data[256];
	size_t all = 256;
	cl_int e;

	OK(clGetPlatformIDs(1, &platform, NULL));
	OK(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL));
	MAKE(c, clCreateContext(NULL, 1, &device, NULL, NULL, &e));
	MAKE(q, clCreateCommandQueue(c, device, CL_QUEUE_PROFILING_ENABLE, &e));
	MAKE(plain, clCreateCommandQueue(c, device, 0, &e));
	for (int i = 0; i < 256; i++)
		data[i] = i;
	MAKE(m, clCreateBuffer(c, CL_MEM_COPY_HOST_PTR, sizeof(data), data, &e));
	MAKE(p, clCreateProgramWithSource(c, 1, &text, NULL, &e));
	OK(clBuildProgram(p, 1, &device, "", NULL, NULL));
	MAKE(k, clCreateKernel(p, "twice", &e));
	OK(clSetKernelArg(k, 0, sizeof(m), &m));
	for (int round = 0; round < 5; round++) {
		cl_ulong queued, start, end;
		cl_event ran, other;

		OK(clEnqueueMarkerWithWaitList(plain, 0, NULL, &other));
		OK(clEnqueueNDRangeKernel(q, k, 1, NULL, &all, NULL, 0, NULL, &ran));
		OK(clFlush(q));
		if (argc > 2 && round % 2 && !between)
			kill_runtime();
		if (!polls)
			OK(clWaitForEvents(1, &ran));
		while (polls && clGetEventProfilingInfo(ran, CL_PROFILING_COMMAND_END, sizeof(end),
							&end, NULL) != CL_SUCCESS)
			usleep(100);
		queued = time_of(ran, CL_PROFILING_COMMAND_QUEUED);
		start = time_of(ran, CL_PROFILING_COMMAND_START);
		if (argc > 2 && round % 2 && between)
			kill_runtime();
		end = time_of(ran, CL_PROFILING_COMMAND_END);
		printf("%d: %s\n", round, queued <= start && start < end ? "in order" : "wrong");
		CHECK(clGetEventProfilingInfo(other, CL_PROFILING_COMMAND_END, sizeof(end), &end,
					      NULL) == CL_PROFILING_INFO_NOT_AVAILABLE);
		OK(clReleaseEvent(ran));
		OK(clReleaseEvent(other));
	}
	OK(clEnqueueReadBuffer(q, m, CL_TRUE, 0, sizeof(data), data, 0, NULL, NULL));
	printf("%d\n", data[255]);
	return 0;
}
