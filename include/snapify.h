/* SPDX-License-Identifier: BSD-3-Clause */
/* Snapshots of device processes: the interface of seed 000, table 2.1, over hale_offload.h. Unlike
 * there, each function returns 0, or -1 with errno and hale_offload_why(). docs/offload.md. */
#ifndef HALE_SNAPIFY_H
#define HALE_SNAPIFY_H

#include <semaphore.h>
#include <stdbool.h>
#include "hale_offload.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef hale_process_t COIProcess;

typedef struct {
	const char *m_snapshot_path; /* folder of the snapshot's files; made if it isn't there */
	sem_t m_sem;		     /* posted when a capture has ended */
	COIProcess *m_process;
	int m_error; /* of the capture; 0: none */
} snapify_t;

/* Stops the process, drains its channels, saves its buffers (the local store) in the folder. From
 * here to snapify_resume all calls on it wait. On failure it goes on as before. */
int snapify_pause(snapify_t *snapshot);
/* Begins to save its image; does not block. terminate: it ends when the image is on this side's
 * disk.
 */
int snapify_capture(snapify_t *snapshot, bool terminate);
/* Waits for that. On failure the process is still there, also with terminate. */
int snapify_wait(snapify_t *snapshot);
/* All go on. */
int snapify_resume(snapify_t *snapshot);
/* A new process, stopped, on a device, from the files in the folder; m_process is the same handle.
 * On failure it stays swapped out, and may be restored elsewhere. */
int snapify_restore(snapify_t *snapshot, int device);

/* Figures 2.6 and 2.7: pause, capture with terminate, wait; restore, resume; both. */
snapify_t *snapify_swapout(const char *path, COIProcess *process);
COIProcess *snapify_swapin(snapify_t *snapshot, int device);
COIProcess *snapify_migration(COIProcess *process, int device_to);

#ifdef __cplusplus
}
#endif
#endif
