/* SPDX-License-Identifier: BSD-3-Clause */
/* Events that the owner of a broker or of a tap publishes, and how it sees those of others. */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "base/base.h"
#include "ftb/author.h"
#include <libftb.h>

void ftb_author_init(struct ftb_author *a)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	*a = (struct ftb_author){.publisher = ftb_random()};
	snprintf(a->start, sizeof(a->start), "%lld.%09ld", (long long)now.tv_sec, now.tv_nsec);
}

hale_status_t ftb_author_event(struct ftb_author *a, const char *host, const char *space,
			       const char *name, int severity, const char *jobid,
			       const void *payload, size_t length, uint8_t bytes[EVENT_MAX],
			       struct ftb_event *e, struct error *err)
{
	const char *text[FTB_TEXTS] = {
	    [TEXT_SPACE] = space,   [TEXT_NAME] = name, [TEXT_JOB] = jobid ? jobid : "",
	    [TEXT_CLIENT] = "hale", [TEXT_HOST] = host, [TEXT_START] = a->start};

	if (severity < 0 || severity >= FTB_SEVERITIES || length > EVENT_PAYLOAD_MAX)
		return error_set(err, HALE_ERR_ARGUMENT,
				 "an event has a severity of 0 to 3 and at most 8 KiB of payload");
	*e = (struct ftb_event){.severity = (uint8_t)severity,
				.type = HALE_FTB_EVENT_NORMAL,
				.publisher = a->publisher,
				.pid = (uint32_t)getpid(),
				.payload = payload,
				.payload_len = (uint16_t)length};
	for (int t = 0; t < FTB_TEXTS; t++) {
		size_t n = strlen(text[t]);

		if (n > ftb_text_max[t])
			return error_set(err, HALE_ERR_ARGUMENT, "'%s' is too long for an event",
					 text[t]);
		e->text[t] = text[t];
		e->text_len[t] = (uint8_t)n;
	}
	if (!ftb_name_ok(space, e->text_len[TEXT_SPACE], true) ||
	    !ftb_name_ok(name, e->text_len[TEXT_NAME], false) ||
	    !ftb_text_ok(text[TEXT_JOB], e->text_len[TEXT_JOB]))
		return error_set(err, HALE_ERR_ARGUMENT, "%s, %s: no names of events", space, name);
	e->seq = ++a->seq;
	ftb_event_write(e, bytes);
	ftb_event_parse(bytes, ftb_event_size(e), e);
	return HALE_OK;
}

void ftb_event_show(const struct ftb_event *e, struct ftb_shown *s)
{
	for (int t = 0; t < FTB_TEXTS; t++) {
		memcpy(s->text[t], e->text[t], e->text_len[t]);
		s->text[t][e->text_len[t]] = 0;
	}
	s->event = (struct broker_event){.space = s->text[TEXT_SPACE],
					 .name = s->text[TEXT_NAME],
					 .severity = ftb_severity_names[e->severity],
					 .jobid = s->text[TEXT_JOB],
					 .client = s->text[TEXT_CLIENT],
					 .host = s->text[TEXT_HOST],
					 .pid = (pid_t)e->pid,
					 .seq = e->seq,
					 .payload = e->payload,
					 .length = e->payload_len};
}
