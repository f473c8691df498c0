/* SPDX-License-Identifier: BSD-3-Clause */
/* Who is at the other end of a local socket, as the kernel knows it. */
#ifndef HALE_WIRE_SESSION_PEER_H
#define HALE_WIRE_SESSION_PEER_H

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>

/* A process of this user? Its id goes to *pid, which may be NULL. */
static inline bool peer_is_own(int fd, pid_t *pid)
{
	struct ucred who = {0};
	socklen_t len = sizeof(who);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) != 0 || who.uid != geteuid())
		return false;
	if (pid)
		*pid = who.pid;
	return true;
}

/* May it command the job: a process of this user, or of root? */
static inline bool peer_may_command(int fd)
{
	struct ucred who = {0};
	socklen_t len = sizeof(who);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) == 0 &&
	       (who.uid == geteuid() || who.uid == 0);
}

#endif
