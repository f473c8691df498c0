/* SPDX-License-Identifier: BSD-3-Clause */
#include "rio/session.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "hale/rio.h"
#include "rio/rio.h"

/* The answer to what was said; a refusal becomes the caller's error. */
static int hear_answer(int fd, enum rio_op expected, struct wire_head *h,
		       char payload[RIO_PAYLOAD_MAX + 1])
{
	if (wire_hear(fd, h, payload, RIO_PAYLOAD_MAX) != 0)
		return rio_fail(errno, "the node's answer did not come: %s", strerror(errno));
	if (h->op == RIO_REFUSED || (h->op == RIO_STATE && h->error))
		return rio_fail(h->error ? h->error : EPROTO, "%.300s", payload);
	if (h->op != expected)
		return rio_fail(EPROTO, "the node answered something that was not asked");
	return 0;
}

int rio_session_open(struct rio_session *s, const char *node, const char *path, unsigned flags,
		     mode_t mode)
{
	struct wire_head h = {.op = RIO_OPEN, .number = flags, .size = mode};
	char payload[RIO_PAYLOAD_MAX + 1];

	if (strlen(path) >= RIO_PATH_MAX)
		return rio_fail(ENAMETOOLONG, "a path has at most %d bytes", RIO_PATH_MAX - 1);
	snprintf(s->node, sizeof(s->node), "%s", node);
	s->control = rio_call(node);
	if (s->control < 0)
		return -1;
	if (wire_say(s->control, &h, path, strlen(path)) != 0)
		rio_fail(errno, "node '%.80s' went away: %s", node, strerror(errno));
	else if (hear_answer(s->control, RIO_OPENED, &h, payload) == 0 && h.bytes == RIO_TOKEN) {
		memcpy(s->token, payload, RIO_TOKEN);
		s->size = h.size;
		return 0;
	}
	int error = errno;
	close(s->control);
	errno = error;
	return -1;
}

int rio_session_join(const struct rio_session *s, uint64_t offset, uint64_t size)
{
	struct wire_head h = {.op = RIO_JOIN, .number = offset, .size = size};
	char payload[RIO_PAYLOAD_MAX + 1];
	int fd = rio_call(s->node), error;

	if (fd < 0)
		return -1;
	/* The byte behind it is taken when all has been sent: a node that is gone before leaves it
	 * unread, so that its kernel resets the connection, and what is cut doesn't look whole. */
	if (wire_say(fd, &h, s->token, RIO_TOKEN) == 0 &&
	    hear_answer(fd, RIO_JOINED, &h, payload) == 0 && wire_say_bytes(fd, "", 1) == 0)
		return fd;
	error = errno;
	close(fd);
	errno = error;
	return -1;
}

int rio_session_state(int control, struct wire_head *state)
{
	char payload[RIO_PAYLOAD_MAX + 1];
	struct wire_head h;

	return hear_answer(control, RIO_STATE, state ? state : &h, payload);
}

int rio_session_ask(int control, enum rio_op op, uint64_t bytes, uint64_t sum,
		    struct wire_head *state)
{
	struct wire_head h = {.op = (uint16_t)op, .number = bytes, .sum = sum};

	if (wire_say(control, &h, NULL, 0) != 0)
		return rio_fail(errno, "the node went away: %s", strerror(errno));
	return rio_session_state(control, state);
}
