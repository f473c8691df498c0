/* SPDX-License-Identifier: BSD-3-Clause */
#include "head/failover/succession.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "base/base.h"
#include "head/head.h"
#include "head/migration/migrate_private.h"
#include "head/failover/succession_replicas.h"
#include "head/failover/takeover.h"

void succession_place(char place[128])
{
	char boot[64] = "", net[48] = "";
	FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
	ssize_t n = readlink("/proc/self/ns/net", net, sizeof(net) - 1);

	if (f && !fgets(boot, sizeof(boot), f))
		boot[0] = '\0';
	if (f)
		fclose(f);
	boot[strcspn(boot, "\n")] = '\0';
	net[n > 0 ? n : 0] = '\0';
	snprintf(place, 128, "%s %s", boot, net);
}

/* ---- writing ---- */

static void put_list(struct json_out *j, const char *key, char *const *list)
{
	json_open_array(j, key);
	for (size_t i = 0; list && list[i]; i++)
		json_string(j, NULL, list[i]);
	json_close_array(j);
}

static void put_text(struct json_out *j, const char *key, const char *text)
{
	if (text)
		json_string(j, key, text);
}

static void put_path(struct json_out *j, const char *key, const char *path)
{
	char cwd[PATH_MAX], whole[2 * PATH_MAX];

	if (!path)
		return;
	if (path[0] == '/' || !getcwd(cwd, sizeof(cwd)))
		cwd[0] = '\0';
	snprintf(whole, sizeof(whole), "%s%s%s", cwd, cwd[0] ? "/" : "", path);
	json_string(j, key, whole);
}

/* Where the processes of tasks leave their reports, which `hale attach` gathers. */
static void put_tasks(struct json_out *j, const struct options *o)
{
	static const char name[] = "HALE_TASKS_REPORTS=";

	put_text(j, "tasks", o->tasks);
	put_text(j, "due", o->due);
	for (size_t i = 0; o->tasks && i < o->export_count; i++)
		if (strncmp(o->exports[i], name, sizeof(name) - 1) == 0)
			put_text(j, "task_reports", o->exports[i] + sizeof(name) - 1);
}

static void put_replicas(struct json_out *j, const struct options *o)
{
	json_int(j, "replicas", o->replicas > 1 ? o->replicas : 1);
	json_bool(j, "replenish", o->replenish);
	json_double(j, "hang_after", o->hang_after);
	json_double(j, "hang_compute", o->hang_compute);
	json_double(j, "hang_wait", o->hang_wait);
	put_text(j, "sdc", o->sdc);
	json_int(j, "on_sdc", (int64_t)o->on_sdc);
	json_double(j, "audit", o->audit);
}

static void put_options(struct json_out *j, const struct head *h)
{
	const struct options *o = h->o;

	json_open_object(j, "options");
	json_int(j, "ranks", o->ranks);
	json_string(j, "launcher", o->launcher ? o->launcher : "");
	json_double(j, "node_timeout", o->node_timeout);
	json_double(j, "head_grace", o->head_grace);
	json_bool(j, "agent_lost_ends", o->agent_lost_ends);
	json_int(j, "warm_sinks", o->warm_sinks);
	put_path(j, "wdir", o->wdir);
	json_bool(j, "no_mpi", o->no_mpi);
	json_bool(j, "net_encrypt", o->net_encrypt);
	json_double(j, "ckpt_every", o->ckpt_every);
	json_bool(j, "ckpt_auto", o->ckpt_auto);
	json_double(j, "ckpt_first", o->ckpt_first);
	json_double(j, "overhead", o->overhead);
	json_double(j, "mtbf", o->mtbf);
	json_int(j, "on_success", (int64_t)o->on_success);
	json_double(j, "ckpt_wait", o->ckpt_wait);
	json_bool(j, "ckpt_required", o->ckpt_required);
	put_path(j, "ckpt_local", o->ckpt_local);
	json_int(j, "shared_every", o->shared_every);
	json_int(j, "keep", o->keep);
	json_int(j, "max_restarts", o->max_restarts);
	json_bool(j, "incremental", o->incremental);
	json_bool(j, "no_fsync", o->no_fsync);
	json_bool(j, "leave_files", o->leave_files);
	json_int(j, "compress", (int64_t)o->compress);
	json_int(j, "restart", (int64_t)o->restart);
	json_bool(j, "tag", o->tag);
	json_bool(j, "timestamp", o->timestamp);
	json_int(j, "bind", (int64_t)o->bind);
	json_int(j, "on_closed_output", (int64_t)o->on_closed_output);
	json_bool(j, "verbose", o->verbose);
	json_bool(j, "quiet", o->quiet);
	put_path(j, "report", o->report);
	put_path(j, "profile", o->profile);
	put_path(j, "rules", o->rules);
	json_bool(j, "events", o->events);
	json_bool(j, "no_events", o->no_events);
	json_uint(j, "seed", o->seed);
	put_replicas(j, o);
	put_tasks(j, o);
	json_open_array(j, "monitors");
	for (size_t i = 0; i < o->monitor_count; i++)
		json_string(j, NULL, o->monitors[i]);
	json_close_array(j);
	put_list(j, "argv", o->program);
	put_text(j, "library_path", getenv("LD_LIBRARY_PATH"));
	json_close_object(j);
}

static void put_nodes(struct json_out *j, const struct head *h)
{
	const struct node_set *c = &h->node_set;

	json_open_array(j, "nodes");
	for (uint32_t k = 0; k < c->count; k++) {
		const struct node *n = &c->nodes[k];

		json_open_object(j, NULL);
		json_string(j, "name", n->name);
		json_string(j, "host", n->host);
		json_int(j, "state",
			 (int64_t)(n->state == NODE_STARTING && n->spare ? NODE_SPARE : n->state));
		json_bool(j, "unusable", n->unusable);
		json_bool(j, "wrong", n->wrong);
		if (n->leave.wanted[0])
			json_string(j, "wanted", n->leave.wanted);
		json_uint(j, "slots", n->slots);
		json_uint(j, "cores", n->cores);
		json_close_object(j);
	}
	json_close_array(j);
	json_open_array(j, "node_of");
	for (uint32_t r = 0; c->placement.node_of && r < h->nranks; r++)
		json_uint(j, NULL, c->placement.node_of[r]);
	json_close_array(j);
	json_uint(j, "placed_nodes", c->placement.nodes);
	json_bool(j, "slurm", h->hosts.slurm);
	json_bool(j, "local", h->hosts.count == 0);
}

static void put_input(struct json_out *j, const struct head *h)
{
	const struct stdin_spool *f = &h->node_set.stdin_spool;
	char link[64], path[PATH_MAX];
	ssize_t n;

	json_uint(j, "input_begin", f->spool_begin);
	if (!f->is_file)
		return;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", f->spool);
	n = readlink(link, path, sizeof(path) - 1);
	path[n > 0 ? n : 0] = '\0';
	json_string(j, "input_path", path);
	json_uint(j, "input_start", f->file_start);
}

/* Those that were killed to be started again are not among them. */
static void put_ended(struct json_out *j, const struct head *h)
{
	job_state_t state = takeover_state(h);
	bool known = (state == JOB_RUNNING || state == JOB_RESTORING) && !h->placing;

	json_open_array(j, "ended");
	for (uint32_t r = 0; known && r < h->nranks; r++) {
		if (!h->ranks[r].ended)
			continue;
		json_uint(j, NULL, r);
		json_int(j, NULL, h->ranks[r].exit_status);
	}
	json_close_array(j);
}

static void put_all(struct json_out *j, struct head *h)
{
	char place[128];

	succession_place(place);
	json_open_object(j, NULL);
	json_string(j, "hale", HALE_VERSION);
	json_uint(j, "epoch", h->succession.epoch);
	json_bool(j, "settled", takeover_settled(h));
	json_string(j, "job", h->id.job);
	json_string(j, "run", h->id.run);
	json_string(j, "place", place);
	json_string(j, "head_host", h->id.node);
	json_int(j, "head_pid", getpid());
	json_string(j, "agents", h->succession.tag);
	json_double(j, "began", head_record_real(h->began));
	json_double(j, "job_began", head_record_real(h->job_began));
	json_int(j, "state", (int64_t)takeover_state(h));
	json_bool(j, "exit_decided", h->end.decided);
	json_int(j, "exit_status", h->end.status);
	json_bool(j, "restarted", h->restarted);
	json_bool(j, "mpi_seen", h->mpi_seen);
	json_uint(j, "generation", h->node_set.laid_out ? h->node_set.generation : 0);
	json_uint(j, "last_generation", h->generation);
	json_uint(j, "target", h->recovery.target);
	json_string(j, "recovery_folder", h->recovery.folder);
	json_uint(j, "skip_above", h->recovery.skip.above);
	json_uint(j, "skip_to", h->recovery.skip.to);
	json_uint(j, "checkpoint", h->ckpt.last_id);
	json_uint(j, "last_id", h->ckpt.id);
	json_bool(j, "ckpt_asked_for", h->ckpt.timed.asked_for);
	json_string(j, "program", h->program->path);
	recover_program_put(h, j);
	json_bool(j, "environment_lost", h->recovery.environment_lost);
	json_bool(j, "elf", h->program->elf);
	json_string(j, "unprotected", h->program->unprotected);
	json_string(j, "runtime", h->program->runtime);
	json_uint(j, "preload_mpi", h->program->preload_mpi);
	json_open_object(j, "levels");
	levels_put(h, j);
	json_close_object(j);
	json_string(j, "task_due", h->faults.task_due);
	json_uint(j, "task_due_number", h->faults.task_due_number);
	json_int(j, "moving_from", h->moves.now ? (int64_t)h->moves.now->from : -1);
	json_bool(j, "cloning", h->moves.now && h->moves.now->cloned);
	migrate_put(h, j);
	put_options(j, h);
	put_nodes(j, h);
	put_input(j, h);
	put_ended(j, h);
	succession_replicas_put(h, j);
	json_open_array(j, "report");
	report_print_inherited(&h->report, j);
	json_close_array(j);
	json_close_object(j);
}

static void path_of(const struct head *h, const char *suffix, char path[PATH_MAX])
{
	snprintf(path, PATH_MAX, "%.*s/head.%u.json%s", STORE_FOLDER_MAX, h->files.store.job_folder,
		 h->succession.epoch, suffix);
}

/* A disk that gets full takes a part: only the next call says why. */
static bool write_whole(int fd, const char *text, size_t len)
{
	while (len > 0) {
		ssize_t n = write(fd, text, len);

		if (n <= 0 && errno != EINTR)
			return false;
		if (n > 0) {
			text += n;
			len -= (size_t)n;
		}
	}
	return true;
}

/* Beside its place first. */
static hale_status_t write_beside(struct head *h, char temporary[PATH_MAX], struct error *err)
{
	char suffix[32];
	struct json_out j;
	hale_status_t status = HALE_OK;
	int fd;

	snprintf(suffix, sizeof(suffix), ".%d.tmp", (int)getpid());
	path_of(h, suffix, temporary);
	json_out_init(&j);
	put_all(&j, h);
	fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0 || !j.text || !write_whole(fd, j.text, j.len))
		status =
		    error_sys(err, HALE_ERR_STORE,
			      "cannot write what another head would have to know, '%s'", temporary);
	if (fd >= 0 && close(fd) != 0 && status == HALE_OK) /* as network file systems say it */
		status = error_sys(err, HALE_ERR_STORE, "cannot write '%s'", temporary);
	if (status != HALE_OK)
		unlink(temporary);
	json_out_fini(&j);
	return status;
}

hale_status_t succession_claim(struct head *h, struct error *err)
{
	char temporary[PATH_MAX], path[PATH_MAX];
	hale_status_t status = write_beside(h, temporary, err);

	if (status != HALE_OK)
		return status;
	path_of(h, "", path);
	if (link(temporary, path) != 0)
		status = errno == EEXIST
			     ? error_set(err, HALE_ERR_STATE,
					 "another head is just taking over job %s", h->id.job)
			     : error_sys(err, HALE_ERR_STORE, "cannot make '%s'", path);
	unlink(temporary);
	return status;
}

void succession_save(struct head *h)
{
	char temporary[PATH_MAX], path[PATH_MAX];
	struct error err;

	if (!takeover_possible(h) || h->succession.epoch == 0 || h->succession.superseded)
		return;
	/* what the head before has left still holds */
	if (h->succession.takeover && h->state == JOB_STARTING)
		return;
	path_of(h, "", path);
	if (write_beside(h, temporary, &err) == HALE_OK) {
		if (rename(temporary, path) == 0)
			return;
		error_sys(&err, HALE_ERR_STORE, "cannot write '%s'", path);
	}
	if (!h->succession.save_failed)
		log_warn("%s; without it no other head can follow this one", err.text);
	h->succession.save_failed = true;
	unlink(temporary);
}

void succession_end(struct head *h)
{
	char path[PATH_MAX + 32];
	struct dirent *e;
	DIR *d;

	if (!takeover_possible(h) || h->succession.epoch == 0 || h->succession.superseded)
		return;
	/* one that was killed while it wrote has left a half of it, too */
	d = opendir(h->files.store.job_folder);
	while (d && (e = readdir(d)))
		if (strncmp(e->d_name, "head.", 5) == 0)
			unlinkat(dirfd(d), e->d_name, 0);
	if (d)
		closedir(d);
	snprintf(path, sizeof(path), "%.*s/stdin.spool", STORE_FOLDER_MAX,
		 h->files.store.job_folder);
	unlink(path);
}
