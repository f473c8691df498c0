/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include "base/base.h"
#include "base/packets.h"
#include "agent/supervisor/supervisor_private.h"

union ward_control {
	char bytes[CMSG_SPACE(WARD_FDS * sizeof(int))];
	struct cmsghdr align;
};

bool ward_say(int control, const struct ward_packet *p, const int *fd, int fds, int flags)
{
	union ward_control c = {0};
	struct iovec iov = {.iov_base = (void *)(uintptr_t)p, .iov_len = sizeof(*p)};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
	struct cmsghdr *h;
	ssize_t n;

	if (fds > 0) {
		m.msg_control = c.bytes;
		m.msg_controllen = CMSG_SPACE((size_t)fds * sizeof(int));
		h = CMSG_FIRSTHDR(&m);
		h->cmsg_level = SOL_SOCKET;
		h->cmsg_type = SCM_RIGHTS;
		h->cmsg_len = CMSG_LEN((size_t)fds * sizeof(int));
		memcpy(CMSG_DATA(h), fd, (size_t)fds * sizeof(int));
	}
	do
		n = control >= 0 ? sendmsg(control, &m, flags | MSG_NOSIGNAL) : -1;
	while (n < 0 && control >= 0 && errno == EINTR);
	return n == (ssize_t)sizeof(*p);
}

int ward_hear(int control, struct ward_packet *p, int fd[WARD_FDS], int *fds, int flags)
{
	union ward_control c;
	struct iovec iov = {.iov_base = p, .iov_len = sizeof(*p)};
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = c.bytes,
			   .msg_controllen = sizeof(c.bytes)};
	struct cmsghdr *h;
	ssize_t n;

	*fds = 0;
	n = packet_recvmsg(control, &m, flags | MSG_CMSG_CLOEXEC);
	if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
		return 0;
	if (n != (ssize_t)sizeof(*p))
		return -1;
	h = CMSG_FIRSTHDR(&m);
	if (h && h->cmsg_level == SOL_SOCKET && h->cmsg_type == SCM_RIGHTS) {
		*fds = (int)((h->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		memcpy(fd, CMSG_DATA(h), (size_t)*fds * sizeof(int));
	}
	return 1;
}
