/* SPDX-License-Identifier: BSD-3-Clause */
/* Files of a shadow (docs/shadows.md): its main writes them, long before. While a process is mute,
 * each regular file that its program opens for writing is another one without a name, and names stay
 * as they are. When it is promoted those descriptors are the real files again, at the same places;
 * what it then writes is what its main has written, and goes on from there.
 *
 * Called by files.c, in place of libc's functions, and by match/ when a process becomes a shadow or
 * stops being one. Not safe in two threads at once. */
#ifndef HALE_CKPT_MUTE_H
#define HALE_CKPT_MUTE_H

#include <stdbool.h>
#include <sys/types.h>

extern bool hale_mute_on;

/* At the start of the process: its environment says that it is a shadow. */
void mute_init(void);
/* A descriptor, or -1 with errno; MUTE_NOT: the file is none that a shadow must leave alone. */
enum { MUTE_NOT = -2 };
int mute_open(int dir, const char *path, int flags, mode_t mode);

/* This process is a shadow from now on, with the open files of its main; it is none any more. */
void hale_mute_begin(void);
void hale_mute_end(void);
/* Of what nobody can read again the memory is given back. */
void hale_mute_trim(void);

#endif
