/* SPDX-License-Identifier: BSD-3-Clause */
/* The driver: its table of functions, and its entry points for the loader. */
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "ocl/remote/remote.h"

cl_icd_dispatch remote_dispatch;

cl_int give(const void *from, size_t bytes, size_t room, void *to, size_t *size_ret)
{
	if (to && room < bytes)
		return CL_INVALID_VALUE;
	if (to)
		memcpy(to, from, bytes);
	if (size_ret)
		*size_ret = bytes;
	return CL_SUCCESS;
}

cl_int remote_info(wire_about_t about, const struct stub *s, uint64_t second, uint32_t name,
		   size_t room, void *to, size_t *size_ret)
{
	struct call c = {.era = s ? era_of(s) : 0};
	struct remote_answer a = {.data = to, .room = room};
	cl_int status;

	put(&c, about);
	put(&c, s ? s->id : 0);
	put(&c, second);
	put(&c, name);
	put(&c, room);
	put(&c, (uint64_t)(uintptr_t)to);
	status = remote_call(&c, OP_INFO, &a);
	/* of devices any server can tell; but what contexts lose with a server they are to notice
	 */
	if (status == CL_DEVICE_NOT_AVAILABLE &&
	    (about == ABOUT_PLATFORM || about == ABOUT_DEVICE) && stub_contexts() == 0) {
		remote_renew();
		status = remote_call(&c, OP_INFO, &a);
	}
	if (status == CL_SUCCESS && size_ret)
		*size_ret = a.bytes;
	return status;
}

void *remote_make(struct stub *s, struct call *c, wire_op_t op, cl_int *status)
{
	cl_int code = CL_OUT_OF_HOST_MEMORY;

	if (s) {
		c->era = era_of(s);
		code = remote_call(c, op, NULL);
	}
	if (status)
		*status = code;
	if (code == CL_SUCCESS)
		return s;
	if (s)
		stub_discard(s);
	return NULL;
}

static void *extension_function(const char *name)
{
	if (name && strcmp(name, "clSetContentSizeBufferPoCL") == 0)
		return (void *)(uintptr_t)remote_set_content_size;
	if (name && svm_function(name))
		return svm_function(name);
	return name ? recorded_function(name) : NULL;
}

static void *CL_API_CALL extension(cl_platform_id p, const char *name)
{
	return extension_function(name);
}

CL_API_ENTRY cl_int CL_API_CALL clIcdGetPlatformIDsKHR(cl_uint room, cl_platform_id *list,
						       cl_uint *count)
{
	return remote_get_platforms(room, list, count);
}

CL_API_ENTRY void *CL_API_CALL clGetExtensionFunctionAddress(const char *name)
{
	if (name && strcmp(name, "clIcdGetPlatformIDsKHR") == 0)
		return (void *)(uintptr_t)clIcdGetPlatformIDsKHR;
	if (name && strcmp(name, "clGetPlatformInfo") == 0)
		return (void *)(uintptr_t)remote_platform_info;
	return extension_function(name);
}

/* What isn't offered. For functions that return a pointer this is NULL. */
static uint64_t CL_API_CALL not_offered(void)
{
	return (uint32_t)CL_INVALID_OPERATION;
}

static void *CL_API_CALL no_memory(void)
{
	return NULL;
}

static cl_mem CL_API_CALL no_pipe(cl_context context, cl_mem_flags flags, cl_uint bytes,
				  cl_uint packets, const cl_pipe_properties *properties,
				  cl_int *status)
{
	if (status)
		*status =
		    stub_of(context, STUB_CONTEXT) ? CL_INVALID_OPERATION : CL_INVALID_CONTEXT;
	return NULL;
}

/* Before anything else is put there. */
static void refuse_all(cl_icd_dispatch *d)
{
	void **all = (void **)d;

	for (size_t i = 0; i < sizeof(*d) / sizeof(void *); i++)
		all[i] = (void *)(uintptr_t)not_offered;
	d->clCreatePipe = no_pipe;
	*(void **)&d->clCreateFromGLBuffer = (void *)(uintptr_t)no_memory;
	*(void **)&d->clCreateFromGLTexture = (void *)(uintptr_t)no_memory;
	*(void **)&d->clCreateFromGLTexture2D = (void *)(uintptr_t)no_memory;
	*(void **)&d->clCreateFromGLTexture3D = (void *)(uintptr_t)no_memory;
	*(void **)&d->clCreateFromGLRenderbuffer = (void *)(uintptr_t)no_memory;
	*(void **)&d->clCreateEventFromGLsyncKHR = (void *)(uintptr_t)no_memory;
	*(void **)&d->clGetExtensionFunctionAddress =
	    (void *)(uintptr_t)clGetExtensionFunctionAddress;
	d->clGetExtensionFunctionAddressForPlatform = extension;
}

cl_int remote_fill_once(void)
{
	static cl_int status = 1;

	if (status != 1)
		return status;
	refuse_all(&remote_dispatch);
	devices_fill(&remote_dispatch);
	objects_fill(&remote_dispatch);
	memory_fill(&remote_dispatch);
	programs_fill(&remote_dispatch);
	kernels_fill(&remote_dispatch);
	events_fill(&remote_dispatch);
	transfers_fill(&remote_dispatch);
	commands_fill(&remote_dispatch);
	svm_fill_table(&remote_dispatch);
	status = remote_start();
	if (status == CL_SUCCESS)
		status = devices_learn();
	if (status == CL_DEVICE_NOT_AVAILABLE && remote_is_ours()) {
		remote_renew();
		status = devices_learn();
	}
	return status;
}
