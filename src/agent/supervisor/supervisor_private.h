/* SPDX-License-Identifier: BSD-3-Clause */
/* What supervisor and agent say to each other: packets over a socket pair, with descriptors. The
 * desk is the part of the node's record (struct book) in which the agent leaves an order to launch
 * a process. */
#ifndef HALE_AGENT_SUPERVISOR_SUPERVISOR_PRIVATE_H
#define HALE_AGENT_SUPERVISOR_SUPERVISOR_PRIVATE_H

#include "agent/supervisor/supervisor.h"

enum ward_type {
	/* agent → supervisor */
	WARD_HOLD = 1, /* kind, key, with the descriptor */
	WARD_DROP,     /* kind, key */
	WARD_SPAWN,    /* launch what the desk says; answered by SPAWNED */
	WARD_DONE,     /* value: exit status */
	WARD_STAND,    /* value 1: start a warm standby, STOOD answers; 0: end all of them */
	/* supervisor → agent */
	WARD_CONN,    /* key: its number, value: its process; with the descriptor */
	WARD_ENDED,   /* some child has: the book says which */
	WARD_STOOD,   /* the desk has been read */
	WARD_SPAWNED, /* value: pid, with the descriptors; or 0: key: status, text on the desk */
};

enum { WARD_FDS = 3 };

struct ward_packet {
	uint32_t type, kind;
	uint64_t key;
	int64_t value;
	uint64_t number; /* SPAWN: of the desk; SPAWNED: of the desk that it answers */
};

/* An order on the desk: this header, then texts that end with NUL: path, wdir (if has_wdir), argc
 * arguments, envc variables of the environment. */
struct ward_desk {
	uint64_t number;
	uint32_t rank, argc, envc;
	uint32_t input, bound, has_wdir;
	int32_t id; /* the pid that the process gets if it is free; 0: any */
	cpu_set_t cpus;
	uint32_t len; /* of the texts */
};

/* The supervisor's own. */
enum { DEATHS_MAX = 3 };

struct ward_sink {
	pid_t pid;
	int fd; /* how it hears its order */
};

struct launch;

struct ward {
	struct book *book;
	struct supervisor_held *held;
	size_t count, cap;
	uint64_t conns; /* numbered so far */
	int signals, control, listener;
	pid_t agent, watchdog; /* 0: none */
	bool agent_gone, done;
	bool is_child;	   /* of the head, to which it has one socket for both directions */
	int ending;	   /* the signal by which somebody wants the node to end; 0: nobody does */
	int ended;	   /* how it went */
	uint64_t begin_at; /* another one is to begin then; 0: none is */
	int exit_status;
	uint64_t deaths[DEATHS_MAX]; /* when; the newest first */
	struct ward_sink *sinks;     /* that stand ready */
	size_t sink_count, sink_cap;
	int (*run)(struct supervisor *g);
	bool (*bye)(struct supervisor *g, const char *why);
};

/* The descriptor that is held under kind and key; NULL: none. */
struct supervisor_held *ward_find(struct ward *w, enum supervisor_kind kind, uint64_t key);
void ward_drop(struct ward *w, enum supervisor_kind kind, uint64_t key);
/* Takes over fd, and closes what was held under kind and key before. */
void ward_hold(struct ward *w, enum supervisor_kind kind, uint64_t key, int fd, pid_t peer);
/* supervisor_signals.c: holds signals back from now on; -1, or the descriptor that tells of them.
 */
int ward_signals_open(void);
/* Takes those that have come. Returns one by which somebody wants the node to end; 0: nobody does.
 */
int ward_signals_take(struct ward *w);
/* supervisor_watchdog.c; ward_dismiss: this supervisor ends as it should. */
void ward_appoint(struct ward *w);
void ward_dismiss(struct ward *w);
/* Kills the ranks if the lease is over. Called also while the supervisor waits for something
 * else. */
void ward_look_at_lease(void *ward);
/* supervisor_launch.c: launches what the desk says. An agent may die before the answer, and its
 * successor repeats the order under the same number. Then nothing more is launched, and the answer
 * names the process that there is. */
void ward_take_spawn(struct ward *w);

/* Starts a warm standby of the program that the desk names. */
void ward_take_stand(struct ward *w);

/* supervisor_standby.c: starts one more warm standby, and sets l->fd. */
void ward_stand_start(struct ward *w, struct launch *l);
/* Turns a warm standby into the process that l describes. False: no standby can become it. */
bool ward_stand_take(struct ward *w, const struct launch *l, pid_t *pid);
/* A child has ended. True: it was a warm standby, and is forgotten; false: it was none. */
bool ward_stand_ended(struct ward *w, pid_t pid);
void ward_stand_end(struct ward *w); /* kills all warm standbys */
void ward_stand_finish(struct ward *w);

/* False: the other side is gone, or (flags MSG_DONTWAIT) there is no room. */
bool ward_say(int control, const struct ward_packet *p, const int *fd, int fds, int flags);
/* 1: a packet with *fds descriptors, 0: there is none now, -1: the other side is gone. */
int ward_hear(int control, struct ward_packet *p, int fd[WARD_FDS], int *fds, int flags);

#endif
