/* SPDX-License-Identifier: BSD-3-Clause */
/* ocl_misc errors: what invalid handles, counts and parameters give, one line each.
 * ocl_misc callback: data used in a callback and after it. ocl_misc corrupt: a bit of a buffer that
 * lies in host memory flips by itself (corrupt clean: it doesn't). ocl_misc liar: a kernel writes
 * to a read-only buffer; cast, cast-some: by casting const away. ocl_misc endless STEPS: commands
 * without any synchronisation. ocl_misc image, svm, native, parts (sub-devices; parts GO: in the
 * middle it waits for a file GO). ocl_misc once STEPS: every callback is called once, whatever
 * happens meanwhile. ocl_misc left GO: callbacks for what never happens, since the runtime ends
 * before there is a file GO. ocl_misc enormous STEPS MIB: as much host data as that in one log.
 * ocl_misc lent: buffers in memory of the program, which has it for something else as soon as it
 * has released them. ocl_misc held: a mapping that is written to while epochs close. ocl_misc
 * failing GO: a callback of a command that fails, since the program says so; then it waits for the
 * file GO, and works. ocl_misc brief: buffers made and released one after the other. ocl_misc many:
 * more callbacks than a ring holds, behind one that waits for the program. */
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "ocl_ok.h"

enum { N = 4096 };
static cl_device_id device;
static cl_context context;
static cl_command_queue queue;
static cl_kernel kernel;

static const char source[] =
    "__kernel void grow(__global int *a, __global const int *b) {\n"
    "  int i = get_global_id(0); a[i] = a[i] * 3 + b[i]; }\n"
    "__kernel void cheat(__global int *a, __global int *b) {\n"
    "  int i = get_global_id(0); b[i] += 1; a[i] += b[i]; }\n"
    "__kernel void cast(__global int *a, __global const int *b) {\n"
    "  int i = get_global_id(0); ((__global int *)b)[i] += 1; a[i] += b[i]; }\n"
    "__kernel void blur(read_only image2d_t in, write_only image2d_t out, sampler_t s) {\n"
    "  int2 p = (int2)(get_global_id(0), get_global_id(1));\n"
    "  write_imagef(out, p, 0.5f * (read_imagef(in, s, p) + read_imagef(in, s, p + (int2)(1, "
    "0)))); }\n";

static void set_up(const char *name)
{
	cl_program p;
	cl_int e;

	device = first_device();
	context = clCreateContext(NULL, 1, &device, NULL, NULL, &e);
	OK(e);
	queue = clCreateCommandQueueWithProperties(context, device, NULL, &e);
	OK(e);
	p = build_source(context, source, "");
	kernel = clCreateKernel(p, name, &e);
	OK(e);
	OK(clReleaseProgram(p));
}

static cl_mem buffer(cl_mem_flags flags, size_t size, void *host)
{
	cl_int e;
	cl_mem m = clCreateBuffer(context, flags, size, host, &e);

	OK(e);
	return m;
}

static void launch(cl_mem a, cl_mem b)
{
	size_t global = N;

	OK(clSetKernelArg(kernel, 0, sizeof(a), &a));
	OK(clSetKernelArg(kernel, 1, sizeof(b), &b));
	OK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &global, NULL, 0, NULL, NULL));
}

static unsigned sum(const int *p)
{
	unsigned s = 0;

	for (int i = 0; i < N; i++)
		s = s * 31 + (unsigned)p[i];
	return s;
}

static void show_sum(cl_mem a)
{
	static int host[N];

	OK(clEnqueueReadBuffer(queue, a, CL_TRUE, 0, sizeof(host), host, 0, NULL, NULL));
	printf("%08x\n", sum(host));
}

static void errors(void)
{
	cl_mem m = buffer(CL_MEM_READ_WRITE, 64, NULL);
	cl_event event = clCreateUserEvent(context, NULL);
	size_t global = 1;
	cl_uint refs;
	char data[128] = {0};
	cl_int e;

	printf("%d\n", clEnqueueReadBuffer(queue, NULL, CL_TRUE, 0, 4, data, 0, NULL, NULL));
	printf("%d\n", clEnqueueReadBuffer(NULL, m, CL_TRUE, 0, 4, data, 0, NULL, NULL));
	printf("%d\n", clEnqueueReadBuffer(queue, m, CL_TRUE, 60, 8, data, 0, NULL, NULL));
	printf("%d\n", clEnqueueReadBuffer(queue, m, CL_FALSE, 0, 8, NULL, 0, NULL, NULL));
	printf("%d\n", clEnqueueWriteBuffer(queue, m, CL_TRUE, 0, 8, data, 1, NULL, NULL));
	printf("%d\n", clEnqueueWriteBuffer(queue, m, CL_TRUE, 0, 8, data, 0, &event, NULL));
	printf("%d\n", clEnqueueFillBuffer(queue, m, data, 3, 0, 6, 0, NULL, NULL));
	printf("%d\n",
	       clEnqueueNDRangeKernel(queue, kernel, 0, NULL, &global, NULL, 0, NULL, NULL));
	printf("%d\n", clSetKernelArg(kernel, 9, sizeof(m), &m));
	printf("%d\n", clSetKernelArg(kernel, 0, 3, &m));
	printf("%d\n", clWaitForEvents(0, NULL));
	printf("%d\n", clFinish(NULL));
	printf("%d\n", clReleaseMemObject(NULL));
	clEnqueueMapBuffer(queue, m, CL_TRUE, CL_MAP_READ, 60, 8, 0, NULL, NULL, &e);
	printf("%d\n", e);
	OK(clRetainMemObject(m));
	OK(clGetMemObjectInfo(m, CL_MEM_REFERENCE_COUNT, sizeof(refs), &refs, NULL));
	printf("refs %u\n", refs);
	OK(clReleaseMemObject(m));
	OK(clEnqueueWriteBuffer(queue, m, CL_FALSE, 0, 8, data, 0, NULL, &event));
	OK(clFinish(queue));
	/* for a moment there are references of the runtime's own besides */
	OK(clGetEventInfo(event, CL_EVENT_REFERENCE_COUNT, sizeof(refs), &refs, NULL));
	printf("refs %s\n", refs >= 1 && refs <= 3 ? "few" : "many");
	OK(clGetMemObjectInfo(m, CL_MEM_REFERENCE_COUNT, sizeof(refs), &refs, NULL));
	printf("refs %u\n", refs);
}

static int seen[N];
static _Atomic int called;

static void CL_CALLBACK note(cl_event e, cl_int status, void *data)
{
	printf("%08x %d\n", sum(seen), status);
	fflush(stdout);
	called = 1;
}

static void callback(void)
{
	static int host[N];
	cl_event done;
	cl_mem a, b;

	for (int i = 0; i < N; i++)
		host[i] = i;
	a = buffer(CL_MEM_COPY_HOST_PTR, sizeof(host), host);
	b = buffer(CL_MEM_COPY_HOST_PTR, sizeof(host), host);
	for (int s = 0; s < 4; s++) {
		launch(a, b);
		OK(clEnqueueReadBuffer(queue, a, CL_FALSE, 0, sizeof(seen), seen, 0, NULL, &done));
		called = 0;
		OK(clSetEventCallback(done, CL_COMPLETE, note, NULL));
		OK(clFlush(queue));
		while (!called)
			usleep(100);
		clReleaseEvent(done);
	}
	show_sum(a);
}

static void corrupt(int flips)
{
	static int host[N];
	int *shared = aligned_alloc(4096, sizeof(host));
	cl_mem a, b;

	memset(host, 0, sizeof(host));
	for (int i = 0; i < N; i++)
		shared[i] = i;
	a = buffer(CL_MEM_COPY_HOST_PTR, sizeof(host), host);
	b = buffer(CL_MEM_READ_ONLY | CL_MEM_USE_HOST_PTR, sizeof(host), shared);
	for (int s = 0; s < 6; s++) {
		launch(a, b);
		show_sum(a);
		if (s == 2 && flips)
			shared[17] ^= 1 << 20; /* nobody wrote that */
	}
}

/* steps of "cheat", whose b is said to be read-only, or of "cast"; some: the host writes a part of
 * b in between. */
static void liar(cl_mem_flags flags, bool some)
{
	static int host[N];
	cl_mem a = buffer(CL_MEM_COPY_HOST_PTR, sizeof(host), host);
	cl_mem b = buffer(flags | CL_MEM_COPY_HOST_PTR, sizeof(host), host);

	for (int s = 0; s < 6; s++) {
		if (some)
			OK(clEnqueueWriteBuffer(queue, b, CL_TRUE, 0, 4, &s, 0, NULL, NULL));
		launch(a, b);
		show_sum(a);
	}
}

static void endless(int steps)
{
	static int host[N];
	cl_mem a = buffer(CL_MEM_COPY_HOST_PTR, sizeof(host), host);
	cl_mem b = buffer(CL_MEM_COPY_HOST_PTR, sizeof(host), host);

	for (int s = 0; s < steps; s++) {
		OK(clEnqueueWriteBuffer(queue, b, CL_FALSE, 0, 4, host, 0, NULL, NULL));
		if (s % 1000 == 0)
			launch(a, b);
	}
	show_sum(a);
}

/* Host data that nothing waits for but its own copies: steps times mib MiB. */
static void enormous(int steps, int mib)
{
	size_t bytes = (size_t)mib << 20;
	unsigned *host = calloc(1, bytes);
	unsigned sum_of = 2166136261u;
	cl_mem a = buffer(CL_MEM_READ_WRITE, bytes, NULL),
	       b = buffer(CL_MEM_READ_WRITE, bytes, NULL);

	for (int s = 0; s < steps; s++) {
		for (size_t i = 0; i < bytes / 4; i += 512)
			host[i] = (unsigned)s * 31 + (unsigned)i;
		OK(clEnqueueWriteBuffer(queue, s % 2 ? a : b, CL_TRUE, 0, bytes, host, 0, NULL,
					NULL));
		launch(a, b);
	}
	OK(clEnqueueReadBuffer(queue, a, CL_TRUE, 0, bytes, host, 0, NULL, NULL));
	for (size_t i = 0; i < bytes / 4; i++)
		sum_of = (sum_of ^ host[i]) * 16777619u;
	printf("%08x\n", sum_of);
}

static void image(void)
{
	cl_image_format format = {CL_RGBA, CL_FLOAT};
	cl_image_desc desc = {
	    .image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = 64, .image_height = 64};
	static float host[64 * 64 * 4];
	size_t origin[3] = {0}, region[3] = {64, 64, 1}, row;
	cl_sampler_properties list[] = {CL_SAMPLER_NORMALIZED_COORDS,
					CL_FALSE,
					CL_SAMPLER_ADDRESSING_MODE,
					CL_ADDRESS_CLAMP_TO_EDGE,
					CL_SAMPLER_FILTER_MODE,
					CL_FILTER_NEAREST,
					0};
	cl_mem at[2];
	cl_sampler sampler;
	cl_int e;

	for (size_t i = 0; i < 64 * 64 * 4; i++)
		host[i] = (float)(i % 13);
	for (int i = 0; i < 2; i++) {
		at[i] = clCreateImage(context, CL_MEM_COPY_HOST_PTR, &format, &desc, host, &e);
		OK(e);
	}
	sampler = clCreateSamplerWithProperties(context, list, &e);
	OK(e);
	for (int s = 0; s < 6; s++) {
		float *p;

		OK(clSetKernelArg(kernel, 0, sizeof(cl_mem), &at[s % 2]));
		OK(clSetKernelArg(kernel, 1, sizeof(cl_mem), &at[1 - s % 2]));
		OK(clSetKernelArg(kernel, 2, sizeof(sampler), &sampler));
		OK(clEnqueueNDRangeKernel(queue, kernel, 2, NULL, region, NULL, 0, NULL, NULL));
		p = clEnqueueMapImage(queue, at[1 - s % 2], CL_TRUE, CL_MAP_READ | CL_MAP_WRITE,
				      origin, region, &row, NULL, 0, NULL, NULL, &e);
		OK(e);
		p[s] += 1;
		OK(clEnqueueUnmapMemObject(queue, at[1 - s % 2], p, 0, NULL, NULL));
		OK(clEnqueueReadImage(queue, at[1 - s % 2], CL_TRUE, origin, region, 0, 0, host, 0,
				      NULL, NULL));
		printf("%08x\n", sum((int *)host));
	}
}

static void svm(void)
{
	int *a = clSVMAlloc(context, CL_MEM_READ_WRITE, N * sizeof(int), 0);
	int *b = clSVMAlloc(context, CL_MEM_READ_WRITE, N * sizeof(int), 0);
	size_t global = N;

	if (!a || !b)
		exit(77);
	OK(clEnqueueSVMMap(queue, CL_TRUE, CL_MAP_WRITE, a, N * sizeof(int), 0, NULL, NULL));
	for (int i = 0; i < N; i++)
		a[i] = i;
	OK(clEnqueueSVMUnmap(queue, a, 0, NULL, NULL));
	OK(clEnqueueSVMMemcpy(queue, CL_TRUE, b, a, N * sizeof(int), 0, NULL, NULL));
	for (int s = 0; s < 6; s++) {
		OK(clSetKernelArgSVMPointer(kernel, 0, a));
		OK(clSetKernelArgSVMPointer(kernel, 1, b));
		OK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &global, NULL, 0, NULL, NULL));
		OK(clEnqueueSVMMap(queue, CL_TRUE, CL_MAP_READ, a, N * sizeof(int), 0, NULL, NULL));
		printf("%08x\n", sum(a));
		OK(clEnqueueSVMUnmap(queue, a, 0, NULL, NULL));
	}
	OK(clFinish(queue));
	clSVMFree(context, a);
	clSVMFree(context, b);
}

/* Parts that are released before the program is killed are none afterwards: what is made then may
 * have their numbers with the server. */
static void wait_for(const char *go)
{
	cl_device_partition_property by[] = {CL_DEVICE_PARTITION_EQUALLY, 1, 0};
	cl_device_id part[2][64];
	cl_uint n;

	for (int i = 0; i < 2; i++)
		OK(clCreateSubDevices(device, by, 64, part[i], &n));
	OK(clReleaseDevice(part[0][0]));
	for (cl_uint i = 0; i < n; i++)
		OK(clReleaseDevice(part[1][i]));
	printf("ready\n");
	while (access(go, F_OK) != 0)
		usleep(1000);
	for (int i = 0; i < 4; i++)
		OK(clReleaseMemObject(buffer(0, N, NULL)));
	for (int i = 0; i < 4; i++)
		buffer(0, N, NULL);
	for (cl_uint i = 1; i < n; i++)
		OK(clReleaseDevice(part[0][i]));
}

/* Halves of the device: a context of both, a queue for each. */
static void parts(const char *go)
{
	cl_device_partition_property by[] = {CL_DEVICE_PARTITION_EQUALLY, 1, 0}, how[4] = {0};
	cl_device_id part[64], parent = NULL;
	cl_command_queue q[2];
	const char *text = source;
	size_t global = N;
	cl_uint n = 0, refs = 0;
	cl_program p;
	cl_mem a, b;
	cl_int e;

	OK(clCreateSubDevices(device, by, 64, part, &n));
	if (n < 2)
		exit(77);
	OK(clRetainDevice(part[0]));
	OK(clGetDeviceInfo(part[0], CL_DEVICE_REFERENCE_COUNT, sizeof(refs), &refs, NULL));
	OK(clReleaseDevice(part[0]));
	OK(clGetDeviceInfo(part[1], CL_DEVICE_PARENT_DEVICE, sizeof(parent), &parent, NULL));
	OK(clGetDeviceInfo(part[1], CL_DEVICE_PARTITION_TYPE, sizeof(how), how, NULL));
	printf("%u parts, references %u, of it %d, type %lx %ld\n", n, refs, parent == device,
	       (unsigned long)how[0], (long)how[1]);
	by[1] = 1000;
	printf("too large %d, no list %d\n", clCreateSubDevices(device, by, 64, part + 2, NULL),
	       clCreateSubDevices(device, NULL, 64, part + 2, NULL));
	context = clCreateContext(NULL, 2, part, NULL, NULL, &e);
	OK(e);
	p = clCreateProgramWithSource(context, 1, &text, NULL, &e);
	OK(clBuildProgram(p, 2, part, "", NULL, NULL));
	kernel = clCreateKernel(p, "grow", &e);
	OK(e);
	a = buffer(0, N * 4, NULL);
	b = buffer(0, N * 4, NULL);
	for (int i = 0; i < 2; i++) {
		q[i] = clCreateCommandQueue(context, part[i], 0, &e);
		OK(e);
	}
	OK(clEnqueueFillBuffer(q[0], a, &n, 4, 0, N * 4, 0, NULL, NULL));
	OK(clEnqueueFillBuffer(q[0], b, &n, 4, 0, N * 4, 0, NULL, NULL));
	OK(clSetKernelArg(kernel, 0, sizeof(cl_mem), &a));
	OK(clSetKernelArg(kernel, 1, sizeof(cl_mem), &b));
	for (int s = 0; s < 6; s++) {
		OK(clFinish(q[s % 2]));
		queue = q[(s + 1) % 2];
		OK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &global, NULL, 0, NULL, NULL));
		show_sum(a);
		if (s == 2 && go)
			wait_for(go);
	}
	/* Not sooner: PoCL 3.1 frees a released part that a queue still uses (valgrind sees the reads). */
	for (int i = 0; i < 2; i++) {
		OK(clReleaseCommandQueue(q[i]));
		OK(clReleaseDevice(part[i]));
	}
}

/* ---- how often callbacks are called ---- */

enum { STEPS_MAX = 10000 };
static _Atomic int calls[STEPS_MAX], failed, notes, destroyed, built;

static void CL_CALLBACK count(cl_event e, cl_int status, void *data)
{
	calls[(size_t)data]++;
	failed += status != CL_COMPLETE;
}

static void CL_CALLBACK note_context(const char *text, const void *more, size_t size, void *data)
{
	notes++;
}

static void CL_CALLBACK note_end(cl_mem m, void *data)
{
	destroyed++;
}

static void CL_CALLBACK note_build(cl_program p, void *data)
{
	built++;
}

static void once(int steps)
{
	static int host[N], got[N];
	cl_mem a, b;
	cl_event done;

	for (int i = 0; i < N; i++)
		host[i] = i;
	a = buffer(CL_MEM_COPY_HOST_PTR, sizeof(host), host);
	b = buffer(CL_MEM_COPY_HOST_PTR, sizeof(host), host);
	OK(clSetMemObjectDestructorCallback(a, note_end, NULL));
	for (int s = 0; s < steps && s < STEPS_MAX; s++) {
		launch(a, b);
		OK(clEnqueueMarkerWithWaitList(queue, 0, NULL, &done));
		OK(clSetEventCallback(done, CL_COMPLETE, count, (void *)(size_t)s));
		OK(clReleaseEvent(done));
		if (s % 8 == 7)
			OK(clEnqueueReadBuffer(queue, a, CL_TRUE, 0, sizeof(got), got, 0, NULL,
					       NULL));
		if (s % 100 == 0)
			printf("%d\n", s);
	}
	show_sum(a);
	for (int s = 0; s < steps && s < STEPS_MAX; s++) {
		for (int i = 0; i < 5000 && !calls[s]; i++)
			usleep(1000);
		if (calls[s] != 1)
			printf("callback %d was called %d times\n", s, calls[s]);
	}
	OK(clReleaseMemObject(a));
	OK(clReleaseMemObject(b));
	OK(clReleaseKernel(kernel));
	OK(clReleaseCommandQueue(queue));
	OK(clReleaseContext(context));
	for (int i = 0; i < 5000 && !destroyed; i++)
		usleep(1000);
	usleep(200000); /* a second one would come about now */
	printf("failed %d, destructors %d\n", failed, destroyed);
}

static void CL_CALLBACK wait_late(cl_event e, cl_int status, void *late)
{
	OK(clWaitForEvents(1, late));
	failed += status != CL_COMPLETE;
}

static void many(void)
{
	enum { MANY = 6000 };
	cl_event late, done;
	cl_int e;

	late = clCreateUserEvent(context, &e);
	OK(e);
	OK(clEnqueueMarkerWithWaitList(queue, 0, NULL, &done));
	OK(clSetEventCallback(done, CL_COMPLETE, wait_late, &late));
	OK(clReleaseEvent(done));
	for (int s = 0; s < MANY; s++) {
		OK(clEnqueueMarkerWithWaitList(queue, 0, NULL, &done));
		OK(clSetEventCallback(done, CL_COMPLETE, count, (void *)(size_t)s));
		OK(clReleaseEvent(done));
	}
	OK(clFinish(queue));
	OK(clSetUserEventStatus(late, CL_COMPLETE));
	for (int s = 0; s < MANY; s++) {
		for (int i = 0; i < 20000 && !calls[s]; i++)
			usleep(1000);
		if (calls[s] != 1)
			printf("callback %d was called %d times\n", s, calls[s]);
	}
	OK(clReleaseEvent(late));
	printf("failed %d\n", failed);
}

static void left(const char *go)
{
	const char *text = source;
	cl_event gate, done;
	cl_mem a;
	cl_program p;
	cl_int e;

	OK(clReleaseKernel(kernel));
	OK(clReleaseCommandQueue(queue));
	OK(clReleaseContext(context));
	context = clCreateContext(NULL, 1, &device, note_context, NULL, &e);
	OK(e);
	queue = clCreateCommandQueueWithProperties(context, device, NULL, &e);
	OK(e);
	p = clCreateProgramWithSource(context, 1, &text, NULL, &e);
	OK(e);
	OK(clBuildProgram(p, 0, NULL, "", note_build, NULL));
	a = buffer(0, 64, NULL);
	OK(clSetMemObjectDestructorCallback(a, note_end, NULL));
	OK(clSetMemObjectDestructorCallback(a, note_end, NULL));
	gate = clCreateUserEvent(context, &e);
	OK(e);
	OK(clEnqueueMarkerWithWaitList(queue, 1, &gate, &done));
	OK(clSetEventCallback(gate, CL_COMPLETE, count, (void *)0));
	OK(clSetEventCallback(done, CL_COMPLETE, count, (void *)1));
	OK(clSetEventCallback(done, CL_COMPLETE, count, (void *)2));
	OK(clFlush(queue));
	printf("ready\n");
	while (access(go, F_OK) != 0)
		usleep(1000);
	for (int i = 0; i < 5000 && !(calls[0] && calls[1] && calls[2] && notes); i++)
		usleep(1000);
	e = clBuildProgram(p, 0, NULL, "-DAGAIN", note_build, NULL);
	clReleaseMemObject(a);
	usleep(200000);
	printf(
	    "events %d %d %d, failed %d; context %d; destructors %d; builds %d, the last gave %d\n",
	    calls[0], calls[1], calls[2], failed, notes, destroyed, built, e);
}

static void failing(const char *go)
{
	static int data[N];
	int seven = 7;
	cl_event gate, done;
	cl_mem a = buffer(0, sizeof(data), NULL);
	cl_int e;

	gate = clCreateUserEvent(context, &e);
	OK(e);
	OK(clEnqueueMarkerWithWaitList(queue, 1, &gate, &done));
	OK(clSetEventCallback(done, CL_COMPLETE, count, (void *)0));
	OK(clSetUserEventStatus(gate, -5));
	printf("ready\n");
	while (access(go, F_OK) != 0)
		usleep(1000);
	OK(clReleaseEvent(done));
	OK(clReleaseEvent(gate));
	OK(clEnqueueFillBuffer(queue, a, &seven, sizeof(seven), 0, sizeof(data), 0, NULL, NULL));
	OK(clEnqueueReadBuffer(queue, a, CL_TRUE, 0, sizeof(data), data, 0, NULL, NULL));
	printf("%d %d\n", data[0], data[N - 1]);
}

struct native {
	int times;
	cl_mem a, b; /* to the function: where their content is */
};

static void CL_CALLBACK add_times(void *data)
{
	const struct native *n = data;
	int *a = (int *)n->a;
	const int *b = (const int *)n->b;

	for (int i = 0; i < N; i++)
		a[i] += n->times * b[i];
}

/* Functions of the program between kernels, whose arguments it changes at once. */
static void native(void)
{
	static int host[N];
	cl_mem a, b, mems[2];
	cl_device_exec_capabilities can;

	OK(clGetDeviceInfo(device, CL_DEVICE_EXECUTION_CAPABILITIES, sizeof(can), &can, NULL));
	for (int i = 0; i < N; i++)
		host[i] = i;
	mems[0] = a = buffer(CL_MEM_COPY_HOST_PTR, sizeof(host), host);
	mems[1] = b = buffer(CL_MEM_COPY_HOST_PTR, sizeof(host), host);
	for (int s = 0; s < 8; s++) {
		struct native args = {.times = s};
		const void *places[2] = {&args.a, &args.b};
		cl_int e;

		launch(a, b);
		e = clEnqueueNativeKernel(queue, add_times, &args, sizeof(args), 2, mems, places, 0,
					  NULL, NULL);
		if (!(can & CL_EXEC_NATIVE_KERNEL) && e == CL_INVALID_OPERATION) {
			printf("no native kernels\n");
			return;
		}
		OK(e);
		args.times = 1000;
		if (s % 2)
			show_sum(a);
	}
	OK(clReleaseMemObject(b)); /* the log still has it */
	show_sum(a);
}

/* What a read brings is written somewhere else before the program has waited for it. In another
 * queue, too, behind a user event that is set later. */
static void echo(void)
{
	static int host[N], other[N];
	cl_command_queue second = clCreateCommandQueueWithProperties(context, device, NULL, NULL);
	cl_mem a, b;

	for (int i = 0; i < N; i++)
		host[i] = i;
	a = buffer(CL_MEM_COPY_HOST_PTR, sizeof(host), host);
	b = buffer(CL_MEM_COPY_HOST_PTR, sizeof(host), host);
	for (int s = 0; s < 12; s++) {
		cl_event gate = NULL, read, written;
		cl_int e;

		if (s % 4 == 3)
			gate = clCreateUserEvent(context, &e);
		for (int i = 0; i < 20; i++)
			launch(a, b);
		OK(clEnqueueReadBuffer(queue, a, CL_FALSE, 0, sizeof(host), host, gate != NULL,
				       gate ? &gate : NULL, &read));
		OK(clEnqueueWriteBuffer(gate ? second : queue, b, gate == NULL && s % 2, 4,
					sizeof(host) - 8, host + 1, 1, &read, &written));
		if (s % 3 == 2) /* and once more into the same memory */
			OK(clEnqueueReadBuffer(queue, b, CL_FALSE, 0, sizeof(other), host, 1,
					       &written, NULL));
		if (gate)
			OK(clSetUserEventStatus(gate, CL_COMPLETE));
		OK(clFlush(queue));
		OK(clWaitForEvents(1, &written));
		launch(a, b);
		clReleaseEvent(read);
		clReleaseEvent(written);
		if (gate)
			clReleaseEvent(gate);
		if (s % 4 > 0)
			show_sum(b);
	}
	OK(clFinish(second));
	show_sum(a);
}

static void held(void)
{
	static int begin[N];
	cl_mem a = buffer(CL_MEM_COPY_HOST_PTR, sizeof(begin), begin);
	cl_mem b = buffer(CL_MEM_COPY_HOST_PTR, sizeof(begin), begin);
	cl_mem c = buffer(CL_MEM_COPY_HOST_PTR, sizeof(begin), begin);
	int *p;
	cl_int e;

	show_sum(a);
	p = clEnqueueMapBuffer(queue, a, CL_TRUE, CL_MAP_WRITE, 0, sizeof(begin), 0, NULL, NULL,
			       &e);
	OK(e);
	for (int s = 1; s < 6; s++) {
		for (int i = 0; i < N; i++)
			p[i] = i * s;
		launch(b, c);
		show_sum(b);
	}
	OK(clEnqueueUnmapMemObject(queue, a, p, 0, NULL, NULL));
	show_sum(a);
}

/* A buffer in the program's memory and a part of it, which others take data from. gate: what uses
 * it waits for the program, also when that has released it. */
static void lend(int *host, cl_mem a, int step)
{
	cl_buffer_region half = {N * sizeof(int) / 2, N * sizeof(int) / 2};
	cl_mem lent, part;
	cl_event gate = step % 3 == 2 ? clCreateUserEvent(context, NULL) : NULL;
	cl_int e;

	for (int i = 0; i < N; i++)
		host[i] = i * step;
	lent = buffer(CL_MEM_USE_HOST_PTR, N * sizeof(int), host);
	part = clCreateSubBuffer(lent, 0, CL_BUFFER_CREATE_TYPE_REGION, &half, &e);
	OK(e);
	launch(lent, a);
	if (gate)
		OK(clEnqueueBarrierWithWaitList(queue, 1, &gate, NULL));
	OK(clEnqueueCopyBuffer(queue, part, a, 0, 64, N, 0, NULL, NULL));
	launch(a, lent);
	OK(clReleaseMemObject(part));
	OK(clReleaseMemObject(lent));
	if (gate) {
		OK(clSetUserEventStatus(gate, CL_COMPLETE));
		OK(clReleaseEvent(gate));
	}
	OK(clFinish(queue));
}

static void lent(void)
{
	enum { STEPS = 9 };
	static int begin[N];
	int *host[STEPS];
	cl_mem a;

	a = buffer(CL_MEM_COPY_HOST_PTR, sizeof(begin), begin);
	for (int s = 0; s < STEPS; s++) {
		host[s] = mmap(NULL, N * sizeof(int), PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		MUST(host[s] != MAP_FAILED);
		lend(host[s], a, s);
		show_sum(a);
		if (s % 2)
			munmap(host[s], N * sizeof(int));
		else
			for (int i = 0; i < N; i++)
				host[s][i] = s - i;
	}
	show_sum(a);
	for (int s = 0; s < STEPS; s += 2)
		for (int i = 0; i < N; i++)
			MUST(host[s][i] == s - i);
}

/* Buffers that are there for two commands each. */
static void brief(void)
{
	enum { SIZE = 4 << 20, STEPS = 64 };
	int first = 0;
	cl_mem m;

	for (int s = 0; s < STEPS; s++) {
		m = buffer(CL_MEM_READ_WRITE, SIZE, NULL);
		OK(clEnqueueFillBuffer(queue, m, &s, sizeof(s), 0, SIZE, 0, NULL, NULL));
		OK(clEnqueueReadBuffer(queue, m, CL_TRUE, 0, sizeof(first), &first, 0, NULL, NULL));
		MUST(first == s);
		OK(clReleaseMemObject(m));
	}
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	setvbuf(stdout, NULL, _IOLBF, 0);
	set_up(strcmp(what, "liar") == 0       ? "cheat"
	       : strncmp(what, "cast", 4) == 0 ? "cast"
	       : strcmp(what, "image") == 0    ? "blur"
					       : "grow");
	if (strcmp(what, "errors") == 0)
		errors();
	else if (strcmp(what, "callback") == 0)
		callback();
	else if (strcmp(what, "many") == 0)
		many();
	else if (strcmp(what, "corrupt") == 0)
		corrupt(argc < 3);
	else if (strcmp(what, "liar") == 0)
		liar(CL_MEM_READ_ONLY, false);
	else if (strncmp(what, "cast", 4) == 0)
		liar(0, strcmp(what, "cast-some") == 0);
	else if (strcmp(what, "endless") == 0)
		endless(argc > 2 ? atoi(argv[2]) : 1000);
	else if (strcmp(what, "enormous") == 0)
		enormous(argc > 2 ? atoi(argv[2]) : 40, argc > 3 ? atoi(argv[3]) : 1);
	else if (strcmp(what, "image") == 0)
		image();
	else if (strcmp(what, "svm") == 0)
		svm();
	else if (strcmp(what, "echo") == 0)
		echo();
	else if (strcmp(what, "native") == 0)
		native();
	else if (strcmp(what, "parts") == 0)
		parts(argc > 2 ? argv[2] : NULL);
	else if (strcmp(what, "once") == 0)
		once(argc > 2 ? atoi(argv[2]) : 1000);
	else if (strcmp(what, "held") == 0)
		held();
	else if (strcmp(what, "lent") == 0)
		lent();
	else if (strcmp(what, "brief") == 0)
		brief();
	else if (strcmp(what, "failing") == 0)
		failing(argv[2]);
	else if (strcmp(what, "left") == 0)
		left(argv[2]);
	else
		return 64;
	return 0;
}
