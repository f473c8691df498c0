/* SPDX-License-Identifier: BSD-3-Clause */
/* The daemon's side of files: sessions and their streams. */
#ifndef HALE_RIO_SERVE_H
#define HALE_RIO_SERVE_H

#include <sys/types.h>
#include "rio/rio.h"

/* root: a descriptor of the folder that files are below. */
void serve_files_begin(int root);
/* Serves a connection that began with h, one of RIO_OPEN and RIO_JOIN; the caller closes it. */
bool serve_files(int fd, const struct wire_head *h, const void *payload);
/* Says RIO_REFUSED with an errno and a sentence. */
void serve_refuse(int fd, int error, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* ---- spawn.c ---- */
/* Starts a program that has fd[0], fd[1], … (count, at most 4) as its descriptors 3, 4, …, and
 * besides these only the standard ones. No signal is blocked there. -1 with errno. */
pid_t serve_spawn(const char *program, char *const argv[], char *const env[], const int *fd,
		  int count);

#endif
