/* SPDX-License-Identifier: BSD-3-Clause */
/* deliver/: the ledger, and the policies that build on it. Messages of each ordered pair of ranks
 * in a context are numbered 1, 2, 3, … in the order in which they leave; the receiver takes each
 * number once and in order. So it can always say "I have n", whoever sent the copy and from which
 * life of the process. Ledgers are private memory: they are in the image.
 *
 * May call: channel/, ckpt/, base/. Called by: match/, for every message (not for its own control
 * records): deliver_next before it leaves, deliver_sent when it has left, deliver_accept when one
 * arrives. Adding a policy is one file and one line in the table of deliver.c.
 */
#ifndef HALE_DELIVER_DELIVER_H
#define HALE_DELIVER_DELIVER_H

#include <stdbool.h>
#include <stdint.h>
#include "base/base.h"
#include "channel/channel.h"

/* Kinds of records: match/'s protocols, docs/channels.md. A policy may have its own, from 128 on.
 */
enum record_kind {
	/* messages: numbered by the ledger, matched */
	RECORD_EAGER = 1, /* the payload */
	RECORD_SYNC,	  /* the payload; the sender waits for ACK. id: its request */
	RECORD_RTS,	  /* struct rts. id: the sender's request */
	/* between the two requests of a message; not numbered. id: the request they are for */
	RECORD_ACK,	  /* matched */
	RECORD_CTS,	  /* struct cts: send the payload as DATA, or help to copy */
	RECORD_DATA,	  /* the next bytes */
	RECORD_FIN,	  /* the receiver has it all */
	RECORD_CANCEL,	  /* take the message back if it is not matched. id: the sender's request */
	RECORD_CANCELLED, /* the answer; tag is 1: taken back, 0: too late */
	RECORD_PRESSURE,  /* tag is 1: send nothing that I must keep for you; 0: again as usual */
};

enum { DELIVER_CONTEXTS = 8192 };

/* Of this process and one peer in one context. Contexts are reused, ledgers go on: both ends count
 * by the peer's rank in the job, so they agree whatever communicators come and go. */
struct ledger {
	uint64_t sent; /* messages to the peer that have left */
	uint64_t have; /* messages from the peer that were accepted */
};

/* What a policy adds. Called inside the guard; must not block. NULL slots: nothing to add. */
struct deliver_ops {
	const char *name;
	/* a message has left */
	void (*sent)(struct ledger *l, uint32_t to, const struct envelope *e, const void *payload);
	/* the next message was accepted */
	void (*accepted)(struct ledger *l, uint32_t from, const struct envelope *e,
			 const void *payload);
	/* A message that is not the next one. distance = its number - (have + 1): below 0 it came
	 * before, above 0 others are missing. True: deliver it all the same. Mandatory. */
	bool (*other)(struct ledger *l, uint32_t from, const struct envelope *e,
		      const void *payload, int32_t distance);
};

extern const struct deliver_ops deliver_plain;
extern const struct deliver_ops deliver_redundant; /* redundant.h */

/* The policy of this job; deliver_plain unless another one is chosen. */
extern const struct deliver_ops *deliver_policy;

/* Chooses by name before the first message. HALE_ERR_UNSUPPORTED: no such policy. */
hale_status_t deliver_choose(const char *name, struct error *err);

/* The number that the next message must carry. */
static inline uint32_t deliver_next(const struct ledger *l)
{
	return (uint32_t)l->sent + 1;
}

static inline void deliver_sent(struct ledger *l, uint32_t to, const struct envelope *e,
				const void *payload)
{
	l->sent++;
	if (UNLIKELY(deliver_policy->sent != NULL))
		deliver_policy->sent(l, to, e, payload);
}

/* False: not to be matched. */
static inline bool deliver_accept(struct ledger *l, uint32_t from, const struct envelope *e,
				  const void *payload)
{
	int32_t distance = (int32_t)(e->number - ((uint32_t)l->have + 1));
	if (UNLIKELY(distance != 0))
		return deliver_policy->other(l, from, e, payload, distance);
	l->have++;
	if (UNLIKELY(deliver_policy->accepted != NULL))
		deliver_policy->accepted(l, from, e, payload);
	return true;
}

#endif
