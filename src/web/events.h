/* SPDX-License-Identifier: BSD-3-Clause */
/* Events of the backplane for the page: for each job that somebody looks at `hale events --follow` runs beside. */
#ifndef HALE_WEB_EVENTS_H
#define HALE_WEB_EVENTS_H

/* {"events":[…]}: the newest events about a job, as `hale events --json` prints them. The first call
 * for a job begins to listen, so it has none yet. hale: path of that program. Owned by the caller;
 * NULL: no memory. Not for several threads. */
char *web_events(const char *hale, const char *job);
void web_events_fini(void);

#endif
