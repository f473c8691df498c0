/* SPDX-License-Identifier: BSD-3-Clause */
/* Quantities as people write them in models: "50y", "2min", "20MW", "256h", "4GiB", "10ms",
 * "1e-3/s", "86%". Like base/units, with exponents, years and more kinds. */
#ifndef HALE_MODEL_QUANTITY_H
#define HALE_MODEL_QUANTITY_H

#include <stddef.h>
#include "base/error.h"

enum model_kind {
	MODEL_TIME_S,	   /* ns us ms s min h d w y; bare: seconds. A year is 365.25 d = 8,766 h */
	MODEL_POWER_W,	   /* mW W kW MW GW; bare: watts */
	MODEL_ENERGY_J,	   /* J kJ MJ GJ TJ Wh kWh MWh GWh; bare: joules */
	MODEL_BYTES,	   /* B kB MB GB TB PB, KiB … PiB, K M G T; bare: bytes */
	MODEL_RATE_HZ,	   /* Hz, /s /min /h /d /y; bare: per second */
	MODEL_BYTES_PER_S, /* any size with "/s"; bare: bytes per second */
	MODEL_FRACTION,	   /* 0.2 or 20% */
	MODEL_COUNT,	   /* whole and not negative; k M G (powers of ten) */
	MODEL_NUMBER,	   /* no unit */
};

/* Reads text, all of it, as a quantity of that kind in its base unit. Numbers are decimal, with an
 * exponent if you like, without sign. On failure a sentence that shows the text and an example. */
hale_status_t model_quantity_parse(const char *text, enum model_kind kind, double *value,
				   struct error *err);

/* "12.3 h", "20 MW", "1.2 GiB", "86 %": for people, four digits; into buf, returns buf. */
#define MODEL_QUANTITY_TEXT 24
const char *model_quantity_show(double value, enum model_kind kind, char buf[MODEL_QUANTITY_TEXT]);

/* "time", "power" …, with the units it takes: for help. */
const char *model_kind_units(enum model_kind kind);

#endif
