/* SPDX-License-Identifier: BSD-3-Clause */
/* Options of checkpoints. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "base/base.h"
#include "launch/options_private.h"

static hale_status_t take_every(struct parser *p)
{
	p->o->given_every = true;
	p->o->ckpt_every = 0;
	p->o->ckpt_auto = strcmp(p->value, "auto") == 0;
	if (p->o->ckpt_auto || strcmp(p->value, "off") == 0)
		return HALE_OK;
	return units_parse_seconds(p->value, &p->o->ckpt_every) &&
		       (p->o->ckpt_every == 0 || p->o->ckpt_every >= 0.01)
		   ? HALE_OK
		   : options_bad_value(p, "a time like 30s, 500ms or 2min, auto (as often as it "
					  "pays) or off (only on request)");
}

static hale_status_t take_first(struct parser *p)
{
	p->o->given_auto = true;
	return units_parse_seconds(p->value, &p->o->ckpt_first) && p->o->ckpt_first >= 0.01
		   ? HALE_OK
		   : options_bad_value(p, "a time like 30s or 2min");
}

static hale_status_t take_overhead(struct parser *p)
{
	char number[32];
	size_t len = strlen(p->value);

	p->o->given_auto = true;
	if (len > 1 && len < sizeof(number) && p->value[len - 1] == '%') {
		snprintf(number, sizeof(number), "%.*s", (int)len - 1, p->value);
		/* digits and a point are what seconds without a unit are, too */
		if (strspn(number, "0123456789.") == len - 1 &&
		    units_parse_seconds(number, &p->o->overhead) && p->o->overhead >= 0.001 &&
		    p->o->overhead <= 50) {
			p->o->overhead /= 100;
			return HALE_OK;
		}
	}
	return options_bad_value(p, "a share of the run time from 0.001% to 50%, like 1%");
}

static hale_status_t take_mtbf(struct parser *p)
{
	p->o->given_auto = true;
	return units_parse_seconds(p->value, &p->o->mtbf) && p->o->mtbf >= 1
		   ? HALE_OK
		   : options_bad_value(p,
				       "a mean time between failures of the job, like 12h or 3d");
}

static hale_status_t take_on_success(struct parser *p)
{
	bool keep = strcmp(p->value, "keep") == 0;

	p->o->on_success = keep ? SUCCESS_KEEP : SUCCESS_REMOVE;
	return keep || strcmp(p->value, "remove") == 0
		   ? HALE_OK
		   : options_bad_value(p, "keep or remove (the checkpoints of a job that has "
					  "ended with status 0)");
}

static hale_status_t take_wait(struct parser *p)
{
	return units_parse_seconds(p->value, &p->o->ckpt_wait) && p->o->ckpt_wait >= 0
		   ? HALE_OK
		   : options_bad_value(p, "a time like 30s or 500ms (0: do not wait)");
}

static hale_status_t take_dir(struct parser *p)
{
	p->o->given_dir = true;
	p->o->ckpt_dir = p->value;
	return *p->value ? HALE_OK : options_bad_value(p, "a folder");
}

/* %n is the node's name, %% a percent sign. */
static hale_status_t take_local(struct parser *p)
{
	const char *at = p->value;

	p->o->given_local = true;
	p->o->ckpt_local = p->value;
	while ((at = strchr(at, '%')) && (at[1] == 'n' || at[1] == '%'))
		at += 2;
	return *p->value && !at
		   ? HALE_OK
		   : options_bad_value(
			 p, "a folder on each node (%n in it is the node's name, %% is %)");
}

static hale_status_t take_shared_every(struct parser *p)
{
	p->o->given_shared_every = true;
	return units_parse_int(p->value, 0, 1000000, &p->o->shared_every)
		   ? HALE_OK
		   : options_bad_value(
			 p, "a number of checkpoints (0: only those that are asked for)");
}

static hale_status_t take_keep(struct parser *p)
{
	p->o->given_keep = true;
	return units_parse_int(p->value, 1, 1000000, &p->o->keep)
		   ? HALE_OK
		   : options_bad_value(p, "a number of checkpoints from 1 on");
}

static hale_status_t take_max_restarts(struct parser *p)
{
	p->o->given_max_restarts = true;
	return units_parse_int(p->value, 0, 1000000, &p->o->max_restarts)
		   ? HALE_OK
		   : options_bad_value(p, "a number from 0 on");
}

static hale_status_t take_compress(struct parser *p)
{
	static const struct {
		const char *name;
		image_compress_t value;
	} known[] = {{"none", IMAGE_PLAIN}, {"lz4", IMAGE_LZ4}, {"zstd", IMAGE_ZSTD}};

	p->o->given_compress = true;
	for (size_t i = 0; i < ARRAY_LEN(known); i++) {
		if (strcmp(p->value, known[i].name) == 0) {
			p->o->compress = known[i].value;
			return HALE_OK;
		}
	}
	return options_bad_value(p, "none, lz4 or zstd");
}

static hale_status_t take_restart(struct parser *p)
{
	if (strcmp(p->value, "full") != 0 && strcmp(p->value, "lazy") != 0)
		return options_bad_value(p, "full or lazy");
	p->o->restart = p->value[0] == 'l' ? IMAGE_LAZY : IMAGE_FULL;
	return HALE_OK;
}

static hale_status_t take_incremental(struct parser *p)
{
	p->o->given_incremental = true;
	p->o->incremental = true;
	return HALE_OK;
}

static hale_status_t take_no_fsync(struct parser *p)
{
	p->o->no_fsync = true;
	return HALE_OK;
}

static hale_status_t take_require(struct parser *p)
{
	p->o->ckpt_required = true;
	return HALE_OK;
}

static hale_status_t take_files(struct parser *p)
{
	if (strcmp(p->value, "restore") != 0 && strcmp(p->value, "leave") != 0)
		return options_bad_value(p, "restore or leave");
	p->o->leave_files = p->value[0] == 'l';
	return HALE_OK;
}

static hale_status_t take_requeue(struct parser *p)
{
	p->o->requeue = true;
	return HALE_OK;
}

const struct option options_ckpt[] = {
    {"--files", 1, false, take_files},
    {"--ckpt-every", 1, false, take_every},
    {"--ckpt-first", 1, false, take_first},
    {"--overhead", 1, false, take_overhead},
    {"--mtbf", 1, false, take_mtbf},
    {"--ckpt-on-success", 1, false, take_on_success},
    {"--requeue", 0, true, take_requeue},
    {"--ckpt-wait", 1, false, take_wait},
    {"--require-checkpoints", 0, false, take_require},
    {"--cpu-baseline", 1, true, options_take_baseline},
    {"--ckpt-dir", 1, false, take_dir},
    {"--ckpt-local", 1, false, take_local},
    {"--ckpt-shared-every", 1, false, take_shared_every},
    {"--keep", 1, false, take_keep},
    {"--max-restarts", 1, false, take_max_restarts},
    {"--compress", 1, false, take_compress},
    {"--restart", 1, false, take_restart},
    {"--incremental", 0, false, take_incremental},
    {"--no-fsync", 0, false, take_no_fsync},
    {0},
};
