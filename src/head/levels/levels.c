/* SPDX-License-Identifier: BSD-3-Clause */
/* What becomes of a checkpoint when all of its images are on their own nodes' disks:
 *
 *   L1 ── every image is acknowledged by a partner ──▶ L2
 *   └──── every image is in the shared folder, if it is one that goes there ──▶ L4
 *
 * The manifest in the shared folder says where images lie; it is written anew when that changes,
 * after the deed. One checkpoint is copied at a time. */
#include "head/levels/levels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "head/nodes/node_set_private.h"
#include "head/head.h"
#include "head/head_private.h"
#include "head/failover/succession.h"
#include "policy/levels.h"
#include "policy/partner.h"

void levels_init(struct head *h)
{
	h->levels.on = h->o->ckpt_local != NULL;
	child_task_init(&h->levels.rewrite, "the process that writes its manifest was ended");
}

static void forget(struct levels *l)
{
	store_manifest_fini(&l->manifest);
	free(l->parts);
	l->parts = NULL;
	l->id = l->outstanding = 0;
}

void levels_fini(struct head *h)
{
	head_fetch_stop(h);
	forget(&h->levels);
	levels_held_forget(h);
	child_task_fini(&h->levels.rewrite);
}

struct node *levels_node(struct head *h, const char *name)
{
	for (uint32_t k = 0; k < h->node_set.count; k++)
		if (strcmp(h->node_set.nodes[k].name, name) == 0)
			return &h->node_set.nodes[k];
	return NULL;
}

/* ---- partners ---- */

/* NULL: there is none. */
static struct node *partner_of(struct head *h, const struct node *n)
{
	struct node_set *c = &h->node_set;
	struct partner_node *nodes = calloc(c->count, sizeof(*nodes));
	uint32_t k = PARTNER_NONE;

	for (uint32_t i = 0; nodes && i < c->count; i++)
		nodes[i] = (struct partner_node){.name = c->nodes[i].name,
						 .host = c->nodes[i].host,
						 .local = c->nodes[i].local,
						 .usable = node_usable(&c->nodes[i]),
						 .keeps = c->nodes[i].copies.at[0] != 0};
	if (nodes)
		k = partner_choose(nodes, c->count, n->index);
	free(nodes);
	return k == PARTNER_NONE ? NULL : &c->nodes[k];
}

static void say_alone(struct head *h)
{
	struct node_set *c = &h->node_set;
	char shared[96] = "";

	if (!h->levels.on || h->levels.alone_said)
		return;
	for (uint32_t k = 0; k < c->count; k++) {
		if (!node_usable(&c->nodes[k]) || partner_of(h, &c->nodes[k]))
			continue;
		h->levels.alone_said = true;
		if (h->o->shared_every > 0)
			snprintf(shared, sizeof(shared), ", but for each %ld%s, which also goes to",
				 h->o->shared_every,
				 h->o->shared_every == 1   ? "st"
				 : h->o->shared_every == 2 ? "nd"
				 : h->o->shared_every == 3 ? "rd"
							   : "th");
		head_say(h,
			 "--ckpt-local: there is no other host that could keep copies, so what the "
			 "disk of %s loses is lost%s%s%s",
			 c->nodes[k].name, shared, shared[0] ? " " : "",
			 shared[0] ? h->o->ckpt_dir : "");
		return;
	}
}

void levels_begin(struct head *h)
{
	say_alone(h);
}

/* ---- a checkpoint ---- */

bool levels_share_next(const struct head *h, bool asked_for)
{
	const struct levels *l = &h->levels;

	return l->on && (asked_for || (h->o->shared_every > 0 &&
				       l->since_shared + 1 >= (uint32_t)h->o->shared_every));
}

hale_status_t levels_fill(struct head *h, struct store_manifest *m, struct error *err)
{
	struct node_set *c = &h->node_set;

	if (!h->levels.on)
		return HALE_OK;
	m->ckpt_local = (char *)(uintptr_t)h->o->ckpt_local; /* borrowed, as argv is */
	m->shared_every = h->o->shared_every;
	m->holders = calloc(c->count, sizeof(*m->holders));
	if (!m->holders)
		return error_set(err, HALE_ERR_MEMORY, "out of memory for the manifest");
	for (uint32_t k = 0; k < c->count; k++) {
		struct store_holder *o = &m->holders[m->holder_count++];

		snprintf(o->node, sizeof(o->node), "%s", c->nodes[k].name);
		snprintf(o->folder, sizeof(o->folder), "%s",
			 c->nodes[k].copies.folder[0] ? c->nodes[k].copies.folder : "/");
	}
	for (uint32_t r = 0; r < m->nranks; r++) {
		struct store_part *p = &m->parts[r];

		if (!p->file[0])
			continue;
		p->local = true;
		p->copies = 1;
		p->on[0] = c->placement.node_of[r];
	}
	return HALE_OK;
}

void levels_unfill(struct store_manifest *m)
{
	free(m->holders);
	m->holders = NULL;
}

/* ---- copies ---- */

static bool held_by(const struct store_manifest *m, const struct store_part *p, const char *node)
{
	for (uint32_t i = 0; i < p->copies; i++)
		if (strcmp(m->holders[p->on[i]].node, node) == 0)
			return true;
	return false;
}

/* A node that is there and has it. */
static struct node *owner_of(struct head *h, const struct store_manifest *m,
			     const struct store_part *p)
{
	for (uint32_t i = 0; i < p->copies; i++) {
		const struct store_holder *o = &m->holders[p->on[i]];
		struct node *n = levels_node(h, o->node);

		if (n && node_usable(n) && strcmp(n->copies.folder, o->folder) == 0)
			return n;
	}
	return NULL;
}

static void order(struct head *h, uint32_t rank, enum copy_kind kind)
{
	struct levels *l = &h->levels;
	const struct store_part *p = &l->manifest.parts[rank];
	const struct level_part *k = &l->parts[rank];
	const struct node *to = &h->node_set.nodes[k->partner];
	bool partner = kind == COPY_PARTNER;

	l->outstanding++;
	node_set_tell(&h->node_set, k->owner,
		      &(struct message){.type = MSG_COPY,
					.rank = store_part_image(p),
					.id = l->id,
					.base = h->succession.epoch,
					.flags = kind,
					.position = {p->bytes, p->checksum, k->partner},
					.text = partner ? to->copies.at : "",
					.name = partner ? "" : h->files.store.job_folder});
}

/* Nodes that are there and have it. */
static uint32_t copies_there(struct head *h, const struct store_manifest *m,
			     const struct store_part *p)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < p->copies; i++) {
		const struct node *n = levels_node(h, m->holders[p->on[i]].node);

		count += n && node_usable(n);
	}
	return count;
}

static void begin_part(struct head *h, uint32_t rank)
{
	struct levels *l = &h->levels;
	struct store_part *p = &l->manifest.parts[rank];
	struct level_part *k = &l->parts[rank];
	struct node *owner = p->file[0] ? owner_of(h, &l->manifest, p) : NULL;
	struct node *partner = owner ? partner_of(h, owner) : NULL;
	struct levels_copies wanted = levels_copies_wanted(&(struct levels_image){
	    .owner = owner != NULL,
	    .partner = partner != NULL,
	    .partner_has = partner && held_by(&l->manifest, p, partner->name),
	    .listed = p->copies,
	    .listed_max = STORE_COPIES_MAX,
	    .there = copies_there(h, &l->manifest, p),
	    .local = p->local,
	    .share = l->shared});

	k->owner = owner ? owner->index : 0;
	k->partner = wanted.to_partner ? partner->index : 0;
	k->copying = wanted.to_partner;
	k->sharing = wanted.to_shared;
	if (k->copying)
		order(h, rank, COPY_PARTNER);
	if (k->sharing)
		order(h, rank, COPY_SHARED);
}

static void finish(struct head *h);

void levels_next(struct head *h)
{
	struct levels *l = &h->levels;
	char path[PATH_MAX];

	while (l->id == 0 && l->todo_count > 0) {
		struct level_todo t = l->todo[0];
		struct error err;

		memmove(l->todo, l->todo + 1, --l->todo_count * sizeof(t));
		store_path(h->files.store.job_folder, t.id, path);
		if (store_manifest_read(path, &l->manifest, &err) !=
		    HALE_OK) /* refused meanwhile */
			continue;
		l->parts = calloc(h->nranks, sizeof(*l->parts));
		if (!l->parts || l->manifest.nranks != h->nranks) {
			forget(l);
			continue;
		}
		l->id = t.id;
		l->shared = t.shared;
		l->answer = t.answer;
		l->why[0] = '\0';
		l->failure = 0;
		l->began = clock_seconds();
		for (uint32_t r = 0; r < h->nranks; r++)
			begin_part(h, r);
		if (l->outstanding == 0)
			finish(h);
	}
}

/* One that is newer makes those that wait needless, but for what it stands on, and for those that
 * somebody wants in the shared folder. */
static void drop_needless(struct levels *l, bool full)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < l->todo_count; i++)
		if (!full || l->todo[i].shared)
			l->todo[kept++] = l->todo[i];
	l->todo_count = kept;
}

void levels_queue(struct levels *l, uint32_t id, bool shared, bool answer)
{
	if (l->todo_count == LEVELS_QUEUE)
		memmove(l->todo, l->todo + 1, --l->todo_count * sizeof(l->todo[0]));
	l->todo[l->todo_count++] = (struct level_todo){id, shared, answer};
}

void levels_written(struct head *h, uint32_t id, bool shared, bool answer)
{
	struct levels *l = &h->levels;

	if (!l->on)
		return;
	l->since_shared = shared ? 0 : l->since_shared + 1;
	drop_needless(l, h->ckpt.base == 0);
	levels_queue(l, id, shared, answer);
	levels_next(h);
}

bool levels_answer(const struct head *h)
{
	const struct levels *l = &h->levels;
	bool some = l->answer && l->id;

	if (!l->on)
		return false;
	for (uint32_t i = 0; i < l->todo_count; i++)
		some = some || l->todo[i].answer;
	return some || (h->ckpt.origin == ORIGIN_USER && (h->ckpt.shared || h->ckpt.wanted));
}

/* ---- what has come of it ---- */

void levels_add_holder(struct store_part *p, uint32_t node)
{
	if (p->copies < STORE_COPIES_MAX)
		p->on[p->copies++] = node;
}

bool levels_holder(const struct store_manifest *m, const struct node *n, uint32_t *index)
{
	for (uint32_t i = 0; i < m->holder_count; i++) {
		if (strcmp(m->holders[i].node, n->name) == 0 &&
		    strcmp(m->holders[i].folder, n->copies.folder) == 0) {
			*index = i;
			return true;
		}
	}
	return false;
}

static void take_over(struct head *h)
{
	struct levels *l = &h->levels;

	for (uint32_t r = 0; r < h->nranks; r++) {
		struct store_part *p = &l->manifest.parts[r];
		uint32_t index;

		if (l->parts[r].copied &&
		    levels_holder(&l->manifest, &h->node_set.nodes[l->parts[r].partner], &index))
			levels_add_holder(p, index);
		if (l->parts[r].shared)
			p->local = false;
	}
}

static void tell(struct head *h, int level, bool copied)
{
	struct levels *l = &h->levels;
	double seconds = clock_seconds() - l->began;
	char path[PATH_MAX], took[16];
	struct json_out j;

	for (size_t i = h->report.checkpoint_count; i-- > 0;) {
		struct report_checkpoint *c = &h->report.checkpoints[i];

		if (c->id != l->id || !c->complete)
			continue;
		c->level = level;
		c->copied_seconds = copied ? seconds : 0;
		break;
	}
	record_begin(&j, "checkpoint copied");
	json_uint(&j, "id", l->id);
	json_int(&j, "level", level);
	json_double(&j, "seconds", seconds);
	if (l->why[0])
		json_string(&j, "why", l->why);
	record_end(&h->files.record, &j);
	if (copied)
		log_info("checkpoint %u: %s, %s later", l->id,
			 level == 4 ? "its images are in the shared folder"
				    : "a partner has a copy of each image",
			 units_show_seconds(seconds, took));
	/* every time the same would be too much */
	if (l->why[0] && l->failure != l->said)
		head_say(h, "checkpoint %u %s, the job goes on: %s", l->id,
			 l->shared && level < 4 ? "is on disks of nodes only"
						: "has no copy of every image",
			 l->why);
	l->said = l->why[0] ? l->failure : 0;
	if (!l->answer)
		return;
	store_path(h->files.store.job_folder, l->id, path);
	head_checkpoint_over(h, level == 4 ? path : NULL,
			     l->why[0] ? l->why : "not all images are in the shared folder");
}

static bool anything(const struct head *h)
{
	const struct levels *l = &h->levels;
	bool any = false;

	for (uint32_t r = 0; r < h->nranks; r++)
		any = any || l->parts[r].copied || l->parts[r].shared;
	return any;
}

static void finished(struct head *h, const struct error *err)
{
	struct levels *l = &h->levels;
	bool any = anything(h), copied;
	int level = err->code == HALE_OK ? store_level(&l->manifest) : 1;

	if (head_superseded(h)) {
		forget(l);
		return;
	}
	if (err->code != HALE_OK)
		snprintf(l->why, sizeof(l->why), "%s", err->text);
	copied = any && level > 1 && !l->why[0];
	if (any || l->why[0] || l->answer)
		tell(h, level, copied);
	forget(l);
	head_save(h);
	levels_prune(h);
}

/* By a child, as the first time (checkpoint_write.c): the disk may stand still. */
static hale_status_t rewrite(void *head, struct error *err)
{
	struct head *h = head;

	return store_rewrite(h->files.store.job_folder, h->files.store.sync, &h->levels.manifest,
			     err);
}

/* Every answer is there, or will not come. */
static void finish(struct head *h)
{
	struct error err = {HALE_OK, ""};

	/* what is there the next head has learnt from the nodes */
	if (head_superseded(h)) {
		forget(&h->levels);
		return;
	}
	take_over(h);
	if (anything(h)) {
		if (child_task_begin(&h->levels.rewrite, rewrite, h))
			return;
		err.code = rewrite(h, &err);
	}
	finished(h, &err);
}

static void rewritten(struct head *h, const struct error *err)
{
	finished(h, err);
	levels_next(h);
}

bool levels_child(struct head *h, pid_t pid)
{
	struct error err;

	if (!child_task_over(&h->levels.rewrite, pid, &err))
		return false;
	rewritten(h, &err);
	head_settled(h);
	return true;
}

void levels_settle(struct head *h)
{
	struct error err;

	if (!child_task_wait(&h->levels.rewrite, &err))
		return;
	rewritten(h, &err);
	head_settled_soon(h);
}

static void failed(struct head *h, uint32_t node, const struct message *m, const char *why)
{
	struct levels *l = &h->levels;

	if (l->why[0])
		return;
	l->failure = 1 + ((uint64_t)node << 32) + (m ? m->flags * 1000 + (uint32_t)m->value : 0);
	snprintf(l->why, sizeof(l->why), "node %s: %.400s", h->node_set.nodes[node].name, why);
}

void levels_copied(struct head *h, const struct node *n, const struct message *m)
{
	struct levels *l = &h->levels;
	struct level_part *k;
	uint32_t process;
	bool good = m->value == HALE_OK, *waits;

	if (m->type == MSG_COPIES_HELD) {
		levels_held(h, n, m);
		return;
	}
	if (m->flags == COPY_FETCH) {
		head_fetch_answer(h, n, m);
		return;
	}
	/* orders of an earlier head may have been for another partner */
	if (l->id == 0 || m->id != l->id || m->base != h->succession.epoch ||
	    !store_part_of_image(&l->manifest, m->rank, &process))
		return;
	k = &l->parts[process];
	waits = m->flags == COPY_PARTNER ? &k->copying : &k->sharing;
	if (!*waits || k->owner != n->index)
		return;
	*waits = false;
	l->outstanding--;
	if (m->flags == COPY_PARTNER)
		k->copied = good;
	else
		k->shared = good;
	if (!good) {
		char why[400];

		snprintf(why, sizeof(why),
			 "the image of rank %u could not be copied to %s%.120s: %.200s", m->rank,
			 m->flags == COPY_PARTNER ? "node " : "",
			 m->flags == COPY_PARTNER ? h->node_set.nodes[k->partner].name
						  : h->files.store.job_folder,
			 m->text);
		failed(h, n->index, m, why);
	}
	if (l->outstanding == 0 && !child_task_busy(&l->rewrite)) {
		finish(h);
		levels_next(h);
	}
}

/* It will not answer any more. What it got before counts only while it is there (available). */
void levels_node_lost(struct head *h, const struct node *n)
{
	struct levels *l = &h->levels;

	head_fetch_answer(h, n, NULL);
	say_alone(h);
	if (l->id == 0)
		return;
	for (uint32_t r = 0; r < h->nranks; r++) {
		struct level_part *k = &l->parts[r];

		if (k->owner != n->index || !(k->copying || k->sharing))
			continue;
		l->outstanding -= (uint32_t)k->copying + (uint32_t)k->sharing;
		k->copying = k->sharing = false;
		failed(h, n->index, NULL, "it was lost while it copied its images");
	}
	if (l->outstanding == 0 && !child_task_busy(&l->rewrite)) {
		finish(h);
		levels_next(h);
	}
}
