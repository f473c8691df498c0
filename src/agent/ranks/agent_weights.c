// SPDX-License-Identifier: BSD-3-Clause
/* Where shadows have no cores of their own, a control group holds them back: together they get what
 * their weight says while mains want the cores, and all that mains leave otherwise. Where no group
 * is to be had they sleep instead (match/shadow.c).
 *
 *   the group that the agent is in
 *     ├── hale.JOB.NODE.mains       cpu.weight (version 2) or cpu.shares (version 1)
 *     └── hale.JOB.NODE.shadows
 *
 * HALE_CGROUP=DIR: the group to make it in, which somebody has delegated; off: none. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/base.h"
#include "agent/agent_private.h"
#include "policy/shadows.h"

/* Of the kernel: what a process without a group has in version 1, and what a group has unless told
 * otherwise in version 2. */
#define SHARES_USUAL 1024
#define WEIGHT_USUAL 100

/* ---- files ---- */

static bool file_write(const char *folder, const char *name, const char *text)
{
	char path[PATH_MAX];
	int fd, n;
	bool done;

	n = snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = n > 0 && n < (int)sizeof(path) ? open(path, O_WRONLY | O_CLOEXEC) : -1;
	if (fd < 0)
		return false;
	done = write(fd, text, strlen(text)) == (ssize_t)strlen(text);
	close(fd);
	return done;
}

static bool file_is_there(const char *folder, const char *name)
{
	char path[PATH_MAX];
	int n = snprintf(path, sizeof(path), "%s/%s", folder, name);

	return n > 0 && n < (int)sizeof(path) && access(path, W_OK) == 0;
}

/* ---- the group that the agent is in ---- */

/* Of /proc/self/cgroup: the path in version 2 (controllers ""), or where cpu is one of them. */
static bool own_path(const char *wanted, char path[PATH_MAX])
{
	FILE *f = fopen("/proc/self/cgroup", "re");
	char *line = NULL;
	size_t cap = 0;
	bool found = false;

	while (f && !found && getline(&line, &cap, f) > 0) {
		char *list = strchr(line, ':'), *at = list ? strchr(list + 1, ':') : NULL;

		if (!at)
			continue;
		*at++ = '\0';
		at[strcspn(at, "\n")] = '\0';
		for (char *rest = list + 1, *one; !found && (one = strsep(&rest, ",")) != NULL;)
			found = strcmp(one, wanted) == 0;
		if (found)
			snprintf(path, PATH_MAX, "%s", at);
	}
	free(line);
	if (f)
		fclose(f);
	return found;
}

/* Where the groups of that kind are mounted: `option` is one of the mount's. */
static bool mounted_at(const char *type, const char *option, char path[PATH_MAX])
{
	FILE *f = fopen("/proc/self/mounts", "re");
	char at[PATH_MAX], kind[64], options[1024];
	bool found = false;

	while (f && !found && fscanf(f, "%*s %4095s %63s %1023s %*d %*d", at, kind, options) == 3) {
		char *rest = options;

		found = strcmp(kind, type) == 0 && !option;
		for (char *one; !found && option && strcmp(kind, type) == 0 &&
				(one = strsep(&rest, ",")) != NULL;)
			found = strcmp(one, option) == 0;
	}
	if (found)
		snprintf(path, PATH_MAX, "%s", at);
	if (f)
		fclose(f);
	return found;
}

static bool own_group(const char *type, const char *controller, char folder[PATH_MAX])
{
	char mount[PATH_MAX], path[PATH_MAX];
	int n;

	if (!mounted_at(type, *controller ? controller : NULL, mount) ||
	    !own_path(controller, path))
		return false;
	n = snprintf(folder, PATH_MAX, "%s%s", mount, strcmp(path, "/") == 0 ? "" : path);
	return n > 0 && n < PATH_MAX;
}

/* Version 2 gives its groups weights only where the group above says so. */
static bool gives_weights(const char *folder)
{
	return file_write(folder, "cgroup.subtree_control", "+cpu");
}

static bool parent_find(struct agent *a, struct agent_weights *w)
{
	const char *wanted = agent_variable(a, "HALE_CGROUP");

	if (wanted && strcmp(wanted, "off") == 0)
		return false;
	if (wanted) {
		snprintf(w->parent, sizeof(w->parent), "%s", wanted);
		w->file = file_is_there(wanted, "cpu.shares") ? "cpu.shares" : "cpu.weight";
		return strcmp(w->file, "cpu.shares") == 0 || gives_weights(wanted);
	}
	w->file = "cpu.weight";
	if (own_group("cgroup2", "", w->parent) && gives_weights(w->parent))
		return true;
	w->file = "cpu.shares";
	return own_group("cgroup", "cpu", w->parent) && file_is_there(w->parent, "cgroup.procs");
}

/* ---- the two groups ---- */

/* Left by nodes of other jobs that were lost: one that has processes can't be removed. */
static void empty_ones_remove(const char *parent, const char *job)
{
	char path[PATH_MAX];
	DIR *d = opendir(parent);

	for (const struct dirent *e; d && (e = readdir(d)) != NULL;) {
		int n = snprintf(path, sizeof(path), "%s/%s", parent, e->d_name);

		if (strncmp(e->d_name, "hale.", 5) == 0 &&
		    strncmp(e->d_name + 5, job, strlen(job)) != 0 && n > 0 && n < (int)sizeof(path))
			rmdir(path);
	}
	if (d)
		closedir(d);
}

static bool group_make(struct agent *a, int which)
{
	struct agent_weights *w = &a->weights;
	int n = snprintf(w->group[which], sizeof(w->group[which]), "%s/hale.%s.%u.%s", w->parent,
			 a->setup.job, a->setup.node, which == WEIGHTS_MAINS ? "mains" : "shadows");

	return n > 0 && n < (int)sizeof(w->group[which]) &&
	       (mkdir(w->group[which], 0755) == 0 || errno == EEXIST) &&
	       file_is_there(w->group[which], "cgroup.procs");
}

static bool is_shadow(const struct agent *a, uint32_t process)
{
	uint32_t n = a->setup.nranks / a->setup.degree;

	for (uint32_t p = process % n; p < process; p += n)
		if (a->view.node_of[p] != LIVING_NOWHERE)
			return true;
	return false;
}

/* Of the processes that are here; each shadow weighs what it is to have beside all on this machine.
 */
static bool weights_write(struct agent *a, const uint32_t here[2])
{
	struct agent_weights *w = &a->weights;
	uint32_t n = a->setup.nranks / a->setup.degree, unit = w->unit;
	bool together = (a->setup.flags & SETUP_TOGETHER) != 0;
	uint32_t mains = together ? n : here[WEIGHTS_MAINS];
	uint32_t shadows = together ? n : here[WEIGHTS_SHADOWS];
	uint32_t one = shadow_weight(unit, mains, shadows, w->rate,
				     a->machine.pin.cores ? a->machine.pin.cores : 1);
	uint32_t all[2] = {unit * here[WEIGHTS_MAINS], one * here[WEIGHTS_SHADOWS]};
	bool done = true;

	for (int i = 0; i < 2; i++) {
		uint32_t least = 2, most = unit == WEIGHT_USUAL ? 10000 : 262144;
		char text[24];

		snprintf(text, sizeof(text), "%u",
			 all[i] < least	 ? least
			 : all[i] > most ? most
					 : all[i]);
		done = file_write(w->group[i], w->file, text) && done;
	}
	memcpy(w->here, here, sizeof(w->here));
	return done;
}

static void count(const struct agent *a, uint32_t here[2])
{
	here[0] = here[1] = 0;
	for (uint32_t p = 0; p < a->setup.nranks; p++)
		if (agent_has(a, p))
			here[is_shadow(a, p) ? WEIGHTS_SHADOWS : WEIGHTS_MAINS]++;
}

bool agent_weights_begin(struct agent *a, uint32_t rate)
{
	struct agent_weights *w = &a->weights;
	uint32_t here[2];

	if (w->on)
		return true;
	if (rate == 0 || !parent_find(a, w))
		return false;
	w->rate = rate;
	w->unit = strcmp(w->file, "cpu.shares") == 0 ? SHARES_USUAL : WEIGHT_USUAL;
	empty_ones_remove(w->parent, a->setup.job);
	count(a, here);
	w->on = group_make(a, WEIGHTS_MAINS) && group_make(a, WEIGHTS_SHADOWS) &&
		weights_write(a, here);
	if (!w->on)
		agent_weights_end(a);
	return w->on;
}

void agent_weights_place(struct agent *a)
{
	struct agent_weights *w = &a->weights;
	uint32_t here[2];

	if (!w->on || !a->view.node_of)
		return;
	count(a, here);
	if (memcmp(here, w->here, sizeof(here)) != 0)
		weights_write(a, here);
	for (uint32_t p = 0; p < a->setup.nranks; p++) {
		struct agent_rank *r = &a->ranks[p];
		int which = is_shadow(a, p) ? WEIGHTS_SHADOWS : WEIGHTS_MAINS;
		char text[24];

		if (!agent_has(a, p) || r->member <= 0 ||
		    (r->weighed == r->member && r->weighed_as == which))
			continue;
		snprintf(text, sizeof(text), "%d", (int)r->member);
		/* another job may have taken an empty one for one that was left */
		if (file_write(w->group[which], "cgroup.procs", text) ||
		    (group_make(a, which) && weights_write(a, here) &&
		     file_write(w->group[which], "cgroup.procs", text))) {
			r->weighed = r->member;
			r->weighed_as = which;
		}
	}
}

void agent_weights_end(struct agent *a)
{
	for (int i = 0; i < 2; i++) {
		if (a->weights.group[i][0])
			rmdir(a->weights.group[i]);
		a->weights.group[i][0] = '\0';
	}
	a->weights.on = false;
}
