/* SPDX-License-Identifier: BSD-3-Clause */
/* hale model: formulas by name, with units. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "base/json.h"
#include "cli/cli.h"
#include "cli/model.h"
#include "node/job.h"

const char cli_model_help[] =
    "hale model NAME key=value … [options]\n"
    "\n"
    "Computes what resilience costs. Values have units: 50y 2min 20MW 4GiB 86%.\n"
    "\n"
    "  --list                 the models\n"
    "  NAME --help            its keys, with units and defaults, and what it gives\n"
    "  --compare A,B,…        schemes side by side: 2x,2xD,3x or checkpointing,shadowing\n"
    "  --sweep KEY=A..B[/N[/log]]\n"
    "                         N values (60) of a key from A to B: a table to go on with\n"
    "  --plot FILE.svg|png    the same as a picture, by gnuplot\n"
    "  --y NAME               which result the table or picture shows\n"
    "  --json                 for programs: names carry the unit, never is null\n"
    "\n"
    "  hale model interval ckpt=40s mtbf=6h restart=60s\n"
    "  hale model redundancy nodes=200000 mttf=50y t=256h beta=0.2 --compare 2x,2xD,3x\n"
    "  hale model shadow power=20MW mtbf=25y --plot shadow.svg\n";

static int refuse(const struct error *err)
{
	log_warn("%s", err->text);
	return EXIT_USAGE;
}

static int list(bool json)
{
	struct json_out j;

	if (!json) {
		for (const struct model_entry *e = model_entries; e->name; e++)
			printf("%-14s %s (%s)\n", e->name, e->summary, e->source);
		return 0;
	}
	json_out_init(&j);
	json_open_array(&j, NULL);
	for (const struct model_entry *e = model_entries; e->name; e++) {
		json_open_object(&j, NULL);
		json_string(&j, "name", e->name);
		json_string(&j, "summary", e->summary);
		json_string(&j, "source", e->source);
		json_close_object(&j);
	}
	json_close_array(&j);
	puts(j.text);
	json_out_fini(&j);
	return 0;
}

static void explain_key(const struct model_key *k)
{
	const char *takes = k->choices ? k->choices : model_kind_units(k->kind);

	printf("  %-10s %s\n%13s%s; ", k->name, k->meaning, "", takes);
	if (!k->fallback)
		printf("must be given\n");
	else if (*k->fallback)
		printf("default %s\n", k->fallback);
	else
		printf("may be left out\n");
}

static int explain(const struct model_entry *e)
{
	printf("hale model %s key=value … - %s\n%s\n\n", e->name, e->summary, e->source);
	for (const struct model_key *k = e->keys; k->name; k++)
		explain_key(k);
	if (e->schemes)
		printf("\nschemes, for --compare: %s\n", e->schemes);
	printf("\nexample: hale model %s %s\n", e->name, e->example);
	return 0;
}

/* For people: in its kind's units; a fraction's small values in per cent. */
static const char *show(const struct model_answer *a, char buf[MODEL_QUANTITY_TEXT])
{
	return model_quantity_show(a->value * a->scale, a->kind, buf);
}

static void json_inputs(struct json_out *j, const struct model_request *q)
{
	json_open_object(j, "inputs");
	for (int i = 0; q->entry->keys[i].name; i++) {
		const struct model_key *k = &q->entry->keys[i];
		const char *word = k->choices;
		char chosen[32];

		if (isnan(q->values[i]))
			continue;
		if (!word) {
			json_double(j, k->name, q->values[i]);
			continue;
		}
		for (int n = (int)q->values[i]; n > 0; n--)
			word = strchr(word, ',') + 1;
		snprintf(chosen, sizeof(chosen), "%.*s", (int)(strchrnul(word, ',') - word), word);
		json_string(j, k->name, chosen);
	}
	json_close_object(j);
}

static void json_answers(struct json_out *j, const struct model_answers *a)
{
	for (size_t i = 0; i < a->count; i++)
		json_double(j, a->of[i].name, a->of[i].value);
}

static void json_crossings(struct json_out *j, const struct model_request *q)
{
	json_open_array(j, "crossings");
	for (size_t a = 0; a < q->scheme_count; a++)
		for (size_t b = a + 1; b < q->scheme_count; b++) {
			double at;

			if (q->entry->cross(q->values, q->schemes[a], q->schemes[b], &at, NULL))
				continue;
			json_open_object(j, NULL);
			json_string(j, "from", q->schemes[a]);
			json_string(j, "to", q->schemes[b]);
			json_double(j, q->entry->cross_key, at);
			json_close_object(j);
		}
	json_close_array(j);
}

static void print_json(const struct model_request *q, const struct model_answers *all)
{
	struct json_out j;

	json_out_init(&j);
	json_open_object(&j, NULL);
	json_string(&j, "model", q->entry->name);
	json_inputs(&j, q);
	if (q->entry->schemes)
		json_string(&j, "scheme", q->schemes[0]);
	json_answers(&j, &all[0]);
	if (q->entry->schemes) {
		json_open_object(&j, "schemes");
		for (size_t i = 0; i < q->scheme_count; i++) {
			json_open_object(&j, q->schemes[i]);
			json_answers(&j, &all[i]);
			json_close_object(&j);
		}
		json_close_object(&j);
	}
	if (q->compared && q->entry->cross)
		json_crossings(&j, q);
	json_close_object(&j);
	puts(j.text);
	json_out_fini(&j);
}

static void print_table(const struct model_request *q, const struct model_answers *all)
{
	char buf[MODEL_QUANTITY_TEXT];

	if (q->entry->schemes) {
		printf("%-16s", "");
		for (size_t s = 0; s < q->scheme_count; s++)
			printf(" %14s", q->schemes[s]);
		putchar('\n');
	}
	for (size_t i = 0; i < all[0].count; i++) {
		const struct model_answer *a = &all[0].of[i];

		printf("%-16s", a->name);
		for (size_t s = 0; s < q->scheme_count; s++) {
			const struct model_answer *b = model_answer_find(&all[s], a->name);

			printf(" %14s", b ? show(b, buf) : "-");
		}
		printf("  %s\n", a->meaning);
	}
	if (!q->compared || !q->entry->cross)
		return;
	for (size_t a = 0; a < q->scheme_count; a++)
		for (size_t b = a + 1; b < q->scheme_count; b++) {
			double at;

			if (!q->entry->cross(q->values, q->schemes[a], q->schemes[b], &at, NULL))
				printf("%s and %s are even at %.0f %s\n", q->schemes[a],
				       q->schemes[b], at, q->entry->cross_key);
		}
}

static int solve(const struct model_request *q)
{
	struct model_answers all[MODEL_SCHEMES_MAX];
	struct error err;

	for (size_t i = 0; i < q->scheme_count; i++)
		if (model_entry_solve(q->entry, q->values, q->schemes[i], &all[i], &err)) {
			if (q->scheme_count > 1)
				log_warn("%s: %s", q->schemes[i], err.text);
			return q->scheme_count > 1 ? EXIT_USAGE : refuse(&err);
		}
	if (q->json)
		print_json(q, all);
	else
		print_table(q, all);
	return 0;
}

/* list is cut at its commas. */
static hale_status_t read_schemes(struct model_request *q, char *text, struct error *err)
{
	char *name;

	if (!q->entry->schemes)
		return error_set(err, HALE_ERR_ARGUMENT, "model %s has no schemes to compare",
				 q->entry->name);
	q->scheme_count = 0;
	while ((name = strsep(&text, ","))) {
		if (q->scheme_count == MODEL_SCHEMES_MAX)
			return error_set(err, HALE_ERR_ARGUMENT, "at most %d schemes at a time",
					 MODEL_SCHEMES_MAX);
		q->schemes[q->scheme_count++] = name;
	}
	q->compared = q->scheme_count > 1;
	return HALE_OK;
}

/* Options with a value, "--plot FILE" or "--plot=FILE"; how many arguments it took, 0: not this
 * one, -1: its value is missing. */
static int option(int argc, char **argv, int at, const char *name, char **value)
{
	size_t len = strlen(name);

	if (strncmp(argv[at], name, len) != 0)
		return 0;
	if (argv[at][len] == '=') {
		*value = argv[at] + len + 1;
		return 1;
	}
	if (argv[at][len])
		return 0;
	if (at + 1 >= argc)
		return -1;
	*value = argv[at + 1];
	return 2;
}

static void note_given(struct model_request *q, const char *assignment)
{
	size_t used = strlen(q->given);

	snprintf(q->given + used, sizeof(q->given) - used, "%s%s", used ? "  " : "", assignment);
}

struct words {
	char *compare, *sweep, *plot, *y;
};

static hale_status_t read_options(struct model_request *q, int argc, char **argv, struct words *w,
				  struct error *err)
{
	const struct {
		const char *name;
		char **value;
	} options[] = {{"--compare", &w->compare},
		       {"--sweep", &w->sweep},
		       {"--plot", &w->plot},
		       {"--y", &w->y}};

	for (int i = 2; i < argc;) {
		int took = 0;

		for (size_t o = 0; o < ARRAY_LEN(options) && took == 0; o++)
			took = option(argc, argv, i, options[o].name, options[o].value);
		if (took < 0)
			return error_set(err, HALE_ERR_ARGUMENT, "%s needs a value", argv[i]);
		if (took == 0 && strcmp(argv[i], "--json") == 0) {
			q->json = true;
		} else if (took == 0 && argv[i][0] == '-') {
			return error_set(err, HALE_ERR_ARGUMENT,
					 "hale model has no option '%s';%s `hale help model` lists "
					 "them",
					 argv[i], cli_meant("model", argv[i]));
		} else if (took == 0 && model_values_read(q->entry, argv[i], q->values, err)) {
			return HALE_ERR_ARGUMENT;
		} else if (took == 0) {
			note_given(q, argv[i]);
		}
		i += took ? took : 1;
	}
	return HALE_OK;
}

static int run(struct model_request *q, int argc, char **argv)
{
	struct words w = {0};
	struct error err;

	model_values_init(q->entry, q->values);
	q->schemes[0] = q->entry->standard;
	q->scheme_count = 1;
	q->x = -1;
	if (read_options(q, argc, argv, &w, &err) ||
	    (w.compare && read_schemes(q, w.compare, &err)))
		return refuse(&err);
	q->plot = w.plot;
	q->y = w.y;
	if (w.sweep && model_sweep_read(q, w.sweep, &err))
		return refuse(&err);
	if (!w.sweep && !w.plot)
		return solve(q);
	if (w.plot && !w.compare && q->entry->compared) {
		static char compared[64];

		snprintf(compared, sizeof(compared), "%s", q->entry->compared);
		if (read_schemes(q, compared, &err))
			return refuse(&err);
	}
	if (model_sweep_complete(q, &err))
		return refuse(&err);
	/* a picture beside the figures, where these can be had without what is swept */
	if (q->plot && !isnan(q->values[q->x])) {
		int status = solve(q);

		if (status != 0)
			return status;
	}
	return model_sweep(q);
}

int cli_model(int argc, char **argv)
{
	struct model_request q = {0};
	const char *name = argc > 1 ? argv[1] : "";
	bool help = argc > 2 && (strcmp(argv[2], "--help") == 0 || strcmp(argv[2], "-h") == 0);

	if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
		return cli_help("model");
	if (strcmp(name, "--list") == 0)
		return list(argc > 2 && strcmp(argv[2], "--json") == 0);
	q.entry = model_entry_find(name);
	if (!q.entry) {
		if (*name)
			log_warn("there is no model '%s'; `hale model --list` names them", name);
		else
			log_warn(
			    "hale model needs a name; `hale model --list` says which there are");
		return EXIT_USAGE;
	}
	return help ? explain(q.entry) : run(&q, argc, argv);
}
