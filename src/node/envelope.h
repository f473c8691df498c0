/* SPDX-License-Identifier: BSD-3-Clause */
/* What channels put into the node's segment beside payloads (node/shm_layout.h). Called by
 * channel/, deliver/ and match/ through channel/channel.h. */
#ifndef HALE_NODE_ENVELOPE_H
#define HALE_NODE_ENVELOPE_H

#include <stdint.h>

/* What travels in front of each record. Channels look at nothing but length. */
struct envelope {
	uint8_t kind; /* match/'s enum record_kind */
	uint8_t reserved[3];
	uint32_t length; /* of the payload of this record */
	uint32_t context;
	int32_t source; /* rank of the sender in the communicator */
	int32_t tag;
	uint32_t number; /* the ledger's, low half */
	uint64_t id;	 /* names a request at one of the two ends */
};

/* A word that two processes count up together, to divide the chunks of one big copy. Its owner is
 * the receiver. All in one cache line; zeroed memory is a valid, unused one. */
struct channel_share {
	_Atomic uint64_t claim; /* generation in the upper half, next unclaimed chunk below */
	_Atomic uint32_t done;	/* chunks that the helper has copied */
	_Atomic uint32_t
	    refused; /* chunk + 1 that the helper claimed and could not copy; 0: none */
	char pad[48];
};

enum { CHANNEL_SHARES = 16 }; /* of each rank */

#endif
