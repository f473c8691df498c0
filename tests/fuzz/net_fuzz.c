/* SPDX-License-Identifier: BSD-3-Clause */
/* links: src/channel/net/tcp.c src/channel/net/tcp_conn.c src/channel/net/tcp_hand.c
 * src/channel/net/tcp_in.c src/wire/seal/tcp_seal.c */
/* What comes over the network to a rank: strangers that say hello, peers that call and are called,
 * frames of a peer that is broken or is somebody else's by now, with and without encryption. Nobody
 * who doesn't know the secret gets a connection; what a peer sends lands where it was asked for,
 * and each thing that was begun ends once. The random numbers are known here, so that all that the
 * other side says can be said beforehand. */
#include "fuzz.h"
#include <errno.h>
#include <fcntl.h>
#include <sodium/crypto_auth_hmacsha512256.h>
#include <sodium/crypto_scalarmult.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/base.h"
#include "channel/net/tcp.h"

enum { ME = 1, PEERS = 3, ROOM = 4096, RECEIVES = 4, CALLS = 8 };

static struct input in;
static const unsigned char secret[WIRE_SECRET] = "nobody else knows this";
static int next_caller = -1, dialled = -1;

/* ---- the outside ---- */

ssize_t getrandom(void *to, size_t len, unsigned flags)
{
	memset(to, 7, len);
	return (ssize_t)len;
}

int accept4(int fd, struct sockaddr *address, socklen_t *len, int flags)
{
	int caller = next_caller;

	next_caller = -1;
	errno = EAGAIN;
	return caller;
}

/* The other end is ours. */
int connect(int fd, const struct sockaddr *address, socklen_t len)
{
	int ends[2];

	must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
	must(dup3(ends[0], fd, O_CLOEXEC) == fd);
	close(ends[0]);
	dialled = ends[1];
	return 0;
}

/* ---- the channel above ---- */

static unsigned char *receive[RECEIVES]; /* NULL: not begun */
static unsigned char ahead_room[TCP_AHEAD_MAX];
static size_t ahead_expected[PEERS]; /* 0: none is coming */
static unsigned sends_pending;
static bool knows[PEERS]; /* somebody has spoken for it who knows the secret */

static void came(uint32_t peer, const void *header, size_t header_bytes, const void *payload,
		 size_t bytes, const struct wire_ahead *ahead)
{
	volatile unsigned char sum = 0;

	must(peer < PEERS && peer != ME && knows[peer]);
	must(header_bytes > 0 && header_bytes <= WIRE_HEADER_MAX && ((uintptr_t)header & 15) == 0);
	must(!ahead_expected[peer]);
	for (size_t i = 0; i < header_bytes; i++)
		sum = (unsigned char)(sum + ((const unsigned char *)header)[i]);
	for (size_t i = 0; i < bytes; i++)
		sum = (unsigned char)(sum + ((const unsigned char *)payload)[i]);
	if (ahead) {
		must(ahead->bytes > 0 && ahead->bytes <= sizeof(ahead_room));
		ahead_expected[peer] = ahead->bytes;
	}
}

static void *ahead_where(uint32_t peer)
{
	must(ahead_expected[peer]);
	switch (input_byte(&in) % 4) {
	case 0: /* forgotten by the channel: ahead_came still follows */
		return NULL;
	case 1:
		return WIRE_WAIT;
	default:
		/* so that a byte too many is seen */
		return ahead_room + sizeof(ahead_room) - ahead_expected[peer];
	}
}

static void ahead_came(uint32_t peer, bool ok)
{
	must(ahead_expected[peer]);
	ahead_expected[peer] = 0;
}

static void sent(void *cookie)
{
	must(sends_pending-- > 0);
}

static void received(void *cookie, bool ok)
{
	size_t i = (size_t)(uintptr_t)cookie;

	must(i < RECEIVES && receive[i]);
	free(receive[i]);
	receive[i] = NULL;
}

static void up(uint32_t peer)
{
	must(peer < PEERS && peer != ME && knows[peer]);
}

static void broke(uint32_t peer, const char *why)
{
	must(peer < PEERS && why[0] && strlen(why) < WIRE_WHY);
}

static void stranger(uint32_t count, const char *what)
{
	must(count > 0 && what[0]);
}

static void reached(uint32_t peer)
{
	must(peer < PEERS && peer != ME);
}

static void unreached(uint32_t peer)
{
	must(peer < PEERS && peer != ME);
}

static const struct wire_calls calls = {.came = came,
					.ahead_where = ahead_where,
					.ahead_came = ahead_came,
					.sent = sent,
					.received = received,
					.up = up,
					.reached = reached,
					.unreached = unreached,
					.broke = broke,
					.stranger = stranger};

/* ---- the other side ---- */

static void put(int fd, const void *bytes, size_t len)
{
	if (send(fd, bytes, len, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		errno = 0;
}

static void turn(void)
{
	for (int i = 0; i < 3; i++) {
		tcp.rounds = 31; /* epoll is looked at this time */
		wire_tcp.progress();
		wire_tcp.flush();
	}
}

/* As tcp_hand.c has it. */
struct said {
	char who[8];
	struct tcp_hello hello;
	unsigned char nonce[TCP_NONCE];
	uint64_t cipher;
	unsigned char shared[TCP_NONCE];
};

static void mac(unsigned char to[TCP_MAC], const char *who, unsigned char direction,
		const struct tcp_hello *h, const struct tcp_challenge *c,
		const unsigned char *shared)
{
	struct said said = {.hello = *h, .cipher = c->cipher};

	memcpy(said.who, who, strlen(who));
	said.who[7] = (char)direction;
	memcpy(said.nonce, c->nonce, TCP_NONCE);
	if (shared)
		memcpy(said.shared, shared, TCP_NONCE);
	crypto_auth_hmacsha512256(to, (unsigned char *)&said, sizeof(said), secret);
}

/* Both draw the same number. */
static void nonce(unsigned char to[TCP_NONCE])
{
	unsigned char drawn[TCP_NONCE];

	memset(drawn, 7, sizeof(drawn));
	if (tcp.self.encrypt)
		must(crypto_scalarmult_base(to, drawn) == 0);
	else
		memcpy(to, drawn, sizeof(drawn));
}

static struct seal *keys(const struct tcp_hello *h, const struct tcp_challenge *c, bool caller)
{
	unsigned char shared[TCP_NONCE], drawn[TCP_NONCE];
	struct seal_keys k = {.cipher = (uint32_t)c->cipher};

	if (!tcp.self.encrypt)
		return NULL;
	memset(drawn, 7, sizeof(drawn));
	if (crypto_scalarmult(shared, drawn, c->nonce) != 0)
		return NULL;
	mac(caller ? k.out : k.in, "key of", 1, h, c, shared);
	mac(caller ? k.in : k.out, "key of", 2, h, c, shared);
	return seal_create(&k);
}

static uint64_t best(void)
{
	uint32_t all = seal_ciphers();

	return !tcp.self.encrypt ? 0 : all & SEAL_AES256 ? SEAL_AES256 : SEAL_CHACHA20;
}

struct side {
	int fd;
	uint32_t rank;
	struct seal *seal;
};

/* Somebody calls us. */
static struct side call(void)
{
	struct side s = {.fd = -1, .rank = input_byte(&in) % 2 ? 2 : 0};
	struct tcp_hello h = {.magic = "HALENET",
			      .version = 2,
			      .from = s.rank,
			      .to = ME,
			      .npeers = PEERS,
			      .ciphers = tcp.self.encrypt ? seal_ciphers() : 0};
	struct tcp_challenge c = {.cipher = best()};
	struct tcp_proof p;
	unsigned char honest[TCP_MAC];
	int ends[2];

	memcpy(h.to_incarnation, tcp.address.incarnation, TCP_INCARNATION);
	memset(h.from_incarnation, 9, TCP_INCARNATION);
	nonce(h.nonce);
	nonce(c.nonce);
	input_bend(&in, &h, sizeof(h));
	mac(p.mac, "caller", 0, &h, &c, NULL);
	memcpy(honest, p.mac, sizeof(honest));
	input_bend(&in, &p, sizeof(p));
	if (h.from < PEERS && memcmp(honest, p.mac, sizeof(honest)) == 0)
		knows[h.from] = true;
	must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
	next_caller = ends[0];
	s.fd = ends[1];
	tcp_hand_accept(-1);
	put(s.fd, &h, input_byte(&in) % 8 ? sizeof(h) : input_byte(&in) % sizeof(h));
	turn();
	put(s.fd, &p, input_byte(&in) % 8 ? sizeof(p) : input_byte(&in) % sizeof(p));
	s.seal = keys(&h, &c, true);
	turn();
	return s;
}

/* We call somebody. */
static struct side be_called(void)
{
	struct side s = {.fd = -1, .rank = input_byte(&in) % 2 ? 2 : 0};
	struct tcp_address at = {
	    .place = {{.ip = {[10] = 0xff, 0xff, 127, 0, 0, 1}, .port = 1, .prefix = 104}}};
	struct tcp_hello h = {.magic = "HALENET",
			      .version = 2,
			      .from = ME,
			      .to = s.rank,
			      .npeers = PEERS,
			      .ciphers = tcp.self.encrypt ? seal_ciphers() : 0};
	struct tcp_challenge c = {.cipher = best()};
	unsigned char honest[TCP_MAC];
	uint32_t verdict = 0x57;
	char why[WIRE_WHY];

	wire_tcp.disconnect(s.rank);
	memset(at.incarnation, 9, TCP_INCARNATION);
	if (!wire_tcp.connect(s.rank, &at, offsetof(struct tcp_address, place[1]), why))
		return s;
	s.fd = dialled;
	memcpy(h.from_incarnation, tcp.address.incarnation, TCP_INCARNATION);
	memset(h.to_incarnation, 9, TCP_INCARNATION);
	nonce(h.nonce);
	nonce(c.nonce);
	input_bend(&in, &c, offsetof(struct tcp_challenge, mac));
	mac(honest, "called", 0, &h, &c, NULL);
	memcpy(c.mac, honest, sizeof(honest));
	input_bend(&in, c.mac, sizeof(c.mac));
	if (memcmp(honest, c.mac, sizeof(honest)) == 0)
		knows[s.rank] = true;
	turn();
	put(s.fd, &c, input_byte(&in) % 8 ? sizeof(c) : input_byte(&in) % sizeof(c));
	turn();
	if (input_byte(&in) % 8 == 0)
		verdict = 0x58;
	put(s.fd, &verdict, input_byte(&in) % 8 ? sizeof(verdict) : 3);
	turn();
	s.seal = keys(&h, &c, false);
	return s;
}

/* Bytes of a peer, sealed where that is due. */
static void put_sealed(struct side *s, const void *bytes, size_t len)
{
	struct iovec iov = {(void *)(uintptr_t)bytes, len};
	const unsigned char *at;

	if (!s->seal) {
		put(s->fd, bytes, len);
		return;
	}
	for (size_t done = 0; done < len;) {
		size_t n = seal_put(s->seal, &iov, 1, done), left = seal_sendable(s->seal, &at);
		static unsigned char record[SEAL_RECORD + 64];

		must(n > 0 && left <= sizeof(record));
		done += n;
		memcpy(record, at, left);
		seal_sent(s->seal, left);
		if (input_byte(&in) % 16 == 0)
			input_bend(&in, record, left);
		put(s->fd, record, left);
	}
}

static void put_frame(struct side *s)
{
	static unsigned char body[ROOM];
	uint8_t how = input_byte(&in);
	struct tcp_frame f = {.kind = how & 1 ? TCP_BULK : TCP_DATAGRAM};
	size_t len = (size_t)input_byte(&in) * (how & 2 ? 16 : 1);

	if (f.kind == TCP_BULK) {
		f.token = input_byte(&in) % (RECEIVES + 1);
		f.bytes = (uint32_t)len;
	} else {
		f.header_bytes = (uint8_t)(1 + input_byte(&in) % WIRE_HEADER_MAX);
		f.bytes = (uint32_t)(len > f.header_bytes ? len - f.header_bytes : 0);
		f.flags = how & 4 ? TCP_BURST : 0;
		if (how & 8) {
			f.ahead = input_byte(&in);
			f.token = 0x1000;
		}
		len = f.header_bytes + f.bytes + f.ahead;
	}
	if (how & 16)
		input_bend(&in, &f, sizeof(f));
	memcpy(body, &f, sizeof(f));
	memset(body + sizeof(f), how, sizeof(body) - sizeof(f));
	len += sizeof(f);
	if (len > sizeof(body))
		len = sizeof(body);
	/* in pieces */
	size_t first = how & 32 ? input_byte(&in) % (len + 1) : len;
	put_sealed(s, body, first);
	if (how & 64)
		turn();
	if (first < len)
		put_sealed(s, body + first, len - first);
}

static void we_do(uint32_t peer)
{
	static struct {
		unsigned char room[WIRE_ROOM];
		unsigned char header[64];
	} packet;
	static unsigned char bytes[ROOM];
	struct iovec iov = {bytes, sizeof(bytes)};
	size_t i = input_byte(&in) % RECEIVES;

	switch (input_byte(&in) % 5) {
	case 0:
		if (!receive[i] && tcp.conn[peer]) {
			receive[i] = malloc(64 * i + 64);
			must(wire_tcp.receive(peer, i, receive[i], 64 * i + 64, (void *)i));
		}
		break;
	case 1:
		if (receive[i])
			wire_tcp.receive_end((void *)i);
		break;
	case 2:
		sends_pending += wire_tcp.send(peer, packet.header, sizeof(packet.header), bytes,
					       input_byte(&in), NULL, &packet) == WIRE_PENDING;
		break;
	case 3:
		sends_pending += wire_tcp.give(peer, 5, &iov, 1, NULL) == WIRE_PENDING;
		break;
	default:
		wire_tcp.disconnect(peer);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct wire_self self = {.rank = ME,
				 .npeers = PEERS,
				 .secret = secret,
				 .one_host = true,
				 .timeout_ns = 1000000000};
	struct side side[CALLS];
	unsigned count = 0;
	char why[WIRE_WHY];

	in = (struct input){data, size};
	self.encrypt = input_byte(&in) & 1;
	log_set_level(LOG_QUIET);
	must(wire_tcp.open(&self, &calls, why));
	memset(knows, 0, sizeof(knows));
	while (in.left > 0) {
		uint8_t what = input_byte(&in) % 8;

		if (what < 2 && count < CALLS) {
			side[count++] = what ? call() : be_called();
		} else if (count > 0 && side[count - 1].fd >= 0) {
			struct side *s = &side[count - 1];

			/* whoever is refused goes on talking */
			if (what == 2) {
				struct input part = input_part(&in);
				put(s->fd, part.at, part.left);
			} else if (what < 6) {
				put_frame(s);
			} else if (what == 6) {
				we_do(s->rank);
			} else {
				shutdown(s->fd, SHUT_WR);
			}
			turn();
		}
	}
	wire_tcp.close(0);
	must(!sends_pending);
	for (uint32_t i = 0; i < PEERS; i++)
		must(!ahead_expected[i]);
	for (size_t i = 0; i < RECEIVES; i++)
		must(!receive[i]);
	for (unsigned i = 0; i < count; i++) {
		seal_destroy(side[i].seal);
		if (side[i].fd >= 0)
			close(side[i].fd);
	}
	return 0;
}
