/* SPDX-License-Identifier: BSD-3-Clause */
/* Several programs in one job: hale run -n 2 ./a x : -n 3 ./b y. */
#ifndef HALE_LAUNCH_MPMD_H
#define HALE_LAUNCH_MPMD_H

#include "base/error.h"

/* Does the command have a ':' of its own? */
int mpmd_is(char *const *program);

/* One command for all ranks, a shell's, which becomes the program of its rank. program: what
 * follows the options of hale run; *ranks: of its first part, then of all. *merged is for the
 * caller to free, element 2, too, which is the shell's script. */
hale_status_t mpmd_merge(char *const *program, long *ranks, char ***merged, struct error *err);

#endif
