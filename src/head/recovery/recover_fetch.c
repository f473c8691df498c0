/* SPDX-License-Identifier: BSD-3-Clause */
/* A checkpoint of which images lie on nodes' own disks is gone back to: each image that a rank
 * needs must be whole on the rank's node before any rank starts.
 *
 * For each, in this order: where it lies on the rank's own node; the shared folder; nodes that have
 * it. The copier looks at all of it (copier_work.c); what is damaged, or can't be had, is looked
 * for at the next place. With none left the checkpoint is refused, and the one before it is taken.
 *
 * An image says what it is a difference to: so the newest is fetched first, and the next one only
 * if it is needed. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/base.h"
#include "image/image.h"
#include "head/nodes/node_set_private.h"
#include "head/head.h"
#include "head/head_private.h"
#include "head/watch/watch.h"
#include "policy/levels.h"

struct fetch_rank {
	bool waits;
	uint32_t link;	    /* of the chain, that is looked for */
	uint32_t at;	    /* node that was asked */
	uint32_t tried;	    /* places so far (policy/levels.h) */
	const char *folder; /* where it lay on that node before; NULL: it comes from another */
	bool damaged;	    /* of some place that was tried */
	const struct node
	    *from; /* that it was to come from; NULL: it was looked for on its own node */
	char why[480];
	char program[PATH_MAX];
	char *spec; /* paths so far, each with a colon in front */
};

struct fetch {
	uint32_t generation, outstanding;
	size_t link_count;
	struct store_manifest *links; /* [chain_count] */
	bool *changed;		      /* [chain_count] */
	struct fetch_rank *ranks;     /* [nranks] */
	bool over;		      /* it came to nothing */
};

/* ---- can it be had? ---- */

/* A node of another life of the job may be one of ours by another name: it is worth a look. */
static bool somewhere(struct head *h, const struct store_manifest *m, const struct store_part *p)
{
	for (uint32_t i = 0; i < p->copies; i++) {
		const struct node *n = levels_node(h, m->holders[p->on[i]].node);

		if (n ? node_usable(n) && n->copies.at[0] : h->restarted)
			return true;
	}
	return false;
}

static hale_status_t check_link(struct head *h, const struct store_manifest *m, struct error *err)
{
	for (uint32_t r = 0; r < m->nranks; r++) {
		const struct store_part *p = &m->parts[r];

		if (p->file[0] && p->local && !somewhere(h, m, p))
			return error_set(err, HALE_ERR_NODE,
					 "the image of rank %u was on node %s%s only, which is not "
					 "there",
					 r % (m->nranks / m->degree), m->holders[p->on[0]].node,
					 p->copies > 1 ? " and its partner" : "");
	}
	return HALE_OK;
}

hale_status_t levels_available(struct head *h, const char *job_folder, uint32_t id,
			       struct error *err)
{
	uint32_t chain[STORE_CHAIN_MAX];
	size_t count;
	hale_status_t status;

	levels_settle(h);
	status = store_chain(job_folder, id, chain, &count, err);
	for (size_t i = 0; status == HALE_OK && i < count; i++) {
		struct store_manifest m;
		char path[PATH_MAX];

		store_path(job_folder, chain[i], path);
		status = store_manifest_read(path, &m, err);
		if (status == HALE_OK)
			status = check_link(h, &m, err);
		store_manifest_fini(&m);
	}
	return status;
}

bool levels_fetch_needed(const struct head *h)
{
	const struct store_manifest *m = &h->recovery.manifest;

	for (uint32_t r = 0; r < m->nranks; r++)
		if (m->parts[r].copies > 0)
			return true;
	return false;
}

/* ---- one image ---- */

static void spec_add(struct fetch_rank *f, const char *folder, uint32_t id,
		     const struct store_part *p)
{
	char *more;

	if (asprintf(&more, "%s:%s/%u/" JOB_IMAGE_NAME "=%016" PRIx64, f->spec ? f->spec : "",
		     folder, id, store_part_image(p), p->checksum) < 0)
		return;
	free(f->spec);
	f->spec = more;
}

static void ask(struct head *h, uint32_t rank, const struct node *from, const char *folder,
		const struct store_part *p)
{
	struct fetch *f = h->levels.fetch;
	struct fetch_rank *k = &f->ranks[rank];
	uint32_t node = h->node_set.placement.node_of[rank];

	k->waits = true;
	k->at = node;
	k->from = from;
	f->outstanding++;
	node_set_tell(
	    &h->node_set, node,
	    &(struct message){.type = MSG_COPY,
			      .rank = store_part_image(p),
			      .id = h->recovery.chain[k->link],
			      .base = f->generation,
			      .flags = COPY_FETCH,
			      .position = {p->bytes, p->checksum, from ? from->index : node},
			      .text = from ? from->copies.at : "",
			      .name = folder});
}

/* A node that we don't know by its name may be the rank's own one by another name. */
static struct levels_holder holder_of(struct head *h, uint32_t rank, const struct store_holder *o)
{
	const struct node *n = levels_node(h, o->node);

	return (struct levels_holder){.here = !n || n->index == h->node_set.placement.node_of[rank],
				      .usable = !n || (node_usable(n) && n->copies.at[0])};
}

static bool link_done(struct head *h, uint32_t rank, uint32_t base, const char *program,
		      const char *folder, uint32_t id);

/* The image that the manifest means. */
static hale_status_t read_that(const char *path, const struct store_part *p,
			       struct image_info *info, struct error *err)
{
	hale_status_t status = image_read_info(path, info, err);

	if (status == HALE_OK && info->checksum != p->checksum)
		status = error_set(err, HALE_ERR_IMAGE_CORRUPT,
				   "'%s' is not the image that its manifest names", path);
	return status;
}

/* The shared folder can be read from here. */
static bool try_shared(struct head *h, uint32_t rank, const struct store_part *p)
{
	struct fetch_rank *k = &h->levels.fetch->ranks[rank];
	uint32_t id = h->recovery.chain[k->link];
	const char *job_folder = recover_folder_of(h, id);
	struct image_info *info = p->local ? NULL : malloc(sizeof(*info));
	char path[PATH_MAX + STORE_NAME_MAX + 16];
	struct error err;
	bool good = false;

	if (!info)
		return false;
	snprintf(path, sizeof(path), "%s/%u/%s", job_folder, id, p->file);
	if (store_verify_file(path, store_part_image(p), p->bytes, p->checksum, false, &err) ==
		HALE_OK &&
	    read_that(path, p, info, &err) == HALE_OK) {
		good = true;
		link_done(h, rank, info->identity.base, info->program, job_folder, id);
	} else {
		k->damaged = true;
		snprintf(k->why, sizeof(k->why), "%s", err.text);
	}
	free(info);
	return good;
}

/* Asks at the next place; false: there is none left. */
static bool look_on(struct head *h, uint32_t rank)
{
	struct fetch *f = h->levels.fetch;
	struct fetch_rank *k = &f->ranks[rank];
	const struct store_manifest *m = &f->links[k->link];
	const struct store_part *p = &m->parts[rank];
	struct levels_holder holders[STORE_COPIES_MAX] = {{false}};
	levels_place_t place;
	uint32_t i;

	for (i = 0; i < p->copies; i++)
		holders[i] = holder_of(h, rank, &m->holders[p->on[i]]);
	do
		place = levels_fetch_next(&k->tried, holders, STORE_COPIES_MAX, p->local, &i);
	while (place == LEVELS_SHARED && !try_shared(h, rank, p));
	if (place == LEVELS_HERE || place == LEVELS_ELSEWHERE) {
		const struct store_holder *o = &m->holders[p->on[i]];

		k->folder = place == LEVELS_HERE ? o->folder : NULL;
		ask(h, rank, place == LEVELS_HERE ? NULL : levels_node(h, o->node), o->folder, p);
	}
	return place != LEVELS_NOWHERE;
}

/* ---- the end of it ---- */

static void rewrite(struct head *h)
{
	struct fetch *f = h->levels.fetch;
	struct error err;

	for (size_t i = 0; i < h->recovery.chain_count && !head_superseded(h); i++)
		if (f->changed[i] && store_rewrite(recover_folder_of(h, f->links[i].id),
						   !h->o->no_fsync, &f->links[i], &err) != HALE_OK)
			log_info("%s", err.text);
}

static void refuse(struct head *h, uint32_t rank)
{
	const struct fetch_rank *k = &h->levels.fetch->ranks[rank];

	h->levels.fetch->over = true;
	recover_refuse(h, "the image of rank %u can't be had: %s",
		       living_rank_of(rank, h->view.nranks),
		       k->why[0] ? k->why : "no node that is there has it");
	if (k->damaged)
		recover_reject(h);
	else
		recover_pass_over(h);
	head_roll_back(h);
}

static bool another_is_there(const struct head *h, const struct node *but)
{
	for (uint32_t k = 0; k < h->node_set.count; k++) {
		const struct node *n = &h->node_set.nodes[k];

		if (n != but && node_usable(n) && !n->unusable && n->leave.state != LEAVE_PLANNED)
			return true;
	}
	return false;
}

/* A disk that takes no images is no fault of the checkpoint: so ranks go to other nodes, and back
 * to the same one. Once for each node. */
static bool without_that_disk(struct head *h, struct node *n, hale_status_t status, const char *why)
{
	bool full = status == HALE_ERR_STORE_FULL || status == HALE_ERR_STORE;

	if (!full || n->unusable || !another_is_there(h, n))
		return false;
	head_say(h, "node %s can't take the images of its ranks, which go elsewhere: %s", n->name,
		 why);
	h->levels.fetch->over = true;
	node_leave_event(n, LEAVE_BY_CHECKPOINT);
	watch_mark(h, n->index, true, "no room for images");
	head_roll_back(h);
	return true;
}

static void go_on_if_all(struct head *h)
{
	struct fetch *f = h->levels.fetch;

	if (f->outstanding > 0 || f->over)
		return;
	rewrite(h);
	recover_fetched(h);
}

/* True: nothing more is needed for this rank, or its next link was found or asked for. */
static bool link_done(struct head *h, uint32_t rank, uint32_t base, const char *program,
		      const char *folder, uint32_t id)
{
	struct fetch_rank *k = &h->levels.fetch->ranks[rank];

	spec_add(k, folder, id, &h->levels.fetch->links[k->link].parts[rank]);
	if (k->link == 0)
		snprintf(k->program, sizeof(k->program), "%s",
			 program[0] == '/' ? program : h->program->path);
	if (base == 0 || k->link + 1 >= h->recovery.chain_count)
		return true;
	k->link++;
	k->tried = 0;
	if (look_on(h, rank))
		return true;
	refuse(h, rank);
	return false;
}

/* It has it now, too. */
static void add_copy(struct fetch *f, uint32_t link, uint32_t rank, const struct node *n)
{
	struct store_manifest *m = &f->links[link];
	struct store_part *p = &m->parts[rank];
	uint32_t i = 0;

	while (i < m->holder_count && (strcmp(m->holders[i].node, n->name) != 0 ||
				       strcmp(m->holders[i].folder, n->copies.folder) != 0))
		i++;
	for (uint32_t j = 0; j < p->copies; j++)
		if (p->on[j] == i)
			return;
	if (i == m->holder_count || p->copies == STORE_COPIES_MAX)
		return;
	p->on[p->copies++] = i;
	f->changed[link] = true;
}

static void not_there(struct head *h, uint32_t rank, hale_status_t status, const char *why)
{
	struct fetch_rank *k = &h->levels.fetch->ranks[rank];
	bool damaged = status == HALE_ERR_IMAGE_TORN || status == HALE_ERR_IMAGE_CORRUPT ||
		       status == HALE_ERR_IMAGE_MISMATCH || status == HALE_ERR_IMAGE_MISSING;

	k->damaged = k->damaged || damaged;
	snprintf(k->why, sizeof(k->why), "%s%s%s%.380s", k->from ? "from node " : "",
		 k->from ? k->from->name : "", k->from ? ": " : "", why);
	if (look_on(h, rank)) {
		if (damaged)
			head_say(h, "checkpoint %u: %s; it is looked for elsewhere",
				 h->recovery.target, why);
		return;
	}
	if (!without_that_disk(h, &h->node_set.nodes[k->at], status, why))
		refuse(h, rank);
}

/* m NULL: the node is lost; then the job goes back anyhow if it had to get ranks. */
void levels_fetch_answer(struct head *h, const struct node *n, const struct message *m)
{
	struct fetch *f = h->levels.fetch;
	struct fetch_rank *k;
	uint32_t rank;

	if (!f || !m || f->over || m->base != f->generation || h->state != JOB_RESTORING ||
	    !store_part_of_image(&h->recovery.manifest, m->rank, &rank))
		return;
	k = &f->ranks[rank];
	if (!k->waits || k->at != n->index || m->id != h->recovery.chain[k->link])
		return;
	k->waits = false;
	f->outstanding--;
	if (m->value != HALE_OK) {
		not_there(h, rank, (hale_status_t)m->value, m->text);
	} else {
		const char *folder = k->folder ? k->folder : n->copies.folder;

		if (!k->folder)
			add_copy(f, k->link, rank, n);
		link_done(h, rank, (uint32_t)m->number, m->text, folder, m->id);
	}
	if (h->levels.fetch == f)
		go_on_if_all(h);
}

/* ---- all ---- */

static hale_status_t read_links(struct head *h, struct fetch *f, struct error *err)
{
	const struct recovery *v = &h->recovery;
	hale_status_t status = HALE_OK;

	for (size_t i = 0; status == HALE_OK && i < v->chain_count; i++) {
		char path[PATH_MAX];

		store_path(recover_folder_of(h, v->target), v->chain[i], path);
		status = store_manifest_read(path, &f->links[i], err);
		if (status == HALE_OK)
			status = recover_check_whose(h, recover_folder_of(h, v->target),
						     &f->links[i], err);
	}
	return status;
}

hale_status_t levels_fetch(struct head *h, struct error *err)
{
	const struct store_manifest *m = &h->recovery.manifest;
	struct fetch *f;
	hale_status_t status;

	levels_fetch_stop(h);
	f = h->levels.fetch = calloc(1, sizeof(*f));
	if (f) {
		f->generation = h->generation;
		f->link_count = h->recovery.chain_count;
		f->links = calloc(h->recovery.chain_count, sizeof(*f->links));
		f->changed = calloc(h->recovery.chain_count, sizeof(*f->changed));
		f->ranks = calloc(h->nranks, sizeof(*f->ranks));
	}
	if (!f || !f->links || !f->changed || !f->ranks)
		return error_set(err, HALE_ERR_MEMORY, "out of memory");
	status = read_links(h, f, err);
	if (status != HALE_OK)
		return status;
	f->outstanding++; /* until all have been asked for */
	for (uint32_t r = 0; r < h->nranks && !f->over; r++) {
		if (m->parts[r].file[0] && !look_on(h, r)) {
			refuse(h, r);
			return HALE_OK;
		}
	}
	f->outstanding--;
	go_on_if_all(h);
	return HALE_OK;
}

void levels_fetch_stop(struct head *h)
{
	struct fetch *f = h->levels.fetch;

	h->levels.fetch = NULL;
	if (!f)
		return;
	for (size_t i = 0; f->links && i < f->link_count; i++)
		store_manifest_fini(&f->links[i]);
	for (uint32_t r = 0; f->ranks && r < h->nranks; r++)
		free(f->ranks[r].spec);
	free(f->links);
	free(f->changed);
	free(f->ranks);
	free(f);
}

char *levels_sink_spec(struct head *h, uint32_t rank, char *program, size_t cap)
{
	const struct fetch *f = h->levels.fetch;
	const struct fetch_rank *k = f ? &f->ranks[rank] : NULL;
	char *spec;

	if (!k || !k->spec)
		return NULL;
	snprintf(program, cap, "%s", k->program);
	if (asprintf(&spec, "%s%s", h->o->restart == IMAGE_LAZY ? "lazy" : "full", k->spec) < 0)
		return NULL;
	return spec;
}
