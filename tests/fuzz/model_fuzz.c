/* SPDX-License-Identifier: BSD-3-Clause */
/* clang-format off */
/* links: src/model/catalog.c src/model/check.c src/model/contest.c src/model/entries.c src/model/entries_shadow.c src/model/entries_system.c src/model/interval.c src/model/law.c src/model/lvf.c src/model/quad.c src/model/quantity.c src/model/redundancy.c src/model/shadow.c src/model/unified.c src/model/unified_play.c */
/* clang-format on */
/* The arguments of `hale model` as people might type them: refused with a sentence, or answered
 * with numbers. The first byte is the model, the second the scheme; then assignments, one a line.
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "model/law.h"
#include "model/catalog.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const schemes[] = {"1x",	   "2x",	"2xD",	      "3x", "checkpointing",
				      "stretched", "shadowing", "replication"};

static void solve(const struct model_entry *e, const double *values, const char *scheme)
{
	struct model_answers answers;
	struct error err = {0};

	if (model_entry_solve(e, values, e->schemes ? scheme : NULL, &answers, &err)) {
		if (err.code != HALE_ERR_ARGUMENT || !err.text[0])
			abort();
		return;
	}
	for (size_t i = 0; i < answers.count; i++)
		if (isnan(answers.of[i].value))
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct model_entry *e = model_entries;
	double values[MODEL_KEYS_MAX];
	char text[512], *rest = text, *line;
	struct model_law law;
	size_t n;

	if (size < 2)
		return 0;
	n = size - 2 < sizeof(text) - 1 ? size - 2 : sizeof(text) - 1;
	memcpy(text, data + 2, n);
	text[n] = 0;
	if (model_law_parse(text, &law, NULL) == HALE_OK && !(law.mean_s > 0))
		abort();
	for (int i = data[0] % 9; i > 0; i--)
		e++;
	model_values_init(e, values);
	while ((line = strsep(&rest, "\n")))
		model_values_read(e, line, values, NULL);
	if (model_key_find(e, "runs") >= 0) /* takes long by design */
		values[model_key_find(e, "runs")] = 0;
	solve(e, values, schemes[data[1] % 8]);
	return 0;
}
