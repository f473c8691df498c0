/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the bytes of a datatype lie, and how they are moved: a small program of nested loops.
 *
 * MPI_Type_vector(1000000, 1, 2, MPI_DOUBLE) as a list of blocks would be sixteen megabytes that
 * have to be read beside the data. Here it is one loop:
 *
 *	vector(n, 1, 2, double)		loop n times, 16 bytes apart: run of 8
 *	subarray of a 3-d array		loop, loop, run
 *	struct {int; pad; double}	list: run of 4 at 0, run of 8 at 8
 *	array of such			loop n times, 16 bytes apart: (the list above)
 *
 * Nodes are immutable and shared by all the types made from them. They are kept simplest:
 * - a run is not a node but a reference without one (`node` NULL);
 * - a loop has at least two rounds, its child starts at offset 0 of the loop, and it is neither one
 *   run nor one longer loop (stride of the outer = rounds × stride of the inner);
 * - a list has at least two parts, no two neighbours that touch, and is not a loop.
 * So memory that is one run in type map order always is a plain run here, and the depth is
 * at most some tens: each loop at least doubles the size, and lists within lists are dissolved.
 */
#ifndef HALE_OBJECT_LAYOUT_H
#define HALE_OBJECT_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

/* size bytes from offset on (node NULL), or the node's program started at offset. size 0: nothing.
 */
struct layout_ref {
	ptrdiff_t offset;
	size_t size;
	struct layout *node;
};

/* One part of a list; it ends where the next one's `start` is. */
struct layout_part {
	ptrdiff_t offset;
	size_t start;	     /* its first byte in the packed form */
	struct layout *node; /* NULL: a run */
};

enum layout_kind { LAYOUT_LOOP, LAYOUT_LIST };

enum { LAYOUT_REFS_STATIC = -1 }; /* static nodes are never freed */

struct layout {
	int32_t refs;
	uint8_t kind;
	uint8_t depth;	     /* 1: nothing but runs below */
	size_t size;	     /* bytes of data */
	size_t runs;	     /* pieces of memory, touching ones of different rounds counted apart */
	ptrdiff_t low, high; /* all bytes lie in [low, high) */
	size_t count;	     /* rounds, or parts */
	/* loops */
	ptrdiff_t stride;
	struct layout *child; /* NULL: a run of child_size bytes at 0 */
	size_t child_size;
	/* lists: count parts and a last one whose start is `size` */
	struct layout_part *parts;
};

/* ---- making (heap memory; false: none left, or sizes that no address can hold) ---- */
static inline struct layout_ref layout_run(ptrdiff_t offset, size_t size)
{
	return (struct layout_ref){.offset = offset, .size = size};
}
void layout_retain(struct layout_ref r);
void layout_release(struct layout_ref r);

/* count times r, stride bytes apart. Takes its own reference to r; *out is the caller's. */
bool layout_repeat(struct layout_ref r, size_t count, ptrdiff_t stride, struct layout_ref *out);

/* Several references one after the other. Begin with zeros; end with finish or discard. */
struct layout_builder {
	struct layout_part *parts;
	size_t count, capacity;
	size_t size; /* bytes so far */
	bool failed; /* no memory: finish will say so */
};
/* Takes over the reference. */
void layout_append(struct layout_builder *b, struct layout_ref r);
bool layout_finish(struct layout_builder *b, struct layout_ref *out);
void layout_discard(struct layout_builder *b);

/* Pieces of memory, and the range [*low, *high) that they lie in; r.size must not be 0. */
size_t layout_runs(struct layout_ref r);
void layout_range(struct layout_ref r, ptrdiff_t *low, ptrdiff_t *high);

/* ---- moving bytes [skip, skip + max) of the packed form; returns how many there were ---- */
size_t layout_pack(struct layout_ref r, const void *memory, size_t skip, void *packed, size_t max);
size_t layout_unpack(struct layout_ref r, void *memory, size_t skip, const void *packed,
		     size_t max);
/* The memory from packed byte skip on as at most max pieces, touching ones merged; returns their
 * number, *bytes their total. */
size_t layout_pieces(struct layout_ref r, const void *memory, size_t skip, struct iovec *iov,
		     size_t max, size_t *bytes);

#endif
