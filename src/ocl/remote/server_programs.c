/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests that make programs and kernels, and set their arguments. */
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "ocl/remote/server.h"

static void *refuse(cl_int code, cl_int *status)
{
	*status = code;
	return NULL;
}

/* ---- programs ---- */

static void **devices_of(struct in *in, cl_uint *count, void **room)
{
	return next_list(in, STUB_DEVICE, count, room);
}

/* One for each device, one behind the other; what the runtime says of each goes into the reply. */
static cl_program from_binaries(struct in *in, cl_context c, struct out *out, cl_int *status)
{
	void *room[LIST_MAX + 1], **devices;
	const unsigned char *binary[LIST_MAX + 1], *all;
	size_t length[LIST_MAX + 1], bytes, at = 0;
	cl_int each[DEVICES_MAX] = {CL_SUCCESS};
	cl_uint count, given;
	cl_program p;

	devices = next_list(in, STUB_DEVICE, &count, room);
	given = (cl_uint)next(in);
	for (cl_uint i = 0; i < given; i++)
		length[i] = next(in);
	all = next_blob(in, &bytes);
	if (!devices || given != count || count > DEVICES_MAX)
		return refuse(CL_INVALID_VALUE, status);
	for (cl_uint i = 0; i < count; at += length[i++]) {
		if (length[i] > bytes - at)
			return refuse(CL_INVALID_VALUE, status);
		binary[i] = all + at;
	}
	p = clCreateProgramWithBinary(c, count, (cl_device_id *)devices, length, binary, each,
				      status);
	out->bytes = count * sizeof(*each);
	if (out->data)
		memcpy(out->data, each, out->bytes);
	return p;
}

static cl_int make_program(struct in *in, struct out *out)
{
	uint64_t id = next(in), context = next(in);
	cl_context c = real_of(context, STUB_CONTEXT);
	void *room[LIST_MAX + 1], **devices = NULL;
	cl_int status = CL_SUCCESS;
	cl_uint count = 0;
	const void *data;
	cl_program p;
	size_t n;

	if (in->r->op == OP_PROGRAM_BUILT_IN)
		devices = devices_of(in, &count, room);
	if (in->r->op == OP_PROGRAM_BINARY) {
		p = from_binaries(in, c, out, &status);
	} else if (in->r->op == OP_PROGRAM_SOURCE) {
		data = next_blob(in, &n);
		const char *text = n ? data : "";
		size_t length = n;
		p = clCreateProgramWithSource(c, 1, &text, &length, &status);
	} else if (in->r->op == OP_PROGRAM_IL) {
		data = next_blob(in, &n);
		p = clCreateProgramWithIL(c, data, n, &status);
	} else {
		p = clCreateProgramWithBuiltInKernels(c, count, (cl_device_id *)devices,
						      next_blob(in, &n), &status);
	}
	if (p)
		obj_made(in, id, STUB_PROGRAM, p, context);
	return status;
}

static cl_int build(struct in *in)
{
	cl_program p = real_of(next(in), STUB_PROGRAM);
	void *room[LIST_MAX + 1], *header_room[LIST_MAX + 1], **devices, **headers = NULL;
	const char *names[LIST_MAX + 1], *options;
	cl_uint count, header_count = 0;
	uint64_t there;
	cl_int status;
	size_t n;

	devices = devices_of(in, &count, room);
	options = next_blob(in, &n);
	if (in->r->op == OP_PROGRAM_BUILD) {
		status = clBuildProgram(p, count, (cl_device_id *)devices, options, NULL, NULL);
	} else {
		there = in->w[2];
		headers = next_list(in, STUB_PROGRAM, &header_count, header_room);
		for (uint64_t i = 0; i < there; i++)
			names[i] = next_blob(in, &n);
		names[there] = "";
		status = clCompileProgram(p, count, (cl_device_id *)devices, options, header_count,
					  (cl_program *)headers, header_count ? names : NULL, NULL,
					  NULL);
	}
	if (status == CL_SUCCESS)
		record_add(in->r);
	return status;
}

static cl_int make_linked(struct in *in)
{
	uint64_t id = next(in), context = next(in);
	void *room[LIST_MAX + 1], *part_room[LIST_MAX + 1], **devices, **parts;
	cl_uint count, part_count;
	const char *options;
	cl_int status;
	cl_program p;
	size_t n;

	devices = devices_of(in, &count, room);
	options = next_blob(in, &n);
	parts = next_list(in, STUB_PROGRAM, &part_count, part_room);
	p = clLinkProgram(real_of(context, STUB_CONTEXT), count, (cl_device_id *)devices, options,
			  part_count, (cl_program *)parts, NULL, NULL, &status);
	if (p && status == CL_SUCCESS)
		obj_made(in, id, STUB_PROGRAM, p, context);
	else if (p)
		clReleaseProgram(p);
	return status;
}

/* ---- kernels ---- */

static cl_int make_kernel(struct in *in, struct out *out)
{
	uint64_t id = next(in), program = next(in);
	struct obj *o = obj_at(program);
	uint64_t context = o ? o->context : 0;
	size_t n;
	const char *name = next_blob(in, &n);
	cl_int status;
	cl_kernel k = clCreateKernel(real_of(program, STUB_PROGRAM), name, &status);
	cl_uint args = 0;

	if (!k)
		return status;
	clGetKernelInfo(k, CL_KERNEL_NUM_ARGS, sizeof(args), &args, NULL);
	o = obj_made(in, id, STUB_KERNEL, k, context);
	if (obj_at(context))
		svm_kernel(k, obj_at(context)->device);
	o->args = args;
	o->arg = calloc(args + 1ul, sizeof(struct server_record *));
	out->value[0] = args;
	return CL_SUCCESS;
}

static void *any_object(uint64_t id)
{
	struct obj *o = obj_at(id);

	return o && (o->kind == STUB_MEM || o->kind == STUB_SAMPLER || o->kind == STUB_QUEUE)
		   ? o->real
		   : NULL;
}

/* Bytes that are no object's handle, where there has to be one: a runtime may take them for its
 * own. What is wrong, as far as it is known what the argument is. */
static cl_int object_wanted(cl_kernel k, cl_uint index)
{
	cl_kernel_arg_address_qualifier where = CL_KERNEL_ARG_ADDRESS_PRIVATE;
	char type[32] = "";

	if (clGetKernelArgInfo(k, index, CL_KERNEL_ARG_ADDRESS_QUALIFIER, sizeof(where), &where,
			       NULL) != CL_SUCCESS)
		return CL_SUCCESS;
	if (where == CL_KERNEL_ARG_ADDRESS_GLOBAL || where == CL_KERNEL_ARG_ADDRESS_CONSTANT)
		return CL_INVALID_MEM_OBJECT;
	clGetKernelArgInfo(k, index, CL_KERNEL_ARG_TYPE_NAME, sizeof(type) - 1, type, NULL);
	if (strcmp(type, "sampler_t") == 0)
		return CL_INVALID_SAMPLER;
	return strncmp(type, "image", 5) == 0 && strstr(type, "_t") ? CL_INVALID_MEM_OBJECT
								    : CL_SUCCESS;
}

static cl_int set_arg(struct in *in)
{
	struct obj *o = obj_at(next(in));
	cl_uint index = (cl_uint)next(in);
	size_t size = next(in), n;
	uint64_t kind = next(in);
	void *object = NULL;
	const void *value = NULL;
	uint64_t pointer = 0;
	cl_int status;

	if (!o || o->kind != STUB_KERNEL)
		return CL_INVALID_KERNEL;
	if (kind == ARG_OBJECT) {
		object = any_object(next(in));
		value = &object;
		if (!object && in->again) /* released since; the program sets another one */
			return CL_SUCCESS;
	} else if (kind == ARG_BYTES) {
		value = next_blob(in, &n);
		if (size == sizeof(void *) && *(const uint64_t *)value &&
		    (status = object_wanted(o->real, index)) != CL_SUCCESS)
			return status;
	} else if (kind == ARG_SVM) {
		pointer = next(in);
		if (pointer && !svm_has(pointer, 1))
			return CL_INVALID_ARG_VALUE;
	}
	status = kind == ARG_SVM
		     ? clSetKernelArgSVMPointer(o->real, index, (void *)(uintptr_t)pointer)
		     : clSetKernelArg(o->real, index, size, value);
	if (status != CL_SUCCESS || index >= o->args || !o->arg)
		return status;
	if (o->arg[index])
		record_replace(o->arg[index], in->r);
	else
		o->arg[index] = record_add(in->r);
	return status;
}

/* As if made and set by requests of its own. */
static cl_int clone_kernel(struct in *in)
{
	uint64_t id = next(in), source = next(in);
	struct out unwanted = {0};
	const struct obj *o = obj_at(source);
	const struct server_record *first = o && o->kind == STUB_KERNEL ? o->own : NULL, *r = first;
	cl_int status = first ? CL_SUCCESS : CL_INVALID_KERNEL;

	while (r && status == CL_SUCCESS) {
		struct wire_request *copy = malloc(r->request->size);
		/* of its arguments, some may have been released since */
		struct in again = {.r = copy,
				   .w = copy ? copy->word : NULL,
				   .again = r->request->op == OP_KERNEL_ARG};

		status = CL_OUT_OF_HOST_MEMORY;
		if (copy) {
			memcpy(copy, r->request, r->request->size);
			copy->word[0] = id;
			status = serve_program(&again, &unwanted);
		}
		free(copy);
		r = r->own_next != first ? r->own_next : NULL;
	}
	if (status != CL_SUCCESS) /* the number is free again */
		obj_release(id);
	return status;
}

cl_int serve_program(struct in *in, struct out *out)
{
	switch (in->r->op) {
	case OP_PROGRAM_BUILD:
	case OP_PROGRAM_COMPILE:
		return build(in);
	case OP_PROGRAM_LINK:
		return make_linked(in);
	case OP_KERNEL:
		return make_kernel(in, out);
	case OP_KERNEL_CLONE:
		return clone_kernel(in);
	case OP_KERNEL_ARG:
		return set_arg(in);
	default:
		return make_program(in, out);
	}
}
