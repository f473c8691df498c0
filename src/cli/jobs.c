/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands that talk to running jobs: hale ps, hale ckpt, hale inject. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "base/base.h"
#include "base/json.h"
#include "cli/cli.h"
#include "cli/opencl.h"
#include "control/control.h"
#include "node/segment.h"
#include "node/task_settings.h"
#include "node/job.h"
#include "launch/options.h"

static int usage(const char *command, const char *what)
{
	log_warn("%s; `hale help %s` says how", what, command);
	return EXIT_USAGE;
}

static bool wants_help(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
			return true;
	return false;
}

/* ---- hale ps ---- */

static const char *text_of(const struct json_value *v, const char *key)
{
	return json_text(json_get(v, key), "?");
}

/* What the rules say of them. */
static void copy_nodes(struct json_out *j, const struct json_value *job)
{
	const struct json_value *nodes = json_get(job, "nodes");

	json_string(j, "events", json_text(json_get(job, "events"), ""));
	json_open_array(j, "nodes");
	for (size_t i = 0; i < json_count(nodes); i++) {
		const struct json_value *n = json_at(nodes, i);

		json_open_object(j, NULL);
		json_string(j, "node", text_of(n, "node"));
		json_bool(j, "usable", json_truth(json_get(n, "usable"), true));
		json_string(j, "why", json_text(json_get(n, "why"), ""));
		json_close_object(j);
	}
	json_close_array(j);
}

static void copy_unprotected(struct json_out *j, const struct json_value *u)
{
	if (!u)
		return;
	json_open_object(j, "unprotected");
	json_double(j, "since_seconds", json_number(json_get(u, "since_seconds"), 0));
	json_string(j, "why", text_of(u, "why"));
	json_close_object(j);
}

static void copy_job(struct json_out *j, const struct json_value *job)
{
	const struct json_value *ranks = json_get(job, "ranks");

	json_open_object(j, NULL);
	json_string(j, "id", text_of(job, "id"));
	json_string(j, "program", text_of(job, "program"));
	json_string(j, "state", text_of(job, "state"));
	json_open_array(j, "ranks");
	for (size_t i = 0; i < json_count(ranks); i++) {
		const struct json_value *r = json_at(ranks, i);

		json_open_object(j, NULL);
		json_int(j, "rank", json_number_int(json_get(r, "rank"), -1));
		json_int(j, "slot", json_number_int(json_get(r, "slot"), 0));
		json_string(j, "role", text_of(r, "role"));
		json_string(j, "node", text_of(r, "node"));
		json_int(j, "pid", json_number_int(json_get(r, "pid"), 0));
		json_string(j, "state", text_of(r, "state"));
		jobs_copy_shadow(j, r);
		json_close_object(j);
	}
	json_close_array(j);
	copy_nodes(j, job);
	jobs_copy_energy(j, job);
	json_int(j, "pid", json_number_int(json_get(job, "pid"), 0));
	json_double(j, "seconds", json_number(json_get(job, "seconds"), 0));
	json_int(j, "restarts", json_number_int(json_get(job, "restarts"), 0));
	json_int(j, "checkpoint", json_number_int(json_get(job, "checkpoint"), 0));
	if (json_get(job, "checkpoint_bytes")) {
		json_int(j, "checkpoint_bytes",
			 json_number_int(json_get(job, "checkpoint_bytes"), 0));
		json_double(j, "checkpoint_age_seconds",
			    json_number(json_get(job, "checkpoint_age_seconds"), 0));
	}
	if (json_get(job, "dirty_bytes_per_second"))
		json_double(j, "dirty_bytes_per_second",
			    json_number(json_get(job, "dirty_bytes_per_second"), 0));
	copy_unprotected(j, json_get(job, "unprotected"));
	json_close_object(j);
}

/* ", checkpoint 3 (18.7 MiB, 12.0 s ago)" */
static const char *checkpoint_text(const struct json_value *job, char buf[96])
{
	int64_t id = json_number_int(json_get(job, "checkpoint"), 0);
	char bytes[16], age[16];

	if (!json_get(job, "checkpoint_bytes")) {
		snprintf(buf, 96, id ? "checkpoint %" PRId64 : "no checkpoint", id);
		return buf;
	}
	units_show_bytes((uint64_t)json_number_int(json_get(job, "checkpoint_bytes"), 0), bytes);
	units_show_seconds(json_number(json_get(job, "checkpoint_age_seconds"), 0), age);
	snprintf(buf, 96, "checkpoint %" PRId64 " (%s, %s ago)", id, bytes, age);
	return buf;
}

static void show_unprotected(const struct json_value *u)
{
	char at[16];

	if (u)
		printf("  no checkpoint since %s after its start: %s\n",
		       units_show_seconds(json_number(json_get(u, "since_seconds"), 0), at),
		       text_of(u, "why"));
}

static void show_job(const struct json_value *job)
{
	const struct json_value *ranks = json_get(job, "ranks");
	int64_t restarts = json_number_int(json_get(job, "restarts"), 0);
	char age[16], checkpoint[96];

	if (strcmp(text_of(job, "state"), "headless") == 0) {
		printf("%-24s %-14s %s, %zu ranks; `hale attach %s` gives it a new head\n",
		       text_of(job, "id"), "headless", text_of(job, "program"), json_count(ranks),
		       text_of(job, "id"));
		return;
	}
	printf("%-24s %-14s %s, %zu ranks, %s, %" PRId64 " restart%s, %s\n", text_of(job, "id"),
	       text_of(job, "state"), text_of(job, "program"), json_count(ranks),
	       checkpoint_text(job, checkpoint), restarts, restarts == 1 ? "" : "s",
	       units_show_seconds(json_number(json_get(job, "seconds"), 0), age));
	show_unprotected(json_get(job, "unprotected"));
	for (size_t i = 0; i < json_count(ranks); i++) {
		const struct json_value *r = json_at(ranks, i);
		printf("  rank %-4" PRId64 " pid %-8" PRId64 " %s\n",
		       json_number_int(json_get(r, "rank"), -1),
		       json_number_int(json_get(r, "pid"), 0), text_of(r, "state"));
	}
	for (size_t i = 0; i < json_count(json_get(job, "nodes")); i++) {
		const struct json_value *n = json_at(json_get(job, "nodes"), i);

		if (!json_truth(json_get(n, "usable"), true))
			printf("  node %s is unusable (rule %s)\n", text_of(n, "node"),
			       text_of(n, "why"));
	}
}

/* A job that doesn't answer: stopped, mostly. */
static void list_silent(struct json_out *j, const char *id)
{
	if (!j) {
		printf("%-24s %-14s its hale run is stopped or too busy to say more\n", id,
		       "not answering");
		return;
	}
	json_open_object(j, NULL);
	json_string(j, "id", id);
	json_string(j, "program", "?");
	json_string(j, "state", "not answering");
	json_open_array(j, "ranks");
	json_close_array(j);
	json_close_object(j);
}

/* What hale ps is to show. */
struct ps_wish {
	bool json, shadows;
	const char *job; /* NULL: all */
};

/* Returns how many run here. */
static size_t show_jobs(const struct ps_wish *w)
{
	char(*jobs)[JOB_ID_MAX];
	struct json_value **answers;
	hale_status_t *status;
	struct json_out j;
	size_t count;

	bool json = w->json;

	count = control_jobs(&jobs);
	json_out_init(&j);
	json_open_object(&j, NULL);
	json_open_array(&j, "jobs");
	answers = calloc(count + 1, sizeof(struct json_value *));
	status = calloc(count + 1, sizeof(*status));
	if (answers && status)
		control_ask_each(jobs, count, "{\"op\":\"ps\"}", answers, status);
	for (size_t i = 0; answers && status && i < count; i++) {
		/* one that has just ended is none */
		if (w->job && strcmp(w->job, jobs[i]) != 0)
			status[i] = HALE_ERR_STATE;
		else if (status[i] == HALE_ERR_TIMEOUT)
			list_silent(json ? &j : NULL, jobs[i]);
		else if (status[i] == HALE_OK && json)
			copy_job(&j, answers[i]);
		else if (status[i] == HALE_OK && w->shadows)
			jobs_show_shadows(answers[i]);
		else if (status[i] == HALE_OK)
			show_job(answers[i]);
		json_free(answers[i]);
	}
	free(answers);
	free(status);
	json_close_array(&j);
	json_close_object(&j);
	if (json && j.text)
		puts(j.text);
	json_out_fini(&j);
	free(jobs);
	return count;
}

/* Until nobody reads it any more, or a signal. On a terminal each time takes the place of the last.
 */
static int watch_jobs(const struct ps_wish *w, double every)
{
	bool terminal = isatty(STDOUT_FILENO);
	struct timespec pause = {.tv_sec = (time_t)every,
				 .tv_nsec = (long)((every - (double)(time_t)every) * 1e9)};

	for (;;) {
		if (terminal && !w->json)
			fputs("\033[H\033[2J", stdout);
		show_jobs(w);
		if (!terminal && !w->json)
			putchar('\n');
		if (fflush(stdout) != 0)
			return 1;
		nanosleep(&pause, NULL);
	}
}

int cli_ps(int argc, char **argv)
{
	double every = 0;
	struct ps_wish w = {0};

	if (wants_help(argc, argv))
		return cli_help("ps");
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--json") == 0)
			w.json = true;
		else if (strcmp(argv[i], "--shadows") == 0)
			w.shadows = true;
		else if (argv[i][0] != '-' && !w.job)
			w.job = argv[i];
		else if (strcmp(argv[i], "--watch") == 0)
			every = 2;
		else if (strncmp(argv[i], "--watch=", 8) != 0 ||
			 !units_parse_seconds(argv[i] + 8, &every) || every < 0.05 || every > 86400)
			return usage("ps",
				     "hale ps takes a job, --json, --shadows and --watch[=TIME]");
	}
	if (every > 0)
		return watch_jobs(&w, every);
	if (show_jobs(&w) == 0 && !w.json && !w.job)
		log_warn("no job of yours is running here");
	return 0;
}

/* ---- hale ckpt ---- */

int cli_ckpt(int argc, char **argv)
{
	char job[JOB_ID_MAX];
	struct json_value *answer;
	struct error err;
	int status = 0;

	if (wants_help(argc, argv))
		return cli_help("ckpt");
	status = cli_checkpoints(argc, argv);
	if (status >= 0)
		return status;
	status = 0;
	if (argc > 2 || (argc == 2 && argv[1][0] == '-'))
		return usage("ckpt", "hale ckpt takes a job, or list, rm or clean");
	if (control_choose(argc == 2 ? argv[1] : NULL, job, &err) != HALE_OK) {
		log_warn("%s", err.text);
		return EXIT_USAGE;
	}
	if (control_ask(job, "{\"op\":\"ckpt\"}", &answer, &err) == HALE_OK) {
		puts(text_of(answer, "path"));
	} else {
		log_warn("no checkpoint of %s: %s", job, err.text);
		status = 1;
	}
	json_free(answer);
	return status;
}

/* ---- hale inject ---- */

struct injection {
	const char *job, *rank, *slot, *after, *call, *signal; /* kill */
	const char *where, *count, *every, *node;	       /* flip */
};

static bool parse_injection(int argc, char **argv, struct injection *in)
{
	const struct {
		const char *name;
		const char **to;
	} known[] = {{"--rank", &in->rank},    {"--slot", &in->slot},	  {"--after", &in->after},
		     {"--at-call", &in->call}, {"--signal", &in->signal}, {"--where", &in->where},
		     {"--count", &in->count},  {"--every", &in->every},	  {"--node", &in->node}};

	*in = (struct injection){0};
	for (int i = 2; i < argc; i++) {
		size_t k = 0;

		while (k < ARRAY_LEN(known) && strcmp(argv[i], known[k].name) != 0)
			k++;
		if (k < ARRAY_LEN(known) && i + 1 < argc)
			*known[k].to = argv[++i];
		else if (k == ARRAY_LEN(known) && argv[i][0] != '-' && !in->job)
			in->job = argv[i];
		else
			return false;
	}
	return (in->rank || in->node) && !(in->after && in->call);
}

static int ask_for_fault(const char *wanted, const char *fault)
{
	char job[JOB_ID_MAX];
	struct json_value *answer = NULL;
	struct json_out j;
	struct error err;
	int status = 0;

	if (control_choose(wanted, job, &err) != HALE_OK) {
		log_warn("%s", err.text);
		return EXIT_USAGE;
	}
	json_out_init(&j);
	json_open_object(&j, NULL);
	json_string(&j, "op", "inject");
	json_string(&j, "fault", fault);
	json_close_object(&j);
	if (control_ask(job, j.text, &answer, &err) != HALE_OK) {
		log_warn("%s", err.text);
		status = 1;
	}
	json_free(answer);
	json_out_fini(&j);
	return status;
}

/* Memory errors in the tasks of a job that runs: what --inject due: says from its start on. */
static int inject_due(int argc, char **argv)
{
	const char *job = NULL, *prob = NULL, *seed = "1", *at = "end", *times = "1";
	const struct {
		const char *name;
		const char **to;
	} known[] = {{"--task-prob", &prob}, {"--seed", &seed}, {"--at", &at}, {"--times", &times}};
	char fault[MAILBOX_DUE], why[160];
	struct task_due checked;

	for (int i = 2; i < argc; i++) {
		size_t k = 0;

		while (k < ARRAY_LEN(known) && strcmp(argv[i], known[k].name) != 0)
			k++;
		if (k < ARRAY_LEN(known) && i + 1 < argc)
			*known[k].to = argv[++i];
		else if (k == ARRAY_LEN(known) && argv[i][0] != '-' && !job)
			job = argv[i];
		else
			return usage("inject", "an option is not known or has no value");
	}
	if (!prob)
		return usage("inject", "which share of the tasks is to be struck? --task-prob P");
	snprintf(fault, sizeof(fault), "due:prob=%s,seed=%s,at=%s,times=%s", prob, seed, at, times);
	if (!task_due_read(&checked, fault + strlen("due:"), why)) {
		log_warn("--task-prob, --seed, --at and --times are those of %s", why);
		return EXIT_USAGE;
	}
	return ask_for_fault(job, fault);
}

static int ask_checked(const struct injection *in, const char *fault)
{
	struct fault checked;
	struct error err;

	if (options_parse_fault(fault, &checked, &err) == HALE_OK)
		return ask_for_fault(in->job, fault);
	log_warn("%s", err.text);
	return EXIT_USAGE;
}

static int inject_flip(int argc, char **argv)
{
	struct injection in;
	char fault[256];

	if (!parse_injection(argc, argv, &in) || in.call || in.signal)
		return usage("inject", in.rank || in.node ? "an option is not known or has no value"
							  : "whose bits are to flip? --rank R");
	snprintf(fault, sizeof(fault), "flip:%s%s%s%s,slot=%s,where=%s,after=%s,count=%s,every=%s",
		 in.rank ? "rank=" : "", in.rank ? in.rank : "",
		 in.node ? in.rank ? ",node=" : "node=" : "", in.node ? in.node : "",
		 in.slot ? in.slot : "0", in.where ? in.where : "memory",
		 in.after ? in.after : "0s", in.count ? in.count : "1", in.every ? in.every : "1");
	return ask_checked(&in, fault);
}

int cli_inject(int argc, char **argv)
{
	struct injection in;
	char fault[256];

	if (wants_help(argc, argv))
		return cli_help("inject");
	if (argc > 1 && strcmp(argv[1], "ecc") == 0)
		return cli_opencl_inject(argc, argv);
	if (argc > 1 && strcmp(argv[1], "due") == 0)
		return inject_due(argc, argv);
	if (argc > 1 && strcmp(argv[1], "flip") == 0)
		return inject_flip(argc, argv);
	if (argc < 2 || strcmp(argv[1], "kill") != 0)
		return usage("inject", "the faults are kill, flip, due and ecc");
	if (!parse_injection(argc, argv, &in) || in.where || in.count || in.every || in.node)
		return usage("inject", in.rank
					   ? "an option is not known, has no value, or goes with "
					     "another one (--after, --at-call) not at all"
					   : "which rank is to die? --rank R, or --rank any");
	snprintf(fault, sizeof(fault), "kill:rank=%s,slot=%s,%s=%s%s%s", in.rank,
		 in.slot ? in.slot : "0", in.call ? "at-call" : "after",
		 in.call    ? in.call
		 : in.after ? in.after
			    : "0s",
		 in.signal ? ",signal=" : "", in.signal ? in.signal : "");
	return ask_checked(&in, fault);
}
