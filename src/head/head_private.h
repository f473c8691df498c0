/* SPDX-License-Identifier: BSD-3-Clause */
/* What only the head's own files share. */
#ifndef HALE_HEAD_HEAD_PRIVATE_H
#define HALE_HEAD_HEAD_PRIVATE_H

#include <sys/resource.h>
#include "head/head.h"

/* head.c: a launched process of this rank has ended; waitpid's status. */
void head_take_ended(struct head *h, uint32_t rank, int status);
/* A signal has been sent to everybody: waits for their end, which gives the exit status. */
void head_end_by_request(struct head *h);

/* JOB_ALL_GONE, if nobody is left. */
void head_look_for_end(struct head *h);

/* Ends all ranks; they go on from the newest checkpoint. */
void head_roll_job_back(struct head *h);
void head_kill_all(void *head);

/* What the table's actions do (head.c): head_loss.c */
const char *head_signal_text(int sig, char buf[64]);
void head_fail_rank(struct head *h, uint32_t rank);
void head_assess_rank(struct head *h, uint32_t rank);
void head_assess_node(struct head *h, uint32_t rank);
void head_add_lost_node(struct head *h, uint32_t rank);
void head_kill_for_rollback(struct head *h, uint32_t rank);
/* ... and head_restored.c */
void head_look_back(struct head *h, uint32_t rank);
/* The same after a rollback to the beginning. */
void head_look_anew(struct head *h);
void head_look_back_done(struct head *h, uint32_t rank);
void head_go_on(struct head *h, uint32_t rank);
void head_reject_damaged(struct head *h, uint32_t rank);
void head_refuse_target(struct head *h, uint32_t rank);
void head_late_target(struct head *h, uint32_t rank);

/* A child writes a manifest, or what has happened meanwhile is not dealt with yet: which checkpoint
 * is the newest isn't known, and nobody waits for a disk to know it. */
bool head_is_unsettled(const struct head *h);
/* True: this event is dealt with later. */
bool head_put_off(struct head *h, job_event_t event, uint32_t rank);
/* Such a child has ended, and what came of it has been taken: what was put off is done now, or as
 * soon as the caller is through with what it does. */
void head_put_off_over(struct head *h);
void head_put_off_over_soon(struct head *h);
void head_put_off_fini(struct head *h);

/* Why a job that has lost a node can't go on; NULL: it can. */
const char *head_why_not_without(struct head *h);
/* The nodes of out[nodes], which have ranks, are taken out, since they are cut off from others:
 * h->lost says it of one of them. With a sentence, all go back to a checkpoint; or
 * the job ends. */
void head_cut_off(struct head *h, const bool *out);

/* All nodes are there: from the beginning, or from a checkpoint. */
void head_begin(struct head *h);

/* head_run.c: every rank from its beginning, in a new segment. */
hale_status_t head_launch_job(struct head *h, struct error *err);
/* head_run.c: the process that writes the job's output. */
hale_status_t head_start_output_daemon(struct head *h, struct error *err);
/* head_signals.c: signals to hale run come to the loop from now on. */
hale_status_t head_signals_start(struct head *h, struct error *err);
/* All ranks run again: they get what was sent to hale run meanwhile. */
void head_signals_pass(struct head *h);
/* head_nodes.c: what the head does with what its agents tell. */
struct node_set_handler head_node_set_handler(struct head *h);
/* head_ready.c: the files and folders that the job was told to write can be written. */
hale_status_t head_probe(struct head *h, struct error *err);
/* head_ready.c: says so when nodes let the job wait for its beginning. */
void head_watch_start(struct head *h);
/* head_run.c: the job can't begin, or can't begin again. */
void head_cannot_begin(struct head *h, const struct error *err);

/* head_run.c: the agents are there already, nodes as node_set_adopt wants them. */
hale_status_t head_adopt_nodes(struct head *h, const struct node *nodes, uint32_t count,
			       struct error *err);

/* recover.c: the job begins from a checkpoint. */
hale_status_t recover_begin(struct head *h, const struct store_manifest *m, const char *job_folder,
			    struct error *err);

#endif
