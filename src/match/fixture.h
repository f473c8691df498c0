/* SPDX-License-Identifier: BSD-3-Clause */
/* For tests of match/ and channel/: forks ranks around a fresh segment and stands in for what is
 * above (a communicator of all) and beside (link, guard, the coordinator of checkpoints). */
#ifndef HALE_MATCH_FIXTURE_H
#define HALE_MATCH_FIXTURE_H

#include "match/internal.h"

extern struct comm world; /* all ranks */
extern struct comm other; /* all ranks in another context */
#define BYTES ((struct datatype *)MPI_BYTE)
#define INTS  ((struct datatype *)MPI_INT)

/* Runs body(rank) in so many processes, inside the guard, between match_init and match_fini.
 * cores below ranks: oversubscribed. Returns 0 when all ended well. A rank that is still running
 * after four minutes is killed; that counts as a failure. */
int fixture_run(uint32_t ranks, uint32_t cores, void (*body)(int rank));

/* On how many nodes (1 or 2) the ranks of the following runs live, in order: at first and after
 * every second restart, and after the others. The address directories of the nodes are brought to
 * each other. */
void fixture_nodes(uint32_t first, uint32_t then);

/* The same without match/: for tests of channels alone. */
int fixture_run_bare(uint32_t ranks, uint32_t cores, void (*body)(int rank));

/* In a rank: ends it with a message if the condition does not hold. */
#define REQUIRE(what)                                                                              \
	do {                                                                                       \
		if (!(what))                                                                       \
			fixture_fail(__FILE__, __LINE__, #what);                                   \
	} while (0)
void fixture_fail(const char *file, int line, const char *what) __attribute__((noreturn));

/* Contents of message k from that rank; are they still what they were? At most FIXTURE_MAX. */
enum { FIXTURE_MAX = 4 << 20 };
void fixture_fill(unsigned char *p, size_t n, int from, int k);
bool fixture_holds(const unsigned char *p, size_t n, int from, int k);

/* How many of this rank's sleeps nobody has ended. */
extern int fixture_overslept;
/* Behind channel/faulty sends are refused although there is room, which nobody makes then, and what
 * a helper could copy later may not be there to be copied. */
bool fixture_is_faulty(void);

/* Without messages: waits until all ranks are here. Does not move messages on. */
void fixture_meet(void);

/* Moves messages on until none waits for room. */
void fixture_settle(void);

/* A number for the other ranks, and theirs. */
void fixture_say(int rank, uint32_t number);
uint32_t fixture_said(int rank);

/* As after a restart: a new, zeroed segment in the place of the old one. */
void fixture_new_life(void);

/* A checkpoint as ckpt/ would do it, by all ranks at about this time. restored: continues as after
 * a restart, in a new and zeroed segment. */
void fixture_checkpoint(bool restored);
/* The same, at a safe point within the next waiting that this rank does, after so many rounds. */
void fixture_checkpoint_in(int rounds, bool restored);
/* Asks all ranks for one by signal, as an agent does: each does it at its next safe point. Then
 * every rank must call fixture_checkpoint_await with the number of checkpoints so far. */
void fixture_checkpoint_ask(bool restored);
void fixture_checkpoint_await(uint32_t count);
/* Suspends, waits a little, and gives up, as when another rank did not answer. */
void fixture_checkpoint_cancelled(void);
/* The next checkpoint has the id after the next: for ranks that did not see a given-up one. */
void fixture_round_skip(void);

#endif
