/* SPDX-License-Identifier: BSD-3-Clause */
/* A rank or a node is lost: what is told and recorded, and whether the job goes back to a
 * checkpoint or ends (policy/recovery.h). */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include "base/base.h"
#include "head/head.h"
#include "head/head_private.h"
#include "head/migration/migrate.h"
#include "head/failover/succession.h"
#include "head/watch/watch.h"
#include "policy/recovery.h"

void head_fail_rank(struct head *h, uint32_t rank)
{
	struct head_rank *r = &h->ranks[rank];
	const struct node_set_rank *k = &h->node_set.ranks[rank];
	char what[96], name[HEAD_NAME];
	struct report_failure *f;

	if (r->aborted)
		snprintf(what, sizeof(what), "called MPI_Abort(%d)", r->abort_code);
	else if (r->exit_status == 0)
		snprintf(what, sizeof(what), "ended without calling MPI_Finalize");
	else if (k->initialized && !k->finalized)
		snprintf(what, sizeof(what), "exited with status %d without calling MPI_Finalize",
			 r->exit_status);
	else
		snprintf(what, sizeof(what), "exited with status %d", r->exit_status);
	f = report_add_failure(&h->report, living_rank_of(rank, h->view.nranks),
			       node_set_node_of(&h->node_set, rank)->name, what, head_seconds(h));
	if (f)
		f->by_itself = true;
	watch_rank_died(h, rank, 0, what);
	head_say(h, "%s %s%s", head_name(h, rank, name), what,
		 h->nranks > 1 ? "; the job ends" : "");
	h->end.rank = rank;
	h->end.polite = k->finalized && !r->aborted;
	head_end(h, r->exit_status != 0 ? r->exit_status : 1);
}

const char *head_signal_text(int sig, char buf[64])
{
	const char *name = sig < 32 ? sigabbrev_np(sig) : NULL;

	if (name)
		snprintf(buf, 64, "signal %d (SIG%s)", sig, name);
	else
		snprintf(buf, 64, "signal %d", sig);
	return buf;
}

static struct recovery_facts facts_of(const struct head *h)
{
	return (struct recovery_facts){
	    .allowed = h->o->max_restarts != 0,
	    .restarts = h->report.restarts,
	    .restarts_max = (uint32_t)h->o->max_restarts,
	    .checkpoint = recover_newest((struct head *)(uintptr_t)h) != 0,
	    .beginning = recover_has_beginning(h),
	    .node_is_left = node_set_usable(&h->node_set) || node_set_renewable(&h->node_set)};
}

static double seconds_lost(const struct head *h, uint32_t newest)
{
	for (size_t i = h->report.checkpoint_count; newest && i-- > 0;)
		if (h->report.checkpoints[i].id == newest)
			return head_seconds(h) - h->report.checkpoints[i].at_seconds;
	return newest ? clock_seconds() - h->began : head_seconds(h);
}

static void say_rollback(struct head *h, uint32_t rank, int sig, pid_t pid,
			 struct report_failure *f)
{
	char text[64], place[32] = "the beginning", after[16], lost[16], name[HEAD_NAME];
	uint32_t newest = recover_newest(h);
	double seconds = seconds_lost(h, newest);

	if (newest)
		snprintf(place, sizeof(place), "checkpoint %u", newest);
	head_say(h, "%s (pid %d) was killed by %s after %s; rolling back to %s (%s lost)",
		 head_name(h, rank, name), (int)pid, head_signal_text(sig, text),
		 units_show_seconds(head_seconds(h), after), place,
		 units_show_seconds(seconds, lost));
	if (f) {
		f->then = REPORT_GOES_BACK;
		f->rolled_back_to = newest;
		f->lost_seconds = seconds;
	}
}

static void record_failure(struct head *h, uint32_t rank, int sig)
{
	struct json_out j;

	record_begin(&j, "rank killed");
	json_uint(&j, "rank", living_rank_of(rank, h->view.nranks));
	json_int(&j, "signal", sig);
	json_double(&j, "job_seconds", head_seconds(h));
	record_end(&h->files.record, &j);
}

void head_roll_job_back(struct head *h)
{
	uint32_t newest = recover_newest(h);

	watch_rollback_begun(h, newest, seconds_lost(h, newest));
	recover_check_stop(h);
	migrate_drop(h, "all ranks go back to a checkpoint");
	head_step(h, JOB_ROLL_BACK, 0);
}

void head_kill_for_rollback(struct head *h, uint32_t rank)
{
	succession_save(h);
	head_profile_turn(h);
	node_set_forget_orders(&h->node_set);
	head_kill_all(h);
	head_all_gone_soon(h);
}

static const char *text_of_verdict(const struct head *h, recovery_verdict_t verdict)
{
	if (verdict == RECOVERY_NO_CHECKPOINT && h->o->ckpt_auto)
		return "the job ends: there is no checkpoint to roll back to yet (--ckpt-first 5s "
		       "takes the first one earlier; with --ckpt-every 30s a job begins again)";
	return recovery_verdict_text(verdict);
}

void head_assess_rank(struct head *h, uint32_t rank)
{
	const struct head_rank *r = &h->ranks[rank];
	int sig = r->exit_status - 128;
	struct recovery_death death = {
	    .signal = sig,
	    .previous_signal = r->last_signal,
	    /* of protected tasks SIGBUS is the memory's error, not the program's */
	    .uncatchable = sig == SIGKILL || (sig == SIGBUS && h->o->tasks)};
	struct recovery_facts facts;
	recovery_verdict_t verdict;
	pid_t pid = h->node_set.ranks[rank].group;
	char text[64], name[HEAD_NAME];
	struct report_failure *f;
	const char *why;

	f = report_add_failure(&h->report, living_rank_of(rank, h->view.nranks),
			       node_set_node_of(&h->node_set, rank)->name,
			       head_signal_text(sig, text), head_seconds(h));
	if (f)
		f->slot = living_slot_of(rank, h->view.nranks);
	h->faults.tasks_fell += sig == SIGBUS && h->o->tasks;
	record_failure(h, rank, sig);
	watch_rank_died(h, rank, sig, text);
	inject_rank_killed(h, rank);
	checkpoint_abandon(h, "a rank was killed");
	facts = facts_of(h);
	verdict = recovery_judge(&facts, &death);
	why = text_of_verdict(h, verdict);
	if (why) {
		head_say(h, "%s (pid %d) was killed by %s; %s", head_name(h, rank, name), (int)pid,
			 head_signal_text(sig, text), why);
		head_end(h, recovery_verdict_is_ours(verdict) ? EXIT_UNRECOVERED : 128 + sig);
		return;
	}
	/* what kills a program in one replica kills it in the next */
	for (uint32_t s = 0; s < h->degree; s++)
		h->ranks[living_process(&h->view, living_rank_of(rank, h->view.nranks), s)]
		    .last_signal = sig;
	say_rollback(h, rank, sig, pid, f);
	head_roll_back(h);
}

/* ---- nodes ---- */

const char *head_why_not_without(struct head *h)
{
	struct recovery_facts facts = facts_of(h);

	return text_of_verdict(h, recovery_judge(&facts, NULL));
}

/* how: "lost", "cut off". */
static void record_lost(struct head *h, const char *how)
{
	struct json_out j;
	char what[24];

	snprintf(what, sizeof(what), "node %s", how);
	record_begin(&j, what);
	json_string(&j, "node", h->lost.name);
	json_string(&j, "why", h->lost.why);
	json_double(&j, "job_seconds", head_seconds(h));
	record_end(&h->files.record, &j);
	head_report_nodes(h);
}

/* True: the job can go on, without the node of h->lost.name. */
static bool go_on_without(struct head *h, uint32_t rank, const char *how)
{
	char reason[sizeof(((struct report_failure *)0)->reason)], place[32] = "the beginning";
	uint32_t newest;
	struct report_failure *f;
	const char *why;

	snprintf(reason, sizeof(reason), "node %s: %s", how, h->lost.why);
	f = report_add_failure(&h->report, rank, h->lost.name, reason, head_seconds(h));
	record_lost(h, how);
	checkpoint_abandon(h, "a node was lost");
	why = head_why_not_without(h);
	if (why) {
		head_say(h, "node %s is %s (%s); %s", h->lost.name, how, h->lost.why, why);
		recover_say_how(h);
		head_end(h, EXIT_UNRECOVERED);
		return false;
	}
	newest = recover_newest(h);
	if (newest)
		snprintf(place, sizeof(place), "checkpoint %u", newest);
	head_say(h, "node %s is %s (%s); %s, rolling back to %s", h->lost.name, how, h->lost.why,
		 node_set_usable(&h->node_set) ? "its ranks go elsewhere"
					       : "another agent is started here",
		 place);
	if (f) {
		f->then = REPORT_GOES_BACK;
		f->rolled_back_to = newest;
		f->lost_seconds = seconds_lost(h, newest);
	}
	return true;
}

void head_assess_node(struct head *h, uint32_t rank)
{
	if (go_on_without(h, rank, "lost"))
		head_roll_back(h);
}

/* While the ranks that are left are ended: of a half that is cut off each node has its own end. */
void head_add_lost_node(struct head *h, uint32_t rank)
{
	char reason[sizeof(((struct report_failure *)0)->reason)];
	struct report *r = &h->report;
	struct report_failure *f;

	snprintf(reason, sizeof(reason), "node lost: %s", h->lost.why);
	f = report_add_failure(r, rank, h->lost.name, reason, head_seconds(h));
	if (f && r->failure_count > 1) {
		f->together = true;
		f->then = (f - 1)->then;
		f->rolled_back_to = (f - 1)->rolled_back_to;
	}
	record_lost(h, "lost");
	head_say(h, "node %s is lost, too (%s)", h->lost.name, h->lost.why);
	head_all_gone_soon(h);
}

void head_cut_off(struct head *h, const bool *out)
{
	uint32_t rank = 0;

	while (rank < h->nranks &&
	       strcmp(node_set_node_of(&h->node_set, rank)->name, h->lost.name) != 0)
		rank++;
	if (!go_on_without(h, rank, "cut off"))
		return;
	for (uint32_t k = 0; k < h->node_set.count; k++) {
		if (!out[k])
			continue;
		node_leave_event(&h->node_set.nodes[k], LEAVE_BY_CHECKPOINT);
		watch_mark(h, k, true, "cut off from other nodes");
	}
	head_roll_back(h);
}
