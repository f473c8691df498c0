/* SPDX-License-Identifier: BSD-3-Clause */
/* The handlers through which agents tell the head what happens. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include "base/base.h"
#include "head/head.h"
#include "head/control/control_serve.h"
#include "head/head_private.h"
#include "head/replicas.h"
#include "head/migration/migrate.h"
#include "head/failover/succession.h"
#include "head/failover/takeover.h"
#include "head/output/said.h"
#include "head/watch/watch.h"

#define LOST_SECONDS 1.0

#define RENEWED_SECONDS 600.0

static void on_ready(void *arg)
{
	head_event(arg, JOB_NODES_READY, 0);
}

static void cannot_begin_there(struct head *h, const struct node *node, const struct error *err)
{
	struct error named = *err;

	if (h->node_set.count > 1 || !node->local)
		error_set(&named, err->code, "node %s: %.400s", node->name, err->text);
	head_cannot_begin(h, &named);
}

static void on_failed(void *arg, const struct node *node, const struct error *err)
{
	cannot_begin_there(arg, node, err);
}

/* A node without a lease is about to be lost, or gets one again: then it starts the rank. */
static bool on_not_spawned(void *arg, uint32_t rank, const struct error *err)
{
	struct head *h = arg;

	if (err->code == HALE_ERR_STATE && (h->state == JOB_RUNNING || h->state == JOB_RESTORING))
		return true;
	if (err->code != HALE_ERR_STATE) {
		h->ranks[rank].ended = true;
		cannot_begin_there(h, node_set_node_of(&h->node_set, rank), err);
	}
	head_event(h, JOB_RANK_DONE, rank);
	return false;
}

/* Some rank there that had not ended; false: none. */
static bool had_rank(const struct head *h, const struct node *node, uint32_t *rank)
{
	for (uint32_t r = 0; h->node_set.laid_out && r < h->nranks; r++) {
		if (h->node_set.placement.node_of[r] == node->index && !h->ranks[r].ended) {
			*rank = r;
			return true;
		}
	}
	return false;
}

static void on_copied(void *arg, const struct node *node, const struct message *m)
{
	levels_copied(arg, node, m);
}

static void on_lost(void *arg, const struct node *node, const char *why)
{
	struct head *h = arg;
	struct error err;
	uint32_t rank;

	snprintf(h->lost.name, sizeof(h->lost.name), "%s", node->name);
	snprintf(h->lost.why, sizeof(h->lost.why), "%s", why);
	watch_nodes(h);
	if (h->state == JOB_RUNNING || h->state == JOB_CLEARING || h->state == JOB_RESTORING)
		levels_node_lost(h, node);
	succession_save(h);
	if (replicas_survive_node(h, node))
		return;
	if (h->state == JOB_STARTING && !node->spare) {
		error_set(&err, HALE_ERR_NODE, "node %s can't be used: %s", node->name, why);
		head_cannot_begin(h, &err);
	} else if (migrate_node_lost(h, node, &rank) || had_rank(h, node, &rank)) {
		head_event(h, JOB_NODE_LOST, rank);
	} else if (h->state != JOB_ENDING && h->state != JOB_ENDED) {
		head_say(h, "node %s, which has no ranks, is lost (%s); the job goes on",
			 node->name, why);
	}
}

/* So many agents of a node that die within RENEWED_SECONDS are too many; 0: none are. Those that
 * die faster the supervisor counts. */
static uint32_t too_often(void)
{
	const char *text = getenv("HALE_AGENT_DEATHS");
	long count = 12;

	if (text && !units_parse_int(text, 0, 1000000, &count))
		log_warn("HALE_AGENT_DEATHS=%s is no number of deaths; it is %ld", text, count);
	return (uint32_t)count;
}

/* Each death costs next to nothing, but whatever they die of is not well, and ends moves and what
 * else passes through an agent. */
static void leave_if_often(struct head *h, struct node *n)
{
	double now = clock_seconds();
	struct error err;
	char why[64];

	if (n->agent.renewed == 0 || now - n->agent.renewed_since > RENEWED_SECONDS) {
		n->agent.renewed = 0;
		n->agent.renewed_since = now;
	}
	if (++n->agent.renewed != too_often())
		return;
	snprintf(why, sizeof(why), "%u agents of node %.20s have died within %.0f min",
		 n->agent.renewed, n->name, RENEWED_SECONDS / 60);
	watch_mark(h, n->index, true, why);
	watch_nodes(h);
	if (h->state != JOB_RUNNING || node_set_ranks_on(&h->node_set, n) == 0)
		head_say(h, "%s: it gets no ranks any more if others can have them", why);
	else if (head_leave_node(h, n->name, why, &err) != HALE_OK)
		head_say(h, "%s", err.text);
}

/* It costs a moment, and what passed through the agent. */
static void on_renewed(void *arg, struct node *n, const char *why)
{
	struct head *h = arg;
	struct json_out j;
	char text[192];

	head_say(h, "the agent of node %s was ended by %s; another one goes on in its place",
		 n->name, why);
	record_begin(&j, "agent replaced");
	json_string(&j, "node", n->name);
	json_string(&j, "why", why);
	record_end(&h->files.record, &j);
	h->report.agents_replaced++;
	snprintf(text, sizeof(text), "the agent of node %s was ended by %.60s", n->name, why);
	migrate_node_renewed(h, n, text);
	watch_node_renewed(h, n);
	warm_renewed(h, n);
	leave_if_often(h, n);
}

static void on_hello(void *arg, uint32_t rank)
{
	struct head *h = arg;

	h->mpi_seen = h->mpi_seen || h->node_set.ranks[rank].mpi;
	head_event(h, JOB_RANK_READY, rank);
	across_back(h);
}

static void on_packet(void *arg, uint32_t rank, const union proto_packet *p)
{
	struct head *h = arg;

	switch (p->type) {
	case PROTO_INITIALIZED:
		head_event(h, JOB_RANK_READY, rank);
		break;
	case PROTO_FINALIZED:
		checkpoint_poll(h);
		break;
	case PROTO_ABORT:
		h->ranks[rank].aborted = true;
		h->ranks[rank].abort_code = p->plain.value;
		/* it waits for us to end it */
		node_set_signal(&h->node_set, rank, SIGKILL);
		break;
	case PROTO_NET_LOST:
	case PROTO_NET_BACK:
		head_partition_told(h, rank, (uint32_t)p->plain.value, p->type == PROTO_NET_LOST);
		break;
	case PROTO_SDC:
		if (takeover_found(h, rank, &p->sdc))
			break;
		sdc_found(h, rank, &p->sdc);
		break;
	case PROTO_SHADOW:
		shadows_heard(h, rank, &p->shadow);
		break;
	case PROTO_SAID:
		if (p->said.len <= sizeof(p->said.text))
			said_line(p->said.text, p->said.len);
		break;
	case PROTO_CKPT_ASK:
		checkpoint_ask(h, rank, (uint32_t)p->plain.value);
		break;
	default:
		if (!migrate_packet(h, rank, p))
			checkpoint_packet(h, rank, p);
		break;
	}
}

/* A process computes, and calls no MPI. It hangs if another one of its rank has gone on: that one
 * has not been told of for as long. Two words in a row, since those of several agents come in any
 * order. */
static bool hangs_computing(struct head *h, uint32_t process)
{
	uint32_t rank = living_rank_of(process, h->view.nranks);
	uint32_t slot = living_slot_of(process, h->view.nranks);
	double now = clock_seconds(), before = h->ranks[process].computes_at;
	bool gone_on = false;

	if (h->degree == 1 || h->shadows.of || living_is_witness(&h->view, rank, slot))
		return false;
	h->ranks[process].computes_at = now;
	for (uint32_t s = 0; s < h->degree; s++) {
		uint32_t p = living_process(&h->view, rank, s);

		gone_on |= s != slot && living_lives(&h->view, rank, s) &&
			   !living_is_witness(&h->view, rank, s) &&
			   now - h->ranks[p].computes_at > h->o->hang_compute;
	}
	return gone_on && now - before < h->o->hang_compute;
}

/* It counts as dead, and is: then what follows is what follows the death of a rank. */
static void on_hung(void *arg, uint32_t rank, int32_t ms)
{
	struct head *h = arg;
	char took[16], who[64] = "";

	if (h->state != JOB_RUNNING || h->ranks[rank].ended || replicas_is_lost(h, rank))
		return;
	if (ms < 0 && !hangs_computing(h, rank))
		return;
	if (ms < 0) {
		head_say(
		    h,
		    "rank %u: replica %u has computed for %s without a call of MPI, while another "
		    "replica has gone on, and counts as dead",
		    living_rank_of(rank, h->view.nranks), living_slot_of(rank, h->view.nranks),
		    units_show_seconds(-ms * 1e-3, took));
		node_set_signal(&h->node_set, rank, SIGKILL);
		return;
	}
	if (h->degree > 1)
		snprintf(who, sizeof(who), "replica %u", living_slot_of(rank, h->view.nranks));
	head_say(h, "rank %u: %s has stood still for %s, stopped by a signal, and counts as dead",
		 living_rank_of(rank, h->view.nranks), who[0] ? who : "its process",
		 units_show_seconds(ms * 1e-3, took));
	node_set_signal(&h->node_set, rank, SIGKILL);
}

/* Another replica of its rank has made more calls. */
static bool mate_is_ahead(const struct head *h, uint32_t process)
{
	uint32_t rank = living_rank_of(process, h->view.nranks);

	for (uint32_t s = 0; s < h->degree; s++) {
		uint32_t p = living_process(&h->view, rank, s);

		if (p != process && !h->view.lost[p] && !living_is_witness(&h->view, rank, s) &&
		    h->ranks[p].calls > h->ranks[process].calls)
			return true;
	}
	return false;
}

/* Some process may be what others wait for: it makes no calls and waits in none, and whether it
 * hangs its own mates tell; or it is behind its mates, and catches up. */
static bool somebody_is_at_work(const struct head *h, double now)
{
	for (uint32_t p = 0; p < h->nranks; p++) {
		const struct head_rank *r = &h->ranks[p];
		bool still = now - r->calls_at > h->o->hang_wait / 4;

		/* of those in MPI_Finalize nothing is heard */
		if (!h->view.lost[p] && !r->ended && now - r->beat_at < h->o->hang_wait / 2 &&
		    (still ? !r->waits : mate_is_ahead(h, p)))
			return true;
	}
	return false;
}

/* Another one that waits and is behind its mates does so for longer: it is ended first. */
static bool waits_longest(const struct head *h, uint32_t process)
{
	for (uint32_t p = 0; p < h->nranks; p++) {
		const struct head_rank *r = &h->ranks[p];

		if (!h->view.lost[p] && !r->ended && r->beat_at > 0 && r->waits &&
		    r->calls_at < h->ranks[process].calls_at && mate_is_ahead(h, p))
			return false;
	}
	return true;
}

/* A process that stands still while its rank is further in another process hangs. What stands still
 * and is ahead waits for the others, rightly: they take what it has sent later. */
static void on_beat(void *arg, uint32_t process, uint64_t calls, bool waits)
{
	struct head *h = arg;
	struct head_rank *r = &h->ranks[process];
	double now = clock_seconds(), before = r->beat_at;
	char took[16];

	if (h->state != JOB_RUNNING || h->degree == 1 || h->shadows.of || r->ended ||
	    replicas_is_lost(h, process))
		return;
	r->beat_at = now;
	/* a job that was paused has not stood still by itself */
	if (calls != r->calls || waits != r->waits || now - before > h->o->hang_wait / 2) {
		r->calls = calls;
		r->waits = waits;
		r->calls_at = now;
		return;
	}
	if (now - r->calls_at < h->o->hang_wait || !mate_is_ahead(h, process) ||
	    (waits && (somebody_is_at_work(h, now) || now - h->hung_at < h->o->hang_wait ||
		       !waits_longest(h, process))) ||
	    living_is_witness(&h->view, living_rank_of(process, h->view.nranks),
			      living_slot_of(process, h->view.nranks)))
		return;
	head_say(h,
		 "rank %u: replica %u has waited for %s %s, while another replica has gone on, and "
		 "counts as dead",
		 living_rank_of(process, h->view.nranks), living_slot_of(process, h->view.nranks),
		 units_show_seconds(now - r->calls_at, took),
		 waits ? "in a call of MPI" : "and made no call of MPI");
	/* said once, and again if nothing follows; who has waited for it goes on now */
	r->calls_at = h->hung_at = now;
	node_set_signal(&h->node_set, process, SIGKILL);
}

static void on_ended(void *arg, uint32_t rank, int status)
{
	if (!takeover_ended(arg, rank, status) && !migrate_ended(arg, rank, status))
		head_rank_ended(arg, rank, status);
}

static void lost_for_good(void *arg)
{
	struct head_rank *r = arg;
	struct head *h = r->head;
	uint32_t rank = (uint32_t)(r - h->ranks);

	head_say(h,
		 "the process of rank %u is gone, and the one that started it goes on; it is ended",
		 rank);
	node_set_signal(&h->node_set, rank, SIGKILL);
}

/* A shell around it says soon by its exit status what has happened. If it rather goes on without
 * its rank, nothing good can come of it. */
static void on_stray(void *arg, uint32_t rank)
{
	struct head *h = arg;
	struct head_rank *r = &h->ranks[rank];

	if (h->state == JOB_RUNNING)
		loop_timer_set(&h->loop, &r->lost, LOST_SECONDS, lost_for_good, r);
}

static void on_cleared(void *arg)
{
	struct head *h = arg;

	if (node_set_alive(&h->node_set) == 0)
		head_event(h, JOB_ALL_GONE, 0);
}

static void on_checked(void *arg, const struct error *err, uint64_t resident_bytes)
{
	if (!migrate_checked(arg, err))
		checkpoint_checked(arg, err, resident_bytes);
}

static void on_looked(void *arg, uint32_t look, const struct profile *p, uint64_t progress)
{
	struct head *h = arg;

	head_profile_looked(h, look, p, progress);
	control_looked(h, look);
	if (look == h->profile.final_look) {
		head_profile_end(h);
		loop_stop(&h->loop);
	}
}

static void on_differs(void *arg, uint32_t rank, int which)
{
	struct head *h = arg;

	head_say(
	    h,
	    "since the rollback rank %u prints other text on %s than before it (a time?); what "
	    "was printed first stays",
	    rank, which == 1 ? "stdout" : "stderr");
}

static void on_laying_out(void *arg)
{
	struct head *h = arg;

	h->placing = true;
	if (!takeover_check(h))
		succession_save(h);
}

static bool on_may_grant(void *arg)
{
	return !takeover_check(arg);
}

static void on_stood(void *arg)
{
	struct head *h = arg;

	h->report.warm_sinks++;
}

static void on_warm(void *arg, struct node *n, const struct message *m)
{
	warm_message(arg, n, m);
}

/* As a program in a pipeline ends by SIGPIPE. */
static void end_unread(void *arg)
{
	struct head *h = arg;

	if (job_state_over(h->state))
		return;
	head_say(h,
		 "nobody reads the program's %s any more: the job ends (with --on-closed-output "
		 "continue it goes on)",
		 h->end.unread);
	head_end(h, 128 + SIGPIPE);
}

/* In the middle of what the node set does with some output: the end comes behind it. */
static void on_output_closed(void *arg, const char *name)
{
	struct head *h = arg;

	h->end.unread = name;
	loop_timer_set(&h->loop, &h->end.unread_end, 0, end_unread, h);
}

/* It was killed, or the head that comes after this one has asked it. */
static bool on_output_daemon_gone(void *arg)
{
	struct head *h = arg;
	struct error err;

	if (takeover_check(h))
		return false;
	head_say(h, "the process that writes the job's output was killed; some of it may be lost");
	output_daemon_leave(&h->output_daemon);
	if (head_start_output_daemon(h, &err) == HALE_OK)
		return true;
	log_warn("%s", err.text);
	head_end(h, EXIT_UNRECOVERED);
	return false;
}

struct node_set_handler head_node_set_handler(struct head *h)
{
	return (struct node_set_handler){.ready = on_ready,
					 .failed = on_failed,
					 .lost = on_lost,
					 .not_spawned = on_not_spawned,
					 .hello = on_hello,
					 .packet = on_packet,
					 .hung = on_hung,
					 .beat = on_beat,
					 .ended = on_ended,
					 .stray = on_stray,
					 .cleared = on_cleared,
					 .checked = on_checked,
					 .looked = on_looked,
					 .differs = on_differs,
					 .moved = migrate_message,
					 .events = watch_carried,
					 .copied = on_copied,
					 .warm = on_warm,
					 .stood = on_stood,
					 .renewed = on_renewed,
					 .attached = takeover_attached,
					 .no_answer = takeover_no_answer,
					 .superseded = takeover_superseded,
					 .output_daemon_gone = on_output_daemon_gone,
					 .output_closed = on_output_closed,
					 .laying_out = on_laying_out,
					 .may_grant = on_may_grant,
					 .arg = h};
}
