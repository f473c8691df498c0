/* SPDX-License-Identifier: BSD-3-Clause */
/* Single steps, and then every view of a small job that any order of events can lead to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "policy/view.h"

static struct view two_ranks_twice(void)
{
	static const uint32_t node_of[] = {0, 0, 1, 1};
	struct view v;
	struct error err;

	assert_int_equal(view_create(&v, 2, 2, VIEW_TWIN, 3, node_of, &err), HALE_OK);
	for (uint32_t s = 0; s < 4; s++) {
		struct view_event hello = {.kind = VIEW_HELLO, .rank = s % 2, .replica = s / 2};
		assert_int_equal(view_apply(&v, &hello, &err), HALE_OK);
	}
	return v;
}

static hale_status_t applied(struct view *v, struct view_event e)
{
	struct error err;
	uint64_t number = v->number;
	hale_status_t status = view_apply(v, &e, &err);

	assert_int_equal(v->number, number + (status == HALE_OK));
	return status;
}

static void a_new_view_says_where_ranks_start(void **state)
{
	struct view v = two_ranks_twice();
	struct error err;

	assert_int_equal(v.number, 5);
	assert_int_equal(view_slot(&v, 1, 0), 1);
	assert_int_equal(view_replica(&v, 1, 1)->node, 1);
	assert_int_equal(view_replica(&v, 1, 1)->role, VIEW_TWIN);
	assert_int_equal(view_replica(&v, 1, 0)->role, VIEW_MAIN);
	assert_int_equal(view_replica(&v, 1, 0)->incarnation, 1);
	assert_int_equal(v.node_state[1], VIEW_NODE_READY);
	assert_int_equal(v.node_state[2], VIEW_NODE_SPARE);
	assert_int_equal(view_load(&v, 0), 2);
	view_fini(&v);
	assert_int_equal(view_create(&v, 2, VIEW_DEGREE_MAX + 1, VIEW_TWIN, 1, NULL, &err),
			 HALE_ERR_ARGUMENT);
	assert_int_equal(view_create(&v, 0, 1, VIEW_TWIN, 1, NULL, &err), HALE_ERR_ARGUMENT);
	assert_int_equal(view_create(&v, 1, 1, VIEW_TWIN, 1, (uint32_t[]){1}, &err),
			 HALE_ERR_ARGUMENT);
}

static void orphans_get_another_provider(void **state)
{
	struct view v = two_ranks_twice();

	assert_int_equal(view_provider(&v, 0, 0), 0);
	assert_int_equal(view_provider(&v, 0, 1), 1);
	assert_int_equal(view_leader(&v, 0), 0);
	assert_int_equal(
	    applied(&v, (struct view_event){.kind = VIEW_DIE, .rank = 0, .replica = 0}), HALE_OK);
	assert_int_equal(view_provider(&v, 0, 0), 1);
	assert_int_equal(view_provider(&v, 0, 1), 1);
	assert_int_equal(view_provider(&v, 1, 0), 0);
	assert_int_equal(view_leader(&v, 0), 1);
	assert_int_equal(view_first_lost(&v), VIEW_NONE);
	assert_int_equal(
	    applied(&v, (struct view_event){.kind = VIEW_DIE, .rank = 0, .replica = 1}), HALE_OK);
	assert_int_equal(view_provider(&v, 0, 0), VIEW_NONE);
	assert_int_equal(view_leader(&v, 0), VIEW_NONE);
	assert_int_equal(view_first_lost(&v), 0);
	view_fini(&v);
}

static void a_lost_node_takes_its_replicas(void **state)
{
	struct view v = two_ranks_twice();

	assert_int_equal(applied(&v, (struct view_event){.kind = VIEW_LOSE_NODE, .node = 0}),
			 HALE_OK);
	assert_int_equal(view_replica(&v, 0, 0)->state, VIEW_LOST);
	assert_int_equal(view_replica(&v, 1, 0)->state, VIEW_LOST);
	assert_int_equal(view_replica(&v, 1, 1)->state, VIEW_LIVE);
	assert_int_equal(view_load(&v, 0), 0);
	assert_int_equal(view_first_lost(&v), VIEW_NONE);
	/* nothing starts there before it is back */
	struct view_event clone = {
	    .kind = VIEW_CLONE, .rank = 0, .replica = 0, .source = 1, .node = 0};
	assert_int_equal(applied(&v, clone), HALE_ERR_STATE);
	assert_int_equal(applied(&v, (struct view_event){.kind = VIEW_READY_NODE, .node = 0}),
			 HALE_OK);
	assert_int_equal(applied(&v, clone), HALE_OK);
	view_fini(&v);
}

static void a_clone_freezes_its_source_until_it_is_done(void **state)
{
	struct view v = two_ranks_twice();
	struct view_event clone = {
	    .kind = VIEW_CLONE, .rank = 0, .replica = 0, .source = 1, .node = 2};
	struct view_event done = {.kind = VIEW_CLONED, .rank = 0, .replica = 0};

	assert_int_equal(applied(&v, clone), HALE_ERR_STATE); /* it lives */
	applied(&v, (struct view_event){.kind = VIEW_DIE, .rank = 0, .replica = 0});
	assert_int_equal(applied(&v, done), HALE_ERR_STATE);
	assert_int_equal(applied(&v, clone), HALE_OK);
	assert_int_equal(view_replica(&v, 0, 1)->state, VIEW_FROZEN);
	assert_int_equal(view_replica(&v, 0, 0)->state, VIEW_CLONING);
	assert_int_equal(view_replica(&v, 0, 0)->incarnation, 2);
	assert_int_equal(view_provider(&v, 0, 0), 1);
	assert_int_equal(applied(&v, done), HALE_OK);
	assert_int_equal(view_replica(&v, 0, 1)->state, VIEW_LIVE);
	assert_int_equal(view_replica(&v, 0, 0)->state, VIEW_LIVE);
	assert_int_equal(view_replica(&v, 0, 0)->node, 2);
	assert_int_equal(view_provider(&v, 0, 0), 0);
	view_fini(&v);
}

static void a_copy_dies_with_its_source(void **state)
{
	struct view v = two_ranks_twice();

	applied(&v, (struct view_event){.kind = VIEW_DIE, .rank = 0, .replica = 0});
	applied(&v, (struct view_event){.kind = VIEW_CLONE, .rank = 0, .source = 1, .node = 2});
	assert_int_equal(applied(&v, (struct view_event){.kind = VIEW_LOSE_NODE, .node = 1}),
			 HALE_OK);
	assert_int_equal(view_replica(&v, 0, 0)->state, VIEW_LOST);
	assert_int_equal(view_first_lost(&v), 0);
	view_fini(&v);
}

static void the_degree_changes_while_the_job_runs(void **state)
{
	static const uint32_t node_of[] = {0, 0};
	struct view v;
	struct error err;

	assert_int_equal(view_create(&v, 2, 1, VIEW_TWIN, 2, node_of, &err), HALE_OK);
	for (uint32_t r = 0; r < 2; r++)
		applied(&v, (struct view_event){.kind = VIEW_HELLO, .rank = r});
	struct view_event twice = {.kind = VIEW_SET_DEGREE, .degree = 2, .role = VIEW_TWIN};
	assert_int_equal(applied(&v, twice), HALE_OK);
	assert_int_equal(view_replica(&v, 1, 1)->state, VIEW_ABSENT);
	assert_int_equal(view_replica(&v, 1, 0)->state, VIEW_LIVE); /* its slot is what it was */
	for (uint32_t r = 0; r < 2; r++) {
		applied(&v, (struct view_event){
				.kind = VIEW_CLONE, .rank = r, .replica = 1, .node = 1});
		assert_int_equal(
		    applied(&v, (struct view_event){.kind = VIEW_SET_DEGREE, .degree = 1}),
		    HALE_ERR_STATE);
		applied(&v, (struct view_event){.kind = VIEW_CLONED, .rank = r, .replica = 1});
	}
	applied(&v, (struct view_event){.kind = VIEW_DIE, .rank = 0, .replica = 0});
	/* rank 0 lives in its second replica only */
	assert_int_equal(applied(&v, (struct view_event){.kind = VIEW_SET_DEGREE, .degree = 1}),
			 HALE_ERR_STATE);
	applied(&v, (struct view_event){.kind = VIEW_CLONE, .rank = 0, .source = 1, .node = 0});
	applied(&v, (struct view_event){.kind = VIEW_CLONED, .rank = 0});
	assert_int_equal(applied(&v, (struct view_event){.kind = VIEW_SET_DEGREE, .degree = 1}),
			 HALE_OK);
	assert_int_equal(view_load(&v, 1), 0);
	assert_int_equal(applied(&v, (struct view_event){.kind = VIEW_SET_DEGREE, .degree = 0}),
			 HALE_ERR_ARGUMENT);
	view_fini(&v);
}

static void a_shadow_leads_once_it_is_promoted(void **state)
{
	static const uint32_t node_of[] = {0, 1};
	struct view v;
	struct error err;
	struct view_event promote = {.kind = VIEW_PROMOTE, .rank = 0, .replica = 1};

	assert_int_equal(view_create(&v, 1, 2, VIEW_SHADOW, 2, node_of, &err), HALE_OK);
	for (uint32_t i = 0; i < 2; i++)
		applied(&v, (struct view_event){.kind = VIEW_HELLO, .replica = i});
	assert_int_equal(view_provider(&v, 0, 1), 0); /* a shadow's sends are muted */
	assert_int_equal(applied(&v, promote), HALE_ERR_STATE);
	applied(&v, (struct view_event){.kind = VIEW_DIE});
	assert_int_equal(view_leader(&v, 0), VIEW_NONE);
	assert_int_equal(view_first_lost(&v), VIEW_NONE);
	assert_int_equal(applied(&v, promote), HALE_OK);
	assert_int_equal(view_leader(&v, 0), 1);
	assert_int_equal(view_replica(&v, 0, 0)->role, VIEW_SHADOW);
	view_fini(&v);
}

static void after_a_rollback_all_start_again(void **state)
{
	struct view v = two_ranks_twice();

	assert_int_equal(applied(&v, (struct view_event){.kind = VIEW_ROLL_BACK}), HALE_OK);
	assert_int_equal(view_load(&v, 0) + view_load(&v, 1), 0);
	assert_int_equal(applied(&v, (struct view_event){.kind = VIEW_SPAWN, .rank = 1, .node = 2}),
			 HALE_OK);
	assert_int_equal(view_replica(&v, 1, 0)->incarnation, 2);
	assert_int_equal(v.node_state[2], VIEW_NODE_READY);
	assert_int_equal(applied(&v, (struct view_event){.kind = VIEW_SPARE_NODE, .node = 2}),
			 HALE_ERR_STATE);
	assert_int_equal(applied(&v, (struct view_event){.kind = VIEW_MOVE, .rank = 1, .node = 0}),
			 HALE_ERR_STATE); /* it is only starting */
	applied(&v, (struct view_event){.kind = VIEW_HELLO, .rank = 1});
	assert_int_equal(applied(&v, (struct view_event){.kind = VIEW_MOVE, .rank = 1, .node = 0}),
			 HALE_OK);
	assert_int_equal(view_replica(&v, 1, 0)->incarnation, 3);
	view_fini(&v);
}

/* ---- every view that events can lead to ---- */

enum { RANKS = 1, DEGREE = 3, NODES = 2, SLOTS = RANKS * DEGREE, SEEN = 1 << 20 };

/* A view without its number and incarnations, which grow for ever. */
struct shape {
	unsigned char slot[SLOTS][4], node[NODES];
};

static struct shape shape_of(const struct view *v)
{
	struct shape s = {0};

	for (uint32_t i = 0; i < SLOTS; i++) {
		bool has = view_has_process(&v->slot[i]);
		s.slot[i][0] = (unsigned char)v->slot[i].state;
		s.slot[i][1] = has ? (unsigned char)v->slot[i].node : 255;
		s.slot[i][2] = (unsigned char)v->slot[i].source;
		s.slot[i][3] = (unsigned char)v->slot[i].role;
	}
	for (uint32_t k = 0; k < NODES; k++)
		s.node[k] = (unsigned char)v->node_state[k];
	return s;
}

static struct shape *seen; /* [SEEN], open addressing; `used` says which */
static bool *used;
static size_t seen_count;

static bool is_new(const struct shape *s)
{
	uint64_t h = 1469598103934665603u;

	for (size_t i = 0; i < sizeof(*s); i++)
		h = (h ^ ((const unsigned char *)s)[i]) * 1099511628211u;
	for (h %= SEEN; used[h]; h = (h + 1) % SEEN)
		if (memcmp(&seen[h], s, sizeof(*s)) == 0)
			return false;
	assert_true(seen_count < SEEN / 2);
	seen[h] = *s;
	used[h] = true;
	seen_count++;
	return true;
}

static void what_always_holds(const struct view *v)
{
	uint32_t leader = view_leader(v, 0), mains = 0;

	for (uint32_t i = 0; i < DEGREE; i++) {
		const struct view_replica *r = view_replica(v, 0, i);
		uint32_t copies = 0, provider = view_provider(v, 0, i);

		mains += r->role == VIEW_MAIN;
		for (uint32_t j = 0; j < DEGREE; j++)
			copies += view_replica(v, 0, j)->source == i;
		assert_int_equal(r->source != VIEW_NONE, r->state == VIEW_CLONING);
		/* one source, one copy */
		assert_int_equal(copies, r->state == VIEW_FROZEN);
		if (view_has_process(r))
			assert_int_equal(v->node_state[r->node], VIEW_NODE_READY);
		if (r->state == VIEW_STARTING || view_takes_part(r))
			assert_true(r->incarnation > 0);
		/* everybody has a provider exactly when somebody leads */
		assert_int_equal(provider == VIEW_NONE, leader == VIEW_NONE);
		if (provider == VIEW_NONE)
			continue;
		assert_true(view_takes_part(view_replica(v, 0, provider)));
		assert_int_not_equal(view_replica(v, 0, provider)->role, VIEW_SHADOW);
		if (view_takes_part(r) && r->role != VIEW_SHADOW)
			assert_int_equal(provider, i);
	}
	assert_int_equal(mains, 1);
	if (leader != VIEW_NONE)
		assert_int_equal(view_first_lost(v), VIEW_NONE);
}

static void same(const struct view *a, const struct view *b)
{
	assert_int_equal(a->number, b->number);
	assert_int_equal(a->degree, b->degree);
	assert_memory_equal(a->slot, b->slot, SLOTS * sizeof(*a->slot));
	assert_memory_equal(a->node_state, b->node_state, NODES * sizeof(*a->node_state));
}

static void explore(const struct view *from, uint32_t depth);

static void step(const struct view *from, struct view_event e, uint32_t depth)
{
	struct view next;
	struct error err;
	struct shape s;

	assert_int_equal(view_copy(&next, from, &err), HALE_OK);
	if (view_apply(&next, &e, &err) != HALE_OK) {
		assert_true(strlen(err.text) > 10);
		same(&next, from);
		view_fini(&next);
		return;
	}
	assert_int_equal(next.number, from->number + 1);
	for (uint32_t i = 0; i < SLOTS; i++)
		assert_true(next.slot[i].incarnation >= from->slot[i].incarnation);
	what_always_holds(&next);
	s = shape_of(&next);
	if (is_new(&s))
		explore(&next, depth + 1);
	view_fini(&next);
}

static void explore(const struct view *from, uint32_t depth)
{
	assert_true(depth < 100000);
	for (uint32_t k = 0; k < VIEW_EVENT_KINDS; k++) {
		struct view_event e = {.kind = k, .degree = DEGREE, .role = VIEW_TWIN};

		if (k >= VIEW_REPLICA_EVENTS) {
			for (e.node = 0; e.node < NODES; e.node++)
				step(from, e, depth);
			continue;
		}
		for (e.replica = 0; e.replica < DEGREE; e.replica++)
			for (e.source = 0; e.source < DEGREE; e.source++)
				for (e.node = 0; e.node < NODES; e.node++)
					step(from, e, depth);
	}
}

static void every_order_of_events(view_role_t role, size_t at_least)
{
	static const uint32_t node_of[SLOTS] = {0, 1, 0};
	struct view v;
	struct error err;

	seen = calloc(SEEN, sizeof(*seen));
	used = calloc(SEEN, sizeof(*used));
	seen_count = 0;
	assert_true(seen && used);
	assert_int_equal(view_create(&v, RANKS, DEGREE, role, NODES, node_of, &err), HALE_OK);
	what_always_holds(&v);
	explore(&v, 0);
	assert_true(seen_count > at_least);
	view_fini(&v);
	free(seen);
	free(used);
}

static void invariants_hold_after_every_order_of_events_with_twins(void **state)
{
	every_order_of_events(VIEW_TWIN, 1000);
}

static void invariants_hold_after_every_order_of_events_with_shadows(void **state)
{
	every_order_of_events(VIEW_SHADOW, 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_new_view_says_where_ranks_start),
	    cmocka_unit_test(orphans_get_another_provider),
	    cmocka_unit_test(a_lost_node_takes_its_replicas),
	    cmocka_unit_test(a_clone_freezes_its_source_until_it_is_done),
	    cmocka_unit_test(a_copy_dies_with_its_source),
	    cmocka_unit_test(the_degree_changes_while_the_job_runs),
	    cmocka_unit_test(a_shadow_leads_once_it_is_promoted),
	    cmocka_unit_test(after_a_rollback_all_start_again),
	    cmocka_unit_test(invariants_hold_after_every_order_of_events_with_twins),
	    cmocka_unit_test(invariants_hold_after_every_order_of_events_with_shadows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
