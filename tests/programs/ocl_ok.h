/* SPDX-License-Identifier: BSD-3-Clause */
/* What OpenCL programs of the tests begin with; after CL/cl.h. A call that fails ends the program
 * with 3 and its code, what is not as expected with 4; of several threads the first one does, and
 * the others wait for its exit. */
#include <stdio.h>
#include <stdlib.h>

#define OK(call)                                                                                   \
	do {                                                                                       \
		cl_int ok_ = (call);                                                               \
		if (ok_ != CL_SUCCESS) {                                                           \
			flockfile(stdout);                                                         \
			printf("failed: %d at %s:%d\n", ok_, __func__, __LINE__);                  \
			exit(3);                                                                   \
		}                                                                                  \
	} while (0)
#define MUST(what)                                                                                 \
	do {                                                                                       \
		if (!(what)) {                                                                     \
			flockfile(stdout);                                                         \
			printf("wrong: %s in line %d\n", #what, __LINE__);                         \
			exit(4);                                                                   \
		}                                                                                  \
	} while (0)

static inline cl_device_id first_device(void)
{
	cl_platform_id platform;
	cl_device_id device;

	OK(clGetPlatformIDs(1, &platform, NULL));
	OK(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL));
	return device;
}

static inline cl_program build_source(cl_context context, const char *source, const char *options)
{
	cl_int e;
	cl_program p = clCreateProgramWithSource(context, 1, &source, NULL, &e);

	OK(e);
	OK(clBuildProgram(p, 0, NULL, options, NULL, NULL));
	return p;
}
