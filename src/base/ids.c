// SPDX-License-Identifier: BSD-3-Clause
#include "base/ids.h"

#include <errno.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

pid_t ids_fork(pid_t id)
{
	int32_t wanted = id;
	struct clone_args args = {.exit_signal = SIGCHLD,
				  .set_tid = (uint64_t)(uintptr_t)&wanted,
				  .set_tid_size = 1};

	return (pid_t)syscall(SYS_clone3, &args, sizeof(args));
}

/* An id that is taken, since it is ours: who may ask is told so, and who may not, that. */
bool ids_allowed(void)
{
	int saved = errno;
	pid_t pid = ids_fork(getpid());
	bool allowed = pid < 0 && errno == EEXIST;

	if (pid == 0)
		_exit(0);
	errno = saved;
	return allowed;
}
