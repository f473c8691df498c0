/* SPDX-License-Identifier: BSD-3-Clause */
#include "ocl/epoch/nvml.h"
#include <dlfcn.h>
#include <stdio.h>
#include "base/base.h"

typedef void *nvml_device;
static struct {
	int (*init)(void);
	int (*by_pci)(const char *, nvml_device *);
	int (*errors)(nvml_device, int, int, unsigned long long *);
	bool good;
} nvml;

bool ocl_nvml_load(void)
{
	static void *lib; /* stays */

	lib = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!lib)
		return false;
	*(void **)&nvml.init = dlsym(lib, "nvmlInit_v2");
	*(void **)&nvml.by_pci = dlsym(lib, "nvmlDeviceGetHandleByPciBusId_v2");
	*(void **)&nvml.errors = dlsym(lib, "nvmlDeviceGetTotalEccErrors");
	nvml.good = nvml.init && nvml.by_pci && nvml.errors && nvml.init() == 0;
	return nvml.good;
}

/* cl_khr_pci_bus_info, or what NVIDIA had before it. */
static bool pci_of(cl_device_id device, cl_api_clGetDeviceInfo info, char *text, size_t size)
{
	struct {
		cl_uint domain, bus, device, function;
	} pci = {0};
	cl_uint slot = 0;

	if (info(device, 0x410F, sizeof(pci), &pci, NULL) != CL_SUCCESS) {
		if (info(device, 0x4008, sizeof(pci.bus), &pci.bus, NULL) != CL_SUCCESS ||
		    info(device, 0x4009, sizeof(slot), &slot, NULL) != CL_SUCCESS)
			return false;
		info(device, 0x400A, sizeof(pci.domain), &pci.domain, NULL);
		pci.device = slot >> 3;
		pci.function = slot & 7;
	}
	snprintf(text, size, "%08x:%02x:%02x.%x", pci.domain, pci.bus, pci.device, pci.function);
	return true;
}

/* To look a device up takes as long as to ask it. dev NULL: NVML doesn't know it. */
static struct {
	cl_device_id device;
	nvml_device dev;
} known[64];

static nvml_device device_of(cl_device_id device, cl_api_clGetDeviceInfo info)
{
	size_t i = 0;
	nvml_device dev = NULL;
	char pci[32];

	while (i < ARRAY_LEN(known) && known[i].device && known[i].device != device)
		i++;
	if (i < ARRAY_LEN(known) && known[i].device)
		return known[i].dev;
	if (!pci_of(device, info, pci, sizeof(pci)) || nvml.by_pci(pci, &dev) != 0)
		dev = NULL;
	if (i < ARRAY_LEN(known)) {
		known[i].device = device;
		known[i].dev = dev;
	}
	return dev;
}

uint64_t ocl_nvml_errors(cl_device_id device, cl_api_clGetDeviceInfo info)
{
	unsigned long long n = 0;
	nvml_device dev = nvml.good ? device_of(device, info) : NULL;

	if (dev && nvml.errors(dev, 1 /* uncorrected */, 0 /* volatile */, &n) == 0)
		return n;
	return 0;
}
