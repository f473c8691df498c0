/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of all processes that the ranks of a node are, and have started. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "base/base.h"
#include "agent/supervisor/supervisor.h"

enum { KILL_ROUNDS = 500, ROUND_US = 10000 };

/* Group of a process that is more than a zombie; 0: there is none. */
static pid_t living_group(const char *pid)
{
	char path[32], text[512], *end;
	int group = 0, fd;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%.10s/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;
	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return 0;
	text[n] = '\0';
	end = strrchr(text, ')');
	if (!end || strlen(end) < 4 || strchr("ZX", end[2]) ||
	    sscanf(end + 3, " %*d %d", &group) != 1)
		return 0;
	return group;
}

/* Members keep the id of a group from others. So who has the id of a leader that was waited for
 * shows that no member was left. */
bool supervisor_group_is_strange(const struct book *b, uint32_t rank)
{
	const struct book_child *c = &b->child[rank];
	pid_t group = atomic_load(&c->group);

	return group > 0 && atomic_load(&c->ended) && (kill(group, 0) == 0 || errno == EPERM);
}

static bool is_ours(struct book *b, pid_t group)
{
	for (uint32_t r = 0; group > 0 && r < atomic_load(&b->count); r++)
		if (atomic_load(&b->child[r].group) == group && !supervisor_group_is_strange(b, r))
			return true;
	return false;
}

/* Killed processes stay there as zombies until somebody reaps them. */
static bool somebody_lives(struct book *b)
{
	DIR *d = opendir("/proc");
	struct dirent *e;
	bool lives = false;

	while (d && !lives && (e = readdir(d)))
		lives = e->d_name[0] >= '1' && e->d_name[0] <= '9' &&
			is_ours(b, living_group(e->d_name));
	if (d)
		closedir(d);
	return lives;
}

/* True: nobody was there, not even zombies. */
static bool kill_groups(struct book *b)
{
	bool gone = true;

	for (uint32_t r = 0; r < atomic_load(&b->count); r++) {
		pid_t group = atomic_load(&b->child[r].group);

		if (group > 0 && !supervisor_group_is_strange(b, r)) {
			kill(group, SIGKILL); /* not yet the leader of its group, perhaps */
			gone = (kill(-group, SIGKILL) != 0 && errno == ESRCH) && gone;
		}
	}
	return gone;
}

static bool was_launched(const void *book, uint32_t process)
{
	const struct book *b = book;

	return process < atomic_load(&b->count) && atomic_load(&b->child[process].pid) > 0;
}

static bool strays_gone(struct book *b)
{
	const struct supervisor_strays s = {.job = b->job,
					    .has = was_launched,
					    .arg = b,
					    .supervisor = atomic_load(&b->supervisor)};

	return b->job[0] == '\0' || supervisor_strays_gone(&s);
}

/* Twice at least: a process may have forked while it was killed. */
bool supervisor_kill_all(struct book *b)
{
	for (int round = 0; round < KILL_ROUNDS; round++) {
		bool gone = kill_groups(b);
		bool none = strays_gone(b); /* also while the groups are dying */

		if (round > 0 && none && (gone || !somebody_lives(b)))
			return true;
		usleep(ROUND_US);
	}
	return false;
}
