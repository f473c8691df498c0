/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages over a pair of descriptors, in an event loop: the session between the head and an agent.
 * The descriptors are a socket pair, or the pipes of a launcher (ssh, srun): so a session needs no
 * port and no key of its own. Never blocks; what can't be written yet waits in memory, which is
 * bounded by what the two sides allow each other (output and input have windows). */
#ifndef HALE_WIRE_SESSION_SESSION_H
#define HALE_WIRE_SESSION_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include "wire/session/loop.h"
#include "wire/message/message.h"

enum { SESSION_NOISE_MAX = 65536, SESSION_GREETING_MAX = 128 };

struct session {
	struct loop *loop;
	int in_fd, out_fd; /* may be the same; -1: closed */
	struct loop_source in, out;
	unsigned char *got; /* [got_len] came and is no whole message yet */
	size_t got_len, got_cap;
	unsigned char *waiting; /* [begin, end) is to be written */
	size_t begin, end, cap;
	bool greeted; /* messages may come: the greeting, if one is expected, was there */
	bool broken;  /* nothing more is sent */
	bool by_peer; /* it is over since nobody has the other end any more */
	/* m is valid during the call, which may close the session */
	void (*message)(void *arg, const struct message *m);
	/* The other side has closed, or sent what is no message (why). Called once; the session has
	 * been closed. */
	void (*over)(void *arg, const char *why);
	void *arg;
};

/* Owns the descriptors from now on; message, over and arg have been set. False: no memory. */
bool session_open(struct session *s, struct loop *loop, int in_fd, int out_fd);
/* An agent's first bytes are a line that says its version. The head expects it, behind whatever a
 * login shell may print. */
void session_greet(struct session *s);
/* That line into a text of SESSION_GREETING_MAX bytes; returns its length. */
int session_greeting(char *line);
void session_expect_greeting(struct session *s);
void session_close(struct session *s);
static inline bool session_is_open(const struct session *s)
{
	return s->in_fd >= 0;
}

/* The bytes of m, to be freed; NULL: it is too long, or there is no memory, and a line has said so.
 */
unsigned char *session_frame(const struct message *m, size_t *size);
void session_send(struct session *s, const struct message *m);
/* Bytes that wait to be written. */
static inline size_t session_waiting(const struct session *s)
{
	return s->end - s->begin;
}
/* Writes what waits, for so long at most. */
void session_flush(struct session *s, double seconds);

#endif
