/* SPDX-License-Identifier: BSD-3-Clause */
/* Command buffers (cl_khr_command_buffer): the commands that the program records are kept here,
 * too. In the log a buffer that was enqueued is one entry; a replay issues its commands one by
 * one. Launches are recorded with a kernel of ours, so that the arguments are those of the
 * recording whatever the program sets afterwards. */
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "ocl/entry/entry.h"
#include "ocl/epoch/epoch.h"
#include "ocl/log/log.h"
#include "ocl/ocl.h"

/* What a runtime gives for its platform. */
struct recorder {
	struct recorder *next;
	cl_platform_id platform;
	clCreateCommandBufferKHR_fn create;
	clRetainCommandBufferKHR_fn retain;
	clReleaseCommandBufferKHR_fn release;
	clEnqueueCommandBufferKHR_fn enqueue;
	clCommandBarrierWithWaitListKHR_fn barrier;
	clCommandCopyBufferKHR_fn copy;
	clCommandCopyBufferRectKHR_fn copy_rect;
	clCommandCopyBufferToImageKHR_fn buffer_to_image;
	clCommandCopyImageKHR_fn copy_image;
	clCommandCopyImageToBufferKHR_fn image_to_buffer;
	clCommandFillBufferKHR_fn fill;
	clCommandFillImageKHR_fn fill_image;
	clCommandNDRangeKernelKHR_fn launch;
};

static struct recorder any; /* as the program has fetched them: for handles that aren't known */
static struct recorder *recorders;
static bool foreign; /* the program has fetched functions that record unseen */

static const struct recorder *recorder_of(cl_platform_id platform);

#define POINTS cl_uint points, const cl_sync_point_khr *point, cl_sync_point_khr *made

/* ---- the objects ---- */

static cl_platform_id platform_of(cl_device_id device)
{
	cl_platform_id p = NULL;

	NEXT->clGetDeviceInfo(device, CL_DEVICE_PLATFORM, sizeof(cl_platform_id), &p, NULL);
	return p;
}

static struct recorded *find(cl_command_buffer_khr handle)
{
	return ocl.passive ? NULL : ocl_find(handle, OCL_RECORDED);
}

static const struct recorder *with_of(cl_command_buffer_khr handle)
{
	const struct recorded *r = find(handle);

	return r ? r->with : &any;
}

void ocl_recorded_fini(struct recorded *r)
{
	for (struct ocl_entry *e = r->first, *next; e; e = next) {
		next = e->next;
		ocl_entry_free(NULL, e);
	}
	for (uint32_t i = 0; i < r->kernel_count; i++)
		NEXT->clReleaseKernel(r->kernels[i]);
	free(r->kernels);
	ocl_drop(OBJ(r->queue));
}

cl_int ocl_recorded_release(void *handle)
{
	const struct recorder *with = &any;

	ocl_lock();
	/* also one that the program has released already */
	for (struct domain *d = ocl.domains; d; d = d->next_domain)
		for (struct ocl_object *o = d->objects.next; o != &d->objects; o = o->next)
			if (o->kind == OCL_RECORDED && o->handle == handle)
				with = ((const struct recorded *)o)->with;
	ocl_unlock();
	return with->release(handle);
}

/* In the buffer from here on. e NULL: it could not be kept. */
static void append(struct recorded *r, struct ocl_entry *e)
{
	if (!e || !ocl_entry_resolve(OBJ(r)->domain, e)) {
		r->opaque = true;
		if (e)
			ocl_entry_free(NULL, e);
		return;
	}
	*r->last = e;
	r->last = &e->next;
}

static void triple(size_t to[3], const size_t *from)
{
	memcpy(to, from, 3 * sizeof(*to));
}

/* ---- a buffer's life ---- */

static cl_command_buffer_khr CL_API_CALL create(cl_uint count, const cl_command_queue *queues,
						const cl_command_buffer_properties_khr *properties,
						cl_int *status)
{
	cl_command_buffer_khr handle = NULL;
	cl_command_queue real;
	const struct recorder *with;
	struct queue *q;
	struct recorded *r;

	ocl_lock();
	q = count == 1 && queues && !ocl.passive ? ocl_find(queues[0], OCL_QUEUE) : NULL;
	if (!q) {
		ocl_unlock();
		return any.create(count, queues, properties, status);
	}
	real = OBJ(q)->real;
	with = recorder_of(platform_of(q->device));
	if (with && with->create)
		handle = with->create(1, &real, properties, status);
	else if (status)
		*status = CL_INVALID_OPERATION;
	r = handle ? ocl_object_create(sizeof(*r), OCL_RECORDED, handle, OBJ(q)->domain) : NULL;
	if (r) {
		r->with = with;
		r->queue = q;
		ocl_hold(OBJ(q));
		r->last = &r->first;
		r->generation = OBJ(q)->domain->generation;
	}
	ocl_unlock();
	return handle;
}

static cl_int CL_API_CALL retain(cl_command_buffer_khr handle)
{
	cl_int status;

	ocl_lock();
	handle = ocl_checked(handle, OCL_RECORDED);
	status = ocl_retained(handle, OCL_RECORDED, with_of(handle)->retain(handle));
	ocl_unlock();
	return status;
}

static cl_int CL_API_CALL release(cl_command_buffer_khr handle)
{
	return ocl_release(handle, OCL_RECORDED);
}

static cl_int CL_API_CALL enqueue(cl_uint count, cl_command_queue *queues,
				  cl_command_buffer_khr handle, cl_uint waits, const cl_event *wait,
				  cl_event *event)
{
	struct ocl_entry *e;
	struct recorded *r;
	struct queue *q;
	cl_int status;

	ocl_lock();
	handle = ocl_checked(handle, OCL_RECORDED);
	r = find(handle);
	q = !r ? NULL : count == 1 && queues ? ocl_find(queues[0], OCL_QUEUE) : r->queue;
	if (!q || OBJ(q)->refs == 0 || OBJ(q)->domain != OBJ(r)->domain ||
	    (count == 0) != !queues) {
		const struct recorder *with = with_of(handle);
		if (q && OBJ(q)->refs == 0)
			OBJ(q)->domain->unprotected = true;
		ocl_unlock();
		return with->enqueue(count, queues, handle, waits, wait, event);
	}
	e = ocl_entry_new(OP_RECORDED);
	if (e) {
		e->recorded = r;
		ocl_hold(OBJ(r));
	}
	status = ocl_submit(e, OBJ(q)->handle, false, waits, wait, event, NULL);
	ocl_unlock();
	return status;
}

/* ---- recording ---- */

/* What both the runtime and a template take. q: the program's, NULL in a buffer of one queue. */
#define RECORD(call, template_)                                                                    \
	do {                                                                                       \
		struct recorded *r;                                                                \
		const struct recorder *with;                                                       \
		cl_int status;                                                                     \
                                                                                                   \
		ocl_lock();                                                                        \
		b = ocl_checked(b, OCL_RECORDED);                                                  \
		r = find(b);                                                                       \
		with = r ? r->with : &any;                                                         \
		status = with->call;                                                               \
		if (status == CL_SUCCESS && r)                                                     \
			append(r, template_);                                                      \
		ocl_unlock();                                                                      \
		return status;                                                                     \
	} while (0)

static cl_int CL_API_CALL barrier(cl_command_buffer_khr b, cl_command_queue q, POINTS,
				  cl_mutable_command_khr *m)
{
	RECORD(barrier(b, ocl_real(q, OCL_QUEUE), points, point, made, m),
	       ocl_entry_between(OP_BARRIER, NULL, NULL));
}

static struct ocl_entry *copy_entry(cl_mem src, cl_mem dst, size_t from, size_t to, size_t size)
{
	struct ocl_entry *e = ocl_entry_between(OP_COPY, src, dst);

	if (e) {
		e->a[0] = from;
		e->b[0] = to;
		e->region[0] = size;
	}
	return e;
}

static cl_int CL_API_CALL copy(cl_command_buffer_khr b, cl_command_queue q, cl_mem src, cl_mem dst,
			       size_t from, size_t to, size_t size, POINTS,
			       cl_mutable_command_khr *m)
{
	RECORD(copy(b, ocl_real(q, OCL_QUEUE), ocl_real(src, OCL_MEM), ocl_real(dst, OCL_MEM), from,
		    to, size, points, point, made, m),
	       copy_entry(src, dst, from, to, size));
}

/* A copy between two memory objects. a and b say where in src and dst: an offset for a buffer that
 * is copied to or from an image, otherwise an origin with three coordinates. */
static struct ocl_entry *boxes(ocl_op_t op, cl_mem src, cl_mem dst, const size_t *a,
			       const size_t *b, const size_t *region, const size_t *pitch)
{
	struct ocl_entry *e = ocl_entry_between(op, src, dst);

	if (!e)
		return NULL;
	if (op == OP_COPY_BUFFER_TO_IMAGE)
		e->a[0] = *a;
	else
		triple(e->a, a);
	if (op == OP_COPY_IMAGE_TO_BUFFER)
		e->b[0] = *b;
	else
		triple(e->b, b);
	triple(e->region, region);
	if (pitch)
		memcpy(e->pitch, pitch, sizeof(e->pitch));
	return e;
}

static cl_int CL_API_CALL copy_rect(cl_command_buffer_khr b, cl_command_queue q, cl_mem src,
				    cl_mem dst, const size_t *from, const size_t *to,
				    const size_t *region, size_t src_row, size_t src_slice,
				    size_t dst_row, size_t dst_slice, POINTS,
				    cl_mutable_command_khr *m)
{
	size_t pitch[4] = {src_row, src_slice, dst_row, dst_slice};

	RECORD(copy_rect(b, ocl_real(q, OCL_QUEUE), ocl_real(src, OCL_MEM), ocl_real(dst, OCL_MEM),
			 from, to, region, src_row, src_slice, dst_row, dst_slice, points, point,
			 made, m),
	       boxes(OP_COPY_RECT, src, dst, from, to, region, pitch));
}

static cl_int CL_API_CALL buffer_to_image(cl_command_buffer_khr b, cl_command_queue q, cl_mem src,
					  cl_mem dst, size_t from, const size_t *to,
					  const size_t *region, POINTS, cl_mutable_command_khr *m)
{
	RECORD(buffer_to_image(b, ocl_real(q, OCL_QUEUE), ocl_real(src, OCL_MEM),
			       ocl_real(dst, OCL_MEM), from, to, region, points, point, made, m),
	       boxes(OP_COPY_BUFFER_TO_IMAGE, src, dst, &from, to, region, NULL));
}

static cl_int CL_API_CALL copy_image(cl_command_buffer_khr b, cl_command_queue q, cl_mem src,
				     cl_mem dst, const size_t *from, const size_t *to,
				     const size_t *region, POINTS, cl_mutable_command_khr *m)
{
	RECORD(copy_image(b, ocl_real(q, OCL_QUEUE), ocl_real(src, OCL_MEM), ocl_real(dst, OCL_MEM),
			  from, to, region, points, point, made, m),
	       boxes(OP_COPY_IMAGE, src, dst, from, to, region, NULL));
}

static cl_int CL_API_CALL image_to_buffer(cl_command_buffer_khr b, cl_command_queue q, cl_mem src,
					  cl_mem dst, const size_t *from, const size_t *region,
					  size_t to, POINTS, cl_mutable_command_khr *m)
{
	RECORD(image_to_buffer(b, ocl_real(q, OCL_QUEUE), ocl_real(src, OCL_MEM),
			       ocl_real(dst, OCL_MEM), from, region, to, points, point, made, m),
	       boxes(OP_COPY_IMAGE_TO_BUFFER, src, dst, from, &to, region, NULL));
}

static struct ocl_entry *fill_entry(cl_mem mem, const void *pattern, size_t bytes, size_t offset,
				    size_t size)
{
	struct ocl_entry *e =
	    ocl_entry_carry(ocl_entry_between(OP_FILL, NULL, mem), pattern, bytes);

	if (e) {
		e->a[0] = offset;
		e->b[0] = bytes;
		e->region[0] = size;
	}
	return e;
}

static cl_int CL_API_CALL fill(cl_command_buffer_khr b, cl_command_queue q, cl_mem mem,
			       const void *pattern, size_t bytes, size_t offset, size_t size,
			       POINTS, cl_mutable_command_khr *m)
{
	RECORD(fill(b, ocl_real(q, OCL_QUEUE), ocl_real(mem, OCL_MEM), pattern, bytes, offset, size,
		    points, point, made, m),
	       fill_entry(mem, pattern, bytes, offset, size));
}

static struct ocl_entry *fill_image_entry(cl_mem mem, const void *colour, const size_t *origin,
					  const size_t *region)
{
	struct ocl_entry *e =
	    ocl_entry_carry(ocl_entry_between(OP_FILL_IMAGE, NULL, mem), colour, 16);

	if (e) {
		triple(e->a, origin);
		triple(e->region, region);
	}
	return e;
}

static cl_int CL_API_CALL fill_image(cl_command_buffer_khr b, cl_command_queue q, cl_mem mem,
				     const void *colour, const size_t *origin, const size_t *region,
				     POINTS, cl_mutable_command_khr *m)
{
	RECORD(fill_image(b, ocl_real(q, OCL_QUEUE), ocl_real(mem, OCL_MEM), colour, origin, region,
			  points, point, made, m),
	       fill_image_entry(mem, colour, origin, region));
}

/* ---- launches ---- */

/* A kernel of ours with the arguments that k has now; k's own where that is not possible. */
static cl_kernel kernel_for(struct recorded *r, struct kernel *k)
{
	cl_kernel *more = realloc(r->kernels, (r->kernel_count + 1) * sizeof(*more)), own;
	struct kernel shadow = *k;

	if (!more)
		return OBJ(k)->real;
	r->kernels = more;
	own = NEXT->clCreateKernel(OBJ(k->program)->real, k->name, NULL);
	if (!own)
		return OBJ(k)->real;
	OBJ(&shadow)->real = own;
	/* what SVM pointers and the like it was given besides can't be asked for */
	if (k->svm_pointers || ocl_kernel_bind(&shadow, k->args, true) != CL_SUCCESS) {
		NEXT->clReleaseKernel(own);
		return OBJ(k)->real;
	}
	more[r->kernel_count++] = own;
	return own;
}

static struct ocl_entry *launch_entry(cl_kernel kernel, cl_uint dims, const size_t *offset,
				      const size_t *global, const size_t *local)
{
	struct ocl_entry *e = ocl_entry_between(OP_KERNEL, NULL, NULL);

	if (!e)
		return NULL;
	e->kernel_handle = kernel;
	e->count = dims;
	for (cl_uint i = 0; i < dims; i++) {
		e->a[i] = offset ? offset[i] : 0;
		e->b[i] = global ? global[i] : 0;
		e->region[i] = local ? local[i] : 0;
	}
	e->has[0] = offset;
	e->has[1] = global;
	e->has[2] = local;
	return e;
}

static cl_int CL_API_CALL launch(cl_command_buffer_khr b, cl_command_queue q,
				 const cl_ndrange_kernel_command_properties_khr *properties,
				 cl_kernel kernel, cl_uint dims, const size_t *offset,
				 const size_t *global, const size_t *local, POINTS,
				 cl_mutable_command_khr *m)
{
	struct recorded *r;
	struct kernel *k;
	cl_int status;

	ocl_lock();
	b = ocl_checked(b, OCL_RECORDED);
	r = find(b);
	k = r ? ocl_find(kernel, OCL_KERNEL) : NULL;
	status = (r ? r->with : &any)
		     ->launch(b, ocl_real(q, OCL_QUEUE), properties,
			      k ? kernel_for(r, k) : ocl_checked(kernel, OCL_KERNEL), dims, offset,
			      global, local, points, point, made, m);
	if (status == CL_SUCCESS && r)
		append(r, launch_entry(kernel, dims, offset, global, local));
	ocl_unlock();
	return status;
}

/* ---- what an enqueued buffer does ---- */

bool ocl_recorded_uses(struct domain *d, struct ocl_entry *e)
{
	struct recorded *r = e->recorded;

	if (r->opaque || foreign) {
		d->unprotected = e->lasting = true;
		ocl_content_unlogged(d);
	}
	for (struct ocl_entry *t = r->first; t; t = t->next) {
		if (t->kernel && !ocl_kernel_uses(t->kernel, t->args, e))
			return false;
		if (!t->kernel) {
			ocl_entry_mark(t);
			e->lasting |= t->lasting;
		}
	}
	return true;
}

static cl_int issue_one(const struct ocl_entry *t, cl_command_queue q)
{
	cl_int status = CL_SUCCESS;

	if (t->kernel)
		status = ocl_kernel_bind(t->kernel, t->args, false);
	return status == CL_SUCCESS ? ocl_issue(t, q, t->host, 0, NULL, NULL, NULL) : status;
}

cl_int ocl_recorded_replay(const struct recorded *r, cl_command_queue q)
{
	cl_int status = CL_SUCCESS;

	for (const struct ocl_entry *t = r->first; t && status == CL_SUCCESS; t = t->next)
		if (t->op != OP_BARRIER)
			status = issue_one(t, q);
	return status;
}

/* In their order, one after the other, whatever the queue is. */
static cl_int issue_each(const struct recorded *r, cl_command_queue q, cl_uint n, const cl_event *w,
			 cl_event *event)
{
	cl_int status = NEXT->clEnqueueBarrierWithWaitList(q, n, w, NULL);

	for (const struct ocl_entry *t = r->first; t && status == CL_SUCCESS; t = t->next) {
		status = issue_one(t, q);
		if (status == CL_SUCCESS)
			status = NEXT->clEnqueueBarrierWithWaitList(q, 0, NULL, NULL);
	}
	for (const struct ocl_entry *t = r->first; t; t = t->next)
		if (t->kernel)
			ocl_kernel_unbind(t->kernel);
	return status == CL_SUCCESS ? NEXT->clEnqueueMarkerWithWaitList(q, 0, NULL, event) : status;
}

cl_int ocl_recorded_issue(const struct ocl_entry *e, cl_command_queue q, cl_uint n,
			  const cl_event *w, cl_event *event)
{
	const struct recorded *r = e->recorded;

	if (r->generation != OBJ(r)->domain->generation)
		return issue_each(r, q, n, w, event);
	return r->with->enqueue(1, &q, OBJ(r)->handle, n, w, event);
}

/* ---- the functions ---- */

static const struct {
	const char *name;
	size_t at; /* in struct recorder */
	void (*ours)(void);
} functions[] = {
#define F(name, field)                                                                             \
	{                                                                                          \
		"cl" name "KHR", offsetof(struct recorder, field), (void (*)(void))(field)         \
	}
    F("CreateCommandBuffer", create),
    F("RetainCommandBuffer", retain),
    F("ReleaseCommandBuffer", release),
    F("EnqueueCommandBuffer", enqueue),
    F("CommandBarrierWithWaitList", barrier),
    F("CommandCopyBuffer", copy),
    F("CommandCopyBufferRect", copy_rect),
    F("CommandCopyBufferToImage", buffer_to_image),
    F("CommandCopyImage", copy_image),
    F("CommandCopyImageToBuffer", image_to_buffer),
    F("CommandFillBuffer", fill),
    F("CommandFillImage", fill_image),
    F("CommandNDRangeKernel", launch),
#undef F
};

static const struct recorder *recorder_of(cl_platform_id platform)
{
	struct recorder *r = recorders;

	while (r && r->platform != platform)
		r = r->next;
	if (r || !(r = calloc(1, sizeof(*r))))
		return r;
	r->platform = platform;
	for (size_t i = 0; i < ARRAY_LEN(functions); i++)
		*(void **)((char *)r + functions[i].at) =
		    NEXT->clGetExtensionFunctionAddressForPlatform(platform, functions[i].name);
	r->next = recorders;
	recorders = r;
	return r;
}

void *ocl_recorded_function(const char *name, void *real)
{
	if (!real)
		return NULL;
	for (size_t i = 0; i < ARRAY_LEN(functions); i++) {
		if (strcmp(name, functions[i].name) != 0)
			continue;
		*(void **)((char *)&any + functions[i].at) = real;
		return (void *)(uintptr_t)functions[i].ours;
	}
	/* further extensions of it: nothing of what is enqueued can be replayed then */
	if (strncmp(name, "clCommand", 9) == 0 || strncmp(name, "clUpdateMutable", 15) == 0) {
		foreign = true;
		log_warn(
		    "opencl: the program asked for %s; after an error in device memory command "
		    "buffers are not repeated, and until the next checkpoint it gets an error code",
		    name);
	}
	return NULL;
}
