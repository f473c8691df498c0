/* SPDX-License-Identifier: BSD-3-Clause */
/* mpi/task/: MPI calls inside tasks that may be executed again (docs/tasks.md; seed 002, 6.2). A
 * binding asks `tasklog_now`; where there is a log it calls the function of this folder that has
 * its name, inside the guard like itself. The ledger is deliver/tasklog.h.
 *
 * Buffers of operations that go on after their call belong to the log and not to the task: what a
 * task began may end after an error, when the task's own data are restored already.
 *
 *   MPI_Isend    the payload is packed into a record; the record is sent
 *   MPI_Irecv    the record receives; MPI_Wait unpacks it into the task's buffer
 *   MPI_Recv     the task's buffer receives; what came is packed into a record
 *   collectives  the same: in private buffers if nonblocking, else the result is kept
 *
 * An execution after an error gets the same requests again, or complete ones. Calls that neither
 * can be repeated nor are kept here (link.c has the list of those that can) make the task
 * one that is not executed again: an error in it rolls the job back, with a sentence.
 */
#ifndef HALE_MPI_TASK_INTASK_H
#define HALE_MPI_TASK_INTASK_H

#include "coll/args.h"
#include "deliver/tasklog.h"
#include "mpi/p2p/p2p.h"

/* One event of a channel; the payload follows. */
struct intask_note {
	struct tasklog_record record;
	struct request *request; /* the operation while it goes on; NULL: it is over */
	MPI_Status status;	 /* of a completed one */
	bool complete, freed;	 /* freed: by MPI_Request_free */
	bool receives;		 /* a receive: the payload is for buf */
	void *buf;		 /* of the present execution; NULL: a send */
	size_t count, capacity;
	struct datatype *type;	   /* of buf; retained while requests hold the record */
	struct coll_args coll;	   /* nonblocking collectives: of the present execution */
	void *object;		   /* a communicator that was made; what is to be freed */
	void (*end)(void *object); /* frees it when the task has ended */
	struct intask_note *next;
	bool held; /* the program has the handle of a matched message */
	struct object message;
	char payload[] __attribute__((aligned(64)));
};

/* p2p.c */
int intask_send(const void *buf, size_t count, struct datatype *t, int dst, int tag, struct comm *c,
		uint32_t mode);
int intask_isend(const void *buf, size_t count, struct datatype *t, int dst, int tag,
		 struct comm *c, uint32_t mode, struct request **req);
int intask_recv(void *buf, size_t count, struct datatype *t, int src, int tag, struct comm *c,
		MPI_Status *status);
int intask_irecv(void *buf, size_t count, struct datatype *t, int src, int tag, struct comm *c,
		 struct request **req);

/* probe.c; flag NULL: the blocking form. */
int intask_probe(int src, int tag, struct comm *c, int *flag, MPI_Status *status);
int intask_mprobe(int src, int tag, struct comm *c, int *flag, struct match_message **m,
		  MPI_Status *status);
/* Is m a message of this folder's? It has been received; these give it to the program. */
bool intask_is_message(const struct match_message *m);
int intask_mrecv(void *buf, size_t count, struct datatype *t, struct match_message *m,
		 MPI_Status *status);
int intask_imrecv(void *buf, size_t count, struct datatype *t, struct match_message *m,
		  struct request **req);

/* The same, as events of a channel that is not the usual one; ch NULL: the log has no memory. */
int intask_isend_on(struct tasklog_channel *ch, const void *buf, size_t count, struct datatype *t,
		    int dst, int tag, struct comm *c, uint32_t mode, struct request **req);
int intask_irecv_on(struct tasklog_channel *ch, void *buf, size_t count, struct datatype *t,
		    int src, int tag, struct comm *c, struct request **req);

/* request.c */
struct intask_note *intask_note_make(struct tasklog_channel *ch, size_t payload);
/* A request for n: the one that goes on, or a new one that is complete. */
int intask_request(struct intask_note *n, struct comm *c, struct request **req);
/* Makes r, which has just begun, the operation of n. */
void intask_begin(struct intask_note *n, struct request *r);
/* r has been given to the program, which has no handle of it any more. True: it is not to be
 * dropped, as it is another task's, and this one may ask for it again. */
bool intask_keep(struct request *r);
void intask_request_free(struct request *r);
/* Which of these requests an earlier execution was given by this call: *n of them, by index. NULL:
 * no execution has got so far. intask_choose() passes over it, or notes it. */
const int32_t *intask_chosen(int count, const MPI_Request *requests, int *n);
void intask_choose(const int *indices, int n);
/* Frees what tasks that have ended left to be freed; inside the guard. */
void intask_owned_add(struct intask_note *n);
void intask_owned_leave(struct tasklog *log);
void intask_owned_free(void);

/* coll.c */
int intask_coll_run(const struct coll_args *a);
int intask_coll_start(const struct coll_args *a, struct request **req);
int intask_coll_start_on(struct tasklog_channel *ch, const struct coll_args *a,
			 struct request **req);
void intask_coll_give(struct intask_note *n); /* the result, to the program */
/* The result, packed. */
size_t intask_coll_bytes(const struct coll_args *a);
void intask_coll_pack(const struct coll_args *a, char *to);
void intask_coll_unpack(const struct coll_args *a, const char *from);
/* Memory that the result spans. */
size_t intask_coll_span(const struct coll_args *a, const char **from);

/* object.c: a communicator that a task makes from another one is the same one again. What a task
 * frees goes when the task has ended: another execution may ask for it. */
bool intask_comm_again(struct comm *parent, MPI_Comm *made);
void intask_comm_made(struct comm *parent, MPI_Comm made);
void intask_free(void *object, void (*end)(void *object));

/* persistent.c; struct request r is persistent. */
int intask_send_init(const void *buf, size_t count, struct datatype *t, int dst, int tag,
		     struct comm *c, uint32_t mode, struct request **req);
int intask_recv_init(void *buf, size_t count, struct datatype *t, int src, int tag, struct comm *c,
		     struct request **req);
int intask_start(struct request *r);
/* r has been given to the program as complete; in a task or outside. */
void intask_persistent_over(struct request *r);
/* r is about to be freed: an operation that a task has begun goes on without it. */
void intask_persistent_leave(struct request *r);
/* An execution after an error begins: each request that the task has touched becomes inactive, or
 * active and complete, as it was before the task. */
void intask_persistent_set_back(void);
/* The operation that MPI carries out for r: r itself, unless a task has started r. */
struct request *intask_persistent_operation(struct request *r);
/* The operation that r shows, or (*n) what an earlier execution has got; both NULL: neither. */
const struct request *intask_persistent_inner(const struct request *r,
					      const struct intask_note **n);

/* call.c: calls that change a window, or a request of partitions, and nothing that the task owns.
 * An execution after an error passes over them. */
bool intask_call_again(const void *object, int *rc); /* true: it has happened; rc is its result */
int intask_call_done(const void *object, int rc);    /* it has happened; returns rc */
struct rma_call;
struct win;
int intask_rma(struct rma_call *c, struct request **req);
/* Outside of tasks: its result may come later. */
void intask_rma_begun(const struct rma_call *c);
/* Operations of this process on w have ended, all or some. */
void intask_rma_over(const struct win *w);

/* landing.c */
extern bool intask_landing_watch;		 /* tasks are protected in this process */
bool intask_landing_is(const struct request *r); /* r->note is of that file */
void intask_landing_recv(struct request *r);
void intask_landing_span(struct request *r, const void *buf, size_t count, struct datatype *t);
void intask_landing_coll(struct request *r, const struct coll_args *a);
void intask_landing_memory(const void *key, const void *at, size_t bytes);
/* False: there was none. */
bool intask_landing_forget(const void *key);
bool intask_landing_in(const void *at, size_t bytes);
bool intask_landing_window(const void *at, size_t bytes); /* of windows only */

/* link.c */
/* The task can't be executed again from here on; why: "in a task that …". */
static inline void intask_lose(const char *why)
{
	if (!tasklog_now->lost)
		tasklog_now->lost = why;
}
static inline struct tasklog_channel *intask_channel(enum tasklog_kind kind, const struct comm *c,
						     int peer, int tag)
{
	return tasklog_channel(tasklog_now, kind, c->context, peer, tag);
}
/* The channel of what happens to one object, which keeps its address until the task has ended. */
static inline struct tasklog_channel *intask_channel_of(enum tasklog_kind kind, const void *object)
{
	uintptr_t at = (uintptr_t)object;

	return tasklog_channel(tasklog_now, kind, (uint32_t)(at >> 32), (int32_t)at, 0);
}
static inline struct intask_note *intask_replay(struct tasklog_channel *ch)
{
	return (struct intask_note *)tasklog_replay(ch);
}
/* True: an earlier execution has had the next event of ch, and this one passes over it; *n is its
 * record, NULL: it has none. ch NULL: the log has no memory. */
static inline bool intask_again(struct tasklog_channel *ch, struct intask_note **n)
{
	if (!ch || !tasklog_replays(ch))
		return false;
	*n = intask_replay(ch);
	return true;
}

#endif
