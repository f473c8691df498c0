/* SPDX-License-Identifier: BSD-3-Clause */
/* What the head of a job and the agent of a node say to each other (docs/agent-protocol.md has the
 * meaning of each). A message travels as a frame:
 *
 *   0 u32 length of what follows   4 u32 type   8 the fields that the type has, in order   newline
 *
 * The newline is for launchers that pass on whole lines only (srun). Integers are little-endian. A
 * text is its length (u32), its bytes and a NUL; bytes come last and fill the rest. Whoever reads
 * checks every length: a frame that is not exactly what its type says is refused, and the session
 * is over.
 */
#ifndef HALE_WIRE_MESSAGE_MESSAGE_H
#define HALE_WIRE_MESSAGE_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MESSAGE_VERSION = 1, MESSAGE_MAX = 16 << 20, MESSAGE_HEADER = 4 };
/* Bytes of rank 0's stdin that are on their way to it at most (head/output/stdin_spool.h,
 * agent/ranks/stdin_sink.h). */
enum { STDIN_WINDOW = 65536 };

/* Fields: r rank, v value, i id, b base, f flags, n number, p position[3], t text, s name,
 * x bytes. */
#define MESSAGES(M)                                                                                \
	/* head → agent */                                                                       \
	M(MSG_SETUP, "x")    /* the job (setup.h); the first one */                                \
	M(MSG_MACHINES, "x") /* of each node, u32: those that are one machine; before LAYOUT */    \
	M(MSG_LAYOUT, "ix")  /* new segment of generation i; x: node of each rank, u32 */          \
	M(MSG_VIEW, "ix") /* view i of a job with replicas; x: of each process, 1: it is dead */   \
	M(MSG_SPAWN, "rpts")	/* start rank as program t, as sink s ("": fresh), streams at p */ \
	M(MSG_SIGNAL, "rvf")	/* signal v to rank (or MESSAGE_ALL); f: enum signal_to */         \
	M(MSG_CLEAR, "iv")	/* end what is left of all groups; answered by CLEARED */          \
	M(MSG_LOOK, "iv")	/* answered by LOOKED; v 1: with its processes */                  \
	M(MSG_CHECK, "iv")	/* can all be captured? v 1: only which files they write; CHECKED */ \
	M(MSG_CKPT, "ibft")	/* checkpoint i, a difference to b, flags f, into folder t */      \
	M(MSG_CKPT_ON, "iv") /* CKPT_ACROSS: v 1: all ranks stand still, 2: all have images */     \
	M(MSG_CKPT_CANCEL, "i") /* it was given up */                                              \
	M(MSG_CKPT_OVER, "i")	/* it is complete or given up: no more PROGRESS */                 \
	M(MSG_CKPT_REFUSE, "")	/* asks of programs came to nothing */                             \
	M(MSG_BACK, "i")	/* all ranks of generation i are there, those from images too */   \
	M(MSG_INJECT, "rnft")	/* signal f at the n-th call of t */                               \
	M(MSG_TASK_DUE, "nt")	/* due:t in the tasks of all ranks from now on; the n-th such */   \
	M(MSG_FEED, "x")	/* bytes for rank 0's stdin */                                     \
	M(MSG_FEED_END, "")	/* there are no more */                                            \
	M(MSG_TAKEN, "vn")	/* n bytes of stream v have been passed on */                      \
	M(MSG_LEASE, "n")	/* granted: what ASK number n asked for */                         \
	M(MSG_LET_GO, "")	/* the first world has ended: so do processes in reserve */        \
	M(MSG_PAUSE, "v")	/* 1: the job stands still, 0: it goes on */                       \
	M(MSG_QUIT, "")		/* the job is over */                                              \
	M(MSG_ATTACH, "i")   /* a new head, of epoch i, takes over; the first one on a session */  \
	M(MSG_PASSED, "rvn") /* rank's stream v is printed up to n */                              \
	M(MSG_MOVE_BEGIN,                                                                          \
	  "iftx") /* ranks are to live there, in segments of generation i; t: folder; */           \
	/* f: enum move_flag */                                                                    \
	M(MSG_MOVE_SINK, "rpts") /* as SPAWN: who becomes rank's copy */                           \
	M(MSG_MOVE_ROUND,                                                                          \
	  "ribfx") /* rank: round i of its copy; b 0: first; f: CKPT_HOLD, CKPT_ANNOUNCE; x: where */ \
	M(MSG_MOVE_STOP, "i")	 /* all ranks stop; the last round of those that move */           \
	M(MSG_MOVE_GO, "i")	 /* the new segments count; copies may run */                      \
	M(MSG_MOVE_RELEASE, "i") /* all other ranks go on in the new segments */                   \
	M(MSG_MOVE_CANCEL, "i")	 /* end the copies; answered by MOVE_CANCELLED */                  \
	M(MSG_MOVE_OVER, "i")	 /* no copy is left: all ranks stay, and go on */                  \
	M(MSG_COPY, "ribfpts")	 /* f: enum copy_kind; p: bytes, checksum of rank's image in i */  \
	M(MSG_MAPS, "i")	 /* what have the ranks mapped? answered by MAPPED */              \
	M(MSG_WARM,                                                                                \
	  "inx") /* files that ranks elsewhere have mapped; n processes shall stand ready */       \
	M(MSG_COPY_KEEP, "x") /* x: ids, u32; older ones that are not among them are removed */    \
	/* agent → head */                                                                       \
	M(MSG_READY, "ivnt")	  /* machine i, pid v, n cores, host name t */                     \
	M(MSG_FAILED, "vt")	  /* status v: the node can't be used, and why */                  \
	M(MSG_SPAWNED, "rvf")	  /* rank's process is v; f 1: it stood ready */                   \
	M(MSG_NOT_SPAWNED, "rvt") /* status v, and why */                                          \
	M(MSG_HELLO, "rvf")	  /* process v of rank has said HELLO; f: enum hello_flag */       \
	M(MSG_PACKET, "rx")	  /* what else it says: a packet of proto.h */                     \
	M(MSG_ENDED, "rv")	  /* the launched process has ended; v: waitpid's status */        \
	M(MSG_HUNG, "rv")	  /* somebody has stopped it, v ms ago; v < 0: it computes for */  \
	/* -v ms of processor time, and calls no MPI */                                            \
	M(MSG_BEAT, "rfn")	 /* it has made n calls of MPI; f 1: it waits in one */            \
	M(MSG_STRAY, "r")	 /* who said HELLO is gone, the shell around it is not */          \
	M(MSG_OUTPUT, "rvx")	 /* bytes of its stream v (1: stdout, 2: stderr) */                \
	M(MSG_CLEARED, "i")	 /* nothing is left of generation i */                             \
	M(MSG_LOOKED, "inx")	 /* n: progress; x: struct profile, struct profile_process[] */    \
	M(MSG_CHECKED,                                                                             \
	  "ivnrtx") /* status v for rank, and why; n: resident bytes of all; x: inode numbers, */  \
	/* u64, of files that they write; ~0: too many */                                        \
	M(MSG_PROGRESS, "rinfx") /* n bytes of checkpoint i are there; f: enum progress_flag; */   \
	/* x: ranks that somebody has stopped, u32 */                                              \
	M(MSG_FED, "n")		 /* n more bytes are in rank 0's pipe */                           \
	M(MSG_FEED_CLOSED, "")	 /* rank 0 takes no more */                                        \
	M(MSG_ASK, "n")		 /* for the lease, the n-th time */                                \
	M(MSG_COPIES_AT, "ts")	 /* addresses t of the node's copier; its folder s */              \
	M(MSG_COPIES_HELD, "x")	 /* images on its disk: struct copies_image (copies.h) each */     \
	M(MSG_COPIED, "ribfvnt") /* of COPY; status v, and why; fetched: its base n, program t */  \
	M(MSG_BYE, "t")		 /* no process of the job is left on this node; why */             \
	M(MSG_ATTACHED, "x")	 /* what is there (takeover.h): this is the head now */            \
	M(MSG_SUPERSEDED, "it")	 /* the head is of epoch i: not you */                             \
	M(MSG_RENEWED, "vt")	 /* process v is the agent from now on; what became of the last */ \
	M(MSG_MOVE_READY, "ivtx")   /* of BEGIN i; status v, and why; x: where it listens */       \
	M(MSG_MOVE_SPAWNED, "rvft") /* of MOVE_SINK: its pid, f as SPAWNED; or 0, and why not */   \
	M(MSG_MOVE_HELLO, "rvip")   /* copy v of rank is whole since stop i, streams at p */       \
	M(MSG_MOVE_ENDED, "rv")	    /* a copy has ended; v: waitpid's status */                    \
	M(MSG_MOVE_CANCELLED, "i")  /* no copy is left here; or, after RELEASE, no file */         \
	M(MSG_MAPPED, "ix")	    /* of MAPS i; x: a list of files (warm_files.h) */             \
	M(MSG_WARMED,                                                                              \
	  "invts") /* of WARM i: n bytes are in memory, v processes ready; what is wrong */        \
	M(MSG_MOVE_PROGRAM, "rt") /* what rank, which is to move, executes */                      \
	/* both */                                                                                 \
	M(MSG_ADDRESS, "irx")	 /* rank's entry of the address directory, of generation i */      \
	M(MSG_MOVE_DATA, "rix")	 /* bytes of the stream between rank and its copy */               \
	M(MSG_MOVE_TAKEN, "rin") /* n of them have been passed on */                               \
	M(MSG_MOVE_WANT, "ri")	 /* rank's file isn't there: send it as DATA, an empty one last */ \
	M(MSG_EVENTS, "ifx") /* between the brokers of head and node: channel i; f 1: upwards */   \
	M(MSG_EVENTS_TAKEN, "n") /* n bytes of these have been handled */

#define MESSAGE_ENUM(name, fields) name,
enum message_type { MSG_NONE, MESSAGES(MESSAGE_ENUM) MESSAGE_TYPES };
#undef MESSAGE_ENUM

#define MESSAGE_ALL UINT32_MAX

/* What is to become of a rank's image (docs/levels.md). */
enum copy_kind {
	COPY_PARTNER, /* from this node to the one at addresses t */
	COPY_SHARED,  /* from this node into folder s */
	COPY_FETCH,   /* is to be whole on this node: from folder s of the one at t, "": this one */
};

/* ALONE: a copy comes while all others run, into the segments that there are. */
enum move_flag { MOVE_ALONE = 1 };

enum hello_flag { HELLO_MPI = 1, HELLO_RESTORED = 2 };

/* A writer is missing; r has not begun to stop; a writer waits for the disk. */
enum progress_flag { PROGRESS_IDLE = 1, PROGRESS_SILENT = 2, PROGRESS_DISK = 4 };

enum signal_to {
	SIGNAL_GROUP,	/* the rank's process group */
	SIGNAL_PROGRAM, /* the process that said HELLO, or else the launched one */
};

/* Only the fields that its type has mean anything. When read, text, name and bytes point into the
 * frame. */
struct message {
	uint32_t type;
	uint32_t rank, id, base, flags;
	int32_t value;
	uint64_t number;
	uint64_t position[3];
	const char *text, *name;
	const void *bytes;
	size_t len;
};

/* A message as a whole frame; malloc'ed, *size its length. NULL: no memory, or too long. */
unsigned char *message_write(const struct message *m, size_t *size);

/* Reads the frame of size bytes behind the length word. False: it is none. */
bool message_read(const unsigned char *frame, size_t size, struct message *m);

const char *message_name(uint32_t type);

#endif
