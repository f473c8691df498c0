/* SPDX-License-Identifier: BSD-3-Clause */
/* hale rules: is a file of rules right, and what would it have done about recorded events? */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "base/base.h"
#include "base/json.h"
#include "cli/cli.h"
#include "cli/monitor.h"
#include "node/job.h"
#include "rules/rules.h"

enum { NODES_MAX = 1024, TEXT_MAX = 256 };

const char cli_rules_help[] =
    "hale rules check [FILE]        is it right? Without FILE: the rules that Hale ships\n"
    "hale rules try [FILE] --nodes A,B,… [--spares C,…] [options] < EVENTS\n"
    "\n"
    "Prints what the rules would do about recorded events, lines of JSON as `hale events --json`\n"
    "and `hale monitor --to FILE` write them. Nothing is really done: a migration takes a while "
    "and\n"
    "succeeds.\n"
    "\n"
    "  --nodes A,B            nodes with ranks\n"
    "  --spares C,D           nodes without, for them to go to\n"
    "  --move-time TIME       that a migration takes (1s)\n"
    "  --after TIME           goes on so long after the last event (1h)\n"
    "  --json                 an object for each action\n";

struct trial {
	struct rules_engine *engine;
	char *nodes[NODES_MAX]; /* in the order of the command line; owned by argv */
	rules_role_t roles[NODES_MAX];
	int count;
	double move_time, after, first, now;
	bool json;
	struct {
		uint64_t id;
		double at; /* when it has ended */
		char node[TEXT_MAX];
	} moves[NODES_MAX];
	int move_count;
};

static int usage(const char *fmt, const char *what)
{
	char text[300];

	snprintf(text, sizeof(text), fmt, what);
	log_warn("%s; `hale help rules` says how", text);
	return EXIT_USAGE;
}

static void show_json(const struct rules_action *a, double t)
{
	struct json_out j;

	json_out_init(&j);
	json_open_object(&j, NULL);
	json_double(&j, "seconds", t);
	json_string(&j, "action", rules_do_name(a->what));
	json_string(&j, "node", a->node);
	json_string(&j, "argument", a->argument);
	json_int(&j, "amount", a->amount);
	json_string(&j, "rule", a->rule);
	json_int(&j, "line", a->line);
	json_string(&j, "event", a->event);
	json_close_object(&j);
	printf("%s\n", j.text);
	json_out_fini(&j);
}

static void act(void *arg, const struct rules_action *a)
{
	struct trial *t = arg;

	if (t->json)
		show_json(a, a->time - t->first);
	else
		printf("%10.3f  %-14s %-12s %s%srule %s, line %d%s%s\n", a->time - t->first,
		       rules_do_name(a->what), *a->node ? a->node : "-", a->argument,
		       *a->argument ? "  " : "", *a->rule ? a->rule : "-", a->line,
		       *a->event ? "; " : "", a->event);
	if ((a->what != RULES_MIGRATE && a->what != RULES_CLONE) || t->move_count == NODES_MAX)
		return;
	t->moves[t->move_count].id = a->id;
	t->moves[t->move_count].at = a->time + t->move_time;
	snprintf(t->moves[t->move_count++].node, TEXT_MAX, "%s", a->node);
}

static void set_role(struct trial *t, int i, rules_role_t role)
{
	t->roles[i] = role;
	rules_engine_node(t->engine, t->nodes[i], role, t->now);
}

/* The ranks are on the first usable spare now; their old node is free, for what that is worth. */
static void finish_move(struct trial *t, int k)
{
	uint64_t id = t->moves[k].id;
	char node[TEXT_MAX];
	bool placed = false;

	memcpy(node, t->moves[k].node, sizeof(node));
	t->moves[k] = t->moves[--t->move_count];
	for (int i = 0; i < t->count && !placed; i++) {
		placed =
		    t->roles[i] == RULES_NODE_SPARE && rules_engine_usable(t->engine, t->nodes[i]);
		if (placed)
			set_role(t, i, RULES_NODE_WORKING);
	}
	for (int i = 0; placed && i < t->count; i++)
		if (strcmp(t->nodes[i], node) == 0)
			set_role(t, i, RULES_NODE_SPARE);
	rules_engine_done(t->engine, id, placed, t->now);
}

/* Everything that is due until then, in order. */
static void pass_time(struct trial *t, double until)
{
	for (;;) {
		double next = rules_engine_next(t->engine);
		int first = -1;

		for (int k = 0; k < t->move_count; k++) {
			if (t->moves[k].at <= next) {
				next = t->moves[k].at;
				first = k;
			}
		}
		if (!(next <= until))
			break;
		t->now = next > t->now ? next : t->now;
		if (first >= 0)
			finish_move(t, first);
		else
			rules_engine_tick(t->engine, t->now);
	}
	if (until > t->now)
		t->now = until;
}

/* "2026-01-31T12:00:00.123" as a number that grows with it, or a number of seconds. */
static bool parse_time(const struct json_value *v, double *seconds)
{
	const char *text = json_text(v, NULL), *rest;
	struct tm tm = {0};

	if (!text) {
		*seconds = json_number(v, NAN);
		return *seconds == *seconds;
	}
	rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);
	if (!rest)
		return false;
	*seconds = (double)timegm(&tm);
	if (*rest == '.')
		*seconds += strtod(rest, NULL);
	return true;
}

static bool play_event(struct trial *t, const struct json_value *v)
{
	struct rules_event e = {.space = json_text(json_get(v, "namespace"), ""),
				.name = json_text(json_get(v, "name"), NULL),
				.host = json_text(json_get(v, "host"), ""),
				.payload = json_text(json_get(v, "payload"), "")};

	if (!e.name || !parse_time(json_get(v, "time"), &e.time) ||
	    !rules_severity_parse(json_text(json_get(v, "severity"), "INFO"), &e.severity))
		return false;
	if (t->first != t->first) {
		t->first = t->now = e.time;
		for (int i = 0; i < t->count; i++)
			set_role(t, i, t->roles[i]);
	}
	if (e.time > t->now)
		pass_time(t, e.time);
	rules_engine_event(t->engine, &e);
	return true;
}

static int play(struct trial *t)
{
	char *line = NULL;
	size_t cap = 0;
	ssize_t n;
	int number = 0, status = 0;

	while (status == 0 && (n = getline(&line, &cap, stdin)) > 0) {
		struct json_value *v;

		number++;
		if (line[strspn(line, " \t\r\n")] == 0)
			continue;
		v = json_parse(line, (size_t)n);
		if (!v || !play_event(t, v)) {
			log_warn("line %d of the events is no object with time, name and severity",
				 number);
			status = 1;
		}
		json_free(v);
	}
	free(line);
	if (status == 0 && t->first == t->first)
		pass_time(t, t->now + t->after);
	return status;
}

static int add_nodes(struct trial *t, char *list, rules_role_t role)
{
	for (char *save, *name = strtok_r(list, ",", &save); name;
	     name = strtok_r(NULL, ",", &save)) {
		if (t->count == NODES_MAX || strlen(name) >= TEXT_MAX)
			return usage("'%s' is one node too many, or too long a name", name);
		t->nodes[t->count] = name;
		t->roles[t->count++] = role;
	}
	return 0;
}

static int parse_try(struct trial *t, int argc, char **argv, const char **file)
{
	for (int i = 0; i < argc; i++) {
		char *value = i + 1 < argc ? argv[i + 1] : NULL;
		int status = 0;

		if (strcmp(argv[i], "--json") == 0) {
			t->json = true;
			continue;
		}
		if (argv[i][0] != '-') {
			if (*file)
				return usage("'%s' is one file too many", argv[i]);
			*file = argv[i];
			continue;
		}
		if (!value)
			return usage("%s needs a value, or is no option of hale rules", argv[i]);
		if (strcmp(argv[i], "--nodes") == 0)
			status = add_nodes(t, value, RULES_NODE_WORKING);
		else if (strcmp(argv[i], "--spares") == 0)
			status = add_nodes(t, value, RULES_NODE_SPARE);
		else if (strcmp(argv[i], "--move-time") == 0)
			status = units_parse_seconds(value, &t->move_time)
				     ? 0
				     : usage("'%s' is no time", value);
		else if (strcmp(argv[i], "--after") == 0)
			status = units_parse_seconds(value, &t->after)
				     ? 0
				     : usage("'%s' is no time", value);
		else
			status = usage("'%s' is no option of hale rules", argv[i]);
		if (status)
			return status;
		i++;
	}
	return t->count ? 0 : usage("which nodes has the job? --nodes A,B%s", "");
}

static struct rules *load(const char *file)
{
	struct rules *rules;
	struct error err;

	if ((file ? rules_load(file, &rules, &err) : rules_default(&rules, &err)) == HALE_OK)
		return rules;
	log_warn("%s", err.text);
	return NULL;
}

static int check(const char *file)
{
	struct rules *rules = load(file);

	if (!rules)
		return 1;
	printf("%s: %zu rules, all right\n", file ? file : "default rules", rules_count(rules));
	rules_destroy(rules);
	return 0;
}

static int try(int argc, char **argv)
{
	static struct trial t;
	const char *file = NULL;
	struct rules *rules;
	int status;

	t = (struct trial){.move_time = 1, .after = 3600, .first = NAN};
	status = parse_try(&t, argc, argv, &file);
	if (status)
		return status;
	rules = load(file);
	if (!rules)
		return 1;
	t.engine = rules_engine_create(rules, act, &t);
	if (t.engine)
		status = play(&t);
	else
		status = usage("out of memory%s", "");
	rules_engine_destroy(t.engine);
	rules_destroy(rules);
	return status;
}

int cli_rules(int argc, char **argv)
{
	if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0))
		return cli_help("rules");
	if ((argc == 2 || argc == 3) && strcmp(argv[1], "check") == 0)
		return check(argc == 3 ? argv[2] : NULL);
	if (argc >= 2 && strcmp(argv[1], "try") == 0)
		return try(argc - 2, argv + 2);
	return usage("hale rules takes check or try%s", "");
}
