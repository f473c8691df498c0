/* SPDX-License-Identifier: BSD-3-Clause */
/* The program's files: what stands before libc's functions that change them (journal/journal.h). */
#ifndef HALE_CKPT_FILES_H
#define HALE_CKPT_FILES_H

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/base.h"
#include "journal/journal.h"

/* Finds libc's functions. Early (library constructor). */
void files_init(void);

/* libc's function of this name; NULL: there is none. */
void *files_find(const char *name);
void files_append_init(void);
void files_back_init(void);
/* The program may be about to write over what this file has. */
void files_goes_back(int fd);
void files_names_init(void);
void files_spawn_init(void);

/* Does open(2) with these flags change anything, or make that possible? */
static inline bool files_change(int flags)
{
	return ((flags & O_ACCMODE) != O_RDONLY || flags & (O_CREAT | O_TRUNC)) &&
	       !(flags & O_PATH);
}

/* Before the descriptor's position changes. */
static inline void files_seeks(int fd, int64_t at, int whence)
{
	if (UNLIKELY(journal_on) && (whence == SEEK_SET || at < 0))
		files_goes_back(fd);
}

#endif
