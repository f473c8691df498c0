/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <linux/ipv6.h>
#include <net/if.h>
#include <sched.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "base/reach.h"

static struct reach_place place(const char *text, unsigned prefix)
{
	struct reach_place p;

	assert_true(reach_read(&p, text, strlen(text)));
	p.prefix = (uint8_t)(reach_is_ip4(&p) ? 96 + prefix : prefix);
	return p;
}

static void text_goes_there_and_back(void **state)
{
	static const char *const good[] = {"10.0.0.1:4711", "[fd00::1]:1", "[::1]:65535",
					   "255.255.255.255:80"};
	static const char *const bad[] = {"",
					  "10.0.0.1",
					  "10.0.0.1:",
					  "10.0.0.1:0",
					  "10.0.0.1:65536",
					  "10.0.0.1:1x",
					  "10.0.0:1",
					  "fd00::1:4711",
					  "[fd00::1]",
					  "[fd00::1:1",
					  "fd00::1]:1",
					  "[10.0.0.1]:1",
					  "[]:1",
					  ":1",
					  "[fd00::1/64]:1",
					  "10.0.0.0/8:1",
					  "n1:1",
					  "[::ffff:10.0.0.1]:1"};
	char text[REACH_TEXT_MAX];
	struct reach_place p;

	(void)state;
	for (unsigned i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_true(reach_read(&p, good[i], strlen(good[i])));
		assert_int_equal(p.prefix, 128);
		assert_string_equal(reach_print(text, &p), good[i]);
	}
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (reach_read(&p, bad[i], strlen(bad[i])))
			fail_msg("'%s' was taken for an address", bad[i]);
	/* only the first bytes */
	assert_true(reach_read(&p, "10.0.0.1:4711,10.0.0.2:1", 13));
	assert_int_equal(ntohs(p.port), 4711);
}

static bool wanted(const char *devices, const char *name, const char *address, bool usual)
{
	struct reach_wish w = {.devices = devices};
	struct reach_place p = place(address, 0);
	char why[300];
	bool named, is;

	p.prefix = 128;
	if (!reach_wish_check(&w, why, sizeof(why)))
		fail_msg("%s", why);
	is = reach_wanted(&w, name, &p, usual, &named);
	assert_true(!named || is);
	return is;
}

static void interfaces_are_named_by_name_address_or_network(void **state)
{
	(void)state;
	for (int usual = 0; usual < 2; usual++) {
		assert_int_equal(wanted(NULL, "eth0", "10.0.0.1:1", usual), usual);
		assert_int_equal(wanted("", "eth0", "10.0.0.1:1", usual), usual);
		assert_true(wanted("ib0,eth0", "eth0", "10.0.0.1:1", usual));
		assert_true(wanted("eth0", "eth0:1", "10.0.0.1:1", usual));
		assert_false(wanted("eth", "eth0", "10.0.0.1:1", usual));
		assert_false(wanted("eth01", "eth0", "10.0.0.1:1", usual));
		assert_true(wanted("10.0.0.1", "eth0", "10.0.0.1:1", usual));
		assert_true(wanted("ib0,10.0.0.0/15", "eth0", "10.1.0.1:1", usual));
		assert_false(wanted("10.0.0.0/15", "eth0", "10.2.0.1:1", usual));
		assert_true(wanted("fd00:7::/32", "eth0", "[fd00:7:8::1]:1", usual));
		assert_false(wanted("fd00:7::/32", "eth0", "[fd00:8::1]:1", usual));
		assert_true(wanted("0.0.0.0/0", "eth0", "10.2.0.1:1", usual));
		assert_false(wanted("0.0.0.0/0", "eth0", "[fd00::1]:1", usual));
	}
	assert_true(wanted("^docker0,172.16.0.0/12", "eth0", "10.0.0.1:1", true));
	assert_false(wanted("^docker0", "lo", "127.0.0.1:1", false));
	assert_false(wanted("^docker0,172.16.0.0/12", "docker0", "10.0.0.1:1", true));
	assert_false(wanted("^docker0,172.16.0.0/12", "br0", "172.17.0.1:1", true));
}

static void wishes_that_cannot_be_read_are_told(void **state)
{
	static const struct reach_wish bad[] = {
	    {"eth0,,ib0", NULL},       {"10.0.0.0/33", NULL}, {"fd00::/129", NULL},
	    {"10.0.0.0/", NULL},       {"10.0.0.0/8x", NULL}, {"^", NULL},
	    {"eth0,^docker0", NULL},   {"a name", NULL},      {"longer-than-names-are", NULL},
	    {NULL, "40000-"},	       {NULL, "1023"},	      {NULL, "40000-39999"},
	    {NULL, "40000-65536"},     {NULL, "ssh"},	      {NULL, "40000-40010,5"},
	    {"eth0", "40000 - 40010"},
	};
	static const struct reach_wish good[] = {
	    {NULL, NULL}, {"", ""}, {"eth0", "1024"}, {"^br-0123456789ab", "40000-40000"}};
	char why[400];

	(void)state;
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		why[0] = '\0';
		if (reach_wish_check(&bad[i], why, sizeof(why)))
			fail_msg("'%s' '%s' was taken", bad[i].devices, bad[i].ports);
		assert_non_null(strstr(why, bad[i].ports ? "HALE_NET_PORTS" : "HALE_NET_DEVICES"));
	}
	for (unsigned i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		if (!reach_wish_check(&good[i], why, sizeof(why)))
			fail_msg("%s", why);
}

static void places_in_our_networks_come_first_and_our_own_addresses_last(void **state)
{
	const struct reach_place own[] = {place("10.1.0.5:1", 16), place("172.17.0.1:1", 16),
					  place("[fd00:7::5]:1", 64)};
	const struct reach_place of[] = {place("172.17.0.1:7", 16), place("192.168.9.9:7", 24),
					 place("10.1.0.6:7", 16), place("[fd00:7::6]:7", 64)};
	static const unsigned order[] = {2, 3, 1, 0};

	(void)state;
	for (uint32_t k = 0; k < 12; k++) {
		struct reach_place p = reach_choose(of, 4, own, 3, k);

		assert_memory_equal(&p, &of[order[k % 4]], sizeof(p));
	}
	for (uint32_t k = 0; k < 3; k++) { /* nothing known of ourselves */
		struct reach_place p = reach_choose(of, 3, NULL, 0, k);

		assert_memory_equal(&p, &of[k], sizeof(p));
	}
}

static unsigned prepared;

static void prepare(int fd)
{
	assert_true(fd >= 0);
	prepared++;
}

/* Each finds one that nobody has, until all are taken. */
static void ports_are_those_that_are_wished_for(void **state)
{
	struct reach_place p = place("127.0.0.1:1", 8);
	struct reach_wish w = {.ports = NULL};
	char text[32], why[200];
	int fd[4], first = reach_listen(&p, &w, NULL);
	unsigned port = ntohs(p.port), seen = 0;

	(void)state;
	assert_true(first >= 0);
	if (port > 65530) {
		close(first);
		skip();
	}
	snprintf(text, sizeof(text), "%u-%u", port, port + 3);
	w.ports = text;
	assert_true(reach_wish_check(&w, why, sizeof(why)));
	for (int i = 0; i < 4; i++) {
		p.port = 0;
		fd[i] = reach_listen(&p, &w, prepare);
		if (fd[i] < 0) {
			assert_int_equal(errno, EADDRINUSE);
			continue;
		}
		unsigned at = ntohs(p.port) - port;
		assert_true(at > 0 && at < 4 && !(seen & 1u << at));
		seen |= 1u << at;
	}
	assert_true(fd[3] < 0 && prepared >= 4);
	for (int i = 0; i < 4; i++)
		if (fd[i] >= 0)
			close(fd[i]);
	close(first);
}

static void this_host_is_reached_where_it_says(void **state)
{
	struct reach_place found[REACH_PLACES_MAX];
	struct reach_wish w = {.devices = "lo"};
	union reach_sockaddr to;
	socklen_t bytes;
	char why[300];

	(void)state;
	if (reach_find(found, &w, false, why, sizeof(why)) == 0)
		skip(); /* not even loopback */
	int l = reach_listen(&found[0], &w, NULL);
	assert_true(l >= 0);
	int s = reach_socket(&found[0], &to, &bytes);
	assert_true(s >= 0 && (connect(s, &to.any, bytes) == 0 || errno == EINPROGRESS));
	close(s);
	close(l);
	w.devices = "nosuch0";
	assert_int_equal(reach_find(found, &w, false, why, sizeof(why)), 0);
	assert_string_equal(why,
			    "no interface of HALE_NET_DEVICES=nosuch0 is up and has an address");
	w.devices = "^lo,127.0.0.0/8";
	for (unsigned n = reach_find(found, &w, true, why, sizeof(why)); n-- > 0;)
		assert_true(!reach_is_ip4(&found[n]) || reach_ip4(&found[n])[0] != 127);
}

/* In a network of its own, which has loopback and two more addresses of it. */
static bool network_make(void)
{
	struct in6_ifreq six = {.ifr6_prefixlen = 64};
	struct ifreq r = {.ifr_name = "lo"};
	struct sockaddr_in *in = (struct sockaddr_in *)(void *)&r.ifr_addr;
	int s4 = -1, s6 = -1;
	bool made = unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0 &&
		    (s4 = socket(AF_INET, SOCK_DGRAM, 0)) >= 0 &&
		    (s6 = socket(AF_INET6, SOCK_DGRAM, 0)) >= 0;

	r.ifr_flags = IFF_UP;
	made = made && ioctl(s4, SIOCSIFFLAGS, &r) == 0;
	six.ifr6_ifindex = (int)if_nametoindex("lo");
	inet_pton(AF_INET6, "fd00::3", &six.ifr6_addr);
	made = made && ioctl(s6, SIOCSIFADDR, &six) == 0;
	r = (struct ifreq){.ifr_name = "lo:1"};
	in->sin_family = AF_INET;
	inet_pton(AF_INET, "10.1.2.3", &in->sin_addr);
	made = made && ioctl(s4, SIOCSIFADDR, &r) == 0;
	inet_pton(AF_INET, "255.255.255.0", &in->sin_addr);
	made = made && ioctl(s4, SIOCSIFNETMASK, &r) == 0;
	close(s4);
	close(s6);
	return made;
}

/* In a child, as there is no way back. Its exit status: 0, 1: no such network can be made, or
 * which check failed. */
static int look_around(void)
{
	static const char *const wanted[] = {"127.0.0.1:0", "10.1.2.3:0", "[::1]:0", "[fd00::3]:0"};
	static const unsigned prefixes[] = {96 + 8, 96 + 24, 128, 64};
	struct reach_place found[REACH_PLACES_MAX];
	struct reach_wish w = {.devices = "lo,lo:1"};
	char why[300], text[REACH_TEXT_MAX];
	unsigned n;

	if (!network_make())
		return 1;
	/* for a moment the kernel tries whether others have an address of IPv6, too */
	for (int tries = 0; (n = reach_find(found, &w, false, why, sizeof(why))) < 4; tries++)
		if (tries > 5000 || usleep(1000) != 0)
			return 5;
	if (n != 4 || !reach_is_ip4(&found[1]) || reach_is_ip4(&found[2]))
		return 2;
	for (unsigned i = 0; i < 4; i++) {
		unsigned k = 0;

		while (k < n && strcmp(reach_print(text, &found[k]), wanted[i]) != 0)
			k++;
		if (k == n)
			return 3;
		if (found[k].prefix != prefixes[i])
			return 4;
	}
	return 0;
}

static void addresses_come_with_their_networks(void **state)
{
	int status;
	pid_t child = fork();

	(void)state;
	if (child == 0)
		_exit(look_around());
	assert_int_equal(waitpid(child, &status, 0), child);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 1)
		skip();
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(text_goes_there_and_back),
	    cmocka_unit_test(interfaces_are_named_by_name_address_or_network),
	    cmocka_unit_test(wishes_that_cannot_be_read_are_told),
	    cmocka_unit_test(places_in_our_networks_come_first_and_our_own_addresses_last),
	    cmocka_unit_test(ports_are_those_that_are_wished_for),
	    cmocka_unit_test(this_host_is_reached_where_it_says),
	    cmocka_unit_test(addresses_come_with_their_networks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
