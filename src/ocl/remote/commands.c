/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands between memory objects, and those that only order others. */
#include <string.h>
#include "base/base.h"
#include "ocl/remote/remote.h"

#define WAITS cl_uint count, const cl_event *list, cl_event *event

/* Queue and objects; false: *status says which is wrong. */
static bool begin(struct call *c, cl_command_queue queue, cl_mem a, cl_mem b, struct stub **q,
		  cl_int *status)
{
	*q = stub_of(queue, STUB_QUEUE);
	if (!*q) {
		*status = CL_INVALID_COMMAND_QUEUE;
		return false;
	}
	if (!stub_of(a, STUB_MEM) || !stub_of(b, STUB_MEM)) {
		*status = CL_INVALID_MEM_OBJECT;
		return false;
	}
	put(c, (*q)->id);
	put_handle(c, a, STUB_MEM);
	put_handle(c, b, STUB_MEM);
	return true;
}

static bool put_three(struct call *c, const size_t *v)
{
	for (int i = 0; i < 3; i++)
		put(c, v ? v[i] : 0);
	return v != NULL;
}

/* ---- what each says of itself; also for command buffers ---- */

cl_int put_copy(struct call *c, cl_command_queue queue, cl_mem src, cl_mem dst, size_t from,
		size_t to, size_t size, struct stub **q)
{
	cl_int status;

	if (!begin(c, queue, src, dst, q, &status))
		return status;
	put(c, from);
	put(c, to);
	put(c, size);
	return CL_SUCCESS;
}

cl_int put_copy_rect(struct call *c, cl_command_queue queue, cl_mem src, cl_mem dst,
		     const size_t *from, const size_t *to, const size_t *region,
		     const size_t pitch[4], struct stub **q)
{
	cl_int status;

	if (!begin(c, queue, src, dst, q, &status))
		return status;
	if (!put_three(c, from) || !put_three(c, to) || !put_three(c, region))
		return CL_INVALID_VALUE;
	for (int i = 0; i < 4; i++)
		put(c, pitch[i]);
	return CL_SUCCESS;
}

cl_int put_fill(struct call *c, cl_command_queue queue, cl_mem mem, const void *pattern,
		size_t bytes, size_t offset, size_t size, struct stub **q)
{
	cl_int status;

	if (!begin(c, queue, mem, mem, q, &status))
		return status;
	if (!pattern || bytes > 128)
		return CL_INVALID_VALUE;
	put(c, offset);
	put(c, size);
	put_blob(c, pattern, bytes);
	return CL_SUCCESS;
}

cl_int put_copy_image(struct call *c, cl_command_queue queue, cl_mem src, cl_mem dst,
		      const size_t *from, const size_t *to, const size_t *region, struct stub **q)
{
	cl_int status;

	if (!begin(c, queue, src, dst, q, &status))
		return status;
	return put_three(c, from) && put_three(c, to) && put_three(c, region) ? CL_SUCCESS
									      : CL_INVALID_VALUE;
}

cl_int put_image_and_buffer(struct call *c, cl_command_queue queue, cl_mem src, cl_mem dst,
			    const size_t *origin, const size_t *region, size_t offset,
			    struct stub **q)
{
	cl_int status;

	if (!begin(c, queue, src, dst, q, &status))
		return status;
	if (!put_three(c, origin) || !put_three(c, region))
		return CL_INVALID_VALUE;
	put(c, offset);
	return CL_SUCCESS;
}

cl_int put_fill_image(struct call *c, cl_command_queue queue, cl_mem mem, const void *colour,
		      const size_t *origin, const size_t *region, struct stub **q)
{
	cl_int status;

	if (!begin(c, queue, mem, mem, q, &status))
		return status;
	if (!colour || !put_three(c, origin) || !put_three(c, region))
		return CL_INVALID_VALUE;
	put_blob(c, colour, 16);
	return CL_SUCCESS;
}

/* ---- the calls ---- */

static cl_int CL_API_CALL copy(cl_command_queue queue, cl_mem src, cl_mem dst, size_t from,
			       size_t to, size_t size, WAITS)
{
	struct call c = {0};
	struct stub *q, *a, *b;
	cl_int status = put_copy(&c, queue, src, dst, from, to, size, &q);
	bool quick;

	if (status != CL_SUCCESS)
		return status;
	a = (struct stub *)src;
	b = (struct stub *)dst;
	quick = a != b && !a->parent && !b->parent && a->mem.type == CL_MEM_OBJECT_BUFFER &&
		b->mem.type == CL_MEM_OBJECT_BUFFER && size > 0 && size <= a->mem.size &&
		from <= a->mem.size - size && size <= b->mem.size && to <= b->mem.size - size &&
		a->context == q->context && b->context == q->context;
	return remote_enqueue(&c, OP_COPY, q, CL_COMMAND_COPY_BUFFER, quick, count, list, event);
}

static cl_int CL_API_CALL copy_rect(cl_command_queue queue, cl_mem src, cl_mem dst,
				    const size_t *from, const size_t *to, const size_t *region,
				    size_t src_row, size_t src_slice, size_t dst_row,
				    size_t dst_slice, WAITS)
{
	size_t pitch[4] = {src_row, src_slice, dst_row, dst_slice};
	struct call c = {0};
	struct stub *q;
	cl_int status = put_copy_rect(&c, queue, src, dst, from, to, region, pitch, &q);

	if (status != CL_SUCCESS)
		return status;
	return remote_enqueue(&c, OP_COPY_RECT, q, CL_COMMAND_COPY_BUFFER_RECT, false, count, list,
			      event);
}

static cl_int CL_API_CALL fill(cl_command_queue queue, cl_mem mem, const void *pattern,
			       size_t bytes, size_t offset, size_t size, WAITS)
{
	struct call c = {0};
	struct stub *q;
	cl_int status = put_fill(&c, queue, mem, pattern, bytes, offset, size, &q);

	if (status != CL_SUCCESS)
		return status;
	return remote_enqueue(&c, OP_FILL, q, CL_COMMAND_FILL_BUFFER, false, count, list, event);
}

static cl_int CL_API_CALL copy_image(cl_command_queue queue, cl_mem src, cl_mem dst,
				     const size_t *from, const size_t *to, const size_t *region,
				     WAITS)
{
	struct call c = {0};
	struct stub *q;
	cl_int status = put_copy_image(&c, queue, src, dst, from, to, region, &q);

	if (status != CL_SUCCESS)
		return status;
	return remote_enqueue(&c, OP_COPY_IMAGE, q, CL_COMMAND_COPY_IMAGE, false, count, list,
			      event);
}

static cl_int CL_API_CALL image_to_buffer(cl_command_queue queue, cl_mem src, cl_mem dst,
					  const size_t *from, const size_t *region, size_t to,
					  WAITS)
{
	struct call c = {0};
	struct stub *q;
	cl_int status = put_image_and_buffer(&c, queue, src, dst, from, region, to, &q);

	if (status != CL_SUCCESS)
		return status;
	return remote_enqueue(&c, OP_IMAGE_TO_BUFFER, q, CL_COMMAND_COPY_IMAGE_TO_BUFFER, false,
			      count, list, event);
}

static cl_int CL_API_CALL buffer_to_image(cl_command_queue queue, cl_mem src, cl_mem dst,
					  size_t from, const size_t *to, const size_t *region,
					  WAITS)
{
	struct call c = {0};
	struct stub *q;
	cl_int status = put_image_and_buffer(&c, queue, src, dst, to, region, from, &q);

	if (status != CL_SUCCESS)
		return status;
	return remote_enqueue(&c, OP_BUFFER_TO_IMAGE, q, CL_COMMAND_COPY_BUFFER_TO_IMAGE, false,
			      count, list, event);
}

static cl_int CL_API_CALL fill_image(cl_command_queue queue, cl_mem mem, const void *colour,
				     const size_t *origin, const size_t *region, WAITS)
{
	struct call c = {0};
	struct stub *q;
	cl_int status = put_fill_image(&c, queue, mem, colour, origin, region, &q);

	if (status != CL_SUCCESS)
		return status;
	return remote_enqueue(&c, OP_FILL_IMAGE, q, CL_COMMAND_FILL_IMAGE, false, count, list,
			      event);
}

/* ---- order ---- */

cl_int remote_order(struct stub *q, uint64_t kind, cl_command_type type, WAITS)
{
	struct call c = {0};

	put(&c, q->id);
	put(&c, kind);
	return remote_enqueue(&c, OP_MARKER, q, type, true, count, list, event);
}

static cl_int order(cl_command_queue queue, uint64_t kind, WAITS)
{
	struct stub *q = stub_of(queue, STUB_QUEUE);

	if (!q)
		return CL_INVALID_COMMAND_QUEUE;
	return remote_order(q, kind, kind ? CL_COMMAND_BARRIER : CL_COMMAND_MARKER, count, list,
			    event);
}

static cl_int CL_API_CALL marker(cl_command_queue queue, WAITS)
{
	return order(queue, ORDER_MARKER, count, list, event);
}

static cl_int CL_API_CALL barrier(cl_command_queue queue, WAITS)
{
	return order(queue, ORDER_BARRIER, count, list, event);
}

static cl_int CL_API_CALL old_marker(cl_command_queue queue, cl_event *event)
{
	return event ? order(queue, ORDER_MARKER, 0, NULL, event) : CL_INVALID_VALUE;
}

static cl_int CL_API_CALL old_barrier(cl_command_queue queue)
{
	return order(queue, ORDER_BARRIER, 0, NULL, NULL);
}

static cl_int CL_API_CALL old_wait(cl_command_queue queue, cl_uint count, const cl_event *list)
{
	if (count == 0 || !list)
		return CL_INVALID_VALUE;
	return order(queue, ORDER_BARRIER, count, list, NULL);
}

static cl_int CL_API_CALL migrate(cl_command_queue queue, cl_uint objects, const cl_mem *mems,
				  cl_mem_migration_flags flags, WAITS)
{
	struct stub *q = stub_of(queue, STUB_QUEUE);
	struct call c = {0};

	if (!q)
		return CL_INVALID_COMMAND_QUEUE;
	put(&c, q->id);
	put(&c, flags);
	put_handles(&c, objects, mems, STUB_MEM);
	return remote_enqueue(&c, OP_MIGRATE, q, CL_COMMAND_MIGRATE_MEM_OBJECTS, false, count, list,
			      event);
}

void commands_fill(cl_icd_dispatch *d)
{
	d->clEnqueueCopyBuffer = copy;
	d->clEnqueueCopyBufferRect = copy_rect;
	d->clEnqueueFillBuffer = fill;
	d->clEnqueueCopyImage = copy_image;
	d->clEnqueueCopyImageToBuffer = image_to_buffer;
	d->clEnqueueCopyBufferToImage = buffer_to_image;
	d->clEnqueueFillImage = fill_image;
	d->clEnqueueMarkerWithWaitList = marker;
	d->clEnqueueBarrierWithWaitList = barrier;
	d->clEnqueueMarker = old_marker;
	d->clEnqueueBarrier = old_barrier;
	d->clEnqueueWaitForEvents = old_wait;
	d->clEnqueueMigrateMemObjects = migrate;
}
