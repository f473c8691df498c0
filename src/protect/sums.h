/* SPDX-License-Identifier: BSD-3-Clause */
/* Checksums of bytes at rest, after Huang and Abraham, over integers.
 *
 * The bytes are taken as 64-bit words in rows of `width` words. For each row and each column the
 * sum of its words modulo 2^64 is kept, and a 128-bit hash of all bytes. Since nothing is rounded
 * there is no threshold: NaN, Inf and any condition number are fine, and a corrected word has the
 * very bits that it had.
 *
 *             w00 w01 w02 | r0
 *             w10 w11 w12 | r1
 *             --------------
 *             c0  c1  c2
 *
 * An error d in w11 changes r1 and c1 by d, and nothing else. Of errors in several words of one row
 * (column) each column (row) tells its own d. Errors in different rows and columns are paired by
 * equal d. Whatever is mended, the hash decides whether that was right.
 *
 * The sums have a hash of their own, and the hash of the bytes is kept three times: damage to the
 * checksums themselves is noticed, and never turned into damage of the data.
 */
#ifndef HALE_PROTECT_SUMS_H
#define HALE_PROTECT_SUMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "protect/hash.h"

struct sums {
	size_t bytes, width, rows; /* width and rows in words */
	uint64_t *words;	   /* rows row sums, then width column sums; owned */
	struct hash128 of_words;   /* of the sums */
	struct hash128 of_bytes[3];
};

typedef enum sums_verdict {
	SUMS_RIGHT, /* the bytes are those that were taken */
	SUMS_WRONG,
	SUMS_UNKNOWN, /* the three hashes disagree: nothing can be said */
} sums_verdict_t;

/* Takes the checksums of bytes at base. with_words: also row and column sums, else the hash only.
 * s is zero or was taken before. False: no memory. */
bool sums_take(struct sums *s, const void *base, size_t bytes, bool with_words);
void sums_fini(struct sums *s);

struct hash128 sums_hash(const void *base, size_t bytes);
/* The bytes ought to have been those of that hash when they were taken. If they were not, verifying
 * says so; correcting does not mend them, as the sums know only what was taken. */
void sums_refer(struct sums *s, struct hash128 to);

sums_verdict_t sums_verify(const struct sums *s, const void *base);

/* Mends the bytes at base. Returns the number of words that were mended (0 when only the checksums
 * were damaged, which are then taken anew), or -1: the bytes are as they were, and not right. */
int sums_correct(struct sums *s, void *base);

/* Bytes that the checksums of so many bytes take. */
size_t sums_space(size_t bytes);

#endif
