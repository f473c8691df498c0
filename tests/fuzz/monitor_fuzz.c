/* SPDX-License-Identifier: BSD-3-Clause */
/* links: src/monitor/[iklr]*.c src/monitor/mem*.c */
/* Whatever a sensor, a BMC's names, a log or a file in a sensor's place says, a judge refuses the
 * line or publishes events that are whole: known names, payloads that end. */
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "monitor/kind.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void publish(void *arg, const struct monitor_event *e)
{
	(void)arg;
	if (strncmp(e->space, "FTB.", 4) != 0 || strlen(e->name) >= 32 ||
	    strlen(e->payload) >= MONITOR_PAYLOAD_MAX)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const kinds[] = {"ipmi", "ib", "memory", "load"};
	struct monitor_options options = {0};
	struct judge j = {.options = &options, .node = "n", .publish = publish};
	struct error err;

	if (size == 0)
		return 0;
	j.kind = monitor_kind_find(kinds[data[0] & 3]);
	j.state = calloc(1, j.kind->state_size);
	if (!j.state)
		return 0;
	char *text = strndup((const char *)data + 1, size - 1), *save;
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		j.now += 7;
		j.kind->line(&j, line, &err);
		if (j.now > 40)
			j.kind->end(&j);
	}
	j.kind->end(&j);
	if (j.kind->fini)
		j.kind->fini(&j);
	free(j.state);
	free(text);
	return 0;
}
