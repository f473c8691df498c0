// SPDX-License-Identifier: BSD-3-Clause
/* A checkpoint must not be seen by the program as an interrupted system call.
 *
 * With SA_RESTART the kernel itself restarts most calls when the handler returns. Those that it
 * never restarts return -EINTR; the handler finds them by the code in front of the place that it
 * will return to (`mov $number, %eax … syscall`, as every libc has it) and steps back onto the
 * syscall instruction. Sleeps go on with the rest of their time: the kernel has reported it, or
 * is made to report it from the second interruption on.
 */
#include <errno.h>
#include <stddef.h>
#include <time.h>
#include <ucontext.h>

#include "image/engine.h"

enum { SCAN_BACK = 40, SYSCALL_LEN = 2, MOV_LEN = 5 };

enum timing { NOT_OURS, PLAIN, SLEEP_REM_RSI, SLEEP_REM_R10, MS_RDX, MS_R10 };

/* Of this thread, for a call that had to be started again. */
static __thread struct {
	struct timespec
	    rest;	   /* where the kernel reports a sleep's rest, if the program didn't ask */
	uint64_t since_ns; /* when a wait with a time-out in ms was started again */
} again __attribute__((tls_model("initial-exec")));

/* Time-outs in ms are ints in 64-bit registers; the upper half marks those that we have set. */
#define MS_MARK 0x48414c45ull

static enum timing timing_of(uint32_t nr)
{
	switch (nr) {
	case SYS_poll:
		return MS_RDX;
	case SYS_epoll_wait:
	case SYS_epoll_pwait:
		return MS_R10;
	case SYS_nanosleep:
		return SLEEP_REM_RSI;
	case SYS_clock_nanosleep:
		return SLEEP_REM_R10;
	case SYS_ppoll: /* the kernel writes the rest into the caller's timespec */
	case SYS_select:
	case SYS_pselect6:
	case SYS_futex:
	case SYS_pause:
	case SYS_semop:
	case SYS_semtimedop:
	case SYS_msgrcv:
	case SYS_msgsnd:
	case SYS_rt_sigsuspend:
	case SYS_rt_sigtimedwait:
	case SYS_epoll_pwait2:
	case SYS_io_getevents:
		return PLAIN;
	default:
		return NOT_OURS;
	}
}

/* What was called just before rip, if that is a call which the kernel never restarts. */
static enum timing interrupted_call(uintptr_t rip, uint32_t *nr)
{
	const unsigned char *end = (const unsigned char *)rip - SYSCALL_LEN;
	uintptr_t floor = (uintptr_t)end & ~(HALE_PAGE - 1);
	if (end[0] != 0x0f || end[1] != 0x05)
		return NOT_OURS;
	for (int back = MOV_LEN; back <= SCAN_BACK && (uintptr_t)(end - back) >= floor; back++) {
		if (end[-back] != 0xb8)
			continue;
		__builtin_memcpy(nr, end - back + 1, sizeof(*nr));
		enum timing t = timing_of(*nr);
		if (t != NOT_OURS)
			return t;
	}
	return NOT_OURS;
}

static void shorten_ms(greg_t *timeout)
{
	int32_t ms = (int32_t)*timeout;
	uint64_t now = clock_ns();
	if (ms <= 0)
		return;
	if ((uint64_t)*timeout >> 32 == MS_MARK && now > again.since_ns) {
		uint64_t passed = (now - again.since_ns) / 1000000;
		ms = passed >= (uint64_t)ms ? 0 : ms - (int32_t)passed;
	}
	again.since_ns = now;
	*timeout = (greg_t)(MS_MARK << 32 | (uint32_t)ms);
}

/* The next start of the call sleeps what is left, and reports what is left then. */
static void sleep_on(greg_t *request, greg_t *rest)
{
	if (*rest)
		*request = *rest;
	else
		*rest = (greg_t)&again.rest;
}

void image_restart_syscall(void *ucontext)
{
	greg_t *r = ((ucontext_t *)ucontext)->uc_mcontext.gregs;
	uint32_t nr = 0;
	if (r[REG_RAX] != -EINTR)
		return;
	switch (interrupted_call((uintptr_t)r[REG_RIP], &nr)) {
	case NOT_OURS:
		return;
	case SLEEP_REM_RSI:
		sleep_on(&r[REG_RDI], &r[REG_RSI]);
		break;
	case SLEEP_REM_R10:
		if (!(r[REG_RSI] & TIMER_ABSTIME))
			sleep_on(&r[REG_RDX], &r[REG_R10]);
		break;
	case MS_RDX:
		shorten_ms(&r[REG_RDX]);
		break;
	case MS_R10:
		shorten_ms(&r[REG_R10]);
		break;
	case PLAIN:
		break;
	}
	r[REG_RAX] = nr;
	r[REG_RIP] -= SYSCALL_LEN;
}
