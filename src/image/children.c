// SPDX-License-Identifier: BSD-3-Clause
/* Children of a process. An image holds one process: a child that runs would be lost with a
 * rollback, and so would the exit status of a child that nobody has waited for. The processes that
 * write our images have no exit signal, which tells them from the program's children. */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/fmt.h"
#include "image/engine.h"

enum { STAT_EXIT_SIGNAL = 38 }; /* proc(5) */

bool image_has_children(void)
{
	return sys(SYS_waitid, P_ALL, 0, NULL, WEXITED | WNOHANG | WNOWAIT, NULL) != -ECHILD;
}

/* Its name, and whether it is one of the program. False: it is gone, or a writer. */
static bool is_of_program(long child, char name[32], bool *ended)
{
	char path[64], text[1024];
	fmt_print(path, sizeof(path), "/proc/%d/stat", (int)child);
	if (sys_read_small(path, text, sizeof(text)) <= 0)
		return false;
	char *begin = strchr(text, '('), *end = strrchr(text, ')');
	if (!begin || !end || end < begin)
		return false;
	*ended = end[1] == ' ' && (end[2] == 'Z' || end[2] == 'X');
	char *field = end + 2;
	for (int i = 3; i < STAT_EXIT_SIGNAL && field; i++)
		if ((field = strchr(field, ' ')))
			field++;
	*end = 0;
	fmt_print(name, 32, "%.20s", begin + 1);
	return field && atoi(field) != 0;
}

static hale_status_t check_thread(pid_t pid, const char *tid, struct error *err)
{
	char path[96], name[32];
	long child;
	bool ended;
	hale_status_t rc = HALE_OK;
	fmt_print(path, sizeof(path), "/proc/%d/task/%.20s/children", (int)pid, tid);
	FILE *f = fopen(path, "re");
	while (f && rc == HALE_OK && fscanf(f, "%ld", &child) == 1)
		if (is_of_program(child, name, &ended))
			rc = error_set(err, HALE_ERR_AGAIN,
				       ended
					   ? "its child process %d (%s) has ended, and the program "
					     "has not waited for it yet; its status would be lost"
					   : "its child process %d (%s) runs, which no image holds",
				       (int)child, name);
	if (f)
		fclose(f);
	return rc;
}

hale_status_t image_check_children(pid_t pid, struct error *err)
{
	char path[64];
	struct dirent *e;
	hale_status_t rc = HALE_OK;
	fmt_print(path, sizeof(path), "/proc/%d/task", (int)pid);
	DIR *d = opendir(path);
	while (d && rc == HALE_OK && (e = readdir(d)))
		if (e->d_name[0] != '.')
			rc = check_thread(pid, e->d_name, err);
	if (d)
		closedir(d);
	return rc;
}
