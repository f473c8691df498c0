/* SPDX-License-Identifier: BSD-3-Clause */
/* What goes between a program and the daemon of a node, after both have proved to have the same key
 * (wire/seal/sealed.h). Messages have a head and a payload, and a check of both; the bytes of a
 * stream follow a RIO_JOIN without any framing, so that its descriptor is a plain one. */
#ifndef HALE_RIO_WIRE_H
#define HALE_RIO_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	RIO_PORT = 7420,
	RIO_BUFFER = 4 << 20,	/* bytes of a stream that a node has in memory; unit of hashes */
	RIO_PATH_MAX = 1024,	/* with its end */
	RIO_NODE_MAX = 256,	/* with its end */
	RIO_PAYLOAD_MAX = 8192, /* bytes */
	RIO_TOKEN = 16,		/* bytes that name a session */
	RIO_STREAMS_MAX = 16,	/* connections of one file */
	RIO_KEY = 32,
	WIRE_HEAD_MAGIC = 0x6f6972,
};

enum rio_op {
	RIO_OPEN = 1, /* number: enum rio_open_flag, size: permissions; payload: path */
	RIO_OPENED,   /* size: of the file; payload: token */
	RIO_JOIN,     /* number: offset, size: bytes (reading) or RIO_REST; payload: token */
	RIO_JOINED,
	RIO_ASK,     /* what is the state? */
	RIO_FINISH,  /* number: bytes that were sent, or RIO_REST; sum: of their hashes, if checked
		      */
	RIO_STATE,   /* error; number: bytes, sum; payload: a sentence */
	RIO_REFUSED, /* error; payload: a sentence */
	RIO_SERVICES = 32, /* operations of other services begin here */
};

enum rio_open_flag { RIO_F_WRITE = 1, RIO_F_WHOLE = 2, RIO_F_SYNC = 4, RIO_F_CHECKED = 8 };

#define RIO_REST UINT64_MAX

struct wire_head {
	uint32_t magic;
	uint16_t op;
	uint16_t error; /* errno, 0: none */
	uint64_t number, size, sum;
	uint32_t bytes; /* of the payload */
	uint32_t check; /* of all else of the head, and of the payload */
};

/* Sends one message, and fills in h's magic, bytes and check. 0, or -1 with errno. */
int wire_say(int fd, struct wire_head *h, const void *payload, size_t bytes);
/* Receives one message. payload has room for max bytes and a NUL behind them (max + 1). 0, or -1
 * with errno; EPROTO: what came is no message, is too long, or was damaged. */
int wire_hear(int fd, struct wire_head *h, void *payload, size_t max);
/* Send or receive exactly len bytes. 0, or -1 with errno; ECONNRESET: the connection has ended. */
int wire_say_bytes(int fd, const void *bytes, size_t len);
int wire_hear_bytes(int fd, void *bytes, size_t len);

/* The hash of a file's block at offset. A file's hash is the sum of those of its blocks, so that
 * parallel streams may add theirs in any order. */
uint64_t wire_sum(const void *block, size_t len, uint64_t offset);

/* Says that nothing more comes and waits until the other side has closed, too; what still comes is
 * dropped. At most HALE_RIO_TIMEOUT. fd stays open. */
void wire_hang_up(int fd);

/* Silence for as long as HALE_RIO_TIMEOUT (10 s) means that the other side is lost. */
int wire_timeout_ms(void);
void wire_prepare(int fd);
/* Proves that both have the key of HALE_DEVICE_KEY, which is made if it isn't there. 0, or -1 with
 * errno and why (size bytes). */
int wire_prove(int fd, bool caller, char *why, size_t size);
/* Reads the key, or makes one. */
int wire_key(unsigned char key[RIO_KEY], char *why, size_t size);

#endif
