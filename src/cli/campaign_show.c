/* SPDX-License-Identifier: BSD-3-Clause */
/* What a campaign has found: a table, JSON, a picture (seed 000, figures 4.18 to 4.20). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include "base/base.h"
#include "base/json.h"
#include "cli/campaign.h"

static const char *const end_names[ENDS] = {"right", "wrong", "reported", "crashed", "hung"};

static void show_json(const struct campaign *c)
{
	struct json_out j;

	json_out_init(&j);
	json_open_object(&j, NULL);
	json_string(&j, "program", c->argv[0]);
	json_int(&j, "runs", c->runs);
	json_int(&j, "seed", c->seed);
	json_double(&j, "rate", c->rate);
	json_double(&j, "seconds_alone", c->alone_s);
	json_double(&j, "seconds", c->seconds / (double)c->runs);
	json_open_object(&j, "ends");
	for (int i = 0; i < ENDS; i++)
		json_uint(&j, end_names[i], c->ends[i]);
	json_close_object(&j);
	json_open_array(&j, "variables");
	for (size_t i = 0; i < c->vars; i++) {
		const struct campaign_var *v = &c->var[i];
		json_open_object(&j, NULL);
		json_string(&j, "name", v->name);
		json_uint(&j, "faults", v->faults);
		json_uint(&j, "corrected", v->corrected);
		json_uint(&j, "harmless", v->harmless);
		json_uint(&j, "wrong", v->wrong);
		json_uint(&j, "reported", v->reported);
		json_uint(&j, "crashed", v->crashed);
		json_close_object(&j);
	}
	json_close_array(&j);
	json_close_object(&j);
	printf("%s\n", j.text);
	json_out_fini(&j);
}

void campaign_show(const struct campaign *c)
{
	unsigned long faults = 0;
	char alone[16], with[16];

	if (c->json) {
		show_json(c);
		return;
	}
	for (size_t i = 0; i < c->vars; i++)
		faults += c->var[i].faults;
	printf("%ld runs, %lu faults; %s without, %s with them\n", c->runs, faults,
	       units_show_seconds(c->alone_s, alone),
	       units_show_seconds(c->seconds / (double)c->runs, with));
	printf("runs that ended right %lu, wrong without a word %lu, with 72 and a sentence %lu, "
	       "crashed %lu, hung %lu\n\n",
	       c->ends[END_RIGHT], c->ends[END_WRONG], c->ends[END_REPORTED], c->ends[END_CRASHED],
	       c->ends[END_HUNG]);
	printf("%-20s %8s %10s %10s %8s %10s %9s\n", "variable", "faults", "corrected", "harmless",
	       "wrong", "reported", "crashed");
	for (size_t i = 0; i < c->vars; i++) {
		const struct campaign_var *v = &c->var[i];
		printf("%-20s %8lu %10lu %10lu %8lu %10lu %9lu\n", v->name, v->faults, v->corrected,
		       v->harmless, v->wrong, v->reported, v->crashed);
	}
}

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

static void put_script(FILE *f, const struct campaign *c)
{
	const char *dot = strrchr(c->plot, '.');

	fprintf(f, "set terminal %s\nset output ",
		dot && strcmp(dot, ".svg") == 0 ? "svg" : "pngcairo");
	put_quoted(f, c->plot);
	fprintf(f, "\nset style data histograms\nset style histogram rowstacked\n"
		   "set style fill solid 0.8 border -1\nset boxwidth 0.7\nset ylabel 'faults'\n"
		   "set yrange [0:*]\nset key outside top horizontal\nset grid ytics\n$d << E\n");
	for (size_t i = 0; i < c->vars; i++) {
		const struct campaign_var *v = &c->var[i];
		fprintf(f, "\"%s\" %lu %lu %lu %lu %lu\n", v->name, v->corrected, v->harmless,
			v->reported, v->crashed, v->wrong);
	}
	fprintf(f, "E\nplot $d using 2:xtic(1) title 'corrected' lc rgb '#4c9f70', "
		   "'' using 3 title 'harmless' lc rgb '#c8d5b9', "
		   "'' using 4 title 'reported' lc rgb '#8aa9d6', "
		   "'' using 5 title 'crashed' lc rgb '#f2a65a', "
		   "'' using 6 title 'wrong' lc rgb '#d1495b'\n");
}

bool campaign_plot(const struct campaign *c)
{
	FILE *f;
	int status;

	if (!c->vars) {
		log_warn("no fault has struck, so there is nothing to draw; give a higher --rate");
		return false;
	}
	f = popen("command -v gnuplot >/dev/null 2>&1 || exit 127; exec gnuplot", "w");
	if (!f) {
		log_warn("can't start gnuplot: %s", strerror(errno));
		return false;
	}
	put_script(f, c);
	status = pclose(f);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return true;
	log_warn(WIFEXITED(status) && WEXITSTATUS(status) == 127
		     ? "pictures need gnuplot, which is not installed (Debian: gnuplot-nox)"
		     : "gnuplot could not draw the picture");
	return false;
}
