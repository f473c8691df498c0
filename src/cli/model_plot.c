/* SPDX-License-Identifier: BSD-3-Clause */
/* hale model --sweep, --plot: one result over one key. */
#include <ctype.h>
#include <math.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include "base/base.h"
#include "base/json.h"
#include "cli/model.h"
#include "node/job.h"

#define STEPS_MAX 10000

static hale_status_t read_end(const struct model_request *q, const char *text, double *value,
			      struct error *err)
{
	char assignment[128];
	double values[MODEL_KEYS_MAX];

	snprintf(assignment, sizeof(assignment), "%s=%s", q->entry->keys[q->x].name, text);
	if (q->entry->keys[q->x].choices)
		return error_set(err, HALE_ERR_ARGUMENT, "%s is a word and can't be swept",
				 q->entry->keys[q->x].name);
	if (model_values_read(q->entry, assignment, values, err))
		return HALE_ERR_ARGUMENT;
	*value = values[q->x];
	return HALE_OK;
}

static hale_status_t check_ends(const struct model_request *q, struct error *err)
{
	if (!(q->from < q->to) || isinf(q->to))
		return error_set(err, HALE_ERR_ARGUMENT, "the sweep of %s must go upwards",
				 q->entry->keys[q->x].name);
	if (q->log_x && !(q->from > 0))
		return error_set(err, HALE_ERR_ARGUMENT,
				 "a logarithmic sweep of %s must begin above 0",
				 q->entry->keys[q->x].name);
	return HALE_OK;
}

hale_status_t model_sweep_read(struct model_request *q, const char *text, struct error *err)
{
	char copy[128], *rest = copy, *key, *from, *to, *steps, *dots;

	if (snprintf(copy, sizeof(copy), "%s", text) >= (int)sizeof(copy))
		return error_set(err, HALE_ERR_ARGUMENT, "the sweep is too long");
	key = strsep(&rest, "=");
	from = rest ? strsep(&rest, "/") : NULL;
	dots = from ? strstr(from, "..") : NULL;
	if (!dots)
		return error_set(err, HALE_ERR_ARGUMENT,
				 "'%s' is no sweep; write nodes=10k..2M or nodes=10k..2M/50/log",
				 text);
	*dots = 0;
	to = dots + 2;
	q->x = model_key_find(q->entry, key);
	if (q->x < 0)
		return error_set(err, HALE_ERR_ARGUMENT, "model %s has no key '%s' to sweep",
				 q->entry->name, key);
	q->steps = 60;
	steps = rest ? strsep(&rest, "/") : NULL;
	if (steps && !units_parse_int(steps, 2, STEPS_MAX, &q->steps))
		return error_set(err, HALE_ERR_ARGUMENT,
				 "'%s' is no number of steps between 2 and %d", steps, STEPS_MAX);
	if (rest && strcmp(rest, "log") != 0)
		return error_set(err, HALE_ERR_ARGUMENT, "'%s' is not log", rest);
	q->log_x = rest != NULL;
	if (read_end(q, from, &q->from, err) || read_end(q, to, &q->to, err))
		return HALE_ERR_ARGUMENT;
	return check_ends(q, err);
}

static bool drawable(const char *file)
{
	const char *dot = strrchr(file, '.');

	return dot && (strcmp(dot, ".svg") == 0 || strcmp(dot, ".png") == 0) &&
	       !strpbrk(file, "\n\r");
}

hale_status_t model_sweep_complete(struct model_request *q, struct error *err)
{
	const struct model_entry *e = q->entry;

	if (q->plot && !drawable(q->plot))
		return error_set(err, HALE_ERR_ARGUMENT,
				 "'%s' is no name of a picture; it must end in .svg or .png",
				 q->plot);
	if (!q->y)
		q->y = e->plot_y;
	if (q->x >= 0)
		return HALE_OK;
	q->x = model_key_find(e, e->plot_x);
	q->steps = 200;
	q->log_x = e->plot_log;
	if (read_end(q, e->plot_from, &q->from, err) || read_end(q, e->plot_to, &q->to, err))
		return HALE_ERR_ARGUMENT;
	return HALE_OK;
}

static double step(const struct model_request *q, long i)
{
	double part = (double)i / (double)(q->steps - 1);
	double x =
	    q->log_x ? q->from * pow(q->to / q->from, part) : q->from + (q->to - q->from) * part;

	return q->entry->keys[q->x].kind == MODEL_COUNT ? round(x) : x;
}

/* All points: y[i * schemes + s]; NAN where a scheme has no answer, it never finishes for instance.
 * If no point has one, the reason. */
struct points {
	double *x, *y;
	struct model_answer what; /* of y: name, meaning, kind */
};

static void points_fini(struct points *p)
{
	free(p->x);
	free(p->y);
}

static hale_status_t points_solve(const struct model_request *q, struct points *p,
				  struct error *err)
{
	double values[MODEL_KEYS_MAX];
	struct model_answers answers;
	bool any = false;

	memcpy(values, q->values, sizeof(values));
	for (long i = 0; i < q->steps; i++) {
		p->x[i] = values[q->x] = step(q, i);
		for (size_t s = 0; s < q->scheme_count; s++) {
			const struct model_answer *a;
			double *y = &p->y[(size_t)i * q->scheme_count + s];

			*y = NAN;
			if (model_entry_solve(q->entry, values, q->schemes[s], &answers, err))
				continue;
			a = model_answer_find(&answers, q->y);
			if (!a)
				return error_set(err, HALE_ERR_ARGUMENT,
						 "model %s gives no '%s'; try it without --sweep "
						 "to see what it gives",
						 q->entry->name, q->y);
			p->what = *a;
			*y = isfinite(a->value) ? a->value : NAN;
			any = true;
		}
	}
	return any ? HALE_OK : err->code;
}

static void print_points(const struct model_request *q, const struct points *p)
{
	printf("%s", q->entry->keys[q->x].name);
	for (size_t s = 0; s < q->scheme_count; s++)
		printf("\t%s%s%s", q->schemes[s] ? q->schemes[s] : "", q->schemes[s] ? ":" : "",
		       q->y);
	putchar('\n');
	for (long i = 0; i < q->steps; i++) {
		printf("%.10g", p->x[i]);
		for (size_t s = 0; s < q->scheme_count; s++) {
			double y = p->y[(size_t)i * q->scheme_count + s];

			if (isnan(y))
				printf("\t-");
			else
				printf("\t%.10g", y);
		}
		putchar('\n');
	}
}

static void print_points_json(const struct model_request *q, const struct points *p)
{
	struct json_out j;

	json_out_init(&j);
	json_open_object(&j, NULL);
	json_string(&j, "model", q->entry->name);
	json_string(&j, "x", q->entry->keys[q->x].name);
	json_string(&j, "y", q->y);
	json_open_array(&j, "points");
	for (long i = 0; i < q->steps; i++) {
		json_open_object(&j, NULL);
		json_double(&j, q->entry->keys[q->x].name, p->x[i]);
		for (size_t s = 0; s < q->scheme_count; s++)
			json_double(&j, q->schemes[s] ? q->schemes[s] : q->y,
				    p->y[(size_t)i * q->scheme_count + s]);
		json_close_object(&j);
	}
	json_close_array(&j);
	json_close_object(&j);
	puts(j.text);
	json_out_fini(&j);
}

struct axis {
	double factor; /* base unit to axis */
	const char *unit;
};

/* The unit in which the largest value has few digits. */
static struct axis axis_of(enum model_kind kind, double largest)
{
	static const struct {
		enum model_kind kind;
		double from, factor;
		const char *unit;
	} units[] = {
	    {MODEL_TIME_S, 2 * 365.25 * 86400, 1 / (365.25 * 86400), "years"},
	    {MODEL_TIME_S, 7200, 1 / 3600., "hours"},
	    {MODEL_TIME_S, 180, 1 / 60., "minutes"},
	    {MODEL_TIME_S, 1, 1, "s"},
	    {MODEL_TIME_S, 1e-3, 1e3, "ms"},
	    {MODEL_TIME_S, 0, 1e6, "us"},
	    {MODEL_ENERGY_J, 1e10, 1 / 3.6e9, "MWh"},
	    {MODEL_ENERGY_J, 0, 1, "J"},
	    {MODEL_POWER_W, 1e6, 1e-6, "MW"},
	    {MODEL_POWER_W, 0, 1, "W"},
	    {MODEL_COUNT, 2e6, 1e-6, "millions"},
	    {MODEL_COUNT, 2e4, 1e-3, "thousands"},
	    {MODEL_BYTES, 0x1p31, 0x1p-30, "GiB"},
	    {MODEL_BYTES, 0, 0x1p-20, "MiB"},
	    {MODEL_BYTES_PER_S, 0, 0x1p-20, "MiB/s"},
	    {MODEL_RATE_HZ, 1, 1, "Hz"},
	    {MODEL_RATE_HZ, 1 / 86400., 86400, "per day"},
	    {MODEL_RATE_HZ, 0, 365.25 * 86400, "per year"},
	};

	for (size_t i = 0; i < ARRAY_LEN(units); i++)
		if (units[i].kind == kind && largest >= units[i].from)
			return (struct axis){units[i].factor, units[i].unit};
	return (struct axis){1, NULL};
}

static double largest_y(const struct model_request *q, const struct points *p)
{
	double most = 0;

	for (size_t i = 0; i < (size_t)q->steps * q->scheme_count; i++)
		if (p->y[i] > most)
			most = p->y[i];
	return most * p->what.scale;
}

/* Within single quotes gnuplot knows one escape, '' for '. */
static void put_quoted(FILE *f, const char *text)
{
	putc('\'', f);
	for (; *text; text++) {
		if (*text == '\'')
			putc('\'', f);
		putc(*text, f);
	}
	putc('\'', f);
}

static void put_label(FILE *f, const char *axis, const char *what, const char *unit)
{
	char label[160];
	int main_part = (int)strcspn(what, ";(");

	while (main_part > 0 && what[main_part - 1] == ' ')
		main_part--;
	snprintf(label, sizeof(label), unit ? "%.*s (%s)" : "%.*s", main_part, what, unit);
	fprintf(f, "set %slabel ", axis);
	put_quoted(f, label);
	putc('\n', f);
}

/* The values that were given, but for the one of the axis. */
static void put_given(FILE *f, const struct model_request *q)
{
	char copy[sizeof(q->given)], shown[sizeof(q->given)] = "", *rest = copy, *word;
	const char *axis = q->entry->keys[q->x].name;
	size_t length = strlen(axis);

	memcpy(copy, q->given, sizeof(copy));
	while ((word = strsep(&rest, " "))) {
		size_t used = strlen(shown);

		if (*word && !(strncmp(word, axis, length) == 0 && word[length] == '='))
			snprintf(shown + used, sizeof(shown) - used, "%s%s", used ? "  " : "",
				 word);
	}
	put_quoted(f, shown);
}

/* What the picture is about, and below it the values that it holds for. */
static void put_title(FILE *f, const struct model_request *q)
{
	const char *summary = q->entry->summary;
	int length = (int)strcspn(summary, ";(");
	char title[120];

	snprintf(title, sizeof(title), "%c%.*s", toupper((unsigned char)summary[0]), length - 1,
		 summary + 1);
	fprintf(f, "set title noenhanced font 'sans,%d' offset 0,0.9\nset title ",
		length > 45 ? 14 : 17);
	put_quoted(f, title);
	fprintf(f, "\nset label 1 ");
	put_given(f, q);
	fprintf(f, " noenhanced center at graph 0.5, graph 1.04 font 'sans,11' tc rgb '#555555'\n");
}

static void put_script(FILE *f, const struct model_request *q, const struct points *p)
{
	static const char *const colours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
					      "#e69f00", "#56b4e9", "#999999", "#000000"};
	const struct model_key *key = &q->entry->keys[q->x];
	struct axis x = axis_of(key->kind, q->to), y = axis_of(p->what.kind, largest_y(q, p));
	bool svg = strcmp(strrchr(q->plot, '.'), ".svg") == 0;

	fprintf(f, "set terminal %s\n",
		svg ? "svg size 760,480 font 'sans,14' background '#ffffff'"
		    : "pngcairo size 1520,960 font 'sans,14' fontscale 2 linewidth 2 background "
		      "'#ffffff'");
	fprintf(f, "set output ");
	put_quoted(f, q->plot);
	fprintf(f,
		"\nset encoding utf8\nset border 3 lw 1\nset tics nomirror out\n"
		"set grid lc rgb '#dddddd' lt 1 lw 0.7\nset key outside bottom center horizontal "
		"noenhanced reverse Left\n"
		"set datafile missing '-'\nset xlabel noenhanced\nset ylabel noenhanced\n%s",
		q->log_x ? "set logscale x\n" : "");
	put_title(f, q);
	put_label(f, "x", key->meaning, x.unit);
	put_label(f, "y", p->what.meaning, y.unit);
	if (q->scheme_count > 1)
		fprintf(f, "set bmargin 6\n");
	fprintf(f, "set xrange [%.10g:%.10g]\n$d << EOD\n", q->from * x.factor, q->to * x.factor);
	for (long i = 0; i < q->steps; i++) {
		fprintf(f, "%.8g", p->x[i] * x.factor);
		for (size_t s = 0; s < q->scheme_count; s++) {
			double v = p->y[(size_t)i * q->scheme_count + s];

			if (isnan(v))
				fprintf(f, " -");
			else
				fprintf(f, " %.6g", v * p->what.scale * y.factor);
		}
		putc('\n', f);
	}
	fprintf(f, "EOD\nplot");
	for (size_t s = 0; s < q->scheme_count; s++) {
		fprintf(f, "%s $d using 1:%zu with lines lw 2.5 lc rgb '%s' ", s ? "," : "", s + 2,
			colours[s]);
		if (q->schemes[s]) {
			fprintf(f, "title ");
			put_quoted(f, q->schemes[s]);
		} else {
			fprintf(f, "notitle");
		}
	}
	putc('\n', f);
}

static int draw(const struct model_request *q, const struct points *p)
{
	FILE *f;
	int status;

	fflush(stdout);
	signal(SIGPIPE, SIG_IGN);
	f = popen("command -v gnuplot >/dev/null 2>&1 || exit 127; exec gnuplot", "w");
	if (!f) {
		log_warn("can't start gnuplot: %s", strerror(errno));
		return 1;
	}
	put_script(f, q, p);
	status = pclose(f);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
		log_warn("pictures need gnuplot, which is not installed (Debian: gnuplot-nox); "
			 "--sweep without --plot prints the numbers");
	else
		log_warn("gnuplot could not draw '%s'", q->plot);
	return 1;
}

int model_sweep(const struct model_request *q)
{
	struct points p = {.what = {.name = "", .meaning = ""}};
	struct error err = {.code = HALE_ERR_ARGUMENT};
	int status = 0;

	p.x = calloc((size_t)q->steps, sizeof(double));
	p.y = calloc((size_t)q->steps * q->scheme_count, sizeof(double));
	if (!p.x || !p.y) {
		log_warn("out of memory");
		status = 1;
	} else if (points_solve(q, &p, &err)) {
		log_warn("%s", err.text);
		status = EXIT_USAGE;
	} else if (q->plot) {
		status = draw(q, &p);
	} else if (q->json) {
		print_points_json(q, &p);
	} else {
		print_points(q, &p);
	}
	points_fini(&p);
	return status;
}
