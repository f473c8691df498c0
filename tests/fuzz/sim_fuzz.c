/* SPDX-License-Identifier: BSD-3-Clause */
/* links: src/model/sim/sim_[fs]*[es].c src/model/law.c src/model/check.c src/model/qua*[dy].c */
/* Whatever stands in a trace, a scheme or a description of failures, it is read or refused with a
 * sentence. The first byte says as which of the three. */
#include <stdlib.h>
#include <string.h>
#include "model/sim/sim.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int good)
{
	if (!good)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct error err = {0};
	struct sim_trace trace;
	struct sim_scheme scheme;
	struct sim_failures failures;
	char *file = NULL, text[600];

	if (size < 1 || size > sizeof(text))
		return 0;
	memcpy(text, data + 1, size - 1);
	text[size - 1] = '\0';
	if (data[0] % 3 == 0) {
		if (sim_trace_parse((const char *)data + 1, size - 1, &trace, &err) == HALE_OK) {
			for (size_t i = 1; i < trace.count; i++)
				must(trace.events[i - 1].time_s <= trace.events[i].time_s);
			must(trace.span_s >= trace.events[trace.count - 1].time_s);
			sim_trace_fini(&trace);
			return 0;
		}
	} else if (data[0] % 3 == 1) {
		if (sim_scheme_parse(text, &scheme, &err) == HALE_OK) {
			must(scheme.degree >= 1 && scheme.degree <= 3 && scheme.set_size >= 1);
			return 0;
		}
	} else if (sim_failures_parse(text, &failures, &file, &err) == HALE_OK) {
		must(failures.traced == (file != NULL));
		free(file);
		return 0;
	}
	must(err.text[0] != '\0');
	return 0;
}
