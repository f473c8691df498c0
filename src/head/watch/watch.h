/* SPDX-License-Identifier: BSD-3-Clause */
/* The job on the event backplane: what happens to it is published, what others say of its nodes is
 * followed by rules. docs/backplane.md has the events, docs/rules.md the rules.
 *
 *   head ── hooks below ──▶ watch_tell ──▶ bus ──▶ own broker, or tap to the machine's
 *                                           │
 *   monitors (children: hale monitor) ──────┤ events that some rule names
 *                                           ▼
 *   checkpoint_request ◀── loop, later ◀── engine of rules/ ──▶ commands, node table
 *   head_leave_node
 *
 * Invariants: no hook acts on the job: actions are carried out from the loop, later. Nothing here
 * waits, but for at most a second at the job's beginning and its end. Whatever fails costs events,
 * never the job. Handling events takes at most a tenth of a core, however many come.
 */
#ifndef HALE_HEAD_WATCH_WATCH_H
#define HALE_HEAD_WATCH_WATCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "base/error.h"
#include "base/json.h"

struct head;
struct options;
struct store_manifest;
struct watch; /* NULL in a head with --no-events */

/* The options of every --monitor, before anything starts. HALE_ERR_ARGUMENT with what `hale
 * monitor` says of wrong ones. */
hale_status_t watch_monitors_check(const struct options *o, struct error *err);

/* Before any rank is started: they inherit where the broker is. Fails only with what the user asked
 * for: rules that are wrong, monitors that there are not, a broker with --events. */
hale_status_t watch_start(struct head *h, struct error *err);
/* The last event, and the end of all that was started here. */
void watch_stop(struct head *h);

/* ---- what has happened ---- */

void watch_job_begun(struct head *h);
/* sig 0: it ended by itself, badly. */
void watch_rank_died(struct head *h, uint32_t rank, int sig, const char *what);
/* Replicas of a rank have sent different messages. */
struct report_sdc;
void watch_sdc(struct head *h, const struct report_sdc *s);
/* to: checkpoint, 0: the beginning. */
void watch_rollback_begun(struct head *h, uint32_t to, double lost_seconds);
void watch_rollback_done(struct head *h);
void watch_checkpoint_begun(struct head *h);
void watch_checkpoint_done(struct head *h, const struct store_manifest *m, const char *path);
/* id 0: it was refused before it had one. */
void watch_checkpoint_failed(struct head *h, uint32_t id, const char *why);
/* A child of this process has ended; false: it is none of ours. */
bool watch_child(struct head *h, pid_t pid, int status);

/* Nodes are lost, or others have ranks now; one of them. Tells what has changed. */
void watch_nodes(struct head *h);
void watch_node(struct head *h, uint32_t node);
/* Some rule still wants ranks away from the node; or nobody knows, as another head has said so. */
bool watch_wants_left(const struct head *h, uint32_t node);
/* What head_leave_node began is over. */
void watch_left(struct head *h, const char *node, bool ok);
/* From now on the node is unusable, or usable again, because of `why`: a rule, a few words. */
void watch_mark(struct head *h, uint32_t node, bool unusable, const char *why);

/* ---- brokers of hosts ---- */

/* The job's own broker has those of its hosts below it (watch_hosts.c). */
bool watch_serves_hosts(const struct head *h);
struct node;
struct message;
/* Its broker is another one: what the last one had not handled, nobody will. */
void watch_node_renewed(struct head *h, const struct node *node);
void watch_carried(void *head, const struct node *node, const struct message *m);

/* ---- for others ---- */

/* A job's name in events, which have room for 15 bytes: the end of it, which tells jobs apart. */
const char *watch_job_name(const char *job);
/* "events": where the broker is, "nodes": […], into an open object. */
void watch_print(const struct head *h, struct json_out *j);

#endif
