/* SPDX-License-Identifier: BSD-3-Clause */
/* The ranks of this node: their processes, sockets, segment, and what they print and read. Calls
 * the supervisor and job/. */
#ifndef HALE_AGENT_RANKS_AGENT_RANKS_H
#define HALE_AGENT_RANKS_AGENT_RANKS_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "base/error.h"
#include "agent/ranks/stdin_sink.h"
#include "agent/ranks/stream.h"
#include "agent/supervisor/supervisor.h"
#include "launch/pin.h"
#include "node/job.h"
#include "node/proto.h"
#include "node/segment.h"
#include "wire/message/message.h"
#include "wire/session/loop.h"

struct agent;

/* A connection; rank is set once it has said HELLO. */
struct agent_conn {
	struct agent *agent;
	uint64_t number; /* the supervisor's */
	struct loop_source source;
	pid_t peer;
	int64_t rank; /* -1: has not said HELLO */
	bool awaits_all; /* a child of a rank: until all ranks are back */
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
	bool stood;	    /* its process stood ready, and was not launched for it */
	bool late;	    /* a copy that has ended well after GO: told when all are released */
	bool stopped;	    /* for a migration, and has not said since that it goes on */
	double still_since; /* somebody has stopped it; 0: nobody has */
	uint64_t heartbeat; /* of its MPI calls, as it was seen last */
	double cpu_then;    /* processor time by then */
	pid_t weighed;	    /* its process that is in a group of agent_weights.c; 0: none */
	int weighed_as;	    /* … in which */
	bool aborted;	    /* has called MPI_Abort with that code */
	int abort_code;
	/* bytes that went to the head, and of which it has not said yet that they are printed:
	 * another head gets them again */
	struct book_kept kept[2];
	struct stream out[2];
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

/* The machine that the node is on. */
struct agent_machine {
	uint32_t *of; /* [nodes]: the same number, the same machine; NULL: not said */
	uint32_t nodes;
	uint32_t crowd; /* ranks of the job on this machine, when pins were planned */
	struct pin_plan pin;
	char libdir[PATH_MAX]; /* of our libraries, on this machine; "": not looked for yet */
};

/* Control groups, where shadows share the cores of mains (agent_weights.c). */
enum { WEIGHTS_MAINS, WEIGHTS_SHADOWS };
struct agent_weights {
	bool on;
	char parent[PATH_MAX], group[2][PATH_MAX];
	const char *file;
	uint32_t unit; /* a main's weight */
	uint32_t rate; /* of a core in thousandths, that each shadow is to have */
	uint32_t here[2];
};

/* Where the processes of ranks call. */
struct agent_door {
	int listener; /* the supervisor accepts */
	char address[ADDRESS_MAX], token[24];
	struct agent_conn *conns;
};

enum { AGENT_FOUND = 16 };

/* What the ranks print, and read; and what they have found. */
struct agent_streams {
	struct stream_window window[2];
	unsigned char *kept; /* [ranks][2][BOOK_KEPT], shared with successors; NULL: none */
	struct stdin_sink stdin_sink;
	/* Silent errors of this generation: the head that was told of the newest ones may have died
	 * before it did anything. */
	struct agent_found {
		uint32_t rank;
		struct proto_sdc sdc;
	} found[AGENT_FOUND];
	unsigned found_count; /* of all */
};

/* agent_hang.c: --hang-after */
void agent_hang_start(struct agent *a);
void agent_hang_stop(struct agent *a);
/* agent_flip.c: of MSG_INJECT, "flip:…" */
void agent_flip(struct agent *a, const struct message *m);
/* agent_weights.c: weights of control groups give each shadow so much of a core, in thousandths.
 * False: no group can be had, or rate is 0. */
bool agent_weights_begin(struct agent *a, uint32_t rate);
/* Other processes are here than before, or they have other roles. */
void agent_weights_place(struct agent *a);
void agent_weights_end(struct agent *a);
/* agent_view.c */
void agent_view(struct agent *a, const struct message *m);

/* agent_ranks.c */
hale_status_t agent_ranks_create(struct agent *a, struct error *err);
void agent_ranks_destroy(struct agent *a);
void agent_machines(struct agent *a, const struct message *m);
hale_status_t agent_layout(struct agent *a, uint32_t generation, const uint32_t *node_of,
			   struct error *err);
/* As agent_layout, but makes the new layout in *v; the agent's present view stays. */
hale_status_t agent_layout_beside(struct agent *a, uint32_t generation, const uint32_t *node_of,
				  struct agent_view *v, struct error *err);
void agent_view_swap(struct agent *a, struct agent_view *v);
/* Writes the present layout down in the book. */
void agent_view_write(struct agent *a, uint32_t generation, const uint32_t *node_of);
void agent_view_drop(struct agent *a, struct agent_view *v);
hale_status_t agent_spawn_rank(struct agent *a, const struct message *m, struct error *err);
/* The environment of a process for `rank`. sink: the image or stream that the process is to become;
 * NULL: it starts at the beginning of the program. Returns NULL with a sentence on failure. */
char **agent_environment(struct agent *a, uint32_t rank, const char *sink, struct error *err);
void agent_environment_free(char **env);
void agent_spawn(struct agent *a, const struct message *m);
void agent_signal(struct agent *a, uint32_t rank, int sig);
/* As supervisor_group_is_strange. */
bool agent_group_is_strange(const struct agent *a, uint32_t rank);
void agent_signal_all(struct agent *a, int sig);
void agent_signal_program(struct agent *a, uint32_t rank, int sig);
/* Signals the main thread of the process that said HELLO. */
void agent_signal_member(struct agent *a, uint32_t rank, int sig);
/* Plans again which cores the ranks of this node get, if the number of the job's ranks on this
 * machine has changed. */
void agent_pins(struct agent *a);

/* agent_reap.c */
/* Deals with all ranks and children of the agent that have ended. */
void agent_reap(struct agent *a);
/* Processes in reserve for MPI_Comm_spawn, and spawned ones that are through, end. */
void agent_reserve_end(struct agent *a);
/* Has the event loop call agent_reap, when the caller is through. */
void agent_reap_soon(struct agent *a);
/* Kills what is left of the ranks' process groups; true when nothing is left. */
bool agent_clear(struct agent *a);
/* … and processes that ranks have started and that left these groups. */
bool agent_clear_all(struct agent *a);
/* Does anything of both kinds run? */
bool agent_has_left_behind(const struct agent *a);
bool agent_clear_rank(struct agent *a, uint32_t rank);

/* agent_conn.c */
/* Listens for processes of this node at an abstract name, which gets into name. Any user can take
 * such names, so there is something in it that nobody foresees. -1 with errno. */
int agent_listen_at(const struct agent *a, const char *what, int type, char name[ADDRESS_MAX]);
hale_status_t agent_listen(struct agent *a, struct error *err);
/* A connection that the supervisor has accepted. */
struct agent_conn *agent_conn_add(struct agent *a, const struct supervisor_conn *conn);
/* Deals with a packet that the agent before this one had received and had not dealt with. */
void agent_packet_again(struct agent *a);
/* Begins to listen to the supervisor. */
void agent_ward_start(struct agent *a);
void agent_ward_look(struct agent *a); /* soon, whether or not it says something */
void agent_conns_close(struct agent *a);
/* All ranks are back: who waits for that hears so. */
void agent_conns_back(struct agent *a);
/* Takes what its process has said already. */
void agent_conn_drain(struct agent_rank *r);
void agent_conn_drop(struct agent *a, struct agent_rank *r);
/* Sends the rank's network address, as it stands in the present segment, to the head. */
void agent_tell_address(struct agent *a, uint32_t rank);
bool agent_conn_welcome(struct agent *a, struct agent_conn *c, uint32_t rank);

/* agent_shell.c: a rank that a script has started moves without the script */
hale_status_t agent_shell_check(struct agent *a, uint32_t rank, struct error *err);
/* Stops every process that was launched for the rank but the rank itself, for as long as the rank
 * stands still. */
hale_status_t agent_shell_halt(struct agent *a, uint32_t rank, struct error *err);
void agent_shell_resume(struct agent *a, uint32_t rank);

/* agent_kept.c: only where another head may come */
/* Maps the memory for kept output, which a successor of this agent inherits. */
void agent_kept_open(struct agent *a);
void agent_kept_close(struct agent *a);
void agent_kept_again(struct agent *a); /* after agent_read_back */
void agent_kept_begin(struct agent *a, uint32_t rank, const uint64_t position[3]);
void agent_kept_add(struct agent *a, uint32_t rank, int which, const void *bytes, size_t len);
void agent_kept_passed(struct agent *a, const struct message *m);
/* Sends all kept output again to a new head; the flow-control windows start again. */
void agent_kept_send(struct agent *a);
/* A silent error that another head is to hear of, too; to that head. */
void agent_found_keep(struct agent *a, uint32_t rank, const struct proto_sdc *sdc);
void agent_found_send(struct agent *a);

#endif
