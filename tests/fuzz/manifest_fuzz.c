/* SPDX-License-Identifier: BSD-3-Clause */
/* links: src/store/manifest.c src/store/seal.c src/store/store.c */
/* Whatever stands in a checkpoint's manifest.json, it is refused with a sentence and nothing is
 * left, or it is a manifest: its parts lie in the checkpoint's folder, and written again it reads
 * the same. */
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "store/store.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int good)
{
	if (!good)
		abort();
}

static void right(const struct store_manifest *m)
{
	must(m->nranks > 0 && m->parts && m->argv);
	must(m->base < m->id || m->base == 0);
	for (uint32_t r = 0; r < m->nranks; r++)
		must(!strchr(m->parts[r].file, '/') && strcmp(m->parts[r].file, "..") != 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct store_manifest m, again;
	struct error err = {0};
	char *text, *twice;

	if (store_manifest_parse((const char *)data, size, &m, &err) != HALE_OK) {
		must(err.text[0] && !m.argv && !m.parts);
		return 0;
	}
	right(&m);
	text = store_manifest_print(&m);
	must(text && store_manifest_parse(text, strlen(text), &again, &err) == HALE_OK);
	twice = store_manifest_print(&again);
	must(twice && strcmp(text, twice) == 0);
	free(text);
	free(twice);
	store_manifest_fini(&m);
	store_manifest_fini(&again);
	return 0;
}
