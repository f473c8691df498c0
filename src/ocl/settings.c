/* SPDX-License-Identifier: BSD-3-Clause */
#include "ocl/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/base.h"

static const struct {
	const char *name;
	unsigned bit;
} optimisations[] = {
    {"MOD", OCL_OPT_MOD}, {"RO", OCL_OPT_RO}, {"HB", OCL_OPT_HB},     {"SB", OCL_OPT_SB},
    {"HD", OCL_OPT_HD},	  {"CS", OCL_OPT_CS}, {"AUTO", OCL_OPT_AUTO}, {"HASH", OCL_OPT_HASH},
    {"all", OCL_OPT_ALL}, {"none", 0}};

static hale_status_t bad(struct error *err, const char *key, const char *wanted, const char *value)
{
	return error_set(err, HALE_ERR_ARGUMENT, "HALE_OPENCL: %s takes %s, not '%s'", key, wanted,
			 value);
}

static bool copy_path(char to[PATH_MAX], const char *value)
{
	return *value && snprintf(to, PATH_MAX, "%s", value) < PATH_MAX;
}

static hale_status_t take_check(struct ocl_settings *s, const char *value, struct error *err)
{
	static const struct {
		const char *name;
		ocl_check_t check;
	} known[] = {
	    {"nvml", OCL_CHECK_NVML}, {"scrub", OCL_CHECK_SCRUB}, {"none", OCL_CHECK_NONE}};

	for (size_t i = 0; i < ARRAY_LEN(known); i++) {
		if (strcmp(value, known[i].name) == 0) {
			s->check = known[i].check;
			return HALE_OK;
		}
	}
	s->check = OCL_CHECK_FILE;
	if (strncmp(value, "file:", 5) == 0 && copy_path(s->file, value + 5))
		return HALE_OK;
	return bad(err, "check", "nvml, scrub, file:PATH or none", value);
}

static hale_status_t take_ckpt(struct ocl_settings *s, const char *value, struct error *err)
{
	long n = 1;

	if (strcmp(value, "auto") == 0) {
		s->when = OCL_CKPT_AUTO;
	} else if (strcmp(value, "off") == 0) {
		s->when = OCL_CKPT_OFF;
	} else if (strcmp(value, "every-epoch") == 0 ||
		   (strncmp(value, "epochs:", 7) == 0 &&
		    units_parse_int(value + 7, 1, LONG_MAX, &n))) {
		s->when = OCL_CKPT_EPOCHS;
		s->every_epochs = (uint64_t)n;
	} else if (strncmp(value, "seconds:", 8) == 0 &&
		   units_parse_seconds(value + 8, &s->every_seconds)) {
		s->when = OCL_CKPT_SECONDS;
	} else {
		return bad(err, "ckpt", "auto, epochs:N, seconds:T, every-epoch or off", value);
	}
	return HALE_OK;
}

static hale_status_t take_opt(struct ocl_settings *s, const char *value, struct error *err)
{
	const char *at = value;
	bool alone = false;

	s->opt = 0;
	for (;;) {
		size_t len = strcspn(at, ",");
		size_t i = 0;

		while (i < ARRAY_LEN(optimisations) &&
		       (strlen(optimisations[i].name) != len ||
			strncmp(at, optimisations[i].name, len) != 0))
			i++;
		alone |= i < ARRAY_LEN(optimisations) && i >= ARRAY_LEN(optimisations) - 2;
		if (i == ARRAY_LEN(optimisations) || (alone && value[len])) /* all, none: alone */
			return bad(err, "opt",
				   "any of MOD,RO,HB,SB,HD,CS,AUTO,HASH, or all, or none", value);
		s->opt |= optimisations[i].bit;
		if (!at[len])
			return HALE_OK;
		at += len + 1;
	}
}

static hale_status_t take_dir(struct ocl_settings *s, const char *value, struct error *err)
{
	return copy_path(s->dir, value) ? HALE_OK : bad(err, "dir", "a folder", value);
}

static hale_status_t take_inject(struct ocl_settings *s, const char *value, struct error *err)
{
	static const char *const phases[] = {[OCL_AT_EPOCH] = "epoch",
					     [OCL_AT_CHECKPOINT] = "checkpoint",
					     [OCL_AT_REPLAY] = "replay"};
	char number[32];
	size_t len = strcspn(value, ":"), phase = 0;
	const char *times = value[len] ? strchr(value + len + 1, ':') : NULL;
	long n = 0, count = 1;
	bool good;

	while (phase < ARRAY_LEN(phases) &&
	       (strlen(phases[phase]) != len || strncmp(phases[phase], value, len) != 0))
		phase++;
	good = phase < ARRAY_LEN(phases) && value[len];
	if (good) {
		snprintf(number, sizeof(number), "%.*s",
			 times ? (int)(times - value - len - 1) : (int)sizeof(number) - 1,
			 value + len + 1);
		good = units_parse_int(number, 1, LONG_MAX, &n) &&
		       (!times || units_parse_int(times + 1, 1, LONG_MAX, &count));
	}
	if (!good)
		return bad(err, "inject",
			   "epoch:N, checkpoint:N or replay:N, or that with :TIMES, each from 1 on",
			   value);
	s->inject_at = (ocl_phase_t)phase;
	s->inject_epoch = (uint64_t)n;
	s->inject_times = (uint64_t)count;
	return HALE_OK;
}

static hale_status_t take_log(struct ocl_settings *s, const char *value, struct error *err)
{
	if (!units_parse_bytes(value, &s->log_bytes) || s->log_bytes < 1 << 20)
		return bad(err, "log", "a size of 1M or more", value);
	return HALE_OK;
}

static hale_status_t take_report(struct ocl_settings *s, const char *value, struct error *err)
{
	return copy_path(s->report, value) ? HALE_OK : bad(err, "report", "a file", value);
}

static hale_status_t take_server(struct ocl_settings *s, const char *value, struct error *err)
{
	s->server = strcmp(value, "on") == 0;
	if (!s->server && strcmp(value, "off") != 0)
		return bad(err, "server", "on or off", value);
	return HALE_OK;
}

static hale_status_t take(struct ocl_settings *s, char *pair, struct error *err)
{
	static const struct {
		const char *key;
		hale_status_t (*take)(struct ocl_settings *, const char *, struct error *);
	} keys[] = {{"check", take_check},   {"ckpt", take_ckpt},     {"opt", take_opt},
		    {"dir", take_dir},	     {"inject", take_inject}, {"report", take_report},
		    {"server", take_server}, {"log", take_log}};
	char *equals = strchr(pair, '=');

	for (size_t i = 0; equals && i < ARRAY_LEN(keys); i++)
		if (strlen(keys[i].key) == (size_t)(equals - pair) &&
		    strncmp(keys[i].key, pair, strlen(keys[i].key)) == 0)
			return keys[i].take(s, equals + 1, err);
	return error_set(err, HALE_ERR_ARGUMENT,
			 "HALE_OPENCL: '%s' is none of check=, ckpt=, opt=, dir=, inject=, "
			 "report=, server=, log=",
			 pair);
}

hale_status_t ocl_settings_parse(const char *text, struct ocl_settings *s, struct error *err)
{
	const char *tmp = getenv("TMPDIR");
	hale_status_t status = HALE_OK;
	char *copy = strdup(text ? text : "");
	char *save = NULL;

	*s = (struct ocl_settings){.check = OCL_CHECK_NVML,
				   .when = OCL_CKPT_AUTO,
				   .opt = OCL_OPT_ALL,
				   .server = true,
				   .log_bytes = 4ull << 30};
	snprintf(s->dir, sizeof(s->dir), "%s", tmp && *tmp ? tmp : "/tmp");
	if (!copy)
		return error_set(err, HALE_ERR_MEMORY, "out of memory");
	for (char *pair = strtok_r(copy, " \t\n", &save); pair && status == HALE_OK;
	     pair = strtok_r(NULL, " \t\n", &save))
		status = take(s, pair, err);
	free(copy);
	/* without CS every epoch ends with a checkpoint, unless a frequency was given */
	if (s->when == OCL_CKPT_AUTO && !(s->opt & OCL_OPT_CS)) {
		s->when = OCL_CKPT_EPOCHS;
		s->every_epochs = 1;
	}
	return status;
}
