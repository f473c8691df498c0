/* SPDX-License-Identifier: BSD-3-Clause */
/* Sessions and the loop that they run in, over real descriptors. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>
#include "base/base.h"
#include "wire/session/session.h"

/* One end: what it has received. */
struct heard {
	struct session session;
	struct loop *loop;
	uint32_t count, stop_at; /* messages; after so many the loop stops */
	size_t bytes;
	bool close_at_once, wrong;
	int overs;
	char why[400];
};

static void heard_message(void *arg, const struct message *m)
{
	struct heard *h = arg;
	const unsigned char *b = m->bytes;

	/* each says its number, and has bytes of it */
	h->wrong |= m->type != MSG_OUTPUT || m->rank != h->count;
	for (size_t i = 0; i < m->len; i++)
		h->wrong |= b[i] != (unsigned char)(h->count + i);
	h->bytes += m->len;
	if (++h->count == h->stop_at)
		loop_stop(h->loop);
	if (h->close_at_once)
		session_close(&h->session);
}

static void heard_over(void *arg, const char *why)
{
	struct heard *h = arg;

	h->overs++;
	snprintf(h->why, sizeof(h->why), "%s", why);
	loop_stop(h->loop);
}

static void heard_open(struct heard *h, struct loop *loop, int in, int out)
{
	*h = (struct heard){.loop = loop};
	h->session.message = heard_message;
	h->session.over = heard_over;
	h->session.arg = h;
	assert_true(session_open(&h->session, loop, in, out));
}

static void run(struct loop *loop)
{
	loop->stop = false;
	loop_run(loop);
}

static struct message numbered(uint32_t number, size_t len)
{
	static unsigned char bytes[1 << 16];

	for (size_t i = 0; i < len; i++)
		bytes[i] = (unsigned char)(number + i);
	return (struct message){
	    .type = MSG_OUTPUT, .rank = number, .text = "", .name = "", .bytes = bytes, .len = len};
}

static void say(struct session *s, uint32_t number, size_t len)
{
	struct message m = numbered(number, len);

	session_send(s, &m);
}

static void both_ways(int a_in, int a_out, int b_in, int b_out)
{
	enum { COUNT = 300, LEN = 5000 };
	struct loop loop;
	struct heard a, b;

	assert_true(loop_init(&loop));
	heard_open(&a, &loop, a_in, a_out);
	heard_open(&b, &loop, b_in, b_out);
	a.stop_at = b.stop_at = COUNT;
	for (uint32_t i = 0; i < COUNT; i++) {
		say(&a.session, i, LEN);
		say(&b.session, i, i);
	}
	/* more than the kernel keeps: the rest waits here */
	assert_true(session_waiting(&a.session) > 0);
	run(&loop);
	if (a.count < COUNT || b.count < COUNT)
		run(&loop);
	assert_true(a.count == COUNT && b.count == COUNT && !a.wrong && !b.wrong);
	assert_int_equal(b.bytes, (size_t)COUNT * LEN);
	assert_int_equal(session_waiting(&a.session) + session_waiting(&b.session), 0);
	/* nothing is left to do: who has said all need not be woken */
	assert_true(a.session.out.fd < 0 && b.session.out.fd < 0);
	assert_int_equal(a.session.in.events, EPOLLIN);
	session_close(&a.session);
	assert_int_equal(fcntl(a_in, F_GETFD), -1);
	assert_int_equal(fcntl(a_out, F_GETFD), -1);
	assert_false(session_is_open(&a.session));
	run(&loop);
	assert_true(b.overs == 1 && a.overs == 0 && b.session.by_peer);
	assert_int_equal(fcntl(b_in, F_GETFD), -1);
	assert_int_equal(fcntl(b_out, F_GETFD), -1);
	say(&b.session, 0, 1); /* into nothing */
	loop_fini(&loop);
}

static void messages_arrive_in_their_order_over_one_descriptor(void **state)
{
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	both_ways(ends[0], ends[0], ends[1], ends[1]);
}

static void messages_arrive_in_their_order_over_pipes(void **state)
{
	int there[2], back[2];

	assert_int_equal(pipe2(there, O_CLOEXEC) | pipe2(back, O_CLOEXEC), 0);
	both_ways(back[0], there[1], there[0], back[1]);
}

/* ---- one end, and bytes from the other ---- */

struct raw {
	struct loop loop;
	struct heard h;
	int fd;
};

static void raw_open(struct raw *r)
{
	int ends[2];

	assert_true(loop_init(&r->loop));
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	heard_open(&r->h, &r->loop, ends[0], ends[0]);
	r->fd = ends[1];
}

static void raw_close(struct raw *r)
{
	close(r->fd);
	session_close(&r->h.session);
	loop_fini(&r->loop);
}

static void stop(void *arg)
{
	loop_stop(arg);
}

/* Everything that is there is handled before the deadline, which has passed. */
static void raw_write(struct raw *r, const void *bytes, size_t len)
{
	struct loop_timer t = {.armed = false};

	for (size_t done = 0; done < len;) {
		size_t n = len - done < 4096 ? len - done : 4096;

		if (r->h.overs || !session_is_open(&r->h.session))
			return;
		assert_int_equal(write(r->fd, (const char *)bytes + done, n), n);
		done += n;
		loop_timer_set(&r->loop, &t, 0, stop, &r->loop);
		run(&r->loop);
		loop_timer_clear(&r->loop, &t);
	}
}

static void bytes_may_come_one_by_one(void **state)
{
	struct raw r;

	raw_open(&r);
	for (uint32_t number = 0; number < 3; number++) {
		struct message m = numbered(number, 40);
		size_t size;
		unsigned char *frame = session_frame(&m, &size);

		assert_non_null(frame);
		for (size_t i = 0; i < size; i++) {
			assert_int_equal(r.h.count, number);
			raw_write(&r, frame + i, 1);
		}
		free(frame);
	}
	assert_true(r.h.count == 3 && !r.h.wrong && r.h.overs == 0);
	raw_close(&r);
}

static void what_is_no_message_ends_the_session(void **state)
{
	static const struct {
		uint32_t size, type;
	} bad[] = {{MESSAGE_MAX + 1, MSG_OUTPUT},
		   {0, MSG_OUTPUT},
		   {3, MSG_OUTPUT},
		   {4, MSG_NONE},
		   {4, 0xffffffff},
		   {5, MSG_OUTPUT}};
	unsigned char bytes[16] = {0};

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct raw r;

		raw_open(&r);
		memcpy(bytes, &bad[i].size, 4);
		memcpy(bytes + 4, &bad[i].type, 4);
		raw_write(&r, bytes, sizeof(bytes));
		assert_int_equal(r.h.overs, 1);
		assert_non_null(strstr(r.h.why, "no message"));
		assert_false(session_is_open(&r.h.session) || r.h.session.by_peer);
		raw_close(&r);
	}
}

static void who_closes_in_a_message_gets_no_other_one(void **state)
{
	unsigned char *frame, two[1000];
	struct message m = numbered(0, 10);
	size_t size;
	struct raw r;

	raw_open(&r);
	r.h.close_at_once = true;
	frame = session_frame(&m, &size);
	memcpy(two, frame, size);
	memcpy(two + size, frame, size);
	free(frame);
	raw_write(&r, two, 2 * size);
	assert_int_equal(r.h.count, 1);
	assert_int_equal(r.h.overs, 0);
	raw_close(&r);
}

/* ---- the greeting ---- */

static void a_greeting_comes_first_behind_what_a_shell_prints(void **state)
{
	char line[SESSION_GREETING_MAX], all[SESSION_GREETING_MAX + 1000];
	struct message m = numbered(0, 10);
	unsigned char *frame;
	size_t size, n;
	struct raw r;

	raw_open(&r);
	session_expect_greeting(&r.h.session);
	session_greeting(line);
	n = (size_t)snprintf(all, sizeof(all), "Welcome!\nhale-age\n%s", line);
	raw_write(&r, all, n - 1);
	assert_false(r.h.session.greeted);
	frame = session_frame(&m, &size);
	memcpy(all, "\n", 1);
	memcpy(all + 1, frame, size);
	free(frame);
	raw_write(&r, all, 1 + size);
	assert_true(r.h.session.greeted && r.h.count == 1 && !r.h.wrong && r.h.overs == 0);
	raw_close(&r);
}

static void both_ends_of_a_greeting_agree(void **state)
{
	struct loop loop;
	struct heard a, b;
	int ends[2];

	assert_true(loop_init(&loop));
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	heard_open(&a, &loop, ends[0], ends[0]);
	heard_open(&b, &loop, ends[1], ends[1]);
	session_expect_greeting(&b.session);
	b.stop_at = 1;
	session_greet(&a.session);
	say(&a.session, 0, 3);
	run(&loop);
	assert_true(b.count == 1 && b.overs == 0);
	session_close(&a.session);
	session_close(&b.session);
	loop_fini(&loop);
}

static void other_greetings_are_refused(void **state)
{
	static char noise[SESSION_NOISE_MAX + 1];
	static const struct {
		const char *line, *why;
	} bad[] = {{"hale-agent 99 0.0\n", "another version of hale: 'hale-agent 99 0.0', not"},
		   {"hale-agent \n", "another version of hale: 'hale-agent '"},
		   {noise, "no agent of hale"}};

	memset(noise, 'x', sizeof(noise));
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct raw r;

		raw_open(&r);
		session_expect_greeting(&r.h.session);
		raw_write(&r, bad[i].line,
			  bad[i].line == noise ? sizeof(noise) : strlen(bad[i].line));
		assert_int_equal(r.h.overs, 1);
		if (!strstr(r.h.why, bad[i].why))
			fail_msg("'%s' does not say '%s'", r.h.why, bad[i].why);
		raw_close(&r);
	}
}

/* ---- without the loop ---- */

static void a_flush_writes_what_waits_while_there_is_room(void **state)
{
	static char sink[1 << 20];
	struct raw r;
	uint32_t sent = 0;

	raw_open(&r);
	while (session_waiting(&r.h.session) == 0)
		say(&r.h.session, sent++, 50000);
	session_flush(&r.h.session, 0.001); /* nobody reads */
	assert_true(session_waiting(&r.h.session) > 0);
	assert_true(read(r.fd, sink, sizeof(sink)) > 50000);
	session_flush(&r.h.session, 60);
	assert_int_equal(session_waiting(&r.h.session), 0);
	close(r.fd);
	r.fd = -1;
	say(&r.h.session, 0, 50000); /* the reader is gone: reading will tell */
	assert_true(r.h.session.broken && r.h.overs == 0);
	raw_close(&r);
}

/* ---- the loop ---- */

struct fired {
	struct loop *loop;
	char order[16];
	struct loop_timer timer[4];
	int after;
};

static void fire_a(void *arg)
{
	strcat(((struct fired *)arg)->order, "a");
}

static void fire_b(void *arg)
{
	strcat(((struct fired *)arg)->order, "b");
}

static void fire_again(void *arg)
{
	struct fired *f = arg;

	strcat(f->order, "c");
	if (strlen(f->order) < 6)
		loop_timer_set(f->loop, &f->timer[2], 0, fire_again, f);
	else
		loop_stop(f->loop);
}

static void after(void *arg)
{
	((struct fired *)arg)->after++;
}

static void deadlines_fire_once_and_the_soonest_first(void **state)
{
	struct loop loop;
	struct fired f = {.loop = &loop};

	assert_true(loop_init(&loop));
	loop.after = after;
	loop.after_arg = &f;
	loop_timer_set(&loop, &f.timer[2], 0.003, fire_again, &f);
	loop_timer_set(&loop, &f.timer[0], 0.002, fire_a, &f);
	loop_timer_set(&loop, &f.timer[1], 0.001, fire_b, &f);
	loop_timer_set(&loop, &f.timer[3], 0, fire_a, &f);
	loop_timer_clear(&loop, &f.timer[3]);
	loop_timer_set(&loop, &f.timer[1], 0.001, fire_b, &f); /* anew, not twice */
	run(&loop);
	assert_string_equal(f.order, "bacccc");
	assert_int_equal(f.after, 6);
	assert_false(f.timer[0].armed || f.timer[2].armed);
	assert_null(loop.timers);
	loop_fini(&loop);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(messages_arrive_in_their_order_over_one_descriptor),
	    cmocka_unit_test(messages_arrive_in_their_order_over_pipes),
	    cmocka_unit_test(bytes_may_come_one_by_one),
	    cmocka_unit_test(what_is_no_message_ends_the_session),
	    cmocka_unit_test(who_closes_in_a_message_gets_no_other_one),
	    cmocka_unit_test(a_greeting_comes_first_behind_what_a_shell_prints),
	    cmocka_unit_test(both_ends_of_a_greeting_agree),
	    cmocka_unit_test(other_greetings_are_refused),
	    cmocka_unit_test(a_flush_writes_what_waits_while_there_is_room),
	    cmocka_unit_test(deadlines_fire_once_and_the_soonest_first),
	};

	signal(SIGPIPE, SIG_IGN);
	alarm(120); /* a loop that never stops */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
