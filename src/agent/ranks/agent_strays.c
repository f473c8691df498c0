/* SPDX-License-Identifier: BSD-3-Clause */
/* What ranks leave behind outside their groups, before a rollback (supervisor_strays.c). */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "base/base.h"
#include "agent/agent_private.h"

/* The process whose children this node's ranks are; what they leave behind comes to it. 0: it has
 * ended, and somebody else is our parent. */
static pid_t supervisor_of_us(void)
{
	char path[64], name[32] = "";
	pid_t parent = getppid();
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)parent);
	f = fopen(path, "re");
	if (f && !fgets(name, sizeof(name), f))
		name[0] = '\0';
	if (f)
		fclose(f);
	return strcmp(name, SUPERVISOR_NAME "\n") == 0 ? parent : 0;
}

/* Has it no child but us? What ranks leave behind becomes its child, so there is nothing to look
 * for then, and most times that is so. False where the kernel doesn't tell. */
static bool only_child(pid_t supervisor)
{
	char path[64];
	long child = 0, count = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)supervisor, (int)supervisor);
	f = fopen(path, "re");
	while (f && fscanf(f, "%ld", &child) == 1)
		count++;
	if (f)
		fclose(f);
	return count == 1 && child == getpid();
}

static bool has(const void *arg, uint32_t process)
{
	return agent_has(arg, process);
}

static bool strays_gone(const struct agent *a, bool spared)
{
	const struct supervisor_strays s = {.job = a->setup.job,
					    .has = has,
					    .arg = a,
					    .supervisor = supervisor_of_us(),
					    .spared = spared};

	return s.supervisor <= 0 || only_child(s.supervisor) || supervisor_strays_gone(&s);
}

static bool any_rank_lives(const struct agent *a)
{
	for (uint32_t r = 0; a->ranks && r < a->setup.nranks; r++)
		if (a->ranks[r].pid > 0)
			return true;
	return false;
}

/* Who has left a rank's group may have a child in it that has ended: what has written its image
 * before it left, for one. As long as it lives, nobody else can wait for that child. */
bool agent_clear_all(struct agent *a)
{
	bool clear = agent_clear(a);

	return (clear || !any_rank_lives(a)) && strays_gone(a, false) && clear;
}

bool agent_has_left_behind(const struct agent *a)
{
	for (uint32_t r = 0; a->ranks && r < a->setup.nranks; r++)
		if (a->ranks[r].group > 0 && !agent_group_is_strange(a, r) &&
		    kill(-a->ranks[r].group, 0) == 0)
			return true;
	return !strays_gone(a, true);
}
