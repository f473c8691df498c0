/* SPDX-License-Identifier: BSD-3-Clause */
/* Determinants: what a program can't know by itself, so that two replicas of a rank could see it
 * differently: which message a wildcard matched, whether a test found something, what time it is.
 * The leader of the rank decides and says so; its followers replay (docs/redundancy.md). In jobs
 * without replicas every question is answered by DECIDE_HERE and costs one look at a flag.
 *
 * A question is asked at the same points of the program in all replicas:
 *
 *     switch (decide_ask(kind, &answer, sizeof(answer))) {
 *     case DECIDE_HERE: find out; decide_tell(kind, yes, &answer, sizeof(answer)); …
 *     case DECIDE_YES:  answer is the leader's; wait until it is true here, too
 *     case DECIDE_NO:   the leader saw nothing
 *     }
 *
 * Called inside the guard; may wait, with progress and safe points. */
#ifndef HALE_MATCH_DECIDE_H
#define HALE_MATCH_DECIDE_H

#include <stddef.h>
#include <stdint.h>
#include "base/base.h"
#include "deliver/redundant.h"

typedef enum decide_turn { DECIDE_HERE, DECIDE_NO, DECIDE_YES } decide_turn_t;

enum decide_kind {
	DECIDE_WILD = 1, /* which message a receive from any source got */
	DECIDE_UNTIL,	 /* all questions up to this one: no */
	DECIDE_TEST,
	DECIDE_ALL,
	DECIDE_ANY,  /* int32_t: index of the request */
	DECIDE_SOME, /* int32_t []: indices */
	DECIDE_PROBE,
	DECIDE_CANCEL,
	DECIDE_TIME, /* double: seconds */
	DECIDE_LIBC, /* what libc has said; no question, see decide_libc.c */
	DECIDE_FILE, /* struct libc_replay_file: how a file was opened */
	DECIDE_NODE, /* struct: which ranks share the leader's node */
	DECIDE_NAME, /* char [DECIDE_VALUE]: that node's name */
	DECIDE_KINDS,
};

enum { DECIDE_BYTES = 2048 }; /* of an answer, at most */
enum { DECIDE_VALUE = 256 };  /* of one for decide_value */

decide_turn_t decide_ask_slow(enum decide_kind kind, void *answer, size_t *size);
void decide_tell_slow(enum decide_kind kind, bool yes, const void *answer, size_t size);

/* *size: of answer, then of what is there. */
static inline decide_turn_t decide_ask(enum decide_kind kind, void *answer, size_t *size)
{
	return LIKELY(!redundant_on) ? DECIDE_HERE : decide_ask_slow(kind, answer, size);
}

/* After DECIDE_HERE, once. Returns yes. */
static inline bool decide_tell(enum decide_kind kind, bool yes, const void *answer, size_t size)
{
	if (UNLIKELY(redundant_on))
		decide_tell_slow(kind, yes, answer, size);
	return yes;
}

/* A question that has always an answer: the leader's replaces what *value is. At most DECIDE_VALUE
 * bytes. */
void decide_value(enum decide_kind kind, void *value, size_t size);

/* For ckpt/libc_replay.h (decide_libc.c). */
extern const struct libc_replay_hooks decide_libc_hooks;
/* For these: YES: answer is what the leader was told at this point of the program; NO: the
 * leader is further, and was told nothing; HERE: this process leads. *late: nothing is known. */
decide_turn_t decide_libc_heard(void *answer, size_t size, bool *late);
void decide_libc_say(const void *answer, size_t size);

/* The question that was DECIDE_HERE is the leader's again, which is another process since: waits
 * for its answer end, and it has to be asked once more. */
bool decide_withdrawn(void);

/* This replica has done something else than its leader: says what, and ends this process; the rank
 * goes on in the others. */
_Noreturn void decide_differs(const char *what);
/* It asks this where its leader asked that, or nothing (0). */
_Noreturn void decide_kinds_differ(enum decide_kind here, uint32_t there);

#endif
