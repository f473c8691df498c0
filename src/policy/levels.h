/* SPDX-License-Identifier: BSD-3-Clause */
/* Checkpoints on nodes' own disks (docs/levels.md): which images are copied where, which
 * checkpoints stay, and where an image is looked for. Pure: callers read manifests and send orders.
 *
 * The level of a checkpoint: 1, some image is on one node only; 2, each image is on two nodes; 4,
 * each image is in the shared folder; 0, some image is nowhere, so nobody can go back to it. */
#ifndef HALE_POLICY_LEVELS_H
#define HALE_POLICY_LEVELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- which images are copied ---- */

struct levels_image {
	bool owner;		     /* a node that is there has it */
	bool partner;		     /* there is a node that keeps copies for the owner, … */
	bool partner_has;	     /* … and that has one already */
	uint32_t listed, listed_max; /* copies in the manifest, and how many it can list */
	uint32_t there;		     /* of these on nodes that are there */
	bool local;		     /* it is not in the shared folder yet */
	bool share;		     /* the checkpoint is one for the shared folder */
};

struct levels_copies {
	bool to_partner, to_shared;
};

/* Nothing where no node that is there has the image. */
struct levels_copies levels_copies_wanted(const struct levels_image *image);

/* ---- which checkpoints stay ---- */

/* What a checkpoint would survive now, together with all that it is a difference to. */
struct levels_stock {
	int level;
	const bool *outlives; /* [nodes]: it can still be gone back to without this node */
};

/* The choice goes from the newest checkpoint to the oldest. The caller owns `covered`. */
struct levels_keep {
	uint32_t nodes;
	const bool *there; /* [nodes] */
	int best;	   /* highest level so far */
	bool *covered;	   /* [nodes]: a newer one that stays outlives this node */
};

/* covered: [nodes], is cleared. */
struct levels_keep levels_keep_begin(uint32_t nodes, const bool *there, bool *covered);

/* Nothing goes before there is something newer that survives as much: the newest of each level
 * stays, and for each node that is there the newest that outlives it. True: this one stays. */
bool levels_keep_wants(struct levels_keep *k, const struct levels_stock *stock);

/* No older one can be wanted: a newer one is in the shared folder. */
bool levels_keep_done(const struct levels_keep *k);

/* ---- where an image is looked for ---- */

typedef enum levels_place {
	LEVELS_HERE,   /* on the rank's own node */
	LEVELS_SHARED, /* in the shared folder */
	LEVELS_ELSEWHERE,
	LEVELS_NOWHERE /* all places have been tried */
} levels_place_t;

struct levels_holder {
	bool here;   /* it is the rank's own node, or one that nobody knows by its name */
	bool usable; /* it is there and has a folder for copies, or nobody knows it */
};

/* The next place to look at: *tried (0 at first) counts the places that were passed. *holder is
 * the index of the holder for LEVELS_HERE and LEVELS_ELSEWHERE. local: see struct levels_image. */
levels_place_t levels_fetch_next(uint32_t *tried, const struct levels_holder *holders,
				 uint32_t count, bool local, uint32_t *holder);

#endif
