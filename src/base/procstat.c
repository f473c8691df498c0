/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/procstat.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool procstat_read(pid_t pid, struct procstat *s)
{
	char path[64], text[1024];
	unsigned long user, system;
	char *begin, *end; /* of the name, which may hold anything, brackets too */
	int parent, group;
	long pages;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	begin = strchr(text, '(');
	end = strrchr(text, ')');
	if (!begin || !end ||
	    sscanf(end + 1,
		   " %c %d %d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %*d %*d %*d %*d "
		   "%*d %*d %*u %*u %ld",
		   &s->state, &parent, &group, &user, &system, &pages) != 6)
		return false;
	*end = '\0';
	snprintf(s->name, sizeof(s->name), "%s", begin + 1);
	s->parent = parent;
	s->group = group;
	s->cpu_seconds = (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
	s->memory = (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
	return true;
}
