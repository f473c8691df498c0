/* SPDX-License-Identifier: BSD-3-Clause */
/* Every operation on groups against a plain reading of the standard, for all groups that can be
 * made of four ranks, in every order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>
#include "mpi/comm/comm.h"

static struct link self = {.rank = 2, .nranks = 8};

const struct link *link_self(void)
{
	return &self;
}

bool object_fortran_used;

int object_to_fortran(struct object *o)
{
	return -1;
}

void object_forget_fortran(struct object *o)
{
	o->f_index = -1;
}

enum { RANKS = 4, MAX_GROUPS = 65 };

/* An oracle's group: ranks in order. */
struct plain {
	int n, rank[2 * RANKS];
};

static struct plain plains[MAX_GROUPS];
static struct group *groups[MAX_GROUPS];
static int count;

static struct group *build(const struct plain *p)
{
	int *world = heap_alloc((size_t)(p->n + 1) * sizeof(int));
	memcpy(world, p->rank, (size_t)p->n * sizeof(int));
	return group_create(world, p->n);
}

static bool has(const struct plain *p, int rank)
{
	for (int i = 0; i < p->n; i++)
		if (p->rank[i] == rank)
			return true;
	return false;
}

static void extend(struct plain p)
{
	plains[count] = p;
	groups[count++] = build(&p);
	for (int r = 0; r < RANKS && p.n < RANKS; r++) {
		if (has(&p, r))
			continue;
		struct plain longer = p;
		longer.rank[longer.n++] = r;
		extend(longer);
	}
}

static int make_all(void **state)
{
	extend((struct plain){.n = 0});
	return count == MAX_GROUPS ? 0 : -1;
}

static int free_all(void **state)
{
	for (int i = 0; i < count; i++)
		group_release(groups[i]);
	size_t in_use, mapped;
	heap_stats(&in_use, &mapped);
	return in_use ? -1 : 0;
}

static void same(const struct group *g, const struct plain *p)
{
	int rank = MPI_UNDEFINED;
	assert_int_equal(g->size, p->n);
	for (int i = 0; i < p->n; i++) {
		assert_int_equal(g->world[i], p->rank[i]);
		if (p->rank[i] == (int)self.rank)
			rank = i;
	}
	assert_int_equal(g->rank, rank);
	if (p->n == 0)
		assert_ptr_equal(g, GROUP_EMPTY);
}

static void union_has_the_first_then_the_new_ones_of_the_second(void **state)
{
	for (int a = 0; a < count; a++) {
		for (int b = 0; b < count; b++) {
			struct plain want = plains[a];
			struct group *got;
			for (int i = 0; i < plains[b].n; i++)
				if (!has(&plains[a], plains[b].rank[i]))
					want.rank[want.n++] = plains[b].rank[i];
			assert_int_equal(group_union(groups[a], groups[b], &got), MPI_SUCCESS);
			same(got, &want);
			group_release(got);
		}
	}
}

static void intersection_and_difference_keep_the_order_of_the_first(void **state)
{
	for (int a = 0; a < count; a++) {
		for (int b = 0; b < count; b++) {
			struct plain both = {.n = 0}, only = {.n = 0};
			struct group *got;
			for (int i = 0; i < plains[a].n; i++) {
				int r = plains[a].rank[i];
				struct plain *to = has(&plains[b], r) ? &both : &only;
				to->rank[to->n++] = r;
			}
			assert_int_equal(group_intersection(groups[a], groups[b], &got),
					 MPI_SUCCESS);
			same(got, &both);
			group_release(got);
			assert_int_equal(group_difference(groups[a], groups[b], &got), MPI_SUCCESS);
			same(got, &only);
			group_release(got);
		}
	}
}

static void compare_tells_identical_similar_and_unequal(void **state)
{
	for (int a = 0; a < count; a++) {
		for (int b = 0; b < count; b++) {
			bool same_set = plains[a].n == plains[b].n;
			bool same_order = same_set;
			for (int i = 0; same_set && i < plains[a].n; i++) {
				same_order = same_order && plains[a].rank[i] == plains[b].rank[i];
				same_set = has(&plains[b], plains[a].rank[i]);
			}
			int want = !same_set ? MPI_UNEQUAL : same_order ? MPI_IDENT : MPI_SIMILAR;
			assert_int_equal(group_compare(groups[a], groups[b]), want);
		}
	}
}

static void translation_finds_the_place_or_none(void **state)
{
	for (int a = 0; a < count; a++) {
		for (int b = 0; b < count; b++) {
			int n = plains[a].n, from[RANKS + 1], to[RANKS + 1];
			for (int i = 0; i < n; i++)
				from[i] = i;
			from[n] = MPI_PROC_NULL;
			assert_int_equal(group_translate(groups[a], n + 1, from, groups[b], to),
					 MPI_SUCCESS);
			assert_int_equal(to[n], MPI_PROC_NULL);
			for (int i = 0; i < n; i++) {
				int want = MPI_UNDEFINED;
				for (int j = 0; j < plains[b].n; j++)
					if (plains[b].rank[j] == plains[a].rank[i])
						want = j;
				assert_int_equal(to[i], want);
			}
			from[0] = n;
			assert_int_equal(group_translate(groups[a], 1, from, groups[b], to),
					 MPI_ERR_RANK);
			from[0] = -1;
			assert_int_equal(group_translate(groups[a], 1, from, groups[b], to),
					 MPI_ERR_RANK);
		}
	}
}

/* Choosing ranks[] out of each group, for all ranks[] that the groups themselves are. */
static void incl_and_excl_choose_by_place(void **state)
{
	for (int a = 0; a < count; a++) {
		for (int c = 0; c < count; c++) {
			const struct plain *choice = &plains[c];
			struct plain in = {.n = 0}, out = {.n = 0};
			struct group *got;
			bool bad = false;
			for (int i = 0; i < choice->n; i++) {
				bad = bad || choice->rank[i] >= plains[a].n;
				if (!bad)
					in.rank[in.n++] = plains[a].rank[choice->rank[i]];
			}
			for (int i = 0; i < plains[a].n; i++)
				if (!has(choice, i))
					out.rank[out.n++] = plains[a].rank[i];
			int rc = group_incl(groups[a], choice->n, choice->rank, &got);
			assert_int_equal(rc, bad ? MPI_ERR_RANK : MPI_SUCCESS);
			if (!rc) {
				same(got, &in);
				group_release(got);
			}
			rc = group_excl(groups[a], choice->n, choice->rank, &got);
			assert_int_equal(rc, bad ? MPI_ERR_RANK : MPI_SUCCESS);
			if (!rc) {
				same(got, &out);
				group_release(got);
			}
		}
	}
}

static void a_rank_named_twice_is_refused(void **state)
{
	int twice[2] = {1, 1};
	struct group *got;
	for (int a = 0; a < count; a++) {
		if (plains[a].n < 2)
			continue;
		assert_int_equal(group_incl(groups[a], 2, twice, &got), MPI_ERR_RANK);
		assert_int_equal(group_excl(groups[a], 2, twice, &got), MPI_ERR_RANK);
	}
}

/* One range over the identity group of size n, for all triplets. */
static void one_range(struct group *g, int n, int first, int last, int stride)
{
	int range[1][3] = {{first, last, stride}};
	struct plain in = {.n = 0}, out = {.n = 0};
	struct group *got;
	bool bad = first < 0 || first >= n || last < 0 || last >= n || stride == 0 ||
		   (first < last && stride < 0) || (first > last && stride > 0);
	for (int r = first; !bad && (stride > 0 ? r <= last : r >= last); r += stride)
		in.rank[in.n++] = r;
	for (int r = 0; r < n; r++)
		if (!has(&in, r))
			out.rank[out.n++] = r;
	int rc = group_range_incl(g, 1, range, &got);
	assert_int_equal(rc, bad ? MPI_ERR_RANK : MPI_SUCCESS);
	if (!rc) {
		same(got, &in);
		group_release(got);
	}
	rc = group_range_excl(g, 1, range, &got);
	assert_int_equal(rc, bad ? MPI_ERR_RANK : MPI_SUCCESS);
	if (!rc) {
		same(got, &out);
		group_release(got);
	}
}

static void ranges_expand_as_the_standard_writes_them(void **state)
{
	enum { N = 7 };
	struct plain p = {.n = N};
	for (int i = 0; i < N; i++)
		p.rank[i] = i;
	struct group *g = build(&p);
	for (int first = -1; first <= N; first++)
		for (int last = -1; last <= N; last++)
			for (int stride = -N - 1; stride <= N + 1; stride++)
				one_range(g, N, first, last, stride);
	int overlap[2][3] = {{0, 4, 2}, {4, 6, 1}}, apart[2][3] = {{6, 5, -1}, {0, 4, 2}};
	struct group *got;
	assert_int_equal(group_range_incl(g, 2, overlap, &got), MPI_ERR_RANK);
	assert_int_equal(group_range_incl(g, 2, apart, &got), MPI_SUCCESS);
	same(got, &(struct plain){5, {6, 5, 0, 2, 4}});
	group_release(got);
	group_release(g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(union_has_the_first_then_the_new_ones_of_the_second),
	    cmocka_unit_test(intersection_and_difference_keep_the_order_of_the_first),
	    cmocka_unit_test(compare_tells_identical_similar_and_unequal),
	    cmocka_unit_test(translation_finds_the_place_or_none),
	    cmocka_unit_test(incl_and_excl_choose_by_place),
	    cmocka_unit_test(a_rank_named_twice_is_refused),
	    cmocka_unit_test(ranges_expand_as_the_standard_writes_them),
	};
	return cmocka_run_group_tests(tests, make_all, free_all);
}
