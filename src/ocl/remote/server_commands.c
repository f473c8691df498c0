/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands for queues, other than transfers. */
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "ocl/remote/server.h"

/* ---- wait lists and events ---- */

void waits_take(struct in *in, struct waits *w)
{
	bool given;
	cl_uint n;

	memset(w, 0, sizeof(*w));
	w->count = (cl_uint)next(in);
	given = next(in) != 0;
	n = (cl_uint)next(in);
	if (given)
		w->list = n + 2 < ARRAY_LEN(w->few) ? w->few : malloc((n + 2ul) * sizeof(cl_event));
	for (cl_uint i = 0; i < n; i++) {
		cl_event e = real_of(next(in), STUB_EVENT);
		if (w->list)
			w->list[i] = e;
	}
	if (w->list)
		w->list[n] = NULL;
	if (given && w->count > n) /* there are fewer: one that is wrong follows them */
		w->count = n + 1;
	w->event = next(in);
}

cl_event *waits_event(struct waits *w)
{
	return w->event ? &w->made : NULL;
}

cl_int waits_done(struct waits *w, cl_int status)
{
	if (w->list != w->few)
		free(w->list);
	if (status != CL_SUCCESS || !w->event)
		return status;
	if (!obj_is_unused(w->event)) {
		clReleaseEvent(w->made);
		return CL_INVALID_VALUE;
	}
	obj_set(w->event, STUB_EVENT, w->made, 0);
	return CL_SUCCESS;
}

/* ---- commands ---- */

struct server_commands_place {
	cl_command_queue q;
	cl_mem a, b;
	const struct obj *image; /* of a copy between one and a buffer */
	struct waits w;
};

static void take_three(struct in *in, size_t v[3])
{
	for (int i = 0; i < 3; i++)
		v[i] = next(in);
}

static cl_int copy(struct in *in, struct server_commands_place *p)
{
	size_t from = next(in), to = next(in), size = next(in), end;

	waits_take(in, &p->w);
	if (p->a && p->b &&
	    (__builtin_add_overflow(from, size, &end) || __builtin_add_overflow(to, size, &end)))
		return CL_INVALID_VALUE;
	return clEnqueueCopyBuffer(p->q, p->a, p->b, from, to, size, p->w.count, p->w.list,
				   waits_event(&p->w));
}

static cl_int copy_rect(struct in *in, struct server_commands_place *p)
{
	size_t from[3], to[3], region[3], pitch[4];

	take_three(in, from);
	take_three(in, to);
	take_three(in, region);
	for (int i = 0; i < 4; i++)
		pitch[i] = next(in);
	waits_take(in, &p->w);
	if (p->a && p->b &&
	    (rect_wraps(from, region, pitch[0], pitch[1]) ||
	     rect_wraps(to, region, pitch[2], pitch[3])))
		return CL_INVALID_VALUE;
	return clEnqueueCopyBufferRect(p->q, p->a, p->b, from, to, region, pitch[0], pitch[1],
				       pitch[2], pitch[3], p->w.count, p->w.list,
				       waits_event(&p->w));
}

static cl_int fill(struct in *in, struct server_commands_place *p)
{
	size_t offset = next(in), size = next(in), n, end;
	const void *pattern = next_blob(in, &n);

	waits_take(in, &p->w);
	if (p->a && __builtin_add_overflow(offset, size, &end))
		return CL_INVALID_VALUE;
	return clEnqueueFillBuffer(p->q, p->a, pattern, n, offset, size, p->w.count, p->w.list,
				   waits_event(&p->w));
}

/* That many pixels of an image, in a buffer from at on. */
static bool bytes_wrap(const struct obj *image, const size_t region[3], size_t at)
{
	size_t n = image->element;

	for (int i = 0; i < 3; i++)
		if (__builtin_mul_overflow(n, region[i], &n))
			return true;
	return __builtin_add_overflow(n, at, &n);
}

static cl_int copy_image(struct in *in, struct server_commands_place *p)
{
	size_t from[3], to[3], region[3], at;

	take_three(in, from);
	if (in->r->op == OP_COPY_IMAGE) {
		take_three(in, to);
		take_three(in, region);
		waits_take(in, &p->w);
		if (p->a && p->b && (box_wraps(from, region) || box_wraps(to, region)))
			return CL_INVALID_VALUE;
		return clEnqueueCopyImage(p->q, p->a, p->b, from, to, region, p->w.count, p->w.list,
					  waits_event(&p->w));
	}
	take_three(in, region);
	at = next(in);
	waits_take(in, &p->w);
	if (p->a && p->b && (box_wraps(from, region) || bytes_wrap(p->image, region, at)))
		return CL_INVALID_VALUE;
	if (in->r->op == OP_IMAGE_TO_BUFFER)
		return clEnqueueCopyImageToBuffer(p->q, p->a, p->b, from, region, at, p->w.count,
						  p->w.list, waits_event(&p->w));
	return clEnqueueCopyBufferToImage(p->q, p->a, p->b, at, from, region, p->w.count, p->w.list,
					  waits_event(&p->w));
}

static cl_int fill_image(struct in *in, struct server_commands_place *p)
{
	size_t origin[3], region[3], n;
	const void *colour;

	take_three(in, origin);
	take_three(in, region);
	colour = next_blob(in, &n);
	waits_take(in, &p->w);
	if (n < 16 || (p->a && box_wraps(origin, region))) /* 16: the most that a colour has */
		return CL_INVALID_VALUE;
	return clEnqueueFillImage(p->q, p->a, colour, origin, region, p->w.count, p->w.list,
				  waits_event(&p->w));
}

static cl_int launch(struct in *in, struct server_commands_place *p)
{
	cl_kernel k = real_of(next(in), STUB_KERNEL);
	cl_uint dims = (cl_uint)next(in);
	unsigned has = (unsigned)next(in);
	size_t offset[3], global[3], local[3];

	for (int i = 0; i < 3; i++) {
		offset[i] = next(in);
		global[i] = next(in);
		local[i] = next(in);
	}
	waits_take(in, &p->w);
	return clEnqueueNDRangeKernel(p->q, k, dims, has & 1 ? offset : NULL,
				      has & 2 ? global : NULL, has & 4 ? local : NULL, p->w.count,
				      p->w.list, waits_event(&p->w));
}

static cl_int order(struct in *in, struct server_commands_place *p)
{
	bool barrier = next(in);

	waits_take(in, &p->w);
	return barrier
		   ? clEnqueueBarrierWithWaitList(p->q, p->w.count, p->w.list, waits_event(&p->w))
		   : clEnqueueMarkerWithWaitList(p->q, p->w.count, p->w.list, waits_event(&p->w));
}

static cl_int migrate(struct in *in, struct server_commands_place *p)
{
	cl_mem_migration_flags flags = next(in);
	cl_uint count = (cl_uint)next(in);
	bool given = next(in) != 0;
	cl_uint n = (cl_uint)next(in);
	cl_mem *list = given ? calloc(n + 1, sizeof(cl_mem)) : NULL;
	cl_int status;

	if (given && count > n)
		count = n + 1;

	for (cl_uint i = 0; i < n; i++) {
		cl_mem m = real_of(next(in), STUB_MEM);
		if (list)
			list[i] = m;
	}
	waits_take(in, &p->w);
	status = clEnqueueMigrateMemObjects(p->q, count, list, flags, p->w.count, p->w.list,
					    waits_event(&p->w));
	free(list);
	return status;
}

cl_int serve_command(struct in *in, struct out *out)
{
	struct server_commands_place p = {.q = real_of(next(in), STUB_QUEUE)};
	cl_int status;

	if (in->r->op == OP_FLUSH)
		return p.q ? clFlush(p.q) : CL_SUCCESS; /* of an earlier server's */
	if (in->r->op >= OP_COPY && in->r->op <= OP_FILL_IMAGE) {
		p.a = real_of(next(in), STUB_MEM);
		p.b = real_of(in->w[0], STUB_MEM);
		p.image = obj_at(in->w[in->r->op == OP_IMAGE_TO_BUFFER ? -1 : 0]);
		in->w++;
	}
	switch (in->r->op) {
	case OP_COPY:
		status = copy(in, &p);
		break;
	case OP_COPY_RECT:
		status = copy_rect(in, &p);
		break;
	case OP_FILL:
		status = fill(in, &p);
		break;
	case OP_COPY_IMAGE:
	case OP_IMAGE_TO_BUFFER:
	case OP_BUFFER_TO_IMAGE:
		status = copy_image(in, &p);
		break;
	case OP_FILL_IMAGE:
		status = fill_image(in, &p);
		break;
	case OP_LAUNCH:
		status = launch(in, &p);
		break;
	case OP_MARKER:
		status = order(in, &p);
		break;
	case OP_MIGRATE:
		status = migrate(in, &p);
		break;
	default:
		return CL_INVALID_OPERATION;
	}
	return waits_done(&p.w, status);
}
