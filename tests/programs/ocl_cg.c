/* SPDX-License-Identifier: BSD-3-Clause */
/* Conjugate gradients for a Laplacian of five points, as a program would do it that wants to keep a
 * device busy: an out-of-order queue in which events alone order the commands, reads that do not
 * block, events retained and released as they go. ocl_cg [-t THREADS] [-s] [-g FILE] STEPS prints
 * the square of the residual of each step, bit by bit, and what the solution sums to.
 *   -t: so many threads, each with a context and a problem of its own, at the same time
 *   -s: all of them in one context, each with its own queue and kernels
 *   -g: when all is computed it waits until there is FILE */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>
#include "ocl_ok.h"

enum { SIDE = 96, N = SIDE * SIDE, GROUP = 64, PARTS = N / GROUP, THREADS_MAX = 8 };

static const char source[] =
    "__kernel void laplace(__global const float *p, __global float *q, int side) {\n"
    "  int x = get_global_id(0) % side, y = get_global_id(0) / side, i = get_global_id(0);\n"
    "  float s = 4.25f * p[i];\n"
    "  if (x > 0) s -= p[i - 1];\n"
    "  if (x < side - 1) s -= p[i + 1];\n"
    "  if (y > 0) s -= p[i - side];\n"
    "  if (y < side - 1) s -= p[i + side];\n"
    "  q[i] = s; }\n"
    "__kernel void dot_parts(__global const float *a, __global const float *b, __global float "
    "*parts,\n"
    "                        __local float *tmp) {\n"
    "  int l = get_local_id(0);\n"
    "  tmp[l] = a[get_global_id(0)] * b[get_global_id(0)];\n"
    "  for (int n = get_local_size(0) / 2; n > 0; n /= 2) {\n"
    "    barrier(CLK_LOCAL_MEM_FENCE);\n"
    "    if (l < n) tmp[l] += tmp[l + n]; }\n"
    "  if (l == 0) parts[get_group_id(0)] = tmp[0]; }\n"
    "__kernel void add_times(__global float *y, __global const float *x, float k) {\n"
    "  int i = get_global_id(0); y[i] += k * x[i]; }\n"
    "__kernel void times_add(__global float *p, __global const float *r, float k) {\n"
    "  int i = get_global_id(0); p[i] = r[i] + k * p[i]; }\n";

struct solver {
	cl_context context;
	cl_command_queue queue;
	cl_kernel laplace, dot, add, scale;
	cl_mem x, r, p, q, parts[2];
	int steps, seed;
	float *residuals, sum;
};

static cl_device_id device;

static cl_context make_context(void)
{
	cl_int e;
	cl_context c = clCreateContext(NULL, 1, &device, NULL, NULL, &e);

	OK(e);
	return c;
}

static cl_kernel make_kernel(cl_program p, const char *name)
{
	cl_int e;
	cl_kernel k = clCreateKernel(p, name, &e);

	OK(e);
	return k;
}

static cl_mem make_buffer(cl_context c, cl_mem_flags flags, size_t size, void *host)
{
	cl_int e;
	cl_mem m = clCreateBuffer(c, flags, size, host, &e);

	OK(e);
	return m;
}

static void make(struct solver *s)
{
	static float b[THREADS_MAX][N];
	float *mine = b[s->seed], zero = 0;
	cl_event filled;
	cl_program p;
	cl_int e;

	s->queue =
	    clCreateCommandQueue(s->context, device, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, &e);
	OK(e);
	p = build_source(s->context, source, "-cl-std=CL1.2");
	s->laplace = make_kernel(p, "laplace");
	s->dot = make_kernel(p, "dot_parts");
	s->add = make_kernel(p, "add_times");
	s->scale = make_kernel(p, "times_add");
	OK(clReleaseProgram(p));
	for (int i = 0; i < N; i++)
		mine[i] = (float)((i * 37 + s->seed * 11) % 101) / 101;
	s->x = make_buffer(s->context, CL_MEM_READ_WRITE, sizeof(*b), NULL);
	s->r = make_buffer(s->context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, sizeof(*b), mine);
	s->p = make_buffer(s->context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, sizeof(*b), mine);
	s->q = make_buffer(s->context, CL_MEM_HOST_NO_ACCESS, sizeof(*b), NULL);
	for (int i = 0; i < 2; i++)
		s->parts[i] =
		    make_buffer(s->context, CL_MEM_HOST_READ_ONLY, PARTS * sizeof(float), NULL);
	OK(clEnqueueFillBuffer(s->queue, s->x, &zero, sizeof(zero), 0, sizeof(*b), 0, NULL,
			       &filled));
	OK(clWaitForEvents(1, &filled));
	OK(clReleaseEvent(filled));
}

static cl_event launch(struct solver *s, cl_kernel k, cl_uint waits, const cl_event *wait)
{
	size_t global = N, local = GROUP;
	cl_event done;

	OK(clEnqueueNDRangeKernel(s->queue, k, 1, NULL, &global, &local, waits, wait, &done));
	return done;
}

static void give(cl_kernel k, cl_mem a, cl_mem b)
{
	OK(clSetKernelArg(k, 0, sizeof(a), &a));
	OK(clSetKernelArg(k, 1, sizeof(b), &b));
}

/* The parts of a . b come to the host in `to`; the event: when they have. */
static cl_event dot(struct solver *s, cl_mem a, cl_mem b, int which, float *to, cl_event after)
{
	cl_event launched, came;

	give(s->dot, a, b);
	OK(clSetKernelArg(s->dot, 2, sizeof(cl_mem), &s->parts[which]));
	OK(clSetKernelArg(s->dot, 3, GROUP * sizeof(float), NULL));
	launched = launch(s, s->dot, after ? 1 : 0, after ? &after : NULL);
	OK(clEnqueueReadBuffer(s->queue, s->parts[which], CL_FALSE, 0, PARTS * sizeof(float), to, 1,
			       &launched, &came));
	OK(clReleaseEvent(launched));
	return came;
}

static float wait_and_sum(cl_event *came, const float *parts)
{
	float sum = 0;

	OK(clWaitForEvents(1, came));
	OK(clReleaseEvent(*came));
	for (int i = 0; i < PARTS; i++)
		sum += parts[i];
	return sum;
}

static void step(struct solver *s, float *rr, float *residual)
{
	cl_int side = SIDE;
	float parts[2][PARTS], pq, k, minus, next;
	cl_event multiplied, came, moved[2], scaled;

	give(s->laplace, s->p, s->q);
	OK(clSetKernelArg(s->laplace, 2, sizeof(side), &side));
	multiplied = launch(s, s->laplace, 0, NULL);
	came = dot(s, s->p, s->q, 0, parts[0], multiplied);
	OK(clReleaseEvent(multiplied));
	pq = wait_and_sum(&came, parts[0]);
	k = *rr / pq;
	minus = -k;
	give(s->add, s->x, s->p); /* both at once: they touch different memory */
	OK(clSetKernelArg(s->add, 2, sizeof(k), &k));
	moved[0] = launch(s, s->add, 0, NULL);
	give(s->add, s->r, s->q);
	OK(clSetKernelArg(s->add, 2, sizeof(minus), &minus));
	moved[1] = launch(s, s->add, 0, NULL);
	came = dot(s, s->r, s->r, 1, parts[1], moved[1]);
	OK(clFlush(s->queue));
	next = wait_and_sum(&came, parts[1]);
	k = next / *rr;
	give(s->scale, s->p, s->r);
	OK(clSetKernelArg(s->scale, 2, sizeof(k), &k));
	scaled = launch(s, s->scale, 2, moved); /* reads x's p no earlier than x has it */
	OK(clEnqueueBarrierWithWaitList(s->queue, 1, &scaled, NULL));
	OK(clReleaseEvent(moved[0]));
	OK(clReleaseEvent(moved[1]));
	OK(clReleaseEvent(scaled));
	*residual = *rr = next;
}

static void *solve(void *data)
{
	struct solver *s = data;
	float parts[PARTS], rr, x[N];
	cl_event came;
	cl_mem all[6];

	make(s);
	came = dot(s, s->r, s->r, 0, parts, NULL);
	rr = wait_and_sum(&came, parts);
	for (int i = 0; i < s->steps; i++)
		step(s, &rr, &s->residuals[i]);
	OK(clEnqueueReadBuffer(s->queue, s->x, CL_TRUE, 0, sizeof(x), x, 0, NULL, NULL));
	for (int i = 0; i < N; i++)
		s->sum += x[i];
	memcpy(all, (cl_mem[]){s->x, s->r, s->p, s->q, s->parts[0], s->parts[1]}, sizeof(all));
	for (int i = 0; i < 6; i++)
		OK(clReleaseMemObject(all[i]));
	OK(clReleaseKernel(s->laplace));
	OK(clReleaseKernel(s->dot));
	OK(clReleaseKernel(s->add));
	OK(clReleaseKernel(s->scale));
	OK(clReleaseCommandQueue(s->queue));
	OK(clReleaseContext(s->context));
	return NULL;
}

int main(int argc, char **argv)
{
	static struct solver solvers[THREADS_MAX];
	pthread_t threads[THREADS_MAX];
	int count = 1, shared = 0, at = 1;
	const char *go = NULL;
	cl_context one = NULL;

	for (; at < argc && argv[at][0] == '-'; at++) {
		shared |= strcmp(argv[at], "-s") == 0;
		if (strcmp(argv[at], "-t") == 0 && at + 1 < argc)
			count = atoi(argv[++at]);
		else if (strcmp(argv[at], "-g") == 0 && at + 1 < argc)
			go = argv[++at];
	}
	if (count < 1 || count > THREADS_MAX || at >= argc)
		return 2;
	device = first_device();
	for (int i = 0; i < count; i++) {
		struct solver *s = &solvers[i];

		s->steps = atoi(argv[at]);
		s->seed = i;
		s->residuals = calloc((size_t)s->steps, sizeof(float));
		if (shared && one)
			OK(clRetainContext(one));
		else
			one = make_context();
		s->context = one;
	}
	for (int i = 0; i < count; i++)
		if (pthread_create(&threads[i], NULL, solve, &solvers[i]))
			return 2;
	for (int i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	while (go && access(go, F_OK) != 0)
		usleep(2000);
	for (int i = 0; i < count; i++) {
		for (int k = 0; k < solvers[i].steps; k++) {
			uint32_t bits;

			memcpy(&bits, &solvers[i].residuals[k], sizeof(bits));
			printf("%d %d %08x %g\n", i, k, bits, solvers[i].residuals[k]);
		}
		printf("%d sum %.9g\n", i, solvers[i].sum);
		free(solvers[i].residuals);
	}
	return 0;
}
