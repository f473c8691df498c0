/* SPDX-License-Identifier: BSD-3-Clause */
/* A stream of its own for each rank that moves, from the source's host to the target's: the agents
 * make a connection and hand it to the two processes, so that nothing passes the head. The target
 * listens while it may get copies; the source's agent calls before the first round. Both prove that
 * they know the job's secret before anything else is said (as ranks do, docs/network-channel.md):
 *
 *     source's agent                                target's agent
 *       │ hello {migration, rank, nonce, filling} ────▶ │
 *       │ ◀───────────── challenge {nonce, MAC("called")} │
 *       │ proof {MAC("caller")} ──────────────────────▶ │ hands it to the copy
 *       hands it to the rank
 *
 * The filling makes packets as large as the stream's will be: who takes the connection and doesn't
 * answer may not have got them (docs/network-channel.md, 'Packets that are too large'), and is
 * called again with smaller ones.
 *
 * Whatever goes wrong before the proof is said means: by relay, as ever. After it the stream is
 * this one, and its end is that of the migration, which leaves all where they were. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sodium/crypto_auth_hmacsha512256.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/base.h"
#include "agent/agent_private.h"

enum { NONCE = 32, MAC = crypto_auth_hmacsha512256_BYTES, HANDS_MAX = 64 };
/* A packet of the largest that Ethernet has; and what IPv6 takes everywhere. */
enum { FILLING = 9000, SMALL_SEGMENT = 1200 };

#define CALL_SECONDS 2.0

static const char magic[8] = "HALEMOVE";

struct direct_hello {
	char magic[8];
	uint32_t id, rank;
	unsigned char nonce[NONCE];
	unsigned char filling[FILLING];
};

struct direct_challenge {
	unsigned char nonce[NONCE], mac[MAC];
};

/* Over all that was said, and by whom. */
struct agent_direct_said {
	char who[8];
	struct direct_hello hello;
	unsigned char nonce[NONCE];
};

enum direct_stage { CALLING, WAIT_CHALLENGE, WAIT_HELLO, WAIT_PROOF };

/* Where the target listens, and how many of these have been tried. */
struct direct_call {
	struct reach_place place[AGENT_PLACES];
	unsigned count, tried;
	bool small; /* in packets of SMALL_SEGMENT */
};

struct direct_hand {
	struct agent *agent;
	enum direct_stage stage;
	struct loop_source source;
	struct loop_timer late;
	struct direct_hello hello;
	struct direct_challenge challenge;
	unsigned char proof[MAC];
	size_t have;
	struct direct_call call; /* of ours */
	struct direct_hand *next;
};

_Static_assert((int)SEGMENT_SECRET == (int)crypto_auth_hmacsha512256_KEYBYTES, "the whole key");

/* ---- MACs ---- */

static void mac_make(const struct direct_hand *d, const char *who, unsigned char mac[MAC])
{
	struct agent_direct_said said = {.hello = d->hello};

	memcpy(said.who, who, 6);
	memcpy(said.nonce, d->challenge.nonce, NONCE);
	crypto_auth_hmacsha512256(mac, (unsigned char *)&said, sizeof(said),
				  d->agent->setup.secret);
}

/* In a time that doesn't depend on where they differ. */
static bool mac_is(const struct direct_hand *d, const char *who, const unsigned char mac[MAC])
{
	unsigned char right[MAC];
	volatile unsigned char differ = 0;

	mac_make(d, who, right);
	for (unsigned i = 0; i < MAC; i++)
		differ = (unsigned char)(differ | (mac[i] ^ right[i]));
	return differ == 0;
}

static bool nonce_make(unsigned char nonce[NONCE])
{
	return getrandom(nonce, NONCE, GRND_NONBLOCK) == NONCE;
}

/* ---- life ---- */

static void hand_drop(struct direct_hand *d, bool keep_open)
{
	struct direct_hand **at = &d->agent->move.hands;
	int fd = d->source.fd;

	while (*at && *at != d)
		at = &(*at)->next;
	if (*at)
		*at = d->next;
	loop_timer_clear(&d->agent->loop, &d->late);
	loop_remove(&d->agent->loop, &d->source);
	if (!keep_open && fd >= 0)
		close(fd);
	free(d);
}

static bool call(struct agent *a, uint32_t rank, struct direct_call *c);

/* A caller that gets no further at this address tries the next one, and behind the last one goes by
 * relay; a stranger is nobody's business. */
static void give_up(struct direct_hand *d)
{
	struct agent *a = d->agent;
	bool ours = d->stage <= WAIT_CHALLENGE;
	uint32_t rank = d->hello.rank;
	struct direct_call next = d->call;

	if (d->stage == WAIT_CHALLENGE && !next.small) {
		next.small = true;
		next.tried--; /* the same address */
	}
	hand_drop(d, false);
	if (ours && !call(a, rank, &next))
		agent_relay_decided(a, rank, true, -1);
}

static void late(void *arg)
{
	give_up(arg);
}

static void hand_ready(void *arg, uint32_t events);

static struct direct_hand *hand_make(struct agent *a, int fd, enum direct_stage stage)
{
	struct direct_hand *d = calloc(1, sizeof(*d));

	if (!d || !loop_add(&a->loop, &d->source, fd, stage == CALLING ? EPOLLOUT : EPOLLIN,
			    hand_ready, d)) {
		free(d);
		close(fd);
		return NULL;
	}
	d->agent = a;
	d->stage = stage;
	d->next = a->move.hands;
	a->move.hands = d;
	loop_timer_set(&a->loop, &d->late, CALL_SECONDS, late, d);
	return d;
}

void agent_direct_end(struct agent *a)
{
	struct agent_move *v = &a->move;

	while (v->hands)
		hand_drop(v->hands, false);
	for (unsigned i = 0; i < AGENT_PLACES; i++) {
		int fd = v->direct[i].fd;

		loop_remove(&a->loop, &v->direct[i]);
		if (fd >= 0)
			close(fd);
		v->direct[i].fd = -1;
	}
}

/* ---- steps ---- */

/* So short that an empty socket takes it whole. */
static bool say(struct direct_hand *d, const void *what, size_t len)
{
	if (send(d->source.fd, what, len, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)len)
		return true;
	give_up(d);
	return false;
}

/* True: all of it is there. Not a byte more is read: what follows is the stream. */
static bool hear(struct direct_hand *d, void *what, size_t len)
{
	ssize_t n = recv(d->source.fd, (char *)what + d->have, len - d->have, MSG_DONTWAIT);

	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
		give_up(d);
		return false;
	}
	d->have += n > 0 ? (size_t)n : 0;
	if (d->have < len)
		return false;
	d->have = 0;
	return true;
}

/* The stream's own settings; what the handshake waited for, the processes wait for themselves. */
static void established(struct direct_hand *d)
{
	struct agent *a = d->agent;
	uint32_t rank = d->hello.rank;
	int fd = d->source.fd, one = 1, ms = 30000;
	bool out = d->stage <= WAIT_CHALLENGE;

	hand_drop(d, true);
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
	setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof(ms));
	agent_relay_decided(a, rank, out, fd);
}

static void called(struct direct_hand *d)
{
	int code = 0;
	socklen_t len = sizeof(code);

	if (getsockopt(d->source.fd, SOL_SOCKET, SO_ERROR, &code, &len) != 0 || code != 0) {
		give_up(d);
		return;
	}
	if (!say(d, &d->hello, sizeof(d->hello)))
		return;
	d->stage = WAIT_CHALLENGE;
	loop_change(&d->agent->loop, &d->source, EPOLLIN);
}

static void challenge_came(struct direct_hand *d)
{
	if (!mac_is(d, "called", d->challenge.mac)) {
		give_up(d);
		return;
	}
	mac_make(d, "caller", d->proof);
	if (say(d, d->proof, sizeof(d->proof)))
		established(d);
}

static void hello_came(struct direct_hand *d)
{
	const struct direct_hello *h = &d->hello;

	if (memcmp(h->magic, magic, sizeof(magic)) != 0 || h->id != d->agent->move.id ||
	    !agent_moves_in(d->agent, h->rank) || !nonce_make(d->challenge.nonce)) {
		give_up(d);
		return;
	}
	mac_make(d, "called", d->challenge.mac);
	if (say(d, &d->challenge, sizeof(d->challenge)))
		d->stage = WAIT_PROOF;
}

static void hand_ready(void *arg, uint32_t events)
{
	struct direct_hand *d = arg;

	switch (d->stage) {
	case CALLING:
		called(d);
		break;
	case WAIT_CHALLENGE:
		if (hear(d, &d->challenge, sizeof(d->challenge)))
			challenge_came(d);
		break;
	case WAIT_HELLO:
		if (hear(d, &d->hello, sizeof(d->hello)))
			hello_came(d);
		break;
	case WAIT_PROOF:
		if (!hear(d, d->proof, sizeof(d->proof)))
			break;
		if (mac_is(d, "caller", d->proof))
			established(d);
		else
			give_up(d);
		break;
	}
}

/* ---- listening ---- */

static void accept_one(void *arg, uint32_t events)
{
	struct agent *a = arg;
	unsigned count = 0;

	for (const struct direct_hand *d = a->move.hands; d; d = d->next)
		count++;
	for (unsigned i = 0; i < AGENT_PLACES; i++) {
		int fd = a->move.direct[i].fd < 0 ? -1
						  : accept4(a->move.direct[i].fd, NULL, NULL,
							    SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd >= 0 && count < HANDS_MAX)
			hand_make(a, fd, WAIT_HELLO);
		else if (fd >= 0)
			close(fd);
	}
}

static unsigned own_places(const struct agent *a, struct reach_place place[AGENT_PLACES])
{
	struct reach_wish wish = agent_reach_wish(a);
	char why[400];

	return reach_find(place, &wish, (a->setup.flags & SETUP_LOCAL) != 0, why, sizeof(why));
}

unsigned agent_direct_listen(struct agent *a, struct reach_place place[AGENT_PLACES])
{
	const char *way = agent_variable(a, "HALE_MIGRATE_WAY");
	struct reach_wish wish = agent_reach_wish(a);
	struct reach_place found[AGENT_PLACES];
	unsigned n = 0, count = way && strcmp(way, "relay") == 0 ? 0 : own_places(a, found);

	for (unsigned i = 0; i < count; i++) {
		struct loop_source *s = &a->move.direct[n];
		int fd;

		place[n] = found[i];
		fd = reach_listen(&place[n], &wish, NULL);
		if (fd >= 0 && loop_add(&a->loop, s, fd, EPOLLIN, accept_one, a))
			n++;
		else if (fd >= 0)
			close(fd);
	}
	return n;
}

/* ---- calling ---- */

/* The next of the target's addresses that answers to connect() at all; -1: there is none. */
static int call_next(const struct agent *a, struct direct_call *c)
{
	struct reach_place own[AGENT_PLACES];
	unsigned nown = own_places(a, own);

	while (c->tried < c->count) {
		struct reach_place to = reach_choose(c->place, c->count, own, nown, c->tried++);
		union reach_sockaddr at;
		socklen_t bytes;
		int fd = reach_socket(&to, &at, &bytes), small = SMALL_SEGMENT;

		if (fd >= 0 && c->small)
			setsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &small, sizeof(small));
		if (fd >= 0 && (connect(fd, &at.any, bytes) == 0 || errno == EINPROGRESS))
			return fd;
		if (fd >= 0)
			close(fd);
	}
	return -1;
}

static bool call(struct agent *a, uint32_t rank, struct direct_call *c)
{
	struct direct_hand *d;
	int fd = call_next(a, c);

	if (fd < 0)
		return false;
	d = hand_make(a, fd, CALLING);
	if (!d)
		return false;
	d->call = *c;
	d->hello = (struct direct_hello){.id = a->move.id, .rank = rank};
	memcpy(d->hello.magic, magic, sizeof(magic));
	if (nonce_make(d->hello.nonce))
		return true;
	hand_drop(d, false);
	return false;
}

bool agent_direct_call(struct agent *a, uint32_t rank, const void *places, size_t len)
{
	struct direct_call c = {.count = (unsigned)(len / sizeof(c.place[0]))};

	if (len > sizeof(c.place) || len % sizeof(c.place[0]) != 0)
		return false;
	memcpy(c.place, places, len);
	return call(a, rank, &c);
}
