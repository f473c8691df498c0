/* SPDX-License-Identifier: BSD-3-Clause */
/* FTB-IPMI: fans and temperatures of a node. Events and payloads: seed 001, appendix B.
 *
 *   well ── a fan fails ─▶ FANFAIL        one failed fan or hot sensor more of the same sort says
 *   well ── too hot ─────▶ OVERTEMP       nothing new
 *   all sensors well again, twice in a row ─▶ NORMAL
 *
 * A line of a reading is one of `ipmi-sensors --comma-separated-output`:
 * ID,Name,Type,Reading,Units, Event (a line that begins with "ID," gives another order of columns).
 * A sensor that a reading leaves out, or gives as N/A, is as it was. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "base/base.h"
#include "monitor/kind.h"

/* Far above what BMCs have (a chassis has some hundreds): what a broken one can make us keep. */
enum { SENSORS_MAX = 8192, NAME_MAX_LEN = 48, COLUMNS_MAX = 10, CALM_READINGS = 2 };

enum column { COLUMN_NAME, COLUMN_TYPE, COLUMN_READING, COLUMN_UNITS, COLUMN_EVENT, COLUMN_COUNT };

struct sensor {
	char name[NAME_MAX_LEN];
	bool fan, bad, turned; /* turned: a fan that has been seen to turn */
};

struct ipmi_state {
	struct sensor sensors[SENSORS_MAX];
	int count, next; /* readings come in the same order: where the next one is looked for */
	int column[COLUMN_COUNT]; /* 1 and more; 0: the file has given no order */
	bool fan_bad, hot;	  /* published */
	int calm;		  /* readings in a row without anything bad */
};

static bool mentions(const char *event, const char *const *words)
{
	for (; *words; words++)
		if (strcasestr(event, *words))
			return true;
	return false;
}

static bool fan_failed(const char *event)
{
	static const char *const words[] = {"Lower Critical",
					    "Lower Non-Recoverable",
					    "Failure",
					    "transition to Critical",
					    "transition to Non-Recoverable",
					    "Redundancy Lost",
					    "Non-redundant: Insufficient",
					    NULL};
	return mentions(event, words);
}

static bool too_hot(const char *event, bool critical_only)
{
	static const char *const critical[] = {"Upper Critical",
					       "Upper Non-Recoverable",
					       "transition to Critical",
					       "transition to Non-Recoverable",
					       "Limit Exceeded",
					       "Thermal Trip",
					       NULL};
	static const char *const early[] = {"Upper Non-Critical", "Throttled",
					    "transition to Non-Critical", NULL};
	return mentions(event, critical) || (!critical_only && mentions(event, early));
}

static struct sensor *sensor_of(struct ipmi_state *s, const char *name, bool fan)
{
	for (int i = 0; i < s->count; i++) {
		int at = (s->next + i) % s->count;

		if (s->sensors[at].fan == fan &&
		    !strncmp(s->sensors[at].name, name, NAME_MAX_LEN - 1)) {
			s->next = at + 1;
			return &s->sensors[at];
		}
	}
	if (s->count == SENSORS_MAX)
		return NULL;
	struct sensor *new = &s->sensors[s->count++];
	*new = (struct sensor){.fan = fan};
	snprintf(new->name, sizeof(new->name), "%s", name);
	return new;
}

static int columns_cut(char *line, char **columns)
{
	int n = 0;

	while (line && n < COLUMNS_MAX) {
		columns[n++] = line;
		line = strchr(line, ',');
		if (line)
			*line++ = 0;
	}
	return n;
}

static void header_line(struct ipmi_state *s, char **columns, int n)
{
	static const char *const names[COLUMN_COUNT] = {"Name", "Type", "Reading", "Units",
							"Event"};

	memset(s->column, 0, sizeof(s->column));
	for (int i = 0; i < n; i++)
		for (int k = 0; k < COLUMN_COUNT; k++)
			if (!strcasecmp(columns[i], names[k]))
				s->column[k] = i;
}

static hale_status_t ipmi_line(struct judge *j, char *line, struct error *err)
{
	static const int usual[COLUMN_COUNT] = {1, 2, 3, 4, 5};
	struct ipmi_state *s = j->state;
	const int *column = s->column[COLUMN_EVENT] ? s->column : usual;
	char *c[COLUMNS_MAX];
	int n = columns_cut(line, c);
	double reading = 0;
	bool fan, known;

	if (n > 1 && !strcasecmp(c[0], "ID")) {
		header_line(s, c, n);
		return HALE_OK;
	}
	for (int k = 0; k < COLUMN_COUNT; k++)
		if (column[k] >= n)
			return error_set(err, HALE_ERR_ARGUMENT,
					 "'%.60s…' is no line of ipmi-sensors: it has %d columns",
					 line, n);
	const char *type = c[column[COLUMN_TYPE]], *event = c[column[COLUMN_EVENT]];
	fan = !strcasecmp(type, "Fan") || !strcasecmp(type, "Cooling Device");
	if (!fan && strcasecmp(type, "Temperature") != 0 && strcasecmp(type, "Processor") != 0)
		return HALE_OK;
	known = line_number(c[column[COLUMN_READING]], &reading);
	struct sensor *sensor = sensor_of(s, c[column[COLUMN_NAME]], fan);
	if (!sensor)
		return error_set(err, HALE_ERR_STATE,
				 "the BMC has more than %d fans and temperatures", SENSORS_MAX);
	if (!*event || !strcasecmp(event, "N/A"))
		return HALE_OK;
	if (fan) {
		bool rpm = known && !strcasecmp(c[column[COLUMN_UNITS]], "RPM");
		sensor->turned |= rpm && reading > 0;
		/* standing still is a failure too where the BMC has no threshold for it */
		sensor->bad = fan_failed(event) || (rpm && reading <= 0 && sensor->turned);
	} else {
		sensor->bad = too_hot(event, j->options->critical_only);
	}
	return HALE_OK;
}

static void ipmi_end(struct judge *j)
{
	struct ipmi_state *s = j->state;
	bool fan = false, hot = false;

	for (int i = 0; i < s->count; i++) {
		fan |= s->sensors[i].bad && s->sensors[i].fan;
		hot |= s->sensors[i].bad && !s->sensors[i].fan;
	}
	s->calm = fan || hot ? 0 : s->calm + 1;
	if (fan && !s->fan_bad)
		judge_publish(j, "FTB_IPMI_FANFAIL", MONITOR_ERROR, "%s", j->node);
	if (hot && !s->hot)
		judge_publish(j, "FTB_IPMI_OVERTEMP", MONITOR_ERROR, "%s", j->node);
	if ((s->fan_bad || s->hot) && s->calm >= CALM_READINGS) {
		judge_publish(j, "FTB_IPMI_NORMAL", MONITOR_INFO, "%s", j->node);
		s->fan_bad = s->hot = false;
	}
	s->fan_bad |= fan;
	s->hot |= hot;
	/* mended while the other is still bad: it may fail, and be told, again */
	if (hot && !fan)
		s->fan_bad = false;
	if (fan && !hot)
		s->hot = false;
}

const struct monitor_kind monitor_ipmi = {.name = "ipmi",
					  .space = "FTB.FTB_IPMI",
					  .every = 10, /* seed 001, 3.5.3 */
					  .state_size = sizeof(struct ipmi_state),
					  .line = ipmi_line,
					  .end = ipmi_end,
					  .read = monitor_ipmi_read};
