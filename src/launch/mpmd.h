/* SPDX-License-Identifier: BSD-3-Clause */
/* Several programs in one job: hale run -n 2 ./a x : -n 3 ./b y. */
#ifndef HALE_LAUNCH_MPMD_H
#define HALE_LAUNCH_MPMD_H

#include "base/error.h"

/* Does the command have a ':' of its own? */
int mpmd_is(char *const *program);

/* Merges the parts into one command for all ranks: a shell that becomes the program of its rank.
 * program: what follows the options of hale run. *ranks: the number for the first part, then for
 * all parts. The caller frees *merged and (*merged)[2], which is the shell's script. */
hale_status_t mpmd_merge(char *const *program, long *ranks, char ***merged, struct error *err);

/* mpirun's --app FILE: a line for each program, "-n 2 ./a x", as a shell reads words; '#' begins a
 * comment. *words is such a command with ':' between; the caller frees it by mpmd_words_free. */
hale_status_t mpmd_read(const char *path, char ***words, struct error *err);
void mpmd_words_free(char **words);

/* A command whose ranks write into files below folder, rank.R/stdout and rank.R/stderr: a shell
 * that becomes the program. *wrapped: the caller frees it, and (*wrapped)[4], which is the folder. */
hale_status_t mpmd_into_files(char *const *program, const char *folder, char ***wrapped,
			      struct error *err);

#endif
