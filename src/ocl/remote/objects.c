/* SPDX-License-Identifier: BSD-3-Clause */
/* Contexts, queues, samplers. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "ocl/remote/remote.h"

static void *refuse(cl_int code, cl_int *status)
{
	if (status)
		*status = code;
	return NULL;
}

/* ---- contexts ---- */

static cl_int look_at_properties(const cl_context_properties *list, struct stub **platform)
{
	*platform = NULL;
	for (const cl_context_properties *p = list; p && *p; p += 2) {
		if (p[0] == CL_CONTEXT_PLATFORM) {
			*platform = stub_of((void *)p[1], STUB_PLATFORM);
			if (!*platform)
				return CL_INVALID_PLATFORM;
		} else if (p[0] != CL_CONTEXT_INTEROP_USER_SYNC) {
			return CL_INVALID_PROPERTY;
		}
	}
	return CL_SUCCESS;
}

/* What the runtime has to say of a context is that it has ended. */
struct context_callback {
	struct callback b;
	void(CL_CALLBACK *notify)(const char *, const void *, size_t, void *);
	void *data;
	_Atomic bool done; /* it has been called, or the context is gone: who is second frees it */
};

static void tell_context(struct callback *self, int32_t status)
{
	struct context_callback *b = (struct context_callback *)self;

	b->notify("hale: the process with the OpenCL runtime has ended", NULL, 0, b->data);
	if (atomic_exchange(&b->done, true))
		free(b);
}

void notify_end(struct callback *self)
{
	struct context_callback *b = (struct context_callback *)self;

	if (callback_remove(self) || atomic_exchange(&b->done, true))
		free(b);
}

static void notify_later(struct stub *s,
			 void(CL_CALLBACK *notify)(const char *, const void *, size_t, void *),
			 void *data)
{
	struct context_callback *b = malloc(sizeof(*b));

	if (!b)
		return;
	*b = (struct context_callback){.b.call = tell_context, .notify = notify, .data = data};
	s->of_context.notify = &b->b;
	callback_add(&b->b);
}

static cl_context CL_API_CALL create_context(const cl_context_properties *properties, cl_uint count,
					     const cl_device_id *devices,
					     void(CL_CALLBACK *notify)(const char *, const void *,
								       size_t, void *),
					     void *data, cl_int *status)
{
	struct stub *platform, *s;
	struct call c = {0};
	cl_int code = look_at_properties(properties, &platform);

	if (code != CL_SUCCESS)
		return refuse(code, status);
	if (!devices || count == 0 || (!notify && data))
		return refuse(CL_INVALID_VALUE, status);
	for (cl_uint i = 0; i < count; i++)
		if (!stub_of(devices[i], STUB_DEVICE))
			return refuse(CL_INVALID_DEVICE, status);
	remote_renew();
	s = stub_create(STUB_CONTEXT, NULL);
	if (!s)
		return refuse(CL_OUT_OF_HOST_MEMORY, status);
	c.era = s->era;
	s->list = stub_list_copy(properties);
	s->devices = device_list(count, devices);
	s->device_count = count;
	for (cl_uint i = 0; i < count; i++)
		stub_hold(s, (struct stub *)devices[i]);
	put(&c, s->id);
	put(&c, platform ? platform->id : 0);
	put_devices(&c, count, devices);
	s = remote_make(s, &c, OP_CONTEXT, status);
	if (s && notify)
		notify_later(s, notify, data);
	return (cl_context)s;
}

static cl_context CL_API_CALL
create_context_of(const cl_context_properties *properties, cl_device_type type,
		  void(CL_CALLBACK *notify)(const char *, const void *, size_t, void *), void *data,
		  cl_int *status)
{
	cl_device_id list[DEVICES_MAX];
	struct stub *platform;
	cl_uint n = 0;
	cl_int code = look_at_properties(properties, &platform);

	if (code == CL_SUCCESS)
		code = remote_get_devices((cl_platform_id)platform, type, DEVICES_MAX, list, &n);
	if (code != CL_SUCCESS)
		return refuse(code, status);
	return create_context(properties, n, list, notify, data, status);
}

static cl_int CL_API_CALL retain_context(cl_context c)
{
	return stub_retain(c, STUB_CONTEXT, CL_INVALID_CONTEXT);
}

static cl_int CL_API_CALL release_context(cl_context c)
{
	return stub_release(c, STUB_CONTEXT, CL_INVALID_CONTEXT);
}

/* The last one that was set is called first. */
static cl_int CL_API_CALL context_destructor(cl_context c,
					     void(CL_CALLBACK *fn)(cl_context, void *), void *data)
{
	struct stub *s = stub_of(c, STUB_CONTEXT);
	struct destructor *d;

	if (!s || !fn)
		return s ? CL_INVALID_VALUE : CL_INVALID_CONTEXT;
	d = malloc(sizeof(*d));
	if (!d)
		return CL_OUT_OF_HOST_MEMORY;
	*d = (struct destructor){.next = s->of_context.destructors, .of_context = fn, .data = data};
	s->of_context.destructors = d;
	return CL_SUCCESS;
}

static size_t list_bytes(const uint64_t *list)
{
	size_t n = 0;

	while (list && list[n])
		n += 2;
	return list ? (n + 1) * sizeof(*list) : 0;
}

static cl_int CL_API_CALL context_info(cl_context c, cl_context_info name, size_t room, void *to,
				       size_t *size_ret)
{
	struct stub *s = stub_of(c, STUB_CONTEXT);

	if (!s)
		return CL_INVALID_CONTEXT;
	switch (name) {
	case CL_CONTEXT_REFERENCE_COUNT:
		return give(&s->refs, sizeof(s->refs), room, to, size_ret);
	case CL_CONTEXT_NUM_DEVICES:
		return give(&s->device_count, sizeof(s->device_count), room, to, size_ret);
	case CL_CONTEXT_DEVICES:
		return give(s->devices, s->device_count * sizeof(cl_device_id), room, to, size_ret);
	case CL_CONTEXT_PROPERTIES:
		return give(s->list, list_bytes(s->list), room, to, size_ret);
	default:
		return remote_info(ABOUT_CONTEXT, s, 0, name, room, to, size_ret);
	}
}

/* ---- queues ---- */

static cl_command_queue make_queue(cl_context context, cl_device_id device, uint64_t properties,
				   const cl_queue_properties *list, cl_int *status)
{
	struct stub *in = stub_of(context, STUB_CONTEXT), *d = stub_of(device, STUB_DEVICE), *s;
	struct call c = {0};

	if (!in || !d)
		return refuse(in ? CL_INVALID_DEVICE : CL_INVALID_CONTEXT, status);
	s = stub_create(STUB_QUEUE, in);
	if (!s)
		return refuse(CL_OUT_OF_HOST_MEMORY, status);
	s->parent = d;
	stub_hold(s, d);
	s->type = properties;
	s->list = stub_list_copy(list);
	put(&c, s->id);
	put(&c, in->id);
	put(&c, d->id);
	put(&c, properties);
	put_blob(&c, s->list, list_bytes(s->list));
	return remote_make(s, &c, OP_QUEUE, status);
}

static cl_command_queue CL_API_CALL create_queue(cl_context context, cl_device_id device,
						 cl_command_queue_properties properties,
						 cl_int *status)
{
	return make_queue(context, device, properties, NULL, status);
}

static cl_command_queue CL_API_CALL create_queue_with(cl_context context, cl_device_id device,
						      const cl_queue_properties *list,
						      cl_int *status)
{
	cl_command_queue_properties properties = 0;
	cl_queue_properties none = 0;

	for (const cl_queue_properties *p = list; p && *p; p += 2)
		if (p[0] == CL_QUEUE_PROPERTIES)
			properties = p[1];
	if (properties & (CL_QUEUE_ON_DEVICE | CL_QUEUE_ON_DEVICE_DEFAULT))
		return refuse(CL_INVALID_QUEUE_PROPERTIES, status);
	return make_queue(context, device, properties, list ? list : &none, status);
}

static cl_int CL_API_CALL retain_queue(cl_command_queue q)
{
	return stub_retain(q, STUB_QUEUE, CL_INVALID_COMMAND_QUEUE);
}

/* A last release flushes, as the standard says. */
static cl_int CL_API_CALL release_queue(cl_command_queue q)
{
	struct stub *s = stub_of(q, STUB_QUEUE);
	struct call c = {0};

	if (s) {
		c.era = era_of(s);
		put(&c, s->id);
		remote_post(&c, OP_FLUSH);
	}
	return stub_release(q, STUB_QUEUE, CL_INVALID_COMMAND_QUEUE);
}

static cl_int CL_API_CALL queue_info(cl_command_queue q, cl_command_queue_info name, size_t room,
				     void *to, size_t *size_ret)
{
	struct stub *s = stub_of(q, STUB_QUEUE);

	if (!s)
		return CL_INVALID_COMMAND_QUEUE;
	switch (name) {
	case CL_QUEUE_CONTEXT:
		return give(&s->context, sizeof(void *), room, to, size_ret);
	case CL_QUEUE_DEVICE:
		return give(&s->parent, sizeof(void *), room, to, size_ret);
	case CL_QUEUE_REFERENCE_COUNT:
		return give(&s->refs, sizeof(s->refs), room, to, size_ret);
	case CL_QUEUE_PROPERTIES_ARRAY:
		return give(s->list, list_bytes(s->list), room, to, size_ret);
	default:
		return remote_info(ABOUT_QUEUE, s, 0, name, room, to, size_ret);
	}
}

static cl_int queue_call(cl_command_queue q, wire_op_t op, bool waits)
{
	struct stub *s = stub_of(q, STUB_QUEUE);
	struct call c = {0};

	if (!s)
		return CL_INVALID_COMMAND_QUEUE;
	c.era = era_of(s);
	put(&c, s->id);
	return waits ? remote_call(&c, op, NULL) : remote_post(&c, op);
}

static cl_int CL_API_CALL flush(cl_command_queue q)
{
	return queue_call(q, OP_FLUSH, false);
}

static cl_int CL_API_CALL finish(cl_command_queue q)
{
	return queue_call(q, OP_FINISH, true);
}

static cl_int CL_API_CALL set_queue_property(cl_command_queue q,
					     cl_command_queue_properties properties, cl_bool enable,
					     cl_command_queue_properties *old)
{
	return stub_of(q, STUB_QUEUE) ? CL_INVALID_OPERATION : CL_INVALID_COMMAND_QUEUE;
}

/* ---- samplers ---- */

static cl_sampler make_sampler(cl_context context, cl_bool normalized,
			       cl_addressing_mode addressing, cl_filter_mode filter,
			       const void *list, cl_int *status)
{
	struct stub *in = stub_of(context, STUB_CONTEXT), *s;
	struct call c = {0};

	if (!in)
		return refuse(CL_INVALID_CONTEXT, status);
	s = stub_create(STUB_SAMPLER, in);
	if (!s)
		return refuse(CL_OUT_OF_HOST_MEMORY, status);
	s->list = stub_list_copy(list);
	s->sampler = (struct stub_sampler){normalized, addressing, filter};
	put(&c, s->id);
	put(&c, in->id);
	put(&c, normalized);
	put(&c, addressing);
	put(&c, filter);
	return remote_make(s, &c, OP_SAMPLER, status);
}

static cl_sampler CL_API_CALL create_sampler(cl_context context, cl_bool normalized,
					     cl_addressing_mode addressing, cl_filter_mode filter,
					     cl_int *status)
{
	return make_sampler(context, normalized, addressing, filter, NULL, status);
}

static cl_sampler CL_API_CALL create_sampler_with(cl_context context,
						  const cl_sampler_properties *list, cl_int *status)
{
	cl_bool normalized = CL_TRUE;
	cl_addressing_mode addressing = CL_ADDRESS_CLAMP;
	cl_filter_mode filter = CL_FILTER_NEAREST;

	for (const cl_sampler_properties *p = list; p && *p; p += 2) {
		if (p[0] == CL_SAMPLER_NORMALIZED_COORDS)
			normalized = (cl_bool)p[1];
		else if (p[0] == CL_SAMPLER_ADDRESSING_MODE)
			addressing = (cl_addressing_mode)p[1];
		else if (p[0] == CL_SAMPLER_FILTER_MODE)
			filter = (cl_filter_mode)p[1];
		else
			return refuse(CL_INVALID_VALUE, status);
	}
	return make_sampler(context, normalized, addressing, filter, list, status);
}

static cl_int CL_API_CALL retain_sampler(cl_sampler s)
{
	return stub_retain(s, STUB_SAMPLER, CL_INVALID_SAMPLER);
}

static cl_int CL_API_CALL release_sampler(cl_sampler s)
{
	return stub_release(s, STUB_SAMPLER, CL_INVALID_SAMPLER);
}

static cl_int CL_API_CALL sampler_info(cl_sampler sampler, cl_sampler_info name, size_t room,
				       void *to, size_t *size_ret)
{
	struct stub *s = stub_of(sampler, STUB_SAMPLER);

	if (!s)
		return CL_INVALID_SAMPLER;
	switch (name) {
	case CL_SAMPLER_REFERENCE_COUNT:
		return give(&s->refs, sizeof(s->refs), room, to, size_ret);
	case CL_SAMPLER_CONTEXT:
		return give(&s->context, sizeof(void *), room, to, size_ret);
	case CL_SAMPLER_PROPERTIES:
		return give(s->list, list_bytes(s->list), room, to, size_ret);
	case CL_SAMPLER_NORMALIZED_COORDS:
		return give(&s->sampler.normalized, sizeof(cl_bool), room, to, size_ret);
	case CL_SAMPLER_ADDRESSING_MODE:
		return give(&s->sampler.addressing, sizeof(cl_addressing_mode), room, to, size_ret);
	case CL_SAMPLER_FILTER_MODE:
		return give(&s->sampler.filter, sizeof(cl_filter_mode), room, to, size_ret);
	default:
		return remote_info(ABOUT_SAMPLER, s, 0, name, room, to, size_ret);
	}
}

void objects_fill(cl_icd_dispatch *d)
{
	d->clCreateContext = create_context;
	d->clCreateContextFromType = create_context_of;
	d->clRetainContext = retain_context;
	d->clReleaseContext = release_context;
	d->clGetContextInfo = context_info;
	d->clSetContextDestructorCallback = context_destructor;
	d->clCreateCommandQueue = create_queue;
	d->clCreateCommandQueueWithProperties = create_queue_with;
	d->clRetainCommandQueue = retain_queue;
	d->clReleaseCommandQueue = release_queue;
	d->clGetCommandQueueInfo = queue_info;
	d->clSetCommandQueueProperty = set_queue_property;
	d->clFlush = flush;
	d->clFinish = finish;
	d->clCreateSampler = create_sampler;
	d->clCreateSamplerWithProperties = create_sampler_with;
	d->clRetainSampler = retain_sampler;
	d->clReleaseSampler = release_sampler;
	d->clGetSamplerInfo = sampler_info;
}
