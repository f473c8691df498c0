/* SPDX-License-Identifier: BSD-3-Clause */
/* A new head reaches the agent of a node that another head has started, and the agent says what is
 * there (docs/attach.md). Called by head/, agent/ and cli/. */
#ifndef HALE_WIRE_ATTACH_ATTACH_H
#define HALE_WIRE_ATTACH_ATTACH_H

#include <stddef.h>
#include <stdint.h>
#include "node/job.h"

enum { ATTACH_TAG = 17 };

enum attach_rank_flag {
	ATTACH_HERE =
	    1, /* the rank belongs to this node, or did, and its copy is not released yet */
	ATTACH_SPAWNED = 2,
	ATTACH_ENDED = 4, /* status is waitpid's */
	ATTACH_MET = 8,
	ATTACH_MPI = 16,
	ATTACH_INITIALIZED = 32,
	ATTACH_FINALIZED = 64,
	ATTACH_ABORTED = 128, /* it waits to be ended */
	ATTACH_STOPPED = 256, /* stopped for a migration, and has not said that it goes on */
};

struct attach_rank {
	uint32_t flags; /* enum attach_rank_flag */
	int32_t pid, group, member, status, abort_code;
	uint64_t first[2];    /* position of the first byte of stdout, stderr that comes again */
	uint64_t position[3]; /* of a copy: where its streams are to stand */
};

/* The bytes of MSG_ATTACHED: this, then a attach_rank for each rank of the job. Both ends are the
 * same build, so it travels as it lies in memory. */
struct attach_node {
	uint32_t generation, epoch, last_id;
	uint32_t view;	    /* of a job with replicas: the newest that its ranks have heard of */
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
/* Where node k of a job hears new heads; returns the length. tag: ATTACH_TAG - 1 hex digits. */
size_t attach_address(const char *tag, uint32_t node, struct sockaddr_un *address);
/* A connection to it; -1 with errno: ECONNREFUSED if neither agent nor supervisor is left. */
int attach_connect(const char *tag, uint32_t node);
/* `hale agent --attach`: passes bytes on between stdin, stdout and the agent of that node on this
 * machine until one of them ends; an exit status. */
int attach_pass_on(const char *tag, uint32_t node);
/* `hale agent --service`: the same with a new agent, from hale-agent.socket of this user. */
int attach_pass_to_service(void);

#endif
