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

enum { RANKS_MAX = 16, FAULTS_MAX = 8, ARGS_MAX = 64 };

/* A job that has not ended by then never will. */
#define LIMIT_NS (1800 * NS_PER_S)
/* Processes that are still there so long after the job has ended would stay. */
#define GRACE_NS (90 * NS_PER_S)

enum fault_kind {
	KILL_RANK,
	KILL_AGENT,
	KILL_GUARDIAN,
	KILL_AGENT_AND_GUARDIAN,
	STOP_AGENT,
	STOP_GUARDIAN,
	STOP_HEAD,
	CUT_BOTH,
	CUT_TO_HEAD,
	CUT_FROM_HEAD,
	LOSE_HOST,
	FILL_DISK,
	KILL_HEAD,
	FAULT_KINDS
};

static const struct {
	const char *name, *text;
} kinds[FAULT_KINDS] = {
    [KILL_RANK] = {"kill-rank", "a rank is killed"},
    [KILL_AGENT] = {"kill-agent", "an agent is killed"},
    [KILL_GUARDIAN] = {"kill-supervisor", "a supervisor is killed"},
    [KILL_AGENT_AND_GUARDIAN] = {"kill-both", "an agent and its supervisor are killed"},
    [STOP_AGENT] = {"stop-agent", "an agent stands still"},
    [STOP_GUARDIAN] = {"stop-supervisor", "a supervisor stands still"},
    [STOP_HEAD] = {"stop-head", "the head stands still"},
    [CUT_BOTH] = {"cut", "a host is cut off"},
    [CUT_TO_HEAD] = {"cut-from", "nothing comes from a host any more"},
    [CUT_FROM_HEAD] = {"cut-to", "nothing gets to a host any more"},
    [LOSE_HOST] = {"lose-host", "a host is lost"},
    [FILL_DISK] = {"fill-disk", "a disk is full"},
    [KILL_HEAD] = {"kill-head", "the head is killed"},
};

struct happening {
	enum fault_kind kind;
	uint64_t at, lasts;
	uint32_t victim; /* rank or host */
};

struct plan {
	uint32_t hosts, spares, ranks;
	long steps;
	double every, timeout;
	bool local, grace;
	struct happening faults[FAULTS_MAX];
	size_t fault_count;
	char *argv[ARGS_MAX];
	int argc;
};

OWN static bool wanted[FAULT_KINDS];
OWN static bool choosy;
OWN static struct plan plan;
OWN static char *printed;
OWN static size_t printed_len, printed_cap;
OWN static char said[8192]; /* the last that the job has said on stderr */
OWN static pid_t head;
OWN static int exit_status;
OWN static uint64_t newest_complete;

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
	exit_status = -1;
	return p;
}

/* ---- what must hold ---- */

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

static void output(struct proc *p, int which, const void *bytes, size_t len)
{
	(void)p;
	if (which == 2) {
		kernel_say("stderr: %.*s", (int)len, (const char *)bytes);
		snprintf(said, sizeof(said), "%.*s", (int)(len < 8000 ? len : 8000),
			 (const char *)bytes);
		return;
	}
	if (printed_len + len + 1 > printed_cap) {
		printed_cap = 2 * (printed_len + len + 1);
		printed = realloc(printed, printed_cap);
	}
	memcpy(printed + printed_len, bytes, len);
	printed_len += len;
	printed[printed_len] = '\0';
}

/* The job's checkpoints of which all images are there, and the newest of them. */
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
			bool whole;
			uint32_t id = (uint32_t)atoi(ids[i]);

			if (strspn(ids[i], "0123456789") != strlen(ids[i]))
				continue;
			snprintf(path, sizeof(path), "/cluster/ckpt/%s/%s/manifest.json", jobs[j],
				 ids[i]);
			whole = disk_find(path) != NULL;
			if (!whole)
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

static void file_changed(const char *path, const char *what)
{
	uint32_t newest;

	(void)what;
	if (!strstr(path, "/cluster/ckpt/") || kernel->failure[0])
		return;
	complete_checkpoints(&newest);
	if (newest > newest_complete)
		newest_complete = newest;
	else if (newest == 0 && newest_complete > 0 && proc_find(head))
		kernel_fail(
		    "no complete checkpoint is left after %s was %s, and %lu had been there", path,
		    what, (unsigned long)newest_complete);
}

/* Each rank's lines, once, in their order. */
static void check_output(void)
{
	long next[RANKS_MAX] = {0}, rank, step;
	char *line, *rest, *copy = strdup(printed ? printed : "");

	for (line = strtok_r(copy, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		if (sscanf(line, "rank %ld step %ld", &rank, &step) != 2 || rank < 0 ||
		    rank >= plan.ranks) {
			kernel_fail("a line of output is none of a rank: '%s'", line);
			break;
		}
		if (step != next[rank]++) {
			kernel_fail(
			    "rank %ld's line of step %ld was printed when that of %ld was due",
			    rank, step, next[rank] - 1);
			break;
		}
	}
	for (uint32_t r = 0; !kernel->failure[0] && r < plan.ranks; r++)
		if (next[r] != plan.steps)
			kernel_fail("rank %u has printed %ld lines of %ld", r, next[r], plan.steps);
	free(copy);
}

static bool anybody(void)
{
	for (uint32_t i = 0; i < kernel->proc_limit; i++)
		if (proc_alive(&kernel->procs[i]))
			return true;
	return false;
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

/* ---- a schedule ---- */

bool world_choose(const char *names)
{
	char copy[512], *word, *rest;

	snprintf(copy, sizeof(copy), "%s", names);
	choosy = true;
	for (word = strtok_r(copy, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
		int k = 0;

		while (k < FAULT_KINDS && strcmp(kinds[k].name, word) != 0)
			k++;
		if (k == FAULT_KINDS)
			return false;
		wanted[k] = true;
	}
	return true;
}

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

static void draw_faults(void)
{
	double span = 2.0 + (double)plan.steps * 0.08;

	plan.fault_count = kernel_random(FAULTS_MAX - 1);
	for (size_t i = 0; i < plan.fault_count; i++) {
		struct happening *f = &plan.faults[i];

		do
			f->kind = (enum fault_kind)kernel_random(FAULT_KINDS);
		while (choosy && !wanted[f->kind]);
		if (f->kind == KILL_HEAD && !plan.grace)
			f->kind = KILL_RANK;
		f->at = kernel->now + (uint64_t)(drawn(0.05, span) * 1e9);
		f->lasts = (uint64_t)(drawn(0.05, kernel_chance(0.3) ? 20 : 3) * 1e9);
		f->victim = f->kind == KILL_RANK ? (uint32_t)kernel_random(plan.ranks)
						 : 1 + (uint32_t)kernel_random(plan.hosts);
	}
}

static void draw(void)
{
	char list[1024] = "";
	size_t n = 0;

	plan = (struct plan){.hosts = 1 + (uint32_t)kernel_random(4),
			     .ranks = 1 + (uint32_t)kernel_random(6),
			     .steps = 5 + (long)kernel_random(60),
			     .every = drawn(0.2, 2),
			     .timeout = drawn(2, 5)};
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
	draw_faults();
}

static struct proc *one_named(const struct machine *h, const char *name)
{
	for (uint32_t i = 0; i < kernel->proc_limit; i++)
		if (proc_alive(&kernel->procs[i]) && kernel->procs[i].host == h &&
		    !strcmp(kernel->procs[i].name, name))
			return &kernel->procs[i];
	return NULL;
}

static void kill_one(struct proc *p, int sig)
{
	if (!p)
		return;
	kernel_say("fault: signal %d to %s, process %d on %s", sig, p->name, (int)p->pid,
		   p->host->name);
	proc_kill(p, sig);
}

static void begin_fault(const struct happening *f)
{
	struct machine *h = &kernel->hosts[f->kind == KILL_RANK ? 0 : f->victim];
	uint64_t until = kernel->now + f->lasts;

	kernel_say("fault: %s (%s, %.2f s)", kinds[f->kind].text, h->name, (double)f->lasts / 1e9);
	switch (f->kind) {
	case KILL_RANK:
		for (uint32_t i = 0; i < kernel->proc_limit; i++) {
			struct proc *p = &kernel->procs[i];

			if (proc_alive(p) && p->rank == (int64_t)f->victim) {
				kill_one(p, SIGKILL);
				break;
			}
		}
		break;
	case KILL_AGENT:
		kill_one(one_named(h, "hale-agent"), SIGKILL);
		break;
	case KILL_GUARDIAN:
		kill_one(one_named(h, "hale-guardian"), SIGKILL);
		break;
	case KILL_AGENT_AND_GUARDIAN:
		kill_one(one_named(h, "hale-guardian"), SIGKILL);
		kill_one(one_named(h, "hale-agent"), SIGKILL);
		break;
	case STOP_AGENT:
		kill_one(one_named(h, "hale-agent"), SIGSTOP);
		break;
	case STOP_GUARDIAN:
		kill_one(one_named(h, "hale-guardian"), SIGSTOP);
		break;
	case STOP_HEAD:
		if (proc_find(head))
			kill_one(proc_find(head), SIGSTOP);
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
	case LOSE_HOST:
		host_vanish(h, true);
		break;
	case FILL_DISK:
		h->disk_full = kernel->hosts[0].disk_full = 0.3;
		break;
	case KILL_HEAD:
		if (proc_find(head))
			kill_one(proc_find(head), SIGKILL);
		break;
	default:
		break;
	}
}

static void end_fault(const struct happening *f)
{
	struct machine *h = &kernel->hosts[f->kind == KILL_RANK ? 0 : f->victim];
	struct proc *p = NULL;
	char(*jobs)[256], *folder;

	kernel_say("over: %s", kinds[f->kind].text);
	if (f->kind == FILL_DISK)
		h->disk_full = kernel->hosts[0].disk_full = 0;
	if (f->kind == STOP_HEAD)
		p = proc_find(head);
	for (uint32_t i = 0; i < kernel->proc_limit; i++)
		if (proc_alive(&kernel->procs[i]) && kernel->procs[i].stopped &&
		    ((f->kind == STOP_AGENT && !strcmp(kernel->procs[i].name, "hale-agent")) ||
		     (f->kind == STOP_GUARDIAN && !strcmp(kernel->procs[i].name, "hale-guardian"))))
			proc_kill(&kernel->procs[i], SIGCONT);
	if (p)
		proc_kill(p, SIGCONT);
	if (f->kind == KILL_HEAD && exit_status == 128 + SIGKILL) {
		size_t count = disk_list("/cluster/ckpt", &jobs);

		if (count != (size_t)-1 && count > 0) {
			folder = kernel_keep(PATH_MAX);
			snprintf(folder, PATH_MAX, "/cluster/ckpt/%s", jobs[0]);
			start_head("attach", attach_main, folder);
		}
		if (count != (size_t)-1)
			free(jobs);
	}
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

struct turn {
	uint64_t at;
	const struct happening *f;
	bool end;
};

static int by_time(const void *a, const void *b)
{
	const struct turn *x = a, *y = b;

	return x->at < y->at ? -1 : x->at > y->at;
}

static bool job_over(void)
{
	const struct proc *p = proc_find(head);

	return !p || !proc_alive(p);
}

static void watch_until(uint64_t until)
{
	while (!kernel->failure[0] && kernel->now < until) {
		if (!kernel_run(until))
			kernel->now = until;
	}
}

static void note_end(const struct proc *p, int status)
{
	if (p->pid == head)
		exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void judge(void)
{
	if (kernel->failure[0])
		return;
	if (!job_over()) {
		kernel_fail("the job has not ended after %.0f s", (double)LIMIT_NS / 1e9);
		return;
	}
	if (exit_status == 0)
		check_output();
	else if (exit_status != 128 + SIGKILL && !said[0])
		kernel_fail("the job ends with status %d without a word", exit_status);
	if (!kernel->failure[0])
		check_processes();
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

static bool run_once(uint64_t seed, bool verbose, struct world_result *result)
{
	struct turn turns[2 * FAULTS_MAX];
	struct world_result r = {0};
	uint64_t began, end;
	size_t n = 0;

	kernel_create(seed);
	kernel->verbose = verbose;
	kernel->on_exec = actor_exec;
	kernel->on_output = output;
	kernel->on_file = file_changed;
	kernel->on_end = note_end;
	printed_len = 0;
	said[0] = '\0';
	exit_status = -1;
	newest_complete = 0;
	began = kernel->now;
	draw();
	furnish();
	for (int i = 0; i < plan.argc; i++)
		kernel_say("argument: %s", plan.argv[i]);
	for (size_t i = 0; i < plan.fault_count; i++) {
		const struct happening *f = &plan.faults[i];

		turns[n++] = (struct turn){f->at, f, false};
		turns[n++] = (struct turn){f->at + f->lasts, f, true};
	}
	qsort(turns, n, sizeof(*turns), by_time);
	start_head("hale", head_main, NULL);
	for (size_t i = 0; i < n; i++) {
		watch_until(turns[i].at);
		if (kernel->failure[0])
			break;
		if (turns[i].end)
			end_fault(turns[i].f);
		else if (!job_over())
			begin_fault(turns[i].f);
	}
	end = began + LIMIT_NS;
	while (!kernel->failure[0] && kernel->now < end && !job_over())
		watch_until(kernel->now + NS_PER_S);
	end = kernel->now + GRACE_NS;
	while (!kernel->failure[0] && kernel->now < end && anybody())
		watch_until(kernel->now + NS_PER_S);
	judge();
	if (kernel->failure[0])
		tell_files();
	r.good = !kernel->failure[0];
	snprintf(r.failure, sizeof(r.failure), "%s", kernel->failure);
	r.exit_status = exit_status;
	r.faults = (uint32_t)plan.fault_count;
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
