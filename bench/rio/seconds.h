/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_RIO_SECONDS_H
#define BENCH_RIO_SECONDS_H

#include <time.h>

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#endif
