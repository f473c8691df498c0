/* SPDX-License-Identifier: BSD-3-Clause */
/* The microbenchmark of VOCL-FT, figure 5: matrix products over a quarter of the buffers at a time,
 * beside a large buffer that is written once and never used. sgemm N ITERATIONS DUMMY_MIB [eapi] */
#include "ocl.h"
#include <string.h>

static const char source[] =
    "__kernel void sgemm(__global const float *a, __global const float *b, __global float *c,\n"
    "                    int n, int rows, int offset) {\n"
    "  int j = get_global_id(0), i = get_global_id(1);\n"
    "  float s = 0;\n"
    "  for (int k = 0; k < rows; k++) s += a[offset + i * n + k] * b[offset + k * n + j];\n"
    "  c[offset + i * n + j] = s;\n"
    "}\n";

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 512, steps = argc > 2 ? atoi(argv[2]) : 20;
	size_t dummy = (argc > 3 ? (size_t)atoi(argv[3]) : 64) << 20;
	int rows = n / 4;
	size_t quarter = (size_t)n * (size_t)rows, bytes = quarter * 4 * sizeof(float), at = 0;
	float *a = malloc(bytes), *b = malloc(bytes), *c = calloc(1, bytes);
	char *fill = calloc(1, dummy);
	size_t global[2] = {(size_t)n, (size_t)rows};
	cl_mem am, bm, cm, dm;
	cl_kernel k;
	double start;

	ocl_begin(source);
	k = ocl_kernel("sgemm");
	for (size_t i = 0; i < quarter * 4; i++) {
		a[i] = (float)(i % 17) / 17;
		b[i] = (float)(i % 23) / 23;
	}
	am = ocl_buffer(CL_MEM_READ_ONLY, bytes, NULL);
	bm = ocl_buffer(CL_MEM_READ_ONLY, bytes, NULL);
	cm = ocl_buffer(CL_MEM_READ_WRITE, bytes, NULL);
	dm = ocl_buffer(CL_MEM_READ_WRITE, dummy, NULL);
	if (argc > 4 && strcmp(argv[4], "eapi") == 0) {
		OK(haleSetMemFlags(am, HALE_MEM_READ_ONLY | HALE_MEM_SCRATCH));
		OK(haleSetMemFlags(bm, HALE_MEM_READ_ONLY | HALE_MEM_SCRATCH));
		OK(haleSetMemFlags(cm, HALE_MEM_SCRATCH));
	}
	OK(clEnqueueWriteBuffer(queue, dm, CL_TRUE, 0, dummy, fill, 0, NULL, NULL));
	start = now();
	for (int s = 0; s < steps; s++) {
		int offset = (int)at;

		ocl_arg(k, 0, sizeof(am), &am);
		ocl_arg(k, 1, sizeof(bm), &bm);
		ocl_arg(k, 2, sizeof(cm), &cm);
		ocl_arg(k, 3, sizeof(n), &n);
		ocl_arg(k, 4, sizeof(rows), &rows);
		ocl_arg(k, 5, sizeof(offset), &offset);
		OK(clEnqueueWriteBuffer(queue, am, CL_FALSE, at * 4, quarter * 4, a + at, 0, NULL,
					NULL));
		OK(clEnqueueWriteBuffer(queue, bm, CL_FALSE, at * 4, quarter * 4, b + at, 0, NULL,
					NULL));
		OK(clEnqueueNDRangeKernel(queue, k, 2, NULL, global, NULL, 0, NULL, NULL));
		OK(clEnqueueReadBuffer(queue, cm, CL_FALSE, at * 4, quarter * 4, c + at, 0, NULL,
				       NULL));
		OK(clFinish(queue));
		at = at + quarter == 4 * quarter ? 0 : at + quarter;
	}
	ocl_result(now() - start, c, bytes);
	return 0;
}
