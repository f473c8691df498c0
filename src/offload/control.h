/* SPDX-License-Identifier: BSD-3-Clause */
/* What `hale swap` says to a program that offloads: one line, over a socket in the abstract name
 * space that only processes of the same user are heard on; the answer is lines until the end.
 *
 *   "out FOLDER"  "in DEVICE"  "migrate DEVICE"  "list"
 *
 * Each line of the answer begins with "ok " or "error ". */
#ifndef HALE_OFFLOAD_CONTROL_H
#define HALE_OFFLOAD_CONTROL_H

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

/* The address of the program's socket; returns its length. */
static inline socklen_t control_address(struct sockaddr_un *a, int pid)
{
	memset(a, 0, sizeof(*a));
	a->sun_family = AF_UNIX;
	int n = snprintf(a->sun_path + 1, sizeof(a->sun_path) - 1, "hale-offload-%d", pid);

	return (socklen_t)(sizeof(a->sun_family) + 1 + (size_t)n);
}

#endif
