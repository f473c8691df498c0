/* SPDX-License-Identifier: BSD-3-Clause */
#include "job/plan/options_private.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "base/base.h"
#include "job/job.h"
#include "task/settings.h"

hale_status_t options_bad_value(struct parser *p, const char *wanted)
{
	return error_set(p->err, HALE_ERR_ARGUMENT, "%s takes %s, not '%s'", p->name, wanted,
			 p->value);
}

static hale_status_t take_tag(struct parser *p)
{
	p->o->given_tag = true;
	p->o->tag = true;
	return HALE_OK;
}

static hale_status_t take_verbose(struct parser *p)
{
	p->o->verbose = true;
	return HALE_OK;
}

static hale_status_t take_quiet(struct parser *p)
{
	p->o->quiet = true;
	return HALE_OK;
}

static hale_status_t take_no_mpi(struct parser *p)
{
	p->o->no_mpi = true;
	return HALE_OK;
}

static hale_status_t take_on_closed_output(struct parser *p)
{
	bool end = strcmp(p->value, "end") == 0;

	p->o->on_closed_output = end ? CLOSED_END : CLOSED_CONTINUE;
	return end || strcmp(p->value, "continue") == 0
		   ? HALE_OK
		   : options_bad_value(p, "end (the job ends when nobody reads its output any "
					  "more) or continue (it goes on without)");
}

static hale_status_t take_report(struct parser *p)
{
	p->o->report = p->value;
	return *p->value ? HALE_OK : options_bad_value(p, "a file");
}

static hale_status_t take_profile(struct parser *p)
{
	p->o->profile = p->value;
	return *p->value ? HALE_OK : options_bad_value(p, "a file");
}

static hale_status_t take_wdir(struct parser *p)
{
	p->o->wdir = p->value;
	return *p->value ? HALE_OK : options_bad_value(p, "a folder");
}

static hale_status_t take_seed(struct parser *p)
{
	long v;

	if (!units_parse_int(p->value, 0, 0x7fffffffffffffffl, &v))
		return options_bad_value(p, "a whole number");
	p->o->seed = (uint64_t)v;
	return HALE_OK;
}

static hale_status_t take_events(struct parser *p)
{
	p->o->events = true;
	return HALE_OK;
}

static hale_status_t take_no_events(struct parser *p)
{
	p->o->no_events = true;
	return HALE_OK;
}

static hale_status_t take_rules(struct parser *p)
{
	p->o->rules = p->value;
	return *p->value ? HALE_OK : options_bad_value(p, "a file");
}

static bool is_monitor(const char *name, size_t len)
{
	static const char *const known[] = {"ipmi", "ib", "memory", "load"};

	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (strlen(known[i]) == len && memcmp(known[i], name, len) == 0)
			return true;
	return false;
}

/* Names with commas between, or options of `hale monitor`. */
static hale_status_t take_monitor(struct parser *p)
{
	const char *at = p->value;

	if (p->o->monitor_count == OPTIONS_MONITORS_MAX)
		return error_set(p->err, HALE_ERR_ARGUMENT, "more than %d times --monitor",
				 OPTIONS_MONITORS_MAX);
	while (strncmp(p->value, "--", 2) != 0 && at) {
		const char *comma = strchr(at, ',');

		if (!is_monitor(at, comma ? (size_t)(comma - at) : strlen(at)))
			return options_bad_value(p,
						 "ipmi, ib, memory, load with commas between, or "
						 "options of hale monitor");
		at = comma ? comma + 1 : NULL;
	}
	p->o->monitors[p->o->monitor_count++] = p->value;
	return HALE_OK;
}

static hale_status_t take_tasks(struct parser *p)
{
	struct task_settings s;
	char why[160];

	p->o->tasks = p->value ? p->value : "";
	return task_settings_read(&s, p->o->tasks, why) ? HALE_OK : options_bad_value(p, why);
}

static hale_status_t take_due(struct parser *p)
{
	struct task_due d;
	char why[160];

	p->o->due = p->value + strlen("due:");
	if (task_due_read(&d, p->o->due, why))
		return HALE_OK;
	return error_set(p->err, HALE_ERR_ARGUMENT, "--inject takes %s", why);
}

static hale_status_t take_inject(struct parser *p)
{
	if (strncmp(p->value, "due:", 4) == 0)
		return take_due(p);
	if (p->o->fault_count == OPTIONS_FAULTS_MAX)
		return error_set(p->err, HALE_ERR_ARGUMENT, "more than %d times --inject",
				 OPTIONS_FAULTS_MAX);
	return options_parse_fault(p->value, &p->o->faults[p->o->fault_count++], p->err);
}

static hale_status_t take_bind(struct parser *p)
{
	if (strcmp(p->value, "none") == 0) {
		p->o->bind = BIND_NONE;
	} else if (strncmp(p->value, "core", 4) == 0 || strncmp(p->value, "hwthread", 8) == 0) {
		p->o->bind = BIND_CORE;
	} else {
		log_info("--bind-to %s: ranks get equal shares of the cores instead", p->value);
	}
	return HALE_OK;
}

hale_status_t options_export(struct options *o, char *assignment, struct error *err)
{
	char **more;

	if (!assignment)
		return error_set(err, HALE_ERR_MEMORY, "out of memory");
	more = realloc(o->exports, (o->export_count + 2) * sizeof(char *));
	if (!more) {
		free(assignment);
		return error_set(err, HALE_ERR_MEMORY, "out of memory");
	}
	o->exports = more;
	more[o->export_count++] = assignment;
	more[o->export_count] = NULL;
	return HALE_OK;
}

/* -x VAR hands on what is there anyway, so only VAR=VAL leads to anything. */
static hale_status_t take_export(struct parser *p)
{
	const char *v = p->value;

	if (!isalpha((unsigned char)v[0]) && v[0] != '_')
		return options_bad_value(p, "VARIABLE or VARIABLE=VALUE");
	if (strncmp(v, "HALE_", 5) == 0 && strchr(v, '='))
		return error_set(p->err, HALE_ERR_ARGUMENT,
				 "-x can't set %s: names with HALE_ belong to hale itself", v);
	if (!strchr(v, '='))
		return HALE_OK;
	return options_export(p->o, strdup(v), p->err);
}

static hale_status_t take_nothing(struct parser *p)
{
	if (p->value)
		log_info("%s %s means nothing here and is passed over", p->name, p->value);
	else
		log_info("%s is how hale does it anyway", p->name);
	return HALE_OK;
}

static hale_status_t take_help(struct parser *p)
{
	p->o->help = true;
	return HALE_OK;
}

static hale_status_t take_version(struct parser *p)
{
	p->o->version = true;
	return HALE_OK;
}

static const struct option options_other[] = {
    {"--report", 1, false, take_report},
    {"--profile", 1, false, take_profile},
    {"--tag|--tag-output|-tag-output", 0, false, take_tag},
    {"--on-closed-output", 1, false, take_on_closed_output},
    {"--verbose|-v", 0, false, take_verbose},
    {"--quiet|-q", 0, false, take_quiet},
    {"--no-mpi", 0, true, take_no_mpi},
    {"--wdir|-wdir|-wd", 1, true, take_wdir},
    {"-x", 1, true, take_export},
    {"--bind-to|-bind-to", 1, false, take_bind},
    {"--seed", 1, false, take_seed},
    {"--inject", 1, false, take_inject},
    {"--tasks", OPTION_EQUALS, true, take_tasks},
    {"--events", 0, false, take_events},
    {"--no-events", 0, false, take_no_events},
    {"--rules", 1, false, take_rules},
    {"--monitor", 1, false, take_monitor},
    {"--help|-h", 0, false, take_help},
    {"--version|-V", 0, false, take_version},
    /* what people who write mpirun are used to give */
    {"--oversubscribe|-oversubscribe|--allow-run-as-root|--use-hwthread-cpus|--enable-recovery", 0,
     false, take_nothing},
    {"--map-by|-map-by|--rank-by|-rank-by|--mca-param-file", 1, false, take_nothing},
    {"--mca|-mca|--gmca|-gmca|--prtemca|--pmixmca", 2, false, take_nothing},
    {0},
};

static bool name_among(const char *names, const char *name, size_t len)
{
	while (names) {
		const char *bar = strchr(names, '|');
		size_t n = bar ? (size_t)(bar - names) : strlen(names);

		if (n == len && memcmp(names, name, n) == 0)
			return true;
		names = bar ? bar + 1 : NULL;
	}
	return false;
}

static const struct option *find_option(const char *arg, size_t len)
{
	static const struct option *const tables[] = {options_place, options_ckpt, options_other};

	for (size_t i = 0; i < ARRAY_LEN(tables); i++)
		for (const struct option *o = tables[i]; o->names; o++)
			if (name_among(o->names, arg, len))
				return o;
	return NULL;
}

bool options_offers(const char *name)
{
	const struct option *o = find_option(name, strlen(name));

	return o && o->take != take_nothing;
}

/* Takes argv[*i] and its values; *i then points behind them. */
static hale_status_t take_option(struct parser *p, int argc, char **argv, int *i)
{
	char *arg = argv[(*i)++];
	char *equals = strncmp(arg, "--", 2) == 0 ? strchr(arg, '=') : NULL;
	size_t len = equals ? (size_t)(equals - arg) : strlen(arg);
	const struct option *o = find_option(arg, len);

	if (!o)
		return error_set(p->err, HALE_ERR_ARGUMENT,
				 "unknown option '%s'; `hale %s --help` lists them", arg,
				 p->which == OPTIONS_RUN ? "run" : "restart");
	if (o->run_only && p->which == OPTIONS_RESTART)
		return error_set(p->err, HALE_ERR_ARGUMENT,
				 "%s comes from the checkpoint; leave it out", arg);
	if (equals && o->values != 1 && o->values != OPTION_EQUALS)
		return error_set(p->err, HALE_ERR_ARGUMENT, "%.*s takes no value", (int)len, arg);
	p->name = equals ? strndup(arg, len) : arg;
	p->value = NULL;
	if (equals) {
		p->value = equals + 1;
	} else if (o->values > 0) {
		if (*i + o->values > argc)
			return error_set(p->err, HALE_ERR_ARGUMENT, "%s needs a value", arg);
		p->value = argv[*i];
		*i += o->values;
	}
	hale_status_t status = o->take(p);
	if (equals)
		free((void *)p->name);
	return status;
}

static hale_status_t check_whole(struct options *o, options_for_t which, struct error *err)
{
	if (o->help || o->version)
		return HALE_OK;
	if (!o->program[0])
		return error_set(err, HALE_ERR_ARGUMENT,
				 which == OPTIONS_RUN
				     ? "no program given: hale run -n 4 [options] [--] program …"
				     : "no checkpoint given: hale restart CHECKPOINT [options]");
	if (o->hosts && o->host_list)
		return error_set(err, HALE_ERR_ARGUMENT,
				 "--hosts and --host both name hosts; give one of them");
	if (o->given_auto && !o->ckpt_auto)
		return error_set(err, HALE_ERR_ARGUMENT,
				 "--ckpt-first, --overhead and --mtbf are about --ckpt-every auto, "
				 "which chooses when checkpoints are taken; leave them out");
	if (o->on_success == SUCCESS_REMOVE && o->ckpt_local)
		return error_set(err, HALE_ERR_ARGUMENT,
				 "--ckpt-on-success remove can't be had with --ckpt-local in this "
				 "version: remove what is on the nodes' disks by yourself");
	if (o->due && !o->tasks)
		return error_set(err, HALE_ERR_ARGUMENT,
				 "--inject due: is about tasks; give --tasks, too");
	if (which == OPTIONS_RUN && o->given_shared_every && !o->ckpt_local)
		return error_set(
		    err, HALE_ERR_ARGUMENT,
		    "--ckpt-shared-every is about the checkpoints of --ckpt-local DIR; "
		    "without it all of them go to --ckpt-dir");
	if (which == OPTIONS_RESTART && o->program[1])
		return error_set(err, HALE_ERR_ARGUMENT,
				 "'%s': hale restart takes one checkpoint and nothing behind it",
				 o->program[1]);
	if (o->no_events && (o->events || o->rules || o->monitor_count > 0))
		return error_set(err, HALE_ERR_ARGUMENT,
				 "--no-events goes with none of --events, --rules, --monitor");
	for (char **a = o->program; which == OPTIONS_RUN && *a; a++)
		if (strcmp(*a, ":") == 0)
			return error_set(
			    err, HALE_ERR_UNSUPPORTED,
			    "several programs in one job (':') are not supported "
			    "by this version; start one program that branches by rank");
	for (size_t i = 0; which == OPTIONS_RUN && i < o->fault_count; i++)
		if (o->faults[i].rank >= o->ranks)
			return error_set(err, HALE_ERR_ARGUMENT,
					 "--inject: there is no rank %ld among %ld",
					 o->faults[i].rank, o->ranks);
	return HALE_OK;
}

/* hale restart CHECKPOINT --hosts FILE: what is no option goes behind all options. */
static void to_the_end(char **argv, int argc, int i)
{
	char *checkpoint = argv[i];

	memmove(argv + i, argv + i + 1, (size_t)(argc - i - 1) * sizeof(*argv));
	argv[argc - 1] = checkpoint;
}

static hale_status_t parse_all(struct options *o, options_for_t which, int argc, char **argv,
			       struct error *err)
{
	struct parser p = {.o = o, .err = err, .which = which};
	int i = 1;

	*o = (struct options){.ranks = 1,
			      .ckpt_dir = "hale-ckpt",
			      .ckpt_auto = true,
			      .ckpt_first = CKPT_FIRST_SECONDS,
			      .overhead = CKPT_OVERHEAD,
			      .keep = 2,
			      .shared_every = SHARED_EVERY,
			      .max_restarts = 10,
			      .ckpt_wait = 10,
			      .seed = 1,
			      .node_timeout = 10,
			      .warm_sinks = WARM_ALL,
			      .restart = IMAGE_FULL};
	int end = argc; /* of what may be options */

	while (i < end) {
		if (argv[i][0] != '-' || !argv[i][1]) {
			if (which == OPTIONS_RUN)
				break;
			to_the_end(argv, argc, i);
			end--;
			continue;
		}
		if (strcmp(argv[i], "--") == 0) {
			i++;
			break;
		}
		hale_status_t status = take_option(&p, end, argv, &i);
		if (status != HALE_OK)
			return status;
		if (o->help || o->version)
			break;
	}
	o->program = argv + i;
	return check_whole(o, which, err);
}

/* --verbose may come last, and concerns what is said about the options before it. */
hale_status_t options_parse(struct options *o, options_for_t which, int argc, char **argv,
			    struct error *err)
{
	hale_status_t status = parse_all(o, which, argc, argv, err);

	if (status != HALE_OK || !o->verbose || log_level() >= LOG_INFO)
		return status;
	options_fini(o);
	log_set_level(LOG_INFO);
	return parse_all(o, which, argc, argv, err);
}

void options_fini(struct options *o)
{
	for (size_t i = 0; i < o->export_count; i++)
		free(o->exports[i]);
	free(o->exports);
	o->exports = NULL;
	o->export_count = 0;
}
