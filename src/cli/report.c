/* SPDX-License-Identifier: BSD-3-Clause */
/* hale report: what happened to a job, from its report or, while it runs, from its head: in lines,
 * as JSON, or as a page. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/base.h"
#include "base/json.h"
#include "cli/cli.h"
#include "control/control.h"
#include "node/job.h"
#include "web/page.h"

enum { REPORT_MAX = 64 << 20 };

struct wish {
	const char *what, *output;
	bool html, json;
};

/* All of a stream, NUL-terminated; NULL: too much, or an error. */
static char *read_all(FILE *f, size_t *len)
{
	char *text = NULL;
	size_t cap = 0;

	*len = 0;
	for (;;) {
		size_t n;

		if (*len + 1 >= cap) {
			char *more =
			    cap < REPORT_MAX ? realloc(text, cap = cap ? 2 * cap : 65536) : NULL;

			if (!more)
				break;
			text = more;
		}
		n = fread(text + *len, 1, cap - 1 - *len, f);
		*len += n;
		text[*len] = '\0';
		if (n == 0 && feof(f) && !ferror(f))
			return text;
		if (n == 0)
			break;
	}
	free(text);
	return NULL;
}

/* ---- where it comes from ---- */

static char *read_file(const char *path)
{
	FILE *f = fopen(path, "re");
	size_t len;
	char *text = f ? read_all(f, &len) : NULL;
	struct json_value *v = text ? json_parse(text, len) : NULL;

	if (!f)
		log_warn("'%s' can't be read, and no job of that name runs here: %s", path,
			 strerror(errno));
	else if (!json_get(v, "job") || !json_get(v, "checkpoints"))
		log_warn("'%s' is no report: hale run --report FILE writes one", path);
	else {
		json_free(v);
		fclose(f);
		return text;
	}
	json_free(v);
	free(text);
	if (f)
		fclose(f);
	return NULL;
}

static char *read_job(const char *job)
{
	char *text = control_ask_text(job, "{\"op\":\"report\"}");

	if (!text)
		log_warn("job %s does not answer", job);
	return text;
}

static bool runs(const char *name)
{
	int fd = strlen(name) < JOB_ID_MAX && !strchr(name, '/') ? control_connect(name) : -1;

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* What `hale advise` says of it, as JSON; NULL: nothing, for it was not measured enough. */
static char *ask_advice(const struct wish *w, bool running)
{
	char self[] = "/proc/self/exe";
	char *argv[] = {self,	  "advise", running ? (char *)w->what : "--report",
			"--json", NULL,	    NULL};
	int ends[2], status = 1;
	char *text = NULL;
	size_t len;
	pid_t pid;
	FILE *f;

	if (!running) {
		argv[3] = (char *)w->what;
		argv[4] = (char *)"--json";
	}
	if (pipe(ends) != 0)
		return NULL;
	pid = fork();
	if (pid == 0) {
		dup2(ends[1], STDOUT_FILENO);
		close(ends[0]);
		close(ends[1]);
		if (!freopen("/dev/null", "w", stderr))
			_exit(127);
		execv(self, argv);
		_exit(127);
	}
	close(ends[1]);
	f = fdopen(ends[0], "r");
	text = f ? read_all(f, &len) : NULL;
	if (f)
		fclose(f);
	if (pid > 0)
		waitpid(pid, &status, 0);
	if (text && status == 0 && len > 0)
		return text;
	free(text);
	return NULL;
}

/* ---- in lines ---- */

/* An entry of a node that a later one replaces. */
static bool is_over(const struct json_value *nodes, size_t i)
{
	const char *name = json_text(json_get(json_at(nodes, i), "node"), "?");

	for (size_t k = i + 1; k < json_count(nodes); k++)
		if (strcmp(json_text(json_get(json_at(nodes, k), "node"), "?"), name) == 0)
			return true;
	return false;
}

/* "  at the end: node0 none, node1 2 ranks"; a job of one node has no such line. */
static void print_nodes(FILE *to, const struct json_value *nodes, bool ended)
{
	const char *before = ended ? "at the end: " : "now: ";

	if (json_count(nodes) < 2)
		return;
	fprintf(to, "%12s", "");
	for (size_t i = 0; i < json_count(nodes); i++) {
		int64_t ranks = json_number_int(json_get(json_at(nodes, i), "ranks"), 0);

		if (is_over(nodes, i))
			continue;
		fprintf(to, "%s%s ", before,
			json_text(json_get(json_at(nodes, i), "node"), "?"));
		before = ", ";
		if (ranks == 0)
			fputs("no ranks", to);
		else
			fprintf(to, "%" PRId64 " rank%s", ranks, ranks == 1 ? "" : "s");
	}
	fputc('\n', to);
}

/* What came of it: nothing was lost where another replica went on. */
static void print_then(FILE *to, const struct json_value *f)
{
	const char *then = json_text(json_get(f, "then"), "rollback");
	double restart = json_number(json_get(f, "restart_seconds"), 0);
	int64_t back = json_number_int(json_get(f, "rolled_back_to"), 0);
	char to_what[40] = "the beginning", a[16];

	if (strcmp(then, "replica") == 0) {
		fputs("the rank goes on in another replica\n", to);
		return;
	}
	if (strcmp(then, "end") == 0) {
		fputs("the job ends\n", to);
		return;
	}
	if (back)
		snprintf(to_what, sizeof(to_what), "checkpoint %" PRId64, back);
	fprintf(to, "back to %s, %s lost", to_what,
		units_show_seconds(json_number(json_get(f, "lost_seconds"), 0), a));
	if (restart > 0)
		fprintf(to, ", all ran again %s later", units_show_seconds(restart, a));
	fputc('\n', to);
}

static void print_failure(FILE *to, const struct json_value *f)
{
	char a[16];

	fprintf(to, "%10s  rank %" PRId64 " on %s: %s; ",
		units_show_seconds(json_number(json_get(f, "at_seconds"), 0), a),
		json_number_int(json_get(f, "rank"), -1), json_text(json_get(f, "node"), "?"),
		json_text(json_get(f, "reason"), "?"));
	print_then(to, f);
}

static void print_lines(FILE *to, const struct json_value *v, bool running)
{
	const struct json_value *checkpoints = json_get(v, "checkpoints");
	const struct json_value *failures = json_get(v, "failures");
	const struct json_value *migrations = json_get(v, "migrations");
	char a[16], b[16];
	uint64_t complete = (uint64_t)json_number_int(json_get(v, "checkpoints_before"), 0);
	double pause = 0;

	for (size_t i = 0; i < json_count(checkpoints); i++) {
		const struct json_value *one = json_at(checkpoints, i);

		complete += json_truth(json_get(one, "complete"), false);
		pause += json_number(json_get(one, "pause_seconds"), 0);
	}
	fprintf(to, "%s: %" PRId64 " rank%s, %s", json_text(json_get(v, "job"), "?"),
		json_number_int(json_get(v, "ranks"), 0),
		json_number_int(json_get(v, "ranks"), 0) == 1 ? "" : "s",
		units_show_seconds(json_number(json_get(v, "wall_seconds"), 0), a));
	if (!running && json_get(v, "exit"))
		fprintf(to, ", status %" PRId64, json_number_int(json_get(v, "exit"), 0));
	fprintf(to, "; %" PRIu64 " checkpoint%s, for which ranks stood still %s\n", complete,
		complete == 1 ? "" : "s",
		units_show_seconds(pause, b));
	for (size_t i = 0; i < json_count(failures); i++)
		print_failure(to, json_at(failures, i));
	for (size_t i = 0; i < json_count(migrations); i++) {
		const struct json_value *m = json_at(migrations, i);

		fprintf(to, "%10s  %" PRId64 " ranks went from %s to %s, stood still %s\n",
			units_show_seconds(json_number(json_get(m, "at_seconds"), 0), a),
			json_number_int(json_get(m, "ranks"), 0),
			json_text(json_get(m, "from"), "?"), json_text(json_get(m, "to"), "?"),
			units_show_seconds(json_number(json_get(m, "downtime_seconds"), 0), b));
	}
	print_nodes(to, json_get(v, "nodes"), !running);
}

/* ---- the command ---- */

static bool parse(struct wish *w, int argc, char **argv)
{
	*w = (struct wish){0};
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--html") == 0)
			w->html = true;
		else if (strcmp(argv[i], "--json") == 0)
			w->json = true;
		else if ((strcmp(argv[i], "--output") == 0 || strcmp(argv[i], "-o") == 0) &&
			 i + 1 < argc)
			w->output = argv[++i];
		else if (argv[i][0] != '-' && !w->what)
			w->what = argv[i];
		else
			return false;
	}
	return w->what && !(w->html && w->json);
}

static bool print(const struct wish *w, FILE *to, const char *text, bool running)
{
	struct json_value *v;

	if (w->json)
		return fputs(text, to) >= 0 && fputc('\n', to) != EOF;
	if (w->html) {
		char *advice = ask_advice(w, running), *json = NULL;
		bool good = asprintf(&json, "{\"report\":%s,\"advice\":%s}", text,
				     advice ? advice : "null") > 0 &&
			    page_print(to, json);
		free(advice);
		free(json);
		return good;
	}
	v = json_parse(text, strlen(text));
	if (json_get(v, "job"))
		print_lines(to, v, running);
	json_free(v);
	return !ferror(to);
}

int cli_report(int argc, char **argv)
{
	struct wish w;
	bool running, good;
	char *text;
	FILE *to = stdout;

	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
			return cli_help("report");
	if (!parse(&w, argc, argv)) {
		log_warn(
		    "hale report takes a FILE that hale run --report has written, or a JOB, and "
		    "--html or --json, --output FILE; `hale help report` says more");
		return EXIT_USAGE;
	}
	running = access(w.what, F_OK) != 0 && runs(w.what);
	text = running ? read_job(w.what) : read_file(w.what);
	if (!text)
		return EXIT_USAGE;
	if (w.output)
		to = fopen(w.output, "we");
	good = to && print(&w, to, text, running);
	good = to && (to == stdout ? fflush(to) : fclose(to)) == 0 && good;
	if (!good)
		log_warn("cannot write '%s': %s", w.output ? w.output : "the output",
			 strerror(errno));
	free(text);
	return good ? 0 : 1;
}
