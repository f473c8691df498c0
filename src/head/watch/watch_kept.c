/* SPDX-License-Identifier: BSD-3-Clause */
/* What passed the job's broker, for its report: whoever looks later sees it. Of what the head itself
 * tells all, of what others say WARNING and above, without other jobs'. */
#include <stdio.h>
#include <string.h>
#include "base/base.h"
#include "ftb/ftb.h"
#include "head/watch/watch_private.h"

void watch_keep(struct head *h, const char *severity, const char *space, const char *name,
		const char *host, const char *payload, size_t length)
{
	struct report_event e = {.at_seconds = head_seconds(h)};

	timestamp_print(e.time, timestamp_now());
	snprintf(e.severity, sizeof(e.severity), "%s", severity);
	snprintf(e.space, sizeof(e.space), "%s", space);
	snprintf(e.name, sizeof(e.name), "%s", name);
	snprintf(e.host, sizeof(e.host), "%s", host);
	snprintf(e.payload, sizeof(e.payload), "%.*s", (int)length, payload);
	report_add_event(&h->report, &e);
}

static void of_others(const struct broker_event *e, void *arg)
{
	struct watch *w = arg;

	if (!w->telling && !watch_of_another_job(w, e))
		watch_keep(w->head, e->severity, e->space, e->name, e->host, e->payload, e->length);
}

hale_status_t watch_kept_start(struct watch *w, struct error *err)
{
	return watch_subscribe(w, "severity>=WARNING", of_others, err);
}
