/* SPDX-License-Identifier: BSD-3-Clause */
/* ocl_outlived [kill]: what has outlived the runtime (it is in the group of this process) that it
 * was made in: mappings that were made after a first end, and are held, or are just ending, at
 * another one; events that were complete. Prints what the program sees of it. */
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <stdbool.h>
#include "ocl_kill.h"

enum { N = 1 << 16 };

static bool kills;

static void runtime_ends(void)
{
	if (kills)
		kill_runtime();
}

static unsigned sum(const int *p, int count)
{
	unsigned h = 0;

	for (int i = 0; i < count; i++)
		h = h * 31 + (unsigned)p[i];
	return h;
}

static void change(int *p, int count)
{
	for (int i = 0; i < count; i += 7)
		p[i] += 3 * i;
}

static void see(const char *what, cl_command_queue q, cl_mem m)
{
	static int data[N];

	OK(clEnqueueReadBuffer(q, m, CL_TRUE, 0, sizeof(data), data, 0, NULL, NULL));
	printf("%s %08x\n", what, sum(data, N));
}

static int *mapped(cl_command_queue q, cl_mem m, size_t from, size_t bytes)
{
	cl_int e;
	int *p;

	MAKE(p, clEnqueueMapBuffer(q, m, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, from, bytes, 0, NULL,
				   NULL, &e));
	return p;
}

/* Of all of m, and of a part of it. */
static void buffers(cl_context c, cl_command_queue q, cl_mem_flags flags)
{
	static int first[N];
	cl_buffer_region half = {2 * N, 2 * N};
	int *whole, *some, one = 1;
	cl_mem m, part;
	cl_int e;

	for (int i = 0; i < N; i++)
		first[i] = i * i;
	MAKE(m, clCreateBuffer(c, flags | CL_MEM_COPY_HOST_PTR, sizeof(first), first, &e));
	MAKE(part, clCreateSubBuffer(m, 0, CL_BUFFER_CREATE_TYPE_REGION, &half, &e));
	runtime_ends();
	whole = mapped(q, m, 0, N);
	some = mapped(q, part, 64, 512);
	change(whole, N / 4);
	change(some, 128);
	runtime_ends();
	OK(clFinish(q));
	printf("held %08x %08x\n", sum(whole, N / 4), sum(some, 128));
	change(whole, N / 4);
	OK(clEnqueueUnmapMemObject(q, part, some, 0, NULL, NULL));
	OK(clEnqueueUnmapMemObject(q, m, whole, 0, NULL, NULL));
	see("ended", q, m);
	whole = mapped(q, m, N, N);
	change(whole, N / 4);
	runtime_ends();
	OK(clEnqueueUnmapMemObject(q, m, whole, 0, NULL, NULL));
	OK(clEnqueueFillBuffer(q, m, &one, sizeof(one), 0, 64, 0, NULL, NULL));
	see("ending", q, m);
	OK(clReleaseMemObject(part));
	OK(clReleaseMemObject(m));
}

static void image(cl_context c, cl_command_queue q)
{
	static const cl_image_format format = {CL_R, CL_SIGNED_INT32};
	static const cl_image_desc shape = {
	    .image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = 64, .image_height = 64};
	size_t origin[3] = {0}, region[3] = {64, 64, 1}, pitch;
	int colour[4] = {9}, data[64 * 64], *p;
	cl_mem m;
	cl_int e;

	MAKE(m, clCreateImage(c, CL_MEM_READ_WRITE, &format, &shape, NULL, &e));
	OK(clEnqueueFillImage(q, m, colour, origin, region, 0, NULL, NULL));
	for (int i = 0; i < 2; i++) {
		runtime_ends();
		MAKE(p, clEnqueueMapImage(q, m, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, origin, region,
					  &pitch, NULL, 0, NULL, NULL, &e));
		change(p, 64);
		runtime_ends();
		if (i == 0)
			OK(clFinish(q));
		OK(clEnqueueUnmapMemObject(q, m, p, 0, NULL, NULL));
		OK(clEnqueueReadImage(q, m, CL_TRUE, origin, region, 0, 0, data, 0, NULL, NULL));
		printf("image %08x\n", sum(data, 64 * 64));
	}
	OK(clReleaseMemObject(m));
}

static void CL_CALLBACK called(cl_event event, cl_int status, void *data)
{
	__atomic_fetch_add((int *)data, status == CL_COMPLETE ? 1 : 100, __ATOMIC_SEQ_CST);
}

/* Callbacks for what was complete before. */
static void events(cl_context c, cl_command_queue q)
{
	static int count;
	cl_event done, set;
	cl_int e;

	MAKE(set, clCreateUserEvent(c, &e));
	OK(clSetUserEventStatus(set, CL_COMPLETE));
	OK(clEnqueueMarkerWithWaitList(q, 0, NULL, &done));
	OK(clFinish(q));
	runtime_ends();
	OK(clFinish(q));
	OK(clSetEventCallback(done, CL_COMPLETE, called, &count));
	OK(clSetEventCallback(set, CL_COMPLETE, called, &count));
	for (int i = 0; i < 5000 && __atomic_load_n(&count, __ATOMIC_SEQ_CST) < 2; i++)
		usleep(1000);
	printf("called %d\n", __atomic_load_n(&count, __ATOMIC_SEQ_CST));
	OK(clReleaseEvent(done));
	OK(clReleaseEvent(set));
}

int main(int argc, char **argv)
{
	cl_platform_id platform;
	cl_device_id device;
	cl_command_queue q;
	cl_context c;
	cl_int e;

	kills = argc > 1;
	OK(clGetPlatformIDs(1, &platform, NULL));
	OK(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL));
	MAKE(c, clCreateContext(NULL, 1, &device, NULL, NULL, &e));
	MAKE(q, clCreateCommandQueueWithProperties(c, device, NULL, &e));
	buffers(c, q, CL_MEM_READ_WRITE);
	buffers(c, q, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR);
	image(c, q);
	events(c, q);
	OK(clReleaseCommandQueue(q));
	OK(clReleaseContext(c));
	return 0;
}
