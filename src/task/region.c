// SPDX-License-Identifier: BSD-3-Clause
#include "task/region.h"

#include <stdlib.h>
#include <string.h>

/* ---- the treap ---- */

static struct region *region_make(struct region_map *m, uintptr_t from, uintptr_t to)
{
	struct region *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	m->random = m->random * 1664525u + 1013904223u;
	r->priority = m->random;
	r->from = from;
	r->to = to;
	return r;
}

static struct region *treap_merge(struct region *a, struct region *b)
{
	if (!a || !b)
		return a ? a : b;
	if (a->priority > b->priority) {
		a->right = treap_merge(a->right, b);
		return a;
	}
	b->left = treap_merge(a, b->left);
	return b;
}

/* Those that begin below `at` go to *low. */
static void treap_split(struct region *t, uintptr_t at, struct region **low, struct region **high)
{
	if (!t) {
		*low = *high = NULL;
	} else if (t->from < at) {
		treap_split(t->right, at, &t->right, high);
		*low = t;
	} else {
		treap_split(t->left, at, low, &t->left);
		*high = t;
	}
}

static struct region *treap_last(struct region *t)
{
	while (t && t->right)
		t = t->right;
	return t;
}

/* ---- segments ---- */

static bool readers_copy(struct region *to, const struct region *of)
{
	if (!of->nreaders)
		return true;
	to->readers = malloc(of->nreaders * sizeof(struct work *));
	if (!to->readers)
		return false;
	to->room = to->nreaders = of->nreaders;
	memcpy(to->readers, of->readers, of->nreaders * sizeof(struct work *));
	for (uint32_t i = 0; i < to->nreaders; i++)
		work_hold(to->readers[i]);
	return true;
}

static void readers_drop(struct region *r)
{
	for (uint32_t i = 0; i < r->nreaders; i++)
		work_drop(r->readers[i]);
	r->nreaders = 0;
}

static bool readers_add(struct region *r, struct work *w)
{
	uint32_t kept = 0;

	if (r->nreaders && r->readers[r->nreaders - 1] == w)
		return true;
	if (r->nreaders == r->room) {
		/* those that have ended need no mention */
		for (uint32_t i = 0; i < r->nreaders; i++) {
			if (work_is_over(r->readers[i]))
				work_drop(r->readers[i]);
			else
				r->readers[kept++] = r->readers[i];
		}
		r->nreaders = kept;
	}
	if (r->nreaders * 2 >= r->room) {
		uint32_t room = r->room ? r->room * 2 : 4;
		struct work **more = realloc(r->readers, room * sizeof(*more));

		if (!more)
			return false;
		r->readers = more;
		r->room = room;
	}
	work_hold(w);
	r->readers[r->nreaders++] = w;
	return true;
}

static void region_free(struct region *r)
{
	readers_drop(r);
	if (r->writer)
		work_drop(r->writer);
	free(r->readers);
	free(r);
}

/* A segment that holds `at` inside becomes two; the map's order stays. */
static bool cut(struct region_map *m, uintptr_t at)
{
	struct region *low, *high, *r, *rest;

	treap_split(m->root, at, &low, &high);
	r = treap_last(low);
	if (r && r->to > at) {
		rest = region_make(m, at, r->to);
		if (!rest || !readers_copy(rest, r)) {
			free(rest);
			m->root = treap_merge(low, high);
			return false;
		}
		rest->writer = r->writer;
		if (rest->writer)
			work_hold(rest->writer);
		r->to = at;
		high = treap_merge(rest, high);
	}
	m->root = treap_merge(low, high);
	return true;
}

static bool use_one(struct region *r, bool writes, struct work *w, region_after *after, void *arg)
{
	if (r->writer && r->writer != w)
		after(arg, r->writer);
	if (!writes)
		return r->writer == w || readers_add(r, w);
	for (uint32_t i = 0; i < r->nreaders; i++)
		if (r->readers[i] != w)
			after(arg, r->readers[i]);
	readers_drop(r);
	if (r->writer != w) {
		if (r->writer)
			work_drop(r->writer);
		work_hold(w);
		r->writer = w;
	}
	return true;
}

/* All segments of t, which lies in [from, to), and new ones where there is none. */
static bool use_all(struct region_map *m, struct region *t, uintptr_t *at, struct region **made,
		    bool writes, struct work *w, region_after *after, void *arg)
{
	struct region *gap = NULL;

	if (!t)
		return true;
	if (!use_all(m, t->left, at, made, writes, w, after, arg))
		return false;
	if (t->from > *at) {
		gap = region_make(m, *at, t->from);
		if (!gap)
			return false;
		gap->left = *made; /* a list, for now */
		*made = gap;
		if (!use_one(gap, writes, w, after, arg))
			return false;
	}
	*at = t->to;
	return use_one(t, writes, w, after, arg) &&
	       use_all(m, t->right, at, made, writes, w, after, arg);
}

static void insert(struct region_map *m, struct region *r)
{
	struct region *low, *high;

	r->left = r->right = NULL;
	treap_split(m->root, r->from, &low, &high);
	m->root = treap_merge(treap_merge(low, r), high);
}

bool region_use(struct region_map *m, uintptr_t from, uintptr_t to, bool writes, struct work *w,
		region_after *after, void *arg)
{
	struct region *low, *middle, *high, *made = NULL, *next;
	uintptr_t at = from;
	bool ok;

	if (!cut(m, from) || !cut(m, to))
		return false;
	treap_split(m->root, from, &low, &middle);
	treap_split(middle, to, &middle, &high);
	ok = use_all(m, middle, &at, &made, writes, w, after, arg);
	if (ok && at < to) {
		next = region_make(m, at, to);
		ok = next && use_one(next, writes, w, after, arg);
		if (next) {
			next->left = made;
			made = next;
		}
	}
	m->root = treap_merge(treap_merge(low, middle), high);
	for (; made; made = next) {
		next = made->left;
		insert(m, made);
	}
	return ok;
}

static void clear(struct region *t)
{
	if (!t)
		return;
	clear(t->left);
	clear(t->right);
	region_free(t);
}

void region_clear(struct region_map *m)
{
	clear(m->root);
	m->root = NULL;
}
