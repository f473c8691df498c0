// SPDX-License-Identifier: BSD-3-Clause
/* The handshake. Both sides prove that they know the job's secret, over everything that they have
 * said and two fresh random numbers; nobody says anything of the job before.
 *
 *     caller                                      called
 *       │ hello {who, to whom, nonce} ──────────────▶ │
 *       │ ◀───────── challenge {nonce, MAC("called")} │
 *       │ proof {MAC("caller")} ────────────────────▶ │
 *       │ ◀────────────────────────────────── verdict │ welcome, or crossed
 *
 * Two that call each other at the same time: the attempt of the lower rank stays. Who is no process
 * of this job is dropped and counted; so is who says nothing, and the oldest of too many at once.
 */
#include "channel/net/tcp.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sodium/crypto_auth_hmacsha512256.h>
#include <sodium/crypto_scalarmult.h>
#include <sodium/utils.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	VERSION = 2,
	HANDS_MAX = 64, /* of strangers: so many more than there are peers */
	ACCEPTS_AT_ONCE = 16,
	CALL_NS = 2000000000, /* until the other host answers */
	HELLO_NS = 2000000000,
	CROSSED_NS = 100000000,
	SILENCE_NS = 100000000, /* much longer than any way there and back */
	DOUBLINGS_MAX = 10,
};
#define ELSEWHERE_NS 30000000000u /* doubled with each time: see answer_deadline */
#define NEVER	     UINT64_MAX

enum verdict { WELCOME = 0x57, CROSSED = 0x58 };

static const char magic[8] = "HALENET";

_Static_assert(TCP_MAC == crypto_auth_hmacsha512256_BYTES, "the whole MAC");
_Static_assert(TCP_NONCE == crypto_scalarmult_BYTES, "a public key");
_Static_assert(TCP_NONCE == crypto_scalarmult_SCALARBYTES, "and what belongs to it");
_Static_assert((int)TCP_MAC == (int)SEAL_KEY, "a MAC serves as a key");
_Static_assert((int)WIRE_SECRET == (int)crypto_auth_hmacsha512256_KEYBYTES, "the whole key");

/* ---- MACs ---- */

struct tcp_hand_said {
	char who[8];
	struct tcp_hello hello;
	unsigned char nonce[TCP_NONCE];
	uint64_t cipher;
	unsigned char shared[TCP_NONCE]; /* in keys; zeroes in what is sent */
};
_Static_assert(sizeof(struct tcp_hand_said) ==
		   8 + sizeof(struct tcp_hello) + 2 * TCP_NONCE + sizeof(uint64_t),
	       "no padding");

static void said_make(struct tcp_hand_said *said, const char *who, const struct tcp_hand *h)
{
	*said = (struct tcp_hand_said){.hello = h->hello, .cipher = h->challenge.cipher};
	memcpy(said->who, who, 6);
	memcpy(said->nonce, h->challenge.nonce, sizeof(said->nonce));
}

static void mac_make(unsigned char mac[TCP_MAC], const char *who, const struct tcp_hand *h)
{
	struct tcp_hand_said said;
	said_make(&said, who, h);
	crypto_auth_hmacsha512256(mac, (unsigned char *)&said, sizeof(said), tcp.self.secret);
}

/* In a time that doesn't depend on where they differ. */
static bool mac_is(const unsigned char mac[TCP_MAC], const char *who, const struct tcp_hand *h)
{
	unsigned char right[TCP_MAC];
	volatile unsigned char differ = 0;
	mac_make(right, who, h);
	for (unsigned i = 0; i < TCP_MAC; i++)
		differ = (unsigned char)(differ | (mac[i] ^ right[i]));
	return differ == 0;
}

/* With encryption a public key, whose other half is kept for this handshake only: who learns the
 * job's secret later can't read what he has recorded. */
static bool nonce_make(struct tcp_hand *h, unsigned char nonce[TCP_NONCE])
{
	unsigned char *random = tcp.self.encrypt ? h->ephemeral : nonce;
	if (getrandom(random, TCP_NONCE, GRND_NONBLOCK) != TCP_NONCE)
		return false;
	return !tcp.self.encrypt || crypto_scalarmult_base(nonce, h->ephemeral) == 0;
}

/* Both are different functions of the job's secret, of what both have drawn for this handshake
 * only, and of all that was said. */
static bool keys_make(struct seal_keys *keys, const struct tcp_hand *h, bool caller)
{
	const unsigned char *theirs = caller ? h->challenge.nonce : h->hello.nonce;
	struct tcp_hand_said said;
	said_make(&said, "key of", h);
	bool made = crypto_scalarmult(said.shared, h->ephemeral, theirs) == 0;
	said.who[7] = 1; /* from the caller to the called */
	crypto_auth_hmacsha512256(caller ? keys->out : keys->in, (unsigned char *)&said,
				  sizeof(said), tcp.self.secret);
	said.who[7] = 2;
	crypto_auth_hmacsha512256(caller ? keys->in : keys->out, (unsigned char *)&said,
				  sizeof(said), tcp.self.secret);
	keys->cipher = (uint32_t)h->challenge.cipher;
	sodium_memzero(&said, sizeof(said));
	return made;
}

/* ---- life ---- */

static struct tcp_hand *hand_make(int fd, enum tcp_stage stage, uint32_t peer, uint64_t ns)
{
	struct tcp_hand *h = heap_calloc(1, sizeof(*h));
	if (!h) {
		close(fd);
		return NULL;
	}
	h->socket = (struct tcp_socket){.kind = TCP_HAND, .fd = fd};
	h->stage = stage;
	h->peer = peer;
	h->deadline = clock_ns() + ns;
	h->next = tcp.hands;
	tcp.hands = h;
	tcp_socket_prepare(fd);
	return h;
}

/* Leaves the list; events in hand may still name it. */
static void hand_unlink(struct tcp_hand *h)
{
	struct tcp_hand **at = &tcp.hands;
	while (*at && *at != h)
		at = &(*at)->next;
	if (!*at)
		return;
	*at = h->next;
	h->next = tcp.dead;
	tcp.dead = h;
}

void tcp_hand_drop(struct tcp_hand *h)
{
	tcp_socket_close(&h->socket);
	hand_unlink(h);
}

void tcp_hands_bury(void)
{
	while (tcp.dead) {
		struct tcp_hand *h = tcp.dead;
		tcp.dead = h->next;
		sodium_memzero(h->ephemeral, sizeof(h->ephemeral));
		heap_free(h);
	}
}

static bool is_ours(const struct tcp_hand *h)
{
	return h->stage < TCP_WAIT_HELLO;
}

struct tcp_hand *tcp_hand_to(uint32_t peer)
{
	struct tcp_hand *h = tcp.hands;
	while (h && (h->peer != peer || !is_ours(h)))
		h = h->next;
	return h;
}

/* It comes to nothing: by what the other side did wrong, */
static void turn_away(struct tcp_hand *h, const char *why)
{
	tcp_hand_drop(h);
	tcp.calls.stranger(++tcp.strangers, why);
}

/* or because it, or the way to it, is gone: a process of this job, as far as its hello says. */
static void give_up(struct tcp_hand *h, const char *why)
{
	bool ours = is_ours(h), silence = h->stage == TCP_CALLING && h->last_place;
	uint32_t peer = h->peer;
	if (h->stage == TCP_WAIT_HELLO && h->have) {
		turn_away(h, why);
		return;
	}
	tcp_hand_drop(h);
	if (silence) {
		tcp_road_cut(peer);
		tcp.calls.unreached(peer);
	}
	if (ours)
		tcp.calls.broke(peer, why);
}

static void give_up_errno(struct tcp_hand *h, int code)
{
	struct error err;
	char why[WIRE_WHY];
	errno = code;
	error_sys(&err, HALE_ERR_LINK, "connecting");
	strncpy(why, err.text, sizeof(why) - 1);
	why[sizeof(why) - 1] = '\0';
	give_up(h, why);
}

void tcp_hands_expire(uint64_t now)
{
	for (struct tcp_hand *h = tcp.hands, *next; h; h = next) {
		next = h->next;
		/* who has said nothing may be a caller whose program computes: it will call again
		 */
		if (now >= h->deadline)
			give_up(h, "no answer in time");
	}
}

/* The kernel has had no answer: what it has heard and we have not looked at counts. */
static bool host_is_silent(const struct tcp_hand *h)
{
	struct tcp_info info;
	socklen_t length = sizeof(info);
	return h->stage == TCP_CALLING && h->last_place &&
	       !getsockopt(h->socket.fd, IPPROTO_TCP, TCP_INFO, &info, &length) &&
	       info.tcpi_state == TCP_SYN_SENT &&
	       clock_ns() + (uint64_t)CALL_NS >= h->deadline + SILENCE_NS;
}

void tcp_hands_close(void)
{
	while (tcp.hands) {
		struct tcp_hand *h = tcp.hands;
		if (host_is_silent(h))
			tcp.calls.unreached(h->peer);
		tcp_hand_drop(h);
	}
	tcp_hands_bury();
}

/* ---- steps ---- */

/* So short that a socket that is otherwise empty takes it as a whole. */
static bool say(struct tcp_hand *h, const void *what, size_t bytes)
{
	if (send(h->socket.fd, what, bytes, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)bytes)
		return true;
	give_up_errno(h, errno);
	return false;
}

/* True: all of it is there. */
static bool hear(struct tcp_hand *h, void *what, size_t bytes)
{
	ssize_t n = recv(h->socket.fd, (char *)what + h->have, bytes - h->have, MSG_DONTWAIT);
	if (n == 0) {
		give_up(h, "the other side has closed it during the handshake");
		return false;
	}
	if (n < 0) {
		if (errno != EAGAIN && errno != EINTR)
			give_up_errno(h, errno);
		return false;
	}
	h->have += (size_t)n;
	if (h->have < bytes)
		return false;
	h->have = 0;
	return true;
}

/* The socket belongs to the connection now. */
static void become_conn(struct tcp_hand *h)
{
	int fd = h->socket.fd;
	uint32_t peer = h->peer;
	const unsigned char *incarnation =
	    is_ours(h) ? h->hello.to_incarnation : h->hello.from_incarnation;
	struct seal_keys keys;
	if (tcp.self.encrypt && !keys_make(&keys, h, is_ours(h))) {
		give_up(h, "its public key is none");
		return;
	}
	tcp_watch(&h->socket, 0);
	hand_unlink(h);
	tcp_conn_install(peer, fd, incarnation, tcp.self.encrypt ? &keys : NULL);
	sodium_memzero(&keys, sizeof(keys));
}

/* The host is there, and its kernel has taken our hello: the process answers when its program next
 * calls MPI, and that may be in an hour. Should the host go meanwhile, TCP's probes notice. But of
 * several addresses this may be one that leads to somebody else, who is silent. */
static uint64_t answer_deadline(const struct tcp_hand *h)
{
	uint32_t rounds = h->places > 1 ? tcp.road[h->peer].attempts / h->places : 0;
	if (h->places == 1)
		return NEVER;
	return clock_ns() +
	       (ELSEWHERE_NS << (rounds < DOUBLINGS_MAX ? rounds : (uint32_t)DOUBLINGS_MAX));
}

static void called(struct tcp_hand *h)
{
	int code = 0;
	socklen_t length = sizeof(code);
	if (getsockopt(h->socket.fd, SOL_SOCKET, SO_ERROR, &code, &length) || code) {
		give_up_errno(h, code ? code : errno);
		return;
	}
	if (!say(h, &h->hello, sizeof(h->hello)))
		return;
	h->stage = TCP_WAIT_CHALLENGE;
	h->deadline = answer_deadline(h);
	tcp_watch(&h->socket, EPOLLIN);
	tcp.calls.reached(h->peer);
}

static void challenge_came(struct tcp_hand *h)
{
	uint64_t cipher = h->challenge.cipher;
	if (!mac_is(h->challenge.mac, "called", h)) {
		give_up(h, "who answers there doesn't know the job's secret");
		return;
	}
	if (cipher != (cipher & h->hello.ciphers) || (cipher & (cipher - 1)) ||
	    !cipher != !tcp.self.encrypt) {
		give_up(h, "who answers there takes another encryption than was offered");
		return;
	}
	mac_make(h->proof.mac, "caller", h);
	if (say(h, &h->proof, sizeof(h->proof)))
		h->stage = TCP_WAIT_VERDICT;
}

static void verdict_came(struct tcp_hand *h)
{
	if (h->verdict == WELCOME) {
		become_conn(h);
		return;
	}
	tcp_socket_close(&h->socket);
	h->stage = TCP_CROSSED;
	h->deadline = clock_ns() + CROSSED_NS;
}

static bool hello_is_sound(const struct tcp_hello *e)
{
	return memcmp(e->magic, magic, sizeof(magic)) == 0 && e->version == VERSION &&
	       e->npeers == tcp.self.npeers && e->from < tcp.self.npeers &&
	       e->from != tcp.self.rank && e->to == tcp.self.rank &&
	       e->generation == tcp.self.generation && !e->ciphers == !tcp.self.encrypt &&
	       memcmp(e->to_incarnation, tcp.address.incarnation, TCP_INCARNATION) == 0;
}

/* 0: no encryption. Every process has the first one. */
static uint64_t cipher_choose(uint32_t offered)
{
	uint32_t both = tcp.self.encrypt ? offered & seal_ciphers() : 0;
	return both & SEAL_AES256 ? SEAL_AES256 : both ? SEAL_CHACHA20 : 0;
}

static void hello_came(struct tcp_hand *h)
{
	if (!hello_is_sound(&h->hello)) {
		turn_away(h, "it says hello as nobody of this job does");
		return;
	}
	if (!nonce_make(h, h->challenge.nonce)) {
		give_up(h, "there are no random numbers");
		return;
	}
	h->challenge.cipher = cipher_choose(h->hello.ciphers);
	mac_make(h->challenge.mac, "called", h);
	if (say(h, &h->challenge, sizeof(h->challenge)))
		h->stage = TCP_WAIT_PROOF;
}

/* It has given up this attempt meanwhile, for ours perhaps: then this one must not take the place
 * of a connection. */
static bool caller_is_gone(const struct tcp_hand *h)
{
	char byte;
	return recv(h->socket.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

static void proof_came(struct tcp_hand *h)
{
	if (!mac_is(h->proof.mac, "caller", h)) {
		turn_away(h, "it doesn't know the job's secret");
		return;
	}
	h->peer = h->hello.from;
	struct tcp_hand *mine = tcp_hand_to(h->peer);
	bool crossed = mine && mine->stage != TCP_CROSSED && tcp.self.rank < h->peer;
	uint32_t verdict = crossed ? CROSSED : WELCOME;
	if (caller_is_gone(h)) {
		tcp_hand_drop(h);
		return;
	}
	/* before the verdict: who hears that sees, too, that our own attempt is over */
	if (mine && !crossed)
		tcp_hand_drop(mine);
	uint32_t peer = h->peer;
	bool said = say(h, &verdict, sizeof(verdict));
	if (said && crossed)
		tcp_hand_drop(h);
	else if (said)
		become_conn(h);
	else if (mine && !crossed)
		tcp.calls.broke(peer, "the other side has closed it during the handshake");
}

void tcp_hand_event(struct tcp_hand *h)
{
	if (h->socket.fd < 0)
		return;
	switch (h->stage) {
	case TCP_CALLING:
		called(h);
		break;
	case TCP_WAIT_CHALLENGE:
		if (hear(h, &h->challenge, sizeof(h->challenge)))
			challenge_came(h);
		break;
	case TCP_WAIT_VERDICT:
		if (hear(h, &h->verdict, sizeof(h->verdict)))
			verdict_came(h);
		break;
	case TCP_WAIT_HELLO:
		if (hear(h, &h->hello, sizeof(h->hello)))
			hello_came(h);
		break;
	case TCP_WAIT_PROOF:
		if (hear(h, &h->proof, sizeof(h->proof)))
			proof_came(h);
		break;
	case TCP_CROSSED:
		break;
	}
}

/* ---- how it begins ---- */

static bool hello_make(struct tcp_hand *h, uint32_t peer, const unsigned char *incarnation)
{
	struct tcp_hello *e = &h->hello;
	*e = (struct tcp_hello){.version = VERSION,
				.generation = tcp.self.generation,
				.from = tcp.self.rank,
				.to = peer,
				.npeers = tcp.self.npeers,
				.ciphers = tcp.self.encrypt ? seal_ciphers() : 0};
	memcpy(e->magic, magic, sizeof(magic));
	memcpy(e->from_incarnation, tcp.address.incarnation, TCP_INCARNATION);
	memcpy(e->to_incarnation, incarnation, TCP_INCARNATION);
	return nonce_make(h, e->nonce);
}

bool tcp_hand_dial(uint32_t peer, const struct tcp_address *address, unsigned nplaces, char *why)
{
	struct reach_place place = reach_choose(address->place, nplaces, tcp.address.place,
						tcp.nplaces, tcp.road[peer].attempts++);
	union reach_sockaddr to;
	socklen_t length;
	struct error err;
	int fd = reach_socket(&place, &to, &length);
	struct tcp_hand *h = fd < 0 ? NULL : hand_make(fd, TCP_CALLING, peer, (uint64_t)CALL_NS);
	bool ready = h && hello_make(h, peer, address->incarnation);
	if (ready)
		tcp_road_prepare(peer, fd);
	if (ready && (connect(fd, &to.any, length) == 0 || errno == EINPROGRESS)) {
		h->places = nplaces;
		h->last_place = tcp.road[peer].attempts % nplaces == 0;
		tcp_watch(&h->socket, EPOLLOUT);
		return true;
	}
	error_sys(&err, HALE_ERR_LINK, "connecting");
	strncpy(why, err.text, WIRE_WHY - 1);
	why[WIRE_WHY - 1] = '\0';
	if (h)
		tcp_hand_drop(h);
	if (ready && tcp.road[peer].attempts % nplaces == 0) {
		tcp_road_cut(peer);
		tcp.calls.unreached(peer);
	}
	return false;
}

/* The oldest one of those who have connected to us. */
static struct tcp_hand *oldest(unsigned *count)
{
	struct tcp_hand *found = NULL;
	*count = 0;
	for (struct tcp_hand *h = tcp.hands; h; h = h->next)
		if (!is_ours(h)) {
			found = h;
			++*count;
		}
	return found;
}

void tcp_hand_accept(int listener)
{
	for (int i = 0; i < ACCEPTS_AT_ONCE; i++) {
		unsigned count;
		int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd < 0)
			return;
		struct tcp_hand *last = oldest(&count);
		if (count >= HANDS_MAX + tcp.self.npeers)
			turn_away(last, "too many connect at once");
		struct tcp_hand *h =
		    hand_make(fd, TCP_WAIT_HELLO, WIRE_SOMEBODY, (uint64_t)HELLO_NS);
		if (h)
			tcp_watch(&h->socket, EPOLLIN);
	}
}
