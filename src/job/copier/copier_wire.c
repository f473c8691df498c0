/* SPDX-License-Identifier: BSD-3-Clause */
/* How copiers find and know each other. As between ranks (docs/network-channel.md), both sides
 * prove that they know the job's secret, which the head draws for each run and which reaches nodes
 * through their launchers only:
 *
 *     caller                                          called
 *       │ hello {from node, to node, nonce} ─────────▶ │
 *       │ ◀── challenge {nonce, HMAC("called", all)}   │
 *       │ proof {HMAC("caller", all)} ───────────────▶ │
 */
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sodium/crypto_auth_hmacsha512256.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>
#include "base/base.h"
#include "job/copier/copier.h"
#include "job/session/sealed.h"
#include "job/session/whole.h"

enum { VERSION = 1, NONCE = 32, MAC = crypto_auth_hmacsha512256_BYTES, BACKLOG = 64 };

#define SILENCE_SECONDS	  10.0
#define HANDSHAKE_SECONDS 5.0
#define CONNECT_SECONDS	  3.0

_Static_assert((int)SEGMENT_SECRET == (int)crypto_auth_hmacsha512256_KEYBYTES, "the whole key");

static const char magic[8] = "HALECOPY";

struct hello {
	char magic[8];
	uint32_t version, from, to, reserved;
	unsigned char nonce[NONCE];
};

struct challenge {
	unsigned char nonce[NONCE], mac[MAC];
};

struct said {
	char who[8];
	struct hello hello;
	unsigned char nonce[NONCE];
};

/* ---- listening ---- */

static bool listed(const char *list, const char *name)
{
	size_t n = strlen(name);

	for (const char *at = list; *at; at += strcspn(at, ","), at += *at == ',')
		if (strcspn(at, ",") == n && strncmp(at, name, n) == 0)
			return true;
	return false;
}

static bool wanted(const struct ifaddrs *i, const char *list, bool loopback)
{
	if (!i->ifa_addr || i->ifa_addr->sa_family != AF_INET || !(i->ifa_flags & IFF_UP))
		return false;
	return list ? listed(list, i->ifa_name) : ((i->ifa_flags & IFF_LOOPBACK) != 0) == loopback;
}

static bool listen_at(struct copier *c, const struct sockaddr *at)
{
	struct sockaddr_in in;
	socklen_t len = sizeof(in);
	char ip[INET_ADDRSTRLEN];
	size_t used = strlen(c->address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	memcpy(&in, at, sizeof(in));
	in.sin_port = 0;
	if (fd < 0 || bind(fd, (struct sockaddr *)&in, sizeof(in)) != 0 ||
	    listen(fd, BACKLOG) != 0 || getsockname(fd, (struct sockaddr *)&in, &len) != 0) {
		if (fd >= 0)
			close(fd);
		return false;
	}
	inet_ntop(AF_INET, &in.sin_addr, ip, sizeof(ip));
	snprintf(c->address + used, sizeof(c->address) - used, "%s%s:%u", used ? "," : "", ip,
		 ntohs(in.sin_port));
	c->listener[c->listeners++] = fd;
	return true;
}

hale_status_t copier_listen(struct copier *c, bool loopback, struct error *err)
{
	const char *list = getenv("HALE_NET_DEVICES");
	struct ifaddrs *all = NULL;

	c->listeners = 0;
	c->address[0] = '\0';
	if (list && !*list)
		list = NULL;
	if (getifaddrs(&all) != 0)
		return error_sys(err, HALE_ERR_SYSTEM, "cannot look at the network interfaces");
	/* a machine without a network has its loopback */
	for (int turn = 0; turn < 2 && c->listeners == 0; turn++)
		for (struct ifaddrs *i = all; i && c->listeners < COPIER_PLACES_MAX;
		     i = i->ifa_next)
			if (wanted(i, turn == 0 ? list : NULL, loopback || turn == 1))
				listen_at(c, i->ifa_addr);
	freeifaddrs(all);
	if (c->listeners == 0)
		return error_set(err, HALE_ERR_SYSTEM,
				 "no network interface is up at which copies of images could come "
				 "in (HALE_NET_DEVICES names those to use)");
	return HALE_OK;
}

void copier_unlisten(struct copier *c)
{
	while (c->listeners > 0)
		close(c->listener[--c->listeners]);
	c->address[0] = '\0';
}

/* ---- bytes ---- */

double copier_silence(void)
{
	const char *text = getenv("HALE_NET_TIMEOUT");
	double seconds;

	return text && units_parse_seconds(text, &seconds) && seconds > 0 ? seconds
									  : SILENCE_SECONDS;
}

static void patience(int fd, double seconds)
{
	struct timeval t = {.tv_sec = (time_t)seconds,
			    .tv_usec = (suseconds_t)((seconds - (double)(time_t)seconds) * 1e6)};

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof(t));
}

void copier_patience(const struct copier_link *l, double seconds)
{
	patience(l->fd, seconds);
}

hale_status_t copier_say(struct copier_link *l, const void *bytes, size_t len, struct error *err)
{
	return l->sealed ? sealed_say(l->sealed, bytes, len, err)
			 : whole_say(l->fd, bytes, len, err);
}

hale_status_t copier_hear(struct copier_link *l, void *bytes, size_t len, struct error *err)
{
	return l->sealed ? sealed_hear(l->sealed, bytes, len, err)
			 : whole_hear(l->fd, bytes, len, err);
}

void copier_hang_up(struct copier_link *l)
{
	sealed_free(l->sealed);
	if (l->fd >= 0)
		close(l->fd);
	*l = (struct copier_link){.fd = -1};
}

/* The keys of this connection, if there are to be any. */
static hale_status_t seal(const struct copier *c, struct copier_link *l, uint32_t from, uint32_t to,
			  struct error *err)
{
	const struct sealed_purpose purpose = {.name = "copies", .number = {from, to}};

	return c->encrypt
		   ? sealed_open(&l->sealed, l->fd, c->node == from, c->secret, &purpose, err)
		   : HALE_OK;
}

/* ---- who is there? ---- */

static void mac_make(unsigned char mac[MAC], const struct copier *c, const char *who,
		     const struct hello *h, const unsigned char nonce[NONCE])
{
	struct said said = {.hello = *h};

	memcpy(said.who, who, strlen(who));
	memcpy(said.nonce, nonce, NONCE);
	crypto_auth_hmacsha512256(mac, (unsigned char *)&said, sizeof(said), c->secret);
}

/* In a time that doesn't depend on where they differ. */
static bool same(const unsigned char *a, const unsigned char *b, size_t len)
{
	volatile unsigned char differ = 0;

	for (size_t i = 0; i < len; i++)
		differ = (unsigned char)(differ | (a[i] ^ b[i]));
	return differ == 0;
}

static void prepare(int fd)
{
	int one = 1, idle = 5, count = 3;
	unsigned limit = (unsigned)(copier_silence() * 1e3);

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &one, sizeof(one));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count));
	setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &limit, sizeof(limit));
}

static hale_status_t introduce(const struct copier *c, uint32_t peer, int fd, struct error *err)
{
	struct hello h = {.version = VERSION, .from = c->node, .to = peer};
	struct challenge challenge;
	unsigned char mac[MAC];
	hale_status_t status;

	memcpy(h.magic, magic, sizeof(h.magic));
	if (getrandom(h.nonce, sizeof(h.nonce), 0) != (ssize_t)sizeof(h.nonce))
		return error_sys(err, HALE_ERR_SYSTEM, "cannot draw a random number");
	status = whole_say(fd, &h, sizeof(h), err);
	if (status == HALE_OK)
		status = whole_hear(fd, &challenge, sizeof(challenge), err);
	if (status != HALE_OK)
		return status;
	mac_make(mac, c, "called", &h, challenge.nonce);
	if (!same(mac, challenge.mac, MAC))
		return error_set(err, HALE_ERR_PROTOCOL,
				 "who answers there doesn't know the job's secret");
	mac_make(mac, c, "caller", &h, challenge.nonce);
	return whole_say(fd, mac, sizeof(mac), err);
}

bool copier_answer(const struct copier *c, struct copier_link *l)
{
	int fd = l->fd;
	struct hello h;
	struct challenge challenge;
	unsigned char mac[MAC], proof[MAC];

	prepare(fd);
	patience(fd, HANDSHAKE_SECONDS);
	if (whole_hear(fd, &h, sizeof(h), NULL) != HALE_OK ||
	    memcmp(h.magic, magic, sizeof(magic)) != 0 || h.version != VERSION || h.to != c->node ||
	    h.from == c->node || getrandom(challenge.nonce, NONCE, 0) != NONCE)
		return false;
	mac_make(challenge.mac, c, "called", &h, challenge.nonce);
	mac_make(mac, c, "caller", &h, challenge.nonce);
	return whole_say(fd, &challenge, sizeof(challenge), NULL) == HALE_OK &&
	       whole_hear(fd, proof, sizeof(proof), NULL) == HALE_OK && same(mac, proof, MAC) &&
	       seal(c, l, h.from, c->node, NULL) == HALE_OK;
}

/* ---- calling ---- */

static hale_status_t call_one(const struct copier *c, const char *text, uint32_t peer,
			      struct copier_link *l, struct error *err)
{
	struct sockaddr_in in = {.sin_family = AF_INET};
	char ip[INET_ADDRSTRLEN];
	unsigned port;
	hale_status_t status;

	if (sscanf(text, "%15[0-9.]:%u", ip, &port) != 2 || port > 65535 ||
	    inet_pton(AF_INET, ip, &in.sin_addr) != 1)
		return error_set(err, HALE_ERR_PROTOCOL, "'%s' is no address of a copier", text);
	in.sin_port = htons((uint16_t)port);
	l->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (l->fd < 0)
		return error_sys(err, HALE_ERR_SYSTEM, "cannot make a socket");
	patience(l->fd, CONNECT_SECONDS);
	if (connect(l->fd, (struct sockaddr *)&in, sizeof(in)) != 0) {
		if (errno == EINPROGRESS)
			errno = ETIMEDOUT;
		status = error_sys(err, HALE_ERR_LINK, "cannot connect to %s:%u", ip, port);
	} else {
		prepare(l->fd);
		patience(l->fd, HANDSHAKE_SECONDS);
		status = introduce(c, peer, l->fd, err);
		if (status == HALE_OK)
			status = seal(c, l, c->node, peer, err);
	}
	if (status != HALE_OK)
		copier_hang_up(l);
	return status;
}

hale_status_t copier_call(const struct copier *c, const char *address, uint32_t peer,
			  struct copier_link *l, struct error *err)
{
	char list[COPIER_ADDRESS_MAX], *save = NULL;
	hale_status_t status = HALE_ERR_LINK;

	*l = (struct copier_link){.fd = -1};
	error_set(err, HALE_ERR_LINK, "its address is not known");
	snprintf(list, sizeof(list), "%s", address);
	for (char *one = strtok_r(list, ",", &save); one; one = strtok_r(NULL, ",", &save)) {
		status = call_one(c, one, peer, l, err);
		if (status == HALE_OK)
			break;
	}
	return status;
}
