// SPDX-License-Identifier: BSD-3-Clause
/* A timer that interrupts the program, as a checkpoint does, to do a little work of the library's
 * while the program computes. Rounds that moved something are followed by the next soon, others
 * ever later. The timer's signal is that of checkpoints, told apart by its origin, so that no
 * program blocks it (masks.c). */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/cancel.h"
#include "ckpt/rank_private.h"

enum { TICK_SOON_NS = 300000, TICK_LATE_NS = 8000000, TICK_NONE = -1 };

static int (*tick_work)(void);
static int tick_id = TICK_NONE;
static long tick_ns = TICK_SOON_NS;

static void tick_set(void)
{
	struct itimerspec at = {.it_value = {0, tick_ns}};
	if (tick_id != TICK_NONE)
		syscall(SYS_timer_settime, tick_id, 0, &at, NULL);
}

bool tick_start(int (*work)(void))
{
	struct sigevent ev = {.sigev_signo = PROTO_CKPT_SIGNAL, .sigev_notify = SIGEV_THREAD_ID};
	if (tick_id != TICK_NONE || !link_self()->connected)
		return true;
	/* the first thread, whose id is the process's */
	ev._sigev_un._tid = getpid();
	if (syscall(SYS_timer_create, CLOCK_MONOTONIC, &ev, &tick_id)) {
		tick_id = TICK_NONE;
		return false;
	}
	tick_work = work;
	tick_ns = TICK_SOON_NS;
	tick_set();
	return true;
}

void tick_stop(void)
{
	if (tick_id == TICK_NONE)
		return;
	syscall(SYS_timer_delete, tick_id);
	tick_id = TICK_NONE;
}

void tick_handle(void)
{
	UNCANCELLED;
	int saved_errno = errno, moved = 0;
	if (tick_id == TICK_NONE)
		return;
	if (!guard_inside && !guest_inside) {
		guard_inside = 1;
		if (!guard_multiple || guard_lock_soon()) {
			moved = tick_work();
			if (guard_multiple)
				guard_unlock_slow();
		}
		/* perhaps this is the end of what the thread sleeps for */
		if (moved)
			link_wake_self();
		guard_inside = 0;
		if (guard_attention)
			guard_attend();
	}
	long next = moved ? TICK_SOON_NS : tick_ns * 2;
	tick_ns = next < TICK_LATE_NS ? next : TICK_LATE_NS;
	tick_set();
	errno = saved_errno;
}
