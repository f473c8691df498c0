/* SPDX-License-Identifier: BSD-3-Clause */
/* The face of jobs with replicas: what match/ asks beside sending and receiving. Several processes
 * run each rank; docs/redundancy.md says who does what, and why nothing is lost when one dies.
 *
 * May call and called by: as deliver.h. */
#ifndef HALE_DELIVER_REDUNDANT_H
#define HALE_DELIVER_REDUNDANT_H

#include <stdbool.h>
#include <stdint.h>
#include "channel/channel.h"

/* Above: all are called inside the guard and may send, but never wait. */
struct redundant_hooks {
	/* A determinant of this rank's leader; e->number counts them. */
	void (*heard)(const struct envelope *e, const void *payload);
	/* This process leads its rank from now on; everything its predecessor said has been heard.
	 */
	void (*promoted)(void);
	/* Another process leads it from now on, which knows all that this one has decided. */
	void (*demoted)(void);
	/* Something is about to leave the rank: say what was decided and not said yet. */
	void (*output)(void);
	/* The log of what the program has not received yet is so long that a witness is to go on. */
	bool (*is_late)(void);
};

/* This job has replicas. Set by deliver_open. */
extern bool redundant_on;

hale_status_t redundant_open(channel_arrive_t *arrive, const struct redundant_hooks *hooks,
			     struct error *err);
void redundant_close(void);
/* The channel, as match/ sees it, to every rank. */
extern const struct channel_ops channel_redundant;

/* This process decides for its rank. */
bool redundant_leads(void);
/* It is a shadow: slow, mute, and behind the main of its rank (docs/shadows.md); or a witness. */
bool redundant_is_shadow(void);
/* Is that process the main of its rank, behind which its shadow is? */
bool redundant_is_main(uint32_t process);
/* Bytes of other ranks' messages that this process has accepted. */
uint64_t redundant_bytes_accepted(void);
/* While all processes live each one waits for messages of its own slot only: none are compared, and
 * no process is a shadow. */
bool redundant_slots_are_apart(void);
/* It is a witness: it stands still at an earlier state of its rank, and is mute, until the other
 * processes of the rank differ (docs/audit.md). */
bool redundant_is_witness(void);
/* To the living followers, in order; the next output waits until they have it in their nodes'
 * memory. The envelope's kind and number are set here. At most 4 KiB. */
void redundant_determine(struct envelope *e, const void *payload);

/* All determinants so far have found room on their way: a leader that decides at every turn of a
 * loop waits for that, so that its words don't fill the memory. */
bool redundant_determinants_left(void *unused);
/* … and whoever leads next knows them. */
bool redundant_determinants_known(void *unused);

/* In every round of progress: looks at the view, sends what waits. How many things moved. */
int redundant_progress(void);

/* A copy of this process comes as `process` while all others run (docs/shadows.md, "One pair
 * alone"). All are told to keep for it what they send; when all do the agent is told. Taken back
 * when request `id` is given up. */
void redundant_announce(uint32_t process, uint32_t id);

/* For a checkpoint or a move, all by match/checkpoint.c. From here on nothing is sent, until
 * redundant_resume. */
void redundant_suspend(void);
/* The same for an image of this process alone, after redundant_announce. */
void redundant_cut(void);
/* Before the channels resume. fresh: in a new segment. Its view may have processes that were dead in
 * the one before. This process may be one of them: then it is a copy of another replica of its
 * rank. */
void redundant_rejoin(bool fresh);
/* Looks again which channel reaches each process. */
void redundant_channels(void);
void redundant_resume(void);

/* Before the end of MPI: tells everybody that this process needs nothing more. */
void redundant_leave(void);
/* Has everybody who lives said so, and has all that they need left? Until then progress goes on
 * serving them. */
bool redundant_left(void *unused);

#endif
