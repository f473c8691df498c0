/* SPDX-License-Identifier: BSD-3-Clause */
/* What the head says itself, where hale's stderr is a terminal: it waits for nobody who looks at
 * that, as little as the output of ranks does. Elsewhere it goes to stderr at once. */
#ifndef HALE_HEAD_OUTPUT_SAID_H
#define HALE_HEAD_OUTPUT_SAID_H

#include "head/output/output_writer.h"

/* err: what ranks print on stderr, or an output daemon does. Of a process one at a time. */
void said_begin(struct loop *loop, struct output_writer *err);
/* A line, with its newline, that another process has made. */
void said_line(const char *line, size_t len);
/* Waits until all of it is written. Before err goes. */
void said_end(void);

#endif
