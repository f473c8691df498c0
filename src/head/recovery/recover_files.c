/* SPDX-License-Identifier: BSD-3-Clause */
/* Files that ranks have changed since a checkpoint. The ranks keep a journal of the changes
 * (journal/journal.h) in the job's folder. Between the end of the ranks and their next beginning a
 * child task of the head undoes these changes.
 *
 *   CLEARING ─ nobody is left ─▶ a child undoes them ─ SIGCHLD ─▶ recover_start goes on
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/base.h"
#include "head/head.h"
#include "head/head_private.h"
#include "journal/undo.h"

static const char name[] = "HALE_JOURNAL=";

/* As the ranks are to find it, before the folder of the job is there. False: its name is too long.
 */
static bool journal_path(const struct head *h, char *path, size_t cap)
{
	char cwd[PATH_MAX] = "";
	int n;

	if (h->files.is_open)
		n = snprintf(path, cap, "%s/journal", h->files.store.job_folder);
	else if (h->o->ckpt_dir[0] == '/')
		n = snprintf(path, cap, "%s/%s/journal", h->o->ckpt_dir, h->id.job);
	else if (getcwd(cwd, sizeof(cwd)))
		n = snprintf(path, cap, "%s/%s/%s/journal", cwd, h->o->ckpt_dir, h->id.job);
	else
		return false;
	return n > 0 && (size_t)n < cap;
}

char **recover_files_exports(struct head *h)
{
	struct recovery *v = &h->recovery;
	char path[STORE_FOLDER_MAX];
	size_t count = 0;

	if (h->o->leave_files)
		return h->o->exports;
	if (v->files.exports || !journal_path(h, path, sizeof(path)))
		return v->files.exports ? v->files.exports : h->o->exports;
	while (h->o->exports && h->o->exports[count])
		count++;
	v->files.exports = calloc(count + 2, sizeof(*v->files.exports));
	if (!v->files.exports)
		return h->o->exports;
	snprintf(v->files.journal_text, sizeof(v->files.journal_text), "%s%s", name, path);
	for (size_t i = 0; i < count; i++)
		v->files.exports[i] = h->o->exports[i];
	v->files.exports[count] = v->files.journal_text;
	return v->files.exports;
}

void recover_files_init(struct head *h)
{
	h->recovery.files.dir_there = SIZE_MAX; /* all of it, until it is looked at */
	child_task_init(&h->recovery.files.undo, "the process that sets files back was ended");
}

void recover_files_fini(struct head *h)
{
	struct recovery *v = &h->recovery;
	struct error err;

	child_task_wait(&v->files.undo, &err);
	child_task_fini(&v->files.undo);
}

/* Without checkpoints nobody goes back any more. */
static void remove_unused(const struct head *h)
{
	char path[PATH_MAX + 16];
	uint32_t *ids;
	size_t count = store_list(h->files.store.job_folder, &ids);

	free(ids);
	if (count > 0)
		return;
	journal_remove(h->files.store.job_folder);
	if (!h->recovery.files.journal_only)
		return;
	snprintf(path, sizeof(path), "%s/record.jsonl", h->files.store.job_folder);
	unlink(path);
	requeue_path(h->files.store.job_folder, path);
	unlink(path);
	rmdir(h->files.store.job_folder);
	store_unmake_folders(h->o->ckpt_dir, h->recovery.files.dir_there);
}

/* Are the checkpoints of this job, which has ended, of no use to anybody? */
static bool unwanted(const struct head *h)
{
	on_success_t wish = h->o->on_success;

	/* who names a checkpoint to go on from may want it again */
	if (h->end.status != 0 || h->end.stopping || (h->restarted && !h->o->requeue))
		return wish == SUCCESS_REMOVE && h->end.status == 0 && !h->end.stopping;
	return wish == SUCCESS_REMOVE ||
	       (wish == SUCCESS_DEFAULT && h->o->ckpt_auto && !h->ckpt.timed.asked_for);
}

static void remove_checkpoints(struct head *h)
{
	uint32_t *ids;
	size_t count = store_list(h->files.store.job_folder, &ids);

	for (size_t i = 0; i < count; i++)
		store_remove(&h->files.store, ids[i]);
	free(ids);
	store_finish(h->files.store.job_folder);
	h->recovery.files.journal_only = true;
}

void recover_files_end(struct head *h)
{
	free(h->recovery.files.exports);
	h->recovery.files.exports = NULL;
	if (h->files.is_open && !h->succession.superseded && !h->node_set.abandoned && unwanted(h))
		remove_checkpoints(h);
	if (h->files.is_open && !h->succession.superseded && !h->node_set.abandoned)
		remove_unused(h);
}

void recover_files_begin(struct head *h)
{
	struct error err;

	if (h->o->leave_files || (h->o->ckpt_every <= 0 && !h->restarted))
		return;
	h->recovery.files.journal_only = !h->files.is_open;
	if (head_open_store(h, &err) != HALE_OK ||
	    journal_make(h->files.store.job_folder, &err) != HALE_OK)
		head_say(h,
			 "what ranks change in files is not written down before the first "
			 "checkpoint: %s",
			 err.text);
}

/* ---- undoing ---- */

static bool nothing_to_undo(const struct head *h)
{
	const struct recovery *v = &h->recovery;
	const char *mine = h->files.store.job_folder;

	return (!h->files.is_open || journal_is_empty(mine, v->files.target)) &&
	       (!v->folder[0] || strcmp(v->folder, mine) == 0 ||
		journal_is_empty(v->folder, v->files.target));
}

static hale_status_t undo(void *head, struct error *err)
{
	const struct head *h = head;
	const struct recovery *v = &h->recovery;
	struct error later = {HALE_OK, ""};

	/* the newer one first: it begins where the other one ends */
	if (h->files.is_open)
		journal_undo(h->files.store.job_folder, v->files.target, &later);
	if (v->folder[0] && strcmp(v->folder, h->files.store.job_folder) != 0)
		journal_undo(v->folder, v->files.target, err);
	if (err->code == HALE_OK)
		*err = later;
	return err->code;
}

static void undone(struct head *h, const struct error *err)
{
	struct recovery *v = &h->recovery;
	char place[48] = "when the job began";

	v->files.undone = true;
	if (v->files.target)
		snprintf(place, sizeof(place), "at checkpoint %u", v->files.target);
	if (err->code != HALE_OK)
		head_say(h, "not all files are what they were %s: %s", place, err->text);
}

bool recover_files_wait(struct head *h)
{
	struct recovery *v = &h->recovery;
	struct error err = {HALE_OK, ""};

	if (h->o->leave_files)
		return false;
	if (child_task_busy(&v->files.undo))
		return true;
	if (v->files.undone && v->files.target == v->target)
		return false;
	v->files.target = v->target;
	if (nothing_to_undo(h)) { /* a child for nothing would cost some milliseconds */
		v->files.undone = true;
		return false;
	}
	if (child_task_begin(&v->files.undo, undo, h))
		return true;
	undo(h, &err);
	undone(h, &err);
	return false;
}

bool recover_files_child(struct head *h, pid_t pid)
{
	struct error err;

	if (!child_task_over(&h->recovery.files.undo, pid, &err))
		return false;
	undone(h, &err);
	/* an event of its own follows when the nodes have been cleared once more */
	bool cleared = h->state == JOB_CLEARING && !h->node_set.asks.clearing &&
		       !h->end.clearing.armed && node_set_alive(&h->node_set) == 0;
	if (cleared || (h->state == JOB_RUNNING && h->recovery.first))
		recover_start(h);
	return true;
}

/* ---- what is not kept ---- */

bool recover_files_drop(struct head *h)
{
	uint32_t *ids;
	size_t count = store_list(h->files.store.job_folder, &ids);
	bool any = count > 0 && journal_drop(h->files.store.job_folder, ids[0]);

	free(ids);
	return any;
}
