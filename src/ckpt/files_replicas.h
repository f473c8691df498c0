/* SPDX-License-Identifier: BSD-3-Clause */
/* Files that each replica of a rank opens and writes: all write the same bytes at the same places,
 * and what must happen once the leader does (docs/redundancy.md, "Files"). */
#ifndef HALE_CKPT_FILES_REPLICAS_H
#define HALE_CKPT_FILES_REPLICAS_H

#include <stdbool.h>
#include <sys/types.h>

/* This job has replicas. */
extern bool files_replicated;

typedef int files_open_t(int dir, const char *path, int flags, mode_t mode);

/* Before the program begins. */
void files_replicas_init(void);
/* Opens for writing, by `plain`; -1 and errno, also where the file can't be right in each replica:
 * then it says so. */
int files_replicas_open(int dir, const char *path, int flags, mode_t mode, files_open_t *plain);
/* That descriptor was opened otherwise. */
void files_replicas_forget(int fd);

#endif
