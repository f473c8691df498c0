/* SPDX-License-Identifier: BSD-3-Clause */
/* What a client remembers so that a broker's death costs nothing: what it has published and a new
 * broker might not have, and which events it has received. */
#ifndef HALE_FTB_KEPT_H
#define HALE_FTB_KEPT_H

#include "ftb/outq.h"

struct retained;

/* Zero is an empty one. */
struct ftb_kept {
	struct retained *first, *last;
	size_t above, info; /* bytes of each */
	uint64_t (
	    *seen)[2]; /* publisher and number of events of WARNING and above; NULL: none yet */
};

void kept_fini(struct ftb_kept *k);

/* Published, but a new broker might not have it; or while there was none. The oldest go when there
 * is too much. */
void kept_add(struct ftb_kept *k, const struct ftb_event *e, const uint8_t *bytes, size_t len);
/* All that is kept, with its age; INFO is kept no longer. */
void kept_resend(struct ftb_kept *k, struct outq *to);
/* What is so old that the broker that died has long passed it on. */
void kept_forget_old(struct ftb_kept *k);

/* Remembers a received event; true if it was received before. Only rescued events of WARNING and
 * above ever come twice. */
bool kept_seen(struct ftb_kept *k, const struct ftb_event *e);

#endif
