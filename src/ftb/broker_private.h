/* SPDX-License-Identifier: BSD-3-Clause */
/* What the broker's files share.
 *
 *   broker.c   life, dispatch, statistics, the owner's own events
 *   client.c   local clients: accept, packets, cutting off
 *   outq.c     what waits for one receiver, and which of it is lost first
 *   route.c    duplicates, the log of WARNING and above, who gets an event, interest
 *   link.c     links to other brokers, interest            peers.c   the list, keys
 *   tree.c     parent and children, healing
 *   wire.c     ZeroMQ: sockets, CURVE, who is who   carried.c  the same through the owner
 *   zmq_calls.c  ZeroMQ, loaded when it is needed
 */
#ifndef HALE_FTB_BROKER_PRIVATE_H
#define HALE_FTB_BROKER_PRIVATE_H

#include "base/base.h"
#include "ftb/author.h"
#include "ftb/broker.h"
#include "ftb/ftb.h"
#include "ftb/outq.h"

enum {
	CLIENTS_MAX = 1024,
	OWN_FDS = 256,		 /* descriptors for all else in the process, at least */
	INTEREST_MAX = 256,	 /* filters of one receiver; a client's 257th is refused */
	LOG_ENTRIES = 8192,	 /* WARNING and above, for healing … */
	LOG_BYTES = 8 << 20,	 /* … at most */
	HELD_BYTES = 1 << 20,	 /* INFO kept while there is no parent */
	PUBLISHERS = 8192,	 /* whose last number is known */
	ROUTES = 64,		 /* remembered answers to 'who wants this' */
	PACKETS_A_TURN = 8,	 /* taken from one client before the next has its turn */
	MESSAGES_A_TURN = 64,	 /* taken from other brokers */
	PACE_TURNS = 8,		 /* so many turns … */
	PACE_ENTER_NS = 2000000, /* … in less than this: from now on it rests between them … */
	PACE_REST_NS = 450000, /* … for so long, until there is not more than one packet a turn, */
	PACE_MANY = 4,	       /* and after turns with more packets than these twice as long */
	PEERS_MAX = 4096,
	PROBES = 8,	/* candidates asked at the same time */
	IDENT_MAX = 16, /* bytes of a ZeroMQ routing id that ZeroMQ made */
};

/* ---- receivers and routes ---- */

struct interest {
	struct ftb_filter filter;
	uint32_t id;
	double since; /* clock_seconds() of the oldest subscription behind it */
};

enum receiver_kind { RECEIVER_CLIENT, RECEIVER_LINK, RECEIVER_OWNER };

/* First in a client and in a link. */
struct receiver {
	enum receiver_kind kind;
	struct interest *want;
	size_t count;
	struct outq q;
	bool dirty; /* has something to flush */
};

struct client {
	struct receiver r;
	struct broker *b;
	int fd;
	bool hello, watches_out;
	bool deaf;   /* takes nothing any more; what it has sent still counts */
	bool broken; /* to be closed */
	uint64_t publisher;
	uint64_t told_info, told_above;
	uid_t uid;
	struct client *next;
};

struct owner_subscription {
	void (*callback)(const struct broker_event *event, void *arg);
	void *arg;
	struct ftb_filter filter;
	unsigned id;
	double since;
};

struct log_entry {
	uint64_t publisher, seq;
	double arrived;
	uint32_t len;
	int32_t next; /* in its bucket; -1: last */
	uint8_t *bytes;
};

struct log {
	struct log_entry *entry; /* LOG_ENTRIES, a ring */
	int32_t *bucket;	 /* LOG_ENTRIES heads */
	size_t first, count, bytes;
	double horizon; /* arrival of the newest that was forgotten */
};

struct publisher {
	uint64_t id, seq;
	uint64_t used;
};

struct route {
	uint64_t generation; /* 0: empty */
	size_t key_len;
	uint8_t key[FTB_TEXTS + 1 + TEXT_START * EVENT_TEXT_MAX];
	size_t count, cap;
	struct receiver **to;
	bool owner;
};

/* ---- tree.c, peers.c, wire.c ---- */

struct ftb_peer {
	char name[EVENT_TEXT_MAX + 1];
	char address[128];
	uint8_t key[32];
	char key_text[41];
};

struct ftb_link {
	struct receiver r;
	struct broker *b;
	int peer;
	bool up;		  /* accepted; a parent being joined is not */
	bool gone;		  /* to be dropped as soon as nobody looks at it */
	bool stale;		  /* what it has been told of our interest is no longer true */
	double heard, sent;	  /* clock_seconds() */
	double since;		  /* it became a link */
	void *socket;		  /* to the parent; NULL for children, who share the router */
	void *monitor;		  /* tells when the parent's connection breaks */
	uint8_t ident[IDENT_MAX]; /* a child's routing id */
	size_t ident_len;
	struct interest *told; /* what it was told last */
	size_t told_count;
};

struct probe {
	int peer;
	void *socket;
	bool here;
	unsigned room;
};

struct seek {
	bool active;
	int *order;    /* candidates, best first */
	int count, at; /* of them, and the first that was not asked yet */
	struct probe probe[PROBES];
	int probes;
	double decide; /* when to choose among those who answered */
};

struct tree {
	struct ftb_peer *peers;
	int count, self;
	unsigned arity;
	double heartbeat, dead;
	void *context, *router, *zap;
	struct carried *carried; /* instead of these */
	char public_key[41], secret_key[41];
	struct ftb_link *parent;
	struct ftb_link **child;
	int children;
	struct seek seek;
	struct ftb_link *joining;
	double join_until, seek_at;
	double patience; /* until the preferred parent is asked again */
	bool orphan; /* there is no parent, and nobody has said yet that there is none to be had */
	bool healing;
	struct out_list held; /* INFO published while there is no parent */
	size_t held_bytes;
};

/* Being woken costs more than most packets do: a broker that is woken often lets some gather. */
struct pace {
	bool on;
	bool more;	  /* this turn left something, or somebody is in a hurry: no rest */
	unsigned packets; /* taken in this turn */
	uint64_t at[PACE_TURNS];
	unsigned next;
};

struct broker {
	struct pace pace;
	int epoll, listener, timer, wake;
	int reserve; /* a descriptor for the moment when there are no others */
	char path[108];
	char node[EVENT_TEXT_MAX + 1];
	bool has_group;
	gid_t group;
	struct client *clients;
	uint8_t *packet; /* PACKET_MAX, for what comes in */
	struct receiver **receiver;
	size_t receivers, receivers_cap;
	struct owner_subscription *owned;
	size_t owned_count;
	unsigned owned_next;
	struct ftb_author owner;
	uint64_t generation;
	struct route *route;
	struct publisher *publisher;
	uint64_t publisher_clock;
	struct log log;
	struct tree *tree; /* NULL: alone */
	bool interest_changed;
	struct broker_stats stats;
};

/* route.c */
hale_status_t route_init(struct broker *b, struct error *err);
void route_fini(struct broker *b);
bool receiver_add(struct broker *b, struct receiver *r);
void receiver_remove(struct broker *b, struct receiver *r); /* frees its interest and queue */
/* False if it has too many, or there is no memory. */
bool interest_add(struct broker *b, struct receiver *r, const struct ftb_filter *f, uint32_t id,
		  double since);
void interest_drop(struct broker *b, struct receiver *r, uint32_t id);
/* An event has come from a client, a link, or (NULL) the owner. */
void route_event(struct broker *b, struct receiver *from, const struct ftb_event *e,
		 const uint8_t *bytes, size_t len);
/* Sends from the log, and from held if not NULL, what the new interest of r asks for and r may not
 * have. */
void route_rescue(struct broker *b, struct receiver *r, const struct interest *added, size_t count,
		  const struct out_list *held);
/* All that others but r want, covered ones left out, at most INTEREST_MAX; returns the count. */
size_t route_interest(const struct broker *b, const struct receiver *except, struct interest *out);
/* Puts an event into a receiver's queue and marks it. */
void receiver_put(struct broker *b, struct receiver *r, const struct ftb_event *e,
		  const uint8_t *bytes, size_t len);

/* client.c */
hale_status_t client_listen(struct broker *b, struct error *err);
void client_accept(struct broker *b);
void client_ready(struct client *c, uint32_t events);
void client_flush(struct client *c);
void client_reap(struct broker *b); /* frees those that are broken */
void client_close_all(struct broker *b);
outq_send client_send;

/* broker.c */
char *broker_status_json(const struct broker *b); /* malloc'ed */

/* peers.c */
hale_status_t peers_read(const char *path, struct ftb_peer **peers, int *count, struct error *err);
hale_status_t key_read(const char *path, char secret[41], char public[41], struct error *err);

/* link.c */
struct ftb_link *link_new(struct broker *b, int peer); /* NULL: no memory */
void link_free(struct broker *b, struct ftb_link *l);
bool link_up(struct broker *b, struct ftb_link *l); /* from now on it receives */
enum out_result link_say(struct ftb_link *l, enum packet_kind kind);
void link_tell(struct broker *b, struct ftb_link *l); /* what we want from it, if that is news */
void link_interest(struct broker *b, struct ftb_link *l, const struct packet *p);

/* tree.c */
hale_status_t tree_create(struct broker *b, const struct broker_options *o, struct error *err);
void tree_destroy(struct broker *b);
void tree_pump(struct broker *b); /* takes what has come */
void tree_tick(struct broker *b);
void tree_tell_interest(struct broker *b);
void tree_hold(struct tree *t, const uint8_t *bytes, size_t len);
void tree_flush(struct ftb_link *l);
outq_send tree_send;
/* A message from a peer, whose key has said who it is. l is NULL if it came through the router from
 * somebody who is no child. */
void tree_message(struct broker *b, struct ftb_link *l, int sender, const uint8_t *ident,
		  size_t ident_len, const uint8_t *bytes, size_t len);
void tree_probe_message(struct broker *b, struct probe *p, const uint8_t *bytes, size_t len);
struct ftb_link *tree_child(struct tree *t, const uint8_t *ident, size_t ident_len);
/* Whom a broker asks to be its parent: places in the list, best first; the count. Pure. */
int tree_candidates(int self, unsigned arity, int *order);

/* wire.c */
hale_status_t wire_open(struct broker *b, struct error *err);
void wire_close(struct broker *b);
/* A socket to a peer, in the broker's epoll set; NULL if there is none to be had. */
void *wire_connect(struct broker *b, int peer);
void *wire_watch(struct broker *b, void *socket); /* a monitor for it */
void wire_disconnect(struct broker *b, void *socket, void *monitor);
/* ident NULL: to the one at the other end. */
enum out_result wire_send(struct broker *b, void *socket, const uint8_t *ident, size_t ident_len,
			  const uint8_t *bytes, size_t len);
/* Handles what waits on all sockets; true if more is there. */
bool wire_pump(struct broker *b);
bool wire_waiting(struct broker *b);

/* carried.c: what wire.c does, where the owner is the wire */
hale_status_t carried_open(struct broker *b, const struct broker_carrier *c, struct error *err);
void carried_close(struct broker *b);
void *carried_connect(struct broker *b, int peer);
void carried_disconnect(struct broker *b, void *socket);
enum out_result carried_send(struct broker *b, void *socket, const uint8_t *ident, size_t ident_len,
			     const uint8_t *bytes, size_t len);
void carried_pump(struct broker *b);
bool carried_waiting(const struct broker *b);

/* broker.c */
void broker_wake(struct broker *b);

#endif
