/* SPDX-License-Identifier: BSD-3-Clause */
/* A new head takes a job over (docs/attach.md).
 *
 *   claim the next epoch          the folder decides who gets it
 *     ─▶ cut the old output daemon   what is printed is known from then on
 *     ─▶ ask all agents
 *     ─▶ SETTLED                  when all have answered, or the old head's last lease is over
 *     ─▶ the job goes on
 *
 * Before SETTLED the new head grants nothing and gives no orders: the old head may not know yet
 * that it is none any more. */
#include "head/failover/takeover.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/base.h"
#include "launch/environment.h"
#include "wire/lease/lease.h"
#include "head/head_private.h"
#include "wire/lease/lease.h"
#include "head/migration/migrate_private.h"
#include "head/failover/succession.h"
#include "head/failover/takeover_replicas.h"
#include "head/watch/watch.h"
#include "policy/failover.h"

struct takeover {
	struct json_value *doc;
	const char *folder;
	uint64_t (*printed)[2]; /* [nranks] */
	int *status;		/* [nranks]: waitpid's, of ranks that have ended; -1 */
	bool uncertain;		/* how much was printed */
	uint64_t claimed_at;	/* … and the old output daemon was cut: lease_clock() */
	job_state_t old_state;	/* the last head's, as its record says */
	struct loop_timer settle;
	bool settled;
	uint32_t move; /* that the old head had under way; 0: none */
	bool went;
	bool broken; /* the ranks are not those of one layout */
	char why[160];
};

bool takeover_possible(const struct head *h)
{
	return h->o->head_grace > 0;
}

bool takeover_settled(const struct head *h)
{
	return !h->succession.takeover || h->succession.takeover->settled;
}

job_state_t takeover_state(const struct head *h)
{
	return takeover_settled(h) ? h->state : h->succession.takeover->old_state;
}

/* ---- a newer one ---- */

void takeover_superseded(void *head, uint32_t epoch)
{
	struct head *h = head;

	if (h->succession.superseded)
		return;
	h->succession.superseded = true;
	if (epoch > 0)
		log_warn(
		    "job %s has a newer head (number %u, this is number %u): this one ends, and "
		    "leaves the job alone",
		    h->id.job, epoch, h->succession.epoch);
	else
		log_warn("job %s is over, or has a newer head: this one ends, and leaves it alone",
			 h->id.job);
	head_step(h, JOB_SUPERSEDED, 0);
	h->end.decided = true;
	h->end.status = EXIT_SUPERSEDED;
	child_task_kill(&h->ckpt.commit);
	child_task_kill(&h->ckpt.sweep);
	child_task_kill(&h->levels.rewrite);
	child_task_kill(&h->recovery.files.undo);
	h->ckpt.phase = CKPT_IDLE; /* what is half written is for the new one to remove */
	node_set_abandon(&h->node_set);
	loop_stop(&h->loop);
}

bool takeover_check(struct head *h)
{
	uint32_t newest;

	if (!takeover_possible(h) || h->succession.epoch == 0)
		return false;
	if (h->succession.superseded)
		return true;
	newest = head_record_newest(h->files.store.job_folder);
	/* a folder that can't be read for the moment says nothing */
	if (newest == h->succession.epoch ||
	    (newest == 0 && access(h->files.store.job_folder, R_OK) != 0))
		return false;
	takeover_superseded(h, newest);
	return true;
}

/* ---- what agents say ---- */

static void breaks(struct takeover *t, const char *fmt, uint32_t rank)
{
	if (!t->broken)
		snprintf(t->why, sizeof(t->why), fmt, rank);
	t->broken = true;
}

/* again: it was there before, and its session has ended since, perhaps in the midst of what comes
 * again now. */
static void take_rank(struct head *h, uint32_t rank, const struct attach_rank *k, bool again)
{
	struct takeover *t = h->succession.takeover;
	struct node_set_rank *r = &h->node_set.ranks[rank];

	/* the end of who was about to move, or was a replica, is told once more, behind the last of
	 * its output */
	bool moves =
	    h->moves.now && h->moves.now->phase == GOING && h->moves.now->movers[rank].moves;
	bool told = moves || h->degree > 1;

	if (replicas_is_lost(h, rank)) /* the last head knew it */
		return;
	r->pid = moves ? k->member : !(k->flags & ATTACH_ENDED) ? k->pid : told ? k->group : 0;
	r->group = k->group;
	r->member = k->member;
	r->met = (k->flags & ATTACH_MET) != 0;
	r->mpi = (k->flags & ATTACH_MPI) != 0;
	r->initialized = (k->flags & ATTACH_INITIALIZED) != 0;
	r->finalized = (k->flags & ATTACH_FINALIZED) != 0;
	h->mpi_seen = h->mpi_seen || r->mpi;
	if (h->degree > 1)
		takeover_replica_prints(h, rank, k->first);
	for (int i = 0; h->degree == 1 && again && i < 2; i++)
		output_position_begin(&r->out[i], k->first[i]);
	for (int i = 0; h->degree == 1 && !again && i < 2; i++) {
		uint64_t printed = t->printed[rank][i];

		r->passed[i] = r->out[i].handed = printed == OUTPUT_DAEMON_UNKNOWN ? 0 : printed;
		output_position_go_on(&r->out[i],
				      printed == OUTPUT_DAEMON_UNKNOWN ? k->first[i] : printed,
				      k->first[i]);
	}
	if (k->flags & ATTACH_SPAWNED)
		head_rank_reset(h, rank, -1);
	else if (!h->ranks[rank].ended)
		breaks(t, "rank %u was not started", rank);
	if (k->flags & ATTACH_ENDED && !told)
		t->status[rank] = k->status;
	else if (h->recovery.target && (k->flags & ATTACH_SPAWNED) && !r->met &&
		 !(k->flags & ATTACH_ENDED && !moves))
		breaks(t, "rank %u was being rebuilt", rank);
	h->ranks[rank].aborted = (k->flags & ATTACH_ABORTED) != 0;
	h->ranks[rank].abort_code = k->abort_code;
}

static void take_input(struct head *h, const struct attach_node *a, bool again)
{
	char path[PATH_MAX + 16];
	const struct json_value *doc = h->succession.takeover->doc;
	const char *file = json_text(json_get(doc, "input_path"), NULL);

	if (again) {
		/* it has its source */
	} else if (file) {
		stdin_spool_continue_file(
		    &h->node_set.stdin_spool, file,
		    (uint64_t)json_number_int(json_get(doc, "input_start"), 0));
	} else {
		snprintf(path, sizeof(path), "%s/stdin.spool", h->succession.takeover->folder);
		stdin_spool_continue_spool(
		    &h->node_set.stdin_spool, path,
		    (uint64_t)json_number_int(json_get(doc, "input_begin"), 0),
		    a->input_ended != 0);
	}
	stdin_spool_go_on(&h->node_set.stdin_spool, a->input, a->input_waiting,
			  a->input_open != 0 && a->input_ended == 0);
}

static void settle_if_all(struct head *h);

void takeover_attached(void *head, struct node *n, const struct message *m)
{
	struct head *h = head;
	struct takeover *t = h->succession.takeover;
	struct attach_rank *ranks = malloc(m->len - sizeof(struct attach_node)); /* aligned */
	struct attach_node a;
	bool again = n->attach.described;

	if (!ranks) {
		takeover_no_answer(h, n, "out of memory for it");
		return;
	}
	memcpy(&a, m->bytes, sizeof(a));
	memcpy(ranks, (const char *)m->bytes + sizeof(a), m->len - sizeof(a));
	n->attach.described = true;
	n->state = n->spare ? NODE_SPARE : NODE_READY;
	n->cores = a.cores;
	a.host[sizeof(a.host) - 1] = '\0';
	snprintf(n->host, sizeof(n->host), "%s", a.host);
	if (n->local)
		n->agent.pid = a.pid;
	n->paused = a.paused != 0;
	n->attach.generation = a.generation;
	if (a.last_id > h->ckpt.id)
		h->ckpt.id = a.last_id;
	if (a.generation > h->generation)
		h->generation = a.generation;
	if (a.move > h->generation)
		h->generation = a.move;
	if (a.view > h->view.number)
		h->view.number = a.view;
	n->attach.move = a.move;
	n->attach.move_stop = a.move_stop;
	n->attach.move_went = a.move_went != 0;
	if (a.generation != h->node_set.generation && !migrate_is_behind(h, n))
		breaks(t, "the newest layout had not reached node %u", n->index);
	if (a.move && !migrate_is_behind(h, n)) {
		t->move = a.move;
		t->went = t->went || a.move_went;
	}
	migrate_attached(h, n, ranks);
	for (uint32_t r = 0; r < h->nranks; r++) {
		if (h->node_set.placement.node_of[r] != n->index)
			continue;
		take_rank(h, r, &ranks[r], again);
		if (r == 0 && (ranks[r].flags & ATTACH_HERE))
			take_input(h, &a, again);
	}
	free(ranks);
	settle_if_all(h);
}

void takeover_no_answer(void *head, struct node *n, const char *why)
{
	struct head *h = head;

	log_info("node %s does not answer: %s", n->name, why);
	n->end.silent = true;
	settle_if_all(h);
}

uint64_t takeover_printed(const struct head *h, uint32_t rank, int stream)
{
	return h->succession.takeover ? h->succession.takeover->printed[rank][stream] : 0;
}

bool takeover_ended(struct head *h, uint32_t rank, int status)
{
	if (!h->succession.takeover || h->succession.takeover->settled)
		return false;
	h->succession.takeover->status[rank] = status;
	return true;
}

/* ---- settled ---- */

/* As EVENT_RANK_…: what has happened to ranks while nobody looked. */
static void tell_ends(struct head *h)
{
	for (uint32_t r = 0; r < h->nranks && h->state == JOB_RUNNING; r++) {
		int status = h->succession.takeover->status[r];

		if (status >= 0 && !migrate_ended(h, r, status))
			head_rank_ended(h, r, status);
		else if (h->ranks[r].aborted)
			node_set_signal(&h->node_set, r, SIGKILL);
	}
}

static void go_back(struct head *h, const char *why)
{
	if (recover_possible(h)) {
		head_say(h, "%s when the last head ended: all ranks go back to %s", why,
			 recover_newest(h) ? "the newest checkpoint" : "the beginning");
		leave_inherit(h, true);
		head_roll_back(h);
		return;
	}
	head_say(h,
		 "%s when the last head ended, and there is no checkpoint to go back to: the "
		 "job ends",
		 why);
	head_end(h, EXIT_UNRECOVERED);
}

static void lose_missing(struct head *h)
{
	for (uint32_t k = 0; k < h->node_set.count; k++) {
		struct node *n = &h->node_set.nodes[k];
		char why[sizeof(n->end.why)];

		if (n->state == NODE_LOST || n->attach.done)
			continue;
		snprintf(why, sizeof(why), "%.100s",
			 n->end.why[0] ? n->end.why : "no answer from it");
		node_set_lost_for_good(n, why);
	}
}

static uint32_t moving_from(const struct head *h)
{
	int64_t k = json_number_int(json_get(h->succession.takeover->doc, "moving_from"), 0);

	return k >= 0 && k < h->node_set.count ? (uint32_t)k : 0;
}

/* The old head knew it, and had not gone back yet. */
static bool ranks_on_lost_nodes(const struct head *h)
{
	for (uint32_t r = 0; r < h->nranks; r++)
		if (!h->ranks[r].ended && node_set_node_of(&h->node_set, r)->state == NODE_LOST)
			return true;
	return migrate_to_lost(h);
}

/* Where the ranks are, or are to be, by these two records of one head. */
static bool same_layout(const struct json_value *a, const struct json_value *b)
{
	const struct json_value *of = json_get(a, "node_of"), *too = json_get(b, "node_of");

	for (size_t i = 0; i < json_count(of); i++)
		if (json_number_int(json_at(of, i), -1) != json_number_int(json_at(too, i), -1))
			return false;
	return json_number_int(json_get(a, "last_generation"), -1) ==
		   json_number_int(json_get(b, "last_generation"), -1) &&
	       json_number_int(json_get(a, "generation"), -1) ==
		   json_number_int(json_get(b, "generation"), -1) &&
	       (json_get(a, "move") != NULL) == (json_get(b, "move") != NULL);
}

/* One that has lived until its agents heard of this one may have written down more than was read,
 * and have told them. What a head that never settled has written down is only what it had read. */
static bool last_head_went_on(const struct head *h)
{
	const struct takeover *t = h->succession.takeover;
	bool same = true, settled = false;

	for (uint32_t epoch = h->succession.epoch - 1; epoch > 0 && same && !settled; epoch--) {
		struct json_value *doc;

		if (head_record_read(t->folder, epoch, &doc, NULL) != HALE_OK)
			continue;
		same = same_layout(t->doc, doc);
		settled = json_truth(json_get(doc, "settled"), true);
		json_free(doc);
	}
	return !same;
}

static bool anybody(const struct head *h)
{
	for (uint32_t k = 0; k < h->node_set.count; k++)
		if (h->node_set.nodes[k].attach.done)
			return true;
	return false;
}

static struct failover_facts facts_of(const struct head *h)
{
	const struct takeover *t = h->succession.takeover;

	return (struct failover_facts){.recorded = t->old_state,
				       .finished = t->old_state == JOB_ENDED,
				       .laid_out = h->node_set.generation > 0,
				       .any_node = anybody(h),
				       .move_went = t->went,
				       .broken = t->broken,
				       .record_outdated = last_head_went_on(h),
				       .ranks_on_lost_node = ranks_on_lost_nodes(h),
				       .move_before_go = t->move != 0};
}

/* The ranks are left to run as they do, or go back. */
static void follow(struct head *h)
{
	struct failover_facts facts = facts_of(h);
	const char *why;

	switch (failover_choose(&facts, &why)) {
	case FAILOVER_ROLL_BACK:
		go_back(h, why ? why : h->succession.takeover->why);
		break;
	case FAILOVER_GIVE_UP_MOVE:
		migrate_inherit(
		    h, h->succession.takeover->move, moving_from(h),
		    json_truth(json_get(h->succession.takeover->doc, "cloning"), false));
		break;
	case FAILOVER_GO_ON:
		migrate_go_on(h);
		break;
	default: /* the job ends: go_on has seen to it */
		break;
	}
	if (h->state != JOB_RUNNING)
		return;
	tell_ends(h);
	/* all of them may have ended on nodes that have gone since */
	head_all_gone_soon(h);
}

static void kill_ranks_of(struct head *h, uint32_t k)
{
	node_set_tell(&h->node_set, k,
		      &(struct message){.type = MSG_SIGNAL, .rank = MESSAGE_ALL, .value = SIGKILL});
}

static void go_on(struct head *h)
{
	struct failover_facts facts = facts_of(h);
	const char *why;

	switch (failover_choose(&facts, &why)) {
	case FAILOVER_NOTHING_LEFT:
		log_warn("nothing is left of job %s; `hale restart %s` goes on from its last "
			 "checkpoint, if it has one",
			 h->id.job, h->succession.takeover->folder);
		h->end.stopping = true;
		head_end(h, EXIT_UNRECOVERED);
		break;
	case FAILOVER_NOTHING_BEGUN:
		head_say(h, "the last head of job %s ended before it had begun; the job ends",
			 h->id.job);
		/* its record says so; it may have found no room to write down that they had */
		for (uint32_t k = 0; k < h->node_set.count; k++)
			if (h->node_set.nodes[k].attach.done)
				kill_ranks_of(h, k);
		/* without a layout nobody's end can be told; agents say when nothing is left */
		for (uint32_t r = 0; r < h->nranks; r++)
			h->node_set.ranks[r].pid = 0;
		head_end(h, EXIT_UNRECOVERED);
		break;
	case FAILOVER_END:
		head_end(h, h->end.status);
		break;
	default:
		break;
	}
	/* a lost node may be what the job goes back for */
	lose_missing(h);
	if (h->state == JOB_RUNNING)
		follow(h);
}

/* A node of an older layout than another one has was given up by the old head after it had written
 * down what we know: its ranks may be elsewhere. They stand still, and must not go on. */
static void end_obsolete(struct head *h)
{
	uint32_t newest = h->node_set.generation;

	for (uint32_t k = 0; k < h->node_set.count; k++)
		if (h->node_set.nodes[k].attach.done &&
		    h->node_set.nodes[k].attach.generation > newest)
			newest = h->node_set.nodes[k].attach.generation;
	for (uint32_t k = 0; k < h->node_set.count; k++)
		if (h->node_set.nodes[k].attach.done &&
		    h->node_set.nodes[k].attach.generation < newest &&
		    !(newest == h->node_set.generation &&
		      migrate_is_behind(h, &h->node_set.nodes[k])))
			kill_ranks_of(h, k);
}

static void settle(void *arg)
{
	struct head *h = arg;
	struct takeover *t = h->succession.takeover;

	if (t->settled || head_superseded(h))
		return;
	t->settled = true;
	loop_timer_clear(&h->loop, &t->settle);
	end_obsolete(h);
	/* before anybody hears where copies can be reached */
	migrate_go_again(h);
	node_set_adopted(&h->node_set);
	for (uint32_t k = 0; k < h->node_set.count; k++)
		if (h->node_set.nodes[k].attach.done && h->node_set.nodes[k].paused)
			node_set_tell(&h->node_set, k,
				      &(struct message){.type = MSG_PAUSE, .value = 0});
	head_step(h, JOB_TAKEN_OVER, 0);
	watch_job_begun(h);
	if (!anybody(h)) {
		go_on(h);
		return;
	}
	if (t->uncertain)
		log_warn("how much of the output was printed is not known for certain: some of it "
			 "may come twice");
	node_set_refuse_asks(&h->node_set);
	levels_learn(h);
	takeover_replicas_settle(h, t->old_state);
	go_on(h);
	across_back(h);
	if (h->state == JOB_RUNNING || h->state == JOB_CLEARING)
		levels_inherit(h, json_get(t->doc, "levels"));
	if (h->state == JOB_RUNNING)
		leave_inherit(h, false);
	takeover_replicas_go_on(h, t->old_state);
	if (h->state == JOB_RUNNING) {
		h->begin_said = true;
		head_say(h, "job %s has a head again (number %u)", h->id.job, h->succession.epoch);
		checkpoint_prune(h); /* the last head may not have come to it */
		checkpoint_interval_start(h);
		warm_again(h);
		head_profile_turn(h);
	}
	head_save(h);
}

/* A loop later: what agents have said before their answers' ends is heard first. */
static void settle_if_all(struct head *h)
{
	struct takeover *t = h->succession.takeover;
	uint64_t until, now = lease_clock(), term = h->node_set.config.setup.lease_ns;
	bool all = true;

	/* a single node has no lease, and may be slow like any other */
	if (term == 0)
		term = (uint64_t)(h->o->node_timeout * 1e9);
	for (uint32_t k = 0; k < h->node_set.count; k++) {
		const struct node *n = &h->node_set.nodes[k];

		all = all &&
		      (n->state == NODE_LOST || n->attach.done || (n->end.silent && n->end.gone));
	}
	if (t->settled)
		return;
	until = lease_lost_at(term, t->claimed_at);
	loop_timer_set(&h->loop, &t->settle, all || until <= now ? 0 : (double)(until - now) * 1e-9,
		       settle, h);
}

/* ---- beginning ---- */

static void record_attached(struct head *h)
{
	struct json_out j;

	record_begin(&j, "attached");
	json_uint(&j, "epoch", h->succession.epoch);
	json_int(&j, "head_pid", getpid());
	json_string(&j, "node", h->id.node);
	record_end(&h->files.record, &j);
}

static hale_status_t check_place(const struct head *h, struct error *err)
{
	const char *place = json_text(json_get(h->succession.takeover->doc, "place"), "");
	char here[128];

	succession_place(here);
	if (!json_truth(json_get(h->succession.takeover->doc, "local"), true) ||
	    strcmp(place, here) == 0)
		return HALE_OK;
	return error_set(err, HALE_ERR_STATE,
			 "the ranks of job %s are on machine %s (or were, before it was booted, or "
			 "are in another network namespace): a head for them has to be there",
			 h->id.job,
			 json_text(json_get(h->succession.takeover->doc, "head_host"), "?"));
}

hale_status_t takeover_begin(struct head *h, struct error *err)
{
	struct takeover *t = h->succession.takeover;
	struct node *nodes = NULL;
	uint32_t count = 0;
	hale_status_t status = check_place(h, err);

	if (status == HALE_OK)
		status = succession_restore(t->doc, h, &nodes, &count, err);
	if (status == HALE_OK)
		status = head_open_store(h, err);
	h->succession.epoch++;
	/* the new file says what the old one said until we know better */
	t->old_state = (job_state_t)json_number_int(json_get(t->doc, "state"), JOB_RUNNING);
	h->node_set.nodes = nodes;
	h->node_set.count = count;
	if (status == HALE_OK)
		status = migrate_follow(h, json_get(t->doc, "move"), err);
	if (status == HALE_OK)
		status = succession_claim(h, err);
	h->node_set.nodes = NULL;
	h->node_set.count = 0;
	if (status != HALE_OK) {
		h->succession.epoch = 0;
		free(nodes);
		return status;
	}
	t->uncertain =
	    !output_daemon_cut(h->id.job, h->succession.epoch - 1, h->nranks, t->printed);
	/* however long that took, agents have as long to answer */
	t->claimed_at = lease_clock();
	status = head_adopt(h, nodes, count, err);
	free(nodes);
	for (uint32_t r = 0; h->node_set.ranks && !t->uncertain && r < h->nranks; r++)
		for (int i = 0; i < 2; i++)
			output_position_go_on(&h->node_set.ranks[r].out[i], t->printed[r][i],
					      t->printed[r][i]);
	if (h->node_set.ranks)
		takeover_replicas_begin(h);
	if (status == HALE_OK) {
		record_attached(h);
		settle_if_all(h); /* of nodes that are all lost nobody answers */
	}
	return status;
}

/* ---- hale attach ---- */

static int fail(const struct error *err, int status)
{
	log_warn("%s", err->text);
	return status;
}

static int run(struct takeover *t, uint32_t epoch, const struct takeover_start *start)
{
	struct program *program = calloc(1, sizeof(*program));
	char libdir[PATH_MAX], ckpt_dir[PATH_MAX], job[JOB_ID_MAX];
	struct options o = {0};
	struct error err;
	int exit_status = EXIT_USAGE;

	if (!program)
		return EXIT_USAGE;
	snprintf(ckpt_dir, sizeof(ckpt_dir), "%s", start->folder);
	*strrchr(ckpt_dir, '/') = '\0';
	snprintf(job, sizeof(job), "%s", json_text(json_get(t->doc, "job"), "?"));
	if (succession_options(t->doc, &o, program, &err) != HALE_OK ||
	    environment_find_libdir(libdir, &err) != HALE_OK) {
		fail(&err, EXIT_USAGE);
	} else {
		o.ckpt_dir = ckpt_dir;
		if (start->report)
			o.report = start->report;
		t->folder = start->folder;
		long processes = o.ranks * o.replicas;

		t->printed = calloc((size_t)processes, sizeof(*t->printed));
		t->status = malloc((size_t)processes * sizeof(*t->status));
		for (long r = 0; t->status && r < processes; r++)
			t->status[r] = -1;
		exit_status = t->printed && t->status
				  ? start->head(&(struct head_start){.options = &o,
								     .program = program,
								     .libdir = libdir,
								     .agent = start->agent,
								     .job = job,
								     .takeover = t,
								     .epoch = epoch})
				  : EXIT_USAGE;
	}
	free(o.program);
	free(t->printed);
	free(t->status);
	free(program);
	return exit_status;
}

int takeover_run(const struct takeover_start *start)
{
	struct takeover t = {.folder = start->folder};
	uint32_t epoch = head_record_newest(start->folder);
	struct error err;
	int status;

	if (epoch == 0) {
		error_set(&err, HALE_ERR_IMAGE_MISSING,
			  "'%s' is not the folder of a job that waits for a head: it has ended, or "
			  "was started without --head-grace",
			  start->folder);
		return fail(&err, EXIT_USAGE);
	}
	if (head_record_read(start->folder, epoch, &t.doc, &err) != HALE_OK)
		return fail(&err, EXIT_USAGE);
	if (json_truth(json_get(json_get(t.doc, "options"), "verbose"), false))
		log_set_level(LOG_INFO);
	status = run(&t, epoch, start);
	json_free(t.doc);
	return status;
}
