// SPDX-License-Identifier: BSD-3-Clause
/* A process that owns so many MiB of random data and then beats: writes so many per cent of its
 * pages between two beats, prints "beat N <monotonic seconds> <gap ms>" and sleeps. No MPI.
 *
 *   hog MIB PERCENT BEAT_MS BEATS
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

int main(int argc, char **argv)
{
	size_t mib = argc > 1 ? strtoul(argv[1], NULL, 10) : 1024;
	double percent = argc > 2 ? atof(argv[2]) : 0;
	long beat_ms = argc > 3 ? atol(argv[3]) : 100;
	long beats = argc > 4 ? atol(argv[4]) : 100;
	size_t words = mib * (1 << 20) / 8, pages = mib * 256;
	uint64_t x = 88172645463325252ull;
	uint64_t *p =
	    mmap(NULL, words * 8, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return 1;
	for (size_t i = 0; i < words; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		p[i] = x;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("ready %.6f\n", now());
	double last = now();
	for (long n = 0; n < beats; n++) {
		size_t todo = (size_t)((double)pages * percent / 100);
		for (size_t k = 0; k < todo; k++)
			p[((size_t)n * 7919 + k * 97) % pages * 512] += 1;
		struct timespec t = {beat_ms / 1000, beat_ms % 1000 * 1000000};
		nanosleep(&t, NULL);
		double at = now();
		printf("beat %ld %.6f %.3f\n", n, at, (at - last) * 1e3);
		last = at;
	}
	uint64_t sum = 0;
	for (size_t i = 0; i < words; i++)
		sum = sum * 31 + p[i];
	printf("sum %lx\n", (unsigned long)sum);
	return 0;
}
