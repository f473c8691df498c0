/* SPDX-License-Identifier: BSD-3-Clause */
/* hale run, hale restart: from a command line to the head of a job. */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/base.h"
#include "base/own.h"
#include "agent/agent.h"
#include "cli/cli.h"
#include "cli/opencl.h"
#include "cli/tasks.h"
#include "control/control.h"
#include "launch/environment.h"
#include "head/head.h"
#include "image/image.h"
#include "launch/options.h"
#include "launch/program.h"
#include "launch/slurm_step.h"
#include "node/segment.h"
#include "store/store.h"

static int fail(const struct error *err, int status)
{
	log_warn("%s", err->text);
	return status;
}

/* ---- a program ---- */

/* A program of which nothing can be saved is refused where saving was asked for, and told of
 * otherwise. A sanitizer's runtime comes before all libraries that are preloaded. */
static hale_status_t check_protection(struct options *o, const struct program *p,
				      const char *libdir, struct error *err)
{
	const char *preload = getenv("LD_PRELOAD");
	char *assignment;

	if (p->preload_mpi && strchr(libdir, ' '))
		return error_set(
		    err, HALE_ERR_UNSUPPORTED,
		    "the DT_RPATH of '%s' finds %s before hale's, which can't be preloaded "
		    "from '%s', as that has a blank in its name; set HALE_LIBDIR to a "
		    "symbolic link to it",
		    p->path, p->other_mpi, libdir);
	if (p->unprotected[0] && o->ckpt_every > 0)
		return error_set(err, HALE_ERR_UNSUPPORTED,
				 "%s, or leave out --ckpt-every: then it runs unprotected",
				 p->unprotected);
	if (p->unprotected[0] && o->ckpt_required)
		return error_set(err, HALE_ERR_UNSUPPORTED,
				 "%s, or leave out --require-checkpoints: then it runs unprotected",
				 p->unprotected);
	if (p->unprotected[0])
		o->ckpt_auto = false;
	if (p->unprotected[0] && !o->quiet)
		log_warn("%s; it runs unprotected: no checkpoints, no migration%s", p->unprotected,
			 p->runtime[0] || o->no_mpi ? "" : ", and MPI not by hale");
	if (!p->runtime[0])
		return HALE_OK;
	for (size_t i = 0; i < o->export_count; i++)
		if (strncmp(o->exports[i], "LD_PRELOAD=", 11) == 0)
			preload = o->exports[i] + 11;
	if (asprintf(&assignment, "LD_PRELOAD=%s%s%s", p->runtime, preload && *preload ? ":" : "",
		     preload && *preload ? preload : "") < 0)
		return error_set(err, HALE_ERR_MEMORY, "out of memory");
	return options_export(o, assignment, err);
}

/* 0-3,8 */
static bool read_cpus(const char *text, cpu_set_t *set)
{
	char *end;

	CPU_ZERO(set);
	do {
		unsigned long first = strtoul(text, &end, 10), last = first;

		if (end == text)
			return false;
		if (*end == '-') {
			text = end + 1;
			last = strtoul(text, &end, 10);
			if (end == text)
				return false;
		}
		for (; first <= last && first < CPU_SETSIZE; first++)
			CPU_SET(first, set);
		text = end + 1;
	} while (*end == ',');
	return *end == '\0';
}

/* What hale run has, its agents and ranks get from it. */
static hale_status_t prepare_process(const struct options *o, struct error *err)
{
	cpu_set_t set;
	int null;

	if (o->cpu_set &&
	    (!read_cpus(o->cpu_set, &set) || sched_setaffinity(0, sizeof(set), &set) != 0))
		return error_set(err, HALE_ERR_ARGUMENT,
				 "--cpu-set %s: these are no cores that this process may use",
				 o->cpu_set);
	if (!o->no_stdin)
		return HALE_OK;
	null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (null < 0 || dup2(null, STDIN_FILENO) < 0)
		return error_sys(err, HALE_ERR_SYSTEM, "cannot open /dev/null");
	close(null);
	return HALE_OK;
}

static int run_program(struct options *o)
{
	struct program *program = calloc(1, sizeof(*program));
	char libdir[PATH_MAX];
	struct error err;
	struct stat st;
	int status;

	if (!program)
		return EXIT_USAGE;
	if (o->wdir && (stat(o->wdir, &st) != 0 || !S_ISDIR(st.st_mode))) {
		error_set(&err, HALE_ERR_ARGUMENT, "the working folder '%s' is not there", o->wdir);
		status = fail(&err, EXIT_USAGE);
	} else if (program_examine(o->program[0], o->wdir, program, &status, &err) != HALE_OK) {
		fail(&err, status);
	} else if (prepare_process(o, &err) != HALE_OK ||
		   environment_find_libdir(libdir, &err) != HALE_OK ||
		   options_reserve(o, program->spawns, &err) != HALE_OK ||
		   check_protection(o, program, libdir, &err) != HALE_OK) {
		status = fail(&err, EXIT_USAGE);
	} else {
		struct head_start start = {.options = o,
					   .program = program,
					   .libdir = libdir,
					   .agent = agent_run,
					   .job = o->requeue ? o->lives_as : NULL};
		status = head_run(&start);
	}
	free(program);
	return status;
}

static int run_tasks(struct options *o)
{
	return o->tasks ? cli_tasks_run(o, run_program) : run_program(o);
}

/* ---- hale restart ---- */

struct restart {
	struct store_manifest manifest;
	char job_folder[PATH_MAX];
	char ckpt_dir[PATH_MAX]; /* what holds job_folder */
	char job[JOB_ID_MAX];
	struct program program;
};

/* Newer ones of its job may be there. */
static hale_status_t not_there(const char *path, struct error *err)
{
	hale_status_t status = error_sys(err, HALE_ERR_IMAGE_MISSING, "the checkpoint '%s'", path);
	char named[PATH_MAX];
	const char *folder;
	uint32_t *ids;
	size_t count;

	snprintf(named, sizeof(named), "%s", path);
	folder = dirname(named);
	count = store_list(folder, &ids);
	if (count > 0)
		status = error_set(err, HALE_ERR_IMAGE_MISSING,
				   "the checkpoint '%s' is not there: the newest ones are kept (as "
				   "many as --keep says), here up to %u; `hale restart %s` goes on "
				   "from the newest",
				   path, ids[count - 1], folder);
	free(ids);
	return status;
}

/* The checkpoint that path names: itself, or the newest of the job that it is the folder of. */
static hale_status_t find_checkpoint(const char *path, struct restart *r, struct error *err)
{
	char real[PATH_MAX], manifest[PATH_MAX + 16];
	hale_status_t status = HALE_OK;
	uint32_t *ids;
	size_t count;

	status = own_path(path, real, err);
	if (status == HALE_ERR_IMAGE_MISSING)
		return not_there(path, err);
	if (status != HALE_OK)
		return status;
	snprintf(manifest, sizeof(manifest), "%s/manifest.json", real);
	if (access(manifest, F_OK) == 0) {
		snprintf(r->job_folder, sizeof(r->job_folder), "%s", real);
		*strrchr(r->job_folder, '/') = '\0';
		return store_manifest_read(real, &r->manifest, err);
	}
	snprintf(r->job_folder, sizeof(r->job_folder), "%s", real);
	count = store_list(real, &ids);
	if (count == 0)
		status = error_set(err, HALE_ERR_IMAGE_MISSING,
				   "'%s' is neither a complete checkpoint nor the folder of a job "
				   "that has one",
				   path);
	for (size_t i = count; status == HALE_OK && i > 0; i--) {
		store_path(real, ids[i - 1], manifest);
		if (store_manifest_read(manifest, &r->manifest, err) == HALE_OK)
			break;
		log_warn("checkpoint %u is refused: %s", ids[i - 1], err->text);
		if (i == 1)
			status = error_set(err, HALE_ERR_IMAGE_MISSING,
					   "no checkpoint in '%s' is whole", path);
	}
	free(ids);
	return status;
}

/* The first format of images whose libraries know SEGMENT_SAID_SINCE: manifests did not say yet which
 * segment that is. */
enum { FORMAT_OF_SEGMENT = 7, SEGMENT_SAID_SINCE = 16 };

static uint32_t segment_by_format(const struct restart *r, struct error *err)
{
	const struct store_manifest *m = &r->manifest;
	char folder[PATH_MAX], path[PATH_MAX + STORE_NAME_MAX + 1];
	struct image_info info;

	store_path(r->job_folder, m->id, folder);
	for (uint32_t i = 0; i < m->nranks; i++) {
		if (!m->parts[i].file[0])
			continue;
		snprintf(path, sizeof(path), "%s/%s", folder, m->parts[i].file);
		/* it may be on its node only, or damaged: then the restart finds out more */
		if (image_read_info(path, &info, err) == HALE_OK)
			return info.version < FORMAT_OF_SEGMENT ? 0 : SEGMENT_SAID_SINCE;
		return err->code == HALE_ERR_IMAGE_MISMATCH ? 0 : SEGMENT_SAID_SINCE;
	}
	return SEGMENT_SAID_SINCE;
}

/* Processes go on with the library that they had: it has to know the segment of today's agents. */
static hale_status_t check_library(const struct restart *r, struct error *err)
{
	const struct store_manifest *m = &r->manifest;
	uint32_t segment = m->segment ? m->segment : segment_by_format(r, err);

	if (segment == SEGMENT_VERSION)
		return HALE_OK;
	return error_set(err, HALE_ERR_IMAGE_MISMATCH,
			 "checkpoint %u was written by another version of Hale: its processes go on "
			 "with that version's library, which does not know the agents of this one. "
			 "Restart it with the Hale that wrote it",
			 m->id);
}

/* What was not said on this command line is as it was. */
static void take_over(struct options *o, struct restart *r)
{
	const struct store_manifest *m = &r->manifest;

	o->no_mpi = !m->mpi;
	o->wdir = m->cwd;
	o->program = m->argv;
	if (!o->given_every && !o->given_auto) {
		o->ckpt_every = m->ckpt_every;
		o->ckpt_auto = m->ckpt_first > 0;
	}
	if (!o->given_every && !o->given_auto && o->ckpt_auto) {
		o->ckpt_first = m->ckpt_first;
		o->overhead = m->overhead;
		o->mtbf = m->mtbf;
	}
	if (!o->given_keep)
		o->keep = m->keep;
	if (!o->given_max_restarts)
		o->max_restarts = m->max_restarts;
	if (!o->given_incremental)
		o->incremental = m->incremental;
	if (!o->given_compress)
		o->compress = (image_compress_t)m->compress;
	if (!o->given_tag)
		o->tag = m->tag;
	if (!o->given_net_security)
		o->net_encrypt = m->net_encrypt;
	if (!o->given_local)
		o->ckpt_local = m->ckpt_local;
	if (!o->given_shared_every && m->ckpt_local)
		o->shared_every = m->shared_every;
	if (!o->given_dir)
		o->ckpt_dir = r->ckpt_dir;
}

/* The restarted job takes the name of the old one, unless a running job still has that name. */
static void choose_name(struct restart *r)
{
	const char *slash = strrchr(r->manifest.program, '/');
	const char *name = slash ? slash + 1 : r->manifest.program;
	int fd = control_connect(r->manifest.job);

	if (fd < 0) {
		snprintf(r->job, sizeof(r->job), "%s", r->manifest.job);
		return;
	}
	close(fd);
	snprintf(r->job, sizeof(r->job), "%.40s.%d", name, (int)getpid());
}

static hale_status_t check_faults(const struct options *o, struct error *err)
{
	for (size_t i = 0; i < o->fault_count; i++)
		if (o->faults[i].rank >= o->ranks)
			return error_set(err, HALE_ERR_ARGUMENT,
					 "--inject: there is no rank %ld among %ld",
					 o->faults[i].rank, o->ranks);
		else if (o->faults[i].slot >= o->replicas)
			return error_set(err, HALE_ERR_ARGUMENT,
					 "--inject: a rank of this job has no slot %ld",
					 o->faults[i].slot);
	return HALE_OK;
}

static int restart_job(struct options *o, const char *path, struct restart *r)
{
	char libdir[PATH_MAX];
	struct error err;
	struct stat st;
	struct head_start start = {.options = o,
				   .program = &r->program,
				   .libdir = libdir,
				   .agent = agent_run,
				   .job = r->job,
				   .manifest = &r->manifest,
				   .job_folder = r->job_folder};

	if (find_checkpoint(path, r, &err) != HALE_OK || check_library(r, &err) != HALE_OK)
		return fail(&err, EXIT_USAGE);
	snprintf(r->ckpt_dir, sizeof(r->ckpt_dir), "%s", r->job_folder);
	*strrchr(r->ckpt_dir, '/') = '\0';
	choose_name(r);
	take_over(o, r);
	snprintf(r->program.path, sizeof(r->program.path), "%s", r->manifest.program);
	r->program.elf = true;
	r->program.preload_mpi = (program_mpi_t)r->manifest.preload_mpi;
	if (r->manifest.library_path)
		setenv("LD_LIBRARY_PATH", r->manifest.library_path, 1);
	if (stat(o->wdir, &st) != 0)
		o->wdir = NULL;			       /* the image says what it needs of it */
	o->sdc = r->manifest.compares ? "hash" : NULL; /* its processes know how */
	o->on_sdc = r->manifest.compares == 2 || (r->manifest.audit > 0 && r->manifest.audit_rolls)
			? ON_SDC_ROLLBACK
			: ON_SDC_STOP;
	if (options_restart_replicas(o, r->manifest.nranks / r->manifest.degree, r->manifest.degree,
				     r->manifest.shadows, &err) != HALE_OK ||
	    options_restart_audit(o, r->manifest.audit, &err) != HALE_OK ||
	    check_faults(o, &err) != HALE_OK || environment_find_libdir(libdir, &err) != HALE_OK)
		return fail(&err, EXIT_USAGE);
	return head_run(&start);
}

int cli_restart(int argc, char **argv)
{
	struct options o;
	struct error err;
	struct restart *r = calloc(1, sizeof(*r));
	int status = EXIT_USAGE;

	if (!r)
		return status;
	if (options_parse(&o, OPTIONS_RESTART, argc, argv, &err) != HALE_OK)
		status = fail(&err, EXIT_USAGE);
	else if (o.help)
		status = cli_help("restart");
	else if (o.version)
		status = cli_version();
	else
		status = restart_job(&o, o.program[0], r);
	options_fini(&o);
	store_manifest_fini(&r->manifest);
	free(r);
	return status;
}

/* ---- hale run --requeue ---- */

enum requeue_life { REQUEUE_FIRST, REQUEUE_GO_ON, REQUEUE_REFUSED };

static void requeue_name(struct options *o)
{
	const char *name = strrchr(o->program[0], '/');
	char base[25] = "";
	size_t n = 0;

	for (const char *c = name ? name + 1 : o->program[0]; *c && n < sizeof(base) - 1; c++)
		base[n++] = strchr(" \t\n:/\"\\@", *c) ? '_' : *c;
	snprintf(o->lives_as, sizeof(o->lives_as), "%s.slurm%.20s", base, getenv("SLURM_JOB_ID"));
}

/* Names the job as its other lives are, and says whether there has been one. */
static enum requeue_life requeue_find(struct options *o)
{
	const char *count = getenv("SLURM_RESTART_COUNT");
	char folder[PATH_MAX];
	uint32_t *ids = NULL;
	size_t whole;
	int fd;

	requeue_name(o);
	fd = control_connect(o->lives_as);
	if (fd >= 0) {
		close(fd);
		log_warn("job %s runs already: --requeue is for one `hale run` of a batch job",
			 o->lives_as);
		return REQUEUE_REFUSED;
	}
	snprintf(folder, sizeof(folder), "%s/%s", o->ckpt_dir, o->lives_as);
	if (access(folder, F_OK) != 0)
		return REQUEUE_FIRST;
	whole = store_list(folder, &ids);
	free(ids);
	if (count && atol(count) > 0) {
		if (whole == 0)
			log_warn("'%s' has no complete checkpoint: the job begins anew", folder);
		return whole > 0 ? REQUEUE_GO_ON : REQUEUE_FIRST;
	}
	log_warn(
	    "'%s' is there from another run, and this batch job has not been requeued; "
	    "--requeue is for one `hale run` of a batch job, and `hale ckpt rm %s` removes what "
	    "is left of others",
	    folder, folder);
	return REQUEUE_REFUSED;
}

static int requeue_go_on(struct options *o)
{
	struct restart *r = calloc(1, sizeof(*r));
	char folder[PATH_MAX];
	int status = EXIT_USAGE;

	if (!r)
		return status;
	snprintf(folder, sizeof(folder), "%s/%s", o->ckpt_dir, o->lives_as);
	status = restart_job(o, folder, r);
	store_manifest_fini(&r->manifest);
	free(r);
	return status;
}

/* ---- hale run ---- */

int cli_run(int argc, char **argv)
{
	bool opencl = cli_opencl_asked(&argc, argv);
	struct options o;
	struct error err;
	int status;

	if (options_parse(&o, OPTIONS_RUN, argc, argv, &err) != HALE_OK)
		status = fail(&err, EXIT_USAGE);
	else if (o.help)
		status = cli_help("run");
	else if (o.version)
		status = cli_version();
	else if (o.step && !slurm_step_first())
		status = EXIT_SUCCESS; /* the first task runs the job */
	else if (o.requeue && (status = requeue_find(&o)) != REQUEUE_FIRST)
		status = status == REQUEUE_GO_ON ? requeue_go_on(&o) : EXIT_USAGE;
	else
		status = opencl ? cli_opencl_run(&o, run_tasks) : run_tasks(&o);
	options_fini(&o);
	return status;
}
