/* SPDX-License-Identifier: BSD-3-Clause */
/* What protection found and cost: one line at the end, and a report as text, JSON or picture. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/base.h"
#include "base/json.h"
#include "ocl/ocl.h"

struct share {
	const char *name;
	double seconds;
};

enum { SHARES = 6 };

static void shares(struct share s[SHARES])
{
	const struct report *r = &ocl.report;

	s[0] = (struct share){"log", r->log};
	s[1] = (struct share){"check", r->check};
	s[2] = (struct share){"checkpoint", r->checkpoint};
	s[3] = (struct share){"consolidate", r->consolidate};
	s[4] = (struct share){"restore", r->restore};
	s[5] = (struct share){"replay", r->replay};
}

static double all_seconds(void)
{
	struct share s[SHARES];
	double sum = 0;

	shares(s);
	for (int i = 0; i < SHARES; i++)
		sum += s[i].seconds;
	return sum;
}

/* Of the time that the run would have taken without; moves, which may start a server, stand apart.
 */
static double overhead(double wall)
{
	double ours = all_seconds();

	double program = wall - ours - ocl.report.move;

	return program > 0 ? 100 * ours / program : 0;
}

static void print_json(struct json_out *j, double wall)
{
	const struct report *r = &ocl.report;
	struct share s[SHARES];

	shares(s);
	json_open_object(j, NULL);
	json_int(j, "pid", ocl.pid);
	json_string(j, "device", r->device);
	json_uint(j, "synchronisations", r->syncs);
	json_uint(j, "epochs", r->epochs);
	json_uint(j, "commands", r->commands);
	json_uint(j, "checks", r->checks);
	json_uint(j, "checkpoints", r->checkpoints);
	json_uint(j, "errors", r->errors);
	json_uint(j, "recoveries", r->recoveries);
	json_uint(j, "moves", r->moves);
	if (r->moves)
		json_string(j, "moved_to", r->moved_to);
	json_double(j, "move_seconds", r->move);
	json_double(j, "wall_seconds", wall);
	json_double(j, "overhead_percent", overhead(wall));
	json_open_object(j, "seconds");
	for (int i = 0; i < SHARES; i++)
		json_double(j, s[i].name, s[i].seconds);
	json_close_object(j);
	json_open_object(j, "bytes");
	json_uint(j, "log", r->logged);
	json_uint(j, "checkpoint", r->saved);
	json_uint(j, "unchanged", r->skipped);
	json_uint(j, "consolidate", r->consolidated);
	json_uint(j, "restore", r->restored);
	json_close_object(j);
	json_close_object(j);
}

static void print_text(FILE *f, double wall)
{
	const struct report *r = &ocl.report;
	struct share s[SHARES];
	char size[16];

	shares(s);
	fprintf(f, "device           %s\n", r->device);
	if (r->moves)
		fprintf(f, "moved to         %s, in %.3f s\n", r->moved_to, r->move);
	fprintf(f, "wall time        %.3f s, overhead %.2f %%\n", wall, overhead(wall));
	fprintf(f, "commands         %lu\n", (unsigned long)r->commands);
	fprintf(f, "synchronisations %lu, of which %lu closed an epoch\n", (unsigned long)r->syncs,
		(unsigned long)r->epochs);
	fprintf(f, "checks           %lu\ncheckpoints      %lu\n", (unsigned long)r->checks,
		(unsigned long)r->checkpoints);
	fprintf(f, "errors           %lu\nrecoveries       %lu\n\n", (unsigned long)r->errors,
		(unsigned long)r->recoveries);
	for (int i = 0; i < SHARES; i++)
		fprintf(f, "%-12s %10.6f s %8.3f %%\n", s[i].name, s[i].seconds,
			wall > 0 ? 100 * s[i].seconds / wall : 0);
	fprintf(f, "\nhost data logged   %s\n", units_show_bytes(r->logged, size));
	fprintf(f, "checkpointed       %s", units_show_bytes(r->saved, size));
	fprintf(f, ", found unchanged %s\n", units_show_bytes(r->skipped, size));
	fprintf(f, "consolidated       %s\n", units_show_bytes(r->consolidated, size));
	fprintf(f, "restored           %s\n", units_show_bytes(r->restored, size));
}

static bool ends_with(const char *path, const char *end)
{
	size_t n = strlen(path), m = strlen(end);

	return n > m && strcmp(path + n - m, end) == 0;
}

/* One stacked bar, in percent of the run, as in the figures of VOCL-FT. */
static bool draw(const char *path, double wall)
{
	struct share s[SHARES];
	FILE *g = popen("exec env -u OPENCL_LAYERS -u HALE_OPENCL gnuplot 2>/dev/null", "we");

	if (!g)
		return false;
	shares(s);
	fprintf(g, "set terminal %s size 480,480\nset output '%s'\n",
		ends_with(path, ".svg") ? "svg" : "png", path);
	fprintf(g,
		"set style data histograms\nset style histogram rowstacked\n"
		"set style fill solid\nset boxwidth 0.5\nset key outside\n"
		"set ylabel 'share of the run (%%)'\nset yrange [0:*]\n"
		"set xtics ('%d epochs, %d errors' 0)\nset xrange [-1:1]\n",
		(int)ocl.report.epochs, (int)ocl.report.errors);
	fprintf(g, "$d << END\n");
	for (int i = 0; i < SHARES; i++)
		fprintf(g, "%g ", wall > 0 ? 100 * s[i].seconds / wall : 0);
	fprintf(g, "\nEND\nplot ");
	for (int i = 0; i < SHARES; i++)
		fprintf(g, "%s$d using %d title '%s'", i ? ", " : "", i + 1, s[i].name);
	fprintf(g, "\n");
	return pclose(g) == 0;
}

static bool write_to(const char *path, double wall, bool json)
{
	FILE *f = fopen(path, "we");
	struct json_out j;

	if (!f)
		return false;
	if (json) {
		json_out_init(&j);
		print_json(&j, wall);
		fprintf(f, "%s\n", j.text ? j.text : "{}");
		json_out_fini(&j);
	} else {
		print_text(f, wall);
	}
	return fclose(f) == 0;
}

void ocl_report_init(void)
{
	ocl.report.started = clock_seconds();
}

static void say_line(double wall)
{
	const struct report *r = &ocl.report;
	char text[256], moved[64] = "";
	int n;

	if (r->moves)
		snprintf(moved, sizeof(moved), " (moved to another device in %.1f s)", r->move);
	if (log_level() == LOG_QUIET)
		return;
	n = snprintf(text, sizeof(text),
		     "hale: opencl: %lu errors in device memory, %lu recovered%s; %lu epochs, %lu "
		     "checkpoints; overhead %.2f %% of %.1f s\n",
		     (unsigned long)r->errors, (unsigned long)r->recoveries, moved,
		     (unsigned long)r->epochs, (unsigned long)r->checkpoints, overhead(wall), wall);
	if (n > 0 && write(STDERR_FILENO, text, (size_t)n) < 0)
		return; /* nobody listens any more */
}

void ocl_report_end(void)
{
	const char *path = ocl.set.report, *dir = secure_getenv("HALE_OPENCL_REPORTS");
	double wall = clock_seconds() - ocl.report.started;
	char name[PATH_MAX];
	bool good = true;

	if (ocl.passive || ocl.pid != (int)getpid() || ocl.report.commands == 0)
		return;
	if (*path && (ends_with(path, ".svg") || ends_with(path, ".png")))
		good = draw(path, wall);
	else if (*path)
		good = write_to(path, wall, ends_with(path, ".json"));
	if (!good)
		log_warn("opencl: the report '%s' could not be written%s", path,
			 ends_with(path, ".svg") || ends_with(path, ".png")
			     ? "; pictures need gnuplot"
			     : "");
	if (dir && snprintf(name, sizeof(name), "%s/%d.json", dir, ocl.pid) < PATH_MAX)
		write_to(name, wall, true);
	say_line(wall);
}
