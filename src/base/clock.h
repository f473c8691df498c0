/* SPDX-License-Identifier: BSD-3-Clause */
/* Monotonic time in seconds and nanoseconds. */
#ifndef HALE_BASE_CLOCK_H
#define HALE_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t clock_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline double clock_seconds(void)
{
	return (double)clock_ns() * 1e-9;
}

/* Of the processor's time stamp counter, some billions a second: half as dear as clock_ns, for what
 * need not be known exactly. */
static inline uint64_t clock_ticks(void)
{
	return __builtin_ia32_rdtsc();
}

/* A hint to the core that this is a waiting loop. */
static inline void cpu_relax(void)
{
	__builtin_ia32_pause();
}

#endif
