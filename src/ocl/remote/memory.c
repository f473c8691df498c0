/* SPDX-License-Identifier: BSD-3-Clause */
/* Buffers, sub-buffers and images. */
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "ocl/remote/remote.h"

static void *refuse(cl_int code, cl_int *status)
{
	if (status)
		*status = code;
	return NULL;
}

/* ---- buffers ---- */

static bool is_shared(const char *host, size_t size)
{
	const struct stub *s = host ? svm_at(host) : NULL;

	return s && size <= s->mem.size - (size_t)(host - s->mem.host);
}

static cl_mem CL_API_CALL create_buffer(cl_context context, cl_mem_flags flags, size_t size,
					void *host, cl_int *status)
{
	struct stub *in = stub_of(context, STUB_CONTEXT), *s;
	struct call c = {0};

	if (!in)
		return refuse(CL_INVALID_CONTEXT, status);
	s = stub_create(STUB_MEM, in);
	if (!s)
		return refuse(CL_OUT_OF_HOST_MEMORY, status);
	s->mem.flags = flags ? flags : CL_MEM_READ_WRITE;
	s->mem.type = CL_MEM_OBJECT_BUFFER;
	s->mem.size = size;
	s->mem.host = flags & CL_MEM_USE_HOST_PTR ? host : NULL;
	s->mem.shared = is_shared(s->mem.host, size);
	put(&c, s->id);
	put(&c, in->id);
	put(&c, flags);
	put(&c, size);
	put(&c, (uint64_t)(uintptr_t)host);
	return remote_make(s, &c, OP_BUFFER, status);
}

static cl_mem CL_API_CALL create_buffer_with(cl_context context, const cl_mem_properties *list,
					     cl_mem_flags flags, size_t size, void *host,
					     cl_int *status)
{
	if (list && list[0])
		return refuse(CL_INVALID_PROPERTY, status);
	return create_buffer(context, flags, size, host, status);
}

static const cl_mem_flags access_flags = CL_MEM_READ_WRITE | CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY;
static const cl_mem_flags host_flags =
    CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_WRITE_ONLY | CL_MEM_HOST_NO_ACCESS;

/* The server's objects know nothing of what the host may do, so it is looked at here. */
static bool host_may_less(cl_mem_flags whole, cl_mem_flags part)
{
	cl_mem_flags both = CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_WRITE_ONLY;

	if (whole & CL_MEM_HOST_NO_ACCESS)
		return !(part & both);
	return !((whole & both) && (part & both & ~whole));
}

/* What is not said of a part is as with the whole. */
static cl_mem_flags flags_of_part(cl_mem_flags whole, cl_mem_flags part)
{
	if (!(part & access_flags))
		part |= whole & access_flags;
	if (!(part & host_flags))
		part |= whole & host_flags;
	return part | (whole & ~(access_flags | host_flags));
}

static cl_mem CL_API_CALL create_sub_buffer(cl_mem buffer, cl_mem_flags flags,
					    cl_buffer_create_type type, const void *info,
					    cl_int *status)
{
	struct stub *of = stub_of(buffer, STUB_MEM), *s;
	const cl_buffer_region *region = info;
	struct call c = {0};

	if (!of)
		return refuse(CL_INVALID_MEM_OBJECT, status);
	if (type != CL_BUFFER_CREATE_TYPE_REGION || !region || !host_may_less(of->mem.flags, flags))
		return refuse(CL_INVALID_VALUE, status);
	s = stub_create(STUB_MEM, of->context);
	if (!s)
		return refuse(CL_OUT_OF_HOST_MEMORY, status);
	stub_hold(s, of);
	s->parent = of;
	s->mem.type = CL_MEM_OBJECT_BUFFER;
	s->mem.flags = flags_of_part(of->mem.flags, flags);
	s->mem.offset = region->origin;
	s->mem.size = region->size;
	s->mem.host = of->mem.host ? of->mem.host + region->origin : NULL;
	s->mem.shared = of->mem.shared;
	put(&c, s->id);
	put(&c, of->id);
	put(&c, flags);
	put(&c, region->origin);
	put(&c, region->size);
	return remote_make(s, &c, OP_SUB_BUFFER, status);
}

/* ---- images ---- */

size_t element_size(const cl_image_format *f)
{
	static const struct {
		cl_channel_type type;
		size_t bytes; /* of a channel; of all with 0 in front */
	} sizes[] = {{CL_SNORM_INT8, 1},    {CL_UNORM_INT8, 1},	    {CL_SIGNED_INT8, 1},
		     {CL_UNSIGNED_INT8, 1}, {CL_SNORM_INT16, 2},    {CL_UNORM_INT16, 2},
		     {CL_SIGNED_INT16, 2},  {CL_UNSIGNED_INT16, 2}, {CL_HALF_FLOAT, 2},
		     {CL_SIGNED_INT32, 4},  {CL_UNSIGNED_INT32, 4}, {CL_FLOAT, 4}};
	size_t channels = 4;

	if (f->image_channel_data_type == CL_UNORM_SHORT_565 ||
	    f->image_channel_data_type == CL_UNORM_SHORT_555)
		return 2;
	if (f->image_channel_data_type == CL_UNORM_INT_101010 ||
	    f->image_channel_data_type == CL_UNORM_INT_101010_2)
		return 4;
	switch (f->image_channel_order) {
	case CL_R:
	case CL_A:
	case CL_Rx:
	case CL_INTENSITY:
	case CL_LUMINANCE:
	case CL_DEPTH:
		channels = 1;
		break;
	case CL_RG:
	case CL_RA:
	case CL_RGx:
		channels = 2;
		break;
	case CL_RGB:
	case CL_RGBx:
	case CL_sRGB:
		channels = 3;
		break;
	default:
		break;
	}
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
		if (sizes[i].type == f->image_channel_data_type)
			return channels * sizes[i].bytes;
	return 0;
}

static void image_shape(struct stub_mem *m, const cl_image_desc *i)
{
	const size_t *r = m->region;

	m->type = i->image_type;
	cl_image_region(i, m->region);
	m->size = r[0] * r[1] * r[2] * m->element;
	m->host_pitch[0] = i->image_row_pitch ? i->image_row_pitch : r[0] * m->element;
	m->host_pitch[1] = i->image_slice_pitch ? i->image_slice_pitch : m->host_pitch[0] * r[1];
	if (i->image_type == CL_MEM_OBJECT_IMAGE1D_ARRAY && i->image_slice_pitch)
		m->host_pitch[0] = i->image_slice_pitch; /* its slices are its rows */
}

static cl_mem CL_API_CALL create_image(cl_context context, cl_mem_flags flags,
				       const cl_image_format *format, const cl_image_desc *desc,
				       void *host, cl_int *status)
{
	struct stub *in = stub_of(context, STUB_CONTEXT), *of, *s;
	struct call c = {0};

	if (!in)
		return refuse(CL_INVALID_CONTEXT, status);
	if (!format)
		return refuse(CL_INVALID_IMAGE_FORMAT_DESCRIPTOR, status);
	if (!desc)
		return refuse(CL_INVALID_IMAGE_DESCRIPTOR, status);
	of = stub_of(desc->mem_object, STUB_MEM);
	if (desc->mem_object && !of)
		return refuse(CL_INVALID_IMAGE_DESCRIPTOR, status);
	s = stub_create(STUB_MEM, in);
	if (!s)
		return refuse(CL_OUT_OF_HOST_MEMORY, status);
	stub_hold(s, of);
	s->parent = of;
	s->mem.flags = flags ? flags : of ? of->mem.flags : CL_MEM_READ_WRITE;
	s->mem.element = element_size(format);
	s->mem.host = flags & CL_MEM_USE_HOST_PTR ? host : NULL;
	image_shape(&s->mem, desc);
	put(&c, s->id);
	put(&c, in->id);
	put(&c, flags);
	put(&c, format->image_channel_order);
	put(&c, format->image_channel_data_type);
	put(&c, desc->image_type);
	put(&c, desc->image_width);
	put(&c, desc->image_height);
	put(&c, desc->image_depth);
	put(&c, desc->image_array_size);
	put(&c, desc->image_row_pitch);
	put(&c, desc->image_slice_pitch);
	put(&c, desc->num_mip_levels);
	put(&c, desc->num_samples);
	put(&c, of ? of->id : 0);
	put(&c, (uint64_t)(uintptr_t)host);
	put(&c, s->mem.host_pitch[1] * (s->mem.region[2] - 1) +
		    s->mem.host_pitch[0] * (s->mem.region[1] - 1) +
		    s->mem.region[0] * s->mem.element);
	return remote_make(s, &c, OP_IMAGE, status);
}

static cl_mem CL_API_CALL create_image_with(cl_context context, const cl_mem_properties *list,
					    cl_mem_flags flags, const cl_image_format *format,
					    const cl_image_desc *desc, void *host, cl_int *status)
{
	if (list && list[0])
		return refuse(CL_INVALID_PROPERTY, status);
	return create_image(context, flags, format, desc, host, status);
}

static cl_mem CL_API_CALL create_image_2d(cl_context context, cl_mem_flags flags,
					  const cl_image_format *format, size_t width,
					  size_t height, size_t row, void *host, cl_int *status)
{
	cl_image_desc desc = {.image_type = CL_MEM_OBJECT_IMAGE2D,
			      .image_width = width,
			      .image_height = height,
			      .image_row_pitch = row};

	return create_image(context, flags, format, &desc, host, status);
}

static cl_mem CL_API_CALL create_image_3d(cl_context context, cl_mem_flags flags,
					  const cl_image_format *format, size_t width,
					  size_t height, size_t depth, size_t row, size_t slice,
					  void *host, cl_int *status)
{
	cl_image_desc desc = {.image_type = CL_MEM_OBJECT_IMAGE3D,
			      .image_width = width,
			      .image_height = height,
			      .image_depth = depth,
			      .image_row_pitch = row,
			      .image_slice_pitch = slice};

	return create_image(context, flags, format, &desc, host, status);
}

static cl_int CL_API_CALL image_formats(cl_context context, cl_mem_flags flags,
					cl_mem_object_type type, cl_uint room,
					cl_image_format *list, cl_uint *count)
{
	struct stub *in = stub_of(context, STUB_CONTEXT);
	struct remote_answer a = {.data = list, .room = room * sizeof(*list)};
	struct call c = {0};
	cl_int status;

	if (!in)
		return CL_INVALID_CONTEXT;
	put(&c, in->id);
	put(&c, flags);
	put(&c, type);
	put(&c, room);
	put(&c, list != NULL);
	status = remote_call(&c, OP_FORMATS, &a);
	if (status == CL_SUCCESS && count)
		*count = (cl_uint)a.value[0];
	return status;
}

cl_int CL_API_CALL remote_set_content_size(cl_mem mem, cl_mem size)
{
	struct stub *s = stub_of(mem, STUB_MEM), *of = stub_of(size, STUB_MEM);
	struct call c = {0};
	cl_int status;

	if (!s || !of)
		return CL_INVALID_MEM_OBJECT;
	put(&c, s->id);
	put(&c, of->id);
	status = remote_call(&c, OP_CONTENT_SIZE, NULL);
	if (status == CL_SUCCESS)
		stub_hold(s, of);
	return status;
}

/* ---- both ---- */

static cl_int CL_API_CALL retain_mem(cl_mem m)
{
	return stub_retain(m, STUB_MEM, CL_INVALID_MEM_OBJECT);
}

static cl_int CL_API_CALL release_mem(cl_mem m)
{
	return stub_release(m, STUB_MEM, CL_INVALID_MEM_OBJECT);
}

static cl_int CL_API_CALL mem_info(cl_mem m, cl_mem_info name, size_t room, void *to,
				   size_t *size_ret)
{
	struct stub *s = stub_of(m, STUB_MEM);
	cl_bool shared;

	if (!s)
		return CL_INVALID_MEM_OBJECT;
	switch (name) {
	case CL_MEM_FLAGS:
		return give(&s->mem.flags, sizeof(s->mem.flags), room, to, size_ret);
	case CL_MEM_HOST_PTR:
		return give(&s->mem.host, sizeof(s->mem.host), room, to, size_ret);
	case CL_MEM_MAP_COUNT:
		return give(&s->mem.map_count, sizeof(s->mem.map_count), room, to, size_ret);
	case CL_MEM_REFERENCE_COUNT:
		return give(&s->refs, sizeof(s->refs), room, to, size_ret);
	case CL_MEM_CONTEXT:
		return give(&s->context, sizeof(void *), room, to, size_ret);
	case CL_MEM_ASSOCIATED_MEMOBJECT:
		return give(&s->parent, sizeof(void *), room, to, size_ret);
	case CL_MEM_OFFSET:
		return give(&s->mem.offset, sizeof(s->mem.offset), room, to, size_ret);
	case CL_MEM_USES_SVM_POINTER:
		shared = s->mem.shared;
		return give(&shared, sizeof(shared), room, to, size_ret);
	default:
		return remote_info(ABOUT_MEM, s, 0, name, room, to, size_ret);
	}
}

static cl_int CL_API_CALL image_info(cl_mem m, cl_image_info name, size_t room, void *to,
				     size_t *size_ret)
{
	struct stub *s = stub_of(m, STUB_MEM);

	if (!s)
		return CL_INVALID_MEM_OBJECT;
	if (s->mem.type == CL_MEM_OBJECT_BUFFER) /* what the runtime says to that */
		return remote_info(ABOUT_IMAGE, s, 0, name, room, to, size_ret);
	if (name == CL_IMAGE_BUFFER)
		return give(&s->parent, sizeof(void *), room, to, size_ret);
	if (name == CL_IMAGE_ELEMENT_SIZE)
		return give(&s->mem.element, sizeof(s->mem.element), room, to, size_ret);
	return remote_info(ABOUT_IMAGE, s, 0, name, room, to, size_ret);
}

/* There are none. */
static cl_int CL_API_CALL pipe_info(cl_mem m, cl_pipe_info name, size_t room, void *to,
				    size_t *size_ret)
{
	return CL_INVALID_MEM_OBJECT;
}

static cl_int CL_API_CALL mem_destructor(cl_mem m, void(CL_CALLBACK *fn)(cl_mem, void *),
					 void *data)
{
	struct stub *s = stub_of(m, STUB_MEM);
	struct destructor *d;

	if (!s)
		return CL_INVALID_MEM_OBJECT;
	if (!fn)
		return CL_INVALID_VALUE;
	d = malloc(sizeof(*d));
	if (!d)
		return CL_OUT_OF_HOST_MEMORY;
	*d = (struct destructor){.next = s->mem.destructors, .of_mem = fn, .data = data};
	s->mem.destructors = d;
	return CL_SUCCESS;
}

void memory_fill(cl_icd_dispatch *d)
{
	d->clCreateBuffer = create_buffer;
	d->clCreateBufferWithProperties = create_buffer_with;
	d->clCreateSubBuffer = create_sub_buffer;
	d->clCreateImage = create_image;
	d->clCreateImageWithProperties = create_image_with;
	d->clCreateImage2D = create_image_2d;
	d->clCreateImage3D = create_image_3d;
	d->clGetSupportedImageFormats = image_formats;
	d->clRetainMemObject = retain_mem;
	d->clReleaseMemObject = release_mem;
	d->clGetMemObjectInfo = mem_info;
	d->clGetImageInfo = image_info;
	d->clGetPipeInfo = pipe_info;
	d->clSetMemObjectDestructorCallback = mem_destructor;
}
