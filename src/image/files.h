/* SPDX-License-Identifier: BSD-3-Clause */
/* The files that a process has mapped for itself, seen from outside: its program, libraries, and
 * other files that whoever becomes its image maps again. Not signal-safe. */
#ifndef HALE_IMAGE_FILES_H
#define HALE_IMAGE_FILES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "base/error.h"
#include "image/frame.h"

/* One mapped stretch of a file; a file may come more than once. */
struct image_mapped {
	const char *path;    /* valid during the call */
	uint64_t begin, end; /* bytes of the file, in whole pages: end may lie behind its end */
	bool code;	     /* it may be executed */
};

/* Calls each() for all of them in the order of their addresses, until it says false. */
hale_status_t image_mapped_files(pid_t pid, bool (*each)(void *arg, const struct image_mapped *m),
				 void *arg, struct error *err);

/* What the file behind fd is, as images remember it, and whether two count as the same one there.
 */
hale_status_t image_file_stamp(int fd, struct file_stamp *stamp);
bool image_file_same(const struct file_stamp *a, const struct file_stamp *b);

#endif
