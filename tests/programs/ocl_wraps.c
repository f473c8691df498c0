/* SPDX-License-Identifier: BSD-3-Clause */
/* ocl_wraps: boxes whose ends are beyond what numbers can say, in each call that takes one: a line
 * a call, with its code; then, that nothing was written. ocl_wraps many COUNT: so many buffers are
 * made and released; says how long that took, in ns for one. */
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include "ocl_ok.h"

#define SAY(call) printf("%d " #call "\n", (int)(call))

static cl_context context;
static cl_command_queue q;

static void many(int count)
{
	cl_mem *m = calloc((size_t)count, sizeof(cl_mem));
	struct timespec a, b;

	for (int i = 0; i < count; i++)
		MUST((m[i] = clCreateBuffer(context, CL_MEM_READ_WRITE, 64, NULL, NULL)));
	MUST(clFinish(q) == CL_SUCCESS);
	clock_gettime(CLOCK_MONOTONIC, &a);
	for (int i = 0; i < count; i++)
		MUST(clReleaseMemObject(m[(i * 7919l) % count]) == CL_SUCCESS);
	MUST(clFinish(q) == CL_SUCCESS);
	clock_gettime(CLOCK_MONOTONIC, &b);
	printf("%.0f ns for each of %d\n",
	       ((double)(b.tv_sec - a.tv_sec) * 1e9 + (double)(b.tv_nsec - a.tv_nsec)) / count,
	       count);
	free(m);
}

int main(int argc, char **argv)
{
	static const cl_image_format format = {CL_R, CL_SIGNED_INT32};
	static const cl_image_desc shape = {
	    .image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = 8, .image_height = 8};
	size_t zero[3] = {0}, box[3] = {4, 4, 1}, at[3] = {SIZE_MAX - 3, 0, 0};
	size_t row[3] = {0, SIZE_MAX - 3, 0}, wide[3] = {4, SIZE_MAX, 1}, far = SIZE_MAX - 63;
	static int data[256], back[256];
	cl_platform_id platform;
	cl_device_id device;
	cl_mem m, n, image;
	cl_int e;

	MUST(clGetPlatformIDs(1, &platform, NULL) == CL_SUCCESS);
	MUST(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL) == CL_SUCCESS);
	MUST((context = clCreateContext(NULL, 1, &device, NULL, NULL, &e)));
	MUST((q = clCreateCommandQueueWithProperties(context, device, NULL, &e)));
	if (argc > 2 && strcmp(argv[1], "many") == 0) {
		many(atoi(argv[2]));
		return 0;
	}
	for (int i = 0; i < 256; i++)
		data[i] = i;
	MUST((m = clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, sizeof(data), data, &e)));
	MUST((n = clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, sizeof(data), data, &e)));
	MUST((image = clCreateImage(context, CL_MEM_COPY_HOST_PTR, &format, &shape, data, &e)));
	SAY(clEnqueueReadBuffer(q, m, CL_TRUE, far, 64, back, 0, NULL, NULL));
	SAY(clEnqueueWriteBuffer(q, m, CL_TRUE, far, 128, back, 0, NULL, NULL));
	SAY(clEnqueueReadBufferRect(q, m, CL_TRUE, at, zero, box, 0, 0, 0, 0, back, 0, NULL, NULL));
	SAY(clEnqueueWriteBufferRect(q, m, CL_TRUE, row, zero, box, 0, 0, 0, 0, back, 0, NULL,
				     NULL));
	SAY(clEnqueueReadBufferRect(q, m, CL_TRUE, zero, zero, box, (size_t)1 << 63, 0, 0, 0, back,
				    0, NULL, NULL));
	SAY(clEnqueueWriteBufferRect(q, m, CL_TRUE, zero, zero, box, (size_t)1 << 62, 0, 0, 0, back,
				     0, NULL, NULL));
	SAY(clEnqueueCopyBuffer(q, m, n, far, 0, 64, 0, NULL, NULL));
	SAY(clEnqueueCopyBuffer(q, m, n, 0, far, 64, 0, NULL, NULL));
	SAY(clEnqueueCopyBufferRect(q, m, n, at, zero, box, 0, 0, 0, 0, 0, NULL, NULL));
	SAY(clEnqueueCopyBufferRect(q, m, n, zero, row, box, 0, 0, 0, 0, 0, NULL, NULL));
	SAY(clEnqueueCopyBufferRect(q, m, n, zero, zero, box, (size_t)1 << 62, 0, 0, 0, 0, NULL,
				    NULL));
	SAY(clEnqueueFillBuffer(q, m, data, 4, far, 64, 0, NULL, NULL));
	SAY(clEnqueueReadImage(q, image, CL_TRUE, at, box, 0, 0, back, 0, NULL, NULL));
	SAY(clEnqueueReadImage(q, image, CL_TRUE, row, box, 0, 0, back, 0, NULL, NULL));
	SAY(clEnqueueWriteImage(q, image, CL_TRUE, at, box, 0, 0, back, 0, NULL, NULL));
	SAY(clEnqueueFillImage(q, image, data, row, box, 0, NULL, NULL));
	SAY(clEnqueueCopyImage(q, image, image, at, zero, box, 0, NULL, NULL));
	SAY(clEnqueueCopyImage(q, image, image, zero, row, box, 0, NULL, NULL));
	SAY(clEnqueueCopyImageToBuffer(q, image, m, at, box, 0, 0, NULL, NULL));
	SAY(clEnqueueCopyImageToBuffer(q, image, m, zero, box, far, 0, NULL, NULL));
	SAY(clEnqueueCopyImageToBuffer(q, image, m, zero, wide, 0, 0, NULL, NULL));
	SAY(clEnqueueCopyBufferToImage(q, m, image, far, zero, box, 0, NULL, NULL));
	SAY(clEnqueueCopyBufferToImage(q, m, image, 0, row, box, 0, NULL, NULL));
	MUST(clFinish(q) == CL_SUCCESS);
	MUST(clEnqueueReadBuffer(q, m, CL_TRUE, 0, sizeof(back), back, 0, NULL, NULL) ==
	     CL_SUCCESS);
	MUST(memcmp(back, data, sizeof(data)) == 0);
	box[0] = box[1] = 8;
	MUST(clEnqueueReadImage(q, image, CL_TRUE, zero, box, 0, 0, back, 0, NULL, NULL) ==
	     CL_SUCCESS);
	MUST(memcmp(back, data, 256) == 0);
	printf("nothing was written\n");
	return 0;
}
