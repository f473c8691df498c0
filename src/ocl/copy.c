/* SPDX-License-Identifier: BSD-3-Clause */
/* Content of memory objects between device and host, chunk by chunk: by mapping where device and
 * host share memory, else through pinned buffers, so that the next chunks travel while one is
 * written to or read from the file (VOCL-FT 4.2). */
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "ocl/ocl.h"

enum { DEPTH = 4 };

struct queue *ocl_any_queue(struct domain *d)
{
	for (struct object *o = d->objects.next; o != &d->objects; o = o->next)
		if (o->kind == OCL_QUEUE && !((struct queue *)o)->on_device)
			return (struct queue *)o;
	return NULL;
}

cl_command_queue ocl_own_queue(struct domain *d, cl_device_id device)
{
	struct queue *place = NULL;

	for (struct object *o = d->objects.next; o != &d->objects; o = o->next) {
		struct queue *q = (struct queue *)o;
		if (o->kind != OCL_QUEUE || q->device != device)
			continue;
		if (q->replay)
			return q->replay;
		place = q;
	}
	if (!place)
		return NULL;
	place->replay = NEXT->clCreateCommandQueue(OBJ(d)->real, device, 0, NULL);
	return place->replay;
}

void ocl_helpers_release(struct domain *d)
{
	for (struct object *o = d->objects.next; o != &d->objects; o = o->next) {
		struct queue *q = (struct queue *)o;
		if (o->kind != OCL_QUEUE)
			continue;
		if (q->replay && d->pin_at && d->pin) {
			NEXT->clEnqueueUnmapMemObject(q->replay, d->pin, d->pin_at, 0, NULL, NULL);
			NEXT->clFinish(q->replay);
			d->pin_at = NULL;
		}
		if (q->replay)
			NEXT->clReleaseCommandQueue(q->replay);
		q->replay = NULL;
	}
	if (d->pin)
		NEXT->clReleaseMemObject(d->pin);
	if (d->hash_kernel)
		NEXT->clReleaseKernel(d->hash_kernel);
	if (d->hash_program)
		NEXT->clReleaseProgram(d->hash_program);
	d->pin = NULL;
	d->pin_at = NULL;
	d->hash_kernel = NULL;
	d->hash_program = NULL;
	d->hash_tried = false;
}

static size_t chunk_bytes(const struct mem *m, size_t i)
{
	size_t at = i * m->chunk_size;

	return m->size - at < m->chunk_size ? m->size - at : m->chunk_size;
}

static bool visit_all(struct mem *m, const bool *want, char *data, ocl_chunk_fn visit, void *arg)
{
	for (size_t i = 0; i < m->chunk_count; i++)
		if ((!want || want[i]) &&
		    !visit(arg, m, i, data + i * m->chunk_size, chunk_bytes(m, i)))
			return false;
	return true;
}

/* ---- memory that host and device share ---- */

static bool shares_memory(cl_device_id device)
{
	cl_bool unified = CL_FALSE;

	NEXT->clGetDeviceInfo(device, CL_DEVICE_HOST_UNIFIED_MEMORY, sizeof(unified), &unified,
			      NULL);
	return unified && !ocl.staged;
}

static bool through_map(struct mem *m, const bool *want, cl_command_queue q, bool in,
			ocl_chunk_fn visit, void *arg)
{
	cl_map_flags flags = !in    ? CL_MAP_READ
			     : want ? CL_MAP_WRITE
				    : CL_MAP_WRITE_INVALIDATE_REGION;
	cl_int status;
	bool good;
	char *p = NEXT->clEnqueueMapBuffer(q, OBJ(m)->real, CL_TRUE, flags, 0, m->size, 0, NULL,
					   NULL, &status);

	if (status != CL_SUCCESS)
		return false;
	good = visit_all(m, want, p, visit, arg);
	return NEXT->clEnqueueUnmapMemObject(q, OBJ(m)->real, p, 0, NULL, NULL) == CL_SUCCESS &&
	       NEXT->clFinish(q) == CL_SUCCESS && good;
}

static bool through_svm(struct mem *m, const bool *want, cl_command_queue q, bool in,
			ocl_chunk_fn visit, void *arg)
{
	cl_map_flags flags = in ? CL_MAP_WRITE : CL_MAP_READ;
	void *p = OBJ(m)->handle;
	bool good;

	if (m->flags & CL_MEM_SVM_FINE_GRAIN_BUFFER)
		return visit_all(m, want, p, visit, arg);
	if (NEXT->clEnqueueSVMMap(q, CL_TRUE, flags, p, m->size, 0, NULL, NULL) != CL_SUCCESS)
		return false;
	good = visit_all(m, want, p, visit, arg);
	return NEXT->clEnqueueSVMUnmap(q, p, 0, NULL, NULL) == CL_SUCCESS &&
	       NEXT->clFinish(q) == CL_SUCCESS && good;
}

static bool through_image(struct mem *m, cl_command_queue q, bool in, ocl_chunk_fn visit, void *arg)
{
	size_t origin[3] = {0};
	char *p = calloc(1, m->size + 1);
	bool good = p != NULL;

	if (good && in)
		good = visit(arg, m, 0, p, m->size) &&
		       NEXT->clEnqueueWriteImage(q, OBJ(m)->real, CL_TRUE, origin, m->region, 0, 0,
						 p, 0, NULL, NULL) == CL_SUCCESS;
	else if (good)
		good = NEXT->clEnqueueReadImage(q, OBJ(m)->real, CL_TRUE, origin, m->region, 0, 0,
						p, 0, NULL, NULL) == CL_SUCCESS &&
		       visit(arg, m, 0, p, m->size);
	free(p);
	return good;
}

/* ---- pinned buffers ---- */

static char *pinned(struct domain *d, cl_command_queue q)
{
	size_t size = (size_t)DEPTH * OCL_CHUNK;
	cl_int status;

	if (d->pin_at)
		return d->pin_at;
	d->pin = NEXT->clCreateBuffer(OBJ(d)->real, CL_MEM_ALLOC_HOST_PTR, size, NULL, &status);
	if (status != CL_SUCCESS)
		return NULL;
	d->pin_at = NEXT->clEnqueueMapBuffer(q, d->pin, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0,
					     size, 0, NULL, NULL, &status);
	return status == CL_SUCCESS ? d->pin_at : NULL;
}

static bool await(cl_event *e)
{
	bool good = !*e || NEXT->clWaitForEvents(1, e) == CL_SUCCESS;

	if (*e)
		NEXT->clReleaseEvent(*e);
	*e = NULL;
	return good;
}

/* One lane of the pipeline: a pinned buffer with the chunk that is in it. */
struct lane {
	char *data;
	size_t chunk;
	cl_event event;
};

static size_t next_wanted(const struct mem *m, const bool *want, size_t i)
{
	while (i < m->chunk_count && want && !want[i])
		i++;
	return i;
}

static bool pipeline_out(struct mem *m, const bool *want, cl_command_queue q, struct lane *lane,
			 ocl_chunk_fn visit, void *arg)
{
	size_t ask = next_wanted(m, want, 0), asked = 0, done = 0;
	bool good = true;

	while (good && (ask < m->chunk_count || done < asked)) {
		struct lane *l =
		    &lane[(asked < done + DEPTH && ask < m->chunk_count ? asked : done) % DEPTH];
		if (asked < done + DEPTH && ask < m->chunk_count) {
			l->chunk = ask;
			good = NEXT->clEnqueueReadBuffer(q, OBJ(m)->real, CL_FALSE,
							 ask * m->chunk_size, chunk_bytes(m, ask),
							 l->data, 0, NULL, &l->event) == CL_SUCCESS;
			NEXT->clFlush(q);
			ask = next_wanted(m, want, ask + 1);
			asked++;
		} else {
			good = await(&l->event) &&
			       visit(arg, m, l->chunk, l->data, chunk_bytes(m, l->chunk));
			done++;
		}
	}
	for (int i = 0; i < DEPTH; i++)
		good &= await(&lane[i].event);
	return good;
}

static bool pipeline_in(struct mem *m, const bool *want, cl_command_queue q, struct lane *lane,
			ocl_chunk_fn visit, void *arg)
{
	bool good = true;
	size_t n = 0;

	for (size_t i = next_wanted(m, want, 0); good && i < m->chunk_count;
	     i = next_wanted(m, want, i + 1)) {
		struct lane *l = &lane[n++ % DEPTH];

		good = await(&l->event) && visit(arg, m, i, l->data, chunk_bytes(m, i)) &&
		       NEXT->clEnqueueWriteBuffer(q, OBJ(m)->real, CL_FALSE, i * m->chunk_size,
						  chunk_bytes(m, i), l->data, 0, NULL,
						  &l->event) == CL_SUCCESS;
		NEXT->clFlush(q);
	}
	for (int i = 0; i < DEPTH; i++)
		good &= await(&lane[i].event);
	return good;
}

static bool copy(struct domain *d, struct mem *m, const bool *want, bool in, ocl_chunk_fn visit,
		 void *arg)
{
	struct queue *any = ocl_any_queue(d);
	struct lane lane[DEPTH] = {0};
	cl_command_queue q = any ? ocl_own_queue(d, any->device) : NULL;
	char *pin;

	if (!q)
		return false;
	if (OBJ(m)->kind == OCL_SVM)
		return through_svm(m, want, q, in, visit, arg);
	if (m->type != CL_MEM_OBJECT_BUFFER)
		return through_image(m, q, in, visit, arg);
	if (shares_memory(any->device))
		return through_map(m, want, q, in, visit, arg);
	pin = pinned(d, q);
	if (!pin)
		return false;
	for (int i = 0; i < DEPTH; i++)
		lane[i].data = pin + (size_t)i * OCL_CHUNK;
	return in ? pipeline_in(m, want, q, lane, visit, arg)
		  : pipeline_out(m, want, q, lane, visit, arg);
}

bool ocl_copy_out(struct domain *d, struct mem *m, const bool *want, ocl_chunk_fn visit, void *arg)
{
	return copy(d, m, want, false, visit, arg);
}

bool ocl_copy_in(struct domain *d, struct mem *m, ocl_chunk_fn visit, void *arg)
{
	return copy(d, m, NULL, true, visit, arg);
}
