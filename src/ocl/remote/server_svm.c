/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared virtual memory: the program's, mapped here at the same addresses (svm.c). It is offered
 * where a device takes any memory of this process for shared virtual memory: devices that say so
 * (fine-grained system memory), and those of PoCL that are this machine's processors, whose
 * clSVMAlloc is malloc. The runtime itself allocates none. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "base/base.h"
#include "ocl/remote/server_transfers.h"

void svm_open(void)
{
	void *at = (void *)(uintptr_t)wire->svm_base;

	/* where it lies is known; it stays for as long as the process */
	if (wire->svm_bytes > 0 &&
	    /* cppcheck-suppress leakReturnValNotUsed */
	    mmap(at, wire->svm_bytes, PROT_READ | PROT_WRITE,
		 MAP_SHARED | MAP_NORESERVE | MAP_FIXED_NOREPLACE, WIRE_SVM_FD, 0) != at)
		wire->svm_bytes = 0;
	if (wire->svm_bytes > 0)
		madvise(at, wire->svm_bytes, MADV_DONTDUMP);
	close(WIRE_SVM_FD);
}

static bool is_in(uint64_t address, size_t size)
{
	return address >= wire->svm_base && size <= wire->svm_bytes &&
	       address - wire->svm_base <= wire->svm_bytes - size;
}

static bool is_processor_of_pocl(cl_device_id d)
{
	cl_platform_id platform = NULL;
	cl_device_type type = 0;
	cl_bool unified = CL_FALSE;
	char name[64] = "";

	clGetDeviceInfo(d, CL_DEVICE_TYPE, sizeof(type), &type, NULL);
	clGetDeviceInfo(d, CL_DEVICE_HOST_UNIFIED_MEMORY, sizeof(unified), &unified, NULL);
	clGetDeviceInfo(d, CL_DEVICE_PLATFORM, sizeof(cl_platform_id), &platform, NULL);
	clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof(name) - 1, name, NULL);
	return type & CL_DEVICE_TYPE_CPU && unified &&
	       strcmp(name, "Portable Computing Language") == 0;
}

static cl_device_svm_capabilities capabilities(cl_device_id d)
{
	cl_device_svm_capabilities all = 0;

	if (clGetDeviceInfo(d, CL_DEVICE_SVM_CAPABILITIES, sizeof(all), &all, NULL) != CL_SUCCESS)
		return 0;
	return all;
}

bool svm_device_has(cl_device_id d)
{
	cl_device_svm_capabilities all = wire->svm_bytes > 0 ? capabilities(d) : 0;

	return all & CL_DEVICE_SVM_FINE_GRAIN_SYSTEM ||
	       (all & CL_DEVICE_SVM_COARSE_GRAIN_BUFFER && is_processor_of_pocl(d));
}

bool svm_has(uint64_t address, size_t size)
{
	return wire->svm_bytes > 0 && is_in(address, size);
}

void svm_kernel(cl_kernel k, cl_device_id d)
{
	const cl_bool yes = CL_TRUE;

	if (wire->svm_bytes > 0 && capabilities(d) & CL_DEVICE_SVM_FINE_GRAIN_SYSTEM)
		clSetKernelExecInfo(k, CL_KERNEL_EXEC_INFO_SVM_FINE_GRAIN_SYSTEM, sizeof(yes),
				    &yes);
}

/* ---- allocations ---- */

static cl_int check_size(cl_context c, size_t size)
{
	cl_device_id list[DEVICES_MAX];
	size_t bytes = 0;
	bool offered = false;

	if (clGetContextInfo(c, CL_CONTEXT_DEVICES, sizeof(list), list, &bytes) != CL_SUCCESS)
		return CL_INVALID_CONTEXT;
	for (size_t i = 0; i < bytes / sizeof(cl_device_id); i++) {
		cl_ulong most = 0;

		if (!svm_device_has(list[i]))
			continue;
		offered = true;
		clGetDeviceInfo(list[i], CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof(most), &most, NULL);
		if (size > most)
			return CL_INVALID_BUFFER_SIZE;
	}
	return offered ? CL_SUCCESS : CL_INVALID_OPERATION;
}

cl_int serve_svm(struct in *in)
{
	uint64_t id = next(in), context = next(in), address = next(in);
	size_t size = next(in);
	cl_context c = real_of(context, STUB_CONTEXT);
	cl_int status = c ? check_size(c, size) : CL_INVALID_CONTEXT;
	struct obj *o;

	if (status != CL_SUCCESS)
		return status;
	if (!is_in(address, size))
		return CL_INVALID_VALUE;
	if (obj_at(id) && obj_at(id)->kind == STUB_SVM) /* it belongs to another context now */
		obj_release(id);
	if (!obj_is_unused(id))
		return CL_INVALID_VALUE;
	o = obj_set(id, STUB_SVM, (void *)(uintptr_t)address, context);
	o->size = size;
	return record_add(in->r) ? CL_SUCCESS : CL_OUT_OF_HOST_MEMORY;
}

/* ---- commands ---- */

/* Whether host memory is as long as it is said to be, before as much is asked for here. */
static bool is_there(uint64_t address, size_t size)
{
	char byte;

	for (size_t at = 0; at < size; at += 64ul << 20)
		if (!fetch(&byte, address + at, 1))
			return false;
	return size == 0 || fetch(&byte, address + size - 1, 1);
}

struct server_svm_place {
	cl_command_queue q;
	cl_context context;
	void *at;
	struct waits w;
	unsigned flags;
};

/* Puts what host memory has into data, or sees to it that it comes before the command runs, which
 * then waits for it. Takes over data if it fails. */
static cl_int bring(struct server_svm_place *p, uint64_t src, size_t size, char *data,
		    struct late **late)
{
	const struct far far = {.address = src, .bytes = size, .rows = 1, .planes = 1};
	cl_event read[LATE_MAX];
	cl_uint n = late_reads(p->context, &far, read);

	if (n == 0 && fetch(data, src, size))
		return CL_SUCCESS;
	if (n == 0) {
		free(data);
		return CL_INVALID_VALUE;
	}
	*late = late_begin(p->context, &far, data, n, read);
	if (!*late)
		return CL_OUT_OF_HOST_MEMORY;
	if (!p->w.list)
		p->w.list = p->w.few;
	p->w.list[p->w.count++] = late_gate(*late); /* there is room: waits_take */
	return CL_SUCCESS;
}

/* data: of the side that is host memory. */
static cl_int issue_copy(const struct server_svm_place *p, void *dst, const void *src, size_t size,
			 char *data, cl_event *done)
{
	unsigned host = p->flags & (SVM_TO_HOST | SVM_FROM_HOST);

	if (host == (SVM_TO_HOST | SVM_FROM_HOST))
		return clEnqueueMarkerWithWaitList(p->q, p->w.count, p->w.list, done);
	return clEnqueueSVMMemcpy(p->q, CL_FALSE, host & SVM_TO_HOST ? data : dst,
				  host & SVM_FROM_HOST ? data : src, size, p->w.count, p->w.list,
				  done);
}

/* Host memory is the program's alone: it is brought here, or taken there when the copy is done. */
static cl_int copy(struct in *in, struct server_svm_place *p, cl_event *done)
{
	uint64_t src = next(in), dst = (uint64_t)(uintptr_t)p->at;
	size_t size = next(in);
	struct late *late = NULL;
	char *data = NULL;
	cl_int status = CL_SUCCESS;

	p->flags = (unsigned)next(in);
	waits_take(in, &p->w);
	if ((!(p->flags & SVM_TO_HOST) && !is_in(dst, size)) ||
	    (!(p->flags & SVM_FROM_HOST) && !is_in(src, size)) ||
	    (p->flags & SVM_FROM_HOST && !is_there(src, size)))
		return CL_INVALID_VALUE;
	if (p->w.count > 0 && !p->w.list)
		return CL_INVALID_EVENT_WAIT_LIST;
	if (p->flags & (SVM_TO_HOST | SVM_FROM_HOST) && !(data = malloc(size)))
		return CL_OUT_OF_HOST_MEMORY;
	if (p->flags & SVM_FROM_HOST)
		status = bring(p, src, size, data, &late);
	if (status != CL_SUCCESS)
		return status;
	status = issue_copy(p, p->at, (void *)(uintptr_t)src, size, data, done);
	if (status == CL_SUCCESS && data)
		keep_transfer(*done, data, p->flags & SVM_TO_HOST, dst, size);
	else if (!late)
		free(data);
	if (late)
		late_end(late, status != CL_SUCCESS);
	return status;
}

static cl_int fill(struct in *in, struct server_svm_place *p, cl_event *done)
{
	size_t size = next(in), n;
	const void *pattern = next_blob(in, &n);

	waits_take(in, &p->w);
	if (!is_in((uint64_t)(uintptr_t)p->at, size))
		return CL_INVALID_VALUE;
	return clEnqueueSVMMemFill(p->q, p->at, pattern, n, size, p->w.count, p->w.list, done);
}

static cl_int map(struct in *in, struct server_svm_place *p, cl_event *done)
{
	size_t size = next(in);
	cl_map_flags flags = next(in);

	p->flags = (unsigned)next(in);
	waits_take(in, &p->w);
	if (!is_in((uint64_t)(uintptr_t)p->at, size))
		return CL_INVALID_VALUE;
	return clEnqueueSVMMap(p->q, CL_FALSE, flags, p->at, size, p->w.count, p->w.list, done);
}

cl_int serve_svm_command(struct in *in, struct out *out)
{
	const struct obj *o = obj_at(in->r->word[0]);
	struct server_svm_place p = {.q = real_of(next(in), STUB_QUEUE)};
	cl_event done = NULL;
	cl_int status;

	p.context = o ? real_of(o->context, STUB_CONTEXT) : NULL;
	p.at = (void *)(uintptr_t)next(in);
	if (in->r->op == OP_SVM_COPY) {
		status = copy(in, &p, &done);
	} else if (in->r->op == OP_SVM_FILL) {
		status = fill(in, &p, &done);
	} else if (in->r->op == OP_SVM_MAP) {
		status = map(in, &p, &done);
	} else {
		waits_take(in, &p.w);
		status = !is_in((uint64_t)(uintptr_t)p.at, 1)
			     ? CL_INVALID_VALUE
			     : clEnqueueSVMUnmap(p.q, p.at, p.w.count, p.w.list, &done);
	}
	p.w.made = done;
	if (status != CL_SUCCESS)
		return waits_done(&p.w, status);
	if (p.flags & SVM_BLOCKING)
		status = wait_and_reply(NULL, 1, &done, out);
	if (!p.w.event)
		clReleaseEvent(done);
	waits_done(&p.w, CL_SUCCESS);
	return status;
}
