/* SPDX-License-Identifier: BSD-3-Clause */
/* The daemon of a node: listens, proves keys, and gives each connection a thread and the service
 * that its first message asks for. */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/base.h"
#include "base/exit_status.h"
#include "rio/rio.h"
#include "rio/serve.h"

enum { CONNECTIONS_MAX = 512 };

static struct {
	const struct rio_service *services;
	pthread_mutex_t lock;
	unsigned connections;
} daemon_now = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int connection_count(int by)
{
	pthread_mutex_lock(&daemon_now.lock);
	int now = (int)(daemon_now.connections += (unsigned)by);
	pthread_mutex_unlock(&daemon_now.lock);
	return now;
}

static bool connection_serve(int fd)
{
	static const struct rio_service our_files = {RIO_OPEN, RIO_JOIN, serve_files};
	char payload[RIO_PAYLOAD_MAX + 1], why[200] = "";
	const struct rio_service *s = &our_files;
	struct wire_head h;

	wire_prepare(fd);
	if (wire_prove(fd, false, why, sizeof(why)) != 0) {
		log_info("device: a caller was turned away: %s", why);
		return false;
	}
	if (wire_hear(fd, &h, payload, RIO_PAYLOAD_MAX) != 0)
		return false;
	if (h.op != RIO_OPEN && h.op != RIO_JOIN)
		for (s = daemon_now.services; s && s->first; s++)
			if (h.op >= s->first && h.op <= s->last)
				break;
	if (s && s->serve)
		return s->serve(fd, &h, payload);
	serve_refuse(fd, EOPNOTSUPP, "this daemon knows no operation %u", h.op);
	return false;
}

static void *connection_run(void *arg)
{
	int fd = (int)(intptr_t)arg;

	if (!connection_serve(fd))
		close(fd);
	connection_count(-1);
	return NULL;
}

static void connection_begin(int fd)
{
	pthread_attr_t attr;
	pthread_t thread;
	int error = EAGAIN;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, 256 << 10);
	if (connection_count(1) <= CONNECTIONS_MAX)
		error = pthread_create(&thread, &attr, connection_run, (void *)(intptr_t)fd);
	pthread_attr_destroy(&attr);
	if (error) {
		log_warn("device: a caller was turned away: %u are being served",
			 daemon_now.connections - 1);
		connection_count(-1);
		close(fd);
	}
}

/* ---- listening ---- */

/* Parts "ADDRESS:PORT", "[ADDRESS]:PORT" in text. */
static bool parse_listen(char *text, const char **host, const char **port)
{
	char *colon = strrchr(text, ':'), *end = strrchr(text, ']');
	long number;

	if (!colon || (text[0] == '[') != !!end || (end && end + 1 != colon))
		return false;
	*colon = 0;
	*port = colon + 1;
	*host = text;
	if (end) {
		*end = 0;
		*host = text + 1;
	}
	return units_parse_int(*port, 0, 65535, &number) && (*host)[0];
}

static int listen_at(const char *address)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE}, *a = NULL;
	const char *host, *port;
	char text[RIO_NODE_MAX];
	int fd, on = 1;

	snprintf(text, sizeof(text), "%s", address);
	if (!parse_listen(text, &host, &port) || getaddrinfo(host, port, &hints, &a) != 0) {
		log_warn("--listen takes ADDRESS:PORT or [ADDRESS]:PORT of this node, and not '%s'",
			 address);
		errno = EINVAL;
		return -1;
	}
	fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0)
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (fd < 0 || bind(fd, a->ai_addr, a->ai_addrlen) != 0 || listen(fd, 128) != 0) {
		log_warn("can't listen at %s: %s", address, strerror(errno));
		if (fd >= 0)
			close(fd);
		fd = -1;
		errno = EADDRNOTAVAIL;
	}
	freeaddrinfo(a);
	return fd;
}

static void say_where(int fd, void (*ready)(const char *address))
{
	char host[80] = "?", port[16] = "?", text[120];
	struct sockaddr_storage at;
	socklen_t len = sizeof(at);

	getsockname(fd, (struct sockaddr *)&at, &len);
	getnameinfo((struct sockaddr *)&at, len, host, sizeof(host), port, sizeof(port),
		    NI_NUMERICHOST | NI_NUMERICSERV);
	snprintf(text, sizeof(text), strchr(host, ':') ? "[%s]:%s" : "%s:%s", host, port);
	ready(text);
}

static void accept_until(int listener, int end)
{
	struct pollfd p[2] = {{.fd = listener, .events = POLLIN}, {.fd = end, .events = POLLIN}};

	for (;;) {
		if (poll(p, 2, -1) < 0 && errno != EINTR)
			return;
		if (p[1].revents)
			return;
		if (!(p[0].revents & POLLIN))
			continue;
		int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

		if (fd >= 0)
			connection_begin(fd);
		else if (errno == EMFILE || errno == ENFILE)
			poll(NULL, 0, 50); /* until somebody has closed one */
	}
}

int rio_serve(const struct rio_daemon *d)
{
	unsigned char key[RIO_KEY];
	char why[200];
	int root = open(d->root, O_PATH | O_DIRECTORY | O_CLOEXEC), listener;

	if (root < 0) {
		log_warn("--root '%s': %s", d->root, strerror(errno));
		return EXIT_USAGE;
	}
	if (wire_key(key, why, sizeof(why)) != 0) {
		log_warn("%s", why);
		return EXIT_USAGE;
	}
	listener = listen_at(d->listen);
	if (listener < 0)
		return EXIT_USAGE;
	serve_files_begin(root);
	daemon_now.services = d->services;
	say_where(listener, d->ready);
	accept_until(listener, d->end);
	close(listener);
	return 0;
}
