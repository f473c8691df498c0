/* SPDX-License-Identifier: BSD-3-Clause */
/* Is this ours? A folder above may belong to somebody else, who can put what he likes in place of
 * what lies in it: his own files, links, and other files of ours. The first two are refused here;
 * against the third a file has to say what it is (store/seal.h).
 * Ours is what belongs to the effective user, and what nobody else may write. All of it is for
 * ordinary processes: not async-signal-safe. */
#ifndef HALE_BASE_OWN_H
#define HALE_BASE_OWN_H

#include <limits.h>
#include "base/error.h"

/* realpath(3), but a symbolic link that belongs to neither this user nor root is not followed.
 * HALE_ERR_IMAGE_MISSING when something on the way is not there, HALE_ERR_IMAGE_MISMATCH for such a
 * link. */
hale_status_t own_path(const char *path, char real[PATH_MAX], struct error *err);

/* The folder is ours, and no link. HALE_ERR_IMAGE_MISSING, HALE_ERR_IMAGE_MISMATCH. */
hale_status_t own_folder(const char *path, struct error *err);

/* Opens a regular file of ours (flags as open's, O_CLOEXEC is added); -1: err has the same codes.
 */
int own_open(const char *path, int flags, struct error *err);

/* Opens that folder of ours to work in it with openat; -1: it is not ours. */
int own_folder_open(int at, const char *name);

/* Whether a descriptor is of a file, or a folder, of ours. path is what the sentence calls it. */
hale_status_t own_check(int fd, const char *path, struct error *err);

#endif
