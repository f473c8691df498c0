/* SPDX-License-Identifier: BSD-3-Clause */
#include "store/failure_history.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { LINE_MOST = 128 };

static bool failure_history_path(char path[PATH_MAX], bool make)
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	char folder[PATH_MAX - 16];
	int n;

	if (state && *state == '/')
		n = snprintf(folder, sizeof(folder), "%s/hale", state);
	else if (home && *home == '/')
		n = snprintf(folder, sizeof(folder), "%s/.local/state/hale", home);
	else
		return false;
	if (n < 0 || n >= (int)sizeof(folder))
		return false;
	for (char *c = folder + 1; make && (c = strchr(c, '/')); c++) {
		*c = '\0';
		mkdir(folder, 0700);
		*c = '/';
	}
	if (make)
		mkdir(folder, 0700);
	snprintf(path, PATH_MAX, "%s/failures", folder);
	return true;
}

static void failure_history_take(struct failure_history *h, const char *line)
{
	unsigned long long when;
	unsigned nodes, failures;
	double seconds;
	char more;

	if (sscanf(line, "%llu %lf %u %u %c", &when, &seconds, &nodes, &failures, &more) != 4 ||
	    !(seconds >= 0 && seconds < 1e9) || nodes == 0 || nodes > 100000 || failures > 1000000)
		return;
	h->jobs++;
	h->failures += failures;
	h->node_seconds += seconds * nodes;
}

/* The newest lines of the file; the first of them may be a part of one. */
static FILE *failure_history_open(void)
{
	char path[PATH_MAX];
	struct stat st;
	FILE *f = NULL;
	int fd = failure_history_path(path, false) ? open(path, O_RDONLY | O_CLOEXEC) : -1;

	if (fd < 0)
		return NULL;
	if (fstat(fd, &st) == 0 && (st.st_size <= FAILURE_HISTORY_BYTES ||
				    lseek(fd, st.st_size - FAILURE_HISTORY_BYTES, SEEK_SET) >= 0))
		f = fdopen(fd, "r");
	if (!f)
		close(fd);
	return f;
}

bool failure_history_read(struct failure_history *h)
{
	char line[LINE_MOST];
	FILE *f = failure_history_open();

	*h = (struct failure_history){0};
	while (f && fgets(line, sizeof(line), f))
		failure_history_take(h, line);
	if (f)
		fclose(f);
	return h->jobs > 0;
}

bool failure_history_add(double seconds, uint32_t nodes, uint32_t failures)
{
	char path[PATH_MAX], line[LINE_MOST];
	struct stat st;
	struct timespec now;
	bool right;
	int fd, n;

	if (!failure_history_path(path, true))
		return false;
	if (stat(path, &st) == 0 && st.st_size > 2 * FAILURE_HISTORY_BYTES)
		unlink(path);
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return false;
	clock_gettime(CLOCK_REALTIME, &now);
	n = snprintf(line, sizeof(line), "%lld %.1f %u %u\n", (long long)now.tv_sec, seconds, nodes,
		     failures);
	/* of heads that end at once each line stays whole */
	right = write(fd, line, (size_t)n) == n;
	close(fd);
	return right;
}
