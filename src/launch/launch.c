/* SPDX-License-Identifier: BSD-3-Clause */
#include "launch/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/base.h"
#include "base/ids.h"
#include "base/procstat.h"
#include "launch/environment.h"

enum { WAIT_MS = 200, ID_TRIES = 100, ID_TRY_US = 10000 };

/* What failed between fork and exec. */
struct launch_report {
	int error;
	int step;
};

static const char *const steps[] = {"set it up", "enter its working folder", "execute it"};

/* The head ignores SIGPIPE and blocks what it takes through its signalfd; what its own caller
 * ignores (nohup) stays ignored. */
static void reset_signals(void)
{
	sigset_t none;

	signal(SIGPIPE, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* The three may be in each other's way: first all above 2. */
static bool put_streams(const int fd[3])
{
	int high[3];

	for (int i = 0; i < 3; i++) {
		high[i] = fcntl(fd[i], F_DUPFD_CLOEXEC, 10);
		if (high[i] < 0)
			return false;
	}
	for (int i = 0; i < 3; i++)
		if (dup2(high[i], i) < 0)
			return false;
	return true;
}

static struct launch_report become_rank(const struct launch *l, pid_t head)
{
	int persona = personality(0xffffffff);

	if (setpgid(0, 0) != 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || !put_streams(l->fd) ||
	    personality((unsigned)persona | ADDR_NO_RANDOMIZE) < 0)
		return (struct launch_report){errno, 0};
	if (getppid() != head) /* it died before we asked to be told */
		_exit(1);
	if (l->group)
		atomic_store(l->group, getpid());
	if (l->over && atomic_load(l->over))
		_exit(1);
	if (l->cpus)
		sched_setaffinity(0, sizeof(*l->cpus), l->cpus);
	if (l->wdir && chdir(l->wdir) != 0)
		return (struct launch_report){errno, 1};
	environment_set_pid(l->env, getpid());
	/* nothing but 0, 1, 2: what hale inherited from its caller is not the program's business */
	close_range(3, ~0u, CLOSE_RANGE_CLOEXEC);
	reset_signals();
	execve(l->path, l->argv, l->env);
	return (struct launch_report){errno, 2};
}

static hale_status_t await_exec(int pipe, const struct launch *l, struct error *err)
{
	struct launch_report r;
	struct pollfd p = {.fd = pipe, .events = POLLIN};
	ssize_t n;

	while (l->meanwhile && poll(&p, 1, WAIT_MS) <= 0)
		l->meanwhile(l->arg);
	do {
		n = read(pipe, &r, sizeof(r));
	} while (n < 0 && errno == EINTR);
	if (n != (ssize_t)sizeof(r))
		return HALE_OK;
	errno = r.error;
	if (r.step == 1)
		return error_sys(err, HALE_ERR_PROCESS, "cannot enter the working folder %s",
				 l->wdir);
	if (r.error == ENOEXEC)
		return error_set(err, HALE_ERR_PROCESS,
				 "'%s' is neither a program nor a script that names its "
				 "interpreter in the first line (#!)",
				 l->path);
	return error_sys(err, HALE_ERR_PROCESS, "cannot start '%s': could not %s", l->path,
			 steps[r.step]);
}

/* Who had the id has been killed, and may not have been waited for yet. */
static bool is_ending(pid_t id)
{
	struct procstat s;

	return !procstat_read(id, &s) || strchr("ZX", s.state);
}

/* A program that comes out of an image knows its own ids: it gets them again where that is allowed
 * and nobody else has them. */
static pid_t begin(const struct launch *l)
{
	pid_t pid = l->id > 0 ? ids_fork(l->id) : -1;

	for (int i = 0; i < ID_TRIES && l->id > 0 && pid < 0 && errno == EEXIST; i++) {
		if (!is_ending(l->id))
			break;
		if (l->meanwhile)
			l->meanwhile(l->arg);
		usleep(ID_TRY_US);
		pid = ids_fork(l->id);
	}
	if (pid < 0 && l->id > 0)
		log_info("the process that had the id %d gets another one: %s", (int)l->id,
			 errno == EEXIST ? "something else has it now" : strerror(errno));
	return pid < 0 ? fork() : pid;
}

hale_status_t launch_process(const struct launch *l, pid_t *pid, struct error *err)
{
	pid_t head = getpid();
	int ends[2];
	hale_status_t status;

	*pid = 0;
	if (pipe2(ends, O_CLOEXEC) != 0)
		return error_sys(err, HALE_ERR_SYSTEM, "cannot start '%s'", l->path);
	*pid = begin(l);
	if (*pid == 0) {
		struct launch_report r = become_rank(l, head);
		ssize_t n = write(ends[1], &r, sizeof(r));
		_exit(n == (ssize_t)sizeof(r) ? 127 : 126);
	}
	close(ends[1]);
	if (*pid < 0) {
		*pid = 0;
		status = error_sys(err, HALE_ERR_SYSTEM, "cannot start '%s'", l->path);
		goto close_pipe;
	}
	setpgid(*pid, *pid); /* whoever comes first, so that the group is there from now on */
	status = await_exec(ends[0], l, err);
	if (status != HALE_OK) {
		while (waitpid(*pid, NULL, 0) < 0 && errno == EINTR)
			;
		*pid = 0;
	}
close_pipe:
	close(ends[0]);
	return status;
}
