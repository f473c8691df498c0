/* SPDX-License-Identifier: BSD-3-Clause */
/* Platforms, devices, contexts, queues, samplers; the driver's entry points. */
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "ocl/remote/remote.h"

enum { PLATFORMS_MAX = 32, DEVICES_MAX = 128 };

struct stub *remote_platform[PLATFORMS_MAX], *remote_device[DEVICES_MAX];
uint32_t remote_platforms, remote_devices;
cl_icd_dispatch remote_dispatch;

cl_int give(const void *from, size_t bytes, size_t room, void *to, size_t *size_ret)
{
	if (to && room < bytes)
		return CL_INVALID_VALUE;
	if (to)
		memcpy(to, from, bytes);
	if (size_ret)
		*size_ret = bytes;
	return CL_SUCCESS;
}

cl_int remote_info(wire_about_t about, const struct stub *s, uint64_t second, uint32_t name,
		   size_t room, void *to, size_t *size_ret)
{
	struct call c = {0};
	struct answer a = {.data = to, .room = room};
	cl_int status;

	put(&c, about);
	put(&c, s ? s->id : 0);
	put(&c, second);
	put(&c, name);
	put(&c, room);
	put(&c, (uint64_t)(uintptr_t)to);
	status = remote_call(&c, OP_INFO, &a);
	if (status == CL_SUCCESS && size_ret)
		*size_ret = a.bytes;
	return status;
}

void *remote_make(struct stub *s, struct call *c, wire_op_t op, cl_int *status)
{
	cl_int code = s ? remote_call(c, op, NULL) : CL_OUT_OF_HOST_MEMORY;

	if (status)
		*status = code;
	if (code == CL_SUCCESS)
		return s;
	if (s)
		stub_discard(s);
	return NULL;
}

static void *refuse(cl_int code, cl_int *status)
{
	if (status)
		*status = code;
	return NULL;
}

/* ---- platforms and devices ---- */

static cl_int learn_devices(void)
{
	uint64_t list[2 * DEVICES_MAX] = {0};
	struct answer a = {.data = list, .room = sizeof(list)};
	struct call c = {0};
	cl_int status = remote_call(&c, OP_DEVICES, &a);

	if (status != CL_SUCCESS)
		return status;
	/* in this order, so that their numbers are the server's */
	for (uint64_t i = 0; i < a.value[0]; i++)
		remote_platform[remote_platforms++] = stub_create(STUB_PLATFORM, NULL);
	for (uint64_t i = 0; i < a.value[1]; i++) {
		struct stub *s = stub_create(STUB_DEVICE, NULL);
		s->parent = remote_platform[list[2 * i]];
		s->type = list[2 * i + 1];
		remote_device[remote_devices++] = s;
	}
	return CL_SUCCESS;
}

static cl_int fill_once(void)
{
	static cl_int status = 1;

	if (status != 1)
		return status;
	objects_fill(&remote_dispatch);
	memory_fill(&remote_dispatch);
	programs_fill(&remote_dispatch);
	kernels_fill(&remote_dispatch);
	events_fill(&remote_dispatch);
	transfers_fill(&remote_dispatch);
	commands_fill(&remote_dispatch);
	status = remote_start();
	if (status == CL_SUCCESS)
		status = learn_devices();
	return status;
}

static cl_int CL_API_CALL get_platforms(cl_uint room, cl_platform_id *list, cl_uint *count)
{
	if ((!list && !count) || (list && room == 0))
		return CL_INVALID_VALUE;
	if (fill_once() != CL_SUCCESS || remote_platforms == 0)
		return CL_PLATFORM_NOT_FOUND_KHR;
	for (cl_uint i = 0; list && i < room && i < remote_platforms; i++)
		list[i] = (cl_platform_id)remote_platform[i];
	if (count)
		*count = remote_platforms;
	return CL_SUCCESS;
}

/* Extensions with functions of their own, or that need the program's memory, are not offered. */
static bool is_offered(const char *name, size_t n)
{
	static const char *const not_offered[] = {"command_buffer_",
						  "_gl_",
						  "_egl_",
						  "d3d",
						  "_dx9_",
						  "external",
						  "_svm",
						  "subgroup_named",
						  "create_command_queue",
						  "il_program",
						  "_import_"};

	for (size_t i = 0; i < ARRAY_LEN(not_offered); i++)
		if (memmem(name, n, not_offered[i], strlen(not_offered[i])))
			return false;
	return true;
}

static cl_int filter_extensions(cl_int status, size_t room, char *to, size_t *size_ret)
{
	char *out = to;

	if (status != CL_SUCCESS || !to || room == 0)
		return status;
	for (const char *p = to; *p;) {
		size_t n = strcspn(p, " ");
		if (n > 0 && is_offered(p, n)) {
			if (out != to)
				*out++ = ' ';
			memmove(out, p, n);
			out += n;
		}
		p += n;
		p += *p == ' ';
	}
	*out = '\0';
	if (size_ret)
		*size_ret = (size_t)(out - to) + 1;
	return status;
}

/* The whole list is asked for, so that the length fits what is left of it. */
static cl_int extensions(wire_about_t about, const struct stub *s, uint32_t name, size_t room,
			 void *to, size_t *size_ret)
{
	char text[16384];
	size_t n = 0;
	cl_int status = remote_info(about, s, 0, name, sizeof(text), text, &n);

	status = filter_extensions(status, sizeof(text), text, &n);
	return status == CL_SUCCESS ? give(text, n, room, to, size_ret) : status;
}

static cl_int CL_API_CALL platform_info(cl_platform_id p, cl_platform_info name, size_t room,
					void *to, size_t *size_ret)
{
	struct stub *s = stub_of(p, STUB_PLATFORM);

	if (!s)
		return CL_INVALID_PLATFORM;
	if (name == CL_PLATFORM_EXTENSIONS)
		return extensions(ABOUT_PLATFORM, s, name, room, to, size_ret);
	return remote_info(ABOUT_PLATFORM, s, 0, name, room, to, size_ret);
}

static cl_int CL_API_CALL get_devices(cl_platform_id p, cl_device_type type, cl_uint room,
				      cl_device_id *list, cl_uint *count)
{
	struct stub *s = p ? stub_of(p, STUB_PLATFORM) : remote_platform[0];
	cl_uint n = 0;

	if (!s)
		return CL_INVALID_PLATFORM;
	if ((!list && !count) || (list && room == 0))
		return CL_INVALID_VALUE;
	if (type != CL_DEVICE_TYPE_ALL &&
	    (type == 0 || type & ~(cl_device_type)(CL_DEVICE_TYPE_DEFAULT | CL_DEVICE_TYPE_CPU |
						   CL_DEVICE_TYPE_GPU | CL_DEVICE_TYPE_ACCELERATOR |
						   CL_DEVICE_TYPE_CUSTOM)))
		return CL_INVALID_DEVICE_TYPE;
	for (uint32_t i = 0; i < remote_devices; i++) {
		struct stub *d = remote_device[i];
		bool custom = d->type & CL_DEVICE_TYPE_CUSTOM;
		if (d->parent != s ||
		    !((type == CL_DEVICE_TYPE_ALL && !custom) || (type & d->type) ||
		      (type == CL_DEVICE_TYPE_DEFAULT && n == 0)))
			continue;
		if (list && n < room)
			list[n] = (cl_device_id)d;
		n++;
		if (type == CL_DEVICE_TYPE_DEFAULT)
			break;
	}
	if (count)
		*count = n;
	return n ? CL_SUCCESS : CL_DEVICE_NOT_FOUND;
}

/* What this driver takes from the device. */
static cl_int CL_API_CALL device_info(cl_device_id device, cl_device_info name, size_t room,
				      void *to, size_t *size_ret)
{
	struct stub *s = stub_of(device, STUB_DEVICE);
	const cl_ulong zero = 0;
	const cl_uint one = 1;
	cl_device_exec_capabilities kernels = CL_EXEC_KERNEL;

	if (!s)
		return CL_INVALID_DEVICE;
	switch (name) {
	case CL_DEVICE_PLATFORM:
		return give(&s->parent, sizeof(void *), room, to, size_ret);
	case CL_DEVICE_EXTENSIONS:
		return extensions(ABOUT_DEVICE, s, name, room, to, size_ret);
	case CL_DEVICE_SVM_CAPABILITIES:
	case CL_DEVICE_QUEUE_ON_DEVICE_PROPERTIES:
	case CL_DEVICE_PARENT_DEVICE:
		return give(&zero, sizeof(cl_ulong), room, to, size_ret);
	case CL_DEVICE_PARTITION_MAX_SUB_DEVICES:
	case CL_DEVICE_PIPE_SUPPORT:
	case CL_DEVICE_DEVICE_ENQUEUE_CAPABILITIES:
	case CL_DEVICE_HOST_UNIFIED_MEMORY: /* with this process it isn't */
		return give(&zero, sizeof(cl_uint), room, to, size_ret);
	case CL_DEVICE_PARTITION_PROPERTIES:
		return give(&zero, sizeof(cl_device_partition_property), room, to, size_ret);
	case CL_DEVICE_PARTITION_AFFINITY_DOMAIN:
		return give(&zero, sizeof(cl_device_affinity_domain), room, to, size_ret);
	case CL_DEVICE_REFERENCE_COUNT:
		return give(&one, sizeof(one), room, to, size_ret);
	case CL_DEVICE_EXECUTION_CAPABILITIES:
		return give(&kernels, sizeof(kernels), room, to, size_ret);
	default:
		return remote_info(ABOUT_DEVICE, s, 0, name, room, to, size_ret);
	}
}

static cl_int CL_API_CALL keep_device(cl_device_id device)
{
	return stub_of(device, STUB_DEVICE) ? CL_SUCCESS : CL_INVALID_DEVICE;
}

static cl_int CL_API_CALL sub_devices(cl_device_id device,
				      const cl_device_partition_property *properties, cl_uint room,
				      cl_device_id *list, cl_uint *count)
{
	return stub_of(device, STUB_DEVICE) ? CL_INVALID_VALUE : CL_INVALID_DEVICE;
}

void put_devices(struct call *c, cl_uint count, const cl_device_id *list)
{
	put_handles(c, count, list, STUB_DEVICE);
}

struct stub **device_list(cl_uint count, const cl_device_id *list)
{
	struct stub **copy = calloc(count + 1, sizeof(struct stub *));

	for (cl_uint i = 0; copy && i < count; i++)
		copy[i] = (struct stub *)list[i];
	return copy;
}

/* ---- contexts ---- */

static cl_int look_at_properties(const cl_context_properties *list, struct stub **platform)
{
	*platform = NULL;
	for (const cl_context_properties *p = list; p && *p; p += 2) {
		if (p[0] == CL_CONTEXT_PLATFORM) {
			*platform = stub_of((void *)p[1], STUB_PLATFORM);
			if (!*platform)
				return CL_INVALID_PLATFORM;
		} else if (p[0] != CL_CONTEXT_INTEROP_USER_SYNC) {
			return CL_INVALID_PROPERTY;
		}
	}
	return CL_SUCCESS;
}

static cl_context CL_API_CALL create_context(const cl_context_properties *properties, cl_uint count,
					     const cl_device_id *devices,
					     void(CL_CALLBACK *notify)(const char *, const void *,
								       size_t, void *),
					     void *data, cl_int *status)
{
	struct stub *platform, *s;
	struct call c = {0};
	cl_int code = look_at_properties(properties, &platform);

	if (code != CL_SUCCESS)
		return refuse(code, status);
	if (!devices || count == 0 || (!notify && data))
		return refuse(CL_INVALID_VALUE, status);
	for (cl_uint i = 0; i < count; i++)
		if (!stub_of(devices[i], STUB_DEVICE))
			return refuse(CL_INVALID_DEVICE, status);
	remote_renew();
	s = stub_create(STUB_CONTEXT, NULL);
	if (!s)
		return refuse(CL_OUT_OF_HOST_MEMORY, status);
	s->list = stub_list_copy(properties);
	s->devices = device_list(count, devices);
	s->device_count = count;
	put(&c, s->id);
	put(&c, platform ? platform->id : 0);
	put_devices(&c, count, devices);
	return remote_make(s, &c, OP_CONTEXT, status);
}

static cl_context CL_API_CALL
create_context_of(const cl_context_properties *properties, cl_device_type type,
		  void(CL_CALLBACK *notify)(const char *, const void *, size_t, void *), void *data,
		  cl_int *status)
{
	cl_device_id list[DEVICES_MAX];
	struct stub *platform;
	cl_uint n = 0;
	cl_int code = look_at_properties(properties, &platform);

	if (code == CL_SUCCESS)
		code = get_devices((cl_platform_id)platform, type, DEVICES_MAX, list, &n);
	if (code != CL_SUCCESS)
		return refuse(code, status);
	return create_context(properties, n, list, notify, data, status);
}

static cl_int CL_API_CALL retain_context(cl_context c)
{
	return stub_retain(c, STUB_CONTEXT, CL_INVALID_CONTEXT);
}

static cl_int CL_API_CALL release_context(cl_context c)
{
	return stub_release(c, STUB_CONTEXT, CL_INVALID_CONTEXT);
}

static size_t list_bytes(const uint64_t *list)
{
	size_t n = 0;

	while (list && list[n])
		n += 2;
	return list ? (n + 1) * sizeof(*list) : 0;
}

static cl_int CL_API_CALL context_info(cl_context c, cl_context_info name, size_t room, void *to,
				       size_t *size_ret)
{
	struct stub *s = stub_of(c, STUB_CONTEXT);

	if (!s)
		return CL_INVALID_CONTEXT;
	switch (name) {
	case CL_CONTEXT_REFERENCE_COUNT:
		return give(&s->refs, sizeof(s->refs), room, to, size_ret);
	case CL_CONTEXT_NUM_DEVICES:
		return give(&s->device_count, sizeof(s->device_count), room, to, size_ret);
	case CL_CONTEXT_DEVICES:
		return give(s->devices, s->device_count * sizeof(cl_device_id), room, to, size_ret);
	case CL_CONTEXT_PROPERTIES:
		return give(s->list, list_bytes(s->list), room, to, size_ret);
	default:
		return remote_info(ABOUT_CONTEXT, s, 0, name, room, to, size_ret);
	}
}

/* ---- queues ---- */

static cl_command_queue make_queue(cl_context context, cl_device_id device, uint64_t properties,
				   const cl_queue_properties *list, cl_int *status)
{
	struct stub *in = stub_of(context, STUB_CONTEXT), *d = stub_of(device, STUB_DEVICE), *s;
	struct call c = {0};

	if (!in || !d)
		return refuse(in ? CL_INVALID_DEVICE : CL_INVALID_CONTEXT, status);
	s = stub_create(STUB_QUEUE, in);
	if (!s)
		return refuse(CL_OUT_OF_HOST_MEMORY, status);
	s->parent = d;
	s->type = properties;
	s->list = stub_list_copy(list);
	put(&c, s->id);
	put(&c, in->id);
	put(&c, d->id);
	put(&c, properties);
	put_blob(&c, s->list, list_bytes(s->list));
	return remote_make(s, &c, OP_QUEUE, status);
}

static cl_command_queue CL_API_CALL create_queue(cl_context context, cl_device_id device,
						 cl_command_queue_properties properties,
						 cl_int *status)
{
	return make_queue(context, device, properties, NULL, status);
}

static cl_command_queue CL_API_CALL create_queue_with(cl_context context, cl_device_id device,
						      const cl_queue_properties *list,
						      cl_int *status)
{
	cl_command_queue_properties properties = 0;
	cl_queue_properties none = 0;

	for (const cl_queue_properties *p = list; p && *p; p += 2)
		if (p[0] == CL_QUEUE_PROPERTIES)
			properties = p[1];
	if (properties & (CL_QUEUE_ON_DEVICE | CL_QUEUE_ON_DEVICE_DEFAULT))
		return refuse(CL_INVALID_QUEUE_PROPERTIES, status);
	return make_queue(context, device, properties, list ? list : &none, status);
}

static cl_int CL_API_CALL retain_queue(cl_command_queue q)
{
	return stub_retain(q, STUB_QUEUE, CL_INVALID_COMMAND_QUEUE);
}

/* A last release flushes, as the standard says. */
static cl_int CL_API_CALL release_queue(cl_command_queue q)
{
	struct stub *s = stub_of(q, STUB_QUEUE);
	struct call c = {0};

	if (s) {
		put(&c, s->id);
		remote_post(&c, OP_FLUSH);
	}
	return stub_release(q, STUB_QUEUE, CL_INVALID_COMMAND_QUEUE);
}

static cl_int CL_API_CALL queue_info(cl_command_queue q, cl_command_queue_info name, size_t room,
				     void *to, size_t *size_ret)
{
	struct stub *s = stub_of(q, STUB_QUEUE);

	if (!s)
		return CL_INVALID_COMMAND_QUEUE;
	switch (name) {
	case CL_QUEUE_CONTEXT:
		return give(&s->context, sizeof(void *), room, to, size_ret);
	case CL_QUEUE_DEVICE:
		return give(&s->parent, sizeof(void *), room, to, size_ret);
	case CL_QUEUE_REFERENCE_COUNT:
		return give(&s->refs, sizeof(s->refs), room, to, size_ret);
	case CL_QUEUE_PROPERTIES_ARRAY:
		return give(s->list, list_bytes(s->list), room, to, size_ret);
	default:
		return remote_info(ABOUT_QUEUE, s, 0, name, room, to, size_ret);
	}
}

static cl_int queue_call(cl_command_queue q, wire_op_t op, bool waits)
{
	struct stub *s = stub_of(q, STUB_QUEUE);
	struct call c = {0};

	if (!s)
		return CL_INVALID_COMMAND_QUEUE;
	put(&c, s->id);
	return waits ? remote_call(&c, op, NULL) : remote_post(&c, op);
}

static cl_int CL_API_CALL flush(cl_command_queue q)
{
	return queue_call(q, OP_FLUSH, false);
}

static cl_int CL_API_CALL finish(cl_command_queue q)
{
	return queue_call(q, OP_FINISH, true);
}

static cl_int CL_API_CALL set_queue_property(cl_command_queue q,
					     cl_command_queue_properties properties, cl_bool enable,
					     cl_command_queue_properties *old)
{
	return stub_of(q, STUB_QUEUE) ? CL_INVALID_OPERATION : CL_INVALID_COMMAND_QUEUE;
}

/* ---- samplers ---- */

static cl_sampler make_sampler(cl_context context, cl_bool normalized,
			       cl_addressing_mode addressing, cl_filter_mode filter,
			       const void *list, cl_int *status)
{
	struct stub *in = stub_of(context, STUB_CONTEXT), *s;
	struct call c = {0};

	if (!in)
		return refuse(CL_INVALID_CONTEXT, status);
	s = stub_create(STUB_SAMPLER, in);
	if (!s)
		return refuse(CL_OUT_OF_HOST_MEMORY, status);
	s->list = stub_list_copy(list);
	s->sampler = (struct stub_sampler){normalized, addressing, filter};
	put(&c, s->id);
	put(&c, in->id);
	put(&c, normalized);
	put(&c, addressing);
	put(&c, filter);
	return remote_make(s, &c, OP_SAMPLER, status);
}

static cl_sampler CL_API_CALL create_sampler(cl_context context, cl_bool normalized,
					     cl_addressing_mode addressing, cl_filter_mode filter,
					     cl_int *status)
{
	return make_sampler(context, normalized, addressing, filter, NULL, status);
}

static cl_sampler CL_API_CALL create_sampler_with(cl_context context,
						  const cl_sampler_properties *list, cl_int *status)
{
	cl_bool normalized = CL_TRUE;
	cl_addressing_mode addressing = CL_ADDRESS_CLAMP;
	cl_filter_mode filter = CL_FILTER_NEAREST;

	for (const cl_sampler_properties *p = list; p && *p; p += 2) {
		if (p[0] == CL_SAMPLER_NORMALIZED_COORDS)
			normalized = (cl_bool)p[1];
		else if (p[0] == CL_SAMPLER_ADDRESSING_MODE)
			addressing = (cl_addressing_mode)p[1];
		else if (p[0] == CL_SAMPLER_FILTER_MODE)
			filter = (cl_filter_mode)p[1];
		else
			return refuse(CL_INVALID_VALUE, status);
	}
	return make_sampler(context, normalized, addressing, filter, list, status);
}

static cl_int CL_API_CALL retain_sampler(cl_sampler s)
{
	return stub_retain(s, STUB_SAMPLER, CL_INVALID_SAMPLER);
}

static cl_int CL_API_CALL release_sampler(cl_sampler s)
{
	return stub_release(s, STUB_SAMPLER, CL_INVALID_SAMPLER);
}

static cl_int CL_API_CALL sampler_info(cl_sampler sampler, cl_sampler_info name, size_t room,
				       void *to, size_t *size_ret)
{
	struct stub *s = stub_of(sampler, STUB_SAMPLER);

	if (!s)
		return CL_INVALID_SAMPLER;
	switch (name) {
	case CL_SAMPLER_REFERENCE_COUNT:
		return give(&s->refs, sizeof(s->refs), room, to, size_ret);
	case CL_SAMPLER_CONTEXT:
		return give(&s->context, sizeof(void *), room, to, size_ret);
	case CL_SAMPLER_PROPERTIES:
		return give(s->list, list_bytes(s->list), room, to, size_ret);
	case CL_SAMPLER_NORMALIZED_COORDS:
		return give(&s->sampler.normalized, sizeof(cl_bool), room, to, size_ret);
	case CL_SAMPLER_ADDRESSING_MODE:
		return give(&s->sampler.addressing, sizeof(cl_addressing_mode), room, to, size_ret);
	case CL_SAMPLER_FILTER_MODE:
		return give(&s->sampler.filter, sizeof(cl_filter_mode), room, to, size_ret);
	default:
		return remote_info(ABOUT_SAMPLER, s, 0, name, room, to, size_ret);
	}
}

/* ---- the driver ---- */

static void *CL_API_CALL extension(cl_platform_id p, const char *name)
{
	return name ? recorded_function(name) : NULL;
}

CL_API_ENTRY cl_int CL_API_CALL clIcdGetPlatformIDsKHR(cl_uint room, cl_platform_id *list,
						       cl_uint *count)
{
	return get_platforms(room, list, count);
}

CL_API_ENTRY void *CL_API_CALL clGetExtensionFunctionAddress(const char *name)
{
	if (name && strcmp(name, "clIcdGetPlatformIDsKHR") == 0)
		return (void *)(uintptr_t)clIcdGetPlatformIDsKHR;
	if (name && strcmp(name, "clGetPlatformInfo") == 0)
		return (void *)(uintptr_t)platform_info;
	return name ? recorded_function(name) : NULL;
}

/* What isn't offered. For functions that return a pointer this is NULL. */
static uint64_t CL_API_CALL not_offered(void)
{
	return (uint32_t)CL_INVALID_OPERATION;
}

static void *CL_API_CALL no_memory(void)
{
	return NULL;
}

void objects_fill(cl_icd_dispatch *d)
{
	void **all = (void **)d;

	for (size_t i = 0; i < sizeof(*d) / sizeof(void *); i++)
		all[i] = (void *)(uintptr_t)not_offered;
	*(void **)&d->clSVMAlloc = (void *)(uintptr_t)no_memory;
	*(void **)&d->clSVMFree = (void *)(uintptr_t)no_memory;
	*(void **)&d->clCreatePipe = (void *)(uintptr_t)no_memory;
	*(void **)&d->clCreateFromGLBuffer = (void *)(uintptr_t)no_memory;
	*(void **)&d->clCreateFromGLTexture = (void *)(uintptr_t)no_memory;
	*(void **)&d->clCreateFromGLTexture2D = (void *)(uintptr_t)no_memory;
	*(void **)&d->clCreateFromGLTexture3D = (void *)(uintptr_t)no_memory;
	*(void **)&d->clCreateFromGLRenderbuffer = (void *)(uintptr_t)no_memory;
	*(void **)&d->clCreateEventFromGLsyncKHR = (void *)(uintptr_t)no_memory;
	*(void **)&d->clGetExtensionFunctionAddress =
	    (void *)(uintptr_t)clGetExtensionFunctionAddress;
	d->clGetExtensionFunctionAddressForPlatform = extension;
	d->clGetPlatformIDs = get_platforms;
	d->clGetPlatformInfo = platform_info;
	d->clGetDeviceIDs = get_devices;
	d->clGetDeviceInfo = device_info;
	d->clRetainDevice = keep_device;
	d->clReleaseDevice = keep_device;
	d->clCreateSubDevices = sub_devices;
	d->clCreateContext = create_context;
	d->clCreateContextFromType = create_context_of;
	d->clRetainContext = retain_context;
	d->clReleaseContext = release_context;
	d->clGetContextInfo = context_info;
	d->clCreateCommandQueue = create_queue;
	d->clCreateCommandQueueWithProperties = create_queue_with;
	d->clRetainCommandQueue = retain_queue;
	d->clReleaseCommandQueue = release_queue;
	d->clGetCommandQueueInfo = queue_info;
	d->clSetCommandQueueProperty = set_queue_property;
	d->clFlush = flush;
	d->clFinish = finish;
	d->clCreateSampler = create_sampler;
	d->clCreateSamplerWithProperties = create_sampler_with;
	d->clRetainSampler = retain_sampler;
	d->clReleaseSampler = release_sampler;
	d->clGetSamplerInfo = sampler_info;
}
