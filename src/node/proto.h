/* SPDX-License-Identifier: BSD-3-Clause */
/* What a rank and its agent say to each other: one AF_UNIX SOCK_SEQPACKET connection a rank, on
 * an abstract address that the environment names; fixed little structs, one a packet. The agent
 * checks the peer's uid by SO_PEERCRED and the token. Both run the same build, on one machine.
 *
 * Environment of a rank:
 *   HALE_AGENT   name of the abstract socket, without the leading NUL
 *   HALE_TOKEN   16 hex digits, must be in HELLO
 *   HALE_RANK, HALE_NRANKS, HALE_JOB
 *   HALE_LAUNCH_PID  pid of the process that the agent started (a shell's children differ)
 *   HALE_WORLD       the processes of its MPI_COMM_WORLD (node/spawn_layout.h); none: all
 *   HALE_SPAWNED     "PROCESS:TAG" of who has spawned it
 *   HALE_CARRY       descriptor of what the process was before (channel/carry/carry.h)
 *   HALE_CKPT_LAST   newest checkpoint of the process that has become this program
 *   HALE_REPLICAS    processes of each rank; not there where it is one
 *   HALE_SDC         "hash", "full": how their messages are compared; not there: not at all
 *   HALE_SHADOWS     shadows of a core; the processes from HALE_NRANKS on are shadows at first
 *   HALE_JUMP_AT     bytes of a shadow's log from which on it asks for a jump, or "off"; not there:
 *                    three quarters of HALE_SHADOW_LOG
 *   HALE_SHADOW_LOG  bytes from which on it takes no more into its log
 *   HALE_NO_MPI=1    the launched process itself is the rank; it connects before main
 *   HALE_JOURNAL     the job's journal of changed files (journal/journal.h); it need not be there
 *   HALE_SINK        "full|lazy:PATH=SUM[:…]" newest image first, with its checksum: become that
 *                    process; "live:@NAME", "live:PATH": the one that comes from there
 *                    (docs/migration.md); "stand": that is not known yet (PROTO_STAND_…)
 */
#ifndef HALE_NODE_PROTO_H
#define HALE_NODE_PROTO_H

#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include "base/exit_status.h"
#include "base/log.h"

/* Sent by the agent to the process that said HELLO, after ckpt_wanted was written. */
#define PROTO_CKPT_SIGNAL (SIGRTMAX - 3)

enum { PROTO_VERSION = 1, PROTO_TEXT = 480 };

/* A warm standby: a process of the program that waits to become a rank. It writes READY to its
 * stdin, which is a socket of its supervisor. It gets one packet there: its environment, each
 * string with its NUL, and the descriptors that become its 0, 1 and 2. It answers TAKEN. */
#define PROTO_STAND	 "stand"
#define PROTO_STAND_NAME "hale-sink" /* its argv[0], and its name in ps, until then */
enum { PROTO_STAND_READY = 'R', PROTO_STAND_TAKEN = 'T', PROTO_STAND_MAX = 160 << 10 };

/* What an agent says to a sink that comes as live:@NAME, and to a source that expects it
 * (CKPT_GIVEN): this connection is the stream, or it comes as a descriptor with this byte. DIRECT:
 * nobody but the other process has its other end. */
enum { MIGRATE_RELAY = 'R', MIGRATE_DIRECT = 'D', MIGRATE_GIVEN = 'G' };

enum proto_type {
	/* rank → agent */
	PROTO_HELLO = 1,    /* struct proto_hello; the first packet */
	PROTO_INITIALIZED,  /* MPI_Init is through; struct proto_plain */
	PROTO_FINALIZED,    /* MPI_Finalize is through; struct proto_plain */
	PROTO_ABORT,	    /* MPI_Abort; proto_plain.value = code */
	PROTO_CKPT_ASK,	    /* HALE_Checkpoint(); proto_plain.value = last id this rank took */
	PROTO_CKPT_RESUMED, /* the program runs on; struct proto_ckpt: pause_ns, position[] */
	PROTO_CKPT_WRITTEN, /* from the writing child: the image is whole; struct proto_ckpt */
	PROTO_CKPT_FAILED,  /* from either: struct proto_ckpt with text */
	PROTO_CKPT_STOPPED, /* suspended and saved, for a CKPT_STOP; proto_plain.value = id */
	PROTO_ADDRESS,	    /* its entry of the address directory has changed; struct proto_plain */
	PROTO_NET_LOST, /* rank `value`'s host doesn't answer over the network; struct proto_plain
			 */
	PROTO_NET_BACK, /* it does again; struct proto_plain */
	PROTO_MOVED,	/* its copy runs: this process ends now; struct proto_plain */
	PROTO_BECOMES, /* it executes another program, whose MPI_Init says HELLO; struct proto_plain
			*/
	PROTO_SDC,     /* replicas of a rank have sent different messages; struct proto_sdc */
	PROTO_SHADOW,  /* how far this shadow is; struct proto_shadow */
	PROTO_SAID,    /* a sentence of Hale's, not of the program's; struct proto_said */
	PROTO_KEPT,    /* all keep for the copy of this process, which is to be process `value`;
			* struct proto_plain */
	PROTO_JOINED,  /* … it is in the view, and knows what was decided; struct proto_plain */
	PROTO_CKPT_STILL, /* CKPT_ACROSS: this rank stands still; proto_plain.value = id */
	PROTO_CKPT_TAKEN, /* … and has its image, or none; proto_plain.value = id */
	PROTO_BACK, /* of a rank's child that came back with it, instead of HELLO: are all ranks back?
		     * proto_plain.text = token; answered by the same, when they are */
	/* agent → rank */
	PROTO_WELCOME = 100, /* struct proto_welcome, with the segment's descriptor (SCM_RIGHTS) */
	PROTO_REFUSED,	     /* to HELLO or to CKPT_ASK: proto_plain.text says why */
};

struct proto_plain {
	uint32_t type;
	int32_t value;
	char text[PROTO_TEXT];
};

struct proto_hello {
	uint32_t type, version;
	char token[24];
	uint32_t rank;
	int32_t pid;
	int32_t own_fd;	   /* the socket's number in the rank: no descriptor of the program */
	uint32_t restored; /* id of the checkpoint that this process was rebuilt from; 0: fresh */
	uint32_t mpi;	   /* 1: an MPI rank, 0: --no-mpi */
	/* where the streams stood in the image that it was rebuilt from */
	uint64_t position[3];
};

/* To the copy of a rank that has moved: nobody lets its source go on any more, so it is the rank
 * whether or not its source hears so (docs/migration.md, GO). */
enum { WELCOME_GO = 1 };

struct proto_welcome {
	uint32_t type, version;
	uint32_t rank, nranks, generation;
	uint32_t flags; /* WELCOME_… */
	uint64_t segment_bytes;
};

struct proto_ckpt {
	uint32_t type, id;
	int32_t status; /* hale_status_t */
	uint32_t reserved;
	uint64_t pause_ns;
	uint64_t bytes, pages, pages_zero, checksum;
	uint64_t same; /* bytes of memory that the copy had already */
	double seconds;
	double interval; /* of a round of a live image: since the one before it began */
	uint64_t
	    position[3]; /* stdin consumed, stdout, stderr written, in bytes since the job began */
	char text[PROTO_TEXT];
};

/* A line for the job's stderr. It does not go through the rank's own stderr: bytes there are
 * numbered, and a rank that was rolled back must print the same ones again. */
struct proto_said {
	uint32_t type, len; /* of text, with the newline */
	char text[LOG_LINE];
};

/* Of the message `number` of rank `from` to this rank (docs/redundancy.md). Bit masks of slots. */
struct proto_sdc {
	uint32_t type;
	uint32_t from, context, number;
	uint32_t length; /* bytes of the message as most have it */
	uint32_t said;	 /* replicas of `from` that have been compared */
	uint32_t guilty; /* those that differ from the majority; 0: there is none */
	uint32_t named;	 /* 1: [first, last] are the bytes that differ */
	uint32_t first, last;
	uint32_t envelope; /* 1: not only bytes differ, but length, tag or kind */
	uint32_t called;   /* 1: they differ, and the witness is asked: nothing more is known */
};

/* Of a shadow, now and then (docs/shadows.md). */
struct proto_shadow {
	uint32_t type;
	uint32_t jump;	    /* 1: the log has more than it is to have, a jump would empty it */
	uint64_t log_bytes; /* messages and determinants that its program has not come to */
	uint64_t cpu_ns;    /* that this process has used */
	uint64_t came_bytes; /* of messages, since it is a shadow */
	uint32_t held;	     /* enum shadow_held */
	uint32_t full;	     /* 1: the log takes nothing more, and --jump-at off lets it not jump */
};

/* What makes it slow. */
enum shadow_held { HELD_BY_CORE, HELD_BY_SLEEP, HELD_BY_WEIGHT };

/* Any packet of a rank. */
union proto_packet {
	uint32_t type;
	struct proto_plain plain;
	struct proto_hello hello;
	struct proto_ckpt ckpt;
	struct proto_said said;
	struct proto_sdc sdc;
	struct proto_shadow shadow;
};

/* Bytes of a packet that a rank may send once it has said HELLO; 0: it may not. */
static inline size_t proto_size(uint32_t type)
{
	switch (type) {
	case PROTO_INITIALIZED:
	case PROTO_FINALIZED:
	case PROTO_ABORT:
	case PROTO_CKPT_ASK:
	case PROTO_ADDRESS:
	case PROTO_NET_LOST:
	case PROTO_NET_BACK:
	case PROTO_CKPT_STOPPED:
	case PROTO_MOVED:
	case PROTO_BECOMES:
	case PROTO_KEPT:
	case PROTO_JOINED:
	case PROTO_CKPT_STILL:
	case PROTO_CKPT_TAKEN:
		return sizeof(struct proto_plain);
	case PROTO_CKPT_RESUMED:
	case PROTO_CKPT_WRITTEN:
	case PROTO_CKPT_FAILED:
		return sizeof(struct proto_ckpt);
	case PROTO_SDC:
		return sizeof(struct proto_sdc);
	case PROTO_SHADOW:
		return sizeof(struct proto_shadow);
	case PROTO_SAID:
		return sizeof(struct proto_said);
	default:
		return 0;
	}
}

#endif
