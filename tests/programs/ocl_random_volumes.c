/* SPDX-License-Identifier: BSD-3-Clause */
/* ocl_random: images of other shapes than two dimensions: one a player has, which is replaced now
 * and then. */
#include "ocl_random.h"

enum { TEXEL = 16 };

static size_t texels(const size_t size[3])
{
	return size[0] * size[1] * size[2];
}

static void make(struct player *p)
{
	static const cl_mem_object_type types[] = {
	    CL_MEM_OBJECT_IMAGE1D, CL_MEM_OBJECT_IMAGE1D_ARRAY, CL_MEM_OBJECT_IMAGE2D_ARRAY,
	    CL_MEM_OBJECT_IMAGE3D, CL_MEM_OBJECT_IMAGE1D_BUFFER};
	cl_image_format format = {CL_RGBA, CL_UNSIGNED_INT32};
	struct volume *v = &p->volume;
	cl_image_desc d = {.image_type = types[below(p, 5)]};
	bool flat =
	    d.image_type == CL_MEM_OBJECT_IMAGE1D || d.image_type == CL_MEM_OBJECT_IMAGE1D_BUFFER;
	bool lines = d.image_type == CL_MEM_OBJECT_IMAGE1D_ARRAY;
	void *first;
	cl_int e;

	v->size[0] = d.image_width = 1 + below(p, 40);
	v->size[1] = flat ? 1 : 1 + below(p, 9);
	v->size[2] = flat || lines ? 1 : 1 + below(p, 5);
	if (lines)
		d.image_array_size = v->size[1];
	else
		d.image_height = v->size[1];
	if (d.image_type == CL_MEM_OBJECT_IMAGE2D_ARRAY)
		d.image_array_size = v->size[2];
	else
		d.image_depth = v->size[2];
	v->of_buffer = d.image_type == CL_MEM_OBJECT_IMAGE1D_BUFFER;
	MUST(first = malloc(texels(v->size) * TEXEL));
	scribble(p, first, texels(v->size) * TEXEL);
	if (v->of_buffer) {
		d.buffer = clCreateBuffer(p->context, CL_MEM_COPY_HOST_PTR, texels(v->size) * TEXEL,
					  first, &e);
		OK(e);
		v->mem = clCreateImage(p->context, 0, &format, &d, NULL, &e);
		OK(e);
		OK(clReleaseMemObject(d.buffer)); /* the image keeps it */
	} else {
		v->mem = clCreateImage(p->context, CL_MEM_COPY_HOST_PTR, &format, &d, first, &e);
		OK(e);
	}
	free(first);
}

static void replace(struct player *p)
{
	volume_end(p);
	make(p);
}

static void transfer(struct player *p, const size_t at[3], const size_t size[3], bool write)
{
	struct block *h = &p->blocks[below(p, BLOCKS)];
	struct command c = begin(p);

	if (texels(size) * TEXEL > h->bytes)
		return;
	touch_uses(&c, &p->volume.uses, write);
	touch_uses(&c, &h->uses, !write);
	ready(&c);
	if (write)
		OK(clEnqueueWriteImage(c.q, p->volume.mem, c.block, at, size, 0, 0, h->data,
				       LIST(c)));
	else
		OK(clEnqueueReadImage(c.q, p->volume.mem, c.block, at, size, 0, 0, h->data,
				      LIST(c)));
	end(&c);
	after_transfer(p, &c, h, write);
}

static void fill(struct player *p, const size_t at[3], const size_t size[3])
{
	cl_uint colour[4] = {below(p, 999), 5, 6, 7};
	struct command c = begin(p);

	c.block = CL_FALSE;
	touch_uses(&c, &p->volume.uses, true);
	ready(&c);
	OK(clEnqueueFillImage(c.q, p->volume.mem, colour, at, size, LIST(c)));
	end(&c);
}

void play_volume(struct player *p)
{
	const size_t *of = p->volume.size;
	uint32_t what = below(p, 8);
	size_t at[3], size[3];

	if (!p->volume.mem || what == 0) {
		replace(p);
		return;
	}
	for (int i = 0; i < 3; i++) {
		at[i] = below(p, of[i]);
		size[i] = 1 + below(p, of[i] - at[i]);
	}
	if (what < 3 && !p->volume.of_buffer) /* PoCL 3.1 ends the program there */
		fill(p, at, size);
	else
		transfer(p, at, size, what < 5);
}

void volume_end(struct player *p)
{
	const size_t at[3] = {0};
	struct volume *v = &p->volume;
	void *data;

	if (!v->mem)
		return;
	wait_uses(p, &v->uses);
	open_gates(p); /* the queue may be in order */
	MUST(data = malloc(texels(v->size) * TEXEL));
	OK(clEnqueueReadImage(p->queues[0], v->mem, CL_TRUE, at, v->size, 0, 0, data, 0, NULL,
			      NULL));
	see(p, data, texels(v->size) * TEXEL);
	free(data);
	OK(clReleaseMemObject(v->mem));
	v->mem = NULL;
}
