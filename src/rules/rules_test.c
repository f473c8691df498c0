/* SPDX-License-Identifier: BSD-3-Clause */
/* The engine on sequences of events, the shipped rules among them. What comes out is compared as a
 * text, a line for each action. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "base/base.h"
#include "rules/rules.h"

struct rules_world {
	struct rules *rules;
	struct rules_engine *engine;
	char out[4096];
	struct {
		char node[32];
		uint64_t id;
	} moving[16];
	int count, actions;
	char event[64];	    /* of the last action */
	bool marked[2][10]; /* n0 …, s0 …: what the actions so far say */
};

static void emit(void *arg, const struct rules_action *a)
{
	struct rules_world *w = arg;
	char line[200];

	w->actions++;
	snprintf(w->event, sizeof(w->event), "%s", a->event);
	if (a->what == RULES_MARK_UNUSABLE || a->what == RULES_MARK_USABLE) {
		bool *marked = &w->marked[a->node[0] == 's'][(a->node[1] - '0') % 10];

		assert_int_equal(*marked, a->what == RULES_MARK_USABLE); /* only changes are said */
		*marked = !*marked;
	}
	snprintf(line, sizeof(line), "%g %s%s%s%s%s\n", a->time, rules_do_name(a->what),
		 *a->node ? " " : "", a->node, *a->argument ? " " : "", a->argument);
	if (strlen(w->out) + strlen(line) < sizeof(w->out))
		strcat(w->out, line);
	if (a->what == RULES_MIGRATE || a->what == RULES_CLONE) {
		assert_in_range(w->count, 0, 15);
		snprintf(w->moving[w->count].node, 32, "%.31s", a->node);
		w->moving[w->count++].id = a->id;
	}
}

static void world_init(struct rules_world *w, const char *text, int working, int spares)
{
	struct error err = {0};
	char name[16];

	*w = (struct rules_world){0};
	if (text && rules_parse("t", text, strlen(text), &w->rules, &err) != HALE_OK)
		fail_msg("%s", err.text);
	if (!text && rules_default(&w->rules, &err) != HALE_OK)
		fail_msg("%s", err.text);
	w->engine = rules_engine_create(w->rules, emit, w);
	assert_non_null(w->engine);
	for (int i = 0; i < working + spares; i++) {
		snprintf(name, sizeof(name), i < working ? "n%d" : "s%d",
			 i < working ? i : i - working);
		assert_int_equal(
		    rules_engine_node(w->engine, name,
				      i < working ? RULES_NODE_WORKING : RULES_NODE_SPARE, 0),
		    HALE_OK);
	}
}

static void world_fini(struct rules_world *w)
{
	rules_engine_destroy(w->engine);
	rules_destroy(w->rules);
}

static void event(struct rules_world *w, double t, const char *name, const char *host,
		  const char *payload)
{
	struct rules_event e = {.time = t,
				.space = "FTB.TEST",
				.name = name,
				.host = host,
				.payload = payload,
				.severity = RULES_ERROR};
	rules_engine_event(w->engine, &e);
}

/* The k-th migration so far ends; its node has no ranks then, and target some. */
static void moved(struct rules_world *w, double t, int k, const char *target)
{
	rules_engine_node(w->engine, target, RULES_NODE_WORKING, t);
	rules_engine_node(w->engine, w->moving[k].node, RULES_NODE_SPARE, t);
	rules_engine_done(w->engine, w->moving[k].id, true, t);
}

static void gives(struct rules_world *w, const char *out)
{
	assert_string_equal(w->out, out);
	w->out[0] = 0;
}

static void fan_fails_and_ranks_leave_that_node(void **state)
{
	struct rules_world w;

	world_init(&w, NULL, 3, 1);
	event(&w, 10, "FTB_IPMI_FANFAIL", "n1", "n1");
	gives(&w, "10 mark unusable n1\n10 migrate n1\n");
	assert_false(rules_engine_usable(w.engine, "n1"));
	event(&w, 11, "FTB_IPMI_FANFAIL", "n1", "n1"); /* once more: known */
	moved(&w, 12, 0, "s0");
	event(&w, 13, "FTB_IPMI_FANFAIL", "n1", "n1");
	rules_engine_tick(w.engine, 1000);
	gives(&w, "");
	world_fini(&w);
}

static void rack_overheats_and_is_usable_again(void **state)
{
	struct rules_world w;

	world_init(&w, NULL, 4, 2);
	event(&w, 10, "FTB_IPMI_OVERTEMP", "n0", "n0");
	event(&w, 12, "FTB_IPMI_OVERTEMP", "n1", "n1");
	gives(&w, "");
	assert_true(rules_engine_next(w.engine) == 20);
	rules_engine_tick(w.engine, 20);
	gives(&w, "20 mark unusable n0\n20 migrate n0\n");
	assert_string_equal(w.event, "FTB_IPMI_OVERTEMP"); /* long after it */
	rules_engine_tick(w.engine, 22);
	gives(&w, "22 mark unusable n1\n22 migrate n1\n");
	moved(&w, 23, 0, "s0");
	moved(&w, 24, 1, "s1");
	event(&w, 100, "FTB_IPMI_NORMAL", "n0", "n0");
	event(&w, 101, "FTB_IPMI_NORMAL", "n1", "n1");
	gives(&w, "");
	event(&w, 110, "FTB_IPMI_OVERTEMP", "n1", "n1"); /* not well after all */
	rules_engine_tick(w.engine, 130);
	gives(&w, "130 mark usable n0\n");
	assert_string_equal(w.event, "FTB_IPMI_NORMAL");
	event(&w, 140, "FTB_IPMI_NORMAL", "n1", "n1");
	rules_engine_tick(w.engine, 169.9);
	gives(&w, "");
	rules_engine_tick(w.engine, 170);
	gives(&w, "170 mark usable n1\n");
	world_fini(&w);
}

static void all_nodes_overheat_and_the_job_is_saved(void **state)
{
	struct rules_world w;

	world_init(&w, NULL, 2, 1);
	event(&w, 10, "FTB_IPMI_OVERTEMP", "n0", "n0");
	event(&w, 14, "FTB_IPMI_OVERTEMP", "s0", "s0");
	gives(&w, "");
	event(&w, 18, "FTB_IPMI_OVERTEMP", "n1", "n1");
	gives(&w, "18 checkpoint\n");
	rules_engine_tick(w.engine, 60); /* nobody is sent anywhere */
	gives(&w, "");
	rules_engine_tick(w.engine, 618); /* and again while it lasts */
	gives(&w, "618 checkpoint\n");
	/* the spare is cool again: now there is somewhere to go, for one of the two */
	event(&w, 700, "FTB_IPMI_NORMAL", "s0", "s0");
	gives(&w,
	      "700 mark unusable n0\n700 migrate n0\n700 mark unusable n1\n700 checkpoint n1\n");
	world_fini(&w);
}

static void without_a_spare_the_job_is_saved_and_moves_later(void **state)
{
	struct rules_world w;

	world_init(&w, "when H until N do migrate else checkpoint, mail \"a@b\"", 2, 0);
	event(&w, 1, "H", "n0", "");
	gives(&w, "1 checkpoint n0\n1 mail n0 a@b\n");
	event(&w, 2, "H", "n0", "");
	rules_engine_tick(w.engine, 50);
	gives(&w, "");
	rules_engine_node(w.engine, "s0", RULES_NODE_SPARE, 60);
	gives(&w, "60 migrate n0\n");
	world_fini(&w);
}

static void two_nodes_at_once_and_one_spare(void **state)
{
	struct rules_world w;

	world_init(&w, "when H until N do migrate else checkpoint", 3, 1);
	event(&w, 1, "H", "n0", "");
	event(&w, 1, "H", "n1", "");
	gives(&w, "1 migrate n0\n1 checkpoint n1\n");
	/* n0 is empty then, but as hot as before: no place for n1 */
	moved(&w, 5, 0, "s0");
	gives(&w, "");
	event(&w, 9, "N", "n0", "");
	gives(&w, "9 migrate n1\n");
	world_fini(&w);
}

static void a_failed_migration_is_tried_again_while_the_reason_lasts(void **state)
{
	struct rules_world w;

	world_init(&w, "when H until N do migrate", 1, 1);
	event(&w, 1, "H", "n0", "");
	rules_engine_done(w.engine, w.moving[0].id, false, 5);
	gives(&w, "1 migrate n0\n");
	assert_true(rules_engine_next(w.engine) == 35);
	rules_engine_tick(w.engine, 34);
	gives(&w, "");
	rules_engine_node(w.engine, "s0", RULES_NODE_OFF, 34);
	rules_engine_tick(w.engine, 35);
	gives(&w, "");
	assert_true(isinf(rules_engine_next(w.engine))); /* until there is a spare again */
	rules_engine_node(w.engine, "s0", RULES_NODE_SPARE, 36);
	gives(&w, "36 migrate n0\n");
	event(&w, 36, "N", "n0", "");
	rules_engine_done(w.engine, w.moving[1].id, false, 37);
	rules_engine_done(w.engine, 999, false, 37);
	rules_engine_tick(w.engine, 100);
	gives(&w, "");
	world_fini(&w);
}

static void ranks_that_come_to_a_hot_node_leave_it_too(void **state)
{
	struct rules_world w;

	world_init(&w, "when H until N do migrate", 1, 1);
	event(&w, 1, "H", "s0", "");
	gives(&w, "");
	rules_engine_node(w.engine, "s1", RULES_NODE_SPARE, 2);
	rules_engine_node(w.engine, "s0", RULES_NODE_WORKING, 3);
	gives(&w, "3 migrate s0\n");
	world_fini(&w);
}

static void ranks_go_to_free_slots_where_no_spare_is(void **state)
{
	struct rules_world w;

	world_init(&w, "when H until N do migrate else checkpoint", 4, 0);
	rules_engine_slots(w.engine, "n0", 4, 4);
	rules_engine_slots(w.engine, "n1", 4, 12);
	rules_engine_slots(w.engine, "n2", 4, 4);
	rules_engine_slots(w.engine, "n3", 3, 1);   /* too many: no room, nor less of it */
	rules_engine_slots(w.engine, "n4", 0, 100); /* no node of the job */
	event(&w, 1, "H", "n0", "");
	event(&w, 2, "H", "n2", ""); /* the 8 free slots of n1 are enough for both */
	gives(&w, "1 migrate n0\n2 migrate n2\n");
	event(&w, 3, "H", "n3", "");
	gives(&w, "3 checkpoint n3\n");
	rules_engine_slots(w.engine, "n1", 4, 15);
	rules_engine_tick(w.engine, 4);
	gives(&w, "4 migrate n3\n");
	world_fini(&w);
}

static void a_rule_acts_once_in_a_while_however_often_it_begins_to_hold(void **state)
{
	struct rules_world w;

	world_init(&w, "when H until N do checkpoint once in 60s", 1, 0);
	event(&w, 1, "H", "n0", "");
	gives(&w, "1 checkpoint n0\n");
	event(&w, 2, "N", "n0", "");
	event(&w, 10, "H", "n0", "");
	assert_true(rules_engine_next(w.engine) == 61);
	rules_engine_tick(w.engine, 60);
	gives(&w, "");
	rules_engine_tick(w.engine, 61);
	gives(&w, "61 checkpoint n0\n");
	assert_true(isinf(rules_engine_next(w.engine)));
	world_fini(&w);
}

static void a_move_is_wanted_while_a_rule_wants_it(void **state)
{
	struct rules_world w;
	uint64_t id;

	world_init(&w,
		   "when H until N do migrate\nwhen F until G do migrate\n"
		   "when C until D do checkpoint instead of migrate",
		   2, 1);
	event(&w, 1, "H", "n0", "");
	event(&w, 1, "F", "n0", "");
	id = w.moving[0].id;
	assert_true(rules_engine_wanted(w.engine, id));
	event(&w, 2, "N", "n0", ""); /* the other one holds still */
	assert_true(rules_engine_wanted(w.engine, id));
	event(&w, 3, "C", "n0", "");
	assert_false(rules_engine_wanted(w.engine, id));
	event(&w, 4, "D", "n0", "");
	assert_true(rules_engine_wanted(w.engine, id));
	event(&w, 5, "G", "n0", "");
	assert_false(rules_engine_wanted(w.engine, id));
	assert_true(rules_engine_wanted(w.engine, 0) && rules_engine_wanted(w.engine, id + 100));
	world_fini(&w);
	/* What holds for a moment only is not over by itself. */
	world_init(&w, "when X do migrate when C until D do checkpoint instead of migrate", 1, 1);
	event(&w, 1, "X", "n0", "");
	assert_true(rules_engine_wanted(w.engine, w.moving[0].id));
	event(&w, 2, "C", "n0", "");
	assert_false(rules_engine_wanted(w.engine, w.moving[0].id));
	world_fini(&w);
}

static void thresholds_count_in_a_sliding_window(void **state)
{
	struct rules_world w;

	world_init(&w, "when E 3 within 60s do raise redundancy once in 1s", 2, 0);
	event(&w, 0, "E", "n0", "");
	event(&w, 30, "E", "n0", "");
	event(&w, 30, "E", "n1", ""); /* another node counts by itself */
	event(&w, 61, "E", "n0", "");
	gives(&w, "");
	event(&w, 89, "E", "n0", "");
	gives(&w, "89 raise redundancy n0\n");
	event(&w, 91, "E", "n0", ""); /* the next time needs three more */
	event(&w, 92, "E", "n0", "");
	gives(&w, "");
	event(&w, 93, "E", "n0", "");
	gives(&w, "93 raise redundancy n0\n");
	event(&w, 200, "E", "n1", "LABEL:x::COUNT:3");
	gives(&w, "200 raise redundancy n1\n");
	world_fini(&w);
}

static void a_storm_gives_few_actions(void **state)
{
	struct rules_world w;

	world_init(&w, "when E do mail \"m\"\nwhen S 1000 within 1s do checkpoint once in 1min", 2,
		   0);
	for (int i = 0; i < 1000000; i++) {
		event(&w, i * 1e-5, i & 1 ? "E" : "S", i & 2 ? "n0" : "n1", "");
		event(&w, i * 1e-5, "E", "a-node-of-nobody", "another");
	}
	/* 10 s: one mail from each node, one checkpoint because of each */
	assert_int_equal(w.actions, 4);
	world_fini(&w);
}

static void flapping_is_no_condition_until_it_stays(void **state)
{
	struct rules_world w;

	world_init(&w, "when H until N for 5s do migrate", 1, 1);
	for (int t = 0; t < 100; t += 4) {
		event(&w, t, "H", "n0", "");
		event(&w, t + 3, "N", "n0", "");
	}
	gives(&w, "");
	event(&w, 200, "H", "n0", "");
	event(&w, 204, "H", "n0", ""); /* repeated: it began at 200 */
	rules_engine_tick(w.engine, 205);
	gives(&w, "205 migrate n0\n");
	world_fini(&w);
}

static void windows_over_several_nodes(void **state)
{
	struct rules_world w;

	world_init(&w,
		   "when E on 2 nodes within 10s do checkpoint\n"
		   "when F until G on 50% of nodes do mail \"m\"",
		   3, 1);
	event(&w, 0, "E", "n0", "");
	event(&w, 11, "E", "n1", "");
	event(&w, 12, "E", "n1", "");
	gives(&w, "");
	event(&w, 20, "E", "n2", "");
	gives(&w, "20 checkpoint\n");
	event(&w, 40, "F", "n0", "");
	gives(&w, "");
	rules_engine_node(w.engine, "n1", RULES_NODE_GONE, 50); /* of three it is not half */
	gives(&w, "");
	rules_engine_node(w.engine, "s0", RULES_NODE_OFF, 60); /* of two it is */
	gives(&w, "60 mail m\n");
	world_fini(&w);
}

static void a_mark_has_reasons_and_lasts_while_there_is_one(void **state)
{
	struct rules_world w;

	world_init(&w,
		   "when H do mark unusable by heat when L do mark unusable by link\n"
		   "when N do mark usable by heat when U do mark usable by link",
		   1, 0);
	event(&w, 1, "H", "n0", "");
	event(&w, 2, "L", "n0", "");
	event(&w, 3, "N", "n0", "");
	gives(&w, "1 mark unusable n0\n");
	event(&w, 4, "U", "n0", "");
	gives(&w, "4 mark usable n0\n");
	event(&w, 20, "U", "n0", "");
	gives(&w, "");
	world_fini(&w);
}

static void events_find_their_node(void **state)
{
	struct rules_world w;

	world_init(&w, "when E do mark unusable once in 1s", 4, 0);
	event(&w, 1, "E", "bmc-host", "n0");
	event(&w, 2, "E", "n1.cluster.example", "ADAPTER:0::PORT:1");
	event(&w, 3, "E", "n0", "RANK:1::NODE:n2::X:y");
	event(&w, 4, "E", "elsewhere", "n3.");
	event(&w, 5, "E", "", "");
	/* others' nodes are not the publisher */
	event(&w, 6, "E", "n0", "othernode");
	event(&w, 7, "E", "n0", "10.0.0.9");
	event(&w, 8, "E", "n0", "fd00::9%eth0");
	event(&w, 9, "E", "n0", "NODE:othernode::X:1");
	gives(&w,
	      "1 mark unusable n0\n2 mark unusable n1\n3 mark unusable n2\n4 mark unusable n3\n");
	/* texts and numbers name nobody */
	event(&w, 16, "E", "n0", "42");
	event(&w, 17, "E", "n1", "the fan rattles");
	event(&w, 18, "E", "n2", "RACK:7");
	gives(&w, "");
	world_fini(&w);
}

static void clauses_choose_events(void **state)
{
	struct rules_world w;
	struct rules_event e = {.time = 1,
				.space = "FTB.A",
				.name = "E",
				.host = "n0",
				.payload = "PORT:1",
				.severity = RULES_WARNING};

	world_init(
	    &w,
	    "when E* in FTB.A severity WARNING with \"PORT:1*\" at n0 do checkpoint once in 1ms", 2,
	    0);
	rules_engine_event(w.engine, &e);
	gives(&w, "1 checkpoint n0\n");
	e.time = 2, e.severity = RULES_INFO;
	rules_engine_event(w.engine, &e);
	e.severity = RULES_FATAL, e.payload = "PORT:2";
	rules_engine_event(w.engine, &e);
	e.payload = "PORT:1", e.space = "FTB.B";
	rules_engine_event(w.engine, &e);
	e.space = "FTB.A", e.host = "n1";
	rules_engine_event(w.engine, &e);
	e.host = "n0", e.name = "D";
	rules_engine_event(w.engine, &e);
	gives(&w, "");
	e.name = "EE";
	rules_engine_event(w.engine, &e);
	gives(&w, "2 checkpoint n0\n");
	world_fini(&w);
}

static void time_that_goes_back_harms_nothing(void **state)
{
	struct rules_world w;

	world_init(&w, "when H until N for 5s do migrate", 1, 1);
	event(&w, 100, "H", "n0", "");
	event(&w, 50, "H", "n0", "");
	event(&w, NAN, "X", "n0", "");
	rules_engine_tick(w.engine, 10);
	gives(&w, "");
	rules_engine_tick(w.engine, 105);
	gives(&w, "105 migrate n0\n");
	world_fini(&w);
}

static void nodes_with_bad_names_are_refused(void **state)
{
	struct rules_world w;
	char name[RULES_NODE_MAX + 1];

	world_init(&w, "when H do checkpoint", 0, 0);
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = 0;
	assert_int_equal(rules_engine_node(w.engine, "", RULES_NODE_SPARE, 0), HALE_ERR_ARGUMENT);
	assert_int_equal(rules_engine_node(w.engine, name, RULES_NODE_SPARE, 0), HALE_ERR_ARGUMENT);
	assert_int_equal(rules_engine_node(w.engine, "n", RULES_NODE_GONE, 0), HALE_OK);
	world_fini(&w);
}

/* A thousand random histories: never more moves under way than usable spares, every move is of a
 * node with ranks, and what is marked alternates. */
static void an_event_about_a_machine_is_about_all_of_its_nodes(void **state)
{
	struct rules_world w;

	world_init(&w, "when A until B do mark unusable\nwhen B until A do mark usable", 3, 0);
	assert_int_equal(rules_engine_host(w.engine, "n0", "vm"), HALE_OK);
	assert_int_equal(rules_engine_host(w.engine, "n2", "vm"), HALE_OK);
	assert_int_equal(rules_engine_host(w.engine, "x", "vm"), HALE_ERR_ARGUMENT);
	event(&w, 1, "A", "vm", "");
	gives(&w, "1 mark unusable n0\n1 mark unusable n2\n");
	event(&w, 2, "B", "elsewhere", "NODE:vm.site::X:1");
	gives(&w, "2 mark usable n0\n2 mark usable n2\n");
	event(&w, 3, "A", "vm", "n2"); /* the node's own name is more exact */
	gives(&w, "3 mark unusable n2\n");
	event(&w, 4, "A", "", "NODE:");
	event(&w, 4, "A", "v", "vmm");
	gives(&w, "");
	world_fini(&w);
	world_init(&w, "when A until B do mark unusable\nwhen B until A do mark usable", 1, 0);
	assert_int_equal(rules_engine_node(w.engine, "fd00:0:0:0:0:0:0:2", RULES_NODE_SPARE, 0),
			 HALE_OK);
	event(&w, 1, "A", "elsewhere", "fd00::2");
	gives(&w, "1 mark unusable fd00:0:0:0:0:0:0:2\n");
	event(&w, 2, "B", "elsewhere", "NODE:fd00:0:0:0:0:0:0:2::X:1");
	gives(&w, "2 mark usable fd00:0:0:0:0:0:0:2\n");
	event(&w, 3, "A", "fd00:0:0::2", "X:1");
	gives(&w, "3 mark unusable fd00:0:0:0:0:0:0:2\n");
	event(&w, 4, "B", "fd00::3", "fd00::3");
	event(&w, 5, "A", "fd00::2", "");
	gives(&w, "");
	world_fini(&w);
	world_init(&w, "when A until B on all nodes do checkpoint", 2, 0);
	rules_engine_host(w.engine, "n0", "vm");
	rules_engine_host(w.engine, "n1", "vm");
	event(&w, 1, "A", "vm", "vm");
	gives(&w, "1 checkpoint\n");
	world_fini(&w);
}

static void invariants_hold_in_random_histories(void **state)
{
	static const char *const names[] = {"FTB_IPMI_FANFAIL",	  "FTB_IPMI_OVERTEMP",
					    "FTB_IPMI_NORMAL",	  "FTB_IB_PORT_ERR",
					    "FTB_IB_PORT_ACTIVE", "FTB_MEM_UNCORRECTED"};
	for (unsigned seed = 1; seed <= 1000; seed++) {
		struct rules_world w;
		int spares = 2;
		char node[8];

		srandom(seed);
		world_init(&w, NULL, 4, spares);
		for (double t = 1; t < 60; t++) {
			snprintf(node, sizeof(node), "n%ld", random() % 4);
			event(&w, t, names[(size_t)random() % ARRAY_LEN(names)], node, node);
			assert_in_range(w.count, 0, spares);
			if (w.count > 0 && random() % 8 == 0) {
				rules_engine_done(w.engine, w.moving[--w.count].id, false, t);
			}
			assert_null(strstr(w.out, "migrate s")); /* nothing to move there */
			assert_false(w.marked[0][0] && rules_engine_usable(w.engine, "n0"));
			w.out[0] = 0;
		}
		world_fini(&w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(fan_fails_and_ranks_leave_that_node),
	    cmocka_unit_test(rack_overheats_and_is_usable_again),
	    cmocka_unit_test(all_nodes_overheat_and_the_job_is_saved),
	    cmocka_unit_test(without_a_spare_the_job_is_saved_and_moves_later),
	    cmocka_unit_test(two_nodes_at_once_and_one_spare),
	    cmocka_unit_test(a_failed_migration_is_tried_again_while_the_reason_lasts),
	    cmocka_unit_test(ranks_that_come_to_a_hot_node_leave_it_too),
	    cmocka_unit_test(ranks_go_to_free_slots_where_no_spare_is),
	    cmocka_unit_test(a_rule_acts_once_in_a_while_however_often_it_begins_to_hold),
	    cmocka_unit_test(a_move_is_wanted_while_a_rule_wants_it),
	    cmocka_unit_test(thresholds_count_in_a_sliding_window),
	    cmocka_unit_test(a_storm_gives_few_actions),
	    cmocka_unit_test(flapping_is_no_condition_until_it_stays),
	    cmocka_unit_test(windows_over_several_nodes),
	    cmocka_unit_test(a_mark_has_reasons_and_lasts_while_there_is_one),
	    cmocka_unit_test(events_find_their_node),
	    cmocka_unit_test(an_event_about_a_machine_is_about_all_of_its_nodes),
	    cmocka_unit_test(clauses_choose_events),
	    cmocka_unit_test(time_that_goes_back_harms_nothing),
	    cmocka_unit_test(nodes_with_bad_names_are_refused),
	    cmocka_unit_test(invariants_hold_in_random_histories),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
