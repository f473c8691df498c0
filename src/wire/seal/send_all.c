/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/seal/send_all.h"

#include <errno.h>
#include <sys/socket.h>

hale_status_t whole_broken(ssize_t n, struct error *err)
{
	if (n < 0 && errno != EAGAIN)
		return error_sys(err, HALE_ERR_LINK, "the connection is broken");
	return error_set(err, HALE_ERR_LINK,
			 n == 0 ? "the other side has closed the connection"
				: "nothing came from the other side in time");
}

hale_status_t whole_say(int fd, const void *bytes, size_t len, struct error *err)
{
	const char *at = bytes;

	while (len > 0) {
		ssize_t n = send(fd, at, len, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return error_set(err, HALE_ERR_LINK,
					 "the other side took nothing in time");
		if (n <= 0)
			return whole_broken(n, err);
		at += n;
		len -= (size_t)n;
	}
	return HALE_OK;
}

hale_status_t whole_hear(int fd, void *bytes, size_t len, struct error *err)
{
	char *at = bytes;

	while (len > 0) {
		ssize_t n = recv(fd, at, len, 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return whole_broken(n, err);
		at += n;
		len -= (size_t)n;
	}
	return HALE_OK;
}
