/* SPDX-License-Identifier: BSD-3-Clause */
#include "node/ocl_account.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "base/base.h"

static const char *const counts[] = {"synchronisations", "epochs", "commands",	 "checks",
				     "checkpoints",	 "errors", "recoveries", "moves"};
static const char *const shares[] = {"log",	    "check",   "checkpoint",
				     "consolidate", "restore", "replay"};
static const char *const bytes[] = {"log", "checkpoint", "unchanged", "consolidate", "restore"};

_Static_assert(ARRAY_LEN(counts) == ACCOUNT_COUNTS, "a name each");
_Static_assert(ARRAY_LEN(shares) == ACCOUNT_SHARES, "a name each");
_Static_assert(ARRAY_LEN(bytes) == ACCOUNT_BYTES, "a name each");

double account_overhead(const struct account *a)
{
	double ours = 0, program;

	for (int i = 0; i < ACCOUNT_SHARES; i++)
		ours += a->share[i];
	program = a->wall - ours - a->move;
	return program > 0 ? 100 * ours / program : 0;
}

/* ---- JSON ---- */

static void take_text(char to[128], const struct json_value *of, const char *key)
{
	const char *text = json_text(json_get(of, key), "");

	if (*text)
		snprintf(to, 128, "%s", text);
}

void account_add(struct account *a, const struct json_value *of)
{
	const struct json_value *s = json_get(of, "seconds"), *b = json_get(of, "bytes");

	a->processes++;
	for (int i = 0; i < ACCOUNT_COUNTS; i++)
		a->count[i] += (uint64_t)json_number_int(json_get(of, counts[i]), 0);
	for (int i = 0; i < ACCOUNT_SHARES; i++)
		a->share[i] += json_number(json_get(s, shares[i]), 0);
	for (int i = 0; i < ACCOUNT_BYTES; i++)
		a->bytes[i] += (uint64_t)json_number_int(json_get(b, bytes[i]), 0);
	a->move += json_number(json_get(of, "move_seconds"), 0);
	a->wall += json_number(json_get(of, "wall_seconds"), 0);
	take_text(a->device, of, "device");
	take_text(a->moved_to, of, "moved_to");
}

void account_json(const struct account *a, struct json_out *j)
{
	json_open_object(j, NULL);
	if (a->pid)
		json_int(j, "pid", a->pid);
	else
		json_uint(j, "processes", a->processes);
	json_string(j, "device", a->device);
	for (int i = 0; i < ACCOUNT_COUNTS; i++)
		json_uint(j, counts[i], a->count[i]);
	if (a->moved_to[0])
		json_string(j, "moved_to", a->moved_to);
	json_double(j, "move_seconds", a->move);
	json_double(j, "wall_seconds", a->wall);
	json_double(j, "overhead_percent", account_overhead(a));
	json_open_object(j, "seconds");
	for (int i = 0; i < ACCOUNT_SHARES; i++)
		json_double(j, shares[i], a->share[i]);
	json_close_object(j);
	json_open_object(j, "bytes");
	for (int i = 0; i < ACCOUNT_BYTES; i++)
		json_uint(j, bytes[i], a->bytes[i]);
	json_close_object(j);
	json_close_object(j);
}

/* ---- text ---- */

static double percent(const struct account *a, int share)
{
	return a->wall > 0 ? 100 * a->share[share] / a->wall : 0;
}

static void print_text(const struct account *a, FILE *f)
{
	const uint64_t *n = a->count;
	char size[16];

	if (a->processes > 1)
		fprintf(f, "processes        %lu, added up\n", (unsigned long)a->processes);
	fprintf(f, "device           %s\n", a->device);
	if (n[ACCOUNT_MOVES])
		fprintf(f, "moved to         %s, in %.3f s\n", a->moved_to, a->move);
	fprintf(f, "wall time        %.3f s, overhead %.2f %%\n", a->wall, account_overhead(a));
	fprintf(f, "commands         %lu\n", (unsigned long)n[ACCOUNT_COMMANDS]);
	fprintf(f, "synchronisations %lu, of which %lu closed an epoch\n",
		(unsigned long)n[ACCOUNT_SYNCS], (unsigned long)n[ACCOUNT_EPOCHS]);
	fprintf(f, "checks           %lu\ncheckpoints      %lu\n", (unsigned long)n[ACCOUNT_CHECKS],
		(unsigned long)n[ACCOUNT_CHECKPOINTS]);
	fprintf(f, "errors           %lu\nrecoveries       %lu\n\n",
		(unsigned long)n[ACCOUNT_ERRORS], (unsigned long)n[ACCOUNT_RECOVERIES]);
	for (int i = 0; i < ACCOUNT_SHARES; i++)
		fprintf(f, "%-12s %10.6f s %8.3f %%\n", shares[i], a->share[i], percent(a, i));
	fprintf(f, "\nhost data logged   %s\n", units_show_bytes(a->bytes[ACCOUNT_LOGGED], size));
	fprintf(f, "checkpointed       %s", units_show_bytes(a->bytes[ACCOUNT_SAVED], size));
	fprintf(f, ", found unchanged %s\n", units_show_bytes(a->bytes[ACCOUNT_SKIPPED], size));
	fprintf(f, "consolidated       %s\n",
		units_show_bytes(a->bytes[ACCOUNT_CONSOLIDATED], size));
	fprintf(f, "restored           %s\n", units_show_bytes(a->bytes[ACCOUNT_RESTORED], size));
}

/* ---- picture ---- */

static bool ends_with(const char *path, const char *end)
{
	size_t n = strlen(path), m = strlen(end);

	return n > m && strcmp(path + n - m, end) == 0;
}

/* As gnuplot quotes: '' is one '. */
static void put_quoted(const char *text, FILE *to)
{
	fputc('\'', to);
	for (; *text; text++)
		fputs(*text == '\'' ? "''" : (char[]){*text, '\0'}, to);
	fputc('\'', to);
}

/* One stacked bar, in percent of the run. A file that it can't open gnuplot replaces by its output,
 * which is the program's. */
static bool plot(const struct account *a, const char *path)
{
	FILE *g = popen("exec env -u OPENCL_LAYERS -u HALE_OPENCL gnuplot >/dev/null 2>&1", "we");

	if (!g)
		return false;
	fprintf(g, "set terminal %s size 480,480\nset output ",
		ends_with(path, ".svg") ? "svg" : "png");
	put_quoted(path, g);
	fputc('\n', g);
	fprintf(g,
		"set style data histograms\nset style histogram rowstacked\n"
		"set style fill solid\nset boxwidth 0.5\nset key outside\n"
		"set ylabel 'share of the run (%%)'\nset yrange [0:*]\n"
		"set xtics ('%lu epochs, %lu errors' 0)\nset xrange [-1:1]\n",
		(unsigned long)a->count[ACCOUNT_EPOCHS], (unsigned long)a->count[ACCOUNT_ERRORS]);
	fprintf(g, "$d << END\n");
	for (int i = 0; i < ACCOUNT_SHARES; i++)
		fprintf(g, "%g ", percent(a, i));
	fprintf(g, "\nEND\nplot ");
	for (int i = 0; i < ACCOUNT_SHARES; i++)
		fprintf(g, "%s$d using %d title '%s'", i ? ", " : "", i + 1, shares[i]);
	fprintf(g, "\n");
	return pclose(g) == 0;
}

static const char *draw(const struct account *a, const char *path)
{
	bool there = access(path, F_OK) == 0;
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);

	if (fd < 0)
		return strerror(errno);
	close(fd);
	if (plot(a, path))
		return NULL;
	if (!there)
		unlink(path);
	return "gnuplot draws pictures, and is not there or has failed";
}

/* ---- by the file's name ---- */

bool account_is_picture(const char *path)
{
	return ends_with(path, ".svg") || ends_with(path, ".png");
}

bool account_is_text(const char *path)
{
	return ends_with(path, ".txt");
}

const char *account_write(const struct account *a, const char *path)
{
	struct json_out j;
	FILE *f;

	if (account_is_picture(path))
		return draw(a, path);
	f = fopen(path, "we");
	if (!f)
		return strerror(errno);
	if (ends_with(path, ".json")) {
		json_out_init(&j);
		account_json(a, &j);
		fprintf(f, "%s\n", j.text ? j.text : "{}");
		json_out_fini(&j);
	} else {
		print_text(a, f);
	}
	return fclose(f) == 0 ? NULL : strerror(errno);
}
