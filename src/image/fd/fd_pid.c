// SPDX-License-Identifier: BSD-3-Clause
/* Handles of processes (pidfd_open): of this one, and of those that are captured with it, which
 * have their ids again. */
#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "base/fmt.h"
#include "image/fd/fd.h"
#include "image/tree/tree.h"

enum { TRIES = 5000, TRY_NS = 2000000 };

static bool match(const struct fd_table *t, const struct fd_probe *p)
{
	return fd_is_anon(p, "[pidfd]") || !__builtin_strncmp(p->link, "pidfd:", 6);
}

/* a: its id; 0: it has ended. */
static hale_status_t capture(struct fd_table *t, const struct fd_probe *p, struct fd_record *r,
			     struct error *err)
{
	struct tree_process of;
	int32_t pid = (int32_t)fd_info_number(p, "Pid:", 10, 0);
	r->a = (uint64_t)pid;
	if (strstr(p->info, "Pid:\t-1")) /* it has ended, and its parent has waited for it */
		return HALE_OK;
	if (pid > 0 &&
	    (fd_tree_holds(t, pid) || (tree_look(pid, &of) && of.ended && fd_tree_holds(t, of.parent))))
		return HALE_OK;
	return fd_refuse(p, "a handle of a process that is not captured with it", err);
}

/* Of a process that has ended: all that this one has of it. */
static int open_ended(struct fd_restore *f, size_t index, struct error *err)
{
	const struct fd_record *r = &f->record[index];
	long pid = sys(SYS_clone, 0, 0, 0, 0, 0);
	if (!pid)
		sys(SYS_exit_group, 0);
	for (size_t i = index; pid > 0 && i < f->count; i++) {
		const struct fd_record *o = &f->record[i];
		if (o->kind == FD_PID && !o->a && o->same_as < 0 && o->inode == r->inode)
			f->temp[i] =
			    fd_lift(f, (int)sys(SYS_pidfd_open, pid, o->open_flags & O_NONBLOCK));
	}
	while (pid > 0 && sys(SYS_wait4, pid, NULL, __WCLONE, NULL) == -EINTR)
		;
	int fd = pid > 0 ? f->temp[index] : (int)pid;
	f->temp[index] = -1;
	if (fd < 0)
		error_set(err, HALE_ERR_SYSTEM,
			  "can't make the handle of an ended process of descriptor %d again",
			  r->fd);
	return fd;
}

/* Its process may not have been made yet. */
static int open_handle(struct fd_restore *f, size_t index, struct error *err)
{
	const struct fd_record *r = &f->record[index];
	if (!r->a)
		return open_ended(f, index, err);
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
