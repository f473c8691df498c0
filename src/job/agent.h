/* SPDX-License-Identifier: BSD-3-Clause */
/* The agent of one node: makes the segment, starts and watches the ranks, speaks proto.h with
 * them, forwards their streams. It decides nothing: what happens it tells its handler, the head.
 * Today it lives in the head's process; it has no state but its own struct. */
#ifndef HALE_JOB_AGENT_H
#define HALE_JOB_AGENT_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "base/error.h"
#include "job/feed.h"
#include "job/guardian.h"
#include "job/loop.h"
#include "job/outlet.h"
#include "job/pin.h"
#include "job/place.h"
#include "job/proto.h"
#include "job/segment.h"
#include "job/stream.h"

union agent_packet {
	uint32_t type;
	struct proto_plain plain;
	struct proto_hello hello;
	struct proto_ckpt ckpt;
};

struct agent_handler {
	/* The rank's process has said HELLO and got its WELCOME. */
	void (*hello)(void *arg, uint32_t rank, const struct proto_hello *hello);
	/* Any other packet of a rank; of the right size for its type. */
	void (*packet)(void *arg, uint32_t rank, const union agent_packet *packet);
	/* The launched process has ended and its output is taken; status is waitpid's. */
	void (*ended)(void *arg, uint32_t rank, int status);
	/* A process that said HELLO is gone, while the shell that started it lives on. */
	void (*lost)(void *arg, uint32_t rank);
	/* Another child of this process has ended. */
	void (*other)(void *arg, pid_t pid, int status);
	/* A rolled back rank printed something else than the first time. */
	void (*differs)(void *arg, uint32_t rank, int which);
	void *arg;
};

struct agent_config {
	uint32_t nranks;
	const char *job;     /* its id */
	const char *program; /* path for execve */
	char *const *argv, *const *environ, *const *exports;
	const char *libdir;
	const char *wdir; /* NULL: ours */
	bool preload_mpi, no_mpi, tag;
	bind_to_t bind;
	const struct placement *placement; /* stays the caller's */
};

/* A node that this agent stands for. With several on one machine each has a segment of its own, so
 * that ranks of different nodes share nothing and reach each other over the network only. */
struct agent_node {
	int segment_fd;
	struct segment *segment;
};

struct agent_conn;

struct agent_rank {
	uint32_t rank;
	pid_t pid;    /* launched and not yet reaped; 0: none */
	pid_t group;  /* may still have members; 0: none */
	pid_t member; /* said HELLO: the one to talk to; 0: none yet */
	struct agent_conn *conn;
	bool mpi, initialized, finalized;
	bool met; /* a process of this rank has said HELLO since it was spawned */
	struct stream out[2];
};

struct agent {
	struct agent_config config;
	struct agent_handler handler;
	struct loop *loop;
	struct guardian guardian;
	struct pin_plan pin;
	int listener;
	struct loop_source listening;
	char address[108], token[24];
	unsigned char secret[SEGMENT_SECRET]; /* by which ranks know each other over the network */
	struct agent_conn *conns;
	struct agent_node *nodes; /* [config.placement->nodes] */
	struct segment *segment;  /* of the first node; NULL: there are none yet */
	struct agent_rank *ranks;
	struct outlet out[2];
	struct feed feed;
};

hale_status_t agent_create(struct agent *a, struct loop *loop, const struct agent_config *config,
			   const struct agent_handler *handler, struct error *err);
void agent_destroy(struct agent *a);

/* New, zeroed segments; no rank may be running. */
hale_status_t agent_segment_renew(struct agent *a, uint32_t generation, struct error *err);

/* Starts rank; sink NULL: from its beginning, otherwise HALE_SINK's value and the program to
 * become it in. position: where its three streams stand. */
hale_status_t agent_spawn(struct agent *a, uint32_t rank, const char *program, const char *sink,
			  const uint64_t position[3], struct error *err);

/* To the process group of one rank, of all. */
void agent_signal(struct agent *a, uint32_t rank, int sig);
void agent_signal_all(struct agent *a, int sig);
/* To the process that said HELLO. False when there is none. */
bool agent_signal_member(struct agent *a, uint32_t rank, int sig);

/* Reaps what has ended: call on SIGCHLD. */
void agent_reap(struct agent *a);
uint32_t agent_alive(const struct agent *a); /* launched processes not yet reaped */
/* Kills what is left of the groups; true when nothing is. */
bool agent_clear(struct agent *a);

/* The segment of the node that rank lives on. */
struct segment *agent_segment(const struct agent *a, uint32_t rank);
struct mailbox *agent_mailbox(const struct agent *a, uint32_t rank);
/* "node3"; with one node what gethostname says. */
void agent_node_name(const struct agent *a, uint32_t rank, char *name, size_t cap);
/* rank's entry in the address directory has changed: takes it to the other nodes. */
void agent_address_relay(struct agent *a, uint32_t rank);
void agent_tell(struct agent *a, uint32_t rank, const struct proto_plain *packet);

#endif
