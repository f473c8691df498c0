// SPDX-License-Identifier: BSD-3-Clause
/* The device's side of offload_tour.c and offload_ticks.c: a shared object. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "hale_offload.h"

void add(struct hale_call *c);
void tick(struct hale_call *c);
void crash(struct hale_call *c);
void nap(struct hale_call *c);

/* c = a + factor * b */
void add(struct hale_call *c)
{
	const double *a = c->buffer[0], *b = c->buffer[1], *factor = c->args;
	double *sum = c->buffer[2], total = 0;

	for (size_t i = 0; i < c->size[0] / sizeof(double); i++)
		total += sum[i] = a[i] + *factor * b[i];
	memcpy(c->result, &total, sizeof(total));
}

/* State of its own, on the heap, that the host never sees but by results; and the same in a buffer. */
static long *counts;

void tick(struct hale_call *c)
{
	const int *which = c->args; /* counter, rounds of work */
	long *shared = c->buffer[0], result[2];
	volatile double x = 1;

	if (!__atomic_load_n(&counts, __ATOMIC_ACQUIRE)) {
		long *mine = calloc(64, sizeof(long)), *none = NULL;

		if (!__atomic_compare_exchange_n(&counts, &none, mine, 0, __ATOMIC_ACQ_REL,
						 __ATOMIC_ACQUIRE))
			free(mine);
	}
	counts[which[0]]++;
	for (int i = 0; i < which[1]; i++)
		x = x * 1.0000001 + 1e-9;
	shared[which[0]]++;
	result[0] = counts[which[0]];
	result[1] = shared[which[0]];
	memcpy(c->result, result, sizeof(result));
}

void crash(struct hale_call *c)
{
	abort();
}

void nap(struct hale_call *c)
{
	struct timespec t = {3600, 0};

	nanosleep(&t, NULL);
}
