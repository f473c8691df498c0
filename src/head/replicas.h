/* SPDX-License-Identifier: BSD-3-Clause */
/* Jobs with replicas (docs/redundancy.md). */
#ifndef HALE_HEAD_REPLICAS_H
#define HALE_HEAD_REPLICAS_H

#include "head/head.h"

struct head;

/* sdc.c: that process has got different messages from the replicas of a rank. */
struct proto_sdc;
void sdc_found(struct head *h, uint32_t process, const struct proto_sdc *p);

/* replicas.c */
bool replicas_init(struct head *h);
void replicas_fini(struct head *h);
hale_status_t replicas_check(const struct head *h, struct error *err);
void replicas_begin(struct head *h); /* every process starts */
void replicas_say_placement(const struct head *h);
/* A process was killed (how: "signal 9 (SIGKILL)"). True: all ranks live on in other replicas, and
 * everybody hears of the next view. False: the job has to go back to a checkpoint, or end. */
bool replicas_survive_death(struct head *h, uint32_t process, const char *how);
/* Sends the view as it is now to all processes. */
void replicas_publish(struct head *h);
/* As replicas_survive_death, for a lost node and all processes there. h->lost.why has the
 * reason. */
bool replicas_survive_node(struct head *h, const struct node *node);

#endif
