/* SPDX-License-Identifier: BSD-3-Clause */
/* An OpenCL layer to be loaded below Hale's, in which a device is lost:
 * OCL_FLAKY=LAUNCHES:CODE[:all]. After so many kernel launches whatever concerns the device of the
 * last one fails with CODE, and commands under way do nothing more. With "all" it is every device.
 * OCL_FLAKY_ONCE: contexts that are made after the loss work again. */
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "ocl_layer.h"

static cl_device_id lost;
static cl_context young[16];
static int launches, code, everything, once, youngs;

static int is_young(cl_context c)
{
	for (int i = 0; i < youngs; i++)
		if (young[i] == c)
			return 1;
	return 0;
}

static int gone(cl_command_queue q)
{
	cl_device_id d = NULL;
	cl_context c = NULL;

	if (!lost ||
	    next.clGetCommandQueueInfo(q, CL_QUEUE_DEVICE, sizeof(d), &d, NULL) != CL_SUCCESS)
		return 0;
	next.clGetCommandQueueInfo(q, CL_QUEUE_CONTEXT, sizeof(c), &c, NULL);
	return (d == lost || everything) && !(once && is_young(c));
}

static int event_gone(cl_event e)
{
	cl_command_queue q = NULL;

	return next.clGetEventInfo(e, CL_EVENT_COMMAND_QUEUE, sizeof(q), &q, NULL) == CL_SUCCESS &&
	       q && gone(q);
}

static int context_gone(cl_context c)
{
	cl_device_id d[8];
	size_t n = 0;

	if (!lost || (once && is_young(c)))
		return 0;
	next.clGetContextInfo(c, CL_CONTEXT_DEVICES, sizeof(d), d, &n);
	return n > 0 && (d[0] == lost || everything);
}

#define WAITS cl_uint n, const cl_event *w, cl_event *e

static cl_int CL_API_CALL launch(cl_command_queue q, cl_kernel k, cl_uint dim, const size_t *offset,
				 const size_t *global, const size_t *local, WAITS)
{
	if (launches > 0 && --launches == 0)
		next.clGetCommandQueueInfo(q, CL_QUEUE_DEVICE, sizeof(lost), &lost, NULL);
	return gone(q) ? code
		       : next.clEnqueueNDRangeKernel(q, k, dim, offset, global, local, n, w, e);
}

static cl_int CL_API_CALL read_buffer(cl_command_queue q, cl_mem m, cl_bool blocking, size_t offset,
				      size_t size, void *host, WAITS)
{
	return gone(q) ? code
		       : next.clEnqueueReadBuffer(q, m, blocking, offset, size, host, n, w, e);
}

static cl_int CL_API_CALL write_buffer(cl_command_queue q, cl_mem m, cl_bool blocking,
				       size_t offset, size_t size, const void *host, WAITS)
{
	return gone(q) ? code
		       : next.clEnqueueWriteBuffer(q, m, blocking, offset, size, host, n, w, e);
}

static cl_int CL_API_CALL copy(cl_command_queue q, cl_mem a, cl_mem b, size_t from, size_t to,
			       size_t size, WAITS)
{
	return gone(q) ? code : next.clEnqueueCopyBuffer(q, a, b, from, to, size, n, w, e);
}

static void *CL_API_CALL map(cl_command_queue q, cl_mem m, cl_bool blocking, cl_map_flags flags,
			     size_t offset, size_t size, WAITS, cl_int *status)
{
	if (!gone(q))
		return next.clEnqueueMapBuffer(q, m, blocking, flags, offset, size, n, w, e,
					       status);
	if (status)
		*status = code;
	return NULL;
}

static cl_int CL_API_CALL unmap(cl_command_queue q, cl_mem m, void *p, WAITS)
{
	return gone(q) ? code : next.clEnqueueUnmapMemObject(q, m, p, n, w, e);
}

static cl_int CL_API_CALL finish(cl_command_queue q)
{
	return gone(q) ? code : next.clFinish(q);
}

static cl_int CL_API_CALL wait_events(cl_uint count, const cl_event *list)
{
	for (cl_uint i = 0; list && i < count; i++)
		if (event_gone(list[i]))
			return CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
	return next.clWaitForEvents(count, list);
}

static cl_int CL_API_CALL event_info(cl_event e, cl_event_info name, size_t size, void *value,
				     size_t *ret)
{
	cl_int status = next.clGetEventInfo(e, name, size, value, ret);

	if (status == CL_SUCCESS && name == CL_EVENT_COMMAND_EXECUTION_STATUS && value &&
	    event_gone(e))
		*(cl_int *)value = code;
	return status;
}

static cl_mem CL_API_CALL create_buffer(cl_context c, cl_mem_flags flags, size_t size, void *host,
					cl_int *status)
{
	if (!context_gone(c))
		return next.clCreateBuffer(c, flags, size, host, status);
	if (status)
		*status = code;
	return NULL;
}

static cl_context CL_API_CALL create_context(const cl_context_properties *list, cl_uint count,
					     const cl_device_id *devices,
					     void(CL_CALLBACK *notify)(const char *, const void *,
								       size_t, void *),
					     void *data, cl_int *status)
{
	cl_context c = next.clCreateContext(list, count, devices, notify, data, status);

	if (lost && c && youngs < 16)
		young[youngs++] = c;
	return c;
}

static cl_int take_calls(void)
{
	const char *say = getenv("OCL_FLAKY");

	if (!say || sscanf(say, "%d:%d", &launches, &code) != 2)
		return CL_INVALID_VALUE;
	everything = strstr(say, ":all") != NULL;
	once = getenv("OCL_FLAKY_ONCE") != NULL;
	mine.clEnqueueNDRangeKernel = launch;
	mine.clEnqueueReadBuffer = read_buffer;
	mine.clEnqueueWriteBuffer = write_buffer;
	mine.clEnqueueCopyBuffer = copy;
	mine.clEnqueueMapBuffer = map;
	mine.clEnqueueUnmapMemObject = unmap;
	mine.clFinish = finish;
	mine.clWaitForEvents = wait_events;
	mine.clGetEventInfo = event_info;
	mine.clCreateBuffer = create_buffer;
	mine.clCreateContext = create_context;
	return CL_SUCCESS;
}
