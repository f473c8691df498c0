/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/seal/sealed.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sodium/crypto_auth_hmacsha512256.h>
#include <sodium/crypto_scalarmult.h>
#include <sodium/utils.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/base.h"
#include "wire/seal/tcp_seal.h"
#include "wire/seal/send_all.h"

enum { PUBLIC = crypto_scalarmult_BYTES, MAC = crypto_auth_hmacsha512256_BYTES };

_Static_assert(PUBLIC == crypto_scalarmult_SCALARBYTES, "a key and what belongs to it");
_Static_assert((int)MAC == (int)SEAL_KEY, "a MAC serves as a key");
_Static_assert((int)SEGMENT_SECRET == (int)crypto_auth_hmacsha512256_KEYBYTES, "the whole key");

static const char magic[8] = "HALESEAL";

struct sealed_hello {
	char magic[8];
	uint32_t ciphers, reserved;
	unsigned char public[PUBLIC];
};

struct sealed_answer {
	uint32_t cipher, reserved;
	unsigned char public[PUBLIC], mac[MAC];
};

/* Over all that was said, by whom, and what for. */
struct sealed_said {
	char who[8];
	struct sealed_purpose purpose;
	struct sealed_hello hello;
	uint32_t cipher, reserved;
	unsigned char public[PUBLIC];
	unsigned char shared[PUBLIC]; /* in keys; zeroes in MACs */
};
_Static_assert(sizeof(struct sealed_said) ==
		   8 + sizeof(struct sealed_purpose) + sizeof(struct sealed_hello) + 8 + 2 * PUBLIC,
	       "no padding");

struct sealed {
	int fd;
	struct seal *seal;
	unsigned char plain[SEAL_RECORD]; /* [begin, end) was opened and not taken yet */
	size_t begin, end;
};

/* ---- agreement ---- */

static void mac_make(unsigned char mac[MAC], const char *who, const struct sealed_said *of,
		     const unsigned char *secret)
{
	struct sealed_said said = *of;

	memcpy(said.who, who, strlen(who));
	crypto_auth_hmacsha512256(mac, (unsigned char *)&said, sizeof(said), secret);
	sodium_memzero(&said, sizeof(said));
}

static hale_status_t stranger(struct error *err)
{
	return error_set(err, HALE_ERR_PROTOCOL,
			 "who is at the other end doesn't know the job's secret, or means "
			 "something else");
}

static hale_status_t call(int fd, struct sealed_said *said, const unsigned char *secret,
			  unsigned char *theirs, struct error *err)
{
	struct sealed_answer a;
	unsigned char mac[MAC];
	hale_status_t status;

	memcpy(said->hello.public, said->public, PUBLIC); /* ours */
	status = whole_say(fd, &said->hello, sizeof(said->hello), err);
	if (status == HALE_OK)
		status = whole_hear(fd, &a, sizeof(a), err);
	if (status != HALE_OK)
		return status;
	memcpy(said->public, a.public, PUBLIC);
	memcpy(theirs, a.public, PUBLIC);
	said->cipher = a.cipher;
	mac_make(mac, "called", said, secret);
	if (sodium_memcmp(mac, a.mac, MAC) != 0 ||
	    (a.cipher != SEAL_AES256 && a.cipher != SEAL_CHACHA20) ||
	    !(a.cipher & said->hello.ciphers))
		return stranger(err);
	mac_make(mac, "caller", said, secret);
	return whole_say(fd, mac, sizeof(mac), err);
}

static hale_status_t answer(int fd, struct sealed_said *said, const unsigned char *secret,
			    unsigned char *theirs, struct error *err)
{
	uint32_t mine = said->hello.ciphers, both;
	struct sealed_answer a = {.cipher = 0};
	unsigned char mac[MAC], proof[MAC];
	hale_status_t status = whole_hear(fd, &said->hello, sizeof(said->hello), err);

	if (status != HALE_OK)
		return status;
	both = mine & said->hello.ciphers;
	if (memcmp(said->hello.magic, magic, sizeof(magic)) != 0 || both == 0)
		return stranger(err);
	memcpy(theirs, said->hello.public, PUBLIC);
	a.cipher = said->cipher = both & SEAL_AES256 ? SEAL_AES256 : SEAL_CHACHA20;
	memcpy(a.public, said->public, PUBLIC);
	mac_make(a.mac, "called", said, secret);
	status = whole_say(fd, &a, sizeof(a), err);
	if (status == HALE_OK)
		status = whole_hear(fd, proof, sizeof(proof), err);
	if (status != HALE_OK)
		return status;
	mac_make(mac, "caller", said, secret);
	return sodium_memcmp(mac, proof, MAC) == 0 ? HALE_OK : stranger(err);
}

static hale_status_t agree(int fd, bool caller, const unsigned char *secret,
			   const struct sealed_purpose *purpose, struct seal_keys *keys,
			   struct error *err)
{
	struct sealed_said said = {.purpose = *purpose};
	unsigned char private[PUBLIC], theirs[PUBLIC];
	hale_status_t status;

	if (!seal_init())
		return error_set(err, HALE_ERR_UNSUPPORTED, "libsodium can't be used here");
	said.hello.ciphers = seal_ciphers();
	memcpy(said.hello.magic, magic, sizeof(magic));
	if (getrandom(private, PUBLIC, 0) != PUBLIC ||
	    crypto_scalarmult_base(said.public, private) != 0)
		return error_sys(err, HALE_ERR_SYSTEM, "cannot draw a random number");
	status =
	    caller ? call(fd, &said, secret, theirs, err) : answer(fd, &said, secret, theirs, err);
	if (status == HALE_OK && crypto_scalarmult(said.shared, private, theirs) != 0)
		status = stranger(err);
	mac_make(caller ? keys->out : keys->in, "to calld", &said, secret);
	mac_make(caller ? keys->in : keys->out, "to callr", &said, secret);
	keys->cipher = said.cipher;
	sodium_memzero(private, sizeof(private));
	sodium_memzero(&said, sizeof(said));
	return status;
}

hale_status_t sealed_open(struct sealed **s, int fd, bool caller,
			  const unsigned char secret[SEGMENT_SECRET],
			  const struct sealed_purpose *purpose, struct error *err)
{
	struct seal_keys keys;
	hale_status_t status;

	*s = NULL;
	status = agree(fd, caller, secret, purpose, &keys, err);
	if (status == HALE_OK) {
		*s = calloc(1, sizeof(**s));
		if (*s)
			(*s)->seal = seal_create(&keys);
		if (!*s || !(*s)->seal) {
			free(*s);
			*s = NULL;
			status = error_set(err, HALE_ERR_MEMORY, "out of memory");
		}
	}
	sodium_memzero(&keys, sizeof(keys));
	if (*s)
		(*s)->fd = fd;
	return status;
}

hale_status_t sealed_prove(int fd, bool caller, const unsigned char secret[SEGMENT_SECRET],
			   const struct sealed_purpose *purpose, struct error *err)
{
	struct seal_keys keys;
	hale_status_t status = agree(fd, caller, secret, purpose, &keys, err);

	sodium_memzero(&keys, sizeof(keys));
	return status;
}

void sealed_free(struct sealed *s)
{
	if (!s)
		return;
	seal_destroy(s->seal);
	sodium_memzero(s, sizeof(*s));
	free(s);
}

/* ---- one after the other ---- */

static hale_status_t used_up(struct error *err)
{
	return error_set(err, HALE_ERR_LINK, "the connection has sent as much as its keys are for");
}

static hale_status_t changed(struct error *err)
{
	return error_set(err, HALE_ERR_PROTOCOL, "what came was changed on its way");
}

hale_status_t sealed_say(struct sealed *s, const void *bytes, size_t len, struct error *err)
{
	struct iovec iov = {(void *)(uintptr_t)bytes, len};
	const unsigned char *at;
	size_t done = 0, n;

	while (done < len) {
		n = seal_put(s->seal, &iov, 1, done);
		if (n == 0)
			return used_up(err);
		done += n;
		n = seal_sendable(s->seal, &at);
		hale_status_t status = whole_say(s->fd, at, n, err);
		if (status != HALE_OK)
			return status;
		seal_sent(s->seal, n);
	}
	return HALE_OK;
}

static hale_status_t hear_record(struct sealed *s, struct error *err)
{
	long bytes;

	while ((bytes = seal_next(s->seal)) == 0) {
		unsigned char *at;
		size_t room = seal_room(s->seal, &at);
		ssize_t n = recv(s->fd, at, room, 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return whole_broken(n, err);
		seal_came(s->seal, (size_t)n);
	}
	if (bytes < 0 || !seal_open(s->seal, s->plain))
		return changed(err);
	s->begin = 0;
	s->end = (size_t)bytes;
	return HALE_OK;
}

hale_status_t sealed_hear(struct sealed *s, void *bytes, size_t len, struct error *err)
{
	char *to = bytes;

	while (len > 0) {
		size_t n = s->end - s->begin;

		if (n == 0) {
			hale_status_t status = hear_record(s, err);

			if (status != HALE_OK)
				return status;
			continue;
		}
		n = n < len ? n : len;
		memcpy(to, s->plain + s->begin, n);
		s->begin += n;
		to += n;
		len -= n;
	}
	return HALE_OK;
}

/* ---- both ways at once ---- */

struct pump {
	struct sealed *s;
	int plain, wire;
	unsigned char read[SEAL_RECORD];
	bool out_ended, in_ended; /* the process, the other pump has said all */
	bool broken;
	enum sealed_end end;
};

static bool would_wait(ssize_t n)
{
	return n < 0 && (errno == EAGAIN || errno == EINTR);
}

/* False: nothing can be done for the moment. */
static bool seal_one(struct pump *p)
{
	const unsigned char *at;
	size_t left = seal_sendable(p->s->seal, &at);
	ssize_t n;

	if (left > 0) {
		n = send(p->wire, at, left, MSG_NOSIGNAL);
		if (n > 0)
			seal_sent(p->s->seal, (size_t)n);
		else if (!would_wait(n))
			p->broken = true;
		return n > 0;
	}
	if (p->out_ended)
		return false;
	n = recv(p->plain, p->read, sizeof(p->read), 0);
	if (n > 0) {
		struct iovec iov = {p->read, (size_t)n};

		if (seal_put(p->s->seal, &iov, 1, 0) == 0)
			p->broken = true; /* the keys are used up */
		return true;
	}
	if (would_wait(n))
		return false;
	p->out_ended = true;
	shutdown(p->wire, SHUT_WR);
	return false;
}

static bool open_one(struct pump *p)
{
	struct sealed *s = p->s;
	unsigned char *at;
	size_t room;
	long bytes;
	ssize_t n;

	if (s->begin < s->end) {
		n = send(p->plain, s->plain + s->begin, s->end - s->begin, MSG_NOSIGNAL);
		if (n > 0)
			s->begin += (size_t)n;
		else if (!would_wait(n)) { /* who would read it is gone */
			p->in_ended = p->out_ended = true;
			s->begin = s->end;
		}
		return n > 0;
	}
	if (p->in_ended)
		return false;
	bytes = seal_next(s->seal);
	if (bytes != 0) {
		if (bytes < 0 || !seal_open(s->seal, s->plain)) {
			p->end = SEALED_CHANGED;
			return false;
		}
		s->begin = 0;
		s->end = (size_t)bytes;
		return true;
	}
	room = seal_room(s->seal, &at);
	n = recv(p->wire, at, room, 0);
	if (n > 0) {
		seal_came(s->seal, (size_t)n);
		return true;
	}
	if (would_wait(n))
		return false;
	p->in_ended = true;
	shutdown(p->plain, SHUT_WR);
	return false;
}

static bool pump_over(const struct pump *p)
{
	const unsigned char *at;

	return p->end != SEALED_OVER || p->broken ||
	       (p->in_ended && p->out_ended && p->s->begin == p->s->end &&
		seal_sendable(p->s->seal, &at) == 0);
}

/* What each descriptor is waited for. */
static void pump_wait(const struct pump *p)
{
	const unsigned char *at;
	bool to_wire = seal_sendable(p->s->seal, &at) > 0, to_plain = p->s->begin < p->s->end;
	struct pollfd fds[2] = {{.fd = p->plain}, {.fd = p->wire}};

	if (to_wire)
		fds[1].events |= POLLOUT;
	else if (!p->out_ended)
		fds[0].events |= POLLIN;
	if (to_plain)
		fds[0].events |= POLLOUT;
	else if (!p->in_ended)
		fds[1].events |= POLLIN;
	/* a hang-up that nothing is waited for on would be told at once, over and over */
	for (int i = 0; i < 2; i++)
		if (fds[i].events == 0)
			fds[i].fd = -1;
	poll(fds, 2, -1);
}

enum sealed_end sealed_pump(int plain, int wire, bool caller,
			    const unsigned char secret[SEGMENT_SECRET],
			    const struct sealed_purpose *purpose, struct error *err)
{
	struct pump *p = calloc(1, sizeof(*p));
	enum sealed_end end;

	if (!p) {
		error_set(err, HALE_ERR_MEMORY, "out of memory");
		return SEALED_FAILED;
	}
	*p = (struct pump){.plain = plain, .wire = wire};
	if (sealed_open(&p->s, wire, caller, secret, purpose, err) != HALE_OK || !p->s) {
		free(p);
		return SEALED_FAILED;
	}
	fcntl(plain, F_SETFL, fcntl(plain, F_GETFL) | O_NONBLOCK);
	fcntl(wire, F_SETFL, fcntl(wire, F_GETFL) | O_NONBLOCK);
	while (!pump_over(p)) {
		bool some = seal_one(p);

		some = open_one(p) || some;
		if (!some && !pump_over(p))
			pump_wait(p);
	}
	end = p->end;
	sealed_free(p->s);
	sodium_memzero(p, sizeof(*p));
	free(p);
	return end;
}
