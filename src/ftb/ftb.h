/* SPDX-License-Identifier: BSD-3-Clause */
/* ftb/: the event backplane. What clients and brokers share stands here: an event as it travels,
 * filters, packets, the way to the socket.
 *
 *   event.c filter.c sock.c author.c   shared     broker.c client.c route.c tree.c …   the broker
 *   kept.c                             clients    lib.c lib_*.c   libftb.so, include/libftb.h
 *                                                 tap.c           a client in an event loop
 *
 * May call: base/, ZeroMQ (the broker). May be called by: head/, agent/, cli/, monitors (only
 * through libftb.h and ftb/broker.h).
 */
#ifndef HALE_FTB_FTB_H
#define HALE_FTB_FTB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include "base/error.h"

enum ftb_severity { FTB_INFO, FTB_WARNING, FTB_ERROR, FTB_FATAL, FTB_SEVERITIES };

extern const char *const ftb_severity_names[FTB_SEVERITIES];

/* Any case; -1 if it is none. */
int ftb_severity_parse(const char *text, size_t len);

/* ---- an event as it travels ----
 *
 *   0 u16 length of all   2 u8 severity   3 u8 type       4 u32 age in ms (0: on its first way)
 *   8 u64 publisher      16 u64 sequence  24 u32 pid      28 u16 length of the payload
 *  30 u8 lengths of the six texts, FTB_TEXTS   36 texts without zeros, one behind the other;
 * payload
 *
 * Numbers are little-endian. The publisher is a random number that a client draws; it counts its
 * events from 1. Everything that filters look at stands in the texts and the severity.
 */
enum ftb_text { TEXT_SPACE, TEXT_NAME, TEXT_JOB, TEXT_CLIENT, TEXT_HOST, TEXT_START, FTB_TEXTS };

enum {
	EVENT_HEADER = 36,
	EVENT_TEXT_MAX = 63, /* of any text; ftb_text_max[] has the limit of each */
	EVENT_PAYLOAD_MAX = 8192,
	EVENT_MAX = EVENT_HEADER + FTB_TEXTS * EVENT_TEXT_MAX + EVENT_PAYLOAD_MAX,
};

extern const uint8_t ftb_text_max[FTB_TEXTS]; /* without a terminating zero */

/* Texts and payload point into what was parsed, or to what is to be written. */
struct ftb_event {
	uint8_t severity, type;
	uint32_t age_ms;
	uint64_t publisher, seq;
	uint32_t pid;
	const char *text[FTB_TEXTS];
	uint8_t text_len[FTB_TEXTS];
	const void *payload;
	uint16_t payload_len;
};

static inline bool ftb_event_info(const struct ftb_event *e)
{
	return e->severity == FTB_INFO;
}

size_t ftb_event_size(const struct ftb_event *e);
/* Writes ftb_event_size(e) bytes. */
void ftb_event_write(const struct ftb_event *e, uint8_t *to);
/* Its length, or 0 if the bytes are no event. Fields are in their ranges afterwards, and the
 * namespace and the name are such (ftb_name_ok). */
size_t ftb_event_parse(const uint8_t *bytes, size_t len, struct ftb_event *e);
/* Changes the age in a written event. */
void ftb_event_set_age(uint8_t *event, uint32_t age_ms);

/* Words of A-Z a-z 0-9 _ - with dots between; one word without dots if dots is false. */
bool ftb_name_ok(const char *text, size_t len, bool dots);
/* Printable bytes only: whatever goes to a terminal some day. */
bool ftb_text_ok(const char *text, size_t len);

/* ---- filters ---- */

/* Values are in lower case; "" is any. Laid out without holes, so that memcmp compares. */
struct ftb_filter {
	uint8_t severities; /* bit for each */
	char value[FTB_TEXTS - 1][EVENT_TEXT_MAX + 1];
};

/* FTB_SUCCESS or FTB_ERR_… of libftb.h. */
int ftb_filter_parse(const char *text, struct ftb_filter *f);
bool ftb_filter_match(const struct ftb_filter *f, const struct ftb_event *e);
/* Whether everything that f lets through is let through by wide as well; false is always safe. */
bool ftb_filter_covers(const struct ftb_filter *wide, const struct ftb_filter *f);

enum { FILTER_WIRE_MAX = 9 + 5 * (1 + EVENT_TEXT_MAX) };

/* A filter with the age of the oldest subscription behind it. Parse: length, or 0. */
size_t ftb_filter_write(const struct ftb_filter *f, uint32_t id, uint32_t age_ms, uint8_t *to);
size_t ftb_filter_read(const uint8_t *bytes, size_t len, struct ftb_filter *f, uint32_t *id,
		       uint32_t *age_ms);

/* ---- packets ----
 *
 * u16 'FB'  u8 version  u8 kind  u32 count or what the kind says; then the body.
 * The same frames go through the local socket and between brokers.
 */
enum { PACKET_HEADER = 8, PACKET_MAX = 65536, PACKET_BATCH = 32768, PACKET_VERSION = 1 };

enum packet_kind {
	/* client to broker */
	PACKET_HELLO = 1,   /* u64 publisher */
	PACKET_SUBSCRIBE,   /* one filter */
	PACKET_UNSUBSCRIBE, /* count: id */
	PACKET_STATUS,	    /* answered by PACKET_STATUS with JSON text */
	PACKET_SYNC, /* answered by PACKET_SYNC with the same count: all before it was handled */
	/* broker to client */
	PACKET_WELCOME, /* name of the node */
	PACKET_LOST,	/* u64 INFO, u64 above: not delivered so far */
	PACKET_REFUSED, /* a sentence */
	/* both, and between brokers */
	PACKET_EVENTS, /* count events */
	/* between brokers */
	PACKET_PROBE,	 /* count: who asks. Answered by PACKET_HERE */
	PACKET_HERE,	 /* count: who answers; u32 free places for children */
	PACKET_JOIN,	 /* count: who. Answered by ACCEPT or LEAVE */
	PACKET_ACCEPT,	 /* count: who */
	PACKET_INTEREST, /* count filters: all that the sender wants from this link from now on */
	PACKET_PING,	 /* sign of life */
	PACKET_LEAVE,	 /* the link is no more */
	PACKET_KINDS
};

struct packet {
	enum packet_kind kind;
	uint32_t count;
	const uint8_t *body;
	size_t len; /* of the body */
};

void ftb_packet_start(uint8_t *to, enum packet_kind kind, uint32_t count);
/* False if these bytes are none. The body is looked at by whoever handles the kind. */
bool ftb_packet_parse(const uint8_t *bytes, size_t len, struct packet *p);
/* Whether the body of an events packet is exactly its count of events; with each, if not NULL. */
bool ftb_events_each(const struct packet *p,
		     void (*each)(const struct ftb_event *e, const uint8_t *bytes, size_t len,
				  void *arg),
		     void *arg);

static inline void put_u32(uint8_t *p, uint32_t v)
{
	__builtin_memcpy(p, &v, sizeof(v));
}

static inline void put_u64(uint8_t *p, uint64_t v)
{
	__builtin_memcpy(p, &v, sizeof(v));
}

static inline uint32_t get_u32(const uint8_t *p)
{
	uint32_t v;
	__builtin_memcpy(&v, p, sizeof(v));
	return v;
}

static inline uint64_t get_u64(const uint8_t *p)
{
	uint64_t v;
	__builtin_memcpy(&v, p, sizeof(v));
	return v;
}

/* ---- the way to the broker ---- */

/* Where the broker's socket is: $HALE_FTB, else $XDG_RUNTIME_DIR/hale/ftb, else
 * /tmp/hale-ftb-UID/ftb. "@NAME" is a name in Linux's abstract namespace, which leaves no file
 * behind. False if it is too long for a socket's address. */
bool ftb_socket_path(char path[108]);
/* The socket's address for bind and connect; returns its length, 0 if the path is too long. */
struct sockaddr_un;
socklen_t ftb_address(const char *path, struct sockaddr_un *address);

/* A client's side of the socket. */

/* Connects, never blocking, to the broker at path (NULL: ftb_socket_path); -1 with errno if there
 * is none, or it is not to be trusted. */
int ftb_connect(const char *path);
bool ftb_say(int fd, const uint8_t *packet, size_t len); /* a first word; false: it can't be said */
ssize_t ftb_hear(int fd, uint8_t *packet, size_t room);	 /* without waiting; as recv */
bool ftb_greet(int fd, uint64_t publisher);		 /* sends HELLO */
/* The node's name from a WELCOME. */
void ftb_welcome_host(const struct packet *p, char host[EVENT_TEXT_MAX + 1]);
/* Sends one packet without waiting. */
enum out_result { OUT_SENT, OUT_BLOCKED, OUT_BROKEN };
enum out_result ftb_send(int fd, const uint8_t *bytes, size_t len);

/* A random number that is not 0. */
uint64_t ftb_random(void);

#endif
