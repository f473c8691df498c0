// SPDX-License-Identifier: BSD-3-Clause
/* What every channel must do, on every channel: one table line for a new one. It stands here
 * because the ranks that it needs come from match/'s fixture. */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on
#include "channel/self/self.h"
#include "channel/shm/shm.h"
#include "match/fixture.h"

static const struct {
	const struct channel_ops *ops;
	uint32_t ranks; /* 1: a rank's peer is itself */
} members[] = {{&channel_self, 1}, {&channel_shm, 2}};

static const struct channel_ops *ch;
static uint32_t peer;
static int arrived; /* records; they are numbered in the tag */

static size_t length_of(int k)
{
	static const size_t few[] = {0, 1, 8, 23, 24, 25, 63, 64, 65};
	return k % 3 ? few[k % 9] : (size_t)k * 2654435761u % (*ch->eager_max + 1);
}

static void arrive(uint32_t from, const struct envelope *e, const void *payload)
{
	REQUIRE(from == peer);
	REQUIRE(e->tag == arrived && e->length == length_of(arrived));
	REQUIRE(e->id == (uint64_t)arrived * 3 && e->kind == 200 && e->context == 77);
	REQUIRE(fixture_holds(payload, e->length, (int)from, arrived));
	arrived++;
}

static void poll_once(void)
{
	if (ch->poll)
		ch->poll();
}

static bool send_one(int k)
{
	static unsigned char payload[FIXTURE_MAX];
	struct envelope e = {.kind = 200,
			     .context = 77,
			     .tag = k,
			     .id = (uint64_t)k * 3,
			     .length = (uint32_t)length_of(k)};
	fixture_fill(payload, e.length, (int)link_self()->rank, k);
	if (k % 2)
		return ch->send(peer, &e, payload);
	void *to = ch->reserve(peer, e.length);
	if (!to)
		return false;
	memcpy(to, payload, e.length);
	ch->commit(peer, &e);
	return true;
}

static void open_one(int rank)
{
	struct error err;
	REQUIRE(ch->open(arrive, &err) == HALE_OK);
	peer = link_self()->nranks == 1 ? 0 : (uint32_t)!rank;
	REQUIRE(ch->reaches(peer));
	fixture_meet();
}

static void stream_body(int rank)
{
	enum { N = 5000 };
	open_one(rank);
	for (int k = 0; k < N;) {
		k += send_one(k);
		poll_once();
	}
	while (arrived < N)
		poll_once();
	ch->close();
}

/* Nobody takes anything out: send must say so, and go on when there is room. */
static void full_body(int rank)
{
	int sent = 0, refused = 0;
	open_one(rank);
	for (int tries = 0; tries < 3000; tries++)
		send_one(sent) ? sent++ : refused++;
	REQUIRE(refused || !ch->poll);
	fixture_meet();
	for (; sent < 4000; poll_once())
		sent += send_one(sent);
	while (arrived < 4000)
		poll_once();
	ch->close();
}

/* Both have the same address space layout: a forked rank's peer has its memory where ours is. */
static unsigned char mine[100000], copy[100000];

static void copy_body(int rank)
{
	open_one(rank);
	if (!ch->get || !ch->put)
		return;
	fixture_fill(mine, sizeof(mine), rank, 1);
	fixture_meet();
	struct iovec local[2] = {{copy, 10}, {copy + 10, 50000 - 10}};
	struct iovec remote[2] = {{mine, 20000}, {mine + 20000, 30000}};
	REQUIRE(ch->get(peer, local, 2, remote, 2, true) == 50000);
	REQUIRE(fixture_holds(copy, 50000, (int)peer, 1));
	fixture_meet();
	local[0] = (struct iovec){mine, 50000};
	remote[0] = (struct iovec){copy + 50000, 50000};
	REQUIRE(ch->put(peer, local, 1, remote, 1) == 50000);
	fixture_meet();
	REQUIRE(fixture_holds(copy + 50000, 50000, (int)peer, 1));
	ch->close();
}

static bool restored;

static void suspend_body(int rank)
{
	int sent = 0;
	open_one(rank);
	for (uint32_t round = 1; round <= 3; round++) {
		for (int tries = 0; tries < 200; tries++)
			sent += send_one(sent);
		if (!ch->suspend)
			continue;
		ch->suspend(round);
		do
			poll_once();
		while (!ch->drained());
		/* all that the peer has sent is here: it says how much that was */
		fixture_say(rank, (uint32_t)sent);
		fixture_meet();
		REQUIRE((uint32_t)arrived == fixture_said((int)peer));
		if (restored)
			fixture_new_life();
		ch->resume(restored);
		fixture_meet();
	}
	while (ch->poll && arrived < (int)fixture_said((int)peer))
		poll_once();
	ch->close();
}

static void on_all(void (*body)(int))
{
	for (size_t i = 0; i < ARRAY_LEN(members); i++) {
		ch = members[i].ops;
		assert_int_equal(fixture_run_bare(members[i].ranks, 2, body), 0);
	}
}

static void records_arrive_whole_and_in_order(void **state)
{
	on_all(stream_body);
}

static void a_full_channel_refuses_and_recovers(void **state)
{
	on_all(full_body);
}

static void memory_is_copied_both_ways(void **state)
{
	on_all(copy_body);
}

static void drained_means_that_everything_has_arrived(void **state)
{
	restored = false;
	on_all(suspend_body);
	restored = true;
	on_all(suspend_body);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(records_arrive_whole_and_in_order),
	    cmocka_unit_test(a_full_channel_refuses_and_recovers),
	    cmocka_unit_test(memory_is_copied_both_ways),
	    cmocka_unit_test(drained_means_that_everything_has_arrived),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
