/* SPDX-License-Identifier: BSD-3-Clause */
/* links: src/ocl/remote/server.c src/ocl/remote/server_shape.c src/ocl/remote/server_commands.c
 * src/ocl/remote/server_info.c src/ocl/remote/server_objects.c src/ocl/remote/server_snapshot.c
 * src/ocl/remote/server_svm.c src/ocl/remote/server_transfers.c src/ocl/remote/server_programs.c
 * src/ocl/remote/server_underway.c src/ocl/remote/server_wait.c src/ocl/remote/server_staging.c
 * src/ocl/remote/server_crew.c src/ocl/remote/server_late.c src/ocl/remote/server_net.c
 * src/ocl/remote/net_stream.c src/ocl/remote/ring.c */
/* What a program sends to its OpenCL server: requests bent at a few places, and garbage. Whatever
 * comes, the runtime is only given handles that are alive and of the right kind, memory that is as
 * long as it is said to be, texts that end; every request that waits gets one answer; and when all
 * numbers are released, the runtime has nothing left. The runtime is one of ours (below), and so is
 * the program's memory: what is fetched from it is made up, what can't be is refused.
 *
 * An input is a list of requests: an operation, then parts by the operation's shape, each a byte
 * that says what kind of value it is; or words as they are. */
#include "fuzz.h"
#include <errno.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>
#include "base/base.h"
#include "ocl/epoch/nvml.h"
#include "ocl/remote/server.h"

/* ---- the runtime ---- */

struct handle {
	cl_icd_dispatch *dispatch;
	uint32_t kind, refs;
	struct handle *next, *prev;
};

static struct handle all = {.next = &all, .prev = &all};
static struct input in;
static uint32_t alive;
static struct handle platform = {.kind = STUB_PLATFORM, .refs = 1},
		     device = {.kind = STUB_DEVICE, .refs = 1};

/* One that has been given out, or NULL, which the loader refuses. */
static bool is(const void *handle, stub_kind_t kind)
{
	const struct handle *h = handle;

	must(!h || (h->kind == kind && h->refs > 0));
	return h != NULL;
}

static void *make(stub_kind_t kind)
{
	struct handle *h = calloc(1, sizeof(*h));

	*h = (struct handle){.kind = kind, .refs = 1, .next = all.next, .prev = &all};
	h->next->prev = h;
	all.next = h;
	alive++;
	return h;
}

static cl_int drop(void *handle, stub_kind_t kind)
{
	struct handle *h = handle;

	if (!is(h, kind) || h == &device || h == &platform)
		return h ? CL_SUCCESS : CL_INVALID_VALUE;
	if (--h->refs > 0)
		return CL_SUCCESS;
	h->prev->next = h->next;
	h->next->prev = h->prev;
	h->kind = STUB_FREE;
	free(h);
	alive--;
	return CL_SUCCESS;
}

static cl_int keep_one_more(void *handle, stub_kind_t kind)
{
	if (!is(handle, kind))
		return CL_INVALID_VALUE;
	((struct handle *)handle)->refs++;
	return CL_SUCCESS;
}

/* All of it can be read: a sanitizer looks at that. */
static unsigned seen;

static void look(const void *data, size_t size)
{
	const volatile uint8_t *p = data;

	if (size > 0)
		seen += p[0] + p[size - 1];
	for (size_t i = 0; i < size && i < 4096; i++)
		seen += p[i];
}

static void fill(void *data, size_t size)
{
	if (size > 0)
		memset(data, 1, size);
}

/* Sometimes the runtime refuses what looks good. */
static bool refuses(void)
{
	return input_byte(&in) % 16 == 15;
}

static void *made(bool good, stub_kind_t kind, cl_int *status)
{
	good = good && !refuses();
	if (status)
		*status = good ? CL_SUCCESS : CL_INVALID_VALUE;
	return good ? make(kind) : NULL;
}

/* Each handle up to the first that is NULL. */
static bool are(cl_uint count, const void *list, stub_kind_t kind)
{
	void *const *at = list;

	if (!list || count == 0)
		return false;
	for (cl_uint i = 0; i < count; i++)
		if (!is(at[i], kind))
			return false;
	return true;
}

#define WAITS cl_uint count, const cl_event *list, cl_event *event

static cl_int enqueued(bool good, cl_command_queue q, WAITS)
{
	bool waits = list ? are(count, list, STUB_EVENT) : count == 0;

	if (!is(q, STUB_QUEUE) || !good || !waits || refuses())
		return CL_INVALID_VALUE;
	if (event)
		*event = make(STUB_EVENT);
	return CL_SUCCESS;
}

static cl_int answer(bool good, size_t bytes, size_t room, void *to, size_t *size_ret)
{
	if (!good || (to && room < bytes) || refuses())
		return CL_INVALID_VALUE;
	if (to)
		fill(to, bytes);
	if (size_ret)
		*size_ret = bytes;
	return CL_SUCCESS;
}

static size_t some_bytes(cl_uint name)
{
	static const size_t bytes[] = {4, 8, 1, 0, 60, 3000, 24, 8};

	return bytes[name % 8];
}

cl_int clGetPlatformIDs(cl_uint room, cl_platform_id *list, cl_uint *count)
{
	if (list && room)
		list[0] = (cl_platform_id)&platform;
	*count = 1;
	return CL_SUCCESS;
}

cl_int clGetDeviceIDs(cl_platform_id p, cl_device_type type, cl_uint room, cl_device_id *list,
		      cl_uint *count)
{
	if (!is(p, STUB_PLATFORM))
		return CL_INVALID_PLATFORM;
	if (list && room)
		list[0] = (cl_device_id)&device;
	if (count)
		*count = 1;
	return CL_SUCCESS;
}

cl_int clGetPlatformInfo(cl_platform_id p, cl_platform_info name, size_t room, void *to,
			 size_t *size_ret)
{
	static const char text[] = "Portable Computing Language";

	if (name != CL_PLATFORM_NAME)
		return answer(is(p, STUB_PLATFORM), some_bytes(name), room, to, size_ret);
	if (!is(p, STUB_PLATFORM) || (to && room < sizeof(text)))
		return CL_INVALID_VALUE;
	if (to)
		memcpy(to, text, sizeof(text));
	if (size_ret)
		*size_ret = sizeof(text);
	return CL_SUCCESS;
}

cl_int clGetDeviceInfo(cl_device_id d, cl_device_info name, size_t room, void *to, size_t *size_ret)
{
	uint64_t value = 0;
	size_t n = sizeof(value);

	if (!is(d, STUB_DEVICE))
		return CL_INVALID_DEVICE;
	switch (name) {
	case CL_DEVICE_PLATFORM:
		value = (uint64_t)(uintptr_t)&platform;
		break;
	case CL_DEVICE_TYPE:
		value = CL_DEVICE_TYPE_CPU;
		break;
	case CL_DEVICE_HOST_UNIFIED_MEMORY:
		n = sizeof(cl_bool);
		value = 1;
		break;
	case CL_DEVICE_SVM_CAPABILITIES:
		value = CL_DEVICE_SVM_COARSE_GRAIN_BUFFER;
		break;
	case CL_DEVICE_MAX_MEM_ALLOC_SIZE:
		value = 1 << 16;
		break;
	default:
		return answer(true, some_bytes(name), room, to, size_ret);
	}
	if (to && room < n)
		return CL_INVALID_VALUE;
	if (to)
		memcpy(to, &value, n);
	if (size_ret)
		*size_ret = n;
	return CL_SUCCESS;
}

#define INFO(function, type, kind)                                                                 \
	cl_int function(type o, cl_uint name, size_t room, void *to, size_t *size_ret)             \
	{                                                                                          \
		return answer(is(o, kind), some_bytes(name), room, to, size_ret);                  \
	}
INFO(clGetMemObjectInfo, cl_mem, STUB_MEM)
INFO(clGetSamplerInfo, cl_sampler, STUB_SAMPLER)
INFO(clGetEventProfilingInfo, cl_event, STUB_EVENT)

cl_int clGetCommandQueueInfo(cl_command_queue q, cl_uint name, size_t room, void *to,
			     size_t *size_ret)
{
	if (name == CL_QUEUE_CONTEXT) /* no pinned memory: nothing here is large */
		return CL_INVALID_VALUE;
	return answer(is(q, STUB_QUEUE), some_bytes(name), room, to, size_ret);
}

void *clEnqueueMapBuffer(cl_command_queue q, cl_mem m, cl_bool blocking, cl_map_flags flags,
			 size_t offset, size_t size, cl_uint count, const cl_event *list,
			 cl_event *event, cl_int *status)
{
	must(false);
	return NULL;
}

cl_int clEnqueueUnmapMemObject(cl_command_queue q, cl_mem m, void *p, cl_uint count,
			       const cl_event *list, cl_event *event)
{
	must(false);
	return CL_INVALID_VALUE;
}

cl_int clGetContextInfo(cl_context c, cl_context_info name, size_t room, void *to, size_t *size_ret)
{
	cl_device_id list[] = {(cl_device_id)&device};

	if (name != CL_CONTEXT_DEVICES || !is(c, STUB_CONTEXT))
		return answer(is(c, STUB_CONTEXT), some_bytes(name), room, to, size_ret);
	if (to)
		memcpy(to, list, sizeof(list));
	if (size_ret)
		*size_ret = sizeof(list);
	return CL_SUCCESS;
}

cl_int clGetImageInfo(cl_mem m, cl_image_info name, size_t room, void *to, size_t *size_ret)
{
	size_t four = 4;

	if (name != CL_IMAGE_ELEMENT_SIZE || room < sizeof(four) || !to)
		return answer(is(m, STUB_MEM), some_bytes(name), room, to, size_ret);
	memcpy(to, &four, sizeof(four));
	return is(m, STUB_MEM) ? CL_SUCCESS : CL_INVALID_MEM_OBJECT;
}

cl_int clGetEventInfo(cl_event e, cl_event_info name, size_t room, void *to, size_t *size_ret)
{
	if (name == CL_EVENT_CONTEXT)
		return CL_INVALID_VALUE;
	if (is(e, STUB_EVENT) && name == CL_EVENT_COMMAND_EXECUTION_STATUS && to &&
	    room >= sizeof(cl_int)) {
		*(cl_int *)to = CL_COMPLETE;
		if (size_ret)
			*size_ret = sizeof(cl_int);
		return CL_SUCCESS;
	}
	return answer(is(e, STUB_EVENT), some_bytes(name), room, to, size_ret);
}

cl_int clGetProgramInfo(cl_program p, cl_program_info name, size_t room, void *to, size_t *size_ret)
{
	unsigned char **binary = to;
	size_t *sizes = to;

	if (!is(p, STUB_PROGRAM) || (name == CL_PROGRAM_BINARY_SIZES && room < sizeof(size_t)) ||
	    (name == CL_PROGRAM_BINARIES && room < sizeof(void *)))
		return CL_INVALID_VALUE;
	if (name == CL_PROGRAM_BINARY_SIZES)
		sizes[0] = 100;
	else if (name == CL_PROGRAM_BINARIES && binary[0])
		fill(binary[0], 100);
	else if (name != CL_PROGRAM_BINARIES)
		return answer(true, some_bytes(name), room, to, size_ret);
	return CL_SUCCESS;
}

cl_int clGetProgramBuildInfo(cl_program p, cl_device_id d, cl_program_build_info name, size_t room,
			     void *to, size_t *size_ret)
{
	return answer(is(p, STUB_PROGRAM) && is(d, STUB_DEVICE), some_bytes(name), room, to,
		      size_ret);
}

cl_int clGetKernelInfo(cl_kernel k, cl_kernel_info name, size_t room, void *to, size_t *size_ret)
{
	if (name == CL_KERNEL_NUM_ARGS && to && room >= sizeof(cl_uint))
		*(cl_uint *)to = 3;
	else
		return answer(is(k, STUB_KERNEL), some_bytes(name), room, to, size_ret);
	return is(k, STUB_KERNEL) ? CL_SUCCESS : CL_INVALID_KERNEL;
}

cl_int clGetKernelArgInfo(cl_kernel k, cl_uint index, cl_kernel_arg_info name, size_t room,
			  void *to, size_t *size_ret)
{
	return answer(is(k, STUB_KERNEL) && index < 3, 4, room, to, size_ret);
}

cl_int clGetKernelWorkGroupInfo(cl_kernel k, cl_device_id d, cl_kernel_work_group_info name,
				size_t room, void *to, size_t *size_ret)
{
	return answer(is(k, STUB_KERNEL) && (!d || is(d, STUB_DEVICE)), some_bytes(name), room, to,
		      size_ret);
}

cl_int clGetSupportedImageFormats(cl_context c, cl_mem_flags flags, cl_mem_object_type type,
				  cl_uint room, cl_image_format *list, cl_uint *count)
{
	if (!is(c, STUB_CONTEXT))
		return CL_INVALID_CONTEXT;
	for (cl_uint i = 0; list && i < room && i < 1000; i++)
		fill(&list[i], sizeof(list[i]));
	*count = 1000;
	return CL_SUCCESS;
}

cl_context clCreateContext(const cl_context_properties *list, cl_uint count,
			   const cl_device_id *devices,
			   void (*notify)(const char *, const void *, size_t, void *), void *data,
			   cl_int *status)
{
	return made(are(count, devices, STUB_DEVICE), STUB_CONTEXT, status);
}

static void look_at_list(const intptr_t *list)
{
	size_t n = 0;

	while (list && list[n])
		n += 2;
	seen += (unsigned)n;
}

cl_int clCreateSubDevices(cl_device_id d, const cl_device_partition_property *list, cl_uint room,
			  cl_device_id *to, cl_uint *count)
{
	cl_uint n = list ? (cl_uint)(list[1] & 3) : 0;

	look_at_list(list);
	if (!is(d, STUB_DEVICE) || n == 0)
		return CL_INVALID_VALUE;
	if (count)
		*count = n;
	if (to && room < n)
		return CL_INVALID_VALUE;
	for (cl_uint i = 0; to && i < n; i++)
		to[i] = make(STUB_DEVICE);
	return CL_SUCCESS;
}

cl_command_queue clCreateCommandQueue(cl_context c, cl_device_id d, cl_command_queue_properties p,
				      cl_int *status)
{
	return made(is(c, STUB_CONTEXT) && is(d, STUB_DEVICE), STUB_QUEUE, status);
}

cl_command_queue clCreateCommandQueueWithProperties(cl_context c, cl_device_id d,
						    const cl_queue_properties *list, cl_int *status)
{
	look_at_list((const intptr_t *)list);
	return made(is(c, STUB_CONTEXT) && is(d, STUB_DEVICE), STUB_QUEUE, status);
}

cl_sampler clCreateSampler(cl_context c, cl_bool n, cl_addressing_mode a, cl_filter_mode f,
			   cl_int *status)
{
	return made(is(c, STUB_CONTEXT), STUB_SAMPLER, status);
}

cl_mem clCreateBuffer(cl_context c, cl_mem_flags flags, size_t size, void *host, cl_int *status)
{
	bool wants = flags & (CL_MEM_COPY_HOST_PTR | CL_MEM_USE_HOST_PTR);
	bool good = is(c, STUB_CONTEXT) && size > 0 && size <= 1 << 16 && wants == (host != NULL);

	if (good && host)
		look(host, size);
	return made(good, STUB_MEM, status);
}

cl_mem clCreateSubBuffer(cl_mem m, cl_mem_flags flags, cl_buffer_create_type type, const void *info,
			 cl_int *status)
{
	look(info, sizeof(cl_buffer_region));
	return made(is(m, STUB_MEM), STUB_MEM, status);
}

cl_mem clCreateImage(cl_context c, cl_mem_flags flags, const cl_image_format *format,
		     const cl_image_desc *desc, void *host, cl_int *status)
{
	bool good = is(c, STUB_CONTEXT) && desc->image_width < 100 && desc->image_height < 100 &&
		    desc->image_depth < 10 && desc->image_array_size < 10;

	if (desc->mem_object)
		is(desc->mem_object, STUB_MEM);
	return made(good, STUB_MEM, status);
}

cl_program clCreateProgramWithSource(cl_context c, cl_uint count, const char **texts,
				     const size_t *lengths, cl_int *status)
{
	look(texts[0], lengths[0]);
	return made(is(c, STUB_CONTEXT), STUB_PROGRAM, status);
}

cl_program clCreateProgramWithIL(cl_context c, const void *il, size_t size, cl_int *status)
{
	look(il, size);
	return made(is(c, STUB_CONTEXT), STUB_PROGRAM, status);
}

cl_program clCreateProgramWithBinary(cl_context c, cl_uint count, const cl_device_id *devices,
				     const size_t *lengths, const unsigned char **binaries,
				     cl_int *each, cl_int *status)
{
	bool good = is(c, STUB_CONTEXT) && are(count, devices, STUB_DEVICE);

	for (cl_uint i = 0; good && i < count; i++) {
		look(binaries[i], lengths[i]);
		each[i] = CL_SUCCESS;
	}
	return made(good, STUB_PROGRAM, status);
}

cl_program clCreateProgramWithBuiltInKernels(cl_context c, cl_uint count,
					     const cl_device_id *devices, const char *names,
					     cl_int *status)
{
	seen += (unsigned)strlen(names);
	return made(is(c, STUB_CONTEXT) && are(count, devices, STUB_DEVICE), STUB_PROGRAM, status);
}

static cl_int built(cl_program p, cl_uint count, const cl_device_id *devices, const char *options)
{
	seen += options ? (unsigned)strlen(options) : 0;
	if (!is(p, STUB_PROGRAM) || (devices && !are(count, devices, STUB_DEVICE)) || refuses())
		return CL_BUILD_PROGRAM_FAILURE;
	return CL_SUCCESS;
}

cl_int clBuildProgram(cl_program p, cl_uint count, const cl_device_id *devices, const char *options,
		      void (*notify)(cl_program, void *), void *data)
{
	return built(p, count, devices, options);
}

cl_int clCompileProgram(cl_program p, cl_uint count, const cl_device_id *devices,
			const char *options, cl_uint headers, const cl_program *header,
			const char **names, void (*notify)(cl_program, void *), void *data)
{
	if (headers && (!names || !are(headers, header, STUB_PROGRAM)))
		return CL_INVALID_VALUE;
	for (cl_uint i = 0; i < headers; i++)
		seen += (unsigned)strlen(names[i]);
	return built(p, count, devices, options);
}

cl_program clLinkProgram(cl_context c, cl_uint count, const cl_device_id *devices,
			 const char *options, cl_uint parts, const cl_program *part,
			 void (*notify)(cl_program, void *), void *data, cl_int *status)
{
	seen += options ? (unsigned)strlen(options) : 0;
	return made(is(c, STUB_CONTEXT) && are(parts, part, STUB_PROGRAM) &&
			(!devices || are(count, devices, STUB_DEVICE)),
		    STUB_PROGRAM, status);
}

cl_kernel clCreateKernel(cl_program p, const char *name, cl_int *status)
{
	seen += (unsigned)strlen(name);
	return made(is(p, STUB_PROGRAM), STUB_KERNEL, status);
}

cl_int clSetKernelArg(cl_kernel k, cl_uint index, size_t size, const void *value)
{
	if (!is(k, STUB_KERNEL) || index >= 3 || refuses())
		return CL_INVALID_ARG_INDEX;
	if (value)
		look(value, size);
	return CL_SUCCESS;
}

/* What runtimes are given of the program's shared memory they may use. */
static char *shared;
enum { SHARED = 1 << 20 };

static bool is_shared(const void *p, size_t size)
{
	const char *at = p;

	must(at >= shared && size <= SHARED && at <= shared + SHARED - size);
	return true;
}

cl_int clSetKernelArgSVMPointer(cl_kernel k, cl_uint index, const void *p)
{
	return is(k, STUB_KERNEL) && (!p || is_shared(p, 1)) ? CL_SUCCESS : CL_INVALID_VALUE;
}

cl_int clSetKernelExecInfo(cl_kernel k, cl_kernel_exec_info name, size_t size, const void *value)
{
	look(value, size);
	return is(k, STUB_KERNEL) ? CL_SUCCESS : CL_INVALID_KERNEL;
}

cl_event clCreateUserEvent(cl_context c, cl_int *status)
{
	return made(is(c, STUB_CONTEXT), STUB_EVENT, status);
}

cl_int clSetUserEventStatus(cl_event e, cl_int status)
{
	return is(e, STUB_EVENT) && status <= 0 ? CL_SUCCESS : CL_INVALID_VALUE;
}

cl_int clSetEventCallback(cl_event e, cl_int type, void (*fn)(cl_event, cl_int, void *), void *data)
{
	if (!is(e, STUB_EVENT) || type < 0 || type > CL_SUBMITTED)
		return CL_INVALID_VALUE;
	fn(e, CL_COMPLETE, data);
	atomic_store(&wire->callback_tail, atomic_load(&wire->callback_head));
	return CL_SUCCESS;
}

cl_int clWaitForEvents(cl_uint count, const cl_event *list)
{
	return are(count, list, STUB_EVENT) ? CL_SUCCESS : CL_INVALID_VALUE;
}

cl_int clFinish(cl_command_queue q)
{
	return is(q, STUB_QUEUE) ? CL_SUCCESS : CL_INVALID_COMMAND_QUEUE;
}

cl_int clFlush(cl_command_queue q)
{
	return clFinish(q);
}

#define COUNTS(name, type, kind)                                                                   \
	cl_int clRetain##name(type o)                                                              \
	{                                                                                          \
		return keep_one_more(o, kind);                                                     \
	}                                                                                          \
	cl_int clRelease##name(type o)                                                             \
	{                                                                                          \
		return drop(o, kind);                                                              \
	}
COUNTS(Context, cl_context, STUB_CONTEXT)
COUNTS(CommandQueue, cl_command_queue, STUB_QUEUE)
COUNTS(MemObject, cl_mem, STUB_MEM)
COUNTS(Sampler, cl_sampler, STUB_SAMPLER)
COUNTS(Program, cl_program, STUB_PROGRAM)
COUNTS(Kernel, cl_kernel, STUB_KERNEL)
COUNTS(Event, cl_event, STUB_EVENT)
COUNTS(Device, cl_device_id, STUB_DEVICE)

static cl_int content_size(cl_mem m, cl_mem size)
{
	return is(m, STUB_MEM) && is(size, STUB_MEM) ? CL_SUCCESS : CL_INVALID_MEM_OBJECT;
}

void *clGetExtensionFunctionAddressForPlatform(cl_platform_id p, const char *name)
{
	return is(p, STUB_PLATFORM) ? (void *)(uintptr_t)content_size : NULL;
}

/* ---- commands ---- */

cl_int clEnqueueReadBuffer(cl_command_queue q, cl_mem m, cl_bool blocking, size_t offset,
			   size_t size, void *to, WAITS)
{
	if (to && size <= 1 << 16)
		fill(to, size);
	return enqueued(is(m, STUB_MEM) && to && size > 0, q, count, list, event);
}

cl_int clEnqueueWriteBuffer(cl_command_queue q, cl_mem m, cl_bool blocking, size_t offset,
			    size_t size, const void *from, WAITS)
{
	if (from && size <= 1 << 16)
		look(from, size);
	return enqueued(is(m, STUB_MEM) && from && size > 0, q, count, list, event);
}

cl_int clEnqueueReadBufferRect(cl_command_queue q, cl_mem m, cl_bool blocking, const size_t *at,
			       const size_t *there, const size_t *region, size_t row, size_t slice,
			       size_t far_row, size_t far_slice, void *to, WAITS)
{
	if (to)
		fill(to, region[0] * region[1] * region[2]);
	return enqueued(is(m, STUB_MEM) && to, q, count, list, event);
}

cl_int clEnqueueWriteBufferRect(cl_command_queue q, cl_mem m, cl_bool blocking, const size_t *at,
				const size_t *there, const size_t *region, size_t row, size_t slice,
				size_t far_row, size_t far_slice, const void *from, WAITS)
{
	if (from)
		look(from, region[0] * region[1] * region[2]);
	return enqueued(is(m, STUB_MEM) && from, q, count, list, event);
}

cl_int clEnqueueReadImage(cl_command_queue q, cl_mem m, cl_bool blocking, const size_t *at,
			  const size_t *region, size_t row, size_t slice, void *to, WAITS)
{
	if (to)
		fill(to, region[0] * region[1] * region[2] * 4);
	return enqueued(is(m, STUB_MEM) && to, q, count, list, event);
}

cl_int clEnqueueWriteImage(cl_command_queue q, cl_mem m, cl_bool blocking, const size_t *at,
			   const size_t *region, size_t row, size_t slice, const void *from, WAITS)
{
	if (from)
		look(from, region[0] * region[1] * region[2] * 4);
	return enqueued(is(m, STUB_MEM) && from, q, count, list, event);
}

cl_int clEnqueueCopyBuffer(cl_command_queue q, cl_mem a, cl_mem b, size_t from, size_t to,
			   size_t size, WAITS)
{
	return enqueued(is(a, STUB_MEM) && is(b, STUB_MEM), q, count, list, event);
}

cl_int clEnqueueCopyBufferRect(cl_command_queue q, cl_mem a, cl_mem b, const size_t *from,
			       const size_t *to, const size_t *region, size_t row, size_t slice,
			       size_t far_row, size_t far_slice, WAITS)
{
	return enqueued(is(a, STUB_MEM) && is(b, STUB_MEM), q, count, list, event);
}

cl_int clEnqueueCopyImage(cl_command_queue q, cl_mem a, cl_mem b, const size_t *from,
			  const size_t *to, const size_t *region, WAITS)
{
	return enqueued(is(a, STUB_MEM) && is(b, STUB_MEM), q, count, list, event);
}

cl_int clEnqueueCopyImageToBuffer(cl_command_queue q, cl_mem a, cl_mem b, const size_t *from,
				  const size_t *region, size_t to, WAITS)
{
	return enqueued(is(a, STUB_MEM) && is(b, STUB_MEM), q, count, list, event);
}

cl_int clEnqueueCopyBufferToImage(cl_command_queue q, cl_mem a, cl_mem b, size_t from,
				  const size_t *to, const size_t *region, WAITS)
{
	return enqueued(is(a, STUB_MEM) && is(b, STUB_MEM), q, count, list, event);
}

cl_int clEnqueueFillBuffer(cl_command_queue q, cl_mem m, const void *pattern, size_t bytes,
			   size_t offset, size_t size, WAITS)
{
	look(pattern, bytes);
	return enqueued(is(m, STUB_MEM), q, count, list, event);
}

cl_int clEnqueueFillImage(cl_command_queue q, cl_mem m, const void *colour, const size_t *at,
			  const size_t *region, WAITS)
{
	look(colour, 16);
	return enqueued(is(m, STUB_MEM), q, count, list, event);
}

cl_int clEnqueueNDRangeKernel(cl_command_queue q, cl_kernel k, cl_uint dims, const size_t *offset,
			      const size_t *global, const size_t *local, WAITS)
{
	return enqueued(is(k, STUB_KERNEL) && dims <= 3, q, count, list, event);
}

cl_int clEnqueueMarkerWithWaitList(cl_command_queue q, WAITS)
{
	return enqueued(true, q, count, list, event);
}

cl_int clEnqueueBarrierWithWaitList(cl_command_queue q, WAITS)
{
	return enqueued(true, q, count, list, event);
}

cl_int clEnqueueMigrateMemObjects(cl_command_queue q, cl_uint mems, const cl_mem *mem,
				  cl_mem_migration_flags flags, WAITS)
{
	return enqueued(are(mems, mem, STUB_MEM), q, count, list, event);
}

cl_int clEnqueueSVMMemcpy(cl_command_queue q, cl_bool blocking, void *to, const void *from,
			  size_t size, WAITS)
{
	look(from, size);
	fill(to, size);
	return enqueued(true, q, count, list, event);
}

cl_int clEnqueueSVMMemFill(cl_command_queue q, void *to, const void *pattern, size_t bytes,
			   size_t size, WAITS)
{
	look(pattern, bytes);
	return enqueued(is_shared(to, size), q, count, list, event);
}

cl_int clEnqueueSVMMap(cl_command_queue q, cl_bool blocking, cl_map_flags flags, void *p,
		       size_t size, WAITS)
{
	return enqueued(is_shared(p, size), q, count, list, event);
}

cl_int clEnqueueSVMUnmap(cl_command_queue q, void *p, WAITS)
{
	return enqueued(is_shared(p, 1), q, count, list, event);
}

bool ocl_nvml_load(void)
{
	return false;
}

uint64_t ocl_nvml_errors(cl_device_id d, cl_api_clGetDeviceInfo ask)
{
	return 0;
}

/* ---- the program's memory: one block, filled by the input; nothing else is there ---- */

static char memory[1 << 16];

static bool is_there(const struct iovec *far)
{
	uint64_t at = (uint64_t)(uintptr_t)far->iov_base, base = (uint64_t)(uintptr_t)memory;

	return at >= base && at - base < sizeof(memory) &&
	       far->iov_len <= sizeof(memory) - (at - base);
}

ssize_t process_vm_readv(pid_t pid, const struct iovec *near, unsigned long n,
			 const struct iovec *far, unsigned long m, unsigned long flags)
{
	if (!is_there(far)) {
		errno = EFAULT;
		return -1;
	}
	memcpy(near->iov_base, far->iov_base, near->iov_len);
	return (ssize_t)near->iov_len;
}

ssize_t process_vm_writev(pid_t pid, const struct iovec *near, unsigned long n,
			  const struct iovec *far, unsigned long m, unsigned long flags)
{
	look(near->iov_base, near->iov_len);
	if (!is_there(far)) {
		errno = EFAULT;
		return -1;
	}
	memcpy(far->iov_base, near->iov_base, near->iov_len);
	return (ssize_t)near->iov_len;
}

/* ---- requests ---- */

enum { WORDS = 700 };

static struct wire_request *request;

static uint64_t word(void)
{
	uint8_t how = input_byte(&in);
	uint64_t all_of_it;

	if (how < 200)
		return how % 40; /* small numbers, of objects mostly */
	switch (how) {
	case 200:
		return (uint64_t)(uintptr_t)memory + input_byte(&in) * 8ul;
	case 201:
		return (uint64_t)(uintptr_t)shared + input_byte(&in) * 4ul;
	case 202:
		return input_byte(&in) * 256ul;
	case 203:
		return 1ul << input_byte(&in) % 64;
	case 204:
		return ~0ul - input_byte(&in);
	case 205:
		return CL_MEM_COPY_HOST_PTR;
	case 206:
		return CL_MEM_USE_HOST_PTR;
	case 207:
		return CL_MEM_OBJECT_IMAGE2D;
	case 208:
		input_take(&in, &all_of_it, sizeof(all_of_it));
		return all_of_it;
	default:
		return how & 7;
	}
}

static uint32_t blob(uint32_t at)
{
	uint8_t n = input_byte(&in) % 64;

	request->word[at] = n;
	request->word[at + 1] = 0;
	if (n % 8)
		request->word[at + 1 + (n + 7) / 8] = 0;
	for (uint32_t i = 0; i < n / 8u; i++)
		request->word[at + 2 + i] = word();
	if (n > 0)
		((char *)&request->word[at + 2])[n - 1] = '\0';
	return at + 2 + (n + 7) / 8;
}

static uint32_t list(uint32_t at)
{
	uint32_t n = input_byte(&in) % 5;

	request->word[at] = input_byte(&in) % 8 ? n : word();
	request->word[at + 1] = n > 0;
	request->word[at + 2] = n;
	at += 3;
	while (n--)
		request->word[at++] = word();
	return at;
}

/* A request of the form that is expected, as far as it can be told by its letters. */
static uint32_t by_shape(const char *shape, uint32_t at)
{
	uint32_t last = 0;

	for (; *shape && at < WORDS - 100; shape++) {
		switch (*shape) {
		case 'w':
			request->word[at++] = word();
			break;
		case 'b':
		case 't':
			at = blob(at);
			break;
		case 'n':
			request->word[at++] = last = input_byte(&in) % 4;
			while (last--)
				request->word[at++] = word();
			break;
		case 'l':
			last = at + 2;
			at = list(at);
			last = (uint32_t)request->word[last];
			break;
		case 'T':
			while (last--)
				at = blob(at);
			break;
		case 'E':
			at = list(at);
			request->word[at++] = input_byte(&in) % 3 ? 0 : word();
			break;
		default: /* a kernel's argument */
			request->word[at - 1] = input_byte(&in) % 2 ? 8 : request->word[at - 1];
			request->word[at] = input_byte(&in) % 4;
			if (request->word[at++] == ARG_BYTES)
				at = blob(at);
			else if (request->word[at - 1] != ARG_NULL)
				request->word[at++] = word();
		}
	}
	return at;
}

/* ---- one input ---- */

static void answered(uint16_t slot)
{
	for (int i = 0; slot < WIRE_SLOTS && i < 100000; i++) {
		if (atomic_load(&wire->reply[slot].state) == SLOT_DONE)
			return;
		usleep(10); /* by a thread that waits */
	}
	must(slot >= WIRE_SLOTS);
}

static void one(void)
{
	uint32_t n = 0;

	memset(request, 0, sizeof(*request));
	request->op = input_byte(&in) % (OP_RESTORE + 3);
	request->slot = input_byte(&in) % 4 ? 3 : input_byte(&in) % 2 ? WIRE_NO_REPLY : 900;
	if (input_byte(&in) % 8 && shape_of(request->op))
		n = by_shape(shape_of(request->op), 0);
	else
		for (n = 0; n < 20 && in.left; n++)
			request->word[n] = word();
	if (input_byte(&in) % 8 == 0)
		for (int i = 0; i < WIRE_REFS; i++)
			request->ref[i] = input_byte(&in) % 32;
	request->size = (uint32_t)(sizeof(*request) + n * 8);
	input_bend(&in, request->word, n ? n * 8 : 1);
	struct wire_request *copy = malloc(request->size); /* what is read beyond it is seen */
	memcpy(copy, request, request->size);
	if (copy->slot < WIRE_SLOTS)
		atomic_store(&wire->reply[copy->slot].state, SLOT_WAITING);
	carry_out(copy);
	answered(copy->slot);
	if (copy->slot < WIRE_SLOTS)
		must(wire->reply[copy->slot].bytes <= WIRE_INLINE || request->op == OP_INFO);
	free(copy);
}

static void begin(void)
{
	char why[100];

	log_set_level(LOG_QUIET);
	wire = calloc(1, sizeof(*wire));
	request = calloc(1, sizeof(*request) + WORDS * 8);
	shared = mmap(NULL, SHARED, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	wire->svm_base = (uint64_t)(uintptr_t)shared;
	wire->svm_bytes = SHARED;
	must(devices_begin(why, sizeof(why)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	in = (struct input){data, size};
	if (!wire)
		begin();
	input_take(&in, memory, input_byte(&in) * 4ul);
	for (int i = 0; i < 64 && in.left > 0; i++)
		one();
	/* the numbers of platforms and devices stay */
	for (uint32_t i = obj_count(); i-- > 3;)
		obj_release(i);
	deliver();
	in.left = 0;
	if (!real_of(1, STUB_PLATFORM) || real_of(2, STUB_DEVICE) != (void *)&device) {
		obj_set(1, STUB_PLATFORM, &platform, 0);
		obj_set(2, STUB_DEVICE, &device, 0);
	}
	must(alive == 0);
	must(unset_events == 0);
	return 0;
}
