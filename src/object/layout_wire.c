/* SPDX-License-Identifier: BSD-3-Clause */
#include "object/layout_wire.h"

#include "base/base.h"

enum { WIRE_RUN = 0, WIRE_LOOP = 1, WIRE_LIST = 2, WIRE_DEPTH_MAX = 128 };

static struct layout_ref layout_wire_part(const struct layout *l, size_t i)
{
	return (struct layout_ref){.offset = l->parts[i].offset,
				   .size = l->parts[i + 1].start - l->parts[i].start,
				   .node = l->parts[i].node};
}

static struct layout_ref layout_wire_child(const struct layout *l)
{
	return (struct layout_ref){.size = l->child_size, .node = l->child};
}

size_t layout_wire_count(struct layout_ref r)
{
	const struct layout *l = r.node;
	size_t n = 3;
	if (!l)
		return n;
	if (l->kind == LAYOUT_LOOP)
		return n + 2 + layout_wire_count(layout_wire_child(l));
	n++;
	for (size_t i = 0; i < l->count; i++)
		n += layout_wire_count(layout_wire_part(l, i));
	return n;
}

int64_t *layout_wire_write(struct layout_ref r, int64_t *out)
{
	const struct layout *l = r.node;
	*out++ = r.offset;
	*out++ = (int64_t)r.size;
	if (!l) {
		*out++ = WIRE_RUN;
		return out;
	}
	if (l->kind == LAYOUT_LOOP) {
		*out++ = WIRE_LOOP;
		*out++ = (int64_t)l->count;
		*out++ = l->stride;
		return layout_wire_write(layout_wire_child(l), out);
	}
	*out++ = WIRE_LIST;
	*out++ = (int64_t)l->count;
	for (size_t i = 0; i < l->count; i++)
		out = layout_wire_write(layout_wire_part(l, i), out);
	return out;
}

struct wire_reader {
	const int64_t *at, *end;
	unsigned depth;
};

static bool layout_wire_take(struct wire_reader *r, struct layout_ref *out);

static bool layout_wire_take_loop(struct wire_reader *r, struct layout_ref *out)
{
	if (r->end - r->at < 2)
		return false;
	int64_t count = *r->at++, stride = *r->at++;
	struct layout_ref child;
	if (count < 0 || !layout_wire_take(r, &child))
		return false;
	bool ok = layout_repeat(child, (size_t)count, stride, out);
	layout_release(child);
	return ok;
}

static bool layout_wire_take_list(struct wire_reader *r, struct layout_ref *out)
{
	struct layout_builder b = {0};
	if (r->end - r->at < 1)
		return false;
	int64_t count = *r->at++;
	for (int64_t i = 0; i < count; i++) {
		struct layout_ref part;
		if (!layout_wire_take(r, &part)) {
			layout_discard(&b);
			return false;
		}
		layout_append(&b, part);
	}
	return layout_finish(&b, out);
}

static bool layout_wire_take(struct wire_reader *r, struct layout_ref *out)
{
	if (r->end - r->at < 3 || r->depth == WIRE_DEPTH_MAX)
		return false;
	int64_t offset = *r->at++, size = *r->at++, kind = *r->at++;
	bool ok = size >= 0;
	r->depth++;
	if (kind == WIRE_RUN)
		*out = layout_run(0, (size_t)size);
	else
		ok = ok && (kind == WIRE_LOOP	? layout_wire_take_loop(r, out)
			    : kind == WIRE_LIST ? layout_wire_take_list(r, out)
						: false);
	r->depth--;
	if (!ok)
		return false;
	if (out->size != (size_t)size) {
		layout_release(*out);
		return false;
	}
	out->offset += offset;
	return true;
}

bool layout_wire_read(const int64_t *in, size_t count, struct layout_ref *out)
{
	struct wire_reader r = {in, in + count, 0};
	if (!layout_wire_take(&r, out))
		return false;
	if (r.at == r.end)
		return true;
	layout_release(*out);
	return false;
}
