// SPDX-License-Identifier: BSD-3-Clause
/* After a rollback: descriptors that ranks had together (fd_common.c), each of which is made again
 * by one rank, its owner.
 *
 *   owner                                          a rank that had it, too
 *   listens, until all that will ask have left  ◀── connects
 *                                               ◀── which
 *   the descriptor (SCM_RIGHTS)                 ──▶
 *                                               ◀── leaves
 *
 * Each does so for one owner after the other, by their ids, so no two wait for each other. They
 * meet at an abstract address that only processes of the job on this node know; who asks or answers
 * there has to be of the same user. */
#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/fmt.h"
#include "image/fd/fd.h"

enum { PATIENCE_MS = 60000, STEP_MS = 10, WAITING = 64 };

struct hand_ask {
	uint64_t inode;
	uint32_t number; /* one more than that at the owner; 0: by the inode */
	uint32_t reads;	 /* of a pipe */
};

static uint32_t hand_address(int32_t owner, struct sockaddr_un *at)
{
	*at = (struct sockaddr_un){.sun_family = AF_UNIX};
	int n = fmt_print(at->sun_path + 1, sizeof(at->sun_path) - 1, "hale-hand/%016lx/%d",
			  (unsigned long)engine.meeting, (int)owner);
	return (uint32_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

static bool hand_is_ours(int fd)
{
	struct ucred c = {0};
	uint32_t len = sizeof(c);
	return !sys(SYS_getsockopt, fd, SOL_SOCKET, SO_PEERCRED, &c, &len) &&
	       c.uid == (uint32_t)sys(SYS_geteuid);
}

/* True: it can be read, or that end is gone. */
static bool hand_wait(int fd, uint64_t deadline)
{
	const struct timespec step = {0, STEP_MS * 1000000};
	struct pollfd p = {.fd = fd, .events = POLLIN};
	long n;
	do
		n = sys(SYS_ppoll, &p, 1, &step, NULL, 0);
	while (n <= 0 && clock_ns() < deadline);
	return n > 0;
}

/* ---- the owner ---- */

static int hand_find(const struct fd_restore *f, const struct hand_ask *ask)
{
	for (size_t i = 0; i < f->count; i++) {
		const struct fd_record *r = &f->record[i];
		bool is = ask->number ? r->fd == (int)ask->number - 1
				      : r->inode == ask->inode &&
					    ((r->kind == FD_PIPE && r->b == ask->reads) ||
					     r->kind == FD_SOCKET || r->kind == FD_SOCKETPAIR);
		if (is && f->temp[i] >= 0)
			return f->temp[i];
	}
	return -1;
}

static long hand_out(int to, int fd)
{
	char byte = 1, control[CMSG_SPACE(sizeof(int))] __attribute__((aligned(8))) = {0};
	struct iovec iov = {&byte, 1};
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = control,
			   .msg_controllen = sizeof(control)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	*c = (struct cmsghdr){CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	return sys(SYS_sendmsg, to, &m, MSG_NOSIGNAL);
}

/* True: it has got all that it has asked for. */
static bool hand_to_one(const struct fd_restore *f, int to, uint64_t deadline)
{
	struct hand_ask ask;
	while (hand_wait(to, deadline)) {
		long n = sys(SYS_recvfrom, to, &ask, sizeof(ask), MSG_DONTWAIT, NULL, NULL);
		if (n != (long)sizeof(ask))
			return n == 0;
		int fd = hand_find(f, &ask);
		if (fd < 0 || hand_out(to, fd) < 0)
			return false;
	}
	return false;
}

/* 0 or -errno. */
static long hand_serve(const struct fd_restore *f, uint64_t takers, uint64_t deadline)
{
	struct sockaddr_un name;
	uint32_t len = hand_address(f->old_pid, &name);
	const struct timespec step = {0, STEP_MS * 1000000};
	int at = (int)sys(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	long rc = at < 0 ? at : sys(SYS_bind, at, &name, len);
	/* one that has just been killed may have it still */
	while (rc == -EADDRINUSE && clock_ns() < deadline) {
		sys(SYS_nanosleep, &step, NULL);
		rc = sys(SYS_bind, at, &name, len);
	}
	if (!rc)
		rc = sys(SYS_listen, at, WAITING);
	for (uint64_t done = 0; !rc && done < takers;) {
		int to = hand_wait(at, deadline)
			     ? (int)sys(SYS_accept4, at, NULL, NULL, SOCK_CLOEXEC)
			     : -ETIMEDOUT;
		if (to == -ETIMEDOUT)
			rc = to;
		if (to < 0)
			continue;
		if (hand_is_ours(to) && hand_to_one(f, to, deadline))
			done++;
		sys(SYS_close, to);
	}
	if (at >= 0)
		sys(SYS_close, at);
	return rc;
}

/* ---- who has it of another rank ---- */

static long hand_connect(int32_t owner, uint64_t deadline)
{
	struct sockaddr_un name;
	uint32_t len = hand_address(owner, &name);
	const struct timespec step = {0, STEP_MS * 1000000};
	int fd = (int)sys(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	long rc = fd < 0 ? fd : sys(SYS_connect, fd, &name, len);
	while (rc == -ECONNREFUSED) {
		if (clock_ns() > deadline)
			rc = -ETIMEDOUT;
		if (clock_ns() > deadline)
			break;
		sys(SYS_nanosleep, &step, NULL);
		rc = sys(SYS_connect, fd, &name, len);
	}
	if (!rc && !hand_is_ours(fd))
		rc = -EPERM;
	if (rc && fd >= 0)
		sys(SYS_close, fd);
	return rc ? rc : fd;
}

static long hand_receive(int from, uint64_t deadline)
{
	char byte, control[CMSG_SPACE(sizeof(int))] __attribute__((aligned(8))) = {0};
	struct iovec iov = {&byte, 1};
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = control,
			   .msg_controllen = sizeof(control)};
	if (!hand_wait(from, deadline))
		return -ETIMEDOUT;
	long n = sys(SYS_recvmsg, from, &m, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	int fd;
	if (n <= 0 || !c || c->cmsg_type != SCM_RIGHTS)
		return n < 0 ? n : -ENOENT;
	memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	return fd;
}

static bool is_of(const struct fd_restore *f, size_t i, int32_t owner)
{
	const struct fd_record *r = &f->record[i];
	return r->kind == FD_BESIDE && r->same_as < 0 && (int32_t)r->a == owner;
}

/* Everything of that owner. 0 or -errno. */
static long hand_fetch(struct fd_restore *f, int32_t owner, uint64_t deadline)
{
	long from = hand_connect(owner, deadline), rc = from < 0 ? from : 0;
	for (size_t i = 0; i < f->count && !rc; i++) {
		const struct fd_record *r = &f->record[i];
		if (!is_of(f, i, owner))
			continue;
		struct hand_ask ask = {r->inode, (uint32_t)r->b, r->offset != 0};
		rc = sys(SYS_sendto, from, &ask, sizeof(ask), MSG_NOSIGNAL, NULL, 0);
		if (rc > 0)
			rc = hand_receive((int)from, deadline);
		if (rc < 0)
			break;
		f->temp[i] = fd_lift(f, (int)rc);
		rc = f->temp[i] < 0 ? -EMFILE : 0;
	}
	if (from >= 0)
		sys(SYS_close, from);
	return rc;
}

/* ---- all ---- */

/* The next owner above that id, which this process asks or is; INT32_MAX: none. */
static int32_t hand_next(const struct fd_restore *f, int32_t above)
{
	int32_t next = INT32_MAX;
	for (size_t i = 0; i < f->count; i++) {
		const struct fd_record *r = &f->record[i];
		if (r->kind == FD_BESIDE && r->same_as < 0 && (int32_t)r->a > above &&
		    (int32_t)r->a < next)
			next = (int32_t)r->a;
	}
	return next;
}

static long hand_owner(const struct fd_restore *f, uint64_t deadline)
{
	long rc = 0;
	for (size_t i = 0; i < f->count && !rc; i++)
		if (is_of(f, i, f->old_pid))
			rc = hand_serve(f, f->record[i].b, deadline);
	return rc;
}

bool fd_hand_all(struct fd_restore *f, struct error *err)
{
	uint64_t deadline = clock_ns() + PATIENCE_MS * 1000000ull;
	long rc = 0;
	for (int32_t owner = hand_next(f, 0); owner < INT32_MAX && !rc; owner = hand_next(f, owner))
		rc = owner == f->old_pid ? hand_owner(f, deadline) : hand_fetch(f, owner, deadline);
	for (size_t i = 0; i < f->count && !rc; i++) {
		const struct fd_record *r = &f->record[i];
		if (r->kind == FD_BESIDE && r->same_as >= 0)
			rc = f->temp[i] =
			    (int)sys(SYS_fcntl, f->temp[r->same_as], F_DUPFD_CLOEXEC, f->floor);
		rc = rc < 0 ? rc : 0;
	}
	if (rc)
		error_set(err, HALE_ERR_SYSTEM,
			  rc == -ETIMEDOUT
			      ? "another rank that has had a descriptor together with this one has "
				"not come back within %d s: do both run on one machine?"
			      : "a descriptor that ranks had together can't be had again (within "
				"%d s)",
			  PATIENCE_MS / 1000);
	return !rc;
}
