// SPDX-License-Identifier: BSD-3-Clause
/* A CPU-bound neighbour: counts for so many seconds, prints the count per second. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

int main(int argc, char **argv)
{
	double end = argc > 1 ? atof(argv[1]) : 2, began = now();
	volatile unsigned long work = 0;
	unsigned long rounds = 0;
	while (now() - began < end) {
		for (int i = 0; i < 100000; i++)
			work += (unsigned long)i;
		rounds++;
	}
	printf("%.1f\n", (double)rounds / (now() - began));
	return 0;
}
