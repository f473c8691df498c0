/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of ranks on its way between hosts with --net-security encrypt: a connection whose two ends
 * know the job's secret agree on keys that nobody else can have, and seal all that follows
 * (wire/seal/tcp_seal.h has the records).
 *
 *     caller                                            called
 *       │ hello {ciphers, public key} ──────────────────▶ │
 *       │ ◀── answer {cipher, public key, MAC("called")} │
 *       │ proof {MAC("caller")} ────────────────────────▶ │
 *
 * MACs are by the secret over all that was said and what the connection is for; keys are, too, and
 * over the X25519 agreement of keys that are drawn for this connection and forgotten. So a reader
 * who learns the secret later can't read what he has recorded, and what is changed, left out,
 * repeated or moved on its way does not open.
 *
 * All of it blocks, within the time limits that the socket has. */
#ifndef HALE_WIRE_SEAL_SEALED_H
#define HALE_WIRE_SEAL_SEALED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "base/error.h"
#include "node/segment.h"

/* What a connection is for; both ends must mean the same one. */
struct sealed_purpose {
	char name[8];
	uint32_t number[3];
	uint32_t reserved;
};

struct sealed;

/* Both ends prove who they are and agree on keys. *s is to be freed by sealed_free. HALE_ERR_LINK:
 * the connection is broken; HALE_ERR_PROTOCOL: the other end doesn't know the secret, or means
 * something else. */
hale_status_t sealed_open(struct sealed **s, int fd, bool caller,
			  const unsigned char secret[SEGMENT_SECRET],
			  const struct sealed_purpose *purpose, struct error *err);
/* Both ends prove who they are, and nothing is sealed. As sealed_open. */
hale_status_t sealed_prove(int fd, bool caller, const unsigned char secret[SEGMENT_SECRET],
			   const struct sealed_purpose *purpose, struct error *err);
/* The connection stays open. NULL: nothing. */
void sealed_free(struct sealed *s);

/* All of it. HALE_ERR_LINK; errno as of the call that failed. */
hale_status_t sealed_say(struct sealed *s, const void *bytes, size_t len, struct error *err);
/* Exactly so many bytes. HALE_ERR_LINK: it ended or took too long; HALE_ERR_PROTOCOL: what came is
 * not what was sent, and nothing more of it may be used. */
hale_status_t sealed_hear(struct sealed *s, void *bytes, size_t len, struct error *err);

enum sealed_end { SEALED_OVER, SEALED_CHANGED, SEALED_FAILED };

/* Passes on between plain, a process of this machine, and a connection to a sealed_pump at the
 * other end, until both directions have ended or the connection breaks (SEALED_OVER), or what comes
 * was changed on its way. SEALED_FAILED: there are no keys, and err says why. */
enum sealed_end sealed_pump(int plain, int wire, bool caller,
			    const unsigned char secret[SEGMENT_SECRET],
			    const struct sealed_purpose *purpose, struct error *err);

#endif
