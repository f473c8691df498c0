/* SPDX-License-Identifier: BSD-3-Clause */
/* Uncorrected errors in device memory as NVIDIA's driver counts them: asked by the layer, or by the
 * process that has the runtime (ocl/remote/). */
#ifndef HALE_OCL_NVML_H
#define HALE_OCL_NVML_H

#include <stdbool.h>
#include <stdint.h>
#include "ocl/cl.h"

/* What the layer asks of a device whose runtime is in another process (clGetDeviceInfo, uint64_t);
 * CL_INVALID_VALUE: nobody counts there. */
enum { OCL_DEVICE_ERRORS = 0x48414c45 };

/* False: there is no NVML. */
bool ocl_nvml_load(void);
/* Since the driver was loaded; 0 for a device without a counter. May take some hundred
 * milliseconds. info: the runtime's clGetDeviceInfo. */
uint64_t ocl_nvml_errors(cl_device_id device, cl_api_clGetDeviceInfo info);

#endif
