/* SPDX-License-Identifier: BSD-3-Clause */
/* hale nodes, and what runs on them: hale agent. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "base/base.h"
#include "base/json.h"
#include "cli/cli.h"
#include "agent/agent.h"
#include "control/control.h"
#include "node/job.h"
#include "wire/attach/attach.h"

static int usage(const char *command, const char *what)
{
	log_warn("%s; `hale help %s` says how", what, command);
	return EXIT_USAGE;
}

/* ---- hale agent ---- */

/* Its arguments are for who looks at the process table; all else comes through the session. */
int cli_agent(int argc, char **argv)
{
	const char *attach = NULL;
	bool service = false;
	int in;
	int out;

	for (int i = 1; i < argc; i++) {
		bool known = strcmp(argv[i], "--job") == 0 || strcmp(argv[i], "--node") == 0 ||
			     strcmp(argv[i], "--attach") == 0;

		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
			return cli_help("agent");
		if (strcmp(argv[i], "--service") == 0) {
			service = true;
			continue;
		}
		if (!known || ++i == argc)
			return usage("agent", "hale agent is started by hale run");
		if (strcmp(argv[i - 1], "--attach") == 0)
			attach = argv[i];
	}
	if (isatty(STDIN_FILENO) || isatty(STDOUT_FILENO))
		return usage("agent",
			     "hale agent is started by hale run, and speaks with it through "
			     "its stdin and stdout");
	if (attach)
		return cli_attach_node(attach);
	if (service)
		return attach_pass_to_service();
	in = dup(STDIN_FILENO);
	out = dup(STDOUT_FILENO);
	if (in < 0 || out < 0 || !freopen("/dev/null", "r", stdin) ||
	    !freopen("/dev/null", "w", stdout)) {
		log_warn("the agent's streams can't be used: %m");
		return EXIT_USAGE;
	}
	return agent_run(in, out);
}

/* ---- hale nodes ---- */

static void copy_node(struct json_out *j, const struct json_value *n)
{
	json_open_object(j, NULL);
	json_string(j, "node", json_text(json_get(n, "node"), "?"));
	json_string(j, "state", json_text(json_get(n, "state"), "?"));
	json_bool(j, "usable", json_truth(json_get(n, "usable"), true));
	json_bool(j, "waits", json_truth(json_get(n, "waits"), false));
	json_string(j, "unfit", json_text(json_get(n, "unfit"), ""));
	json_int(j, "standing", json_number_int(json_get(n, "standing"), 0));
	json_int(j, "warm_bytes", json_number_int(json_get(n, "warm_bytes"), 0));
	json_int(j, "ranks", json_number_int(json_get(n, "ranks"), 0));
	json_int(j, "slots", json_number_int(json_get(n, "slots"), 0));
	json_int(j, "cores", json_number_int(json_get(n, "cores"), 0));
	json_string(j, "host", json_text(json_get(n, "host"), "?"));
	json_int(j, "pid", json_number_int(json_get(n, "pid"), 0));
	json_close_object(j);
}

static void print_json(const struct json_value *answer)
{
	const struct json_value *nodes = json_get(answer, "nodes");
	struct json_out j;

	json_out_init(&j);
	json_open_object(&j, NULL);
	json_string(&j, "id", json_text(json_get(answer, "id"), "?"));
	json_open_array(&j, "nodes");
	for (size_t i = 0; i < json_count(nodes); i++)
		copy_node(&j, json_at(nodes, i));
	json_close_array(&j);
	json_close_object(&j);
	if (j.text)
		puts(j.text);
	json_out_fini(&j);
}

/* Behind a spare: what it has ready, or why it can't be one. */
static void print_warm(const struct json_value *n)
{
	const char *unfit = json_text(json_get(n, "unfit"), "");
	int64_t bytes = json_number_int(json_get(n, "warm_bytes"), 0);
	int64_t standing = json_number_int(json_get(n, "standing"), 0);
	char size[16];

	if (*unfit)
		printf("  (could not take over ranks: %s)", unfit);
	else if (bytes > 0)
		printf("  (%s of files in memory, %" PRId64 " process%s ready)",
		       units_show_bytes((uint64_t)bytes, size), standing,
		       standing == 1 ? "" : "es");
}

static void print_table(const struct json_value *answer)
{
	const struct json_value *nodes = json_get(answer, "nodes");

	printf("%-24s %-9s %6s %6s  %s\n", "node", "state", "ranks", "cores", "host");
	for (size_t i = 0; i < json_count(nodes); i++) {
		const struct json_value *n = json_at(nodes, i);

		printf("%-24s %-9s %6" PRId64 " %6" PRId64 "  %s%s",
		       json_text(json_get(n, "node"), "?"), json_text(json_get(n, "state"), "?"),
		       json_number_int(json_get(n, "ranks"), 0),
		       json_number_int(json_get(n, "cores"), 0),
		       json_text(json_get(n, "host"), "?"),
		       json_truth(json_get(n, "usable"), true) ? "" : "  (unusable)");
		print_warm(n);
		putchar('\n');
	}
}

int cli_nodes(int argc, char **argv)
{
	const char *asked = NULL;
	char job[JOB_ID_MAX];
	struct json_value *answer = NULL;
	struct error err;
	bool json = false;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
			return cli_help("nodes");
		if (strcmp(argv[i], "--json") == 0)
			json = true;
		else if (argv[i][0] != '-' && !asked)
			asked = argv[i];
		else
			return usage("nodes", "hale nodes takes a job and --json");
	}
	if (control_choose(asked, job, &err) != HALE_OK) {
		log_warn("%s", err.text);
		return EXIT_USAGE;
	}
	if (control_ask(job, "{\"op\":\"nodes\"}", &answer, &err) != HALE_OK) {
		log_warn("%s", err.text);
		json_free(answer);
		return 1;
	}
	if (json)
		print_json(answer);
	else
		print_table(answer);
	json_free(answer);
	return 0;
}
