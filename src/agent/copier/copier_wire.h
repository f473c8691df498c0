/* SPDX-License-Identifier: BSD-3-Clause */
/* What copiers say to each other, in this order; each struct as it lies in memory, since both run
 * the same build.
 *
 *     caller                                          called
 *       │ hello {from node, to node, nonce} ─────────▶ │
 *       │ ◀── challenge {nonce, HMAC("called", all)}   │
 *       │ proof {HMAC("caller", all)} ───────────────▶ │
 *       │ request {put or get, of which image} ──────▶ │
 *       │      answers and bytes, by the request       │
 *
 * From the request on all is sealed, if that is asked for. */
#ifndef HALE_AGENT_COPIER_COPIER_WIRE_H
#define HALE_AGENT_COPIER_COPIER_WIRE_H

#include <stdint.h>
#include <sodium/crypto_auth_hmacsha512256.h>
#include "agent/copier/copier.h"

enum { COPIER_VERSION = 1, COPIER_NONCE = 32, COPIER_MAC = crypto_auth_hmacsha512256_BYTES };
#define COPIER_MAGIC "HALECOPY" /* without its NUL */

struct hello {
	char magic[8];
	uint32_t version, from, to, reserved;
	unsigned char nonce[COPIER_NONCE];
};

struct challenge {
	unsigned char nonce[COPIER_NONCE], mac[COPIER_MAC];
};

/* What the MACs are of. */
struct said {
	char who[8]; /* "called", "caller" */
	struct hello hello;
	unsigned char nonce[COPIER_NONCE];
};

enum request_type { REQUEST_PUT = 1, REQUEST_GET };

struct copier_wire_request {
	uint32_t type, rank, id, reserved;
	uint64_t bytes, checksum;
	char folder[STORE_FOLDER_MAX]; /* GET: where it lies */
};

/* What the side that is to get an image says first. HAVE: it lies there already and is good. LOOKS:
 * one of that length lies there; another answer follows when it has read it. */
enum { ANSWER_SEND, ANSWER_HAVE, ANSWER_LOOKS };

struct answer {
	int32_t status;
	uint32_t what;
	uint64_t bytes;
	char text[480];
};

#endif
