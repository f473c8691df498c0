/* SPDX-License-Identifier: BSD-3-Clause */
/* Wraps channels, and makes them do by a seed what the contract (channel/channel.h) allows and
 * hardly ever happens: refuse, come to nothing for now, copy a part. On request it also does what
 * no channel may: lose, double or change a record, end its process. So tests of a channel's users
 * meet on every machine what a busy network does once in a while.
 *
 * It knows nothing of which channels there are. May call: the channels it is given, base/. Called
 * by: tests (match/channel_test.c). It is in no library that is installed.
 */
#ifndef HALE_CHANNEL_FAULTY_FAULTY_H
#define HALE_CHANNEL_FAULTY_FAULTY_H

#include "channel/channel.h"

/* Of 1000 calls so many. All 0: as if it were not there. */
struct channel_faults {
	uint32_t seed;
	/* what the contract allows */
	uint32_t refuse;    /* send, reserve, announce: would block */
	uint32_t idle;	    /* poll looks at nothing */
	uint32_t undrained; /* drained says not yet */
	uint32_t partly;    /* get, put: a part, or nothing for now */
	/* what nothing may do: only records of kinds up to kind_max */
	uint32_t lose, twice, change;
	uint32_t kind_max;
	uint64_t kill_at; /* at that send the process is killed; 0: never */
};

/* channel_faulty[i] stands for the i-th of these from now on; the first one polls, suspends and
 * closes for all. The list is the caller's, and stays. */
void channel_faulty_wrap(const struct channel_ops *const *inner, size_t count,
			 const struct channel_faults *faults);

enum { CHANNEL_FAULTY_MAX = 3 };
extern struct channel_ops channel_faulty[CHANNEL_FAULTY_MAX];

/* What it has done since it was wrapped: tests must not pass because nothing happened. */
struct channel_faults_done {
	uint64_t refused, idled, undrained, partly, lost, doubled, changed;
};
struct channel_faults_done channel_faulty_done(void);

#endif
