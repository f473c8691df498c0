/* SPDX-License-Identifier: BSD-3-Clause */
/* The way to the broker of this node. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "base/base.h"
#include "base/packets.h"
#include "ftb/ftb.h"

bool ftb_socket_path(char path[108])
{
	const char *given = getenv("HALE_FTB"), *run = getenv("XDG_RUNTIME_DIR");
	int n;

	if (given && *given)
		n = snprintf(path, 108, "%s", given);
	else if (run && *run)
		n = snprintf(path, 108, "%s/hale/ftb", run);
	else
		n = snprintf(path, 108, "/tmp/hale-ftb-%u/ftb", (unsigned)geteuid());
	return n > 0 && n < 108;
}

socklen_t ftb_address(const char *path, struct sockaddr_un *a)
{
	size_t len = strlen(path);

	*a = (struct sockaddr_un){.sun_family = AF_UNIX};
	if (len == 0 || len >= sizeof(a->sun_path))
		return 0;
	memcpy(a->sun_path, path, len);
	if (path[0] != '@')
		return sizeof(*a);
	a->sun_path[0] = 0;
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
}

/* The default place may be in /tmp, where somebody else could have made a socket for us to find,
 * and a name that is no file may be anybody's. A file that was named to us is trusted. */
static bool trusted(int fd, const char *path, bool named)
{
	struct ucred who;
	socklen_t len = sizeof(who);

	return (named && path[0] != '@') ||
	       (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) == 0 &&
		(who.uid == geteuid() || who.uid == 0));
}

int ftb_connect(const char *path)
{
	const char *given = getenv("HALE_FTB");
	bool named = path || (given && *given);
	struct sockaddr_un a;
	int fd, room = 1 << 20;
	char usual[108];
	socklen_t len;

	if (!path && !ftb_socket_path(usual))
		return -1;
	len = ftb_address(path ? path : usual, &a);
	if (len == 0)
		return -1;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -1;
	if (connect(fd, (struct sockaddr *)&a, len) != 0 ||
	    !trusted(fd, path ? path : usual, named)) {
		int why = errno;

		close(fd);
		errno = why;
		return -1;
	}
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
	return fd;
}

/* A broker that refuses us may have closed before we spoke; its reason waits to be read all the
 * same. */
bool ftb_say(int fd, const uint8_t *packet, size_t len)
{
	return send(fd, packet, len, MSG_NOSIGNAL) == (ssize_t)len || errno == EPIPE;
}

/* Where the broker closed with words of ours unread, the first call fails, and its own last word
 * comes behind. */
ssize_t ftb_hear(int fd, uint8_t *packet, size_t room)
{
	ssize_t n = packet_recv(fd, packet, room, MSG_DONTWAIT);

	return n < 0 && errno == ECONNRESET ? packet_recv(fd, packet, room, MSG_DONTWAIT) : n;
}

bool ftb_greet(int fd, uint64_t publisher)
{
	uint8_t packet[PACKET_HEADER + 8];

	ftb_packet_start(packet, PACKET_HELLO, 0);
	put_u64(packet + PACKET_HEADER, publisher);
	return ftb_say(fd, packet, sizeof(packet));
}

void ftb_welcome_host(const struct packet *p, char host[EVENT_TEXT_MAX + 1])
{
	size_t n = p->len < EVENT_TEXT_MAX ? p->len : EVENT_TEXT_MAX;

	if (!ftb_text_ok((const char *)p->body, n))
		n = 0;
	memcpy(host, p->body, n);
	host[n] = 0;
}

enum out_result ftb_send(int fd, const uint8_t *bytes, size_t len)
{
	if (send(fd, bytes, len, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)len)
		return OUT_SENT;
	return errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS ? OUT_BLOCKED
									   : OUT_BROKEN;
}
