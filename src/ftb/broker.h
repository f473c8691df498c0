/* SPDX-License-Identifier: BSD-3-Clause */
/* A broker: the node's end of the event backplane, one per node (docs/backplane.md).
 *
 * It lives in its owner's event loop, or alone in `hale backplane`: one descriptor becomes readable
 * when there is something to do, and broker_dispatch() does it, a bounded amount at a time.
 *
 *     loop_add(&loop, &source, broker_fd(b), EPOLLIN, ready, b);   // ready: broker_dispatch(arg)
 *
 * Not thread-safe: one thread calls all of it. It starts one thread of its own (ZeroMQ's, which
 * moves bytes) if it has peers, else none.
 */
#ifndef HALE_FTB_BROKER_H
#define HALE_FTB_BROKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "base/error.h"

enum { BROKER_ARITY = 8 };

/* Links between brokers that go through their owners, who have a way of their own to each other
 * (docs/backplane.md, 'Over hosts'): a star, broker 0 in its middle. The owner has made sure who is
 * at the other end. */
enum broker_sent { BROKER_SENT, BROKER_LATER, BROKER_GONE };
struct broker_carrier {
	int self;		  /* 0: the middle */
	int count;		  /* brokers, all in all */
	const char *const *names; /* [count]; NULL: numbers will do */
	/* Passes bytes to broker `to`: broker_carry there, with the same channel and up. LATER:
	 * there is no room; broker_room() when there is again. */
	enum broker_sent (*send)(void *arg, int to, uint32_t channel, bool up, const void *bytes,
				 size_t len);
	/* What broker_carry() took over has been handled: so many bytes of `from` wait no more. */
	void (*handled)(void *arg, int from, size_t len);
	void *arg;
};

struct broker; /* opaque */

/* Zero and NULL mean the default. Texts are copied. */
struct broker_options {
	const char *socket; /* path for clients; NULL: ftb_socket_path(). Its folder is made with
			     * mode 0700 (0750 with a group). */
	const char *node;   /* this node's name in events, at most 63 bytes; NULL: the host name */
	const char *group; /* members of this group may connect, too, besides this user; NULL: none.
			    * They must get through the socket's folder: a new one is made so */
	const char *peers; /* file with a line "NAME ADDRESS PUBLICKEY" for each broker, the same on
			    * all nodes (ADDRESS: tcp://IP:PORT); NULL: a broker that is alone */
	const char *key;   /* file with this broker's secret key, mode 0600; needed with peers */
	const struct broker_carrier *carrier; /* instead of peers and key; copied */
	unsigned arity;			      /* children that a broker has when all are well (8) */
	double heartbeat;		      /* seconds between signs of life (0.2) */
	double dead; /* a peer that is silent for so many seconds is dead (1.0) */
};

struct broker_stats {
	uint64_t events;	/* taken from clients of this node */
	uint64_t delivered;	/* to clients of this node */
	uint64_t forwarded;	/* to other brokers */
	uint64_t received;	/* from other brokers */
	uint64_t duplicates;	/* seen before, and dropped */
	uint64_t lost_info;	/* not delivered, because somebody was too slow */
	uint64_t lost_above;	/* WARNING and above among such */
	uint64_t refused_users; /* connections of users who may not */
	uint64_t refused_keys;	/* connections of brokers whose key is not in the list */
	uint64_t malformed;	/* packets that were none; their senders were cut off */
	uint64_t heals;		/* parents lost and replaced */
	unsigned clients, subscriptions, children;
	int self, parent; /* places in the list of peers; parent -1: this is a root */
};

/* False with a sentence in err: the socket is in use, a key file others can read, … Raises the
 * process's soft limit of open files, so that 1024 clients find room. */
hale_status_t broker_create(const struct broker_options *options, struct broker **b,
			    struct error *err);
/* Says goodbye to peers and clients, removes the socket. NULL is fine. */
void broker_destroy(struct broker *b);

/* Readable when broker_dispatch() has something to do. The broker's: don't close it. */
int broker_fd(const struct broker *b);
void broker_dispatch(struct broker *b);
/* Instead of these, for an owner who has nothing else to do: works until the descriptor `end` is
 * readable. False with a sentence if it can't. */
bool broker_serve(struct broker *b, int end, struct error *err);

/* Bytes from broker `from`; handled by a later dispatch. False: it is out of memory, or they are
 * none. */
bool broker_carry(struct broker *b, int from, uint32_t channel, bool up, const void *bytes,
		  size_t len);
/* After BROKER_LATER. */
void broker_room(struct broker *b);

void broker_stats(const struct broker *b, struct broker_stats *stats);

/* Publishes in the owner's own name, without a socket: severity 0 INFO, 1 WARNING, 2 ERROR, 3
 * FATAL; jobid may be NULL; the payload has at most 8 KiB. ARGUMENT with a sentence if a name is
 * wrong. */
hale_status_t broker_publish(struct broker *b, const char *space, const char *name, int severity,
			     const char *jobid, const void *payload, size_t length,
			     struct error *err);

/* An event as an owner's subscription sees it; everything is the broker's and gone afterwards. */
struct broker_event {
	const char *space, *name, *severity, *jobid, *client, *host;
	pid_t pid;
	uint64_t seq;
	const void *payload;
	size_t length;
};

/* Calls back from broker_dispatch() or broker_publish() for each event that matches filter (the
 * language of FTB_Subscribe); once if it matches several with the same callback and arg. The
 * callback may publish; it must not destroy the broker. *id names the subscription. */
hale_status_t broker_subscribe(struct broker *b, const char *filter,
			       void (*callback)(const struct broker_event *event, void *arg),
			       void *arg, unsigned *id, struct error *err);
void broker_unsubscribe(struct broker *b, unsigned id);

/* What the broker at a socket (NULL: ftb_socket_path()) says of itself, as JSON text for the caller
 * to free. NODE with a sentence if none answers, or it refuses. */
hale_status_t broker_ask(const char *socket, char **json, struct error *err);

/* Makes a pair of keys: the secret one in a new file of mode 0600, the public one (41 bytes with
 * its zero) in public_key. Fails if the file is there. */
hale_status_t broker_key_make(const char *path, char public_key[41], struct error *err);
/* The public key that belongs to a file made so; refuses a file that others can read. */
hale_status_t broker_key_read(const char *path, char public_key[41], struct error *err);

#endif
