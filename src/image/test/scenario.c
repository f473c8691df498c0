/* SPDX-License-Identifier: BSD-3-Clause */
#include "image/test/scenario.h"

#include <string.h>

char scenario_folder[PATH_LEN - 64];
const char *scenario_mode = "";

bool scenario_enter(void)
{
	const char *where = getenv("T_FOLDER"), *how = getenv("T_MODE");
	if (where)
		strncpy(scenario_folder, where, sizeof(scenario_folder) - 1);
	if (how)
		scenario_mode = how;
	return where;
}

const char *folder(void)
{
	return scenario_folder;
}

const char *in_folder(const char *name)
{
	static char path[4][PATH_LEN];
	static int next;
	char *p = path[next++ % 4];
	snprintf(p, PATH_LEN, "%s/%s", scenario_folder, name);
	return p;
}

int scenario_run(const struct scenario *const *all, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		for (const struct scenario *s = all[i]; s->name; s++)
			if (!strcmp(s->name, name)) {
				s->run();
				return 0;
			}
	return 2;
}
