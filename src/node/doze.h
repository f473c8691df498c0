/* SPDX-License-Identifier: BSD-3-Clause */
/* Dozing: a process sleeps for a while that it has chosen itself, and takes what has come when that
 * is over. Its bell is for what can't wait so long: a ring that is half full, and the agent.
 * Shadows doze (docs/shadows.md): they are late anyway, and ringing a bell costs sender and sleeper
 * a system call each. */
#ifndef HALE_NODE_DOZE_H
#define HALE_NODE_DOZE_H

#include "node/segment.h"

enum { MAILBOX_DOZES = 2 }; /* mailbox.asleep, instead of 1 */

/* As mailbox_will_sleep. */
static inline uint32_t mailbox_will_doze(struct mailbox *m)
{
	uint32_t seen = atomic_load_explicit(&m->bell, memory_order_relaxed);

	atomic_store_explicit(&m->asleep, MAILBOX_DOZES, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
	return seen;
}

static inline bool mailbox_dozes(struct mailbox *m)
{
	return atomic_load_explicit(&m->asleep, memory_order_relaxed) == MAILBOX_DOZES;
}

#endif
