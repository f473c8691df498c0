/* SPDX-License-Identifier: BSD-3-Clause */
/* Programs. */
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "ocl/remote/remote.h"

typedef void(CL_CALLBACK *built_fn)(cl_program, void *);

enum { BINARY_MAX = 1 << 28 };

static void *refuse(cl_int code, cl_int *status)
{
	if (status)
		*status = code;
	return NULL;
}

static struct stub *begin(struct stub *in, struct call *c, cl_int *status)
{
	struct stub *s = in ? stub_create(STUB_PROGRAM, in) : NULL;

	if (!s)
		return refuse(in ? CL_OUT_OF_HOST_MEMORY : CL_INVALID_CONTEXT, status);
	s->device_count = in->device_count;
	s->devices = device_list(in->device_count, (const cl_device_id *)in->devices);
	c->era = era_of(in);
	put(c, s->id);
	put(c, in->id);
	return s;
}

static cl_program CL_API_CALL with_source(cl_context context, cl_uint count, const char **strings,
					  const size_t *lengths, cl_int *status)
{
	struct call c = {0};
	size_t total = 0, at = 0;
	struct stub *s;
	char *all;

	if (count == 0 || !strings)
		return refuse(CL_INVALID_VALUE, status);
	for (cl_uint i = 0; i < count; i++) {
		if (!strings[i])
			return refuse(CL_INVALID_VALUE, status);
		total += lengths && lengths[i] ? lengths[i] : strlen(strings[i]);
	}
	s = begin(stub_of(context, STUB_CONTEXT), &c, status);
	if (!s)
		return NULL;
	all = malloc(total + 1);
	if (!all) {
		stub_discard(s);
		return refuse(CL_OUT_OF_HOST_MEMORY, status);
	}
	for (cl_uint i = 0; i < count; i++) {
		size_t n = lengths && lengths[i] ? lengths[i] : strlen(strings[i]);
		memcpy(all + at, strings[i], n);
		at += n;
	}
	put_blob(&c, all, total);
	s = remote_make(s, &c, OP_PROGRAM_SOURCE, status);
	free(all);
	return (cl_program)s;
}

static cl_program CL_API_CALL with_il(cl_context context, const void *il, size_t size,
				      cl_int *status)
{
	struct call c = {0};
	struct stub *s;

	if (!il || size == 0)
		return refuse(CL_INVALID_VALUE, status);
	if (size > BINARY_MAX)
		return refuse(CL_INVALID_VALUE, status);
	s = begin(stub_of(context, STUB_CONTEXT), &c, status);
	if (s) {
		s->type = OP_PROGRAM_IL;
		put_blob(&c, il, size);
	}
	return s ? remote_make(s, &c, OP_PROGRAM_IL, status) : NULL;
}

/* CL_SUCCESS, or what is wrong with the first that is. */
static cl_int look_at_devices(cl_uint count, const cl_device_id *list)
{
	for (cl_uint i = 0; list && i < count; i++)
		if (!stub_of(list[i], STUB_DEVICE))
			return CL_INVALID_DEVICE;
	return CL_SUCCESS;
}

/* All of them, one behind the other. */
static char *joined(cl_uint count, const size_t *lengths, const unsigned char **binaries,
		    size_t *total)
{
	size_t at = 0;
	char *all;

	*total = 0;
	for (cl_uint i = 0; i < count; i++)
		*total += lengths[i];
	all = malloc(*total);
	for (cl_uint i = 0; all && i < count; at += lengths[i++])
		memcpy(all + at, binaries[i], lengths[i]);
	return all;
}

/* What is wrong is told of the first that is, also of those behind which there is nothing. */
static cl_int look_at_binaries(cl_uint count, const cl_device_id *devices, const size_t *lengths,
			       const unsigned char **binaries, cl_int *binary_status)
{
	for (cl_uint i = 0; i < count; i++) {
		cl_int wrong = !lengths[i] || !binaries[i] ? CL_INVALID_VALUE
			       : lengths[i] > BINARY_MAX   ? CL_INVALID_BINARY
							   : CL_SUCCESS;

		if (wrong != CL_SUCCESS && binary_status)
			binary_status[i] = wrong;
		if (wrong != CL_SUCCESS)
			return wrong;
		if (!stub_of(devices[i], STUB_DEVICE))
			return CL_INVALID_DEVICE;
	}
	return CL_SUCCESS;
}

static cl_program CL_API_CALL with_binary(cl_context context, cl_uint count,
					  const cl_device_id *devices, const size_t *lengths,
					  const unsigned char **binaries, cl_int *binary_status,
					  cl_int *status)
{
	cl_int each[DEVICES_MAX];
	struct remote_answer a = {.data = each, .room = sizeof(each)};
	struct call c = {0};
	size_t total;
	cl_int code;
	struct stub *s;
	char *all;

	if (!stub_of(context, STUB_CONTEXT))
		return refuse(CL_INVALID_CONTEXT, status);
	if (count == 0 || !devices || !lengths || !binaries)
		return refuse(CL_INVALID_VALUE, status);
	code = look_at_binaries(count, devices, lengths, binaries, binary_status);
	if (code != CL_SUCCESS || count > DEVICES_MAX)
		return refuse(code != CL_SUCCESS ? code : CL_INVALID_VALUE, status);
	all = joined(count, lengths, binaries, &total);
	s = all ? begin(stub_of(context, STUB_CONTEXT), &c, status) : NULL;
	if (!s) {
		free(all);
		return all ? NULL : refuse(CL_OUT_OF_HOST_MEMORY, status);
	}
	free(s->devices);
	s->devices = device_list(count, devices);
	s->device_count = count;
	put_devices(&c, count, devices);
	put(&c, count);
	for (cl_uint i = 0; i < count; i++)
		put(&c, lengths[i]);
	put_blob(&c, all, total);
	code = remote_call(&c, OP_PROGRAM_BINARY, &a);
	free(all);
	for (cl_uint i = 0; binary_status && i < count; i++)
		binary_status[i] = a.bytes == count * sizeof(cl_int) ? each[i] : code;
	if (code != CL_SUCCESS) {
		stub_discard(s);
		return refuse(code, status);
	}
	if (status)
		*status = code;
	return (cl_program)s;
}

static cl_program CL_API_CALL with_built_in(cl_context context, cl_uint count,
					    const cl_device_id *devices, const char *names,
					    cl_int *status)
{
	struct call c = {0};
	struct stub *s;

	if (!stub_of(context, STUB_CONTEXT))
		return refuse(CL_INVALID_CONTEXT, status);
	if (count == 0 || !devices || !names)
		return refuse(CL_INVALID_VALUE, status);
	if (look_at_devices(count, devices) != CL_SUCCESS)
		return refuse(CL_INVALID_DEVICE, status);
	s = begin(stub_of(context, STUB_CONTEXT), &c, status);
	if (!s)
		return NULL;
	put_devices(&c, count, devices);
	put_blob(&c, names, strlen(names) + 1);
	return remote_make(s, &c, OP_PROGRAM_BUILT_IN, status);
}

static cl_int CL_API_CALL retain_program(cl_program p)
{
	return stub_retain(p, STUB_PROGRAM, CL_INVALID_PROGRAM);
}

static cl_int CL_API_CALL release_program(cl_program p)
{
	return stub_release(p, STUB_PROGRAM, CL_INVALID_PROGRAM);
}

/* ---- building ---- */

static void put_options(struct call *c, const char *options)
{
	put_blob(c, options ? options : "", options ? strlen(options) + 1 : 1);
}

static cl_int CL_API_CALL build(cl_program program, cl_uint count, const cl_device_id *devices,
				const char *options, built_fn notify, void *data)
{
	struct stub *s = stub_of(program, STUB_PROGRAM);
	struct call c = {0};
	cl_int status;

	if (!s)
		return CL_INVALID_PROGRAM;
	if (!notify && data)
		return CL_INVALID_VALUE;
	if (look_at_devices(count, devices) != CL_SUCCESS)
		return CL_INVALID_DEVICE;
	put(&c, s->id);
	put_devices(&c, count, devices);
	put_options(&c, options);
	status = remote_call(&c, OP_PROGRAM_BUILD, NULL);
	if (notify)
		notify(program, data);
	return status;
}

static cl_int CL_API_CALL compile(cl_program program, cl_uint count, const cl_device_id *devices,
				  const char *options, cl_uint headers, const cl_program *header,
				  const char **names, built_fn notify, void *data)
{
	struct stub *s = stub_of(program, STUB_PROGRAM);
	struct call c = {0};
	cl_int status;

	if (!s)
		return CL_INVALID_PROGRAM;
	if ((headers > 0) != (header != NULL) || (headers > 0) != (names != NULL) ||
	    (!notify && data))
		return CL_INVALID_VALUE;
	if (look_at_devices(count, devices) != CL_SUCCESS)
		return CL_INVALID_DEVICE;
	for (cl_uint i = 0; i < headers; i++)
		if (!stub_of(header[i], STUB_PROGRAM) || !names[i])
			return names[i] ? CL_INVALID_PROGRAM : CL_INVALID_VALUE;
	put(&c, s->id);
	put_devices(&c, count, devices);
	put_options(&c, options);
	put_handles(&c, headers, header, STUB_PROGRAM);
	for (cl_uint i = 0; i < headers; i++) {
		put_options(&c, names[i]);
		stub_hold(s, stub_of(header[i], STUB_PROGRAM));
	}
	status = remote_call(&c, OP_PROGRAM_COMPILE, NULL);
	if (notify)
		notify(program, data);
	return status;
}

static cl_program CL_API_CALL link_programs(cl_context context, cl_uint count,
					    const cl_device_id *devices, const char *options,
					    cl_uint programs, const cl_program *program,
					    built_fn notify, void *data, cl_int *status)
{
	struct call c = {0};
	struct stub *s;

	if (!stub_of(context, STUB_CONTEXT))
		return refuse(CL_INVALID_CONTEXT, status);
	if (programs == 0 || !program || (!notify && data))
		return refuse(CL_INVALID_VALUE, status);
	if (look_at_devices(count, devices) != CL_SUCCESS)
		return refuse(CL_INVALID_DEVICE, status);
	for (cl_uint i = 0; i < programs; i++)
		if (!stub_of(program[i], STUB_PROGRAM))
			return refuse(CL_INVALID_PROGRAM, status);
	s = begin(stub_of(context, STUB_CONTEXT), &c, status);
	if (!s)
		return NULL;
	put_devices(&c, count, devices);
	put_options(&c, options);
	put_handles(&c, programs, program, STUB_PROGRAM);
	for (cl_uint i = 0; i < programs; i++)
		stub_hold(s, stub_of(program[i], STUB_PROGRAM));
	s = remote_make(s, &c, OP_PROGRAM_LINK, status);
	if (notify)
		notify((cl_program)s, data);
	return (cl_program)s;
}

/* Programs in an intermediate language have such constants; with the server they can't be set. */
static cl_int CL_API_CALL set_constant(cl_program program, cl_uint id, size_t size,
				       const void *value)
{
	const struct stub *s = stub_of(program, STUB_PROGRAM);

	return s && s->type == OP_PROGRAM_IL ? CL_INVALID_OPERATION : CL_INVALID_PROGRAM;
}

/* Of programs with constructors on the device, which OpenCL 3.0 has no more. */
static cl_int CL_API_CALL set_release_callback(cl_program program, built_fn fn, void *data)
{
	if (!stub_of(program, STUB_PROGRAM))
		return CL_INVALID_PROGRAM;
	return CL_INVALID_OPERATION;
}

static cl_int CL_API_CALL unload_compiler(void)
{
	return CL_SUCCESS;
}

static cl_int CL_API_CALL unload_platform_compiler(cl_platform_id p)
{
	return stub_of(p, STUB_PLATFORM) ? CL_SUCCESS : CL_INVALID_PLATFORM;
}

/* ---- information ---- */

static cl_int binaries(struct stub *s, size_t room, void *to, size_t *size_ret)
{
	struct call c = {0};
	size_t bytes = s->device_count * sizeof(void *);

	if (to && room < bytes)
		return CL_INVALID_VALUE;
	if (!to)
		return give(NULL, bytes, 0, NULL, size_ret);
	put(&c, s->id);
	put_blob(&c, to, bytes);
	if (size_ret)
		*size_ret = bytes;
	return remote_call(&c, OP_BINARIES, NULL);
}

static cl_int CL_API_CALL program_info(cl_program program, cl_program_info name, size_t room,
				       void *to, size_t *size_ret)
{
	struct stub *s = stub_of(program, STUB_PROGRAM);

	if (!s)
		return CL_INVALID_PROGRAM;
	switch (name) {
	case CL_PROGRAM_REFERENCE_COUNT:
		return give(&s->refs, sizeof(s->refs), room, to, size_ret);
	case CL_PROGRAM_CONTEXT:
		return give(&s->context, sizeof(void *), room, to, size_ret);
	case CL_PROGRAM_NUM_DEVICES:
		return give(&s->device_count, sizeof(s->device_count), room, to, size_ret);
	case CL_PROGRAM_DEVICES:
		return give(s->devices, s->device_count * sizeof(cl_device_id), room, to, size_ret);
	case CL_PROGRAM_BINARIES:
		return binaries(s, room, to, size_ret);
	default:
		return remote_info(ABOUT_PROGRAM, s, 0, name, room, to, size_ret);
	}
}

static cl_int CL_API_CALL build_info(cl_program program, cl_device_id device,
				     cl_program_build_info name, size_t room, void *to,
				     size_t *size_ret)
{
	struct stub *s = stub_of(program, STUB_PROGRAM), *d = stub_of(device, STUB_DEVICE);

	if (!s || !d)
		return s ? CL_INVALID_DEVICE : CL_INVALID_PROGRAM;
	return remote_info(ABOUT_BUILD, s, d->id, name, room, to, size_ret);
}

void programs_fill(cl_icd_dispatch *d)
{
	d->clCreateProgramWithSource = with_source;
	d->clCreateProgramWithIL = with_il;
	d->clCreateProgramWithBinary = with_binary;
	d->clCreateProgramWithBuiltInKernels = with_built_in;
	d->clRetainProgram = retain_program;
	d->clReleaseProgram = release_program;
	d->clBuildProgram = build;
	d->clCompileProgram = compile;
	d->clLinkProgram = link_programs;
	d->clSetProgramSpecializationConstant = set_constant;
	d->clSetProgramReleaseCallback = set_release_callback;
	d->clUnloadCompiler = unload_compiler;
	d->clUnloadPlatformCompiler = unload_platform_compiler;
	d->clGetProgramInfo = program_info;
	d->clGetProgramBuildInfo = build_info;
}
