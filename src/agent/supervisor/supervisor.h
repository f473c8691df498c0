/* SPDX-License-Identifier: BSD-3-Clause */
/* The process that stands for a node: what a launcher has started, or the head. It starts the agent
 * as its child, and a new one in its place when it dies, and does what must not end with an agent:
 *
 *   - it is the parent of the ranks, and knows how they ended
 *   - it holds a duplicate of each descriptor that a successor needs: the way to the head, the
 *     ranks' pipes and connections, segments, sockets that are listened at
 *   - it kills the process groups of all ranks when the lease on the node runs out, even while the
 *     agent is stopped, and when the agent has died and gets no successor
 *
 * Its end ends all: the kernel kills the ranks, and the agent what they have started; should both
 * be killed, a third process does that, which waits for nothing else (supervisor_watchdog.c).
 *
 * A rank announces itself in the book (node_record.h) before it becomes the program, and then looks
 * whether the lease is over; the supervisor says that it is over and then looks at the groups. So
 * no rank is missed. The supervisor keeps the way to the head open until the ranks are gone: so its
 * end proves that they are. */
#ifndef HALE_AGENT_SUPERVISOR_SUPERVISOR_H
#define HALE_AGENT_SUPERVISOR_SUPERVISOR_H

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "base/error.h"
#include "agent/supervisor/node_record.h"

/* What is held; with a key where there are several. */
enum supervisor_kind {
	HOLD_NOTHING,
	HOLD_LINK_IN,  /* from the head; key: the session's number, as the book has it */
	HOLD_LINK_OUT, /* to the head; the same */
	HOLD_RANKS,    /* where ranks connect: the supervisor accepts */
	HOLD_HEADS,    /* where other heads knock */
	HOLD_SEGMENT,  /* key: its generation */
	HOLD_OUT,      /* a rank's pipe, its reading end; key: 2 * rank + (0: stdout, 1: stderr) */
	HOLD_INPUT,    /* rank 0's stdin, the writing end */
	HOLD_CONN,     /* a connection; key: its number */
	HOLD_KEPT,     /* memory for output that waits for another head's asking */
	HOLD_COPIES,   /* where other copiers call; key: 0 to COPIES_PLACES_MAX - 1 */
};

struct supervisor_held {
	enum supervisor_kind kind;
	uint64_t key;
	int fd;
	pid_t peer; /* of a connection */
};

/* A connection that has been accepted; fd is the caller's. */
struct supervisor_conn {
	uint64_t number;
	pid_t peer;
	int fd;
};

/* The agent's side: how it reaches its supervisor. */
struct supervisor {
	struct book *book;
	int control;	/* -1: the supervisor is gone */
	bool successor; /* there was an agent before this one */
	int ended;	/* … and how it ended: waitpid's status */
	/* A connection that came while something else was waited for; set before supervisor_spawn.
	 */
	void (*accepted)(void *arg, const struct supervisor_conn *conn);
	void *arg;
	/* what the supervisor held when this agent was forked, as descriptors of its own */
	struct supervisor_held *held;
	size_t count;
};

/* Runs `agent` in a child, and again whenever it has died and may have a successor; what it returns
 * is the exit status of the process, and of this function, which returns when no process of a rank
 * is left. The descriptors are the supervisor's from now on. When there is no agent any more and no
 * process of a rank, and the last agent has not said why itself, `bye` is to do so: false if nobody
 * could hear it, and then it is a warning. */
int supervisor_run(int in_fd, int out_fd, int (*agent)(struct supervisor *g),
		   bool (*bye)(struct supervisor *g, const char *why));

/* Of the process, in ps. */
#define SUPERVISOR_NAME "hale-supervisor"

/* "signal 9 (Killed)", "status 1": of waitpid's status. */
void supervisor_how(int status, char *text, size_t cap);

/* ---- for the agent ---- */

/* Says what has come in from the supervisor: *conn.fd is -1, or a new connection. False: there is
 * nothing (more), or the supervisor is gone (control is -1 then). A rank's end is in the book. */
bool supervisor_hear(struct supervisor *g, struct supervisor_conn *conn);

/* The supervisor holds a duplicate from now on, instead of what it held as that. */
void supervisor_hold(struct supervisor *g, enum supervisor_kind kind, uint64_t key, int fd);
/* … and not any more. */
void supervisor_drop(struct supervisor *g, enum supervisor_kind kind, uint64_t key);
/* A descriptor that was held when this agent began, which is the caller's from now on; -1: none. */
int supervisor_claim(struct supervisor *g, enum supervisor_kind kind, uint64_t key, pid_t *peer);
/* Closes what nobody has claimed. Sessions with heads that the book does not know are let go of
 * altogether: whoever is at their other end has to come again. */
void supervisor_claimed(struct supervisor *g);

struct supervisor_launch {
	uint32_t rank;
	uint64_t number; /* of the message that it is for: a second time for the same one, nothing
			  * is launched, but what has been is returned */
	const char *path, *wdir; /* wdir NULL: the supervisor's own */
	char *const *argv;
	char *const *env; /* environment.h */
	const cpu_set_t *cpus;
	pid_t id;    /* that it shall have if that can be; 0: any */
	bool input;  /* its stdin is a pipe; otherwise /dev/null */
	bool *stood; /* whether a process that stood ready was taken for it; may be NULL */
};

/* Launches it in pipes of its own. *pid is the process, fd: the writing end of its stdin (-1), the
 * reading ends of stdout and stderr, non-blocking, the caller's. waiting is called now and then;
 * when it says false the supervisor is not waited for any longer. */
hale_status_t supervisor_spawn(struct supervisor *g, const struct supervisor_launch *l, pid_t *pid,
			       int fd[3], bool (*waiting)(void *arg), void *arg, struct error *err);

/* One more process of l shall stand ready to become an image that supervisor_spawn is asked to
 * start; l->env has PROTO_STAND. It is started after this has returned; book.standing says how many
 * there are. False: the supervisor does not answer. */
bool supervisor_stand(struct supervisor *g, const struct supervisor_launch *l,
		      bool (*waiting)(void *arg), void *arg);
/* None shall. */
void supervisor_stand_end(struct supervisor *g);

/* The agent ends by itself: no rank is left, and this is the exit status. */
void supervisor_done(struct supervisor *g, int exit_status);

/* Kills all groups, and what ranks have started outside of them, and waits until only zombies are
 * left. False: some process does not die for long; again, then. */
bool supervisor_kill_all(struct book *b);

/* The rank's process was waited for, and something else has its id by now: the group of that id is
 * not the rank's, and not to be killed. */
bool supervisor_group_is_strange(const struct book *b, uint32_t rank);

/* Whose descendants are looked for: of processes of this job that this node has, or had. */
struct supervisor_strays {
	const char *job;
	bool (*has)(const void *arg, uint32_t process);
	const void *arg;
	pid_t supervisor; /* of this node; it may be dead */
	bool spared;	  /* they are looked for only */
};

/* Kills descendants of ranks that have left the ranks' process groups. True: none is left. */
bool supervisor_strays_gone(const struct supervisor_strays *s);

static inline void supervisor_watch(struct supervisor *g, uint32_t rank, pid_t group)
{
	atomic_store(&g->book->child[rank].group, group);
}
static inline void supervisor_lease(struct supervisor *g, uint64_t deadline_ns)
{
	atomic_store(&g->book->deadline_ns, deadline_ns);
}
/* Nothing is started any more. */
static inline void supervisor_fence(struct supervisor *g)
{
	atomic_store(&g->book->over, 1);
}
static inline bool supervisor_over(const struct supervisor *g)
{
	return g->book && atomic_load(&g->book->over);
}

#endif
