/* SPDX-License-Identifier: BSD-3-Clause */
/* The program's files: what stands before libc's functions that change them (journal/journal.h). */
#ifndef HALE_CKPT_FILES_H
#define HALE_CKPT_FILES_H

#include <fcntl.h>
#include <stdbool.h>

/* Finds libc's functions. Early (library constructor). */
void files_init(void);

/* libc's function of this name; NULL: there is none. */
void *files_find(const char *name);
void files_append_init(void);
void files_names_init(void);
void files_spawn_init(void);

/* Does open(2) with these flags change anything, or make that possible? */
static inline bool files_change(int flags)
{
	return ((flags & O_ACCMODE) != O_RDONLY || flags & (O_CREAT | O_TRUNC)) &&
	       !(flags & O_PATH);
}

#endif
