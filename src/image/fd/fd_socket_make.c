// SPDX-License-Identifier: BSD-3-Clause
/* Sockets (fd_socket.c) made again, by whoever has the records of both ends: the process itself, or
 * the root of a tree.
 *
 * A connection is made again as it was made first, by a socket that listens at the address for that
 * moment; sockets that listen for longer come after all connections. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>

#include "base/fmt.h"
#include "image/fd/fd.h"

enum { TRIES = 300, TRY_NS = 10000000 };

/* Whole numbers that setsockopt takes; a time-out is told in microseconds. */
static const struct {
	int level, name;
	bool is_time;
} options[SOCKET_OPTIONS] = {
    {SOL_SOCKET, SO_KEEPALIVE, false},	{SOL_SOCKET, SO_OOBINLINE, false},
    {SOL_SOCKET, SO_PASSCRED, false},	{SOL_SOCKET, SO_RCVTIMEO, true},
    {SOL_SOCKET, SO_SNDTIMEO, true},	{IPPROTO_TCP, TCP_NODELAY, false},
    {IPPROTO_TCP, TCP_KEEPIDLE, false}, {IPPROTO_TCP, TCP_KEEPINTVL, false},
    {IPPROTO_TCP, TCP_KEEPCNT, false},	{IPPROTO_TCP, TCP_USER_TIMEOUT, false}};

void fd_socket_read_options(int fd, struct socket_record *s)
{
	for (int i = 0; i < SOCKET_OPTIONS; i++) {
		struct timeval time = {0, 0};
		int value = 0;
		uint32_t len = options[i].is_time ? sizeof(time) : sizeof(value);
		void *to = options[i].is_time ? (void *)&time : (void *)&value;
		s->option[i] = -1;
		if (options[i].level == IPPROTO_TCP && s->family != AF_INET)
			continue;
		if (!sys(SYS_getsockopt, fd, options[i].level, options[i].name, to, &len))
			s->option[i] =
			    options[i].is_time ? time.tv_sec * 1000000 + time.tv_usec : value;
	}
}

static void write_options(int fd, const struct socket_record *s)
{
	for (int i = 0; i < SOCKET_OPTIONS; i++) {
		struct timeval time = {s->option[i] / 1000000, s->option[i] % 1000000};
		int value = (int)s->option[i];
		if (s->option[i] < 0)
			continue;
		if (options[i].is_time)
			sys(SYS_setsockopt, fd, options[i].level, options[i].name, &time,
			    sizeof(time));
		else
			sys(SYS_setsockopt, fd, options[i].level, options[i].name, &value,
			    sizeof(value));
	}
}

bool fd_socket_record(const char *text, size_t text_len, const struct fd_record *r,
		      struct socket_record *s)
{
	if (r->text_len != sizeof(*s) || r->text_offset > text_len ||
	    text_len - r->text_offset < sizeof(*s))
		return false;
	memcpy(s, text + r->text_offset, sizeof(*s));
	return s->name_len <= sizeof(s->name) && s->peer_name_len <= sizeof(s->peer_name);
}

static void pause_a_little(void)
{
	const struct timespec tick = {0, TRY_NS};
	sys(SYS_nanosleep, &tick, NULL);
}

/* Until those who had the address are gone. */
static long bind_again(int fd, const void *name, uint32_t len)
{
	long rc = -EINVAL;
	for (int i = 0; i < TRIES; i++) {
		rc = sys(SYS_bind, fd, name, len);
		if (rc != -EADDRINUSE)
			break;
		pause_a_little();
	}
	return rc;
}

static long listen_at(int family, int type, const void *name, uint32_t len)
{
	int one = 1, fd = (int)sys(SYS_socket, family, type | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return fd;
	if (family == AF_INET)
		sys(SYS_setsockopt, fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	long rc = bind_again(fd, name, len);
	if (!rc)
		rc = sys(SYS_listen, fd, 1);
	if (rc)
		sys(SYS_close, fd);
	return rc ? rc : fd;
}

static long unix_pair(const struct socket_record *x, int end[2])
{
	struct sockaddr_un un = {0};
	bool serves = x->name_len > 0;
	const unsigned char *name = serves ? x->name : x->peer_name;
	uint32_t len = serves ? x->name_len : x->peer_name_len;
	if (!len)
		return sys(SYS_socketpair, AF_UNIX, x->type | SOCK_CLOEXEC, 0, end);
	memcpy(&un, name, len < sizeof(un) ? len : sizeof(un));
	/* whatever has that name in the file system is away meanwhile */
	char away[160];
	int caller = (int)sys(SYS_socket, AF_UNIX, x->type | SOCK_CLOEXEC, 0);
	long rc = 0;
	*away = 0;
	if (un.sun_path[0]) {
		fmt_print(away, sizeof(away), "%.107s.hale-%d", un.sun_path, (int)sys(SYS_getpid));
		if (sys(SYS_rename, un.sun_path, away))
			*away = 0;
	}
	long at = listen_at(AF_UNIX, (int)x->type, name, len);
	if (at < 0 || caller < 0 || (rc = sys(SYS_connect, caller, name, len)) < 0) {
		rc = at < 0 ? at : caller < 0 ? caller : rc;
	} else {
		end[!serves] = (int)sys(SYS_accept4, at, NULL, NULL, SOCK_CLOEXEC);
		end[serves] = caller;
		rc = end[!serves] < 0 ? end[!serves] : 0;
	}
	if (at >= 0) {
		sys(SYS_close, at);
		if (un.sun_path[0])
			sys(SYS_unlink, un.sun_path);
	}
	if (*away)
		sys(SYS_rename, away, un.sun_path);
	return rc;
}

static long call_from(const struct socket_record *x, int *caller)
{
	struct sockaddr_in from;
	int one = 1;
	long rc = -EADDRNOTAVAIL;
	memcpy(&from, x->peer_name, sizeof(from));
	for (int i = 0; i < TRIES; i++) {
		if (i == TRIES - 1) {
			log_info(
			    "a connection comes back from another port than %u, which something "
			    "else has",
			    (unsigned)__builtin_bswap16(from.sin_port));
			from.sin_port = 0;
		}
		*caller = (int)sys(SYS_socket, AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (*caller < 0)
			return *caller;
		sys(SYS_setsockopt, *caller, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
		rc = sys(SYS_bind, *caller, &from, sizeof(from));
		if (!rc)
			rc = sys(SYS_connect, *caller, x->name, x->name_len);
		if (rc != -EADDRINUSE && rc != -EADDRNOTAVAIL)
			return rc;
		sys(SYS_close, *caller);
		pause_a_little();
	}
	return rc;
}

static long tcp_pair(const struct socket_record *x, int end[2])
{
	long rc, at = listen_at(AF_INET, SOCK_STREAM, x->name, x->name_len);
	if (at < 0)
		return at;
	rc = call_from(x, &end[1]);
	if (!rc)
		end[0] = (int)sys(SYS_accept4, at, NULL, NULL, SOCK_CLOEXEC);
	sys(SYS_close, at);
	return rc ? rc : end[0] < 0 ? end[0] : 0;
}

bool fd_socket_make(const struct socket_record *x, int end[2], struct error *err)
{
	long rc;
	end[0] = end[1] = -1;
	if (x->end == SOCKET_LISTENS)
		rc = end[0] = (int)sys(SYS_socket, x->family, x->type | SOCK_CLOEXEC, 0);
	else
		rc = x->family == AF_UNIX ? unix_pair(x, end) : tcp_pair(x, end);
	if (rc >= 0)
		return true;
	error_set(err, HALE_ERR_SYSTEM,
		  "can't make a connection inside the job again (error %ld): has something else "
		  "its address?",
		  -rc);
	return false;
}

static bool send_all(int fd, const char *data, size_t len)
{
	for (int tries = 0; len && tries < TRIES;) {
		long n = sys(SYS_sendto, fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL, NULL, 0);
		if (n > 0) {
			data += n;
			len -= (size_t)n;
		} else if (n != -EAGAIN) {
			return false;
		} else {
			int more = (int)len * 2;
			sys(SYS_setsockopt, fd, SOL_SOCKET, SO_SNDBUF, &more, sizeof(more));
			pause_a_little();
			tries++;
		}
	}
	return !len;
}

bool fd_socket_fill(int from, const struct socket_record *x, const void *data, size_t len)
{
	const char *at = data;
	if (x->type == SOCK_STREAM)
		return send_all(from, data, len);
	while (len >= sizeof(uint32_t)) {
		uint32_t n;
		memcpy(&n, at, sizeof(n));
		at += sizeof(n);
		len -= sizeof(n);
		if (n > len ||
		    sys(SYS_sendto, from, at, n, MSG_DONTWAIT | MSG_NOSIGNAL, NULL, 0) != (long)n)
			return false;
		at += n;
		len -= n;
	}
	return !len;
}

void fd_socket_finish(int fd, const struct socket_record *x, uint32_t open_flags)
{
	write_options(fd, x);
	sys(SYS_fcntl, fd, F_SETFL, open_flags & O_NONBLOCK);
	if (x->end == SOCKET_CONNECTED && x->shut & SOCKET_NO_WRITE)
		sys(SYS_shutdown, fd, SHUT_WR);
	if (x->end == SOCKET_CONNECTED && x->shut & SOCKET_NO_READ)
		sys(SYS_shutdown, fd, SHUT_RD);
}

bool fd_socket_listen(int fd, const struct socket_record *x, struct error *err)
{
	int listens = 0, one = 1;
	uint32_t len = sizeof(listens);
	long rc = 0;
	if (!sys(SYS_getsockopt, fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &len) && listens)
		return true; /* another process has it, too */
	if (x->family == AF_UNIX) {
		struct sockaddr_un un = {0};
		struct stat st = {0};
		memcpy(&un, x->name, x->name_len < sizeof(un) ? x->name_len : sizeof(un));
		bool named = un.sun_path[0] != 0;
		if (named && !sys(SYS_newfstatat, AT_FDCWD, un.sun_path, &st, 0) &&
		    S_ISSOCK(st.st_mode))
			sys(SYS_unlink, un.sun_path);
		if (x->name_len)
			rc = bind_again(fd, x->name, x->name_len);
		if (!rc && named && !x->on_disk)
			sys(SYS_unlink, un.sun_path);
	} else {
		sys(SYS_setsockopt, fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
		rc = bind_again(fd, x->name, x->name_len);
	}
	if (!rc)
		rc = sys(SYS_listen, fd, x->backlog);
	if (!rc)
		return true;
	error_set(err, HALE_ERR_SYSTEM,
		  "can't listen at the address of descriptor %d again (error %ld): something else "
		  "has it",
		  fd, -rc);
	return false;
}
