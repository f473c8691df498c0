/* SPDX-License-Identifier: BSD-3-Clause */
/* What fails, when, and for how long. A new kind is a line in `kinds` and a case in begin. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "actor.h"
#include "globals.h"
#include "kernel.h"
#include "node/job.h"
#include "plan.h"
#include "world.h"

static const struct {
	const char *name, *text;
	bool harmless; /* a job can always go on after it */
} kinds[FAULT_KINDS] = {
    [KILL_RANK] = {"kill-rank", "a rank is killed", true},
    [KILL_AGENT] = {"kill-agent", "an agent is killed", true},
    [KILL_SUPERVISOR] = {"kill-supervisor", "a supervisor is killed", false},
    [KILL_AGENT_AND_SUPERVISOR] = {"kill-both", "an agent and its supervisor are killed", false},
    [STALL_RANK] = {"stall-rank", "a rank stands still", true},
    [STOP_AGENT] = {"stop-agent", "an agent stands still", false},
    [STOP_SUPERVISOR] = {"stop-supervisor", "a supervisor stands still", false},
    [STOP_HEAD] = {"stop-head", "the head stands still", false},
    [CUT_BOTH] = {"cut", "a host is cut off", false},
    [CUT_TO_HEAD] = {"cut-from", "nothing comes from a host any more", false},
    [CUT_FROM_HEAD] = {"cut-to", "nothing gets to a host any more", false},
    [NO_LOGIN] = {"no-login", "a host lets nobody in", false},
    [LOSE_HOST] = {"lose-host", "a host is lost", false},
    [FILL_DISK] = {"fill-disk", "a disk is full", false},
    [KILL_HEAD] = {"kill-head", "the head is killed", true},
    [FOLLOW_HEAD] = {"follow", "the head stands still, and another one comes", false},
    [REPLACE_HEAD] = {"replace", "another head comes although there is one", false},
    [DAMAGE_IMAGE] = {"damage-image", "an image of the newest checkpoint is damaged", true},
    [HANG_REBUILD] = {"hang-rebuild", "a process that becomes an image hangs", true},
};

static const char *const moments[MOMENTS] = {
    [AT_ANY_TIME] = "at any time",	 [AT_FAULT] = "after the last fault",
    [AT_LOSS] = "when a node is lost",	 [AT_CLEARING] = "in a rollback",
    [AT_RESTORING] = "in a restart",	 [AT_BACK] = "just after a restart",
    [AT_CHECKPOINT] = "in a checkpoint", [AT_COMMIT] = "just after a checkpoint",
    [AT_TAKEOVER] = "in a takeover",
};

enum { SWARM_KINDS = 4, SWARM_MOMENTS = 2 };

OWN static bool wanted[FAULT_KINDS];
OWN static bool choosy, plain, may_refuse;
OWN static uint32_t hangs; /* so many of the next processes that become an image */
OWN static enum fault_kind some_kinds[SWARM_KINDS];
OWN static enum moment some_moments[SWARM_MOMENTS];
OWN static uint32_t kind_count, moment_count;
OWN static uint64_t stalled[RANKS_MAX];

bool world_choose(const char *names)
{
	char copy[512], *word, *rest;

	snprintf(copy, sizeof(copy), "%s", names);
	choosy = true;
	plain = true;
	for (word = strtok_r(copy, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
		int k = 0;

		while (k < FAULT_KINDS && strcmp(kinds[k].name, word) != 0)
			k++;
		if (k == FAULT_KINDS)
			return false;
		wanted[k] = true;
		plain = plain && k < PLAIN_KINDS;
	}
	return true;
}

void world_no_swarm(void)
{
	plain = true;
}

/* ---- drawn ---- */

bool faults_draw_swarm(void)
{
	if (plain || choosy || kernel_chance(0.4))
		return false;
	kind_count = 2 + (uint32_t)kernel_random(SWARM_KINDS - 1);
	for (uint32_t i = 0; i < kind_count; i++)
		some_kinds[i] = (enum fault_kind)kernel_random(FAULT_KINDS);
	moment_count = 1 + (uint32_t)kernel_random(SWARM_MOMENTS);
	for (uint32_t i = 0; i < moment_count; i++)
		some_moments[i] = (enum moment)(1 + kernel_random(MOMENTS - 1));
	return true;
}

static bool is_of_rank(const struct happening *f)
{
	return f->kind == KILL_RANK || f->kind == STALL_RANK;
}

static uint64_t drawn(double from, double to)
{
	return (uint64_t)((from + (to - from) * (double)kernel_random(1000) / 1000) * 1e9);
}

static enum fault_kind draw_kind(void)
{
	enum fault_kind k;

	do
		k = plan.swarm ? some_kinds[kernel_random(kind_count)]
			       : (enum fault_kind)kernel_random(plain ? PLAIN_KINDS : FAULT_KINDS);
	while (choosy && !wanted[k]);
	if ((k == KILL_HEAD || k == FOLLOW_HEAD || k == REPLACE_HEAD) && !plan.grace)
		k = KILL_RANK;
	return k;
}

/* The first one comes at any time, mostly: what others may follow needs it. */
static enum moment draw_moment(size_t i)
{
	if (i == 0)
		return kernel_chance(0.8)   ? AT_ANY_TIME
		       : kernel_chance(0.5) ? AT_CHECKPOINT
					    : AT_COMMIT;
	if (plan.swarm && kernel_chance(0.7))
		return some_moments[kernel_random(moment_count)];
	return kernel_chance(0.4) ? AT_ANY_TIME : (enum moment)(1 + kernel_random(MOMENTS - 1));
}

/* Some are about as long as a lease: then head and node may judge differently. */
static uint64_t draw_length(void)
{
	if (kernel_chance(0.25))
		return drawn(0.8 * plan.timeout, 1.5 * plan.timeout);
	return drawn(0.05, kernel_chance(0.3) ? 20 : 3);
}

void faults_draw(void)
{
	double span = 2.0 + (double)plan.steps * plan.pace * 0.8e-6;

	memset(stalled, 0, sizeof(stalled));
	hangs = 0;
	may_refuse = false;
	plan.fault_count = kernel_random(FAULTS_MAX - 1);
	for (size_t i = 0; i < plan.fault_count; i++) {
		struct happening *f = &plan.faults[i];

		f->kind = draw_kind();
		f->after = draw_moment(i);
		f->nth = kernel_chance(0.7) ? 1 : 1 + (uint32_t)kernel_random(3);
		f->inside = kernel_chance(0.5);
		f->delay = f->after == AT_ANY_TIME ? drawn(0.05, span)
			   : kernel_chance(0.3)	   ? 0
			   : kernel_chance(0.7)	   ? drawn(0, 0.3)
						   : drawn(0, 6);
		f->lasts = draw_length();
		f->victim = is_of_rank(f) ? (uint32_t)kernel_random(plan.ranks)
					  : 1 + (uint32_t)kernel_random(plan.hosts);
		if (f->after == AT_FAULT && kernel_chance(0.5) && !is_of_rank(f) &&
		    !is_of_rank(&plan.faults[i - 1]))
			f->victim = plan.faults[i - 1].victim;
		if (f->after == AT_ANY_TIME)
			f->at = kernel->now + f->delay;
	}
}

/* ---- begin and end ---- */

static struct proc *one_named(const struct machine *h, const char *name)
{
	for (uint32_t i = 0; i < kernel->proc_limit; i++)
		if (proc_alive(&kernel->procs[i]) && kernel->procs[i].host == h &&
		    !strcmp(kernel->procs[i].name, name))
			return &kernel->procs[i];
	return NULL;
}

static void signal_one(struct proc *p, int sig)
{
	if (!p)
		return;
	kernel_say("fault: signal %d to %s, process %d on %s", sig, p->name, (int)p->pid,
		   p->host->name);
	proc_kill(p, sig);
}

/* Of the few calls of one event, or of more. */
static void kill_one(struct proc *p, const struct happening *f)
{
	if (p && proc_alive(p) && f->inside)
		proc_end_within(p, kernel_chance(0.5) ? 12 : 80);
	else
		signal_one(p, SIGKILL);
}

static struct proc *process_of(uint32_t rank)
{
	for (uint32_t i = 0; i < kernel->proc_limit; i++)
		if (proc_alive(&kernel->procs[i]) && kernel->procs[i].rank == (int64_t)rank)
			return &kernel->procs[i];
	return NULL;
}

/* A byte of it, as a disk or a stray write does it. */
static void damage_image(uint32_t victim)
{
	uint32_t newest = judge_newest_complete();
	char(*jobs)[256], path[PATH_MAX];
	size_t count = newest > 0 ? disk_list("/cluster/ckpt", &jobs) : (size_t)-1;
	struct inode *image;

	if (count == (size_t)-1)
		return;
	for (size_t i = 0; i < count; i++) {
		snprintf(path, sizeof(path), "/cluster/ckpt/%s/%u/" JOB_IMAGE_NAME, jobs[i], newest,
			 victim % plan.ranks);
		image = disk_find(path);
		if (!image || image->len == 0)
			continue;
		kernel_say("%s is damaged", path);
		image->bytes[image->len / 2] ^= 1;
		may_refuse = true;
	}
	free(jobs);
}

bool faults_may_refuse(void)
{
	return may_refuse;
}

bool faults_hang(void)
{
	if (hangs == 0)
		return false;
	hangs--;
	may_refuse = true;
	kernel_say("the process that becomes an image hangs");
	return true;
}

static void begin_on_host(const struct happening *f, struct machine *h)
{
	uint64_t until = kernel->now + f->lasts;

	switch (f->kind) {
	case KILL_AGENT:
		kill_one(one_named(h, "hale-agent"), f);
		break;
	case KILL_SUPERVISOR:
		kill_one(one_named(h, "hale-supervisor"), f);
		break;
	case KILL_AGENT_AND_SUPERVISOR:
		kill_one(one_named(h, "hale-supervisor"), f);
		kill_one(one_named(h, "hale-agent"), f);
		break;
	case STOP_AGENT:
		signal_one(one_named(h, "hale-agent"), SIGSTOP);
		break;
	case STOP_SUPERVISOR:
		signal_one(one_named(h, "hale-supervisor"), SIGSTOP);
		break;
	case CUT_BOTH:
		h->cut_in = h->cut_out = until;
		break;
	case CUT_TO_HEAD:
		h->cut_in = until;
		break;
	case CUT_FROM_HEAD:
		h->cut_out = until;
		break;
	case NO_LOGIN:
		h->no_login = until;
		break;
	case LOSE_HOST:
		host_vanish(h, true);
		break;
	case FILL_DISK:
		h->disk_full = kernel->hosts[0].disk_full = 0.3;
		break;
	default:
		break;
	}
}

static void begin(struct happening *f)
{
	struct machine *h = &kernel->hosts[is_of_rank(f) ? 0 : f->victim];

	kernel_say("fault: %s (%s, %.2f s, %s)", kinds[f->kind].text, h->name,
		   (double)f->lasts / 1e9, moments[f->after]);
	f->begun = true;
	switch (f->kind) {
	case KILL_RANK:
		kill_one(process_of(f->victim), f);
		break;
	case STALL_RANK:
		stalled[f->victim] = kernel->now + f->lasts;
		break;
	case STOP_HEAD:
		f->victim = (uint32_t)head;
		signal_one(proc_find(head), SIGSTOP);
		break;
	case KILL_HEAD:
		f->victim = (uint32_t)head;
		kill_one(proc_find(head), f);
		break;
	case FOLLOW_HEAD:
		f->victim = (uint32_t)head;
		signal_one(proc_find(head), SIGSTOP);
		world_attach();
		break;
	case REPLACE_HEAD:
		world_attach();
		break;
	case DAMAGE_IMAGE:
		damage_image(f->victim);
		break;
	case HANG_REBUILD:
		hangs++;
		break;
	default:
		begin_on_host(f, h);
		break;
	}
}

static void go_on_all(const char *name)
{
	for (uint32_t i = 0; i < kernel->proc_limit; i++)
		if (proc_alive(&kernel->procs[i]) && kernel->procs[i].stopped &&
		    !strcmp(kernel->procs[i].name, name))
			proc_kill(&kernel->procs[i], SIGCONT);
}

static void end(struct happening *f)
{
	struct proc *p;

	kernel_say("over: %s", kinds[f->kind].text);
	f->ended = true;
	switch (f->kind) {
	case FILL_DISK:
		kernel->hosts[f->victim].disk_full = kernel->hosts[0].disk_full = 0;
		break;
	case STOP_AGENT:
		go_on_all("hale-agent");
		break;
	case STOP_SUPERVISOR:
		go_on_all("hale-supervisor");
		break;
	case STOP_HEAD:
	case FOLLOW_HEAD:
		p = proc_find((pid_t)f->victim);
		if (p && proc_alive(p))
			proc_kill(p, SIGCONT);
		break;
	case KILL_HEAD: /* it may not have come to its last call */
		p = proc_find((pid_t)f->victim);
		if (p && proc_alive(p) && p->last_call)
			proc_kill(p, SIGKILL);
		if (exit_status == 128 + SIGKILL)
			world_attach();
		break;
	default:
		break;
	}
}

/* ---- turns ---- */

static uint64_t turn_of(const struct happening *f)
{
	return f->at == 0 || f->ended ? NS_NEVER : f->begun ? f->at + f->lasts : f->at;
}

uint64_t faults_next(void)
{
	uint64_t next = NS_NEVER;

	for (size_t i = 0; i < plan.fault_count; i++)
		if (turn_of(&plan.faults[i]) < next)
			next = turn_of(&plan.faults[i]);
	return next;
}

void faults_turn(void)
{
	for (size_t i = 0; i < plan.fault_count; i++) {
		struct happening *f = &plan.faults[i], *next = f + 1;

		if (turn_of(f) > kernel->now)
			continue;
		if (f->begun) {
			end(f);
		} else if (world_job_over()) {
			f->ended = true;
		} else {
			f->at = kernel->now;
			begin(f);
			if (i + 1 < plan.fault_count && next->after == AT_FAULT)
				next->at = kernel->now + next->delay;
		}
	}
}

bool faults_last(void)
{
	for (size_t i = 0; i < plan.fault_count; i++)
		if (plan.faults[i].begun && !plan.faults[i].ended)
			return true;
	return false;
}

/* A node whose agent dies for the fourth time within 10 s is lost (agent/supervisor/supervisor.c). */
enum { AGENTS_SPARED = 3 };

uint32_t faults_begun(bool *harmless)
{
	uint32_t n = 0, agents = 0;

	*harmless = true;
	for (size_t i = 0; i < plan.fault_count; i++) {
		n += plan.faults[i].begun;
		agents += plan.faults[i].begun && plan.faults[i].kind == KILL_AGENT;
		*harmless =
		    *harmless && (!plan.faults[i].begun || kinds[plan.faults[i].kind].harmless);
	}
	*harmless = *harmless && agents <= AGENTS_SPARED;
	return n;
}

void faults_moment(enum moment m)
{
	for (size_t i = 0; i < plan.fault_count; i++) {
		struct happening *f = &plan.faults[i];

		if (f->after != m || f->at != 0 || --f->nth > 0)
			continue;
		f->at = kernel->now + f->delay;
		/* in the midst of what the head does just now */
		if (f->kind == KILL_HEAD && f->inside && f->delay == 0 && kernel->running &&
		    kernel->running->pid == head)
			begin(f);
		else if (f->at < kernel->until)
			kernel->until = f->at;
	}
}

uint64_t faults_stalled(int64_t rank)
{
	return rank >= 0 && rank < RANKS_MAX ? stalled[rank] : 0;
}
