/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "base/units.h"

struct units_unit {
	const char *name;
	double factor;
};

/* A decimal number without sign, exponent in words, hexadecimal or "inf", as strtod would take;
 * independent of the locale's decimal point. Returns where it ends, NULL if there is none. */
static const char *parse_decimal(const char *text, double *value)
{
	const char *s = text;
	double v = 0, scale = 1;
	bool digits = false;
	for (; *s >= '0' && *s <= '9'; s++, digits = true)
		v = v * 10 + (*s - '0');
	if (*s == '.')
		for (s++; *s >= '0' && *s <= '9'; s++, digits = true) {
			scale /= 10;
			v += (*s - '0') * scale;
		}
	*value = v;
	return digits ? s : NULL;
}

static bool parse_with_unit(const char *text, const struct units_unit *units, size_t count,
			    double *value)
{
	double v;
	const char *rest = parse_decimal(text, &v);
	if (!rest)
		return false;
	while (*rest == ' ')
		rest++;
	if (!*rest) {
		*value = v;
		return true;
	}
	for (size_t i = 0; i < count; i++)
		if (!strcmp(rest, units[i].name)) {
			*value = v * units[i].factor;
			return true;
		}
	return false;
}

bool units_parse_seconds(const char *text, double *seconds)
{
	static const struct units_unit units[] = {
	    {"us", 1e-6}, {"ms", 1e-3}, {"s", 1},    {"sec", 1},
	    {"min", 60},  {"m", 60},	{"h", 3600}, {"d", 86400},
	};
	double v;
	if (!parse_with_unit(text, units, ARRAY_LEN(units), &v) || !(v < 1e10))
		return false;
	*seconds = v;
	return true;
}

bool units_parse_bytes(const char *text, uint64_t *bytes)
{
	static const struct units_unit units[] = {
	    {"B", 1},	     {"kB", 1e3},     {"MB", 1e6},     {"GB", 1e9},	{"TB", 1e12},
	    {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}, {"K", 0x1p10},
	    {"k", 0x1p10},   {"M", 0x1p20},   {"G", 0x1p30},   {"T", 0x1p40},
	};
	char *end;
	errno = 0;
	/* a bare number may need all 64 bits, more than a double holds */
	if (*text >= '0' && *text <= '9') {
		unsigned long long whole = strtoull(text, &end, 10);
		if (!*end) {
			*bytes = whole;
			return errno == 0;
		}
	}
	double v;
	if (!parse_with_unit(text, units, ARRAY_LEN(units), &v) || !(v < 0x1p64))
		return false;
	*bytes = (uint64_t)v;
	return true;
}

bool units_parse_int(const char *text, long min, long max, long *value)
{
	const char *digits = *text == '-' ? text + 1 : text;
	if (*digits < '0' || *digits > '9')
		return false;
	char *end;
	errno = 0;
	long v = strtol(text, &end, 10);
	if (errno || *end || v < min || v > max)
		return false;
	*value = v;
	return true;
}

const char *units_show_bytes(uint64_t bytes, char *buf)
{
	static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	double v = (double)bytes;
	size_t i = 0;
	for (; v >= 1024 && i + 1 < ARRAY_LEN(names); i++)
		v /= 1024;
	snprintf(buf, 16, i == 0 || v >= 100 ? "%.0f %s" : "%.1f %s", v, names[i]);
	return buf;
}

const char *units_show_seconds(double seconds, char *buf)
{
	double s = fabs(seconds);
	if (s < 1e-3)
		snprintf(buf, 16, "%.0f us", s * 1e6);
	else if (s < 1e-1)
		snprintf(buf, 16, "%.1f ms", s * 1e3);
	else if (s < 1)
		snprintf(buf, 16, "%.0f ms", s * 1e3);
	else if (s < 120)
		snprintf(buf, 16, "%.1f s", s);
	else if (s < 7200)
		snprintf(buf, 16, "%.1f min", s / 60);
	else if (s < 1e9)
		snprintf(buf, 16, "%.1f h", s / 3600);
	else
		snprintf(buf, 16, "for ever");
	return buf;
}
