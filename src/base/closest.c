/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/closest.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { LONGEST = sizeof(((struct closest *)0)->word) - 1 };

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* The restricted Damerau-Levenshtein distance, row by row. */
size_t closest_distance(const char *a, size_t a_len, const char *b, size_t b_len)
{
	size_t rows[3][LONGEST + 1], *row = rows[0], *above = rows[1], *before = rows[2];

	if (a_len > LONGEST || b_len > LONGEST)
		return SIZE_MAX;
	for (size_t j = 0; j <= b_len; j++)
		above[j] = j;
	for (size_t i = 1; i <= a_len; i++) {
		row[0] = i;
		for (size_t j = 1; j <= b_len; j++) {
			row[j] = least(above[j] + 1, row[j - 1] + 1);
			row[j] = least(row[j], above[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				row[j] = least(row[j], before[j - 2] + 1);
		}
		size_t *oldest = before;
		before = above;
		above = row;
		row = oldest;
	}
	return above[b_len];
}

void closest_init(struct closest *c, const char *wrong, size_t len)
{
	/* up to a third of the letters may be wrong, and one in any case */
	*c = (struct closest){.wrong = wrong, .len = len, .distance = len / 3 + (len < 3) + 1};
}

void closest_try(struct closest *c, const char *word, size_t len)
{
	size_t distance = closest_distance(c->wrong, c->len, word, len);

	if (distance >= c->distance || distance >= len)
		return;
	c->distance = distance;
	snprintf(c->word, sizeof(c->word), "%.*s", (int)len, word);
}
