/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/memory.h"
#include <limits.h>
#include <stdio.h>
#include <string.h>

/* The number behind name in a file of lines "NAME VALUE", in bytes. */
static bool field(const char *path, const char *name, uint64_t unit, uint64_t *value)
{
	size_t len = strlen(name);
	unsigned long number;
	char line[256];
	bool found = false;
	FILE *f = fopen(path, "re");

	while (f && !found && fgets(line, sizeof(line), f))
		if (!strncmp(line, name, len) && sscanf(line + len, " %lu", &number) == 1) {
			*value = number * unit;
			found = true;
		}
	if (f)
		fclose(f);
	return found;
}

/* Files of control groups, by version. */
struct names {
	const char *folder, *limit, *used, *cache;
};

static void limit_by(const char *group, const struct names *n, struct memory_room *room)
{
	char path[PATH_MAX];
	uint64_t limit, used = 0, cache = 0;

	snprintf(path, sizeof(path), "%.3900s/%s", group, n->limit);
	if (!field(path, "", 1, &limit)) /* "max" */
		return;
	snprintf(path, sizeof(path), "%.3900s/%s", group, n->used);
	if (!field(path, "", 1, &used))
		return;
	snprintf(path, sizeof(path), "%.3900s/memory.stat", group);
	field(path, n->cache, 1, &cache);
	used -= cache < used ? cache : used;
	if (limit < room->total)
		room->total = limit;
	if (limit < used)
		room->available = 0;
	else if (limit - used < room->available)
		room->available = limit - used;
}

/* A group, and those that it is in. */
static void limit_by_all(const char *root, const char *group, const struct names *n,
			 struct memory_room *room)
{
	char path[PATH_MAX / 2];
	size_t base = (size_t)snprintf(path, sizeof(path), "%.1000s%s", root, n->folder);

	snprintf(path + base, sizeof(path) - base, "%s", group);
	for (;;) {
		char *end = strrchr(path + base, '/');

		limit_by(path, n, room);
		if (!end)
			return;
		*end = '\0';
	}
}

bool memory_look(const char *root, struct memory_room *room)
{
	static const struct names second = {"/sys/fs/cgroup", "memory.max", "memory.current",
					    "inactive_file"};
	static const struct names first = {"/sys/fs/cgroup/memory", "memory.limit_in_bytes",
					   "memory.usage_in_bytes", "total_inactive_file"};
	char path[PATH_MAX], line[1024];
	FILE *f;

	snprintf(path, sizeof(path), "%s/proc/meminfo", root);
	if (!field(path, "MemTotal:", 1024, &room->total) ||
	    !field(path, "MemAvailable:", 1024, &room->available))
		return false;
	snprintf(path, sizeof(path), "%s/proc/self/cgroup", root);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) { /* number:controllers:group */
		char *controllers = strchr(line, ':');
		char *group = controllers ? strchr(controllers + 1, ':') : NULL;

		if (!group)
			continue;
		*group++ = '\0';
		controllers++;
		group[strcspn(group, "\n")] = '\0';
		if (!*controllers)
			limit_by_all(root, group, &second, room);
		else if (strstr(controllers, "memory"))
			limit_by_all(root, group, &first, room);
	}
	if (f)
		fclose(f);
	return true;
}
