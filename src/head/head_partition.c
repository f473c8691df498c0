/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks tell the head whom they can't reach. If a node is behind it, its lease ends, and that is
 * that (node_set_lost.c). If not, both nodes answer the head, and only the way between them is
 * gone: who waits for the other may wait for ever. So after a time in which a lost node would have
 * shown itself, nodes are taken out until all others reach each other (policy/partition.h), and all
 * ranks go on from the newest checkpoint. Taken out means left with no rank, and unusable; not
 * lost. */
#include <stdio.h>
#include <stdlib.h>
#include "base/base.h"
#include "head/nodes/node_set_private.h"
#include "policy/partition.h"
#include "head/head.h"
#include "head/head_private.h"
#include "head/watch/watch.h"

/* Where nothing can be saved by giving up, the cable gets that many times as long. */
enum { PATIENCE = 10 };

/* A timer that fires later than that was not late by itself: the head stood still, and what ranks
 * have said meanwhile has not been read. */
#define STOOD_STILL  1.0
#define LOOK_SECONDS 0.05

/* Ranks that have begun anew say again whom they can't reach: after 2 s (docs/nodes.md), and every
 * 5 s. */
#define SAID_AGAIN 7.0

static void review(struct head *h);

/* By then a node that is lost is known to be: the lease and its margin are 1.2 T + 0.25 s. */
static double grace(const struct head *h)
{
	return 1.5 * h->o->node_timeout + 1;
}

static void fire(void *arg)
{
	struct head *h = arg;
	double now = clock_seconds();

	if (now - h->partition.due > STOOD_STILL)
		partition_renew(h->partition.table, now);
	review(h);
}

static void arm(struct head *h, double seconds)
{
	h->partition.due = clock_seconds() + seconds;
	loop_timer_set(&h->loop, &h->partition.timer, seconds, fire, h);
}

void head_partition_fini(struct head *h)
{
	loop_timer_clear(&h->loop, &h->partition.timer);
	partition_destroy(h->partition.table);
	h->partition = (struct head_partition){0};
}

/* Of this life of the job only. */
static struct partition *table_of(struct head *h)
{
	struct head_partition *c = &h->partition;

	bool first = !c->table;

	if (first)
		c->table = partition_create(h->nranks, h->node_set.count);
	else if (c->generation != h->generation)
		partition_forget(c->table);
	/* where ranks have moved, what was said is still to be taken back */
	if (c->generation != h->generation && c->restarts != h->report.restarts)
		c->under_way = c->patient = false;
	else if (c->generation != h->generation && !first)
		c->known_at = clock_seconds() + SAID_AGAIN;
	c->generation = h->generation;
	c->restarts = h->report.restarts;
	return c->table;
}

/* Who has ended, or is about to, needs nobody any more. */
static uint32_t *places(struct head *h)
{
	uint32_t *node_of = malloc((h->nranks + 1) * sizeof(*node_of));

	for (uint32_t r = 0; node_of && r < h->nranks; r++) {
		const struct node *n = node_set_node_of(&h->node_set, r);
		bool counts =
		    !h->ranks[r].ended && !h->node_set.ranks[r].finalized && node_usable(n);

		node_of[r] = counts ? n->index : PARTITION_NOWHERE;
	}
	return node_of;
}

static const char *node_name(const struct head *h, uint32_t rank)
{
	return node_set_node_of(&h->node_set, rank)->name;
}

/* The first, the second, the fourth … time: cables may come and go. */
static bool worth_a_word(const struct head *h)
{
	return (h->partition.times & (h->partition.times - 1)) == 0;
}

static void say_begun(struct head *h, const struct partition_pair *p)
{
	h->partition.under_way = true;
	h->partition.times++;
	if (worth_a_word(h))
		head_say(h,
			 "rank %u on node %s can't reach rank %u on node %s over the network; if "
			 "that stays so for %.0f s, and both nodes answer, the job goes on without "
			 "one of them",
			 p->rank, node_name(h, p->rank), p->peer, node_name(h, p->peer), grace(h));
}

static void say_over(struct head *h)
{
	double now = clock_seconds();

	if (h->partition.under_way && now < h->partition.known_at) {
		arm(h, h->partition.known_at - now);
		return;
	}
	if (h->partition.under_way && worth_a_word(h))
		head_say(h, "all ranks reach each other again");
	h->partition.under_way = h->partition.patient = false;
	loop_timer_clear(&h->loop, &h->partition.timer);
}

static void say_patience(struct head *h, const struct partition_pair *p, const char *why_not)
{
	if (!h->partition.patient)
		head_say(
		    h,
		    "rank %u on node %s and rank %u on node %s still can't reach each other; "
		    "without one of the nodes %s; so the job waits for the network, until %.0f s "
		    "have gone by (behind a firewall: HALE_NET_PORTS=40000-40999 uses ports that "
		    "it "
		    "lets pass, HALE_NET_DEVICES the interfaces that it doesn't watch)",
		    p->rank, node_name(h, p->rank), p->peer, node_name(h, p->peer), why_not,
		    PATIENCE * grace(h));
	h->partition.patient = true;
}

/* Of several nodes the first one stands for all in the report. */
static void take_out(struct head *h, const struct partition_view *v, const struct partition_pair *p)
{
	bool *out = calloc(h->node_set.count + 1, sizeof(*out));
	uint32_t count = out ? partition_choose(h->partition.table, v, out) : 0, first = 0, more;

	if (count > 0) {
		while (!out[first])
			first++;
		more = count - 1;
		snprintf(h->lost.name, sizeof(h->lost.name), "%s", h->node_set.nodes[first].name);
		snprintf(h->lost.why, sizeof(h->lost.why),
			 "rank %u on node %s has not reached rank %u on node %s for %.0f s, though "
			 "both nodes answer",
			 p->rank, node_name(h, p->rank), p->peer, node_name(h, p->peer),
			 clock_seconds() - p->since);
		for (uint32_t k = first + 1; k < h->node_set.count && more > 0; k++)
			if (out[k])
				head_say(h, "node %s is cut off, too", h->node_set.nodes[k].name);
		head_cut_off(h, out);
	}
	free(out);
}

static void judge(struct head *h, const struct partition_view *v,
		  const struct partition_pair *oldest)
{
	double waited = clock_seconds() - oldest->since;
	const char *why_not;

	if (waited < grace(h)) {
		arm(h, grace(h) - waited);
		return;
	}
	if (head_unsettled(h)) {
		arm(h, LOOK_SECONDS);
		return;
	}
	why_not = head_why_not_without(h);
	if (why_not && waited < PATIENCE * grace(h)) {
		say_patience(h, oldest, why_not);
		arm(h, grace(h));
		return;
	}
	take_out(h, v, oldest);
}

static void review(struct head *h)
{
	struct partition_pair oldest;
	struct partition_view v;
	uint32_t *node_of;

	if (h->state != JOB_RUNNING) {
		arm(h, grace(h)); /* of a life that is over soon; or it begins anew in this one */
		return;
	}
	table_of(h);
	node_of = places(h);
	v = (struct partition_view){.node_of = node_of, .nodes = h->node_set.count};
	if (!node_of) {
		arm(h, grace(h));
	} else if (!partition_oldest(h->partition.table, &v, &oldest)) {
		say_over(h);
	} else {
		if (!h->partition.under_way)
			say_begun(h, &oldest);
		judge(h, &v, &oldest);
	}
	free(node_of);
}

/* What was said was of the processes before, and a copy takes it back too early to be heard. */
void head_partition_begin(struct head *h)
{
	struct head_partition *c = &h->partition;

	if (!c->table)
		return;
	table_of(h);
	partition_forget(c->table);
	c->known_at = clock_seconds() + SAID_AGAIN;
	if (c->under_way)
		arm(h, SAID_AGAIN);
}

void head_partition_told(struct head *h, uint32_t rank, uint32_t peer, bool lost)
{
	struct partition *c = table_of(h);

	if (!c)
		return;
	partition_told(c, rank, peer, lost, clock_seconds());
	review(h);
}
