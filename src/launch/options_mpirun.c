/* SPDX-License-Identifier: BSD-3-Clause */
/* Options of Open MPI's mpirun and MPICH's mpiexec. Those that mean something here do what they say
 * there; the others are named once, and the program runs as without them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "launch/options_private.h"
#include "launch/pin.h"

hale_status_t options_take_nothing(struct parser *p)
{
	if (p->value)
		log_info("%s %s means nothing here and is passed over", p->name, p->value);
	else
		log_info("%s is how hale does it anyway", p->name);
	return HALE_OK;
}

/* What somebody may count on is not passed over in silence. */
static hale_status_t take_without(struct parser *p)
{
	size_t len = strlen(p->o->without);

	snprintf(p->o->without + len, sizeof(p->o->without) - len, "%s%s", len ? ", " : "",
		 p->name);
	return HALE_OK;
}

struct bind_name {
	const char *name;
	bind_to_t kind;
};

/* "none" of those to bind to, "node" (all of it) of those to count ranks by. */
static const struct bind_name *bind_named(const char *name, size_t len, bool counts)
{
	static const struct bind_name known[] = {
	    {"none", BIND_NONE}, {"core", BIND_CORE}, {"hwthread", BIND_CORE},
	    {"l3cache", BIND_L3}, {"l3", BIND_L3},	 {"numa", BIND_NUMA},
	    {"socket", BIND_SOCKET}, {"package", BIND_SOCKET}, {"node", BIND_NONE}};
	const char *other = counts ? "none" : "node";

	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (strlen(known[i].name) == len && memcmp(known[i].name, name, len) == 0 &&
		    strcmp(known[i].name, other) != 0)
			return &known[i];
	return NULL;
}

static hale_status_t take_bind(struct parser *p)
{
	/* core:overload-allowed */
	const struct bind_name *b = bind_named(p->value, strcspn(p->value, ":"), false);

	if (!b)
		return options_bad_value(p, "none, core, hwthread, l3cache, numa or socket");
	p->o->bind = b->kind;
	return HALE_OK;
}

/* ppr:N:socket is a number of ranks on each socket; an order of ranks that hale has anyway is fine. */
static hale_status_t take_map(struct parser *p)
{
	const char *value = p->value;
	const struct bind_name *kind;
	hale_status_t status;
	char number[16];
	size_t len;

	if (strncmp(value, "ppr:", 4) != 0) {
		len = strcspn(value, ":");
		if ((len == 4 &&
		     (memcmp(value, "slot", 4) == 0 || memcmp(value, "core", 4) == 0)) ||
		    len == 0)
			return options_take_nothing(p);
		return take_without(p);
	}
	len = strcspn(value + 4, ":");
	if (value[4 + len] != ':' || len == 0 || len >= sizeof(number) ||
	    !(kind = bind_named(value + 4 + len + 1, strcspn(value + 4 + len + 1, ":"), true)))
		return options_bad_value(
		    p, "ppr:N:WHAT, N ranks on each node, socket, numa, l3cache or core; slot or core");
	snprintf(number, sizeof(number), "%.*s", (int)len, value + 4);
	p->value = number;
	status = options_take_per_node(p);
	if (status != HALE_OK || kind->kind == BIND_NONE)
		return status;
	/* as many as this machine has: nodes of a job are taken to be alike */
	p->o->per_node *= pin_objects(kind->kind);
	if (p->o->bind == BIND_DEFAULT)
		p->o->bind = kind->kind;
	return HALE_OK;
}

static hale_status_t take_timeout(struct parser *p)
{
	return units_parse_seconds(p->value, &p->o->timeout) && p->o->timeout > 0
		   ? HALE_OK
		   : options_bad_value(p, "a time like 90 (seconds), 10min or 2h");
}

static hale_status_t take_stdin(struct parser *p)
{
	p->o->no_stdin = strcmp(p->value, "none") == 0;
	return p->o->no_stdin || strcmp(p->value, "0") == 0 || strcmp(p->value, "rank0") == 0
		   ? HALE_OK
		   : options_bad_value(p,
				       "0 (rank 0 reads hale's input) or none; other ranks can't "
				       "read it");
}

static hale_status_t take_report_bindings(struct parser *p)
{
	p->o->report_bindings = true;
	return HALE_OK;
}

static hale_status_t take_display_map(struct parser *p)
{
	p->o->display_map = true;
	return HALE_OK;
}

static hale_status_t take_timestamp(struct parser *p)
{
	p->o->timestamp = true;
	return HALE_OK;
}

static hale_status_t take_cpu_set(struct parser *p)
{
	p->o->cpu_set = p->value;
	return *p->value && strspn(p->value, "0123456789,-") == strlen(p->value)
		   ? HALE_OK
		   : options_bad_value(p, "numbers of cores, like 0-3,8");
}

/* -genv VAR VAL */
static hale_status_t take_genv(struct parser *p)
{
	char *assignment;
	hale_status_t status;

	if (asprintf(&assignment, "%s=%s", p->values[0], p->values[1]) < 0)
		return error_set(p->err, HALE_ERR_MEMORY, "out of memory");
	status = options_take_assignment(p, assignment);
	free(assignment);
	return status;
}

static hale_status_t take_app(struct parser *p)
{
	p->o->app = p->value;
	return *p->value ? HALE_OK : options_bad_value(p, "a file with a program in each line");
}

/* FOLDER, FOLDER:nocopy or FOLDER:nojobid: Hale does both in any case. */
static hale_status_t take_output_folder(struct parser *p)
{
	char *words = strrchr(p->value, ':');

	if (words && (strcmp(words, ":nocopy") == 0 || strcmp(words, ":nojobid") == 0))
		*words = '\0';
	p->o->output_folder = p->value;
	return *p->value ? HALE_OK : options_bad_value(p, "a folder");
}

const struct option options_mpirun[] = {
    {"--bind-to|-bind-to", 1, false, take_bind},
    {"--map-by|-map-by", 1, false, take_map},
    {"--cpu-set|-cpu-set|--cpu-list", 1, false, take_cpu_set},
    {"--timeout|-timeout", 1, false, take_timeout},
    {"--stdin|-stdin|-s", 1, false, take_stdin},
    {"--report-bindings|-report-bindings", 0, false, take_report_bindings},
    {"--display-map|-display-map", 0, false, take_display_map},
    {"--timestamp-output|-timestamp-output", 0, false, take_timestamp},
    {"-genv|-env", 2, true, take_genv},
    {"--app|-app|--configfile|-configfile", 1, true, take_app},
    {"--oversubscribe|-oversubscribe|--allow-run-as-root|--use-hwthread-cpus|--enable-recovery|"
     "-genvall|-envall",
     0, false, options_take_nothing},
    {"--mca-param-file", 1, false, options_take_nothing},
    {"--mca|-mca|--gmca|-gmca|--prtemca|--pmixmca", 2, false, options_take_nothing},
    {"--output-filename|-output-filename", 1, false, take_output_folder},
    {"--prefix|-prefix|--rank-by|-rank-by|--rankfile|-rf|-outfile-pattern|-errfile-pattern",
     1, false, take_without},
    {0},
};
