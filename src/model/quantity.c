/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/units.h"
#include "model/quantity.h"

struct quantity_unit {
	const char *name;
	double factor;
};

struct quantity_kind {
	const char *what, *units;
	const struct quantity_unit *table; /* ends with a NULL name */
};

static const struct quantity_unit time_units[] = {
    {"s", 1},	 {"ms", 1e-3}, {"us", 1e-6},  {"ns", 1e-9},	     {"min", 60}, {"m", 60},
    {"h", 3600}, {"d", 86400}, {"w", 604800}, {"y", 365.25 * 86400}, {"sec", 1},  {NULL, 0},
};
static const struct quantity_unit power_units[] = {
    {"W", 1}, {"mW", 1e-3}, {"kW", 1e3}, {"MW", 1e6}, {"GW", 1e9}, {NULL, 0},
};
static const struct quantity_unit energy_units[] = {
    {"J", 1},	   {"kJ", 1e3},	   {"MJ", 1e6},	   {"GJ", 1e9},	    {"TJ", 1e12},
    {"Wh", 3.6e3}, {"kWh", 3.6e6}, {"MWh", 3.6e9}, {"GWh", 3.6e12}, {NULL, 0},
};
static const struct quantity_unit byte_units[] = {
    {"B", 1},	     {"kB", 1e3},     {"MB", 1e6},     {"GB", 1e9},	{"TB", 1e12},
    {"PB", 1e15},    {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40},
    {"PiB", 0x1p50}, {"K", 0x1p10},   {"k", 0x1p10},   {"M", 0x1p20},	{"G", 0x1p30},
    {"T", 0x1p40},   {NULL, 0},
};
static const struct quantity_unit rate_units[] = {
    {"Hz", 1},
    {"/s", 1},
    {"mHz", 1e-3},
    {"/min", 1 / 60.},
    {"/h", 1 / 3600.},
    {"/d", 1 / 86400.},
    {"/y", 1 / (365.25 * 86400)},
    {NULL, 0},
};
static const struct quantity_unit fraction_units[] = {{"%", 0.01}, {NULL, 0}};
static const struct quantity_unit count_units[] = {{"k", 1e3}, {"M", 1e6}, {"G", 1e9}, {NULL, 0}};
static const struct quantity_unit no_units[] = {{NULL, 0}};

static const struct quantity_kind kinds[] = {
    [MODEL_TIME_S] = {"a time", "ns us ms s min h d w y", time_units},
    [MODEL_POWER_W] = {"a power", "mW W kW MW GW", power_units},
    [MODEL_ENERGY_J] = {"an energy", "J kJ MJ GJ TJ Wh kWh MWh GWh", energy_units},
    [MODEL_BYTES] = {"a size", "B kB MB GB TB PB KiB MiB GiB TiB PiB", byte_units},
    [MODEL_RATE_HZ] = {"a rate", "Hz /s /min /h /d /y", rate_units},
    [MODEL_BYTES_PER_S] = {"a bandwidth", "B/s kB/s MB/s GB/s … GiB/s", byte_units},
    [MODEL_FRACTION] = {"a fraction", "0.2 or 20%", fraction_units},
    [MODEL_COUNT] = {"a whole number", "k M G", count_units},
    [MODEL_NUMBER] = {"a number", "no unit", no_units},
};

const char *model_kind_units(enum model_kind kind)
{
	return kinds[kind].units;
}

static bool find_unit(const struct quantity_unit *table, const char *name, size_t len,
		      double *factor)
{
	for (; table->name; table++)
		if (strlen(table->name) == len && memcmp(table->name, name, len) == 0) {
			*factor = table->factor;
			return true;
		}
	return len == 0;
}

/* strtod, without signs, hexadecimal and words. NULL if there is no number. */
static const char *parse_number(const char *text, double *v)
{
	size_t digits = strspn(text, "0123456789.");
	char *end;

	if (digits == 0 || text[digits] == 'x' || text[digits] == 'X')
		return NULL;
	*v = strtod(text, &end);
	return end > text && isfinite(*v) ? end : NULL;
}

hale_status_t model_quantity_parse(const char *text, enum model_kind kind, double *value,
				   struct error *err)
{
	const struct quantity_kind *k = &kinds[kind];
	double v = 0, factor = 1;
	const char *unit;
	size_t len;

	if (kind == MODEL_TIME_S && strcmp(text, "never") == 0) {
		*value = INFINITY;
		return HALE_OK;
	}
	if (text[0] == '-' && strspn(text + 1, "0123456789."))
		return error_set(err, HALE_ERR_ARGUMENT,
				 "'%s' is negative; it must be %s from 0 on", text, k->what);
	unit = parse_number(text, &v);
	if (unit) {
		while (*unit == ' ')
			unit++;
		len = strlen(unit);
		if (kind == MODEL_BYTES_PER_S && len > 2 && strcmp(unit + len - 2, "/s") == 0)
			len -= 2;
		if (!find_unit(k->table, unit, len, &factor))
			unit = NULL;
		else if (kind == MODEL_TIME_S && len == 0 && v > 0)
			return error_set(err, HALE_ERR_ARGUMENT,
					 "'%.80s' has no unit, and times here are of seconds as of "
					 "years: write %.60ss, %.60smin, %.60sh or %.60sy",
					 text, text, text, text, text);
	}
	if (!unit)
		return error_set(err, HALE_ERR_ARGUMENT, "'%.80s' is not %s (%s)", text, k->what,
				 k->units);
	v *= factor;
	if (kind == MODEL_COUNT && (v != floor(v) || v > 0x1p53))
		return error_set(err, HALE_ERR_ARGUMENT, "'%s' is not a whole number", text);
	*value = v;
	return HALE_OK;
}

/* The largest of the named units that leaves at least 1 before the point. */
static const char *show_in(double v, const struct quantity_unit *steps, size_t count, char *buf)
{
	size_t i = 0;

	while (i + 1 < count && fabs(v) >= steps[i + 1].factor)
		i++;
	snprintf(buf, MODEL_QUANTITY_TEXT, "%.4g %s", v / steps[i].factor, steps[i].name);
	return buf;
}

#define SHOW_IN(v, steps, buf) show_in(v, steps, sizeof(steps) / sizeof((steps)[0]), buf)

/* Durations of jobs are compared in hours, so hours up to some weeks; beyond, years. */
static const char *show_time(double v, char *buf)
{
	static const struct quantity_unit steps[] = {
	    {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}, {"min", 120}, {"h", 7200}};

	if (v >= 365.25 * 86400)
		snprintf(buf, MODEL_QUANTITY_TEXT, "%.4g y", v / (365.25 * 86400));
	else if (v >= 7200)
		snprintf(buf, MODEL_QUANTITY_TEXT, v >= 36e3 ? "%.2f h" : "%.3f h", v / 3600);
	else if (v >= 120)
		snprintf(buf, MODEL_QUANTITY_TEXT, "%.2f min", v / 60);
	else if (v == 0)
		snprintf(buf, MODEL_QUANTITY_TEXT, "0 s");
	else
		SHOW_IN(v, steps, buf);
	return buf;
}

const char *model_quantity_show(double value, enum model_kind kind, char buf[MODEL_QUANTITY_TEXT])
{
	static const struct quantity_unit powers[] = {
	    {"W", 1}, {"kW", 1e3}, {"MW", 1e6}, {"GW", 1e9}};
	static const struct quantity_unit energies[] = {{"J", 1},    {"kJ", 1e3},  {"MJ", 1e6},
							{"GJ", 1e9}, {"TJ", 1e12}, {"PJ", 1e15}};
	static const struct quantity_unit rates[] = {
	    {"/y", 1 / (365.25 * 86400)}, {"/d", 1 / 86400.}, {"/h", 1 / 3600.}, {"Hz", 1}};
	static const struct quantity_unit sizes[] = {{"B", 1},	      {"KiB", 0x1p10},
						     {"MiB", 0x1p20}, {"GiB", 0x1p30},
						     {"TiB", 0x1p40}, {"PiB", 0x1p50}};
	size_t n;

	if (isinf(value)) {
		snprintf(buf, MODEL_QUANTITY_TEXT, kind == MODEL_TIME_S ? "never" : "infinite");
		return buf;
	}
	switch (kind) {
	case MODEL_TIME_S:
		return show_time(value, buf);
	case MODEL_POWER_W:
		return SHOW_IN(value, powers, buf);
	case MODEL_ENERGY_J:
		return SHOW_IN(value, energies, buf);
	case MODEL_RATE_HZ:
		return SHOW_IN(value, rates, buf);
	case MODEL_BYTES:
		return SHOW_IN(value, sizes, buf);
	case MODEL_BYTES_PER_S:
		n = strlen(SHOW_IN(value, sizes, buf));
		snprintf(buf + n, MODEL_QUANTITY_TEXT - n, "/s");
		return buf;
	case MODEL_COUNT:
		snprintf(buf, MODEL_QUANTITY_TEXT, "%.0f", value);
		return buf;
	case MODEL_FRACTION:
	case MODEL_NUMBER:
		break;
	}
	snprintf(buf, MODEL_QUANTITY_TEXT, "%.6g", value);
	return buf;
}
