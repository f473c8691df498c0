/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of the TCP wire share (docs/network-channel.md, "TCP").
 *
 *   tcp.c          the operations of the wire; sockets, progress
 *   tcp_hand.c     the handshake: who is of this job; of two crossing attempts one stays
 *   tcp_conn.c     connections; frames over them, out
 *   tcp_in.c       and in
 *   tcp_seal.c     their encryption
 *
 * One connection for each pair of processes that talk, used in both directions.
 */
#ifndef HALE_CHANNEL_NET_TCP_H
#define HALE_CHANNEL_NET_TCP_H

#include "base/base.h"
#include "base/reach.h"
#include "wire/seal/tcp_seal.h"
#include "channel/net/wire.h"

enum {
	TCP_INCARNATION = 16,
	TCP_NONCE = 32,
	TCP_MAC = 32,
	TCP_SCRATCH = 128 << 10,
	TCP_SCRATCH_MIN = 512,	    /* a header or two */
	TCP_BULK_FRAME = 256 << 10, /* datagrams may pass bulk between two of them */
	TCP_DATAGRAM_MAX = 1 << 20,
	TCP_AHEAD_MAX = 256 << 10,
};

/* ---- frames ---- */

enum tcp_frame_kind { TCP_DATAGRAM = 1, TCP_BULK };

enum tcp_frame_flag {
	TCP_BURST =
	    1, /* the kernel may be keeping back what comes behind it: acknowledge at once */
};

struct tcp_frame {
	uint8_t kind; /* enum tcp_frame_kind */
	uint8_t header_bytes;
	uint16_t flags; /* enum tcp_frame_flag */
	uint32_t bytes; /* behind the header */
	uint64_t token; /* bulk: of the receive; datagram: address of what follows unasked */
	uint64_t ahead; /* datagram: bytes that follow unasked */
};

_Static_assert(sizeof(struct tcp_frame) <= WIRE_ROOM, "a frame's head fits before a header");

/* Something on its way out: a datagram, or bulk that leaves frame by frame. */
struct tcp_out {
	struct tcp_out *next;
	void *cookie;
	struct tcp_frame frame; /* of bulk; a datagram brings its own */
	size_t frame_left;	/* of the frame begun: bytes of iov */
	size_t left;		/* bytes that are in no frame yet */
	uint8_t head_left;	/* of `frame` */
	unsigned first, n;
	struct iovec iov[];
};

struct tcp_out_list {
	struct tcp_out *first, *last;
};

/* ---- sockets ---- */

enum tcp_kind { TCP_LISTENER, TCP_HAND, TCP_CONN };

struct tcp_socket {
	enum tcp_kind kind;
	int fd;
	uint32_t events; /* what epoll looks for; 0: it doesn't */
};

enum tcp_in { TCP_IN_HEAD, TCP_IN_BODY, TCP_IN_AHEAD, TCP_IN_MEMORY };

struct tcp_receive;

struct tcp_conn {
	struct tcp_socket socket; /* fd < 0: none */
	uint32_t peer;
	bool failed;	   /* broke has been called */
	bool gathers;	   /* the kernel gathers what is sent (tcp_conn_burst_end) */
	bool prompt;	   /* what has come is to be acknowledged at once */
	unsigned burst;	   /* datagrams, not large, sent since the last round of progress */
	uint64_t burst_at; /* the last of them */
	size_t gathered;   /* bytes of them that wait here to leave together */
	bool full;	   /* the socket takes no more until epoll says so */
	bool more;	   /* the last read may have left something there */
	bool ending;	   /* behind what is there is its end */
	int error;	   /* of a write: reading, which finds what came before, says it */
	unsigned char incarnation[TCP_INCARNATION]; /* of the peer */
	struct seal *seal;			    /* NULL: what goes over it isn't encrypted */

	struct tcp_out *now; /* partly written */
	struct tcp_out_list datagrams, bulk;

	size_t behind;	     /* bytes to be read behind what goes straight to its place */
	enum tcp_in in;	     /* what comes next; AHEAD: where it goes will be known later */
	unsigned char *rest; /* was read behind, and waits with it */
	size_t rest_bytes;
	size_t have; /* of the head, of the body */
	struct tcp_frame frame;
	unsigned char *body; /* NULL: nothing of it is here */
	/* bulk, or what follows unasked */
	struct tcp_receive *receive;
	bool ahead;
	unsigned char *to; /* NULL: nobody wants it */
	size_t left;
};

/* A connection that isn't one yet. */
enum tcp_stage {
	TCP_CALLING, /* connect() is under way */
	TCP_WAIT_CHALLENGE,
	TCP_WAIT_VERDICT,
	TCP_CROSSED,	/* the peer's own attempt stays: until that is here, or the deadline */
	TCP_WAIT_HELLO, /* from here on: of somebody who has connected to us */
	TCP_WAIT_PROOF,
};

struct tcp_hello {
	char magic[8];
	uint32_t version, generation, from, to, npeers;
	uint32_t ciphers; /* that the caller has: enum seal_cipher; 0: no encryption */
	unsigned char from_incarnation[TCP_INCARNATION], to_incarnation[TCP_INCARNATION];
	unsigned char nonce[TCP_NONCE]; /* with encryption: a public key, made for this only */
};

struct tcp_challenge {
	unsigned char nonce[TCP_NONCE]; /* as in hello */
	uint64_t cipher;		/* the one that is taken */
	unsigned char mac[TCP_MAC];
};

struct tcp_proof {
	unsigned char mac[TCP_MAC];
};

struct tcp_hand {
	struct tcp_socket socket;
	struct tcp_hand *next;
	enum tcp_stage stage;
	uint32_t peer;	   /* WIRE_SOMEBODY: not known yet */
	uint64_t deadline; /* NEVER: TCP itself notices that the other host is gone */
	unsigned places;   /* of an attempt of ours: addresses that the peer has */
	bool last_place;   /* … and all others have been tried */
	size_t have;	   /* of the answer awaited */
	struct tcp_hello hello;
	struct tcp_challenge challenge;
	struct tcp_proof proof;
	uint32_t verdict;
	unsigned char ephemeral[TCP_NONCE]; /* belongs to our nonce */
};

/* ---- addresses ---- */

/* What is published: length says how many places there are. */
struct tcp_address {
	unsigned char incarnation[TCP_INCARNATION];
	struct reach_place place[REACH_PLACES_MAX];
};

/* The way to a peer. */
struct tcp_road {
	uint32_t attempts; /* since the last connection */
	bool silent;	   /* the last connection ended because nothing was answered */
	bool stood;	   /* the last one was closed when nothing got through, in good order */
	uint8_t small;	   /* tcp.small, when it began */
};

/* ---- what there is ---- */

extern struct tcp {
	struct wire_calls calls;
	struct wire_self self;
	struct tcp_address address; /* ours */
	unsigned nplaces;
	struct tcp_socket listener[REACH_PLACES_MAX];
	int epoll;
	struct tcp_conn **conn; /* [npeers]; NULL: never connected */
	struct tcp_conn **live; /* [nlive]: those with a socket */
	uint32_t nlive;
	struct tcp_road *road;	       /* [npeers]; kept over all opens */
	struct tcp_hand *hands, *dead; /* dead: still named by events in hand */
	struct tcp_receive *receives;
	uint32_t strangers;
	uint32_t damaged; /* connections ended by what came over them */
	bool congestion_said;
	unsigned small;	  /* kept over all opens: packets have so many bytes at most (tcp.c) */
	bool watching;	  /* epoll looks for what happens on connections (tcp.c) */
	unsigned rounds;  /* of progress, since the last look at epoll */
	int trust, doubt; /* in the program's coming back soon after a burst (tcp_conn.c) */
	unsigned brought; /* rounds in which something came, since the last sleep */
	unsigned char *scratch; /* what has just been read */
	uint64_t idle_at;	/* when a round last brought nothing; 0: the last one did */
	bool corked;		/* datagrams wait for flush, and leave together */
	int moved;
} tcp;

/* ---- tcp.c ---- */
/* What epoll shall look for; 0: the socket is no longer its affair. */
void tcp_watch(struct tcp_socket *s, uint32_t events);
void tcp_socket_close(struct tcp_socket *s);
/* A connection is new, or epoll is to look for it now or no longer. */
void tcp_conn_watch(struct tcp_conn *c);
/* Settings of a connection's socket. */
void tcp_socket_prepare(int fd);
/* Of one that is to call peer, before it does: how large packets may be, both ways. */
void tcp_road_prepare(uint32_t peer, int fd);
/* The last connection ended in silence; the peer's host doesn't answer either; it does, and there
 * is a new connection. */
void tcp_road_silent(uint32_t peer);
void tcp_road_cut(uint32_t peer);
void tcp_road_open(uint32_t peer);

/* ---- tcp_conn.c ---- */
/* An authenticated socket becomes the connection to peer, in place of one that there may be. */
void tcp_conn_install(uint32_t peer, int fd, const unsigned char *incarnation,
		      const struct seal_keys *keys);
/* Ends everything of it; the peer is free to be connected again. */
void tcp_conn_drop(struct tcp_conn *c);
enum wire_sent tcp_conn_datagram(struct tcp_conn *c, const void *header, size_t header_bytes,
				 const void *payload, size_t bytes, const struct iovec *ahead,
				 void *cookie);
enum wire_sent tcp_conn_give(struct tcp_conn *c, uint64_t token, const struct iovec *iov, size_t n,
			     void *cookie);
void tcp_conn_write(struct tcp_conn *c);
/* The kernel sends off what it keeps back. */
void tcp_conn_burst_end(struct tcp_conn *c);
/* It is of no more use; the channel hears of it. */
void tcp_conn_fail(struct tcp_conn *c, const char *why);
void tcp_conn_fail_errno(struct tcp_conn *c, int code);

/* ---- tcp_in.c ---- */
void tcp_conn_read(struct tcp_conn *c);
/* What has come of a frame is forgotten. */
void tcp_in_end(struct tcp_conn *c);
bool tcp_receive_begin(uint32_t peer, uint64_t token, void *to, size_t bytes, void *cookie);
void tcp_receive_end(void *cookie);
void tcp_receives_end(void);

/* Something that isn't in a sealed record yet. */
static inline bool tcp_conn_waits(const struct tcp_conn *c)
{
	return c->now || c->datagrams.first || c->bulk.first;
}

static inline bool tcp_conn_has_out(const struct tcp_conn *c)
{
	const unsigned char *at;
	return tcp_conn_waits(c) || (UNLIKELY(c->seal != NULL) && seal_sendable(c->seal, &at));
}

/* ---- tcp_hand.c ---- */
bool tcp_hand_dial(uint32_t peer, const struct tcp_address *address, unsigned nplaces, char *why);
void tcp_hand_accept(int listener);
void tcp_hand_event(struct tcp_hand *h);
/* Our attempt at that peer; NULL: there is none. */
struct tcp_hand *tcp_hand_to(uint32_t peer);
void tcp_hand_drop(struct tcp_hand *h);
void tcp_hands_expire(uint64_t now);
void tcp_hands_bury(void);
/* Ends all. An attempt that has had no answer for a while counts as one that failed. */
void tcp_hands_close(void);

#endif
