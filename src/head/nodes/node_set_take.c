/* SPDX-License-Identifier: BSD-3-Clause */
/* What agents say. An agent is as trustworthy as the launcher that started it, but its messages may
 * concern ranks that it doesn't have any more, or never had: those are not heard. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "head/nodes/node_set.h"
#include "head/nodes/node_set_private.h"

enum { ACKNOWLEDGE = 65536 };

/* ---- output ---- */

static void acknowledge(struct node *n, int i)
{
	if (n->taken[i] == 0)
		return;
	node_send(n, &(struct message){.type = MSG_TAKEN, .value = i + 1, .number = n->taken[i]});
	n->taken[i] = 0;
}

void node_set_output_writer_drained(void *node_set)
{
	struct node_set *c = node_set;

	for (uint32_t k = 0; k < c->count; k++)
		for (int i = 0; i < 2; i++)
			if (!output_writer_full(&c->out[i]))
				acknowledge(&c->nodes[k], i);
}

static void take_output(struct node *n, const struct message *m)
{
	struct node_set *c = n->node_set;
	int i = m->value - 1;

	if (i != 0 && i != 1)
		return;
	if (c->echoes)
		node_set_echo_take(c, m->rank, i, m->bytes, m->len);
	else
		output_position_take(&c->ranks[m->rank].out[i], m->bytes, m->len);
	n->taken[i] += m->len;
	if (n->taken[i] >= ACKNOWLEDGE && !output_writer_full(&c->out[i]))
		acknowledge(n, i);
}

/* ---- answers ---- */

static bool all_have(const struct node_set *c, size_t flag)
{
	for (uint32_t k = 0; k < c->count; k++)
		if (node_usable(&c->nodes[k]) && *((const bool *)&c->nodes[k] + flag))
			return false;
	return true;
}

static void looks_done(struct node_set *c)
{
	while (c->looks.list) {
		struct node_set_look *l = c->looks.list;

		for (uint32_t k = 0; k < c->count; k++)
			if (node_usable(&c->nodes[k]) && c->nodes[k].asks.looked < l->id)
				return;
		c->looks.list = l->next;
		c->handler.looked(c->handler.arg, l->id, &l->profile, l->progress);
		free(l);
	}
}

void node_set_answers(struct node_set *c)
{
	looks_done(c);
	if (c->asks.checking && all_have(c, offsetof(struct node, asks.checking))) {
		c->asks.checking = false;
		c->handler.checked(c->handler.arg, &c->asks.check, c->asks.check_bytes);
	}
	if (c->asks.clearing && all_have(c, offsetof(struct node, asks.clearing))) {
		c->asks.clearing = false;
		c->handler.cleared(c->handler.arg);
	}
}

/* bytes: a struct profile_process, not aligned. */
static void take_process(struct node_set *c, uint32_t look, const void *bytes)
{
	struct profile_process p;

	memcpy(&p, bytes, sizeof(p));
	if (p.process >= c->nranks)
		return;
	p.inside[METER_NAME_MAX - 1] = '\0';
	c->ranks[p.process].seen = p;
	c->ranks[p.process].seen_by = look;
}

static void take_looked(struct node *n, const struct message *m)
{
	struct profile p;
	size_t rest = m->len - sizeof(p);

	if (m->len < sizeof(p) || rest % sizeof(struct profile_process))
		return;
	memcpy(&p, m->bytes, sizeof(p));
	for (size_t i = 0; i < rest / sizeof(struct profile_process); i++)
		take_process(n->node_set, m->id,
			     (const char *)m->bytes + sizeof(p) +
				 i * sizeof(struct profile_process));
	n->asks.looked = m->id;
	for (struct node_set_look *l = n->node_set->looks.list; l; l = l->next) {
		if (l->id == m->id) {
			profile_merge(&l->profile, &p);
			l->progress += m->number;
		}
	}
	node_set_answers(n->node_set);
}

static void take_checked(struct node *n, const struct message *m)
{
	struct node_set *c = n->node_set;

	if (m->id != c->asks.last_check)
		return;
	n->asks.checking = false;
	node_set_files_take(n, m);
	c->asks.check_bytes += m->number;
	/* a refusal for good counts more than one that may be over soon */
	if (m->value != HALE_OK &&
	    (c->asks.check.code == HALE_OK ||
	     (c->asks.check.code == HALE_ERR_AGAIN && m->value != HALE_ERR_AGAIN)))
		error_set(&c->asks.check, (hale_status_t)m->value, "%s", m->text);
	node_set_answers(c);
}

static void take_cleared(struct node *n, const struct message *m)
{
	if (m->id != n->node_set->generation)
		return;
	n->asks.clearing = false;
	node_set_answers(n->node_set);
}

/* ---- nodes ---- */

/* Who shares cores with whom, so that nobody spins while others wait for a core. */
void node_set_tell_machines(struct node_set *c)
{
	uint32_t *machines = c->count ? calloc(c->count, sizeof(*machines)) : NULL;

	for (uint32_t k = 0; machines && k < c->count; k++)
		machines[k] = c->nodes[k].machine;
	if (machines)
		node_set_tell_all(c, &(struct message){.type = MSG_MACHINES,
						       .bytes = machines,
						       .len = c->count * sizeof(*machines)});
	free(machines);
}

void node_set_all_ready(struct node_set *c)
{
	for (uint32_t k = 0; k < c->count; k++)
		if (c->nodes[k].state == NODE_STARTING)
			return;
	if (!c->announced) {
		c->announced = true;
		node_set_tell_machines(c);
		c->handler.ready(c->handler.arg);
	}
}

static void take_ready(struct node *n, const struct message *m)
{
	struct node_set *c = n->node_set;

	if (n->state != NODE_STARTING)
		return;
	n->state = n->spare ? NODE_SPARE : NODE_READY;
	n->cores = (uint32_t)m->number;
	n->machine = m->id;
	snprintf(n->host, sizeof(n->host), "%s", m->text);
	if (!n->name[0])
		snprintf(n->name, sizeof(n->name), "%s", m->text);
	node_set_all_ready(c);
}

static void take_failed(struct node *n, const struct message *m)
{
	struct error err;

	error_set(&err, (hale_status_t)m->value, "%s", m->text);
	n->node_set->handler.failed(n->node_set->handler.arg, n, &err);
}

/* ---- ranks ---- */

static void take_spawned(struct node *n, const struct message *m)
{
	struct node_set_rank *r = &n->node_set->ranks[m->rank];

	r->spawning = false;
	r->pid = r->group = m->value;
	node_set_order_done(r);
	if (m->flags != 0)
		n->node_set->handler.stood(n->node_set->handler.arg);
}

static void take_not_spawned(struct node *n, const struct message *m)
{
	struct node_set_rank *r = &n->node_set->ranks[m->rank];
	struct error err;

	error_set(&err, (hale_status_t)m->value, "%s", m->text);
	r->spawning = false;
	if (n->node_set->handler.not_spawned(n->node_set->handler.arg, m->rank, &err))
		r->order.refused = r->spawning = r->order.program != NULL;
	else
		node_set_order_done(r);
}

static void take_hello(struct node *n, const struct message *m)
{
	struct node_set_rank *r = &n->node_set->ranks[m->rank];

	r->member = m->value;
	r->met = true;
	r->mpi = (m->flags & HELLO_MPI) != 0;
	/* checkpoints are only taken between Init and Finalize */
	r->initialized = (m->flags & HELLO_RESTORED) != 0;
	n->node_set->handler.hello(n->node_set->handler.arg, m->rank);
}

static void take_packet(struct node *n, const struct message *m)
{
	struct node_set_rank *r = &n->node_set->ranks[m->rank];
	union proto_packet p = {0};

	if (m->len < sizeof(p.type) || m->len > sizeof(p))
		return;
	memcpy(&p, m->bytes, m->len);
	if (m->len != proto_size(p.type))
		return;
	/* the agent has ended their texts, but it is not for us to rely on it */
	if (m->len == sizeof(p.plain))
		p.plain.text[PROTO_TEXT - 1] = '\0';
	else if (m->len == sizeof(p.ckpt))
		p.ckpt.text[PROTO_TEXT - 1] = '\0';
	r->initialized = r->initialized || p.type == PROTO_INITIALIZED;
	r->finalized = r->finalized || p.type == PROTO_FINALIZED;
	if (p.type == PROTO_BECOMES) /* no checkpoint before its MPI_Init */
		r->met = r->initialized = false;
	n->node_set->handler.packet(n->node_set->handler.arg, m->rank, &p);
}

static void take_ended(struct node *n, const struct message *m)
{
	struct node_set *c = n->node_set;

	if (!node_set_present(c, m->rank))
		return;
	c->ranks[m->rank].pid = 0;
	if (c->echoes && m->value == 0)
		node_set_echo_ended(c, m->rank);
	if (m->rank == 0)
		stdin_spool_close(&c->stdin_spool);
	c->handler.ended(c->handler.arg, m->rank, m->value);
}

/* To the nodes that have ranks, but for the one that says so. */
static void relay_address(struct node *n, const struct message *m)
{
	struct node_set *c = n->node_set;

	if (m->id != c->generation)
		return;
	if (c->adopting) {
		node_set_adopt_address(c, m);
		return;
	}
	for (uint32_t k = 0; k < c->count; k++)
		if (&c->nodes[k] != n && node_usable(&c->nodes[k]))
			node_send(&c->nodes[k], m);
}

/* Of a rank that isn't there, or not yet. Words of a copy that is none yet are not the rank's;
 * where it can be reached, others have to know when it becomes the rank. */
static void take_of_copy(struct node *n, const struct message *m)
{
	const struct node_set *c = n->node_set;
	int i = m->value - 1;

	if (!c->coming || c->coming[m->rank] != n->index)
		return;
	if (m->type == MSG_ADDRESS)
		relay_address(n, m);
	if (m->type == MSG_OUTPUT && (i == 0 || i == 1))
		n->taken[i] += m->len;
}

/* The stream between a rank and its copy. */
static void pass_on(struct node *n, const struct message *m)
{
	struct node_set *c = n->node_set;
	uint32_t here, there;

	if (!c->coming || m->rank >= c->nranks)
		return;
	here = c->placement.node_of[m->rank];
	there = c->coming[m->rank];
	if (here != there && (n->index == here || n->index == there))
		node_send(&c->nodes[n->index == here ? there : here], m);
}

/* The end of a copy that is the rank, and whose agent did not know yet that we know. */
static bool is_late_end(struct node *n, const struct message *m)
{
	return m->type == MSG_MOVE_ENDED && m->rank < n->node_set->nranks &&
	       n->node_set->placement.node_of[m->rank] == n->index;
}

static void take_of_rank(struct node *n, const struct message *m)
{
	const struct node_set *c = n->node_set;

	if (m->rank >= c->nranks || !c->laid_out)
		return;
	if (c->placement.node_of[m->rank] != n->index) {
		if (m->type == MSG_PACKET && c->let_go && c->coming[m->rank] == n->index)
			take_packet(n, m); /* it is the rank, though not yet in the view */
		else
			take_of_copy(n, m);
		return;
	}
	switch (m->type) {
	case MSG_SPAWNED:
		take_spawned(n, m);
		break;
	case MSG_NOT_SPAWNED:
		take_not_spawned(n, m);
		break;
	case MSG_HELLO:
		take_hello(n, m);
		break;
	case MSG_PACKET:
		take_packet(n, m);
		break;
	case MSG_ENDED:
		take_ended(n, m);
		break;
	case MSG_HUNG:
		c->handler.hung(c->handler.arg, m->rank, m->value);
		break;
	case MSG_BEAT:
		c->handler.beat(c->handler.arg, m->rank, m->number, m->flags != 0);
		break;
	case MSG_STRAY:
		c->handler.stray(c->handler.arg, m->rank);
		break;
	case MSG_OUTPUT:
		take_output(n, m);
		break;
	default:
		relay_address(n, m);
		break;
	}
}

static void take_progress(struct node *n, const struct message *m)
{
	struct node_set *c = n->node_set;
	const unsigned char *at = m->bytes;
	uint32_t rank;

	n->ckpt.bytes = m->number;
	n->ckpt.idle = m->flags & PROGRESS_IDLE;
	n->ckpt.disk = m->flags & PROGRESS_DISK;
	n->ckpt.silent = m->flags & PROGRESS_SILENT ? m->rank : MESSAGE_ALL;
	for (uint32_t r = 0; c->laid_out && r < c->nranks; r++)
		if (c->placement.node_of[r] == n->index)
			c->ranks[r].halted = false;
	for (size_t i = 0; c->laid_out && i + sizeof(rank) <= m->len; i += sizeof(rank)) {
		memcpy(&rank, at + i, sizeof(rank));
		if (rank < c->nranks && c->placement.node_of[rank] == n->index)
			c->ranks[rank].halted = true;
	}
}

#define CLOSES_SECONDS 1.0

static void bye_late(void *arg)
{
	struct node *n = arg;

	node_set_session_over(n, n->end.why);
}

/* Of a child of this head more is certain when the connection closes: then nothing is left that
 * would kill processes by their ids. */
static void take_bye(struct node *n, const struct message *m)
{
	n->end.bye = true;
	snprintf(n->end.why, sizeof(n->end.why), "%s", m->text);
	if (n->local && n->agent.group > 0 && !n->node_set->adopting) {
		kill(-n->agent.group, SIGKILL); /* the agent is in it, whoever else has ended */
		loop_timer_set(n->node_set->loop, &n->end.closes, CLOSES_SECONDS, bye_late, n);
	} else {
		node_set_session_over(n, m->text);
	}
}

void node_set_take(void *node, const struct message *m)
{
	struct node *n = node;
	struct node_set *c = n->node_set;

	switch (m->type) {
	case MSG_READY:
		take_ready(n, m);
		break;
	case MSG_FAILED:
		take_failed(n, m);
		break;
	case MSG_CLEARED:
		take_cleared(n, m);
		break;
	case MSG_LOOKED:
		take_looked(n, m);
		break;
	case MSG_CHECKED:
		take_checked(n, m);
		break;
	case MSG_PROGRESS:
		take_progress(n, m);
		break;
	case MSG_COPIES_AT:
		snprintf(n->copies.at, sizeof(n->copies.at), "%s", m->text);
		snprintf(n->copies.folder, sizeof(n->copies.folder), "%s", m->name);
		break;
	case MSG_COPIED:
	case MSG_COPIES_HELD:
		c->handler.copied(c->handler.arg, n, m);
		break;
	case MSG_FED:
		stdin_spool_taken(&c->stdin_spool, m->number);
		break;
	case MSG_FEED_CLOSED:
		stdin_spool_close(&c->stdin_spool);
		break;
	case MSG_ASK:
		node_set_lease_asked(n, m->number);
		break;
	case MSG_BYE:
		take_bye(n, m);
		break;
	case MSG_RENEWED:
		c->handler.renewed(c->handler.arg, n, m->text);
		break;
	case MSG_ATTACHED:
	case MSG_SUPERSEDED:
		node_set_adopt_take(n, m);
		break;
	case MSG_MOVE_SPAWNED:
		if (m->flags != 0)
			c->handler.stood(c->handler.arg);
		c->handler.moved(c->handler.arg, n, m);
		break;
	case MSG_MOVE_READY:
	case MSG_MOVE_HELLO:
	case MSG_MOVE_CANCELLED:
	case MSG_MOVE_PROGRAM:
		c->handler.moved(c->handler.arg, n, m);
		break;
	case MSG_MOVE_ENDED:
		if (is_late_end(n, m))
			take_ended(n, m);
		else
			c->handler.moved(c->handler.arg, n, m);
		break;
	case MSG_MOVE_DATA:
	case MSG_MOVE_TAKEN:
	case MSG_MOVE_WANT:
		pass_on(n, m);
		c->handler.moved(c->handler.arg, n, m);
		break;
	case MSG_MAPPED:
	case MSG_WARMED:
		c->handler.warm(c->handler.arg, n, m);
		break;
	case MSG_EVENTS:
	case MSG_EVENTS_TAKEN:
		c->handler.events(c->handler.arg, n, m);
		break;
	default:
		if (m->type >= MSG_SPAWNED)
			take_of_rank(n, m);
		break;
	}
}
