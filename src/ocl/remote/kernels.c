/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernels, their arguments and launches. A call that the runtime has taken once in the same shape
 * needs no reply the next time. */
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "ocl/remote/remote.h"

static void *refuse(cl_int code, cl_int *status)
{
	if (status)
		*status = code;
	return NULL;
}

static struct stub *begin(struct stub *p, const char *name, uint32_t args)
{
	struct stub *s = stub_create(STUB_KERNEL, p->context);

	if (!s)
		return NULL;
	stub_hold(s, p);
	s->parent = p;
	s->list = strdup(name);
	s->kernel.args = args;
	s->kernel.arg_size = calloc(args + 1, sizeof(uint64_t));
	return s;
}

static cl_kernel CL_API_CALL create_kernel(cl_program program, const char *name, cl_int *status)
{
	struct stub *p = stub_of(program, STUB_PROGRAM), *s;
	struct call c = {0};
	struct remote_answer a = {0};
	cl_int code;

	if (!p || !name)
		return refuse(p ? CL_INVALID_VALUE : CL_INVALID_PROGRAM, status);
	s = begin(p, name, 0);
	if (!s)
		return refuse(CL_OUT_OF_HOST_MEMORY, status);
	c.era = era_of(p);
	put(&c, s->id);
	put(&c, p->id);
	put_blob(&c, name, strlen(name) + 1);
	code = remote_call(&c, OP_KERNEL, &a);
	if (code != CL_SUCCESS) {
		stub_discard(s);
		return refuse(code, status);
	}
	free(s->kernel.arg_size);
	s->kernel.args = (uint32_t)a.value[0];
	s->kernel.arg_size = calloc(s->kernel.args + 1, sizeof(uint64_t));
	if (status)
		*status = CL_SUCCESS;
	return (cl_kernel)s;
}

/* All of them, or none. */
static cl_int CL_API_CALL create_kernels(cl_program program, cl_uint room, cl_kernel *list,
					 cl_uint *count)
{
	struct stub *p = stub_of(program, STUB_PROGRAM);
	size_t n = 0;
	char *names = NULL, *rest, *name;
	cl_uint made = 0;
	cl_int status;

	if (!p)
		return CL_INVALID_PROGRAM;
	status = remote_info(ABOUT_PROGRAM, p, 0, CL_PROGRAM_KERNEL_NAMES, 0, NULL, &n);
	if (status != CL_SUCCESS)
		return status;
	names = calloc(1, n + 1);
	if (!names)
		return CL_OUT_OF_HOST_MEMORY;
	status = remote_info(ABOUT_PROGRAM, p, 0, CL_PROGRAM_KERNEL_NAMES, n, names, NULL);
	for (name = strtok_r(names, ";", &rest); name && status == CL_SUCCESS;
	     name = strtok_r(NULL, ";", &rest)) {
		if (list && made == room)
			status = CL_INVALID_VALUE;
		else if (list)
			list[made] = create_kernel(program, name, &status);
		made += status == CL_SUCCESS;
	}
	free(names);
	if (status == CL_SUCCESS && count)
		*count = made;
	for (cl_uint i = 0; list && status != CL_SUCCESS && i < made; i++)
		stub_release(list[i], STUB_KERNEL, 0);
	return status;
}

cl_kernel CL_API_CALL remote_clone_kernel(cl_kernel source, cl_int *status)
{
	struct stub *from = stub_of(source, STUB_KERNEL), *s;
	struct call c = {0};

	if (!from)
		return refuse(CL_INVALID_KERNEL, status);
	s = begin(from->parent, from->list ? from->list : "", from->kernel.args);
	if (!s)
		return refuse(CL_OUT_OF_HOST_MEMORY, status);
	if (s->kernel.arg_size && from->kernel.arg_size)
		memcpy(s->kernel.arg_size, from->kernel.arg_size,
		       from->kernel.args * sizeof(uint64_t));
	put(&c, s->id);
	put(&c, from->id);
	return remote_make(s, &c, OP_KERNEL_CLONE, status);
}

static cl_int CL_API_CALL retain_kernel(cl_kernel k)
{
	return stub_retain(k, STUB_KERNEL, CL_INVALID_KERNEL);
}

static cl_int CL_API_CALL release_kernel(cl_kernel k)
{
	return stub_release(k, STUB_KERNEL, CL_INVALID_KERNEL);
}

/* ---- arguments ---- */

static const struct stub *object_in(const void *value, size_t size)
{
	const struct stub *s;
	void *handle;

	if (!value || size != sizeof(handle))
		return NULL;
	memcpy(&handle, value, sizeof(handle));
	if (!(s = stub_of(handle, STUB_MEM)) && !(s = stub_of(handle, STUB_SAMPLER)))
		s = stub_of(handle, STUB_QUEUE);
	return s;
}

static cl_int send_arg(struct stub *s, cl_uint index, struct call *c, uint64_t shape, bool quick)
{
	bool known = index < s->kernel.args && s->kernel.arg_size;
	cl_int status;

	c->era = era_of(s);
	if (known && s->kernel.arg_size[index] == shape && quick)
		return remote_post(c, OP_KERNEL_ARG);
	status = remote_call(c, OP_KERNEL_ARG, NULL);
	if (status == CL_SUCCESS && known) {
		s->kernel.arg_size[index] = shape;
		s->kernel.queue = 0;
	}
	return status;
}

enum { ARG_MAX = 1024 };

static cl_int CL_API_CALL set_arg(cl_kernel kernel, cl_uint index, size_t size, const void *value)
{
	struct stub *s = stub_of(kernel, STUB_KERNEL);
	const struct stub *object = object_in(value, size);
	unsigned kind = object ? ARG_OBJECT : value ? ARG_BYTES : ARG_NULL;
	struct call c = {0};
	uint64_t shape = (1 + size) << 8 | (object ? object->kind : kind);

	if (!s)
		return CL_INVALID_KERNEL;
	if (kind == ARG_BYTES && size == sizeof(void *) && stub_was(*(void *const *)value))
		return CL_INVALID_MEM_OBJECT;	   /* not every runtime would notice */
	if (kind == ARG_BYTES && size > ARG_MAX) { /* there is no such argument */
		if (index < s->kernel.args)
			return CL_INVALID_ARG_SIZE;
		size = ARG_MAX; /* nor such an index, which the runtime may say */
	}
	put(&c, s->id);
	put(&c, index);
	put(&c, size);
	put(&c, kind);
	if (object)
		put(&c, object->id);
	else if (value)
		put_blob(&c, value, size);
	return send_arg(s, index, &c, shape, kind != ARG_NULL);
}

cl_int kernel_set_pointer(struct stub *kernel, cl_uint index, const void *p)
{
	struct call c = {0};

	put(&c, kernel->id);
	put(&c, index);
	put(&c, sizeof(p));
	put(&c, ARG_SVM);
	put(&c, (uint64_t)(uintptr_t)p);
	return send_arg(kernel, index, &c, (1 + sizeof(p)) << 8 | STUB_SVM, p != NULL);
}

/* ---- launches ---- */

static bool same_size(const size_t a[3], const size_t *b)
{
	size_t none[3] = {0};

	return memcmp(a, b ? b : none, 3 * sizeof(*a)) == 0;
}

static void padded(size_t to[3], const size_t *from, cl_uint dims)
{
	memset(to, 0, 3 * sizeof(*to));
	for (cl_uint i = 0; from && i < dims && i < 3; i++)
		to[i] = from[i];
}

void put_launch(struct call *c, const struct stub *q, const struct stub *kernel, cl_uint dims,
		const size_t *offset, const size_t *global, const size_t *local)
{
	size_t o[3], g[3], l[3];

	padded(o, offset, dims);
	padded(g, global, dims);
	padded(l, local, dims);
	put(c, q->id);
	put(c, kernel->id);
	put(c, dims);
	put(c, (offset != NULL) | (global != NULL) << 1 | (local != NULL) << 2);
	for (int i = 0; i < 3; i++) {
		put(c, o[i]);
		put(c, g[i]);
		put(c, l[i]);
	}
}

static cl_int CL_API_CALL launch(cl_command_queue queue, cl_kernel kernel, cl_uint dims,
				 const size_t *offset, const size_t *global, const size_t *local,
				 cl_uint count, const cl_event *list, cl_event *event)
{
	struct stub *q = stub_of(queue, STUB_QUEUE), *s = stub_of(kernel, STUB_KERNEL);
	struct stub_kernel *k = s ? &s->kernel : NULL;
	struct call c = {0};
	size_t o[3], g[3], l[3];
	bool quick;
	cl_int status;

	if (!q || !s)
		return q ? CL_INVALID_KERNEL : CL_INVALID_COMMAND_QUEUE;
	put_launch(&c, q, s, dims, offset, global, local);
	padded(o, offset, dims);
	padded(g, global, dims);
	padded(l, local, dims);
	quick = k->queue == q->id && k->dims == dims && dims <= 3 && global &&
		same_size(k->offset, o) && same_size(k->global, g) && same_size(k->local, l);
	status =
	    remote_enqueue(&c, OP_LAUNCH, q, CL_COMMAND_NDRANGE_KERNEL, quick, count, list, event);
	if (status == CL_SUCCESS && !quick && global && dims <= 3) {
		k->queue = q->id;
		k->dims = dims;
		memcpy(k->offset, o, sizeof(o));
		memcpy(k->global, g, sizeof(g));
		memcpy(k->local, l, sizeof(l));
	}
	return status;
}

static cl_int CL_API_CALL task(cl_command_queue queue, cl_kernel kernel, cl_uint count,
			       const cl_event *list, cl_event *event)
{
	size_t one = 1;

	return launch(queue, kernel, 1, NULL, &one, &one, count, list, event);
}

/* ---- information ---- */

static cl_int CL_API_CALL kernel_info(cl_kernel kernel, cl_kernel_info name, size_t room, void *to,
				      size_t *size_ret)
{
	struct stub *s = stub_of(kernel, STUB_KERNEL);

	if (!s)
		return CL_INVALID_KERNEL;
	if (name == CL_KERNEL_REFERENCE_COUNT)
		return give(&s->refs, sizeof(s->refs), room, to, size_ret);
	/* who has just made it may ask, also when the server has ended since */
	if (name == CL_KERNEL_FUNCTION_NAME && s->list)
		return give(s->list, strlen(s->list) + 1, room, to, size_ret);
	if (name == CL_KERNEL_NUM_ARGS)
		return give(&s->kernel.args, sizeof(s->kernel.args), room, to, size_ret);
	if (name == CL_KERNEL_CONTEXT)
		return give(&s->context, sizeof(void *), room, to, size_ret);
	if (name == CL_KERNEL_PROGRAM)
		return give(&s->parent, sizeof(void *), room, to, size_ret);
	return remote_info(ABOUT_KERNEL, s, 0, name, room, to, size_ret);
}

static cl_int CL_API_CALL arg_info(cl_kernel kernel, cl_uint index, cl_kernel_arg_info name,
				   size_t room, void *to, size_t *size_ret)
{
	struct stub *s = stub_of(kernel, STUB_KERNEL);

	return s ? remote_info(ABOUT_ARG, s, index, name, room, to, size_ret) : CL_INVALID_KERNEL;
}

static cl_int CL_API_CALL group_info(cl_kernel kernel, cl_device_id device,
				     cl_kernel_work_group_info name, size_t room, void *to,
				     size_t *size_ret)
{
	struct stub *s = stub_of(kernel, STUB_KERNEL), *d = stub_of(device, STUB_DEVICE);

	if (!s || (device && !d))
		return s ? CL_INVALID_DEVICE : CL_INVALID_KERNEL;
	return remote_info(ABOUT_WORK_GROUP, s, d ? d->id : 0, name, room, to, size_ret);
}

void kernels_fill(cl_icd_dispatch *d)
{
	d->clCreateKernel = create_kernel;
	d->clCreateKernelsInProgram = create_kernels;
	d->clCloneKernel = remote_clone_kernel;
	d->clRetainKernel = retain_kernel;
	d->clReleaseKernel = release_kernel;
	d->clSetKernelArg = set_arg;
	d->clEnqueueNDRangeKernel = launch;
	d->clEnqueueTask = task;
	d->clGetKernelInfo = kernel_info;
	d->clGetKernelArgInfo = arg_info;
	d->clGetKernelWorkGroupInfo = group_info;
}
