/* SPDX-License-Identifier: BSD-3-Clause */
/* What a rank has printed so far, so that after a rollback nothing is printed twice.
 *
 * Bytes of a stream are numbered from 0 since the job began. After a rollback to a checkpoint at
 * which the stream stood at p, the rank prints the bytes from p on again: those before `printed`
 * are swallowed, and compared with what was printed the first time:
 *
 *        p                    window                printed
 *   ─────┼──────────────────────┼─────────────────────┼──── new bytes ──▶
 *         compared by a hash      compared byte by
 *         of each 4 KiB           byte
 *
 * Hashes are kept of the last 256 MiB only: what is older is swallowed without a comparison. So
 * memory stays small however much is printed: 64 KiB, 8 bytes for each 4 KiB, never over 1 MiB.
 */
#ifndef HALE_HEAD_OUTPUT_OUTPUT_HISTORY_H
#define HALE_HEAD_OUTPUT_OUTPUT_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HISTORY_CHUNK = 4096, HISTORY_WINDOW = 65536, HISTORY_HASHES = 65536 };

struct history {
	uint64_t printed;      /* bytes passed on so far */
	uint64_t at;	       /* the next byte that the rank prints; < printed: again */
	bool differs;	       /* something else was printed the second time */
	unsigned char *window; /* [HISTORY_WINDOW]; byte n lies at n % HISTORY_WINDOW */
	uint64_t window_begin; /* the first byte that is in it */
	uint64_t *hashes;      /* of chunks [hash_first, hash_first + hash_count) */
	uint64_t hash_first;
	size_t hash_count, hash_cap;
	unsigned char *again; /* [HISTORY_CHUNK]: the chunk at `at`, as printed again */
	bool again_whole;     /* from its first byte on */
};

/* The stream stands at position, of what was before nothing is known. */
void history_init(struct history *h, uint64_t position);
void history_fini(struct history *h);

/* The rank printed these bytes: returns how many of them, from the front, were printed before and
 * must be swallowed; the others count as printed now. */
size_t history_take(struct history *h, const void *bytes, size_t len);

/* The rank was rolled back to where it had printed so much. */
void history_rewind(struct history *h, uint64_t position);

/* Nobody will go back behind position. */
void history_forget(struct history *h, uint64_t position);

#endif
