/* SPDX-License-Identifier: BSD-3-Clause */
/* The head keeps an eye on how fast its job goes, and takes down in the end what it did. The meters
 * are with the ranks: agents are asked for them, and what depends on them waits for the answer. */
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "head/head.h"
#include "head/migration/migrate.h"

static enum profile_phase phase_of(const struct head *h)
{
	if (h->state != JOB_RUNNING || !head_all_ready(h) || head_any_finalized(h) ||
	    head_migration_stops(h))
		return PROFILE_DOWN;
	return h->ckpt.phase > CKPT_CHECKING ? PROFILE_CHECKPOINT : PROFILE_UNDISTURBED;
}

void head_profile_turn(struct head *h)
{
	enum profile_phase next = phase_of(h);
	struct profile_turn *t, **end = &h->profile.list;

	if (next == h->profile.phase || !h->node_set.laid_out)
		return;
	t = calloc(1, sizeof(*t));
	if (!t)
		return;
	h->profile.phase = next;
	*t = (struct profile_turn){
	    .look = node_set_look(&h->node_set, false), .next = next, .at = clock_seconds()};
	while (*end)
		end = &(*end)->next_turn;
	*end = t;
}

void head_profile_of_checkpoint(struct head *h, uint64_t number)
{
	struct profile_turn *t = h->profile.list;

	while (t && t->next_turn)
		t = t->next_turn;
	if (t)
		t->checkpoint = number;
}

static void turn(struct head *h, const struct profile_turn *t, uint64_t progress)
{
	struct report_checkpoint *c = report_checkpoint_at(&h->report, t->checkpoint);

	profile_pace_turn(&h->report.pace, t->next, t->at, progress, c ? &c->during : NULL);
}

void head_profile_looked(struct head *h, uint32_t look, const struct profile *p, uint64_t progress)
{
	h->report.profile = *p;
	while (h->profile.list && h->profile.list->look <= look) {
		struct profile_turn *t = h->profile.list;

		turn(h, t, progress);
		h->profile.list = t->next_turn;
		free(t);
	}
}

void head_profile_end(struct head *h)
{
	struct error err;

	if (h->o->profile && report_write_profile(&h->report, h->o->profile,
						  clock_seconds() - h->began, &err) != HALE_OK)
		log_warn("%s", err.text);
}

void head_profile_fini(struct head *h)
{
	for (struct profile_turn *t = h->profile.list, *next; t; t = next) {
		next = t->next_turn;
		free(t);
	}
	h->profile.list = NULL;
}
