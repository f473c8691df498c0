/* SPDX-License-Identifier: BSD-3-Clause */
/* One coordinated checkpoint, the head's side: look, ask, wait until every rank runs on and every
 * image is whole. The writing down is in checkpoint_write.c.
 *
 *   IDLE ─request─▶ CHECKING ─all can be─▶ CAPTURING ─all RESUMED─▶ WRITING ─all WRITTEN─┐
 *                      │ refused               └─ a failure, a death, no answer ─┴─▶ IDLE │
 *                      └─▶ IDLE                                            (given up)     │
 *   IDLE ◀── the child that writes and syncs the manifest has ended ── COMMITTING ◀───────┘
 *
 * Whoever would give one up that is COMMITTING comes when the child has ended (head_unsettled).
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "head/head.h"
#include "head/head_private.h"
#include "head/migration/migrate.h"
#include "journal/undo.h"
#include "head/failover/succession.h"
#include "head/watch/watch.h"

enum { CHAIN_LENGTH = 8 };
#define OUTPUT_SECONDS 0.02

void checkpoint_init(struct head *h)
{
	failure_history_read(&h->ckpt.timed.past);
	h->ckpt.ranks = calloc(h->nranks, sizeof(*h->ckpt.ranks));
	h->ckpt.chain.broken = true;
	child_task_init(&h->ckpt.commit, "the process that writes its manifest was ended");
	child_task_init(&h->ckpt.sweep, "the process that removes checkpoints was ended");
}

void checkpoint_fini(struct head *h)
{
	checkpoint_abandon(h, "the job has ended");
	/* a head that came later may have completed none */
	if (!h->succession.superseded && !h->node_set.abandoned)
		checkpoint_prune(h);
	h->levels.todo_count = 0;
	levels_settle(h);
	head_checkpoint_over(h, NULL, "the job has ended");
	loop_timer_clear(&h->loop, &h->ckpt.timed.interval);
	loop_timer_clear(&h->loop, &h->ckpt.watch);
	loop_timer_clear(&h->loop, &h->ckpt.wait.again);
	loop_timer_clear(&h->loop, &h->ckpt.wait.required);
	levels_unfill(&h->ckpt.manifest);
	free(h->ckpt.manifest.parts);
	h->ckpt.manifest.parts = NULL;
	checkpoint_sweep_end(h);
	child_task_fini(&h->ckpt.commit);
	child_task_fini(&h->ckpt.sweep);
	free(h->ckpt.ranks);
	h->ckpt.ranks = NULL;
}

/* ---- asking ---- */

static uint32_t flags_for(const struct head *h)
{
	uint32_t flags = 0;

	if (h->ckpt.compress == IMAGE_LZ4)
		flags |= CKPT_LZ4;
	if (h->ckpt.compress == IMAGE_ZSTD)
		flags |= CKPT_ZSTD;
	if (h->ckpt.tracks)
		flags |= CKPT_TRACK;
	if (h->o->no_fsync)
		flags |= CKPT_NOFSYNC;
	return flags | across_flags(h);
}

/* Of replicas the leader's image is that of their rank; the others stop with it and write nothing
 * (docs/redundancy.md, "Checkpoints"). The agents find the same one by the same view. With --sdc
 * all write theirs: a wrong bit in one of them is then found after a rollback, too. */
static bool writes_image(const struct head *h, uint32_t process)
{
	uint32_t rank = living_rank_of(process, h->view.nranks);

	return h->degree == 1 || h->o->sdc ||
	       living_leader(&h->view, rank) == (int)living_slot_of(process, h->view.nranks);
}

/* A rank without MPI may have ended already: its part says so. */
static void ask_rank(struct head *h, uint32_t rank)
{
	struct checkpoint *c = &h->ckpt;
	struct checkpoint_rank *k = &c->ranks[rank];

	if (replicas_is_lost(h, rank))
		return;
	if (!head_rank_alive(h, rank)) {
		k->part.exit_status = h->ranks[rank].exit_status;
		for (int i = 0; i < 2; i++)
			k->part.position[i + 1] = h->node_set.ranks[rank].out[i].history.printed;
		return;
	}
	k->asked = true;
	c->count.asked++;
	k->written = !writes_image(h, rank);
	if (k->written)
		return;
	snprintf(k->part.file, sizeof(k->part.file), JOB_IMAGE_NAME,
		 h->o->sdc ? rank : living_rank_of(rank, h->view.nranks));
	k->part.replicas =
	    h->view.audits ? 1 : h->moves.clones.wanted[living_rank_of(rank, h->view.nranks)];
	c->count.writers++;
}

/* One that is to survive the nodes stands on no other one. */
static uint32_t base_for(struct head *h)
{
	struct checkpoint *c = &h->ckpt;

	if (!c->changes || !c->tracked || c->shared || c->chain.broken ||
	    c->chain.length + 1 >= CHAIN_LENGTH)
		return 0;
	return c->last_id;
}

static hale_status_t prepare(struct head *h, struct error *err)
{
	struct checkpoint *c = &h->ckpt;
	hale_status_t status = head_open_store(h, err);
	uint32_t *ids;
	size_t count;

	if (status != HALE_OK)
		return status;
	count = store_list(h->files.store.job_folder, &ids);
	if (count > 0 && ids[count - 1] > c->id)
		c->id = ids[count - 1];
	free(ids);
	c->id++;
	c->shared = levels_share_next(h, c->origin == ORIGIN_USER || c->origin == ORIGIN_RULE);
	checkpoint_choose_form(h);
	c->base = base_for(h);
	h->recovery.files.journal_only = false;
	status = h->o->leave_files ? HALE_OK : journal_make(h->files.store.job_folder, err);
	return status == HALE_OK ? store_begin(&h->files.store, c->id, c->folder, err) : status;
}

static hale_status_t start(struct head *h, struct error *err)
{
	struct checkpoint *c = &h->ckpt;
	hale_status_t status;

	if (head_superseded(h))
		return error_set(err, HALE_ERR_STATE, "the job has a newer head");
	status = prepare(h, err);

	if (status != HALE_OK)
		return status;
	memset(c->ranks, 0, h->nranks * sizeof(*c->ranks));
	c->phase = CKPT_CAPTURING;
	c->wanted = c->progress.halted_said = c->progress.disk_said = false;
	c->progress.disk_at = 0;
	loop_timer_clear(&h->loop, &c->wait.again);
	c->count = (struct checkpoint_count){0};
	across_begin(h);
	c->progress.idle_looks = 0;
	c->progress.bytes_seen = 0;
	c->began = c->phase_began = c->progress.moved_at = clock_seconds();
	head_save(h);
	head_profile_turn(h);
	for (uint32_t r = 0; r < h->nranks; r++)
		ask_rank(h, r);
	node_set_checkpoint(&h->node_set, c->id, c->base, flags_for(h),
			    h->levels.on ? "" : c->folder);
	loop_timer_set(&h->loop, &c->watch, 0.25, checkpoint_watch, h);
	watch_checkpoint_begun(h);
	inject_at_checkpoint(h, c->id);
	return HALE_OK;
}

/* ---- requests ---- */

/* Sentences name images, checkpoints, ranks and processes by their numbers. */
static bool same_but_numbers(const char *a, const char *b)
{
	static const char digits[] = "0123456789";

	for (;; a++, b++) {
		a += strspn(a, digits);
		b += strspn(b, digits);
		if (*a != *b)
			return false;
		if (*a == '\0')
			return true;
	}
}

/* known: what is in the way comes to the user by itself. */
static void refused(struct head *h, const struct error *err, bool known)
{
	struct checkpoint *c = &h->ckpt;
	bool said = known || same_but_numbers(c->last_refusal, err->text);

	c->wanted = false;
	if (err->code != HALE_ERR_STATE)
		checkpoint_unprotected(h, err->text);
	snprintf(c->last_refusal, sizeof(c->last_refusal), "%s", err->text);
	if (c->origin != ORIGIN_TIMER || !said) {
		head_say(h, "no checkpoint: %s%s", err->text,
			 c->origin == ORIGIN_TIMER ? "; the job goes on and it is tried again later"
						   : "");
		watch_checkpoint_failed(h, 0, err->text);
	}
	head_checkpoint_failed(h, err->text);
	node_set_checkpoint_refuse(&h->node_set);
	head_checkpoint_over(h, NULL, err->text);
}

/* The program is about to end, or some rank isn't there yet; *wait: that will be over soon. */
static hale_status_t check_state(const struct head *h, bool *wait, struct error *err)
{
	*wait = false;
	if (head_any_finalized(h))
		return error_set(err, HALE_ERR_STATE,
				 "the program has called MPI_Finalize, so it is about to end");
	*wait = !head_all_ready(h);
	return HALE_OK;
}

void checkpoint_poll(struct head *h)
{
	struct checkpoint *c = &h->ckpt;
	struct error err;
	bool wait;

	if (!c->wanted || c->phase != CKPT_IDLE || h->state != JOB_RUNNING || head_migrating(h) ||
	    h->put_off.count > 0)
		return;
	/* a disk that has room for so many only */
	if (child_task_busy(&c->sweep))
		return;
	/* what runs from an image that may be damaged is not worth keeping yet */
	if (head_checking(h))
		return;
	if (check_state(h, &wait, &err) != HALE_OK) {
		refused(h, &err, false);
	} else if (!wait) {
		c->phase = CKPT_CHECKING;
		node_set_check(&h->node_set, false);
	}
}

/* All agents have looked at their ranks. What has happened meanwhile counts, too. */
void checkpoint_checked(struct head *h, const struct error *check, uint64_t resident_bytes)
{
	struct checkpoint *c = &h->ckpt;
	struct error err = *check;
	bool wait = false;

	if (c->phase == CKPT_WRITING && across_looked(h))
		return;
	if (c->phase != CKPT_CHECKING)
		return;
	c->phase = CKPT_IDLE;
	c->progress.bytes_expected = resident_bytes;
	if (err.code == HALE_OK)
		checkpoint_has_room(h, &err);
	if (err.code == HALE_OK && check_state(h, &wait, &err) == HALE_OK && !wait)
		start(h, &err);
	/* of a process that has died meanwhile the head hears soon, and its rank may live on */
	if (err.code == HALE_ERR_STATE && h->degree > 1 && h->state == JOB_RUNNING &&
	    !head_any_finalized(h)) {
		checkpoint_look_again(h);
		return;
	}
	if (err.code == HALE_ERR_AGAIN && checkpoint_wait(h, &err))
		return;
	if (err.code !=
	    HALE_OK) /* a rank that has just ended is told of when its agent knows how */
		refused(h, &err, check->code == HALE_ERR_STATE);
}

/* The one under way does, unless it would stay on disks of nodes, and somebody wants one that
 * doesn't. */
static void serves_as_well(struct head *h, ckpt_origin_t origin)
{
	struct checkpoint *c = &h->ckpt;

	if (!h->levels.on || (origin != ORIGIN_USER && origin != ORIGIN_RULE))
		return;
	if (c->phase == CKPT_CHECKING || c->base == 0)
		c->shared = true;
	else
		c->wanted = true;
	c->origin = origin;
}

hale_status_t checkpoint_request(struct head *h, ckpt_origin_t origin, struct error *err)
{
	struct checkpoint *c = &h->ckpt;
	const char *why = head_why_not_ready(h);

	if (job_state_over(h->state))
		return error_set(err, HALE_ERR_STATE, "the job is ending");
	if (origin != ORIGIN_TIMER)
		c->timed.asked_for = true;
	if (c->phase != CKPT_IDLE) {
		serves_as_well(h, origin);
		return HALE_OK;
	}
	if (origin == ORIGIN_USER && h->state == JOB_RUNNING && h->put_off.count == 0 && why &&
	    !head_any_finalized(h))
		return error_set(err, HALE_ERR_STATE, "%s", why);
	c->wanted = true;
	c->origin = origin;
	checkpoint_poll(h);
	return HALE_OK;
}

/* last_id: the newest checkpoint that this rank has taken part in; one that is under way and that
 * it has not been through is the one it asks for. */
void checkpoint_ask(struct head *h, uint32_t rank, uint32_t last_id)
{
	struct error err;

	if (h->ckpt.phase == CKPT_CHECKING) /* nobody has been captured yet: it will be in it */
		return;
	if (h->ckpt.phase != CKPT_IDLE && h->ckpt.ranks[rank].asked && last_id < h->ckpt.id)
		return;
	if (h->ckpt.phase != CKPT_IDLE) { /* after this one: it is in it already */
		h->ckpt.wanted = true;
		h->ckpt.origin = ORIGIN_PROGRAM;
		return;
	}
	if (h->ckpt.last_id > last_id) /* a peer's ask was served while this one travelled */
		return;
	if (checkpoint_request(h, ORIGIN_PROGRAM, &err) != HALE_OK)
		node_set_checkpoint_refuse(&h->node_set);
}

/* ---- its end ---- */

static void report_given_up(struct head *h, const char *why)
{
	struct report_checkpoint c = {.id = h->ckpt.id,
				      .base = h->ckpt.base,
				      .bytes = h->ckpt.progress.bytes_seen,
				      .seconds = clock_seconds() - h->ckpt.began,
				      .at_seconds = h->ckpt.began - h->job_began};
	struct json_out j;

	snprintf(c.why, sizeof(c.why), "%s", why);
	report_add_checkpoint(&h->report, &c);
	record_begin(&j, "checkpoint given up");
	json_uint(&j, "id", h->ckpt.id);
	json_string(&j, "why", why);
	record_end(&h->files.record, &j);
	watch_checkpoint_failed(h, h->ckpt.id, why);
}

/* Whoever waits for a checkpoint hears that there will be none. */
static void tell_none(struct head *h, const char *why)
{
	node_set_checkpoint_refuse(&h->node_set);
	head_checkpoint_over(h, NULL, why);
}

/* The ranks go on without the checkpoint under way, and its folder goes. */
static void take_back(struct head *h, const char *why)
{
	struct checkpoint *c = &h->ckpt;

	checkpoint_progress_clear(h);
	c->phase = CKPT_IDLE;
	head_profile_turn(h);
	c->chain.broken = true; /* dirty tracking was renewed for an image that isn't there */
	loop_timer_clear(&h->loop, &c->watch);
	node_set_checkpoint_cancel(&h->node_set, c->id);
	store_abandon(&h->files.store, c->id);
	checkpoint_sweep(h);
	report_given_up(h, why);
	log_info("checkpoint %u was given up: %s", c->id, why);
}

void checkpoint_abandon(struct head *h, const char *why)
{
	struct checkpoint *c = &h->ckpt;

	checkpoint_settle(h);
	checkpoint_wait_end(h);
	if (c->phase == CKPT_IDLE)
		return;
	if (c->phase == CKPT_CHECKING) { /* nothing has begun */
		c->phase = CKPT_IDLE;
		c->wanted = false;
	} else {
		take_back(h, why);
		head_checkpoint_failed(h, why);
		head_save(h);
	}
	tell_none(h, why);
}

void checkpoint_abandon_open(struct head *h, const char *why)
{
	if (h->ckpt.phase != CKPT_COMMITTING)
		checkpoint_abandon(h, why);
}

/* Without MPI its image counts, where it has one: its part says how the rank has ended. Else others
 * may stand still until all of its node have stopped. */
void checkpoint_rank_done(struct head *h, uint32_t rank)
{
	const struct checkpoint *c = &h->ckpt;

	if (!h->o->no_mpi || (c->phase == CKPT_CAPTURING && rank < h->nranks &&
			      c->ranks[rank].asked && !c->ranks[rank].resumed))
		checkpoint_abandon_open(h, "a rank has ended");
}

void checkpoint_replica_died(struct head *h)
{
	struct checkpoint *c = &h->ckpt;

	c->chain.broken = true; /* of its rank another one may write from now on */
	if (c->phase != CKPT_CAPTURING && c->phase != CKPT_WRITING)
		return;
	head_say(h, "checkpoint %u is begun again: a replica has died meanwhile", c->id);
	take_back(h, "a replica has died meanwhile");
	c->wanted = true;
	checkpoint_poll(h);
}

void checkpoint_again(struct head *h, const char *why)
{
	struct error err;

	error_set(&err, HALE_ERR_AGAIN, "%s", why);
	if (checkpoint_wait(h, &err)) {
		take_back(h, why);
		h->ckpt.wanted = true;
		return;
	}
	checkpoint_unprotected(h, why);
	head_say(h, "checkpoint %u failed, the job goes on: %s", h->ckpt.id, why);
	checkpoint_abandon(h, why);
}

static void failed(struct head *h, uint32_t rank, const struct proto_ckpt *p)
{
	bool several = h->node_set.count > 1;
	char *last = h->ckpt.last_refusal;
	char why[PROTO_TEXT + 128], name[HEAD_NAME];
	const char *text = p->text[0] ? p->text : hale_status_name((hale_status_t)p->status);
	struct error err;

	snprintf(why, sizeof(why), "%s%s%s: %s", head_name(h, rank, name),
		 several ? " on node " : "",
		 several ? node_set_node_of(&h->node_set, rank)->name : "", text);
	error_set(&err, (hale_status_t)p->status, "%s", why);
	if (err.code == HALE_ERR_AGAIN && checkpoint_wait(h, &err)) {
		take_back(h, why);
		h->ckpt.wanted = true;
		return;
	}
	checkpoint_unprotected(h, why);
	/* every interval the same would be too much */
	if (h->ckpt.origin != ORIGIN_TIMER || !same_but_numbers(last, text))
		head_say(h, "checkpoint %u failed, the job goes on: %s", h->ckpt.id, why);
	snprintf(last, sizeof(h->ckpt.last_refusal), "%s", text);
	checkpoint_abandon(h, why);
}

static void resumed(struct head *h, struct checkpoint_rank *k, const struct proto_ckpt *p)
{
	if (k->resumed)
		return;
	k->resumed = true;
	k->part.pause_seconds = (double)p->pause_ns * 1e-9;
	memcpy(k->part.position, p->position, sizeof(k->part.position));
	if (++h->ckpt.count.resumed == h->ckpt.count.asked && h->ckpt.phase == CKPT_CAPTURING) {
		h->ckpt.phase = CKPT_WRITING;
		h->ckpt.phase_began = h->ckpt.progress.moved_at = clock_seconds();
	}
}

static void written(struct head *h, struct checkpoint_rank *k, const struct proto_ckpt *p)
{
	if (k->written)
		return;
	k->written = true;
	k->part.bytes = p->bytes;
	k->part.pages = p->pages;
	k->part.pages_zero = p->pages_zero;
	k->part.checksum = p->checksum;
	k->part.seconds = p->seconds;
	h->ckpt.count.written++;
}

void checkpoint_packet(struct head *h, uint32_t rank, const union proto_packet *packet)
{
	const struct proto_ckpt *p = &packet->ckpt;
	struct checkpoint *c = &h->ckpt;
	struct checkpoint_rank *k = &c->ranks[rank];

	/* late news of one that was given up, or of the one that this rank was rebuilt from */
	if (c->phase < CKPT_CAPTURING || c->phase == CKPT_COMMITTING || p->id != c->id || !k->asked)
		return;
	switch (p->type) {
	case PROTO_CKPT_RESUMED:
		resumed(h, k, p);
		break;
	case PROTO_CKPT_WRITTEN:
		written(h, k, p);
		break;
	case PROTO_CKPT_STILL:
	case PROTO_CKPT_TAKEN:
		across_said(h, k, (enum proto_type)p->type);
		return;
	default:
		failed(h, rank, p);
		return;
	}
	checkpoint_complete_if_whole(h);
}

/* Of replicas no other one may live to print again what the writer had printed. */
static bool output_is_here(const struct head *h)
{
	for (uint32_t p = 0; p < h->nranks; p++) {
		const struct store_part *part = &h->ckpt.ranks[p].part;

		if (part->file[0] && !node_set_echo_has(&h->node_set, p, part->position))
			return false;
	}
	return true;
}

void checkpoint_complete_if_whole(struct head *h)
{
	struct checkpoint *c = &h->ckpt;

	if (c->phase != CKPT_WRITING || c->count.written != c->count.writers)
		return;
	if (!output_is_here(h)) {
		loop_timer_set(&h->loop, &c->watch, OUTPUT_SECONDS, checkpoint_watch, h);
		return;
	}
	if (across_look(h))
		return;
	checkpoint_complete(h);
	checkpoint_poll(h);
}
