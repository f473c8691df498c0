/* SPDX-License-Identifier: BSD-3-Clause */
/* What an OpenCL layer below Hale's needs, for the libraries that include this: `next` is what is
 * below it. It puts its own functions into `mine` in take_calls(), which returns CL_SUCCESS or why
 * not. */
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <CL/cl_icd.h>
#include <CL/cl_layer.h>
#include <string.h>

static cl_icd_dispatch next, mine;

static cl_int take_calls(void);

CL_API_ENTRY cl_int CL_API_CALL clGetLayerInfo(cl_layer_info name, size_t size, void *value,
					       size_t *ret)
{
	cl_layer_api_version version = CL_LAYER_API_VERSION_100;

	if (name != CL_LAYER_API_VERSION || (value && size < sizeof(version)))
		return CL_INVALID_VALUE;
	if (value)
		memcpy(value, &version, sizeof(version));
	if (ret)
		*ret = sizeof(version);
	return CL_SUCCESS;
}

CL_API_ENTRY cl_int CL_API_CALL clInitLayer(cl_uint entries, const cl_icd_dispatch *target,
					    cl_uint *count, const cl_icd_dispatch **table)
{
	size_t known = sizeof(mine) / sizeof(void *);

	memcpy(&next, (const void *)target, (entries < known ? entries : known) * sizeof(void *));
	mine = next;
	*count = (cl_uint)known;
	*table = &mine;
	return take_calls();
}
