/* SPDX-License-Identifier: BSD-3-Clause */
#include "head/output/output_history.h"

#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>
#include "base/base.h"

void history_init(struct history *h, uint64_t position)
{
	*h = (struct history){.printed = position,
			      .at = position,
			      .window_begin = position,
			      /* a chunk of which the first bytes are unknown has no hash */
			      .hash_first = ALIGN_UP(position, HISTORY_CHUNK) / HISTORY_CHUNK};
}

void history_fini(struct history *h)
{
	free(h->window);
	free(h->hashes);
	free(h->again);
	*h = (struct history){0};
}

static size_t least(uint64_t a, uint64_t b)
{
	return (size_t)(a < b ? a : b);
}

/* Without memory a hash is lost, and with it a comparison, nothing else. */
static void keep_hash(struct history *h, uint64_t chunk)
{
	if (chunk != h->hash_first + h->hash_count)
		return;
	if (h->hash_count == HISTORY_HASHES)
		history_forget(h, (h->hash_first + HISTORY_HASHES / 2) * HISTORY_CHUNK);
	if (h->hash_count == h->hash_cap) {
		size_t cap = h->hash_cap ? 2 * h->hash_cap : 64;
		uint64_t *more = realloc(h->hashes, cap * sizeof(*more));
		if (!more)
			return;
		h->hashes = more;
		h->hash_cap = cap;
	}
	h->hashes[h->hash_count++] =
	    XXH3_64bits(h->window + chunk * HISTORY_CHUNK % HISTORY_WINDOW, HISTORY_CHUNK);
}

/* Bytes that are printed for the first time; at most up to the end of a chunk. */
static size_t take_new(struct history *h, const unsigned char *bytes, size_t len)
{
	size_t n = least(len, HISTORY_CHUNK - h->printed % HISTORY_CHUNK);

	if (!h->window)
		h->window = malloc(HISTORY_WINDOW);
	if (h->window) {
		memcpy(h->window + h->printed % HISTORY_WINDOW, bytes, n);
		if (h->printed + n > h->window_begin + HISTORY_WINDOW)
			h->window_begin = h->printed + n - HISTORY_WINDOW;
		if ((h->printed + n) % HISTORY_CHUNK == 0)
			keep_hash(h, h->printed / HISTORY_CHUNK);
	} else {
		h->window_begin = h->printed + n;
	}
	h->printed += n;
	h->at = h->printed;
	return n;
}

static void compare_window(struct history *h, const unsigned char *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (bytes[i] != h->window[(h->at + i) % HISTORY_WINDOW])
			h->differs = true;
}

static void compare_chunk(struct history *h, const unsigned char *bytes, size_t n)
{
	size_t offset = (size_t)(h->at % HISTORY_CHUNK);
	uint64_t chunk = h->at / HISTORY_CHUNK;

	if (!h->again)
		h->again = malloc(HISTORY_CHUNK);
	if (!h->again)
		return;
	if (offset == 0)
		h->again_whole = true;
	memcpy(h->again + offset, bytes, n);
	if (offset + n < HISTORY_CHUNK)
		return;
	if (h->again_whole && chunk >= h->hash_first && chunk - h->hash_first < h->hash_count &&
	    XXH3_64bits(h->again, HISTORY_CHUNK) != h->hashes[chunk - h->hash_first])
		h->differs = true;
	h->again_whole = false;
}

/* Bytes that were printed before; at most up to the end of a chunk or the window's beginning. */
static size_t take_again(struct history *h, const unsigned char *bytes, size_t len)
{
	size_t n = least(len, h->printed - h->at);

	n = least(n, HISTORY_CHUNK - h->at % HISTORY_CHUNK);
	if (h->at >= h->window_begin) {
		compare_window(h, bytes, n);
	} else {
		/* a chunk that ends within the window: its hash is there all the same */
		compare_chunk(h, bytes, n);
	}
	h->at += n;
	return n;
}

size_t history_take(struct history *h, const void *bytes, size_t len)
{
	const unsigned char *p = bytes;
	size_t swallowed = 0, done;

	while (swallowed < len && h->at < h->printed)
		swallowed += take_again(h, p + swallowed, len - swallowed);
	done = swallowed;
	while (done < len)
		done += take_new(h, p + done, len - done);
	return swallowed;
}

void history_rewind(struct history *h, uint64_t position)
{
	h->again_whole = false;
	h->at = position;
	if (position > h->printed) {
		/* what is between never came out of the pipe; nothing can be compared before it */
		uint64_t printed = position;
		history_fini(h);
		history_init(h, printed);
	}
}

void history_forget(struct history *h, uint64_t position)
{
	uint64_t first = position / HISTORY_CHUNK;
	size_t n;

	if (first <= h->hash_first)
		return;
	n = least(first - h->hash_first, h->hash_count);
	memmove(h->hashes, h->hashes + n, (h->hash_count - n) * sizeof(*h->hashes));
	h->hash_count -= n;
	h->hash_first += n;
}
