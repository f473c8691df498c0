/* SPDX-License-Identifier: BSD-3-Clause */
/* What a call costs, alone and through the layer: calls that do nearly nothing themselves. */
#include "ocl.h"

static const char source[] = "__kernel void f(__global float *a, int n) { a[0] = n; }\n";

#define TIME(name, count, call)                                                                    \
	do {                                                                                       \
		double best = 1;                                                                   \
		for (int r_ = 0; r_ < 5; r_++) {                                                   \
			double start_ = now();                                                     \
			for (int i = 0; i < (count); i++)                                          \
				OK(call);                                                          \
			double took_ = (now() - start_) / (count);                                 \
			best = took_ < best ? took_ : best;                                        \
			OK(clFinish(queue));                                                       \
		}                                                                                  \
		printf("%s %.1f ns\n", name, best * 1e9);                                          \
	} while (0)

enum { LAUNCHES = 1000 };

/* With what ends them: the wait, and what the layer does with its log. */
static cl_int launch_many(cl_kernel k)
{
	size_t global = 1;

	for (int i = 0; i < LAUNCHES; i++)
		OK(clEnqueueNDRangeKernel(queue, k, 1, NULL, &global, NULL, 0, NULL, NULL));
	return clFinish(queue);
}

int main(void)
{
	size_t global = 1;
	int n = 3;
	char back[512];
	cl_mem m;
	cl_kernel k;

	ocl_begin(source);
	k = ocl_kernel("f");
	m = ocl_buffer(CL_MEM_READ_WRITE, 4096, NULL);
	ocl_arg(k, 0, sizeof(m), &m);
	TIME("setarg", 200000, clSetKernelArg(k, 1, sizeof(n), &n));
	TIME("retain", 200000, clRetainMemObject(m));
	TIME("finish", 20000, clFinish(queue));
	TIME("thousand_launches", 100, launch_many(k));
	/* what programs with needless waits do all the time: the kernel's own time is in both */
	TIME("launch_and_wait", 2000,
	     (clEnqueueNDRangeKernel(queue, k, 1, NULL, &global, NULL, 0, NULL, NULL),
	      clFinish(queue)));
	TIME("read", 2000,
	     clEnqueueReadBuffer(queue, m, CL_TRUE, 0, sizeof(back), back, 0, NULL, NULL));
	TIME("barrier", 1000, clEnqueueBarrierWithWaitList(queue, 0, NULL, NULL));
	return 0;
}
