/* SPDX-License-Identifier: BSD-3-Clause */
/* ocl_rewrite again: one buffer of 4 MiB is written as a whole 100 times, by calls that block and
 * by such that don't, as programs do that measure transfers. ocl_rewrite mapped: the same by 100
 * mappings, each read back, too. ocl_rewrite read: 150,000 small writes, each read back.
 * ocl_rewrite SEED [mapped]: writes of random ranges to two buffers, blocking or not, mapped: also
 * by mappings, mostly over what was just written, with kernels and reads among them now and then;
 * what is read is printed. */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <string.h>
#include "ocl_ok.h"

enum { N = 1 << 14, MANY = 1 << 20, ROUNDS = 100, READS = 150000 };

static const char source[] =
    "__kernel void blend(__global int *a, __global int *b) {\n"
    "  size_t i = get_global_id(0); a[i] = a[i] * 5 + b[i] + 1; b[i] ^= a[i]; }\n";

static unsigned hash(unsigned h, const int *data, size_t n)
{
	for (size_t i = 0; i < n; i++)
		h = (h ^ (unsigned)data[i]) * 16777619u;
	return h;
}

static void fill(int *data, size_t n, int seed)
{
	for (size_t i = 0; i < n; i++)
		data[i] = seed * 31 + (int)i;
}

static void again(cl_context c, cl_command_queue q)
{
	static int data[MANY];
	cl_int e;
	cl_mem m = clCreateBuffer(c, CL_MEM_READ_WRITE, sizeof(data), NULL, &e);

	OK(e);
	for (int blocking = 0; blocking < 2; blocking++) {
		for (int i = 0; i < ROUNDS; i++) {
			if (blocking)
				fill(data, MANY, i);
			OK(clEnqueueWriteBuffer(q, m, blocking, 0, sizeof(data), data, 0, NULL,
						NULL));
		}
		OK(clFinish(q));
	}
	memset(data, 0, sizeof(data));
	OK(clEnqueueReadBuffer(q, m, CL_TRUE, 0, sizeof(data), data, 0, NULL, NULL));
	printf("%08x\n", hash(2166136261u, data, MANY));
}

/* The host's data come and go through mappings. */
static int *map(cl_command_queue q, cl_mem m, cl_map_flags flags, size_t from, size_t n)
{
	cl_int e;
	int *at = clEnqueueMapBuffer(q, m, CL_TRUE, flags, from * sizeof(int), n * sizeof(int), 0,
				     NULL, NULL, &e);

	OK(e);
	return at;
}

static void mapped(cl_context c, cl_command_queue q)
{
	unsigned h = 2166136261u;
	cl_int e;
	cl_mem m = clCreateBuffer(c, CL_MEM_READ_WRITE, MANY * sizeof(int), NULL, &e);
	int *at;

	OK(e);
	for (int i = 0; i < ROUNDS; i++) {
		at = map(q, m, i % 2 ? CL_MAP_WRITE : CL_MAP_WRITE_INVALIDATE_REGION, 0, MANY);
		fill(at, MANY, i);
		OK(clEnqueueUnmapMemObject(q, m, at, 0, NULL, NULL));
		at = map(q, m, CL_MAP_READ, 0, MANY);
		h = hash(h, at, 1024);
		OK(clEnqueueUnmapMemObject(q, m, at, 0, NULL, NULL));
	}
	printf("%08x\n", h);
}

static void read_often(cl_context c, cl_command_queue q)
{
	int data[4] = {1, 2, 3, 4}, back[4];
	unsigned h = 2166136261u;
	cl_int e;
	cl_mem m = clCreateBuffer(c, CL_MEM_READ_WRITE, sizeof(data), NULL, &e);

	OK(e);
	for (int i = 0; i < READS; i++) {
		data[0] = i;
		OK(clEnqueueWriteBuffer(q, m, CL_FALSE, 0, sizeof(data), data, 0, NULL, NULL));
		OK(clEnqueueReadBuffer(q, m, CL_TRUE, 0, sizeof(back), back, 0, NULL, NULL));
		h = hash(h, back, 4);
	}
	printf("%08x\n", h);
}

/* What lies in the mapping beside what is written stays. */
static void write_mapped(cl_command_queue q, cl_mem m, size_t from, size_t n, const int *data)
{
	int *at = map(q, m, rand() % 2 ? CL_MAP_WRITE : CL_MAP_READ | CL_MAP_WRITE, from, n);

	memcpy(at, data, (rand() % 2 ? n : n / 2) * sizeof(int));
	OK(clEnqueueUnmapMemObject(q, m, at, 0, NULL, NULL));
	if (rand() % 4 == 0) { /* and is looked at */
		at = map(q, m, CL_MAP_READ, 0, N);
		printf("%08x\n", hash(2166136261u, at, N));
		OK(clEnqueueUnmapMemObject(q, m, at, 0, NULL, NULL));
	}
}

static void any(cl_context c, cl_command_queue q, cl_device_id device, int by_mappings)
{
	static int data[8][N], back[N];
	cl_program p = build_source(c, source, "");
	size_t all = N;
	cl_command_queue other;
	cl_kernel blend;
	cl_mem m[2];
	cl_int e;

	blend = clCreateKernel(p, "blend", &e);
	OK(e);
	other = clCreateCommandQueue(c, device, 0, &e);
	OK(e);
	for (int i = 0; i < 2; i++) {
		fill(back, N, i);
		m[i] = clCreateBuffer(c, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, sizeof(back),
				      back, &e);
		OK(e);
		OK(clSetKernelArg(blend, (cl_uint)i, sizeof(m[i]), &m[i]));
	}
	for (int round = 0; round < 60; round++) {
		int writes = rand() % 8, which = rand() % 2;

		for (int i = 0; i < writes; i++) {
			size_t from = rand() % 2 ? 0 : (size_t)rand() % N;
			size_t n = rand() % 2 ? N - from : (size_t)rand() % (N - from) + 1;
			fill(data[i], n, round * 8 + i);
			if (by_mappings && rand() % 3)
				write_mapped(q, m[which], from, n, data[i]);
			else
				OK(clEnqueueWriteBuffer(q, m[which], rand() % 2, from * sizeof(int),
							n * sizeof(int), data[i], 0, NULL, NULL));
			if (rand() % 6 == 0)
				which = 1 - which;
		}
		if (rand() % 3 == 0)
			OK(clEnqueueNDRangeKernel(q, blend, 1, NULL, &all, NULL, 0, NULL, NULL));
		OK(clFinish(q));
		if (rand() % 4 == 0) {
			OK(clEnqueueWriteBuffer(other, m[which], CL_TRUE, 0, 64, data[0], 0, NULL,
						NULL));
		}
		if (rand() % 3 == 0) {
			OK(clEnqueueReadBuffer(q, m[which], CL_TRUE, 0, sizeof(back), back, 0, NULL,
					       NULL));
			printf("%d %08x\n", round, hash(2166136261u, back, N));
		}
	}
	for (int i = 0; i < 2; i++) {
		OK(clEnqueueReadBuffer(q, m[i], CL_TRUE, 0, sizeof(back), back, 0, NULL, NULL));
		printf("end %08x\n", hash(2166136261u, back, N));
	}
}

int main(int argc, char **argv)
{
	cl_device_id device = first_device();
	cl_command_queue q;
	cl_context c;
	cl_int e;

	c = clCreateContext(NULL, 1, &device, NULL, NULL, &e);
	OK(e);
	q = clCreateCommandQueue(c, device, 0, &e);
	OK(e);
	if (argc > 1 && strcmp(argv[1], "again") == 0) {
		again(c, q);
	} else if (argc > 1 && strcmp(argv[1], "mapped") == 0) {
		mapped(c, q);
	} else if (argc > 1 && strcmp(argv[1], "read") == 0) {
		read_often(c, q);
	} else {
		srand(argc > 1 ? (unsigned)atoi(argv[1]) : 1);
		any(c, q, device, argc > 2);
	}
	return 0;
}
