// SPDX-License-Identifier: BSD-3-Clause
/* Children of a process, looked at from outside. They are captured with it (tree/tree.h) where
 * processes can have their ids again. Elsewhere one that runs would be lost with a rollback, and so
 * would the exit status of a child that nobody has waited for. The processes that
 * write our images have no exit signal, which tells them from the program's children. */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fmt.h"
#include "base/ids.h"
#include "image/engine.h"
#include "image/tree/tree.h"

enum { LOOKS = 8, LOOK_US = 4000 };

bool image_has_children(void)
{
	return sys(SYS_waitid, P_ALL, 0, NULL, WEXITED | WNOHANG | WNOWAIT, NULL) != -ECHILD;
}

static bool captures_trees(void)
{
	const char *text = getenv("HALE_TREES");
	return ids_allowed() && !(text && !strcmp(text, "off"));
}

/* Has hale's library come to where it can hear in that process? */
static bool hears_now(int32_t pid)
{
	char path[64], status[4096];
	fmt_print(path, sizeof(path), "/proc/%d/status", pid);
	if (sys_read_small(path, status, sizeof(status)) <= 0)
		return false;
	const char *caught = strstr(status, "\nSigCgt:\t");
	return caught && strtoull(caught + 9, NULL, 16) & SYS_SET_BIT(SIGURG);
}

/* One that has just been started is given a moment. */
static bool hears(int32_t pid)
{
	for (int i = 0; i < LOOKS; i++) {
		if (hears_now(pid))
			return true;
		usleep(LOOK_US);
	}
	return hears_now(pid);
}

static hale_status_t check_alone(const struct tree_process *p, struct error *err)
{
	return error_set(err, HALE_ERR_AGAIN,
			 p->ended ? "its child process %d (%s) has ended, and the program has not "
				    "waited for it yet; its status would be lost"
				  : "its child process %d (%s) runs, which no image holds",
			 p->pid, p->name);
}

static hale_status_t check_member(const struct tree_process *p, const struct image_tree *tree,
				  const int *own, size_t own_count, struct error *err)
{
	struct error why;
	if (p->ended)
		return HALE_OK;
	if (!hears(p->pid))
		return error_set(err, HALE_ERR_AGAIN,
				 "its child process %d (%s) runs without hale's library, which no "
				 "image holds: is it static, or was LD_PRELOAD taken away?",
				 p->pid, p->name);
	const char *stopped = tree_is_stopped(p->pid) ? tree_stopped_refusal(p->pid) : NULL;
	hale_status_t rc = image_check_in(p->pid, own, own_count, NULL, tree, &why);
	if (rc == HALE_OK && stopped)
		rc = error_set(&why, HALE_ERR_AGAIN, "%s", stopped);
	if (rc == HALE_OK)
		rc = image_check_threads(p->pid, &why);
	if (rc == HALE_OK)
		rc = image_check_ipc(p->pid, tree, &why);
	if (rc == HALE_OK || rc == HALE_ERR_PROCESS)
		return HALE_OK;
	return error_set(err, HALE_ERR_AGAIN, "its child process %d (%s) can't be captured: %s",
			 p->pid, p->name, why.text);
}

/* Servers of OpenCL runtimes have no parent on purpose; they end with the process that they serve.
 */
static bool is_hales_own(const struct tree_process *p)
{
	static const char server[] = "hale-opencl-";

	return strncmp(p->name, server, sizeof(server) - 1) == 0;
}

/* A descendant that has lost its parent, and is in the rank's group, ends with a rollback. What the
 * program does with it would be lost: it is waited for. One with a group of its own was let go. */
static hale_status_t check_orphans(pid_t pid, struct error *err)
{
	struct tree_process rank, *found;
	hale_status_t rc = HALE_OK;
	size_t count = 0;

	if (!tree_look(pid, &rank) || rank.group != pid || rank.parent <= 1)
		return HALE_OK;
	found = calloc(TREE_MAX, sizeof(*found));
	if (!found)
		return error_set(err, HALE_ERR_MEMORY, "out of memory");
	tree_children(rank.parent, found, TREE_MAX, &count);
	for (size_t i = 0; rc == HALE_OK && i < count && i < TREE_MAX; i++)
		if (found[i].pid != pid && found[i].group == rank.group && !found[i].ended &&
		    !is_hales_own(&found[i]))
			rc = error_set(
			    err, HALE_ERR_AGAIN,
			    "its descendant %d (%s) has lost its parent, and no image holds "
			    "such: is it to run on alone (setsid), or to be waited for?",
			    found[i].pid, found[i].name);
	free(found);
	return rc;
}

hale_status_t image_check_children(pid_t pid, const int *own, size_t own_count,
				   struct image_tree *tree, struct error *err)
{
	struct tree_process *found = calloc(TREE_MAX, sizeof(*found));
	size_t count = 0;
	hale_status_t rc = HALE_OK;
	*tree = (struct image_tree){0};
	if (!found)
		return error_set(err, HALE_ERR_MEMORY, "out of memory");
	tree_find(pid, found, TREE_MAX, &count);
	if (count > TREE_MAX)
		rc =
		    error_set(err, HALE_ERR_AGAIN, "it has more than %d child processes", TREE_MAX);
	else if (count && !captures_trees())
		rc = check_alone(&found[0], err);
	if (rc == HALE_OK && count)
		tree->pid[tree->count++] = pid;
	for (size_t i = 0; rc == HALE_OK && i < count; i++)
		if (!found[i].ended)
			tree->pid[tree->count++] = found[i].pid;
	for (size_t i = 0; rc == HALE_OK && i < count; i++)
		rc = check_member(&found[i], tree, own, own_count, err);
	if (rc == HALE_OK)
		rc = check_orphans(pid, err);
	free(found);
	return rc;
}
