/* SPDX-License-Identifier: BSD-3-Clause */
/* Signals to a supervisor.
 *
 * Descendants of a rank that has died become children of the supervisor until a rollback ends
 * them. One that means its parent (`kill(getppid(), SIGUSR1)`) hits the supervisor then, and with
 * it all ranks of the node. So a signal ends the node only if it is one of those that ask for an
 * end, and does not come from such an orphan. */
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>
#include "base/base.h"
#include "base/procstat.h"
#include "agent/supervisor/supervisor_private.h"

static const int ends[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT};

/* What the kernel sends for a mistake of the process itself; the mask does not hold these back. */
static const int mistakes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};

/* What does not end a process that has not asked for it. */
static const int harmless[] = {SIGTSTP, SIGTTIN, SIGTTOU, SIGCONT, SIGURG, SIGWINCH};

int ward_signals_open(void)
{
	sigset_t set;

	sigfillset(&set);
	for (size_t i = 0; i < ARRAY_LEN(mistakes); i++)
		sigdelset(&set, mistakes[i]);
	for (size_t i = 0; i < ARRAY_LEN(harmless); i++)
		sigdelset(&set, harmless[i]);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static bool asks_for_the_end(int signal)
{
	for (size_t i = 0; i < ARRAY_LEN(ends); i++)
		if (ends[i] == signal)
			return true;
	return false;
}

static bool is_rank(const struct ward *w, pid_t pid)
{
	for (uint32_t r = 0; r < atomic_load(&w->book->count); r++)
		if (atomic_load(&w->book->child[r].pid) == pid &&
		    !atomic_load(&w->book->child[r].ended))
			return true;
	return false;
}

/* Nobody but this process reaps an orphan, so one that has ended by now can still be asked. */
static bool is_orphan(const struct ward *w, pid_t pid)
{
	struct procstat s;

	return pid > 0 && pid != w->agent && pid != w->watchdog && !is_rank(w, pid) &&
	       procstat_read(pid, &s) && s.parent == getpid();
}

int ward_signals_take(struct ward *w)
{
	struct signalfd_siginfo info;
	int end = 0;

	while (read(w->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		int number = (int)info.ssi_signo;
		bool sent = info.ssi_code <= 0; /* by a process */

		if (number == SIGCHLD)
			continue;
		if (asks_for_the_end(number) && !(sent && is_orphan(w, (pid_t)info.ssi_pid)))
			end = number;
		else
			log_info("a supervisor does not follow signal %d (%s) of process %d",
				 number, strsignal(number), sent ? (int)info.ssi_pid : 0);
	}
	return end;
}
