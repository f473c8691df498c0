// SPDX-License-Identifier: BSD-3-Clause
/* The library lock of MPI_THREAD_MULTIPLE, and who is inside. See guard.h. */
#include "ckpt/guard.h"

#include <linux/futex.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/yield.h"
#include "ckpt/rank_private.h"

__thread volatile int guard_inside = !HALE_READY;
__thread volatile int guest_inside __attribute__((tls_model("initial-exec")));
volatile int guard_attention;
bool guard_multiple;

/* 0 free, 1 held, 2 held and somebody sleeps on it */
static _Atomic int lock_word;
/* This thread holds the lock: then it must not be parked. */
static __thread volatile int lock_held __attribute__((tls_model("initial-exec")));

static bool lock_try(void)
{
	int free_word = 0;
	return atomic_compare_exchange_strong_explicit(&lock_word, &free_word, 1,
						       memory_order_acquire, memory_order_relaxed);
}

bool guard_lock_soon(void)
{
	struct yields yields = {0};
	for (int spin = 0; spin < 64; spin++) {
		/* held is said first: a park signal between the two must see it */
		lock_held = 1;
		if (lock_try())
			return true;
		lock_held = 0;
		if (!yield_core(&yields))
			break;
	}
	return false;
}

void guard_lock_slow(void)
{
	if (guard_lock_soon())
		return;
	for (;;) {
		lock_held = 1;
		if (atomic_exchange_explicit(&lock_word, 2, memory_order_acquire) == 0)
			return;
		lock_held = 0;
		syscall(SYS_futex, &lock_word, FUTEX_WAIT_PRIVATE, 2, NULL, NULL, 0);
	}
}

void guard_unlock_slow(void)
{
	if (atomic_exchange_explicit(&lock_word, 0, memory_order_release) == 2)
		syscall(SYS_futex, &lock_word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	lock_held = 0;
}

/* Said by the thread itself, while it is inside: so it sees the note when it leaves, however late
 * whoever asked goes on. */
bool guard_thread_busy(void)
{
	bool busy = guest_inside || (guard_multiple ? lock_held != 0 : guard_inside != 0);
	if (busy)
		guard_attention = 1;
	return busy;
}
