// SPDX-License-Identifier: BSD-3-Clause
/* Connections inside the process, and signals that wait with a value. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "image/test/scenario.h"

struct connection {
	int caller, called;
	struct sockaddr_in name, peer; /* of the caller */
};

static void put(int fd, const char *text)
{
	CHECK(send(fd, text, strlen(text), MSG_NOSIGNAL) == (ssize_t)strlen(text));
}

/* All that comes, until what is expected is there. */
static void get(int fd, const char *expected)
{
	char text[256];
	size_t have = 0, len = strlen(expected);
	while (have < len) {
		ssize_t n = recv(fd, text + have, len - have, 0);
		CHECK(n > 0);
		have += (size_t)n;
	}
	CHECK(!memcmp(text, expected, len));
}

static void get_end(int fd)
{
	char c;
	CHECK(recv(fd, &c, 1, 0) == 0);
}

static struct connection connect_tcp(int at)
{
	struct connection c = {.caller = socket(AF_INET, SOCK_STREAM, 0)};
	struct sockaddr_in to;
	socklen_t len = sizeof(to);
	CHECK(!getsockname(at, (struct sockaddr *)&to, &len));
	CHECK(!connect(c.caller, (struct sockaddr *)&to, len));
	c.called = accept(at, NULL, NULL);
	CHECK(c.called >= 0 && !getsockname(c.caller, (struct sockaddr *)&c.name, &len) &&
	      !getpeername(c.caller, (struct sockaddr *)&c.peer, &len));
	return c;
}

static bool has_names(const struct connection *c)
{
	struct sockaddr_in name, peer;
	socklen_t len = sizeof(name);
	return !getsockname(c->caller, (struct sockaddr *)&name, &len) &&
	       !getpeername(c->caller, (struct sockaddr *)&peer, &len) &&
	       name.sin_port == c->name.sin_port && peer.sin_port == c->peer.sin_port &&
	       name.sin_addr.s_addr == c->name.sin_addr.s_addr;
}

static void tcp_connections(void)
{
	int at = socket(AF_INET, SOCK_STREAM, 0), one = 1, set = 0;
	struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t len = sizeof(set);
	static char block[100000], here[100000];
	CHECK(!bind(at, (struct sockaddr *)&any, sizeof(any)) && !listen(at, 5));
	struct connection open = connect_tcp(at), half = connect_tcp(at), left = connect_tcp(at);
	CHECK(!setsockopt(open.caller, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)));
	memset(block, 'b', sizeof(block));
	put(open.caller, "there");
	put(open.called, "and back");
	CHECK(send(half.called, block, sizeof(block), 0) == (ssize_t)sizeof(block));
	put(half.caller, "no more");
	CHECK(!shutdown(half.caller, SHUT_WR));
	put(left.caller, "last words");
	CHECK(!close(left.caller));
	/* a moment for what is on its way, which a capture would refuse */
	struct pollfd end = {.fd = left.called, .events = POLLRDHUP};
	CHECK(poll(&end, 1, 5000) == 1);
	end.fd = half.called;
	CHECK(poll(&end, 1, 5000) == 1);
	take();
	CHECK(has_names(&open) && has_names(&half));
	CHECK(!getsockopt(open.caller, IPPROTO_TCP, TCP_NODELAY, &set, &len) && set);
	get(open.called, "there");
	get(open.caller, "and back");
	put(open.caller, "more");
	get(open.called, "more");
	get(half.called, "no more");
	get_end(half.called);
	CHECK(recv(half.caller, here, sizeof(here), MSG_WAITALL) == (ssize_t)sizeof(here));
	CHECK(!memcmp(here, block, sizeof(here)));
	put(half.called, "still there");
	get(half.caller, "still there");
	CHECK(send(half.caller, "x", 1, MSG_NOSIGNAL) == -1 && errno == EPIPE);
	get(left.called, "last words");
	get_end(left.called);
	struct connection new = connect_tcp(at);
	put(new.caller, "new");
	get(new.called, "new");
}

/* Number n of what one end has sent; each end sends another sequence. */
static unsigned char full_byte(int end, size_t n)
{
	return (unsigned char)((n * 31 + (n >> 8) * 7 + (size_t)end * 101) % 251);
}

static size_t full_send(int fd, int end, size_t from, size_t most)
{
	static unsigned char block[65536];
	size_t sent = 0;
	for (ssize_t n = 1; n > 0 && sent<most; sent += n> 0 ? (size_t)n : 0) {
		size_t len = most - sent < sizeof(block) ? most - sent : sizeof(block);
		for (size_t i = 0; i < len; i++)
			block[i] = full_byte(end, from + sent + i);
		n = send(fd, block, len, MSG_DONTWAIT);
	}
	return sent;
}

static void full_get(int fd, int end, size_t from, size_t len)
{
	static unsigned char block[65536];
	while (len > 0) {
		ssize_t n = recv(fd, block, len < sizeof(block) ? len : sizeof(block), 0);
		CHECK(n > 0);
		for (ssize_t i = 0; i < n; i++)
			CHECK(block[i] == full_byte(end, from + (size_t)i));
		from += (size_t)n;
		len -= (size_t)n;
	}
}

static void full_tcp_connections(void)
{
	int at = socket(AF_INET, SOCK_STREAM, 0), more = 1 << 20, left = 0;
	struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	CHECK(!bind(at, (struct sockaddr *)&any, sizeof(any)) && !listen(at, 5));
	struct connection both = connect_tcp(at), one = connect_tcp(at);
	/* so that it is more than what a rank may save, and not more than an image takes */
	CHECK(!setsockopt(both.caller, SOL_SOCKET, SO_SNDBUF, &more, sizeof(more)));
	size_t there = full_send(both.caller, 1, 0, 1 << 20),
	       back = full_send(both.called, 2, 0, 300000);
	size_t last = full_send(one.called, 3, 0, 500000);
	CHECK(there > 300000 && back == 300000 && last == 500000);
	CHECK(!ioctl(both.caller, 0x894B /* SIOCOUTQNSD */, &left) && left > 0);
	take();
	full_get(both.called, 1, 0, there);
	full_get(both.caller, 2, 0, back);
	full_get(one.caller, 3, 0, last);
	CHECK(recv(both.called, &left, 1, MSG_DONTWAIT) == -1 && errno == EAGAIN);
	CHECK(full_send(both.caller, 1, there, 1000) == 1000);
	full_get(both.called, 1, there, 1000);
}

static struct sockaddr_in6 loopback6(int fd)
{
	struct sockaddr_in6 at = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	socklen_t len = sizeof(at);
	CHECK(fd >= 0 && !bind(fd, (struct sockaddr *)&at, len) &&
	      !getsockname(fd, (struct sockaddr *)&at, &len));
	return at;
}

/* One of IPv6 that one of IPv4 calls, too. */
static void ipv6_connections(void)
{
	int at = socket(AF_INET6, SOCK_STREAM, 0), caller = socket(AF_INET6, SOCK_STREAM, 0);
	int other = socket(AF_INET, SOCK_STREAM, 0), alone = socket(AF_INET6, SOCK_STREAM, 0);
	struct sockaddr_in6 name = {.sin6_family = AF_INET6}, bound = loopback6(alone);
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t len = sizeof(name);
	CHECK(!bind(at, (struct sockaddr *)&name, len) && !listen(at, 5));
	CHECK(!getsockname(at, (struct sockaddr *)&name, &len));
	to.sin_port = name.sin6_port;
	name.sin6_addr = (struct in6_addr)IN6ADDR_LOOPBACK_INIT;
	CHECK(!connect(caller, (struct sockaddr *)&name, len));
	int called = accept(at, NULL, NULL);
	CHECK(!connect(other, (struct sockaddr *)&to, sizeof(to)));
	int other_called = accept(at, NULL, NULL);
	put(called, "over six");
	put(other, "over four");
	take();
	get(caller, "over six");
	get(other_called, "over four");
	put(other_called, "to four");
	get(other, "to four");
	int new = socket(AF_INET, SOCK_STREAM, 0);
	CHECK(!connect(new, (struct sockaddr *)&to, sizeof(to)));
	put(accept(at, NULL, NULL), "heard");
	get(new, "heard");
	CHECK(!getsockname(alone, (struct sockaddr *)&name, &len) &&
	      name.sin6_port == bound.sin6_port && !listen(alone, 1));
}

static void datagrams(void)
{
	int to = socket(AF_INET6, SOCK_DGRAM, 0), from = socket(AF_INET6, SOCK_DGRAM, 0);
	int box = socket(AF_UNIX, SOCK_DGRAM, 0), sender = socket(AF_UNIX, SOCK_DGRAM, 0);
	int unused = socket(AF_UNIX, SOCK_STREAM, 0), one = 1, set = 0;
	struct sockaddr_in6 name = loopback6(to), peer;
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	socklen_t len = sizeof(peer);
	snprintf(un.sun_path, sizeof(un.sun_path), "%s", in_folder("box"));
	CHECK(!connect(from, (struct sockaddr *)&name, sizeof(name)));
	CHECK(!setsockopt(to, SOL_SOCKET, SO_BROADCAST, &one, sizeof(one)));
	CHECK(!bind(box, (struct sockaddr *)&un, sizeof(un)));
	CHECK(!connect(sender, (struct sockaddr *)&un, sizeof(un)));
	take();
	CHECK(!getpeername(from, (struct sockaddr *)&peer, &len) &&
	      peer.sin6_port == name.sin6_port);
	len = sizeof(set);
	CHECK(!getsockopt(to, SOL_SOCKET, SO_BROADCAST, &set, &len) && set);
	put(from, "datagram");
	get(to, "datagram");
	put(sender, "letter");
	get(box, "letter");
	snprintf(un.sun_path, sizeof(un.sun_path), "%s", in_folder("door"));
	unlink(un.sun_path); /* of the first run */
	CHECK(!bind(unused, (struct sockaddr *)&un, sizeof(un)) && !listen(unused, 1));
}

static void bind_un(int fd, const char *name)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	snprintf(un.sun_path, sizeof(un.sun_path), "%s", in_folder(name));
	unlink(un.sun_path);
	CHECK(!bind(fd, (struct sockaddr *)&un, sizeof(un)));
}

static void get_from(int fd, const char *expected, const void *from, socklen_t from_len)
{
	struct sockaddr_storage seen = {0};
	socklen_t len = sizeof(seen);
	char text[64];
	ssize_t n = recvfrom(fd, text, sizeof(text), MSG_DONTWAIT, (struct sockaddr *)&seen, &len);
	CHECK(n == (ssize_t)strlen(expected) && !memcmp(text, expected, (size_t)n));
	CHECK(len == from_len && !memcmp(&seen, from, from_len));
}

/* Each comes from whom it came from, whether that is still there or not. */
static void unread_datagrams(void)
{
	int to = socket(AF_INET6, SOCK_DGRAM, 0), from = socket(AF_INET6, SOCK_DGRAM, 0);
	int box = socket(AF_UNIX, SOCK_DGRAM, 0), named = socket(AF_UNIX, SOCK_DGRAM, 0);
	int nobody = socket(AF_UNIX, SOCK_DGRAM, 0), pair[2];
	struct sockaddr_in6 name = loopback6(to), sender = loopback6(from);
	struct sockaddr_un un = {0};
	socklen_t len = sizeof(un);
	char c;
	CHECK(!socketpair(AF_UNIX, SOCK_DGRAM, 0, pair));
	bind_un(box, "box");
	bind_un(named, "named");
	CHECK(!getsockname(box, (struct sockaddr *)&un, &len));
	CHECK(!connect(named, (struct sockaddr *)&un, len));
	CHECK(!connect(nobody, (struct sockaddr *)&un, len));
	CHECK(!connect(from, (struct sockaddr *)&name, sizeof(name)));
	CHECK(!connect(to, (struct sockaddr *)&sender, sizeof(sender)));
	put(from, "one");
	put(from, "and two");
	put(to, "back");
	put(named, "of a name");
	put(nobody, "of nobody");
	put(pair[0], "of a half");
	CHECK(!close(pair[0]) && !shutdown(to, SHUT_WR));
	len = sizeof(un);
	CHECK(!getsockname(named, (struct sockaddr *)&un, &len));
	take();
	get_from(to, "one", &sender, sizeof(sender));
	get_from(to, "and two", &sender, sizeof(sender));
	get_from(from, "back", &name, sizeof(name));
	CHECK(recv(to, &c, 1, MSG_DONTWAIT) == -1 && errno == EAGAIN);
	CHECK(send(to, &c, 1, MSG_NOSIGNAL) == -1 && errno == EPIPE);
	put(from, "more");
	get_from(to, "more", &sender, sizeof(sender));
	get_from(box, "of a name", &un, len);
	get_from(box, "of nobody", &un, 0);
	get_from(pair[1], "of a half", &un, 0);
	put(named, "once more");
	get_from(box, "once more", &un, len);
}

static void named_sockets(void)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX}, other;
	socklen_t len = sizeof(other);
	int at = socket(AF_UNIX, SOCK_STREAM, 0), caller = socket(AF_UNIX, SOCK_STREAM, 0);
	snprintf(name.sun_path, sizeof(name.sun_path), "%s", in_folder("door"));
	CHECK(!bind(at, (struct sockaddr *)&name, sizeof(name)) && !listen(at, 5));
	CHECK(!connect(caller, (struct sockaddr *)&name, sizeof(name)));
	int called = accept(at, NULL, NULL);
	put(caller, "knock");
	put(called, "come in");
	take();
	get(called, "knock");
	get(caller, "come in");
	CHECK(!getpeername(caller, (struct sockaddr *)&other, &len) &&
	      !strcmp(other.sun_path, name.sun_path));
	int again = socket(AF_UNIX, SOCK_STREAM, 0);
	CHECK(!connect(again, (struct sockaddr *)&name, sizeof(name)));
	int there = accept(at, NULL, NULL);
	put(again, "once more");
	get(there, "once more");
}

static void pairs_of_sockets(void)
{
	int mail[2], packets[2], half[2], left[2];
	char text[64];
	CHECK(!socketpair(AF_UNIX, SOCK_DGRAM, 0, mail));
	CHECK(!socketpair(AF_UNIX, SOCK_SEQPACKET, 0, packets));
	CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, half));
	CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, left));
	put(mail[0], "first");
	put(mail[0], "second letter");
	put(packets[1], "one");
	put(packets[1], "two");
	put(half[0], "half");
	CHECK(!shutdown(half[0], SHUT_WR));
	put(left[0], "left");
	CHECK(!close(left[0]));
	take();
	CHECK(recv(mail[1], text, sizeof(text), 0) == 5 && !memcmp(text, "first", 5));
	CHECK(recv(mail[1], text, sizeof(text), 0) == 13 && !memcmp(text, "second letter", 13));
	CHECK(recv(mail[1], text, sizeof(text), MSG_DONTWAIT) == -1 && errno == EAGAIN);
	CHECK(recv(packets[0], text, sizeof(text), 0) == 3 && !memcmp(text, "one", 3));
	CHECK(recv(packets[0], text, sizeof(text), 0) == 3 && !memcmp(text, "two", 3));
	get(half[1], "half");
	get_end(half[1]);
	put(half[1], "answer");
	get(half[0], "answer");
	get(left[1], "left");
	get_end(left[1]);
}

/* What was sent with them, in order, each once. */
static void queued_signals(void)
{
	sigset_t set;
	siginfo_t info;
	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN + 1);
	sigaddset(&set, SIGUSR2);
	sigprocmask(SIG_BLOCK, &set, NULL);
	for (int i = 5; i < 8; i++)
		CHECK(!sigqueue(getpid(), SIGRTMIN + 1, (union sigval){.sival_int = i}));
	CHECK(!sigqueue(getpid(), SIGUSR2, (union sigval){.sival_int = 9}));
	int handle = (int)syscall(SYS_pidfd_open, getpid(), 0);
	CHECK(handle >= 0);
	take();
	CHECK(sigwaitinfo(&set, &info) == SIGUSR2 && info.si_value.sival_int == 9);
	for (int i = 5; i < 8; i++)
		CHECK(sigwaitinfo(&set, &info) == SIGRTMIN + 1 && info.si_value.sival_int == i &&
		      info.si_code == SI_QUEUE);
	CHECK(!sigpending(&set) && !sigismember(&set, SIGRTMIN + 1) && !sigismember(&set, SIGUSR2));
	CHECK(!syscall(SYS_pidfd_send_signal, handle, SIGUSR2, NULL, 0));
	CHECK(!sigpending(&set) && sigismember(&set, SIGUSR2));
}

const struct scenario scenarios_sockets[] = {{"tcp_connections", tcp_connections},
					     {"full_tcp_connections", full_tcp_connections},
					     {"ipv6_connections", ipv6_connections},
					     {"datagrams", datagrams},
					     {"unread_datagrams", unread_datagrams},
					     {"named_sockets", named_sockets},
					     {"pairs_of_sockets", pairs_of_sockets},
					     {"queued_signals", queued_signals},
					     {NULL, NULL}};
