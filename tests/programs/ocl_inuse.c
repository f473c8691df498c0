/* SPDX-License-Identifier: BSD-3-Clause */
/* An OpenCL layer below Hale's: calls of threads with the name "slow" take their time, and the last
 * release of what such a call is about meanwhile is told of. */
#include "ocl_layer.h"
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

static const void *_Atomic used; /* by the slow thread */

static void begin(const void *object)
{
	char name[16];

	prctl(PR_GET_NAME, name);
	if (strcmp(name, "slow") != 0)
		return;
	used = object;
	usleep(400000);
}

static void look(const void *object, cl_uint references)
{
	if (object == used && references == 1)
		printf("released while it is used\n");
}

static cl_int CL_API_CALL finish(cl_command_queue q)
{
	cl_int status;

	begin(q);
	status = next.clFinish(q);
	used = NULL;
	return status;
}

static cl_int CL_API_CALL wait_for(cl_uint count, const cl_event *list)
{
	cl_int status;

	begin(list[0]);
	status = next.clWaitForEvents(count, list);
	used = NULL;
	return status;
}

static cl_int CL_API_CALL build(cl_program p, cl_uint count, const cl_device_id *devices,
				const char *options, void(CL_CALLBACK *notify)(cl_program, void *),
				void *data)
{
	cl_int status;

	begin(p);
	status = next.clBuildProgram(p, count, devices, options, notify, data);
	used = NULL;
	return status;
}

static cl_int CL_API_CALL release_queue(cl_command_queue q)
{
	cl_uint n = 0;

	next.clGetCommandQueueInfo(q, CL_QUEUE_REFERENCE_COUNT, sizeof(n), &n, NULL);
	look(q, n);
	return next.clReleaseCommandQueue(q);
}

static cl_int CL_API_CALL release_event(cl_event e)
{
	cl_uint n = 0;

	next.clGetEventInfo(e, CL_EVENT_REFERENCE_COUNT, sizeof(n), &n, NULL);
	look(e, n);
	return next.clReleaseEvent(e);
}

static cl_int CL_API_CALL release_program(cl_program p)
{
	cl_uint n = 0;

	next.clGetProgramInfo(p, CL_PROGRAM_REFERENCE_COUNT, sizeof(n), &n, NULL);
	look(p, n);
	return next.clReleaseProgram(p);
}

static cl_int take_calls(void)
{
	mine.clFinish = finish;
	mine.clWaitForEvents = wait_for;
	mine.clBuildProgram = build;
	mine.clReleaseCommandQueue = release_queue;
	mine.clReleaseEvent = release_event;
	mine.clReleaseProgram = release_program;
	return CL_SUCCESS;
}
