/* SPDX-License-Identifier: BSD-3-Clause */
/* How copiers find and know each other. As between ranks (docs/network-channel.md), both sides
 * prove that they know the job's secret, which the head draws for each run and which reaches nodes
 * through their launchers only. What they say in which order stands in copier_wire.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>
#include "base/base.h"
#include "agent/copier/copier_wire.h"
#include "wire/seal/sealed.h"
#include "wire/seal/send_all.h"

#define HANDSHAKE_SECONDS 5.0
#define CONNECT_SECONDS	  3.0

_Static_assert((int)SEGMENT_SECRET == (int)crypto_auth_hmacsha512256_KEYBYTES, "the whole key");

/* ---- listening ---- */

static bool listen_at(struct copier *c, struct reach_place *place)
{
	size_t used = strlen(c->address);
	char text[REACH_TEXT_MAX];
	int fd = reach_listen(place, &c->wish, NULL);

	if (fd < 0)
		return false;
	snprintf(c->address + used, sizeof(c->address) - used, "%s%s", used ? "," : "",
		 reach_print(text, place));
	c->listener[c->listeners++] = fd;
	return true;
}

hale_status_t copier_listen(struct copier *c, struct error *err)
{
	struct reach_place place[REACH_PLACES_MAX];
	char why[400];
	unsigned n = reach_find(place, &c->wish, c->local, why, sizeof(why));

	c->listeners = 0;
	c->address[0] = '\0';
	if (n == 0)
		return error_set(err, HALE_ERR_SYSTEM, "%s, so copies of images can't come in",
				 why);
	for (unsigned i = 0; i < n; i++)
		listen_at(c, &place[i]);
	if (c->listeners == 0)
		return error_sys(err, HALE_ERR_SYSTEM, "cannot listen for copies of images%s%.60s",
				 c->wish.ports ? ", HALE_NET_PORTS=" : "",
				 c->wish.ports ? c->wish.ports : "");
	return HALE_OK;
}

void copier_unlisten(struct copier *c)
{
	while (c->listeners > 0)
		close(c->listener[--c->listeners]);
	c->address[0] = '\0';
}

/* ---- bytes ---- */

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
	*l = (struct copier_link){.fd = -1, .silence = l->silence};
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

static void mac_make(unsigned char mac[COPIER_MAC], const struct copier *c, const char *who,
		     const struct hello *h, const unsigned char nonce[COPIER_NONCE])
{
	struct said said = {.hello = *h};

	memcpy(said.who, who, strlen(who));
	memcpy(said.nonce, nonce, COPIER_NONCE);
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

static void prepare(const struct copier *c, int fd)
{
	int one = 1, idle = 5, count = 3;
	unsigned limit = (unsigned)(c->silence * 1e3);

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &one, sizeof(one));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count));
	setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &limit, sizeof(limit));
}

static hale_status_t introduce(const struct copier *c, uint32_t peer, int fd, struct error *err)
{
	struct hello h = {.version = COPIER_VERSION, .from = c->node, .to = peer};
	struct challenge challenge;
	unsigned char mac[COPIER_MAC];
	hale_status_t status;

	memcpy(h.magic, COPIER_MAGIC, sizeof(h.magic));
	if (getrandom(h.nonce, sizeof(h.nonce), 0) != (ssize_t)sizeof(h.nonce))
		return error_sys(err, HALE_ERR_SYSTEM, "cannot draw a random number");
	status = whole_say(fd, &h, sizeof(h), err);
	if (status == HALE_OK)
		status = whole_hear(fd, &challenge, sizeof(challenge), err);
	if (status != HALE_OK)
		return status;
	mac_make(mac, c, "called", &h, challenge.nonce);
	if (!same(mac, challenge.mac, COPIER_MAC))
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
	unsigned char mac[COPIER_MAC], proof[COPIER_MAC];

	l->silence = c->silence;
	prepare(c, fd);
	patience(fd, HANDSHAKE_SECONDS);
	if (whole_hear(fd, &h, sizeof(h), NULL) != HALE_OK ||
	    memcmp(h.magic, COPIER_MAGIC, sizeof(h.magic)) != 0 || h.version != COPIER_VERSION ||
	    h.to != c->node || h.from == c->node ||
	    getrandom(challenge.nonce, COPIER_NONCE, 0) != COPIER_NONCE)
		return false;
	mac_make(challenge.mac, c, "called", &h, challenge.nonce);
	mac_make(mac, c, "caller", &h, challenge.nonce);
	return whole_say(fd, &challenge, sizeof(challenge), NULL) == HALE_OK &&
	       whole_hear(fd, proof, sizeof(proof), NULL) == HALE_OK &&
	       same(mac, proof, COPIER_MAC) && seal(c, l, h.from, c->node, NULL) == HALE_OK;
}

/* ---- calling ---- */

/* last: there is no other address to try. */
static hale_status_t call_one(const struct copier *c, const struct reach_place *place, bool last,
			      uint32_t peer, struct copier_link *l, struct error *err)
{
	union reach_sockaddr to;
	socklen_t bytes;
	char text[REACH_TEXT_MAX];
	hale_status_t status;

	reach_print(text, place);
	l->fd = reach_socket(place, &to, &bytes);
	if (l->fd < 0 || fcntl(l->fd, F_SETFL, fcntl(l->fd, F_GETFL) & ~O_NONBLOCK) != 0) {
		status = error_sys(err, HALE_ERR_SYSTEM, "cannot make a socket for %s", text);
		copier_hang_up(l);
		return status;
	}
	if (c->segment)
		setsockopt(l->fd, IPPROTO_TCP, TCP_MAXSEG, &c->segment, sizeof(c->segment));
	patience(l->fd, last ? CONNECT_SECONDS : CONNECT_SECONDS / 2);
	if (connect(l->fd, &to.any, bytes) != 0) {
		if (errno == EINPROGRESS)
			errno = ETIMEDOUT;
		status = error_sys(err, HALE_ERR_LINK, "cannot connect to %s", text);
	} else {
		prepare(c, l->fd);
		patience(l->fd, HANDSHAKE_SECONDS);
		status = introduce(c, peer, l->fd, err);
		if (status == HALE_OK)
			status = seal(c, l, c->node, peer, err);
	}
	if (status != HALE_OK)
		copier_hang_up(l);
	return status;
}

/* "10.0.0.1:4711,[fd00::1]:4712": how many. */
static unsigned read_places(struct reach_place place[REACH_PLACES_MAX], const char *list)
{
	unsigned n = 0;

	for (size_t len; n < REACH_PLACES_MAX && *list; list += len + (list[len] == ',')) {
		len = strcspn(list, ",");
		n += reach_read(&place[n], list, len);
	}
	return n;
}

hale_status_t copier_call(const struct copier *c, const char *address, uint32_t peer,
			  struct copier_link *l, struct error *err)
{
	struct reach_place of[REACH_PLACES_MAX], own[REACH_PLACES_MAX];
	unsigned n = read_places(of, address), nown;
	char why[400];
	hale_status_t status = HALE_ERR_LINK;

	*l = (struct copier_link){.fd = -1, .silence = c->silence};
	if (n == 0)
		return error_set(err, HALE_ERR_LINK,
				 *address ? "'%.200s' is no address of a copier"
					  : "its address is not known",
				 address);
	nown = reach_find(own, &c->wish, c->local, why, sizeof(why));
	for (unsigned k = 0; k < n && status != HALE_OK; k++) {
		struct reach_place place = reach_choose(of, n, own, nown, k);

		status = call_one(c, &place, k + 1 == n, peer, l, err);
	}
	return status;
}
