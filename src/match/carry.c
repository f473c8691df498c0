/* SPDX-License-Identifier: BSD-3-Clause */
/* A process becomes another program (channel/carry/carry.h): the ledgers go on, since peers count
 * on, and messages that have come for that program already go along. */
#include "channel/carry/carry.h"

#include "match/internal.h"

bool match_unanswered(void)
{
	return match.unanswered > 0;
}

void match_unexpected_drop(const struct comm *but)
{
	for (uint32_t id = 0; id < MATCH_CONTEXTS; id++) {
		struct context *c = match.context[id];
		if (!c || id / COMM_CONTEXTS == but->context / COMM_CONTEXTS)
			continue;
		while (c->first) {
			struct match_message *m = c->first;
			unexpected_remove(m);
			heap_free(m);
		}
	}
}

static void ledgers_save(struct carry *c)
{
	uint32_t end = MATCH_CONTEXTS;
	for (uint32_t id = 0; id < MATCH_CONTEXTS; id++)
		for (uint32_t i = 0; match.context[id] && i < match.nranks; i++) {
			struct flow *f = match.context[id]->flow[i];
			if (!f)
				continue;
			carry_bytes(c, &id, sizeof(id));
			carry_bytes(c, &f->peer, sizeof(f->peer));
			carry_bytes(c, &f->ledger, sizeof(f->ledger));
		}
	carry_bytes(c, &end, sizeof(end));
}

static void ledgers_load(struct carry *c)
{
	for (;;) {
		uint32_t id, peer;
		carry_bytes(c, &id, sizeof(id));
		if (id == MATCH_CONTEXTS || c->failed)
			return;
		carry_bytes(c, &peer, sizeof(peer));
		struct flow *f = flow_of(id, peer);
		carry_bytes(c, &f->ledger, sizeof(f->ledger));
	}
}

static void messages_save(struct carry *c)
{
	uint32_t end = MATCH_ANY;
	for (uint32_t id = 0; id < MATCH_CONTEXTS; id++)
		for (struct match_message *m = match.context[id] ? match.context[id]->first : NULL;
		     m; m = m->later) {
			carry_bytes(c, &m->from, sizeof(m->from));
			carry_bytes(c, &m->envelope, sizeof(m->envelope));
			carry_bytes(c, m->payload, m->envelope.length);
		}
	carry_bytes(c, &end, sizeof(end));
}

static void messages_load(struct carry *c)
{
	for (;;) {
		uint32_t from;
		struct envelope e;
		carry_bytes(c, &from, sizeof(from));
		if (from == MATCH_ANY || c->failed)
			return;
		carry_bytes(c, &e, sizeof(e));
		if (c->failed)
			return;
		unsigned char *payload = match_memory(e.length ? e.length : 1);
		carry_bytes(c, payload, e.length);
		unexpected_add(flow_of(e.context, from), &e, payload);
		heap_free(payload);
	}
}

bool match_carry(struct carry *c)
{
	if (!c->loading && (!match_settled() || match.suspended || match.unanswered))
		return false;
	if (!channel_carry_all(c))
		return false;
	carry_bytes(c, &match.share_generation, sizeof(match.share_generation));
	if (c->loading) {
		ledgers_load(c);
		messages_load(c);
	} else {
		ledgers_save(c);
		messages_save(c);
	}
	return true;
}
