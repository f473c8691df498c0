/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>
#include <strings.h>
#include "base/base.h"
#include "base/spaces.h"
#include "ftb/ftb.h"
#include <libftb.h>

enum { ALL_SEVERITIES = (1 << FTB_SEVERITIES) - 1 };

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

/* ---- matching ---- */

/* pattern is in lower case; * and ? as usual. */
static bool glob(const char *pattern, const char *text, size_t len)
{
	const char *star = NULL;
	size_t at = 0, retry = 0;

	while (at < len) {
		if (*pattern == '*') {
			star = ++pattern;
			retry = at;
		} else if (*pattern && (*pattern == '?' || *pattern == lower(text[at]))) {
			pattern++;
			at++;
		} else if (star) {
			pattern = star;
			at = ++retry;
		} else {
			return false;
		}
	}
	while (*pattern == '*')
		pattern++;
	return *pattern == 0;
}

/* A namespace with two names is meant by either. */
static bool space_match(const char *pattern, const char *space, size_t len)
{
	const char *other;

	if (glob(pattern, space, len))
		return true;
	other = spaces_other(space, len);
	return other && glob(pattern, other, strlen(other));
}

static bool text_match(enum ftb_text t, const char *pattern, const char *text, size_t len)
{
	return t == TEXT_SPACE ? space_match(pattern, text, len) : glob(pattern, text, len);
}

bool ftb_filter_match(const struct ftb_filter *f, const struct ftb_event *e)
{
	if (!(f->severities & 1u << e->severity))
		return false;
	for (int t = 0; t < TEXT_START; t++)
		if (f->value[t][0] &&
		    !text_match((enum ftb_text)t, f->value[t], e->text[t], e->text_len[t]))
			return false;
	return true;
}

bool ftb_filter_covers(const struct ftb_filter *wide, const struct ftb_filter *f)
{
	if (f->severities & ~wide->severities)
		return false;
	for (int t = 0; t < TEXT_START; t++) {
		const char *w = wide->value[t], *v = f->value[t];

		if (*w == 0 || strcmp(w, v) == 0)
			continue;
		/* a pattern covers a text without wildcards that it matches */
		if (*v == 0 || strpbrk(v, "*?") || !text_match((enum ftb_text)t, w, v, strlen(v)))
			return false;
	}
	return true;
}

/* ---- the language ---- */

static const struct {
	const char *name;
	enum ftb_text text;
} keys[] = {
    {"event_space", TEXT_SPACE},  {"namespace", TEXT_SPACE}, {"event_name", TEXT_NAME},
    {"name", TEXT_NAME},	  {"jobid", TEXT_JOB},	     {"job", TEXT_JOB},
    {"client_name", TEXT_CLIENT}, {"client", TEXT_CLIENT},   {"host_name", TEXT_HOST},
    {"hostname", TEXT_HOST},	  {"host", TEXT_HOST},
};

/* "ftb.all.watchdog" and "FTB.*": CIFTS's word for anything in one place becomes a star. */
static bool set_space(char *to, const char *value, size_t len)
{
	size_t n = 0;

	for (size_t i = 0; i < len;) {
		size_t word = 0;

		while (i + word < len && value[i + word] != '.')
			word++;
		if (word == 0)
			return false;
		if (word == 3 && strncasecmp(value + i, "all", 3) == 0) {
			to[n++] = '*';
		} else {
			for (size_t k = 0; k < word; k++) {
				char c = lower(value[i + k]);

				if (c != '*' && c != '?' && !ftb_name_ok(&c, 1, false))
					return false;
				to[n++] = c;
			}
		}
		i += word;
		if (i < len) {
			to[n++] = '.';
			if (++i == len)
				return false;
		}
	}
	return n > 0;
}

static int set_value(struct ftb_filter *f, enum ftb_text t, const char *value, size_t len)
{
	if (len == 3 && strncasecmp(value, "all", 3) == 0)
		return FTB_SUCCESS;
	if (len > ftb_text_max[t])
		return t == TEXT_SPACE ? FTB_ERR_EVENTSPACE_FORMAT : FTB_ERR_FILTER_VALUE;
	if (t == TEXT_SPACE)
		return set_space(f->value[t], value, len) ? FTB_SUCCESS : FTB_ERR_EVENTSPACE_FORMAT;
	if (!ftb_text_ok(value, len))
		return FTB_ERR_FILTER_VALUE;
	for (size_t i = 0; i < len; i++)
		f->value[t][i] = lower(value[i]);
	return FTB_SUCCESS;
}

static int set_severity(struct ftb_filter *f, const char *value, size_t len, bool at_least)
{
	int s = ftb_severity_parse(value, len);

	if (len == 3 && strncasecmp(value, "all", 3) == 0 && !at_least)
		return FTB_SUCCESS;
	if (s < 0)
		return FTB_ERR_FILTER_VALUE;
	f->severities = at_least ? ALL_SEVERITIES & ~((1u << s) - 1) : 1u << s;
	return FTB_SUCCESS;
}

static int set_term(struct ftb_filter *f, unsigned *seen, const char *key, size_t key_len,
		    const char *value, size_t len, bool at_least)
{
	enum { SEVERITY = FTB_TEXTS };
	int text = -1;

	if (key_len == 8 && strncasecmp(key, "severity", 8) == 0)
		text = SEVERITY;
	for (size_t k = 0; k < ARRAY_LEN(keys); k++)
		if (strlen(keys[k].name) == key_len && strncasecmp(keys[k].name, key, key_len) == 0)
			text = keys[k].text;
	if (text < 0)
		return FTB_ERR_FILTER_ATTR;
	if (*seen & 1u << text || (at_least && text != SEVERITY))
		return FTB_ERR_SUBSCRIPTION_STR;
	*seen |= 1u << text;
	return text == SEVERITY ? set_severity(f, value, len, at_least)
				: set_value(f, (enum ftb_text)text, value, len);
}

int ftb_filter_parse(const char *text, struct ftb_filter *f)
{
	static const char blank[] = " \t\n", ends[] = " \t\n,";
	unsigned seen = 0;
	const char *p = text;

	memset(f, 0, sizeof(*f));
	f->severities = ALL_SEVERITIES;
	p += strspn(p, blank);
	while (*p) {
		size_t key_len = strcspn(p, "=>, \t\n"), len;
		const char *key = p;
		bool at_least;

		p += key_len;
		p += strspn(p, blank);
		at_least = *p == '>';
		p += at_least;
		if (key_len == 0 || *p++ != '=')
			return FTB_ERR_SUBSCRIPTION_STR;
		p += strspn(p, blank);
		len = strcspn(p, ends);
		if (len == 0)
			return FTB_ERR_SUBSCRIPTION_STR;
		int ret = set_term(f, &seen, key, key_len, p, len, at_least);
		if (ret != FTB_SUCCESS)
			return ret;
		p += len;
		p += strspn(p, blank);
		if (*p == ',') {
			p++;
			p += strspn(p, blank);
			if (*p == 0)
				return FTB_ERR_SUBSCRIPTION_STR;
		}
	}
	return FTB_SUCCESS;
}

/* ---- on the wire: u32 id, u32 age, u8 severities, then five times u8 length and text ---- */

size_t ftb_filter_write(const struct ftb_filter *f, uint32_t id, uint32_t age_ms, uint8_t *to)
{
	uint8_t *p = to;

	put_u32(p, id);
	put_u32(p + 4, age_ms);
	p[8] = f->severities;
	p += 9;
	for (int t = 0; t < TEXT_START; t++) {
		size_t n = strlen(f->value[t]);

		*p++ = (uint8_t)n;
		memcpy(p, f->value[t], n);
		p += n;
	}
	return (size_t)(p - to);
}

size_t ftb_filter_read(const uint8_t *bytes, size_t len, struct ftb_filter *f, uint32_t *id,
		       uint32_t *age_ms)
{
	size_t at = 9;

	if (len < at)
		return 0;
	memset(f, 0, sizeof(*f));
	*id = get_u32(bytes);
	*age_ms = get_u32(bytes + 4);
	f->severities = bytes[8];
	if (f->severities & ~ALL_SEVERITIES)
		return 0;
	for (int t = 0; t < TEXT_START; t++) {
		size_t n;

		if (at >= len || bytes[at] > ftb_text_max[t] || bytes[at] > len - at - 1)
			return 0;
		n = bytes[at++];
		if (memchr(bytes + at, 0, n) || !ftb_text_ok((const char *)bytes + at, n))
			return 0;
		for (size_t i = 0; i < n; i++)
			f->value[t][i] = lower((char)bytes[at + i]);
		at += n;
	}
	return at;
}
