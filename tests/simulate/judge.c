/* SPDX-License-Identifier: BSD-3-Clause */
/* What must hold. */
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "actor.h"
#include "globals.h"
#include "kernel.h"
#include "node/job.h"
#include "plan.h"

/* Of one layout: where its ranks began, and how far they are. */
struct lineage {
	uint32_t generation, restored;
	bool known;
	long done[RANKS_MAX];
	struct proc *waits[RANKS_MAX]; /* for the others */
};

enum { LINEAGES = 64 };

OWN static char *printed;
OWN static size_t printed_len, printed_cap;
OWN static char said[8192]; /* the last that the job has said on stderr */
OWN static uint32_t newest_complete, rollbacks;
OWN static bool any_began;  /* a rank has */
OWN static bool unbegun;    /* the job has said that its last head ended before it had begun */
OWN static bool may_repeat; /* the job has said that some output may come twice */
OWN static struct lineage lineages[LINEAGES];

void judge_begin(void)
{
	printed_len = 0;
	said[0] = '\0';
	newest_complete = rollbacks = 0;
	unbegun = any_began = false;
	may_repeat = false;
	memset(lineages, 0, sizeof(lineages));
}

/* ---- the ranks ---- */

static struct lineage *lineage_of(uint32_t generation)
{
	struct lineage *l = &lineages[generation % LINEAGES];

	if (!l->known || l->generation != generation) {
		*l = (struct lineage){.generation = generation, .known = true};
		for (int r = 0; r < RANKS_MAX; r++)
			l->done[r] = -1;
		l->restored = UINT32_MAX;
	}
	return l;
}

/* Messages of ranks that had gone back to different checkpoints would not fit. */
void actor_rank_begins(const struct actor_rank *k)
{
	struct lineage *l = lineage_of(k->generation);

	kernel_say("rank %u begins at step %ld", k->rank, k->step);
	if (l->restored != UINT32_MAX && l->restored != k->restored)
		kernel_fail("rank %u goes on from checkpoint %u, others beside it from %u", k->rank,
			    k->restored, l->restored);
	if (k->restored > 0 && k->restored < newest_complete && !faults_may_refuse())
		kernel_fail("rank %u goes on from checkpoint %u, although %u is complete", k->rank,
			    k->restored, newest_complete);
	any_began = true;
	l->restored = k->restored;
	l->done[k->rank] = k->step;
	if (k->restored > 0)
		faults_moment(AT_BACK);
}

static bool may_step(const struct lineage *l, long step)
{
	for (uint32_t r = 0; plan.coupled && r < plan.ranks; r++)
		if (l->done[r] < step)
			return false;
	return true;
}

void actor_rank_has_done(const struct actor_rank *k)
{
	struct lineage *l = lineage_of(k->generation);

	l->done[k->rank] = k->step;
	for (uint32_t r = 0; r < plan.ranks; r++)
		if (l->waits[r] && may_step(l, l->done[r]))
			l->waits[r]->check = true;
}

bool actor_rank_may_step(const struct actor_rank *k, bool waits)
{
	struct lineage *l = lineage_of(k->generation);

	l->waits[k->rank] = waits ? kernel->running : NULL;
	return faults_stalled(k->rank) <= kernel->now && may_step(l, k->step);
}

void actor_rank_steps(struct proc *p)
{
	for (uint32_t i = 0; i < kernel->proc_limit; i++) {
		const struct proc *q = &kernel->procs[i];

		if (q != p && proc_alive(q) && !q->stopped && q->rank == p->rank && q->rank_runs)
			kernel_fail("two processes of rank %ld run: %d on %s and %d on %s",
				    (long)p->rank, (int)p->pid, p->host->name, (int)q->pid,
				    q->host->name);
	}
}

/* ---- checkpoints ---- */

/* How many of the job are complete, and the number of the last one. */
static uint32_t complete_checkpoints(uint32_t *newest)
{
	char(*jobs)[256], (*ids)[256], path[PATH_MAX];
	size_t job_count = disk_list("/cluster/ckpt", &jobs), count;
	uint32_t complete = 0;

	*newest = 0;
	if (job_count == (size_t)-1)
		return 0;
	for (size_t j = 0; j < job_count; j++) {
		snprintf(path, sizeof(path), "/cluster/ckpt/%s", jobs[j]);
		count = disk_list(path, &ids);
		for (size_t i = 0; count != (size_t)-1 && i < count; i++) {
			uint32_t id = (uint32_t)atoi(ids[i]);

			if (strspn(ids[i], "0123456789") != strlen(ids[i]))
				continue;
			snprintf(path, sizeof(path), "/cluster/ckpt/%s/%s/manifest.json", jobs[j],
				 ids[i]);
			if (!disk_find(path))
				continue;
			complete++;
			*newest = id > *newest ? id : *newest;
		}
		if (count != (size_t)-1)
			free(ids);
	}
	free(jobs);
	return complete;
}

uint32_t judge_newest_complete(void)
{
	return newest_complete;
}

/* A checkpoint counts as complete once its folder has its final name. */
void judge_file(const char *path, const char *what)
{
	uint32_t newest;

	if (!strstr(path, "/cluster/ckpt/") || kernel->failure[0])
		return;
	complete_checkpoints(&newest);
	if (newest > newest_complete) {
		newest_complete = newest;
		faults_moment(AT_COMMIT);
	} else if (newest < newest_complete && faults_may_refuse()) {
		newest_complete = newest; /* it has been set aside */
	} else if (newest < newest_complete && proc_find(head)) {
		kernel_fail("checkpoint %u, the newest complete one, is no more after %s was %s",
			    newest_complete, path, what);
	}
}

/* ---- words ---- */

static bool has(const char *text, const char *words)
{
	return strstr(text, words) != NULL;
}

void judge_says(const char *text, size_t len)
{
	snprintf(said, sizeof(said), "%.*s", (int)(len < 8000 ? len : 8000), text);
	/* an agent that is killed together with the head before either had begun is not replaced */
	unbegun = unbegun || has(said, "ended before it had begun") ||
		  (!any_began && has(said, "nothing is left of job"));
	may_repeat = may_repeat || has(said, "some of it may come twice");
	if (has(said, " is lost ("))
		faults_moment(AT_LOSS);
	if (has(said, " back to ") &&
	    (has(said, "rolling back") || has(said, "all ranks go back"))) {
		rollbacks++;
		faults_moment(AT_CLEARING);
	}
	/* this looks at what is real: a new look of the agent's has to have its answer in actor.c */
	if (has(said, "can't be captured"))
		kernel_fail("a rank is refused that can always be captured: %.300s", said);
	/* no other image is ever damaged */
	if (has(said, " is refused: ") && !faults_may_refuse())
		kernel_fail("a good checkpoint is refused: %.300s", said);
}

void judge_output(const void *bytes, size_t len)
{
	if (printed_len + len + 1 > printed_cap) {
		printed_cap = 2 * (printed_len + len + 1);
		printed = realloc(printed, printed_cap);
	}
	memcpy(printed + printed_len, bytes, len);
	printed_len += len;
	printed[printed_len] = '\0';
}

/* Each rank's lines, once, in their order. */
static void check_output(bool whole)
{
	long next[RANKS_MAX] = {0}, rank, step;
	char *line, *rest, *copy = strdup(printed ? printed : "");

	if (printed_len == 0)
		copy[0] = '\0';
	for (line = strtok_r(copy, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		if (sscanf(line, "rank %ld step %ld", &rank, &step) != 2 || rank < 0 ||
		    rank >= plan.ranks) {
			kernel_fail("a line of output is none of a rank: '%s'", line);
			break;
		}
		if (may_repeat && step < next[rank])
			next[rank] = step;
		if (step != next[rank]++) {
			kernel_fail(
			    "rank %ld's line of step %ld was printed when that of %ld was due",
			    rank, step, next[rank] - 1);
			break;
		}
	}
	for (uint32_t r = 0; whole && !kernel->failure[0] && r < plan.ranks; r++)
		if (next[r] != plan.steps)
			kernel_fail("rank %u has printed %ld lines of %ld", r, next[r], plan.steps);
	free(copy);
}

static void check_processes(void)
{
	char text[256] = "";
	size_t n = 0;

	for (uint32_t i = 0; i < kernel->proc_limit && n < 200; i++)
		if (proc_alive(&kernel->procs[i]))
			n += (size_t)snprintf(text + n, sizeof(text) - n, " %s (%d on %s)",
					      kernel->procs[i].name, (int)kernel->procs[i].pid,
					      kernel->procs[i].host->name);
	if (n > 0)
		kernel_fail("processes are left:%.200s", text);
}

/* The job has ended. */
void judge_end(void)
{
	bool harmless;
	uint32_t begun = faults_begun(&harmless);

	if (exit_status == 0)
		check_output(true);
	else if (exit_status != 128 + SIGKILL && !said[0])
		kernel_fail("the job ends with status %d without a word", exit_status);
	else if (exit_status != 128 + SIGKILL && harmless && !unbegun)
		kernel_fail("the job ends with status %d, and could have gone on", exit_status);
	if (!kernel->failure[0] && rollbacks > 0 && begun == 0)
		kernel_fail("the job has gone back %u times, and nothing had failed", rollbacks);
	if (!kernel->failure[0])
		check_processes();
}
