/* SPDX-License-Identifier: BSD-3-Clause */
/* Signals to hale run. */
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/base.h"
#include "head/head.h"
#include "head/head_private.h"
#include "head/failover/succession.h"
#include "head/failover/takeover.h"
#include "head/watch/watch.h"

static const int taken[] = {SIGINT,  SIGTERM, SIGHUP,  SIGQUIT, SIGUSR1,
			    SIGUSR2, SIGTSTP, SIGCONT, SIGCHLD};

static void stop_everything(struct head *h)
{
	node_set_pause(&h->node_set, true);
	raise(SIGSTOP);
	node_set_pause(&h->node_set, false);
	stdin_spool_retry(&h->node_set.stdin_spool);
}

/* The second time there is no grace. */
static void end_by_signal(struct head *h, int sig)
{
	if (h->end.stopping) {
		node_set_signal_all(&h->node_set, SIGCONT);
		node_set_signal_all(&h->node_set, SIGKILL);
		return;
	}
	h->end.stopping = true;
	head_say(h, "SIG%s: the job ends", sigabbrev_np(sig));
	node_set_signal_all(&h->node_set, sig);
	node_set_signal_all(&h->node_set, SIGCONT);
	/* ranks that run say by their status what they made of it */
	if (h->state == JOB_STARTING || h->state == JOB_CLEARING || h->state == JOB_RESTORING)
		head_end(h, 128 + sig);
	else
		head_end_by_request(h);
}

static void reap(struct head *h)
{
	pid_t pid;
	int status;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		if (pid == h->output_daemon.pid)
			h->output_daemon.pid = 0;
		else if (!node_set_child(&h->node_set, pid, status) &&
			 !watch_child(h, pid, status) && !checkpoint_child(h, pid) &&
			 !levels_child(h, pid) && !recover_files_child(h, pid))
			recover_child(h, pid, status);
}

static void take_signal(struct head *h, int sig)
{
	struct error err;

	if (requeue_signal(h, sig))
		return;
	switch (sig) {
	case SIGCHLD:
		reap(h);
		break;
	case SIGUSR1:
		if (checkpoint_request(h, ORIGIN_USER, &err) != HALE_OK)
			log_warn("no checkpoint: %s", err.text);
		break;
	case SIGTSTP:
		stop_everything(h);
		break;
	case SIGCONT:
		/* it may have stood still for long */
		if (takeover_check(h))
			break;
		node_set_signal_all(&h->node_set, SIGCONT);
		stdin_spool_retry(&h->node_set.stdin_spool);
		break;
	case SIGUSR2:
		h->signals.usr2_waits = true;
		head_signals_pass(h);
		break;
	default:
		end_by_signal(h, sig);
		break;
	}
}

static void signals_ready(void *arg, uint32_t events)
{
	struct head *h = arg;
	struct signalfd_siginfo info;

	if (read(h->signals.fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
		take_signal(h, (int)info.ssi_signo);
}

static void too_large(int sig)
{
}

hale_status_t head_signals_start(struct head *h, struct error *err)
{
	struct sigaction now;
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_LEN(taken); i++) {
		/* nohup and background shells ignore some: so do we, and so do the ranks */
		if (taken[i] != SIGCHLD && sigaction(taken[i], NULL, &now) == 0 &&
		    now.sa_handler == SIG_IGN)
			continue;
		sigaddset(&set, taken[i]);
	}
	signal(SIGCHLD, SIG_DFL);
	signal(SIGPIPE, SIG_IGN);
	/* a limit on files (ulimit -f) is an error of a write; who is started has what was there */
	if (sigaction(SIGXFSZ, NULL, &now) == 0 && now.sa_handler == SIG_DFL)
		signal(SIGXFSZ, too_large);
	sigprocmask(SIG_BLOCK, &set, NULL);
	h->signals.fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (h->signals.fd < 0 ||
	    !loop_add(&h->loop, &h->signals.source, h->signals.fd, EPOLLIN, signals_ready, h))
		return error_sys(err, HALE_ERR_SYSTEM, "cannot receive signals");
	return HALE_OK;
}
