/* SPDX-License-Identifier: BSD-3-Clause */
/* ocl_gates K: commands of all kinds that wait for events which the program sets later, some of
 * them to an error; the process that has the OpenCL runtime is killed before the K-th call, with 0
 * never. What is printed must not depend on K. With -1 it says how many calls there are. */
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <pthread.h>
#include <stdint.h>
#include "ocl_kill.h"

enum { N = 4096, BYTES = N * sizeof(int) };

static const char source[] = "__kernel void grow(__global int *a, int k) {\n"
			     "  size_t i = get_global_id(0); a[i] = a[i] * 3 + k + (int)i; }\n";

static cl_context context;
static cl_command_queue ordered, other, free_order;
static cl_kernel grow;
static cl_mem m, n, z;
static _Atomic int called[3]; /* submitted: 0, complete: 1, failed: 2 */

static unsigned hash(const void *data, size_t size)
{
	const unsigned char *p = data;
	unsigned h = 2166136261u;

	for (size_t i = 0; i < size; i++)
		h = (h ^ p[i]) * 16777619u;
	return h;
}

static void CL_CALLBACK count(cl_event e, cl_int status, void *data)
{
	called[status == CL_COMPLETE ? 1 : 2]++;
}

static void CL_CALLBACK count_submitted(cl_event e, cl_int status, void *data)
{
	called[0]++;
}

static cl_event gate(void)
{
	cl_event u;
	cl_int e;

	MAKE(u, clCreateUserEvent(context, &e));
	return u;
}

static void launch(cl_command_queue q, cl_mem on, int k, cl_uint waits, const cl_event *list,
		   cl_event *event)
{
	size_t all = N;

	OK(clSetKernelArg(grow, 0, sizeof(on), &on));
	OK(clSetKernelArg(grow, 1, sizeof(k), &k));
	OK(clEnqueueNDRangeKernel(q, grow, 1, NULL, &all, NULL, waits, list, event));
}

static void say(const char *what, cl_mem of)
{
	static int data[N];

	OK(clEnqueueReadBuffer(other, of, CL_TRUE, 0, BYTES, data, 0, NULL, NULL));
	printf("  %s %08x\n", what, hash(data, BYTES));
}

/* Complete, failed, or neither. */
static int state(cl_event e)
{
	cl_int status = 99;

	OK(clGetEventInfo(e, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status, NULL));
	return status < 0 ? -1 : status > 0;
}

static void release(cl_event *list, int n_events)
{
	for (int i = 0; i < n_events; i++)
		OK(clReleaseEvent(list[i]));
}

/* Launches, transfers, markers; value: what the first event is set to. */
static void commands(int round, cl_int value)
{
	static int data[N], from[N];
	cl_event u[2] = {gate(), gate()}, a[6], both[2];

	memset(data, 0, sizeof(data));
	for (int i = 0; i < N; i++)
		from[i] = i ^ round;
	launch(ordered, m, 1, 1, &u[0], &a[0]);
	launch(ordered, m, 2, 0, NULL, &a[1]);
	OK(clEnqueueReadBuffer(ordered, m, CL_FALSE, 0, BYTES, data, 0, NULL, &a[2]));
	OK(clSetEventCallback(a[2], CL_COMPLETE, count, NULL));
	OK(clEnqueueWriteBuffer(free_order, n, CL_FALSE, 0, BYTES, from, 1, &u[1], &a[3]));
	OK(clSetEventCallback(a[3], CL_SUBMITTED, count_submitted, NULL));
	OK(clEnqueueCopyBuffer(free_order, n, n, 0, BYTES / 2, BYTES / 4, 1, &a[3], &a[4]));
	both[0] = a[4];
	both[1] = a[0];
	OK(clEnqueueMarkerWithWaitList(free_order, 2, both, &a[5]));
	OK(clFlush(ordered));
	/* beside all that */
	launch(other, z, round, 0, NULL, NULL);
	say("beside", z);
	for (int i = 0; i < 6; i++)
		CHECK(state(a[i]) == 1);
	OK(clSetUserEventStatus(u[0], value));
	before(__LINE__);
	CHECK((clWaitForEvents(1, &a[2]) < 0) == (value < 0));
	OK(clFinish(ordered));
	CHECK(state(a[0]) == (value < 0 ? -1 : 0) && state(a[1]) == state(a[2]));
	CHECK(state(a[4]) == 1);
	OK(clSetUserEventStatus(u[1], CL_COMPLETE));
	OK(clWaitForEvents(1, &a[4]));
	before(__LINE__);
	CHECK((clWaitForEvents(1, &a[5]) < 0) == (value < 0));
	printf("round %d: read %08x\n", round, hash(data, BYTES));
	say("m", m);
	say("n", n);
	release(a, 6);
	release(u, 2);
}

/* Mappings: what they show comes when the event is set, where the program was told it would. */
static void mappings(int round)
{
	cl_event u = gate(), mapped, gone;
	int *p;
	cl_int e;

	MAKE(p, clEnqueueMapBuffer(ordered, m, CL_FALSE, CL_MAP_READ | CL_MAP_WRITE, 64, 256, 1, &u,
				   &mapped, &e));
	say("beside", z);
	OK(clSetUserEventStatus(u, CL_COMPLETE));
	OK(clWaitForEvents(1, &mapped));
	printf("mapped %08x\n", hash(p, 256));
	p[round] += 7;
	OK(clReleaseEvent(u));
	u = gate();
	OK(clEnqueueUnmapMemObject(ordered, m, p, 1, &u, &gone));
	OK(clSetUserEventStatus(u, CL_COMPLETE));
	OK(clWaitForEvents(1, &gone));
	say("unmapped", m);
	release((cl_event[]){u, mapped, gone}, 3);
}

static void CL_CALLBACK freed(cl_command_queue q, cl_uint pointers, void *p[], void *data)
{
	clSVMFree(context, p[0]);
	(*(_Atomic int *)data)++;
}

static void shared(void)
{
	static _Atomic int times;
	cl_event u = gate();
	int five = 5, *p, *s, got[16];
	int shared_memory;

	before(__LINE__);
	p = clSVMAlloc(context, CL_MEM_READ_WRITE, BYTES, 0);
	s = clSVMAlloc(context, CL_MEM_READ_WRITE, BYTES, 0);
	shared_memory = p && s;
	CHECK(shared_memory);
	OK(clEnqueueSVMMemFill(ordered, p, &five, sizeof(five), BYTES, 1, &u, NULL));
	OK(clEnqueueSVMMemcpy(ordered, CL_FALSE, got, p, sizeof(got), 0, NULL, NULL));
	OK(clEnqueueSVMFree(ordered, 1, (void **)&p, NULL, NULL, 0, NULL, NULL));
	OK(clEnqueueSVMFree(ordered, 1, (void **)&s, freed, (void *)&times, 0, NULL, NULL));
	say("beside", z);
	CHECK(times == 0);
	OK(clSetUserEventStatus(u, CL_COMPLETE));
	OK(clFinish(ordered));
	for (int i = 0; i < 5000 && !times; i++)
		usleep(1000);
	printf("shared %d, freed %d\n", got[7], times);
	OK(clReleaseEvent(u));
}

struct reader {
	cl_event u;
	int data[16];
	cl_int status;
};

static void *read_later(void *arg)
{
	struct reader *r = arg;

	r->status =
	    clEnqueueReadBuffer(ordered, m, CL_TRUE, 0, sizeof(r->data), r->data, 1, &r->u, NULL);
	return NULL;
}

/* A thread is in a blocking read, or in a wait, when the runtime ends. */
static void threads(void)
{
	struct reader r = {.u = gate(), .status = 1};
	pthread_t t;

	pthread_create(&t, NULL, read_later, &r);
	usleep(50000);
	say("beside", z);
	OK(clSetUserEventStatus(r.u, CL_COMPLETE));
	pthread_join(t, NULL);
	printf("thread %d %08x\n", r.status, hash(r.data, sizeof(r.data)));
	OK(clReleaseEvent(r.u));
}

int main(int argc, char **argv)
{
	const char *text = source;
	cl_platform_id platform;
	cl_device_id device;
	cl_program program;
	int one = 1;
	cl_int e;

	last = argc > 1 ? atoi(argv[1]) : 0;
	OK(clGetPlatformIDs(1, &platform, NULL));
	OK(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL));
	MAKE(context, clCreateContext(NULL, 1, &device, NULL, NULL, &e));
	MAKE(ordered, clCreateCommandQueue(context, device, 0, &e));
	MAKE(other, clCreateCommandQueue(context, device, 0, &e));
	MAKE(free_order,
	     clCreateCommandQueue(context, device, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, &e));
	MAKE(program, clCreateProgramWithSource(context, 1, &text, NULL, &e));
	OK(clBuildProgram(program, 0, NULL, "", NULL, NULL));
	MAKE(grow, clCreateKernel(program, "grow", &e));
	MAKE(m, clCreateBuffer(context, CL_MEM_READ_WRITE, BYTES, NULL, &e));
	MAKE(n, clCreateBuffer(context, CL_MEM_READ_WRITE, BYTES, NULL, &e));
	MAKE(z, clCreateBuffer(context, CL_MEM_READ_WRITE, BYTES, NULL, &e));
	OK(clEnqueueFillBuffer(other, m, &one, sizeof(one), 0, BYTES, 0, NULL, NULL));
	OK(clEnqueueFillBuffer(other, n, &one, sizeof(one), 0, BYTES, 0, NULL, NULL));
	OK(clEnqueueFillBuffer(other, z, &one, sizeof(one), 0, BYTES, 0, NULL, NULL));
	OK(clFinish(other));
	commands(0, CL_COMPLETE);
	commands(1, -5);
	commands(2, CL_COMPLETE);
	mappings(3);
	shared();
	threads();
	for (int i = 0; i < 5000 && (called[0] < 3 || called[1] < 2); i++)
		usleep(1000);
	printf("called: submitted %d, complete %d\n", called[0],
	       called[1]); /* PoCL 3.1 tells nobody of a failure */
	OK(clReleaseMemObject(m));
	OK(clReleaseMemObject(n));
	OK(clReleaseMemObject(z));
	OK(clReleaseKernel(grow));
	OK(clReleaseProgram(program));
	OK(clReleaseCommandQueue(ordered));
	OK(clReleaseCommandQueue(other));
	OK(clReleaseCommandQueue(free_order));
	OK(clReleaseContext(context));
	if (last < 0)
		printf("calls %d\n", calls);
	return 0;
}
