/* SPDX-License-Identifier: BSD-3-Clause */
/* The clGet…Info functions: what the program asks of its objects. The runtime's own object answers.
 * When its device is lost, the runtime no longer knows that object; then the object that has taken
 * its place answers. */
#include <string.h>
#include "base/base.h"
#include "ocl/calls.h"
#include "ocl/epoch/epoch.h"

/* The answer was an error: whether there is another object to ask, which is in *asked from then
 * on. */
static bool elsewhere(void *handle, ocl_kind_t kind, cl_int status, void **asked, uint32_t moves,
		      struct ocl_kept *kept)
{
	struct ocl_object *o;
	bool again;

	if (LIKELY(status == CL_SUCCESS) || ocl.passive) {
		ocl_lost_too_often(false);
		return false;
	}
	ocl_lock();
	o = ocl_find(handle, kind);
	/* one that was left before tells of no loss */
	if (o && o->real == *asked)
		ocl_epoch_moved(o->domain, status, moves);
	again = o && o->real != *asked;
	ocl_let(kept);
	if (again)
		*asked = ocl_real_kept(handle, kind, kept);
	ocl_unlock();
	return again && !ocl_lost_too_often(true);
}

/* What objects tell of others. The runtime's may be of a context, or for a device, that the program
 * has never seen, and that is left by now: those that were made between two moves. So the shadows
 * say it. */
enum relation { CONTEXT, PROGRAM, PARENT, DEVICE };

static void own_handle(void *handle, ocl_kind_t kind, enum relation what, void *value, size_t size)
{
	struct ocl_object *o, *told = NULL;

	if (!value || size < sizeof(void *))
		return;
	ocl_lock();
	o = ocl_find(handle, kind);
	if (o && what == CONTEXT)
		told = OBJ(o->domain);
	else if (o && what == PROGRAM)
		told = OBJ(((struct kernel *)o)->program);
	else if (o && what == PARENT && ((struct mem *)o)->parent)
		told = OBJ(((struct mem *)o)->parent);
	if (told && told->kind != OCL_SVM) /* that has an address */
		*(void **)value = told->handle;
	else if (o && what == DEVICE)
		*(void **)value = ((struct queue *)o)->first_device;
	ocl_unlock();
}

/* A program that was made after a move to another device is for that one. */
static void own_devices(void *handle, cl_device_id *list, size_t size)
{
	struct ocl_object *o;

	ocl_lock();
	o = ocl_find(handle, OCL_PROGRAM);
	for (size_t i = 0; o && o->domain->away && list && i < size / sizeof(*list); i++)
		if (list[i] == o->domain->devices[0])
			list[i] = o->domain->program_devices[0];
	ocl_unlock();
}

static void own_count(void *handle, ocl_kind_t kind, void *value, size_t size)
{
	struct ocl_object *o;

	ocl_lock();
	o = ocl_find(handle, kind);
	if (o && value && size >= sizeof(cl_uint))
		*(cl_uint *)value = o->refs;
	ocl_unlock();
}

/* The device of the object elsewhere for one of the program's. */
static cl_device_id own_device(void *handle, ocl_kind_t kind, const void *asked,
			       cl_device_id device)
{
	struct ocl_object *o;

	if (LIKELY(!ocl.moves) || !device)
		return device;
	ocl_lock();
	o = ocl_find(handle, kind);
	if (o && o->domain->away && (asked != handle || o->made_away))
		for (cl_device_id *own = o->domain->program_devices; *own; own++)
			if (*own == device) {
				device = o->domain->devices[0];
				break;
			}
	ocl_unlock();
	return device;
}

/* status becomes what the call says of `asked`. */
#define ASK(handle, kind, call)                                                                    \
	void *asked = ocl_checked(handle, kind);                                                   \
	struct ocl_kept kept = {0};                                                                \
	uint32_t moves;                                                                            \
	cl_int status;                                                                             \
                                                                                                   \
	do {                                                                                       \
		moves = ocl.moves;                                                                 \
		status = NEXT->call;                                                               \
	} while (UNLIKELY(elsewhere(handle, kind, status, &asked, moves, &kept)));                 \
	ocl_let(&kept)

#define MOVED(handle) (UNLIKELY(asked && asked != (void *)(handle)) && status == CL_SUCCESS)
/* An object that was made after a move is in a context of the runtime's, too. */
#define TOLD (UNLIKELY(ocl.moves) && status == CL_SUCCESS)

cl_int CL_API_CALL layer_clGetContextInfo(cl_context c, cl_context_info name, size_t size,
					  void *value, size_t *size_ret)
{
	ASK(c, OCL_CONTEXT, clGetContextInfo(asked, name, size, value, size_ret));
	if (MOVED(c) && name == CL_CONTEXT_REFERENCE_COUNT)
		own_count(c, OCL_CONTEXT, value, size);
	return status;
}

cl_int CL_API_CALL layer_clGetCommandQueueInfo(cl_command_queue q, cl_command_queue_info name,
					       size_t size, void *value, size_t *size_ret)
{
	ASK(q, OCL_QUEUE, clGetCommandQueueInfo(asked, name, size, value, size_ret));
	if (TOLD && (name == CL_QUEUE_CONTEXT || name == CL_QUEUE_DEVICE))
		own_handle(q, OCL_QUEUE, name == CL_QUEUE_CONTEXT ? CONTEXT : DEVICE, value, size);
	if (MOVED(q) && name == CL_QUEUE_REFERENCE_COUNT)
		own_count(q, OCL_QUEUE, value, size);
	return status;
}

cl_int CL_API_CALL layer_clGetSupportedImageFormats(cl_context c, cl_mem_flags flags,
						    cl_mem_object_type type, cl_uint room,
						    cl_image_format *list, cl_uint *count)
{
	ASK(c, OCL_CONTEXT, clGetSupportedImageFormats(asked, flags, type, room, list, count));
	return status;
}

cl_int CL_API_CALL layer_clGetMemObjectInfo(cl_mem m, cl_mem_info name, size_t size, void *value,
					    size_t *size_ret)
{
	ASK(m, OCL_MEM, clGetMemObjectInfo(asked, name, size, value, size_ret));
	if (TOLD && (name == CL_MEM_CONTEXT || name == CL_MEM_ASSOCIATED_MEMOBJECT))
		own_handle(m, OCL_MEM, name == CL_MEM_CONTEXT ? CONTEXT : PARENT, value, size);
	if (MOVED(m) && name == CL_MEM_REFERENCE_COUNT)
		own_count(m, OCL_MEM, value, size);
	return status;
}

cl_int CL_API_CALL layer_clGetImageInfo(cl_mem m, cl_image_info name, size_t size, void *value,
					size_t *size_ret)
{
	ASK(m, OCL_MEM, clGetImageInfo(asked, name, size, value, size_ret));
	if (TOLD && name == CL_IMAGE_BUFFER)
		own_handle(m, OCL_MEM, PARENT, value, size);
	return status;
}

cl_int CL_API_CALL layer_clSetMemObjectDestructorCallback(cl_mem m,
							  void(CL_CALLBACK *fn)(cl_mem, void *),
							  void *data)
{
	return NEXT->clSetMemObjectDestructorCallback(ocl_checked(m, OCL_MEM), fn, data);
}

cl_int CL_API_CALL layer_clGetSamplerInfo(cl_sampler s, cl_sampler_info name, size_t size,
					  void *value, size_t *size_ret)
{
	ASK(s, OCL_SAMPLER, clGetSamplerInfo(asked, name, size, value, size_ret));
	if (TOLD && name == CL_SAMPLER_CONTEXT)
		own_handle(s, OCL_SAMPLER, CONTEXT, value, size);
	if (MOVED(s) && name == CL_SAMPLER_REFERENCE_COUNT)
		own_count(s, OCL_SAMPLER, value, size);
	return status;
}

/* ---- programs and kernels ---- */

cl_int CL_API_CALL layer_clGetProgramInfo(cl_program p, cl_program_info name, size_t size,
					  void *value, size_t *size_ret)
{
	ASK(p, OCL_PROGRAM, clGetProgramInfo(asked, name, size, value, size_ret));
	if (TOLD && name == CL_PROGRAM_CONTEXT)
		own_handle(p, OCL_PROGRAM, CONTEXT, value, size);
	if (TOLD && name == CL_PROGRAM_DEVICES)
		own_devices(p, value, size);
	if (MOVED(p) && name == CL_PROGRAM_REFERENCE_COUNT)
		own_count(p, OCL_PROGRAM, value, size);
	return status;
}

static cl_int build_info(cl_program p, cl_device_id device, cl_program_build_info name, size_t size,
			 void *value, size_t *size_ret)
{
	ASK(p, OCL_PROGRAM,
	    clGetProgramBuildInfo(asked, own_device(p, OCL_PROGRAM, asked, device), name, size,
				  value, size_ret));
	return status;
}

/* The program doesn't see the option that the layer has added. */
cl_int CL_API_CALL layer_clGetProgramBuildInfo(cl_program handle, cl_device_id device,
					       cl_program_build_info name, size_t size, void *value,
					       size_t *size_ret)
{
	const char *own = NULL;
	struct ocl_program *p;
	cl_int status;
	size_t n;

	if (name != CL_PROGRAM_BUILD_OPTIONS || ocl.passive)
		return build_info(handle, device, name, size, value, size_ret);
	status = build_info(handle, device, name, 0, NULL, &n);
	ocl_lock();
	p = ocl_find(handle, OCL_PROGRAM);
	if (p && p->steps)
		own = p->steps->options ? p->steps->options : "";
	n = own ? strlen(own) + 1 : n;
	if (status == CL_SUCCESS && !own)
		status = build_info(handle, device, name, size, value, size_ret);
	else if (status == CL_SUCCESS && value && size < n)
		status = CL_INVALID_VALUE;
	else if (status == CL_SUCCESS && value)
		memcpy(value, own, n);
	if (status == CL_SUCCESS && size_ret)
		*size_ret = n;
	ocl_unlock();
	return status;
}

cl_int CL_API_CALL layer_clGetKernelInfo(cl_kernel k, cl_kernel_info name, size_t size, void *value,
					 size_t *size_ret)
{
	ASK(k, OCL_KERNEL, clGetKernelInfo(asked, name, size, value, size_ret));
	if (TOLD && (name == CL_KERNEL_CONTEXT || name == CL_KERNEL_PROGRAM))
		own_handle(k, OCL_KERNEL, name == CL_KERNEL_CONTEXT ? CONTEXT : PROGRAM, value,
			   size);
	if (MOVED(k) && name == CL_KERNEL_REFERENCE_COUNT)
		own_count(k, OCL_KERNEL, value, size);
	return status;
}

cl_int CL_API_CALL layer_clGetKernelArgInfo(cl_kernel k, cl_uint index, cl_kernel_arg_info name,
					    size_t size, void *value, size_t *size_ret)
{
	ASK(k, OCL_KERNEL, clGetKernelArgInfo(asked, index, name, size, value, size_ret));
	return status;
}

cl_int CL_API_CALL layer_clGetKernelWorkGroupInfo(cl_kernel k, cl_device_id device,
						  cl_kernel_work_group_info name, size_t size,
						  void *value, size_t *size_ret)
{
	ASK(k, OCL_KERNEL,
	    clGetKernelWorkGroupInfo(asked, own_device(k, OCL_KERNEL, asked, device), name, size,
				     value, size_ret));
	return status;
}

cl_int CL_API_CALL layer_clGetKernelSubGroupInfo(cl_kernel k, cl_device_id device,
						 cl_kernel_sub_group_info name, size_t in_size,
						 const void *in, size_t size, void *value,
						 size_t *size_ret)
{
	ASK(k, OCL_KERNEL,
	    clGetKernelSubGroupInfo(asked, own_device(k, OCL_KERNEL, asked, device), name, in_size,
				    in, size, value, size_ret));
	return status;
}

/* ---- devices ---- */

/* Of no context, but a server that has ended must be missed by one before there is another. */
static bool missed(cl_int status, uint32_t moves)
{
	bool again;

	if (LIKELY(status != CL_DEVICE_NOT_AVAILABLE) || ocl.passive)
		return false;
	ocl_lock();
	again = ocl.domains && ocl_epoch_moved(ocl.domains, status, moves);
	ocl_unlock();
	return again;
}

#define UNTIL_ANSWERED(call)                                                                       \
	do {                                                                                       \
		uint32_t moves_;                                                                   \
		do {                                                                               \
			moves_ = ocl.moves;                                                        \
			status = NEXT->call;                                                       \
		} while (missed(status, moves_));                                                  \
	} while (0)

cl_int CL_API_CALL layer_clGetPlatformInfo(cl_platform_id p, cl_platform_info name, size_t size,
					   void *value, size_t *size_ret)
{
	cl_int status;

	UNTIL_ANSWERED(clGetPlatformInfo(p, name, size, value, size_ret));
	return status;
}

cl_int CL_API_CALL layer_clGetDeviceInfo(cl_device_id device, cl_device_info name, size_t size,
					 void *value, size_t *size_ret)
{
	cl_int status;

	UNTIL_ANSWERED(clGetDeviceInfo(device, name, size, value, size_ret));
	return status;
}

cl_int CL_API_CALL layer_clCreateSubDevices(cl_device_id device,
					    const cl_device_partition_property *properties,
					    cl_uint room, cl_device_id *list, cl_uint *count)
{
	cl_int status;

	UNTIL_ANSWERED(clCreateSubDevices(device, properties, room, list, count));
	return status;
}
