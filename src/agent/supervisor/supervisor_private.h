/* SPDX-License-Identifier: BSD-3-Clause */
/* What supervisor and agent say to each other: packets over a socket pair, with descriptors. */
#ifndef HALE_AGENT_SUPERVISOR_SUPERVISOR_PRIVATE_H
#define HALE_AGENT_SUPERVISOR_SUPERVISOR_PRIVATE_H

#include "agent/supervisor/supervisor.h"

enum ward_type {
	/* agent → supervisor */
	WARD_HOLD = 1, /* kind, key, with the descriptor */
	WARD_DROP,     /* kind, key */
	WARD_SPAWN,    /* what is on the book's desk; answered by SPAWNED */
	WARD_DONE,     /* value: exit status */
	WARD_STAND,    /* value 1: one more as on the book's desk; answered by STOOD. 0: end all */
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

/* What lies on the desk: this, then path, wdir, arguments, "", environment, "". */
struct ward_desk {
	uint64_t number;
	uint32_t rank, argc, envc;
	uint32_t input, bound, has_wdir;
	int32_t id; /* that it shall have if that can be; 0: any */
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

/* What is held as that; NULL: nothing. */
struct supervisor_held *ward_find(struct ward *w, enum supervisor_kind kind, uint64_t key);
void ward_drop(struct ward *w, enum supervisor_kind kind, uint64_t key);
/* Takes the descriptor over, instead of what was held as that. */
void ward_hold(struct ward *w, enum supervisor_kind kind, uint64_t key, int fd, pid_t peer);
/* supervisor_watchdog.c; ward_dismiss: this supervisor ends as it should. */
void ward_appoint(struct ward *w);
void ward_dismiss(struct ward *w);
/* While something else is waited for, too. */
void ward_look_at_lease(void *ward);
/* supervisor_launch.c: what is on the desk. A second time for the same message, the agent that was
 * to hear of it has died: nothing is launched. */
void ward_take_spawn(struct ward *w);

/* What is on the desk shall stand ready. */
void ward_take_stand(struct ward *w);

/* supervisor_standby.c. Starts one more; l->fd is set here. */
void ward_stand_start(struct ward *w, struct launch *l);
/* One of them is from now on what l would have started. False: none is there that can. */
bool ward_stand_take(struct ward *w, const struct launch *l, pid_t *pid);
/* That child was one of them; false: it was not. */
bool ward_stand_ended(struct ward *w, pid_t pid);
void ward_stand_end(struct ward *w); /* of all */
void ward_stand_finish(struct ward *w);

/* False: the other side is gone, or (flags MSG_DONTWAIT) there is no room. */
bool ward_say(int control, const struct ward_packet *p, const int *fd, int fds, int flags);
/* 1: a packet with *fds descriptors, 0: there is none now, -1: the other side is gone. */
int ward_hear(int control, struct ward_packet *p, int fd[WARD_FDS], int *fds, int flags);

#endif
