// SPDX-License-Identifier: BSD-3-Clause
/* Visits of a job with --audit (docs/audit.md):
 *
 *   BETWEEN ─▶ WITNESS ─▶ TWIN ─▶ COMPARES ─ time is over ─▶ SETTLES ─▶ ENDS ─▶ BETWEEN, the next
 *      │          └── a process of the rank dies ──┴─────────────┴────────▲
 *      └─ a rank is on a node that computes wrongly ─▶ COPIES ────────────┘
 *
 * The witness comes first, so that all that the twin is a copy of has been computed once more when
 * the witness is asked. Copies are made by clone.c; a timer looks what is to be done. */
#include "head/audit.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "head/head.h"
#include "head/head_private.h"
#include "head/migration/migrate.h"
#include "head/watch/watch.h"

#define LOOK_SECONDS 0.05
/* A copy that does not come within so long is not waited for. */
#define COPY_SECONDS 120.0
/* By then receivers have compared what the twin has sent, and what has killed one process of a rank
 * has killed the others, too, if it does. */
#define SETTLE_SECONDS 0.5

static void audit_turn(void *arg);

static void look_again(struct head *h)
{
	loop_timer_set(&h->loop, &h->audit.timer, LOOK_SECONDS, audit_turn, h);
}

static void phase_enter(struct head *h, audit_phase_t phase)
{
	h->audit.phase = phase;
	h->audit.phase_began = clock_seconds();
	head_save(h);
}

static const char *node_name(const struct head *h, uint32_t process)
{
	return node_set_node_of(&h->node_set, process)->name;
}

static bool is_alive(const struct head *h, uint32_t process)
{
	return process < h->nranks && !h->view.lost[process];
}

static bool is_visiting(const struct head *h)
{
	return h->audit.phase >= AUDIT_WITNESS && h->audit.phase <= AUDIT_SETTLES;
}

/* ---- where ---- */

hale_status_t audit_place(struct head *h, struct placement *p, struct error *err)
{
	uint32_t n = (uint32_t)h->o->ranks;
	uint32_t *more = realloc(p->node_of, h->nranks * sizeof(*more));

	if (!more)
		return error_set(err, HALE_ERR_MEMORY, "out of memory for %u processes", h->nranks);
	p->node_of = more;
	for (uint32_t q = n; q < h->nranks; q++)
		more[q] = more[q % n];
	return HALE_OK;
}

void audit_say_placement(const struct head *h)
{
	if (h->node_set.count < 3)
		head_say(
		    h,
		    "note: --audit on %u node%s finds wrong processes, but can't tell for certain "
		    "which node is wrong; give the job 3 nodes",
		    h->node_set.count, h->node_set.count > 1 ? "s" : "");
}

/* For a copy that is to be away from these nodes, from the first ones rather than from the last.
 * count of nodes: nowhere. */
static uint32_t node_for(const struct head *h, const uint32_t *away, uint32_t naway)
{
	struct clone_places places;
	uint32_t count = h->node_set.count, to = count;

	if (clone_places(h, &places))
		to = place_apart(places.nodes, places.there, count, away, naway);
	clone_places_fini(&places);
	return to;
}

/* ---- copies ---- */

static void copy_begin(struct head *h, uint32_t process, uint32_t node)
{
	struct clones *c = &h->moves.clones;

	c->homes[process] = node;
	c->insists[process] = 1;
	c->only = process;
	c->wanted[h->audit.rank] = (unsigned char)(living_count(&h->view, h->audit.rank) + 1);
	c->asked = true;
	head_save(h);
	clone_soon(h);
}

static bool may_come(const struct head *h, uint32_t process)
{
	return h->view.lost[process] && h->ranks[process].ended;
}

/* The lowest slot that is free for a copy which is no witness; nranks: none. */
static uint32_t free_process(const struct head *h, uint32_t rank)
{
	for (uint32_t s = 0; s < LIVING_WITNESS; s++)
		if (may_come(h, living_process(&h->view, rank, s)))
			return living_process(&h->view, rank, s);
	return h->nranks;
}

static uint32_t leader_of(const struct head *h, uint32_t rank)
{
	int slot = living_leader(&h->view, rank);

	return living_process(&h->view, rank, slot > 0 ? (uint32_t)slot : 0);
}

/* ---- a visit ---- */

static void visit_name(char to[64], const struct head *h, uint32_t process)
{
	snprintf(to, 64, "%s", node_name(h, process));
}

static bool visit_begin(struct head *h)
{
	struct head_audit *a = &h->audit;
	uint32_t n = h->view.nranks, main = leader_of(h, a->rank), away[2], to;

	a->main = main;
	a->twin = free_process(h, a->rank);
	a->witness = living_process(&h->view, a->rank, LIVING_WITNESS);
	a->guilty = h->nranks;
	a->called = false;
	away[0] = h->node_set.placement.node_of[main];
	to = node_for(h, away, 1);
	if (living_count(&h->view, a->rank) != 1 || a->twin == h->nranks ||
	    !may_come(h, a->witness) || to == h->node_set.count) {
		a->rank = (a->rank + 1) % n; /* it can't be visited now */
		return false;
	}
	a->visit = (struct report_audit){.rank = a->rank, .at_seconds = head_seconds(h)};
	visit_name(a->visit.node, h, main);
	phase_enter(h, AUDIT_WITNESS);
	copy_begin(h, a->witness, to);
	return true;
}

static void twin_begin(struct head *h)
{
	struct head_audit *a = &h->audit;
	uint32_t away[2] = {h->node_set.placement.node_of[a->main],
			    h->node_set.placement.node_of[a->witness]};
	uint32_t to = node_for(h, away, 2);

	visit_name(a->visit.witness, h, a->witness);
	phase_enter(h, AUDIT_TWIN);
	copy_begin(h, a->twin, to < h->node_set.count ? to : away[0]);
}

static void visit_record(struct head *h)
{
	struct json_out j;

	record_begin(&j, "audited");
	report_print_audit(&h->audit.visit, &j);
	record_end(&h->files.record, &j);
	report_add_audit(&h->report, &h->audit.visit);
}

/* From now on the rank runs in one process: the rest is ended as soon as that may be. */
static void rank_settles(struct head *h)
{
	h->moves.clones.only = h->nranks;
	h->moves.clones.wanted[h->audit.rank] = 1;
	phase_enter(h, AUDIT_ENDS);
}

static void visit_close(struct head *h, const char *result)
{
	struct report_audit *v = &h->audit.visit;

	if (h->audit.phase == AUDIT_COMPARES)
		v->seconds = clock_seconds() - h->audit.phase_began;
	h->audit.called = false;
	snprintf(v->result, sizeof(v->result), "%s", result);
	log_info("audit: rank %u on %s: %s after %.1f s", v->rank, v->node, result, v->seconds);
	visit_record(h);
	phase_enter(h, AUDIT_ENDS);
}

static void visit_end(struct head *h, const char *result)
{
	visit_close(h, result);
	rank_settles(h);
}

/* ---- a wrong node ---- */

/* Two processes on different nodes have agreed against the third. If they are on one node it may be
 * that one which is wrong. */
static void node_accuse(struct head *h, uint32_t guilty)
{
	const struct head_audit *a = &h->audit;
	uint32_t at = h->moves.clones.homes[guilty];
	uint32_t one = guilty == a->main ? a->twin : a->main;
	const struct node *n = &h->node_set.nodes[at];
	char why[80];

	if (h->node_set.placement.node_of[one] == h->node_set.placement.node_of[a->witness]) {
		head_say(
		    h,
		    "audit: rank %u: node %s is under suspicion, but the two processes that agree "
		    "are on one node, %s, so nobody knows for certain; give the job 3 nodes",
		    a->rank, n->name, node_name(h, one));
		return;
	}
	snprintf(why, sizeof(why), "an audit of rank %u", a->rank);
	watch_mark(h, at, true, why);
	h->node_set.nodes[at].wrong = true;
	h->audit.stuck = false;
	watch_nodes(h);
	head_say(
	    h,
	    "audit: node %s computes wrongly: nodes %s and %s agree against it on what rank %u "
	    "sends; no process is placed on node %s any more",
	    n->name, node_name(h, one), node_name(h, a->witness), a->rank, n->name);
}

void audit_convicted(struct head *h, uint32_t process)
{
	if (is_visiting(h) && living_rank_of(process, h->view.nranks) == h->audit.rank)
		h->audit.guilty = process;
}

void audit_called(struct head *h, uint32_t rank)
{
	if (is_visiting(h) && rank == h->audit.rank)
		h->audit.called = true;
	head_save(h);
	log_info("audit: rank %u and its twin differ; the witness is asked", rank);
}

static bool is_complete(const struct head *h)
{
	const struct head_audit *a = &h->audit;

	return is_alive(h, a->main) && (a->phase < AUDIT_TWIN || is_alive(h, a->witness)) &&
	       (a->phase != AUDIT_COMPARES || is_alive(h, a->twin));
}

void audit_settle(struct head *h)
{
	struct head_audit *a = &h->audit;

	if (a->phase == AUDIT_COPIES && !is_alive(h, a->main))
		rank_settles(h);
	if (head_any_finalized(h) && !is_alive(h, a->main) && !is_alive(h, a->twin) &&
	    is_alive(h, a->witness))
		clone_drop(h, a->witness); /* peers that could serve it may have ended */
	if (!is_visiting(h) || is_complete(h))
		return;
	a->lost = true;
	if (a->guilty < h->nranks && !is_alive(h, a->guilty)) {
		snprintf(a->visit.wrong, sizeof(a->visit.wrong), "%s",
			 h->node_set.nodes[h->moves.clones.homes[a->guilty]].name);
		node_accuse(h, a->guilty);
		visit_end(h, "differed");
		return;
	}
	visit_end(h, "cut short");
}

/* A rank on a wrong node moves: a copy is made elsewhere, and then the old process ended. False:
 * nobody has to, or can. */
static bool somebody_leaves(struct head *h)
{
	struct head_audit *a = &h->audit;

	for (uint32_t r = 0; r < h->view.nranks; r++) {
		uint32_t old = leader_of(h, r), away = h->node_set.placement.node_of[old], to;

		if (!h->node_set.nodes[away].wrong || h->view.lost[old])
			continue;
		to = node_for(h, &away, 1);
		a->rank = r;
		a->main = old;
		a->twin = free_process(h, r);
		a->witness = h->nranks;
		if (to == h->node_set.count || to == away || a->twin == h->nranks) {
			if (!a->stuck)
				head_say(h,
					 "audit: ranks stay on node %s, which computes wrongly: "
					 "there is "
					 "no other node for them; give the job a spare",
					 h->node_set.nodes[away].name);
			a->stuck = true;
			continue;
		}
		phase_enter(h, AUDIT_COPIES);
		copy_begin(h, a->twin, to);
		return true;
	}
	return false;
}

/* ---- copies that have come ---- */

void audit_returned(struct head *h, uint32_t process, const struct report_clone *c)
{
	struct head_audit *a = &h->audit;

	if (h->o->audit <= 0)
		return;
	if (is_visiting(h)) {
		a->visit.bytes += c->bytes;
		a->visit.pause_seconds += c->downtime_seconds;
	}
	if (a->phase == AUDIT_WITNESS && process == a->witness) {
		twin_begin(h);
	} else if (a->phase == AUDIT_TWIN && process == a->twin) {
		visit_name(a->visit.twin, h, process);
		h->moves.clones.only = h->nranks;
		phase_enter(h, AUDIT_COMPARES);
	} else if (a->phase == AUDIT_COPIES && process == a->twin) {
		head_say(h, "audit: rank %u has left node %s and runs on node %s", a->rank,
			 node_name(h, a->main), node_name(h, process));
		a->main = process; /* which stays */
		rank_settles(h);
	}
}

/* ---- the end of a visit ---- */

static bool may_end_processes(const struct head *h)
{
	return !h->moves.now && h->ckpt.phase == CKPT_IDLE && h->put_off.count == 0;
}

/* The process that the rank goes on in. */
static uint32_t who_stays(const struct head *h)
{
	const struct head_audit *a = &h->audit;

	if (is_alive(h, a->main))
		return a->main;
	return is_alive(h, a->twin) && !h->moves.clones.dropped[a->twin] ? a->twin : a->witness;
}

/* True: there is one only. */
static bool others_end(struct head *h)
{
	uint32_t stays = who_stays(h), left = 0;

	for (uint32_t s = 0; s < h->degree; s++) {
		uint32_t p = living_process(&h->view, h->audit.rank, s);

		if (p == stays || (h->view.lost[p] && h->ranks[p].ended))
			continue;
		left++;
		if (!h->view.lost[p] && !h->moves.clones.dropped[p] && may_end_processes(h))
			clone_drop(h, p);
	}
	return left == 0;
}

/* What it has sent before is compared still, and the witness may be asked. */
static void twin_ends(struct head *h)
{
	struct head_audit *a = &h->audit;

	a->visit.seconds = clock_seconds() - a->phase_began;
	h->moves.clones.only = h->nranks;
	h->moves.clones.wanted[a->rank] = 2;
	phase_enter(h, AUDIT_SETTLES);
	clone_drop(h, a->twin);
}

void audit_job_over(struct head *h)
{
	struct head_audit *a = &h->audit;
	bool agreed = a->phase >= AUDIT_COMPARES && !a->called && h->end.status == 0;

	if (h->o->audit > 0 && is_visiting(h))
		visit_close(h, agreed ? "agreed" : "cut short");
}

static void job_ends(struct head *h)
{
	struct head_audit *a = &h->audit;
	bool visiting = is_visiting(h);

	audit_job_over(h);
	if (visiting || a->phase == AUDIT_COPIES)
		rank_settles(h);
	if (a->phase == AUDIT_ENDS && others_end(h))
		phase_enter(h, AUDIT_BETWEEN);
}

/* A move is wanted: no visit is in its way for long, and a rank that leaves a wrong node does so
 * afterwards, if it is still there. */
static bool way_is_made(struct head *h)
{
	const struct head_audit *a = &h->audit;

	if (!h->moves.wishes || h->moves.now || a->called)
		return false;
	if (is_visiting(h))
		visit_end(h, "cut short");
	else if (a->phase == AUDIT_COPIES)
		rank_settles(h);
	return a->phase == AUDIT_BETWEEN;
}

static void audit_turn(void *arg)
{
	struct head *h = arg;
	struct head_audit *a = &h->audit;
	double passed = clock_seconds() - a->phase_began;

	if (job_state_over(h->state))
		return;
	look_again(h);
	if (h->state != JOB_RUNNING)
		return;
	if (head_any_finalized(h)) {
		job_ends(h);
		return;
	}
	if (way_is_made(h))
		return;
	switch (a->phase) {
	case AUDIT_BETWEEN:
		if (head_all_ready(h) && may_end_processes(h) && !somebody_leaves(h))
			visit_begin(h);
		break;
	case AUDIT_WITNESS:
	case AUDIT_TWIN:
	case AUDIT_COPIES:
		if (passed < COPY_SECONDS || h->moves.now)
			break;
		if (a->phase == AUDIT_COPIES)
			rank_settles(h);
		else
			visit_end(h, "cut short");
		break;
	case AUDIT_COMPARES:
		if (passed >= h->o->audit && !a->called && may_end_processes(h))
			twin_ends(h);
		break;
	case AUDIT_SETTLES:
		if (passed >= SETTLE_SECONDS && !a->called)
			visit_end(h, "agreed");
		break;
	case AUDIT_ENDS:
		if ((a->lost && passed < SETTLE_SECONDS) || !others_end(h))
			break;
		a->rank = (a->rank + 1) % h->view.nranks;
		a->lost = false;
		phase_enter(h, AUDIT_BETWEEN);
		break;
	}
}

/* ---- the job ---- */

void audit_begin(struct head *h)
{
	struct head_audit *a = &h->audit;

	if (h->o->audit <= 0)
		return;
	if (is_visiting(h))
		visit_end(h, "cut short");
	memset(h->moves.clones.wanted, 1, h->view.nranks);
	h->moves.clones.only = h->nranks;
	a->guilty = a->main = a->twin = a->witness = h->nranks;
	a->lost = false;
	phase_enter(h, AUDIT_BETWEEN);
	look_again(h);
}

bool audit_is_busy(const struct head *h)
{
	return h->o->audit > 0 && h->audit.phase != AUDIT_BETWEEN;
}

void audit_follow(struct head *h)
{
	if (h->o->audit <= 0)
		return;
	look_again(h);
	audit_settle(h);
}

void audit_fini(struct head *h)
{
	loop_timer_clear(&h->loop, &h->audit.timer);
}
