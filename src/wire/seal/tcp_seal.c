// SPDX-License-Identifier: BSD-3-Clause
#include "wire/seal/tcp_seal.h"

#include <sodium/core.h>
#include <sodium/crypto_aead_aes256gcm.h>
#include <sodium/crypto_aead_chacha20poly1305.h>
#include <sodium/crypto_generichash.h>
#include <sodium/crypto_shorthash.h>
#include <sodium/utils.h>
#include <string.h>
#include "base/base.h"
#include "base/heap.h"

enum {
	LENGTH = 4,
	HEAD = LENGTH + 4,
	TAG = 16,
	NONCE = 12,
	WHOLE = HEAD + SEAL_RECORD + TAG,
	READ_AHEAD = 2 * WHOLE,
};

/* Of one key: far below what either cipher bears, and a connection that has sent 128 TiB may well
 * be made anew. */
#define RECORDS_MAX (1ull << 32)

_Static_assert(TAG == crypto_aead_aes256gcm_ABYTES, "tags are as long");
_Static_assert(TAG == crypto_aead_chacha20poly1305_ietf_ABYTES, "tags are as long");
_Static_assert(NONCE == crypto_aead_aes256gcm_NPUBBYTES, "nonces are as long");
_Static_assert(NONCE == crypto_aead_chacha20poly1305_ietf_NPUBBYTES, "nonces are as long");

struct direction {
	crypto_aead_aes256gcm_state aes;
	unsigned char key[SEAL_KEY];
	unsigned char check_key[crypto_shorthash_KEYBYTES];
	uint64_t number; /* of the next record */
};

struct seal {
	struct direction out, in;
	uint32_t cipher;
	size_t sent, ready;  /* of outgoing: [sent, ready) is to be sent */
	size_t opened, here; /* of incoming: [opened, here) is to be opened */
	unsigned char gathered[SEAL_RECORD];
	unsigned char outgoing[WHOLE];
	unsigned char incoming[READ_AHEAD];
};

static bool has_aes;

bool seal_init(void)
{
	if (sodium_init() < 0)
		return false;
	has_aes = crypto_aead_aes256gcm_is_available();
	return true;
}

uint32_t seal_ciphers(void)
{
	return SEAL_CHACHA20 | (has_aes ? SEAL_AES256 : 0);
}

static void direction_init(struct direction *d, const unsigned char *key, uint32_t cipher)
{
	memcpy(d->key, key, SEAL_KEY);
	d->number = 0;
	crypto_generichash(d->check_key, sizeof(d->check_key), (const unsigned char *)"length", 6,
			   key, SEAL_KEY);
	if (cipher == SEAL_AES256)
		crypto_aead_aes256gcm_beforenm(&d->aes, key);
}

struct seal *seal_create(const struct seal_keys *keys)
{
	struct seal *s = heap_alloc(sizeof(*s));
	if (!s)
		return NULL;
	s->cipher = keys->cipher;
	s->sent = s->ready = s->opened = s->here = 0;
	direction_init(&s->out, keys->out, keys->cipher);
	direction_init(&s->in, keys->in, keys->cipher);
	return s;
}

void seal_destroy(struct seal *s)
{
	if (!s)
		return;
	sodium_memzero(s, sizeof(*s));
	heap_free(s);
}

static void nonce_make(unsigned char nonce[NONCE], uint64_t number)
{
	memset(nonce, 0, NONCE);
	memcpy(nonce, &number, sizeof(number));
}

/* The first bytes of the next record of a direction. */
static void head_make(unsigned char head[HEAD], const struct direction *d, uint32_t length)
{
	unsigned char of[sizeof(d->number) + LENGTH], check[crypto_shorthash_BYTES];
	memcpy(of, &d->number, sizeof(d->number));
	memcpy(of + sizeof(d->number), &length, LENGTH);
	crypto_shorthash(check, of, sizeof(of), d->check_key);
	memcpy(head, &length, LENGTH);
	memcpy(head + LENGTH, check, HEAD - LENGTH);
}

/* ---- out ---- */

/* Up to SEAL_RECORD bytes as one run: where they are, or in gathered. */
static const unsigned char *gather(struct seal *s, const struct iovec *iov, unsigned n, size_t skip,
				   size_t *bytes)
{
	*bytes = 0;
	for (unsigned i = 0; i < n && *bytes < SEAL_RECORD; i++) {
		if (skip >= iov[i].iov_len) {
			skip -= iov[i].iov_len;
			continue;
		}
		const unsigned char *from = (const unsigned char *)iov[i].iov_base + skip;
		size_t k = iov[i].iov_len - skip;
		skip = 0;
		if (*bytes == 0 && (k >= SEAL_RECORD || i + 1 == n)) {
			*bytes = k < SEAL_RECORD ? k : SEAL_RECORD;
			return from;
		}
		if (k > SEAL_RECORD - *bytes)
			k = SEAL_RECORD - *bytes;
		memcpy(s->gathered + *bytes, from, k);
		*bytes += k;
	}
	return s->gathered;
}

size_t seal_put(struct seal *s, const struct iovec *iov, unsigned n, size_t skip)
{
	size_t bytes;
	const unsigned char *from = gather(s, iov, n, skip, &bytes);
	unsigned char nonce[NONCE], *to = s->outgoing;
	uint32_t length = (uint32_t)(bytes + TAG);
	if (s->out.number == RECORDS_MAX)
		return 0;
	head_make(to, &s->out, length);
	nonce_make(nonce, s->out.number++);
	if (s->cipher == SEAL_AES256)
		crypto_aead_aes256gcm_encrypt_afternm(to + HEAD, NULL, from, bytes, to, HEAD, NULL,
						      nonce, &s->out.aes);
	else
		crypto_aead_chacha20poly1305_ietf_encrypt(to + HEAD, NULL, from, bytes, to, HEAD,
							  NULL, nonce, s->out.key);
	s->sent = 0;
	s->ready = HEAD + length;
	return bytes;
}

size_t seal_sendable(const struct seal *s, const unsigned char **at)
{
	*at = s->outgoing + s->sent;
	return s->ready - s->sent;
}

void seal_sent(struct seal *s, size_t bytes)
{
	s->sent += bytes;
}

/* ---- in ---- */

size_t seal_room(struct seal *s, unsigned char **at)
{
	if (s->opened == s->here) {
		s->opened = s->here = 0;
	} else if (READ_AHEAD - s->opened < WHOLE) {
		memmove(s->incoming, s->incoming + s->opened, s->here - s->opened);
		s->here -= s->opened;
		s->opened = 0;
	}
	*at = s->incoming + s->here;
	return READ_AHEAD - s->here;
}

void seal_came(struct seal *s, size_t bytes)
{
	s->here += bytes;
}

static uint32_t length_of(const struct seal *s)
{
	uint32_t length;
	memcpy(&length, s->incoming + s->opened, LENGTH);
	return length;
}

long seal_next(const struct seal *s)
{
	size_t there = s->here - s->opened;
	if (there < HEAD)
		return 0;
	uint32_t length = length_of(s);
	unsigned char head[HEAD];
	head_make(head, &s->in, length);
	if (length <= TAG || length > SEAL_RECORD + TAG ||
	    sodium_memcmp(head, s->incoming + s->opened, HEAD) != 0)
		return -1;
	return there < HEAD + length ? 0 : (long)length - TAG;
}

bool seal_open(struct seal *s, unsigned char *to)
{
	const unsigned char *from = s->incoming + s->opened;
	uint32_t length = length_of(s);
	unsigned char nonce[NONCE];
	int wrong;
	nonce_make(nonce, s->in.number++);
	if (s->cipher == SEAL_AES256)
		wrong = crypto_aead_aes256gcm_decrypt_afternm(to, NULL, NULL, from + HEAD, length,
							      from, HEAD, nonce, &s->in.aes);
	else
		wrong = crypto_aead_chacha20poly1305_ietf_decrypt(
		    to, NULL, NULL, from + HEAD, length, from, HEAD, nonce, s->in.key);
	s->opened += HEAD + length;
	return !wrong;
}
