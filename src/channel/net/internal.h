/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of the net channel share. States and invariants: docs/network-channel.md.
 *
 *   net.c     the operations of the channel; open, close, checkpoint
 *   stream.c  records in order, each once, over connections that may end at any time
 *   peers.c   connections: the address directory, connecting, losing
 *   copy.c    big payloads straight between the memories of two processes
 *   load.c    which wire; libhale_net.so
 *   tcp*.c    our own wire, over TCP
 *
 * Of each ordered pair of ranks:
 *
 *   sender     freed ─▶ [ kept until the receiver says that it has them ] ◀─ tail
 *   receiver   cursor: the number of the next record that it takes
 *
 *   freed <= cursor <= tail at all times, also between the images of a checkpoint.
 */
#ifndef HALE_CHANNEL_NET_INTERNAL_H
#define HALE_CHANNEL_NET_INTERNAL_H

#include "base/base.h"
#include "channel/channel.h"
#include "channel/net/wire.h"
#include "ckpt/guard.h"
#include "ckpt/rank.h"

enum {
	NET_EAGER_MAX = 32768,
	NET_WINDOW = 256, /* records that are kept for one peer */
	NET_WINDOW_BYTES = 2 << 20,
	NET_BUSY = 2,		   /* records that one peer hasn't said that it has */
	NET_AHEAD_MIN = 4096,	   /* below that asking costs nothing */
	NET_LANDED_MAX = 16 << 20, /* bytes that came unasked and nobody has received yet */
	NET_TIMEOUT_S = 10,
	NET_DOWN_NS = 2000000000,      /* no host answers for so long: that is told … */
	NET_DOWN_STALE_S = 60,	       /* … unless nobody tried in between */
	NET_REMIND_S = 5,	       /* … and again, as long as it lasts */
	NET_RETRY_NS = 20000000,       /* before a broken connection is made again; doubles … */
	NET_RETRY_MAX_NS = 1000000000, /* … up to this */
	NET_DRAIN_NS = 50000000,       /* waited for peers that are suspended by the same request */
	NET_CLOSE_NS = 5000000,
};

enum net_kind {
	NET_RECORD = 1,
	NET_HAVE, /* nothing but `have` */
	NET_ASK,  /* answer with NET_HAVE */
	NET_BYE,  /* I close my end, and will be back under another address, or not */
	NET_STOP, /* I send no more records until the checkpoint envelope.id is behind me */
	NET_GET,  /* give me these pieces of your memory (struct iovec); envelope.id: the token */
};

struct net_header {
	struct envelope envelope;
	uint32_t kind; /* enum net_kind */
	uint32_t from, generation;
	uint32_t epoch;	 /* the last checkpoint that the sender has behind it */
	uint32_t number; /* of a record, counted from 0 for each receiver */
	uint32_t have;	 /* records of the receiver's that the sender has taken */
	uint32_t full;	 /* 1: no memory here for what comes unasked */
	uint32_t reserved;
};

/* A datagram on its way, and a record as long as it is kept. */
struct net_slot {
	uint32_t peer;
	bool kept;	    /* in the peer's window */
	bool flying;	    /* handed to the wire, which still needs it */
	bool big;	    /* NET_EAGER_MAX bytes fit */
	bool again;	    /* to be sent once more when it has landed */
	struct iovec ahead; /* follows it the first time; length 0: nothing does */
	unsigned char room[WIRE_ROOM] __attribute__((aligned(16))); /* the wire's */
	struct net_header header;
	unsigned char payload[];
};
_Static_assert(offsetof(struct net_slot, payload) == sizeof(struct net_slot) &&
		   offsetof(struct net_slot, header) == offsetof(struct net_slot, room) + WIRE_ROOM,
	       "room, header and payload are one run of bytes");

/* A record that came before its turn. */
struct net_early {
	struct net_early *next;
	struct net_header header;
	unsigned char payload[] __attribute__((aligned(16)));
};

struct net_peer {
	bool away; /* lives on another node */
	/* towards it */
	struct net_slot **window; /* [NET_WINDOW], from the first record on */
	uint32_t freed, tail;
	size_t bytes; /* kept */
	struct net_slot *reserved;
	/* from it */
	uint32_t cursor;
	uint32_t told; /* the cursor that it knows */
	size_t untold; /* bytes taken since */
	struct net_early *early;
	bool tell;
	bool full;	   /* it has no memory for what comes unasked */
	struct get *ahead; /* what follows its last record; NULL: nobody will want it */
	/* a record that comes in pieces over another channel (net_late) */
	unsigned char *late;
	/* the connection */
	bool up;
	bool broken;	    /* the wire said so: to be dropped */
	bool left;	    /* said BYE */
	bool called;	    /* a connection is being made */
	uint32_t stopped;   /* the last checkpoint for which it said STOP */
	bool wanted;	    /* something waits for a connection */
	uint32_t version;   /* of the directory's entry that it was made to; 0: none yet */
	uint32_t breaks;    /* since something came */
	uint64_t down_at;   /* its host didn't answer then, and hasn't since; 0: it has */
	uint64_t down_seen; /* and has last not answered then */
	uint64_t told_at;   /* when the head was told so; 0: it takes it for reachable */
	uint64_t retry_at;
};

extern struct net {
	const struct net_wire *wire; /* NULL: not loaded */
	bool open;
	bool closing;
	bool suspended;
	bool stopping; /* suspended, and still open */
	uint64_t stop_at;
	bool rebuild;	/* a connection broke that only a wire opened anew can make again */
	bool attention; /* peers_attend has something to do */
	bool all;	/* no other channel: see net.c */
	bool late;	/* records kept for ranks that live here now */
	uint32_t rank, nranks, generation;
	uint32_t epoch, round;
	uint32_t directory; /* addresses_changed as last looked at */
	struct net_peer *peer;
	channel_arrive_t *arrive;
	int arrived; /* records, and parts of big payloads, that no poll has told of yet */
} net;

/* ---- net.c ---- */
/* Closes the wire and opens it again, under a new address. */
void net_rebuild(void);

/* ---- load.c ---- */
/* The wire of this process, chosen once. NULL: err says why. */
const struct net_wire *net_load(struct error *err);

/* ---- stream.c ---- */
bool stream_full(const struct net_peer *p);
struct net_slot *stream_slot(uint32_t rank, size_t length);
/* The slot becomes the next record to that rank. */
void stream_put(uint32_t rank, struct net_slot *slot, const struct envelope *e);
/* Not kept: lost if the connection is. */
void stream_say(uint32_t rank, enum net_kind kind, uint64_t id, const void *payload, size_t length);
/* Everything that is kept for it once more: over a new connection, or in a new epoch. */
void stream_again(uint32_t rank);
void stream_came(uint32_t peer, const void *header, size_t header_bytes, const void *payload,
		 size_t bytes, const struct wire_ahead *ahead);
void stream_sent(void *slot);
/* In a new epoch: what came too early for the old one. */
void stream_early_take(uint32_t rank);
void stream_early_drop(struct net_peer *p);
/* Kept records of a rank that lives on this node now leave through its channel, in pieces. True
 * when none is left. */
bool stream_late_flush(uint32_t rank);
void stream_forget(struct net_peer *p);
/* Slots that are kept for the next big records. */
void stream_spares_free(void);

/* ---- peers.c ---- */
/* Connects as soon as that is possible, in progress. */
void peer_want(uint32_t rank);
/* Nothing is left of the connection. Not from within a call of the wire. */
void peer_drop(uint32_t rank);
void peer_up(uint32_t rank);
void peer_broke(uint32_t rank, const char *why);
void peer_reached(uint32_t rank);
void peer_unreached(uint32_t rank);
/* Connections that are due, stale or broken. */
void peers_attend(void);

/* ---- copy.c ---- */
ssize_t copy_get(uint32_t rank, const struct iovec *local, size_t nlocal,
		 const struct iovec *remote, size_t nremote, bool stable);
/* Memory of that rank's that follows the record which is about to be taken. */
void copy_expect(uint32_t rank, const struct wire_ahead *ahead);
void *copy_ahead_where(uint32_t rank);
void copy_ahead_came(uint32_t rank, bool ok);
/* Nobody will get what came from there unasked. */
void copy_unwanted(uint32_t rank, const void *remote);
/* So much came unasked that no more should. */
bool copy_full(void);
void copy_asked(uint32_t from, uint64_t token, const void *pieces, size_t bytes);
void copy_received(void *get, bool ok);
/* The cookie of a send or give: is it a give? Then it is over. */
bool copy_given(void *cookie);
void copy_connected(uint32_t rank);
/* Its receives end; they are asked for again over the next connection. */
void copy_disconnected(uint32_t rank);
void copy_forget_all(void); /* the wire is closed */

#endif
