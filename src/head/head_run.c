/* SPDX-License-Identifier: BSD-3-Clause */
/* The beginning and the end of a job. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/base.h"
#include "base/reach.h"
#include "head/head.h"
#include "head/control/control_serve.h"
#include "head/head_private.h"
#include "head/audit.h"
#include "head/replicas.h"
#include "head/migration/migrate.h"
#include "head/failover/succession.h"
#include "head/failover/takeover_replicas.h"
#include "head/watch/watch.h"

/* ---- beginning ---- */

void head_cannot_begin(struct head *h, const struct error *err)
{
	bool again = h->state == JOB_RESTORING || h->report.restarts > 0;

	if (job_state_over(h->state))
		return;
	if (h->state == JOB_RESTORING)
		head_say(h, "checkpoint %u can't be restored: %s", h->recovery.target, err->text);
	else if (again)
		head_say(h, "the job can't be started again: %s", err->text);
	else
		log_warn("%s", err->text);
	if (again) {
		head_end(h, EXIT_UNRECOVERED);
		return;
	}
	h->end.decided = false;
	h->end.stopping = true;
	node_set_signal_all(&h->node_set, SIGKILL);
	head_end(h, err->code == HALE_ERR_PROCESS ? EXIT_NOT_EXECUTABLE : EXIT_USAGE);
}

hale_status_t head_start_output_daemon(struct head *h, struct error *err)
{
	uint64_t(*printed)[2] = calloc(h->nranks, sizeof(*printed));
	struct output_daemon_config config = {.job = h->id.job,
					      .folder = h->files.store.job_folder,
					      .program = h->program->path,
					      .epoch = h->succession.epoch,
					      .nranks = h->nranks,
					      .grace = h->o->head_grace,
					      .on_closed = h->o->on_closed_output,
					      .printed = printed};
	hale_status_t status;

	if (!printed)
		return error_set(err, HALE_ERR_MEMORY, "out of memory for the output daemon");
	for (uint32_t r = 0; r < h->nranks; r++)
		for (int i = 0; i < 2; i++)
			printed[r][i] = h->node_set.ranks ? h->node_set.ranks[r].out[i].handed
							  : takeover_printed(h, r, i);
	status = output_daemon_start(&h->output_daemon, &config, err);
	free(printed);
	return status;
}

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
	for (const char *c = cwd; *c && len < sizeof(h->files.local) - 2; c++) {
		h->files.local[len++] = *c;
		if (*c == '%')
			h->files.local[len++] = '%';
	}
	if (snprintf(h->files.local + len, sizeof(h->files.local) - len, "/%s", given) >=
	    (int)(sizeof(h->files.local) - len))
		return error_set(err, HALE_ERR_ARGUMENT, "the path '%s' is too long", given);
	h->o->ckpt_local = h->files.local;
	return HALE_OK;
}

/* A folder that is there is of another job, long ago, whose head had our pid. */
static bool folder_taken(const struct head *h)
{
	char path[PATH_MAX + JOB_ID_MAX];

	snprintf(path, sizeof(path), "%s/%s", h->o->ckpt_dir, h->id.job);
	return access(path, F_OK) == 0;
}

/* In a container all heads may have the same pid, and share folders, or a network, with the heads
 * of other ones: what would tell their jobs apart elsewhere doesn't there. */
static void distinguish(char more[16])
{
	enum { FIRST_PIDS = 0xeffffffc }; /* PROC_PID_INIT_INO of the kernel */
	uint32_t random;
	struct stat st;

	more[0] = '\0';
	if (stat("/proc/self/ns/pid", &st) == 0 && st.st_ino != (ino_t)FIRST_PIDS &&
	    getrandom(&random, sizeof(random), 0) == (ssize_t)sizeof(random))
		snprintf(more, 16, "-%06x", random & 0xffffff);
}

static void make_job_id(struct head *h)
{
	const char *name = strrchr(h->program->path, '/');
	char base[41] = "", more[16];
	size_t n = 0;

	for (const char *c = name ? name + 1 : h->program->path; *c && n < sizeof(base) - 1; c++)
		base[n++] = strchr(" \t\n:/\"\\@", *c) ? '_' : *c;
	distinguish(more);
	snprintf(h->id.job, sizeof(h->id.job), "%s.%d%s", base, (int)getpid(), more);
	for (int again = 2; folder_taken(h) && again < 1000; again++)
		snprintf(h->id.job, sizeof(h->id.job), "%s.%d%s-%d", base, (int)getpid(), more,
			 again);
}

/* Nodes on this machine speak over its loopback, unless the user says otherwise; our own wire does
 * so by itself (segment.h, one_host). */
static void keep_off_the_network(const struct head *h)
{
	if (h->hosts.count == 0 && h->node_set.config.nodes > 1)
		setenv("UCX_NET_DEVICES", "lo", 0);
}

static struct node_set_config make_config(struct head *h)
{
	const struct options *o = h->o;
	struct node_set_config config = {.agent = h->start->agent,
					 .hosts = h->hosts.count > 0 ? &h->hosts : NULL,
					 .spares = (uint32_t)o->spares,
					 .launcher = o->launcher,
					 .node_timeout = o->node_timeout,
					 .tag = o->tag,
					 .stamp = o->timestamp,
					 .on_closed = o->on_closed_output,
					 .setup = {.nranks = h->nranks,
						   .degree = h->degree,
						   .shadows = (uint32_t)o->shadows,
						   .shadow_rate = (uint32_t)(o->shadow_rate * 1000),
						   .job = h->id.job,
						   .program = h->program->path,
						   .argv = o->program,
						   .exports = recover_files_exports(h),
						   .wdir = o->wdir,
						   .local = o->ckpt_local,
						   .bind = (uint32_t)o->bind,
						   .hang_ns = (uint64_t)(o->hang_after * 1e9),
						   .compute_ns = (uint64_t)(o->hang_compute * 1e9),
						   .wait_ns = (uint64_t)(o->hang_wait * 1e9),
						   .folder = "",
						   .tag = ""}};

	/* elsewhere the working folder is the one of the same name */
	if (config.hosts && realpath(o->wdir ? o->wdir : ".", h->files.wdir))
		config.setup.wdir = h->files.wdir;
	config.setup.flags =
	    (uint32_t)h->program->preload_mpi * SETUP_PRELOAD_ONE | (o->no_mpi ? SETUP_NO_MPI : 0) |
	    (o->net_encrypt ? SETUP_ENCRYPT : 0) | (o->no_fsync ? SETUP_NOFSYNC : 0) |
	    (o->report_bindings ? SETUP_SAY_PINS : 0) | (o->agent_lost_ends ? 0 : SETUP_ADOPT) |
	    (o->audit > 0 ? SETUP_AUDITS : 0) | (o->sdc ? SETUP_STORE_ALL : 0);
	if (!takeover_possible(h))
		return config;
	config.setup.grace_ns = (uint64_t)(o->head_grace * 1e9);
	config.setup.epoch = h->succession.epoch;
	config.setup.folder = h->files.store.job_folder;
	config.setup.tag = h->succession.tag;
	config.output_daemon = &h->output_daemon;
	return config;
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
	snprintf(h->succession.tag, sizeof(h->succession.tag), "%016lx", (unsigned long)tag);
	h->succession.epoch = head_record_newest(h->files.store.job_folder) + 1;
	return head_start_output_daemon(h, err);
}

/* Its input, too, outlives the head. */
static void keep_input(struct head *h)
{
	char path[PATH_MAX + 16];

	if (!takeover_possible(h))
		return;
	snprintf(path, sizeof(path), "%s/stdin.spool", h->files.store.job_folder);
	stdin_spool_keep_in(&h->node_set.stdin_spool, path);
}

static hale_status_t start_crew(struct head *h, struct placement *placement, uint32_t nodes,
				struct error *err)
{
	hale_status_t status = prepare_takeover(h, err);
	struct node_set_config config = make_config(h);
	struct node_set_handler handler = head_node_set_handler(h);

	if (status != HALE_OK)
		return status;
	config.nodes = nodes;
	if (getrandom(config.setup.secret, sizeof(config.setup.secret), 0) !=
	    (ssize_t)sizeof(config.setup.secret))
		return error_sys(err, HALE_ERR_SYSTEM, "cannot make a secret for the ranks");
	h->node_set.placement = *placement;
	h->node_set.config.nodes = nodes;
	keep_off_the_network(h);
	if (h->program->preload_mpi)
		log_info("the program's DT_RPATH would find %s first, so hale's %s is preloaded",
			 h->program->other_mpi, program_mpi_library(h->program->preload_mpi));
	status = node_set_create(&h->node_set, &h->loop, &config, &handler, err);
	keep_input(h);
	return status == HALE_OK && takeover_possible(h) ? succession_claim(h, err) : status;
}

hale_status_t head_adopt_nodes(struct head *h, const struct node *nodes, uint32_t count,
			       struct error *err)
{
	hale_status_t status = head_start_output_daemon(h, err);
	struct node_set_config config = make_config(h);
	struct node_set_handler handler = head_node_set_handler(h);

	if (status == HALE_OK && takeover_check(h)) {
		/* it knows no more than the one before, which still answers */
		output_daemon_end(&h->output_daemon);
		return error_set(err, HALE_ERR_STATE, "another head has taken over job %s",
				 h->id.job);
	}
	if (status == HALE_OK)
		output_daemon_release(h->id.job, h->succession.epoch - 1);
	if (status == HALE_OK)
		status =
		    node_set_adopt(&h->node_set, &h->loop, &config, &handler, nodes, count, err);
	keep_input(h);
	return status;
}

hale_status_t head_launch_job(struct head *h, struct error *err)
{
	static const uint64_t beginning[3];
	hale_status_t status;

	replicas_begin(h);
	status = node_set_layout(&h->node_set, ++h->generation, h->degree > 1 ? h->view.lost : NULL,
				 err);
	if (status != HALE_OK)
		return status;
	inject_arm_mailboxes(h);
	for (uint32_t r = 0; r < h->nranks; r++) {
		head_rank_reset(h, r, replicas_is_lost(h, r) ? 0 : -1);
		if (replicas_is_lost(h, r))
			continue;
		node_set_spawn(&h->node_set, r, h->program->path, NULL, beginning);
	}
	h->placing = false;
	succession_save(h);
	return HALE_OK;
}

static void record_launch(struct head *h)
{
	struct json_out j;

	record_begin(&j, h->restarted ? "restarted" : "launched");
	json_string(&j, "job", h->id.job);
	json_string(&j, "program", h->program->path);
	json_uint(&j, "nranks", h->nranks);
	json_int(&j, "head_pid", getpid());
	json_string(&j, "node", h->id.node);
	record_end(&h->files.record, &j);
}

/* Which machines, and which rank on which of them. */
static hale_status_t place(struct head *h, struct placement *p, uint32_t *nodes, struct error *err)
{
	struct options *o = h->o;
	hale_status_t status = HALE_OK;
	/* copies come later, and into the place of others */
	uint32_t n = o->audit > 0     ? (uint32_t)o->ranks
		     : o->shadows > 0 ? (uint32_t)o->ranks * LIVING_SHADOW_DEGREE
				      : h->nranks - (uint32_t)o->reserve;

	*p = (struct placement){0};
	if (o->hosts)
		status = hosts_read(&h->hosts, o->hosts, err);
	else if (o->host_list)
		status = hosts_list(&h->hosts, o->host_list, err);
	else
		status = hosts_slurm(&h->hosts, o->step, err);
	/* one machine can stand for several, a whole allocation is what it is */
	if (h->hosts.slurm && h->hosts.count == 1 && o->nodes > 1)
		hosts_fini(&h->hosts);
	if (status == HALE_OK && h->hosts.count > 0)
		status = hosts_place(&h->hosts, n, o->nodes, o->per_node, o->spares, p, err);
	else if (status == HALE_OK)
		status = placement_make(p, n, (uint32_t)o->nodes, (uint32_t)o->per_node, err);
	*nodes = p->nodes;
	if (status == HALE_OK && o->reserve > 0)
		status = placement_extend(p, n, (uint32_t)o->reserve, err);
	if (status == HALE_OK && o->audit > 0)
		status = audit_place(h, p, err);
	return status == HALE_OK && o->shadows ? shadows_place(h, p, err) : status;
}

/* Another head has begun it. If that fails the agents are left to the next one. */
static hale_status_t begin_again(struct head *h, struct error *err)
{
	hale_status_t status = head_signals_start(h, err);

	if (status == HALE_OK)
		status = takeover_begin(h, err);
	if (status == HALE_OK)
		status = watch_start(h, err);
	if (status == HALE_OK)
		status = control_start(h, err);
	if (status != HALE_OK)
		node_set_abandon(&h->node_set);
	return status;
}

/* What can't be read is told once here, and not by each node and rank. */
static hale_status_t check_reach(const struct options *o, struct error *err)
{
	struct reach_wish wish = reach_wish_own();
	char why[400];

	for (char *const *e = o->exports; e && *e; e++) {
		if (strncmp(*e, "HALE_NET_DEVICES=", 17) == 0)
			wish.devices = *e + 17;
		else if (strncmp(*e, "HALE_NET_PORTS=", 15) == 0)
			wish.ports = *e + 15;
	}
	return reach_wish_check(&wish, why, sizeof(why))
		   ? HALE_OK
		   : error_set(err, HALE_ERR_ARGUMENT, "%s", why);
}

static void timed_out(void *arg)
{
	struct head *h = arg;
	char after[16];

	head_say(h, "the job ends: it has run for %s (--timeout)",
		 units_show_seconds(h->o->timeout, after));
	h->end.stopping = true;
	node_set_signal_all(&h->node_set, SIGCONT);
	node_set_signal_all(&h->node_set, SIGTERM);
	head_end(h, EXIT_TIMEOUT);
}

static hale_status_t begin(struct head *h, struct error *err)
{
	struct placement placement;
	uint32_t nodes;
	hale_status_t status = check_reach(h->o, err);

	if (status == HALE_OK)
		status = watch_monitors_check(h->o, err);
	if (status == HALE_OK)
		status = replicas_check(h, err);
	if (status == HALE_OK)
		status = head_probe(h, err);
	if (status == HALE_OK)
		status = local_folder(h, err);
	if (status == HALE_OK)
		status = place(h, &placement, &nodes, err);

	/* agents first: they are not to inherit the rest */
	if (status == HALE_OK)
		status = start_crew(h, &placement, nodes, err);
	if (status == HALE_OK)
		status = head_signals_start(h, err);
	if (status == HALE_OK)
		status = watch_start(h, err);
	if (status == HALE_OK)
		status = control_start(h, err);
	for (size_t i = 0; status == HALE_OK && i < h->o->fault_count; i++)
		status = inject_add(h, &h->o->faults[i], err);
	if (status != HALE_OK)
		return status;
	/* with what was added to it meanwhile */
	h->node_set.config.setup.environ = environ;
	if (watch_serves_hosts(h))
		h->node_set.config.setup.flags |= SETUP_EVENTS;
	head_watch_start(h);
	if (h->o->timeout > 0)
		loop_timer_set(&h->loop, &h->end.timeout, h->o->timeout, timed_out, h);
	return node_set_start(&h->node_set, err);
}

void head_begin(struct head *h)
{
	const struct head_start *start = h->start;
	struct error err;
	hale_status_t status;

	record_launch(h);
	head_say_begin(h);
	replicas_say_placement(h);
	levels_begin(h);
	recover_files_begin(h);
	recover_program_note(h);
	if (start->manifest)
		requeue_begin_output(h, start->job_folder);
	if (start->manifest)
		status = recover_begin(h, start->manifest, start->job_folder, &err);
	else
		status = head_launch_all(h, &err);
	if (status != HALE_OK)
		head_cannot_begin(h, &err);
	else if (!start->manifest)
		checkpoint_interval_start(h);
	warm_again(h);
	if (status == HALE_OK)
		watch_job_begun(h);
}

/* ---- end ---- */

static void write_end(struct head *h)
{
	struct error err;
	struct json_out j;
	double wall = clock_seconds() - h->began;

	audit_job_over(h);
	record_begin(&j, "ended");
	json_int(&j, "exit", h->end.status);
	json_double(&j, "wall_seconds", wall);
	json_uint(&j, "restarts", h->report.restarts);
	record_end(&h->files.record, &j);
	checkpoint_report_tasks(h);
	energy_into_report(h);
	if (h->o->report &&
	    report_write(&h->report, h->o->report, h->end.status, wall, &err) != HALE_OK)
		log_warn("%s", err.text);
	if (!h->o->no_mpi && !h->mpi_seen && h->end.status == 0 && !h->restarted &&
	    h->program->elf && !h->program->unprotected[0] && !h->end.stopping)
		head_say(h, "note: no rank called MPI_Init; for programs without MPI --no-mpi lets "
			    "them be checkpointed too");
}

static void end(struct head *h)
{
	checkpoint_add_to_history(h);
	inject_fini(h);
	loop_timer_clear(&h->loop, &h->end.timeout);
	loop_timer_clear(&h->loop, &h->requeue.ended);
	for (uint32_t r = 0; r < h->nranks; r++)
		loop_timer_clear(&h->loop, &h->ranks[r].lost);
	migrate_fini(h);
	checkpoint_fini(h);
	recover_fini(h);
	levels_fini(h);
	head_put_off_fini(h);
	if (!h->succession.superseded)
		write_end(h);
	watch_stop(h);
	control_stop(h);
	head_partition_fini(h);
	warm_fini(h);
	requeue_save_output(h);
	node_set_destroy(&h->node_set);
	if (h->succession.superseded || h->node_set.abandoned)
		output_daemon_leave(&h->output_daemon);
	else if (!output_daemon_end(&h->output_daemon))
		h->node_set.output_lost = true;
	if (h->node_set.output_lost && h->end.status == 0)
		h->end.status = EXIT_UNRECOVERED;
	if (!h->node_set.abandoned)
		succession_end(h);
	/* nobody is left who writes there */
	if (h->files.is_open && !h->node_set.abandoned && !h->succession.superseded)
		store_finish(h->files.store.job_folder);
	head_profile_fini(h);
	hosts_fini(&h->hosts);
	record_fini(&h->files.record);
	recover_files_end(h);
	if (!h->succession.superseded && !h->node_set.abandoned)
		head_say_end(h);
	requeue_ask(h);
	report_fini(&h->report);
	if (h->signals.fd >= 0)
		close(h->signals.fd);
	loop_fini(&h->loop);
	replicas_fini(h);
	takeover_replicas_fini(h);
	free(h->ranks);
}

/* Job names come again, since process ids do. */
static bool number_run(struct head *h, const struct head_start *start)
{
	uint64_t n[2];

	if (start->manifest) {
		snprintf(h->id.run, sizeof(h->id.run), "%s", start->manifest->run);
		return true;
	}
	if (getrandom(n, sizeof(n), 0) != (ssize_t)sizeof(n))
		return false;
	snprintf(h->id.run, sizeof(h->id.run), "%016" PRIx64 "%016" PRIx64, n[0], n[1]);
	return true;
}

int head_run(const struct head_start *start)
{
	struct head *h = calloc(1, sizeof(*h));
	struct error err;
	int exit_status;

	if (!h)
		return EXIT_USAGE;
	h->up = &head_calls;
	h->start = start;
	h->o = start->options;
	h->program = start->program;
	h->degree = h->o->replicas > 1 ? (uint32_t)h->o->replicas : 1;
	h->nranks = (uint32_t)h->o->ranks * h->degree;
	h->restarted = start->manifest != NULL;
	h->began = h->job_began = clock_seconds();
	gethostname(h->id.node, sizeof(h->id.node) - 1);
	if (start->job)
		snprintf(h->id.job, sizeof(h->id.job), "%s", start->job);
	else
		make_job_id(h);
	h->signals.fd = -1;
	h->output_daemon.out[0] = h->output_daemon.out[1] = -1;
	h->faults.random = h->o->seed;
	h->report = (struct report){.job = h->id.job,
				    .ranks = (uint32_t)h->o->ranks,
				    .degree = h->o->shadows ? LIVING_SHADOW_DEGREE : h->degree,
				    .compares = h->o->sdc != NULL || h->o->audit > 0,
				    .audits = h->o->audit > 0,
				    .seed = h->o->seed};
	record_init(&h->files.record);
	h->ranks = calloc(h->nranks, sizeof(*h->ranks));
	if (!h->ranks || !replicas_init(h) || !number_run(h, start) || !loop_init(&h->loop)) {
		log_warn("out of memory");
		replicas_fini(h);
		free(h->ranks);
		free(h);
		return EXIT_USAGE;
	}
	checkpoint_init(h);
	recover_files_init(h);
	levels_init(h);
	h->succession.epoch = start->epoch;
	h->succession.takeover = start->takeover;
	if ((start->takeover ? begin_again(h, &err) : begin(h, &err)) != HALE_OK)
		head_cannot_begin(h, &err);
	loop_run(&h->loop);
	end(h);
	exit_status = h->end.status;
	free(h);
	return exit_status;
}
