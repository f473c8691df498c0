/* SPDX-License-Identifier: BSD-3-Clause */
/* Pinned memory as programs have it: buffers that are mapped all the time, some for reading only,
 * whatever is put there: data of other buffers, read; the program's own, to be written from there.
 * ocl_pinned ACCESS: read, write or both, of the mappings. Prints what is in them at the end.
 * ocl_pinned flip: a bit of a buffer in host memory flips, which is then read into a mapping. */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <stdint.h>
#include <string.h>
#include "ocl_ok.h"

enum { N = 4096, STEPS = 8 };

static const char source[] = "__kernel void next(__global uint *a, __global const uint *b, uint k)"
			     "{ size_t i = get_global_id(0); a[i] = a[i] * 1664525u + b[i] + k; }";

static cl_context context;
static cl_command_queue queue;
static cl_kernel kernel;

static uint64_t sum(const uint32_t *p, size_t count)
{
	uint64_t h = 5;

	for (size_t i = 0; i < count; i++)
		h = (h ^ p[i]) * 0x100000001b3ull;
	return h;
}

static cl_mem buffer(cl_mem_flags flags, size_t count, void *host)
{
	cl_int e;
	cl_mem m = clCreateBuffer(context, flags, count * 4, host, &e);

	OK(e);
	return m;
}

static uint32_t *pinned(cl_mem m, size_t count, cl_map_flags access)
{
	cl_int e;
	void *p = clEnqueueMapBuffer(queue, m, CL_TRUE, access, 0, count * 4, 0, NULL, NULL, &e);

	OK(e);
	return p;
}

/* In turn: read as a whole, nonblocking, and in rows, of which every second word stays. */
static void fetch(int s, cl_mem from, uint32_t *to)
{
	size_t zero[3] = {0}, rows[3] = {4, N / 2, 1};

	switch (s % 3) {
	case 0:
		OK(clEnqueueReadBuffer(queue, from, CL_TRUE, 0, N * 4, to, 0, NULL, NULL));
		return;
	case 1:
		OK(clEnqueueReadBuffer(queue, from, CL_FALSE, 0, N * 4, to, 0, NULL, NULL));
		break;
	default:
		memset(to, s, N * 4);
		OK(clEnqueueReadBufferRect(queue, from, CL_FALSE, zero, zero, rows, 8, 0, 8, 0, to,
					   0, NULL, NULL));
	}
	OK(clFinish(queue));
}

static void steps(cl_map_flags access)
{
	cl_mem out = buffer(CL_MEM_ALLOC_HOST_PTR, STEPS * N, NULL);
	cl_mem plain = buffer(CL_MEM_READ_WRITE, STEPS * N, NULL);
	cl_mem in = buffer(CL_MEM_READ_ONLY | CL_MEM_ALLOC_HOST_PTR, N, NULL);
	cl_mem a = buffer(CL_MEM_READ_WRITE, N, NULL), b = buffer(CL_MEM_READ_ONLY, N, NULL);
	uint32_t *results = pinned(out, STEPS * N, access), *others, *data;
	const uint32_t zero = 0;
	size_t n = N;

	others = pinned(plain, STEPS * N, access);
	data = pinned(in, N, access);
	OK(clEnqueueFillBuffer(queue, a, &zero, 4, 0, N * 4, 0, NULL, NULL));
	for (int s = 0; s < STEPS; s++) {
		for (int i = 0; i < N; i++)
			data[i] = (uint32_t)(i * (s + 1));
		OK(clFinish(queue));
		OK(clEnqueueWriteBuffer(queue, b, CL_FALSE, 0, N * 4, data, 0, NULL, NULL));
		OK(clSetKernelArg(kernel, 0, sizeof(a), &a));
		OK(clSetKernelArg(kernel, 1, sizeof(b), &b));
		OK(clSetKernelArg(kernel, 2, 4, &s));
		OK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &n, NULL, 0, NULL, NULL));
		fetch(s, a, results + s * N);
		OK(clEnqueueReadBuffer(queue, a, CL_FALSE, 0, N * 4, others + s * N, 0, NULL,
				       NULL));
		/* what has just been read is written from there */
		OK(clEnqueueWriteBuffer(queue, a, CL_FALSE, 0, N * 2, others + s * N, 0, NULL,
					NULL));
	}
	OK(clFinish(queue));
	for (int s = 0; s < STEPS; s++)
		printf("%016llx %016llx\n", (unsigned long long)sum(results + s * N, N),
		       (unsigned long long)sum(others + s * N, N));
	OK(clEnqueueUnmapMemObject(queue, plain, others, 0, NULL, NULL));
	OK(clEnqueueUnmapMemObject(queue, out, results, 0, NULL, NULL));
	OK(clEnqueueUnmapMemObject(queue, in, data, 0, NULL, NULL));
	OK(clFinish(queue));
}

static void flip(void)
{
	static uint32_t memory[N] __attribute__((aligned(4096)));
	cl_mem m, out = buffer(CL_MEM_ALLOC_HOST_PTR, N, NULL);
	uint32_t *result = pinned(out, N, CL_MAP_READ), *beside;

	for (int i = 0; i < N; i++)
		memory[i] = (uint32_t)i;
	m = buffer(CL_MEM_READ_ONLY | CL_MEM_USE_HOST_PTR, N, memory);
	beside = pinned(buffer(CL_MEM_READ_WRITE, N, NULL), N, CL_MAP_READ | CL_MAP_WRITE);
	OK(clEnqueueReadBuffer(queue, m, CL_TRUE, 0, N * 4, result, 0, NULL, NULL));
	memory[N / 2] ^= 16;
	OK(clEnqueueReadBuffer(queue, m, CL_FALSE, 0, N * 4, beside, 0, NULL, NULL));
	OK(clEnqueueReadBuffer(queue, m, CL_TRUE, 0, N * 4, result, 0, NULL, NULL));
	printf("%u %u\n", result[N / 2], beside[N / 2]);
}

int main(int argc, char **argv)
{
	const char *access = argc > 1 ? argv[1] : "both";
	cl_device_id device = first_device();
	cl_program p;
	cl_int e;

	context = clCreateContext(NULL, 1, &device, NULL, NULL, &e);
	OK(e);
	queue = clCreateCommandQueue(context, device, 0, &e);
	OK(e);
	p = build_source(context, source, "");
	kernel = clCreateKernel(p, "next", &e);
	OK(e);
	if (strcmp(access, "flip") == 0)
		flip();
	else
		steps(strcmp(access, "read") == 0    ? CL_MAP_READ
		      : strcmp(access, "write") == 0 ? CL_MAP_WRITE
						     : CL_MAP_READ | CL_MAP_WRITE);
	return 0;
}
