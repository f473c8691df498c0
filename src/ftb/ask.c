/* SPDX-License-Identifier: BSD-3-Clause */
/* Asking a broker about itself. */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "base/base.h"
#include "base/packets.h"
#include "ftb/broker.h"
#include "ftb/ftb.h"

static ssize_t ask(int fd, uint8_t *buffer)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	ftb_packet_start(buffer, PACKET_STATUS, 0);
	if (!ftb_say(fd, buffer, PACKET_HEADER) || poll(&p, 1, 2000) != 1)
		return -1;
	return ftb_hear(fd, buffer, PACKET_MAX);
}

hale_status_t broker_ask(const char *socket_path, char **json, struct error *err)
{
	char usual[108] = "";
	const char *path = socket_path ? socket_path : usual;
	uint8_t *buffer = malloc(PACKET_MAX);
	struct sockaddr_un a;
	struct packet p;
	hale_status_t st = HALE_OK;
	socklen_t len;
	ssize_t n = -1;
	int fd;

	*json = NULL;
	if (!socket_path && !ftb_socket_path(usual))
		usual[0] = 0;
	len = ftb_address(path, &a);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0 || !buffer || len == 0 || connect(fd, (struct sockaddr *)&a, len) != 0)
		st = error_sys(
		    err, HALE_ERR_NODE,
		    "no event broker answers at '%s'; start one with `hale backplane`, or "
		    "say where it is with HALE_FTB",
		    path);
	else
		n = ask(fd, buffer);
	if (n > 0 && ftb_packet_parse(buffer, (size_t)n, &p) && p.kind == PACKET_STATUS)
		*json = strndup((const char *)p.body, p.len);
	else if (n > 0 && ftb_packet_parse(buffer, (size_t)n, &p) && p.kind == PACKET_REFUSED)
		st = error_set(err, HALE_ERR_NODE, "the event broker refuses: %.*s", (int)p.len,
			       (const char *)p.body);
	if (st == HALE_OK && !*json)
		st =
		    error_set(err, HALE_ERR_NODE, "the event broker at '%s' does not answer", path);
	if (fd >= 0)
		close(fd);
	free(buffer);
	return st;
}
