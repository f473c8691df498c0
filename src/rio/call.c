/* SPDX-License-Identifier: BSD-3-Clause */
/* From the name of a node to a connection. */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/base.h"
#include "hale/rio.h"
#include "rio/rio.h"

static __thread char last_why[400];

const char *rio_why(void)
{
	return last_why;
}

int rio_fail(int error, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(last_why, sizeof(last_why), fmt, ap);
	va_end(ap);
	errno = error;
	return -1;
}

/* The entry of HALE_DEVICES that begins at *at, which goes behind it: "name=host:port". */
static bool next_entry(const char **at, char name[RIO_NODE_MAX], char place[RIO_NODE_MAX])
{
	while (**at == ',' || **at == ' ')
		++*at;
	size_t len = strcspn(*at, ", ");
	const char *equals = memchr(*at, '=', len);

	if (len == 0)
		return false;
	if (equals) {
		snprintf(name, RIO_NODE_MAX, "%.*s", (int)(equals - *at), *at);
		snprintf(place, RIO_NODE_MAX, "%.*s", (int)(*at + len - equals - 1), equals + 1);
	} else {
		snprintf(name, RIO_NODE_MAX, "%.*s", (int)len, *at);
		snprintf(place, RIO_NODE_MAX, "%s", name);
	}
	*at += len;
	return true;
}

const char *rio_node_name(unsigned i, char name[RIO_NODE_MAX])
{
	const char *at = getenv("HALE_DEVICES");
	char place[RIO_NODE_MAX];

	for (at = at ? at : ""; next_entry(&at, name, place); i--)
		if (i == 0)
			return name;
	return NULL;
}

/* "host:port", "[address]:port", "host": parted in place. */
static void split_place(char *place, const char **host, const char **port)
{
	static const char usual[] = "7420";
	char *colon = strrchr(place, ':'), *end = strrchr(place, ']');

	*host = place;
	*port = usual;
	if (place[0] == '[' && end) {
		*end = 0;
		*host = place + 1;
		if (end[1] == ':')
			*port = end + 2;
	} else if (colon && strchr(place, ':') == colon) {
		*colon = 0;
		*port = colon + 1;
	}
}

static void find_place(const char *node, char place[RIO_NODE_MAX])
{
	const char *at = getenv("HALE_DEVICES");
	char name[RIO_NODE_MAX];

	for (at = at ? at : ""; next_entry(&at, name, place);)
		if (strcmp(name, node) == 0)
			return;
	snprintf(place, RIO_NODE_MAX, "%s", node);
}

static int connect_within(const struct addrinfo *a, int ms)
{
	int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), error = 0;
	struct pollfd p = {.fd = fd, .events = POLLOUT};
	socklen_t len = sizeof(error);

	if (fd < 0)
		return -1;
	if (connect(fd, a->ai_addr, a->ai_addrlen) != 0 && errno != EINPROGRESS)
		error = errno;
	else if (poll(&p, 1, ms) <= 0)
		error = ETIMEDOUT;
	else
		getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len);
	if (error == 0) {
		fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
		return fd;
	}
	close(fd);
	errno = error;
	return -1;
}

int rio_call(const char *node)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
	char place[RIO_NODE_MAX], whole[RIO_NODE_MAX], why[200] = "";
	const char *host, *port;
	int fd = -1, error = EHOSTUNREACH;

	if (strlen(node) >= RIO_NODE_MAX)
		return rio_fail(ENAMETOOLONG, "the name of a node has at most %d bytes",
				RIO_NODE_MAX - 1);
	find_place(node, place);
	snprintf(whole, sizeof(whole), "%s", place);
	split_place(place, &host, &port);
	if (getaddrinfo(host, port, &hints, &found) != 0)
		return rio_fail(EHOSTUNREACH,
				"nothing is known of node '%.100s': it is neither in HALE_DEVICES "
				"(NAME=HOST:PORT,…) nor a host",
				node);
	for (const struct addrinfo *a = found; a && fd < 0; a = a->ai_next) {
		fd = connect_within(a, 5000);
		if (fd < 0)
			error = errno;
	}
	freeaddrinfo(found);
	if (fd < 0)
		return rio_fail(error,
				"node '%.80s' does not answer at %.100s: %s; `hale device serve` "
				"runs there?",
				node, whole, strerror(error));
	wire_prepare(fd);
	if (wire_prove(fd, true, why, sizeof(why)) != 0) {
		error = errno;
		close(fd);
		return rio_fail(error, "node '%.80s' at %.100s: %.180s", node, whole, why);
	}
	return fd;
}
