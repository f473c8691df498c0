/* SPDX-License-Identifier: BSD-3-Clause */
/* The little language of --inject. */
#include "launch/options.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include "base/base.h"

int options_signal_number(const char *name)
{
	long number;

	if (units_parse_int(name, 1, 64, &number))
		return (int)number;
	if (strncasecmp(name, "SIG", 3) == 0)
		name += 3;
	for (int s = 1; s < 32; s++) {
		const char *abbrev = sigabbrev_np(s);
		if (abbrev && strcasecmp(abbrev, name) == 0)
			return s;
	}
	return 0;
}

static bool take_after(char *value, struct fault *f)
{
	char *dash = strchr(value, '-');

	if (dash)
		*dash++ = '\0';
	if (!units_parse_seconds(value, &f->after))
		return false;
	f->after_max = f->after;
	return !dash || (units_parse_seconds(dash, &f->after_max) && f->after_max >= f->after);
}

static bool take_call(char *value, struct fault *f)
{
	char *colon = strchr(value, ':');
	long count = 1;

	if (colon) {
		*colon = '\0';
		if (!units_parse_int(colon + 1, 1, 0x7fffffffffffffffl, &count))
			return false;
	}
	if (strncmp(value, "MPI_", 4) != 0 || strlen(value) >= sizeof(f->call))
		return false;
	snprintf(f->call, sizeof(f->call), "%s", value);
	f->count = (uint64_t)count;
	return true;
}

static bool take_number(const char *value, uint32_t *number)
{
	long v;

	if (!units_parse_int(value, 1, 1000000000, &v))
		return false;
	*number = (uint32_t)v;
	return true;
}

static bool take_rank(const char *value, struct fault *f)
{
	f->rank = -1;
	return strcmp(value, "any") == 0 || units_parse_int(value, 0, 1000000000, &f->rank);
}

static bool take_where(const char *value, struct fault *f)
{
	f->flip = strcmp(value, "message") == 0	 ? FLIP_MESSAGE
		  : strcmp(value, "result") == 0 ? FLIP_RESULT
						 : FLIP_MEMORY;
	return f->flip != FLIP_MEMORY || strcmp(value, "memory") == 0;
}

/* Of flip: only. */
static bool take_flip_pair(const char *key, const char *value, struct fault *f)
{
	uint32_t number;

	if (strcmp(key, "where") == 0)
		return take_where(value, f);
	if (strcmp(key, "node") == 0)
		return *value &&
		       snprintf(f->node, sizeof(f->node), "%s", value) < (int)sizeof(f->node);
	if (strcmp(key, "every") == 0)
		return take_number(value, &f->every);
	if (strcmp(key, "count") != 0 || !take_number(value, &number))
		return false;
	f->count = number;
	return true;
}

static bool take_pair(char *key, char *value, struct fault *f)
{
	if (f->flip != FLIP_NONE && take_flip_pair(key, value, f))
		return true;
	if (strcmp(key, "rank") == 0)
		return take_rank(value, f);
	if (strcmp(key, "slot") == 0)
		return units_parse_int(value, 0, 2, &f->slot);
	if (strcmp(key, "after") == 0)
		return take_after(value, f);
	if (f->flip != FLIP_NONE)
		return false;
	if (strcmp(key, "at-call") == 0)
		return take_call(value, f);
	if (strcmp(key, "at-ckpt") == 0 || strcmp(key, "at-checkpoint") == 0)
		return take_number(value, &f->at_checkpoint);
	if (strcmp(key, "at-restart") == 0)
		return take_number(value, &f->at_restart);
	if (strcmp(key, "signal") == 0)
		return (f->signal = options_signal_number(value)) != 0;
	return false;
}

hale_status_t options_parse_fault(const char *text, struct fault *f, struct error *err)
{
	char copy[256];
	char *save = NULL;

	*f = (struct fault){.rank = -2, .signal = SIGKILL, .after = -1};
	if (strncmp(text, "flip:", 5) == 0) {
		f->flip = FLIP_MEMORY;
		f->count = f->every = 1;
	}
	if ((f->flip == FLIP_NONE && strncmp(text, "kill:", 5) != 0) ||
	    strlen(text) >= sizeof(copy))
		return error_set(err, HALE_ERR_ARGUMENT,
				 "'%s' is no fault; write kill:rank=1,after=3s, "
				 "kill:rank=1,at-call=MPI_Allreduce:100 or "
				 "flip:rank=1,where=message,after=3s",
				 text);
	snprintf(copy, sizeof(copy), "%s", text + 5);
	for (char *pair = strtok_r(copy, ",", &save); pair; pair = strtok_r(NULL, ",", &save)) {
		char *equals = strchr(pair, '=');

		if (equals)
			*equals = '\0';
		if (!equals || !take_pair(pair, equals + 1, f))
			return error_set(err, HALE_ERR_ARGUMENT,
					 "'%s' in the fault '%s' is not understood", pair, text);
	}
	int whens =
	    (f->after >= 0) + (f->call[0] != 0) + (f->at_checkpoint > 0) + (f->at_restart > 0);
	if (f->flip != FLIP_NONE && ((f->rank == -2) == (f->node[0] == 0) || whens != 1))
		return error_set(err, HALE_ERR_ARGUMENT,
				 "the fault '%s' needs rank= or node=, and after=", text);
	if (f->node[0] && f->flip == FLIP_MEMORY)
		return error_set(err, HALE_ERR_ARGUMENT,
				 "the fault '%s' is of a whole node: that goes with where=message "
				 "and where=result",
				 text);
	if (f->node[0] == 0 && (f->rank == -2 || whens != 1))
		return error_set(
		    err, HALE_ERR_ARGUMENT,
		    "the fault '%s' needs rank= and one of after=, at-call=, at-ckpt=, "
		    "at-restart=",
		    text);
	return HALE_OK;
}
