// SPDX-License-Identifier: BSD-3-Clause
/* hale replicate, hale clone: more or fewer replicas of a running job's ranks. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "base/base.h"
#include "base/json.h"
#include "cli/cli.h"
#include "control/control.h"
#include "node/job.h"

enum { LOOK_US = 50000 };

struct replicate_wish {
	const char *job, *to, *rank;
};

static bool parse(int argc, char **argv, struct replicate_wish *w, bool *help)
{
	*w = (struct replicate_wish){0};
	*help = false;
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
			*help = true;
		else if (strcmp(argv[i], "--to") == 0 && i + 1 < argc)
			w->to = argv[++i];
		else if (strcmp(argv[i], "--rank") == 0 && i + 1 < argc)
			w->rank = argv[++i];
		else if (argv[i][0] != '-' && !w->job)
			w->job = argv[i];
		else
			return false;
	}
	return true;
}

/* ---- waiting until it is so ---- */

static bool is_there(const struct json_value *process)
{
	const char *state = json_text(json_get(process, "state"), "lost");

	return strcmp(state, "lost") != 0 && strcmp(state, "absent") != 0;
}

/* Of each rank so many processes run. */
static bool as_wanted(const struct json_value *job, int64_t degree)
{
	const struct json_value *all = json_get(job, "ranks");
	int64_t running[JOB_RANKS_MAX] = {0}, ranks = 0;

	for (size_t i = 0; i < json_count(all); i++) {
		const struct json_value *p = json_at(all, i);
		int64_t r = json_number_int(json_get(p, "rank"), -1);

		if (r < 0 || r >= JOB_RANKS_MAX)
			return false;
		ranks = r + 1 > ranks ? r + 1 : ranks;
		running[r] += is_there(p);
	}
	for (int64_t r = 0; r < ranks; r++)
		if (running[r] != degree)
			return false;
	return ranks > 0;
}

/* The slot's process, where it runs; NULL: it doesn't yet. */
static const char *node_of(const struct json_value *job, int64_t rank, int64_t slot)
{
	const struct json_value *all = json_get(job, "ranks");

	for (size_t i = 0; i < json_count(all); i++) {
		const struct json_value *p = json_at(all, i);

		if (json_number_int(json_get(p, "rank"), -1) == rank &&
		    json_number_int(json_get(p, "slot"), -1) == slot && is_there(p))
			return json_text(json_get(p, "node"), "?");
	}
	return NULL;
}

/* slot < 0: until each rank has `degree` processes. */
static int wait_for(const char *job, int64_t rank, int64_t slot, int64_t degree)
{
	struct json_value *answer;
	struct error err;
	const char *node = NULL;
	bool done = false;

	while (!done) {
		answer = NULL;
		if (control_ask(job, "{\"op\":\"ps\"}", &answer, &err) != HALE_OK) {
			log_warn("it is not known what came of it: %s", err.text);
			return 1;
		}
		if (slot < 0)
			done = as_wanted(answer, degree);
		else
			done = (node = node_of(answer, rank, slot)) != NULL;
		if (done && slot >= 0)
			printf("rank %ld: replica %ld runs on %s\n", (long)rank, (long)slot, node);
		json_free(answer);
		if (!done)
			usleep(LOOK_US);
	}
	if (slot < 0)
		printf("each rank runs in %ld process%s\n", (long)degree, degree > 1 ? "es" : "");
	return 0;
}

/* ---- asking ---- */

static int ask(const char *job, struct json_out *request, int64_t rank, int64_t degree)
{
	struct json_value *answer = NULL;
	struct error err;
	int status = 1;

	if (control_ask(job, request->text, &answer, &err) != HALE_OK)
		log_warn("%s", err.text);
	else
		status =
		    wait_for(job, rank,
			     rank < 0 ? -1 : json_number_int(json_get(answer, "slot"), 0), degree);
	json_free(answer);
	json_out_fini(request);
	return status;
}

int cli_replicate(int argc, char **argv)
{
	char job[JOB_ID_MAX];
	struct json_out j;
	struct error err;
	struct replicate_wish w;
	bool help;
	long to;

	if (!parse(argc, argv, &w, &help) || (!help && (w.rank || !w.to))) {
		log_warn("hale replicate takes --to 1, 2 or 3, and a job; `hale help replicate` "
			 "says how");
		return EXIT_USAGE;
	}
	if (help)
		return cli_help("replicate");
	if (!units_parse_int(w.to, 1, 3, &to)) {
		log_warn("--to takes 1, 2 or 3: processes that run each rank");
		return EXIT_USAGE;
	}
	if (control_choose(w.job, job, &err) != HALE_OK) {
		log_warn("%s", err.text);
		return EXIT_USAGE;
	}
	json_out_init(&j);
	json_open_object(&j, NULL);
	json_string(&j, "op", "replicate");
	json_int(&j, "to", to);
	json_close_object(&j);
	return ask(job, &j, -1, to);
}

int cli_clone(int argc, char **argv)
{
	char job[JOB_ID_MAX];
	struct json_out j;
	struct error err;
	struct replicate_wish w;
	bool help;
	long rank;

	if (!parse(argc, argv, &w, &help) || (!help && !w.rank)) {
		log_warn(
		    "hale clone takes --rank R, --to NODE and a job; `hale help clone` says how");
		return EXIT_USAGE;
	}
	if (help)
		return cli_help("clone");
	if (!units_parse_int(w.rank, 0, JOB_RANKS_MAX, &rank)) {
		log_warn("--rank takes the number of a rank");
		return EXIT_USAGE;
	}
	if (control_choose(w.job, job, &err) != HALE_OK) {
		log_warn("%s", err.text);
		return EXIT_USAGE;
	}
	json_out_init(&j);
	json_open_object(&j, NULL);
	json_string(&j, "op", "clone");
	json_int(&j, "rank", rank);
	if (w.to)
		json_string(&j, "to", w.to);
	json_close_object(&j);
	return ask(job, &j, rank, 0);
}
