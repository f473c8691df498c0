/* SPDX-License-Identifier: BSD-3-Clause */
/* HALE_NET_DEVICES, HALE_NET_PORTS; addresses as text. */
#include <arpa/inet.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/fmt.h"
#include "base/reach.h"

enum { MAPPED_BITS = 96, FIELD_MAX = 64, PORTS_MIN = 1024 };

struct reach_wish reach_wish_own(void)
{
	return (struct reach_wish){getenv("HALE_NET_DEVICES"), getenv("HALE_NET_PORTS")};
}

/* Digits only, up to max, to *at. */
static bool number(const char **at, unsigned max, unsigned *value)
{
	const char *from = *at;

	for (*value = 0; **at >= '0' && **at <= '9'; ++*at) {
		*value = *value * 10 + (unsigned)(**at - '0');
		if (*value > max)
			return false;
	}
	return *at != from;
}

/* "10.1.0.0/16", "fd00::1": an address, or a network. */
static bool network_read(struct reach_place *p, const char *text, size_t len)
{
	char field[FIELD_MAX];
	const char *slash = memchr(text, '/', len), *bits = slash ? slash + 1 : NULL;
	size_t bare = slash ? (size_t)(slash - text) : len;
	unsigned char ip[16];
	unsigned prefix;

	if (bare >= sizeof(field))
		return false;
	memcpy(field, text, bare);
	field[bare] = '\0';
	if (inet_pton(AF_INET, field, ip) == 1) {
		reach_from_ip4(p, ip);
		prefix = 32;
	} else if (inet_pton(AF_INET6, field, ip) == 1) {
		*p = (struct reach_place){.prefix = 128};
		memcpy(p->ip, ip, sizeof(p->ip));
		prefix = 128;
	} else {
		return false;
	}
	if (bits && (!number(&bits, prefix, &prefix) || bits != text + len))
		return false;
	p->prefix = (uint8_t)(reach_is_ip4(p) ? MAPPED_BITS + prefix : prefix);
	return true;
}

/* An interface's name, as the kernel takes them; "eth0:1" stands for an address of eth0. */
static bool is_name(const char *text, size_t len)
{
	return len > 0 && len < IFNAMSIZ && !memchr(text, '/', len) && !memchr(text, '^', len) &&
	       !memchr(text, ' ', len);
}

/* The next of the list's words; false: there is none. */
static bool word_next(const char **list, const char **word, size_t *len)
{
	*list += **list == ',';
	*word = *list;
	*len = strcspn(*list, ",");
	*list += *len;
	return *len > 0 || **list == ',';
}

static const char *list_of(const struct reach_wish *w, bool *except)
{
	const char *list = w->devices && *w->devices ? w->devices : NULL;

	*except = list && *list == '^';
	return *except ? list + 1 : list;
}

/* Is it in the list, by the interface's name (or what stands before its colon) or its address? */
static bool listed(const char *list, const char *name, const struct reach_place *p)
{
	size_t n = strcspn(name, ":"), len;
	const char *word;
	struct reach_place net;

	while (word_next(&list, &word, &len))
		if ((len == n && strncmp(word, name, n) == 0) ||
		    (network_read(&net, word, len) && reach_same_network(&net, p, net.prefix)))
			return true;
	return false;
}

bool reach_wanted(const struct reach_wish *w, const char *name, const struct reach_place *p,
		  bool usual, bool *named)
{
	bool except, in;
	const char *list = list_of(w, &except);

	in = list && listed(list, name, p);
	*named = in && !except;
	return list && !except ? in : usual && !in;
}

bool reach_ports(const struct reach_wish *w, unsigned *first, unsigned *last)
{
	const char *text = w->ports ? w->ports : "";

	if (!number(&text, 65535, first))
		return false;
	*last = *first;
	if (*text == '-' && (++text, !number(&text, 65535, last)))
		return false;
	return !*text && *first >= PORTS_MIN && *first <= *last;
}

bool reach_wish_check(const struct reach_wish *w, char *why, size_t cap)
{
	bool except;
	const char *list = list_of(w, &except), *word;
	struct reach_place net;
	unsigned first, last;
	size_t len;

	for (const char *at = list; at && word_next(&at, &word, &len);) {
		if (is_name(word, len) || network_read(&net, word, len))
			continue;
		fmt_print(why, cap,
			  "HALE_NET_DEVICES=%.200s: '%.*s' is neither an interface (eth0) nor a "
			  "network (10.1.0.0/16, fd00:7::/64); ^ before all of them: all but those",
			  w->devices, (int)(len < 60 ? len : 60), word);
		return false;
	}
	if (list && !*list) {
		fmt_print(why, cap, "HALE_NET_DEVICES=^ names no interface; ^docker0: all but it");
		return false;
	}
	if (!w->ports || !*w->ports || reach_ports(w, &first, &last))
		return true;
	fmt_print(why, cap,
		  "HALE_NET_PORTS=%.60s is no range of ports from %d to 65535, as 40000-40999",
		  w->ports, (int)PORTS_MIN);
	return false;
}

/* ---- addresses ---- */

char *reach_print(char text[REACH_TEXT_MAX], const struct reach_place *place)
{
	char ip[INET6_ADDRSTRLEN];

	if (reach_is_ip4(place)) {
		inet_ntop(AF_INET, reach_ip4(place), ip, sizeof(ip));
		snprintf(text, REACH_TEXT_MAX, "%s:%u", ip, ntohs(place->port));
	} else {
		inet_ntop(AF_INET6, place->ip, ip, sizeof(ip));
		snprintf(text, REACH_TEXT_MAX, "[%s]:%u", ip, ntohs(place->port));
	}
	return text;
}

bool reach_read(struct reach_place *place, const char *text, size_t len)
{
	const char *colon = memrchr(text, ':', len), *port = colon ? colon + 1 : NULL;
	size_t bare = colon ? (size_t)(colon - text) : 0;
	bool bracket = bare >= 2 && text[0] == '[' && text[bare - 1] == ']';
	unsigned value;

	if (!colon || !number(&port, 65535, &value) || port != text + len || value == 0 ||
	    memchr(text, '/', len) ||
	    !network_read(place, text + bracket, bare - (bracket ? 2 : 0)) ||
	    reach_is_ip4(place) == bracket)
		return false;
	place->port = htons((uint16_t)value);
	return true;
}
