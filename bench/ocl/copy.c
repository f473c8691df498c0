/* SPDX-License-Identifier: BSD-3-Clause */
/* What a program gets that copies between its own memory and the device's: the measure of a
 * restore. copy MIB: "write GB/s", "read GB/s" by blocking calls, the best of five; ordinary
 * memory. Each call has memory of its own, of 256 MiB and more together: a restore doesn't find
 * what it copies in a cache either. */
#include "ocl.h"
#include <string.h>

enum { TOGETHER = 256 };

int main(int argc, char **argv)
{
	size_t mib = argc > 1 ? (size_t)atoi(argv[1]) : TOGETHER;
	size_t pieces = mib < TOGETHER ? TOGETHER / mib : 1, size = mib << 20, all = size * pieces;
	char *data = malloc(all);
	double best[2] = {0};
	cl_mem m;

	ocl_begin("__kernel void f(__global char *a) { a[0] = 1; }\n");
	m = ocl_buffer(CL_MEM_READ_WRITE, all, NULL);
	memset(data, 7, all);
	OK(clEnqueueWriteBuffer(queue, m, CL_TRUE, 0, all, data, 0, NULL, NULL));
	for (size_t i = 0; i < 10; i++) {
		size_t at = i % pieces * size;
		double start = now(), speed;

		OK(i % 2 == 0
		       ? clEnqueueWriteBuffer(queue, m, CL_TRUE, at, size, data + at, 0, NULL, NULL)
		       : clEnqueueReadBuffer(queue, m, CL_TRUE, at, size, data + at, 0, NULL,
					     NULL));
		speed = (double)size / (now() - start) / 1e9;
		best[i % 2] = speed > best[i % 2] ? speed : best[i % 2];
	}
	printf("write %.3f GB/s\nread %.3f GB/s\n", best[0], best[1]);
	return 0;
}
