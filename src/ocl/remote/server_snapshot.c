/* SPDX-License-Identifier: BSD-3-Clause */
/* Everything here as bytes in the program's memory, and back: the requests that made the objects,
 * in their order, events that are complete, and what memory objects hold. Each is a request;
 * content has its bytes behind it. One with size 0 ends it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "ocl/remote/server.h"

enum { BUFFER = 4 << 20, PLATFORMS_MAX = 32 };

/* ---- platforms and devices ---- */

static struct {
	cl_device_id id;
	cl_platform_id platform;
	uint32_t platform_index;
	uint32_t nth; /* among those of the same names */
	cl_device_type type;
	char platform_name[128], name[128];
} device[DEVICES_MAX];
static cl_uint devices, platforms;

static void add_device(cl_platform_id p, uint32_t index, cl_device_id d)
{
	cl_uint n = devices++;

	device[n].id = d;
	device[n].platform = p;
	device[n].platform_index = index;
	clGetDeviceInfo(d, CL_DEVICE_TYPE, sizeof(device[n].type), &device[n].type, NULL);
	clGetDeviceInfo(d, CL_DEVICE_NAME, sizeof(device[n].name) - 1, device[n].name, NULL);
	clGetPlatformInfo(p, CL_PLATFORM_NAME, sizeof(device[n].platform_name) - 1,
			  device[n].platform_name, NULL);
	for (cl_uint i = 0; i < n; i++)
		device[n].nth += strcmp(device[i].name, device[n].name) == 0 &&
				 strcmp(device[i].platform_name, device[n].platform_name) == 0;
}

bool devices_begin(char *why, size_t size)
{
	cl_platform_id list[PLATFORMS_MAX];
	cl_device_id all[DEVICES_MAX];
	cl_uint n;

	if (clGetPlatformIDs(PLATFORMS_MAX, list, &platforms) != CL_SUCCESS || platforms == 0) {
		snprintf(why, size, "found no OpenCL on this machine");
		return false;
	}
	if (platforms > PLATFORMS_MAX)
		platforms = PLATFORMS_MAX;
	for (cl_uint p = 0; p < platforms; p++) {
		obj_set(1 + p, STUB_PLATFORM, list[p], 0);
		if (clGetDeviceIDs(list[p], CL_DEVICE_TYPE_ALL, DEVICES_MAX, all, &n) != CL_SUCCESS)
			continue;
		for (cl_uint i = 0; i < n && devices < DEVICES_MAX; i++)
			add_device(list[p], p, all[i]);
	}
	for (cl_uint i = 0; i < devices; i++)
		obj_set(1 + platforms + i, STUB_DEVICE, device[i].id, 0);
	return true;
}

bool devices_compute_here(void)
{
	for (cl_uint i = 0; i < devices; i++)
		if (device[i].type & CL_DEVICE_TYPE_CPU)
			return true;
	return false;
}

static uint64_t sum_of(uint64_t sum, const void *data, size_t size)
{
	const unsigned char *at = data;

	for (size_t i = 0; i < size; i++)
		sum = (sum ^ at[i]) * 0x100000001b3;
	return sum;
}

uint64_t devices_sum(void)
{
	uint64_t sum = 0xcbf29ce484222325;

	for (cl_uint i = 0; i < devices; i++) {
		sum = sum_of(sum, device[i].platform_name, strlen(device[i].platform_name) + 1);
		sum = sum_of(sum, device[i].name, strlen(device[i].name) + 1);
		sum = sum_of(sum, &device[i].type, sizeof(device[i].type));
	}
	return sum;
}

cl_int serve_devices(struct out *out)
{
	uint64_t *at = (uint64_t *)out->data;

	for (cl_uint i = 0; i < devices; i++) {
		*at++ = device[i].platform_index;
		*at++ = device[i].type;
	}
	out->value[0] = platforms;
	out->value[1] = devices;
	out->bytes = devices * 16ul;
	return CL_SUCCESS;
}

static int closeness(cl_uint i, cl_device_type type, const char *platform, const char *name,
		     uint32_t nth)
{
	int same =
	    strcmp(device[i].name, name) == 0 && strcmp(device[i].platform_name, platform) == 0;

	return 4 * (same && device[i].nth == nth) + 2 * same + (device[i].type == type);
}

/* Numbers of platforms and devices are given out anew: in another order, maybe. */
static bool may_stand_for(uint64_t id)
{
	const struct obj *o = obj_at(id);

	return obj_is_unused(id) || (o && (o->kind == STUB_PLATFORM || o->kind == STUB_DEVICE));
}

/* The number stands for the device here that is most like the one it stood for. */
static cl_int find_device(struct in *in)
{
	uint64_t id = next(in), platform_id = next(in);
	cl_device_type type = next(in);
	uint32_t nth = (uint32_t)next(in);
	size_t n;
	const char *platform = next_blob(in, &n), *name = next_blob(in, &n);
	cl_uint best = 0;

	if (devices == 0)
		return CL_DEVICE_NOT_FOUND;
	for (cl_uint i = 1; i < devices; i++)
		if (closeness(i, type, platform, name, nth) >
		    closeness(best, type, platform, name, nth))
			best = i;
	if (closeness(best, type, platform, name, nth) == 0)
		return CL_DEVICE_NOT_FOUND;
	if (!may_stand_for(id) || !may_stand_for(platform_id))
		return CL_INVALID_VALUE;
	obj_set(id, STUB_DEVICE, device[best].id, 0);
	obj_set(platform_id, STUB_PLATFORM, device[best].platform, 0);
	return CL_SUCCESS;
}

/* ---- writing ---- */

struct server_snapshot_writer {
	uint64_t address, room, done; /* address 0: only to count */
	char *buffer;
	size_t filled;
	bool failed;
};

static void flush(struct server_snapshot_writer *w)
{
	if (w->filled > 0 && w->address)
		w->failed |= w->done > w->room ||
			     !store(w->address + w->done - w->filled, w->buffer, w->filled);
	w->filled = 0;
}

static void append(struct server_snapshot_writer *w, const void *data, size_t size)
{
	const char *from = data;

	if (!w->address) {
		w->done += size;
		return;
	}
	while (size > 0) {
		size_t n = BUFFER - w->filled < size ? BUFFER - w->filled : size;
		memcpy(w->buffer + w->filled, from, n);
		w->filled += n;
		w->done += n;
		from += n;
		size -= n;
		if (w->filled == BUFFER)
			flush(w);
	}
}

static void append_words(struct server_snapshot_writer *w, wire_op_t op, const uint64_t *word,
			 uint32_t words)
{
	struct wire_request r = {.size = (uint32_t)sizeof(r) + words * 8, .op = (uint16_t)op};

	append(w, &r, sizeof(r));
	append(w, word, words * 8ul);
}

static uint32_t put_text(uint64_t *word, const char *text)
{
	size_t n = strlen(text) + 1;

	word[0] = n;
	word[1] = 0;
	memcpy(&word[2], text, n);
	return 2 + (uint32_t)((n + 7) / 8);
}

static void append_devices(struct server_snapshot_writer *w)
{
	for (cl_uint i = 0; i < devices; i++) {
		uint64_t word[64] = {1 + platforms + i, 1 + device[i].platform_index,
				     device[i].type, device[i].nth};
		uint32_t n = 4;
		n += put_text(&word[n], device[i].platform_name);
		n += put_text(&word[n], device[i].name);
		append_words(w, OP_DEVICE, word, n);
	}
}

/* The number of the context that e belongs to. */
static uint64_t context_of(struct obj *o)
{
	cl_context c = NULL;

	if (o->context)
		return o->context;
	clGetEventInfo(o->real, CL_EVENT_CONTEXT, sizeof(cl_context), &c, NULL);
	for (uint32_t i = 0; i < obj_count(); i++)
		if (real_of(i, STUB_CONTEXT) == c)
			return i;
	return 0;
}

static void append_event(struct server_snapshot_writer *w, uint32_t id, struct obj *o)
{
	uint64_t word[9] = {id, context_of(o), 0, 0, 0};
	cl_int status = CL_COMPLETE;

	clGetEventInfo(o->real, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status, NULL);
	word[2] = o->type;
	word[3] = (uint64_t)(int64_t)status;
	if (o->past) {
		word[4] = (uint64_t)(int64_t)o->past->profiled;
		memcpy(&word[5], o->past->time, sizeof(o->past->time));
	} else {
		cl_int profiled = CL_SUCCESS;
		for (cl_uint i = 0; i < 4; i++)
			profiled |= clGetEventProfilingInfo(
			    o->real, CL_PROFILING_COMMAND_QUEUED + i, 8, &word[5 + i], NULL);
		word[4] =
		    (uint64_t)(int64_t)(profiled ? CL_PROFILING_INFO_NOT_AVAILABLE : CL_SUCCESS);
	}
	append_words(w, OP_EVENT_PAST, word, 9);
}

/* ---- content ---- */

/* A queue of our own on the context of o. */
static cl_command_queue open_queue(const struct obj *o)
{
	struct obj *c = obj_at(o->context);

	return c ? clCreateCommandQueue(c->real, c->device, 0, NULL) : NULL;
}

static cl_int piece(cl_command_queue q, const struct obj *o, size_t at, void *data, size_t n,
		    bool in)
{
	static const size_t zero[3];

	if (o->image)
		return in ? clEnqueueWriteImage(q, o->real, CL_TRUE, zero, o->region, 0, 0, data, 0,
						NULL, NULL)
			  : clEnqueueReadImage(q, o->real, CL_TRUE, zero, o->region, 0, 0, data, 0,
					       NULL, NULL);
	return in ? clEnqueueWriteBuffer(q, o->real, CL_TRUE, at, n, data, 0, NULL, NULL)
		  : clEnqueueReadBuffer(q, o->real, CL_TRUE, at, n, data, 0, NULL, NULL);
}

static void append_content(struct server_snapshot_writer *w, uint32_t id, const struct obj *o)
{
	uint64_t word[2] = {id, o->size}, pad = 0;
	size_t step = o->image ? o->size : BUFFER;
	bool copied = w->address && o->kind != STUB_SVM;
	cl_command_queue q = copied ? open_queue(o) : NULL;
	char *data = copied ? malloc(step ? step : 1) : NULL;

	append_words(w, OP_CONTENT, word, 2);
	if (o->kind == STUB_SVM) {
		append(w, o->real, o->size);
		append(w, &pad, (8 - o->size % 8) % 8);
		return;
	}
	for (size_t at = 0; at < o->size; at += step) {
		size_t n = o->size - at < step ? o->size - at : step;
		if (w->address && (!q || !data || piece(q, o, at, data, n, false) != CL_SUCCESS)) {
			w->failed = true;
			break;
		}
		append(w, data, n);
	}
	append(w, &pad, (8 - o->size % 8) % 8);
	free(data);
	if (q)
		clReleaseCommandQueue(q);
}

static void append_all(struct server_snapshot_writer *w)
{
	struct wire_request end = {0};

	append_devices(w);
	for (struct server_record *r = records.next; r != &records; r = r->next)
		append(w, r->request, r->request->size);
	for (uint32_t i = 1; i < obj_count(); i++) {
		struct obj *o = obj_at(i);
		if (o && o->kind == STUB_EVENT && o->real)
			append_event(w, i, o);
		else if (o && ((o->kind == STUB_MEM && o->whole) || o->kind == STUB_SVM))
			append_content(w, i, o);
	}
	append(w, &end, sizeof(end));
	flush(w);
}

static cl_int say(struct out *out, cl_int status, const char *text)
{
	out->bytes = strlen(text) + 1;
	memcpy(out->data, text, out->bytes);
	return status;
}

cl_int serve_quiesce(struct out *out)
{
	struct server_snapshot_writer count = {0};

	if (unset_events > 0)
		return say(out, CL_INVALID_OPERATION,
			   "there are user events that the program has not set yet");
	finish_all();
	append_all(&count);
	out->value[0] = count.done;
	return CL_SUCCESS;
}

cl_int serve_snapshot(struct in *in, struct out *out)
{
	struct server_snapshot_writer w = {.address = next(in)};

	w.room = next(in);
	w.buffer = malloc(BUFFER);
	if (!w.buffer)
		return say(out, CL_OUT_OF_HOST_MEMORY, "the OpenCL server is out of memory");
	append_all(&w);
	free(w.buffer);
	return w.failed ? say(out, CL_OUT_OF_RESOURCES,
			      "reading it failed, or there is no memory for it")
			: CL_SUCCESS;
}

/* ---- reading ---- */

struct server_snapshot_reader {
	uint64_t address, left;
	char *buffer;
	size_t at, filled;
};

static bool take(struct server_snapshot_reader *r, void *to, size_t size)
{
	char *out = to;

	while (size > 0) {
		if (r->at == r->filled) {
			r->filled = r->left < BUFFER ? r->left : BUFFER;
			r->at = 0;
			if (r->filled == 0 || !fetch(r->buffer, r->address, r->filled))
				return false;
			r->address += r->filled;
			r->left -= r->filled;
		}
		size_t n = r->filled - r->at < size ? r->filled - r->at : size;
		memcpy(out, r->buffer + r->at, n);
		r->at += n;
		out += n;
		size -= n;
	}
	return true;
}

static bool put_content(struct server_snapshot_reader *r, const uint64_t *word)
{
	struct obj *o = obj_at(word[0]);
	uint64_t pad;
	cl_command_queue q = o && o->kind == STUB_MEM && o->size == word[1] ? open_queue(o) : NULL;
	size_t step = !q ? 0 : o->image ? o->size : BUFFER;
	char *data = q ? malloc(step ? step : 1) : NULL;
	bool good = data != NULL;

	if (o && o->kind == STUB_SVM && o->size == word[1])
		return take(r, o->real, o->size) && take(r, &pad, (8 - o->size % 8) % 8);
	for (size_t at = 0; good && at < o->size; at += step) {
		size_t n = o->size - at < step ? o->size - at : step;
		good = take(r, data, n) && piece(q, o, at, data, n, true) == CL_SUCCESS;
	}
	good = good && take(r, &pad, (8 - o->size % 8) % 8);
	free(data);
	if (q)
		clReleaseCommandQueue(q);
	return good;
}

/* Arguments are set last: they may be objects that were made after their kernel. */
struct later {
	struct later *next;
	struct wire_request *request;
};

static cl_int make_again(const struct wire_request *r)
{
	struct in in = {.r = r, .w = r->word, .again = true};
	struct out out = {.slot = WIRE_NO_REPLY};
	char data[WIRE_INLINE];

	out.data = data;
	return r->op == OP_DEVICE ? find_device(&in) : serve(&in, &out);
}

static cl_int take_request(struct server_snapshot_reader *r, struct wire_request **request)
{
	struct wire_request head, *whole;

	*request = NULL;
	if (!take(r, &head, sizeof(head)))
		return CL_INVALID_VALUE;
	if (head.size == 0)
		return CL_SUCCESS;
	if (head.size < sizeof(head) || head.size % 8 || head.op >= OP_STATE ||
	    head.size - sizeof(head) > r->left + r->filled - r->at)
		return CL_INVALID_VALUE;
	whole = malloc(head.size);
	if (!whole)
		return CL_OUT_OF_HOST_MEMORY;
	*whole = head;
	if (!take(r, whole->word, head.size - sizeof(head)) || !shape_is_right(whole)) {
		free(whole);
		return CL_INVALID_VALUE;
	}
	*request = whole;
	return CL_SUCCESS;
}

static cl_int set_later(struct later *list, cl_int status)
{
	while (list) {
		struct later *l = list;
		list = l->next;
		if (status == CL_SUCCESS)
			status = make_again(l->request);
		free(l->request);
		free(l);
	}
	return status;
}

static cl_int restore_all(struct server_snapshot_reader *r, unsigned *op)
{
	struct later *later = NULL;
	cl_int status = CL_SUCCESS;

	while (status == CL_SUCCESS) {
		struct wire_request *request;
		struct later *l = NULL;

		status = take_request(r, &request);
		if (status != CL_SUCCESS || !request)
			break;
		*op = request->op;
		if (request->op == OP_KERNEL_ARG && (l = malloc(sizeof(*l)))) {
			*l = (struct later){later, request};
			later = l;
			continue;
		}
		if (request->op == OP_CONTENT)
			status = put_content(r, request->word) ? CL_SUCCESS : CL_OUT_OF_RESOURCES;
		else
			status = make_again(request);
		free(request);
	}
	return set_later(later, status);
}

cl_int serve_restore(struct in *in, struct out *out)
{
	struct server_snapshot_reader r = {.address = next(in)};
	char text[128];
	unsigned op = 0;
	cl_int status = CL_OUT_OF_HOST_MEMORY;

	r.left = next(in);
	r.buffer = malloc(BUFFER);
	if (r.buffer)
		status = restore_all(&r, &op);
	free(r.buffer);
	if (status == CL_SUCCESS)
		return CL_SUCCESS;
	snprintf(text, sizeof(text), "%s (operation %u, error %d)",
		 op == OP_DEVICE ? "there is no device like those it used" : "the runtime refuses",
		 op, status);
	return say(out, status, text);
}
