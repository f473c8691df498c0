/* SPDX-License-Identifier: BSD-3-Clause */
/* The seal on a manifest: BLAKE2b over its text with a key that only this user can read, so that
 * nobody else can write one, and what it says of its images (length, checksum) holds for them.
 *
 * The key is 32 bytes in hexadecimal digits in $HALE_CKPT_KEY, or hale/key in $XDG_STATE_HOME or
 * ~/.local/state; it is made when it is needed for the first time. Whoever has it can seal.
 * Not thread-safe: the key is read once. May call: base/. Called by: store/, head/. */
#ifndef HALE_STORE_SEAL_H
#define HALE_STORE_SEAL_H

#include <stddef.h>
#include "base/error.h"

/* The key is there, or could be made. HALE_ERR_STORE with what to do. */
hale_status_t store_seal_probe(struct error *err);

/* text, a JSON object, with its seal as the last member; malloc'ed. NULL: err. */
char *store_seal_put(const char *text, struct error *err);

/* HALE_ERR_IMAGE_MISMATCH: it was sealed with another key, or has been changed since, or has no
 * seal. */
hale_status_t store_seal_check(const char *text, size_t len, struct error *err);

#endif
