/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/lease/lease.h"

#include <time.h>

#define MARGIN_LEAST 250000000ull

uint64_t lease_ask(struct lease_held *l, uint64_t now)
{
	l->asked++;
	l->at[l->asked % LEASE_ASKS] = now;
	return l->asked;
}

bool lease_grant(struct lease_held *l, uint64_t number)
{
	uint64_t until;

	if (number == 0 || number > l->asked || number + LEASE_ASKS <= l->asked)
		return false;
	until = l->at[number % LEASE_ASKS] + l->term;
	if (number > l->granted)
		l->granted = number;
	if (until > l->until)
		l->until = until;
	return true;
}

bool lease_holds(const struct lease_held *l, uint64_t now)
{
	return l->term == 0 || now < l->until;
}

void lease_drop(struct lease_held *l)
{
	l->until = 0;
}

uint64_t lease_lost_at(uint64_t term, uint64_t granted_at)
{
	return granted_at + term + MARGIN_LEAST + term / 5;
}

uint64_t lease_clock(void)
{
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
