/* SPDX-License-Identifier: BSD-3-Clause */
/* How a new head reaches the agent of a node: by a socket on the node's own machine. From another
 * machine a launcher starts `hale agent --attach` there, which passes on what comes. */
#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "base/base.h"
#include "wire/session/peer.h"
#include "wire/attach/attach.h"

size_t attach_address(const char *tag, uint32_t node, struct sockaddr_un *address)
{
	int n;

	memset(address, 0, sizeof(*address));
	address->sun_family = AF_UNIX;
	n = snprintf(address->sun_path + 1, sizeof(address->sun_path) - 1, "hale-node/%u/%.32s/%u",
		     (unsigned)geteuid(), tag, node);
	return offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n;
}

int attach_connect(const char *tag, uint32_t node)
{
	struct sockaddr_un sa;
	size_t len = attach_address(tag, node, &sa);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), why = 0;

	if (fd < 0)
		return -1;
	if (connect(fd, (struct sockaddr *)&sa, (socklen_t)len) != 0)
		why = errno;
	else if (!peer_is_own(fd, NULL)) /* any user can take that name */
		why = EPERM;
	if (why == 0)
		return fd;
	close(fd);
	errno = why;
	return -1;
}

/* False: one of the two is at its end. */
static bool pass(int from, int to)
{
	char buf[65536];
	ssize_t n = read(from, buf, sizeof(buf)), done = 0;

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return true;
	while (n > 0 && done < n) {
		ssize_t k = write(to, buf + done, (size_t)(n - done));

		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0)
			return false;
		done += k;
	}
	return n > 0;
}

/* What comes to stdin goes to fd, and what comes from there to stdout, until one is at its end. */
static int pass_on(int fd)
{
	struct pollfd p[2] = {{.fd = STDIN_FILENO, .events = POLLIN}, {.fd = fd, .events = POLLIN}};

	for (;;) {
		if (poll(p, 2, -1) < 0 && errno != EINTR)
			return 1;
		if (p[0].revents && !pass(STDIN_FILENO, fd))
			return 0;
		if (p[1].revents && !pass(fd, STDOUT_FILENO))
			return 0;
	}
}

int attach_pass_on(const char *tag, uint32_t node)
{
	int fd = attach_connect(tag, node);

	if (fd >= 0)
		return pass_on(fd);
	log_warn("no agent of that job is left on this machine (%m)");
	return 1;
}

int attach_pass_to_service(void)
{
	const char *folder = getenv("XDG_RUNTIME_DIR");
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int n, fd;

	if (!folder || !*folder)
		n = snprintf(sa.sun_path, sizeof(sa.sun_path), "/run/user/%u/hale/agent",
			     (unsigned)geteuid());
	else
		n = snprintf(sa.sun_path, sizeof(sa.sun_path), "%s/hale/agent", folder);
	if (n >= (int)sizeof(sa.sun_path)) {
		log_warn("the name of $XDG_RUNTIME_DIR is too long for a socket in it");
		return 1;
	}
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&sa, sizeof(sa)) != 0)
		log_warn("no service gives out agents at %s (%m); `systemctl --user enable --now "
			 "hale-agent.socket` there, or leave --service away",
			 sa.sun_path);
	else if (!peer_is_own(fd, NULL))
		log_warn("%s is another user's", sa.sun_path);
	else
		return pass_on(fd);
	return 1;
}
