/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared virtual memory: which allocation an address belongs to, and their lives. */
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "ocl/calls.h"
#include "ocl/entry/entry.h"
#include "ocl/epoch/epoch.h"

/* ---- by address ---- */

/* How many begin at or before at. */
static uint32_t svm_until(const struct domain *d, size_t at)
{
	uint32_t low = 0, high = d->svm_count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if ((size_t)OBJ(d->svm[middle])->handle > at)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

struct mem *ocl_svm_at(struct domain *d, size_t at)
{
	uint32_t i = svm_until(d, at);
	struct mem *m = i > 0 ? d->svm[i - 1] : NULL;

	return m && at - (size_t)OBJ(m)->handle < m->size ? m : NULL;
}

bool ocl_svm_add(struct domain *d, struct mem *m)
{
	uint32_t i = svm_until(d, (size_t)OBJ(m)->handle);

	if (d->svm_count == d->svm_room) {
		uint32_t room = d->svm_room ? 2 * d->svm_room : 64;
		struct mem **more = realloc(d->svm, room * sizeof(struct mem *));
		if (!more)
			return false;
		d->svm = more;
		d->svm_room = room;
	}
	memmove(&d->svm[i + 1], &d->svm[i], (d->svm_count - i) * sizeof(struct mem *));
	d->svm[i] = m;
	d->svm_count++;
	return true;
}

void ocl_svm_remove(struct domain *d, const struct mem *m)
{
	uint32_t i = svm_until(d, (size_t)OBJ(m)->handle);

	while (i > 0 && d->svm[i - 1] != m)
		i--;
	if (i == 0)
		return;
	memmove(&d->svm[i - 1], &d->svm[i], (d->svm_count - i) * sizeof(struct mem *));
	d->svm_count--;
}

/* ---- allocating ---- */

/* That call gives no code. */
static cl_int why_none(cl_context c)
{
	cl_int status = CL_SUCCESS;
	cl_event e = NEXT->clCreateUserEvent(ocl_real(c, OCL_CONTEXT), &status);

	if (e)
		NEXT->clReleaseEvent(e);
	return status;
}

void *CL_API_CALL layer_clSVMAlloc(cl_context c, cl_svm_mem_flags flags, size_t size,
				   cl_uint alignment)
{
	MADE_LOCKED;
	struct domain *d;
	uint32_t moves;
	struct mem *m;
	void *p;

	do {
		moves = ocl.moves;
		p = NEXT->clSVMAlloc(ocl_real(c, OCL_CONTEXT), flags, size, alignment);
	} while (!p && ocl_again(c, OCL_CONTEXT, why_none(c), moves));
	if (!p || ocl.passive)
		return p;
	ocl_lock();
	d = ocl_find(c, OCL_CONTEXT);
	m = d ? ocl_object_create(sizeof(*m), OCL_SVM, p, d) : NULL;
	if (m) {
		m->root = m;
		m->type = CL_MEM_OBJECT_BUFFER;
		m->size = m->region[0] = size;
		m->region[1] = m->region[2] = 1;
		m->flags = flags;
		m->read_only = flags & CL_MEM_READ_ONLY;
		m->modified = OCL_BY_DEVICE;
		ocl_mem_layout(m);
		if (!ocl_svm_add(d, m))
			d->unprotected = true;
		if (flags & CL_MEM_SVM_FINE_GRAIN_BUFFER)
			d->fine_svm++;
	}
	ocl_unlock();
	return p;
}

/* Put off like other last releases while the log needs the memory. */
void CL_API_CALL layer_clSVMFree(cl_context c, void *p)
{
	struct ocl_object *o;

	ocl_lock();
	o = ocl.passive ? NULL : ocl_find(p, OCL_SVM);
	if (!o && !ocl.passive && ocl_is_ghost(p, OCL_SVM)) { /* freed already: it is ours */
		ocl_unlock();
		return;
	}
	if (!o) {
		ocl_unlock();
		NEXT->clSVMFree(ocl_real(c, OCL_CONTEXT), p);
		return;
	}
	if (o->held == 0)
		NEXT->clSVMFree(OBJ(o->domain)->real, p);
	ocl_release(p, OCL_SVM); /* no other thread finds what is free */
	ocl_unlock();
}
