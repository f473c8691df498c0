/* SPDX-License-Identifier: BSD-3-Clause */
/* ocl_scratch [written]: scratch (haleSetMemFlags) that is filled in one queue and needed there
 * after the program has waited for another one; filled by the host (written), or on the device. */
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <hale/opencl.h>
#include <stdbool.h>
#include <string.h>
#include "ocl_ok.h"

enum { N = 1000, ROUNDS = 6, LOOKS = 2 };

static cl_mem buffer(cl_context context, const void *first)
{
	cl_int e;
	cl_mem m =
	    clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, N * sizeof(int), (void *)first, &e);

	OK(e);
	return m;
}

static void fill(cl_command_queue q, cl_mem m, bool written, int number)
{
	static int data[ROUNDS + 1][N];

	for (int i = 0; written && i < N; i++)
		data[number][i] = number;
	if (written)
		OK(clEnqueueWriteBuffer(q, m, CL_FALSE, 0, sizeof(data[0]), data[number], 0, NULL,
					NULL));
	else
		OK(clEnqueueFillBuffer(q, m, &number, sizeof(number), 0, sizeof(data[0]), 0, NULL,
				       NULL));
	OK(clFlush(q));
}

/* The last one of m. */
static int look(cl_command_queue q, cl_mem m)
{
	int last;

	OK(clEnqueueReadBuffer(q, m, CL_TRUE, (N - 1) * sizeof(int), sizeof(last), &last, 0, NULL,
			       NULL));
	return last;
}

int main(int argc, char **argv)
{
	bool written = argc > 1 && strcmp(argv[1], "written") == 0;
	cl_device_id device = first_device();
	const int first[N] = {0};
	cl_mem scratch, sum, other;
	cl_command_queue q, second;
	cl_context context;
	cl_int e;

	context = clCreateContext(NULL, 1, &device, NULL, NULL, &e);
	OK(e);
	q = clCreateCommandQueueWithProperties(context, device, NULL, &e);
	OK(e);
	second = clCreateCommandQueueWithProperties(context, device, NULL, &e);
	OK(e);
	scratch = buffer(context, first);
	sum = buffer(context, first);
	other = buffer(context, first);
	OK(haleSetMemFlags(scratch, HALE_MEM_SCRATCH));
	for (int round = 1; round <= ROUNDS; round++) {
		fill(q, scratch, written, round);
		for (int i = 0; i < LOOKS; i++) {
			fill(second, other, false, -round - i);
			printf("%d ", look(second, other));
		}
		OK(clEnqueueCopyBuffer(q, scratch, sum, 0, 0, N * sizeof(int), 0, NULL, NULL));
		printf("%d\n", look(q, sum));
	}
	OK(clReleaseMemObject(scratch));
	OK(clReleaseMemObject(sum));
	OK(clReleaseMemObject(other));
	OK(clReleaseCommandQueue(second));
	OK(clReleaseCommandQueue(q));
	OK(clReleaseContext(context));
	return 0;
}
