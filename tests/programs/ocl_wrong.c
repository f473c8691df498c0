/* SPDX-License-Identifier: BSD-3-Clause */
/* ocl_wrong [SKIP [null]]: every entry point of OpenCL with one argument wrong at a time: NULL, a
 * handle of another kind, one that has been released, one that never was, sizes, flags, names,
 * counts and wait lists that can't be. One line a call: what it returned. Calls that crash or hang
 * the process (each runs in a child, which goes on until one does) say so; those named in the file
 * SKIP are not made, with null no handles that are wrong in other ways. Which functions were called
 * is said at the end: all of the table of cl_icd.h are, but those for sharing with other libraries.
 */
#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_0_APIS
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#define CL_USE_DEPRECATED_OPENCL_2_0_APIS
#define CL_USE_DEPRECATED_OPENCL_2_1_APIS
#define CL_USE_DEPRECATED_OPENCL_2_2_APIS
#include <CL/cl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ARGS = 16, HOST = 1 << 16, ROOM = 64 << 20 /* for what a wrong size reaches */ };
/* Whoever goes on from there meets the same in every run: nothing. */
#define BEYOND (2l << 30)

/* An argument is a letter, and a value where there is one:
 *   hX  a handle of kind X        lX  a pointer to one such handle
 *   n.. a number, m.. a small one f.. flags              i.. a name, up to the second value
 *   b   host memory               r   where a result goes, which is shown
 *   s.. three sizes               u   NULL, where something may be given
 *   t.. a text                    T.. a pointer to one   c   a callback
 *   p   an empty list of properties                      F   an image's format   E   its shape
 *   w   a wait list, as three arguments                  e   where the error code goes
 *   0   NULL, which stays
 * Kinds: L platform, D device, C context, Q queue, M buffer, I image, G built program, g program,
 * o compiled program, K kernel, k one without arguments, V complete event, U user event, X one
 * that failed, S sampler, Y shared virtual memory. A leading = says that it returns a handle, *
 * a pointer, - nothing; ! that the call without anything wrong is not made. */
#define ALL(F)                                                                                     \
	F(clGetPlatformIDs, "n1 b r")                                                              \
	F(clGetPlatformInfo, "hL i900:90a n1024 b r")                                              \
	F(clGetDeviceIDs, "hL f4294967295 n4 b r")                                                 \
	F(clGetDeviceInfo, "hD i1000:1080 n8192 b r")                                              \
	F(clCreateSubDevices, "hD p n4 b r")                                                       \
	F(clRetainDevice, "hD")                                                                    \
	F(clReleaseDevice, "!hD")                                                                  \
	F(clSetDefaultDeviceCommandQueue, "hC hD hQ")                                              \
	F(clGetDeviceAndHostTimer, "hD b b")                                                       \
	F(clGetHostTimer, "hD b")                                                                  \
	F(clCreateContext, "=p n1 lD 0 u e")                                                       \
	F(clCreateContextFromType, "=p f4294967295 0 u e")                                         \
	F(clRetainContext, "hC")                                                                   \
	F(clReleaseContext, "!hC")                                                                 \
	F(clGetContextInfo, "hC i1080:1087 n1024 b r")                                             \
	F(clSetContextDestructorCallback, "hC c 0")                                                \
	F(clCreateCommandQueue, "=hC hD f0 e")                                                     \
	F(clCreateCommandQueueWithProperties, "=hC hD p e")                                        \
	F(clRetainCommandQueue, "hQ")                                                              \
	F(clReleaseCommandQueue, "!hQ")                                                            \
	F(clGetCommandQueueInfo, "hQ i1090:1099 n1024 b r")                                        \
	F(clSetCommandQueueProperty, "hQ f2 n1 b")                                                 \
	F(clCreateBuffer, "=hC f1 n64 u e")                                                        \
	F(clCreateBuffer, "=hC f32 n64 b e")                                                       \
	F(clCreateBuffer, "=hC f8 n64 b e")                                                        \
	F(clCreateBufferWithProperties, "=hC p f1 n64 u e")                                        \
	F(clCreateSubBuffer, "=hM f0 i1220:1222 s0,32,0 e")                                        \
	F(clCreateImage, "=hC f1 F E u e")                                                         \
	F(clCreateImage, "=hC f32 F E b e")                                                        \
	F(clCreateImageWithProperties, "=hC p f1 F E u e")                                         \
	F(clCreateImage2D, "=hC f1 F n8 n8 n0 u e")                                                \
	F(clCreateImage3D, "=hC f1 F n8 n8 n8 n0 n0 u e")                                          \
	F(clRetainMemObject, "hM")                                                                 \
	F(clReleaseMemObject, "!hM")                                                               \
	F(clGetSupportedImageFormats, "hC f1 i10f0:10f8 n16 b r")                                  \
	F(clGetMemObjectInfo, "hM i1100:110c n1024 b r")                                           \
	F(clGetMemObjectInfo, "hI i1100:110c n1024 b r")                                           \
	F(clGetImageInfo, "hI i1110:111b n1024 b r")                                               \
	F(clGetImageInfo, "!hM i1110:1110 n1024 b r")                                              \
	F(clSetMemObjectDestructorCallback, "hM c 0")                                              \
	F(clCreatePipe, "=hC f1 n4 n16 u e")                                                       \
	F(clGetPipeInfo, "hM i1120:1123 n64 b r")                                                  \
	F(clSVMAlloc, "*hC f1 n64 n0")                                                             \
	F(clSVMFree, "-hC hY")                                                                     \
	F(clEnqueueSVMFree, "hQ n1 lY 0 0 w")                                                      \
	F(clEnqueueSVMMemcpy, "hQ n1 hY b m32 w")                                                  \
	F(clEnqueueSVMMemcpy, "hQ n0 b hY m32 w")                                                  \
	F(clEnqueueSVMMemFill, "hQ hY b n4 m32 w")                                                 \
	F(clEnqueueSVMMap, "hQ n1 f1 hY m32 w")                                                    \
	F(clEnqueueSVMUnmap, "hQ hY w")                                                            \
	F(clEnqueueSVMMigrateMem, "hQ n1 lY 0 f1 w")                                               \
	F(clSetKernelArgSVMPointer, "hK n0 hY")                                                    \
	F(clSetKernelExecInfo, "hK i11b6:11b8 n8 b")                                               \
	F(clCreateSampler, "=hC n1 i1130:1135 i1140:1142 e")                                       \
	F(clCreateSamplerWithProperties, "=hC p e")                                                \
	F(clRetainSampler, "hS")                                                                   \
	F(clReleaseSampler, "!hS")                                                                 \
	F(clGetSamplerInfo, "hS i1150:1159 n64 b r")                                               \
	F(clCreateProgramWithSource, "=hC n1 T u e")                                               \
	F(clCreateProgramWithBinary, "=hC n1 lD s64,64,64 T u e")                                  \
	F(clCreateProgramWithBuiltInKernels, "=hC n1 lD tnone e")                                  \
	F(clCreateProgramWithIL, "=hC b n64 e")                                                    \
	F(clRetainProgram, "hG")                                                                   \
	F(clReleaseProgram, "!hG")                                                                 \
	F(clBuildProgram, "hg n1 lD t 0 u")                                                        \
	F(clCompileProgram, "hg n1 lD t n0 u u 0 u")                                               \
	F(clLinkProgram, "=hC n1 lD t n1 lo 0 u e")                                                \
	F(clUnloadCompiler, "")                                                                    \
	F(clUnloadPlatformCompiler, "hL")                                                          \
	F(clSetProgramReleaseCallback, "hG c 0")                                                   \
	F(clSetProgramSpecializationConstant, "hG n0 n4 b")                                        \
	F(clGetProgramInfo, "hG i1160:116c n65536 b r")                                            \
	F(clGetProgramInfo, "hg i1160:116c n65536 b r")                                            \
	F(clGetProgramBuildInfo, "hG hD i1181:1186 n65536 b r")                                    \
	F(clGetProgramBuildInfo, "hg hD i1181:1186 n65536 b r")                                    \
	F(clCreateKernel, "=hG tgrow e")                                                           \
	F(clCreateKernel, "=hg tgrow e")                                                           \
	F(clCreateKernelsInProgram, "hG n8 b r")                                                   \
	F(clCreateKernelsInProgram, "hg n8 b r")                                                   \
	F(clCloneKernel, "=hK e")                                                                  \
	F(clRetainKernel, "hK")                                                                    \
	F(clReleaseKernel, "!hK")                                                                  \
	F(clSetKernelArg, "hK n0 n8 lM")                                                           \
	F(clSetKernelArg, "hK n2 n4 b")                                                            \
	F(clSetKernelArg, "hK n3 n64 u")                                                           \
	F(clGetKernelInfo, "hK i1190:119c n1024 b r")                                              \
	F(clGetKernelArgInfo, "hK n0 i1196:119b n1024 b r")                                        \
	F(clGetKernelWorkGroupInfo, "hK hD i11b0:11b6 n1024 b r")                                  \
	F(clGetKernelSubGroupInfo, "hK hD i2033:2035 n24 s4,1,1 n64 b r")                          \
	F(clWaitForEvents, "n1 lV")                                                                \
	F(clWaitForEvents, "!n1 lX")                                                               \
	F(clGetEventInfo, "hV i11d0:11d5 n64 b r")                                                 \
	F(clGetEventInfo, "hU i11d0:11d5 n64 b r")                                                 \
	F(clCreateUserEvent, "=hC e")                                                              \
	F(clSetUserEventStatus, "hU n0")                                                           \
	F(clSetUserEventStatus, "hV n0")                                                           \
	F(clSetUserEventStatus, "hX n0")                                                           \
	F(clSetEventCallback, "hV i0:4 c 0")                                                       \
	F(clRetainEvent, "hV")                                                                     \
	F(clReleaseEvent, "!hV")                                                                   \
	F(clGetEventProfilingInfo, "hV i1280:1285 n64 b r")                                        \
	F(clGetEventProfilingInfo, "hU i1280:1285 n64 b r")                                        \
	F(clFlush, "hQ")                                                                           \
	F(clFinish, "hQ")                                                                          \
	F(clEnqueueReadBuffer, "hQ hM n1 n0 n32 b w")                                              \
	F(clEnqueueReadBuffer, "hQ hM n0 n0 n32 b w")                                              \
	F(clEnqueueWriteBuffer, "hQ hM n1 n0 n32 b w")                                             \
	F(clEnqueueWriteBuffer, "hQ hM n0 n0 n32 b w")                                             \
	F(clEnqueueReadBufferRect, "hQ hM n1 s0,0,0 s0,0,0 s4,4,1 m0 m0 m0 m0 b w")                \
	F(clEnqueueWriteBufferRect, "hQ hM n1 s0,0,0 s0,0,0 s4,4,1 m0 m0 m0 m0 b w")               \
	F(clEnqueueFillBuffer, "hQ hM b n4 n0 n32 w")                                              \
	F(clEnqueueCopyBuffer, "hQ hM hM n0 n0 n32 w")                                             \
	F(clEnqueueCopyBufferRect, "hQ hM hM s0,0,0 s0,0,0 s4,4,1 m0 m0 m0 m0 w")                  \
	F(clEnqueueReadImage, "hQ hI n1 s0,0,0 s4,4,1 n0 n0 b w")                                  \
	F(clEnqueueWriteImage, "hQ hI n1 s0,0,0 s4,4,1 n0 n0 b w")                                 \
	F(clEnqueueFillImage, "hQ hI b s0,0,0 s4,4,1 w")                                           \
	F(clEnqueueCopyImage, "hQ hI hI s0,0,0 s4,4,1 s4,4,1 w")                                   \
	F(clEnqueueCopyImageToBuffer, "hQ hI hM s0,0,0 s4,4,1 n0 w")                               \
	F(clEnqueueCopyBufferToImage, "hQ hM hI n0 s0,0,0 s4,4,1 w")                               \
	F(clEnqueueMapBuffer, "*hQ hM n1 f1 n0 n32 w e")                                           \
	F(clEnqueueMapImage, "*hQ hI n1 f1 s0,0,0 s4,4,1 b u w e")                                 \
	F(clEnqueueUnmapMemObject, "!hQ hM b w")                                                   \
	F(clEnqueueMigrateMemObjects, "hQ n1 lM f0 w")                                             \
	F(clEnqueueNDRangeKernel, "hQ hK n1 0 s16,1,1 s4,1,1 w")                                   \
	F(clEnqueueNDRangeKernel, "hQ hK n3 s0,0,0 s4,4,4 s2,2,2 w")                               \
	F(clEnqueueNDRangeKernel, "!hQ hk n1 0 s16,1,1 s4,1,1 w")                                  \
	F(clEnqueueTask, "hQ hK w")                                                                \
	F(clEnqueueTask, "!hQ hk w")                                                               \
	F(clEnqueueNativeKernel, "hQ c u n0 n0 u u w")                                             \
	F(clEnqueueMarkerWithWaitList, "hQ w")                                                     \
	F(clEnqueueBarrierWithWaitList, "hQ w")                                                    \
	F(clEnqueueMarker, "hQ b")                                                                 \
	F(clEnqueueBarrier, "hQ")                                                                  \
	F(clEnqueueWaitForEvents, "hQ n1 lV")                                                      \
	F(clGetExtensionFunctionAddress, "*tclNoSuchKHR")                                          \
	F(clGetExtensionFunctionAddressForPlatform, "*hL tclNoSuchKHR")

#define ENTRY(f, args) {#f, (void (*)(void))f, args},
static const struct entry {
	const char *name;
	void (*fn)(void);
	const char *args;
} entries[] = {ALL(ENTRY)};

static const char source[] =
    "__kernel void grow(__global int *a, __global const int *b, int c, __local int *d) {\n"
    "  size_t i = get_global_id(0); d[0] = c; if (i < 256) a[i] = a[i] * 3 + b[i] + c; }\n"
    "__kernel void other(__global int *a) { a[0] = 1; }\n";

/* ---- what calls are made with ---- */

static cl_platform_id platform;
static cl_device_id device;
static cl_context context;
static cl_command_queue queue;
static cl_program built;
static char *host;
static size_t result[4];
static cl_int code;
static int shown; /* result is */

static void ok(cl_int status, const char *what)
{
	if (status == CL_SUCCESS)
		return;
	printf("can't go on: %s: %d\n", what, status);
	fflush(stdout);
	_exit(3);
}

static cl_program program(int how)
{
	const char *text = source;
	cl_program p = clCreateProgramWithSource(context, 1, &text, NULL, &code);

	ok(code, "source");
	if (how == 'G')
		ok(clBuildProgram(p, 0, NULL, "-cl-kernel-arg-info", NULL, NULL), "build");
	if (how == 'o')
		ok(clCompileProgram(p, 0, NULL, "", 0, NULL, NULL, NULL, NULL), "compile");
	return p;
}

static void set_up(void)
{
	ok(clGetPlatformIDs(1, &platform, NULL), "platform");
	ok(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL), "device");
	context = clCreateContext(NULL, 1, &device, NULL, NULL, &code);
	ok(code, "context");
	queue = clCreateCommandQueue(context, device, 0, &code);
	ok(code, "queue");
	built = program('G');
	host = mmap(NULL, BEYOND, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	mprotect(host, ROOM, PROT_READ | PROT_WRITE);
}

static const cl_image_format format = {CL_RGBA, CL_UNSIGNED_INT8};
static const cl_image_desc shape = {
    .image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = 8, .image_height = 8};

static void *kernel(int how)
{
	cl_kernel k = clCreateKernel(built, "grow", &code);
	cl_mem m = clCreateBuffer(context, CL_MEM_READ_WRITE, 1024, NULL, NULL);
	cl_int three = 3;

	ok(code, "kernel");
	for (cl_uint i = 0; how == 'K' && i < 2; i++)
		ok(clSetKernelArg(k, i, sizeof(m), &m), "argument");
	if (how == 'K') {
		ok(clSetKernelArg(k, 2, sizeof(three), &three), "argument");
		ok(clSetKernelArg(k, 3, 64, NULL), "argument");
	}
	return k;
}

static void *handle(int kind)
{
	cl_event e = NULL;

	switch (kind) {
	case 'L':
		return platform;
	case 'D':
		return device;
	case 'C':
		return context;
	case 'Q':
		return queue;
	case 'M':
		return clCreateBuffer(context, CL_MEM_READ_WRITE, 1024, NULL, &code);
	case 'I':
		return clCreateImage(context, CL_MEM_READ_WRITE, &format, &shape, NULL, &code);
	case 'G':
		return built;
	case 'g':
	case 'o':
		return program(kind);
	case 'K':
	case 'k':
		return kernel(kind);
	case 'V':
		ok(clEnqueueMarkerWithWaitList(queue, 0, NULL, &e), "marker");
		ok(clFinish(queue), "finish");
		return e;
	case 'U':
	case 'X':
		e = clCreateUserEvent(context, &code);
		if (kind == 'X')
			ok(clSetUserEventStatus(e, -7), "status");
		return e;
	case 'S':
		return clCreateSampler(context, CL_TRUE, CL_ADDRESS_CLAMP, CL_FILTER_NEAREST,
				       &code);
	default:
		return clSVMAlloc(context, CL_MEM_READ_WRITE, 256, 0);
	}
}

/* One that nobody has any more. */
static void *released(int kind)
{
	void *h = NULL;

	switch (kind) {
	case 'C':
		h = clCreateContext(NULL, 1, &device, NULL, NULL, &code);
		clReleaseContext(h);
		break;
	case 'Q':
		h = clCreateCommandQueue(context, device, 0, &code);
		clReleaseCommandQueue(h);
		break;
	case 'M':
	case 'I':
		h = handle(kind);
		clReleaseMemObject(h);
		break;
	case 'G':
	case 'g':
	case 'o':
		h = program('g');
		clReleaseProgram(h);
		break;
	case 'K':
	case 'k':
		h = handle(kind);
		clReleaseKernel(h);
		break;
	case 'V':
	case 'U':
	case 'X':
		h = handle(kind);
		clReleaseEvent(h);
		break;
	case 'S':
		h = handle(kind);
		clReleaseSampler(h);
		break;
	case 'Y':
		h = handle(kind);
		clSVMFree(context, h);
		break;
	}
	return h;
}

static void *fake(int kind)
{
	static void *words[64];

	if (kind == 'Y')
		return host + 4096;
	memset(words, 0, sizeof(words));
	words[0] = *(void **)device; /* the loader's way into the runtime */
	return words;
}

enum { RIGHT, NOTHING, OTHER_KIND, OTHER_KIND_2, RELEASED, FAKE, HANDLES };

/* As memory a handle's would be overwritten, and what is freed is malloc's. */
static void *wrong_handle(int kind, int how)
{
	if (kind == 'Y' && how > NOTHING)
		return fake(kind);
	switch (how) {
	case RIGHT:
		return handle(kind);
	case NOTHING:
		return NULL;
	case OTHER_KIND:
		return handle(kind == 'C' ? 'Q' : 'C');
	case OTHER_KIND_2:
		return handle(kind == 'M' ? 'I' : kind == 'I' ? 'M' : kind == 'D' ? 'L' : 'D');
	case RELEASED:
		return released(kind);
	default:
		return fake(kind);
	}
}

/* ---- one argument (three for a wait list): how many ways of it there are, or one of them ---- */

static void CL_CALLBACK called(void *data)
{
}

static int number(const char *text, int how, long *out)
{
	long right = strtol(text, NULL, 10);
	const long ways[] = {right, 0, 1, 2, 3, -1, right + 1, 1l << 30, 1l << 40, 1l << 62};

	*out = ways[how];
	return sizeof(ways) / sizeof(*ways);
}

/* Pitches, and sizes of shared virtual memory: with large ones PoCL 3.1 writes beyond its buffers.
 */
static int small_number(const char *text, int how, long *out)
{
	*out = how ? how : strtol(text, NULL, 10);
	return 4;
}

static int flags(const char *text, int how, long *out)
{
	*out = how == 0	   ? strtol(text, NULL, 10)
	       : how == 1  ? 0
	       : how == 2  ? -1
	       : how == 3  ? 3
	       : how == 4  ? 5
	       : how == 5  ? 6
	       : how == 6  ? 24
	       : how == 7  ? 40
	       : how == 8  ? 384
	       : how == 9  ? 640
	       : how == 10 ? 768
			   : 1l << (how - 11);
	return 11 + 33;
}

static int name(const char *text, int how, long *out)
{
	char *end;
	long from = strtol(text, &end, 16), to = strtol(end + 1, NULL, 16);

	*out = how == 0 ? from : how == 1 ? 0 : how == 2 ? 0xffff : from + how - 2;
	return 3 + (int)(to - from);
}

static int three_sizes(const char *text, int how, long *out)
{
	static size_t list[8][3];
	static int at;
	size_t *s = list[at = (at + 1) % 8];
	char *end;

	s[0] = strtoul(text, &end, 10);
	s[1] = strtoul(end + 1, &end, 10);
	s[2] = strtoul(end + 1, &end, 10);
	*out = how == 1 ? 0 : (long)s;
	if (how == 2)
		memset(s, 0, sizeof(*list));
	if (how > 2 && how < 6)
		s[how - 3] = 1000000;
	if (how > 5 && how < 9)
		s[how - 6] = 1ul << 40; /* what overflows PoCL 3.1 writes somewhere */
	if (how > 8 && how < 12)
		s[how - 9] = 3;
	if (how > 11)
		s[how - 12] = 0;
	return 15;
}

static int text_way(const char *text, int how, long *out)
{
	static const char *const ways[] = {"",	   "no such thing", "-cl-no-such-option",
					   "-DX=", "grow;other",    " "};

	*out = how == 0 ? (long)text : how == 1 ? 0 : (long)ways[how - 2];
	return 2 + (int)(sizeof(ways) / sizeof(*ways));
}

static int texts(int how, long *out)
{
	static const char *list[2];

	list[0] = how == 2 ? NULL : how == 3 ? "" : source;
	*out = how == 1 ? 0 : (long)list;
	return 4;
}

static int properties(int how, long *out)
{
	static intptr_t list[8];

	memset(list, 0, sizeof(list));
	*out = how == 1 ? 0 : (long)list;
	if (how > 1)
		list[0] = how == 2   ? 0x7777
			  : how == 3 ? CL_CONTEXT_PLATFORM
			  : how == 4 ? CL_QUEUE_PROPERTIES
			  : how == 5 ? CL_DEVICE_PARTITION_EQUALLY
			  : how == 6 ? CL_DEVICE_PARTITION_BY_COUNTS
			  : how == 7 ? CL_SAMPLER_ADDRESSING_MODE
			  : how == 8 ? CL_QUEUE_SIZE
				     : CL_CONTEXT_INTEROP_USER_SYNC;
	if (how > 1)
		list[1] = how == 3 ? (intptr_t)device : 1;
	if (how == 4)
		list[1] = 0x7000;
	return 10;
}

static int format_way(int how, long *out)
{
	static cl_image_format f;

	f = format;
	if (how == 2)
		f.image_channel_order = 0;
	if (how == 3)
		f.image_channel_data_type = 0;
	if (how == 4)
		f.image_channel_data_type = CL_UNORM_SHORT_565;
	if (how == 5)
		f.image_channel_order = CL_DEPTH_STENCIL;
	*out = how == 1 ? 0 : (long)&f;
	return 6;
}

static int shape_way(int how, long *out)
{
	static cl_image_desc d;

	d = shape;
	if (how == 2)
		d.image_type = 0;
	if (how == 3)
		d.image_width = 0;
	if (how == 4)
		d.image_height = 0;
	if (how == 5)
		d.image_width = 1ul << 40;
	if (how == 6)
		d.image_row_pitch = 1;
	if (how == 7)
		d.image_slice_pitch = 7;
	if (how == 8)
		d.num_mip_levels = 2;
	if (how == 9)
		d.num_samples = 2;
	if (how == 10)
		d.mem_object = (cl_mem)queue;
	if (how == 11)
		d.image_type = CL_MEM_OBJECT_IMAGE1D_BUFFER;
	if (how == 12)
		d.image_type = CL_MEM_OBJECT_IMAGE2D_ARRAY;
	if (how == 13)
		d.image_type = CL_MEM_OBJECT_BUFFER;
	*out = how == 1 ? 0 : (long)&d;
	return 14;
}

/* None with an event that failed: PoCL 3.1 never ends a command that waits for one. */
static int waits(int how, long out[3])
{
	static cl_event list[4], made;

	made = NULL;
	out[0] = how > 0 && how != 2 && how != 8;
	out[1] = how > 1 && how != 8 ? (long)list : 0;
	out[2] = how == 8 || how == 3 ? (long)&made : 0;
	switch (how) {
	case 3:
		list[0] = handle('V');
		break;
	case 4:
		list[0] = NULL;
		break;
	case 5:
		list[0] = (cl_event)queue;
		break;
	case 6:
		list[0] = released('V');
		break;
	case 7:
		list[0] = fake('V');
		break;
	}
	return 9;
}

/* The ways there are; *out is argument spec in way how. */
static int argument(const char *spec, int how, long *out)
{
	static void *list[8][2];
	static int at;
	int kind = spec[1];

	switch (*spec) {
	case 'h':
		*out = (long)wrong_handle(kind, how);
		return HANDLES;
	case 'l':
		list[at = (at + 1) % 8][0] =
		    how == 1 ? NULL : wrong_handle(kind, how ? how - 1 : 0);
		*out = how == 1 ? 0 : (long)list[at];
		return HANDLES + 1;
	case 'n':
		return number(spec + 1, how, out);
	case 'm':
		return small_number(spec + 1, how, out);
	case 'f':
		return flags(spec + 1, how, out);
	case 'i':
		return name(spec + 1, how, out);
	case 'b':
		*out = how ? 0 : (long)host;
		return 2;
	case 'r':
		*out = how ? 0 : (long)result;
		shown |= !how;
		return 2;
	case 'e':
		*out = how ? 0 : (long)&code;
		return 2;
	case 'u':
		*out = how ? (long)host : 0;
		return 2;
	case 'c':
		*out = how ? 0 : (long)called;
		return 2;
	case 's':
		return three_sizes(spec + 1, how, out);
	case 't':
		return text_way(spec + 1, how, out);
	case 'T':
		return texts(how, out);
	case 'p':
		return properties(how, out);
	case 'F':
		return format_way(how, out);
	case 'E':
		return shape_way(how, out);
	case 'w':
		return waits(how, out);
	default:
		*out = 0;
		return 1;
	}
}

/* ---- one call ---- */

struct wrong {
	const struct entry *entry;
	int place, way; /* place 0 way 0: nothing is wrong */
};

static char words[ARGS][24];

static int split(const struct entry *e, char *how)
{
	const char *at = e->args;
	int n = 0, used;

	*how = strchr("=*-!", *at) && *at ? *at++ : 0;
	while (sscanf(at, " %23s%n", words[n], &used) == 1) {
		at += used;
		n++;
	}
	return n;
}

static void show(const char *title, char how, long value)
{
	printf("%s:", title);
	if (how == '=' || how == '*')
		printf(" %s %d", value ? "made" : "NULL", code);
	else if (how != '-')
		printf(" %d", (int)value);
	if (shown && (int)value == CL_SUCCESS)
		printf(" [%zu]", result[0]);
}

/* Registers are filled whether a function has so many parameters or not. */
static void call(const struct wrong *w, const char *title)
{
	typedef long function(long, long, long, long, long, long, long, long, long, long, long,
			      long, long, long, long, long);
	long a[ARGS + 4] = {0}, value;
	int n, to = 0;
	char how;

	n = split(w->entry, &how);
	memset(host, 0, HOST);
	memset(result, 0xff, sizeof(result));
	shown = 0;
	for (int i = 0; i < n; i++) {
		argument(words[i], w->place == i ? w->way : 0, &a[to]);
		to += *words[i] == 'w' ? 3 : 1;
	}
	memset(result, 0, sizeof(result));
	code = 77;
	value = ((function *)w->entry->fn)(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8],
					   a[9], a[10], a[11], a[12], a[13], a[14], a[15]);
	if (how == '=' || how == '*')
		show(title, how, value);
	else
		show(title, how, (long)(int)value);
	printf(" then %d\n", clFinish(queue));
	fflush(stdout);
}

/* ---- all of them ---- */

static char *skip;

static int only_null; /* of wrong handles */

static int ends_with(const char *text, const char *end)
{
	size_t n = strlen(text), m = strlen(end);

	return n >= m && strcmp(text + n - m, end) == 0;
}

/* OCL_WRONG_SHARE="2 6": of each six calls the third one only. */
static int is_of_others(int n)
{
	const char *share = getenv("OCL_WRONG_SHARE");
	int which, of;

	return share && sscanf(share, "%d %d", &which, &of) == 2 && n % of != which;
}

static int is_skipped(const char *title, int n)
{
	char line[128];

	if (is_of_others(n))
		return 1;
	if (only_null && (ends_with(title, " another") || ends_with(title, " none") ||
			  ends_with(title, " released")))
		return 1;

	snprintf(line, sizeof(line), "\n%s\n", title);
	return skip && strstr(skip, line);
}

/* False: there are no more. */
static int nth(int n, struct wrong *w)
{
	for (size_t i = 0; i < sizeof(entries) / sizeof(*entries); i++) {
		char how;
		int args;

		*w = (struct wrong){.entry = &entries[i]};
		args = split(w->entry, &how);
		if (how != '!' && n-- == 0)
			return 1;
		for (w->place = 0; w->place < args; w->place++) {
			static const int ways_of[256] = {
			    ['h'] = HANDLES, ['l'] = HANDLES + 1, ['n'] = 10, ['m'] = 4,
			    ['f'] = 44,	     ['b'] = 2,		  ['r'] = 2,  ['e'] = 2,
			    ['u'] = 2,	     ['c'] = 2,		  ['s'] = 15, ['t'] = 8,
			    ['T'] = 4,	     ['p'] = 10,	  ['F'] = 6,  ['E'] = 14,
			    ['w'] = 9};
			long unused;
			const char *word = words[w->place];
			int ways = *word == 'i' ? name(word + 1, 0, &unused)
						: ways_of[(unsigned char)*word];

			for (w->way = 1; w->way < ways; w->way++)
				if (n-- == 0)
					return 1;
		}
	}
	return 0;
}

/* What is wrong with handles, alone, in a list, among what is to be waited for. */
static const char *way_of(int kind, int way)
{
	static const char *const alone[] = {"", "NULL", "another", "another", "released", "none"};
	static const char *const waits[] = {"",	       "no list",  "no count", "", "NULL",
					    "another", "released", "none",     ""};

	switch (kind) {
	case 'h':
		return alone[way];
	case 'l':
		return way == 1 ? "no list" : alone[way - 1];
	case 'w':
		return waits[way];
	default:
		return "";
	}
}

static void title_of(const struct wrong *w, int n, char *to, size_t size)
{
	char how;

	split(w->entry, &how);
	if (w->way == 0)
		snprintf(to, size, "%d %s", n, w->entry->name);
	else
		snprintf(to, size, "%d %s argument %d %s way %d %s", n, w->entry->name, w->place,
			 words[w->place], w->way, way_of(*words[w->place], w->way));
}

/* Where the child is, for the parent. */
static volatile int *progress;

static void child(int from)
{
	struct wrong w;
	char title[100];

	const char *limit = getenv("OCL_WRONG_SECONDS");

	set_up();
	for (int n = from; nth(n, &w); n++) {
		*progress = n;
		title_of(&w, n, title, sizeof(title));
		if (is_skipped(title, n))
			continue;
		alarm(limit ? (unsigned)atoi(limit) : 20);
		call(&w, title);
		alarm(0);
	}
	_exit(0);
}

static void read_skipped(const char *path)
{
	FILE *f = fopen(path, "r");
	size_t n;

	skip = calloc(1, 1 << 20);
	if (!f || !skip) {
		perror(path);
		exit(1);
	}
	n = fread(skip, 1, (1 << 20) - 1, f);
	skip[n] = 0;
	fclose(f);
}

int main(int argc, char **argv)
{
	struct wrong w;
	char title[100];
	int status = 0;

	if (argc > 1)
		read_skipped(argv[1]);
	only_null = argc > 2;
	progress = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	for (int from = 0;; from = *progress + 1) {
		pid_t pid;

		*progress = from;
		pid = fork();
		if (pid == 0)
			child(from);
		if (waitpid(pid, &status, 0) != pid)
			return 1;
		if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
			break;
		if (*progress == from && WIFEXITED(status) && WEXITSTATUS(status) == 3)
			return 3;
		nth(*progress, &w);
		title_of(&w, *progress, title, sizeof(title));
		printf("%s: %s\n", title,
		       WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM ? "hangs" : "crashes");
		fflush(stdout);
	}
	return 0;
}
