/* SPDX-License-Identifier: BSD-3-Clause */
/* The view of a job says who is alive, where, in which role; it is the only thing that does.
 *
 * Behind each rank stand one or more replicas: processes that do the same. The place of a replica
 * is its slot: replica * nranks + rank, so that slot and rank are the same number in a plain job,
 * and a higher degree adds slots behind those that exist. The process in a slot changes; its
 * incarnation counts the processes that have been there. Messages of a dead incarnation count for
 * nobody.
 *
 *   head: event -> view n + 1 -> all agents and ranks act on the difference, in the order of n
 *
 * A view is a value: view_apply changes the caller's copy or refuses and changes nothing. No I/O,
 * no clock. Called by head/, agent/, deliver/ and models. */
#ifndef HALE_POLICY_VIEW_H
#define HALE_POLICY_VIEW_H

#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"

enum { VIEW_DEGREE_MAX = 4 };
#define VIEW_NONE UINT32_MAX

typedef enum view_role {
	VIEW_MAIN,   /* its sends count */
	VIEW_TWIN,   /* an equal: its sends count for the replicas that it provides */
	VIEW_SHADOW, /* slower and muted; leads nobody before it is promoted */
} view_role_t;

typedef enum view_state {
	VIEW_ABSENT,   /* no process, and none is to come */
	VIEW_STARTING, /* a process is being started, or becomes its image */
	VIEW_LIVE,
	VIEW_FROZEN,  /* alive, and sends nothing: another replica is being cloned from it */
	VIEW_CLONING, /* a process becomes the copy of a frozen one */
	VIEW_ENDED,   /* its program has ended well */
	VIEW_LOST,    /* its process has died, or its node is lost */
	VIEW_STATES
} view_state_t;

typedef enum view_node_state {
	VIEW_NODE_SPARE, /* can run ranks, and has none */
	VIEW_NODE_READY, /* can run ranks */
	VIEW_NODE_LOST,
} view_node_state_t;

struct view_replica {
	uint32_t node;	      /* valid unless ABSENT */
	uint32_t incarnation; /* 0: there has been no process yet */
	uint32_t source;      /* replica that a CLONING one is a copy of; else VIEW_NONE */
	view_role_t role;
	view_state_t state;
};

struct view {
	uint64_t number; /* 1 after view_create; each event that is not refused adds 1 */
	uint32_t nranks, degree, nodes;
	struct view_replica *slot;	  /* [degree * nranks] */
	enum view_node_state *node_state; /* [nodes] */
};

typedef enum view_event_kind {
	/* of one replica */
	VIEW_SPAWN,	   /* a process for it is started on `node` */
	VIEW_HELLO,	   /* the process takes part */
	VIEW_EXIT,	   /* the process has ended well */
	VIEW_DIE,	   /* the process has died */
	VIEW_CLONE,	   /* it becomes a copy of replica `source`, on `node` */
	VIEW_CLONED,	   /* the copy takes part, and its source goes on */
	VIEW_CLONE_FAILED, /* there will be no copy; its source goes on */
	VIEW_MOVE,	   /* another process, on `node`, has taken its place (migration) */
	VIEW_PROMOTE,	   /* a shadow becomes the main of its rank */
	VIEW_REPLICA_EVENTS,
	/* of a node, of all */
	VIEW_LOSE_NODE = VIEW_REPLICA_EVENTS,
	VIEW_READY_NODE, /* the node is there (again), and may get ranks */
	VIEW_SPARE_NODE, /* the node is there, and keeps free of ranks */
	VIEW_SET_DEGREE, /* each rank has `degree` replicas from now on; `role` of new ones */
	VIEW_ROLL_BACK,	 /* all processes are gone, and all ranks are about to be started again */
	VIEW_EVENT_KINDS
} view_event_kind_t;

struct view_event {
	view_event_kind_t kind;
	uint32_t rank, replica; /* of whom */
	uint32_t source;	/* VIEW_CLONE */
	uint32_t node;
	uint32_t degree; /* VIEW_SET_DEGREE: 1 to VIEW_DEGREE_MAX */
	view_role_t role;
};

/* All replicas STARTING, in incarnation 1, at node_of[slot]; replicas but the first have `role`.
 * node_of NULL: all ABSENT. All nodes are SPARE or, where a replica is, READY. HALE_ERR_ARGUMENT,
 * HALE_ERR_MEMORY. */
hale_status_t view_create(struct view *v, uint32_t nranks, uint32_t degree, view_role_t role,
			  uint32_t nodes, const uint32_t *node_of, struct error *err);
hale_status_t view_copy(struct view *to, const struct view *from, struct error *err);
void view_fini(struct view *v);

/* Makes v the next view. HALE_ERR_STATE: the event can't happen in this view, with a sentence;
 * HALE_ERR_ARGUMENT: there is no such rank, replica or node. v stays as it was then. */
hale_status_t view_apply(struct view *v, const struct view_event *e, struct error *err);

static inline uint32_t view_slot(const struct view *v, uint32_t rank, uint32_t replica)
{
	return replica * v->nranks + rank;
}

static inline const struct view_replica *view_replica(const struct view *v, uint32_t rank,
						      uint32_t replica)
{
	return &v->slot[view_slot(v, rank, replica)];
}

/* Its process takes part in the job now. */
static inline bool view_takes_part(const struct view_replica *r)
{
	return r->state == VIEW_LIVE || r->state == VIEW_FROZEN;
}

/* There is a process in the slot, or one is on its way. */
static inline bool view_has_process(const struct view_replica *r)
{
	return view_takes_part(r) || r->state == VIEW_STARTING || r->state == VIEW_CLONING;
}

/* The replica that decides for its rank what a program can't know by itself (which message an
 * ANY_SOURCE matched): the main; without one the lowest twin that takes part. VIEW_NONE: nobody
 * does. */
uint32_t view_leader(const struct view *v, uint32_t rank);

/* The replica of rank `from` that sends to replica `replica` of every other rank: the one of the
 * same index if its sends count and it takes part, else the next such one in a ring. VIEW_NONE:
 * nobody does. */
uint32_t view_provider(const struct view *v, uint32_t from, uint32_t replica);

/* Some replica of the rank that could go on alone takes part, or has ended well. */
bool view_rank_survives(const struct view *v, uint32_t rank);
/* The first rank that does not; VIEW_NONE: all do, and nobody has to be rolled back. */
uint32_t view_first_lost(const struct view *v);

/* Replicas with a process on that node. */
uint32_t view_load(const struct view *v, uint32_t node);

const char *view_role_name(view_role_t role);
const char *view_state_name(view_state_t state);

#endif
