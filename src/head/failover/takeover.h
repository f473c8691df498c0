/* SPDX-License-Identifier: BSD-3-Clause */
/* One head follows another one (docs/attach.md): what they and the agents tell each other. */
#ifndef HALE_HEAD_FAILOVER_TAKEOVER_H
#define HALE_HEAD_FAILOVER_TAKEOVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "base/json.h"
#include "wire/attach/attach.h"
#include "policy/job_state.h"

struct head;
struct node;
struct message;

/* Another head may follow this one: it has a tag and leaves a record. */
bool takeover_possible(const struct head *h);
/* False: it has followed another one, and does not know yet what there is. */
bool takeover_settled(const struct head *h);
/* The job's state for the record on disk: until a new head has settled, the last head's. */
job_state_t takeover_state(const struct head *h);
/* An agent has accepted this head, and m says what it has; or the node does not answer, and why. */
void takeover_attached(void *head, struct node *n, const struct message *m);
void takeover_no_answer(void *head, struct node *n, const char *why);
/* A newer head is there: this one ends, and commands nobody any more. epoch 0: not known which. */
void takeover_superseded(void *head, uint32_t epoch);
/* Looks whether a newer head is there; true: yes, and this one ends. */
bool takeover_check(struct head *h);

/* `hale attach`: becomes the head of the job in `folder`, from its newest record. Returns an exit
 * status. */
struct head_start;
struct takeover_start {
	const char *folder; /* of the job */
	bool force;	    /* take the job even from a head that may be alive */
	const char *report; /* NULL: as it was */
	int (*agent)(int in_fd, int out_fd);
	int (*head)(const struct head_start *start); /* head_run */
};
int takeover_run(const struct takeover_start *start);
/* The position up to which earlier heads have printed a rank's stream. 0: this is the first head.
 * OUTPUT_DAEMON_UNKNOWN: their output daemon is gone, and nobody knows. */
uint64_t takeover_printed(const struct head *h, uint32_t rank, int stream);
/* A rank has ended. True: the takeover has not settled yet, and the head deals with that end when
 * it has. */
bool takeover_ended(struct head *h, uint32_t rank, int status);
/* A process tells of a silent error. True: the takeover has not settled yet, and the head deals
 * with that when it has. */
struct proto_sdc;
bool takeover_found(struct head *h, uint32_t process, const struct proto_sdc *sdc);
/* Begins the takeover, in a head that takeover_run has made. */
hale_status_t takeover_begin(struct head *h, struct error *err);

#endif
