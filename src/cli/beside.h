/* SPDX-License-Identifier: BSD-3-Clause */
/* Programs that stand beside Hale's libraries, so that hale does not need the libraries of theirs.
 */
#ifndef HALE_CLI_BESIDE_H
#define HALE_CLI_BESIDE_H

#include <stdbool.h>
#include <stddef.h>

/* Becomes that program, with the path of hale and two more arguments. Returns only if it can't: an
 * exit status, after a sentence, which ends with `without` where it is not there. */
int cli_become(const char *program, const char *without, const char *first, const char *second);

/* Where it is; false: it is not there. */
bool cli_beside_path(const char *program, char *path, size_t size);

#endif
