/* SPDX-License-Identifier: BSD-3-Clause */
/* An OpenCL layer below Hale's: tells of each marker that waits for all that is in its queue; with
 * KILL=N the process that has the runtime ends as soon as a user event has been set to an error for
 * the Nth time. */
#include "ocl_layer.h"
#include "ocl_kill.h"

static cl_int CL_API_CALL mark(cl_command_queue q, cl_uint count, const cl_event *list,
			       cl_event *event)
{
	if (count == 0)
		fprintf(stderr, "a marker\n");
	return next.clEnqueueMarkerWithWaitList(q, count, list, event);
}

static cl_int CL_API_CALL set(cl_event e, cl_int status)
{
	static int times;
	const char *nth = getenv("KILL");
	cl_int code = next.clSetUserEventStatus(e, status);

	if (status < 0 && ++times == (nth ? atoi(nth) : 0))
		kill_runtime();
	return code;
}

static cl_int take_calls(void)
{
	mine.clEnqueueMarkerWithWaitList = mark;
	mine.clSetUserEventStatus = set;
	return CL_SUCCESS;
}
