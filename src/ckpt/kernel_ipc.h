/* SPDX-License-Identifier: BSD-3-Clause */
/* What a program uses of the kernel that no descriptor shows (System V objects), or that shows less
 * than a restart needs (inotify): noted for images. */
#ifndef HALE_CKPT_KERNEL_IPC_H
#define HALE_CKPT_KERNEL_IPC_H

/* Once, early. */
void kernel_ipc_init(void);
/* Before a file of that name is opened: it may be a named pipe. */
void kernel_ipc_opens(int dir, const char *path);
/* The program has opened it for writing: perhaps other ranks write the same file. */
void kernel_ipc_writes(int fd);

#endif
