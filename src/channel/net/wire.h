/* SPDX-License-Identifier: BSD-3-Clause */
/* What the net channel needs of a network library, and all it knows of one. The member is
 * libhale_net.so (wire_ucx.c, over UCX), which is loaded when a job has ranks on other nodes.
 *
 * The module lives in a link namespace of its own (dlmopen) with a C library of its own: a
 * checkpoint may interrupt the program inside malloc, and then UCX, which needs malloc all the
 * time, must be able to run. So nothing but plain data and these pointers crosses the border: no
 * errno, no FILE, no memory that one side frees for the other. It starts no threads.
 *
 * All functions are called by one thread at a time, and calls come back from within them only.
 */
#ifndef HALE_CHANNEL_NET_WIRE_H
#define HALE_CHANNEL_NET_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

enum { WIRE_VERSION = 1, WIRE_WHY = 200, WIRE_FDS = 12, WIRE_HEADER_MAX = 128 };

/* From the module. They may call send, but no other function of it. */
struct wire_calls {
	/* A datagram of somebody has come; both are valid during the call only. Order isn't kept.
	 */
	void (*came)(const void *header, size_t header_bytes, const void *payload, size_t bytes);
	/* A send or give with this cookie that was pending is over; its memory may be reused. */
	void (*sent)(void *cookie);
	/* A receive is over. ok: all the bytes are there. Else nobody writes there any more. */
	void (*received)(void *cookie, bool ok);
	/* The connection to that peer is broken. Call disconnect, later. */
	void (*broke)(uint32_t peer, const char *why);
};

enum wire_sent { WIRE_FAILED = -1, WIRE_PENDING = 0, WIRE_SENT = 1 };

struct wire {
	uint32_t version;

	/* Opens for so many peers. False: why says it in a sentence's half (WIRE_WHY bytes). */
	bool (*open)(uint32_t npeers, const struct wire_calls *calls, char *why);
	/* Where others reach this process; valid until close. */
	const void *(*address)(size_t *bytes);
	/* Descriptors that become readable when there is something to progress, once arm has
	 * said true. Returns how many, at most WIRE_FDS; valid until close. */
	unsigned (*descriptors)(int fd[WIRE_FDS]);
	/* False: there is something to progress now. */
	bool (*arm)(void);
	/* Moves things on; returns how many. */
	int (*progress)(void);

	/* The address is copied. Datagrams may be sent at once. */
	bool (*connect)(uint32_t peer, const void *address, size_t bytes, char *why);
	/* Drops the connection; everything pending on it ends (sent, received with ok = false, from
	 * within progress). connected says when the peer can be connected again. */
	void (*disconnect)(uint32_t peer);
	enum wire_state { WIRE_NONE, WIRE_UP, WIRE_ENDING } (*state)(uint32_t peer);

	/* A datagram. header and payload must stay until it is sent (WIRE_SENT, or call). */
	enum wire_sent (*send)(uint32_t peer, const void *header, size_t header_bytes,
			       const void *payload, size_t bytes, void *cookie);

	/* Bulk: give sends memory straight to where the peer wants it: to its receive with this
	 * token. WIRE_FAILED: nothing was begun. */
	enum wire_sent (*give)(uint32_t peer, uint64_t token, const struct iovec *iov, size_t n,
			       void *cookie);
	bool (*receive)(uint64_t token, void *to, size_t bytes, void *cookie);
	/* Ends a receive that nobody will serve; received is called with ok = false, or true when
	 * it had just come. */
	void (*receive_end)(void *cookie);

	/* Sends off the datagrams that have been handed in, as far as that takes no longer than
	 * max_ns, and leaves nothing behind: no connection, descriptor, thread or pinned memory.
	 * Calls sent and received for what was pending. */
	void (*close)(uint64_t max_ns);
};

/* The one name that the module shows. */
#define WIRE_SYMBOL "hale_net_wire"
extern const struct wire hale_net_wire;

#endif
