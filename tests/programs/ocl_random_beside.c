/* SPDX-License-Identifier: BSD-3-Clause */
/* ocl_random: what goes on beside the player's own commands. Callbacks that open gates or enqueue;
 * contexts of their own, on parts of the device too, whose data come by way of the host; objects
 * that are released as soon as commands have them; functions of the program; what Hale is told. */
#include "ocl_random.h"
#include <hale/opencl.h>

/* ---- callbacks that call OpenCL ---- */

struct call {
	struct player *p;
	cl_event gate;
	cl_uint slot, value;
};

static void CL_CALLBACK opens(cl_event event, cl_int status, void *of)
{
	struct call *c = of;

	(void)event;
	MUST(status == CL_COMPLETE);
	OK(clSetUserEventStatus(c->gate, CL_COMPLETE));
	OK(clReleaseEvent(c->gate));
	count_call(c->p);
	free(c);
}

/* Commands of its own, in no order with any others. */
static void CL_CALLBACK notes_down(cl_event event, cl_int status, void *of)
{
	struct call *c = of;
	struct notes *n = &c->p->notes;

	(void)event;
	MUST(status == CL_COMPLETE);
	OK(clEnqueueFillBuffer(n->queue, n->mem, &c->value, sizeof(c->value),
			       c->slot * sizeof(c->value), sizeof(c->value), 0, NULL, NULL));
	OK(clFlush(n->queue));
	count_call(c->p);
	free(c);
}

void call_back(struct player *p, cl_event event)
{
	struct call *c;
	cl_int e;

	MUST(c = malloc(sizeof(*c)));
	*c = (struct call){.p = p, .value = below(p, 1 << 20)};
	p->asked++;
	if (below(p, 2) && p->notes.taken < NOTES) {
		c->slot = p->notes.taken++;
		OK(clSetEventCallback(event, CL_COMPLETE, notes_down, c));
		return;
	}
	if (p->chained)
		OK(clReleaseEvent(p->chained));
	p->chained = c->gate = clCreateUserEvent(p->context, &e);
	OK(e);
	OK(clRetainEvent(p->chained));
	OK(clSetEventCallback(event, CL_COMPLETE, opens, c));
}

void notes_begin(struct player *p)
{
	cl_uint zero[NOTES] = {0};
	cl_int e;

	p->notes.queue = make_queue(p);
	p->notes.mem = clCreateBuffer(p->context, CL_MEM_COPY_HOST_PTR, sizeof(zero), zero, &e);
	OK(e);
}

/* All callbacks have been called. */
void notes_end(struct player *p)
{
	cl_uint notes[NOTES];

	OK(clFinish(p->notes.queue));
	OK(clEnqueueReadBuffer(p->notes.queue, p->notes.mem, CL_TRUE, 0, sizeof(notes), notes, 0,
			       NULL, NULL));
	see(p, notes, sizeof(notes));
	OK(clReleaseMemObject(p->notes.mem));
	OK(clReleaseCommandQueue(p->notes.queue));
	if (p->chained)
		OK(clReleaseEvent(p->chained));
}

/* ---- a context of the player's own ---- */

static bool can_part(cl_device_id device)
{
	cl_uint parts = 0;

	OK(clGetDeviceInfo(device, CL_DEVICE_PARTITION_MAX_SUB_DEVICES, sizeof(parts), &parts,
			   NULL));
	return parts > 1;
}

static cl_device_id part_of(cl_device_id device)
{
	const cl_device_partition_property how[] = {CL_DEVICE_PARTITION_BY_COUNTS, 1,
						    CL_DEVICE_PARTITION_BY_COUNTS_LIST_END, 0};
	cl_device_id part;

	OK(clCreateSubDevices(device, how, 1, &part, NULL));
	return part;
}

static void side_make(struct player *p)
{
	struct side *s = &p->side;
	cl_device_id device = p->device;
	cl_program program;
	cl_int e;

	*s = (struct side){.part = NULL};
	if (below(p, 2) && can_part(device))
		device = s->part = part_of(device);
	s->context = clCreateContext(NULL, 1, &device, NULL, NULL, &e);
	OK(e);
	s->queue = clCreateCommandQueueWithProperties(s->context, device, NULL, &e);
	OK(e);
	scribble(p, s->sent, sizeof(s->sent));
	for (int i = 0; i < 2; i++) {
		s->mem[i] =
		    clCreateBuffer(s->context, CL_MEM_COPY_HOST_PTR, sizeof(s->sent), s->sent, &e);
		OK(e);
	}
	program = build_source(s->context, kernel_source, NULL);
	s->kernel = clCreateKernel(program, kernel_names[MIX], &e);
	OK(e);
	OK(clReleaseProgram(program));
	s->block.bytes = sizeof(s->sent);
	MUST(s->block.data = malloc(s->block.bytes));
}

/* What it has computed is seen, and may go to the player's own context. */
static void side_collect(struct player *p)
{
	struct side *s = &p->side;
	struct memory *m = pick(p, BUFFER);
	struct command c = begin(p);

	if (!s->done)
		return;
	wait_for(p, 1, &s->done);
	OK(clReleaseEvent(s->done));
	s->done = NULL;
	see(p, s->block.data, s->block.bytes);
	if (!m || m->bytes < s->block.bytes)
		return;
	touch(&c, m, true);
	touch_uses(&c, &s->block.uses, false);
	ready(&c);
	OK(clEnqueueWriteBuffer(c.q, m->mem, c.block, 0, s->block.bytes, s->block.data, LIST(c)));
	end(&c);
	after_transfer(p, &c, &s->block, true);
}

/* Its queue is in order; nothing is waited for here. */
static void side_compute(struct player *p)
{
	struct side *s = &p->side;
	const struct memory to = {.mem = s->mem[1], .bytes = sizeof(s->sent)},
			    from = {.mem = s->mem[0], .bytes = sizeof(s->sent)};
	cl_uint number = below(p, 1 << 20);
	size_t all = 64;

	wait_uses(p, &s->block.uses);
	scribble(p, s->sent, sizeof(s->sent));
	OK(clEnqueueWriteBuffer(s->queue, s->mem[0], CL_FALSE, 0, sizeof(s->sent), s->sent, 0, NULL,
				NULL));
	set_array(s->kernel, 0, &to);
	set_array(s->kernel, 2, &from);
	set_array(s->kernel, 4, &from);
	OK(clSetKernelArg(s->kernel, 6, sizeof(number), &number));
	OK(clEnqueueNDRangeKernel(s->queue, s->kernel, 1, NULL, &all, NULL, 0, NULL, NULL));
	OK(clEnqueueReadBuffer(s->queue, s->mem[1], CL_FALSE, 0, s->block.bytes, s->block.data, 0,
			       NULL, &s->done));
	OK(clFlush(s->queue));
}

/* In any order, and while its commands may still have to run. */
void side_end(struct player *p)
{
	struct side *s = &p->side;
	uint32_t first = below(p, 4);

	if (!s->context)
		return;
	for (uint32_t i = 0; i < 4; i++)
		switch ((first + i) % 4) {
		case 0:
			OK(clReleaseContext(s->context));
			break;
		case 1:
			OK(clReleaseMemObject(s->mem[0]));
			OK(clReleaseMemObject(s->mem[1]));
			break;
		case 2:
			OK(clReleaseKernel(s->kernel));
			break;
		default:
			OK(clReleaseCommandQueue(s->queue));
		}
	side_collect(p);
	wait_uses(p, &s->block.uses);
	free(s->block.data);
	if (s->part) /* PoCL 3.1 keeps it neither with the context nor the queue */
		OK(clReleaseDevice(s->part));
	s->context = NULL;
}

static void play_side(struct player *p)
{
	if (!p->side.context)
		side_make(p);
	side_collect(p);
	if (below(p, 5) == 0) {
		side_end(p);
		return;
	}
	side_compute(p);
}

/* ---- objects that are released as soon as they are in use ---- */

/* A part outlives the program's reference to the whole, and commands those to both. */
static void orphan(struct player *p)
{
	struct memory *to = pick(p, BUFFER), part = {.bytes = 4 * (1 + (size_t)below(p, 500))};
	cl_buffer_region region = {.origin = part_align, .size = part.bytes};
	cl_uint number = below(p, 1 << 20);
	cl_kernel k = p->kernels[MIX];
	size_t all = 64, bytes = part_align + part.bytes;
	struct command c = begin(p);
	cl_mem whole;
	void *first;
	cl_int e;

	if (!to)
		return;
	MUST(first = malloc(bytes));
	scribble(p, first, bytes);
	whole = clCreateBuffer(p->context, CL_MEM_COPY_HOST_PTR, bytes, first, &e);
	OK(e);
	free(first);
	part.mem = clCreateSubBuffer(whole, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &e);
	OK(e);
	OK(clReleaseMemObject(whole));
	OK(clRetainMemObject(part.mem));
	c.block = CL_FALSE;
	set_array(k, 0, to);
	set_array(k, 2, &part);
	set_array(k, 4, &part);
	OK(clSetKernelArg(k, 6, sizeof(number), &number));
	OK(clReleaseMemObject(part.mem));
	touch(&c, to, true);
	launch(&c, k, 1, &all, NULL);
	OK(clReleaseMemObject(part.mem));
}

/* The log has launches by samplers that are gone. */
static void sample(struct player *p)
{
	static const cl_addressing_mode ways[] = {CL_ADDRESS_CLAMP, CL_ADDRESS_CLAMP_TO_EDGE};
	struct memory *to = pick(p, BUFFER), *a = pick(p, IMAGE);
	cl_kernel k = p->kernels[SAMPLE];
	struct command c = begin(p);
	size_t all = 64;
	cl_sampler s;
	cl_int e;

	if (!to || !a)
		return;
	c.block = CL_FALSE;
	s = clCreateSampler(p->context, CL_FALSE, ways[below(p, 2)], CL_FILTER_NEAREST, &e);
	OK(e);
	set_array(k, 0, to);
	OK(clSetKernelArg(k, 2, sizeof(a->mem), &a->mem));
	OK(clSetKernelArg(k, 3, sizeof(s), &s));
	touch(&c, to, true);
	touch(&c, a, false);
	launch(&c, k, 1, &all, NULL);
	wait_uses(p, &p->memories[to->root].uses); /* PoCL 3.1 keeps no samplers for launches */
	OK(clReleaseSampler(s));
}

/* Of a queue, and of a kernel, that live for one command. */
static void pass(struct player *p)
{
	struct memory *m = pick(p, BUFFER), *from = pick(p, BUFFER);
	struct command c = begin(p);
	size_t all = 64;
	cl_kernel k;
	cl_int e;

	if (!m || !from || m->root == from->root)
		return;
	if (p->left_count == LEFT)
		finish(p);
	c.block = CL_FALSE;
	c.q = make_queue(p);
	k = clCreateKernel(p->program, kernel_names[SWAP], &e);
	OK(e);
	set_array(k, 0, m);
	set_array(k, 2, from);
	touch(&c, m, true);
	touch(&c, from, true);
	ready(&c);
	OK(clRetainCommandQueue(c.q));
	OK(clEnqueueNDRangeKernel(c.q, k, 1, NULL, &all, NULL, LIST(c)));
	OK(clReleaseKernel(k));
	OK(clReleaseCommandQueue(c.q));
	OK(clReleaseCommandQueue(c.q));
	OK(clRetainEvent(c.event));
	p->left[p->left_count++] = c.event;
	end(&c);
}

/* ---- functions of the program ---- */

struct mixed {
	uint32_t *at;
	size_t count;
	uint32_t number;
};

static void CL_CALLBACK mix_here(void *of)
{
	const struct mixed *m = of;

	for (size_t i = 0; i < m->count; i++)
		m->at[i] = m->at[i] * 33 + (m->at[(i * 7 + m->number) % m->count] >> 5);
}

/* Of one object: PoCL 3.1 gives the function those of several in another order. */
static void native(struct player *p)
{
	struct memory *m = pick(p, BUFFER);
	struct mixed args = {.number = below(p, 1 << 20)};
	const void *where = &args.at;
	struct command c = begin(p);

	if (!p->native || !m || &p->memories[m->root] != m)
		return;
	args.count = m->bytes / 4;
	c.block = CL_FALSE;
	touch(&c, m, true);
	ready(&c);
	OK(clEnqueueNativeKernel(c.q, mix_here, &args, sizeof(args), 1, &m->mem, &where, LIST(c)));
	memset(&args, 0xee, sizeof(args)); /* it was copied */
	end(&c);
}

/* ---- what Hale is told ---- */

/* What is scratch is filled and used, and nothing waited for between. */
static void scratch(struct player *p)
{
	struct memory *to = pick(p, BUFFER), *m = &p->scratch;
	cl_uint pattern = below(p, 1 << 20);
	struct command c = begin(p);
	cl_event filled;

	if (!to || to->bytes < m->bytes)
		return;
	c.block = CL_FALSE;
	touch(&c, to, true);
	touch_uses(&c, &m->uses, true);
	ready(&c);
	OK(clEnqueueFillBuffer(c.q, m->mem, &pattern, sizeof(pattern), 0, m->bytes, c.n,
			       c.n > 0 ? c.waits : NULL, &filled));
	OK(clFlush(c.q));
	OK(clEnqueueCopyBuffer(c.q, m->mem, to->mem, 0, 0, m->bytes, 1, &filled, &c.event));
	OK(clReleaseEvent(filled));
	end(&c);
}

void scratch_begin(struct player *p)
{
	struct memory *m = &p->scratch;
	cl_int e;

	m->bytes = 4 * (1 + (size_t)below(p, 1000));
	m->mem = clCreateBuffer(p->context, CL_MEM_READ_WRITE, m->bytes, NULL, &e);
	OK(e);
	OK(haleSetMemFlags(m->mem, HALE_MEM_SCRATCH));
}

void scratch_end(struct player *p)
{
	forget(&p->scratch.uses);
	OK(clReleaseMemObject(p->scratch.mem));
}

static void tell(struct player *p)
{
	const struct memory *m = pick(p, TABLE);

	if (m)
		OK(haleSetMemFlags(m->mem, below(p, 2) ? HALE_MEM_READ_ONLY : 0));
}

static void (*const plays[])(struct player *) = {
    play_side, play_side, play_side, orphan, orphan,  sample,  sample,
    pass,      pass,	  native,    native, scratch, scratch, tell,
};

void play_beside(struct player *p)
{
	if (p->beside)
		plays[below(p, sizeof(plays) / sizeof(*plays))](p);
}
