/* SPDX-License-Identifier: BSD-3-Clause */
/* Groups as sets of world ranks with an order. Every operation is linear: one side is turned into
 * a map from world rank to place, then the other is walked. */
#include <string.h>
#include "mpi/comm/comm.h"
#include "object/session.h"

/* Places by world rank; places[w] is -1 for a rank that isn't in the group. */
struct group_places {
	int *at;
	int cap;
};

static bool places_open(struct group_places *p, const struct group *g)
{
	p->cap = 0;
	for (int i = 0; i < g->size; i++)
		if (g->world[i] >= p->cap)
			p->cap = g->world[i] + 1;
	p->at = heap_alloc(((size_t)p->cap + 1) * sizeof(int));
	if (!p->at)
		return false;
	memset(p->at, 0xff, (size_t)p->cap * sizeof(int));
	for (int i = 0; i < g->size; i++)
		p->at[g->world[i]] = i;
	return true;
}

static int places_get(const struct group_places *p, int world)
{
	return world < p->cap ? p->at[world] : -1;
}

static int *ranks_alloc(int n)
{
	return heap_alloc((size_t)(n > 0 ? n : 1) * sizeof(int));
}

struct group *group_create(int *world, int n)
{
	if (n == 0) {
		heap_free(world);
		return GROUP_EMPTY;
	}
	struct group *g = heap_calloc(1, GROUP_BYTES);
	if (!g) {
		heap_free(world);
		return NULL;
	}
	object_init(&g->obj, OBJECT_GROUP);
	g->fortran_index = -1;
	g->size = n;
	g->world = world;
	g->rank = group_find(g, (int)link_self()->rank);
	if (UNLIKELY(object_fortran_used))
		object_to_fortran(&g->obj);
	return g;
}

void group_release(struct group *g)
{
	if (!object_drop(&g->obj))
		return;
	object_forget_fortran(&g->obj);
	g->obj.kind = OBJECT_FREED;
	session_release(g->session);
	heap_free(g->world);
	heap_free(g);
}

int group_find(const struct group *g, int world_rank)
{
	/* communicators of the whole job hold every rank at its own place */
	if (world_rank < g->size && g->world[world_rank] == world_rank)
		return world_rank;
	for (int i = 0; i < g->size; i++)
		if (g->world[i] == world_rank)
			return i;
	return MPI_UNDEFINED;
}

/* The last step of every operation: from the ranks found to the result. */
static int group_result(int *world, int n, struct group **out)
{
	*out = group_create(world, n);
	return *out ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

int group_compare(const struct group *a, const struct group *b)
{
	if (a == b)
		return MPI_IDENT;
	if (a->size != b->size)
		return MPI_UNEQUAL;
	if (a->size == 0 || !memcmp(a->world, b->world, (size_t)a->size * sizeof(int)))
		return MPI_IDENT;
	struct group_places p;
	if (!places_open(&p, b))
		return MPI_UNEQUAL;
	int result = MPI_SIMILAR;
	for (int i = 0; i < a->size && result == MPI_SIMILAR; i++)
		if (places_get(&p, a->world[i]) < 0)
			result = MPI_UNEQUAL;
	heap_free(p.at);
	return result;
}

int group_translate(const struct group *a, int n, const int *ranks, const struct group *b, int *to)
{
	struct group_places p;
	if (n == 0)
		return MPI_SUCCESS;
	if (!places_open(&p, b))
		return MPI_ERR_NO_MEM;
	int rc = MPI_SUCCESS;
	for (int i = 0; i < n && !rc; i++) {
		if (ranks[i] == MPI_PROC_NULL) {
			to[i] = MPI_PROC_NULL;
		} else if (ranks[i] < 0 || ranks[i] >= a->size) {
			rc = MPI_ERR_RANK;
		} else {
			int at = places_get(&p, a->world[ranks[i]]);
			to[i] = at < 0 ? MPI_UNDEFINED : at;
		}
	}
	heap_free(p.at);
	return rc;
}

/* Appends the members of a that are in b (or that are not). Returns the new length. */
static int select_members(const struct group *a, const struct group_places *b, bool in, int *world,
			  int n)
{
	for (int i = 0; i < a->size; i++)
		if ((places_get(b, a->world[i]) >= 0) == in)
			world[n++] = a->world[i];
	return n;
}

int group_union(const struct group *a, const struct group *b, struct group **out)
{
	struct group_places p;
	int *world = ranks_alloc(a->size + b->size);
	if (!world || !places_open(&p, a)) {
		heap_free(world);
		return MPI_ERR_NO_MEM;
	}
	if (a->size)
		memcpy(world, a->world, (size_t)a->size * sizeof(int));
	int n = select_members(b, &p, false, world, a->size);
	heap_free(p.at);
	return group_result(world, n, out);
}

static int keep(const struct group *a, const struct group *b, bool in, struct group **out)
{
	struct group_places p;
	int *world = ranks_alloc(a->size);
	if (!world || !places_open(&p, b)) {
		heap_free(world);
		return MPI_ERR_NO_MEM;
	}
	int n = select_members(a, &p, in, world, 0);
	heap_free(p.at);
	return group_result(world, n, out);
}

int group_intersection(const struct group *a, const struct group *b, struct group **out)
{
	return keep(a, b, true, out);
}

int group_difference(const struct group *a, const struct group *b, struct group **out)
{
	return keep(a, b, false, out);
}

/* marks[r] = 1 for each of the ranks; an error for one that is out of range or named twice. */
static int mark_ranks(const struct group *g, int n, const int *ranks, unsigned char **marks)
{
	*marks = heap_calloc((size_t)g->size + 1, 1);
	if (!*marks)
		return MPI_ERR_NO_MEM;
	for (int i = 0; i < n; i++) {
		if (ranks[i] < 0 || ranks[i] >= g->size || (*marks)[ranks[i]]) {
			heap_free(*marks);
			return MPI_ERR_RANK;
		}
		(*marks)[ranks[i]] = 1;
	}
	return MPI_SUCCESS;
}

int group_incl(const struct group *g, int n, const int *ranks, struct group **out)
{
	unsigned char *marks;
	int rc = mark_ranks(g, n, ranks, &marks);
	if (rc)
		return rc;
	heap_free(marks);
	int *world = ranks_alloc(n);
	if (!world)
		return MPI_ERR_NO_MEM;
	for (int i = 0; i < n; i++)
		world[i] = g->world[ranks[i]];
	return group_result(world, n, out);
}

int group_excl(const struct group *g, int n, const int *ranks, struct group **out)
{
	unsigned char *marks;
	int rc = mark_ranks(g, n, ranks, &marks);
	if (rc)
		return rc;
	int *world = ranks_alloc(g->size), left = 0;
	for (int i = 0; world && i < g->size; i++)
		if (!marks[i])
			world[left++] = g->world[i];
	heap_free(marks);
	return world ? group_result(world, left, out) : MPI_ERR_NO_MEM;
}

/* The ranks that the triplets (first, last, stride) name, in their order. */
static int expand_ranges(const struct group *g, int n, int ranges[][3], int **ranks, int *count)
{
	*ranks = ranks_alloc(g->size);
	*count = 0;
	if (!*ranks)
		return MPI_ERR_NO_MEM;
	for (int i = 0; i < n; i++) {
		long first = ranges[i][0], last = ranges[i][1], stride = ranges[i][2];
		bool bad = first < 0 || first >= g->size || last < 0 || last >= g->size ||
			   stride == 0 || (first < last && stride < 0) ||
			   (first > last && stride > 0);
		for (long r = first; !bad && (stride > 0 ? r <= last : r >= last); r += stride) {
			if (*count == g->size)
				bad = true; /* somebody is named twice */
			else
				(*ranks)[(*count)++] = (int)r;
		}
		if (bad) {
			heap_free(*ranks);
			return MPI_ERR_RANK;
		}
	}
	return MPI_SUCCESS;
}

int group_range_incl(const struct group *g, int n, int ranges[][3], struct group **out)
{
	int *ranks, count, rc = expand_ranges(g, n, ranges, &ranks, &count);
	if (rc)
		return rc;
	rc = group_incl(g, count, ranks, out);
	heap_free(ranks);
	return rc;
}

int group_range_excl(const struct group *g, int n, int ranges[][3], struct group **out)
{
	int *ranks, count, rc = expand_ranges(g, n, ranges, &ranks, &count);
	if (rc)
		return rc;
	rc = group_excl(g, count, ranks, out);
	heap_free(ranks);
	return rc;
}
