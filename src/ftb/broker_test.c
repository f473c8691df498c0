/* SPDX-License-Identifier: BSD-3-Clause */
/* Whole brokers in one process: their owner, this test, carries what they send each other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "base/base.h"
#include "ftb/broker.h"

enum { BROKERS = 3, PATIENCE = 20000 /* turns of a millisecond */ };

struct net;

/* One broker's end of the owner's wires, and what its owner has heard. */
struct post {
	struct net *net;
	int self;
	struct broker *broker; /* NULL: it has ended */
	bool full;	       /* nothing goes to it */
	size_t refused;	       /* packets that were told to come later */
	unsigned id;
	size_t count;
	char heard[4096]; /* "NAME:payload ", in their order */
};

struct net {
	char dir[64];
	bool silent; /* nobody is told that a broker has ended */
	struct post post[BROKERS];
};

static enum broker_sent carry(void *arg, int to, uint32_t channel, bool up, const void *bytes,
			      size_t len)
{
	const struct post *p = arg;
	struct post *q = &p->net->post[to];

	if (!q->broker)
		return p->net->silent ? BROKER_SENT : BROKER_GONE;
	if (q->full) {
		q->refused++;
		return BROKER_LATER;
	}
	assert_true(broker_carry(q->broker, p->self, channel, up, bytes, len));
	return BROKER_SENT;
}

static void handled(void *arg, int from, size_t len)
{
}

static void start(struct net *n, int self)
{
	static const char *const names[BROKERS] = {"middle", "one", "two"};
	struct post *p = &n->post[self];
	struct broker_carrier c = {.self = self,
				   .count = BROKERS,
				   .names = names,
				   .send = carry,
				   .handled = handled,
				   .arg = p};
	char socket[96];
	/* nobody is dead in this test that hasn't said so */
	struct broker_options o = {
	    .socket = socket, .carrier = &c, .heartbeat = 0.02, .dead = 3600};
	struct error err;

	snprintf(socket, sizeof(socket), "%s/%d", n->dir, self);
	*p = (struct post){.net = n, .self = self};
	assert_int_equal(broker_create(&o, &p->broker, &err), HALE_OK);
}

static void stop(struct net *n, int self)
{
	struct broker *b = n->post[self].broker;

	n->post[self].broker = NULL; /* whom nothing reaches any more, but who still speaks */
	broker_destroy(b);
}

static void turn(struct net *n)
{
	for (int i = 0; i < BROKERS; i++)
		if (n->post[i].broker)
			broker_dispatch(n->post[i].broker);
	usleep(1000);
}

static struct broker_stats stats(const struct net *n, int i)
{
	struct broker_stats s = {0};

	broker_stats(n->post[i].broker, &s);
	return s;
}

static int set_up(void **state)
{
	struct net *n = calloc(1, sizeof(*n));

	snprintf(n->dir, sizeof(n->dir), "/tmp/hale-broker-test-XXXXXX");
	assert_non_null(mkdtemp(n->dir));
	for (int i = 0; i < BROKERS; i++)
		start(n, i);
	for (int i = 0; i < PATIENCE && stats(n, 0).children < BROKERS - 1; i++)
		turn(n);
	assert_int_equal(stats(n, 0).children, BROKERS - 1);
	*state = n;
	return 0;
}

static int tear_down(void **state)
{
	struct net *n = *state;

	for (int i = BROKERS; i-- > 0;)
		stop(n, i);
	assert_int_equal(rmdir(n->dir), 0); /* the sockets are gone */
	free(n);
	return 0;
}

static void hear(const struct broker_event *e, void *arg)
{
	struct post *p = arg;
	size_t len = strlen(p->heard);

	p->count++;
	snprintf(p->heard + len, sizeof(p->heard) - len, "%s:%.*s ", e->name, (int)e->length,
		 (const char *)e->payload);
}

static void subscribe(struct net *n, int who, const char *filter)
{
	struct error err;

	assert_int_equal(broker_subscribe(n->post[who].broker, filter, hear, &n->post[who],
					  &n->post[who].id, &err),
			 HALE_OK);
}

static void say(struct net *n, int who, const char *name, int severity, const char *payload)
{
	struct error err;

	assert_int_equal(broker_publish(n->post[who].broker, "FTB.TEST", name, severity, NULL,
					payload, strlen(payload), &err),
			 HALE_OK);
}

static void await(struct net *n, int who, size_t count)
{
	for (int i = 0; i < PATIENCE && n->post[who].count < count; i++)
		turn(n);
	assert_int_equal(n->post[who].count, count);
}

/* What `who` wants has come to the broker that an event from `from` passes. */
static void await_interest(struct net *n, int who, int from)
{
	size_t before = n->post[who].count;

	for (int i = 0; i < PATIENCE && n->post[who].count == before; i++) {
		say(n, from, "SEEK", 0, "");
		turn(n);
	}
	for (int i = 0; i < 20; i++)
		turn(n);
	assert_true(n->post[who].count > before);
	n->post[who].count = 0;
	n->post[who].heard[0] = '\0';
}

static void who_asked_hears_it_once_and_in_order(void **state)
{
	struct net *n = *state;

	subscribe(n, 0, "event_space=FTB.TEST");
	subscribe(n, 2, "event_space=FTB.TEST");
	await_interest(n, 2, 1);
	await_interest(n, 0, 1);
	n->post[2].heard[0] = '\0';
	n->post[2].count = 0;
	say(n, 1, "FIRST", 0, "a");
	say(n, 1, "SECOND", 3, "b");
	say(n, 1, "THIRD", 1, "c");
	await(n, 2, 3);
	await(n, 0, 3);
	for (int i = 0; i < 20; i++)
		turn(n);
	assert_string_equal(n->post[0].heard, "FIRST:a SECOND:b THIRD:c ");
	assert_string_equal(n->post[2].heard, "FIRST:a SECOND:b THIRD:c ");
	assert_int_equal(n->post[1].count, 0); /* it has not asked */
	assert_int_equal(stats(n, 0).duplicates + stats(n, 2).duplicates, 0);
}

static void filters_keep_out_what_was_not_asked_for(void **state)
{
	struct net *n = *state;
	uint64_t forwarded;

	subscribe(n, 1, "event_space=FTB.TEST,severity=fatal");
	subscribe(n, 2, "event_space=FTB.TEST,event_name=SEEK");
	await_interest(n, 2, 0);
	for (int i = 0; i < 50; i++)
		turn(n);
	n->post[1].count = 0;
	forwarded = stats(n, 0).forwarded;
	say(n, 0, "OTHER", 1, "");
	say(n, 0, "OTHER", 3, "");
	await(n, 1, 1);
	assert_string_equal(n->post[1].heard, "OTHER: ");
	assert_int_equal(n->post[2].count, 0);
	assert_int_equal(stats(n, 0).forwarded, forwarded + 1); /* none went in vain */
}

static void nothing_comes_any_more_to_who_has_left(void **state)
{
	struct net *n = *state;

	subscribe(n, 1, "event_space=FTB.TEST");
	await_interest(n, 1, 0);
	broker_unsubscribe(n->post[1].broker, n->post[1].id);
	say(n, 0, "LATE", 3, "");
	for (int i = 0; i < 50; i++)
		turn(n);
	assert_int_equal(n->post[1].count, 0);
}

/* Published and not yet dispatched: in the queue of each child. */
static void events_queued_for_children_reach_them_when_a_broker_ends(void **state)
{
	struct net *n = *state;

	subscribe(n, 1, "event_space=FTB.TEST");
	subscribe(n, 2, "event_space=FTB.TEST");
	await_interest(n, 1, 0);
	await_interest(n, 2, 0);
	n->post[1].count = n->post[2].count = 0;
	n->post[1].heard[0] = n->post[2].heard[0] = '\0';
	say(n, 0, "LAST", 0, "words");
	say(n, 0, "LAST", 3, "of all");
	n->silent = true; /* so that its word of leaving is all that they have of its end */
	stop(n, 0);
	await(n, 1, 2);
	await(n, 2, 2);
	assert_string_equal(n->post[1].heard, "LAST:words LAST:of all ");
	assert_string_equal(n->post[2].heard, "LAST:words LAST:of all ");
	for (int i = 0; i < PATIENCE && (stats(n, 1).parent >= 0 || stats(n, 2).parent >= 0); i++)
		turn(n);
	assert_int_equal(stats(n, 1).parent, -1);
	assert_int_equal(stats(n, 2).parent, -1);
}

static void events_queued_for_the_one_above_reach_it_when_a_broker_ends(void **state)
{
	struct net *n = *state;

	subscribe(n, 0, "event_space=FTB.TEST");
	await_interest(n, 0, 1);
	say(n, 1, "LAST", 0, "words");
	stop(n, 1);
	await(n, 0, 1);
	assert_string_equal(n->post[0].heard, "LAST:words ");
	for (int i = 0; i < PATIENCE && stats(n, 0).children > 1; i++)
		turn(n);
	assert_int_equal(stats(n, 0).children, 1);
	assert_int_equal(stats(n, 2).parent, 0);
}

static void what_finds_no_room_waits_and_keeps_its_order(void **state)
{
	enum { N = 100 };
	struct net *n = *state;
	char expected[4096] = "";

	subscribe(n, 1, "event_space=FTB.TEST");
	await_interest(n, 1, 0);
	n->post[1].full = true;
	for (int i = 0; i < N; i++) {
		char text[16];

		snprintf(text, sizeof(text), "%d", i);
		snprintf(expected + strlen(expected), sizeof(expected) - strlen(expected), "E:%d ",
			 i);
		say(n, 0, "E", i % 2 ? 0 : 2, text);
		if (i % 10 == 0)
			turn(n);
	}
	assert_int_equal(n->post[1].count, 0);
	assert_true(n->post[1].refused > 0);
	n->post[1].full = false;
	broker_room(n->post[0].broker);
	await(n, 1, N);
	assert_string_equal(n->post[1].heard, expected);
}

/* The ones below are roots until the one above is there again, and then below it. What of warnings
 * was published meanwhile comes to those who had asked for it. */
static void a_tree_that_lost_its_root_heals(void **state)
{
	struct net *n = *state;

	subscribe(n, 2, "event_space=FTB.TEST");
	await_interest(n, 2, 1);
	stop(n, 0);
	for (int i = 0; i < PATIENCE && (stats(n, 1).parent >= 0 || stats(n, 2).parent >= 0); i++)
		turn(n);
	assert_int_equal(stats(n, 1).parent, -1);
	assert_int_equal(stats(n, 2).parent, -1);
	say(n, 1, "ALONE", 3, "kept");
	turn(n);
	assert_int_equal(n->post[2].count, 0);
	start(n, 0);
	for (int i = 0; i < PATIENCE && stats(n, 0).children < BROKERS - 1; i++)
		turn(n);
	assert_int_equal(stats(n, 1).parent, 0);
	await(n, 2, 1);
	assert_string_equal(n->post[2].heard, "ALONE:kept ");
	assert_true(stats(n, 1).heals > 0);
}

static void senseless_options_are_refused(void **state)
{
	static const struct {
		double heartbeat, dead;
		unsigned arity;
	} bad[] = {{0.005, 1, 0}, {1, 1.5, 0}, {1, 4000, 0}, {1, 3, 257}};
	struct net *n = *state;
	struct broker_carrier c = {.self = 1, .count = 2, .send = carry, .handled = handled};
	struct error err;
	struct broker *b;
	char socket[96];

	snprintf(socket, sizeof(socket), "%s/none", n->dir);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct broker_options o = {.socket = socket,
					   .carrier = &c,
					   .heartbeat = bad[i].heartbeat,
					   .dead = bad[i].dead,
					   .arity = bad[i].arity};

		assert_int_equal(broker_create(&o, &b, &err), HALE_ERR_ARGUMENT);
		assert_non_null(strstr(err.text, "heartbeat"));
		assert_null(b);
	}
	for (int self = -1; self < 4; self += 3) {
		struct broker_options o = {.socket = socket, .carrier = &c};

		c.self = self;
		assert_int_equal(broker_create(&o, &b, &err), HALE_ERR_ARGUMENT);
	}
	assert_int_not_equal(access(socket, F_OK), 0);
}

static void only_packets_of_the_others_are_taken(void **state)
{
	struct net *n = *state;
	struct broker *middle = n->post[0].broker;

	assert_false(broker_carry(middle, 0, 1, true, "x", 1)); /* from itself */
	assert_false(broker_carry(middle, BROKERS, 1, true, "x", 1));
	assert_false(broker_carry(middle, -1, 1, true, "x", 1));
	assert_false(broker_carry(middle, 1, 1, false, "x", 1)); /* there is none above it */
	assert_false(broker_carry(n->post[1].broker, 0, 1, true, "x", 1));
	assert_true(broker_carry(middle, 1, 1, true, "x", 1));
	for (int i = 0; i < PATIENCE && stats(n, 0).malformed == 0; i++)
		turn(n);
	assert_int_equal(stats(n, 0).malformed, 1);
	assert_int_equal(stats(n, 0).children, BROKERS - 1); /* it was on no link of theirs */
}

int main(void)
{
#define WITH_NET(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
	    WITH_NET(who_asked_hears_it_once_and_in_order),
	    WITH_NET(filters_keep_out_what_was_not_asked_for),
	    WITH_NET(nothing_comes_any_more_to_who_has_left),
	    WITH_NET(events_queued_for_children_reach_them_when_a_broker_ends),
	    WITH_NET(events_queued_for_the_one_above_reach_it_when_a_broker_ends),
	    WITH_NET(what_finds_no_room_waits_and_keeps_its_order),
	    WITH_NET(a_tree_that_lost_its_root_heals),
	    WITH_NET(senseless_options_are_refused),
	    WITH_NET(only_packets_of_the_others_are_taken),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
