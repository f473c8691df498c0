// SPDX-License-Identifier: BSD-3-Clause
#include "image/files.h"

#include <sys/mman.h>

#include "base/fmt.h"
#include "image/engine.h"
#include "image/read.h"

hale_status_t image_mapped_files(pid_t pid, bool (*each)(void *arg, const struct image_mapped *m),
				 void *arg, struct error *err)
{
	struct arena arena;
	struct list maps;
	char path[64];
	hale_status_t rc = image_reader_arena(&arena, err);
	if (rc != HALE_OK)
		return rc;
	fmt_print(path, sizeof(path), "/proc/%d/maps", (int)pid);
	rc = maps_scan(path, &arena, &maps, err);
	for (size_t i = 0; rc == HALE_OK && i < maps.count; i++) {
		const struct map *m = list_at(&maps, i);
		const struct image_mapped f = {.path = m->name,
					       .begin = m->offset,
					       .end = m->offset + (m->end - m->start),
					       .code = (m->prot & PROT_EXEC) != 0};
		if (!m->shared && m->name[0] == '/' && !m->deleted && !map_refusal(m) &&
		    map_kind_of(m) == MAP_KIND_FILE && !each(arg, &f))
			break;
	}
	arena_fini(&arena);
	return rc;
}

hale_status_t image_file_stamp(int fd, struct file_stamp *stamp)
{
	return file_stamp_read(fd, stamp);
}

bool image_file_same(const struct file_stamp *a, const struct file_stamp *b)
{
	return file_stamp_same(a, b);
}
