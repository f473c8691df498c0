/* SPDX-License-Identifier: BSD-3-Clause */
/* What a request looks like. It lies in memory that a program with a stray pointer can write to, so
 * before anything is taken from it all of it is looked at, once, here: behind this every word that
 * is taken is there, every blob and list lies within the request, texts and lists of properties
 * end. What the words mean (numbers of objects, sizes of memory) is looked at where they are used.
 *
 * A shape is a letter for each part:
 *   w  a word            b  a blob                t  a blob that is a text, with its end
 *   n  a count, and as many words                 l  a list of objects: the count that the program
 *   T  as many texts as the last list has            gave, whether there was a list, words
 *   E  a wait list and the event to be made       A  a kernel's argument */
#include <string.h>
#include "base/base.h"
#include "ocl/remote/server.h"

static const char *const shapes[] = {
    [OP_SUB_DEVICES] = "wbn",
    [OP_CONTEXT] = "wwl",
    [OP_QUEUE] = "wwwwb",
    [OP_BUFFER] = "wwwww",
    [OP_SUB_BUFFER] = "wwwww",
    [OP_IMAGE] = "wwwwwwwwwwwwwwwww",
    [OP_SAMPLER] = "wwwww",
    [OP_PROGRAM_SOURCE] = "wwb",
    [OP_PROGRAM_IL] = "wwb",
    [OP_PROGRAM_BINARY] = "wwlnb",
    [OP_PROGRAM_BUILT_IN] = "wwlt",
    [OP_PROGRAM_BUILD] = "wlt",
    [OP_PROGRAM_COMPILE] = "wltlT",
    [OP_PROGRAM_LINK] = "wwltl",
    [OP_KERNEL] = "wwt",
    [OP_KERNEL_CLONE] = "ww",
    [OP_KERNEL_ARG] = "wwwA",
    [OP_SVM] = "wwww",
    [OP_CONTENT_SIZE] = "ww",
    [OP_DEVICE] = "wwwwtt",
    [OP_EVENT_PAST] = "wwwwwwwww",
    [OP_CONTENT] = "ww",
    [OP_DEVICES] = "",
    [OP_INFO] = "wwwwww",
    [OP_BINARIES] = "wb",
    [OP_FORMATS] = "wwwww",
    [OP_RELEASE] = "w",
    [OP_FLUSH] = "w",
    [OP_FINISH] = "w",
    [OP_WAIT] = "E",
    [OP_USER_EVENT] = "ww",
    [OP_USER_EVENT_SET] = "ww",
    [OP_CALLBACK] = "www",
    [OP_BOX] = "wwwwwwwwwwwwwwwE",
    [OP_BOX_IMAGE] = "wwwwwwwwwwwwwwwE",
    [OP_COPY] = "wwwwwwE",
    [OP_COPY_RECT] = "wwwwwwwwwwwwwwwwE",
    [OP_FILL] = "wwwwwbE",
    [OP_COPY_IMAGE] = "wwwwwwwwwwwwE",
    [OP_IMAGE_TO_BUFFER] = "wwwwwwwwwwE",
    [OP_BUFFER_TO_IMAGE] = "wwwwwwwwwwE",
    [OP_FILL_IMAGE] = "wwwwwwwwwbE",
    [OP_LAUNCH] = "wwwwwwwwwwwwwE",
    [OP_MARKER] = "wwE",
    [OP_MIGRATE] = "wwlE",
    [OP_SVM_COPY] = "wwwwwE",
    [OP_SVM_FILL] = "wwwbE",
    [OP_SVM_MAP] = "wwwwwE",
    [OP_SVM_UNMAP] = "wwE",
    [OP_QUIESCE] = "",
    [OP_SNAPSHOT] = "ww",
    [OP_RESTORE] = "ww",
};

struct rest {
	const uint64_t *word;
	size_t left;   /* words */
	uint64_t last; /* what the last part told: a length */
	const char *blob;
};

static bool take(struct rest *r, uint64_t words)
{
	if (words > r->left)
		return false;
	r->word += words;
	r->left -= words;
	return true;
}

static bool take_blob(struct rest *r)
{
	uint64_t size = r->left >= 2 ? r->word[0] : 0;

	if (!take(r, 2) || size > r->left * 8)
		return false;
	r->blob = (const char *)r->word;
	r->last = size;
	return take(r, (size + 7) / 8);
}

static bool take_text(struct rest *r)
{
	return take_blob(r) && r->last > 0 && r->blob[r->last - 1] == '\0';
}

/* The count may be more than there are: whoever takes the list knows. */
static bool take_list(struct rest *r)
{
	r->last = r->left >= 3 ? r->word[2] : 0;
	return take(r, 3) && r->last <= LIST_MAX && take(r, r->last);
}

static bool take_texts(struct rest *r)
{
	for (uint64_t n = r->last; n > 0; n--)
		if (!take_text(r))
			return false;
	return true;
}

/* The size that the runtime is told, and the bytes that it will look at. */
static bool take_argument(struct rest *r)
{
	uint64_t size = r->word[-1], kind = r->left ? r->word[0] : 0;

	if (!take(r, 1))
		return false;
	switch (kind) {
	case ARG_BYTES:
		return take_blob(r) && r->last >= size;
	case ARG_OBJECT:
		return size == sizeof(void *) && take(r, 1);
	case ARG_SVM:
		return take(r, 1);
	default:
		return kind == ARG_NULL;
	}
}

static bool take_part(struct rest *r, char part)
{
	switch (part) {
	case 'w':
		return take(r, 1);
	case 'b':
		return take_blob(r);
	case 't':
		return take_text(r);
	case 'n':
		r->last = r->left ? r->word[0] : 0;
		return take(r, 1) && r->last <= LIST_MAX && take(r, r->last);
	case 'l':
		return take_list(r);
	case 'T':
		return take_texts(r);
	case 'E':
		return take_list(r) && take(r, 1);
	default:
		return take_argument(r);
	}
}

bool box_wraps(const size_t origin[3], const size_t region[3])
{
	size_t end;

	for (int i = 0; i < 3; i++)
		if (__builtin_add_overflow(origin[i], region[i], &end))
			return true;
	return false;
}

bool rect_wraps(const size_t origin[3], const size_t region[3], size_t row, size_t plane)
{
	size_t y, z, end;

	row = row ? row : region[0];
	return box_wraps(origin, region) ||
	       (plane == 0 && __builtin_mul_overflow(row, region[1], &plane)) ||
	       __builtin_mul_overflow(origin[1] + region[1], row, &y) ||
	       __builtin_mul_overflow(origin[2] + region[2], plane, &z) ||
	       __builtin_add_overflow(y, z, &end) ||
	       __builtin_add_overflow(end, origin[0] + region[0], &end);
}

const char *shape_of(unsigned op)
{
	return op < ARRAY_LEN(shapes) ? shapes[op] : NULL;
}

bool shape_is_right(const struct wire_request *r)
{
	struct rest rest = {.word = r->word, .left = (r->size - sizeof(*r)) / 8};
	const char *part = shape_of(r->op);

	if (!part || r->size < sizeof(*r) || r->size % 8)
		return false;
	for (; *part; part++)
		if (!take_part(&rest, *part))
			return false;
	return rest.left == 0;
}
