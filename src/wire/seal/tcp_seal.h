/* SPDX-License-Identifier: BSD-3-Clause */
/* Encryption of what goes over a connection (docs/network-channel.md, "Encryption"): the bytes of
 * its frames, cut into records that are sealed one by one.
 *
 *   | length of bytes and tag (u32) | its check (u32) | encrypted bytes | tag of 16 bytes |
 *
 * The n-th record of a direction has the nonce n. A key is of one direction of one connection: both
 * come out of the handshake, of which each has new random numbers, so no nonce is used twice,
 * neither over the next connection nor after a restart. The length is authenticated with the rest;
 * before that by its check, a keyed hash of it and n: whoever believed a length that was changed to
 * a larger one would wait for the rest of a record that has come. A record that was changed, left
 * out, repeated or moved does not open.
 */
#ifndef HALE_WIRE_SEAL_TCP_SEAL_H
#define HALE_WIRE_SEAL_TCP_SEAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

enum { SEAL_KEY = 32, SEAL_RECORD = 32 << 10 };

enum seal_cipher {
	SEAL_CHACHA20 = 1,
	SEAL_AES256 = 2
}; /* bits; both with a MAC, of RFC 8439, GCM */

struct seal_keys {
	unsigned char out[SEAL_KEY], in[SEAL_KEY];
	uint32_t cipher; /* one enum seal_cipher */
};

struct seal;

/* Once in a process, before anything else. False: the library can't be used. */
bool seal_init(void);
/* What this processor does: bits. */
uint32_t seal_ciphers(void);

/* NULL: no memory. The keys are copied. */
struct seal *seal_create(const struct seal_keys *keys);
/* Nothing of the keys is left in memory. NULL: nothing. */
void seal_destroy(struct seal *s);

/* ---- out ---- */
/* The next bytes, from the skip-th on, at most SEAL_RECORD of them, become a record to be sent.
 * Only when nothing is left to be sent. Returns how many; 0: the keys are used up. */
size_t seal_put(struct seal *s, const struct iovec *iov, unsigned n, size_t skip);
/* What is to be sent. Returns how many bytes. */
size_t seal_sendable(const struct seal *s, const unsigned char **at);
void seal_sent(struct seal *s, size_t bytes);

/* ---- in ---- */
/* Where to put what has come; never no room unless a whole record is there. Returns how much fits.
 */
size_t seal_room(struct seal *s, unsigned char **at);
void seal_came(struct seal *s, size_t bytes);
/* Bytes of the next record when it is opened; 0: it isn't there as a whole, < 0: it can't be one.
 */
long seal_next(const struct seal *s);
/* Opens it: to has room for seal_next bytes. False: it isn't what was sent, and nothing of it must
 * be used. */
bool seal_open(struct seal *s, unsigned char *to);

#endif
