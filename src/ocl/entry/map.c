/* SPDX-License-Identifier: BSD-3-Clause */
/* Mapped regions and shared virtual memory: what the host writes there is known when it unmaps. */
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "ocl/calls.h"
#include "ocl/entry/entry.h"
#include "ocl/log/log.h"

#define WAITS cl_uint waits, const cl_event *wait, cl_event *event

/* ---- records of mappings ---- */

void ocl_map_begin(struct domain *d, struct ocl_entry *e)
{
	struct mem *m = e->op == OP_SVM_MAP ? e->dst : e->src;
	struct ocl_map *r = m && e->host ? calloc(1, sizeof(*r)) : NULL;

	if (!r) {
		d->unprotected |= m != NULL;
		return;
	}
	r->mem = m;
	ocl_hold(OBJ(m));
	r->queue = e->queue;
	ocl_hold(OBJ(r->queue));
	r->ptr = e->host;
	r->flags = e->flags;
	r->op = e->op;
	r->generation = d->generation;
	r->number = e->number;
	memcpy(r->a, e->a, sizeof(r->a));
	memcpy(r->region, e->region, sizeof(r->region));
	r->span = e->region[0];
	if (e->op == OP_MAP_IMAGE) {
		size_t box[3] = {e->region[0] * m->element, e->region[1], e->region[2]};
		size_t zero[3] = {0};

		if (!m->element)
			NEXT->clGetImageInfo(OBJ(m)->real, CL_IMAGE_ELEMENT_SIZE,
					     sizeof(m->element), &m->element, NULL);
		box[0] = e->region[0] * m->element;
		r->pitch[0] = e->b[0] ? *(size_t *)e->b[0] : 0;
		r->pitch[1] = e->b[1] ? *(size_t *)e->b[1] : 0;
		r->span = ocl_rect_span(zero, box, r->pitch[0], r->pitch[1]);
	}
	r->next = d->maps;
	d->maps = r;
	e->host_span = r->span;
	e->pitch[0] = r->pitch[0];
	e->pitch[1] = r->pitch[1];
	e->b[0] = e->b[1] = 0; /* the program's variables are not ours to keep */
}

static void lend(struct mem *m)
{
	void **more;

	if (OBJ(m)->real == OBJ(m)->handle) /* the program's: there anyway */
		return;
	if (m->lent_count > 0 && m->lent[m->lent_count - 1] == OBJ(m)->real)
		return;
	NEXT->clRetainMemObject(OBJ(m)->real);
	more = realloc(m->lent, (m->lent_count + 1ul) * sizeof(*more));
	if (!more)
		return; /* it stays for ever */
	m->lent = more;
	more[m->lent_count++] = OBJ(m)->real;
}

void ocl_map_lends(const struct ocl_object *o)
{
	struct domain *d = o->domain;
	const struct ocl_map *r = o->kind == OCL_MEM ? d->maps : NULL;

	while (r && (OBJ(r->mem) != o || r->generation != d->generation))
		r = r->next;
	if (r)
		lend(r->mem);
}

void ocl_map_takes(const void *at, size_t size)
{
	const char *from = at;

	for (struct domain *d = ocl.domains; d; d = d->next_domain) {
		for (struct ocl_map *r = d->maps; r; r = r->next) {
			const char *mapped = r->ptr;
			if (from < mapped + r->span && mapped < from + size)
				r->flags |= CL_MAP_WRITE;
		}
	}
}

bool ocl_map_may_be_written(const struct ocl_map *r)
{
	return r->flags & (CL_MAP_WRITE | CL_MAP_WRITE_INVALIDATE_REGION) ||
	       r->mem->root->flags & CL_MEM_ALLOC_HOST_PTR;
}

void ocl_map_forget(struct domain *d, struct ocl_map *r)
{
	struct ocl_map **at = &d->maps;

	while (*at != r)
		at = &(*at)->next;
	*at = r->next;
	ocl_drop(OBJ(r->queue));
	ocl_drop(OBJ(r->mem));
	free(r->kept);
	free(r);
}

/* The program has not been told that the mapping is there. */
static bool is_coming(struct domain *d, const struct ocl_map *r)
{
	for (const struct ocl_entry *e = ocl_log_unsettled(d); e; e = e->next)
		if (e->number == r->number)
			return true;
	return false;
}

struct ocl_map *ocl_map_end(struct domain *d, struct ocl_entry *e)
{
	bool svm = e->op == OP_SVM_UNMAP;
	struct ocl_map *r = d->maps;

	while (r && (r->mem != e->dst || r->ptr != e->host))
		r = r->next;
	if (!r)
		return NULL;
	e->flags = r->flags;
	e->count = r->op;
	memcpy(e->a, r->a, sizeof(e->a));
	memcpy(e->region, r->region, sizeof(e->region));
	memcpy(e->pitch, r->pitch, sizeof(r->pitch));
	e->host_span = r->span;
	if (svm || (r->flags & (CL_MAP_WRITE | CL_MAP_WRITE_INVALIDATE_REGION))) {
		/* it may not be there yet, and commands may bring something there, too */
		if (d->unchecked > 0 &&
		    (is_coming(d, r) || ranges_meet(&d->reading, e->host, e->host_span)))
			ocl_log_capture_behind_read(d, e);
		else
			ocl_log_capture(d, e);
	}
	if (r->generation != d->generation && !svm)
		ocl_map_moved(e);
	return r;
}

void ocl_map_moved(struct ocl_entry *e)
{
	bool wrote = e->flags & (CL_MAP_WRITE | CL_MAP_WRITE_INVALIDATE_REGION);

	e->op = !wrote ? OP_MARKER : e->count == OP_MAP ? OP_WRITE : OP_WRITE_IMAGE;
}

/* ---- the calls ---- */

void *CL_API_CALL layer_clEnqueueMapBuffer(cl_command_queue q, cl_mem m, cl_bool blocking,
					   cl_map_flags flags, size_t offset, size_t size, WAITS,
					   cl_int *status)
{
	struct ocl_entry *e = ocl_entry_new(OP_MAP);
	void *map = NULL;
	cl_int code;

	if (e) {
		e->src_handle = m;
		e->flags = flags;
		e->a[0] = offset;
		e->region[0] = size;
	}
	code = ocl_submit(e, q, blocking, waits, wait, event, &map);
	if (status)
		*status = code;
	return code == CL_SUCCESS ? map : NULL;
}

void *CL_API_CALL layer_clEnqueueMapImage(cl_command_queue q, cl_mem m, cl_bool blocking,
					  cl_map_flags flags, const size_t *origin,
					  const size_t *region, size_t *row, size_t *slice, WAITS,
					  cl_int *status)
{
	struct ocl_entry *e;
	void *map = NULL;
	cl_int code;

	if (!origin || !region)
		return NEXT->clEnqueueMapImage(ocl_real(q, OCL_QUEUE), ocl_real(m, OCL_MEM),
					       blocking, flags, origin, region, row, slice, waits,
					       wait, event, status);
	e = ocl_entry_new(OP_MAP_IMAGE);
	if (e) {
		e->src_handle = m;
		e->flags = flags;
		memcpy(e->a, origin, sizeof(e->a));
		memcpy(e->region, region, sizeof(e->region));
		e->b[0] = (size_t)row;
		e->b[1] = (size_t)slice;
	}
	code = ocl_submit(e, q, blocking, waits, wait, event, &map);
	if (status)
		*status = code;
	return code == CL_SUCCESS ? map : NULL;
}

cl_int CL_API_CALL layer_clEnqueueUnmapMemObject(cl_command_queue q, cl_mem m, void *ptr, WAITS)
{
	struct ocl_entry *e = ocl_entry_new(OP_UNMAP);

	if (e) {
		e->dst_handle = m;
		e->host = ptr;
	}
	return ocl_submit(e, q, false, waits, wait, event, NULL);
}

/* ---- shared virtual memory ---- */

static struct ocl_entry *svm_entry(ocl_op_t op, const void *dst, const void *src, size_t size)
{
	struct ocl_entry *e = ocl_entry_new(op);

	if (e) {
		e->a[0] = (size_t)dst;
		e->b[0] = (size_t)src;
		e->region[0] = size;
	}
	return e;
}

cl_int CL_API_CALL layer_clEnqueueSVMMemcpy(cl_command_queue q, cl_bool blocking, void *dst,
					    const void *src, size_t size, WAITS)
{
	return ocl_submit(svm_entry(OP_SVM_COPY, dst, src, size), q, blocking, waits, wait, event,
			  NULL);
}

cl_int CL_API_CALL layer_clEnqueueSVMMemFill(cl_command_queue q, void *dst, const void *pattern,
					     size_t pattern_size, size_t size, WAITS)
{
	struct ocl_entry *e;

	if (!pattern || pattern_size > 128)
		return NEXT->clEnqueueSVMMemFill(ocl_real(q, OCL_QUEUE), dst, pattern, pattern_size,
						 size, waits, wait, event);
	e = svm_entry(OP_SVM_FILL, dst, (void *)pattern_size, size);
	if (e && (e->data.memory = malloc(pattern_size + 1)))
		memcpy(e->data.memory, pattern, pattern_size);
	return ocl_submit(e, q, false, waits, wait, event, NULL);
}

cl_int CL_API_CALL layer_clEnqueueSVMMap(cl_command_queue q, cl_bool blocking, cl_map_flags flags,
					 void *ptr, size_t size, WAITS)
{
	struct ocl_entry *e = svm_entry(OP_SVM_MAP, ptr, NULL, size);

	if (e)
		e->flags = flags;
	return ocl_submit(e, q, blocking, waits, wait, event, NULL);
}

cl_int CL_API_CALL layer_clEnqueueSVMUnmap(cl_command_queue q, void *ptr, WAITS)
{
	return ocl_submit(svm_entry(OP_SVM_UNMAP, ptr, NULL, 0), q, false, waits, wait, event,
			  NULL);
}

bool ocl_are_svm(cl_uint count, const void *const *pointers)
{
	cl_uint n = 0;

	ocl_lock();
	for (; n < count; n++) {
		bool known = false;

		for (struct domain *d = ocl.domains; d && !known; d = d->next_domain)
			known = ocl_svm_at(d, (size_t)pointers[n]) != NULL;
		if (!known)
			break;
	}
	ocl_unlock();
	return n == count;
}

/* Moves nothing that a replay would need, but has an event, and an order among others. */
cl_int CL_API_CALL layer_clEnqueueSVMMigrateMem(cl_command_queue q, cl_uint count,
						const void **pointers, const size_t *sizes,
						cl_mem_migration_flags flags, WAITS)
{
	struct ocl_entry *e;
	uint64_t *list;

	if (!pointers || count == 0 || ocl.passive || !ocl_are_svm(count, pointers))
		return NEXT->clEnqueueSVMMigrateMem(ocl_real(q, OCL_QUEUE), count, pointers, sizes,
						    flags, waits, wait, event);
	e = svm_entry(OP_SVM_MIGRATE, pointers[0], NULL, sizes ? sizes[0] : 0);
	if (!e)
		return CL_OUT_OF_HOST_MEMORY;
	e->count = count;
	e->flags = flags;
	e->has[0] = sizes != NULL;
	list = e->data.memory = calloc(2ul * count, sizeof(*list));
	if (list)
		memcpy(list, pointers, count * sizeof(*list));
	if (list && sizes)
		memcpy(list + count, sizes, count * sizeof(*list));
	return ocl_submit(e, q, false, waits, wait, event, NULL);
}
