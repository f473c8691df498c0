/* SPDX-License-Identifier: BSD-3-Clause */
#include "policy/partition.h"

#include <stdlib.h>
#include <string.h>

struct partition_entry {
	uint32_t peer;
	double since;
};

/* What a rank says. */
struct partition_row {
	uint32_t count, room;
	struct partition_entry *entry;
};

struct partition {
	uint32_t nranks, nodes;
	uint32_t *spared; /* [nodes]: times that it was cut off, and another one was chosen */
	struct partition_row row[];
};

struct partition *partition_create(uint32_t nranks, uint32_t nodes)
{
	struct partition *c = calloc(1, sizeof(*c) + nranks * sizeof(c->row[0]));

	if (!c)
		return NULL;
	c->nranks = nranks;
	c->nodes = nodes;
	c->spared = calloc(nodes + 1, sizeof(*c->spared));
	if (c->spared)
		return c;
	free(c);
	return NULL;
}

void partition_destroy(struct partition *c)
{
	for (uint32_t r = 0; c && r < c->nranks; r++)
		free(c->row[r].entry);
	if (c)
		free(c->spared);
	free(c);
}

static bool make_room(struct partition_row *row)
{
	uint32_t room = row->room ? 2 * row->room : 4;
	struct partition_entry *more;

	if (row->count < row->room)
		return true;
	more = realloc(row->entry, room * sizeof(*more));
	if (!more)
		return false;
	row->entry = more;
	row->room = room;
	return true;
}

void partition_told(struct partition *c, uint32_t rank, uint32_t peer, bool lost, double now)
{
	struct partition_row *row = rank < c->nranks ? &c->row[rank] : NULL;
	uint32_t i = 0;

	if (!row || peer >= c->nranks)
		return;
	while (i < row->count && row->entry[i].peer != peer)
		i++;
	if (!lost && i < row->count)
		row->entry[i] = row->entry[--row->count];
	else if (lost && i == row->count && make_room(row))
		row->entry[row->count++] = (struct partition_entry){.peer = peer, .since = now};
}

void partition_forget(struct partition *c)
{
	for (uint32_t r = 0; r < c->nranks; r++)
		c->row[r].count = 0;
}

void partition_renew(struct partition *c, double now)
{
	for (uint32_t r = 0; r < c->nranks; r++)
		for (uint32_t i = 0; i < c->row[r].count; i++)
			c->row[r].entry[i].since = now;
}

static bool counts(const struct partition_view *v, uint32_t rank, uint32_t peer)
{
	return v->node_of[rank] < v->nodes && v->node_of[peer] < v->nodes &&
	       v->node_of[rank] != v->node_of[peer];
}

bool partition_oldest(const struct partition *c, const struct partition_view *v,
		      struct partition_pair *oldest)
{
	bool found = false;

	for (uint32_t r = 0; r < c->nranks; r++)
		for (uint32_t i = 0; i < c->row[r].count; i++) {
			const struct partition_entry *e = &c->row[r].entry[i];

			if (!counts(v, r, e->peer) || (found && e->since >= oldest->since))
				continue;
			*oldest = (struct partition_pair){r, e->peer, e->since};
			found = true;
		}
	return found;
}

struct node_count {
	uint32_t ranks, cuts, spared;
};

/* cut[a * nodes + b]: somebody on one of them can't reach somebody on the other one. */
static void look(const struct partition *c, const struct partition_view *v, bool *cut,
		 struct node_count *count)
{
	for (uint32_t r = 0; r < c->nranks; r++) {
		uint32_t a = v->node_of[r];

		if (a < v->nodes)
			count[a].ranks++;
		for (uint32_t i = 0; i < c->row[r].count; i++) {
			uint32_t b = v->node_of[c->row[r].entry[i].peer];

			if (!counts(v, r, c->row[r].entry[i].peer) || cut[a * v->nodes + b])
				continue;
			cut[a * v->nodes + b] = cut[b * v->nodes + a] = true;
			count[a].cuts++;
			count[b].cuts++;
		}
	}
}

/* b, the later one, goes rather than a. */
static bool rather(const struct node_count *a, const struct node_count *b)
{
	if (a->cuts != b->cuts)
		return b->cuts > a->cuts;
	if (a->spared != b->spared)
		return b->spared > a->spared;
	return b->ranks <= a->ranks;
}

static uint32_t worst(const struct partition_view *v, const struct node_count *count)
{
	uint32_t found = PARTITION_NOWHERE;

	for (uint32_t k = 0; k < v->nodes; k++)
		if (count[k].cuts &&
		    (found == PARTITION_NOWHERE || rather(&count[found], &count[k])))
			found = k;
	return found;
}

static void take_out(const struct partition_view *v, bool *cut, struct node_count *count,
		     uint32_t k)
{
	count[k].cuts = 0;
	for (uint32_t other = 0; other < v->nodes; other++) {
		if (!cut[k * v->nodes + other])
			continue;
		cut[k * v->nodes + other] = cut[other * v->nodes + k] = false;
		count[other].cuts--;
	}
}

uint32_t partition_choose(struct partition *c, const struct partition_view *v, bool *out)
{
	size_t nodes = v->nodes;
	bool *cut = calloc(nodes * nodes + 1, sizeof(*cut));
	struct node_count *count = calloc(nodes + 1, sizeof(*count));
	uint32_t chosen = 0;

	memset(out, 0, nodes * sizeof(*out));
	if (cut && count) {
		for (uint32_t k = 0; k < v->nodes && k < c->nodes; k++)
			count[k].spared = c->spared[k];
		look(c, v, cut, count);
		for (uint32_t k = 0; k < v->nodes && k < c->nodes; k++)
			c->spared[k] += count[k].cuts > 0;
		for (uint32_t k; (k = worst(v, count)) != PARTITION_NOWHERE; chosen++) {
			out[k] = true;
			if (k < c->nodes)
				c->spared[k] = 0;
			take_out(v, cut, count, k);
		}
	}
	free(cut);
	free(count);
	return chosen;
}
