// SPDX-License-Identifier: BSD-3-Clause
/* TCP connections whose receiver has no room for what was sent: the rest waits at the sender, where
 * nobody can look at it. Both ends belong to processes that stand still and are captured together,
 * so what is on its way is taken out, goes into the image, and is sent once more before they go on:
 *
 *   sender [ d e f ] ──▶ receiver [ a b c ]     fd_full_take: reads a b c d e f
 *   sender [       ] ──▶ receiver [       ]     fd_full_copy: the receiver's process saves them
 *   sender [ d e f ] ──▶ receiver [ a b c ]     fd_full_give: sends a b c d e f
 *
 * A root does it for its tree. What was taken stands in a memory file, which descendants read below
 * /proc/ROOT/fd: struct full_piece and its bytes, one after the other. */
#include <errno.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>

#include "base/fmt.h"
#include "image/fd/fd.h"
#include "image/tree/tree.h"

enum {
	ESTABLISHED = 1,
	FULL_MAX = 64, /* connections */
	TICKS = 5000,  /* of TICK_NS, for bytes that were sent once already */
	TICK_NS = 1000000,
	PEEK_OFF = 42, /* SO_PEEK_OFF */
};

#define BYTES_MAX ((uint64_t)FULL_MAX * (FD_STREAM_MAX + HALE_PAGE))

struct full_piece {
	uint64_t inode; /* of the socket that receives */
	uint64_t len;
};

struct full_end {
	uint64_t inode;
	int32_t pid;
	int fd;
};

static struct {
	int file; /* of the pieces; one more than its number; 0: nothing is taken */
	char *at; /* that file, mapped */
	size_t used;
	struct full_end sender[FULL_MAX], receiver[FULL_MAX];
	size_t offset[FULL_MAX], count;
} self;

/* ---- finding ---- */

struct full_search {
	struct fd_tcp found[FULL_MAX];
	size_t count;
};

/* Looks at all: none is what is wanted. */
static bool full_see(const struct fd_tcp *s, const void *arg)
{
	struct full_search *f = *(struct full_search *const *)arg;
	if (s->state == ESTABLISHED && s->inode && s->sent && f->count < FULL_MAX)
		f->found[f->count++] = *s;
	return false;
}

static bool full_holder(const struct fd_seen *seen, const void *arg)
{
	struct full_end *e = *(struct full_end *const *)arg;
	e->pid = seen->pid;
	e->fd = seen->fd;
	return true;
}

static bool full_end_find(const struct fd_table *t, struct full_end *e)
{
	char link[64];
	fmt_print(link, sizeof(link), "socket:[%lu]", (unsigned long)e->inode);
	return fd_tree_has(t, link, full_holder, &e);
}

/* A duplicate here; -1: it can't be had. */
static int full_end_open(const struct full_end *e)
{
	int32_t own = (int32_t)sys(SYS_getpid);
	if (!e->pid || e->pid == own)
		return (int)sys(SYS_fcntl, e->fd, F_DUPFD_CLOEXEC, 0);
	long pidfd = sys(SYS_pidfd_open, e->pid, 0);
	long fd = pidfd < 0 ? pidfd : sys(SYS_pidfd_getfd, pidfd, e->fd, 0);
	if (pidfd >= 0)
		sys(SYS_close, pidfd);
	return (int)fd;
}

/* ---- room ---- */

/* How much a connection that has just been made takes, as a restart makes it (fd_socket_fill). */
static size_t full_room(void)
{
	static const char block[16384];
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	uint32_t len = sizeof(at);
	size_t room = 0;
	int door = (int)sys(SYS_socket, AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int from = (int)sys(SYS_socket, AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), to = -1;
	if (door >= 0 && from >= 0 && !sys(SYS_bind, door, &at, len) && !sys(SYS_listen, door, 1) &&
	    !sys(SYS_getsockname, door, &at, &len) && !sys(SYS_connect, from, &at, len))
		to = (int)sys(SYS_accept4, door, NULL, NULL, SOCK_CLOEXEC);
	fd_socket_more_room(from, to, FD_STREAM_MAX);
	for (long n = 1; to >= 0 && n > 0 && room<FD_STREAM_MAX; room += n> 0 ? (size_t)n : 0)
		n = sys(SYS_sendto, from, block, sizeof(block), MSG_DONTWAIT | MSG_NOSIGNAL, NULL,
			0);
	for (int i = 0; i < 3; i++) {
		int fd = i == 0 ? door : i == 1 ? from : to;
		if (fd >= 0)
			sys(SYS_close, fd);
	}
	return room;
}

/* ---- taking ---- */

static size_t full_number(int fd, unsigned long what)
{
	int n = 0;
	return sys(SYS_ioctl, fd, what, &n) || n < 0 ? 0 : (size_t)n;
}

static bool full_is_plain(int receiver)
{
	struct pollfd p = {.fd = receiver, .events = POLLPRI};
	const struct timespec now = {0, 0};
	int from = -1;
	uint32_t len = sizeof(from);
	if (!sys(SYS_getsockopt, receiver, SOL_SOCKET, PEEK_OFF, &from, &len) && from > 0)
		return false;
	return sys(SYS_ppoll, &p, 1, &now, NULL, 0) == 0 || !(p.revents & (POLLPRI | POLLERR));
}

static bool full_open(void)
{
	if (self.file)
		return true;
	int fd = (int)sys(SYS_memfd_create, "hale-full", MFD_CLOEXEC);
	long at = fd < 0 ? fd : sys(SYS_ftruncate, fd, BYTES_MAX);
	if (!at)
		at = sys(SYS_mmap, 0, BYTES_MAX, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (sys_failed(at)) {
		if (fd >= 0)
			sys(SYS_close, fd);
		return false;
	}
	image_fd_own(fd);
	image_exclude_add((const void *)at, BYTES_MAX);
	self.file = fd + 1;
	self.at = (char *)at;
	self.used = 0;
	return true;
}

/* Nothing can be put back in front of what is still to come, so there is no way back from here. */
static _Noreturn void full_lost(const char *what)
{
	log_warn(
	    "what was on its way in a TCP connection %s within 5 s: this process is ended, and "
	    "a rollback follows",
	    what);
	sys(SYS_kill, sys(SYS_getpid), SIGKILL);
	for (;;)
		sys(SYS_pause);
}

static void full_drain(int receiver, int sender, const struct full_end *from,
		       const struct full_end *to_end)
{
	const struct timespec tick = {0, TICK_NS};
	struct full_piece *piece = (struct full_piece *)(self.at + self.used);
	char *to = (char *)(piece + 1);
	int ticks = 0;
	*piece = (struct full_piece){.inode = to_end->inode};
	for (;;) {
		long n = sys(SYS_recvfrom, receiver, to + piece->len, FD_STREAM_MAX - piece->len,
			     MSG_DONTWAIT, NULL, NULL);
		if (n > 0) {
			piece->len += (uint64_t)n;
			continue;
		}
		if (!full_number(sender, SIOCOUTQ) && !full_number(receiver, FIONREAD))
			break;
		if (++ticks > TICKS)
			full_lost("could not be received");
		sys(SYS_nanosleep, &tick, NULL);
	}
	self.sender[self.count] = *from;
	self.receiver[self.count] = *to_end;
	self.offset[self.count++] = self.used;
	self.used += ALIGN_UP(sizeof(*piece) + piece->len, sizeof(*piece));
}

static void full_take_one(const struct fd_table *t, const struct fd_tcp *of, size_t *room)
{
	struct full_end from = {.inode = of->inode}, to = {0};
	struct fd_tcp peer;
	int sender = -1, receiver = -1;
	if (fd_tcp_peer(t->proc, of, &peer) && peer.state == ESTABLISHED && peer.inode) {
		to.inode = peer.inode;
		if (full_end_find(t, &from) && full_end_find(t, &to))
			sender = full_end_open(&from);
		if (sender >= 0)
			receiver = full_end_open(&to);
	}
	bool wanted = receiver >= 0 && (of->sent_again || full_number(sender, SIOCOUTQNSD));
	if (wanted && !*room)
		*room = full_room();
	/* what is not acknowledged may be there already, and is counted twice then */
	size_t most = full_number(sender, SIOCOUTQ) + full_number(receiver, FIONREAD);
	wanted = wanted && most < *room && full_is_plain(receiver) && full_open() &&
		 self.count < FULL_MAX;
	if (wanted)
		full_drain(receiver, sender, &from, &to);
	if (receiver >= 0)
		sys(SYS_close, receiver);
	if (sender >= 0)
		sys(SYS_close, sender);
}

static bool full_has_sockets(const struct fd_table *t, const char *proc)
{
	struct fd_dir dir;
	bool found = false;
	if (!fd_dir_open(&dir, proc))
		return false;
	for (int fd; !found && (fd = fd_dir_next(&dir)) >= 0;) {
		char path[64], link[64] = "";
		fmt_print(path, sizeof(path), "%s/fd/%d", proc, fd);
		found = sys(SYS_readlink, path, link, sizeof(link) - 1) > 0 &&
			!strncmp(link, "socket:", 7) &&
			(proc != t->proc || !fd_table_is_own(t, fd));
	}
	fd_dir_close(&dir);
	return found;
}

/* Most programs have no socket, and then nothing else is looked at. */
static bool full_is_possible(const struct fd_table *t)
{
	bool any = full_has_sockets(t, t->proc);
	for (size_t i = 0; !any && i < t->tree_count; i++) {
		char proc[32];
		fmt_print(proc, sizeof(proc), "/proc/%d", (int)t->tree[i]);
		any = full_has_sockets(t, proc);
	}
	return any;
}

void fd_full_take(const struct fd_table *t)
{
	struct fd_table look = *t;
	struct fd_tcp none;
	struct full_search *f = full_is_possible(t) ? arena_alloc(t->arena, sizeof(*f)) : NULL;
	size_t room = 0;
	if (!f || !(look.index = fd_index_create(t->arena)))
		return;
	f->count = 0;
	fd_tcp_find(t->proc, full_see, &f, &none);
	for (size_t i = 0; i < f->count; i++)
		full_take_one(&look, &f->found[i], &room);
}

/* ---- saving, and giving back ---- */

int fd_full_file(void)
{
	return self.file - 1;
}

size_t fd_full_copy(struct fd_table *t, uint64_t inode, char **data)
{
	struct full_piece piece;
	int file = t->full - 1;
	for (uint64_t at = 0;
	     file >= 0 && sys(SYS_pread64, file, &piece, sizeof(piece), at) == sizeof(piece) &&
	     piece.inode && piece.len <= FD_STREAM_MAX;
	     at += ALIGN_UP(sizeof(piece) + piece.len, sizeof(piece))) {
		if (piece.inode != inode)
			continue;
		*data = arena_pages(t->arena, piece.len + 1);
		if (*data &&
		    sys(SYS_pread64, file, *data, piece.len, at + sizeof(piece)) != (long)piece.len)
			*data = NULL;
		return piece.len;
	}
	return 0;
}

static void full_send(int sender, int receiver, const char *data, size_t len)
{
	const struct timespec tick = {0, TICK_NS};
	for (int ticks = 0; len;) {
		long n = sys(SYS_sendto, sender, data, len, MSG_DONTWAIT | MSG_NOSIGNAL, NULL, 0);
		if (n > 0) {
			data += n;
			len -= (size_t)n;
			continue;
		}
		if (n != -EAGAIN || ++ticks > TICKS)
			full_lost("could not be sent again");
		if (ticks % 16 == 0) { /* it has taken as much before, in other pieces */
			log_info("a TCP connection gets room for %zu more bytes", len);
			fd_socket_more_room(sender, receiver, len);
		}
		sys(SYS_nanosleep, &tick, NULL);
	}
}

void fd_full_give(void)
{
	for (size_t i = 0; i < self.count; i++) {
		const struct full_piece *piece =
		    (const struct full_piece *)(self.at + self.offset[i]);
		int sender = full_end_open(&self.sender[i]);
		int receiver = full_end_open(&self.receiver[i]);
		if (sender < 0 || receiver < 0)
			full_lost("could not be sent again");
		full_send(sender, receiver, (const char *)(piece + 1), piece->len);
		sys(SYS_close, sender);
		sys(SYS_close, receiver);
	}
	if (self.file) {
		image_exclude_remove(self.at);
		sys(SYS_munmap, self.at, BYTES_MAX);
		image_fd_disown(self.file - 1);
		sys(SYS_close, self.file - 1);
	}
	self.file = 0;
	self.count = self.used = 0;
}

void fd_full_forget(void)
{
	if (self.file) {
		image_exclude_remove(self.at);
		image_fd_disown(self.file - 1);
	}
	self.file = 0;
	self.count = self.used = 0;
}
