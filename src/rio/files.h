/* SPDX-License-Identifier: BSD-3-Clause */
/* Files below a folder, and none beside it: neither by "..", nor by a symbolic link, nor by a path
 * that begins with "/". A new file has no name until it is whole. */
#ifndef HALE_RIO_FILES_H
#define HALE_RIO_FILES_H

#include <stdbool.h>
#include <sys/types.h>
#include "rio/wire.h"

struct rio_file {
	int fd;
	int folder; /* of a new file; -1: read */
	bool named; /* it has the name temporary, as where O_TMPFILE isn't known */
	char name[256], temporary[64];
};

/* A regular file for reading. 0, or an errno; root: the folder, a descriptor. */
int rio_file_read(struct rio_file *f, int root, const char *path);
/* A new file that gets path's name with rio_file_keep. confined: below root; otherwise root is
 * AT_FDCWD, and any path will do. */
int rio_file_write(struct rio_file *f, int root, const char *path, mode_t mode, bool confined);
/* The new file takes its name; sync: it is on the disk first. 0, or an errno: it has no name. */
int rio_file_keep(struct rio_file *f, bool sync);
/* Closes; what has not been kept is gone. */
void rio_file_close(struct rio_file *f);

#endif
