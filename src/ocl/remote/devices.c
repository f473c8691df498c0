/* SPDX-License-Identifier: BSD-3-Clause */
/* Platforms, devices, sub-devices. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "ocl/remote/remote.h"

enum { PLATFORMS_MAX = 32 };

struct stub *remote_platform[PLATFORMS_MAX], *remote_device[DEVICES_MAX];
uint32_t remote_platforms, remote_devices;

cl_int devices_learn(void)
{
	uint64_t list[2 * DEVICES_MAX] = {0};
	struct remote_answer a = {.data = list, .room = sizeof(list)};
	struct call c = {0};
	cl_int status = remote_call(&c, OP_DEVICES, &a);

	if (status != CL_SUCCESS)
		return status;
	/* in this order, so that their numbers are the server's */
	for (uint64_t i = 0; i < a.value[0]; i++)
		remote_platform[remote_platforms++] = stub_create(STUB_PLATFORM, NULL);
	for (uint64_t i = 0; i < a.value[1]; i++) {
		struct stub *s = stub_create(STUB_DEVICE, NULL);
		s->parent = remote_platform[list[2 * i]];
		s->type = list[2 * i + 1];
		remote_device[remote_devices++] = s;
	}
	return CL_SUCCESS;
}

cl_int CL_API_CALL remote_get_platforms(cl_uint room, cl_platform_id *list, cl_uint *count)
{
	if ((!list && !count) || (list && room == 0))
		return CL_INVALID_VALUE;
	if (remote_fill_once() != CL_SUCCESS || remote_platforms == 0)
		return CL_PLATFORM_NOT_FOUND_KHR;
	for (cl_uint i = 0; list && i < room && i < remote_platforms; i++)
		list[i] = (cl_platform_id)remote_platform[i];
	if (count)
		*count = remote_platforms;
	return CL_SUCCESS;
}

/* Extensions with functions of their own, or that need the program's memory, are not offered. */
static bool is_offered(const char *name, size_t n)
{
	static const char *const not_offered[] = {"command_buffer_",
						  "_gl_",
						  "_egl_",
						  "d3d",
						  "_dx9_",
						  "external",
						  "_svm",
						  "subgroup_named",
						  "create_command_queue",
						  "il_program",
						  "_import_"};

	for (size_t i = 0; i < ARRAY_LEN(not_offered); i++)
		if (memmem(name, n, not_offered[i], strlen(not_offered[i])))
			return false;
	return true;
}

static cl_int filter_extensions(cl_int status, size_t room, char *to, size_t *size_ret)
{
	char *out = to;

	if (status != CL_SUCCESS || !to || room == 0)
		return status;
	for (const char *p = to; *p;) {
		size_t n = strcspn(p, " ");
		if (n > 0 && is_offered(p, n)) {
			if (out != to)
				*out++ = ' ';
			memmove(out, p, n);
			out += n;
		}
		p += n;
		p += *p == ' ';
	}
	*out = '\0';
	if (size_ret)
		*size_ret = (size_t)(out - to) + 1;
	return status;
}

/* The whole list is asked for, so that the length fits what is left of it. */
static cl_int extensions(wire_about_t about, const struct stub *s, uint32_t name, size_t room,
			 void *to, size_t *size_ret)
{
	char text[16384];
	size_t n = 0;
	cl_int status = remote_info(about, s, 0, name, sizeof(text), text, &n);

	status = filter_extensions(status, sizeof(text), text, &n);
	return status == CL_SUCCESS ? give(text, n, room, to, size_ret) : status;
}

cl_int CL_API_CALL remote_platform_info(cl_platform_id p, cl_platform_info name, size_t room,
					void *to, size_t *size_ret)
{
	struct stub *s = stub_of(p, STUB_PLATFORM);

	if (!s)
		return CL_INVALID_PLATFORM;
	if (name == CL_PLATFORM_EXTENSIONS)
		return extensions(ABOUT_PLATFORM, s, name, room, to, size_ret);
	return remote_info(ABOUT_PLATFORM, s, 0, name, room, to, size_ret);
}

cl_int CL_API_CALL remote_get_devices(cl_platform_id p, cl_device_type type, cl_uint room,
				      cl_device_id *list, cl_uint *count)
{
	struct stub *s = p ? stub_of(p, STUB_PLATFORM) : remote_platform[0];
	struct remote_answer a = {0};
	struct call c = {0};
	cl_uint n = 0;
	cl_int status;

	if (!s)
		return CL_INVALID_PLATFORM;
	put(&c, ABOUT_DEVICES);
	put(&c, s->id);
	put(&c, type);
	put(&c, room);
	put(&c, list != NULL);
	put(&c, count != NULL);
	status = remote_call(&c, OP_INFO, &a);
	/* when the server has ended there are still devices: their contexts go on elsewhere */
	if (status != CL_SUCCESS && status != CL_DEVICE_NOT_AVAILABLE)
		return status;
	for (uint32_t i = 0; i < remote_devices; i++) {
		struct stub *d = remote_device[i];
		bool custom = d->type & CL_DEVICE_TYPE_CUSTOM;
		if (d->parent != s ||
		    !((type == CL_DEVICE_TYPE_ALL && !custom) || (type & d->type) ||
		      (type == CL_DEVICE_TYPE_DEFAULT && n == 0)))
			continue;
		if (list && n < room)
			list[n] = (cl_device_id)d;
		n++;
		if (type == CL_DEVICE_TYPE_DEFAULT)
			break;
	}
	if (count)
		*count = n;
	return n || status == CL_SUCCESS ? CL_SUCCESS : CL_DEVICE_NOT_FOUND;
}

/* What this driver takes from the device. */
static bool is_part(const struct stub *s)
{
	return s->parent->kind == STUB_DEVICE;
}

static struct stub *platform_of(struct stub *s)
{
	while (is_part(s))
		s = s->parent;
	return s->parent;
}

static cl_int CL_API_CALL device_info(cl_device_id device, cl_device_info name, size_t room,
				      void *to, size_t *size_ret)
{
	struct stub *s = stub_of(device, STUB_DEVICE), *platform, *parent;
	const cl_ulong zero = 0;
	cl_device_exec_capabilities kernels = CL_EXEC_KERNEL;

	if (!s)
		return CL_INVALID_DEVICE;
	platform = platform_of(s);
	parent = is_part(s) ? s->parent : NULL;
	switch (name) {
	case CL_DEVICE_PLATFORM:
		return give(&platform, sizeof(void *), room, to, size_ret);
	case CL_DEVICE_EXTENSIONS:
		return extensions(ABOUT_DEVICE, s, name, room, to, size_ret);
	case CL_DEVICE_PARENT_DEVICE:
		return give(&parent, sizeof(void *), room, to, size_ret);
	case CL_DEVICE_QUEUE_ON_DEVICE_PROPERTIES:
		return give(&zero, sizeof(cl_ulong), room, to, size_ret);
	case CL_DEVICE_PIPE_SUPPORT:
	case CL_DEVICE_DEVICE_ENQUEUE_CAPABILITIES:
	case CL_DEVICE_HOST_UNIFIED_MEMORY: /* with this process it isn't */
		return give(&zero, sizeof(cl_uint), room, to, size_ret);
	case CL_DEVICE_REFERENCE_COUNT:
		return give(&s->refs, sizeof(s->refs), room, to, size_ret);
	case CL_DEVICE_EXECUTION_CAPABILITIES:
		return give(&kernels, sizeof(kernels), room, to, size_ret);
	default:
		return remote_info(ABOUT_DEVICE, s, 0, name, room, to, size_ret);
	}
}

/* Counts have no meaning for devices that aren't parts of others. */
static cl_int CL_API_CALL retain_device(cl_device_id device)
{
	struct stub *s = stub_of(device, STUB_DEVICE);

	return s && !is_part(s) ? CL_SUCCESS : stub_retain(device, STUB_DEVICE, CL_INVALID_DEVICE);
}

static cl_int CL_API_CALL release_device(cl_device_id device)
{
	struct stub *s = stub_of(device, STUB_DEVICE);

	return s && !is_part(s) ? CL_SUCCESS : stub_release(device, STUB_DEVICE, CL_INVALID_DEVICE);
}

/* How a device was divided: a server that takes the place of another one is told again. */
struct division {
	struct division *next;
	struct stub *parent; /* held by its parts */
	cl_device_partition_property *properties;
	cl_uint count, alive;
	struct {
		struct stub *stub; /* NULL: gone, and the number may be another one's */
		uint32_t id;
	} part[];
};

static pthread_mutex_t divisions_lock = PTHREAD_MUTEX_INITIALIZER;
static struct division *divisions, **divisions_end = &divisions; /* parents before parts */

/* Counts may be any number but the 0 that ends them; another one ends the list. */
static size_t properties_bytes(const cl_device_partition_property *properties)
{
	size_t n = 0;

	while (properties[n])
		n++;
	if (properties[0] == CL_DEVICE_PARTITION_BY_COUNTS && properties[n + 1] == 0)
		n++;
	return (n + 1) * sizeof(*properties);
}

static void put_division(struct call *c, const struct stub *s,
			 const cl_device_partition_property *properties, const struct division *v)
{
	put(c, s->id);
	put_blob(c, properties, properties_bytes(properties));
	put(c, v ? v->count : 0);
	for (cl_uint i = 0; v && i < v->count; i++)
		put(c, v->part[i].id);
}

/* Into as many parts as v has; NULL: only a question. */
static cl_int divide(const struct stub *s, const cl_device_partition_property *properties,
		     const struct division *v, struct remote_answer *a)
{
	struct call c = {0};
	cl_int status;

	put_division(&c, s, properties, v);
	status = remote_call(&c, OP_SUB_DEVICES, a);
	if (status != CL_DEVICE_NOT_AVAILABLE || stub_contexts() > 0)
		return status;
	remote_renew(); /* which divides it as v says; contexts are to notice it themselves */
	return v && !remote_has_ended(remote_life()) ? CL_SUCCESS
						     : remote_call(&c, OP_SUB_DEVICES, a);
}

void devices_again(bool (*send)(const struct call *, wire_op_t))
{
	pthread_mutex_lock(&divisions_lock);
	for (const struct division *v = divisions; v; v = v->next) {
		struct call c = {0};

		put_division(&c, v->parent, v->properties, v);
		if (!send(&c, OP_SUB_DEVICES))
			break;
		for (cl_uint i = 0; i < v->count; i++) {
			if (v->part[i].stub)
				continue;
			c.words = c.refs = 0;
			put(&c, v->part[i].id);
			send(&c, OP_RELEASE);
		}
	}
	pthread_mutex_unlock(&divisions_lock);
}

void devices_part_ends(struct stub *s)
{
	struct division *v = s->division, **at = &divisions;

	if (!v)
		return;
	pthread_mutex_lock(&divisions_lock);
	for (cl_uint i = 0; i < v->count; i++)
		if (v->part[i].stub == s)
			v->part[i].stub = NULL;
	if (--v->alive > 0) {
		pthread_mutex_unlock(&divisions_lock);
		return;
	}
	while (*at != v)
		at = &(*at)->next;
	*at = v->next;
	if (divisions_end == &v->next)
		divisions_end = at;
	pthread_mutex_unlock(&divisions_lock);
	free(v->properties);
	free(v);
}

static struct division *division_new(struct stub *s, const cl_device_partition_property *properties,
				     cl_uint count, struct stub **parts)
{
	struct division *v = calloc(1, sizeof(*v) + count * sizeof(v->part[0]));
	size_t bytes = properties_bytes(properties);

	if (v)
		v->properties = malloc(bytes);
	if (!v || !v->properties) {
		free(v);
		return NULL;
	}
	memcpy(v->properties, properties, bytes);
	v->parent = s;
	v->count = v->alive = count;
	for (cl_uint i = 0; i < count; i++) {
		v->part[i].stub = parts[i];
		v->part[i].id = parts[i]->id;
		parts[i]->division = v;
	}
	pthread_mutex_lock(&divisions_lock);
	*divisions_end = v;
	divisions_end = &v->next;
	pthread_mutex_unlock(&divisions_lock);
	return v;
}

static cl_int make_parts(struct stub *s, const cl_device_partition_property *properties,
			 cl_uint count, cl_device_id *list)
{
	struct stub **parts = (struct stub **)list;
	struct division *v;
	struct remote_answer a = {0};
	cl_int status;
	cl_uint made;

	for (made = 0; made < count && (parts[made] = stub_create(STUB_DEVICE, NULL)); made++) {
		parts[made]->parent = s;
		parts[made]->type = s->type;
		stub_hold(parts[made], s);
	}
	v = made == count ? division_new(s, properties, count, parts) : NULL;
	status = v ? divide(s, properties, v, &a) : CL_OUT_OF_HOST_MEMORY;
	/* a server that has come in between knows them already */
	while (status != CL_SUCCESS && made > 0)
		stub_release(parts[--made], STUB_DEVICE, 0);
	return status;
}

static cl_int CL_API_CALL sub_devices(cl_device_id device,
				      const cl_device_partition_property *properties, cl_uint room,
				      cl_device_id *list, cl_uint *count)
{
	struct stub *s = stub_of(device, STUB_DEVICE);
	struct remote_answer a = {0};
	cl_int status;

	if (!s)
		return CL_INVALID_DEVICE;
	if (!properties || (!list && !count) || (list && room == 0))
		return CL_INVALID_VALUE;
	status = divide(s, properties, NULL, &a);
	if (status == CL_SUCCESS && list && a.value[0] > room)
		status = CL_INVALID_VALUE;
	if (status == CL_SUCCESS && list)
		status = make_parts(s, properties, (cl_uint)a.value[0], list);
	if (status == CL_SUCCESS && count)
		*count = (cl_uint)a.value[0];
	return status;
}

void put_devices(struct call *c, cl_uint count, const cl_device_id *list)
{
	put_handles(c, count, list, STUB_DEVICE);
}

struct stub **device_list(cl_uint count, const cl_device_id *list)
{
	struct stub **copy = calloc(count + 1, sizeof(struct stub *));

	for (cl_uint i = 0; copy && i < count; i++)
		copy[i] = (struct stub *)list[i];
	return copy;
}

void devices_fill(cl_icd_dispatch *d)
{
	d->clGetPlatformIDs = remote_get_platforms;
	d->clGetPlatformInfo = remote_platform_info;
	d->clGetDeviceIDs = remote_get_devices;
	d->clGetDeviceInfo = device_info;
	d->clRetainDevice = retain_device;
	d->clReleaseDevice = release_device;
	d->clCreateSubDevices = sub_devices;
}
