// SPDX-License-Identifier: BSD-3-Clause
/* Where this process can be reached. HALE_NET_DEVICES=eth0,ib0 names the interfaces; without it
 * loopback is used when the whole job is on this machine, and otherwise all are that are up. Each
 * has a listening socket of its own, bound to its address: nothing listens on other interfaces.
 *
 * getifaddrs needs malloc, so the kernel is asked directly. */
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/fmt.h"
#include "channel/net/tcp.h"

enum { INTERFACES_MAX = 64 };

/* Is name, or what stands before its colon, in the list? */
static bool listed(const char *list, const char *name)
{
	size_t n = strcspn(name, ":");
	while (*list) {
		size_t k = strcspn(list, ",");
		if (k == n && strncmp(list, name, n) == 0)
			return true;
		list += k + (list[k] == ',');
	}
	return false;
}

static uint32_t ip_of(const struct sockaddr *sa)
{
	struct sockaddr_in in;
	memcpy(&in, sa, sizeof(in));
	return in.sin_addr.s_addr;
}

static uint8_t prefix_of(int s, struct ifreq *r)
{
	if (ioctl(s, SIOCGIFNETMASK, r))
		return 32;
	return (uint8_t)__builtin_popcount(ip_of(&r->ifr_netmask));
}

/* Adds the interfaces that are up, and loopback or not as wanted, or in the list. */
static unsigned collect(int s, const struct ifreq *all, size_t count, const char *list,
			bool loopback, struct tcp_place *place)
{
	unsigned n = 0;
	for (size_t i = 0; i < count && n < TCP_PLACES_MAX; i++) {
		struct ifreq r = all[i];
		uint32_t ip = ip_of(&r.ifr_addr);
		if (r.ifr_addr.sa_family != AF_INET || ioctl(s, SIOCGIFFLAGS, &r) ||
		    !(r.ifr_flags & IFF_UP))
			continue;
		bool lo = r.ifr_flags & IFF_LOOPBACK;
		if (list ? listed(list, r.ifr_name) : lo == loopback)
			place[n++] = (struct tcp_place){.ip = ip, .prefix = prefix_of(s, &r)};
	}
	return n;
}

unsigned tcp_interfaces(struct tcp_place place[TCP_PLACES_MAX], char *why)
{
	struct ifreq all[INTERFACES_MAX];
	struct ifconf conf = {.ifc_len = sizeof(all), .ifc_req = all};
	const char *list = getenv("HALE_NET_DEVICES");
	if (list && !*list)
		list = NULL;
	int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (s < 0 || ioctl(s, SIOCGIFCONF, &conf)) {
		fmt_print(why, WIRE_WHY, "can't look at the network interfaces: %m");
		if (s >= 0)
			close(s);
		return 0;
	}
	size_t count = (size_t)conf.ifc_len / sizeof(all[0]);
	unsigned n = collect(s, all, count, list, tcp.self.one_host, place);
	if (n == 0 && !list)
		n = collect(s, all, count, list, !tcp.self.one_host, place);
	close(s);
	if (n == 0)
		fmt_print(why, WIRE_WHY,
			  list ? "no interface of HALE_NET_DEVICES=%s is up and has an IPv4 address"
			       : "no network interface is up and has an IPv4 address%s",
			  list ? list : "");
	return n;
}

/* 0: in a network that we are in, too; 1: elsewhere; 2: an address of ours, so a process on this
 * host, or an address that every host has (a bridge for containers). */
static int distance(const struct tcp_place *p)
{
	int d = 1;
	for (unsigned i = 0; i < tcp.nplaces; i++) {
		const struct tcp_place *o = &tcp.address.place[i];
		uint32_t mask = o->prefix ? htonl(~0u << (32 - o->prefix)) : 0;
		if (o->ip == p->ip)
			return 2;
		if ((o->ip & mask) == (p->ip & mask))
			d = 0;
	}
	return d;
}

struct tcp_place tcp_place_choose(const struct tcp_place *of, unsigned n, uint32_t attempt)
{
	uint32_t k = attempt % n;
	for (int d = 0; d <= 2; d++)
		for (unsigned i = 0; i < n; i++)
			if (distance(&of[i]) == d && k-- == 0)
				return of[i];
	return of[0];
}
