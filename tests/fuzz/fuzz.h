/* SPDX-License-Identifier: BSD-3-Clause */
/* What fuzz targets share: an input that is taken piece by piece, zero when it is used up. */
#ifndef HALE_FUZZ_H
#define HALE_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
	const uint8_t *at;
	size_t left;
};

#define must(condition)                                                                            \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);    \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

static inline void input_take(struct input *in, void *to, size_t len)
{
	size_t n = in->left < len ? in->left : len;

	memset(to, 0, len);
	if (n)
		memcpy(to, in->at, n);
	in->at += n;
	in->left -= n;
}

static inline uint8_t input_byte(struct input *in)
{
	uint8_t byte;

	input_take(in, &byte, 1);
	return byte;
}

/* A length byte and so many bytes, as far as they are there. */
static inline struct input input_part(struct input *in)
{
	size_t n = input_byte(in);
	struct input part = {in->at, n < in->left ? n : in->left};

	in->at += part.left;
	in->left -= part.left;
	return part;
}

/* What is right is mostly kept: up to three bytes of it change, at places that the input names. */
static inline void input_bend(struct input *in, void *bytes, size_t len)
{
	unsigned count = input_byte(in) % 4;

	for (unsigned i = 0; i < count; i++) {
		size_t at = input_byte(in);

		at = (at << 8 | input_byte(in)) % len;
		((uint8_t *)bytes)[at] ^= input_byte(in);
	}
}

#endif
