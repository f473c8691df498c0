/* SPDX-License-Identifier: BSD-3-Clause */
/* System V shared memory, semaphores and message queues. They belong to no descriptor and outlive
 * processes, so an image holds what is in those that its process has used:
 *
 *   known      numbers that the process has asked the kernel for (ckpt/kernel_ipc.c tells them),
 * the memory that it has attached, and what the kernel says that it has used last capture    each
 * process saves those it knows; memory that an earlier process of the tree has attached is saved by
 * that restore    the root sets all of them back, each once, before any process is made: what is
 * still there gets its content, what has gone is made again under its number
 *
 * An object that a process outside of the tree uses, too, is refused from outside (check_ipc.c). */
#ifndef HALE_IMAGE_IPC_IPC_H
#define HALE_IMAGE_IPC_IPC_H

#include "image/engine.h"
#include "image/read.h"

/* ---- known.c ---- */

enum { IPC_KNOWN = 1024 };
/* Number i of those that this process knows; false: there is none at that place. */
bool ipc_known_at(size_t i, int *kind, int *id);
/* It knows more than it can note. */
bool ipc_known_overflows(void);
/* It has more to give back at its end (SEM_UNDO) than it can note. */
bool ipc_undo_overflows(void);
/* The kernel gives back for this process what the captured one had to, and no value changes.
 * captured: its id. 0 or -errno. Every semaphore has its value already. */
long ipc_undo_restore(int32_t captured);

/* ---- capture.c ---- */

struct ipc_part {
	struct ipc_record record;
	const void *data;
	size_t len;
};
/* Into parts (struct ipc_part). own: this process's mappings; tree: all processes that are captured
 * together, or none. claim: as image_params has it. */
hale_status_t ipc_collect(struct arena *a, const struct list *own, const int32_t *tree,
			  size_t tree_count, int (*claim)(int kind, int id), struct list *parts,
			  struct error *err);
/* In a process that comes back: was there a claim? Then semaphores are given back later, by
 * image_ipc_together. */
bool ipc_restores_late(int32_t captured);

/* How often a process has System V memory `id` mapped. */
uint32_t ipc_count_maps(int32_t pid, int id);

/* ---- restore.c ---- */

/* Of the images of all processes that are rebuilt together. */
hale_status_t ipc_begin(struct image_file *const *files, size_t count, struct arena *a,
			struct error *err);
/* All have their memory: what was removed already goes with them. Also when nothing came of it. */
void ipc_settle(void);
/* Maps len bytes from offset of memory `id`, as the image calls it, at that place. 0 or -errno. */
long ipc_attach(int id, uint64_t at, uint64_t offset, uint64_t len);

/* Memory that was removed and has got another number than it had: nobody asks for it by that. */
enum { IPC_MOVED = 64 };
struct ipc_moved {
	int32_t from, to;
};
const struct ipc_moved *ipc_moved_list(size_t *count);

#endif
