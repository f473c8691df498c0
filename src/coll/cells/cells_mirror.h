/* SPDX-License-Identifier: BSD-3-Clause */
/* Cells that a restart has split: their members live on different nodes now (docs/collectives.md,
 * 'A restart that lays ranks out otherwise').
 *
 * Each member has the cells of all members in private memory, its own and mirrors of the others'.
 * Whatever it changes in its own it tells the others by messages, deposits before the words that
 * announce them. So the operations that were under way when the checkpoint was taken go on in the
 * same code, to their end; then the communicator leaves its cells (join.c). What others want to
 * read from a member's memory they ask it for.
 *
 * Differences from shared cells: arrivals are not counted in one word, but each member says how far
 * it has arrived, and the leader comes last, always. Nothing is to be saved at a checkpoint or
 * restored after it: all of it is private memory and messages.
 */
#ifndef HALE_COLL_CELLS_MIRROR_H
#define HALE_COLL_CELLS_MIRROR_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct coll_home;
struct datatype;

extern unsigned cells_mirrored; /* homes that have mirrors */

/* After a restore: h's cells from now on are private, with nothing in them yet. Without memory the
 * job ends with a sentence. And back: frees them, when all members are done with all operations. */
void cells_mirror_begin(struct coll_home *h);
void cells_mirror_end(struct coll_home *h);

/* Tells the other members what has changed in this process's cell; before waiting for them, and at
 * the end of an operation. */
void cells_mirror_tell(struct coll_home *h);
void cells_mirror_tell_all(void);

/* Where a word in a shared cell is now: waiting loops may have gone through the split. */
const _Atomic uint64_t *cells_mirror_word(const _Atomic uint64_t *word);

/* As cells_arrive. */
bool cells_mirror_arrive(struct coll_home *h, uint64_t k);

/* As cells_read, by asking the owner, who waits inside the operation. With safe points. */
int cells_mirror_read(const struct coll_home *h, int member, uint64_t address, void *dst,
		      size_t bytes);

/* Progress hook: takes in what others tell and ask. */
int cells_mirror_progress(void);
void cells_mirror_fini(void);

#endif
