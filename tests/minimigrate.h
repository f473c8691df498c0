// SPDX-License-Identifier: BSD-3-Clause
/* What the files of minimigrate share.
 *
 *   minimigrate.c         the command line, and a migration from its beginning to its end
 *   minimigrate_ranks.c   segments, processes and what they say
 *   minimigrate_stream.c  output, and streams that go through this process */
#ifndef HALE_TESTS_MINIMIGRATE_H
#define HALE_TESTS_MINIMIGRATE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "image/live/live.h"
#include "node/segment.h"

enum { RANKS_MAX = 64, NODES_MAX = 8, STEPS_MAX = 32 };

struct rank {
	pid_t pid;
	int conn;
	bool initialized, finalized, ended;
	int status;
};
extern struct rank rank[RANKS_MAX];

extern int n, nodes;
extern bool no_mpi, relay;
extern char **program;

extern char agent_name[64];
extern int listener;
extern unsigned char secret[SEGMENT_SECRET];
extern uint32_t generation, id;

/* Who lives where, in which segments. */
struct view {
	struct segment *segment[NODES_MAX];
	int fd[NODES_MAX];
	int node_of[RANKS_MAX];
	uint32_t seen[NODES_MAX][RANKS_MAX]; /* versions of addresses that a node has */
	bool exists;
};
extern struct view view, coming;

/* The migration under way. */
struct move {
	int rank;
	pid_t sink;
	int sink_status;  /* -1: it lives */
	int sink_conn;	  /* to be answered by WELCOME */
	uint32_t written; /* id of the round */
	bool failed, hello;
	struct live_step step[STEPS_MAX];
	size_t steps;
	uint64_t bytes;
};
extern struct move m;

/* Ends all, with a sentence. */
void die(const char *what);

/* ---- minimigrate_ranks.c ---- */
struct mailbox *mailbox_of(const struct view *v, int r);
void view_make(struct view *v);
void view_end(struct view *v);
int listen_at(const char *name, int type);
/* sink: NULL, or what it is to become. */
pid_t spawn(int r, const char *sink);
void send_welcome(const struct view *v, int conn, int r);
/* Waits so long for what ranks say, and for the end of processes, and takes it. */
void tick(int ms);
bool all(bool (*of)(const struct rank *));
bool is_ended(const struct rank *r);
bool can_stop(const struct rank *r);

/* ---- minimigrate_stream.c ---- */
/* Output goes through pipes, as an agent has it: the ends for stdout and stderr of ranks. */
extern int outlet_of[2];
void outlets_open(void);
void outlets_close(void);
/* Gives the sink the source's end, or (--relay) passes on what comes. */
void hand_over(int source, int sink);

#endif
