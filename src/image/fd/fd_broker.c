// SPDX-License-Identifier: BSD-3-Clause
/* A connection to an event broker, as libftb has one: it comes back as one that has broken. The
 * library finds a broker again by itself, and knows what it has sent. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "image/fd/fd.h"

/* The last word of every broker's address, file or not (src/ftb/sock.c). */
static const char last[] = "/ftb";

static bool is_broker(const struct fd_unix *u)
{
	size_t n = u->name_len, k = sizeof(last) - 1;
	while (n > 0 && !u->name[n - 1])
		n--;
	return n >= k && !memcmp(u->name + n - k, last, k);
}

static bool match(const struct fd_table *t, const struct fd_probe *p)
{
	struct fd_unix me, peer;
	return S_ISSOCK(p->st.st_mode) && fd_unix_ask(p->st.st_ino, &me) &&
	       me.type == SOCK_SEQPACKET && !me.name_len && me.peer &&
	       fd_unix_ask(me.peer, &peer) && is_broker(&peer);
}

static hale_status_t capture(struct fd_table *t, const struct fd_probe *p, struct fd_record *r,
			     struct error *err)
{
	return HALE_OK;
}

static int open_broken(struct fd_restore *f, size_t index, struct error *err)
{
	const struct fd_record *r = &f->record[index];
	int end[2] = {-1, -1};
	if (sys(SYS_socketpair, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, end)) {
		error_set(err, HALE_ERR_SYSTEM, "can't make the socket of descriptor %d again",
			  r->fd);
		return -1;
	}
	sys(SYS_close, end[1]);
	sys(SYS_fcntl, end[0], F_SETFL, r->open_flags & O_NONBLOCK);
	return end[0];
}

const struct fd_ops fd_broker = {.kind = FD_BROKER,
				 .name = "connection to an event broker",
				 .match = match,
				 .capture = capture,
				 .open = open_broken};
