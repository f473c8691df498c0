/* SPDX-License-Identifier: BSD-3-Clause */
/* ocl_orders WHAT: orders that are seldom: what runs later than what was enqueued behind it, what a
 * program learns without waiting. What is printed must not depend on errors that are mended.
 *   gated      commands that wait for user events, overtaken by others that are waited for
 *   relayed    a write takes what a read brings, a read replaces it; another queue waits
 *   woven      a write takes memory of which a read brings every other row, a read the others later
 *   unmapped   data out of a mapping that ends, and is written to, before anybody waits
 *   profiled   completion learnt from an event's times, or from a later command that is running
 *   told       callbacks of commands that wait for user events, whose own events are released
 *   left       a queue is released while its command waits for a user event, and runs later
 *   outlived   events of commands that have waited for user events are used when there are new ones
 *   native     a function of the program reuses memory that a write before it has taken
 *   failed     user events are set to an error while nothing else runs in the queue
 *   bounded    more than 1 MiB is written while a command waits for a user event
 *   gates N    N user events, each with a command, set in another order than made */
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <semaphore.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>
#include "ocl_ok.h"

enum { N = 4096, BYTES = N * sizeof(int) };

static const char source[] =
    "__kernel void grow(__global int *a, int k) {\n"
    "  size_t i = get_global_id(0); a[i] = a[i] * 3 + k + (int)i; }\n"
    "__kernel void slow(__global int *a, int k) {\n"
    "  int x = a[0]; for (int i = 0; i < k; i++) x = x * 5 + i;\n"
    "  if (get_global_id(0) == 0) a[0] = x; }\n"
    "__kernel void drag(__global volatile int *a, int k) {\n"
    "  size_t i = get_global_id(0); while (k-- > 0) a[i] = a[i] * 5 + 1; }\n";

static cl_context context;
static cl_command_queue ordered, other, free_order;
static cl_kernel grow, slow, drag;
static cl_mem m, n;

static void launch(cl_command_queue q, cl_kernel k, cl_mem on, int by, cl_uint waits,
		   const cl_event *list, cl_event *event)
{
	size_t all = N;

	OK(clSetKernelArg(k, 0, sizeof(on), &on));
	OK(clSetKernelArg(k, 1, sizeof(by), &by));
	OK(clEnqueueNDRangeKernel(q, k, 1, NULL, &all, NULL, waits, list, event));
}

static unsigned hash(const void *data, size_t size)
{
	const unsigned char *p = data;
	unsigned h = 2166136261u;

	for (size_t i = 0; i < size; i++)
		h = (h ^ p[i]) * 16777619u;
	return h;
}

static void say(const char *what, cl_mem of)
{
	static int data[N];

	OK(clEnqueueReadBuffer(other, of, CL_TRUE, 0, BYTES, data, 0, NULL, NULL));
	printf("%s %08x\n", what, hash(data, BYTES));
}

static cl_event gate(void)
{
	cl_int e;
	cl_event u = clCreateUserEvent(context, &e);

	OK(e);
	return u;
}

static void gated(void)
{
	for (int round = 0; round < 4; round++) {
		cl_event u = gate(), v = gate(), a, b, c;
		static int from[N];

		for (int i = 0; i < N; i++)
			from[i] = i * (round + 2);
		/* each of these runs when the program says so */
		launch(ordered, grow, m, 1, 1, &u, &a);
		OK(clEnqueueWriteBuffer(free_order, n, CL_FALSE, 0, BYTES / 2, from, 1, &v, &b));
		/* and these before them, although they were enqueued later */
		launch(other, grow, m, 2, 0, NULL, NULL);
		launch(other, grow, n, round, 0, NULL, &c);
		OK(clWaitForEvents(1, &c));
		OK(clSetUserEventStatus(v, CL_COMPLETE));
		OK(clWaitForEvents(1, &b));
		launch(other, grow, m, 3, 0, NULL, NULL);
		OK(clFinish(other));
		OK(clSetUserEventStatus(u, CL_COMPLETE));
		OK(clWaitForEvents(1, &a));
		launch(other, grow, m, 4, 0, NULL, NULL);
		say("m", m);
		say("n", n);
		for (int i = 0; i < 5; i++)
			OK(clReleaseEvent((cl_event[]){u, v, a, b, c}[i]));
	}
}

static void relayed(void)
{
	static int data[N];

	for (int round = 0; round < 4; round++) {
		cl_event u = gate(), a;

		launch(ordered, grow, m, round, 1, &u, &a);
		OK(clEnqueueReadBuffer(other, n, CL_FALSE, 0, BYTES, data, 0, NULL, NULL));
		OK(clEnqueueWriteBuffer(other, n, CL_FALSE, 0, BYTES / 2, data + N / 2, 0, NULL,
					NULL));
		launch(other, grow, n, round, 0, NULL, NULL);
		OK(clEnqueueReadBuffer(other, n, CL_FALSE, 0, BYTES, data, 0, NULL, NULL));
		OK(clFinish(other));
		printf("data %08x\n", hash(data, BYTES));
		OK(clSetUserEventStatus(u, CL_COMPLETE));
		OK(clWaitForEvents(1, &a));
		say("m", m);
		OK(clReleaseEvent(u));
		OK(clReleaseEvent(a));
	}
}

/* Into the rows of data that begin at first: as many as n has in its first half. */
static void read_rows(int *data, size_t first, cl_bool blocking)
{
	enum { ROW = 256 };
	const size_t begin[3] = {0}, at[3] = {first * ROW}, size[3] = {ROW, BYTES / ROW / 2, 1};

	OK(clEnqueueReadBufferRect(other, n, blocking, begin, at, size, ROW, 0, 2 * ROW, 0, data, 0,
				   NULL, NULL));
}

static void woven(void)
{
	static int data[N];

	say("n", n);
	for (int round = 0; round < 4; round++) {
		launch(other, grow, n, round, 0, NULL, NULL);
		read_rows(data, 0, CL_FALSE);
		OK(clEnqueueWriteBuffer(other, m, CL_FALSE, 0, BYTES, data, 0, NULL, NULL));
		read_rows(data, 1, CL_TRUE);
		printf("data %08x\n", hash(data, BYTES));
		say("m", m);
		say("n", n);
	}
}

static void unmapped(void)
{
	for (int round = 0; round < 4; round++) {
		cl_int e;
		int *p = clEnqueueMapBuffer(ordered, m, CL_TRUE, CL_MAP_READ, 0, BYTES, 0, NULL,
					    NULL, &e);

		OK(e);
		OK(clEnqueueWriteBuffer(ordered, n, CL_FALSE, 0, BYTES, p, 0, NULL, NULL));
		OK(clEnqueueUnmapMemObject(ordered, m, p, 0, NULL, NULL));
		launch(ordered, grow, m, round, 0, NULL, NULL);
		launch(ordered, grow, n, round, 0, NULL, NULL);
		OK(clFinish(ordered));
		say("m", m);
		say("n", n);
		/* the device, and a read, bring to a mapping what is there when it ends */
		launch(ordered, slow, m, 20000, 0, NULL, NULL);
		p = clEnqueueMapBuffer(ordered, m, CL_FALSE, CL_MAP_READ | CL_MAP_WRITE, 0, BYTES,
				       0, NULL, NULL, &e);
		OK(e);
		OK(clEnqueueReadBuffer(ordered, n, CL_FALSE, 0, BYTES / 2, p + N / 2, 0, NULL,
				       NULL));
		OK(clEnqueueUnmapMemObject(ordered, m, p, 0, NULL, NULL));
		launch(ordered, grow, m, round, 0, NULL, NULL);
		OK(clFinish(ordered));
		say("m", m);
	}
}

static void profiled(void)
{
	static int data[N], from[N];

	for (int round = 0; round < 4; round++) {
		cl_ulong end = 0;
		cl_event e, f;
		cl_int status = CL_QUEUED;

		for (int i = 0; i < N; i++)
			from[i] = i * (round + 2);
		OK(clEnqueueWriteBuffer(ordered, n, CL_FALSE, 0, BYTES, from, 0, NULL, NULL));
		launch(ordered, grow, n, round, 0, NULL, NULL);
		OK(clEnqueueReadBuffer(ordered, n, CL_FALSE, 0, BYTES, data, 0, NULL, &e));
		OK(clFlush(ordered));
		while (clGetEventProfilingInfo(e, CL_PROFILING_COMMAND_END, sizeof(end), &end,
					       NULL) != CL_SUCCESS)
			usleep(100);
		printf("read %08x\n", hash(data, BYTES));
		memset(data, round, sizeof(data)); /* both are the program's again */
		memset(from, 7, sizeof(from));
		OK(clFinish(ordered));
		printf("own %08x\n", hash(data, BYTES));
		say("n", n);
		OK(clReleaseEvent(e));

		OK(clEnqueueReadBuffer(ordered, n, CL_FALSE, 0, BYTES, data, 0, NULL, NULL));
		launch(ordered, slow, m, 20000, 0, NULL, &f);
		OK(clFlush(ordered));
		while (status > CL_RUNNING) /* then the read before it is complete */
			OK(clGetEventInfo(f, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status),
					  &status, NULL));
		printf("read %08x\n", hash(data, BYTES));
		memset(data, round + 1, sizeof(data));
		OK(clFinish(ordered));
		printf("own %08x\n", hash(data, BYTES));
		say("m", m);
		OK(clReleaseEvent(f));
	}
}

static int reused[N];

static void CL_CALLBACK reuse(void *arg)
{
	for (int i = 0; i < N; i++)
		reused[i] = **(int **)arg + i;
}

static void native(void)
{
	static int step;
	int *at = &step;

	for (int round = 0; round < 4; round++) {
		for (int i = 0; i < N; i++)
			reused[i] = i * (round + 3);
		OK(clEnqueueWriteBuffer(ordered, n, CL_FALSE, 0, BYTES, reused, 0, NULL, NULL));
		OK(clEnqueueNativeKernel(ordered, reuse, &at, sizeof(at), 0, NULL, NULL, 0, NULL,
					 NULL));
		launch(ordered, grow, n, round, 0, NULL, NULL);
		OK(clFinish(ordered));
		say("n", n);
		step++;
	}
}

static void gates(int count)
{
	cl_event *u = calloc((size_t)count, sizeof(*u)), *a = calloc((size_t)count, sizeof(*a));

	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < count; i++) {
			u[i] = gate();
			launch(free_order, grow, m, i, 1, &u[i], &a[i]);
			if (i % 16 == 0) { /* beside them */
				launch(other, grow, n, i, 0, NULL, NULL);
				say("n", n);
			}
		}
		OK(clFlush(free_order));
		for (int k = 0; k < count; k++) { /* the last ones first, and one by one */
			int i = (count - 1 - k) ^ (count % 2 == 0 ? round : 0);

			OK(clSetUserEventStatus(u[i], CL_COMPLETE));
			OK(clWaitForEvents(1, &a[i]));
			if (k % 16 == 0) {
				launch(other, grow, n, i, 0, NULL, NULL);
				say("n", n);
			}
		}
		say("m", m);
		for (int i = 0; i < count; i++) {
			OK(clReleaseEvent(u[i]));
			OK(clReleaseEvent(a[i]));
		}
	}
	free(u);
	free(a);
}

static _Atomic bool may_run;
static sem_t was_told;

static void CL_CALLBACK tell(cl_event e, cl_int status, void *data)
{
	(void)e;
	(void)data;
	MUST(status == CL_COMPLETE && may_run);
	sem_post(&was_told);
}

static void told(void)
{
	sem_init(&was_told, 0, 0);
	for (int round = 0; round < 4; round++) {
		cl_event u = gate(), a;

		may_run = false;
		launch(free_order, grow, m, round, 1, &u, &a);
		OK(clSetEventCallback(a, CL_COMPLETE, tell, NULL));
		OK(clReleaseEvent(a));
		launch(other, grow, n, round, 0, NULL, NULL);
		say("n", n);
		may_run = true;
		OK(clSetUserEventStatus(u, CL_COMPLETE));
		OK(clReleaseEvent(u));
		OK(clFlush(free_order));
		sem_wait(&was_told);
		say("m", m);
	}
}

static void left(const cl_device_id device)
{
	for (int round = 0; round < 2; round++) {
		cl_event u = gate(), a;
		cl_command_queue q;
		cl_int e;

		say("n", n);
		q = clCreateCommandQueue(context, device, 0, &e);
		OK(e);
		launch(q, drag, m, 10000 + round, 1, &u, &a);
		OK(clReleaseCommandQueue(q));
		OK(clSetUserEventStatus(u, CL_COMPLETE));
		say("n", n); /* while that runs */
		OK(clWaitForEvents(1, &a));
		say("m", m);
		say("n", n);
		OK(clReleaseEvent(u));
		OK(clReleaseEvent(a));
	}
}

static void outlived(void)
{
	for (int round = 0; round < 3; round++) {
		cl_event u = gate(), v, a, b, c;
		cl_int status = CL_QUEUED;

		launch(ordered, grow, m, round, 1, &u, &a);
		OK(clSetUserEventStatus(u, CL_COMPLETE));
		OK(clWaitForEvents(1, &a));
		say("n", n);
		v = gate();
		launch(free_order, grow, n, round, 1, &v, &b);
		/* these don't wait for it */
		launch(ordered, grow, m, 2, 0, NULL, &c);
		OK(clWaitForEvents(1, &c));
		launch(other, grow, m, 3, 1, &a, NULL);
		say("m", m);
		OK(clSetUserEventStatus(v, CL_COMPLETE));
		OK(clWaitForEvents(1, &b));
		say("m", m);
		say("n", n);
		OK(clReleaseEvent(v));
		OK(clReleaseEvent(b));
		/* and what has run doesn't fail with it */
		v = gate();
		launch(ordered, grow, n, round, 1, &v, &b);
		OK(clSetUserEventStatus(v, -5));
		MUST(clWaitForEvents(1, &b) != CL_SUCCESS);
		say("n", n);
		OK(clGetEventInfo(a, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status,
				  NULL));
		MUST(status == CL_COMPLETE);
		launch(other, grow, m, 4, 1, &a, NULL);
		say("m", m);
		for (int i = 0; i < 5; i++)
			OK(clReleaseEvent((cl_event[]){u, v, a, b, c}[i]));
	}
}

static void failed(const cl_device_id device)
{
	for (int round = 0; round < 3; round++) {
		cl_int e, codes[3] = {0};
		cl_event u = gate(), a, b;
		cl_command_queue q = clCreateCommandQueue(
		    context, device, round > 0 ? 0 : CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, &e);

		OK(e);
		if (round > 1) {
			launch(q, grow, m, round, 0, NULL, NULL);
			OK(clFinish(q));
		}
		OK(clEnqueueMarkerWithWaitList(q, 1, &u, &a));
		OK(clEnqueueMarkerWithWaitList(q, 1, &a, &b));
		OK(clFlush(q));
		OK(clSetUserEventStatus(u, -3));
		codes[0] = clWaitForEvents(1, &b);
		OK(clGetEventInfo(a, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(codes[1]), &codes[1],
				  NULL));
		OK(clGetEventInfo(b, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(codes[2]), &codes[2],
				  NULL));
		printf("codes %d %d %d\n", codes[0], codes[1], codes[2]);
		say("m", m);
		OK(clReleaseEvent(u));
		OK(clReleaseEvent(a));
		OK(clReleaseEvent(b));
		OK(clReleaseCommandQueue(q));
	}
}

static void bounded(void)
{
	static int data[N];
	cl_event u = gate(), ran;

	say("n", n);
	launch(ordered, grow, m, 1, 1, &u, &ran);
	OK(clEnqueueWriteBuffer(other, n, CL_TRUE, 0, BYTES / 2, data, 0, NULL, NULL));
	for (int i = 0; i < 400; i++) { /* none overwrites the one before */
		size_t at = (2 + i % 2) * (BYTES / 4);

		data[0] = i;
		OK(clEnqueueWriteBuffer(other, n, CL_TRUE, at, BYTES / 4, data, 0, NULL, NULL));
	}
	OK(clSetUserEventStatus(u, CL_COMPLETE));
	OK(clWaitForEvents(1, &ran));
	for (int i = 0; i < 4; i++) {
		say("n", n);
		say("m", m);
	}
	OK(clReleaseEvent(u));
	OK(clReleaseEvent(ran));
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	cl_device_id device = first_device();
	cl_program program;
	int one = 1;
	cl_int e;

	context = clCreateContext(NULL, 1, &device, NULL, NULL, &e);
	OK(e);
	ordered = clCreateCommandQueue(context, device, CL_QUEUE_PROFILING_ENABLE, &e);
	OK(e);
	other = clCreateCommandQueue(context, device, 0, &e);
	OK(e);
	free_order =
	    clCreateCommandQueue(context, device, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, &e);
	OK(e);
	program = build_source(context, source, "");
	grow = clCreateKernel(program, "grow", &e);
	OK(e);
	slow = clCreateKernel(program, "slow", &e);
	OK(e);
	drag = clCreateKernel(program, "drag", &e);
	OK(e);
	m = clCreateBuffer(context, CL_MEM_READ_WRITE, BYTES, NULL, &e);
	OK(e);
	n = clCreateBuffer(context, CL_MEM_READ_WRITE, BYTES, NULL, &e);
	OK(e);
	OK(clEnqueueFillBuffer(other, m, &one, sizeof(one), 0, BYTES, 0, NULL, NULL));
	OK(clEnqueueFillBuffer(other, n, &one, sizeof(one), 0, BYTES, 0, NULL, NULL));
	OK(clFinish(other));
	if (strcmp(what, "gated") == 0)
		gated();
	else if (strcmp(what, "relayed") == 0)
		relayed();
	else if (strcmp(what, "woven") == 0)
		woven();
	else if (strcmp(what, "unmapped") == 0)
		unmapped();
	else if (strcmp(what, "profiled") == 0)
		profiled();
	else if (strcmp(what, "told") == 0)
		told();
	else if (strcmp(what, "left") == 0)
		left(device);
	else if (strcmp(what, "outlived") == 0)
		outlived();
	else if (strcmp(what, "native") == 0)
		native();
	else if (strcmp(what, "failed") == 0)
		failed(device);
	else if (strcmp(what, "bounded") == 0)
		bounded();
	else if (strcmp(what, "gates") == 0)
		gates(argc > 2 ? atoi(argv[2]) : 100);
	else
		return 2;
	OK(clReleaseMemObject(m));
	OK(clReleaseMemObject(n));
	OK(clReleaseKernel(grow));
	OK(clReleaseKernel(slow));
	OK(clReleaseKernel(drag));
	OK(clReleaseProgram(program));
	OK(clReleaseCommandQueue(ordered));
	OK(clReleaseCommandQueue(other));
	OK(clReleaseCommandQueue(free_order));
	OK(clReleaseContext(context));
	return 0;
}
