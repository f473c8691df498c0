/* SPDX-License-Identifier: BSD-3-Clause */
/* hale advise: which protection costs this program least on this machine. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "base/json.h"
#include "cli/advise_silent.h"
#include "cli/cli.h"
#include "control/control.h"
#include "node/job.h"
#include "launch/options.h"
#include "model/advise.h"
#include "model/quantity.h"
#include "model/unified.h"

enum { FILE_MAX = 64 << 20 };

struct advise_request {
	const char *job, *file;
	struct advise_machine machine;
	double ckpt_cost_s, restart_s; /* NAN: as measured */
	double runs;		       /* to simulate each choice with; 0: none */
	bool by_energy, json;
	bool given_mttf, given_hours, given_power; /* others are assumed */
};

/* ---- the command line ---- */

static bool take_number(const char *name, const char *text, enum model_kind kind, double *to)
{
	struct error err;

	if (model_quantity_parse(text, kind, to, &err) == HALE_OK)
		return true;
	log_warn("%s: %s", name, err.text);
	return false;
}

static bool take_mttf(const char *text, struct model_law *law)
{
	struct error err;

	if (model_law_parse(text, law, &err) == HALE_OK)
		return true;
	log_warn("--mttf: %s", err.text);
	return false;
}

static bool take_hours(const char *text, double *work_s)
{
	double hours;
	char *end;

	errno = 0;
	hours = strtod(text, &end);
	if (end != text && *end == '\0' && hours > 0 && isfinite(hours)) {
		*work_s = hours * 3600;
		return true;
	}
	return take_number("--hours", text, MODEL_TIME_S, work_s);
}

static bool take_by(const char *text, bool *by_energy)
{
	*by_energy = strcmp(text, "energy") == 0;
	if (*by_energy || strcmp(text, "time") == 0)
		return true;
	log_warn("--by takes time or energy, not '%s'", text);
	return false;
}

static bool take_value(struct advise_request *q, const char *name, const char *value)
{
	struct advise_machine *m = &q->machine;
	const struct {
		const char *name;
		enum model_kind kind;
		double *to;
	} numbers[] = {
	    {"--nodes", MODEL_COUNT, &m->nodes},
	    {"--node-power", MODEL_POWER_W, &m->node_w},
	    {"--idle-power", MODEL_FRACTION, &m->static_part},
	    {"--power-limit", MODEL_POWER_W, &m->power_limit_w},
	    {"--ckpt-cost", MODEL_TIME_S, &q->ckpt_cost_s},
	    {"--restart-cost", MODEL_TIME_S, &q->restart_s},
	    {"--coverage", MODEL_FRACTION, &m->coverage},
	    {"--task-waste", MODEL_FRACTION, &m->task_waste},
	    {"--simulate", MODEL_COUNT, &q->runs},
	};

	q->given_mttf = q->given_mttf || strcmp(name, "--mttf") == 0;
	q->given_hours = q->given_hours || strcmp(name, "--hours") == 0;
	q->given_power = q->given_power || strcmp(name, "--node-power") == 0;
	if (strcmp(name, "--mttf") == 0)
		return take_mttf(value, &m->fails);
	if (strcmp(name, "--hours") == 0)
		return take_hours(value, &m->work_s);
	if (strcmp(name, "--by") == 0)
		return take_by(value, &q->by_energy);
	if (strcmp(name, "--profile") == 0 || strcmp(name, "--report") == 0) {
		q->file = value;
		return true;
	}
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
		if (strcmp(name, numbers[i].name) == 0)
			return take_number(name, value, numbers[i].kind, numbers[i].to);
	log_warn("unknown option '%s';%s `hale help advise` lists them", name,
		 cli_meant("advise", name));
	return false;
}

static bool parse(struct advise_request *q, int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--json") == 0) {
			q->json = true;
		} else if (argv[i][0] != '-' && !q->job) {
			q->job = argv[i];
		} else if (argv[i][0] != '-') {
			log_warn("'%s': hale advise takes one job", argv[i]);
			return false;
		} else if (i + 1 == argc) {
			log_warn("%s needs a value, or is no option; `hale help advise` lists "
				 "them",
				 argv[i]);
			return false;
		} else {
			if (!take_value(q, argv[i], argv[i + 1]))
				return false;
			i++;
		}
	}
	if (q->job && q->file) {
		log_warn("a job and a file: hale advise takes one of them");
		return false;
	}
	return true;
}

/* ---- where the numbers come from ---- */

static char *read_file(const char *path, size_t *len, struct error *err)
{
	FILE *f = fopen(path, "re");
	char *text = f ? malloc(FILE_MAX + 1) : NULL;

	if (!f || !text) {
		error_sys(err, HALE_ERR_SYSTEM, "cannot read '%s'", path);
	} else {
		*len = fread(text, 1, FILE_MAX + 1, f);
		if (ferror(f) || *len > FILE_MAX) {
			error_set(err, HALE_ERR_ARGUMENT, "'%s' is no profile of hale's", path);
			free(text);
			text = NULL;
		}
	}
	if (f)
		fclose(f);
	return text;
}

static hale_status_t measure_from_file(const char *path, struct advise_measure *m,
				       struct error *err)
{
	struct error why;
	size_t len = 0;
	char *text = read_file(path, &len, err);
	struct json_value *v = text ? json_parse(text, len) : NULL;
	hale_status_t status = HALE_ERR_ARGUMENT;

	if (text && !v)
		error_set(err, HALE_ERR_ARGUMENT, "'%s' is not JSON, so it is no profile of hale's",
			  path);
	else if (v && (status = advise_measure_read(v, m, &why)) != HALE_OK)
		error_set(err, status, "%s: %s", path, why.text);
	json_free(v);
	free(text);
	return status;
}

static hale_status_t measure_from_job(const char *job, struct advise_measure *m, struct error *err)
{
	struct json_value *v = NULL;
	char name[JOB_ID_MAX];
	hale_status_t status = control_choose(job, name, err);

	if (status != HALE_OK)
		return status;
	status = control_ask(name, "{\"op\":\"profile\"}", &v, err);
	if (status == HALE_OK)
		status = advise_measure_read(v, m, err);
	json_free(v);
	return status;
}

/* ---- what hale itself can do ---- */

/* The first thing that this hale lacks for a choice, as the end of a sentence; NULL: nothing. */
static const char *lacking(const struct advise_request *q, const struct advise_choice *c)
{
	if (q->machine.nodes < 2 && strstr(c->flags, "--replicas"))
		return "a second node, and with one both replicas would be lost (--nodes)";
	for (size_t i = 0; c->needs[i]; i++)
		if (!options_offers(c->needs[i]))
			return c->needs[i];
	if (q->machine.nodes > 1 && !options_offers("--hosts"))
		return "jobs on several machines";
	return NULL;
}

static bool possible(const struct advise_request *q, const struct advise_choice *c)
{
	return !c->why[0] && !lacking(q, c);
}

/* What can be had comes first, each part in its order. */
static void possible_first(const struct advise_request *q, struct advise_choice *choices,
			   size_t count)
{
	struct advise_choice sorted[ADVISE_CHOICES_MAX];
	size_t n = 0;

	for (int wanted = 1; wanted >= 0; wanted--)
		for (size_t i = 0; i < count; i++)
			if (possible(q, &choices[i]) == wanted)
				sorted[n++] = choices[i];
	memcpy(choices, sorted, n * sizeof(*choices));
}

/* ---- for people ---- */

static const char *percent(double x, char text[16])
{
	double p = 100 * x;

	if (!isfinite(p))
		snprintf(text, 16, "no end");
	else
		snprintf(text, 16, "%.*f", p < 0.0995 ? 4 : p < 0.995 ? 2 : p < 99.5 ? 1 : 0, p);
	return text;
}

static const char *loss_text(const struct advise_choice *c, char text[96])
{
	char loss[16], low[16], high[16];

	snprintf(text, 96, "%s %% expected loss, 95 %% interval %s-%s",
		 percent(c->loss.value, loss), percent(c->loss.low, low),
		 percent(c->loss.high, high));
	return text;
}

static const char *known_text(const struct advise_known *k, char text[80])
{
	static const char *const how[] = {[ADVISE_UNKNOWN] = "unknown",
					  [ADVISE_MEASURED] = "measured",
					  [ADVISE_ONCE] = "measured once",
					  [ADVISE_ASSUMED] = "assumed",
					  [ADVISE_GIVEN] = "given"};
	char value[16], low[16], high[16];

	if (k->source == ADVISE_GIVEN)
		snprintf(text, 80, "%s (given)", units_show_seconds(k->value, value));
	else
		snprintf(text, 80, "%s (%s to %s, %s)", units_show_seconds(k->value, value),
			 units_show_seconds(k->low, low), units_show_seconds(k->high, high),
			 how[k->source]);
	return text;
}

static void show_checkpoint(const char *label, const struct advise_checkpoint *c)
{
	char cost[80], write[80], bytes[16] = "?", pause[16];

	if (c->count == 0)
		return;
	if (c->bytes >= 0)
		units_show_bytes((uint64_t)c->bytes, bytes);
	printf("%-11s %s, %" PRIu64 " taken, pause %s\n", label, bytes, c->count,
	       units_show_seconds(c->pause_s, pause));
	printf("%-11s costs the program %s\n", "", known_text(&c->cost_s, cost));
	printf("%-11s is whole after %s\n", "", known_text(&c->write_s, write));
}

static void show_measure(const struct advise_measure *m)
{
	char app[16], restart[80], least[16], most[16], share[16], beta[16];

	printf("%-11s %u rank%s for %s; %s %% of it in MPI (%s to %s by rank), F_send %.2f, "
	       "F_recv %.2f, beta %s %%\n",
	       "program", m->ranks, m->ranks == 1 ? "" : "s", units_show_seconds(m->app_s, app),
	       percent(m->alpha, share), percent(m->alpha_least, least),
	       percent(m->alpha_most, most), m->f_send, m->f_recv, percent(m->beta.value, beta));
	show_checkpoint("checkpoint", &m->full);
	show_checkpoint("difference", &m->incremental);
	if (m->restart_s.source != ADVISE_UNKNOWN)
		printf("%-11s takes %s\n", "restart", known_text(&m->restart_s, restart));
}

/* Seed 002's score S: what checkpoints alone lose, less what they and the tasks lose together.
 * False: there are no tasks, or the formulas don't hold. */
static bool score_of(const struct advise_machine *k, const struct advise_measure *m, double *score)
{
	const struct model_unified in = {.ckpt_s = m->full.cost_s.value,
					 .restart_s = m->restart_s.value,
					 .due_rate_hz = k->nodes / k->fails.mean_s,
					 .coverage = k->coverage,
					 .task_waste = k->task_waste,
					 .work_s = k->work_s};
	struct model_unified_result r;
	struct error err;

	if (!(k->coverage > 0) || !m->full.count || model_unified(&in, &r, &err) != HALE_OK)
		return false;
	*score = r.score;
	return true;
}

static void show_tasks(const struct advise_machine *k, const struct advise_measure *m)
{
	char share[16], waste[16], gain[16];
	double score;

	if (!(k->coverage > 0))
		return;
	printf("%-11s mend %s %% of the errors%s and cost %s %% of the time", "tasks",
	       percent(k->coverage, share), m->coverage > 0 ? " (as measured)" : "",
	       percent(k->task_waste, waste));
	if (score_of(k, m, &score))
		printf("; score S %s%s %%", score < 0 ? "-" : "", percent(fabs(score), gain));
	printf("\n");
}

static const char *unless(bool given)
{
	return given ? "" : " (assumed)";
}

static void show_machine(const struct advise_request *q)
{
	const struct advise_machine *k = &q->machine;
	char mttf[MODEL_QUANTITY_TEXT], every[MODEL_QUANTITY_TEXT], work[MODEL_QUANTITY_TEXT];
	char power[MODEL_QUANTITY_TEXT];

	printf("%-11s %.0f node%s with an MTTF of %s%s, so one fails every %s; %s of work%s, %s a "
	       "node%s\n\n",
	       "machine", k->nodes, k->nodes == 1 ? "" : "s",
	       model_quantity_show(k->fails.mean_s, MODEL_TIME_S, mttf), unless(q->given_mttf),
	       model_quantity_show(k->fails.mean_s / k->nodes, MODEL_TIME_S, every),
	       model_quantity_show(k->work_s, MODEL_TIME_S, work), unless(q->given_hours),
	       model_quantity_show(k->node_w, MODEL_POWER_W, power), unless(q->given_power));
}

static const char *settings(const struct advise_choice *c)
{
	return c->flags[0] ? c->flags : "no protection";
}

/* "with this program on this machine: …": the best that this hale can run. */
static void show_headline(const struct advise_request *q, const struct advise_choice *choices,
			  size_t count)
{
	size_t best = 0, next;
	char loss[96];

	while (best < count && !possible(q, &choices[best]))
		best++;
	if (best == count) {
		printf("with this program on this machine: nothing that hale can run yet suits\n");
		return;
	}
	printf("with this program on this machine: %s: %s", settings(&choices[best]),
	       loss_text(&choices[best], loss));
	for (next = best + 1; next < count && !possible(q, &choices[next]); next++)
		;
	if (next < count)
		printf("; next best %s: %s", settings(&choices[next]),
		       loss_text(&choices[next], loss));
	printf("\n");
}

/* What the closed formulas don't say: how runs vary. */
static void simulate(const struct advise_request *q, const struct advise_measure *m,
		     const struct advise_choice *c, struct advise_simulated *s)
{
	struct error err;

	*s = (struct advise_simulated){0};
	if (q->runs >= 2 &&
	    advise_simulate(m, &q->machine, c, (uint32_t)fmin(q->runs, 1e6), s, &err) != HALE_OK)
		log_info("%s can't be simulated: %s", c->name, err.text);
}

static void show_simulated(const struct advise_simulated *s)
{
	char mean[MODEL_QUANTITY_TEXT], low[MODEL_QUANTITY_TEXT], high[MODEL_QUANTITY_TEXT];
	char p95[MODEL_QUANTITY_TEXT];

	if (s->runs == 0)
		return;
	printf(
	    "    simulated %u times: %s in the mean (95 %% interval %s to %s), one run in twenty "
	    "takes more than %s\n",
	    s->runs, model_quantity_show(s->time_s.value, MODEL_TIME_S, mean),
	    model_quantity_show(s->time_s.low, MODEL_TIME_S, low),
	    model_quantity_show(s->time_s.high, MODEL_TIME_S, high),
	    model_quantity_show(s->p95_s, MODEL_TIME_S, p95));
}

static void show_choice(const struct advise_request *q, const struct advise_measure *m,
			size_t number, const struct advise_choice *c)
{
	char loss[96], time[MODEL_QUANTITY_TEXT], energy[MODEL_QUANTITY_TEXT];
	const char *lacks = lacking(q, c);
	struct advise_simulated s;

	if (c->why[0] && !c->over_power) {
		printf("%2zu. %-23s %s\n", number, c->name, c->why);
		return;
	}
	printf("%2zu. %-23s %s; %s, %s%s\n", number, c->name, loss_text(c, loss),
	       model_quantity_show(c->time_s.value, MODEL_TIME_S, time),
	       model_quantity_show(c->energy_j.value, MODEL_ENERGY_J, energy),
	       c->unsure ? "; not sure" : "");
	simulate(q, m, c, &s);
	show_simulated(&s);
	if (c->over_power)
		printf("    %s\n", c->why);
	if (lacks)
		printf("    hale can't run this yet: it lacks %s%s%s\n", lacks,
		       lacks[0] == '-' ? "; it would be " : "", lacks[0] == '-' ? c->flags : "");
	else
		printf("    hale run -n %u%s%s -- PROGRAM\n", m->ranks, c->flags[0] ? " " : "",
		       c->flags);
}

static void show(const struct advise_request *q, const struct advise_measure *m,
		 const struct advise_choice *choices, size_t count)
{
	show_measure(m);
	show_tasks(&q->machine, m);
	show_machine(q);
	show_headline(q, choices, count);
	printf("\n");
	for (size_t i = 0; i < count; i++)
		show_choice(q, m, i + 1, &choices[i]);
	advise_silent_show(m);
}

/* ---- for programs ---- */

static void print_range(struct json_out *j, const char *key, const struct advise_range *r)
{
	json_open_object(j, key);
	json_double(j, "value", r->value);
	json_double(j, "low", r->low);
	json_double(j, "high", r->high);
	json_close_object(j);
}

static void print_simulated(struct json_out *j, const struct advise_simulated *s)
{
	if (s->runs == 0)
		return;
	json_open_object(j, "simulated");
	json_uint(j, "runs", s->runs);
	print_range(j, "time_s", &s->time_s);
	json_double(j, "p95_s", s->p95_s);
	json_close_object(j);
}

static void print_choice(const struct advise_request *q, const struct advise_measure *m,
			 const struct advise_choice *c, struct json_out *j)
{
	const char *lacks = lacking(q, c);
	struct advise_simulated s;

	simulate(q, m, c, &s);

	json_open_object(j, NULL);
	json_string(j, "name", c->name);
	json_string(j, "flags", c->flags);
	json_bool(j, "possible", possible(q, c));
	if (lacks)
		json_string(j, "lacks", lacks);
	if (c->why[0])
		json_string(j, "why", c->why);
	json_double(j, "interval_s", c->interval_s);
	json_double(j, "young_s", c->young_s);
	json_double(j, "daly_s", c->daly_s);
	json_double(j, "shadow_speed", c->shadow_speed);
	json_double(j, "nodes", c->nodes);
	json_double(j, "failures", c->failures);
	print_range(j, "loss", &c->loss);
	print_range(j, "time_s", &c->time_s);
	print_range(j, "energy_j", &c->energy_j);
	print_simulated(j, &s);
	json_close_object(j);
}

static void print_known(struct json_out *j, const char *key, const struct advise_known *k)
{
	static const char *const how[] = {[ADVISE_UNKNOWN] = "unknown",
					  [ADVISE_MEASURED] = "measured",
					  [ADVISE_ONCE] = "once",
					  [ADVISE_ASSUMED] = "assumed",
					  [ADVISE_GIVEN] = "given"};

	json_open_object(j, key);
	json_double(j, "value", k->value);
	json_double(j, "low", k->low);
	json_double(j, "high", k->high);
	json_string(j, "source", how[k->source]);
	json_close_object(j);
}

static void print_tasks(const struct advise_machine *k, const struct advise_measure *m,
			struct json_out *j)
{
	double score;

	if (!(k->coverage > 0))
		return;
	json_open_object(j, "tasks");
	json_double(j, "coverage", k->coverage);
	json_double(j, "waste", k->task_waste);
	json_bool(j, "measured", m->coverage > 0);
	if (score_of(k, m, &score))
		json_double(j, "score", score);
	json_close_object(j);
}

static void print_all(const struct advise_request *q, const struct advise_measure *m,
		      const struct advise_choice *choices, size_t count)
{
	struct json_out j;

	json_out_init(&j);
	json_open_object(&j, NULL);
	json_open_object(&j, "program");
	json_uint(&j, "ranks", m->ranks);
	json_double(&j, "app_s", m->app_s);
	json_double(&j, "alpha", m->alpha);
	json_double(&j, "f_send", m->f_send);
	json_double(&j, "f_recv", m->f_recv);
	print_known(&j, "beta", &m->beta);
	print_known(&j, "ckpt_cost_s", &m->full.cost_s);
	print_known(&j, "ckpt_write_s", &m->full.write_s);
	print_known(&j, "restart_s", &m->restart_s);
	json_close_object(&j);
	print_tasks(&q->machine, m, &j);
	json_open_array(&j, "choices");
	for (size_t i = 0; i < count; i++)
		print_choice(q, m, &choices[i], &j);
	json_close_array(&j);
	advise_silent_print(m, &j);
	json_close_object(&j);
	if (j.text)
		puts(j.text);
	json_out_fini(&j);
}

#define TASK_WASTE 0.01 /* where nobody knows: seed 002's programs lost 0.3 to 4.5 % */

/* What the user says takes the place of what was measured. */
static void take_tasks(struct advise_request *q, struct advise_measure *m)
{
	advise_measure_override(m, q->ckpt_cost_s, q->restart_s);
	if (q->machine.coverage > 0) {
		m->coverage = 0;
	} else {
		q->machine.coverage = m->coverage;
		if (m->coverage > 0 && isnan(q->machine.task_waste))
			q->machine.task_waste = m->task_waste;
	}
	if (isnan(q->machine.task_waste))
		q->machine.task_waste = TASK_WASTE;
}

int cli_advise(int argc, char **argv)
{
	struct advise_request q = {.machine = {.nodes = 1,
					       .work_s = 256 * 3600.0,
					       .node_w = 200,
					       .static_part = 0.5,
					       .power_limit_w = INFINITY,
					       .task_waste = NAN},
				   .ckpt_cost_s = NAN,
				   .restart_s = NAN};
	struct advise_choice choices[ADVISE_CHOICES_MAX];
	struct advise_measure m;
	struct error err;
	hale_status_t status;
	size_t count;

	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
			return cli_help("advise");
	if (!take_mttf("50y", &q.machine.fails) || !parse(&q, argc, argv))
		return EXIT_USAGE;
	status = q.file ? measure_from_file(q.file, &m, &err) : measure_from_job(q.job, &m, &err);
	if (status == HALE_OK) {
		take_tasks(&q, &m);
		status = advise_choose(&m, &q.machine, q.by_energy, choices, &count, &err);
	}
	if (status == HALE_OK)
		possible_first(&q, choices, count);
	if (status != HALE_OK) {
		log_warn("%s", err.text);
		return status == HALE_ERR_ARGUMENT ? EXIT_USAGE : 1;
	}
	if (q.json)
		print_all(&q, &m, choices, count);
	else
		show(&q, &m, choices, count);
	return 0;
}
