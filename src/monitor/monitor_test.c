/* SPDX-License-Identifier: BSD-3-Clause */
/* The judges: readings in, events out. What comes out is compared as a text. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "base/base.h"
#include "monitor/load.h"

struct world {
	struct judge judge;
	struct monitor_options options;
	char out[4096];
};

static void publish(void *arg, const struct monitor_event *e)
{
	struct world *w = arg;
	size_t n = strlen(w->out);

	snprintf(w->out + n, sizeof(w->out) - n, "%s %s %s\n", e->name,
		 monitor_severity_name(e->severity), e->payload);
}

static void world_init(struct world *w, const char *kind)
{
	*w = (struct world){.judge = {.kind = monitor_kind_find(kind), .node = "n1"}};
	assert_non_null(w->judge.kind);
	w->judge.options = &w->options;
	w->judge.publish = publish;
	w->judge.publish_arg = w;
	w->judge.state = calloc(1, w->judge.kind->state_size);
}

static void world_fini(struct world *w)
{
	if (w->judge.kind->fini)
		w->judge.kind->fini(&w->judge);
	free(w->judge.state);
}

/* Lines with '\n' between; then these events, and no others. */
static void reading(struct world *w, double now, const char *lines, const char *events)
{
	char *text = strdup(lines), *save, *line;
	struct error err;

	w->out[0] = 0;
	w->judge.now = now;
	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		if (w->judge.kind->line(&w->judge, line, &err) != HALE_OK)
			fail_msg("%s", err.text);
	w->judge.kind->end(&w->judge);
	free(text);
	assert_string_equal(w->out, events);
}

static void refused(struct world *w, const char *line)
{
	char text[200];
	struct error err = {0};

	snprintf(text, sizeof(text), "%s", line);
	assert_int_equal(w->judge.kind->line(&w->judge, text, &err), HALE_ERR_ARGUMENT);
	assert_true(err.text[0]);
}

#define FAN(e)	"2,FAN1,Fan,3600.00,RPM," e "\n"
#define TEMP(e) "1,CPU Temp,Temperature,40.00,C," e "\n"
#define LOW	"'At or Below (<=) Lower Critical Threshold'"
#define WARM	"'At or Above (>=) Upper Non-Critical Threshold'"
#define HOT	"'At or Above (>=) Upper Critical Threshold'"

static void ipmi_says_each_change_once(void **state)
{
	struct world w;

	world_init(&w, "ipmi");
	reading(&w, 0, TEMP("OK") FAN("OK"), "");
	reading(&w, 1, TEMP("OK") FAN(LOW), "FTB_IPMI_FANFAIL ERROR n1\n");
	reading(&w, 2, TEMP("OK") FAN(LOW) "3,FAN2,Fan,0,RPM," LOW, "");
	reading(&w, 3, TEMP(WARM) FAN(LOW), "FTB_IPMI_OVERTEMP ERROR n1\n");
	reading(&w, 4, TEMP(HOT WARM) "3,FAN2,Fan,900,RPM,OK\n" FAN("OK"), "");
	reading(&w, 5, TEMP(HOT) FAN(LOW), "FTB_IPMI_FANFAIL ERROR n1\n");
	reading(&w, 6, TEMP("N/A") FAN("OK"), ""); /* not known is not well */
	reading(&w, 7, TEMP("OK"), "");		   /* nor is one good look */
	reading(&w, 8, TEMP("OK"), "FTB_IPMI_NORMAL INFO n1\n");
	reading(&w, 9, TEMP("OK") FAN("OK"), "");
	world_fini(&w);
}

static void ipmi_thresholds_columns_and_fans_that_stand_still(void **state)
{
	struct world w;

	world_init(&w, "ipmi");
	w.options.critical_only = true;
	reading(&w, 0, TEMP(WARM) "4,FAN3,Fan,0.00,RPM,OK", ""); /* never turned: not built in */
	reading(&w, 1, "4,FAN3,Fan,1200.00,RPM,OK", "");
	reading(&w, 2, "4,FAN3,Fan,0.00,RPM,OK", "FTB_IPMI_FANFAIL ERROR n1\n");
	reading(&w, 3, TEMP(HOT), "FTB_IPMI_OVERTEMP ERROR n1\n");
	reading(
	    &w, 4,
	    "ID,Name,Type,State,Reading,Units,Event\n1,CPU Temp,Temperature,Nominal,40.00,C,'OK'\n"
	    "4,FAN3,Fan,Nominal,1200.00,RPM,'OK'\n5,P1,Processor,Nominal,N/A,N/A,'OK'\n"
	    "6,Vcore,Voltage,Critical,1.0,V," HOT,
	    "");
	reading(&w, 5, "4,FAN3,Fan,Nominal,1200.00,RPM,'OK'", "FTB_IPMI_NORMAL INFO n1\n");
	refused(&w, "what is this");
	world_fini(&w);
}

static void ipmi_watches_each_of_very_many_sensors_and_says_what_is_too_many(void **state)
{
	enum { MANY = 3000, TOO_MANY = 8193 };
	struct world w;
	struct error err = {0};
	char line[100];
	int refusals = 0;

	world_init(&w, "ipmi");
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < MANY; i++) {
			snprintf(line, sizeof(line), "%d,FAN%d,Fan,900.00,RPM,%s", i, i,
				 round == 1 && i == MANY - 1 ? LOW : "OK");
			assert_int_equal(w.judge.kind->line(&w.judge, line, &err), HALE_OK);
		}
		w.judge.kind->end(&w.judge);
		assert_string_equal(w.out, round ? "FTB_IPMI_FANFAIL ERROR n1\n" : "");
	}
	for (int i = 0; i < TOO_MANY; i++) {
		snprintf(line, sizeof(line), "%d,FAN%d,Fan,900.00,RPM,OK", i, i);
		refusals += w.judge.kind->line(&w.judge, line, &err) != HALE_OK;
	}
	assert_int_equal(refusals, 1);
	assert_non_null(strstr(err.text, "more than 8192 fans"));
	world_fini(&w);
}

static void ib_all_ten_events_with_the_payloads_of_the_seed(void **state)
{
	struct world w;

	world_init(&w, "ib");
	reading(&w, 0, "adapters 0", "FTB_IB_ADAPTER_UNAVAILABLE WARNING \n");
	reading(&w, 1, "adapters 0", "");
	reading(&w, 2,
		"adapters 2\nadapter 0 mlx5_0 1\nport 0 1 ACTIVE 4 1 9\n"
		"adapter 1 mlx5_1 2\nport 1 1 DOWN 0 0 -\nport 1 2 ARMED 5 1 9",
		"FTB_IB_ADAPTER_AVAILABLE INFO NUM_ADAPTERS:2\n"
		"FTB_IB_ADAPTER_INFO INFO ADAPTER:0::NAME:mlx5_0::PORTS:1\n"
		"FTB_IB_PORT_INFO INFO ADAPTER:0::PORT:1::STATE:ACTIVE\n"
		"FTB_IB_ADAPTER_INFO INFO ADAPTER:1::NAME:mlx5_1::PORTS:2\n"
		"FTB_IB_PORT_INFO INFO ADAPTER:1::PORT:1::STATE:DOWN\n"
		"FTB_IB_PORT_INFO INFO ADAPTER:1::PORT:2::STATE:ARMED\n");
	reading(
	    &w, 3, "port 0 1 DOWN 4 1 9\nport 1 2 ACTIVE 5 1 9",
	    "FTB_IB_PORT_ERR ERROR ADAPTER:0::PORT:1\nFTB_IB_PORT_ACTIVE INFO ADAPTER:1::PORT:2\n");
	reading(&w, 4, "port 0 1 INIT 4 1 9",
		"FTB_IB_PORT_INFO INFO ADAPTER:0::PORT:1::STATE:INIT\n");
	reading(&w, 5, "port 0 1 ACTIVE 6 2 9",
		"FTB_IB_PORT_ACTIVE INFO ADAPTER:0::PORT:1\n"
		"FTB_IB_EVENT_LID_CHANGE INFO ADAPTER:0::PORT:1\n"
		"FTB_IB_EVENT_SM_CHANGE INFO ADAPTER:0::PORT:1\n");
	reading(&w, 6, "port 0 1 ACTIVE 6 2 10",
		"FTB_IB_EVENT_PKEY_CHANGE INFO ADAPTER:0::PORT:1\n");
	reading(
	    &w, 7, "adapters 1\nadapter 0 mlx5_0 1",
	    "FTB_IB_PORT_ERR ERROR ADAPTER:1::PORT:2\nFTB_IB_EVENT_DEVICE_FATAL INFO ADAPTER:1\n");
	reading(
	    &w, 8, "adapters 0",
	    "FTB_IB_PORT_ERR ERROR ADAPTER:0::PORT:1\nFTB_IB_EVENT_DEVICE_FATAL INFO ADAPTER:0\n"
	    "FTB_IB_ADAPTER_UNAVAILABLE WARNING \n");
	world_fini(&w);
}

static void ib_what_the_adapter_says_is_not_said_twice(void **state)
{
	struct world w;

	world_init(&w, "ib");
	reading(&w, 0, "adapters 1\nadapter 0 a 1\nport 0 1 ACTIVE 4 1 9",
		"FTB_IB_ADAPTER_AVAILABLE INFO NUM_ADAPTERS:1\n"
		"FTB_IB_ADAPTER_INFO INFO ADAPTER:0::NAME:a::PORTS:1\n"
		"FTB_IB_PORT_INFO INFO ADAPTER:0::PORT:1::STATE:ACTIVE\n");
	reading(&w, 1, "event 0 1 PORT_ERR\nevent 0 1 PORT_ERR\nport 0 1 DOWN 4 1 9",
		"FTB_IB_PORT_ERR ERROR ADAPTER:0::PORT:1\n");
	reading(&w, 2, "event 0 1 PORT_ACTIVE\nevent 0 1 LID_CHANGE\nport 0 1 ACTIVE 7 1 9",
		"FTB_IB_PORT_ACTIVE INFO ADAPTER:0::PORT:1\n"
		"FTB_IB_EVENT_LID_CHANGE INFO ADAPTER:0::PORT:1\n");
	reading(&w, 3, "port 0 1 ACTIVE 8 1 9", "FTB_IB_EVENT_LID_CHANGE INFO ADAPTER:0::PORT:1\n");
	reading(&w, 4, "event 0 1 SM_CHANGE\nevent 0 1 PKEY_CHANGE\nport 0 1 ACTIVE 8 3 11",
		"FTB_IB_EVENT_SM_CHANGE INFO ADAPTER:0::PORT:1\n"
		"FTB_IB_EVENT_PKEY_CHANGE INFO ADAPTER:0::PORT:1\n");
	reading(&w, 5, "event 0 0 DEVICE_FATAL\nevent 0 0 DEVICE_FATAL",
		"FTB_IB_EVENT_DEVICE_FATAL INFO ADAPTER:0\n");
	world_fini(&w);
}

static void ib_rising_errors_foretell_a_failure(void **state)
{
	struct world w;

	world_init(&w, "ib");
	reading(&w, 0, "adapters 1\nadapter 0 a 1\nerrors 0 1 symbol 500",
		"FTB_IB_ADAPTER_AVAILABLE INFO NUM_ADAPTERS:1\n"
		"FTB_IB_ADAPTER_INFO INFO ADAPTER:0::NAME:a::PORTS:1\n");
	reading(&w, 30, "errors 0 1 symbol 505", "");
	reading(&w, 61, "errors 0 1 symbol 508", ""); /* few a minute: cables are like that */
	reading(&w, 90, "errors 0 1 symbol 530",
		"FTB_IB_PORT_DEGRADING WARNING ADAPTER:0::PORT:1::COUNTER:symbol::COUNT:22\n");
	reading(&w, 91, "errors 0 1 symbol 0", ""); /* set back */
	reading(&w, 92, "errors 0 1 symbol 12",
		"FTB_IB_PORT_DEGRADING WARNING ADAPTER:0::PORT:1::COUNTER:symbol::COUNT:12\n");
	refused(&w, "port 0 1 SLEEPING 1 1 1");
	refused(&w, "port 3 1 ACTIVE 1 1 1"); /* no such adapter */
	refused(&w, "port 0 65 ACTIVE 1 1 1");
	refused(&w, "adapters 33");
	refused(&w, "adapter 0");
	world_fini(&w);
}

static void memory_counters_win_over_lines_about_the_same(void **state)
{
	struct world w;

	world_init(&w, "memory");
	reading(&w, 0, "count edac mc0 7 0\ncount nvml gpu0 0 0\ncount rasdaemon DIMM_A1 3 0", "");
	reading(
	    &w, 1,
	    "count edac mc0 9 0\nkernel EDAC MC0: 2 CE memory read error on DIMM_A1 (channel:0)\n"
	    "kernel mce: [Hardware Error]: CPU 1: Machine Check: 0 Bank 8: 8c00004000010090\n"
	    "count rasdaemon DIMM_A1 5 0",
	    "FTB_MEM_CORRECTED WARNING SOURCE:edac::UNIT:mc0::COUNT:2\n");
	reading(&w, 2, "count edac mc0 9 1\ncount nvml gpu0 3 1",
		"FTB_MEM_UNCORRECTED ERROR SOURCE:edac::UNIT:mc0::COUNT:1\n"
		"FTB_MEM_CORRECTED WARNING SOURCE:nvml::UNIT:gpu0::COUNT:3\n"
		"FTB_MEM_UNCORRECTED ERROR SOURCE:nvml::UNIT:gpu0::COUNT:1\n");
	reading(&w, 3, "count edac mc0 0 0", ""); /* set back */
	refused(&w, "count edac mc0 many 0");
	world_fini(&w);
}

static void memory_lines_of_the_kernel_and_mcelog(void **state)
{
	struct world w;

	world_init(&w, "memory");
	reading(&w, 0,
		"kernel EDAC MC0: 2 CE memory read error on CPU_SrcID#0_DIMM#0 (channel:0 slot:0)",
		"FTB_MEM_CORRECTED WARNING SOURCE:kernel::UNIT:CPU_SrcID#0_DIMM#0::COUNT:2\n");
	reading(&w, 1,
		"kernel mce: [Hardware Error]: CPU 3: Machine Check Exception: 5 Bank 4: "
		"be00000000800400",
		"FTB_MEM_MACHINE_CHECK ERROR CPU:3::BANK:4::STATUS:be00000000800400\n");
	reading(&w, 2,
		"kernel Memory failure: 0x1f5a2: recovery action for dirty LRU page: Recovered",
		"FTB_MEM_PAGE_FAILED ERROR PAGE:0x1f5a2::OUTCOME:Recovered\n");
	reading(&w, 3, "kernel NVRM: Xid (PCI:0000:3b:00): 48, pid=12, DBE (double bit error)",
		"FTB_MEM_GPU_ERROR ERROR GPU:0000:3b:00::XID:48\n");
	reading(&w, 4, "kernel NVRM: Xid (PCI:0000:3b:00): 31, MMU fault", "");
	reading(&w, 5, "mcelog CPU 0 BANK 8 TSC 5d\nmcelog STATUS 8c00004000010090 MCGSTATUS 0",
		"FTB_MEM_CORRECTED WARNING SOURCE:mcelog::UNIT:cpu0.bank8::COUNT:1\n");
	reading(&w, 6, "kernel eth0: link becomes ready\nkernel EDAC MC0: Giving out device", "");
	world_fini(&w);
}

static void load_conditions_begin_and_end_at_different_marks(void **state)
{
	struct world w;

	world_init(&w, "load");
	reading(&w, 0, "pressure memory 9.9\npressure cpu 50\nclock 1000.1\noom 4", "");
	reading(&w, 1, "pressure memory 10.5\nclock 1000.2\noom 4",
		"FTB_LOAD_PRESSURE WARNING RESOURCE:memory::PERCENT:10.5\n");
	reading(&w, 2, "pressure memory 6", "");
	reading(&w, 3, "pressure memory 10.5", "");
	reading(&w, 4, "pressure memory 5",
		"FTB_LOAD_PRESSURE_OVER INFO RESOURCE:memory::PERCENT:5.0\n");
	reading(&w, 5, "clock -2599.8\nclock -2599.7",
		"FTB_LOAD_CLOCK_JUMP WARNING SECONDS:-3600.000\n");
	reading(&w, 6, "oom 6", "FTB_LOAD_OOM_KILL ERROR COUNT:2\n");
	reading(&w, 7,
		"kernel Out of memory: Killed process 4711 (lmp) total-vm:8kB, anon-rss:7kB\noom 7",
		"FTB_LOAD_OOM_KILL ERROR PID:4711::NAME:lmp\n");
	reading(&w, 8, "disk \"/a b\" 1000 51\ndisk /c 1000 500", "");
	reading(&w, 9, "disk \"/a b\" 1000 49", "FTB_LOAD_DISK_FULL ERROR PATH:/a b::FREE:49\n");
	reading(&w, 10, "disk \"/a b\" 1000 60", "");
	reading(&w, 11, "disk \"/a b\" 1000 76", "FTB_LOAD_DISK_OK INFO PATH:/a b::FREE:76\n");
	refused(&w, "disk /c");
	refused(&w, "pressure memory much");
	refused(&w, "");
	world_fini(&w);
}

static void load_stuck_is_no_step_and_no_time(void **state)
{
	struct world w;

	world_init(&w, "load");
	reading(&w, 0, "process 7 S 1.00 10\nprocess 8 R 1.00 10", "");
	reading(&w, 50, "process 7 S 1.00 11\nprocess 8 R 1.00 10", "");
	reading(&w, 60, "process 7 S 1.00 11\nprocess 8 R 31.00 10", "");
	reading(&w, 110, "process 7 D 1.00 11",
		"FTB_LOAD_STUCK ERROR PID:7::STATE:D::SECONDS:60\n");
	reading(&w, 200, "process 7 D 1.00 11", "");
	reading(&w, 210, "process 7 S 1.01 11", "FTB_LOAD_MOVES INFO PID:7\n");
	reading(&w, 215, "process 7 gone\nprocess 9 gone", "");
	world_fini(&w);
}

/* Any bytes at all end in a status. */
static void judges_survive_garbage(void **state)
{
	static const char *const kinds[] = {"ipmi", "ib", "memory", "load"};
	static const char *const words[] = {
	    "adapters", "adapter", "port",  "errors", "event", "count",	 "kernel", "EDAC",    "0",
	    "-1",	"99999",   "1e400", "\"",     ",",     "ACTIVE", "disk",   "process", "%s"};
	struct error err;
	char line[400];

	srandom(3);
	for (size_t k = 0; k < ARRAY_LEN(kinds); k++) {
		struct world w;

		world_init(&w, kinds[k]);
		for (int i = 0; i < 20000; i++) {
			line[0] = 0;
			for (long n = random() % 9; n > 0; n--) {
				strcat(line, words[(size_t)random() % ARRAY_LEN(words)]);
				strcat(line, random() % 4 ? " " : ",");
			}
			hale_status_t s = w.judge.kind->line(&w.judge, line, &err);
			assert_true(s == HALE_OK || s == HALE_ERR_ARGUMENT);
			w.judge.kind->end(&w.judge);
			w.out[0] = 0;
		}
		world_fini(&w);
	}
}

/* ---- what every kind must do ---- */

/* Text of others: refused by a sentence, or passed over, and never an event, however long. */
static void every_kind_bears_lines_that_are_none(void **state)
{
	static const char *const lines[] = {
	    "",	    " ",	   "what is this", "0", "-1 -1 -1 -1", "\"", "nan inf 1e999",
	    "%s%n", "\x01\xff\xfe"};
	char longest[MONITOR_LINE_MAX], text[MONITOR_LINE_MAX];

	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = 0;
	for (size_t k = 0; monitor_kind_at(k); k++) {
		struct world w;

		world_init(&w, monitor_kind_at(k)->name);
		for (size_t i = 0; i <= ARRAY_LEN(lines); i++) {
			struct error err = {0};

			snprintf(text, sizeof(text), "%s",
				 i < ARRAY_LEN(lines) ? lines[i] : longest);
			if (w.judge.kind->line(&w.judge, text, &err) != HALE_OK)
				assert_true(err.code == HALE_ERR_ARGUMENT && err.text[0]);
		}
		assert_string_equal(w.out, "");
		world_fini(&w);
	}
}

static void every_kind_says_nothing_about_nothing(void **state)
{
	for (size_t k = 0; monitor_kind_at(k); k++) {
		struct world w;

		world_init(&w, monitor_kind_at(k)->name);
		for (int i = 0; i < 5; i++)
			reading(&w, i, "", "");
		world_fini(&w);
	}
}

static void every_kind_is_found_by_its_name(void **state)
{
	for (size_t k = 0; monitor_kind_at(k); k++)
		assert_ptr_equal(monitor_kind_find(monitor_kind_at(k)->name), monitor_kind_at(k));
	assert_null(monitor_kind_find("weather"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(every_kind_is_found_by_its_name),
	    cmocka_unit_test(every_kind_bears_lines_that_are_none),
	    cmocka_unit_test(every_kind_says_nothing_about_nothing),
	    cmocka_unit_test(ipmi_says_each_change_once),
	    cmocka_unit_test(ipmi_thresholds_columns_and_fans_that_stand_still),
	    cmocka_unit_test(ipmi_watches_each_of_very_many_sensors_and_says_what_is_too_many),
	    cmocka_unit_test(ib_all_ten_events_with_the_payloads_of_the_seed),
	    cmocka_unit_test(ib_what_the_adapter_says_is_not_said_twice),
	    cmocka_unit_test(ib_rising_errors_foretell_a_failure),
	    cmocka_unit_test(memory_counters_win_over_lines_about_the_same),
	    cmocka_unit_test(memory_lines_of_the_kernel_and_mcelog),
	    cmocka_unit_test(load_conditions_begin_and_end_at_different_marks),
	    cmocka_unit_test(load_stuck_is_no_step_and_no_time),
	    cmocka_unit_test(judges_survive_garbage),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
