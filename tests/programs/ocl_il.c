/* SPDX-License-Identifier: BSD-3-Clause */
/* An OpenCL layer to be loaded below Hale's, by which PoCL takes programs in an intermediate
 * language: that language is OpenCL C, and specialization constant N, an int, is its macro CN. */
#include <stdio.h>
#include "ocl_layer.h"

enum { MANY = 64, CONSTANTS = 4 };

static struct {
	cl_program program;
	int set[CONSTANTS], value[CONSTANTS];
} il[MANY];
static int count;

static cl_program CL_API_CALL with_il(cl_context c, const void *text, size_t size, cl_int *status)
{
	const char *source = text;

	if (count == MANY)
		return NULL;
	il[count].program = next.clCreateProgramWithSource(c, 1, &source, &size, status);
	return il[count++].program;
}

static int index_of(cl_program p)
{
	int i = count - 1;

	while (i >= 0 && il[i].program != p)
		i--;
	return i;
}

static cl_int CL_API_CALL set_constant(cl_program p, cl_uint id, size_t size, const void *value)
{
	int i = index_of(p);

	if (i < 0)
		return CL_INVALID_PROGRAM;
	if (id >= CONSTANTS)
		return CL_INVALID_SPEC_ID;
	if (size != sizeof(int) || !value)
		return CL_INVALID_VALUE;
	il[i].set[id] = 1;
	memcpy(&il[i].value[id], value, size);
	return CL_SUCCESS;
}

static cl_int CL_API_CALL build(cl_program p, cl_uint n, const cl_device_id *devices,
				const char *options, void(CL_CALLBACK *fn)(cl_program, void *),
				void *data)
{
	char more[256] = "";
	int i = index_of(p), at = snprintf(more, sizeof(more), "%s", options ? options : "");

	for (int id = 0; i >= 0 && id < CONSTANTS; id++)
		if (il[i].set[id])
			at += snprintf(more + at, sizeof(more) - (size_t)at, " -DC%d=%d", id,
				       il[i].value[id]);
	return next.clBuildProgram(p, n, devices, more, fn, data);
}

static cl_int take_calls(void)
{
	mine.clCreateProgramWithIL = with_il;
	mine.clSetProgramSpecializationConstant = set_constant;
	mine.clBuildProgram = build;
	return CL_SUCCESS;
}
