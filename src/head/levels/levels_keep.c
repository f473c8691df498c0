/* SPDX-License-Identifier: BSD-3-Clause */
/* Which checkpoints stay, in the shared folder and on the nodes' disks. */
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "wire/message/copies.h"
#include "head/nodes/node_set_private.h"
#include "head/head.h"
#include "head/levels/levels.h"
#include "policy/levels.h"

struct levels_kept {
	uint32_t ids[COPIES_KEEP_MAX];
	size_t count;
};

static bool is_kept(const struct levels_kept *k, uint32_t id)
{
	for (size_t i = 0; i < k->count; i++)
		if (k->ids[i] == id)
			return true;
	return false;
}

static void keep(struct head *h, struct levels_kept *k, uint32_t id)
{
	uint32_t chain[STORE_CHAIN_MAX];
	size_t count;

	/* whatever could be read of a chain is kept */
	store_chain(h->files.store.job_folder, id, chain, &count, NULL);
	for (size_t i = 0; i < count; i++)
		if (!is_kept(k, chain[i]) && k->count < COPIES_KEEP_MAX)
			k->ids[k->count++] = chain[i];
}

/* What a checkpoint would survive, with all that it is a difference to (policy/levels.h). */
struct levels_kept_stock {
	uint32_t id;
	int level;
	bool *outlives; /* [nodes] */
};

/* A copy on a node that is lost meanwhile saves nothing. False: there is an image without any. */
static bool drop_lost(struct head *h, struct store_manifest *m)
{
	bool all = true;

	for (uint32_t r = 0; r < m->nranks; r++) {
		struct store_part *p = &m->parts[r];
		uint32_t there = 0;

		for (uint32_t i = 0; i < p->copies; i++) {
			const struct node *n = levels_node(h, m->holders[p->on[i]].node);

			if (n ? node_usable(n) : h->restarted)
				p->on[there++] = p->on[i];
		}
		p->copies = there;
		all = all && (there > 0 || !p->local || !p->file[0]);
	}
	return all;
}

/* Lessens s to what checkpoint id, which it needs, survives. */
static void take_stock(struct head *h, struct levels_kept_stock *s, uint32_t id)
{
	struct store_manifest m;
	char path[PATH_MAX];
	int level = 0;

	store_path(h->files.store.job_folder, id, path);
	if (store_manifest_read(path, &m, NULL) == HALE_OK && drop_lost(h, &m))
		level = store_level(&m);
	s->level = level < s->level ? level : s->level;
	for (uint32_t r = 0; level == 1 && r < m.nranks; r++) {
		const struct store_part *p = &m.parts[r];
		const struct node *n = NULL;

		if (p->file[0] && p->local && p->copies == 1)
			n = levels_node(h, m.holders[p->on[0]].node);
		if (n)
			s->outlives[n->index] = false;
	}
	store_manifest_fini(&m);
}

static void take_stock_of_chain(struct head *h, struct levels_kept_stock *s)
{
	uint32_t chain[STORE_CHAIN_MAX];
	size_t count;

	s->level =
	    store_chain(h->files.store.job_folder, s->id, chain, &count, NULL) == HALE_OK ? 4 : 0;
	for (uint32_t k = 0; k < h->node_set.count; k++)
		s->outlives[k] = true;
	for (size_t i = 0; i < count && s->level > 0; i++)
		take_stock(h, s, chain[i]);
}

/* Those that no newer one makes up for: which matters where no partner has room, or none has time.
 * False: out of memory, nobody knows. */
static bool keep_for_losses(struct head *h, struct levels_kept *k, const uint32_t *ids,
			    size_t count)
{
	uint32_t nodes = h->node_set.count;
	bool *room = calloc(3, nodes * sizeof(*room)), *there = room ? room + nodes : NULL;
	struct levels_keep choice;

	if (!room)
		return false;
	for (uint32_t n = 0; n < nodes; n++)
		there[n] = node_usable(&h->node_set.nodes[n]);
	choice = levels_keep_begin(nodes, there, there + nodes);
	for (size_t i = count; i-- > 0 && !levels_keep_done(&choice);) {
		struct levels_kept_stock s = {.id = ids[i], .outlives = room};

		take_stock_of_chain(h, &s);
		if (levels_keep_wants(&choice, &(struct levels_stock){s.level, s.outlives}))
			keep(h, k, s.id);
	}
	free(room);
	return true;
}

/* Those of another --ckpt-dir, from which the job was restarted, lie in the same folders. */
static void keep_others(struct head *h, struct levels_kept *k)
{
	uint32_t *ids;
	size_t count = 0;

	if (!h->recovery.folder[0] || strcmp(h->recovery.folder, h->files.store.job_folder) == 0)
		return;
	count = store_list(h->recovery.folder, &ids);
	for (size_t i = 0; i < count && k->count < COPIES_KEEP_MAX; i++)
		k->ids[k->count++] = ids[i];
	free(ids);
}

/* Those that are under way on the nodes are not older than what is kept, or are named. */
static void tell_nodes(struct head *h, struct levels_kept *k)
{
	struct levels *l = &h->levels;

	keep_others(h, k);
	if (l->id && !is_kept(k, l->id) && k->count < COPIES_KEEP_MAX)
		k->ids[k->count++] = l->id;
	if (k->count > 0)
		node_set_tell_all(&h->node_set,
				  &(struct message){.type = MSG_COPY_KEEP,
						    .bytes = k->ids,
						    .len = k->count * sizeof(k->ids[0])});
}

void levels_prune(struct head *h)
{
	struct levels_kept *k;
	uint32_t *ids;
	size_t count, keep_count = (size_t)h->o->keep;
	bool any = false;

	/* while ranks go back to a checkpoint nobody takes it away: the next one that is complete
	 * will */
	if (h->state == JOB_CLEARING || h->state == JOB_RESTORING || head_superseded(h))
		return;
	k = calloc(1, sizeof(*k));
	count = store_list(h->files.store.job_folder, &ids);
	for (size_t i = count > keep_count ? count - keep_count : 0; k && i < count; i++)
		keep(h, k, ids[i]);
	if (k && keep_for_losses(h, k, ids, count)) {
		for (uint32_t i = 0; i < h->levels.todo_count; i++)
			keep(h, k, h->levels.todo[i].id);
		if (h->levels.id)
			keep(h, k, h->levels.id);
		for (size_t i = 0; i < count; i++)
			if (!is_kept(k, ids[i]))
				any |= store_remove(&h->files.store, ids[i]);
		if (any)
			head_sweep(h);
		tell_nodes(h, k);
	}
	free(ids);
	free(k);
}
