/* SPDX-License-Identifier: BSD-3-Clause */
/* The beginning and the end of a job, signals, and the handlers through which the agent tells the
 * head what happens. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>
#include "base/base.h"
#include "job/head.h"
#include "job/head_private.h"
#include "job/watch.h"

#define LOST_SECONDS 1.0

/* ---- signals to hale run ---- */

static const int taken[] = {SIGINT,  SIGTERM, SIGHUP,  SIGQUIT, SIGUSR1,
			    SIGUSR2, SIGTSTP, SIGCONT, SIGCHLD};

static void stop_everything(struct head *h)
{
	agent_signal_all(&h->agent, SIGSTOP);
	raise(SIGSTOP);
	agent_signal_all(&h->agent, SIGCONT);
	feed_retry(&h->agent.feed);
}

/* The second time there is no grace. */
static void end_by_signal(struct head *h, int sig)
{
	if (h->stopping) {
		agent_signal_all(&h->agent, SIGCONT);
		agent_signal_all(&h->agent, SIGKILL);
		return;
	}
	h->stopping = true;
	head_say(h, "SIG%s: the job ends", sigabbrev_np(sig));
	agent_signal_all(&h->agent, sig);
	agent_signal_all(&h->agent, SIGCONT);
	head_end_by_request(h);
}

static void take_signal(struct head *h, int sig)
{
	struct error err;

	switch (sig) {
	case SIGCHLD:
		agent_reap(&h->agent);
		break;
	case SIGUSR1:
		if (checkpoint_request(h, ORIGIN_USER, &err) != HALE_OK)
			log_warn("no checkpoint: %s", err.text);
		break;
	case SIGTSTP:
		stop_everything(h);
		break;
	case SIGCONT:
		agent_signal_all(&h->agent, SIGCONT);
		feed_retry(&h->agent.feed);
		break;
	case SIGUSR2:
		agent_signal_all(&h->agent, sig);
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

	if (read(h->signals, &info, sizeof(info)) == (ssize_t)sizeof(info))
		take_signal(h, (int)info.ssi_signo);
}

static hale_status_t signals_start(struct head *h, struct error *err)
{
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_LEN(taken); i++) {
		struct sigaction now;
		/* nohup and background shells ignore some: so do we, and so do the ranks */
		if (taken[i] != SIGCHLD && sigaction(taken[i], NULL, &now) == 0 &&
		    now.sa_handler == SIG_IGN)
			continue;
		sigaddset(&set, taken[i]);
	}
	signal(SIGCHLD, SIG_DFL);
	signal(SIGPIPE, SIG_IGN);
	sigprocmask(SIG_BLOCK, &set, NULL);
	h->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (h->signals < 0 ||
	    !loop_add(&h->loop, &h->signal_source, h->signals, EPOLLIN, signals_ready, h))
		return error_sys(err, HALE_ERR_SYSTEM, "cannot receive signals");
	return HALE_OK;
}

/* ---- what the agent tells ---- */

static void on_hello(void *arg, uint32_t rank, const struct proto_hello *hello)
{
	struct head *h = arg;

	h->mpi_seen = h->mpi_seen || hello->mpi;
	head_event(h, EVENT_RANK_READY, rank);
}

static void on_packet(void *arg, uint32_t rank, const union agent_packet *p)
{
	struct head *h = arg;

	switch (p->type) {
	case PROTO_INITIALIZED:
		head_event(h, EVENT_RANK_READY, rank);
		break;
	case PROTO_FINALIZED:
		checkpoint_poll(h);
		break;
	case PROTO_ABORT:
		h->ranks[rank].aborted = true;
		h->ranks[rank].abort_code = p->plain.value;
		/* it waits for us to end it */
		agent_signal(&h->agent, rank, SIGKILL);
		break;
	case PROTO_CKPT_ASK:
		checkpoint_ask(h, rank, (uint32_t)p->plain.value);
		break;
	default:
		checkpoint_packet(h, rank, p);
		break;
	}
}

static void on_ended(void *arg, uint32_t rank, int status)
{
	head_rank_ended(arg, rank, status);
}

static void lost_for_good(void *arg)
{
	struct head_rank *r = arg;
	struct head *h = r->head;
	uint32_t rank = (uint32_t)(r - h->ranks);

	head_say(h,
		 "the process of rank %u is gone, and the one that started it goes on; it is ended",
		 rank);
	agent_signal(&h->agent, rank, SIGKILL);
}

/* A shell around it says soon by its exit status what has happened. If it rather goes on without
 * its rank, nothing good can come of it. */
static void on_lost(void *arg, uint32_t rank)
{
	struct head *h = arg;
	struct head_rank *r = &h->ranks[rank];

	if (h->state == HEAD_RUNNING)
		loop_timer_set(&h->loop, &r->lost, LOST_SECONDS, lost_for_good, r);
}

static void on_other(void *arg, pid_t pid, int status)
{
	if (!watch_child(arg, pid, status))
		recover_child(arg, pid, status);
}

static void on_differs(void *arg, uint32_t rank, int which)
{
	struct head *h = arg;

	head_say(h,
		 "rank %u printed something else on %s the second time; what was printed first "
		 "stays",
		 rank, which == 1 ? "stdout" : "stderr");
}

/* ---- beginning ---- */

/* A folder that is there is of another job, long ago, whose head had our pid. */
static bool folder_taken(const struct head *h)
{
	char path[PATH_MAX + JOB_ID_MAX];

	snprintf(path, sizeof(path), "%s/%s", h->o->ckpt_dir, h->job);
	return access(path, F_OK) == 0;
}

static void make_job_id(struct head *h)
{
	const char *name = strrchr(h->program->path, '/');
	char base[41] = "";
	size_t n = 0;

	for (const char *c = name ? name + 1 : h->program->path; *c && n < sizeof(base) - 1; c++)
		base[n++] = strchr(" \t\n:/\"\\@", *c) ? '_' : *c;
	snprintf(h->job, sizeof(h->job), "%s.%d", base, (int)getpid());
	for (int again = 2; folder_taken(h) && again < 1000; again++)
		snprintf(h->job, sizeof(h->job), "%s.%d-%d", base, (int)getpid(), again);
}

/* Each rank needs two pipes and a connection here. */
static hale_status_t check_descriptors(uint32_t nranks, struct error *err)
{
	struct rlimit limit;
	rlim_t wanted = 4 * (rlim_t)nranks + 64;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted)
		return HALE_OK;
	limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
	setrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_cur < wanted)
		return error_set(
		    err, HALE_ERR_SYSTEM,
		    "%u ranks need %lu open files in hale, and the limit is %lu; raise "
		    "it with ulimit -n",
		    nranks, (unsigned long)wanted, (unsigned long)limit.rlim_max);
	return HALE_OK;
}

/* A rank that does nothing yet takes about 4 MiB with its libraries' private pages, and uses about 1
 * of its part of the node's segment, most of which is only room. */
static hale_status_t check_memory(uint32_t nranks, struct error *err)
{
	enum { RANK_BYTES = 5 << 20 };
	char line[128], wanted[16], there[16];
	unsigned long kib = 0;
	FILE *f = fopen("/proc/meminfo", "re");
	uint64_t need = (uint64_t)nranks * RANK_BYTES;

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "MemAvailable: %lu kB", &kib) == 1)
			break;
	if (f)
		fclose(f);
	if (kib == 0 || need <= (uint64_t)kib * 1024)
		return HALE_OK;
	return error_set(err, HALE_ERR_MEMORY,
			 "%u ranks need at least %s of memory, and %s are free; start fewer",
			 nranks, units_show_bytes(need, wanted),
			 units_show_bytes((uint64_t)kib * 1024, there));
}

/* Nodes on this machine speak over its loopback, unless the user says otherwise. */
static void keep_off_the_network(const struct head *h)
{
	if (h->placement.nodes > 1)
		setenv("UCX_NET_DEVICES", "lo", 0);
}

static hale_status_t start_agent(struct head *h, struct error *err)
{
	const struct options *o = h->o;
	struct agent_config config = {.nranks = h->nranks,
				      .job = h->job,
				      .program = h->program->path,
				      .argv = o->program,
				      .environ = environ,
				      .exports = o->exports,
				      .libdir = h->libdir,
				      .wdir = o->wdir,
				      .preload_mpi = h->program->preload_mpi,
				      .no_mpi = o->no_mpi,
				      .tag = o->tag,
				      .bind = o->bind,
				      .placement = &h->placement};
	struct agent_handler handler = {.hello = on_hello,
					.packet = on_packet,
					.ended = on_ended,
					.lost = on_lost,
					.other = on_other,
					.differs = on_differs,
					.arg = h};

	keep_off_the_network(h);
	config.environ = environ;
	if (h->program->preload_mpi)
		log_info("the program's DT_RPATH would find %s first, so hale's libmpi.so.40 is "
			 "preloaded",
			 h->program->other_mpi);
	return agent_create(&h->agent, &h->loop, &config, &handler, err);
}

hale_status_t head_launch_all(struct head *h, struct error *err)
{
	static const uint64_t beginning[3];
	hale_status_t status = agent_segment_renew(&h->agent, ++h->generation, err);

	if (status != HALE_OK)
		return status;
	inject_arm_mailboxes(h);
	for (uint32_t r = 0; r < h->nranks; r++) {
		head_rank_reset(h, r, -1);
		status = agent_spawn(&h->agent, r, h->program->path, NULL, beginning, err);
		if (status != HALE_OK)
			return status;
	}
	return HALE_OK;
}

static void record_launch(struct head *h)
{
	struct json_out j;

	record_begin(&j, h->restarted ? "restarted" : "launched");
	json_string(&j, "job", h->job);
	json_string(&j, "program", h->program->path);
	json_uint(&j, "nranks", h->nranks);
	json_int(&j, "head_pid", getpid());
	json_string(&j, "node", h->node);
	record_end(&h->record, &j);
}

static hale_status_t begin(struct head *h, const struct head_start *start, struct error *err)
{
	hale_status_t status = check_descriptors(h->nranks, err);

	if (status == HALE_OK)
		status = check_memory(h->nranks, err);
	if (status == HALE_OK)
		status = placement_make(&h->placement, h->nranks, (uint32_t)h->o->nodes,
					(uint32_t)h->o->per_node, err);
	if (status == HALE_OK)
		status = signals_start(h, err);
	if (status == HALE_OK)
		status = watch_start(h, err);
	if (status == HALE_OK)
		status = start_agent(h, err);
	if (status == HALE_OK)
		status = control_start(h, err);
	for (size_t i = 0; status == HALE_OK && i < h->o->fault_count; i++)
		status = inject_add(h, &h->o->faults[i], err);
	if (status != HALE_OK)
		return status;
	record_launch(h);
	if (start->manifest)
		status = recover_begin(h, start->manifest, start->job_folder, err);
	else
		status = head_launch_all(h, err);
	if (status == HALE_OK && !start->manifest)
		checkpoint_interval_start(h);
	if (status == HALE_OK)
		watch_job_begun(h);
	return status;
}

hale_status_t head_open_store(struct head *h, struct error *err)
{
	hale_status_t status;

	if (h->store_is_open)
		return HALE_OK;
	status = store_open(&h->store, h->o->ckpt_dir, h->job, !h->o->no_fsync, err);
	if (status != HALE_OK)
		return status;
	h->store_is_open = true;
	record_open(&h->record, h->store.job_folder);
	return HALE_OK;
}

/* ---- end ---- */

static void write_end(struct head *h)
{
	struct error err;
	struct json_out j;
	double wall = clock_seconds() - h->began;

	record_begin(&j, "ended");
	json_int(&j, "exit", h->exit_status);
	json_double(&j, "wall_seconds", wall);
	json_uint(&j, "restarts", h->report.restarts);
	record_end(&h->record, &j);
	if (h->o->report &&
	    report_write(&h->report, h->o->report, h->exit_status, wall, &err) != HALE_OK)
		log_warn("%s", err.text);
	if (!h->o->no_mpi && !h->mpi_seen && h->exit_status == 0 && !h->restarted &&
	    h->program->elf && !h->stopping)
		head_say(h, "note: no rank called MPI_Init; for programs without MPI --no-mpi lets "
			    "them be checkpointed too");
}

static void end(struct head *h)
{
	inject_fini(h);
	for (uint32_t r = 0; r < h->nranks; r++)
		loop_timer_clear(&h->loop, &h->ranks[r].lost);
	for (uint32_t r = 0; r < h->agent.config.nranks; r++)
		for (int i = 0; i < 2; i++)
			stream_end(&h->agent.ranks[r].out[i]);
	checkpoint_fini(h);
	recover_fini(h);
	write_end(h);
	watch_stop(h);
	control_stop(h);
	agent_destroy(&h->agent);
	placement_fini(&h->placement);
	record_fini(&h->record);
	report_fini(&h->report);
	if (h->signals >= 0)
		close(h->signals);
	loop_fini(&h->loop);
	free(h->ranks);
}

int head_run(const struct head_start *start)
{
	struct head *h = calloc(1, sizeof(*h));
	struct error err;
	int exit_status;

	if (!h)
		return EXIT_USAGE;
	h->o = start->options;
	h->program = start->program;
	h->libdir = start->libdir;
	h->nranks = (uint32_t)h->o->ranks;
	h->restarted = start->manifest != NULL;
	h->began = h->job_began = clock_seconds();
	gethostname(h->node, sizeof(h->node) - 1);
	if (start->job)
		snprintf(h->job, sizeof(h->job), "%s", start->job);
	else
		make_job_id(h);
	h->signals = -1;
	h->random = h->o->seed;
	h->report =
	    (struct report){.job = h->job, .node = h->node, .ranks = h->nranks, .seed = h->o->seed};
	record_init(&h->record);
	h->ranks = calloc(h->nranks, sizeof(*h->ranks));
	if (!h->ranks || !loop_init(&h->loop)) {
		log_warn("out of memory");
		free(h->ranks);
		free(h);
		return EXIT_USAGE;
	}
	checkpoint_init(h);
	if (begin(h, start, &err) != HALE_OK) {
		log_warn("%s", err.text);
		h->exit_decided = false;
		h->stopping = true;
		agent_signal_all(&h->agent, SIGKILL);
		head_end(h, err.code == HALE_ERR_PROCESS ? EXIT_NOT_EXECUTABLE : EXIT_USAGE);
	}
	log_info("job %s: %u rank%s on %u core%s%s", h->job, h->nranks, h->nranks > 1 ? "s" : "",
		 h->agent.pin.cores, h->agent.pin.cores > 1 ? "s" : "",
		 h->agent.pin.bound ? ", bound" : "");
	loop_run(&h->loop);
	exit_status = h->exit_status;
	end(h);
	free(h);
	return exit_status;
}
