/* SPDX-License-Identifier: BSD-3-Clause */
/* links: src/ftb/event.c src/ftb/filter.c src/ftb/outq.c */
/* Packets as a hostile client or broker might send them, and filters as people might type them:
 * refused, or what was promised. */
#include <stdlib.h>
#include <string.h>
#include "ftb/ftb.h"
#include "ftb/outq.h"
#include <libftb.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct outq queue;

static enum out_result taken(void *to, const uint8_t *bytes, size_t len)
{
	struct packet p;

	if (!ftb_packet_parse(bytes, len, &p) || !ftb_events_each(&p, NULL, NULL))
		abort(); /* what we pass on must be right */
	return *(int *)to ? OUT_BLOCKED : OUT_SENT;
}

static void each(const struct ftb_event *e, const uint8_t *bytes, size_t len, void *arg)
{
	static uint8_t copy[EVENT_MAX];
	int blocked = e->seq & 1;

	if (e->severity >= FTB_SEVERITIES || len != ftb_event_size(e) || len > EVENT_MAX)
		abort();
	for (int t = 0; t < FTB_TEXTS; t++)
		if (!ftb_text_ok(e->text[t], e->text_len[t]) || e->text_len[t] > ftb_text_max[t])
			abort();
	ftb_event_write(e, copy);
	if (memcmp(copy, bytes, len) != 0)
		abort();
	ftb_filter_match(arg, e);
	outq_event(&queue, e, bytes, len, taken, &blocked);
}

static void packet(const uint8_t *data, size_t size, struct ftb_filter *f)
{
	uint32_t id, age;
	struct packet p;

	if (!ftb_packet_parse(data, size, &p))
		return;
	if (ftb_events_each(&p, NULL, NULL))
		ftb_events_each(&p, each, f);
	if (ftb_filter_read(p.body, p.len, f, &id, &age)) {
		uint8_t out[FILTER_WIRE_MAX];
		struct ftb_filter again;
		size_t n = ftb_filter_write(f, id, age, out);

		if (ftb_filter_read(out, n, &again, &id, &age) != n ||
		    memcmp(f, &again, sizeof(again)) != 0 || !ftb_filter_covers(f, &again))
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ftb_filter f;
	char text[300];
	size_t n = size < sizeof(text) - 1 ? size : sizeof(text) - 1;
	int none = 0;

	memcpy(text, data, n);
	text[n] = 0;
	if (ftb_filter_parse(text, &f) > 0)
		abort();
	packet(data, size, &f);
	outq_flush(&queue, taken, &none);
	outq_fini(&queue);
	return 0;
}
