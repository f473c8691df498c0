/* SPDX-License-Identifier: BSD-3-Clause */
/* Where a process of a job can be reached by those on other hosts, and how others get there: the
 * same for ranks' messages, copies of images and ranks that move (docs/network-channel.md,
 * 'Addresses').
 *
 * Who listens does so at the addresses of its host's interfaces, tells where (struct reach_place,
 * up to REACH_PLACES_MAX), and who calls tries them, the likeliest first. Which addresses lead from
 * one host to another nobody can know beforehand: a bridge for containers has the same one
 * everywhere.
 *
 * Async-signal-safe but for reach_print and reach_read. */
#ifndef HALE_BASE_REACH_H
#define HALE_BASE_REACH_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { REACH_PLACES_MAX = 8, REACH_TEXT_MAX = 56 };

/* IPv4 addresses stand in IPv6's form, ::ffff:a.b.c.d; prefix: bits of all 128 that its network
 * has. As it stands here it goes to other hosts. */
struct reach_place {
	unsigned char ip[16];
	uint16_t port; /* network order; 0: none yet */
	uint8_t prefix, zero;
};

static inline bool reach_is_ip4(const struct reach_place *p)
{
	static const unsigned char mapped[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

	return memcmp(p->ip, mapped, sizeof(mapped)) == 0;
}
/* Its four bytes. */
static inline const unsigned char *reach_ip4(const struct reach_place *p)
{
	return p->ip + 12;
}
static inline void reach_from_ip4(struct reach_place *p, const void *ip)
{
	*p = (struct reach_place){.ip = {[10] = 0xff, 0xff}, .prefix = 128};
	memcpy(p->ip + 12, ip, 4);
}
/* Are the first bits of both alike? */
bool reach_same_network(const struct reach_place *a, const struct reach_place *b, unsigned bits);

union reach_sockaddr {
	struct sockaddr any;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

/* What the user says of interfaces and ports: the values of HALE_NET_DEVICES and HALE_NET_PORTS,
 * NULL or "": nothing.
 *
 * devices: "eth0,10.1.0.0/16,fd00:7::/64": interfaces by their names, by their addresses, or by the
 * networks that these are in. "^docker0,…": all but those.
 * ports: "40000-40999": listen at these. */
struct reach_wish {
	const char *devices, *ports;
};
/* What stands in this process's environment. */
struct reach_wish reach_wish_own(void);
/* False: a wish can't be read; why (cap bytes) says which, and how it is written. */
bool reach_wish_check(const struct reach_wish *w, char *why, size_t cap);

/* Is an interface of that name, with that address, to be used? usual: it would be without a wish.
 * *named: because it was asked for. w has been checked. */
bool reach_wanted(const struct reach_wish *w, const char *name, const struct reach_place *p,
		  bool usual, bool *named);
/* False: no ports are wished for, or none that can be read. */
bool reach_ports(const struct reach_wish *w, unsigned *first, unsigned *last);

/* The addresses of this host, without ports; those that are likeliest to lead somewhere first:
 * interfaces without a cable and bridges of containers come last, IPv6 behind IPv4. Not addresses
 * of IPv6 that mean something on one link only, or not for long. local: the whole job is on this
 * machine, and one of loopback will do. Returns how many; 0: none, why says so (cap bytes). */
unsigned reach_find(struct reach_place place[REACH_PLACES_MAX], const struct reach_wish *w,
		    bool local, char *why, size_t cap);

/* A nonblocking TCP socket (CLOEXEC) for that place, and its address as the kernel wants it, *bytes
 * long. Returns the descriptor, or -1 with errno. */
int reach_socket(const struct reach_place *place, union reach_sockaddr *to, socklen_t *bytes);
/* One that listens there, at a port of its own, or one of those that are wished for; place->port
 * says which. prepare (or NULL) is given the socket before that. Returns the descriptor, or -1 with
 * errno; EADDRINUSE: all ports that are wished for are taken. */
int reach_listen(struct reach_place *place, const struct reach_wish *w, void (*prepare)(int fd));

/* The place to try at the attempt-th attempt, 0, 1, …: of n > 0 places of another process, from one
 * whose own are own (their ports don't matter). Those in a network that we are in come first, then
 * all others, then those that have an address of ours: a process on this host, or an address that
 * every host has. */
struct reach_place reach_choose(const struct reach_place *of, unsigned n,
				const struct reach_place *own, unsigned nown, uint32_t attempt);

/* "10.0.0.1:4711", "[fd00::1]:4711"; returns text. */
char *reach_print(char text[REACH_TEXT_MAX], const struct reach_place *place);
/* The same back, from the first len bytes; prefix: all of it. False: it is none. */
bool reach_read(struct reach_place *place, const char *text, size_t len);

#endif
