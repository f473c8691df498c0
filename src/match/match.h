/* SPDX-License-Identifier: BSD-3-Clause */
/* match/: envelopes, matching, eager and rendezvous, message requests, progress. Knows nothing of
 * transports: deliver/ numbers a message and channel/ moves it. Used by coll/ and mpi/.
 *
 * Ranks in this interface are ranks in the communicator. MPI_PROC_NULL is handled here; other
 * arguments are checked above. All functions return an MPI error class; the caller is inside
 * the library (ckpt/guard.h). Buffers belong to the caller and must stay until completion.
 */
#ifndef HALE_MATCH_MATCH_H
#define HALE_MATCH_MATCH_H

#include "match/call.h"
#include "object/comm.h"
#include "object/datatype.h"
#include "object/request.h"

enum match_mode {
	MATCH_STANDARD = 0,
	MATCH_SYNCHRONOUS = 1, /* completes when the receive has been matched */
	MATCH_BUFFERED = 2,    /* payload is copied into the buffer of MPI_Buffer_attach */
	MATCH_READY = 3,       /* treated as standard */
	MATCH_MODE_MASK = 3,
	MATCH_COLL = 4, /* in the communicator's collective context */
};

/* Once, after link_open: opens channels, registers with ckpt/. And the end: flushes, closes. */
int match_init(void);
void match_fini(void);
/* Until all that this process has to say has left. */
void match_settle(void);
bool match_settled(void); /* has it? */
/* Does a receiver owe this process an answer to a message? It may read it out of our memory. */
bool match_unanswered(void);
/* Messages that nobody has received, and nobody will, but those of that communicator. */
void match_unexpected_drop(const struct comm *but);
/* All that the program which this process becomes has to know of its peers (channel/carry/carry.h).
 * Saving comes last, and closes the network. False, when it saves: not now, after more progress. */
struct carry;
bool match_carry(struct carry *c);
/* How many processes compute on this node has changed. */
void match_crowd_look(void);

int match_isend(const void *buf, size_t count, struct datatype *t, int dst, int tag, struct comm *c,
		uint32_t mode, struct request **req);
int match_irecv(void *buf, size_t count, struct datatype *t, int src, int tag, struct comm *c,
		uint32_t mode, struct request **req);
/* Blocking forms: no request object is made when the message can go or has come already. */
int match_send(const void *buf, size_t count, struct datatype *t, int dst, int tag, struct comm *c,
	       uint32_t mode);
int match_recv(void *buf, size_t count, struct datatype *t, int src, int tag, struct comm *c,
	       uint32_t mode, MPI_Status *status); /* status may be MPI_STATUS_IGNORE */

/* Persistent: makes an inactive request; match_start runs it (again). */
int match_send_init(const void *buf, size_t count, struct datatype *t, int dst, int tag,
		    struct comm *c, uint32_t mode, struct request **req);
int match_recv_init(void *buf, size_t count, struct datatype *t, int src, int tag, struct comm *c,
		    uint32_t mode, struct request **req);
int match_start(struct request *r);

int match_iprobe(int src, int tag, struct comm *c, int *flag, MPI_Status *status);
int match_probe(int src, int tag, struct comm *c, MPI_Status *status);
/* A matched message: *message is NULL when none (flag 0), and for PROC_NULL a predefined one. */
struct match_message;
int match_improbe(int src, int tag, struct comm *c, int *flag, struct match_message **message,
		  MPI_Status *status);
int match_mprobe(int src, int tag, struct comm *c, struct match_message **message,
		 MPI_Status *status);
/* The first message in c with that tag that nobody has received yet, from a source that skip (NULL:
 * from any) does not refuse, taken out by handle; *source and *length are its. False: there is
 * none. Makes no progress: for hooks. */
bool match_take(struct comm *c, int tag, bool (*skip)(void *arg, int source), void *arg,
		struct match_message **message, int *source, size_t *length);
/* Is there one? Makes no progress either. */
bool match_peek(struct comm *c, int tag);
int match_imrecv(void *buf, size_t count, struct datatype *t, struct match_message *message,
		 struct request **req);
int match_mrecv(void *buf, size_t count, struct datatype *t, struct match_message *message,
		MPI_Status *status);

/* Tries to cancel; the request completes either way, status says which. */
int match_cancel(struct request *r);

/* Buffered sends (MPI-3.1 3.6). detach blocks until all have left. */
/* *at: whose buffer it is (the process's, a session's, a communicator's); NULL while there is none.
 * automatic: the library finds the memory, buf is only told again by detach. */
struct match_buffer;
extern struct match_buffer *match_process_buffer;
int match_buffer_attach(struct match_buffer **at, void *buf, size_t size, bool automatic);
int match_buffer_detach(struct match_buffer **at, void **buf, size_t *size);
int match_buffer_flush(struct match_buffer *m);
/* The request completes when the messages that are in the buffer now have left it. */
int match_buffer_iflush(struct match_buffer *m, struct request **request);

/* Frees an inactive or completed request's memory; an active one when it completes. */
void match_request_free(struct request *r);
/* A request with nothing of match/ in it: coll/, generalized. REQUEST_NONE ones are complete. */
struct request *match_request_new(request_kind_t kind, struct comm *c);

/* One round of everything that can move: channels, queued sends, hooks. Returns how many things
 * moved (0: nothing). Never sleeps, never calls a safe point. */
int match_progress(void);

/* Waits, with progress and safe points, spinning, yielding, then sleeping until the process's
 * bell rings. done(arg) is asked after every round in which something moved. */
void match_wait_until(bool (*done)(void *), void *arg);
void match_wait(struct request *r); /* until r->complete */
/* One sleep, for a waiting loop of another layer that has spun and yielded enough: until the bell
 * rings, something moves or done(arg). Meanwhile it is outside the library: other threads run in
 * it, and a checkpoint may be taken. */
void match_sleep(bool (*done)(void *), void *arg);
/* Wakes other threads of this process that wait: one may wait for what the caller has just
 * completed outside match_progress. */
void match_wake(void);
/* The same for a word in shared memory that a peer of this node will change: returns when
 * *word >= value as signed difference. The peer rings this process's bell after changing it. */
void match_wait_word(const _Atomic uint32_t *word, uint32_t value);

/* A function called in each round of progress: nonblocking collectives. At most 8. Returns how
 * many things it moved. */
void match_progress_hook(int (*hook)(void));

#endif
