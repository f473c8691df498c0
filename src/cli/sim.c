/* SPDX-License-Identifier: BSD-3-Clause */
/* hale sim: plays a job under failures, many times. */
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/base.h"
#include "base/cpus.h"
#include "cli/cli.h"
#include "cli/sim.h"
#include "node/job.h"
#include "model/quantity.h"
#include "model/redundancy.h"

enum { SCHEMES_MAX = 16 };

struct sim_order {
	struct sim_plan plan;
	const char *failures, *schemes[SCHEMES_MAX], *trace_out;
	size_t scheme_count;
	double alpha, f_send, f_recv; /* -1: not said */
	double runs, seed, threads;
	bool json, quiet;
};

/* ---- options ---- */

struct number {
	const char *name;
	size_t at;
	enum model_kind kind;
	double factor;
};

#define PLAN(member)  offsetof(struct sim_order, plan.member)
#define ORDER(member) offsetof(struct sim_order, member)

static const struct number numbers[] = {
    {"--nodes", PLAN(job.nodes), MODEL_COUNT, 1},
    {"--days", PLAN(job.work_s), MODEL_NUMBER, 86400},
    {"--hours", PLAN(job.work_s), MODEL_NUMBER, 3600},
    {"--work", PLAN(job.work_s), MODEL_TIME_S, 1},
    {"--beta", PLAN(job.beta), MODEL_FRACTION, 1},
    {"--alpha", ORDER(alpha), MODEL_FRACTION, 1},
    {"--f-send", ORDER(f_send), MODEL_FRACTION, 1},
    {"--f-recv", ORDER(f_recv), MODEL_FRACTION, 1},
    {"--launch", PLAN(job.launch_s), MODEL_TIME_S, 1},
    {"--power", PLAN(job.socket_w), MODEL_POWER_W, 1},
    {"--static", PLAN(job.static_part), MODEL_FRACTION, 1},
    {"--io-power", PLAN(job.io_part), MODEL_FRACTION, 1},
    {"--limit", PLAN(limit), MODEL_NUMBER, 1},
    {"--runs", ORDER(runs), MODEL_COUNT, 1},
    {"--threads", ORDER(threads), MODEL_COUNT, 1},
};

static bool take_number(struct sim_order *o, const char *name, const char *value)
{
	struct error err;

	for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
		const struct number *n = &numbers[i];
		double *to = (void *)((char *)o + n->at);
		if (strcmp(n->name, name) != 0)
			continue;
		if (model_quantity_parse(value, n->kind, to, &err) == HALE_OK) {
			*to *= n->factor;
			return true;
		}
		log_warn("%s: %s", name, err.text);
		return false;
	}
	log_warn("'%s' is no option of hale sim;%s `hale help sim` lists them", name,
		 cli_meant("sim", name));
	return false;
}

static bool take_seed(struct sim_order *o, const char *value)
{
	char *end;

	errno = 0;
	o->plan.seed = strtoull(value, &end, 0);
	if (*value >= '0' && *value <= '9' && !*end && errno == 0)
		return true;
	log_warn("--seed is a whole number from 0 to 2^64 - 1, not '%s'", value);
	return false;
}

static bool take_option(struct sim_order *o, const char *name, const char *value)
{
	if (!value) {
		log_warn("%s lacks its value; `hale help sim` explains it", name);
		return false;
	}
	if (!strcmp(name, "--seed"))
		return take_seed(o, value);
	if (!strcmp(name, "--failures"))
		o->failures = value;
	else if (!strcmp(name, "--trace-out"))
		o->trace_out = value;
	else if (strcmp(name, "--scheme") != 0)
		return take_number(o, name, value);
	else if (o->scheme_count < SCHEMES_MAX)
		o->schemes[o->scheme_count++] = value;
	else {
		log_warn("at most %d schemes at a time", SCHEMES_MAX);
		return false;
	}
	return true;
}

static bool take_options(struct sim_order *o, int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		char name[32];
		const char *equals = strchr(argv[i], '=');
		size_t length = equals ? (size_t)(equals - argv[i]) : strlen(argv[i]);

		if (!strcmp(argv[i], "--json")) {
			o->json = true;
			continue;
		}
		if (!strcmp(argv[i], "--quiet")) {
			o->quiet = true;
			continue;
		}
		if (strncmp(argv[i], "--", 2) != 0 || length >= sizeof(name)) {
			log_warn("'%s' is not understood; hale sim takes options only, as in "
				 "hale sim --nodes 1000 --days 30 --scheme 2x+clone",
				 argv[i]);
			return false;
		}
		memcpy(name, argv[i], length);
		name[length] = '\0';
		const char *value = equals ? equals + 1 : i + 1 < argc ? argv[i + 1] : NULL;
		if (!take_option(o, name, value))
			return false;
		i += !equals;
	}
	return true;
}

static bool settle(struct sim_order *o)
{
	struct sim_plan *p = &o->plan;
	struct error err;

	if (o->alpha >= 0 || o->f_send >= 0 || o->f_recv >= 0) {
		if (o->alpha < 0 || o->f_send < 0 || o->f_recv < 0) {
			log_warn("--alpha, --f-send and --f-recv belong together; or say --beta");
			return false;
		}
		if (model_beta(o->alpha, o->f_send, o->f_recv, &p->job.beta, &err) != HALE_OK) {
			log_warn("%s", err.text);
			return false;
		}
	}
	if (o->runs < 1 || o->runs > 1e9) {
		log_warn("--runs is between 1 and 1,000,000,000");
		return false;
	}
	if (o->threads < 1 || o->threads > 256) {
		log_warn("--threads is between 1 and 256");
		return false;
	}
	p->runs = (uint32_t)o->runs;
	p->threads = (uint32_t)o->threads;
	return true;
}

/* ---- traces ---- */

static bool read_trace(const char *path, struct sim_trace *trace)
{
	FILE *f = fopen(path, "re");
	char *text = NULL;
	size_t len = 0;
	struct error err;

	if (!f) {
		log_warn("can't read the trace %s: %s", path, strerror(errno));
		return false;
	}
	ssize_t got = getdelim(&text, &len, EOF, f);
	bool good = got >= 0 || feof(f);
	fclose(f);
	if (!good)
		log_warn("can't read the trace %s: %s", path, strerror(errno));
	else if (sim_trace_parse(got > 0 ? text : "", got > 0 ? (size_t)got : 0, trace, &err) !=
		 HALE_OK) {
		log_warn("%s: %s", path, err.text);
		good = false;
	}
	free(text);
	return good;
}

static bool write_trace(const char *path, const struct sim_record *r, const struct sim_order *o)
{
	FILE *f = fopen(path, "we");

	if (!f) {
		log_warn("can't write the trace %s: %s", path, strerror(errno));
		return false;
	}
	fprintf(f,
		"# failures of the first run of hale sim: seconds, node, hard (the node is lost) "
		"or soft\n# scheme %s, failures %s, seed %llu\n",
		o->schemes[0], o->failures, (unsigned long long)o->plan.seed);
	for (size_t i = 0; i < r->count; i++)
		fprintf(f, "%.17g %u %s\n", r->events[i].time_s, r->events[i].node,
			r->events[i].soft ? "soft" : "hard");
	bool good = !ferror(f);
	if (fclose(f) != 0 || !good) {
		log_warn("can't write the trace %s: %s", path, strerror(errno));
		return false;
	}
	return true;
}

/* ---- progress ---- */

struct progress {
	atomic_uint done;
	atomic_bool stop;
	uint32_t runs;
	const char *what;
	pthread_t thread;
	bool shown;
};

static void *progress_show(void *arg)
{
	struct progress *p = arg;
	struct timespec tick = {0, 100000000};

	while (nanosleep(&tick, NULL) == 0 && !atomic_load(&p->stop)) {
		unsigned done = atomic_load(&p->done), filled = (unsigned)(30.0 * done / p->runs);
		char bar[31];
		memset(bar, ' ', sizeof(bar) - 1);
		memset(bar, '#', filled);
		bar[30] = '\0';
		fprintf(stderr, "\r%.40s [%s] %u of %u runs\033[K", p->what, bar, done, p->runs);
		p->shown = true;
	}
	return NULL;
}

static bool progress_begin(struct progress *p, const struct sim_order *o, const char *what)
{
	*p = (struct progress){.runs = o->plan.runs, .what = what};
	return !o->quiet && isatty(STDERR_FILENO) &&
	       pthread_create(&p->thread, NULL, progress_show, p) == 0;
}

static void progress_end(struct progress *p)
{
	atomic_store(&p->stop, true);
	pthread_join(p->thread, NULL);
	if (p->shown)
		fputs("\r\033[K", stderr);
}

/* ---- the command ---- */

static int play_one(struct sim_order *o, size_t i, struct sim_summary *s)
{
	struct sim_record record = {0};
	struct progress progress;
	struct error err;
	int status = 0;

	if (sim_scheme_parse(o->schemes[i], &o->plan.scheme, &err) != HALE_OK ||
	    sim_plan_check(&o->plan, &err) != HALE_OK) {
		log_warn("%s", err.text);
		return EXIT_USAGE;
	}
	bool showing = progress_begin(&progress, o, o->schemes[i]);
	hale_status_t played =
	    sim_run(&o->plan, s, &progress.done, o->trace_out ? &record : NULL, &err);
	if (showing)
		progress_end(&progress);
	if (played != HALE_OK) {
		log_warn("%s", err.text);
		status = 1;
	} else if (record.failed) {
		log_warn("no memory for the trace of the first run");
		status = 1;
	} else if (o->trace_out && !write_trace(o->trace_out, &record, o)) {
		status = 1;
	}
	free(record.events);
	return status;
}

static int play_all(struct sim_order *o)
{
	struct sim_summary summaries[SCHEMES_MAX];
	struct sim_scheme schemes[SCHEMES_MAX];

	if (o->trace_out && o->scheme_count > 1) {
		log_warn("--trace-out writes the failures of one run: name one scheme only");
		return EXIT_USAGE;
	}
	for (size_t i = 0; i < o->scheme_count; i++) {
		int status = play_one(o, i, &summaries[i]);
		if (status != 0)
			return status;
		schemes[i] = o->plan.scheme;
	}
	if (o->json)
		sim_show_json(&o->plan, o->failures, schemes, summaries, o->scheme_count);
	else if (o->scheme_count == 1)
		sim_show_one(&o->plan, o->failures, &schemes[0], &summaries[0]);
	else
		sim_show_table(&o->plan, o->failures, schemes, summaries, o->scheme_count);
	if (fflush(stdout) != 0 || ferror(stdout)) {
		log_warn("can't write the result: %s", strerror(errno));
		return 1;
	}
	return 0;
}

int cli_sim(int argc, char **argv)
{
	struct sim_order o = {.failures = "exp:mttf=50y",
			      .alpha = -1,
			      .f_send = -1,
			      .f_recv = -1,
			      .runs = 1000,
			      .threads = (double)cpus_allowed()};
	struct error err;
	char *file = NULL;
	int status = EXIT_USAGE;

	if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0))
		return cli_help("sim");
	sim_plan_init(&o.plan);
	if (!take_options(&o, argc, argv) || !settle(&o))
		goto out;
	if (o.scheme_count == 0)
		o.schemes[o.scheme_count++] = "none";
	if (sim_failures_parse(o.failures, &o.plan.failures, &file, &err) != HALE_OK) {
		log_warn("%s", err.text);
		goto out;
	}
	if (file && !read_trace(file, &o.plan.failures.trace))
		goto out;
	status = play_all(&o);
out:
	free(file);
	sim_plan_fini(&o.plan);
	return status;
}
