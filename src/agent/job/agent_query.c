/* SPDX-License-Identifier: BSD-3-Clause */
/* What any part of the agent may ask of it, and what any part says to the head. */
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "agent/agent_private.h"
#include "node/living.h"

void agent_send(struct agent *a, const struct message *m)
{
	durable_session_send(&a->link, m);
}

void agent_failed(struct agent *a, const struct error *err)
{
	agent_send(a, &(struct message){
			  .type = MSG_FAILED, .value = (int32_t)err->code, .text = err->text});
}

bool agent_lease_holds(const struct agent *a)
{
	return !supervisor_over(&a->supervisor) && lease_holds(&a->lease.held, lease_clock());
}

/* ---- what the supervisor need not hold any more ---- */

void agent_drop_later(struct agent *a, enum supervisor_kind kind, uint64_t key)
{
	if (a->drops.count == a->drops.cap) {
		size_t cap = a->drops.cap ? 2 * a->drops.cap : 16;
		struct agent_drop *more = realloc(a->drops.list, cap * sizeof(*more));

		if (!more) /* it is held for longer than it need be */
			return;
		a->drops.list = more;
		a->drops.cap = cap;
	}
	a->drops.list[a->drops.count++] = (struct agent_drop){kind, key};
}

void agent_drop_not(struct agent *a, enum supervisor_kind kind, uint64_t key)
{
	for (size_t i = a->drops.count; i-- > 0;)
		if (a->drops.list[i].kind == kind && a->drops.list[i].key == key)
			a->drops.list[i] = a->drops.list[--a->drops.count];
}

/* ---- which ranks are here ---- */

bool agent_has(const struct agent *a, uint32_t rank)
{
	return a->view.node_of && rank < a->setup.nranks && a->view.node_of[rank] == a->setup.node;
}

struct mailbox *agent_mailbox(const struct agent *a, uint32_t rank)
{
	return segment_mailbox(a->view.segment, rank);
}

bool agent_moves_in(const struct agent *a, uint32_t rank)
{
	const struct agent_move *v = &a->move;

	return v->id && !v->went && rank < a->setup.nranks && v->coming.node_of &&
	       v->coming.node_of[rank] == a->setup.node && !agent_has(a, rank);
}

bool agent_is_copy(const struct agent *a, uint32_t rank)
{
	const struct agent_move *v = &a->move;

	return agent_moves_in(a, rank) ||
	       (v->id && v->went && agent_has(a, rank) && v->old.node_of[rank] != a->setup.node);
}

bool agent_is_cloned(const struct agent *a, uint32_t rank)
{
	const struct agent_move *v = &a->move;

	return v->id && !v->went && a->view.node_of[rank] == LIVING_NOWHERE && v->coming.node_of &&
	       v->coming.node_of[rank] != LIVING_NOWHERE;
}

uint32_t agent_move_source(const struct agent *a, uint32_t rank)
{
	uint32_t ranks = a->setup.nranks / a->setup.degree;

	if (!agent_is_cloned(a, rank))
		return rank;
	for (uint32_t p = living_rank_of(rank, ranks); p < a->setup.nranks; p += ranks)
		if (a->view.node_of[p] != LIVING_NOWHERE)
			return p;
	return rank;
}

bool agent_moves_out(const struct agent *a, uint32_t rank)
{
	const struct agent_move *v = &a->move;

	if (agent_is_cloned(a, rank))
		return agent_has(a, agent_move_source(a, rank));
	return v->id && !v->went && agent_has(a, rank) && v->coming.node_of[rank] != a->setup.node;
}

bool agent_copies_here(const struct agent *a, uint32_t rank)
{
	return agent_moves_in(a, rank) && agent_moves_out(a, rank);
}

bool agent_has_left(const struct agent *a, uint32_t rank)
{
	const struct agent_move *v = &a->move;

	return v->id && v->went && !agent_has(a, rank) && v->old.node_of &&
	       v->old.node_of[rank] == a->setup.node;
}

/* ---- the user's environment ---- */

/* The user's environment, and before it -x: not the agent's, which is a login's on another machine.
 */
const char *agent_variable(const struct agent *a, const char *name)
{
	char *const *const lists[] = {a->setup.exports, a->setup.environ};
	size_t n = strlen(name);

	for (unsigned i = 0; i < ARRAY_LEN(lists); i++)
		for (char *const *e = lists[i]; e && *e; e++)
			if (strncmp(*e, name, n) == 0 && (*e)[n] == '=')
				return (*e)[n + 1] ? *e + n + 1 : NULL;
	return NULL;
}

struct reach_wish agent_reach_wish(const struct agent *a)
{
	bool local = (a->setup.flags & SETUP_LOCAL) != 0;

	return (struct reach_wish){local ? NULL : agent_variable(a, "HALE_NET_DEVICES"),
				   agent_variable(a, "HALE_NET_PORTS")};
}
