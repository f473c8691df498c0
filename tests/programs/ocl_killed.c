/* SPDX-License-Identifier: BSD-3-Clause */
/* ocl_killed K [parts]: one of each kind of OpenCL call, in two contexts; the process that has the
 * OpenCL runtime (it is in the group of this one) is killed before the K-th call, with 0 never.
 * What is printed must not depend on K. parts: with parts of a device instead. With -1 it says how
 * many calls there are. */
#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "ocl_kill.h"

enum { N = 1024 };

static const char source[] =
    "__kernel void grow(__global int *a, int k) {\n"
    "  size_t i = get_global_id(0); a[i] = a[i] * 3 + k + (int)i; }\n"
    "__kernel void look(read_only image2d_t p, sampler_t s, __global int *a) {\n"
    "  int i = get_global_id(0); a[i] += read_imagei(p, s, (int2)(i % 8, i / 8 % 8)).x; }\n";

static unsigned hash(const void *data, size_t size)
{
	const unsigned char *p = data;
	unsigned h = 2166136261u;

	for (size_t i = 0; i < size; i++)
		h = (h ^ p[i]) * 16777619u;
	return h;
}

static void CL_CALLBACK called(cl_event event, cl_int status, void *data)
{
	__atomic_store_n((int *)data, status == CL_COMPLETE ? 1 : -1, __ATOMIC_SEQ_CST);
}

static void events(cl_context c, cl_command_queue q, cl_mem m)
{
	static int data[N], done;
	cl_event set, early, one[2];
	cl_int e, status;

	done = 0;
	MAKE(early, clCreateUserEvent(c, &e)); /* may be from before the runtime's end */
	OK(clEnqueueReadBuffer(q, m, CL_FALSE, 0, sizeof(data), data, 0, NULL, &one[0]));
	OK(clSetEventCallback(one[0], CL_COMPLETE, called, &done));
	OK(clEnqueueMarkerWithWaitList(q, 1, one, &one[1]));
	OK(clFlush(q));
	OK(clWaitForEvents(2, one));
	OK(clGetEventInfo(one[0], CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status,
			  NULL));
	CHECK(status == CL_COMPLETE);
	for (int i = 0; i < 5000 && !__atomic_load_n(&done, __ATOMIC_SEQ_CST); i++)
		usleep(1000);
	CHECK(done == 1);
	MAKE(set, clCreateUserEvent(c, &e));
	OK(clSetUserEventStatus(set, CL_COMPLETE));
	OK(clEnqueueBarrierWithWaitList(q, 1, &set, NULL));
	OK(clSetUserEventStatus(early, CL_COMPLETE));
	OK(clEnqueueBarrierWithWaitList(q, 1, &early, NULL));
	OK(clRetainEvent(set));
	OK(clReleaseEvent(set));
	OK(clReleaseEvent(set));
	OK(clReleaseEvent(early));
	OK(clReleaseEvent(one[0]));
	OK(clReleaseEvent(one[1]));
	printf("events %08x\n", hash(data, sizeof(data)));
}

static void images(cl_context c, cl_command_queue q, cl_kernel look, cl_mem m)
{
	static const cl_image_format format = {CL_R, CL_SIGNED_INT32};
	static const cl_image_desc shape = {
	    .image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = 8, .image_height = 8};
	size_t origin[3] = {0}, region[3] = {8, 8, 1}, all = 64, pitch, value;
	int texel[64], colour[4] = {9, 9, 9, 9}, *p;
	cl_sampler s;
	cl_uint count;
	cl_mem image;
	cl_int e;

	for (int i = 0; i < 64; i++)
		texel[i] = i * i;
	OK(clGetSupportedImageFormats(c, CL_MEM_READ_WRITE, CL_MEM_OBJECT_IMAGE2D, 0, NULL,
				      &count));
	MAKE(image, clCreateImage(c, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, &format, &shape,
				  texel, &e));
	MAKE(s, clCreateSampler(c, CL_FALSE, CL_ADDRESS_CLAMP_TO_EDGE, CL_FILTER_NEAREST, &e));
	OK(clGetImageInfo(image, CL_IMAGE_ROW_PITCH, sizeof(value), &value, NULL));
	OK(clGetSamplerInfo(s, CL_SAMPLER_FILTER_MODE, sizeof(count), &count, NULL));
	OK(clSetKernelArg(look, 0, sizeof(image), &image));
	OK(clSetKernelArg(look, 1, sizeof(s), &s));
	OK(clSetKernelArg(look, 2, sizeof(m), &m));
	OK(clEnqueueNDRangeKernel(q, look, 1, NULL, &all, NULL, 0, NULL, NULL));
	OK(clEnqueueFillImage(q, image, colour, origin, (size_t[]){2, 2, 1}, 0, NULL, NULL));
	OK(clEnqueueWriteImage(q, image, CL_FALSE, origin, (size_t[]){1, 1, 1}, 0, 0, texel + 5, 0,
			       NULL, NULL));
	MAKE(p, clEnqueueMapImage(q, image, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, origin, region,
				  &pitch, NULL, 0, NULL, NULL, &e));
	p[3] += 7;
	OK(clEnqueueUnmapMemObject(q, image, p, 0, NULL, NULL));
	OK(clEnqueueCopyImageToBuffer(q, image, m, origin, (size_t[]){8, 1, 1}, 512, 0, NULL,
				      NULL));
	OK(clEnqueueReadImage(q, image, CL_TRUE, origin, region, 0, 0, texel, 0, NULL, NULL));
	OK(clReleaseSampler(s));
	OK(clReleaseMemObject(image));
	printf("image %08x\n", hash(texel, sizeof(texel)));
}

static void shared(cl_context c, cl_command_queue q, cl_kernel grow)
{
	size_t all = N;
	int seven = 7, data[16];
	int shared_memory;
	int *p;

	before(__LINE__);
	p = clSVMAlloc(c, CL_MEM_READ_WRITE, N * sizeof(int), 0);
	shared_memory = p != NULL;
	CHECK(shared_memory);
	OK(clEnqueueSVMMemFill(q, p, &seven, sizeof(seven), N * sizeof(int), 0, NULL, NULL));
	OK(clSetKernelArgSVMPointer(grow, 0, p));
	OK(clSetKernelExecInfo(grow, CL_KERNEL_EXEC_INFO_SVM_PTRS, sizeof(p), &p));
	OK(clEnqueueNDRangeKernel(q, grow, 1, NULL, &all, NULL, 0, NULL, NULL));
	OK(clEnqueueSVMMap(q, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, p, 64, 0, NULL, NULL));
	p[1] += 5;
	OK(clEnqueueSVMUnmap(q, p, 0, NULL, NULL));
	OK(clEnqueueSVMMigrateMem(q, 1, (const void *[]){p}, NULL, 0, 0, NULL, NULL));
	OK(clEnqueueSVMMemcpy(q, CL_TRUE, data, p, sizeof(data), 0, NULL, NULL));
	OK(clEnqueueSVMFree(q, 1, (void *[]){p}, NULL, NULL, 0, NULL, NULL));
	OK(clFinish(q));
	printf("shared %08x\n", hash(data, sizeof(data)));
}

static void kernels(cl_program program, cl_device_id device, cl_kernel *grow, cl_kernel *look)
{
	char text[256] = "";
	cl_kernel both[2], clone;
	size_t size;
	cl_uint n;
	cl_int e;

	OK(clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_OPTIONS, sizeof(text), text,
				 NULL));
	OK(clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_STATUS, sizeof(e), &e, NULL));
	CHECK(e == CL_BUILD_SUCCESS);
	OK(clGetProgramInfo(program, CL_PROGRAM_KERNEL_NAMES, sizeof(text), text, NULL));
	OK(clCreateKernelsInProgram(program, 2, both, &n));
	OK(clReleaseKernel(both[0]));
	OK(clReleaseKernel(both[1]));
	MAKE(*grow, clCreateKernel(program, "grow", &e));
	MAKE(*look, clCreateKernel(program, "look", &e));
	MAKE(clone, clCloneKernel(*grow, &e));
	OK(clGetKernelInfo(clone, CL_KERNEL_FUNCTION_NAME, sizeof(text), text, NULL));
	CHECK(strcmp(text, "grow") == 0);
	OK(clGetKernelWorkGroupInfo(*grow, device, CL_KERNEL_WORK_GROUP_SIZE, sizeof(size), &size,
				    NULL));
	OK(clGetKernelArgInfo(*look, 0, CL_KERNEL_ARG_NAME, sizeof(text), text, NULL));
	OK(clReleaseKernel(clone));
}

static void buffers(cl_context c, cl_command_queue q, cl_kernel grow, cl_mem m)
{
	static int data[N];
	size_t all = N, origin[3] = {0}, region[3] = {16, 4, 1};
	cl_buffer_region half = {2048, 2048};
	cl_mem other, part;
	int k = 5, *p;
	cl_int e;

	MAKE(other, clCreateBuffer(c, CL_MEM_READ_WRITE, N * sizeof(int), NULL, &e));
	MAKE(part,
	     clCreateSubBuffer(m, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &half, &e));
	OK(clGetMemObjectInfo(part, CL_MEM_SIZE, sizeof(all), &all, NULL));
	CHECK(all == 2048);
	all = N;
	for (int i = 0; i < N; i++)
		data[i] = i ^ 77;
	OK(clEnqueueWriteBuffer(q, m, CL_FALSE, 0, sizeof(data), data, 0, NULL, NULL));
	OK(clSetKernelArg(grow, 0, sizeof(m), &m));
	OK(clSetKernelArg(grow, 1, sizeof(k), &k));
	OK(clEnqueueNDRangeKernel(q, grow, 1, NULL, &all, NULL, 0, NULL, NULL));
	OK(clEnqueueCopyBuffer(q, m, other, 0, 64, 512, 0, NULL, NULL));
	OK(clEnqueueFillBuffer(q, other, &k, sizeof(k), 0, 64, 0, NULL, NULL));
	OK(clEnqueueCopyBufferRect(q, other, m, origin, origin, region, 32, 0, 64, 0, 0, NULL,
				   NULL));
	OK(clEnqueueMigrateMemObjects(q, 1, &m, 0, 0, NULL, NULL));
	MAKE(p, clEnqueueMapBuffer(q, part, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0, 1024, 0, NULL,
				   NULL, &e));
	p[9] -= 40;
	OK(clEnqueueUnmapMemObject(q, part, p, 0, NULL, NULL));
	OK(clEnqueueReadBuffer(q, m, CL_TRUE, 0, sizeof(data), data, 0, NULL, NULL));
	OK(clRetainMemObject(other));
	OK(clReleaseMemObject(other));
	OK(clReleaseMemObject(other));
	OK(clReleaseMemObject(part));
	printf("buffers %08x\n", hash(data, sizeof(data)));
}

static cl_program build(cl_context c, cl_device_id device)
{
	const char *text = source;
	cl_program program, parts, linked;
	cl_int e;

	MAKE(program, clCreateProgramWithSource(c, 1, &text, NULL, &e));
	before(__LINE__); /* a build that fails, and then one that doesn't */
	CHECK(clBuildProgram(program, 0, NULL, "-cl-no-such-option", NULL, NULL) < 0);
	OK(clBuildProgram(program, 0, NULL, "-cl-kernel-arg-info", NULL, NULL));
	MAKE(parts, clCreateProgramWithSource(c, 1, &text, NULL, &e));
	OK(clCompileProgram(parts, 1, &device, "", 0, NULL, NULL, NULL, NULL));
	MAKE(linked, clLinkProgram(c, 1, &device, "", 1, &parts, NULL, NULL, &e));
	OK(clReleaseProgram(parts));
	OK(clReleaseProgram(linked));
	return program;
}

static void tour(cl_device_id device, int beside)
{
	cl_context c, of;
	cl_command_queue q, second;
	cl_program program;
	cl_kernel grow, look;
	cl_mem m, begun;
	int data[N];
	cl_int e;

	MAKE(c, clCreateContext(NULL, 1, &device, NULL, NULL, &e));
	memset(data, 1, sizeof(data));
	/* there is no queue yet */
	MAKE(begun,
	     clCreateBuffer(c, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, sizeof(data), data, &e));
	MAKE(q, clCreateCommandQueue(c, device, 0, &e));
	MAKE(second, clCreateCommandQueueWithProperties(c, device, NULL, &e));
	OK(clGetCommandQueueInfo(q, CL_QUEUE_CONTEXT, sizeof(of), &of, NULL));
	CHECK(of == c);
	OK(clGetContextInfo(c, CL_CONTEXT_REFERENCE_COUNT, sizeof(e), &e, NULL));
	program = build(c, device);
	kernels(program, device, &grow, &look);
	MAKE(m, clCreateBuffer(c, CL_MEM_READ_WRITE, N * sizeof(int), NULL, &e));
	buffers(c, q, grow, m);
	if (beside)
		tour(device, 0);
	images(c, second, look, m);
	events(c, q, m);
	shared(c, second, grow);
	OK(clFinish(second));
	OK(clEnqueueReadBuffer(q, m, CL_TRUE, 0, sizeof(data), data, 0, NULL, NULL));
	printf("end %08x\n", hash(data, sizeof(data)));
	OK(clEnqueueReadBuffer(q, begun, CL_TRUE, 0, sizeof(data), data, 0, NULL, NULL));
	printf("begun %08x\n", hash(data, sizeof(data)));
	OK(clReleaseMemObject(m));
	OK(clReleaseMemObject(begun));
	OK(clReleaseKernel(grow));
	OK(clReleaseKernel(look));
	OK(clReleaseProgram(program));
	OK(clReleaseCommandQueue(second));
	OK(clReleaseCommandQueue(q));
	OK(clReleaseContext(c));
}

/* Two parts of the device, in a context of both and in one of the second, which is divided no more.
 */
static void divided(cl_device_id device)
{
	cl_device_partition_property counts[] = {CL_DEVICE_PARTITION_BY_COUNTS, 1, 1,
						 CL_DEVICE_PARTITION_BY_COUNTS_LIST_END, 0};
	cl_device_partition_property equally[] = {CL_DEVICE_PARTITION_EQUALLY, 1, 0};
	cl_device_id part[2], more[64], of;
	cl_context both, one;
	cl_command_queue q[2], alone;
	cl_program program;
	cl_kernel grow[2];
	cl_mem m, n;
	size_t all = N;
	static int data[N];
	cl_uint units, count, k = 3;
	cl_int e;

	OK(clCreateSubDevices(device, equally, 64, more, &count));
	OK(clCreateSubDevices(device, counts, 2, part, NULL));
	for (cl_uint i = 0; i < count; i++) /* their numbers are given to other objects */
		OK(clReleaseDevice(more[i]));
	MAKE(both, clCreateContext(NULL, 2, part, NULL, NULL, &e));
	MAKE(one, clCreateContext(NULL, 1, &part[1], NULL, NULL, &e));
	for (int i = 0; i < 2; i++)
		MAKE(q[i], clCreateCommandQueue(both, part[i], 0, &e));
	MAKE(alone, clCreateCommandQueue(one, part[1], 0, &e));
	for (int i = 0; i < 2; i++) {
		program = build(i ? one : both, part[1]);
		MAKE(grow[i], clCreateKernel(program, "grow", &e));
		OK(clReleaseProgram(program));
	}
	MAKE(m, clCreateBuffer(both, CL_MEM_READ_WRITE, N * sizeof(int), NULL, &e));
	MAKE(n, clCreateBuffer(one, CL_MEM_READ_WRITE, N * sizeof(int), NULL, &e));
	OK(clEnqueueFillBuffer(q[0], m, &k, sizeof(k), 0, N * sizeof(int), 0, NULL, NULL));
	OK(clEnqueueFillBuffer(alone, n, &k, sizeof(k), 0, N * sizeof(int), 0, NULL, NULL));
	OK(clFinish(q[0]));
	OK(clSetKernelArg(grow[0], 0, sizeof(m), &m));
	OK(clSetKernelArg(grow[1], 0, sizeof(n), &n));
	for (int s = 0; s < 3; s++) {
		for (int i = 0; i < 2; i++)
			OK(clSetKernelArg(grow[i], 1, sizeof(s), &s));
		OK(clEnqueueNDRangeKernel(q[s % 2], grow[0], 1, NULL, &all, NULL, 0, NULL, NULL));
		OK(clFinish(q[s % 2]));
		OK(clEnqueueNDRangeKernel(alone, grow[1], 1, NULL, &all, NULL, 0, NULL, NULL));
	}
	for (int i = 0; i < 2; i++) {
		OK(clGetCommandQueueInfo(q[i], CL_QUEUE_DEVICE, sizeof(of), &of, NULL));
		CHECK(of == part[i]);
		OK(clGetDeviceInfo(of, CL_DEVICE_MAX_COMPUTE_UNITS, sizeof(units), &units, NULL));
		OK(clEnqueueReadBuffer(q[i], m, CL_TRUE, 0, sizeof(data), data, 0, NULL, NULL));
		printf("part of %u: %08x\n", units, hash(data, sizeof(data)));
	}
	OK(clEnqueueReadBuffer(alone, n, CL_TRUE, 0, sizeof(data), data, 0, NULL, NULL));
	printf("alone: %08x\n", hash(data, sizeof(data)));
	OK(clGetDeviceInfo(part[1], CL_DEVICE_PARENT_DEVICE, sizeof(of), &of, NULL));
	CHECK(of == device);
	for (int i = 0; i < 2; i++) {
		OK(clReleaseDevice(part[i]));
		OK(clReleaseCommandQueue(q[i]));
		OK(clReleaseKernel(grow[i]));
	}
	OK(clReleaseCommandQueue(alone));
	OK(clReleaseMemObject(m));
	OK(clReleaseMemObject(n));
	OK(clReleaseContext(one));
	OK(clReleaseContext(both));
}

int main(int argc, char **argv)
{
	cl_platform_id platform;
	cl_device_id device;
	char name[256];

	last = argc > 1 ? atoi(argv[1]) : 0;
	OK(clGetPlatformIDs(1, &platform, NULL));
	OK(clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof(name), name, NULL));
	OK(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL));
	OK(clGetDeviceInfo(device, CL_DEVICE_NAME, sizeof(name), name, NULL));
	if (argc > 2)
		divided(device);
	else
		tour(device, 1);
	if (last < 0)
		printf("calls %d\n", calls);
	return 0;
}
