/* SPDX-License-Identifier: BSD-3-Clause */
/* Contexts, command queues, samplers. */
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "ocl/calls.h"
#include "ocl/entry/entry.h"
#include "ocl/epoch/epoch.h"
#include "ocl/log/log.h"

void *ocl_properties_copy(const intptr_t *list)
{
	size_t n = 0;
	void *copy;

	if (!list)
		return NULL;
	while (list[n])
		n += 2;
	copy = malloc((n + 1) * sizeof(*list));
	if (copy)
		memcpy(copy, list, (n + 1) * sizeof(*list));
	return copy;
}

/* ---- contexts ---- */

static void note_device(cl_device_id device)
{
	if (!ocl.report.device[0])
		NEXT->clGetDeviceInfo(device, CL_DEVICE_NAME, sizeof(ocl.report.device) - 1,
				      ocl.report.device, NULL);
}

static void tell_of_child(void)
{
	static bool told;

	if (!told)
		log_warn("opencl: this process is a copy, by fork, of one that uses OpenCL: what "
			 "it does is not protected");
	told = true;
}

static void context_add(cl_context c, const cl_context_properties *properties)
{
	size_t bytes = 0;
	struct domain *d;

	if (ocl.passive) {
		tell_of_child();
		return;
	}
	NEXT->clGetContextInfo(c, CL_CONTEXT_DEVICES, 0, NULL, &bytes);
	ocl_lock();
	d = ocl_object_create(sizeof(*d), OCL_CONTEXT, c, NULL);
	if (d) {
		OBJ(d)->domain = d;
		d->objects.next = d->objects.prev = &d->objects;
		d->last = d->epoch_first = d->settled = &d->first;
		d->live = 1;
		d->store.fd = -1;
		d->checkpoint_at = clock_seconds();
		d->properties = ocl_properties_copy(properties);
		d->devices = calloc(1, bytes + 1);
		d->program_devices = calloc(1, bytes + sizeof(cl_device_id));
		if (d->devices && d->program_devices) {
			NEXT->clGetContextInfo(c, CL_CONTEXT_DEVICES, bytes, d->devices, NULL);
			memcpy(d->program_devices, d->devices, bytes);
			d->device_count = (cl_uint)(bytes / sizeof(cl_device_id));
			note_device(d->devices[0]);
		}
		d->next_domain = ocl.domains;
		ocl.domains = d;
		ocl_detect_settle(d);
	}
	ocl_unlock();
}

cl_context CL_API_CALL layer_clCreateContext(const cl_context_properties *properties, cl_uint count,
					     const cl_device_id *devices,
					     void(CL_CALLBACK *notify)(const char *, const void *,
								       size_t, void *),
					     void *data, cl_int *status)
{
	cl_int code;
	cl_context c = NEXT->clCreateContext(properties, count, devices, notify, data, &code);

	if (!c && code == CL_DEVICE_NOT_AVAILABLE) /* a server that has just ended is made anew */
		c = NEXT->clCreateContext(properties, count, devices, notify, data, &code);
	if (status)
		*status = code;
	if (c)
		context_add(c, properties);
	return c;
}

cl_context CL_API_CALL
layer_clCreateContextFromType(const cl_context_properties *properties, cl_device_type type,
			      void(CL_CALLBACK *notify)(const char *, const void *, size_t, void *),
			      void *data, cl_int *status)
{
	cl_int code;
	cl_context c = NEXT->clCreateContextFromType(properties, type, notify, data, &code);

	if (!c && code == CL_DEVICE_NOT_AVAILABLE)
		c = NEXT->clCreateContextFromType(properties, type, notify, data, &code);
	if (status)
		*status = code;
	if (c)
		context_add(c, properties);
	return c;
}

cl_int CL_API_CALL layer_clRetainContext(cl_context c)
{
	return ocl_retained(c, OCL_CONTEXT, NEXT->clRetainContext(c));
}

cl_int CL_API_CALL layer_clReleaseContext(cl_context c)
{
	return ocl_release(c, OCL_CONTEXT);
}

/* ---- queues ---- */

static void queue_add(cl_context c, cl_command_queue q, cl_device_id given, cl_device_id device,
		      cl_command_queue_properties properties, const cl_queue_properties *list)
{
	struct domain *d;
	struct queue *o;

	ocl_lock();
	d = ocl_find(c, OCL_CONTEXT);
	o = d && !ocl.passive ? ocl_object_create(sizeof(*o), OCL_QUEUE, q, d) : NULL;
	if (o) {
		o->device = device;
		o->first_device = given;
		/* a part of a device: PoCL 3.1 keeps it neither with the context nor the queue */
		NEXT->clRetainDevice(given);
		o->properties = properties;
		o->list = ocl_properties_copy((const intptr_t *)list);
		o->out_of_order = properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;
		o->on_device = properties & CL_QUEUE_ON_DEVICE;
	}
	ocl_unlock();
}

/* After a move a device of the program's stands for the one where its context lives. */
static cl_device_id device_for(cl_context c, cl_device_id device)
{
	struct domain *d;

	if (LIKELY(!ocl.moves))
		return device;
	ocl_lock();
	d = ocl_find(c, OCL_CONTEXT);
	if (d && d->away)
		device = d->devices[0];
	ocl_unlock();
	return device;
}

cl_command_queue CL_API_CALL layer_clCreateCommandQueue(cl_context c, cl_device_id device,
							cl_command_queue_properties properties,
							cl_int *status)
{
	MADE_LOCKED;
	cl_device_id real;
	cl_command_queue q;
	cl_int code;

	MAKE_OF(c, OCL_CONTEXT, status, real = device_for(c, device);
		q = NEXT->clCreateCommandQueue(ocl_real(c, OCL_CONTEXT), real, properties, &code));
	if (q)
		queue_add(c, q, device, real, properties, NULL);
	return q;
}

cl_command_queue CL_API_CALL layer_clCreateCommandQueueWithProperties(
    cl_context c, cl_device_id device, const cl_queue_properties *list, cl_int *status)
{
	MADE_LOCKED;
	cl_command_queue_properties properties = 0;
	cl_device_id real;
	cl_command_queue q;
	cl_int code;

	MAKE_OF(c, OCL_CONTEXT, status, real = device_for(c, device);
		q = NEXT->clCreateCommandQueueWithProperties(ocl_real(c, OCL_CONTEXT), real, list,
							     &code));
	for (const cl_queue_properties *p = list; p && *p; p += 2)
		if (p[0] == CL_QUEUE_PROPERTIES)
			properties = p[1];
	if (q)
		queue_add(c, q, device, real, properties, list);
	return q;
}

cl_int CL_API_CALL layer_clRetainCommandQueue(cl_command_queue q)
{
	return ocl_retained(q, OCL_QUEUE, NEXT->clRetainCommandQueue(q));
}

cl_int CL_API_CALL layer_clSetCommandQueueProperty(cl_command_queue q,
						   cl_command_queue_properties properties,
						   cl_bool enable, cl_command_queue_properties *old)
{
	struct queue *o;
	cl_int status;

	ocl_lock();
	status = NEXT->clSetCommandQueueProperty(ocl_real(q, OCL_QUEUE), properties, enable, old);
	o = status == CL_SUCCESS ? ocl_find(q, OCL_QUEUE) : NULL;
	if (o && (properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE))
		o->out_of_order = enable;
	ocl_unlock();
	return status;
}

cl_int CL_API_CALL layer_clFlush(cl_command_queue q)
{
	uint32_t moves = ocl.moves;
	struct ocl_kept kept;
	cl_int status = NEXT->clFlush(ocl_real_kept(q, OCL_QUEUE, &kept));
	struct queue *o;

	ocl_let(&kept);
	if (LIKELY(status != CL_DEVICE_NOT_AVAILABLE) || ocl.passive)
		return status;
	ocl_lock();
	o = ocl_find(q, OCL_QUEUE);
	if (o)
		status = ocl_epoch_failed(OBJ(o)->domain, o, status, moves);
	ocl_unlock();
	return status;
}

cl_int CL_API_CALL layer_clFinish(cl_command_queue q)
{
	bool moved = false;
	uint64_t number = 0;
	struct queue *o = NULL;
	cl_int status = CL_SUCCESS;

	if (ocl.passive)
		return NEXT->clFinish(q);
	do {
		uint32_t moves = ocl.moves;
		struct ocl_kept kept;

		ocl_lock();
		o = ocl_find(q, OCL_QUEUE);
		number = o ? o->last_number : 0;
		ocl_unlock();
		status = NEXT->clFinish(ocl_real_kept(q, OCL_QUEUE, &kept));
		ocl_let(&kept);
		ocl_lock();
		o = ocl_find(q, OCL_QUEUE);
		moved = o && status != CL_SUCCESS &&
			(status = ocl_epoch_failed(OBJ(o)->domain, o, status, moves)) == CL_SUCCESS;
		if (moved) /* what waited for the program waits in another queue now */
			ocl_unlock();
	} while (moved);
	if (o && status == CL_SUCCESS && number > o->finished)
		o->finished = number;
	if (o && status == CL_SUCCESS)
		status = ocl_epoch_sync(OBJ(o)->domain, o, true);
	ocl_unlock();
	ocl_svm_free_settle();
	return status;
}

/* Before the program has it no more: epochs take what is in such a queue for run, and the log still
 * needs to know that, when nobody can be asked any more. What waits for the program can't be waited
 * for: such a queue stays. Data that the program may still wait for by an event are brought and
 * checked now: with the last object of its context the log goes, too. */
static void finish_last(cl_command_queue handle)
{
	struct ocl_kept kept = {0};
	bool last, reads = false;
	struct queue *q;

	ocl_lock();
	q = ocl_find(handle, OCL_QUEUE);
	last = q && OBJ(q)->refs == 1;
	if (last && q->gates & OBJ(q)->domain->gates_unset) {
		q->kept = true;
		NEXT->clRetainCommandQueue(handle);
		last = false;
	}
	last = last && OBJ(q)->held > 0;
	reads = last && OBJ(q)->domain->unchecked > 0;
	ocl_unlock();
	if (reads) {
		layer_clFinish(handle);
	} else if (last) {
		NEXT->clFinish(ocl_real_kept(handle, OCL_QUEUE, &kept));
		ocl_let(&kept);
	}
}

cl_int CL_API_CALL layer_clReleaseCommandQueue(cl_command_queue q)
{
	finish_last(q);
	return ocl_release(q, OCL_QUEUE);
}

/* ---- samplers ---- */

static void sampler_add(cl_context c, cl_sampler s)
{
	struct domain *d;

	ocl_lock();
	d = ocl_find(c, OCL_CONTEXT);
	if (d && !ocl.passive)
		ocl_object_create(sizeof(struct ocl_object), OCL_SAMPLER, s, d);
	ocl_unlock();
}

cl_sampler CL_API_CALL layer_clCreateSampler(cl_context c, cl_bool normalized,
					     cl_addressing_mode addressing, cl_filter_mode filter,
					     cl_int *status)
{
	MADE_LOCKED;
	cl_sampler s;
	cl_int code;

	MAKE_OF(c, OCL_CONTEXT, status,
		s = NEXT->clCreateSampler(ocl_real(c, OCL_CONTEXT), normalized, addressing, filter,
					  &code));
	if (s)
		sampler_add(c, s);
	return s;
}

cl_sampler CL_API_CALL layer_clCreateSamplerWithProperties(cl_context c,
							   const cl_sampler_properties *list,
							   cl_int *status)
{
	MADE_LOCKED;
	cl_sampler s;
	cl_int code;

	MAKE_OF(c, OCL_CONTEXT, status,
		s = NEXT->clCreateSamplerWithProperties(ocl_real(c, OCL_CONTEXT), list, &code));
	if (s)
		sampler_add(c, s);
	return s;
}

cl_int CL_API_CALL layer_clRetainSampler(cl_sampler s)
{
	return ocl_retained(s, OCL_SAMPLER, NEXT->clRetainSampler(ocl_checked(s, OCL_SAMPLER)));
}

cl_int CL_API_CALL layer_clReleaseSampler(cl_sampler s)
{
	return ocl_release(s, OCL_SAMPLER);
}

/* ---- the end of any of them ---- */

static void queue_fini(struct queue *q)
{
	NEXT->clReleaseDevice(q->first_device);
	if (q->kept)
		NEXT->clReleaseCommandQueue(OBJ(q)->handle);
	if (q->replay)
		NEXT->clReleaseCommandQueue(q->replay);
	if (q->before_gate)
		NEXT->clReleaseEvent(q->before_gate);
	free(q->list);
}

void ocl_object_fini(struct ocl_object *o)
{
	switch (o->kind) {
	case OCL_QUEUE:
		queue_fini((struct queue *)o);
		break;
	case OCL_MEM:
	case OCL_SVM:
		ocl_mem_fini((struct mem *)o);
		break;
	case OCL_PROGRAM:
		ocl_program_fini((struct ocl_program *)o);
		break;
	case OCL_KERNEL:
		ocl_kernel_fini((struct kernel *)o);
		break;
	case OCL_EVENT: {
		struct event *e = (struct event *)o;
		if (!e->queue && !e->seen)
			ocl_gate_open(o->domain, e);
		if (e->queue)
			ocl_drop(OBJ(e->queue));
		free(e->told);
		break;
	}
	case OCL_RECORDED:
		ocl_recorded_fini((struct recorded *)o);
		break;
	case OCL_CONTEXT:
	case OCL_SAMPLER:
		break;
	}
}
