/* SPDX-License-Identifier: BSD-3-Clause */
/* A logged command as a call of the runtime: the first time and at every replay. Never blocking,
 * but where e->blocks: who must wait waits for the event. */
#include <stdlib.h>
#include "base/base.h"
#include "ocl/entry/entry.h"
#include "ocl/log/log.h"
#include "ocl/ocl.h"

static cl_mem real_mem(struct mem *m, cl_mem handle)
{
	return m ? OBJ(m)->real : handle;
}

static cl_int issue_buffer(const struct ocl_entry *e, cl_command_queue q, void *host, cl_uint n,
			   const cl_event *w, cl_event *event)
{
	cl_mem dst = real_mem(e->dst, e->dst_handle), src = real_mem(e->src, e->src_handle);

	switch (e->op) {
	case OP_READ:
		return NEXT->clEnqueueReadBuffer(q, src, e->blocks, e->a[0], e->region[0], host, n,
						 w, event);
	case OP_WRITE:
		return NEXT->clEnqueueWriteBuffer(q, dst, e->blocks, e->a[0], e->region[0], host, n,
						  w, event);
	case OP_READ_RECT:
		return NEXT->clEnqueueReadBufferRect(q, src, e->blocks, e->a, e->b, e->region,
						     e->pitch[0], e->pitch[1], e->pitch[2],
						     e->pitch[3], host, n, w, event);
	case OP_WRITE_RECT:
		return NEXT->clEnqueueWriteBufferRect(q, dst, e->blocks, e->a, e->b, e->region,
						      e->pitch[0], e->pitch[1], e->pitch[2],
						      e->pitch[3], host, n, w, event);
	case OP_COPY:
		return NEXT->clEnqueueCopyBuffer(q, src, dst, e->a[0], e->b[0], e->region[0], n, w,
						 event);
	case OP_COPY_RECT:
		return NEXT->clEnqueueCopyBufferRect(q, src, dst, e->a, e->b, e->region,
						     e->pitch[0], e->pitch[1], e->pitch[2],
						     e->pitch[3], n, w, event);
	default:
		return NEXT->clEnqueueFillBuffer(q, dst, host, e->b[0], e->a[0], e->region[0], n, w,
						 event);
	}
}

static cl_int issue_image(const struct ocl_entry *e, cl_command_queue q, void *host, cl_uint n,
			  const cl_event *w, cl_event *event)
{
	cl_mem dst = real_mem(e->dst, e->dst_handle), src = real_mem(e->src, e->src_handle);

	switch (e->op) {
	case OP_READ_IMAGE:
		return NEXT->clEnqueueReadImage(q, src, e->blocks, e->a, e->region, e->pitch[0],
						e->pitch[1], host, n, w, event);
	case OP_WRITE_IMAGE:
		return NEXT->clEnqueueWriteImage(q, dst, e->blocks, e->a, e->region, e->pitch[0],
						 e->pitch[1], host, n, w, event);
	case OP_COPY_IMAGE:
		return NEXT->clEnqueueCopyImage(q, src, dst, e->a, e->b, e->region, n, w, event);
	case OP_COPY_IMAGE_TO_BUFFER:
		return NEXT->clEnqueueCopyImageToBuffer(q, src, dst, e->a, e->region, e->b[0], n, w,
							event);
	case OP_COPY_BUFFER_TO_IMAGE:
		return NEXT->clEnqueueCopyBufferToImage(q, src, dst, e->a[0], e->b, e->region, n, w,
							event);
	default:
		return NEXT->clEnqueueFillImage(q, dst, host, e->a, e->region, n, w, event);
	}
}

static cl_int issue_migrate(const struct ocl_entry *e, cl_command_queue q, cl_uint n,
			    const cl_event *w, cl_event *event)
{
	cl_mem *real = calloc(e->count + 1ul, sizeof(*real));
	const cl_mem *list = e->data.memory;
	cl_int status;

	if (!real)
		return CL_OUT_OF_HOST_MEMORY;
	for (cl_uint i = 0; i < e->count; i++)
		real[i] = ocl_real(list[i], OCL_MEM);
	status = NEXT->clEnqueueMigrateMemObjects(q, e->count, real, e->flags, n, w, event);
	free(real);
	return status;
}

static cl_int issue_kernel(const struct ocl_entry *e, cl_command_queue q, cl_uint n,
			   const cl_event *w, cl_event *event)
{
	cl_kernel k = e->kernel ? OBJ(e->kernel)->real : e->kernel_handle;

	if (e->op == OP_TASK)
		return NEXT->clEnqueueTask(q, k, n, w, event);
	return NEXT->clEnqueueNDRangeKernel(q, k, e->count, e->has[0] ? e->a : NULL,
					    e->has[1] ? e->b : NULL, e->has[2] ? e->region : NULL,
					    n, w, event);
}

/* The runtime takes a copy of the arguments. */
static cl_int issue_native(const struct ocl_entry *e, cl_command_queue q, cl_uint n,
			   const cl_event *w, cl_event *event)
{
	char *args = e->data.memory;
	const size_t *offset = (const size_t *)(args + ALIGN_UP(e->region[0], sizeof(size_t)));
	cl_mem *mems = calloc(e->used_count + 1ul, sizeof(cl_mem));
	const void **places = calloc(e->used_count + 1ul, sizeof(void *));
	cl_int status = CL_OUT_OF_HOST_MEMORY;

	for (uint32_t i = 0; mems && places && i < e->used_count; i++) {
		mems[i] = e->used[i]->real;
		places[i] = args + offset[i];
	}
	if (mems && places)
		status = NEXT->clEnqueueNativeKernel(
		    q, e->native, e->region[0] ? args : NULL, e->region[0], e->used_count,
		    e->used_count ? mems : NULL, e->used_count ? places : NULL, n, w, event);
	free(mems);
	free(places);
	return status;
}

static cl_int issue_map(const struct ocl_entry *e, cl_command_queue q, void *host, cl_uint n,
			const cl_event *w, cl_event *event, void **map)
{
	cl_mem m = real_mem(e->src, e->src_handle);
	cl_int status;

	switch (e->op) {
	case OP_MAP:
		*map = NEXT->clEnqueueMapBuffer(q, m, e->blocks, e->flags, e->a[0], e->region[0], n,
						w, event, &status);
		return status;
	case OP_MAP_IMAGE:
		/* the pitches go to the program and into the entry alike */
		*map = NEXT->clEnqueueMapImage(q, m, e->blocks, e->flags, e->a, e->region,
					       (size_t *)e->b[0], (size_t *)e->b[1], n, w, event,
					       &status);
		return status;
	default:
		return NEXT->clEnqueueUnmapMemObject(q, real_mem(e->dst, e->dst_handle), host, n, w,
						     event);
	}
}

static cl_int issue_svm(const struct ocl_entry *e, cl_command_queue q, void *host, cl_uint n,
			const cl_event *w, cl_event *event)
{
	void *dst = (void *)e->a[0];

	switch (e->op) {
	case OP_SVM_COPY:
		return NEXT->clEnqueueSVMMemcpy(q, e->blocks, dst,
						e->from_host ? host : (void *)e->b[0], e->region[0],
						n, w, event);
	case OP_SVM_FILL:
		return NEXT->clEnqueueSVMMemFill(q, dst, e->data.memory, e->b[0], e->region[0], n,
						 w, event);
	case OP_SVM_MAP:
		return NEXT->clEnqueueSVMMap(q, e->blocks, e->flags, dst, e->region[0], n, w,
					     event);
	default:
		return NEXT->clEnqueueSVMUnmap(q, dst, n, w, event);
	}
}

static cl_int issue_svm_migrate(const struct ocl_entry *e, cl_command_queue q, cl_uint n,
				const cl_event *w, cl_event *event)
{
	const void **pointers = e->data.memory;

	if (!pointers)
		return CL_OUT_OF_HOST_MEMORY;
	return NEXT->clEnqueueSVMMigrateMem(q, e->count, pointers,
					    e->has[0] ? (size_t *)(pointers + e->count) : NULL,
					    e->flags, n, w, event);
}

cl_int ocl_issue(const struct ocl_entry *e, cl_command_queue q, void *host, cl_uint n,
		 const cl_event *w, cl_event *event, void **map)
{
	switch (e->op) {
	case OP_READ:
	case OP_READ_RECT:
	case OP_WRITE:
	case OP_WRITE_RECT:
	case OP_COPY:
	case OP_COPY_RECT:
	case OP_FILL:
		return issue_buffer(e, q, e->op == OP_FILL ? e->data.memory : host, n, w, event);
	case OP_READ_IMAGE:
	case OP_WRITE_IMAGE:
	case OP_COPY_IMAGE:
	case OP_COPY_IMAGE_TO_BUFFER:
	case OP_COPY_BUFFER_TO_IMAGE:
	case OP_FILL_IMAGE:
		return issue_image(e, q, e->op == OP_FILL_IMAGE ? e->data.memory : host, n, w,
				   event);
	case OP_KERNEL:
	case OP_TASK:
		return issue_kernel(e, q, n, w, event);
	case OP_NATIVE:
		return issue_native(e, q, n, w, event);
	case OP_RECORDED:
		return ocl_recorded_issue(e, q, n, w, event);
	case OP_MAP:
	case OP_MAP_IMAGE:
	case OP_UNMAP:
		return issue_map(e, q, host, n, w, event, map);
	case OP_MARKER:
		return NEXT->clEnqueueMarkerWithWaitList(q, n, w, event);
	case OP_BARRIER:
		return NEXT->clEnqueueBarrierWithWaitList(q, n, w, event);
	case OP_SVM_COPY:
	case OP_SVM_FILL:
	case OP_SVM_MAP:
	case OP_SVM_UNMAP:
		return issue_svm(e, q, host, n, w, event);
	case OP_MIGRATE:
		return issue_migrate(e, q, n, w, event);
	case OP_SVM_MIGRATE:
		return issue_svm_migrate(e, q, n, w, event);
	case OP_SVM_FREE:
		return ocl_svm_free_issue(e, q, n, w, event);
	case OP_INIT:
		break;
	}
	return CL_INVALID_OPERATION;
}
