/* SPDX-License-Identifier: BSD-3-Clause */
/* What the parts of the head ask of those above them. A part calls the parts below it by their
 * headers; upward it calls one of these, which head_calls.c fills, so that no two parts call each
 * other:
 *
 *   head ─▶ control ─▶ failover ─▶ recovery ─▶ migration ─▶ checkpoint ─▶ levels ─▶ watch, standby
 *     ▲                                                                        ─▶ nodes ─▶ output
 *     └────────────────── struct head_calls ◀── any of them
 */
#ifndef HALE_HEAD_HEAD_CALLS_H
#define HALE_HEAD_HEAD_CALLS_H

struct proto_sdc;
struct head_calls {
	void (*event)(struct head *h, job_event_t event, uint32_t rank);
	void (*step)(struct head *h, job_event_t event, uint32_t rank);
	void (*end)(struct head *h, int exit_status);
	void (*roll_back)(struct head *h);
	void (*rank_ended)(struct head *h, uint32_t rank, int status);
	void (*replica_returned)(struct head *h, uint32_t process, const struct report_clone *c);
	void (*all_gone_soon)(struct head *h);
	hale_status_t (*launch_all)(struct head *h, struct error *err);
	hale_status_t (*adopt)(struct head *h, const struct node *nodes, uint32_t count,
			       struct error *err);
	bool (*unsettled)(const struct head *h);
	void (*settled)(struct head *h);
	void (*settled_soon)(struct head *h);
	void (*partition_moved)(struct head *h);
	void (*view_changed)(struct head *h);
	void (*view_restored)(struct head *h);
	bool (*survive_node)(struct head *h, const struct node *node);
	void (*silent_error)(struct head *h, uint32_t process, const struct proto_sdc *sdc);
	void (*visits_go_on)(struct head *h);
	void (*save)(struct head *h);
	bool (*superseded)(struct head *h);
	void (*checkpoint_over)(struct head *h, const char *folder, const char *why);
	void (*migrated)(struct head *h, uint32_t id, const struct report_migration *m,
			 const struct error *why);
	hale_status_t (*request_checkpoint)(struct head *h, ckpt_origin_t origin,
					    struct error *err);
	void (*checkpoint_saved)(struct head *h);
	void (*checkpoint_failed)(struct head *h, const char *why);
	void (*sweep)(struct head *h);
	bool (*drop_files)(struct head *h);
	bool (*checking)(const struct head *h);
	bool (*visiting)(const struct head *h);
	bool (*migrating)(const struct head *h);
	bool (*migration_stops)(const struct head *h);
	hale_status_t (*leave_node)(struct head *h, const char *node, const char *why,
				    struct error *err);
	const char *(*node_state)(const struct head *h, const struct node *n);
	void (*review_leaving)(struct head *h);
	void (*fetch_answer)(struct head *h, const struct node *n, const struct message *m);
	void (*fetch_stop)(struct head *h);
};
extern const struct head_calls head_calls;

/* Something has happened. While it is not known which checkpoint is the newest, some events wait
 * (head_put_off.c). */
static inline void head_event(struct head *h, job_event_t event, uint32_t rank)
{
	h->up->event(h, event, rank);
}

/* The same at once: for outcomes and decisions of the head itself. */
static inline void head_step(struct head *h, job_event_t event, uint32_t rank)
{
	h->up->step(h, event, rank);
}

/* Ends everybody and then the job, with this status unless one was decided before. */
static inline void head_end(struct head *h, int exit_status)
{
	h->up->end(h, exit_status);
}

/* Ends all ranks; they go on from the newest checkpoint. */
static inline void head_roll_back(struct head *h)
{
	h->up->roll_back(h);
}

/* A process that was dead lives again, as a copy of another one of its rank. */
static inline void head_replica_returned(struct head *h, uint32_t process,
					 const struct report_clone *c)
{
	h->up->replica_returned(h, process, c);
}

/* A launched process of this rank has ended; waitpid's status. */
static inline void head_rank_ended(struct head *h, uint32_t rank, int status)
{
	h->up->rank_ended(h, rank, status);
}

/* Raises JOB_ALL_GONE soon, if no process of the job is left. */
static inline void head_all_gone_soon(struct head *h)
{
	h->up->all_gone_soon(h);
}

/* Starts every rank at the beginning of the program, in a new segment. */
static inline hale_status_t head_launch_all(struct head *h, struct error *err)
{
	return h->up->launch_all(h, err);
}

/* Takes over a job whose agents are running; nodes as for node_set_adopt. */
static inline hale_status_t head_adopt(struct head *h, const struct node *nodes, uint32_t count,
				       struct error *err)
{
	return h->up->adopt(h, nodes, count, err);
}

/* True: a child process writes a manifest, or events that came meanwhile have still to be dealt
 * with. Until then the newest checkpoint is not known, and the head does not wait for the disk. */
static inline bool head_unsettled(const struct head *h)
{
	return h->up->unsettled(h);
}

/* A child process that wrote a manifest has ended, and the head has its result. Deals with events
 * that were put off: now, or (_soon) in the loop's next turn, when the caller is through. */
static inline void head_settled(struct head *h)
{
	h->up->settled(h);
}

static inline void head_settled_soon(struct head *h)
{
	h->up->settled_soon(h);
}

/* Ranks have moved: all that was known of ranks that can't reach each other is void. */
static inline void head_partition_moved(struct head *h)
{
	h->up->partition_moved(h);
}

/* Replicas have come back: all processes hear of the view. */
static inline void head_view_changed(struct head *h)
{
	h->up->view_changed(h);
}

/* All processes of a checkpoint of a job with replicas run again. */
static inline void head_view_restored(struct head *h)
{
	h->up->view_restored(h);
}

/* That node is lost; h->lost.why has the reason. True: all ranks live on in other replicas. */
static inline bool head_survive_node(struct head *h, const struct node *node)
{
	return h->up->survive_node(h, node);
}

/* A process has got different messages from the replicas of a rank. */
static inline void head_silent_error(struct head *h, uint32_t process, const struct proto_sdc *sdc)
{
	h->up->silent_error(h, process, sdc);
}

/* Another head has begun the visits of audits. */
static inline void head_visits_go_on(struct head *h)
{
	h->up->visits_go_on(h);
}

/* Writes the record for the head that may follow (succession.h). */
static inline void head_save(struct head *h)
{
	h->up->save(h);
}

/* Looks whether a newer head has the job; true: yes, and this one ends. */
static inline bool head_superseded(struct head *h)
{
	return h->up->superseded(h);
}

/* Answers everybody who waits for a checkpoint. folder NULL: it came to nothing, and why. */
static inline void head_checkpoint_over(struct head *h, const char *folder, const char *why)
{
	h->up->checkpoint_over(h, folder, why);
}

/* Answers who waits for this migration; m NULL: it came to nothing, and why. */
static inline void head_migrated(struct head *h, uint32_t id, const struct report_migration *m,
				 const struct error *why)
{
	h->up->migrated(h, id, m, why);
}

/* checkpoint_request */
static inline hale_status_t head_request_checkpoint(struct head *h, ckpt_origin_t origin,
						    struct error *err)
{
	return h->up->request_checkpoint(h, origin, err);
}

/* A checkpoint is whole; one has failed: whoever waits to leave a node goes on. */
static inline void head_checkpoint_saved(struct head *h)
{
	h->up->checkpoint_saved(h);
}

static inline void head_checkpoint_failed(struct head *h, const char *why)
{
	h->up->checkpoint_failed(h, why);
}

/* Has a child process remove the folders that the store has set aside. */
static inline void head_sweep(struct head *h)
{
	h->up->sweep(h);
}

/* Drops those parts of the file journal that no checkpoint needs; true: there were some. */
static inline bool head_drop_files(struct head *h)
{
	return h->up->drop_files(h);
}

/* After a lazy restart images are still being verified. */
static inline bool head_checking(const struct head *h)
{
	return h->up->checking(h);
}

/* A rank is visited by an audit, or about to leave a wrong node. */
static inline bool head_visiting(const struct head *h)
{
	return h->up->visiting(h);
}

/* migrate_busy, migrate_stops */
static inline bool head_migrating(const struct head *h)
{
	return h->up->migrating(h);
}

static inline bool head_migration_stops(const struct head *h)
{
	return h->up->migration_stops(h);
}

/* The ranks of a node go to a spare, or without one where free slots are, because of `why`, a few
 * words. OK: they will when it is their turn, and watch_left says when. Otherwise a sentence: no
 * rank is there (ARGUMENT), there is no place (NODE). */
static inline hale_status_t head_leave_node(struct head *h, const char *node, const char *why,
					    struct error *err)
{
	return h->up->leave_node(h, node, why, err);
}

/* leave_node_state */
static inline const char *head_node_state(const struct head *h, const struct node *n)
{
	return h->up->node_state(h, n);
}

/* The state of the rules may have changed. Ranks whose reason to leave a node is over stay, unless
 * they have begun to leave. */
static inline void head_review_leaving(struct head *h)
{
	h->up->review_leaving(h);
}

/* An image was fetched, or (m NULL) its node is lost. */
static inline void head_fetch_answer(struct head *h, const struct node *n, const struct message *m)
{
	h->up->fetch_answer(h, n, m);
}

/* Gives up all fetching of images. */
static inline void head_fetch_stop(struct head *h)
{
	h->up->fetch_stop(h);
}

#endif
