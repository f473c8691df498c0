/* SPDX-License-Identifier: BSD-3-Clause */
/* What a new head (docs/attach.md) knows of the levels of checkpoints: the manifests say what the
 * one before it has written down, each node what lies on its disk. A copy has its name only when it
 * is whole and on the disk, so what is there counts whether or not its answer reached anybody.
 *
 *   record ── which were to go to the shared folder ──┐
 *   nodes ─── what they have ─▶ manifests ─▶ levels ──┴─▶ copies that are missing are ordered again
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "wire/message/copies.h"
#include "head/nodes/node_set_private.h"
#include "head/head.h"
#include "head/levels/levels.h"

/* ---- what the nodes say ---- */

void levels_held(struct head *h, const struct node *n, const struct message *m)
{
	struct levels *l = &h->levels;
	struct level_held *k;

	if (!l->on || m->len % sizeof(struct copies_image) != 0)
		return;
	k = calloc(1, sizeof(*k));
	if (k)
		k->images = malloc(m->len + 1);
	if (!k || !k->images) { /* as if it had nothing but what is written down */
		free(k);
		return;
	}
	memcpy(k->images, m->bytes, m->len);
	k->count = m->len / sizeof(struct copies_image);
	k->node = n->index;
	k->next = l->held;
	l->held = k;
}

void levels_held_forget(struct head *h)
{
	struct levels *l = &h->levels;

	while (l->held) {
		struct level_held *k = l->held;

		l->held = k->next;
		free(k->images);
		free(k);
	}
}

static bool has(const struct level_held *k, uint32_t id, uint32_t rank, uint64_t bytes)
{
	for (size_t i = 0; i < k->count; i++)
		if (k->images[i].id == id && k->images[i].rank == rank &&
		    k->images[i].bytes == bytes)
			return true;
	return false;
}

/* True: m did not know of all that this node has. */
static bool add_held(struct head *h, struct store_manifest *m, const struct level_held *k)
{
	uint32_t index;
	bool more = false;

	if (!levels_holder(m, &h->node_set.nodes[k->node], &index))
		return false;
	for (uint32_t r = 0; r < m->nranks; r++) {
		struct store_part *p = &m->parts[r];
		bool known = false;

		for (uint32_t i = 0; i < p->copies; i++)
			known = known || p->on[i] == index;
		if (!p->file[0] || known || p->copies == STORE_COPIES_MAX ||
		    !has(k, m->id, store_part_image(p), p->bytes))
			continue;
		levels_add_holder(p, index);
		more = true;
	}
	return more;
}

static void set_level(struct head *h, uint32_t id, int level)
{
	for (size_t i = h->report.checkpoint_count; i-- > 0;) {
		struct report_checkpoint *c = &h->report.checkpoints[i];

		if (c->id == id && c->complete && c->level < level)
			c->level = level;
	}
}

static void learn_one(struct head *h, uint32_t id)
{
	struct store_manifest m;
	struct error err;
	char path[PATH_MAX];
	bool more = false;

	store_path(h->files.store.job_folder, id, path);
	if (store_manifest_read(path, &m, NULL) == HALE_OK && m.nranks == h->nranks) {
		for (const struct level_held *k = h->levels.held; k; k = k->next)
			more = add_held(h, &m, k) || more;
		if (more && store_rewrite(h->files.store.job_folder, h->files.store.sync, &m,
					  &err) != HALE_OK)
			log_warn("what nodes have of checkpoint %u can't be written down: %s", id,
				 err.text);
		if (more)
			log_info("checkpoint %u: nodes have copies that the head before had not "
				 "written down",
				 id);
		set_level(h, id, store_level(&m));
	}
	store_manifest_fini(&m);
}

void levels_learn(struct head *h)
{
	uint32_t *ids;
	size_t count;

	if (!h->levels.on || head_superseded(h))
		return;
	count = store_list(h->files.store.job_folder, &ids);
	for (size_t i = 0; i < count; i++)
		learn_one(h, ids[i]);
	free(ids);
	levels_held_forget(h);
}

/* ---- what was under way ---- */

void levels_put(const struct head *h, struct json_out *j)
{
	const struct levels *l = &h->levels;

	json_bool(j, "alone_said", l->alone_said);
	json_uint(j, "since_shared", l->since_shared);
	json_open_array(j, "to_share");
	if (l->id && l->shared)
		json_uint(j, NULL, l->id);
	for (uint32_t i = 0; i < l->todo_count; i++)
		if (l->todo[i].shared)
			json_uint(j, NULL, l->todo[i].id);
	json_close_array(j);
}

static bool is_listed(const struct json_value *list, uint32_t id)
{
	for (size_t i = 0; i < json_count(list); i++)
		if (json_number_int(json_at(list, i), 0) == id)
			return true;
	return false;
}

/* Those that were to go to the shared folder, and the newest with what it stands on. One that
 * needs nothing any more is over at once. */
void levels_inherit(struct head *h, const struct json_value *doc)
{
	struct levels *l = &h->levels;
	const struct json_value *shared = json_get(doc, "to_share");
	uint32_t *ids = NULL, chain[STORE_CHAIN_MAX];
	size_t count, links = 0;

	if (!l->on)
		return;
	count = store_list(h->files.store.job_folder, &ids);
	if (count > 0)
		store_chain(h->files.store.job_folder, ids[count - 1], chain, &links, NULL);
	for (size_t i = 0; i < count; i++) {
		bool share = is_listed(shared, ids[i]), stands = false;

		for (size_t k = 0; k < links; k++)
			stands = stands || chain[k] == ids[i];
		if (share || stands)
			levels_queue(l, ids[i], share, false);
	}
	free(ids);
	levels_next(h);
}

void levels_restore(struct head *h, const struct json_value *doc)
{
	h->levels.alone_said = json_truth(json_get(doc, "alone_said"), false);
	h->levels.since_shared = (uint32_t)json_number_int(json_get(doc, "since_shared"), 0);
}
