/* SPDX-License-Identifier: BSD-3-Clause */
/* Jobs with replicas: a process that dies is a change of view as long as its rank lives in another
 * one (docs/redundancy.md). Which view follows is node/living.h's decision. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include "base/base.h"
#include "head/head.h"
#include "head/head_private.h"
#include "head/replicas.h"
#include "head/migration/migrate.h"
#include "head/watch/watch.h"
#include "launch/rank_list.h"

/* --replicas D:RANKS: others have one process, and room for more. hale restart: as it was. */
static void wanted_at_first(struct head *h)
{
	unsigned char *wanted = h->moves.clones.wanted;
	uint32_t degree = h->o->replicas_first ? (uint32_t)h->o->replicas_first : h->degree;
	const struct store_manifest *m = h->start ? h->start->manifest : NULL;
	struct error err;

	h->moves.clones.asked = false;
	if (m && h->degree > 1 && !h->o->replicas_first) {
		for (uint32_t p = 0; p < h->nranks; p++)
			if (m->parts[p].file[0])
				wanted[living_rank_of(p, h->view.nranks)] =
				    (unsigned char)m->parts[p].replicas;
		return;
	}
	if (h->o->shadows)
		degree = LIVING_SHADOW_DEGREE;
	if (h->o->replicas_of)
		rank_list_parse(h->o->replicas_of, h->view.nranks, wanted, &err);
	else
		memset(wanted, 1, h->view.nranks);
	for (uint32_t r = 0; r < h->view.nranks; r++)
		wanted[r] = wanted[r] ? (unsigned char)degree : 1;
}

bool replicas_init(struct head *h)
{
	h->view = (struct living){.nranks = (uint32_t)h->o->ranks,
				  .degree = h->degree,
				  .shadows = h->o->shadows > 0,
				  .audits = h->o->audit > 0};
	h->view.lost = calloc(h->nranks, 1);
	h->moves.clones.homes = calloc(h->nranks, sizeof(*h->moves.clones.homes));
	h->moves.clones.died_at = calloc(h->nranks, sizeof(*h->moves.clones.died_at));
	h->moves.clones.wanted = calloc(h->view.nranks, 1);
	h->moves.clones.dropped = calloc(h->nranks, 1);
	h->moves.clones.insists = calloc(h->nranks, 1);
	if (!h->view.lost || !h->moves.clones.homes || !h->moves.clones.died_at ||
	    !h->moves.clones.wanted || !h->moves.clones.dropped || !h->moves.clones.insists)
		return false;
	wanted_at_first(h);
	return true;
}

void replicas_fini(struct head *h)
{
	shadows_fini(h);
	audit_fini(h);
	free(h->view.lost);
	free(h->moves.clones.homes);
	free(h->moves.clones.died_at);
	free(h->moves.clones.wanted);
	free(h->moves.clones.dropped);
	free(h->moves.clones.insists);
	h->moves.clones.wanted = h->moves.clones.dropped = h->moves.clones.insists = NULL;
	h->view.lost = NULL;
	h->moves.clones.homes = NULL;
	h->moves.clones.died_at = NULL;
}

/* What ranks read from stdin would have to reach every replica of rank 0. */
hale_status_t replicas_check(const struct head *h, struct error *err)
{
	struct stat st;
	int waiting = 0;
	bool there =
	    fstat(STDIN_FILENO, &st) == 0 &&
	    ((S_ISREG(st.st_mode) && st.st_size > 0) ||
	     (S_ISFIFO(st.st_mode) && ioctl(STDIN_FILENO, FIONREAD, &waiting) == 0 && waiting > 0));

	if (h->degree == 1 || !there)
		return HALE_OK;
	return error_set(
	    err, HALE_ERR_UNSUPPORTED,
	    "--replicas: the job's stdin reaches no rank yet; give the program its input as a "
	    "file by name, and hale < /dev/null");
}

void replicas_begin(struct head *h)
{
	if (h->degree == 1)
		return;
	h->view.number = 0;
	shadows_begin(h, false);
	node_set_echo_begin(&h->node_set);
	memset(h->moves.clones.dropped, 0, h->nranks);
	memset(h->moves.clones.insists, 0, h->nranks);
	wanted_at_first(h);
	audit_begin(h);
	for (uint32_t p = 0; p < h->nranks; p++) {
		h->view.lost[p] = living_slot_of(p, h->view.nranks) >=
				  h->moves.clones.wanted[living_rank_of(p, h->view.nranks)];
		if (!h->view.lost[p])
			continue;
		h->moves.clones.died_at[p] = clock_seconds();
		h->moves.clones.homes[p] = h->node_set.placement.node_of[p];
		node_set_echo_lost(&h->node_set, p);
	}
}

/* Replicas of a rank that share a node die with it. */
void replicas_say_placement(const struct head *h)
{
	const uint32_t *node_of = h->node_set.placement.node_of;
	uint32_t together = 0, n = h->view.nranks;

	if (h->shadows.of || h->view.audits) {
		if (h->view.audits)
			audit_say_placement(h);
		else
			shadows_say_placement(h);
		return;
	}
	for (uint32_t r = 0; r < n; r++)
		for (uint32_t s = 1; s < h->degree; s++)
			together +=
			    s < h->moves.clones.wanted[r] && node_of[s * n + r] == node_of[r];
	if (together > 0 && h->degree > 1)
		head_say(h,
			 "note: replicas of %u rank%s share a node and are lost together if that "
			 "is; give "
			 "the job %u nodes",
			 together, together > 1 ? "s" : "", h->degree);
}

static void replicas_record(struct head *h, uint32_t process, const char *why)
{
	struct json_out j;

	record_begin(&j, "replica lost");
	json_uint(&j, "rank", living_rank_of(process, h->view.nranks));
	json_uint(&j, "slot", living_slot_of(process, h->view.nranks));
	json_string(&j, "why", why);
	json_uint(&j, "view", h->view.number);
	json_double(&j, "job_seconds", head_seconds(h));
	record_end(&h->files.record, &j);
}

/* The next view, and what this head knows of the process. True: its rank lives on. */
static bool replica_lose(struct head *h, uint32_t process, const char *why)
{
	uint32_t rank = living_rank_of(process, h->view.nranks);

	living_lose(&h->view, process);
	if (h->ranks[process].convicted)
		h->view.lost[process] = LIVING_CONVICTED;
	h->moves.clones.died_at[process] = clock_seconds();
	h->moves.clones.homes[process] = h->node_set.placement.node_of[process];
	clone_source_lost(h, process);
	if (living_count(&h->view, rank) == 0)
		return false;
	if (h->moves.clones.dropped[process]) {
		replicas_record(h, process, why);
		return true;
	}
	h->report.replicas_lost++;
	shadows_failed(h, process);
	struct report_failure *f = report_add_failure(
	    &h->report, rank, node_set_node_of(&h->node_set, process)->name, why, head_seconds(h));
	if (f) {
		f->slot = living_slot_of(process, h->view.nranks);
		f->then = REPORT_GOES_ON;
	}
	replicas_record(h, process, why);
	return true;
}

/* Written down first: the next head is to know of no fewer deaths than any process does. */
void replicas_publish(struct head *h)
{
	if (head_superseded(h))
		return;
	head_save(h);
	node_set_tell_all(&h->node_set, &(struct message){.type = MSG_VIEW,
							  .id = h->view.number,
							  .bytes = h->view.lost,
							  .len = h->nranks});
	head_all_gone_soon(h);
}

static void survived(struct head *h)
{
	shadows_settle(h);
	replicas_publish(h);
	clone_lost_one(h);
	audit_settle(h);
	checkpoint_replica_died(h);
	clone_soon(h);
}

bool replicas_survive_death(struct head *h, uint32_t process, const char *how)
{
	uint32_t rank, slot;
	char why[128], after[16], who[16];

	if (h->degree == 1 || h->state != JOB_RUNNING)
		return false;
	rank = living_rank_of(process, h->view.nranks);
	slot = living_slot_of(process, h->view.nranks);
	if (replicas_is_lost(h, process))
		return true;
	if (shadows_rather_go_back(h, process))
		return false;
	snprintf(who, sizeof(who), "replica %u", slot);
	if (h->shadows.of)
		snprintf(who, sizeof(who), "its %s", shadows_role(h, process));
	snprintf(why, sizeof(why), "%s was killed by %s", who, how);
	if (!replica_lose(h, process, why)) {
		head_say(h,
			 h->shadows.of ? "main and shadow (%u processes) of rank %u are dead"
				       : "all %u replicas of rank %u are dead",
			 h->shadows.of ? LIVING_SHADOW_DEGREE : h->degree, rank);
		return false;
	}
	units_show_seconds(head_seconds(h), after);
	if (h->moves.clones.dropped[process] && h->view.audits)
		log_info("rank %u: the copy in slot %u is ended", rank, slot);
	else if (h->moves.clones.dropped[process])
		head_say(h, "rank %u: replica %u is dropped, as was asked", rank, slot);
	else if (h->shadows.of)
		head_say(h, "rank %u: %s after %s", rank, why, after);
	else
		head_say(h, "rank %u: %s after %s; replica %d goes on", rank, why, after,
			 living_leader(&h->view, rank));
	inject_rank_killed(h, process);
	node_set_echo_lost(&h->node_set, process);
	survived(h);
	return true;
}

/* Every rank with a process there has another one elsewhere. */
static bool lives_elsewhere(const struct head *h, const struct node *node, uint32_t process)
{
	uint32_t rank = living_rank_of(process, h->view.nranks);

	for (uint32_t s = 0; s < h->degree; s++) {
		uint32_t p = living_process(&h->view, rank, s);

		if (!h->view.lost[p] && h->node_set.placement.node_of[p] != node->index)
			return true;
	}
	return false;
}

bool replicas_survive_node(struct head *h, const struct node *node)
{
	char why[300];
	uint32_t lost = 0;

	if (h->degree == 1 || h->state != JOB_RUNNING || !h->node_set.laid_out)
		return false;
	for (uint32_t p = 0; p < h->nranks; p++)
		if (h->node_set.placement.node_of[p] == node->index && !h->ranks[p].ended &&
		    !lives_elsewhere(h, node, p))
			return false;
	for (uint32_t p = 0; p < h->nranks; p++)
		if (h->node_set.placement.node_of[p] == node->index && !h->view.lost[p] &&
		    shadows_rather_go_back(h, p))
			return false;
	snprintf(why, sizeof(why), "node lost: %s", h->lost.why);
	for (uint32_t p = 0; p < h->nranks; p++) {
		if (h->node_set.placement.node_of[p] != node->index || h->ranks[p].ended)
			continue;
		h->ranks[p].ended = true;
		h->ranks[p].exit_status = 128 + 9;
		replica_lose(h, p, why);
		node_set_echo_lost(&h->node_set, p);
		lost++;
	}
	if (lost == 0)
		return false;
	head_say(
	    h,
	    "node %s is lost (%s), and %u process%s with it; their ranks go on in other replicas",
	    node->name, h->lost.why, lost, lost > 1 ? "es" : "");
	survived(h);
	return true;
}
