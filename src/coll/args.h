/* SPDX-License-Identifier: BSD-3-Clause */
/* One collective call as data, so that shared cells and schedules see the same thing. */
#ifndef HALE_COLL_ARGS_H
#define HALE_COLL_ARGS_H

#include "base/base.h"
#include "object/comm.h"
#include "object/datatype.h"
#include "object/op.h"
#include "object/request.h"

typedef enum coll_kind {
	COLL_BARRIER,
	COLL_BCAST, /* the buffer is rbuf */
	COLL_GATHER,
	COLL_SCATTER,
	COLL_ALLGATHER,
	COLL_ALLTOALL,
	COLL_REDUCE, /* reductions: type and count are rtype, rcount */
	COLL_ALLREDUCE,
	COLL_REDUCE_SCATTER, /* rcounts, or rcount for each member */
	COLL_SCAN,
	COLL_EXSCAN,
} coll_kind_t;

struct coll_args {
	coll_kind_t kind;
	int root;
	struct comm *comm;
	struct op *op;
	const void *sbuf;
	void *rbuf;
	/* one block, or the block of each member: displacements in extents, or with types of their
	 * own in bytes */
	size_t scount, rcount;
	struct datatype *stype, *rtype;
	const void *scounts, *sdispls, *rcounts, *rdispls; /* see wide */
	struct datatype *const *stypes, *const *rtypes;
	bool wide;   /* those four are of MPI_Count and MPI_Aint; else of int */
	bool ragged; /* blocks of gathers and scatters differ, as only the root knows */
};

struct coll_block {
	char *buf;
	size_t count;
	struct datatype *type;
};

_Static_assert(sizeof(MPI_Count) == 8 && sizeof(MPI_Aint) == 8, "one width for both");
/* One of an array of counts or displacements. */
static inline int64_t coll_number(const struct coll_args *a, const void *numbers, int i)
{
	return UNLIKELY(a->wide) ? ((const int64_t *)numbers)[i] : ((const int *)numbers)[i];
}
/* Elements of member i in a reduction whose result is scattered. */
static inline size_t coll_share(const struct coll_args *a, int i)
{
	return a->rcounts ? (size_t)coll_number(a, a->rcounts, i) : a->rcount;
}

/* What goes to, or comes from, a member in operations that have a block each. */
static inline struct coll_block coll_block_of(const struct coll_args *a, const void *buf,
					      size_t count, struct datatype *type,
					      const void *counts, const void *displs,
					      struct datatype *const *types, int member)
{
	char *p = (char *)(uintptr_t)buf;
	if (!counts)
		return (struct coll_block){p + (ptrdiff_t)(count * (size_t)member) * type->extent,
					   count, type};
	const ptrdiff_t at = coll_number(a, displs, member);
	const size_t n = (size_t)coll_number(a, counts, member);
	if (types)
		return (struct coll_block){p + at, n, types[member]};
	return (struct coll_block){p + at * type->extent, n, type};
}
static inline struct coll_block coll_send_block(const struct coll_args *a, int member)
{
	return coll_block_of(a, a->sbuf, a->scount, a->stype, a->scounts, a->sdispls, a->stypes,
			     member);
}
static inline struct coll_block coll_recv_block(const struct coll_args *a, int member)
{
	return coll_block_of(a, a->rbuf, a->rcount, a->rtype, a->rcounts, a->rdispls, a->rtypes,
			     member);
}
/* The single block of operations that send or receive one. */
static inline struct coll_block coll_send_one(const struct coll_args *a)
{
	return (struct coll_block){(char *)(uintptr_t)a->sbuf, a->scount, a->stype};
}
static inline struct coll_block coll_recv_one(const struct coll_args *a)
{
	return (struct coll_block){a->rbuf, a->rcount, a->rtype};
}
static inline size_t coll_block_bytes(struct coll_block b)
{
	return b.count * b.type->size;
}
/* Copies between blocks; MPI_ERR_TRUNCATE when dst is too small (what fits is there). */
static inline int coll_block_copy(struct coll_block dst, struct coll_block src)
{
	datatype_copy(dst.type, dst.buf, dst.count, src.type, src.buf, src.count);
	return coll_block_bytes(src) > coll_block_bytes(dst) ? MPI_ERR_TRUNCATE : MPI_SUCCESS;
}

static inline bool coll_in_place(const struct coll_args *a)
{
	return a->sbuf == MPI_IN_PLACE;
}

/* A reduction's elements of this process. */
static inline const char *coll_input(const struct coll_args *a)
{
	return coll_in_place(a) ? a->rbuf : a->sbuf;
}

/* Memory that count elements of t span, from coll_low on, gaps included: reductions work on that,
 * since their functions see elements in the type's own layout. */
static inline size_t coll_span(const struct datatype *t, size_t count)
{
	if (LIKELY(t->contiguous))
		return count * t->size;
	const size_t step = (size_t)(t->extent < 0 ? -t->extent : t->extent);
	return count ? (size_t)t->true_extent + (count - 1) * step : 0;
}
/* Where that memory begins, from the elements' address: with a negative extent the last element is
 * the first in memory. */
static inline ptrdiff_t coll_low(const struct datatype *t, size_t count)
{
	const bool back = UNLIKELY(t->extent < 0) && count && !t->contiguous;
	return t->true_lb + (back ? (ptrdiff_t)(count - 1) * t->extent : 0);
}

/* The largest power of two below n (n > 1): where the tree of coll.h splits n ranks. */
static inline int coll_split(int n)
{
	return 1 << (31 - __builtin_clz((unsigned)n - 1));
}

/* count elements split over n members: member's first element. */
static inline size_t coll_part(size_t count, int n, int member)
{
	return count / (size_t)n * (size_t)member +
	       (count % (size_t)n < (size_t)member ? count % (size_t)n : (size_t)member);
}

/* The call over whatever suits it (coll.c). */
int coll_run(const struct coll_args *a);
int coll_start(const struct coll_args *a, struct request **req);

#endif
