/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands with shared virtual memory, and kernels' pointers to it. Wrong pointers are refused
 * here: the server would follow them. */
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "ocl/remote/remote.h"

#define WAITS cl_uint count, const cl_event *list, cl_event *event

/* ---- commands ---- */

/* [p, p + size) is in one allocation, or begins in none (*s NULL). */
static bool is_whole(const void *p, size_t size, struct stub **s)
{
	*s = svm_at(p);
	return !*s || size <= ((*s)->mem.size - (size_t)((const char *)p - (*s)->mem.host));
}

/* CL_SUCCESS: q is a queue whose device has shared virtual memory. */
static cl_int queue_for(cl_command_queue queue, struct stub **q)
{
	*q = stub_of(queue, STUB_QUEUE);
	if (!*q)
		return CL_INVALID_COMMAND_QUEUE;
	return svm_offer((*q)->parent);
}

/* As queue_for where s, which is in the queue's context, shows it. */
static cl_int queue_with(cl_command_queue queue, const struct stub *s, struct stub **q)
{
	*q = stub_of(queue, STUB_QUEUE);
	return *q && s && s->context == (*q)->context && s->context->device_count == 1
		   ? CL_SUCCESS
		   : queue_for(queue, q);
}

static cl_int CL_API_CALL svm_copy(cl_command_queue queue, cl_bool blocking, void *dst,
				   const void *src, size_t size, WAITS)
{
	struct call c = {0};
	struct stub *to = NULL, *from = NULL, *q;
	bool inside = is_whole(dst, size, &to) & is_whole(src, size, &from);
	cl_int status = queue_with(queue, to ? to : from, &q);
	unsigned flags =
	    (blocking ? SVM_BLOCKING : 0) | (to ? 0 : SVM_TO_HOST) | (from ? 0 : SVM_FROM_HOST);

	if (status != CL_SUCCESS)
		return status;
	if (!dst || !src || size == 0 || !inside)
		return CL_INVALID_VALUE;
	if ((char *)dst < (const char *)src + size && (const char *)src < (char *)dst + size)
		return CL_MEM_COPY_OVERLAP;
	put(&c, q->id);
	put(&c, (uint64_t)(uintptr_t)dst);
	put(&c, (uint64_t)(uintptr_t)src);
	put(&c, size);
	put(&c, flags);
	return remote_enqueue(&c, OP_SVM_COPY, q, CL_COMMAND_SVM_MEMCPY, flags == 0, count, list,
			      event);
}

static cl_int CL_API_CALL svm_fill(cl_command_queue queue, void *p, const void *pattern,
				   size_t bytes, size_t size, WAITS)
{
	struct call c = {0};
	struct stub *s, *q;
	bool inside = is_whole(p, size, &s);
	cl_int status = queue_with(queue, s, &q);

	if (status != CL_SUCCESS)
		return status;
	if (!s || !inside || !pattern || bytes == 0 || bytes > SVM_ALIGN_MAX ||
	    (bytes & (bytes - 1)) || (uintptr_t)p % bytes || size == 0 || size % bytes)
		return CL_INVALID_VALUE;
	put(&c, q->id);
	put(&c, (uint64_t)(uintptr_t)p);
	put(&c, size);
	put_blob(&c, pattern, bytes);
	return remote_enqueue(&c, OP_SVM_FILL, q, CL_COMMAND_SVM_MEMFILL, true, count, list, event);
}

static cl_int CL_API_CALL svm_map(cl_command_queue queue, cl_bool blocking, cl_map_flags flags,
				  void *p, size_t size, WAITS)
{
	const cl_map_flags all = CL_MAP_READ | CL_MAP_WRITE | CL_MAP_WRITE_INVALIDATE_REGION;
	struct call c = {0};
	struct stub *s, *q;
	bool inside = is_whole(p, size, &s);
	cl_int status = queue_with(queue, s, &q);

	if (status != CL_SUCCESS)
		return status;
	if (!s || !inside || size == 0 || (flags & ~all) ||
	    (flags > CL_MAP_WRITE_INVALIDATE_REGION && flags & CL_MAP_WRITE_INVALIDATE_REGION))
		return CL_INVALID_VALUE;
	put(&c, q->id);
	put(&c, (uint64_t)(uintptr_t)p);
	put(&c, size);
	put(&c, flags);
	put(&c, blocking ? SVM_BLOCKING : 0);
	return remote_enqueue(&c, OP_SVM_MAP, q, CL_COMMAND_SVM_MAP, !blocking, count, list, event);
}

static cl_int CL_API_CALL svm_unmap(cl_command_queue queue, void *p, WAITS)
{
	struct call c = {0};
	struct stub *s = svm_at(p), *q;
	cl_int status = queue_with(queue, s, &q);

	if (status != CL_SUCCESS)
		return status;
	if (!s)
		return CL_INVALID_VALUE;
	put(&c, q->id);
	put(&c, (uint64_t)(uintptr_t)p);
	return remote_enqueue(&c, OP_SVM_UNMAP, q, CL_COMMAND_SVM_UNMAP, true, count, list, event);
}

/* Only an order among commands: where it lies is the same memory. */
static cl_int CL_API_CALL svm_migrate(cl_command_queue queue, cl_uint pointers, const void **p,
				      const size_t *sizes, cl_mem_migration_flags flags, WAITS)
{
	struct stub *s, *q;
	cl_int status = queue_for(queue, &q);

	if (status != CL_SUCCESS)
		return status;
	if (pointers == 0 || !p ||
	    (flags & ~(cl_mem_migration_flags)(CL_MIGRATE_MEM_OBJECT_HOST |
					       CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED)))
		return CL_INVALID_VALUE;
	for (cl_uint i = 0; i < pointers; i++)
		if (!is_whole(p[i], sizes ? sizes[i] : 0, &s) || !s)
			return CL_INVALID_VALUE;
	return remote_order(q, ORDER_MARKER, CL_COMMAND_SVM_MIGRATE_MEM, count, list, event);
}

/* ---- freed by a command ---- */

struct svm_commands_later {
	cl_command_queue queue; /* retained */
	void(CL_CALLBACK *fn)(cl_command_queue, cl_uint, void *[], void *);
	void *data;
	cl_uint count;
	void *at[];
};

static void CL_CALLBACK free_now(cl_event e, cl_int status, void *data)
{
	struct svm_commands_later *l = data;

	if (l->fn)
		l->fn(l->queue, l->count, l->at, l->data);
	for (cl_uint i = 0; !l->fn && i < l->count; i++)
		remote_dispatch.clSVMFree((cl_context)((struct stub *)l->queue)->context, l->at[i]);
	stub_release(l->queue, STUB_QUEUE, 0);
	stub_release(e, STUB_EVENT, 0);
	free(l);
}

static cl_int CL_API_CALL svm_free_later(cl_command_queue queue, cl_uint pointers, void *p[],
					 void(CL_CALLBACK *fn)(cl_command_queue, cl_uint, void *[],
							       void *),
					 void *data, WAITS)
{
	struct stub *q;
	struct svm_commands_later *l;
	cl_event done = NULL;
	cl_int status = queue_for(queue, &q);

	if (status != CL_SUCCESS)
		return status;
	if (pointers == 0 || !p)
		return CL_INVALID_VALUE;
	for (cl_uint i = 0; i < pointers; i++)
		if (!p[i])
			return CL_INVALID_VALUE;
	l = malloc(sizeof(*l) + pointers * sizeof(void *));
	if (!l)
		return CL_OUT_OF_HOST_MEMORY;
	*l = (struct svm_commands_later){queue, fn, data, pointers};
	memcpy(l->at, p, pointers * sizeof(void *));
	status = remote_order(q, ORDER_MARKER, CL_COMMAND_SVM_FREE, count, list, &done);
	if (status != CL_SUCCESS) {
		free(l);
		return status;
	}
	stub_retain(queue, STUB_QUEUE, 0);
	if (event) {
		stub_retain(done, STUB_EVENT, 0);
		*event = done;
	}
	status = remote_dispatch.clSetEventCallback(done, CL_COMPLETE, free_now, l);
	if (status != CL_SUCCESS) /* nothing runs any more that might use it */
		free_now(done, status, l);
	return CL_SUCCESS;
}

/* ---- kernels ---- */

static cl_int CL_API_CALL set_kernel_pointer(cl_kernel kernel, cl_uint index, const void *p)
{
	struct stub *k = stub_of(kernel, STUB_KERNEL), *s;
	cl_int status;

	if (!k)
		return CL_INVALID_KERNEL;
	s = svm_at(p);
	if ((!s || s->context != k->context) && (status = svm_offer_in(k->context)) != CL_SUCCESS)
		return status;
	if (p && !s)
		return index < k->kernel.args ? CL_INVALID_ARG_VALUE : CL_INVALID_ARG_INDEX;
	return kernel_set_pointer(k, index, p);
}

/* Any allocation may be reached through any other without being told: here it is only looked at. */
static cl_int CL_API_CALL exec_info(cl_kernel kernel, cl_kernel_exec_info name, size_t size,
				    const void *value)
{
	struct stub *k = stub_of(kernel, STUB_KERNEL);
	void *const *p = value;
	cl_int status;

	if (!k)
		return CL_INVALID_KERNEL;
	status = svm_offer_in(k->context);
	if (status != CL_SUCCESS)
		return status;
	if (!value)
		return CL_INVALID_VALUE;
	if (name == CL_KERNEL_EXEC_INFO_SVM_FINE_GRAIN_SYSTEM)
		return size != sizeof(cl_bool)	 ? CL_INVALID_VALUE
		       : *(const cl_bool *)value ? CL_INVALID_OPERATION
						 : CL_SUCCESS;
	if (name != CL_KERNEL_EXEC_INFO_SVM_PTRS || size == 0 || size % sizeof(void *))
		return CL_INVALID_VALUE;
	for (size_t i = 0; i < size / sizeof(void *); i++)
		if (!svm_at(p[i]))
			return CL_INVALID_VALUE;
	return CL_SUCCESS;
}

void svm_fill_commands(cl_icd_dispatch *d)
{
	d->clEnqueueSVMMemcpy = svm_copy;
	d->clEnqueueSVMMemFill = svm_fill;
	d->clEnqueueSVMMap = svm_map;
	d->clEnqueueSVMUnmap = svm_unmap;
	d->clEnqueueSVMMigrateMem = svm_migrate;
	d->clEnqueueSVMFree = svm_free_later;
	d->clSetKernelArgSVMPointer = set_kernel_pointer;
	d->clSetKernelExecInfo = exec_info;
}
