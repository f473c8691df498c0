/* SPDX-License-Identifier: BSD-3-Clause */
/* The second half of a checkpoint: progress, the limit of patience, the manifest. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "base/base.h"
#include "head/head.h"
#include "head/head_private.h"
#include "head/failover/succession.h"
#include "journal/undo.h"
#include "node/segment.h"
#include "head/watch/watch.h"

enum { IDLE_LOOKS = 4, LOOKS_A_LINE = 8, DISK_TIMES = 10 };

/* How long nothing may move before a checkpoint is given up. */
static double patience(void)
{
	const char *text = getenv("HALE_CKPT_TIMEOUT");
	double seconds;

	return text && units_parse_seconds(text, &seconds) && seconds > 0 ? seconds : 60;
}

/* ---- progress ---- */

/* On a terminal a line that is written over, otherwise (--verbose) lines. */
static void show_progress(struct head *h)
{
	struct checkpoint *c = &h->ckpt;
	char done[16], all[16];
	uint64_t expected = c->progress.bytes_expected > c->progress.bytes_seen
				? c->progress.bytes_expected
				: c->progress.bytes_seen;
	/* not over what is typed into the shell while the job runs in the background */
	bool terminal = isatty(STDERR_FILENO) && tcgetpgrp(STDERR_FILENO) == getpgrp();

	if (h->o->quiet ||
	    (!terminal && (!h->o->verbose || ++c->progress.looks % LOOKS_A_LINE != 0)))
		return;
	units_show_bytes(c->progress.bytes_seen, done);
	units_show_bytes(expected, all);
	if (!terminal) {
		log_info("checkpoint %u: %s of %s, %u/%u ranks", c->id, done, all, c->count.written,
			 c->count.writers);
		return;
	}
	c->progress.shown = true;
	dprintf(STDERR_FILENO, "\r\033[Khale: checkpoint %u: %s of %s, %u/%u ranks", c->id, done,
		all, c->count.written, c->count.writers);
}

void checkpoint_progress_clear(struct head *h)
{
	if (h->ckpt.progress.shown)
		dprintf(STDERR_FILENO, "\r\033[K");
	h->ckpt.progress.shown = false;
}

/* ---- patience ---- */

/* A rank that somebody has stopped: the others stand in the checkpoint until it goes on. */
static bool find_halted(const struct head *h, uint32_t *rank)
{
	for (*rank = 0; *rank < h->nranks; ++*rank)
		if (h->node_set.ranks[*rank].halted && !h->ckpt.ranks[*rank].resumed)
			return true;
	return false;
}

static void say_halted(struct head *h)
{
	struct checkpoint *c = &h->ckpt;
	char name[HEAD_NAME];
	uint32_t rank;

	if (c->progress.halted_said || c->phase != CKPT_CAPTURING || !find_halted(h, &rank))
		return;
	c->progress.halted_said = true;
	head_say(h,
		 "checkpoint %u waits for %s, which is stopped (SIGSTOP or a debugger); `kill "
		 "-CONT "
		 "%d` on node %s lets it go on",
		 c->id, head_name(h, rank, name), (int)h->node_set.ranks[rank].member,
		 node_set_node_of(&h->node_set, rank)->name);
}

static void give_up(struct head *h)
{
	struct checkpoint *c = &h->ckpt;
	char why[320], list[128] = "", cause[128] = "", name[HEAD_NAME];
	size_t len = 0;
	uint32_t waits = 0, silent;

	for (uint32_t r = 0; r < h->nranks; r++) {
		const struct checkpoint_rank *k = &c->ranks[r];
		bool waiting = k->asked && (c->phase == CKPT_CAPTURING ? !k->resumed : !k->written);

		if (waiting && waits++ < 8)
			len += (size_t)snprintf(list + len, sizeof(list) - len, "%s%u",
						len ? ", " : "", living_rank_of(r, h->view.nranks));
	}
	/* the others wait for it, mostly */
	if (c->phase == CKPT_CAPTURING && find_halted(h, &silent))
		snprintf(cause, sizeof(cause), "; %s is stopped (SIGSTOP or a debugger)",
			 head_name(h, silent, name));
	else if (c->phase == CKPT_CAPTURING && waits > 1 &&
		 node_set_checkpoint_silent(&h->node_set, &silent))
		snprintf(cause, sizeof(cause), "; %s has not even begun to",
			 head_name(h, silent, name));
	bool disk = c->phase != CKPT_CAPTURING && c->progress.disk_said;
	snprintf(why, sizeof(why), "rank%s %s%s %s within %.0f s%s", waits > 1 ? "s" : "", list,
		 waits > 8 ? ", …" : "",
		 c->phase == CKPT_CAPTURING ? "did not stop for it" : "wrote nothing more of it",
		 disk ? clock_seconds() - c->progress.moved_at : patience(), cause);
	head_say(h, "checkpoint %u was given up, the job goes on: %s", c->id, why);
	checkpoint_unprotected(h, why);
	checkpoint_abandon(h, why);
}

/* Nothing moves while a disk takes in what it was given, which may be much: whoever waits for one
 * has more time. */
static bool takes_too_long(struct head *h, double now, bool disk)
{
	struct checkpoint *c = &h->ckpt;
	double limit = patience(), still = now - c->progress.moved_at;

	if (disk)
		c->progress.disk_at = now;
	if (c->phase == CKPT_CAPTURING)
		return now - c->phase_began > limit;
	if (still <= limit || now - c->progress.disk_at > limit)
		return still > limit;
	if (!c->progress.disk_said)
		head_say(h,
			 "checkpoint %u waits for the disk: nothing more of it was written within "
			 "%.0f s, and it is given up after %.0f",
			 c->id, limit, DISK_TIMES * limit);
	c->progress.disk_said = true;
	return still > DISK_TIMES * limit;
}

void checkpoint_watch(void *arg)
{
	struct head *h = arg;
	struct checkpoint *c = &h->ckpt;
	bool idle, disk;
	uint64_t bytes = node_set_checkpoint_bytes(&h->node_set, &idle, &disk);
	double now = clock_seconds();

	if (bytes != c->progress.bytes_seen)
		c->progress.moved_at = now;
	c->progress.bytes_seen = bytes;
	if (takes_too_long(h, now, disk)) {
		give_up(h);
		return;
	}
	c->progress.idle_looks = idle ? c->progress.idle_looks + 1 : 0;
	if (c->progress.idle_looks == IDLE_LOOKS) {
		head_say(h,
			 "checkpoint %u was given up, the job goes on: somebody has ended the "
			 "process that wrote an image",
			 c->id);
		checkpoint_abandon(h, "a process that wrote an image was ended");
		return;
	}
	say_halted(h);
	show_progress(h);
	loop_timer_set(&h->loop, &c->watch, 0.5, checkpoint_watch, h);
	checkpoint_complete_if_whole(h);
}

/* ---- the manifest ---- */

static void describe_stdin(const struct head *h, struct store_manifest *m)
{
	const struct stdin_spool *f = &h->node_set.stdin_spool;
	char link[64];
	ssize_t n;

	if (!f->is_file)
		return;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", f->spool);
	n = readlink(link, m->stdin_path, sizeof(m->stdin_path) - 1);
	m->stdin_path[n > 0 ? n : 0] = '\0';
	m->stdin_start = f->file_start;
}

static void sum_up(const struct head *h, struct store_manifest *m)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	m->written_at = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
	m->job_seconds = h->ckpt.began - h->job_began;
	m->seconds = clock_seconds() - h->ckpt.began;
	for (uint32_t r = 0; r < h->nranks; r++) {
		const struct store_part *p = &h->ckpt.ranks[r].part;
		if (p->file[0] || h->degree == 1)
			m->parts[r] = *p;
		m->bytes += p->bytes;
		if (p->pause_seconds > m->pause_seconds)
			m->pause_seconds = p->pause_seconds;
	}
}

static void fill_manifest(struct head *h, struct store_manifest *m)
{
	const struct options *o = h->o;
	const char *library_path = getenv("LD_LIBRARY_PATH");

	memset(m, 0, sizeof(*m));
	snprintf(m->job, sizeof(m->job), "%s", h->id.job);
	snprintf(m->run, sizeof(m->run), "%s", h->id.run);
	m->id = h->ckpt.id;
	m->base = h->ckpt.base;
	m->nranks = h->nranks;
	m->degree = h->degree;
	m->compares = !o->sdc ? 0 : o->on_sdc == ON_SDC_ROLLBACK ? 2 : 1;
	m->audit = o->audit;
	m->audit_rolls = o->on_sdc == ON_SDC_ROLLBACK;
	m->shadows = (uint32_t)h->o->shadows;
	m->segment = SEGMENT_VERSION;
	m->mpi = !o->no_mpi;
	m->preload_mpi = h->program->preload_mpi;
	snprintf(m->program, sizeof(m->program), "%s", h->program->path);
	/* borrowed for the time of writing */
	m->argv = o->program;
	m->library_path = (char *)(uintptr_t)library_path;
	if (!realpath(o->wdir ? o->wdir : ".", m->cwd))
		snprintf(m->cwd, sizeof(m->cwd), "/");
	describe_stdin(h, m);
	m->ckpt_every = o->ckpt_every;
	m->ckpt_first = o->ckpt_auto ? o->ckpt_first : 0;
	m->overhead = o->overhead;
	m->mtbf = o->mtbf;
	m->keep = o->keep;
	m->max_restarts = o->max_restarts;
	m->incremental = o->incremental;
	m->tag = o->tag;
	m->net_encrypt = o->net_encrypt;
	m->compress = (int)o->compress;
}

static hale_status_t make_manifest(struct head *h, struct store_manifest *m, struct error *err)
{
	fill_manifest(h, m);
	m->parts = calloc(h->nranks, sizeof(*m->parts));
	if (!m->parts)
		return error_set(err, HALE_ERR_MEMORY, "out of memory for the manifest");
	sum_up(h, m);
	return levels_fill(h, m, err);
}

/* By a child of the head. */
static hale_status_t write_manifest(void *head, struct error *err)
{
	struct head *h = head;
	struct store_manifest *m = &h->ckpt.manifest;
	char path[PATH_MAX + 16];
	hale_status_t status;

	snprintf(path, sizeof(path), "%s/stdin-rest", h->ckpt.folder);
	status = stdin_spool_save_rest(&h->node_set.stdin_spool, m->parts[0].position[0], path,
				       &m->stdin_rest, err);
	return status == HALE_OK ? store_commit(&h->files.store, m, err) : status;
}

/* ---- what is not kept ---- */

static hale_status_t sweep(void *head, struct error *err)
{
	const struct head *h = head;

	(void)err;
	store_sweep(h->files.store.job_folder);
	journal_sweep(h->files.store.job_folder);
	return HALE_OK;
}

/* A file system may take seconds to free the images of many ranks, or while it is busy with what
 * others write: a child waits for that, and the next checkpoint for the child. */
void checkpoint_sweep(struct head *h)
{
	struct checkpoint *c = &h->ckpt;

	c->unswept = child_task_busy(&c->sweep);
	if (!c->unswept && !child_task_begin(&c->sweep, sweep, h))
		sweep(h, NULL);
}

void checkpoint_prune(struct head *h)
{
	bool pruned = false;

	if (!h->files.is_open)
		return;
	if (h->levels.on)
		levels_prune(h);
	else
		pruned = store_prune(&h->files.store, (size_t)h->o->keep);
	if (head_drop_files(h) || pruned)
		checkpoint_sweep(h);
}

static bool swept(struct head *h, pid_t pid)
{
	struct error err;

	if (!child_task_over(&h->ckpt.sweep, pid, &err))
		return false;
	if (h->ckpt.unswept)
		checkpoint_sweep(h);
	checkpoint_poll(h);
	return true;
}

void checkpoint_sweep_end(struct head *h)
{
	struct error err;

	if (child_task_wait(&h->ckpt.sweep, &err) && h->ckpt.unswept && !h->succession.superseded)
		sweep(h, NULL);
}

/* ---- complete ---- */

/* What no checkpoint that is left can go back behind is not needed any more. */
static void forget_streams(struct head *h)
{
	struct store_manifest m;
	char path[PATH_MAX];
	uint32_t *ids;
	size_t count = store_list(h->files.store.job_folder, &ids);

	if (count > 0) {
		store_path(h->files.store.job_folder, ids[0], path);
		if (store_manifest_read(path, &m, NULL) == HALE_OK && m.nranks == h->nranks) {
			for (uint32_t r = 0; r < h->nranks; r++)
				for (int i = 0; i < 2; i++)
					history_forget(node_set_history(&h->node_set, r, i),
						       m.parts[r].position[i + 1]);
			stdin_spool_forget(&h->node_set.stdin_spool, m.parts[0].position[0]);
		}
		store_manifest_fini(&m);
	}
	free(ids);
}

static void announce(struct head *h, const struct store_manifest *m)
{
	struct report_checkpoint c = {.id = m->id,
				      .base = m->base,
				      .bytes = m->bytes,
				      .pause_seconds = m->pause_seconds,
				      .seconds = m->seconds,
				      .at_seconds = m->job_seconds,
				      .level = h->levels.on ? 1 : 4,
				      .complete = true};
	char path[PATH_MAX], bytes[16], took[16], pause[16];
	struct json_out j;

	c.lz4 = h->ckpt.compress == IMAGE_LZ4;
	c.compressed = h->ckpt.compress != IMAGE_PLAIN;
	report_add_checkpoint(&h->report, &c);
	head_profile_of_checkpoint(h, report_newest_checkpoint(&h->report));
	record_begin(&j, "checkpoint");
	json_uint(&j, "id", m->id);
	json_uint(&j, "base", m->base);
	json_uint(&j, "bytes", m->bytes);
	json_double(&j, "pause_seconds", m->pause_seconds);
	json_double(&j, "seconds", m->seconds);
	record_end(&h->files.record, &j);
	log_info("checkpoint %u is complete: %s in %s, the program stood still for %s", m->id,
		 units_show_bytes(m->bytes, bytes), units_show_seconds(m->seconds, took),
		 units_show_seconds(m->pause_seconds, pause));
	store_path(h->files.store.job_folder, m->id, path);
	watch_checkpoint_done(h, m, path);
	head_save(h);
	if (!levels_answer(h))
		head_checkpoint_over(h, path, NULL);
}

static void committed(struct head *h, const struct error *err)
{
	struct checkpoint *c = &h->ckpt;
	struct store_manifest *m = &c->manifest;

	if (head_superseded(h))
		return;
	if (err->code == HALE_OK) {
		c->phase = CKPT_IDLE;
		node_set_checkpoint_over(&h->node_set);
		head_profile_turn(h);
		c->last_id = c->id;
		c->chain.length = c->base ? c->chain.length + 1 : 0;
		c->chain.broken = false;
		c->tracked = c->tracks;
		c->last_refusal[0] = '\0';
		checkpoint_protected(h);
		checkpoint_interval_again(h);
		for (uint32_t r = 0; r < h->nranks; r++)
			h->ranks[r].last_signal = 0;
		announce(h, m);
		if (h->levels.on)
			levels_written(h, m->id, c->shared,
				       c->origin == ORIGIN_USER && c->shared && !c->wanted);
		checkpoint_prune(h);
		forget_streams(h);
		head_save(h);
		head_checkpoint_saved(h);
		warm_refresh(h);
	} else {
		head_say(h, "checkpoint %u failed, the job goes on: %s", c->id, err->text);
		checkpoint_unprotected(h, err->text);
		checkpoint_abandon(h, err->text);
	}
	levels_unfill(m);
	free(m->parts);
	m->parts = NULL;
}

/* A child process writes and syncs the manifest. A slow disk could block the head for longer than a
 * lease, and all nodes would lose theirs. */
void checkpoint_complete(struct head *h)
{
	struct checkpoint *c = &h->ckpt;
	struct error err = {HALE_OK, ""};

	if (head_superseded(h))
		return;
	checkpoint_progress_clear(h);
	loop_timer_clear(&h->loop, &c->watch);
	c->phase = CKPT_COMMITTING;
	err.code = make_manifest(h, &c->manifest, &err);
	if (err.code == HALE_OK && child_task_begin(&c->commit, write_manifest, h))
		return;
	if (err.code == HALE_OK)
		err.code = write_manifest(h, &err);
	committed(h, &err);
}

bool checkpoint_child(struct head *h, pid_t pid)
{
	struct error err;

	if (swept(h, pid))
		return true;
	if (!child_task_over(&h->ckpt.commit, pid, &err))
		return false;
	committed(h, &err);
	head_settled(h);
	checkpoint_poll(h);
	return true;
}

void checkpoint_settle(struct head *h)
{
	struct error err;

	if (!child_task_wait(&h->ckpt.commit, &err))
		return;
	committed(h, &err);
	head_settled_soon(h);
}
