/* SPDX-License-Identifier: BSD-3-Clause */
#include "head/head_requeue.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/base.h"
#include "base/exit_status.h"
#include "head/head.h"
#include "head/head_private.h"

/* ---- the end of this life ---- */

static void requeue_end_job(void *arg)
{
	struct head *h = arg;

	h->end.stopping = true;
	node_set_signal_all(&h->node_set, SIGKILL);
	head_end(h, EXIT_REQUEUE);
}

bool requeue_signal(struct head *h, int sig)
{
	struct head_requeue *q = &h->requeue;
	bool warning = sig == SIGUSR1;
	struct error err;

	if (!h->o->requeue || (!warning && sig != SIGTERM) || job_state_over(h->state))
		return false;
	q->ask = q->ask || warning;
	if (q->under_way)
		return warning;
	q->under_way = true;
	q->keeps = h->ckpt.timed.asked_for;
	head_say(h, "SIG%s: a checkpoint, then the job ends%s", sigabbrev_np(sig),
		 warning ? " and is requeued" : "; when it is requeued it goes on from there");
	if (checkpoint_request(h, ORIGIN_USER, &err) != HALE_OK)
		requeue_checkpoint_over(h, NULL, err.text);
	return true;
}

/* Called from the middle of checkpoints: the end waits for the loop. */
void requeue_checkpoint_over(struct head *h, const char *folder, const char *why)
{
	struct head_requeue *q = &h->requeue;

	if (!q->under_way || q->ended.armed || job_state_over(h->state))
		return;
	if (!folder)
		head_say(h,
			 "no checkpoint: %s; the job will go on from an earlier one, or begin anew",
			 why);
	loop_timer_set(&h->loop, &q->ended, 0, requeue_end_job, h);
}

void requeue_ask(const struct head *h)
{
	char *argv[] = {"scontrol", "requeue", getenv("SLURM_JOB_ID"), NULL};
	sigset_t none;
	int status = 0;
	pid_t pid;

	if (!h->requeue.ask || h->end.status != EXIT_REQUEUE)
		return;
	pid = fork();
	if (pid == 0) {
		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		execvp(argv[0], argv);
		_exit(EXIT_NOT_FOUND);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
		log_warn(
		    "`scontrol requeue %s` has failed: the job stays ended; sbatch's --requeue "
		    "allows it, and `hale restart %s/%s` goes on elsewhere",
		    argv[2], h->o->ckpt_dir, h->id.job);
}

/* ---- what was printed ---- */

void requeue_save_output(struct head *h)
{
	const struct head_requeue *q = &h->requeue;
	char path[REQUEUE_PATH];
	bool right;
	FILE *f;

	if (!q->under_way || !h->files.is_open || !h->node_set.ranks)
		return;
	requeue_path(h->files.store.job_folder, path);
	f = fopen(path, "we");
	right = f && fprintf(f, "%s %d\n", h->id.run, q->keeps) > 0;
	for (uint32_t r = 0; right && r < h->nranks; r++)
		right = fprintf(f, "%" PRIu64 " %" PRIu64 "\n",
				h->node_set.ranks[r].out[0].history.printed,
				h->node_set.ranks[r].out[1].history.printed) > 0;
	right = f && fclose(f) == 0 && right;
	if (!right)
		log_warn("can't write '%s': what was printed since the last checkpoint will be "
			 "printed again",
			 path);
}

void requeue_begin_output(struct head *h, const char *job_folder)
{
	char path[REQUEUE_PATH], run[STORE_RUN_MAX];
	uint64_t printed[2];
	int keeps;
	FILE *f;

	requeue_path(job_folder, path);
	f = h->o->requeue ? fopen(path, "re") : NULL;
	if (!f)
		return;
	if (fscanf(f, "%32s %d", run, &keeps) == 2 && strcmp(run, h->id.run) == 0) {
		h->ckpt.timed.asked_for = keeps;
		for (uint32_t r = 0; r < h->nranks && fscanf(f, "%" SCNu64 " %" SCNu64, &printed[0],
							     &printed[1]) == 2;
		     r++)
			for (int i = 0; i < 2; i++)
				output_position_go_on(&h->node_set.ranks[r].out[i], printed[i],
						      printed[i]);
	}
	fclose(f);
}
