// SPDX-License-Identifier: BSD-3-Clause
/* What the leader of a rank has decided, on its way to the followers (docs/redundancy.md). All
 * replicas of a rank have a prefix of the same sequence; each keeps the end of it that a living
 * mate may lack. When a leader of three dies, the two that are left send each other what they keep,
 * and then SYNCED; the next one leads when that has come: it knows then what either has heard. */
#include "deliver/replicas.h"

#include <string.h>
#include "ckpt/rank.h"

/* Two of a rank may be left behind a leader, of whom one knows more than the other. A shadow alone
 * is left behind a main: the third slot of such jobs is room for its next copy. */
static bool two_may_follow(void)
{
	return replicas.view.degree > 2 && !replicas.view.shadows;
}

static bool is_mate(uint32_t slot)
{
	const struct living *v = &replicas.view;

	return slot != replicas.slot && living_lives(v, replicas.rank, slot) &&
	       !replicas.wire[living_process(v, replicas.rank, slot)].done;
}

static struct wire *mate_wire(uint32_t slot)
{
	return &replicas.wire[living_process(&replicas.view, replicas.rank, slot)];
}

static void mate_tell(uint32_t slot, const struct envelope *e, const void *payload)
{
	replica_tell(living_process(&replicas.view, replicas.rank, slot), e, payload);
}

/* ---- what mates may lack ---- */

static void log_keep(const struct envelope *e, const void *payload)
{
	struct word *word;

	if (!two_may_follow())
		return;
	word = replica_memory(sizeof(*word) + e->length);
	word->next = NULL;
	word->envelope = *e;
	if (e->length)
		memcpy(word->payload, payload, e->length);
	if (replicas.log_last)
		replicas.log_last->next = word;
	else
		replicas.log = word;
	replicas.log_last = word;
}

static bool all_mates_have(uint32_t number)
{
	for (uint32_t s = 0; s < replicas.view.degree; s++)
		if (is_mate(s) && !number_reached(mate_wire(s)->heard, number))
			return false;
	return true;
}

static void log_drop_first(void)
{
	struct word *word = replicas.log;

	replicas.log = word->next;
	if (!replicas.log)
		replicas.log_last = NULL;
	heap_free(word);
}

static void log_trim(void)
{
	while (replicas.log && all_mates_have(replicas.log->envelope.number))
		log_drop_first();
}

void determinants_forget(void)
{
	while (replicas.log)
		log_drop_first();
}

/* ---- saying and hearing ---- */

void redundant_determine(struct envelope *e, const void *payload)
{
	e->kind = REPLICA_DETERMINANT;
	e->number = ++replicas.determined;
	log_keep(e, payload);
	for (uint32_t s = 0; s < replicas.view.degree; s++)
		if (s != replicas.slot &&
		    (living_lives(&replicas.view, replicas.rank, s) || mate_wire(s)->coming))
			mate_tell(s, e, payload);
}

/* With two replicas only the leader waits for this, and only if it is on another node. */
static void heard_tell(void)
{
	struct envelope heard = {.kind = REPLICA_HEARD, .number = replicas.determined};

	for (uint32_t s = 0; s < replicas.view.degree; s++)
		if (is_mate(s) && (two_may_follow() ||
				   !segment_here(link_self()->segment,
						 living_process(&replicas.view, replicas.rank, s))))
			mate_tell(s, &heard, NULL);
}

/* A new leader, or a copy that leads, first tells its mates again what they may lack. The former
 * leader is dead, or has this still queued, and what comes from us would overtake it. */
static void log_tell_anew(void)
{
	for (uint32_t s = 0; two_may_follow() && s < replicas.view.degree; s++)
		for (const struct word *w = replicas.log; is_mate(s) && w; w = w->next)
			if (!number_reached(mate_wire(s)->heard, w->envelope.number))
				mate_tell(s, &w->envelope, w->payload);
}

/* A process that has come back as a copy has heard what its source had heard, and a leader that was
 * on the same node has not been told what its follower has. */
void determinants_tell_anew(void)
{
	if (two_may_follow() || !replicas.leads)
		heard_tell();
	if (replicas.leads)
		log_tell_anew();
}

static _Noreturn void gap(uint32_t process, uint32_t number)
{
	log_warn("internal error: rank %u (replica %u) hears of decision %u from process %u, but "
		 "not of the one before (it has %u); please report this",
		 replicas.rank, replicas.slot, number, process, replicas.determined);
	link_abort(70);
}

void determinant_arrive(uint32_t process, const struct envelope *e, const void *payload)
{
	if (!replicas.leads && !number_reached(replicas.determined, e->number)) {
		if (UNLIKELY(e->number != replicas.determined + 1))
			gap(process, e->number);
		replicas.determined = e->number;
		log_keep(e, payload);
		replicas.hooks.heard(e, payload);
	}
	if (two_may_follow())
		determinant_heard(process, e->number);
	if (!replicas.leads || two_may_follow())
		heard_tell();
}

void determinant_heard(uint32_t process, uint32_t number)
{
	struct wire *w = &replicas.wire[process];

	if (!number_reached(w->heard, number))
		w->heard = number;
	log_trim();
}

/* What lies in the shared memory of this node survives its writer, so the leader need not wait for
 * mates there. Of three, a follower waits for the other one: the leader may have died when only one
 * of them had heard. */
bool determinants_are_safe(void)
{
	for (uint32_t s = 0; s < replicas.view.degree; s++) {
		const struct wire *w = mate_wire(s);

		if (!is_mate(s))
			continue;
		if (replicas.leads) {
			if (segment_here(link_self()->segment,
					 living_process(&replicas.view, replicas.rank, s))
				? w->first != NULL
				: w->heard != replicas.determined)
				return false;
		} else if (two_may_follow() && !number_reached(w->heard, replicas.determined)) {
			return false;
		}
	}
	return true;
}

bool redundant_determinants_left(void *unused)
{
	for (uint32_t s = 0; s < replicas.view.degree; s++)
		if (is_mate(s) && mate_wire(s)->first)
			return false;
	return true;
}

bool redundant_determinants_known(void *unused)
{
	return determinants_are_safe();
}

/* ---- another leader ---- */

static void sync_begin(void)
{
	struct envelope e = {.kind = REPLICA_SYNCED, .number = ++replicas.syncs};

	for (uint32_t s = 0; s < replicas.view.degree; s++) {
		if (!is_mate(s))
			continue;
		for (const struct word *w = replicas.log; w; w = w->next)
			mate_tell(s, &w->envelope, w->payload);
		mate_tell(s, &e, NULL);
	}
}

void determinants_synced(uint32_t process, uint32_t number)
{
	replicas.wire[process].synced = number;
	replicas.lead_again = true;
}

static bool all_are_synced(void)
{
	for (uint32_t s = 0; s < replicas.view.degree; s++)
		if (is_mate(s) && !number_reached(mate_wire(s)->synced, replicas.syncs))
			return false;
	return true;
}

/* Finds the leader of a new view. died: a process has died, so a leader that has changed is dead.
 * Then, of three replicas, the two that are left send each other what they keep. Otherwise a copy
 * has come back, and the old leader lives. */
void determinants_follow_view(bool died)
{
	int leader = living_leader(&replicas.view, replicas.rank);

	if (died && leader != replicas.leader && two_may_follow())
		sync_begin();
	replicas.leader = leader;
	log_trim();
	determinants_lead();
}

void determinants_lead(void)
{
	bool leads = replicas.leader == (int)replicas.slot && all_are_synced();
	bool before = replicas.leads;

	replicas.lead_again = false;
	replicas.leads = leads;
	if (leads && !before) {
		log_tell_anew();
		replicas.hooks.promoted();
	} else if (!leads && before) {
		replicas.hooks.demoted();
	}
}
