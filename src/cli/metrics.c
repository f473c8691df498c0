/* SPDX-License-Identifier: BSD-3-Clause */
/* hale metrics: what Prometheus reads of this user's running jobs; to stdout, into a file for
 * node_exporter, or by HTTP. A process of its own: whatever becomes of it, jobs go on. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>
#include "base/base.h"
#include "base/json.h"
#include "cli/cli.h"
#include "control/control.h"
#include "node/job.h"

struct metrics_request {
	const char *listen, *textfile;
	double every;
};

/* ---- the text ---- */

/* Where a number stands in a job's answer: KEY, or KEY of the object KIND. */
struct metrics_source {
	const char *labels; /* besides the job's; "": none */
	const char *object, *key;
};

enum { METRIC_SERIES = 2 };

struct metric {
	const char *name, *type, *help;
	struct metrics_source from[METRIC_SERIES];
};

static const struct metric metrics[] = {
    {"hale_job_ranks", "gauge", "Ranks of the job.", {{"", NULL, "ranks"}}},
    {"hale_job_nodes", "gauge", "Nodes of the job, spares included.", {{"", NULL, "nodes"}}},
    {"hale_job_nodes_usable", "gauge", "Nodes that may have ranks.", {{"", NULL, "nodes_usable"}}},
    {"hale_job_run_seconds", "gauge", "Time since the job began.", {{"", NULL, "seconds"}}},
    {"hale_job_protected",
     "gauge",
     "1: the newest attempt of a checkpoint has succeeded.",
     {{"", NULL, "protected"}}},
    {"hale_checkpoints_total",
     "counter",
     "Complete checkpoints.",
     {{"kind=\"full\"", "full", "count"}, {"kind=\"incremental\"", "incremental", "count"}}},
    {"hale_checkpoints_given_up_total",
     "counter",
     "Checkpoints that were begun and given up.",
     {{"", NULL, "given_up"}}},
    {"hale_checkpoint_bytes_total",
     "counter",
     "Bytes written for complete checkpoints.",
     {{"kind=\"full\"", "full", "bytes"}, {"kind=\"incremental\"", "incremental", "bytes"}}},
    {"hale_checkpoint_duration_seconds_total",
     "counter",
     "Time from the beginning of checkpoints until they were complete.",
     {{"kind=\"full\"", "full", "seconds"}, {"kind=\"incremental\"", "incremental", "seconds"}}},
    {"hale_checkpoint_pause_seconds_total",
     "counter",
     "Time that ranks stood still for checkpoints.",
     {{"kind=\"full\"", "full", "pause_seconds"},
      {"kind=\"incremental\"", "incremental", "pause_seconds"}}},
    {"hale_checkpoint_age_seconds",
     "gauge",
     "Time since the newest checkpoint was complete.",
     {{"", NULL, "checkpoint_age_seconds"}}},
    {"hale_faults_total",
     "counter",
     "Deaths of ranks and losses of nodes.",
     {{"kind=\"rank\"", NULL, "rank_failures"}, {"kind=\"node\"", NULL, "node_failures"}}},
    {"hale_faults_recovered_total",
     "counter",
     "Those after which the job ran on.",
     {{"kind=\"rank\"", NULL, "rank_failures_recovered"},
      {"kind=\"node\"", NULL, "node_failures_recovered"}}},
    {"hale_rollbacks_total",
     "counter",
     "Rollbacks, and starts from the beginning.",
     {{"", NULL, "rollbacks"}}},
    {"hale_lost_seconds_total",
     "counter",
     "Work that was done again after faults.",
     {{"", NULL, "lost_seconds"}}},
    {"hale_restart_seconds_total",
     "counter",
     "Time from faults until all ranks ran again.",
     {{"", NULL, "restart_seconds"}}},
    {"hale_migrations_total",
     "counter",
     "Migrations of the ranks of a node.",
     {{"", NULL, "migrations"}}},
};

static void put_label(FILE *f, const char *text)
{
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			fputc('\\', f);
		if (*text == '\n')
			fputs("\\n", f);
		else
			fputc(*text, f);
	}
}

static void put_sample(FILE *f, const char *name, const struct metrics_source *s,
		       const struct json_value *job)
{
	const struct json_value *from = s->object ? json_get(job, s->object) : job;
	const struct json_value *v = json_get(from, s->key);
	double number = json_number(v, json_truth(v, false));

	if (!v)
		return;
	fprintf(f, "%s{job=\"", name);
	put_label(f, json_text(json_get(job, "id"), "?"));
	fprintf(f, "\"%s%s} %.17g\n", s->labels[0] ? "," : "", s->labels, number);
}

static void put_info(FILE *f, struct json_value *const *jobs, size_t count)
{
	fputs("# HELP hale_job_info The program and the state of a running job.\n"
	      "# TYPE hale_job_info gauge\n",
	      f);
	for (size_t i = 0; i < count; i++) {
		if (!jobs[i])
			continue;
		fputs("hale_job_info{job=\"", f);
		put_label(f, json_text(json_get(jobs[i], "id"), "?"));
		fputs("\",program=\"", f);
		put_label(f, json_text(json_get(jobs[i], "program"), "?"));
		fputs("\",state=\"", f);
		put_label(f, json_text(json_get(jobs[i], "state"), "?"));
		fputs("\"} 1\n", f);
	}
}

static void print_all(FILE *f, struct json_value *const *jobs, size_t count)
{
	put_info(f, jobs, count);
	for (size_t m = 0; m < ARRAY_LEN(metrics); m++) {
		fprintf(f, "# HELP %s %s\n# TYPE %s %s\n", metrics[m].name, metrics[m].help,
			metrics[m].name, metrics[m].type);
		for (size_t i = 0; i < count; i++)
			for (size_t k = 0; jobs[i] && k < METRIC_SERIES && metrics[m].from[k].key;
			     k++)
				put_sample(f, metrics[m].name, &metrics[m].from[k], jobs[i]);
	}
}

/* malloc'ed; NULL: no memory. Jobs that don't answer at once are left out. */
static char *collect(size_t *len)
{
	char(*jobs)[JOB_ID_MAX];
	size_t count = control_jobs(&jobs);
	struct json_value **answers = calloc(count + 1, sizeof(struct json_value *));
	hale_status_t *status = calloc(count + 1, sizeof(*status));
	char *text = NULL;
	FILE *f = open_memstream(&text, len);

	if (answers && status && f) {
		control_ask_each(jobs, count, "{\"op\":\"metrics\"}", answers, status);
		for (size_t i = 0; i < count; i++) {
			if (status[i] == HALE_OK && json_get(answers[i], "id"))
				continue;
			json_free(answers[i]);
			answers[i] = NULL;
		}
		print_all(f, answers, count);
	}
	for (size_t i = 0; answers && i < count; i++)
		json_free(answers[i]);
	free(answers);
	free(status);
	free(jobs);
	if (f && fclose(f) != 0) {
		free(text);
		text = NULL;
	}
	return text;
}

/* ---- a file ---- */

/* Beside it and then renamed: who reads it never sees half of it. */
static bool write_file(const char *path)
{
	char temporary[PATH_MAX];
	size_t len = 0;
	char *text = collect(&len);
	FILE *f;
	bool good;

	snprintf(temporary, sizeof(temporary), "%s.%d.tmp", path, (int)getpid());
	f = text ? fopen(temporary, "we") : NULL;
	good = f && fwrite(text, 1, len, f) == len;
	good = f && fclose(f) == 0 && good;
	good = good && rename(temporary, path) == 0;
	if (!good) {
		log_warn("cannot write '%s': %m", path);
		unlink(temporary);
	}
	free(text);
	return good;
}

static int write_often(const struct metrics_request *q)
{
	int ends = cli_end_signals();
	struct pollfd p = {.fd = ends, .events = POLLIN};

	if (ends < 0)
		return 1;
	while (write_file(q->textfile)) {
		int n = poll(&p, 1, (int)(q->every * 1000));

		if (n == 0)
			continue;
		unlink(q->textfile); /* nobody is there who keeps it true */
		close(ends);
		return 0;
	}
	close(ends);
	return 1;
}

/* ---- HTTP ---- */

static void send_all(int fd, const char *text, size_t len)
{
	while (len > 0) {
		ssize_t n = send(fd, text, len, MSG_NOSIGNAL);

		if (n <= 0)
			return;
		text += n;
		len -= (size_t)n;
	}
}

static void answer(int fd, const char *status, const char *type, const char *body, size_t len)
{
	char head[256];
	int n = snprintf(head, sizeof(head),
			 "HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
			 "Connection: close\r\n\r\n",
			 status, type, len);

	send_all(fd, head, (size_t)n);
	send_all(fd, body, len);
}

static void answer_metrics(int fd)
{
	size_t len = 0;
	char *text = collect(&len);

	if (text)
		answer(fd, "200 OK", "text/plain; version=0.0.4; charset=utf-8", text, len);
	else
		answer(fd, "500 Internal Server Error", "text/plain", "", 0);
	free(text);
}

/* One request, of whoever has sent it whole within a second. */
static void serve(int fd)
{
	static const char page[] = "hale metrics: see /metrics\n";
	struct timeval patience = {.tv_sec = 1};
	char request[4096];
	size_t len = 0;

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	for (;;) {
		ssize_t n = recv(fd, request + len, sizeof(request) - 1 - len, 0);

		if (n <= 0)
			return;
		len += (size_t)n;
		request[len] = '\0';
		if (strstr(request, "\r\n\r\n"))
			break;
		if (len == sizeof(request) - 1) {
			answer(fd, "431 Request Header Fields Too Large", "text/plain", "", 0);
			return;
		}
	}
	if (strncmp(request, "GET /metrics ", 13) == 0 ||
	    strncmp(request, "GET /metrics?", 13) == 0)
		answer_metrics(fd);
	else if (strncmp(request, "GET / ", 6) == 0)
		answer(fd, "200 OK", "text/plain", page, sizeof(page) - 1);
	else if (strncmp(request, "GET ", 4) == 0)
		answer(fd, "404 Not Found", "text/plain", page, sizeof(page) - 1);
	else
		answer(fd, "405 Method Not Allowed", "text/plain", page, sizeof(page) - 1);
}

/* "9417", "127.0.0.1:9417", "0.0.0.0:9417". Port 0: any. */
static bool parse_address(const char *text, struct sockaddr_in *a)
{
	const char *colon = strrchr(text, ':');
	char host[64] = "127.0.0.1";
	long port;

	if (colon)
		snprintf(host, sizeof(host), "%.*s", (int)(colon - text), text);
	*a = (struct sockaddr_in){.sin_family = AF_INET};
	if (!units_parse_int(colon ? colon + 1 : text, 0, 65535, &port) ||
	    inet_pton(AF_INET, strcmp(host, "localhost") == 0 ? "127.0.0.1" : host, &a->sin_addr) !=
		1)
		return false;
	a->sin_port = htons((uint16_t)port);
	return true;
}

static int listen_at(struct sockaddr_in *a)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1;
	socklen_t len = sizeof(*a);

	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	if (bind(fd, (struct sockaddr *)a, sizeof(*a)) == 0 && listen(fd, 16) == 0 &&
	    getsockname(fd, (struct sockaddr *)a, &len) == 0)
		return fd;
	close(fd);
	return -1;
}

static int serve_all(const struct metrics_request *q)
{
	struct sockaddr_in a;
	char name[INET_ADDRSTRLEN];
	int ends, fd;

	if (!parse_address(q->listen, &a)) {
		log_warn("--listen takes a port, or an address of IPv4 and a port, not '%s'",
			 q->listen);
		return EXIT_USAGE;
	}
	ends = cli_end_signals();
	fd = ends >= 0 ? listen_at(&a) : -1;
	if (fd < 0) {
		log_warn("cannot listen at %s: %m", q->listen);
		return EXIT_USAGE;
	}
	log_warn("metrics of your jobs at http://%s:%u/metrics",
		 inet_ntop(AF_INET, &a.sin_addr, name, sizeof(name)), ntohs(a.sin_port));
	for (;;) {
		struct pollfd p[2] = {{.fd = ends, .events = POLLIN}, {.fd = fd, .events = POLLIN}};
		int client;

		if (poll(p, 2, -1) < 0 && errno != EINTR)
			break;
		if (p[0].revents)
			break;
		if (!p[1].revents)
			continue;
		client = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
		if (client < 0)
			continue;
		serve(client);
		close(client);
	}
	close(fd);
	close(ends);
	return 0;
}

/* ---- the command ---- */

static bool parse(struct metrics_request *q, int argc, char **argv)
{
	*q = (struct metrics_request){.every = 15};
	for (int i = 1; i < argc; i++) {
		const char *value = i + 1 < argc ? argv[i + 1] : NULL;

		if (value && strcmp(argv[i], "--listen") == 0)
			q->listen = value;
		else if (value && strcmp(argv[i], "--textfile") == 0)
			q->textfile = value;
		else if (!value || strcmp(argv[i], "--every") != 0 ||
			 !units_parse_seconds(value, &q->every) || q->every < 0.1 ||
			 q->every > 86400)
			return false;
		i++;
	}
	return !(q->listen && q->textfile);
}

int cli_metrics(int argc, char **argv)
{
	struct metrics_request q;
	size_t len = 0;
	char *text;

	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
			return cli_help("metrics");
	if (!parse(&q, argc, argv)) {
		log_warn(
		    "hale metrics takes --listen [ADDRESS:]PORT or --textfile FILE with --every "
		    "TIME; `hale help metrics` says more");
		return EXIT_USAGE;
	}
	if (q.listen)
		return serve_all(&q);
	if (q.textfile)
		return write_often(&q);
	text = collect(&len);
	if (text)
		fwrite(text, 1, len, stdout);
	free(text);
	return text ? 0 : 1;
}
