/* SPDX-License-Identifier: BSD-3-Clause */
/* ckpt/ (rank side): what a coordinated checkpoint means for one process: link to the agent,
 * request by signal, suspend all participants, image, resume (seed 001, 2.2-2.3).
 * May call: image/, base/, node/segment.h and node/proto.h (the agreement with the agent).
 * Called by: channel/, coll/ (which register as participants), mpi/ (init, finalize).
 *
 * One checkpoint in one process:
 *   suspend_start of all   RTC: no new sends or deposits; a Suspend marker on every channel
 *   suspend_poll until all say 1          drain: what comes before the markers is private now
 *   save of all            copy what this process still owns in shared memory (own coll cells)
 *   count in, wait for all ranks of the node                CTC
 *   image_park, image_capture
 *   resume of all, in reverse order       CC: same segment, or (restored) a new and empty one
 */
#ifndef HALE_CKPT_RANK_H
#define HALE_CKPT_RANK_H

#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"
#include "node/segment.h"

struct ckpt_participant {
	const char *name;
	void (*suspend_start)(void);
	/* Moves things on; true when nothing of this participant is in flight towards this process.
	 * Called repeatedly, in turn with the others; must not sleep. */
	bool (*suspend_poll)(void);
	void (*save)(void);
	/* restored: a new process and a new, zeroed segment (link_self()->segment), new pids. */
	void (*resume)(bool restored);
	/* It also takes part in images for which this process alone stops (ckpt_is_alone): then
	 * the segment stays what it is, for the restored process, too. */
	bool alone;
	/* A copy of this process comes as that one while all others run; taken back when request
	 * id is given up. NULL: it is of no concern. */
	void (*announce)(uint32_t process, uint32_t id);
	/* The agent has interrupted the program, inside the guard: has something come? NULL: no. */
	void (*look)(void);
	struct ckpt_participant *next;
};

/* In order of registration; resume runs in reverse order. The struct stays the caller's. */
void ckpt_participate(struct ckpt_participant *p);

/* The id of the checkpoint that this process is in, valid in the callbacks above: what a marker
 * must carry, so that one of a given-up checkpoint isn't taken for one of the next. */
uint32_t ckpt_round(void);
/* Valid in the same place: nobody else stops. */
bool ckpt_is_alone(void);

/* This process's connection to its agent and its view of the job. Channels, mailboxes and the agent
 * count processes; programs count ranks. The two differ in a job with replicas (node/living.h). */
struct link {
	bool connected; /* false: a singleton, started without hale run */
	uint32_t rank, nranks;
	uint32_t process, nprocesses;
	uint32_t degree;	 /* processes of each rank */
	uint32_t generation;	 /* of the segment: +1 at every restart of the job */
	struct segment *segment; /* shared by all ranks of the node; never NULL after link_open */
	struct mailbox *mailbox; /* this process's */
};
const struct link *link_self(void);

/* Connects to the agent named in the environment and maps the node's segment; without one makes
 * a private segment for a job of one. Idempotent. */
hale_status_t link_open(struct error *err);

/* Tells the agent. abort does not return. */
void link_mpi_initialized(void);
void link_mpi_finalized(void);
void link_abort(int code) __attribute__((noreturn));

/* This process becomes another program of the job: same rank, same streams. set: NULL-terminated
 * VAR=VALUE for its environment, HALE_CARRY (channel/carry/carry.h) among them. used: it has been a
 * program of the job's before, whose files, signals and timers are not for the next one. Does not
 * return. */
void link_become(const char *path, char *const *argv, const char *folder, char *const *set,
		 bool used) __attribute__((noreturn));

/* Waiting (see segment.h, mailbox): sleeps until somebody rings this process's bell, a signal
 * comes, or max_ns pass. Call only after `mailbox_will_sleep` and one more look at all rings. */
void link_sleep(uint32_t bell_seen, uint64_t max_ns);

/* One step of waiting for peers that the same request stops: yields while that comes back soon, but
 * not many times; then sleeps until the bell rings, or a millisecond. round: how many came before.
 */
void link_wait_step(int round);

/* From now on a timer calls work() now and then, inside the guard, while the first thread is
 * outside of the library (tick.c). work() returns how many things it moved. rma/timer.c, which
 * stops it for each checkpoint, and match/shadow.c call this; no process needs both. A second start
 * before tick_stop changes nothing, and is true. A start in a process without an agent is true,
 * too, and gives no timer. False: the kernel gives none. */
bool tick_start(int (*work)(void));
void tick_stop(void);

/* From here on link_sleep also ends when one of those descriptors (at most LINK_BELL_FDS) can be
 * read. bell_close: the bell alone again; before an image is taken. They don't own fd. */
enum { LINK_BELL_FDS = 12 };
hale_status_t link_bell_open(const int *fd, unsigned count, struct error *err);
void link_bell_close(void);

/* Writes where other nodes reach this process into the directory of the node's segment, and tells
 * the agent, which brings it to the other nodes. The net channel calls it. length 0: the process
 * can't be reached now. */
void link_address_publish(const void *bytes, uint32_t length);

/* Tells the head that no host answers where that rank is, or that one does again. False: there is
 * nobody to tell. */
bool link_net_tell(uint32_t rank, bool lost);

/* Tells the head how far the copy is that comes as that process: every process keeps for it what
 * it sends, or (joined) the copy is there. */
void link_copy_tell(uint32_t process, bool joined);

/* Tells the head that replicas of a rank have sent this process different messages. */
struct proto_sdc;
void link_sdc_tell(struct proto_sdc *found);
/* How far this shadow is; type is set here. */
struct proto_shadow;
void link_shadow_tell(struct proto_shadow *say);

/* What every MPI function looks at as it is entered: 0, or why it can't just go on. */
enum call_gate {
	CALL_GATE_CLOSED = 1, /* before MPI_Init, after MPI_Finalize */
	CALL_GATE_INJECT = 2, /* a fault is due at a call: tell inject_at_call its name */
};
extern _Atomic int call_gate;
void inject_at_call(const char *function);

#endif
