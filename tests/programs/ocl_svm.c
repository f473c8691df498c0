/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared virtual memory with pointers in it. ocl_svm list STEPS [GO]: a list whose nodes point to
 * each other, walked and changed by kernels and by the host; after half of the steps it says
 * "ready" and waits for the file GO. ocl_svm errors: the codes of wrong calls. ocl_svm steps STEPS
 * [GO]: as list, a line a step; the last fifty wait for GO. ocl_svm many: allocations of many sizes
 * come and go. ocl_svm later: memory that commands free which wait for the program, while other
 * commands run and epochs close. ocl_svm echo: what a read brings, which waits for the program, is
 * copied before it has come. */
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>
#include "ocl_ok.h"

enum { N = 200, BIG = 1 << 16 };

struct node {
	struct node *next;
	uint64_t value;
};

static const char source[] =
    "struct node { __global struct node *next; ulong value; };\n"
    "__kernel void walk(__global struct node *n, __global ulong *sum, __global uint *big) {\n"
    "  ulong s = 0;\n"
    "  for (; n; n = n->next) { n->value = n->value * 3 + 1; s += n->value; }\n"
    "  sum[0] += s; big[s % 65536] += (uint)s; }\n"
    "__kernel void add(__global uint *a, uint k) { a[get_global_id(0)] += k; }\n";

static cl_device_id device;
static cl_context context;
static cl_command_queue queue;
static cl_kernel walk, add, add_buffer;
static struct node *node[N];
static uint64_t *total;
static uint32_t *big;
static cl_mem buffer; /* a part of big */

static unsigned hash(const void *data, size_t size)
{
	const unsigned char *p = data;
	unsigned h = 2166136261u;

	for (size_t i = 0; i < size; i++)
		h = (h ^ p[i]) * 16777619u;
	return h;
}

static void set_up(void)
{
	cl_device_svm_capabilities svm = 0;
	cl_program program;
	cl_int e;

	device = first_device();
	OK(clGetDeviceInfo(device, CL_DEVICE_SVM_CAPABILITIES, sizeof(svm), &svm, NULL));
	MUST(svm & CL_DEVICE_SVM_COARSE_GRAIN_BUFFER);
	context = clCreateContext(NULL, 1, &device, NULL, NULL, &e);
	OK(e);
	queue = clCreateCommandQueueWithProperties(context, device, NULL, &e);
	OK(e);
	program = build_source(context, source, "-cl-std=CL2.0");
	walk = clCreateKernel(program, "walk", &e);
	OK(e);
	add = clCreateKernel(program, "add", &e);
	OK(e);
	/* NVIDIA's launches no kernel that had a pointer where it has a buffer now */
	add_buffer = clCreateKernel(program, "add", &e);
	OK(e);
	OK(clReleaseProgram(program));
}

static void make_list(void)
{
	cl_bool uses = CL_FALSE;
	uint32_t pattern = 7;
	cl_event filled;
	cl_command_type type;
	cl_int e;

	for (int i = 0; i < N; i++) {
		node[i] = clSVMAlloc(context, CL_MEM_READ_WRITE, sizeof(struct node), 0);
		MUST(node[i] && (uintptr_t)node[i] % 128 == 0);
	}
	total = clSVMAlloc(context, CL_MEM_READ_WRITE, 64, 64);
	big = clSVMAlloc(context, CL_MEM_READ_WRITE, BIG * sizeof(uint32_t), 0);
	MUST(total && big);
	for (int i = 0; i < N; i++) {
		OK(clEnqueueSVMMap(queue, CL_TRUE, CL_MAP_WRITE, node[i], sizeof(struct node), 0,
				   NULL, NULL));
		*node[i] = (struct node){i + 1 < N ? node[i + 1] : NULL, (uint64_t)i};
		OK(clEnqueueSVMUnmap(queue, node[i], 0, NULL, NULL));
	}
	OK(clEnqueueSVMMemFill(queue, total, &pattern, sizeof(pattern), 64, 0, NULL, NULL));
	OK(clEnqueueSVMMemFill(queue, big, &pattern, sizeof(pattern), BIG * sizeof(*big), 0, NULL,
			       &filled));
	OK(clGetEventInfo(filled, CL_EVENT_COMMAND_TYPE, sizeof(type), &type, NULL));
	MUST(type == CL_COMMAND_SVM_MEMFILL);
	OK(clReleaseEvent(filled));
	buffer = clCreateBuffer(context, CL_MEM_USE_HOST_PTR, 4096, big, &e);
	OK(e);
	OK(clGetMemObjectInfo(buffer, CL_MEM_USES_SVM_POINTER, sizeof(uses), &uses, NULL));
	MUST(uses);
	OK(clSetKernelArgSVMPointer(walk, 0, node[0]));
	OK(clSetKernelArgSVMPointer(walk, 1, total));
	OK(clSetKernelArgSVMPointer(walk, 2, big));
	OK(clSetKernelExecInfo(walk, CL_KERNEL_EXEC_INFO_SVM_PTRS, sizeof(node), node));
}

static void step(int s)
{
	static uint64_t copy[8];
	size_t one = 1, many = 512;
	uint32_t k = (uint32_t)s;
	int at = s * 7 % N, far = (s * 13 + 1) % N;
	const void *moved = big;
	uint32_t *p;
	cl_int e;

	OK(clEnqueueNDRangeKernel(queue, walk, 1, NULL, &one, NULL, 0, NULL, NULL));
	/* the host looks, and takes a node out or puts it back in */
	OK(clEnqueueSVMMap(queue, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, node[at],
			   sizeof(struct node), 0, NULL, NULL));
	if (at + 2 < N)
		node[at]->next = node[at]->next == node[at + 1] ? node[at + 2] : node[at + 1];
	OK(clEnqueueSVMUnmap(queue, node[at], 0, NULL, NULL));
	/* by a pointer into the middle, by a buffer, by the buffer's mapping */
	OK(clSetKernelArgSVMPointer(add, 0, big + 512));
	OK(clSetKernelArg(add, 1, sizeof(k), &k));
	OK(clEnqueueNDRangeKernel(queue, add, 1, NULL, &many, NULL, 0, NULL, NULL));
	OK(clSetKernelArg(add_buffer, 0, sizeof(buffer), &buffer));
	OK(clSetKernelArg(add_buffer, 1, sizeof(k), &k));
	OK(clEnqueueNDRangeKernel(queue, add_buffer, 1, NULL, &many, NULL, 0, NULL, NULL));
	p = clEnqueueMapBuffer(queue, buffer, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0, 4096, 0, NULL,
			       NULL, &e);
	OK(e);
	MUST(p == big);
	p[3] ^= k;
	OK(clEnqueueUnmapMemObject(queue, buffer, p, 0, NULL, NULL));
	/* within it, out of it, into it */
	OK(clEnqueueSVMMemcpy(queue, CL_FALSE, &node[far]->value, &node[at]->value, 8, 0, NULL,
			      NULL));
	OK(clEnqueueSVMMigrateMem(queue, 1, &moved, NULL, 0, 0, NULL, NULL));
	OK(clEnqueueSVMMemcpy(queue, CL_TRUE, copy, total, 64, 0, NULL, NULL));
	copy[7] += 5;
	OK(clEnqueueSVMMemcpy(queue, CL_FALSE, &total[7], &copy[7], 8, 0, NULL, NULL));
	OK(clFinish(queue));
}

static void CL_CALLBACK freed(cl_command_queue q, cl_uint count, void *p[], void *data)
{
	for (cl_uint i = 0; i < count; i++)
		clSVMFree(context, p[i]);
	__atomic_add_fetch((int *)data, (int)count, __ATOMIC_SEQ_CST);
}

static void end(void)
{
	static uint32_t host[BIG];
	static int count;
	void *both[2] = {total, big};

	OK(clEnqueueSVMMemcpy(queue, CL_TRUE, host, big, sizeof(host), 0, NULL, NULL));
	OK(clEnqueueSVMMap(queue, CL_TRUE, CL_MAP_READ, total, 64, 0, NULL, NULL));
	printf("total %lu %lu, big %08x\n", (unsigned long)total[0], (unsigned long)total[7],
	       hash(host, sizeof(host)));
	OK(clEnqueueSVMUnmap(queue, total, 0, NULL, NULL));
	OK(clReleaseMemObject(buffer));
	OK(clEnqueueSVMFree(queue, N, (void **)node, NULL, NULL, 0, NULL, NULL));
	OK(clEnqueueSVMFree(queue, 2, both, freed, &count, 0, NULL, NULL));
	OK(clFinish(queue));
	for (int i = 0; i < 10000 && !__atomic_load_n(&count, __ATOMIC_SEQ_CST); i++)
		usleep(1000);
	printf("freed %d\n", count);
}

static void list(int steps, const char *go, int tell)
{
	make_list();
	for (int s = 0; s < steps; s++) {
		while (go && tell && s == steps - 50 && access(go, F_OK) != 0)
			usleep(1000);
		if (go && !tell && s == steps / 2) {
			/* written to in a mapping that is there all the time */
			OK(clEnqueueSVMMap(queue, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, total, 64, 0,
					   NULL, NULL));
			total[6] = 66;
			printf("ready\n");
			while (access(go, F_OK) != 0)
				usleep(2000);
			total[7] += total[6];
			OK(clEnqueueSVMUnmap(queue, total, 0, NULL, NULL));
		}
		step(s);
		if (tell) {
			OK(clEnqueueSVMMap(queue, CL_TRUE, CL_MAP_READ, total, 64, 0, NULL, NULL));
			printf("%d %lu\n", s, (unsigned long)total[0]);
			OK(clEnqueueSVMUnmap(queue, total, 0, NULL, NULL));
		}
	}
	end();
}

#define SAY(call) printf("%d ", (int)(call))

static void errors(void)
{
	char *p = clSVMAlloc(context, CL_MEM_READ_WRITE, 4096, 0);
	const void *list_of[1] = {p};
	void *null = NULL;
	uint32_t pattern = 1;
	char host[64];

	MUST(p);
	printf("%d %d %d %d %d %d %d\n", clSVMAlloc(NULL, 0, 64, 0) != NULL,
	       clSVMAlloc(context, 0, 0, 0) != NULL, clSVMAlloc(context, 0, 64, 3) != NULL,
	       clSVMAlloc(context, 0, 64, 256) != NULL,
	       clSVMAlloc(context, 0, 1ul << 50, 0) != NULL,
	       clSVMAlloc(context, CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY, 64, 0) != NULL,
	       clSVMAlloc(context, CL_MEM_SVM_ATOMICS, 64, 0) != NULL);
	SAY(clEnqueueSVMMap(NULL, CL_TRUE, CL_MAP_READ, p, 64, 0, NULL, NULL));
	SAY(clEnqueueSVMMap(queue, CL_TRUE, CL_MAP_READ, NULL, 64, 0, NULL, NULL));
	SAY(clEnqueueSVMMap(queue, CL_TRUE, CL_MAP_READ, p, 0, 0, NULL, NULL));
	SAY(clEnqueueSVMUnmap(NULL, p, 0, NULL, NULL));
	SAY(clEnqueueSVMUnmap(queue, NULL, 0, NULL, NULL));
	SAY(clEnqueueSVMMemcpy(NULL, CL_TRUE, p, host, 64, 0, NULL, NULL));
	SAY(clEnqueueSVMMemcpy(queue, CL_TRUE, NULL, p, 64, 0, NULL, NULL));
	SAY(clEnqueueSVMMemcpy(queue, CL_TRUE, p, NULL, 64, 0, NULL, NULL));
	SAY(clEnqueueSVMMemcpy(queue, CL_TRUE, p, p + 8, 64, 0, NULL, NULL));
	SAY(clEnqueueSVMMemcpy(queue, CL_TRUE, p, host, 0, 0, NULL, NULL));
	SAY(clEnqueueSVMMemcpy(queue, CL_TRUE, p, host, 64, 1, NULL, NULL));
	printf("\n");
	SAY(clEnqueueSVMMemFill(NULL, p, &pattern, 4, 64, 0, NULL, NULL));
	SAY(clEnqueueSVMMemFill(queue, NULL, &pattern, 4, 64, 0, NULL, NULL));
	SAY(clEnqueueSVMMemFill(queue, p, &pattern, 4, 6, 0, NULL, NULL));
	SAY(clEnqueueSVMMemFill(queue, p, &pattern, 3, 6, 0, NULL, NULL));
	SAY(clEnqueueSVMMemFill(queue, p + 1, &pattern, 4, 8, 0, NULL, NULL));
	SAY(clEnqueueSVMMemFill(queue, p, &pattern, 4, 0, 0, NULL, NULL));
	SAY(clEnqueueSVMMigrateMem(NULL, 1, list_of, NULL, 0, 0, NULL, NULL));
	SAY(clEnqueueSVMMigrateMem(queue, 0, list_of, NULL, 0, 0, NULL, NULL));
	SAY(clEnqueueSVMMigrateMem(queue, 1, NULL, NULL, 0, 0, NULL, NULL));
	SAY(clEnqueueSVMMigrateMem(queue, 1, list_of, NULL, 99, 0, NULL, NULL));
	printf("\n");
	SAY(clEnqueueSVMFree(NULL, 1, &null, NULL, NULL, 0, NULL, NULL));
	SAY(clEnqueueSVMFree(queue, 0, NULL, NULL, NULL, 0, NULL, NULL));
	SAY(clEnqueueSVMFree(queue, 1, &null, NULL, NULL, 0, NULL, NULL));
	SAY(clSetKernelArgSVMPointer(NULL, 0, p));
	SAY(clSetKernelArgSVMPointer(walk, 9, p));
	SAY(clSetKernelArgSVMPointer(walk, 0, NULL));
	SAY(clSetKernelExecInfo(NULL, CL_KERNEL_EXEC_INFO_SVM_PTRS, sizeof(list_of), list_of));
	SAY(clSetKernelExecInfo(walk, CL_KERNEL_EXEC_INFO_SVM_PTRS, sizeof(list_of), list_of));
	printf("\n");
	clSVMFree(context, p);
	clSVMFree(context, NULL);
}

static void many(void)
{
	static unsigned char *at[300];
	static size_t size[300];
	unsigned seed = 1;

	for (int i = 0; i < 20000; i++) {
		int n = (int)((seed = seed * 1664525u + 1013904223u) >> 8) % 300;

		if (at[n]) {
			unsigned char fill[2] = {at[n][0], at[n][size[n] - 1]};
			MUST(fill[0] == (n & 255) && fill[1] == (n & 255));
			clSVMFree(context, at[n]);
			at[n] = NULL;
			continue;
		}
		size[n] = 1 + (seed >> 5) % (n % 3 ? 700 : 40000);
		at[n] = clSVMAlloc(context, CL_MEM_READ_WRITE, size[n], 0);
		MUST(at[n]);
		OK(clEnqueueSVMMap(queue, CL_TRUE, CL_MAP_WRITE, at[n], size[n], 0, NULL, NULL));
		memset(at[n], n, size[n]);
		OK(clEnqueueSVMUnmap(queue, at[n], 0, NULL, NULL));
	}
	OK(clFinish(queue));
	printf("all were kept apart\n");
}

/* What commands free when they run: until the program sets an event nothing of it is gone. */
static void later(int rounds)
{
	static int count;
	size_t all = 1 << 20, bytes = all * sizeof(uint32_t);
	cl_command_queue beside;
	uint32_t seven = 7, got = 0;
	cl_mem m;
	cl_int e;

	beside = clCreateCommandQueueWithProperties(context, device, NULL, &e);
	OK(e);
	m = clCreateBuffer(context, CL_MEM_READ_WRITE, bytes, NULL, &e);
	OK(e);
	OK(clEnqueueFillBuffer(beside, m, &seven, sizeof(seven), 0, bytes, 0, NULL, NULL));
	for (int i = 0; i < rounds; i++) {
		cl_uint k = (cl_uint)i;
		void *p[2];
		cl_event go, gone;
		cl_command_type type;

		for (int n = 0; n < 2; n++) {
			p[n] = clSVMAlloc(context, CL_MEM_READ_WRITE, bytes, 0);
			MUST(p[n]);
			OK(clEnqueueSVMMemFill(queue, p[n], &k, sizeof(k), bytes, 0, NULL, NULL));
			OK(clSetKernelArgSVMPointer(add, 0, p[n]));
			OK(clSetKernelArg(add, 1, sizeof(k), &k));
			OK(clEnqueueNDRangeKernel(queue, add, 1, NULL, &all, NULL, 0, NULL, NULL));
		}
		go = clCreateUserEvent(context, &e);
		OK(e);
		OK(clEnqueueSVMFree(queue, 2, p, i % 2 ? freed : NULL, &count, 1, &go, &gone));
		OK(clGetEventInfo(gone, CL_EVENT_COMMAND_TYPE, sizeof(type), &type, NULL));
		MUST(type == CL_COMMAND_SVM_FREE);
		/* other commands and epochs beside it */
		OK(clSetKernelArg(add_buffer, 0, sizeof(m), &m));
		OK(clSetKernelArg(add_buffer, 1, sizeof(k), &k));
		OK(clEnqueueNDRangeKernel(beside, add_buffer, 1, NULL, &all, NULL, 0, NULL, NULL));
		OK(clEnqueueReadBuffer(beside, m, CL_TRUE, 64, sizeof(got), &got, 0, NULL, NULL));
		OK(clSetUserEventStatus(go, CL_COMPLETE));
		if (i % 3)
			OK(clFinish(queue));
		else
			OK(clWaitForEvents(1, &gone));
		OK(clReleaseEvent(go));
		OK(clReleaseEvent(gone));
		/* now it is gone, and the log has commands that used it */
		OK(clEnqueueReadBuffer(beside, m, CL_TRUE, 64, sizeof(got), &got, 0, NULL, NULL));
		printf("%d %u\n", i, got);
	}
	for (int i = 0; i < 10000 && __atomic_load_n(&count, __ATOMIC_SEQ_CST) < rounds / 2 * 2;
	     i++)
		usleep(1000);
	printf("freed %d\n", count);
	OK(clReleaseMemObject(m));
	OK(clReleaseCommandQueue(beside));
}

/* A read that waits for the program, and copies of what it brings: there and back. */
static void echo(void)
{
	static uint32_t host[BIG], beyond[BIG], got[BIG];
	size_t all = BIG;
	cl_command_queue beside;
	cl_mem m;
	cl_int e;

	beside = clCreateCommandQueueWithProperties(context, device, NULL, &e);
	OK(e);
	m = clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, sizeof(host), host, &e);
	OK(e);
	big = clSVMAlloc(context, CL_MEM_READ_WRITE, sizeof(host), 0);
	MUST(big);
	OK(clSetKernelArg(add_buffer, 0, sizeof(m), &m));
	for (cl_uint i = 1; i < 7; i++) {
		cl_event go = clCreateUserEvent(context, &e), read, copied[2];

		OK(e);
		OK(clSetKernelArg(add_buffer, 1, sizeof(i), &i));
		OK(clEnqueueNDRangeKernel(queue, add_buffer, 1, NULL, &all, NULL, i % 3 > 0,
					  i % 3 ? &go : NULL, NULL));
		OK(clEnqueueReadBuffer(queue, m, CL_FALSE, 0, sizeof(host), host, 0, NULL, &read));
		OK(clFlush(queue));
		OK(clEnqueueSVMMemcpy(beside, CL_FALSE, big + 1, host, sizeof(host) - 4, 1, &read,
				      &copied[0]));
		OK(clEnqueueSVMMemcpy(beside, CL_FALSE, beyond, big, sizeof(beyond), 1, copied,
				      &copied[1]));
		OK(clSetUserEventStatus(go, CL_COMPLETE));
		OK(clWaitForEvents(2, copied));
		OK(clEnqueueSVMMemcpy(beside, CL_TRUE, got, big, sizeof(got), 0, NULL, NULL));
		printf("%u %08x %08x\n", i, hash(got + 1, sizeof(got) - 4),
		       hash(beyond + 1, sizeof(beyond) - 4));
		OK(clReleaseEvent(go));
		OK(clReleaseEvent(read));
		OK(clReleaseEvent(copied[0]));
		OK(clReleaseEvent(copied[1]));
	}
	OK(clReleaseMemObject(m));
	OK(clReleaseCommandQueue(beside));
	clSVMFree(context, big);
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc < 2)
		return 64;
	set_up();
	if (strcmp(argv[1], "errors") == 0)
		errors();
	else if (strcmp(argv[1], "many") == 0)
		many();
	else if (strcmp(argv[1], "echo") == 0)
		echo();
	else if (strcmp(argv[1], "later") == 0)
		later(argc > 2 ? atoi(argv[2]) : 8);
	else
		list(argc > 2 ? atoi(argv[2]) : 8, argc > 3 ? argv[3] : NULL,
		     strcmp(argv[1], "steps") == 0);
	return 0;
}
