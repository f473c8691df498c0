/* SPDX-License-Identifier: BSD-3-Clause */
/* The cases of redundant_test.c that are about a process that opens MPI late. A part of that file,
 * after the job. */
#ifndef HALE_DELIVER_REDUNDANT_LATE_CASES_H
#define HALE_DELIVER_REDUNDANT_LATE_CASES_H

static void late_jobs(void)
{
	int steps = job(1, 1 << 20, NULL, NULL, 0);

	for (uint32_t late = 0; late < processes; late++)
		for (unsigned seed = 1; seed <= 100; seed++) {
			uint32_t victim = (late + 1 + seed % (processes - 1)) % processes;
			int when = (int)(seed * 37) % steps;

			opens_late = late;
			job(seed, seed % 2 ? 1 << 20 : 700, &victim, &when, 1);
			opens_late = UINT32_MAX;
		}
}

/* What the dead have said lies in the memory of the node, also for those who have not been there.
 */
static void who_opens_after_a_death_knows_what_the_dead_had_decided(void **unused)
{
	late_jobs();
	compared(3, COMPARE_OFF);
	late_jobs();
	compared(3, COMPARE_HASH);
	late_jobs();
}

static int late_over(void **unused)
{
	opens_late = UINT32_MAX;
	compared(2, COMPARE_OFF);
	return 0;
}

#endif
