/* SPDX-License-Identifier: BSD-3-Clause */
/* The output of ranks that have replicas: each replica prints all of it, the user reads it once.
 *
 * The speaker of a rank is its lowest replica that lives. A clone can't be it before all output
 * that the clone has not printed itself is passed on. What the speaker prints is passed on at once.
 * What other replicas print ahead of it is kept. When the speaker dies, it is passed on from there:
 *
 *     speaker (slot 0)   ─── passed on ───┤ dies
 *     slot 1             ── dropped ──────┼── kept ──┤      passed on when slot 0 is dead
 *                                       spoken
 */
#ifndef HALE_JOB_ECHO_H
#define HALE_JOB_ECHO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One replica's stream. */
struct echo {
	char *kept; /* bytes [end - len, end) of it */
	size_t len, cap;
	uint64_t end;  /* so much it has printed */
	uint64_t from; /* a copy: what is before, who it is a copy of says */
};

/* One stream of a rank. */
struct echoes {
	struct echo *of; /* [degree] */
	uint32_t degree;
	uint64_t spoken; /* bytes passed on */
	bool over;	 /* a replica has ended well: nothing comes behind what it printed */
	uint64_t lost;	 /* bit mask of dead replicas */
	void (*pass)(void *arg, const char *text, size_t len);
	void *arg;
};

bool echo_init(struct echoes *e, uint32_t degree,
	       void (*pass)(void *arg, const char *text, size_t len), void *arg);
void echo_fini(struct echoes *e);

/* All replicas begin again. */
void echo_begin(struct echoes *e);
/* A replica has printed this. False: no memory, it is lost if the speaker dies now. */
bool echo_take(struct echoes *e, uint32_t slot, const char *text, size_t len);
/* It is dead, and what it printed has been taken. */
void echo_lost(struct echoes *e, uint32_t slot);
/* A copy of another replica is in its place, which has printed as much as that one up to there. */
void echo_returned(struct echoes *e, uint32_t slot, uint64_t position);
/* It begins again from there, and so much was printed of this stream before: as much as any of them
 * had printed. */
void echo_restored(struct echoes *e, uint32_t slot, uint64_t position);
/* It has ended as programs should. */
void echo_ended(struct echoes *e, uint32_t slot);

#endif
