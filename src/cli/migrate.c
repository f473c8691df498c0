/* SPDX-License-Identifier: BSD-3-Clause */
/* hale migrate: the ranks of a node of a running job go to another one. */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "base/base.h"
#include "base/json.h"
#include "cli/cli.h"
#include "control/control.h"
#include "node/job.h"

struct migrate_migration {
	const char *job, *from, *to;
	const char *via; /* a folder, "": the job's for checkpoints; NULL: no files */
	bool help, json;
};

static bool parse(int argc, char **argv, struct migrate_migration *m)
{
	*m = (struct migrate_migration){0};
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
			m->help = true;
		else if (strcmp(argv[i], "--from") == 0 && i + 1 < argc)
			m->from = argv[++i];
		else if (strcmp(argv[i], "--to") == 0 && i + 1 < argc)
			m->to = argv[++i];
		else if (strcmp(argv[i], "--json") == 0)
			m->json = true;
		else if (strcmp(argv[i], "--via-files") == 0)
			m->via = "";
		else if (strncmp(argv[i], "--via-files=", 12) == 0 && argv[i][12])
			m->via = argv[i] + 12;
		else if (argv[i][0] != '-' && !m->job)
			m->job = argv[i];
		else
			return false;
	}
	return true;
}

static void show(const struct json_value *a)
{
	char bytes[16], total[16], down[16];
	int64_t ranks = json_number_int(json_get(a, "ranks"), 0);

	printf("%" PRId64 " rank%s moved from %s to %s: %s in %s, the program stood still for %s\n",
	       ranks, ranks == 1 ? "" : "s", json_text(json_get(a, "from"), "?"),
	       json_text(json_get(a, "to"), "?"),
	       units_show_bytes((uint64_t)json_number_int(json_get(a, "bytes"), 0), bytes),
	       units_show_seconds(json_number(json_get(a, "seconds"), 0), total),
	       units_show_seconds(json_number(json_get(a, "downtime_seconds"), 0), down));
}

/* As in the report. */
static void show_json(const struct json_value *a)
{
	static const char *const whole[] = {"ranks",	     "bytes",  "relayed_bytes",
					    "stopped_bytes", "rounds", "held_rounds"};
	static const char *const real[] = {"seconds", "downtime_seconds"};
	struct json_out j;

	json_out_init(&j);
	json_open_object(&j, NULL);
	json_string(&j, "from", json_text(json_get(a, "from"), "?"));
	json_string(&j, "to", json_text(json_get(a, "to"), "?"));
	for (size_t i = 0; i < sizeof(whole) / sizeof(whole[0]); i++)
		json_uint(&j, whole[i], (uint64_t)json_number_int(json_get(a, whole[i]), 0));
	for (size_t i = 0; i < sizeof(real) / sizeof(real[0]); i++)
		json_double(&j, real[i], json_number(json_get(a, real[i]), 0));
	json_close_object(&j);
	printf("%s\n", j.text);
	json_out_fini(&j);
}

/* A folder is meant as it is seen from here; `hale run` stands elsewhere. "": the job's. */
static bool put_folder(struct json_out *j, const char *via)
{
	char here[PATH_MAX], path[CONTROL_REQUEST_MAX / 2];

	if (*via && *via != '/') {
		if (!getcwd(here, sizeof(here)) ||
		    snprintf(path, sizeof(path), "%s/%s", here, via) >= (int)sizeof(path))
			return false;
		via = path;
	}
	json_string(j, "via", via);
	return true;
}

static int ask(const char *job, const struct migrate_migration *m)
{
	struct json_value *answer = NULL;
	struct json_out j;
	struct error err;
	int status = 0;

	json_out_init(&j);
	json_open_object(&j, NULL);
	json_string(&j, "op", "migrate");
	json_string(&j, "from", m->from);
	if (m->to)
		json_string(&j, "to", m->to);
	if (m->via && !put_folder(&j, m->via)) {
		log_warn(
		    "the path of --via-files is too long from here, or the working folder is gone");
		json_out_fini(&j);
		return EXIT_USAGE;
	}
	json_close_object(&j);
	if (control_ask(job, j.text, &answer, &err) == HALE_OK) {
		if (m->json)
			show_json(answer);
		else
			show(answer);
	} else {
		log_warn("%s", err.text);
		status = 1;
	}
	json_free(answer);
	json_out_fini(&j);
	return status;
}

int cli_migrate(int argc, char **argv)
{
	struct migrate_migration m;
	char job[JOB_ID_MAX];
	struct error err;

	if (!parse(argc, argv, &m)) {
		log_warn("hale migrate takes --from NODE, --to NODE, --via-files[=DIR], --json and "
			 "a job; "
			 "`hale help migrate` says how");
		return EXIT_USAGE;
	}
	if (m.help)
		return cli_help("migrate");
	if (!m.from) {
		log_warn(
		    "which node are the ranks to leave? Say --from NODE; `hale nodes` lists them");
		return EXIT_USAGE;
	}
	if (control_choose(m.job, job, &err) != HALE_OK) {
		log_warn("%s", err.text);
		return EXIT_USAGE;
	}
	return ask(job, &m);
}
