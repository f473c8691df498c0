/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/reach.h"

#include <errno.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

bool reach_same_network(const struct reach_place *a, const struct reach_place *b, unsigned bits)
{
	unsigned bytes = bits / 8, rest = bits % 8;

	return memcmp(a->ip, b->ip, bytes) == 0 &&
	       (!rest || (a->ip[bytes] ^ b->ip[bytes]) >> (8 - rest) == 0);
}

/* ---- sockets ---- */

static socklen_t address(const struct reach_place *place, uint16_t port, union reach_sockaddr *to)
{
	if (reach_is_ip4(place)) {
		to->in = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = port};
		memcpy(&to->in.sin_addr, reach_ip4(place), sizeof(to->in.sin_addr));
		return sizeof(to->in);
	}
	to->in6 = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = port};
	memcpy(&to->in6.sin6_addr, place->ip, sizeof(to->in6.sin6_addr));
	return sizeof(to->in6);
}

int reach_socket(const struct reach_place *place, union reach_sockaddr *to, socklen_t *bytes)
{
	const int type = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;
	int one = 1, fd;

	*bytes = address(place, place->port, to);
	fd = socket(to->any.sa_family, type, 0);
	if (fd >= 0 && to->any.sa_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one));
	return fd;
}

/* The descriptor; -1, with errno. */
static int listen_at(const struct reach_place *place, unsigned port, bool shared,
		     void (*prepare)(int fd))
{
	union reach_sockaddr at;
	socklen_t bytes;
	int one = 1, code, fd = reach_socket(place, &at, &bytes);

	if (fd < 0)
		return -1;
	if (prepare)
		prepare(fd);
	/* those of connections that have just ended are free, too */
	if (shared)
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	address(place, htons((uint16_t)port), &at);
	if (bind(fd, &at.any, bytes) == 0 && listen(fd, SOMAXCONN) == 0)
		return fd;
	code = errno;
	close(fd);
	errno = code;
	return -1;
}

/* From any of them on: processes of one host that begin at once mostly don't meet. */
static int listen_in(const struct reach_place *place, unsigned first, unsigned last,
		     void (*prepare)(int fd))
{
	unsigned count = last - first + 1, from = 0;
	int fd = -1;

	if (getrandom(&from, sizeof(from), GRND_NONBLOCK) != (ssize_t)sizeof(from))
		from = (unsigned)getpid();
	from %= count;
	for (unsigned i = 0; fd < 0 && i < count; i++) {
		fd = listen_at(place, first + (from + i) % count, true, prepare);
		if (fd < 0 && errno != EADDRINUSE)
			break;
	}
	return fd;
}

int reach_listen(struct reach_place *place, const struct reach_wish *w, void (*prepare)(int fd))
{
	union reach_sockaddr at = {0};
	socklen_t bytes = sizeof(at);
	unsigned first, last;
	int fd = reach_ports(w, &first, &last) ? listen_in(place, first, last, prepare)
					       : listen_at(place, 0, false, prepare);

	if (fd >= 0 && getsockname(fd, &at.any, &bytes) != 0) {
		close(fd);
		return -1;
	}
	if (fd >= 0)
		place->port = at.any.sa_family == AF_INET6 ? at.in6.sin6_port : at.in.sin_port;
	return fd;
}

/* ---- which ---- */

static int distance(const struct reach_place *p, const struct reach_place *own, unsigned nown)
{
	int d = 1;

	for (unsigned i = 0; i < nown; i++) {
		if (reach_same_network(&own[i], p, 128))
			return 2;
		if (reach_same_network(&own[i], p, own[i].prefix))
			d = 0;
	}
	return d;
}

struct reach_place reach_choose(const struct reach_place *of, unsigned n,
				const struct reach_place *own, unsigned nown, uint32_t attempt)
{
	uint32_t k = attempt % n;

	for (int d = 0; d <= 2; d++)
		for (unsigned i = 0; i < n; i++)
			if (distance(&of[i], own, nown) == d && k-- == 0)
				return of[i];
	return of[0];
}
