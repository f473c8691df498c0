/* SPDX-License-Identifier: BSD-3-Clause */
#include "ftb/broker_private.h"

int tree_candidates(int self, unsigned arity, int *order)
{
	int n = 0, a = self, ancestors;

	while (a > 0) {
		a = (a - 1) / (int)arity;
		order[n++] = a;
	}
	ancestors = n;
	for (int p = 0; p < self; p++) {
		bool seen = false;

		for (int i = 0; i < ancestors; i++)
			seen |= order[i] == p;
		if (!seen)
			order[n++] = p;
	}
	return n;
}
