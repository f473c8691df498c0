/* SPDX-License-Identifier: BSD-3-Clause */
/* The owner of a broker or of a tap as a publisher and as a subscriber. */
#ifndef HALE_FTB_AUTHOR_H
#define HALE_FTB_AUTHOR_H

#include "ftb/broker.h"
#include "ftb/ftb.h"

struct ftb_author {
	uint64_t publisher, seq;
	char start[32];
};

void ftb_author_init(struct ftb_author *a);

/* The author's next event: written to bytes, and e points into them. ARGUMENT with a sentence. */
hale_status_t ftb_author_event(struct ftb_author *a, const char *host, const char *space,
			       const char *name, int severity, const char *jobid,
			       const void *payload, size_t length, uint8_t bytes[EVENT_MAX],
			       struct ftb_event *e, struct error *err);

/* An event as callbacks get it. */
struct ftb_shown {
	char text[FTB_TEXTS][EVENT_TEXT_MAX + 1];
	struct broker_event event;
};

void ftb_event_show(const struct ftb_event *e, struct ftb_shown *s);

#endif
