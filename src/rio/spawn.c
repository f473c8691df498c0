/* SPDX-License-Identifier: BSD-3-Clause */
/* Starting the process that serves a connection in the daemon's place. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <unistd.h>
#include "base/base.h"
#include "rio/serve.h"

enum { SPAWN_FIRST = 3, SPAWN_MAX = 4 };

/* 0 and *pid, or an errno. fd: none of them has a number that another one gets. */
static int spawn_with(pid_t *pid, const char *program, char *const argv[], char *const env[],
		      const int *fd, int count)
{
	posix_spawn_file_actions_t act;
	posix_spawnattr_t attr;
	sigset_t none;
	int error;

	posix_spawn_file_actions_init(&act);
	for (int i = 0; i < count; i++)
		posix_spawn_file_actions_adddup2(&act, fd[i], SPAWN_FIRST + i);
	posix_spawn_file_actions_addclosefrom_np(&act, SPAWN_FIRST + count);
	posix_spawnattr_init(&attr);
	sigemptyset(&none);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
	error = posix_spawn(pid, program, &act, &attr, argv, env);
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&act);
	return error;
}

pid_t serve_spawn(const char *program, char *const argv[], char *const env[], const int *fd,
		  int count)
{
	int out[SPAWN_MAX] = {0}, taken = 0, error = count > SPAWN_MAX ? EINVAL : 0;
	pid_t pid = -1;

	/* First all move above the numbers that they get, since each may have another one's. */
	for (; !error && taken < count; taken++) {
		out[taken] = fcntl(fd[taken], F_DUPFD_CLOEXEC, SPAWN_FIRST + count);
		if (out[taken] < 0) {
			error = errno;
			break;
		}
	}
	if (!error)
		error = spawn_with(&pid, program, argv, env, out, count);
	while (taken > 0)
		close(out[--taken]);
	errno = error;
	return error ? -1 : pid;
}
