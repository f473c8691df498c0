/* SPDX-License-Identifier: BSD-3-Clause */
/* A command buffer, recorded once and enqueued often: copies, a launch, a fill, ordered by sync
 * points. Prints sums of what it computes, or which value is wrong.
 *
 * Usage: ocl_recorded in|out|gate|changed|errors ROUNDS [GO]: the last fifty rounds wait for the
 * file GO.
 * in, out: an in-order or out-of-order queue; gate: each round waits for a user event; changed:
 * after the recording the kernel gets other arguments, which are of no concern to the buffer (but
 * PoCL 3.1 by itself takes those of the time of the enqueue). What was recorded is released. */
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <CL/cl_ext.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { N = 1024, BYTES = N * 4 };

static const char source[] =
    "kernel void advance(global const int *in, global int *state, global int *out, int k)"
    "{ size_t i = get_global_id(0); state[i] = state[i] * 3 + in[i] + k; out[i] = state[i] ^ 5; }";

#define CHECK(call)                                                                                \
	do {                                                                                       \
		cl_int code_ = (call);                                                             \
		if (code_ != CL_SUCCESS) {                                                         \
			printf("%s failed: %d\n", #call, code_);                                   \
			exit(3);                                                                   \
		}                                                                                  \
	} while (0)

static cl_platform_id platform;

static struct {
	clCreateCommandBufferKHR_fn create;
	clFinalizeCommandBufferKHR_fn finalize;
	clRetainCommandBufferKHR_fn retain;
	clReleaseCommandBufferKHR_fn release;
	clEnqueueCommandBufferKHR_fn enqueue;
	clCommandBarrierWithWaitListKHR_fn barrier;
	clCommandCopyBufferKHR_fn copy;
	clCommandCopyBufferRectKHR_fn rect;
	clCommandFillBufferKHR_fn fill;
	clCommandNDRangeKernelKHR_fn launch;
	clGetCommandBufferInfoKHR_fn info;
} cb;

static void fetch(void)
{
	struct {
		const char *name;
		void *to;
	} all[] = {{"clCreateCommandBufferKHR", &cb.create},
		   {"clFinalizeCommandBufferKHR", &cb.finalize},
		   {"clRetainCommandBufferKHR", &cb.retain},
		   {"clReleaseCommandBufferKHR", &cb.release},
		   {"clEnqueueCommandBufferKHR", &cb.enqueue},
		   {"clCommandBarrierWithWaitListKHR", &cb.barrier},
		   {"clCommandCopyBufferKHR", &cb.copy},
		   {"clCommandCopyBufferRectKHR", &cb.rect},
		   {"clCommandFillBufferKHR", &cb.fill},
		   {"clCommandNDRangeKernelKHR", &cb.launch},
		   {"clGetCommandBufferInfoKHR", &cb.info}};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		void *f = clGetExtensionFunctionAddressForPlatform(platform, all[i].name);
		if (!f) {
			printf("no %s\n", all[i].name);
			exit(77);
		}
		memcpy(all[i].to, &f, sizeof(f));
	}
}

static cl_context context;
static cl_device_id device;
static cl_command_queue queue;
static cl_kernel kernel;
static cl_mem in, staged, state, out, kept;

static void setup(cl_command_queue_properties properties)
{
	const char *text = source;
	cl_program program;
	char list[16384] = "";
	cl_int e, zero = 0;

	CHECK(clGetPlatformIDs(1, &platform, NULL));
	CHECK(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL));
	CHECK(clGetDeviceInfo(device, CL_DEVICE_EXTENSIONS, sizeof(list), list, NULL));
	if (!strstr(list, "cl_khr_command_buffer")) {
		printf("no cl_khr_command_buffer\n");
		exit(77);
	}
	fetch();
	context = clCreateContext(NULL, 1, &device, NULL, NULL, &e);
	CHECK(e);
	queue = clCreateCommandQueue(context, device, properties, &e);
	CHECK(e);
	program = clCreateProgramWithSource(context, 1, &text, NULL, &e);
	CHECK(clBuildProgram(program, 1, &device, NULL, NULL, NULL));
	kernel = clCreateKernel(program, "advance", &e);
	CHECK(e);
	CHECK(clReleaseProgram(program));
	in = clCreateBuffer(context, CL_MEM_READ_ONLY, BYTES, NULL, &e);
	staged = clCreateBuffer(context, CL_MEM_READ_WRITE, BYTES, NULL, &e);
	state = clCreateBuffer(context, CL_MEM_READ_WRITE, BYTES, NULL, &e);
	out = clCreateBuffer(context, CL_MEM_READ_WRITE, BYTES, NULL, &e);
	kept = clCreateBuffer(context, CL_MEM_READ_WRITE, BYTES, NULL, &e);
	CHECK(e);
	CHECK(clEnqueueFillBuffer(queue, state, &zero, 4, 0, BYTES, 0, NULL, NULL));
	CHECK(clEnqueueFillBuffer(queue, kept, &zero, 4, 0, BYTES, 0, NULL, NULL));
	CHECK(clFinish(queue));
}

static void set_args(int k)
{
	CHECK(clSetKernelArg(kernel, 0, sizeof(cl_mem), &staged));
	CHECK(clSetKernelArg(kernel, 1, sizeof(cl_mem), &state));
	CHECK(clSetKernelArg(kernel, 2, sizeof(cl_mem), &out));
	CHECK(clSetKernelArg(kernel, 3, sizeof(int), &k));
}

static cl_command_buffer_khr record(bool changed)
{
	size_t n = N, from[3] = {0}, to[3] = {32, 0, 0}, region[3] = {32, 8, 1};
	const int seven = 7;
	cl_sync_point_khr copied, ran, filled, moved;
	cl_int e;
	cl_command_buffer_khr b = cb.create(1, &queue, NULL, &e);

	CHECK(e);
	set_args(11);
	CHECK(cb.copy(b, NULL, in, staged, 0, 0, BYTES, 0, NULL, &copied, NULL));
	CHECK(cb.launch(b, NULL, NULL, kernel, 1, NULL, &n, NULL, 1, &copied, &ran, NULL));
	CHECK(cb.fill(b, NULL, staged, &seven, 4, 0, BYTES / 2, 1, &ran, &filled, NULL));
	CHECK(cb.rect(b, NULL, out, kept, from, to, region, 64, 0, 64, 0, 1, &ran, &moved, NULL));
	cl_sync_point_khr both[] = {filled, moved};
	CHECK(cb.barrier(b, NULL, 2, both, NULL, NULL));
	CHECK(cb.finalize(b));
	if (changed)
		set_args(1000);
	return b;
}

/* What the device should hold. */
static int want_state[N], want_kept[N];

static void expect_round(const int *data)
{
	for (int i = 0; i < N; i++)
		want_state[i] = want_state[i] * 3 + data[i] + 11;
	for (int row = 0; row < 8; row++)
		for (int i = 0; i < 8; i++)
			want_kept[row * 16 + 8 + i] = want_state[row * 16 + i] ^ 5;
}

static void compare(const char *what, int round, const int *got, const int *want)
{
	unsigned sum = 0;

	for (int i = 0; i < N; i++) {
		if (got[i] != want[i]) {
			printf("round %d: %s[%d] is %d, not %d\n", round, what, i, got[i], want[i]);
			exit(4);
		}
		sum = sum * 31 + (unsigned)got[i];
	}
	printf("%d %s %08x\n", round, what, sum);
}

static void errors(void)
{
	cl_int e;
	cl_command_buffer_khr b;
	cl_uint refs = 0;
	cl_command_buffer_state_khr at = 99;
	size_t n = N;

	b = cb.create(0, NULL, NULL, &e);
	printf("no queue: %d %d\n", e, b != NULL);
	b = cb.create(1, &queue, NULL, &e);
	printf("enqueued while recording: %d\n", cb.enqueue(0, NULL, b, 0, NULL, NULL));
	printf("a queue for a command: %d\n", cb.barrier(b, queue, 0, NULL, NULL, NULL));
	printf("beyond its end: %d\n",
	       cb.copy(b, NULL, in, staged, 8, 0, BYTES, 0, NULL, NULL, NULL));
	printf("onto itself: %d\n", cb.copy(b, NULL, in, in, 0, 8, 64, 0, NULL, NULL, NULL));
	printf("pattern: %d\n", cb.fill(b, NULL, in, &n, 3, 0, 66, 0, NULL, NULL, NULL));
	CHECK(cb.info(b, CL_COMMAND_BUFFER_STATE_KHR, sizeof(at), &at, NULL));
	printf("recording: %u\n", at);
	CHECK(cb.finalize(b));
	CHECK(cb.retain(b));
	CHECK(cb.info(b, CL_COMMAND_BUFFER_REFERENCE_COUNT_KHR, sizeof(refs), &refs, NULL));
	CHECK(cb.info(b, CL_COMMAND_BUFFER_STATE_KHR, sizeof(at), &at, NULL));
	printf("executable: %u, references %u\n", at, refs);
	printf("queues without a count: %d\n", cb.enqueue(0, &queue, b, 0, NULL, NULL));
	printf("unknown information: %d\n", cb.info(b, 0x1234, 8, &n, NULL));
	CHECK(cb.release(b));
	CHECK(cb.release(b));
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "in";
	int rounds = argc > 2 ? atoi(argv[2]) : 8, data[N], got[N];
	cl_command_buffer_khr b;
	cl_event written, done, gate = NULL, waits[2];
	cl_int e;

	setup(strcmp(mode, "out") == 0 ? CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE : 0);
	if (strcmp(mode, "errors") == 0) {
		errors();
		return 0;
	}
	b = record(strcmp(mode, "changed") == 0);
	CHECK(clReleaseMemObject(staged));
	CHECK(clReleaseKernel(kernel));
	for (int r = 0; r < rounds; r++) {
		while (argc > 3 && r == rounds - 50 && access(argv[3], F_OK) != 0)
			usleep(1000);
		for (int i = 0; i < N; i++)
			data[i] = i * (r + 1);
		CHECK(clEnqueueWriteBuffer(queue, in, CL_FALSE, 0, BYTES, data, 0, NULL, &written));
		waits[0] = written;
		if (strcmp(mode, "gate") == 0) {
			gate = clCreateUserEvent(context, &e);
			waits[1] = gate;
		}
		CHECK(cb.enqueue(0, NULL, b, gate ? 2 : 1, waits, &done));
		if (gate) {
			CHECK(clSetUserEventStatus(gate, CL_COMPLETE));
			CHECK(clReleaseEvent(gate));
		}
		expect_round(data);
		CHECK(clEnqueueReadBuffer(queue, kept, CL_TRUE, 0, BYTES, got, 1, &done, NULL));
		compare("kept", r, got, want_kept);
		CHECK(clReleaseEvent(written));
		CHECK(clReleaseEvent(done));
		fflush(stdout);
	}
	CHECK(cb.release(b));
	CHECK(clEnqueueReadBuffer(queue, state, CL_TRUE, 0, BYTES, got, 0, NULL, NULL));
	compare("state", rounds, got, want_state);
	return 0;
}
