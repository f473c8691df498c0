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

/* Of a jump, before there was one. */
#define PAUSE_USUAL   0.1
#define RESTART_USUAL 1.0

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
	uint32_t n = (uint32_t)h->o->ranks, nodes = p->nodes > 0 ? p->nodes : 1, *node_of;
	hale_status_t status = shadow_layout_make(l, n, (uint32_t)h->o->shadows, nodes,
						  slots_of_hosts(h, nodes), SHADOW_MIXED, err);

	if (status != HALE_OK)
		return status;
	node_of = realloc(p->node_of, h->nranks * sizeof(*node_of));
	h->shadows.of = calloc(h->nranks, sizeof(*h->shadows.of));
	h->shadows.merged = calloc(n, 1);
	if (node_of)
		p->node_of = node_of;
	if (!h->shadows.of || !h->shadows.merged || !node_of)
		return error_set(err, HALE_ERR_MEMORY, "out of memory for %u shadows", n);
	for (uint32_t q = 0; q < h->nranks; q++)
		node_of[q] = q < n ? l->main_on[q] : l->shadow_on[q % n];
	h->report.shadows.size = (uint32_t)h->o->shadows;
	h->report.shadows.sets = shadow_set_count(l);
	return HALE_OK;
}

void shadows_fini(struct head *h)
{
	shadow_layout_fini(&h->shadows.layout);
	free(h->shadows.of);
	free(h->shadows.merged);
	h->shadows.of = NULL;
	h->shadows.merged = NULL;
}

static void say_isolation(const struct head *h)
{
	const struct shadow_layout *l = &h->shadows.layout;

	if (l->isolation == SHADOW_TOGETHER)
		head_say(h,
			 "note: mains share a node with their shadows: the death of a process is "
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
		head_say(
		    h,
		    "note: %u mains and the shadows of %u set%s want %u cores, and there %s %u: "
		    "they share them, and each shadow is held to %.3g of a core",
		    l->nranks, shadow_set_count(l), shadow_set_count(l) > 1 ? "s" : "", wanted,
		    cores == 1 ? "is" : "are", cores, shadow_rate(wanted, l->size, cores) * 1e-3);
}

/* ---- failures ---- */

static void shadow_wants_jump(struct head *h, uint32_t process, const char *why)
{
	h->shadows.of[process].jumps = why;
	h->shadows.of[process].jump_log_bytes = h->shadows.of[process].log_bytes;
}

void shadows_failed(struct head *h, uint32_t process)
{
	h->shadows.failures++;
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
	head_say(
	    h,
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
		shadows_stop(h, q);
		p.stopped++;
	}
	promotion_tell(h, &p);
}

/* What the newest copies have cost. */
static double pause_expected(const struct head *h)
{
	const struct report *r = &h->report;

	return r->clone_count > 0 ? r->clones[r->clone_count - 1].downtime_seconds : PAUSE_USUAL;
}

/* Seconds until the promoted shadow is where its main was, by the speed that it had. */
static double catch_up_expected(const struct head_shadow *s)
{
	double passed = s->said_at - s->first_at;
	double rate = passed > 0 ? (double)(s->cpu_ns - s->cpu_first_ns) * 1e-9 / passed : 0;

	return s->first_at > 0 ? shadow_catch_up(clock_seconds() - s->first_at, rate) : 0;
}

/* Of the newest checkpoint: how old it is; negative: there is none. */
static double checkpoint_age(const struct head *h)
{
	for (size_t i = h->report.checkpoint_count; i-- > 0;)
		if (h->report.checkpoints[i].complete)
			return head_seconds(h) - h->report.checkpoints[i].at_seconds;
	return -1;
}

static double restart_expected(const struct head *h)
{
	for (size_t i = h->report.failure_count; i-- > 0;)
		if (h->report.failures[i].restart_seconds > 0)
			return h->report.failures[i].restart_seconds;
	return RESTART_USUAL;
}

bool shadows_rather_go_back(struct head *h, uint32_t process)
{
	uint32_t rank = living_rank_of(process, h->view.nranks);
	double age = checkpoint_age(h);
	char behind[16], old[16];

	if (!h->shadows.of || age < 0 || strcmp(shadows_role(h, process), "main") != 0)
		return false;
	for (uint32_t s = living_slot_of(process, h->view.nranks) + 1; s < h->degree; s++) {
		uint32_t shadow = living_process(&h->view, rank, s);
		double wait = catch_up_expected(&h->shadows.of[shadow]);

		if (h->view.lost[shadow])
			continue;
		if (!shadow_rollback_is_shorter(wait, age, restart_expected(h)))
			return false;
		head_say(h,
			 "rank %u: its main is dead, and its shadow would need some %s to get "
			 "there; from "
			 "the newest checkpoint, which is %s old, all are there sooner",
			 rank, units_show_seconds(wait, behind), units_show_seconds(age, old));
		return true;
	}
	return false;
}

/* Seed 003, 2.4: all others wait for who was promoted, and their shadows get their states
 * meanwhile. */
static void others_jump(struct head *h, uint32_t process)
{
	double wait = catch_up_expected(&h->shadows.of[process]);

	if (!shadow_jump_pays(wait, pause_expected(h)))
		return;
	for (uint32_t p = 0; p < h->nranks; p++)
		if (!h->view.lost[p] && strcmp(shadows_role(h, p), "shadow") == 0)
			shadow_wants_jump(h, p, "failure");
}

void shadows_settle(struct head *h)
{
	uint32_t promoted = h->nranks;

	for (uint32_t r = 0; h->shadows.of && r < h->view.nranks; r++) {
		int slot = living_leader(&h->view, r);
		uint32_t process = living_process(&h->view, r, slot > 0 ? (uint32_t)slot : 0);

		if (slot <= 0 || h->shadows.of[process].promoted)
			continue;
		shadow_promote(h, r, process);
		promoted = process;
	}
	if (promoted < h->nranks)
		others_jump(h, promoted);
}

/* ---- coming back, and jumps ---- */

static bool all_have_shadows(const struct head *h)
{
	for (uint32_t r = 0; r < h->view.nranks; r++)
		if (shadow_is_lacking(&h->view, r))
			return false;
	return true;
}

/* Of that rank: which shadow has jumped; NULL: none, a process was missing. */
static struct head_shadow *jumper_of(struct head *h, uint32_t rank)
{
	for (uint32_t slot = 0; slot < h->degree; slot++) {
		struct head_shadow *s = &h->shadows.of[living_process(&h->view, rank, slot)];

		if (s->jumps)
			return s;
	}
	return NULL;
}

void shadows_returned(struct head *h, uint32_t process, const struct report_clone *c)
{
	struct head_shadow *s;
	struct json_out j;

	if (!h->shadows.of)
		return;
	s = jumper_of(h, c->rank);
	struct report_jump jump = {.rank = c->rank,
				   .bytes = c->bytes,
				   .same_bytes = c->same_bytes,
				   .log_bytes = s ? s->jump_log_bytes : 0,
				   .seconds = c->precopy_seconds + c->downtime_seconds,
				   .pause_seconds = c->downtime_seconds,
				   .at_seconds = c->at_seconds};

	snprintf(jump.why, sizeof(jump.why), "%s", s ? s->jumps : "rejuvenation");
	report_add_jump(&h->report, &jump);
	record_begin(&j, "shadow jumped");
	report_print_jump(&jump, &j);
	record_end(&h->files.record, &j);
	for (uint32_t slot = 0; slot < h->degree; slot++) {
		s = &h->shadows.of[living_process(&h->view, c->rank, slot)];
		*s = (struct head_shadow){.stopped = s->stopped};
	}
	h->shadows.of[process].rests_until =
	    clock_seconds() + shadow_jump_rest(c->downtime_seconds, c->precopy_seconds);
	if (all_have_shadows(h)) {
		h->shadows.failures = 0;
		h->shadows.bare = false;
	}
}

/* Since it spoke last. */
static void speed_add(struct head *h, const struct head_shadow *s, const struct proto_shadow *say)
{
	static const char *const names[] = {"core", "sleep", "weight"};
	struct report_speed *speed = &h->report.shadows.speed;
	uint64_t came = say->came_bytes - s->came_bytes, gone = s->log_bytes + came;

	if (say->held < ARRAY_LEN(names))
		snprintf(speed->held, sizeof(speed->held), "%s", names[say->held]);
	if (say->held == HELD_BY_SLEEP && h->o->shadow_rate == 0 && !h->shadows.said_sleep) {
		h->shadows.said_sleep = true;
		head_say(h, "note: no control group can be made for shadows, so they sleep as much "
			    "as their share asks for, also while cores are free (HALE_CGROUP, "
			    "docs/shadows.md)");
	}
	if (s->first_at == 0 || say->cpu_ns < s->cpu_ns || say->came_bytes < s->came_bytes ||
	    gone < say->log_bytes)
		return;
	speed->seconds += clock_seconds() - s->said_at;
	speed->cpu_seconds += (double)(say->cpu_ns - s->cpu_ns) * 1e-9;
	speed->came_bytes += came;
	speed->eaten_bytes += gone - say->log_bytes;
}

static void full_say(struct head *h, uint32_t process, const struct proto_shadow *say)
{
	char size[24];

	if (!say->full || h->shadows.said_full)
		return;
	h->shadows.said_full = true;
	head_say(h,
		 "rank %u: the log of its shadow is full with %s, and --jump-at off: whoever sends "
		 "to that rank waits for the shadow from now on; let it jump, or raise "
		 "HALE_SHADOW_LOG",
		 living_rank_of(process, h->view.nranks), units_show_bytes(say->log_bytes, size));
}

void shadows_heard(struct head *h, uint32_t process, const struct proto_shadow *say)
{
	struct head_shadow *s;
	char size[24];

	if (!h->shadows.of || h->view.lost[process])
		return;
	s = &h->shadows.of[process];
	speed_add(h, s, say);
	s->log_bytes = say->log_bytes;
	s->came_bytes = say->came_bytes;
	energy_turn(h);
	if (s->first_at > 0 && say->cpu_ns > s->cpu_ns)
		energy_shadow_worked(h, say->cpu_ns - s->cpu_ns);
	s->cpu_ns = say->cpu_ns;
	s->said_at = clock_seconds();
	if (s->first_at == 0) {
		s->first_at = s->said_at;
		s->cpu_first_ns = say->cpu_ns;
	}
	full_say(h, process, say);
	if (!say->jump || s->jumps || s->said_at < s->rests_until || h->state != JOB_RUNNING ||
	    strcmp(shadows_role(h, process), "shadow") != 0)
		return;
	head_say(h, "rank %u: the log of its shadow has %s; it jumps",
		 living_rank_of(process, h->view.nranks), units_show_bytes(say->log_bytes, size));
	shadow_wants_jump(h, process, "log");
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
