/* SPDX-License-Identifier: BSD-3-Clause */
/* glibc's mutexes that are held at a capture and name their owner by its thread id, which is
 * another one after a restart. Recursive, error-checking and priority-inheriting ones are found in
 * memory (pages.c); robust ones through the list that each thread has registered with the kernel.
 */
#ifndef HALE_IMAGE_MUTEXES_H
#define HALE_IMAGE_MUTEXES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "image/frame.h"

/* glibc's pthread_mutex_t. */
struct mutex {
	uint32_t lock, count, owner, users;
	uint32_t kind;
	uint16_t spins, elision;
	uint64_t before, after; /* of robust mutexes only */
};
enum {
	MUTEX_OWNER_AT = 2, /* words from its begin */
	MUTEX_WORDS = sizeof(struct mutex) / 4,
};

/* Does m look in every field as a mutex does that is held and remembers its owner? *flags gets what
 * a lock_record of it has. */
bool mutex_is_held(const struct mutex *m, uint32_t *flags);

struct sink;
struct list;
/* Adds a lock_record of each mutex in the robust lists of the image's threads, as far as they lie
 * in its memory. False: no memory. */
bool mutexes_add_robust(const struct sink *s, struct list *locks);

/* In the new process, with all its threads made: gives the locks' words their owners' new ids. */
void mutexes_correct(struct lock_record *locks, size_t count, int32_t (*new_tid)(int32_t old));

#endif
