/* SPDX-License-Identifier: BSD-3-Clause */
/* What the operations of Table 4.2 take: ./ops N BLOCK prints "checksum check correct" in seconds for an N x N
 * matrix whose checksums are taken per BLOCK x BLOCK block (BLOCK = N: per matrix), medians of 9, and the bytes that
 * the checksums take (figure 4.14). */
#include <hale/protect.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int compare(const void *a, const void *b)
{
	const double *x = a, *y = b;
	return (*x > *y) - (*x < *y);
}

int main(int argc, char **argv)
{
	enum { ROUNDS = 9 };
	size_t n = argc > 1 ? strtoul(argv[1], NULL, 10) : 512, block = argc > 2 ? strtoul(argv[2], NULL, 10) : n;
	size_t blocks = (n / block) * (n / block), bytes = block * block * sizeof(double);
	double *x = malloc(blocks * bytes), took[3][ROUNDS];
	struct hale_var *v = calloc(blocks, sizeof *v);
	static struct hale_region r = HALE_REGION("ops", __FILE__, __LINE__);
	int fine = x && v;

	for (size_t i = 0; fine && i < blocks * block * block; i++)
		x[i] = (double)(i % 1000) / 7;
	size_t before = mallinfo2().uordblks + mallinfo2().hblkhd, space = 0;
	for (int k = 0; fine && k < ROUNDS; k++) {
		double t[4];
		t[0] = now();
		for (size_t b = 0; b < blocks; b++) {
			v[b].name = "x";
			hale_note(&v[b], HALE_SUM, x + b * block * block, bytes);
		}
		t[1] = now();
		if (!k)
			space = mallinfo2().uordblks + mallinfo2().hblkhd - before;
		for (size_t b = 0; b < blocks; b++)
			fine &= hale_check(&r, &v[b]);
		t[2] = now();
		x[block * block / 2 + 7] += 1;
		fine &= !hale_check(&r, &v[0]);
		double from = now();
		fine &= hale_correct(&r, &v[0]);
		t[3] = now() - from;
		took[0][k] = t[1] - t[0];
		took[1][k] = t[2] - t[1];
		took[2][k] = t[3];
	}
	for (int k = 0; fine && k < 3; k++) {
		qsort(took[k], ROUNDS, sizeof **took, compare);
		printf("%.6f ", took[k][ROUNDS / 2]);
	}
	printf("%zu\n", space);
	for (size_t b = 0; v && b < blocks; b++)
		hale_forget(&v[b]);
	free(x);
	free(v);
	return !fine;
}
