/* SPDX-License-Identifier: BSD-3-Clause */
/* Data between the program's memory and memory objects: reads, writes, mappings. A mapping is shown
 * in memory of this process, into which the server puts the content, and out of which it takes it.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "base/base.h"
#include "ocl/remote/remote.h"

#define WAITS cl_uint count, const cl_event *list, cl_event *event

static void put_three(struct call *c, const size_t *v)
{
	for (int i = 0; i < 3; i++)
		put(c, v[i]);
}

struct transfers_box {
	unsigned flags;
	const size_t *origin, *region;
	size_t pitch[2];      /* of the buffer */
	char *host;	      /* where the region begins there */
	size_t host_pitch[2]; /* bytes */
};

static cl_int send_box(struct stub *q, struct stub *m, const struct transfers_box *b,
		       cl_command_type type, bool quick, WAITS)
{
	bool image = m->mem.type != CL_MEM_OBJECT_BUFFER;
	struct call c = {0};

	put(&c, q->id);
	put(&c, m->id);
	put(&c, b->flags);
	put_three(&c, b->origin);
	put_three(&c, b->region);
	put(&c, b->pitch[0]);
	put(&c, b->pitch[1]);
	put(&c, (uint64_t)(uintptr_t)b->host);
	put(&c, b->host_pitch[0]);
	put(&c, b->host_pitch[1]);
	put(&c, m->mem.element);
	return remote_enqueue(&c, image ? OP_BOX_IMAGE : OP_BOX, q, type,
			      quick && !(b->flags & BOX_BLOCKING), count, list, event);
}

/* Objects that the program has said not to access that way. The server makes them without. */
static cl_mem_flags hidden(unsigned flags)
{
	return flags & BOX_WRITE ? CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_NO_ACCESS
				 : CL_MEM_HOST_WRITE_ONLY | CL_MEM_HOST_NO_ACCESS;
}

/* ---- buffers ---- */

static cl_int linear(cl_command_queue queue, cl_mem mem, unsigned flags, size_t offset, size_t size,
		     void *host, WAITS)
{
	struct stub *q = stub_of(queue, STUB_QUEUE), *m = stub_of(mem, STUB_MEM);
	size_t origin[3] = {offset, 0, 0}, region[3] = {size, 1, 1};
	struct transfers_box b = {.flags = flags | BOX_LINEAR,
				  .origin = origin,
				  .region = region,
				  .host = host,
				  .host_pitch = {size, size}};
	bool quick;

	if (!q || !m)
		return q ? CL_INVALID_MEM_OBJECT : CL_INVALID_COMMAND_QUEUE;
	if (m->mem.type != CL_MEM_OBJECT_BUFFER)
		return CL_INVALID_MEM_OBJECT;
	if (m->mem.flags & hidden(flags))
		return CL_INVALID_OPERATION;
	quick = host && size > 0 && size <= m->mem.size && offset <= m->mem.size - size &&
		m->context == q->context;
	return send_box(q, m, &b,
			flags & BOX_WRITE ? CL_COMMAND_WRITE_BUFFER : CL_COMMAND_READ_BUFFER, quick,
			count, list, event);
}

static cl_int CL_API_CALL read_buffer(cl_command_queue q, cl_mem m, cl_bool blocking, size_t offset,
				      size_t size, void *host, WAITS)
{
	return linear(q, m, blocking ? BOX_BLOCKING : 0, offset, size, host, count, list, event);
}

static cl_int CL_API_CALL write_buffer(cl_command_queue q, cl_mem m, cl_bool blocking,
				       size_t offset, size_t size, const void *host, WAITS)
{
	return linear(q, m, BOX_WRITE | (blocking ? BOX_BLOCKING : 0), offset, size, (void *)host,
		      count, list, event);
}

/* Whether the last byte has an address at all. */
static bool rows_fit(const size_t *origin, const size_t *region, const size_t pitch[2])
{
	size_t x, y, z;

	return !__builtin_add_overflow(origin[0], region[0], &x) &&
	       !__builtin_add_overflow(origin[1], region[1], &y) &&
	       !__builtin_add_overflow(origin[2], region[2], &z) &&
	       !__builtin_mul_overflow(y, pitch[0], &y) &&
	       !__builtin_mul_overflow(z, pitch[1], &z) && !__builtin_add_overflow(x, y, &x) &&
	       !__builtin_add_overflow(x, z, &x);
}

static cl_int rect(cl_command_queue queue, cl_mem mem, unsigned flags, const size_t *origin,
		   const size_t *host_origin, const size_t *region, size_t row, size_t slice,
		   size_t host_row, size_t host_slice, char *host, WAITS)
{
	struct stub *q = stub_of(queue, STUB_QUEUE), *m = stub_of(mem, STUB_MEM);
	struct transfers_box b = {
	    .flags = flags, .origin = origin, .region = region, .pitch = {row, slice}};

	if (!q || !m)
		return q ? CL_INVALID_MEM_OBJECT : CL_INVALID_COMMAND_QUEUE;
	if (m->mem.type != CL_MEM_OBJECT_BUFFER)
		return CL_INVALID_MEM_OBJECT;
	if (m->mem.flags & hidden(flags))
		return CL_INVALID_OPERATION;
	if (!origin || !host_origin || !region || !host || !region[0] || !region[1] || !region[2] ||
	    (host_row && host_row < region[0]))
		return CL_INVALID_VALUE;
	b.host_pitch[0] = host_row ? host_row : region[0];
	b.host_pitch[1] = host_slice ? host_slice : b.host_pitch[0] * region[1];
	if (b.host_pitch[1] < b.host_pitch[0] * region[1] || b.host_pitch[1] % b.host_pitch[0] != 0)
		return CL_INVALID_VALUE;
	if (!rows_fit(host_origin, region, b.host_pitch))
		return CL_INVALID_VALUE;
	b.host = host + host_origin[2] * b.host_pitch[1] + host_origin[1] * b.host_pitch[0] +
		 host_origin[0];
	return send_box(q, m, &b,
			flags & BOX_WRITE ? CL_COMMAND_WRITE_BUFFER_RECT
					  : CL_COMMAND_READ_BUFFER_RECT,
			false, count, list, event);
}

static cl_int CL_API_CALL read_rect(cl_command_queue q, cl_mem m, cl_bool blocking,
				    const size_t *origin, const size_t *host_origin,
				    const size_t *region, size_t row, size_t slice, size_t host_row,
				    size_t host_slice, void *host, WAITS)
{
	return rect(q, m, blocking ? BOX_BLOCKING : 0, origin, host_origin, region, row, slice,
		    host_row, host_slice, host, count, list, event);
}

static cl_int CL_API_CALL write_rect(cl_command_queue q, cl_mem m, cl_bool blocking,
				     const size_t *origin, const size_t *host_origin,
				     const size_t *region, size_t row, size_t slice,
				     size_t host_row, size_t host_slice, const void *host, WAITS)
{
	return rect(q, m, BOX_WRITE | (blocking ? BOX_BLOCKING : 0), origin, host_origin, region,
		    row, slice, host_row, host_slice, (char *)host, count, list, event);
}

/* ---- images ---- */

static cl_int image(cl_command_queue queue, cl_mem mem, unsigned flags, const size_t *origin,
		    const size_t *region, size_t row, size_t slice, void *host, WAITS)
{
	struct stub *q = stub_of(queue, STUB_QUEUE), *m = stub_of(mem, STUB_MEM);
	struct transfers_box b = {.flags = flags, .origin = origin, .region = region, .host = host};

	if (!q || !m)
		return q ? CL_INVALID_MEM_OBJECT : CL_INVALID_COMMAND_QUEUE;
	if (m->mem.type == CL_MEM_OBJECT_BUFFER)
		return CL_INVALID_MEM_OBJECT;
	if (m->mem.flags & hidden(flags))
		return CL_INVALID_OPERATION;
	if (!origin || !region || !host || (row && row < region[0] * m->mem.element))
		return CL_INVALID_VALUE;
	b.host_pitch[0] = row ? row : region[0] * m->mem.element;
	b.host_pitch[1] = slice ? slice : b.host_pitch[0] * region[1];
	return send_box(q, m, &b,
			flags & BOX_WRITE ? CL_COMMAND_WRITE_IMAGE : CL_COMMAND_READ_IMAGE, false,
			count, list, event);
}

static cl_int CL_API_CALL read_image(cl_command_queue q, cl_mem m, cl_bool blocking,
				     const size_t *origin, const size_t *region, size_t row,
				     size_t slice, void *host, WAITS)
{
	return image(q, m, blocking ? BOX_BLOCKING : 0, origin, region, row, slice, host, count,
		     list, event);
}

static cl_int CL_API_CALL write_image(cl_command_queue q, cl_mem m, cl_bool blocking,
				      const size_t *origin, const size_t *region, size_t row,
				      size_t slice, const void *host, WAITS)
{
	return image(q, m, BOX_WRITE | (blocking ? BOX_BLOCKING : 0), origin, region, row, slice,
		     (void *)host, count, list, event);
}

/* ---- mappings ---- */

/* Where the content of m begins in this process: the program's memory, or a window of ours, the
 * same for a buffer and its sub-buffers. */
static char *window_of(struct stub *m)
{
	void *p;

	if (m->mem.host)
		return m->mem.host;
	if (m->parent && m->mem.type == CL_MEM_OBJECT_BUFFER) {
		char *whole = window_of(m->parent);
		return whole ? whole + m->mem.offset : NULL;
	}
	if (m->mem.window)
		return m->mem.window;
	p = mmap(NULL, m->mem.size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p != MAP_FAILED)
		m->mem.window = p;
	return m->mem.window;
}

static bool may_map(const struct stub *m, cl_map_flags flags)
{
	return !(flags & CL_MAP_READ && m->mem.flags & hidden(0)) &&
	       !(flags & ~(cl_map_flags)CL_MAP_READ && m->mem.flags & hidden(BOX_WRITE));
}

static bool writes(cl_map_flags flags)
{
	return flags & (CL_MAP_WRITE | CL_MAP_WRITE_INVALIDATE_REGION);
}

/* The content is there as soon as the commands before have run. */
static cl_int show(struct stub *q, cl_command_type type, bool blocking, WAITS)
{
	cl_event done = NULL;
	cl_int status = remote_order(q, ORDER_MARKER, type, count, list, &done);

	if (status == CL_SUCCESS && blocking)
		status = remote_dispatch.clWaitForEvents(1, &done);
	if (status == CL_SUCCESS && event)
		*event = done;
	else if (done)
		stub_release(done, STUB_EVENT, 0);
	return status;
}

/* Records the mapping and brings the content. Frees r when that fails. */
static void *begin_map(struct stub *q, struct stub *m, struct mapping *r, cl_map_flags flags,
		       bool blocking, cl_command_type type, WAITS, cl_int *status)
{
	struct transfers_box b = {.flags =
				      (blocking ? BOX_BLOCKING : 0) | (r->image ? 0 : BOX_LINEAR),
				  .origin = r->origin,
				  .region = r->region,
				  .host = r->at,
				  .host_pitch = {r->pitch[0], r->pitch[1]}};

	r->wrote = writes(flags);
	*status = m->mem.shared ? show(q, type, blocking, count, list, event)
				: send_box(q, m, &b, type, false, count, list, event);
	if (*status != CL_SUCCESS) {
		free(r);
		return NULL;
	}
	r->next = m->mem.maps;
	m->mem.maps = r;
	m->mem.map_count++;
	return r->at;
}

static void *CL_API_CALL map_buffer(cl_command_queue queue, cl_mem mem, cl_bool blocking,
				    cl_map_flags flags, size_t offset, size_t size, WAITS,
				    cl_int *status)
{
	struct stub *q = stub_of(queue, STUB_QUEUE), *m = stub_of(mem, STUB_MEM);
	struct mapping *r = NULL;
	cl_int unwanted = CL_SUCCESS;
	char *window;

	status = status ? status : &unwanted;
	if (!q || !m || m->mem.type != CL_MEM_OBJECT_BUFFER)
		*status = q ? CL_INVALID_MEM_OBJECT : CL_INVALID_COMMAND_QUEUE;
	else if (size == 0 || offset + size > m->mem.size ||
		 ((flags & CL_MAP_WRITE_INVALIDATE_REGION) &&
		  (flags & (CL_MAP_READ | CL_MAP_WRITE))))
		*status = CL_INVALID_VALUE;
	else if (!may_map(m, flags))
		*status = CL_INVALID_OPERATION;
	else if (!(window = window_of(m)) || !(r = calloc(1, sizeof(*r))))
		*status = CL_MAP_FAILURE;
	else
		*r = (struct mapping){.at = window + offset,
				      .origin = {offset, 0, 0},
				      .region = {size, 1, 1},
				      .pitch = {size, size}};
	return r ? begin_map(q, m, r, flags, blocking, CL_COMMAND_MAP_BUFFER, count, list, event,
			     status)
		 : NULL;
}

static void *CL_API_CALL map_image(cl_command_queue queue, cl_mem mem, cl_bool blocking,
				   cl_map_flags flags, const size_t *origin, const size_t *region,
				   size_t *row, size_t *slice, WAITS, cl_int *status)
{
	struct stub *q = stub_of(queue, STUB_QUEUE), *m = stub_of(mem, STUB_MEM);
	struct mapping *r = NULL;
	cl_int unwanted = CL_SUCCESS;
	char *window;

	status = status ? status : &unwanted;
	if (!q || !m || m->mem.type == CL_MEM_OBJECT_BUFFER) {
		*status = q ? CL_INVALID_MEM_OBJECT : CL_INVALID_COMMAND_QUEUE;
		return NULL;
	}
	if (!origin || !region || !row ||
	    (!slice &&
	     (m->mem.type == CL_MEM_OBJECT_IMAGE3D || m->mem.type == CL_MEM_OBJECT_IMAGE2D_ARRAY ||
	      m->mem.type == CL_MEM_OBJECT_IMAGE1D_ARRAY))) {
		*status = CL_INVALID_VALUE;
		return NULL;
	}
	if (!may_map(m, flags)) {
		*status = CL_INVALID_OPERATION;
		return NULL;
	}
	window = window_of(m);
	r = window ? calloc(1, sizeof(*r)) : NULL;
	if (!r) {
		*status = CL_MAP_FAILURE;
		return NULL;
	}
	r->image = true;
	r->pitch[0] = m->mem.host ? m->mem.host_pitch[0] : m->mem.region[0] * m->mem.element;
	r->pitch[1] = m->mem.host ? m->mem.host_pitch[1] : r->pitch[0] * m->mem.region[1];
	memcpy(r->origin, origin, sizeof(r->origin));
	memcpy(r->region, region, sizeof(r->region));
	r->at =
	    window + origin[2] * r->pitch[1] + origin[1] * r->pitch[0] + origin[0] * m->mem.element;
	*row = r->pitch[0];
	if (slice) /* an array's slices are its rows when it has one dimension */
		*slice = m->mem.type == CL_MEM_OBJECT_IMAGE1D_ARRAY ? r->pitch[0]
			 : m->mem.region[2] > 1			    ? r->pitch[1]
								    : 0;
	return begin_map(q, m, r, flags, blocking, CL_COMMAND_MAP_IMAGE, count, list, event,
			 status);
}

static cl_int CL_API_CALL unmap(cl_command_queue queue, cl_mem mem, void *at, WAITS)
{
	struct stub *q = stub_of(queue, STUB_QUEUE), *m = stub_of(mem, STUB_MEM);
	struct mapping **link, *r;
	struct call c = {0};
	cl_int status;

	if (!q || !m)
		return q ? CL_INVALID_MEM_OBJECT : CL_INVALID_COMMAND_QUEUE;
	for (link = &m->mem.maps; *link && (*link)->at != at; link = &(*link)->next)
		;
	r = *link;
	if (!r)
		return CL_INVALID_VALUE;
	if (r->wrote && !m->mem.shared) {
		struct transfers_box b = {.flags = BOX_WRITE | (r->image ? 0 : BOX_LINEAR),
					  .origin = r->origin,
					  .region = r->region,
					  .host = r->at,
					  .host_pitch = {r->pitch[0], r->pitch[1]}};
		status = send_box(q, m, &b, CL_COMMAND_UNMAP_MEM_OBJECT, false, count, list, event);
	} else {
		put(&c, q->id);
		put(&c, 0);
		status = remote_enqueue(&c, OP_MARKER, q, CL_COMMAND_UNMAP_MEM_OBJECT, true, count,
					list, event);
	}
	if (status != CL_SUCCESS)
		return status;
	*link = r->next;
	free(r);
	m->mem.map_count--;
	return status;
}

void transfers_fill(cl_icd_dispatch *d)
{
	d->clEnqueueReadBuffer = read_buffer;
	d->clEnqueueWriteBuffer = write_buffer;
	d->clEnqueueReadBufferRect = read_rect;
	d->clEnqueueWriteBufferRect = write_rect;
	d->clEnqueueReadImage = read_image;
	d->clEnqueueWriteImage = write_image;
	d->clEnqueueMapBuffer = map_buffer;
	d->clEnqueueMapImage = map_image;
	d->clEnqueueUnmapMemObject = unmap;
}
