/* SPDX-License-Identifier: BSD-3-Clause */
/* The arithmetic of the lease under which a node may run ranks (docs/nodes.md). Pure: times are the
 * caller's, in nanoseconds of a clock of its own; the two sides never compare theirs.
 *
 *   agent   ask n at a ────────▶ head: grants at g ≥ a, unless the node counts as lost
 *           may run until a + T   takes the node for lost after g + T + margin at the earliest
 *
 * Whatever happens to the messages, a + T ≤ g + T < g + T + margin: the node has stopped its ranks
 * before the head starts them elsewhere. The margin is for clocks that don't run equally fast, and
 * for the time that killing takes.
 */
#ifndef HALE_WIRE_LEASE_LEASE_H
#define HALE_WIRE_LEASE_LEASE_H

#include <stdbool.h>
#include <stdint.h>

enum { LEASE_ASKS = 16 };

/* The agent's side. */
struct lease_held {
	uint64_t term;		 /* T; 0: there is no lease, everything is allowed */
	uint64_t asked;		 /* asks so far; the first is number 1 */
	uint64_t at[LEASE_ASKS]; /* when ask n was sent: at[n % LEASE_ASKS] */
	uint64_t granted, until; /* the newest granted ask, and what follows from it; 0: none */
};

/* Returns the number of the ask. */
uint64_t lease_ask(struct lease_held *l, uint64_t now);
/* False if that was never asked, or is too old to mean anything. */
bool lease_grant(struct lease_held *l, uint64_t number);
bool lease_holds(const struct lease_held *l, uint64_t now);
/* Nothing is granted any more: ranks must not run. */
void lease_drop(struct lease_held *l);

/* The head's side: when a node whose last lease was granted at that time may be taken for lost. */
uint64_t lease_lost_at(uint64_t term, uint64_t granted_at);

/* Nanoseconds of the clock that both sides use, which goes on while the machine sleeps. */
uint64_t lease_clock(void);

#endif
