/* SPDX-License-Identifier: BSD-3-Clause */
/* ocl_random [-s] [-b [-n]] SEED COMMANDS [THREADS]: a legal program drawn by a seed, with shared
 * virtual memory (-s), with what goes on beside (-b: ocl_random_beside.c), functions of its own as
 * kernels too (-n). Each thread has queues, buffers, images and host memory of its own in one
 * context, or every other one in a second. A command waits for the events of those before it that
 * touch what it touches, and for no others; so all orders that OpenCL allows give the same, and
 * what is printed, a hash of all that the host has seen, depends on the seed alone. */
#include "ocl_random.h"

const char *const kernel_names[KERNELS] = {"mix3", "reduce", "count", "swap", "paint", "sample"};

const char kernel_source[] =
    "#define EACH(i, n) for (uint i = get_global_id(0); i < n; i += get_global_size(0))\n"
    "kernel void mix3(global uint *c, uint nc, global const uint *a, uint na, global const uint "
    "*b,\n"
    "                 uint nb, uint s) {\n"
    "  EACH(i, nc) c[i] = c[i] * 31 + (a[(i * 7 + s) % na] ^ (b[(i + s) % nb] * 2654435761u)); }\n"
    "kernel void reduce(global uint *c, uint nc, global const uint *a, uint na, local uint *l, "
    "uint s) {\n"
    "  uint t = get_local_id(0), n = get_local_size(0), x = 0;\n"
    "  for (uint i = t; i < na; i += n) x += a[i] * (i + s);\n"
    "  l[t] = x; barrier(CLK_LOCAL_MEM_FENCE);\n"
    "  if (t == 0) { for (uint i = 1; i < n; i++) x += l[i]; c[s % nc] ^= x; } }\n"
    "kernel void count(global volatile uint *c, uint nc, global const uint *a, uint na) {\n"
    "  EACH(i, na) atomic_add(&c[a[i] % nc], 1u + (a[i] >> 20)); }\n"
    "kernel void swap(global uint *c, uint nc, global uint *a, uint na) {\n"
    "  EACH(i, min(na, nc)) { uint t = a[i]; a[i] = c[i] + 1; c[i] = t ^ 5; } }\n"
    "constant sampler_t S = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP_TO_EDGE |\n"
    "                       CLK_FILTER_NEAREST;\n"
    "kernel void paint(global uint *c, uint nc, read_only image2d_t a, write_only image2d_t b, "
    "uint s) {\n"
    "  int x = get_global_id(0), y = get_global_id(1);\n"
    "  uint4 p = read_imageui(a, S, (int2)(x + 1, y + (int)(s & 3) - 1));\n"
    "  p.x += s; p.y ^= p.x; p.z = p.z * 3 + y; p.w = x; write_imageui(b, (int2)(x, y), p);\n"
    "  c[(y * get_global_size(0) + x) % nc] = p.y ^ p.z; }\n"
    "kernel void sample(global uint *c, uint nc, read_only image2d_t a, sampler_t s) {\n"
    "  EACH(i, nc) c[i] += read_imageui(a, s, (int2)(i % 50, i / 50 % 50)).y; }\n";

size_t part_align;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t was_called = PTHREAD_COND_INITIALIZER;

uint32_t below(struct player *p, size_t n)
{
	p->state = p->state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((p->state >> 33) % n);
}

void see(struct player *p, const void *data, size_t bytes)
{
	const unsigned char *c = data;

	for (size_t i = 0; i < bytes; i++)
		p->hash = (p->hash ^ c[i]) * 0x100000001b3u;
}

void scribble(struct player *p, void *data, size_t bytes)
{
	unsigned char *c = data;

	for (size_t i = 0; i < bytes; i++)
		c[i] = (unsigned char)below(p, 256);
}

/* Before anything blocks: nobody else would set them. */
void open_gates(struct player *p)
{
	while (p->gate_count > 0) {
		cl_event e = p->gates[--p->gate_count];

		OK(clSetUserEventStatus(e, CL_COMPLETE));
		OK(clReleaseEvent(e));
	}
}

static void flush(struct player *p, cl_command_queue but)
{
	for (cl_uint i = 0; i < p->queue_count; i++)
		if (p->queues[i] != but)
			OK(clFlush(p->queues[i]));
}

void wait_for(struct player *p, cl_uint n, const cl_event *events)
{
	open_gates(p);
	flush(p, NULL);
	if (n > 0)
		OK(clWaitForEvents(n, events));
}

void finish(struct player *p)
{
	open_gates(p);
	flush(p, NULL);
	for (cl_uint i = 0; i < p->queue_count; i++)
		OK(clFinish(p->queues[i]));
	if (p->left_count > 0)
		OK(clWaitForEvents((cl_uint)p->left_count, p->left));
	while (p->left_count > 0)
		OK(clReleaseEvent(p->left[--p->left_count]));
}

static void forget_readers(struct uses *u)
{
	while (u->reading > 0)
		OK(clReleaseEvent(u->readers[--u->reading]));
}

void forget(struct uses *u)
{
	if (u->writer)
		OK(clReleaseEvent(u->writer));
	u->writer = NULL;
	forget_readers(u);
}

/* The host is about to change the memory. */
void wait_uses(struct player *p, struct uses *u)
{
	if (u->writer)
		wait_for(p, 1, &u->writer);
	if (u->reading > 0)
		wait_for(p, (cl_uint)u->reading, u->readers);
	forget(u);
}

struct command begin(struct player *p)
{
	return (struct command){
	    .p = p, .q = p->queues[below(p, p->queue_count)], .block = below(p, 4) == 0};
}

void touch_uses(struct command *c, struct uses *u, bool writes)
{
	for (int i = 0; i < c->touches; i++)
		if (c->touched[i] == u)
			return; /* both are read */
	if (u->reading == READERS) {
		wait_for(c->p, READERS, u->readers);
		forget_readers(u);
	}
	if (u->writer)
		c->waits[c->n++] = u->writer;
	for (int i = 0; writes && i < u->reading; i++)
		c->waits[c->n++] = u->readers[i];
	c->touched[c->touches] = u;
	c->writes[c->touches++] = writes;
}

static struct uses *uses_of(struct player *p, struct memory *m)
{
	return &p->memories[m->root].uses;
}

void touch(struct command *c, struct memory *m, bool writes)
{
	touch_uses(c, uses_of(c->p, m), writes);
}

/* Behind everything that the command touches; what its enqueue takes as the list is c->waits. */
void ready(struct command *c)
{
	struct player *p = c->p;

	if (c->block) {
		open_gates(p);
	} else if (p->gate_count > 0 && below(p, 4) == 0) {
		c->waits[c->n++] = p->gates[below(p, (size_t)p->gate_count)];
	} else if (p->gate_count < GATES && below(p, 30) == 0) {
		cl_int e;

		p->gates[p->gate_count] = clCreateUserEvent(p->context, &e);
		OK(e);
		c->waits[c->n++] = p->gates[p->gate_count++];
	}
	if (p->chained && below(p, 6) == 0)
		c->waits[c->n++] = p->chained;
	if (c->n > 0)
		flush(p, c->q); /* OpenCL asks for it where queues wait for each other */
}

void count_call(struct player *p)
{
	MUST(pthread_mutex_lock(&lock) == 0);
	p->called++;
	MUST(pthread_cond_broadcast(&was_called) == 0 && pthread_mutex_unlock(&lock) == 0);
}

static void CL_CALLBACK called(cl_event event, cl_int status, void *of)
{
	struct player *p = of;

	(void)event;
	MUST(status >= CL_COMPLETE && status <= CL_SUBMITTED);
	count_call(p);
}

static void follow(struct player *p, cl_event event)
{
	cl_int status;

	if (below(p, 20) == 0) {
		p->asked++;
		OK(clSetEventCallback(event, (cl_int)below(p, CL_SUBMITTED + 1), called, p));
	}
	if (p->beside && below(p, 30) == 0)
		call_back(p, event);
	if (below(p, 15) == 0) {
		OK(clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status,
				  NULL));
		MUST(status >= 0);
	}
	if (below(p, 25) == 0)
		wait_for(p, 1, &event);
}

void end(struct command *c)
{
	for (int i = 0; i < c->touches; i++) {
		struct uses *u = c->touched[i];

		if (c->writes[i])
			forget(u);
		OK(clRetainEvent(c->event));
		if (c->writes[i])
			u->writer = c->event;
		else
			u->readers[u->reading++] = c->event;
	}
	follow(c->p, c->event);
	OK(clReleaseEvent(c->event));
}

/* NULL: none was met */
struct memory *pick(struct player *p, enum kind kind)
{
	for (int tries = 0; tries < 60; tries++) {
		struct memory *m = &p->memories[below(p, MEMORIES)];

		if (m->kind == kind && !p->memories[m->root].mapped)
			return m;
	}
	return NULL;
}

struct memory *pick_array(struct player *p)
{
	return pick(p, p->svm && below(p, 4) == 0 ? SHARED : BUFFER);
}

static void fill_buffer(struct player *p, struct memory *m)
{
	uint32_t pattern[4] = {below(p, 1 << 20), 7, below(p, 9), 1};
	size_t size = (size_t)1 << below(p, 5), bytes, at;
	struct command c = begin(p);

	c.block = CL_FALSE;
	if (size > m->bytes)
		size = 4;
	bytes = size * (1 + below(p, m->bytes / size));
	at = size * below(p, (m->bytes - bytes) / size + 1);
	touch(&c, m, true);
	ready(&c);
	OK(clEnqueueFillBuffer(c.q, m->mem, pattern, size, at, bytes, LIST(c)));
	memset(pattern, 0xee, sizeof(pattern)); /* it was copied */
	end(&c);
}

static void make_image(struct player *p, struct memory *m)
{
	cl_image_format format = {CL_RGBA, CL_UNSIGNED_INT32};
	cl_image_desc d = {.image_type = CL_MEM_OBJECT_IMAGE2D};
	void *first;
	cl_int e;

	m->kind = IMAGE;
	d.image_width = m->width = 4 + below(p, 40);
	d.image_height = m->height = 4 + below(p, 40);
	m->bytes = m->width * m->height * 16;
	MUST(first = malloc(m->bytes));
	scribble(p, first, m->bytes);
	m->mem = clCreateImage(p->context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, &format, &d,
			       first, &e);
	OK(e);
	free(first);
}

static void make_shared(struct player *p, struct memory *m)
{
	uint32_t pattern = below(p, 1000);
	struct command c = begin(p);

	m->kind = SHARED;
	m->bytes = 4 * (1 + (size_t)below(p, 5000));
	MUST(m->shared = clSVMAlloc(p->context, CL_MEM_READ_WRITE, m->bytes, 0));
	c.block = CL_FALSE;
	touch(&c, m, true);
	ready(&c);
	OK(clEnqueueSVMMemFill(c.q, m->shared, &pattern, sizeof(pattern), m->bytes, LIST(c)));
	end(&c);
}

static bool make_part(struct player *p, struct memory *m)
{
	struct memory *of = pick(p, BUFFER);
	cl_buffer_region r;
	cl_int e;

	if (!of || of == m || &p->memories[of->root] != of || of->bytes < 4 * part_align)
		return false;
	r.origin = part_align * below(p, of->bytes / part_align / 2);
	r.size = 4 * (1 + (size_t)below(p, (of->bytes - r.origin) / 4));
	m->kind = BUFFER;
	m->bytes = r.size;
	m->root = of->root;
	m->mem = clCreateSubBuffer(of->mem, 0, CL_BUFFER_CREATE_TYPE_REGION, &r, &e);
	OK(e);
	return true;
}

static void CL_CALLBACK gone(cl_mem mem, void *host)
{
	(void)mem;
	free(host);
}

static void make_buffer(struct player *p, struct memory *m)
{
	static const cl_mem_flags ways[] = {CL_MEM_COPY_HOST_PTR, CL_MEM_USE_HOST_PTR,
					    CL_MEM_ALLOC_HOST_PTR | CL_MEM_COPY_HOST_PTR,
					    CL_MEM_ALLOC_HOST_PTR, 0};
	cl_mem_flags way = ways[below(p, sizeof(ways) / sizeof(*ways))];
	void *host = NULL;
	cl_int e;

	m->kind = BUFFER;
	m->bytes = 4 * (1 + (size_t)below(p, below(p, 3) ? 3000 : 60000));
	if (way & (CL_MEM_COPY_HOST_PTR | CL_MEM_USE_HOST_PTR)) {
		MUST(host = aligned_alloc(4096, (m->bytes + 4095) / 4096 * 4096));
		scribble(p, host, m->bytes);
	}
	m->mem = clCreateBuffer(p->context, CL_MEM_READ_WRITE | way, m->bytes, host, &e);
	OK(e);
	if (way & CL_MEM_USE_HOST_PTR) {
		OK(clSetMemObjectDestructorCallback(m->mem, gone, host));
		return;
	}
	free(host);
	if (!host) {
		struct command c = begin(p);
		uint32_t pattern = below(p, 99);

		touch(&c, m, true);
		OK(clEnqueueFillBuffer(c.q, m->mem, &pattern, 4, 0, m->bytes, LIST(c)));
		end(&c);
	}
}

/* With content. */
static void make_kept(struct player *p, struct memory *m, enum kind kind, cl_mem_flags flags)
{
	void *first;
	cl_int e;

	m->kind = kind;
	m->bytes = 4 * (1 + (size_t)below(p, 5000));
	MUST(first = malloc(m->bytes));
	scribble(p, first, m->bytes);
	m->mem = clCreateBuffer(p->context, flags | CL_MEM_COPY_HOST_PTR, m->bytes, first, &e);
	OK(e);
	free(first);
}

static void make(struct player *p, struct memory *m)
{
	static const cl_mem_flags hidden[] = {CL_MEM_HOST_NO_ACCESS, CL_MEM_HOST_READ_ONLY,
					      CL_MEM_HOST_WRITE_ONLY};
	uint32_t what = below(p, 12);

	*m = (struct memory){.root = (int)(m - p->memories)};
	if (what < 2)
		make_image(p, m);
	else if (what == 2 && p->svm)
		make_shared(p, m);
	else if (what == 10)
		make_kept(p, m, HIDDEN, CL_MEM_READ_WRITE | hidden[below(p, 3)]);
	else if (what == 11)
		make_kept(p, m, TABLE, CL_MEM_READ_ONLY);
	else if (what != 3 || !make_part(p, m))
		make_buffer(p, m);
}

/* Also while commands that use it have still to run. */
static void destroy(struct player *p, struct memory *m)
{
	if (m->kind == SHARED && below(p, 2) == 0) {
		struct command c = begin(p);

		touch(&c, m, true);
		OK(clEnqueueSVMFree(c.q, 1, &m->shared, NULL, NULL, LIST(c)));
		end(&c);
	} else if (m->kind == SHARED) {
		wait_uses(p, uses_of(p, m));
		clSVMFree(p->context, m->shared);
	} else {
		OK(clReleaseMemObject(m->mem));
	}
	if (&p->memories[m->root] == m)
		forget(&m->uses);
	m->kind = NONE;
}

static void play_replace(struct player *p)
{
	struct memory *m = &p->memories[below(p, MEMORIES)];

	if (below(p, 3) != 0 || p->memories[m->root].mapped)
		return;
	for (int i = 0; i < MEMORIES; i++)
		if (p->memories[i].kind != NONE && &p->memories[i] != m &&
		    &p->memories[p->memories[i].root] == m)
			return; /* parts of it are there */
	destroy(p, m);
	make(p, m);
}

void set_array(cl_kernel k, cl_uint at, const struct memory *m)
{
	cl_uint n = (cl_uint)(m->bytes / 4);

	if (m->kind == SHARED)
		OK(clSetKernelArgSVMPointer(k, at, m->shared));
	else
		OK(clSetKernelArg(k, at, sizeof(m->mem), &m->mem));
	OK(clSetKernelArg(k, at + 1, sizeof(n), &n));
}

void launch(struct command *c, cl_kernel k, cl_uint dimensions, const size_t *all,
	    const size_t *local)
{
	size_t offset = below(c->p, 50);

	ready(c);
	OK(clEnqueueNDRangeKernel(c->q, k, dimensions,
				  dimensions == 1 && offset < 10 ? &offset : NULL, all, local,
				  LIST(*c)));
	end(c);
}

/* What a kernel may write to … */
static struct memory *pick_changed(struct player *p)
{
	struct memory *m = below(p, 8) == 0 ? pick(p, HIDDEN) : NULL;

	return m ? m : pick_array(p);
}

/* … and what it reads. */
static struct memory *pick_source(struct player *p)
{
	struct memory *m = below(p, 6) == 0 ? pick(p, TABLE) : NULL;

	return m ? m : pick_changed(p);
}

static void play_kernel(struct player *p)
{
	enum kernel which = below(p, PAINT);
	struct memory *to = pick_changed(p), *b = pick_source(p);
	struct memory *a = which == SWAP ? pick_changed(p) : pick_source(p);
	size_t all = which == MIX ? 64u << below(p, 3) : 64, local = 64;
	cl_kernel k = p->kernels[which];
	cl_uint number = below(p, 1 << 20);
	struct command c = begin(p);

	if (!to || !a || !b || to->root == a->root || to->root == b->root)
		return;
	c.block = CL_FALSE;
	set_array(k, 0, to);
	set_array(k, 2, a);
	touch(&c, to, true);
	touch(&c, a, which == SWAP);
	if (which == MIX) {
		set_array(k, 4, b);
		OK(clSetKernelArg(k, 6, sizeof(number), &number));
		touch(&c, b, false);
	} else if (which == REDUCE) {
		OK(clSetKernelArg(k, 4, local * sizeof(cl_uint), NULL));
		OK(clSetKernelArg(k, 5, sizeof(number), &number));
	}
	launch(&c, k, 1, &all, which == REDUCE || below(p, 2) ? &local : NULL);
}

/* What came may be seen once nothing else may write there; what was sent, changed. */
void after_transfer(struct player *p, const struct command *c, struct block *h, bool write)
{
	if (!c->block)
		return;
	if (write) {
		wait_uses(p, &h->uses); /* others that are not blocking read it too */
		memset(h->data, (int)below(p, 256), h->bytes);
	} else {
		see(p, h->data, h->bytes);
	}
}

static void play_transfer(struct player *p)
{
	struct memory *m = pick(p, BUFFER);
	struct block *h = &p->blocks[below(p, BLOCKS)];
	struct command c = begin(p);
	bool write = below(p, 2);
	size_t at, bytes;

	if (!m)
		return;
	at = below(p, m->bytes);
	bytes = 1 + below(p, m->bytes - at);
	if (bytes > h->bytes)
		bytes = h->bytes;
	char *host = h->data + below(p, h->bytes - bytes + 1);

	touch(&c, m, write);
	touch_uses(&c, &h->uses, !write);
	ready(&c);
	if (write)
		OK(clEnqueueWriteBuffer(c.q, m->mem, c.block, at, bytes, host, LIST(c)));
	else
		OK(clEnqueueReadBuffer(c.q, m->mem, c.block, at, bytes, host, LIST(c)));
	end(&c);
	after_transfer(p, &c, h, write);
}

static void play_rectangle(struct player *p)
{
	struct memory *m = pick(p, BUFFER);
	struct block *h = &p->blocks[below(p, BLOCKS)];
	size_t at[3] = {below(p, 5), below(p, 2), below(p, 2)};
	size_t from[3] = {below(p, 3), below(p, 3), 0};
	size_t size[3] = {1 + below(p, 10), 1 + below(p, 3), 1 + below(p, 2)};
	struct command c = begin(p);
	bool write = below(p, 2);

	if (!m || m->bytes < 600)
		return;
	touch(&c, m, write);
	touch_uses(&c, &h->uses, !write);
	ready(&c);
	if (write)
		OK(clEnqueueWriteBufferRect(c.q, m->mem, c.block, at, from, size, 20, 100, 16, 128,
					    h->data, LIST(c)));
	else
		OK(clEnqueueReadBufferRect(c.q, m->mem, c.block, at, from, size, 20, 100, 16, 128,
					   h->data, LIST(c)));
	end(&c);
	after_transfer(p, &c, h, write);
}

static void play_copy(struct player *p)
{
	struct memory *to = pick(p, BUFFER), *from = pick(p, BUFFER);
	struct command c = begin(p);
	size_t bytes;

	if (!to || !from || to->root == from->root)
		return;
	c.block = CL_FALSE;
	bytes = 1 + below(p, to->bytes < from->bytes ? to->bytes : from->bytes);
	touch(&c, to, true);
	touch(&c, from, false);
	ready(&c);
	OK(clEnqueueCopyBuffer(c.q, from->mem, to->mem, below(p, from->bytes - bytes + 1),
			       below(p, to->bytes - bytes + 1), bytes, LIST(c)));
	end(&c);
}

static void play_fill(struct player *p)
{
	struct memory *m = pick(p, BUFFER);

	if (m)
		fill_buffer(p, m);
}

static void play_shared_copy(struct player *p)
{
	struct memory *m = pick(p, SHARED), *other = pick(p, SHARED);
	struct block *h = &p->blocks[below(p, BLOCKS)];
	struct command c = begin(p);
	uint32_t what = below(p, 3);
	size_t bytes;

	if (!m || !other || m == other)
		return;
	bytes = what == 2 ? other->bytes : h->bytes;
	if (bytes > m->bytes)
		bytes = m->bytes;
	touch(&c, m, what != 0);
	if (what == 2)
		touch(&c, other, false);
	else
		touch_uses(&c, &h->uses, what == 0);
	ready(&c);
	if (what == 2)
		OK(clEnqueueSVMMemcpy(c.q, c.block, m->shared, other->shared, bytes, LIST(c)));
	else if (what == 1)
		OK(clEnqueueSVMMemcpy(c.q, c.block, m->shared, h->data, bytes, LIST(c)));
	else
		OK(clEnqueueSVMMemcpy(c.q, c.block, h->data, m->shared, bytes, LIST(c)));
	end(&c);
	if (what != 2)
		after_transfer(p, &c, h, what == 1);
}

static void play_map(struct player *p)
{
	static const cl_map_flags ways[] = {CL_MAP_READ, CL_MAP_READ | CL_MAP_WRITE,
					    CL_MAP_WRITE_INVALIDATE_REGION};
	cl_map_flags way = ways[below(p, 3)];
	struct mapping *at = &p->mappings[below(p, MAPPINGS)];
	struct memory *m = pick_array(p);
	struct command c = begin(p);
	cl_int e = CL_SUCCESS;

	if (at->of || !m || !p->maps)
		return;
	size_t from = m->kind == SHARED ? 0 : 4 * (size_t)below(p, m->bytes / 4);
	size_t bytes =
	    m->kind == SHARED ? m->bytes : 4 * (1 + (size_t)below(p, (m->bytes - from) / 4));

	*at = (struct mapping){.of = m, .bytes = bytes, .data = m->shared};
	at->read = way & CL_MAP_READ;
	at->write = way != CL_MAP_READ;
	p->memories[m->root].mapped = true;
	touch(&c, m, true);
	ready(&c);
	if (m->kind == SHARED)
		OK(clEnqueueSVMMap(c.q, c.block, way, m->shared, bytes, LIST(c)));
	else
		at->data = clEnqueueMapBuffer(c.q, m->mem, c.block, way, from, bytes, LIST(c), &e);
	OK(e);
	OK(clRetainEvent(c.event));
	at->event = c.event;
	end(&c);
}

static void unmap(struct player *p, struct mapping *at)
{
	struct command c = begin(p);
	struct memory *m = at->of;

	wait_for(p, 1, &at->event);
	OK(clReleaseEvent(at->event));
	if (at->read)
		see(p, at->data, at->bytes);
	if (at->write) /* all of it, where nothing was read: the rest would be undefined */
		for (size_t i = 0; i < at->bytes / 4; i += at->read ? 1 + below(p, 50) : 1)
			at->data[i] = at->read ? at->data[i] ^ 0x5555 : (uint32_t)i * 17;
	c.block = CL_FALSE;
	touch(&c, m, true);
	ready(&c);
	if (m->kind == SHARED)
		OK(clEnqueueSVMUnmap(c.q, m->shared, LIST(c)));
	else
		OK(clEnqueueUnmapMemObject(c.q, m->mem, at->data, LIST(c)));
	end(&c);
	at->of = NULL;
	p->memories[m->root].mapped = false;
}

static void play_unmap(struct player *p)
{
	struct mapping *at = &p->mappings[below(p, MAPPINGS)];

	if (at->of)
		unmap(p, at);
}

static void play_order(struct player *p)
{
	struct command c = begin(p);
	uint32_t what = below(p, 4);

	if (what == 0)
		finish(p);
	else if (what == 1)
		OK(clFlush(c.q));
	else if (what == 2)
		OK(clEnqueueBarrierWithWaitList(c.q, 0, NULL, NULL));
	if (what != 3)
		return;
	OK(clEnqueueMarkerWithWaitList(c.q, 0, NULL, &c.event));
	end(&c);
}

static void play_look(struct player *p)
{
	struct block *h = &p->blocks[below(p, BLOCKS)];

	wait_uses(p, &h->uses);
	see(p, h->data, h->bytes);
	for (size_t i = 0; i < h->bytes; i += 1 + below(p, 40))
		h->data[i] = (char)below(p, 256);
}

static void play_gates(struct player *p)
{
	if (below(p, 2) == 0)
		open_gates(p);
}

/* As often as a kind stands here. */
static void (*const plays[])(struct player *) = {
    play_kernel,	 play_kernel,	  play_kernel,	  play_kernel,	    play_kernel,
    play_kernel,	 play_kernel,	  play_kernel,	  play_paint,	    play_transfer,
    play_transfer,	 play_transfer,	  play_transfer,  play_transfer,    play_transfer,
    play_rectangle,	 play_copy,	  play_fill,	  play_map,	    play_map,
    play_unmap,		 play_unmap,	  play_replace,	  play_order,	    play_look,
    play_image_transfer, play_image_copy, play_map_image, play_shared_copy, play_gates,
    play_gates,		 play_seldom,	  play_seldom,	  play_seldom,	    play_volume,
    play_volume,	 play_beside,	  play_beside,	  play_beside,
};

static void see_memory(struct player *p, struct memory *m)
{
	const size_t at[3] = {0}, size[3] = {m->width, m->height, 1};
	cl_mem mem = m->mem;
	void *data;
	cl_int e;

	MUST(data = malloc(m->bytes));
	if (m->kind == HIDDEN) {
		mem = clCreateBuffer(p->context, CL_MEM_READ_WRITE, m->bytes, NULL, &e);
		OK(e);
		OK(clEnqueueCopyBuffer(p->queues[0], m->mem, mem, 0, 0, m->bytes, 0, NULL, NULL));
		OK(clFinish(p->queues[0]));
	}
	if (m->kind == IMAGE)
		OK(clEnqueueReadImage(p->queues[0], m->mem, CL_TRUE, at, size, 0, 0, data, 0, NULL,
				      NULL));
	else if (m->kind == SHARED)
		OK(clEnqueueSVMMemcpy(p->queues[0], CL_TRUE, data, m->shared, m->bytes, 0, NULL,
				      NULL));
	else
		OK(clEnqueueReadBuffer(p->queues[0], mem, CL_TRUE, 0, m->bytes, data, 0, NULL,
				       NULL));
	if (m->kind == HIDDEN)
		OK(clReleaseMemObject(mem));
	see(p, data, m->bytes);
	free(data);
}

cl_command_queue make_queue(struct player *p)
{
	cl_command_queue_properties properties =
	    (below(p, 2) ? CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE : 0) |
	    (below(p, 3) ? 0 : CL_QUEUE_PROFILING_ENABLE);
	cl_queue_properties how[] = {CL_QUEUE_PROPERTIES, properties, 0};
	cl_int e;
	cl_command_queue q = clCreateCommandQueueWithProperties(p->context, p->device, how, &e);

	OK(e);
	return q;
}

static void start(struct player *p)
{
	cl_int e;

	for (cl_uint i = 0; i < p->queue_count; i++)
		p->queues[i] = make_queue(p);
	for (int i = 0; i < KERNELS; i++) {
		p->kernels[i] = clCreateKernel(p->program, kernel_names[i], &e);
		OK(e);
	}
	for (struct block *h = p->blocks; h < p->blocks + BLOCKS; h++) {
		h->bytes = 1000 + below(p, 60000);
		MUST(h->data = malloc(h->bytes));
		scribble(p, h->data, h->bytes);
	}
	notes_begin(p);
	scratch_begin(p);
	for (int i = 0; i < MEMORIES; i++)
		make(p, &p->memories[i]);
}

static void wait_for_calls(struct player *p)
{
	MUST(pthread_mutex_lock(&lock) == 0);
	while (p->called < p->asked)
		MUST(pthread_cond_wait(&was_called, &lock) == 0);
	MUST(p->called == p->asked && pthread_mutex_unlock(&lock) == 0);
}

static void stop(struct player *p)
{
	for (int i = 0; i < MAPPINGS; i++)
		if (p->mappings[i].of)
			unmap(p, &p->mappings[i]);
	volume_end(p);
	side_end(p);
	finish(p);
	for (struct block *h = p->blocks; h < p->blocks + BLOCKS; h++) {
		see(p, h->data, h->bytes);
		forget(&h->uses);
		free(h->data);
	}
	for (struct memory *m = p->memories; m < p->memories + MEMORIES; m++)
		see_memory(p, m);
	for (int pass = 0; pass < 2; pass++) /* parts, then the rest */
		for (struct memory *m = p->memories; m < p->memories + MEMORIES; m++)
			if (m->kind != NONE && (pass == 1 || &p->memories[m->root] != m))
				destroy(p, m);
	finish(p);
	wait_for_calls(p);
	notes_end(p);
	scratch_end(p);
	for (int i = 0; i < KERNELS; i++)
		OK(clReleaseKernel(p->kernels[i]));
	for (cl_uint i = 0; i < p->queue_count; i++)
		OK(clReleaseCommandQueue(p->queues[i]));
}

static void *play(void *of)
{
	struct player *p = of;

	start(p);
	for (int i = 0; i < p->commands; i++)
		plays[below(p, sizeof(plays) / sizeof(*plays))](p);
	stop(p);
	return NULL;
}

/* Of two contexts every other player has the second. */
static void set_up(cl_device_id device, cl_context *context, cl_program *program)
{
	cl_int e;

	*context = clCreateContext(NULL, 1, &device, NULL, NULL, &e);
	OK(e);
	*program = build_source(*context, kernel_source, NULL);
}

/* The next of the arguments, which is left out then. */
static bool is_given(int *argc, char ***argv, const char *option)
{
	if (*argc < 2 || strcmp((*argv)[1], option) != 0)
		return false;
	--*argc;
	++*argv;
	return true;
}

int main(int argc, char **argv)
{
	static struct player players[THREADS];
	bool svm = is_given(&argc, &argv, "-s"), beside = is_given(&argc, &argv, "-b");
	bool native = is_given(&argc, &argv, "-n");
	char **args = argv;
	int given = argc, threads = given > 3 ? atoi(args[3]) : 1;
	uint64_t seed = given > 1 ? strtoull(args[1], NULL, 10) : 0;
	int contexts = threads > 1 && seed % 3 == 0 ? 2 : 1;
	cl_device_id device = first_device();
	cl_context context[2];
	cl_program program[2];
	cl_uint align;

	MUST(given >= 3 && threads >= 1 && threads <= THREADS);
	OK(clGetDeviceInfo(device, CL_DEVICE_MEM_BASE_ADDR_ALIGN, sizeof(align), &align, NULL));
	part_align = align / 8;
	for (int i = 0; i < contexts; i++)
		set_up(device, &context[i], &program[i]);
	for (int i = 0; i < threads; i++) {
		struct player *p = &players[i];

		p->device = device;
		p->context = context[i % contexts];
		p->program = program[i % contexts];
		p->state = seed * 1000003 + (uint64_t)i * 7919 + 12345;
		p->commands = atoi(args[2]);
		/* While memory is restored, what other threads do in mappings may be lost. */
		p->maps = threads == 1;
		p->svm = svm;
		p->beside = beside;
		p->native = native;
		for (int j = 0; j < 8; j++)
			below(p, 2);
		p->queue_count = 1 + below(p, QUEUES);
		MUST(pthread_create(&p->thread, NULL, play, p) == 0);
	}
	for (int i = 0; i < threads; i++) {
		MUST(pthread_join(players[i].thread, NULL) == 0);
		printf("%d %016llx\n", i, (unsigned long long)players[i].hash);
	}
	for (int i = 0; i < contexts; i++) {
		OK(clReleaseProgram(program[i]));
		OK(clReleaseContext(context[i]));
	}
	return 0;
}
