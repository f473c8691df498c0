/* SPDX-License-Identifier: BSD-3-Clause */
/* ocl_random: what programs do now and then: objects are retained, released and made again in mid
 * run, moved, asked for; copies between objects of other kinds. */
#include "ocl_random.h"

static void migrate(struct player *p)
{
	struct memory *m = pick(p, BUFFER), *other = pick(p, IMAGE);
	struct command c = begin(p);
	cl_mem list[2];

	if (!m || !other)
		return;
	list[0] = m->mem;
	list[1] = other->mem;
	touch(&c, m, true);
	touch(&c, other, true);
	c.block = CL_FALSE;
	ready(&c);
	OK(clEnqueueMigrateMemObjects(c.q, 2, list, below(p, 2) ? CL_MIGRATE_MEM_OBJECT_HOST : 0,
				      LIST(c)));
	memset(list, 0xee, sizeof(list)); /* it was copied */
	end(&c);
}

static void migrate_shared(struct player *p)
{
	struct memory *m = pick(p, SHARED);
	struct command c = begin(p);
	const void *at;

	if (!m)
		return;
	at = m->shared;
	touch(&c, m, true);
	c.block = CL_FALSE;
	ready(&c);
	OK(clEnqueueSVMMigrateMem(c.q, 1, &at, &m->bytes, 0, LIST(c)));
	end(&c);
}

static void copy_rectangle(struct player *p)
{
	struct memory *to = pick(p, BUFFER), *from = pick(p, BUFFER);
	size_t at[3] = {below(p, 5), below(p, 2), below(p, 2)};
	size_t source[3] = {below(p, 3), below(p, 3), 0};
	size_t size[3] = {1 + below(p, 10), 1 + below(p, 3), 1 + below(p, 2)};
	struct command c = begin(p);

	if (!to || !from || to->root == from->root || to->bytes < 600 || from->bytes < 600)
		return;
	if (&p->memories[to->root] != to || &p->memories[from->root] != from)
		return; /* PoCL 3.1 ends the program where a buffer is a part of another one */
	touch(&c, to, true);
	touch(&c, from, false);
	c.block = CL_FALSE;
	ready(&c);
	OK(clEnqueueCopyBufferRect(c.q, from->mem, to->mem, source, at, size, 16, 128, 20, 100,
				   LIST(c)));
	end(&c);
}

static void copy_image(struct player *p)
{
	struct memory *to = pick(p, IMAGE), *from = pick(p, IMAGE);
	size_t at[3] = {below(p, 2), below(p, 2), 0}, source[3] = {0, below(p, 2), 0};
	size_t size[3] = {1 + below(p, 2), 1 + below(p, 2), 1};
	struct command c = begin(p);

	if (!to || !from || to == from)
		return;
	touch(&c, to, true);
	touch(&c, from, false);
	c.block = CL_FALSE;
	ready(&c);
	OK(clEnqueueCopyImage(c.q, from->mem, to->mem, source, at, size, LIST(c)));
	end(&c);
}

/* From what the host may not read, to it, or filled. */
static void change_hidden(struct player *p)
{
	struct memory *m = pick(p, HIDDEN), *b = pick(p, BUFFER);
	cl_uint number = below(p, 999);
	uint32_t what = below(p, 3);
	struct command c = begin(p);
	size_t bytes;

	if (!m || !b)
		return;
	bytes = 4 * (1 + below(p, (m->bytes < b->bytes ? m->bytes : b->bytes) / 4));
	touch(&c, m, what > 0);
	if (what < 2)
		touch(&c, b, what == 0);
	c.block = CL_FALSE;
	ready(&c);
	if (what == 0)
		OK(clEnqueueCopyBuffer(c.q, m->mem, b->mem, 0, b->bytes - bytes, bytes, LIST(c)));
	else if (what == 1)
		OK(clEnqueueCopyBuffer(c.q, b->mem, m->mem, 0, m->bytes - bytes, bytes, LIST(c)));
	else
		OK(clEnqueueFillBuffer(c.q, m->mem, &number, 4, m->bytes - bytes, bytes, LIST(c)));
	end(&c);
}

static void change_table(struct player *p)
{
	struct memory *m = pick(p, TABLE);
	struct block *h = &p->blocks[below(p, BLOCKS)];
	struct command c = begin(p);
	bool write = below(p, 3);
	size_t bytes;

	if (!m)
		return;
	bytes = 1 + below(p, m->bytes < h->bytes ? m->bytes : h->bytes);
	touch(&c, m, write);
	touch_uses(&c, &h->uses, !write);
	ready(&c);
	if (write)
		OK(clEnqueueWriteBuffer(c.q, m->mem, c.block, m->bytes - bytes, bytes, h->data,
					LIST(c)));
	else
		OK(clEnqueueReadBuffer(c.q, m->mem, c.block, 0, bytes, h->data, LIST(c)));
	end(&c);
	after_transfer(p, &c, h, write);
}

/* A barrier, or a marker, with a list stands for what was before. */
static void gather(struct player *p)
{
	struct memory *m = pick_array(p), *other = pick_array(p);
	struct command c = begin(p);

	if (!m || !other)
		return;
	touch(&c, m, true);
	touch(&c, other, true);
	c.block = CL_FALSE;
	ready(&c);
	if (below(p, 2))
		OK(clEnqueueBarrierWithWaitList(c.q, LIST(c)));
	else
		OK(clEnqueueMarkerWithWaitList(c.q, LIST(c)));
	end(&c);
}

/* From the kernels' source in two parts. */
static cl_program build_parts(struct player *p)
{
	const char *rest = strchr(kernel_source, '\n') + 1, *name = "each.h";
	const char *const whole[] = {"#include \"each.h\"\n", rest};
	size_t length = (size_t)(rest - kernel_source);
	const char *text = kernel_source;
	cl_program header, part, linked;
	cl_int e;

	header = clCreateProgramWithSource(p->context, 1, &text, &length, &e);
	OK(e);
	part = clCreateProgramWithSource(p->context, 2, (const char **)whole, NULL, &e);
	OK(e);
	OK(clCompileProgram(part, 0, NULL, NULL, 1, &header, &name, NULL, NULL));
	linked = clLinkProgram(p->context, 0, NULL, NULL, 1, &part, NULL, NULL, &e);
	OK(e);
	OK(clReleaseProgram(part));
	OK(clReleaseProgram(header));
	return linked;
}

/* A user event that is set to an error: what waits for it fails, and nothing else. */
static void fail(struct player *p)
{
	cl_queue_properties how[] = {CL_QUEUE_PROPERTIES, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE,
				     0};
	cl_event user, direct, indirect;
	cl_int seen[3] = {0}, e;
	cl_command_queue q;

	q = clCreateCommandQueueWithProperties(p->context, p->device, how, &e);
	OK(e);
	user = clCreateUserEvent(p->context, &e);
	OK(e);
	OK(clEnqueueMarkerWithWaitList(q, 1, &user, &direct));
	OK(clEnqueueMarkerWithWaitList(q, 1, &direct, &indirect));
	OK(clFlush(q));
	if (below(p, 2))
		wait_for(p, 0, NULL);
	OK(clSetUserEventStatus(user, -1 - (cl_int)below(p, 50)));
	seen[0] = clWaitForEvents(1, &indirect);
	OK(clGetEventInfo(direct, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(seen[1]), &seen[1],
			  NULL));
	OK(clGetEventInfo(indirect, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(seen[2]), &seen[2],
			  NULL));
	see(p, seen, sizeof(seen));
	OK(clReleaseEvent(user));
	OK(clReleaseEvent(direct));
	OK(clReleaseEvent(indirect));
	OK(clReleaseCommandQueue(q));
}

/* Also while launches of it have still to run. */
static void replace_kernel(struct player *p)
{
	int which = (int)below(p, KERNELS);
	cl_kernel old = p->kernels[which];
	cl_int e = CL_SUCCESS;

	uint32_t how = below(p, 4);

	switch (how) {
	case 0:
		p->kernels[which] = clCloneKernel(old, &e);
		break;
	case 1:
		p->kernels[which] = clCreateKernel(p->program, kernel_names[which], &e);
		break;
	default: {
		cl_program own =
		    how == 2 ? build_source(p->context, kernel_source, NULL) : build_parts(p);

		p->kernels[which] = clCreateKernel(own, kernel_names[which], &e);
		OK(clReleaseProgram(own));
	}
	}
	OK(e);
	OK(clReleaseKernel(old));
}

static void replace_queue(struct player *p)
{
	cl_uint which = below(p, p->queue_count);

	if (p->left_count == LEFT)
		finish(p);
	OK(clEnqueueMarkerWithWaitList(p->queues[which], 0, NULL, &p->left[p->left_count++]));
	OK(clReleaseCommandQueue(p->queues[which]));
	p->queues[which] = make_queue(p);
}

static void hold(struct player *p)
{
	struct memory *m = pick(p, BUFFER);
	cl_kernel k = p->kernels[below(p, KERNELS)];
	cl_context context;
	size_t bytes;

	if (!m)
		return;
	OK(clRetainMemObject(m->mem));
	OK(clRetainKernel(k));
	OK(clRetainCommandQueue(p->queues[0]));
	OK(clGetMemObjectInfo(m->mem, CL_MEM_SIZE, sizeof(bytes), &bytes, NULL));
	MUST(bytes == m->bytes);
	OK(clGetCommandQueueInfo(p->queues[0], CL_QUEUE_CONTEXT, sizeof(context), &context, NULL));
	MUST(context == p->context);
	OK(clReleaseCommandQueue(p->queues[0]));
	OK(clReleaseKernel(k));
	OK(clReleaseMemObject(m->mem));
}

static void (*const plays[])(struct player *) = {
    migrate,	    migrate_shared, copy_rectangle, copy_image,	  copy_image,
    change_hidden,  change_hidden,  change_table,   change_table, gather,
    replace_kernel, replace_kernel, replace_queue,  hold,	  fail,
};

void play_seldom(struct player *p)
{
	plays[below(p, sizeof(plays) / sizeof(*plays))](p);
}
