/* SPDX-License-Identifier: BSD-3-Clause */
/* How much memory there is for this process: the machine's, or less where its control group (a
 * batch system's, a container's) has a limit. Bytes. Not signal-safe. */
#ifndef HALE_BASE_MEMORY_H
#define HALE_BASE_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

struct memory_room {
	uint64_t total;
	uint64_t available; /* without swapping; caches count, as they can be dropped */
};

/* root: "", or a folder with copies of /proc and /sys/fs/cgroup below. False: /proc/meminfo can't
 * be read. A limit that can't be read counts as none. */
bool memory_look(const char *root, struct memory_room *room);

#endif
