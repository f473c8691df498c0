/* SPDX-License-Identifier: BSD-3-Clause */
/* --sdc: a process has found that the replicas of a rank have sent it different messages. With a
 * majority the message is right by now, and the replica that is not goes: a copy of another one
 * takes its place. Without one the job ends, or goes back (docs/redundancy.md, "Silent errors"). */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include "base/base.h"
#include "head/head.h"
#include "head/head_private.h"
#include "head/recovery/recovery.h"
#include "head/replicas.h"
#include "head/watch/watch.h"
#include "node/proto.h"

/* Each communicator has that many contexts, of which the first is its user's (object/comm.h). */
enum { CONTEXTS_EACH = 2, WORDS = 200 };

/* "message 17 to rank 0 in MPI_COMM_WORLD (800 bytes, of which 12 to 19 differ)" */
static void message_describe(const struct report_sdc *s, char text[WORDS])
{
	uint32_t context = s->context / CONTEXTS_EACH * CONTEXTS_EACH;
	char where[48], bytes[64] = "";

	if (context == 0)
		snprintf(where, sizeof(where), "MPI_COMM_WORLD");
	else
		snprintf(where, sizeof(where), "the communicator of context %u", context);
	if (s->envelope)
		snprintf(bytes, sizeof(bytes), "; its length, tag or kind differ");
	else if (s->named)
		snprintf(bytes, sizeof(bytes), ", of which %u to %u differ", s->first, s->last);
	snprintf(text, WORDS, "message %u to rank %u in %s%s (%u bytes%s)", s->message, s->peer,
		 where, s->context % CONTEXTS_EACH ? ", of a collective" : "", s->bytes, bytes);
}

static void found_record(struct head *h, const struct report_sdc *s)
{
	struct json_out j;

	record_begin(&j, "silent error");
	json_uint(&j, "rank", s->rank);
	json_int(&j, "slot", s->slot);
	json_uint(&j, "peer", s->peer);
	json_uint(&j, "context", s->context);
	json_uint(&j, "message", s->message);
	json_string(&j, "action", s->action);
	json_double(&j, "job_seconds", s->at_seconds);
	record_end(&h->files.record, &j);
	watch_sdc(h, s);
}

/* Each replica of the receiver may find the same message wrong. */
static bool found_before(const struct head *h, const struct report_sdc *s)
{
	size_t n = h->report.sdc_count < REPORT_SDC_MAX ? h->report.sdc_count : REPORT_SDC_MAX;

	for (size_t i = 0; i < n; i++) {
		const struct report_sdc *o = &h->report.sdc[i];
		if (o->rank == s->rank && o->slot == s->slot && o->peer == s->peer &&
		    o->context == s->context && o->message == s->message)
			return true;
	}
	return false;
}

/* ---- nobody knows which is right ---- */

static void nodes_of(const struct head *h, uint32_t rank, char *text, size_t size)
{
	size_t len = 0;

	text[0] = '\0';
	for (uint32_t s = 0; s < h->degree; s++) {
		uint32_t p = living_process(&h->view, rank, s);
		if (living_lives(&h->view, rank, s) && len < size)
			len += (size_t)snprintf(text + len, size - len, "%s%s", len ? ", " : "",
						node_set_node_of(&h->node_set, p)->name);
	}
}

/* A checkpoint has all replicas, so one with a wrong bit leads to the same difference again: then
 * it is passed over. */
static void go_back(struct head *h)
{
	uint32_t newest = recover_newest(h);

	if (newest > 0 && newest == h->sdc_back) {
		head_say(
		    h,
		    "messages have differed before since checkpoint %u, so the wrong bit may be in "
		    "it; the job goes back further",
		    newest);
		h->recovery.skip = recovery_skip_more(&h->recovery.skip, newest);
	}
	h->sdc_back = recover_newest(h);
	head_roll_back(h);
}

static void undecided(struct head *h, struct report_sdc *s)
{
	char message[WORDS], nodes[160];
	const char *why = h->o->on_sdc == ON_SDC_ROLLBACK ? head_why_not_without(h) : NULL;
	bool back = h->o->on_sdc == ON_SDC_ROLLBACK && !why;

	snprintf(s->action, sizeof(s->action), back ? "rolled back" : "stopped");
	report_add_sdc(&h->report, s);
	found_record(h, s);
	message_describe(s, message);
	nodes_of(h, s->rank, nodes, sizeof(nodes));
	head_say(h,
		 "silent error: the replicas of rank %u (on %s) have sent different copies of %s, "
		 "and nobody can say which is right; %s%s%s",
		 s->rank, nodes, message,
		 back  ? "all ranks go back"
		 : why ? "the job can't go back: "
		       : "the job ends (--on-sdc rollback: it goes back; --replicas 3: it is "
			 "corrected)",
		 why ? why : "", "");
	if (back)
		go_back(h);
	else
		head_end(h, EXIT_SDC);
}

/* ---- a majority is right ---- */

static void convicted(struct head *h, struct report_sdc *s, uint32_t process)
{
	char message[WORDS];

	snprintf(s->action, sizeof(s->action), "corrected");
	report_add_sdc(&h->report, s);
	found_record(h, s);
	if (h->view.lost[process] || h->ranks[process].convicted)
		return;
	h->ranks[process].convicted = true;
	audit_convicted(h, process);
	head_save(h);
	message_describe(s, message);
	head_say(h,
		 "silent error: replica %d of rank %u, on node %s, has sent a wrong copy of %s; it "
		 "is corrected, and the replica is ended",
		 s->slot, s->rank, s->node, message);
	node_set_signal(&h->node_set, process, SIGKILL);
}

/* While a copy of another replica is under way to take its place, it has that one's node. */
static const char *guilty_node(struct head *h, uint32_t process)
{
	if (h->view.lost[process])
		return h->node_set.nodes[h->moves.clones.homes[process]].name;
	return node_set_node_of(&h->node_set, process)->name;
}

void sdc_found(struct head *h, uint32_t process, const struct proto_sdc *p)
{
	struct report_sdc s = {.rank = p->from,
			       .peer = living_rank_of(process, h->view.nranks),
			       .slot = -1,
			       .context = p->context,
			       .message = p->number,
			       .bytes = p->length,
			       .named = p->named != 0,
			       .first = p->first,
			       .last = p->last,
			       .envelope = p->envelope != 0,
			       .at_seconds = head_seconds(h)};

	if (h->state != JOB_RUNNING || h->degree == 1 || p->from >= h->view.nranks)
		return;
	if (p->called) {
		audit_called(h, p->from);
		return;
	}
	if (p->guilty == 0) {
		undecided(h, &s);
		return;
	}
	for (uint32_t slot = 0; slot < h->degree; slot++) {
		uint32_t guilty = living_process(&h->view, p->from, slot);

		if (!(p->guilty & 1u << slot))
			continue;
		s.slot = (int)slot;
		snprintf(s.node, sizeof(s.node), "%s", guilty_node(h, guilty));
		if (!found_before(h, &s))
			convicted(h, &s, guilty);
	}
}
