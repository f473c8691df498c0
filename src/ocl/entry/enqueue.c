/* SPDX-License-Identifier: BSD-3-Clause */
/* Transfers, copies, fills and launches: each call's parameters as a log entry. What is wrong with
 * them the runtime says. */
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "ocl/calls.h"
#include "ocl/entry/entry.h"
#include "ocl/log/log.h"

#define WAITS cl_uint waits, const cl_event *wait, cl_event *event

static void triple(size_t to[3], const size_t *from)
{
	if (from)
		memcpy(to, from, 3 * sizeof(*to));
}

/* ---- buffers ---- */

cl_int CL_API_CALL layer_clEnqueueReadBuffer(cl_command_queue q, cl_mem m, cl_bool blocking,
					     size_t offset, size_t size, void *host, WAITS)
{
	struct ocl_entry *e = ocl_entry_between(OP_READ, m, NULL);

	if (e) {
		e->a[0] = offset;
		e->region[0] = e->host_span = size;
		e->host = host;
	}
	return ocl_submit(e, q, blocking, waits, wait, event, NULL);
}

cl_int CL_API_CALL layer_clEnqueueWriteBuffer(cl_command_queue q, cl_mem m, cl_bool blocking,
					      size_t offset, size_t size, const void *host, WAITS)
{
	struct ocl_entry *e = ocl_entry_between(OP_WRITE, NULL, m);

	if (e) {
		e->a[0] = offset;
		e->region[0] = e->host_span = size;
		e->host = (void *)host;
	}
	return ocl_submit(e, q, blocking, waits, wait, event, NULL);
}

static struct ocl_entry *rect(ocl_op_t op, cl_mem src, cl_mem dst, const size_t *a, const size_t *b,
			      const size_t *region, const size_t pitch[4], const void *host)
{
	struct ocl_entry *e = ocl_entry_between(op, src, dst);

	if (!e)
		return NULL;
	triple(e->a, a);
	triple(e->b, b);
	triple(e->region, region);
	memcpy(e->pitch, pitch, sizeof(e->pitch));
	e->host = (void *)host;
	if (host && b && region && region[0] && region[1] && region[2])
		e->host_span = ocl_rect_span(b, region, pitch[2], pitch[3]);
	return e;
}

/* Null origins and regions are the runtime's to refuse. */
#define RECT_COMPLETE(a, b, region) ((a) && (b) && (region))

cl_int CL_API_CALL layer_clEnqueueReadBufferRect(cl_command_queue q, cl_mem m, cl_bool blocking,
						 const size_t *origin, const size_t *host_origin,
						 const size_t *region, size_t row, size_t slice,
						 size_t host_row, size_t host_slice, void *host,
						 WAITS)
{
	size_t pitch[4] = {row, slice, host_row, host_slice};

	if (!RECT_COMPLETE(origin, host_origin, region))
		return NEXT->clEnqueueReadBufferRect(
		    ocl_real(q, OCL_QUEUE), ocl_real(m, OCL_MEM), blocking, origin, host_origin,
		    region, row, slice, host_row, host_slice, host, waits, wait, event);
	return ocl_submit(rect(OP_READ_RECT, m, NULL, origin, host_origin, region, pitch, host), q,
			  blocking, waits, wait, event, NULL);
}

cl_int CL_API_CALL layer_clEnqueueWriteBufferRect(cl_command_queue q, cl_mem m, cl_bool blocking,
						  const size_t *origin, const size_t *host_origin,
						  const size_t *region, size_t row, size_t slice,
						  size_t host_row, size_t host_slice,
						  const void *host, WAITS)
{
	size_t pitch[4] = {row, slice, host_row, host_slice};

	if (!RECT_COMPLETE(origin, host_origin, region))
		return NEXT->clEnqueueWriteBufferRect(
		    ocl_real(q, OCL_QUEUE), ocl_real(m, OCL_MEM), blocking, origin, host_origin,
		    region, row, slice, host_row, host_slice, host, waits, wait, event);
	return ocl_submit(rect(OP_WRITE_RECT, NULL, m, origin, host_origin, region, pitch, host), q,
			  blocking, waits, wait, event, NULL);
}

cl_int CL_API_CALL layer_clEnqueueCopyBuffer(cl_command_queue q, cl_mem src, cl_mem dst,
					     size_t src_offset, size_t dst_offset, size_t size,
					     WAITS)
{
	struct ocl_entry *e = ocl_entry_between(OP_COPY, src, dst);

	if (e) {
		e->a[0] = src_offset;
		e->b[0] = dst_offset;
		e->region[0] = size;
	}
	return ocl_submit(e, q, false, waits, wait, event, NULL);
}

cl_int CL_API_CALL layer_clEnqueueCopyBufferRect(cl_command_queue q, cl_mem src, cl_mem dst,
						 const size_t *src_origin, const size_t *dst_origin,
						 const size_t *region, size_t src_row,
						 size_t src_slice, size_t dst_row, size_t dst_slice,
						 WAITS)
{
	size_t pitch[4] = {src_row, src_slice, dst_row, dst_slice};

	if (!RECT_COMPLETE(src_origin, dst_origin, region))
		return NEXT->clEnqueueCopyBufferRect(ocl_real(q, OCL_QUEUE), ocl_real(src, OCL_MEM),
						     ocl_real(dst, OCL_MEM), src_origin, dst_origin,
						     region, src_row, src_slice, dst_row, dst_slice,
						     waits, wait, event);
	return ocl_submit(rect(OP_COPY_RECT, src, dst, src_origin, dst_origin, region, pitch, NULL),
			  q, false, waits, wait, event, NULL);
}

cl_int CL_API_CALL layer_clEnqueueFillBuffer(cl_command_queue q, cl_mem m, const void *pattern,
					     size_t pattern_size, size_t offset, size_t size, WAITS)
{
	struct ocl_entry *e;

	if (!pattern || pattern_size > 128) /* no pattern is longer: the runtime will say so */
		return NEXT->clEnqueueFillBuffer(ocl_real(q, OCL_QUEUE), ocl_real(m, OCL_MEM),
						 pattern, pattern_size, offset, size, waits, wait,
						 event);
	e = ocl_entry_carry(ocl_entry_between(OP_FILL, NULL, m), pattern, pattern_size);
	if (e) {
		e->a[0] = offset;
		e->b[0] = pattern_size;
		e->region[0] = size;
	}
	return ocl_submit(e, q, false, waits, wait, event, NULL);
}

/* ---- images ---- */

static struct ocl_entry *image(ocl_op_t op, cl_mem src, cl_mem dst, const size_t *origin,
			       const size_t *region, size_t row, size_t slice, const void *host)
{
	struct ocl_entry *e = ocl_entry_between(op, src, dst);
	size_t element = 0, zero[3] = {0};

	if (!e)
		return NULL;
	triple(e->a, origin);
	triple(e->region, region);
	e->pitch[0] = row;
	e->pitch[1] = slice;
	e->host = (void *)host;
	if (NEXT->clGetImageInfo(src ? src : dst, CL_IMAGE_ELEMENT_SIZE, sizeof(element), &element,
				 NULL) == CL_SUCCESS &&
	    host && region[0] && region[1] && region[2]) {
		size_t box[3] = {region[0] * element, region[1], region[2]};
		e->host_span = ocl_rect_span(zero, box, row, slice);
	}
	return e;
}

/* The element size is asked of the image, so it must be one. */
static bool is_image(cl_mem m)
{
	struct mem *o;
	bool yes;

	ocl_lock();
	o = ocl_mem_of(m);
	yes = o && o->type != CL_MEM_OBJECT_BUFFER;
	ocl_unlock();
	return yes;
}

cl_int CL_API_CALL layer_clEnqueueReadImage(cl_command_queue q, cl_mem m, cl_bool blocking,
					    const size_t *origin, const size_t *region, size_t row,
					    size_t slice, void *host, WAITS)
{
	if (!origin || !region || !is_image(m))
		return NEXT->clEnqueueReadImage(ocl_real(q, OCL_QUEUE), ocl_real(m, OCL_MEM),
						blocking, origin, region, row, slice, host, waits,
						wait, event);
	return ocl_submit(image(OP_READ_IMAGE, m, NULL, origin, region, row, slice, host), q,
			  blocking, waits, wait, event, NULL);
}

cl_int CL_API_CALL layer_clEnqueueWriteImage(cl_command_queue q, cl_mem m, cl_bool blocking,
					     const size_t *origin, const size_t *region, size_t row,
					     size_t slice, const void *host, WAITS)
{
	if (!origin || !region || !is_image(m))
		return NEXT->clEnqueueWriteImage(ocl_real(q, OCL_QUEUE), ocl_real(m, OCL_MEM),
						 blocking, origin, region, row, slice, host, waits,
						 wait, event);
	return ocl_submit(image(OP_WRITE_IMAGE, NULL, m, origin, region, row, slice, host), q,
			  blocking, waits, wait, event, NULL);
}

cl_int CL_API_CALL layer_clEnqueueCopyImage(cl_command_queue q, cl_mem src, cl_mem dst,
					    const size_t *src_origin, const size_t *dst_origin,
					    const size_t *region, WAITS)
{
	struct ocl_entry *e = ocl_entry_between(OP_COPY_IMAGE, src, dst);

	if (!RECT_COMPLETE(src_origin, dst_origin, region)) {
		ocl_entry_discard(e);
		return NEXT->clEnqueueCopyImage(ocl_real(q, OCL_QUEUE), ocl_real(src, OCL_MEM),
						ocl_real(dst, OCL_MEM), src_origin, dst_origin,
						region, waits, wait, event);
	}
	if (e) {
		triple(e->a, src_origin);
		triple(e->b, dst_origin);
		triple(e->region, region);
	}
	return ocl_submit(e, q, false, waits, wait, event, NULL);
}

cl_int CL_API_CALL layer_clEnqueueCopyImageToBuffer(cl_command_queue q, cl_mem src, cl_mem dst,
						    const size_t *origin, const size_t *region,
						    size_t offset, WAITS)
{
	struct ocl_entry *e = ocl_entry_between(OP_COPY_IMAGE_TO_BUFFER, src, dst);

	if (!origin || !region) {
		ocl_entry_discard(e);
		return NEXT->clEnqueueCopyImageToBuffer(
		    ocl_real(q, OCL_QUEUE), ocl_real(src, OCL_MEM), ocl_real(dst, OCL_MEM), origin,
		    region, offset, waits, wait, event);
	}
	if (e) {
		triple(e->a, origin);
		triple(e->region, region);
		e->b[0] = offset;
	}
	return ocl_submit(e, q, false, waits, wait, event, NULL);
}

cl_int CL_API_CALL layer_clEnqueueCopyBufferToImage(cl_command_queue q, cl_mem src, cl_mem dst,
						    size_t offset, const size_t *origin,
						    const size_t *region, WAITS)
{
	struct ocl_entry *e = ocl_entry_between(OP_COPY_BUFFER_TO_IMAGE, src, dst);

	if (!origin || !region) {
		ocl_entry_discard(e);
		return NEXT->clEnqueueCopyBufferToImage(
		    ocl_real(q, OCL_QUEUE), ocl_real(src, OCL_MEM), ocl_real(dst, OCL_MEM), offset,
		    origin, region, waits, wait, event);
	}
	if (e) {
		e->a[0] = offset;
		triple(e->b, origin);
		triple(e->region, region);
	}
	return ocl_submit(e, q, false, waits, wait, event, NULL);
}

cl_int CL_API_CALL layer_clEnqueueFillImage(cl_command_queue q, cl_mem m, const void *color,
					    const size_t *origin, const size_t *region, WAITS)
{
	struct ocl_entry *e;

	if (!color || !origin || !region)
		return NEXT->clEnqueueFillImage(ocl_real(q, OCL_QUEUE), ocl_real(m, OCL_MEM), color,
						origin, region, waits, wait, event);
	e = ocl_entry_carry(ocl_entry_between(OP_FILL_IMAGE, NULL, m), color, 16);
	if (e) {
		triple(e->a, origin);
		triple(e->region, region);
	}
	return ocl_submit(e, q, false, waits, wait, event, NULL);
}

/* ---- kernels ---- */

cl_int CL_API_CALL layer_clEnqueueNDRangeKernel(cl_command_queue q, cl_kernel k, cl_uint dimensions,
						const size_t *offset, const size_t *global,
						const size_t *local, WAITS)
{
	struct ocl_entry *e;

	if (dimensions < 1 || dimensions > 3)
		return NEXT->clEnqueueNDRangeKernel(ocl_real(q, OCL_QUEUE), ocl_real(k, OCL_KERNEL),
						    dimensions, offset, global, local, waits, wait,
						    event);
	e = ocl_entry_between(OP_KERNEL, NULL, NULL);
	if (e) {
		e->kernel_handle = k;
		e->count = dimensions;
		for (cl_uint i = 0; i < dimensions; i++) {
			e->a[i] = offset ? offset[i] : 0;
			e->b[i] = global ? global[i] : 0;
			e->region[i] = local ? local[i] : 0;
		}
		e->has[0] = offset;
		e->has[1] = global;
		e->has[2] = local;
	}
	return ocl_submit(e, q, false, waits, wait, event, NULL);
}

cl_int CL_API_CALL layer_clEnqueueTask(cl_command_queue q, cl_kernel k, WAITS)
{
	struct ocl_entry *e = ocl_entry_between(OP_TASK, NULL, NULL);

	if (e)
		e->kernel_handle = k;
	return ocl_submit(e, q, false, waits, wait, event, NULL);
}

/* ---- native kernels ---- */

static void tell_of_natives(void)
{
	static bool told;

	if (!told)
		log_warn(
		    "opencl: the program enqueues native kernels, which are functions of its own; "
		    "after an error they are run again, with all that they do");
	told = true;
}

/* How many of them are known. A count may be wrong, too: nothing is looked at behind what is
 * wrong. */
static cl_uint known_mems(cl_uint count, const cl_mem *objects)
{
	cl_uint n = 0;

	ocl_lock();
	while (n < count && ocl_mem_of(objects[n]))
		n++;
	ocl_unlock();
	return n;
}

/* Its memory objects, held; false: one is not known. */
static bool native_uses(struct ocl_entry *e, cl_uint count, const cl_mem *objects)
{
	e->used = calloc(count + 1ul, sizeof(*e->used));
	while (e->used && e->used_count < count) {
		struct mem *m = ocl_mem_of(objects[e->used_count]);

		if (!m)
			return false;
		ocl_hold(OBJ(m));
		e->used[e->used_count++] = OBJ(m);
	}
	return e->used != NULL;
}

/* The arguments, and at which of their bytes the runtime puts what stands for memory objects. NULL:
 * something is wrong with them. */
static struct ocl_entry *native_entry(void(CL_CALLBACK *function)(void *), const void *args,
				      size_t size, cl_uint count, const cl_mem *objects,
				      const void **places)
{
	struct ocl_entry *e = ocl_entry_new(OP_NATIVE);
	size_t at = ALIGN_UP(size, sizeof(size_t));
	bool good = e && native_uses(e, count, objects);

	if (good && (e->data.memory = calloc(1, at + count * sizeof(size_t) + 1))) {
		size_t *offset = (size_t *)((char *)e->data.memory + at);

		e->native = function;
		e->region[0] = size;
		if (size > 0)
			memcpy(e->data.memory, args, size);
		for (cl_uint i = 0; good && i < count; i++) {
			offset[i] = (size_t)places[i] - (size_t)args;
			good = offset[i] < size && size - offset[i] >= sizeof(cl_mem);
		}
		if (good)
			return e;
	}
	if (e)
		ocl_entry_free(NULL, e);
	return NULL;
}

cl_int CL_API_CALL layer_clEnqueueNativeKernel(cl_command_queue q,
					       void(CL_CALLBACK *function)(void *), void *args,
					       size_t args_size, cl_uint count,
					       const cl_mem *objects, const void **places, WAITS)
{
	bool whole = function && (args || args_size == 0) && (objects != NULL) == (count > 0) &&
		     (places != NULL) == (count > 0);
	struct ocl_entry *e = NULL;
	cl_mem none = NULL;
	cl_uint known;

	known = objects && !ocl.passive ? known_mems(count, objects) : 0;
	if (objects && known < count && ocl_checked(objects[known], OCL_MEM) != objects[known]) {
		objects = &none;
		count = 1;
		whole = false;
	}
	ocl_lock();
	if (whole && (!args || args_size > 0) && !ocl.passive && ocl_find(q, OCL_QUEUE))
		e = native_entry(function, args, args_size, count, objects, places);
	ocl_unlock();
	if (!e) /* wrong, which the runtime will say */
		return NEXT->clEnqueueNativeKernel(ocl_real(q, OCL_QUEUE), function, args,
						   args_size, count, objects, places, waits, wait,
						   event);
	tell_of_natives();
	return ocl_submit(e, q, false, waits, wait, event, NULL);
}

/* ---- order ---- */

/* What is wrong with others the function that was called says. */
static bool is_queue(cl_command_queue q)
{
	bool yes;

	ocl_lock();
	yes = ocl_find(q, OCL_QUEUE) != NULL;
	ocl_unlock();
	return yes;
}

cl_int CL_API_CALL layer_clEnqueueMarkerWithWaitList(cl_command_queue q, WAITS)
{
	return ocl_submit(ocl_entry_between(OP_MARKER, NULL, NULL), q, false, waits, wait, event,
			  NULL);
}

cl_int CL_API_CALL layer_clEnqueueBarrierWithWaitList(cl_command_queue q, WAITS)
{
	return ocl_submit(ocl_entry_between(OP_BARRIER, NULL, NULL), q, false, waits, wait, event,
			  NULL);
}

cl_int CL_API_CALL layer_clEnqueueMarker(cl_command_queue q, cl_event *event)
{
	if (!event || ocl.passive || !is_queue(q))
		return NEXT->clEnqueueMarker(ocl_real(q, OCL_QUEUE), event);
	return ocl_submit(ocl_entry_between(OP_MARKER, NULL, NULL), q, false, 0, NULL, event, NULL);
}

cl_int CL_API_CALL layer_clEnqueueBarrier(cl_command_queue q)
{
	if (!is_queue(q))
		return NEXT->clEnqueueBarrier(ocl_real(q, OCL_QUEUE));
	return ocl_submit(ocl_entry_between(OP_BARRIER, NULL, NULL), q, false, 0, NULL, NULL, NULL);
}

cl_int CL_API_CALL layer_clEnqueueWaitForEvents(cl_command_queue q, cl_uint count,
						const cl_event *list)
{
	if (count == 0 || !list || ocl.passive || !is_queue(q))
		return NEXT->clEnqueueWaitForEvents(ocl_real(q, OCL_QUEUE), count, list);
	return ocl_submit(ocl_entry_between(OP_BARRIER, NULL, NULL), q, false, count, list, NULL,
			  NULL);
}

/* Where the data is doesn't change what it is: a replay passes it over. */
cl_int CL_API_CALL layer_clEnqueueMigrateMemObjects(cl_command_queue q, cl_uint count,
						    const cl_mem *objects,
						    cl_mem_migration_flags flags, WAITS)
{
	struct ocl_entry *e;
	cl_uint known = objects && !ocl.passive ? known_mems(count, objects) : 0;
	cl_mem none = NULL;

	if (objects && known < count && ocl_checked(objects[known], OCL_MEM) != objects[known])
		return NEXT->clEnqueueMigrateMemObjects(ocl_real(q, OCL_QUEUE), 1, &none, flags,
							waits, wait, event);
	if (count == 0 || known < count)
		return NEXT->clEnqueueMigrateMemObjects(ocl_real(q, OCL_QUEUE), count, objects,
							flags, waits, wait, event);
	e = ocl_entry_carry(ocl_entry_between(OP_MIGRATE, NULL, NULL), objects,
			    count * sizeof(*objects));
	if (e) {
		e->count = count;
		e->flags = flags;
	}
	return ocl_submit(e, q, false, waits, wait, event, NULL);
}
