/* SPDX-License-Identifier: BSD-3-Clause */
#include "object/datatype.h"

#include <string.h>

void (*datatype_on_destroy)(struct datatype *t);

enum { COPY_CHUNK = 8192 }; /* on the stack; stays in the first-level cache */

/* Frees t, whose last reference is gone. Types made from types can be very deep, so those that go
 * with it are put on the list instead of being released from here. */
static void destroy(struct datatype *t, struct datatype **doomed)
{
	struct datatype_recipe *r = t->recipe;
	if (datatype_on_destroy)
		datatype_on_destroy(t);
	layout_release(t->data);
	signature_release(t->elements);
	for (int i = 0; r && i < r->ntypes; i++) {
		if (r->types[i] && object_drop(&r->types[i]->obj)) {
			r->types[i]->next_doomed = *doomed;
			*doomed = r->types[i];
		}
	}
	heap_free(r);
	t->obj.kind = OBJECT_FREED;
	heap_free(t);
}

void datatype_release(struct datatype *t)
{
	if (!object_drop(&t->obj))
		return;
	struct datatype *doomed = t;
	while (doomed) {
		t = doomed;
		doomed = t->next_doomed;
		destroy(t, &doomed);
	}
}

bool datatype_describe(struct datatype *t, int combiner, int nints, int naddrs, int ntypes,
		       int **ints, MPI_Aint **addrs, struct datatype ***types)
{
	struct datatype_recipe *r;
	char *p = heap_calloc(1, sizeof(*r) + (size_t)naddrs * sizeof(MPI_Aint) +
				     (size_t)ntypes * sizeof(struct datatype *) +
				     (size_t)nints * sizeof(int));
	if (!p)
		return false;
	r = (struct datatype_recipe *)p;
	*r = (struct datatype_recipe){.combiner = combiner, .nints = nints, .naddrs = naddrs};
	r->addrs = (MPI_Aint *)(p + sizeof(*r));
	r->types = (struct datatype **)(r->addrs + naddrs);
	r->ints = (int *)(r->types + ntypes);
	r->ntypes = ntypes;
	t->combiner = combiner;
	t->recipe = r;
	if (ints)
		*ints = r->ints;
	if (addrs)
		*addrs = r->addrs;
	if (types)
		*types = r->types;
	return true;
}

/* The layout of count elements; the loop it may need is the caller's to keep. */
static struct layout_ref layout_of(const struct datatype *t, size_t count, struct layout *loop)
{
	struct layout_ref r = t->data;
	if (count == 1 || r.size == 0)
		return r;
	if (count == 0)
		return layout_run(0, 0);
	r.size *= count;
	if (!r.node && t->extent == (ptrdiff_t)t->size)
		return r;
	*loop = (struct layout){.refs = LAYOUT_REFS_STATIC,
				.kind = LAYOUT_LOOP,
				.size = r.size,
				.count = count,
				.stride = t->extent,
				.child = t->data.node,
				.child_size = t->size};
	r.node = loop;
	return r;
}

size_t datatype_pack(const struct datatype *t, const void *buf, size_t count, size_t skip,
		     void *out, size_t max)
{
	struct layout loop;
	return layout_pack(layout_of(t, count, &loop), buf, skip, out, max);
}

size_t datatype_unpack(const struct datatype *t, void *buf, size_t count, size_t skip,
		       const void *in, size_t len)
{
	struct layout loop;
	return layout_unpack(layout_of(t, count, &loop), buf, skip, in, len);
}

size_t datatype_iov(const struct datatype *t, const void *buf, size_t count, size_t skip,
		    struct iovec *iov, size_t max, size_t *bytes)
{
	struct layout loop;
	return layout_pieces(layout_of(t, count, &loop), buf, skip, iov, max, bytes);
}

size_t datatype_copy(const struct datatype *dt, void *dst, size_t dcount, const struct datatype *st,
		     const void *src, size_t scount)
{
	size_t dbytes, sbytes;
	char *const drun = datatype_run(dt, dst, dcount, &dbytes);
	const char *const srun = datatype_run(st, src, scount, &sbytes);
	const size_t n = dbytes < sbytes ? dbytes : sbytes;
	if (n == 0)
		return 0;
	if (drun && srun) {
		if (drun != srun)
			memmove(drun, srun, n);
		return n;
	}
	if (srun)
		return datatype_unpack(dt, dst, dcount, 0, srun, n);
	if (drun)
		return datatype_pack(st, src, scount, 0, drun, n);
	struct layout sloop, dloop;
	const struct layout_ref s = layout_of(st, scount, &sloop);
	const struct layout_ref d = layout_of(dt, dcount, &dloop);
	char chunk[COPY_CHUNK];
	for (size_t done = 0; done < n;) {
		const size_t step = n - done < sizeof(chunk) ? n - done : sizeof(chunk);
		layout_pack(s, src, done, chunk, step);
		layout_unpack(d, dst, done, chunk, step);
		done += step;
	}
	return n;
}
