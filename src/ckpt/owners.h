/* SPDX-License-Identifier: BSD-3-Clause */
/* Mutexes that name their owner by its thread id. A restart gives threads new ids, and the engine
 * corrects those of mutexes that are held (image/mutexes.h). But a thread that was stopped inside
 * libc's lock function has read its id already, and writes the old one when the lock is its own at
 * last: what stands before these functions corrects that. */
#ifndef HALE_CKPT_OWNERS_H
#define HALE_CKPT_OWNERS_H

#include <pthread.h>
#include <stdint.h>

#include "base/base.h"

/* The calling thread's id; 0: not asked for yet. */
extern __thread int32_t owners_own_id
    __attribute__((tls_model("initial-exec"), visibility("hidden")));
int32_t owners_id_ask(void) __attribute__((visibility("hidden")));
void owners_correct_now(pthread_mutex_t *m, int32_t id) __attribute__((visibility("hidden")));

/* The calling thread's id; another one after a restart. */
static inline int32_t owners_id(void)
{
	return LIKELY(owners_own_id) ? owners_own_id : owners_id_ask();
}

/* After a call that may have waited, and has locked m: id is what owners_id said before it. */
static inline void owners_correct(pthread_mutex_t *m, int32_t id)
{
	if (UNLIKELY(id != owners_own_id))
		owners_correct_now(m, id);
}

/* Finds libc's functions. Early (library constructor). */
void owners_init(void);
/* In each thread of a process that has been restored, before it goes on. Async-signal-safe. */
void owners_thread_restored(void);

#endif
