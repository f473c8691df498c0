/* SPDX-License-Identifier: BSD-3-Clause */
#include "rio/wire.h"

#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#define XXH_INLINE_ALL
#include <xxhash.h>
#include "base/base.h"
#include "wire/seal/sealed.h"

#ifndef TCP_RTO_MAX_MS /* Linux 6.15 */
#define TCP_RTO_MAX_MS 44
#endif

_Static_assert((int)RIO_KEY == (int)SEGMENT_SECRET, "the whole key");

int wire_say_bytes(int fd, const void *bytes, size_t len)
{
	const char *at = bytes;

	while (len > 0) {
		ssize_t n = send(fd, at, len, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -1;
		at += n;
		len -= (size_t)n;
	}
	return 0;
}

int wire_hear_bytes(int fd, void *bytes, size_t len)
{
	char *at = bytes;

	while (len > 0) {
		ssize_t n = recv(fd, at, len, 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n == 0)
			errno = ECONNRESET;
		if (n < 0 && errno == EAGAIN)
			errno = ETIMEDOUT;
		if (n <= 0)
			return -1;
		at += n;
		len -= (size_t)n;
	}
	return 0;
}

static uint32_t check_of(struct wire_head h, const void *payload)
{
	h.check = 0;
	return (uint32_t)(XXH3_64bits(&h, sizeof(h)) + XXH3_64bits(payload, h.bytes));
}

int wire_say(int fd, struct wire_head *h, const void *payload, size_t bytes)
{
	char message[sizeof(*h) + RIO_PAYLOAD_MAX];

	if (bytes > RIO_PAYLOAD_MAX) {
		errno = EMSGSIZE;
		return -1;
	}
	h->magic = WIRE_HEAD_MAGIC;
	h->bytes = (uint32_t)bytes;
	h->check = check_of(*h, bytes ? payload : "");
	memcpy(message, h, sizeof(*h));
	if (bytes)
		memcpy(message + sizeof(*h), payload, bytes);
	return wire_say_bytes(fd, message, sizeof(*h) + bytes);
}

int wire_hear(int fd, struct wire_head *h, void *payload, size_t max)
{
	if (wire_hear_bytes(fd, h, sizeof(*h)) != 0)
		return -1;
	if (h->magic != WIRE_HEAD_MAGIC || h->bytes > max) {
		errno = EPROTO;
		return -1;
	}
	if (wire_hear_bytes(fd, payload, h->bytes) != 0)
		return -1;
	((char *)payload)[h->bytes] = 0;
	if (check_of(*h, payload) != h->check) {
		errno = EPROTO;
		return -1;
	}
	return 0;
}

uint64_t wire_sum(const void *block, size_t len, uint64_t offset)
{
	return XXH3_64bits_withSeed(block, len, offset);
}

int wire_timeout_ms(void)
{
	const char *text = getenv("HALE_RIO_TIMEOUT");
	double seconds = 10;

	if (text && (!units_parse_seconds(text, &seconds) || seconds < 0.1 || seconds > 86400)) {
		log_warn("HALE_RIO_TIMEOUT is a time from 100ms to 1d, and not '%s': it is 10s",
			 text);
		seconds = 10;
	}
	return (int)(seconds * 1000);
}

static struct timeval time_limit(void)
{
	int ms = wire_timeout_ms();

	return (struct timeval){ms / 1000, ms % 1000 * 1000};
}

void wire_hang_up(int fd)
{
	struct timeval limit = time_limit();
	char dropped[4096];
	ssize_t n;

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	if (shutdown(fd, SHUT_WR) != 0)
		return;
	do
		n = recv(fd, dropped, sizeof(dropped), 0);
	while (n > 0 || (n < 0 && errno == EINTR));
}

/* A side that is there and does not read (a stopped program, a disk that stands still) is not lost:
 * its kernel answers. TCP_USER_TIMEOUT would count it as lost. So the kernel is to give up after
 * its 15 attempts, a tenth of the limit apart (Linux 6.15 and later). An older kernel would make
 * these attempts for a quarter of an hour, and there a side may stand still for ten times the
 * limit. */
static void limit_attempts(int fd, int ms)
{
	enum { ATTEMPT_MS_LEAST = 1000, PATIENCE = 10 };
	int apart = ms / 10 < ATTEMPT_MS_LEAST ? ATTEMPT_MS_LEAST : ms / 10;
	int patient = ms < INT_MAX / PATIENCE ? ms * PATIENCE : INT_MAX;

	if (setsockopt(fd, IPPROTO_TCP, TCP_RTO_MAX_MS, &apart, sizeof(apart)) != 0)
		setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &patient, sizeof(patient));
}

void wire_prepare(int fd)
{
	int on = 1, ms = wire_timeout_ms(), step = ms < 4000 ? 1 : ms / 4000;
	int count = ms / 1000 / step > 2 ? ms / 1000 / step - 1 : 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &step, sizeof(step));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &step, sizeof(step));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count));
	limit_attempts(fd, ms);
}

int wire_prove(int fd, bool caller, char *why, size_t size)
{
	const struct sealed_purpose purpose = {.name = "DEVICE", .number = {1}};
	struct timeval limit = time_limit(), none = {0, 0};
	struct error err = {HALE_OK, ""};
	unsigned char key[RIO_KEY];
	hale_status_t status;

	if (wire_key(key, why, size) != 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	status = sealed_prove(fd, caller, key, &purpose, &err);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &none, sizeof(none));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &none, sizeof(none));
	explicit_bzero(key, sizeof(key));
	if (status == HALE_OK)
		return 0;
	snprintf(
	    why, size, "%.150s",
	    status == HALE_ERR_PROTOCOL
		? "it has another key than this side; HALE_DEVICE_KEY names a file with the same"
		: err.text);
	errno = status == HALE_ERR_PROTOCOL ? EPERM : ECONNRESET;
	return -1;
}
