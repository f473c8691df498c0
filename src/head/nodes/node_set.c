/* SPDX-License-Identifier: BSD-3-Clause */
#include "head/nodes/node_set.h"
#include "node/living.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "head/nodes/node_set_private.h"

#define FLUSH_SECONDS 1.0

const char *node_state_name(node_state_t state)
{
	static const char *const names[] = {"STARTING", "READY", "SPARE", "LOST"};

	return names[state];
}

void node_send(struct node *n, const struct message *m)
{
	if (n->state != NODE_LOST)
		session_send(&n->session, m);
}

leave_action_t node_leave_event(struct node *n, leave_event_t event)
{
	struct leave_step step = leave_step(n->leave.state, event);

	n->leave.state = step.next;
	return step.action;
}

static void send_all(struct node_set *c, const struct message *m)
{
	if (c->abandoned)
		return;
	for (uint32_t k = 0; k < c->count; k++)
		if (node_usable(&c->nodes[k]))
			node_send(&c->nodes[k], m);
}

static struct node *node_of(struct node_set *c, uint32_t rank)
{
	return &c->nodes[c->placement.node_of[rank]];
}

const struct node *node_set_node_of(const struct node_set *c, uint32_t rank)
{
	return &c->nodes[c->placement.node_of[rank]];
}

uint32_t node_set_ranks_on(const struct node_set *c, const struct node *n)
{
	uint32_t count = 0;

	for (uint32_t r = 0; r < c->nranks; r++)
		count += c->placement.node_of[r] == n->index;
	return n->state == NODE_LOST ? 0 : count;
}

/* Several nodes on one machine share its cores. */
uint32_t node_set_cores(const struct node_set *c)
{
	uint32_t cores = 0;

	for (uint32_t k = 0; k < c->count; k++)
		if (c->nodes[k].state == NODE_READY && !(c->nodes[k].local && k > 0))
			cores += c->nodes[k].cores;
	return cores ? cores : 1;
}

bool node_set_present(const struct node_set *c, uint32_t rank)
{
	return c->ranks[rank].spawning || c->ranks[rank].pid > 0;
}

uint32_t node_set_alive(const struct node_set *c)
{
	uint32_t alive = 0;

	for (uint32_t r = 0; r < c->nranks; r++)
		alive += node_set_present(c, r);
	return alive;
}

bool node_set_usable(const struct node_set *c)
{
	for (uint32_t k = 0; k < c->count; k++)
		if (node_usable(&c->nodes[k]))
			return true;
	return false;
}

/* ---- layout and start ---- */

static hale_status_t repair(struct node_set *c, struct place_node *nodes, bool leave,
			    struct error *err)
{
	for (uint32_t k = 0; k < c->count; k++) {
		const struct node *n = &c->nodes[k];

		nodes[k] = (struct place_node){.slots = n->slots,
					       .spare = n->state == NODE_SPARE,
					       .lost = n->state == NODE_LOST ||
						       (leave && n->leave.state == LEAVE_PLANNED),
					       .unusable = n->unusable || n->warm.unfit[0]};
	}
	return placement_repair(&c->placement, c->nranks, nodes, c->count, err);
}

/* Rather to a node that should be left than nowhere. */
static hale_status_t replace(struct node_set *c, struct error *err)
{
	struct place_node *nodes = calloc(c->count, sizeof(*nodes));
	bool leave = true;
	hale_status_t status;

	if (!nodes)
		return error_set(err, HALE_ERR_MEMORY, "out of memory");
	status = repair(c, nodes, leave, err);
	if (status != HALE_OK) {
		leave = false;
		status = repair(c, nodes, leave, err);
	}
	for (uint32_t k = 0; k < c->count; k++) {
		struct node *n = &c->nodes[k];

		if (n->state == NODE_SPARE && !nodes[k].spare)
			n->state = NODE_READY;
		else if (n->state == NODE_READY && n->leave.state == LEAVE_PLANNED && leave)
			n->state = NODE_SPARE;
		node_leave_event(n, LEAVE_LAID_OUT);
	}
	free(nodes);
	return status;
}

hale_status_t node_set_layout(struct node_set *c, uint32_t generation, const unsigned char *absent,
			      struct error *err)
{
	size_t len = c->nranks * sizeof(*c->placement.node_of);
	struct message m = {.type = MSG_LAYOUT, .id = generation, .len = len};
	hale_status_t status = replace(c, err);
	uint32_t *node_of = status == HALE_OK ? malloc(len) : NULL;

	if (status != HALE_OK)
		return status;
	if (!node_of)
		return error_set(err, HALE_ERR_MEMORY, "out of memory for %u ranks", c->nranks);
	for (uint32_t r = 0; r < c->nranks; r++)
		node_of[r] = absent && absent[r] ? LIVING_NOWHERE : c->placement.node_of[r];
	m.bytes = node_of;
	c->generation = generation;
	c->laid_out = true;
	c->handler.laying_out(c->handler.arg);
	send_all(c, &m);
	free(node_of);
	return HALE_OK;
}

/* ---- ranks that move ---- */

void node_set_tell(struct node_set *c, uint32_t node, const struct message *m)
{
	node_send(&c->nodes[node], m);
}

void node_set_tell_all(struct node_set *c, const struct message *m)
{
	send_all(c, m);
}

/* slots 0: nobody has said how many ranks it is for. */
static hale_status_t to_one(const struct node_set *c, uint32_t from, uint32_t to, uint32_t *node_of,
			    struct error *err)
{
	const struct node *n = &c->nodes[to];
	uint32_t more = node_set_ranks_on(c, &c->nodes[from]), there = node_set_ranks_on(c, n);

	if (!node_usable(n))
		return error_set(err, HALE_ERR_NODE, "node %s is lost", n->name);
	if (n->slots && there + more > n->slots)
		return error_set(err, HALE_ERR_NODE,
				 "node %s is full: it has %u slots and %u ranks, and %u would come",
				 n->name, n->slots, there, more);
	for (uint32_t r = 0; r < c->nranks; r++)
		if (node_of[r] == from)
			node_of[r] = to;
	return HALE_OK;
}

bool node_set_has_place(const struct node_set *c, uint32_t from, bool others)
{
	uint64_t spares = 0, room = 0, leaving = 0, ranks = node_set_ranks_on(c, &c->nodes[from]),
		 theirs = 0;

	for (uint32_t k = 0; k < c->count; k++) {
		const struct node *n = &c->nodes[k];
		uint32_t there = node_set_ranks_on(c, n);

		if (k == from || !node_usable(n))
			continue;
		if (there > 0 && leave_is_under_way(n->leave.state)) {
			leaving += others;
			theirs += others ? there : 0;
		} else if (!n->unusable && !n->warm.unfit[0]) {
			spares += n->state == NODE_SPARE;
			room += n->state == NODE_READY && n->slots > there ? n->slots - there : 0;
		}
	}
	/* where spares don't do for all of them, nobody knows yet who gets one */
	return spares > leaving || room >= ranks + (spares < leaving ? theirs : 0);
}

hale_status_t node_set_elsewhere(const struct node_set *c, uint32_t from, uint32_t to,
				 uint32_t *node_of, struct error *err)
{
	struct placement p = {.nodes = c->placement.nodes, .node_of = node_of};
	struct place_node *nodes;
	bool fresh = false;
	hale_status_t status;

	memcpy(node_of, c->placement.node_of, c->nranks * sizeof(*node_of));
	if (to != from)
		return to_one(c, from, to, node_of, err);
	nodes = calloc(c->count, sizeof(*nodes));
	if (!nodes)
		return error_set(err, HALE_ERR_MEMORY, "out of memory");
	for (uint32_t k = 0; k < c->count; k++) {
		const struct node *n = &c->nodes[k];

		nodes[k] = (struct place_node){.slots = n->slots,
					       .spare = n->state == NODE_SPARE,
					       .lost = !node_usable(n) || k == from,
					       .unusable = n->unusable || n->warm.unfit[0] ||
							   leave_is_under_way(n->leave.state)};
		fresh = fresh || (nodes[k].spare && !nodes[k].unusable && !n->leave.vacated);
	}
	/* whoever has just been left was so for a reason */
	for (uint32_t k = 0; fresh && k < c->count; k++)
		nodes[k].unusable = nodes[k].unusable || c->nodes[k].leave.vacated;
	status = placement_repair(&p, c->nranks, nodes, c->count, err);
	free(nodes);
	return status == HALE_OK ? status
				 : error_set(err, HALE_ERR_NODE,
					     "there is no other node for the ranks of node %s",
					     c->nodes[from].name);
}

void node_set_moved(struct node_set *c, uint32_t rank, pid_t pid, const uint64_t position[3])
{
	struct node_set_rank *r = &c->ranks[rank];

	c->placement.node_of[rank] = c->coming[rank];
	r->pid = r->group = r->member = pid;
	if (rank == 0)
		stdin_spool_open(&c->stdin_spool, position[0]);
}

void node_set_move_over(struct node_set *c, uint32_t from)
{
	for (uint32_t k = 0; k < c->count; k++) {
		struct node *n = &c->nodes[k];

		if (n->state == NODE_SPARE && node_set_ranks_on(c, n) > 0) {
			n->state = NODE_READY;
			n->leave.vacated = false;
		} else if (k == from && n->state == NODE_READY && node_set_ranks_on(c, n) == 0) {
			n->state = NODE_SPARE;
			n->leave.vacated = true;
		}
	}
}

static void say_order(struct node_set *c, uint32_t rank)
{
	const struct node_set_order *o = &c->ranks[rank].order;
	struct message m = {.type = MSG_SPAWN, .rank = rank, .text = o->program, .name = o->sink};

	memcpy(m.position, o->position, sizeof(m.position));
	node_send(node_of(c, rank), &m);
}

void node_set_order_done(struct node_set_rank *r)
{
	free(r->order.program);
	free(r->order.sink);
	r->order = (struct node_set_order){0};
}

void node_set_order_again(struct node *n)
{
	struct node_set *c = n->node_set;

	for (uint32_t r = 0; c->laid_out && r < c->nranks; r++) {
		if (!c->ranks[r].order.refused || c->placement.node_of[r] != n->index)
			continue;
		c->ranks[r].order.refused = false;
		say_order(c, r);
	}
}

void node_set_forget_orders(struct node_set *c)
{
	for (uint32_t r = 0; r < c->nranks; r++) {
		if (!c->ranks[r].order.refused)
			continue;
		node_set_order_done(&c->ranks[r]);
		c->ranks[r].spawning = false;
	}
}

void node_set_spawn(struct node_set *c, uint32_t rank, const char *program, const char *sink,
		    const uint64_t position[3])
{
	struct node_set_rank *r = &c->ranks[rank];
	struct error err;

	r->spawning = true;
	r->met = r->initialized = r->finalized = r->mpi = false;
	r->pid = r->group = r->member = 0;
	node_set_order_done(r);
	r->order.program = strdup(program);
	r->order.sink = strdup(sink ? sink : "");
	memcpy(r->order.position, position, sizeof(r->order.position));
	for (int i = 0; i < 2; i++)
		output_position_begin(&r->out[i], position[i + 1]);
	if (r->order.program && r->order.sink) {
		say_order(c, rank);
	} else {
		error_set(&err, HALE_ERR_MEMORY, "out of memory");
		r->spawning = false;
		c->handler.not_spawned(c->handler.arg, rank, &err);
	}
	if (rank == 0)
		stdin_spool_open(&c->stdin_spool, position[0]);
}

/* ---- signals ---- */

static void signal_one(struct node_set *c, uint32_t rank, int sig, enum signal_to to)
{
	node_send(node_of(c, rank),
		  &(struct message){.type = MSG_SIGNAL, .rank = rank, .value = sig, .flags = to});
}

void node_set_signal(struct node_set *c, uint32_t rank, int sig)
{
	signal_one(c, rank, sig, SIGNAL_GROUP);
}

void node_set_signal_program(struct node_set *c, uint32_t rank, int sig)
{
	signal_one(c, rank, sig, SIGNAL_PROGRAM);
}

void node_set_signal_all(struct node_set *c, int sig)
{
	send_all(c, &(struct message){.type = MSG_SIGNAL, .rank = MESSAGE_ALL, .value = sig});
}

void node_set_let_go(struct node_set *c)
{
	send_all(c, &(struct message){.type = MSG_LET_GO});
}

void node_set_pause(struct node_set *c, bool pause)
{
	send_all(c, &(struct message){.type = MSG_PAUSE, .value = pause});
	for (uint32_t k = 0; k < c->count; k++) {
		session_flush(&c->nodes[k].session, FLUSH_SECONDS);
		if (!pause)
			node_set_lease_extend(&c->nodes[k]);
	}
}

/* ---- questions that all nodes answer ---- */

void node_set_clear(struct node_set *c, bool patient)
{
	c->asks.clearing = true;
	for (uint32_t k = 0; k < c->count; k++)
		c->nodes[k].asks.clearing = node_usable(&c->nodes[k]);
	send_all(c, &(struct message){.type = MSG_CLEAR, .id = c->generation, .value = patient});
	node_set_answers(c);
}

void node_set_check(struct node_set *c, bool files)
{
	c->asks.checking = true;
	c->asks.check = (struct error){HALE_OK, ""};
	c->asks.check_bytes = 0;
	for (uint32_t k = 0; k < c->count; k++)
		c->nodes[k].asks.checking = node_usable(&c->nodes[k]);
	send_all(c, &(struct message){
			.type = MSG_CHECK, .id = ++c->asks.last_check, .value = files});
	node_set_answers(c);
}

uint32_t node_set_look(struct node_set *c, bool processes)
{
	struct node_set_look *l = calloc(1, sizeof(*l)), **end = &c->looks.list;

	if (!l)
		return 0;
	l->id = ++c->looks.last;
	while (*end)
		end = &(*end)->next;
	*end = l;
	send_all(c, &(struct message){.type = MSG_LOOK, .id = l->id, .value = processes});
	return l->id;
}

/* ---- checkpoints, faults ---- */

static void node_set_halted_clear(struct node_set *c)
{
	for (uint32_t r = 0; r < c->nranks; r++)
		c->ranks[r].halted = false;
}

void node_set_checkpoint(struct node_set *c, uint32_t id, uint32_t base, uint32_t flags,
			 const char *folder)
{
	for (uint32_t k = 0; k < c->count; k++) {
		c->nodes[k].ckpt.bytes = 0;
		c->nodes[k].ckpt.idle = c->nodes[k].ckpt.disk = false;
		c->nodes[k].ckpt.silent = MESSAGE_ALL;
	}
	node_set_halted_clear(c);
	send_all(c, &(struct message){
			.type = MSG_CKPT, .id = id, .base = base, .flags = flags, .text = folder});
}

void node_set_checkpoint_on(struct node_set *c, uint32_t id, int stage)
{
	send_all(c, &(struct message){.type = MSG_CKPT_ON, .id = id, .value = stage});
}

void node_set_back(struct node_set *c)
{
	send_all(c, &(struct message){.type = MSG_BACK, .id = c->generation});
}

void node_set_checkpoint_cancel(struct node_set *c, uint32_t id)
{
	node_set_halted_clear(c);
	send_all(c, &(struct message){.type = MSG_CKPT_CANCEL, .id = id});
}

void node_set_checkpoint_over(struct node_set *c)
{
	node_set_halted_clear(c);
	send_all(c, &(struct message){.type = MSG_CKPT_OVER});
}

void node_set_checkpoint_refuse(struct node_set *c)
{
	send_all(c, &(struct message){.type = MSG_CKPT_REFUSE});
}

uint64_t node_set_checkpoint_bytes(const struct node_set *c, bool *idle, bool *disk)
{
	uint64_t bytes = 0;

	*idle = *disk = false;
	for (uint32_t k = 0; k < c->count; k++) {
		if (!node_usable(&c->nodes[k]))
			continue;
		bytes += c->nodes[k].ckpt.bytes;
		*idle = *idle || c->nodes[k].ckpt.idle;
		*disk = *disk || c->nodes[k].ckpt.disk;
	}
	return bytes;
}

bool node_set_checkpoint_silent(const struct node_set *c, uint32_t *rank)
{
	for (uint32_t k = 0; k < c->count; k++) {
		*rank = c->nodes[k].ckpt.silent;
		if (node_usable(&c->nodes[k]) && *rank != MESSAGE_ALL)
			return true;
	}
	return false;
}

void node_set_task_due(struct node_set *c, uint32_t number, const char *due)
{
	send_all(c, &(struct message){.type = MSG_TASK_DUE, .number = number, .text = due});
}

void node_set_inject(struct node_set *c, uint32_t rank, const char *call, uint64_t count, int sig)
{
	node_send(node_of(c, rank), &(struct message){.type = MSG_INJECT,
						      .rank = rank,
						      .number = count,
						      .flags = (uint32_t)sig,
						      .text = call});
}
