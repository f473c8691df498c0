// SPDX-License-Identifier: BSD-3-Clause
#include "head/shadows.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include "base/base.h"
#include "head/head.h"
#include "head/head_private.h"
#include "head/migration/migrate.h"
#include "head/replicas.h"
#include "node/proto.h"

/* ---- beginning ---- */

/* Slots that every host says it has; 0: some say nothing. */
static uint32_t slots_of_hosts(const struct head *h, uint32_t nodes)
{
	uint32_t least = UINT32_MAX;

	for (uint32_t k = 0; k < h->hosts.count && k < nodes; k++)
		if ((uint32_t)h->hosts.at[k].slots < least)
			least = (uint32_t)h->hosts.at[k].slots;
	return h->hosts.count > 0 ? least : 0;
}

hale_status_t shadows_place(struct head *h, struct placement *p, struct error *err)
{
	struct shadow_layout *l = &h->shadows.layout;
	uint32_t n = (uint32_t)h->o->ranks, nodes = p->nodes > 0 ? p->nodes : 1;
	hale_status_t status = shadow_layout_make(l, n, (uint32_t)h->o->shadows, nodes,
						  slots_of_hosts(h, nodes), SHADOW_MIXED, err);

	if (status != HALE_OK)
		return status;
	if (h->o->jump_at > 0 && l->isolation == SHADOW_TOGETHER)
		return error_set(err, HALE_ERR_UNSUPPORTED,
				 "--jump-at: a shadow can't jump on the node of its main in this "
				 "version; give the job 2 nodes (--nodes 2), or leave it out");
	h->shadows.of = calloc(h->nranks, sizeof(*h->shadows.of));
	if (!h->shadows.of)
		return error_set(err, HALE_ERR_MEMORY, "out of memory for %u shadows", n);
	for (uint32_t r = 0; r < n; r++) {
		p->node_of[r] = l->main_on[r];
		p->node_of[n + r] = l->shadow_on[r];
	}
	h->report.shadows.size = (uint32_t)h->o->shadows;
	h->report.shadows.sets = shadow_set_count(l);
	return HALE_OK;
}

void shadows_fini(struct head *h)
{
	shadow_layout_fini(&h->shadows.layout);
	free(h->shadows.of);
	h->shadows.of = NULL;
}

void shadows_begin(struct head *h)
{
	if (h->shadows.of)
		memset(h->shadows.of, 0, h->nranks * sizeof(*h->shadows.of));
	h->shadows.failures = 0;
	h->shadows.over = false;
}

static void say_isolation(const struct head *h)
{
	const struct shadow_layout *l = &h->shadows.layout;

	if (l->isolation == SHADOW_TOGETHER)
		head_say(h, "note: mains share a node with their shadows: the death of a process is "
			    "survived, the loss of the node is not; give the job 2 nodes");
	else if (l->isolation == SHADOW_PAIRS)
		head_say(h,
			 "note: a node has several mains of a shadowed set; if it is lost, their "
			 "shadows go on together on one core; %u nodes would keep them apart",
			 2 * l->size);
}

void shadows_say_placement(const struct head *h)
{
	const struct shadow_layout *l = &h->shadows.layout;
	uint32_t wanted = shadow_cores(l->nranks, l->size), cores = node_set_cores(&h->node_set);

	say_isolation(h);
	if (h->o->shadow_rate == 0 && h->hosts.count == 0 && cores < wanted)
		head_say(h,
			 "note: %u mains and the shadows of %u set%s want %u cores, and there %s %u: "
			 "they share them, and each shadow is held to %.3g of a core",
			 l->nranks, shadow_set_count(l), shadow_set_count(l) > 1 ? "s" : "", wanted,
			 cores == 1 ? "is" : "are", cores,
			 shadow_rate(wanted, l->size, cores) * 1e-3);
}

/* ---- failures ---- */

void shadows_failed(struct head *h, uint32_t process)
{
	h->shadows.failures++;
}

/* The process leaves the view, and its death is no failure. */
static void shadow_stop(struct head *h, uint32_t process)
{
	h->shadows.of[process].stopped = true;
	living_lose(&h->view, process);
	h->moves.clones.died_at[process] = clock_seconds();
	h->moves.clones.homes[process] = h->node_set.placement.node_of[process];
	node_set_echo_lost(&h->node_set, process);
	node_set_signal(&h->node_set, process, SIGKILL);
}

static void promotion_tell(struct head *h, const struct report_promotion *p)
{
	struct json_out j;
	char behind[24], stop[80] = "";

	report_add_promotion(&h->report, p);
	record_begin(&j, "shadow promoted");
	report_print_promotion(p, &j);
	record_end(&h->files.record, &j);
	if (p->stopped > 0)
		snprintf(stop, sizeof(stop), ", %u other shadow%s of its core stop%s", p->stopped,
			 p->stopped > 1 ? "s" : "", p->stopped > 1 ? "" : "s");
	head_say(h,
		 "rank %u: its shadow, on node %s, goes on as its main, %s of messages behind%s; set %u "
		 "is vulnerable",
		 p->rank, p->to, units_show_bytes(p->log_bytes, behind), stop, p->set);
}

static void shadow_promote(struct head *h, uint32_t rank, uint32_t process)
{
	struct head_shadow *s = &h->shadows.of[process];
	struct report_promotion p = {.rank = rank,
				     .set = h->shadows.layout.set_of[rank],
				     .log_bytes = s->log_bytes,
				     .at_seconds = head_seconds(h)};

	s->promoted = true;
	snprintf(p.from, sizeof(p.from), "%s", node_set_node_of(&h->node_set, rank)->name);
	snprintf(p.to, sizeof(p.to), "%s", node_set_node_of(&h->node_set, process)->name);
	for (uint32_t q = 0;; q++) {
		q = shadow_stops(&h->shadows.layout, &h->view, rank, q);
		if (q >= h->nranks)
			break;
		shadow_stop(h, q);
		p.stopped++;
	}
	promotion_tell(h, &p);
}

void shadows_settle(struct head *h)
{
	for (uint32_t r = 0; h->shadows.of && r < h->view.nranks; r++) {
		int slot = living_leader(&h->view, r);
		uint32_t process = living_process(&h->view, r, slot > 0 ? (uint32_t)slot : 0);

		if (slot > 0 && !h->shadows.of[process].promoted)
			shadow_promote(h, r, process);
	}
}

/* ---- coming back, and jumps ---- */

static bool all_live(const struct head *h)
{
	for (uint32_t p = 0; p < h->nranks; p++)
		if (h->view.lost[p])
			return false;
	return true;
}

void shadows_returned(struct head *h, uint32_t process, const struct report_clone *c)
{
	struct head_shadow *s;
	struct json_out j;

	if (!h->shadows.of)
		return;
	s = &h->shadows.of[process];
	struct report_jump jump = {.rank = c->rank,
				   .bytes = c->bytes,
				   .log_bytes = s->jump_log_bytes,
				   .seconds = c->precopy_seconds + c->downtime_seconds,
				   .pause_seconds = c->downtime_seconds,
				   .at_seconds = c->at_seconds};

	snprintf(jump.why, sizeof(jump.why), "%s", s->jumps ? s->jumps : "rejuvenation");
	report_add_jump(&h->report, &jump);
	record_begin(&j, "shadow jumped");
	report_print_jump(&jump, &j);
	record_end(&h->files.record, &j);
	for (uint32_t slot = 0; slot < h->degree; slot++)
		h->shadows.of[living_process(&h->view, c->rank, slot)] = (struct head_shadow){0};
	if (all_live(h))
		h->shadows.failures = 0;
}

static bool may_jump(const struct head *h, uint32_t process)
{
	return h->state == JOB_RUNNING && !h->moves.now && !h->shadows.over &&
	       !h->view.lost[process] && strcmp(shadows_role(h, process), "shadow") == 0 &&
	       head_all_ready(h) && !head_any_finalized(h);
}

static void shadow_jump(struct head *h, uint32_t process, const char *why)
{
	struct head_shadow *s = &h->shadows.of[process];

	s->jumps = why;
	s->jump_log_bytes = s->log_bytes;
	shadow_stop(h, process);
}

void shadows_heard(struct head *h, uint32_t process, const struct proto_shadow *say)
{
	struct head_shadow *s;
	char size[24];

	if (!h->shadows.of || h->view.lost[process])
		return;
	s = &h->shadows.of[process];
	s->log_bytes = say->log_bytes;
	s->cpu_ns = say->cpu_ns;
	s->said_at = clock_seconds();
	if (s->first_at == 0) {
		s->first_at = s->said_at;
		s->cpu_first_ns = say->cpu_ns;
	}
	if (!say->jump || !may_jump(h, process))
		return;
	head_say(h, "rank %u: the log of its shadow has %s; it jumps",
		 living_rank_of(process, h->view.nranks), units_show_bytes(say->log_bytes, size));
	shadow_jump(h, process, "log");
	replicas_publish(h);
	clone_soon(h);
}

/* ---- the end ---- */

bool shadows_ended(struct head *h, uint32_t process, int status)
{
	if (!h->shadows.of || !WIFSIGNALED(status) ||
	    !(h->shadows.of[process].stopped || h->shadows.over))
		return false;
	h->ranks[process].exit_status = 0;
	clone_soon(h);
	return true;
}

void shadows_look_for_end(struct head *h)
{
	if (!h->shadows.of || h->shadows.over || h->state != JOB_RUNNING)
		return;
	for (uint32_t r = 0; r < h->view.nranks; r++) {
		int slot = living_leader(&h->view, r);

		if (slot < 0 || !h->ranks[living_process(&h->view, r, (uint32_t)slot)].ended)
			return;
	}
	h->shadows.over = true;
	for (uint32_t p = 0; p < h->nranks; p++)
		if (!h->ranks[p].ended)
			node_set_signal(&h->node_set, p, SIGKILL);
}
