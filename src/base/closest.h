/* SPDX-License-Identifier: BSD-3-Clause */
/* "Did you mean …": which of many words is like one that was mistyped. */
#ifndef HALE_BASE_CLOSEST_H
#define HALE_BASE_CLOSEST_H

#include <stddef.h>

struct closest {
	const char *wrong;
	size_t len;	  /* of wrong that counts */
	size_t distance;  /* of the best one so far */
	char word[64];	  /* the best one so far; "": none is like it */
};

void closest_init(struct closest *c, const char *wrong, size_t len);
/* word is one that could have been meant. */
void closest_try(struct closest *c, const char *word, size_t len);

/* Letters that have to be inserted, left out, replaced or exchanged with their neighbour to make one
 * word of the other. Words are of 63 bytes at most; a longer one is far from everything. */
size_t closest_distance(const char *a, size_t a_len, const char *b, size_t b_len);

#endif
