/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "ftb/ftb.h"
#include "ftb/outq.h"
#include <libftb.h>

static struct ftb_event event_of(const char *space, const char *name, int severity)
{
	struct ftb_event e = {.severity = (uint8_t)severity,
			      .type = 1,
			      .publisher = 7,
			      .seq = 9,
			      .pid = 11,
			      .payload = "node3",
			      .payload_len = 5};
	const char *text[] = {space, name, "job1", "me", "node3", "1.5"};

	for (int t = 0; t < FTB_TEXTS; t++) {
		e.text[t] = text[t];
		e.text_len[t] = (uint8_t)strlen(text[t]);
	}
	return e;
}

static void an_event_reads_as_it_was_written(void **state)
{
	struct ftb_event e = event_of("FTB.MPI", "RANK_DIED", FTB_FATAL), r;
	uint8_t b[EVENT_MAX];
	size_t n = ftb_event_size(&e);

	ftb_event_write(&e, b);
	assert_int_equal(ftb_event_parse(b, sizeof(b), &r), n);
	assert_int_equal(r.severity, FTB_FATAL);
	assert_int_equal(r.seq, 9);
	assert_int_equal(r.text_len[TEXT_SPACE], 7);
	assert_memory_equal(r.text[TEXT_NAME], "RANK_DIED", 9);
	assert_memory_equal(r.payload, "node3", 5);
}

static void no_cut_or_changed_event_reads_out_of_bounds(void **state)
{
	struct ftb_event e = event_of("FTB.MPI", "RANK_DIED", FTB_FATAL), r;
	uint8_t b[EVENT_MAX];
	size_t n = ftb_event_size(&e);

	ftb_event_write(&e, b);
	for (size_t cut = 0; cut < n; cut++) {
		uint8_t *copy = malloc(cut ? cut : 1); /* ASan sees what goes beyond */

		memcpy(copy, b, cut);
		assert_int_equal(ftb_event_parse(copy, cut, &r), 0);
		free(copy);
	}
	for (size_t at = 0; at < EVENT_HEADER; at++)
		for (int v = 0; v < 256; v += 5) {
			uint8_t *copy = malloc(n);
			size_t got;

			memcpy(copy, b, n);
			copy[at] = (uint8_t)v;
			got = ftb_event_parse(copy, n, &r);
			assert_true(got == 0 || got == n);
			free(copy);
		}
}

static bool matches(const char *filter, const char *space, const char *name, int severity)
{
	struct ftb_event e = event_of(space, name, severity);
	struct ftb_filter f;

	assert_int_equal(ftb_filter_parse(filter, &f), FTB_SUCCESS);
	return ftb_filter_match(&f, &e);
}

static void filters_let_through_what_they_say(void **state)
{
	assert_true(matches("", "A.B", "X", FTB_INFO));
	assert_true(
	    matches("event_space=FTB.MPI.MVAPICH2 , jobid=job1", "ftb.mpi.mvapich2", "X", 0));
	assert_false(
	    matches("event_space=FTB.MPI.MVAPICH2 , jobid=job2", "FTB.MPI.MVAPICH2", "X", 0));
	assert_true(matches("event_space=ftb.all.watchdog", "FTB.EXAMPLES.WATCHDOG", "X", 0));
	assert_false(matches("event_space=ftb.all.watchdog", "FTB.EXAMPLES.OTHER", "X", 0));
	assert_true(matches("namespace=FTB.* severity>=WARNING", "FTB.FTB_IPMI", "X", FTB_FATAL));
	assert_true(matches("namespace=FTB.* severity>=WARNING", "FTB.FTB_IPMI", "X", FTB_WARNING));
	assert_false(matches("namespace=FTB.* severity>=WARNING", "FTB.FTB_IPMI", "X", FTB_INFO));
	assert_false(matches("namespace=FTB.* severity>=WARNING", "HALE.X", "X", FTB_FATAL));
	assert_true(matches("namespace=FTB.FTB_IPMI", "FTB-IPMI", "X", FTB_FATAL));
	assert_true(matches("namespace=ftb-ipmi", "FTB.FTB_IPMI", "X", FTB_FATAL));
	assert_true(matches("namespace=FTB.*", "FTB-IPMI", "X", FTB_FATAL));
	assert_false(matches("namespace=FTB-IB", "FTB.FTB_IPMI", "X", FTB_FATAL));
	assert_false(matches("name=FTB-IPMI", "A", "FTB.FTB_IPMI", FTB_FATAL));
	assert_true(matches("severity=fatal", "A", "X", FTB_FATAL));
	assert_false(matches("severity=fatal", "A", "X", FTB_ERROR));
	assert_true(matches("event_name=ALL", "A", "X", FTB_ERROR));
	assert_true(matches("name=FTB_IB_*_ERR host=NODE?", "A", "FTB_IB_PORT_ERR", FTB_ERROR));
	assert_false(matches("name=FTB_IB_*_ERR", "A", "FTB_IB_PORT_ERRO", FTB_ERROR));
}

static void wrong_filters_have_their_error(void **state)
{
	static const struct {
		const char *text;
		int error;
	} wrong[] = {{"severity", FTB_ERR_SUBSCRIPTION_STR},
		     {"severity=", FTB_ERR_SUBSCRIPTION_STR},
		     {"=x", FTB_ERR_SUBSCRIPTION_STR},
		     {",", FTB_ERR_SUBSCRIPTION_STR},
		     {"name=a,", FTB_ERR_SUBSCRIPTION_STR},
		     {"name=a name=b", FTB_ERR_SUBSCRIPTION_STR},
		     {"name>=a", FTB_ERR_SUBSCRIPTION_STR},
		     {"colour=red", FTB_ERR_FILTER_ATTR},
		     {"severity=bad", FTB_ERR_FILTER_VALUE},
		     {"name=abcdefghijklmnopqrstuvwxyz0123456789", FTB_ERR_FILTER_VALUE},
		     {"namespace=a..b", FTB_ERR_EVENTSPACE_FORMAT},
		     {"namespace=a/b", FTB_ERR_EVENTSPACE_FORMAT}};
	struct ftb_filter f;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(ftb_filter_parse(wrong[i].text, &f), wrong[i].error);
}

static void a_filter_that_covers_another_matches_all_that_it_does(void **state)
{
	static const char *const text[] = {"",
					   "severity>=WARNING",
					   "severity=FATAL",
					   "namespace=FTB.*",
					   "namespace=FTB.MPI",
					   "namespace=FTB.M*",
					   "namespace=FTB.MPI severity=FATAL",
					   "name=X",
					   "name=X namespace=FTB.*"};
	static const char *const space[] = {"FTB.MPI", "FTB.MX", "HALE.X"}, *const name[] = {"X",
											     "Y"};
	enum { N = sizeof(text) / sizeof(text[0]) };

	for (size_t a = 0; a < N; a++)
		for (size_t b = 0; b < N; b++) {
			struct ftb_filter wide, f;

			ftb_filter_parse(text[a], &wide);
			ftb_filter_parse(text[b], &f);
			if (!ftb_filter_covers(&wide, &f))
				continue;
			for (int s = 0; s < 3; s++)
				for (int n = 0; n < 2; n++)
					for (int v = 0; v < FTB_SEVERITIES; v++)
						if (matches(text[b], space[s], name[n], v))
							assert_true(
							    matches(text[a], space[s], name[n], v));
		}
	struct ftb_filter all, one;
	ftb_filter_parse("", &all);
	ftb_filter_parse("namespace=FTB.MPI severity=FATAL", &one);
	assert_true(ftb_filter_covers(&all, &one));
	assert_false(ftb_filter_covers(&one, &all));
}

static void filters_travel(void **state)
{
	struct ftb_filter f, r;
	uint8_t b[FILTER_WIRE_MAX];
	uint32_t id, age;
	size_t n;

	ftb_filter_parse("namespace=FTB.* host=node3 severity>=ERROR", &f);
	n = ftb_filter_write(&f, 5, 1000, b);
	assert_int_equal(ftb_filter_read(b, n, &r, &id, &age), n);
	assert_memory_equal(&f, &r, sizeof(f));
	assert_int_equal(id, 5);
	assert_int_equal(age, 1000);
	for (size_t cut = 0; cut < n; cut++)
		assert_int_equal(ftb_filter_read(b, cut, &r, &id, &age), 0);
}

/* ---- what waits for one receiver ---- */

struct event_sink {
	bool blocked;
	uint64_t seq[200000];
	size_t count;
};

static void sink_event(const struct ftb_event *e, const uint8_t *bytes, size_t len, void *arg)
{
	struct event_sink *s = arg;

	s->seq[s->count++] = e->seq;
}

static enum out_result sink_send(void *to, const uint8_t *bytes, size_t len)
{
	struct event_sink *s = to;
	struct packet p;

	if (s->blocked)
		return OUT_BLOCKED;
	assert_true(ftb_packet_parse(bytes, len, &p));
	assert_true(ftb_events_each(&p, sink_event, s));
	return OUT_SENT;
}

static void a_slow_receiver_loses_its_oldest_info_and_nothing_else(void **state)
{
	static struct event_sink s;
	struct outq q = {0};
	uint8_t b[EVENT_MAX];
	uint64_t above = 0;

	s.blocked = true;
	for (uint64_t i = 1; i <= 100000; i++) {
		struct ftb_event e =
		    event_of("FTB.MPI", "X", i % 100 == 0 ? FTB_WARNING : FTB_INFO);

		e.seq = i;
		above += !ftb_event_info(&e);
		ftb_event_write(&e, b);
		assert_true(outq_event(&q, &e, b, ftb_event_size(&e), sink_send, &s));
		assert_true(q.bytes <= OUTQ_SOFT + EVENT_MAX);
	}
	assert_true(q.lost_info > 10000);
	assert_int_equal(q.lost_above, 0);
	s.blocked = false;
	assert_int_equal(outq_flush(&q, sink_send, &s), OUT_SENT);
	assert_int_equal(s.count + q.lost_info, 100000);
	uint64_t got = 0;
	for (size_t i = 0; i < s.count; i++) {
		assert_true(i == 0 || s.seq[i] > s.seq[i - 1]);
		got += s.seq[i] % 100 == 0;
	}
	assert_int_equal(got, above);
	assert_int_equal(s.seq[s.count - 1], 100000);
	outq_fini(&q);
}

static void nothing_waits_without_bound(void **state)
{
	static struct event_sink s;
	struct outq q = {0};
	uint8_t b[EVENT_MAX];

	s.blocked = true;
	s.count = 0;
	for (uint64_t i = 1; i <= 100000; i++) {
		struct ftb_event e = event_of("FTB.MPI", "X", FTB_FATAL);

		e.seq = i;
		ftb_event_write(&e, b);
		assert_true(outq_event(&q, &e, b, ftb_event_size(&e), sink_send, &s));
		assert_true(q.bytes <= OUTQ_HARD);
	}
	s.blocked = false;
	outq_flush(&q, sink_send, &s);
	assert_int_equal(s.count + q.lost_above, 100000);
	assert_true(s.count > 10000);
	outq_fini(&q);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(an_event_reads_as_it_was_written),
	    cmocka_unit_test(no_cut_or_changed_event_reads_out_of_bounds),
	    cmocka_unit_test(filters_let_through_what_they_say),
	    cmocka_unit_test(wrong_filters_have_their_error),
	    cmocka_unit_test(a_filter_that_covers_another_matches_all_that_it_does),
	    cmocka_unit_test(filters_travel),
	    cmocka_unit_test(a_slow_receiver_loses_its_oldest_info_and_nothing_else),
	    cmocka_unit_test(nothing_waits_without_bound),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
