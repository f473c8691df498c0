/* SPDX-License-Identifier: BSD-3-Clause */
/* When pages of a live image are compressed on their way: where the link is slower than the
 * compressor, by what both took of late. Sending and compressing take turns in one process, so what
 * counts is their sum. Pure. */
#ifndef HALE_IMAGE_LIVE_PACK_H
#define HALE_IMAGE_LIVE_PACK_H

#include <stdbool.h>
#include <stddef.h>

struct live_packing {
	double send, pack; /* seconds for a byte; 0: not known yet */
	double left;	   /* of a byte, when it is compressed */
	bool on;
	unsigned wait, gap; /* batches until it is tried again, and between the tries before */
};

/* Is the next batch to be compressed? Tries are made seldom where they don't pay. */
bool live_pack_next(struct live_packing *p);
/* A batch was sent: raw bytes, of which `sent` went out; seconds that took. pack_s: seconds of the
 * compressor, 0: it was not asked. */
void live_pack_took(struct live_packing *p, size_t raw, size_t packed, size_t sent, double send_s,
		    double pack_s);

#endif
