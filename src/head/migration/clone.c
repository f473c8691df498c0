// SPDX-License-Identifier: BSD-3-Clause
/* A replica that has died comes back: a copy of one that lives is made while that one runs, on
 * another node (docs/redundancy.md, "Clones"). It is a migration whose source stays: the same
 * rounds, the same stop, the same GO. Nothing is lost when it comes to nothing: the rank has one
 * replica less for longer, and it is tried again. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "head/head_private.h"
#include "head/migration/migrate_private.h"

#define CLONE_SOON	0.05
#define CLONE_AGAIN	1.0
#define CLONE_AGAIN_MAX 30.0

/* ---- where to ---- */

/* The user has said where to, whoever else is there. */
static bool insisted(const struct head *h, uint32_t process)
{
	const struct node *n = &h->node_set.nodes[h->moves.clones.homes[process]];

	return h->moves.clones.insists[process] &&
	       (n->state == NODE_SPARE || n->state == NODE_READY) &&
	       n->leave.state != LEAVE_PLANNED;
}

/* A process that is to come: as a copy of which other one, where to, and in whose place (a shadow
 * that jumps; LIVING_NOWHERE: nobody's). */
struct clone_plan {
	uint32_t process, source, to, replaces;
};

bool clone_places(const struct head *h, struct clone_places *p)
{
	uint32_t count = h->node_set.count;

	p->nodes = calloc(count, sizeof(*p->nodes));
	p->there = calloc(count, sizeof(*p->there));
	if (!p->nodes || !p->there)
		return false;
	for (uint32_t k = 0; k < count; k++) {
		const struct node *n = &h->node_set.nodes[k];
		p->nodes[k] = (struct place_node){
		    .slots = n->slots,
		    .spare = n->state == NODE_SPARE,
		    .lost = n->state != NODE_SPARE && n->state != NODE_READY,
		    .unusable = n->leave.state == LEAVE_PLANNED || n->unusable || n->warm.unfit[0]};
	}
	for (uint32_t q = 0; q < h->nranks; q++)
		if (!h->view.lost[q])
			p->there[h->node_set.placement.node_of[q]]++;
	return true;
}

void clone_places_fini(struct clone_places *p)
{
	free(p->nodes);
	free(p->there);
}

/* plan: those that come with it. count of nodes: nowhere. */
static uint32_t place_for(const struct head *h, uint32_t process, const struct clone_plan *plan,
			  uint32_t planned)
{
	uint32_t rank = living_rank_of(process, h->view.nranks), count = h->node_set.count, to;
	struct clone_places places;
	bool *beside = calloc(count, sizeof(*beside));
	bool fine = clone_places(h, &places) && beside;

	for (uint32_t p = 0; fine && p < h->nranks; p++)
		if (!h->view.lost[p])
			beside[h->node_set.placement.node_of[p]] |=
			    living_rank_of(p, h->view.nranks) == rank;
	for (uint32_t i = 0; fine && i < planned; i++)
		places.there[plan[i].to] += plan[i].replaces == LIVING_NOWHERE;
	to = insisted(h, process) ? h->moves.clones.homes[process]
	     : fine		  ? place_replica(places.nodes, places.there, beside, count,
						  h->moves.clones.homes[process])
				  : count;
	clone_places_fini(&places);
	free(beside);
	return to;
}

/* ---- moves of jobs with replicas ---- */

hale_status_t clone_refuse_moves(const struct head *h, bool by_files, struct error *err)
{
	if (h->shadows.of)
		return error_set(err, HALE_ERR_UNSUPPORTED,
				 "processes of a job with --shadows don't move in this version");
	if (h->degree > 1 && by_files)
		return error_set(
		    err, HALE_ERR_UNSUPPORTED,
		    "processes of a job with %s don't move by files in this version; leave out "
		    "--via-files",
		    h->view.audits ? "--audit" : "replicas");
	return HALE_OK;
}

/* Another living replica of its rank will be there. */
static bool meets_mate(const struct head *h, uint32_t process, uint32_t node)
{
	for (uint32_t s = 0; s < h->degree; s++) {
		uint32_t p = living_process(&h->view, living_rank_of(process, h->view.nranks), s);

		if (p != process && !h->view.lost[p] && h->moves.now->coming[p] == node)
			return true;
	}
	return false;
}

static uint32_t load_to_come(const struct head *h, uint32_t node)
{
	uint32_t load = 0;

	for (uint32_t p = 0; p < h->nranks; p++)
		load += h->moves.now->coming[p] == node;
	return load;
}

/* A node without a mate, the least loaded one; where it was to go anyway if there is none. */
static uint32_t apart(const struct head *h, uint32_t process)
{
	uint32_t best = h->moves.now->coming[process];

	if (!meets_mate(h, process, best))
		return best;
	for (uint32_t k = 0; k < h->node_set.count; k++) {
		const struct node *n = &h->node_set.nodes[k];
		uint32_t load = load_to_come(h, k);

		if (k == h->moves.now->from || (n->state != NODE_READY && n->state != NODE_SPARE) ||
		    n->unusable || n->warm.unfit[0] || leave_is_under_way(n->leave.state) ||
		    meets_mate(h, process, k) || (n->slots > 0 && load >= n->slots))
			continue;
		if (meets_mate(h, process, best) || load < load_to_come(h, best))
			best = k;
	}
	return best;
}

void clone_keep_apart(struct head *h)
{
	struct migration *v = h->moves.now;
	uint32_t together = 0;

	for (uint32_t p = 0; p < h->nranks; p++)
		if (h->view.lost[p])
			v->coming[p] = LIVING_NOWHERE;
	for (uint32_t p = 0; p < h->nranks; p++) {
		if (h->view.lost[p] || h->node_set.placement.node_of[p] != v->from)
			continue;
		if (v->to == v->from)
			v->coming[p] = apart(h, p);
		together += meets_mate(h, p, v->coming[p]);
	}
	if (together > 0)
		head_say(h,
			 "note: %u process%s move%s to the node of another replica of %s rank, and "
			 "are lost together with it if that is",
			 together, together > 1 ? "es" : "", together > 1 ? "" : "s",
			 together > 1 ? "their" : "its");
}

void clone_follow_move(struct head *h)
{
	struct migration *v = h->moves.now;
	uint32_t to = v->from;

	for (uint32_t p = 0; p < h->nranks && to == v->from; p++)
		if (v->movers[p].moves)
			to = v->coming[p];
	for (uint32_t p = 0; p < h->nranks; p++)
		if (!v->cloned && h->view.lost[p] && h->node_set.placement.node_of[p] == v->from)
			h->node_set.placement.node_of[p] = h->moves.clones.homes[p] = to;
}

/* ---- turns ---- */

static void turn(void *arg);

static void look_again(struct head *h, double seconds)
{
	loop_timer_set(&h->loop, &h->moves.clones.next, seconds, turn, h);
}

static bool may_begin(const struct head *h)
{
	return h->state == JOB_RUNNING && !h->moves.now && !h->moves.wishes && head_all_ready(h) &&
	       !head_any_finalized(h) && h->ckpt.phase == CKPT_IDLE && h->put_off.count == 0 &&
	       !head_checking(h);
}

static void plan_take(struct head *h, const struct clone_plan *c)
{
	struct migration *v = h->moves.now;

	v->movers[c->process].moves = true;
	v->movers[c->process].source = c->source;
	v->movers[c->process].replaces = c->replaces;
	v->coming[c->process] = c->to;
	v->ranks++;
	/* what goes between the two passes from there to there */
	h->node_set.placement.node_of[c->process] = h->node_set.placement.node_of[c->source];
}

/* Logs are full: nobody else is concerned. The longest one comes first. After a failure all wait
 * anyway, and stop together; so they do when it has come to nothing before. NULL: together. */
static const struct clone_plan *jumps_alone(const struct head *h, const struct clone_plan *plan,
					    uint32_t count)
{
	const struct clone_plan *best = NULL;

	for (uint32_t i = 0; i < count; i++) {
		const struct clone_plan *c = &plan[i];

		if (c->replaces == LIVING_NOWHERE || h->moves.clones.again > 0 ||
		    !shadows_jumps_alone(h, c->replaces))
			return NULL;
		if (!best || h->shadows.of[c->replaces].log_bytes >
				 h->shadows.of[best->replaces].log_bytes)
			best = c;
	}
	return best;
}

static hale_status_t begin(struct head *h, const struct clone_plan *plan, uint32_t count,
			   bool alone, struct error *err)
{
	struct migration *v = migrate_create(h, h->node_set.placement.node_of[plan[0].source]);

	if (!v)
		return error_set(err, HALE_ERR_MEMORY, "out of memory for a clone");
	v->cloned = true;
	v->alone = alone;
	v->to = plan[0].to;
	memcpy(v->coming, h->node_set.placement.node_of, h->nranks * sizeof(*v->coming));
	for (uint32_t p = 0; p < h->nranks; p++)
		if (h->view.lost[p])
			v->coming[p] = LIVING_NOWHERE;
	for (uint32_t i = 0; i < count; i++)
		plan_take(h, &plan[i]);
	snprintf(v->target, sizeof(v->target), "%s", h->node_set.nodes[v->to].name);
	migrate_watch(h);
	node_set_check(&h->node_set, false);
	return HALE_OK;
}

static bool clone_is_due(const struct head *h, uint32_t process)
{
	uint32_t rank = living_rank_of(process, h->view.nranks);
	uint32_t living = living_count(&h->view, rank);

	if (h->view.audits && process != h->moves.clones.only)
		return false;
	return h->view.lost[process] && living > 0 && living < h->moves.clones.wanted[rank];
}

static bool plan_has(const struct clone_plan *plan, uint32_t count, uint32_t source)
{
	for (uint32_t i = 0; i < count; i++)
		if (plan[i].source == source)
			return true;
	return false;
}

static uint32_t where_to(const struct head *h, uint32_t process, const struct clone_plan *plan,
			 uint32_t count)
{
	uint32_t merged = shadows_merged_place(h, process);

	return merged != LIVING_NOWHERE ? merged : place_for(h, process, plan, count);
}

/* All that can come, one of each rank. *broken: some can't, since their sets lack a core for good.
 */
static uint32_t plan_make(const struct head *h, struct clone_plan *plan, bool *broken)
{
	bool returns = h->o->replenish || h->moves.clones.asked;
	uint32_t count = 0;

	for (uint32_t p = 0; p < h->nranks; p++) {
		uint32_t rank = living_rank_of(p, h->view.nranks);
		int leader = living_leader(&h->view, rank);
		struct clone_plan c = {.process = p, .replaces = shadows_jumper(h, p)};

		if (leader < 0)
			continue;
		c.source = living_process(&h->view, rank, (uint32_t)leader);
		if (plan_has(plan, count, c.source))
			continue;
		if (c.replaces != LIVING_NOWHERE) {
			c.to = h->node_set.placement.node_of[c.replaces];
		} else if (!returns || !clone_is_due(h, p) || !shadows_may_return(h, p)) {
			continue;
		} else if (shadows_set_is_broken(h, rank)) {
			*broken = true;
			continue;
		} else {
			c.to = where_to(h, p, plan, count);
		}
		if (c.to < h->node_set.count)
			plan[count++] = c;
	}
	return count;
}

static void turn(void *arg)
{
	struct head *h = arg;
	struct clone_plan *plan = calloc(h->nranks, sizeof(*plan));
	bool begun = false, broken = false;
	uint32_t count = plan && h->state == JOB_RUNNING ? plan_make(h, plan, &broken) : 0;
	struct error err;

	if (count == 0 && broken) {
		shadows_merge(h);
		count = plan_make(h, plan, &broken);
	}
	if (count > 0 && may_begin(h)) { /* one that can't be made is not to be in the way of all */
		const struct clone_plan *one = jumps_alone(h, plan, count);
		bool single = one || h->moves.clones.again > 0;

		begun = begin(h, one ? one : plan, single ? 1 : count, one != NULL, &err) == HALE_OK;
	}
	free(plan);
	if (begun)
		return;
	if (count > 0 && !head_any_finalized(h))
		look_again(h, CLONE_SOON);
	else
		h->moves.clones.asked = false;
}

void clone_soon(struct head *h)
{
	if (h->degree > 1 && (h->o->replenish || h->moves.clones.asked || shadows_any_jumps(h)))
		look_again(h, CLONE_SOON);
}

/* ---- asked for ---- */

/* Processes that a rank may have at the same time. */
static uint32_t degree_most(const struct head *h)
{
	return h->shadows.of ? LIVING_SHADOW_DEGREE : h->degree;
}

static hale_status_t check_asked(const struct head *h, uint32_t rank, struct error *err)
{
	if (h->view.audits)
		return error_set(
		    err, HALE_ERR_UNSUPPORTED,
		    "this job is audited (--audit), and the copies that it has room for "
		    "are those of the audit");
	if (h->degree == 1)
		return error_set(err, HALE_ERR_UNSUPPORTED,
				 "this job was begun without room for replicas: begin it with "
				 "--replicas 2:none, and this raises it when it is to be");
	if (rank >= h->view.nranks)
		return error_set(err, HALE_ERR_ARGUMENT, "the ranks of this job are 0 to %u",
				 h->view.nranks - 1);
	if (h->state != JOB_RUNNING)
		return error_set(err, HALE_ERR_STATE, "the job is about to %s; try again",
				 job_state_over(h->state) ? "end" : "begin");
	return HALE_OK;
}

void clone_drop(struct head *h, uint32_t process)
{
	h->moves.clones.dropped[process] = 1;
	head_save(h);
	node_set_signal(&h->node_set, process, SIGKILL);
}

/* From now on that many: what is too much goes, the highest slots first; what lacks comes. */
static hale_status_t rank_wants(struct head *h, uint32_t rank, uint32_t degree, struct error *err)
{
	uint32_t living = living_count(&h->view, rank);

	for (uint32_t s = h->degree; s-- > 0 && living > degree;) {
		uint32_t p = living_process(&h->view, rank, s);

		if (h->view.lost[p] || h->moves.clones.dropped[p])
			continue;
		clone_drop(h, p);
		living--;
	}
	h->moves.clones.wanted[rank] = (unsigned char)degree;
	for (uint32_t s = 0; s < h->degree; s++) {
		uint32_t p = living_process(&h->view, rank, s);

		if (!clone_is_due(h, p) || place_for(h, p, NULL, 0) < h->node_set.count)
			continue;
		h->moves.clones.wanted[rank] = (unsigned char)living;
		return error_set(err, HALE_ERR_NODE,
				 "no node has room for another replica of rank %u; give the job a "
				 "spare, or say where to: hale clone --rank %u --to NODE",
				 rank, rank);
	}
	return HALE_OK;
}

hale_status_t clone_degree(struct head *h, uint32_t degree, struct error *err)
{
	hale_status_t status = check_asked(h, 0, err);

	if (status == HALE_OK && (degree < 1 || degree > degree_most(h)))
		return error_set(err, HALE_ERR_ARGUMENT,
				 "this job was begun with room for %u processes of each rank: --to "
				 "takes 1 to %u",
				 degree_most(h), degree_most(h));
	for (uint32_t r = 0; status == HALE_OK && r < h->view.nranks; r++)
		status = rank_wants(h, r, degree, err);
	h->moves.clones.asked = true;
	head_save(h);
	clone_soon(h);
	return status;
}

hale_status_t clone_rank(struct head *h, uint32_t rank, const struct node *to, uint32_t *slot,
			 struct error *err)
{
	hale_status_t status = check_asked(h, rank, err);
	uint32_t s = 0;

	if (status != HALE_OK)
		return status;
	while (s < h->degree && living_lives(&h->view, rank, s))
		s++;
	if (s == h->degree || living_count(&h->view, rank) == degree_most(h))
		return error_set(err, HALE_ERR_STATE,
				 "rank %u runs in %u processes already, and the job has room for "
				 "no more",
				 rank, h->degree);
	*slot = s;
	s = living_process(&h->view, rank, s);
	if (to) {
		h->moves.clones.homes[s] = to->index;
		h->moves.clones.insists[s] = 1;
	}
	if (to && !insisted(h, s))
		return error_set(err, HALE_ERR_NODE, "node %s takes no process now", to->name);
	status = rank_wants(h, rank, living_count(&h->view, rank) + 1, err);
	h->moves.clones.asked = true;
	head_save(h);
	clone_soon(h);
	return status;
}

/* ---- what happens ---- */

uint32_t clone_mover(const struct head *h, uint32_t process)
{
	const struct migration *v = h->moves.now;

	for (uint32_t p = 0; v && v->cloned && p < h->nranks; p++)
		if (v->movers[p].moves && v->movers[p].source == process)
			return p;
	return process;
}

static void copy_goes(struct head *h, uint32_t process)
{
	struct mover *m = &h->moves.now->movers[process];
	struct node_set_rank *k = &h->node_set.ranks[process];

	head_rank_reset(h, process, -1);
	k->met = k->initialized = k->mpi = true;
	k->finalized = k->halted = k->spawning = false;
	m->moved = true;
	h->moves.clones.insists[process] = h->moves.clones.dropped[process] = 0;
	living_return(&h->view, process);
	shadows_lives(h, process);
	node_set_echo_returned(&h->node_set, process, m->position);
}

/* The copies are their processes from now on, and a shadow that has jumped is not needed any more:
 * all hear of both in one view. */
void clone_goes(struct head *h)
{
	struct migration *v = h->moves.now;
	bool any = false;

	for (uint32_t p = 0; p < h->nranks; p++)
		if (v->movers[p].moves)
			copy_goes(h, p);
	for (uint32_t p = 0; p < h->nranks; p++) {
		uint32_t before = v->movers[p].moves ? v->movers[p].replaces : LIVING_NOWHERE;

		if (before == LIVING_NOWHERE)
			continue;
		any = true;
		if (v->alone) /* until its main knows of the copy (clone_done) */
			continue;
		shadows_stop(h, before);
		v->movers[before].resumed = true;
	}
	if (any)
		head_view_changed(h);
}

/* All that its main decides its shadow knows, and perhaps the copy does not. */
void clone_source_lost(struct head *h, uint32_t process)
{
	const struct migration *v = h->moves.now;

	if (!v || !v->alone || v->phase != RELEASING || v->movers[process].resumed)
		return;
	for (uint32_t p = 0; p < h->nranks; p++)
		if (v->movers[p].moves && v->movers[p].source == process && !h->view.lost[p])
			shadows_stop(h, p);
}

void clone_stays(struct head *h)
{
	struct migration *v = h->moves.now;

	for (uint32_t p = 0; p < h->nranks; p++) {
		if (!v->movers[p].moves)
			continue;
		if (v->movers[p].replaces != LIVING_NOWHERE)
			head_say(h, "rank %u: its shadow does not jump yet: %s",
				 living_rank_of(p, h->view.nranks), v->why);
		else
			head_say(h, "rank %u: replica %u does not come back yet: %s",
				 living_rank_of(p, h->view.nranks),
				 living_slot_of(p, h->view.nranks), v->why);
		h->node_set.placement.node_of[p] = h->moves.clones.homes[p];
	}
	h->moves.clones.again = h->moves.clones.again > 0 ? h->moves.clones.again * 2 : CLONE_AGAIN;
	if (h->moves.clones.again > CLONE_AGAIN_MAX)
		h->moves.clones.again = CLONE_AGAIN_MAX;
	if (h->o->replenish || h->moves.clones.asked || shadows_any_jumps(h))
		look_again(h, h->moves.clones.again);
}

static void copy_say(struct head *h, uint32_t process, const struct report_clone *c)
{
	const struct mover *m = &h->moves.now->movers[process];
	char took[16], stood[16], sent[24], same[24];

	units_show_seconds(c->precopy_seconds + c->downtime_seconds, took);
	units_show_seconds(c->downtime_seconds, stood);
	if (m->replaces != LIVING_NOWHERE)
		head_say(
		    h,
		    "rank %u: its shadow has jumped, by %s from its main and %s that it had; it "
		    "took %s, and %s stood still for %s",
		    c->rank, units_show_bytes(m->bytes, sent), units_show_bytes(m->same, same),
		    took, h->moves.now->alone ? "its main alone" : "the program", stood);
	else
		head_say(
		    h,
		    "rank %u: replica %u is back, on node %s, as a copy of replica %u; it took "
		    "%s, and the program stood still for %s",
		    c->rank, c->slot, c->to, living_slot_of(m->source, h->view.nranks), took,
		    stood);
}

/* By a head that has died before it had written down that all is over. */
static bool was_told(const struct head *h, const struct report_clone *c)
{
	for (size_t i = 0; i < h->report.clone_count; i++) {
		const struct report_clone *o = &h->report.clones[i];
		double apart = o->at_seconds - c->at_seconds;

		if (o->rank == c->rank && o->slot == c->slot && apart > -0.01 && apart < 0.01)
			return true;
	}
	return false;
}

static void copy_done(struct head *h, uint32_t process, double now)
{
	const struct migration *v = h->moves.now;
	const struct mover *m = &v->movers[process];
	struct json_out j;
	struct report_clone c = {
	    .rank = living_rank_of(process, h->view.nranks),
	    .slot = living_slot_of(process, h->view.nranks),
	    .bytes = m->bytes,
	    .same_bytes = m->same,
	    .precopy_seconds = v->stopped_at - v->began,
	    .quiesce_seconds = v->quiet_at - v->stopped_at,
	    .clone_seconds = v->gone_at - v->quiet_at,
	    .resume_seconds = now - v->gone_at,
	    .downtime_seconds = now - v->stopped_at,
	    .at_seconds = v->began - h->job_began,
	    .vulnerable_seconds =
		m->replaces == LIVING_NOWHERE ? now - h->moves.clones.died_at[process] : 0,
	};

	if (v->alone) {
		c.precopy_seconds = now - v->began - v->pause;
		c.downtime_seconds = v->pause;
	}
	snprintf(c.from, sizeof(c.from), "%s", node_set_node_of(&h->node_set, m->source)->name);
	snprintf(c.to, sizeof(c.to), "%s", h->node_set.nodes[v->coming[process]].name);
	if (!h->view.audits && !was_told(h, &c)) { /* visits tell of theirs */
		report_add_clone(&h->report, &c);
		record_begin(&j, "replica cloned");
		report_print_clone(&c, &j);
		record_end(&h->files.record, &j);
		copy_say(h, process, &c);
	}
	head_replica_returned(h, process, &c);
}

void clone_done(struct head *h)
{
	const struct migration *v = h->moves.now;
	double now = clock_seconds();

	for (uint32_t p = 0; v->alone && p < h->nranks; p++)
		if (v->movers[p].moves && !h->view.lost[v->movers[p].replaces])
			shadows_stop(h, v->movers[p].replaces);
	for (uint32_t p = 0; p < h->nranks; p++)
		if (v->movers[p].moves)
			copy_done(h, p, now);
	h->moves.clones.again = 0;
	h->ckpt.chain.broken = true; /* its rank may have another leader, whose image is the next */
	head_view_changed(h);
	clone_soon(h);
}

void clone_lost_one(struct head *h)
{
	struct migration *v = h->moves.now;

	if (!v)
		return;
	if (v->phase < GOING) {
		migrate_give_up(h, "another process has died meanwhile");
		return;
	}
	for (uint32_t p = 0; v->alone && p < h->nranks; p++)
		if (v->movers[p].moves &&
		    (h->view.lost[p] || h->view.lost[v->movers[p].source])) {
			migrate_alone_failed(h, "a process of its rank has died meanwhile");
			return;
		}
	if (v->phase == RELEASING)
		migrate_over_if_resumed(h);
}

void clone_end(struct head *h)
{
	loop_timer_clear(&h->loop, &h->moves.clones.next);
}
