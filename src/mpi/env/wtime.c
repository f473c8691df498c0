/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Wtime: the program's monotonic clock, which goes on where it is restored (ckpt/clocks.h). */
#include "base/clock.h"
#include "match/decide.h"
#include "mpi/api.h"

double PMPI_Wtime(void)
{
	static double ahead; /* of this process's clock the leader's was, when it led */
	double now = clock_seconds();

	if (UNLIKELY(redundant_on)) {
		double own = now;
		now += ahead;
		guard_enter();
		decide_value(DECIDE_TIME, &now, sizeof(now));
		guard_leave();
		ahead = now - own;
	}
	return now;
}
API_ALIAS(Wtime);

double PMPI_Wtick(void)
{
	struct timespec t;

	clock_getres(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}
API_ALIAS(Wtick);
