/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes one of each kind of OpenCL object, says "ready", waits until the file GO is there, and uses
 * what it made before. ocl_state GO [gate]: with gate, a command waits for a user event meanwhile.
 */
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <string.h>
#include <unistd.h>
#include "ocl_ok.h"

enum { N = 4096, SIDE = 64 };

static const char header[] = "inline int twice(int x) { return 2 * x; }\n";
static const char source[] = "#include \"twice.h\"\n"
			     "__kernel void grow(__global int *a, __global const int *b, int k) {\n"
			     "  int i = get_global_id(0); a[i] = twice(a[i]) + b[i] * k; }\n";
static const char blur_source[] =
    "__kernel void blur(read_only image2d_t in, write_only image2d_t out, sampler_t s) {\n"
    "  int2 p = (int2)(get_global_id(0), get_global_id(1));\n"
    "  write_imagef(out, p, 0.5f * (read_imagef(in, s, p) + read_imagef(in, s, p + (int2)(1, "
    "0)))); }\n";

static cl_device_id device;
static cl_context context;
static cl_command_queue queue, loose;
static cl_program program, blur_program;
static cl_kernel grow, clone, blur;
static cl_mem a, b, part, image[2];
static cl_sampler sampler;
static cl_event launched, user, gate;
static cl_ulong times[2];
static int *shared, *map, *clone_host, called;

static unsigned sum(const void *data, size_t size)
{
	const unsigned char *p = data;
	unsigned h = 2166136261u;

	for (size_t i = 0; i < size; i++)
		h = (h ^ p[i]) * 16777619u;
	return h;
}

static void make_programs(void)
{
	const char *text = source, *part_text = header, *name = "twice.h", *blur_text = blur_source;
	cl_program parts[2];
	cl_int e;

	parts[0] = clCreateProgramWithSource(context, 1, &text, NULL, &e);
	OK(e);
	parts[1] = clCreateProgramWithSource(context, 1, &part_text, NULL, &e);
	OK(e);
	OK(clCompileProgram(parts[0], 0, NULL, "", 1, &parts[1], &name, NULL, NULL));
	program = clLinkProgram(context, 0, NULL, "", 1, parts, NULL, NULL, &e);
	OK(e);
	OK(clReleaseProgram(parts[0]));
	OK(clReleaseProgram(parts[1]));
	blur_program = clCreateProgramWithSource(context, 1, &blur_text, NULL, &e);
	OK(e);
	OK(clBuildProgram(blur_program, 0, NULL, "", NULL, NULL));
	grow = clCreateKernel(program, "grow", &e);
	OK(e);
	blur = clCreateKernel(blur_program, "blur", &e);
	OK(e);
	OK(clReleaseProgram(blur_program)); /* its kernel still needs it */
}

static void make_memory(void)
{
	cl_buffer_region half = {N / 2 * sizeof(int), N / 2 * sizeof(int)};
	cl_image_format format = {CL_RGBA, CL_FLOAT};
	cl_image_desc desc = {
	    .image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = SIDE, .image_height = SIDE};
	float *colours = malloc(SIDE * SIDE * 16);
	int *host = malloc(N * sizeof(int));
	cl_int e;

	shared = aligned_alloc(4096, N * sizeof(int));
	for (int i = 0; i < N; i++)
		host[i] = shared[i] = i;
	for (int i = 0; i < SIDE * SIDE * 4; i++)
		colours[i] = (float)(i % 13);
	a = clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, N * sizeof(int), host, &e);
	OK(e);
	b = clCreateBuffer(context, CL_MEM_USE_HOST_PTR | CL_MEM_READ_ONLY, N * sizeof(int), shared,
			   &e);
	OK(e);
	part = clCreateSubBuffer(a, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &half, &e);
	OK(e);
	for (int i = 0; i < 2; i++) {
		image[i] =
		    clCreateImage(context, CL_MEM_COPY_HOST_PTR, &format, &desc, colours, &e);
		OK(e);
	}
	sampler =
	    clCreateSampler(context, CL_FALSE, CL_ADDRESS_CLAMP_TO_EDGE, CL_FILTER_NEAREST, &e);
	OK(e);
	free(colours);
	free(host);
}

static void set_up(void)
{
	cl_queue_properties list[] = {CL_QUEUE_PROPERTIES, CL_QUEUE_PROFILING_ENABLE, 0};
	cl_int e;

	device = first_device();
	context = clCreateContext(NULL, 1, &device, NULL, NULL, &e);
	OK(e);
	queue = clCreateCommandQueueWithProperties(context, device, list, &e);
	OK(e);
	list[1] = CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;
	loose = clCreateCommandQueueWithProperties(context, device, list, &e);
	OK(e);
	make_programs();
	make_memory();
}

static void CL_CALLBACK note(cl_event e, cl_int status, void *data)
{
	*(int *)data = status == CL_COMPLETE ? 1 : -1;
}

static void before(void)
{
	size_t n = N, side[2] = {SIDE, SIDE};
	int k = 3;
	cl_int e;

	OK(clSetKernelArg(grow, 0, sizeof(a), &a));
	OK(clSetKernelArg(grow, 1, sizeof(b), &b));
	OK(clSetKernelArg(grow, 2, sizeof(k), &k));
	OK(clEnqueueNDRangeKernel(queue, grow, 1, NULL, &n, NULL, 0, NULL, &launched));
	OK(clSetKernelArg(blur, 0, sizeof(cl_mem), &image[0]));
	OK(clSetKernelArg(blur, 1, sizeof(cl_mem), &image[1]));
	OK(clSetKernelArg(blur, 2, sizeof(sampler), &sampler));
	OK(clEnqueueNDRangeKernel(queue, blur, 2, NULL, side, NULL, 0, NULL, NULL));
	OK(clFinish(queue));
	OK(clGetEventProfilingInfo(launched, CL_PROFILING_COMMAND_START, 8, &times[0], NULL));
	OK(clGetEventProfilingInfo(launched, CL_PROFILING_COMMAND_END, 8, &times[1], NULL));
	clone = clCloneKernel(grow, &e);
	OK(e);
	user = clCreateUserEvent(context, &e);
	OK(e);
	OK(clSetUserEventStatus(user, CL_COMPLETE));
	map = clEnqueueMapBuffer(queue, part, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0, 4096, 0, NULL,
				 NULL, &e);
	OK(e);
	map[1] += 77;
}

/* A command that can't run before the program says so. */
static void hold_up(void)
{
	cl_int e;

	clone_host = malloc(N * sizeof(int));
	gate = clCreateUserEvent(context, &e);
	OK(e);
	OK(clEnqueueReadBuffer(loose, a, CL_FALSE, 0, N * sizeof(int), clone_host, 1, &gate, NULL));
}

static void look_at_objects(void)
{
	cl_ulong again[2];
	cl_device_id d;
	cl_context c;
	cl_program p;
	cl_uint count;
	cl_int status;

	OK(clGetContextInfo(context, CL_CONTEXT_DEVICES, sizeof(d), &d, NULL));
	OK(clGetKernelInfo(grow, CL_KERNEL_PROGRAM, sizeof(p), &p, NULL));
	OK(clGetKernelInfo(grow, CL_KERNEL_NUM_ARGS, sizeof(count), &count, NULL));
	OK(clGetMemObjectInfo(part, CL_MEM_CONTEXT, sizeof(c), &c, NULL));
	MUST(d == device && p == program && count == 3 && c == context);
	OK(clGetEventInfo(launched, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status,
			  NULL));
	MUST(status == CL_COMPLETE);
	OK(clGetEventProfilingInfo(launched, CL_PROFILING_COMMAND_START, 8, &again[0], NULL));
	OK(clGetEventProfilingInfo(launched, CL_PROFILING_COMMAND_END, 8, &again[1], NULL));
	MUST(again[0] == times[0] && again[1] == times[1]);
}

static void after(void)
{
	size_t n = N, side[2] = {SIDE, SIDE}, origin[3] = {0}, region[3] = {SIDE, SIDE, 1};
	static int host[N];
	static float colours[SIDE * SIDE * 4];
	cl_event waits[2] = {launched, user}, done;
	int k = 5;

	map[2] += 78;
	OK(clEnqueueUnmapMemObject(queue, part, map, 0, NULL, &done));
	OK(clFinish(queue));
	/* the first and second arguments are those from before */
	OK(clSetKernelArg(clone, 2, sizeof(k), &k));
	OK(clEnqueueNDRangeKernel(loose, clone, 1, NULL, &n, NULL, 2, waits, &done));
	OK(clEnqueueNDRangeKernel(loose, grow, 1, NULL, &n, NULL, 1, &done, &waits[0]));
	OK(clEnqueueReadBuffer(loose, a, CL_TRUE, 0, sizeof(host), host, 1, &waits[0], &done));
	printf("buffer %08x\n", sum(host, sizeof(host)));
	OK(clSetEventCallback(done, CL_COMPLETE, note, &called));
	for (int i = 0; i < 10000 && !*(volatile int *)&called; i++)
		usleep(1000);
	MUST(called == 1);
	OK(clSetKernelArg(blur, 0, sizeof(cl_mem), &image[1]));
	OK(clSetKernelArg(blur, 1, sizeof(cl_mem), &image[0]));
	OK(clEnqueueNDRangeKernel(queue, blur, 2, NULL, side, NULL, 0, NULL, NULL));
	OK(clEnqueueReadImage(queue, image[0], CL_TRUE, origin, region, 0, 0, colours, 0, NULL,
			      NULL));
	printf("image %08x\n", sum(colours, sizeof(colours)));
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc < 2)
		return 64;
	set_up();
	before();
	if (argc > 2)
		hold_up();
	printf("ready\n");
	while (access(argv[1], F_OK) != 0)
		usleep(2000);
	if (gate)
		OK(clSetUserEventStatus(gate, CL_COMPLETE));
	look_at_objects();
	after();
	return 0;
}
