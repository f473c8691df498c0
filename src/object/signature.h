/* SPDX-License-Identifier: BSD-3-Clause */
/* Which basic elements a datatype has, in order: MPI_Get_elements counts them, external32
 * converts them. Most types have one kind only and need no node. */
#ifndef HALE_OBJECT_SIGNATURE_H
#define HALE_OBJECT_SIGNATURE_H

#include <stdbool.h>
#include "object/basic.h"

/* count elements of `size` bytes in all: of kind `basic` each (node NULL), or as the node says. */
struct signature_ref {
	size_t count, size;
	uint16_t basic; /* basic_t; NONE when there is a node */
	struct signature *node;
};

void signature_retain(struct signature_ref r);
void signature_release(struct signature_ref r);

/* times repetitions of r; *out is the caller's. False: no memory. */
bool signature_repeat(struct signature_ref r, size_t times, struct signature_ref *out);

/* Several one after the other. Begin with zeros; end with finish or discard. */
struct signature_builder {
	struct signature_ref *parts;
	size_t count, capacity;
	size_t elements, size;
	bool failed;
};
/* Takes over the reference. */
void signature_append(struct signature_builder *b, struct signature_ref r);
bool signature_finish(struct signature_builder *b, struct signature_ref *out);
void signature_discard(struct signature_builder *b);

/* Whole elements in the first `bytes` of endless repetitions of r; false: bytes ends inside one. */
bool signature_elements(struct signature_ref r, size_t bytes, size_t *elements);
/* The inverse: bytes of the first `elements` elements. */
size_t signature_bytes(struct signature_ref r, size_t elements);

/* Bytes of r in external32. */
size_t signature_wire(struct signature_ref r);

/* Calls visit for each stretch of `count` equal basics (a pair is one) of r, in order. */
void signature_walk(struct signature_ref r, void (*visit)(void *arg, basic_t basic, size_t count),
		    void *arg);

#endif
