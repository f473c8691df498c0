/* SPDX-License-Identifier: BSD-3-Clause */
#include "job/guardian.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/base.h"

static void guard(const struct guardian *g, int pipe)
{
	char byte;
	ssize_t n;

	do {
		n = read(pipe, &byte, 1);
	} while (n < 0 && errno == EINTR);
	if (n == 1) /* the head says that all is well */
		_exit(0);
	/* Twice: a rank may just have been forked and not yet be the leader of its group. */
	for (int round = 0; round < 2; round++) {
		for (uint32_t r = 0; r < g->count; r++) {
			pid_t group = atomic_load(&g->groups[r]);
			if (group > 0) {
				kill(-group, SIGKILL);
				kill(group, SIGKILL);
			}
		}
		usleep(20000);
	}
	_exit(0);
}

static void become_guardian(const struct guardian *g, int pipe)
{
	sigset_t all;

	setsid();
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	prctl(PR_SET_NAME, "hale-guardian");
	/* it must hold nothing that somebody waits on: not the shell's pipe behind stdout */
	if (dup2(pipe, 3) < 0)
		_exit(1);
	close_range(0, 2, 0);
	close_range(4, ~0u, 0);
	if (chdir("/") != 0)
		_exit(1);
	guard(g, 3);
}

hale_status_t guardian_start(struct guardian *g, uint32_t nranks, struct error *err)
{
	int ends[2];
	size_t bytes = ALIGN_UP(nranks * sizeof(*g->groups), HALE_PAGE);

	*g = (struct guardian){.count = nranks, .pipe = -1};
	g->groups = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (g->groups == MAP_FAILED || pipe2(ends, O_CLOEXEC) != 0)
		return error_sys(err, HALE_ERR_SYSTEM, "cannot start the guardian of the ranks");
	g->pid = fork();
	if (g->pid == 0)
		become_guardian(g, ends[0]);
	close(ends[0]);
	g->pipe = ends[1];
	if (g->pid < 0)
		return error_sys(err, HALE_ERR_SYSTEM, "cannot start the guardian of the ranks");
	return HALE_OK;
}

void guardian_end(struct guardian *g)
{
	ssize_t n = 0;

	if (g->pid <= 0)
		return;
	n = write(g->pipe, "q", 1);
	(void)n;
	close(g->pipe);
	while (waitpid(g->pid, NULL, 0) < 0 && errno == EINTR)
		;
	munmap((void *)g->groups, ALIGN_UP(g->count * sizeof(*g->groups), HALE_PAGE));
	*g = (struct guardian){.pipe = -1};
}
