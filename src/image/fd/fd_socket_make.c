// SPDX-License-Identifier: BSD-3-Clause
/* Sockets (fd_socket.c) made again, by whoever has the records of both ends: the process itself, or
 * the root of a tree.
 *
 * A connection is made again as it was made first, by a socket that listens at the address for that
 * moment; sockets that listen for longer come after all connections. */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

#include "base/fmt.h"
#include "image/fd/fd.h"

enum { TRIES = 300, TRY_NS = 10000000, ORDINARY = 256 << 10, LISTEN_MAX = 16 };

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
	if (family != AF_UNIX)
		sys(SYS_setsockopt, fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	long rc = bind_again(fd, name, len);
	if (!rc)
		rc = sys(SYS_listen, fd, LISTEN_MAX);
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

/* Where that name goes meanwhile; "": it has none in the file system. */
static void away_name(const struct socket_record *x, char away[160], struct sockaddr_un *un)
{
	*un = (struct sockaddr_un){0};
	*away = 0;
	if (x->family != AF_UNIX)
		return;
	memcpy(un, x->name, x->name_len < sizeof(*un) ? x->name_len : sizeof(*un));
	if (un->sun_path[0])
		fmt_print(away, 160, "%.107s.hale-%d", un->sun_path, (int)sys(SYS_getpid));
}

long fd_socket_listen_at(const struct socket_record *x)
{
	struct sockaddr_un un;
	char away[160];
	away_name(x, away, &un);
	if (*away)
		sys(SYS_rename, un.sun_path, away);
	long fd = listen_at((int)x->family, SOCK_STREAM, x->name, x->name_len);
	if (fd < 0 && *away)
		sys(SYS_rename, away, un.sun_path);
	return fd;
}

void fd_socket_listened(const struct socket_record *x, int fd)
{
	struct sockaddr_un un;
	char away[160];
	away_name(x, away, &un);
	sys(SYS_close, fd);
	if (*away) {
		sys(SYS_unlink, un.sun_path);
		sys(SYS_rename, away, un.sun_path);
	}
}

/* The other end calls from its own address, as it knows it: one may be of IPv6, and the other not.
 */
static long call_from(const struct socket_record *x, const struct socket_record *y, int *caller)
{
	struct sockaddr_in6 from; /* a port stands where that of sockaddr_in does */
	int one = 1;
	long rc = -EADDRNOTAVAIL;
	memcpy(&from, y ? y->name : x->peer_name, sizeof(from));
	for (int i = 0; i < TRIES; i++) {
		if (i == TRIES - 1) {
			log_info(
			    "a connection comes back from another port than %u, which something "
			    "else has",
			    (unsigned)__builtin_bswap16(from.sin6_port));
			from.sin6_port = 0;
		}
		*caller = (int)sys(SYS_socket, from.sin6_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (*caller < 0)
			return *caller;
		sys(SYS_setsockopt, *caller, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
		rc = sys(SYS_bind, *caller, &from, y ? y->name_len : x->peer_name_len);
		if (!rc)
			rc = sys(SYS_connect, *caller, y ? y->peer_name : x->name,
				 y ? y->peer_name_len : x->name_len);
		if (rc != -EADDRINUSE && rc != -EADDRNOTAVAIL)
			return rc;
		sys(SYS_close, *caller);
		*caller = -1;
		pause_a_little();
	}
	return rc;
}

long fd_socket_call(const struct socket_record *x, int *fd)
{
	if (x->family != AF_UNIX)
		return call_from(x, x, fd);
	*fd = (int)sys(SYS_socket, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	return *fd < 0 ? *fd : sys(SYS_connect, *fd, x->peer_name, x->peer_name_len);
}

static long tcp_pair(const struct socket_record *x, const struct socket_record *y, int end[2])
{
	long rc, at = listen_at((int)x->family, SOCK_STREAM, x->name, x->name_len);
	if (at < 0)
		return at;
	rc = call_from(x, y, &end[1]);
	if (!rc)
		end[0] = (int)sys(SYS_accept4, at, NULL, NULL, SOCK_CLOEXEC);
	sys(SYS_close, at);
	return rc ? rc : end[0] < 0 ? end[0] : 0;
}

/* What has that name in the file system is a socket that nobody has any more. */
static long bind_unix(int fd, const struct socket_record *x)
{
	struct sockaddr_un un = {0};
	struct stat st = {0};
	memcpy(&un, x->name, x->name_len < sizeof(un) ? x->name_len : sizeof(un));
	bool named = un.sun_path[0] != 0;
	if (named && !sys(SYS_newfstatat, AT_FDCWD, un.sun_path, &st, 0) && S_ISSOCK(st.st_mode))
		sys(SYS_unlink, un.sun_path);
	long rc = bind_again(fd, x->name, x->name_len);
	if (!rc && named && !x->on_disk)
		sys(SYS_unlink, un.sun_path);
	return rc;
}

/* The program may have bound an address that no device has, and said since that it does not want
 * such. */
static long bind_free(int fd, const struct socket_record *x)
{
	int one = 1, zero = 0;
	int level = x->family == AF_INET6 ? SOL_IPV6 : SOL_IP;
	int name = x->family == AF_INET6 ? IPV6_FREEBIND : IP_FREEBIND;
	if (sys(SYS_setsockopt, fd, level, name, &one, sizeof(one)))
		return -EADDRNOTAVAIL;
	long rc = sys(SYS_bind, fd, x->name, x->name_len);
	sys(SYS_setsockopt, fd, level, name, &zero, sizeof(zero));
	return rc;
}

static long bind_name(int fd, const struct socket_record *x)
{
	if (!x->name_len)
		return 0;
	long rc = x->family == AF_UNIX ? bind_unix(fd, x) : bind_again(fd, x->name, x->name_len);
	return rc == -EADDRNOTAVAIL && x->family != AF_UNIX ? bind_free(fd, x) : rc;
}

/* One that listens gets its address last, when all connections that have the same are there. */
static long make_alone(const struct socket_record *x, int *fd)
{
	int one = 1;
	*fd = (int)sys(SYS_socket, x->family, x->type | SOCK_CLOEXEC, x->protocol);
	if (*fd < 0)
		return *fd;
	fd_socket_write_early(*fd, x);
	if (x->end != SOCKET_LISTENS &&
	    x->family != AF_UNIX) /* for who sends what it had; until last */
		sys(SYS_setsockopt, *fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (x->end == SOCKET_LISTENS)
		return 0;
	long rc = bind_name(*fd, x);
	if (rc == -EADDRINUSE && x->end == SOCKET_WAITS && x->family != AF_UNIX) {
		struct socket_record other = *x;
		struct sockaddr_in6 *name = (struct sockaddr_in6 *)other.name;
		log_info(
		    "a connection comes back from another port than %u, which something else has",
		    (unsigned)__builtin_bswap16(name->sin6_port));
		name->sin6_port = 0; /* stands where that of sockaddr_in does */
		rc = bind_name(*fd, &other);
	}
	return rc;
}

bool fd_socket_make(const struct socket_record *x, const struct socket_record *y, int end[2],
		    struct error *err)
{
	long rc;
	end[0] = end[1] = -1;
	if (x->end != SOCKET_CONNECTED && x->end != SOCKET_LEFT)
		rc = make_alone(x, &end[0]);
	else
		rc = x->family == AF_UNIX ? unix_pair(x, end) : tcp_pair(x, y, end);
	if (rc >= 0)
		return true;
	error_set(err, HALE_ERR_SYSTEM,
		  x->end == SOCKET_ALONE || x->end == SOCKET_WAITS
		      ? "can't make a socket again (error %ld): has something else its address?"
		      : "can't make a connection inside the job again (error %ld): has something "
			"else its address?",
		  -rc);
	return false;
}

/* TCP may have more than an ordinary user can ask for: it is not to have less. */
static void more_of(int fd, int name, int force, size_t more)
{
	int now = 0;
	uint32_t len = sizeof(now);
	if (fd < 0 || sys(SYS_getsockopt, fd, SOL_SOCKET, name, &now, &len))
		return;
	int wanted = now / 2 + (int)more; /* the kernel takes twice of it */
	if (sys(SYS_setsockopt, fd, SOL_SOCKET, force, &wanted, sizeof(wanted)) && now < ORDINARY)
		sys(SYS_setsockopt, fd, SOL_SOCKET, name, &wanted, sizeof(wanted));
}

void fd_socket_more_room(int from, int to, size_t more)
{
	more_of(from, SO_SNDBUF, SO_SNDBUFFORCE, more);
	more_of(to, SO_RCVBUF, SO_RCVBUFFORCE, more);
}

static bool send_all(int fd, int to, const char *data, size_t len)
{
	for (int tries = 0; len && tries < TRIES;) {
		long n = sys(SYS_sendto, fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL, NULL, 0);
		if (n > 0) {
			data += n;
			len -= (size_t)n;
		} else if (n != -EAGAIN) {
			return false;
		} else {
			fd_socket_more_room(fd, to, len);
			pause_a_little();
			tries++;
		}
	}
	return !len;
}

bool fd_socket_fill(int from, int to, const struct socket_record *x, const void *data, size_t len)
{
	const char *at = data;
	if (x->end == SOCKET_ALONE)
		return fd_datagrams_fill(from, x, data, len);
	if (x->type == SOCK_STREAM)
		return send_all(from, x->family == AF_UNIX ? -1 : to, data, len);
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
	fd_socket_write_options(fd, x);
	sys(SYS_fcntl, fd, F_SETFL, open_flags & O_NONBLOCK);
	if (x->end == SOCKET_CONNECTED && x->shut & SOCKET_NO_WRITE)
		sys(SYS_shutdown, fd, SHUT_WR);
	if (x->end == SOCKET_CONNECTED && x->shut & SOCKET_NO_READ)
		sys(SYS_shutdown, fd, SHUT_RD);
}

static bool listens_already(int fd)
{
	int listens = 0;
	uint32_t len = sizeof(listens);
	return !sys(SYS_getsockopt, fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &len) && listens;
}

/* Where it sends to. Who had that name and has ended is nobody's mistake. */
static bool connect_again(int fd, const struct socket_record *x, struct error *err)
{
	long rc = x->peer_name_len ? sys(SYS_connect, fd, x->peer_name, x->peer_name_len) : 0;
	if (!rc || rc == -ECONNREFUSED || rc == -ENOENT)
		return true;
	error_set(err, HALE_ERR_SYSTEM,
		  "the socket of descriptor %d can't be connected again (error %ld)", fd, -rc);
	return false;
}

bool fd_socket_last(int fd, const struct socket_record *x, struct error *err)
{
	int one = 1;
	if (x->end == SOCKET_ALONE) {
		fd_socket_write_early(fd, x);
		if (!connect_again(fd, x, err))
			return false;
		if (x->shut)
			sys(SYS_shutdown, fd,
			    x->shut == SOCKET_NO_READ	 ? SHUT_RD
			    : x->shut == SOCKET_NO_WRITE ? SHUT_WR
							 : SHUT_RDWR);
		return true;
	}
	if (x->end == SOCKET_WAITS)
		return fd_waits_connect_one(fd, x, err);
	if (x->end != SOCKET_LISTENS || listens_already(fd)) /* another process has it, too */
		return true;
	if (x->family != AF_UNIX)
		sys(SYS_setsockopt, fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	/* the program may have taken that back from one of them since, but none could be bound then
	 */
	if (x->shut & SOCKET_SHARES)
		sys(SYS_setsockopt, fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one));
	long rc = bind_name(fd, x);
	if (!rc)
		rc = sys(SYS_listen, fd, x->backlog);
	if (!rc && x->shut & SOCKET_SHARES)
		fd_socket_write_early(fd, x);
	if (!rc)
		return true;
	error_set(err, HALE_ERR_SYSTEM,
		  "can't listen at the address of descriptor %d again (error %ld): something else "
		  "has it",
		  fd, -rc);
	return false;
}
