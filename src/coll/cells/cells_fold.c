/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll/cells/cells_fold.h"

#include "coll/coll.h"
#include "coll/cells/scratch.h"

/* Bytes that are combined at once: partial results stay in the core's cache, and a system call
 * (some 2 us) is spread over enough of them. */
enum { FOLD_CHUNK = 65536 };

static char *fold_temp(const struct fold *f, unsigned level)
{
	return f->scratch + level * f->stride - f->type->true_lb;
}

/* Where member's elements are, reading them into temp if they can't be used in place. */
static int fold_one(struct fold *f, int member, char *temp, const char **at)
{
	const struct datatype *t = f->type;
	ptrdiff_t skip = (ptrdiff_t)f->first * t->extent;
	if (member == f->h->rank && f->own_chunk) {
		*at = f->own_chunk;
		return MPI_SUCCESS;
	}
	struct coll_header *d = cells_header(f->h, member, f->k);
	if (!d->address) {
		*at = cells_payload(f->h, member, d) - t->true_lb + skip;
		return MPI_SUCCESS;
	}
	*at = temp;
	return cells_read(f->h, member, d->address + (uint64_t)skip, temp + t->true_lb,
			  coll_span(t, f->count));
}

/* Can member's elements be used where they are? */
static bool in_place(const struct fold *f, int member)
{
	return (member == f->h->rank && f->own_chunk) || !cells_header(f->h, member, f->k)->address;
}

/* Where the left operand is read to: there where the result goes when nothing else has to be there
 * before, so that one buffer less passes through the caches. */
static char *left_room(const struct fold *f, int mid, int hi, char *to, unsigned level)
{
	bool free = hi - mid == 1 && in_place(f, mid) && !f->own_in_out;
	return free && op_in_left(f->op, f->type) ? to : fold_temp(f, level);
}

static int fold_tree(struct fold *f, int lo, int hi, char *to, unsigned level)
{
	int mid = lo + coll_split(hi - lo), rc, read = MPI_SUCCESS;
	const char *left, *right = to;
	char *temp = left_room(f, mid, hi, to, level);
	if (mid - lo == 1) {
		rc = fold_one(f, lo, temp, &left);
	} else {
		rc = fold_tree(f, lo, mid, temp, level + 1);
		left = temp;
	}
	if (hi - mid == 1)
		read = fold_one(f, mid, to, &right);
	else
		read = fold_tree(f, mid, hi, to, level + 1);
	op_combine(f->op, left, right, to, f->count, f->type);
	return rc ? rc : read;
}

static int fold_alone(struct fold *f, int member, char *to)
{
	const char *at;
	int rc = fold_one(f, member, to, &at);
	if (at != to)
		memcpy(to + f->type->true_lb, at + f->type->true_lb, coll_span(f->type, f->count));
	return rc;
}

int fold_range(struct fold *f, int lo, int hi, size_t first, size_t count, char *out)
{
	const struct datatype *t = f->type;
	size_t span = coll_span(t, 1), whole = coll_span(t, count);
	size_t chunk = whole <= FOLD_CHUNK || !span ? count : 1 + FOLD_CHUNK / span;
	int n = hi - lo;
	unsigned levels = n > 1 ? 33 - (unsigned)__builtin_clz((unsigned)n - 1) : 1;
	if (!count || n < 1)
		return MPI_SUCCESS;
	chunk = chunk < count ? chunk : count;
	f->stride = ALIGN_UP(coll_span(t, chunk), CACHE_LINE);
	f->scratch = f->stack;
	if (levels * f->stride > sizeof(f->stack))
		f->scratch = scratch_get(levels * f->stride);
	if (!f->scratch)
		return MPI_ERR_NO_MEM;
	cells_wait_deposits(f->h, f->k, hi);
	int rc = MPI_SUCCESS;
	for (size_t done = 0; done < count && !rc; done += chunk) {
		f->first = first + done;
		f->count = chunk < count - done ? chunk : count - done;
		f->own_chunk = f->own ? f->own + (ptrdiff_t)f->first * t->extent : NULL;
		if (f->own_chunk && f->own_in_out && f->h->rank != hi - 1) {
			char *copy = fold_temp(f, levels - 1);
			memcpy(copy + t->true_lb, f->own_chunk + t->true_lb,
			       coll_span(t, f->count));
			f->own_chunk = copy;
		}
		char *to = out + (ptrdiff_t)f->first * t->extent;
		rc = n == 1 ? fold_alone(f, lo, to) : fold_tree(f, lo, hi, to, 0);
	}
	if (f->scratch != f->stack)
		scratch_put(f->scratch);
	return rc;
}

void fold_init(struct fold *f, struct coll_home *h, uint64_t k, const struct coll_args *a)
{
	f->h = h;
	f->k = k;
	f->op = a->op;
	f->type = a->rtype;
	f->own = NULL;
	f->own_in_out = false;
}

char *fold_image(const struct datatype *t, size_t count, void **block)
{
	*block = scratch_get(coll_span(t, count) + CACHE_LINE);
	return *block ? (char *)*block - t->true_lb : NULL;
}

void fold_give(const struct coll_args *a, void *to, const char *from, size_t count)
{
	if (LIKELY(a->rtype->contiguous))
		memcpy(to, from, count * a->rtype->size);
	else
		datatype_copy(a->rtype, to, count, a->rtype, from, count);
}

int fold_deliver(struct fold *f, const struct coll_args *a, int hi, size_t first, size_t count,
		 void *to)
{
	ptrdiff_t skip = (ptrdiff_t)first * f->type->extent;
	void *block;
	if (LIKELY(f->type->contiguous))
		return fold_run(f, hi, first, count, (char *)to - skip);
	char *image = fold_image(f->type, count, &block);
	if (!image)
		return MPI_ERR_NO_MEM;
	f->own_in_out = false;
	int rc = fold_run(f, hi, first, count, image - skip);
	fold_give(a, to, image, count);
	scratch_put(block);
	return rc;
}
