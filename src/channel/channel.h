/* SPDX-License-Identifier: BSD-3-Clause */
/* channel/: how bytes get from one rank to another. A channel carries records (an envelope and up
 * to eager_max bytes) in order from each process to each other one, and may be able to copy
 * straight between the memories of two processes. It knows nothing of what the records mean:
 * matching, protocols and queueing of what can't leave yet are match/'s.
 *
 * Which channel reaches a rank depends on where it lives: shm on this node, net on others. After a
 * restart it may be another one.
 *
 * May call: ckpt/ (link, guard), node/segment.h, base/. Called by: match/ (through deliver/'s
 * numbering). Adding a channel is one folder with one `const struct channel_ops`, and one line in
 * table.c; a line in match/channel_test.c tries it alone, and behind channel/faulty. channel/self
 * is the example to start from. docs/channels.md has the pictures.
 */
#ifndef HALE_CHANNEL_CHANNEL_H
#define HALE_CHANNEL_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>
#include "base/error.h"
#include "node/envelope.h"

/* Kind of a record that is the channels' own: a piece of one that an earlier channel between these
 * ranks has kept (net, stream.c). Whoever is given it by arrive hands it to channel_late_arrive,
 * which calls arrive with what it becomes. */
enum { CHANNEL_LATE = 255 };
void channel_late_arrive(uint32_t from, const struct envelope *e, const void *payload);

struct carry;

/* Called for each record that has arrived, in order per sender. payload is valid during the call
 * only. It may send, but never poll. */
typedef void channel_arrive_t(uint32_t from, const struct envelope *e, const void *payload);

/* The contract. One process calls all of these, alone (inside the guard, ckpt/guard.h), possibly
 * from a signal handler: no malloc, no stdio, no locks, nothing may block. Mandatory: name, open,
 * reaches, send, reserve, commit, close; the others may be NULL where it says so. */
struct channel_ops {
	const char *name;

	/* Once, after link_open. eager_max is set. */
	hale_status_t (*open)(channel_arrive_t *arrive, struct error *err);

	/* Can this channel carry records to that rank? The first channel that says yes is used. */
	bool (*reaches)(uint32_t rank);

	/* Puts one record out; payload is copied, at most *eager_max bytes. False: would block, try
	 * again later, nothing has happened. Wakes a sleeping receiver. */
	bool (*send)(uint32_t rank, const struct envelope *e, const void *payload);

	/* The same in two steps, for payloads that are put together in place: where e->length bytes
	 * may be written, or NULL: would block. Nothing else may be sent to that rank before
	 * commit, with the same envelope; what is not committed was never there. */
	void *(*reserve)(uint32_t rank, const struct envelope *e);
	void (*commit)(uint32_t rank, const struct envelope *e);

	/* The same as send, for a record that announces memory of this process which stays as it is
	 * until the receiver has said that it has it: the channel may begin to move it before it is
	 * asked for; get finds it there. NULL: use send. */
	bool (*announce)(uint32_t rank, const struct envelope *e, const void *payload,
			 const void *memory, size_t bytes);
	/* So much is on its way to that rank that it is better to announce memory than to copy it:
	 * for sends of several KiB that nobody waits for. NULL: never. */
	bool (*busy)(uint32_t rank);
	/* Nothing from there on, of what that rank has announced, will be asked for. NULL: nothing
	 * to do. */
	void (*unwanted)(uint32_t rank, const void *remote);

	/* A sleeping receiver that takes its time (node/doze.h) is woken: something waits for its
	 * answer. NULL: there is none. */
	void (*hurry)(uint32_t rank);

	/* Calls arrive for what has come; returns how many. Bounded work. NULL: arrivals happen
	 * inside send. */
	int (*poll)(void);

	/* Sends off what poll, and everything since, has put out: until then a channel may keep it
	 * back, so that several records leave together. NULL: nothing is ever kept back. */
	void (*flush)(void);

	/* Between mailbox_will_sleep and the last poll before link_sleep: from its return on,
	 * either that poll sees a record or its sender sees that we sleep. NULL: nothing to do. */
	void (*before_sleep)(void);

	/* Copies between this process's memory and that rank's. Returns bytes copied (perhaps fewer
	 * than asked), 0: not now, try with the same arguments when poll has said that something
	 * came, or -1: this can't be done for this memory or at all, use records. Either may be
	 * NULL: use records.
	 * stable: nobody else touches local until get has said that something is there, or the
	 * channel has been suspended. */
	ssize_t (*get)(uint32_t rank, const struct iovec *local, size_t nlocal,
		       const struct iovec *remote, size_t nremote, bool stable);
	ssize_t (*put)(uint32_t rank, const struct iovec *local, size_t nlocal,
		       const struct iovec *remote, size_t nremote);

	/* Share number i of that owner. NULL slot: copies are not divided on this channel. */
	struct channel_share *(*share)(uint32_t owner, uint32_t i);

	/* A checkpoint (docs/channels.md). suspend says to every peer "nothing comes behind this",
	 * stamped with the checkpoint's id; nothing may be sent until resume. drained: everything
	 * that peers sent before their stamps has been through arrive, or is kept by its sender.
	 * resume: go on; restored: in a new process, with a new and zeroed segment, ranks perhaps
	 * on other nodes. NULL: nothing is ever in flight. */
	void (*suspend)(uint32_t round);
	bool (*drained)(void);
	void (*resume)(bool restored);

	/* That process is another one from now on, or this one is, so that nothing of what was
	 * between the two means anything; between suspend and resume. NULL: there is nothing that
	 * outlives a change of segments. */
	void (*forget)(uint32_t rank);
	/* The same while both go on in this segment: nobody was that process, and somebody comes.
	 * Nothing of what an earlier one has left is seen by either. NULL: nothing is ever left. */
	void (*renew)(uint32_t rank);
	/* This process alone is about to have an image taken, and nobody else stops: no descriptor
	 * may be open then; resume follows. Records on their way are kept. NULL: none is ever open. */
	void (*pause)(void);

	/* This process becomes another program, or has become it (channel/carry/carry.h): counters
	 * of which peers have the other ends, and what they may want once more. Saving comes last,
	 * and closes what the next program can't have; loading comes right after open. False, when
	 * it saves: not now, and nothing has happened. NULL: there is nothing. */
	bool (*carry)(struct carry *c);

	/* After a restart: will reaches go on saying what it says now? NULL: it will. */
	bool (*settled)(void);
	/* Is there anything to poll in this life of the job? NULL: there is. */
	bool (*used)(void);

	void (*close)(void);

	/* Longest payload of a record; valid after open. */
	const size_t *eager_max;
};

/* Has it all that is mandatory? */
hale_status_t channel_check(const struct channel_ops *c, struct error *err);

/* Opens every channel of the table; one that lacks something is none. */
hale_status_t channel_open_all(channel_arrive_t *arrive, struct error *err);
void channel_close_all(void);

/* The channel that carries to that rank; NULL: none reaches it. */
const struct channel_ops *channel_for(uint32_t rank);

/* All channels, one after the other. */
int channel_poll_all(void);
void channel_flush_all(void);
void channel_before_sleep_all(void);
void channel_suspend_all(uint32_t round);
bool channel_drained_all(void);
void channel_resume_all(bool restored);
void channel_forget_all(uint32_t rank);
/* False: not now; then none has saved anything. */
bool channel_carry_all(struct carry *c);
void channel_renew_all(uint32_t rank);
void channel_pause_all(void);
/* False: channel_for may give another answer after some more progress. */
bool channel_settled_all(void);

#endif
