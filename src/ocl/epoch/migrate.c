/* SPDX-License-Identifier: BSD-3-Clause */
/* To another device, of this or another platform: every object is made anew there. The program
 * keeps its handles; what they stand for changes. */
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "ocl/entry/entry.h"
#include "ocl/epoch/epoch.h"
#include "ocl/log/log.h"
#include "ocl/ocl.h"

/* Tries of the same device in a new context: what was lost may be lost again meanwhile. */
static const unsigned renewals_max = 8;

/* ---- where to ---- */

static bool was_tried(const struct domain *d, cl_device_id device)
{
	for (cl_uint i = 0; i < d->tried_count; i++)
		if (d->tried[i] == device)
			return true;
	return false;
}

static void note_tried(struct domain *d, cl_device_id device)
{
	cl_device_id *more = realloc(d->tried, (d->tried_count + 1) * sizeof(*more));

	if (more) {
		d->tried = more;
		more[d->tried_count++] = device;
	}
}

static cl_device_id parent_of(cl_device_id device)
{
	cl_device_id parent = NULL;

	if (NEXT->clGetDeviceInfo(device, CL_DEVICE_PARENT_DEVICE, sizeof(cl_device_id), &parent,
				  NULL) != CL_SUCCESS)
		return NULL;
	return parent;
}

/* Commands of the context go there. */
static bool is_busy(const struct domain *d, cl_device_id device)
{
	for (const struct ocl_object *o = d->objects.next; o != &d->objects; o = o->next)
		if (o->kind == OCL_QUEUE && ((const struct queue *)o)->device == device)
			return true;
	return false;
}

/* The lower, the sooner a device is tried. */
enum { IDLE_HERE, BUSY_HERE, ELSEWHERE, RANKS };

/* Of a platform, one that hasn't failed. */
static cl_device_id candidate_of(struct domain *d, cl_platform_id platform, bool busy)
{
	cl_device_id devices[64];
	cl_uint count;

	if (NEXT->clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, ARRAY_LEN(devices), devices,
				 &count) != CL_SUCCESS)
		return NULL;
	count = count < ARRAY_LEN(devices) ? count : ARRAY_LEN(devices);
	for (cl_uint i = 0; i < count; i++)
		if (!was_tried(d, devices[i]) && is_busy(d, devices[i]) == busy)
			return devices[i];
	return NULL;
}

/* The next device that hasn't failed, those of the same platform first. */
static cl_device_id candidate(struct domain *d, cl_platform_id *platform)
{
	cl_platform_id home = NULL, all[32];
	cl_uint platforms = 0;

	NEXT->clGetDeviceInfo(d->devices[0], CL_DEVICE_PLATFORM, sizeof(home), &home, NULL);
	NEXT->clGetPlatformIDs(ARRAY_LEN(all), all, &platforms);
	platforms = platforms < ARRAY_LEN(all) ? platforms : ARRAY_LEN(all);
	for (int rank = 0; rank < RANKS; rank++) {
		for (cl_uint p = 0; p < platforms; p++) {
			cl_device_id device = NULL;

			if ((all[p] != home) == (rank == ELSEWHERE))
				device = candidate_of(d, all[p], rank == BUSY_HERE);
			if (device) {
				*platform = all[p];
				return device;
			}
		}
	}
	return NULL;
}

/* The device that failed. Of several that the context has nobody knows which it was: each gets a
 * try by itself. The memory of a part of a device is that of the whole; what is lost may be the
 * part. */
static void rule_out(struct domain *d)
{
	for (cl_uint i = 0; i < d->device_count; i++) {
		cl_device_id device = d->devices[i], parent = parent_of(device);

		if ((d->device_count == 1 || parent) && !was_tried(d, device))
			note_tried(d, device);
		for (; !d->lost && parent; parent = parent_of(parent))
			if (!was_tried(d, parent))
				note_tried(d, parent);
	}
}

/* ---- making the objects ---- */

/* Of ocl/remote/: shared virtual memory stays where it is, and belongs to another context. */
typedef cl_int(CL_API_CALL *adopt_svm_fn)(cl_context context, void *at);

struct move {
	struct domain *d;
	cl_context context;
	cl_device_id device;	     /* where all of it goes … */
	const cl_device_id *devices; /* … or those it has, known to another server */
	cl_uint count;
	bool same;
	adopt_svm_fn adopt_svm; /* NULL: that platform can't */
};

static adopt_svm_fn adopter(cl_platform_id platform)
{
	adopt_svm_fn f;

	*(void **)&f = NEXT->clGetExtensionFunctionAddressForPlatform(platform, "haleAdoptSVM");
	return f;
}

static void *queue_anew(const struct move *m, struct queue *q)
{
	cl_queue_properties list[] = {CL_QUEUE_PROPERTIES, q->properties, 0};
	cl_device_id device = m->same ? q->device : m->device;

	if (q->on_device)
		return NULL;
	if (q->list && q->list[0]) /* hints of one vendor mean nothing to another */
		return NEXT->clCreateCommandQueueWithProperties(m->context, device, list, NULL);
	return NEXT->clCreateCommandQueue(m->context, device, q->properties, NULL);
}

static bool is_mapped(const struct domain *d, const struct mem *m)
{
	for (const struct ocl_map *r = d->maps; r; r = r->next)
		if (r->mem->root == m)
			return true;
	return false;
}

/* The program has released m, and may have something else where m lay in its memory. */
static bool has_lost_host(const struct domain *d, const struct mem *m)
{
	return m->host_ptr && !ocl_content_is_alive(d, m) && !is_mapped(d, m);
}

static void forget_host(struct mem *m)
{
	m->host_ptr = NULL;
	m->flags &= ~(cl_mem_flags)CL_MEM_USE_HOST_PTR;
}

static void *mem_anew(const struct move *m, struct mem *o)
{
	bool lost_host = has_lost_host(m->d, o);
	void *host = lost_host ? NULL : o->host_ptr;
	cl_mem_flags flags = o->flags & ~(cl_mem_flags)(CL_MEM_COPY_HOST_PTR |
							(lost_host ? CL_MEM_USE_HOST_PTR : 0));
	cl_mem_flags own = flags & ~(cl_mem_flags)(CL_MEM_USE_HOST_PTR | CL_MEM_ALLOC_HOST_PTR);
	cl_mem parent = o->parent ? OBJ(o->parent)->next_real : NULL;
	cl_image_desc desc = o->desc;
	cl_buffer_region part = {o->offset - (o->parent ? o->parent->offset : 0), o->size};

	if (o->parent && OBJ(o->parent)->kind == OCL_SVM)
		return NEXT->clCreateBuffer(m->context, own | CL_MEM_USE_HOST_PTR, o->size,
					    (char *)OBJ(o->root)->handle + o->offset, NULL);
	if (o->plain)
		return NEXT->clCreateSubBuffer(parent, own, CL_BUFFER_CREATE_TYPE_REGION, &part,
					       NULL);
	if (o->type == CL_MEM_OBJECT_BUFFER)
		return NEXT->clCreateBuffer(m->context, flags, o->size, host, NULL);
	desc.mem_object = parent;
	if (!host && !parent)
		desc.image_row_pitch = desc.image_slice_pitch = 0;
	return NEXT->clCreateImage(m->context, parent ? own : flags, &o->format, &desc, host, NULL);
}

static void *sampler_anew(const struct move *m, struct ocl_object *o)
{
	cl_bool normalized = CL_FALSE;
	cl_addressing_mode addressing = 0;
	cl_filter_mode filter = 0;

	NEXT->clGetSamplerInfo(o->handle, CL_SAMPLER_NORMALIZED_COORDS, sizeof(normalized),
			       &normalized, NULL);
	NEXT->clGetSamplerInfo(o->handle, CL_SAMPLER_ADDRESSING_MODE, sizeof(addressing),
			       &addressing, NULL);
	NEXT->clGetSamplerInfo(o->handle, CL_SAMPLER_FILTER_MODE, sizeof(filter), &filter, NULL);
	return NEXT->clCreateSampler(m->context, normalized, addressing, filter, NULL);
}

static cl_program *list_of(struct ocl_program **from, cl_uint count)
{
	cl_program *list = calloc(count + 1, sizeof(*list));

	for (cl_uint i = 0; list && i < count; i++)
		list[i] = from[i] ? OBJ(from[i])->next_real : NULL;
	return list;
}

static void build_anew(const struct move *m, const struct ocl_program *o, cl_program p)
{
	const struct step *s = o->steps;
	char *more = ocl_program_options(o, s->options), *options = more ? more : s->options;
	cl_program *headers = s->headers ? list_of(s->header, s->headers) : NULL;

	if (s->kind == 'b')
		NEXT->clBuildProgram(p, m->count, m->devices, options, NULL, NULL);
	else
		NEXT->clCompileProgram(p, m->count, m->devices, options, s->headers, headers,
				       s->headers ? (const char **)s->header_name : NULL, NULL,
				       NULL);
	free(headers);
	free(more);
}

static bool has(const struct move *m, cl_device_id device)
{
	for (cl_uint i = 0; i < m->count; i++)
		if (m->devices[i] == device)
			return true;
	return false;
}

static void *program_anew(const struct move *m, struct ocl_program *o)
{
	const char *source = o->source;
	const unsigned char *binary = o->binary;
	cl_device_id one = m->same && has(m, o->binary_device) ? o->binary_device : m->device;
	cl_program p = NULL, *parts;

	if (o->linked) {
		parts = list_of(o->linked, o->linked_count);
		p = NEXT->clLinkProgram(m->context, m->count, m->devices, o->link_options,
					o->linked_count, parts, NULL, NULL, NULL);
		free(parts);
		return p;
	}
	if (source)
		p = NEXT->clCreateProgramWithSource(m->context, 1, &source, &o->source_len, NULL);
	else if (o->il)
		p = NEXT->clCreateProgramWithIL(m->context, o->il, o->il_len, NULL);
	else if (binary)
		p = NEXT->clCreateProgramWithBinary(m->context, 1, &one, &o->binary_len, &binary,
						    NULL, NULL);
	else if (o->builtin)
		p = NEXT->clCreateProgramWithBuiltInKernels(m->context, m->count, m->devices,
							    o->builtin, NULL);
	if (!p)
		return NULL;
	ocl_program_specialize(o, p, false);
	if (o->steps && !o->building)
		build_anew(m, o, p); /* it may have failed the first time, too */
	ocl_program_specialize(o, p, true);
	return p;
}

/* Only what a kernel of the program's needs: what never was built has none. */
static void *anew(const struct move *m, struct ocl_object *o)
{
	switch (o->kind) {
	case OCL_QUEUE:
		return queue_anew(m, (struct queue *)o);
	case OCL_MEM:
		return mem_anew(m, (struct mem *)o);
	case OCL_SAMPLER:
		return sampler_anew(m, o);
	case OCL_PROGRAM:
		return program_anew(m, (struct ocl_program *)o);
	case OCL_KERNEL:
		return NEXT->clCreateKernel(OBJ(((struct kernel *)o)->program)->next_real,
					    ((struct kernel *)o)->name, NULL);
	case OCL_SVM:
		return m->adopt_svm && m->adopt_svm(m->context, o->handle) == CL_SUCCESS ? o->handle
											 : NULL;
	default:
		return NULL;
	}
}

static void release_next(struct domain *d)
{
	for (struct ocl_object *o = d->objects.prev; o != &d->objects; o = o->prev) {
		if (o->next_real)
			ocl_runtime_release(o->next_real, o->kind);
		o->next_real = NULL;
	}
}

static void undo(const struct move *m)
{
	release_next(m->d);
	NEXT->clReleaseContext(m->context);
}

static void commit(const struct move *m)
{
	struct domain *d = m->d;

	ocl_object_moves(OBJ(d), m->context);
	for (struct ocl_object *o = d->objects.next; o != &d->objects; o = o->next) {
		struct queue *q = (struct queue *)o;

		if (!o->next_real)
			continue;
		if (o->kind == OCL_SVM) { /* where it was */
			o->next_real = NULL;
			continue;
		}
		ocl_object_moves(o, o->next_real);
		o->next_real = NULL;
		if (o->kind == OCL_MEM && has_lost_host(d, (struct mem *)o))
			forget_host((struct mem *)o);
		if (o->kind == OCL_QUEUE) {
			q->device = m->same ? q->device : m->device;
			q->gates = q->barred = 0;
			if (q->before_gate)
				NEXT->clReleaseEvent(q->before_gate);
			q->before_gate = NULL;
		}
	}
	d->moved_at = ++ocl.moves;
	for (struct ocl_object *o = d->objects.next; o != &d->objects; o = o->next)
		if (o->kind == OCL_KERNEL)
			ocl_kernel_bind((struct kernel *)o, ((struct kernel *)o)->args, true);
	if (!m->same) {
		d->devices[0] = m->device;
		d->device_count = 1;
		d->away = true;
	}
	d->generation++;
	ocl.report.moves++;
	NEXT->clGetDeviceInfo(m->device, CL_DEVICE_NAME, sizeof(ocl.report.moved_to) - 1,
			      ocl.report.moved_to, NULL);
	ocl_detect_settle(d);
}

/* device NULL: to those that it has. */
static bool move_to(struct domain *d, cl_platform_id platform, cl_device_id device)
{
	cl_context_properties list[] = {CL_CONTEXT_PLATFORM, (cl_context_properties)platform, 0};
	struct move m = {.d = d, .device = device, .devices = &m.device, .count = 1};

	m.adopt_svm = adopter(platform);
	if (!device) {
		m.same = true;
		m.device = d->devices[0];
		m.devices = d->devices;
		m.count = d->device_count;
	}
	m.context = NEXT->clCreateContext(list, m.count, m.devices, NULL, NULL, NULL);
	if (!m.context)
		return false;
	for (struct ocl_object *o = d->objects.next; o != &d->objects; o = o->next) {
		o->next_real = anew(&m, o);
		if (!o->next_real && o->kind != OCL_PROGRAM && o->kind != OCL_RECORDED) {
			log_info("opencl: an object could not be made on the other device");
			undo(&m);
			return false;
		}
	}
	ocl_helpers_release(d);
	ocl_requeue_give_up(d); /* what counts as lost may still be there */
	commit(&m);
	ocl_requeue_user_events(d);
	return true;
}

/* ---- objects in memory of the program ---- */

static bool is_of(const struct ocl_object *o, const struct mem *root)
{
	return o && o->kind == OCL_MEM && ((const struct mem *)o)->root == root;
}

/* Commands that wait for the program have it still as it is. */
static bool is_waited_with(const struct domain *d, const struct mem *root)
{
	for (const struct ocl_entry *e = d->first; e; e = e->next) {
		if (!(e->gates & d->gates_unset))
			continue;
		if (is_of(e->dst ? OBJ(e->dst) : NULL, root) ||
		    is_of(e->src ? OBJ(e->src) : NULL, root))
			return true;
		for (uint32_t i = 0; i < e->used_count; i++)
			if (is_of(e->used[i], root))
				return true;
	}
	return false;
}

/* Command buffers that the program has may be of any of its objects. */
static bool has_recorded(const struct domain *d)
{
	for (const struct ocl_object *o = d->objects.next; o != &d->objects; o = o->next)
		if (o->kind == OCL_RECORDED && o->refs > 0)
			return true;
	return false;
}

static bool parts(const struct domain *d, const struct ocl_object *o)
{
	const struct mem *m = (const struct mem *)o;

	return o->kind == OCL_MEM && has_lost_host(d, m->root) && !is_waited_with(d, m->root);
}

bool ocl_part_from_host(struct domain *d)
{
	const struct move m = {.d = d, .context = OBJ(d)->real};
	bool recorded = has_recorded(d), any = false, good = true;

	for (struct ocl_object *o = d->objects.next; o != &d->objects && good && !recorded;
	     o = o->next) {
		if (!parts(d, o))
			continue;
		o->next_real = mem_anew(&m, (struct mem *)o);
		good = o->next_real;
		any = true;
	}
	if (!good)
		release_next(d);
	if (!good || !any)
		return good;
	for (struct ocl_object *o = d->objects.next; o != &d->objects; o = o->next) {
		if (!o->next_real)
			continue;
		ocl_object_moves(o, o->next_real);
		o->next_real = NULL;
		forget_host((struct mem *)o);
	}
	ocl.moves++;
	for (struct ocl_object *o = d->objects.next; o != &d->objects; o = o->next)
		if (o->kind == OCL_KERNEL)
			ocl_kernel_bind((struct kernel *)o, ((struct kernel *)o)->args, true);
	return true;
}

/* ---- the next device ---- */

bool ocl_migrate(struct domain *d)
{
	cl_platform_id platform = NULL;
	cl_device_id device;

	NEXT->clGetDeviceInfo(d->devices[0], CL_DEVICE_PLATFORM, sizeof(platform), &platform, NULL);
	if (d->svm_count > 0 && !adopter(platform)) {
		log_warn("opencl: shared virtual memory has addresses of this device: the program "
			 "can't be moved to another device");
		return false;
	}
	/* a server that has ended says nothing about its devices: another one has them, parts too
	 */
	if (d->lost && d->renewals == 0 && adopter(platform)) {
		d->renewals++;
		if (move_to(d, platform, NULL)) {
			log_info("opencl: going on with another server");
			return true;
		}
	}
	rule_out(d);
	while ((device = candidate(d, &platform))) {
		note_tried(d, device);
		if (move_to(d, platform, device)) {
			log_info("opencl: going on on '%s'", ocl.report.moved_to);
			return true;
		}
	}
	/* what a driver loses is often only the context */
	while (d->lost && d->renewals++ < renewals_max)
		if (NEXT->clGetDeviceInfo(d->devices[0], CL_DEVICE_PLATFORM, sizeof(platform),
					  &platform, NULL) == CL_SUCCESS &&
		    move_to(d, platform, NULL))
			return true;
	return false;
}
