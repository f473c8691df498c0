/* SPDX-License-Identifier: BSD-3-Clause */
/* The node's shared segment: an anonymous memfd that the agent makes and owns, handed to each
 * rank over its socket. Everything two processes of a node share is in it. It has no name, so
 * nothing is ever left behind; it holds only zeroes when the job (re)starts.
 *
 *   | struct segment | mailbox[] | address[] | channel/ rings | coll/ cells | rma/ rooms |
 *   | meter[] | spawn/ rooms |
 *
 * Each word has one writer, or is changed by atomic operations only. A dead process can leave
 * nothing locked, because there are no locks.
 */
#ifndef HALE_NODE_SEGMENT_H
#define HALE_NODE_SEGMENT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/base.h"
#include "node/meter.h"
#include "node/spawn_layout.h"

enum {
	SEGMENT_VERSION = 20,
	MAILBOX_OWN_FDS = 256,
	MAILBOX_PATH = 512,
	MAILBOX_DUE = 120,
	SEGMENT_ADDRESS_MAX = 1008,
	SEGMENT_SECRET = 32,
	SEGMENT_CLAIMS = 256,
	SEGMENT_WRITERS = 1024,
	SEGMENT_FILES = 4096,
};
#define SEGMENT_MAGIC 0x31474553454c4148ull /* "HALESEG1" */

/* Addresses at which a process maps it: the first one that is free, in all its lives, so that
 * pointers into it survive a restart. AddressSanitizer has its heap at the first one, and
 * ThreadSanitizer allows the last one only. */
#define SEGMENT_PLACES                                                                             \
	{                                                                                          \
		0x610000000000ul, 0x650000000000ul, SEGMENT_PLACE_TSAN                             \
	}
#define SEGMENT_PLACE_TSAN 0x7e9000000000ul

struct segment {
	uint64_t magic;
	uint32_t version;
	uint32_t generation;
	uint32_t nranks;	 /* processes of the job */
	uint32_t cores;		 /* that this node gives to the job */
	uint32_t oversubscribed; /* more ranks than cores: yield at once, don't spin */
	uint32_t nhere;		 /* ranks that live on this node */
	uint32_t nbeside;	 /* and on other nodes that are this machine, too */
	uint32_t degree; /* of these, processes of one rank; 1: no replicas (node/living.h) */
	uint32_t
	    shadows;	 /* the second process of each rank is a shadow, of so many a core; 0: no */
	uint32_t audits; /* 1: slots LIVING_WITNESS are for witnesses (node/living.h) */
	uint32_t shadow_rate; /* of a core in thousandths, that each may use here; 0: all it gets */
	uint32_t shadow_weighed; /* 1: control groups hold shadows back */
	uint64_t bytes;	      /* of the whole segment */
	uint64_t mailbox_offset;
	uint64_t address_offset;
	uint64_t channel_offset, channel_bytes;
	uint64_t coll_offset, coll_bytes;
	uint64_t rma_offset;   /* struct rma_room [nranks] (node/rma_layout.h) */
	uint64_t meter_offset; /* struct rank_meter [nranks] (meter.h) */
	uint64_t spawn_offset; /* struct spawn_room [nranks] (spawn_layout.h) */
	char node[64];	       /* its name; "": what gethostname says */
	/* of the job, the same in the segments of all its nodes (segment_secret_put): by it ranks
	 * know each other over the network. In no image, no environment. All zeroes: none */
	unsigned char secret[SEGMENT_SECRET];
	uint32_t one_host;    /* 1: all nodes are this machine, so its loopback reaches all ranks.
			       * Written by the agent before anybody maps the segment */
	uint32_t net_encrypt; /* 1: what ranks of different nodes send each other; as one_host */
	/* CTC: id of the checkpoint << 32 | ranks of this node that have drained and saved */
	_Atomic uint64_t ckpt_saved __attribute__((aligned(CACHE_LINE)));
	/* +1 after any entry of the address directory has changed */
	_Atomic uint32_t addresses_changed;
	/* Larger packets than of so many bytes are lost on the way to some host, as a rank of this
	 * node was the first to find out (docs/network-channel.md); 0: none that anybody knows of
	 */
	_Atomic uint32_t net_packets;
	/* number of the newest view, written by the agent behind the mailboxes' `lost` */
	_Atomic uint32_t view;
	_Atomic uint32_t
	    spawn_over; /* 1: processes in reserve and spawned ones that are done end */
	_Atomic uint32_t file_gaps; /* 1: gaps of a file have been written along (io/writers.c) */
	uint32_t view_first; /* `view` when this was made; those it has dead are LIVING_ABSENT */
	char pad[CACHE_LINE - sizeof(uint64_t) - 6 * sizeof(uint32_t)];
	/* CKPT_TOGETHER: id << 32 | ranks that take part, written by the agent; … | ranks whose
	 * images hold what they share; ranks that have come back and wait for the others */
	_Atomic uint64_t together __attribute__((aligned(CACHE_LINE)));
	_Atomic uint64_t together_taken;
	_Atomic uint32_t together_back;
	/* ranks here of which mailbox.may_share was known when the agent asked for a checkpoint
	 * without CKPT_TOGETHER: where more are by now, its images may not fit together */
	_Atomic uint32_t together_known;
	/* objects that some rank saves: the checkpoint's id in the upper bits, then kind and number
	 */
	_Atomic uint64_t claim[SEGMENT_CLAIMS];
	/* 1 + process that has opened a file for writing last, by a hash of its inode number:
	 * another one that does so shares it, or a file of the same hash */
	_Atomic uint32_t writer[SEGMENT_WRITERS];
	/* CKPT_ACROSS: id << 32 | 1 when all ranks of the job stand still, | 2 when all have their
	 * images; written by the agent */
	_Atomic uint64_t across;
	/* 1: all ranks of the job that come back from images are back; written by the agent */
	_Atomic uint32_t all_back;
	/* inode numbers of files that ranks of this node have opened for writing, at places by a
	 * hash; 0: free. Other nodes may write the same ones. files_full: there were more */
	_Atomic uint32_t files_full;
	_Atomic uint64_t file[SEGMENT_FILES];
};

/* Where a rank can be reached from other nodes (docs/network-channel.md). A rank writes its own
 * entry in the segment of its node; agents copy it into the segments of the other nodes. One
 * writer an entry; version is odd while it writes. */
struct segment_address {
	_Atomic uint32_t version; /* 0: nothing yet */
	uint32_t length;	  /* of bytes; 0: can't be reached now */
	uint32_t away;		  /* 1: that rank lives on another node. Written by the agent before
				   * anybody maps the segment (segment_place) */
	uint32_t reserved;
	unsigned char bytes[SEGMENT_ADDRESS_MAX];
};
_Static_assert(sizeof(struct segment_address) == 1024, "one KiB a rank");

struct mailbox {
	/* waiting: the owner sets asleep, looks once more, then futex-waits for bell to change. Who
	 * rings clears it */
	_Atomic uint32_t bell __attribute__((aligned(CACHE_LINE)));
	_Atomic uint32_t asleep;
	/* written by the rank */
	_Atomic int32_t pid __attribute__((aligned(CACHE_LINE)));
	_Atomic uint32_t state;		 /* enum rank_state */
	int32_t own_fd[MAILBOX_OWN_FDS]; /* descriptors of the library; -1: none */
	_Atomic uint64_t calls;		 /* MPI functions entered, when counted */
	/* written by the agent */
	_Atomic uint32_t ckpt_wanted __attribute__((aligned(CACHE_LINE))); /* id; 0: none yet */
	_Atomic uint32_t ckpt_base;  /* id it is a difference to; 0: full */
	_Atomic uint32_t ckpt_flags; /* enum ckpt_flag */
	_Atomic uint32_t
	    ckpt_cancelled; /* highest id that was given up: a rank still suspending goes on */
	_Atomic uint32_t
	    ckpt_refused; /* counts asks (PROTO_CKPT_ASK) of this rank that came to nothing */
	/* highest id whose stop is over: ranks go on, in this segment, or (rejoin) in a new one
	 * that has come as a WELCOME on the rank's connection */
	_Atomic uint32_t ckpt_released;
	_Atomic uint32_t ckpt_rejoin; /* valid before ckpt_released changes */
	/* highest id of a stop whose copies have been let go: who waits in it to become one ends */
	_Atomic uint32_t ckpt_moved;
	_Atomic uint32_t
	    lost; /* enum living_lost: this process is dead; its rank lives on in others */
	/* 1: it comes as a copy while all others run, in this segment (agent_alone.c) */
	_Atomic uint32_t alone;
	_Atomic uint32_t ckpt_hold;	/* counts asks to stand still for a while: CKPT_HOLD */
	char ckpt_path[MAILBOX_PATH];	/* of this rank's image, valid before ckpt_wanted changes */
	char inject_call[64];		/* "MPI_Allreduce"; empty: no fault at a call */
	_Atomic uint64_t inject_count;	/* at the how manieth call of it; counted from arming */
	_Atomic uint32_t inject_signal; /* the signal that ends the rank, 9 usually */
	_Atomic uint32_t inject_armed;	/* 1: look at the three above */
	/* --inject flip: so many messages of this process get a wrong bit, each flip_every'th */
	_Atomic uint32_t flips, flip_every;
	_Atomic uint32_t flip_early; /* 1: as by the program, which has computed them wrongly */
	_Atomic uint32_t due_number; /* of what task_due says, > 0; 0: nothing, or being written */
	char task_due[MAILBOX_DUE];  /* memory errors to pretend in tasks (node/task_settings.h) */
	/* written by the rank: connections to other nodes */
	_Atomic uint32_t net_open; /* 1: it has sockets of its own now and then, none in an image */
	_Atomic uint32_t net_lost; /* times that a peer's host didn't answer for a while */
	_Atomic int32_t net_peer;  /* that peer, the last time */
	_Atomic uint32_t may_share; /* 1: it has asked for what ranks may have together: System V
				     * objects, connections, named pipes. Set before it does */
	_Atomic uint32_t net_strangers; /* connections that weren't of this job, turned away */
	_Atomic uint64_t bell_name; /* asleep on descriptors: the five characters of the datagram
				     * socket that wakes it (segment.c); 0: on bell only */
	/* written by the rank: which bytes of which file it writes now (io/writers.c); 0: none */
	_Atomic uint32_t file_writing __attribute__((aligned(CACHE_LINE)));
	_Atomic uint64_t file_key, file_begin, file_end;
	/* Output positions. The agent makes lock odd, reads from the pipe, adds, makes it even: so
	 * a stopped rank knows how much it has written: taken + what FIONREAD says is in the pipe.
	 */
	_Atomic uint32_t stream_lock __attribute__((aligned(CACHE_LINE)));
	_Atomic uint64_t
	    stream_taken[3]; /* [0]: bytes put into stdin's pipe; [1], [2]: taken out */
};

enum rank_state { RANK_STARTING = 0, RANK_RUNNING, RANK_CHECKPOINTING, RANK_FINALIZED };

enum ckpt_flag {
	CKPT_LZ4 = 1,
	CKPT_ZSTD = 2,
	CKPT_TRACK = 4, /* renew dirty tracking */
	CKPT_SYNC = 8,	/* write in the foreground */
	CKPT_NOFSYNC = 16,
	CKPT_NO_IMAGE = 4096, /* stop as all do: another replica writes the rank's image */
	CKPT_TOGETHER = 8192, /* ranks of this node share objects of the kernel: no image is taken
			       * before all stand still, and nobody runs on before all have one */
	/* docs/migration.md */
	CKPT_LIVE = 32,	   /* a round of a live image, into the stream that ckpt_path names */
	CKPT_STOP = 64,	   /* stop until ckpt_released; with LIVE: the last round */
	CKPT_CLONE = 128,  /* with LIVE: this rank goes on beside its copy */
	CKPT_DIRECT = 256, /* with LIVE: the stream ends in the copy's process, not in a relay */
	CKPT_HELD = 512,   /* with LIVE and a file: when that is whole, wait for ckpt_moved */
	CKPT_GIVEN = 1024, /* with LIVE: the stream comes as a descriptor, from the socket that
			    * ckpt_path names */
	CKPT_HOLD = 2048,  /* with LIVE: from the round's beginning to the next request the program
			    * stands still for a while then and at each change of ckpt_hold */
	CKPT_ALONE = 16384, /* with STOP, LIVE and CLONE: nobody else stops */
	CKPT_ANNOUNCE =
	    32768, /* process ckpt_base - 1 comes as a copy of this one: all are told */
	CKPT_ACROSS = 65536, /* ranks of several nodes write the same files: no rank of the job takes
			      * its image before all stand still, none runs on before all have one */
	CKPT_FLAGS_SUM = CKPT_LZ4 + CKPT_ZSTD + CKPT_TRACK + CKPT_SYNC + CKPT_NOFSYNC +
			 CKPT_NO_IMAGE + CKPT_TOGETHER + CKPT_LIVE + CKPT_STOP + CKPT_CLONE +
			 CKPT_DIRECT + CKPT_HELD + CKPT_GIVEN + CKPT_HOLD + CKPT_ALONE +
			 CKPT_ANNOUNCE + CKPT_ACROSS,
};
_Static_assert(CKPT_FLAGS_SUM == 131071, "each flag has a bit of its own");

static inline struct segment_address *segment_address_of(struct segment *s, uint32_t rank)
{
	return (struct segment_address *)((char *)s + s->address_offset) + rank;
}

static inline bool segment_here(struct segment *s, uint32_t rank)
{
	return !segment_address_of(s, rank)->away;
}

static inline struct mailbox *segment_mailbox(struct segment *s, uint32_t rank)
{
	return (struct mailbox *)((char *)s + s->mailbox_offset) + rank;
}

static inline struct rank_meter *segment_meter(struct segment *s, uint32_t rank)
{
	return (struct rank_meter *)((char *)s + s->meter_offset) + rank;
}

static inline struct spawn_room *segment_spawn_room(struct segment *s, uint32_t rank)
{
	return (struct spawn_room *)((char *)s + s->spawn_offset) + rank;
}

/* Length and offsets for so many ranks; fills every field but the atomic ones. The agent calls
 * it on a fresh zeroed mapping of segment_bytes(nranks). */
size_t segment_bytes(uint32_t nranks);
void segment_layout(struct segment *s, uint32_t nranks, uint32_t cores, uint32_t generation);

/* After segment_layout, before anybody else maps it: which ranks live on this node. here[rank]
 * non-zero: it does. on_machine: ranks that live on any node which is this machine, these too.
 * Without this call all do. */
void segment_place(struct segment *s, const unsigned char *here, uint32_t on_machine);

/* Which processes of a job with replicas are dead from the beginning of this segment on (lost[p] is
 * not 0), in the view of that number. Before anybody else maps it. */
void segment_view_first(struct segment *s, const unsigned char *lost, uint32_t number);

/* The job's secret; before anybody else maps the segment. */
void segment_secret_put(struct segment *s, const unsigned char secret[SEGMENT_SECRET]);
/* In the segment; NULL: there is none. */
const unsigned char *segment_secret(const struct segment *s);

/* Changes rank's entry in the directory: its bytes, at most SEGMENT_ADDRESS_MAX; length 0: it
 * can't be reached now. Not for two writers of one entry at once. Doesn't ring any bell. */
void segment_address_put(struct segment *s, uint32_t rank, const void *bytes, uint32_t length);
/* Its version and a whole copy of it (SEGMENT_ADDRESS_MAX bytes; length out). 0: nothing there, or
 * just being written: try later. */
uint32_t segment_address_get(struct segment *s, uint32_t rank, void *bytes, uint32_t *length);

/* Process, of this node, writes that file. Who has said so before shares it with this one, perhaps:
 * both may (mailbox.may_share). Nodes know a file of a shared file system by one inode number, its
 * device by different ones. Replicas of a rank write the same files on purpose, and are left out. */
void segment_file_note(struct segment *s, uint32_t process, uint64_t inode);
/* Into one of so many places, unless it is in one; false: all are taken. */
bool segment_inode_put(_Atomic uint64_t *places, uint32_t count, uint64_t inode);

/* Rings in any case. */
void mailbox_ring_slow(struct mailbox *m);
/* fd: a datagram socket from which this process rings others that sleep on descriptors. It stays the
 * caller's. -1: there is none, and each ring makes one. */
void mailbox_ring_from(int fd);

/* Rings the bell of a process that says that it sleeps. Call after a fence. Of several callers before
 * that process runs only the first one rings; the process counts as awake from then on. */
static inline void mailbox_wake(struct mailbox *m)
{
	if (UNLIKELY(atomic_load_explicit(&m->asleep, memory_order_relaxed)) &&
	    atomic_exchange_explicit(&m->asleep, 0, memory_order_seq_cst))
		mailbox_ring_slow(m);
}

/* Rings rank's bell if it said that it sleeps. Call after publishing something for it. */
static inline void mailbox_ring(struct mailbox *m)
{
	/* orders the publication before the look at asleep; pairs with mailbox_will_sleep */
	atomic_thread_fence(memory_order_seq_cst);
	mailbox_wake(m);
}

/* Says "I am about to sleep"; returns the bell value to hand to link_sleep. */
static inline uint32_t mailbox_will_sleep(struct mailbox *m)
{
	uint32_t seen = atomic_load_explicit(&m->bell, memory_order_relaxed);
	atomic_store_explicit(&m->asleep, 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
	return seen;
}

static inline void mailbox_awake(struct mailbox *m)
{
	atomic_store_explicit(&m->asleep, 0, memory_order_relaxed);
}

#endif
