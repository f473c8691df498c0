/* SPDX-License-Identifier: BSD-3-Clause */
/* Who uses which memory: the order between tasks of one parent.
 *
 * A map is a treap of segments that do not overlap. Each knows the last task that writes it and
 * the tasks that read it since. A new range cuts segments at its ends:
 *
 *	|--- W1 ---|                      segments before
 *	      |=== new: IN ===|
 *	|-W1--|-W1+r|--- r ---|           after; `new` waits for W1
 *
 * The caller holds the parent's lock. */
#ifndef HALE_TASK_REGION_H
#define HALE_TASK_REGION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct work;

struct region {
	struct region *left, *right;
	uint32_t priority;
	uintptr_t from, to;
	struct work *writer; /* NULL: none */
	struct work **readers;
	uint32_t nreaders, room;
};

struct region_map {
	struct region *root;
	uint32_t random;
};

/* after(arg, w): w comes before whoever asks. */
typedef void region_after(void *arg, struct work *w);

/* Notes that w uses [from, to), and tells what it has to wait for. References to tasks are taken
 * by work_hold() and given back by work_drop(). False: no memory; the map is whole still. */
bool region_use(struct region_map *m, uintptr_t from, uintptr_t to, bool writes, struct work *w,
		region_after *after, void *arg);
void region_clear(struct region_map *m);

/* run.c */
void work_hold(struct work *w);
void work_drop(struct work *w);
bool work_is_over(const struct work *w);

#endif
