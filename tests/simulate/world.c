/* SPDX-License-Identifier: BSD-3-Clause */
#include "world.h"

#include <errno.h>
#include <stdarg.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include "actor.h"
#include "base/base.h"
#include "globals.h"
#include "agent/agent.h"
#include "head/head.h"
#include "launch/options.h"
#include "head/failover/takeover.h"
#include "kernel.h"
#include "node/job.h"
#include "plan.h"

/* A job that has not ended by then never will. */
#define LIMIT_NS (1800 * NS_PER_S)
/* Processes that are still there so long after the job has ended would stay. */
#define GRACE_NS (90 * NS_PER_S)

/* These are more heads than a schedule has faults. */
enum { HEADS_MAX = 2 + FAULTS_MAX };

OWN struct plan plan;
OWN pid_t head;
OWN int exit_status;
OWN static pid_t heads[HEADS_MAX];
OWN static size_t head_count;

/* ---- the head ---- */

static void head_main(void *arg)
{
	struct options o;
	struct error err;
	struct program program = {.elf = true, .mpi = PROGRAM_MPI_OPEN};
	struct head_start start = {
	    .options = &o, .program = &program, .libdir = "/apps", .agent = agent_run};

	(void)arg;
	snprintf(program.path, sizeof(program.path), "%s", ACTOR_PROGRAM);
	if (options_parse(&o, OPTIONS_RUN, plan.argc, plan.argv, &err) != HALE_OK) {
		kernel_fail("the command line: %s", err.text);
		proc_exit(64 << 8);
	}
	proc_exit(head_run(&start) << 8);
}

static void attach_main(void *arg)
{
	struct takeover_start start = {.folder = arg, .agent = agent_run, .head = head_run};

	proc_exit(takeover_run(&start) << 8);
}

static struct proc *start_head(const char *name, void (*run)(void *arg), void *arg)
{
	static const char *const env[] = {"PATH=/bin", "HOME=/home", "LC_ALL=C", NULL};
	struct proc *p = proc_create(&kernel->hosts[0], name, 1, run, arg);

	p->env = (char **)(uintptr_t)env;
	p->fd[0].o = object_new(OBJ_NULL);
	for (int i = 1; i < 3; i++) {
		p->fd[i].o = object_new(OBJ_CONSOLE);
		p->fd[i].o->u.file.console = i;
	}
	head = p->pid;
	heads[head_count++] = head;
	exit_status = -1;
	return p;
}

void world_attach(void)
{
	char(*jobs)[256], *folder;
	size_t count = disk_list("/cluster/ckpt", &jobs);

	if (count == (size_t)-1)
		return;
	if (count > 0) {
		folder = kernel_keep(PATH_MAX);
		snprintf(folder, PATH_MAX, "/cluster/ckpt/%s", jobs[0]);
		start_head("attach", attach_main, folder);
		faults_moment(AT_TAKEOVER);
	}
	free(jobs);
}

/* Another head is to come for one that was killed. */
static bool awaited(void)
{
	for (size_t i = 0; i < plan.fault_count; i++)
		if (plan.faults[i].kind == KILL_HEAD && plan.faults[i].begun &&
		    !plan.faults[i].ended && exit_status == 128 + SIGKILL)
			return true;
	return false;
}

bool world_job_over(void)
{
	const struct proc *p = proc_find(head);

	return (!p || !proc_alive(p)) && !awaited();
}

/* One that could not take the job over, or has lost it, leaves it to the other one. */
static void note_end(const struct proc *p, int status)
{
	int how = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);

	if (p->pid != head)
		return;
	for (size_t i = 0; (how == EXIT_USAGE || how == EXIT_SUPERSEDED) && i < head_count; i++) {
		const struct proc *q = proc_find(heads[i]);

		if (q && q != p && proc_alive(q)) {
			head = heads[i];
			return;
		}
	}
	exit_status = how;
}

static void output(struct proc *p, int which, const void *bytes, size_t len)
{
	(void)p;
	if (which == 1) {
		judge_output(bytes, len);
		return;
	}
	kernel_say("stderr: %.*s", (int)len, (const char *)bytes);
	judge_says(bytes, len);
}

/* ---- a schedule ---- */

static void add_argument(const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	plan.argv[plan.argc] = strcpy(kernel_keep(strlen(text) + 1), text);
	plan.argc++;
}

static double drawn(double from, double to)
{
	return from + (to - from) * (double)kernel_random(1000) / 1000;
}

static void draw(void)
{
	char list[1024] = "";
	size_t n = 0;

	plan = (struct plan){.swarm = faults_draw_swarm(),
			     .hosts = 1 + (uint32_t)kernel_random(4),
			     .ranks = 1 + (uint32_t)kernel_random(6),
			     .steps = 5 + (long)kernel_random(40),
			     .pace = 90000,
			     .coupled = kernel_chance(0.7),
			     .slow_back = kernel_chance(0.5) ? 0.5 : 0.05,
			     .every = drawn(0.2, 2),
			     .timeout = drawn(1, 4)};
	if (kernel_chance(0.3)) { /* as long, with fewer steps */
		plan.pace = 450000;
		plan.steps = 5 + plan.steps / 5;
	}
	if (plan.swarm && kernel_chance(0.3)) { /* nothing else has the head look around */
		plan.every *= 8;
		plan.steps *= 3;
	}
	plan.spares = (uint32_t)kernel_random(3);
	plan.grace = kernel_chance(0.5);
	if (plan.ranks < plan.hosts)
		plan.ranks = plan.hosts;
	plan.hosts += plan.spares;
	kernel_host("head");
	for (uint32_t i = 1; i <= plan.hosts; i++) {
		char name[16];

		snprintf(name, sizeof(name), "h%u", i);
		kernel_host(name);
		n += (size_t)snprintf(list + n, sizeof(list) - n, "%s%s", i > 1 ? "," : "", name);
	}
	add_argument("run");
	add_argument("-n");
	add_argument("%u", plan.ranks);
	add_argument("--host");
	add_argument("%s", list);
	if (plan.spares) {
		add_argument("--spares");
		add_argument("%u", plan.spares);
	}
	add_argument("--ckpt-every");
	add_argument("%.2fs", plan.every);
	add_argument("--ckpt-dir");
	add_argument("/cluster/ckpt");
	add_argument("--node-timeout");
	add_argument("%.2fs", plan.timeout);
	add_argument("--no-events");
	if (plan.grace) {
		add_argument("--head-grace");
		add_argument("60s");
	}
	add_argument("--max-restarts");
	add_argument("50");
	add_argument(ACTOR_PROGRAM);
	add_argument("%ld", plan.steps);
	faults_draw();
}

/* ---- what the ranks ask (actor.h) ---- */

unsigned actor_step_time(void)
{
	return plan.pace / 9 + (unsigned)kernel_random(plan.pace);
}

unsigned actor_back_time(void)
{
	return (unsigned)kernel_random(!kernel_chance(plan.slow_back) ? 20000
				       : kernel_chance(0.5)	      ? 500000
								      : 4000000);
}

void actor_checkpoint_begins(void)
{
	faults_moment(AT_CHECKPOINT);
}

void actor_restore_begins(void)
{
	faults_moment(AT_RESTORING);
}

/* ---- a run ---- */

static void furnish(void)
{
	for (uint32_t i = 0; i < kernel->host_count; i++) {
		struct proc here = {.host = &kernel->hosts[i], .cwd = "/"};

		kernel->running = &here;
		disk_put("/apps/program", "program", 7);
		disk_put("/apps/hale", "hale", 4);
		disk_put("/apps/libhale.so", "hale", 4);
		disk_put("/apps/libmpi.so.40", "hale", 4);
		disk_make_folder("/home");
		disk_make_folder("/tmp");
		disk_make_folder("/var");
		disk_make_folder("/var/tmp");
		kernel->running = NULL;
	}
	disk_make_folder("/cluster/ckpt");
}

static void watch_until(uint64_t until)
{
	while (!kernel->failure[0] && kernel->now < until) {
		if (!kernel_run(until))
			kernel->now = until;
	}
}

static bool anybody(void)
{
	for (uint32_t i = 0; i < kernel->proc_limit; i++)
		if (proc_alive(&kernel->procs[i]))
			return true;
	return false;
}

/* Into the story: the manifests that are there. */
static void tell_files(void)
{
	char(*jobs)[256], (*ids)[256], path[PATH_MAX];
	size_t job_count = disk_list("/cluster/ckpt", &jobs), count;

	for (size_t j = 0; job_count != (size_t)-1 && j < job_count; j++) {
		snprintf(path, sizeof(path), "/cluster/ckpt/%s", jobs[j]);
		count = disk_list(path, &ids);
		for (size_t i = 0; count != (size_t)-1 && i < count; i++) {
			const struct inode *n;

			snprintf(path, sizeof(path), "/cluster/ckpt/%s/%s/manifest.json", jobs[j],
				 ids[i]);
			n = disk_find(path);
			if (n)
				kernel_say("%s: %.*s", path, (int)n->len, (const char *)n->bytes);
		}
		if (count != (size_t)-1)
			free(ids);
	}
}

/* To the end of the job, and of its faults. */
static void watch(void)
{
	uint64_t end = kernel->now + LIMIT_NS;

	while (!kernel->failure[0] && kernel->now < end && (!world_job_over() || faults_last())) {
		uint64_t next = faults_next();

		watch_until(next < kernel->now + NS_PER_S ? next : kernel->now + NS_PER_S);
		if (!kernel->failure[0])
			faults_turn();
	}
	if (!kernel->failure[0] && !world_job_over())
		kernel_fail("the job has not ended after %.0f s", (double)LIMIT_NS / 1e9);
	end = kernel->now + GRACE_NS;
	while (!kernel->failure[0] && kernel->now < end && anybody())
		watch_until(kernel->now + NS_PER_S);
	if (!kernel->failure[0])
		judge_end();
}

static bool run_once(uint64_t seed, bool verbose, struct world_result *result)
{
	struct world_result r = {0};
	uint64_t began;
	bool harmless;

	kernel_create(seed);
	kernel->verbose = verbose;
	kernel->on_exec = actor_exec;
	kernel->on_output = output;
	kernel->on_file = judge_file;
	kernel->on_end = note_end;
	exit_status = -1;
	head_count = 0;
	judge_begin();
	began = kernel->now;
	draw();
	furnish();
	for (int i = 0; i < plan.argc; i++)
		kernel_say("argument: %s", plan.argv[i]);
	start_head("hale", head_main, NULL);
	watch();
	if (kernel->failure[0])
		tell_files();
	r.good = !kernel->failure[0];
	snprintf(r.failure, sizeof(r.failure), "%s", kernel->failure);
	r.exit_status = exit_status;
	r.faults = faults_begun(&harmless);
	r.steps = kernel->steps;
	r.seconds = (double)(kernel->now - began) / 1e9;
	r.story = kernel->story ? strndup(kernel->story, kernel->story_len) : NULL;
	*result = r;
	return !kernel_destroy();
}

struct world_result world_run(uint64_t seed, bool verbose)
{
	struct world_result r;

	while (!run_once(seed, verbose, &r))
		free(r.story);
	return r;
}
