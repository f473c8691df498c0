/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernels and their arguments. The arguments of a launch are a snapshot that the log shares with
 * the kernel until the program sets another one. */
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "ocl/calls.h"
#include "ocl/entry/entry.h"
#include "ocl/epoch/epoch.h"

/* ---- snapshots of arguments ---- */

struct args *ocl_args_ref(struct args *a)
{
	a->refs++;
	return a;
}

void ocl_args_unref(struct args *a)
{
	if (!a || --a->refs > 0)
		return;
	for (cl_uint i = 0; i < a->count; i++)
		free(a->at[i].value);
	free(a);
}

static struct args *args_new(cl_uint count)
{
	struct args *a = calloc(1, sizeof(*a) + count * sizeof(a->at[0]));

	if (a) {
		a->refs = 1;
		a->count = count;
	}
	return a;
}

static bool copy_value(struct arg *to, const void *value, size_t size)
{
	void *v = NULL;

	if (value) {
		v = to->value && to->size >= size ? to->value : malloc(size ? size : 1);
		if (!v)
			return false;
		memcpy(v, value, size);
	}
	if (v != to->value)
		free(to->value);
	to->value = v;
	to->size = size;
	return true;
}

/* The kernel's arguments, to be changed: its own copy if the log refers to them. */
static struct args *args_to_change(struct kernel *k)
{
	struct args *old = k->args, *a;

	if (!old || old->refs == 1)
		return old;
	a = args_new(old->count);
	if (!a)
		return NULL;
	for (cl_uint i = 0; i < a->count; i++) {
		a->at[i] = old->at[i];
		a->at[i].value = NULL;
		if (!copy_value(&a->at[i], old->at[i].value, old->at[i].size)) {
			ocl_args_unref(a);
			return NULL;
		}
	}
	ocl_args_unref(old);
	k->args = a;
	return a;
}

/* ---- kernels ---- */

static void kernel_add(struct ocl_program *p, cl_kernel handle)
{
	struct kernel *k = ocl_object_create(sizeof(*k), OCL_KERNEL, handle, OBJ(p)->domain);
	cl_uint count = 0;
	size_t len = 0;

	if (!k)
		return;
	k->program = p;
	ocl_hold(OBJ(p));
	ocl_kin_add(OBJ(p));
	NEXT->clGetKernelInfo(handle, CL_KERNEL_NUM_ARGS, sizeof(count), &count, NULL);
	k->args = args_new(count);
	NEXT->clGetKernelInfo(handle, CL_KERNEL_FUNCTION_NAME, 0, NULL, &len);
	k->name = calloc(1, len + 1);
	if (k->name)
		NEXT->clGetKernelInfo(handle, CL_KERNEL_FUNCTION_NAME, len, k->name, NULL);
}

void ocl_kernel_fini(struct kernel *k)
{
	ocl_args_unref(k->args);
	free(k->name);
	if (k->program)
		ocl_drop(OBJ(k->program));
}

cl_kernel CL_API_CALL layer_clCreateKernel(cl_program program, const char *name, cl_int *status)
{
	MADE_LOCKED;
	struct ocl_program *p;
	cl_kernel handle;
	cl_int code;

	MAKE_OF(program, OCL_PROGRAM, status,
		handle = NEXT->clCreateKernel(ocl_real(program, OCL_PROGRAM), name, &code));
	if (!handle || ocl.passive)
		return handle;
	ocl_lock();
	p = ocl_find(program, OCL_PROGRAM);
	if (p)
		kernel_add(p, handle);
	ocl_unlock();
	return handle;
}

cl_int CL_API_CALL layer_clCreateKernelsInProgram(cl_program program, cl_uint room,
						  cl_kernel *kernels, cl_uint *count)
{
	MADE_LOCKED;
	cl_uint n = 0;
	struct ocl_program *p;
	uint32_t moves;
	cl_int status;

	do {
		moves = ocl.moves;
		status = NEXT->clCreateKernelsInProgram(ocl_real(program, OCL_PROGRAM), room,
							kernels, &n);
	} while (ocl_again(program, OCL_PROGRAM, status, moves));
	if (count)
		*count = n;
	if (status != CL_SUCCESS || !kernels || ocl.passive)
		return status;
	ocl_lock();
	p = ocl_find(program, OCL_PROGRAM);
	for (cl_uint i = 0; p && i < n && i < room; i++)
		kernel_add(p, kernels[i]);
	ocl_unlock();
	return status;
}

cl_kernel CL_API_CALL layer_clCloneKernel(cl_kernel source, cl_int *status)
{
	MADE_LOCKED;
	struct kernel *from, *to;
	cl_kernel handle;
	cl_int code;

	MAKE_OF(source, OCL_KERNEL, status,
		handle = NEXT->clCloneKernel(ocl_real(source, OCL_KERNEL), &code));
	if (!handle || ocl.passive)
		return handle;
	ocl_lock();
	from = ocl_find(source, OCL_KERNEL);
	if (from) {
		kernel_add(from->program, handle);
		to = ocl_find(handle, OCL_KERNEL);
		if (to && from->args) {
			ocl_args_unref(to->args);
			to->args = ocl_args_ref(from->args);
			to->svm_pointers = from->svm_pointers;
			to->svm_system = from->svm_system;
		}
	}
	ocl_unlock();
	return handle;
}

cl_int CL_API_CALL layer_clRetainKernel(cl_kernel k)
{
	return ocl_retained(k, OCL_KERNEL, NEXT->clRetainKernel(ocl_checked(k, OCL_KERNEL)));
}

cl_int CL_API_CALL layer_clReleaseKernel(cl_kernel k)
{
	return ocl_release(k, OCL_KERNEL);
}

/* ---- setting arguments ---- */

static bool is_sampler(struct kernel *k, cl_uint index)
{
	char type[64] = "";

	NEXT->clGetKernelArgInfo(OBJ(k)->real, index, CL_KERNEL_ARG_TYPE_NAME, sizeof(type) - 1,
				 type, NULL);
	return strcmp(type, "sampler_t") == 0;
}

/* What the runtime is given: the object itself where the program's handle is that of a moved one.
 */
static const void *real_value(const void *value, size_t size, void **room)
{
	struct ocl_object *o = NULL;
	void *handle;

	if (LIKELY(!ocl.moves) || !value || size != sizeof(void *))
		return value;
	memcpy(&handle, value, sizeof(handle));
	if (!(o = ocl_find(handle, OCL_MEM)) && !(o = ocl_find(handle, OCL_SAMPLER)))
		o = ocl_find(handle, OCL_QUEUE);
	if (!o)
		return value;
	*room = o->real;
	return room;
}

/* An object that the program has released, and that only the log still has: where the kernel wants
 * one; the same bits may as well be a number. */
static cl_int look_at_value(struct kernel *k, cl_uint index, size_t size, const void *value)
{
	cl_kernel_arg_address_qualifier space = 0;
	struct ocl_object *o;
	void *handle;

	if (!value || size != sizeof(void *))
		return CL_SUCCESS;
	memcpy(&handle, value, sizeof(handle));
	o = ocl_find_held(handle);
	if (!o || !ocl_is_ghost(handle, o->kind) ||
	    NEXT->clGetKernelArgInfo(OBJ(k)->real, index, CL_KERNEL_ARG_ADDRESS_QUALIFIER,
				     sizeof(space), &space, NULL) != CL_SUCCESS)
		return CL_SUCCESS;
	if (o->kind == OCL_MEM &&
	    (space == CL_KERNEL_ARG_ADDRESS_GLOBAL || space == CL_KERNEL_ARG_ADDRESS_CONSTANT))
		return CL_INVALID_MEM_OBJECT;
	return o->kind == OCL_SAMPLER && is_sampler(k, index) ? CL_INVALID_SAMPLER : CL_SUCCESS;
}

cl_int CL_API_CALL layer_clSetKernelArg(cl_kernel handle, cl_uint index, size_t size,
					const void *value)
{
	struct kernel *k;
	struct args *a;
	void *room;
	uint32_t moves;
	cl_int status;

	if (UNLIKELY(ocl.passive))
		return NEXT->clSetKernelArg(handle, index, size, value);
	ocl_lock();
	k = ocl_find(handle, OCL_KERNEL);
	if (UNLIKELY(ocl.dead) && k && (status = look_at_value(k, index, size, value))) {
		ocl_unlock();
		return status;
	}
	do {
		moves = ocl.moves;
		status = NEXT->clSetKernelArg(k ? OBJ(k)->real : ocl_checked(handle, OCL_KERNEL),
					      index, size, real_value(value, size, &room));
	} while (k && ocl_epoch_moved(OBJ(k)->domain, status, moves));
	if (status == CL_SUCCESS && k && k->args && index < k->args->count) {
		a = args_to_change(k);
		if (!a || !copy_value(&a->at[index], value, size)) {
			OBJ(k)->domain->unprotected = true;
		} else {
			a->at[index].set = true;
			a->at[index].svm = false;
			a->at[index].handle = value && size == sizeof(cl_mem);
			a->at[index].object = false;
		}
	}
	ocl_unlock();
	return status;
}

cl_int CL_API_CALL layer_clSetKernelArgSVMPointer(cl_kernel handle, cl_uint index,
						  const void *value)
{
	struct kernel *k;
	struct args *a;
	uint32_t moves;
	cl_int status;

	ocl_lock();
	k = ocl_find(handle, OCL_KERNEL);
	do {
		moves = ocl.moves;
		status = NEXT->clSetKernelArgSVMPointer(
		    k ? OBJ(k)->real : ocl_checked(handle, OCL_KERNEL), index, value);
	} while (k && ocl_epoch_moved(OBJ(k)->domain, status, moves));
	if (status == CL_SUCCESS && k && k->args && index < k->args->count) {
		a = args_to_change(k);
		if (!a || !copy_value(&a->at[index], &value, sizeof(value))) {
			OBJ(k)->domain->unprotected = true;
		} else {
			a->at[index].set = a->at[index].svm = true;
			a->at[index].handle = false;
			a->at[index].object = false;
		}
	}
	ocl_unlock();
	return status;
}

cl_int CL_API_CALL layer_clSetKernelExecInfo(cl_kernel handle, cl_kernel_exec_info name,
					     size_t size, const void *value)
{
	struct kernel *k;
	uint32_t moves;
	cl_int status;

	ocl_lock();
	k = ocl_find(handle, OCL_KERNEL);
	do {
		moves = ocl.moves;
		status = NEXT->clSetKernelExecInfo(
		    k ? OBJ(k)->real : ocl_checked(handle, OCL_KERNEL), name, size, value);
	} while (k && ocl_epoch_moved(OBJ(k)->domain, status, moves));
	if (status == CL_SUCCESS && k && name == CL_KERNEL_EXEC_INFO_SVM_PTRS)
		k->svm_pointers = true;
	if (status == CL_SUCCESS && k && name == CL_KERNEL_EXEC_INFO_SVM_FINE_GRAIN_SYSTEM &&
	    size >= sizeof(cl_bool))
		k->svm_system = *(const cl_bool *)value;
	ocl_unlock();
	return status;
}

/* As above, also for objects that the program has released and only the log still holds. */
static const void *held_value(const void *value, size_t size, void **room)
{
	struct ocl_object *o;
	void *handle;

	if (LIKELY(!ocl.moves) || !value || size != sizeof(void *))
		return value;
	memcpy(&handle, value, sizeof(handle));
	o = ocl_find_held(handle);
	if (!o)
		return value;
	*room = o->real;
	return room;
}

static bool same_arg(const struct arg *a, const struct arg *b)
{
	return a->set == b->set && a->svm == b->svm && a->size == b->size &&
	       !a->value == !b->value && (!a->value || memcmp(a->value, b->value, a->size) == 0);
}

/* An object that nobody has any more: a new kernel does without, and the program will set another
 * one. */
static bool is_gone(const struct arg *g)
{
	void *handle;

	if (!g->object || !g->value)
		return false;
	memcpy(&handle, g->value, sizeof(handle));
	return !ocl_find_held(handle);
}

cl_int ocl_kernel_bind(struct kernel *k, struct args *a, bool fresh)
{
	struct args *now = fresh ? NULL : k->bound ? k->bound : k->args;
	cl_kernel real = OBJ(k)->real;
	cl_int status = CL_SUCCESS;
	void *room;

	if (now == a || !a)
		return CL_SUCCESS;
	for (cl_uint i = 0; i < a->count && (fresh || status == CL_SUCCESS); i++) {
		const struct arg *g = &a->at[i];
		cl_int code;

		if (!g->set || (now && same_arg(&now->at[i], g)) || (fresh && is_gone(g)))
			continue;
		if (g->svm)
			code = NEXT->clSetKernelArgSVMPointer(real, i, *(void **)g->value);
		else
			code = NEXT->clSetKernelArg(real, i, g->size,
						    held_value(g->value, g->size, &room));
		status = status ? status : code;
	}
	k->bound = a;
	return status;
}

void ocl_kernel_unbind(struct kernel *k)
{
	if (!k->bound)
		return;
	if (OBJ(k)->refs > 0) {
		ocl_kernel_bind(k, k->args, false);
	} else if (k->bound != k->args) {
		/* only the log has it still: what it was given last may be gone */
		struct args *now = ocl_args_ref(k->bound);
		ocl_args_unref(k->args);
		k->args = now;
	}
	k->bound = NULL;
}

/* ---- what a launch uses and may write ---- */

/* Which arguments the kernel can't write through (clGetKernelArgInfo), asked once. */
void ocl_kernel_examine(struct kernel *k)
{
	cl_kernel real = OBJ(k)->real;
	struct args *a;

	if (k->looked_up || !k->args)
		return;
	k->looked_up = true;
	a = k->args; /* not changed in what a replay needs: also snapshots of it may know */
	for (cl_uint i = 0; i < a->count; i++) {
		cl_kernel_arg_address_qualifier space = 0;
		cl_kernel_arg_access_qualifier access = 0;
		cl_kernel_arg_type_qualifier type = 0;

		if (NEXT->clGetKernelArgInfo(real, i, CL_KERNEL_ARG_ADDRESS_QUALIFIER,
					     sizeof(space), &space, NULL) != CL_SUCCESS)
			continue;
		NEXT->clGetKernelArgInfo(real, i, CL_KERNEL_ARG_ACCESS_QUALIFIER, sizeof(access),
					 &access, NULL);
		NEXT->clGetKernelArgInfo(real, i, CL_KERNEL_ARG_TYPE_QUALIFIER, sizeof(type), &type,
					 NULL);
		a->at[i].promised = space != CL_KERNEL_ARG_ADDRESS_CONSTANT &&
				    access != CL_KERNEL_ARG_ACCESS_READ_ONLY &&
				    (type & CL_KERNEL_ARG_TYPE_CONST);
		a->at[i].constant = a->at[i].promised || space == CL_KERNEL_ARG_ADDRESS_CONSTANT ||
				    access == CL_KERNEL_ARG_ACCESS_READ_ONLY;
	}
}

/* True: it may change more than scratch. */
static bool mark(struct mem *m, const struct arg *g)
{
	struct mem *root = m->root;
	bool constant =
	    g->constant && (ocl.set.opt & OCL_OPT_AUTO) && !(g->promised && root->distrusted);
	bool trusted = (ocl.set.opt & OCL_OPT_RO) &&
		       (root->told_read_only || ((m->read_only || root->read_only)));

	if (constant) {
		root->promised |= g->promised;
		return false;
	}
	if (trusted) {
		root->writes_seen |= !g->constant;
		return false;
	}
	root->modified |= OCL_BY_DEVICE;
	return !root->scratch;
}

static bool add_used(struct ocl_entry *e, struct ocl_object *o, uint32_t *room)
{
	if (!e->used) {
		e->used = e->few;
		*room = ARRAY_LEN(e->few);
	} else if (e->used_count == *room) {
		uint32_t more = 2 * *room;
		bool was_few = e->used == e->few;
		struct ocl_object **used = realloc(was_few ? NULL : e->used, more * sizeof(*used));
		if (!used)
			return false;
		if (was_few)
			memcpy(used, e->few, sizeof(e->few));
		e->used = used;
		*room = more;
	}
	e->used[e->used_count++] = o;
	ocl_hold(o);
	return true;
}

static bool use_svm(struct domain *d, struct ocl_entry *e, uint32_t *room)
{
	for (uint32_t i = 0; i < d->svm_count; i++) {
		struct mem *m = d->svm[i];

		if (OBJ(m)->refs == 0)
			continue;
		m->modified |= OCL_BY_DEVICE;
		if (m->flags & CL_MEM_SVM_FINE_GRAIN_BUFFER)
			d->unprotected = true; /* the host writes there unseen, too */
		if (!add_used(e, OBJ(m), room))
			return false;
	}
	return true;
}

/* NULL is nobody's memory. */
static bool is_known_svm(struct domain *d, const void *at)
{
	return !at || ocl_svm_at(d, (size_t)at);
}

/* The kernel may write to any of the program's memory. */
static void leave_unprotected(struct domain *d)
{
	static bool told;

	if (!told)
		log_warn("opencl: kernels work on memory of the program's that is no object of "
			 "OpenCL's; what they write there can't be mended after an error");
	told = true;
	d->unprotected = true;
}

bool ocl_kernel_uses(struct kernel *k, struct args *a, struct ocl_entry *e)
{
	struct domain *d = OBJ(k)->domain;
	bool svm = k->svm_pointers;
	uint32_t room = e->used_count;

	if (!a)
		return false;
	ocl_kernel_examine(k);
	if (k->svm_system)
		leave_unprotected(d);
	for (cl_uint i = 0; i < a->count; i++) {
		struct arg *g = &a->at[i];
		struct ocl_object *o;
		void *handle;

		svm |= g->svm;
		if (g->svm && !is_known_svm(d, *(void **)g->value))
			leave_unprotected(d);
		if (!g->handle)
			continue;
		memcpy(&handle, g->value, sizeof(handle));
		/* the program may have released it since it set or recorded it */
		o = ocl_find_held(handle);
		if (o && o->kind == OCL_MEM)
			e->lasting |= mark((struct mem *)o, g);
		else if (o && o->kind != OCL_SAMPLER)
			o = NULL;
		g->object |= o != NULL;
		if (o && e->op != OP_RECORDED && !add_used(e, o, &room))
			return false;
	}
	e->lasting |= svm;
	return !svm || d->svm_count == 0 || use_svm(d, e, &room);
}
