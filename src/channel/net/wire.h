/* SPDX-License-Identifier: BSD-3-Clause */
/* What the net channel needs of a network, and all it knows of one. Two members: tcp.c, our own,
 * and libhale_net.so (wire_ucx.c, over UCX) for networks with RDMA.
 *
 * The module lives in a link namespace of its own (dlmopen) with a C library of its own: a
 * checkpoint may interrupt the program inside malloc, and then UCX, which needs malloc all the
 * time, must be able to run. So nothing but plain data and these pointers crosses the border: no
 * errno, no FILE, no memory that one side frees for the other. No wire starts threads.
 *
 * All functions are called by one thread at a time, and calls come back from within them only.
 */
#ifndef HALE_CHANNEL_NET_WIRE_H
#define HALE_CHANNEL_NET_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

enum {
	WIRE_VERSION = 4,
	WIRE_WHY = 200,
	WIRE_FDS = 12,
	WIRE_HEADER_MAX = 128,
	WIRE_SECRET = 32,
	WIRE_ROOM = 32
};
#define WIRE_SOMEBODY UINT32_MAX
#define WIRE_WAIT     ((void *)-1)

struct wire_self {
	uint32_t rank, npeers;
	uint32_t generation; /* only processes of the same one belong together */
	/* of the job: who has it belongs to the job. In memory of the caller's; NULL: there is none
	 */
	const unsigned char *secret;
	bool encrypt;	     /* what goes over connections; a wire that can't doesn't open */
	bool one_host;	     /* nobody needs to be reached from outside of this machine */
	uint64_t timeout_ns; /* after which silence on a connection means that it is broken */
};

/* Memory of the sender's that follows a datagram unasked, up to its end. */
struct wire_ahead {
	uint64_t address; /* in the sender */
	uint64_t bytes;
};

/* From the wire. They may call send, but no other function of it. */
struct wire_calls {
	/* A datagram of peer (WIRE_SOMEBODY: the wire can't tell) has come; header and payload are
	 * valid during the call only, and header is aligned. Order isn't kept by every wire. */
	void (*came)(uint32_t peer, const void *header, size_t header_bytes, const void *payload,
		     size_t bytes, const struct wire_ahead *ahead);
	/* Where the wire is to write the bytes that follow the last datagram of that peer (struct
	 * wire_ahead). NULL: nobody wants them; it reads them and drops them. WIRE_WAIT: ask again
	 * in the next progress, and read no more from that peer until then. */
	void *(*ahead_where)(uint32_t peer);
	/* They are there, or dropped, or (ok false) will never be there. The wire writes there no
	 * more. */
	void (*ahead_came)(uint32_t peer, bool ok);
	/* A send or give with this cookie that was pending is over; its memory may be reused. */
	void (*sent)(void *cookie);
	/* A receive is over. ok: all the bytes are there. Else nobody writes there any more. */
	void (*received)(void *cookie, bool ok);
	/* There is a (new) connection to that peer: datagrams may be sent. What was pending on one
	 * before has ended. */
	void (*up)(uint32_t peer);
	/* The connection to that peer, or the attempt at one, is broken. Call disconnect, later. */
	void (*broke)(uint32_t peer, const char *why);
	/* The host of that peer has answered an attempt at a connection; the process takes its time
	 * where its program computes. Wires that can't tell call neither of these two. */
	void (*reached)(uint32_t peer);
	/* All its addresses have been tried, and no host has answered. broke, or connect's false,
	 * follows. */
	void (*unreached)(uint32_t peer);
	/* Somebody who isn't of this job has connected and was turned away: so many by now. */
	void (*stranger)(uint32_t count, const char *what);
	/* What was sent to that peer was lost, though its host answers: from now on connections
	 * carry packets of so many bytes. NULL: nobody wants to know. */
	void (*smaller)(uint32_t peer, uint32_t bytes);
};

enum wire_sent { WIRE_FAILED = -1, WIRE_PENDING = 0, WIRE_SENT = 1 };

enum wire_state { WIRE_NONE, WIRE_CONNECTING, WIRE_UP, WIRE_ENDING };

struct net_wire {
	uint32_t version;
	char name[8];
	/* A peer can be connected again at the same address. Otherwise, after a lost connection the
	 * whole wire must be closed and opened. */
	bool reconnects;
	size_t ahead_max; /* bytes that may follow a datagram */

	/* False: why says it in a sentence's half (WIRE_WHY bytes). */
	bool (*open)(const struct wire_self *self, const struct wire_calls *calls, char *why);
	/* Where others reach this process; valid until close. */
	const void *(*address)(size_t *bytes);
	/* Descriptors that become readable when there is something to progress, once arm has
	 * said true. Returns how many, at most WIRE_FDS; valid until close. */
	unsigned (*descriptors)(int fd[WIRE_FDS]);
	/* False: there is something to progress now. */
	bool (*arm)(void);
	/* Moves things on; returns how many. From here on datagrams may be kept back, so that
	 * several leave together, until flush. */
	int (*progress)(void);
	void (*flush)(void); /* NULL: nothing is ever kept back */

	/* The address is copied. up comes at once, or later, or broke does. */
	bool (*connect)(uint32_t peer, const void *address, size_t bytes, char *why);
	/* Drops the connection; everything pending on it ends (sent, received with ok = false, now
	 * or from within progress). state says when the peer can be connected again. */
	void (*disconnect)(uint32_t peer);
	enum wire_state (*state)(uint32_t peer);
	/* Does the connection that there is lead to this address? NULL: can't be told. */
	bool (*leads_to)(uint32_t peer, const void *address, size_t bytes);

	/* A datagram. header, payload and ahead must stay until it is sent (WIRE_SENT, or call),
	 * and so must the WIRE_ROOM bytes before header, which the wire may write. ahead: NULL, or
	 * at most ahead_max bytes that follow it. */
	enum wire_sent (*send)(uint32_t peer, const void *header, size_t header_bytes,
			       const void *payload, size_t bytes, const struct iovec *ahead,
			       void *cookie);

	/* Bulk: give sends memory straight to where the peer wants it: to its receive with this
	 * token. WIRE_FAILED: nothing was begun. iov is copied, what it points to must stay. */
	enum wire_sent (*give)(uint32_t peer, uint64_t token, const struct iovec *iov, size_t n,
			       void *cookie);
	bool (*receive)(uint32_t peer, uint64_t token, void *to, size_t bytes, void *cookie);
	/* Ends a receive that nobody will serve; received is called with ok = false, or true when
	 * it had just come. */
	void (*receive_end)(void *cookie);

	/* Sends off the datagrams that have been handed in, as far as that takes no longer than
	 * max_ns, and leaves nothing behind: no connection, descriptor, thread or pinned memory.
	 * Calls sent and received for what was pending. */
	void (*close)(uint64_t max_ns);
};

extern const struct net_wire wire_tcp;

/* The one name that the module shows. */
#define WIRE_SYMBOL "hale_net_wire"
extern const struct net_wire hale_net_wire;

#endif
