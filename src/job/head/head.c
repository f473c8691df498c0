/* SPDX-License-Identifier: BSD-3-Clause */
/* The state machine: states × events. */
#include "job/head/head.h"
#include "job/proto.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include "base/base.h"
#include "job/head/head_private.h"
#include "job/migrate/migrate.h"
#include "job/succession/succession.h"
#include "job/watch/watch.h"

enum { GRACE_SECONDS = 5, POLITE_SECONDS = 1 };

typedef void (*head_action)(struct head *h, uint32_t rank);

double head_seconds(const struct head *h)
{
	return clock_seconds() - h->job_began;
}

bool head_rank_alive(const struct head *h, uint32_t rank)
{
	return !h->ranks[rank].ended;
}

void head_rank_reset(struct head *h, uint32_t rank, int ended_with)
{
	struct head_rank *r = &h->ranks[rank];

	loop_timer_clear(&h->loop, &r->lost);
	*r = (struct head_rank){.ended = ended_with >= 0,
				.exit_status = ended_with,
				.last_signal = r->last_signal,
				.launched_at = head_seconds(h),
				.head = h};
}

bool head_all_ready(const struct head *h)
{
	for (uint32_t r = 0; r < h->nranks; r++) {
		const struct crew_rank *k = &h->crew.ranks[r];

		if (h->ranks[r].ended) {
			if (!h->o->no_mpi)
				return false;
		} else if (!k->met || (!h->o->no_mpi && !k->initialized)) {
			return false;
		}
	}
	return true;
}

const char *head_why_not_ready(const struct head *h)
{
	if (head_all_ready(h))
		return NULL;
	return h->mpi_seen || h->o->no_mpi ? "not all ranks are through MPI_Init yet; try again"
					   : "no rank has called MPI_Init; programs without MPI "
					     "are checkpointed, and moved, "
					     "when started with --no-mpi";
}

bool head_any_finalized(const struct head *h)
{
	for (uint32_t r = 0; !h->o->no_mpi && r < h->nranks; r++)
		if (h->crew.ranks[r].finalized)
			return true;
	return false;
}

const char *head_state_name(const struct head *h)
{
	switch (h->state) {
	case HEAD_STARTING:
		return h->takeover ? "attaching" : "starting";
	case HEAD_RUNNING:
		if (h->ckpt.phase != CKPT_IDLE)
			return "checkpointing";
		return head_all_ready(h) || head_any_finalized(h) ? "running" : "starting";
	case HEAD_CLEARING:
	case HEAD_RESTORING:
		return "restoring";
	default:
		return "ending";
	}
}

/* ---- ending ---- */

static void kill_all(void *arg)
{
	struct head *h = arg;

	crew_signal_all(&h->crew, SIGCONT);
	crew_signal_all(&h->crew, SIGKILL);
}

static void end_ranks(void *arg)
{
	struct head *h = arg;

	h->polite = false;
	if (!h->stopping) {
		crew_signal_all(&h->crew, SIGCONT);
		crew_signal_all(&h->crew, SIGTERM);
	}
	loop_timer_set(&h->loop, &h->grace, GRACE_SECONDS, kill_all, h);
}

void head_end(struct head *h, int exit_status)
{
	if (!h->exit_decided) {
		h->exit_decided = true;
		h->exit_status = exit_status;
	}
	head_end_by_request(h);
}

void head_end_by_request(struct head *h)
{
	if (h->state == HEAD_ENDING || h->state == HEAD_ENDED)
		return;
	checkpoint_abandon_open(h, "the job ends");
	migrate_end(h, "the job ends");
	h->state = HEAD_ENDING;
	succession_save(h);
	loop_timer_clear(&h->loop, &h->recovery.deadline);
	if (h->polite)
		loop_timer_set(&h->loop, &h->grace, POLITE_SECONDS, end_ranks, h);
	else
		end_ranks(h);
	head_all_gone_soon(h);
}

/* The last thing to know is what the ranks' meters say. */
static void finish(struct head *h, uint32_t rank)
{
	h->state = HEAD_ENDED;
	h->final_look = h->crew.laid_out && crew_usable(&h->crew) ? crew_look(&h->crew) : 0;
	if (h->final_look == 0)
		loop_stop(&h->loop);
}

/* Launched processes are gone; what they left behind in their groups goes now, then everything
 * is gone. */
static void check_gone(void *arg)
{
	struct head *h = arg;

	if (!h->crew.ranks) /* the job could not even begin */
		head_event(h, EVENT_ALL_GONE, 0);
	else if (crew_alive(&h->crew) == 0 && !h->crew.clearing)
		crew_clear(&h->crew);
}

void head_all_gone_soon(struct head *h)
{
	if (crew_alive(&h->crew) == 0 && !h->clearing.armed)
		loop_timer_set(&h->loop, &h->clearing, 0, check_gone, h);
}

/* ---- what happens to ranks while the job runs ---- */

static int shell_status(int status)
{
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static void rank_done(struct head *h, uint32_t rank)
{
	if (!h->o->no_mpi)
		checkpoint_abandon_open(h, "a rank has ended");
	migrate_give_up(h, "a rank has ended");
	head_profile_turn(h);
	head_all_gone_soon(h);
}

static void fail_rank(struct head *h, uint32_t rank)
{
	struct head_rank *r = &h->ranks[rank];
	const struct crew_rank *k = &h->crew.ranks[rank];
	char what[96];

	if (r->aborted)
		snprintf(what, sizeof(what), "called MPI_Abort(%d)", r->abort_code);
	else if (r->exit_status == 0)
		snprintf(what, sizeof(what), "ended without calling MPI_Finalize");
	else if (k->initialized && !k->finalized)
		snprintf(what, sizeof(what), "exited with status %d without calling MPI_Finalize",
			 r->exit_status);
	else
		snprintf(what, sizeof(what), "exited with status %d", r->exit_status);
	report_add_failure(&h->report, rank, crew_node_of(&h->crew, rank)->name, what,
			   head_seconds(h));
	watch_rank_died(h, rank, 0, what);
	head_say(h, "rank %u %s%s", rank, what, h->nranks > 1 ? "; the job ends" : "");
	h->exit_rank = rank;
	h->polite = k->finalized && !r->aborted;
	head_end(h, r->exit_status != 0 ? r->exit_status : 1);
}

static const char *signal_text(int sig, char buf[64])
{
	const char *name = sig < 32 ? sigabbrev_np(sig) : NULL;

	if (name)
		snprintf(buf, 64, "signal %d (SIG%s)", sig, name);
	else
		snprintf(buf, 64, "signal %d", sig);
	return buf;
}

/* Why a job whose rank was killed can't go on; NULL: it can. *exit_status gets what it ends with.
 */
static const char *why_not_recover(struct head *h, uint32_t rank, int sig, int *exit_status)
{
	struct head_rank *r = &h->ranks[rank];

	*exit_status = 128 + sig;
	if (h->o->max_restarts == 0)
		return "the job ends, as --max-restarts is 0";
	if (!recover_possible(h))
		return "the job ends: there is no checkpoint to roll back to (--ckpt-every makes "
		       "some)";
	if (sig != SIGKILL && r->last_signal == sig)
		return "the job ends: it died of the same at the same place before, so another "
		       "restart would not help";
	*exit_status = EXIT_UNRECOVERED;
	if (h->report.restarts >= (uint32_t)h->o->max_restarts)
		return "the job ends: it was restarted as often as --max-restarts allows";
	return NULL;
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
	char text[64], place[32] = "the beginning", after[16], lost[16];
	uint32_t newest = recover_newest(h);
	double seconds = seconds_lost(h, newest);

	if (newest)
		snprintf(place, sizeof(place), "checkpoint %u", newest);
	head_say(h, "rank %u (pid %d) was killed by %s after %s; rolling back to %s (%s lost)",
		 rank, (int)pid, signal_text(sig, text), units_show_seconds(head_seconds(h), after),
		 place, units_show_seconds(seconds, lost));
	if (f) {
		f->rolled_back_to = newest;
		f->lost_seconds = seconds;
	}
}

static void record_failure(struct head *h, uint32_t rank, int sig)
{
	struct json_out j;

	record_begin(&j, "rank killed");
	json_uint(&j, "rank", rank);
	json_int(&j, "signal", sig);
	json_double(&j, "job_seconds", head_seconds(h));
	record_end(&h->record, &j);
}

void head_roll_back(struct head *h)
{
	uint32_t newest = recover_newest(h);

	watch_rollback_begun(h, newest, seconds_lost(h, newest));
	recover_check_stop(h);
	migrate_drop(h, "all ranks go back to a checkpoint");
	h->state = HEAD_CLEARING;
	succession_save(h);
	head_profile_turn(h);
	kill_all(h);
	head_all_gone_soon(h);
}

static void kill_rank(struct head *h, uint32_t rank)
{
	struct head_rank *r = &h->ranks[rank];
	int sig = r->exit_status - 128, exit_status;
	pid_t pid = h->crew.ranks[rank].group;
	char text[64];
	struct report_failure *f;
	const char *why;

	f = report_add_failure(&h->report, rank, crew_node_of(&h->crew, rank)->name,
			       signal_text(sig, text), head_seconds(h));
	record_failure(h, rank, sig);
	watch_rank_died(h, rank, sig, text);
	inject_rank_killed(h, rank);
	checkpoint_abandon(h, "a rank was killed");
	why = why_not_recover(h, rank, sig, &exit_status);
	if (why) {
		head_say(h, "rank %u (pid %d) was killed by %s; %s", rank, (int)pid,
			 signal_text(sig, text), why);
		head_end(h, exit_status);
		return;
	}
	r->last_signal = sig;
	say_rollback(h, rank, sig, pid, f);
	head_roll_back(h);
}

/* ---- nodes ---- */

static void begin_job(struct head *h, uint32_t rank)
{
	head_begin(h);
}

const char *head_why_not_without(struct head *h)
{
	if (h->o->max_restarts == 0)
		return "the job ends, as --max-restarts is 0";
	if (!crew_usable(&h->crew) && !crew_renewable(&h->crew))
		return "the job ends: no node is left";
	if (!recover_possible(h))
		return "the job ends: there is no checkpoint to roll back to (--ckpt-every makes "
		       "some)";
	if (h->report.restarts >= (uint32_t)h->o->max_restarts)
		return "the job ends: it was restarted as often as --max-restarts allows";
	return NULL;
}

/* how: "lost", "cut off". */
static void record_lost(struct head *h, const char *how)
{
	struct json_out j;
	char what[24];

	snprintf(what, sizeof(what), "node %s", how);
	record_begin(&j, what);
	json_string(&j, "node", h->lost_name);
	json_string(&j, "why", h->lost_why);
	json_double(&j, "job_seconds", head_seconds(h));
	record_end(&h->record, &j);
}

/* True: the job can go on, without the node of h->lost_name. */
static bool go_on_without(struct head *h, uint32_t rank, const char *how)
{
	char reason[sizeof(((struct report_failure *)0)->reason)], place[32] = "the beginning";
	uint32_t newest;
	struct report_failure *f;
	const char *why;

	snprintf(reason, sizeof(reason), "node %s: %s", how, h->lost_why);
	f = report_add_failure(&h->report, rank, h->lost_name, reason, head_seconds(h));
	record_lost(h, how);
	checkpoint_abandon(h, "a node was lost");
	why = head_why_not_without(h);
	if (why) {
		head_say(h, "node %s is %s (%s); %s", h->lost_name, how, h->lost_why, why);
		recover_say_how(h);
		head_end(h, EXIT_UNRECOVERED);
		return false;
	}
	newest = recover_newest(h);
	if (newest)
		snprintf(place, sizeof(place), "checkpoint %u", newest);
	head_say(h, "node %s is %s (%s); %s, rolling back to %s", h->lost_name, how, h->lost_why,
		 crew_usable(&h->crew) ? "its ranks go elsewhere" : "another agent is started here",
		 place);
	if (f) {
		f->rolled_back_to = newest;
		f->lost_seconds = seconds_lost(h, newest);
	}
	return true;
}

static void lose_node(struct head *h, uint32_t rank)
{
	if (go_on_without(h, rank, "lost"))
		head_roll_back(h);
}

/* While the ranks that are left are ended: of a half that is cut off each node has its own end. */
static void lose_another(struct head *h, uint32_t rank)
{
	char reason[sizeof(((struct report_failure *)0)->reason)];
	struct report *r = &h->report;
	struct report_failure *f;

	snprintf(reason, sizeof(reason), "node lost: %s", h->lost_why);
	f = report_add_failure(r, rank, h->lost_name, reason, head_seconds(h));
	if (f && r->failure_count > 1) {
		f->together = true;
		f->rolled_back_to = (f - 1)->rolled_back_to;
	}
	record_lost(h, "lost");
	head_say(h, "node %s is lost, too (%s)", h->lost_name, h->lost_why);
	head_all_gone_soon(h);
}

void head_cut_off(struct head *h, const bool *out)
{
	uint32_t rank = 0;

	while (rank < h->nranks && strcmp(crew_node_of(&h->crew, rank)->name, h->lost_name) != 0)
		rank++;
	if (!go_on_without(h, rank, "cut off"))
		return;
	for (uint32_t k = 0; k < h->crew.count; k++) {
		if (!out[k])
			continue;
		h->crew.nodes[k].leaving = true;
		watch_mark(h, k, true, "cut off from other nodes");
	}
	head_roll_back(h);
}

static void lose_at_restore(struct head *h, uint32_t rank)
{
	loop_timer_clear(&h->loop, &h->recovery.deadline);
	h->state = HEAD_RUNNING;
	lose_node(h, rank);
}

/* ---- ranks ---- */

static void rank_ready(struct head *h, uint32_t rank)
{
	head_profile_turn(h);
	checkpoint_poll(h);
}

/* ---- while it is restored ---- */

static void report_restart(struct head *h)
{
	struct report *r = &h->report;
	size_t i = r->failure_count;

	while (i > 1 && r->failures[i - 1].together)
		i--;
	if (i > 0 && h->recovery.target && r->failures[i - 1].restart_seconds == 0)
		r->failures[i - 1].restart_seconds =
		    head_seconds(h) - r->failures[i - 1].at_seconds;
}

static void restored_one(struct head *h, uint32_t rank)
{
	struct json_out j;
	char took[16];

	for (uint32_t r = 0; r < h->nranks; r++)
		if (!h->ranks[r].ended && !h->crew.ranks[r].met)
			return;
	loop_timer_clear(&h->loop, &h->recovery.deadline);
	h->state = HEAD_RUNNING;
	report_restart(h);
	watch_rollback_done(h);
	leave_over(h);
	head_profile_turn(h);
	if (h->recovery.target)
		head_say(h, "all ranks run again from checkpoint %u, %s later", h->recovery.target,
			 units_show_seconds(clock_seconds() - h->recovery.began, took));
	record_begin(&j, "restored");
	json_uint(&j, "checkpoint", h->recovery.target);
	json_uint(&j, "generation", h->generation);
	record_end(&h->record, &j);
	succession_save(h);
	checkpoint_interval_start(h);
	recover_check_start(h);
	warm_again(h);
	checkpoint_poll(h);
}

/* Ranks run from images that turn out to be damaged: nothing they did counts. */
static void run_from_damage(struct head *h, uint32_t rank)
{
	recover_reject(h);
	head_roll_back(h);
}

static void restored_done(struct head *h, uint32_t rank)
{
	head_all_gone_soon(h);
	restored_one(h, rank);
}

/* Before it had become the image: the image is to blame, unless somebody killed the process. */
static void restored_failed(struct head *h, uint32_t rank)
{
	if (h->crew.ranks[rank].met) {
		h->state = HEAD_RUNNING;
		fail_rank(h, rank);
		return;
	}
	head_say(h, "checkpoint %u is refused: rank %u could not be rebuilt from it",
		 h->recovery.target, rank);
	if (h->ranks[rank].exit_status == PROTO_EXIT_IMAGE_BAD)
		recover_reject(h);
	else
		recover_pass_over(h);
	head_roll_back(h);
}

static void restored_killed(struct head *h, uint32_t rank)
{
	loop_timer_clear(&h->loop, &h->recovery.deadline);
	h->state = HEAD_RUNNING;
	kill_rank(h, rank);
}

static void restored_late(struct head *h, uint32_t rank)
{
	head_say(h, "checkpoint %u was not restored in time", h->recovery.target);
	recover_reject(h);
	head_roll_back(h);
}

static void recover(struct head *h, uint32_t rank)
{
	recover_start(h);
}

static void gone_on(struct head *h, uint32_t rank)
{
	head_all_gone_soon(h);
}

static void stop(struct head *h, uint32_t rank)
{
	head_end(h, 128 + SIGTERM);
}

/* In the table order of head_event_t; NULL: nothing to do. */
static const head_action actions[HEAD_STATES][HEAD_EVENTS] = {
    /* READY, DONE, FAILED, KILLED, GONE, NODES_READY, NODE_LOST, DAMAGED, TIMEOUT, STOP */
    [HEAD_STARTING] = {NULL, NULL, NULL, NULL, NULL, begin_job, NULL, NULL, NULL, stop},
    [HEAD_RUNNING] = {rank_ready, rank_done, fail_rank, kill_rank, finish, NULL, lose_node,
		      run_from_damage, NULL, stop},
    [HEAD_CLEARING] = {NULL, gone_on, gone_on, gone_on, recover, NULL, lose_another, NULL, NULL,
		       stop},
    [HEAD_RESTORING] = {restored_one, restored_done, restored_failed, restored_killed, finish, NULL,
			lose_at_restore, NULL, restored_late, stop},
    [HEAD_ENDING] = {NULL, gone_on, gone_on, gone_on, finish, NULL, gone_on, NULL, NULL, NULL},
    [HEAD_ENDED] = {NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL},
};

void head_event(struct head *h, head_event_t event, uint32_t rank)
{
	head_action action = actions[h->state][event];

	if (head_put_off(h, event, rank))
		return;
	if (action)
		action(h, rank);
}

/* What the end of a launched process means. */
static head_event_t judge_end(struct head *h, uint32_t rank, int status)
{
	struct head_rank *r = &h->ranks[rank];
	const struct crew_rank *k = &h->crew.ranks[rank];
	bool in_between = k->initialized && !k->finalized && k->mpi;

	r->ended = true;
	r->exit_status = shell_status(status);
	loop_timer_clear(&h->loop, &r->lost);
	if (r->aborted) {
		r->exit_status = r->abort_code & 0xff ? r->abort_code & 0xff : 1;
		return EVENT_RANK_FAILED;
	}
	if (WIFSIGNALED(status))
		return EVENT_RANK_KILLED;
	/* a shell around the program says it this way */
	if (in_between && k->member != k->group && r->exit_status > 128 &&
	    r->exit_status < 128 + 65)
		return EVENT_RANK_KILLED;
	return r->exit_status != 0 || in_between ? EVENT_RANK_FAILED : EVENT_RANK_DONE;
}

/* The first that ends badly gives hale's exit status; of those that end badly together, after
 * MPI_Finalize, the one with the lowest rank. */
void head_rank_ended(struct head *h, uint32_t rank, int status)
{
	head_event_t event = judge_end(h, rank, status);

	if (h->state == HEAD_ENDING && h->ranks[rank].exit_status != 0 &&
	    (!h->exit_decided || (h->polite && rank < h->exit_rank))) {
		h->exit_decided = true;
		h->exit_status = h->ranks[rank].exit_status;
		h->exit_rank = rank;
	}
	head_event(h, event, rank);
}
