/* SPDX-License-Identifier: BSD-3-Clause */
#include "object/signature.h"

#include "base/base.h"

/* Parts in order, the whole `times` times. */
struct signature {
	int32_t refs;
	size_t times;
	size_t count, elements, size; /* parts; elements and bytes of one repetition */
	struct signature_ref parts[];
};

/* size, width, wire, parts, tail, elements */
const struct basic_shape basic_shapes[BASIC_COUNT] = {
    [BASIC_BYTE] = {1, 1, 1, 1, 0, 1},		 [BASIC_INT8] = {1, 1, 1, 1, 0, 1},
    [BASIC_INT16] = {2, 2, 2, 1, 0, 1},		 [BASIC_INT32] = {4, 4, 4, 1, 0, 1},
    [BASIC_INT64] = {8, 8, 8, 1, 0, 1},		 [BASIC_UINT8] = {1, 1, 1, 1, 0, 1},
    [BASIC_UINT16] = {2, 2, 2, 1, 0, 1},	 [BASIC_UINT32] = {4, 4, 4, 1, 0, 1},
    [BASIC_UINT64] = {8, 8, 8, 1, 0, 1},	 [BASIC_LONG] = {8, 8, 4, 1, 0, 1},
    [BASIC_ULONG] = {8, 8, 4, 1, 0, 1},		 [BASIC_FLOAT] = {4, 4, 4, 1, 0, 1},
    [BASIC_DOUBLE] = {8, 8, 8, 1, 0, 1},	 [BASIC_LDOUBLE] = {16, 16, 16, 1, 0, 1},
    [BASIC_CFLOAT] = {8, 4, 4, 2, 0, 1},	 [BASIC_CDOUBLE] = {16, 8, 8, 2, 0, 1},
    [BASIC_CLDOUBLE] = {32, 16, 16, 2, 0, 1},	 [BASIC_BOOL] = {1, 1, 1, 1, 0, 1},
    [BASIC_LOGICAL] = {4, 4, 4, 1, 0, 1},	 [BASIC_LOGICAL1] = {1, 1, 1, 1, 0, 1},
    [BASIC_LOGICAL2] = {2, 2, 2, 1, 0, 1},	 [BASIC_LOGICAL8] = {8, 8, 8, 1, 0, 1},
    [BASIC_CHAR] = {1, 1, 1, 1, 0, 1},		 [BASIC_WCHAR] = {4, 4, 2, 1, 0, 1},
    [BASIC_CHARACTER] = {1, 1, 1, 1, 0, 1},	 [BASIC_FLOAT_INT] = {8, 4, 4, 1, 4, 2},
    [BASIC_DOUBLE_INT] = {12, 8, 8, 1, 4, 2},	 [BASIC_LONG_INT] = {12, 8, 4, 1, 4, 2},
    [BASIC_SHORT_INT] = {6, 2, 2, 1, 4, 2},	 [BASIC_2INT] = {8, 4, 4, 2, 0, 2},
    [BASIC_LDOUBLE_INT] = {20, 16, 16, 1, 4, 2}, [BASIC_2REAL] = {8, 4, 4, 2, 0, 2},
    [BASIC_2DOUBLE] = {16, 8, 8, 2, 0, 2},	 [BASIC_2INTEGER] = {8, 4, 4, 2, 0, 2},
    [BASIC_PACKED] = {1, 1, 1, 1, 0, 1},	 [BASIC_QUAD] = {16, 16, 16, 1, 0, 1},
    [BASIC_CQUAD] = {32, 16, 16, 2, 0, 1},	 [BASIC_2CFLOAT] = {16, 4, 4, 4, 0, 1},
    [BASIC_2CDOUBLE] = {32, 8, 8, 4, 0, 1},
};

void signature_retain(struct signature_ref r)
{
	if (r.node)
		r.node->refs++;
}

void signature_release(struct signature_ref r)
{
	struct signature *s = r.node;
	if (!s || --s->refs > 0)
		return;
	for (size_t i = 0; i < s->count; i++)
		signature_release(s->parts[i]);
	heap_free(s);
}

static struct signature *make(size_t times, size_t count)
{
	struct signature *s = heap_calloc(1, sizeof(*s) + count * sizeof(s->parts[0]));
	if (s) {
		s->refs = 1;
		s->times = times;
		s->count = count;
	}
	return s;
}

bool signature_repeat(struct signature_ref r, size_t times, struct signature_ref *out)
{
	*out = (struct signature_ref){0};
	if (times == 0 || r.count == 0)
		return true;
	*out = r;
	if (!r.node) {
		out->count *= times;
		out->size *= times;
		return true;
	}
	if (times == 1) {
		signature_retain(r);
		return true;
	}
	/* a repetition of a repetition is a longer one of its parts */
	const struct signature *inner = r.node;
	struct signature *s = make(times * inner->times, inner->count);
	if (!s)
		return false;
	s->elements = inner->elements;
	s->size = inner->size;
	for (size_t i = 0; i < s->count; i++) {
		s->parts[i] = inner->parts[i];
		signature_retain(s->parts[i]);
	}
	*out = (struct signature_ref){.count = r.count * times, .size = r.size * times, .node = s};
	return true;
}

static void push(struct signature_builder *b, struct signature_ref r)
{
	struct signature_ref *last = b->count ? &b->parts[b->count - 1] : NULL;
	b->elements += r.count;
	b->size += r.size;
	if (last && !last->node && !r.node && last->basic == r.basic) {
		last->count += r.count;
		last->size += r.size;
		return;
	}
	if (!b->parts || b->count == b->capacity) {
		const size_t capacity = b->capacity ? 2 * b->capacity : 8;
		struct signature_ref *p = heap_realloc(b->parts, capacity * sizeof(*p));
		if (!p) {
			b->failed = true;
			signature_release(r);
			return;
		}
		b->parts = p;
		b->capacity = capacity;
	}
	b->parts[b->count++] = r;
}

void signature_append(struct signature_builder *b, struct signature_ref r)
{
	const struct signature *s = r.node;
	if (b->failed || r.count == 0) {
		signature_release(r);
		return;
	}
	if (!s || s->times > 1) {
		push(b, r);
		return;
	}
	/* a plain sequence within a sequence is dissolved: bounds the depth */
	for (size_t i = 0; i < s->count && !b->failed; i++) {
		signature_retain(s->parts[i]);
		push(b, s->parts[i]);
	}
	signature_release(r);
}

void signature_discard(struct signature_builder *b)
{
	for (size_t i = 0; i < b->count; i++)
		signature_release(b->parts[i]);
	heap_free(b->parts);
	*b = (struct signature_builder){0};
}

bool signature_finish(struct signature_builder *b, struct signature_ref *out)
{
	*out = (struct signature_ref){0};
	if (b->failed) {
		signature_discard(b);
		return false;
	}
	if (b->count <= 1) {
		if (b->count)
			*out = b->parts[0];
		heap_free(b->parts);
		*b = (struct signature_builder){0};
		return true;
	}
	struct signature *s = make(1, b->count);
	if (!s) {
		signature_discard(b);
		return false;
	}
	s->elements = b->elements;
	s->size = b->size;
	for (size_t i = 0; i < s->count; i++)
		s->parts[i] = b->parts[i];
	heap_free(b->parts);
	*b = (struct signature_builder){0};
	*out = (struct signature_ref){.count = s->elements, .size = s->size, .node = s};
	return true;
}

/* bytes < r.size. */
static bool elements_within(struct signature_ref r, size_t bytes, size_t *elements)
{
	const struct signature *s = r.node;
	if (!s) {
		const struct basic_shape *one = &basic_shapes[r.basic];
		*elements += bytes / one->size * one->elements;
		bytes %= one->size;
		if (one->elements == 2 && bytes >= one->width) { /* half of a pair */
			*elements += 1;
			bytes -= one->width;
		}
		return bytes == 0;
	}
	*elements += bytes / s->size * s->elements;
	bytes %= s->size;
	for (size_t i = 0; bytes > 0; i++) {
		if (bytes < s->parts[i].size)
			return elements_within(s->parts[i], bytes, elements);
		bytes -= s->parts[i].size;
		*elements += s->parts[i].count;
	}
	return true;
}

bool signature_elements(struct signature_ref r, size_t bytes, size_t *elements)
{
	*elements = 0;
	if (r.size == 0)
		return bytes == 0;
	*elements = bytes / r.size * r.count;
	return elements_within(r, bytes % r.size, elements);
}

/* elements < r.count. */
static size_t bytes_within(struct signature_ref r, size_t elements)
{
	const struct signature *s = r.node;
	if (!s) {
		const struct basic_shape *one = &basic_shapes[r.basic];
		return elements / one->elements * one->size + elements % one->elements * one->width;
	}
	size_t bytes = elements / s->elements * s->size;
	elements %= s->elements;
	for (size_t i = 0; elements > 0; i++) {
		if (elements < s->parts[i].count)
			return bytes + bytes_within(s->parts[i], elements);
		elements -= s->parts[i].count;
		bytes += s->parts[i].size;
	}
	return bytes;
}

size_t signature_bytes(struct signature_ref r, size_t elements)
{
	if (r.count == 0)
		return 0;
	return elements / r.count * r.size + bytes_within(r, elements % r.count);
}

void signature_walk(struct signature_ref r, void (*visit)(void *arg, basic_t basic, size_t count),
		    void *arg)
{
	if (!r.node) {
		if (r.count)
			visit(arg, r.basic, r.count / basic_shapes[r.basic].elements);
		return;
	}
	for (size_t t = 0; t < r.node->times; t++) {
		for (size_t i = 0; i < r.node->count; i++)
			signature_walk(r.node->parts[i], visit, arg);
	}
}

size_t signature_wire(struct signature_ref r)
{
	if (!r.node) {
		const struct basic_shape *one = &basic_shapes[r.basic];
		return r.count ? r.count / one->elements * (one->wire * one->parts + one->tail) : 0;
	}
	size_t once = 0;
	for (size_t i = 0; i < r.node->count; i++)
		once += signature_wire(r.node->parts[i]);
	return r.node->times * once;
}
