/* SPDX-License-Identifier: BSD-3-Clause */
/* Prints what calls give whose wait list has an event of another context, and that what is called
 * after them is all right. */
#define CL_TARGET_OPENCL_VERSION 200
#include <CL/cl.h>
#include "ocl_ok.h"

int main(void)
{
	cl_device_id device = first_device();
	cl_int e, codes[5], in[4] = {1, 2, 3, 4}, out[4] = {0};
	cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &e);
	cl_context other = clCreateContext(NULL, 1, &device, NULL, NULL, &e);
	cl_command_queue q = clCreateCommandQueueWithProperties(context, device, NULL, &e);
	cl_mem a = clCreateBuffer(context, CL_MEM_READ_WRITE, sizeof(in), NULL, &e);
	cl_mem b = clCreateBuffer(context, CL_MEM_READ_WRITE, sizeof(in), NULL, &e);
	cl_event foreign = clCreateUserEvent(other, &e);

	OK(e);
	OK(clSetUserEventStatus(foreign, CL_COMPLETE));
	OK(clEnqueueWriteBuffer(q, a, CL_TRUE, 0, sizeof(in), in, 0, NULL, NULL));
	codes[0] = clEnqueueMarkerWithWaitList(q, 1, &foreign, NULL);
	codes[1] = clEnqueueBarrierWithWaitList(q, 1, &foreign, NULL);
	codes[2] = clEnqueueCopyBuffer(q, a, b, 0, 0, sizeof(in), 1, &foreign, NULL);
	codes[3] = clEnqueueReadBuffer(q, a, CL_FALSE, 0, sizeof(in), out, 1, &foreign, NULL);
	codes[4] = clEnqueueFillBuffer(q, b, in, sizeof(*in), 0, sizeof(in), 1, &foreign, NULL);
	for (int i = 0; i < 5; i++)
		printf("%d ", codes[i]);
	OK(clFinish(q));
	OK(clEnqueueReadBuffer(q, a, CL_TRUE, 0, sizeof(out), out, 0, NULL, NULL));
	printf("%d\n", out[3]);
	return 0;
}
