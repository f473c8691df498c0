/* SPDX-License-Identifier: BSD-3-Clause */
/* hale-simulate [--seed N] [--runs N] [--kinds KIND,…] [--first] [--verbose]: schedules of faults,
 * one seed each. A failing one prints its story. --first: the first that fails is the last. */
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "globals.h"
#include "world.h"

OWN static unsigned long seed_now;

/* On a stack of its own: that of a process may be what has run out. */
static void crashed(int sig)
{
	char text[64];
	int n = snprintf(text, sizeof(text), "seed %lu: it crashes (signal %d)\n", seed_now, sig);

	if (write(STDOUT_FILENO, text, (size_t)n) < 0)
		_exit(2);
	_exit(1);
}

static void watch_crashes(void)
{
	OWN static char stack[65536];
	stack_t s = {.ss_sp = stack, .ss_size = sizeof(stack)};
	struct sigaction a = {.sa_handler = crashed, .sa_flags = SA_ONSTACK};

	sigaltstack(&s, NULL);
	sigaction(SIGSEGV, &a, NULL);
	sigaction(SIGBUS, &a, NULL);
	sigaction(SIGABRT, &a, NULL);
}

static int usage(void)
{
	fprintf(stderr, "usage: hale-simulate [--seed N] [--runs N] [--kinds KIND,…] [--no-swarm] "
			"[--first] [--verbose]\n"
			"The kinds of faults are in tests/simulate/faults.c.\n");
	return 64;
}

int main(int argc, char **argv)
{
	unsigned long seed = 1, runs = 1, bad = 0, steps = 0, ends[5] = {0};
	unsigned long bad_max = 10;
	int verbose = 0;

	/* what one schedule has given back the next one takes: the real kernel is not asked again
	 */
	mallopt(M_MMAP_THRESHOLD, 64 << 20);
	mallopt(M_TRIM_THRESHOLD, 512 << 20);
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--seed") && i + 1 < argc)
			seed = strtoul(argv[++i], NULL, 0);
		else if (!strcmp(argv[i], "--runs") && i + 1 < argc)
			runs = strtoul(argv[++i], NULL, 0);
		else if (!strcmp(argv[i], "--kinds") && i + 1 < argc && world_choose(argv[i + 1]))
			i++;
		else if (!strcmp(argv[i], "--no-swarm"))
			world_no_swarm();
		else if (!strcmp(argv[i], "--first"))
			bad_max = 1;
		else if (!strcmp(argv[i], "--verbose"))
			verbose = 1;
		else
			return usage();
	}
	watch_crashes();
	for (unsigned long i = 0; i < runs && bad < bad_max; i++) {
		seed_now = seed + i;
		fflush(stdout);
		struct world_result r = world_run(seed + i, verbose && runs == 1);

		steps += r.steps;
		ends[r.exit_status == 0	   ? 0
		     : r.exit_status == 70 ? 1
		     : r.exit_status > 128 ? 2
		     : r.exit_status == 64 ? 3
					   : 4]++;
		if (!r.good) {
			bad++;
			if (runs == 1 || bad == 1)
				printf("%s", r.story ? r.story : "");
			printf("seed %lu: %s\n", seed + i, r.failure);
		} else if (verbose && runs > 1) {
			printf("seed %lu: status %d\n", seed + i, r.exit_status);
		} else if (runs == 1) {
			printf("seed %lu: right; status %d, %u faults, %lu steps, %.1f s\n",
			       seed + i, r.exit_status, r.faults, (unsigned long)r.steps,
			       r.seconds);
		}
		free(r.story);
	}
	/* 64: a node was lost before the job had begun, which is refused */
	printf("%lu schedules, %lu wrong; %lu steps; ended with 0: %lu, 70: %lu, killed: %lu, "
	       "64: %lu, other: %lu\n",
	       runs, bad, steps, ends[0], ends[1], ends[2], ends[3], ends[4]);
	fflush(stdout);
	_exit(bad ? 1 : 0);
}
