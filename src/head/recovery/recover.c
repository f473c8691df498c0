/* SPDX-License-Identifier: BSD-3-Clause */
/* A rollback: which checkpoint is whole, and the processes that become its images. All ranks are
 * gone when it begins. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/base.h"
#include "image/image.h"
#include "head/head.h"
#include "head/head_private.h"
#include "head/failover/succession.h"
#include "head/watch/watch.h"

void recover_fini(struct head *h)
{
	loop_timer_clear(&h->loop, &h->recovery.deadline);
	recover_check_stop(h);
	recover_files_fini(h);
	store_manifest_fini(&h->recovery.manifest);
	free(h->recovery.sums);
	h->recovery.sums = NULL;
}

/* Once this job has a folder of its own with something in it, that is where it goes back to. */
static const char *folder(const struct head *h)
{
	return h->files.is_open ? h->files.store.job_folder : h->recovery.folder;
}

/* As far as is known without looking at the images. */
static bool within_reach(struct head *h, uint32_t id)
{
	const struct store_manifest *m = h->start->manifest;

	if (!h->levels.on && !h->succession.takeover && !(m && m->holder_count > 0))
		return true;
	return levels_available(h, recover_folder_of(h, id), id, NULL) != HALE_ERR_NODE;
}

static bool reachable(void *arg, uint32_t id)
{
	return within_reach(arg, id);
}

uint32_t recover_newest(struct head *h)
{
	const struct recovery *v = &h->recovery;
	uint32_t *ids, newest;
	size_t count = folder(h)[0] ? store_list(folder(h), &ids) : 0;

	if (count == 0 && h->restarted && v->folder[0]) /* nothing of its own yet */
		count = store_list(v->folder, &ids);
	else if (count == 0)
		return 0;
	newest = recovery_newest(ids, count, &v->skip, reachable, h);
	free(ids);
	return newest;
}

/* Newer ones, that are whole no more since nodes are gone. */
static void say_out_of_reach(struct head *h, uint32_t newest)
{
	const struct recovery *v = &h->recovery;
	struct error err;
	uint32_t *ids;
	size_t count = folder(h)[0] ? store_list(folder(h), &ids) : 0;

	if (count == 0)
		return;
	for (size_t i = count; i-- > 0 && ids[i] > newest;) {
		if (recovery_skips(&v->skip, ids[i]))
			continue;
		if (levels_available(h, folder(h), ids[i], &err) == HALE_ERR_NODE)
			head_say(h, "checkpoint %u is passed over: %s", ids[i], err.text);
	}
	free(ids);
}

const char *recover_folder_of(struct head *h, uint32_t id)
{
	char path[PATH_MAX];

	store_path(folder(h), id, path);
	return access(path, F_OK) == 0 ? folder(h) : h->recovery.folder;
}

bool recover_has_beginning(const struct head *h)
{
	bool wanted = h->o->ckpt_every > 0 || h->o->on_sdc == ON_SDC_ROLLBACK;

	return !h->restarted && wanted && h->node_set.stdin_spool.spool_begin == 0;
}

bool recover_possible(const struct head *h)
{
	return recover_newest((struct head *)(uintptr_t)h) != 0 || recover_has_beginning(h);
}

/* ---- looking at a checkpoint ---- */

hale_status_t recover_check_whose(const struct head *h, const char *job_folder,
				  const struct store_manifest *m, struct error *err)
{
	bool own = h->files.is_open && strcmp(job_folder, h->files.store.job_folder) == 0;

	if (m->nranks != h->nranks || m->degree != h->degree)
		return error_set(err, HALE_ERR_IMAGE_MISMATCH, "it is of a job of %u ranks",
				 m->nranks / m->degree);
	if (strcmp(m->run, h->id.run) != 0 || (own && strcmp(m->job, h->id.job) != 0))
		return error_set(err, HALE_ERR_IMAGE_MISMATCH,
				 "it is of another job of yours, '%s': somebody has put that one's "
				 "folder in place of this one's",
				 m->job);
	return HALE_OK;
}

/* One link of the chain: every rank's part is there and has its length. More is not looked at: a
 * full restart checks every checksum as it reads, and fails before the process runs, so nothing
 * has to be read twice. */
static hale_status_t check_link(struct head *h, const char *job_folder, size_t link,
				struct error *err)
{
	struct recovery *v = &h->recovery;
	struct store_manifest m;
	char path[PATH_MAX];
	hale_status_t status;

	store_path(job_folder, v->chain[link], path);
	status = store_manifest_read(path, &m, err);
	if (status == HALE_OK)
		status = recover_check_whose(h, job_folder, &m, err);
	for (uint32_t r = 0; status == HALE_OK && r < h->nranks; r++) {
		status = store_verify_part(path, &m, r, false, err);
		v->sums[link * h->nranks + r] = m.parts[r].checksum;
	}
	store_manifest_fini(&m);
	return status;
}

static hale_status_t read_target(struct head *h, struct error *err)
{
	struct recovery *v = &h->recovery;
	const char *job_folder = recover_folder_of(h, v->target);
	char path[PATH_MAX];
	hale_status_t status;

	store_manifest_fini(&v->manifest);
	free(v->sums);
	v->sums = calloc(STORE_CHAIN_MAX, h->nranks * sizeof(*v->sums));
	if (!v->sums)
		return error_set(err, HALE_ERR_MEMORY, "out of memory");
	status = store_chain(job_folder, v->target, v->chain, &v->chain_count, err);
	for (size_t i = 0; status == HALE_OK && i < v->chain_count; i++)
		status = check_link(h, job_folder, i, err);
	if (status != HALE_OK)
		return status;
	store_path(job_folder, v->target, path);
	return store_manifest_read(path, &v->manifest, err);
}

static void give_up(struct head *h)
{
	head_say(h, "no checkpoint is left that could be restored; the job ends");
	head_end(h, EXIT_UNRECOVERED);
}

/* Before files go back to what they were then. */
static void refuse_beginning(struct head *h)
{
	head_say(h,
		 "the job ends: '%s' is another program than the one that it began with, so it "
		 "can't start again from its beginning; with the old one in its place a "
		 "checkpoint of it can be restored",
		 h->program->path);
	head_end(h, EXIT_UNRECOVERED);
}

/* Of heads only the first one knows it, and hands it to agents. */
static void miss_environment(struct head *h)
{
	head_say(h, "the job ends: its head and all that its node had have been lost, and with them "
		    "the environment (-x, and that of hale run) that it began with, so it can't "
		    "start again from its beginning");
	head_end(h, EXIT_UNRECOVERED);
}

void recover_refuse(struct head *h, const char *fmt, ...)
{
	struct recovery *v = &h->recovery;
	va_list args;

	va_start(args, fmt);
	vsnprintf(v->refused, sizeof(v->refused), fmt, args);
	va_end(args);
	head_say(h, "checkpoint %u is refused: %s", v->target, v->refused);
}

/* One that was given up was never there. */
static bool had_checkpoint(const struct report *r)
{
	for (size_t i = 0; i < r->checkpoint_count; i++)
		if (r->checkpoints[i].complete)
			return true;
	return r->checkpoints_before > 0;
}

/* Work is lost although there were checkpoints: that is told, and why. */
static void say_beginning(struct head *h)
{
	const struct recovery *v = &h->recovery;
	char lost[16];

	if (v->refused[0])
		head_say(
		    h,
		    "the job starts again from its beginning (%s lost), since no checkpoint of "
		    "it can be restored; the last one that was tried is refused: %s",
		    units_show_seconds(head_seconds(h), lost), v->refused);
	else if (had_checkpoint(&h->report))
		head_say(h,
			 "the job starts again from its beginning (%s lost), since its checkpoints "
			 "are not in %s any more, or not within reach",
			 units_show_seconds(head_seconds(h), lost), folder(h));
}

void recover_reject(struct head *h)
{
	struct store s = {.sync = false};

	if (h->recovery.target == 0 || head_superseded(h))
		return;
	snprintf(s.job_folder, sizeof(s.job_folder), "%s",
		 recover_folder_of(h, h->recovery.target));
	store_reject(&s, h->recovery.target);
	h->recovery.target = 0;
}

void recover_pass_over(struct head *h)
{
	struct recovery *v = &h->recovery;

	if (v->target == 0)
		return;
	v->skip = recovery_skip_more(&v->skip, v->target);
	v->target = 0;
}

/* ---- becoming it ---- */

static void image_path(struct head *h, uint32_t rank, size_t link, char *path, size_t cap)
{
	const struct recovery *v = &h->recovery;

	snprintf(path, cap, "%s/%u/%s", recover_folder_of(h, v->target), v->chain[link],
		 v->manifest.parts[rank].file);
}

/* What a process gets as HALE_SINK to become a rank (ckpt/preload.c): "full:" or "lazy:", then
 * PATH=CHECKSUM of each image from the newest to the oldest, with ':' between. The caller frees it;
 * NULL: no memory. program[PATH_MAX] gets the program that was captured: for a script, or a rank
 * started by a shell, not the one that hale was told to start. The chain ends early for a rank
 * whose image became a full one although a difference was asked for. */
static char *shared_spec(struct head *h, uint32_t rank, struct image_info *info, char *program)
{
	const struct recovery *v = &h->recovery;
	char path[PATH_MAX + STORE_NAME_MAX + 16];
	char *spec = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&spec, &len);

	if (!f)
		return NULL;
	fputs(h->o->restart == IMAGE_LAZY ? "lazy" : "full", f);
	snprintf(program, PATH_MAX, "%s", h->program->path);
	for (size_t i = 0; i < v->chain_count; i++) {
		image_path(h, rank, i, path, sizeof(path));
		fprintf(f, ":%s=%016" PRIx64, path, v->sums[i * h->nranks + rank]);
		if (image_read_info(path, info, NULL) != HALE_OK ||
		    info->checksum != v->sums[i * h->nranks + rank])
			continue; /* which the process that is to become it refuses, too */
		if (i == 0 && info->program[0] == '/')
			snprintf(program, PATH_MAX, "%s", info->program);
		if (info->identity.base == 0)
			break;
	}
	fclose(f);
	return spec;
}

static hale_status_t spawn_sink(struct head *h, uint32_t rank, struct image_info *info,
				struct error *err)
{
	char program[PATH_MAX];
	char *spec = levels_sink_spec(h, rank, program, sizeof(program));

	if (!spec)
		spec = shared_spec(h, rank, info, program);

	if (!spec)
		return error_set(err, HALE_ERR_MEMORY, "out of memory");
	node_set_spawn(&h->node_set, rank, program, spec,
		       h->recovery.manifest.parts[rank].position);
	free(spec);
	return HALE_OK;
}

static hale_status_t spawn_all(struct head *h, struct error *err)
{
	struct image_info *info = malloc(sizeof(*info));
	hale_status_t status = HALE_OK;

	if (!info)
		return error_set(err, HALE_ERR_MEMORY, "out of memory");
	for (uint32_t r = 0; status == HALE_OK && r < h->nranks; r++)
		if (h->recovery.manifest.parts[r].file[0])
			status = spawn_sink(h, r, info, err);
	free(info);
	return status;
}

/* Who is where, before anybody is. */
static hale_status_t lay_out(struct head *h, struct error *err)
{
	hale_status_t status;

	recover_replicas(h);
	status = leave_layout(h, err);
	if (status != HALE_OK)
		return status;
	recover_replicas_placed(h);
	inject_arm_mailboxes(h);
	for (uint32_t r = 0; r < h->nranks; r++) {
		const struct store_part *p = &h->recovery.manifest.parts[r];

		head_rank_reset(h, r, p->file[0] ? -1 : p->exit_status);
	}
	h->placing = false;
	head_save(h);
	return HALE_OK;
}

/* Time enough to read the images from a slow disk. */
static double restore_seconds(const struct head *h)
{
	const char *text = getenv("HALE_RESTART_TIMEOUT");
	double seconds;

	if (text && units_parse_seconds(text, &seconds) && seconds > 0)
		return seconds;
	return 60 + (double)h->recovery.manifest.bytes / 20e6;
}

static void restore_late(void *arg)
{
	head_event(arg, JOB_TIMEOUT, 0);
}

void recover_say_how(struct head *h)
{
	uint32_t newest = recover_newest(h);

	if (newest)
		head_say(h,
			 "`hale restart %s` goes on from its last checkpoint, with --hosts FILE "
			 "elsewhere",
			 recover_folder_of(h, newest));
}

static void cannot_restore(struct head *h, const struct error *err)
{
	head_say(h, "checkpoint %u can't be restored: %s", h->recovery.target, err->text);
	recover_say_how(h);
	head_end(h, EXIT_UNRECOVERED);
}

void recover_fetched(struct head *h)
{
	struct error err;
	hale_status_t status = spawn_all(h, &err);

	levels_fetch_stop(h);
	if (status != HALE_OK) {
		cannot_restore(h, &err);
		return;
	}
	loop_timer_set(&h->loop, &h->recovery.deadline, restore_seconds(h), restore_late, h);
	inject_at_restart(h, h->report.restarts);
}

void recover_restore(struct head *h)
{
	struct error err;
	hale_status_t status = lay_out(h, &err);

	if (status == HALE_OK && levels_fetch_needed(h))
		status = levels_fetch(h, &err);
	else if (status == HALE_OK)
		recover_fetched(h);
	if (status != HALE_OK)
		cannot_restore(h, &err);
}

void recover_launch(struct head *h)
{
	struct error err;

	if (head_launch_all(h, &err) != HALE_OK) {
		head_say(h, "the job can't be started again: %s", err.text);
		head_end(h, EXIT_UNRECOVERED);
		return;
	}
	watch_rollback_done(h);
	checkpoint_interval_start(h);
	warm_again(h);
	inject_at_restart(h, h->report.restarts);
}

/* Where rank 0's input goes on in a hale that has not read any of it. */
static void continue_stdin(struct head *h)
{
	const struct store_manifest *m = &h->recovery.manifest;
	char path[PATH_MAX + 32];

	if (m->stdin_path[0]) {
		stdin_spool_continue_file(&h->node_set.stdin_spool, m->stdin_path, m->stdin_start);
		return;
	}
	snprintf(path, sizeof(path), "%s/%u/stdin-rest", h->recovery.folder, m->id);
	stdin_spool_continue_rest(&h->node_set.stdin_spool, path, m->parts[0].position[0]);
}

static void restart(struct head *h)
{
	struct recovery *v = &h->recovery;

	if (v->first)
		continue_stdin(h);
	else if (!v->moving)
		h->report.restarts++;
	v->anew = !v->first && !v->target;
	v->first = v->files.undone = false;
	if (v->target)
		v->refused[0] = 0;
	v->began = clock_seconds();
	h->ckpt.last_id = v->target;
	h->ckpt.chain.broken = true;
	/* an interval that ended meanwhile begins anew */
	if (h->ckpt.origin == ORIGIN_TIMER)
		h->ckpt.wanted = false;
	head_step(h, v->target ? JOB_CHECKPOINT_FOUND : JOB_BEGINNING_FOUND, 0);
}

/* Where all nodes are this machine, and all are lost, nothing of it is but their agents. */
static bool have_node(struct head *h)
{
	struct error err;

	if (node_set_usable(&h->node_set) || !node_set_renewable(&h->node_set))
		return true; /* or the layout says what is wrong */
	if (node_set_renew(&h->node_set, &err) == HALE_OK) {
		h->recovery.environment_lost |= h->succession.takeover != NULL;
		watch_nodes(h);
		return true;
	}
	head_say(h, "no agent can be started in place of the one that is lost: %s", err.text);
	recover_say_how(h);
	head_end(h, EXIT_UNRECOVERED);
	return false;
}

void recover_start(struct head *h)
{
	struct recovery *v = &h->recovery;
	struct error err;

	if (head_superseded(h) || child_task_busy(&v->files.undo) || !have_node(h))
		return;
	if (h->levels.on)
		say_out_of_reach(h, recover_newest(h));
	while ((v->target = recover_newest(h)) != 0) {
		if (read_target(h, &err) == HALE_OK)
			break;
		recover_refuse(h, "%s", err.text);
		/* what is not ours keeps its name */
		if (err.code == HALE_ERR_IMAGE_MISMATCH)
			recover_pass_over(h);
		else
			recover_reject(h);
	}
	if (v->target == 0 && !recover_has_beginning(h))
		give_up(h);
	else if (v->target == 0 && recover_program_changed(h))
		refuse_beginning(h);
	else if (v->target == 0 && v->environment_lost)
		miss_environment(h);
	else if (!recover_files_wait(h)) {
		if (v->target == 0)
			say_beginning(h);
		restart(h);
	}
}

/* ---- hale restart ---- */

hale_status_t recover_begin(struct head *h, const struct store_manifest *m, const char *job_folder,
			    struct error *err)
{
	struct recovery *v = &h->recovery;
	uint32_t *ids;
	size_t count;

	snprintf(v->folder, sizeof(v->folder), "%s", job_folder);
	count = store_list(job_folder, &ids);
	v->skip = (struct recovery_skip){.above = m->id, .to = count > 0 ? ids[count - 1] : m->id};
	free(ids);
	v->first = true;
	h->job_began = h->began - m->job_seconds;
	h->ckpt.id = v->skip.to;
	recover_start(h);
	return HALE_OK;
}
