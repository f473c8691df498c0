/* SPDX-License-Identifier: BSD-3-Clause */
/* Maps of who lives where: all layouts of few members, and many of more. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdlib.h>
#include "coll/hier/hier.h"

enum { ALL = 8, MOST = 40, DRAWN = 3000 };

/* What members say: the lowest member that each lives with. */
struct hier_map_placement {
	int n;
	uint64_t place[MOST];
};

typedef void(check_t)(const struct coll_hier *t, const struct hier_map_placement *l);

static void with_map(const struct hier_map_placement *l, check_t *check)
{
	for (int rank = 0; rank < l->n; rank++) {
		struct coll_hier *t = hier_create(l->place, l->n, rank);
		assert_non_null(t);
		assert_int_equal(t->node, t->node_of[rank]);
		check(t, l);
		hier_destroy(t);
	}
}

/* Member i lives where an earlier one does, or on a new node. */
static void every_layout(struct hier_map_placement *l, int i, check_t *check)
{
	if (i == l->n) {
		with_map(l, check);
		return;
	}
	for (int with = 0; with <= i; with++) {
		if (with < i && l->place[with] != (uint64_t)with)
			continue;
		l->place[i] = (uint64_t)with;
		every_layout(l, i + 1, check);
	}
}

static void drawn(struct hier_map_placement *l)
{
	l->n = 2 + rand() % (MOST - 1);
	int rows = 1 + rand() % 8; /* mostly in rows, as launchers place ranks */
	for (int i = 0; i < l->n; i++) {
		int with = i && rand() % rows ? i - 1 : rand() % (i + 1);
		l->place[i] = with < i ? l->place[with] : (uint64_t)i;
	}
}

static void in_many_layouts(check_t *check)
{
	struct hier_map_placement l;
	for (l.n = 1; l.n <= ALL; l.n++)
		every_layout(&l, 0, check);
	srand(1);
	for (int i = 0; i < DRAWN; i++) {
		drawn(&l);
		with_map(&l, check);
	}
}

/* ---- who lives where ---- */

static void check_members(const struct coll_hier *t, const struct hier_map_placement *l)
{
	int least = l->n, most = 0, seen = 0, lowest = -1;
	assert_int_equal(t->n, l->n);
	for (int node = 0; node < t->nodes; node++) {
		int n = hier_members(t, node), before = -1;
		least = n < least ? n : least;
		most = n > most ? n : most;
		seen += n;
		assert_true(n > 0 && hier_member(t, node, 0) > lowest);
		lowest = hier_member(t, node, 0);
		for (int i = 0; i < n; i++) {
			int rank = hier_member(t, node, i);
			assert_true(rank > before);
			assert_int_equal(t->node_of[rank], node);
			assert_int_equal(hier_local(t, rank), i);
			assert_int_equal(t->member[t->index[rank]], rank);
			assert_true(l->place[rank] == l->place[lowest]);
			before = rank;
		}
	}
	assert_int_equal(seen, l->n);
	assert_int_equal(t->least, least);
	assert_int_equal(t->most, most);
}

static void nodes_are_numbered_by_their_lowest_members(void **state)
{
	(void)state;
	in_many_layouts(check_members);
}

static void check_acting(const struct coll_hier *t, const struct hier_map_placement *l)
{
	for (int root = -1; root < l->n; root++) {
		struct hier_team team = {t, root, t->least - 1};
		for (int node = 0; node < t->nodes; node++) {
			int rank = hier_acting(&team, node);
			assert_int_equal(t->node_of[rank], node);
			if (root >= 0 && t->node_of[root] == node)
				assert_int_equal(rank, root);
			else
				assert_int_equal(hier_local(t, rank), t->least - 1);
		}
	}
	for (int node = 0; node < t->nodes; node++)
		for (int rank = 0; rank < l->n; rank++) {
			int holder = hier_holder(t, node, rank);
			assert_int_equal(t->node_of[holder], node);
			if (t->node_of[rank] == node)
				assert_int_equal(holder, rank);
		}
}

static void those_who_act_and_hold_live_on_their_nodes(void **state)
{
	(void)state;
	in_many_layouts(check_acting);
}

/* ---- the tree ---- */

static bool one_node(const struct coll_hier *t, int lo, int hi)
{
	for (int i = lo; i < hi; i++)
		if (t->node_of[i] != t->node_of[lo])
			return false;
	return true;
}

/* The pieces of a subtree are those from *at on. */
static void check_cut(const struct coll_hier *t, int lo, int hi, int *at)
{
	if (one_node(t, lo, hi)) {
		assert_true(*at < t->pieces);
		const struct hier_piece *p = &t->piece[(*at)++];
		assert_int_equal(p->lo, lo);
		assert_int_equal(p->hi, hi);
		assert_int_equal(p->node, t->node_of[lo]);
		return;
	}
	int mid = lo + coll_split(hi - lo);
	check_cut(t, lo, mid, at);
	check_cut(t, mid, hi, at);
}

static void check_pieces(const struct coll_hier *t, const struct hier_map_placement *l)
{
	int at = 0;
	check_cut(t, 0, l->n, &at);
	assert_int_equal(at, t->pieces);
}

static void pieces_are_the_largest_subtrees_on_one_node(void **state)
{
	(void)state;
	in_many_layouts(check_pieces);
}

/* hier_scan.c: what a member combines is there, as a piece of another node or a neighbour's own. */
static void check_prefix(const struct coll_hier *t, int lo, int hi)
{
	for (int p = 0; p < t->pieces; p++)
		if (t->piece[p].lo == lo && t->piece[p].hi == hi && t->piece[p].node != t->node)
			return;
	if (hi - lo == 1) {
		assert_int_equal(t->node_of[lo], t->node);
		return;
	}
	int mid = lo + coll_split(hi - lo);
	check_prefix(t, lo, mid);
	check_prefix(t, mid, hi);
}

static void check_prefixes(const struct coll_hier *t, const struct hier_map_placement *l)
{
	for (int i = 0; i < hier_members(t, t->node); i++) {
		int rank = hier_member(t, t->node, i);
		check_prefix(t, 0, rank + 1);
		if (rank) /* exclusive */
			check_prefix(t, 0, rank);
	}
	(void)l;
}

static void scans_need_pieces_and_neighbours_only(void **state)
{
	(void)state;
	in_many_layouts(check_prefixes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(nodes_are_numbered_by_their_lowest_members),
	    cmocka_unit_test(those_who_act_and_hold_live_on_their_nodes),
	    cmocka_unit_test(pieces_are_the_largest_subtrees_on_one_node),
	    cmocka_unit_test(scans_need_pieces_and_neighbours_only),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
