/* SPDX-License-Identifier: BSD-3-Clause */
#include "job/options.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "base/base.h"
#include "job/job.h"

enum { SHARED_EVERY = 10 };

struct parser {
	struct options *o;
	struct error *err;
	options_for_t which;
	const char *name;  /* of the option, as written */
	const char *value; /* NULL: the option takes none */
};

typedef hale_status_t (*option_fn)(struct parser *p);

struct option {
	const char *names; /* "-n|-np|-c": alternatives */
	int values;	   /* how many values follow */
	bool run_only;
	option_fn take;
};

static hale_status_t bad_value(struct parser *p, const char *wanted)
{
	return error_set(p->err, HALE_ERR_ARGUMENT, "%s takes %s, not '%s'", p->name, wanted,
			 p->value);
}

static hale_status_t take_ranks(struct parser *p)
{
	if (!units_parse_int(p->value, 1, 1000000000, &p->o->ranks))
		return bad_value(p, "a number of ranks from 1 on");
	if (p->o->ranks > JOB_RANKS_MAX)
		return error_set(p->err, HALE_ERR_ARGUMENT,
				 "%s ranks are more than one machine can run (at most %d)",
				 p->value, JOB_RANKS_MAX);
	return HALE_OK;
}

static hale_status_t take_nodes(struct parser *p)
{
	return units_parse_int(p->value, 1, JOB_RANKS_MAX, &p->o->nodes)
		   ? HALE_OK
		   : bad_value(p, "a number of nodes from 1 on");
}

static hale_status_t take_per_node(struct parser *p)
{
	return units_parse_int(p->value, 1, JOB_RANKS_MAX, &p->o->per_node)
		   ? HALE_OK
		   : bad_value(p, "a number of ranks from 1 on");
}

static hale_status_t take_spares(struct parser *p)
{
	return units_parse_int(p->value, 0, JOB_NODES_MAX, &p->o->spares)
		   ? HALE_OK
		   : bad_value(p, "a number of nodes from 0 on");
}

static hale_status_t take_hosts(struct parser *p)
{
	p->o->hosts = p->value;
	return *p->value ? HALE_OK : bad_value(p, "a file");
}

static hale_status_t take_host_list(struct parser *p)
{
	p->o->host_list = p->value;
	return *p->value ? HALE_OK : bad_value(p, "names of hosts with commas between");
}

static hale_status_t take_launcher(struct parser *p)
{
	p->o->launcher = p->value;
	return strstr(p->value, "%c")
		   ? HALE_OK
		   : bad_value(p, "a command with %h for the host and %c for what is to run there");
}

static hale_status_t take_node_timeout(struct parser *p)
{
	return units_parse_seconds(p->value, &p->o->node_timeout) && p->o->node_timeout >= 0.5 &&
		       p->o->node_timeout <= 86400
		   ? HALE_OK
		   : bad_value(p, "a time from 500ms to a day");
}

static hale_status_t take_net_security(struct parser *p)
{
	p->o->given_net_security = true;
	p->o->net_encrypt = strcmp(p->value, "encrypt") == 0;
	return p->o->net_encrypt || strcmp(p->value, "auth") == 0
		   ? HALE_OK
		   : bad_value(p, "auth (who connects proves that it is of this job) or encrypt "
				  "(and all that is sent is encrypted and authenticated)");
}

static hale_status_t take_head_grace(struct parser *p)
{
	return units_parse_seconds(p->value, &p->o->head_grace) &&
		       (p->o->head_grace == 0 || p->o->head_grace >= 1) &&
		       p->o->head_grace <= 30 * 86400.0
		   ? HALE_OK
		   : bad_value(p, "a time from 1s to 30 days (0: the job ends with hale run)");
}

static hale_status_t take_every(struct parser *p)
{
	p->o->given_every = true;
	if (!units_parse_seconds(p->value, &p->o->ckpt_every) ||
	    (p->o->ckpt_every != 0 && p->o->ckpt_every < 0.01))
		return bad_value(p, "a time like 30s, 500ms or 2min (0: only on request)");
	return HALE_OK;
}

static hale_status_t take_dir(struct parser *p)
{
	p->o->given_dir = true;
	p->o->ckpt_dir = p->value;
	return *p->value ? HALE_OK : bad_value(p, "a folder");
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
		   : bad_value(p, "a folder on each node (%n in it is the node's name, %% is %)");
}

static hale_status_t take_shared_every(struct parser *p)
{
	p->o->given_shared_every = true;
	return units_parse_int(p->value, 0, 1000000, &p->o->shared_every)
		   ? HALE_OK
		   : bad_value(p, "a number of checkpoints (0: only those that are asked for)");
}

static hale_status_t take_keep(struct parser *p)
{
	p->o->given_keep = true;
	return units_parse_int(p->value, 1, 1000000, &p->o->keep)
		   ? HALE_OK
		   : bad_value(p, "a number of checkpoints from 1 on");
}

static hale_status_t take_max_restarts(struct parser *p)
{
	p->o->given_max_restarts = true;
	return units_parse_int(p->value, 0, 1000000, &p->o->max_restarts)
		   ? HALE_OK
		   : bad_value(p, "a number from 0 on");
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
	return bad_value(p, "none, lz4 or zstd");
}

static hale_status_t take_restart(struct parser *p)
{
	if (strcmp(p->value, "full") != 0 && strcmp(p->value, "lazy") != 0)
		return bad_value(p, "full or lazy");
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

static hale_status_t take_report(struct parser *p)
{
	p->o->report = p->value;
	return *p->value ? HALE_OK : bad_value(p, "a file");
}

static hale_status_t take_profile(struct parser *p)
{
	p->o->profile = p->value;
	return *p->value ? HALE_OK : bad_value(p, "a file");
}

static hale_status_t take_wdir(struct parser *p)
{
	p->o->wdir = p->value;
	return *p->value ? HALE_OK : bad_value(p, "a folder");
}

static hale_status_t take_seed(struct parser *p)
{
	long v;

	if (!units_parse_int(p->value, 0, 0x7fffffffffffffffl, &v))
		return bad_value(p, "a whole number");
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
	return *p->value ? HALE_OK : bad_value(p, "a file");
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
			return bad_value(p, "ipmi, ib, memory, load with commas between, or "
					    "options of hale monitor");
		at = comma ? comma + 1 : NULL;
	}
	p->o->monitors[p->o->monitor_count++] = p->value;
	return HALE_OK;
}

static hale_status_t take_inject(struct parser *p)
{
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

static hale_status_t add_export(struct parser *p, char *assignment)
{
	char **more;

	if (!assignment)
		return error_set(p->err, HALE_ERR_MEMORY, "out of memory");
	more = realloc(p->o->exports, (p->o->export_count + 2) * sizeof(char *));
	if (!more) {
		free(assignment);
		return error_set(p->err, HALE_ERR_MEMORY, "out of memory");
	}
	p->o->exports = more;
	more[p->o->export_count++] = assignment;
	more[p->o->export_count] = NULL;
	return HALE_OK;
}

/* -x VAR hands on what is there anyway, so only VAR=VAL leads to anything. */
static hale_status_t take_export(struct parser *p)
{
	const char *v = p->value;

	if (!isalpha((unsigned char)v[0]) && v[0] != '_')
		return bad_value(p, "VARIABLE or VARIABLE=VALUE");
	if (strncmp(v, "HALE_", 5) == 0 && strchr(v, '='))
		return error_set(p->err, HALE_ERR_ARGUMENT,
				 "-x can't set %s: names with HALE_ belong to hale itself", v);
	if (!strchr(v, '='))
		return HALE_OK;
	return add_export(p, strdup(v));
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

static const struct option known_options[] = {
    {"-n|-np|-c|--np|--n", 1, true, take_ranks},
    {"--nodes", 1, false, take_nodes},
    {"--ppn|-N|--npernode|-npernode", 1, false, take_per_node},
    {"--spares", 1, false, take_spares},
    {"--hosts|--hostfile|-hostfile|--machinefile|-machinefile", 1, false, take_hosts},
    {"--host|-host|-H", 1, false, take_host_list},
    {"--launcher", 1, false, take_launcher},
    {"--node-timeout", 1, false, take_node_timeout},
    {"--net-security", 1, false, take_net_security},
    {"--head-grace", 1, false, take_head_grace},
    {"--ckpt-every", 1, false, take_every},
    {"--ckpt-dir", 1, false, take_dir},
    {"--ckpt-local", 1, false, take_local},
    {"--ckpt-shared-every", 1, false, take_shared_every},
    {"--keep", 1, false, take_keep},
    {"--max-restarts", 1, false, take_max_restarts},
    {"--compress", 1, false, take_compress},
    {"--restart", 1, false, take_restart},
    {"--incremental", 0, false, take_incremental},
    {"--no-fsync", 0, false, take_no_fsync},
    {"--report", 1, false, take_report},
    {"--profile", 1, false, take_profile},
    {"--tag|--tag-output|-tag-output", 0, false, take_tag},
    {"--verbose|-v", 0, false, take_verbose},
    {"--quiet|-q", 0, false, take_quiet},
    {"--no-mpi", 0, true, take_no_mpi},
    {"--wdir|-wdir|-wd", 1, true, take_wdir},
    {"-x", 1, true, take_export},
    {"--bind-to|-bind-to", 1, false, take_bind},
    {"--seed", 1, false, take_seed},
    {"--inject", 1, false, take_inject},
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
	for (size_t i = 0; i < ARRAY_LEN(known_options); i++)
		if (name_among(known_options[i].names, arg, len))
			return &known_options[i];
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
	if (equals && o->values != 1)
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
				     : "no checkpoint given: hale restart [options] CHECKPOINT");
	if (o->hosts && o->host_list)
		return error_set(err, HALE_ERR_ARGUMENT,
				 "--hosts and --host both name hosts; give one of them");
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

static hale_status_t parse_all(struct options *o, options_for_t which, int argc, char **argv,
			       struct error *err)
{
	struct parser p = {.o = o, .err = err, .which = which};
	int i = 1;

	*o = (struct options){.ranks = 1,
			      .ckpt_dir = "hale-ckpt",
			      .keep = 2,
			      .shared_every = SHARED_EVERY,
			      .max_restarts = 10,
			      .seed = 1,
			      .node_timeout = 10,
			      .restart = IMAGE_FULL};
	while (i < argc && argv[i][0] == '-' && argv[i][1]) {
		if (strcmp(argv[i], "--") == 0) {
			i++;
			break;
		}
		hale_status_t status = take_option(&p, argc, argv, &i);
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
