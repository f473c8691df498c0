// SPDX-License-Identifier: BSD-3-Clause
/* Who is told by a signal of what happens to a descriptor: F_SETOWN, F_SETSIG, O_ASYNC. They belong
 * to the open file. They come back when all contents are there, so that nobody is told of these,
 * and before any process runs on. */
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/wait.h>

#include "base/fmt.h"
#include "image/fd/fd.h"

static bool has_thread(int32_t pid, int32_t tid)
{
	char path[64];
	struct stat st;
	fmt_print(path, sizeof(path), "/proc/%d/task/%d", (int)pid, (int)tid);
	return !sys(SYS_newfstatat, AT_FDCWD, path, &st, 0);
}

static bool knows_owner(const struct fd_table *t, const struct f_owner_ex *owner)
{
	if (owner->type != F_OWNER_TID)
		return fd_tree_holds(t, owner->pid);
	bool found = has_thread((int32_t)sys(SYS_getpid), owner->pid);
	for (size_t i = 0; i < t->tree_count && !found; i++)
		found = has_thread(t->tree[i], owner->pid);
	return found;
}

hale_status_t fd_owner_capture(struct fd_table *t, const struct fd_probe *p, uint32_t flags,
			       struct error *err)
{
	struct f_owner_ex owner = {0};
	if (t->other || flags & O_PATH) /* only its own process sees them */
		return HALE_OK;
	if (sys(SYS_fcntl, p->fd, F_GETOWN_EX, &owner))
		owner.pid = 0;
	long signal = sys(SYS_fcntl, p->fd, F_GETSIG);
	if (signal < 0)
		signal = 0;
	if (!owner.pid && !signal && !(flags & O_ASYNC))
		return HALE_OK;
	if (owner.pid && !knows_owner(t, &owner))
		return fd_refuse(
		    p,
		    "one that sends signals to a process that is not captured with it (F_SETOWN)",
		    err);
	struct owner_record *r = list_add(&t->owners);
	if (!r)
		return error_set(err, HALE_ERR_MEMORY, "no memory for descriptors");
	*r = (struct owner_record){.fd = p->fd,
				   .type = (uint32_t)owner.type,
				   .pid = owner.pid,
				   .signal = (uint32_t)signal,
				   .tells = (flags & O_ASYNC) != 0};
	return HALE_OK;
}

struct teller {
	int fd, number;
	volatile long rc;
};

enum { TELLER_STACK = 16 << 10 };

static void teller_main(void *arg)
{
	struct teller *t = arg;
	/* the kernel takes the number only when O_ASYNC changes from off to on */
	long flags = sys(SYS_fcntl, t->fd, F_GETFL) & ~(long)O_ASYNC;
	sys(SYS_fcntl, t->fd, F_SETFL, flags);
	long rc = sys(SYS_dup3, t->fd, t->number, O_CLOEXEC);
	t->rc = rc < 0 ? rc : sys(SYS_fcntl, t->number, F_SETFL, flags | O_ASYNC);
	sys(SYS_exit_group, 0);
}

/* A signal names the number of the descriptor by which O_ASYNC was set. Descriptors have temporary
 * numbers at this point, so a process with our memory and its own descriptor table sets it. */
static long tell_as(const struct fd_restore *f, int fd, int number)
{
	struct teller t = {fd, number, -ENOMEM};
	char *stack = arena_pages(f->arena, TELLER_STACK);
	if (!stack)
		return -ENOMEM;
	long pid =
	    clone_run(CLONE_VM | CLONE_VFORK, stack + TELLER_STACK, NULL, NULL, 0, teller_main, &t);
	if (pid < 0)
		return pid;
	while (sys(SYS_wait4, pid, NULL, __WCLONE, NULL) == -EINTR)
		;
	return t.rc;
}

static long owner_give(const struct fd_restore *f, int fd, const struct owner_record *r)
{
	struct f_owner_ex owner = {(int)r->type, r->pid};
	const int32_t self = (int32_t)sys(SYS_getpid);
	if (r->pid == f->old_pid)
		owner.pid = self;
	else if (r->pid && self != f->old_pid) /* another's id may be anybody's by now */
		return -ESRCH;
	long rc = r->pid ? sys(SYS_fcntl, fd, F_SETOWN_EX, &owner) : 0;
	if (!rc)
		rc = sys(SYS_fcntl, fd, F_SETSIG, r->signal);
	return rc || !r->tells ? rc : tell_as(f, fd, r->fd);
}

bool fd_owners_restore(const struct fd_restore *f, struct error *err)
{
	for (size_t i = 0; i < f->owner_count; i++)
		for (size_t k = 0; k < f->count; k++) {
			if (f->record[k].fd != f->owner[i].fd)
				continue;
			long rc = owner_give(f, f->temp[k], &f->owner[i]);
			if (!rc)
				break;
			error_set(err, HALE_ERR_SYSTEM,
				  "descriptor %d can't send its signals to process %d again "
				  "(error %ld)",
				  f->owner[i].fd, (int)f->owner[i].pid, -rc);
			return false;
		}
	return true;
}
