/* SPDX-License-Identifier: BSD-3-Clause */
/* Between a relay beside the program and a server on another node (docs/opencl.md, 'Devices of
 * another node'): two connections, which begin with messages of rio/wire.h and go on with frames.
 */
#ifndef HALE_OCL_REMOTE_NET_H
#define HALE_OCL_REMOTE_NET_H

#include "ocl/remote/wire.h"
#include "rio/wire.h"

enum net_op {
	NET_JOIN = RIO_SERVICES + 32, /* payload: struct net_join */
	NET_JOINED,		      /* on the first connection: the server begins */
};

enum net_which { NET_REQUESTS, NET_DATA };

struct net_join {
	unsigned char token[RIO_TOKEN]; /* random; both connections of a server send the same */
	uint32_t which, zero;
};

/* Descriptors of a server that is started with --network. The third is a pipe's end, which closes
 * with the daemon. */
enum { NET_FD_REQUESTS = 3, NET_FD_DATA, NET_FD_DAEMON };

enum {
	NET_AHEAD_MAX = 256 << 10, /* bytes of a write that go before its request */
	NET_ANSWER_MAX = 1 << 20,  /* bytes */
};

enum net_frame_kind {
	/* to the server */
	NET_REQUEST = 1, /* slot: whether several threads call; behind it: struct wire_request */
	NET_AHEAD,	 /* address, size, seen; behind it: the data */
	NET_ANSWER,	 /* status: errno; behind it: the data, none where it failed */
	/* to the relay */
	NET_READY, /* status: as remote_wire.ready; address: remote_wire.devices; behind it: why it
		    * can't */
	NET_REPLY, /* slot, status; behind it: struct net_reply, its data */
	NET_STORE, /* address; behind it: the data */
	NET_FETCH, /* address, rows, pitch; size: of all rows; behind it: nothing */
	NET_CALLBACK, /* address: cookie, status */
};

struct net_frame {
	uint32_t kind, slot;
	int32_t status;
	uint32_t rows;
	uint64_t address;
	uint64_t size; /* bytes behind it, but for NET_FETCH */
	uint64_t pitch;
	uint64_t seen; /* NET_STORE frames that the relay had carried out when it read the data */
};

struct net_reply {
	uint64_t value[4], bytes;
};

/* ---- net_daemon.c: the daemon's part ---- */
/* program: the path of hale-opencl-server. */
void net_serve_begin(const char *program);
/* Serves a connection that began with NET_JOIN, as struct rio_service says. */
bool net_serve(int fd, const struct wire_head *h, const void *payload);

/* ---- net_stream.c ---- */
/* A connection whose bytes are received in large pieces. */
struct net_stream {
	int fd;
	char *buffer;
	size_t from, to;
};
bool net_stream_open(struct net_stream *s, int fd);
/* Takes exactly size bytes. us: how long it looks before it sleeps. False, with errno: the
 * connection has ended, or its time limit has passed (ETIMEDOUT). */
bool net_stream_take(struct net_stream *s, void *to, size_t size, uint32_t us);
/* Sends both parts. False, with errno: the connection has ended. */
bool net_send(int fd, const void *head, size_t head_size, const void *data, size_t size);
/* From now on a full connection does not count as lost, however long its other side takes nothing.
 */
void net_may_stand_still(int fd);
/* How long threads of this process look before they sleep, in microseconds. */
uint32_t net_patience(void);

#endif
