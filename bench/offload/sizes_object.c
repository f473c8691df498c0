/* SPDX-License-Identifier: BSD-3-Clause */
/* Of sizes.c: memory of the process's own, which no two pages have alike. */
#include <stdlib.h>
#include <string.h>
#include "hale_offload.h"

static unsigned long *memory, count;

void sum(struct hale_call *c)
{
	unsigned long all = 0;

	for (unsigned long i = 0; i < count; i++)
		all = all * 31 + memory[i];
	memcpy(c->result, &all, sizeof(all));
}

void grow(struct hale_call *c)
{
	unsigned long x = 88172645463325252ul;

	count = *(const size_t *)c->args / sizeof(*memory);
	memory = malloc(count * sizeof(*memory));
	for (unsigned long i = 0; memory && i < count; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		memory[i] = x;
	}
	sum(c);
}
