/* SPDX-License-Identifier: BSD-3-Clause */
/* The nodes of a job as the head sees them: a session with the agent of each, and a mirror of what
 * the head needs to know of every rank, kept by what the agents say. Nothing here decides: what
 * happens is told to the handler. The node of this machine is an agent that was forked, others are
 * started by a launcher (node_set_start.c); from then on there is no difference.
 *
 *   node_set.c        what the head says     node_set_take.c   what agents say
 *   node_set_start.c  starting and leaving   node_set_lost.c   leases, nodes that are gone
 */
#ifndef HALE_HEAD_NODES_NODE_SET_H
#define HALE_HEAD_NODES_NODE_SET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "base/error.h"
#include "wire/attach/head_record.h"
#include "wire/message/copies.h"
#include "head/output/echo.h"
#include "head/output/stdin_spool.h"
#include "launch/hosts.h"
#include "node/job.h"
#include "wire/session/loop.h"
#include "head/output/output_writer.h"
#include "policy/place.h"
#include "head/output/output_position.h"
#include "report/profile.h"
#include "store/store.h"
#include "node/proto.h"
#include "policy/leave.h"
#include "wire/session/session.h"
#include "wire/session/setup.h"

struct node_set;

enum { WARM_UNFIT = 320 };

/* Its ranks are to go elsewhere. */
struct node_leave {
	leave_state_t state; /* read by all, assigned by node_leave_event */
	char wanted[64];     /* why a rule wants its ranks away; "": none does */
	bool vacated;	     /* a spare since its ranks have migrated: others come rather last */
};

/* What is ready there before it is needed. */
struct node_warm {
	bool told;		/* it was told what ranks have mapped */
	char unfit[WARM_UNFIT]; /* what is wrong with its files, so that ranks could not go on
				   there; "" */
	uint32_t standing;	/* processes of the program that stand ready there */
	char stands[128];	/* why there are fewer than there could be; "" */
	uint64_t bytes;		/* of files that are in its memory before they are needed */
};

/* Its agent, or the launcher that has started it. */
struct node_agent {
	pid_t pid;	  /* 0: ended and reaped */
	int status;	  /* that it ended with: waitpid's */
	uint32_t renewed; /* agents of it that have died since … */
	double renewed_since;
	pid_t group; /* of a child of this head, and of its agent; 0: it is none */
	bool heir;   /* of a job whose nodes have all ended for certain */
};

/* What it says to a head that takes over. */
struct node_attach {
	bool done;		  /* it has said what is there */
	bool described;		  /* … once at least: its session may have ended since */
	uint32_t generation;	  /* of its layout */
	uint32_t move, move_stop; /* … of a migration that is under way there; 0: none */
	bool move_went;		  /* … and has heard GO */
	struct loop_timer again;  /* it is asked once more */
	double again_in;
};

struct node_lease {
	uint64_t asked;	     /* and not granted yet: nothing is while node_set.adopting */
	uint64_t granted_at; /* lease_clock() of the last one; 0: none yet */
	struct loop_timer lost;
};

/* What is left of it when it is about to be lost. */
struct node_end {
	bool bye;		  /* it has said that no process of the job is left there */
	bool silent, gone;	  /* … nothing comes from there; and nothing is left there */
	struct loop_timer closes; /* … and its connection has not closed yet */
	bool proven; /* an agent of this head: none of its processes lives, and none will kill */
	char why[240];
};

/* Its disk: images, and the copier that passes them on. */
struct node_copies {
	char at[COPIES_ADDRESS_MAX]; /* of its copier; "": it has none */
	char folder[STORE_FOLDER_MAX];
};

/* Of the checkpoint under way there. */
struct node_ckpt {
	uint64_t bytes;
	bool idle;	 /* somebody's image there has nobody to write it */
	bool disk;	 /* somebody who writes one there waits for the disk */
	uint32_t silent; /* a rank there that has not begun to stop; MESSAGE_ALL: none */
};

/* Answers that are outstanding. */
struct node_asks {
	bool clearing, checking;
	uint32_t looked; /* the last look that it has answered */
	/* Inode numbers of the files that its ranks write, as it has said with the check
	 * files_check; ~0: too many to say. */
	uint64_t *files;
	size_t files_count;
	uint32_t files_check;
};

struct node {
	struct node_set *node_set;
	uint32_t index;
	char name[JOB_NODE_NAME], host[JOB_NODE_NAME];
	bool local;    /* its agent is our child */
	bool spare;    /* is to begin as one */
	bool unusable; /* it gets no more ranks if there is another one: the rules say so, or others
			* can't reach it */
	bool wrong;    /* it computes wrongly, as an audit has found: its ranks leave it */
	bool paused;   /* its ranks stand still */
	uint32_t slots, cores;
	uint32_t machine; /* the same on nodes that are one; 0: unknown */
	node_state_t state;
	struct session session;
	uint64_t taken[2]; /* bytes of output not acknowledged yet */
	struct node_agent agent;
	struct node_lease lease;
	struct node_leave leave;
	struct node_warm warm;
	struct node_attach attach;
	struct node_end end;
	struct node_copies copies;
	struct node_ckpt ckpt;
	struct node_asks asks;
};

/* What MSG_SPAWN has said, until the rank is there: its node may have to be told again. */
struct node_set_order {
	char *program, *sink; /* NULL: nothing is waited for */
	uint64_t position[3];
	bool refused; /* for want of a lease: said again behind the next one */
};

struct node_set_rank {
	bool spawning; /* asked for, not there yet */
	struct node_set_order order;
	pid_t pid;    /* launched and not yet ended; 0: none */
	pid_t group;  /* its process group; stays known after its end */
	pid_t member; /* said HELLO; 0: none yet */
	bool mpi, initialized, finalized;
	bool halted; /* somebody has stopped it, and a checkpoint waits for it */
	bool met;    /* a process of this rank has said HELLO since it was spawned */
	struct output_position out[2];
	uint32_t seen_by; /* the newest look that asked for what is in seen; 0: none */
	struct profile_process seen;
	uint64_t passed[2]; /* what its agent knows of that is printed for certain */
};

struct node_set_handler {
	/* All nodes are there. */
	void (*ready)(void *arg);
	/* A node can't be used, or what it was told can't be done. */
	void (*failed)(void *arg, const struct node *node, const struct error *err);
	/* No process of the job is left on this node, and none will be; its ranks are gone. */
	void (*lost)(void *arg, const struct node *node, const char *why);
	/* True: its node had no lease, and is to be told again as soon as it has one. */
	bool (*not_spawned)(void *arg, uint32_t rank, const struct error *err);
	/* The rank's process has said HELLO and got its WELCOME. */
	void (*hello)(void *arg, uint32_t rank);
	/* Any other packet of a rank; of the right size for its type. */
	void (*packet)(void *arg, uint32_t rank, const union proto_packet *packet);
	/* The launched process has ended and its output is taken; status is waitpid's. */
	void (*ended)(void *arg, uint32_t rank, int status);
	/* --hang-after: somebody has stopped it so many milliseconds ago. */
	void (*hung)(void *arg, uint32_t rank, int32_t ms);
	/* --hang-after wait=: the process has made so many calls of MPI, and waits in one. */
	void (*beat)(void *arg, uint32_t rank, uint64_t calls, bool waits);
	/* A process that said HELLO is gone, while the shell that started it lives on. */
	void (*stray)(void *arg, uint32_t rank);
	/* Answers of all nodes to node_set_clear, node_set_check, node_set_look. */
	void (*cleared)(void *arg);
	void (*checked)(void *arg, const struct error *err, uint64_t resident_bytes);
	void (*looked)(void *arg, uint32_t look, const struct profile *p, uint64_t progress);
	/* A rolled back rank printed something else than the first time. */
	void (*differs)(void *arg, uint32_t rank, int which);
	/* What a node says of a migration: MSG_MOVE_… but DATA and TAKEN, which the node set passes
	 * on.
	 */
	void (*moved)(void *arg, const struct node *node, const struct message *m);
	/* A process that stood ready is a rank's now, or its copy. */
	void (*stood)(void *arg);
	/* MSG_MAPPED, MSG_WARMED */
	void (*warm)(void *arg, struct node *node, const struct message *m);
	/* MSG_EVENTS, MSG_EVENTS_TAKEN */
	void (*events)(void *arg, const struct node *node, const struct message *m);
	/* An order about an image has been carried out, or not: MSG_COPIED. What images there are:
	 * MSG_COPIES_HELD. */
	void (*copied)(void *arg, const struct node *node, const struct message *m);
	/* Another agent has taken the place of the one of this node, which has died of why. All
	 * that this one was told holds, and nothing it said is lost; streams of migrations and
	 * events that passed it have ended. */
	void (*renewed)(void *arg, struct node *n, const char *why);
	/* Of agents that were there before this head (docs/attach.md): what there is; that there is
	 * no answer, and why; that a newer head has the job. */
	void (*attached)(void *arg, struct node *node, const struct message *m);
	void (*no_answer)(void *arg, struct node *node, const char *why);
	void (*superseded)(void *arg, uint32_t epoch);
	/* The output daemon has gone: true: there is another one. */
	bool (*output_daemon_gone)(void *arg);
	/* Nobody reads this stream ("stdout") any more, and the job is to end. */
	void (*output_closed)(void *arg, const char *name);
	/* Ranks have got other places, which the agents are about to hear. */
	void (*laying_out)(void *arg);
	/* False: somebody else is the head now, and no lease is given. */
	bool (*may_grant)(void *arg);
	void *arg;
};

/* A look under way; answers are summed up. */
struct node_set_look {
	uint32_t id;
	struct profile profile;
	uint64_t progress;
	struct node_set_look *next;
};

struct node_set_address {
	struct node_set_address *next;
	uint32_t rank;
	size_t len;
	unsigned char bytes[];
};

/* The agent of a node: hears the head on one descriptor, speaks on the other; an exit status. */
typedef int agent_main_t(int in_fd, int out_fd);

struct node_set_config {
	agent_main_t *agent;	   /* becomes a child, on this machine */
	const struct hosts *hosts; /* NULL: local nodes */
	uint32_t nodes, spares;	   /* of local nodes: that have ranks, and more */
	const char *launcher;	   /* a template; NULL: ssh */
	double node_timeout;	   /* seconds */
	struct setup setup;	   /* but for what differs from node to node */
	bool tag, stamp;
	struct output_daemon *output_daemon; /* NULL: output is written by ourselves */
	closed_output_t on_closed;
};

/* All nodes are asked for something, and some have not answered yet. */
struct node_set_asks {
	bool clearing, checking;
	uint32_t last_check;
	struct error check;
	uint64_t check_bytes;
};

struct node_set_looks {
	struct node_set_look *list; /* oldest first */
	uint32_t last;
};

struct node_set {
	struct node_set_config config;
	struct node_set_handler handler;
	struct loop *loop;
	uint32_t nranks;
	struct node *nodes;
	uint32_t count;
	struct placement placement;
	const uint32_t
	    *coming; /* [nranks]: the nodes that ranks are moving to; NULL: no migration */
	bool let_go; /* GO is said: copies are the ranks, though placement doesn't say so yet */
	struct node_set_rank *ranks;
	struct output_writer out[2];
	bool output_lost; /* known when it is destroyed */
	struct echoes (*echoes)[2];	/* [ranks], of jobs with replicas; NULL: others */
	struct stdin_spool stdin_spool; /* hale's stdin, for rank 0 */
	uint32_t generation;

	bool laid_out;	/* there are segments */
	bool announced; /* that all are ready */
	bool leaving;
	bool adopting;	/* the agents are those of another head, and not all have answered */
	bool abandoned; /* a newer head has the job: nothing is sent any more */
	struct loop_timer passed;
	struct node_set_address *addresses; /* that have come while adopting, newest first */
	struct node_set_asks asks;
	struct node_set_looks looks;
};

/* Forks the agents of this machine at once: call it before anything that they must not inherit.
 * hosts and what setup points to stay the caller's. */
hale_status_t node_set_create(struct node_set *c, struct loop *loop,
			      const struct node_set_config *config,
			      const struct node_set_handler *handler, struct error *err);
/* Starts the others, and tells all of the job; handler.ready follows. */
hale_status_t node_set_start(struct node_set *c, struct error *err);
/* Lets the agents go and waits for them, writes what is left of the output. */
void node_set_destroy(struct node_set *c);

/* Instead of both: the agents are there; nodes as they are described, by index, but for session and
 * pid. NODE_LOST ones are not asked. All others are NODE_STARTING and attached or no_answer follow
 * for each. Nothing is granted before node_set_adopted. */
hale_status_t node_set_adopt(struct node_set *c, struct loop *loop,
			     const struct node_set_config *config,
			     const struct node_set_handler *handler, const struct node *nodes,
			     uint32_t count, struct error *err);
void node_set_adopted(struct node_set *c);
/* It has not answered, and can't have a lease any more. */
void node_set_lost_for_good(struct node *n, const char *why);
void node_set_refuse_asks(struct node_set *c);
/* A newer head has the job: all sessions are closed, nobody is told anything, nothing is ended. */
void node_set_abandon(struct node_set *c);

/* A child of this process has ended: true if it was an agent or a launcher. */
bool node_set_child(struct node_set *c, pid_t pid, int status);

/* New, zeroed segments; no rank may be running. With nodes lost meanwhile their ranks get others.
 */
/* Without the processes r of which absent[r] (NULL: none): they are nowhere. */
hale_status_t node_set_layout(struct node_set *c, uint32_t generation, const unsigned char *absent,
			      struct error *err);
/* Starts rank; sink NULL: from its beginning, otherwise HALE_SINK's value and the program to
 * become it in. position: where its three streams stand. */
void node_set_spawn(struct node_set *c, uint32_t rank, const char *program, const char *sink,
		    const uint64_t position[3]);

/* Ranks that wait for their node's next lease are not started any more. */
void node_set_forget_orders(struct node_set *c);

/* To the process group of one rank, of all. */
void node_set_signal(struct node_set *c, uint32_t rank, int sig);
void node_set_signal_all(struct node_set *c, int sig);
/* To the process that said HELLO, or else the launched one. */
void node_set_signal_program(struct node_set *c, uint32_t rank, int sig);
/* Everybody stands still, and so will the head; or goes on. Returns when it has been sent. */
void node_set_pause(struct node_set *c, bool pause);
/* Processes in reserve for MPI_Comm_spawn end. */
void node_set_let_go(struct node_set *c);

bool node_set_present(const struct node_set *c, uint32_t rank); /* runs, or is about to */
uint32_t node_set_alive(const struct node_set *c);		/* ranks that are present */
bool node_set_usable(const struct node_set *c);			/* some node is there */
/* Some node that is lost is this machine: another supervisor and agent can be started for it. */
bool node_set_renewable(const struct node_set *c);
/* Starts those, for all such nodes but spares: they are ready from now on. HALE_ERR_SYSTEM. */
hale_status_t node_set_renew(struct node_set *c, struct error *err);
/* Ends what is left of the groups; handler.cleared follows. */
void node_set_clear(struct node_set *c, bool patient);

void node_set_check(struct node_set *c, bool files);
/* After the answers: do ranks of several nodes write the same file, as far as is known? */
bool node_set_files_meet(const struct node_set *c);
/* CKPT_ACROSS: all ranks of the job are so far with checkpoint id. */
void node_set_checkpoint_on(struct node_set *c, uint32_t id, int stage);
/* All ranks are there, also those that come back from images. */
void node_set_back(struct node_set *c);
/* ---- ranks that move (migrate.c) ---- */

/* Where the ranks of node `from` could go: to node `to`, or (to == from) to a spare, or to the
 * nodes with most room, rather not to one that is to be left itself. node_of: [nranks], all ranks.
 */
hale_status_t node_set_elsewhere(const struct node_set *c, uint32_t from, uint32_t to,
				 uint32_t *node_of, struct error *err);
/* There is a usable spare for them, or free slots for all of them on nodes that are well; `others`:
 * and for all that rules want away from their nodes as well. */
bool node_set_has_place(const struct node_set *c, uint32_t from, bool others);
void node_set_tell(struct node_set *c, uint32_t node, const struct message *m);
void node_set_tell_all(struct node_set *c, const struct message *m);
/* The copy is the rank from now on; its output and input go on at position. */
void node_set_moved(struct node_set *c, uint32_t rank, pid_t pid, const uint64_t position[3]);
/* Who got ranks is no spare any more, who has none left is one. */
void node_set_move_over(struct node_set *c, uint32_t from);

/* Meters of all ranks: returns the number of the look. */
uint32_t node_set_look(struct node_set *c, bool processes);
void node_set_checkpoint(struct node_set *c, uint32_t id, uint32_t base, uint32_t flags,
			 const char *folder);
void node_set_checkpoint_cancel(struct node_set *c, uint32_t id);
void node_set_checkpoint_over(struct node_set *c);
void node_set_checkpoint_refuse(struct node_set *c);
/* Bytes of its images so far; *idle: somebody's has nobody to write it. */
uint64_t node_set_checkpoint_bytes(const struct node_set *c, bool *idle, bool *disk);
/* One that has not begun to stop, although it was asked. */
bool node_set_checkpoint_silent(const struct node_set *c, uint32_t *rank);
void node_set_inject(struct node_set *c, uint32_t rank, const char *call, uint64_t count, int sig);
/* Memory errors to pretend in the tasks of all ranks; number > 0, another one each time. */
void node_set_task_due(struct node_set *c, uint32_t number, const char *due);

const struct node *node_set_node_of(const struct node_set *c, uint32_t rank);
/* Jobs with replicas: all processes start; that one is dead. */
void node_set_echo_begin(struct node_set *c);
void node_set_echo_lost(struct node_set *c, uint32_t process);
/* A copy of another replica is in its place, which had printed as much as position says. */
void node_set_echo_returned(struct node_set *c, uint32_t process, const uint64_t position[3]);
/* It begins as a checkpoint has it, alone of its rank. */
void node_set_echo_restored(struct node_set *c, uint32_t process, const uint64_t position[3]);
/* Under a new head: of the rank's stream i (0, 1) so much is printed; the process prints once more
 * from there on, and what is before others have to say. */
void node_set_echo_follow(struct node_set *c, uint32_t rank, int i, uint64_t printed);
void node_set_echo_again(struct node_set *c, uint32_t process, const uint64_t first[2]);
/* All that the process had printed at that position was passed on. */
bool node_set_echo_has(const struct node_set *c, uint32_t process, const uint64_t position[3]);
/* What was printed of the rank of that process; i 0: stdout, 1: stderr. */
struct history *node_set_history(struct node_set *c, uint32_t process, int i);
uint32_t node_set_ranks_on(const struct node_set *c, const struct node *n);
uint32_t node_set_cores(const struct node_set *c);
const char *node_state_name(node_state_t state);
/* By the table of policy/leave.h. */
leave_action_t node_leave_event(struct node *n, leave_event_t event);

#endif
