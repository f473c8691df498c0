/* SPDX-License-Identifier: BSD-3-Clause */
/* Vectors, chunk by chunk, so that nodes work while the network does:
 *
 *	fold	  everybody deposits its elements of the chunk; member i of the node combines slice
 *		  i of them, those pieces of the tree that the node has
 *	exchange  members i of all nodes combine the rest of slice i: a schedule, under way while
 *the next chunk is folded
 *	share	  who has combined a slice deposits it; whoever wants elements of it takes them
 *
 * There are as many slices as the smallest node has members. Chunks of a reduce_scatter belong to
 * members of one node each, and go there only; nodes get theirs in turn. Where members of one node
 * are hardly ever next to each other chunks go to all of them.
 */
#include "coll/hier/hier_vector.h"

#include "coll/hier/join.h"
#include "coll/cells/cells_fold.h"
#include "coll/coll.h"
#include "coll/cells/scratch.h"

enum { CHUNK = 262144 };
_Static_assert((int)CHUNK <= COLL_CELL_RING / 2, "a chunk and what came before it fit a ring");

/* Elements that go to the same members: all of one node (-1: all nodes). */
struct hier_vector_run {
	size_t first, end;
	int to;
};

struct hier_vector_chunk {
	size_t first, count;
	int to;
};

struct vector {
	struct coll_home *h;
	const struct coll_args *a;
	const struct coll_hier *map;
	size_t chunk; /* elements */
	struct hier_vector_run *run;
	int runs, slices;
	struct hier_train train;
	/* Elements that this process wants, and where: element 0 of the vector would be at out. */
	size_t want, end;
	char *out;
	void *image; /* where they are kept up to the end; NULL: they go to the user's buffer */
	/* Values of the pieces of this member's slice, of two chunks in turn. */
	struct coll_block *value;
	char *room;
	size_t stride;
	char *result[2]; /* the slice, combined, as its element 0 */
};

bool hier_vector_suits(const struct coll_args *a)
{
	return a->rtype->extent > 0 && coll_span(a->rtype, 1) <= CHUNK;
}

static size_t chunk_elements(const struct datatype *t)
{
	size_t one = coll_span(t, 1);
	return 1 + (CHUNK - one) / (size_t)t->extent;
}

static size_t min_size(size_t a, size_t b)
{
	return a < b ? a : b;
}

static size_t max_size(size_t a, size_t b)
{
	return a > b ? a : b;
}

/* ---- what goes where ---- */

/* Ranks in a row that live on one node. */
static void runs_of_nodes(struct vector *v)
{
	size_t at = 0;
	for (int i = 0; i < v->map->n; i++) {
		size_t count = coll_share(v->a, i);
		if (!v->runs || v->run[v->runs - 1].to != v->map->node_of[i])
			v->run[v->runs++] = (struct hier_vector_run){at, at, v->map->node_of[i]};
		at += count;
		v->run[v->runs - 1].end = at;
	}
}

static void wanted(struct vector *v)
{
	const struct coll_args *a = v->a;
	int rank = a->comm->rank;
	switch (a->kind) {
	case COLL_REDUCE_SCATTER:
		if (hier_few_pieces(v->map))
			runs_of_nodes(v);
		else
			v->run[v->runs++] = (struct hier_vector_run){0, hier_vector_length(a), -1};
		v->want = hier_vector_first(a, rank);
		v->end = hier_vector_first(a, rank + 1);
		return;
	case COLL_REDUCE:
		v->run[0] = (struct hier_vector_run){0, a->rcount, v->map->node_of[a->root]};
		v->end = rank == a->root ? a->rcount : 0;
		break;
	default:
		v->run[0] = (struct hier_vector_run){0, a->rcount, -1};
		v->end = a->rcount;
	}
	v->runs = 1;
}

/* So many rounds give each run its chunks, one a round. */
static size_t rounds(const struct vector *v)
{
	size_t most = 0;
	for (int i = 0; i < v->runs; i++)
		most = max_size(most, v->run[i].end - v->run[i].first);
	return (most + v->chunk - 1) / v->chunk;
}

/* The next chunk that has elements; *at is where to look from. False: none. */
static bool chunk_next(const struct vector *v, size_t *at, struct hier_vector_chunk *c)
{
	for (size_t end = rounds(v) * (size_t)v->runs; *at < end;) {
		const struct hier_vector_run *r = &v->run[*at % (size_t)v->runs];
		size_t done = *at / (size_t)v->runs * v->chunk, length = r->end - r->first;
		++*at;
		if (done >= length)
			continue;
		*c = (struct hier_vector_chunk){r->first + done, min_size(v->chunk, length - done),
						r->to};
		return true;
	}
	return false;
}

/* Elements of a slice, in the vector. */
struct hier_vector_range {
	size_t first, end;
};
static struct hier_vector_range slice_of(const struct vector *v, const struct hier_vector_chunk *c,
					 int member)
{
	if (member >= v->slices)
		return (struct hier_vector_range){0, 0};
	return (struct hier_vector_range){c->first + coll_part(c->count, v->slices, member),
					  c->first + coll_part(c->count, v->slices, member + 1)};
}

static struct hier_vector_range wanted_of(const struct vector *v, struct hier_vector_range r)
{
	size_t first = max_size(r.first, v->want), end = min_size(r.end, v->end);
	return first < end ? (struct hier_vector_range){first, end}
			   : (struct hier_vector_range){0, 0};
}

/* ---- memory ---- */

/* Results go to the user's buffer as they come, unless it has gaps, or its elements are still to be
 * given where others' results would come to lie. */
static bool out_init(struct vector *v)
{
	const struct coll_args *a = v->a;
	const struct datatype *t = a->rtype;
	size_t count = v->end - v->want;
	char *out = a->rbuf;
	bool early = a->kind == COLL_REDUCE_SCATTER && coll_in_place(a);
	if (count && (!t->contiguous || early))
		out = fold_image(t, count, &v->image);
	v->out = out - (ptrdiff_t)v->want * t->extent;
	return !count || out;
}

static bool vector_init(struct vector *v, struct coll_home *h, const struct coll_args *a)
{
	const struct coll_hier *map = a->comm->coll->hier;
	size_t pieces = (size_t)map->pieces, n = (size_t)map->n;
	*v = (struct vector){.h = h,
			     .a = a,
			     .map = map,
			     .chunk = chunk_elements(a->rtype),
			     .slices = map->least,
			     .train = {.comm = a->comm, .tag = hier_tag(a->comm)}};
	size_t most = min_size(v->chunk, hier_vector_length(a)) / (size_t)v->slices + 1;
	v->stride = ALIGN_UP(coll_span(a->rtype, most), CACHE_LINE);
	size_t values = h->rank < v->slices ? 2 * pieces * v->stride : 0;
	v->run = heap_alloc(n * sizeof(*v->run) + pieces * sizeof(*v->value));
	v->room = scratch_get(values + 1);
	if (!v->run)
		return false;
	v->value = (struct coll_block *)(v->run + n);
	wanted(v);
	return out_init(v) && v->room;
}

static void vector_fini(struct vector *v)
{
	size_t count = v->end - v->want;
	if (v->image)
		fold_give(v->a, v->a->rbuf, v->out + (ptrdiff_t)v->want * v->a->rtype->extent,
			  count);
	scratch_put(v->image);
	scratch_put(v->room);
	heap_free(v->run);
}

/* ---- fold and exchange ---- */

/* This process's elements but for its own slice, which nobody else combines. */
static void deposit_elements(const struct vector *v, uint64_t k, const struct hier_vector_chunk *c)
{
	const struct datatype *t = v->a->rtype;
	char *room = cells_room(v->h, k, coll_span(t, c->count));
	const char *mine = coll_input(v->a) + (ptrdiff_t)c->first * t->extent + t->true_lb;
	struct hier_vector_range own = slice_of(v, c, v->h->rank);
	if (own.first == own.end) {
		memcpy(room, mine, coll_span(t, c->count));
	} else {
		ptrdiff_t after = (ptrdiff_t)(own.end - c->first) * t->extent;
		memcpy(room, mine, coll_span(t, own.first - c->first));
		memcpy(room + after, mine + after, coll_span(t, c->first + c->count - own.end));
	}
	cells_publish_ring(v->h, k);
}

/* Where the pieces of this slice are: the last one where the result is to be, which is in out if
 * this process wants all of it. */
static void place_values(struct vector *v, int i, struct hier_vector_range own)
{
	const struct datatype *t = v->a->rtype;
	struct hier_vector_range want = wanted_of(v, own);
	int pieces = v->map->pieces;
	char *room = v->room + (size_t)((i & 1) * pieces) * v->stride - t->true_lb;
	for (int p = 0; p < pieces; p++)
		v->value[p] = (struct coll_block){room + (size_t)p * v->stride, own.end - own.first,
						  v->a->rtype};
	if (want.first == own.first && want.end == own.end)
		v->value[pieces - 1].buf = v->out + (ptrdiff_t)own.first * t->extent;
	v->result[i & 1] = v->value[pieces - 1].buf;
}

/* Combines this node's pieces of the slice. */
static int fold_pieces(struct vector *v, uint64_t k, const struct hier_vector_chunk *c,
		       struct hier_vector_range own)
{
	const struct datatype *t = v->a->rtype;
	const struct coll_hier *map = v->map;
	struct fold f;
	size_t first = own.first - c->first;
	int rc = MPI_SUCCESS;
	fold_init(&f, v->h, k, v->a);
	f.own = coll_input(v->a) + (ptrdiff_t)c->first * t->extent;
	for (int p = 0; p < map->pieces; p++) {
		const struct hier_piece *piece = &map->piece[p];
		if (piece->node != map->node)
			continue;
		int lo = hier_local(map, piece->lo);
		char *to = v->value[p].buf - (ptrdiff_t)first * t->extent;
		f.own_in_out = to == f.own;
		int r =
		    fold_range(&f, lo, lo + piece->hi - piece->lo, first, own.end - own.first, to);
		rc = rc ? rc : r;
	}
	return rc;
}

/* Members of the node that the chunk is for, or of all, get the slice's result. */
static void exchange_start(struct vector *v, int i, const struct hier_vector_chunk *c, int rc)
{
	const struct coll_hier *map = v->map;
	struct hier_team team = {map, -1, v->h->rank};
	struct schedule *s = hier_train_next(&v->train, i);
	if (s && rc)
		schedule_fail(s, rc);
	else if (s)
		hier_plan_reduce(s, &team, v->a->op, v->value, v->value[map->pieces - 1],
				 c->to < 0 ? -1 : hier_member(map, c->to, 0));
	hier_train_start(&v->train, i, s);
}

static void chunk_fold(struct vector *v, int i, const struct hier_vector_chunk *c, bool lacking)
{
	struct coll_home *h = v->h;
	struct hier_vector_range own = slice_of(v, c, h->rank);
	bool acts = own.first < own.end && !lacking;
	int rc = MPI_SUCCESS;
	uint64_t k = 0;
	if (h->n > 1) {
		k = cells_begin(h);
		deposit_elements(v, k, c);
	}
	if (acts) {
		place_values(v, i, own);
		rc = fold_pieces(v, k, c, own);
	}
	if (h->n > 1)
		cells_finish_ring(h, k);
	hier_tell(h);
	if (acts)
		exchange_start(v, i, c, rc);
}

/* ---- share ---- */

static void take(const struct vector *v, struct hier_vector_range from, const char *elements)
{
	const struct datatype *t = v->a->rtype;
	struct hier_vector_range want = wanted_of(v, from);
	char *to = v->out + (ptrdiff_t)want.first * t->extent + t->true_lb;
	elements += (ptrdiff_t)(want.first - from.first) * t->extent;
	if (want.first < want.end && to != elements)
		memcpy(to, elements, coll_span(t, want.end - want.first));
}

static void deposit_slice(const struct vector *v, uint64_t k, struct hier_vector_range own,
			  const char *result)
{
	size_t span = coll_span(v->a->rtype, own.end - own.first);
	char *room = cells_room(v->h, k, span);
	if (result)
		memcpy(room, result, span);
	cells_publish_ring(v->h, k);
}

static void chunk_share(struct vector *v, int i, const struct hier_vector_chunk *c, bool lacking)
{
	struct coll_home *h = v->h;
	struct hier_vector_range own = slice_of(v, c, h->rank);
	hier_train_wait(&v->train, i);
	if (c->to >= 0 && c->to != v->map->node)
		return;
	const char *result = NULL;
	if (own.first < own.end && !lacking) {
		result = v->result[i & 1] + v->a->rtype->true_lb;
		take(v, own, result);
	}
	if (h->n == 1)
		return;
	uint64_t k = cells_begin(h);
	if (own.first < own.end)
		deposit_slice(v, k, own, result);
	for (int n = 1; n < h->n && !lacking; n++) {
		int member = (h->rank + n) % h->n;
		struct hier_vector_range theirs = slice_of(v, c, member),
					 want = wanted_of(v, theirs);
		if (want.first == want.end)
			continue;
		struct coll_header *d = cells_deposit_of(h, member, k);
		take(v, theirs, cells_payload(h, member, d));
	}
	cells_finish_ring(h, k);
	hier_tell(h);
}

int hier_vector(struct coll_home *h, const struct coll_args *a)
{
	struct vector v;
	bool lacking = !vector_init(&v, h, a), more, before = false;
	struct hier_vector_chunk c, last = {0};
	size_t at = 0;
	if (!v.run) {
		vector_fini(&v);
		return MPI_ERR_NO_MEM;
	}
	for (int i = 0; (more = chunk_next(&v, &at, &c)) || before; i++) {
		if (more)
			chunk_fold(&v, i, &c, lacking);
		if (before)
			chunk_share(&v, i - 1, &last, lacking);
		before = more;
		last = c;
	}
	vector_fini(&v);
	return lacking ? MPI_ERR_NO_MEM : v.train.rc;
}
