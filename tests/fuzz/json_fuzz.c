/* SPDX-License-Identifier: BSD-3-Clause */
/* Whatever bytes come, the reader refuses them or gives a tree; and what the writer makes of a text
 * from that tree reads back as the same text. */
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "base/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void visit(const struct json_value *v, int depth)
{
	const char *text = json_text(v, NULL);
	if (text) {
		struct json_out j;
		json_out_init(&j);
		json_string(&j, NULL, text);
		struct json_value *again = json_parse(j.text, j.len);
		if (!again || strcmp(json_text(again, ""), text) != 0)
			abort();
		json_free(again);
		json_out_fini(&j);
	}
	for (size_t i = 0; depth < 40 && i < json_count(v) && i < 50; i++)
		visit(json_at(v, i), depth + 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct json_value *v = json_parse((const char *)data, size);
	if (v)
		visit(v, 0);
	json_free(v);
	return 0;
}
