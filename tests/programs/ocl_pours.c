/* SPDX-License-Identifier: BSD-3-Clause */
/* ocl_pours GO: once there is a file GO, writes far more than connections and rings hold without
 * waiting for anything, and prints what came of it. */
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>
#include "ocl_ok.h"

enum { BYTES = 200 << 10, WRITES = 300 };

int main(int argc, char **argv)
{
	static unsigned char from[WRITES][BYTES], back[BYTES];
	cl_device_id device = first_device();
	cl_context context;
	cl_command_queue queue;
	uint64_t sum = 0;
	cl_int status;
	cl_mem m;

	context = clCreateContext(NULL, 1, &device, NULL, NULL, &status);
	OK(status);
	queue = clCreateCommandQueueWithProperties(context, device, NULL, &status);
	OK(status);
	m = clCreateBuffer(context, CL_MEM_READ_WRITE, BYTES, NULL, &status);
	OK(status);
	for (int i = 0; i < WRITES; i++)
		memset(from[i], i * 7, BYTES);
	printf("ready\n");
	fflush(stdout);
	while (access(argv[1], F_OK) != 0)
		usleep(10000);
	for (int i = 0; i < WRITES; i++)
		OK(clEnqueueWriteBuffer(queue, m, CL_FALSE, i % 5, BYTES - 5, from[i], 0, NULL, NULL));
	OK(clEnqueueReadBuffer(queue, m, CL_TRUE, 0, BYTES - 1, back, 0, NULL, NULL));
	for (int i = 0; i < BYTES - 1; i++)
		sum = sum * 31 + back[i];
	printf("%016lx\n", (unsigned long)sum);
	return 0;
}
