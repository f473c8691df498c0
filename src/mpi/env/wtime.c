/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Wtime: the machine's monotonic clock plus an offset kept in private memory, so that time
 * neither runs backwards nor leaps when an image is restored on a machine that was started at
 * another time. */
#include "mpi/api.h"
#include "mpi/env/env.h"

enum { CLOCK_TOLERANCE_NS = 1000000000 };

static int64_t wtime_offset_ns;
static int64_t saved_monotonic, saved_real;

static int64_t now_of(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void nothing_to_start(void)
{
}

static bool nothing_in_flight(void)
{
	return true;
}

static void wtime_save(void)
{
	saved_monotonic = now_of(CLOCK_MONOTONIC);
	saved_real = now_of(CLOCK_REALTIME);
}

/* The two clocks agree about how long it has been, or the monotonic one is another machine's (or
 * this one's after a reboot). Then the time of day says how long it has been. */
static void wtime_resume(bool restored)
{
	int64_t monotonic, real;

	if (!restored)
		return;
	monotonic = now_of(CLOCK_MONOTONIC) - saved_monotonic;
	real = now_of(CLOCK_REALTIME) - saved_real;
	if (real < 0)
		real = 0;
	if (monotonic < 0 || monotonic - real > CLOCK_TOLERANCE_NS ||
	    real - monotonic > CLOCK_TOLERANCE_NS)
		wtime_offset_ns += real - monotonic;
}

static struct ckpt_participant participant = {
    .name = "clock",
    .suspend_start = nothing_to_start,
    .suspend_poll = nothing_in_flight,
    .save = wtime_save,
    .resume = wtime_resume,
};

int wtime_init(void)
{
	ckpt_participate(&participant);
	return MPI_SUCCESS;
}

double PMPI_Wtime(void)
{
	return (double)(now_of(CLOCK_MONOTONIC) + wtime_offset_ns) * 1e-9;
}
API_ALIAS(Wtime);

double PMPI_Wtick(void)
{
	struct timespec t;

	clock_getres(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}
API_ALIAS(Wtick);
