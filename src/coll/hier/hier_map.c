/* SPDX-License-Identifier: BSD-3-Clause */
/* Who lives where, and what that means for the tree of reductions. */
#include "coll/hier/hier.h"

static void number_nodes(struct coll_hier *t, const uint64_t *place)
{
	for (int i = 0; i < t->n; i++) {
		int first = 0;
		while (place[first] != place[i])
			first++;
		t->node_of[i] = first == i ? t->nodes++ : t->node_of[first];
	}
}

static void sort_members(struct coll_hier *t)
{
	int at = 0;
	t->least = t->n;
	for (int node = 0; node < t->nodes; node++) {
		t->start[node] = at;
		for (int i = 0; i < t->n; i++)
			if (t->node_of[i] == node) {
				t->index[i] = at;
				t->member[at++] = i;
			}
		int members = at - t->start[node];
		t->least = members < t->least ? members : t->least;
		t->most = members > t->most ? members : t->most;
	}
	t->start[t->nodes] = at;
}

/* A subtree whose members live on several nodes is made of its two halves' pieces. */
static void cut(struct coll_hier *t, int lo, int hi)
{
	int i = lo + 1;
	while (i < hi && t->node_of[i] == t->node_of[lo])
		i++;
	if (i == hi) {
		t->piece[t->pieces++] = (struct hier_piece){lo, hi, t->node_of[lo]};
		return;
	}
	int mid = lo + coll_split(hi - lo);
	cut(t, lo, mid);
	cut(t, mid, hi);
}

struct coll_hier *hier_create(const uint64_t *place, int n, int rank)
{
	size_t count = (size_t)n;
	struct coll_hier *t = heap_calloc(1, sizeof(*t) + count * sizeof(struct hier_piece) +
						 (4 * count + 1) * sizeof(int));
	if (!t)
		return NULL;
	t->n = n;
	t->piece = (struct hier_piece *)(t + 1);
	t->node_of = (int *)(t->piece + count);
	t->member = t->node_of + count;
	t->index = t->member + count;
	t->start = t->index + count;
	number_nodes(t, place);
	sort_members(t);
	cut(t, 0, n);
	t->node = t->node_of[rank];
	return t;
}

void hier_destroy(struct coll_hier *t)
{
	heap_free(t);
}
