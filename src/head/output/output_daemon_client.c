/* SPDX-License-Identifier: BSD-3-Clause */
/* What a new head asks the output daemon of the one before it. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "base/base.h"
#include "base/json.h"
#include "control/control.h"
#include "head/output/output_daemon.h"

/* Of a machine that does other things, too: what it has printed nobody else knows. */
#define CUT_SECONDS    30.0
#define ANSWER_SECONDS 2.0

static struct json_value *ask(const char *job, uint32_t epoch, const char *op, double patience)
{
	char request[64];

	snprintf(request, sizeof(request), "{\"op\":\"%s\"}", op);
	return control_ask_at(job, "output", epoch, request, patience);
}

bool output_daemon_find(const char *job, char *folder, bool *headless)
{
	struct json_value *v = ask(job, 0, "where", ANSWER_SECONDS);
	const char *path = json_text(json_get(v, "folder"), "");
	bool found = path[0] == '/';

	snprintf(folder, PATH_MAX, "%s", path);
	*headless = json_truth(json_get(v, "headless"), false);
	json_free(v);
	return found;
}

enum { BACK = 8 };

bool output_daemon_cut(const char *job, uint32_t epoch, uint32_t nranks, uint64_t (*printed)[2])
{
	struct json_value *v = NULL;
	const struct json_value *list = NULL;
	bool found = false, mute = false;

	/* one that died while it took over may have had none; what is older than one that is there
	 * and doesn't answer is of no use */
	for (uint32_t e = epoch; !found && !mute && e > 0 && e + BACK > epoch; e--) {
		json_free(v);
		v = ask(job, e, "attach", CUT_SECONDS);
		mute = !v && errno == ETIMEDOUT;
		list = json_get(v, "printed");
		found = json_count(list) == 2 * (size_t)nranks;
	}

	for (uint32_t r = 0; r < nranks; r++)
		for (size_t i = 0; i < 2; i++)
			printed[r][i] = found
					    ? (uint64_t)json_number_int(json_at(list, 2 * r + i), 0)
					    : OUTPUT_DAEMON_UNKNOWN;
	json_free(v);
	return found;
}

void output_daemon_release(const char *job, uint32_t epoch)
{
	for (uint32_t e = epoch; e > 0 && e + BACK > epoch; e--)
		json_free(ask(job, e, "release", ANSWER_SECONDS));
}
