/* SPDX-License-Identifier: BSD-3-Clause */
/* One head follows another one (docs/attach.md): what they and the agents tell each other. */
#ifndef HALE_HEAD_FAILOVER_TAKEOVER_H
#define HALE_HEAD_FAILOVER_TAKEOVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "base/json.h"
#include "node/job.h"
#include "policy/job_state.h"

enum { TAKEOVER_TAG = 17 };

enum takeover_rank_flag {
	TAKEOVER_HERE =
	    1, /* the rank belongs to this node, or did, and its copy is not released yet */
	TAKEOVER_SPAWNED = 2,
	TAKEOVER_ENDED = 4, /* status is waitpid's */
	TAKEOVER_MET = 8,
	TAKEOVER_MPI = 16,
	TAKEOVER_INITIALIZED = 32,
	TAKEOVER_FINALIZED = 64,
	TAKEOVER_ABORTED = 128, /* it waits to be ended */
	TAKEOVER_STOPPED = 256, /* stopped for a migration, and has not said that it goes on */
};

struct takeover_rank {
	uint32_t flags; /* enum takeover_rank_flag */
	int32_t pid, group, member, status, abort_code;
	uint64_t first[2];    /* position of the first byte of stdout, stderr that comes again */
	uint64_t position[3]; /* of a copy: where its streams are to stand */
};

/* The bytes of MSG_ATTACHED: this, then a takeover_rank for each rank of the job. Both ends are the
 * same build, so it travels as it lies in memory. */
struct takeover_node {
	uint32_t generation, epoch, last_id;
	uint32_t move;	    /* of a migration that is under way there; 0: none */
	uint32_t move_went; /* its segment counts already */
	uint32_t cores, paused;
	int32_t pid;
	uint32_t input_open, input_ended; /* rank 0's stdin, if it is there */
	uint32_t input_waiting;		  /* bytes of it that are not in its pipe yet */
	uint32_t move_stop;		  /* of the migration: its stop */
	uint64_t input;			  /* … that have come to the node, since the job began */
	char host[JOB_NODE_NAME];
};

struct sockaddr_un;
/* Where node k of a job hears new heads; returns the length. tag: TAKEOVER_TAG - 1 hex digits. */
size_t takeover_address(const char *tag, uint32_t node, struct sockaddr_un *address);
/* A connection to it; -1 with errno: ECONNREFUSED if neither agent nor guardian is left. */
int takeover_knock(const char *tag, uint32_t node);
/* `hale agent --attach`: passes bytes on between stdin, stdout and the agent of that node on this
 * machine until one of them ends; an exit status. */
int takeover_pass_on(const char *tag, uint32_t node);
/* `hale agent --service`: the same with a new agent, from hale-agent.socket of this user. */
int takeover_pass_to_service(void);

struct head;
struct node;
struct message;

/* Another head may follow this one: it has a tag and leaves a record. */
bool takeover_possible(const struct head *h);
/* False: it has followed another one, and does not know yet what there is. */
bool takeover_settled(const struct head *h);
/* The job's state for the record on disk: until a new head has settled, the last head's. */
job_state_t takeover_state(const struct head *h);
/* What an agent said when it accepted us; a node that doesn't answer, and why. */
void takeover_attached(void *head, struct node *n, const struct message *m);
void takeover_no_answer(void *head, struct node *n, const char *why);
/* A newer head is there: this one ends, and commands nobody any more. epoch 0: not known which. */
void takeover_superseded(void *head, uint32_t epoch);
/* Looks whether it is so; true: yes, and the head ends. */
bool takeover_check(struct head *h);

/* `hale attach`: the head of a job whose folder and newest record that is. An exit status. */
struct takeover_start {
	const char *folder; /* of the job */
	bool force;	    /* the head that is there is alive, perhaps */
	const char *report; /* NULL: as it was */
};
int takeover_run(const struct takeover_start *start);
/* Up to where a rank's stream was printed by the heads before; 0 without. */
uint64_t takeover_printed(const struct head *h, uint32_t rank, int stream);
/* A rank has ended before it has settled: true, it will be told then. */
bool takeover_ended(struct head *h, uint32_t rank, int status);
/* Begins, in a head that has been made for it. */
hale_status_t takeover_begin(struct head *h, struct error *err);

#endif
