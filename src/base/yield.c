/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/yield.h"

#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "base/base.h"
#include "base/clock.h"

/* In ticks, of which a microsecond has 1000 to 5000. */
#define LATE	  1250000 /* who only looks and yields again takes a hundredth of it */
#define SLEEP	  30000	  /* what it costs to sleep and be woken instead of yielding */
#define PAUSE_MAX 2500000000u

enum { NAP_NS = 50000, PAUSE_FIRST = 4, PAUSE_LAST = 64, SURE = 3, SURE_MAX = 5 };

/* Of all threads, since they compete for the same cores; a lost update does no harm. */
static _Atomic uint64_t late_until, fair_from;
static uint32_t (*ours_of)(void);
static _Atomic uint32_t soon;	/* yields since the last late one */
static _Atomic uint32_t signs;	/* late ones at which others wanted a core, less the rest of them */
static _Atomic uint32_t factor; /* what the next pause is longer than what it follows */

static inline uint64_t get(const _Atomic uint64_t *p)
{
	return atomic_load_explicit(p, memory_order_relaxed);
}

static inline void set(_Atomic uint64_t *p, uint64_t value)
{
	atomic_store_explicit(p, value, memory_order_relaxed);
}

void yield_among(uint32_t (*ours)(void))
{
	ours_of = ours;
}

/* More want a core than we are just now. System calls as such, since libc's are where threads end
 * that are cancelled. */
static bool others_want_it(void)
{
	char text[64] = "";
	int fd = ours_of ? (int)syscall(SYS_openat, AT_FDCWD, "/proc/loadavg", O_RDONLY | O_CLOEXEC)
			 : -1;
	ssize_t n = fd >= 0 ? syscall(SYS_read, fd, text, sizeof(text) - 1) : 0;
	const char *p = text;
	uint32_t want = 0;

	if (fd >= 0)
		syscall(SYS_close, fd);
	for (int spaces = 0; n > 0 && *p && spaces < 3; p++)
		spaces += *p == ' ';
	for (; *p >= '0' && *p <= '9'; p++)
		want = want * 10 + (uint32_t)(*p - '0');
	return n <= 0 || want > ours_of();
}

/* Not only for a moment, as threads of the kernel do, and those of ours that are just being woken:
 * of 2300 late yields among 8 ranks on two cores 1 in 15 to 40 looked so. */
static bool others_compute(void)
{
	uint32_t n = atomic_load_explicit(&signs, memory_order_relaxed);
	bool now = others_want_it();
	if (now)
		n += n < SURE_MAX;
	else
		n -= n > 0;
	atomic_store_explicit(&signs, n, memory_order_relaxed);
	return now && n >= SURE;
}

/* A time that is not, but for too far ahead: the process has been restored where ticks count from
 * another day. */
static inline bool is_ahead(uint64_t until, uint64_t now)
{
	return (int64_t)(until - now) > 0 && until - now <= PAUSE_MAX;
}

/* Sleeping in all waits since the last late yield would have cost less: then that is what we do
 * for some time. The next try costs what this one did, so it comes later and later. */
static void late_note(uint64_t now, uint64_t took)
{
	uint32_t n = atomic_exchange_explicit(&soon, 0, memory_order_relaxed);
	uint32_t f = atomic_load_explicit(&factor, memory_order_relaxed);
	if (n >= took / SLEEP) {
		atomic_store_explicit(&factor, 0, memory_order_relaxed);
		return;
	}
	f = f ? f * 2 : PAUSE_FIRST;
	f = f < PAUSE_LAST ? f : PAUSE_LAST;
	atomic_store_explicit(&factor, f, memory_order_relaxed);
	set(&late_until, now + (took * f < PAUSE_MAX ? took * f : PAUSE_MAX));
}

bool yield_is_dear(void)
{
	uint64_t until = get(&late_until);
	if (LIKELY(!until))
		return false;
	if (is_ahead(until, clock_ticks()))
		return true;
	set(&late_until, 0);
	return false;
}

bool yield_core(struct yields *y)
{
	if (UNLIKELY(yield_is_dear()))
		return false;
	uint64_t before = y->last ? y->last : clock_ticks();
	sched_yield();
	uint64_t now = clock_ticks();
	int64_t took = (int64_t)(now - before);
	y->last = now;
	if (!y->first)
		y->first = before;
	y->count++;
	if (UNLIKELY(took > LATE) && others_compute()) {
		late_note(now, (uint64_t)took);
		return false;
	}
	atomic_store_explicit(&soon, atomic_load_explicit(&soon, memory_order_relaxed) + 1,
			      memory_order_relaxed);
	return true;
}

void yield_or_nap(void)
{
	struct yields once = {0};
	struct timespec nap = {0, NAP_NS};
	if (!yield_core(&once))
		syscall(SYS_nanosleep, &nap, NULL);
}

void yield_fairly(void)
{
	uint64_t from = get(&fair_from);
	uint64_t before = clock_ticks();
	if (is_ahead(from, before))
		return;
	sched_yield();
	uint64_t now = clock_ticks();
	int64_t took = (int64_t)(now - before);
	if (took > LATE)
		set(&fair_from, now + ((uint64_t)took < PAUSE_MAX ? (uint64_t)took : PAUSE_MAX));
}
