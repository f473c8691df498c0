/* SPDX-License-Identifier: BSD-3-Clause */
/* Buffers, sub-buffers, images: their shadows, and what they began with. */
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "ocl/calls.h"
#include "ocl/entry/entry.h"
#include "ocl/epoch/epoch.h"
#include "ocl/log/log.h"
#include "hale/opencl.h"

struct mem *ocl_mem_of(cl_mem handle)
{
	return ocl_find(handle, OCL_MEM);
}

/* ---- how content is cut into chunks ---- */

void ocl_mem_layout(struct mem *m)
{
	m->chunk_size = m->size;
	if (m->type == CL_MEM_OBJECT_BUFFER && m->size > OCL_CHUNK)
		m->chunk_size = OCL_CHUNK;
	m->chunk_count = m->chunk_size ? (m->size + m->chunk_size - 1) / m->chunk_size : 0;
	m->chunks = calloc(m->chunk_count + 1, sizeof(*m->chunks));
	if (!m->chunks)
		m->chunk_count = 0;
	for (size_t i = 0; i < m->chunk_count; i++)
		m->chunks[i].slot = m->chunks[i].next = -1;
	m->span = (off_t)ALIGN_UP(m->chunk_count * m->chunk_size, HALE_PAGE);
	m->at = -1;
}

void ocl_mem_fini(struct mem *m)
{
	if (m->at >= 0)
		ocl_store_give(OBJ(m)->domain, m->at, 2 * m->span);
	if (OBJ(m)->kind == OCL_SVM) {
		ocl_svm_remove(OBJ(m)->domain, m);
		if (m->flags & CL_MEM_SVM_FINE_GRAIN_BUFFER)
			OBJ(m)->domain->fine_svm--;
	}
	for (uint32_t i = 0; i < m->lent_count; i++)
		ocl_runtime_release(m->lent[i], OCL_MEM);
	free(m->lent);
	free(m->chunks);
	free(m->properties);
	if (m->user)
		ocl_drop(OBJ(m->user));
	if (m->parent)
		ocl_drop(OBJ(m->parent));
}

static void made_of(struct mem *m, struct mem *parent)
{
	m->root = parent->root;
	m->parent = parent;
	ocl_hold(OBJ(parent));
	ocl_kin_add(OBJ(parent));
}

/* What the program gave the object to begin with is needed for a replay from its creation on. */
static void log_init(struct mem *m, const void *host)
{
	struct domain *d = OBJ(m)->domain;
	struct ocl_entry *e;

	if (!host || !(m->flags & (CL_MEM_COPY_HOST_PTR | CL_MEM_USE_HOST_PTR)))
		return;
	e = ocl_entry_new(OP_INIT);
	if (!e) {
		d->unprotected = true;
		m->modified |= OCL_BY_DEVICE;
		return;
	}
	e->dst = m;
	ocl_hold(OBJ(m));
	e->dst_handle = OBJ(m)->handle;
	memcpy(e->region, m->region, sizeof(e->region));
	e->pitch[0] = m->desc.image_row_pitch;
	e->pitch[1] = m->desc.image_slice_pitch;
	e->host = (void *)host;
	e->host_span = m->size;
	if (m->type != CL_MEM_OBJECT_BUFFER) {
		size_t row = m->region[0] * m->element, zero[3] = {0};
		size_t box[3] = {row, m->region[1], m->region[2]};

		if (m->type == CL_MEM_OBJECT_IMAGE1D_ARRAY && e->pitch[1] && !e->pitch[0])
			e->pitch[0] = e->pitch[1]; /* its slices are its rows */
		e->host_span = ocl_rect_span(zero, box, e->pitch[0], e->pitch[1]);
	}
	m->modified |= OCL_BY_HOST;
	ocl_log_append(d, e);
	ocl_log_capture(d, e);
}

/* ---- buffers ---- */

/* A buffer that uses shared virtual memory is another name for it. */
static bool is_part_of_svm(struct domain *d, struct mem *m)
{
	size_t at = (size_t)m->host_ptr;
	struct mem *svm = at ? ocl_svm_at(d, at) : NULL;

	if (!svm || m->size > svm->size - (at - (size_t)OBJ(svm)->handle))
		return false;
	made_of(m, svm);
	m->offset = at - (size_t)OBJ(svm)->handle;
	return true;
}

static void buffer_add(cl_context c, cl_mem b, const cl_mem_properties *properties,
		       cl_mem_flags flags, size_t size, void *host)
{
	struct domain *d;
	struct mem *m;

	ocl_lock();
	d = ocl_find(c, OCL_CONTEXT);
	m = d && !ocl.passive ? ocl_object_create(sizeof(*m), OCL_MEM, b, d) : NULL;
	if (m) {
		m->type = CL_MEM_OBJECT_BUFFER;
		m->size = m->region[0] = size;
		m->region[1] = m->region[2] = 1;
		m->flags = flags;
		m->properties = ocl_properties_copy((const intptr_t *)properties);
		m->host_ptr = flags & CL_MEM_USE_HOST_PTR ? host : NULL;
		m->read_only = flags & CL_MEM_READ_ONLY;
		if (!is_part_of_svm(d, m)) {
			m->root = m;
			m->modified = OCL_FRESH;
			ocl_mem_layout(m);
			log_init(m, host);
		}
	}
	ocl_unlock();
}

/* Objects that the program has released may only still live in the log, or the device is lost.
 * True: try again. */
static bool made_room(cl_context c, cl_int status)
{
	uint32_t moves = ocl.moves;
	struct domain *d;
	struct queue *q;
	bool tried = false;

	if (ocl_again(c, OCL_CONTEXT, status, moves))
		return true;
	if (status != CL_MEM_OBJECT_ALLOCATION_FAILURE && status != CL_OUT_OF_RESOURCES &&
	    status != CL_OUT_OF_HOST_MEMORY && status != CL_DEVICE_NOT_AVAILABLE)
		return false;
	ocl_lock();
	d = ocl_find(c, OCL_CONTEXT);
	q = d ? ocl_any_queue(d) : NULL;
	if (d && (q || status == CL_DEVICE_NOT_AVAILABLE) &&
	    ocl_epoch_failed(d, q, status, moves) == CL_SUCCESS) {
		tried = true;
	} else if (d && d->first && !ocl_domain_gated(d)) {
		ocl_epoch_force(d);
		tried = true;
	}
	ocl_unlock();
	return tried;
}

cl_mem CL_API_CALL layer_clCreateBuffer(cl_context c, cl_mem_flags flags, size_t size, void *host,
					cl_int *status)
{
	MADE_LOCKED;
	cl_int code;
	cl_mem b = NEXT->clCreateBuffer(ocl_real(c, OCL_CONTEXT), flags, size, host, &code);

	if (!b && made_room(c, code))
		b = NEXT->clCreateBuffer(ocl_real(c, OCL_CONTEXT), flags, size, host, &code);
	if (b)
		buffer_add(c, b, NULL, flags, size, host);
	if (status)
		*status = code;
	return b;
}

cl_mem CL_API_CALL layer_clCreateBufferWithProperties(cl_context c,
						      const cl_mem_properties *properties,
						      cl_mem_flags flags, size_t size, void *host,
						      cl_int *status)
{
	MADE_LOCKED;
	cl_int code;
	cl_mem b = NEXT->clCreateBufferWithProperties(ocl_real(c, OCL_CONTEXT), properties, flags,
						      size, host, &code);

	if (!b && made_room(c, code))
		b = NEXT->clCreateBufferWithProperties(ocl_real(c, OCL_CONTEXT), properties, flags,
						       size, host, &code);
	if (b)
		buffer_add(c, b, properties, flags, size, host);
	if (status)
		*status = code;
	return b;
}

static void alias_add(struct mem *parent, cl_mem handle, size_t offset, size_t size,
		      cl_mem_flags flags, bool plain, const cl_image_format *format,
		      const cl_image_desc *desc)
{
	struct mem *m = ocl_object_create(sizeof(*m), OCL_MEM, handle, OBJ(parent)->domain);

	if (!m)
		return;
	made_of(m, parent);
	m->plain = plain;
	m->offset = parent->offset + offset;
	m->size = size;
	m->flags = flags;
	m->read_only = flags & CL_MEM_READ_ONLY;
	m->type = plain ? CL_MEM_OBJECT_BUFFER : desc->image_type;
	if (!plain) {
		m->format = *format;
		m->desc = *desc;
	}
}

cl_mem CL_API_CALL layer_clCreateSubBuffer(cl_mem buffer, cl_mem_flags flags,
					   cl_buffer_create_type type, const void *info,
					   cl_int *status)
{
	MADE_LOCKED;
	const cl_buffer_region *region = info;
	struct mem *parent;
	cl_int code;
	cl_mem b;

	MAKE_OF(buffer, OCL_MEM, status,
		b = NEXT->clCreateSubBuffer(ocl_real(buffer, OCL_MEM), flags, type, info, &code));
	if (!b || ocl.passive)
		return b;
	ocl_lock();
	parent = ocl_mem_of(buffer);
	if (parent)
		alias_add(parent, b, region->origin, region->size, flags ? flags : parent->flags,
			  true, NULL, NULL);
	ocl_unlock();
	return b;
}

/* ---- images ---- */

static void image_region(struct mem *m)
{
	const size_t *r = m->region;

	cl_image_region(&m->desc, m->region);
	NEXT->clGetImageInfo(OBJ(m)->real, CL_IMAGE_ELEMENT_SIZE, sizeof(m->element), &m->element,
			     NULL);
	m->size = r[0] * r[1] * r[2] * m->element;
}

static void image_add(cl_context c, cl_mem image, const cl_mem_properties *properties,
		      cl_mem_flags flags, const cl_image_format *format, const cl_image_desc *desc,
		      void *host)
{
	struct domain *d;
	struct mem *m, *parent;

	if (ocl.passive)
		return;
	ocl_lock();
	d = ocl_find(c, OCL_CONTEXT);
	parent = ocl_mem_of(desc->mem_object);
	if (d && parent) {
		alias_add(parent, image, 0, parent->size, flags ? flags : parent->flags, false,
			  format, desc);
	} else if (d) {
		m = ocl_object_create(sizeof(*m), OCL_MEM, image, d);
		if (m) {
			m->root = m;
			m->type = desc->image_type;
			m->format = *format;
			m->desc = *desc;
			m->flags = flags;
			m->properties = ocl_properties_copy((const intptr_t *)properties);
			m->host_ptr = flags & CL_MEM_USE_HOST_PTR ? host : NULL;
			m->read_only = flags & CL_MEM_READ_ONLY;
			m->modified = OCL_FRESH;
			image_region(m);
			ocl_mem_layout(m);
			log_init(m, host);
		}
	}
	ocl_unlock();
}

/* The description with the runtime's own handle of its parent. */
static const cl_image_desc *real_desc(const cl_image_desc *desc, cl_image_desc *copy)
{
	if (!desc || !desc->mem_object || !ocl.moves)
		return desc;
	*copy = *desc;
	copy->mem_object = ocl_real(desc->mem_object, OCL_MEM);
	return copy;
}

/* Without one it would be another image. */
static bool parent_is_gone(const cl_image_desc *desc, cl_int *status)
{
	if (!desc || ocl_checked(desc->mem_object, OCL_MEM) == desc->mem_object)
		return false;
	if (status)
		*status = CL_INVALID_IMAGE_DESCRIPTOR;
	return true;
}

cl_mem CL_API_CALL layer_clCreateImage(cl_context c, cl_mem_flags flags,
				       const cl_image_format *format, const cl_image_desc *desc,
				       void *host, cl_int *status)
{
	MADE_LOCKED;
	cl_image_desc copy;
	cl_mem image = NULL;
	int tries = 0;
	cl_int code = CL_SUCCESS;

	if (parent_is_gone(desc, status))
		return NULL;
	do {
		image = NEXT->clCreateImage(ocl_real(c, OCL_CONTEXT), flags, format,
					    real_desc(desc, &copy), host, &code);
	} while (!image && tries++ == 0 && made_room(c, code));
	if (status)
		*status = code;
	if (image)
		image_add(c, image, NULL, flags, format, desc, host);
	return image;
}

cl_mem CL_API_CALL layer_clCreateImageWithProperties(
    cl_context c, const cl_mem_properties *properties, cl_mem_flags flags,
    const cl_image_format *format, const cl_image_desc *desc, void *host, cl_int *status)
{
	MADE_LOCKED;
	cl_image_desc copy;
	cl_mem image = NULL;
	int tries = 0;
	cl_int code = CL_SUCCESS;

	if (parent_is_gone(desc, status))
		return NULL;
	do {
		image =
		    NEXT->clCreateImageWithProperties(ocl_real(c, OCL_CONTEXT), properties, flags,
						      format, real_desc(desc, &copy), host, &code);
	} while (!image && tries++ == 0 && made_room(c, code));
	if (status)
		*status = code;
	if (image)
		image_add(c, image, properties, flags, format, desc, host);
	return image;
}

cl_mem CL_API_CALL layer_clCreateImage2D(cl_context c, cl_mem_flags flags,
					 const cl_image_format *format, size_t width, size_t height,
					 size_t row_pitch, void *host, cl_int *status)
{
	MADE_LOCKED;
	cl_image_desc desc = {.image_type = CL_MEM_OBJECT_IMAGE2D,
			      .image_width = width,
			      .image_height = height,
			      .image_row_pitch = row_pitch};
	cl_mem image = NULL;
	int tries = 0;
	cl_int code = CL_SUCCESS;

	do {
		image = NEXT->clCreateImage2D(ocl_real(c, OCL_CONTEXT), flags, format, width,
					      height, row_pitch, host, &code);
	} while (!image && tries++ == 0 && made_room(c, code));
	if (status)
		*status = code;
	if (image)
		image_add(c, image, NULL, flags, format, &desc, host);
	return image;
}

cl_mem CL_API_CALL layer_clCreateImage3D(cl_context c, cl_mem_flags flags,
					 const cl_image_format *format, size_t width, size_t height,
					 size_t depth, size_t row_pitch, size_t slice_pitch,
					 void *host, cl_int *status)
{
	MADE_LOCKED;
	cl_image_desc desc = {.image_type = CL_MEM_OBJECT_IMAGE3D,
			      .image_width = width,
			      .image_height = height,
			      .image_depth = depth,
			      .image_row_pitch = row_pitch,
			      .image_slice_pitch = slice_pitch};
	cl_mem image = NULL;
	int tries = 0;
	cl_int code = CL_SUCCESS;

	do {
		image = NEXT->clCreateImage3D(ocl_real(c, OCL_CONTEXT), flags, format, width,
					      height, depth, row_pitch, slice_pitch, host, &code);
	} while (!image && tries++ == 0 && made_room(c, code));
	if (status)
		*status = code;
	if (image)
		image_add(c, image, NULL, flags, format, &desc, host);
	return image;
}

cl_int CL_API_CALL layer_clRetainMemObject(cl_mem m)
{
	return ocl_retained(m, OCL_MEM, NEXT->clRetainMemObject(ocl_checked(m, OCL_MEM)));
}

cl_int CL_API_CALL layer_clReleaseMemObject(cl_mem m)
{
	return ocl_release(m, OCL_MEM);
}

/* ---- what programs tell us (VOCL-FT 5.2) ---- */

static cl_int CL_API_CALL set_mem_flags(cl_mem handle, cl_bitfield flags)
{
	struct mem *m;
	cl_int status = CL_SUCCESS;

	if (flags & ~(cl_bitfield)(HALE_MEM_READ_ONLY | HALE_MEM_SCRATCH))
		return CL_INVALID_VALUE;
	ocl_lock();
	m = ocl_mem_of(handle);
	if (!m) {
		status = CL_INVALID_MEM_OBJECT;
	} else {
		m = m->root;
		if (m->scratch && !(flags & HALE_MEM_SCRATCH)) {
			m->modified |= OCL_BY_DEVICE;
			m->saved = false;
			/* what it holds may come from commands that are no longer known */
			OBJ(m)->domain->unprotected |= OBJ(m)->domain->dropped;
		}
		m->told_read_only = flags & HALE_MEM_READ_ONLY;
		m->scratch = flags & HALE_MEM_SCRATCH;
	}
	ocl_unlock();
	return status;
}

static void *own_function(const char *name, void *real)
{
	void *own;

	if (!name || ocl.passive)
		return NULL;
	if (strcmp(name, "haleSetMemFlags") == 0)
		return (void *)(uintptr_t)set_mem_flags;
	own = ocl_recorded_function(name, real);
	if (own)
		return own;
	/* commands that come this way can't be seen */
	if (strncmp(name, "clEnqueue", 9) == 0)
		log_warn("opencl: the program asked for %s; what it does that way is not replayed "
			 "after an error",
			 name);
	return NULL;
}

void *CL_API_CALL layer_clGetExtensionFunctionAddress(const char *name)
{
	void *real = NEXT->clGetExtensionFunctionAddress(name);
	void *own = own_function(name, real);

	return own ? own : real;
}

void *CL_API_CALL layer_clGetExtensionFunctionAddressForPlatform(cl_platform_id platform,
								 const char *name)
{
	void *real = NEXT->clGetExtensionFunctionAddressForPlatform(platform, name);
	void *own = own_function(name, real);

	return own ? own : real;
}
