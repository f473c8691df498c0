/* SPDX-License-Identifier: BSD-3-Clause */
/* Iterates over buffers with most kinds of commands, and prints checksums of what comes back: the
 * same with and without errors in between. ocl_solver [-q queues] [-o] [-e] [-s seconds] STEPS
 *   -q 2: two queues, ordered by events   -o: out-of-order queues   -e: user events hold steps up
 *         (with -q 2)
 *   -m: mappings instead of writes   -f: fork in the middle   -w: wait by polling an event
 *   -d N: the context has all devices, and queues on the N-th
 *   -g FILE: the last fifty steps wait until there is FILE   -r: reads on while it waits so */
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <hale/opencl.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "ocl_ok.h"

enum { N = 1 << 16 };

static const char source[] =
    "__kernel void advance(__global const float *in, __global float *out, float k, int n) {\n"
    "  int i = get_global_id(0);\n"
    "  out[i] = 0.5f * in[i] + 0.25f * (in[(i + 1) % n] + in[(i + n - 1) % n]) * k;\n"
    "}\n"
    "__kernel void gather(__global float *a, __global const float *b, __global const float *c,\n"
    "                     __global const float *table, int shift) {\n"
    "  int i = get_global_id(0); a[i] = 0.5f * a[i] + (b[i] + c[i]) * table[(i + shift) % 256];\n"
    "}\n"
    "__kernel void fold(__global const float *a, __global float *part, __local float *tmp) {\n"
    "  int l = get_local_id(0);\n"
    "  tmp[l] = a[get_global_id(0)];\n"
    "  barrier(CLK_LOCAL_MEM_FENCE);\n"
    "  if (l == 0) { float s = 0; for (int i = 0; i < 64; i++) s += tmp[i];\n"
    "    part[get_group_id(0)] = s; }\n"
    "}\n";

static cl_context context;
static cl_command_queue queue[2];
static cl_kernel step_kernel, add_kernel, sum_kernel;
static cl_mem a, b, table, part, half, scratch;
static int queues = 1, out_of_order, user_events, mappings, forks, polls, reads, nth;
static float host[N], sums[N / 64];

static uint64_t mix(uint64_t h, const void *data, size_t size)
{
	const unsigned char *p = data;

	for (size_t i = 0; i < size; i++)
		h = (h ^ p[i]) * 0x100000001b3ull;
	return h;
}

static cl_kernel make(cl_program p, const char *name)
{
	cl_int e;
	cl_kernel k = clCreateKernel(p, name, &e);

	OK(e);
	return k;
}

static void set_up(void)
{
	cl_device_id device = first_device(), all[8];
	cl_platform_id platform;
	cl_uint count = 0;
	cl_program p;
	cl_int e;
	cl_buffer_region region = {N / 2 * sizeof(float), N / 2 * sizeof(float)};

	OK(clGetPlatformIDs(1, &platform, NULL));
	OK(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 8, all, &count));
	device = nth > 0 ? all[nth - 1] : device;
	context =
	    clCreateContext(NULL, nth > 0 ? count : 1, nth > 0 ? all : &device, NULL, NULL, &e);
	OK(e);
	for (int i = 0; i < 2; i++) {
		cl_queue_properties list[] = {
		    CL_QUEUE_PROPERTIES, out_of_order ? CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE : 0,
		    0};
		queue[i] = clCreateCommandQueueWithProperties(context, device, list, &e);
		OK(e);
	}
	p = build_source(context, source, "");
	step_kernel = make(p, "advance");
	add_kernel = make(p, "gather");
	sum_kernel = make(p, "fold");
	OK(clReleaseProgram(p));
	for (int i = 0; i < N; i++)
		host[i] = (float)(i % 97) / 97;
	a = clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, sizeof(host), host,
			   &e);
	OK(e);
	b = clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, sizeof(host), host, &e);
	OK(e);
	table = clCreateBuffer(context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, 1024, host, &e);
	OK(e);
	part = clCreateBuffer(context, CL_MEM_WRITE_ONLY, sizeof(sums), NULL, &e);
	OK(e);
	scratch = clCreateBuffer(context, CL_MEM_READ_WRITE, sizeof(host), NULL, &e);
	OK(e);
	OK(haleSetMemFlags(scratch, HALE_MEM_SCRATCH));
	half = clCreateSubBuffer(b, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &region, &e);
	OK(e);
}

/* New data from the host, in one of three ways. */
static void feed(int s, cl_event *done)
{
	size_t at = (size_t)(s % 8) * 1024;
	float *p;
	cl_int e;

	for (int i = 0; i < 1024; i++)
		host[i] = (float)((i * 7 + s) % 31) / 31;
	if (mappings) {
		p = clEnqueueMapBuffer(queue[0], half, CL_TRUE, CL_MAP_WRITE, at * 4, 4096, 0, NULL,
				       NULL, &e);
		OK(e);
		memcpy(p, host, 4096);
		OK(clEnqueueUnmapMemObject(queue[0], half, p, 0, NULL, done));
	} else if (s % 3 == 0) {
		size_t buffer[3] = {0, (size_t)s % 4, 0}, zero[3] = {0}, region[3] = {256, 8, 1};
		OK(clEnqueueWriteBufferRect(queue[0], half, CL_TRUE, buffer, zero, region, 512, 0,
					    256, 0, host, 0, NULL, done));
	} else {
		OK(clEnqueueWriteBuffer(queue[0], half, s % 3 == 1, at * 4, 4096, host, 0, NULL,
					done));
	}
}

static void run_step(int s)
{
	size_t global = N, local = 64;
	cl_int n = N, shift = s;
	float k = 1.0f + 0.001f * (float)(s % 10), zero = 0.125f;
	cl_event fed, gate = NULL, stepped, added, wait[2];
	cl_int e;

	feed(s, &fed);
	wait[0] = fed;
	if (user_events) {
		gate = clCreateUserEvent(context, &e);
		OK(e);
		wait[1] = gate;
	}
	OK(clSetKernelArg(step_kernel, 0, sizeof(a), &a));
	OK(clSetKernelArg(step_kernel, 1, sizeof(scratch), &scratch));
	OK(clSetKernelArg(step_kernel, 2, sizeof(k), &k));
	OK(clSetKernelArg(step_kernel, 3, sizeof(n), &n));
	OK(clEnqueueNDRangeKernel(queue[queues - 1], step_kernel, 1, NULL, &global, NULL,
				  gate ? 2 : 1, wait, &stepped));
	if (gate && s % 2) { /* an epoch closes while a command waits for the program */
		float probe;
		OK(clEnqueueReadBuffer(queue[0], table, CL_TRUE, 4, 4, &probe, 0, NULL, NULL));
		if (probe != 1.0f / 97)
			printf("wrong probe %g\n", probe);
	}
	if (gate)
		OK(clSetUserEventStatus(gate, CL_COMPLETE));
	OK(clSetKernelArg(add_kernel, 0, sizeof(a), &a));
	OK(clSetKernelArg(add_kernel, 1, sizeof(b), &b));
	OK(clSetKernelArg(add_kernel, 2, sizeof(scratch), &scratch));
	OK(clSetKernelArg(add_kernel, 3, sizeof(table), &table));
	OK(clSetKernelArg(add_kernel, 4, sizeof(shift), &shift));
	OK(clEnqueueNDRangeKernel(queue[0], add_kernel, 1, NULL, &global, NULL, 1, &stepped,
				  &added));
	OK(clEnqueueCopyBuffer(queue[0], a, b, 0, N, N, 1, &added, &wait[0]));
	OK(clEnqueueFillBuffer(queue[0], a, &zero, 4, (size_t)(s % 16) * 64, 64, 1, &wait[0],
			       &wait[1]));
	OK(clSetKernelArg(sum_kernel, 0, sizeof(a), &a));
	OK(clSetKernelArg(sum_kernel, 1, sizeof(part), &part));
	OK(clSetKernelArg(sum_kernel, 2, 64 * sizeof(float), NULL));
	clReleaseEvent(stepped);
	OK(clEnqueueNDRangeKernel(queue[0], sum_kernel, 1, NULL, &global, &local, 1, &wait[1],
				  &stepped));
	clReleaseEvent(added);
	OK(clEnqueueReadBuffer(queue[0], part, CL_FALSE, 0, sizeof(sums), sums, 1, &stepped,
			       &added));
	OK(clFlush(queue[0]));
	if (polls) {
		cl_int status = CL_QUEUED;
		while (status != CL_COMPLETE)
			OK(clGetEventInfo(added, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status),
					  &status, NULL));
	} else if (s % 2) {
		OK(clWaitForEvents(1, &added));
	} else {
		OK(clFinish(queue[0]));
	}
	clReleaseEvent(fed);
	clReleaseEvent(wait[0]);
	clReleaseEvent(wait[1]);
	clReleaseEvent(stepped);
	clReleaseEvent(added);
	if (gate)
		clReleaseEvent(gate);
}

int main(int argc, char **argv)
{
	uint64_t h = 0xcbf29ce484222325ull;
	const char *go = NULL;
	int c, steps;

	while ((c = getopt(argc, argv, "q:oemfwrd:g:")) != -1) {
		go = c == 'g' ? optarg : go;
		queues = c == 'q' ? atoi(optarg) : queues;
		nth = c == 'd' ? atoi(optarg) : nth;
		out_of_order |= c == 'o';
		user_events |= c == 'e';
		mappings |= c == 'm';
		forks |= c == 'f';
		polls |= c == 'w';
		reads |= c == 'r';
	}
	steps = optind < argc ? atoi(argv[optind]) : 10;
	set_up();
	for (int s = 0; s < steps; s++) {
		while (go && s == steps - 50 && access(go, F_OK)) {
			usleep(1000);
			if (reads)
				OK(clEnqueueReadBuffer(queue[0], table, CL_TRUE, 0, sizeof(host[0]),
						       host, 0, NULL, NULL));
		}
		run_step(s);
		h = mix(h, sums, sizeof(sums));
		printf("%d %016llx\n", s, (unsigned long long)h);
		fflush(stdout);
		if (forks && s == steps / 2) {
			pid_t child = fork();
			if (child == 0)
				exit(0); /* with exit handlers: the parent's report is not the
					    child's */
			waitpid(child, NULL, 0);
		}
	}
	OK(clEnqueueReadBuffer(queue[0], a, CL_TRUE, 0, sizeof(host), host, 0, NULL, NULL));
	h = mix(h, host, sizeof(host));
	OK(clEnqueueReadBuffer(queue[0], half, CL_TRUE, 0, sizeof(host) / 2, host, 0, NULL, NULL));
	h = mix(h, host, sizeof(host) / 2);
	printf("end %016llx\n", (unsigned long long)h);
	OK(clReleaseMemObject(half));
	OK(clReleaseMemObject(a));
	OK(clReleaseMemObject(b));
	OK(clReleaseMemObject(part));
	OK(clReleaseMemObject(scratch));
	OK(clReleaseMemObject(table));
	OK(clReleaseKernel(step_kernel));
	OK(clReleaseKernel(add_kernel));
	OK(clReleaseKernel(sum_kernel));
	OK(clReleaseCommandQueue(queue[0]));
	OK(clReleaseCommandQueue(queue[1]));
	OK(clReleaseContext(context));
	return 0;
}
