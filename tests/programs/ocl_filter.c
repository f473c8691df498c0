/* SPDX-License-Identifier: BSD-3-Clause */
/* A chain of image filters with what images have: samplers of several kinds, images of two and
 * three dimensions, arrays, images over buffers and over host memory with padded rows; writes,
 * reads, copies in both directions, fills and mappings of parts. ocl_filter [-o] FRAMES -o: an
 * out-of-order queue with barriers Prints a sum of each frame's bytes. */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <stdint.h>
#include <string.h>
#include "ocl_ok.h"

enum { W = 96, H = 64, LAYERS = 3, PITCH = 4 * W + 64 };

static const char source[] =
    "__kernel void turn(read_only image2d_t in, write_only image2d_t out, sampler_t s, float "
    "angle) {\n"
    "  int2 p = (int2)(get_global_id(0), get_global_id(1));\n"
    "  float2 c = (float2)(get_image_width(in), get_image_height(in)) * 0.5f;\n"
    "  float2 d = convert_float2(p) + 0.5f - c;\n"
    "  float2 q = c + (float2)(d.x - angle * d.y, d.y + angle * d.x);\n"
    "  write_imagef(out, p, read_imagef(in, s, q)); }\n"
    "__constant sampler_t near = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP | "
    "CLK_FILTER_NEAREST;\n"
    "__kernel void sharpen(read_only image2d_t in, write_only image2d_t out, __global const float "
    "*k) {\n"
    "  int2 p = (int2)(get_global_id(0), get_global_id(1));\n"
    "  float4 s = 0;\n"
    "  for (int y = 0; y < 3; y++) for (int x = 0; x < 3; x++)\n"
    "    s += k[3 * y + x] * read_imagef(in, near, p + (int2)(x - 1, y - 1));\n"
    "  write_imagef(out, p, clamp(s, 0.0f, 1.0f)); }\n"
    "__kernel void pile(read_only image2d_array_t in, write_only image3d_t out, __write_only "
    "image1d_buffer_t sums) {\n"
    "  int2 p = (int2)(get_global_id(0), get_global_id(1));\n"
    "  uint4 all = 0;\n"
    "  for (int z = 0; z < get_image_array_size(in); z++) {\n"
    "    uint4 v = read_imageui(in, near, (int4)(p, z, 0));\n"
    "    all += v * (uint)(z + 1);\n"
    "    write_imageui(out, (int4)(p, z, 0), all & (uint)255); }\n"
    "  if (p.y == 0) write_imageui(sums, p.x, all); }\n";

static cl_device_id device;
static cl_context context;
static cl_command_queue queue;
static cl_kernel turn, sharpen, pile;
static cl_sampler samplers[3];
static cl_mem picture[2], host_picture, layers, volume, line, line_data, weights, raw;
static unsigned char in[H][PITCH], own[H * PITCH];
static int out_of_order;

static cl_mem image(cl_mem_object_type type, cl_mem_flags flags, cl_channel_type channels,
		    size_t depth, cl_mem buffer, size_t pitch, void *host)
{
	cl_image_format format = {CL_RGBA, channels};
	cl_image_desc desc = {.image_type = type, .image_width = W, .image_height = H};
	cl_int e;
	cl_mem m;

	if (type == CL_MEM_OBJECT_IMAGE1D_BUFFER)
		desc.image_height = 0;
	if (type == CL_MEM_OBJECT_IMAGE3D)
		desc.image_depth = depth;
	if (type == CL_MEM_OBJECT_IMAGE2D_ARRAY)
		desc.image_array_size = depth;
	desc.image_row_pitch = pitch;
	desc.buffer = buffer;
	m = clCreateImage(context, flags, &format, &desc, host, &e);
	OK(e);
	return m;
}

static cl_kernel kernel(cl_program p, const char *name)
{
	cl_int e;
	cl_kernel k = clCreateKernel(p, name, &e);

	OK(e);
	return k;
}

static void set_up(void)
{
	static float k[9] = {0, -0.25f, 0, -0.25f, 2, -0.25f, 0, -0.25f, 0};
	static const cl_addressing_mode modes[] = {CL_ADDRESS_CLAMP, CL_ADDRESS_CLAMP_TO_EDGE,
						   CL_ADDRESS_NONE};
	cl_program p;
	cl_int e;

	device = first_device();
	context = clCreateContext(NULL, 1, &device, NULL, NULL, &e);
	OK(e);
	queue = clCreateCommandQueue(context, device,
				     out_of_order ? CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE : 0, &e);
	OK(e);
	p = build_source(context, source, "-cl-std=CL1.2");
	turn = kernel(p, "turn");
	sharpen = kernel(p, "sharpen");
	pile = kernel(p, "pile");
	OK(clReleaseProgram(p));
	for (int i = 0; i < 3; i++) {
		samplers[i] = clCreateSampler(context, CL_FALSE, modes[i], CL_FILTER_NEAREST, &e);
		OK(e);
	}
	for (int i = 0; i < 2; i++)
		picture[i] = image(CL_MEM_OBJECT_IMAGE2D, CL_MEM_READ_WRITE, CL_UNORM_INT8, 0, NULL,
				   0, NULL);
	for (size_t i = 0; i < sizeof(own); i++)
		own[i] = (unsigned char)(i * 13 % 251);
	host_picture = image(CL_MEM_OBJECT_IMAGE2D, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR,
			     CL_UNORM_INT8, 0, NULL, PITCH, own);
	layers = image(CL_MEM_OBJECT_IMAGE2D_ARRAY, CL_MEM_READ_WRITE, CL_UNSIGNED_INT8, LAYERS,
		       NULL, 0, NULL);
	volume = image(CL_MEM_OBJECT_IMAGE3D, CL_MEM_READ_WRITE, CL_UNSIGNED_INT8, LAYERS, NULL, 0,
		       NULL);
	line_data = clCreateBuffer(context, CL_MEM_READ_WRITE, 16 * W, NULL, &e);
	OK(e);
	line = image(CL_MEM_OBJECT_IMAGE1D_BUFFER, CL_MEM_READ_WRITE, CL_UNSIGNED_INT32, 0,
		     line_data, 0, NULL);
	weights =
	    clCreateBuffer(context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, sizeof(k), k, &e);
	OK(e);
	raw = clCreateBuffer(context, CL_MEM_READ_WRITE, 4 * W * H, NULL, &e);
	OK(e);
}

/* Each command is behind the one before. */
static void then(void)
{
	if (out_of_order)
		OK(clEnqueueBarrierWithWaitList(queue, 0, NULL, NULL));
}

static void launch(cl_kernel k)
{
	size_t global[] = {W, H};

	OK(clEnqueueNDRangeKernel(queue, k, 2, NULL, global, NULL, 0, NULL, NULL));
	then();
}

static const size_t zero[3];

/* A part of the new frame from padded rows, a part through a mapping, a stripe by a fill. */
static void feed(int f)
{
	size_t part[] = {W, H / 2, 1}, lower[] = {0, H / 2, 0}, stripe[] = {4, H, 1};
	size_t at[] = {(size_t)f * 5 % (W - 4), 0, 0}, pitch = 0;
	float colour[4] = {0.25f, 0.5f, (float)(f % 8) / 8, 1};
	unsigned char *p;
	cl_int e;

	for (int y = 0; y < H; y++)
		for (int x = 0; x < 4 * W; x++)
			in[y][x] = (unsigned char)((x * 3 + y * 5 + f * 17) % 253);
	OK(clEnqueueWriteImage(queue, picture[0], CL_FALSE, zero, part, PITCH, 0, in, 0, NULL,
			       NULL));
	then();
	p = clEnqueueMapImage(queue, picture[0], CL_TRUE, CL_MAP_WRITE, lower, part, &pitch, NULL,
			      0, NULL, NULL, &e);
	OK(e);
	for (int y = 0; y < H / 2; y++)
		memcpy(p + (size_t)y * pitch, in[H / 2 + y], 4 * W);
	OK(clEnqueueUnmapMemObject(queue, picture[0], p, 0, NULL, NULL));
	then();
	OK(clEnqueueFillImage(queue, picture[0], colour, at, stripe, 0, NULL, NULL));
	then();
}

static void filter(int f)
{
	float angle = 0.01f * (float)(f + 1);

	OK(clSetKernelArg(turn, 0, sizeof(cl_mem), &picture[0]));
	OK(clSetKernelArg(turn, 1, sizeof(cl_mem), &picture[1]));
	OK(clSetKernelArg(turn, 2, sizeof(cl_sampler), &samplers[f % 3]));
	OK(clSetKernelArg(turn, 3, sizeof(angle), &angle));
	launch(turn);
	OK(clSetKernelArg(sharpen, 0, sizeof(cl_mem), &picture[1]));
	OK(clSetKernelArg(sharpen, 1, sizeof(cl_mem), &host_picture));
	OK(clSetKernelArg(sharpen, 2, sizeof(cl_mem), &weights));
	launch(sharpen);
}

/* The frame becomes one of the layers, by a buffer or at once. */
static void keep(int f)
{
	size_t box[] = {W, H, 1}, layer[] = {0, 0, (size_t)f % LAYERS};

	if (f % 2) {
		OK(clEnqueueCopyImageToBuffer(queue, host_picture, raw, zero, box, 0, 0, NULL,
					      NULL));
		then();
		OK(clEnqueueCopyBufferToImage(queue, raw, layers, 0, layer, box, 0, NULL, NULL));
	} else {
		size_t whole[] = {W, H, 1};

		OK(clEnqueueReadImage(queue, host_picture, CL_TRUE, zero, whole, PITCH, 0, in, 0,
				      NULL, NULL));
		OK(clEnqueueWriteImage(queue, layers, CL_TRUE, layer, box, PITCH, 0, in, 0, NULL,
				       NULL));
	}
	then();
}

static uint32_t mix(uint32_t h, const unsigned char *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		h = (h ^ p[i]) * 0x01000193u;
	return h;
}

static void show(int f)
{
	static unsigned char all[LAYERS][H][W][4];
	size_t box[] = {W, H, LAYERS}, row[] = {W, 1, 1}, pitch = 0;
	static uint32_t sums[4 * W];
	uint32_t h = 0x811c9dc5u;
	unsigned char *p;
	cl_int e;

	OK(clSetKernelArg(pile, 0, sizeof(cl_mem), &layers));
	OK(clSetKernelArg(pile, 1, sizeof(cl_mem), &volume));
	OK(clSetKernelArg(pile, 2, sizeof(cl_mem), &line));
	launch(pile);
	OK(clEnqueueReadImage(queue, volume, CL_FALSE, zero, box, 0, 0, all, 0, NULL, NULL));
	OK(clEnqueueReadBuffer(queue, line_data, CL_FALSE, 0, sizeof(sums), sums, 0, NULL, NULL));
	OK(clFinish(queue));
	h = mix(mix(h, &all[0][0][0][0], sizeof(all)), (unsigned char *)sums, sizeof(sums));
	p = clEnqueueMapImage(queue, host_picture, CL_TRUE, CL_MAP_READ,
			      (size_t[]){0, (size_t)f % H, 0}, row, &pitch, NULL, 0, NULL, NULL,
			      &e);
	OK(e);
	h = mix(h, p, 4 * W);
	OK(clEnqueueUnmapMemObject(queue, host_picture, p, 0, NULL, NULL));
	then();
	printf("frame %d %08x\n", f, h);
}

int main(int argc, char **argv)
{
	int frames = argc > 1 ? atoi(argv[argc - 1]) : 0;

	out_of_order = argc > 2 && strcmp(argv[1], "-o") == 0;
	if (frames < 1)
		return 2;
	set_up();
	OK(clEnqueueFillImage(queue, layers, (cl_uint[4]){1, 2, 3, 4}, zero,
			      (size_t[]){W, H, LAYERS}, 0, NULL, NULL));
	then();
	OK(clEnqueueCopyImage(queue, host_picture, picture[1], zero, zero, (size_t[]){W, H, 1}, 0,
			      NULL, NULL));
	then();
	for (int f = 0; f < frames; f++) {
		feed(f);
		filter(f);
		keep(f);
		show(f);
	}
	for (int i = 0; i < 2; i++)
		OK(clReleaseMemObject(picture[i]));
	for (int i = 0; i < 3; i++)
		OK(clReleaseSampler(samplers[i]));
	OK(clReleaseMemObject(line));
	OK(clReleaseMemObject(line_data));
	OK(clReleaseMemObject(layers));
	OK(clReleaseMemObject(volume));
	OK(clReleaseCommandQueue(queue));
	OK(clReleaseContext(context));
	return 0;
}
