/* SPDX-License-Identifier: BSD-3-Clause */
#include "ftb/ftb.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>
#include "base/base.h"

const char *const ftb_severity_names[FTB_SEVERITIES] = {"INFO", "WARNING", "ERROR", "FATAL"};

const uint8_t ftb_text_max[FTB_TEXTS] = {
    [TEXT_SPACE] = 63,	[TEXT_NAME] = 31, [TEXT_JOB] = 15,
    [TEXT_CLIENT] = 15, [TEXT_HOST] = 63, [TEXT_START] = 31,
};

int ftb_severity_parse(const char *text, size_t len)
{
	for (int s = 0; s < FTB_SEVERITIES; s++)
		if (strlen(ftb_severity_names[s]) == len &&
		    strncasecmp(ftb_severity_names[s], text, len) == 0)
			return s;
	return -1;
}

static bool word_char(char c)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '-';
}

bool ftb_name_ok(const char *text, size_t len, bool dots)
{
	bool in_word = false;

	for (size_t i = 0; i < len; i++) {
		if (dots && text[i] == '.' && in_word)
			in_word = false;
		else if (word_char(text[i]))
			in_word = true;
		else
			return false;
	}
	return in_word;
}

bool ftb_text_ok(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
			return false;
	return true;
}

size_t ftb_event_size(const struct ftb_event *e)
{
	size_t n = EVENT_HEADER + e->payload_len;

	for (int t = 0; t < FTB_TEXTS; t++)
		n += e->text_len[t];
	return n;
}

void ftb_event_write(const struct ftb_event *e, uint8_t *to)
{
	uint16_t len = (uint16_t)ftb_event_size(e);
	uint8_t *p = to + EVENT_HEADER;

	memcpy(to, &len, 2);
	to[2] = e->severity;
	to[3] = e->type;
	put_u32(to + 4, e->age_ms);
	put_u64(to + 8, e->publisher);
	put_u64(to + 16, e->seq);
	put_u32(to + 24, e->pid);
	memcpy(to + 28, &e->payload_len, 2);
	memcpy(to + 30, e->text_len, FTB_TEXTS);
	for (int t = 0; t < FTB_TEXTS; t++) {
		if (e->text_len[t])
			memcpy(p, e->text[t], e->text_len[t]);
		p += e->text_len[t];
	}
	if (e->payload_len)
		memcpy(p, e->payload, e->payload_len);
}

void ftb_event_set_age(uint8_t *event, uint32_t age_ms)
{
	put_u32(event + 4, age_ms);
}

size_t ftb_event_parse(const uint8_t *b, size_t len, struct ftb_event *e)
{
	const char *p = (const char *)b + EVENT_HEADER;
	uint16_t whole;

	if (len < EVENT_HEADER)
		return 0;
	memcpy(&whole, b, 2);
	e->severity = b[2];
	e->type = b[3];
	e->age_ms = get_u32(b + 4);
	e->publisher = get_u64(b + 8);
	e->seq = get_u64(b + 16);
	e->pid = get_u32(b + 24);
	memcpy(&e->payload_len, b + 28, 2);
	memcpy(e->text_len, b + 30, FTB_TEXTS);
	if (whole > len || e->severity >= FTB_SEVERITIES || e->publisher == 0 || e->seq == 0 ||
	    e->payload_len > EVENT_PAYLOAD_MAX)
		return 0;
	for (int t = 0; t < FTB_TEXTS; t++)
		if (e->text_len[t] > ftb_text_max[t])
			return 0;
	if (ftb_event_size(e) != whole)
		return 0;
	for (int t = 0; t < FTB_TEXTS; t++) {
		e->text[t] = p;
		p += e->text_len[t];
	}
	e->payload = p;
	if (!ftb_name_ok(e->text[TEXT_SPACE], e->text_len[TEXT_SPACE], true) ||
	    !ftb_name_ok(e->text[TEXT_NAME], e->text_len[TEXT_NAME], false))
		return 0;
	for (int t = TEXT_JOB; t < FTB_TEXTS; t++)
		if (!ftb_text_ok(e->text[t], e->text_len[t]))
			return 0;
	return whole;
}

/* ---- packets ---- */

static const uint8_t magic[2] = {'F', 'B'};

void ftb_packet_start(uint8_t *to, enum packet_kind kind, uint32_t count)
{
	memcpy(to, magic, 2);
	to[2] = PACKET_VERSION;
	to[3] = (uint8_t)kind;
	put_u32(to + 4, count);
}

bool ftb_packet_parse(const uint8_t *bytes, size_t len, struct packet *p)
{
	if (len < PACKET_HEADER || len > PACKET_MAX || memcmp(bytes, magic, 2) != 0 ||
	    bytes[2] != PACKET_VERSION || bytes[3] == 0 || bytes[3] >= PACKET_KINDS)
		return false;
	*p = (struct packet){.kind = bytes[3],
			     .count = get_u32(bytes + 4),
			     .body = bytes + PACKET_HEADER,
			     .len = len - PACKET_HEADER};
	return true;
}

bool ftb_events_each(const struct packet *p,
		     void (*each)(const struct ftb_event *e, const uint8_t *bytes, size_t len,
				  void *arg),
		     void *arg)
{
	const uint8_t *at = p->body;
	size_t left = p->len;
	struct ftb_event e;

	for (uint32_t i = 0; i < p->count; i++) {
		size_t n = ftb_event_parse(at, left, &e);

		if (n == 0)
			return false;
		if (each)
			each(&e, at, n, arg);
		at += n;
		left -= n;
	}
	return left == 0;
}

uint64_t ftb_random(void)
{
	uint64_t v = 0;

	while (v == 0)
		if (getrandom(&v, sizeof(v), 0) != sizeof(v))
			v = clock_ns() * 0x9e3779b97f4a7c15u ^ (uint64_t)getpid() << 32;
	return v;
}
