/* SPDX-License-Identifier: BSD-3-Clause */
/* Spares are made warm (docs/nodes.md, 'Spares are warm'): now and then the nodes that have ranks
 * are asked what these have mapped, and spares hear it. All of it may be late, lost or done twice.
 */
#ifndef HALE_HEAD_STANDBY_WARM_H
#define HALE_HEAD_STANDBY_WARM_H

#include <stddef.h>
#include <stdint.h>
#include "wire/session/loop.h"

struct head;
struct message;
struct node;

struct warm_list {
	struct warm_list *next;
	size_t len;
	unsigned char bytes[];
};

struct warm {
	uint32_t look;		 /* the newest question */
	double looked_at;	 /* clock_seconds(); 0: never */
	double pause;		 /* until the next one, if nothing happens before */
	struct warm_list *lists; /* answers to it, each different from the others */
	struct loop_timer timer;
};

/* Ranks have begun, or are elsewhere than before; there is another spare. */
void warm_again(struct head *h);
/* A checkpoint is whole: so are the images of what has been mapped lately. */
void warm_refresh(struct head *h);
/* MSG_MAPPED, MSG_WARMED */
void warm_message(struct head *h, struct node *n, const struct message *m);
/* Its agent has forgotten what it was told. */
void warm_renewed(struct head *h, struct node *n);
void warm_fini(struct head *h);

#endif
