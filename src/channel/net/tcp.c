// SPDX-License-Identifier: BSD-3-Clause
/* struct net_wire over TCP, by nothing but system calls: for networks without RDMA. Linked into the
 * library itself, since it needs no memory but ours (base/heap.h).
 *
 * A process that sleeps, or has many connections, hears from epoll what has come, once of each
 * (edge-triggered). That costs whoever sends a tenth of a microsecond a message. So as long as a
 * process finds what it waits for without sleeping, epoll doesn't look at its few connections, and
 * poll is asked, which takes no lock of a socket: reading one in vain takes the lock that what
 * comes next needs. */
#include "channel/net/tcp.h"

#include <errno.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/fmt.h"

enum {
	EVENTS_AT_ONCE = 32,
	READS_AT_ONCE = 8,
	FEW = 4,	      /* connections that poll is asked about */
	AWAKE = 64,	      /* rounds that bring something before epoll stops looking */
	IDLE_NS = 100,	      /* after a round that brought nothing */
	ROUNDS_PER_LOOK = 32, /* at what happens rarely: connections that come */
	RTO_MAX_MS = 1000,
	IN_VAIN = 2,
};

#ifndef TCP_RTO_MAX_MS /* Linux 6.15 */
#define TCP_RTO_MAX_MS 44
#endif

struct tcp tcp;

/* ---- sockets ---- */

void tcp_watch(struct tcp_socket *s, uint32_t events)
{
	struct epoll_event e = {.events = events, .data.ptr = s};
	int op = !events ? EPOLL_CTL_DEL : s->events ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
	if (events == s->events)
		return;
	epoll_ctl(tcp.epoll, op, s->fd, &e);
	s->events = events;
}

void tcp_conn_watch(struct tcp_conn *c)
{
	if (tcp.nlive > FEW && !tcp.watching) {
		tcp.watching = true;
		for (uint32_t i = 0; i < tcp.nlive; i++)
			tcp_conn_watch(tcp.live[i]);
	}
	if (c->socket.fd >= 0)
		tcp_watch(&c->socket, tcp.watching ? EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET : 0);
}

/* Also where a child of the program still has it: the other side must see that it's over. */
void tcp_socket_close(struct tcp_socket *s)
{
	if (s->fd < 0)
		return;
	tcp_watch(s, 0);
	shutdown(s->fd, s->kind == TCP_CONN ? SHUT_WR : SHUT_RDWR);
	close(s->fd);
	s->fd = -1;
}

/* BBR spreads what is sent over time by an estimate of the bandwidth; between hosts that are some
 * microseconds apart the estimate is often a fraction of what there is (docs/network-channel.md has
 * figures). Reno is always allowed, and there as good as cubic, which may end its slow start before
 * a window of one message is reached. HALE_NET_CONGESTION=NAME decides otherwise.
 *
 * To be chosen before there is a connection, so for listening sockets, too: once BBR has begun with
 * one, the kernel goes on spreading what is sent over time, whatever is chosen afterwards. */
static void congestion_choose(int fd)
{
	const char *wanted = getenv("HALE_NET_CONGESTION");
	char now[16] = "";
	socklen_t length = sizeof(now) - 1;
	if (wanted) {
		if (setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, wanted,
			       (socklen_t)strlen(wanted)) &&
		    !tcp.congestion_said)
			log_warn("HALE_NET_CONGESTION=%s: the kernel doesn't have or allow that: "
				 "%m; see /proc/sys/net/ipv4/tcp_allowed_congestion_control",
				 wanted);
		tcp.congestion_said = true;
		return;
	}
	if (getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, now, &length) || strncmp(now, "bbr", 3))
		return;
	setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", 4);
}

/* What is lost on the way is sent again at least once a second, so that a cable that was out for a
 * while is noticed soon after it is in again; and silence for too long is an error, whether
 * something was on its way or not. */
void tcp_socket_prepare(int fd)
{
	int one = 1, every = 1, rto = RTO_MAX_MS;
	int idle = (int)(tcp.self.timeout_ns / 2000000000u) + 1;
	unsigned ms = (unsigned)(tcp.self.timeout_ns / 1000000);
	congestion_choose(fd);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &every, sizeof(every));
	setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof(ms));
	setsockopt(fd, IPPROTO_TCP, TCP_RTO_MAX_MS, &rto, sizeof(rto));
}

/* ---- packets that are lost because they are large ----
 *
 * Something between two hosts may take less than both of them, and say nothing: then a connection
 * stands still although the peer's host answers, and is made again, for nothing. So the next one
 * gets smaller packets; if its host has answered at once all others do, too. */

/* 0: what the link takes; then IPv6's least MTU, and that of IPv4, less 80 and 64 bytes of headers.
 */
static const int segments[] = {0, 1200, 512};

/* After silence smaller than they were there. */
static unsigned small_of(const struct tcp_road *r)
{
	unsigned next = r->small + (r->small + 1u < ARRAY_LEN(segments));
	return r->silent && next > tcp.small ? next : tcp.small;
}

static void segment_choose(int fd, unsigned small)
{
	if (small)
		setsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &segments[small], sizeof(segments[small]));
}

void tcp_road_prepare(uint32_t peer, int fd)
{
	segment_choose(fd, small_of(&tcp.road[peer]));
}

void tcp_road_silent(uint32_t peer)
{
	tcp.road[peer].silent = true;
}

void tcp_road_cut(uint32_t peer)
{
	tcp.road[peer].silent = tcp.road[peer].stood = false;
}

/* Who connects to a listener that wants small packets gets such, and sends such. */
void tcp_road_open(uint32_t peer)
{
	struct tcp_road *r = &tcp.road[peer];
	unsigned small = small_of(r);
	r->attempts = 0;
	r->silent = false;
	r->small = (uint8_t)small;
	if (small == tcp.small)
		return;
	tcp.small = small;
	for (unsigned i = 0; i < tcp.nplaces; i++)
		segment_choose(tcp.listener[i].fd, tcp.small);
	if (tcp.calls.smaller)
		tcp.calls.smaller(peer, (uint32_t)segments[tcp.small]);
}

/* One that is closed in good order, for a checkpoint: does it stand still, with more to send than a
 * small packet holds? Each time that something is sent again, in vain, takes twice as long as the
 * last one. A cable that was out for a moment looks like that, too: it counts when through the
 * connection after it next to nothing has got either, though its host has answered. */
static void road_look(const struct tcp_conn *c)
{
	struct tcp_road *r = &tcp.road[c->peer];
	struct {
		struct tcp_info is;
		uint64_t pacing, pacing_most, acked; /* Linux has more than <netinet/tcp.h> */
	} link = {0};
	socklen_t length = sizeof(link);
	int waits;
	_Static_assert(offsetof(typeof(link), acked) == 120, "as in <linux/tcp.h>");
	if (c->failed || getsockopt(c->socket.fd, IPPROTO_TCP, TCP_INFO, &link, &length) ||
	    ioctl(c->socket.fd, SIOCOUTQ, &waits))
		return;
	if (link.is.tcpi_retransmits >= IN_VAIN && waits > segments[ARRAY_LEN(segments) - 1]) {
		r->silent = r->stood && link.acked <= link.is.tcpi_snd_mss;
		r->stood = true;
	} else if (link.is.tcpi_retransmits == 0) {
		r->stood = false;
	}
}

/* ---- open and close ---- */

static void listener_prepare(int fd)
{
	congestion_choose(fd);
	segment_choose(fd, tcp.small);
}

static bool listener_open(struct tcp_socket *l, struct reach_place *place,
			  const struct reach_wish *wish)
{
	int fd = reach_listen(place, wish, listener_prepare);
	*l = (struct tcp_socket){.kind = TCP_LISTENER, .fd = fd};
	if (fd < 0)
		return false;
	tcp_watch(l, EPOLLIN);
	return true;
}

static void listeners_close(void)
{
	for (unsigned i = 0; i < tcp.nplaces; i++)
		tcp_socket_close(&tcp.listener[i]);
	tcp.nplaces = 0;
}

/* An interface may go between the look at all of them and bind, or have no port left: the others
 * do. */
static bool listeners_open(char *why)
{
	struct reach_place found[REACH_PLACES_MAX];
	struct reach_wish wish = reach_wish_own();
	unsigned n = reach_find(found, &wish, tcp.self.one_host, why, WIRE_WHY);
	for (unsigned i = 0; i < n; i++) {
		struct reach_place *place = &tcp.address.place[tcp.nplaces];
		struct tcp_socket *l = &tcp.listener[tcp.nplaces];
		*place = found[i];
		if (listener_open(l, place, &wish)) {
			tcp.nplaces++;
			continue;
		}
		fmt_print(why, WIRE_WHY, "can't listen on a network interface%s%.60s: %m",
			  wish.ports && *wish.ports ? ", HALE_NET_PORTS=" : "",
			  wish.ports ? wish.ports : "");
	}
	return tcp.nplaces > 0;
}

static void memory_free(void)
{
	for (uint32_t i = 0; tcp.conn && i < tcp.self.npeers; i++)
		heap_free(tcp.conn[i]);
	heap_free(tcp.conn);
	heap_free(tcp.live);
	heap_free(tcp.scratch);
}

static bool memory_make(uint32_t npeers)
{
	tcp.conn = heap_calloc(npeers, sizeof(void *));
	tcp.live = heap_calloc(npeers, sizeof(void *));
	if (!tcp.road)
		tcp.road = heap_calloc(npeers, sizeof(*tcp.road));
	tcp.scratch = heap_alloc(TCP_SCRATCH);
	if (tcp.conn && tcp.live && tcp.road && tcp.scratch)
		return true;
	memory_free();
	return false;
}

static bool tcp_open(const struct wire_self *self, const struct wire_calls *calls, char *why)
{
	tcp = (struct tcp){.self = *self,
			   .calls = *calls,
			   .strangers = tcp.strangers,
			   .damaged = tcp.damaged,
			   .small = tcp.small,
			   .road = tcp.road,
			   .epoll = -1};
	if (!self->secret) {
		fmt_print(why, WIRE_WHY, "whoever started this process gave it no secret");
		return false;
	}
	if (self->encrypt && !seal_init()) {
		fmt_print(why, WIRE_WHY, "the library for encryption can't be used");
		return false;
	}
	if (!memory_make(self->npeers)) {
		fmt_print(why, WIRE_WHY, "no memory for %u peers", self->npeers);
		return false;
	}
	tcp.epoll = epoll_create1(EPOLL_CLOEXEC);
	if (tcp.epoll < 0 ||
	    getrandom(tcp.address.incarnation, TCP_INCARNATION, GRND_NONBLOCK) != TCP_INCARNATION)
		fmt_print(why, WIRE_WHY, "can't make an epoll descriptor and a random number: %m");
	else if (listeners_open(why))
		return true;
	if (tcp.epoll >= 0)
		close(tcp.epoll);
	memory_free();
	return false;
}

static bool anything_out(void)
{
	for (uint32_t i = 0; i < tcp.nlive; i++)
		if (!tcp.live[i]->failed && !tcp.live[i]->error && tcp_conn_has_out(tcp.live[i]))
			return true;
	return false;
}

static void tcp_close(uint64_t max_ns)
{
	uint64_t deadline = clock_ns() + max_ns;
	tcp.corked = false;
	while (anything_out() && clock_ns() < deadline)
		for (uint32_t i = 0; i < tcp.nlive; i++) {
			tcp.live[i]->full = false;
			tcp_conn_write(tcp.live[i]);
		}
	listeners_close();
	tcp_hands_close();
	while (tcp.nlive) {
		road_look(tcp.live[0]);
		tcp_conn_drop(tcp.live[0]);
	}
	tcp_receives_end();
	close(tcp.epoll);
	memory_free();
	tcp = (struct tcp){.strangers = tcp.strangers,
			   .damaged = tcp.damaged,
			   .small = tcp.small,
			   .road = tcp.road,
			   .epoll = -1};
}

static const void *tcp_address_published(size_t *bytes)
{
	*bytes = offsetof(struct tcp_address, place) + tcp.nplaces * sizeof(struct reach_place);
	return &tcp.address;
}

static unsigned tcp_descriptors(int fd[WIRE_FDS])
{
	fd[0] = tcp.epoll;
	return 1;
}

/* ---- progress ---- */

/* Several times, so that what they bring can be answered together. */
static void read_on(struct tcp_conn *c)
{
	int k = 0;
	do
		tcp_conn_read(c);
	while (c->more && c->in != TCP_IN_AHEAD && !c->failed && ++k < READS_AT_ONCE);
}

static void conn_event(struct tcp_conn *c, uint32_t events)
{
	if (events & EPOLLOUT)
		c->full = false;
	if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
		c->ending = true;
	if (events & ~(uint32_t)EPOLLOUT && !c->more)
		read_on(c);
}

static void event(const struct epoll_event *e)
{
	struct tcp_socket *s = e->data.ptr;
	if (s->fd < 0)
		return;
	switch (s->kind) {
	case TCP_LISTENER:
		tcp_hand_accept(s->fd);
		break;
	case TCP_HAND:
		tcp_hand_event((struct tcp_hand *)s);
		break;
	case TCP_CONN:
		conn_event((struct tcp_conn *)s, e->events);
		break;
	}
}

static void look(void)
{
	struct epoll_event events[EVENTS_AT_ONCE];
	int n = epoll_wait(tcp.epoll, events, EVENTS_AT_ONCE, 0);
	for (int i = 0; i < n; i++)
		event(&events[i]);
	if (UNLIKELY(tcp.hands || tcp.dead)) {
		tcp_hands_expire(clock_ns());
		tcp_hands_bury();
	}
}

static void tcp_flush(void)
{
	tcp.corked = false;
	for (uint32_t i = 0; i < tcp.nlive; i++) {
		if (UNLIKELY(tcp_conn_has_out(tcp.live[i])))
			tcp_conn_write(tcp.live[i]);
		if (tcp.live[i]->burst)
			tcp_conn_burst_end(tcp.live[i]);
	}
}

static void look_at_few(void)
{
	struct pollfd p[FEW];
	struct tcp_conn *c[FEW];
	nfds_t n = 0;
	for (uint32_t i = 0; i < tcp.nlive; i++) {
		if (tcp.live[i]->failed)
			continue;
		c[n] = tcp.live[i];
		p[n] = (struct pollfd){.fd = c[n]->socket.fd,
				       .events = (short)(POLLIN | (c[n]->full ? POLLOUT : 0))};
		n++;
	}
	int ready = poll(p, n, 0);
	for (nfds_t i = 0; i < n && ready > 0; i++)
		if (p[i].revents)
			conn_event(c[i], (uint32_t)p[i].revents);
}

/* Shall epoll look at connections? */
static void watch(bool on)
{
	tcp.watching = on;
	tcp.brought = 0;
	for (uint32_t i = 0; i < tcp.nlive; i++)
		tcp_conn_watch(tcp.live[i]);
}

/* A look in vain takes the socket's memory away from the core of whoever is about to write there,
 * and what other channels bring waits for it. */
static bool looked_just_now(void)
{
	return tcp.idle_at && clock_ns() - tcp.idle_at < IDLE_NS;
}

static int tcp_progress(void)
{
	bool more = false;
	tcp.moved = 0;
	if (looked_just_now())
		return 0;
	tcp.corked = true;
	for (uint32_t i = 0; i < tcp.nlive; i++)
		if (tcp.live[i]->more) {
			more = true;
			read_on(tcp.live[i]);
		}
	if (!tcp.watching)
		look_at_few();
	if (tcp.watching || tcp.hands || ++tcp.rounds % ROUNDS_PER_LOOK == 0)
		look();
	if (tcp.moved && tcp.watching && tcp.nlive <= FEW && ++tcp.brought == AWAKE)
		watch(false);
	tcp.idle_at = tcp.moved || more ? 0 : clock_ns();
	return tcp.moved;
}

static bool tcp_arm(void)
{
	if (!tcp.watching)
		watch(true);
	tcp.brought = 0;
	for (uint32_t i = 0; i < tcp.nlive; i++)
		if (tcp.live[i]->more)
			return false;
	return true;
}

/* ---- connections ---- */

static unsigned places_of(size_t bytes)
{
	size_t n = (bytes - offsetof(struct tcp_address, place)) / sizeof(struct reach_place);
	return n < REACH_PLACES_MAX ? (unsigned)n : REACH_PLACES_MAX;
}

static bool tcp_connect(uint32_t peer, const void *published, size_t bytes, char *why)
{
	struct tcp_address address = {0};
	if (bytes < offsetof(struct tcp_address, place[1]) || bytes > sizeof(address)) {
		fmt_print(why, WIRE_WHY, "its address is no address");
		return false;
	}
	memcpy(&address, published, bytes);
	return tcp_hand_dial(peer, &address, places_of(bytes), why);
}

static void tcp_disconnect(uint32_t peer)
{
	struct tcp_hand *h = tcp_hand_to(peer);
	if (h)
		tcp_hand_drop(h);
	if (tcp.conn[peer])
		tcp_conn_drop(tcp.conn[peer]);
}

static enum wire_state tcp_state(uint32_t peer)
{
	const struct tcp_conn *c = tcp.conn[peer];
	if (c && c->socket.fd >= 0)
		return WIRE_UP;
	return tcp_hand_to(peer) ? WIRE_CONNECTING : WIRE_NONE;
}

static bool tcp_leads_to(uint32_t peer, const void *address, size_t bytes)
{
	const struct tcp_conn *c = tcp.conn[peer];
	return c && c->socket.fd >= 0 && bytes >= TCP_INCARNATION &&
	       memcmp(c->incarnation, address, TCP_INCARNATION) == 0;
}

/* ---- data ---- */

static enum wire_sent tcp_send(uint32_t peer, const void *header, size_t header_bytes,
			       const void *payload, size_t bytes, const struct iovec *ahead,
			       void *cookie)
{
	struct tcp_conn *c = tcp.conn[peer];
	if (UNLIKELY(!c || c->socket.fd < 0))
		return WIRE_FAILED;
	return tcp_conn_datagram(c, header, header_bytes, payload, bytes, ahead, cookie);
}

static enum wire_sent tcp_give(uint32_t peer, uint64_t token, const struct iovec *iov, size_t n,
			       void *cookie)
{
	struct tcp_conn *c = tcp.conn[peer];
	if (!c || c->socket.fd < 0)
		return WIRE_FAILED;
	return tcp_conn_give(c, token, iov, n, cookie);
}

const struct net_wire wire_tcp = {
    .version = WIRE_VERSION,
    .name = "tcp",
    .reconnects = true,
    .ahead_max = TCP_AHEAD_MAX,
    .open = tcp_open,
    .address = tcp_address_published,
    .descriptors = tcp_descriptors,
    .arm = tcp_arm,
    .progress = tcp_progress,
    .flush = tcp_flush,
    .connect = tcp_connect,
    .disconnect = tcp_disconnect,
    .state = tcp_state,
    .leads_to = tcp_leads_to,
    .send = tcp_send,
    .give = tcp_give,
    .receive = tcp_receive_begin,
    .receive_end = tcp_receive_end,
    .close = tcp_close,
};
