/* SPDX-License-Identifier: BSD-3-Clause */
/* Receiving from local sockets that keep packets apart (SOCK_SEQPACKET), when the other end may die
 * at any moment. If it has closed with something unread, Linux says so once (ECONNRESET), before it
 * gives what the other end had sent. Who takes that for the end loses the last words of a process
 * that has died, and descriptors with them. So here they come first, then the end (0). */
#ifndef HALE_BASE_PACKETS_H
#define HALE_BASE_PACKETS_H

#include <errno.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>

static inline bool packet_again(ssize_t n)
{
	return n < 0 && (errno == EINTR || errno == ECONNRESET);
}

/* As recv, but for the above and for signals. */
static inline ssize_t packet_recv(int fd, void *to, size_t len, int flags)
{
	ssize_t n;

	do
		n = recv(fd, to, len, flags);
	while (packet_again(n));
	return n;
}

static inline ssize_t packet_recvmsg(int fd, struct msghdr *m, int flags)
{
	ssize_t n;

	do
		n = recvmsg(fd, m, flags);
	while (packet_again(n));
	return n;
}

#endif
