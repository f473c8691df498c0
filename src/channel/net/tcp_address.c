// SPDX-License-Identifier: BSD-3-Clause
/* Where this process can be reached. HALE_NET_DEVICES=eth0,ib0 names the interfaces; without it
 * loopback is used when the whole job is on this machine, and otherwise all are that are up. Each
 * has a listening socket of its own, bound to its address: nothing listens on other interfaces.
 * IPv6 comes behind IPv4: not addresses that mean something on one link only, or not for long.
 *
 * getifaddrs needs malloc, so the kernel is asked directly. */
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/fmt.h"
#include "channel/net/tcp.h"

enum { INTERFACES_MAX = 64, MAPPED_BITS = 96, LINE_MAX_BYTES = 64 };

/* of /proc/net/if_inet6 */
enum { SCOPE_LINK = 0x20 };
enum { TEMPORARY = 0x01, DUPLICATE = 0x08, DEPRECATED = 0x20, TENTATIVE = 0x40 };

static const unsigned char mapped[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

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

/* Of all 128 bits. */
static uint8_t prefix_of(int s, struct ifreq *r)
{
	if (ioctl(s, SIOCGIFNETMASK, r))
		return 128;
	return (uint8_t)(MAPPED_BITS + __builtin_popcount(ip_of(&r->ifr_netmask)));
}

/* Is it up, and loopback or not as wanted, or in the list? */
static bool suits(int s, const struct ifreq *all, const char *list, bool loopback)
{
	struct ifreq r = *all;
	if (ioctl(s, SIOCGIFFLAGS, &r) || !(r.ifr_flags & IFF_UP))
		return false;
	bool lo = r.ifr_flags & IFF_LOOPBACK;
	return list ? listed(list, r.ifr_name) : lo == loopback;
}

static unsigned collect(int s, const struct ifreq *all, size_t count, const char *list,
			bool loopback, struct tcp_place *place)
{
	unsigned n = 0;
	for (size_t i = 0; i < count && n < TCP_PLACES_MAX; i++) {
		struct ifreq r = all[i];
		uint32_t ip = ip_of(&r.ifr_addr);
		if (r.ifr_addr.sa_family != AF_INET || !suits(s, &r, list, loopback))
			continue;
		struct tcp_place *p = &place[n++];
		*p = (struct tcp_place){.prefix = prefix_of(s, &r)};
		memcpy(p->ip, mapped, sizeof(mapped));
		memcpy(p->ip + sizeof(mapped), &ip, sizeof(ip));
	}
	return n;
}

/* ---- IPv6: "address index prefix scope flags name", a line each ---- */

/* The hexadecimal number at *at, of so many digits at most, and what is blank behind it. */
static unsigned hex(const char **at, unsigned digits)
{
	unsigned value = 0;
	for (const char *c; digits--; ++*at) {
		static const char all[] = "0123456789abcdef";
		if (!**at || !(c = strchr(all, **at)))
			break;
		value = value << 4 | (unsigned)(c - all);
	}
	while (**at == ' ')
		++*at;
	return value;
}

/* The interface's name goes into r. False: an address of no use. */
static bool line_read(const char *line, struct tcp_place *p, struct ifreq *r)
{
	*p = (struct tcp_place){.port = 0};
	for (unsigned i = 0; i < sizeof(p->ip); i++)
		p->ip[i] = (unsigned char)hex(&line, 2);
	hex(&line, 8);
	p->prefix = (uint8_t)hex(&line, 2);
	unsigned scope = hex(&line, 2), flags = hex(&line, 2);
	size_t length = strlen(line);
	if (length >= sizeof(r->ifr_name) || p->prefix > 128)
		return false;
	*r = (struct ifreq){.ifr_flags = 0};
	memcpy(r->ifr_name, line, length);
	return scope != SCOPE_LINK && !(flags & (TEMPORARY | DUPLICATE | DEPRECATED | TENTATIVE));
}

/* Behind the n places that there are. Returns how many there are now. */
static unsigned collect6(int s, const char *list, bool loopback, struct tcp_place *place,
			 unsigned n)
{
	char text[INTERFACES_MAX * LINE_MAX_BYTES];
	struct ifreq r;
	size_t have = 0;
	ssize_t k = 1;
	int fd = open("/proc/net/if_inet6", O_RDONLY | O_CLOEXEC);
	while (fd >= 0 && k > 0 && have < sizeof(text) - 1) {
		k = read(fd, text + have, sizeof(text) - 1 - have);
		have += k > 0 ? (size_t)k : 0;
	}
	if (fd >= 0)
		close(fd);
	text[have] = '\0';
	for (char *line = text, *end; n < TCP_PLACES_MAX && (end = strchr(line, '\n'));
	     line = end + 1) {
		*end = '\0';
		if (line_read(line, &place[n], &r) && suits(s, &r, list, loopback))
			n++;
	}
	return n;
}

static unsigned collect_all(int s, const struct ifreq *all, size_t count, const char *list,
			    bool loopback, struct tcp_place *place)
{
	unsigned n = collect(s, all, count, list, loopback, place);
	/* on one machine one is enough */
	return n && loopback ? n : collect6(s, list, loopback, place, n);
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
	unsigned n = collect_all(s, all, count, list, tcp.self.one_host, place);
	if (n == 0 && !list)
		n = collect_all(s, all, count, list, !tcp.self.one_host, place);
	close(s);
	if (n == 0)
		fmt_print(why, WIRE_WHY,
			  list ? "no interface of HALE_NET_DEVICES=%s is up and has an address"
			       : "no network interface is up and has an address%s",
			  list ? list : "");
	return n;
}

int tcp_place_socket(const struct tcp_place *place, union tcp_sockaddr *to, socklen_t *bytes)
{
	const int type = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;
	int one = 1;
	if (memcmp(place->ip, mapped, sizeof(mapped)) == 0) {
		to->in = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = place->port};
		memcpy(&to->in.sin_addr, place->ip + sizeof(mapped), sizeof(to->in.sin_addr));
		*bytes = sizeof(to->in);
		return socket(AF_INET, type, 0);
	}
	to->in6 = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = place->port};
	memcpy(&to->in6.sin6_addr, place->ip, sizeof(to->in6.sin6_addr));
	*bytes = sizeof(to->in6);
	int fd = socket(AF_INET6, type, 0);
	if (fd >= 0)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one));
	return fd;
}

static bool same_network(const struct tcp_place *a, const struct tcp_place *b, unsigned bits)
{
	unsigned bytes = bits / 8, rest = bits % 8;
	return memcmp(a->ip, b->ip, bytes) == 0 &&
	       (!rest || (a->ip[bytes] ^ b->ip[bytes]) >> (8 - rest) == 0);
}

/* 0: in a network that we are in, too; 1: elsewhere; 2: an address of ours, so a process on this
 * host, or an address that every host has (a bridge for containers). */
static int distance(const struct tcp_place *p)
{
	int d = 1;
	for (unsigned i = 0; i < tcp.nplaces; i++) {
		const struct tcp_place *o = &tcp.address.place[i];
		if (same_network(o, p, 128))
			return 2;
		if (same_network(o, p, o->prefix))
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
