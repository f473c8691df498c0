/* SPDX-License-Identifier: BSD-3-Clause */
/* Two libraries in one, for devices that count no errors: an OpenCL layer to be loaded below Hale's
 * that says where on the bus the device is, and an NVML (as libnvidia-ml.so.1) that knows the
 * device there and counts its errors in the file $OCL_NVML. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "ocl_layer.h"

static cl_int CL_API_CALL device_info(cl_device_id d, cl_device_info name, size_t size, void *value,
				      size_t *ret)
{
	static const cl_uint place[4] = {1, 0x1b, 2, 0}; /* domain, bus, device, function */

	if (name != 0x410F) /* CL_DEVICE_PCI_BUS_INFO_KHR */
		return next.clGetDeviceInfo(d, name, size, value, ret);
	if (value && size < sizeof(place))
		return CL_INVALID_VALUE;
	if (value)
		memcpy(value, place, sizeof(place));
	if (ret)
		*ret = sizeof(place);
	return CL_SUCCESS;
}

static cl_int take_calls(void)
{
	mine.clGetDeviceInfo = device_info;
	return CL_SUCCESS;
}

/* ---- NVML ---- */

int nvmlInit_v2(void);
int nvmlDeviceGetHandleByPciBusId_v2(const char *id, void **device);
int nvmlDeviceGetTotalEccErrors(void *device, int type, int counter, unsigned long long *count);

static int the_device;

int nvmlInit_v2(void)
{
	return 0;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *id, void **device)
{
	if (strcmp(id, "00000001:1b:02.0") != 0)
		return 6; /* NVML_ERROR_NOT_FOUND */
	*device = &the_device;
	return 0;
}

int nvmlDeviceGetTotalEccErrors(void *device, int type, int counter, unsigned long long *count)
{
	FILE *f = fopen(getenv("OCL_NVML"), "r");
	int got;

	if (device != &the_device || type != 1 || counter != 0 || !f)
		return 2; /* NVML_ERROR_INVALID_ARGUMENT */
	got = fscanf(f, "%llu", count);
	fclose(f);
	return got == 1 ? 0 : 999;
}
