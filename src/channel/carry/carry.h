/* SPDX-License-Identifier: BSD-3-Clause */
/* What a process hands to the program that it becomes (link_become): counters of which its peers
 * have the other ends, and what has come for that program already. The way is a file without a
 * name, whose descriptor HALE_CARRY names; the program's MPI_Init reads it.
 *
 *   the process                          the program that it becomes
 *     carry_begin                          MPI_Init, as each layer begins:
 *     match_carry, coll_carry, …             match_carry, coll_carry, …
 *     carry_file, link_become                carry_end
 *
 * Each layer has one function for both directions, which calls carry_bytes with the same sizes in
 * the same order, so the two can't disagree. */
#ifndef HALE_CHANNEL_CARRY_CARRY_H
#define HALE_CHANNEL_CARRY_CARRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct carry {
	bool loading; /* from bytes; else into them */
	bool failed;  /* no memory, or fewer bytes than asked for: everything after is zero */
	unsigned char *bytes;
	size_t length, room; /* bytes that are there, that fit */
	size_t at;	     /* loading: the next one */
};

/* Empty, to be filled. */
void carry_begin(struct carry *c);
/* n bytes at p go into c, or come from it. */
void carry_bytes(struct carry *c, void *p, size_t n);
/* Frees what c holds. */
void carry_drop(struct carry *c);

/* A descriptor that the next program inherits; -1: errno says why there is none. */
int carry_file(const struct carry *c);
/* What the program before this one has handed over; NULL: nothing, or carry_end was called. A file
 * that is damaged ends the job. */
struct carry *carry_arrived(void);
void carry_end(void);

#endif
