/* SPDX-License-Identifier: BSD-3-Clause */
/* The kinds there are; what judges share. */
#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "base/base.h"
#include "monitor/kind.h"

static const struct monitor_kind *const kinds[] = {&monitor_ipmi, &monitor_ib, &monitor_memory,
						   &monitor_load};

const struct monitor_kind *monitor_kind_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		const struct monitor_kind *k = kinds[i];

		assert(k->name && k->space && k->every > 0 && k->line && k->end && k->read);
		if (!strcmp(k->name, name))
			return k;
	}
	return NULL;
}

const struct monitor_kind *monitor_kind_at(size_t i)
{
	return i < ARRAY_LEN(kinds) ? kinds[i] : NULL;
}

const char *monitor_severity_name(monitor_severity_t severity)
{
	static const char *const names[] = {"INFO", "WARNING", "ERROR", "FATAL"};

	return names[severity];
}

void judge_publish(const struct judge *j, const char *name, monitor_severity_t severity,
		   const char *fmt, ...)
{
	char payload[MONITOR_PAYLOAD_MAX];
	struct timespec now;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(payload, sizeof(payload), fmt, ap);
	va_end(ap);
	clock_gettime(CLOCK_REALTIME, &now);
	struct monitor_event e = {.time = (double)now.tv_sec + (double)now.tv_nsec * 1e-9,
				  .space = j->kind->space,
				  .name = name,
				  .severity = severity,
				  .node = j->node,
				  .payload = payload};
	j->publish(j->publish_arg, &e);
}

char *line_rest(char *rest)
{
	while (*rest == ' ' || *rest == '\t')
		rest++;
	return rest;
}

char *line_word(char **rest)
{
	char *word = line_rest(*rest), end = ' ';

	if (!*word)
		return NULL;
	if (*word == '"') {
		end = '"';
		word++;
	}
	char *p = word;
	while (*p && *p != end && !(end == ' ' && *p == '\t'))
		p++;
	*rest = *p ? p + 1 : p;
	*p = 0;
	return word;
}

hale_status_t line_unknown(const char *word, const char *known, struct error *err)
{
	return error_set(err, HALE_ERR_ARGUMENT,
			 "a line that begins with '%.40s' is none of %s with what belongs to it",
			 word ? word : "", known);
}

bool line_number(const char *word, double *value)
{
	char *end;

	if (!word || !*word || isspace((unsigned char)*word))
		return false;
	*value = strtod(word, &end);
	return !*end && *value == *value;
}

bool line_count(const char *word, uint64_t *value)
{
	char *end;

	if (!word || !isdigit((unsigned char)*word))
		return false;
	*value = strtoull(word, &end, 0);
	return !*end;
}
