/* SPDX-License-Identifier: BSD-3-Clause */
#include "head/standby/warm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "head/head.h"

/* Programs load most of what they need in their first second, and some of it later. */
#define FIRST_SECONDS 1.0
#define LONGER	      4.0
#define LONGEST	      256.0
#define APART_SECONDS 10.0 /* between two looks because of checkpoints */

enum { LIST_MAX = 1 << 20, LISTS_MAX = 8, EPOCH_SHIFT = 20 };

static void look(void *arg);

static bool any_spare(const struct head *h)
{
	for (uint32_t k = 0; k < h->node_set.count; k++)
		if (h->node_set.nodes[k].state == NODE_SPARE)
			return true;
	return false;
}

static void forget(struct warm *w)
{
	while (w->lists) {
		struct warm_list *l = w->lists;

		w->lists = l->next;
		free(l);
	}
}

/* As many ranks as come when another node is lost. */
static uint32_t sinks_on(const struct head *h, const struct node *n)
{
	uint32_t most = 0;

	if (h->o->warm_sinks != WARM_ALL)
		return (uint32_t)h->o->warm_sinks;
	for (uint32_t k = 0; k < h->node_set.count; k++) {
		uint32_t ranks = node_set_ranks_on(&h->node_set, &h->node_set.nodes[k]);

		most = ranks > most ? ranks : most;
	}
	return n->slots && n->slots < most ? n->slots : most;
}

static void tell(struct head *h, struct node *n, const struct warm_list *l)
{
	n->warm.told = true;
	node_set_tell(&h->node_set, n->index,
		      &(struct message){.type = MSG_WARM,
					.id = h->warm.look,
					.number = sinks_on(h, n),
					.bytes = l->bytes,
					.len = l->len});
}

static void look_in(struct head *h, double seconds)
{
	if (h->o->warm_sinks == WARM_OFF)
		return;
	loop_timer_set(&h->loop, &h->warm.timer, seconds, look, h);
}

/* What is no spare any more needs nothing of it. */
static void end_elsewhere(struct head *h)
{
	for (uint32_t k = 0; k < h->node_set.count; k++) {
		struct node *n = &h->node_set.nodes[k];

		if (!n->warm.told || n->state != NODE_READY)
			continue;
		n->warm.told = false;
		n->warm.standing = 0;
		n->warm.bytes = 0;
		node_set_tell(&h->node_set, k,
			      &(struct message){.type = MSG_WARM, .id = h->warm.look});
	}
}

static void look(void *arg)
{
	struct head *h = arg;
	struct warm *w = &h->warm;

	if (h->state == JOB_RUNNING && !h->moves.now)
		end_elsewhere(h);

	w->pause = w->pause * LONGER < LONGEST ? w->pause * LONGER : LONGEST;
	look_in(h, w->pause);
	if (h->state != JOB_RUNNING || !h->node_set.laid_out || !any_spare(h))
		return;
	forget(w);
	/* numbers of another head are not used again */
	w->look = w->look ? w->look + 1 : (h->succession.epoch << EPOCH_SHIFT) + 1;
	w->looked_at = clock_seconds();
	for (uint32_t k = 0; k < h->node_set.count; k++)
		if (node_set_ranks_on(&h->node_set, &h->node_set.nodes[k]) > 0)
			node_set_tell(&h->node_set, k,
				      &(struct message){.type = MSG_MAPS, .id = w->look});
}

void warm_again(struct head *h)
{
	h->warm.pause = FIRST_SECONDS;
	look_in(h, FIRST_SECONDS);
}

void warm_refresh(struct head *h)
{
	double since = clock_seconds() - h->warm.looked_at;

	if (h->warm.pause == 0) /* it has not begun */
		return;
	if (h->warm.pause > APART_SECONDS)
		look_in(h, since < APART_SECONDS ? APART_SECONDS - since : 0);
}

/* Most nodes say the same. */
static void take_mapped(struct head *h, const struct message *m)
{
	struct warm *w = &h->warm;
	struct warm_list *l;
	size_t count = 0;

	if (m->id != w->look || m->len == 0 || m->len > LIST_MAX)
		return;
	for (l = w->lists; l; l = l->next, count++)
		if (l->len == m->len && memcmp(l->bytes, m->bytes, m->len) == 0)
			return;
	l = count < LISTS_MAX ? malloc(sizeof(*l) + m->len) : NULL;
	if (!l)
		return;
	l->len = m->len;
	memcpy(l->bytes, m->bytes, m->len);
	l->next = w->lists;
	w->lists = l;
	for (uint32_t k = 0; k < h->node_set.count; k++)
		if (h->node_set.nodes[k].state == NODE_SPARE)
			tell(h, &h->node_set.nodes[k], l);
}

/* Who doesn't have the program as the ranks have it gets ranks only if nobody else can. */
static void take_warmed(struct head *h, struct node *n, const struct message *m)
{
	bool same = strcmp(n->warm.unfit, m->text) == 0;

	if (m->id != h->warm.look)
		return;
	n->warm.bytes = m->number;
	n->warm.standing = m->value > 0 ? (uint32_t)m->value : 0;
	if (m->name[0] && strcmp(m->name, n->warm.stands) != 0)
		log_info("node %s: %s", n->name, m->name);
	snprintf(n->warm.stands, sizeof(n->warm.stands), "%s", m->name);
	snprintf(n->warm.unfit, sizeof(n->warm.unfit), "%s", m->text);
	if (same || n->state != NODE_SPARE)
		return;
	if (n->warm.unfit[0])
		head_say(h, "node %s could not take over ranks: %s", n->name, n->warm.unfit);
	else
		head_say(h, "node %s can take over ranks now", n->name);
}

void warm_message(struct head *h, struct node *n, const struct message *m)
{
	if (m->type == MSG_MAPPED)
		take_mapped(h, m);
	else
		take_warmed(h, n, m);
}

void warm_renewed(struct head *h, struct node *n)
{
	if (n->state != NODE_SPARE)
		return;
	for (const struct warm_list *l = h->warm.lists; l; l = l->next)
		tell(h, n, l);
}

void warm_fini(struct head *h)
{
	loop_timer_clear(&h->loop, &h->warm.timer);
	forget(&h->warm);
}
