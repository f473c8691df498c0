/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that the host may not read, write or either, and whose content matters from step to step:
 * buffers of several chunks and images, made with content (padded rows) and without.
 * Those that it may write are written by mappings as well, in part, across a wait.
 * ocl_barred STEPS prints sums of copies, and what a host that reads or writes them is told. */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <stdint.h>
#include "ocl_ok.h"

enum { W = 128, H = 48, PITCH = 4 * W + 32, N = (5 << 18) + 100, KINDS = 3 };

static const char source[] =
    "__kernel void grow(__global int *a, int k) { int i = get_global_id(0); a[i] = a[i] * 3 + k + "
    "i; }\n"
    "__kernel void next(read_only image2d_t in, write_only image2d_t out, int k) {\n"
    "  const sampler_t s = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP_TO_EDGE | "
    "CLK_FILTER_NEAREST;\n"
    "  int2 p = (int2)(get_global_id(0), get_global_id(1));\n"
    "  uint4 v = read_imageui(in, s, p) + read_imageui(in, s, p + (int2)(1, 0)) + (uint)k;\n"
    "  write_imageui(out, p, v & (uint)255); }\n";

static const cl_mem_flags kinds[KINDS] = {CL_MEM_HOST_NO_ACCESS, CL_MEM_HOST_READ_ONLY,
					  CL_MEM_HOST_WRITE_ONLY};
static cl_context context;
static cl_command_queue queue;
static cl_kernel grow, next;
static cl_mem buffer[KINDS], image[KINDS], open_buffer, open_image;
static int given[N], back[N];
static unsigned char rows[H * PITCH], pixels[H * W * 4];
static const size_t zero[3], box[3] = {W, H, 1};

static cl_mem make_image(cl_mem_flags flags, void *host)
{
	cl_image_format format = {CL_RGBA, CL_UNSIGNED_INT8};
	cl_image_desc desc = {.image_type = CL_MEM_OBJECT_IMAGE2D,
			      .image_width = W,
			      .image_height = H,
			      .image_row_pitch = host ? PITCH : 0};
	cl_int e;
	cl_mem m = clCreateImage(context, flags, &format, &desc, host, &e);

	OK(e);
	return m;
}

static cl_mem make_buffer(cl_mem_flags flags, void *host)
{
	cl_int e;
	cl_mem m = clCreateBuffer(context, flags, sizeof(given), host, &e);

	OK(e);
	return m;
}

static void set_up(void)
{
	cl_device_id device = first_device();
	cl_program p;
	cl_int e;

	context = clCreateContext(NULL, 1, &device, NULL, NULL, &e);
	OK(e);
	queue = clCreateCommandQueue(context, device, 0, &e);
	OK(e);
	p = build_source(context, source, "");
	grow = clCreateKernel(p, "grow", &e);
	OK(e);
	next = clCreateKernel(p, "next", &e);
	OK(e);
	for (int i = 0; i < N; i++)
		given[i] = i * 5;
	for (size_t i = 0; i < sizeof(rows); i++)
		rows[i] = (unsigned char)(i % 249);
	for (int k = 0; k < KINDS; k++) {
		buffer[k] = make_buffer(kinds[k] | CL_MEM_COPY_HOST_PTR, given);
		image[k] = make_image(kinds[k] | CL_MEM_COPY_HOST_PTR, rows);
	}
	open_buffer = make_buffer(CL_MEM_READ_WRITE, NULL);
	open_image = make_image(CL_MEM_READ_WRITE, NULL);
	for (int i = 0; i < N; i++) /* what they were given is theirs */
		given[i] = -1;
}

static uint32_t sum(const unsigned char *p, size_t n)
{
	uint32_t h = 0x811c9dc5u;

	for (size_t i = 0; i < n; i++)
		h = (h ^ p[i]) * 0x01000193u;
	return h;
}

/* The host may write alone: the mapping is there while the program waits, and every other row or
 * number keeps what it was. */
static void write_by_mappings(int s, cl_mem b, cl_mem image)
{
	static const size_t at[3] = {3, 5, 0}, part[3] = {7, 9, 1};
	size_t pitch = 0;
	cl_int e;
	int *p = clEnqueueMapBuffer(queue, b, CL_TRUE, CL_MAP_WRITE, 400, 800, 0, NULL, NULL, &e);
	unsigned char *row;

	OK(e);
	row = clEnqueueMapImage(queue, image, CL_TRUE, CL_MAP_WRITE, at, part, &pitch, NULL, 0,
				NULL, NULL, &e);
	OK(e);
	OK(clFinish(queue));
	for (int i = 0; i < 200; i += 2)
		p[i] = i * s;
	for (size_t y = 0; y < part[1]; y += 2)
		row[y * pitch + 1] = (unsigned char)(s + 1);
	OK(clEnqueueUnmapMemObject(queue, b, p, 0, NULL, NULL));
	OK(clEnqueueUnmapMemObject(queue, image, row, 0, NULL, NULL));
}

static void step(int s, int k)
{
	size_t all = N;
	cl_int more = s;

	if (kinds[k] == CL_MEM_HOST_WRITE_ONLY)
		write_by_mappings(s, buffer[k], image[k]);

	OK(clSetKernelArg(grow, 0, sizeof(cl_mem), &buffer[k]));
	OK(clSetKernelArg(grow, 1, sizeof(more), &more));
	OK(clEnqueueNDRangeKernel(queue, grow, 1, NULL, &all, NULL, 0, NULL, NULL));
	OK(clSetKernelArg(next, 0, sizeof(cl_mem), &image[k]));
	OK(clSetKernelArg(next, 1, sizeof(cl_mem), &open_image));
	OK(clSetKernelArg(next, 2, sizeof(more), &more));
	OK(clEnqueueNDRangeKernel(queue, next, 2, NULL, box, NULL, 0, NULL, NULL));
	OK(clEnqueueCopyImage(queue, open_image, image[k], zero, zero, box, 0, NULL, NULL));
	OK(clEnqueueCopyBuffer(queue, buffer[k], open_buffer, 0, 0, sizeof(back), 0, NULL, NULL));
	OK(clEnqueueReadBuffer(queue, open_buffer, CL_FALSE, 0, sizeof(back), back, 0, NULL, NULL));
	OK(clEnqueueReadImage(queue, open_image, CL_TRUE, zero, box, 0, 0, pixels, 0, NULL, NULL));
	printf("%d %d %08x %08x\n", s, k, sum((unsigned char *)back, sizeof(back)),
	       sum(pixels, sizeof(pixels)));
}

/* What may be said of a part, what it has from the whole, and what the host may do with it. */
static void say_parts(int k)
{
	static const cl_mem_flags said[] = {0, CL_MEM_READ_ONLY, CL_MEM_HOST_READ_ONLY,
					    CL_MEM_HOST_WRITE_ONLY, CL_MEM_HOST_NO_ACCESS};
	const cl_buffer_region region = {1024, 512};

	for (size_t i = 0; i < sizeof(said) / sizeof(*said); i++) {
		cl_mem_flags flags = 0;
		cl_int e;
		cl_mem m = clCreateSubBuffer(buffer[k], said[i], CL_BUFFER_CREATE_TYPE_REGION,
					     &region, &e);

		printf("%d part %zu: %d", k, i, e);
		if (m) {
			OK(clGetMemObjectInfo(m, CL_MEM_FLAGS, sizeof(flags), &flags, NULL));
			flags &= ~(cl_mem_flags)CL_MEM_COPY_HOST_PTR; /* gone after a move */
			printf(" %#lx %d", (unsigned long)flags,
			       clEnqueueReadBuffer(queue, m, CL_TRUE, 0, 4, back, 0, NULL, NULL));
			OK(clReleaseMemObject(m));
		}
		printf("\n");
	}
}

static void say_refusals(int k)
{
	cl_mem_flags flags = 0;
	int w = 7;

	OK(clGetMemObjectInfo(buffer[k], CL_MEM_FLAGS, sizeof(flags), &flags, NULL));
	printf("%d %d %d %d\n", k,
	       (flags & (kinds[k] | CL_MEM_COPY_HOST_PTR)) == (kinds[k] | CL_MEM_COPY_HOST_PTR),
	       clEnqueueReadBuffer(queue, buffer[k], CL_TRUE, 0, 4, back, 0, NULL, NULL),
	       clEnqueueWriteBuffer(queue, buffer[k], CL_TRUE, 0, 4, &w, 0, NULL, NULL));
}

int main(int argc, char **argv)
{
	int steps = argc > 1 ? atoi(argv[1]) : 0;

	if (steps < 1)
		return 2;
	set_up();
	for (int s = 0; s < steps; s++)
		for (int k = 0; k < KINDS; k++)
			step(s, k);
	for (int k = 0; k < KINDS; k++) {
		say_refusals(k);
		say_parts(k);
	}
	return 0;
}
