/* SPDX-License-Identifier: BSD-3-Clause */
/* Where a checkpoint may interrupt this process.
 *
 * A checkpoint request is a signal. Outside the library its handler does the whole checkpoint at
 * once, wherever the program is. Inside the library state may be half changed, so the handler
 * only sets `guard_attention`, and the library attends to it at its next safe point: on the way
 * out, or between two rounds of a waiting loop.
 *
 * Every MPI function is  guard_enter() … guard_leave(); waiting loops call guard_safe_point().
 * Below MPI_THREAD_MULTIPLE entering is one store to a thread-local word.
 */
#ifndef HALE_CKPT_GUARD_H
#define HALE_CKPT_GUARD_H

#include <stdbool.h>
#include <stdint.h>
#include "base/base.h"

/* 0 only in a build that bench/net/ready makes: without what messages do for the sake of
 * checkpoints, here and in channel/net, to measure what that costs. Such a process is always
 * inside, so nothing ever interrupts it. */
#ifndef HALE_READY
#define HALE_READY 1
#endif

/* Per thread: non-zero while this thread is inside the library. */
extern __thread volatile int guard_inside __attribute__((tls_model("initial-exec")));

/* Set by signal handlers, read at safe points: a checkpoint is asked for, or a fault to inject. */
extern volatile int guard_attention;

/* True from MPI_Init_thread(MPI_THREAD_MULTIPLE) on: then there is one library lock. */
extern bool guard_multiple;
void guard_lock_slow(void);
void guard_unlock_slow(void);

/* Attends to what guard_attention announces; may checkpoint, so may return in another process. */
void guard_attend(void);

/* Nests: a user's callback, called from inside, may call the library again. Only the outermost
 * leave attends. */
static inline void guard_enter(void)
{
	if (!HALE_READY)
		return;
	guard_inside++;
	__asm__ volatile("" ::: "memory");
	if (UNLIKELY(guard_multiple) && guard_inside == 1)
		guard_lock_slow();
}

static inline void guard_leave(void)
{
	if (!HALE_READY)
		return;
	if (UNLIKELY(guard_multiple) && guard_inside == 1)
		guard_unlock_slow();
	__asm__ volatile("" ::: "memory");
	guard_inside--;
	if (UNLIKELY(guard_attention) && guard_inside == 0)
		guard_attend();
}

/* In a waiting loop, with the library's state consistent. With MPI_THREAD_MULTIPLE it also lets
 * other threads in. Message state may have changed when it returns: look again. Below another
 * library call (nested) it does nothing. */
static inline void guard_safe_point(void)
{
	if (HALE_READY && UNLIKELY(guard_attention || guard_multiple) && guard_inside == 1) {
		guard_leave();
		guard_enter();
	}
}

#endif
