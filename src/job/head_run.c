/* SPDX-License-Identifier: BSD-3-Clause */
/* The beginning and the end of a job, signals, and the handlers through which the agent tells the
 * head what happens. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/base.h"
#include "job/head.h"
#include "job/head_private.h"
#include "job/migrate.h"
#include "job/succession.h"
#include "job/watch.h"

#define LOST_SECONDS 1.0

/* ---- signals to hale run ---- */

static const int taken[] = {SIGINT,  SIGTERM, SIGHUP,  SIGQUIT, SIGUSR1,
			    SIGUSR2, SIGTSTP, SIGCONT, SIGCHLD};

static void stop_everything(struct head *h)
{
	crew_pause(&h->crew, true);
	raise(SIGSTOP);
	crew_pause(&h->crew, false);
	feed_retry(&h->crew.feed);
}

/* The second time there is no grace. */
static void end_by_signal(struct head *h, int sig)
{
	if (h->stopping) {
		crew_signal_all(&h->crew, SIGCONT);
		crew_signal_all(&h->crew, SIGKILL);
		return;
	}
	h->stopping = true;
	head_say(h, "SIG%s: the job ends", sigabbrev_np(sig));
	crew_signal_all(&h->crew, sig);
	crew_signal_all(&h->crew, SIGCONT);
	head_end_by_request(h);
}

static void reap(struct head *h)
{
	pid_t pid;
	int status;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		if (pid == h->keeper.pid)
			h->keeper.pid = 0;
		else if (!crew_child(&h->crew, pid, status) && !watch_child(h, pid, status))
			recover_child(h, pid, status);
}

static void take_signal(struct head *h, int sig)
{
	struct error err;

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
		crew_signal_all(&h->crew, SIGCONT);
		feed_retry(&h->crew.feed);
		break;
	case SIGUSR2:
		crew_signal_all(&h->crew, sig);
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

static void on_ready(void *arg)
{
	head_event(arg, EVENT_NODES_READY, 0);
}

void head_cannot_begin(struct head *h, const struct error *err)
{
	bool again = h->state == HEAD_RESTORING || h->report.restarts > 0;

	if (h->state == HEAD_ENDING || h->state == HEAD_ENDED)
		return;
	if (h->state == HEAD_RESTORING)
		head_say(h, "checkpoint %u can't be restored: %s", h->recovery.target, err->text);
	else if (again)
		head_say(h, "the job can't be started again: %s", err->text);
	else
		log_warn("%s", err->text);
	if (again) {
		head_end(h, EXIT_UNRECOVERED);
		return;
	}
	h->exit_decided = false;
	h->stopping = true;
	crew_signal_all(&h->crew, SIGKILL);
	head_end(h, err->code == HALE_ERR_PROCESS ? EXIT_NOT_EXECUTABLE : EXIT_USAGE);
}

static void on_failed(void *arg, const struct node *node, const struct error *err)
{
	struct head *h = arg;
	struct error named = *err;

	if (h->crew.count > 1 || !node->local)
		error_set(&named, err->code, "node %s: %.400s", node->name, err->text);
	head_cannot_begin(h, &named);
}

/* A node without a lease is about to be lost: that says the rest. */
static void on_not_spawned(void *arg, uint32_t rank, const struct error *err)
{
	struct head *h = arg;

	if (err->code == HALE_ERR_STATE)
		return;
	h->ranks[rank].ended = true;
	head_cannot_begin(h, err);
	head_event(h, EVENT_RANK_DONE, rank);
}

/* Some rank there that had not ended; false: none. */
static bool had_rank(const struct head *h, const struct node *node, uint32_t *rank)
{
	for (uint32_t r = 0; h->crew.laid_out && r < h->nranks; r++) {
		if (h->crew.placement.node_of[r] == node->index && !h->ranks[r].ended) {
			*rank = r;
			return true;
		}
	}
	return false;
}

static void on_copied(void *arg, const struct node *node, const struct message *m)
{
	levels_copied(arg, node, m);
}

static void on_lost(void *arg, const struct node *node, const char *why)
{
	struct head *h = arg;
	struct error err;
	uint32_t rank;

	snprintf(h->lost_name, sizeof(h->lost_name), "%s", node->name);
	snprintf(h->lost_why, sizeof(h->lost_why), "%s", why);
	watch_nodes(h);
	if (h->state == HEAD_RUNNING || h->state == HEAD_CLEARING || h->state == HEAD_RESTORING)
		levels_node_lost(h, node);
	succession_save(h);
	if (h->state == HEAD_STARTING && !node->spare) {
		error_set(&err, HALE_ERR_NODE, "node %s can't be used: %s", node->name, why);
		head_cannot_begin(h, &err);
	} else if (migrate_node_lost(h, node, &rank) || had_rank(h, node, &rank)) {
		head_event(h, EVENT_NODE_LOST, rank);
	} else if (h->state != HEAD_ENDING && h->state != HEAD_ENDED) {
		head_say(h, "node %s, which has no ranks, is lost (%s); the job goes on",
			 node->name, why);
	}
}

static void on_hello(void *arg, uint32_t rank)
{
	struct head *h = arg;

	h->mpi_seen = h->mpi_seen || h->crew.ranks[rank].mpi;
	head_event(h, EVENT_RANK_READY, rank);
}

static void on_packet(void *arg, uint32_t rank, const union proto_packet *p)
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
		crew_signal(&h->crew, rank, SIGKILL);
		break;
	case PROTO_CKPT_ASK:
		checkpoint_ask(h, rank, (uint32_t)p->plain.value);
		break;
	default:
		if (!migrate_packet(h, rank, p))
			checkpoint_packet(h, rank, p);
		break;
	}
}

static void on_ended(void *arg, uint32_t rank, int status)
{
	if (!takeover_ended(arg, rank, status) && !migrate_ended(arg, rank, status))
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
	crew_signal(&h->crew, rank, SIGKILL);
}

/* A shell around it says soon by its exit status what has happened. If it rather goes on without
 * its rank, nothing good can come of it. */
static void on_stray(void *arg, uint32_t rank)
{
	struct head *h = arg;
	struct head_rank *r = &h->ranks[rank];

	if (h->state == HEAD_RUNNING)
		loop_timer_set(&h->loop, &r->lost, LOST_SECONDS, lost_for_good, r);
}

static void on_cleared(void *arg)
{
	struct head *h = arg;

	if (crew_alive(&h->crew) == 0)
		head_event(h, EVENT_ALL_GONE, 0);
}

static void on_checked(void *arg, const struct error *err, uint64_t resident_bytes)
{
	if (!migrate_checked(arg, err))
		checkpoint_checked(arg, err, resident_bytes);
}

static void on_looked(void *arg, uint32_t look, const struct profile *p, uint64_t progress)
{
	struct head *h = arg;

	head_profile_looked(h, look, p, progress);
	control_looked(h, look);
	if (look == h->final_look) {
		head_profile_end(h);
		loop_stop(&h->loop);
	}
}

static void on_differs(void *arg, uint32_t rank, int which)
{
	struct head *h = arg;

	head_say(h,
		 "rank %u printed something else on %s the second time; what was printed first "
		 "stays",
		 rank, which == 1 ? "stdout" : "stderr");
}

static void on_laying_out(void *arg)
{
	struct head *h = arg;

	h->placing = true;
	if (!takeover_check(h))
		succession_save(h);
}

static bool on_may_grant(void *arg)
{
	return !takeover_check(arg);
}

static hale_status_t start_keeper(struct head *h, struct error *err)
{
	uint64_t(*printed)[2] = calloc(h->nranks, sizeof(*printed));
	struct keeper_config config = {.job = h->job,
				       .folder = h->store.job_folder,
				       .program = h->program->path,
				       .epoch = h->epoch,
				       .nranks = h->nranks,
				       .grace = h->o->head_grace,
				       .printed = printed};
	hale_status_t status;

	if (!printed)
		return error_set(err, HALE_ERR_MEMORY, "out of memory for the keeper");
	for (uint32_t r = 0; r < h->nranks; r++)
		for (int i = 0; i < 2; i++)
			printed[r][i] = h->crew.ranks ? h->crew.ranks[r].out[i].handed
						      : takeover_printed(h, r, i);
	status = keeper_start(&h->keeper, &config, err);
	free(printed);
	return status;
}

/* It was killed, or the head that comes after this one has asked it. */
static bool on_keeper_gone(void *arg)
{
	struct head *h = arg;
	struct error err;

	if (takeover_check(h))
		return false;
	head_say(h, "the process that writes the job's output was killed; some of it may be lost");
	keeper_leave(&h->keeper);
	if (start_keeper(h, &err) == HALE_OK)
		return true;
	log_warn("%s", err.text);
	head_end(h, EXIT_UNRECOVERED);
	return false;
}

/* ---- beginning ---- */

/* Agents elsewhere have another working folder, or none. */
static hale_status_t local_folder(struct head *h, struct error *err)
{
	const char *given = h->o->ckpt_local;
	char cwd[PATH_MAX] = "";
	size_t len = 0;

	if (!given || given[0] == '/')
		return HALE_OK;
	if (!getcwd(cwd, sizeof(cwd)))
		return error_sys(err, HALE_ERR_SYSTEM, "cannot tell the working folder");
	for (const char *c = cwd; *c && len < sizeof(h->local) - 2; c++) {
		h->local[len++] = *c;
		if (*c == '%')
			h->local[len++] = '%';
	}
	if (snprintf(h->local + len, sizeof(h->local) - len, "/%s", given) >=
	    (int)(sizeof(h->local) - len))
		return error_set(err, HALE_ERR_ARGUMENT, "the path '%s' is too long", given);
	h->o->ckpt_local = h->local;
	return HALE_OK;
}

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

/* Nodes on this machine speak over its loopback, unless the user says otherwise; our own wire does
 * so by itself (segment.h, one_host). */
static void keep_off_the_network(const struct head *h)
{
	if (h->hosts.count == 0 && h->crew.config.nodes > 1)
		setenv("UCX_NET_DEVICES", "lo", 0);
}

static struct crew_config make_config(struct head *h)
{
	const struct options *o = h->o;
	struct crew_config config = {.hosts = h->hosts.count > 0 ? &h->hosts : NULL,
				     .spares = (uint32_t)o->spares,
				     .launcher = o->launcher,
				     .node_timeout = o->node_timeout,
				     .tag = o->tag,
				     .setup = {.nranks = h->nranks,
					       .job = h->job,
					       .program = h->program->path,
					       .argv = o->program,
					       .exports = o->exports,
					       .wdir = o->wdir,
					       .local = o->ckpt_local,
					       .bind = (uint32_t)o->bind,
					       .folder = "",
					       .tag = ""}};

	/* elsewhere the working folder is the one of the same name */
	if (config.hosts && realpath(o->wdir ? o->wdir : ".", h->wdir))
		config.setup.wdir = h->wdir;
	config.setup.flags = (h->program->preload_mpi ? SETUP_PRELOAD_MPI : 0) |
			     (o->no_mpi ? SETUP_NO_MPI : 0) | (o->net_encrypt ? SETUP_ENCRYPT : 0) |
			     (o->no_fsync ? SETUP_NOFSYNC : 0);
	if (!takeover_possible(h))
		return config;
	config.setup.grace_ns = (uint64_t)(o->head_grace * 1e9);
	config.setup.epoch = h->epoch;
	config.setup.folder = h->store.job_folder;
	config.setup.tag = h->tag;
	config.keeper = &h->keeper;
	return config;
}

static struct crew_handler make_handler(struct head *h)
{
	return (struct crew_handler){.ready = on_ready,
				     .failed = on_failed,
				     .lost = on_lost,
				     .not_spawned = on_not_spawned,
				     .hello = on_hello,
				     .packet = on_packet,
				     .ended = on_ended,
				     .stray = on_stray,
				     .cleared = on_cleared,
				     .checked = on_checked,
				     .looked = on_looked,
				     .differs = on_differs,
				     .moved = migrate_message,
				     .events = watch_carried,
				     .copied = on_copied,
				     .attached = takeover_attached,
				     .no_answer = takeover_no_answer,
				     .superseded = takeover_superseded,
				     .keeper_gone = on_keeper_gone,
				     .laying_out = on_laying_out,
				     .may_grant = on_may_grant,
				     .arg = h};
}

/* Where another head may follow: a record, a process that writes the output, a name for the agents
 * to be found by. */
static hale_status_t prepare_takeover(struct head *h, struct error *err)
{
	uint64_t tag;
	hale_status_t status;

	if (!takeover_possible(h))
		return HALE_OK;
	status = head_open_store(h, err);
	if (status != HALE_OK)
		return status;
	if (getrandom(&tag, sizeof(tag), 0) != (ssize_t)sizeof(tag))
		return error_sys(err, HALE_ERR_SYSTEM, "cannot make a name for the agents");
	snprintf(h->tag, sizeof(h->tag), "%016lx", (unsigned long)tag);
	h->epoch = succession_newest(h->store.job_folder) + 1;
	return start_keeper(h, err);
}

/* Its input, too, outlives the head. */
static void keep_input(struct head *h)
{
	char path[PATH_MAX + 16];

	if (!takeover_possible(h))
		return;
	snprintf(path, sizeof(path), "%s/stdin.spool", h->store.job_folder);
	feed_keep_in(&h->crew.feed, path);
}

static hale_status_t start_crew(struct head *h, struct placement *placement, uint32_t nodes,
				struct error *err)
{
	hale_status_t status = prepare_takeover(h, err);
	struct crew_config config = make_config(h);
	struct crew_handler handler = make_handler(h);

	if (status != HALE_OK)
		return status;
	config.nodes = nodes;
	if (getrandom(config.setup.secret, sizeof(config.setup.secret), 0) !=
	    (ssize_t)sizeof(config.setup.secret))
		return error_sys(err, HALE_ERR_SYSTEM, "cannot make a secret for the ranks");
	h->crew.placement = *placement;
	h->crew.config.nodes = nodes;
	keep_off_the_network(h);
	if (h->program->preload_mpi)
		log_info("the program's DT_RPATH would find %s first, so hale's libmpi.so.40 is "
			 "preloaded",
			 h->program->other_mpi);
	status = crew_create(&h->crew, &h->loop, &config, &handler, err);
	keep_input(h);
	return status == HALE_OK && takeover_possible(h) ? succession_claim(h, err) : status;
}

hale_status_t head_adopt(struct head *h, const struct node *nodes, uint32_t count,
			 struct error *err)
{
	hale_status_t status = start_keeper(h, err);
	struct crew_config config = make_config(h);
	struct crew_handler handler = make_handler(h);

	if (status == HALE_OK && takeover_check(h))
		return error_set(err, HALE_ERR_STATE, "another head has taken over job %s", h->job);
	if (status == HALE_OK)
		keeper_release(h->job, h->epoch - 1);
	if (status == HALE_OK)
		status = crew_adopt(&h->crew, &h->loop, &config, &handler, nodes, count, err);
	keep_input(h);
	return status;
}

hale_status_t head_launch_all(struct head *h, struct error *err)
{
	static const uint64_t beginning[3];
	hale_status_t status = crew_layout(&h->crew, ++h->generation, err);

	if (status != HALE_OK)
		return status;
	inject_arm_mailboxes(h);
	for (uint32_t r = 0; r < h->nranks; r++) {
		head_rank_reset(h, r, -1);
		crew_spawn(&h->crew, r, h->program->path, NULL, beginning);
	}
	h->placing = false;
	succession_save(h);
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

/* Which machines, and which rank on which of them. */
static hale_status_t place(struct head *h, struct placement *p, uint32_t *nodes, struct error *err)
{
	struct options *o = h->o;
	hale_status_t status = HALE_OK;

	*p = (struct placement){0};
	if (o->hosts)
		status = hosts_read(&h->hosts, o->hosts, err);
	else if (o->host_list)
		status = hosts_list(&h->hosts, o->host_list, err);
	else if (o->nodes == 0)
		status = hosts_slurm(&h->hosts, err);
	if (status == HALE_OK && h->hosts.count > 0)
		status =
		    hosts_place(&h->hosts, h->nranks, o->nodes, o->per_node, o->spares, p, err);
	else if (status == HALE_OK)
		status =
		    placement_make(p, h->nranks, (uint32_t)o->nodes, (uint32_t)o->per_node, err);
	*nodes = p->nodes;
	return status;
}

/* Another head has begun it. If that fails the agents are left to the next one. */
static hale_status_t begin_again(struct head *h, struct error *err)
{
	hale_status_t status = signals_start(h, err);

	if (status == HALE_OK)
		status = takeover_begin(h, err);
	if (status == HALE_OK)
		status = watch_start(h, err);
	if (status == HALE_OK)
		status = control_start(h, err);
	if (status != HALE_OK)
		crew_abandon(&h->crew);
	return status;
}

static hale_status_t begin(struct head *h, struct error *err)
{
	struct placement placement;
	uint32_t nodes;
	hale_status_t status = local_folder(h, err);

	if (status == HALE_OK)
		status = place(h, &placement, &nodes, err);

	/* agents first: they are not to inherit the rest */
	if (status == HALE_OK)
		status = start_crew(h, &placement, nodes, err);
	if (status == HALE_OK)
		status = signals_start(h, err);
	if (status == HALE_OK)
		status = watch_start(h, err);
	if (status == HALE_OK)
		status = control_start(h, err);
	for (size_t i = 0; status == HALE_OK && i < h->o->fault_count; i++)
		status = inject_add(h, &h->o->faults[i], err);
	if (status != HALE_OK)
		return status;
	/* with what was added to it meanwhile */
	h->crew.config.setup.environ = environ;
	if (watch_serves_hosts(h))
		h->crew.config.setup.flags |= SETUP_EVENTS;
	return crew_start(&h->crew, err);
}

static void say_beginning(const struct head *h)
{
	uint32_t cores = crew_cores(&h->crew);

	log_info("job %s: %u rank%s on %u core%s", h->job, h->nranks, h->nranks > 1 ? "s" : "",
		 cores, cores > 1 ? "s" : "");
}

void head_begin(struct head *h)
{
	const struct head_start *start = h->start;
	struct error err;
	hale_status_t status;

	h->state = HEAD_RUNNING;
	record_launch(h);
	say_beginning(h);
	levels_begin(h);
	if (start->manifest)
		status = recover_begin(h, start->manifest, start->job_folder, &err);
	else
		status = head_launch_all(h, &err);
	if (status != HALE_OK)
		head_cannot_begin(h, &err);
	else if (!start->manifest)
		checkpoint_interval_start(h);
	if (status == HALE_OK)
		watch_job_begun(h);
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
	migrate_fini(h);
	checkpoint_fini(h);
	recover_fini(h);
	levels_fini(h);
	if (!h->superseded)
		write_end(h);
	watch_stop(h);
	control_stop(h);
	crew_destroy(&h->crew);
	if (h->superseded || h->crew.abandoned)
		keeper_leave(&h->keeper);
	else
		keeper_end(&h->keeper);
	if (!h->crew.abandoned)
		succession_end(h);
	head_profile_fini(h);
	hosts_fini(&h->hosts);
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
	h->keeper.out[0] = h->keeper.out[1] = -1;
	h->random = h->o->seed;
	h->report = (struct report){.job = h->job, .ranks = h->nranks, .seed = h->o->seed};
	record_init(&h->record);
	h->ranks = calloc(h->nranks, sizeof(*h->ranks));
	if (!h->ranks || !loop_init(&h->loop)) {
		log_warn("out of memory");
		free(h->ranks);
		free(h);
		return EXIT_USAGE;
	}
	checkpoint_init(h);
	levels_init(h);
	h->start = start;
	h->epoch = start->epoch;
	h->takeover = start->takeover;
	if ((start->takeover ? begin_again(h, &err) : begin(h, &err)) != HALE_OK)
		head_cannot_begin(h, &err);
	loop_run(&h->loop);
	exit_status = h->exit_status;
	end(h);
	free(h);
	return exit_status;
}
