/* SPDX-License-Identifier: BSD-3-Clause */
/* What a program gets that copies between its own memory and the device's: the measure of a
 * restore. copy MIB: "write GB/s", "read GB/s" by blocking calls, the best of five; ordinary
 * memory. */
#include "ocl.h"
#include <string.h>

int main(int argc, char **argv)
{
	size_t size = (argc > 1 ? (size_t)atoi(argv[1]) : 256) << 20;
	char *data = malloc(size);
	double best[2] = {0};
	cl_mem m;

	ocl_begin("__kernel void f(__global char *a) { a[0] = 1; }\n");
	m = ocl_buffer(CL_MEM_READ_WRITE, size, NULL);
	memset(data, 7, size);
	for (int i = 0; i < 10; i++) {
		double start = now(), speed;

		OK(i % 2 == 0
		       ? clEnqueueWriteBuffer(queue, m, CL_TRUE, 0, size, data, 0, NULL, NULL)
		       : clEnqueueReadBuffer(queue, m, CL_TRUE, 0, size, data, 0, NULL, NULL));
		speed = (double)size / (now() - start) / 1e9;
		best[i % 2] = speed > best[i % 2] ? speed : best[i % 2];
	}
	printf("write %.3f GB/s\nread %.3f GB/s\n", best[0], best[1]);
	return 0;
}
