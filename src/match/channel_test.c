// SPDX-License-Identifier: BSD-3-Clause
/* What every channel must do, on every channel: one table line for a new one. It stands here
 * because the ranks that it needs come from match/'s fixture. */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
// clang-format off
#include <cmocka.h>
// clang-format on
#include "channel/faulty/faulty.h"
#include "channel/net/net.h"
#include "channel/self/self.h"
#include "channel/shm/shm.h"
#include "match/fixture.h"
#include "node/doze.h"

enum { MEMBERS = 4 };

static const struct member {
	const struct channel_ops *ops;
	uint32_t ranks; /* 1: a rank's peer is itself */
	uint32_t nodes;
	bool copies; /* get and put are there, and do it */
	const char *wire;
} members[MEMBERS] = {{&channel_self, 1, 1, true, ""},
		      {&channel_shm, 2, 1, true, ""},
		      {&channel_net, 2, 2, false, "tcp"},
		      {&channel_net, 2, 2, false, "ucx"}};

/* As bad as the contract allows. */
static const struct channel_faults rough = {
    .seed = 7, .refuse = 200, .idle = 200, .undrained = 500, .partly = 300};

static const struct member *member;
static bool wrapped; /* behind channel/faulty */
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
	void *to = ch->reserve(peer, &e);
	if (!to)
		return false;
	memcpy(to, payload, e.length);
	ch->commit(peer, &e);
	return true;
}

static void open_one(int rank)
{
	struct error err;
	if (wrapped)
		channel_faulty_wrap(&member->ops, 1, &rough);
	REQUIRE(channel_check(ch, &err) == HALE_OK);
	REQUIRE(ch->open(arrive, &err) == HALE_OK);
	peer = link_self()->nranks == 1 ? 0 : (uint32_t)!rank;
	REQUIRE(ch->reaches(peer));
	fixture_meet();
}

/* Faults that never came would prove nothing. */
static void close_one(void)
{
	struct channel_faults_done done = channel_faulty_done();
	ch->close();
	REQUIRE(!wrapped || done.refused + done.partly + done.undrained > 0);
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
	close_one();
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
	close_one();
}

/* Both have the same address space layout: a forked rank's peer has its memory where ours is. */
static unsigned char mine[100000], copy[100000];

/* All of it, however many calls that takes; false: this channel does not do it. */
static bool copied(bool get, unsigned char *here, unsigned char *there, size_t bytes)
{
	for (size_t at = 0; at < bytes;) {
		size_t half = (bytes - at + 1) / 2;
		struct iovec local[2] = {{here + at, half}, {here + at + half, bytes - at - half}};
		struct iovec remote = {there + at, bytes - at};
		ssize_t n = get ? ch->get(peer, local, 2, &remote, 1, true)
				: ch->put(peer, local, 2, &remote, 1);
		REQUIRE(n >= -1 && n <= (ssize_t)(bytes - at));
		if (n < 0) {
			REQUIRE(!member->copies && at == 0);
			return false;
		}
		at += (size_t)n;
		poll_once();
	}
	return true;
}

static void copy_body(int rank)
{
	open_one(rank);
	REQUIRE(!member->copies || (ch->get && ch->put));
	if (!member->copies)
		return;
	fixture_fill(mine, sizeof(mine), rank, 1);
	fixture_meet();
	REQUIRE(copied(true, copy, mine, 50000));
	REQUIRE(fixture_holds(copy, 50000, (int)peer, 1));
	fixture_meet();
	REQUIRE(copied(false, mine, copy + 50000, 50000));
	fixture_meet();
	REQUIRE(fixture_holds(copy + 50000, 50000, (int)peer, 1));
	for (int k = 0; k < 200 && wrapped; k++) /* so that some are in parts */
		REQUIRE(copied(true, copy, mine, 1000));
	fixture_meet(); /* the peer's memory is read until then */
	close_one();
}

/* Rank 1 dozes: one record does not wake it, hurry does. */
static void doze_body(int rank)
{
	struct mailbox *m;

	open_one(rank);
	if (!ch->hurry)
		return;
	m = segment_mailbox(link_self()->segment, 1);
	if (rank == 1)
		mailbox_will_doze(m);
	fixture_meet();
	if (rank == 0) {
		ch->hurry(peer);
		REQUIRE(!mailbox_dozes(m));
		mailbox_will_doze(m);
		while (!send_one(0))
			;
		REQUIRE(mailbox_dozes(m));
		ch->hurry(peer);
		REQUIRE(!atomic_load(&m->asleep));
	}
	fixture_meet();
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
	close_one();
}

/* Built where UCX is; the library is beside this program. */
static bool wire_is_there(const char *wire)
{
	char path[4096];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 32);
	if (strcmp(wire, "ucx") != 0 || n <= 0)
		return true;
	path[n] = 0;
	strcpy(strrchr(path, '/'), "/libhale_net.so");
	return access(path, R_OK) == 0;
}

static void on_all(void (*body)(int))
{
	for (int i = 0; i < 2 * MEMBERS; i++) {
		member = &members[i % MEMBERS];
		wrapped = i >= MEMBERS;
		if (!wire_is_there(member->wire)) {
			print_message("%s, %s: not built\n", member->ops->name, member->wire);
			continue;
		}
		setenv("HALE_NET_WIRE", member->wire, 1);
		ch = wrapped ? &channel_faulty[0] : member->ops;
		fixture_nodes(member->nodes, member->nodes);
		if (fixture_run_bare(member->ranks, 2, body) != 0)
			fail_msg("%s %s%s", member->ops->name, member->wire,
				 wrapped ? ", behind faulty" : "");
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

static void who_dozes_is_woken_when_it_is_urgent(void **state)
{
	on_all(doze_body);
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
	    cmocka_unit_test(who_dozes_is_woken_when_it_is_urgent),
	    cmocka_unit_test(drained_means_that_everything_has_arrived),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
