/* SPDX-License-Identifier: BSD-3-Clause */
/* Options as people might type them: refused, or a value in the range that is promised. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/base.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char text[64];
	size_t n = size < sizeof(text) - 1 ? size : sizeof(text) - 1;
	memcpy(text, data, n);
	text[n] = 0;
	double seconds;
	uint64_t bytes;
	long value;
	if (units_parse_seconds(text, &seconds) && !(seconds >= 0 && isfinite(seconds)))
		abort();
	units_parse_bytes(text, &bytes);
	if (units_parse_int(text, -5, 1000, &value) && (value < -5 || value > 1000))
		abort();
	return 0;
}
