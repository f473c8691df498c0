/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests that make contexts, queues, memory objects, samplers, user events. */
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "ocl/remote/server.h"

uint32_t unset_events;

struct obj *obj_made(struct in *in, uint64_t id, stub_kind_t kind, void *real, uint64_t context)
{
	struct obj *o = obj_set(id, kind, real, context);

	record_add(in->r);
	return o;
}

void **next_list(struct in *in, stub_kind_t kind, cl_uint *count, void *room[LIST_MAX + 1])
{
	cl_uint n;
	bool given;

	*count = (cl_uint)next(in);
	given = next(in) != 0;
	n = (cl_uint)next(in);
	for (cl_uint i = 0; i < n; i++)
		room[i] = real_of(next(in), kind);
	room[n] = NULL;
	if (given && *count > n)
		*count = n + 1;
	return given ? room : NULL;
}

/* ---- contexts, queues, samplers ---- */

static cl_int make_context(struct in *in)
{
	uint64_t id = next(in);
	void *platform = real_of(next(in), STUB_PLATFORM), *room[LIST_MAX + 1];
	cl_context_properties list[] = {CL_CONTEXT_PLATFORM, (cl_context_properties)platform, 0};
	cl_uint count;
	cl_device_id *devices = (cl_device_id *)next_list(in, STUB_DEVICE, &count, room);
	cl_int status;
	cl_context c = clCreateContext(platform ? list : NULL, count, devices, NULL, NULL, &status);

	if (c)
		obj_made(in, id, STUB_CONTEXT, c, id)->device = devices[0];
	return status;
}

static uint64_t *parts_of(const struct server_record *r, cl_uint *count)
{
	struct in in = {.r = r->request, .w = r->request->word};
	size_t bytes;

	next(&in);
	next_blob(&in, &bytes);
	*count = (cl_uint)next(&in);
	return (uint64_t *)in.w;
}

/* In the record of the division there is 0 for it from now on: the number may be another object's,
 * or nobody's, when it is made again. */
void part_ends(uint64_t id)
{
	for (struct server_record *r = records.prev; r != &records; r = r->prev) {
		bool ours = false, more = false;
		uint64_t *part;
		cl_uint count;

		if (r->request->op != OP_SUB_DEVICES)
			continue;
		part = parts_of(r, &count);
		for (cl_uint i = 0; i < count; i++) {
			ours |= part[i] == id;
			part[i] = part[i] == id ? 0 : part[i];
			more |= part[i] != 0;
		}
		if (ours && !more)
			record_drop(obj_at(r->request->word[0]), r);
		if (ours)
			return;
	}
}

/* With no numbers: how many there would be. */
static cl_int make_sub_devices(struct in *in, struct out *out)
{
	struct obj *parent = obj_at(next(in));
	intptr_t room[LIST_MAX + 8];
	const cl_device_partition_property *properties = next_properties(in, room);
	cl_uint wanted = (cl_uint)next(in), count = 0;
	cl_device_id list[LIST_MAX];
	cl_int status;

	if (!parent || parent->kind != STUB_DEVICE)
		return CL_INVALID_DEVICE;
	status = clCreateSubDevices(parent->real, properties, 0, NULL, &count);
	out->value[0] = count;
	if (status != CL_SUCCESS || wanted == 0)
		return status;
	if (wanted != count)
		return CL_DEVICE_PARTITION_FAILED;
	for (cl_uint i = 0; i < count; i++)
		if (!(in->again && in->w[i] == 0) && !obj_may_be(in, in->w[i]))
			return CL_INVALID_VALUE;
	status = clCreateSubDevices(parent->real, properties, count, list, NULL);
	if (status != CL_SUCCESS)
		return status;
	for (cl_uint i = 0; i < count; i++) {
		uint64_t id = next(in);

		if (obj_is_unused(id)) /* not so if one number stands there twice, or 0 */
			obj_set(id, STUB_DEVICE, list[i], 0);
		else
			clReleaseDevice(list[i]);
	}
	record_add(in->r);
	return CL_SUCCESS;
}

static cl_int make_queue(struct in *in)
{
	uint64_t id = next(in), context = next(in);
	cl_device_id device = real_of(next(in), STUB_DEVICE);
	cl_command_queue_properties properties = next(in);
	intptr_t room[LIST_MAX + 8];
	const cl_queue_properties *list = next_properties(in, room);
	cl_context c = real_of(context, STUB_CONTEXT);
	cl_int status;
	cl_command_queue q = list ? clCreateCommandQueueWithProperties(c, device, list, &status)
				  : clCreateCommandQueue(c, device, properties, &status);

	if (q)
		obj_made(in, id, STUB_QUEUE, q, context)->device = device;
	return status;
}

static cl_int make_sampler(struct in *in)
{
	uint64_t id = next(in), context = next(in);
	cl_bool normalized = (cl_bool)next(in);
	cl_addressing_mode addressing = (cl_addressing_mode)next(in);
	cl_filter_mode filter = (cl_filter_mode)next(in);
	cl_int status;
	cl_sampler s = clCreateSampler(real_of(context, STUB_CONTEXT), normalized, addressing,
				       filter, &status);

	if (s)
		obj_made(in, id, STUB_SAMPLER, s, context);
	return status;
}

/* ---- memory ---- */

/* Flags for an object that this server makes, from those f that the program gave. shared: the
 * server has the program's memory at the same address, and uses it. Otherwise it copies from there.
 * again: the object is made from a snapshot, which brings its content, so nothing is copied. The
 * driver has checked what the host may do. Wrong combinations stay: the runtime refuses them. */
static cl_mem_flags flags_here(cl_mem_flags f, bool shared, bool again)
{
	cl_mem_flags host =
	    f & (CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_WRITE_ONLY | CL_MEM_HOST_NO_ACCESS);

	if (!shared && f & CL_MEM_USE_HOST_PTR &&
	    !(f & (CL_MEM_ALLOC_HOST_PTR | CL_MEM_COPY_HOST_PTR)))
		f = (f & ~(cl_mem_flags)CL_MEM_USE_HOST_PTR) | CL_MEM_COPY_HOST_PTR;
	if ((host & (host - 1)) == 0)
		f &= ~host;
	if (again)
		f &= ~(cl_mem_flags)CL_MEM_COPY_HOST_PTR;
	return f;
}

/* The runtime says what is wrong with an object whose content is too large to be brought here. */
static cl_int not_made(cl_mem m, cl_int status, cl_int otherwise)
{
	if (m)
		clReleaseMemObject(m);
	return m ? otherwise : status;
}

static bool is_too_large(cl_context c, size_t size)
{
	cl_device_id list[DEVICES_MAX];
	cl_ulong most = 0, max = 0;
	size_t bytes = 0;

	if (clGetContextInfo(c, CL_CONTEXT_DEVICES, sizeof(list), list, &bytes) != CL_SUCCESS)
		return true;
	for (size_t i = 0; i < bytes / sizeof(cl_device_id); i++)
		if (clGetDeviceInfo(list[i], CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof(most), &most,
				    NULL) == CL_SUCCESS &&
		    most > max)
			max = most;
	return size > max;
}

/* A copy of what the object begins with; NULL: none was given, or *status. */
static void *begin_with(struct in *in, uint64_t address, size_t size, cl_int *status)
{
	void *data;

	*status = CL_SUCCESS;
	if (in->again || !address)
		return NULL;
	data = malloc(size ? size : 1);
	if (!data || !fetch(data, address, size)) {
		free(data);
		*status = data ? CL_INVALID_HOST_PTR : CL_OUT_OF_HOST_MEMORY;
		return NULL;
	}
	return data;
}

static cl_int make_buffer(struct in *in)
{
	uint64_t id = next(in), context = next(in);
	cl_mem_flags given = next(in);
	size_t size = next(in);
	uint64_t address = next(in);
	bool shared = given & CL_MEM_USE_HOST_PTR && svm_has(address, size);
	cl_mem_flags flags = flags_here(given, shared, in->again);
	cl_context c = real_of(context, STUB_CONTEXT);
	cl_int status = CL_SUCCESS;
	void *data = NULL;
	cl_mem m = NULL;

	if (flags & CL_MEM_COPY_HOST_PTR && c && is_too_large(c, size)) {
		m = clCreateBuffer(c, flags & ~(cl_mem_flags)CL_MEM_COPY_HOST_PTR, size, NULL,
				   &status);
		status = not_made(m, status, CL_INVALID_BUFFER_SIZE);
		m = NULL;
	} else if (c) {
		data = begin_with(in, address, flags & CL_MEM_COPY_HOST_PTR ? size : 0, &status);
	}
	if (status == CL_SUCCESS)
		m = clCreateBuffer(c, flags, size, shared ? (void *)(uintptr_t)address : data,
				   &status);
	free(data);
	if (m) {
		struct obj *o = obj_made(in, id, STUB_MEM, m, context);
		o->whole = true;
		o->size = size;
	}
	return status;
}

static cl_int make_sub_buffer(struct in *in)
{
	uint64_t id = next(in), of = next(in);
	cl_mem_flags flags = flags_here(next(in), false, false);
	cl_buffer_region region = {.origin = next(in)};
	struct obj *parent = obj_at(of);
	cl_int status;
	cl_mem m;

	region.size = next(in);
	m = clCreateSubBuffer(real_of(of, STUB_MEM), flags, CL_BUFFER_CREATE_TYPE_REGION, &region,
			      &status);
	if (m)
		obj_made(in, id, STUB_MEM, m, parent->context)->size = region.size;
	return status;
}

static void image_shape(struct obj *o, const cl_image_desc *i)
{
	size_t r[3] = {i->image_width, i->image_height ? i->image_height : 1,
		       i->image_depth ? i->image_depth : 1};

	if (i->image_type == CL_MEM_OBJECT_IMAGE1D || i->image_type == CL_MEM_OBJECT_IMAGE1D_BUFFER)
		r[1] = r[2] = 1;
	if (i->image_type == CL_MEM_OBJECT_IMAGE1D_ARRAY)
		r[1] = i->image_array_size, r[2] = 1;
	if (i->image_type == CL_MEM_OBJECT_IMAGE2D)
		r[2] = 1;
	if (i->image_type == CL_MEM_OBJECT_IMAGE2D_ARRAY)
		r[2] = i->image_array_size;
	memcpy(o->region, r, sizeof(r));
	clGetImageInfo(o->real, CL_IMAGE_ELEMENT_SIZE, sizeof(o->element), &o->element, NULL);
	o->size = r[0] * r[1] * r[2] * o->element;
	o->image = true;
}

static cl_int make_image(struct in *in)
{
	uint64_t id = next(in), context = next(in);
	cl_mem_flags flags = flags_here(next(in), false, in->again);
	cl_image_format format = {.image_channel_order = (cl_channel_order)next(in)};
	cl_image_desc desc = {0};
	uint64_t of, address;
	size_t span;
	cl_int status = CL_SUCCESS;
	cl_mem m = NULL;
	void *data = NULL;
	cl_context c = real_of(context, STUB_CONTEXT);

	format.image_channel_data_type = (cl_channel_type)next(in);
	desc.image_type = (cl_mem_object_type)next(in);
	desc.image_width = next(in);
	desc.image_height = next(in);
	desc.image_depth = next(in);
	desc.image_array_size = next(in);
	desc.image_row_pitch = next(in);
	desc.image_slice_pitch = next(in);
	desc.num_mip_levels = (cl_uint)next(in);
	desc.num_samples = (cl_uint)next(in);
	of = next(in);
	desc.mem_object = real_of(of, STUB_MEM);
	address = next(in);
	span = next(in);
	if (flags & CL_MEM_COPY_HOST_PTR && c && is_too_large(c, span)) {
		m = clCreateImage(c, flags & ~(cl_mem_flags)CL_MEM_COPY_HOST_PTR, &format, &desc,
				  NULL, &status);
		status = not_made(m, status, CL_INVALID_IMAGE_SIZE);
		m = NULL;
	} else if (c) {
		data = begin_with(in, address, flags & CL_MEM_COPY_HOST_PTR ? span : 0, &status);
	}
	if (in->again && !of)
		desc.image_row_pitch = desc.image_slice_pitch = 0;
	if (status == CL_SUCCESS)
		m = clCreateImage(c, flags, &format, &desc, data, &status);
	free(data);
	if (m) {
		struct obj *o = obj_made(in, id, STUB_MEM, m, context);
		o->whole = of == 0;
		image_shape(o, &desc);
	}
	return status;
}

static cl_int set_content_size(struct in *in)
{
	cl_int(CL_API_CALL * set)(cl_mem, cl_mem);
	struct obj *o = obj_at(next(in));
	cl_mem size = real_of(next(in), STUB_MEM);
	cl_device_id device = o && obj_at(o->context) ? obj_at(o->context)->device : NULL;
	cl_platform_id platform = NULL;
	cl_int status;

	if (!device || o->kind != STUB_MEM)
		return CL_INVALID_MEM_OBJECT;
	clGetDeviceInfo(device, CL_DEVICE_PLATFORM, sizeof(cl_platform_id), &platform, NULL);
	*(void **)&set =
	    clGetExtensionFunctionAddressForPlatform(platform, "clSetContentSizeBufferPoCL");
	status = set ? set(o->real, size) : CL_INVALID_OPERATION;
	if (status == CL_SUCCESS)
		record_add(in->r);
	return status;
}

/* ---- user events ---- */

static cl_int make_user_event(struct in *in)
{
	uint64_t id = next(in), context = next(in);
	cl_int status;
	cl_event e = clCreateUserEvent(real_of(context, STUB_CONTEXT), &status);

	if (e) {
		struct obj *o = obj_set(id, STUB_EVENT, e, context);
		o->user = o->unset = true;
		o->type = CL_COMMAND_USER;
		unset_events++;
	}
	return status;
}

static cl_int set_user_event(struct in *in)
{
	struct obj *o = obj_at(next(in));
	cl_int status;

	if (!o || o->kind != STUB_EVENT)
		return CL_INVALID_EVENT;
	status = clSetUserEventStatus(o->real, (cl_int)(int64_t)next(in));
	if (status == CL_SUCCESS && o->unset) {
		o->unset = false;
		unset_events--;
	}
	return status;
}

/* From a snapshot: an event that was complete then. */
static cl_int make_past_event(struct in *in)
{
	uint64_t id = next(in), context = next(in);
	cl_command_type type = (cl_command_type)next(in);
	cl_int value = (cl_int)(int64_t)next(in), status;
	cl_event e = clCreateUserEvent(real_of(context, STUB_CONTEXT), &status);
	struct obj *o;

	if (!e)
		return status;
	clSetUserEventStatus(e, value);
	o = obj_set(id, STUB_EVENT, e, context);
	o->type = type;
	o->user = type == CL_COMMAND_USER;
	if (!(o->past = calloc(1, sizeof(*o->past))))
		return CL_OUT_OF_HOST_MEMORY;
	o->past->profiled = (cl_int)(int64_t)next(in);
	for (int i = 0; i < 4; i++)
		o->past->time[i] = next(in);
	return CL_SUCCESS;
}

cl_int serve_object(struct in *in, struct out *out)
{
	switch (in->r->op) {
	case OP_SUB_DEVICES:
		return make_sub_devices(in, out);
	case OP_CONTEXT:
		return make_context(in);
	case OP_QUEUE:
		return make_queue(in);
	case OP_BUFFER:
		return make_buffer(in);
	case OP_SUB_BUFFER:
		return make_sub_buffer(in);
	case OP_IMAGE:
		return make_image(in);
	case OP_SAMPLER:
		return make_sampler(in);
	case OP_CONTENT_SIZE:
		return set_content_size(in);
	case OP_EVENT_PAST:
		return make_past_event(in);
	case OP_USER_EVENT:
		return make_user_event(in);
	case OP_USER_EVENT_SET:
		return set_user_event(in);
	default:
		return CL_INVALID_OPERATION;
	}
}
