/* SPDX-License-Identifier: BSD-3-Clause */
/* Questions about objects: passed to the runtime, answers brought back. */
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "ocl/epoch/nvml.h"
#include "ocl/remote/server.h"

enum { ANSWER_MAX = 256 << 20 };

/* Into the reply when it is short, else where the program wants it. */
static cl_int bring(struct out *out, const void *data, size_t size, uint64_t address)
{
	out->bytes = size;
	if (!address)
		return CL_SUCCESS;
	if (!data)
		return CL_OUT_OF_HOST_MEMORY;
	if (size <= WIRE_INLINE) {
		memcpy(out->data, data, size);
		return CL_SUCCESS;
	}
	return store(address, data, size) ? CL_SUCCESS : CL_INVALID_VALUE;
}

static cl_int past_profile(const struct past *p, cl_profiling_info name, size_t room, void *to,
			   size_t *n)
{
	if (p->profiled != CL_SUCCESS)
		return p->profiled;
	if (name < CL_PROFILING_COMMAND_QUEUED || name > CL_PROFILING_COMMAND_COMPLETE ||
	    (to && room < sizeof(uint64_t)))
		return CL_INVALID_VALUE;
	*n = sizeof(uint64_t);
	if (to)
		memcpy(to,
		       &p->time[name == CL_PROFILING_COMMAND_COMPLETE
				    ? 3
				    : name - CL_PROFILING_COMMAND_QUEUED],
		       sizeof(uint64_t));
	return CL_SUCCESS;
}

/* Data must be there before the program learns that it is; a command that runs tells that what it
 * waited for is complete. */
static cl_int ask_event(cl_event e, cl_uint name, size_t room, void *to, size_t *n)
{
	cl_int status = clGetEventInfo(e, name, room, to, n);

	if (status == CL_SUCCESS && name == CL_EVENT_COMMAND_EXECUTION_STATUS && to &&
	    *(cl_int *)to <= CL_RUNNING)
		deliver();
	return status;
}

/* The times of a command tell that it has run. */
static cl_int ask_times(cl_event e, cl_uint name, size_t room, void *to, size_t *n)
{
	cl_int status = clGetEventProfilingInfo(e, name, room, to, n);

	if (status == CL_SUCCESS)
		deliver();
	return status;
}

/* Only what the program can share with this process is offered. */
static cl_int ask_device(cl_device_id d, cl_uint name, size_t room, void *to, size_t *n)
{
	cl_int status = clGetDeviceInfo(d, name, room, to, n);

	if (status == CL_SUCCESS && name == CL_DEVICE_SVM_CAPABILITIES && to)
		*(cl_device_svm_capabilities *)to =
		    svm_device_has(d) ? CL_DEVICE_SVM_COARSE_GRAIN_BUFFER : 0;
	return status;
}

static cl_int ask(uint64_t about, uint64_t id, uint64_t second, cl_uint name, size_t room, void *to,
		  size_t *n)
{
	struct obj *o = obj_at(id);

	switch (about) {
	case ABOUT_PLATFORM:
		return clGetPlatformInfo(real_of(id, STUB_PLATFORM), name, room, to, n);
	case ABOUT_DEVICE:
		return ask_device(real_of(id, STUB_DEVICE), name, room, to, n);
	case ABOUT_CONTEXT:
		return clGetContextInfo(real_of(id, STUB_CONTEXT), name, room, to, n);
	case ABOUT_QUEUE:
		return clGetCommandQueueInfo(real_of(id, STUB_QUEUE), name, room, to, n);
	case ABOUT_MEM:
		return clGetMemObjectInfo(real_of(id, STUB_MEM), name, room, to, n);
	case ABOUT_IMAGE:
		return clGetImageInfo(real_of(id, STUB_MEM), name, room, to, n);
	case ABOUT_SAMPLER:
		return clGetSamplerInfo(real_of(id, STUB_SAMPLER), name, room, to, n);
	case ABOUT_PROGRAM:
		return clGetProgramInfo(real_of(id, STUB_PROGRAM), name, room, to, n);
	case ABOUT_BUILD:
		return clGetProgramBuildInfo(real_of(id, STUB_PROGRAM),
					     real_of(second, STUB_DEVICE), name, room, to, n);
	case ABOUT_KERNEL:
		return clGetKernelInfo(real_of(id, STUB_KERNEL), name, room, to, n);
	case ABOUT_ARG:
		return clGetKernelArgInfo(real_of(id, STUB_KERNEL), (cl_uint)second, name, room, to,
					  n);
	case ABOUT_WORK_GROUP:
		return clGetKernelWorkGroupInfo(real_of(id, STUB_KERNEL),
						real_of(second, STUB_DEVICE), name, room, to, n);
	case ABOUT_EVENT:
		return ask_event(real_of(id, STUB_EVENT), name, room, to, n);
	default:
		if (o && o->past)
			return past_profile(o->past, name, room, to, n);
		return ask_times(real_of(id, STUB_EVENT), name, room, to, n);
	}
}

/* Errors that the driver counts; it takes a few microseconds, less than to hand it to a thread. */
static cl_int errors_of(cl_device_id device, struct out *out)
{
	static int counts = -1;
	uint64_t n;

	if (counts < 0)
		counts = ocl_nvml_load();
	if (!counts)
		return CL_INVALID_VALUE;
	n = ocl_nvml_errors(device, clGetDeviceInfo);
	memcpy(out->data, &n, sizeof(n));
	out->bytes = sizeof(n);
	return CL_SUCCESS;
}

/* What the runtime says of a type, and of where its devices would go: which they are the program
 * knows. */
static cl_int devices_of_type(uint64_t platform, cl_device_type type, cl_uint room, bool list,
			      bool count, struct out *out)
{
	cl_device_id some[DEVICES_MAX];
	cl_uint n = 0;
	cl_int status = clGetDeviceIDs(real_of(platform, STUB_PLATFORM), type,
				       room < DEVICES_MAX ? room : DEVICES_MAX, list ? some : NULL,
				       count ? &n : NULL);

	out->value[0] = n;
	return status;
}

static cl_int information(struct in *in, struct out *out)
{
	uint64_t about = next(in), id = next(in), second = next(in);
	cl_uint name = (cl_uint)next(in);

	if (about == ABOUT_DEVICE && name == OCL_DEVICE_ERRORS)
		return errors_of(real_of(id, STUB_DEVICE), out);
	size_t room = next(in), n = 0;
	uint64_t address = next(in);
	void *to = NULL;
	cl_int status;

	if (about == ABOUT_DEVICES)
		return devices_of_type(id, second, name, room, address, out);
	if (room > ANSWER_MAX) /* a program may claim any room */
		room = ANSWER_MAX;
	if (address && !(to = calloc(1, room + 1)))
		return CL_OUT_OF_HOST_MEMORY;
	status = ask(about, id, second, name, room, to, &n);
	if (status == CL_SUCCESS)
		status = bring(out, to, n, address);
	free(to);
	return status;
}

/* The program's pointers, one for each device. */
static cl_int binaries(struct in *in)
{
	cl_program p = real_of(next(in), STUB_PROGRAM);
	size_t bytes, *length, count;
	const uint64_t *address = next_blob(in, &bytes);
	unsigned char **binary;
	cl_int status;

	count = bytes / 8;
	length = calloc(count + 1, sizeof(*length));
	binary = calloc(count + 1, sizeof(*binary));
	status = length && binary ? clGetProgramInfo(p, CL_PROGRAM_BINARY_SIZES,
						     count * sizeof(*length), length, NULL)
				  : CL_OUT_OF_HOST_MEMORY;
	for (size_t i = 0; status == CL_SUCCESS && i < count; i++)
		binary[i] = malloc(length[i] + 1);
	if (status == CL_SUCCESS)
		status =
		    clGetProgramInfo(p, CL_PROGRAM_BINARIES, count * sizeof(*binary), binary, NULL);
	for (size_t i = 0; status == CL_SUCCESS && i < count; i++)
		if (address[i] && length[i] && !store(address[i], binary[i], length[i]))
			status = CL_INVALID_VALUE;
	for (size_t i = 0; binary && i < count; i++)
		free(binary[i]);
	free(binary);
	free(length);
	return status;
}

static cl_int formats(struct in *in, struct out *out)
{
	cl_context c = real_of(next(in), STUB_CONTEXT);
	cl_mem_flags flags = next(in);
	cl_mem_object_type type = (cl_mem_object_type)next(in);
	cl_uint room = (cl_uint)next(in), most = WIRE_INLINE / sizeof(cl_image_format), n = 0;
	bool given = next(in);
	cl_int status = clGetSupportedImageFormats(c, flags, type, room < most ? room : most,
						   given ? (cl_image_format *)out->data : NULL, &n);

	out->value[0] = n;
	out->bytes = given ? (n < room ? n : room) * sizeof(cl_image_format) : 0;
	if (out->bytes > WIRE_INLINE)
		out->bytes = WIRE_INLINE;
	return status;
}

cl_int serve_info(struct in *in, struct out *out)
{
	if (in->r->op == OP_BINARIES)
		return binaries(in);
	return in->r->op == OP_FORMATS ? formats(in, out) : information(in, out);
}
