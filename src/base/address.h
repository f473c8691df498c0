/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses as names of nodes. */
#ifndef HALE_BASE_ADDRESS_H
#define HALE_BASE_ADDRESS_H

#include <stddef.h>

enum { ADDRESS_MAX = 64 };

/* An address of IPv6 written out, without "::", which divides the fields of events' payloads:
 * "fd00:0:0:0:0:0:0:1" for the len bytes "fd00::1", "fe80:0:0:0:0:0:0:1%eth0" for "FE80::1%eth0".
 * Anything else, and what would not fit into ADDRESS_MAX bytes, is copied as it is, cut there.
 * Returns out. */
char *address_whole(char out[ADDRESS_MAX], const char *text, size_t len);

#endif
