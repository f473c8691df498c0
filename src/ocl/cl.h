/* SPDX-License-Identifier: BSD-3-Clause */
/* OpenCL's headers as this layer needs them: everything, the deprecated too. */
#ifndef HALE_OCL_CL_H
#define HALE_OCL_CL_H

#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_0_APIS
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#define CL_USE_DEPRECATED_OPENCL_2_0_APIS
#define CL_USE_DEPRECATED_OPENCL_2_1_APIS
#define CL_USE_DEPRECATED_OPENCL_2_2_APIS
#include <CL/cl.h>
#include <CL/cl_ext.h>
#include <CL/cl_icd.h>
#include <CL/cl_layer.h>

/* All of an image: width, height or layers of lines, depth or layers. */
static inline void cl_image_region(const cl_image_desc *i, size_t region[3])
{
	region[0] = i->image_width;
	region[1] = region[2] = 1;
	if (i->image_type == CL_MEM_OBJECT_IMAGE1D_ARRAY)
		region[1] = i->image_array_size;
	if (i->image_type == CL_MEM_OBJECT_IMAGE2D || i->image_type == CL_MEM_OBJECT_IMAGE3D ||
	    i->image_type == CL_MEM_OBJECT_IMAGE2D_ARRAY)
		region[1] = i->image_height;
	if (i->image_type == CL_MEM_OBJECT_IMAGE3D)
		region[2] = i->image_depth;
	if (i->image_type == CL_MEM_OBJECT_IMAGE2D_ARRAY)
		region[2] = i->image_array_size;
}

#endif
