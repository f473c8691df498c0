// SPDX-License-Identifier: BSD-3-Clause
/* Connections between ranks. Their images are of one moment, and each rank is rebuilt by itself, so
 * each makes its own end: one of both listens at the address that it had, the other one calls. The
 * end with a name listens (AF_UNIX), or the one with the smaller inode.
 *
 *   caller                                        listener
 *   connects, until somebody listens   ──────▶
 *   whose connection it is             ──────▶    keeps it, if it is of another of its ends
 *                                      ◀──────    yes
 *   what it has not read yet           ──────▶
 *                                      ◀──────    what it has not read yet
 *   the other one's, where nobody reads it yet    likewise
 *
 * All handle their connections in the same order, so no two wait for each other. Who has come back
 * waits for the others before it runs on (CKPT_TOGETHER). */
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fmt.h"
#include "image/fd/fd.h"

enum { PATIENCE_MS = 60000, STEP_MS = 10, KEPT = 64 };

struct beside_hello {
	uint64_t low, high; /* the inodes of both ends, by which the images know them */
};

/* Connections that came before their turn. */
struct beside_kept {
	struct beside_hello of;
	int fd;
};

struct beside_work {
	struct beside_kept kept[KEPT];
	size_t count;
	uint64_t deadline;
};

static struct beside_hello beside_key(const struct fd_beside *e)
{
	bool less = e->inode < e->peer;
	return (struct beside_hello){less ? e->inode : e->peer, less ? e->peer : e->inode};
}

static bool beside_is_before(const struct fd_beside *a, const struct fd_beside *b)
{
	const struct beside_hello x = beside_key(a), y = beside_key(b);
	return x.low < y.low || (x.low == y.low && x.high < y.high);
}

static bool beside_listens(const struct fd_beside *e)
{
	return e->is.family == AF_UNIX ? e->is.name_len > 0 : e->inode < e->peer;
}

static long beside_fail(const struct beside_work *w, long rc)
{
	return clock_ns() > w->deadline ? -ETIMEDOUT : rc;
}

/* True: something has happened, or a moment is over. */
static bool beside_poll(const struct beside_work *w, int fd, short events)
{
	struct pollfd p = {.fd = fd, .events = events};
	const struct timespec step = {0, STEP_MS * 1000000};
	sys(SYS_ppoll, &p, 1, &step, NULL, 0);
	return clock_ns() <= w->deadline;
}

/* 0 or -errno; of bytes that come from there, or go there. */
static long beside_move(const struct beside_work *w, int fd, void *data, size_t len, bool out)
{
	char *at = data;
	while (len) {
		long n = out ? sys(SYS_sendto, fd, at, len, MSG_DONTWAIT | MSG_NOSIGNAL, NULL, 0)
			     : sys(SYS_recvfrom, fd, at, len, MSG_DONTWAIT, NULL, NULL);
		if (n > 0) {
			at += n;
			len -= (size_t)n;
		} else if (n != -EAGAIN) {
			return n ? n : -ECONNRESET;
		} else if (!beside_poll(w, fd, out ? POLLOUT : POLLIN)) {
			return -ETIMEDOUT;
		}
	}
	return 0;
}

/* ---- meeting ---- */

static int beside_take_kept(struct beside_work *w, const struct beside_hello *key)
{
	for (size_t i = 0; i < w->count; i++)
		if (w->kept[i].of.low == key->low && w->kept[i].of.high == key->high) {
			int fd = w->kept[i].fd;
			w->kept[i] = w->kept[--w->count];
			return fd;
		}
	return -1;
}

/* One call: whose is it? */
static void beside_answer(struct beside_work *w, int at)
{
	struct beside_hello said;
	int fd = (int)sys(SYS_accept4, at, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0)
		return;
	if (w->count == KEPT || beside_move(w, fd, &said, sizeof(said), false)) {
		sys(SYS_close, fd);
		return;
	}
	w->kept[w->count++] = (struct beside_kept){said, fd};
}

static long beside_await_call(struct beside_work *w, const struct fd_beside *e, int *fd)
{
	const struct beside_hello key = beside_key(e);
	char yes = 1;
	int at = -1;
	long rc = 0;
	while ((*fd = beside_take_kept(w, &key)) < 0 && !rc) {
		if (at < 0)
			at = (int)fd_socket_listen_at(&e->is);
		if (at < 0)
			rc = at;
		else if (!beside_poll(w, at, POLLIN))
			rc = -ETIMEDOUT;
		else
			beside_answer(w, at);
	}
	if (at >= 0)
		fd_socket_listened(&e->is, at);
	return rc ? rc : beside_move(w, *fd, &yes, 1, true);
}

static long beside_call(struct beside_work *w, const struct fd_beside *e, int *fd)
{
	struct beside_hello key = beside_key(e);
	char yes = 0;
	long rc = -ECONNREFUSED;
	while (rc && rc != -ETIMEDOUT) {
		rc = fd_socket_call(&e->is, fd);
		if (!rc)
			rc = beside_move(w, *fd, &key, sizeof(key), true);
		if (!rc)
			rc = beside_move(w, *fd, &yes, 1, false);
		if (!rc)
			break;
		if (*fd >= 0)
			sys(SYS_close, *fd);
		*fd = -1;
		beside_poll(w, -1, 0);
		rc = beside_fail(w, rc);
	}
	return rc;
}

/* ---- what nobody has read yet ---- */

/* Sends its own, and receives the other one's, side by side: either may be more than there is room
 * for. */
static long beside_exchange(const struct beside_work *w, int fd, const struct fd_beside *e,
			    struct arena *a, char **theirs, uint64_t *len)
{
	uint64_t mine = e->len, sent = 0, got = 0;
	long rc = beside_move(w, fd, &mine, sizeof(mine), true);
	if (!rc)
		rc = beside_move(w, fd, len, sizeof(*len), false);
	if (rc || *len > FD_STREAM_MAX)
		return rc ? rc : -EPROTO;
	*theirs = arena_pages(a, *len + 1);
	if (!*theirs)
		return -ENOMEM;
	while (sent < mine || got < *len) {
		long out = sent == mine ? -EAGAIN
					: sys(SYS_sendto, fd, (const char *)e->data + sent,
					      mine - sent, MSG_DONTWAIT | MSG_NOSIGNAL, NULL, 0);
		long in = got == *len ? -EAGAIN
				      : sys(SYS_recvfrom, fd, *theirs + got, *len - got,
					    MSG_DONTWAIT, NULL, NULL);
		if ((out < 0 && out != -EAGAIN) || (in <= 0 && in != -EAGAIN))
			return out < 0 && out != -EAGAIN ? out : in ? in : -ECONNRESET;
		sent += out > 0 ? (uint64_t)out : 0;
		got += in > 0 ? (uint64_t)in : 0;
		if (out <= 0 && in <= 0 &&
		    !beside_poll(w, fd,
				 (short)((got < *len ? POLLIN : 0) | (sent < mine ? POLLOUT : 0))))
			return -ETIMEDOUT;
	}
	return 0;
}

static long beside_make_one(struct beside_work *w, struct fd_beside *e, struct arena *a)
{
	char *theirs = NULL;
	uint64_t len = 0;
	long rc = beside_listens(e) ? beside_await_call(w, e, &e->fd) : beside_call(w, e, &e->fd);
	if (!rc)
		rc = beside_exchange(w, e->fd, e, a, &theirs, &len);
	if (!rc && len && !fd_socket_fill(e->fd, -1, &e->is, theirs, len))
		rc = -ENOBUFS;
	return rc;
}

bool fd_beside_make(struct fd_beside *end, size_t count, struct error *err)
{
	struct beside_work w = {.deadline = clock_ns() + PATIENCE_MS * 1000000ull};
	struct arena arena;
	long rc = arena_init(&arena, NULL, 2ul * (count + 1) * FD_STREAM_MAX) ? 0 : -ENOMEM;
	bool has_arena = !rc;
	for (size_t done = 0; done < count && !rc; done++) {
		size_t next = done;
		for (size_t i = done + 1; i < count; i++)
			if (beside_is_before(&end[i], &end[next]))
				next = i;
		struct fd_beside first = end[next];
		rc = beside_make_one(&w, &first, &arena);
		end[next] = end[done];
		end[done] = first;
	}
	for (size_t i = 0; i < w.count; i++)
		sys(SYS_close, w.kept[i].fd);
	if (has_arena)
		arena_fini(&arena);
	if (rc)
		error_set(err, HALE_ERR_SYSTEM,
			  rc == -ETIMEDOUT
			      ? "the other end of a connection to another rank has not come back "
				"within %d s: do both run on one machine?"
			      : "a connection to another rank can't be made again (within %d s)",
			  PATIENCE_MS / 1000);
	return !rc;
}
