/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks that move to another node, or from there (docs/migration.md). Calls ranks/. */
#ifndef HALE_AGENT_MIGRATION_AGENT_MIGRATE_H
#define HALE_AGENT_MIGRATION_AGENT_MIGRATE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "base/error.h"
#include "agent/ranks/agent_ranks.h"
#include "base/reach.h"

struct agent;

/* Known to the source's agent when it has called, to the target's by what comes first. */
enum relay_way { WAY_UNKNOWN, WAY_RELAY, WAY_DIRECT };

enum { AGENT_PLACES = REACH_PLACES_MAX };

/* One end of the stream between a rank and its copy: what the connection brings goes to the head,
 * what the head brings goes to the connection (agent_migrate.c). */
struct agent_relay {
	struct agent *agent;
	uint32_t rank;
	struct loop_source source; /* fd -1: not connected, or over */
	bool connected;
	bool paused;   /* nothing is read: the window is full */
	bool held;     /* while its rounds are sent, the rank stands still most of the time */
	bool due;      /* its next round begins with the node's next hold */
	int file;      /* -1: none open. By files, what goes over comes from it or into it */
	bool made;     /* there may be a file of this rank here */
	char *program; /* to be started when the file is whole */
	uint64_t seen; /* of what goes over, when that was looked at last */
	enum relay_way way;
	int given;		/* a connection between hosts, for the process here; -1: none */
	pid_t sealer;		/* that encrypts it; 0: none */
	int watched;		/* the same, whose progress is looked at; -1: none */
	uint32_t round_id;	/* the first, which waits for the way */
	uint64_t out;		/* bytes that went to the head and are not TAKEN yet */
	unsigned char *waiting; /* [begin, end): for the connection */
	size_t begin, end, cap;
	struct agent_conn *conn; /* of a copy that has said HELLO */
	uint64_t position[3];	 /* where its streams are to stand */
};

/* A migration under way, as far as this node is concerned. */
struct agent_move {
	uint32_t id; /* the generation that it leads to; 0: none */
	uint32_t stop_id;
	struct agent_view coming, old;
	bool went; /* coming has become the view */
	int listener;
	struct loop_source listening;
	char name[ADDRESS_MAX];
	char folder[PATH_MAX]; /* for files; "": streams */
	struct loop_timer progress, holding;
	struct agent_relay
	    *relays; /* [2 * nranks]: from nranks on copies' ends, if both are here */
	bool cancelling;
	struct loop_source direct[AGENT_PLACES]; /* listening for other agents */
	struct direct_hand *hands;		 /* of agent_direct.c */
};

/* agent_migrate.c: docs/migration.md, its last section */
bool agent_move_take(struct agent *a, const struct message *m); /* false: it is none of ours */
void agent_move_take_hello(struct agent *a, struct agent_conn *c, const struct proto_hello *h);
void agent_move_take_end(struct agent *a, uint32_t rank, int status); /* a copy that moves in */
void agent_move_end_copies(void *agent);
void agent_move_drop(struct agent *a);
/* Starts the copy of m->rank, which reads its stream from `sink`, and tells the head. */
void agent_move_spawn(struct agent *a, const struct message *m, const char *sink);
/* The way of the stream is known: starts the first round. given: the rank gets the stream as a
 * descriptor. */
void agent_move_first_round(struct agent *a, uint32_t rank, bool given);
void agent_move_not_spawned(struct agent *a, uint32_t rank, const struct error *err);

/* agent_alone.c: a copy that comes while all others run */
bool agent_move_is_alone(const struct agent *a);
/* As agent_layout_beside, with the segment of now. */
hale_status_t agent_layout_shared(struct agent *a, const uint32_t *node_of, struct agent_view *v,
				  struct error *err);
/* Processes of this node that compute look at what has come, again and again until the move is
 * over here. */
void agent_kick(struct agent *a);

/* agent_relay.c */
hale_status_t agent_relays_begin(struct agent *a, struct error *err);
/* Closed ones of all ranks. False: no memory. */
bool agent_relays_make(struct agent *a);
void agent_relays_end(struct agent *a);
void agent_relay_take(struct agent *a, const struct message *m); /* DATA, TAKEN */

/* The connection to the other host is there, or (fd -1) there is none to be had: the source's first
 * round begins (out), the target's copy gets it. Takes over fd. */
void agent_relay_decided(struct agent *a, uint32_t rank, bool out, int fd);

/* agent_direct.c: connections from agent to agent */
unsigned agent_direct_listen(struct agent *a, struct reach_place place[AGENT_PLACES]);
/* Calls where the target listens; agent_relay_decided follows. False: it doesn't. */
bool agent_direct_call(struct agent *a, uint32_t rank, const void *places, size_t len);
void agent_direct_end(struct agent *a);

/* agent_sealed.c: with --net-security encrypt */
bool agent_seals(const struct agent *a);
/* Start a helper process that encrypts. agent_seal_wire takes over the connection `wire` and
 * returns the plain end of the helper. agent_seal_process takes over the plain end and returns the
 * encrypted one. Both return -1 if no helper could be started. */
int agent_seal_wire(struct agent *a, uint32_t rank, int wire);
int agent_seal_process(struct agent *a, uint32_t rank, int plain);
/* A child of the agent has ended. If it was such a helper, its exit status says why its stream
 * broke. */
void agent_seal_take_end(struct agent *a, pid_t pid, int status);

/* agent_files.c */
/* From now on the agent reports progress of streams that do not pass the head. */
void agent_progress_start(struct agent *a);
hale_status_t agent_files_begin(struct agent *a, const char *folder, struct error *err);
/* Removes the files that are there now. agent_files_end removes those that ranks make
 * afterwards. */
void agent_files_remove(struct agent *a);
void agent_files_end(struct agent *a);
void agent_file_path(const struct agent *a, uint32_t rank, char path[PATH_MAX]);
/* Starts the copy of m->rank from its file, as soon as that is here. */
void agent_file_sink(struct agent *a, const struct message *m);
void agent_file_take(struct agent *a, const struct message *m); /* DATA, TAKEN, WANT */

#endif
