/* SPDX-License-Identifier: BSD-3-Clause */
/* The daemon's side of files: sessions and their streams. */
#ifndef HALE_RIO_SERVE_H
#define HALE_RIO_SERVE_H

#include "rio/rio.h"

/* root: a descriptor of the folder that files are below. */
void serve_files_begin(int root);
/* Serves a connection that began with h, one of RIO_OPEN and RIO_JOIN; the caller closes it. */
bool serve_files(int fd, const struct wire_head *h, const void *payload);
/* Says RIO_REFUSED with an errno and a sentence. */
void serve_refuse(int fd, int error, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

#endif
