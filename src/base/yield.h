/* SPDX-License-Identifier: BSD-3-Clause */
/* Giving the core away while waiting.
 *
 * A yield puts a thread behind all others that want its core. When these wait, too, it is back
 * after a microsecond; when they compute, after milliseconds, and so at every yield: two processes
 * that hand a word to and fro by yielding take 12 ms a turn beside four that count on two cores.
 * Who sleeps and is woken runs at once: 4 us a turn. So a waiting loop yields as long as it is back
 * soon, and sleeps for a while when it was not.
 */
#ifndef HALE_BASE_YIELD_H
#define HALE_BASE_YIELD_H

#include <stdbool.h>
#include <stdint.h>

/* One wait, or a part of it in which nothing takes time but looking and yielding. Begins zeroed. */
struct yields {
	uint64_t first, last; /* in ticks (base/clock.h) */
	uint32_t count;
};

/* It has given away its core 64 times, for about 100 us or more. */
static inline bool yields_are_long(const struct yields *y)
{
	return y->count >= 64 && y->last - y->first > 250000;
}

/* ours: how many processes of this machine that wait as we do may want a core now, this one among
 * them. A core that comes back late from those is not with others. Async-signal-safe. */
void yield_among(uint32_t (*ours)(void));

/* Yields. False: others had the core and gave it back late, or did so too often lately (then it has
 * not yielded at all); whoever can sleep should. Async-signal-safe. */
bool yield_core(struct yields *y);

/* yield_core would not yield now: others compute here. Nor does it pay to spin then, since whom one
 * waits for may need this core. */
bool yield_is_dear(void);

/* For loops that nobody wakes: yields, or sleeps for some tens of microseconds. */
void yield_or_nap(void);

/* For those who only look whether something has come, and may have to compute when nothing has:
 * yields, but is away for at most half of the time. */
void yield_fairly(void);

#endif
