/* SPDX-License-Identifier: BSD-3-Clause */
/* What an OpenCL program may tell Hale's layer about its memory objects, to make protection from
 * device memory errors cheaper. Everything here is optional, and a program that uses it runs
 * without the layer too: haleSetMemFlags() is found at run time.
 *
 *	haleSetMemFlags(c_dev, HALE_MEM_SCRATCH);
 */
#ifndef HALE_OPENCL_H
#define HALE_OPENCL_H

#include <CL/cl.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Kernels that are enqueued from now on don't modify the object; the host may. */
#define HALE_MEM_READ_ONLY ((cl_bitfield)1 << 0)
/* The content means nothing once the program has waited for the commands that use it: it is not
 * saved then, and not restored after an error. Until then it is, whatever else is waited for. In a
 * queue that is out of order only clFinish() counts. */
#define HALE_MEM_SCRATCH ((cl_bitfield)1 << 1)

/* Says how the commands that are enqueued from now on use a memory object, until the next call for
 * it. flags: any of the above, or 0 for an ordinary object. A sub-buffer stands for the whole
 * buffer. Does not block; any thread may call it. CL_SUCCESS, CL_INVALID_VALUE (other flags),
 * CL_INVALID_MEM_OBJECT. Source: VOCL-FT (Peña, Bland, Balaji, SC 2015), section 5.2,
 * voclSetMemFlags. */
typedef cl_int(CL_API_CALL *hale_set_mem_flags_fn)(cl_mem object, cl_bitfield flags);

/* Without the layer: does nothing, CL_SUCCESS. */
static inline cl_int haleSetMemFlags(cl_mem object, cl_bitfield flags)
{
	union {
		void *address;
		hale_set_mem_flags_fn call;
	} found;

#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#endif
	/* deprecated, but the one that needs no platform */
	found.address = clGetExtensionFunctionAddress("haleSetMemFlags");
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif
	return found.call ? found.call(object, flags) : CL_SUCCESS;
}

#ifdef __cplusplus
}
#endif

#endif
