// SPDX-License-Identifier: BSD-3-Clause
/* Descendants that are stopped (SIGSTOP, a shell's job control) can't hear that they are wanted.
 *
 *   root        SIGURG, which waits there; SIGCONT
 *   descendant  goes on, right into its handler; its image is taken; stops itself, in the handler
 *
 * Whoever lets it go on later finds it there, and it returns to its program; or it is the root
 * again. The restored process stops itself at the same place. Its parent stands still meanwhile,
 * and what the kernel tells it of that is taken away: its wait and its SIGCHLD are as before. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "base/fmt.h"
#include "image/engine.h"
#include "image/tree/tree.h"

enum { SETTLE_S = 60, TICK_NS = 1000000 };

/* Of this process; in its image, too. */
static struct {
	struct {
		int32_t pid;
		bool told; /* this process has waited for its stop */
	} child[TREE_MAX];
	uint32_t count;
	bool had_sigchld;
	bool masked;
	sys_set_t mask;
} mine;

bool tree_is_stopped(int32_t pid)
{
	char path[64];
	fmt_print(path, sizeof(path), "/proc/%d/stat", pid);
	return sys_state(path) == 'T';
}

const char *tree_stopped_refusal(int32_t pid)
{
	char path[64], text[4096];
	fmt_print(path, sizeof(path), "/proc/%d/status", pid);
	if (sys_read_small(path, text, sizeof(text)) <= 0)
		return NULL;
	const char *threads = strstr(text, "\nThreads:\t"), *caught = strstr(text, "\nSigCgt:\t");
	if (threads && atoi(threads + 10) > 1)
		return "it is stopped, and has several threads";
	if (caught && strtoull(caught + 9, NULL, 16) & SYS_SET_BIT(SIGCONT))
		return "it is stopped, and handles SIGCONT, which would be called";
	return NULL;
}

/* ---- its parent ---- */

/* The signal that has stopped it, as far as anybody will be told of it; 0: no room. */
static int note_one(int32_t pid)
{
	siginfo_t info = {0};
	for (uint32_t i = 0; i < mine.count; i++)
		if (mine.child[i].pid == pid)
			return SIGSTOP;
	sys(SYS_waitid, P_PID, pid, &info, WSTOPPED | WNOHANG | WNOWAIT, NULL);
	bool told = info.si_pid != pid;
	if (mine.count == TREE_MAX)
		return 0;
	if (!mine.count) {
		sys_set_t set = 0;
		sys(SYS_rt_sigpending, &set, sizeof(set));
		mine.had_sigchld = set & SYS_SET_BIT(SIGCHLD);
	}
	mine.child[mine.count].pid = pid;
	mine.child[mine.count++].told = told;
	return told ? SIGSTOP : info.si_status;
}

void tree_stopped_note(struct tree_round *t)
{
	static struct tree_process found[TREE_MAX];
	size_t count = 0;
	int32_t self = (int32_t)sys(SYS_getpid);
	mine.count = 0;
	if (!image_has_children() || !tree_find(self, found, TREE_MAX, &count))
		return;
	for (size_t i = 0; i < count && i < TREE_MAX; i++) {
		if (found[i].parent != self || !tree_is_stopped(found[i].pid))
			continue;
		uint64_t sig = (uint64_t)note_one(found[i].pid);
		uint32_t n = atomic_fetch_add(&t->noted_count, 1);
		if (n < TREE_MAX)
			atomic_store(&t->noted[n], sig << 32 | (uint32_t)found[i].pid);
	}
}

static bool is_mine(int32_t pid)
{
	for (uint32_t i = 0; i < mine.count; i++)
		if (mine.child[i].pid == pid)
			return true;
	return false;
}

/* What told of their going on and stopping, if it can have told of nothing else. */
static void forget_sigchld(void)
{
	const struct timespec now = {0, 0};
	const sys_set_t set = SYS_SET_BIT(SIGCHLD);
	siginfo_t info = {0};
	sys(SYS_waitid, P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT, NULL);
	if (info.si_pid || mine.had_sigchld ||
	    sys(SYS_rt_sigtimedwait, &set, &info, &now, sizeof(set)) != SIGCHLD)
		return;
	if ((info.si_code != CLD_STOPPED && info.si_code != CLD_CONTINUED) || !is_mine(info.si_pid))
		sys(SYS_rt_sigqueueinfo, sys(SYS_getpid), SIGCHLD, &info);
}

void tree_stopped_settle(void)
{
	const struct timespec tick = {0, TICK_NS};
	uint64_t deadline = clock_ns() + SETTLE_S * 1000000000ull;
	for (uint32_t i = 0; i < mine.count; i++) {
		while (!tree_is_stopped(mine.child[i].pid) && tree_runs(mine.child[i].pid) &&
		       clock_ns() < deadline)
			sys(SYS_nanosleep, &tick, NULL);
		if (mine.child[i].told)
			sys(SYS_waitid, P_PID, mine.child[i].pid, NULL, WSTOPPED | WNOHANG, NULL);
	}
	if (mine.count)
		forget_sigchld();
	mine.count = 0;
	if (mine.masked)
		sys(SYS_rt_sigprocmask, SIG_SETMASK, &mine.mask, NULL, sizeof(mine.mask));
	mine.masked = false;
}

/* ---- the root ---- */

static int noted_as(const struct tree_round *t, int32_t pid)
{
	uint32_t n = atomic_load(&t->noted_count);
	for (uint32_t i = 0; i < n && i < TREE_MAX; i++)
		if ((int32_t)atomic_load(&t->noted[i]) == pid)
			return (int)(atomic_load(&t->noted[i]) >> 32);
	return 0;
}

void tree_stopped_begin(void)
{
	mine.count = 0;
}

/* Of the root's own children the root is told at any time, so it takes no signal from here on. */
static int note_of_root(int32_t pid)
{
	const sys_set_t all = ~0ull;
	if (!mine.masked)
		sys(SYS_rt_sigprocmask, SIG_SETMASK, &all, &mine.mask, sizeof(all));
	mine.masked = true;
	return note_one(pid);
}

hale_status_t tree_stopped_wake(struct tree_round *t, struct tree_member *m,
				void (*ask)(const struct tree_member *), struct error *err)
{
	const char *why = tree_stopped_refusal(m->is.pid);
	int sig = (int)atomic_load(&m->stopped);
	if (!why && !sig)
		sig = m->is.parent == t->root ? note_of_root(m->is.pid) : noted_as(t, m->is.pid);
	if (!why && !sig)
		why = "it has just been stopped";
	if (why)
		return error_set(err, HALE_ERR_AGAIN,
				 "its child process %d (%s) can't be captured: %s", m->is.pid,
				 m->is.name, why);
	atomic_store(&m->stopped, (uint32_t)sig);
	ask(m);
	sys(SYS_kill, m->is.pid, SIGCONT);
	return HALE_OK;
}

/* ---- itself ---- */

/* All signals are blocked here. Who is told of the stop is told by which signal. */
static void stop_by(int sig)
{
	const sys_set_t all = ~0ull, but = ~SYS_SET_BIT(sig);
	struct sys_action now = {0}, before;
	sys_set_t waits = 0;
	if (sig != SIGSTOP) {
		sys(SYS_rt_sigaction, sig, &now, &before, sizeof(all));
		sys(SYS_kill, sys(SYS_getpid), sig);
		sys(SYS_rt_sigprocmask, SIG_SETMASK, &but, NULL, sizeof(but));
		sys(SYS_rt_sigprocmask, SIG_SETMASK, &all, NULL, sizeof(all));
		sys(SYS_rt_sigaction, sig, &before, NULL, sizeof(all));
		sys(SYS_rt_sigpending, &waits, sizeof(waits));
	}
	/* a group without anybody to continue it is not stopped by a terminal's signals */
	if (!(waits & SYS_SET_BIT(SIGCONT)))
		sys(SYS_kill, sys(SYS_getpid), SIGSTOP);
}

bool tree_stopped_again(int signal, siginfo_t *call)
{
	const struct timespec now = {0, 0};
	const sys_set_t cont = SYS_SET_BIT(SIGCONT), urg = SYS_SET_BIT(SIGURG);
	siginfo_t info;
	/* the root's, which has no handler here */
	while (sys(SYS_rt_sigtimedwait, &cont, &info, &now, sizeof(cont)) == SIGCONT)
		;
	stop_by(signal);
	return sys(SYS_rt_sigtimedwait, &urg, call, &now, sizeof(urg)) == SIGURG;
}
