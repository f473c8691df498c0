/* SPDX-License-Identifier: BSD-3-Clause */
/* The interfaces of this host. getifaddrs needs malloc, so the kernel is asked directly. */
#include <fcntl.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/fmt.h"
#include "base/reach.h"

enum {
	ADDRESSES_MAX = 256, /* looked at, of IPv4 and of IPv6 */
	MAPPED_BITS = 96,
	LINE_MAX_BYTES = 64,
};

/* of /proc/net/if_inet6 */
enum { SCOPE_LINK = 0x20 };
enum { TEMPORARY = 0x01, DUPLICATE = 0x08, DEPRECATED = 0x20, TENTATIVE = 0x40 };

/* What is found, and how good it looks: the lower, the earlier it is tried. */
struct found {
	struct reach_place place[REACH_PLACES_MAX];
	unsigned rank[REACH_PLACES_MAX], count;
};

/* Behind those that look as good; the worst has to go when there are too many. */
static void found_add(struct found *f, const struct reach_place *p, unsigned rank)
{
	unsigned at = f->count;

	while (at > 0 && f->rank[at - 1] > rank)
		at--;
	if (at == REACH_PLACES_MAX)
		return;
	f->count += f->count < REACH_PLACES_MAX;
	for (unsigned i = f->count - 1; i > at; i--) {
		f->place[i] = f->place[i - 1];
		f->rank[i] = f->rank[i - 1];
	}
	f->place[at] = *p;
	f->rank[at] = rank;
}

/* As container engines and virtual machines name the bridges and tunnels that they make on each
 * host, mostly with the same addresses. */
static bool is_for_guests(const char *name)
{
	static const char *const begin[] = {"docker", "br-",  "virbr",	 "lxcbr", "lxdbr", "podman",
					    "cni",    "veth", "flannel", "cali",  "vnet",  "tunl"};

	for (unsigned i = 0; i < sizeof(begin) / sizeof(begin[0]); i++)
		if (strncmp(name, begin[i], strlen(begin[i])) == 0)
			return true;
	return false;
}

struct search {
	int s; /* a socket to ask the kernel by */
	const struct reach_wish *wish;
	bool loopback;
	struct found found;
};

/* Takes it if it is up, and loopback or not as wanted, or named. */
static void look_at(struct search *q, const struct ifreq *all, const struct reach_place *p)
{
	struct ifreq r = *all;
	bool named;

	if (ioctl(q->s, SIOCGIFFLAGS, &r) || !(r.ifr_flags & IFF_UP) ||
	    !reach_wanted(q->wish, all->ifr_name, p,
			  ((r.ifr_flags & IFF_LOOPBACK) != 0) == q->loopback, &named))
		return;
	found_add(&q->found, p,
		  (r.ifr_flags & IFF_RUNNING ? 0 : 4u) +
		      (!named && is_for_guests(all->ifr_name) ? 2u : 0) + !reach_is_ip4(p));
}

static void look_at_ip4(struct search *q, const struct ifreq *all, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct ifreq r = all[i];
		struct sockaddr_in in;
		struct reach_place p;

		memcpy(&in, &r.ifr_addr, sizeof(in));
		if (in.sin_family != AF_INET)
			continue;
		reach_from_ip4(&p, &in.sin_addr);
		if (ioctl(q->s, SIOCGIFNETMASK, &r) == 0) {
			memcpy(&in, &r.ifr_netmask, sizeof(in));
			p.prefix = (uint8_t)(MAPPED_BITS + __builtin_popcount(in.sin_addr.s_addr));
		}
		look_at(q, &all[i], &p);
	}
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
static bool line_read(const char *line, struct reach_place *p, struct ifreq *r)
{
	unsigned scope, flags;
	size_t length;

	*p = (struct reach_place){.port = 0};
	for (unsigned i = 0; i < sizeof(p->ip); i++)
		p->ip[i] = (unsigned char)hex(&line, 2);
	hex(&line, 8);
	p->prefix = (uint8_t)hex(&line, 2);
	scope = hex(&line, 2);
	flags = hex(&line, 2);
	length = strlen(line);
	if (length >= sizeof(r->ifr_name) || p->prefix > 128)
		return false;
	*r = (struct ifreq){.ifr_flags = 0};
	memcpy(r->ifr_name, line, length);
	return scope != SCOPE_LINK && !(flags & (TEMPORARY | DUPLICATE | DEPRECATED | TENTATIVE));
}

static void look_at_ip6(struct search *q)
{
	char text[ADDRESSES_MAX * LINE_MAX_BYTES];
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
	for (char *line = text, *end; (end = strchr(line, '\n')); line = end + 1) {
		struct reach_place p;
		struct ifreq r;

		*end = '\0';
		if (line_read(line, &p, &r))
			look_at(q, &r, &p);
	}
}

static void look(struct search *q, const struct ifreq *all, size_t count, bool loopback)
{
	q->loopback = loopback;
	look_at_ip4(q, all, count);
	/* on one machine one is enough */
	if (q->found.count == 0 || !loopback)
		look_at_ip6(q);
}

static void nothing_found(const struct reach_wish *w, char *why, size_t cap)
{
	if (w->devices && *w->devices)
		fmt_print(why, cap,
			  "no interface of HALE_NET_DEVICES=%.200s is up and has an address",
			  w->devices);
	else
		fmt_print(why, cap, "no network interface is up and has an address");
}

unsigned reach_find(struct reach_place place[REACH_PLACES_MAX], const struct reach_wish *w,
		    bool local, char *why, size_t cap)
{
	struct ifreq all[ADDRESSES_MAX];
	struct ifconf conf = {.ifc_len = sizeof(all), .ifc_req = all};
	struct search q = {.s = -1, .wish = w};
	size_t count;

	if (!reach_wish_check(w, why, cap))
		return 0;
	q.s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (q.s < 0) /* a kernel without IPv4 */
		q.s = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (q.s < 0) {
		fmt_print(why, cap, "can't look at the network interfaces: %m");
		return 0;
	}
	if (ioctl(q.s, SIOCGIFCONF, &conf))
		conf.ifc_len = 0;
	count = (size_t)conf.ifc_len / sizeof(all[0]);
	look(&q, all, count, local);
	if (q.found.count == 0) /* a machine without a network */
		look(&q, all, count, !local);
	close(q.s);
	if (q.found.count == 0)
		nothing_found(w, why, cap);
	memcpy(place, q.found.place, sizeof(q.found.place));
	return q.found.count;
}
