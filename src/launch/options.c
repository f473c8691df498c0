/* SPDX-License-Identifier: BSD-3-Clause */
#include "launch/options_private.h"
#include "launch/slurm_step.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "base/base.h"
#include "base/closest.h"
#include "base/units.h"
#include "launch/mpmd.h"
#include "node/job.h"
#include "node/task_settings.h"

hale_status_t options_bad_value(struct parser *p, const char *wanted)
{
	return error_set(p->err, HALE_ERR_ARGUMENT, "%s takes %s, not '%s'", p->name, wanted,
			 p->value);
}

hale_status_t options_take_tag(struct parser *p)
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

hale_status_t options_take_assignment(struct parser *p, const char *v)
{
	if (!isalpha((unsigned char)v[0]) && v[0] != '_')
		return options_bad_value(p, "VARIABLE or VARIABLE=VALUE");
	if (strncmp(v, "HALE_", 5) == 0 && strchr(v, '='))
		return error_set(p->err, HALE_ERR_ARGUMENT,
				 "%s can't set %s: names with HALE_ belong to hale itself", p->name,
				 v);
	return options_export(p->o, strdup(v), p->err);
}

/* -x VAR hands on what is there anyway, so only VAR=VAL leads to anything. */
static hale_status_t take_export(struct parser *p)
{
	return strchr(p->value, '=') || (!isalpha((unsigned char)p->value[0]) && p->value[0] != '_')
		   ? options_take_assignment(p, p->value)
		   : HALE_OK;
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
    {"--tag|--tag-output|-tag-output|-l", 0, false, options_take_tag},
    {"--on-closed-output", 1, false, take_on_closed_output},
    {"--verbose|-v", 0, false, take_verbose},
    {"--quiet|-q", 0, false, take_quiet},
    {"--no-mpi", 0, true, take_no_mpi},
    {"--wdir|-wdir|-wd", 1, true, take_wdir},
    {"-x", 1, true, take_export},
    {"--seed", 1, false, take_seed},
    {"--inject", 1, false, take_inject},
    {"--tasks", OPTION_EQUALS, true, take_tasks},
    {"--events", 0, false, take_events},
    {"--no-events", 0, false, take_no_events},
    {"--rules", 1, false, take_rules},
    {"--monitor", 1, false, take_monitor},
    {"--help|-h", 0, false, take_help},
    {"--version|-V", 0, false, take_version},
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

static const struct option *const tables[] = {options_place, options_ckpt, options_other,
					      options_mpirun};

static const struct option *find_option(const char *arg, size_t len)
{
	for (size_t i = 0; i < ARRAY_LEN(tables); i++)
		for (const struct option *o = tables[i]; o->names; o++)
			if (name_among(o->names, arg, len))
				return o;
	return NULL;
}

bool options_offers(const char *name)
{
	const struct option *o = find_option(name, strlen(name));

	return o && o->take != options_take_nothing;
}

int options_values(const char *name)
{
	const struct option *o = find_option(name, strlen(name));

	return o && o->values != OPTION_EQUALS ? o->values : 0;
}

bool options_of_run_only(const char *name)
{
	const struct option *o = find_option(name, strlen(name));

	return o && o->run_only;
}

static void try_names(struct closest *c, const char *names)
{
	while (names) {
		const char *bar = strchr(names, '|');

		closest_try(c, names, bar ? (size_t)(bar - names) : strlen(names));
		names = bar ? bar + 1 : NULL;
	}
}

/* What other systems, and people, call an option. NULL: none that we know. */
static const char *usual_name(const char *arg, size_t len)
{
	static const struct {
		const char *part, *ours;
	} known[] = {{"checkpoint-dir", "--ckpt-dir"},
		     {"checkpoint", "--ckpt-every"},
		     {"interval", "--ckpt-every"},
		     {"nproc", "-n"},
		     {"ntasks", "-n"},
		     {"replica", "--replicas"},
		     {"machine", "--hosts"},
		     {"timeout", "--timeout"}};

	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (memmem(arg, len, known[i].part, strlen(known[i].part)))
			return known[i].ours;
	return NULL;
}

static hale_status_t unknown(struct parser *p, const char *arg, size_t len)
{
	const char *command = p->which == OPTIONS_RUN ? "run" : "restart";
	struct closest c;

	closest_init(&c, arg, len);
	for (size_t i = 0; i < ARRAY_LEN(tables); i++)
		for (const struct option *o = tables[i]; o->names; o++)
			try_names(&c, o->names);
	/* of two letters one is always like another */
	const char *meant = c.word[0] && len > 2 ? c.word : usual_name(arg, len);
	if (meant)
		return error_set(p->err, HALE_ERR_ARGUMENT,
				 "unknown option '%s'; did you mean %s? `hale %s --help` lists all",
				 arg, meant, command);
	return error_set(p->err, HALE_ERR_ARGUMENT,
			 "unknown option '%s'; `hale %s --help` lists them", arg, command);
}

/* A script may override what it was given: that is said, and the last one counts. */
static void note_twice(struct parser *p)
{
	size_t len = strlen(p->o->twice);

	snprintf(p->o->twice + len, sizeof(p->o->twice) - len, "%s%s %s", len ? ", " : "", p->name,
		 p->value ? p->value : "");
}

/* A bare number of these is of seconds: that is said, as "--mtbf 6" may have meant hours. */
static void note_bare(struct parser *p, const struct option *o)
{
	static const char times[] = "--ckpt-every|--ckpt-first|--ckpt-wait|--mtbf|--node-timeout|"
				    "--head-grace";
	size_t len = strlen(p->o->bare);

	if (!name_among(times, o->names, strcspn(o->names, "|")) || strcmp(p->value, "0") == 0 ||
	    strspn(p->value, "0123456789.") != strlen(p->value))
		return;
	snprintf(p->o->bare + len, sizeof(p->o->bare) - len, "%s%s %ss", len ? ", " : "", p->name,
		 p->value);
}

/* Two numbers of ranks are a slip of the one who gives them. */
static hale_status_t check_twice(struct parser *p, const struct option *o)
{
	/* of these each one counts */
	static const char repeated[] = "-x|--inject|--monitor|--mca-param-file|--prefix";

	if (o->values > 1 || name_among(repeated, o->names, strcspn(o->names, "|")))
		return HALE_OK;
	for (size_t i = 0; i < p->seen_count; i++) {
		const char *before = p->seen[i].value;

		if (p->seen[i].option != o)
			continue;
		if (before == p->value || (before && p->value && strcmp(before, p->value) == 0))
			return HALE_OK;
		if (strncmp(o->names, "-n|", 3) == 0)
			return error_set(
			    p->err, HALE_ERR_ARGUMENT,
			    "%s is given twice, as '%s' and as '%s'; leave one of them "
			    "out",
			    p->name, before, p->value);
		p->seen[i].value = p->value;
		note_twice(p);
		return HALE_OK;
	}
	if (p->seen_count < OPTIONS_SEEN_MAX)
		p->seen[p->seen_count++] = (struct option_seen){o, p->value};
	return HALE_OK;
}

/* Takes argv[*i] and its values; *i then points behind them. */
static hale_status_t take_option(struct parser *p, int argc, char **argv, int *i)
{
	char *arg = argv[(*i)++];
	char *equals = strncmp(arg, "--", 2) == 0 ? strchr(arg, '=') : NULL;
	size_t len = equals ? (size_t)(equals - arg) : strlen(arg);
	const struct option *o = find_option(arg, len);

	if (!o)
		return unknown(p, arg, len);
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
		p->values = argv + *i;
		*i += o->values;
	}
	hale_status_t status = check_twice(p, o);
	if (status == HALE_OK)
		status = o->take(p);
	if (status == HALE_OK)
		note_bare(p, o);
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
				     : "no checkpoint given: hale restart CHECKPOINT [options]; "
				       "`hale ckpt list` shows those in hale-ckpt");
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
	if (o->requeue && !getenv("SLURM_JOB_ID"))
		return error_set(err, HALE_ERR_ARGUMENT,
				 "--requeue is for a batch job of Slurm (SLURM_JOB_ID is not set); "
				 "elsewhere `hale restart` goes on with what has ended");
	if (o->requeue && (o->replicas > 1 || o->ckpt_local || o->head_grace > 0))
		return error_set(err, HALE_ERR_ARGUMENT,
				 "--requeue can't be had with --replicas, --ckpt-local or "
				 "--head-grace in this version");
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
				 "'%s' and '%s': hale restart takes one checkpoint and nothing "
				 "behind it; name one (a pattern may stand for several folders)",
				 o->program[0], o->program[1]);
	if (o->verbose && o->quiet)
		return error_set(err, HALE_ERR_ARGUMENT,
				 "--verbose tells more and --quiet nothing; give one of them");
	if (o->compress != IMAGE_PLAIN && o->restart == IMAGE_LAZY)
		return error_set(err, HALE_ERR_ARGUMENT,
				 "--restart lazy maps images as they are, so they can't be "
				 "compressed; leave out --compress or --restart lazy");
	if (o->timeout > 0 && o->head_grace > 0)
		return error_set(err, HALE_ERR_ARGUMENT,
				 "--timeout ends with hale run, after which --head-grace lets the "
				 "job go on; give one of them");
	if (o->cpu_set && (o->hosts || o->host_list))
		return error_set(err, HALE_ERR_ARGUMENT,
				 "--cpu-set is about the cores of this machine; it can't be had "
				 "with --hosts or --host");
	if (o->no_events && (o->events || o->rules || o->monitor_count > 0))
		return error_set(err, HALE_ERR_ARGUMENT,
				 "--no-events goes with none of --events, --rules, --monitor");
	if (o->spares > 0 && o->nodes == 0 && o->per_node == 0 && !o->hosts && !o->host_list &&
	    !getenv("SLURM_JOB_NODELIST"))
		return error_set(
		    err, HALE_ERR_ARGUMENT,
		    "--spares are nodes of several: say which there are with --hosts or "
		    "--host, or how many with --nodes");
	if (which == OPTIONS_RUN && options_check_audit(o, err) != HALE_OK)
		return err->code;
	if (which == OPTIONS_RUN && o->replicas > 1) {
		hale_status_t status = options_check_replicas(o, err);

		if (status != HALE_OK)
			return status;
	}
	if (which == OPTIONS_RUN && options_check_shadows(o, err) != HALE_OK)
		return err->code;
	if (which == OPTIONS_RUN && options_check_sdc(o, err) != HALE_OK)
		return err->code;
	for (size_t i = 0; which == OPTIONS_RUN && i < o->fault_count; i++)
		if (o->faults[i].slot >= o->replicas)
			return error_set(
			    err, HALE_ERR_ARGUMENT,
			    "--inject: a rank of this job has no slot %ld; see --replicas",
			    o->faults[i].slot);
	for (size_t i = 0; which == OPTIONS_RUN && i < o->fault_count; i++)
		if (o->faults[i].rank >= o->ranks + (o->spawn > 0 ? o->spawn : 0))
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

/* What was asked for by one command, or by a file of commands, is one program. */
static hale_status_t settle_program(struct options *o, struct error *err)
{
	hale_status_t status = HALE_OK;
	char **words = NULL;

	if (o->app && o->program[0])
		return error_set(
		    err, HALE_ERR_ARGUMENT,
		    "the programs are in %s (--app), and '%s' is another one; leave one "
		    "of them out",
		    o->app, o->program[0]);
	if (o->app)
		status = mpmd_read(o->app, &words, err);
	if (status == HALE_OK && (words || mpmd_is(o->program))) {
		status = mpmd_merge(words ? words : o->program, &o->ranks, &o->merged, err);
		o->given_ranks |= o->merged != NULL;
		o->program = o->merged ? o->merged : o->program;
	}
	mpmd_words_free(words);
	if (status == HALE_OK && o->output_folder && o->program[0]) {
		status = mpmd_into_files(o->program, o->output_folder, &o->wrapped, err);
		o->program = o->wrapped ? o->wrapped : o->program;
	}
	return status;
}

static hale_status_t parse_all(struct options *o, options_for_t which, int argc, char **argv,
			       struct error *err)
{
	struct parser p = {.o = o, .err = err, .which = which};
	int i = 1;

	*o = (struct options){.ranks = 1,
			      .replicas = 1,
			      .spawn = -1,
			      .replenish = true,
			      .rejuvenate_after = 1,
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
	if (which == OPTIONS_RUN) {
		hale_status_t status = settle_program(o, err);
		if (status != HALE_OK)
			return status;
	}
	/* as MPICH's launchers: MPIEXEC_TIMEOUT seconds, unless an option says how the job ends */
	const char *limit = which == OPTIONS_RUN ? getenv("MPIEXEC_TIMEOUT") : NULL;
	if (limit && o->timeout <= 0 && o->head_grace <= 0 &&
	    (!units_parse_seconds(limit, &o->timeout) || o->timeout <= 0))
		return error_set(
		    err, HALE_ERR_ARGUMENT,
		    "MPIEXEC_TIMEOUT is '%s'; it is a time like 90 (seconds) or 10min: "
		    "set it so or unset it",
		    limit);
	if (which == OPTIONS_RUN && !o->given_ranks && slurm_step_tasks() > 0) {
		o->step = true;
		o->ranks = slurm_step_tasks();
	} else if (which == OPTIONS_RUN && !o->given_ranks && o->per_node > 0 && !o->hosts &&
		   !o->host_list) {
		o->ranks = o->per_node * (o->nodes > 0 ? o->nodes : 1);
	}
	return check_whole(o, which, err);
}

/* --verbose may come last, and concerns what is said about the options before it. */
hale_status_t options_parse(struct options *o, options_for_t which, int argc, char **argv,
			    struct error *err)
{
	hale_status_t status = parse_all(o, which, argc, argv, err);

	if (status == HALE_OK && o->verbose && log_level() < LOG_INFO) {
		options_fini(o);
		log_set_level(LOG_INFO);
		status = parse_all(o, which, argc, argv, err);
	}
	if (status == HALE_OK && o->bare[0] && !o->quiet)
		log_warn("numbers without a unit are seconds: %s", o->bare);
	if (status == HALE_OK && o->twice[0] && !o->quiet)
		log_warn("given more than once, and the last one counts: %s", o->twice);
	if (status == HALE_OK && o->without[0] && !o->quiet)
		log_warn("the job runs without %s: hale has no such thing", o->without);
	return status;
}

void options_fini(struct options *o)
{
	for (size_t i = 0; i < o->export_count; i++)
		free(o->exports[i]);
	free(o->exports);
	o->exports = NULL;
	o->export_count = 0;
	if (o->merged)
		free(o->merged[2]);
	free(o->merged);
	o->merged = NULL;
	if (o->wrapped)
		free(o->wrapped[4]);
	free(o->wrapped);
	o->wrapped = NULL;
}
