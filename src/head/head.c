/* SPDX-License-Identifier: BSD-3-Clause */
/* The state of a job and what carries its table out (policy/job_state.h), the end of a job, and the
 * ends of its ranks. head_loss.c judges losses, head_restored.c follows the way back. */
#include "head/head.h"
#include "node/proto.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include "base/base.h"
#include "head/head_private.h"
#include "head/replicas.h"
#include "head/migration/migrate.h"
#include "head/failover/succession.h"
#include "head/watch/watch.h"

enum { GRACE_SECONDS = 5, POLITE_SECONDS = 1 };

typedef void (*head_action)(struct head *h, uint32_t rank);

/* ---- ending ---- */

void head_kill_all(void *head)
{
	struct head *h = head;

	node_set_signal_all(&h->node_set, SIGCONT);
	node_set_signal_all(&h->node_set, SIGKILL);
}

static void end_ranks(void *arg)
{
	struct head *h = arg;

	h->end.polite = false;
	if (!h->end.stopping) {
		node_set_signal_all(&h->node_set, SIGCONT);
		node_set_signal_all(&h->node_set, SIGTERM);
	}
	loop_timer_set(&h->loop, &h->end.grace, GRACE_SECONDS, head_kill_all, h);
}

void head_end_job(struct head *h, int exit_status)
{
	if (!h->end.decided) {
		h->end.decided = true;
		h->end.status = exit_status;
	}
	head_end_by_request(h);
}

void head_end_by_request(struct head *h)
{
	if (job_state_over(h->state))
		return;
	checkpoint_abandon_open(h, "the job ends");
	migrate_end(h, "the job ends");
	head_step(h, JOB_END, 0);
}

static void end_all(struct head *h, uint32_t rank)
{
	succession_save(h);
	node_set_forget_orders(&h->node_set);
	loop_timer_clear(&h->loop, &h->recovery.deadline);
	if (h->end.polite)
		loop_timer_set(&h->loop, &h->end.grace, POLITE_SECONDS, end_ranks, h);
	else
		end_ranks(h);
	head_all_gone_soon(h);
}

/* The last thing to know is what the ranks' meters say. */
static void finish(struct head *h, uint32_t rank)
{
	/* from now on agents leave: a head that comes later finds none, and knows why */
	succession_save(h);
	h->profile.final_look = h->node_set.laid_out && node_set_usable(&h->node_set)
				    ? node_set_look(&h->node_set, false)
				    : 0;
	if (h->profile.final_look == 0)
		loop_stop(&h->loop);
}

/* Launched processes are gone; what they left behind goes now, then everything is gone. A job that
 * has ended well gives it some time. */
static void look_for_all_gone(void *arg)
{
	struct head *h = arg;

	if (!h->node_set.ranks) /* the job could not even begin */
		head_event(h, JOB_ALL_GONE, 0);
	else if (node_set_alive(&h->node_set) == 0 && !h->node_set.asks.clearing)
		node_set_clear(&h->node_set, h->state == JOB_RUNNING);
}

void head_look_for_end(struct head *h)
{
	if (node_set_alive(&h->node_set) == 0 && !h->end.clearing.armed)
		loop_timer_set(&h->loop, &h->end.clearing, 0, look_for_all_gone, h);
}

/* ---- what the table's actions do ---- */

static void begin_job(struct head *h, uint32_t rank)
{
	head_begin(h);
}

static void rank_done(struct head *h, uint32_t rank)
{
	checkpoint_rank_done(h, rank);
	migrate_give_up(h, "a rank has ended");
	head_profile_turn(h);
	head_all_gone_soon(h);
}

static void rank_ready(struct head *h, uint32_t rank)
{
	head_look_anew(h);
	head_profile_turn(h);
	checkpoint_poll(h);
}

static void check_gone(struct head *h, uint32_t rank)
{
	head_all_gone_soon(h);
}

static void find_target(struct head *h, uint32_t rank)
{
	recover_start(h);
}

static void restore(struct head *h, uint32_t rank)
{
	recover_restore(h);
}

static void launch(struct head *h, uint32_t rank)
{
	recover_launch(h);
}

static void stop_all(struct head *h, uint32_t rank)
{
	head_end(h, 128 + SIGTERM);
}

static const head_action actions[JOB_ACTIONS] = {
    [JOB_BEGIN] = begin_job,
    [JOB_LOOK_READY] = rank_ready,
    [JOB_COUNT_DONE] = rank_done,
    [JOB_FAIL] = head_fail_rank,
    [JOB_ASSESS_RANK] = head_assess_rank,
    [JOB_ASSESS_NODE] = head_assess_node,
    [JOB_ADD_NODE] = head_add_lost_node,
    [JOB_REJECT] = head_reject_damaged,
    [JOB_KILL_ALL] = head_kill_for_rollback,
    [JOB_CHECK_GONE] = check_gone,
    [JOB_FIND_TARGET] = find_target,
    [JOB_RESTORE] = restore,
    [JOB_LAUNCH] = launch,
    [JOB_LOOK_BACK] = head_look_back,
    [JOB_LOOK_BACK_DONE] = head_look_back_done,
    [JOB_REFUSE_TARGET] = head_refuse_target,
    [JOB_LATE_TARGET] = head_late_target,
    [JOB_GO_ON] = head_go_on,
    [JOB_STOP_ALL] = stop_all,
    [JOB_END_ALL] = end_all,
    [JOB_FINISH] = finish,
};

void head_take_step(struct head *h, job_event_t event, uint32_t rank)
{
	struct job_step step = job_state_step(h->state, event);

	if (h->state == JOB_RESTORING && step.next != JOB_RESTORING)
		loop_timer_clear(&h->loop, &h->recovery.deadline);
	h->state = step.next;
	if (actions[step.action])
		actions[step.action](h, rank);
}

void head_take_event(struct head *h, job_event_t event, uint32_t rank)
{
	if (!head_put_off(h, event, rank))
		head_step(h, event, rank);
}

/* ---- the end of a launched process ---- */

static int shell_status(int status)
{
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* What the end of a launched process means. */
static job_event_t judge_end(struct head *h, uint32_t rank, int status)
{
	struct head_rank *r = &h->ranks[rank];
	const struct node_set_rank *k = &h->node_set.ranks[rank];
	bool in_between = k->initialized && !k->finalized && k->mpi;

	r->ended = true;
	r->exit_status = shell_status(status);
	loop_timer_clear(&h->loop, &r->lost);
	if (r->aborted) {
		r->exit_status = r->abort_code & 0xff ? r->abort_code & 0xff : 1;
		return JOB_RANK_FAILED;
	}
	if (WIFSIGNALED(status))
		return JOB_RANK_KILLED;
	/* a shell around the program says it this way */
	if (in_between && k->member != k->group && r->exit_status > 128 &&
	    r->exit_status < 128 + 65)
		return JOB_RANK_KILLED;
	if (r->exit_status == 0 && !in_between)
		return JOB_RANK_DONE;
	return h->state == JOB_RESTORING && !k->met ? JOB_RANK_NOT_REBUILT : JOB_RANK_FAILED;
}

/* Processes in reserve for MPI_Comm_spawn end when the first world has. It says so itself in
 * MPI_Finalize; of a program that never calls that, the only node's agent sees it, and of several
 * nodes the head does. */
static void reserve_let_go(struct head *h)
{
	if (h->o->reserve == 0 || h->node_set.placement.nodes < 2)
		return;
	for (uint32_t r = 0; r < h->nranks - (uint32_t)h->o->reserve; r++)
		if (!h->ranks[r].ended)
			return;
	node_set_let_go(&h->node_set);
}

/* The first that ends badly gives hale's exit status; of those that end badly together, after
 * MPI_Finalize, the one with the lowest rank. */
void head_take_ended(struct head *h, uint32_t rank, int status)
{
	job_event_t event = judge_end(h, rank, status);

	if (event == JOB_RANK_KILLED && shadows_ended(h, rank, status)) {
		head_all_gone_soon(h); /* it may be the last one of a job that ends, or goes back */
		if (!h->shadows.over)
			return;
		event = JOB_RANK_DONE;
	}
	if (event == JOB_RANK_KILLED) {
		char text[64];

		if (replicas_survive_death(
			h, rank, head_signal_text(h->ranks[rank].exit_status - 128, text)))
			return;
	}
	if (h->state == JOB_ENDING && h->ranks[rank].exit_status != 0 &&
	    (!h->end.decided || (h->end.polite && rank < h->end.rank))) {
		h->end.decided = true;
		h->end.status = h->ranks[rank].exit_status;
		h->end.rank = rank;
	}
	head_event(h, event, rank);
	if (event == JOB_RANK_DONE) {
		shadows_look_for_end(h);
		reserve_let_go(h);
	}
}
