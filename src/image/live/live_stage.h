/* SPDX-License-Identifier: BSD-3-Clause */
/* The staging area of a live image: it is filled while the source still maps, unmaps and moves.
 *
 *   addresses of the source      [exe heap    ]              [libraries, mappings, stack]
 *                                      \ cluster: one distance for all of it \
 *   addresses of this process    gap [scratch][        heap→ ][ ←libraries, mappings, stack ]
 *
 * All of a cluster keeps its neighbours, so that a mapping that grows or moves next to another one
 * is in the end one mapping, as it was. Pieces are what is staged: one mapping, or a part of it. */
#ifndef HALE_IMAGE_LIVE_STAGE_H
#define HALE_IMAGE_LIVE_STAGE_H

#include "image/sink.h"

struct live_stage {
	struct list clusters; /* struct cluster */
	struct list pieces;   /* struct piece, in order of addresses */
	uint64_t free;	      /* of the gap, from here on */
};

hale_status_t live_stage_init(struct sink *s, struct live_stage *l, struct error *err);
/* s->t has the maps of a new round: makes room for what is new, gives back what is gone, and sets
 * s->stage and s->shared_fd. last: shared memory too. */
hale_status_t live_stage_maps(struct sink *s, struct live_stage *l, bool last, struct error *err);
/* Everything in it is as fresh mappings are. */
void live_stage_clear(const struct live_stage *l);

#endif
