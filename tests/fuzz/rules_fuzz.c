/* SPDX-License-Identifier: BSD-3-Clause */
/* links: src/rules/names.c src/rules/parse.c src/rules/scan.c src/rules/engine.c src/rules/stand.c
 */
/* Whatever stands in a file of rules, it is refused with a line, or an engine that has them takes
 * any events, and ends each call. */
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "rules/rules.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void take(void *arg, const struct rules_action *a)
{
	uint64_t *last = arg;

	if (a->id <= *last || !a->node || !a->argument || !*rules_do_name(a->what))
		abort();
	*last = a->id;
}

/* Events named A to D on three nodes, in an order that the text's last bytes choose. */
static void play(const struct rules *rules, const uint8_t *bytes, size_t size)
{
	static const char *const names[] = {"A", "B", "C", "D"};
	static const char *const nodes[] = {"n0", "n1", "n2", "COUNT:7::NODE:n0"};
	uint64_t last = 0;
	struct rules_engine *e = rules_engine_create(rules, take, &last);

	for (int i = 0; e && i < 3; i++)
		rules_engine_node(e, nodes[i], i ? RULES_NODE_WORKING : RULES_NODE_SPARE, 0);
	for (size_t i = 0; e && i < size && i < 64; i++) {
		struct rules_event event = {.time = (double)i,
					    .space = "FTB.X",
					    .name = names[bytes[i] & 3],
					    .host = "n1",
					    .payload = nodes[bytes[i] >> 2 & 3],
					    .severity = bytes[i] >> 4 & 3};
		rules_engine_event(e, &event);
		if (bytes[i] & 64)
			rules_engine_done(e, last, bytes[i] & 128, (double)i);
		if (bytes[i] & 128)
			rules_engine_node(e, nodes[bytes[i] & 1], bytes[i] >> 1 & 3, (double)i);
	}
	rules_engine_destroy(e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct error err = {0};
	struct rules *rules;

	if (rules_parse("f", (const char *)data, size, &rules, &err) == HALE_OK)
		play(rules, data + size - (size < 64 ? size : 64), size < 64 ? size : 64);
	else if (strncmp(err.text, "f:", 2) != 0)
		abort();
	rules_destroy(rules);
	return 0;
}
