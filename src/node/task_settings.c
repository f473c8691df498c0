/* SPDX-License-Identifier: BSD-3-Clause */
#include "node/task_settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/base.h"

static bool read_share(const char *text, double *to)
{
	char *end;
	double v = strtod(text, &end);

	if (end == text || (*end && strcmp(end, "%") != 0))
		return false;
	if (*end)
		v /= 100;
	if (!(v >= 0 && v <= 1))
		return false;
	*to = v;
	return true;
}

static bool read_count(const char *text, long least, long most, unsigned *to)
{
	long v;

	if (!units_parse_int(text, least, most, &v))
		return false;
	*to = (unsigned)v;
	return true;
}

static bool read_protect(const char *text, enum task_protect *to)
{
	static const char *const names[] = {"all", "auto", "none"};

	for (unsigned i = 0; i < ARRAY_LEN(names); i++)
		if (strcmp(text, names[i]) == 0) {
			*to = (enum task_protect)i;
			return true;
		}
	return false;
}

static bool read_log_max(const char *text, size_t *to)
{
	uint64_t bytes;

	if (!units_parse_bytes(text, &bytes))
		return false;
	*to = (size_t)bytes;
	return true;
}

static bool setting_take(struct task_settings *s, const char *key, const char *value)
{
	if (strcmp(key, "retries") == 0)
		return read_count(value, 0, 1000, &s->retries);
	if (strcmp(key, "protect") == 0)
		return read_protect(value, &s->protect);
	if (strcmp(key, "residual") == 0)
		return read_share(value, &s->residual);
	if (strcmp(key, "memory") == 0)
		return read_share(value, &s->memory);
	if (strcmp(key, "inputs") == 0 && strcmp(value, "keep") == 0)
		return s->keep_inputs = true;
	if (strcmp(key, "check") == 0 && strcmp(value, "writes") == 0)
		return s->check_writes = true;
	if (strcmp(key, "log") == 0)
		return read_log_max(value, &s->log_max);
	return false;
}

static bool due_take(struct task_due *d, const char *key, const char *value)
{
	static const char *const moments[] = {"end", "random", "page", "copy"};
	long seed;

	if (strcmp(key, "prob") == 0)
		return read_share(value, &d->prob);
	if (strcmp(key, "times") == 0)
		return read_count(value, 1, 1000, &d->times);
	if (strcmp(key, "seed") == 0) {
		if (!units_parse_int(value, 0, 0x7fffffffffffffffl, &seed))
			return false;
		d->seed = (uint64_t)seed;
		return true;
	}
	for (unsigned i = 0; strcmp(key, "at") == 0 && i < ARRAY_LEN(moments); i++)
		if (strcmp(value, moments[i]) == 0) {
			d->at = (enum task_moment)i;
			return true;
		}
	return false;
}

/* Takes the next "key<sep>value" out of *at. False: there is none, or bad. */
static bool pair_next(const char **at, char sep, char key[32], char value[64], bool *bad)
{
	size_t len = strcspn(*at, ","), k;
	const char *mark;

	*bad = false;
	if (!**at)
		return false;
	mark = memchr(*at, sep, len);
	k = mark ? (size_t)(mark - *at) : len;
	if (!mark || k >= 32 || len - k > 64) {
		*bad = true;
		return false;
	}
	memcpy(key, *at, k);
	key[k] = '\0';
	memcpy(value, mark + 1, len - k - 1);
	value[len - k - 1] = '\0';
	*at += len + ((*at)[len] == ',');
	return true;
}

bool task_settings_read(struct task_settings *s, const char *text, char why[160])
{
	char key[32], value[64];
	const char *at = text;
	bool bad;

	*s = (struct task_settings){
	    .retries = 3, .residual = 0.1, .memory = 0.5, .log_max = (size_t)1 << 30};
	while (pair_next(&at, ':', key, value, &bad))
		if (!setting_take(s, key, value)) {
			bad = true;
			break;
		}
	if (bad)
		snprintf(why, 160,
			 "retries:R,protect:all|auto|none,residual:SHARE,memory:SHARE,log:BYTES,"
			 "inputs:keep,check:writes, not "
			 "'%.40s'",
			 text);
	return !bad;
}

bool task_due_read(struct task_due *d, const char *text, char why[160])
{
	char key[32], value[64];
	const char *at = text;
	bool bad;

	*d = (struct task_due){.prob = -1, .seed = 1, .times = 1};
	while (pair_next(&at, '=', key, value, &bad))
		if (!due_take(d, key, value)) {
			bad = true;
			break;
		}
	if (bad || d->prob < 0) {
		snprintf(
		    why, 160,
		    "due:prob=P[,seed=N][,at=end|random|page|copy][,times=K] with P from 0 to 1 or "
		    "in %%, not '%.60s'",
		    text);
		d->prob = 0;
		return false;
	}
	return true;
}
