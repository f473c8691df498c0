/* SPDX-License-Identifier: BSD-3-Clause */
/* The program's files: what stands before libc's functions that change them (journal/journal.h). */
#ifndef HALE_CKPT_FILES_H
#define HALE_CKPT_FILES_H

/* Finds libc's functions. Early (library constructor). */
void files_init(void);

#endif
