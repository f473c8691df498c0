// SPDX-License-Identifier: BSD-3-Clause
/* Handles of processes (pidfd_open): of this one, and of those that are captured with it, which
 * have their ids again. */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/fmt.h"
#include "image/fd/fd.h"
#include "image/tree/tree.h"

enum { TRIES = 5000, TRY_NS = 2000000 };

static bool match(const struct fd_table *t, const struct fd_probe *p)
{
	return fd_is_anon(p, "[pidfd]") || !__builtin_strncmp(p->link, "pidfd:", 6);
}

static bool is_one(const struct fd_table *t, int32_t pid)
{
	for (size_t i = 0; i < t->tree_count; i++)
		if (t->tree[i] == pid)
			return true;
	/* or that whose table it is */
	char proc[32];
	fmt_print(proc, sizeof(proc), "/proc/%d", (int)pid);
	return t->other ? !strcmp(t->proc, proc) : pid == (int32_t)sys(SYS_getpid);
}

/* a: its id. */
static hale_status_t capture(struct fd_table *t, const struct fd_probe *p, struct fd_record *r,
			     struct error *err)
{
	struct tree_process of;
	int32_t pid = (int32_t)fd_info_number(p, "Pid:", 10, 0);
	r->a = (uint64_t)pid;
	if (pid > 0 &&
	    (is_one(t, pid) || (tree_look(pid, &of) && of.ended && is_one(t, of.parent))))
		return HALE_OK;
	return fd_refuse(p, "a handle of a process that is not captured with it", err);
}

/* Its process may not have been made yet. */
static int open_handle(struct fd_restore *f, size_t index, struct error *err)
{
	const struct fd_record *r = &f->record[index];
	const struct timespec tick = {0, TRY_NS};
	int32_t pid = (int32_t)r->a;
	if (pid == f->old_pid)
		pid = (int32_t)sys(SYS_getpid);
	for (int i = 0; i < TRIES && !tree_is_made(pid); i++)
		sys(SYS_nanosleep, &tick, NULL);
	long fd = tree_is_made(pid) ? sys(SYS_pidfd_open, pid, r->open_flags & O_NONBLOCK) : -ESRCH;
	if (fd < 0)
		error_set(err, HALE_ERR_SYSTEM,
			  "can't make the handle of process %d of descriptor %d again (error %ld)",
			  (int)pid, r->fd, -fd);
	return (int)fd;
}

const struct fd_ops fd_pid = {.kind = FD_PID,
			      .name = "handle of a process",
			      .match = match,
			      .capture = capture,
			      .open = open_handle};
