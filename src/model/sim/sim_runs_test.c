/* SPDX-License-Identifier: BSD-3-Clause */
/* The simulator against runs worked out by hand from traces; what must hold of every run; what is
 * refused. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "base/base.h"
#include "model/sim/sim_fixture.h"

/* ---- by hand ---- */

static struct sim_summary by_hand(double nodes, double work_s, const char *scheme,
				  const char *trace)
{
	struct sim_plan p = plan_of(nodes, work_s, "trace:x", scheme, 1);
	struct error err = {0};

	if (sim_trace_parse(trace, strlen(trace), &p.failures.trace, &err) != HALE_OK)
		fail_msg("%s", err.text);
	struct sim_summary s = run(&p);
	sim_plan_fini(&p);
	return s;
}

#define EXPECT(what, value) expect_near(value, s.mean[what], 1e-6, #what)

static void levels_survive_what_they_should(void **state)
{
	const char *shared = "ckpt:every=1000s,cost=10s,restart=50s";
	struct sim_summary s = by_hand(4, 10000, shared, "1500 2\n");
	EXPECT(SIM_REWORK_S, 490);
	EXPECT(SIM_WALL_S, 10000 + 9 * 10 + 490 + 50);
	s = by_hand(4, 10000, shared, "1005 2\n"); /* the one being taken is lost */
	EXPECT(SIM_CKPT_S, 5 + 9 * 10);
	EXPECT(SIM_WALL_S, 10000 + 9 * 10 + 5 + 1000 + 120);

	const char *two = "L1:every=100s,cost=1s,restart=5s+ckpt:every=1000s,cost=10s,restart=50s";
	s = by_hand(4, 10000, two, "550 0 soft\n");
	EXPECT(SIM_WALL_S, 10000 + 9 * 10 + 90 * 1 + 45 + 5);
	s = by_hand(4, 10000, two, "550 0 hard\n");
	EXPECT(SIM_WALL_S, 10000 + 9 * 10 + 95 * 1 + 545 + 120);

	const char *partner = "L2:every=1000s,cost=10s,restart=100s";
	s = by_hand(8, 10000, partner, "1500 1\n1550 3\n");
	EXPECT(SIM_WALL_S, 10000 + 9 * 10 + 490 + 50 + 100);
	s = by_hand(8, 10000, partner, "1500 1\n1550 2\n"); /* neighbours */
	EXPECT(SIM_WALL_S, 10000 + 10 * 10 + 490 + 50 + 1000 + 120);
	s = by_hand(8, 10000, partner, "1500 1\n2900 2\n"); /* one after the other */
	EXPECT(SIM_RESTARTS, 2);
	EXPECT(SIM_WALL_S, 10000 + 9 * 10 + 490 + 100 + (2900 - 1600 - 10 - 1000 + 0) + 100 + 0);
}

static void clones_restore_redundancy(void **state)
{
	/* ranks 0..3 on nodes 0..3 and 4..7 */
	struct sim_summary s = by_hand(4, 10000, "2x+clone:time=100s", "1000 1\n2000 5\n3000 1\n");
	EXPECT(SIM_WALL_S, 10300);
	EXPECT(SIM_CLONES, 3);
	s = by_hand(4, 10000, "2x+clone:time=100s", "1000 1\n1050 5\n"); /* its source dies */
	EXPECT(SIM_RESTARTS, 1);
	EXPECT(SIM_WALL_S, 50 + 1000 + 120 + 10000);
	s = by_hand(4, 10000, "2x+clone:time=100s", "1000 1\n1050 6\n"); /* one after the other */
	EXPECT(SIM_WALL_S, 10200);
	s = by_hand(4, 10000, "2x+clone:time=100s,at-once=2", "1000 1\n1050 6\n");
	EXPECT(SIM_WALL_S, 10150);
	s = by_hand(4, 10000, "2x+clone:time=100s,pause=10s", "1000 1\n1050 6\n");
	EXPECT(SIM_WALL_S, 10020);
	s = by_hand(4, 10000, "2x", "1000 1\n2000 6\n3000 1\n"); /* node 1 is not there any more */
	EXPECT(SIM_WALL_S, 10000);
	EXPECT(SIM_FAILURES, 2);
	s = by_hand(4, 10000, "3x+clone:time=100s", "1000 1\n1010 5\n1020 9\n");
	EXPECT(SIM_RESTARTS, 1);
}

static void spare_nodes_run_out_and_are_repaired(void **state)
{
	struct sim_summary s =
	    by_hand(4, 10000, "spares:count=1,repair=5000s", "1000 0\n2000 1\n3000 2\n");
	/* 1000: spare taken, start again to 1120; 2000: wait until 6000; 3000: it is down, too,
	 * and 7,000 + 1,000 is when the third is back */
	EXPECT(SIM_WAIT_S, 8000 - 2000 - 1000 + 0);
	EXPECT(SIM_SPARES, 3);
	s = by_hand(4, 10000, "spares:count=1", "1000 0\n2000 1\n");
	assert_true(s.hopeless);
	s = by_hand(4, 10000, "spares:count=0", "1000 0 soft\n");
	EXPECT(SIM_WALL_S, 11120);
	s = by_hand(4, 10000, "2x+clone:time=100s+spares:count=1,repair=3000s",
		    "1000 0\n1500 1\n4050 4\n");
	/* the second is cloned from 4000, when the first is repaired; 4050: rank 0's new node has
	 * been there since 1100, so losing its twin is no loss */
	EXPECT(SIM_RESTARTS, 0);
	EXPECT(SIM_CLONES, 3);
	EXPECT(SIM_WALL_S, 10300);
}

static void shadows_catch_up_and_jump(void **state)
{
	/* mains 0..3, cores 4 and 5: sets {0, 1, 4} and {2, 3, 5} */
	struct sim_summary s = by_hand(4, 10000, "shadow:set=2", "1000 0\n3000 2\n");
	EXPECT(SIM_STALL_S, 500 + 750); /* level at 1,000; 2,500 done at 3,000 */
	EXPECT(SIM_PROMOTIONS, 2);
	s = by_hand(4, 10000, "shadow:set=2,jump=none", "1000 0\n3000 2\n");
	EXPECT(SIM_STALL_S, 500 + (250 + 750)); /* 250 came nearer while waiting */
	s = by_hand(4, 10000, "shadow:set=2", "1000 0\n3000 1\n");
	EXPECT(SIM_WALL_S, 10000 + 500 + 2500 + 120);
	s = by_hand(4, 10000, "shadow:set=2", "1000 4\n"); /* only shadows lost */
	EXPECT(SIM_WALL_S, 10000);
	s = by_hand(4, 10000, "shadow:set=2,rejuvenate=1,rejuvenation=60s", "1000 0\n3000 1\n");
	EXPECT(SIM_RESTARTS, 0);
	EXPECT(SIM_STALL_S, 500 + 60 + (3000 - 1560) / 2.0 + 60);
	/* 0.75 * 1,000,000 bytes at 1,000 bytes a second, half of which the shadows eat */
	s = by_hand(4, 10000, "shadow:set=2,log=1MB,rate=1kB/s,jump=20s", "2000 0\n");
	EXPECT(SIM_JUMPS, 6);
	EXPECT(SIM_STALL_S, 6 * 20 + (2000 - 20 - 1500) / 2.0);
	s = by_hand(4, 10000, "shadow:set=2,pressure=1.5", "1000 0\n");
	EXPECT(SIM_STALL_S, 1000 * (1 - pow(2, -1.5)));
	s = by_hand(4, 10000, "shadow:set=2+ckpt:every=1000s,cost=10s,restart=50s", "500 0\n2100 1\n");
	EXPECT(SIM_RESTARTS, 1); /* from 1,000; 2,100 - 250 - 10 - 1,000 lost */
	EXPECT(SIM_WALL_S, 10000 + 90 + 250 + (2100 - 260 - 1000) + 50);
}

/* ---- the whole ---- */

static void parts_make_up_the_wall_time(void **state)
{
	static const char *const schemes[] = {
	    "none",
	    "L1:every=1h+L2:every=4h+ckpt",
	    "2x+ckpt",
	    "2x+clone:pause=10s+ckpt",
	    "1.5x+clone+L2:cost=10s,every=2h+ckpt",
	    "3x+clone:at-once=any",
	    "shadow:set=4,rejuvenate=3,rejuvenation=5min+ckpt",
	    "shadow:speed=0.3,jump=none",
	    "2x+clone+task:coverage=50%,rework=30s,waste=1%+spares:count=30,repair=2d+ckpt"};

	for (size_t i = 0; i < ARRAY_LEN(schemes); i++) {
		struct sim_plan p =
		    plan_of(60, 20 * 86400, "weibull:shape=0.7,mttf=1y,soft=40%", schemes[i], 200);
		p.job.beta = 0.1;
		struct sim_summary s = run(&p);
		double sum = 0;
		for (int f = SIM_WORK_S; f <= SIM_WAIT_S; f++) {
			assert_true(s.mean[f] >= 0);
			sum += s.mean[f];
		}
		assert_true(s.finished > 0 && s.mean[SIM_FAILURES] > 1);
		expect_near(sum, s.mean[SIM_WALL_S], 1e-3, schemes[i]);
		assert_true(s.mean[SIM_WORK_S] >= p.job.work_s);
	}
}

static void threads_change_no_bit(void **state)
{
	struct sim_plan p = plan_of(3000, 10 * 86400, "weibull:shape=0.7,mttf=5y,soft=20%",
				    "2x+clone+task+ckpt", 333);
	struct sim_summary one = run(&p), other;

	for (uint32_t threads = 2; threads <= 7; threads += 5) {
		p.threads = threads;
		other = run(&p);
		other.events_per_s = one.events_per_s;
		assert_memory_equal(&one, &other, sizeof(one));
	}
	p.seed++;
	other = run(&p);
	assert_true(other.mean[SIM_WALL_S] != one.mean[SIM_WALL_S]);
}

static void a_recorded_run_plays_back(void **state)
{
	struct sim_plan p =
	    plan_of(500, 30 * 86400, "weibull:shape=0.7,mttf=2y,soft=30%", "2x+clone+ckpt", 1);
	struct sim_record record = {0};
	struct sim_summary first, again;

	assert_int_equal(sim_run(&p, &first, NULL, &record, NULL), HALE_OK);
	assert_true(record.count > 50);
	p.failures = (struct sim_failures){.traced = true};
	p.failures.trace = (struct sim_trace){record.events, record.count, 1e9};
	p.scheme.level[POLICY_SHARED].every_s = first.every_s[POLICY_SHARED];
	assert_int_equal(sim_run(&p, &again, NULL, NULL, NULL), HALE_OK);
	assert_memory_equal(first.mean, again.mean, sizeof(first.mean));
	/* entered at random, it gives as many failures in the long run */
	p.failures.trace.span_s = first.mean[SIM_WALL_S];
	p.failures.random_start = true;
	p.runs = 50;
	assert_int_equal(sim_run(&p, &again, NULL, NULL, NULL), HALE_OK);
	assert_true(again.deviation_s > 0 && again.outlived == 0);
	free(record.events);
}

static void what_never_finishes_is_seen(void **state)
{
	struct sim_plan p = plan_of(1000000, 30 * 86400, "exp:mttf=5y", "none", 1000);
	p.limit = 5;
	struct sim_summary s = run(&p);
	assert_true(s.hopeless);
	assert_int_equal(s.finished, 0);
	/* lambda n r t_clone = 1.9 */
	p = plan_of(1000000, 86400, "exp:mttf=2y", "2x+clone:time=1min", 1000);
	p.limit = 10;
	s = run(&p);
	assert_true(s.hopeless);
	/* some do: a node without a spare survives with probability e^-1 */
	p = plan_of(1, 86400, "exp:mttf=24h", "spares:count=0", 4000);
	s = run(&p);
	assert_false(s.hopeless);
	expect_share(exp(-1), &s);
}

static void policies_decide(void **state)
{
	enum policy_level level;
	double every[] = {100, 0, 1000}, saved[] = {POLICY_NO_WORK, POLICY_NO_WORK, POLICY_NO_WORK};

	assert_true(policy_checkpoint_due(every, saved, &level) == 100 && level == POLICY_LOCAL);
	saved[POLICY_LOCAL] = 900;
	assert_true(policy_checkpoint_due(every, saved, &level) == 1000);
	assert_int_equal(level, POLICY_SHARED);
	assert_int_equal(policy_restore_level(saved, POLICY_LOCAL), POLICY_LOCAL);
	assert_int_equal(policy_restore_level(saved, POLICY_PARTNER), POLICY_BEGINNING);
	saved[POLICY_SHARED] = 1000;
	assert_int_equal(policy_restore_level(saved, POLICY_LOCAL), POLICY_SHARED);
	saved[POLICY_LOCAL] = 1000;
	assert_int_equal(policy_restore_level(saved, POLICY_LOCAL), POLICY_LOCAL);

	struct policy_lost lost[] = {
	    {7, 2, true, false}, {8, 1, true, false}, {9, 2, false, false}};
	assert_int_equal(policy_clone_next(lost, 3, true), 1);
	assert_int_equal(policy_clone_next(lost, 3, false), 2);
	lost[1].in_hand = true;
	assert_int_equal(policy_clone_next(lost, 3, true), 0);
	assert_int_equal(policy_clone_next(lost, 2, false), 2);
	assert_true(policy_are_partners(0, 7, 8) && policy_are_partners(3, 2, 8));
	assert_false(policy_are_partners(1, 3, 8) || policy_are_partners(4, 4, 8));
	assert_true(isinf(policy_jump_due(0, 100, 0.75, 10, 1)));
	assert_false(policy_rejuvenate(100, 0));
}

static void nonsense_is_refused(void **state)
{
	static const char *const schemes[] = {"",
					      "4x",
					      "0.5x",
					      "2x+3x",
					      "clone",
					      "ckpt+L4",
					      "ckpt:cost",
					      "ckpt:cost=never",
					      "ckpt:colour=red",
					      "none:a=b",
					      "2x+shadow",
					      "clone:time=1min,pause=2min+2x",
					      "stripes",
					      "shadow:set=3,speed=0.5",
					      "shadow:jump=none,rejuvenate=3",
					      "shadow:meet=end+ckpt",
					      "shadow:meet=never",
					      "shadow:jump=none,log=1GB",
					      "task:coverage=120%",
					      "2x:fraction=0.5"};
	static const char *const failures[] = {"exp",
					       "exp:",
					       "exp:mttf=0",
					       "weibull:shape=0,mttf=1y",
					       "exp:shape=2,mttf=1y",
					       "often:mttf=1y",
					       "trace:",
					       "trace:x,start=late",
					       "exp:mttf=1y,soft=2"};
	struct sim_scheme scheme;
	struct sim_failures law;
	struct error err;
	char *file;

	for (size_t i = 0; i < ARRAY_LEN(schemes); i++) {
		err.text[0] = '\0';
		if (sim_scheme_parse(schemes[i], &scheme, &err) != HALE_ERR_ARGUMENT ||
		    !err.text[0])
			fail_msg("scheme '%s' is taken", schemes[i]);
	}
	for (size_t i = 0; i < ARRAY_LEN(failures); i++) {
		err.text[0] = '\0';
		if (sim_failures_parse(failures[i], &law, &file, &err) != HALE_ERR_ARGUMENT ||
		    !err.text[0])
			fail_msg("failures '%s' are taken", failures[i]);
		free(file);
	}
	struct sim_plan p = plan_of(1, 100, "exp:mttf=1y", "L2", 1);
	assert_int_equal(sim_plan_check(&p, &err), HALE_ERR_ARGUMENT); /* no partner */
	p = plan_of(2, 100, "exp:mttf=1y", "task", 1);
	assert_int_equal(sim_plan_check(&p, &err), HALE_ERR_ARGUMENT); /* nothing to cover */
	p = plan_of(2, 100, "exp:mttf=1y", "ckpt:cost=0", 1);
	assert_int_equal(sim_plan_check(&p, &err), HALE_ERR_ARGUMENT); /* no best interval */
}

static void bad_traces_are_refused_with_their_line(void **state)
{
	static const char *const traces[] = {
	    "",	      "# none\n",    "x 1\n",	      "1\n", "1 2 maybe\n",
	    "1 -2\n", "span\n1 2\n", "1 5000000000\n"};
	struct sim_trace t;
	struct error err;

	for (size_t i = 0; i < ARRAY_LEN(traces); i++)
		if (sim_trace_parse(traces[i], strlen(traces[i]), &t, &err) != HALE_ERR_ARGUMENT)
			fail_msg("trace %zu is taken", i);
	const char *good = "# a\n\nspan 1h\n2min 7 soft # b\r\n1 3\n";
	assert_int_equal(sim_trace_parse(good, strlen(good), &t, &err), HALE_OK);
	assert_int_equal(t.count, 2);
	assert_true(t.span_s == 3600 && t.events[0].node == 3 && t.events[1].soft);
	sim_trace_fini(&t);
	assert_int_equal(sim_trace_parse("1 2\n3\n", 6, &t, &err), HALE_ERR_ARGUMENT);
	assert_non_null(strstr(err.text, "line 2"));
}
int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(levels_survive_what_they_should),
	    cmocka_unit_test(clones_restore_redundancy),
	    cmocka_unit_test(spare_nodes_run_out_and_are_repaired),
	    cmocka_unit_test(shadows_catch_up_and_jump),
	    cmocka_unit_test(parts_make_up_the_wall_time),
	    cmocka_unit_test(threads_change_no_bit),
	    cmocka_unit_test(a_recorded_run_plays_back),
	    cmocka_unit_test(what_never_finishes_is_seen),
	    cmocka_unit_test(policies_decide),
	    cmocka_unit_test(nonsense_is_refused),
	    cmocka_unit_test(bad_traces_are_refused_with_their_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
