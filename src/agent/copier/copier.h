/* SPDX-License-Identifier: BSD-3-Clause */
/* The copier: a process beside the agent of a node that moves images between disks, so that neither
 * the agent's loop nor the head has anything to do with their bytes (docs/levels.md). The agent
 * gives it orders; copiers of one job speak with each other over TCP.
 *
 *   agent ── orders, done (SOCK_SEQPACKET) ── copier ── a child for each order (copier_work.c)
 *                                               └────── a child for each caller
 *
 * Each child blocks, with time limits, does one thing and ends: a peer that hangs holds up nobody
 * else. A copy has its name only when all of it is there, on the disk, and is what the rank wrote.
 */
#ifndef HALE_AGENT_COPIER_COPIER_H
#define HALE_AGENT_COPIER_COPIER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "base/error.h"
#include "base/reach.h"
#include "node/job.h"
#include "wire/message/copies.h"
#include "wire/message/message.h"
#include "node/segment.h"
#include "store/store.h"

/* What a copier is told when it starts. */
struct copier {
	int agent; /* its end of the socket */
	int listener[COPIES_PLACES_MAX];
	uint32_t listeners;
	char address[COPIES_ADDRESS_MAX]; /* "10.0.0.1:4711,[fd00::1]:4711,…": of the listeners */
	char folder[STORE_FOLDER_MAX];	  /* of the node, for this job; is there */
	uint32_t node;
	unsigned char secret[SEGMENT_SECRET];
	bool sync;
	bool encrypt;		/* what goes to other copiers is sealed (sealed.h) */
	bool local;		/* all nodes are this machine */
	struct reach_wish wish; /* of the user: interfaces, ports */
	double silence;		/* seconds: so long nothing may come or go */
	int segment;		/* bytes in a packet at most; 0: what the link takes */
};

/* A connection to another copier. */
struct sealed;
struct copier_link {
	int fd;		       /* -1: none */
	struct sealed *sealed; /* NULL: in the clear */
	double silence;	       /* seconds: as the copier's */
};

enum copier_order_type { ORDER_COPY = 1, ORDER_KEEP };

/* An order of the agent, and what has come of it. Keeping: `bytes` ids follow. */
struct copier_order {
	uint32_t type;
	uint32_t kind; /* enum copy_kind */
	uint32_t rank, id, base;
	uint32_t peer; /* index of the node at address */
	uint64_t bytes, checksum;
	char address[COPIES_ADDRESS_MAX]; /* of the other copier; "": none */
	char folder[STORE_FOLDER_MAX];	  /* there, or the shared one */
};

struct copier_done {
	struct copier_order order; /* as it was given */
	int32_t status;
	uint32_t image_base; /* fetched: id that the image is a difference to */
	char text[480];	     /* why not; fetched: the program that was captured */
};

/* Opens what others can call: an address for each interface, as for the ranks' own network
 * (base/reach.h). */
hale_status_t copier_listen(struct copier *c, struct error *err);
void copier_unlisten(struct copier *c);
/* The process; everything but what c names and stderr must have been closed. */
_Noreturn void copier_run(const struct copier *c);

/* ---- copier_work.c, copier_folder.c: in a child, blocking ---- */

/* Carries out an order for a copy. */
void copier_work(const struct copier *c, const struct copier_order *o, struct copier_done *done);
/* Removes the images of other checkpoints than those on this node, but of none newer than all of
 * them; and what the agent has set aside. */
void copier_keep(const struct copier *c, const uint32_t *ids, size_t count);
/* What lies in a node's folder under its final name: malloc'ed, *count; NULL: nothing. */
struct copies_image *copier_held(const char *folder, size_t *count);
/* Removes what copies that were cut off have left in a node's folder; no copier may be at work. */
void copier_sweep(const char *folder);
/* Where an image lies in a folder; path has PATH_MAX bytes. */
void copier_image_path(char *path, const char *folder, uint32_t id, uint32_t rank);
/* The name of that file is on the disk afterwards. */
hale_status_t copier_sync_folder(const char *path, struct error *err);
/* What a caller that has proved to be one of ours wants. */
void copier_serve(const struct copier *c, struct copier_link *l);

/* ---- copier_wire.c: blocking, with time limits ---- */

/* A connection to the copier of node `peer`, which has proved to be it. */
hale_status_t copier_call(const struct copier *c, const char *address, uint32_t peer,
			  struct copier_link *l, struct error *err);
/* On l->fd: true: the caller has proved to be a copier of the job. */
bool copier_answer(const struct copier *c, struct copier_link *l);
/* HALE_ERR_PROTOCOL: what came was changed on its way. */
hale_status_t copier_say(struct copier_link *l, const void *bytes, size_t len, struct error *err);
hale_status_t copier_hear(struct copier_link *l, void *bytes, size_t len, struct error *err);
void copier_hang_up(struct copier_link *l);
/* How long nothing may come or go before the other side counts as gone. */
void copier_patience(const struct copier_link *l, double seconds);

#endif
