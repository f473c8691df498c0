/* SPDX-License-Identifier: BSD-3-Clause */
/* Schedules: a collective operation as rounds of steps over messages, made at entry and kept in
 * private memory. Nonblocking collectives are schedules; so are blocking ones whose members can't
 * use shared cells. Progress moves them on, so a checkpoint needs nothing but their memory.
 *
 * In a round the local steps (copy, reduce) run first, in their order; then all its messages
 * start; the round ends when they have completed. Messages travel in the collective context
 * under a tag that counts the communicator's schedules, so that several may be under way. A
 * persistent operation keeps the tag of its initialisation.
 */
#ifndef HALE_COLL_SCHEDULE_H
#define HALE_COLL_SCHEDULE_H

#include "coll/args.h"
#include "match/match.h"

struct schedule;

/* NULL: no memory. Counts: every member of c makes its schedules in the same order. */
struct schedule *schedule_create(struct comm *c);
/* For schedules among some members of c, which these make with schedule_create_tagged: every member
 * counts them. The first of two tags. */
int schedule_tag_pair(struct comm *c);
int schedule_tag_of(int pair, int which);
/* For persistent operations, which all members initialise in the same order and start in any: each
 * start takes the tag that the initialisation got. */
int schedule_tag_lasting(struct comm *c);
/* Counts nothing: tag, above all counts (bit 30), of a pair, or a lasting one, tells it from all
 * others under way. */
struct schedule *schedule_create_tagged(struct comm *c, int tag);
void schedule_destroy(struct schedule *s);

/* Steps. Types and operations are retained until the end; buffers are the caller's or temporary.
 * When memory is lacking the schedule remembers it, and running it gives MPI_ERR_NO_MEM. */
void schedule_send(struct schedule *s, struct coll_block b, int peer);
void schedule_recv(struct schedule *s, struct coll_block b, int peer);
void schedule_copy(struct schedule *s, struct coll_block dst, struct coll_block src);
/* inout = in op inout, both of inout's count and type */
void schedule_reduce(struct schedule *s, struct op *op, const void *in, struct coll_block inout);
void schedule_round(struct schedule *s); /* what follows waits for what came before */

/* This member can't: running the schedule gives that error class. */
void schedule_fail(struct schedule *s, int error);

/* For intercommunicators: following steps are among the local group, or (false) with the remote. */
void schedule_among_local(struct schedule *s, bool local);

/* Memory for count elements of t, as long as the schedule: the address is as MPI's, data begin at
 * coll_low. Room is there for a span of all elements. */
void *schedule_temp(struct schedule *s, const struct datatype *t, size_t count);

/* Runs it to the end and destroys it; or hands it to progress under a request. */
int schedule_run(struct schedule *s);
int schedule_start(struct schedule *s, struct request **req);
/* Under a persistent request, which keeps it: the caller destroys it when that has completed. */
int schedule_restart(struct schedule *s, struct request *r);

/* Ends a started one whose result nobody waits for any more, and frees the request. False:
 * something of it is still leaving; nothing has changed. */
bool schedule_abandon(struct request *req);

/* Makes the schedule of a call (plans.c) and runs or starts it. */
int schedule_run_args(const struct coll_args *a);
int schedule_start_args(const struct coll_args *a, struct request **req);
int schedule_start_tagged(const struct coll_args *a, int tag, struct request **req);

/* Is any of this process's? */
bool schedule_under_way(void);

/* Progress hook; and standing still during a checkpoint. */
int schedule_progress(void);
void schedule_suspend(bool on);

#endif
