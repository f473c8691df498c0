/* SPDX-License-Identifier: BSD-3-Clause */
#include "head/job/child_task.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

void child_task_init(struct child_task *e, const char *ended)
{
	*e = (struct child_task){.ended = ended};
	e->verdict = mmap(NULL, sizeof(*e->verdict), PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (e->verdict == MAP_FAILED)
		e->verdict = NULL;
}

void child_task_fini(struct child_task *e)
{
	if (e->verdict)
		munmap(e->verdict, sizeof(*e->verdict));
	*e = (struct child_task){0};
}

bool child_task_begin(struct child_task *e, hale_status_t (*work)(void *arg, struct error *err),
		      void *arg)
{
	pid_t parent = getpid(), pid;

	if (!e->verdict)
		return false;
	error_set(e->verdict, HALE_ERR_SYSTEM, "%s", e->ended);
	pid = fork();
	if (pid == 0) {
		struct error err = {HALE_OK, ""};

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
		err.code = work(arg, &err);
		*e->verdict = err;
		_exit(0);
	}
	e->pid = pid > 0 ? pid : 0;
	return pid > 0;
}

bool child_task_busy(const struct child_task *e)
{
	return e->pid > 0;
}

bool child_task_over(struct child_task *e, pid_t pid, struct error *err)
{
	if (e->pid == 0 || pid != e->pid)
		return false;
	e->pid = 0;
	*err = *e->verdict;
	return true;
}

bool child_task_wait(struct child_task *e, struct error *err)
{
	if (e->pid == 0)
		return false;
	while (waitpid(e->pid, NULL, 0) < 0 && errno == EINTR)
		;
	return child_task_over(e, e->pid, err);
}

void child_task_kill(const struct child_task *e)
{
	if (e->pid > 0)
		kill(e->pid, SIGKILL);
}
