/* SPDX-License-Identifier: BSD-3-Clause */
/* The files of a snapshot: `store` has the buffers, `image` the process, `object.so` what it has
 * loaded, `manifest` says that all of them are there. */
#ifndef HALE_OFFLOAD_HOST_SNAP_H
#define HALE_OFFLOAD_HOST_SNAP_H

#include "offload/host/process.h"

struct snap_manifest {
	uint64_t memory, image_size, image_sum, store_size, object_size;
};

/* 0, or -1 with errno and the sentence, all of them. */
int snap_path(char path[PATH_MAX], const snapify_t *s, const char *name);
int snap_store_save(struct hale_process *p, const snapify_t *s);
int snap_store_load(struct hale_process *p, const snapify_t *s);
int snap_manifest_write(struct hale_process *p, const snapify_t *s);
int snap_manifest_read(const snapify_t *s, struct snap_manifest *m);
/* Removes the files and the folder. */
void snap_remove(const char *folder);

#endif
