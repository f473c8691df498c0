/* SPDX-License-Identifier: BSD-3-Clause */
/* The agent's session with its head, as one that outlives the agent: the same bytes as a session's
 * (session.h), but queued in the book, so that a successor goes on in the middle of a message. What
 * is taken from a descriptor goes through a pipe (splice), whose contents say after the death of
 * who took it how far he came:
 *
 *   head ──▶ descriptor ─splice─▶ in_stage ─read─▶ ring ─▶ messages, one a turn
 *   head ◀── descriptor ◀─splice─ out_stage ◀─write─ ring ◀─ messages of turns that are written
 *                                                            down
 */
#ifndef HALE_AGENT_SESSION_DURABLE_SESSION_H
#define HALE_AGENT_SESSION_DURABLE_SESSION_H

#include <stdbool.h>
#include <stdint.h>
#include "agent/supervisor/node_record.h"
#include "wire/session/loop.h"
#include "wire/message/message.h"

struct durable_session {
	struct loop *loop;
	struct book *book;
	int in_fd, out_fd; /* -1: closed */
	struct loop_source in, out;
	struct loop_timer later;
	uint64_t begin;			/* of what has come and is not taken: of this turn */
	uint64_t tail;			/* of what is to be sent: of this turn */
	uint64_t in_shrunk, out_shrunk; /* the rings' memory before these is given back */
	bool broken;			/* nothing more is sent */
	void (*message)(void *arg, const struct message *m);
	/* A message has been taken: what it has done is written down. */
	void (*taken)(void *arg);
	/* The other side has closed, or sent what is no message. Called once; it is closed. */
	void (*over)(void *arg, const char *why);
	void *arg;
};

/* Owns the descriptors from now on; callbacks have been set. */
bool durable_session_open(struct durable_session *t, struct loop *loop, struct book *book,
			  int in_fd, int out_fd);
/* As a successor: what was under way is found in the book. */
bool durable_session_reopen(struct durable_session *t, struct loop *loop, struct book *book,
			    int in_fd, int out_fd, const struct book_state *s);
/* What came and what waits is given up. */
void durable_session_close(struct durable_session *t);
static inline bool durable_session_is_open(const struct durable_session *t)
{
	return t->in_fd >= 0;
}
void durable_session_greet(struct durable_session *t);
void durable_session_send(struct durable_session *t, const struct message *m);
/* The turn is written down: what it says may go out. */
void durable_session_push(struct durable_session *t);
/* Writes what waits, for so long at most; the turn must be written down. True: all of it is. */
bool durable_session_flush(struct durable_session *t, double seconds);
/* Waits until the other side has closed, for so long at most: what was written last might be lost
 * where a connection (of TCP) ends with bytes that nobody has read. */
void durable_session_linger(struct durable_session *t, double seconds);

#endif
