/* SPDX-License-Identifier: BSD-3-Clause */
/* What the program has released. ocl_released wrong: handles whose last reference is gone while
 * commands still need the objects, in each call that takes one: a line a call, with its code.
 * ocl_released kept: what the program has released but may still ask for, because other objects
 * keep it: contexts, programs, parents of parts of memory; used, retained again.
 * ocl_released beside: a thread releases a buffer, and a queue whose command still runs, while
 * another one waits for data. */
#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { N = 256 };

static const char source[] =
    "__kernel void grow(__global int *a, __global const int *b) {\n"
    "  size_t i = get_global_id(0); a[i] = a[i] * 3 + b[i] + 1; }\n"
    "__kernel void look(read_only image2d_t p, sampler_t s, __global int *a) {\n"
    "  int i = get_global_id(0); a[i] += read_imagei(p, s, (int2)(i % 8, i / 8 % 8)).x; }\n"
    "__kernel void drag(__global volatile int *a, int n) {\n"
    "  size_t i = get_global_id(0); while (n-- > 0) a[i] = a[i] * 5 + 1; }\n";

static const cl_image_format format = {CL_R, CL_SIGNED_INT32};
static const cl_image_desc shape = {
    .image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = 8, .image_height = 8};

static cl_device_id device;
static cl_context context;
static cl_command_queue queue;
static cl_program program;
static cl_int code;

#define OK(call)                                                                                   \
	do {                                                                                       \
		cl_int ok_ = (call);                                                               \
		if (ok_ != CL_SUCCESS) {                                                           \
			printf("failed: %d in line %d\n", ok_, __LINE__);                          \
			exit(3);                                                                   \
		}                                                                                  \
	} while (0)
#define MAKE(what, call)                                                                           \
	do {                                                                                       \
		(what) = (call);                                                                   \
		OK(code);                                                                          \
	} while (0)
#define SAY(call) printf("%d " #call "\n", (int)(call))
#define SAY_CODE(call)                                                                             \
	do {                                                                                       \
		void *made = (call);                                                               \
		printf("%d %d " #call "\n", made != NULL, code);                                   \
	} while (0)

static void set_up(void)
{
	const char *text = source;
	cl_platform_id platform;

	OK(clGetPlatformIDs(1, &platform, NULL));
	OK(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL));
	MAKE(context, clCreateContext(NULL, 1, &device, NULL, NULL, &code));
	MAKE(queue, clCreateCommandQueue(context, device, 0, &code));
	MAKE(program, clCreateProgramWithSource(context, 1, &text, NULL, &code));
	OK(clBuildProgram(program, 0, NULL, "-cl-kernel-arg-info", NULL, NULL));
}

static cl_mem buffer(void)
{
	static int data[N];
	cl_mem m;

	for (int i = 0; i < N; i++)
		data[i] = i;
	MAKE(m, clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, sizeof(data),
			       data, &code));
	return m;
}

static void wrong(void)
{
	static int host[N];
	size_t at[3] = {0}, box[3] = {4, 4, 1}, all = N, pitch;
	cl_image_desc of = {.image_type = CL_MEM_OBJECT_IMAGE1D_BUFFER, .image_width = 16};
	cl_buffer_region part = {0, 64};
	cl_mem a = buffer(), b = buffer(), image, list[2];
	cl_kernel grow, look;
	cl_sampler s;
	cl_event e;

	MAKE(image, clCreateImage(context, CL_MEM_READ_WRITE, &format, &shape, NULL, &code));
	MAKE(s, clCreateSampler(context, CL_FALSE, CL_ADDRESS_CLAMP_TO_EDGE, CL_FILTER_NEAREST,
				&code));
	MAKE(grow, clCreateKernel(program, "grow", &code));
	MAKE(look, clCreateKernel(program, "look", &code));
	OK(clSetKernelArg(look, 0, sizeof(image), &image));
	OK(clSetKernelArg(look, 1, sizeof(s), &s));
	OK(clSetKernelArg(look, 2, sizeof(a), &a));
	OK(clEnqueueNDRangeKernel(queue, look, 1, NULL, &all, NULL, 0, NULL, NULL));
	OK(clSetKernelArg(grow, 0, sizeof(a), &a));
	OK(clSetKernelArg(grow, 1, sizeof(b), &b));
	OK(clEnqueueNDRangeKernel(queue, grow, 1, NULL, &all, NULL, 0, NULL, NULL));
	OK(clEnqueueReadBuffer(queue, a, CL_FALSE, 0, sizeof(host), host, 0, NULL, &e));
	OK(clReleaseMemObject(a));
	OK(clReleaseMemObject(image));
	OK(clReleaseSampler(s));
	OK(clReleaseKernel(look));
	OK(clReleaseEvent(e));
	list[0] = b;
	list[1] = a;
	SAY(clRetainMemObject(a));
	SAY(clReleaseMemObject(a));
	SAY(clGetMemObjectInfo(a, CL_MEM_SIZE, sizeof(pitch), &pitch, NULL));
	SAY(clSetMemObjectDestructorCallback(a, (void (*)(cl_mem, void *))wrong, NULL));
	SAY(clGetImageInfo(image, CL_IMAGE_WIDTH, sizeof(pitch), &pitch, NULL));
	SAY(clEnqueueReadBuffer(queue, a, CL_TRUE, 0, 64, host, 0, NULL, NULL));
	SAY(clEnqueueWriteBuffer(queue, a, CL_FALSE, 0, 64, host, 0, NULL, NULL));
	SAY(clEnqueueReadBufferRect(queue, a, CL_TRUE, at, at, box, 0, 0, 0, 0, host, 0, NULL,
				    NULL));
	SAY(clEnqueueWriteBufferRect(queue, a, CL_TRUE, at, at, box, 0, 0, 0, 0, host, 0, NULL,
				     NULL));
	SAY(clEnqueueCopyBuffer(queue, a, b, 0, 0, 64, 0, NULL, NULL));
	SAY(clEnqueueCopyBuffer(queue, b, a, 0, 0, 64, 0, NULL, NULL));
	SAY(clEnqueueCopyBufferRect(queue, b, a, at, at, box, 0, 0, 0, 0, 0, NULL, NULL));
	SAY(clEnqueueFillBuffer(queue, a, host, 4, 0, 64, 0, NULL, NULL));
	SAY_CODE(clEnqueueMapBuffer(queue, a, CL_TRUE, CL_MAP_READ, 0, 64, 0, NULL, NULL, &code));
	SAY(clEnqueueUnmapMemObject(queue, a, host, 0, NULL, NULL));
	SAY(clEnqueueMigrateMemObjects(queue, 2, list, 0, 0, NULL, NULL));
	SAY_CODE(clCreateSubBuffer(a, 0, CL_BUFFER_CREATE_TYPE_REGION, &part, &code));
	of.mem_object = a;
	SAY_CODE(clCreateImage(context, CL_MEM_READ_WRITE, &format, &of, NULL, &code));
	SAY(clEnqueueReadImage(queue, image, CL_TRUE, at, box, 0, 0, host, 0, NULL, NULL));
	SAY(clEnqueueWriteImage(queue, image, CL_TRUE, at, box, 0, 0, host, 0, NULL, NULL));
	SAY(clEnqueueFillImage(queue, image, host, at, box, 0, NULL, NULL));
	SAY(clEnqueueCopyImageToBuffer(queue, image, b, at, box, 0, 0, NULL, NULL));
	SAY(clEnqueueCopyBufferToImage(queue, b, image, 0, at, box, 0, NULL, NULL));
	SAY_CODE(clEnqueueMapImage(queue, image, CL_TRUE, CL_MAP_READ, at, box, &pitch, NULL, 0,
				   NULL, NULL, &code));
	SAY(clSetKernelArg(grow, 0, sizeof(a), &a));
	SAY(clRetainSampler(s));
	SAY(clReleaseSampler(s));
	SAY(clGetSamplerInfo(s, CL_SAMPLER_FILTER_MODE, sizeof(pitch), &pitch, NULL));
	SAY(clRetainKernel(look));
	SAY(clReleaseKernel(look));
	SAY(clSetKernelArg(look, 2, sizeof(b), &b));
	SAY(clEnqueueNDRangeKernel(queue, look, 1, NULL, &all, NULL, 0, NULL, NULL));
	SAY(clEnqueueTask(queue, look, 0, NULL, NULL));
	SAY(clGetKernelInfo(look, CL_KERNEL_NUM_ARGS, sizeof(code), &code, NULL));
	SAY(clGetKernelWorkGroupInfo(look, device, CL_KERNEL_WORK_GROUP_SIZE, sizeof(pitch), &pitch,
				     NULL));
	SAY_CODE(clCloneKernel(look, &code));
	SAY(clRetainEvent(e));
	SAY(clReleaseEvent(e));
	SAY(clWaitForEvents(1, &e));
	SAY(clGetEventInfo(e, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(code), &code, NULL));
	SAY(clGetEventProfilingInfo(e, CL_PROFILING_COMMAND_END, sizeof(cl_ulong), host, NULL));
	SAY(clEnqueueMarkerWithWaitList(queue, 1, &e, NULL));
	SAY(clEnqueueCopyBuffer(queue, b, b, 0, 128, 64, 1, &e, NULL));
	OK(clReleaseKernel(grow));
	OK(clReleaseProgram(program));
	SAY(clRetainProgram(program));
	SAY(clGetProgramInfo(program, CL_PROGRAM_NUM_DEVICES, sizeof(code), &code, NULL));
	SAY_CODE(clCreateKernel(program, "grow", &code));
	/* nothing of this has touched what is there */
	OK(clFinish(queue));
	OK(clEnqueueReadBuffer(queue, b, CL_TRUE, 0, sizeof(host), host, 0, NULL, NULL));
	printf("read %d %d %d\n", host[0], host[100], host[255]);
}

/* All that is made by way of them must be as good as anything else. */
static void kept(void)
{
	int data[N], sum = 0;
	size_t all = N;
	cl_buffer_region half = {512, 512};
	cl_mem whole = buffer(), part, again, more, b = buffer();
	cl_context c;
	cl_program p;
	cl_kernel k, other;

	MAKE(part, clCreateSubBuffer(whole, 0, CL_BUFFER_CREATE_TYPE_REGION, &half, &code));
	OK(clReleaseMemObject(whole));
	MAKE(k, clCreateKernel(program, "grow", &code));
	OK(clReleaseProgram(program));
	OK(clReleaseContext(context));
	OK(clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof(c), &c, NULL));
	context = c;
	more = buffer(); /* not retained, but there */
	OK(clRetainContext(c));
	OK(clGetKernelInfo(k, CL_KERNEL_PROGRAM, sizeof(p), &p, NULL));
	OK(clRetainProgram(p));
	OK(clReleaseKernel(k));
	MAKE(other, clCreateKernel(p, "grow", &code));
	OK(clGetMemObjectInfo(part, CL_MEM_ASSOCIATED_MEMOBJECT, sizeof(again), &again, NULL));
	OK(clRetainMemObject(again));
	OK(clReleaseMemObject(part));
	for (int i = 0; i < 20; i++) {
		OK(clSetKernelArg(other, 0, sizeof(again), i % 2 ? &more : &again));
		OK(clSetKernelArg(other, 1, sizeof(b), &b));
		OK(clEnqueueNDRangeKernel(queue, other, 1, NULL, &all, NULL, 0, NULL, NULL));
		OK(clEnqueueReadBuffer(queue, i % 2 ? more : again, CL_TRUE, 0, sizeof(data), data,
				       0, NULL, NULL));
		for (int j = 0; j < N; j++)
			sum = sum * 31 + data[j];
	}
	printf("sum %08x\n", (unsigned)sum);
	OK(clReleaseMemObject(again));
	OK(clReleaseMemObject(more));
	OK(clReleaseMemObject(b));
	OK(clReleaseKernel(other));
	OK(clReleaseProgram(p));
	OK(clReleaseCommandQueue(queue));
	OK(clReleaseContext(c));
}

/* ---- while another thread waits ---- */

static sem_t is_ending, may_end;

static void CL_CALLBACK ending(cl_mem m, void *data)
{
	(void)m;
	(void)data;
	sem_post(&is_ending);
	sem_wait(&may_end);
}

static void *release_buffer(void *m)
{
	OK(clReleaseMemObject(m));
	return NULL;
}

static void *release_queue(void *q)
{
	sem_post(&is_ending);
	OK(clReleaseCommandQueue(q));
	return NULL;
}

static void show(cl_mem m)
{
	int data[N], sum = 0;

	OK(clEnqueueReadBuffer(queue, m, CL_TRUE, 0, sizeof(data), data, 0, NULL, NULL));
	for (int i = 0; i < N; i++)
		sum = sum * 31 + data[i];
	printf("sum %08x\n", (unsigned)sum);
}

/* In the middle of its release other commands need it no more, and the runtime has it no more. */
static void beside_buffer(void)
{
	cl_mem a = buffer(), b = buffer();
	pthread_t t;

	OK(clSetMemObjectDestructorCallback(b, ending, NULL));
	show(b);
	pthread_create(&t, NULL, release_buffer, b);
	sem_wait(&is_ending);
	show(a);
	sem_post(&may_end);
	pthread_join(t, NULL);
	show(a);
	OK(clReleaseMemObject(a));
}

static void beside_queue(void)
{
	const int turns = 60000000;
	cl_mem a = buffer(), b = buffer();
	cl_command_queue other;
	size_t one = 1;
	pthread_t t;
	cl_kernel k;
	cl_event e;

	MAKE(other, clCreateCommandQueue(context, device, 0, &code));
	MAKE(k, clCreateKernel(program, "drag", &code));
	OK(clSetKernelArg(k, 0, sizeof(b), &b));
	OK(clSetKernelArg(k, 1, sizeof(turns), &turns));
	OK(clEnqueueNDRangeKernel(other, k, 1, NULL, &one, NULL, 0, NULL, &e));
	OK(clFlush(other));
	pthread_create(&t, NULL, release_queue, other);
	sem_wait(&is_ending);
	usleep(20000); /* the runtime finishes it first */
	show(a);
	pthread_join(t, NULL);
	OK(clWaitForEvents(1, &e));
	show(b);
	OK(clReleaseEvent(e));
	OK(clReleaseKernel(k));
	OK(clReleaseMemObject(a));
	OK(clReleaseMemObject(b));
}

static void beside(void)
{
	sem_init(&is_ending, 0, 0);
	sem_init(&may_end, 0, 0);
	beside_buffer();
	beside_queue();
}

int main(int argc, char **argv)
{
	set_up();
	if (argc > 1 && strcmp(argv[1], "wrong") == 0)
		wrong();
	else if (argc > 1 && strcmp(argv[1], "beside") == 0)
		beside();
	else
		kept();
	return 0;
}
