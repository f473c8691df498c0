/* SPDX-License-Identifier: BSD-3-Clause */
#include "policy/view.h"

#include <stdlib.h>
#include <string.h>

#define NO VIEW_STATES /* refused */

/* (event, state) -> next state of the replica that the event names. LOST stays LOST when it dies:
 * a node's loss and the death of a process there are told independently. */
static const unsigned char next_state[VIEW_REPLICA_EVENTS][VIEW_STATES] = {
    /*                     ABSENT         STARTING      LIVE        FROZEN      CLONING      ENDED
       LOST */
    [VIEW_SPAWN] = {VIEW_STARTING, NO, NO, NO, NO, VIEW_STARTING, VIEW_STARTING},
    [VIEW_HELLO] = {NO, VIEW_LIVE, NO, NO, NO, NO, NO},
    [VIEW_EXIT] = {NO, VIEW_ENDED, VIEW_ENDED, NO, NO, NO, NO},
    [VIEW_DIE] = {NO, VIEW_LOST, VIEW_LOST, VIEW_LOST, VIEW_LOST, NO, VIEW_LOST},
    [VIEW_CLONE] = {VIEW_CLONING, NO, NO, NO, NO, NO, VIEW_CLONING},
    [VIEW_CLONED] = {NO, NO, NO, NO, VIEW_LIVE, NO, NO},
    [VIEW_CLONE_FAILED] = {NO, NO, NO, NO, VIEW_LOST, NO, NO},
    [VIEW_MOVE] = {NO, NO, VIEW_LIVE, NO, NO, NO, NO},
    [VIEW_PROMOTE] = {NO, NO, VIEW_LIVE, NO, NO, NO, NO},
};

static const char *const event_names[VIEW_EVENT_KINDS] = {
    "be started",   "join",	      "end",	       "die",	      "become a copy",
    "be a copy",    "give up a copy", "move",	       "be promoted", "lose a node",
    "ready a node", "spare a node",   "change degree", "roll back"};

const char *view_role_name(view_role_t role)
{
	return role == VIEW_MAIN ? "main" : role == VIEW_TWIN ? "twin" : "shadow";
}

const char *view_state_name(view_state_t state)
{
	static const char *const names[VIEW_STATES] = {"absent",  "starting", "live", "frozen",
						       "cloning", "ended",    "lost"};

	return state < VIEW_STATES ? names[state] : "unknown";
}

static uint32_t view_slots(const struct view *v)
{
	return v->degree * v->nranks;
}

static struct view_replica *view_slot_of(struct view *v, uint32_t rank, uint32_t replica)
{
	return &v->slot[view_slot(v, rank, replica)];
}

hale_status_t view_create(struct view *v, uint32_t nranks, uint32_t degree, view_role_t role,
			  uint32_t nodes, const uint32_t *node_of, struct error *err)
{
	*v = (struct view){.number = 1, .nranks = nranks, .degree = degree, .nodes = nodes};
	if (nranks == 0 || nodes == 0 || degree < 1 || degree > VIEW_DEGREE_MAX ||
	    nranks > VIEW_NONE / VIEW_DEGREE_MAX)
		return error_set(err, HALE_ERR_ARGUMENT,
				 "a view of %u ranks, degree %u, on %u nodes", nranks, degree,
				 nodes);
	v->slot = calloc(view_slots(v), sizeof(*v->slot));
	v->node_state = calloc(nodes, sizeof(*v->node_state));
	if (!v->slot || !v->node_state) {
		view_fini(v);
		return error_set(err, HALE_ERR_MEMORY, "out of memory for a view of %u ranks",
				 nranks);
	}
	for (uint32_t s = 0; s < view_slots(v); s++) {
		v->slot[s] = (struct view_replica){.source = VIEW_NONE,
						   .role = s < nranks ? VIEW_MAIN : role};
		if (!node_of)
			continue;
		if (node_of[s] >= nodes) {
			view_fini(v);
			return error_set(err, HALE_ERR_ARGUMENT, "there is no node %u", node_of[s]);
		}
		v->slot[s].node = node_of[s];
		v->slot[s].incarnation = 1;
		v->slot[s].state = VIEW_STARTING;
		v->node_state[node_of[s]] = VIEW_NODE_READY;
	}
	return HALE_OK;
}

hale_status_t view_copy(struct view *to, const struct view *from, struct error *err)
{
	hale_status_t status =
	    view_create(to, from->nranks, from->degree, VIEW_TWIN, from->nodes, NULL, err);

	if (status != HALE_OK)
		return status;
	to->number = from->number;
	memcpy(to->slot, from->slot, view_slots(from) * sizeof(*to->slot));
	memcpy(to->node_state, from->node_state, from->nodes * sizeof(*to->node_state));
	return HALE_OK;
}

void view_fini(struct view *v)
{
	free(v->slot);
	free(v->node_state);
	*v = (struct view){0};
}

/* ---- events of one replica ---- */

/* A copy is made on, and a process is started on, a node that is there. */
static bool view_event_has_node(view_event_kind_t kind)
{
	return kind == VIEW_SPAWN || kind == VIEW_CLONE || kind == VIEW_MOVE ||
	       kind == VIEW_LOSE_NODE || kind == VIEW_READY_NODE || kind == VIEW_SPARE_NODE;
}

static hale_status_t view_refuse(const struct view *v, const struct view_event *e, const char *why,
				 struct error *err)
{
	return error_set(err, HALE_ERR_STATE, "rank %u, replica %u can't %s in view %lu: %s",
			 e->rank, e->replica, event_names[e->kind], (unsigned long)v->number, why);
}

/* What else must hold for the event, beside the table. NULL: it does. */
static const char *view_why_not(const struct view *v, const struct view_event *e)
{
	const struct view_replica *r = view_replica(v, e->rank, e->replica);

	if (e->kind == VIEW_CLONE && (e->source >= v->degree || e->source == e->replica))
		return "its source is no other replica";
	if (e->kind == VIEW_CLONE && view_replica(v, e->rank, e->source)->state != VIEW_LIVE)
		return "its source is not live";
	if (e->kind == VIEW_PROMOTE && r->role != VIEW_SHADOW)
		return "it is no shadow";
	for (uint32_t i = 0; e->kind == VIEW_PROMOTE && i < v->degree; i++)
		if (view_replica(v, e->rank, i)->role == VIEW_MAIN &&
		    view_has_process(view_replica(v, e->rank, i)))
			return "its main is there";
	return NULL;
}

/* The replica no longer is, or becomes, a copy: whom it was copied from goes on. */
static void view_unfreeze_source(struct view *v, uint32_t rank, struct view_replica *copy)
{
	struct view_replica *source;

	if (copy->source == VIEW_NONE)
		return;
	source = view_slot_of(v, rank, copy->source);
	if (source->state == VIEW_FROZEN)
		source->state = VIEW_LIVE;
	copy->source = VIEW_NONE;
}

/* A frozen replica is gone: its copy is whole only if it was said to be, which it was not. */
static void view_lose_copies(struct view *v, uint32_t rank, uint32_t source)
{
	for (uint32_t i = 0; i < v->degree; i++) {
		struct view_replica *r = view_slot_of(v, rank, i);

		if (r->state != VIEW_CLONING || r->source != source)
			continue;
		r->state = VIEW_LOST;
		r->source = VIEW_NONE;
	}
}

static void view_replica_die(struct view *v, uint32_t rank, uint32_t replica)
{
	struct view_replica *r = view_slot_of(v, rank, replica);

	view_unfreeze_source(v, rank, r);
	view_lose_copies(v, rank, replica);
	r->state = VIEW_LOST;
}

static void view_promote(struct view *v, uint32_t rank, struct view_replica *r)
{
	for (uint32_t i = 0; i < v->degree; i++)
		if (view_replica(v, rank, i)->role == VIEW_MAIN)
			view_slot_of(v, rank, i)->role = VIEW_SHADOW;
	r->role = VIEW_MAIN;
}

static hale_status_t view_apply_replica(struct view *v, const struct view_event *e,
					struct error *err)
{
	struct view_replica *r;
	const char *why;
	view_state_t next;

	if (e->rank >= v->nranks || e->replica >= v->degree)
		return error_set(err, HALE_ERR_ARGUMENT, "there is no replica %u of rank %u",
				 e->replica, e->rank);
	r = view_slot_of(v, e->rank, e->replica);
	next = next_state[e->kind][r->state];
	if (next == NO)
		return view_refuse(v, e, view_state_name(r->state), err);
	why = view_why_not(v, e);
	if (why)
		return view_refuse(v, e, why, err);
	if (e->kind == VIEW_DIE) {
		view_replica_die(v, e->rank, e->replica);
		return HALE_OK;
	}
	if (e->kind == VIEW_CLONED || e->kind == VIEW_CLONE_FAILED)
		view_unfreeze_source(v, e->rank, r);
	if (e->kind == VIEW_CLONE) {
		r->source = e->source;
		view_slot_of(v, e->rank, e->source)->state = VIEW_FROZEN;
	}
	if (e->kind == VIEW_PROMOTE)
		view_promote(v, e->rank, r);
	if (view_event_has_node(e->kind)) {
		r->incarnation++;
		r->node = e->node;
		v->node_state[e->node] = VIEW_NODE_READY;
	}
	r->state = next;
	return HALE_OK;
}

/* ---- events of nodes, and of all ---- */

static hale_status_t view_lose_node(struct view *v, uint32_t node)
{
	for (uint32_t s = 0; s < view_slots(v); s++)
		if (v->slot[s].node == node && view_has_process(&v->slot[s]))
			view_replica_die(v, s % v->nranks, s / v->nranks);
	v->node_state[node] = VIEW_NODE_LOST;
	return HALE_OK;
}

static hale_status_t view_spare_node(struct view *v, const struct view_event *e, struct error *err)
{
	if (view_load(v, e->node) > 0)
		return error_set(err, HALE_ERR_STATE, "node %u has ranks, and is no spare",
				 e->node);
	v->node_state[e->node] = VIEW_NODE_SPARE;
	return HALE_OK;
}

/* Dropping replicas must leave somebody of each rank, who is no copy in the making. */
static const char *view_why_not_degree(const struct view *v, uint32_t degree)
{
	for (uint32_t r = 0; r < v->nranks; r++) {
		bool before = false, after = false;

		for (uint32_t i = 0; i < v->degree; i++) {
			const struct view_replica *x = view_replica(v, r, i);
			bool counts = x->role != VIEW_SHADOW &&
				      (view_takes_part(x) || x->state == VIEW_ENDED);

			before |= counts;
			after |= counts && i < degree;
			if (x->state == VIEW_CLONING)
				return "a replica is being cloned";
		}
		if (before && !after)
			return "a rank would lose its only living replica";
	}
	return NULL;
}

static hale_status_t view_set_degree(struct view *v, const struct view_event *e, struct error *err)
{
	const char *why;
	struct view_replica *slot;

	if (e->degree < 1 || e->degree > VIEW_DEGREE_MAX)
		return error_set(err, HALE_ERR_ARGUMENT, "a degree is 1 to %d, not %u",
				 VIEW_DEGREE_MAX, e->degree);
	why = view_why_not_degree(v, e->degree);
	if (why)
		return error_set(err, HALE_ERR_STATE, "the degree can't be %u: %s", e->degree, why);
	slot = realloc(v->slot, (size_t)e->degree * v->nranks * sizeof(*slot));
	if (!slot)
		return error_set(err, HALE_ERR_MEMORY, "out of memory for degree %u", e->degree);
	v->slot = slot;
	for (uint32_t s = view_slots(v); s < e->degree * v->nranks; s++)
		slot[s] = (struct view_replica){.source = VIEW_NONE, .role = e->role};
	v->degree = e->degree;
	return HALE_OK;
}

static hale_status_t view_roll_back(struct view *v)
{
	for (uint32_t s = 0; s < view_slots(v); s++) {
		v->slot[s].state = VIEW_ABSENT;
		v->slot[s].source = VIEW_NONE;
	}
	return HALE_OK;
}

hale_status_t view_apply(struct view *v, const struct view_event *e, struct error *err)
{
	hale_status_t status;

	if (view_event_has_node(e->kind) && e->node >= v->nodes)
		return error_set(err, HALE_ERR_ARGUMENT, "there is no node %u", e->node);
	if (e->kind < VIEW_REPLICA_EVENTS && view_event_has_node(e->kind) &&
	    v->node_state[e->node] == VIEW_NODE_LOST)
		return view_refuse(v, e, "the node is lost", err);
	switch (e->kind) {
	case VIEW_LOSE_NODE:
		status = view_lose_node(v, e->node);
		break;
	case VIEW_READY_NODE:
		v->node_state[e->node] = VIEW_NODE_READY;
		status = HALE_OK;
		break;
	case VIEW_SPARE_NODE:
		status = view_spare_node(v, e, err);
		break;
	case VIEW_SET_DEGREE:
		status = view_set_degree(v, e, err);
		break;
	case VIEW_ROLL_BACK:
		status = view_roll_back(v);
		break;
	default:
		status = view_apply_replica(v, e, err);
	}
	if (status == HALE_OK)
		v->number++;
	return status;
}

/* ---- pure functions that must give the same everywhere ---- */

uint32_t view_leader(const struct view *v, uint32_t rank)
{
	uint32_t leader = VIEW_NONE;

	for (uint32_t i = v->degree; i-- > 0;) {
		const struct view_replica *r = view_replica(v, rank, i);

		if (!view_takes_part(r) || r->role == VIEW_SHADOW)
			continue;
		if (r->role == VIEW_MAIN)
			return i;
		leader = i;
	}
	return leader;
}

uint32_t view_provider(const struct view *v, uint32_t from, uint32_t replica)
{
	for (uint32_t k = 0; k < v->degree; k++) {
		uint32_t i = (replica + k) % v->degree;
		const struct view_replica *r = view_replica(v, from, i);

		if (view_takes_part(r) && r->role != VIEW_SHADOW)
			return i;
	}
	return VIEW_NONE;
}

bool view_rank_survives(const struct view *v, uint32_t rank)
{
	for (uint32_t i = 0; i < v->degree; i++) {
		const struct view_replica *r = view_replica(v, rank, i);

		if (view_takes_part(r) || r->state == VIEW_ENDED || r->state == VIEW_STARTING)
			return true;
	}
	return false;
}

uint32_t view_first_lost(const struct view *v)
{
	for (uint32_t r = 0; r < v->nranks; r++)
		if (!view_rank_survives(v, r))
			return r;
	return VIEW_NONE;
}

uint32_t view_load(const struct view *v, uint32_t node)
{
	uint32_t load = 0;

	for (uint32_t s = 0; s < view_slots(v); s++)
		load += view_has_process(&v->slot[s]) && v->slot[s].node == node;
	return load;
}
