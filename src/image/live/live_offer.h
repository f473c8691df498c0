/* SPDX-License-Identifier: BSD-3-Clause */
/* A copy that is made beside an older one of the same process (docs/shadows.md, "Jumps"): most of
 * its pages that one has already, so only fingerprints of them travel.
 *
 *   sink     copies the pages of the older process, which runs on, to where the copy is built, and
 *            offers their fingerprints                                          (live_beside.c)
 *   source   sends pages whose fingerprints differ, and says which of the others are gone (pages.c)
 *
 * A fingerprint is taken of the sink's own bytes, so it does not matter that the older process
 * changes its memory meanwhile. Only what equals the source's page by all 128 bits stays. */
#ifndef HALE_IMAGE_LIVE_OFFER_H
#define HALE_IMAGE_LIVE_OFFER_H

#include "image/sink.h"

struct fingerprint {
	uint64_t low, high; /* XXH3-128 of a page */
};

/* What a sink has offered; in order of addresses. */
struct offer {
	struct list runs; /* struct offer_run */
	size_t hint;	  /* of the last one that was asked for */
};
struct offer_run {
	uint64_t addr, pages;
	const struct fingerprint *of; /* [pages] */
};

struct fingerprint fingerprint_of(const void *page);

/* ---- the source's side, in the process that writes a round ---- */

/* Reads what the sink offers. 0 or -errno; -ECANCELED: the sink refuses, and err says why. */
int offer_take(struct offer *o, int fd, struct arena *a, uint64_t wait_ns, struct error *err);
/* Has the sink this page already, as it is here? */
bool offer_has(struct offer *o, uint64_t addr, const void *page);
/* Adds the runs (uint64_t) of offered pages that are in none of count runs, in order: the process
 * has no such page. False: no memory. */
bool offer_left(const struct offer *o, const struct run *runs, size_t count, struct list *drops);

/* ---- the sink's side ---- */

/* With the mappings of the first round staged: takes the pages that process pid has there, and says
 * so to the source. A process that can't be read offers nothing. */
hale_status_t beside_offer(struct sink *s, int pid, struct error *err);

#endif
