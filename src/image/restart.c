// SPDX-License-Identifier: BSD-3-Clause
/* A checkpoint must not be seen by the program as an interrupted system call.
 *
 * With SA_RESTART the kernel itself restarts most calls when the handler returns. Those that it
 * never restarts return -EINTR; the handler finds them by the code in front of the place that it
 * will return to (`mov $number, %eax … syscall`, as every libc has it) and steps back onto the
 * syscall instruction. Where a number is no constant, xmm15 has it (clocks.c). Sleeps go on with
 * the rest of their time: the kernel has reported it, or is made to report it from the second
 * interruption on. Of other waits nobody knows when they began, so they last longer by what had
 * passed until the first one.
 */
#include <errno.h>
#include <linux/futex.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <ucontext.h>

#include "image/engine.h"

enum { SCAN_BACK = 40, SYSCALL_LEN = 2, MOV_LEN = 5, NUMBERS = 1024 };

enum timing {
	NOT_OURS,
	PLAIN,
	SLEEP_REM_RSI,
	SLEEP_REM_R10,
	MS_RDX,
	MS_R10,
	SPEC_RDX, /* a timespec that the kernel leaves as it is */
	SPEC_R10,
	SPEC_R8,
	RECEIVES, /* for as long as the socket's option says */
	SENDS
};

/* Of this thread, for a call that had to be started again. */
static __thread struct {
	struct timespec rest; /* of a sleep, where the program didn't ask; of another wait */
	uint64_t since_ns;    /* when it was started again; of a socket's: for the first time */
	greg_t rip, rsp;      /* of a socket's */
} again __attribute__((tls_model("initial-exec")));

/* Time-outs in ms are ints in 64-bit registers; the upper half marks those that we have set. */
#define MS_MARK 0x48414c45ull

/* A call on a socket has no register to spare. Zero and negative at once is what no computation
 * leaves in the flags; the kernel gives them back as they are, and nobody reads them behind a
 * system call. */
enum { AGAIN_MARK = 1 << 6 | 1 << 7 };

static enum timing timing_of(uint32_t nr, const greg_t *r)
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
	case SYS_rt_sigtimedwait:
		return SPEC_RDX;
	case SYS_epoll_pwait2:
	case SYS_semtimedop:
		return SPEC_R10;
	case SYS_io_getevents:
	case SYS_io_pgetevents:
		return SPEC_R8;
	case SYS_futex: /* all others wait until a time */
		return (r[REG_RSI] & FUTEX_CMD_MASK) == FUTEX_WAIT ? SPEC_R10 : PLAIN;
	case SYS_ppoll: /* the kernel writes the rest into the caller's timespec */
	case SYS_select:
	case SYS_pselect6:
	case SYS_pause:
	case SYS_semop:
	case SYS_msgrcv:
	case SYS_msgsnd:
	case SYS_rt_sigsuspend:
		return PLAIN;
	case SYS_read:
	case SYS_readv:
	case SYS_recvfrom:
	case SYS_recvmsg:
	case SYS_recvmmsg:
	case SYS_accept:
	case SYS_accept4:
		return RECEIVES;
	case SYS_write:
	case SYS_writev:
	case SYS_sendto:
	case SYS_sendmsg:
	case SYS_sendmmsg:
	case SYS_sendfile:
	case SYS_connect:
		return SENDS;
	default:
		return NOT_OURS;
	}
}

/* The number of what was called just before rip; NUMBERS: it can't be told. */
static uint32_t interrupted_call(const ucontext_t *u)
{
	static const unsigned char number_in_xmm15[] = {0x66, 0x4c, 0x0f, 0x6e, 0xf8},
				   xor_eax[] = {0x31, 0xc0};
	const unsigned char *end =
	    (const unsigned char *)u->uc_mcontext.gregs[REG_RIP] - SYSCALL_LEN;
	uintptr_t floor = (uintptr_t)end & ~(HALE_PAGE - 1);
	uint32_t nr;
	if (end[0] != 0x0f || end[1] != 0x05)
		return NUMBERS;
	if ((uintptr_t)end - sizeof(xor_eax) >= floor &&
	    !memcmp(end - sizeof(xor_eax), xor_eax, sizeof(xor_eax)))
		return 0;
	if ((uintptr_t)end - sizeof(number_in_xmm15) >= floor &&
	    !memcmp(end - sizeof(number_in_xmm15), number_in_xmm15, sizeof(number_in_xmm15)))
		return u->uc_mcontext.fpregs->_xmm[15].element[0];
	for (int back = MOV_LEN; back <= SCAN_BACK && (uintptr_t)(end - back) >= floor; back++) {
		if (end[-back] != 0xb8)
			continue;
		memcpy(&nr, end - back + 1, sizeof(nr));
		if (nr < NUMBERS)
			return nr;
	}
	return NUMBERS;
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

static void shorten_spec(greg_t *timeout)
{
	const struct timespec *asked = (const struct timespec *)*timeout;
	uint64_t now = clock_ns();
	if (!asked)
		return;
	if (asked != &again.rest) {
		again.rest = *asked;
	} else if (now > again.since_ns) {
		int64_t passed = (int64_t)(now - again.since_ns);
		again.rest.tv_sec -= passed / 1000000000;
		again.rest.tv_nsec -= passed % 1000000000;
		if (again.rest.tv_nsec < 0) {
			again.rest.tv_nsec += 1000000000;
			again.rest.tv_sec--;
		}
		if (again.rest.tv_sec < 0)
			again.rest = (struct timespec){0, 0};
	}
	again.since_ns = now;
	*timeout = (greg_t)&again.rest;
}

/* Would a wait for this socket have ended by now? The kernel begins its time anew. */
static bool is_over(greg_t *r, int option)
{
	struct timeval limit = {0, 0};
	uint32_t len = sizeof(limit);
	uint64_t now = clock_ns();
	bool first = (r[REG_EFL] & AGAIN_MARK) != AGAIN_MARK || again.rip != r[REG_RIP] ||
		     again.rsp != r[REG_RSP];
	if (sys(SYS_getsockopt, r[REG_RDI], SOL_SOCKET, option, &limit, &len) ||
	    (!limit.tv_sec && !limit.tv_usec))
		return false;
	if (!first && now > again.since_ns)
		return (now - again.since_ns) / 1000 >=
		       (uint64_t)limit.tv_sec * 1000000 + (uint64_t)limit.tv_usec;
	again.since_ns = now;
	again.rip = r[REG_RIP];
	again.rsp = r[REG_RSP];
	r[REG_EFL] |= AGAIN_MARK;
	return false;
}

/* The next start of the call sleeps what is left, and reports what is left then. */
static void sleep_on(greg_t *request, greg_t *rest)
{
	if (*rest)
		*request = *rest;
	else
		*rest = (greg_t)&again.rest;
}

void image_restart_revived(void)
{
	if (again.since_ns)
		again.since_ns = clock_ns();
}

void image_restart_syscall(void *ucontext)
{
	greg_t *r = ((ucontext_t *)ucontext)->uc_mcontext.gregs;
	if (r[REG_RAX] != -EINTR)
		return;
	uint32_t nr = interrupted_call(ucontext);
	enum timing timing = timing_of(nr, r);
	switch (timing) {
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
	case SPEC_RDX:
		shorten_spec(&r[REG_RDX]);
		break;
	case SPEC_R10:
		shorten_spec(&r[REG_R10]);
		break;
	case SPEC_R8:
		shorten_spec(&r[REG_R8]);
		break;
	case RECEIVES:
	case SENDS:
		if (is_over(r, timing == SENDS ? SO_SNDTIMEO : SO_RCVTIMEO)) {
			r[REG_RAX] = nr == SYS_connect ? -EINPROGRESS : -EAGAIN;
			return;
		}
		break;
	case PLAIN:
		break;
	}
	r[REG_RAX] = nr;
	r[REG_RIP] -= SYSCALL_LEN;
}
