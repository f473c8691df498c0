// SPDX-License-Identifier: BSD-3-Clause
/* What the program's limits do not let this process do: a process beside it does that. It shares
 * the memory, and has limits and descriptors of its own. Nobody who waits for children of the
 * program sees it, since it sends no signal at its end, and locks of the program's descriptors stay
 * with the program. */
#include <errno.h>
#include <linux/close_range.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "image/sys.h"
#include "journal/private.h"

enum { ELSEWHERE_STACK = 256 << 10 };

struct elsewhere {
	long (*run)(void *arg);
	void *arg;
	int kept;
	long rc;
};

uint64_t journal_file_limit(void)
{
	struct rlimit64 limit;

	return sys(SYS_prlimit64, 0, RLIMIT_FSIZE, NULL, &limit) ? RLIM64_INFINITY : limit.rlim_cur;
}

/* Only root can pass a hard limit. */
static void limit_lift(void)
{
	struct rlimit64 limit = {RLIM64_INFINITY, RLIM64_INFINITY};

	if (!sys(SYS_prlimit64, 0, RLIMIT_FSIZE, &limit, NULL) ||
	    sys(SYS_prlimit64, 0, RLIMIT_FSIZE, NULL, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	sys(SYS_prlimit64, 0, RLIMIT_FSIZE, &limit, NULL);
}

static int elsewhere_main(void *arg)
{
	struct elsewhere *e = arg;

	limit_lift();
	if (e->kept > 0)
		sys(SYS_close_range, 0u, (unsigned)e->kept - 1, 0u);
	sys(SYS_close_range, (unsigned)(e->kept + 1), ~0u, 0u);
	e->rc = e->run(e->arg);
	sys(SYS_exit, 0);
	return 0;
}

long journal_elsewhere(long (*run)(void *), void *arg, int kept)
{
	struct elsewhere e = {.run = run, .arg = arg, .kept = kept < 0 ? -1 : kept, .rc = -EIO};
	long at = sys(SYS_mmap, 0, ELSEWHERE_STACK, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);

	if (sys_failed(at))
		return at;
	int pid = clone(elsewhere_main, (char *)at + ELSEWHERE_STACK, CLONE_VM | CLONE_VFORK, &e);
	if (pid < 0)
		e.rc = -errno;
	while (pid > 0 && sys(SYS_wait4, pid, NULL, __WCLONE, NULL) == -EINTR)
		;
	sys(SYS_munmap, at, ELSEWHERE_STACK);
	return e.rc;
}
