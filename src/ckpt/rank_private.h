/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of ckpt/'s rank side share. */
#ifndef HALE_CKPT_RANK_PRIVATE_H
#define HALE_CKPT_RANK_PRIVATE_H

#include <stdbool.h>
#include <stdint.h>

#include "ckpt/guard.h"
#include "ckpt/rank.h"
#include "node/proto.h"

/* guard.c: may this thread not be stopped where it is? Then it attends when it leaves. */
bool guard_thread_busy(void);
/* Takes the library lock if it is to be had soon. */
bool guard_lock_soon(void);

/* environment.c: the environment as it is now is that of the program that this process becomes. */
void environment_keep(void);
char *const *environment_kept(void);

/* link.c */
/* Connects again after a restart: restored is the checkpoint's id, position its streams. */
hale_status_t link_reopen(uint32_t restored, const uint64_t position[3], struct error *err);
/* One packet to the agent. The writing child uses it too. False when the agent is gone. */
bool link_tell(const void *packet, size_t len);
/* A log_sink_t (base/log.h): false before the agent has welcomed this process, or if it is gone. */
bool link_say(const char *line, size_t len);
/* The name and token under which the environment, or a sink's caller, says the agent is found. */
struct link_address {
	char agent[108];
	char token[24];
	char journal[512]; /* the job's journal of files (journal/journal.h); "": none */
	uint32_t process; /* that this one is, or is to become: a replica may come of another one */
};
bool link_address_from_env(struct link_address *address);
/* The agent's address from now on; for a restored process. */
void link_address_set(const struct link_address *address);
/* Is this process the one that has joined the job, and not a child of it? */
bool link_is_ours(void);
/* This process asks for what ranks may have together; has it, in this life or the one before?
 * (docs/coordinated-checkpoint.md, 'What ranks of a node share') */
void link_note_may_share(void);
/* writers.c: the program has opened that file for writing; NULL: it is a child of a rank. */
void writers_note(const struct link *l, uint64_t inode);
/* A new segment, after a rollback or on another node, does not say yet which files we write. True:
 * there are too many to say. */
bool writers_show(const struct link *l);
/* Of a rank's child that has come back: until all ranks have. */
void writers_await_all(const struct link_address *address);
bool link_may_share(void);
/* rank.c: the other ranks of this node, if this one may have something together with them; or NULL.
 */
struct image_beside;
struct image_beside *rank_beside(void);
/* Tells the agent, through the mailbox, which descriptors are the library's. */
void link_show_fds(void);
/* Where the agent is found now. */
const struct link_address *link_address_now(void);
/* Makes a sleeping link_sleep of this process return. Async-signal-safe. */
void link_wake_self(void);

/* tick.c: in the signal's handler. */
void tick_handle(void);

/* bell.c: link_sleep on descriptors. False: there are none, sleep on the bell alone. */
bool bell_sleep(uint32_t bell_seen, uint64_t max_ns);

/* guest.c: what guest.h describes, for all of them. Per thread: inside such a library. */
extern __thread volatile int guest_inside __attribute__((tls_model("initial-exec")));
bool guests_prepare(struct error *err);
void guests_resume(bool restored);

/* rank.c */
/* What the agent asks for in the mailbox, as it was when this process began with it: by the time
 * that it gets there a later request may stand in the mailbox. */
struct ckpt_request {
	uint32_t id; /* 0: nothing is asked for */
	uint32_t base, flags;
	char path[MAILBOX_PATH];
};
void rank_signal_install(void);
/* Ids: the newest checkpoint that this process took part in; whether it was rebuilt from it. */
uint32_t rank_checkpoint_last(bool *restored);
/* What the process had taken part in that has become this program. */
void rank_checkpoint_inherit(uint32_t id);

/* streams.c: how many bytes this process has taken from stdin and written to stdout and stderr
 * since the job began. Call with every other thread parked. */
void streams_position(uint64_t position[3]);

/* inject.c: takes what the agent has written into the mailbox. */
void inject_read_mailbox(void);

#endif
