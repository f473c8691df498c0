/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include "base/base.h"
#include "base/cpus.h"
#include "ocl/remote/net.h"

enum { STREAM_BUFFER = 128 << 10 };

bool net_stream_open(struct net_stream *s, int fd)
{
	*s = (struct net_stream){.fd = fd, .buffer = malloc(STREAM_BUFFER)};
	return s->buffer != NULL;
}

/* As much as there is, at least one byte. */
static ssize_t receive(int fd, void *to, size_t size, uint32_t us)
{
	struct patience p = {.us = us};
	ssize_t n;

	do
		n = recv(fd, to, size, us > 0 ? MSG_DONTWAIT : 0);
	while (n < 0 && (errno == EAGAIN || errno == EINTR) && us > 0 && patience_left(&p));
	while (n < 0 && (errno == EAGAIN || errno == EINTR))
		n = recv(fd, to, size, 0);
	if (n == 0)
		errno = ECONNRESET;
	return n;
}

bool net_stream_take(struct net_stream *s, void *to, size_t size, uint32_t us)
{
	char *at = to;

	while (size > 0) {
		size_t here = s->to - s->from;
		ssize_t n;

		if (here > 0) {
			here = here < size ? here : size;
			memcpy(at, s->buffer + s->from, here);
			s->from += here;
			at += here;
			size -= here;
			continue;
		}
		if (size >= STREAM_BUFFER) { /* what is large goes where it belongs at once */
			n = receive(s->fd, at, size, us);
			if (n <= 0)
				return false;
			at += n;
			size -= (size_t)n;
			continue;
		}
		n = receive(s->fd, s->buffer, STREAM_BUFFER, us);
		if (n <= 0)
			return false;
		s->from = 0;
		s->to = (size_t)n;
	}
	return true;
}

bool net_stream_skip(struct net_stream *s, uint64_t size)
{
	char dropped[4096];

	while (size > 0) {
		size_t n = size < sizeof(dropped) ? (size_t)size : sizeof(dropped);

		if (!net_stream_take(s, dropped, n, 0))
			return false;
		size -= n;
	}
	return true;
}

bool net_send(int fd, const void *head, size_t head_size, const void *data, size_t size)
{
	struct iovec part[2] = {{(void *)head, head_size}, {(void *)data, size}};
	struct msghdr m = {.msg_iov = part, .msg_iovlen = 2};

	while (part[0].iov_len + part[1].iov_len > 0) {
		ssize_t n = sendmsg(fd, &m, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		for (int i = 0; i < 2; i++) {
			size_t gone = (size_t)n < part[i].iov_len ? (size_t)n : part[i].iov_len;

			part[i].iov_base = (char *)part[i].iov_base + gone;
			part[i].iov_len -= gone;
			n -= (ssize_t)gone;
		}
	}
	return true;
}

void net_may_stand_still(int fd)
{
	int none = 0;

	setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &none, sizeof(none));
}

uint32_t net_patience(void)
{
	const char *ranks = getenv("OMPI_COMM_WORLD_LOCAL_SIZE");
	unsigned beside = ranks ? (unsigned)atoi(ranks) : 1;

	return cpus_allowed() >= 4 * (beside ? beside : 1) ? 2000 : 0;
}
