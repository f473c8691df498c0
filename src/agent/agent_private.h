/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of the agent share.
 *
 *   agent.c        life: the session, what the head says, the end
 *   agent_ranks.c  segment, starting; agent_reap.c  ends
 *   agent_conn.c   the ranks' sockets
 *   agent_ckpt.c   what a checkpoint needs of this node
 *   agent_lease.c  whether the ranks may run
 *   agent_record.c   what is written down after each turn; agent_adopt.c  where a successor begins
 *   agent_events.c  the job's event broker here
 *   agent_copies.c images on this node's own disk, and their copies
 *   agent_head.c   one head goes, another one comes; agent_kept.c  output that waits for it
 *   agent_migrate.c  ranks that move to another node, or from there; agent_relay.c  their streams;
 *                  agent_direct.c  and those that don't pass the head; agent_sealed.c  so that
 *                  nobody can read them; agent_files.c  their files; agent_shell.c  scripts around
 *                  them
 *   agent_warm.c   a spare has the program's files in memory before it is needed; warm_files.c;
 *                  agent_standby.c  and processes of the program that stand ready
 */
#ifndef HALE_AGENT_AGENT_PRIVATE_H
#define HALE_AGENT_AGENT_PRIVATE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "base/error.h"
#include "agent/agent.h"
#include "agent/copier/copier.h"
#include "agent/supervisor/supervisor.h"
#include "agent/ranks/stdin_sink.h"
#include "node/job.h"
#include "wire/lease/lease.h"
#include "wire/session/loop.h"
#include "wire/message/message.h"
#include "launch/pin.h"
#include "node/proto.h"
#include "node/segment.h"
#include "wire/session/session.h"
#include "wire/session/setup.h"
#include "agent/ranks/stream.h"
#include "agent/session/durable_session.h"
#include "store/store.h"

struct agent;
struct agent_calls;

/* A connection; rank is set once it has said HELLO. */
struct agent_conn {
	struct agent *agent;
	uint64_t number; /* the guardian's */
	struct loop_source source;
	pid_t peer;
	int64_t rank; /* -1: has not said HELLO */
	struct agent_conn *next;
};

struct agent_rank {
	uint32_t rank;
	pid_t pid;    /* launched and not yet reaped; 0: none */
	pid_t group;  /* may still have members; 0: none */
	pid_t member; /* said HELLO: the one to talk to; 0: none yet */
	struct agent_conn *conn;
	bool mpi, initialized, finalized;
	bool met;	       /* a process of this rank has said HELLO since it was spawned */
	bool moved;	       /* … and has said that its copy runs and it ends */
	bool halted;	       /* the script around it stands still */
	bool resumed, written; /* for the checkpoint under way */
	bool childless;	       /* at the last look: resumed, not written, and nobody writes */
	bool spawned, ended;   /* since the layout; status: waitpid's, when it has ended */
	int status;
	bool stood;   /* its process stood ready, and was not launched for it */
	bool late;    /* a copy that has ended well after GO: told when all are released */
	bool stopped; /* for a migration, and has not said since that it goes on */
	bool aborted; /* has called MPI_Abort with that code */
	int abort_code;
	/* bytes that went to the head, and of which it has not said yet that they are printed:
	 * another head gets them again */
	struct book_kept kept[2];
	struct stream out[2];
};

/* The checkpoint under way, as far as this node is concerned. */
struct agent_ckpt {
	uint32_t id; /* 0: none */
	char folder[STORE_FOLDER_MAX + 16];
	bool local;	/* it is on this node's own disk */
	uint64_t inode; /* of a folder that all nodes share; 0: not known */
	struct loop_timer look;
};

/* Who lives where, and the segment for it. */
struct agent_view {
	uint32_t generation;
	uint32_t *node_of; /* [nranks]; NULL: no layout yet */
	uint32_t here;	   /* ranks on this node */
	int segment_fd;
	struct segment *segment; /* NULL: no layout yet */
	int slot;		 /* in the book; -1: none */
};

/* Known to the source's agent when it has called, to the target's by what comes first. */
enum relay_way { WAY_UNKNOWN, WAY_RELAY, WAY_DIRECT };

enum { AGENT_PLACES = REACH_PLACES_MAX };

/* One end of the stream between a rank and its copy: what the connection brings goes to the head,
 * what the head brings goes to the connection (agent_migrate.c). */
struct agent_relay {
	struct agent *agent;
	uint32_t rank;
	struct loop_source source; /* fd -1: not connected, or over */
	bool connected;
	bool paused;   /* nothing is read: the window is full */
	bool held;     /* while its rounds are sent, the rank stands still most of the time */
	bool due;      /* its next round begins with the node's next hold */
	int file;      /* -1: none open. By files, what goes over comes from it or into it */
	bool made;     /* there may be a file of this rank here */
	char *program; /* to be started when the file is whole */
	uint64_t seen; /* of what goes over, when that was looked at last */
	enum relay_way way;
	int given;		/* a connection between hosts, for the process here; -1: none */
	pid_t sealer;		/* that encrypts it; 0: none */
	int watched;		/* the same, whose progress is looked at; -1: none */
	uint32_t round_id;	/* the first, which waits for the way */
	uint64_t out;		/* bytes that went to the head and are not TAKEN yet */
	unsigned char *waiting; /* [begin, end): for the connection */
	size_t begin, end, cap;
	struct agent_conn *conn; /* of a copy that has said HELLO */
	uint64_t position[3];	 /* where its streams are to stand */
};

/* A migration under way, as far as this node is concerned. */
struct agent_move {
	uint32_t id; /* the generation that it leads to; 0: none */
	uint32_t stop_id;
	struct agent_view coming, old;
	bool went; /* coming has become the view */
	int listener;
	struct loop_source listening;
	char name[ADDRESS_MAX];
	char folder[PATH_MAX]; /* for files; "": streams */
	struct loop_timer progress, holding;
	struct agent_relay *relays; /* [nranks] */
	bool cancelling;
	struct loop_source direct[AGENT_PLACES]; /* listening for other agents */
	struct direct_hand *hands;		 /* of agent_direct.c */
};

/* The process that copies images, if there is one (docs/levels.md). */
struct agent_copies {
	struct store store; /* this node's folder */
	struct copier copier;
	pid_t pid; /* 0: none */
	struct loop_source source;
};

/* A child and what comes of it: all that it writes into its pipe. */
struct agent_warm_child {
	struct agent *agent;
	struct loop_source source; /* fd -1: there is none */
	unsigned char *bytes;
	size_t len, cap;
	uint32_t id; /* of the question */
	void (*done)(struct agent *a, const struct agent_warm_child *c);
};

struct agent_warm {
	struct agent_warm_child lister; /* of what the ranks here have mapped */
	struct agent_warm_child reader; /* of what ranks elsewhere have */
	uint32_t id;			/* of the newest MSG_WARM */
	unsigned char *list;		/* of its files; of several nodes, one behind another */
	size_t len;
	uint32_t sinks; /* processes that are to stand ready */
	uint64_t bytes; /* in memory */
	char text[320]; /* what is wrong with a file here; "": nothing */
};

struct agent_stand {
	uint32_t wanted;  /* processes that are to stand ready */
	uint32_t started; /* since that was said */
	uint32_t said;	  /* that so many do, to the head */
	char text[128];	  /* why there are fewer; "" */
	struct loop_timer timer;
};

/* What the guardian need not hold any more when the turn is written down. */
struct agent_drop {
	enum guardian_kind kind;
	uint64_t key;
};

struct agent {
	const struct agent_calls *up;
	struct setup setup;
	bool ready; /* setup has come */
	int exit_status;
	struct loop loop;
	struct tether link; /* to the head */
	struct loop_source signal_source, ward_source;
	struct guardian guardian;
	struct loop_timer reaping;
	/* so many of each have been dealt with: node_record.h */
	uint64_t turns, frames, packets, pieces, feeds;
	bool orphaned; /* the guardian is gone */
	struct agent_drop *drops;
	size_t drop_count, drop_cap;
	struct pin_plan pin;
	uint32_t *node_of;    /* [nranks]; NULL: no layout yet */
	uint32_t here;	      /* ranks on this node */
	uint32_t *machine_of; /* [nodes]: the same number, the same machine; NULL: not said */
	uint32_t nodes;
	uint32_t crowd; /* ranks of the job on this machine, when pins were planned */
	int listener;	/* the guardian accepts */
	char address[ADDRESS_MAX], token[24];
	char libdir[PATH_MAX]; /* of our libraries, on this machine; "": not looked for yet */
	struct agent_conn *conns;
	int segment_fd;
	struct segment *segment; /* NULL: no layout yet */
	int view_slot;		 /* in the book; -1: none */
	uint32_t generation;
	struct agent_rank *ranks; /* [nranks] */
	struct stream_window window[2];
	unsigned char *kept; /* [ranks][2][BOOK_KEPT], shared with successors; NULL: none */
	struct intake intake;
	struct agent_ckpt ckpt;
	struct agent_move move;
	struct agent_copies copies;
	struct agent_warm warm;
	struct agent_stand stand;
	struct lease_held lease;
	struct loop_timer ask, fence;
	bool paused, resuming; /* the ranks are stopped; they go on with the next lease */
	uint64_t resume_from;  /* which must be an answer to this ask or a later one */
	uint32_t epoch;	       /* of the head that is heard */
	uint64_t sessions; /* with other heads so far: the key of the newest one's descriptors */
	uint32_t last_id;  /* newest id of a checkpoint, round or stop */
	bool headless;	   /* waits for another head */
	bool frozen;	   /* paused because the lease ran out, not because the user wanted it */
	int heads;	   /* where new heads knock; -1: nowhere */
	struct loop_source knocking;
	struct agent_caller *callers;
	struct loop_timer forget, alone, look;
	double alone_until;	     /* clock_seconds(); 0: alone is not armed */
	enum book_waiting waiting;   /* for what `clear` is armed */
	struct agent_events *events; /* NULL: none are served here */
	uint32_t clear_id;
	struct loop_timer clear;
};

/* agent.c */
hale_status_t agent_begin_job(struct agent *a, struct error *err);
bool agent_begin_first(struct agent *a); /* of a node that has none yet */
void agent_clear_more(void *agent);
void agent_leave_if_clear(void *agent);
void agent_take(void *agent, const struct message *m);
void agent_head_lost(void *agent, const char *why);
/* Ends all ranks, and then the agent. */
void agent_leave_job(struct agent *a);
void agent_send(struct agent *a, const struct message *m);
/* Something of this node can't be used: tells the head. */
void agent_failed(struct agent *a, const struct error *err);
/* Ends all ranks at once, says why, and then the agent itself. */
void agent_end_by_fence(struct agent *a, const char *why);

/* agent_view.c */
void agent_view(struct agent *a, const struct message *m);

/* agent_ranks.c */
hale_status_t agent_ranks_create(struct agent *a, struct error *err);
void agent_ranks_destroy(struct agent *a);
void agent_machines(struct agent *a, const struct message *m);
hale_status_t agent_layout(struct agent *a, uint32_t generation, const uint32_t *node_of,
			   struct error *err);
/* The same beside the one that is there; the view of now stays. */
hale_status_t agent_layout_beside(struct agent *a, uint32_t generation, const uint32_t *node_of,
				  struct agent_view *v, struct error *err);
void agent_view_swap(struct agent *a, struct agent_view *v);
void agent_view_drop(struct agent *a, struct agent_view *v);
hale_status_t agent_spawn_rank(struct agent *a, const struct message *m, struct error *err);
/* Of a process of rank that becomes sink (NULL: it begins anew); NULL with a sentence. */
char **agent_environment(struct agent *a, uint32_t rank, const char *sink, struct error *err);
void agent_environment_free(char **env);
bool agent_has(const struct agent *a, uint32_t rank); /* it lives here */
void agent_spawn(struct agent *a, const struct message *m);
void agent_signal(struct agent *a, uint32_t rank, int sig);
void agent_signal_all(struct agent *a, int sig);
void agent_signal_program(struct agent *a, uint32_t rank, int sig);
/* To the process that said HELLO, its main thread. */
void agent_signal_member(struct agent *a, uint32_t rank, int sig);
/* The pins for the layout of now. */
void agent_pins(struct agent *a);
struct mailbox *agent_mailbox(const struct agent *a, uint32_t rank);

/* agent_reap.c */
/* Takes note of who has ended. */
void agent_reap(struct agent *a);
void agent_reap_soon(struct agent *a);
/* Kills what is left of the groups; true when nothing is. */
bool agent_clear(struct agent *a);
bool agent_clear_rank(struct agent *a, uint32_t rank);

/* agent_conn.c */
/* Listens for processes of this node at an abstract name, which gets into name. Any user can take
 * such names, so there is something in it that nobody foresees. -1 with errno. */
int agent_listen_at(const struct agent *a, const char *what, int type, char name[ADDRESS_MAX]);
hale_status_t agent_listen(struct agent *a, struct error *err);
/* A connection that the guardian has accepted. */
struct agent_conn *agent_conn_add(struct agent *a, const struct guardian_conn *conn);
/* The packet that an agent before this one had received and not dealt with. */
void agent_packet_again(struct agent *a);
/* What the guardian says. */
void agent_ward_start(struct agent *a);
void agent_ward_look(struct agent *a); /* soon, whether or not it says something */
void agent_conns_close(struct agent *a);
void agent_conn_drop(struct agent *a, struct agent_rank *r);
/* From the segment of now. */
void agent_tell_address(struct agent *a, uint32_t rank);
bool agent_conn_welcome(struct agent *a, struct agent_conn *c, uint32_t rank);

/* agent_ckpt.c */
void agent_ckpt_again(struct agent *a); /* of one that is under way */
void agent_ckpt_check(struct agent *a, uint32_t id);
/* The main thread of a process, or another one if that has ended; 0: so has the process. */
pid_t agent_thread_of(pid_t pid);
/* As ps shows it: 'R', 'S', 'T', …; 'X': it is gone. */
char agent_process_state(long pid);
bool agent_process_is_zombie(long pid);
/* Does it handle the signal by which ranks are asked for things? */
bool agent_hears(pid_t pid);
void agent_ckpt_start(struct agent *a, const struct message *m);
void agent_ckpt_take(struct agent *a, uint32_t rank, const struct proto_ckpt *p);
void agent_ckpt_cancel(struct agent *a, uint32_t id);
/* The head is gone, and may have found it complete before: the images stay. */
void agent_ckpt_orphan(struct agent *a);
/* No head will complete the checkpoint that was under way, and no rank writes any more: its folder
 * goes. */
void agent_ckpt_forget(const struct agent *a);
void agent_ckpt_over(struct agent *a);
void agent_ckpt_refuse_all(struct agent *a);
void agent_inject(struct agent *a, const struct message *m);

/* agent_migrate.c: docs/migration.md, its last section */
bool agent_move_take(struct agent *a, const struct message *m); /* false: it is none of ours */
bool agent_moves_in(const struct agent *a, uint32_t rank);
/* Its process here is not the rank yet, or was not when the head last said so. */
bool agent_is_copy(const struct agent *a, uint32_t rank);
void agent_move_take_hello(struct agent *a, struct agent_conn *c, const struct proto_hello *h);
void agent_move_take_end(struct agent *a, uint32_t rank, int status); /* a copy that moves in */
void agent_move_end_copies(void *agent);
void agent_move_drop(struct agent *a); /* all ranks are being ended */
bool agent_moves_out(const struct agent *a, uint32_t rank);
/* It has moved from here, and its copy is not released yet: what it has printed comes first. */
bool agent_has_left(const struct agent *a, uint32_t rank);
/* The copy of m->rank, whose stream comes from `sink`: tells the head. */
void agent_move_spawn(struct agent *a, const struct message *m, const char *sink);
/* The stream's way is known; given: by a descriptor. */
void agent_move_first_round(struct agent *a, uint32_t rank, bool given);
void agent_move_not_spawned(struct agent *a, uint32_t rank, const struct error *err);

/* agent_relay.c */
hale_status_t agent_relays_begin(struct agent *a, struct error *err);
void agent_relays_end(struct agent *a);
void agent_relay_take(struct agent *a, const struct message *m); /* DATA, TAKEN */

/* The connection to the other host is there, or (fd -1) there is none to be had: the source's first
 * round begins, the target's copy gets it. Takes over fd. */
void agent_relay_decided(struct agent *a, uint32_t rank, int fd);

/* agent_direct.c: connections from agent to agent */
unsigned agent_direct_listen(struct agent *a, struct reach_place place[AGENT_PLACES]);
/* What the user's environment says of interfaces and ports, and a variable of it (NULL: not set, or
 * empty). */
struct reach_wish agent_reach_wish(const struct agent *a);
const char *agent_variable(const struct agent *a, const char *name);
/* Calls where the target listens; agent_relay_decided follows. False: it doesn't. */
bool agent_direct_call(struct agent *a, uint32_t rank, const void *places, size_t len);
void agent_direct_end(struct agent *a);

/* agent_sealed.c: with --net-security encrypt */
bool agent_seals(const struct agent *a);
/* A process seals what goes over `wire`, or what `plain` says and hears: returns the other end of
 * it, in the clear, -1 if there is none to be had. Both take the descriptor over. */
int agent_seal_wire(struct agent *a, uint32_t rank, int wire);
int agent_seal_process(struct agent *a, uint32_t rank, int plain);
/* A child has ended that is no rank: it may be one of these, and say why its stream is no good. */
void agent_seal_take_end(struct agent *a, pid_t pid, int status);

/* agent_files.c */
/* From now on the head hears when something has gone over that it doesn't see itself. */
void agent_progress_start(struct agent *a);
hale_status_t agent_files_begin(struct agent *a, const char *folder, struct error *err);
/* Those that are there; what ranks make afterwards goes with the end. */
void agent_files_remove(struct agent *a);
void agent_files_end(struct agent *a);
void agent_file_path(const struct agent *a, uint32_t rank, char path[PATH_MAX]);
/* Starts the copy of m->rank from its file, as soon as that is here. */
void agent_file_sink(struct agent *a, const struct message *m);
void agent_file_take(struct agent *a, const struct message *m); /* DATA, TAKEN, WANT */

/* agent_shell.c: a rank that a script has started moves without the script */
hale_status_t agent_shell_check(struct agent *a, uint32_t rank, struct error *err);
/* For the time of the stop nothing but the rank itself runs of what was launched. */
hale_status_t agent_shell_halt(struct agent *a, uint32_t rank, struct error *err);
void agent_shell_resume(struct agent *a, uint32_t rank);
/* agent_head.c: docs/attach.md */
hale_status_t agent_heads_listen(struct agent *a, struct error *err);
void agent_heads_again(struct agent *a, const struct book_state *s);
void agent_heads_close(struct agent *a);
/* Into the job's record: this node ends, and there is no head that could be told. */
void agent_write_down(const struct setup *s, const char *why);
/* The head is gone. True: another one is waited for; false: the ranks are to end. */
bool agent_heads_wait(struct agent *a);

/* agent_kept.c: only where another head may come */
/* Memory for it, which a successor has again. */
void agent_kept_open(struct agent *a);
void agent_kept_close(struct agent *a);
void agent_kept_again(struct agent *a); /* after agent_read_back */
void agent_kept_begin(struct agent *a, uint32_t rank, const uint64_t position[3]);
void agent_kept_add(struct agent *a, uint32_t rank, int which, const void *bytes, size_t len);
void agent_kept_passed(struct agent *a, const struct message *m);
/* All that is kept goes out again; the windows begin anew with it. */
void agent_kept_send(struct agent *a);

/* agent_record.c */
/* What this turn has come to is written down, and only then what it says goes out. */
void agent_record_write(void *agent);
void agent_drop_later(struct agent *a, enum guardian_kind kind, uint64_t key);
/* The guardian has something else as that by now. */
void agent_drop_not(struct agent *a, enum guardian_kind kind, uint64_t key);
/* Out of what is written down, before anything else. */
void agent_read_back(struct agent *a, const struct book_state *s);
/* … of which only how far it has come, where there is no job yet. */
void agent_read_counts(struct agent *a, const struct book_state *s);

/* agent_adopt.c: begins where another agent has ended. False with a sentence: it can't. */
bool agent_adopt(struct agent *a, struct error *err);
/* In the guardian: no agent is left, and none will be. False: no head could hear it. */
bool agent_bye(struct guardian *g, const char *why);

/* agent_events.c: the job's event broker on this host */
void agent_events_start(struct agent *a);
void agent_events_stop(struct agent *a);
void agent_events_renew(struct agent *a); /* another head has come */
void agent_events_take(struct agent *a, const struct message *m);

/* agent_copies.c */
hale_status_t agent_copies_start(struct agent *a, struct error *err);
void agent_copies_stop(struct agent *a);
/* A successor's: at the same addresses, with the orders that are not answered. */
void agent_copies_again(struct agent *a);
/* To a head that was not there when it began: where it is, and what images are here. */
void agent_copies_tell(struct agent *a);
bool agent_copies_take(struct agent *a, const struct message *m); /* false: it is none of ours */
void agent_copies_folder(struct agent *a, uint32_t id, char *folder, size_t cap);
/* One that is given up is set aside, and removed later. */
void agent_copies_discard(struct agent *a, uint32_t id);
void agent_copies_path(const struct agent *a, uint32_t id, char *folder, size_t cap);

/* agent_warm.c */
void agent_warm_init(struct agent *a);
void agent_warm_stop(struct agent *a);
bool agent_warm_take(struct agent *a, const struct message *m); /* false: it is none of ours */

/* What there is now. */
void agent_warm_say(struct agent *a);

/* agent_standby.c: so many processes of this program shall stand ready; identity: of its files as
 * they are here. */
void agent_stand_want(struct agent *a, uint32_t count, const char *program, uint64_t identity);
void agent_stand_none(struct agent *a);
void agent_stand_count(struct agent *a); /* a child has ended */

/* agent_lease.c */
void agent_lease_renew(struct agent *a); /* asks the new head at once */
void agent_lease_start(struct agent *a);
void agent_lease_again(struct agent *a); /* a successor's */
void agent_lease_stop(struct agent *a);
void agent_lease_granted(struct agent *a, uint64_t number);
bool agent_lease_holds(const struct agent *a);
void agent_pause(struct agent *a, bool pause);

#include "agent/agent_calls.h"

#endif
