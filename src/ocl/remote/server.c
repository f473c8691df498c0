/* SPDX-License-Identifier: BSD-3-Clause */
/* The server's objects by number, the requests that made them, and how a request is carried out. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/base.h"
#include "ocl/remote/server.h"

enum { BLOBS_MAX = 1 << 30 }; /* bytes that a request brings from the program's memory */

struct server_record records = {.next = &records, .prev = &records};

/* ---- objects ---- */

static struct {
	struct obj *at;
	uint32_t room, count;
} objects;

struct obj *obj_at(uint64_t id)
{
	return id > 0 && id < objects.count && objects.at[id].kind != STUB_FREE ? &objects.at[id]
										: NULL;
}

bool obj_is_unused(uint64_t id)
{
	return id > 0 && id < OBJECTS_MAX && !obj_at(id);
}

uint32_t obj_count(void)
{
	return objects.count;
}

struct obj *obj_set(uint64_t id, stub_kind_t kind, void *real, uint64_t context)
{
	while (id >= objects.room) {
		uint32_t room = objects.room ? 2 * objects.room : 1024;
		struct obj *more = realloc(objects.at, room * sizeof(*more));
		if (!more) {
			log_warn("opencl: the OpenCL server is out of memory");
			_exit(70);
		}
		memset(more + objects.room, 0, (room - objects.room) * sizeof(*more));
		objects.at = more;
		objects.room = room;
	}
	if (id >= objects.count)
		objects.count = (uint32_t)id + 1;
	objects.at[id] = (struct obj){.kind = kind, .real = real, .context = (uint32_t)context};
	return &objects.at[id];
}

void *real_of(uint64_t id, stub_kind_t kind)
{
	struct obj *o = obj_at(id);

	return o && o->kind == kind ? o->real : NULL;
}

static void release_real(struct obj *o)
{
	switch (o->kind) {
	case STUB_CONTEXT:
		clReleaseContext(o->real);
		break;
	case STUB_QUEUE:
		clReleaseCommandQueue(o->real);
		break;
	case STUB_MEM:
		clReleaseMemObject(o->real);
		break;
	case STUB_SAMPLER:
		clReleaseSampler(o->real);
		break;
	case STUB_PROGRAM:
		clReleaseProgram(o->real);
		break;
	case STUB_KERNEL:
		clReleaseKernel(o->real);
		break;
	case STUB_EVENT:
		clReleaseEvent(o->real);
		break;
	case STUB_DEVICE:
		clReleaseDevice(o->real);
		break;
	default:
		break;
	}
}

void record_drop(struct obj *o, struct server_record *r)
{
	if (o->own == r)
		o->own = r->own_next == r ? NULL : r->own_next;
	r->own_next->own_prev = r->own_prev;
	r->own_prev->own_next = r->own_next;
	r->prev->next = r->next;
	r->next->prev = r->prev;
	free(r->request);
	free(r);
}

/* The number may be given to another object at once. */
void obj_release(uint64_t id)
{
	struct obj *o = obj_at(id);

	if (!o)
		return;
	while (o->own)
		record_drop(o, o->own);
	if (o->kind == STUB_DEVICE)
		part_ends(id);
	if (o->unset)
		unset_events--;
	if (o->kind == STUB_CONTEXT && o->real)
		stage_drop(o->real);
	if (o->real)
		release_real(o);
	free(o->arg);
	free(o->past);
	o->kind = STUB_FREE;
	while (objects.count > 0 && objects.at[objects.count - 1].kind == STUB_FREE)
		objects.count--;
}

/* ---- records ---- */

static struct wire_request *copy_of(const struct wire_request *r)
{
	struct wire_request *copy = malloc(r->size);

	if (copy)
		memcpy(copy, r, r->size);
	return copy;
}

struct server_record *record_add(const struct wire_request *r)
{
	struct obj *o = obj_at(r->word[0]);
	struct server_record *n = o ? calloc(1, sizeof(*n)) : NULL;

	if (!n || !(n->request = copy_of(r))) {
		free(n);
		return NULL;
	}
	n->own_next = o->own ? o->own : n;
	n->own_prev = o->own ? o->own->own_prev : n;
	n->own_prev->own_next = n;
	n->own_next->own_prev = n;
	if (!o->own)
		o->own = n;
	n->prev = records.prev;
	n->next = &records;
	n->prev->next = n;
	records.prev = n;
	return n;
}

void record_replace(struct server_record *old, const struct wire_request *r)
{
	if (old->request->size == r->size) {
		memcpy(old->request, r, r->size);
		return;
	}
	struct wire_request *copy = copy_of(r);
	if (copy) {
		free(old->request);
		old->request = copy;
	}
}

/* ---- the program's memory ---- */

bool fetch(void *to, uint64_t address, size_t size)
{
	return net_is_used() ? net_fetch(to, address, size, 1, size)
			     : memory_read(to, address, size);
}

bool store(uint64_t address, const void *from, size_t size)
{
	return net_is_used() ? net_store(address, from, size) : memory_write(address, from, size);
}

/* ---- requests ---- */

const void *next_blob(struct in *in, size_t *size)
{
	const void *data;

	*size = next(in);
	in->w++;
	data = in->w;
	in->w += (*size + 7) / 8;
	return data;
}

const void *next_properties(struct in *in, intptr_t room[LIST_MAX + 8])
{
	size_t size;
	const void *list = next_blob(in, &size);

	memset(room, 0, (LIST_MAX + 8) * sizeof(*room));
	memcpy(room, list, size < LIST_MAX * sizeof(*room) ? size : LIST_MAX * sizeof(*room));
	return size > 0 ? room : NULL;
}

/* How many words the blobs in the program's memory have; false: they can't be so. They are in
 * order, and the second word of each is still in the request. */
static bool blobs_of(const struct wire_request *r, size_t *more)
{
	size_t words = (r->size - sizeof(*r)) / 8, from = 0, bytes = 0;

	for (int i = 0; i < WIRE_REFS && r->ref[i]; i++) {
		size_t at = r->ref[i] - 1u;

		if (at < from || at + 2 > words || r->word[at] > BLOBS_MAX)
			return false;
		bytes += (r->word[at] + 7) / 8 * 8;
		from = at + 2;
	}
	*more = bytes / 8;
	return bytes <= BLOBS_MAX;
}

/* r with the blobs that lie in the program's memory. NULL: they can't be read. */
static struct wire_request *complete(const struct wire_request *r)
{
	size_t words = (r->size - sizeof(*r)) / 8, more = 0, at = 0;
	struct wire_request *whole;
	uint64_t *to;

	if (!blobs_of(r, &more))
		return NULL;
	whole = malloc(r->size + more * 8);
	if (!whole)
		return NULL;
	*whole = *r;
	whole->size = (uint32_t)(r->size + more * 8);
	memset(whole->ref, 0, sizeof(whole->ref));
	to = whole->word;
	for (int i = 0; i <= WIRE_REFS; i++) {
		size_t until = i < WIRE_REFS && r->ref[i] ? r->ref[i] + 1ul : words;
		memcpy(to, &r->word[at], (until - at) * 8);
		to += until - at;
		at = until;
		if (i == WIRE_REFS || !r->ref[i])
			break;
		to[-1] = 0;
		if (r->word[until - 2] > 0)
			to[(r->word[until - 2] - 1) / 8] = 0; /* what fills its last word */
		if (!fetch(to, r->word[until - 1], r->word[until - 2])) {
			free(whole);
			return NULL;
		}
		to += (r->word[until - 2] + 7) / 8;
	}
	return whole;
}

void reply(const struct out *out, cl_int status)
{
	struct wire_reply *r = &wire->reply[out->slot % WIRE_SLOTS];

	if (out->slot >= WIRE_SLOTS)
		return;
	r->status = status;
	memcpy(r->value, out->value, sizeof(r->value));
	r->bytes = out->bytes;
	if (net_is_used())
		net_reply(out->slot);
	else
		ring_reply_done(r);
}

static void note_error(const struct wire_request *r, cl_int status)
{
	int32_t none = 0;

	log_warn(
	    "opencl: a command failed after its call had returned (operation %u, error %d); the "
	    "next wait returns that",
	    r->op, status);
	atomic_compare_exchange_strong(&wire->deferred, &none, status);
}

/* In a snapshot parts of devices have their numbers also when the program has released them, and
 * something else has the number. */
bool obj_may_be(const struct in *in, uint64_t id)
{
	struct obj *o = obj_at(id);

	if (in->again && o && o->kind == STUB_DEVICE)
		obj_release(id);
	return obj_is_unused(id);
}

/* Whose first word is the number of the object that they make. */
static bool makes_object(unsigned op)
{
	return (op >= OP_CONTEXT && op <= OP_PROGRAM_BUILT_IN) || op == OP_PROGRAM_LINK ||
	       op == OP_KERNEL || op == OP_KERNEL_CLONE || op == OP_EVENT_PAST ||
	       op == OP_USER_EVENT;
}

static bool has_answer(unsigned op)
{
	return op == OP_DEVICES || op == OP_INFO || op == OP_BINARIES || op == OP_FORMATS ||
	       op == OP_FINISH || op == OP_WAIT || op >= OP_QUIESCE;
}

cl_int serve(struct in *in, struct out *out)
{
	if (makes_object(in->r->op) && !obj_may_be(in, in->r->word[0]))
		return CL_INVALID_VALUE;
	switch (in->r->op) {
	case OP_DEVICES:
		return serve_devices(out);
	case OP_INFO:
	case OP_BINARIES:
	case OP_FORMATS:
		return serve_info(in, out);
	case OP_FINISH:
	case OP_WAIT:
		return serve_wait(in, out);
	case OP_CALLBACK:
		return serve_callback(in);
	case OP_BOX:
		return serve_box(in, out, false);
	case OP_BOX_IMAGE:
		return serve_box(in, out, true);
	case OP_QUIESCE:
		return serve_quiesce(out);
	case OP_SNAPSHOT:
		return serve_snapshot(in, out);
	case OP_RESTORE:
		return serve_restore(in, out);
	case OP_SVM:
		return serve_svm(in);
	case OP_SVM_COPY:
	case OP_SVM_FILL:
	case OP_SVM_MAP:
	case OP_SVM_UNMAP:
		return serve_svm_command(in, out);
	case OP_RELEASE:
		obj_release(next(in));
		return CL_SUCCESS;
	default:
		if (in->r->op >= OP_PROGRAM_SOURCE && in->r->op <= OP_KERNEL_ARG)
			return serve_program(in, out);
		return in->r->op < OP_STATE || in->r->op == OP_USER_EVENT ||
			       in->r->op == OP_USER_EVENT_SET
			   ? serve_object(in, out)
			   : serve_command(in, out);
	}
}

/* A program that has written somewhere by mistake: nobody can tell what it meant. */
static cl_int not_a_request(const struct wire_request *r)
{
	static bool told;

	if (!told)
		log_warn("opencl: the program has sent what is no request (operation %u, %u "
			 "bytes): it may have overwritten its memory; such requests fail",
			 r->op, r->size);
	told = true;
	return CL_INVALID_OPERATION;
}

void carry_out(const struct wire_request *r)
{
	struct wire_request *whole = r->ref[0] ? complete(r) : NULL;
	struct in in = {.r = whole ? whole : r, .w = whole ? whole->word : r->word};
	struct out out = {.slot = r->slot};
	cl_int status = CL_OUT_OF_HOST_MEMORY;

	if (r->slot < WIRE_SLOTS)
		out.data = wire->reply[r->slot].data;
	if (whole || !r->ref[0])
		status = !shape_is_right(in.r) || (!out.data && has_answer(r->op))
			     ? not_a_request(r)
			     : serve(&in, &out);
	free(whole);
	if (status == REPLY_LATER)
		return;
	if (r->slot < WIRE_SLOTS)
		reply(&out, status);
	else if (status != CL_SUCCESS)
		note_error(r, status);
}
