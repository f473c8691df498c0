/* SPDX-License-Identifier: BSD-3-Clause */
/* Content of memory objects between device and host, chunk by chunk: by mapping where device and
 * host share memory, else through pinned buffers, so that the next chunks travel while one is
 * written to or read from the file (VOCL-FT 4.2). */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "base/cpus.h"
#include "ocl/epoch/epoch.h"
#include "ocl/ocl.h"

enum { LANES = 8, WORKERS = 4 };

struct queue *ocl_any_queue(struct domain *d)
{
	for (struct ocl_object *o = d->objects.next; o != &d->objects; o = o->next)
		if (o->kind == OCL_QUEUE && !((struct queue *)o)->on_device)
			return (struct queue *)o;
	return NULL;
}

cl_command_queue ocl_own_queue(struct domain *d, cl_device_id device)
{
	struct queue *place = NULL;
	cl_command_queue *slot;

	for (struct ocl_object *o = d->objects.next; o != &d->objects; o = o->next) {
		struct queue *q = (struct queue *)o;
		if (o->kind != OCL_QUEUE || q->device != device)
			continue;
		if (q->replay)
			return q->replay;
		place = q;
	}
	slot = place ? &place->replay : device == d->devices[0] ? &d->own_queue : NULL;
	if (slot && !*slot)
		*slot = NEXT->clCreateCommandQueue(OBJ(d)->real, device, 0, NULL);
	return slot ? *slot : NULL;
}

cl_command_queue ocl_queue_beside(struct domain *d, const struct queue *q)
{
	if (q && q->replay)
		return q->replay;
	if (!q)
		q = ocl_any_queue(d);
	return d->devices ? ocl_own_queue(d, q ? q->device : d->devices[0]) : NULL;
}

void ocl_helpers_release(struct domain *d)
{
	for (struct ocl_object *o = d->objects.next; o != &d->objects; o = o->next) {
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
	if (d->own_queue)
		NEXT->clReleaseCommandQueue(d->own_queue);
	d->own_queue = NULL;
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
	char *p;

	if (m->shown)
		return visit_all(m, want, m->shown, visit, arg);
	p = NEXT->clEnqueueMapBuffer(q, OBJ(m)->real, CL_TRUE, flags, 0, m->size, 0, NULL, NULL,
				     &status);
	if (status != CL_SUCCESS)
		return false;
	good = visit_all(m, want, p, visit, arg);
	return NEXT->clEnqueueUnmapMemObject(q, OBJ(m)->real, p, 0, NULL, NULL) == CL_SUCCESS &&
	       NEXT->clFinish(q) == CL_SUCCESS && good;
}

static bool is_mapped(const struct domain *d, const struct mem *m)
{
	for (const struct ocl_map *r = d->maps; r; r = r->next)
		if (r->mem == m)
			return true;
	return false;
}

/* What the program has mapped is not mapped once more: not every runtime counts, and the end of our
 * mapping would be that of the program's. */
static bool beside_mapping(struct mem *m, const bool *want, cl_command_queue q, bool in,
			   ocl_chunk_fn visit, void *arg)
{
	char *p = OBJ(m)->handle, *data = calloc(1, m->chunk_size + 1);
	bool good = data != NULL;

	for (size_t i = 0; good && i < m->chunk_count; i++) {
		char *at = p + i * m->chunk_size;
		size_t n = chunk_bytes(m, i);

		if (want && !want[i])
			continue;
		good = in ? visit(arg, m, i, data, n) &&
				NEXT->clEnqueueSVMMemcpy(q, CL_TRUE, at, data, n, 0, NULL, NULL) ==
				    CL_SUCCESS
			  : NEXT->clEnqueueSVMMemcpy(q, CL_TRUE, data, at, n, 0, NULL, NULL) ==
				    CL_SUCCESS &&
				visit(arg, m, i, data, n);
	}
	free(data);
	return good;
}

static bool show(struct domain *d, struct mem *m, cl_command_queue q, bool shared, bool in)
{
	cl_int status;

	if (OBJ(m)->kind == OCL_SVM) {
		if (m->flags & CL_MEM_SVM_FINE_GRAIN_BUFFER || is_mapped(d, m))
			return true;
		status = NEXT->clEnqueueSVMMap(q, CL_FALSE, in ? CL_MAP_WRITE : CL_MAP_READ,
					       OBJ(m)->handle, m->size, 0, NULL, NULL);
		m->shown = status == CL_SUCCESS ? OBJ(m)->handle : NULL;
		return status == CL_SUCCESS;
	}
	if (!shared || m->type != CL_MEM_OBJECT_BUFFER || ocl_aside_needed(m, in))
		return true;
	m->shown = NEXT->clEnqueueMapBuffer(q, OBJ(m)->real, CL_FALSE,
					    in ? CL_MAP_WRITE_INVALIDATE_REGION : CL_MAP_READ, 0,
					    m->size, 0, NULL, NULL, &status);
	return status == CL_SUCCESS;
}

static cl_int hide(struct mem *m, cl_command_queue q)
{
	void *p = m->shown;

	m->shown = NULL;
	if (OBJ(m)->kind == OCL_SVM)
		return NEXT->clEnqueueSVMUnmap(q, p, 0, NULL, NULL);
	return NEXT->clEnqueueUnmapMemObject(q, OBJ(m)->real, p, 0, NULL, NULL);
}

bool ocl_content_show(struct domain *d, bool in, bool (*which)(const struct mem *))
{
	const struct queue *any = ocl_any_queue(d);
	cl_command_queue q = ocl_queue_beside(d, any);
	bool good = q != NULL, some = false,
	     shared = q && shares_memory(any ? any->device : d->devices[0]);

	for
		EACH_CONTENT(d, m)
	if (good && which(m)) {
		good = show(d, m, q, shared, in);
		some |= m->shown != NULL;
	}
	return good && (!some || NEXT->clFinish(q) == CL_SUCCESS);
}

bool ocl_content_hide(struct domain *d)
{
	cl_command_queue q = ocl_queue_beside(d, NULL);
	bool good = true, some = false;

	for
		EACH_CONTENT(d, m)
	if (m->shown) {
		some = true;
		good &= q && hide(m, q) == CL_SUCCESS;
	}
	return good && (!some || NEXT->clFinish(q) == CL_SUCCESS);
}

static bool through_svm(struct mem *m, const bool *want, cl_command_queue q, bool in,
			ocl_chunk_fn visit, void *arg)
{
	cl_map_flags flags = in ? CL_MAP_WRITE : CL_MAP_READ;
	void *p = OBJ(m)->handle;
	bool good;

	if (m->shown || m->flags & CL_MEM_SVM_FINE_GRAIN_BUFFER)
		return visit_all(m, want, p, visit, arg);
	if (is_mapped(OBJ(m)->domain, m))
		return beside_mapping(m, want, q, in, visit, arg);
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
	size_t size = (size_t)LANES * OCL_CHUNK;
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

/* A pinned buffer with the chunk that is in it. */
struct copy_lane {
	char *data;
	size_t chunk;
	cl_event event;
};

/* The copy of one object, by one thread or several. */
struct copy_work {
	struct mem *m;
	const bool *want;
	cl_command_queue q;
	ocl_chunk_fn visit;
	void *arg;
	bool in;
	pthread_mutex_t lock;
	size_t next; /* chunk; guarded by lock */
	bool good;
};

struct copy_worker {
	struct copy_work *work;
	pthread_t thread;
	struct copy_lane lane[LANES];
	int depth; /* lanes of its own */
};

/* The next chunk that nobody has taken; chunk_count: none is left, or it has failed. */
static size_t take(struct copy_work *w)
{
	size_t i;

	pthread_mutex_lock(&w->lock);
	while (w->next < w->m->chunk_count && w->want && !w->want[w->next])
		w->next++;
	i = w->good ? w->next : w->m->chunk_count;
	w->next = i < w->m->chunk_count ? i + 1 : w->next;
	pthread_mutex_unlock(&w->lock);
	return i;
}

static void give_up(struct copy_work *w)
{
	pthread_mutex_lock(&w->lock);
	w->good = false;
	pthread_mutex_unlock(&w->lock);
}

static bool ask_for(const struct copy_work *w, struct copy_lane *l, size_t chunk)
{
	cl_int status;

	l->chunk = chunk;
	status =
	    NEXT->clEnqueueReadBuffer(w->q, OBJ(w->m)->real, CL_FALSE, chunk * w->m->chunk_size,
				      chunk_bytes(w->m, chunk), l->data, 0, NULL, &l->event);
	NEXT->clFlush(w->q);
	return status == CL_SUCCESS;
}

static bool pipeline_out(struct copy_worker *me)
{
	struct copy_work *w = me->work;
	size_t asked = 0, done = 0, chunk = take(w);
	bool good = true;

	while (good && (chunk < w->m->chunk_count || done < asked)) {
		struct copy_lane *l = &me->lane[done % (size_t)me->depth];

		if (chunk < w->m->chunk_count && asked < done + (size_t)me->depth) {
			good = ask_for(w, &me->lane[asked % (size_t)me->depth], chunk);
			chunk = take(w);
			asked++;
		} else {
			good = await(&l->event) && w->visit(w->arg, w->m, l->chunk, l->data,
							    chunk_bytes(w->m, l->chunk));
			done++;
		}
	}
	return good;
}

static bool pipeline_in(struct copy_worker *me)
{
	struct copy_work *w = me->work;
	bool good = true;
	size_t n = 0;

	for (size_t i = take(w); good && i < w->m->chunk_count; i = good ? take(w) : i) {
		struct copy_lane *l = &me->lane[n++ % (size_t)me->depth];

		good = await(&l->event) &&
		       w->visit(w->arg, w->m, i, l->data, chunk_bytes(w->m, i)) &&
		       NEXT->clEnqueueWriteBuffer(w->q, OBJ(w->m)->real, CL_FALSE,
						  i * w->m->chunk_size, chunk_bytes(w->m, i),
						  l->data, 0, NULL, &l->event) == CL_SUCCESS;
		NEXT->clFlush(w->q);
	}
	return good;
}

static void *run_worker(void *arg)
{
	struct copy_worker *me = arg;
	bool good = me->work->in ? pipeline_in(me) : pipeline_out(me);

	for (int i = 0; i < me->depth; i++)
		good &= await(&me->lane[i].event);
	if (!good)
		give_up(me->work);
	return NULL;
}

/* One core takes 6 to 9 GB/s out of the page cache, a bus to a device five times that. With the
 * runtime in a process of its own (ocl/remote/) the bus is not what one waits for. */
static int workers_for(const struct mem *m)
{
	int count;

	if (m->size < (size_t)8 * OCL_CHUNK || getenv("HALE_OPENCL_VENDORS"))
		return 1;
	count = (int)cpus_allowed() / 2;
	return count < 1 ? 1 : count < WORKERS ? count : WORKERS;
}

static bool start_worker(struct copy_worker *me)
{
	sigset_t all, old;
	bool started;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	started = pthread_create(&me->thread, NULL, run_worker, me) == 0;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return started;
}

static bool through_lanes(struct copy_work *w, char *pin)
{
	struct copy_worker worker[WORKERS] = {0};
	int count = workers_for(w->m), depth = LANES / count, started = 1;

	for (int i = 0; i < count; i++) {
		worker[i].work = w;
		worker[i].depth = depth;
		for (int k = 0; k < depth; k++)
			worker[i].lane[k].data = pin + (size_t)(i * depth + k) * OCL_CHUNK;
	}
	while (started < count && start_worker(&worker[started]))
		started++;
	run_worker(&worker[0]);
	for (int i = 1; i < started; i++)
		pthread_join(worker[i].thread, NULL);
	return w->good;
}

static bool copy(struct domain *d, struct mem *m, const bool *want, bool in, ocl_chunk_fn visit,
		 void *arg)
{
	const struct queue *any = ocl_any_queue(d);
	cl_command_queue q = ocl_queue_beside(d, any);
	struct copy_work w = {.m = m,
			      .want = want,
			      .q = q,
			      .visit = visit,
			      .arg = arg,
			      .in = in,
			      .lock = PTHREAD_MUTEX_INITIALIZER,
			      .good = true};
	char *pin;

	if (!q)
		return false;
	if (OBJ(m)->kind == OCL_SVM)
		return through_svm(m, want, q, in, visit, arg);
	if (ocl_aside_needed(m, in))
		return ocl_aside_copy(m, want, q, in, visit, arg);
	if (m->type != CL_MEM_OBJECT_BUFFER)
		return through_image(m, q, in, visit, arg);
	if (shares_memory(any ? any->device : d->devices[0]))
		return through_map(m, want, q, in, visit, arg);
	pin = pinned(d, q);
	return pin && through_lanes(&w, pin);
}

bool ocl_copy_out(struct domain *d, struct mem *m, const bool *want, ocl_chunk_fn visit, void *arg)
{
	return copy(d, m, want, false, visit, arg);
}

bool ocl_copy_in(struct domain *d, struct mem *m, ocl_chunk_fn visit, void *arg)
{
	return copy(d, m, NULL, true, visit, arg);
}
