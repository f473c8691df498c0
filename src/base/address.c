/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/address.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

char *address_whole(char out[ADDRESS_MAX], const char *text, size_t len)
{
	const char *scope = memchr(text, '%', len);
	size_t bare = scope ? (size_t)(scope - text) : len;
	unsigned char a[16];
	char copy[INET6_ADDRSTRLEN];
	int n = -1;

	if (bare < sizeof(copy)) {
		memcpy(copy, text, bare);
		copy[bare] = '\0';
		if (inet_pton(AF_INET6, copy, a) == 1)
			n = snprintf(out, ADDRESS_MAX, "%x:%x:%x:%x:%x:%x:%x:%x%.*s",
				     a[0] << 8 | a[1], a[2] << 8 | a[3], a[4] << 8 | a[5],
				     a[6] << 8 | a[7], a[8] << 8 | a[9], a[10] << 8 | a[11],
				     a[12] << 8 | a[13], a[14] << 8 | a[15], (int)(len - bare),
				     text + bare);
	}
	if (n < 0 || n >= ADDRESS_MAX)
		snprintf(out, ADDRESS_MAX, "%.*s", (int)len, text);
	return out;
}
