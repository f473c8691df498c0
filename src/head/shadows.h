/* SPDX-License-Identifier: BSD-3-Clause */
/* Jobs with shadows (docs/shadows.md): jobs with replicas whose second processes are slow and mute.
 * What a failure means for a set is policy/shadows.h's decision; this part of the head carries it
 * out and tells. */
#ifndef HALE_HEAD_SHADOWS_H
#define HALE_HEAD_SHADOWS_H

#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"
#include "head/job/job_energy.h"
#include "policy/place.h"
#include "policy/shadows.h"

struct head;
struct json_out;
struct proto_shadow;
struct report_clone;

/* Of one process. */
struct head_shadow {
	uint64_t log_bytes, cpu_ns; /* as it said last */
	uint64_t cpu_first_ns;
	uint64_t came_bytes;
	uint32_t held; /* enum shadow_held */
	double said_at, first_at; /* 0: it has said nothing yet */
	bool stopped;		  /* the head ends it: its death is no failure */
	bool promoted;		  /* it is the main, since the one in the lower slot has died */
	const char *jumps;	  /* why it is to jump as soon as that can be; NULL: it is not */
	uint64_t jump_log_bytes;
	double rests_until; /* its log may be as long as it is, so soon after a jump */
};

struct head_shadows {
	struct shadow_layout layout;
	struct head_shadow *of; /* [processes]; NULL: the job has no shadows */
	uint32_t failures;	/* since every rank had a shadow */
	bool over;		/* all mains have ended well */
	struct head_energy energy;
	unsigned char
	    *merged;	  /* [ranks]: its set lacked a core for good, and it has joined another */
	bool unmergeable; /* that was tried, and no other set can take it */
	bool said_full;	  /* that a log is full for good */
	bool said_sleep;  /* that no control group can be made */
	bool bare;	  /* gone back to a checkpoint, which has no shadows: all are to come */
};

hale_status_t shadows_place(struct head *h, struct placement *p, struct error *err);
void shadows_fini(struct head *h);
/* Every process starts; bare: the mains only, from a checkpoint. */
void shadows_begin(struct head *h, bool bare);
void shadows_say_placement(const struct head *h);

/* How a sentence calls that process. */
const char *shadows_role(const struct head *h, uint32_t process);
/* The view has lost processes: promotes whom it makes mains, and stops who is in their way. The
 * caller publishes the view. */
void shadows_settle(struct head *h);
void shadows_failed(struct head *h, uint32_t process);
/* That main has died, and its shadow is so far behind that all are sooner there from the newest
 * checkpoint; that was said. */
bool shadows_rather_go_back(struct head *h, uint32_t process);
/* That process may come back now, as far as shadows are concerned. */
bool shadows_may_return(const struct head *h, uint32_t process);
/* Which shadow is to jump by a copy in the place of that process; LIVING_NOWHERE: none. */
uint32_t shadows_jumper(const struct head *h, uint32_t process);
bool shadows_any_jumps(const struct head *h);
/* … and while it does, nobody else need stop. */
bool shadows_jumps_alone(const struct head *h, uint32_t process);
/* The rank's set lacks a core that does not come back, and there is no spare. */
bool shadows_set_is_broken(const struct head *h, uint32_t rank);
/* Its ranks join other sets. False: they can't, and that was said. */
bool shadows_merge(struct head *h);
/* Where the process comes to as the shadow of a rank that has joined another set; the number of
 * nodes: nowhere, or not as that process; LIVING_NOWHERE: its rank has not. */
uint32_t shadows_merged_place(const struct head *h, uint32_t process);
/* The process leaves the view and is ended, and its death is no failure. The caller publishes. */
void shadows_stop(struct head *h, uint32_t process);
/* A copy is that process from now on: its death is a failure again. */
void shadows_lives(struct head *h, uint32_t process);
void shadows_returned(struct head *h, uint32_t process, const struct report_clone *c);
void shadows_heard(struct head *h, uint32_t process, const struct proto_shadow *say);
/* A process has ended by the status. True: it was a shadow that the head has ended, or that nobody
 * needs any more: as if its program had ended well. */
bool shadows_ended(struct head *h, uint32_t process, int status);
/* A process has ended well: when all mains have, the shadows are ended. */
void shadows_look_for_end(struct head *h);
/* "role", "set" and what is known of it, into the open object of j. */
void shadows_print(const struct head *h, uint32_t process, struct json_out *j);
/* That slot is room for a jump, or one process more is missing in a lower one: nobody asks for it.
 */
bool shadows_is_room(const struct head *h, uint32_t process);

#endif
