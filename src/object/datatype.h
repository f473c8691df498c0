/* SPDX-License-Identifier: BSD-3-Clause */
/* Datatypes: where the bytes lie (object/layout.h), plus the recipe that
 * MPI_Type_get_envelope/contents give back. A contiguous type never reaches the pack engine. */
#ifndef HALE_OBJECT_DATATYPE_H
#define HALE_OBJECT_DATATYPE_H

#include <sys/uio.h>
#include "object/layout.h"
#include "object/object.h"
#include "object/signature.h"

/* How a derived type was made; owns its copies and one reference to each type. */
struct datatype_recipe {
	int combiner;
	int nints, naddrs, ntypes;
	bool large; /* addrs are counts of 64 bits, as the `_c` constructors got them */
	int *ints;
	MPI_Aint *addrs;
	struct datatype **types;
};

struct attributes; /* mpi/comm/attr.c */

struct datatype {
	struct object obj;
	size_t size;	      /* bytes of data in one element */
	ptrdiff_t lb, extent; /* ub = lb + extent */
	ptrdiff_t true_lb, true_extent;
	size_t nblocks;			/* runs of bytes in one element, adjacent ones merged */
	struct layout_ref data;		/* where they lie, in type map order */
	struct datatype_recipe *recipe; /* NULL for predefined types */
	struct signature_ref elements; /* the basic elements in order: .basic is their kind when all
					* are the same, .count their number */
	bool committed;
	bool contiguous; /* one block at offset 0 with length == size == extent; or empty */
	bool lb_marked, ub_marked; /* lb or ub was set explicitly (resized, MPI_LB): it then also
				    * holds in the types made from this one (MPI-3.1 4.1.6) */
	uint8_t align;		   /* strictest alignment of the basic elements */
	int combiner;		   /* MPI_COMBINER_NAMED for predefined */
	char name[MPI_MAX_OBJECT_NAME];
	struct attributes *attrs;
	int handles;		      /* what the user can free: made or got from get_contents;
				       * attributes are deleted when it falls to 0 */
	struct datatype *next_doomed; /* while it is being destroyed */
};
FORTRAN_OFFSET(struct datatype, attrs, 0xd0);

static inline void datatype_retain(struct datatype *t)
{
	object_retain(&t->obj);
}
void datatype_release(struct datatype *t);

/* The last reference is gone: mpi/ forgets the Fortran handle. NULL until it is set. */
extern void (*datatype_on_destroy)(struct datatype *t);

/* Where count elements at buf lie, when they are one run of bytes (contiguous, or count 1 of one
 * block); NULL otherwise. *bytes is always count * size. */
static inline void *datatype_run(const struct datatype *t, const void *buf, size_t count,
				 size_t *bytes)
{
	*bytes = count * t->size;
	if (LIKELY(t->contiguous))
		return (void *)(uintptr_t)buf;
	if (t->nblocks == 1 && (count == 1 || (ptrdiff_t)t->size == t->extent))
		return (char *)((uintptr_t)buf + (uintptr_t)t->true_lb);
	return NULL;
}

/* Copies bytes [skip, skip + max) of the packed form of count elements at buf to out; returns the
 * number copied (less than max only at the end). Any skip, any order of calls. */
size_t datatype_pack(const struct datatype *t, const void *buf, size_t count, size_t skip,
		     void *out, size_t max);
/* The inverse: bytes in[0..len) are bytes [skip, skip + len) of the packed form. Bytes beyond
 * count elements are ignored. Returns the number used. */
size_t datatype_unpack(const struct datatype *t, void *buf, size_t count, size_t skip,
		       const void *in, size_t len);
/* The memory of count elements from packed byte skip on, as at most max pieces; returns their
 * number, *bytes their total. For process_vm_readv. */
size_t datatype_iov(const struct datatype *t, const void *buf, size_t count, size_t skip,
		    struct iovec *iov, size_t max, size_t *bytes);
/* dst and src of different types, same packed bytes: local copy (collectives, self). Copies
 * min of both sizes; returns the bytes copied. */
size_t datatype_copy(const struct datatype *dt, void *dst, size_t dcount, const struct datatype *st,
		     const void *src, size_t scount);

/* ---- making types (object/datatype_make.c, datatype_array.c). Arguments have been checked; NULL:
 * no memory. The new type has one reference and one handle, and no recipe yet. ---- */
/* Takes over both references, also when it fails; bounds are to be set then. */
struct datatype *datatype_make(struct layout_ref data, struct signature_ref elements);
void datatype_set_bounds(struct datatype *t, ptrdiff_t lb, ptrdiff_t ub);
struct datatype *datatype_make_dup(const struct datatype *old);
struct datatype *datatype_make_resized(const struct datatype *old, ptrdiff_t lb, ptrdiff_t extent);
/* count blocks of blocklength elements, `stride` bytes from start to start */
struct datatype *datatype_make_vector(const struct datatype *old, size_t count, size_t blocklength,
				      ptrdiff_t stride);
/* count blocks in order; add them, then finish (which also cleans up when memory ran out). */
struct datatype_builder {
	struct layout_builder layout;
	struct signature_builder elements;
	bool bounded; /* something with an extent was added: the fields below hold */
	bool lb_marked, ub_marked;
	uint8_t align;
	ptrdiff_t lb, ub;		/* natural bounds */
	ptrdiff_t marked_lb, marked_ub; /* explicit ones, if marked */
	struct layout_ref last;		/* the last block's layout at 0, to share it */
	const struct datatype *last_old;
	size_t last_length;
};
void datatype_builder_add(struct datatype_builder *b, const struct datatype *old,
			  size_t blocklength, ptrdiff_t offset);
struct datatype *datatype_builder_finish(struct datatype_builder *b);

struct datatype *datatype_make_subarray(const struct datatype *old, int ndims,
					const MPI_Count *sizes, const MPI_Count *subsizes,
					const MPI_Count *starts, int order);
struct datatype *datatype_make_darray(const struct datatype *old, int nprocs, int rank, int ndims,
				      const MPI_Count *sizes, const int *distribs, const int *dargs,
				      const int *psizes, int order);

/* Gives t its recipe; the caller fills the arrays at once, the types with references of their own
 * (they start as NULL). Pointers that are not wanted may be NULL. False: no memory. */
bool datatype_describe(struct datatype *t, int combiner, int nints, int naddrs, int ntypes,
		       int **ints, MPI_Aint **addrs, struct datatype ***types);

/* ---- external32 (MPI-3.1 13.5.2): big-endian, MPI_LONG as 4 bytes, long double as binary128 ----
 * Converts count elements to or from the signature_wire(t->elements) * count bytes at wire. False:
 * no memory. */
bool datatype_pack_external(const struct datatype *t, const void *buf, size_t count, void *wire);
bool datatype_unpack_external(const struct datatype *t, void *buf, size_t count, const void *wire);

#endif
