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
	unsigned char token[RIO_TOKEN]; /* the same on both */
	uint32_t which, zero;
};

enum { NET_FD_REQUESTS = 3, NET_FD_DATA, NET_FD_DAEMON }; /* of a server: argument --network */

enum {
	NET_AHEAD_MAX = 256 << 10, /* bytes of a write that go before its request */
	NET_ANSWER_MAX = 1 << 20,
};

enum net_frame_kind {
	/* to the server */
	NET_REQUEST = 1, /* slot: whether several threads call; a struct wire_request */
	NET_AHEAD,	 /* address, size, seen; the data */
	NET_ANSWER,	 /* status: errno; the data */
	/* to the relay */
	NET_READY, /* status 1 or 2 as remote_wire.ready; address: remote_wire.devices; a sentence
		    */
	NET_REPLY, /* slot, status; struct net_reply, its data */
	NET_STORE, /* address; the data */
	NET_FETCH, /* address, rows, pitch; size: of all rows; nothing behind it */
	NET_CALLBACK, /* address: cookie, status */
};

struct net_frame {
	uint32_t kind, slot;
	int32_t status;
	uint32_t rows;
	uint64_t address;
	uint64_t size; /* of what is behind it, but for NET_FETCH */
	uint64_t pitch;
	uint64_t seen; /* how many NET_STORE had been carried out when the data were read */
};

struct net_reply {
	uint64_t value[4], bytes;
};

/* net_daemon.c: the daemon's part. program: hale-opencl-server. */
void net_serve_begin(const char *program);
bool net_serve(int fd, const struct wire_head *h, const void *payload);

/* net_stream.c: a connection that is read in large pieces. */
struct net_stream {
	int fd;
	char *buffer;
	size_t from, to;
};
bool net_stream_open(struct net_stream *s, int fd);
/* Exactly so many bytes. us: looks for so long before it sleeps. False, with errno: it has ended.
 */
bool net_stream_take(struct net_stream *s, void *to, size_t size, uint32_t us);
bool net_stream_skip(struct net_stream *s, uint64_t size);
/* Sends both parts. False: the connection has ended. */
bool net_send(int fd, const void *head, size_t head_size, const void *data, size_t size);
/* A connection whose other side may leave it full for long is not lost. */
void net_may_stand_still(int fd);
/* Microseconds for which threads here look before they sleep. */
uint32_t net_patience(void);

#endif
