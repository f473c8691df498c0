/* SPDX-License-Identifier: BSD-3-Clause */
/* Sending and receiving on the connections between a relay and a server. */
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

/* Whatever has come, at least one byte. 0 or less, with errno: the connection has ended, or its
 * time limit (SO_RCVTIMEO) has passed. */
static ssize_t receive(int fd, void *to, size_t size, uint32_t us)
{
	struct patience p = {.us = us};
	bool look = us > 0; /* without sleeping */
	ssize_t n;

	while ((n = recv(fd, to, size, look ? MSG_DONTWAIT : 0)) < 0 &&
	       (errno == EINTR || (look && errno == EAGAIN)))
		look = look && patience_left(&p);
	if (n == 0)
		errno = ECONNRESET;
	if (n < 0 && errno == EAGAIN)
		errno = ETIMEDOUT;
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
		if (size >= STREAM_BUFFER) { /* large data do not pass through the buffer */
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

/* Where each rank of the node has cores to spare, one is spent for each side, as drivers of GPUs
 * do: to be woken takes 10 to 50 us. */
uint32_t net_patience(void)
{
	const char *ranks = getenv("OMPI_COMM_WORLD_LOCAL_SIZE");
	unsigned beside = ranks ? (unsigned)atoi(ranks) : 1;

	return cpus_allowed() >= 4 * (beside ? beside : 1) ? 2000 : 0;
}
