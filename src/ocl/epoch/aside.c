/* SPDX-License-Identifier: BSD-3-Clause */
/* Content of objects that the host may not read or write, by their flags (CL_MEM_HOST_NO_ACCESS,
 * CL_MEM_HOST_READ_ONLY, CL_MEM_HOST_WRITE_ONLY): by way of another object beside them, since
 * copies on the device are allowed. */
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "ocl/epoch/epoch.h"
#include "ocl/ocl.h"

bool ocl_aside_needed(const struct mem *m, bool in)
{
	cl_mem_flags barred = in ? CL_MEM_HOST_NO_ACCESS | CL_MEM_HOST_READ_ONLY
				 : CL_MEM_HOST_NO_ACCESS | CL_MEM_HOST_WRITE_ONLY;

	return OBJ(m)->kind == OCL_MEM && m->flags & barred;
}

/* Room for a chunk; for an image, which is one chunk, an image like it. */
static cl_mem make_beside(const struct mem *m)
{
	cl_context c = OBJ(OBJ(m)->domain)->real;
	cl_image_desc desc = m->desc;

	if (m->type == CL_MEM_OBJECT_BUFFER)
		return NEXT->clCreateBuffer(c, CL_MEM_READ_WRITE, m->chunk_size, NULL, NULL);
	desc.image_row_pitch = desc.image_slice_pitch = 0;
	return NEXT->clCreateImage(c, CL_MEM_READ_WRITE, &m->format, &desc, NULL, NULL);
}

static bool copy_chunk(const struct mem *m, cl_mem beside, cl_command_queue q, size_t at, size_t n,
		       bool in)
{
	static const size_t zero[3];
	cl_mem from = in ? beside : OBJ(m)->real, to = in ? OBJ(m)->real : beside;

	if (m->type != CL_MEM_OBJECT_BUFFER)
		return NEXT->clEnqueueCopyImage(q, from, to, zero, zero, m->region, 0, NULL,
						NULL) == CL_SUCCESS;
	return NEXT->clEnqueueCopyBuffer(q, from, to, in ? 0 : at, in ? at : 0, n, 0, NULL, NULL) ==
	       CL_SUCCESS;
}

static bool transfer_chunk(const struct mem *m, cl_mem beside, cl_command_queue q, void *data,
			   size_t n, bool in)
{
	static const size_t zero[3];

	if (m->type != CL_MEM_OBJECT_BUFFER && in)
		return NEXT->clEnqueueWriteImage(q, beside, CL_TRUE, zero, m->region, 0, 0, data, 0,
						 NULL, NULL) == CL_SUCCESS;
	if (m->type != CL_MEM_OBJECT_BUFFER)
		return NEXT->clEnqueueReadImage(q, beside, CL_TRUE, zero, m->region, 0, 0, data, 0,
						NULL, NULL) == CL_SUCCESS;
	if (in)
		return NEXT->clEnqueueWriteBuffer(q, beside, CL_TRUE, 0, n, data, 0, NULL, NULL) ==
		       CL_SUCCESS;
	return NEXT->clEnqueueReadBuffer(q, beside, CL_TRUE, 0, n, data, 0, NULL, NULL) ==
	       CL_SUCCESS;
}

bool ocl_aside_copy(struct mem *m, const bool *want, cl_command_queue q, bool in,
		    ocl_chunk_fn visit, void *arg)
{
	cl_mem beside = make_beside(m);
	char *data = calloc(1, m->chunk_size + 1);
	bool good = beside && data;

	for (size_t i = 0; good && i < m->chunk_count; i++) {
		size_t at = i * m->chunk_size;
		size_t n = m->size - at < m->chunk_size ? m->size - at : m->chunk_size;

		if (want && !want[i])
			continue;
		good = in ? visit(arg, m, i, data, n) &&
				transfer_chunk(m, beside, q, data, n, true) &&
				copy_chunk(m, beside, q, at, n, true)
			  : copy_chunk(m, beside, q, at, n, false) &&
				transfer_chunk(m, beside, q, data, n, false) &&
				visit(arg, m, i, data, n);
	}
	if (beside && in) /* it is read until then */
		good = NEXT->clFinish(q) == CL_SUCCESS && good;
	if (beside)
		NEXT->clReleaseMemObject(beside);
	free(data);
	return good;
}

/* ---- mappings for writing alone: what is in them when they are made ---- */

/* What an object is a part of may say it for all of its parts. */
bool ocl_aside_reads(const struct ocl_entry *e)
{
	return (e->op == OP_READ || e->op == OP_READ_IMAGE) && e->src &&
	       (ocl_aside_needed(e->src, false) || ocl_aside_needed(e->src->root, false));
}

static cl_mem make_part_beside(const struct ocl_entry *e)
{
	cl_context c = OBJ(OBJ(e->src)->domain)->real;
	cl_image_desc desc = e->src->desc;

	if (e->op == OP_READ)
		return NEXT->clCreateBuffer(c, CL_MEM_READ_WRITE, e->region[0], NULL, NULL);
	desc.image_row_pitch = desc.image_slice_pitch = 0;
	desc.mem_object = NULL;
	if (desc.image_type == CL_MEM_OBJECT_IMAGE1D_BUFFER)
		desc.image_type = CL_MEM_OBJECT_IMAGE1D;
	return NEXT->clCreateImage(c, CL_MEM_READ_WRITE, &e->src->format, &desc, NULL, NULL);
}

static cl_int copy_part(const struct ocl_entry *e, cl_mem beside, cl_command_queue q, cl_uint n,
			const cl_event *w, cl_event *event)
{
	cl_mem from = OBJ(e->src)->real;

	if (e->op == OP_READ)
		return NEXT->clEnqueueCopyBuffer(q, from, beside, e->a[0], 0, e->region[0], n, w,
						 event);
	return NEXT->clEnqueueCopyImage(q, from, beside, e->a, e->a, e->region, n, w, event);
}

cl_int ocl_aside_read(const struct ocl_entry *e, cl_command_queue q, void *host, cl_uint n,
		      const cl_event *w, cl_event *event)
{
	cl_mem beside = make_part_beside(e);
	cl_event copied = NULL;
	cl_int status = CL_OUT_OF_RESOURCES;

	if (beside)
		status = copy_part(e, beside, q, n, w, &copied);
	if (status == CL_SUCCESS && e->op == OP_READ)
		status = NEXT->clEnqueueReadBuffer(q, beside, CL_FALSE, 0, e->region[0], host, 1,
						   &copied, event);
	else if (status == CL_SUCCESS)
		status = NEXT->clEnqueueReadImage(q, beside, CL_FALSE, e->a, e->region, e->pitch[0],
						  e->pitch[1], host, 1, &copied, event);
	if (copied)
		NEXT->clReleaseEvent(copied);
	if (beside) /* commands that are enqueued keep it */
		NEXT->clReleaseMemObject(beside);
	return status;
}

/* ---- what an object was made with ---- */

struct aside_given {
	const char *data;
	size_t row, slice; /* bytes from one to the next; images only */
};

static bool give_chunk(void *arg, struct mem *m, size_t i, void *data, size_t size)
{
	const struct aside_given *g = arg;
	size_t row = m->region[0] * m->element;
	char *to = data;

	if (m->type == CL_MEM_OBJECT_BUFFER) {
		memcpy(data, g->data + i * m->chunk_size, size);
		return true;
	}
	for (size_t z = 0; z < m->region[2]; z++)
		for (size_t y = 0; y < m->region[1]; y++, to += row)
			memcpy(to, g->data + z * g->slice + y * g->row, row);
	return true;
}

bool ocl_aside_init(struct mem *m, const struct ocl_entry *init, cl_command_queue q,
		    const void *data)
{
	struct aside_given g = {.data = data, .row = init->pitch[0], .slice = init->pitch[1]};

	if (!g.row)
		g.row = m->region[0] * m->element;
	if (!g.slice)
		g.slice = g.row * m->region[1];
	return ocl_aside_copy(m, NULL, q, true, give_chunk, &g);
}
