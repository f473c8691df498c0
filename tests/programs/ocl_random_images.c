/* SPDX-License-Identifier: BSD-3-Clause */
/* ocl_random: commands on images. */
#include "ocl_random.h"

void play_paint(struct player *p)
{
	struct memory *to = pick_array(p), *a = pick(p, IMAGE), *b = pick(p, IMAGE);
	cl_uint number = below(p, 999);
	cl_kernel k = p->kernels[PAINT];
	struct command c = begin(p);

	if (!to || !a || !b || a == b || b->width * b->height > to->bytes / 4)
		return; /* smaller ones would be written to twice in the same place */
	c.block = CL_FALSE;
	set_array(k, 0, to);
	OK(clSetKernelArg(k, 2, sizeof(a->mem), &a->mem));
	OK(clSetKernelArg(k, 3, sizeof(b->mem), &b->mem));
	OK(clSetKernelArg(k, 4, sizeof(number), &number));
	touch(&c, to, true);
	touch(&c, a, false);
	touch(&c, b, true);
	launch(&c, k, 2, (size_t[]){b->width, b->height}, NULL);
}

void play_image_transfer(struct player *p)
{
	struct memory *m = pick(p, IMAGE);
	struct block *h = &p->blocks[below(p, BLOCKS)];
	struct command c = begin(p);
	bool write = below(p, 2);

	if (!m)
		return;
	size_t at[3] = {below(p, m->width), below(p, m->height), 0};
	size_t size[3] = {1 + below(p, m->width - at[0]), 1 + below(p, m->height - at[1]), 1};

	if (size[0] * size[1] * 16 > h->bytes)
		return;
	touch(&c, m, write);
	touch_uses(&c, &h->uses, !write);
	ready(&c);
	if (write)
		OK(clEnqueueWriteImage(c.q, m->mem, c.block, at, size, 0, 0, h->data, LIST(c)));
	else
		OK(clEnqueueReadImage(c.q, m->mem, c.block, at, size, 0, 0, h->data, LIST(c)));
	end(&c);
	after_transfer(p, &c, h, write);
}

/* Filled, or from or to a buffer. */
void play_image_copy(struct player *p)
{
	struct memory *m = pick(p, IMAGE), *b = pick(p, BUFFER);
	cl_uint colour[4] = {below(p, 999), 1, 2, 3};
	uint32_t what = below(p, 3);
	struct command c = begin(p);

	if (!m || !b)
		return;
	size_t at[3] = {below(p, m->width), below(p, m->height), 0};
	size_t size[3] = {1 + below(p, m->width - at[0]), 1 + below(p, m->height - at[1]), 1};
	size_t bytes = size[0] * size[1] * 16;

	if (bytes > b->bytes || &p->memories[b->root] != b)
		return; /* PoCL 3.1 ends the program where the buffer is a part of another one */
	size_t offset = 4 * (size_t)below(p, (b->bytes - bytes) / 4 + 1);

	c.block = CL_FALSE;
	touch(&c, m, what != 0);
	if (what < 2)
		touch(&c, b, what == 0);
	ready(&c);
	if (what == 0)
		OK(clEnqueueCopyImageToBuffer(c.q, m->mem, b->mem, at, size, offset, LIST(c)));
	else if (what == 1)
		OK(clEnqueueCopyBufferToImage(c.q, b->mem, m->mem, offset, at, size, LIST(c)));
	else
		OK(clEnqueueFillImage(c.q, m->mem, colour, at, size, LIST(c)));
	end(&c);
}

void play_map_image(struct player *p)
{
	struct memory *m = pick(p, IMAGE);
	struct command c = begin(p);
	size_t pitch;
	cl_int e;

	if (!m || !p->maps)
		return;
	size_t at[3] = {below(p, m->width), below(p, m->height), 0};
	size_t size[3] = {1 + below(p, m->width - at[0]), 1 + below(p, m->height - at[1]), 1};

	c.block = CL_TRUE;
	touch(&c, m, true);
	ready(&c);
	char *data = clEnqueueMapImage(c.q, m->mem, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, at, size,
				       &pitch, NULL, c.n, c.n > 0 ? c.waits : NULL, NULL, &e);
	OK(e);
	for (size_t y = 0; y < size[1]; y++) {
		see(p, data + y * pitch, size[0] * 16);
		data[y * pitch] ^= 3;
	}
	OK(clEnqueueUnmapMemObject(c.q, m->mem, data, 0, NULL, &c.event));
	end(&c);
}
